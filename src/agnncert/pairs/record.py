"""What a certificate about pairs of nodes counts: stacked votes, and the pairs that they are about.

:class:`PairRecord` only holds data and checks that it makes sense: ``pairs.evidence`` proves with it, and
``verifier.check_pairs`` counts again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from agnncert.certificates.record import Array
from agnncert.stacked.record import IntArray, StackedRecord

RULES = ("common", "both", "trusted")
MASKS = ("own", "targets")
BETWEEN = " – "  # stands between the two ids of a pair


def _no_pairs() -> IntArray:
    return np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class PairRecord(StackedRecord):
    """Scores and votes of ``n`` pairs (u, v). Fields but for the last four are as in :class:`StackedRecord`.

    Attributes:
        pairs: Rows of u and v in the graph, shape ``[n, 2]``.
        rule: Who votes: ``"common"`` neighbours; with ``"both"`` the neighbours of u and those of v as well, each in a
            vote of its own; ``"trusted"`` contacts of u that have an edge to v.
        mask: ``"own"`` if the edge between u and v is hidden from the decision about (u, v), ``"targets"`` if the edges
            of all pairs of this record are hidden from all decisions.
        blind: Whether votes read nothing of the node that votes.
    """

    pairs: IntArray = field(default_factory=_no_pairs)
    rule: str = "common"
    mask: str = "own"
    blind: bool = True

    called: ClassVar[str] = "the votes about pairs"
    arrays: ClassVar[Mapping[str, Array]] = {**StackedRecord.arrays, "pairs": Array(np.int64, "pairs 2")}

    def checks(self) -> tuple[Callable[[], str], ...]:
        """Returns what stacked votes have to fulfil, and these votes beyond that."""
        return (*super().checks(), self._wrong_pairs, self._wrong_rule)

    def _wrong_pairs(self) -> str:
        if len(self.pairs) != self.num_targets:
            return "there is not one pair of rows for each target"
        if self.pairs.min(initial=0) < 0:
            return "a pair has a negative row"
        if (self.pairs[:, 0] == self.pairs[:, 1]).any():
            return "a node is paired with itself"
        if len(np.unique(self.pairs, axis=0)) != len(self.pairs):
            return "a pair is named twice"
        return ""

    def _wrong_rule(self) -> str:
        if self.rule not in RULES or self.mask not in MASKS or type(self.blind) is not bool:
            return "a setting is unknown"
        if self.edge_blind:
            return "weights of votes are chosen with edges, so that training is not blind to them"
        if self.pseudo or self.second:
            return "votes about pairs are added up, and read nothing further away"
        is_trusted = self.rule == "trusted"
        if self.by_edge != is_trusted or (self.trusted >= 0) != is_trusted or (is_trusted and self.blind):
            return "votes read values of edges exactly where they are those of trusted contacts"
        return ""

    def part(self, rows: IntArray) -> StackedRecord:
        """Returns the votes of some targets, without their pairs."""
        return plain_record(self).part(rows)


def plain_record(record: PairRecord) -> StackedRecord:
    """Returns the votes alone, as those of Theorem 10."""
    shared: dict[str, Any] = {each.name: getattr(record, each.name) for each in fields(StackedRecord)}
    return StackedRecord(**shared)
