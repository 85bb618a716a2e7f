"""Training objectives of node classifiers.

- ``NodeObjective``: a graph and all its T subgraphs, exactly, as three terms: the whole graph, the votes of nodes with
  an edge in a subgraph (in one disconnected graph), and the prediction without edges, which equals all other votes. The
  product of the features with the first layer is computed and differentiated once per step. A smoothing defence samples
  new noise in each step (``NodeObjective.noise``).
- ``SampledNodeObjective``: divisions whose subgraphs are formed one by one: GNNCert's, whose subgraphs have all nodes,
  and divisions of a user's own. Each step samples a few subgraphs. With "paper" the gradient is an unbiased estimate of
  that of the paper's sum.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.divisions.base import Division, RandomDefence
from agnncert.engine.adapter import ModelAdapter, no_edges
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.union import CHUNK_ROWS, SubgraphUnion, chunk_inputs, union_of_subgraphs
from agnncert.graphs.graph import CanonicalGraph
from agnncert.training.losses import GROUPS_PER_STEP, GraphLoss, TrainingStep, backward_each, class_weights, row_losses
from agnncert.training.settings import FitSettings


@dataclass(frozen=True)
class OnNodes:
    """Objective of a node classifier, with one step per epoch.

    Attributes:
        bound_model: The model, bound to the graph.
        graph: The canonical graph.
        y: Label of every node.
        rows: Nodes to train on.
    """

    bound_model: ModelAdapter
    graph: CanonicalGraph
    y: Tensor
    rows: Tensor

    def steps(self) -> Iterator[TrainingStep]:
        """Yields one step, on all nodes."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the objective to the parameters and returns its value."""
        raise NotImplementedError


class Term(NamedTuple):
    """One term of the loss of a node classifier: a call of the model, and what its logits are compared with.

    Attributes:
        node: The node whose features each row has.
        blank: Rows whose features are hidden; ``None`` if none are.
        edge_index: Edges between rows.
        values: Values of these edges, as far as the model takes them.
        rows: Rows that have a loss.
        y: Their labels.
        weight: Weight of the loss of each of them; ``None`` for the mean.
    """

    node: Tensor
    blank: Tensor | None
    edge_index: Tensor
    values: dict[str, Tensor]
    rows: Tensor
    y: Tensor
    weight: Tensor | None


class VoteWeights(NamedTuple):
    """Weights in the loss of a divided graph.

    Attributes:
        of_copies: Weight of each copy of a node in a subgraph.
        of_no_edge: Weight of each training node's prediction without edges.
    """

    of_copies: Tensor
    of_no_edge: Tensor


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
        bound_model: ModelAdapter,
        graph: CanonicalGraph,
        y: Tensor,
        rows: Tensor,
        defence: Division | RandomDefence | None,
        settings: FitSettings,
        *,
        union: SubgraphUnion | None = None,
    ) -> "NodeObjective":
        """Returns the objective on a division's subgraphs, under a smoothing defence's noise, or on the whole graph.

        "paper" sums the mean losses on the graph and on each of its T subgraphs; an abstention has no loss. "balanced"
        averages the three terms separately: over the nodes, over the votes with an edge, and over those without.

        Args:
            bound_model: The model, bound to the graph.
            graph: The canonical graph.
            y: Label of every node.
            rows: Nodes to train on.
            defence: A division, a smoothing defence, or ``None`` for the whole graph only.
            settings: All settings of ``fit``.
            union: The subgraphs, if they have been laid out before.
        """
        class_weight = class_weights(y[rows], bound_model, settings)
        whole = _on_whole(bound_model, graph, y, rows)
        if defence is None or isinstance(defence, RandomDefence):
            sparse = SparseRows.of(graph.x.to(bound_model.dtype))
            return cls(bound_model, graph, y, rows, [whole], sparse, class_weight, defence)
        if union is None:
            union = union_of_subgraphs(graph, defence, bound_model.dtype)
        union = union.near(rows.numpy())
        weights = _vote_weights(union, rows, defence, settings, bound_model.dtype)
        terms = [whole]
        if bool(weights.of_no_edge.any()):
            terms.append(_without_edges(bound_model, graph, y, rows, weights.of_no_edge))
        if bool(weights.of_copies.any()):
            terms += _on_subgraphs(bound_model, union, y, weights.of_copies)
        return cls(bound_model, graph, y, rows, terms, union.sparse, class_weight)

    def backward(self) -> float:
        """Adds the gradient of the objective to the parameters, term by term, and returns its value."""
        if self.noise is None:
            return self._backward(self.graph, self.terms, self.sparse)
        noisy = self.noise.noisy(self.graph)
        sparse = self.sparse
        if noisy.x is not self.graph.x:
            sparse = SparseRows.of(noisy.x.to(self.bound_model.dtype))
        return self._backward(noisy, [_on_whole(self.bound_model, noisy, self.y, self.rows)], sparse)

    def _backward(self, graph: CanonicalGraph, terms: list[Term], sparse: SparseRows | None) -> float:
        features = Features(graph.x.to(self.bound_model.dtype), sparse, cut=True)
        loss = backward_each(self._loss(term, features) for term in terms)
        features.finish_backward()
        return loss

    def _loss(self, term: Term, features: Features) -> Tensor:
        logits = self.bound_model(features.rows(term.node, term.blank), term.edge_index, term.values)
        if self.noise is not None and self.noise.adds_own_logits:
            alone = no_edges(self.graph, self.bound_model.edge_inputs)
            logits = logits + self.bound_model(self.graph.x.to(self.bound_model.dtype), *alone)
        losses = F.cross_entropy(logits.index_select(0, term.rows), term.y, self.class_weight, reduction="none")
        return losses.mean() if term.weight is None else term.weight @ losses


