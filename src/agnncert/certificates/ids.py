"""Brings node ids, which are integers or texts of any length, into one canonical form.

Identity is decided here, on the ids themselves: never on a 64-bit key, which two ids may share, never on an array of
numpy text, which loses trailing NULs, and never on floats, which stand for many integers at once. This module knows no
graph and no torch.

The canonical form of an id is an integer if the id is one, or the plain decimal text of one: ``"7"`` is the id ``7``,
but ``"07"``, ``"+7"`` and ``"7 "`` are ids of their own. The canonical form of any other id is its text. So two ids are
one node if and only if their canonical forms are equal, and if and only if these are equal as text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agnncert.errors import IdError

Id = int | str
Ids = Sequence[Id] | npt.NDArray[Any]
EncodedIds = npt.NDArray[np.int64] | list[Id]

INT64 = range(-(2**63), 2**63)
LONGEST_ID = 100_000  # characters
LONGEST_NEW_ID = 1_000  # characters, of what events name
_LONGEST_INTEGER = 4096  # bits; Python itself refuses to write out much longer ones
_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,1233}")  # longer ones have more bits than that


def encode_ids(ids: Ids) -> EncodedIds:
    """Returns ids in canonical form: two ids are the same node if and only if their canonical forms are equal.

    Args:
        ids: Integers or strings, in a sequence or an array of one dimension.

    Returns:
        An int64 array if every id is an integer of that range, or the plain decimal text of one. Otherwise it is a
        list of integers and, for all other ids, strings.

    Raises:
        IdError: An id is of another type (float, bool, None, bytes, …). The message tells which.

    Example:
        >>> encode_ids(["1", 2])
        array([1, 2])
        >>> encode_ids(["1", 2, "01", str(2**63)])
        [1, 2, '01', 9223372036854775808]
    """
    integers = _int64_array(ids)
    if integers is not None:
        return integers
    encoded = [_canonical(row, value) for row, value in enumerate(_one_per_node(ids))]
    if all(isinstance(value, int) and value in INT64 for value in encoded):
        return np.array(encoded, dtype=np.int64)
    return encoded


def encode_id(value: Any) -> Id:
    """Returns one id in canonical form.

    Example:
        >>> encode_id("7"), encode_id("07")
        (7, '07')
    """
    return _canonical(0, value)


def is_odd(text: str) -> bool:
    """Returns whether no event may name a text: it is empty, endless, not printable, or has blanks around it.

    Example:
        >>> is_odd("ann b"), is_odd(" ann"), is_odd("")
        (False, True, True)
    """
    return not text or len(text) > LONGEST_NEW_ID or text != text.strip() or not text.isprintable()


def id_array(ids: Ids) -> npt.NDArray[Any]:
    """Returns ids in canonical form as an array that loses nothing: of int64 if that holds all, else of objects.

    Raises:
        IdError: As in :func:`encode_ids`.

    Example:
        >>> id_array([2**63, "a"])
        array([9223372036854775808, 'a'], dtype=object)
    """
    encoded = encode_ids(ids)
    return encoded if isinstance(encoded, np.ndarray) else np.array(encoded, dtype=object)


def order_of(value: Id) -> tuple[bool, Id]:
    """Returns a key by which ids in canonical form can be sorted: integers first."""
    return isinstance(value, str), value


def _int64_array(ids: Ids) -> npt.NDArray[np.int64] | None:
    """Returns ids that are all integers of the int64 range, else None. This common case needs no loop in Python."""
    if isinstance(ids, np.ndarray):
        is_row_of_integers = ids.ndim == 1 and ids.dtype.kind in "iu"
        if is_row_of_integers and (ids.size == 0 or int(ids.max()) in INT64):
            return np.array(ids, dtype=np.int64)
        return None
    if isinstance(ids, (list, tuple, range)) and all(type(value) is int for value in ids):
        try:
            return np.fromiter(ids, dtype=np.int64, count=len(ids))
        except OverflowError:
            return None
    return None


def _one_per_node(ids: Ids) -> Iterable[Any]:
    """Returns ids in order, one for each node; raises IdError for what has no order or is one text."""
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise IdError(f"node ids must have one dimension, one entry per node; found shape {ids.shape}.")
        return cast(list[Any], ids.tolist())
    if isinstance(ids, (str, bytes, Set, Mapping)) or not isinstance(ids, Iterable):
        kind = type(ids).__name__
        raise IdError(f"node ids must be a list or an array, one entry per node in order; found a {kind}.")
    return ids


def _canonical(row: int, value: Any) -> Id:
    """Returns the id of a row in canonical form."""
    if isinstance(value, str):
        return _canonical_text(row, value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
        if number.bit_length() <= _LONGEST_INTEGER:
            return number
        raise IdError(f"the node id in row {row} has {number.bit_length()} bits: give a shorter one, or a string.")
    shown = f"{value!r:.60} ({type(value).__name__})"
    raise IdError(
        f"the node id in row {row} is {shown}; ids must be integers or strings, because only those "
        "read the same on every machine. Convert them, and give every node one."
    )


def _canonical_text(row: int, value: str) -> Id:
    text = str.__str__(value)  # what it holds, also where a subclass of str prints something else
    if len(text) > LONGEST_ID:
        raise IdError(f"the node id in row {row} has {len(text):,} characters: an id has at most {LONGEST_ID:,}.")
    if text[-1:].isdigit() and _DECIMAL.fullmatch(text):
        number = int(text)
        if number.bit_length() <= _LONGEST_INTEGER:
            return number
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise IdError(f"the node id in row {row}, {text!r:.60}, is not valid Unicode: {error.reason}.") from None
    return text
