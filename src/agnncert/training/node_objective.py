"""The training objective on a graph and all its subgraphs, exactly, for the price of a few plain steps.

A sum over T subgraphs falls apart into three terms: the whole graph, the ballots of nodes that have an edge
in a subgraph (one union), and the edgeless prediction, which stands for all other ballots of a node.
Gradients of every term are collected chunk by chunk, and the wide product of features and first layer is
formed and differentiated once per step.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions import Division
from agnncert.errors import SettingsError, did_you_mean
from agnncert.voting import fast
from agnncert.voting.call import Caller, no_edges
from agnncert.voting.lazy_rows import Features, SparseRows

ObjectiveName = Literal["balanced", "paper", "vote"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("balanced", "paper", "vote")
Step = Callable[[], float]

# How fast the loss of a vote falls with the margin: one tenth of the ballots counts like 1 in a logit. Anything
# from 5 to 30 did as well on AIDS and PROTEINS.
SHARPNESS = 10.0


class Objective(Protocol):
    """What the training loop asks of an objective."""

    def steps(self) -> Iterator[Step]:
        """The steps of one epoch; each adds its gradient to the parameters and returns its loss."""


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
        if not all(0 <= value < float("inf") for value in values) or max(values) == 0:
            raise SettingsError(f"{self}: weights must be finite and not negative, and one of them must be positive.")


def class_weights(y: Tensor, call: Caller) -> Tensor:
    """Weights, 1 on average, that let every class count the same.

    Without them a rare class loses every vote for which its evidence is weak.
    """
    count = torch.bincount(y, minlength=call.num_classes).to(call.dtype)
    return len(y) / (torch.count_nonzero(count) * count.clamp(min=1))


def usual_objective(task: str) -> ObjectiveName:
    """What to train when nothing is said: the three terms for nodes, the vote for graphs."""
    return "vote" if task == "graph" else "balanced"


def check_objective(objective: str) -> None:
    """Refuses an unknown name."""
    if objective not in OBJECTIVES:
        raise SettingsError(f'unknown objective "{objective}": {did_you_mean(str(objective), OBJECTIVES)}')


def vote_losses(logits: Tensor, owner: Tensor, y: Tensor, class_weight: Tensor | None = None) -> Tensor:
    """Loss of the vote that the ballots of each graph cast together, shape ``[len(y)]``; 0 without a ballot.

    Ballots that see two or three edges are rarely sure of anything, and the loss of each by itself teaches
    all of them to name the commonest class. Their mean is what decides.

    Args:
        logits: One row per ballot.
        owner: Whose ballot it is, a position in ``y``.
        y: Labels.
        class_weight: How much each class counts, if not all the same.
    """
    cast = torch.bincount(owner, minlength=len(y))
    shares = logits.new_zeros(len(y), logits.size(1)).index_add(0, owner, logits.softmax(1))
    shares = shares / cast.clamp(min=1)[:, None]
    losses = F.cross_entropy(SHARPNESS * shares, y, class_weight, reduction="none")
    return torch.where(cast > 0, losses, 0)


def collect(terms: Iterator[Tensor], features: Features) -> float:
    """Backward through each term as it comes, so that only one of them is in memory; returns their sum."""
    total = 0.0
    for loss in terms:
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    features.finish_backward()
    return total


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
        factors: What the mean loss over the whole graph, each listed ballot and each edgeless prediction
            count.
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
        """The objective for a built-in division, or for the whole graph alone.

        Args:
            call: The model, bound to the graph.
            graph: The canonical graph.
            y: Label of every node.
            rows: Nodes to train on.
            division: A division that offers ``pieces``, or ``None``.
            objective: "paper" sums the mean losses on the graph and on each of its T subgraphs; of ballots
                that abstain there is no loss. "balanced" averages each of the three terms by itself: over the
                nodes, over the ballots that see an edge, and over the ballots that see none.
            weights: Factors of the three terms.
            balance_classes: Let every class count the same, however many members it has.

        Raises:
            SettingsError: The objective is unknown, or nothing is left to train on.
        """
        check_objective(objective)
        weights = weights or Weights()
        per_class = class_weights(y[rows], call) if balance_classes else None
        if division is None:
            none, sparse = torch.empty(0), SparseRows.of(graph.x.to(call.dtype))
            return cls(call, graph, y, rows, None, sparse, (1.0, none, none), per_class)
        layout = fast.plan(graph, division, rows.numpy(), call.dtype)
        if layout.pieces.blank is not None and not (weights.full or weights.ballots):
            raise SettingsError(
                f"{weights}: where features are gated a ballot without an edge abstains: weigh another term."
            )
        factors = _factors(layout, rows, division, objective, weights, call.dtype)
        return cls(call, graph, y, rows, layout, layout.sparse, factors, per_class)

    def steps(self) -> Iterator[Step]:
        """One step on all nodes."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the objective to the parameters; returns its value."""
        features = Features(self.graph.x.to(self.call.dtype), self.sparse, cut=True)
        return collect(self._terms(features), features)

    def _terms(self, features: Features) -> Iterator[Tensor]:
        full, ballots, edgeless = self.factors
        y = self.y[self.rows]
        if full:
            values = self.call.edge_values(self.graph)
            logits = self.call(features.rows(torch.arange(self.graph.num_nodes)), self.graph.edge_index, values)
            yield full * self._losses(logits[self.rows], y).mean()
        if self.layout is None:
            return
        if bool(edgeless.any()):
            logits = self.call(features.rows(self.rows), *no_edges(self.graph, self.call.takes))
            yield edgeless @ self._losses(logits, y)
        if bool(ballots.any()):
            for chunk in self.layout.chunks(fast.CHUNK_ROWS):
                counted = ballots[chunk.copies]
                mine = counted.nonzero().view(-1)
                if len(mine) == 0:
                    continue
                logits = fast.evaluate(self.call, self.layout, features, chunk)[mine]
                target = self.y[self.layout.pieces.node[chunk.copies][mine]]
                yield counted[mine] @ self._losses(logits, target)

    def _losses(self, logits: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(logits, target, self.class_weight, reduction="none")


def _factors(
    layout: fast.Plan, rows: Tensor, division: Division, objective: ObjectiveName, weights: Weights, dtype: torch.dtype
) -> tuple[float, Tensor, Tensor]:
    pieces = layout.pieces
    is_mine = torch.zeros(layout.graph.num_nodes, dtype=torch.bool)
    is_mine[rows] = True
    listed = (pieces.votes & is_mine[pieces.node]).to(dtype)
    count = torch.zeros(layout.graph.num_nodes, dtype=dtype).index_add_(0, pieces.node, listed)
    gated = pieces.blank is not None  # then a ballot without an edge is an abstention, and nothing is trained on it
    unlisted = torch.zeros(len(rows), dtype=dtype) if gated else division.num_groups - count[rows]
    if objective == "paper":
        parts = listed / len(rows), unlisted / len(rows)
    else:
        parts = listed / listed.sum().clamp(min=1), unlisted / unlisted.sum().clamp(min=1)
    return weights.full, weights.ballots * parts[0], weights.edgeless * parts[1]
