"""``VoteEvidence``: votes of subgraphs, and the answers that the theorem of their division gives."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.claim import Claim
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord, Votes, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.theorems.registry import theorem_of
from agnncert.divided.theorems.theorem import Theorem
from agnncert.divided.words import vote_words
from agnncert.errors import CertificateError
from agnncert.proving.blocks import Rows, cut_into_blocks
from agnncert.proving.evidence import Answers, Evidence
from agnncert.proving.prices import Rival, priced_budgets
from agnncert.proving.theorems import Amounts, Counts, Facts, Prior, count_votes, most_affordable, most_affordable_of
from agnncert.proving.words import Subject, Words

NUM_THREADS = min(4, os.cpu_count() or 1)  # they work on blocks of targets at the same time
ENTRIES_AT_ONCE = 2**17  # targets times classes in one block, so that it stays in the processor's cache

Block = Callable[[Counts, Facts], npt.NDArray[Any]]  # computes an answer for the targets of one block


@dataclass(frozen=True)
class _Costs:
    """What it takes to break each of ``n`` targets under each of ``b`` budgets.

    Attributes:
        holds: Whether the label holds, shape ``[b, n]``.
        neighbours: The fewest new neighbours with which a target breaks, shape ``[b, n]``. Only the node task has it.
        touches: The fewest new, lost and altered neighbours with which a target breaks, shape ``[b, n]``. Only
            evidence with ``targets_per_node`` has it.
    """

    holds: BoolArray
    neighbours: FloatArray
    touches: FloatArray

    @classmethod
    def empty(cls, num_budgets: int, num_targets: int) -> "_Costs":
        """Returns arrays to be filled."""
        shape = (num_budgets, num_targets)
        return cls(np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape))


@dataclass(frozen=True)
class Breaking:
    """What it takes to break some targets under a budget, without saying which of them.

    Attributes:
        targets: How many targets there are.
        fails: How many of them do not hold one by one.
        neighbours: Distinct numbers of new neighbours with which targets break, ascending.
        count: How many targets break with each.
    """

    targets: int
    fails: int
    neighbours: FloatArray
    count: IntArray

    @classmethod
    def of(cls, fails: BoolArray, neighbours: FloatArray) -> Self:
        """Counts targets, given which fail, and with how many new neighbours each breaks."""
        distinct, count = np.unique(neighbours[np.isfinite(neighbours)], return_counts=True)
        return cls(len(fails), int(fails.sum()), distinct, count)

    @classmethod
    def joined(cls, parts: "Sequence[Breaking]") -> Self:
        """Returns what it takes to break the targets of all parts."""
        together = np.concatenate([part.neighbours for part in parts])
        distinct, number = np.unique(together, return_inverse=True)
        counts = np.concatenate([part.count for part in parts])
        count = np.bincount(number, weights=counts, minlength=len(distinct)).astype(np.int64)
        return cls(sum(part.targets for part in parts), sum(part.fails for part in parts), distinct, count)

    def at_most(self, budget: Budget) -> int:
        """Returns how many targets one attacked graph breaks at most (node task, as ``broken_at_most``)."""
        altered_targets = 0.0
        if budget.target_features:  # as in VoteEvidence._broken
            altered_targets = budget.delete_nodes + min(budget.change_features + 1, float(self.fails))
        money = 2 * budget.add_edges + budget.injected_edges
        return int(min(self.targets, altered_targets + most_affordable_of(self.neighbours, self.count, money)))


@dataclass(frozen=True, repr=False)
class VoteEvidence(VoteRecord, Evidence):
    """Votes, and the answers that the theorem of their division gives. Fields are as in :class:`VoteRecord`."""

    kind: ClassVar[str] = "votes"
    defends_plain_model: ClassVar[bool] = True

    def __repr__(self) -> str:
        votes = self.votes
        return (
            f"VoteEvidence({self.num_targets:,} targets, {votes.num_classes} classes, {votes.num_groups} groups, "
            f"theorem={self.theorem!r})"
        )

    @property
    def num_predictions(self) -> int:
        """The number of subgraphs."""
        return self.votes.num_groups

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.votes.num_classes

    @property
    def counts_neighbours(self) -> bool:
        """Whether every vote beyond the reached ones costs an edge or a neighbour of the target."""
        return self.proof.counts_neighbours

    @property
    def only_target_matters(self) -> bool:
        """Whether the subgraphs of a target hold no edge of other nodes."""
        return self.proof.only_target_matters

    def counted_changes(self) -> tuple[str, ...]:
        """Returns which changes of a graph one step of the radius counts (graph task)."""
        return self.proof.counted_changes(self)

    def counted_things(self) -> Literal["edges", "nodes"] | None:
        """Returns what one step of the radius changes the number of in a graph by one, or None."""
        return self.proof.changed_number

    @classmethod
    def from_votes(
        cls,
        votes: Votes,
        theorem: str,
        voting_rule: VotingRule,
        reach: tuple[IntArray, npt.NDArray[Any]],
        *,
        ids: str = "node_id",
        parameters: Mapping[str, int] | None = None,
        one_way: BoolArray | None = None,
        targets_per_node: npt.NDArray[np.int32] | None = None,
    ) -> Self:
        """Makes evidence of votes as an engine computed them. Whoever has votes makes evidence here.

        Args:
            votes: The votes. In the node task an empty group votes as the target does without edges.
            theorem: Name of the theorem that applies.
            voting_rule: How votes are added up, with its defaults filled in.
            reach: ``reach_ptr`` and ``reach`` of :class:`VoteRecord`.
            ids: "node_id", or "row" if row numbers stand in for ids.
            parameters: Whole numbers that the theorem needs.
            one_way: As in :class:`VoteRecord`, for the theorems that need it.
            targets_per_node: As in :class:`VoteRecord`, for the theorems that need it.
        """
        counted, no_edge = apply_voting_rule(votes, voting_rule)
        reach_ptr, reach_table = reach
        return cls(
            votes=counted,
            theorem=theorem,
            reach_ptr=reach_ptr.astype(np.int64),
            reach=reach_table.astype(np.int32),
            ids=ids,
            parameters=dict(parameters or {}),
            voting_rule=voting_rule,
            one_way=one_way,
            targets_per_node=targets_per_node,
            **no_edge,
        )

    @cached_property
    def counts(self) -> IntArray:
        """All votes, stable or not, and the prior, shape ``[n, C]``."""
        counts = np.zeros((self.num_targets, self.votes.num_classes), dtype=np.int64)
        for part in self._parts():
            counts[part] = _part_of(self.votes, part).counts + self._prior(part).votes
        return counts

    def check_claim(self, claim: Claim) -> None:
        """Checks that a claim names the task, the kind of ids and the number of groups of the votes.

        Raises:
            CertificateError: The claim says something else than the votes.
        """
        facts = {"task": self.task, "ids": self.ids, "num_groups": self.votes.num_groups}
        for name, value in facts.items():
            claimed = getattr(claim, name)
            if claimed != value:
                raise CertificateError(f"the claim says {name}={claimed!r}, the votes say {value!r}.")

    def labels(self) -> IntArray:
        """Returns the class with most votes, shape ``[n]``."""
        return self.label_and_radius()[0]

    def label_and_radius(self) -> tuple[IntArray, IntArray]:
        """Returns the class with most votes, and how many votes may change before another class can win."""

        def decide(counts: Counts, facts: Facts) -> IntArray:
            return np.stack([counts.label, self.proof.radius(counts, facts)], axis=1)

        label, radius = self._in_blocks(decide, np.int64, 2).T.copy()
        return label, radius

    def structure_radius(self) -> IntArray | None:
        """Returns how many edges and nodes may be added and deleted, shape ``[n]``.

        It is None where that is the radius, which is everywhere except where every neighbour has its own group.
        """
        if not self.proof.has_structure_radius:
            return None
        return self._in_blocks(self.proof.structure_radius, np.int64)

    def no_edge_labels(self) -> IntArray | None:
        """Returns what the model predicts for each target without edges, shape ``[n]``.

        It is None if neither empty groups nor the prior follow that prediction.
        """
        labels = self.no_edge
        if self.voting_rule.empty == "no_edge":
            labels = self.votes.default
        return None if labels is None else labels.astype(np.int64)

    def bounded_addition(self) -> Literal["add_edges", "inject_nodes"] | None:
        """Returns "add_edges" where only new neighbours move votes that an attacker does not reach already.

        It is "inject_nodes" where a node moves a bounded number of votes, however many edges it has.
        """
        if self.facts.by_neighbours:
            return "add_edges"
        if self.facts.whole_graph and not self.facts.uses_reach:
            return "inject_nodes"
        return None

    def single_votes(self) -> VoteRecord:
        """Returns itself: all votes are listed."""
        return self

    def words(self, subject: Subject) -> Words:
        """Returns the words for the division and the voting rule."""
        return vote_words(self, subject)

    @cached_property
    def proof(self) -> Theorem:
        """What the theorem proves about the votes."""
        return theorem_of(self.theorem)

    def holds(self, budget: Budget) -> BoolArray:
        """Returns whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``."""
        attack = Amounts.of(budget)
        return self._in_blocks(lambda counts, facts: self.proof.withstands(counts, attack, facts), np.bool_)

    def covers(self, budget: Budget) -> bool:
        """Returns whether the theorem says something about such attacks, for one target at least."""
        attack = Amounts.of(budget)
        covered = self._in_blocks(lambda counts, facts: self.proof.covered(attack, facts), np.bool_)
        return bool(covered.any()) or not self.num_targets

    @property
    def entries_per_target(self) -> int:
        """None: several threads look at blocks of counted votes here."""
        return 0

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Returns of which classes each label stays ahead under an attack, as its theorem says, shape ``[b, C]``."""

        def ahead(counts: Counts, facts: Facts) -> BoolArray:
            led = counts if leader is None else counts.led_by(leader)
            if isinstance(attack, Budget):
                return self.proof.stays_ahead(led, Amounts.of(attack), facts)
            return self.proof.stays_ahead_of_number(led, attack, facts)

        return self._in_blocks(ahead, np.bool_, self.votes.num_classes)[rows]

    def possible(self, at: Budget | float) -> BoolArray:
        """Returns which classes an attack can make win, shape ``[n, C]`` (Theorem 12).

        All classes are possible where nothing is proved. Otherwise a class is named exactly if some votes that the
        theorem lets the attacker choose make it win, with two exceptions, where more classes may be named: a negative
        prior is in doubt, or ``at`` is a size and every neighbour has its own group.

        Args:
            at: What the attacker may do, or a size of the attack.
        """
        num_classes = self.votes.num_classes
        if isinstance(at, Budget):
            attack = Amounts.of(at)
            return self._in_blocks(
                lambda counts, facts: self.proof.possible(counts, attack, facts), np.bool_, num_classes
            )
        return self._in_blocks(
            lambda counts, facts: self.proof.possible_by_number(counts, at, facts), np.bool_, num_classes
        )

    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """Returns a price that every attack costs at least which changes the label of a target (Theorem 13).

        Args:
            prices: What each kind of change costs.
            label: Restricts the question to attacks that give targets this label. Targets that have it cost nothing.

        Returns:
            Prices of shape ``[n]``, ``math.inf`` where no attack with these prices changes the label.
        """
        price_of_rival = self.proof.price_of_rival(prices, self)
        classes = range(self.votes.num_classes) if label is None else [label]
        price_of_own_label = np.inf if label is None else 0.0

        def cheapest_in_block(counts: Counts, facts: Facts) -> FloatArray:
            cheapest = np.full(len(counts.label), self._price_of_uncovered(prices, facts))
            for k in classes:
                rival = Rival.of(counts, k)
                price = np.where(rival.lacking <= 0, 0.0, price_of_rival(rival, counts, facts))
                price[counts.label == k] = price_of_own_label
                cheapest = np.minimum(cheapest, price)
            return cheapest

        return self._in_blocks(cheapest_in_block, np.float64)

    def _price_of_uncovered(self, prices: Prices, facts: Facts) -> float:
        """Returns the least price of a change that nothing is proved about, ``math.inf`` if there is none."""
        cheapest = math.inf
        for budget, price in priced_budgets(prices):
            if price < cheapest and not self._covers(Amounts.of(budget), facts):
                cheapest = price
        return cheapest

    def _covers(self, attack: Amounts, facts: Facts) -> bool:
        """Returns whether something is proved about an attack, for all targets of a block."""
        return bool(self.proof.covered(attack, facts).all())

    def max_certified(self, field: str, rest: Budget) -> FloatArray:
        """Returns the largest amount of ``field`` that each target is certified against on top of ``rest``, ``[n]``."""
        return self._in_blocks(lambda counts, facts: self.proof.most_withstood(counts, facts, field, rest), np.float64)

    def broken_at_most(self, budget: Budget, among: BoolArray | None = None) -> int:
        """Returns how many targets one attacked graph can break at most.

        Node task: all targets are in one attacked graph and share its new edges. An added edge gives a new neighbour to
        two targets at most, an injected node to as many as it has edges. All other changes count in full for every
        target. With ``target_features=False`` no target is deleted or given other features. With
        ``target_features=True`` targets may be among the deleted nodes and the nodes with changed features, of which
        there may then be one more than ``change_features`` says. Where every neighbour has its own group, a change
        at a pair touches its two ends only, so that deleted and changed ones are shared out too.

        Graph task: every target is a graph of its own, so one attacked graph breaks one target or none.

        Args:
            budget: What the attacker may do.
            among: Restricts the count to these targets, shape ``[n]``. Defaults to all.
        """
        if among is None:
            among = np.ones(self.num_targets, dtype=bool)
        costs = _Costs.empty(1, self.num_targets)
        self._for_each_block(lambda part, counts, facts: self._fill_in(costs, [budget], part, counts, facts))
        return self._broken(budget, ~costs.holds[0] & among, costs.neighbours[0][among], costs.touches[0][among])

    def answers(self, budgets: Sequence[Budget], rest: Budget) -> Answers:
        """Returns everything that a file states in addition to labels and radii. Votes are counted once."""
        costs = _Costs.empty(len(budgets), self.num_targets)
        new_edges = np.zeros(self.num_targets)

        def answer(part: slice, counts: Counts, facts: Facts) -> None:
            new_edges[part] = self.proof.most_withstood(counts, facts, "add_edges", rest)
            self._fill_in(costs, budgets, part, counts, facts)

        self._for_each_block(answer)
        broken = []
        for k, budget in enumerate(budgets):
            broken.append(self._broken(budget, ~costs.holds[k], costs.neighbours[k], costs.touches[k]))
        return Answers(costs.holds, tuple(broken), new_edges)

    def costs(self, budgets: Sequence[Budget], rest: Budget) -> "tuple[BoolArray, tuple[Breaking, ...], FloatArray]":
        """Returns what is stated about some of many targets: the answers, but for how many of all break together.

        Arguments and answers are those of :meth:`answers`. What stands in the place of ``broken_at_most`` can be added
        up over parts (:meth:`Breaking.joined`); it needs a theorem without ``targets_per_node``.
        """
        assert self.task == "node"
        assert self.targets_per_node is None
        costs = _Costs.empty(len(budgets), self.num_targets)
        new_edges = np.zeros(self.num_targets)

        def answer(part: slice, counts: Counts, facts: Facts) -> None:
            new_edges[part] = self.proof.most_withstood(counts, facts, "add_edges", rest)
            self._fill_in(costs, budgets, part, counts, facts)

        self._for_each_block(answer)
        breaking = [
            Breaking.of(~holds, neighbours) for holds, neighbours in zip(costs.holds, costs.neighbours, strict=True)
        ]
        return costs.holds, tuple(breaking), new_edges

    def _fill_in(self, costs: _Costs, budgets: Sequence[Budget], part: slice, counts: Counts, facts: Facts) -> None:
        """Computes what it takes to break the targets of one block."""
        for k, budget in enumerate(budgets):
            costs.holds[k, part] = self.proof.withstands(counts, Amounts.of(budget), facts)
            if self.task == "node":
                at_others = Amounts.of(_sparing_targets(budget))
                costs.neighbours[k, part] = self.proof.neighbours_needed(counts, at_others, facts)
                touches = self.proof.touches_needed(counts, at_others, facts)
                if touches is not None:
                    costs.touches[k, part] = touches

    def _broken(self, budget: Budget, fails: BoolArray, neighbours: FloatArray, touches: FloatArray) -> int:
        """Returns how many targets one attacked graph breaks at most.

        Args:
            budget: What the attacker may do.
            fails: Which of the targets that count do not hold one by one.
            neighbours: The fewest new neighbours with which each of them breaks.
            touches: The fewest new, lost and altered neighbours with which each of them breaks.
        """
        if self.task == "graph":
            return int(fails.any())
        altered_targets = 0.0
        if budget.target_features:  # a deleted target counts as broken, one with new features if it does not hold
            altered_targets = budget.delete_nodes + min(budget.change_features + 1, float(fails.sum()))
            budget = _sparing_targets(budget)
        broken: float = most_affordable(neighbours, 2 * budget.add_edges + budget.injected_edges)
        if self.targets_per_node is not None and not altered_targets:
            # A change at one pair touches its two ends and no other target.
            changed_pairs = budget.add_edges + budget.delete_edges + budget.change_edges
            num_nodes = min(len(self.targets_per_node), budget.delete_nodes + budget.change_features)
            touched_by_nodes = float(self.targets_per_node[: int(num_nodes)].sum())
            most_touched = 2 * changed_pairs + budget.injected_edges + touched_by_nodes
            broken = min(broken, most_affordable(touches, most_touched))
        return int(min(len(neighbours), altered_targets + broken))

    def _in_blocks(self, answer: Block, dtype: npt.DTypeLike, *columns: int) -> npt.NDArray[Any]:
        """Computes an answer for each target, shape ``[n]``, or several, shape ``[n, *columns]``."""
        answers = np.zeros((self.num_targets, *columns), dtype=dtype)

        def put(part: slice, counts: Counts, facts: Facts) -> None:
            answers[part] = answer(counts, facts)

        self._for_each_block(put)
        return answers

    def _for_each_block(self, work: Callable[[slice, Counts, Facts], None]) -> None:
        """Calls ``work`` with some targets at a time: which ones, their counts, and the facts that a theorem needs.

        If there are many targets, several threads work at the same time, because numpy lets other threads run.
        """
        parts = self._parts()
        if len(parts) == 1:
            counts, facts = self._whole
            work(parts[0], counts, facts)
            return

        def work_on(part: slice) -> None:
            counts, facts = self._block(part)
            work(part, counts, facts)

        with ThreadPoolExecutor(NUM_THREADS) as pool:
            list(pool.map(work_on, parts))

    def _parts(self) -> list[slice]:
        return cut_into_blocks(self.votes.num_classes, self.num_targets, ENTRIES_AT_ONCE)

    @cached_property
    def _whole(self) -> tuple[Counts, Facts]:
        """Counts and facts of all targets, kept for further questions if these are one block."""
        return self._block(slice(0, self.num_targets))

    def _block(self, part: slice) -> tuple[Counts, Facts]:
        """Counts the votes of some targets, and collects the facts that a theorem needs to know about them."""
        votes = _part_of(self.votes, part)
        return count_votes(votes, self._prior(part)), self._facts(votes, part)

    def _prior(self, part: slice) -> Prior:
        return Prior.of(
            self.voting_rule,
            self.facts.per_neighbour,
            self.votes.num_groups,
            (part.stop - part.start, self.votes.num_classes),
            None if self.no_edge is None else self.no_edge[part],
            None if self.no_edge_stable is None else self.no_edge_stable[part],
        )

    def _facts(self, votes: Votes, part: slice) -> Facts:
        first = self.reach_ptr[part.start]
        last = self.reach_ptr[part.stop]
        facts = Facts(
            num_reached=_num_reached(votes),
            reach_ptr=self.reach_ptr[part.start : part.stop + 1] - first,
            reach=self.reach[first:last],
            parameters=self.parameters,
            stable_ids=self.ids == "node_id",
        )
        if self.voting_rule.constant is not None:
            facts = replace(facts, absent=self.voting_rule.constant)
        if self.one_way is None:
            return facts
        listed = slice(self.votes.indptr[part.start], self.votes.indptr[part.stop])
        one_way = votes.stable & self.one_way[listed]
        no_defaults = np.zeros(votes.num_targets, dtype=bool)
        return replace(
            facts,
            one_way=votes.count_by_class(one_way, no_defaults),
            one_way_size=np.bincount(votes.owner[one_way], minlength=votes.num_targets),
        )


def _sparing_targets(budget: Budget) -> Budget:
    """Returns what the attacker may do to other targets, if some of the targets themselves may be altered."""
    if not budget.target_features:
        return budget
    return budget.but(target_features=False, change_features=budget.change_features + 1)


def _num_reached(votes: Votes) -> IntArray:
    """Returns the number of reached votes of each target, shape ``[n]``."""
    if votes.reached.all():  # the usual case, and faster
        return np.diff(votes.indptr)
    return np.bincount(votes.owner[votes.reached], minlength=votes.num_targets)


def _part_of(votes: Votes, part: slice) -> Votes:
    """Returns the votes of consecutive targets."""
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
