"""The built-in models: a stack of PyTorch Geometric's layers with one head per task.

The layers multiply the features by their weights first and pass messages afterwards. A mean or a sum commutes with a
linear map, so the output is that of PyG's layer, and weights can be exchanged with it. Wide features are multiplied
once per node instead of being sent along every edge.
"""

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, MessagePassing, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.nn.pool import global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.utils import scatter

from agnncert.models.wrappers import Scaling


class ProjectedSAGEConv(SAGEConv):  # type: ignore[misc]
    """``SAGEConv`` with mean aggregation: the mean of projections instead of the projection of the mean."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """New features of every node, shape ``[num_nodes, out_channels]``."""
        projected = F.linear(x, self.lin_l.weight)
        mean = self.propagate(edge_index, x=(projected, projected), size=None)
        # The bias is added after the mean, as in SAGEConv: a node without neighbours gets it too.
        out: Tensor = mean + self.lin_l.bias + self.lin_r(x)
        return out


class ProjectedGINConv(GINConv):  # type: ignore[misc]
    """``GINConv`` whose network begins with a linear layer, which is applied before the sum."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """New features of every node, shape ``[num_nodes, out_channels]``."""
        first, *rest = self.nn
        projected = F.linear(x, first.weight)
        out: Tensor = self.propagate(edge_index, x=(projected, projected), size=None)
        out = out + (1 + self.eps) * projected + first.bias
        for layer in rest:
            out = layer(out)
        return out


class RelationalConv(MessagePassing):  # type: ignore[misc]
    """A linear map for each column of ``edge_attr``, and one for the node itself.

    A node receives, for each column, the mean of what its neighbours send, weighted by that column; the weights of a
    mean are divided by the sum of their absolute values. If ``edge_attr`` has one-hot rows, this is PyG's ``RGCNConv``
    with one relation per column.
    """

    def __init__(self, in_channels: int, out_channels: int, edge_channels: int) -> None:
        super().__init__(aggr="sum")
        self.lin = nn.Linear(in_channels, out_channels)
        self.relations = nn.ModuleList(nn.Linear(in_channels, out_channels, bias=False) for _ in range(edge_channels))

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """New features of every node, shape ``[num_nodes, out_channels]``."""
        total = scatter(edge_attr.abs(), edge_index[1], dim=0, dim_size=len(x), reduce="sum")
        share = edge_attr / total[edge_index[1]].clamp(min=torch.finfo(edge_attr.dtype).tiny)
        out: Tensor = self.lin(x)
        for column, linear in enumerate(self.relations):
            out = out + self.propagate(edge_index, x=linear(x), weight=share[:, column : column + 1], size=None)
        return out

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """What one neighbour sends."""
        return weight * x_j


def normalised(edge_index: Tensor, edge_weight: Tensor | None, x: Tensor) -> Any:
    """PyG's ``gcn_norm``: the same numbers, in half the time or less where no edge has a weight or is a loop."""
    num_nodes, dtype = x.size(0), x.dtype
    if edge_weight is not None or bool((edge_index[0] == edge_index[1]).any()):
        return gcn_norm(edge_index, edge_weight, num_nodes, dtype=dtype)
    loops = torch.arange(num_nodes, device=edge_index.device).expand(2, -1)
    src, dst = edges = torch.cat([edge_index, loops], dim=1)
    scale = torch.bincount(dst, minlength=num_nodes).to(dtype).pow(-0.5)
    return edges, scale.index_select(0, src) * scale.index_select(0, dst)


