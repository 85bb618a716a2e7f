"""Layers and models that are local: the audit must accept them all, and both engines must cast the same votes."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import cumsum, degree, scatter, softmax

WIDTH, HIDDEN, CLASSES, KINDS = 6, 8, 3, 4


def zoo_data(seed: int = 0, nodes: int = 60, pairs: int = 140) -> Data:
    """A graph with weights, attributes, one-way and parallel edges, and isolated nodes."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(0, nodes - 4, (2, pairs), generator=generator)
    edge_index = torch.cat([ends, ends[:, 20:].flip(0), ends[:, :5]], dim=1)
    count = edge_index.size(1)
    return Data(
        x=torch.randn(nodes, WIDTH, generator=generator),
        edge_index=edge_index,
        edge_weight=torch.rand(count, generator=generator) + 0.1,
        edge_attr=torch.rand(count, 2, generator=generator),
        node_id=torch.randperm(1000, generator=generator)[:nodes],
    )


class Plain(nn.Module):
    """A layer, and a linear readout for each node."""

    def __init__(self, conv: nn.Module, out: int = HIDDEN) -> None:
        super().__init__()
        self.conv, self.out = conv, nn.Linear(out, CLASSES)

    def forward(self, x, edge_index):
        return self.out(torch.tanh(self.conv(x, edge_index)))


class Weighted(Plain):
    def forward(self, x, edge_index, edge_weight):
        return self.out(torch.tanh(self.conv(x, edge_index, edge_weight)))


class Attributed(Plain):
    def forward(self, x, edge_index, edge_attr):
        return self.out(torch.tanh(self.conv(x, edge_index, edge_attr)))


class Typed(Plain):
    """Reads the kind of an edge off its first attribute."""

    def forward(self, x, edge_index, edge_attr):
        kind = (edge_attr[:, 0].nan_to_num().clamp(0, 0.99) * KINDS).long()
        return self.out(torch.tanh(self.conv(x, edge_index, kind)))


class TypedToo(Plain):
    def forward(self, x, edge_index, edge_attr):
        kind = (edge_attr[:, 0].nan_to_num().clamp(0, 0.99) * KINDS).long()
        return self.out(torch.tanh(self.conv(x, edge_index, kind, edge_attr)))


class WithInput(Plain):
    """Layers that take the first features too."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__(conv)
        self.lin = nn.Linear(WIDTH, HIDDEN)

    def forward(self, x, edge_index):
        first = torch.tanh(self.lin(x))
        return self.out(torch.tanh(self.conv(first, first, edge_index)))


class After(Plain):
    """Layers that need features of their own width."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__(conv)
        self.lin = nn.Linear(WIDTH, HIDDEN)

    def forward(self, x, edge_index):
        return self.out(torch.tanh(self.conv(torch.tanh(self.lin(x)), edge_index)))


class Placed(Plain):
    """Layers of point clouds: the first features are a position."""

    def __init__(self, conv: nn.Module, out: int = HIDDEN) -> None:
        super().__init__(conv, out)

    def forward(self, x, edge_index):
        return self.out(torch.tanh(self.conv(x, x[:, :3], edge_index)))


class Normed(nn.Module):
    """A norm for each node behind a layer."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.conv, self.norm, self.out = pyg.SAGEConv(WIDTH, HIDDEN), norm, nn.Linear(HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        return self.out(F.elu(self.norm(self.conv(x, edge_index))))


class Jumps(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.convs = nn.ModuleList([pyg.GCNConv(WIDTH, HIDDEN), pyg.GCNConv(HIDDEN, HIDDEN)])
        self.jump = pyg.JumpingKnowledge(mode, channels=HIDDEN, num_layers=2)
        self.out = nn.Linear(2 * HIDDEN if mode == "cat" else HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        layers = []
        for conv in self.convs:
            x = conv(x, edge_index).relu()
            layers.append(x)
        return self.out(self.jump(layers))


class SparseByHand(nn.Module):
    """A normalised adjacency as a sparse matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.out = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        ones = torch.ones(edge_index.size(1), dtype=x.dtype)
        adjacency = torch.sparse_coo_tensor(edge_index.flip(0), ones, (len(x),) * 2, check_invariants=True)
        hidden = torch.sparse.mm(adjacency, self.lin(x))
        return self.out(torch.tanh(hidden + self.lin(x)))


class MaskedDense(nn.Module):
    """A dense adjacency, in which what is not finite is cut off before it is multiplied by zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.out = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        hidden = torch.tanh(self.lin(x)).nan_to_num()
        dense = torch.zeros(len(x), len(x), dtype=x.dtype)
        dense[edge_index[1], edge_index[0]] = 1.0
        return self.out(torch.tanh(hidden + dense @ hidden))


class Loop(nn.Module):
    """One node after the other, in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        hidden, source, head = self.lin(x), *edge_index
        order = torch.argsort(head, stable=True)
        sums = torch.zeros_like(hidden)
        start = 0
        for node, senders in zip(
            *[t.tolist() for t in torch.unique_consecutive(head[order], return_counts=True)], strict=True
        ):
            sums[node] = hidden[source[order[start : start + senders]]].amax(0)
            start += senders
        return hidden + sums


