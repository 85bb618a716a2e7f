"""Rows of numbers that grow and shrink in place: what compressed sparse rows are for a graph that stands still."""

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]

_FIRST_ROOM = 4


class Rows:
    """Many short rows of int32 in one array. A row that outgrows its room moves to the end, into twice the room.

    The order within a row means nothing. Memory stays within a constant factor of what the rows hold: when more than
    half of the array is room that nobody uses, all rows are packed anew.
    """

    def __init__(self, lengths: Ints, values: Ints) -> None:
        self.length = lengths.astype(np.int32)
        self._room = self.length.copy()
        self._start = np.cumsum(lengths, dtype=np.int64) - lengths
        self._pool = values.astype(np.int32)
        self._top = len(values)  # from here on the array is free
        self._unused = 0  # entries below the top that belong to no row any more

    def __getitem__(self, row: int) -> Ints:
        """The numbers in one row; a view, valid until the next change."""
        start = self._start[row]
        return self._pool[start : start + self.length[row]]

    def gather(self, rows: Ints) -> tuple[Ints, Ints]:
        """The numbers in some rows, one row after the other, and how many each has."""
        lengths = self.length[rows].astype(np.int64)
        before = np.cumsum(lengths) - lengths
        place = np.repeat(self._start[rows] - before, lengths) + np.arange(int(lengths.sum()))
        return self._pool[place], lengths

    def grow(self, count: int) -> None:
        """Makes room for rows up to ``count``; new ones are empty."""
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
        start, last = int(self._start[row]), int(self.length[row]) - 1
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
        start, length = int(self._start[row]), int(self.length[row])
        self._pool[self._top : self._top + length] = self._pool[start : start + length]
        self._unused += int(self._room[row])
        self._start[row], self._room[row] = self._top, room
        self._top += room

    def _pack(self) -> None:
        everything = np.arange(len(self.length))
        values, lengths = self.gather(everything)
        self._pool, self._room = values, self.length.copy()
        self._start = np.cumsum(lengths) - lengths
        self._top, self._unused = len(values), 0
