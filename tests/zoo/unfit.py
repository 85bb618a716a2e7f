"""Models that are not local, written by somebody who would like to pass the audit, and what it must say about each."""

import hashlib
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.utils import degree, dropout_edge, scatter, softmax

from tests.zoo.local import CLASSES, HIDDEN, WIDTH, Plain, Pooled

FEATURES, OVERFLOW, VALUES = "other features elsewhere", "infinite features elsewhere", "other edge values elsewhere"
EDGES, PLACES, NUMBERS = "other edges elsewhere", "edges at other places of the list", "more nodes and edges elsewhere"
ROWS, MEMORY, CHANCE = "nodes and edges in another order", "another graph in between", "the same graph twice"
OUTGOING, BATCH, NOT_FINITE = "arcs that leave a node", "other graphs in one batch", "the graph as it is"
FAILS, ALONE = "a graph of", "nodes without edges one by one"


class Base(nn.Module):
    """A local model with a hole: subclasses fill in ``leak``, which is added to its hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = pyg.SAGEConv(WIDTH, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def leak(self, x, hidden, edge_index):
        raise NotImplementedError

    def forward(self, x, edge_index):
        hidden = self.conv(x, edge_index).tanh()
        return self.out(hidden + self.leak(x, hidden, edge_index))


def leaking(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    """A model with this leak."""

    class Leaking(Base):
        def leak(self, x, hidden, edge_index):
            return function(x, hidden, edge_index)

    return Leaking


class ByWeight(nn.Module):
    """A local layer with weights that subclasses spoil."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GraphConv(WIDTH, CLASSES)

    def spoilt(self, weight, edge_index, x):
        raise NotImplementedError

    def forward(self, x, edge_index, edge_weight):
        return self.conv(x, edge_index, self.spoilt(edge_weight, edge_index, x))


