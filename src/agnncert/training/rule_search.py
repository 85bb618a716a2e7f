"""Searches the voting rule that certifies most at given sizes, from counted votes alone.

No attack can change a prior, or what empty groups vote for, so both may be chosen freely, on targets with known labels.

**Why a sweep is enough.** Let y be the true class of a target, P the prior and c(k) its votes for k. The target is
correct, and certified at size r, if for every rival k

    P_y - P_k  >=  min(r, c(y)) + min(r, T - c(k)) + c(k) - c(y) + [k < y] + conceded  =:  need_k

(``proving.theorems``; ``proving.per_neighbour`` has other terms in place of the first two). ``need`` does not depend on
P. As one P_j grows, each target of class j becomes certified at one value and stays so, and each other target stops
being certified at one value. Sorting these values gives the best P_j. With two classes only P_1 - P_0 matters, and the
sweep finds the optimum. With more classes, one prior after another is optimised until none improves, which can end in a
local optimum.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from agnncert.certificates.votes import ABSTAIN, BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division
from agnncert.graphs.graph import Task
from agnncert.proving.measures import target_weights
from agnncert.proving.per_neighbour import per_neighbour_gain
from agnncert.proving.theorems import REACHED, UNLISTED, Counts, Prior, gain_of_changes, weighed
from agnncert.training.settings import Against

Empty = int | Literal["abstain", "no_edge"]

_ROUNDS = 8  # over all classes at most; usually two or three suffice
_UNLIMITED = 2**40
_NEVER_NEEDED = -(2**40)


@dataclass(frozen=True)
class VoteTable:
    """Counted votes of ``n`` targets, and their true classes.

    Attributes:
        num_groups: Number of groups T.
        counts: Stable votes per class in groups that are not empty for the target, shape ``[n, C]``.
        empty: Number of groups that are empty for the target, shape ``[n]``.
        conceded: Votes that are not stable, which count for every rival, shape ``[n]``.
        truth: True classes, shape ``[n]``.
        weight: Weight of each target, shape ``[n]``; the sum is 1.
        no_edge: The prediction without edges, shape ``[n]``; graphs have none and abstain.
        no_edge_stable: Whether it is stable, shape ``[n]``.
        twos: With one subgraph per neighbour: votes per class that one change can turn to another class, shape
            ``[n, C]``. All of them if anything may change, few if neighbours are only added and deleted.
    """

    num_groups: int
    counts: IntArray
    empty: IntArray
    conceded: IntArray
    truth: IntArray
    weight: FloatArray
    no_edge: IntArray
    no_edge_stable: BoolArray
    twos: IntArray | None = None

    @classmethod
    def of(
        cls, record: VoteRecord, truth: IntArray, against: Against = "any", measure: str | None = "accuracy"
    ) -> "VoteTable":
        """Returns the table of the votes of ``certify`` without constants.

        Args:
            record: The evidence of ``certify``.
            truth: True classes.
            against: What a size counts if every neighbour has its own group: "any" change, or "structure": edges and
                nodes only added and deleted.
            measure: "accuracy": all targets have the same weight. "balanced": all classes.
        """
        votes = record.votes
        unlisted = np.zeros(votes.num_targets, dtype=bool)
        unstable = np.bincount(votes.owner[~votes.stable], minlength=votes.num_targets)
        table = cls(
            num_groups=votes.num_groups,
            counts=votes.count_by_class(votes.stable, unlisted),
            empty=votes.num_unlisted,
            conceded=unstable.astype(np.int64),
            truth=np.asarray(truth, dtype=np.int64),
            weight=target_weights(np.asarray(truth, dtype=np.int64), measure or "accuracy"),
            no_edge=votes.default.astype(np.int64),
            no_edge_stable=votes.default_stable,
        )
        if not record.facts.per_neighbour:
            return table
        twos = table.counts
        if against == "structure":  # a second direction of a pair that has one counts as an added edge
            one_way = False if record.one_way is None else record.one_way
            twos = votes.count_by_class(votes.stable & one_way, unlisted)
        if record.no_edge is None or record.no_edge_stable is None:
            return replace(table, twos=twos)
        no_edge = record.no_edge.astype(np.int64)
        return replace(table, twos=twos, no_edge=no_edge, no_edge_stable=record.no_edge_stable)

    @classmethod
    def of_graphs(cls, num_groups: int, counts: IntArray, truth: IntArray) -> "VoteTable":
        """Returns the table of graphs from counted votes, all of them assumed to be stable."""
        num_graphs = len(truth)
        return cls(
            num_groups=num_groups,
            counts=counts,
            empty=num_groups - counts.sum(axis=1),
            conceded=np.zeros(num_graphs, dtype=np.int64),
            truth=truth,
            weight=target_weights(truth, "accuracy"),
            no_edge=np.full(num_graphs, ABSTAIN, dtype=np.int64),
            no_edge_stable=np.ones(num_graphs, dtype=bool),
        )

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.counts.shape[1])

    def rows(self, index: IntArray | BoolArray, measure: str = "accuracy") -> "VoteTable":
        """Returns some of the targets, with the weights of a measure."""
        arrays = {name: array[index] for name, array in self._arrays().items()}
        arrays["weight"] = target_weights(arrays["truth"], measure)
        return replace(self, **arrays)

    def _arrays(self) -> dict[str, Any]:
        return {name: array for name, array in vars(self).items() if name != "num_groups" and array is not None}

    def voting(self, label: int) -> "VoteTable":
        """Returns the same groups if every one that is not empty voted for ``label``: only the size counts."""
        counts = np.zeros_like(self.counts)
        counts[:, label] = self.num_groups - self.empty
        twos = None
        if self.twos is not None:
            twos = np.zeros_like(self.counts)
            twos[:, label] = self.twos.sum(axis=1) + self.conceded
        return replace(self, counts=counts, conceded=np.zeros_like(self.conceded), twos=twos)

    def counts_of_truth(self, voting_rule: VotingRule) -> Counts:
        """Returns the counts under a voting rule with the true class in the place of the winner."""
        num_targets = len(self.truth)
        vote_of_empty = self.no_edge
        is_stable = self.no_edge_stable
        if voting_rule.constant is not None:
            vote_of_empty = np.full(num_targets, voting_rule.constant)
            is_stable = np.ones(num_targets, dtype=bool)
        empty_votes = np.flatnonzero(is_stable & (vote_of_empty >= 0))
        by_tier = np.zeros((3, num_targets, self.num_classes), dtype=np.int64)
        by_tier[REACHED] = self.counts
        by_tier[UNLISTED, empty_votes, vote_of_empty[empty_votes]] = self.empty[empty_votes]
        size = np.zeros((3, num_targets), dtype=np.int64)
        size[REACHED] = self.num_groups - self.empty - self.conceded
        size[UNLISTED] = np.where(is_stable, self.empty, 0)
        no_edge = (self.no_edge, self.no_edge_stable) if voting_rule.no_edge_prior else ()
        shape = (num_targets, self.num_classes)
        prior = Prior.of(voting_rule, self.twos is not None, self.num_groups, shape, *no_edge)
        return weighed(self.num_groups, by_tier.sum(axis=0), by_tier, size, prior, self.truth)


def joined(tables: Sequence[VoteTable]) -> VoteTable:
    """Returns several tables of the same model and division as one; all tables have the same total weight."""
    most = max(table.num_groups for table in tables)  # with groups of their own, as many as the largest graph needs
    tables = [replace(table, num_groups=most, empty=table.empty + most - table.num_groups) for table in tables]
    arrays: dict[str, Any] = {
        name: np.concatenate([vars(table)[name] for table in tables]) for name in tables[0]._arrays()
    }
    arrays["weight"] /= len(tables)
    return replace(tables[0], **arrays)


def alert_leads(table: VoteTable, empty: Empty, positive: int, size: int = 0) -> IntArray:
    """Returns the smallest P(positive) - P(other) at which ``size`` changes may make each target positive.

    All other classes have the same prior. A target may be positive if no other class is sure to be ahead of it.
    """
    others = [k for k in range(table.num_classes) if k != positive]
    return np.asarray(np.max([1 - _if_all_were(table, k, empty, size)[:, positive] for k in others], axis=0))


def kept_leads(table: VoteTable, empty: Empty, positive: int, size: int = 0) -> IntArray:
    """Returns the smallest P(positive) - P(other) at which each target is certified to be positive.

    All other classes have the same prior.
    """
    others = [k for k in range(table.num_classes) if k != positive]
    return np.asarray(_if_all_were(table, positive, empty, size)[:, others].max(axis=1))


def possible_labels(table: VoteTable, empty: Empty, prior: Sequence[int], size: int) -> BoolArray:
    """Returns which labels ``size`` changes may give each target under a prior, shape ``[n, C]``.

    These are the classes that no other class is sure to stay ahead of.
    """
    possible = np.ones_like(table.counts, dtype=bool)
    for k in range(table.num_classes):
        is_ahead = _if_all_were(table, k, empty, size) <= prior[k] - np.asarray(prior)
        is_ahead[:, k] = False
        possible &= ~is_ahead
    return possible


def _if_all_were(table: VoteTable, k: int, empty: Empty, size: int) -> IntArray:
    """Returns by how much the prior of class k must exceed that of each other class, so that it stays ahead."""
    return needs(replace(table, truth=np.full(len(table.truth), k)), empty, size)


class Threshold(NamedTuple):
    """A threshold between one class and all others.

    Attributes:
        num_certified: Targets of the positive class that are certified to get its label at the size.
        num_found: Those that get it without an attack.
        empty: What empty groups vote for.
        lead: The difference P(positive) - P(other) of the prior, the same for all other classes.
    """

    num_certified: int
    num_found: int
    empty: Empty
    lead: int


def best_threshold(
    table: VoteTable, empties: Sequence[Empty], positive: int, counted: BoolArray, most: int, size: int
) -> Threshold:
    """Returns the threshold with the best certified recall of the class ``positive`` at a size.

    At most ``most`` of the ``counted`` targets get the positive label without an attack. Ties go to the first of the
    ``empties``, which list what empty groups may vote for.
    """
    is_positive = table.truth == positive
    candidates = []
    for empty in empties:
        leads = alert_leads(table, empty, positive)
        lead = int(largest_lead(leads, counted, most))
        if lead < leads.min():  # nobody is an alert: the constant answer, which is the same under attack
            lead = -max(constant_rule(table, 0).class_prior)
        is_certified = kept_leads(table, empty, positive, size) <= lead
        is_found = kept_leads(table, empty, positive, 0) <= lead
        candidates.append(
            Threshold(int(is_certified[is_positive].sum()), int(is_found[is_positive].sum()), empty, lead)
        )
    return max(candidates, key=lambda candidate: (candidate.num_certified, candidate.num_found))


def thresholds_of(division: Division, task: Task) -> list[Empty]:
    """Returns what empty groups may vote for where a threshold is chosen, the default first."""
    default: Any = VotingRule().under(division.theorem(task), 2).empty
    if not division.knows_empty_groups or (task == "node" and division.is_per_neighbour):
        return [default]
    return ["no_edge", "abstain"] if task == "node" else ["abstain", 0, 1]


def largest_lead(leads: Any, counted: BoolArray, most: int) -> Any:
    """Returns the largest lead that makes at most ``most`` of the ``counted`` targets alerts, and few others.

    Each target is an alert from its own of the ``leads`` on.

    Example:
        >>> largest_lead(np.array([3, 5, 5, 8]), np.array([True, True, False, True]), 1)
        3
    """
    counted_leads = np.sort(leads[counted])
    allowed = leads
    if most < len(counted_leads):
        allowed = leads[leads < counted_leads[most]]
    if not len(allowed):
        return (leads.min() - 1).item()
    return allowed.max().item()


def window(size: int) -> tuple[int, ...]:
    """Returns the sizes over which accuracy is averaged to choose for one size: at a single size few targets decide.

    Example:
        >>> window(0), window(1), window(5)
        ((0, 1), (0, 1, 2), (4, 5, 6))
    """
    return tuple(range(max(0, size - 1), size + 2))


def needs(table: VoteTable, empty: Empty, size: int) -> IntArray:
    """Returns by how much the prior of the true class must exceed that of each other class, shape ``[n, C]``."""
    voting_rule = VotingRule(empty)
    counts = table.counts_of_truth(voting_rule)
    lacking = _gain(table, counts, voting_rule, size) - counts.margin
    return np.asarray(np.where(counts.is_label, 0, lacking))


def _gain(table: VoteTable, counts: Counts, voting_rule: VotingRule, size: int) -> IntArray:
    """Returns the most by which ``size`` changes close each margin, shape ``[n, C]``."""
    if table.twos is None:
        return gain_of_changes(counts, size)
    vote_of_empty = ABSTAIN if voting_rule.constant is None else voting_rule.constant
    return per_neighbour_gain(counts, vote_of_empty, table.twos, size)


def certified(table: VoteTable, voting_rule: VotingRule, size: int, counts: Counts | None = None) -> BoolArray:
    """Returns which targets are correct and certified at a size, shape ``[n]``.

    Args:
        table: The votes.
        voting_rule: The voting rule.
        size: The size.
        counts: What ``table.counts_of_truth(voting_rule)`` returned, if it has been asked before.
    """
    if counts is None:
        counts = table.counts_of_truth(voting_rule)
    stands = counts.margin >= _gain(table, counts, voting_rule, size)
    return np.asarray((counts.is_label | stands).all(axis=1))


def certified_accuracy(table: VoteTable, voting_rule: VotingRule, *sizes: int) -> float:
    """Returns the weighted share of the targets that are correct and certified at a size; of several, the mean."""
    counts = table.counts_of_truth(voting_rule)
    return float(np.mean([table.weight @ certified(table, voting_rule, size, counts) for size in sizes]))


def constant_rule(table: VoteTable, label: int) -> VotingRule:
    """Returns the voting rule that always gives the same class: its prior exceeds the number of all votes.

    No attack changes it. With one subgraph per neighbour, as many new neighbours as the largest target has can outvote
    it.
    """
    prior = [0] * table.num_classes
    if table.twos is None:
        prior[label] = table.num_groups + 1
        return VotingRule(label, tuple(prior))
    prior[label] = 2 * table.num_groups + 1
    return VotingRule("abstain", tuple(prior))


def majority(table: VoteTable) -> int:
    """Returns the most frequent class, by weight; ties go to the smaller number."""
    return int(np.bincount(table.truth, table.weight, minlength=table.num_classes).argmax())


def best_class_prior(table: VoteTable, sizes: Sequence[int], empties: Sequence[Empty] | None = None) -> VotingRule:
    """Returns the voting rule with one prior per class that has the best mean certified accuracy at some sizes.

    Ties go to the constant answer, then to abstaining, then to the smaller class. ``empties`` lists what empty groups
    may vote for; by default to abstain and all classes.
    """
    if empties is None:
        empties = ("abstain", *range(table.num_classes))
    best = constant_rule(table, majority(table))
    best_score = certified_accuracy(table, best, *sizes)
    for empty in empties:
        needs_by_size = [needs(table, empty, size) for size in sizes]
        for prior in _priors(table, needs_by_size, best.class_prior):
            candidate = VotingRule(empty, prior)
            score = certified_accuracy(table, candidate, *sizes)
            if score > best_score + 1e-12:
                best = candidate
                best_score = score
    return best


class Intervals(NamedTuple):
    """For each target, the numbers ``first`` to ``last`` at which it is certified; none if ``first > last``."""

    first: IntArray
    last: IntArray


def best_no_edge_prior(table: VoteTable, sizes: Sequence[int], empty: Empty) -> VotingRule:
    """Returns the best number of votes for the prediction without edges (node task); ties go to the larger number."""
    intervals = [_certified_between(table, needs(table, empty, size)) for size in sizes]
    first = np.concatenate([interval.first for interval in intervals])
    last = np.concatenate([interval.last for interval in intervals])
    weight = np.tile(table.weight, len(sizes)) / len(sizes)
    values, score = _sweep(Intervals(first, last), weight, least=0)
    best = np.flatnonzero(score >= score.max() - 1e-12)[-1]
    if best < len(values) - 1:
        return VotingRule(empty, int(values[best + 1]) - 1)
    # Any number of votes above num_groups does equally well.
    return VotingRule(empty, max(int(values[best]), table.num_groups + 1))


def _certified_between(table: VoteTable, need: IntArray) -> Intervals:
    """Returns from and up to how many votes for the prediction without edges each target is certified.

    If that prediction is right, these votes help, and otherwise they help one rival. A prediction that is not stable
    counts for every rival.
    """
    classes = np.arange(table.num_classes)
    is_rival = classes != table.truth[:, None]
    is_helped = classes == table.no_edge[:, None]
    most_needed = np.where(is_rival, need, _NEVER_NEEDED).max(axis=1)
    needed_by_others = np.where(is_rival & ~is_helped, need, _NEVER_NEEDED).max(axis=1)
    needed_by_helped = np.take_along_axis(need, table.no_edge[:, None], axis=1)[:, 0]
    is_right = table.no_edge == table.truth
    first = np.where(is_right, most_needed, 0)
    last = np.where(is_right, _UNLIMITED, np.where(needed_by_others <= 0, -needed_by_helped, -1))
    is_doubtful = ~table.no_edge_stable
    first = np.where(is_doubtful, 0, first)
    last = np.where(is_doubtful, -most_needed, last)
    return Intervals(np.maximum(first, 0), last)


def size_only(table: VoteTable, sizes: Sequence[int]) -> tuple[int, VotingRule]:
    """Returns the best classifier that counts the non-empty groups and ignores all else: their class, and the rule.

    A control: a model that certifies no more has learnt nothing about the graphs but their size. Empty groups vote,
    which certifies at least as much as abstaining.
    """
    classes = list(range(table.num_classes))
    rules = [best_class_prior(table.voting(label), sizes, classes) for label in classes]
    scores = [certified_accuracy(table.voting(label), rules[label], *sizes) for label in classes]
    best = max(classes, key=lambda label: (scores[label], -label))
    return best, rules[best]


def _priors(table: VoteTable, need: list[IntArray], other: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields the best prior for ``need`` at each size; of more than two classes, local optima from two starts.

    The starts are zero and ``other``.
    """
    zero = np.zeros(table.num_classes, dtype=np.int64)
    if table.num_classes == 2:  # only the difference matters, and one sweep finds the best
        yield _improved(table, need, zero, [1], 1)
        return
    for start in (zero, np.array(other, dtype=np.int64)):
        yield _improved(table, need, start, range(table.num_classes), _ROUNDS)


