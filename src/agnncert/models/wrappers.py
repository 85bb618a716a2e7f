"""``Scaling``, which scales features within the model, and ``Fallback``, a second model for nodes without neighbours.

The numbers of ``Scaling`` are measured on the training rows and stored in the model, so they are part of its digest and
its file. Each row is scaled separately. If the data were scaled beforehand with the mean of all rows, every node could
change that mean.

Most subgraphs of a division show a node without edges, and a prior votes for the prediction there. With ``Fallback``
one model is trained for nodes with edges and another one for nodes without.
"""

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.addons import config_of

LARGE = 10.0  # ratio of the deviations of a column and of the median column above which a column is uneven
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
        """Returns the scaling with which these rows have mean 0 and deviation 1 in every column that varies."""
        scaling = cls(x.size(1))
        if x.size(0) > 1:
            rows = x.double()
            spread = rows.std(dim=0)
            scaling.center.copy_(rows.mean(dim=0))  # type: ignore[operator]
            scaling.spread.copy_(torch.where(spread > 0, spread, 1.0))  # type: ignore[operator]
        return scaling

    def forward(self, x: Tensor) -> Tensor:
        """Returns the rows, scaled."""
        return (x - self.center) / self.spread  # type: ignore[operator]


def training_rows(data: Data | Sequence[Data]) -> Tensor:
    """Returns the features of the training part as float32, or of all nodes if there is none."""
    if isinstance(data, Data):
        mask = _training_mask(data)
        rows: Tensor = data.x if mask is None else data.x[mask]
        return rows.float()
    training_graphs = getattr(data, "train", None)
    graphs = list(data)
    if training_graphs is not None and len(training_graphs):
        graphs = [data[int(k)] for k in training_graphs]
    return torch.cat([graph.x for graph in graphs]).float()


def _training_mask(data: Data) -> Tensor | None:
    """Returns the training part as a mask; ``None`` if there is none, or it is no mask of the nodes."""
    given = getattr(data, "train_mask", None)
    if given is None:
        return None
    mask = torch.as_tensor(given)
    is_mask = mask.shape == data.x.shape[:1] and bool(((mask == 0) | (mask == 1)).all())
    return mask.bool() if is_mask and bool(mask.any()) else None


class UnevenColumn(NamedTuple):
    """A column of features that varies far more than others.

    Attributes:
        column: Its number.
        deviation: Its standard deviation.
        median: The median of the standard deviations of all columns that vary.
    """

    column: int
    deviation: float
    median: float


def uneven_column(x: Tensor) -> UnevenColumn | None:
    """Returns the column with the largest deviation, or ``None`` if it is at most ten times the median one, or 1.

    Columns of zeros and ones deviate by at most one half, so bags of words give ``None``.
    """
    if x.size(0) < 2:
        return None
    deviation = x.double().std(dim=0)
    varying = deviation[deviation > 0]
    if len(varying) < 2:
        return None
    column = int(deviation.argmax())
    most = float(deviation[column])
    median = float(varying.median())
    if most <= LARGE * max(median, 1.0):
        return None
    return UnevenColumn(column, most, median)


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
        self.model = model
        self.without_edges = without_edges
        parameters = inspect.signature(model.forward).parameters
        self.takes = tuple(name for name in ("edge_weight", "edge_attr") if name in parameters)
        configs = [config_of(part) for part in (model, without_edges)]
        if all(configs):
            self.config: dict[str, Any] = {"name": NAME, "model": configs[0], "without_edges": configs[1]}

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, edge_attr: Tensor | None = None
    ) -> Tensor:
        """Returns the logits of every node, shape ``[num_nodes, num_classes]``."""
        edge_values = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        values = {name: edge_values[name] for name in self.takes if edge_values[name] is not None}
        src, dst = edge_index
        is_reached = torch.zeros(x.size(0), dtype=torch.bool, device=edge_index.device)
        is_reached[dst[src != dst]] = True
        alone: Tensor = self.without_edges(x, edge_index[:, :0])
        return torch.where(is_reached[:, None], self.model(x, edge_index, **values), alone)
