"""Graphs and models whose scores are mostly rounding error, and what must hold of them on every path of the library."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from agnncert.certificates.votes import Votes
from agnncert.divisions.base import Division
from agnncert.engine.adapter import bind
from agnncert.engine.votes import Execution, compute_votes
from agnncert.graphs.canonical import canonical
from agnncert.graphs.perturbation import Perturbation

WIDTH, NODES = 200, 40
TOLERANCE = 32 * torch.finfo(torch.float32).eps  # the least that certify takes
LAYERS = {
    "gcn": GCNConv, "sage": SAGEConv, "gat": GATConv, "gin": lambda a, b: GINConv(nn.Linear(a, b)),
}  # fmt: skip


def wild_data(seed: int, big: float = 1e8, nodes: int = NODES, wild: int = NODES) -> Data:
    """Sparse features; those of the last ``wild`` nodes have two large entries that cancel."""
    random = torch.Generator().manual_seed(seed)
    x = torch.zeros(nodes, WIDTH)
    for node in range(nodes):
        place = torch.randperm(WIDTH, generator=random)[:6]
        x[node, place] = torch.randn(6, generator=random)
        if node >= nodes - wild:
            x[node, place[:2]] = torch.tensor([big, -big])
    edges = torch.randint(0, nodes, (2, 3 * nodes // 2), generator=random)
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), node_id=torch.arange(nodes))


class Cancelling(nn.Module):
    """Two layers; the first treats all features alike, so that entries that cancel do."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second = LAYERS[kind](WIDTH, 16), LAYERS[kind](16, 3)
        for weight in self.first.parameters():
            if weight.dim() == 2 and weight.size(1) == WIDTH:
                weight.data = weight.data[:, :1].repeat(1, WIDTH)
        self.eval()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class CancellingInside(nn.Module):
    """Tame features, and a hidden layer whose large weights cancel."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second = GCNConv(WIDTH, 16), GCNConv(32, 3)
        wide = 1e7 * torch.randn(3, 16)
        self.second.lin.weight.data = torch.cat([wide + torch.randn(3, 16), -wide], dim=1)
        self.eval()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = self.first(x, edge_index).relu()
        return self.second(torch.cat([hidden, hidden], dim=1), edge_index)


def with_dense_strangers(data: Data, count: int = 60, seed: int = 9) -> Data:
    """The attack: isolated nodes with this many features that a sparse product no longer pays for anybody."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, data.x.size(1), generator=random)
    return Perturbation(inject_nodes={10_000 + k: row.tolist() for k, row in enumerate(rows)}).apply(data)


def votes_on(model: Any, data: Data, division: Division, engine: Any, memory_limit: int | None = None) -> Votes:
    graph = canonical(data)
    return compute_votes(
        bind(model, graph, "node"),
        graph,
        division,
        np.arange(NODES),
        engine,
        TOLERANCE,
        execution=Execution(memory_limit),
    )[0]


def _votes_on_every_path(model: Any, data: Data, divisions: Sequence[Division]) -> list[list[Votes]]:
    graph = canonical(data)
    call, rows = bind(model, graph, "node"), np.arange(NODES)  # bound once, as certify does: each time copies the model
    paths = [("fast", None), ("fast", 1), ("naive", None)]
    return [
        [
            compute_votes(call, graph, division, rows, engine, TOLERANCE, execution=Execution(limit))[0]
            for engine, limit in paths
        ]
        for division in divisions
    ]


def check_stable_votes_hold(model: Any, data: Data, *divisions: Division) -> list[float]:
    """A stable vote has the same class on every path, with and without strangers.

    Returns the share of stable ones in each division.
    """
    here, there = (_votes_on_every_path(model, one, divisions) for one in (data, with_dense_strangers(data)))
    for cast_here, cast_there in zip(here, there, strict=True):
        for votes in cast_here:
            for other in cast_here + cast_there:
                wrong = votes.stable & (votes.vote != other.vote)
                assert not wrong.any(), f"{wrong.sum()} stable votes differ"
                assert not (votes.default_stable & (votes.default != other.default)).any()
    return [float(cast_here[0].stable.mean()) for cast_here in here]
