#!/usr/bin/env python3
"""Makes directory stores that are right but for one thing, each properly sealed and signed.

usage: forge_store.py FOLDER [NAME...]

Every story goes into FOLDER/NAME/: `store` is the store, `owner.key.json` and `second.key.json` are keys that read it.
Prints a line for each, with tabs between: the name; `sound` where every reader has to accept the store, `odd` where
readers have to accept what no writer should write, `wrong` where a reader has to refuse it, at the latest when it looks
at the Git objects; and a part of the reason that check_store.py has to give, empty for `sound`.
"""

import copy
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from storecheck import forge, wire  # noqa: E402
from storecheck.chacha import keystream  # noqa: E402
from storecheck.packs import SEGMENT  # noqa: E402

MAIN = "refs/heads/main"
STORIES = {}


def story(name, checker, reader=False):
    """Registers a story: a function of a [`World`] that adds the generation with the defect."""
    def register(tell):
        STORIES[name] = (tell, checker, reader)
        return tell
    return register


def defect(name, checker, reader=False, **edits):
    """A story whose last generation is an ordinary push but for `edits`."""
    story(name, checker, reader)(lambda world: world.push(**edits))


def membership(name, checker, change, reader=False):
    """A story whose last generation changes the policy: `change` alters the members, or the whole policy."""
    story(name, checker, reader)(lambda world: world.transition(change))


class World:
    """Generation 0, a second writer, a revoked third one, and a first push."""

    def __init__(self, folder):
        self.place = folder
        self.folder = os.path.join(folder, "store")
        os.makedirs(self.folder)
        open(os.path.join(self.folder, "HEAD.lock"), "wb").close()
        self.forge = forge.Forge(self.folder)
        self.owner = self.forge.device()
        self.second, self.third, self.stranger = (self.forge.device(self.owner.root) for _ in range(3))
        for name in ("owner", "second"):
            path = os.path.join(folder, f"{name}.key.json")
            with open(path, "wb") as file:
                file.write(forge.key_file(getattr(self, name)))
            os.chmod(path, 0o600)
        owner = forge.member(self.owner, administrator=True)
        self.forge.publish(self.owner, policy=forge.policy(self.owner, [owner]))
        members = [owner, forge.member(self.second), forge.member(self.third)]
        self.forge.publish(self.owner, policy=forge.policy(self.owner, members, self.head))
        members[2] = forge.member(self.third, revoked_at=2)
        self.members = members
        self.forge.publish(self.owner, policy=forge.policy(self.owner, members, self.head))
        entries, self.first = forge.history("one")
        self.forge.publish(self.second, refs={MAIN: self.first}, plains=[forge.git_pack(*entries)])

    def copy(self, folder):
        """The same world in another folder."""
        shutil.copytree(self.place, folder)
        world = copy.deepcopy(self)
        world.place, world.folder = folder, os.path.join(folder, "store")
        world.forge.folder = world.folder
        return world

    @property
    def head(self):
        return self.forge.chain[-1]

    def push(self, signer=None, refs=None, plains=None, more=None, **edits):
        """An ordinary push of a new branch, with `refs` added."""
        entries, commit = forge.history("two")
        plains = [forge.git_pack(*entries)] if plains is None else plains
        refs = self.head.refs | {"refs/heads/topic": commit} | (refs or {}) if more is None else more
        return self.forge.publish(signer or self.second, refs=refs, plains=plains, edits=stages(edits))

    def transition(self, change=None, signer=None, **edits):
        """An ordinary change of the membership."""
        parent = self.head
        members = json.loads(json.dumps(parent.policy["devices"]))
        policy = forge.policy(self.owner, members, parent)
        if change:
            change(self, policy)
            policy["body"]["devices"].sort(key=lambda device: device["device_id"])
        return self.forge.publish(signer or self.owner, policy=policy, edits=stages(edits))

    def member(self, policy, device):
        return next(item for item in policy["body"]["devices"] if item["device_id"] == device.id)


def stages(edits):
    """Edits by the names of their stages, which are not always Python names."""
    return {stage.replace("_", " "): change for stage, change in edits.items()}


def put(**fields):
    """An edit that sets fields."""
    return lambda value: value.update(fields)


def drop(*names):
    """An edit that removes fields."""
    return lambda value: [value.pop(name) for name in names] and None


