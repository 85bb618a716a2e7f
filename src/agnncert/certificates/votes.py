"""Votes: what every target voted in every subgraph, and checks that no impossible votes are counted.

A target without an edge in a subgraph casts the same vote there as in every other such subgraph. So a target's
``num_groups`` votes are one *default* and a short list of exceptions (:class:`Votes`); a graph of millions of nodes
with hundreds of subgraphs stays small. :class:`VoteRecord` adds what a rule needs to count them. Both only hold data:
``theorems`` proves with it, ``recount`` counts again.
"""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.certificates.voting_rule import VotingRule
from agnncert.errors import CertificateError, SettingsError, did_you_mean

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ABSTAIN = -1


@dataclass(frozen=True)
class Votes:
    """One vote per target and subgraph; ``n`` targets, ``m`` listed votes.

    Attributes:
        num_groups: Number of subgraphs T, hence votes per target.
        num_classes: Number of classes.
        default: Vote cast in every group that is not listed (a class, or ``ABSTAIN``), shape ``[n]``.
        default_stable: Whether that vote is far enough from a tie to be the same on every machine, ``[n]``.
        indptr: Listed votes of target ``j`` are ``indptr[j]:indptr[j + 1]``, shape ``[n + 1]``.
        group: Subgraph of each listed vote, ascending within a target, shape ``[m]``.
        vote: The class voted for, or ``ABSTAIN``, shape ``[m]``.
        stable: As ``default_stable``, shape ``[m]``.
        reached: Whether the graph as it is reaches this vote, shape ``[m]``: in the node task the target has an edge
            in that subgraph (``S_v``); in the node-centric graph task the subgraph can hold an edge. A vote that is
            not reached moves only when something is *added*.
    """

    num_groups: int
    num_classes: int
    default: npt.NDArray[np.int16]
    default_stable: BoolArray
    indptr: IntArray
    group: npt.NDArray[np.int32]
    vote: npt.NDArray[np.int16]
    stable: BoolArray
    reached: BoolArray

    @cached_property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.default)

    @property
    def owner(self) -> IntArray:
        """Target of each listed vote, shape ``[m]``."""
        return np.repeat(np.arange(self.num_targets), self.indptr[1:] - self.indptr[:-1])

    def tally(self, listed: BoolArray | None = None, default: BoolArray | None = None) -> IntArray:
        """Votes per target and class (abstentions left out), shape ``[n, num_classes]``.

        Args:
            listed: Which listed votes to count, shape ``[m]``; all when not given.
            default: Whether to count each target's unlisted votes, shape ``[n]``; all when not given.
        """
        listed = np.ones(len(self.vote), dtype=bool) if listed is None else listed
        default = np.ones(self.num_targets, dtype=bool) if default is None else default
        cast = listed & (self.vote >= 0)
        place = self.owner[cast] * self.num_classes + self.vote[cast]
        counts = np.bincount(place, minlength=self.num_targets * self.num_classes)
        counts = counts.reshape(self.num_targets, self.num_classes)
        voting = np.flatnonzero(default & (self.default >= 0))
        counts[voting, self.default[voting]] += self.num_unlisted[voting]
        return counts

    @property
    def counts(self) -> IntArray:
        """All votes as cast, shape ``[n, num_classes]``."""
        return self.tally()

    @property
    def num_unlisted(self) -> IntArray:
        """How many groups cast the default vote, shape ``[n]``."""
        return self.num_groups - (self.indptr[1:] - self.indptr[:-1])

    def dense(self) -> npt.NDArray[np.int16]:
        """The full table of votes, shape ``[n, num_groups]``; meant for tests and small graphs."""
        table = np.repeat(self.default[:, None], self.num_groups, axis=1)
        table[self.owner, self.group] = self.vote
        return table


DTYPES = {
    "default": np.int16,
    "default_stable": np.bool_,
    "indptr": np.int64,
    "group": np.int32,
    "vote": np.int16,
    "stable": np.bool_,
    "reached": np.bool_,
    "reach_ptr": np.int64,
    "reach": np.int32,
}
REACH = ("reach_ptr", "reach")  # arrays that belong to the record, not to the votes
NO_EDGE = {"no_edge": np.int16, "no_edge_stable": np.bool_}  # there if a prior follows them
OF_PAIRS = {"one_way": np.bool_, "targets_per_node": np.int32}  # there if the rule names them
MOST_PER_NEIGHBOUR = 2**31 - 1  # where every neighbour has one, as many as an array of int32 can number
SIZES = {"num_groups": 2**24, "num_classes": np.iinfo(np.int16).max}  # largest numbers that a verifier accepts
LARGEST_PARAMETER = 2**53  # whole numbers up to here are exact in floating point


