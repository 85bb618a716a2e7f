"""Losses of rows and of votes, and what the training loop asks of an objective."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.engine.adapter import ModelAdapter
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
        """Yields the steps of one epoch; each adds its gradient to the parameters and returns its loss."""


def class_weights(y: Tensor, bound_model: ModelAdapter, settings: FitSettings) -> Tensor | None:
    """Returns class weights, 1 on average, with which every class counts the same.

    Returns ``None`` if classes are not balanced.
    """
    if not settings["balance_classes"]:
        return None
    count = torch.bincount(y, minlength=bound_model.num_classes).to(bound_model.dtype)
    return len(y) / (torch.count_nonzero(count) * count.clamp(min=1))


def row_losses(logits: Tensor, y: Tensor, class_weight: Tensor | None) -> Tensor:
    """Returns the cross entropy of each row, shape ``[len(y)]``."""
    return F.cross_entropy(logits, y, class_weight, reduction="none")


def vote_losses(logits: Tensor, owner: Tensor, y: Tensor, class_weight: Tensor | None) -> Tensor:
    """Returns the loss of the mean vote of each graph, shape ``[len(y)]``. It is 0 without a vote.

    A subgraph of two or three edges says little, and a loss on each of them would teach all of them to predict the most
    frequent class. Therefore the loss is computed on their mean.

    Args:
        logits: One row for each subgraph.
        owner: Position in ``y`` of the graph that each row of ``logits`` belongs to.
        y: Label of each graph.
        class_weight: Weight of each class; all equal if ``None``.
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
        cls, bound_model: ModelAdapter, y: Tensor, num_groups: int, usually_sampled: int, settings: FitSettings
    ) -> "GraphLoss":
        """Returns the loss for the settings of ``fit``; ``usually_sampled`` is the default of ``groups_per_step``."""
        by_vote = settings["objective"] == "vote"
        num_sampled = min(settings["groups_per_step"] or usually_sampled, num_groups)
        scale = num_groups / num_sampled if settings["objective"] == "paper" else None
        return cls(class_weights(y, bound_model, settings), not by_vote, num_sampled, scale, by_vote)

    def of_subgraphs(self, logits: Tensor, owner: Tensor, y: Tensor) -> Tensor:
        """Returns the mean loss of some graphs on their subgraphs.

        Args:
            logits: One row for each subgraph.
            owner: Position in ``y`` of the graph that each row of ``logits`` belongs to.
            y: Label of each graph.
        """
        if self.by_vote:
            return vote_losses(logits, owner, y, self.class_weight).sum() / len(y)
        losses = row_losses(logits, y[owner], self.class_weight)
        if self.scale is not None:
            return (losses * self.scale).sum() / len(y)
        num_subgraphs = torch.bincount(owner)[owner]
        return (losses / num_subgraphs).sum() / len(y)


def backward_each(terms: Iterable[Tensor]) -> float:
    """Calls ``backward`` on one term after another, so that only one is in memory, and returns their sum."""
    total = 0.0
    for loss in terms:
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    return total
