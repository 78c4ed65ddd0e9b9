"""The manifests of a store, from its head to its first generation, and the rules that bind them."""

from dataclasses import dataclass, field

from . import Refused, chacha, curve, envelope, refs, require, wire
from .policy import Policy


@dataclass
class Manifest:
    """One opened generation."""

    id: str
    what: str
    header: dict
    header_text: bytes
    key: bytes
    content: dict
    content_text: bytes
    signature: bytes
    body: dict
    envelopes: list
    policy: Policy = field(default=None)

    @property
    def generation(self):
        return self.header["generation"]


def read_outer(data, what):
    """Header, header text, and both sealed parts of a stored manifest."""
    outer = wire.written(data, wire.MANIFEST, what)
    text = wire.decoded(outer["header"])
    header = wire.written(text, wire.HEADER, f"{what} header")
    envelopes = header["generation_key_envelopes"]
    count = len(envelopes)
    require(4 <= count <= 4096 and count & (count - 1) == 0, f"{what}: {count} envelopes")
    pairs = []
    for at, item in enumerate(envelopes):
        wire.shaped(item, wire.ENVELOPE, f"{what} envelope {at}")
        pairs.append((wire.decoded(item["encapsulated_key"]), wire.decoded(item["ciphertext"])))
    for enc, _ in pairs:
        # A dummy drawn from uniform bytes instead of a real seal gives itself away here.
        require(int.from_bytes(enc, "little") < curve.P, f"{what}: encapsulated key is not a reduced coordinate")
    encs = [enc for enc, _ in pairs]
    require(all(a < b for a, b in zip(encs, encs[1:])), f"{what}: envelopes are not strictly sorted")
    return header, text, pairs, wire.decoded(outer["sealed_header_ciphertext"]), wire.decoded(outer["body_ciphertext"])


def unwrap_head_key(header, pairs, device, what):
    """The generation key, from the envelope that is for this device."""
    require(header["repository_root"] == device.root, f"{what}: key file belongs to a different repository")
    aad = wire.envelope_aad(header["repository_root"], header["generation"], header["key_commitment"], device.id)
    for enc, ciphertext in pairs:
        key = envelope.open_envelope(device.wrapping, enc, aad, ciphertext)
        if key is not None and len(key) == 32 and wire.commitment(key) == header["key_commitment"]:
            return key
    raise Refused(f"{what}: no envelope opens with this key")


def open_manifest(name, data, key_source):
    """Opens one manifest; `key_source` gives the key from the header and the envelopes."""
    what = f"manifest {name[:12]}"
    require(wire.sha256(data) == name, f"{what}: stored bytes have another id")
    header, text, pairs, sealed_header, sealed_body = read_outer(data, what)
    root, generation = header["repository_root"], header["generation"]
    what = f"generation {generation}"
    key = key_source(header, pairs, what)
    require(wire.commitment(key) == header["key_commitment"], f"{what}: key does not match the commitment")
    require(wire.sha256(sealed_body) == header["body_digest"], f"{what}: body digest mismatch")
    opened = chacha.small_open(wire.subkey(key, root, generation, wire.HEADER_KIND), text, sealed_header,
                               f"{what} sealed header")
    sealed = wire.written(opened, wire.SEALED, f"{what} sealed header")
    content_text = wire.decoded(sealed["content"])
    require(wire.sha256(content_text) == header["sealed_header_digest"], f"{what}: sealed header digest mismatch")
    content = wire.written(content_text, wire.CONTENT, f"{what} sealed content")
    opened = chacha.small_open(wire.subkey(key, root, generation, wire.BODY_KIND), wire.body_aad(root, generation),
                               sealed_body, f"{what} body")
    body = wire.written(opened, wire.BODY, f"{what} body")
    refs.check(body["refs"], what)
    for ordinal, item in enumerate(body["new_packs"]):
        wire.shaped(item, wire.PACK, f"{what} pack {ordinal}")
        require(item["generation"] == generation, f"{what}: pack {ordinal} names generation {item['generation']}")
        require(item["ordinal"] == ordinal, f"{what}: pack ordinals are not dense")
        require(item["plaintext_size"] > 0, f"{what}: pack {ordinal} is empty")
    first = generation == 0
    require((header["previous"] is None) == first, f"{what}: predecessor and generation contradict")
    require((body["predecessor_key_wrap"] is None) == first, f"{what}: predecessor link and generation contradict")
    return Manifest(name, what, header, text, key, content, content_text, wire.decoded(sealed["signature"]), body,
                    pairs)


