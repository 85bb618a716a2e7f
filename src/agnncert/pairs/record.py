"""What a certificate about pairs of nodes counts: stacked votes, and the pairs that they are about.

:class:`PairRecord` only holds data and checks that it makes sense: ``pairs.evidence`` proves with it, and
``verifier.check_pairs`` counts again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.record_checks import require_sense
from agnncert.errors import CertificateError
from agnncert.stacked.record import IntArray, StackedRecord

RULES = ("common", "both", "trusted")
MASKS = ("own", "targets")


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

    def __post_init__(self) -> None:
        super().__post_init__()
        require_sense("the votes about pairs", (self._wrong_pairs, self._wrong_rule))

    def _wrong_pairs(self) -> str:
        if self.pairs.dtype != np.int64 or self.pairs.shape != (self.num_targets, 2):
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

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Every array that :meth:`load` needs, by name."""
        return {**super().tensors(), "pairs": self.pairs}

    def settings(self) -> dict[str, Any]:
        """Everything else that :meth:`load` needs, as JSON values."""
        return {name: value for name, value in super().settings().items() if name != "pairs"}

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Counts from :meth:`tensors` and :meth:`settings`; they come from a file and are not trusted.

        Raises:
            CertificateError: They are not what such counts consist of.
        """
        plain = StackedRecord.load(
            {name: value for name, value in tensors.items() if name != "pairs"},
            {name: value for name, value in settings.items() if name not in ("rule", "mask", "blind")},
        )
        if "pairs" not in tensors or not {"rule", "mask", "blind"} <= set(settings):
            raise CertificateError("votes about pairs lack their pairs, or say not who votes.")
        shared = {each.name: getattr(plain, each.name) for each in fields(plain)}
        own: dict[str, Any] = {name: settings[name] for name in ("rule", "mask", "blind")}
        return cls(**shared, pairs=tensors["pairs"], **own)


def plain_record(record: PairRecord) -> StackedRecord:
    """Returns the votes alone, as those of Theorem 10."""
    shared: dict[str, Any] = {each.name: getattr(record, each.name) for each in fields(StackedRecord)}
    return StackedRecord(**shared)