def _improved(
    table: VoteTable, need: list[IntArray], start: IntArray, classes: Iterable[int], rounds: int
) -> tuple[int, ...]:
    """Returns a prior of which the prior of no single class can be improved, or what ``rounds`` have come to."""
    prior = start.copy()
    best = -1.0
    for _ in range(rounds):
        before = best
        for label in classes:
            value, score = _best_value(table, need, prior, label)
            if score > best + 1e-12:
                prior[label] = value
                best = score
        if best <= before + 1e-12:
            break
    return tuple(int(value) for value in prior - prior.min())


def _best_value(table: VoteTable, need: list[IntArray], prior: IntArray, label: int) -> tuple[int, float]:
    """Returns the best prior of one class with the other priors fixed, and its score."""
    targets = np.arange(len(table.truth))
    prior_of_truth = prior[table.truth]
    is_own = table.truth == label
    first = []
    last = []
    for lacking in need:
        required = lacking + prior  # what the prior of the true class must reach, because of each class
        required[targets, table.truth] = _NEVER_NEEDED
        required[:, label] = _NEVER_NEEDED
        by_others = required.max(axis=1)
        until = np.where(by_others <= prior_of_truth, prior_of_truth - lacking[:, label], _NEVER_NEEDED - 1)
        first.append(np.where(is_own, by_others, _NEVER_NEEDED))
        last.append(np.where(is_own, _UNLIMITED, until))
    weight = np.tile(table.weight, len(need)) / len(need)
    values, score = _sweep(Intervals(np.concatenate(first), np.concatenate(last)), weight)
    return longest_middle(values, score), float(score.max())


