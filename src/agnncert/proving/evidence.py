"""Evidence: what a certificate is derived from, whatever the defence.

A certificate is evidence plus a claim in words. All its statements (labels, radii, budgets, collective bounds) are
derived from its evidence, and a file stores the evidence, so that a reader can derive them again. Whoever has a
certificate asks :class:`Evidence` and need not know its kind. Kinds are listed under ``agnncert.evidence`` in
:mod:`agnncert.addons`.

What a theorem says is one relation, :meth:`Evidence.stays_ahead`: of which classes does the label stay ahead under an
attack. All else follows from it here, once for all kinds. A kind that overrides what follows says why: it knows
something sharper, or the same faster.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.claim import Claim
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.certificates.voting_rule import VotingRule
from agnncert.errors import BudgetError
from agnncert.proving.blocks import Rows, cut_into_blocks
from agnncert.proving.prices import priced_budgets
from agnncert.proving.prices_by_budgets import cheapest_by_budgets
from agnncert.proving.theorems import largest_amount
from agnncert.proving.words import Subject, Words, plain_words

ENTRIES_AT_ONCE = 2**17  # numbers that are looked at together: they stay in the processor's cache
LARGEST_RADIUS = 9_999  # no larger one is stated, unless a kind says so; answers about budgets can be larger


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
        presets: Budgets to start from: their names, the fields that are set, and those without a limit.
    """

    name: str
    arrays: Mapping[str, npt.NDArray[Any]]
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

    # What a kind says.

    @property
    @abstractmethod
    def counts(self) -> IntArray:
        """Votes, scores or samples per target and class, shape ``[n, C]``."""

    @abstractmethod
    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Returns of which classes the label of each target stays ahead, whatever an attacker does, shape ``[b, C]``.

        This is the theorem of a kind. It is True of the label itself if anything is proved about the attack, and False
        of a class that some attack may bring ahead of the label. The answer must be monotone: where a larger attack
        gives True, each smaller one does.

        Args:
            rows: The ``b`` targets.
            attack: What the attacker may do, a budget that :meth:`require_budget` admits and :meth:`covers` knows. Or
                a size in the unit of the radius, from 0 on.
            leader: Asks about this class of every target instead of its label. All answers are False if nothing is
                proved about other classes than the label.
        """

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

    # What a kind says if it differs from the usual.

    def labels(self) -> IntArray:
        """Returns the label of each target, shape ``[n]``: the class with the largest count, the smaller on a tie."""
        return np.asarray(self.counts.argmax(axis=1))

    def covers(self, budget: Budget) -> bool:
        """Returns whether anything is proved about such attacks. If not, :meth:`holds` is False for every target.

        Tables show a dash instead of a share where nothing is proved. Defaults to True, so that they show the share.
        """
        return True

    def require_budget(self, budget: Budget) -> None:
        """Refuses attacks on training data that nothing is proved about, before any question about them is answered.

        Raises:
            BudgetError: Says which field is refused, and why.
        """
        budget.require_trusted_training(self.training_fields)

    @property
    def largest_radius(self) -> int:
        """The largest radius that is stated."""
        return LARGEST_RADIUS

    @property
    def largest_finite(self) -> float:
        """The largest finite amount that a search for the most of one kind of change finds, which says "at least"."""
        return math.inf

    @property
    def entries_per_target(self) -> int | IntArray:
        """How many numbers are looked at for a target: one for each class, unless a kind has more of them."""
        return self.num_classes

    entries_at_once: ClassVar[int] = ENTRIES_AT_ONCE

    def keeps_label(self, rows: Rows, attack: Budget | float, rival: int | None = None) -> BoolArray:
        """Returns whether each label stays ahead of a rival, or of all classes, ``[b]``; faster in some kinds."""
        ahead = self.stays_ahead(rows, attack)
        return np.asarray(ahead.all(axis=1) if rival is None else ahead[:, rival])

    def most_broken(self, budget: Budget, fails: BoolArray) -> int:
        """Returns how many targets one attacked graph can break at most: usually all that do not hold one by one.

        Args:
            budget: What the attacker may do, all of it in one graph.
            fails: Which of the targets that count do not hold one by one, shape ``[n]``.
        """
        return int(np.count_nonzero(fails))

    def prices_of_rivals(self, rows: Rows, prices: Prices, rivals: Sequence[int]) -> FloatArray:
        """Returns a price below which no attack brings each rival ahead of the label, shape ``[b, R]``.

        What is said of the label itself, and about changes that :meth:`covers` does not know, is overwritten. The
        default asks the relation about growing budgets, which gives a lower bound.

        Args:
            rows: The ``b`` targets.
            prices: What each kind of change costs.
            rivals: The ``R`` classes: a single one, or all of them.
        """
        shape = (len(self._numbers(rows)), len(rivals))

        def may_win(budget: Budget) -> BoolArray:
            if not self._proves_about(budget):
                return np.ones(shape, dtype=bool)
            rival = rivals[0] if len(rivals) == 1 else None  # of all, the label falls to the cheapest
            return np.repeat(~self.keeps_label(rows, budget, rival)[:, None], len(rivals), axis=1)

        return cheapest_by_budgets(may_win, prices, shape)

    @property
    def num_predictions(self) -> int:
        """How many forward passes the definition of the method takes. An engine may save most of them."""
        return 1

    @property
    def counts_neighbours(self) -> bool:
        """Whether a step of the radius is an edge or a neighbour of the target, whose own features stay as they are."""
        return False

    @property
    def only_target_matters(self) -> bool:
        """Whether edges between other nodes, and new nodes that are joined to others only, change no vote of a target.

        A change that is known (:meth:`Certificate.holds_against`) then counts for a target by what it does at it. Votes
        of its neighbours must not depend on their edges. False unless a kind proves it.
        """
        return False

    @property
    def judges_known_changes(self) -> bool:
        """Whether the evidence alone tells that a known change is one of those that its theorem speaks about."""
        return True

    def counted_changes(self) -> tuple[str, ...]:
        """Returns which changes of a graph one step of the radius counts (graph task).

        Each is "edges", "features", "injected", "structure", "kept" or "any". The default is that nothing is known.
        """
        return ()

    def counted_things(self) -> Literal["edges", "nodes"] | None:
        """Returns what one step of the radius changes the number of in a graph by one, or None."""
        return None

    @property
    def num_targets(self) -> int:
        """Number of targets ``n``. A kind for which counting takes long overrides this."""
        return len(self.counts)

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

    def structure_radius(self) -> IntArray | None:
        """Returns the certified radius against added and deleted edges and nodes alone, shape ``[n]``.

        The default None means that it is the radius.
        """
        return None

    def may_state(self, name: str, stated: IntArray, derived: IntArray) -> bool:
        """Returns whether a file may state these numbers. Usually they have to be the derived ones.

        Args:
            name: ``"label"``, ``"radius"`` or ``"structure_radius"``.
            stated: What the file states of each target, shape ``[n]``.
            derived: What follows from this evidence, shape ``[n]``.
        """
        return np.array_equal(stated, derived)

    @property
    def reads_graph(self) -> bool:
        """Whether edges have a say in any label. Where they have none, a model without edges is certified."""
        return True

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

    def usual_budgets(self) -> tuple[Budget, ...] | None:
        """Returns the budgets about which a file makes statements when none are given; None for the common ones."""
        return None

    # What follows for all kinds.

    def label_and_radius(self) -> tuple[IntArray, IntArray]:
        """Returns the label of each target and its certified radius, each of shape ``[n]``.

        A radius of -1 means that nothing is certified, not even the label of the unattacked graph.
        """
        return self._labels, self.radius()

    def radius(self) -> IntArray:
        """Returns the largest size of an attack under which each label stays ahead of all classes, shape ``[n]``."""

        def largest(rows: Rows) -> FloatArray:
            def holds(sizes: FloatArray) -> BoolArray:
                within = np.minimum(sizes, self.largest_radius)
                return _for_each_amount(within, lambda size: self.keeps_label(rows, size))

            return largest_amount(holds, len(self._numbers(rows)))

        radius: FloatArray = self.in_blocks(largest, np.float64)
        return np.asarray(np.minimum(radius, self.largest_radius), dtype=np.int64)

    def holds(self, budget: Budget) -> BoolArray:
        """Returns whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``.

        A budget that the defence proves nothing about gives False. The answer is monotone: where a budget does not
        hold, no larger one does.
        """
        return np.asarray(self.hold_under([budget])[0])

    def hold_under(self, budgets: Sequence[Budget]) -> BoolArray:
        """Returns the same as :meth:`holds` for several budgets, shape ``[b, n]``. Each block is looked at once."""
        for budget in budgets:
            self.require_budget(budget)
        covered = [k for k, budget in enumerate(budgets) if self.covers(budget)]
        holds = np.zeros((len(budgets), self.num_targets), dtype=bool)
        for rows in self.blocks:
            for k in covered:
                holds[k, rows] = self.keeps_label(rows, budgets[k])
        return holds

    def possible(self, at: Budget | float) -> BoolArray:
        """Returns which classes an attack can make win, and perhaps some more, shape ``[n, C]``.

        Each target's own label is always one of them. It is the only one exactly where the label holds.

        Args:
            at: What the attacker may do, or a size in the unit of the radius. A size of -1 is no attack.
        """
        if isinstance(at, Budget):
            self.require_budget(at)
            if not self.covers(at):
                return np.ones((self.num_targets, self.num_classes), dtype=bool)
        elif at < 0:
            return self._is_label(slice(None))
        return self.in_blocks(lambda rows: self._who_may_win(rows, at), np.bool_, self.num_classes)

    def _who_may_win(self, rows: Rows, at: Budget | float) -> BoolArray:
        """Returns which classes may win: those that nobody stays ahead of who may get ahead of the label himself."""
        is_label = self._is_label(rows)
        may_pass = ~self.stays_ahead(rows, at) | is_label
        may_win = may_pass.copy()
        has_several = may_pass.sum(axis=1) > 2
        for k in range(self.num_classes):
            led = np.flatnonzero(has_several & may_pass[:, k] & ~is_label[:, k])
            if len(led):
                behind = self.stays_ahead(self._numbers(rows)[led], at, leader=k)
                behind[:, k] = False
                may_win[led] &= ~behind | is_label[led]
        return may_win

    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """Returns a price that every attack costs at least which changes the label of a target, shape ``[n]``.

        Args:
            prices: What each kind of change costs.
            label: Restricts the question to attacks that give targets this label. Targets that have it cost nothing.
        """
        rivals = range(self.num_classes) if label is None else (label,)
        price_of_own_label = np.inf if label is None else 0.0
        uncovered = self._least_uncovered_price(prices)

        def cheapest_in_block(rows: Rows) -> FloatArray:
            cost = np.minimum(self.prices_of_rivals(rows, prices, rivals), uncovered)
            cost[self._is_label(rows)[:, list(rivals)]] = price_of_own_label
            return np.asarray(cost.min(axis=1))

        return self.in_blocks(cheapest_in_block, np.float64)

    def _least_uncovered_price(self, prices: Prices) -> float:
        """Returns the least price of a change that nothing is proved about, ``math.inf`` if there is none."""
        priced = [(budget, price) for budget, price in priced_budgets(prices) if price < math.inf]
        return min((price for budget, price in priced if not self.covers(budget)), default=math.inf)

    def broken_at_most(self, budget: Budget, among: BoolArray | None = None) -> int:
        """Returns how many targets one attacked graph can break at most.

        Args:
            budget: What the attacker may do, all of it in one graph.
            among: Restricts the count to these targets, shape ``[n]``. Defaults to all.
        """
        fails = ~self.holds(budget)
        return self.most_broken(budget, fails if among is None else fails & among)

    def answers(self, budgets: Sequence[Budget], rest: Budget) -> Answers:
        """Returns everything that a file states in addition to labels and radii.

        Args:
            budgets: The budgets that the file makes statements about.
            rest: What the attacker may do in addition to adding edges.
        """
        holds = self.hold_under(budgets)
        broken = [self.most_broken(budget, ~held) for budget, held in zip(budgets, holds, strict=True)]
        return Answers(holds, tuple(broken), self.max_certified("add_edges", rest))

    def max_certified(self, field: str, rest: Budget) -> FloatArray:
        """Returns the largest amount of ``field`` that each target is certified against on top of ``rest``, ``[n]``.

        The amount is ``math.inf`` where any amount is withstood, and -1 where not even ``rest`` alone is.
        """

        def largest(rows: Rows) -> FloatArray:
            return largest_amount(lambda amounts: self.hold_each(rows, rest, field, amounts), len(self._numbers(rows)))

        return self.in_blocks(largest, np.float64)

    def hold_each(self, rows: Rows, rest: Budget, field: str, amounts: FloatArray) -> BoolArray:
        """Returns which labels hold against budgets whose ``field`` differs by target, shape ``[b]``.

        Args:
            rows: The ``b`` targets.
            rest: The budget without that field.
            field: Name of a field of the budget that counts something.
            amounts: Amount of that field for each target, shape ``[b]``.
        """

        def holds(amount: float) -> BoolArray:
            budget = rest.but(**{field: amount})
            self.require_budget(budget)
            if not self.covers(budget):
                return np.zeros(len(amounts), dtype=bool)
            return self.keeps_label(rows, budget)

        return _for_each_amount(amounts, holds)

    # Blocks of targets.

    @cached_property
    def blocks(self) -> list[slice]:
        """Consecutive targets that are looked at together."""
        return cut_into_blocks(self.entries_per_target, self.num_targets, self.entries_at_once)

    def in_blocks(
        self, answer: Callable[[slice], npt.NDArray[Any]], dtype: npt.DTypeLike, *columns: int
    ) -> npt.NDArray[Any]:
        """Computes an answer for each target, shape ``[n]``, or several, shape ``[n, *columns]``, block by block."""
        answers = np.zeros((self.num_targets, *columns), dtype=dtype)
        for rows in self.blocks:
            answers[rows] = answer(rows)
        return answers

    def leaders(self, rows: Rows, leader: int | None) -> IntArray:
        """Returns the class of each target that :meth:`stays_ahead` is asked about, shape ``[b]``."""
        labels = self._labels[rows]
        return labels if leader is None else np.full_like(labels, leader)

    def _numbers(self, rows: Rows) -> IntArray:
        """Returns the numbers of some targets, shape ``[b]``."""
        return np.arange(self.num_targets)[rows]

    @cached_property
    def _labels(self) -> IntArray:
        return self.labels()

    def _is_label(self, rows: Rows) -> BoolArray:
        """Marks each target's label among the classes, shape ``[b, C]``."""
        return np.asarray(np.arange(self.num_classes) == self._labels[rows, None])

    def _proves_about(self, budget: Budget) -> bool:
        """Returns whether the relation says anything about a budget."""
        try:
            self.require_budget(budget)
        except BudgetError:
            return False
        return self.covers(budget)


def _for_each_amount(amounts: FloatArray, holds: Callable[[float], BoolArray]) -> BoolArray:
    """Asks about targets whose amounts differ: once for each distinct amount, shape ``[b]``."""
    answer = np.zeros(len(amounts), dtype=bool)
    for amount in np.unique(amounts):
        here = amounts == amount
        answer[here] = holds(float(amount))[here]
    return answer
