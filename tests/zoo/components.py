"""Parts of models that keep or break what the proofs need, each in a small network for nodes.

A component is *local* if what it computes for a node depends only on the part of the graph from which edges lead to it;
*one-way* if edges that leave a node do not matter to it.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.utils import degree

from tests.support.models import CLASSES, FEATURES

WIDTH = 8


class Network(nn.Module):
    """A layer, a normalisation, and a linear readout for each node."""

    def __init__(self, conv: nn.Module | None = None, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(FEATURES, WIDTH) if conv is None else conv
        self.norm = nn.Identity() if norm is None else norm
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.out(self.norm(self.conv(x, edge_index)).tanh())


class VirtualNode(nn.Module):
    """Every node hears the mean of all."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(FEATURES, WIDTH)

    def forward(self, x, edge_index):
        return self.conv(x + x.mean(0, keepdim=True), edge_index)


class GlobalAttention(nn.Module):
    """Every node attends to every other."""

    def __init__(self):
        super().__init__()
        self.conv, self.attention = (pyg.GCNConv(FEATURES, WIDTH), nn.MultiheadAttention(WIDTH, 2, batch_first=True))

    def forward(self, x, edge_index):
        hidden = self.conv(x, edge_index)[None]
        return self.attention(hidden, hidden, hidden, need_weights=False)[0][0]


class Gps(nn.Module):
    """PyG's GPS layer."""

    def __init__(self):
        super().__init__()
        self.conv, self.gps = (pyg.GCNConv(FEATURES, WIDTH), pyg.GPSConv(WIDTH, pyg.GCNConv(WIDTH, WIDTH), heads=2))

    def forward(self, x, edge_index):
        return self.gps(self.conv(x, edge_index), edge_index)


