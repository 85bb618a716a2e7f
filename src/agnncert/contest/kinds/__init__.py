"""This library's own certificates as contests: what units, moves and limits are, for each deterministic kind.

Each module reads a record, and nothing of provers and verifiers. :func:`kind_of` finds the kind of a record, and
``statements`` writes what a certificate states, with prices.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from agnncert.certificates.votes import VoteRecord
from agnncert.contest.kinds.isolated import IsolatedVotes
from agnncert.contest.kinds.kind import Kind
from agnncert.contest.kinds.labels import JointVotes, LabelVotes
from agnncert.contest.kinds.stacked import PairVotes, StackedVotes
from agnncert.contest.kinds.theorem import contest_of
from agnncert.contest.kinds.two_levels import TwoLevelVotes
from agnncert.errors import CertificateError
from agnncert.isolated.record import IsolatedRecord
from agnncert.labels.joint_record import JointRecord
from agnncert.labels.record import LabelRecord
from agnncert.pairs.record import PairRecord
from agnncert.stacked.record import StackedRecord


def kind_of(record: object) -> Kind:
    """Returns votes as a contest.

    Raises:
        CertificateError: Their theorem has no form as a contest.
    """
    return next(of_record(record) for record_type, of_record in _KINDS if isinstance(record, record_type))


def _of_votes(record: VoteRecord) -> Kind:
    return contest_of(record.theorem).kind(record)


def _of_stacked(record: StackedRecord) -> Kind:
    return TwoLevelVotes(record) if record.second else StackedVotes(record)


_KINDS: tuple[tuple[type, Callable[..., Kind]], ...] = (
    (VoteRecord, _of_votes),
    (PairRecord, PairVotes),
    (StackedRecord, _of_stacked),
    (LabelRecord, LabelVotes),
    (JointRecord, JointVotes),
    (IsolatedRecord, IsolatedVotes),
)


def kind_of_file(kind: str, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Kind:
    """Returns what a file of certificates holds as a contest.

    Args:
        kind: The kind of evidence, as files name it.
        tensors: The arrays of the evidence, by name.
        settings: Everything else of the evidence.

    Raises:
        CertificateError: Such evidence cannot be written as a contest.
    """
    if kind not in _RECORDS:
        raise CertificateError(
            f'evidence of the kind "{kind}" has no form as a contest: expected {", ".join(_RECORDS)}. '
            "In a contest scores are sums over units, and a move leaves a fixed vector and raises one class: no random "
            "samples, no trees, and no items of graph votes, whose states differ in the votes for all classes."
        )
    return kind_of(_RECORDS[kind].load(tensors, settings))


_RECORDS: dict[str, Any] = {
    "votes": VoteRecord,
    "stacked": StackedRecord,
    "pairs": PairRecord,
    "labels": LabelRecord,
    "labels-and-edges": JointRecord,
    "isolated": IsolatedRecord,
}
