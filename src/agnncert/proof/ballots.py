"""Votes: the ballot of every target in every subgraph, stored as "all alike, except these".

A target without an edge in a subgraph casts the same ballot there as in every other such subgraph. So a
target's ``num_groups`` ballots are one *default* and a short list of exceptions; a graph of millions of nodes
with hundreds of subgraphs stays small. Knows no torch: certificates and their verifier read it.

Checks on ballots that come from outside, such as a file: what passes can be counted without surprises.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.errors import CertificateError, did_you_mean
from agnncert.proof.rules import RULES

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ABSTAIN = -1


@dataclass(frozen=True)
class Votes:
    """One ballot per target and subgraph; ``n`` targets, ``m`` listed ballots.

    Attributes:
        num_groups: Number of subgraphs T, hence ballots per target.
        num_classes: Number of classes.
        default: Ballot cast in every group that is not listed (a class, or ``ABSTAIN``), shape ``[n]``.
        default_stable: Whether that ballot is far enough from a tie to be the same on every machine, ``[n]``.
        indptr: Listed ballots of target ``j`` are ``indptr[j]:indptr[j + 1]``, shape ``[n + 1]``.
        group: Subgraph of each listed ballot, ascending within a target, shape ``[m]``.
        ballot: The class voted for, or ``ABSTAIN``, shape ``[m]``.
        stable: As ``default_stable``, shape ``[m]``.
        reached: Whether the graph as it is reaches this ballot, shape ``[m]``: in the node task the target
            has an edge in that subgraph (``S_v``); in the node-centric graph task the subgraph can hold an
            edge. A ballot not reached moves only when something is *added*.
    """

    num_groups: int
    num_classes: int
    default: npt.NDArray[np.int16]
    default_stable: BoolArray
    indptr: IntArray
    group: npt.NDArray[np.int32]
    ballot: npt.NDArray[np.int16]
    stable: BoolArray
    reached: BoolArray

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.default)

    @property
    def owner(self) -> IntArray:
        """Target of each listed ballot, shape ``[m]``."""
        return np.repeat(np.arange(self.num_targets), np.diff(self.indptr))

    def tally(self, listed: BoolArray | None = None, default: BoolArray | None = None) -> IntArray:
        """Votes per target and class (abstentions left out), shape ``[n, num_classes]``.

        Args:
            listed: Which listed ballots to count, shape ``[m]``; all when not given.
            default: Whether to count each target's unlisted ballots, shape ``[n]``; all when not given.
        """
        listed = np.ones(len(self.ballot), dtype=bool) if listed is None else listed
        default = np.ones(self.num_targets, dtype=bool) if default is None else default
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        cast = listed & (self.ballot >= 0)
        np.add.at(counts, (self.owner[cast], self.ballot[cast]), 1)
        voting = np.flatnonzero(default & (self.default >= 0))
        counts[voting, self.default[voting]] += self.num_unlisted[voting]
        return counts

    @property
    def counts(self) -> IntArray:
        """All votes as cast, shape ``[n, num_classes]``."""
        return self.tally()

    @property
    def num_unlisted(self) -> IntArray:
        """How many groups cast the default ballot, shape ``[n]``."""
        return self.num_groups - np.diff(self.indptr)

    def dense(self) -> npt.NDArray[np.int16]:
        """The full table of ballots, shape ``[n, num_groups]``; meant for tests and small graphs."""
        table = np.repeat(self.default[:, None], self.num_groups, axis=1)
        table[self.owner, self.group] = self.ballot
        return table


DTYPES = {
    "default": np.int16,
    "default_stable": np.bool_,
    "indptr": np.int64,
    "group": np.int32,
    "ballot": np.int16,
    "stable": np.bool_,
    "reached": np.bool_,
    "cover_ptr": np.int64,
    "cover": np.int32,
}

MOST_GROUPS = 2**24  # so that a verifier can lay out the ballots of a target one by one
MOST_CLASSES = np.iinfo(np.int16).max


def check_ballots(
    votes: Votes, rule: str, cover_ptr: IntArray, cover: npt.NDArray[np.int32], ids: str, parameters: Mapping[str, int]
) -> None:
    """Refuses votes, a cover table or a rule that no division can have produced.

    Raises:
        CertificateError: With the first thing found wrong.
    """
    _check_settings(votes, rule, ids, parameters)
    arrays = {name: getattr(votes, name) for name in DTYPES if not name.startswith("cover")}
    _check_types(arrays | {"cover_ptr": cover_ptr, "cover": cover})
    _check_votes(votes)
    reached = np.bincount(votes.owner[votes.reached], minlength=votes.num_targets)
    _check_reached(votes, rule, reached)
    _check_rows("cover_ptr", cover_ptr, votes.num_targets, len(cover))
    _check_cover(rule, cover_ptr, cover, reached)


def _check_settings(votes: Votes, rule: str, ids: str, parameters: Mapping[str, int]) -> None:
    if not isinstance(rule, str) or rule not in RULES:
        raise CertificateError(f'unknown rule "{rule}": {did_you_mean(str(rule), RULES)}')
    if ids not in ("node_id", "row"):
        raise CertificateError(f'unknown kind of ids "{ids}": expected "node_id" or "row".')
    sizes = (("num_groups", votes.num_groups, MOST_GROUPS), ("num_classes", votes.num_classes, MOST_CLASSES))
    for name, size, most in sizes:
        if not _is_whole(size) or not 1 <= size <= most:
            raise CertificateError(f"{name} is {size!r}: expected a whole number from 1 to {most:,}.")
    known = (*RULES[rule].parameters, *RULES[rule].optional)
    missing = [name for name in RULES[rule].parameters if name not in parameters]
    odd = [name for name, value in parameters.items() if name not in known or not _is_whole(value) or value < 0]
    if missing or odd:
        found = ", ".join(f"{name}={value!r}" for name, value in parameters.items()) or "none"
        raise CertificateError(f'parameters of the rule "{rule}" are {found}: expected {", ".join(known) or "none"}.')
    if rule.startswith("gnncert-en") and np.prod(list(parameters.values())) != votes.num_groups:
        raise CertificateError(f"a grid of {dict(parameters)} does not make {votes.num_groups} groups.")


def _check_types(arrays: dict[str, Any]) -> None:
    for name, dtype in DTYPES.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            found = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
            raise CertificateError(f'"{name}" is {found}: expected one row of {np.dtype(dtype)}.')


def _check_votes(votes: Votes) -> None:
    _check_rows("indptr", votes.indptr, votes.num_targets, len(votes.group))
    _check_length("default_stable", len(votes.default_stable), votes.num_targets)
    for name in ("ballot", "stable", "reached"):
        _check_length(name, len(getattr(votes, name)), len(votes.group))
    _check_range("group", votes.group, 0, votes.num_groups - 1)
    for name in ("ballot", "default"):
        _check_range(name, getattr(votes, name), ABSTAIN, votes.num_classes - 1)
    same_target = np.diff(votes.owner) == 0
    if (np.diff(votes.group)[same_target] <= 0).any():
        raise CertificateError('"group" does not ascend within a target: a ballot would be counted twice.')


def _check_reached(votes: Votes, rule: str, reached: IntArray) -> None:
    unreached = np.diff(votes.indptr) - reached
    if RULES[rule].all_reached and unreached.any():
        raise CertificateError(f'the rule "{rule}" lists only ballots that are reached; others were found.')
    if rule == "gated/node" and (unreached > 1).any():
        raise CertificateError("a target has one group of its own; several unreached ballots were found.")


def _check_cover(rule: str, ptr: IntArray, cover: npt.NDArray[np.int32], reached: IntArray) -> None:
    if not RULES[rule].uses_cover:
        if len(cover):
            raise CertificateError(f'the rule "{rule}" has no cover table; one was found.')
        return
    lengths = np.diff(ptr)
    last = np.append(cover, 0)[np.where(lengths > 0, ptr[1:] - 1, -1)]
    if (last != reached).any():
        raise CertificateError('the last entry of each row of "cover" must be the number of reached ballots.')
    same_target = np.diff(np.repeat(np.arange(len(lengths)), lengths)) == 0
    if (cover < 0).any() or (np.diff(cover)[same_target] < 0).any():
        raise CertificateError('"cover" decreases within a target: more nodes cannot reach fewer ballots.')


def _check_rows(name: str, ptr: IntArray, num_rows: int, total: int) -> None:
    _check_length(name, len(ptr), num_rows + 1)
    if ptr[0] != 0 or ptr[-1] != total or (np.diff(ptr) < 0).any():
        raise CertificateError(f'"{name}" does not divide {total} entries into {num_rows} rows.')


def _check_length(name: str, found: int, expected: int) -> None:
    if found != expected:
        raise CertificateError(f'"{name}" has {found} entries: expected {expected}.')


def _check_range(name: str, values: npt.NDArray[Any], low: int, high: int) -> None:
    if len(values) and (values.min() < low or values.max() > high):
        raise CertificateError(f'"{name}" has values from {values.min()} to {values.max()}: expected {low} to {high}.')


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
