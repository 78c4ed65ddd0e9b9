"""Writes directory stores, right ones and wrong ones.

Everything is properly sealed and signed: a defect goes in before sealing, at a named stage, so that only the rule it
breaks can catch it. All randomness comes from a seed, so the same story makes the same bytes.
"""

import hashlib
import os
import random
import zlib
from dataclasses import dataclass, field
from struct import pack

from . import chacha, curve, envelope, packs, wire


@dataclass
class Entry:
    """What later generations need of an earlier one."""

    id: str
    key: bytes
    generation: int
    refs: dict
    total: int
    policy: dict
    policy_id: str
    packs: list = field(default_factory=list)


class Edits:
    """Functions that change a value on its way, by the name of the stage."""

    def __init__(self, edits):
        self.edits = dict(edits)
        self.used = set()

    def __call__(self, stage, value):
        if stage not in self.edits:
            return value
        self.used.add(stage)
        changed = self.edits[stage](value)
        # Edits may change a value in place.
        return value if changed is None else changed

    def finish(self):
        unused = set(self.edits) - self.used
        assert not unused, f"no such stage: {unused}"


class Forge:
    """A store under construction."""

    def __init__(self, folder, seed="forge"):
        self.folder = folder
        self.random = random.Random(seed)
        self.chain = []

    def device(self, root=None):
        """A new device; without a root, the owner of a repository to come."""
        device = wire.Device(root, self.random.randbytes(32), self.random.randbytes(32))
        if root is None:
            device.root = wire.repository_root(device.signing_public, device.wrapping_public)
        return device

    def write(self, kind, data, name=None):
        name = name or wire.sha256(data)
        folder = os.path.join(self.folder, kind, name[:2])
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
        return name

    def set_head(self, text):
        with open(os.path.join(self.folder, "HEAD"), "wb") as file:
            file.write(text)

    def seal_pack(self, key, root, generation, ordinal, plain, edit):
        """The stored bytes of a pack stream."""
        nonce = self.random.randbytes(19)
        header = packs.MAGIC + pack("<I", packs.SEGMENT) + nonce
        descriptor = {"generation": generation, "ordinal": ordinal}
        aad = packs.segment_aad(root, descriptor, header)
        subkey = wire.subkey(key, root, generation, wire.PACK_KIND, ordinal)
        pieces = [plain[at:at + packs.SEGMENT] for at in range(0, len(plain), packs.SEGMENT)]
        out = [header]
        for counter, piece in enumerate(edit("segments", pieces)):
            last = edit("last flag", counter == len(pieces) - 1)
            long, short = chacha.long_nonce(subkey, nonce + pack(">IB", counter, last))
            out.append(chacha.aead_seal(long, short, aad, piece))
        return b"".join(edit("stream", out))

    def publish(self, signer, *, refs=None, plains=(), policy=None, edits=()):
        """Adds a generation with these refs, Git packs and policy, changed by `edits`, and moves the head to it."""
        edit = Edits(edits)
        parent = self.chain[-1] if self.chain else None
        generation = edit("generation", parent.generation + 1 if parent else 0)
        root = edit("root", signer.root)
        key = self.random.randbytes(32)
        committed = wire.commitment(edit("committed key", key))
        refs = dict(parent.refs if parent else {}) if refs is None else dict(refs)
        in_force = policy["body"] if policy else parent.policy
        policy_text = policy_object(policy) if policy else None
        policy_id = wire.sha256(policy_text) if policy else parent.policy_id

        descriptors = []
        for ordinal, plain in enumerate(plains):
            stored = self.seal_pack(key, root, generation, ordinal, plain, edit)
            name = edit("pack id", self.write("objects", stored))
            descriptors.append({"id": name, "plaintext_size": len(plain), "generation": generation, "ordinal": ordinal})
        descriptors = edit("descriptors", descriptors)
        link = None
        if parent:
            aad = wire.link_aad(root, generation, parent.id)
            link = wire.encoded(chacha.small_seal(
                wire.subkey(key, root, generation, wire.LINK_KIND), aad, edit("linked key", parent.key),
                self.random.randbytes(24)))
        body = edit("body", {
            "refs": {name: refs[name] for name in sorted(refs, key=str.encode)},
            "new_packs": descriptors,
            "predecessor_key_wrap": link,
            "introduced_policy": policy_text and wire.encoded(policy_text),
        })
        sealed_body = chacha.small_seal(wire.subkey(key, root, generation, wire.BODY_KIND),
                                        wire.body_aad(root, generation), edit("body text", wire.dumps(body)),
                                        self.random.randbytes(24))
        body_digest = edit("body digest", wire.sha256(sealed_body))

        envelopes = edit("envelopes", self.envelopes(in_force, key, root, generation, committed, edit))
        content = edit("content", {
            "policy_id": policy_id,
            "policy_generation": in_force["generation"],
            "signer_device_id": signer.id,
            "authorization": "policy_transition" if policy else "writer",
            "total_pack_count": (parent.total if parent else 0) + len(descriptors),
            "envelope_audit": [audit for _, _, audit in envelopes],
        })
        content_text = edit("content text", wire.dumps(content))
        header = edit("header", {
            "format_version": 5,
            "repository_root": root,
            "generation": generation,
            "previous": parent and parent.id,
            "key_commitment": committed,
            "generation_key_envelopes": [
                {"encapsulated_key": wire.encoded(enc), "ciphertext": wire.encoded(sealed)}
                for enc, sealed, _ in envelopes
            ],
            "body_digest": body_digest,
            "sealed_header_digest": wire.sha256(content_text),
        })
        header_text = edit("header text", wire.dumps(header))
        signature = curve.sign(signer.signing, wire.signed_manifest(header_text, content_text, body_digest))
        sealed = edit("sealed", {
            "content": wire.encoded(content_text), "signature": wire.encoded(edit("signature", signature)),
        })
        sealed_header = chacha.small_seal(wire.subkey(key, root, generation, wire.HEADER_KIND), header_text,
                                          wire.dumps(sealed), self.random.randbytes(24))
        outer = edit("outer", {
            "header": wire.encoded(header_text),
            "sealed_header_ciphertext": wire.encoded(sealed_header),
            "body_ciphertext": wire.encoded(sealed_body),
        })
        text = edit("outer text", wire.dumps(outer))
        entry = Entry(self.write("manifests", text), key, generation, refs, content["total_pack_count"], in_force,
                      policy_id, descriptors)
        self.chain.append(entry)
        self.set_head(edit("HEAD", f"{entry.id}\n".encode()))
        edit.finish()
        return entry

    def envelopes(self, policy, key, root, generation, committed, edit):
        """Encapsulated key, ciphertext and audit entry of each envelope, in their order."""
        out = []
        readers = [device for device in policy["devices"] if device["roles"]["reader"] and device["revoked_at"] is None]
        for device in edit("readers", readers):
            seed = self.random.randbytes(32)
            aad = wire.envelope_aad(root, generation, committed, device["device_id"])
            enc, sealed = envelope.seal(seed, wire.decoded(device["wrapping_public_key"]), aad, key)
            out.append((enc, sealed, {
                "kind": "recipient", "device_id": device["device_id"], "encapsulation_seed": wire.encoded(seed),
            }))
        count = 4
        while count < len(out):
            count *= 2
        for _ in range(edit("envelope count", count) - len(out)):
            out.append(self.dummy())
        return sorted(out, key=lambda item: item[0])

    def dummy(self):
        public = curve.x25519(self.random.randbytes(32))
        enc, sealed = envelope.seal(self.random.randbytes(32), public, self.random.randbytes(32),
                                    self.random.randbytes(32))
        return enc, sealed, {"kind": "dummy"}


