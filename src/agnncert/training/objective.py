"""The training objective on a graph and all its subgraphs, exactly, for the price of a few plain steps.

A sum over T subgraphs falls apart into three terms: the whole graph, the ballots of nodes that have an edge in a subgraph
(one union), and the edgeless prediction, which stands for all other ballots of a node. Gradients of every term are collected chunk
by chunk, and the wide product of features and first layer is formed and differentiated once per step.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from agnncert.division import Division
from agnncert.engines import fast
from agnncert.engines.call import Caller, no_edges
from agnncert.engines.gathered import Features, SparseRows
from agnncert.errors import SettingsError, did_you_mean

ObjectiveName = Literal["balanced", "paper"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("balanced", "paper")


@dataclass(frozen=True)
class Weights:
    """How much each term counts.

    Attributes:
        full: The whole graph.
        ballots: Ballots that see an edge.
        edgeless: The prediction without edges, which all other ballots are.
    """

    full: float = 1.0
    ballots: float = 1.0
    edgeless: float = 1.0

    def __post_init__(self) -> None:
        values = (self.full, self.ballots, self.edgeless)
        if min(values) < 0 or max(values) == 0:
            raise SettingsError(f"{self}: weights must not be negative, and one of them must be positive.")


@dataclass(frozen=True)
class NodeObjective:
    """Loss of a node classifier on the graph and, if it is divided, on all its subgraphs.

    Attributes:
        call: The model, bound to the graph.
        graph: The canonical graph.
        y: Label of every node.
        rows: Nodes to train on.
        layout: The union of all subgraphs, or ``None`` to train on the whole graph only.
        sparse: The features in compressed rows, if they are sparse.
        factors: What the mean loss over the whole graph, each listed ballot and each edgeless prediction count.
        class_weight: How much each class counts, if not all the same.
    """

    call: Caller
    graph: Data
    y: Tensor
    rows: Tensor
    layout: fast.Plan | None
    sparse: SparseRows | None
    factors: tuple[float, Tensor, Tensor]
    class_weight: Tensor | None = None

    @classmethod
    def of(
        cls,
        call: Caller,
        graph: Data,
        y: Tensor,
        rows: Tensor,
        division: Division | None,
        objective: ObjectiveName = "balanced",
        weights: Weights | None = None,
        balance_classes: bool = False,
    ) -> "NodeObjective":
        """The paper's sum over T + 1 graphs, or the three terms averaged each for itself ("balanced")."""
        if objective not in OBJECTIVES:
            raise SettingsError(f'unknown objective "{objective}": {did_you_mean(str(objective), OBJECTIVES)}')
        weights = weights or Weights()
        per_class = class_weights(y[rows], call) if balance_classes else None
        if division is None:
            empty = torch.empty(0)
            sparse = SparseRows.of(graph.x.to(call.dtype))
            return cls(call, graph, y, rows, None, sparse, (1.0, empty, empty), per_class)
        layout = fast.plan(graph, division, rows.numpy(), call.dtype)
        factors = _factors(layout, rows, division, objective, weights)
        return cls(call, graph, y, rows, layout, layout.sparse, factors, per_class)

    def backward(self) -> float:
        """Adds the gradient of the objective to the parameters; returns its value."""
        features = Features(self.graph.x.to(self.call.dtype), self.sparse, cut=True)
        total = 0.0
        for loss in self._terms(features):
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        features.finish_backward()
        return total

    def _terms(self, features: Features) -> Iterator[Tensor]:
        full, ballots, edgeless = self.factors
        y = self.y[self.rows]
        if full:
            values = self.call.edge_values(self.graph)
            logits = self.call(features.rows(torch.arange(self.graph.num_nodes)), self.graph.edge_index, values)
            yield full * F.cross_entropy(logits[self.rows], y, self.class_weight)
        if self.layout is None:
            return
        if bool(edgeless.any()):
            logits = self.call(features.rows(self.rows), *no_edges(self.graph, self.call.takes))
            yield edgeless @ F.cross_entropy(logits, y, self.class_weight, reduction="none")
        if bool(ballots.any()):
            for chunk in self.layout.chunks(fast.CHUNK_ROWS):
                counted = ballots[chunk.copies]
                mine = counted.nonzero().view(-1)
                logits = fast.evaluate(self.call, self.layout, features, chunk)[mine]
                target = self.y[self.layout.pieces.node[chunk.copies][mine]]
                yield counted[mine] @ F.cross_entropy(logits, target, self.class_weight, reduction="none")


def _factors(
    layout: fast.Plan, rows: Tensor, division: Division, objective: ObjectiveName, weights: Weights
) -> tuple[float, Tensor, Tensor]:
    pieces = layout.pieces
    is_mine = torch.zeros(layout.graph.num_nodes, dtype=torch.bool)
    is_mine[rows] = True
    dtype = layout.graph.x.dtype
    listed = (pieces.votes & is_mine[pieces.node]).to(dtype)
    count = torch.zeros(layout.graph.num_nodes, dtype=dtype).index_add_(0, pieces.node, listed)
    gated = pieces.blank is not None  # then a ballot without an edge is an abstention, and nothing is trained on it
    unlisted = torch.zeros(len(rows), dtype=dtype) if gated else division.num_groups - count[rows]
    if objective == "paper":
        parts = listed / len(rows), unlisted / len(rows)
    else:
        parts = listed / listed.sum().clamp(min=1), unlisted / unlisted.sum().clamp(min=1)
    return weights.full, weights.ballots * parts[0], weights.edgeless * parts[1]


