"""The files of a directory store."""

import hashlib
import os
import re
import stat

from . import require, wire

FAN_OUT = re.compile(r"[0-9a-f]{2}")
STAGED = re.compile(r"\.stage-[0-9a-f]{16}")
HEAD_TEMPORARY = re.compile(r"\.HEAD-[0-9a-f]{16}")
MANIFEST_LIMIT = 16 << 20


class Store:
    """A store whose layout is right and whose files have the content that their names say."""

    def __init__(self, root):
        self.root = root
        self.leftovers = []
        self.kinds = {"manifests": set(), "objects": set()}
        require(os.path.isdir(root), f"{root}: no such folder")
        for name in sorted(os.listdir(root)):
            self.admit(name)
        require(self.regular("HEAD"), "HEAD is missing: the store is not initialised")
        head = self.read("HEAD")
        require(re.fullmatch(rb"[0-9a-f]{64}\n", head), f"HEAD is not an id and a newline: {head[:80]!r}")
        self.head = head[:64].decode()

    def admit(self, name):
        if name in self.kinds:
            self.scan(name)
        elif name == ".staging":
            self.folder(name)
            for staged in sorted(os.listdir(self.path(name))):
                require(STAGED.fullmatch(staged), f".staging/{staged}: unexpected name")
                require(self.regular(f".staging/{staged}"), f".staging/{staged}: not a regular file")
                self.leftovers.append(f".staging/{staged}")
        elif HEAD_TEMPORARY.fullmatch(name):
            self.leftovers.append(name)
        else:
            require(name in ("HEAD", "HEAD.lock"), f"{name}: unexpected name")
            require(self.regular(name), f"{name}: not a regular file")
            require(name == "HEAD" or os.stat(self.path(name)).st_size == 0, "HEAD.lock is not empty")

    def scan(self, kind):
        self.folder(kind)
        for fan in sorted(os.listdir(self.path(kind))):
            require(FAN_OUT.fullmatch(fan), f"{kind}/{fan}: unexpected name")
            self.folder(f"{kind}/{fan}")
            for name in sorted(os.listdir(self.path(f"{kind}/{fan}"))):
                where = f"{kind}/{fan}/{name}"
                require(wire.hex_id(name) and name[:2] == fan, f"{where}: unexpected name")
                require(self.regular(where), f"{where}: not a regular file")
                require(self.hash(where) == name, f"{where}: content has another id")
                self.kinds[kind].add(name)

    def path(self, relative):
        return os.path.join(self.root, relative)

    def mode(self, relative):
        try:
            return os.lstat(self.path(relative)).st_mode
        except FileNotFoundError:
            return 0

    def regular(self, relative):
        return stat.S_ISREG(self.mode(relative))

    def folder(self, relative):
        require(stat.S_ISDIR(self.mode(relative)), f"{relative}: not a folder")

    def read(self, relative):
        with open(self.path(relative), "rb") as file:
            return file.read()

    def hash(self, relative):
        with open(self.path(relative), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def manifest(self, name):
        """The bytes of a manifest."""
        where = f"manifests/{name[:2]}/{name}"
        require(name in self.kinds["manifests"], f"manifest {name} is missing")
        require(os.stat(self.path(where)).st_size <= MANIFEST_LIMIT, f"manifest {name} is larger than 16 MiB")
        return self.read(where)

    def pack(self, name):
        """The path of a pack stream."""
        require(name in self.kinds["objects"], f"pack {name} is missing")
        return self.path(f"objects/{name[:2]}/{name}")
