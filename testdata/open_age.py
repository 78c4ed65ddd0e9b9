#!/usr/bin/env python3
"""Opens an armored age file of one chunk for a passphrase, and prints what is in it.

usage: PASSPHRASE=... open_age.py FILE

Written from the description of the format alone (C2SP, age.md), with the checker's own ChaCha20-Poly1305.
"""

import base64
import hashlib
import hmac
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from storecheck import require  # noqa: E402
from storecheck.chacha import aead_open  # noqa: E402
from storecheck.envelope import expand, extract  # noqa: E402


def unpadded(text):
    """Bytes of base64 without padding."""
    return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)


def opened(armored, passphrase):
    """The content."""
    lines = armored.decode("ascii").split("\n")
    require(lines[0] == "-----BEGIN AGE ENCRYPTED FILE-----", "first line")
    require(lines[-2:] == ["-----END AGE ENCRYPTED FILE-----", ""], "last line")
    require(all(len(line) == 64 for line in lines[1:-3]) and 0 < len(lines[-3]) <= 64, "columns")
    data = base64.b64decode("".join(lines[1:-2]), validate=True)
    version, stanza, body, rest = data.split(b"\n", 3)
    end, payload = rest.split(b"\n", 1)
    require(version == b"age-encryption.org/v1", "version")
    arrow, kind, salt, work = stanza.split(b" ")
    require((arrow, kind) == (b"->", b"scrypt"), "stanza")
    cost = 1 << int(work)
    label = b"age-encryption.org/v1/scrypt" + unpadded(salt)
    wrapping = hashlib.scrypt(passphrase, salt=label, n=cost, r=8, p=1, maxmem=2048 * cost + (1 << 20), dklen=32)
    file_key = aead_open(wrapping, bytes(12), b"", unpadded(body))
    require(file_key is not None and len(file_key) == 16, "passphrase")
    signed = b"\n".join([version, stanza, body, b"---"])
    key = expand(extract(b"", file_key), b"header", 32)
    require(end == b"--- " + base64.b64encode(hmac.digest(key, signed, "sha256")).rstrip(b"="), "authentication")
    key = expand(extract(payload[:16], file_key), b"payload", 32)
    content = aead_open(key, bytes(11) + b"\x01", b"", payload[16:])
    require(content is not None, "payload")
    return content


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        sys.stdout.buffer.write(opened(file.read(), os.environ["PASSPHRASE"].encode()))
