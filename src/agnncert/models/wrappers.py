"""``Scaling``: columns of features brought to one size by numbers that are kept in the model.

The numbers are measured on the training rows once, and then are weights like others: a part of the model's digest and
of its file. Each row is scaled by itself, so that a certificate needs nothing new. Scaling the data beforehand proves
less: whoever measures the mean of all rows lets every node move it.

``Fallback``: one model for nodes that have a neighbour, another one for nodes that have none.

Most subgraphs of a division show a node without edges, and prior votes are for its prediction there. A network that has
to answer with and without edges gives up something of either. Here each model does what it was made for: the vote
starts from the answer of the graph-free one, and neighbours add to it.
"""

import inspect
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


NAME = "fallback"


class Fallback(nn.Module):
    """Logits of one model for nodes that a message reaches, and of another for all others.

    Whether a message reaches a node is decided by its incoming edges alone (self-loops do not count), so the module is
    local if the first model is. The second is never shown an edge.

    Args:
        model: A node classifier, called as ``model(x, edge_index)``, with the edge values that its ``forward`` names.
        without_edges: Another one with the same classes, an MLP say.

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
        source, head = edge_index
        reached = torch.zeros(x.size(0), dtype=torch.bool, device=edge_index.device)
        reached[head[source != head]] = True
        alone: Tensor = self.without_edges(x, edge_index[:, :0])
        return torch.where(reached[:, None], self.model(x, edge_index, **values), alone)
