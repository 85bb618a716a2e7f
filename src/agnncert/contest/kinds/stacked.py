"""Stacked votes (Theorem 10) and votes about pairs of nodes (Theorems 18 and 19) as contests."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.contest.form import Attacker, Effect, Limit, Pool, Target, Unit, Vector
from agnncert.contest.kinds.kind import (
    GRAPH,
    GRAPH_FIELDS,
    STEPS,
    STRUCTURE,
    Form,
    Kind,
    Limits,
    all_of,
    counts_of,
    target_of,
)
from agnncert.pairs.record import PairRecord
from agnncert.stacked.record import STEPS as WHOLE
from agnncert.stacked.record import StackedRecord

LARGEST_SIZE = 9_999
ALTER, LOSE, NEW, TURN = "alter", "lose", "new", "turn"
MOVES = {
    ALTER: "a neighbour votes otherwise",
    LOSE: "a neighbour is gone",
    NEW: "a new neighbour votes",
    TURN: "an added edge is the second direction of a pair, whose vote becomes another one",
}
Amounts = Mapping[str, Mapping[str, int]]


class StackedVotes(Kind):
    """Scores of the target's own features, and votes of its neighbours.

    A mean is multiplied by its divisor, so that a neighbour adds its vote and one more whole prior.
    """

    largest_size = LARGEST_SIZE

    def __init__(self, record: StackedRecord) -> None:
        self.record = record
        self.covers = frozenset(GRAPH_FIELDS)
        self.is_mean = bool(record.pseudo)
        turns = [TURN] if self.is_mean and record.by_edge else []
        self.moves = [ALTER, LOSE, NEW, *turns]
        shared = Limit(tuple(self.moves), {"places": 1}) if self._counts_together() else None
        limits = Limits()
        for move, counts in self._amounts().items():
            limits.allow([NEW, *turns] if move == NEW else [move], counts)
        attackers = {
            GRAPH: limits.attacker(shared=shared),
            STEPS: self._sized(alters=True),
            STRUCTURE: self._sized(alters=False),
        }
        extensions = ("doubt", "together") if shared else ("doubt",)
        self.form = Form({move: MOVES[move] for move in self.moves}, attackers, extensions)

    def _counts_together(self) -> bool:
        return True

    def _amounts(self) -> Amounts:
        alters = ["change_features", *(["change_edges"] if self.record.by_edge else [])]
        return {
            ALTER: dict.fromkeys(alters, 1),
            LOSE: {"delete_edges": 1, "delete_nodes": 1},
            NEW: {"add_edges": 1, "joined": 1},
        }

    def _sized(self, *, alters: bool) -> Attacker:
        """Returns the attacker of a radius. Added edges bring a neighbour each there."""
        moves = [move for move in self.moves if move != ALTER or alters]
        limits = Limits().allow(moves, {"steps": self._votes_per_step()})
        if not alters:
            limits.allow([ALTER])
        return limits.attacker()

    def _votes_per_step(self) -> int:
        return 1

    def counts(self, budget: Budget) -> Mapping[str, float]:
        """Returns what is counted of a budget, with the targets that the changes arrive at."""
        return counts_of(budget) | {"places": self._places(budget)}

    def _places(self, budget: Budget) -> float:
        hubs = self.record.targets_per_node
        nodes = int(min(budget.delete_nodes + budget.change_features, len(hubs)))
        changed = budget.change_edges if self.record.by_edge else 0
        edges = budget.add_edges + budget.delete_edges + changed
        return 2 * edges + budget.injected_edges + int(hubs[:nodes].sum(dtype=np.int64))

    def target(self, place: int) -> Target:
        """Returns one target: its neighbours by their votes."""
        record = self.record
        gate = _whole(record.gate[place])
        prior = _whole(record.prior[place])
        start, stop = int(record.indptr[place]), int(record.indptr[place + 1])
        each = _times(prior, WHOLE) if self.is_mean else all_of(len(prior), 0)  # the prior, once more
        rounded = record.slack * WHOLE if self.is_mean else 0
        units = []
        for row, count in sorted(Counter(record.which[start:stop].tolist()).items()):
            votes = _whole(record.table[row])
            units.append(Unit(count, _sum(_product(gate, votes), each), rounded))
        cap = tuple((number + record.slack * record.gated) * WHOLE for number in gate)
        effects = {ALTER: Effect(each, cap, rounded), LOSE: Effect(all_of(len(prior), 0), all_of(len(prior), 0))}
        new = {NEW: Effect(each, cap, rounded)}
        if TURN in self.moves:
            new[TURN] = Effect(all_of(len(prior), 0), cap)
        fixed = _times(prior, record.pseudo if self.is_mean else WHOLE)
        if self.is_mean:
            fixed = _sum(fixed, _product(gate, record.pseudo_votes))
        doubt = self._doubt(gate, stop - start)
        return target_of(str(place), fixed, [Pool(effects, tuple(units))], new, doubt)

    def _doubt(self, gate: Vector, degree: int) -> Vector:
        """Returns what another machine may add to each score or take from it, beside the prior of neighbours."""
        record, slack = self.record, self.record.slack
        of_all = slack * (record.pseudo if self.is_mean else WHOLE)
        if record.gated:
            of_all += degree * (WHOLE * slack + slack * slack) + slack * sum(record.pseudo_votes)
        return tuple(of_all + degree * slack * number for number in gate)


class PairVotes(StackedVotes):
    """Votes about pairs: one change of the graph may reach several of them."""

    record: PairRecord

    def _counts_together(self) -> bool:
        return False

    def _amounts(self) -> Amounts:
        record = self.record
        if record.rule == "trusted":
            return {ALTER: {"change_edges": 1}, LOSE: {"delete_edges": 1}, NEW: {"add_edges": 1}}
        per_edge, per_node = (2, 3) if record.rule == "both" else (1, 1)
        newcomers = "joined_twice" if record.rule == "common" else "joined"
        return {
            ALTER: {} if record.blind else {"change_features": per_node},
            LOSE: {"delete_edges": per_edge, "delete_nodes": per_node},
            NEW: {"add_edges": per_edge, newcomers: per_node},
        }

    def _votes_per_step(self) -> int:
        return 3 if self.record.rule == "both" else 1

    def _sized(self, *, alters: bool) -> Attacker:
        return super()._sized(alters=alters and not self.record.blind)


def _whole(numbers: np.ndarray) -> Vector:
    return tuple(int(x) for x in numbers)


def _sum(a: Vector, b: Vector) -> Vector:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _product(a: Vector, b: Vector) -> Vector:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def _times(vector: Vector, factor: int) -> Vector:
    return tuple(number * factor for number in vector)
