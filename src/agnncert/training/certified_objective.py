"""Training for a size: the loss of a graph classifier whose vote, with a prior, is to withstand that many changes.

The vote is the one that will be certified, with soft ballots in place of hard ones: the shares of the classes in the
groups that are not empty, what empty groups cast, and a prior. The last two are trained along with the weights and then
forgotten: ``choose_vote`` finds the best whole numbers for the ballots as they are cast.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.divisions import Division
from agnncert.training.first_ballots import first_ballots
from agnncert.training.objective import TrainingStep, backward_each, class_weights
from agnncert.training.settings import FitSettings
from agnncert.training.side_by_side import DistinctSubgraphs, runs
from agnncert.training.vote_search import Constants, window
from agnncert.voting.call import Caller

STEEPEST = 0.2  # how fast the loss falls, per ballot; .5 shrinks margins
REACH = 5.0  # … and over the ballots of a typical graph; where these are hundreds, a steep loss looks at few graphs
UNIT = 10.0  # ballots in which the prior is measured: it must move faster than weights, and slower than ballots
FIRST_STEPS = 40  # in which the model learns the ballots to start from; at most a third of all
DOUBT = 0.1  # with which it learns them, so that they can still be changed


class VoteConstants(nn.Module):
    """What empty groups cast and where each class starts, as numbers that can be trained.

    At first they are those of the vote to start from, shrunk as much as ballots are that are not quite certain.

    Args:
        first: The vote to start from.
        num_groups: Number of groups.
        typical: Filled groups of a typical graph.
        dtype: Type in which the model computes.
    """

    steps: Tensor

    def __init__(self, first: Constants, num_groups: int, typical: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.slope = min(STEEPEST, REACH / max(1.0, typical))
        start = torch.tensor(first.prior, dtype=dtype)
        casts = torch.full((len(start) + 1,), DOUBT / (len(start) + 1), dtype=dtype)  # the last entry: nothing
        if isinstance(first.empty, int):
            start[first.empty] += num_groups
        casts[first.empty if isinstance(first.empty, int) else -1] += 1 - DOUBT
        self.casts = nn.Parameter(casts.log())
        self.start = nn.Parameter((1 - DOUBT) * (start - start.mean()) / UNIT)
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
        first: Which class each kind of subgraph votes for in the vote to start from.
        constants: What empty groups cast, and the prior.
        size: The perturbation size to withstand.
        class_weight: How much each class counts, if not all the same.
        batch_size: Graphs whose subgraphs are evaluated at a time.
        first_steps: Steps in which the ballots to start from are learnt.
    """

    call: Caller
    y: Tensor
    subgraphs: DistinctSubgraphs
    first: Tensor
    constants: VoteConstants
    size: int
    class_weight: Tensor | None
    batch_size: int
    first_steps: int

    @classmethod
    def of(
        cls, call: Caller, joined: Data, y: Tensor, division: Division, settings: FitSettings
    ) -> "CertifiedObjective":
        """The objective for a division that offers ``pieces``; all its groups take part in every step."""
        subgraphs = DistinctSubgraphs.of(call, joined, len(y), division, each=_tells_equals_apart(call.model))
        size, num_groups = settings["design_size"], division.num_groups
        first = first_ballots(subgraphs, y.numpy(), num_groups, call.num_classes, window(size))
        typical = float(subgraphs.num_filled.to(torch.float64).median())
        constants = VoteConstants(first.constants, num_groups, typical, call.dtype)
        per_class = class_weights(y, call) if settings["balance_classes"] else None
        steps = min(FIRST_STEPS, settings["epochs"] // 3)
        return cls(call, y, subgraphs, first.of_kind, constants, size, per_class, settings["batch_size"], steps)

    def steps(self) -> Iterator[TrainingStep]:
        """One step on all graphs. The few near the brink decide; a small batch has none, and ends in a constant."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the mean loss to the parameters; returns that loss."""
        loss = backward_each(map(self._loss, torch.split(torch.arange(len(self.y)), self.batch_size)))
        self.constants.steps += 1
        return loss

    def _loss(self, graphs: Tensor) -> Tensor:
        if self.constants.steps < self.first_steps:
            return self._first_loss(graphs)
        losses = 2 * torch.sigmoid(-self.constants.slope * self.margins(graphs))  # far from the brink, none is left
        if self.class_weight is not None:
            losses = losses * self.class_weight[self.y[graphs]]
        return losses.sum() / len(self.y)

    def _first_loss(self, graphs: Tensor) -> Tensor:
        """How far the ballots are from those to start from; each kind counts as often as it occurs."""
        present, number = torch.unique(self.subgraphs.kind[runs(self.subgraphs.owner, graphs)], return_counts=True)
        if len(present) == 0:
            return torch.zeros((), dtype=self.call.dtype, requires_grad=True)
        logits = self.subgraphs.logits(self.call, present)
        losses = F.cross_entropy(logits, self.first[present], reduction="none", label_smoothing=DOUBT)
        loss: Tensor = (losses * number).sum() / len(self.subgraphs.kind)
        return loss

    def margins(self, graphs: Tensor) -> Tensor:
        """By how many ballots the true class is ahead of each graph's strongest rival after the worst changes."""
        cells = runs(self.subgraphs.owner, graphs)
        scores: Tensor = self.constants(self.subgraphs.num_filled[graphs])
        if len(cells):
            present, which = torch.unique(self.subgraphs.kind[cells], return_inverse=True)
            shares = self.subgraphs.logits(self.call, present).softmax(dim=1)[which]
            scores = scores.index_add(0, torch.searchsorted(graphs, self.subgraphs.owner[cells]), shares)
        is_own = torch.arange(self.call.num_classes) == self.y[graphs][:, None]
        rival = scores.masked_fill(is_own, -torch.inf).amax(dim=1)
        return scores[is_own] - rival - 2 * self.size


def _tells_equals_apart(model: Any) -> bool:
    """Whether a module treats equal inputs differently while training."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return any(
        isinstance(module, nn.modules.batchnorm._NormBase)
        or (isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0)
        for module in modules
    )
