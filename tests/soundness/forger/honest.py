"""Honest certificates of every kind, tiny and rich, with the graph and the model that each of them speaks about.

All numbers are drawn by numpy and are sums of few binary fractions, so that graphs, weights and their digests are the
same on every machine.
"""

import copy
import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.graphs.graph import CanonicalGraph
from agnncert.proving.certificate import Certificate
from agnncert_peers.smoothing import Smoothing
from tests.soundness.golden import examples as golden
from tests.support.models import GraphModel, NodeModel


@dataclass(frozen=True)
class Case:
    """What an honest certificate is made from.

    Attributes:
        name: Its name in tables.
        data: The graph, or the graphs.
        model: The model.
        division: The defence.
        targets: Rows of the targets, in their order; all when ``None``.
        settings: Further arguments of ``certify``.
        budgets: What the file makes statements about; the usual ones when ``None``.
        file: A stored file that is the honest certificate; else it is made when it is needed.
    """

    name: str
    data: Any
    model: Any
    division: Any
    targets: tuple[int, ...] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    budgets: tuple[Budget, ...] | None = (Budget(add_edges=1), Budget(delete_edges=math.inf, change_features=2))
    file: Path | None = None

    @property
    def theorem(self) -> str | None:
        """The rule of its votes; None for samples. Known without certifying, as is the next."""
        task = "graph" if isinstance(self.data, list) else "node"
        return None if isinstance(self.division, Smoothing) else self.division.theorem(task)

    @property
    def has_truth(self) -> bool:
        """Whether the data has true classes."""
        return (self.data[0] if isinstance(self.data, list) else self.data).y is not None

    def certify(self, targets: Any = None, **changes: Any) -> Certificate:
        """The honest certificate, or that of other targets."""
        chosen = self.targets if targets is None else targets
        rows = None if chosen is None else list(chosen)
        given, division = self.settings | changes, self.division
        if isinstance(division, Smoothing):
            own = {setting.name for setting in fields(division)}
            division = replace(division, **{name: given.pop(name) for name in own & given.keys()})
        return ac.certify(self.model, self.data, division, targets=rows, **given)

    @property
    def total(self) -> int:
        """Number of nodes or graphs in the data."""
        return len(self.data) if isinstance(self.data, list) else int(self.data.num_nodes)


def decisive(model: Any, seed: int) -> Any:
    """The module in eval mode, in float64, with weights that are multiples of 1/4."""
    rng = np.random.default_rng(seed)
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.as_tensor(rng.integers(-6, 7, tuple(parameter.shape)) / 4))
    return model


