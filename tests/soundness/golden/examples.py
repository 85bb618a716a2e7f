"""What the example certificates are made from: one of each kind.

Graphs and models are written out by formulas, so that they are the same everywhere and files can be checked with them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.graph_votes.model import GraphModel
from agnncert.graphs.graph import CanonicalGraph
from agnncert.isolated.model import IsolatedEnsemble
from agnncert.pairs.model import PairModel, PairPrior
from agnncert.proving.certificate import Certificate
from agnncert.stacked.model import StackedModel
from agnncert.stacked.training import set_blind_votes
from agnncert_peers.deletions import BiRS
from agnncert_peers.flips import RS, SparseRS
from agnncert_peers.gnncert import GNNCertE, GNNCertEN, GNNCertN
from agnncert_peers.interception import Interception
from tests.support.append_graphs import payments

NAMES = ["ann", "bob", "Çelik", "点", "7 of 9", "", "eve", "fay", "gus", "hal", "ivy", "joe", "kim", "lee"]


class Parity(ac.Division):
    """A user's own division: nodes with an even id in one subgraph, the others in another one; edges across are cut."""

    num_groups = 2
    unit_costs: ClassVar = {"add_edges": 1, "delete_edges": 1, "change_edges": 1}

    def __str__(self) -> str:
        return "by parity"

    def groups(self, graph: CanonicalGraph) -> torch.Tensor:
        """The parity of both ends."""
        source, head = graph.node_key[graph.edge_index] % 2
        return torch.where(source == head, source, -1)

    def subgraph(self, graph: CanonicalGraph, groups: torch.Tensor, index: int) -> CanonicalGraph:
        """All nodes, and the edges of one parity."""
        return graph.with_edges(groups == index)

    def votes_moved(self, change: Any, graph: CanonicalGraph, target: int | None) -> int:
        """One of the two, or both."""
        return 2


class Centred(torch.nn.Module):
    """Looks at all nodes at once, so that only changes of edges can be certified."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """The inner model's logits, less their mean."""
        logits: torch.Tensor = self.inner(x, edge_index)
        return logits - logits.mean(0)


def graph(size: int, shift: int = 0, ids: str | None = None) -> Data:
    """A ring with chords; features lean to the class."""
    ring = torch.arange(size)
    ends = torch.cat([torch.stack([ring, (ring + 1) % size]), torch.stack([ring[::3], (ring[::3] + 5) % size])], dim=1)
    y = (ring * 7 + shift) % 3
    x = torch.nn.functional.one_hot(y, 3).float() + 0.25 * ((ring[:, None] * torch.tensor([3, 5, 7]) + shift) % 4)
    data = Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=y)
    if ids == "numbers":
        data.node_id = 10 * ring + shift
    if ids == "names":
        data.node_id = NAMES[:size]
        data.class_names = ["red", "green", "blå"]
    return data


def graphs(ids: str | None = "numbers") -> list[Data]:
    """Graphs of different sizes, each with a class."""
    made = [graph(size, shift, ids) for shift, size in enumerate((6, 9, 12, 7, 11, 8))]
    for k, one in enumerate(made):
        one.y = torch.tensor([k % 2])
    return made


def model(data: Any) -> torch.nn.Module:
    """A small GNN with weights from a formula."""
    return by_formula(ac.build_model("sage", data, hidden_channels=8))


def stacked(data: Data, defence: ac.StackedVotes) -> torch.nn.Module:
    """Stacked votes on two models without edges, with weights from a formula; scales stay as they are at first."""
    made = StackedModel([torch.nn.Linear(3, 3) for _ in range(2)], 3, 2 if defence.edge_values else 0, defence)
    by_formula(made)
    with torch.no_grad():
        for own in made.own:
            own.model.weight.add_(4 * torch.eye(3))
            own.model.bias.zero_()
        made.constant.mul_(0.2)
    if defence.edge_blind:
        set_blind_votes(made, 1.0)
    return made


def isolated(data: list[Data], defence: ac.IsolatedModels) -> torch.nn.Module:
    """Models that are said to be trained apart, with weights from a formula; one of them has no training graph."""
    parts = [model(data) for _ in range(defence.num_models)]
    with torch.no_grad():
        for number, part in enumerate(parts):  # they are alike, but not the same
            for weight in part.parameters():
                weight.add_(0.2 * torch.cos(2.3 * torch.arange(weight.numel()) + number).reshape(weight.shape))
    return IsolatedEnsemble(parts, torch.arange(defence.num_models) == 3, defence).eval()


def marked_graphs() -> list[Data]:
    """The same graphs with types of nodes for features, some of them unknown ones."""
    made = graphs()
    for data in made:
        data.x = (data.x >= 1).float()
        data.x[::5] = 0.5
    return made


