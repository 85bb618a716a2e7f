"""Stacked votes in which the neighbours' neighbours count (Theorem 11) as a contest.

Each node that changes multiplies the odds of all votes by a bounded factor. So what votes lose and win grows with the
number of nodes. It is written as units of the extension "phase": with the n-th node, each class loses what the votes
for it may fall by this node, and one class wins what the votes for it may rise.
"""

from collections.abc import Iterator

import numpy as np

from agnncert.contest.form import Effect, Pool, Target, Unit, Vector
from agnncert.contest.kinds.kind import GRAPH, STEPS, STRUCTURE, Form, Limits, all_of, target_of
from agnncert.contest.kinds.stacked import StackedVotes
from agnncert.stacked.record import STEPS as WHOLE
from agnncert.stacked.record import StackedRecord

TOUCH = "touch"
MOVES = {TOUCH: "an edge or a node that is near takes, brings or turns one vote; one that changes counts twice"}
NODES = {"joined": 1, "delete_nodes": 1, "change_features": 2}
MOST_ODDS = 2**29  # factors of odds above this count as infinite


class TwoLevelVotes(StackedVotes):
    """Votes of neighbours that depend on their neighbours."""

    def __init__(self, record: StackedRecord) -> None:
        self.record = record
        self.is_mean = False
        self.covers = frozenset(("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes"))
        self.covers |= {"change_features"}
        everything = Limits().allow([TOUCH], {"add_edges": 1, "delete_edges": 1, **NODES}).attacker(phase=NODES)
        attackers = {GRAPH: everything}
        for name, nodes in ((STEPS, 2), (STRUCTURE, 1)):
            attackers[name] = Limits().allow([TOUCH], {"steps": nodes}).attacker(phase={"steps": nodes})
        self.form = Form(MOVES, attackers, ("doubt", "phase"))

    def target(self, place: int) -> Target:
        """Returns one target: its score, and what votes may lose and win with each further node."""
        record = self.record
        classes = record.num_classes
        is_used = bool(record.gate.any())
        start, stop = int(record.indptr[place]), int(record.indptr[place + 1])
        votes = record.table[record.which[start:stop]].astype(np.int64)
        gate = tuple(int(x) for x in record.gate[place])
        base = record.prior[place] * WHOLE + record.gate[place] * votes.sum(axis=0)
        pools = list(self._phases(votes, base)) if is_used else []
        lost = np.sum([unit.adds for pool in pools for unit in pool.units], axis=0, dtype=np.int64)
        fixed = tuple(int(x) for x in base - lost)
        cap = all_of(classes, WHOLE * WHOLE if is_used else 0)
        new = {TOUCH: Effect(all_of(classes, 0), cap)}
        return target_of(str(place), fixed, pools, new, self._doubt(gate, stop - start))

    def _phases(self, votes: np.ndarray, base: np.ndarray) -> Iterator[Pool]:
        """Yields what the 1st, 2nd, ... node may take and bring, until more of them take every lead anyway."""
        before = np.zeros((2, votes.shape[1]), dtype=np.int64)
        most = int(base.max() - base.min()) // WHOLE**2 + 1  # every node takes a whole vote as well
        for nodes in range(1, most + 1):
            after = WHOLE * _moved(self.record, votes, nodes)
            drop, rise = after - before
            before = after
            if drop.any() or rise.any():
                free = Effect(all_of(len(drop), 0), _whole(drop + rise))
                yield Pool({}, (Unit(1, _whole(drop), until=nodes - 1),), free)


def _whole(numbers: np.ndarray) -> Vector:
    return tuple(int(x) for x in numbers)


def _moved(record: StackedRecord, votes: np.ndarray, nodes: int) -> np.ndarray:
    """Returns by how much the votes for each class may fall and rise with so many nodes, shape ``[2, C]``."""
    least = np.maximum(votes - record.slack, 0)
    most = np.minimum(votes + record.slack + 1, WHOLE)
    factor = odds(record.second, nodes)
    if factor > MOST_ODDS:
        return np.stack([votes.sum(axis=0), (WHOLE - votes).sum(axis=0)])
    fall = votes - WHOLE * (WHOLE * least) // (WHOLE * least + factor * (WHOLE - least))
    rise = WHOLE * (factor * most) // (factor * most + WHOLE * (WHOLE - most)) - votes
    return np.stack([fall.sum(axis=0), rise.sum(axis=0)])


def odds(second: int, nodes: int) -> int:
    """Returns at least exp(second * nodes / WHOLE) in steps of 1 / WHOLE, or any number above ``MOST_ODDS``.

    With x = second / WHOLE, exp(x) is at most 1 / (1 - x / 1024) to the power of 1024. Every step rounds up.
    """
    beyond = MOST_ODDS + 1
    power = _up(2**54, 2**26 - second)
    for _ in range(10):
        power = _up(power * power, 2**28)
    power = _up(power, 2**12)
    total = WHOLE
    for bit in reversed(f"{nodes:b}"):
        if bit == "1":
            total = beyond if power > MOST_ODDS else min(_up(total * power, WHOLE), beyond)
        power = min(_up(power * power, WHOLE), beyond)
    return total


def _up(a: int, b: int) -> int:
    return -(-a // b)
