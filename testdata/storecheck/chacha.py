"""ChaCha20, Poly1305 and the sealing forms made of them.

Many ChaCha blocks are computed at once inside Python's big integers: each state word is one integer with a 64-bit
lane for each block, of which the low half is used. That makes megabytes bearable without compiled code.
"""

import hmac
from array import array
from functools import lru_cache
from struct import pack, unpack

from . import require

CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
BATCH = 1024


@lru_cache(maxsize=64)
def lanes(count):
    """The integer with a one in each of `count` lanes, which copies a word into every lane when multiplied."""
    return int.from_bytes(pack("<Q", 1) * count, "little")


def rounds(state, mask):
    """The twenty rounds over a list of sixteen words, in place, without the final addition."""
    for _ in range(10):
        for a, b, c, d in (
            (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
        ):
            xa, xb, xc, xd = state[a], state[b], state[c], state[d]
            xa = (xa + xb) & mask
            xd ^= xa
            xd = ((xd << 16) | (xd >> 16)) & mask
            xc = (xc + xd) & mask
            xb ^= xc
            xb = ((xb << 12) | (xb >> 20)) & mask
            xa = (xa + xb) & mask
            xd ^= xa
            xd = ((xd << 8) | (xd >> 24)) & mask
            xc = (xc + xd) & mask
            xb ^= xc
            xb = ((xb << 7) | (xb >> 25)) & mask
            state[a], state[b], state[c], state[d] = xa, xb, xc, xd


def keystream(key, nonce, counter, size):
    """`size` bytes of ChaCha20 with a 12-byte nonce, from block `counter` on."""
    out = bytearray()
    while len(out) < size:
        blocks = min(BATCH, (size - len(out) + 63) // 64)
        ones = lanes(blocks)
        mask = ones * 0xFFFFFFFF
        start = [word * ones for word in CONSTANTS + unpack("<8I", key)]
        start.append(int.from_bytes(array("Q", range(counter, counter + blocks)).tobytes(), "little"))
        start += [word * ones for word in unpack("<3I", nonce)]
        state = list(start)
        rounds(state, mask)
        words = array("I", bytes(64 * blocks))
        for at in range(16):
            word = ((state[at] + start[at]) & mask).to_bytes(8 * blocks, "little")
            words[at::16] = array("I", word)[::2]
        out += words.tobytes()
        counter += blocks
    return bytes(out[:size])


def hchacha(key, nonce16):
    """HChaCha20: the subkey that makes a long nonce possible."""
    state = list(CONSTANTS + unpack("<8I", key) + unpack("<4I", nonce16))
    rounds(state, 0xFFFFFFFF)
    return pack("<8I", *(state[0:4] + state[12:16]))


def poly1305(key, message):
    """The tag of a message whose length is a multiple of 16, as the AEAD construction pads it."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    prime, top, total = (1 << 130) - 5, 1 << 128, 0
    read = int.from_bytes
    for at in range(0, len(message), 16):
        total = (total + read(message[at:at + 16], "little") + top) * r % prime
    return ((total + read(key[16:], "little")) & (top - 1)).to_bytes(16, "little")


def tag(key, nonce, aad, ciphertext):
    """The AEAD tag of RFC 8439."""
    one_time = keystream(key, nonce, 0, 32)
    padded = lambda data: data + bytes(-len(data) % 16)
    return poly1305(one_time, padded(aad) + padded(ciphertext) + pack("<QQ", len(aad), len(ciphertext)))


def xor(data, key, nonce):
    """Data enciphered or deciphered from block 1 on."""
    stream = keystream(key, nonce, 1, len(data))
    mixed = int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")
    return mixed.to_bytes(len(data), "little")


def aead_seal(key, nonce, aad, plaintext):
    """ChaCha20-Poly1305 with a 12-byte nonce."""
    ciphertext = xor(plaintext, key, nonce)
    return ciphertext + tag(key, nonce, aad, ciphertext)


def aead_open(key, nonce, aad, sealed):
    """The plaintext, or None when the tag does not match."""
    if len(sealed) < 16:
        return None
    ciphertext, theirs = sealed[:-16], sealed[-16:]
    if not hmac.compare_digest(theirs, tag(key, nonce, aad, ciphertext)):
        return None
    return xor(ciphertext, key, nonce)


def long_nonce(key, nonce24):
    """Key and nonce of the short construction that serve a 24-byte nonce."""
    return hchacha(key, nonce24[:16]), bytes(4) + nonce24[16:]


SMALL = b"E2EES05\0"


def small_open(key, aad, sealed, what):
    """The plaintext of the small sealed form: magic, nonce, ciphertext and tag."""
    require(len(sealed) >= 48, f"{what}: sealed form is shorter than 48 bytes")
    require(sealed[:8] == SMALL, f"{what}: sealed form has another magic")
    subkey, nonce = long_nonce(key, sealed[8:32])
    plain = aead_open(subkey, nonce, aad, sealed[32:])
    require(plain is not None, f"{what}: authentication failed")
    return plain


def small_seal(key, aad, plaintext, nonce24):
    """The small sealed form of a plaintext."""
    subkey, nonce = long_nonce(key, nonce24)
    return SMALL + nonce24 + aead_seal(subkey, nonce, aad, plaintext)
