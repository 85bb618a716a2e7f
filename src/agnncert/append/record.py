"""``AppendRecord``: what a certificate of an append-only score holds. It only holds data and checks its form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.append.program import LIMIT, THREATS, Program
from agnncert.append.tables import TreeTables
from agnncert.certificates.record import Array, require_sense, wrong_form
from agnncert.errors import CertificateError

KIND = "append"
MOST_DELETIONS = 100
LARGEST_THRESHOLD = 2**60
_FORM = {
    "features": Array(np.int64, "targets columns", 0, LIMIT),
    "lowered": Array(np.int64, "deletions targets columns", 0, LIMIT),
}
_SETTINGS = ("program", "threat", "threshold", "positive", "ids")


@dataclass(frozen=True, repr=False, eq=False)
class AppendRecord:
    """Features of ``n`` targets, and the trees that add them up. It is checked on construction.

    A target has the positive class if its score is larger than the threshold, else the other one.

    Attributes:
        features: Whole numbers that appended rows can only raise, or leave, shape ``[n, F]``.
        lowered: Lower bounds of them after 1, 2, … deletions, shape ``[deletions, n, F]``.
        trees: The trees that read them.
        judge: The trees that read rows; without trees if the program has no judge.
        program: What the features are.
        threat: What an attacker may append: "fresh", "ledger" or "grow".
        threshold: The largest score that is not flagged.
        positive: The class of those who are flagged, 0 or 1.
        ids: ``"node_id"`` or ``"row"``.
    """

    features: npt.NDArray[np.int64]
    lowered: npt.NDArray[np.int64]
    trees: TreeTables
    judge: TreeTables
    program: Program
    threat: str
    threshold: int
    positive: int = 1
    ids: str = "node_id"

    def __post_init__(self) -> None:
        checks = (self._wrong_settings, self._wrong_arrays, self._wrong_columns)
        require_sense("the features of an append-only score", checks)

    def _wrong_settings(self) -> str:
        if self.threat not in THREATS:
            return f"the threat is {self.threat!r:.60}, expected one of {', '.join(THREATS)}"
        if type(self.threshold) is not int or abs(self.threshold) > LARGEST_THRESHOLD:
            return f"the threshold is {self.threshold!r:.60}, expected a whole number"
        if type(self.positive) is not int or self.positive not in (0, 1):
            return f"the flagged class is {self.positive!r:.60}, expected 0 or 1"
        if self.ids not in ("node_id", "row"):
            return f"the ids are {self.ids!r:.60}"
        if bool(self.program.judged) != bool(self.judge.num_trees):
            return "the program has a judge without trees, or trees without a judge"
        return ""

    def _wrong_arrays(self) -> str:
        arrays = {"features": self.features, "lowered": self.lowered}
        wrong = wrong_form(arrays, _FORM, {})
        if wrong:
            return wrong
        if self.features.shape[1] != len(self.program.features):
            return "the table does not have a column for each feature of the program"
        if len(self.lowered) > MOST_DELETIONS:
            return f"there are bounds for more than {MOST_DELETIONS} deletions"
        return ""

    def _wrong_columns(self) -> str:
        for trees, width in ((self.trees, self.features.shape[1]), (self.judge, len(self.program.judged))):
            if trees.column.max(initial=-1) >= width:
                return "a tree reads a column that is not there"
        return ""

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.features)

    @property
    def deletions(self) -> int:
        """The largest number of deletions with a bound."""
        return len(self.lowered)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns every array that :meth:`load` needs, by name."""
        return {
            "features": self.features,
            "lowered": self.lowered,
            **self.trees.tensors("tree_"),
            **self.judge.tensors("judge_"),
        }

    def settings(self) -> dict[str, Any]:
        """Returns everything else that :meth:`load` needs, as JSON values."""
        stored = {name: getattr(self, name) for name in _SETTINGS}
        return {**stored, "program": self.program.to_json()}

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Returns the record of :meth:`tensors` and :meth:`settings`, which come from a file and are not trusted.

        Raises:
            CertificateError: They are not what this kind of evidence consists of.
        """
        if sorted(settings) != sorted(_SETTINGS):
            raise CertificateError(f"an append-only score has the settings {', '.join(_SETTINGS)}.")
        trees = TreeTables.load(tensors, "tree_")
        judge = TreeTables.load(tensors, "judge_")
        expected = {"features", "lowered", *trees.tensors("tree_"), *judge.tensors("judge_")}
        if set(tensors) != expected:
            raise CertificateError(f"an append-only score has the arrays {', '.join(sorted(expected))}.")
        known: dict[str, Any] = {**settings, "program": Program.from_json(settings["program"])}
        return cls(tensors["features"], tensors["lowered"], trees, judge, **known)