def flip(at):
    """An edit that changes one bit."""
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def reordered(value):
    return dict(reversed(value.items()))


def spaced(text):
    return json.dumps(json.loads(text)).encode()


def replaced(old, new):
    return lambda text: text.replace(old, new, 1)


# What is right.

story("sound", None, True)(lambda world: world.push())
story("sound-policy", None, True)(lambda world: world.transition())
story("sound-empty-pack", None, True)(lambda world: world.push(more=world.head.refs, plains=[forge.git_pack()]))
story("sound-no-pack", None, True)(lambda world: world.push(more={"refs/tags/t": world.first}, plains=[]))
story("sound-two-packs", None, True)(
    lambda world: world.push(plains=[forge.git_pack(*forge.history("two")[0]), forge.git_pack()]))


@story("sound-three-segments", None, True)
def _(world):
    blob = keystream(bytes(32), bytes(12), 0, 2 * SEGMENT + 1000)
    world.push(plains=[forge.git_pack(*forge.history("two")[0], forge.git_entry("blob", blob))])


# What readers accept, and no writer should write.

defect("outer-spaced", "not written as compact JSON", True, outer_text=spaced)
defect("outer-reordered", "fields are", True, outer=reordered)
defect("header-spaced", "not written as compact JSON", True, header_text=spaced)
defect("body-reordered", "fields are", True, body=reordered)
defect("refs-unsorted", "refs unsorted", True, body=lambda body: body.update(refs=reordered(body["refs"])))
defect("envelopes-more-than-needed", "8 envelopes for 2 readers", True, envelope_count=lambda count: 8)

# Documents.

defect("content-spaced", "not written as compact JSON", content_text=spaced)
defect("content-reordered", "fields are", content=reordered)
defect("content-unknown-field", "fields are", content=put(note=1))
defect("header-unknown-field", "fields are", header=put(note=1))
defect("header-duplicate-field", "duplicate field", header_text=replaced(b"{", b'{"format_version":5,'))
defect("header-not-json", "not JSON", header_text=lambda text: text[:-1])
defect("body-unknown-field", "fields are", body=put(note=1))
defect("body-not-object", "not an object", body_text=lambda text: b"[]")
defect("sealed-unknown-field", "fields are", sealed=put(note=1))
defect("outer-unknown-field", "fields are", outer=put(note=1))
defect("outer-missing-field", "fields are", outer=drop("body_ciphertext"))
defect("outer-base64-unpadded", "field header is not valid", outer=lambda outer: outer.update(header=outer["header"] + "="))
defect("header-huge-generation", "field generation is not valid", header=put(generation=1 << 64))
defect("header-negative-generation", "field generation is not valid", header=put(generation=-1))
defect("format-4", "field format_version is not valid", header=put(format_version=4))
defect("format-6", "field format_version is not valid", header=put(format_version=6))
defect("manifest-too-large", "larger than 16 MiB", outer_text=lambda text: text + b" " * (16 << 20))
defect("deeply-nested", "not JSON", outer_text=lambda text: b"[" * 200_000)

# What seals and binds.

defect("body-digest-wrong", "body digest mismatch", body_digest=lambda digest: wire.sha256(b""))
defect("content-digest-wrong", "sealed header digest mismatch", header=put(sealed_header_digest=wire.sha256(b"")))
defect("commitment-wrong", "no envelope opens", committed_key=lambda key: bytes(32))
defect("commitment-only", "no envelope opens", header=put(key_commitment=wire.commitment(bytes(32))))
defect("signature-wrong", "signature verification failed", signature=flip(40))
defect("signature-malleable", "signature verification failed",
       signature=lambda data: data[:32] + (int.from_bytes(data[32:], "little") + forge.curve.ORDER).to_bytes(32, "little"))
defect("signature-small-order", "signature verification failed", signature=lambda data: b"\1" + bytes(63))
defect("signature-of-another", "signature verification failed",
       content=lambda content: content.update(signer_device_id=OWNER_ID))
defect("sealed-body-truncated", "sealed form is shorter", outer=put(body_ciphertext=wire.encoded(bytes(40))),
       body_digest=lambda digest: wire.sha256(bytes(40)))
defect("sealed-header-truncated", "sealed form is shorter", outer=put(sealed_header_ciphertext=wire.encoded(bytes(47))))

