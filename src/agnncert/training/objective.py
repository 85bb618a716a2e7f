"""What all training objectives share: what the loop asks of them, and how losses are weighed and added up."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.errors import SettingsError
from agnncert.training.settings import FitSettings, Weights
from agnncert.voting.call import Caller

# One training step: adds its gradient to the parameters and returns its loss.
TrainingStep = Callable[[], float]

# How fast the loss of a vote falls with the margin: one tenth of the ballots counts as much as 1 in a logit. All values
# from 5 to 30 did equally well on AIDS and PROTEINS.
SHARPNESS = 10.0


class Objective(Protocol):
    """What the training loop asks of an objective."""

    def steps(self) -> Iterator[TrainingStep]:
        """The steps of one epoch; each adds its gradient to the parameters and returns its loss."""


def class_weights(y: Tensor, call: Caller) -> Tensor:
    """Weights, 1 on average, that let every class count the same.

    Without them a rare class loses every vote that is close.
    """
    count = torch.bincount(y, minlength=call.num_classes).to(call.dtype)
    return len(y) / (torch.count_nonzero(count) * count.clamp(min=1))


def row_losses(logits: Tensor, y: Tensor, class_weight: Tensor | None = None) -> Tensor:
    """The cross entropy of each row by itself, shape ``[len(y)]``."""
    return F.cross_entropy(logits, y, class_weight, reduction="none")


def vote_losses(logits: Tensor, owner: Tensor, y: Tensor, class_weight: Tensor | None = None) -> Tensor:
    """Loss of the vote that the ballots of each graph cast together, shape ``[len(y)]``; 0 without a ballot.

    Ballots that see two or three edges are rarely sure of anything, and the loss of each by itself teaches all of them
    to name the commonest class. What decides is their mean.

    Args:
        logits: One row per ballot.
        owner: Whose ballot it is, a position in ``y``.
        y: Labels.
        class_weight: How much each class counts, if not all the same.
    """
    num_ballots = torch.bincount(owner, minlength=len(y))
    shares = logits.new_zeros(len(y), logits.size(1)).index_add(0, owner, logits.softmax(1))
    shares = shares / num_ballots.clamp(min=1)[:, None]
    losses = row_losses(SHARPNESS * shares, y, class_weight)
    return torch.where(num_ballots > 0, losses, 0)


@dataclass(frozen=True)
class Terms:
    """How much the loss on whole graphs and the loss on subgraphs, all or some of them, count.

    Attributes:
        full: Factor of the loss on whole graphs.
        ballots: Factor of the loss on subgraphs.
        num_sampled: Subgraphs per step (and graph).
        class_weight: How much each class counts, if not all the same.
        scale: How many subgraphs each of them stands for in the paper's sum, T / ``num_sampled``; ``None`` where they
            are averaged.
        by_vote: Graph task: whether the loss is that of the vote of all these subgraphs of a graph.
    """

    full: float
    ballots: float
    num_sampled: int
    class_weight: Tensor | None
    scale: float | None = None
    by_vote: bool = False

    @classmethod
    def of(cls, call: Caller, y: Tensor, num_groups: int, usually_sampled: int, settings: FitSettings) -> "Terms":
        """The terms that the settings of ``fit`` ask for.

        Args:
            call: The model.
            y: Labels to train on.
            num_groups: Subgraphs T of a graph.
            usually_sampled: How many of them a step looks at if the settings do not say it.
            settings: From ``checked``.

        Raises:
            SettingsError: Both terms have weight 0.
        """
        by_vote = settings["objective"] == "vote"
        weights = Weights(full=0) if by_vote else settings["weights"] or Weights()
        if not (weights.full or weights.ballots):
            raise SettingsError(
                f"{weights}: there is no edgeless term for graphs, nor for GNNCert: weigh another term."
            )
        num_sampled = min(settings["groups_per_step"] or usually_sampled, num_groups)
        scale = num_groups / num_sampled if settings["objective"] == "paper" else None
        per_class = class_weights(y, call) if settings["balance_classes"] else None
        return cls(weights.full, weights.ballots, num_sampled, per_class, scale, by_vote)

    def losses(self, logits: Tensor, y: Tensor) -> Tensor:
        """One loss per row."""
        return row_losses(logits, y, self.class_weight)

    def graph_loss(self, logits: Tensor, owner: Tensor, y: Tensor) -> Tensor:
        """Mean loss of some graphs on their subgraphs.

        Args:
            logits: One row per subgraph.
            owner: Whose subgraph it is, a position in ``y``.
            y: Labels of the graphs.
        """
        if self.by_vote:
            losses = vote_losses(logits, owner, y, self.class_weight)
        elif self.scale is None:
            losses = self.losses(logits, y[owner]) / torch.bincount(owner)[owner]
        else:
            losses = self.losses(logits, y[owner]) * self.scale
        return self.ballots * losses.sum() / len(y)


def backward_each(terms: Iterable[Tensor]) -> float:
    """Calls ``backward`` on each term as it comes, so that only one is in memory at a time; returns their sum."""
    total = 0.0
    for loss in terms:
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    return total
