"""Training objectives, one class for each task and kind of defence.

- ``NodeObjective``: a graph and all its T subgraphs, exactly, as three terms: the whole graph, the votes of nodes with
  an edge in a subgraph (in one disconnected graph), and the prediction without edges, which equals all other votes. The
  product of the features with the first layer is computed and differentiated once per step.
- ``GraphObjective``: graphs and their non-empty subgraphs, in mini-batches of graphs.
- ``SampledNodeObjective``, ``SampledGraphObjective``: GNNCert's divisions, whose subgraphs have all nodes. Each step
  samples a few subgraphs. With "paper" the gradient is an unbiased estimate of that of the paper's sum.
- ``NoisyNodeObjective``, ``noisy_graphs``: a smoothing defence; each step samples new noise.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.baselines.smoothing import Smoothing
from agnncert.divisions.base import Division
from agnncert.engine import fast
from agnncert.engine.call import Caller, no_edges
from agnncert.engine.features import Features, SparseRows
from agnncert.errors import SettingsError
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.training.settings import FitSettings, LossWeights

# One training step: adds its gradient to the parameters and returns its loss.
TrainingStep = Callable[[], float]

# Scale of the vote shares in the loss of a vote: a margin of one tenth of the votes counts as 1 in a logit. All values
# from 5 to 30 did equally well on AIDS and PROTEINS.
SHARPNESS = 10.0


class Objective(Protocol):
    """What the training loop asks of an objective."""

    def steps(self) -> Iterator[TrainingStep]:
        """The steps of one epoch; each adds its gradient to the parameters and returns its loss."""


def class_weights(y: Tensor, call: Caller) -> Tensor:
    """Class weights, 1 on average, with which every class counts the same."""
    count = torch.bincount(y, minlength=call.num_classes).to(call.dtype)
    return len(y) / (torch.count_nonzero(count) * count.clamp(min=1))


def row_losses(logits: Tensor, y: Tensor, class_weight: Tensor | None = None) -> Tensor:
    """The cross entropy of each row, shape ``[len(y)]``."""
    return F.cross_entropy(logits, y, class_weight, reduction="none")


def vote_losses(logits: Tensor, owner: Tensor, y: Tensor, class_weight: Tensor | None = None) -> Tensor:
    """Loss of the mean vote of each graph, shape ``[len(y)]``; 0 without a ballot.

    A subgraph of two or three edges says little, and a loss on each of them would teach all of them to predict the most
    frequent class. Therefore the loss is computed on their mean.

    Args:
        logits: One row per ballot.
        owner: Position in ``y`` of the graph that each ballot belongs to.
        y: Labels.
        class_weight: Weight of each class; all equal if ``None``.
    """
    num_ballots = torch.bincount(owner, minlength=len(y))
    shares = logits.new_zeros(len(y), logits.size(1)).index_add(0, owner, logits.softmax(1))
    shares = shares / num_ballots.clamp(min=1)[:, None]
    losses = row_losses(SHARPNESS * shares, y, class_weight)
    return torch.where(num_ballots > 0, losses, 0)


@dataclass(frozen=True)
class Terms:
    """Weights of the loss on whole graphs and of the loss on subgraphs.

    Attributes:
        full: Factor of the loss on whole graphs.
        ballots: Factor of the loss on subgraphs.
        num_sampled: Subgraphs per step (and graph).
        class_weight: Weight of each class; all equal if ``None``.
        scale: Subgraphs per sampled subgraph in the paper's sum, T / ``num_sampled``; ``None`` to average them.
        by_vote: Graph task: whether the loss is that of the vote of these subgraphs.
    """

    full: float
    ballots: float
    num_sampled: int
    class_weight: Tensor | None
    scale: float | None = None
    by_vote: bool = False

    @classmethod
    def of(cls, call: Caller, y: Tensor, num_groups: int, usually_sampled: int, settings: FitSettings) -> "Terms":
        """The terms for the settings of ``fit``; ``usually_sampled`` is the default of ``groups_per_step``.

        Raises:
            SettingsError: Both terms have weight 0.
        """
        by_vote = settings["objective"] == "vote"
        weights = LossWeights(full=0) if by_vote else settings["weights"] or LossWeights()
        if not (weights.full or weights.ballots):
            raise SettingsError(
                f"{weights}: graphs and GNNCert have no term without edges: give another term a positive weight."
            )
        num_sampled = min(settings["groups_per_step"] or usually_sampled, num_groups)
        scale = num_groups / num_sampled if settings["objective"] == "paper" else None
        per_class = class_weights(y, call) if settings["balance_classes"] else None
        return cls(weights.full, weights.ballots, num_sampled, per_class, scale, by_vote)

    def losses(self, logits: Tensor, y: Tensor) -> Tensor:
        """One loss per row."""
        return row_losses(logits, y, self.class_weight)

    def graph_loss(self, logits: Tensor, owner: Tensor, y: Tensor) -> Tensor:
        """Mean loss of some graphs on their subgraphs; ``owner`` is the position in ``y`` of each row of ``logits``."""
        if self.by_vote:
            losses = vote_losses(logits, owner, y, self.class_weight)
        elif self.scale is None:
            losses = self.losses(logits, y[owner]) / torch.bincount(owner)[owner]
        else:
            losses = self.losses(logits, y[owner]) * self.scale
        return self.ballots * losses.sum() / len(y)


def backward_each(terms: Iterable[Tensor]) -> float:
    """Calls ``backward`` on one term after another, so that only one is in memory; returns their sum."""
    total = 0.0
    for loss in terms:
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    return total


@dataclass(frozen=True)
class SideBySide:
    """Whole graphs or subgraphs in one disconnected graph, ordered by the training graph that they belong to.

    Attributes:
        owner: Training graph of each copy of a node, ascending.
        cell: Graph or subgraph of each copy, ascending.
        node: Original node of each copy.
        edge_index: Edges between copies, in the order of their owners.
        edge: Original edge of each of these edges.
    """

    owner: Tensor
    cell: Tensor
    node: Tensor
    edge_index: Tensor
    edge: Tensor

    @cached_property
    def _edge_owner(self) -> Tensor:
        return self.owner[self.edge_index[0]]

    def part(self, graphs: Tensor, wanted: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The part that belongs to some training graphs (ascending); only the ``wanted`` copies, if given.

        Returns:
            Positions of its copies of nodes, positions of its edges, and ``edge_index`` between these copies.
        """
        copies, edges = runs(self.owner, graphs), runs(self._edge_owner, graphs)
        if wanted is not None:
            copies, edges = copies[wanted[copies]], edges[wanted[self.edge_index[0, edges]]]
        place = torch.empty(len(self.owner), dtype=torch.int64)
        place[copies] = torch.arange(len(copies))
        return copies, edges, place[self.edge_index[:, edges]]