# The chain.

defect("generation-skipped", "does not follow its parent", generation=lambda number: number + 1)
defect("generation-again", "does not follow its parent", generation=lambda number: number - 1)
defect("previous-missing", "predecessor and generation contradict", header=put(previous=None))
defect("previous-unknown", "missing", header=put(previous=wire.sha256(b"nothing")))
defect("link-missing", "predecessor link and generation contradict", body=put(predecessor_key_wrap=None))
defect("link-to-another-key", "does not match the commitment", linked_key=lambda key: bytes(32))
defect("link-short-key", "key is not 32 bytes", linked_key=lambda key: key[:31])
defect("total-too-high", "total pack count", content=lambda content: content.update(total_pack_count=9))
defect("total-huge", "total pack count", content=put(total_pack_count=wire.MAX_U64))
defect("another-root", "key file belongs to a different repository", root=lambda root: wire.sha256(b"root"))


@story("previous-is-grandparent", "authentication failed")
def _(world):
    world.push(header=put(previous=world.forge.chain[-2].id))


@story("history-rewritten", "does not follow its parent")
def _(world):
    parent = world.forge.chain.pop()
    world.push(generation=lambda number: number + 1)
    world.forge.chain.append(parent)


# Who may.

story("signed-by-reader-only", "is not an active writer")(
    lambda world: (world.transition(lambda world, policy: world.member(policy, world.second)["roles"].update(writer=False)),
                   world.push(signer=world.second)))
story("signed-by-revoked", "is not an active writer")(lambda world: world.push(signer=world.third))
story("signed-by-stranger", "is not an active writer")(lambda world: world.push(signer=world.stranger))
story("policy-by-writer", "is not an active administrator")(lambda world: world.transition(signer=world.second))
defect("authorization-checkpoint", "field authorization is not valid", content=put(authorization="checkpoint"))
defect("authorization-unknown", "field authorization is not valid", content=put(authorization="king"))
defect("writer-says-transition", "policy transition without a policy", content=put(authorization="policy_transition"))
defect("policy-id-wrong", "policy id does not name", content=put(policy_id=wire.sha256(b"policy")))
defect("policy-generation-wrong", "policy generation differs", content=put(policy_generation=0))
story("transition-says-writer", "writer introduces a policy")(
    lambda world: world.transition(content=put(authorization="writer")))
story("transition-changes-refs", "policy transition changes refs")(
    lambda world: world.transition(body=put(refs={})))


@story("transition-with-pack", "policy transition carries packs")
def _(world):
    policy = forge.policy(world.owner, world.head.policy["devices"], world.head)
    world.forge.publish(world.owner, policy=policy, plains=[forge.git_pack()])


# Policies.

membership("policy-reactivates", "revocation of", lambda world, policy: world.member(policy, world.third).update(revoked_at=None))
membership("policy-moves-revocation", "revocation of", lambda world, policy: world.member(policy, world.third).update(revoked_at=3))
membership("policy-backdates", "revoked at a wrong time", lambda world, policy: world.member(policy, world.second).update(revoked_at=1))
membership("policy-forgets-device", "vanished", lambda world, policy: policy["body"]["devices"].remove(world.member(policy, world.third)))
membership("policy-without-admin", "no active administrator",
           lambda world, policy: world.member(policy, world.owner)["roles"].update(administrator=False))
membership("policy-writer-cannot-read", "without reading",
           lambda world, policy: world.member(policy, world.second)["roles"].update(reader=False))
membership("policy-device-twice", "stands twice",
           lambda world, policy: policy["body"]["devices"].append(world.member(policy, world.second)))
membership("policy-other-keys", "has other keys",
           lambda world, policy: world.member(policy, world.second).update(
               wrapping_public_key=wire.encoded(world.stranger.wrapping_public)))
membership("policy-other-root", "has another root",
           lambda world, policy: world.member(policy, world.second).update(repository_root=wire.sha256(b"root")))
