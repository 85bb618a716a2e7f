"""Training objectives for GNNCert's divisions, whose subgraphs have all nodes, and for noisy graphs.

Each subgraph costs a pass over the whole graph, so each step samples a few that stand for all. With the objective
"paper", the gradient of a step is an unbiased estimate of the gradient of the paper's sum over T + 1 graphs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions import Division
from agnncert.graphs.graph import one_graph
from agnncert.training.objective import Terms, TrainingStep, backward_each
from agnncert.training.settings import FitSettings
from agnncert.voting.call import Caller

GROUPS_PER_STEP = 8


@dataclass(frozen=True)
class SampledNodeObjective:
    """Loss of a node classifier on the graph and on some of its subgraphs, sampled anew for each step.

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
    graph: Data
    y: Tensor
    rows: Tensor
    division: Division
    groups: Tensor
    terms: Terms

    @classmethod
    def of(
        cls, call: Caller, graph: Data, y: Tensor, rows: Tensor, division: Division, settings: FitSettings
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

    def _losses(self, part: Data) -> Tensor:
        logits = self.call(part.x.to(self.call.dtype), part.edge_index, self.call.edge_values(part))
        return self.terms.losses(logits[self.rows], self.y[self.rows])


@dataclass(frozen=True)
class SampledGraphObjective:
    """Loss of a graph classifier on graphs and on some subgraphs of each, sampled anew for each step.

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
    graphs: tuple[Data, ...]
    groups: tuple[Tensor, ...]
    y: Tensor
    division: Division
    terms: Terms
    batch_size: int

    @classmethod
    def of(
        cls, call: Caller, joined: Data, y: Tensor, division: Division, settings: FitSettings
    ) -> "SampledGraphObjective":
        """The paper's sum, the mean over a graph's sampled subgraphs ("balanced"), or the loss of their vote ("vote").

        Empty subgraphs are left out.
        """
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

    def _sample(self, batch: Tensor) -> tuple[Tensor, list[Data]]:
        """Sampled subgraphs that have a node; and for each, the position in the batch of the graph it belongs to."""
        owner, parts = [], []
        for position, k in enumerate(batch.tolist()):
            for index in torch.randperm(self.division.num_groups)[: self.terms.num_sampled].tolist():
                part = self.division.subgraph(self.graphs[k], self.groups[k], index)
                if part.x.size(0):
                    owner.append(position)
                    parts.append(part)
        return torch.tensor(owner, dtype=torch.int64), parts

    def _logits(self, parts: Sequence[Data]) -> Tensor:
        sizes = torch.tensor([part.x.size(0) for part in parts])
        starts = (torch.cumsum(sizes, 0) - sizes).tolist()
        x = torch.cat([part.x for part in parts]).to(self.call.dtype)
        edge_index = torch.cat([part.edge_index + start for part, start in zip(parts, starts, strict=True)], dim=1)
        values = [self.call.edge_values(part) for part in parts]
        joined = {name: torch.cat([value[name] for value in values]) for name in self.call.takes}
        batch = torch.repeat_interleave(torch.arange(len(parts)), sizes)
        return self.call(x, edge_index, joined, batch)
