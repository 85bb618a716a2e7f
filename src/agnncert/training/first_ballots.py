"""Ballots to start from when a model is trained for a size: those of the size alone, mended kind by kind.

Where groups are many, a subgraph is a node or an edge, and few kinds make up nearly all of them. Which class each
common kind should vote for is then a small search without any model: start with the vote by size alone, let one kind
after the other change sides, and keep what certifies more training graphs. A model learns these ballots first, so that
training begins where the control ends.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from agnncert.proof.ballots import IntArray
from agnncert.training.side_by_side import DistinctSubgraphs
from agnncert.training.vote_search import BallotTable, Constants, best_constants, constant_answer, majority, size_only

COMMON = 100  # kinds that may change sides: the commonest ones …
SHARE = 0.01  # … if they occur in so many of the graphs
GAIN = 0.001  # what a change of sides must bring; less is chance
ROUNDS = 4


@dataclass(frozen=True)
class FirstBallots:
    """What to start from.

    Attributes:
        of_kind: The class for which each kind of subgraph votes.
        constants: What empty groups cast, and the prior.
    """

    of_kind: torch.Tensor
    constants: Constants


def first_ballots(
    subgraphs: DistinctSubgraphs, truth: IntArray, num_groups: int, num_classes: int, sizes: tuple[int, ...]
) -> FirstBallots:
    """The vote by size alone, mended kind by kind for the best certified accuracy at some sizes.

    Where the size alone is no better than a constant answer at these sizes, the search starts from what it tells
    without any change.
    """
    counts = np.zeros((len(truth), num_classes), dtype=np.int64)
    counts[:, 0] = subgraphs.num_filled.numpy()
    table = BallotTable.of_graphs(num_groups, counts, truth)
    label, constants = size_only(table, sizes)
    if constants.score <= constant_answer(table, majority(table), sizes).score:
        label, constants = size_only(table, [0])
    of_kind = torch.full((subgraphs.num_kinds,), label, dtype=torch.int64)
    table, common = table.voting(label), _common(subgraphs)
    best = best_constants(table, sizes, [constants.empty])
    for _ in range(ROUNDS):
        before = best.score
        for kind, number in common:
            for other in range(num_classes):
                changed = _moved(table, number, int(of_kind[kind]), other)
                found = best_constants(changed, sizes, [constants.empty])
                if found.score >= best.score + GAIN:
                    table, best = changed, found
                    of_kind[kind] = other
        if best.score <= before:
            break
    # A constant answer would silence every ballot from the first step on: then the size alone stays the start.
    is_constant = max(best.prior) > num_groups if isinstance(best.prior, tuple) else False
    return FirstBallots(of_kind, constants if is_constant else best)


def _common(subgraphs: DistinctSubgraphs) -> list[tuple[int, IntArray]]:
    """The commonest kinds, and how many subgraphs of that kind each graph has."""
    num_graphs = len(subgraphs.num_filled)
    present = torch.unique(torch.stack([subgraphs.kind, subgraphs.owner]), dim=1)[0]
    in_graphs = torch.bincount(present, minlength=subgraphs.num_kinds)
    kinds = torch.argsort(in_graphs, descending=True, stable=True)[:COMMON]
    kinds = kinds[in_graphs[kinds] >= max(1.0, SHARE * num_graphs)]
    return [
        (int(kind), torch.bincount(subgraphs.owner[subgraphs.kind == kind], minlength=num_graphs).numpy())
        for kind in kinds
    ]


def _moved(table: BallotTable, number: IntArray, old: int, new: int) -> BallotTable:
    """The table after some ballots of each graph have changed sides."""
    counts = table.counts.copy()
    counts[:, old] -= number
    counts[:, new] += number
    return replace(table, counts=counts)
