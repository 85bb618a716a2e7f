"""Digests of very many short messages, in bounded memory.

Calling ``hashlib`` once per edge takes about half a microsecond. For MD5 (the default) and SHA-1 the same
arithmetic on numpy arrays is several times faster; for SHA-256 and BLAKE2b it is not, so these go through
``hashlib``. Only what group numbers need is here: messages that fit into one block, and the first 8 bytes of
each digest.

The code of MD5 and SHA-1 follows RFC 1321 and FIPS 180-4 step by step, except that a word is an array: that
word of all messages. A word that is the same in all of them has length 1 and broadcasts.
"""

import hashlib
import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

Words32 = npt.NDArray[np.uint32]
Words64 = npt.NDArray[np.uint64]

HASHES = ("md5", "sha1", "sha256", "blake2b")


def first8(name: str, message: Sequence[Words64]) -> Words64:
    """First 8 bytes of the digest of every message, read as a little-endian integer.

    Equal to ``int.from_bytes(hashlib.new(name, m).digest()[:8], "little")`` for each message ``m``. Working
    memory is up to 250 bytes per message, so long arrays are best handed over in chunks that fit the cache.

    Args:
        name: One of ``HASHES``.
        message: At most 6 columns; message ``i`` is entry ``i`` of every column, each written as 8 bytes,
            little-endian, one after the other. A column of length 1 is shared by all messages.

    Example:
        >>> columns = np.frombuffer(b"16 bytes long...", dtype="<u8").reshape(2, 1)
        >>> [hex(first8(name, columns)[0]) for name in ("md5", "sha1")]
        ['0xec53be7e5aaa4d29', '0xdfdfdb7d3cd16204']
    """
    if name == "md5":
        return _md5(message)
    if name == "sha1":
        return _sha1(message)
    return _one_by_one(name, message)


def _one_by_one(name: str, message: Sequence[Words64]) -> Words64:
    digest = getattr(hashlib, name)
    rows = np.stack(np.broadcast_arrays(*message), axis=1).astype("<u8")
    messages = rows.view(f"V{8 * len(message)}").ravel().tolist()
    digests = b"".join([digest(text).digest()[:8] for text in messages])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


@cache
def _u32(value: int) -> Words32:
    return np.array([value & 0xFFFFFFFF], dtype=np.uint32)


def _halves(message: Sequence[Words64]) -> list[Words32]:
    """The message in 32-bit little-endian words."""
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    return [half.astype(np.uint32) for column in message for half in (column & low, column >> high)]


def _joined(low: Words32, high: Words32) -> Words64:
    return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


def _rotate(word: Words32, count: int) -> Words32:
    """Rotate to the left."""
    return word << _u32(count) | word >> _u32(32 - count)


_MD5_START = [_u32(word) for word in (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)]
_MD5_SINES = [_u32(int(2**32 * abs(math.sin(step + 1)))) for step in range(64)]
_MD5_SHIFTS = [(7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21)]
_MD5_ORDER = [(1, 0), (5, 1), (3, 5), (7, 0)]  # in each round, step i reads word (factor · i + offset) mod 16


def _md5(message: Sequence[Words64]) -> Words64:
    words = _halves(message)
    words += [_u32(0x80), *[_u32(0)] * (13 - len(words)), _u32(32 * len(words)), _u32(0)]
    a, b, c, d = _MD5_START
    for step in range(64):
        turn = step // 16
        if turn == 0:
            mixed = d ^ (b & (c ^ d))
        elif turn == 1:
            mixed = c ^ (d & (b ^ c))
        elif turn == 2:
            mixed = b ^ c ^ d
        else:
            mixed = c ^ (b | ~d)
        factor, offset = _MD5_ORDER[turn]
        word = words[(factor * step + offset) % 16] + _MD5_SINES[step]
        a, b, c, d = d, b + _rotate(a + mixed + word, _MD5_SHIFTS[turn][step % 4]), b, c
    return _joined(a + _MD5_START[0], b + _MD5_START[1])


_SHA1_START = [*_MD5_START, _u32(0xC3D2E1F0)]
_SHA1_ROOTS = [_u32(math.isqrt(n << 60)) for n in (2, 3, 5, 10)]


def _sha1(message: Sequence[Words64]) -> Words64:
    words = [half.byteswap() for half in _halves(message)]  # SHA reads big-endian words
    words += [_u32(0x80000000), *[_u32(0)] * (14 - len(words)), _u32(32 * len(words))]
    a, b, c, d, e = _SHA1_START
    for step in range(80):
        turn = step // 20
        if turn == 0:
            mixed = d ^ (b & (c ^ d))
        elif turn == 2:
            mixed = (b & c) | (d & (b | c))
        else:
            mixed = b ^ c ^ d
        a, b, c, d, e = _rotate(a, 5) + mixed + e + (words[0] + _SHA1_ROOTS[turn]), a, _rotate(b, 30), c, d
        words = [*words[1:], _rotate(words[0] ^ words[2] ^ words[8] ^ words[13], 1)]
    return _joined((a + _SHA1_START[0]).byteswap(), (b + _SHA1_START[1]).byteswap())