def runs(owner: Tensor, wanted: Tensor) -> Tensor:
    """All positions of the ``wanted`` values in the sorted tensor ``owner``."""
    first = torch.searchsorted(owner, wanted)
    length = torch.searchsorted(owner, wanted, right=True) - first
    shift = torch.cumsum(length, 0) - length
    return torch.repeat_interleave(first - shift, length) + torch.arange(int(length.sum()))


@dataclass(frozen=True)
class NodeObjective:
    """Loss of a node classifier on the graph and, if it is divided, on all its subgraphs.

    Attributes:
        call: The model, bound to the graph.
        graph: The canonical graph.
        y: Label of every node.
        rows: Nodes to train on.
        layout: All subgraphs in one disconnected graph, or ``None`` to train on the whole graph only.
        sparse: The features in compressed rows, if they are sparse.
        factors: Weights of the mean loss on the whole graph, of the loss of each copy of a node in a subgraph, and of
            the loss of each node's prediction without edges.
        class_weight: Weight of each class; all equal if ``None``.
    """

    call: Caller
    graph: CanonicalGraph
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
        graph: CanonicalGraph,
        y: Tensor,
        rows: Tensor,
        division: Division | None,
        settings: FitSettings,
    ) -> "NodeObjective":
        """The objective for a division, or with ``None`` for the whole graph only.

        "paper" sums the mean losses on the graph and on each of its T subgraphs; an abstention has no loss. "balanced"
        averages the three terms separately: over the nodes, over the votes with an edge, and over those without.

        Raises:
            SettingsError: All terms that apply have weight 0.
        """
        weights = settings["weights"] or LossWeights()
        per_class = class_weights(y[rows], call) if settings["balance_classes"] else None
        if division is None:
            none, sparse = torch.empty(0), SparseRows.of(graph.x.to(call.dtype))
            return cls(call, graph, y, rows, None, sparse, (1.0, none, none), per_class)
        layout = fast.plan(graph, division, rows.numpy(), call.dtype)
        if layout.pieces.blank is not None and not (weights.full or weights.ballots):
            raise SettingsError(
                f"{weights}: with gated features a ballot without an edge abstains: weigh another term."
            )
        factors = _factors(layout, rows, division, settings["objective"], weights, call.dtype)
        return cls(call, graph, y, rows, layout, layout.sparse, factors, per_class)

    def steps(self) -> Iterator[TrainingStep]:
        """One step on all nodes."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the objective to the parameters; returns its value."""
        features = Features(self.graph.x.to(self.call.dtype), self.sparse, cut=True)
        loss = backward_each(self._terms(features))
        features.finish_backward()
        return loss

    def _terms(self, features: Features) -> Iterator[Tensor]:
        full, ballots, edgeless = self.factors
        y = self.y[self.rows]
        if full:
            values = self.call.edge_values(self.graph)
            logits = self.call(features.rows(torch.arange(self.graph.num_nodes)), self.graph.edge_index, values)
            yield full * row_losses(logits[self.rows], y, self.class_weight).mean()
        if self.layout is None:
            return
        if bool(edgeless.any()):
            logits = self.call(features.rows(self.rows), *no_edges(self.graph, self.call.takes))
            yield edgeless @ row_losses(logits, y, self.class_weight)
        if bool(ballots.any()):
            for chunk in self.layout.chunks(fast.CHUNK_ROWS):
                counted = ballots[chunk.copies]
                used = counted.nonzero().view(-1)
                if len(used) == 0:
                    continue
                logits = fast.evaluate(self.call, self.layout, features, chunk)[used]
                target = self.y[self.layout.pieces.node[chunk.copies][used]]
                yield counted[used] @ row_losses(logits, target, self.class_weight)


