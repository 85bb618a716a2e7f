"""Keys of events: which events have been counted, so that one that comes again counts once, wherever it comes from.

A graph of events keeps a row of three numbers for each event that counted, ``data.event_keys``: 128 bits of the digest
of its key, and a number that depends on all that was read of the event. Two events of one key that say the same are one
event. Two that differ are a contradiction, which is refused.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from agnncert.certificates.ids import LONGEST_NEW_ID, is_odd
from agnncert.errors import DatasetError

Whole = npt.NDArray[np.int64]


def key_text(key: object) -> str:
    """Returns the key of an event as text: a text, or a whole number.

    Raises:
        DatasetError: It is neither, or odd.
    """
    is_key = isinstance(key, str | int) and not isinstance(key, bool)
    text = str(key) if is_key else ""
    if is_odd(text):
        raise DatasetError(
            f"the key of an event is {key!r:.60}: expected a whole number, or a text of at most {LONGEST_NEW_ID:,} "
            "characters that can be printed, without blanks around it."
        )
    return text


def key_digests(keys: Iterable[str]) -> Whole:
    """Returns two numbers for each key, shape ``[n, 2]``: the first 128 bits of its sha256."""
    digests = b"".join([hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:16] for key in keys])
    return np.frombuffer(digests, dtype=">i8").astype(np.int64).reshape(-1, 2)


def sorted_rows(rows: Whole) -> Whole:
    """Returns rows of ``event_keys`` in their order: by the first number, then by the second one."""
    return np.asarray(rows[np.lexsort((rows[:, 1], rows[:, 0]))])


class CountedEvents:
    """The events that a graph has counted, by their keys.

    Args:
        rows: ``data.event_keys``.
    """

    def __init__(self, rows: Whole) -> None:
        self._rows = sorted_rows(rows)
        self._more: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._rows) + len(self._more)

    def find(self, key: str) -> int | None:
        """Returns what was read of the event of a key, as a number; None if none has counted."""
        first, second = key_digests([key])[0].tolist()
        if (first, second) in self._more:
            return self._more[first, second]
        start = int(np.searchsorted(self._rows[:, 0], first))
        while start < len(self._rows) and self._rows[start, 0] == first:
            if self._rows[start, 1] == second:
                return int(self._rows[start, 2])
            start += 1
        return None

    def add(self, key: str, digest: int) -> None:
        """Notes an event that counts."""
        first, second = key_digests([key])[0].tolist()
        self._more[first, second] = digest

    def remove(self, key: str) -> None:
        """Forgets an event that was added last, and is undone."""
        first, second = key_digests([key])[0].tolist()
        del self._more[first, second]

    def rows(self) -> Whole:
        """Returns ``data.event_keys``."""
        more = np.array([[*key, digest] for key, digest in self._more.items()], dtype=np.int64).reshape(-1, 3)
        return sorted_rows(np.concatenate([self._rows, more]))
