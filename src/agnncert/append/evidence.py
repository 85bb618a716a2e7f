"""``AppendEvidence``: scores that appended rows can only raise, and what follows from them (Theorem 21)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.append.polarity import NotMonotone, judged_types, usable_type
from agnncert.append.program import Threat, written
from agnncert.append.record import KIND, AppendRecord
from agnncert.append.trees import Trees
from agnncert.append.words import append_words
from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import CertificateError
from agnncert.proving.blocks import Rows
from agnncert.proving.evidence import Evidence
from agnncert.proving.words import Subject, Words

APPENDED = Budget(add_edges=float("inf"), inject_nodes=float("inf"))


@dataclass(frozen=True, repr=False, eq=False)
class AppendEvidence(Evidence):
    """Features of targets and the trees that read them, and the answers of Theorem 21.

    Attributes:
        record: Features and trees.
    """

    record: AppendRecord

    kind: ClassVar[str] = KIND

    def __post_init__(self) -> None:
        wrong = contradiction(self.record)
        if wrong:
            raise CertificateError(f"nothing follows from these trees: {wrong}.")

    def __repr__(self) -> str:
        record = self.record
        return (
            f"AppendEvidence({self.num_targets:,} targets, {record.features.shape[1]} features, "
            f'{record.trees.num_trees} trees, threat "{record.threat}", deletions={record.deletions})'
        )

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return self.record.num_targets

    @property
    def num_classes(self) -> int:
        """Two: the flagged class and the other one."""
        return 2

    @cached_property
    def scores(self) -> IntArray:
        """Score of each target, and bounds on it after 1, 2, … deletions, shape ``[1 + deletions, n]``."""
        record = self.record
        trees = as_trees(record.trees)
        return np.stack([trees.score(record.features), *(trees.score(table) for table in record.lowered)])

    @property
    def counts(self) -> IntArray:
        """The score in the flagged class, and the least score of the other one that is enough, shape ``[n, 2]``."""
        record = self.record
        counts = np.full((self.num_targets, 2), record.threshold, dtype=np.int64)
        counts[:, record.positive] = self.scores[0]
        if record.positive == 0:  # the smaller class wins ties
            counts[:, 1] += 1
        return counts

    @property
    def is_flagged(self) -> BoolArray:
        """Whether each target is flagged, shape ``[n]``."""
        return np.asarray(self.scores[0] > self.record.threshold)

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Returns whether a flagged label stays ahead; nothing is proved about one that is not flagged."""
        labels = self.labels()[rows]
        ahead = np.zeros((len(labels), 2), dtype=bool)
        ahead[np.arange(len(labels)), labels] = True
        if isinstance(attack, Budget):
            if not _is_attack(attack):
                ahead[:] = True
            deletions = attack.delete_edges
        else:
            deletions = attack
        if deletions <= self.record.deletions:
            ahead[self.scores[int(deletions)][rows] > self.record.threshold] = True
        if leader is not None:
            ahead[labels != leader] = False
        return ahead

    def covers(self, budget: Budget) -> bool:
        """Returns whether a budget has appended rows and accounts, and deleted pairs, and nothing else."""
        others = budget.change_edges or budget.delete_nodes or budget.change_features or budget.target_features
        return not others and budget.delete_edges <= self.record.deletions

    @property
    def largest_radius(self) -> int:
        """The largest number of deletions with a bound."""
        return self.record.deletions

    def count_columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the score of each target, and the threshold."""
        threshold = np.full(self.num_targets, self.record.threshold, dtype=np.int64)
        return {"score": self.scores[0], "threshold": threshold}

    def check_claim(self, claim: Claim) -> None:
        """Checks that a claim names the task and the kind of ids.

        Raises:
            CertificateError: It names others.
        """
        if claim.task != "node" or claim.ids != self.record.ids:
            raise CertificateError("the claim is about other targets, or other ids, than the features.")

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns every array of the record."""
        return self.record.tensors()

    def settings(self) -> dict[str, Any]:
        """Returns everything else of the record."""
        return self.record.settings()

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Returns the evidence of a file."""
        return cls(AppendRecord.load(tensors, settings))

    def usual_budgets(self) -> tuple[Budget, ...]:
        """Returns any number of appended rows, without and with deletions."""
        numbers = [number for number in (1, 3, 5) if number < self.record.deletions]
        if self.record.deletions:
            numbers.append(self.record.deletions)
        return (APPENDED, *(APPENDED.but(delete_edges=number) for number in numbers))

    def words(self, subject: Subject) -> Words:
        """Returns what a report says about these scores."""
        return append_words(subject, self.record)


def _is_attack(budget: Budget) -> bool:
    return bool(budget.add_edges or budget.inject_nodes or budget.delete_edges)


def as_trees(tables: Any) -> Trees:
    """Returns tables as trees that can be evaluated."""
    return Trees(tables.start, tables.column, tables.threshold, tables.left, tables.right, tables.worth)


def contradiction(record: AppendRecord) -> str:
    """Returns why appended rows could lower the score; empty if types and leaves prove that they cannot."""
    program = record.program
    threat: Threat = record.threat  # type: ignore[assignment]
    rises = []
    for feature in program.features:
        try:
            rises.append(usable_type(feature, program, threat) == "+")
        except NotMonotone as error:
            return f'under the threat "{record.threat}", {written(feature):.120} cannot be used: {error}'
    try:
        judge_rises = [polarity == "+" for polarity in judged_types(program, threat)]
    except NotMonotone as error:
        return str(error)
    for name, tables, columns in (("score", record.trees, rises), ("judge", record.judge, judge_rises)):
        broken = as_trees(tables).broken_pairs(columns)
        if broken:
            return f"{broken:,} pairs of leaves of the {name} are in the wrong order"
    if record.judge.worth.min(initial=0) < 0:
        return "a leaf of the judge is worth less than 0"
    return ""
