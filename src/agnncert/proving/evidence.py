"""Evidence: what a certificate is derived from, whatever the defence.

A certificate is evidence plus a claim in words. All its statements (labels, radii, budgets, collective bounds) are
derived from its evidence, and a file stores the evidence, so that a reader can derive them again. Two kinds exist:

    VoteEvidence (here)         one vote per target and subgraph; deterministic
    SampleEvidence (samples.py)   class counts under random noise; holds with a stated probability
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord, Votes
from agnncert.proving.per_neighbour import (
    PER_NEIGHBOUR,
    new_needed,
    per_neighbour_radius,
    structure_radius,
    touches_needed,
    withstands_touches,
)
from agnncert.proving.possible import possible_by_number, possible_classes, possible_touches
from agnncert.proving.prices import (
    Rival,
    cheapest_in_tiers,
    cheapest_of_number,
    cheapest_of_own,
    offers,
    price_of_number,
    priced_budgets,
)
from agnncert.proving.theorems import (
    Amounts,
    Counts,
    Facts,
    Limits,
    Prior,
    certified_radius,
    count_votes,
    largest_amount,
    limits_of,
    most_affordable,
    neighbours_needed,
    withstands,
)


class Evidence(ABC):
    """What the statements about ``n`` targets are derived from.

    Attributes:
        kind: Name of this kind of evidence in files.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def num_targets(self) -> int:
        """Number of targets ``n``."""

    @property
    @abstractmethod
    def counts(self) -> IntArray:
        """Votes, or samples, per target and class, shape ``[n, num_classes]``."""

    @abstractmethod
    def label_and_radius(self) -> tuple[IntArray, IntArray]:
        """The label of each target and its certified radius, each of shape ``[n]``.

        A radius of -1 means that nothing is certified, not even the label of the unattacked graph.
        """

    def structure_radius(self) -> IntArray | None:
        """What is certified against edges and nodes added and deleted alone, ``[n]``; None where that is the radius."""
        return None

    @abstractmethod
    def holds(self, budget: Budget) -> BoolArray:
        """Whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``.

        A budget that the defence proves nothing about gives False. Must be monotone: where a budget does not hold, no
        larger one does.
        """

    @abstractmethod
    def possible(self, at: Budget | float) -> BoolArray:
        """Which classes an attack can make win, and perhaps some more, shape ``[n, num_classes]``.

        Each target's own label is always one of them; the others are none exactly where the label holds.

        Args:
            at: What the attacker may do, or a size in the unit of the radius; -1 for no attack.
        """

    @abstractmethod
    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """A price that every attack costs at least which changes the label of a target, shape ``[n]``.

        Args:
            prices: What each kind of change costs.
            label: Asks about attacks that give targets this label; those that have it cost nothing.
        """

    @abstractmethod
    def broken_at_most(self, budget: Budget, among: BoolArray | None = None) -> int:
        """How many targets one attacked graph can break at most.

        Args:
            budget: What the attacker may do, all of it in one graph.
            among: Count only these targets, shape ``[n]``; defaults to all.
        """

    def answers(self, budgets: Sequence[Budget], rest: Budget) -> tuple[BoolArray, tuple[int, ...], FloatArray]:
        """Everything that a file states in addition to labels and radii.

        Args:
            budgets: The budgets that it makes statements about.
            rest: What the attacker may do in addition to adding edges.

        Returns:
            As :meth:`holds` for each budget, shape ``[len(budgets), n]``; as :meth:`broken_at_most` for each; and as
            :meth:`largest` of ``add_edges`` on top of ``rest``.
        """
        holds = np.array([self.holds(budget) for budget in budgets], dtype=bool).reshape(len(budgets), self.num_targets)
        return holds, tuple(self.broken_at_most(budget) for budget in budgets), self.max_certified("add_edges", rest)

    @abstractmethod
    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Every array that :meth:`load` needs, by name; a file stores them as they are."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Everything else that :meth:`load` needs, in JSON's terms (numbers, strings, lists, dicts)."""

    @classmethod
    @abstractmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Evidence from :meth:`tensors` and :meth:`settings`; they come from a file and are not trusted.

        Raises:
            CertificateError: They are not what this kind of evidence consists of.
        """

    def holds_each(self, rest: Budget, field: str, amounts: FloatArray) -> BoolArray:
        """As :meth:`holds`, but ``field`` of the budget differs by target, ``amounts`` of shape ``[n]``.

        This version asks :meth:`holds` once for each distinct amount; override it where that is slow.
        """
        answer = np.zeros(self.num_targets, dtype=bool)
        for amount in np.unique(amounts):
            here = amounts == amount
            answer[here] = self.holds(rest.but(**{field: float(amount)}))[here]
        return answer

    def max_certified(self, field: str, rest: Budget) -> FloatArray:
        """The largest amount of ``field`` that each target is certified against on top of ``rest``, shape ``[n]``.

        ``math.inf`` where any amount is withstood, -1 where not even ``rest`` alone is.
        """
        return largest_amount(lambda amounts: self.holds_each(rest, field, amounts), self.num_targets)


AT_ONCE = min(4, os.cpu_count() or 1)  # threads that answer for a file
ENTRIES_AT_ONCE = 2**17  # targets times classes to look at together: they stay in the processor's cache


@dataclass(frozen=True)
class VoteEvidence(VoteRecord, Evidence):
    """Votes, and the answers that the theorem of their rule gives; fields as in :class:`VoteRecord`."""

    kind: ClassVar[str] = "votes"

    @property
    def counts(self) -> IntArray:
        """All votes as cast, and the prior, shape ``[n, num_classes]``."""
        counts = np.zeros((self.num_targets, self.votes.num_classes), dtype=np.int64)
        for part in self._parts():
            counts[part] = _part_of(self.votes, part).counts + self._prior(part).votes
        return counts

    def label_and_radius(self) -> tuple[IntArray, IntArray]:
        """Winner of each vote, and how many votes may change before another class can win."""

        def decide(counted: Counts, facts: Facts) -> IntArray:
            return np.stack([counted.label, radius_of(self.theorem, counted, facts)], axis=1)

        label, radius = self._each(decide, np.int64, 2).T.copy()
        return label, radius

    def structure_radius(self) -> IntArray | None:
        """What is withstood of edges and nodes added and deleted alone, ``[n]``; None where that is the radius."""
        return self._each(structure_radius, np.int64) if self._per_neighbour else None

    @property
    def _per_neighbour(self) -> bool:
        return THEOREMS[self.theorem].per_neighbour

    def holds(self, budget: Budget) -> BoolArray:
        """Whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``."""
        return self._each(lambda counted, facts: self._withstands(counted, Amounts.of(budget), facts), np.bool_)

    def _withstands(self, counted: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        if self._per_neighbour:
            return withstands_touches(counted, PER_NEIGHBOUR[self.theorem](attack, facts), facts)
        return withstands(counted, self._limits(attack, facts))

    def possible(self, at: Budget | float) -> BoolArray:
        """Which classes an attack can make win, shape ``[n, num_classes]``; all where nothing is proved (Theorem 12).

        Exact in the votes for a budget, and for a size where neighbours share groups. A negative prior in doubt makes
        it a bound, and so does a size where every neighbour has its own group.
        """

        def find(counted: Counts, facts: Facts) -> BoolArray:
            if not isinstance(at, Budget):
                return possible_by_number(counted, at, facts if self._per_neighbour else None)
            if self._per_neighbour:
                return possible_touches(counted, PER_NEIGHBOUR[self.theorem](Amounts.of(at), facts), facts)
            return possible_classes(counted, self._limits(Amounts.of(at), facts))

        return self._each(find, np.bool_, self.votes.num_classes)

    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """A price that every attack costs at least which changes the label of a target, shape ``[n]`` (Theorem 13)."""
        price_of = None
        if self.theorem.startswith(("gnncert", "custom")):
            price_of = price_of_number(self.theorem, prices, self.parameters, self.votes.num_groups)

        def find(counted: Counts, facts: Facts) -> FloatArray:
            best = np.full(len(counted.label), self._price_of_uncovered(prices, facts))
            for k in range(self.votes.num_classes) if label is None else [label]:
                rival = Rival.of(counted, k)
                if price_of is not None:
                    price = cheapest_of_number(rival, price_of)
                elif self._per_neighbour:
                    price = cheapest_of_own(rival, self.theorem, prices, counted, facts)
                else:
                    ways = [cheapest_in_tiers(rival, offer, facts) for offer in offers(self.theorem, prices)]
                    price = np.min(ways, axis=0)
                price = np.where(rival.lacking <= 0, 0.0, price)
                price[counted.label == k] = np.inf if label is None else 0.0
                best = np.minimum(best, price)
            return best

        return self._each(find, np.float64)

    def _price_of_uncovered(self, prices: Prices, facts: Facts) -> float:
        """The least price of a change that nothing is proved about."""

        def covers(budget: Budget) -> bool:
            attack = Amounts.of(budget)
            limits = PER_NEIGHBOUR[self.theorem](attack, facts) if self._per_neighbour else self._limits(attack, facts)
            return bool(limits.covered.all())

        return min([math.inf, *(p for budget, p in priced_budgets(prices) if p < math.inf and not covers(budget))])

    def max_certified(self, field: str, rest: Budget) -> FloatArray:
        """The largest amount of ``field`` that each target is certified against on top of ``rest``, shape ``[n]``."""
        return self._each(lambda counted, facts: self._largest(counted, facts, field, rest), np.float64)

    def _largest(self, counted: Counts, facts: Facts, field: str, rest: Budget) -> FloatArray:
        deletes_all = rest.delete_edges == math.inf and not (rest.inject_nodes or rest.target_features)
        if field == "add_edges" and deletes_all and THEOREMS[self.theorem].by_neighbours and not self._per_neighbour:
            # All reached votes can change anyway; an added edge matters only as a new neighbour.
            return neighbours_needed(counted, self._limits(Amounts.of(rest.but(add_edges=math.inf)), facts)) - 1

        def holds(amounts: FloatArray) -> BoolArray:
            return self._withstands(counted, Amounts.of(rest, field, amounts), facts)

        return largest_amount(holds, len(counted.label))

    def broken_at_most(self, budget: Budget, among: BoolArray | None = None) -> int:
        """How many targets one attacked graph can break at most.

        Node task: all targets are in one attacked graph and share its new edges: an added edge gives a new neighbour to
        two targets at most, an injected node to as many as it has edges. All other changes count in full for every
        target. With ``target_features=False`` no target is deleted or given other features. With
        ``target_features=True`` targets may be among the deleted nodes and the nodes with changed features, of which
        there may then be one more than ``change_features`` says. Where every neighbour has its own group, a change
        at a pair touches its two ends only, so that deleted and changed ones are shared out too.

        Graph task: every target is a graph of its own, so one attacked graph breaks one target or none.

        Args:
            budget: What the attacker may do.
            among: Count only these targets, shape ``[n]``; defaults to all.
        """
        among = np.ones(self.num_targets, dtype=bool) if among is None else among
        (holds,), (prices,), (touches,), _ = self._answers([budget])
        return self._broken(budget, ~holds & among, prices[among], touches[among])

    def answers(self, budgets: Sequence[Budget], rest: Budget) -> tuple[BoolArray, tuple[int, ...], FloatArray]:
        """Everything that a file states in addition to labels and radii; votes are counted once."""
        holds, prices, touches, largest = self._answers(budgets, rest)
        broken = [self._broken(b, ~holds[k], prices[k], touches[k]) for k, b in enumerate(budgets)]
        return holds, tuple(broken), largest

    def _answers(self, budgets: Sequence[Budget], rest: Budget | None = None) -> tuple[Any, ...]:
        """For each budget: which labels hold, and the least cost to break each; edges that may be added to ``rest``."""
        shape = len(budgets), self.num_targets
        holds, prices, touches = np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape)
        largest = np.zeros(self.num_targets)

        def answer(part: slice, counted: Counts, facts: Facts) -> None:
            if rest is not None:
                largest[part] = self._largest(counted, facts, "add_edges", rest)
            for k, budget in enumerate(budgets):
                holds[k, part] = self._withstands(counted, Amounts.of(budget), facts)
                if self.task == "node":
                    prices[k, part] = self._prices(counted, facts, budget)
                if self.targets_per_node is not None:
                    touches[k, part] = self._touch_prices(counted, facts, budget)

        self._for_each_block(answer)
        return holds, prices, touches, largest

    def _broken(self, budget: Budget, fails: BoolArray, prices: FloatArray, touches: FloatArray) -> int:
        """How many targets one attacked graph breaks, given which do not hold one by one, and what each costs."""
        if self.task == "graph":
            return int(fails.any())
        touched = 0.0
        if budget.target_features:  # a deleted target counts as broken; one with new features, unless it holds
            touched = budget.delete_nodes + min(budget.change_features + 1, float(fails.sum()))
            budget = _sparing_targets(budget)
        broken = most_affordable(prices, 2 * budget.add_edges + budget.injected_edges)
        if (
            self.targets_per_node is not None and not touched
        ):  # a change at one pair touches its two ends and no other target
            edges = budget.add_edges + budget.delete_edges + budget.change_edges
            targets_per_node = self.targets_per_node[
                : int(min(len(self.targets_per_node), budget.delete_nodes + budget.change_features))
            ]
            broken = min(
                broken, most_affordable(touches, 2 * edges + budget.injected_edges + float(targets_per_node.sum()))
            )
        return int(min(len(prices), touched + broken))

    def _prices(self, counted: Counts, facts: Facts, budget: Budget) -> FloatArray:
        """The fewest new neighbours with which each target breaks; inf if nothing within the budget breaks it."""
        attack = Amounts.of(_sparing_targets(budget))
        if self._per_neighbour:
            return new_needed(counted, PER_NEIGHBOUR[self.theorem](attack, facts), facts)
        limits = self._limits(attack, facts)
        if THEOREMS[self.theorem].by_neighbours:
            return neighbours_needed(counted, limits)
        return np.where(withstands(counted, limits), np.inf, 0.0)  # no edge has to be shared: all may move at once

    def _touch_prices(self, counted: Counts, facts: Facts, budget: Budget) -> FloatArray:
        """The fewest new, lost and altered neighbours with which each target breaks."""
        return touches_needed(counted, PER_NEIGHBOUR[self.theorem](Amounts.of(_sparing_targets(budget)), facts), facts)

    def _limits(self, attack: Amounts, facts: Facts) -> Limits:
        return limits_of(self.theorem, attack, facts, stable_ids=self.ids == "node_id")

    def _each(self, answer: Callable[[Counts, Facts], npt.NDArray[Any]], dtype: Any, *more: int) -> npt.NDArray[Any]:
        """One answer for each target, ``[n]``; or several, ``[n, *more]``."""
        answers = np.zeros((self.num_targets, *more), dtype=dtype)

        def put(part: slice, counted: Counts, facts: Facts) -> None:
            answers[part] = answer(counted, facts)

        self._for_each_block(put)
        return answers

    def _for_each_block(self, work: Callable[[slice, Counts, Facts], None]) -> None:
        """Has work done on some targets at a time: which ones, their votes counted, and what a theorem needs to know.

        Several blocks at once if there are many: numpy lets other threads run.
        """
        if len(parts := self._parts()) == 1:
            work(parts[0], *self._whole)
            return
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda part: work(part, *self._block(part)), parts))

    def _parts(self) -> list[slice]:
        step = max(1, ENTRIES_AT_ONCE // self.votes.num_classes)
        return [slice(k, min(k + step, self.num_targets)) for k in range(0, self.num_targets, step)]

    @cached_property
    def _whole(self) -> tuple[Counts, Facts]:
        """Counts and facts of all targets, where these are one block; kept for further questions."""
        return self._block(slice(0, self.num_targets))

    def _block(self, part: slice) -> tuple[Counts, Facts]:
        votes = _part_of(self.votes, part)
        first, last = self.reach_ptr[part.start], self.reach_ptr[part.stop]
        facts = Facts(
            num_reached=_num_reached(votes),
            reach_ptr=self.reach_ptr[part.start : part.stop + 1] - first,
            reach=self.reach[first:last],
            parameters=self.parameters,
            **self._of_pairs(votes, part),
        )
        return count_votes(votes, self._prior(part)), facts

    def _prior(self, part: slice) -> Prior:
        shape = part.stop - part.start, self.votes.num_classes
        no_edge = None if self.no_edge is None else self.no_edge[part]
        stable = None if self.no_edge_stable is None else self.no_edge_stable[part]
        return Prior.of(self.voting_rule, self._per_neighbour, self.votes.num_groups, shape, no_edge, stable)

    def _of_pairs(self, votes: Votes, part: slice) -> dict[str, Any]:
        """What a theorem needs to know where every neighbour has its own group."""
        if not self._per_neighbour:
            return {}
        known: dict[str, Any] = {"absent": -1 if self.voting_rule.constant is None else self.voting_rule.constant}
        if self.one_way is not None:
            stable = votes.stable & self.one_way[self.votes.indptr[part.start] : self.votes.indptr[part.stop]]
            known["one_way"] = votes.tally(stable, np.zeros(votes.num_targets, dtype=bool))
            known["one_way_size"] = np.bincount(votes.owner[stable], minlength=votes.num_targets)
        return known


def radius_of(theorem: str, counted: Counts, facts: Facts) -> IntArray:
    """How many changes each target withstands under a rule, shape ``[n]``; -1 if nothing is certified."""
    return per_neighbour_radius(counted, facts) if THEOREMS[theorem].per_neighbour else certified_radius(counted)


def _sparing_targets(budget: Budget) -> Budget:
    """What the attacker may do to other targets, if some of the targets themselves may be altered."""
    if not budget.target_features:
        return budget
    return budget.but(target_features=False, change_features=budget.change_features + 1)


def _num_reached(votes: Votes) -> IntArray:
    """Reached votes of each target; all of the listed ones, as a rule."""
    if votes.reached.all():
        return np.diff(votes.indptr)
    return np.bincount(votes.owner[votes.reached], minlength=votes.num_targets)


def _part_of(votes: Votes, part: slice) -> Votes:
    """The votes of consecutive targets."""
    listed = slice(votes.indptr[part.start], votes.indptr[part.stop])
    return replace(
        votes,
        default=votes.default[part],
        default_stable=votes.default_stable[part],
        indptr=votes.indptr[part.start : part.stop + 1] - votes.indptr[part.start],
        group=votes.group[listed],
        vote=votes.vote[listed],
        stable=votes.stable[listed],
        reached=votes.reached[listed],
    )
