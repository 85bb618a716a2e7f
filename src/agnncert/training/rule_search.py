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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from agnncert.certificates.theorem_facts import THEOREMS
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
        """The table of the votes of ``certify`` without constants.

        Args:
            votes: The evidence of ``certify``.
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
        if not THEOREMS[record.theorem].per_neighbour:
            return table
        twos = table.counts
        if against == "structure":  # a second direction of a pair that has one counts as an added edge
            turned = np.zeros_like(votes.stable) if record.one_way is None else votes.stable & record.one_way
            twos = votes.count_by_class(turned, unlisted)
        if record.no_edge is None or record.no_edge_stable is None:
            return replace(table, twos=twos)
        no_edge = record.no_edge.astype(np.int64)
        return replace(table, twos=twos, no_edge=no_edge, no_edge_stable=record.no_edge_stable)

    @classmethod
    def of_graphs(cls, num_groups: int, counts: IntArray, truth: IntArray) -> "VoteTable":
        """The table of graphs from counted votes, all of them assumed to be stable."""
        none, sure = np.zeros(len(truth), dtype=np.int64), np.ones(len(truth), dtype=bool)
        empty = num_groups - counts.sum(axis=1)
        return cls(num_groups, counts, empty, none, truth, target_weights(truth, "accuracy"), none + ABSTAIN, sure)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.counts.shape[1])

    def rows(self, index: IntArray | BoolArray, measure: str = "accuracy") -> "VoteTable":
        """Some of the targets, with the weights of a measure."""
        chosen = {name: array[index] for name, array in self._arrays().items()}
        return replace(self, **chosen | {"weight": target_weights(chosen["truth"], measure)})

    def _arrays(self) -> dict[str, Any]:
        return {name: array for name, array in vars(self).items() if name != "num_groups" and array is not None}

    def voting(self, label: int) -> "VoteTable":
        """The same groups if every one that is not empty voted for ``label``: only the size of the graph counts."""
        counts = np.zeros_like(self.counts)
        counts[:, label] = self.num_groups - self.empty
        twos = None
        if self.twos is not None:
            twos = np.zeros_like(self.counts)
            twos[:, label] = self.twos.sum(axis=1) + self.conceded
        return replace(self, counts=counts, conceded=np.zeros_like(self.conceded), twos=twos)

    def tally(self, voting_rule: VotingRule) -> Counts:
        """The tally of the true class instead of the winner, under a voting rule."""
        n = len(self.truth)
        cast, stable = self.no_edge, self.no_edge_stable
        if voting_rule.constant is not None:
            cast, stable = np.full(n, voting_rule.constant), np.ones(n, dtype=bool)
        by_tier, size = np.zeros((3, n, self.num_classes), dtype=np.int64), np.zeros((3, n), dtype=np.int64)
        known = np.flatnonzero(stable & (cast >= 0))
        by_tier[REACHED], by_tier[UNLISTED, known, cast[known]] = self.counts, self.empty[known]
        size[REACHED], size[UNLISTED] = self.num_groups - self.empty - self.conceded, np.where(stable, self.empty, 0)
        no_edge = (self.no_edge, self.no_edge_stable) if voting_rule.no_edge_prior else ()
        votes = Prior.of(voting_rule, self.twos is not None, self.num_groups, (n, self.num_classes), *no_edge)
        return weighed(self.num_groups, by_tier.sum(axis=0), by_tier, size, votes, self.truth)


def joined(tables: Sequence[VoteTable]) -> VoteTable:
    """Several tables of the same model and division as one; all tables have the same total weight."""
    most = max(table.num_groups for table in tables)  # with groups of their own, as many as the largest graph needs
    tables = [replace(table, num_groups=most, empty=table.empty + most - table.num_groups) for table in tables]
    arrays: dict[str, Any] = {
        name: np.concatenate([vars(table)[name] for table in tables]) for name in tables[0]._arrays()
    }
    arrays["weight"] /= len(tables)
    return replace(tables[0], **arrays)


def alert_leads(table: VoteTable, empty: Empty, positive: int, size: int = 0) -> IntArray:
    """Two classes: the smallest P(positive) - P(other) at which ``size`` changes may make each target positive."""
    other = replace(table, truth=np.full(len(table.truth), 1 - positive))
    return 1 - needs(other, empty, size)[:, positive]


def kept_leads(table: VoteTable, empty: Empty, positive: int, size: int = 0) -> IntArray:
    """Two classes: the smallest P(positive) - P(other) at which each target is certified to be positive."""
    own = replace(table, truth=np.full(len(table.truth), positive))
    return needs(own, empty, size)[:, 1 - positive]


def best_threshold(
    table: VoteTable, empties: Sequence[Empty], positive: int, counted: BoolArray, most: int, size: int
) -> tuple[Empty, int, list[int]]:
    """Two classes: the voting rule with the best certified recall of the class ``positive`` at a size.

    At most ``most`` of the ``counted`` targets get the positive label without an attack. Ties go to the first option.

    Returns:
        What empty groups vote for; the difference P(positive) - P(other) of the prior; and how many targets of the
        class are certified to get its label, at the size and without an attack.
    """
    found, is_positive = [], table.truth == positive
    for empty in empties:
        leads = alert_leads(table, empty, positive)
        lead = int(largest_lead(leads, counted, most))
        if lead < leads.min():  # nobody is an alert: the constant answer, which is the same under attack
            lead = -max(constant_rule(table, 1 - positive).class_prior)
        kept = [int((kept_leads(table, empty, positive, at) <= lead)[is_positive].sum()) for at in (size, 0)]
        found.append((kept, empty, lead))
    kept, empty, lead = max(found, key=lambda one: one[0])
    return empty, lead, kept


def thresholds_of(division: Division, task: Task) -> list[Empty]:
    """What empty groups may vote for where a threshold is chosen, the default first."""
    default: Any = VotingRule().under(division.theorem(task), 2).empty
    if not division.knows_empty_groups or (task == "node" and division.is_per_neighbour):
        return [default]
    return ["no_edge", "abstain"] if task == "node" else ["abstain", 0, 1]


def largest_lead(leads: Any, counted: BoolArray, most: int) -> Any:
    """The largest lead that makes at most ``most`` of the ``counted`` targets alerts, and as few others as it can.

    Each target is an alert from its own of the ``leads`` on.

    Example:
        >>> largest_lead(np.array([3, 5, 5, 8]), np.array([True, True, False, True]), 1)
        3
    """
    among = np.sort(leads[counted])
    below = leads[leads < among[most]] if most < len(among) else leads
    return (below.max() if len(below) else leads.min() - 1).item()


def window(size: int) -> tuple[int, ...]:
    """The sizes over which the accuracy is averaged to choose for one size: at a single size few targets decide.

    Example:
        >>> window(0), window(1), window(5)
        ((0, 1), (0, 1, 2), (4, 5, 6))
    """
    return tuple(range(max(0, size - 1), size + 2))


def needs(table: VoteTable, empty: Empty, size: int) -> IntArray:
    """By how much the prior of the true class must exceed that of each class, shape ``[n, C]``; 0 for itself."""
    voting_rule = VotingRule(empty)
    counted = table.tally(voting_rule)
    return np.asarray(np.where(counted.is_label, 0, _gain(table, counted, voting_rule, size) - counted.margin))


def _gain(table: VoteTable, counted: Counts, voting_rule: VotingRule, size: int) -> IntArray:
    """The most by which ``size`` changes close each margin, shape ``[n, C]``."""
    if table.twos is None:
        return gain_of_changes(counted, size)
    return per_neighbour_gain(
        counted, ABSTAIN if voting_rule.constant is None else voting_rule.constant, table.twos, size
    )


def certified(table: VoteTable, voting_rule: VotingRule, size: int, tally: Counts | None = None) -> BoolArray:
    """Which targets are correct and certified at a size, shape ``[n]``; ``tally`` is that of the rule, if known."""
    counted = table.tally(voting_rule) if tally is None else tally
    return np.asarray((counted.is_label | (counted.margin >= _gain(table, counted, voting_rule, size))).all(axis=1))


def certified_accuracy(table: VoteTable, voting_rule: VotingRule, *sizes: int) -> float:
    """Weighted share of the targets that are correct and certified at a size; of several sizes, the mean."""
    tally = table.tally(voting_rule)
    return float(np.mean([table.weight @ certified(table, voting_rule, size, tally) for size in sizes]))


def constant_rule(table: VoteTable, label: int) -> VotingRule:
    """Always the same class: its prior exceeds the number of all votes, so no attack changes it.

    With one subgraph per neighbour, as many new neighbours as the largest target has can outvote it.
    """
    own = table.twos is not None
    prior = [0] * table.num_classes
    prior[label] = (2 if own else 1) * table.num_groups + 1
    return VotingRule("abstain" if own else label, tuple(prior))


def majority(table: VoteTable) -> int:
    """The most frequent class, by weight; ties go to the smaller number."""
    return int(np.bincount(table.truth, table.weight, minlength=table.num_classes).argmax())


def best_class_prior(table: VoteTable, sizes: Sequence[int], empties: Sequence[Empty] | None = None) -> VotingRule:
    """The voting rule with one prior per class that has the best mean certified accuracy at some sizes.

    Ties go to the constant answer, then to abstaining, then to the smaller class. ``empties`` lists what empty groups
    may vote for; by default to abstain and all classes.
    """
    best = constant_rule(table, majority(table))
    best_score = certified_accuracy(table, best, *sizes)
    for empty in empties if empties is not None else ("abstain", *range(table.num_classes)):
        for prior in _priors(table, [needs(table, empty, size) for size in sizes], best.class_prior):
            score = certified_accuracy(table, found := VotingRule(empty, prior), *sizes)
            if score > best_score + 1e-12:
                best, best_score = found, score
    return best


def best_no_edge_prior(table: VoteTable, sizes: Sequence[int], empty: Empty) -> VotingRule:
    """The best number of votes for the prediction without edges (node task); ties go to the larger number."""
    first, last, weight = [], [], []
    right = table.no_edge == table.truth
    for size in sizes:
        need = needs(table, empty, size)
        rival = np.arange(table.num_classes) != table.truth[:, None]
        at_no_edge = np.take_along_axis(need, table.no_edge[:, None], axis=1)[:, 0]
        others = np.where(rival & (np.arange(table.num_classes) != table.no_edge[:, None]), need, _NEVER_NEEDED)
        low = np.where(right, np.where(rival, need, _NEVER_NEEDED).max(axis=1), 0)
        high = np.where(right, _UNLIMITED, np.where(others.max(axis=1) <= 0, -at_no_edge, -1))
        doubtful = ~table.no_edge_stable
        low = np.where(doubtful, 0, low)
        high = np.where(doubtful, -np.where(rival, need, _NEVER_NEEDED).max(axis=1), high)
        first.append(np.maximum(low, 0))
        last.append(high)
        weight.append(table.weight)
    values, score = _sweep(np.concatenate(first), np.concatenate(last), np.concatenate(weight) / len(sizes), least=0)
    top = np.flatnonzero(score >= score.max() - 1e-12)[-1]
    has_end = top < len(values) - 1  # if not, any number of votes above num_groups does equally well
    return VotingRule(empty, int(values[top + 1]) - 1 if has_end else max(int(values[top]), table.num_groups + 1))


def size_only(table: VoteTable, sizes: Sequence[int]) -> tuple[int, VotingRule]:
    """The best classifier that counts the non-empty groups and ignores everything else: their class, and the rule.

    A control: a model that certifies no more has learnt nothing about the graphs but their size. Empty groups vote,
    which certifies at least as much as abstaining.
    """
    classes = range(table.num_classes)
    found = [(label, best_class_prior(table.voting(label), sizes, list(classes))) for label in classes]
    return max(found, key=lambda pair: (certified_accuracy(table.voting(pair[0]), pair[1], *sizes), -pair[0]))


def _priors(table: VoteTable, need: list[IntArray], other: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The best prior for ``need`` at each size; of more than two classes, local optima from zero and from ``other``."""
    starts = [np.zeros(table.num_classes, dtype=np.int64)]
    starts += [np.array(other, dtype=np.int64)] if table.num_classes > 2 else []
    turns = [1] if table.num_classes == 2 else list(range(table.num_classes))
    for start in starts:
        prior, best = start.copy(), -1.0
        for _ in range(1 if len(turns) == 1 else _ROUNDS):
            before = best
            for j in turns:
                value, score = _best_value(table, need, prior, j)
                if score > best + 1e-12:
                    prior[j], best = value, score
            if best <= before + 1e-12:
                break
        yield tuple(int(value) for value in prior - prior.min())