class FirstNeighbours(nn.Module):
    """Hears the first five of a node's own edges, in their order: this is known from these edges alone."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.own = nn.Linear(WIDTH, CLASSES), nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        source, head = edge_index
        order = torch.argsort(head, stable=True)
        starts = cumsum(degree(head, len(x), dtype=torch.int64))[:-1]
        rank = torch.arange(len(order)) - starts[head[order]]
        kept = order[rank < 5]
        return self.own(x) + scatter(self.lin(x)[source[kept]], head[kept], 0, len(x), reduce="sum")


class Similar(nn.Module):
    """Hears only neighbours that look alike, as defences against added edges do."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        alike = F.cosine_similarity(x[edge_index[0]], x[edge_index[1]]) > -0.2
        return self.conv(x, edge_index[:, alike])


class SoftMedian(nn.Module):
    """Attention by the weight of an edge, normalised for each node."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index, edge_weight):
        source, head = edge_index
        share = softmax(edge_weight, head, num_nodes=len(x))
        return self.lin(x) + scatter(share[:, None] * self.lin(x)[source], head, 0, len(x), reduce="sum")


class PerNodeMaximum(nn.Module):
    """Weights divided by the largest one of the same node."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GraphConv(WIDTH, CLASSES)

    def forward(self, x, edge_index, edge_weight):
        largest = scatter(edge_weight, edge_index[1], 0, len(x), reduce="max")
        return self.conv(x, edge_index, edge_weight / largest[edge_index[1]].clamp(min=1e-6))


class Kinds(nn.Module):
    """Reads features as the number of a kind, which not every number is."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.conv = nn.Embedding(12, HIDDEN), pyg.SAGEConv(HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(self.emb((x[:, 0].round() + 6).long()), edge_index)


class Checkpointed(nn.Module):
    """A fixed table of random numbers by feature, and a seed that nothing depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(WIDTH, CLASSES)
        self.register_buffer("noise", torch.randn(WIDTH))

    def forward(self, x, edge_index):
        torch.manual_seed(0)
        return self.conv(x + 0.1 * self.noise, edge_index)


class Branches(nn.Module):
    """Another layer for nodes without neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.lin = pyg.GINConv(nn.Linear(WIDTH, CLASSES)), nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        alone = degree(edge_index[1], len(x)) == 0
        return torch.where(alone[:, None], self.lin(x), self.conv(x, edge_index))


def mlp(*widths: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(*widths[:2]), nn.ReLU(), nn.Linear(*widths[1:]))


class Pooled(nn.Module):
    """A layer, something done to each graph, and a readout."""

    def __init__(
        self, pool: Any, out: int = HIDDEN, norm: nn.Module | None = None, conv: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.conv = pyg.GraphConv(WIDTH, HIDDEN) if conv is None else conv
        self.norm, self.pool, self.out = norm, pool, nn.Linear(out, CLASSES)

    def forward(self, x, edge_index, batch):
        x = torch.tanh(self.conv(x, edge_index))
        x = x if self.norm is None else self.norm(x, batch)
        return self.out(self.pool(x, batch))


class PickedNodes(nn.Module):
    """Keeps the best nodes of each graph."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.conv, self.pick, self.out = pyg.GraphConv(WIDTH, HIDDEN), pool, nn.Linear(HIDDEN, CLASSES)

    def forward(self, x, edge_index, batch):
        x, _, _, batch, *_ = self.pick(torch.tanh(self.conv(x, edge_index)), edge_index, None, batch)
        return self.out(pyg.global_mean_pool(x, batch))


D, H = WIDTH, HIDDEN
DEGREES = torch.tensor([4, 10, 20, 15, 8, 3])
SCALED = {"aggregators": ["mean", "min", "max", "std"], "scalers": ["identity", "amplification"], "deg": DEGREES}

