"""Edits: small changes in terms of rows; an attack is put together from those that move the most ballots."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.graphs.perturbation import Id, Perturbation
from agnncert.proof.budget import Budget

NEW = -1  # stands for the node that an edit injects

Pair = tuple[int, int]


@dataclass(frozen=True)
class Edit:
    """One small change; nodes are rows, features are rows of the arsenal.

    Attributes:
        field: The field of the budget it spends.
        units: How much of it.
        add: Pairs to join.
        remove: Pairs to separate.
        drop: Nodes to delete.
        paint: Nodes and the features to give them.
        alter: Pairs and the weight, attribute or number of copies to give them.
        new: Features of the injected node, whose row is ``NEW``; ``None`` if there is none.
        new_group: Its group, in the node-centric division.
        new_id: Its id.
    """

    field: str
    units: int = 1
    add: tuple[Pair, ...] = ()
    remove: tuple[Pair, ...] = ()
    drop: tuple[int, ...] = ()
    paint: tuple[tuple[int, int], ...] = ()
    alter: tuple[tuple[int, int, Any], ...] = ()
    new: int | None = None
    new_group: int = -1
    new_id: Id | None = None

    @property
    def nodes(self) -> set[int]:
        """Existing nodes it speaks of."""
        ends = (end for pair in (*self.add, *self.remove, *self.alter) for end in pair[:2])
        return {*ends, *self.drop, *(node for node, _ in self.paint)} - {NEW}


NOTHING = Edit(field="")


@dataclass(frozen=True)
class Option:
    """An edit and the ballots that it leads to, by group."""

    edit: Edit
    ballots: Mapping[int, int]

    def gain(self, before: Sequence[int], label: int, rival: int) -> int:
        """How much it closes the gap between ``label`` and ``rival``; ``before`` holds the ballots as they are."""
        weight = {label: -1, rival: 1}
        return sum(weight.get(new, 0) - weight.get(before[group], 0) for group, new in self.ballots.items())


def gap(counts: npt.NDArray[np.int64], label: int, rival: int) -> int:
    """The largest gain that does not yet elect ``rival``."""
    return int(counts[label] - counts[rival] - (label > rival))


def choose(
    options: Iterable[Option], before: Sequence[int], label: int, rival: int, budget: Budget
) -> tuple[list[Edit], int]:
    """The options with the largest gain for each unit, one for each ballot, as long as the budget lasts.

    Options without gain fill up the budget: what several edits do together may differ from what each does alone.

    Returns:
        The edits, and their gain added up.
    """
    left = {"target_features": float(budget.target_features)}
    priced = [(option.gain(before, label, rival), option) for option in options]
    priced = [(gain, option) for gain, option in priced if gain >= 0 and option.ballots]
    priced.sort(key=lambda item: -item[0] / item[1].edit.units)
    taken: set[int] = set()
    dropped: set[int] = set()
    used: set[int] = set()
    chosen, total = [], 0
    for gain, option in priced:
        edit = option.edit
        have = left.setdefault(edit.field, getattr(budget, edit.field))
        apart = not taken & option.ballots.keys() and not dropped & edit.nodes and not used & set(edit.drop)
        if edit.units > have or not apart:
            continue
        left[edit.field] -= edit.units
        taken |= option.ballots.keys()
        dropped |= set(edit.drop)
        used |= edit.nodes
        chosen.append(edit)
        total += gain
    return chosen, total


def perturbation_of(edits: Sequence[Edit], ids: Sequence[Id], features: Sequence[Sequence[float]]) -> Perturbation:
    """All edits together, in terms of ids.

    Args:
        edits: What to do.
        ids: Id of every row.
        features: The arsenal's feature rows.
    """

    def pairs(which: tuple[Pair, ...], edit: Edit) -> list[tuple[Id, Id]]:
        return [(_id(u, edit, ids), _id(v, edit, ids)) for u, v in which]

    return Perturbation(
        add_edges=[pair for edit in edits for pair in pairs(edit.add, edit)],
        delete_edges=list(dict.fromkeys(pair for edit in edits for pair in pairs(edit.remove, edit))),
        change_edges=[(ids[u], ids[v], value) for edit in edits for u, v, value in edit.alter],
        inject_nodes={
            edit.new_id: features[edit.new] for edit in edits if edit.new is not None and edit.new_id is not None
        },
        delete_nodes=[ids[node] for edit in edits for node in edit.drop],
        change_features={ids[node]: features[row] for edit in edits for node, row in edit.paint},
    )


def _id(row: int, edit: Edit, ids: Sequence[Id]) -> Id:
    if row != NEW:
        return ids[row]
    assert edit.new_id is not None, "an injected node needs an id"
    return edit.new_id
