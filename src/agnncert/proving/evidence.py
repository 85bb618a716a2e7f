"""Evidence: what a certificate is derived from, whatever the defence.

A certificate is evidence plus a claim in words. All its statements (labels, radii, budgets, collective bounds) are
derived from its evidence, and a file stores the evidence, so that a reader can derive them again. Whoever has a
certificate asks :class:`Evidence` and need not know its kind. :class:`VoteEvidence`, for votes of subgraphs, is here;
other defences have their own kinds, listed under ``agnncert.evidence`` in :mod:`agnncert.addons`.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.claim import Claim
from agnncert.certificates.theorem_facts import EDGES_ONLY, THEOREMS
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord, Votes, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.errors import CertificateError
from agnncert.proving.per_neighbour import (
    PER_NEIGHBOUR,
    Touches,
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
    cheapest_per_neighbour,
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
from agnncert.proving.vote_words import vote_words
from agnncert.proving.words import Subject, Words, plain_words


class Answers(NamedTuple):
    """What a certificate file states in addition to labels and radii, for ``b`` budgets and ``n`` targets.

    Attributes:
        holds: Whether each target keeps its label under each budget, shape ``[b, n]``.
        broken_at_most: How many targets one attacked graph can break at most, for each budget.
        new_edges: The largest certified number of added edges of each target, shape ``[n]``.
    """

    holds: BoolArray
    broken_at_most: tuple[int, ...]
    new_edges: FloatArray


@dataclass(frozen=True)
class PageRules:
    """What the scripts of a page need to count again.

    Attributes:
        name: The name of the rules in the scripts.
        arrays: Arrays of whole numbers, by name.
        parameters: Settings, as JSON values.
        presets: Budgets to start from: their names, the fields that are set, and those without a limit.
    """

    name: str
    arrays: Mapping[str, npt.NDArray[Any]]
    parameters: Mapping[str, Any]
    presets: tuple[tuple[str, Mapping[str, int], tuple[str, ...]], ...] = ()


class Evidence(ABC):
    """What the statements about ``n`` targets with ``C`` classes are derived from.

    Attributes:
        kind: Name of this kind of evidence in files.
        voting_rule: How empty subgraphs vote, and the prior. None if the defence has no such rule.
        possible_takes_long: Whether :meth:`possible` takes long for many targets.
        defends_plain_model: Whether the certified model, applied to the whole graph at once, is the model without the
            defence, so that a report may compare the two. False unless a kind says so.
        training_fields: Names of the budget's fields about training data that something is proved about. All others
            are refused. None unless a kind names them.
    """

    kind: ClassVar[str]
    voting_rule: VotingRule | None = None
    possible_takes_long: ClassVar[bool] = False
    defends_plain_model: ClassVar[bool] = False
    training_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def num_predictions(self) -> int:
        """How many forward passes the definition of the method takes. An engine may save most of them."""
        return 1

    @property
    def counts_neighbours(self) -> bool:
        """Whether a step of the radius is an edge or a neighbour of the target, whose own features stay as they are."""
        return False

    def counted_changes(self) -> tuple[str, ...]:
        """Returns which changes of a graph one step of the radius counts (graph task).

        Each is "edges", "features", "injected", "structure", "kept" or "any". The default is that nothing is known.
        """
        return ()

    def counted_things(self) -> Literal["edges", "nodes"] | None:
        """Returns what one step of the radius changes the number of in a graph by one, or None."""
        return None

    @property
    @abstractmethod
    def num_targets(self) -> int:
        """Number of targets ``n``."""

    @property
    @abstractmethod
    def counts(self) -> IntArray:
        """Votes, scores or samples per target and class, shape ``[n, C]``."""

    @property
    def num_classes(self) -> int:
        """Number of classes ``C``. A kind for which counting takes long overrides this."""
        return int(self.counts.shape[1])

    def count_columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the counts as columns of a table, one of shape ``[n]`` for each class, by name.

        The columns are called ``votes_0``, ``votes_1`` and so on. A kind that counts something else overrides this.
        """
        return {f"votes_{k}": votes for k, votes in enumerate(self.counts.T)}

    def check_claim(self, claim: Claim) -> None:
        """Checks that a claim does not contradict the evidence. By default, there is nothing to compare.

        Raises:
            CertificateError: The claim says something else than the evidence.
        """
        return

    @abstractmethod
    def label_and_radius(self) -> tuple[IntArray, IntArray]:
        """Returns the label of each target and its certified radius, each of shape ``[n]``.

        A radius of -1 means that nothing is certified, not even the label of the unattacked graph.
        """

    def structure_radius(self) -> IntArray | None:
        """Returns the certified radius against added and deleted edges and nodes alone, shape ``[n]``.

        The default None means that it is the radius.
        """
        return None

    def no_edge_labels(self) -> IntArray | None:
        """Returns the label of each target if all its edges are taken away, shape ``[n]``.

        The default None means that the evidence does not tell.
        """
        return None

    def no_edge_scores(self) -> IntArray | None:
        """Returns the score of each class for each target if all its edges are taken away, shape ``[n, C]``.

        The default None means that the evidence knows labels only, or nothing about this.
        """
        return None

    def bounded_addition(self) -> Literal["add_edges", "inject_nodes"] | None:
        """Returns which additions are certified up to a number while all that goes with them is unlimited.

        With "add_edges" these are new neighbours, while everything else changes without limit. With "inject_nodes"
        these are new nodes with any number of edges. The default None means neither.
        """
        return None

    def single_votes(self) -> VoteRecord | None:
        """Returns the votes one by one, if labels and radii follow from votes of subgraphs.

        A page counts them again under the budgets that its reader chooses. The default None means that there are none.
        """
        return None

    def page_rules(self) -> "PageRules | None":
        """Returns what a page needs to answer budgets of its reader by itself, where votes are not of subgraphs.

        The scripts of the page must know these rules. The default None means that the page shows a few budgets instead.
        """
        return None

    def words(self, subject: Subject) -> Words:
        """Returns what a report says about this evidence. By default, it is what is true of every kind.

        Args:
            subject: The claim, and how the report names classes and targets.
        """
        return plain_words(subject)

    def require_budget(self, budget: Budget) -> None:
        """Refuses attacks on training data that nothing is proved about, before any question about them is answered.

        Raises:
            BudgetError: Says which field is refused, and why.
        """
        budget.require_trusted_training(self.training_fields)

    def usual_budgets(self) -> tuple[Budget, ...] | None:
        """Returns the budgets about which a file makes statements when none are given; None for the common ones."""
        return None

    @abstractmethod
    def holds(self, budget: Budget) -> BoolArray:
        """Returns whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``.

        A budget that the defence proves nothing about gives False. The answer must be monotone: where a budget does
        not hold, no larger one does.
        """

    def covers(self, budget: Budget) -> bool:
        """Returns whether anything is proved about such attacks. If not, :meth:`holds` is False for every target.

        Tables show a dash instead of a share where nothing is proved. Defaults to True, so that they show the share.
        """
        return True

    @abstractmethod
    def possible(self, at: Budget | float) -> BoolArray:
        """Returns which classes an attack can make win, and perhaps some more, shape ``[n, C]``.

        Each target's own label is always one of them. It is the only one exactly where the label holds.

        Args:
            at: What the attacker may do, or a size in the unit of the radius. A size of -1 is no attack.
        """

    @abstractmethod
    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """Returns a price that every attack costs at least which changes the label of a target, shape ``[n]``.

        Args:
            prices: What each kind of change costs.
            label: Restricts the question to attacks that give targets this label. Targets that have it cost nothing.
        """

    @abstractmethod
    def broken_at_most(self, budget: Budget, among: BoolArray | None = None) -> int:
        """Returns how many targets one attacked graph can break at most.

        Args:
            budget: What the attacker may do, all of it in one graph.
            among: Restricts the count to these targets, shape ``[n]``. Defaults to all.
        """

    def answers(self, budgets: Sequence[Budget], rest: Budget) -> Answers:
        """Returns everything that a file states in addition to labels and radii.

        Args:
            budgets: The budgets that the file makes statements about.
            rest: What the attacker may do in addition to adding edges.
        """
        holds = np.zeros((len(budgets), self.num_targets), dtype=bool)
        for k, budget in enumerate(budgets):
            holds[k] = self.holds(budget)
        broken = tuple(self.broken_at_most(budget) for budget in budgets)
        return Answers(holds, broken, self.max_certified("add_edges", rest))

    @abstractmethod
    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns every array that :meth:`load` needs, by name. A file stores them as they are."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Returns everything else that :meth:`load` needs, as JSON values (numbers, strings, lists, dicts)."""

    @classmethod
    @abstractmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Loads evidence from :meth:`tensors` and :meth:`settings`, which come from a file and are not trusted.

        Raises:
            CertificateError: They are not what this kind of evidence consists of.
        """

    def holds_each(self, rest: Budget, field: str, amounts: FloatArray) -> BoolArray:
        """Returns the same as :meth:`holds`, for budgets whose ``field`` differs by target.

        This version asks :meth:`holds` once for each distinct amount. A kind for which that is slow overrides it.

        Args:
            rest: The budget without that field.
            field: Name of a field of the budget that counts something.
            amounts: Amount of that field for each target, shape ``[n]``.
        """
        answer = np.zeros(self.num_targets, dtype=bool)
        for amount in np.unique(amounts):
            here = amounts == amount
            answer[here] = self.holds(rest.but(**{field: float(amount)}))[here]
        return answer

    def max_certified(self, field: str, rest: Budget) -> FloatArray:
        """Returns the largest amount of ``field`` that each target is certified against on top of ``rest``, ``[n]``.

        The amount is ``math.inf`` where any amount is withstood, and -1 where not even ``rest`` alone is.
        """
        return largest_amount(lambda amounts: self.holds_each(rest, field, amounts), self.num_targets)


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
        facts = THEOREMS[self.theorem]
        return self.theorem == "gnncert-e/node" or (facts.by_neighbours and not facts.target_features)

    def counted_changes(self) -> tuple[str, ...]:
        """Returns which changes of a graph one step of the radius counts (graph task)."""
        if self.theorem == "custom/graph" and dict(self.parameters) == EDGES_ONLY:
            return ("edges",)
        by_theorem: dict[str, tuple[str, ...]] = {
            "edge-centric/graph": ("edges",),
            "per-pair/graph": ("edges",),
            "gnncert-e/graph": ("edges",),
            "gnncert-n/graph": ("features",),
            "node-centric/graph": ("any" if self.ids == "node_id" else "kept", "injected"),
            "per-neighbour/graph": ("any", "structure", "injected"),
        }
        return by_theorem.get(self.theorem, ())

    def counted_things(self) -> Literal["edges", "nodes"] | None:
        """Returns what one step of the radius changes the number of in a graph by one, or None."""
        if self.theorem in ("edge-centric/graph", "per-pair/graph"):
            return "edges"
        if self.theorem in ("node-centric/graph", "per-neighbour/graph"):
            return "nodes"
        return None

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
            theorem: Which theorem applies, a key of ``THEOREMS``.
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

    def label_and_radius(self) -> tuple[IntArray, IntArray]:
        """Returns the class with most votes, and how many votes may change before another class can win."""

        def decide(counts: Counts, facts: Facts) -> IntArray:
            return np.stack([counts.label, radius_of(self.theorem, counts, facts)], axis=1)

        label, radius = self._in_blocks(decide, np.int64, 2).T.copy()
        return label, radius

    def structure_radius(self) -> IntArray | None:
        """Returns how many edges and nodes may be added and deleted, shape ``[n]``.

        It is None where that is the radius, which is everywhere except where every neighbour has its own group.
        """
        if not self._per_neighbour:
            return None
        return self._in_blocks(structure_radius, np.int64)

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
        facts = THEOREMS[self.theorem]
        if facts.by_neighbours:
            return "add_edges"
        if facts.division.whole_graph and not facts.uses_reach:
            return "inject_nodes"
        return None

    def single_votes(self) -> VoteRecord:
        """Returns itself: all votes are listed."""
        return self

    def words(self, subject: Subject) -> Words:
        """Returns the words for the division and the voting rule."""
        return vote_words(self, subject)

    @property
    def _per_neighbour(self) -> bool:
        return THEOREMS[self.theorem].per_neighbour

    def holds(self, budget: Budget) -> BoolArray:
        """Returns whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``."""
        attack = Amounts.of(budget)
        return self._in_blocks(lambda counts, facts: self._withstands(counts, attack, facts), np.bool_)

    def covers(self, budget: Budget) -> bool:
        """Returns whether the theorem says something about such attacks, for one target at least."""
        attack = Amounts.of(budget)
        covered = self._in_blocks(lambda counts, facts: self._covered(attack, facts), np.bool_)
        return bool(covered.any()) or not self.num_targets

    def _withstands(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        if self._per_neighbour:
            return withstands_touches(counts, self._touches(attack, facts), facts)
        return withstands(counts, self._limits(attack, facts))

    def _touches(self, attack: Amounts, facts: Facts) -> Touches:
        """Returns the votes that an attack adds, removes and alters where every neighbour has its own group."""
        return PER_NEIGHBOUR[self.theorem](attack, facts)

    def _limits(self, attack: Amounts, facts: Facts) -> Limits:
        """Returns how many votes an attack moves in all other divisions."""
        return limits_of(self.theorem, attack, facts, stable_ids=self.ids == "node_id")

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
            return self._in_blocks(lambda counts, facts: self._possible(counts, attack, facts), np.bool_, num_classes)
        if self._per_neighbour:
            return self._in_blocks(lambda counts, facts: possible_by_number(counts, at, facts), np.bool_, num_classes)
        return self._in_blocks(lambda counts, facts: possible_by_number(counts, at), np.bool_, num_classes)

    def _possible(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        if self._per_neighbour:
            return possible_touches(counts, self._touches(attack, facts), facts)
        return possible_classes(counts, self._limits(attack, facts))

    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """Returns a price that every attack costs at least which changes the label of a target (Theorem 13).

        Args:
            prices: What each kind of change costs.
            label: Restricts the question to attacks that give targets this label. Targets that have it cost nothing.

        Returns:
            Prices of shape ``[n]``, ``math.inf`` where no attack with these prices changes the label.
        """
        price_of: Callable[[IntArray], FloatArray] | None = None
        if self.theorem.startswith(("gnncert", "custom")):
            price_of = price_of_number(self.theorem, prices, self.parameters, self.votes.num_groups)
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

        def price_of_rival(rival: Rival, counts: Counts, facts: Facts) -> FloatArray:
            if price_of is not None:
                return cheapest_of_number(rival, price_of)
            if self._per_neighbour:
                return cheapest_per_neighbour(rival, self.theorem, prices, counts, facts)
            ways = [cheapest_in_tiers(rival, offer, facts) for offer in offers(self.theorem, prices)]
            return np.asarray(np.min(ways, axis=0))

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
        return bool(self._covered(attack, facts).all())

    def _covered(self, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns about which targets of a block something is proved."""
        if self._per_neighbour:
            return self._touches(attack, facts).covered
        return self._limits(attack, facts).covered

    def max_certified(self, field: str, rest: Budget) -> FloatArray:
        """Returns the largest amount of ``field`` that each target is certified against on top of ``rest``, ``[n]``."""
        return self._in_blocks(lambda counts, facts: self._largest(counts, facts, field, rest), np.float64)

    def _largest(self, counts: Counts, facts: Facts, field: str, rest: Budget) -> FloatArray:
        deletes_all = rest.delete_edges == math.inf and not (rest.inject_nodes or rest.target_features)
        counts_neighbours = THEOREMS[self.theorem].by_neighbours and not self._per_neighbour
        if field == "add_edges" and deletes_all and counts_neighbours:
            # All reached votes can change anyway. An added edge matters only as a new neighbour.
            attack = Amounts.of(rest.but(add_edges=math.inf))
            return neighbours_needed(counts, self._limits(attack, facts)) - 1

        def holds(amounts: FloatArray) -> BoolArray:
            return self._withstands(counts, Amounts.of(rest, field, amounts), facts)

        return largest_amount(holds, len(counts.label))

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
            new_edges[part] = self._largest(counts, facts, "add_edges", rest)
            self._fill_in(costs, budgets, part, counts, facts)

        self._for_each_block(answer)
        broken = []
        for k, budget in enumerate(budgets):
            broken.append(self._broken(budget, ~costs.holds[k], costs.neighbours[k], costs.touches[k]))
        return Answers(costs.holds, tuple(broken), new_edges)

    def _fill_in(self, costs: _Costs, budgets: Sequence[Budget], part: slice, counts: Counts, facts: Facts) -> None:
        """Computes what it takes to break the targets of one block."""
        for k, budget in enumerate(budgets):
            costs.holds[k, part] = self._withstands(counts, Amounts.of(budget), facts)
            if self.task == "node":
                costs.neighbours[k, part] = self._neighbours_needed(counts, facts, budget)
            if self.targets_per_node is not None:
                costs.touches[k, part] = self._touches_needed(counts, facts, budget)

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

    def _neighbours_needed(self, counts: Counts, facts: Facts, budget: Budget) -> FloatArray:
        """Returns the fewest new neighbours with which each target breaks, infinite if the budget breaks it by none."""
        attack = Amounts.of(_sparing_targets(budget))
        if self._per_neighbour:
            return new_needed(counts, self._touches(attack, facts), facts)
        limits = self._limits(attack, facts)
        if THEOREMS[self.theorem].by_neighbours:
            return neighbours_needed(counts, limits)
        return np.where(withstands(counts, limits), np.inf, 0.0)  # no edge has to be shared: all may move at once

    def _touches_needed(self, counts: Counts, facts: Facts, budget: Budget) -> FloatArray:
        """Returns the fewest new, lost and altered neighbours with which each target breaks."""
        attack = Amounts.of(_sparing_targets(budget))
        return touches_needed(counts, self._touches(attack, facts), facts)

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
        step = max(1, ENTRIES_AT_ONCE // self.votes.num_classes)
        return [slice(k, min(k + step, self.num_targets)) for k in range(0, self.num_targets, step)]

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
            self._per_neighbour,
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
        )
        if not self._per_neighbour:
            return facts
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


def radius_of(theorem: str, counts: Counts, facts: Facts) -> IntArray:
    """Returns how many changes each target withstands under a theorem, shape ``[n]``; -1 if nothing is certified."""
    if THEOREMS[theorem].per_neighbour:
        return per_neighbour_radius(counts, facts)
    return certified_radius(counts)


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
