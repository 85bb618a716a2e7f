"""From node ids to keys to group numbers; knows no graph and no torch.

A node's *id* (an integer or a string) is its identity through every change of the graph. Its *key* is 64 bits
that depend on the id alone, and the *group* of a node or an edge depends on its own keys alone: never on how
many nodes there are, on their order, or on the machine. So no change of the graph moves an untouched edge to
another group.

The encoding is part of every certificate. Integers are written as 8 bytes, little-endian, and read back so:

- key of an id in the int64 range: its two's complement (``"7"`` and ``7`` are one id);
- key of any other id: first 8 bytes of ``md5("agn-text" + text in UTF-8)``;
- group of a node: first 8 bytes of ``hash("agn-node" + key)``, modulo the number of groups;
- group of an edge: first 8 bytes of ``hash("agn-edge" + smaller key + larger key)``, likewise.

Keys decide groups, not identity: two texts may share a key (then they share their groups, which is harmless),
so uniqueness is checked on the ids themselves.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from agnncert.digests import HASHES as HASHES
from agnncert.digests import first8
from agnncert.errors import DivisionError, IdError, did_you_mean

Ids = Sequence[int | str] | npt.NDArray[Any]
EncodedIds = npt.NDArray[np.int64] | list[int | str]
Keys = npt.NDArray[np.uint64]

_MAX_GROUPS = 2**31 - 1
_INT64 = range(-(2**63), 2**63)
_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LONGEST_INTEGER = 4096  # bits; Python itself refuses to write out much longer ones
_NODE_TAG, _EDGE_TAG = (
    np.frombuffer(tag, dtype="<u8").astype(np.uint64) for tag in (b"agn-node", b"agn-edge")
)
_CHUNK = 16384  # the dozen or so columns of a chunk stay in the processor's cache


def encode_ids(ids: Ids) -> EncodedIds:
    """Ids in canonical form: two ids are the same node if and only if their canonical forms are equal.

    Args:
        ids: Integers or strings, in a sequence or an array of one dimension.

    Returns:
        An int64 array if every id is an integer of that range, or the plain decimal text of one; else a list
        of such integers and, for all other ids, strings.

    Raises:
        IdError: An id is of another type (float, bool, None, bytes, …); the message tells which.

    Example:
        >>> encode_ids(["1", 2])
        array([1, 2])
        >>> encode_ids(["1", 2, "01", 2**63])
        [1, 2, '01', '9223372036854775808']
    """
    fast = _int64_array(ids)
    if fast is not None:
        return fast
    encoded = [_canonical(row, value) for row, value in enumerate(_one_per_node(ids))]
    if all(isinstance(value, int) for value in encoded):
        return np.array(encoded, dtype=np.int64)
    return encoded


def check_unique(ids: Ids) -> None:
    """Refuse ids that are not unique once encoded.

    Raises:
        IdError: Two rows carry the same id; the message names a few of them.
    """
    _refuse_duplicates(encode_ids(ids))


def id_keys(ids: Ids) -> Keys:
    """The 64-bit key of every id, after a check that ids are of the right type and unique.

    Example:
        >>> id_keys([7, -1, "alice"]).tolist()
        [7, 18446744073709551615, 2026525658427522583]
    """
    encoded = encode_ids(ids)
    _refuse_duplicates(encoded)
    if _is_array(encoded):
        return encoded.view(np.uint64)
    return np.fromiter(map(_key, encoded), dtype=np.uint64, count=len(encoded))


def node_groups(keys: Keys, num_groups: int, hash: str = "md5") -> npt.NDArray[np.int64]:
    """Group of every node, from its key alone.

    Args:
        keys: From ``id_keys``, shape ``[n]``.
        num_groups: Number of groups T.
        hash: One of ``HASHES``.

    Returns:
        Numbers from 0 to ``num_groups - 1``, shape ``[n]``.

    Example:
        >>> node_groups(id_keys([0, 1, 2, "alice"]), num_groups=300)
        array([ 28,  93, 176, 177])
    """
    check_settings(num_groups, hash)
    _check_keys(keys)
    return _groups(lambda rows: [_NODE_TAG, keys[rows]], len(keys), num_groups, hash)


def edge_groups(keys_u: Keys, keys_v: Keys, num_groups: int, hash: str = "md5") -> npt.NDArray[np.int64]:
    """Group of every edge, from the unordered pair of its endpoints' keys alone.

    Args:
        keys_u: Key of one endpoint of each edge, shape ``[m]``.
        keys_v: Key of the other, shape ``[m]``; swapping the two changes nothing.
        num_groups: Number of groups T.
        hash: One of ``HASHES``.

    Returns:
        Numbers from 0 to ``num_groups - 1``, shape ``[m]``.

    Example:
        >>> keys = id_keys([0, 1, 2, "alice"])
        >>> edge_groups(keys[[0, 1, 2]], keys[[1, 0, 3]], num_groups=300)
        array([110, 110, 250])
    """
    check_settings(num_groups, hash)
    _check_keys(keys_u)
    _check_keys(keys_v)
    if len(keys_u) != len(keys_v):
        raise IdError(
            f"an edge has two endpoints, but keys_u has length {len(keys_u)} and keys_v {len(keys_v)}."
        )

    def pair(rows: slice) -> list[Keys]:
        u, v = keys_u[rows], keys_v[rows]
        return [_EDGE_TAG, np.minimum(u, v), np.maximum(u, v)]

    return _groups(pair, len(keys_u), num_groups, hash)


def check_settings(num_groups: int, hash: str) -> None:
    """Refuse a number of groups or a hash that no division can have.

    Raises:
        DivisionError: ``num_groups`` is not a whole number from 1 on, or ``hash`` is not one of ``HASHES``.
    """
    whole = isinstance(num_groups, (int, np.integer)) and not isinstance(num_groups, bool)
    if not whole or not 1 <= num_groups <= _MAX_GROUPS:
        raise DivisionError(f"num_groups={num_groups!r}: expected a whole number from 1 to {_MAX_GROUPS}.")
    if hash not in HASHES:
        raise DivisionError(f"unknown hash {hash!r}: {did_you_mean(str(hash), HASHES)}")


def _groups(
    message: Callable[[slice], list[Keys]], count: int, num_groups: int, hash: str
) -> npt.NDArray[np.int64]:
    groups = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        rows = slice(start, start + _CHUNK)
        groups[rows] = first8(hash, message(rows)) % np.uint64(num_groups)
    return groups


def _check_keys(keys: Keys) -> None:
    if not (isinstance(keys, np.ndarray) and keys.dtype == np.uint64 and keys.ndim == 1):
        raise IdError(
            "groups are computed from keys, a uint64 array of one dimension: call id_keys(ids) first."
        )


def _is_array(encoded: EncodedIds) -> TypeGuard[npt.NDArray[np.int64]]:
    return isinstance(encoded, np.ndarray)


def _int64_array(ids: Ids) -> npt.NDArray[np.int64] | None:
    """The common case, without a loop in Python: everything is an integer of the int64 range."""
    if isinstance(ids, np.ndarray):
        fits = ids.ndim == 1 and ids.dtype.kind in "iu" and (ids.size == 0 or int(ids.max()) in _INT64)
        return np.array(ids, dtype=np.int64) if fits else None
    if isinstance(ids, (list, tuple, range)) and all(type(value) is int for value in ids):
        try:
            return np.fromiter(ids, dtype=np.int64, count=len(ids))
        except OverflowError:
            return None
    return None


def _one_per_node(ids: Ids) -> Iterable[Any]:
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise IdError(f"node ids must have one dimension, one entry per node; found shape {ids.shape}.")
        return cast(list[Any], ids.tolist())
    if isinstance(ids, (str, bytes, Set, Mapping)) or not isinstance(ids, Iterable):
        kind = type(ids).__name__
        raise IdError(f"node ids must be a list or an array, one entry per node in order; found a {kind}.")
    return ids


def _canonical(row: int, value: Any) -> int | str:
    if isinstance(value, str):
        is_int = _DECIMAL.fullmatch(value) and int(value) in _INT64
        return int(value) if is_int else _encodable(row, str(value))
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
        if number in _INT64:
            return number
        if number.bit_length() <= _LONGEST_INTEGER:
            return str(number)
        raise IdError(
            f"the node id in row {row} has {number.bit_length()} bits: give a shorter one, or a string."
        )
    shown = f"{value!r:.60} ({type(value).__name__})"
    raise IdError(
        f"the node id in row {row} is {shown}; ids must be integers or strings, because only those "
        "read the same on every machine. Convert them, and give every node one."
    )


def _encodable(row: int, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise IdError(
            f"the node id in row {row}, {text!r:.60}, is not valid Unicode: {error.reason}."
        ) from None
    return text


def _key(value: int | str) -> int:
    if isinstance(value, int):
        return value % 2**64
    digest = hashlib.md5(b"agn-text" + value.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")


def _refuse_duplicates(encoded: EncodedIds) -> None:
    if _is_array(encoded):
        ordered = np.sort(encoded)
        distinct = not np.any(ordered[1:] == ordered[:-1])
    else:
        distinct = len(set(encoded)) == len(encoded)
    if not distinct:
        raise IdError(_duplicates_message(encoded))


def _duplicates_message(encoded: EncodedIds) -> str:
    rows: dict[int | str, list[int]] = {}
    for row, value in enumerate(encoded.tolist() if _is_array(encoded) else encoded):
        rows.setdefault(value, []).append(row)
    repeated = {value: where for value, where in rows.items() if len(where) > 1}
    named = [
        f"id {value!r} appears at rows {where[0]} and {where[1]}"
        for value, where in list(repeated.items())[:3]
    ]
    more = f", and {len(repeated) - 3} more ids are repeated" if len(repeated) > 3 else ""
    return (
        f"node ids are not unique: {'; '.join(named)}{more}. An id is a node's identity, so give every node "
        "its own (1 and '1' are the same id)."
    )