class BatchStatistics(nn.Module):
    """What BatchNorm does in training mode."""

    def forward(self, x):
        return (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()


class OutDegree(nn.Module):
    """Messages are divided by the number of edges that leave their source: as in a random walk."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(FEATURES, WIDTH)

    def forward(self, x, edge_index):
        hidden = self.lin(x)
        share = hidden / degree(edge_index[0], len(x), dtype=hidden.dtype).clamp(min=1)[:, None]
        return hidden + torch.zeros_like(hidden).index_add(0, edge_index[1], share[edge_index[0]])


class LargestDegree(nn.Module):
    """Messages are divided by the largest degree of the graph."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(FEATURES, WIDTH)

    def forward(self, x, edge_index):
        hidden = self.lin(x)
        heard = torch.zeros_like(hidden).index_add(0, edge_index[1], hidden[edge_index[0]])
        return hidden + heard / degree(edge_index[1], len(x), dtype=hidden.dtype).max().clamp(min=1)


class ScaledByMaximum(nn.Module):
    """Columns are scaled by their maximum over the graph, as dynamic quantisation does."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.SAGEConv(FEATURES, WIDTH)

    def forward(self, x, edge_index):
        return self.conv(x / x.abs().amax(), edge_index)


class BothWays(pyg.DirGNNConv):
    """A layer under a name that nobody knows."""


class Backwards(nn.Module):
    """Sums up the nodes that its edges lead to, by hand."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(FEATURES, WIDTH)

    def forward(self, x, edge_index):
        return self.lin(x).index_add(0, edge_index[0], self.lin(x)[edge_index[1]])


class Appnp(nn.Module):
    """Propagates predictions."""

    def __init__(self):
        super().__init__()
        self.lin, self.walk = nn.Linear(FEATURES, WIDTH), pyg.APPNP(2, 0.1)

    def forward(self, x, edge_index):
        return self.walk(F.dropout(self.lin(x), 0.5, training=self.training), edge_index)


@dataclass(frozen=True)
class Component:
    """A network's factory, and what it does to the proofs."""

    name: str
    make: Any
    local: bool = True
    one_way: bool = True
    named: str = ""  # how the audit calls the layer at fault, if it knows it


def norm(name: str, make: Any, **facts: Any) -> Component:
    return Component(name, lambda: Network(norm=make()), **facts)


def conv(name: str, make: Any, **facts: Any) -> Component:
    return Component(name, lambda: Network(conv=make()), **facts)


def all_of(local: bool, *components: tuple[str, Any, str]) -> list[Component]:
    return [norm(name, make, local=local, named=named) for name, make, named in components]


COMPONENTS = [
    conv("GCNConv", lambda: pyg.GCNConv(FEATURES, WIDTH)),
    conv("SAGEConv", lambda: pyg.SAGEConv(FEATURES, WIDTH, normalize=True)),
    conv("SAGEConv max", lambda: pyg.SAGEConv(FEATURES, WIDTH, aggr="max")),
    conv("GATConv", lambda: pyg.GATConv(FEATURES, WIDTH)),
    conv("GATv2Conv", lambda: pyg.GATv2Conv(FEATURES, WIDTH)),
    conv("GINConv", lambda: pyg.GINConv(nn.Linear(FEATURES, WIDTH))),
    conv("TransformerConv", lambda: pyg.TransformerConv(FEATURES, WIDTH)),
    conv("SGConv", lambda: pyg.SGConv(FEATURES, WIDTH, K=2)),
    conv("TAGConv", lambda: pyg.TAGConv(FEATURES, WIDTH)),
    conv("ClusterGCNConv", lambda: pyg.ClusterGCNConv(FEATURES, WIDTH)),
    Component("APPNP", Appnp),
    *all_of(
        True,
        ("BatchNorm1d", lambda: nn.BatchNorm1d(WIDTH), ""),
        ("BatchNorm of PyG", lambda: pyg.BatchNorm(WIDTH), ""),
        ("LayerNorm of torch", lambda: nn.LayerNorm(WIDTH), ""),
        ("LayerNorm of nodes", lambda: pyg.LayerNorm(WIDTH, mode="node"), ""),
        ("GroupNorm", lambda: nn.GroupNorm(2, WIDTH), ""),
        ("DiffGroupNorm", lambda: pyg.DiffGroupNorm(WIDTH, 2), ""),
    ),
    *all_of(
        False,
        ("LayerNorm of PyG as it comes", lambda: pyg.LayerNorm(WIDTH), 'LayerNorm(mode="graph")'),
        ("GraphNorm", lambda: pyg.GraphNorm(WIDTH), "GraphNorm"),
        ("InstanceNorm", lambda: pyg.InstanceNorm(WIDTH), "InstanceNorm"),
        ("PairNorm", lambda: pyg.PairNorm(), "PairNorm"),
        ("GraphSizeNorm", lambda: pyg.GraphSizeNorm(), "GraphSizeNorm"),
        ("MeanSubtractionNorm", lambda: pyg.MeanSubtractionNorm(), "MeanSubtractionNorm"),
        ("statistics of the batch", BatchStatistics, ""),
    ),
    Component("virtual node", VirtualNode, local=False),
    Component("global attention", GlobalAttention, local=False),
    Component("GPSConv", Gps, local=False, named="GPSConv"),
    Component("largest degree", LargestDegree, local=False),
    Component("scaled by the maximum", ScaledByMaximum, local=False),
    Component("out-degree", OutDegree, one_way=False),
    Component("backwards by hand", Backwards, one_way=False),
    conv("both ways under another name", lambda: BothWays(pyg.SAGEConv(FEATURES, WIDTH)), one_way=False),
    conv("DirGNNConv", lambda: pyg.DirGNNConv(pyg.SAGEConv(FEATURES, WIDTH)), one_way=False, named="DirGNNConv"),
    conv("ChebConv", lambda: pyg.ChebConv(FEATURES, WIDTH, 2), one_way=False, named="ChebConv"),
    conv("HypergraphConv", lambda: pyg.HypergraphConv(FEATURES, WIDTH), one_way=False, named="HypergraphConv"),
    conv("flow", lambda: pyg.SAGEConv(FEATURES, WIDTH, flow="target_to_source"), one_way=False, named="SAGEConv"),
]
