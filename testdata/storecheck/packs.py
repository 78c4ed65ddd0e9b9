"""Pack streams: opened, and given to Git as the judge of what is inside."""

import hashlib
import os
import subprocess
from struct import pack, unpack

from . import chacha, require, wire

MAGIC = b"E2EEPK5\0"
SEGMENT = 1 << 20
EMPTY_PACK_SIZES = {"sha1": 32, "sha256": 44}


def segment_aad(root, descriptor, header):
    base = wire.pack_aad(root, descriptor["generation"], descriptor["ordinal"])
    return wire.DOMAIN + b"pack stream v5\0" + wire.lp(base) + wire.lp(header)


def open_stream(path, entry, descriptor, sink):
    """Authenticates one stored pack and writes its plaintext to `sink`."""
    what = f"{entry.what} pack {descriptor['ordinal']}"
    root, size = entry.header["repository_root"], descriptor["plaintext_size"]
    segments = -(-size // SEGMENT)
    stored = os.stat(path).st_size
    require(stored == 31 + size + 16 * segments, f"{what}: stored size {stored} does not fit plaintext size {size}")
    key = wire.subkey(entry.key, root, entry.generation, wire.PACK_KIND, descriptor["ordinal"])
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        header = file.read(31)
        digest.update(header)
        require(header[:12] == MAGIC + pack("<I", SEGMENT), f"{what}: stream header is not valid")
        aad = segment_aad(root, descriptor, header)
        for counter in range(segments):
            sealed = file.read(SEGMENT + 16)
            digest.update(sealed)
            nonce = header[12:31] + pack(">IB", counter, counter == segments - 1)
            subkey, short = chacha.long_nonce(key, nonce)
            plain = chacha.aead_open(subkey, short, aad, sealed)
            require(plain is not None, f"{what}: authentication of segment {counter} failed")
            sink.write(plain)
    require(digest.hexdigest() == descriptor["id"], f"{what}: stored bytes have another id")


def check_plain(path, what, object_format):
    """Requires Git's pack header and trailing checksum; returns the number of objects."""
    size = os.stat(path).st_size
    require(size >= EMPTY_PACK_SIZES[object_format], f"{what}: too short for a Git pack")
    trailer = hashlib.new(object_format).digest_size
    digest = hashlib.new(object_format)
    with open(path, "rb") as file:
        start = file.read(12)
        digest.update(start)
        left = size - 12 - trailer
        while left:
            block = file.read(min(left, 1 << 20))
            digest.update(block)
            left -= len(block)
        require(digest.digest() == file.read(), f"{what}: Git's pack checksum does not match")
    magic, version, count = unpack(">4sII", start)
    require(magic == b"PACK" and version == 2, f"{what}: not a Git pack of version 2")
    return count


class Judge:
    """A bare repository into which Git imports the packs."""

    def __init__(self, folder, object_format):
        self.folder = os.path.join(folder, "judge.git")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
        self.git("init", "-q", "--bare", "--object-format", object_format, self.folder, where=folder)

    def git(self, *arguments, where=None, what="git", **options):
        done = subprocess.run(("git",) + arguments, cwd=where or self.folder, env=self.environment,
                              capture_output=True, **options)
        require(done.returncode == 0, f"{what}: git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode()

    def import_pack(self, path, what):
        """Imports as an ordinary reader does, without completing a thin pack."""
        with open(path, "rb") as file:
            self.git("index-pack", "--stdin", "--strict", what=what, stdin=file)

    def connected(self, entry):
        """Requires that every ref of a generation is complete; returns the number of objects behind them."""
        values = sorted(set(entry.body["refs"].values()))
        for name, value in entry.body["refs"].items():
            if name.startswith("refs/heads/"):
                kind = self.git("cat-file", "-t", value, what=f"{entry.what} ref {name}").strip()
                require(kind == "commit", f"{entry.what}: branch {name} is a {kind}")
        if not values:
            return 0
        text = "".join(f"{value}\n" for value in values).encode()
        listed = self.git("rev-list", "--objects", "--no-object-names", "--stdin", what=entry.what, input=text)
        return len(set(listed.split()))
