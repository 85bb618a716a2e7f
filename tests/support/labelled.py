"""Small labelled graphs, and the objectives written down naively: one subgraph after the other."""

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from agnncert.datasets.splits import GraphSet
from agnncert.divisions.base import Division
from agnncert.graphs.graph import one_graph
from agnncert.training.settings import FitSettings, checked


def fit_settings(objective="balanced", **more) -> FitSettings:
    """All settings of ``fit``, as objectives take them."""
    return checked({"objective": objective, **more}, "node")


def labelled_graph(
    num_nodes=30, classes=3, features=5, seed=0, sparse=False, noise=1.0, degree=3, dtype=torch.float64
) -> Data:
    """Nodes of a class have similar features and are joined more often than others; some have no edge."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(num_nodes) % classes)
    x = noise * random.normal(size=(num_nodes, features)) + 2 * np.eye(classes, features)[y]
    if sparse:
        x = np.where(random.random(x.shape) < 0.05, x, 0.0)
    ends = random.integers(0, num_nodes - 2, size=(2, 3 * degree * num_nodes // 2))
    alike = y[ends[0]] == y[ends[1]]
    ends = ends[:, (ends[0] != ends[1]) & (alike | (random.random(len(alike)) < 0.1))]
    part = random.permutation(np.arange(num_nodes) % 3)
    return Data(
        x=torch.from_numpy(x).to(dtype),
        edge_index=to_undirected(torch.from_numpy(ends), num_nodes=num_nodes),
        y=torch.from_numpy(y),
        node_id=torch.from_numpy(random.permutation(1000)[:num_nodes]),
        **{f"{name}_mask": torch.from_numpy(part == k) for k, name in enumerate(("train", "val", "test"))},
    )


def labelled_graphs(count=12, classes=2, seed=0, dtype=torch.float64) -> GraphSet:
    """Graphs whose class shows in their features; one has no edge, one a single node."""
    graphs = [
        labelled_graph(int(size), classes, seed=seed + k)
        for k, size in enumerate(np.random.default_rng(seed).integers(6, 12, count))
    ]
    for k, graph in enumerate(graphs):
        for name in ("train_mask", "val_mask", "test_mask"):
            del graph[name]
        graph.y = torch.tensor([k % classes])
        graph.x = (graph.x + 3 * graph.y).to(dtype)
    graphs[2].edge_index = graphs[2].edge_index[:, :0]
    graphs[3] = Data(x=graphs[3].x[:1], edge_index=graphs[3].edge_index[:, :0], y=graphs[3].y, node_id=[7])
    half = count // 2
    return GraphSet(graphs, train=range(half), val=range(half, count))


def naive_node_loss(model, graph, y, rows, division, class_weight=None):
    """The paper's sum: the mean loss on the graph, and on each of its subgraphs in turn."""
    total = _node_losses(model, graph, y, rows, class_weight).mean()
    groups = division.groups(graph)
    for index in range(division.num_groups):
        part = division.subgraph(graph, groups, index)
        voters = rows if part.abstain is None else rows[~part.abstain[rows]]
        total = total + _node_losses(model, part, y, voters, class_weight).sum() / len(rows)
    return total


def _node_losses(model, part, y, rows, class_weight=None):
    return F.cross_entropy(
        model(part.x, part.edge_index, **_values(part))[rows], y[rows], class_weight, reduction="none"
    )


def naive_graph_losses(model, joined, y, division, index):
    """The loss on one graph, and those on its subgraphs that have a node."""
    graph = one_graph(joined, index)
    groups = division.groups(graph)
    parts = [division.subgraph(graph, groups, k) for k in range(division.num_groups)]
    whole, *rest = (
        F.cross_entropy(
            model(part.x, part.edge_index, torch.zeros(part.x.size(0), dtype=torch.int64), **_values(part)),
            y[index : index + 1],
        )
        for part in [graph, *parts]
        if part.x.size(0)
    )
    return whole, rest


def _values(part):
    return {"edge_weight": part.edge_weight} if part.edge_weight is not None else {}


def gradient(model, backward):
    """What ``backward`` returns, and the gradient it leaves, one vector per parameter."""
    model.zero_grad()
    value = backward()
    grads = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    return float(value), grads


def naive_gradient(model, loss):
    """As ``gradient``, of a loss that is a tensor."""

    def backward():
        value = loss()
        value.backward()
        return value.detach()

    return gradient(model, backward)


def assert_same(found, expected, tolerance):
    """Values and gradients agree, each parameter by itself."""
    assert abs(found[0] - expected[0]) <= tolerance * abs(expected[0])
    size = torch.cat([g.reshape(-1) for g in expected[1]]).norm()
    for mine, theirs in zip(found[1], expected[1], strict=True):
        # A parameter whose gradient nearly vanishes (the bias before a normalisation) is measured against all.
        assert (mine - theirs).norm() <= tolerance * max(theirs.norm(), 1e-2 * size)


class ThreeMethods(Division):
    """A user's own division: what the base class asks for, and no more."""

    def __init__(self, division):
        self.num_groups, self.division = division.num_groups, division

    def groups(self, graph):
        return self.division.groups(graph)

    def subgraph(self, graph, groups, index):
        return self.division.subgraph(graph, groups, index)

    def votes_moved(self, change, graph, target=None):
        return self.division.votes_moved(change, graph, target)