@dataclass(frozen=True)
class VoteRecord:
    """Votes, the rule of the division that cast them, and what else that rule needs. Checked on construction.

    Attributes:
        votes: The votes.
        rule: Which theorem applies, a key of :data:`~agnncert.certificates.theorem_facts.RULES`.
        reach_ptr: Row of target ``j`` in ``reach`` is ``reach_ptr[j]:reach_ptr[j + 1]``, shape ``[n + 1]``.
        reach: Entry k - 1 of a row bounds the votes that the worst k nodes reach; the last entry, which is the number
            of reached votes, holds for more nodes too. Edge-centric rules need it, others leave it empty.
        ids: ``"node_id"`` if nodes keep their identity through changes, ``"row"`` if row numbers stand in.
        parameters: Whole numbers that the rule needs: the sides of GNNCert-EN's grid, or the votes that one unit of
            each budget field moves in a user's own division.
        vote: What empty groups cast, and with how many votes each class starts.
        no_edge: Prediction of each target without edges, shape ``[n]``; only if the prior follows it.
        no_edge_stable: Whether it is far enough from a tie to be the same on every machine, shape ``[n]``.
        one_way: Whether the pair of each listed vote has one direction only, shape ``[m]``; only where every pair has
            a group of its own.
        targets_per_node: Of how many targets each node that is no target is a neighbour, the largest numbers first and
            no zeros. Only the node task has it, where every neighbour has a group of its own.
    """

    votes: Votes
    theorem: str
    reach_ptr: IntArray
    reach: npt.NDArray[np.int32]
    ids: str = "node_id"
    parameters: Mapping[str, int] = field(default_factory=dict)
    voting_rule: VotingRule = field(default_factory=VotingRule)
    no_edge: npt.NDArray[np.int16] | None = None
    no_edge_stable: BoolArray | None = None
    one_way: BoolArray | None = None
    targets_per_node: npt.NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        _check_settings(self)
        try:
            object.__setattr__(self, "voting_rule", self.voting_rule.under(self.theorem, self.votes.num_classes))
        except SettingsError as error:
            raise CertificateError(f"the vote does not fit the rule: {error}") from error
        _check_types(self.tensors(), _expected(self.theorem, self.voting_rule))
        _check_votes(self.votes)
        _check_reached(self)
        _check_constants(self)
        _check_pairs(self)

    @cached_property
    def num_targets(self) -> int:
        """Number of targets."""
        return self.votes.num_targets

    @property
    def task(self) -> str:
        """``"node"`` or ``"graph"``."""
        return THEOREMS[self.theorem].task

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of the votes and of the reach table, and whatever else the vote and the rule need."""
        named = {name: getattr(self if name in REACH else self.votes, name) for name in DTYPES}
        extra = {name: getattr(self, name) for name in (*NO_EDGE, *OF_PAIRS)}
        return named | {name: array for name, array in extra.items() if array is not None}

    def settings(self) -> dict[str, Any]:
        """The rule with its parameters, the vote and its size."""
        sizes = {name: getattr(self.votes, name) for name in SIZES}
        facts = {
            "theorem": self.theorem,
            "ids": self.ids,
            "parameters": dict(self.parameters),
            "voting_rule": self.voting_rule.to_json(),
        }
        return facts | sizes

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Votes from :meth:`tensors` and :meth:`settings`, which come from a file and are not trusted.

        Raises:
            CertificateError: The votes or the rule are not ones that this library can have written.
        """
        expected = ("theorem", "ids", "parameters", "voting_rule", *SIZES)
        if sorted(settings) != sorted(expected) or not isinstance(settings["parameters"], dict):
            raise CertificateError(f"settings are {reprlib.repr(dict(settings))}: expected {', '.join(expected)}.")
        sizes = {name: settings[name] for name in SIZES}
        _check_sizes(settings["theorem"], sizes)
        voting_rule = VotingRule.from_json(settings["voting_rule"], settings["theorem"], settings["num_classes"])
        names = _expected(settings["theorem"], voting_rule)
        if sorted(tensors) != sorted(names):
            raise CertificateError(f"arrays are {reprlib.repr(sorted(tensors))}: expected {', '.join(sorted(names))}.")
        votes: dict[str, Any] = {name: tensors[name] for name in DTYPES if name not in REACH}
        return cls(
            votes=Votes(**votes, **sizes),
            theorem=settings["theorem"],
            reach_ptr=tensors["reach_ptr"],
            reach=tensors["reach"],
            ids=settings["ids"],
            parameters=settings["parameters"],
            voting_rule=voting_rule,
            **{name: tensors[name] for name in (*NO_EDGE, *OF_PAIRS) if name in names},
        )


