"""Sorts the votes of each target into piles, by what a rival gains if an attacker moves them.

Sorting takes four steps, and each of them has a record for its outcome:

1. Votes of one target that are alike are put together: :class:`Bundles`.
2. The classes that may win are found, and their votes are counted: :class:`Candidates`.
3. The candidate with the largest score is the label of its target. All other candidates are its *rivals*.
4. For each rival, the votes for the label and the votes for neither of the two are counted: :class:`Piles`.

A file lists few votes and counts the others. No array here has an entry for each subgraph, or for each target and
class, so time and memory follow the number of listed votes and targets.

This module shares no code with ``proving``, which made the statements.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agnncert.certificates.votes import ABSTAIN, BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.verifier.blocks import cut

VOTES_AT_ONCE = 150_000

# Each vote is in one of three tiers.
REACHED = 0  # listed, and the graph as it is reaches it
UNREACHED = 1  # listed, but the graph as it is does not reach it
UNLISTED = 2
NUM_TIERS = 3


def class_of_empty_groups(record: VoteRecord) -> int:
    """Returns the class that all empty groups vote for, or ``ABSTAIN`` if there is no such class."""
    empty = record.voting_rule.empty
    return empty if isinstance(empty, int) else ABSTAIN


@dataclass(frozen=True)
class Part:
    """Some consecutive targets of a record. They are numbered from 0 here.

    Attributes:
        record: The votes of all targets.
        targets: Which of all targets these ``n`` are.
    """

    record: VoteRecord
    targets: slice

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return int(self.targets.stop - self.targets.start)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.record.votes.num_classes

    @property
    def indptr(self) -> IntArray:
        """Listed votes of target ``j`` are ``indptr[j]:indptr[j + 1]`` among those of all targets, ``[n + 1]``."""
        return self.record.votes.indptr[self.targets.start : self.targets.stop + 1]

    @property
    def listed(self) -> slice:
        """Listed votes of these targets among those of all targets."""
        return slice(int(self.indptr[0]), int(self.indptr[-1]))

    @property
    def owner(self) -> IntArray:
        """Target of each listed vote."""
        return np.repeat(np.arange(self.num_targets), np.diff(self.indptr))

    def encode(self, target: IntArray, choice: npt.NDArray[np.integer] | int) -> IntArray:
        """Returns one number for each pair of a target and a class. Numbers ascend by target, then by class."""
        return np.asarray(target * self.num_classes + choice)

    def decode(self, code: IntArray) -> tuple[IntArray, IntArray]:
        """Returns the targets and the classes of numbers from :meth:`encode`."""
        return code // self.num_classes, code % self.num_classes


def parts_of(record: VoteRecord) -> list[Part]:
    """Returns all targets, in parts of up to ``VOTES_AT_ONCE`` votes, or of one target if it has more."""
    entries = np.diff(record.votes.indptr) + 1  # the unlisted votes of a target are one entry more
    return [Part(record, targets) for targets in cut(entries, VOTES_AT_ONCE)]


# Step 1: votes that are alike.


@dataclass(frozen=True)
class Bundles:
    """Votes that are alike in everything that matters here. All fields are of shape ``[b]``.

    Attributes:
        target: Whose votes they are.
        choice: The class that they are for, or ``ABSTAIN``.
        stable: Whether every machine reads them alike.
        tier: ``REACHED``, ``UNREACHED`` or ``UNLISTED``.
        one_way: Whether their pairs have one direction only; False where votes do not belong to pairs.
        size: How many votes they are, at least one.
    """

    target: IntArray
    choice: IntArray
    stable: BoolArray
    tier: IntArray
    one_way: BoolArray
    size: IntArray

    @property
    def num_stable(self) -> IntArray:
        """How many of the votes are stable: all or none."""
        return np.where(self.stable, self.size, 0)

    @property
    def num_stable_one_way(self) -> IntArray:
        """How many of the votes are stable and of pairs that have one direction only: all or none."""
        return np.where(self.one_way, self.num_stable, 0)

    def select(self, positions: IntArray) -> "Bundles":
        """Returns the bundles at some positions."""
        return Bundles(**{f.name: getattr(self, f.name).take(positions) for f in fields(self)})

    def joined(self, other: "Bundles") -> "Bundles":
        """Returns these bundles, followed by others."""
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return Bundles(**{name: np.concatenate(pair) for name, pair in pairs.items()})


def bundle_votes(part: Part) -> Bundles:
    """Puts the votes together that are alike."""
    return _bundle_listed(part).joined(_bundle_unlisted(part))


def _bundle_listed(part: Part) -> Bundles:
    votes = part.record.votes
    listed = part.listed
    one_way = np.zeros(1, dtype=bool) if part.record.one_way is None else part.record.one_way[listed]
    qualities = (
        part.owner,
        votes.vote[listed].astype(np.int64) - ABSTAIN,  # from 0 on
        votes.stable[listed].astype(np.int64),
        np.where(votes.reached[listed], REACHED, UNREACHED),
        one_way.astype(np.int64),
    )
    shape = (part.num_targets, part.num_classes + 1, 2, 2, 2)
    code = np.sort(np.ravel_multi_index(qualities, shape))  # votes that are alike now stand side by side
    first = np.flatnonzero(_differs_from_previous(code))
    target, choice, stable, tier, one_way = np.unravel_index(code[first], shape)
    size = np.diff(first, append=len(code))
    return Bundles(target, choice + ABSTAIN, stable == 1, tier, one_way == 1, size)


def _bundle_unlisted(part: Part) -> Bundles:
    votes = part.record.votes
    n = part.num_targets
    bundles = Bundles(
        target=np.arange(n),
        choice=votes.default[part.targets].astype(np.int64),
        stable=votes.default_stable[part.targets],
        tier=np.full(n, UNLISTED),
        one_way=np.zeros(n, dtype=bool),
        size=votes.num_groups - np.diff(part.indptr),
    )
    return bundles.select(np.flatnonzero(bundles.size > 0))


@dataclass(frozen=True)
class Totals:
    """Counts of the votes of each target, whatever their class.

    Attributes:
        stable: Stable votes by tier, abstaining ones included, shape ``[3, n]``.
        one_way: Stable votes of pairs that have one direction only, abstaining ones included, shape ``[n]``.
        reached: Votes in the tier ``REACHED``, stable or not, shape ``[n]``.
        in_doubt: Votes that another machine may count for any class, shape ``[n]``: unstable ones, and those of a
            prior that follows an unstable prediction.
    """

    stable: IntArray
    one_way: IntArray
    reached: IntArray
    in_doubt: IntArray


def count_by_target(part: Part, bundles: Bundles) -> Totals:
    """Counts the votes of each target, whatever their class."""
    n = part.num_targets
    stable = _add_up(bundles.tier * n + bundles.target, bundles.num_stable, NUM_TIERS * n).reshape(NUM_TIERS, n)
    unstable = part.record.votes.num_groups - stable.sum(axis=0)
    return Totals(
        stable=stable,
        one_way=_add_up(bundles.target, bundles.num_stable_one_way, n),
        reached=_add_up(bundles.target, np.where(bundles.tier == REACHED, bundles.size, 0), n),
        in_doubt=unstable + _prior_in_doubt(part),
    )


# Step 2: the classes that may win.


@dataclass(frozen=True)
class Prior:
    """Votes with which each of ``c`` classes starts.

    A prior may follow the prediction without edges. Where that is not stable, another machine may see another one.

    Attributes:
        certain: Votes that the class starts with on every machine, shape ``[c]``.
        as_seen: Votes that it starts with on the machine that made the file, shape ``[c]``.
    """

    certain: IntArray
    as_seen: IntArray


def prior_of(part: Part, target: IntArray, choice: IntArray) -> Prior:
    """Returns the prior of some classes, given as pairs of a target and a class."""
    record = part.record
    same_for_all = _prior_of_classes(record)[choice]
    if record.no_edge is None or record.no_edge_stable is None:
        return Prior(certain=same_for_all, as_seen=same_for_all)
    is_followed = record.no_edge[part.targets][target] == choice
    followed = np.where(is_followed, record.voting_rule.no_edge_prior, 0)
    stable = record.no_edge_stable[part.targets][target]
    return Prior(certain=same_for_all + np.where(stable, followed, 0), as_seen=same_for_all + followed)


def _prior_in_doubt(part: Part) -> IntArray:
    """Returns how many votes of each target's prior follow an unstable prediction, shape ``[n]``.

    A negative prior takes votes from the class that it follows, which is as good for a rival as being given them.
    """
    record = part.record
    if record.no_edge_stable is None:
        return np.zeros(part.num_targets, dtype=np.int64)
    return np.where(record.no_edge_stable[part.targets], 0, abs(record.voting_rule.no_edge_prior))


def _prior_of_classes(record: VoteRecord) -> IntArray:
    """Returns the votes that each class starts with, whatever the target, shape ``[num_classes]``.

    Where every neighbour has its own group, empty groups are beyond number. Instead of their votes, each listed group
    counts as minus one vote for their class. The record lists some of ``num_groups`` groups and counts all others as
    votes for that class, so it is enough to take ``num_groups`` votes away.
    """
    prior = np.zeros(record.votes.num_classes, dtype=np.int64)
    if record.voting_rule.class_prior:
        prior += np.array(record.voting_rule.class_prior)
    empty = class_of_empty_groups(record)
    if record.facts.per_neighbour and empty != ABSTAIN:
        prior[empty] -= record.votes.num_groups
    return prior


@dataclass(frozen=True)
class Candidates:
    """Classes that may win, with their votes: ``c`` of them, by target and then by class.

    Attributes:
        target: Whose candidate it is, shape ``[c]``.
        choice: Its class, shape ``[c]``.
        stable: Its stable votes by tier, shape ``[3, c]``.
        one_way: Its stable votes of pairs that have one direction only, shape ``[c]``.
        certain: Its votes on every machine: stable ones, and those of the prior, shape ``[c]``.
        score: Its votes on the machine that made the file: all of them, and those of the prior, shape ``[c]``.
    """

    target: IntArray
    choice: IntArray
    stable: IntArray
    one_way: IntArray
    certain: IntArray
    score: IntArray

    def select(self, positions: IntArray) -> "Candidates":
        """Returns the candidates at some positions."""
        return Candidates(**{f.name: getattr(self, f.name).take(positions, axis=-1) for f in fields(self)})


def find_candidates(part: Part, bundles: Bundles) -> Candidates:
    """Returns the classes that may win, and counts their votes."""
    voting = bundles.select(np.flatnonzero(bundles.choice != ABSTAIN))
    voted = part.encode(voting.target, voting.choice)
    codes = _codes_of_candidates(part, voted)
    target, choice = part.decode(codes)
    prior = prior_of(part, target, choice)

    c = len(codes)
    position = np.searchsorted(codes, voted)
    stable = _add_up(voting.tier * c + position, voting.num_stable, NUM_TIERS * c).reshape(NUM_TIERS, c)
    return Candidates(
        target=target,
        choice=choice,
        stable=stable,
        one_way=_add_up(position, voting.num_stable_one_way, c),
        certain=stable.sum(axis=0) + prior.certain,
        score=_add_up(position, voting.size, c) + prior.as_seen,
    )


def _codes_of_candidates(part: Part, voted: IntArray) -> IntArray:
    """Returns the codes of all classes that may win, ascending.

    They are the classes with votes, the class that the prior follows and, where empty groups are beyond number, their
    class: every vote that goes becomes one of it. Of the other classes of a target, all without votes, the first two in
    the order of their prior suffice. One of them may be the label, and the other one then comes closest to it.

    Args:
        part: The targets.
        voted: Codes of the classes with votes.
    """
    record = part.record
    every_target = np.arange(part.num_targets)
    found = [voted]
    if record.no_edge is not None:
        found.append(part.encode(every_target, record.no_edge[part.targets]))
    empty = class_of_empty_groups(record)
    if record.facts.per_neighbour and empty != ABSTAIN:
        found.append(part.encode(every_target, empty))
    codes = _distinct(np.concatenate(found))

    prior = _prior_of_classes(record)
    by_prior = np.argsort(-prior, kind="stable")  # the smaller class first if priors are equal, because it wins ties
    for _ in range(2):
        codes = _distinct(np.concatenate([codes, _first_absent(part, codes, by_prior)]))
    return codes


def _first_absent(part: Part, codes: IntArray, order: IntArray) -> IntArray:
    """Returns the code of the first class of each target that is not among ``codes`` yet, where there is one.

    Args:
        part: The targets.
        codes: Codes of classes.
        order: All classes, the first one first.
    """
    rank_of_class = np.empty(part.num_classes, dtype=np.int64)
    rank_of_class[order] = np.arange(part.num_classes)
    target, choice = part.decode(codes)
    target, rank = part.decode(np.sort(part.encode(target, rank_of_class[choice])))

    start = np.searchsorted(target, np.arange(part.num_targets))
    place = np.arange(len(target)) - start[target]
    without_gap = rank == place  # as long as the ranks of a target are 0, 1, 2, …
    first_gap = np.bincount(target[without_gap], minlength=part.num_targets)
    with_gap = np.flatnonzero(first_gap < part.num_classes)
    return part.encode(with_gap, order[first_gap[with_gap]])


# Step 3: the label.


def find_labels(part: Part, candidates: Candidates) -> IntArray:
    """Returns the class with the largest score of each target, the smaller one if several have it, shape ``[n]``."""
    every_target = np.arange(part.num_targets)
    start = np.searchsorted(candidates.target, every_target)
    largest = np.maximum.reduceat(candidates.score, start)
    winners = np.flatnonzero(candidates.score == largest[candidates.target])
    first_winner = winners[np.searchsorted(candidates.target[winners], every_target)]
    return candidates.choice[first_winner]


# Step 4: the piles.


@dataclass(frozen=True)
class Piles:
    """What each rival gains if votes are moved, for ``n`` targets with ``r`` rivals in all.

    A vote for the label gains a rival two if it is moved to it. A vote for a third class, or one that abstains, gains
    it one. Of rivals for which all piles are equally large, only the one that is closest to winning is kept. In
    particular, one class stands for all those without votes.

    Attributes:
        part: The targets.
        label: The class that wins the votes as they are in the file, shape ``[n]``.
        num_reached: Votes in the tier ``REACHED``, stable or not, shape ``[n]``.
        owner: Whose rival it is, ascending, shape ``[r]``.
        rival: Its class, shape ``[r]``.
        lead: By how many votes the label is ahead of the rival if all votes in doubt go to the rival, shape ``[r]``.
            It is one less if the rival wins ties. The rival wins as soon as it gains more than this.
        for_label: Stable votes for the label by tier, shape ``[3, r]``.
        for_others: Stable votes for neither the label nor the rival by tier, shape ``[3, r]``.
        one_way_for_label: Those for the label that are of pairs with one direction only, shape ``[r]``.
        one_way_for_others: Those for neither that are of pairs with one direction only, shape ``[r]``.
    """

    part: Part
    label: IntArray
    num_reached: IntArray
    owner: IntArray
    rival: IntArray
    lead: IntArray
    for_label: FloatArray
    for_others: FloatArray
    one_way_for_label: FloatArray
    one_way_for_others: FloatArray

    @property
    def record(self) -> VoteRecord:
        """The votes of all targets."""
        return self.part.record

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return self.part.num_targets

    @cached_property
    def tiers(self) -> list[int]:
        """The tiers in which any pile has votes."""
        return [tier for tier in range(NUM_TIERS) if self.for_label[tier].any() or self.for_others[tier].any()]

    def select(self, rivals: IntArray) -> "Piles":
        """Returns the same targets with some of the rivals."""
        return replace(
            self,
            owner=self.owner[rivals],
            rival=self.rival[rivals],
            lead=self.lead[rivals],
            for_label=self.for_label[:, rivals],
            for_others=self.for_others[:, rivals],
            one_way_for_label=self.one_way_for_label[rivals],
            one_way_for_others=self.one_way_for_others[rivals],
        )

    def targets_of(self, rivals: BoolArray) -> BoolArray:
        """Tells which targets have at least one of the rivals that are marked, shape ``[n]``."""
        marked = np.zeros(self.num_targets, dtype=bool)
        marked[self.owner[rivals]] = True
        return marked


def sort_votes(record: VoteRecord) -> Iterator[Piles]:
    """Sorts all votes into piles, some targets at a time."""
    return map(sort_part, parts_of(record))


def sort_part(part: Part) -> Piles:
    """Sorts the votes of some targets into piles."""
    bundles = bundle_votes(part)
    totals = count_by_target(part, bundles)
    candidates = find_candidates(part, bundles)
    label = find_labels(part, candidates)
    is_label = candidates.choice == label[candidates.target]
    winners = candidates.select(np.flatnonzero(is_label))  # one of each target, in the order of the targets
    all_rivals = candidates.select(np.flatnonzero(~is_label))
    lead = _lead_over(all_rivals, winners, totals)
    kept = _closest_of_equals(all_rivals, lead, class_of_empty_groups(part.record))

    rivals = all_rivals.select(kept)
    owner = rivals.target
    for_label = winners.stable[:, owner]
    one_way_for_label = winners.one_way[owner]
    return Piles(
        part=part,
        label=label,
        num_reached=totals.reached,
        owner=owner,
        rival=rivals.choice,
        lead=lead[kept],
        for_label=for_label.astype(np.float64),
        for_others=(totals.stable[:, owner] - for_label - rivals.stable).astype(np.float64),
        one_way_for_label=one_way_for_label.astype(np.float64),
        one_way_for_others=(totals.one_way[owner] - one_way_for_label - rivals.one_way).astype(np.float64),
    )


def _lead_over(rivals: Candidates, winners: Candidates, totals: Totals) -> IntArray:
    """Returns by how many votes each rival is behind if all votes in doubt go to it, one less if it wins ties."""
    of_label = winners.certain[rivals.target]
    in_doubt = totals.in_doubt[rivals.target]
    wins_ties = rivals.choice < winners.choice[rivals.target]
    return of_label - rivals.certain - in_doubt - wins_ties


def _closest_of_equals(rivals: Candidates, lead: IntArray, empty: int) -> IntArray:
    """Returns which rivals to keep: of those of one target whose votes are equal, the one that lacks least.

    The class of empty groups is kept apart from all others, because votes that go become votes for it.
    """
    qualities = [*rivals.stable, rivals.one_way, rivals.choice == empty]
    telling = [quality for quality in qualities if len(quality) and quality.min() < quality.max()]
    order = np.lexsort((lead, *telling, rivals.target))
    is_first = np.zeros(len(order), dtype=bool)
    for quality in (rivals.target, *telling):
        is_first |= _differs_from_previous(quality[order])
    return order[is_first]


# Arithmetic on arrays.


def _add_up(position: IntArray, number: IntArray, length: int) -> IntArray:
    """Returns the sum of the numbers at each position. They are votes of one target, so that floats are exact."""
    return np.bincount(position, weights=number, minlength=length).astype(np.int64)


def _differs_from_previous(values: npt.NDArray[np.generic]) -> BoolArray:
    """Tells which values differ from the one before. The first one always does."""
    differs = np.ones(len(values), dtype=bool)
    differs[1:] = values[1:] != values[:-1]
    return differs


def _distinct(numbers: IntArray) -> IntArray:
    """Returns the numbers in ascending order, each of them once. ``numpy.unique`` takes several times as long."""
    ordered = np.sort(numbers)
    return ordered[_differs_from_previous(ordered)]