membership("policy-threshold-2", "field admin_threshold is not valid", lambda world, policy: policy["body"].update(admin_threshold=2))
membership("policy-format-4", "field format_version is not valid", lambda world, policy: policy["body"].update(format_version=4))
membership("policy-generation-skipped", "generation does not follow", lambda world, policy: policy["body"].update(generation=4))
membership("policy-previous-wrong", "previous is not the parent", lambda world, policy: policy["body"].update(previous=wire.sha256(b"")))
membership("policy-unsigned", "0 signatures", lambda world, policy: policy.update(signers=[]))
membership("policy-signed-twice", "2 signatures", lambda world, policy: policy.update(signers=[world.owner, world.owner]))
membership("policy-signed-by-writer", "is not an active administrator", lambda world, policy: policy.update(signers=[world.second]))


@story("policy-signed-by-new-admin", "is not an active administrator")
def _(world):
    def change(world, policy):
        world.member(policy, world.second)["roles"].update(administrator=True)
        policy.update(signers=[world.second])
    world.transition(change)


@story("genesis-of-another", "owner's keys do not make the root")
def _(world):
    world.forge.chain.clear()
    member = forge.member(world.second, administrator=True)
    world.forge.publish(world.second, policy=forge.policy(world.second, [member]))
    shutil.copy(os.path.join(world.place, "second.key.json"), os.path.join(world.place, "owner.key.json"))


# Envelopes.

defect("envelopes-unsorted", "not strictly sorted", envelopes=lambda items: items[::-1])
defect("envelopes-twice", "not strictly sorted", envelopes=lambda items: [items[0]] + items[:3])
defect("envelopes-3", "3 envelopes", envelopes=lambda items: items[:3])
defect("envelopes-5", "5 envelopes", envelope_count=lambda count: 5)
defect("reader-left-out", "audit must match", readers=lambda readers: [item for item in readers if item["device_id"] != SECOND_ID])
defect("revoked-reader", "is not an active reader", readers=lambda readers: readers + [THIRD])
defect("reader-twice", "audit must match", readers=lambda readers: readers + readers[:1])
defect("audit-short", "differ in length", content=lambda content: content["envelope_audit"].pop() and None)
defect("audit-reordered", "is not the seal", content=lambda content: content["envelope_audit"].reverse())
defect("audit-of-nobody", "audit must match", content=lambda content: content.update(envelope_audit=[{"kind": "dummy"}] * 4))


@story("audit-wrong-seed", "is not the seal")
def _(world):
    def change(content):
        for item in content["envelope_audit"]:
            if item["kind"] == "recipient":
                item["encapsulation_seed"] = wire.encoded(bytes(32))
    world.push(content=change)


@story("envelope-for-second-broken", "is not the seal")
def _(world):
    def change(items):
        return [(enc, flip(3)(sealed), audit) if audit.get("device_id") == world.second.id else (enc, sealed, audit)
                for enc, sealed, audit in items]
    world.push(envelopes=change)


@story("dummies-uniform", "not a reduced coordinate", True)
def _(world):
    top = bytes(31) + b"\xff"
    world.push(envelopes=lambda items: sorted(
        [(bytes([at]) + top[1:], sealed, audit) if audit["kind"] == "dummy" else (enc, sealed, audit)
         for at, (enc, sealed, audit) in enumerate(items)], key=lambda item: item[0]))


# Refs. Readers refuse to use a repository whose head has such names.

for number, bad in enumerate([
    "refs/notes/x", "HEAD", "refs/heads/", "refs/heads/../../config", "refs/heads/a..b", "refs/heads/a b", "refs/heads/a\nb",
    "refs/heads/.a", "refs/heads/a.lock", "refs/heads/a/", "refs/heads//a", "refs/heads/a~1", "refs/heads/a^", "refs/heads/a:b",
    "refs/heads/a?", "refs/heads/a*", "refs/heads/a[", "refs/heads/a\\b", "refs/heads/a@{0}", "refs/heads/a\x7f", "refs/heads/a.",
    "refs/remotes/origin/main", "/refs/heads/a", "refs\\heads\\a",
]):
    story(f"ref-name-{number:02}", "is not valid")(lambda world, bad=bad: world.push(refs={bad: world.first}))
for number, bad in enumerate(["", "0" * 40, "1" * 39, "1" * 41, "x" * 40, "ref: refs/heads/main", None, 7]):
    story(f"ref-value-{number:02}", "")(lambda world, bad=bad: world.push(refs={"refs/heads/bad": bad}))
story("refs-one-below-another", "lies below another")(
    lambda world: world.push(refs={"refs/heads/main/sub": world.first}))
