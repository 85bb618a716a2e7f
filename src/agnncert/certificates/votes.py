"""Holds the votes of every target in every subgraph, and refuses votes that cannot be.

A target without an edge in a subgraph votes there as in every other such subgraph. So a target's ``num_groups`` votes
are one *default* and a short list of exceptions (:class:`Votes`), and a graph of millions of nodes with hundreds of
subgraphs stays small. :class:`VoteRecord` adds what a theorem needs to count them. Both only hold data: ``proving``
proves with it, ``verifier`` counts again.
"""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.theorem_facts import TheoremFacts, facts_of
from agnncert.certificates.voting_rule import VotingRule
from agnncert.errors import CertificateError, SettingsError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ABSTAIN = -1


@dataclass(frozen=True)
class Votes:
    """One vote per target and subgraph, for ``n`` targets with ``m`` listed votes.

    Attributes:
        num_groups: Number of subgraphs T, hence votes per target.
        num_classes: Number of classes.
        default: Vote in every group that is not listed: a class, or ``ABSTAIN``, shape ``[n]``.
        default_stable: Whether that vote is far enough from a tie to be the same on every machine, ``[n]``.
        indptr: Listed votes of target ``j`` are ``indptr[j]:indptr[j + 1]``, shape ``[n + 1]``.
        group: Subgraph of each listed vote, ascending within a target, shape ``[m]``.
        vote: The class voted for, or ``ABSTAIN``, shape ``[m]``.
        stable: As ``default_stable``, shape ``[m]``.
        reached: Whether the graph as it is reaches this vote, shape ``[m]``. In the node task this means that the
            target has an edge in that subgraph (``S_v``), in the node-centric graph task that the subgraph can hold an
            edge. A vote that is not reached moves only when something is *added*.
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

    def count_by_class(self, listed: BoolArray | None = None, default: BoolArray | None = None) -> IntArray:
        """Counts votes per target and class. Abstentions are left out.

        Args:
            listed: Which listed votes to count, shape ``[m]``. All by default.
            default: Whether to count each target's unlisted votes, shape ``[n]``. All by default.

        Returns:
            Counts of shape ``[n, num_classes]``.
        """
        counted = self.vote >= 0
        if listed is not None:
            counted &= listed
        position = self.owner[counted] * self.num_classes + self.vote[counted]
        counts = np.bincount(position, minlength=self.num_targets * self.num_classes)
        counts = counts.reshape(self.num_targets, self.num_classes)
        default_counted = self.default >= 0
        if default is not None:
            default_counted &= default
        targets = np.flatnonzero(default_counted)
        counts[targets, self.default[targets]] += self.num_unlisted[targets]
        return counts

    @property
    def counts(self) -> IntArray:
        """All votes per target and class, stable or not, shape ``[n, num_classes]``."""
        return self.count_by_class()

    @property
    def num_unlisted(self) -> IntArray:
        """Number of groups with the default vote, shape ``[n]``."""
        return self.num_groups - (self.indptr[1:] - self.indptr[:-1])

    def dense(self) -> npt.NDArray[np.int16]:
        """Returns the full table of votes, shape ``[n, num_groups]``. It is meant for tests and small graphs."""
        table = np.repeat(self.default[:, None], self.num_groups, axis=1)
        table[self.owner, self.group] = self.vote
        return table


# Arrays of a file, with their types.
OF_VOTES = {
    "default": np.int16,
    "default_stable": np.bool_,
    "indptr": np.int64,
    "group": np.int32,
    "vote": np.int16,
    "stable": np.bool_,
    "reached": np.bool_,
}
OF_REACH = {"reach_ptr": np.int64, "reach": np.int32}
OF_NO_EDGE = {"no_edge": np.int16, "no_edge_stable": np.bool_}  # there if a prior follows them
OF_PAIRS = {"one_way": np.bool_, "targets_per_node": np.int32}  # there if the theorem names them
MOST_PER_NEIGHBOUR = 2**31 - 1  # where every neighbour has one, as many as an array of int32 can number
SIZES = {"num_groups": 2**24, "num_classes": np.iinfo(np.int16).max}  # largest numbers that a verifier accepts
LARGEST_PARAMETER = 2**53  # whole numbers up to here are exact in floating point


@dataclass(frozen=True)
class VoteRecord:
    """Votes, the theorem by which they are counted, and what else it needs. It is checked on construction.

    Attributes:
        votes: The votes.
        theorem: Which theorem applies, by its name.
        reach_ptr: Row of target ``j`` in ``reach`` is ``reach_ptr[j]:reach_ptr[j + 1]``, shape ``[n + 1]``.
        reach: Entry k - 1 of a row bounds the votes that the worst k nodes reach. The last entry, which is the number
            of reached votes, holds for more nodes too. Only theorems of edge-centric divisions need it, and others
            leave it empty.
        ids: ``"node_id"`` if nodes keep their identity through changes, ``"row"`` if row numbers stand in.
        parameters: Whole numbers that the theorem needs: the sides of GNNCert-EN's grid, or the votes that one unit of
            each budget field moves in a user's own division.
        voting_rule: What empty groups vote for, and with how many votes each class starts.
        no_edge: Prediction of each target without edges, shape ``[n]``. Only there if the prior follows it.
        no_edge_stable: Whether it is far enough from a tie to be the same on every machine, shape ``[n]``.
        one_way: Whether the pair of each listed vote has one direction only, shape ``[m]``. Only there where every
            pair has a group of its own.
        targets_per_node: Of how many targets each node that is no target is a neighbour, the largest numbers first and
            no zeros. Only there in the node task, where every neighbour has a group of its own.
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
            raise CertificateError(f"the voting rule does not fit the theorem: {error}") from error
        _check_types(self.tensors(), _expected_arrays(self.facts, self.voting_rule))
        _check_votes(self.votes)
        _check_reached(self)
        _check_constants(self)
        _check_pairs(self)

    @cached_property
    def num_targets(self) -> int:
        """Number of targets."""
        return self.votes.num_targets

    @cached_property
    def facts(self) -> TheoremFacts:
        """What is known about its theorem."""
        return facts_of(self.theorem)

    @property
    def task(self) -> str:
        """``"node"`` or ``"graph"``."""
        return self.facts.task

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the arrays of the votes and of the reach table, and what else voting rule and theorem need."""
        arrays = {name: getattr(self.votes, name) for name in OF_VOTES}
        for name in (*OF_REACH, *OF_NO_EDGE, *OF_PAIRS):
            array = getattr(self, name)
            if array is not None:
                arrays[name] = array
        return arrays

    def settings(self) -> dict[str, Any]:
        """Returns the theorem with its parameters, the voting rule and the numbers of groups and classes."""
        return {
            "theorem": self.theorem,
            "ids": self.ids,
            "parameters": dict(self.parameters),
            "voting_rule": self.voting_rule.to_json(),
            "num_groups": self.votes.num_groups,
            "num_classes": self.votes.num_classes,
        }

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Returns the votes of :meth:`tensors` and :meth:`settings`, which come from a file and are not trusted.

        Raises:
            CertificateError: The votes or the theorem are not ones that this library can have written.
        """
        names = ("theorem", "ids", "parameters", "voting_rule", *SIZES)
        if sorted(settings) != sorted(names) or not isinstance(settings["parameters"], dict):
            raise CertificateError(f"settings are {reprlib.repr(dict(settings))}: expected {', '.join(names)}.")
        facts = facts_of(settings["theorem"])
        sizes = {name: settings[name] for name in SIZES}
        _check_sizes(facts, sizes)
        voting_rule = VotingRule.from_json(settings["voting_rule"], facts.name, settings["num_classes"])
        expected = sorted(_expected_arrays(facts, voting_rule))
        if sorted(tensors) != expected:
            raise CertificateError(f"arrays are {reprlib.repr(sorted(tensors))}: expected {', '.join(expected)}.")
        of_votes: dict[str, Any] = {name: tensors[name] for name in OF_VOTES}
        return cls(
            votes=Votes(**of_votes, **sizes),
            theorem=facts.name,
            ids=settings["ids"],
            parameters=settings["parameters"],
            voting_rule=voting_rule,
            **{name: array for name, array in tensors.items() if name not in OF_VOTES},
        )