@dataclass(frozen=True)
class GraphObjective:
    """Loss of a graph classifier on graphs and, if they are divided, on all their non-empty subgraphs.

    Attributes:
        call: The model, bound to the graphs.
        joined: The training graphs, joined.
        y: Label of every training graph.
        layout: The union of all subgraphs, or ``None`` to train on whole graphs only.
        num_groups: Subgraphs per graph.
        weights: How much the terms count.
        paper: Whether a graph's subgraphs count one each, instead of together as much as the whole graph.
        class_weight: How much each class counts, if not all the same.
        groups_per_step: How many groups, drawn anew, a step looks at; all of them when not given.
    """

    call: Caller
    joined: Data
    y: Tensor
    layout: fast.Plan | None
    num_groups: int
    weights: Weights
    paper: bool
    class_weight: Tensor | None = None
    groups_per_step: int | None = None

    @classmethod
    def of(
        cls,
        call: Caller,
        joined: Data,
        y: Tensor,
        division: Division | None,
        objective: ObjectiveName = "balanced",
        weights: Weights | None = None,
        balance_classes: bool = False,
        groups_per_step: int | None = None,
    ) -> "GraphObjective":
        """The paper's sum over T + 1 graphs, or whole graphs and subgraphs in equal parts ("balanced")."""
        if objective not in OBJECTIVES:
            raise SettingsError(f'unknown objective "{objective}": {did_you_mean(str(objective), OBJECTIVES)}')
        layout = None if division is None else fast.plan(joined, division, dtype=call.dtype)
        groups = 0 if division is None else division.num_groups
        per_class = class_weights(y, call) if balance_classes else None
        paper = objective == "paper"
        return cls(call, joined, y, layout, groups, weights or Weights(), paper, per_class, groups_per_step)

    def backward(self, graphs: Tensor) -> float:
        """Adds the gradient of the mean loss of some graphs (ascending) to the parameters; returns the loss."""
        total = 0.0
        for loss in self._terms(graphs):
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total

    def _terms(self, graphs: Tensor) -> Iterator[Tensor]:
        if self.weights.full or self.layout is None:
            logits = self._run(self.joined.batch, torch.arange(self.joined.num_nodes), self.joined.edge_index, None, graphs)[1]
            yield (self.weights.full or 1.0) * F.cross_entropy(logits, self.y[graphs], self.class_weight)
        if self.layout is None or not self.weights.ballots:
            return
        pieces = self.layout.pieces
        owner = torch.div(pieces.cell, self.num_groups, rounding_mode="floor")
        cell, logits = self._run(owner, pieces.node, pieces.edge_index, pieces.edge, graphs, pieces.cell)
        if len(cell) == 0:
            return
        owner = torch.div(cell, self.num_groups, rounding_mode="floor")
        loss = F.cross_entropy(logits, self.y[owner], self.class_weight, reduction="none")
        if self.paper:
            drawn = self.groups_per_step or self.num_groups
            yield self.weights.ballots * loss.sum() / len(graphs) * (self.num_groups / drawn)
        else:
            size = torch.bincount(owner, minlength=len(self.y))[owner]
            yield self.weights.ballots * (loss / size).sum() / len(graphs)

    def _run(
        self, owner: Tensor, node: Tensor, edge_index: Tensor, edge: Tensor | None, graphs: Tensor, cell: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits of some graphs, or of their cells: everything is ordered by graph, so each is a run of copies."""
        picked = _runs(owner, graphs)
        arcs = _runs(owner[edge_index[0]], graphs)
        if cell is not None and self.groups_per_step is not None:
            drawn = torch.zeros(self.num_groups, dtype=torch.bool)
            drawn[torch.randperm(self.num_groups)[: self.groups_per_step]] = True
            picked = picked[drawn[cell[picked] % self.num_groups]]
            arcs = arcs[drawn[cell[edge_index[0, arcs]] % self.num_groups]]
        place = torch.empty(len(owner), dtype=torch.int64)
        place[picked] = torch.arange(len(picked))
        key = owner[picked] if cell is None else cell[picked]
        present, batch = torch.unique_consecutive(key, return_inverse=True)
        if len(present) == 0:
            return present, torch.empty(0)
        x = Features(self.joined.x.to(self.call.dtype)).rows(node[picked])
        values = self.call.edge_values(self.joined, arcs if edge is None else edge[arcs])
        return present, self.call(x, place[edge_index[:, arcs]], values, batch)


def class_weights(y: Tensor, call: Caller) -> Tensor:
    """Weights that let every class count the same: a rare class would otherwise lose every vote it has weak evidence for."""
    count = torch.bincount(y, minlength=call.num_classes).clamp(min=1)
    return (len(y) / (call.num_classes * count)).to(call.dtype)


def _runs(owner: Tensor, wanted: Tensor) -> Tensor:
    """Positions of the wanted owners in a sorted sequence."""
    first = torch.searchsorted(owner, wanted)
    length = torch.searchsorted(owner, wanted, right=True) - first
    shift = torch.cumsum(length, 0) - length
    return torch.repeat_interleave(first - shift, length) + torch.arange(int(length.sum()))