def member(device, reader=True, writer=True, administrator=False, revoked_at=None):
    """The entry of a device in a policy."""
    return {
        "repository_root": device.root,
        "device_id": device.id,
        "signing_public_key": wire.encoded(device.signing_public),
        "wrapping_public_key": wire.encoded(device.wrapping_public),
        "roles": {"reader": reader, "writer": writer, "administrator": administrator},
        "revoked_at": revoked_at,
    }


def policy(signer, members, parent=None, **changes):
    """A policy to introduce, signed when it is written: `parent` is the entry of the generation before."""
    body = {
        "format_version": 5,
        "repository_root": signer.root,
        "generation": parent.policy["generation"] + 1 if parent else 0,
        "previous": parent and parent.policy_id,
        "admin_threshold": 1,
        "devices": sorted(members, key=lambda device: device["device_id"]),
    }
    body.update(changes)
    return {"body": body, "signers": [signer]}


def policy_object(policy):
    """The text of a policy object."""
    text = wire.dumps(policy["body"])
    return wire.dumps({"body": wire.encoded(text), "signatures": [
        {"device_id": signer.id, "signature": wire.encoded(curve.sign(signer.signing, wire.signed_policy(text)))}
        for signer in policy["signers"]
    ]})


def key_file(device):
    """The text of a private key file."""
    value = {
        "format_version": 3, "repository_root": device.root,
        "signing_private_key": wire.encoded(device.signing), "wrapping_private_key": wire.encoded(device.wrapping),
    }
    return wire.json.dumps(value, indent=2).encode()


# Git, as far as a pack with one commit needs it.

TYPES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
REF_DELTA = 7


def object_id(kind, data):
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data).hexdigest()


def entry_header(number, size):
    out, byte, size = bytearray(), number << 4 | size & 15, size >> 4
    while size:
        out.append(byte | 128)
        byte, size = size & 127, size >> 7
    out.append(byte)
    return bytes(out)


def git_entry(kind, data):
    return entry_header(TYPES[kind], len(data)) + zlib.compress(data)


def git_pack(*entries, count=None):
    """A Git pack of raw entries."""
    data = b"PACK" + pack(">II", 2, len(entries) if count is None else count) + b"".join(entries)
    return data + hashlib.sha1(data).digest()


def history(text):
    """Entries and id of a commit that holds one file."""
    blob = text.encode()
    tree = b"100644 file\0" + bytes.fromhex(object_id("blob", blob))
    commit = (f"tree {object_id('tree', tree)}\nauthor Alice <alice@example.org> 1700000000 +0000\n"
              f"committer Alice <alice@example.org> 1700000000 +0000\n\n{text}\n").encode()
    objects = [("blob", blob), ("tree", tree), ("commit", commit)]
    return [git_entry(*item) for item in objects], object_id("commit", commit)