def _expected_arrays(facts: TheoremFacts, voting_rule: VotingRule) -> dict[str, Any]:
    """Returns the names and types of the arrays that belong to votes."""
    arrays: dict[str, Any] = OF_VOTES | OF_REACH
    if voting_rule.no_edge_prior:
        arrays |= OF_NO_EDGE
    return arrays | {name: dtype for name, dtype in OF_PAIRS.items() if getattr(facts, name)}


def apply_voting_rule(votes: Votes, voting_rule: VotingRule) -> tuple[Votes, dict[str, npt.NDArray[Any]]]:
    """Returns votes as a voting rule counts them, and predictions without edges by name if its prior follows them.

    Args:
        votes: Votes of an engine. In the node task an empty group votes for the prediction without edges.
        voting_rule: The voting rule, with its defaults filled in.
    """
    no_edge: dict[str, npt.NDArray[Any]] = {}
    if voting_rule.no_edge_prior:
        no_edge = {"no_edge": votes.default, "no_edge_stable": votes.default_stable}
    if voting_rule.constant is None:
        return votes, no_edge
    constant = np.full(votes.num_targets, voting_rule.constant, dtype=np.int16)
    always_stable = np.ones(votes.num_targets, dtype=bool)
    return replace(votes, default=constant, default_stable=always_stable), no_edge


