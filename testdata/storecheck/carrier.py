"""The branch of a carrier, read through Git."""

import hashlib
import os
import re
import subprocess
import tempfile

from . import require, wire
from .store import FAN_OUT, MANIFEST_LIMIT

BRANCH = "refs/heads/git-remote-e2ee"
PART = 32 << 20
MOST_PARTS = 4096
ATTRIBUTES = b"e2ee/** -delta\n"
PERSON = r"git-remote-e2ee <git-remote-e2ee@invalid> \d+ \+0000"
COMMIT = re.compile(
    rf"tree ([0-9a-f]+)\n(?:parent ([0-9a-f]+)\n)?author {PERSON}\ncommitter {PERSON}\n\n"
    r"git-remote-e2ee storage update\n"
)


class Carrier:
    """A carrier whose branch has the right layout, and whose parts have the content that their names say.

    `foreign` allows commits of other people, and files of theirs outside of the folder.
    """

    def __init__(self, root, foreign=False):
        self.root = root
        self.leftovers = []
        self.foreign = foreign
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
        self.room = tempfile.TemporaryDirectory()
        self.git("fsck", "--full", "--strict", "--no-progress")
        tip = self.git("rev-parse", "--verify", "--quiet", f"{BRANCH}^{{commit}}", missing="the branch is missing").strip()
        self.kinds, self.head = self.scan(tip.decode())
        self.history(tip.decode())

    def git(self, *arguments, missing=None):
        done = subprocess.run(("git", "-C", self.root) + arguments, env=self.environment, capture_output=True)
        reason = missing or f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}"
        require(done.returncode == 0, reason)
        return done.stdout

    def scan(self, commit):
        """Names of the things of each kind, with the blobs of their parts, and the head."""
        kinds, head = {"manifests": {}, "objects": {}}, None
        listed = self.git("ls-tree", "-r", "-t", "-z", "--format=%(objectmode) %(objecttype) %(objectname) %(path)", commit)
        for entry in listed.decode(errors="surrogateescape").split("\0")[:-1]:
            mode, kind, blob, path = entry.split(" ", 3)
            names = path.split("/")
            if path == ".gitattributes":
                require(mode == "100644" and self.blob(blob) == ATTRIBUTES, ".gitattributes has another content")
            elif names[0] != "e2ee":
                require(self.foreign, f"{path}: unexpected name")
            elif kind == "tree":
                require(len(names) < 5, f"{path}: unexpected folder")
                self.check_folder(names, path)
            else:
                require(mode == "100644", f"{path}: mode is {mode}")
                if path == "e2ee/HEAD":
                    head = self.blob(blob)
                    continue
                require(len(names) == 5, f"{path}: unexpected file")
                parts = kinds[names[1]].setdefault(names[3], [])
                require(names[4] == f"{len(parts):08}", f"{path}: parts are not dense")
                parts.append(blob)
                require(len(parts) <= MOST_PARTS, f"{path}: too many parts")
        require(head is not None, "e2ee/HEAD is missing: the store is not initialised")
        require(re.fullmatch(rb"[0-9a-f]{64}\n", head), f"e2ee/HEAD is not an id and a newline: {head[:80]!r}")
        for kind, things in kinds.items():
            for name, parts in things.items():
                self.check_parts(f"e2ee/{kind}/{name[:2]}/{name}", name, parts)
        return kinds, head[:64].decode()

    def check_folder(self, names, path):
        right = (
            len(names) == 1
            or names[1] in ("manifests", "objects")
            and (len(names) < 3 or FAN_OUT.fullmatch(names[2]))
            and (len(names) < 4 or wire.hex_id(names[3]) and names[3][:2] == names[2])
        )
        require(right, f"{path}: unexpected name")

    def check_parts(self, path, name, parts):
        digest = hashlib.sha256()
        for number, blob in enumerate(parts):
            data = self.blob(blob)
            last = number + 1 == len(parts)
            require(0 < len(data) <= PART and (last or len(data) == PART), f"{path}/{number:08}: {len(data)} bytes")
            digest.update(data)
        require(digest.hexdigest() == name, f"{path}: content has another id")

    def history(self, tip):
        """Every commit has one parent, the usual text, and only adds to the one before."""
        at, later = tip, None
        while at:
            text = self.git("cat-file", "commit", at).decode(errors="replace")
            ours = COMMIT.fullmatch(text)
            if not ours:
                require(self.foreign, f"commit {at}: not written as the format says")
                parents = re.findall(r"^parent ([0-9a-f]+)$", text.split("\n\n")[0], re.M)
                require(len(parents) < 2, f"commit {at} is a merge")
                at, later = (parents or [None])[0], None
                continue
            names = self.names(at)
            if later is not None:
                require(names <= later, f"commit {at} had {sorted(names - later)[:1]}, and the next one has not")
            at, later = ours[2], names

    def names(self, commit):
        listed = self.git("ls-tree", "-r", "-z", "--format=%(objectname) %(path)", commit).decode(errors="surrogateescape")
        lines = (entry.split(" ", 1) for entry in listed.split("\0")[:-1])
        return {(path, blob) for blob, path in lines if path != "e2ee/HEAD"}

    def blob(self, name):
        return self.git("cat-file", "blob", name)

    def manifest(self, name):
        """The bytes of a manifest."""
        require(name in self.kinds["manifests"], f"manifest {name} is missing")
        data = b"".join(self.blob(part) for part in self.kinds["manifests"][name])
        require(len(data) <= MANIFEST_LIMIT, f"manifest {name} is larger than 16 MiB")
        return data

    def pack(self, name):
        """The path of a copy of a pack stream."""
        require(name in self.kinds["objects"], f"pack {name} is missing")
        path = os.path.join(self.room.name, "stream")
        with open(path, "wb") as file:
            for part in self.kinds["objects"][name]:
                file.write(self.blob(part))
        return path
