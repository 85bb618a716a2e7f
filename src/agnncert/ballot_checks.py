"""Checks on ballots that come from outside, such as a file: what passes can be counted without surprises."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.errors import CertificateError, did_you_mean
from agnncert.theorems import RULES
from agnncert.votes import ABSTAIN, IntArray, Votes

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

_USE_COVER = ("edge-centric/node", "edge-centric/graph")
_ALL_REACHED = ("edge-centric/node", "node-centric/node", "edge-centric/graph")


def check_ballots(
    votes: Votes,
    rule: str,
    cover_ptr: IntArray,
    cover: npt.NDArray[np.int32],
    ids: str,
    parameters: Mapping[str, int],
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
    odd = [
        name for name, value in parameters.items() if name not in known or not _is_whole(value) or value < 0
    ]
    if missing or odd:
        found = ", ".join(f"{name}={value!r}" for name, value in parameters.items()) or "none"
        raise CertificateError(
            f'parameters of the rule "{rule}" are {found}: expected {", ".join(known) or "none"}.'
        )
    if rule.startswith("gnncert-en") and np.prod(list(parameters.values())) != votes.num_groups:
        raise CertificateError(f"a grid of {dict(parameters)} does not make {votes.num_groups} groups.")


def _check_types(arrays: dict[str, Any]) -> None:
    for name, dtype in DTYPES.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            found = (
                f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
            )
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
    if rule in _ALL_REACHED and unreached.any():
        raise CertificateError(f'the rule "{rule}" lists only ballots that are reached; others were found.')
    if rule == "gated/node" and (unreached > 1).any():
        raise CertificateError("a target has one group of its own; several unreached ballots were found.")


def _check_cover(rule: str, ptr: IntArray, cover: npt.NDArray[np.int32], reached: IntArray) -> None:
    if rule not in _USE_COVER:
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
        raise CertificateError(
            f'"{name}" has values from {values.min()} to {values.max()}: expected {low} to {high}.'
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