def _check_sizes(facts: TheoremFacts, sizes: Mapping[str, Any]) -> None:
    """Refuses numbers of groups and classes that a verifier does not accept."""
    largest = dict(SIZES)
    if facts.per_neighbour:
        largest["num_groups"] = MOST_PER_NEIGHBOUR
    for name, most in largest.items():
        if type(sizes[name]) is not int or not 1 <= sizes[name] <= most:
            shown = reprlib.repr(sizes[name])
            raise CertificateError(f"{name} is {shown}: expected a whole number from 1 to {most:,}.")


def _check_settings(record: VoteRecord) -> None:
    """Refuses a theorem, sizes, ids and parameters that make no sense together."""
    _check_sizes(record.facts, {name: getattr(record.votes, name) for name in SIZES})
    if record.ids not in ("node_id", "row"):
        raise CertificateError(f'unknown kind of ids {reprlib.repr(record.ids)}: expected "node_id" or "row".')
    facts = record.facts
    parameters = record.parameters
    allowed = (*facts.parameters, *facts.prices)
    has_all = all(name in parameters for name in facts.parameters)
    has_no_other = all(name in allowed and _is_parameter(value) for name, value in parameters.items())
    if not has_all or not has_no_other:
        shown = reprlib.repr(dict(parameters)) if parameters else "none"
        expected = ", ".join(allowed) or "none"
        raise CertificateError(f'parameters of the theorem "{record.theorem}" are {shown}: expected {expected}.')
    if facts.parameters and math.prod(parameters.values()) != record.votes.num_groups:
        raise CertificateError(f"a grid of {dict(parameters)} does not make {record.votes.num_groups} groups.")


def _check_types(arrays: dict[str, Any], expected: dict[str, Any]) -> None:
    """Refuses arrays that are missing, do not belong to votes, or are not rows of the right type."""
    odd = sorted(set(arrays) ^ set(expected))
    if odd:
        raise CertificateError(
            f"arrays that go with this voting rule and theorem are missing, or do not belong to it: {odd}."
        )
    for name, dtype in expected.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            shown = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
            raise CertificateError(f'"{name}" is {shown}: expected one row of {np.dtype(dtype)}.')


