"""``Trees``: the scores of tree tables, and the test that scores are monotone."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from agnncert.append.tables import ARRAYS, TreeTables, Whole

UNIT = 2**20  # by which trained leaves are multiplied before they are rounded
_LOWEST, _HIGHEST = -(2**62), 2**62


class Trees(TreeTables):
    """Trees that are evaluated and tested; the tables are those of the base class."""

    def score(self, table: Whole) -> Whole:
        """Returns the score of each row of a table, shape ``[n]``."""
        total = np.zeros(len(table), dtype=np.int64)
        rows = np.arange(len(table))
        for root in self.start[:-1]:
            at = np.full(len(table), root)
            while True:
                column = self.column[at]
                inner = column >= 0
                if not inner.any():
                    break
                goes_left = table[rows, np.maximum(column, 0)] <= self.threshold[at]
                at = np.where(inner, np.where(goes_left, self.left[at], self.right[at]), at)
            total += self.worth[at]
        return total

    def least_score(self, low: Whole, high: Whole, rises: Sequence[bool]) -> Whole:
        """Returns a score that no row between two bounds falls below, shape ``[n]``.

        In columns where the trees can only rise the lower bound is enough. In others all values between the bounds
        are tried, tree by tree.

        Args:
            low: Lower bounds, shape ``[n, columns]``.
            high: Upper bounds.
            rises: In which columns the trees can only rise.
        """
        upper = np.where(np.asarray(rises, dtype=bool), low, high)
        total = np.zeros(len(low), dtype=np.int64)
        for first, last in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            least: dict[int, Whole | int] = {}
            for node in range(last - 1, first - 1, -1):
                column = int(self.column[node])
                if column < 0:
                    least[node] = int(self.worth[node])
                    continue
                limit = int(self.threshold[node])
                left, right = least.pop(int(self.left[node])), least.pop(int(self.right[node]))
                either = np.minimum(left, right)
                may_left = np.where(upper[:, column] <= limit, left, either)
                least[node] = np.where(low[:, column] > limit, right, may_left)
            total += least[first]
        return total

    def leaves(self, tree: int) -> "Leaves":
        """Returns the leaves of a tree with their boxes: a row is in a leaf where low < value ≤ high in each column."""
        first, last = int(self.start[tree]), int(self.start[tree + 1])
        width = int(self.column[first:last].max(initial=-1)) + 1
        boxes = {first: (np.full(width, _LOWEST), np.full(width, _HIGHEST))}
        found = []
        for node in range(first, last):
            low, high = boxes.pop(node)
            column = int(self.column[node])
            if column < 0:
                found.append((low, high, int(self.worth[node])))
                continue
            below, above = high.copy(), low.copy()
            below[column] = min(int(below[column]), int(self.threshold[node]))
            above[column] = max(int(above[column]), int(self.threshold[node]))
            boxes[int(self.left[node])] = (low, below)
            boxes[int(self.right[node])] = (above, high)
        lows, highs, worths = zip(*found, strict=True)
        return Leaves(np.stack(lows), np.stack(highs), np.array(worths, dtype=np.int64))

    def broken_pairs(self, rises: Sequence[bool]) -> int:
        """Returns how many pairs of leaves contradict that the score cannot fall where columns rise (the leaf test).

        Leaf A may be above leaf B only if no row in A lies below one in B: at most as large in every column that can
        rise, and equal in all others. For whole numbers this is decided exactly, pair by pair.

        Args:
            rises: For each column whether it can rise; if not, it is fixed.
        """
        may_rise = np.asarray(rises, dtype=bool)
        broken = 0
        for tree in range(self.num_trees):
            low, high, worth = self.leaves(tree)
            exists = (low < high).all(axis=1)
            low, high, worth = low[exists], high[exists], worth[exists]
            fixed = ~may_rise[: low.shape[1]]
            below = (low[:, None] < high[None]).all(axis=2)
            below &= (low[None, :, fixed] < high[:, None, fixed]).all(axis=2)
            broken += int((below & (worth[:, None] > worth[None])).sum())
        return broken

    @classmethod
    def joined(cls, ensembles: "Sequence[Trees]") -> Self:
        """Returns the trees of several ensembles as one."""
        sizes = np.cumsum([0, *(len(each.column) for each in ensembles)])
        shifted: dict[str, list[Whole]] = {name: [] for name in ARRAYS}
        shifted["start"].append(np.zeros(1, dtype=np.int64))
        for each, size in zip(ensembles, sizes.tolist(), strict=False):
            inner = each.column >= 0
            shifted["start"].append(each.start[1:] + size)
            for name in ("column", "threshold", "worth"):
                shifted[name].append(getattr(each, name))
            for name in ("left", "right"):
                shifted[name].append(np.where(inner, getattr(each, name) + size, 0))
        return cls(*(np.concatenate(shifted[name]) for name in ARRAYS))

    def above_zero(self) -> "Trees":
        """Returns trees whose leaves are worth at least 0: each tree less the worth of its least leaf."""
        worth = self.worth.copy()
        for first, last in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            is_leaf = self.column[first:last] < 0
            worth[first:last][is_leaf] -= worth[first:last][is_leaf].min()
        return Trees(self.start, self.column, self.threshold, self.left, self.right, worth)


class Leaves(NamedTuple):
    """Leaves of a tree: their boxes, shape ``[leaves, columns]``, and what they are worth, ``[leaves]``."""

    low: Whole
    high: Whole
    worth: Whole


NO_TREES = Trees(np.zeros(1, dtype=np.int64), *(np.zeros(0, dtype=np.int64) for _ in range(5)))
