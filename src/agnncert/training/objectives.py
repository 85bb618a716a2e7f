"""Training objectives, one class for each task and kind of defence.

- ``NodeObjective``: a graph and all its T subgraphs, exactly, as three terms: the whole graph, the votes of nodes with
  an edge in a subgraph (in one disconnected graph), and the prediction without edges, which equals all other votes. The
  product of the features with the first layer is computed and differentiated once per step.
- ``GraphObjective``: graphs and their non-empty subgraphs, in mini-batches of graphs.
- ``SampledNodeObjective``, ``SampledGraphObjective``: GNNCert's divisions, whose subgraphs have all nodes. Each step
  samples a few subgraphs. With "paper" the gradient is an unbiased estimate of that of the paper's sum.
- A smoothing defence samples new noise in each step: ``NodeObjective.noise``, ``SampledGraphObjective.of_noise``.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.divisions.base import Division, RandomDefence
from agnncert.engine.adapter import ModelAdapter, no_edges
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.union import CHUNK_ROWS, SubgraphUnion, chunk_inputs, side_by_side, union_of_subgraphs
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.training.settings import FitSettings

# One training step: adds its gradient to the parameters and returns its loss.
TrainingStep = Callable[[], float]

# Scale of the vote shares in the loss of a vote: a margin of one tenth of the votes counts as 1 in a logit. All values
# from 5 to 30 did equally well on AIDS and PROTEINS.
SHARPNESS = 10.0
GROUPS_PER_STEP = 8  # of GNNCert's divisions, by default


class Objective(Protocol):
    """What the training loop asks of an objective."""

    def steps(self) -> Iterator[TrainingStep]:
        """The steps of one epoch; each adds its gradient to the parameters and returns its loss."""


def class_weights(y: Tensor, call: ModelAdapter, settings: FitSettings) -> Tensor | None:
    """Class weights, 1 on average, with which every class counts the same; ``None`` if classes are not balanced."""
    if not settings["balance_classes"]:
        return None
    count = torch.bincount(y, minlength=call.num_classes).to(call.dtype)
    return len(y) / (torch.count_nonzero(count) * count.clamp(min=1))


def row_losses(logits: Tensor, y: Tensor, class_weight: Tensor | None) -> Tensor:
    """The cross entropy of each row, shape ``[len(y)]``."""
    return F.cross_entropy(logits, y, class_weight, reduction="none")


def vote_losses(logits: Tensor, owner: Tensor, y: Tensor, class_weight: Tensor | None) -> Tensor:
    """Loss of the mean vote of each graph, shape ``[len(y)]``; 0 without a vote.

    ``owner`` is the position in ``y`` of the graph that each row of ``logits`` belongs to. A subgraph of two or three
    edges says little, and a loss on each of them would teach all of them to predict the most frequent class. Therefore
    the loss is computed on their mean.
    """
    num_votes = torch.bincount(owner, minlength=len(y))
    shares = logits.new_zeros(len(y), logits.size(1)).index_add(0, owner, logits.softmax(1))
    shares = shares / num_votes.clamp(min=1)[:, None]
    losses = row_losses(SHARPNESS * shares, y, class_weight)
    return torch.where(num_votes > 0, losses, 0)


@dataclass(frozen=True)
class GraphLoss:
    """The loss of graphs: which terms it has.

    Attributes:
        class_weight: Weight of each class; all equal if ``None``.
        whole: Whether whole graphs have a loss.
        num_sampled: Subgraphs per graph that have a loss in each step.
        scale: Subgraphs per sampled subgraph in the paper's sum, T / ``num_sampled``; ``None`` to average them.
        by_vote: Whether the loss is that of the vote of these subgraphs.
    """

    class_weight: Tensor | None
    whole: bool = True
    num_sampled: int = 0
    scale: float | None = None
    by_vote: bool = False

    @classmethod
    def of(
        cls, call: ModelAdapter, y: Tensor, num_groups: int, usually_sampled: int, settings: FitSettings
    ) -> "GraphLoss":
        """The loss for the settings of ``fit``; ``usually_sampled`` is the default of ``groups_per_step``."""
        by_vote = settings["objective"] == "vote"
        num_sampled = min(settings["groups_per_step"] or usually_sampled, num_groups)
        scale = num_groups / num_sampled if settings["objective"] == "paper" else None
        return cls(class_weights(y, call, settings), not by_vote, num_sampled, scale, by_vote)

    def of_subgraphs(self, logits: Tensor, owner: Tensor, y: Tensor) -> Tensor:
        """Mean loss of some graphs on their subgraphs; ``owner`` is the position in ``y`` of each row of ``logits``."""
        if self.by_vote:
            losses = vote_losses(logits, owner, y, self.class_weight)
        elif self.scale is None:
            losses = row_losses(logits, y[owner], self.class_weight) / torch.bincount(owner)[owner]
        else:
            losses = row_losses(logits, y[owner], self.class_weight) * self.scale
        return losses.sum() / len(y)


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
class OnNodes:
    """Objective of a node classifier, with one step per epoch.

    Attributes:
        call: The model, bound to the graph.
        graph: The canonical graph.
        y: Label of every node.
        rows: Nodes to train on.
    """

    call: ModelAdapter
    graph: CanonicalGraph
    y: Tensor
    rows: Tensor

    def steps(self) -> Iterator[TrainingStep]:
        """One step on all nodes."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the objective to the parameters; returns its value."""
        raise NotImplementedError