def parent_key(child):
    """The key source that follows the link of a child."""
    root, previous = child.header["repository_root"], child.header["previous"]

    def source(_header, _pairs, what):
        link = wire.decoded(child.body["predecessor_key_wrap"])
        key = chacha.small_open(wire.subkey(child.key, root, child.generation, wire.LINK_KIND),
                                wire.link_aad(root, child.generation, previous), link, f"link to {what}")
        require(len(key) == 32, f"link to {what}: key is not 32 bytes")
        return key

    return source


def read(head, manifest, device):
    """Every generation from the first to `head`, opened and checked. `manifest` gives the bytes of an id."""
    source = lambda header, pairs, what: unwrap_head_key(header, pairs, device, what)
    chain, seen, name = [], set(), head
    while name is not None:
        require(name not in seen, f"manifest {name} stands twice in the chain")
        seen.add(name)
        chain.append(open_manifest(name, manifest(name), source))
        source, name = parent_key(chain[-1]), chain[-1].header["previous"]
    chain.reverse()
    require(chain[0].generation == 0, f"chain ends at generation {chain[0].generation}")
    for parent, child in zip([None] + chain, chain):
        check_transition(parent, child)
    ids = [item["id"] for entry in chain for item in entry.body["new_packs"]]
    require(len(set(ids)) == len(ids), "a pack id stands twice in the chain")
    return chain


def check_transition(parent, child):
    """Requires that `child` may follow `parent`, and that the right device signed it."""
    what, content, body = child.what, child.content, child.body
    root, packs = child.header["repository_root"], len(body["new_packs"])
    introduced = body["introduced_policy"]
    if parent is not None:
        require(root == parent.header["repository_root"], f"{what}: root differs from its parent's")
        require(child.generation == parent.generation + 1, f"{what}: does not follow its parent")
        total = parent.content["total_pack_count"] + packs
        require(content["total_pack_count"] == total, f"{what}: total pack count is not {total}")
    if content["authorization"] == "writer":
        require(parent is not None, f"{what}: first generation is not a policy transition")
        require(introduced is None, f"{what}: writer introduces a policy")
        child.policy, authority, role = parent.policy, parent.policy, "writer"
    else:
        require(introduced is not None, f"{what}: policy transition without a policy")
        child.policy = Policy(wire.decoded(introduced), f"{what} policy")
        require(packs == 0, f"{what}: policy transition carries packs")
        if parent is None:
            require(body["refs"] == {} and content["total_pack_count"] == 0, f"{what}: first generation is not empty")
            child.policy.check_genesis(root)
        else:
            require(body["refs"] == parent.body["refs"], f"{what}: policy transition changes refs")
            child.policy.check_child(parent.policy)
        authority, role = (parent or child).policy, "administrator"
    require(content["policy_id"] == child.policy.id, f"{what}: policy id does not name the policy in force")
    require(content["policy_generation"] == child.policy.generation, f"{what}: policy generation differs")
    signer = content["signer_device_id"]
    require(authority.active(signer, role), f"{what}: signer {signer} is not an active {role}")
    message = wire.signed_manifest(child.header_text, child.content_text, child.header["body_digest"])
    require(curve.verify(authority.keys(signer)[0], message, child.signature), f"{what}: signature verification failed")
    check_audit(child)


def check_audit(entry):
    """Requires one real envelope for each active reader, made from the recorded seed, and padding beside them."""
    what, readers = entry.what, entry.policy.readers()
    audit = entry.content["envelope_audit"]
    require(len(audit) == len(entry.envelopes), f"{what}: audit and envelopes differ in length")
    count = 4
    while count < len(readers):
        count *= 2
    require(len(audit) == count, f"{what}: {len(audit)} envelopes for {len(readers)} readers, expected {count}")
    found = []
    for at, (record, pair) in enumerate(zip(audit, entry.envelopes)):
        kind = record.get("kind") if isinstance(record, dict) else None
        wire.shaped(record, wire.RECIPIENT if kind == "recipient" else wire.DUMMY, f"{what} audit {at}")
        if kind == "dummy":
            continue
        name = record["device_id"]
        require(name in readers, f"{what}: audit names {name}, which is not an active reader")
        found.append(name)
        aad = wire.envelope_aad(entry.header["repository_root"], entry.generation, entry.header["key_commitment"], name)
        sealed = envelope.seal(wire.decoded(record["encapsulation_seed"]), entry.policy.keys(name)[1], aad, entry.key)
        require(sealed == pair, f"{what}: envelope {at} is not the seal that its audit entry records")
    require(sorted(found) == sorted(readers), f"{what}: audit must match the active readers exactly")