def _expected(theorem: str, voting_rule: VotingRule) -> dict[str, Any]:
    """Names and types of the arrays that belong to votes."""
    of_pairs = {name: dtype for name, dtype in OF_PAIRS.items() if getattr(THEOREMS[theorem], name)}
    return DTYPES | (NO_EDGE if voting_rule.no_edge_prior else {}) | of_pairs


def apply_voting_rule(votes: Votes, voting_rule: VotingRule) -> tuple[Votes, dict[str, npt.NDArray[Any]]]:
    """Votes as a vote counts them, and the predictions without edges if its prior follows them.

    Args:
        votes: Votes as the engines cast them: in the node task an empty group casts the prediction without edges.
        vote: The vote, spelled out.
    """
    no_edge = {"no_edge": votes.default, "no_edge_stable": votes.default_stable} if voting_rule.no_edge_prior else {}
    if voting_rule.constant is None:
        return votes, no_edge
    constant = np.full(votes.num_targets, voting_rule.constant, dtype=np.int16)
    return replace(votes, default=constant, default_stable=np.ones(votes.num_targets, dtype=bool)), no_edge


def _check_sizes(theorem: Any, sizes: Mapping[str, Any]) -> None:
    if not isinstance(theorem, str) or theorem not in THEOREMS:
        raise CertificateError(f"unknown theorem {reprlib.repr(theorem)}: {did_you_mean(str(theorem)[:40], THEOREMS)}")
    for what, most in SIZES.items():
        most = MOST_PER_NEIGHBOUR if what == "num_groups" and THEOREMS[theorem].per_neighbour else most
        if type(sizes[what]) is not int or not 1 <= sizes[what] <= most:
            given = reprlib.repr(sizes[what])
            raise CertificateError(f"{what} is {given}: expected a whole number from 1 to {most:,}.")


def _check_settings(record: VoteRecord) -> None:
    name, parameters = record.theorem, record.parameters
    _check_sizes(name, {what: getattr(record.votes, what) for what in SIZES})
    if record.ids not in ("node_id", "row"):
        raise CertificateError(f'unknown kind of ids {reprlib.repr(record.ids)}: expected "node_id" or "row".')
    facts = THEOREMS[name]
    known = (*facts.parameters, *facts.prices)
    missing = [what for what in facts.parameters if what not in parameters]
    odd = [what for what, value in parameters.items() if what not in known or not _is_parameter(value)]
    if missing or odd:
        given = reprlib.repr(dict(parameters)) if parameters else "none"
        expected = ", ".join(known) or "none"
        raise CertificateError(f'parameters of the theorem "{name}" are {given}: expected {expected}.')
    if facts.parameters and math.prod(parameters.values()) != record.votes.num_groups:
        raise CertificateError(f"a grid of {dict(parameters)} does not make {record.votes.num_groups} groups.")


def _check_types(arrays: dict[str, Any], expected: dict[str, Any]) -> None:
    odd = sorted(set(arrays) ^ set(expected))
    if odd:
        raise CertificateError(f"arrays that go with this vote and rule are missing, or do not belong to it: {odd}.")
    for name, dtype in expected.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            given = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
            raise CertificateError(f'"{name}" is {given}: expected one row of {np.dtype(dtype)}.')


def _check_votes(votes: Votes) -> None:
    _check_rows("indptr", votes.indptr, votes.num_targets, len(votes.group))
    _check_length("default_stable", len(votes.default_stable), votes.num_targets)
    for name in ("vote", "stable", "reached"):
        _check_length(name, len(getattr(votes, name)), len(votes.group))
    _check_range("group", votes.group, 0, votes.num_groups - 1)
    for name in ("vote", "default"):
        _check_range(name, getattr(votes, name), ABSTAIN, votes.num_classes - 1)
    if not _ascends(votes.group, votes.indptr):
        raise CertificateError('"group" does not ascend within a target: a vote would be counted twice.')