def _factors(
    layout: fast.Plan, rows: Tensor, division: Division, objective: str | None, weights: LossWeights, dtype: torch.dtype
) -> tuple[float, Tensor, Tensor]:
    """Factors of the three terms; see ``NodeObjective.factors``."""
    pieces = layout.pieces
    is_trained_on = torch.zeros(layout.graph.num_nodes, dtype=torch.bool)
    is_trained_on[rows] = True
    listed = (pieces.votes & is_trained_on[pieces.node]).to(dtype)
    count = torch.zeros(layout.graph.num_nodes, dtype=dtype).index_add_(0, pieces.node, listed)
    if pieces.blank is not None:  # gated: a ballot without an edge abstains, and nothing is trained on it
        unlisted = torch.zeros(len(rows), dtype=dtype)
    elif division.is_per_neighbour:  # empty groups abstain, but the prior votes for the edgeless prediction
        unlisted = torch.ones(len(rows), dtype=dtype)
    else:
        unlisted = division.num_groups - count[rows]
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
        joined: The training graphs, joined into one disconnected graph.
        y: Label of every training graph.
        wholes: The training graphs side by side.
        cells: Their non-empty subgraphs side by side, or ``None`` to train on whole graphs only.
        num_groups: Subgraphs per graph.
        terms: Weights of the losses, and how many groups a step samples.
        batch_size: Graphs per step.
    """

    call: Caller
    joined: CanonicalGraph
    y: Tensor
    wholes: SideBySide
    cells: SideBySide | None
    num_groups: int
    terms: Terms
    batch_size: int

    @classmethod
    def of(
        cls, call: Caller, joined: CanonicalGraph, y: Tensor, division: Division | None, settings: FitSettings
    ) -> "GraphObjective":
        """The objective for a division, or with ``None`` for whole graphs only.

        "paper" adds the losses on a graph and on each of its non-empty subgraphs; "balanced" adds the loss on the graph
        and the mean loss on its non-empty subgraphs; "vote" is the loss of their vote. All are averaged over graphs.

        Raises:
            SettingsError: All terms have weight 0.
        """
        nodes, arcs = torch.arange(joined.num_nodes), torch.arange(joined.num_edges)
        wholes = SideBySide(joined.graph_of_node, joined.graph_of_node, nodes, joined.edge_index, arcs)
        if division is None:
            terms = Terms(1.0, 0.0, 0, class_weights(y, call) if settings["balance_classes"] else None)
            return cls(call, joined, y, wholes, None, 0, terms, settings["batch_size"])
        groups = division.num_groups_in(joined)
        if division.is_per_neighbour:  # small graphs have few: a sample of all numbers would hardly look at them
            settings = {**settings, "groups_per_step": None}
        terms = Terms.of(call, y, groups, groups, settings)
        pieces = division.disjoint_union(joined, division.groups(joined))
        owner = torch.div(pieces.cell, groups, rounding_mode="floor")
        cells = SideBySide(owner, pieces.cell, pieces.node, pieces.edge_index, pieces.edge)
        return cls(call, joined, y, wholes, cells, groups, terms, settings["batch_size"])

    def steps(self) -> Iterator[TrainingStep]:
        """A step for each batch of graphs, in random order."""
        for batch in torch.split(torch.randperm(len(self.y)), self.batch_size):
            yield lambda batch=batch: self.backward(batch.sort().values)  # type: ignore[misc]

    def backward(self, graphs: Tensor) -> float:
        """Adds the gradient of the mean loss of some graphs (ascending); returns that loss."""
        nodes = runs(self.joined.graph_of_node, graphs)
        place = torch.empty(self.joined.num_nodes, dtype=torch.int64)
        place[nodes] = torch.arange(len(nodes))
        features = Features(self.joined.x[nodes].to(self.call.dtype), cut=True)
        loss = backward_each(self._terms(graphs, features, place))
        features.finish_backward()
        return loss

    def _terms(self, graphs: Tensor, features: Features, place: Tensor) -> Iterator[Tensor]:
        if self.terms.full:
            owner, logits = self._logits(self.wholes, self.wholes.part(graphs), features, place)
            yield self.terms.full * self.terms.losses(logits, self.y[owner]).mean()
        if self.cells is None or not self.terms.ballots:
            return
        part = self.cells.part(graphs, self._sampled(self.cells))
        if len(part[0]) == 0:
            return
        owner, logits = self._logits(self.cells, part, features, place)
        yield self.terms.graph_loss(logits, torch.searchsorted(graphs, owner), self.y[graphs])

    def _sampled(self, cells: SideBySide) -> Tensor | None:
        """Whether each copy of a node is in a sampled group; ``None`` if all groups are used."""
        if self.terms.num_sampled == self.num_groups:
            return None
        is_sampled = torch.zeros(self.num_groups, dtype=torch.bool)
        is_sampled[torch.randperm(self.num_groups)[: self.terms.num_sampled]] = True
        return is_sampled[cells.cell % self.num_groups]

    def _logits(
        self, graphs: SideBySide, part: tuple[Tensor, Tensor, Tensor], features: Features, place: Tensor
    ) -> tuple[Tensor, Tensor]:
        """For each graph or subgraph of a part: the training graph it belongs to, and its logits."""
        copies, edges, edge_index = part
        cell, batch = torch.unique_consecutive(graphs.cell[copies], return_inverse=True)
        values = self.call.edge_values(self.joined, graphs.edge[edges])
        logits = self.call(features.rows(place[graphs.node[copies]]), edge_index, values, batch)
        owner = torch.empty_like(cell)
        owner[batch] = graphs.owner[copies]
        return owner, logits


GROUPS_PER_STEP = 8


@dataclass(frozen=True)
class SampledNodeObjective:
    """Loss of a node classifier on the graph and on some of its subgraphs, sampled in each step.

    Attributes:
        call: The model, bound to the graph.
        graph: The canonical graph.
        y: Label of every node.
        rows: Nodes to train on.
        division: GNNCert-E, -N or -EN.
        groups: Group of every edge.
        terms: How much the losses count.
    """

    call: Caller
    graph: CanonicalGraph
    y: Tensor
    rows: Tensor
    division: Division
    groups: Tensor
    terms: Terms

    @classmethod
    def of(
        cls, call: Caller, graph: CanonicalGraph, y: Tensor, rows: Tensor, division: Division, settings: FitSettings
    ) -> "SampledNodeObjective":
        """The paper's sum, or ("balanced") the mean over sampled subgraphs of their mean loss."""
        terms = Terms.of(call, y[rows], division.num_groups, GROUPS_PER_STEP, settings)
        return cls(call, graph, y, rows, division, division.groups(graph), terms)

    def steps(self) -> Iterator[TrainingStep]:
        """One step on all nodes."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the objective on sampled subgraphs to the parameters; returns its value."""
        return backward_each(self._terms())

    def _terms(self) -> Iterator[Tensor]:
        terms = self.terms
        if terms.full:
            yield terms.full * self._losses(self.graph).mean()
        if not terms.ballots:
            return
        for index in torch.randperm(self.division.num_groups)[: terms.num_sampled].tolist():
            losses = self._losses(self.division.subgraph(self.graph, self.groups, index))
            if terms.scale is None:
                yield terms.ballots * (losses.mean() / terms.num_sampled)
            else:
                yield terms.ballots * (losses.sum() * terms.scale / len(self.rows))

    def _losses(self, part: CanonicalGraph) -> Tensor:
        logits = self.call(part.x.to(self.call.dtype), part.edge_index, self.call.edge_values(part))
        return self.terms.losses(logits[self.rows], self.y[self.rows])


