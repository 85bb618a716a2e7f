"""``TreeTables``: decision trees whose scores are added up, as tables of whole numbers. It only holds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.record import Array, require_sense, wrong_form
from agnncert.errors import CertificateError

Whole = npt.NDArray[np.int64]
LARGEST_WORTH = 2**40
MOST_NODES = 2**22
_FORM = {
    "start": Array(np.int64, "trees+1", 0, MOST_NODES),
    "column": Array(np.int64, "nodes", -1, 2**31),
    "threshold": Array(np.int64, "nodes"),
    "left": Array(np.int64, "nodes", 0, MOST_NODES),
    "right": Array(np.int64, "nodes", 0, MOST_NODES),
    "worth": Array(np.int64, "nodes", -LARGEST_WORTH, LARGEST_WORTH),
}
ARRAYS = ("start", "column", "threshold", "left", "right", "worth")


@dataclass(frozen=True, eq=False)
class TreeTables:
    """Trees whose scores are added up. At an inner node, a value that is at most its threshold goes left.

    Attributes:
        start: Nodes of tree ``k`` are ``start[k]:start[k + 1]``, its root first, shape ``[trees + 1]``.
        column: Column that each node reads; -1 for a leaf.
        threshold: Threshold of each node, 0 for a leaf.
        left: Node for values up to the threshold, behind its parent; 0 for a leaf.
        right: Node for larger values, behind its parent; 0 for a leaf.
        worth: What a leaf adds to the score; 0 for other nodes.
    """

    start: Whole
    column: Whole
    threshold: Whole
    left: Whole
    right: Whole
    worth: Whole

    def __post_init__(self) -> None:
        require_sense("the trees", (self._wrong_arrays, self._wrong_nodes))

    def _wrong_arrays(self) -> str:
        arrays = {name: getattr(self, name) for name in ARRAYS}
        wrong = wrong_form(arrays, _FORM, {})
        if wrong:
            return wrong
        size = len(self.column)
        if len(self.start) == 0 or self.start[0] != 0 or self.start[-1] != size or (np.diff(self.start) < 1).any():
            return "trees do not follow each other"
        return ""

    def _wrong_nodes(self) -> str:
        """Returns what is wrong with the nodes; empty if every node but the roots is below exactly one other."""
        size = len(self.column)
        inner = np.flatnonzero(self.column >= 0)
        tree = np.searchsorted(self.start, np.arange(size), side="right")
        below = np.concatenate([self.left[inner], self.right[inner]])
        above = np.concatenate([inner, inner])
        if len(below) and (below.min() < 0 or below.max() >= size or (below <= above).any()):
            return "a node stands before its parent"
        if (tree[below] != tree[above]).any():
            return "a node is in another tree than its parent"
        roots = np.bincount(self.start[:-1], minlength=size)
        if (np.bincount(below, minlength=size) + roots != 1).any():
            return "a node is below none or several others"
        return ""

    @property
    def num_trees(self) -> int:
        """Number of trees."""
        return len(self.start) - 1

    def tensors(self, prefix: str) -> dict[str, Whole]:
        """Returns the tables by name, each name behind a prefix."""
        return {f"{prefix}{name}": getattr(self, name) for name in ARRAYS}

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], prefix: str) -> Self:
        """Returns the trees of :meth:`tensors`, which are not trusted.

        Raises:
            CertificateError: They are no trees.
        """
        missing = [name for name in ARRAYS if f"{prefix}{name}" not in tensors]
        if missing:
            raise CertificateError(f"the trees lack {', '.join(missing)}.")
        return cls(*(tensors[f"{prefix}{name}"] for name in ARRAYS))
