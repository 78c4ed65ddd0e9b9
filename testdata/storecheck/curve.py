"""X25519 (RFC 7748) and strict Ed25519 (RFC 8032), on plain integers.

Milliseconds each, so results are remembered: chains ask the same again, and tests read the same beginnings often.
"""

from functools import lru_cache
from hashlib import sha512

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


def clamp(data):
    """The scalar of 32 bytes with the fixed bits set as both curves want them."""
    return int.from_bytes(data, "little") & ((1 << 254) - 8) | (1 << 254)


@lru_cache(maxsize=1 << 14)
def x25519(scalar, point=(9).to_bytes(32, "little")):
    """The shared secret of a private key and a public one, or the public key of a private one."""
    k = clamp(scalar)
    x1 = (int.from_bytes(point, "little") & ((1 << 255) - 1)) % P
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for bit in range(254, -1, -1):
        now = (k >> bit) & 1
        if swap != now:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = now
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % P, b * b % P, d * a % P, c * b % P
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def add(p, q):
    """The sum of two points in extended coordinates."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar, point):
    """A multiple of a point."""
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point = add(point, point)
        scalar >>= 1
    return total


def decode(data):
    """The point that 32 bytes encode canonically, or None."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


def encode(point):
    """The 32 bytes of a point."""
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def small_order(point):
    """True for the eight points that let a signature fit more than one message."""
    x, y, z, _ = multiply(8, point)
    return x % P == 0 and (y - z) % P == 0


def expand(seed):
    """The secret scalar and the prefix of a signing seed."""
    digest = sha512(seed).digest()
    return clamp(digest[:32]), digest[32:]


def signing_public(seed):
    """The Ed25519 public key of a seed."""
    return encode(multiply(expand(seed)[0], BASE))


def challenge(r, public, message):
    """The scalar that binds nonce point, key and message."""
    return int.from_bytes(sha512(r + public + message).digest(), "little") % ORDER


def sign(seed, message):
    """The Ed25519 signature."""
    secret, prefix = expand(seed)
    nonce = int.from_bytes(sha512(prefix + message).digest(), "little") % ORDER
    r = encode(multiply(nonce, BASE))
    s = (nonce + challenge(r, signing_public(seed), message) * secret) % ORDER
    return r + s.to_bytes(32, "little")


@lru_cache(maxsize=1 << 14)
def verify(public, message, signature):
    """Strict verification: canonical encodings, reduced scalar, no point of small order."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, r = decode(public), decode(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= ORDER or small_order(key) or small_order(r):
        return False
    k = challenge(signature[:32], public, message)
    return encode(multiply(s, BASE)) == encode(add(r, multiply(k, key)))
