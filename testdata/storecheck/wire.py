"""Bytes and texts of the format: JSON as it is written, domains, associated data, subkeys, key files."""

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from struct import pack

from . import Refused, curve, envelope, require

HEX_ID = re.compile(r"[0-9a-f]{64}")
MAX_U64 = (1 << 64) - 1
DOMAIN = b"git-remote-e2ee "


def sha256(data):
    """Hex SHA-256."""
    return hashlib.sha256(data).hexdigest()


def lp(data):
    """Length-prefixed bytes."""
    return pack("<I", len(data)) + data


def dumps(value):
    """Compact JSON, as every wire object is written."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    require(len(set(names)) == len(names), "a JSON object has a duplicate field")
    return dict(pairs)


def parse(data, what):
    """Any JSON value of UTF-8 text without duplicate fields."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{what}: not JSON: {error}") from None


def written(data, fields, what):
    """A wire object: exactly `fields` in this order, and the text is its own compact serialisation."""
    value = parse(data, what)
    shaped(value, fields, what)
    require(dumps(value) == data, f"{what}: not written as compact JSON")
    return value


def shaped(value, fields, what):
    """Requires an object with exactly `fields` in this order, each passing its check."""
    require(isinstance(value, dict), f"{what}: not an object")
    require(list(value) == list(fields), f"{what}: fields are {list(value)}, expected {list(fields)}")
    for name, check in fields.items():
        require(check(value[name]), f"{what}: field {name} is not valid")


def hex_id(value):
    return isinstance(value, str) and HEX_ID.fullmatch(value) is not None


def u64(value):
    return type(value) is int and 0 <= value <= MAX_U64


def listed(value):
    return isinstance(value, list)


def keyed(value):
    return isinstance(value, dict)


def truth(value):
    return isinstance(value, bool)


def exactly(expected):
    return lambda value: type(value) is type(expected) and value == expected


def optional(check):
    return lambda value: value is None or check(value)


def decoded(value):
    """The bytes of strict standard base64, or None."""
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None
    return data if encoded(data) == value else None


def encoded(data):
    """Standard base64 text."""
    return base64.b64encode(data).decode("ascii")


def sized(size):
    """Checks for base64 of exactly `size` bytes."""
    return lambda value: isinstance(value, str) and (data := decoded(value)) is not None and len(data) == size


def blob(value):
    """Checks for base64 of any bytes."""
    return isinstance(value, str) and decoded(value) is not None


MANIFEST = {"header": blob, "sealed_header_ciphertext": blob, "body_ciphertext": blob}
HEADER = {
    "format_version": exactly(5), "repository_root": hex_id, "generation": u64, "previous": optional(hex_id),
    "key_commitment": hex_id, "generation_key_envelopes": listed, "body_digest": hex_id,
    "sealed_header_digest": hex_id,
}
ENVELOPE = {"encapsulated_key": sized(32), "ciphertext": sized(48)}
SEALED = {"content": blob, "signature": sized(64)}
CONTENT = {
    "policy_id": hex_id, "policy_generation": u64, "signer_device_id": hex_id,
    "authorization": lambda value: value in ("writer", "policy_transition"),
    "total_pack_count": u64, "envelope_audit": listed,
}
RECIPIENT = {"kind": exactly("recipient"), "device_id": hex_id, "encapsulation_seed": sized(32)}
DUMMY = {"kind": exactly("dummy")}
BODY = {
    "refs": keyed, "new_packs": listed, "predecessor_key_wrap": optional(blob), "introduced_policy": optional(blob),
}
PACK = {"id": hex_id, "plaintext_size": u64, "generation": u64, "ordinal": u64}
POLICY = {"body": blob, "signatures": listed}
POLICY_SIGNATURE = {"device_id": hex_id, "signature": sized(64)}
POLICY_BODY = {
    "format_version": exactly(5), "repository_root": hex_id, "generation": u64, "previous": optional(hex_id),
    "admin_threshold": exactly(1), "devices": listed,
}
ROLES = {"reader": truth, "writer": truth, "administrator": truth}
DEVICE = {
    "repository_root": hex_id, "device_id": hex_id, "signing_public_key": sized(32),
    "wrapping_public_key": sized(32), "roles": keyed, "revoked_at": optional(u64),
}
KEY_FILE = {
    "format_version": exactly(3), "repository_root": hex_id, "signing_private_key": sized(32),
    "wrapping_private_key": sized(32),
}


def device_id(signing, wrapping):
    return sha256(DOMAIN + b"device id v3\0" + signing + wrapping)


def repository_root(signing, wrapping):
    return sha256(DOMAIN + b"repository root v2\0" + signing + wrapping)


def commitment(key):
    return sha256(DOMAIN + b"generation key commitment v5\0" + key)


BODY_KIND, PACK_KIND, LINK_KIND, HEADER_KIND = 1, 2, 3, 4


def subkey(key, root, generation, kind, ordinal=0):
    """The key of one sealed thing of a generation."""
    prk = envelope.extract(DOMAIN + b"subkey derivation v5\0", key)
    return envelope.expand(prk, bytes.fromhex(root) + pack("<QBQ", generation, kind, ordinal), 32)


def envelope_aad(root, generation, committed, device):
    return (
        DOMAIN + b"generation envelope v5\0" + lp(root.encode()) + pack("<IQ", 5, generation)
        + lp(committed.encode()) + lp(device.encode())
    )


def body_aad(root, generation):
    return DOMAIN + b"manifest body v5\0" + lp(root.encode()) + pack("<Q", generation)


def link_aad(root, generation, parent):
    return DOMAIN + b"predecessor link v5\0" + lp(root.encode()) + pack("<Q", generation) + lp(parent.encode())


def pack_aad(root, generation, ordinal):
    return DOMAIN + b"pack v5\0" + lp(root.encode()) + pack("<QQ", generation, ordinal)


def signed_manifest(header, content, body_digest):
    exact = lp(header) + lp(content) + lp(body_digest.encode())
    return DOMAIN + b"manifest v5\0" + hashlib.sha256(exact).digest()


def signed_policy(body):
    return DOMAIN + b"policy v5\0" + hashlib.sha256(body).digest()


@dataclass
class Device:
    """A private key file."""

    root: str
    signing: bytes
    wrapping: bytes

    def __post_init__(self):
        self.signing_public = curve.signing_public(self.signing)
        self.wrapping_public = curve.x25519(self.wrapping)
        self.id = device_id(self.signing_public, self.wrapping_public)


def read_key(data):
    """The device of a key file, which is indented JSON."""
    value = parse(data, "key file")
    shaped(value, KEY_FILE, "key file")
    require(json.dumps(value, indent=2).encode() == data, "key file: not written as indented JSON")
    return Device(
        value["repository_root"], decoded(value["signing_private_key"]), decoded(value["wrapping_private_key"])
    )