CONVS: dict[str, Callable[[], nn.Module]] = {
    "GCNConv": lambda: Weighted(pyg.GCNConv(D, H)),
    "GCNConv improved": lambda: Weighted(pyg.GCNConv(D, H, improved=True)),
    "GCNConv without loops": lambda: Plain(pyg.GCNConv(D, H, add_self_loops=False)),
    "SAGEConv mean": lambda: Plain(pyg.SAGEConv(D, H)),
    "SAGEConv max, projected": lambda: Plain(pyg.SAGEConv(D, H, aggr="max", project=True)),
    "SAGEConv sum, normalised": lambda: Plain(pyg.SAGEConv(D, H, aggr="sum", normalize=True)),
    "SAGEConv of several": lambda: Plain(pyg.SAGEConv(D, H, aggr=["mean", "std", "min"])),
    "SAGEConv softmax": lambda: Plain(pyg.SAGEConv(D, H, aggr=pyg.SoftmaxAggregation(learn=True))),
    "SAGEConv power mean": lambda: Plain(pyg.SAGEConv(D, H, aggr="powermean")),
    "GATConv": lambda: Attributed(pyg.GATConv(D, H, edge_dim=2)),
    "GATConv of heads": lambda: Plain(pyg.GATConv(D, H, heads=2, concat=False)),
    "GATv2Conv": lambda: Attributed(pyg.GATv2Conv(D, H, edge_dim=2)),
    "TransformerConv": lambda: Attributed(pyg.TransformerConv(D, H, edge_dim=2, beta=True)),
    "GINConv": lambda: Plain(pyg.GINConv(mlp(D, H, H), train_eps=True)),
    "GINEConv": lambda: Attributed(pyg.GINEConv(mlp(D, H, H), edge_dim=2)),
    "GraphConv": lambda: Weighted(pyg.GraphConv(D, H)),
    "GatedGraphConv": lambda: Weighted(pyg.GatedGraphConv(H, 2)),
    "ResGatedGraphConv": lambda: Attributed(pyg.ResGatedGraphConv(D, H, edge_dim=2)),
    "TAGConv": lambda: Weighted(pyg.TAGConv(D, H)),
    "ARMAConv": lambda: Weighted(pyg.ARMAConv(D, H, num_stacks=2, num_layers=2)),
    "SGConv": lambda: Weighted(pyg.SGConv(D, H, K=2)),
    "SSGConv": lambda: Weighted(pyg.SSGConv(D, H, alpha=0.1, K=2)),
    "MixHopConv": lambda: Weighted(pyg.MixHopConv(D, H, powers=[0, 1, 2]), 3 * H),
    "APPNP": lambda: After(pyg.APPNP(3, 0.1)),
    "AGNNConv": lambda: After(pyg.AGNNConv()),
    "LGConv": lambda: After(pyg.LGConv()),
    "SimpleConv": lambda: After(pyg.SimpleConv("mean", "self_loop")),
    "GeneralConv": lambda: Attributed(pyg.GeneralConv(D, H, in_edge_channels=2, attention=True)),
    "FeaStConv": lambda: Plain(pyg.FeaStConv(D, H, heads=2)),
    "PDNConv": lambda: Attributed(pyg.PDNConv(D, H, edge_dim=2, hidden_channels=4)),
    "NNConv": lambda: Attributed(pyg.NNConv(D, H, mlp(2, 4, D * H))),
    "CGConv": lambda: Attributed(pyg.CGConv(D, dim=2), D),
    "LEConv": lambda: Weighted(pyg.LEConv(D, H)),
    "ClusterGCNConv": lambda: Plain(pyg.ClusterGCNConv(D, H)),
    "GENConv": lambda: Attributed(pyg.GENConv(D, H, edge_dim=2, learn_t=True, norm="layer")),
    "EdgeConv": lambda: Plain(pyg.EdgeConv(mlp(2 * D, H, H))),
    "FiLMConv": lambda: Plain(pyg.FiLMConv(D, H)),
    "SuperGATConv": lambda: Plain(pyg.SuperGATConv(D, H)),
    "EGConv, more than one": lambda: Plain(pyg.EGConv(D, H, aggregators=["symnorm", "max"], num_heads=4)),
    "EGConv": lambda: Plain(pyg.EGConv(D, H, num_heads=4)),
    "MFConv": lambda: Plain(pyg.MFConv(D, H, max_degree=5)),
    "AntiSymmetricConv": lambda: After(pyg.AntiSymmetricConv(H, num_iters=2)),
    "FAConv": lambda: WithInput(pyg.FAConv(H)),
    "GCN2Conv": lambda: WithInput(pyg.GCN2Conv(H, 0.2, 0.5, 1)),
    "PNAConv": lambda: Attributed(pyg.PNAConv(D, H, edge_dim=2, **SCALED)),
    "GMMConv": lambda: Attributed(pyg.GMMConv(D, H, dim=2, kernel_size=3)),
    "RGCNConv": lambda: Typed(pyg.RGCNConv(D, H, KINDS)),
    "FastRGCNConv": lambda: Typed(pyg.FastRGCNConv(D, H, KINDS, num_bases=2)),
    "RGATConv": lambda: TypedToo(pyg.RGATConv(D, H, KINDS, edge_dim=2)),
    "PointNetConv": lambda: Placed(pyg.PointNetConv(mlp(D + 3, H, H))),
    "PointTransformerConv": lambda: Placed(pyg.PointTransformerConv(D, H)),
    "DNAConv of one": lambda: After(OneLayerDNA()),
}


