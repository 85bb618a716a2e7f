"""From node ids to keys to group numbers. This module knows no graph and no torch.

A node's *id* (an integer or a string) is its identity through every change of the graph. Its *key* is 64 bits that
depend on the id alone, and the *group* of a node or an edge depends on its own keys alone: never on how many nodes
there are, on their order, or on the machine. So no change of the graph moves an untouched edge to another group.

The encoding is part of every certificate. Integers are written, and read back, as 8 bytes, little-endian:

- key of an id in the int64 range: its two's complement (``"7"`` and ``7`` are one id);
- key of any other id: first 8 bytes of ``md5("agn-text" + text in UTF-8)``;
- group of a node: first 8 bytes of ``hash("agn-node" + key)``, modulo the number of groups;
- group of an edge: first 8 bytes of ``hash("agn-edge" + smaller key + larger key)``, likewise;
- place of a node, graph or pair in a drawn split: first 8 bytes of ``md5("agn-part" + seed + keys)``, as a share of 1.

Keys decide groups, not identity: two ids may share a key, and anybody can make such a pair. Then they share their
groups, which is harmless: what is proved counts the groups that a change can reach, and they are two nodes that reach
the same ones. Who is who is decided on the ids themselves (``certificates/ids``).

MD5, the default, is written out here on numpy arrays: calling ``hashlib`` once per edge takes about half a microsecond,
and the same arithmetic on arrays is several times faster. Other hashes, and a few messages, go through ``hashlib``. The
code follows RFC 1321 step by step, for messages that fit into one block and the first 8 bytes of each digest, except
that a word is an array: that word of all messages. A word that is the same in all of them has length 1 and broadcasts.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from agnncert.certificates.ids import INT64, EncodedIds, Id, Ids, encode_ids
from agnncert.errors import DivisionError, IdError, did_you_mean

Words32 = npt.NDArray[np.uint32]
Words64 = npt.NDArray[np.uint64]

HASHES = ("md5", "sha1", "sha256", "blake2b")
MANY = 512  # messages, from which on arithmetic on arrays is faster


def first8(name: str, message: Sequence[Words64]) -> Words64:
    """Returns the first 8 bytes of the digest of every message, read as a little-endian integer.

    The result equals ``int.from_bytes(hashlib.new(name, m).digest()[:8], "little")`` for each message ``m``. Working
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
    if name == "md5" and max(map(len, message)) >= MANY:
        return _md5(message)
    digest = getattr(hashlib, name)
    rows = np.stack(np.broadcast_arrays(*message), axis=1).astype("<u8")
    messages = rows.view(f"V{8 * len(message)}").ravel().tolist()
    digests = b"".join([digest(text, usedforsecurity=False).digest()[:8] for text in messages])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


@cache
def _u32(value: int) -> Words32:
    return np.array([value & 0xFFFFFFFF], dtype=np.uint32)


_MD5_START = [_u32(word) for word in (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)]
_MD5_SINES = [_u32(int(2**32 * abs(math.sin(step + 1)))) for step in range(64)]
_MD5_SHIFTS = [(7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21)]
_MD5_ORDER = [(1, 0), (5, 1), (3, 5), (7, 0)]  # in each round, step i reads word (factor · i + offset) mod 16


def _md5(message: Sequence[Words64]) -> Words64:
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    words = [part.astype(np.uint32) for column in message for part in (column & mask, column >> half)]
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
        total = a + mixed + words[(factor * step + offset) % 16] + _MD5_SINES[step]
        shift = _MD5_SHIFTS[turn][step % 4]
        a, b, c, d = d, b + (total << _u32(shift) | total >> _u32(32 - shift)), b, c
    low, high = (a + _MD5_START[0]).astype(np.uint64), (b + _MD5_START[1]).astype(np.uint64)
    return low | high << half


Keys = npt.NDArray[np.uint64]

_MAX_GROUPS = 2**31 - 1
_NODE_TAG, _EDGE_TAG, _PART_TAG = (
    np.frombuffer(tag, dtype="<u8").astype(np.uint64) for tag in (b"agn-node", b"agn-edge", b"agn-part")
)
_CHUNK = 16384  # the dozen or so columns of a chunk stay in the processor's cache


def id_keys(ids: Ids) -> Keys:
    """Returns the 64-bit key of every id, after a check that ids are of the right type and unique.

    Example:
        >>> id_keys([7, -1, "alice"]).tolist()
        [7, 18446744073709551615, 2026525658427522583]
    """
    encoded = encode_ids(ids)
    refuse_duplicates(encoded)
    return keys_of_encoded(encoded)


def keys_of_encoded(encoded: EncodedIds) -> Keys:
    """Returns the key of every id in canonical form; nothing is checked."""
    if isinstance(encoded, np.ndarray):
        return encoded.view(np.uint64)
    return np.fromiter(map(_key, encoded), dtype=np.uint64, count=len(encoded))


def node_groups(keys: Keys, num_groups: int, hash: str = "md5") -> npt.NDArray[np.int64]:
    """Returns the group of every node, from its key alone: numbers from 0 to ``num_groups - 1``, shape ``[n]``.

    Args:
        keys: From ``id_keys``, shape ``[n]``.
        num_groups: Number of groups T.
        hash: One of ``HASHES``.

    Example:
        >>> node_groups(id_keys([0, 1, 2, "alice"]), num_groups=300)
        array([ 28,  93, 176, 177])
    """
    check_settings(num_groups, hash)
    _check_keys(keys)
    return _groups(lambda rows: [_NODE_TAG, keys[rows]], len(keys), num_groups, hash)


