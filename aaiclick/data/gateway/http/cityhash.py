"""CityHash128 of version 1.0.2, the checksum of ClickHouse's compressed blocks. Later versions give other values."""

from __future__ import annotations

from struct import Struct, unpack_from

_ALL = (1 << 64) - 1
_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_MULTIPLIER = 0x9DDFEA08EB382D69
_EIGHT = Struct("<8Q")

Two = tuple[int, int]
"""128 bits: the lower 64, the upper 64."""


def checksum(data: bytes) -> bytes:
    """Return the hash of data in the form in which it precedes a block."""
    size = len(data)
    if size >= 16:
        low, high = _hash(data, 16, (_word(data, 0) ^ _K3, _word(data, 8)))
    elif size >= 8:
        low, high = _hash(data, size, (_word(data, 0) ^ (size * _K0 & _ALL), _word(data, size - 8) ^ _K1))
    else:
        low, high = _hash(data, 0, (_K0, _K1))
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def _hash(data: bytes, at: int, seed: Two) -> Two:
    if len(data) - at < 128:
        return _hash_short(data, at, seed)
    x, y, z, v, w, at = _fold(data, at, seed)
    left = len(data) - at
    y = (y + _turn(w[0], 37) * _K0 + z) & _ALL
    x = (x + _turn((v[0] + z) & _ALL, 49) * _K0) & _ALL
    for end in range(len(data), len(data) - left, -32):
        y = (_turn((y - x) & _ALL, 42) * _K0 + v[1]) & _ALL
        w = ((w[0] + _word(data, end - 16)) & _ALL, w[1])
        x = (_turn(x, 49) * _K0 + w[0]) & _ALL
        w = ((w[0] + v[0]) & _ALL, w[1])
        v = _mix_four(unpack_from("<4Q", data, end - 32), v)
    x, y = _join(x, v[0]), _join(y, w[0])
    return (_join(x + v[1], w[1]) + y) & _ALL, _join(x + w[1], y + v[1])


def _fold(data: bytes, at: int, seed: Two) -> tuple[int, int, int, Two, Two, int]:
    """Hash all but the last bytes, 128 at a time; nearly all of the time is spent here."""
    x, y, z = seed[0], seed[1], (len(data) - at) * _K1 & _ALL
    v0 = (_turn(y ^ _K1, 49) * _K1 + _word(data, at)) & _ALL
    v1 = (_turn(v0, 42) * _K1 + _word(data, at + 8)) & _ALL
    w0 = (_turn((y + z) & _ALL, 35) * _K1 + x) & _ALL
    w1 = _turn((x + _word(data, at + 88)) & _ALL, 53) * _K1 & _ALL
    until = at + (len(data) - at) // 128 * 128
    for s0, s1, s2, s3, s4, s5, s6, s7 in _EIGHT.iter_unpack(memoryview(data)[at:until]):
        x = (x + y + v0 + s2) & _ALL
        x = (((x >> 37) | (x << 27)) & _ALL) * _K1 & _ALL ^ w1
        y = (y + v1 + s6) & _ALL
        y = (((y >> 42) | (y << 22)) & _ALL) * _K1 & _ALL ^ v0
        z ^= w0
        z = ((z >> 33) | (z << 31)) & _ALL
        a, b = v1 * _K1 + s0, x + w0
        c = (b + a + s3) & _ALL
        d = (a + s1 + s2) & _ALL
        v0, v1 = (d + s3) & _ALL, (((c >> 21) | (c << 43)) + ((d >> 44) | (d << 20)) + a) & _ALL
        a, b = z + w1 + s4, y
        c = (b + a + s7) & _ALL
        d = (a + s5 + s6) & _ALL
        w0, w1 = (d + s7) & _ALL, (((c >> 21) | (c << 43)) + ((d >> 44) | (d << 20)) + a) & _ALL
        z, x = x, z
    return x, y, z, (v0, v1), (w0, w1), until


def _hash_short(data: bytes, at: int, seed: Two) -> Two:
    a, b = seed
    size = len(data) - at
    if size <= 16:
        a = _shift(a * _K1 & _ALL) * _K1 & _ALL
        c = (b * _K1 + _hash_few(data, at)) & _ALL
        d = _shift((a + (_word(data, at) if size >= 8 else c)) & _ALL)
    else:
        c = _join(_word(data, len(data) - 8) + _K1, a)
        d = _join(b + size, c + _word(data, len(data) - 16))
        a = (a + d) & _ALL
        for place in range(at, len(data) - 16, 16):
            a = (a ^ (_shift(_word(data, place) * _K1 & _ALL) * _K1 & _ALL)) * _K1 & _ALL
            b ^= a
            c = (c ^ (_shift(_word(data, place + 8) * _K1 & _ALL) * _K1 & _ALL)) * _K1 & _ALL
            d ^= c
    a, b = _join(a, c), _join(d, b)
    return a ^ b, _join(b, a)


def _hash_few(data: bytes, at: int) -> int:
    """Hash up to 16 bytes."""
    size = len(data) - at
    if size > 8:
        last = _word(data, len(data) - 8)
        return _join(_word(data, at), _turn((last + size) & _ALL, size)) ^ last
    if size >= 4:
        first, last = unpack_from("<I", data, at)[0], unpack_from("<I", data, len(data) - 4)[0]
        return _join(size + (first << 3), last)
    if size:
        y, z = data[at] + (data[at + (size >> 1)] << 8), size + (data[-1] << 2)
        return _shift((y * _K2 ^ z * _K3) & _ALL) * _K2 & _ALL
    return _K2


def _mix_four(words: tuple[int, ...], seed: Two) -> Two:
    s0, s1, s2, s3 = words
    a, b = seed[0] + s0, seed[1]
    b = _turn((b + a + s3) & _ALL, 21)
    c = (a + s1 + s2) & _ALL
    return (c + s3) & _ALL, (b + _turn(c, 44) + a) & _ALL


def _join(u: int, v: int) -> int:
    """Hash two words into one."""
    a = _shift(((u ^ v) & _ALL) * _MULTIPLIER & _ALL)
    b = _shift(((v ^ a) & _ALL) * _MULTIPLIER & _ALL)
    return b * _MULTIPLIER & _ALL


def _turn(word: int, by: int) -> int:
    return ((word >> by) | (word << (64 - by))) & _ALL


def _shift(word: int) -> int:
    return word ^ (word >> 47)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")
