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
from agnncert.training.side_by_side import SideBySide, runs
from agnncert.training.vote_search import BallotTable, constant_answer, majority, size_only
from agnncert.voting.call import Caller

SLOPE = 0.2  # how fast the loss falls, per ballot; .5 shrinks margins
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
        joined: The training graphs, joined into one disconnected graph.
        y: Label of every training graph.
        owner: Training graph of each subgraph that is not empty, ascending.
        kind: Kind of each of these subgraphs.
        examples: One subgraph of each kind.
        num_filled: Number of these subgraphs of each training graph.
        constants: What empty groups cast, and the prior.
        size: The perturbation size to withstand.
        class_weight: How much each class counts, if not all the same.
        batch_size: Graphs whose subgraphs are evaluated at a time.
    """

    call: Caller
    joined: Data
    y: Tensor
    owner: Tensor
    kind: Tensor
    examples: SideBySide
    num_filled: Tensor
    constants: VoteConstants
    size: int
    class_weight: Tensor | None
    batch_size: int

    @classmethod
    def of(
        cls, call: Caller, joined: Data, y: Tensor, division: Division, settings: FitSettings
    ) -> "CertifiedObjective":
        """The objective for a division that offers ``pieces``; all its groups take part in every step."""
        groups = division.num_groups
        pieces = division.pieces(joined, division.groups(joined))  # type: ignore[attr-defined]
        owner = torch.div(pieces.cell, groups, rounding_mode="floor")
        cells = SideBySide(owner, pieces.cell, pieces.node, pieces.edge_index, pieces.edge)
        cell, where = torch.unique_consecutive(cells.cell, return_inverse=True)
        if _tells_equals_apart(call.model):
            kind, examples = torch.arange(len(cell)), SideBySide(where, where, cells.node, cells.edge_index, cells.edge)
        else:
            kind, examples = cells.kinds(joined.x, call.edge_values(joined))
        owner = torch.div(cell, groups, rounding_mode="floor")
        filled = torch.bincount(owner, minlength=len(y))
        constants = VoteConstants(_sizes(filled, y, groups, call.num_classes), settings["design_size"], call.dtype)
        per_class = class_weights(y, call) if settings["balance_classes"] else None
        size, batch_size = settings["design_size"], settings["batch_size"]
        return cls(call, joined, y, owner, kind, examples, filled, constants, size, per_class, batch_size)

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
            return F.softplus(-SLOPE * margins)
        return 2 * torch.sigmoid(-SLOPE * margins)

    def margins(self, graphs: Tensor) -> Tensor:
        """By how many ballots the true class is ahead of each graph's strongest rival after the worst changes."""
        cells = runs(self.owner, graphs)
        place = torch.searchsorted(graphs, self.owner[cells])
        scores: Tensor = self.constants(self.num_filled[graphs])
        if len(cells):
            scores = scores.index_add(0, place, self._shares(self.kind[cells]))
        is_own = torch.arange(self.call.num_classes) == self.y[graphs][:, None]
        rival = scores.masked_fill(is_own, -torch.inf).amax(dim=1)
        return scores[is_own] - rival - 2 * self.size

    def _shares(self, kind: Tensor) -> Tensor:
        """Soft ballots of cells of these kinds, shape ``[len(kind), num_classes]``."""
        present, which = torch.unique(kind, return_inverse=True)
        copies, arcs, edge_index = self.examples.part(present)
        batch = torch.searchsorted(present, self.examples.cell[copies])
        x = self.joined.x[self.examples.node[copies]].to(self.call.dtype)
        values = self.call.edge_values(self.joined, self.examples.edge[arcs])
        return self.call(x, edge_index, values, batch).softmax(dim=1)[which]


def _sizes(filled: Tensor, y: Tensor, num_groups: int, num_classes: int) -> BallotTable:
    """A table in which all ballots are for class 0, for a search that looks at the number of filled groups alone."""
    n, num_filled = len(y), filled.numpy()
    counts = np.zeros((n, num_classes), dtype=np.int64)
    counts[:, 0] = num_filled
    none, stable = np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
    return BallotTable(
        num_groups, counts, num_groups - num_filled, none, y.numpy(), np.full(n, 1 / n), none - 1, stable
    )


def _tells_equals_apart(model: Any) -> bool:
    """Whether a module treats equal inputs differently while training."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return any(
        isinstance(module, nn.modules.batchnorm._NormBase)
        or (isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0)
        for module in modules
    )