class Sums(nn.Module):
    """Two rounds of sums over neighbours, weighted if edges have weights; plain torch, because it runs many times."""

    def __init__(self, width: int = 3, hidden: int = 4, classes: int = 3) -> None:
        super().__init__()
        self.first, self.near = nn.Linear(width, hidden), nn.Linear(width, hidden, bias=False)
        self.second, self.far = nn.Linear(hidden, classes), nn.Linear(hidden, classes, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        hidden = (self.first(x) + self.near(_heard(x, edge_index, edge_weight))).tanh()
        return self.second(hidden) + self.far(_heard(hidden, edge_index, edge_weight))


def _heard(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    sent = x[edge_index[0]] if edge_weight is None else edge_weight[:, None] * x[edge_index[0]]
    return torch.zeros_like(x).index_add(0, edge_index[1], sent)


class Mixing(Sums):
    """Subtracts the mean of all nodes: fit for changes of edges alone."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return super().forward(x - x.mean(0), edge_index)


class Readout(nn.Module):
    """The sums of each graph's nodes, and one layer more."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = Sums(), nn.Linear(3, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        hidden = self.body(x, edge_index)
        number = int(batch[-1]) + 1 if len(batch) else 0
        return self.head(hidden.new_zeros(number, 3).index_add(0, batch, hidden))


@dataclass(frozen=True)
class ByLargerKey(ac.Division):
    """A division of somebody's own: an edge goes to the group of the larger of its two keys."""

    num_groups: int = 5

    @property
    def unit_costs(self) -> dict[str, int]:
        return {"add_edges": 1, "delete_edges": 1, "change_edges": 1, "change_features": self.num_groups}

    def groups(self, graph: CanonicalGraph) -> Tensor:
        return graph.node_key[graph.edge_index].max(dim=0).values % self.num_groups

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        return graph.with_edges(groups == index)

    def votes_moved(self, change: Any, graph: CanonicalGraph, target: int | None) -> int:
        return self.num_groups


def a_graph(
    seed: int, nodes: int = 14, ids: str = "numbers", known: bool = True, loops: int = 0, binary: bool = False
) -> Data:
    """A random graph: ``ids`` are "numbers", "words" or "rows"; ``known`` tells whether true classes are."""
    rng = np.random.default_rng(seed)
    pairs = [(u, v) for u in range(nodes) for v in range(u + 1, nodes) if rng.random() < 2.6 / nodes]
    arcs = [*pairs, *((v, u) for u, v in pairs), *((u, u) for u in range(loops))]
    x = rng.integers(0, 2, (nodes, 3)).astype(float) if binary else rng.integers(-8, 9, (nodes, 3)) / 4
    data = Data(x=torch.from_numpy(x), edge_index=torch.tensor(arcs, dtype=torch.int64).view(-1, 2).t().contiguous())
    if ids == "numbers":
        data.node_id = torch.from_numpy(rng.permutation(np.arange(nodes) * 7 + 100))
    if ids == "words":
        data.node_id = [f"node-{k}é" for k in rng.permutation(nodes)]
    if known:
        data.y = torch.from_numpy(rng.integers(0, 3, nodes))
    return data


def some_graphs(seed: int, number: int = 7, ids: str = "numbers", known: bool = True) -> list[Data]:
    """Graphs of 5 to 9 nodes, each with one true class."""
    graphs = [a_graph(seed * 100 + k, 5 + k % 5, ids, known=False) for k in range(number)]
    for k, graph in enumerate(graphs):
        if known:
            graph.y = torch.tensor([(seed + k) % 3])
    return graphs


def weighted_graph(seed: int) -> Data:
    """A graph whose edges have weights, the same in both directions."""
    graph = a_graph(seed, known=False)
    graph.edge_weight = (graph.edge_index.sum(0) % 5).double() / 2 + 0.5
    return graph


def some_arcs(graph: Data) -> Data:
    """The graph without the second direction of every third pair."""
    u, v = graph.edge_index
    graph.edge_index = graph.edge_index[:, (u <= v) | ((u + v) % 3 != 0)]
    return graph


def node_model(seed: int) -> Any:
    return decisive(Sums(), seed)


def graph_model(seed: int) -> Any:
    return decisive(Readout(), seed)


SAMPLES = {"selection": 20, "samples": 200, "alpha": 0.1, "seed": 3}
ODD = (9, 2, 11, 0, 5, 6, 13)  # some rows, in no order


def cases() -> dict[str, Case]:
    """Every kind of certificate, by name."""
    injected = (Budget(inject_nodes=1, edges_per_injected=2), Budget(inject_nodes=1, edges_per_injected=math.inf))
    flips = (Budget(add_edges=1), Budget(delete_edges=2))
    changed = (Budget(change_features=1), Budget(change_features=2, target_features=True))
    own = (Budget(target_features=True), Budget(change_features=1, target_features=True), Budget(add_edges=2))
    rs, sparse, birs = ac.baselines.RS, ac.baselines.SparseRS, ac.baselines.BiRS
    interception = ac.baselines.Interception
    e, n, en = ac.baselines.GNNCertE, ac.baselines.GNNCertN, ac.baselines.GNNCertEN
    listed = [
        Case("edge", a_graph(1), node_model(1), ac.EdgeCentric(6), budgets=None),
        Case("edge-words", a_graph(2, ids="words"), node_model(2), ac.EdgeCentric(5, hash="sha256"), ODD),
        Case(
            "edge-rows",
            a_graph(3, ids="rows", known=False),
            decisive(NodeModel("sage"), 3),
            ac.EdgeCentric(7),
            budgets=(),
        ),
        Case("edge-loops", a_graph(4, loops=4), decisive(NodeModel("gin"), 4), ac.EdgeCentric(5, self_loops=True), ODD),
        Case("edge-weights", weighted_graph(5), node_model(5), ac.EdgeCentric(4)),
        Case("edge-wary", a_graph(6), node_model(6), ac.EdgeCentric(6), ODD, {"tolerance": 0.3}),
        Case("edges-only", a_graph(7), decisive(Mixing(), 7), ac.EdgeCentric(6, edges_only=True), ODD),
        Case("node", a_graph(8), node_model(8), ac.NodeCentric(8), ODD),
        Case("node-words", a_graph(9, ids="words"), node_model(9), ac.NodeCentric(5)),
        Case("node-loops", a_graph(10, ids="rows", loops=5), node_model(10), ac.NodeCentric(6, self_loops=True), ODD),
        Case("gated", a_graph(11), node_model(11), ac.GatedNodeCentric(5), budgets=own),
        Case("gated-words", a_graph(12, ids="words"), node_model(12), ac.GatedNodeCentric(4, "sha1", True), ODD),
        Case("gnncert-e", a_graph(13), node_model(13), e(5), ODD),
        Case("gnncert-n", a_graph(14, ids="rows"), node_model(14), n(4), budgets=own),
        Case("gnncert-en", a_graph(15, nodes=10), node_model(15), en(2, 3), budgets=own),
        Case("custom", a_graph(16), node_model(16), ByLargerKey(), ODD),
        Case(
            "edge-prior",
            a_graph(17),
            node_model(17),
            ac.EdgeCentric(6),
            ODD,
            {"voting_rule": ac.VotingRule("abstain", 3)},
        ),
        Case(
            "node-prior",
            a_graph(18, ids="words"),
            node_model(18),
            ac.NodeCentric(5),
            ODD,
            {"voting_rule": ac.VotingRule(1, 2)},
        ),
        Case(
            "graphs-prior",
            some_graphs(11),
            graph_model(38),
            ac.EdgeCentric(6),
            (3, 0),
            {"voting_rule": ac.VotingRule(2, [0, 1, 3])},
        ),
        Case("own-edge", a_graph(19), node_model(19), ac.PerEdge(), ODD, {"voting_rule": ac.VotingRule(prior=3)}),
        Case(
            "own-edge-arcs",
            some_arcs(a_graph(20, ids="words", loops=3)),
            node_model(20),
            ac.PerEdge(self_loops=True),
            ODD,
            {"voting_rule": ac.VotingRule(1, [4, 0, 1])},
        ),
        Case(
            "own-node",
            a_graph(21, ids="rows"),
            node_model(41),
            ac.PerNeighbour(),
            ODD,
            {"voting_rule": ac.VotingRule(prior=2), "tolerance": 0.05},
            None,
        ),
        Case(
            "own-node-all", a_graph(22), node_model(42), ac.PerNeighbour(), None, {"voting_rule": ac.VotingRule(2, 4)}
        ),
        Case(
            "graphs-own-edge",
            some_graphs(12),
            graph_model(43),
            ac.PerEdge(),
            (3, 0, 6),
            {"voting_rule": ac.VotingRule(1, [0, 4, 2])},
        ),
        Case("graphs-own-node", some_graphs(13, ids="rows"), graph_model(44), ac.PerNeighbour(), budgets=None),
        Case("graphs-edge", some_graphs(1), graph_model(21), ac.EdgeCentric(6), (3, 0, 5, 2)),
        Case("graphs-edge-rows", some_graphs(2, ids="rows"), graph_model(22), ac.EdgeCentric(4, self_loops=True)),
        Case("graphs-node", some_graphs(3), decisive(GraphModel("sage"), 23), ac.NodeCentric(3), budgets=None),
        Case("graphs-node-rows", some_graphs(4, ids="rows", known=False), graph_model(24), ac.NodeCentric(4)),
        Case("graphs-gnncert-e", some_graphs(5), graph_model(25), e(4), (6, 1, 2)),
        Case("graphs-gnncert-n", some_graphs(6), graph_model(26), n(3)),
        Case("graphs-gnncert-en", some_graphs(7), graph_model(27), en(3, 2)),
        Case("graphs-custom", some_graphs(8), graph_model(28), ByLargerKey(4), (1, 4, 3)),
        Case("rs", a_graph(31), node_model(31), rs(0.9), (4, 1, 8), SAMPLES, flips),
        Case("rs-target-row", a_graph(32), node_model(32), rs(0.8, "target row"), (4, 1), SAMPLES, flips),
        Case("sparse-rs", a_graph(33, ids="words"), node_model(33), sparse(0.1, 0.4), (7, 3, 0), SAMPLES, flips),
        Case(
            "sparse-rs-features",
            a_graph(34, ids="rows", binary=True),
            node_model(34),
            sparse(0.1, 0.3, 0.02, 0.1),
            (2, 9),
            SAMPLES | {"scope": "all targets together"},
            flips,
        ),
        Case("bi-rs", a_graph(35), node_model(35), birs(0.5, 0.6, "sharp", 2), (6, 2, 3), SAMPLES, injected),
        Case("interception", a_graph(46), node_model(46), interception(0.3, 0.85, 2), (6, 2, 3), SAMPLES, changed),
        Case("graphs-rs", some_graphs(9), graph_model(36), rs(0.9), (3, 2), SAMPLES, flips),
        Case("graphs-sparse-rs", some_graphs(10), graph_model(37), sparse(0.1, 0.4), (0, 4), SAMPLES, flips),
    ]
    return {case.name: case for case in listed}


def golden_cases() -> dict[str, Case]:
    """The golden files."""
    listed = []
    for file in sorted((Path(golden.__file__).parent / "v1").glob("*.cert")):
        example = golden.EXAMPLES[file.stem]
        settings = {name: value for name, value in example.settings.items() if name != "targets"}
        targets = example.settings.get("targets")
        rows = None if targets is None else tuple(targets)
        name, data, model = f"golden {file.stem}", example.data(), example.model()
        listed.append(Case(name, data, model, example.division, rows, settings, example.budgets or None, file))
    return {case.name: case for case in listed}


def strangers(case: Case) -> list[tuple[str, Case]]:
    """The same kind of certificate about something else: another model, another graph, another division."""
    found = [("another model", replace(case, model=_other_model(case))), ("another graph", _other_graph(case))]
    return [*found, *((f"division {division}", replace(case, division=division)) for division in _others(case))]


def _other_model(case: Case) -> Any:
    """The same class with other weights."""
    return decisive(copy.deepcopy(case.model), 77)


def _other_graph(case: Case) -> Case:
    def altered(graph: Data) -> Data:
        graph = graph.clone()
        graph.x = 1 - graph.x if case.name == "sparse-rs-features" else graph.x + 0.25
        return graph

    graphs = case.data
    return replace(case, data=[altered(g) for g in graphs] if isinstance(graphs, list) else altered(graphs))


def _others(case: Case) -> list[Any]:
    division = case.division
    if case.file is not None:
        return []
    if isinstance(division, ac.PerEdge):  # a vote that fits one group per neighbour fits T of them
        return [ac.PerNeighbour(), ac.EdgeCentric(6), ac.NodeCentric(5)]
    if isinstance(division, ac.PerNeighbour):
        return [ac.PerEdge(), ac.NodeCentric(6), ac.EdgeCentric(5)]
    if isinstance(division, ac.EdgeCentric):
        return [
            replace(division, hash="blake2b"),
            ac.NodeCentric(division.num_groups),
            ac.baselines.GNNCertE(division.num_groups),
        ][: 1 if division.edges_only else 3]
    if isinstance(division, ac.NodeCentric):
        other = ac.NodeCentric if division.gates_features else ac.GatedNodeCentric
        gated = other(division.num_groups, division.hash, division.self_loops)
        return [replace(division, hash="blake2b"), gated, ac.EdgeCentric(division.num_groups)]
    if isinstance(division, ByLargerKey):
        return [ac.EdgeCentric(division.num_groups)]
    if isinstance(division, ac.baselines.GNNCertEN):
        return [replace(division, hash="blake2b"), ac.baselines.GNNCertE(division.num_groups)]
    if isinstance(division, ac.baselines.BiRS):
        return [replace(division, p_node=0.5), replace(division, test="B2")]
    if isinstance(division, ac.baselines.RS):
        return [replace(division, beta=0.7)]
    if isinstance(division, ac.baselines.Interception):
        return [replace(division, p_ablate=0.8), replace(division, hops=3)]
    if isinstance(division, ac.baselines.SparseRS):
        return [replace(division, p_delete=0.4)]
    return [replace(division, hash="blake2b"), ac.EdgeCentric(division.num_groups)]
