"""The built-in models: a stack of PyTorch Geometric's layers with one head per task.

Features enter a model through a linear map: the layers multiply the features by a weight first and pass messages
afterwards. A mean or a sum commutes with a linear map, so the output is that of PyG's layer, and weights can be
exchanged with it. Wide features are multiplied once per node instead of being sent along every edge, and once for all
subgraphs of a certificate (``engine.features``).

``ARCHITECTURES`` has an entry for each model.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, MessagePassing, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.nn.pool import global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.utils import scatter

from agnncert.models.wrappers import Scaling

ACTIVATIONS = {"relu": nn.ReLU, "elu": nn.ELU, "gelu": nn.GELU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}
# Only norms that are computed per node in eval mode: others let one node change all predictions.
NORMS: dict[str, type[nn.Module]] = {"batch_norm": nn.BatchNorm1d, "layer_norm": nn.LayerNorm}
READOUTS: dict[str, Any] = {"mean": global_mean_pool, "sum": global_add_pool, "max": global_max_pool}
JUMPS = ("last", "cat", "max")


class ProjectedSAGEConv(SAGEConv):  # type: ignore[misc]
    """``SAGEConv`` with mean aggregation: the mean of projections instead of the projection of the mean."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Returns new features of every node, shape ``[num_nodes, out_channels]``."""
        projected = F.linear(x, self.lin_l.weight)
        mean = self.propagate(edge_index, x=(projected, projected), size=None)
        # The bias is added after the mean, as in SAGEConv: a node without neighbours gets it too.
        out: Tensor = mean + self.lin_l.bias + self.lin_r(x)
        return out


class ProjectedGINConv(GINConv):  # type: ignore[misc]
    """``GINConv`` whose network begins with a linear layer, which is applied before the sum."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Returns new features of every node, shape ``[num_nodes, out_channels]``."""
        first, *rest = self.nn
        projected = F.linear(x, first.weight)
        out: Tensor = self.propagate(edge_index, x=(projected, projected), size=None)
        out = out + (1 + self.eps) * projected + first.bias
        for layer in rest:
            out = layer(out)
        return out


class RelationalConv(MessagePassing):  # type: ignore[misc]
    """A linear map for each column of ``edge_attr``, and one for the node itself.

    A node receives, for each column, the mean of what its neighbours send, weighted by that column. The weights of a
    mean are divided by the sum of their absolute values. If ``edge_attr`` has one-hot rows, this is PyG's ``RGCNConv``
    with one relation per column.
    """

    def __init__(self, in_channels: int, out_channels: int, edge_channels: int) -> None:
        super().__init__(aggr="sum")
        self.lin = nn.Linear(in_channels, out_channels)
        self.relations = nn.ModuleList(nn.Linear(in_channels, out_channels, bias=False) for _ in range(edge_channels))

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Returns new features of every node, shape ``[num_nodes, out_channels]``."""
        total = scatter(edge_attr.abs(), edge_index[1], dim=0, dim_size=len(x), reduce="sum")
        share = edge_attr / total[edge_index[1]].clamp(min=torch.finfo(edge_attr.dtype).tiny)
        out: Tensor = self.lin(x)
        for column, linear in enumerate(self.relations):
            out = out + self.propagate(edge_index, x=linear(x), weight=share[:, column : column + 1], size=None)
        return out

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """Returns what each neighbour sends."""
        return weight * x_j


def normalised(edge_index: Tensor, edge_weight: Tensor | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns edges and weights as PyG's ``gcn_norm`` does.

    The numbers are the same. Where no edge has a weight or is a loop, they take half the time or less.
    """
    num_nodes = x.size(0)
    if edge_weight is not None or bool((edge_index[0] == edge_index[1]).any()):
        return cast(tuple[Tensor, Tensor], gcn_norm(edge_index, edge_weight, num_nodes, dtype=x.dtype))
    loops = torch.arange(num_nodes, device=edge_index.device).expand(2, -1)
    edges = torch.cat([edge_index, loops], dim=1)
    src, dst = edges
    scale = torch.bincount(dst, minlength=num_nodes).to(x.dtype).pow(-0.5)
    return edges, scale.index_select(0, src) * scale.index_select(0, dst)