story("refs-of-two-formats", "two object formats")(lambda world: world.push(refs={"refs/heads/long": "1" * 64}))

# Packs.

defect("pack-ordinals-gap", "ordinals are not dense", descriptors=lambda items: items[0].update(ordinal=1) and None)
defect("pack-of-other-generation", "names generation", descriptors=lambda items: items[0].update(generation=0) and None)
defect("pack-size-zero", "is empty", descriptors=lambda items: items[0].update(plaintext_size=0) and None)
defect("pack-size-low", "does not fit", descriptors=lambda items: items[0].update(plaintext_size=40) and None)
defect("pack-size-huge", "does not fit", descriptors=lambda items: items[0].update(plaintext_size=1 << 62) and None)
defect("pack-missing", "is missing", pack_id=lambda name: wire.sha256(b"nothing"))
defect("pack-stream-magic", "stream header", stream=lambda parts: [b"E2EEPK4\0" + parts[0][8:]] + parts[1:])
defect("pack-stream-segment-size", "stream header", stream=lambda parts: [parts[0][:8] + b"\0\0\0\1" + parts[0][12:]] + parts[1:])
defect("pack-stream-flipped", "authentication of segment", stream=lambda parts: [parts[0], flip(5)(parts[1])])
defect("pack-stream-truncated", "does not fit", stream=lambda parts: [parts[0], parts[1][:-1]])
defect("pack-stream-extended", "does not fit", stream=lambda parts: parts + [b"x"])
defect("pack-stream-empty", "does not fit", stream=lambda parts: parts[:1])
defect("pack-last-flag-missing", "authentication of segment", last_flag=lambda last: False)
story("pack-twice", "stands twice")(
    lambda world: world.push(more=world.head.refs, plains=[forge.git_pack(*forge.history("one")[0])],
                             pack_id=lambda name: world.forge.chain[-1].packs[0]["id"]))


@story("pack-segments-swapped", "authentication of segment")
def _(world):
    blob = keystream(bytes(32), bytes(12), 0, 2 * SEGMENT)
    world.push(plains=[forge.git_pack(*forge.history("two")[0], forge.git_entry("blob", blob))],
               stream=lambda parts: [parts[0], parts[2], parts[1], parts[3]])


TWO = forge.history("two")[0]
THIN = forge.entry_header(forge.REF_DELTA, 6) + bytes.fromhex(forge.object_id("blob", b"one")) + forge.zlib.compress(
    b"\x03\x03\x03abc"[:2] + b"\x03abc")
for name, reason, plain in [
    ("git-pack-thin", "index-pack", forge.git_pack(*TWO, THIN)),
    ("git-pack-count-high", "index-pack", forge.git_pack(*TWO, count=4)),
    ("git-pack-count-huge", "index-pack", forge.git_pack(*TWO, count=0xFFFFFFFF)),
    ("git-pack-incomplete-history", "", forge.git_pack(*TWO[1:])),
    ("git-pack-checksum", "checksum does not match", forge.git_pack(*TWO)[:-1] + b"x"),
    ("git-pack-trailing", "checksum does not match", forge.git_pack(*TWO) + b"x"),
    ("git-pack-magic", "not a Git pack", None),
    ("git-pack-short", "too short", b"PACK"),
    ("git-pack-size-lie", "index-pack", forge.git_pack(*TWO, forge.entry_header(3, 1 << 40) + forge.zlib.compress(b"x"))),
    ("git-pack-inflates-on", "index-pack", forge.git_pack(*TWO, forge.entry_header(3, 1) + forge.zlib.compress(bytes(64 << 20)))),
    ("git-pack-bad-zlib", "index-pack", forge.git_pack(*TWO, forge.entry_header(3, 4) + b"\xff" * 20)),
    ("git-pack-delta-huge", "index-pack", forge.git_pack(
        *TWO, forge.entry_header(forge.REF_DELTA, 12) + bytes.fromhex(forge.object_id("blob", b"two"))
        + forge.zlib.compress(b"\x03" + b"\xff" * 9 + b"\x01" + b"\x90"))),
]:
    if plain is None:
        plain = forge.git_pack(*TWO)
        plain = b"KCAP" + plain[4:-20]
        plain += forge.hashlib.sha1(plain).digest()
    story(name, reason)(lambda world, plain=plain: world.push(plains=[plain]))