def _best_value(table: VoteTable, need: list[IntArray], prior: IntArray, j: int) -> tuple[int, float]:
    """The best prior of class j with the other priors fixed, and its score."""
    first, last = [], []
    own = prior[table.truth]
    is_own = table.truth == j
    for lacking in need:
        lead = lacking + prior  # what the prior of the true class must reach, because of each class
        others = lead.copy()
        others[np.arange(len(own)), table.truth] = _NEVER_NEEDED
        others[:, j] = _NEVER_NEEDED
        reached = others.max(axis=1)
        first.append(np.where(is_own, reached, _NEVER_NEEDED))
        last.append(np.where(is_own, _UNLIMITED, np.where(reached <= own, own - lacking[:, j], _NEVER_NEEDED - 1)))
    weight = np.tile(table.weight, len(need)) / len(need)
    values, score = _sweep(np.concatenate(first), np.concatenate(last), weight)
    return longest_middle(values, score), float(score.max())


def _sweep(
    first: IntArray, last: IntArray, weight: FloatArray, least: int | None = None
) -> tuple[IntArray, FloatArray]:
    """The numbers from ``least`` on at which the total weight of intervals ``first..last`` changes, and that weight."""
    alive = first <= last
    first, last, weight = first[alive], last[alive], weight[alive]
    steps = np.concatenate([first, last + 1])
    change = np.concatenate([weight, -weight])
    bounded = np.abs(steps) < _UNLIMITED // 2
    floor = int(steps[bounded].min()) - 1 if bounded.any() else 0
    floor = floor if least is None else max(least, floor)
    steps = np.clip(steps, floor, None)
    keep = steps < _UNLIMITED // 2
    values, where = np.unique(np.append(steps[keep], floor), return_inverse=True)
    score = np.cumsum(np.bincount(where, np.append(change[keep], 0.0), minlength=len(values)))
    return np.asarray(values, dtype=np.int64), np.asarray(score, dtype=np.float64)


def longest_middle(values: IntArray, score: FloatArray) -> int:
    """The middle of the longest run of best values."""
    best = score >= score.max() - 1e-12
    ends = np.append(values[1:] - 1, values[-1])  # each value stands for all numbers up to the next one
    runs = np.split(np.arange(len(values)), np.flatnonzero(~(best[1:] & best[:-1])) + 1)
    spans = [(int(values[run[0]]), int(ends[run[-1]])) for run in runs if best[run[0]]]
    first, last = max(spans, key=lambda span: (span[1] - span[0], -span[0]))
    return (first + last) // 2
