"""``Scaling``: columns of features brought to one size by numbers that are kept in the model.

The numbers are measured on the training rows once, and then are weights like others: a part of the model's digest and
of its file. Each row is scaled by itself, so that a certificate needs nothing new. Scaling the data beforehand proves
less: whoever measures the mean of all rows lets every node move it.
"""

from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

LARGE = 10.0  # how much more than the median column a column may vary before that is said
SCALES = ("standard",)


class Scaling(nn.Module):
    """Subtracts a number from each column and divides it by another, row by row.

    Example:
        >>> scaling = Scaling.of(torch.tensor([[1.0, 500.0], [3.0, 700.0]]))
        >>> scaling(torch.tensor([[2.0, 800.0]])).round(decimals=4)
        tensor([[0.0000, 1.4142]])
    """

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(num_features))
        self.register_buffer("spread", torch.ones(num_features))

    @classmethod
    def of(cls, x: Tensor) -> Self:
        """The scaling that gives these rows mean 0 and deviation 1 in every column that varies."""
        scaling = cls(x.size(1))
        if x.size(0) > 1:
            rows = x.double()
            spread = rows.std(dim=0)
            scaling.center.copy_(rows.mean(dim=0))  # type: ignore[operator]
            scaling.spread.copy_(torch.where(spread > 0, spread, 1.0))  # type: ignore[operator]
        return scaling

    def forward(self, x: Tensor) -> Tensor:
        """The rows, scaled."""
        return (x - self.center) / self.spread  # type: ignore[operator]


def training_rows(data: Any) -> Tensor:
    """Features of the training part, or of all nodes if there is none."""
    if isinstance(data, Data):
        mask, x = getattr(data, "train_mask", None), data.x
        usable = (
            isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == x.shape[:1] and bool(mask.any())
        )
        rows: Tensor = x[mask] if usable else x
        return rows.float()
    part = getattr(data, "train", None)
    graphs = [data[int(k)] for k in part] if part is not None and len(part) else list(data)
    return torch.cat([graph.x for graph in graphs]).float()


def uneven_column(x: Tensor) -> tuple[int, float, float] | None:
    """The column that varies most, by how much, and how much the median column does; ``None`` if they go together.

    Words that occur or not vary by one half at most, so that bags of words are even, however rare words are.
    """
    if x.size(0) < 2:
        return None
    spread = x.double().std(dim=0)
    varying = spread[spread > 0]
    if len(varying) < 2:
        return None
    column = int(spread.argmax())
    most, median = float(spread[column]), float(varying.median())
    return (column, most, median) if most > LARGE * max(median, 1.0) else None
