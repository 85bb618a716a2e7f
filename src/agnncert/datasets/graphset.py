"""GraphSet: a list of graphs that knows its splits."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import DatasetError


class GraphSet(list[Data]):
    """A list of ``Data``, one per graph, with a split into training, validation and test graphs.

    Attributes:
        train, val, test: Positions of the graphs of each part, ascending, int64 tensors.
        y: Class of every graph, shape ``[num_graphs]``; ``-1`` where unknown.
        num_classes: Number of classes.
        class_names: What the classes are called, where known.
        name: Name of the dataset.

    Example:
        >>> pieces = [Data(x=torch.ones(2, 3), y=torch.tensor([k % 2])) for k in range(4)]
        >>> graphs = GraphSet(pieces, train=[0, 1], test=[3])
        >>> graphs
        GraphSet(graphs, 4 graphs, 3 features, 2 classes, train/val/test 2/0/1)
        >>> [int(g.y) for g in graphs.index_select(graphs.test)]
        [1]
    """

    def __init__(
        self,
        graphs: Iterable[Data],
        train: Sequence[int] | Tensor = (),
        val: Sequence[int] | Tensor = (),
        test: Sequence[int] | Tensor = (),
        num_classes: int | None = None,
        class_names: list[str] | None = None,
        name: str = "graphs",
    ) -> None:
        super().__init__(graphs)
        if not self:
            raise DatasetError("a graph set needs at least one graph.")
        self.train, self.val, self.test = (_positions(part, len(self)) for part in (train, val, test))
        if len(torch.unique(torch.cat([self.train, self.val, self.test]))) < sum(map(len, self.split)):
            raise DatasetError("a graph is in two parts of the split: train, val and test must not overlap.")
        self.y = torch.tensor([-1 if g.y is None else int(g.y) for g in self])
        self.num_classes = int(self.y.max()) + 1 if num_classes is None else num_classes
        self.class_names = class_names
        self.name = name

    @property
    def split(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three parts."""
        return self.train, self.val, self.test

    @property
    def num_features(self) -> int:
        """Features per node."""
        return int(self[0].num_features)

    def index_select(self, index: Sequence[int] | Tensor) -> list[Data]:
        """The graphs at these positions, as a plain list."""
        return [self[int(k)] for k in index]

    def __repr__(self) -> str:
        parts = "/".join(str(len(part)) for part in self.split)
        return (
            f"GraphSet({self.name}, {len(self)} graphs, {self.num_features} features, "
            f"{self.num_classes} classes, train/val/test {parts})"
        )


def _positions(part: Sequence[int] | Tensor, total: int) -> Tensor:
    index = torch.as_tensor(np.asarray(part, dtype=np.int64)).sort().values
    if len(index) and (int(index[0]) < 0 or int(index[-1]) >= total):
        raise DatasetError(f"a split names graph {int(index[-1])}, but the set has graphs 0 to {total - 1}.")
    return index
