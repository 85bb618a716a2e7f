"""Training objectives of graph classifiers.

- ``GraphObjective``: graphs and their non-empty subgraphs, in mini-batches of graphs.
- ``SampledGraphObjective``: GNNCert's divisions, whose subgraphs have all nodes. Each step samples a few subgraphs.
  With "paper" the gradient is an unbiased estimate of that of the paper's sum. A smoothing defence samples new noise in
  each step (``SampledGraphObjective.of_noise``).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from agnncert.divisions.base import Division, RandomDefence
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import Features
from agnncert.engine.union import side_by_side
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.training.losses import GROUPS_PER_STEP, GraphLoss, TrainingStep, backward_each, class_weights, row_losses
from agnncert.training.settings import FitSettings


class Part(NamedTuple):
    """The part of a :class:`SideBySide` that belongs to some training graphs.

    Attributes:
        copies: Positions of its copies of nodes.
        edges: Positions of its edges.
        edge_index: These edges, between positions in ``copies``.
    """

    copies: Tensor
    edges: Tensor
    edge_index: Tensor


class OwnedLogits(NamedTuple):
    """Logits of graphs or subgraphs, and the training graph that each belongs to."""

    owner: Tensor
    logits: Tensor


@dataclass(frozen=True)
class SideBySide:
    """Whole graphs or subgraphs in one disconnected graph, ordered by the training graph that they belong to.

    Attributes:
        owner: Training graph of each copy of a node, ascending.
        subgraph_index: Graph or subgraph of each copy, ascending.
        node: Original node of each copy.
        edge_index: Edges between copies, in the order of their owners.
        edge: Original edge of each of these edges.
    """

    owner: Tensor
    subgraph_index: Tensor
    node: Tensor
    edge_index: Tensor
    edge: Tensor

    @cached_property
    def _edge_owner(self) -> Tensor:
        return self.owner[self.edge_index[0]]

    def part(self, graphs: Tensor, is_wanted: Tensor | None = None) -> Part:
        """Returns what belongs to some training graphs.

        Args:
            graphs: The training graphs, ascending.
            is_wanted: Whether each copy of a node is wanted; ``None`` if all of them are.
        """
        copies = runs(self.owner, graphs)
        edges = runs(self._edge_owner, graphs)
        if is_wanted is not None:
            copies = copies[is_wanted[copies]]
            edges = edges[is_wanted[self.edge_index[0, edges]]]
        place = torch.empty(len(self.owner), dtype=torch.int64)
        place[copies] = torch.arange(len(copies))
        return Part(copies, edges, place[self.edge_index[:, edges]])


def runs(owner: Tensor, wanted: Tensor) -> Tensor:
    """Returns all positions of the ``wanted`` values in the sorted tensor ``owner``."""
    first = torch.searchsorted(owner, wanted)
    length = torch.searchsorted(owner, wanted, right=True) - first
    shift = torch.cumsum(length, 0) - length
    return torch.repeat_interleave(first - shift, length) + torch.arange(int(length.sum()))


@dataclass(frozen=True)
class GraphObjective:
    """Loss of a graph classifier on graphs and, if they are divided, on all their non-empty subgraphs.

    Attributes:
        bound_model: The model, bound to the graphs.
        joined: The training graphs, joined into one disconnected graph.
        y: Label of every training graph.
        wholes: The training graphs side by side.
        subgraphs: Their non-empty subgraphs side by side; ``None`` to train on whole graphs only.
        num_groups: Subgraphs of each graph.
        loss: The terms of the loss.
        batch_size: Graphs per step.
    """

    bound_model: ModelAdapter
    joined: CanonicalGraph
    y: Tensor
    wholes: SideBySide
    subgraphs: SideBySide | None
    num_groups: int
    loss: GraphLoss
    batch_size: int

    @classmethod
    def of(
        cls,
        bound_model: ModelAdapter,
        joined: CanonicalGraph,
        y: Tensor,
        division: Division | None,
        settings: FitSettings,
    ) -> "GraphObjective":
        """Returns the objective for a division, or with ``None`` for whole graphs only.

        "paper" adds the losses on a graph and on each of its non-empty subgraphs; "balanced" adds the loss on the graph
        and the mean loss on its non-empty subgraphs; "vote" is the loss of their vote. All are averaged over graphs.
        """
        nodes = torch.arange(joined.num_nodes)
        edges = torch.arange(joined.num_edges)
        wholes = SideBySide(joined.graph_of_node, joined.graph_of_node, nodes, joined.edge_index, edges)
        if division is None:
            loss = GraphLoss(class_weights(y, bound_model, settings))
            return cls(bound_model, joined, y, wholes, None, 0, loss, settings["batch_size"])
        num_groups = division.num_groups_in(joined)
        if division.is_per_neighbour:  # small graphs have few: a sample of all numbers would hardly look at them
            settings = {**settings, "groups_per_step": None}
        loss = GraphLoss.of(bound_model, y, num_groups, num_groups, settings)
        union = division.disjoint_union(joined, division.groups(joined))
        owner = torch.div(union.subgraph_index, num_groups, rounding_mode="floor")
        subgraphs = SideBySide(owner, union.subgraph_index, union.node, union.edge_index, union.edge)
        return cls(bound_model, joined, y, wholes, subgraphs, num_groups, loss, settings["batch_size"])

    def steps(self) -> Iterator[TrainingStep]:
        """Yields a step for each batch of graphs, in random order."""
        for batch in torch.split(torch.randperm(len(self.y)), self.batch_size):
            yield lambda batch=batch: self.backward(batch.sort().values)  # type: ignore[misc]

    def backward(self, graphs: Tensor) -> float:
        """Adds the gradient of the mean loss of some graphs (ascending) and returns that loss."""
        nodes = runs(self.joined.graph_of_node, graphs)
        place = torch.empty(self.joined.num_nodes, dtype=torch.int64)
        place[nodes] = torch.arange(len(nodes))
        features = Features(self.joined.x[nodes].to(self.bound_model.dtype), cut=True)
        loss = backward_each(self._terms(graphs, features, place))
        features.finish_backward()
        return loss

    def _terms(self, graphs: Tensor, features: Features, place: Tensor) -> Iterator[Tensor]:
        if self.loss.whole:
            whole = self._logits(self.wholes, self.wholes.part(graphs), features, place)
            yield row_losses(whole.logits, self.y[whole.owner], self.loss.class_weight).mean()
        if self.subgraphs is None:
            return
        part = self.subgraphs.part(graphs, self._is_sampled(self.subgraphs))
        if len(part.copies) == 0:
            return
        owner, logits = self._logits(self.subgraphs, part, features, place)
        yield self.loss.of_subgraphs(logits, torch.searchsorted(graphs, owner), self.y[graphs])

    def _is_sampled(self, subgraphs: SideBySide) -> Tensor | None:
        """Returns whether each copy of a node is in a sampled group; ``None`` if all groups are used."""
        if self.loss.num_sampled == self.num_groups:
            return None
        is_sampled = torch.zeros(self.num_groups, dtype=torch.bool)
        is_sampled[torch.randperm(self.num_groups)[: self.loss.num_sampled]] = True
        return is_sampled[subgraphs.subgraph_index % self.num_groups]

    def _logits(self, graphs: SideBySide, part: Part, features: Features, place: Tensor) -> OwnedLogits:
        """Returns the logits of each graph or subgraph of a part; ``place`` is the row of each node in the features."""
        index, batch = torch.unique_consecutive(graphs.subgraph_index[part.copies], return_inverse=True)
        values = self.bound_model.edge_values(self.joined, graphs.edge[part.edges])
        x = features.rows(place[graphs.node[part.copies]])
        logits = self.bound_model(x, part.edge_index, values, batch)
        owner = torch.empty_like(index)
        owner[batch] = graphs.owner[part.copies]
        return OwnedLogits(owner, logits)


@dataclass(frozen=True)
class SampledGraphObjective:
    """Loss of a graph classifier on graphs and on some subgraphs of each, sampled in each step.

    Attributes:
        bound_model: The model, bound to the graphs.
        graphs: The training graphs.
        y: Label of every training graph.
        sample: Samples subgraphs, or noisy versions, of the training graph with a number; some may have no node.
        loss: The terms of the loss.
        batch_size: Graphs per step.
    """

    bound_model: ModelAdapter
    graphs: tuple[CanonicalGraph, ...]
    y: Tensor
    sample: Callable[[int], Iterable[CanonicalGraph]]
    loss: GraphLoss
    batch_size: int

    @classmethod
    def of(
        cls, bound_model: ModelAdapter, joined: CanonicalGraph, y: Tensor, division: Division, settings: FitSettings
    ) -> "SampledGraphObjective":
        """Returns the paper's sum, the mean over sampled non-empty subgraphs, or the loss of their vote."""
        loss = GraphLoss.of(bound_model, y, division.num_groups, GROUPS_PER_STEP, settings)
        graphs = tuple(one_graph(joined, k) for k in range(len(y)))
        groups = tuple(map(division.groups, graphs))

        def sample(k: int) -> Iterator[CanonicalGraph]:
            for index in torch.randperm(division.num_groups)[: loss.num_sampled].tolist():
                yield division.subgraph(graphs[k], groups[k], index)

        return cls(bound_model, graphs, y, sample, loss, settings["batch_size"])

    @classmethod
    def of_noise(
        cls, bound_model: ModelAdapter, joined: CanonicalGraph, y: Tensor, defence: RandomDefence, settings: FitSettings
    ) -> "SampledGraphObjective":
        """Returns the loss on one noisy version of each graph per step."""
        loss = GraphLoss(class_weights(y, bound_model, settings), whole=False, num_sampled=1)
        graphs = tuple(one_graph(joined, k) for k in range(len(y)))
        return cls(bound_model, graphs, y, lambda k: [defence.noisy(graphs[k])], loss, settings["batch_size"])

    def steps(self) -> Iterator[TrainingStep]:
        """Yields a step for each batch of graphs, in random order."""
        for batch in torch.split(torch.randperm(len(self.y)), self.batch_size):
            yield lambda batch=batch: self.backward(batch)  # type: ignore[misc]

    def backward(self, batch: Tensor) -> float:
        """Adds the gradient of the mean loss of some graphs to the parameters and returns that loss."""
        loss = torch.zeros(())
        if self.loss.whole:
            logits = self.bound_model(*side_by_side(self.bound_model, [self.graphs[k] for k in batch.tolist()]))
            loss = loss + row_losses(logits, self.y[batch], self.loss.class_weight).mean()
        owner, subgraphs = self._sampled(batch)
        if subgraphs:
            logits = self.bound_model(*side_by_side(self.bound_model, subgraphs))
            loss = loss + self.loss.of_subgraphs(logits, torch.tensor(owner), self.y[batch])
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _sampled(self, batch: Tensor) -> tuple[list[int], list[CanonicalGraph]]:
        """Returns sampled subgraphs that have a node, each with the position of its graph in the batch."""
        owner = []
        subgraphs = []
        for place, k in enumerate(batch.tolist()):
            for subgraph in self.sample(k):
                if subgraph.x.size(0):
                    owner.append(place)
                    subgraphs.append(subgraph)
        return owner, subgraphs