def edge_groups(keys_u: Keys, keys_v: Keys, num_groups: int, hash: str = "md5") -> npt.NDArray[np.int64]:
    """Returns the group of every edge, from the unordered pair of its endpoints' keys alone.

    Groups are numbers from 0 to ``num_groups - 1``, shape ``[m]``.

    Args:
        keys_u: Key of one endpoint of each edge, shape ``[m]``.
        keys_v: Key of the other, shape ``[m]``; swapping the two changes nothing.
        num_groups: Number of groups T.
        hash: One of ``HASHES``.

    Example:
        >>> keys = id_keys([0, 1, 2, "alice"])
        >>> edge_groups(keys[[0, 1, 2]], keys[[1, 0, 3]], num_groups=300)
        array([110, 110, 250])
    """
    check_settings(num_groups, hash)
    _check_keys(keys_u)
    _check_keys(keys_v)
    if len(keys_u) != len(keys_v):
        raise IdError(f"an edge has two endpoints, but keys_u has length {len(keys_u)} and keys_v {len(keys_v)}.")

    def pair(rows: slice) -> list[Keys]:
        u, v = keys_u[rows], keys_v[rows]
        return [_EDGE_TAG, np.minimum(u, v), np.maximum(u, v)]

    return _groups(pair, len(keys_u), num_groups, hash)


def places(keys: Sequence[Keys], seed: int) -> npt.NDArray[np.float64]:
    """Returns a number from 0 to below 1 for every entry, from its own keys and the seed, shape ``[n]``.

    Args:
        keys: One column of keys for nodes or graphs, two for pairs of nodes, each of shape ``[n]``.
        seed: A whole number from 0 on.

    Example:
        >>> places([id_keys([0, 1, "alice"])], seed=0).round(3)
        array([0.385, 0.435, 0.817])
    """
    for column in keys:
        _check_keys(column)
    numbers = np.empty(len(keys[0]), dtype=np.uint64)
    of_seed = np.array([seed % 2**64], dtype=np.uint64)
    for start in range(0, len(numbers), _CHUNK):
        rows = slice(start, start + _CHUNK)
        numbers[rows] = first8("md5", [_PART_TAG, of_seed, *(column[rows] for column in keys)])
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


def check_settings(num_groups: int, hash: str) -> None:
    """Raises DivisionError if ``num_groups`` is not a whole number from 1 on, or ``hash`` is not one of ``HASHES``."""
    whole = isinstance(num_groups, (int, np.integer)) and not isinstance(num_groups, bool)
    if not whole or not 1 <= num_groups <= _MAX_GROUPS:
        raise DivisionError(f"num_groups={num_groups!r}: expected a whole number from 1 to {_MAX_GROUPS}.")
    if hash not in HASHES:
        raise DivisionError(f"unknown hash {hash!r}: {did_you_mean(str(hash), HASHES)}")


def _groups(message: Callable[[slice], list[Keys]], count: int, num_groups: int, hash: str) -> npt.NDArray[np.int64]:
    groups = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        rows = slice(start, start + _CHUNK)
        groups[rows] = first8(hash, message(rows)) % np.uint64(num_groups)
    return groups


def _check_keys(keys: Keys) -> None:
    if not (isinstance(keys, np.ndarray) and keys.dtype == np.uint64 and keys.ndim == 1):
        raise IdError("groups are computed from keys, a uint64 array of one dimension: call id_keys(ids) first.")


def _key(value: Id) -> int:
    if isinstance(value, int) and value in INT64:
        return value % 2**64
    digest = hashlib.md5(b"agn-text" + str(value).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")


def refuse_duplicates(encoded: EncodedIds) -> None:
    """Raises IdError, which names a few, if an id in canonical form occurs twice."""
    if _are_distinct(encoded):
        return
    rows: dict[Id, list[int]] = {}
    for row, value in enumerate(encoded.tolist() if isinstance(encoded, np.ndarray) else encoded):
        rows.setdefault(value, []).append(row)
    repeated = [(value, where) for value, where in rows.items() if len(where) > 1]
    named = [f"id {value!r} appears at rows {where[0]} and {where[1]}" for value, where in repeated[:3]]
    more = f", and {len(repeated) - 3} more ids are repeated" if len(repeated) > 3 else ""
    raise IdError(
        f"ids are not unique: {'; '.join(named)}{more}. An id is the identity of a node, or of a training graph, so "
        "give each its own (1 and '1' are the same id)."
    )


def _are_distinct(encoded: EncodedIds) -> bool:
    if isinstance(encoded, np.ndarray):
        ordered = np.sort(encoded)  # np.unique takes 25 times as long on two million ids
        return not np.any(ordered[1:] == ordered[:-1])
    return len(set(encoded)) == len(encoded)


def id_digest(encoded: EncodedIds) -> str:
    """Returns the sha256 of ids in canonical form, in their order: two lists share it only if they are equal.

    Before the ids stands what they are and how many. Integers of the int64 range are 8 bytes each, little-endian. If
    not all ids are such, each of them is the length of its text, likewise, and its text in UTF-8.
    """
    if isinstance(encoded, np.ndarray):
        return _sha256("int64", len(encoded), encoded.astype("<i8").tobytes())
    texts = [str(value).encode() for value in encoded]
    return _sha256("text", len(texts), b"".join([len(text).to_bytes(8, "little") + text for text in texts]))


def row_digest(count: int) -> str:
    """Returns the digest of nodes that have no ids but row numbers.

    It is not ``id_digest`` of the ids 0, 1, 2, …, because ids stay when other nodes are deleted.
    """
    return _sha256("row", count, b"")


def _sha256(kind: str, count: int, content: bytes) -> str:
    return hashlib.sha256(f"agnncert-ids:{kind}:{count};".encode() + content).hexdigest()