class Dropout(nn.Dropout):
    """``nn.Dropout`` with eight random bits per entry, which is faster on a CPU. The rate is a multiple of 1/256."""

    def forward(self, x: Tensor) -> Tensor:
        """In training mode, drops random entries and scales the others to keep the mean."""
        dropped = round(256 * self.p)
        if not self.training or dropped == 0:
            return x
        words = torch.empty(x.numel() // 8 + 1, dtype=torch.int64).random_(-(2**63), None)
        keep = words.view(torch.uint8)[: x.numel()].view_as(x) >= dropped
        return x * keep * (256 / (256 - dropped))


def make_layer(settings: "ModelConfig", in_channels: int, out_channels: int, logits: bool) -> nn.Module:
    """One layer of a model; in a GAT, one that returns ``logits`` averages its heads."""
    layer: Any
    name, hidden_channels, heads = settings.name, settings.hidden_channels, settings.heads
    if name in ("gcn", "resgcn"):
        layer = GCNConv(in_channels, out_channels, normalize=False)  # ``logits`` does, once for all layers
    elif name == "sage":
        layer = ProjectedSAGEConv(in_channels, out_channels)
    elif name == "gat":
        width = out_channels if logits else out_channels // heads
        layer = GATConv(in_channels, width, heads=heads, concat=not logits)
    elif name == "rgcn":
        layer = RelationalConv(in_channels, out_channels, settings.edge_channels or 0)
    elif name == "gin":
        # A sum grows with the degree. With a norm per node one network serves full graph and subgraphs; without it,
        # training on Cora-ML failed.
        first, last = nn.Linear(in_channels, hidden_channels), nn.Linear(hidden_channels, out_channels)
        layer = ProjectedGINConv(nn.Sequential(first, nn.LayerNorm(hidden_channels), nn.ReLU(), last))
    else:
        layer = nn.Linear(in_channels, out_channels)
    return cast(nn.Module, layer)


ACTIVATIONS = {"relu": nn.ReLU, "elu": nn.ELU, "gelu": nn.GELU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}
# Only norms that are computed per node in eval mode: others let one node change all predictions.
NORMS: dict[str, type[nn.Module]] = {"batch_norm": nn.BatchNorm1d, "layer_norm": nn.LayerNorm}
READOUTS: dict[str, Any] = {"mean": global_mean_pool, "sum": global_add_pool, "max": global_max_pool}
JUMPS = ("last", "cat", "max")
WEIGHTED = ("gcn", "resgcn")  # models whose layers read edge weights


@dataclass(frozen=True)
class ModelConfig:
    """Everything that is needed to build a model; the names are PyTorch Geometric's."""

    name: str
    task: str
    in_channels: int
    out_channels: int
    hidden_channels: int = 64
    num_layers: int = 3
    dropout: float = 0.0
    act: str = "relu"
    norm: str | None = None
    jk: str | None = None
    heads: int = 4
    readout: str = "mean"
    seed: int = 0
    scale: str | None = None
    edge_channels: int | None = None


class GNN(nn.Module):
    """A stack of message-passing layers. Tasks share ``logits``, and each has its subclass with a ``forward``.

    Attributes:
        config: The arguments it was built with, as a dictionary.
    """

    def __init__(self, settings: ModelConfig) -> None:
        super().__init__()
        # Digests of models without scaling, or that read no edge_attr, do not cover these settings.
        later = ("scale", "edge_channels")
        self.config: dict[str, Any] = {k: v for k, v in asdict(settings).items() if k not in later or v is not None}
        if settings.scale is not None:
            self.scaling = Scaling(settings.in_channels)
        self.residual = settings.name == "resgcn"
        self.uses_edges = settings.name != "mlp"
        self.jump = settings.jk
        hidden, out, depth = settings.hidden_channels, settings.out_channels, settings.num_layers
        # Without a head the last layer returns the logits, as in PyG's own models.
        headed = settings.task == "graph" or self.jump is not None or self.residual
        self.lin_in = nn.Linear(settings.in_channels, hidden) if self.residual else None
        first = hidden if self.residual else settings.in_channels
        widths = [first, *[hidden] * (depth - 1), hidden if headed else out]
        self.convs = nn.ModuleList(
            make_layer(settings, *ends, logits=k == depth - 1 and not headed) for k, ends in enumerate(pairwise(widths))
        )
        norm = nn.Identity if settings.norm is None else NORMS[settings.norm]
        self.norms = nn.ModuleList(norm(hidden) for _ in range(depth if headed else depth - 1))
        self.act = ACTIVATIONS[settings.act]()
        self.dropout = Dropout(settings.dropout)
        self.lin = nn.Linear(hidden * depth if self.jump == "cat" else hidden, out) if headed else None

    def logits(
        self, x: Tensor, edge_index: Tensor, edge_value: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Logits of every node or, with ``batch``, of every graph; ``edge_value`` holds weights or attributes."""
        if "scaling" in self._modules:
            x = self.scaling(x)
        if self.lin_in is not None:
            x = self.lin_in(x)
        edges: Any = (edge_index,) if edge_value is None else (edge_index, edge_value)
        if self.config["name"] in WEIGHTED:
            edges = normalised(edge_index, edge_value, x)
        outputs = []
        for k, conv in enumerate(self.convs):
            out = conv(x, *edges) if self.uses_edges else conv(x)
            if k < len(self.norms):
                out = self.act(self.norms[k](out))
                out = self.dropout(out) if self.training and self.dropout.p else out
            x = x + out if self.residual else out
            outputs.append(x)
        if self.jump in ("cat", "max"):
            x = torch.cat(outputs, dim=-1) if self.jump == "cat" else torch.stack(outputs).amax(dim=0)
        if batch is not None:
            x = READOUTS[self.config["readout"]](x, batch)
        return x if self.lin is None else self.lin(x)


class NodeGNN(GNN):
    """Node classification."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node, shape ``[num_nodes, out_channels]``."""
        return self.logits(x, edge_index)


class WeightedNodeGNN(GNN):
    """Node classification with layers that read edge weights."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits of every node, shape ``[num_nodes, out_channels]``."""
        return self.logits(x, edge_index, edge_weight)


class RelationalNodeGNN(GNN):
    """Node classification with layers that read edge attributes."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Logits of every node, shape ``[num_nodes, out_channels]``."""
        return self.logits(x, edge_index, edge_attr)


class GraphGNN(GNN):
    """Graph classification."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Logits of every graph, shape ``[num_graphs, out_channels]``."""
        return self.logits(x, edge_index, None, batch)


class WeightedGraphGNN(GNN):
    """Graph classification with layers that read edge weights."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits of every graph, shape ``[num_graphs, out_channels]``."""
        return self.logits(x, edge_index, edge_weight, batch)


class RelationalGraphGNN(GNN):
    """Graph classification with layers that read edge attributes."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_attr: Tensor) -> Tensor:
        """Logits of every graph, shape ``[num_graphs, out_channels]``."""
        return self.logits(x, edge_index, edge_attr, batch)


CLASSES: dict[tuple[str, str], type[GNN]] = {  # by task, and by what layers read of edges
    ("node", ""): NodeGNN, ("node", "weight"): WeightedNodeGNN, ("node", "attr"): RelationalNodeGNN,
    ("graph", ""): GraphGNN, ("graph", "weight"): WeightedGraphGNN, ("graph", "attr"): RelationalGraphGNN,
}  # fmt: skip