class Dropout(nn.Dropout):
    """``nn.Dropout`` with eight random bits per entry, which is faster on a CPU. The rate is a multiple of 1/256."""

    def forward(self, x: Tensor) -> Tensor:
        """Returns, in training mode, the input with random entries dropped and the others scaled to keep the mean."""
        dropped = round(256 * self.p)
        if not self.training or dropped == 0:
            return x
        words = torch.empty(x.numel() // 8 + 1, dtype=torch.int64).random_(-(2**63), None)
        keep = words.view(torch.uint8)[: x.numel()].view_as(x) >= dropped
        return x * keep * (256 / (256 - dropped))


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


@dataclass(frozen=True)
class LayerSize:
    """The size of one layer.

    Attributes:
        in_channels: Width of its input.
        out_channels: Width of its output.
        is_output: Whether the layer returns the logits.
    """

    in_channels: int
    out_channels: int
    is_output: bool


def _gcn_layer(settings: ModelConfig, size: LayerSize) -> nn.Module:
    # ``GNN.logits`` normalises edges, once for all layers.
    return cast(nn.Module, GCNConv(size.in_channels, size.out_channels, normalize=False))


def _sage_layer(settings: ModelConfig, size: LayerSize) -> nn.Module:
    return cast(nn.Module, ProjectedSAGEConv(size.in_channels, size.out_channels))


def _gat_layer(settings: ModelConfig, size: LayerSize) -> nn.Module:
    # Heads are concatenated, and averaged where they return the logits.
    width = size.out_channels if size.is_output else size.out_channels // settings.heads
    return cast(nn.Module, GATConv(size.in_channels, width, heads=settings.heads, concat=not size.is_output))


def _gin_layer(settings: ModelConfig, size: LayerSize) -> nn.Module:
    # A sum grows with the degree. With a norm per node one network serves full graph and subgraphs; without it,
    # training on Cora-ML failed.
    hidden = settings.hidden_channels
    first = nn.Linear(size.in_channels, hidden)
    last = nn.Linear(hidden, size.out_channels)
    return cast(nn.Module, ProjectedGINConv(nn.Sequential(first, nn.LayerNorm(hidden), nn.ReLU(), last)))


def _rgcn_layer(settings: ModelConfig, size: LayerSize) -> nn.Module:
    return cast(nn.Module, RelationalConv(size.in_channels, size.out_channels, settings.edge_channels or 0))


def _linear_layer(settings: ModelConfig, size: LayerSize) -> nn.Module:
    return nn.Linear(size.in_channels, size.out_channels)


@dataclass(frozen=True)
class Architecture:
    """A built-in model.

    Attributes:
        about: What it is, in a few words.
        make_layer: Makes one of its layers.
        reads: What its layers read of an edge beside its ends: nothing, ``edge_weight`` or ``edge_attr``.
        num_layers: Number of layers unless told otherwise.
        residual: Whether each layer's output is added to its input, between two linear maps.
        uses_edges: Whether its layers get edges.
    """

    about: str
    make_layer: Callable[[ModelConfig, LayerSize], nn.Module]
    reads: Literal["", "weight", "attr"] = ""
    num_layers: int = 3
    residual: bool = False
    uses_edges: bool = True


ARCHITECTURES = {
    "gcn": Architecture("graph convolutional network", _gcn_layer, reads="weight"),
    "sage": Architecture("GraphSAGE with mean aggregation", _sage_layer),
    "gat": Architecture("graph attention network", _gat_layer),
    "gin": Architecture("graph isomorphism network", _gin_layer),
    "resgcn": Architecture("residual GCN, 6 layers", _gcn_layer, reads="weight", num_layers=6, residual=True),
    "rgcn": Architecture("relational GCN: a linear map for each column of edge_attr", _rgcn_layer, reads="attr"),
    "mlp": Architecture("no graph: each node by itself (a bag of nodes for graphs)", _linear_layer, uses_edges=False),
}
WEIGHTED = tuple(name for name, architecture in ARCHITECTURES.items() if architecture.reads == "weight")


class GNN(nn.Module):
    """A stack of message-passing layers. Tasks share ``logits``, and each has its subclass with a ``forward``.

    Attributes:
        config: The arguments it was built with, as a dictionary.
    """

    def __init__(self, settings: ModelConfig) -> None:
        super().__init__()
        architecture = ARCHITECTURES[settings.name]
        self.config = _config_of(settings)
        if settings.scale is not None:
            self.scaling = Scaling(settings.in_channels)
        self.residual = architecture.residual
        self.uses_edges = architecture.uses_edges
        self.jump = settings.jk
        hidden = settings.hidden_channels
        depth = settings.num_layers
        # Without a head the last layer returns the logits, as in PyG's own models.
        has_head = settings.task == "graph" or self.jump is not None or self.residual
        self.lin_in = nn.Linear(settings.in_channels, hidden) if self.residual else None
        self.convs = nn.ModuleList(
            architecture.make_layer(settings, size) for size in _layer_sizes(settings, self.residual, has_head)
        )
        norm = nn.Identity if settings.norm is None else NORMS[settings.norm]
        self.norms = nn.ModuleList(norm(hidden) for _ in range(depth if has_head else depth - 1))
        self.act = ACTIVATIONS[settings.act]()
        self.dropout = Dropout(settings.dropout)
        self.lin = None
        if has_head:
            self.lin = nn.Linear(hidden * depth if self.jump == "cat" else hidden, settings.out_channels)

    def logits(
        self, x: Tensor, edge_index: Tensor, edge_value: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Returns the logits of every node or, with ``batch``, of every graph.

        Args:
            x: Features, shape ``[num_nodes, in_channels]``.
            edge_index: Edges, shape ``[2, num_edges]``.
            edge_value: Weights or attributes of the edges, as the model reads them.
            batch: Graph of each node.
        """
        if "scaling" in self._modules:
            x = self.scaling(x)
        if self.lin_in is not None:
            x = self.lin_in(x)
        edges = self._edge_arguments(x, edge_index, edge_value)
        outputs = []
        for k, conv in enumerate(self.convs):
            out = conv(x, *edges)
            if k < len(self.norms):
                out = self.act(self.norms[k](out))
                if self.training and self.dropout.p:
                    out = self.dropout(out)
            x = x + out if self.residual else out
            outputs.append(x)
        if self.jump == "cat":
            x = torch.cat(outputs, dim=-1)
        elif self.jump == "max":
            x = torch.stack(outputs).amax(dim=0)
        if batch is not None:
            x = READOUTS[self.config["readout"]](x, batch)
        return x if self.lin is None else self.lin(x)

    def _edge_arguments(self, x: Tensor, edge_index: Tensor, edge_value: Tensor | None) -> tuple[Tensor, ...]:
        """Returns what each layer gets beside its features."""
        if not self.uses_edges:
            return ()
        if self.config["name"] in WEIGHTED:
            return normalised(edge_index, edge_value, x)
        return (edge_index,) if edge_value is None else (edge_index, edge_value)


def _config_of(settings: ModelConfig) -> dict[str, Any]:
    """Returns the settings as a dictionary.

    Digests of models without scaling, or that read no ``edge_attr``, do not cover these two settings.
    """
    config = asdict(settings)
    for name in ("scale", "edge_channels"):
        if config[name] is None:
            del config[name]
    return config


def _layer_sizes(settings: ModelConfig, residual: bool, has_head: bool) -> list[LayerSize]:
    hidden = settings.hidden_channels
    first = hidden if residual else settings.in_channels
    last = hidden if has_head else settings.out_channels
    widths = [first, *[hidden] * (settings.num_layers - 1), last]
    sizes = [LayerSize(*ends, is_output=False) for ends in pairwise(widths)]
    sizes[-1] = LayerSize(sizes[-1].in_channels, last, is_output=not has_head)
    return sizes


class NodeGNN(GNN):
    """Node classification."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Returns the logits of every node, shape ``[num_nodes, out_channels]``."""
        return self.logits(x, edge_index)


class WeightedNodeGNN(GNN):
    """Node classification with layers that read edge weights."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Returns the logits of every node, shape ``[num_nodes, out_channels]``."""
        return self.logits(x, edge_index, edge_weight)


class RelationalNodeGNN(GNN):
    """Node classification with layers that read edge attributes."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Returns the logits of every node, shape ``[num_nodes, out_channels]``."""
        return self.logits(x, edge_index, edge_attr)


class GraphGNN(GNN):
    """Graph classification."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Returns the logits of every graph, shape ``[num_graphs, out_channels]``."""
        return self.logits(x, edge_index, None, batch)


class WeightedGraphGNN(GNN):
    """Graph classification with layers that read edge weights."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Returns the logits of every graph, shape ``[num_graphs, out_channels]``."""
        return self.logits(x, edge_index, edge_weight, batch)


class RelationalGraphGNN(GNN):
    """Graph classification with layers that read edge attributes."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_attr: Tensor) -> Tensor:
        """Returns the logits of every graph, shape ``[num_graphs, out_channels]``."""
        return self.logits(x, edge_index, edge_attr, batch)


# By task, and by what layers read of an edge beside its ends.
CLASSES: dict[tuple[str, str], type[GNN]] = {
    ("node", ""): NodeGNN,
    ("node", "weight"): WeightedNodeGNN,
    ("node", "attr"): RelationalNodeGNN,
    ("graph", ""): GraphGNN,
    ("graph", "weight"): WeightedGraphGNN,
    ("graph", "attr"): RelationalGraphGNN,
}