# Files.


def on_disk(name, checker, reader=False):
    """A story that damages a sound store."""
    def register(damage):
        story(name, checker, reader)(lambda world: (world.push(), damage(world)))
        return damage
    return register


def path_of(world, kind, name):
    return os.path.join(world.folder, kind, name[:2], name)


def head_file(name, checker, content, reader=False):
    on_disk(name, checker, reader)(lambda world: world.forge.set_head(content(world.head.id)))


head_file("head-empty", "HEAD is not an id", lambda head: b"")
head_file("head-short", "HEAD is not an id", lambda head: head[1:].encode() + b"\n")
head_file("head-upper-case", "HEAD is not an id", lambda head: head.upper().encode() + b"\n")
head_file("head-symbolic", "HEAD is not an id", lambda head: b"ref: refs/heads/main\n")
head_file("head-huge", "HEAD is not an id", lambda head: head.encode() + b"\n" * 8192)
head_file("head-unknown", "is missing", lambda head: wire.sha256(b"nothing").encode() + b"\n")
head_file("head-without-newline", "HEAD is not an id", lambda head: head.encode(), True)
on_disk("head-missing", "HEAD is missing")(lambda world: os.unlink(os.path.join(world.folder, "HEAD")))
on_disk("manifest-missing", "is missing")(lambda world: os.unlink(path_of(world, "manifests", world.forge.chain[1].id)))
on_disk("pack-file-missing", "is missing")(lambda world: os.unlink(path_of(world, "objects", world.head.packs[0]["id"])))


@on_disk("manifest-replaced", "content has another id")
def _(world):
    shutil.copy(path_of(world, "manifests", world.forge.chain[2].id), path_of(world, "manifests", world.head.id))


@on_disk("pack-replaced", "content has another id")
def _(world):
    shutil.copy(path_of(world, "objects", world.forge.chain[3].packs[0]["id"]),
                path_of(world, "objects", world.head.packs[0]["id"]))


@on_disk("manifest-flipped", "content has another id")
def _(world):
    path = path_of(world, "manifests", world.head.id)
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(flip(len(data) // 2)(data))


@on_disk("manifest-link", "not a regular file")
def _(world):
    path = path_of(world, "manifests", world.head.id)
    os.rename(path, os.path.join(world.place, "elsewhere"))
    os.symlink(os.path.join("..", "..", "..", "elsewhere"), path)


@on_disk("fan-out-link", "not a folder")
def _(world):
    folder = os.path.dirname(path_of(world, "objects", world.head.packs[0]["id"]))
    os.rename(folder, os.path.join(world.place, "elsewhere"))
    os.symlink(os.path.join("..", "..", "elsewhere"), folder)


on_disk("leftovers", None, True)(lambda world: (
    os.makedirs(os.path.join(world.folder, ".staging")),
    open(os.path.join(world.folder, ".staging", ".stage-0123456789abcdef"), "wb").close(),
    open(os.path.join(world.folder, ".HEAD-0123456789abcdef"), "wb").close(),
    world.forge.write("objects", b"never mentioned"),
))
on_disk("stray-file", "unexpected name", True)(lambda world: open(os.path.join(world.folder, "README"), "wb").close())

# Ids that stories name before there is a world; every world has the same devices.
FIXED = forge.Forge(None)
OWNER = FIXED.device()
SECOND, THIRD_DEVICE = (FIXED.device(OWNER.root) for _ in range(2))
OWNER_ID, SECOND_ID, THIRD = OWNER.id, SECOND.id, forge.member(THIRD_DEVICE, revoked_at=2)


def tell_all(folder, names):
    """Makes the stores of these stories below a folder; yields name, place and story of each."""
    with tempfile.TemporaryDirectory() as start:
        beginning = World(start)
        for name in names:
            place = os.path.join(folder, name)
            STORIES[name][0](beginning.copy(place))
            yield name, place, STORIES[name]


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder, names = sys.argv[1], sys.argv[2:] or list(STORIES)
    for name, place, (_, checker, reader) in tell_all(folder, names):
        print(name, "sound" if checker is None else "odd" if reader else "wrong", checker or "", sep="\t")


if __name__ == "__main__":
    main()
