"""Training for a size: the loss of a graph classifier whose vote, with a prior, is to withstand that many changes.

The vote is the one that will be certified, with soft ballots in place of hard ones: the shares of the classes in the
groups that are not empty, what empty groups cast, and a prior. The last two are trained along with the weights and then
forgotten: ``choose_vote`` finds the best whole numbers for the ballots as they are cast.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.divisions import Division
from agnncert.training.objective import TrainingStep, backward_each, class_weights
from agnncert.training.settings import FitSettings
from agnncert.training.side_by_side import DistinctSubgraphs, runs
from agnncert.training.vote_search import BallotTable, constant_answer, majority, size_only
from agnncert.voting.call import Caller

STEEPEST = 0.2  # how fast the loss falls, per ballot; .5 shrinks margins
REACH = 5.0  # … and over the ballots of a typical graph; where these are hundreds, a steep loss looks at few graphs
SHARPENED = 3.0  # soft ballots come to resemble hard ones: logits count up to four times as much, from step 150 on
UNIT = 10.0  # ballots in which the prior is measured: it must move faster than weights, and slower than ballots
GENTLE_STEPS = 50  # with a loss that never gives a graph up; the other one, from the first step, ends in a constant


class VoteConstants(nn.Module):
    """What empty groups cast and where each class starts, as numbers that can be trained.

    At first they are those of the best vote by size alone, with ballots that are undecided.

    Args:
        table: The training graphs; only how many groups are filled is looked at.
        size: The size to withstand.
        dtype: Type in which the model computes.
    """

    steps: Tensor

    def __init__(self, table: BallotTable, size: int, dtype: torch.dtype) -> None:
        super().__init__()
        _, by_size = size_only(table, [size])
        if (
            by_size.score <= constant_answer(table, majority(table), [size]).score
        ):  # see what sizes tell without changes
            _, by_size = size_only(table, [0])
        num_filled = table.num_groups - table.empty
        typical = float(np.median(num_filled))
        self.slope = min(STEEPEST, REACH / max(1.0, typical))
        casts = torch.full((table.num_classes + 1,), 0.05, dtype=dtype)  # the last entry: nothing
        casts[by_size.empty if isinstance(by_size.empty, int) else -1] = 0.95
        self.casts = nn.Parameter(casts.log())
        self.start = nn.Parameter(self.casts.detach().softmax(0)[:-1] * typical / UNIT)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, num_filled: Tensor) -> Tensor:
        """What is added to the ballots of graphs with so many filled groups, up to a constant that all classes get.

        Shape ``[num_graphs, num_classes]``.
        """
        casts = self.casts.softmax(0)[:-1]
        return UNIT * self.start - num_filled.to(casts.dtype)[:, None] * casts


@dataclass(frozen=True)
class CertifiedObjective:
    """Loss of the margin by which the vote of a graph survives changes of a given size.

    Equal subgraphs are evaluated once in a step, so that an epoch with hundreds of groups takes no longer than one with
    a few; not so if the model has dropout or batch norm, which treat equal subgraphs differently while training.

    Attributes:
        call: The model, bound to the graphs.
        y: Label of every training graph.
        subgraphs: Their subgraphs.
        constants: What empty groups cast, and the prior.
        size: The perturbation size to withstand.
        class_weight: How much each class counts, if not all the same.
        batch_size: Graphs whose subgraphs are evaluated at a time.
    """

    call: Caller
    y: Tensor
    subgraphs: DistinctSubgraphs
    constants: VoteConstants
    size: int
    class_weight: Tensor | None
    batch_size: int

    @classmethod
    def of(
        cls, call: Caller, joined: Data, y: Tensor, division: Division, settings: FitSettings
    ) -> "CertifiedObjective":
        """The objective for a division that offers ``pieces``; all its groups take part in every step."""
        subgraphs = DistinctSubgraphs.of(call, joined, len(y), division, each=_tells_equals_apart(call.model))
        sizes = _sizes(subgraphs.num_filled, y, division.num_groups, call.num_classes)
        constants = VoteConstants(sizes, settings["design_size"], call.dtype)
        per_class = class_weights(y, call) if settings["balance_classes"] else None
        return cls(call, y, subgraphs, constants, settings["design_size"], per_class, settings["batch_size"])

    def steps(self) -> Iterator[TrainingStep]:
        """One step on all graphs. The few near the brink decide; a small batch has none, and ends in a constant."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the mean loss to the parameters; returns that loss."""
        loss = backward_each(map(self._loss, torch.split(torch.arange(len(self.y)), self.batch_size)))
        self.constants.steps += 1
        return loss

    def _loss(self, graphs: Tensor) -> Tensor:
        losses = self.losses(self.margins(graphs))
        if self.class_weight is not None:
            losses = losses * self.class_weight[self.y[graphs]]
        return losses.sum() / len(self.y)

    def losses(self, margins: Tensor) -> Tensor:
        """At first every ballot that is missing costs the same; later, graphs far from the brink cost nothing more."""
        if self.constants.steps < GENTLE_STEPS:
            return F.softplus(-self.constants.slope * margins)
        return 2 * torch.sigmoid(-self.constants.slope * margins)

    def margins(self, graphs: Tensor) -> Tensor:
        """By how many ballots the true class is ahead of each graph's strongest rival after the worst changes."""
        cells = runs(self.subgraphs.owner, graphs)
        scores: Tensor = self.constants(self.subgraphs.num_filled[graphs])
        if len(cells):
            present, which = torch.unique(self.subgraphs.kind[cells], return_inverse=True)
            sharp = 1 + min(SHARPENED, float(self.constants.steps) / GENTLE_STEPS)
            shares = (sharp * self.subgraphs.logits(self.call, present)).softmax(dim=1)[which]
            scores = scores.index_add(0, torch.searchsorted(graphs, self.subgraphs.owner[cells]), shares)
        is_own = torch.arange(self.call.num_classes) == self.y[graphs][:, None]
        rival = scores.masked_fill(is_own, -torch.inf).amax(dim=1)
        return scores[is_own] - rival - 2 * self.size


def _sizes(filled: Tensor, y: Tensor, num_groups: int, num_classes: int) -> BallotTable:
    """A table in which all ballots are for class 0, for a search that looks at the number of filled groups alone."""
    counts = torch.zeros(len(y), num_classes, dtype=torch.int64)
    counts[:, 0] = filled
    return BallotTable.of_graphs(num_groups, counts.numpy(), y.numpy())


def _tells_equals_apart(model: Any) -> bool:
    """Whether a module treats equal inputs differently while training."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return any(
        isinstance(module, nn.modules.batchnorm._NormBase)
        or (isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0)
        for module in modules
    )
