"""``Scaling``, which scales features within the model, and ``Fallback``, a second model for nodes without neighbours.

The numbers of ``Scaling`` are measured on the training rows and stored in the model, so they are part of its digest and
its file. Each row is scaled separately. If the data were scaled beforehand with the mean of all rows, every node could
change that mean.

Most subgraphs of a division show a node without edges, and a prior votes for the prediction there. With ``Fallback``
one model is trained for nodes with edges and another one for nodes without.
"""

import inspect
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

LARGE = 10.0  # largest ratio of the deviation of a column and of the median column without a warning
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
        """The scaling with which these rows have mean 0 and deviation 1 in every column that varies."""
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
    """The column with the largest deviation, that deviation and the median one; ``None`` if they are similar.

    Columns of zeros and ones deviate by at most one half, so bags of words give ``None``.
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


NAME = "fallback"


class Fallback(nn.Module):
    """Logits of one model for nodes that a message reaches, and of another for all others.

    Only the incoming edges of a node (without self-loops) decide which model is used, so the module is local if the
    first model is. The second model never gets an edge.

    Args:
        model: A node classifier, called as ``model(x, edge_index)``, with the edge values that its ``forward`` names.
        without_edges: Another node classifier with the same classes, such as an MLP.

    Example:
        >>> import agnncert as ac
        >>> data = ac.load_dataset("digits-knn")
        >>> model = Fallback(ac.build_model("gcn", data), ac.build_model("mlp", data))
        >>> model(data.x, data.edge_index).shape
        torch.Size([1797, 10])
    """

    def __init__(self, model: nn.Module, without_edges: nn.Module) -> None:
        super().__init__()
        self.model, self.without_edges = model, without_edges
        named = inspect.signature(model.forward).parameters
        self.takes = tuple(name for name in ("edge_weight", "edge_attr") if name in named)
        configs = [getattr(part, "config", None) for part in (model, without_edges)]
        if all(configs):
            self.config: dict[str, Any] = {"name": NAME, "model": configs[0], "without_edges": configs[1]}

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, edge_attr: Tensor | None = None
    ) -> Tensor:
        """Logits of every node, shape ``[num_nodes, num_classes]``."""
        given = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        values = {name: given[name] for name in self.takes if given[name] is not None}
        src, dst = edge_index
        reached = torch.zeros(x.size(0), dtype=torch.bool, device=edge_index.device)
        reached[dst[src != dst]] = True
        alone: Tensor = self.without_edges(x, edge_index[:, :0])
        return torch.where(reached[:, None], self.model(x, edge_index, **values), alone)