def _check_votes(votes: Votes) -> None:
    """Refuses lengths that do not fit together, unknown groups and classes, and groups that are listed twice."""
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
    """Refuses ``reached`` flags and reach tables that contradict the theorem or each other."""
    votes = record.votes
    facts = record.facts
    unreached_votes = np.flatnonzero(~votes.reached)  # hardly ever many
    their_targets = np.searchsorted(votes.indptr, unreached_votes, side="right") - 1
    num_unreached = np.bincount(their_targets, minlength=votes.num_targets)
    most = int(num_unreached.max(initial=0))
    if facts.most_unreached == 0 and most:
        raise CertificateError(f'the theorem "{record.theorem}" lists only votes that are reached; others were found.')
    if facts.most_unreached is not None and most > facts.most_unreached:
        raise CertificateError("a target has one group of its own; several unreached votes were found.")
    _check_rows("reach_ptr", record.reach_ptr, record.num_targets, len(record.reach))
    if facts.uses_reach:
        _check_reach_table(record, num_reached=np.diff(votes.indptr) - num_unreached)
    elif len(record.reach):
        raise CertificateError(f'the theorem "{record.theorem}" has no reach table; one was found.')


def _check_reach_table(record: VoteRecord, num_reached: IntArray) -> None:
    """Refuses a reach table of which a row decreases, or does not end with the number of reached votes."""
    starts = record.reach_ptr[:-1]
    ends = record.reach_ptr[1:]
    has_row = ends > starts
    last = np.zeros(record.num_targets, dtype=np.int32)
    last[has_row] = record.reach[ends[has_row] - 1]
    if (last != num_reached).any():
        raise CertificateError('the last entry of each row of "reach" must be the number of reached votes.')
    if (record.reach < 0).any() or not _ascends(record.reach, record.reach_ptr, strictly=False):
        raise CertificateError('"reach" decreases within a target: more nodes cannot reach fewer votes.')


def _ascends(values: npt.NDArray[Any], ptr: IntArray, strictly: bool = True) -> bool:
    """Tells whether values ascend within each row. They are compared, because differences may overflow."""
    ascends = values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]
    starts = ptr[(ptr > 0) & (ptr < len(values))]
    ascends[starts - 1] = True  # the first one of a row has nothing before it
    return bool(ascends.all())


def _check_constants(record: VoteRecord) -> None:
    """Refuses votes of empty groups, and predictions without edges, that contradict the voting rule."""
    votes, voting_rule = record.votes, record.voting_rule
    if voting_rule.constant is not None and (votes.default != voting_rule.constant).any():
        raise CertificateError("empty groups are said to cast one and the same vote, but others were found.")
    if record.no_edge is None or record.no_edge_stable is None:
        return
    for name in OF_NO_EDGE:
        _check_length(name, len(getattr(record, name)), votes.num_targets)
    _check_range("no_edge", record.no_edge, 0, votes.num_classes - 1)
    same = (record.no_edge == votes.default) & (record.no_edge_stable == votes.default_stable)
    if voting_rule.constant is None and not same.all():
        raise CertificateError("empty groups are said to cast the prediction without edges, but they do not.")


def _check_pairs(record: VoteRecord) -> None:
    """Refuses facts about pairs of the wrong length or in the wrong order."""
    if record.one_way is not None:
        _check_length("one_way", len(record.one_way), len(record.votes.group))
    if record.targets_per_node is None:
        return
    descends = (record.targets_per_node[1:] <= record.targets_per_node[:-1]).all()  # differences may overflow
    if not descends or (record.targets_per_node[-1:] < 1).any():
        raise CertificateError('"targets_per_node" must descend, and end before the first zero.')


def _check_rows(name: str, ptr: IntArray, num_rows: int, total: int) -> None:
    """Refuses pointers that do not divide all entries into rows."""
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
