"""Which models of PyTorch Geometric the audit accepts, one row each.

``python -m experiments.benchmarks.pyg_models`` builds each model as its documentation suggests, audits it for the
node-centric division, certifies it if it is accepted, and writes ``results/pyg_models.jsonl``. Nothing is trained:
whether a model is local does not depend on its weights, and the audit sees them as they are.
"""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import aggr, conv, models, norm, pool

import agnncert as ac

RESULTS = Path(__file__).parent / "results" / "pyg_models.jsonl"
FEATURES, CLASSES, HIDDEN, VALUES = 8, 3, 8, 4


class Nodes(nn.Module):
    """A layer, perhaps a norm, and a second layer of the same kind."""

    def __init__(self, make: Callable[[int, int], nn.Module], normed: nn.Module | None = None, **reads: bool) -> None:
        super().__init__()
        self.first, self.second = make(FEATURES, HIDDEN), make(HIDDEN, CLASSES)
        self.norm = normed
        self.reads_types = reads.get("types", False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        more = (torch.zeros(edge_index.size(1), dtype=torch.long),) if self.reads_types else ()
        hidden = self.first(x, edge_index, *more)
        hidden = hidden if self.norm is None else self.norm(hidden)
        return self.second(hidden.relu(), edge_index, *more)


class ReadsValues(nn.Module):
    """Two layers that read attributes of edges."""

    def __init__(self, make: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = make(FEATURES, HIDDEN), make(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index, edge_attr).relu(), edge_index, edge_attr)


class Square(nn.Module):
    """A layer that keeps the number of columns, between two linear maps."""

    def __init__(self, layer: nn.Module, takes_first: bool = False) -> None:
        super().__init__()
        self.into, self.layer, self.out = nn.Linear(FEATURES, HIDDEN), layer, nn.Linear(HIDDEN, CLASSES)
        self.takes_first = takes_first

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = self.into(x).relu()
        more = (hidden,) if self.takes_first else ()
        return self.out(self.layer(hidden, *more, edge_index))


class Jumps(nn.Module):
    """Three layers of GCN with jumping knowledge."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList([conv.GCNConv(FEATURES if k == 0 else HIDDEN, HIDDEN) for k in range(3)])
        self.jump = models.JumpingKnowledge(mode, HIDDEN, 3)
        self.out = nn.Linear(3 * HIDDEN if mode == "cat" else HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        found = []
        for layer in self.layers:
            x = layer(x, edge_index).relu()
            found.append(x)
        return self.out(self.jump(found))


class Graphs(nn.Module):
    """A layer of GIN and a readout."""

    def __init__(self, readout: nn.Module, width: int = HIDDEN) -> None:
        super().__init__()
        self.layer = conv.GINConv(nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU()))
        self.readout, self.out = readout, nn.Linear(width, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, batch_size: int | None = None) -> Tensor:
        return self.out(self.readout(self.layer(x, edge_index), batch, dim_size=batch_size))


class Pooled(nn.Module):
    """A pooling layer that drops nodes, then a mean."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.into, self.layer, self.out = conv.GCNConv(FEATURES, HIDDEN), layer, nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, batch_size: int | None = None) -> Tensor:
        x, _, _, batch, *_ = self.layer(self.into(x, edge_index).relu(), edge_index, batch=batch)
        return self.out(pool.global_mean_pool(x, batch, batch_size))


def _mlp(columns: int, out: int) -> nn.Module:
    return nn.Sequential(nn.Linear(columns, out), nn.ReLU(), nn.Linear(out, out))


Make = Callable[[], nn.Module]


def _layers() -> dict[str, Make]:
    """Layers that map columns to columns along edges."""
    plain = (
        "ClusterGCNConv", "LEConv", "MFConv", "FeaStConv", "GATv2Conv", "TransformerConv", "GENConv", "TAGConv",
        "SGConv", "ARMAConv", "GraphConv", "ResGatedGraphConv", "SuperGATConv", "GeneralConv",
    )  # fmt: skip
    made: dict[str, Make] = {name: partial(Nodes, getattr(conv, name)) for name in plain}
    made["SSGConv"] = partial(Nodes, lambda i, o: conv.SSGConv(i, o, alpha=0.1))
    made["EGConv"] = partial(Nodes, lambda i, o: conv.EGConv(i, o, num_heads=1))
    made["ChebConv"] = partial(Nodes, lambda i, o: conv.ChebConv(i, o, K=2))
    made["GINConv"] = partial(Nodes, lambda i, o: conv.GINConv(_mlp(i, o)))
    made["EdgeConv"] = partial(Nodes, lambda i, o: conv.EdgeConv(_mlp(2 * i, o)))
    made["DynamicEdgeConv"] = _DynamicEdges
    made["FiLMConv"] = partial(Nodes, conv.FiLMConv)
    made["PANConv"] = partial(Nodes, lambda i, o: _First(conv.PANConv(i, o, filter_size=2)))
    made["PNAConv"] = partial(
        Nodes, lambda i, o: conv.PNAConv(i, o, ["mean", "max", "std"], ["identity", "amplification"], torch.ones(8))
    )
    made["RGCNConv"] = partial(Nodes, lambda i, o: conv.RGCNConv(i, o, num_relations=2), types=True)
    made["FastRGCNConv"] = partial(Nodes, lambda i, o: conv.FastRGCNConv(i, o, num_relations=2), types=True)
    made["RGATConv"] = partial(Nodes, lambda i, o: conv.RGATConv(i, o, num_relations=2), types=True)
    made["DirGNNConv"] = partial(Nodes, lambda i, o: conv.DirGNNConv(conv.SAGEConv(i, o)))
    made["HypergraphConv"] = partial(Nodes, conv.HypergraphConv)
    made["AntiSymmetricConv"] = lambda: Square(conv.AntiSymmetricConv(HIDDEN))
    made["AGNNConv"] = lambda: Square(conv.AGNNConv())
    made["APPNP"] = lambda: Square(conv.APPNP(K=3, alpha=0.1))
    made["GatedGraphConv"] = lambda: Square(conv.GatedGraphConv(HIDDEN, 2))
    made["GCN2Conv"] = lambda: Square(conv.GCN2Conv(HIDDEN, alpha=0.1), takes_first=True)
    made["FAConv"] = lambda: Square(conv.FAConv(HIDDEN), takes_first=True)
    made["LGConv"] = lambda: Square(conv.LGConv())
    made["SimpleConv"] = lambda: Square(conv.SimpleConv())
    made["MixHopConv"] = _MixHop
    made["GPSConv"] = lambda: Square(conv.GPSConv(HIDDEN, conv.GCNConv(HIDDEN, HIDDEN), heads=2))
    made["GravNetConv"] = partial(Nodes, lambda i, o: _NoEdges(conv.GravNetConv(i, o, 2, 2, k=2)))
    made["WLConv"] = _Colours
    return made


class _First(nn.Module):
    """The first of the results of a layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index)[0]


class _NoEdges(nn.Module):
    """A layer that finds its neighbours itself."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x)


class _DynamicEdges(nn.Module):
    """Nearest neighbours in feature space."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = conv.DynamicEdgeConv(_mlp(2 * FEATURES, CLASSES), k=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x)


class _MixHop(nn.Module):
    """Three powers of the adjacency matrix beside one another."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = conv.MixHopConv(FEATURES, HIDDEN), nn.Linear(3 * HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.out(self.layer(x, edge_index).relu())


class _Colours(nn.Module):
    """Colours of the Weisfeiler-Lehman test as classes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = conv.WLConv()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        colours = self.layer(x.argmax(dim=1), edge_index)
        return nn.functional.one_hot(colours % CLASSES, CLASSES).float()


def _with_values() -> dict[str, Make]:
    """Layers that read attributes of edges."""
    makes: dict[str, Callable[[int, int], nn.Module]] = {
        "GATConv, edge_dim": lambda i, o: conv.GATConv(i, o, edge_dim=VALUES),
        "GATv2Conv, edge_dim": lambda i, o: conv.GATv2Conv(i, o, edge_dim=VALUES),
        "TransformerConv, edge_dim": lambda i, o: conv.TransformerConv(i, o, edge_dim=VALUES),
        "GINEConv": lambda i, o: conv.GINEConv(_mlp(i, o), edge_dim=VALUES),
        "NNConv": lambda i, o: conv.NNConv(i, o, _mlp(VALUES, i * o)),
        "GENConv, edge_dim": lambda i, o: conv.GENConv(i, o, edge_dim=VALUES),
        "GMMConv": lambda i, o: conv.GMMConv(i, o, dim=VALUES, kernel_size=2),
        "PDNConv": lambda i, o: conv.PDNConv(i, o, edge_dim=VALUES, hidden_channels=HIDDEN),
        "ResGatedGraphConv, edge_dim": lambda i, o: conv.ResGatedGraphConv(i, o, edge_dim=VALUES),
        "GeneralConv, in_edge_channels": lambda i, o: conv.GeneralConv(i, o, in_edge_channels=VALUES),
    }
    return {name: partial(ReadsValues, make) for name, make in makes.items()}


def _norms() -> dict[str, Make]:
    """GCN with a norm in between."""
    norms = {
        "BatchNorm": norm.BatchNorm(HIDDEN),
        "LayerNorm, node": norm.LayerNorm(HIDDEN, mode="node"),
        "LayerNorm, graph": norm.LayerNorm(HIDDEN, mode="graph"),
        "InstanceNorm": norm.InstanceNorm(HIDDEN),
        "GraphNorm": norm.GraphNorm(HIDDEN),
        "GraphSizeNorm": norm.GraphSizeNorm(),
        "PairNorm": norm.PairNorm(),
        "MeanSubtractionNorm": norm.MeanSubtractionNorm(),
        "DiffGroupNorm": norm.DiffGroupNorm(HIDDEN, groups=2),
    }
    return {f"GCN with {name}": partial(Nodes, conv.GCNConv, one) for name, one in norms.items()}


def _aggregations() -> dict[str, Make]:
    """GraphSAGE with other aggregations."""
    named = ("sum", "mean", "max", "min", "mul", "var", "std", "softmax", "powermean", "median", "lstm")
    made: dict[str, Make] = {
        f"SAGEConv, {name}": partial(Nodes, lambda i, o, name=name: conv.SAGEConv(i, o, aggr=name)) for name in named
    }
    made["SAGEConv, mean + max"] = partial(
        Nodes, lambda i, o: conv.SAGEConv(i, o, aggr=aggr.MultiAggregation(["mean", "max"], mode="sum"))
    )
    return made


def _whole_models() -> dict[str, Make]:
    """Models of PyG for nodes."""
    return {
        "models.GCN": lambda: models.GCN(FEATURES, HIDDEN, 2, CLASSES),
        "models.GraphSAGE": lambda: models.GraphSAGE(FEATURES, HIDDEN, 2, CLASSES),
        "models.GIN": lambda: models.GIN(FEATURES, HIDDEN, 2, CLASSES),
        "models.GAT": lambda: models.GAT(FEATURES, HIDDEN, 2, CLASSES),
        "models.EdgeCNN": lambda: models.EdgeCNN(FEATURES, HIDDEN, 2, CLASSES),
        "models.PMLP": lambda: models.PMLP(FEATURES, HIDDEN, CLASSES, 2),
        "models.GraphUNet": lambda: models.GraphUNet(FEATURES, HIDDEN, CLASSES, 2),
        "models.LINKX": lambda: models.LINKX(40, FEATURES, HIDDEN, CLASSES, 1),
        "models.RECT_L": lambda: models.RECT_L(FEATURES, HIDDEN),
        "models.SGFormer": lambda: models.SGFormer(FEATURES, HIDDEN, CLASSES),
        "models.Polynormer": lambda: models.Polynormer(FEATURES, HIDDEN, CLASSES),
        **{f"GCN, JumpingKnowledge {mode}": partial(Jumps, mode) for mode in ("cat", "max", "lstm")},
    }


def _readouts() -> dict[str, Make]:
    """Graph classifiers: GIN with a readout, or with a pooling layer."""
    readouts: dict[str, tuple[nn.Module, int]] = {
        "sum": (_Readout(pool.global_add_pool), HIDDEN),
        "mean": (_Readout(pool.global_mean_pool), HIDDEN),
        "max": (_Readout(pool.global_max_pool), HIDDEN),
        "std": (aggr.StdAggregation(), HIDDEN),
        "softmax": (aggr.SoftmaxAggregation(), HIDDEN),
        "attention": (aggr.AttentionalAggregation(nn.Linear(HIDDEN, 1)), HIDDEN),
        "Set2Set": (aggr.Set2Set(HIDDEN, 2), 2 * HIDDEN),
        "DeepSets": (aggr.DeepSetsAggregation(nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)), HIDDEN),
        "sort": (aggr.SortAggregation(2), 2 * HIDDEN),
        "median": (aggr.MedianAggregation(), HIDDEN),
        "GraphMultisetTransformer": (aggr.GraphMultisetTransformer(HIDDEN, 2), HIDDEN),
        "SetTransformer": (aggr.SetTransformerAggregation(HIDDEN), HIDDEN),
    }
    made: dict[str, Make] = {
        f"GIN, readout {name}": partial(Graphs, layer, width) for name, (layer, width) in readouts.items()
    }
    made["GCN, TopKPooling"] = lambda: Pooled(pool.TopKPooling(HIDDEN))
    made["GCN, SAGPooling"] = lambda: Pooled(pool.SAGPooling(HIDDEN))
    return made


class _Readout(nn.Module):
    def __init__(self, pooling: Callable[..., Tensor]) -> None:
        super().__init__()
        self.pooling = pooling

    def forward(self, x: Tensor, batch: Tensor, dim_size: int | None = None) -> Tensor:
        return self.pooling(x, batch, dim_size)


KINDS: dict[str, Callable[[], dict[str, Make]]] = {
    "layer": _layers,
    "layer that reads edge values": _with_values,
    "norm": _norms,
    "aggregation": _aggregations,
    "model": _whole_models,
    "graph classifier": _readouts,
}


def _graph(size: int, seed: int, values: bool = False) -> Data:
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(size, (2, 3 * size), generator=generator)
    ends = ends[:, ends[0] != ends[1]]
    pairs = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    data = Data(x=torch.rand(size, FEATURES, generator=generator), edge_index=pairs)
    if values:
        data.edge_attr = torch.rand(pairs.size(1), VALUES, generator=generator)
    data.node_id = torch.arange(size)
    return data


def outcome(kind: str, make: Make) -> dict[str, Any]:
    """Returns whether a model is accepted, and why not."""
    torch.manual_seed(0)
    on_graphs = kind == "graph classifier"
    graphs = [_graph(8 + k, k) for k in range(6)]
    data: Any = graphs if on_graphs else _graph(40, 0, kind == "layer that reads edge values")
    try:
        model = make().eval()
    except (ImportError, TypeError, ValueError) as error:
        return {"outcome": "not built", "why": f"{type(error).__name__}: {error}".split("\n")[0]}
    try:
        report = ac.audit(model, data, ac.NodeCentric(5))
        if report.ok:
            ac.certify(model, data, ac.NodeCentric(5))
            return {"outcome": "accepted", "locality": report.locality, "why": ""}
        return {"outcome": "refused", "why": report.findings[0].why, "remedy": report.findings[0].remedy}
    except ac.AgnncertError as error:
        return {"outcome": "refused", "why": str(error).split("\n")[0]}
    except Exception as error:
        return {"outcome": "raw error", "why": f"{type(error).__name__}: {error}".split("\n")[0]}


def main() -> None:
    """Audits every model and writes the rows anew."""
    warnings.simplefilter("ignore")
    with RESULTS.open("w", encoding="utf-8") as file:
        for kind, models_of in KINDS.items():
            for name, make in models_of().items():
                row = {"kind": kind, "model": name, **outcome(kind, make)}
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(f"{row['outcome']:>9}  {name}  {row['why'][:90]}", flush=True)


if __name__ == "__main__":
    main()