def _check_reached(record: VoteRecord) -> None:
    """Refuses ``reached`` flags and reach tables that contradict the rule or each other."""
    votes, facts, ptr, reach = record.votes, THEOREMS[record.theorem], record.reach_ptr, record.reach
    elsewhere = np.searchsorted(votes.indptr, np.flatnonzero(~votes.reached), side="right") - 1  # hardly ever many
    num_unreached = np.bincount(elsewhere, minlength=votes.num_targets)
    reached, unreached = np.diff(votes.indptr) - num_unreached, int(num_unreached.max(initial=0))
    if facts.most_unreached == 0 and unreached:
        raise CertificateError(f'the theorem "{record.theorem}" lists only votes that are reached; others were found.')
    if facts.most_unreached is not None and unreached > facts.most_unreached:
        raise CertificateError("a target has one group of its own; several unreached votes were found.")
    _check_rows("reach_ptr", ptr, record.num_targets, len(reach))
    if not facts.uses_reach:
        if len(reach):
            raise CertificateError(f'the theorem "{record.theorem}" has no reach table; one was found.')
        return
    has_row, last = ptr[1:] > ptr[:-1], np.zeros(votes.num_targets, dtype=np.int32)
    last[has_row] = reach[ptr[1:][has_row] - 1]
    if (last != reached).any():
        raise CertificateError('the last entry of each row of "reach" must be the number of reached votes.')
    if (reach < 0).any() or not _ascends(reach, ptr, strictly=False):
        raise CertificateError('"reach" decreases within a target: more nodes cannot reach fewer votes.')


def _ascends(values: npt.NDArray[Any], ptr: IntArray, strictly: bool = True) -> bool:
    """Whether values ascend within each row; compared, because differences may overflow."""
    fine = values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]
    starts = ptr[(ptr > 0) & (ptr < len(values))]
    fine[starts - 1] = True  # the first one of a row has nothing before it
    return bool(fine.all())


def _check_constants(record: VoteRecord) -> None:
    """Refuses votes of empty groups, and predictions without edges, that contradict the vote."""
    votes, voting_rule = record.votes, record.voting_rule
    if voting_rule.constant is not None and (votes.default != voting_rule.constant).any():
        raise CertificateError("empty groups are said to cast one and the same vote, but others were found.")
    if record.no_edge is None or record.no_edge_stable is None:
        return
    for name in NO_EDGE:
        _check_length(name, len(getattr(record, name)), votes.num_targets)
    _check_range("no_edge", record.no_edge, 0, votes.num_classes - 1)
    same = (record.no_edge == votes.default) & (record.no_edge_stable == votes.default_stable)
    if voting_rule.constant is None and not same.all():
        raise CertificateError("empty groups are said to cast the prediction without edges, but they do not.")


def _check_pairs(record: VoteRecord) -> None:
    if record.one_way is not None:
        _check_length("one_way", len(record.one_way), len(record.votes.group))
    if record.targets_per_node is not None and (
        (np.diff(record.targets_per_node) > 0).any() or (record.targets_per_node[-1:] < 1).any()
    ):
        raise CertificateError('"targets_per_node" must descend, and end before the first zero.')


def _check_rows(name: str, ptr: IntArray, num_rows: int, total: int) -> None:
    _check_length(name, len(ptr), num_rows + 1)
    if ptr[0] != 0 or ptr[-1] != total or (ptr[1:] < ptr[:-1]).any():  # compared, because differences may overflow
        raise CertificateError(f'"{name}" does not divide {total} entries into {num_rows} rows.')


def _check_length(name: str, length: int, expected: int) -> None:
    if length != expected:
        raise CertificateError(f'"{name}" has {length} entries: expected {expected}.')


def _check_range(name: str, values: npt.NDArray[Any], low: int, high: int) -> None:
    if len(values) and (values.min() < low or values.max() > high):
        raise CertificateError(f'"{name}" has values from {values.min()} to {values.max()}: expected {low} to {high}.')


def _is_parameter(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_PARAMETER