class Term(NamedTuple):
    """One term of the loss of a node classifier: a call of the model, and what its logits are compared with."""

    node: Tensor  # whose features each row has
    blank: Tensor | None  # rows whose features are hidden
    edge_index: Tensor
    values: dict[str, Tensor]  # of edges, as far as the model takes them
    rows: Tensor  # that have a loss
    y: Tensor  # their labels
    weight: Tensor | None  # of the loss of each row; None for the mean


@dataclass(frozen=True)
class NodeObjective(OnNodes):
    """Loss on the graph and, if it is divided, on all its subgraphs.

    Attributes:
        terms: The graph, the prediction without edges, and the subgraphs in chunks, laid out once for all epochs.
        sparse: The features in compressed rows, if they are sparse.
        class_weight: Weight of each class; all equal if ``None``.
        noise: A smoothing defence: each step is on a new noisy graph.
    """

    terms: list[Term]
    sparse: SparseRows | None
    class_weight: Tensor | None = None
    noise: RandomDefence | None = None

    @classmethod
    def of(
        cls,
        call: ModelAdapter,
        graph: CanonicalGraph,
        y: Tensor,
        rows: Tensor,
        defence: Division | RandomDefence | None,
        settings: FitSettings,
        *,
        union: SubgraphUnion | None = None,
    ) -> "NodeObjective":
        """The objective on a division's subgraphs, under a smoothing defence's noise, or on the whole graph only.

        "paper" sums the mean losses on the graph and on each of its T subgraphs; an abstention has no loss. "balanced"
        averages the three terms separately: over the nodes, over the votes with an edge, and over those without.
        ``union`` has the subgraphs, if they have been laid out before.
        """
        weight = class_weights(y[rows], call, settings)
        terms = [_on_whole(call, graph, y, rows)]
        if defence is None or isinstance(defence, RandomDefence):
            return cls(call, graph, y, rows, terms, SparseRows.of(graph.x.to(call.dtype)), weight, defence)
        union = (union or union_of_subgraphs(graph, defence, call.dtype)).near(rows.numpy())
        votes, no_edge = _factors(union, rows, defence, settings, call.dtype)
        if bool(no_edge.any()):
            edge_index, values = no_edges(graph, call.edge_inputs)
            terms.append(Term(rows, None, edge_index, values, torch.arange(len(rows)), y[rows], no_edge))
        for chunk in union.chunks(CHUNK_ROWS) if bool(votes.any()) else ():
            counted = votes[chunk.copies]
            used = counted.nonzero().view(-1)
            if len(used):
                inputs = chunk_inputs(call, union, chunk)
                terms.append(Term(*inputs, used, y[inputs[0][used]], counted[used]))
        return cls(call, graph, y, rows, terms, union.sparse, weight)

    def backward(self) -> float:
        """Adds the gradient of the objective to the parameters, term by term; returns its value."""
        call, graph, sparse, terms, total = self.call, self.graph, self.sparse, self.terms, 0.0
        if self.noise is not None:
            graph = self.noise.noisy(graph)
            terms = [_on_whole(call, graph, self.y, self.rows)]
            sparse = sparse if graph.x is self.graph.x else SparseRows.of(graph.x.to(call.dtype))
        features = Features(graph.x.to(call.dtype), sparse, cut=True)
        for term in terms:
            logits = call(features.rows(term.node, term.blank), term.edge_index, term.values)
            if self.noise is not None and self.noise.adds_own_logits:
                logits = logits + call(self.graph.x.to(call.dtype), *no_edges(self.graph, call.edge_inputs))
            losses = F.cross_entropy(logits.index_select(0, term.rows), term.y, self.class_weight, reduction="none")
            loss = losses.mean() if term.weight is None else term.weight @ losses
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        features.finish_backward()
        return total