@dataclass(frozen=True)
class SampledGraphObjective:
    """Loss of a graph classifier on graphs and on some subgraphs of each, sampled in each step.

    Attributes:
        call: The model, bound to the graphs.
        graphs: The training graphs.
        groups: Group of every edge, for each of them.
        y: Label of every training graph.
        division: GNNCert-E, -N or -EN, or what samples noise.
        terms: How much the losses count.
        batch_size: Graphs per step.
    """

    call: Caller
    graphs: tuple[CanonicalGraph, ...]
    groups: tuple[Tensor, ...]
    y: Tensor
    division: Division
    terms: Terms
    batch_size: int

    @classmethod
    def of(
        cls, call: Caller, joined: CanonicalGraph, y: Tensor, division: Division, settings: FitSettings
    ) -> "SampledGraphObjective":
        """The paper's sum, the mean over sampled non-empty subgraphs ("balanced"), or the loss of their vote."""
        terms = Terms.of(call, y, division.num_groups, GROUPS_PER_STEP, settings)
        graphs = tuple(one_graph(joined, k) for k in range(len(y)))
        return cls(call, graphs, tuple(map(division.groups, graphs)), y, division, terms, settings["batch_size"])

    def steps(self) -> Iterator[TrainingStep]:
        """A step for each batch of graphs, in random order."""
        for batch in torch.split(torch.randperm(len(self.y)), self.batch_size):
            yield lambda batch=batch: self.backward(batch)  # type: ignore[misc]

    def backward(self, batch: Tensor) -> float:
        """Adds the gradient of the mean loss of some graphs to the parameters; returns that loss."""
        terms, loss = self.terms, torch.zeros(())
        if terms.full:
            logits = self._logits([self.graphs[k] for k in batch.tolist()])
            loss = loss + terms.full * terms.losses(logits, self.y[batch]).mean()
        owner, parts = self._sample(batch) if terms.ballots else (torch.empty(0, dtype=torch.int64), [])
        if parts:
            loss = loss + terms.graph_loss(self._logits(parts), owner, self.y[batch])
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _sample(self, batch: Tensor) -> tuple[Tensor, list[CanonicalGraph]]:
        """Sampled non-empty subgraphs, and the position of each one's graph in the batch."""
        owner, parts = [], []
        for position, k in enumerate(batch.tolist()):
            for index in torch.randperm(self.division.num_groups)[: self.terms.num_sampled].tolist():
                part = self.division.subgraph(self.graphs[k], self.groups[k], index)
                if part.x.size(0):
                    owner.append(position)
                    parts.append(part)
        return torch.tensor(owner, dtype=torch.int64), parts

    def _logits(self, parts: Sequence[CanonicalGraph]) -> Tensor:
        sizes = torch.tensor([part.x.size(0) for part in parts])
        starts = (torch.cumsum(sizes, 0) - sizes).tolist()
        x = torch.cat([part.x for part in parts]).to(self.call.dtype)
        edge_index = torch.cat([part.edge_index + start for part, start in zip(parts, starts, strict=True)], dim=1)
        values = [self.call.edge_values(part) for part in parts]
        joined = {name: torch.cat([value[name] for value in values]) for name in self.call.takes}
        batch = torch.repeat_interleave(torch.arange(len(parts)), sizes)
        return self.call(x, edge_index, joined, batch)