def of_graphs(defence: ac.GraphVotes) -> torch.nn.Module:
    """Graph votes with whole numbers from a formula: one tree of three rows, three types and an unknown one."""
    contexts = {"structure": 3, "nodes": 10}.get(defence.trusted, 1)
    states = 2 if defence.trusted == "nodes" else 4
    votes = 0 if defence.size is None else 120 if defence.trusted == "none" else 500
    number = np.arange(contexts * states * 2).reshape(contexts, states, 2)
    table = np.round(votes * np.sin(1.3 * number)).astype(np.int64)
    if defence.trusted == "nodes":
        table[:, 0] = 0
    sizes = 12 if defence.trusted == "none" else 0
    arrays = {
        "how": np.array([-1 if defence.size is None else defence.size, 4, 0]),
        "root": np.array([0], dtype=np.int32),
        "column": np.array([0, -1, -1], dtype=np.int32),
        "threshold": np.array([6, 0, 0], dtype=np.int32),
        "left": np.array([1, -1, -1], dtype=np.int32),
        "right": np.array([2, -1, -1], dtype=np.int32),
        "share": np.array([[0, 0], [900, 100], [200, 800]], dtype=np.int16),
        "type_columns": np.arange(3),
        "type_rows": np.eye(3),
        "role": np.array([241, 265]),
        "of_share": 4 * np.arange(1001),
        "bias": np.zeros(2, dtype=np.int64),
        "table": table if votes else np.zeros((0, 0, 2), dtype=np.int64),
        "by_size": np.round(900 * np.cos(0.9 * np.arange(2 * sizes))).astype(np.int64).reshape(sizes, 2),
    }
    return GraphModel.of("graph", defence.to_json(), arrays)


def appended(data: Data, defence: ac.AppendOnly) -> torch.nn.Module:
    """Trees that only rise, trained on whole numbers in a fixed order, and a threshold."""
    trained = ac.fit(None, data, defence, seed=1)
    return ac.choose_threshold(trained, data, defence, false_positive_rate=0.2).model


def of_pairs(data: Data, defence: ac.PairVotes) -> torch.nn.Module:
    """Votes about pairs on a prior with weights from a formula."""
    channels = 0 if defence.trusted is None else data.edge_attr.size(1)
    made = PairModel(PairPrior(3, 1 + 3 * channels if channels else 0, 2, 4, defence.directed), 2, channels, defence)
    by_formula(made)
    with torch.no_grad():
        made.constant.copy_(torch.tensor([1.5, 0.0]))
        made.side_weight.fill_(0.5 if defence.over == "both" else 0.0)
    return made


def by_formula(made: torch.nn.Module) -> torch.nn.Module:
    """The model with other weights; single numbers stay as they are."""
    with torch.no_grad():
        for number, weight in enumerate(made.parameters()):
            if weight.dim():
                weight.copy_(torch.sin(1.7 * torch.arange(weight.numel()) + number).reshape(weight.shape))
    return made.eval()


def binary(data: Data) -> Data:
    """The same graph with features of 0 and 1."""
    data.x = (data.x >= 1).float()
    return data


@dataclass(frozen=True)
class Example:
    """What a certificate is made from."""

    data: Callable[[], Any]
    division: Any
    settings: dict[str, Any] = field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()
    mixes: bool = False

    def model(self) -> torch.nn.Module:
        """The model."""
        if isinstance(self.division, ac.StackedVotes):
            return stacked(self.data(), self.division)
        if isinstance(self.division, ac.LabelVotes):
            return ac.fit(None, self.data(), self.division)
        if isinstance(self.division, ac.IsolatedModels):
            return isolated(self.data(), self.division)
        if isinstance(self.division, ac.GraphVotes):
            return of_graphs(self.division)
        if isinstance(self.division, ac.AppendOnly):
            return appended(self.data(), self.division)
        if isinstance(self.division, ac.PairVotes):
            return of_pairs(self.data(), self.division)
        made = model(self.data())
        return Centred(made).eval() if self.mixes else made

    def certify(self) -> Certificate:
        """The certificate."""
        return ac.certify(self.model(), self.data(), self.division, **self.settings)


def numbered() -> Data:
    """Nodes with numbers for ids."""
    return graph(14, ids="numbers")


def labelled(ids: str = "numbers") -> Data:
    """A graph with training labels, some of which are not those of the node's features."""
    data = graph(14, ids=ids)
    data.num_classes = 3
    data.train_mask = torch.arange(14) % 4 != 1
    data.y = torch.where(torch.arange(14) % 5 == 0, (data.y + 1) % 3, data.y)
    return data


