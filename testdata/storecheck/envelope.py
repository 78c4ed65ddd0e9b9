"""HKDF (RFC 5869) and the one HPKE suite of the format (RFC 9180 base mode), with its seeded randomness."""

import hashlib
import hmac
from struct import pack

from .chacha import aead_open, aead_seal, keystream
from .curve import x25519

KEM = b"KEM" + pack(">H", 0x0020)
SUITE = b"HPKE" + pack(">HHH", 0x0020, 0x0001, 0x0003)
INFO = b"git-remote-e2ee generation key v5"


def extract(salt, material):
    """HKDF-Extract with SHA-256."""
    return hmac.new(salt or bytes(32), material, hashlib.sha256).digest()


def expand(key, info, size):
    """HKDF-Expand with SHA-256."""
    out, block, count = b"", b"", 1
    while len(out) < size:
        block = hmac.new(key, block + info + bytes([count]), hashlib.sha256).digest()
        out, count = out + block, count + 1
    return out[:size]


def labeled_extract(suite, salt, label, material):
    """LabeledExtract of RFC 9180."""
    return extract(salt, b"HPKE-v1" + suite + label + material)


def labeled_expand(suite, key, label, info, size):
    """LabeledExpand of RFC 9180."""
    return expand(key, pack(">H", size) + b"HPKE-v1" + suite + label + info, size)


def schedule(shared_secret, enc, public):
    """Key and nonce of the only message of a context, from the Diffie-Hellman result."""
    prk = labeled_extract(KEM, b"", b"eae_prk", shared_secret)
    shared = labeled_expand(KEM, prk, b"shared_secret", enc + public, 32)
    context = b"\0" + labeled_extract(SUITE, b"", b"psk_id_hash", b"") + labeled_extract(SUITE, b"", b"info_hash", INFO)
    secret = labeled_extract(SUITE, shared, b"secret", b"")
    return labeled_expand(SUITE, secret, b"key", context, 32), labeled_expand(SUITE, secret, b"base_nonce", context, 12)


def seal(seed, public, aad, plaintext):
    """The encapsulated key and the ciphertext that `seed` determines."""
    material = keystream(seed, bytes(12), 0, 32)
    private = labeled_expand(KEM, labeled_extract(KEM, b"", b"dkp_prk", material), b"sk", b"", 32)
    enc = x25519(private)
    key, nonce = schedule(x25519(private, public), enc, public)
    return enc, aead_seal(key, nonce, aad, plaintext)


def open_envelope(private, enc, aad, ciphertext):
    """The plaintext, or None when the envelope is for another key."""
    shared = x25519(private, enc)
    if shared == bytes(32):
        return None
    key, nonce = schedule(shared, enc, x25519(private))
    return aead_open(key, nonce, aad, ciphertext)
