"""What a certificate of stacked votes counts: a score and a list of votes for each target, in whole numbers.

A score is in steps of ``1 / STEPS`` of a vote, so that counting is exact. :class:`StackedRecord` only holds data and
checks that it makes sense: ``stacked.evidence`` proves with it, ``verifier.recount_stacked`` counts again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from agnncert.certificates.record import Array, Record

IntArray = npt.NDArray[np.int64]

STEPS = 2**16
LARGEST_SECOND = STEPS - 16  # rounding of the votes of both ends of an edge fits into the rest
LARGEST_SLACK = 3  # with two levels: so much of two machines that misread a vote fits into that rest, too
LARGEST_GATE = 2**8 * STEPS
LARGEST_SCORE = 2**14 * STEPS
MOST_NEW = 2**16  # more new neighbours than this count as any number
LARGEST_SUM = 2**61  # every number that is computed stays below, so that int64 is exact


@dataclass(frozen=True)
class StackedRecord(Record):
    """Scores and votes of ``n`` targets with ``m`` neighbours in all; ``C`` classes. Checked on construction.

    With S = ``STEPS``, the score of class k for a target with d neighbours is ``prior_k + gate_k * votes_k / S``, or
    with a pseudo-count ``prior_k + gate_k * (pseudo_votes_k + votes_k) / (pseudo + S * d)``, where ``votes_k`` is the
    sum of its neighbours' votes for k. The largest score wins, the smaller class on a tie.

    Attributes:
        prior: Score of the target's own features, shape ``[n, C]``.
        gate: Factor of the votes for each class, not negative, shape ``[n, C]``.
        indptr: Neighbours of target ``j`` are ``indptr[j]:indptr[j + 1]``, shape ``[n + 1]``.
        which: Row of ``table`` with the vote of each neighbour, shape ``[m]``.
        table: Different votes, not negative, at most S in a row, shape ``[u, C]``.
        targets_per_node: How many targets each node is a neighbour of, largest first; nodes with none are left out.
        gated: Whether gates are computed, so that another machine may round them differently. If not, all are S or 0.
        by_edge: Whether votes read values of the edge, so that an edge with other values votes differently.
        pseudo: Pseudo-count of a mean; 0 for a sum.
        pseudo_votes: Votes of the pseudo-count, shape ``[C]``; empty for a sum.
        second: Factor of the neighbours' neighbours in steps; 0 if votes do not depend on them.
        slack: Steps by which another machine may compute a prior, a gate or a vote differently.
        trusted: Column of the edges' values that marks trusted edges; -1 if there is none.
        ids: ``"node_id"`` if nodes keep their identity through changes, ``"row"`` if row numbers stand in.
        edge_blind: Whether the model was trained without reading an edge.
    """

    prior: IntArray
    gate: IntArray
    indptr: IntArray
    which: IntArray
    table: npt.NDArray[np.int32]
    targets_per_node: npt.NDArray[np.int32]
    gated: bool = False
    by_edge: bool = False
    pseudo: int = 0
    pseudo_votes: tuple[int, ...] = field(default=())
    second: int = 0
    slack: int = 1
    trusted: int = -1
    ids: str = "node_id"
    edge_blind: bool = False

    called: ClassVar[str] = "the stacked votes"
    arrays: ClassVar[Mapping[str, Array]] = {
        "prior": Array(np.int64, "n C", -LARGEST_SCORE, LARGEST_SCORE),
        "gate": Array(np.int64, "n C", 0, LARGEST_GATE),
        "indptr": Array(np.int64, "n+1"),
        "which": Array(np.int64, "m", 0),
        "table": Array(np.int32, "u C", 0),
        "targets_per_node": Array(np.int32, "nodes", 1),
    }
    stated_later: ClassVar[Mapping[str, Any]] = {"edge_blind": False}
    lists: ClassVar[tuple[str, ...]] = ("pseudo_votes",)

    def checks(self) -> tuple[Callable[[], str], ...]:
        """Returns what numbers and settings have to fulfil together."""
        return (
            self._wrong_lists,
            self._wrong_values,
            self._wrong_targets_per_node,
            self._wrong_settings,
            self._wrong_pseudo_count,
            self._wrong_gates,
            self._wrong_levels,
            self._wrong_gates_of_classes,
            self._wrong_edge_blindness,
            self._wrong_bound,
        )

    def _wrong_lists(self) -> str:
        ends = self.indptr
        if self.num_classes < 2:
            return "there are not two classes"
        if ends[0] != 0 or ends[-1] != len(self.which) or (np.diff(ends) < 0).any():
            return "the lists of neighbours do not fit together"
        if self.which.max(initial=-1) >= len(self.table):
            return "a neighbour has a vote that is not there"
        return ""

    def _wrong_values(self) -> str:
        if len(self.table) and self.table.sum(axis=1, dtype=np.int64).max() > STEPS:
            return "a vote has more than one vote in all"
        return ""

    def _wrong_targets_per_node(self) -> str:
        targets_per_node = self.targets_per_node
        if targets_per_node.sum(dtype=np.int64) != len(self.which) or (np.diff(targets_per_node) > 0).any():
            return "the numbers of targets that nodes are neighbours of do not fit the lists of neighbours"
        return ""

    def _wrong_settings(self) -> str:
        numbers = (self.pseudo, self.second, self.slack, self.trusted, *self.pseudo_votes)
        if any(type(number) is not int for number in numbers) or {type(self.by_edge), type(self.gated)} != {bool}:
            return "a setting is not a whole number"
        if self.ids not in ("node_id", "row"):
            return f"ids are {self.ids!r:.60}"
        if not 1 <= self.slack <= STEPS or not -1 <= self.trusted < 2**31 or not 0 <= self.second <= LARGEST_SECOND:
            return "a setting is out of range"
        return ""

    def _wrong_pseudo_count(self) -> str:
        if not 0 <= self.pseudo <= LARGEST_SCORE or (len(self.pseudo_votes) != self.num_classes) != (self.pseudo == 0):
            return "the pseudo-count and its votes do not belong together"
        if self.pseudo and (min(self.pseudo_votes) < 0 or max(self.pseudo_votes) > LARGEST_SCORE):
            return "the votes of the pseudo-count are out of range"
        return ""

    def _wrong_gates(self) -> str:
        if not self.gated and not (self._all_gates_are(STEPS) or self._all_gates_are(0)):
            return "gates are not computed, and are neither all one vote nor all zero"
        return ""

    def _all_gates_are(self, value: int) -> bool:
        return bool((self.gate == value).all())

    def _wrong_levels(self) -> str:
        if not self.second:
            return ""
        is_plain = self._all_gates_are(STEPS) or self._all_gates_are(0)
        if self.pseudo or self.by_edge or self.gated or not is_plain:
            return "two levels go with a plain sum of votes that read no edge values"
        if self.trusted >= 0 or self.slack > LARGEST_SLACK:
            return f"two levels go with edges of which none is trusted, and a slack of at most {LARGEST_SLACK} steps"
        return ""

    def _wrong_gates_of_classes(self) -> str:
        if (self.pseudo or self.by_edge) and not (self.gate == self.gate[:, :1]).all():
            return "gates of classes may differ only in a sum of votes that read no edge values"
        return ""

    def _wrong_edge_blindness(self) -> str:
        if type(self.edge_blind) is not bool:
            return "it does not say whether training read edges"
        trained_on_edges = self.gated or self.by_edge or self.pseudo or self.second or self.trusted >= 0
        if self.edge_blind and trained_on_edges:
            return "training without edges goes with a plain sum of one level of votes that read no edge values"
        return ""

    def _wrong_bound(self) -> str:
        """Says whether a number that is computed after an attack may leave the range in which int64 is exact."""
        most = int(np.diff(self.indptr).max(initial=0)) + MOST_NEW  # in all, after an attack
        divisor = self.pseudo + STEPS * most if self.pseudo else STEPS
        score = int(np.abs(self.prior).max(initial=0)) + self.slack
        gate = int(self.gate.max(initial=0)) + self.slack
        bound = 4 * (score * divisor + gate * (STEPS * most + self.pseudo))
        return "a target has too many neighbours for exact counting" if bound > LARGEST_SUM else ""

    @cached_property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.prior)

    @cached_property
    def uses_votes(self) -> bool:
        """Whether the votes of neighbours count for some target: their factor is 0 in a model that ignores edges."""
        return bool(self.gate.any())

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.prior.shape[1])

    def part(self, rows: IntArray) -> "StackedRecord":
        """The counts of some targets. Hubs are replaced by placeholders, which only the file check reads."""
        ends = np.concatenate([[0], np.cumsum(self.degree[rows])])
        listed = np.arange(ends[-1]) + np.repeat(self.indptr[rows] - ends[:-1], self.degree[rows])
        targets_per_node = np.ones(len(listed), dtype=np.int32)  # only their sum is checked, and none is used
        return replace(
            self,
            prior=self.prior[rows],
            gate=self.gate[rows],
            which=self.which[listed],
            targets_per_node=targets_per_node,
            indptr=ends,
        )

    @property
    def degree(self) -> IntArray:
        """Number of neighbours of each target, shape ``[n]``."""
        return np.diff(self.indptr)
