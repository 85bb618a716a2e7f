"""Arrays that grow: many short rows of numbers in one array, and columns with room for more entries."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_FIRST_ROOM = 4


class Rows:
    """Many short rows of int32 in one array. A row that outgrows its room moves to the end, into twice the room.

    The order within a row means nothing. Memory stays within a constant factor of what the rows hold: when more than
    half of the array is room that nobody uses, all rows are packed anew.
    """

    def __init__(self, lengths: Array, values: Array) -> None:
        self.length = lengths.astype(np.int32)
        self._room = self.length.copy()
        self._start = np.cumsum(lengths, dtype=np.int64) - lengths
        self._pool = values.astype(np.int32)
        self._top = len(values)  # from here on the array is free
        self._unused = 0  # entries below the top that belong to no row any more

    def __getitem__(self, row: int) -> Array:
        """Returns the numbers in one row, as a view that is valid until the next change."""
        start = self._start[row]
        return self._pool[start : start + self.length[row]]

    def gather(self, rows: Array) -> tuple[Array, Array]:
        """Returns the numbers in some rows, one row after the other, and how many each row has."""
        lengths = self.length[rows].astype(np.int64)
        before = np.cumsum(lengths) - lengths
        place = np.repeat(self._start[rows] - before, lengths) + np.arange(int(lengths.sum()))
        return self._pool[place], lengths

    def grow(self, count: int) -> None:
        """Makes room for ``count`` rows. New rows are empty."""
        more = count - len(self.length)
        if more > 0:
            for name in ("length", "_room", "_start"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros(more, dtype=array.dtype)]))

    def append(self, row: int, value: int) -> None:
        """Puts a number into a row."""
        length = int(self.length[row])
        if length == self._room[row]:
            self._move(row, max(_FIRST_ROOM, 2 * length))
        self._pool[self._start[row] + length] = value
        self.length[row] = length + 1

    def remove(self, row: int, value: int) -> None:
        """Takes a number, which must be there, out of a row."""
        start = int(self._start[row])
        last = int(self.length[row]) - 1
        inside = self._pool[start : start + last + 1]
        inside[int((inside == value).argmax())] = inside[last]
        self.length[row] = last

    def _move(self, row: int, room: int) -> None:
        if self._top + room > len(self._pool):
            if 2 * self._unused > self._top:
                self._pack()
            longer = np.empty(max(16, self._top + room + self._top // 4), dtype=np.int32)
            longer[: self._top] = self._pool[: self._top]
            self._pool = longer
        start = int(self._start[row])
        length = int(self.length[row])
        self._pool[self._top : self._top + length] = self._pool[start : start + length]
        self._unused += int(self._room[row])
        self._start[row] = self._top
        self._room[row] = room
        self._top += room

    def _pack(self) -> None:
        everything = np.arange(len(self.length))
        values, lengths = self.gather(everything)
        self._pool = values
        self._room = self.length.copy()
        self._start = np.cumsum(lengths) - lengths
        self._top = len(values)
        self._unused = 0


def grown(array: Array, count: int) -> Array:
    """Returns the array with room for at least ``count`` rows and a quarter more, with zeros in new ones."""
    if len(array) >= count:
        return array
    longer = np.zeros((count + count // 4 + 8, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