def _sweep(intervals: Intervals, weight: FloatArray, least: int | None = None) -> tuple[IntArray, FloatArray]:
    """Returns the numbers from ``least`` on at which the total weight of intervals changes, and that weight."""
    is_filled = intervals.first <= intervals.last
    first = intervals.first[is_filled]
    last = intervals.last[is_filled]
    weight = weight[is_filled]
    steps = np.concatenate([first, last + 1])
    change = np.concatenate([weight, -weight])
    is_bounded = np.abs(steps) < _UNLIMITED // 2
    floor = int(steps[is_bounded].min()) - 1 if is_bounded.any() else 0
    if least is not None:
        floor = max(least, floor)
    steps = np.clip(steps, floor, None)
    is_reached = steps < _UNLIMITED // 2
    values, where = np.unique(np.append(steps[is_reached], floor), return_inverse=True)
    score = np.cumsum(np.bincount(where, np.append(change[is_reached], 0.0), minlength=len(values)))
    return np.asarray(values, dtype=np.int64), np.asarray(score, dtype=np.float64)


def longest_middle(values: IntArray, score: FloatArray) -> int:
    """Returns the middle of the longest run of best values. Each value stands for all numbers up to the next one."""
    is_best = score >= score.max() - 1e-12
    ends = np.append(values[1:] - 1, values[-1])
    breaks = np.flatnonzero(~(is_best[1:] & is_best[:-1])) + 1
    runs = np.split(np.arange(len(values)), breaks)
    spans = [(int(values[run[0]]), int(ends[run[-1]])) for run in runs if is_best[run[0]]]
    first, last = max(spans, key=lambda span: (span[1] - span[0], -span[0]))
    return (first + last) // 2
