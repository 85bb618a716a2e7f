"""The training objective of a graph classifier on graphs and their non-empty subgraphs, in mini-batches of graphs."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions import Division, has_own_groups, num_groups_in
from agnncert.training.objective import Terms, TrainingStep, backward_each, class_weights
from agnncert.training.settings import FitSettings
from agnncert.training.side_by_side import SideBySide, runs
from agnncert.voting.call import Caller
from agnncert.voting.lazy_rows import Features


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
        terms: How much the losses count, and how many groups, sampled anew, a step looks at.
        batch_size: Graphs per step.
    """

    call: Caller
    joined: Data
    y: Tensor
    wholes: SideBySide
    cells: SideBySide | None
    num_groups: int
    terms: Terms
    batch_size: int

    @classmethod
    def of(
        cls, call: Caller, joined: Data, y: Tensor, division: Division | None, settings: FitSettings
    ) -> "GraphObjective":
        """The objective for a division that offers ``pieces``, or (``None``) for whole graphs alone.

        "paper" adds up the losses on a graph and on each of its non-empty subgraphs; "balanced" adds the loss on the
        graph and the mean loss on its non-empty subgraphs; "vote" is the loss of the vote that these cast together.
        All are averaged over graphs.

        Raises:
            SettingsError: All terms have weight 0.
        """
        nodes, arcs = torch.arange(joined.num_nodes), torch.arange(joined.num_edges)
        wholes = SideBySide(joined.batch, joined.batch, nodes, joined.edge_index, arcs)
        if division is None:
            terms = Terms(1.0, 0.0, 0, class_weights(y, call) if settings["balance_classes"] else None)
            return cls(call, joined, y, wholes, None, 0, terms, settings["batch_size"])
        groups = num_groups_in(division, joined)
        if has_own_groups(division):  # small graphs have few: a sample of all numbers would hardly look at them
            settings = {**settings, "groups_per_step": None}
        terms = Terms.of(call, y, groups, groups, settings)
        pieces = division.pieces(joined, division.groups(joined))  # type: ignore[attr-defined]
        owner = torch.div(pieces.cell, groups, rounding_mode="floor")
        cells = SideBySide(owner, pieces.cell, pieces.node, pieces.edge_index, pieces.edge)
        return cls(call, joined, y, wholes, cells, groups, terms, settings["batch_size"])

    def steps(self) -> Iterator[TrainingStep]:
        """A step for each batch of graphs, in random order."""
        for batch in torch.split(torch.randperm(len(self.y)), self.batch_size):
            yield lambda batch=batch: self.backward(batch.sort().values)  # type: ignore[misc]

    def backward(self, graphs: Tensor) -> float:
        """Adds the gradient of the mean loss of some graphs (ascending); returns that loss."""
        nodes = runs(self.joined.batch, graphs)
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
        """Whether each copy of a node is in a group that this step looks at; ``None`` if it looks at all groups."""
        if self.terms.num_sampled == self.num_groups:
            return None
        is_sampled = torch.zeros(self.num_groups, dtype=torch.bool)
        is_sampled[torch.randperm(self.num_groups)[: self.terms.num_sampled]] = True
        return is_sampled[cells.cell % self.num_groups]

    def _logits(
        self, graphs: SideBySide, part: tuple[Tensor, Tensor, Tensor], features: Features, place: Tensor
    ) -> tuple[Tensor, Tensor]:
        """For each graph (whole or subgraph) of a part: the training graph it belongs to, and its logits."""
        copies, arcs, edge_index = part
        cell, batch = torch.unique_consecutive(graphs.cell[copies], return_inverse=True)
        values = self.call.edge_values(self.joined, graphs.edge[arcs])
        logits = self.call(features.rows(place[graphs.node[copies]]), edge_index, values, batch)
        owner = torch.empty_like(cell)
        owner[batch] = graphs.owner[copies]
        return owner, logits