@dataclass(frozen=True)
class NoisyNodeObjective:
    """Loss of a node classifier on one noisy graph per step; ``plain`` is the loss without noise."""

    plain: NodeObjective
    defence: Smoothing

    def steps(self) -> Iterator[TrainingStep]:
        """One step on all nodes."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the loss under noise to the parameters; returns that loss."""
        graph = self.defence.noisy(self.plain.graph)
        sparse = self.plain.sparse
        if graph.x is not self.plain.graph.x:
            sparse = SparseRows.of(graph.x.to(self.plain.call.dtype))
        return replace(self.plain, graph=graph, sparse=sparse).backward()


def noisy_graphs(
    call: Caller, joined: CanonicalGraph, y: Tensor, defence: Smoothing, settings: FitSettings
) -> SampledGraphObjective:
    """Loss of a graph classifier on one noisy version of each graph per step."""
    terms = Terms(0.0, 1.0, 1, class_weights(y, call) if settings["balance_classes"] else None)
    graphs = tuple(one_graph(joined, k) for k in range(len(y)))
    groups = tuple(graph.edge_index[0] for graph in graphs)  # of the right shape; noise has no groups
    return SampledGraphObjective(call, graphs, groups, y, _NoiseAsDivision(defence), terms, settings["batch_size"])


class _NoiseAsDivision(Division):
    """A smoothing defence that acts like a division: its only subgraph is a noisy version of the graph."""

    num_groups = 1

    def __init__(self, defence: Smoothing) -> None:
        self.defence = defence

    def groups(self, graph: CanonicalGraph) -> Tensor:
        return torch.zeros(graph.num_edges, dtype=torch.int64)

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        return self.defence.noisy(graph)  # type: ignore[no-any-return]

    def votes_moved(self, change: object, graph: CanonicalGraph, target: int | None) -> int:
        return 1
