"""``Trees``: a forest in whole numbers, so that its scores are exact on every machine.

Trees are grown by scikit-learn; what is kept are whole thresholds and shares of classes in steps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.votes import IntArray

SHARES = 1000  # steps of the share of a class


@dataclass(frozen=True)
class Trees:
    """Trees side by side. A number that is at most the threshold goes to the left.

    Attributes:
        root: Row of the root of each tree, shape ``[T]``.
        column: The column that each row looks at, -1 for a leaf, shape ``[N]``.
        threshold: Shape ``[N]``.
        left: The row that follows at the left, shape ``[N]``.
        right: The row that follows at the right, shape ``[N]``.
        share: The share of each class at each leaf, in steps, shape ``[N, C]``.
    """

    root: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    share: npt.NDArray[np.int16]

    @classmethod
    def of(cls, forest: Any, classes: IntArray, num_classes: int) -> "Trees":
        """Takes the trees of a fitted forest of scikit-learn.

        Args:
            forest: The forest.
            classes: The class of each of its outputs.
            num_classes: Number of all classes, also of those that it has not seen.
        """
        parts: list[dict[str, npt.NDArray[Any]]] = []
        begin = 0
        for tree in (each.tree_ for each in forest.estimators_):
            is_leaf = tree.children_left < 0
            share = np.zeros((tree.node_count, num_classes), dtype=np.int16)
            value = tree.value[:, 0]
            share[:, classes] = np.round(SHARES * value / value.sum(axis=1, keepdims=True))
            share[~is_leaf] = 0
            parts.append(
                {
                    "root": np.array([begin], dtype=np.int32),
                    "column": np.where(is_leaf, -1, tree.feature).astype(np.int32),
                    "threshold": np.where(is_leaf, 0, np.floor(tree.threshold)).astype(np.int32),
                    "left": np.where(is_leaf, -1, tree.children_left + begin).astype(np.int32),
                    "right": np.where(is_leaf, -1, tree.children_right + begin).astype(np.int32),
                    "share": share,
                }
            )
            begin += tree.node_count
        return cls(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})

    def shares(self, seen: IntArray) -> IntArray:
        """Returns the mean share of each class in whole steps, shape ``[n, C]``."""
        total = np.zeros((len(seen), self.share.shape[1]), dtype=np.int64)
        rows = np.arange(len(seen))
        for root in self.root.tolist():
            total += self.share[self._leaves(root, seen, rows)]
        return total // max(len(self.root), 1)

    def _leaves(self, root: int, seen: IntArray, rows: IntArray) -> IntArray:
        """Returns the leaf of one tree in which each row ends, shape ``[n]``."""
        at = np.full(len(seen), root, dtype=np.int64)
        going = rows
        while len(going):
            here = at[going]
            column = self.column[here]
            going, here, column = going[column >= 0], here[column >= 0], column[column >= 0]
            goes_left = seen[going, column] <= self.threshold[here]
            at[going] = np.where(goes_left, self.left[here], self.right[here])
        return at