def _on_whole(bound_model: ModelAdapter, graph: CanonicalGraph, y: Tensor, rows: Tensor) -> Term:
    """Returns the mean loss on a graph."""
    nodes = torch.arange(len(graph.x))
    return Term(nodes, None, graph.edge_index, bound_model.edge_values(graph), rows, y[rows], None)


def _without_edges(bound_model: ModelAdapter, graph: CanonicalGraph, y: Tensor, rows: Tensor, weight: Tensor) -> Term:
    """Returns the loss of the prediction without edges, which stands for all votes of empty subgraphs."""
    edge_index, values = no_edges(graph, bound_model.edge_inputs)
    return Term(rows, None, edge_index, values, torch.arange(len(rows)), y[rows], weight)


def _on_subgraphs(bound_model: ModelAdapter, union: SubgraphUnion, y: Tensor, weight: Tensor) -> Iterator[Term]:
    """Yields the losses on subgraphs, a chunk at a time; ``weight`` is that of each copy of a node."""
    for chunk in union.chunks(CHUNK_ROWS):
        weight_in_chunk = weight[chunk.copies]
        rows = weight_in_chunk.nonzero().view(-1)
        if not len(rows):
            continue
        node, blank, edge_index, values = chunk_inputs(bound_model, union, chunk)
        yield Term(node, blank, edge_index, values, rows, y[node[rows]], weight_in_chunk[rows])


def _vote_weights(
    subgraphs: SubgraphUnion, rows: Tensor, division: Division, settings: FitSettings, dtype: torch.dtype
) -> VoteWeights:
    """Returns how much each vote counts in the loss."""
    union = subgraphs.union
    num_nodes = len(subgraphs.graph.x)
    is_trained_on = torch.zeros(num_nodes, dtype=torch.bool)
    is_trained_on[rows] = True
    with_edge = (union.votes & is_trained_on[union.node]).to(dtype)
    if union.blank is not None:  # gated: a vote without an edge abstains, and nothing is trained on it
        without_edge = torch.zeros(len(rows), dtype=dtype)
    elif division.is_per_neighbour:  # empty groups abstain, but the prior votes for the prediction without edges
        without_edge = torch.ones(len(rows), dtype=dtype)
    else:
        votes_with_edge = torch.zeros(num_nodes, dtype=dtype).index_add_(0, union.node, with_edge)
        without_edge = division.num_groups - votes_with_edge[rows]
    if settings["objective"] == "paper":
        of_copies = with_edge / len(rows)
        of_no_edge = without_edge / len(rows)
    else:
        of_copies = with_edge / with_edge.sum().clamp(min=1)
        of_no_edge = without_edge / without_edge.sum().clamp(min=1)
    return VoteWeights(of_copies, settings["no_edge_weight"] * of_no_edge)


@dataclass(frozen=True)
class SampledNodeObjective(OnNodes):
    """Loss on the graph and on some of its subgraphs, sampled in each step.

    Attributes:
        division: GNNCert-E, -N or -EN, or a division of a user's own.
        groups: Group of every edge.
        loss: The terms of the loss: the paper's sum, or the mean over sampled subgraphs.
    """

    division: Division
    groups: Tensor
    loss: GraphLoss

    @classmethod
    def of(
        cls,
        bound_model: ModelAdapter,
        graph: CanonicalGraph,
        y: Tensor,
        rows: Tensor,
        division: Division,
        settings: FitSettings,
    ) -> "SampledNodeObjective":
        """Returns the objective for the settings of ``fit``."""
        loss = GraphLoss.of(bound_model, y[rows], division.num_groups_in(graph), GROUPS_PER_STEP, settings)
        return cls(bound_model, graph, y, rows, division, division.groups(graph), loss)

    def backward(self) -> float:
        """Adds the gradient of the objective on sampled subgraphs to the parameters and returns its value."""
        return backward_each(self._terms())

    def _terms(self) -> Iterator[Tensor]:
        yield self._losses(self.graph).mean()
        loss = self.loss
        num_groups = self.division.num_groups_in(self.graph)
        for index in torch.randperm(num_groups)[: loss.num_sampled].tolist():
            losses = self._losses(self.division.subgraph(self.graph, self.groups, index))
            if not len(losses):
                continue
            if loss.scale is None:
                yield losses.mean() / loss.num_sampled
            else:
                yield losses.sum() * loss.scale / len(self.rows)

    def _losses(self, subgraph: CanonicalGraph) -> Tensor:
        """Returns the losses of the training nodes that vote on a subgraph; those that abstain have none."""
        values = self.bound_model.edge_values(subgraph)
        logits = self.bound_model(subgraph.x.to(self.bound_model.dtype), subgraph.edge_index, values)
        rows = self.rows
        if subgraph.abstain is not None:
            rows = rows[~subgraph.abstain[rows]]
        return row_losses(logits[rows], self.y[rows], self.loss.class_weight)