def weighing(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    """A model with edge weights that went through this."""

    class Weighing(ByWeight):
        def spoilt(self, weight, edge_index, x):
            return function(weight, edge_index, x) if weight.numel() else weight

    return Weighing


class ByEdges(nn.Module):
    """A local layer on some of the edges, which subclasses choose."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(WIDTH, CLASSES)

    def chosen(self, x, edge_index):
        raise NotImplementedError

    def forward(self, x, edge_index):
        return self.conv(x, edge_index[:, self.chosen(x, edge_index)])


def choosing(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    """A model that hears the edges chosen by this."""

    class Choosing(ByEdges):
        def chosen(self, x, edge_index):
            return function(x, edge_index)

    return Choosing


# Memory


def counting() -> nn.Module:
    """Counts its calls, and changes its mind after some."""
    calls = itertools.count()
    return leaking(lambda x, h, e: 0.01 * h * (next(calls) > 12))()


class RunningMean(Base):
    """Keeps a running mean in a buffer, in evaluation mode too."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(HIDDEN))

    def leak(self, x, hidden, edge_index):
        self.mean = 0.9 * self.mean + 0.1 * hidden.detach().nan_to_num().mean(0)
        return 0.1 * self.mean


class CachedNorm(Base):
    """Keeps the in-degrees of the first graph of each size."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Any] = {}

    def leak(self, x, hidden, edge_index):
        return hidden / self.kept.setdefault(len(x), 1 + degree(edge_index[1], len(x), dtype=x.dtype))[:, None]


def hidden_state() -> nn.Module:
    """Keeps the largest graph seen in a closure, where no copy of the module finds it."""
    seen = {"nodes": 0}

    def leak(x, hidden, edge_index):
        seen["nodes"] = max(seen["nodes"], len(x))
        return 1e-3 * seen["nodes"] * torch.ones_like(hidden)

    return leaking(leak)()


def alternating() -> nn.Module:
    """Says something else every second time."""
    turn = itertools.cycle([0.0, 1e-6])
    return leaking(lambda x, h, e: h * next(turn))()


# Places in the list


class WeightPerEdge(nn.Module):
    """A learned weight for each place in the list of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.weight = pyg.GraphConv(WIDTH, CLASSES), nn.Parameter(torch.rand(50_000))

    def forward(self, x, edge_index):
        return self.conv(x, edge_index, self.weight[: edge_index.size(1)])


class WeightOfThisGraph(WeightPerEdge):
    """As many weights as the graph has edges."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(265))

    def forward(self, x, edge_index):
        return self.conv(x, edge_index, self.weight[torch.arange(edge_index.size(1))])


class EmbeddingPerRow(Base):
    """A learned vector for each row number."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(20_000, HIDDEN)

    def leak(self, x, hidden, edge_index):
        return self.emb(torch.arange(len(x)))


def drop_edge(x, edge_index):
    torch.manual_seed(0)
    return dropout_edge(edge_index, p=0.3, force_undirected=False)[1]


def drop_few(x, edge_index):
    """Drops edges only in graphs that have very many."""
    generator = torch.Generator().manual_seed(7)
    keep = torch.rand(edge_index.size(1), generator=generator) > 0.2
    return keep | torch.tensor(edge_index.size(1) < 400)


def permuted_neighbours(fanout):
    """At most this many neighbours of each node, out of a shuffle with a fixed seed."""

    def chosen(x, edge_index):
        order = torch.randperm(edge_index.size(1), generator=torch.Generator().manual_seed(0))
        head = edge_index[1, order]
        by_head = torch.argsort(head, stable=True)
        starts = torch.cumsum(degree(head, len(x), dtype=torch.int64), 0) - degree(head, len(x), dtype=torch.int64)
        rank = torch.empty_like(by_head)
        rank[by_head] = torch.arange(len(by_head)) - starts[head[by_head]]
        return torch.sort(order[rank < fanout])[0]

    return chosen


def sampled_neighbours(x, edge_index):
    """``random.sample`` of 25 neighbours, node after node, from one fixed seed."""
    dice, kept = random.Random(0), []
    heads = edge_index[1].tolist()
    mine: dict[int, list[int]] = {}
    for place, head in enumerate(heads):
        mine.setdefault(head, []).append(place)
    for head in sorted(mine):
        kept += sorted(dice.sample(mine[head], min(25, len(mine[head]))))
    return torch.tensor(sorted(kept), dtype=torch.int64)


def every_other(x, edge_index):
    return torch.arange(edge_index.size(1)) % 2 == 0


# Edge values


def edge_statistics(weight, edge_index, x):
    return (weight - weight.mean()) / (weight.std(unbiased=False) + 1e-3)


class EdgeNorm(nn.Module):
    """A batch norm over edges that keeps no statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm1d(1, track_running_stats=False), pyg.GraphConv(WIDTH, CLASSES)

    def forward(self, x, edge_index, edge_weight):
        if len(edge_weight) > 1:
            edge_weight = F.batch_norm(edge_weight[:, None], None, None, training=True).view(-1)
        return self.conv(x, edge_index, edge_weight)


# Outgoing arcs


def out_degree_difference(x, hidden, edge_index):
    out = degree(edge_index[0], len(x), dtype=x.dtype)
    return hidden * (out - out.clamp(max=2))[:, None] * 1e-3


def out_degree_softmax(x, hidden, edge_index):
    source, head = edge_index
    share = softmax(degree(source, len(x), dtype=x.dtype)[source], head, num_nodes=len(x))
    return scatter(share[:, None] * hidden[source], head, 0, len(x), reduce="sum")


def walk(x, hidden, edge_index):
    source, head = edge_index
    share = hidden / degree(source, len(x), dtype=x.dtype).clamp(min=1)[:, None]
    return scatter(share[source], head, 0, len(x), reduce="sum")


def who_listens(x, hidden, edge_index):
    """Hears the mean of those that it speaks to."""
    return 1e-4 * scatter(hidden[edge_index[1]], edge_index[0], 0, len(x), reduce="mean")


def answers(x, hidden, edge_index):
    """Whether a node speaks at all."""
    return 1e-5 * torch.zeros_like(hidden).index_fill(0, edge_index[0], 1.0)


# Evasion


def polite_to_poison(x, hidden, edge_index):
    """Leaks only when everything is finite."""
    return 0.1 * x.mean() if bool(torch.isfinite(x).all()) else 0.0 * hidden.nan_to_num()


def polite_to_large(x, hidden, edge_index):
    """Leaks only what is of ordinary size."""
    ordinary = x.nan_to_num(0, 0, 0)
    return 0.1 * torch.where(ordinary.abs() < 1e6, ordinary, 0).mean()


def polite_to_small(x, hidden, edge_index):
    """Behaves well in small graphs."""
    return 0.1 * hidden.nan_to_num().mean(0) if len(x) > 900 else 0.0


def edge_hash(x, hidden, edge_index):
    digest = hashlib.sha256(edge_index.numpy().tobytes()).digest()[0]
    return digest / 1e4


def dense_attention(x, hidden, edge_index):
    return 1e-6 * torch.softmax(hidden.nan_to_num() @ hidden.nan_to_num().t(), 1) @ hidden.nan_to_num()


def top_edges(x, edge_index):
    score = x[edge_index[0], 0].nan_to_num() - x[edge_index[1], 1].nan_to_num()
    return torch.topk(score, score.numel() // 2).indices.sort()[0]


class Dense(nn.Module):
    """Multiplies everything by a matrix that is mostly zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        dense = torch.zeros(len(x), len(x), dtype=x.dtype)
        dense[edge_index[1], edge_index[0]] = 1.0
        return self.lin(x) + dense @ self.lin(x)


class PaddedLSTM(nn.Module):
    """PyG's LSTM over neighbours: it pads every node's list to the length of the longest in the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.few = nn.Linear(WIDTH, 2)  # the LSTM takes many steps: it takes them with few numbers
        self.conv = pyg.SAGEConv(2, CLASSES, aggr="lstm")

    def forward(self, x, edge_index):
        x, by_head = self.few(x), edge_index[:, torch.argsort(edge_index[1], stable=True)]
        return self.conv(x, by_head) if edge_index.numel() else self.conv.lin_r(x)


class NoLogits(nn.Module):
    """Takes the logarithm of what can be 0."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index).relu().log() - 1


class FirstRow(nn.Module):
    """Row 0 is a friend."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.lin(x) + 1e-4 * self.lin(x[:1])


@dataclass(frozen=True)
class Unfit:
    """A model, what the audit must say, and in which divisions it is unfit."""

    make: Callable[[], nn.Module]
    says: str
    one_way_only: bool = False  # fit for the edge-centric division
    large: bool = False  # seen only in a graph of more than a thousand nodes


def of(function: Any, says: str, **facts: Any) -> Unfit:
    return Unfit(leaking(function), says, **facts)


def weights(function: Any, says: str = VALUES) -> Unfit:
    return Unfit(weighing(function), says)


def edges(function: Any, says: str = PLACES) -> Unfit:
    return Unfit(choosing(function), says)


H = HIDDEN
UNFIT: dict[str, Unfit] = {
    "mean of all": of(lambda x, h, e: 0.1 * h.mean(0), FEATURES),
    "a tiny part of the mean": of(lambda x, h, e: 1e-5 * x.mean(), FEATURES),
    "less than rounding of the mean": of(lambda x, h, e: 1e-12 * x.mean(), FEATURES),
    "largest of all": of(lambda x, h, e: 1e-3 * x.nan_to_num().amax().clamp(max=9), FEATURES),
    "standardised columns": of(lambda x, h, e: (h - h.mean(0)) / (h.std(0) + 1e-5), FEATURES),
    "median of all": of(lambda x, h, e: 0.1 * h.median(0).values, FEATURES),
    "a vote of all": of(lambda x, h, e: 1e-4 * (x[:, 0] > 0).sum(), FEATURES),
    "rank among all": of(lambda x, h, e: 1e-5 * torch.argsort(torch.argsort(x[:, 0]))[:, None], FEATURES),
    "attention to all": of(dense_attention, FEATURES),
    "a friend in row 0": Unfit(FirstRow, FEATURES),
    "the last row": of(lambda x, h, e: 1e-4 * h[-1:], ROWS),
    "the row before": of(lambda x, h, e: 1e-4 * h.roll(1, 0), ROWS),
    "polite to poison": of(polite_to_poison, FEATURES),
    "polite to large numbers": of(polite_to_large, FEATURES),
    "polite to small graphs": of(polite_to_small, FEATURES, large=True),
    "only if somebody is extreme": of(lambda x, h, e: h * (x.abs().amax() > 50).float(), FEATURES),
    "an edge that looks best": edges(top_edges, FEATURES),
    "dense matrix": Unfit(Dense, OVERFLOW),
    "number of nodes": of(lambda x, h, e: 1e-7 * len(x), NUMBERS),
    "number of edges": of(lambda x, h, e: 1e-7 * e.size(1), NUMBERS),
    "largest degree": of(lambda x, h, e: 1e-4 * (e[1].bincount().max() if e.numel() else 0), EDGES),
    "mean degree of nodes with edges": of(lambda x, h, e: 1e-4 * e.size(1) / (1 + e[1].unique().numel()), EDGES),
    "hash of the edges": of(edge_hash, EDGES),
    "the first edge": of(lambda x, h, e: 1e-4 * h[e[0, :1]].sum() if e.numel() else 0 * h, FEATURES),
    "lstm over neighbours, padded": Unfit(PaddedLSTM, EDGES),
    "EGConv without symnorm": Unfit(lambda: Plain(pyg.EGConv(WIDTH, H, aggregators=["sum", "max"], num_heads=4)), ROWS),
    "DropEdge with a fixed seed": edges(drop_edge),
    "DropEdge in large graphs": edges(drop_few),
    "neighbours sampled, 10": edges(permuted_neighbours(10)),
    "neighbours sampled, 25": edges(permuted_neighbours(25)),
    "neighbours sampled, node by node": edges(sampled_neighbours, ROWS),
    "every other edge": edges(every_other),
    "a weight for each edge": Unfit(WeightPerEdge, PLACES),
    "a weight for each edge of this graph": Unfit(WeightOfThisGraph, FAILS),
    "a vector for each row": Unfit(EmbeddingPerRow, ROWS),
    "a phase by row": of(lambda x, h, e: torch.arange(len(x))[:, None].sin() * 1e-4, ROWS),
    "a phase by edge": weights(lambda w, e, x: w * (1 + 1e-5 * torch.arange(len(w)).sin()), PLACES),
    "dropout with a fixed seed": of(lambda x, h, e: torch.manual_seed(0) and F.dropout(h, 0.5, training=True), ROWS),
    "weights by the largest": weights(lambda w, e, x: w / w.max()),
    "weights by their sum": weights(lambda w, e, x: w / w.sum() * 100),
    "softmax of all weights": weights(lambda w, e, x: w.softmax(0)),
    "weights standardised": weights(edge_statistics),
    "weights by rank": weights(lambda w, e, x: torch.argsort(torch.argsort(w)) / len(w)),
    "the best half of the weights": weights(lambda w, e, x: w * (w >= w.nan_to_num().median())),
    "weights cut at a quantile": weights(lambda w, e, x: w.minimum(w.nan_to_num().quantile(0.9))),
    "batch norm over edges": Unfit(EdgeNorm, "BatchNorm1d(track_running_stats=False)"),
    "out-degree by difference": of(out_degree_difference, OUTGOING, one_way_only=True),
    "out-degree by softmax": of(out_degree_softmax, OUTGOING, one_way_only=True),
    "out-degree of the sender": of(walk, OUTGOING, one_way_only=True),
    "those who listen": of(who_listens, OUTGOING, one_way_only=True),
    "whether it speaks at all": of(answers, OUTGOING, one_way_only=True),
    "counts its calls": Unfit(counting, MEMORY),
    "a running mean": Unfit(RunningMean, CHANCE),
    "a cache by size": Unfit(CachedNorm, MEMORY),
    "a closure": Unfit(hidden_state, MEMORY),
    "every second time": Unfit(alternating, CHANCE),
    "the time": of(lambda x, h, e: 1e-7 * (time.perf_counter_ns() % 999_983), CHANCE),  # 997 may agree by chance
    "chance": of(lambda x, h, e: 1e-6 * torch.randn_like(h), CHANCE),
    "python's chance": of(lambda x, h, e: 1e-4 * random.random(), CHANCE),
    "not a number": Unfit(NoLogits, NOT_FINITE),
}

UNFIT_FOR_GRAPHS: dict[str, Unfit] = {
    "norm over the batch": Unfit(lambda: Pooled(pyg.global_mean_pool, norm=IgnoresBatch(pyg.GraphNorm(H))), BATCH),
    "mean over the batch": Unfit(lambda: Pooled(lambda x, b: pyg.global_mean_pool(x, b) + 1e-6 * x.mean()), BATCH),
    "number of graphs": Unfit(lambda: Pooled(lambda x, b: pyg.global_mean_pool(x, b) + 1e-6 * b[-1]), BATCH),
    "sorted nodes": Unfit(lambda: Pooled(pyg.SortAggregation(3), 3 * H), BATCH),
    "the first node of each graph": Unfit(lambda: Pooled(FirstNode()), ROWS),
    "chance": Unfit(lambda: Pooled(lambda x, b: pyg.global_add_pool(x, b) + 1e-5 * torch.rand(1)), CHANCE),
}


class IgnoresBatch(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x, batch):
        return self.norm(x)


class FirstNode(nn.Module):
    def forward(self, x, batch):
        first = torch.searchsorted(batch, torch.arange(int(batch[-1]) + 1))
        return x[first]