def one_ways() -> Data:
    """Most of the edges have one direction only, and one is a self-loop."""
    data = numbered()
    data.edge_index = torch.cat([data.edge_index[:, : data.num_edges * 2 // 3], torch.tensor([[3], [3]])], dim=1)
    return data


def with_values() -> Data:
    """Edges with a weight and two values, the second of which marks the edges of some pairs."""
    data = one_ways()
    low, high = data.edge_index.min(dim=0).values, data.edge_index.max(dim=0).values
    data.edge_weight = torch.cos(1.3 * torch.arange(data.num_edges))
    data.edge_attr = torch.stack([0.25 * (low - high), ((low + high) % 3 == 0).float()], dim=1)
    return data


def paired(data: Data) -> Data:
    """The same graph, with some pairs of nodes that are to be classified: links and others."""
    data.edge_label_index = torch.tensor([[u, v] for u in range(0, 12, 2) for v in (1, 5, 12) if u != v]).T.contiguous()
    data.edge_label = torch.arange(data.edge_label_index.size(1)) % 2
    return data


BY_EDGE = ac.StackedVotes(combine="mean", edge_values=True, trusted=1)
FEW = {"selection": 20, "samples": 200, "alpha": 0.05}
OWN = Budget(target_features=True, delete_nodes=1, change_features=1)
FEATURES = (Budget(change_features=1), Budget(target_features=True))
FLIPS = (Budget(delete_edges=1), Budget(add_edges=1), Budget(delete_edges=1, change_features=1))
FLIPPED = tuple(Budget(flip_labels=number) for number in (0, 1, 2, 3))
JOINT = (
    Budget(flip_labels=1),
    Budget(add_edges=1),
    Budget(add_edges=1, delete_edges=1, flip_labels=1),
    Budget(delete_edges=math.inf, flip_labels=1),
    Budget(add_edges=2, change_edges=math.inf),
)
POISONED = (
    Budget(poison_graphs=1),
    Budget(poison_graphs=2, delete_edges=1),
    Budget(poison_graphs=1, change_features=1),
)
ALTERED = (Budget(change_features=1), Budget(change_features=2), Budget(change_features=math.inf))
REWIRED = (Budget(add_edges=1), Budget(delete_edges=2), Budget(add_edges=1, delete_edges=1, change_edges=math.inf))
NODES = (Budget(inject_nodes=1), Budget(delete_nodes=1, add_edges=math.inf), Budget(change_features=1))
KEPT = (
    Budget(add_edges=math.inf, inject_nodes=math.inf),
    Budget(add_edges=math.inf, inject_nodes=math.inf, delete_edges=2),
    Budget(delete_edges=3),
    Budget(change_features=1),
)
EXAMPLES = {
    "edge-centric-node": Example(numbered, ac.EdgeCentric(12)),
    "edge-centric-loops": Example(numbered, ac.EdgeCentric(12, "sha256", self_loops=True), {"targets": [3, 1, 8]}),
    "node-centric-node": Example(lambda: graph(14), ac.NodeCentric(12)),
    "gated-node": Example(lambda: graph(14, ids="names"), ac.GatedNodeCentric(12)),
    "edge-centric-prior": Example(numbered, ac.EdgeCentric(6), {"voting_rule": ac.VotingRule("abstain", 3)}),
    "node-centric-prior": Example(lambda: graph(14), ac.NodeCentric(6), {"voting_rule": ac.VotingRule(prior=-2)}),
    "node-centric-classes": Example(numbered, ac.NodeCentric(6), {"voting_rule": ac.VotingRule(2, [1, 0, -1])}),
    "gated-prior": Example(numbered, ac.GatedNodeCentric(6), {"voting_rule": ac.VotingRule(0, [0, 2, 0])}),
    "per-neighbour-node": Example(lambda: graph(14), ac.PerNeighbour(), {"voting_rule": ac.VotingRule(prior=3)}),
    "per-pair-node": Example(one_ways, ac.PerEdge(), {"voting_rule": ac.VotingRule(1, 2), "targets": [3, 1, 8, 2]}),
    "per-neighbour-graph": Example(graphs, ac.PerNeighbour(), {"voting_rule": ac.VotingRule(1, [0, 5])}),
    "per-pair-graph": Example(graphs, ac.PerEdge(), {"voting_rule": ac.VotingRule(prior=[2, 0])}),
    "edge-centric-graph": Example(graphs, ac.EdgeCentric(5)),
    "edge-centric-graph-prior": Example(graphs, ac.EdgeCentric(5), {"voting_rule": ac.VotingRule(1, [3, 0])}),
    "node-centric-graph-prior": Example(graphs, ac.NodeCentric(5), {"voting_rule": ac.VotingRule(0, [0, 4])}),
    "node-centric-graph": Example(graphs, ac.NodeCentric(5)),
    "gnncert-e-node": Example(numbered, GNNCertE(5)),
    "gnncert-e-prior": Example(numbered, GNNCertE(5), {"voting_rule": ac.VotingRule(prior=[0, 1, 1])}),
    "gnncert-n-node": Example(numbered, GNNCertN(5)),
    "gnncert-en-graph": Example(lambda: graphs(None), GNNCertEN(3, 4)),
    "custom-node": Example(numbered, Parity()),
    "edges-only-node": Example(numbered, ac.EdgeCentric(12, edges_only=True), mixes=True),
    "stacked-sum": Example(lambda: graph(14), ac.StackedVotes()),
    "stacked-gated": Example(lambda: graph(14, ids="names"), ac.StackedVotes(gated=True), {"targets": [3, 6, 0]}),
    "stacked-two-levels": Example(numbered, ac.StackedVotes(levels=2)),
    "stacked-edge-blind": Example(numbered, ac.StackedVotes(edge_blind=True, vote_weight=0.5, refine=False)),
    "stacked-trusted-values": Example(with_values, BY_EDGE),
    "labels-flips": Example(labelled, ac.LabelVotes(df=4, rank=4, num_classes=3), {}, FLIPPED),
    "labels-any": Example(
        lambda: labelled("names"),
        ac.LabelVotes(
            candidates="all", df=4, rank=5, num_classes=3, abstain=0.8, advance=(0.25, 0, -0.5), audited=(2, 3, 6)
        ),
        {"targets": [3, 6, 0, 9, 13]},
        (*FLIPPED, Budget(flip_labels=1, add_labels=1, remove_labels=1), Budget(add_labels=2), Budget(add_edges=1)),
    ),
    "joint-flips": Example(labelled, ac.LabelVotes(df=4, rank=4, num_classes=3, neighbour_votes=0.5), {}, JOINT),
    "joint-any": Example(
        lambda: labelled("names"),
        ac.LabelVotes(
            candidates="all", df=2, rank=5, num_classes=3, neighbour_votes=0.25, abstain=0.1, audited=(2, 3, 6)
        ),
        {"targets": [3, 6, 0, 9, 13]},
        (*JOINT, Budget(add_labels=1, remove_labels=1, add_edges=1), Budget(inject_nodes=1)),
    ),
    "labels-box": Example(labelled, ac.LabelVotes(df=4, rank=4, num_classes=3, box=True), {}, FLIPPED),
    "pairs-common": Example(lambda: paired(graph(14, ids="names")), ac.PairVotes()),
    "pairs-both": Example(lambda: paired(numbered()), ac.PairVotes(over="both", mask="targets")),
    "pairs-trusted": Example(lambda: paired(with_values()), ac.PairVotes(trusted=1, directed=True)),
    "isolated-node-views": Example(
        graphs, ac.IsolatedModels(ac.NodeCentric(5), num_models=7), {}, (*POISONED, Budget(inject_nodes=1))
    ),
    "isolated-edge-views": Example(graphs, ac.IsolatedModels(ac.EdgeCentric(3), 9, hash="sha1"), {}, POISONED),
    "graph-votes-structure": Example(marked_graphs, ac.GraphVotes(2), {}, ALTERED),
    "graph-votes-nodes": Example(marked_graphs, ac.GraphVotes(1, "nodes"), {}, REWIRED),
    "graph-votes-count": Example(marked_graphs, ac.GraphVotes(1, "count"), {}, ALTERED),
    "graph-votes-none": Example(marked_graphs, ac.GraphVotes(1, "none"), {}, NODES),
    "graph-votes-structure-only": Example(marked_graphs, ac.StructureOnly(), {}, ALTERED),
    "append-ledger": Example(payments, ac.AppendOnly(threat="ledger", deletions=2, trees=20, ensembles=1), {}, KEPT),
    "append-fresh": Example(payments, ac.AppendOnly(threat="fresh", trees=20, ensembles=1), {}, KEPT),
    "rs": Example(numbered, RS(0.9, **FEW), {}, (Budget(add_edges=1),)),
    "interception": Example(numbered, Interception(0.3, 0.95, 3, **FEW), {}, FEATURES),
    "bi-rs": Example(numbered, BiRS(0.6, 0.7, **FEW, scope="all targets together", seed=3)),
    "sparse-rs": Example(lambda: binary(numbered()), SparseRS(0.05, 0.3, 0.1, 0.1, **FEW), {}, FLIPS),
}