class OneLayerDNA(nn.Module):
    """Attention over the layers of a node and its neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.DNAConv(HIDDEN, heads=2)

    def forward(self, x, edge_index):
        return self.conv(torch.stack([x, x.sin()], dim=1), edge_index)


NORMS: dict[str, Callable[[], nn.Module]] = {
    "BatchNorm1d": lambda: Normed(nn.BatchNorm1d(H)),
    "PyG's BatchNorm": lambda: Normed(pyg.BatchNorm(H)),
    "LayerNorm": lambda: Normed(nn.LayerNorm(H)),
    "LayerNorm by node": lambda: Normed(pyg.LayerNorm(H, mode="node")),
    "GroupNorm": lambda: Normed(nn.GroupNorm(2, H)),
    "RMSNorm": lambda: Normed(nn.RMSNorm(H)),
    "DiffGroupNorm": lambda: Normed(pyg.DiffGroupNorm(H, 2)),
}

STACKS: dict[str, Callable[[], nn.Module]] = {
    "GCN": lambda: pyg.GCN(D, H, 2, CLASSES, norm="batch_norm"),
    "GraphSAGE": lambda: pyg.GraphSAGE(D, H, 2, CLASSES, jk="cat"),
    "GIN": lambda: pyg.GIN(D, H, 2, CLASSES, norm="layer_norm", norm_kwargs={"mode": "node"}),
    "GAT": lambda: pyg.GAT(D, H, 2, CLASSES, heads=2, jk="lstm"),
    "GATv2": lambda: pyg.GAT(D, H, 2, CLASSES, v2=True, act="elu"),
    "PNA": lambda: pyg.PNA(D, H, 2, CLASSES, **SCALED),
    "EdgeCNN": lambda: pyg.EdgeCNN(D, H, 2, CLASSES),
    "Sequential": lambda: pyg.Sequential(
        "x, edge_index",
        [(pyg.GCNConv(D, H), "x, edge_index -> x"), nn.ReLU(), (pyg.GCNConv(H, CLASSES), "x, edge_index -> x")],
    ),
}

MODELS: dict[str, Callable[[], nn.Module]] = {
    "jumping lstm": lambda: Jumps("lstm"),
    "jumping max": lambda: Jumps("max"),
    "jumping cat": lambda: Jumps("cat"),
    "DeepGCNLayer": lambda: After(
        pyg.DeepGCNLayer(pyg.GENConv(H, H), nn.LayerNorm(H), nn.ReLU(), block="res+", dropout=0.3)
    ),
    "sparse matrix": SparseByHand,
    "dense matrix, cut off": MaskedDense,
    "a loop over nodes": Loop,
    "the first five neighbours": FirstNeighbours,
    "neighbours that look alike": Similar,
    "softmax of weights for each node": SoftMedian,
    "weights by each node's largest": PerNodeMaximum,
    "features as kinds": Kinds,
    "a seed that does not matter": Checkpointed,
    "another layer without neighbours": Branches,
    "a model that sees no edge": lambda: NoEdges(),
}


class NoEdges(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(WIDTH, HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        return self.net(x)


GRAPH_MODELS: dict[str, Callable[[], nn.Module]] = {
    "mean of nodes": lambda: Pooled(pyg.global_mean_pool),
    "sum of nodes": lambda: Pooled(pyg.global_add_pool),
    "largest of nodes": lambda: Pooled(pyg.global_max_pool),
    "several at once": lambda: Pooled(pyg.MultiAggregation(["mean", "max", "std"]), 3 * H),
    "attention over nodes": lambda: Pooled(pyg.AttentionalAggregation(nn.Linear(H, 1))),
    "Set2Set": lambda: Pooled(pyg.Set2Set(H, 2), 2 * H),
    "SoftmaxAggregation": lambda: Pooled(pyg.SoftmaxAggregation()),
    "median of nodes": lambda: Pooled(pyg.MedianAggregation()),
    "DeepSets": lambda: Pooled(pyg.DeepSetsAggregation(mlp(H, H, H), mlp(H, H, H))),
    "norm over each graph": lambda: Pooled(pyg.global_mean_pool, norm=pyg.GraphNorm(H)),
    "InstanceNorm over each graph": lambda: Pooled(pyg.global_max_pool, norm=pyg.InstanceNorm(H)),
    "PairNorm over each graph": lambda: Pooled(pyg.global_max_pool, norm=pyg.PairNorm()),
    "TopKPooling": lambda: PickedNodes(pyg.TopKPooling(H)),
    "SAGPooling": lambda: PickedNodes(pyg.SAGPooling(H)),
}