def _on_whole(call: ModelAdapter, graph: CanonicalGraph, y: Tensor, rows: Tensor) -> Term:
    """The mean loss on a graph."""
    return Term(torch.arange(len(graph.x)), None, graph.edge_index, call.edge_values(graph), rows, y[rows], None)


def _factors(
    subgraphs: SubgraphUnion, rows: Tensor, division: Division, settings: FitSettings, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Weights of the loss of each copy of a node in a subgraph, and of each node's prediction without edges."""
    union, num_nodes = subgraphs.union, len(subgraphs.graph.x)
    is_trained_on = torch.zeros(num_nodes, dtype=torch.bool)
    is_trained_on[rows] = True
    listed = (union.votes & is_trained_on[union.node]).to(dtype)
    count = torch.zeros(num_nodes, dtype=dtype).index_add_(0, union.node, listed)
    if union.blank is not None:  # gated: a vote without an edge abstains, and nothing is trained on it
        unlisted = torch.zeros(len(rows), dtype=dtype)
    elif division.is_per_neighbour:  # empty groups abstain, but the prior votes for the prediction without edges
        unlisted = torch.ones(len(rows), dtype=dtype)
    else:
        unlisted = division.num_groups - count[rows]
    if settings["objective"] == "paper":
        votes, no_edge = listed / len(rows), unlisted / len(rows)
    else:
        votes, no_edge = listed / listed.sum().clamp(min=1), unlisted / unlisted.sum().clamp(min=1)
    return votes, settings["no_edge_weight"] * no_edge


@dataclass(frozen=True)
class GraphObjective:
    """Loss of a graph classifier on graphs and, if they are divided, on all their non-empty subgraphs.

    Attributes:
        call: The model, bound to the graphs.
        joined: The training graphs, joined into one disconnected graph.
        y: Label of every training graph.
        wholes: The training graphs side by side.
        cells: Their non-empty subgraphs side by side, ``num_groups`` per graph; ``None`` to train on whole graphs only.
        loss: The terms of the loss.
        batch_size: Graphs per step.
    """

    call: ModelAdapter
    joined: CanonicalGraph
    y: Tensor
    wholes: SideBySide
    cells: SideBySide | None
    num_groups: int
    loss: GraphLoss
    batch_size: int

    @classmethod
    def of(
        cls, call: ModelAdapter, joined: CanonicalGraph, y: Tensor, division: Division | None, settings: FitSettings
    ) -> "GraphObjective":
        """The objective for a division, or with ``None`` for whole graphs only.

        "paper" adds the losses on a graph and on each of its non-empty subgraphs; "balanced" adds the loss on the graph
        and the mean loss on its non-empty subgraphs; "vote" is the loss of their vote. All are averaged over graphs.
        """
        nodes, arcs = torch.arange(joined.num_nodes), torch.arange(joined.num_edges)
        wholes = SideBySide(joined.graph_of_node, joined.graph_of_node, nodes, joined.edge_index, arcs)
        if division is None:
            loss = GraphLoss(class_weights(y, call, settings))
            return cls(call, joined, y, wholes, None, 0, loss, settings["batch_size"])
        groups = division.num_groups_in(joined)
        if division.is_per_neighbour:  # small graphs have few: a sample of all numbers would hardly look at them
            settings = {**settings, "groups_per_step": None}
        loss = GraphLoss.of(call, y, groups, groups, settings)
        union = division.disjoint_union(joined, division.groups(joined))
        owner = torch.div(union.subgraph_index, groups, rounding_mode="floor")
        cells = SideBySide(owner, union.subgraph_index, union.node, union.edge_index, union.edge)
        return cls(call, joined, y, wholes, cells, groups, loss, settings["batch_size"])

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
        if self.loss.whole:
            owner, logits = self._logits(self.wholes, self.wholes.part(graphs), features, place)
            yield row_losses(logits, self.y[owner], self.loss.class_weight).mean()
        if self.cells is None:
            return
        part = self.cells.part(graphs, self._sampled(self.cells))
        if len(part[0]) == 0:
            return
        owner, logits = self._logits(self.cells, part, features, place)
        yield self.loss.of_subgraphs(logits, torch.searchsorted(graphs, owner), self.y[graphs])

    def _sampled(self, cells: SideBySide) -> Tensor | None:
        """Whether each copy of a node is in a sampled group; ``None`` if all groups are used."""
        if self.loss.num_sampled == self.num_groups:
            return None
        is_sampled = torch.zeros(self.num_groups, dtype=torch.bool)
        is_sampled[torch.randperm(self.num_groups)[: self.loss.num_sampled]] = True
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


@dataclass(frozen=True)
class SampledNodeObjective(OnNodes):
    """Loss on the graph and on some of its subgraphs, sampled in each step.

    Attributes:
        division: GNNCert-E, -N or -EN.
        groups: Group of every edge.
        loss: The terms of the loss: the paper's sum, or the mean over sampled subgraphs.
    """

    division: Division
    groups: Tensor
    loss: GraphLoss

    @classmethod
    def of(
        cls,
        call: ModelAdapter,
        graph: CanonicalGraph,
        y: Tensor,
        rows: Tensor,
        division: Division,
        settings: FitSettings,
    ) -> "SampledNodeObjective":
        """The objective for the settings of ``fit``."""
        loss = GraphLoss.of(call, y[rows], division.num_groups, GROUPS_PER_STEP, settings)
        return cls(call, graph, y, rows, division, division.groups(graph), loss)

    def backward(self) -> float:
        """Adds the gradient of the objective on sampled subgraphs to the parameters; returns its value."""
        return backward_each(self._terms())

    def _terms(self) -> Iterator[Tensor]:
        yield self._losses(self.graph).mean()
        loss = self.loss
        for index in torch.randperm(self.division.num_groups)[: loss.num_sampled].tolist():
            losses = self._losses(self.division.subgraph(self.graph, self.groups, index))
            if loss.scale is None:
                yield losses.mean() / loss.num_sampled
            else:
                yield losses.sum() * loss.scale / len(self.rows)

    def _losses(self, part: CanonicalGraph) -> Tensor:
        logits = self.call(part.x.to(self.call.dtype), part.edge_index, self.call.edge_values(part))
        return row_losses(logits[self.rows], self.y[self.rows], self.loss.class_weight)


@dataclass(frozen=True)
class SampledGraphObjective:
    """Loss of a graph classifier on graphs and on some subgraphs of each, sampled in each step.

    Attributes:
        call: The model, bound to the graphs.
        graphs: The training graphs.
        y: Label of every training graph.
        sample: Samples subgraphs, or noisy versions, of the training graph with a number; some may have no node.
        loss: The terms of the loss.
        batch_size: Graphs per step.
    """

    call: ModelAdapter
    graphs: tuple[CanonicalGraph, ...]
    y: Tensor
    sample: Callable[[int], Iterable[CanonicalGraph]]
    loss: GraphLoss
    batch_size: int

    @classmethod
    def of(
        cls, call: ModelAdapter, joined: CanonicalGraph, y: Tensor, division: Division, settings: FitSettings
    ) -> "SampledGraphObjective":
        """The paper's sum, the mean over sampled non-empty subgraphs ("balanced"), or the loss of their vote."""
        loss = GraphLoss.of(call, y, division.num_groups, GROUPS_PER_STEP, settings)
        graphs = tuple(one_graph(joined, k) for k in range(len(y)))
        groups = tuple(map(division.groups, graphs))

        def sample(k: int) -> Iterator[CanonicalGraph]:
            for index in torch.randperm(division.num_groups)[: loss.num_sampled].tolist():
                yield division.subgraph(graphs[k], groups[k], index)

        return cls(call, graphs, y, sample, loss, settings["batch_size"])

    @classmethod
    def of_noise(
        cls, call: ModelAdapter, joined: CanonicalGraph, y: Tensor, defence: RandomDefence, settings: FitSettings
    ) -> "SampledGraphObjective":
        """The loss on one noisy version of each graph per step."""
        loss = GraphLoss(class_weights(y, call, settings), whole=False, num_sampled=1)
        graphs = tuple(one_graph(joined, k) for k in range(len(y)))
        return cls(call, graphs, y, lambda k: [defence.noisy(graphs[k])], loss, settings["batch_size"])

    def steps(self) -> Iterator[TrainingStep]:
        """A step for each batch of graphs, in random order."""
        for batch in torch.split(torch.randperm(len(self.y)), self.batch_size):
            yield lambda batch=batch: self.backward(batch)  # type: ignore[misc]

    def backward(self, batch: Tensor) -> float:
        """Adds the gradient of the mean loss of some graphs to the parameters; returns that loss."""
        loss = torch.zeros(())
        if self.loss.whole:
            logits = self.call(*side_by_side(self.call, [self.graphs[k] for k in batch.tolist()]))
            loss = loss + row_losses(logits, self.y[batch], self.loss.class_weight).mean()
        sampled = [(place, part) for place, k in enumerate(batch.tolist()) for part in self.sample(k) if part.x.size(0)]
        if sampled:
            owner = torch.tensor([place for place, _ in sampled])
            logits = self.call(*side_by_side(self.call, [part for _, part in sampled]))
            loss = loss + self.loss.of_subgraphs(logits, owner, self.y[batch])
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())
