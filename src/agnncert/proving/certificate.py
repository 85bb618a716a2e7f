"""Certificate: what is proved about each target, the evidence for it, and the claim in words.

Beside it are :class:`Decision`, about one target, and :func:`load_certificate`, which reads a file.
"""

import math
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np
import numpy.typing as npt

from agnncert.addons import ADD_ON_KINDS, addons
from agnncert.certificates.budget import COUNTS, TRAINING, Budget, KnownChange, Prices
from agnncert.certificates.claim import EDGES_GIVEN, FEATURES_FIXED, Claim
from agnncert.certificates.class_names import checked_class_names, class_word
from agnncert.certificates.file import KNOWN, PER_TARGET, Contents, read_contents, write_contents
from agnncert.certificates.ids import id_array
from agnncert.certificates.theorem_facts import division_words
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.certificates.voting_rule import LARGEST_CLASS, VotingRule
from agnncert.errors import (
    AgnncertError,
    BudgetError,
    CertificateError,
    IdError,
    SettingsError,
    did_you_mean,
    missing,
    suggests_arguments,
)
from agnncert.proving.evidence import Evidence
from agnncert.proving.groups import Amounts, Groups, amounts_found, by_group, degree_groups
from agnncert.proving.measures import Measures, measured, own_or_any
from agnncert.proving.plot import plot_certificate
from agnncert.proving.printed import decision_in_html, in_html, in_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# What `withstands` asks about: each kind of change, and the fields of the budget that go with it.
KINDS: dict[str, dict[str, float]] = {
    "add_edges": {},
    "delete_edges": {},
    "inject_nodes": {"edges_per_injected": math.inf},
    "delete_nodes": {},
    "change_features": {},
}


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _takes_budget(method: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Makes a method that takes a budget say so when it is given the fields of one, as in ``method(add_edges=3)``."""
    field_names = {each.name for each in fields(Budget)}

    @wraps(method)
    def checked(*args: Arguments.args, **named: Arguments.kwargs) -> Answer:
        loose = [f"{name}={value!r:.40}" for name, value in named.items() if name in field_names]
        if loose:
            raise BudgetError(f"{method.__name__} takes a budget: write {method.__name__}(Budget({', '.join(loose)})).")
        return method(*args, **named)

    return checked


@dataclass(frozen=True)
class Decision:
    """What is proved about one target.

    Attributes:
        target: Its id.
        row: Its row in the data.
        label: The proved label.
        radius: The largest attack, in steps of the claim's unit, that cannot change it. It is -1 if nothing is proved.
        votes: Votes for each class, shape ``[num_classes]``. With stacked votes these are scores, in steps of 1/65,536
            vote.
        truth: Its true class, None if unknown.
        degree: Number of its neighbours, or of its edges if it is a graph. None if unknown.
    """

    target: int | str
    row: int
    label: int
    radius: int
    votes: IntArray
    truth: int | None
    degree: int | None
    _certificate: "Certificate"
    _position: int

    @_takes_budget
    def holds_against(self, budget: Budget | Prices | KnownChange) -> bool:
        """Returns whether it keeps its label whatever an attacker with ``budget`` does, or under a known change."""
        return bool(self._certificate.holds_against(budget)[self._position])

    def max_certified(self, kind: str, **other_fields: Any) -> float:
        """Returns the largest certified amount of one kind of change, as :meth:`Certificate.max_certified` does."""
        return float(self._certificate.max_certified(kind, **other_fields)[self._position])

    @property
    def has_name(self) -> bool:
        """Whether the certificate has names for its classes."""
        return bool(self._certificate.class_names)

    @property
    def class_name(self) -> str:
        """The name of the label, or "class" and its number if the certificate has no names."""
        return self._certificate.class_word(self.label)

    @property
    def withstands(self) -> dict[str, float]:
        """The largest certified amount of each kind of change alone. Injected nodes may have any number of edges.

        An amount is ``math.inf`` if any amount is withstood, and -1 where nothing is proved.
        """
        return {kind: self.max_certified(kind, **rest) for kind, rest in KINDS.items()}

    def __repr__(self) -> str:
        truth = "" if self.truth is None else f", truth={self.truth}"
        votes = self.votes.tolist()
        name = f" ({self.class_name})" if self.has_name else ""
        return f"Decision({self.target!r}, label={self.label}{name}, radius={self.radius}, votes={votes}{truth})"

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        return decision_in_html(self, self._certificate.evidence.largest_finite)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proved labels: one row per target, and answers about any budget.

    ``certificate["user-7"]`` is the decision about one target, by its id. ``len`` counts the targets, and iterating
    over a certificate gives their ids.

    Attributes:
        claim: What is proved, in which unit, under which assumptions.
        evidence: What everything below is derived from.
        target: Ids of the targets, not row numbers, shape ``[n]``: an array of int64 if that holds all of them, else of
            Python's integers and strings. The decimal text of an integer is that integer.
        row: Row of each target in the data it was made from, shape ``[n]``. Defaults to the position.
        truth: True class of each target, negative where it is unknown, shape ``[n]``. None if none was given.
        degree: Neighbours of each target node, or edges of each target graph, if known, shape ``[n]``.
        issued: Who issued it (``by``), when (``on``), for which ``system`` and ``until`` when, as far as it is stated.
        class_names: What each class is called, by its number. It is empty if classes have numbers only.
        label: The proved label, shape ``[n]``.
        radius: The largest attack, in steps of ``claim.unit``, that cannot change it, shape ``[n]``. It is -1 if
            nothing is proved.
    """

    claim: Claim
    evidence: Evidence
    target: npt.NDArray[Any]
    row: IntArray = None  # type: ignore[assignment]
    truth: IntArray | None = None
    degree: IntArray | None = None
    issued: Mapping[str, str] = field(default_factory=dict)
    class_names: tuple[str, ...] = ()
    label: IntArray = field(init=False, repr=False)
    radius: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        label, radius = self.evidence.label_and_radius()
        row = np.arange(len(label)) if self.row is None else np.asarray(self.row, dtype=np.int64)
        self._set("label", label)
        self._set("radius", radius)
        self._set("target", as_ids(self.target))
        self._set("row", row)
        for name in ("truth", "degree"):
            value = getattr(self, name)
            if value is not None:
                self._set(name, np.asarray(value, dtype=np.int64))
        self._check_shapes()
        self._check_classes()
        if FEATURES_FIXED not in self.claim.assumes or EDGES_GIVEN not in self.claim.assumes:
            raise CertificateError(
                "the claim does not say that no node's features are computed from the edges, and no edges from others, "
                "which every proof about a graph rests on: begin its assumptions with *PREMISES of "
                "agnncert.certificates.claim."
            )
        self.evidence.check_claim(self.claim)
        _check_once("target", self.target)
        _check_once("row", self.row)

    def _set(self, name: str, value: object) -> None:
        """Sets an attribute of a frozen dataclass, which only construction and caches do."""
        object.__setattr__(self, name, value)

    def _check_shapes(self) -> None:
        for name in ("target", "row", "truth", "degree"):
            value = getattr(self, name)
            if value is not None and value.shape != (self.num_targets,):
                raise CertificateError(
                    f'"{name}" has shape {value.shape}: expected one entry for each target, ({self.num_targets},).'
                )

    def _check_classes(self) -> None:
        names = checked_class_names(tuple(self.class_names))
        if names and len(names) != self.num_classes:
            raise CertificateError(f"{len(names)} classes have names: there are {self.num_classes} classes.")
        self._set("class_names", names)

    def with_class_names(self, names: Sequence[str]) -> "Certificate":
        """Returns the same certificate with names for its classes, in the order of their numbers.

        Raises:
            CertificateError: Two classes have the same name, there are not as many names as classes, or a name is
                empty, too long or no line of text.
        """
        named = copy(self)
        named._set("class_names", tuple(names))
        named._check_classes()
        return named

    def class_word(self, k: int) -> str:
        """Returns the name of a class, or "class" and its number if it has none."""
        return class_word(self.class_names, k)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.evidence.num_classes

    @cached_property
    def num_targets(self) -> int:
        """Number of targets."""
        return self.evidence.num_targets

    @cached_property
    def counts(self) -> IntArray:
        """Votes per target and class, those of a prior included, shape ``[n, num_classes]``.

        With stacked votes these are scores, in steps of 1/65,536 vote, and with random samples the samples of each
        class. They are counted when first asked for.
        """
        return self.evidence.counts

    @property
    def labelled(self) -> BoolArray:
        """Which targets have a true class, shape ``[n]``. Accuracies are shares of these."""
        if self.truth is None:
            return np.zeros(self.num_targets, dtype=bool)
        return self.truth >= 0

    @cached_property
    def structure_radius(self) -> IntArray:
        """The radius against added and deleted edges and nodes alone, shape ``[n]``. No features or values change.

        It is the same as ``radius`` unless every neighbour votes by itself. Then a neighbour that comes or goes costs
        half of what one that is altered may cost.
        """
        radius = self.evidence.structure_radius()
        return self.radius if radius is None else radius

    @property
    def voting_rule(self) -> VotingRule | None:
        """How empty subgraphs vote, and the prior. None if the defence has no subgraphs that vote."""
        return self.evidence.voting_rule

    @overload
    def certified_accuracy(self, truth: npt.ArrayLike | None = None, sizes: float = 0) -> float: ...
    @overload
    def certified_accuracy(
        self, truth: npt.ArrayLike | None, sizes: Sequence[float] | npt.NDArray[Any]
    ) -> FloatArray: ...
    @overload
    def certified_accuracy(self, *, sizes: Sequence[float] | npt.NDArray[Any]) -> FloatArray: ...
    def certified_accuracy(
        self, truth: npt.ArrayLike | None = None, sizes: float | Sequence[float] | npt.NDArray[Any] = 0
    ) -> float | FloatArray:
        """Returns the share of targets whose label is correct and proved against attacks of each size.

        Targets without a true class do not count, neither as correct nor as wrong.

        Args:
            truth: True classes of all rows of the data (such as ``data.y``), or one for each target: a tensor, an array
                or a list. A negative class is unknown. Defaults to the classes stored with the certificate.
            sizes: One size or several, in steps of ``claim.unit``. Defaults to 0.

        Returns:
            A number for one size, an array for several.

        Raises:
            SettingsError: No true class is known, there are not as many as rows or targets, or a size is negative.
        """
        if not self.num_targets:
            raise SettingsError("the certificate has no targets, so no share of them is correct.")
        classes = self._truth_of_targets(truth)
        correct = self.label == classes
        num_labelled = int((classes >= 0).sum())
        if not num_labelled:
            raise SettingsError(f"none of the {self.num_targets} targets has a true class: nothing can be correct.")
        asked = np.asarray(sizes, dtype=np.float64)
        if not (asked >= 0).all():  # which NaN is not
            raise SettingsError(f"sizes={sizes!r:.60}: a perturbation size is a number from 0 on.")
        certified = self.radius[:, None] >= asked.reshape(-1)
        share = (correct[:, None] & certified).sum(axis=0) / num_labelled
        if asked.ndim == 0:
            return float(share[0])
        return np.asarray(share.reshape(asked.shape))

    def measures(self, at: float | Budget = 0, truth: npt.ArrayLike | None = None, together: bool = False) -> Measures:
        """Computes certified recall, precision and false positive rate of each class, and balanced accuracy.

        Recall, precision and accuracy are lower bounds, false positive rates upper bounds: no attack goes beyond them.
        They follow from :meth:`possible`. They are exact if that is exact and every target is attacked by itself.

        Args:
            at: A size, in steps of ``claim.unit``, or a budget. Defaults to size 0.
            truth: True classes, as for :meth:`certified_accuracy`. Targets without a true class do not count.
            together: Whether all targets are in *one* attacked graph, so that the budget is spent once and not for each
                target, as for :meth:`broken_at_most`. This needs a budget. Defaults to False.

        Raises:
            SettingsError: No true class is known, or ``together`` comes without a budget.
        """
        classes = np.nan_to_num(self._truth_of_targets(truth), nan=-1)
        num_classes = max(self.counts.shape[1], int(classes.max(initial=0)) + 1)
        possible = np.pad(self.possible(at), ((0, 0), (0, num_classes - self.counts.shape[1])))
        if not together:
            return measured(possible, classes)
        if not isinstance(at, Budget):
            raise SettingsError(f"together=True counts one attacked graph: pass a Budget, not {at!r:.60}.")
        return self._measures_of_one_graph(at, classes, possible)

    def by_group(
        self,
        groups: Sequence[Any] | str,
        at: float | Budget = 0,
        positive: int | str | None = None,
        truth: npt.ArrayLike | None = None,
    ) -> Groups:
        """Computes recall and false positives of one class, group by group, and the gaps an attack can open.

        Args:
            groups: The group of each target, in the order of the targets: a column of your table, or ranges of numbers
                (``ac.ranges``). ``"degree"`` for ranges of the number of neighbours. None leaves a target out.
            at: A size, for which each target is attacked by itself, or a budget, which one attacked graph spends on a
                group. Defaults to size 0.
            positive: The class, by number or by name. Defaults to that of the threshold, or the rarest.
            truth: True classes, as for :meth:`certified_accuracy`.

        Raises:
            SettingsError: No true class or degree is known, or groups make no sense.

        Example: ``print(certificate.by_group("degree", at=ac.Budget(add_edges=3)))``
        """
        classes = np.nan_to_num(self._truth_of_targets(truth), nan=-1).astype(np.int64)
        if isinstance(groups, str):
            if groups != "degree" or self.degree is None:
                raise SettingsError(f'groups={groups!r:.60}: expected a list, or "degree" if the file has degrees.')
            groups = degree_groups(self.degree)
        return by_group(self, groups, self._sought(positive, classes), at, classes)

    def amounts(
        self,
        amounts: Sequence[float],
        at: float | Budget = 0,
        positive: int | str | None = None,
        truth: npt.ArrayLike | None = None,
    ) -> Amounts:
        """Computes how much money is behind the targets of a class that are found, and certified to stay found.

        Args:
            amounts: The amount of each target, in the order of the targets, such as the sum of what an account paid.
            at: A size or a budget, which each target is attacked with by itself. Defaults to size 0.
            positive: The class, as for :meth:`by_group`.
            truth: True classes, as for :meth:`certified_accuracy`.

        Raises:
            SettingsError: No true class is known, or amounts make no sense.
        """
        classes = np.nan_to_num(self._truth_of_targets(truth), nan=-1).astype(np.int64)
        return amounts_found(self, amounts, self._sought(positive, classes), at, classes)

    def _sought(self, positive: int | str | None, classes: IntArray) -> int:
        """Returns the class to be found: the given one, that of the threshold, or the rarest."""
        if positive is not None:
            return self._class(positive)
        if self.claim.threshold is not None:
            return self.claim.threshold.positive
        count = np.bincount(classes[classes >= 0], minlength=self.num_classes)
        return int(np.where(count > 0, count, count.sum() + 1).argmin())

    def _measures_of_one_graph(self, budget: Budget, classes: IntArray, possible: BoolArray) -> Measures:
        """Computes the measures if all targets are in one attacked graph.

        Args:
            budget: What the attacker may do, all of it in one graph.
            classes: True class of each target, negative where it is unknown, shape ``[n]``.
            possible: Which labels some attack may give each target by itself, shape ``[n, C]``.
        """
        num_classes = possible.shape[1]
        everyone = np.ones(self.num_targets, dtype=bool)
        clean = measured(own_or_any(self.label, everyone, num_classes), classes)
        correct = self.label == classes
        lost = np.zeros(num_classes, dtype=np.int64)
        turned = np.zeros(num_classes, dtype=np.int64)
        for k in range(num_classes):
            lost[k] = self.broken_at_most(budget, correct & (classes == k))
            may_become_k = possible[:, k] & (self.label != k)
            turned[k] = self.broken_at_most(budget, may_become_k & (classes >= 0) & (classes != k))
        return Measures(
            support=clean.support,
            true_positives=clean.true_positives - lost,
            false_positives=clean.false_positives + turned,
            correct=clean.correct - self.broken_at_most(budget, correct),
        )

    def _truth_of_targets(self, truth: npt.ArrayLike | None) -> IntArray:
        if truth is None:
            if self.truth is None:
                raise SettingsError("this certificate holds no true classes: pass them, for example data.y.")
            return self.truth
        classes = _true_classes(truth)
        if len(classes) > self.row.max(initial=-1):
            return np.asarray(classes[self.row])
        if len(classes) == self.num_targets:
            return classes
        raise SettingsError(
            f"{len(classes)} true classes were given for {self.num_targets} targets in rows up to "
            f"{self.row.max(initial=-1)}: pass one for each target, or one for each row of the data."
        )

    @_takes_budget
    def holds_against(self, budget: Budget | Prices | KnownChange) -> BoolArray:
        """Returns whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``.

        A field of the budget that nothing is proved about makes the answer False, never an optimistic guess. Prices
        with a total are a budget, too, which holds every attack that costs no more.

        A budget is spent on one target. A change that is known, as ``Perturbation.between(clean, attacked)`` finds it,
        is counted for each target by what can matter to it: where neighbours vote for themselves, what is changed at
        the target, and elsewhere all of it. How many labels one budget for the whole graph can change is what
        :meth:`broken_at_most` says.

        Args:
            budget: What the attacker may do to each target, or has done to the graph.

        Example: ``cert.holds_against(Budget(add_edges=3, delete_edges=math.inf))``, or ``Prices.in_all(3)`` for three
        changes of edges in all.

        Raises:
            BudgetError: The budget is about training data, and the defence trusts its training data.
        """
        if isinstance(budget, Prices):
            return self.cheapest(budget) > _total(budget)
        if isinstance(budget, KnownChange):
            return self._holds_against_known(budget)
        self._require_budget(budget)
        return self.evidence.holds(budget)

    def _holds_against_known(self, change: KnownChange) -> BoolArray:
        """Returns whether each target keeps its label under a known change, shape ``[n]``.

        Raises:
            BudgetError: The defence trusts some edges, and it is not known whether they are among those changed.
        """
        if not self.evidence.judges_known_changes:
            raise BudgetError(
                "this defence trusts some edges, and the certificate does not know which, so it cannot tell whether "
                "this change leaves them as they are. Ask about its cost: holds_against(change.cost())."
            )
        if self.claim.task != "node":
            return self._holds_in_other_task(change)
        costs = change.costs_at(self.target.tolist(), anywhere=not self.evidence.only_target_matters)
        holds = np.zeros(self.num_targets, dtype=bool)
        for cost in dict.fromkeys(costs):
            if cost is not None:
                here = np.array([other == cost for other in costs], dtype=bool)
                holds |= here & self.holds_against(cost)
        return holds

    def _holds_in_other_task(self, change: KnownChange) -> BoolArray:
        """Returns the same for graphs, each of which may be the changed one, and for pairs of nodes."""
        cost = change.cost()
        if self.claim.task == "pair" and cost.change_features:
            cost = cost.but(target_features=True)  # they may be those of the two nodes
        return self.holds_against(cost)

    def cheapest(self, prices: Prices, label: int | str | None = None) -> FloatArray:
        """Returns what flipping each target costs at least, shape ``[n]``. No attack that changes its label costs less.

        The price is ``math.inf`` where no attack with these prices changes the label, and 0 where the label itself is
        not certain. A change that nothing is proved about changes every label at its price. What is free is done in any
        number.

        The price is exact in the votes of a division, with few exceptions. For random samples and for some stacked
        votes it is a lower bound (``docs/proofs.md``, Theorem 13).

        Args:
            prices: What each kind of change costs.
            label: Restricts the question to attacks that give targets this label ("fraud to genuine"), by its number or
                its name. Targets that have it cost nothing. With more than two classes the price is a bound: what it
                costs to beat the present label. Defaults to attacks that give any other label.

        Example: ``cert.cheapest(Prices(add_edges=1, inject_nodes=20))``.
        """
        if not isinstance(prices, Prices):
            raise BudgetError(f"expected Prices, got {type(prices).__name__}: write Prices(add_edges=…).")
        if label is not None:
            label = self._class(label)
        self.evidence.require_budget(prices.cheapest_poisoning())
        return self.evidence.cheapest(prices, label)

    @_takes_budget
    def possible(self, at: Budget | Prices | float) -> BoolArray:
        """Returns which labels an attack within a budget could give each target, shape ``[n, num_classes]``.

        No attack makes any other class win. A target's own label is always possible. It is the only one exactly where
        :meth:`holds_against` is True. A field of the budget that nothing is proved about makes all classes possible.
        Row sums are the sizes of certified prediction sets.

        For votes the answer is exact in the votes: some change of votes within the limits of the division makes
        each possible class win. For stacked votes and random samples it is a bound: a class may be named that no
        attack reaches (``docs/proofs.md``, Theorem 12).

        Args:
            at: What the attacker may do, or a size in steps of ``claim.unit``.

        Example: ``cert.possible(Budget(add_edges=3)).sum(axis=1).mean()`` is the mean size of a prediction set.
        """
        if isinstance(at, Prices):
            classes = range(self.counts.shape[1])
            return np.stack([self.cheapest(at, k) <= _total(at) for k in classes], axis=1)
        if isinstance(at, bool) or not isinstance(at, (int, float, np.integer, np.floating)):
            self._require_budget(at)
        return self.evidence.possible(at)

    def excluded(self, label: int | str, at: Budget | Prices | float) -> BoolArray:
        """Returns whether no attack within a budget gives a target this label, shape ``[n]``.

        An example is "fraud cannot become genuine". This is the opposite of a column of :meth:`possible`. It is False
        for targets that have this label without an attack.

        Args:
            label: The class, by its number or its name.
            at: What the attacker may do, or a size in steps of ``claim.unit``.

        Raises:
            SettingsError: There is no such class.
        """
        return ~self.possible(at)[:, self._class(label)]

    def _require_budget(self, budget: object) -> None:
        """Refuses what is no budget, and attacks on training data that the evidence proves nothing about."""
        if not isinstance(budget, Budget):
            raise BudgetError(f"expected a Budget, got {type(budget).__name__}: write Budget(add_edges=…).")
        self.evidence.require_budget(budget)

    def _class(self, label: object) -> int:
        """Returns a class as a number that the certificate has. It may be given by its name."""
        if isinstance(label, str):
            if label in self.class_names:
                return self.class_names.index(label)
            known = ", ".join(self.class_names) or f"0 to {self.num_classes - 1}, without names"
            raise SettingsError(f"label={label!r:.60}: the classes are {known}.")
        if isinstance(label, bool) or not isinstance(label, (int, np.integer)) or not 0 <= label < self.num_classes:
            raise SettingsError(f"label={label!r:.60}: the classes are 0 to {self.num_classes - 1}.")
        return int(label)

    def max_certified(self, kind: str, **other_fields: Any) -> FloatArray:
        """Returns the most of one kind of change that each target is certified against, shape ``[n]``.

        Args:
            kind: A field of :class:`Budget` that counts something, such as ``"inject_nodes"``.
            **other_fields: The rest of the budget, such as ``edges_per_injected=math.inf``.

        Returns:
            Whole numbers, ``math.inf`` where any amount is withstood, and -1 where not even the rest of the budget is.
            With stacked votes no finite number of new neighbours is larger than 65,536, which says "at least 65,536".
        """
        counted = (*COUNTS, *TRAINING)
        if kind not in counted:
            raise BudgetError(f'cannot search the largest "{kind}": {did_you_mean(str(kind), counted)}')
        if kind in other_fields:
            raise BudgetError(f'"{kind}" is what is searched for, so it cannot be given as well.')
        rest = Budget().but(**other_fields)
        self._require_budget(rest.but(**{kind: 1}))
        return self.evidence.max_certified(kind, rest)

    @_takes_budget
    def broken_at_most(self, budget: Budget, targets: npt.ArrayLike | None = None) -> int:
        """Returns how many targets *one* attacked graph can break at most.

        Args:
            budget: What the attacker may do, all of it in one graph. With ``target_features=False`` no target is
                deleted or given other features.
            targets: Restricts the count to these: a mask, or positions among the targets. Defaults to all. To count the
                correct labels that are lost, pass ``cert.label == truth``.
        """
        self._require_budget(budget)
        if targets is None:
            return self.evidence.broken_at_most(budget)
        selected = np.asarray(targets)
        among = np.zeros(self.num_targets, dtype=bool)
        if selected.dtype == bool and selected.shape != among.shape:
            raise SettingsError(f"a mask of shape {selected.shape} was given for {self.num_targets} targets.")
        among[selected] = True
        return self.evidence.broken_at_most(budget, among)

    @cached_property
    def new_neighbours(self) -> FloatArray:
        """Certified number of new neighbours, with unlimited deletions and changes beside them, shape ``[n]``.

        Unlimited are deleted and changed edges, changed features of other nodes, and deleted nodes (if nodes have ids).
        The number is ``math.inf`` where any number is withstood, and -1 where nothing of this is proved, as always for
        whole graphs. With stacked votes, 65,536 says that at least so many are: larger numbers count as any number.
        """
        if self.claim.task == "graph":
            return np.full(self.num_targets, -1.0)
        return self.evidence.max_certified("add_edges", everything_but_additions(self.claim.ids))

    @cached_property
    def new_neighbours_alone(self) -> FloatArray:
        """Certified number of new neighbours if nothing else changes, shape ``[n]``.

        Never smaller than ``new_neighbours``, and -1 where not even the label of the unchanged graph is proved, as
        always for whole graphs. With stacked votes, 65,536 says "at least 65,536".
        """
        if self.claim.task == "graph":
            return np.full(self.num_targets, -1.0)
        return self.evidence.max_certified("add_edges", Budget())

    def save(
        self,
        path: str | Path,
        budgets: Iterable[Budget] | None = None,
        *,
        issued: Mapping[str, str] | None = None,
        exclusions: bool = False,
    ) -> None:
        """Writes the certificate to one file, which ``ac.load_certificate`` and ``agnncert verify`` read.

        Args:
            path: Where to write. An existing file is replaced once the new one is complete.
            budgets: Budgets for which the file also states which targets are certified and how many can break.
                Defaults to a few common ones. A loaded certificate answers about any budget.
            issued: Who issues it (``by``), when (``on``), for which ``system`` and ``until`` when, with dates as
                ``"2027-12-31"``. Any of these may be absent. Defaults to ``certificate.issued``.
            exclusions: Whether the file also states, for each budget, how many targets cannot get each label
                (:meth:`excluded`), so that a verifier checks it. The limits are 10 budgets and 100 classes. Defaults to
                False.

        Raises:
            CertificateError: The file cannot be written, or ``issued`` makes no sense.
        """
        stated = self._usual_budgets() if budgets is None else tuple(budgets)
        for budget in stated:
            self._require_budget(budget)
        answers = self.evidence.answers(stated, everything_but_additions(self.claim.ids))
        if self.claim.task != "graph" and "new_neighbours" not in vars(self):
            self._set("new_neighbours", answers.new_edges)  # a cached property: not to be searched for twice
        excluded = []
        if exclusions:
            for budget in stated:
                per_class = (~self.possible(budget)).sum(axis=0)
                excluded.append(tuple(per_class.tolist()))
        contents = Contents(
            kind=self.evidence.kind,
            settings=self.evidence.settings(),
            claim=self.claim,
            budgets=stated,
            broken_at_most=answers.broken_at_most,
            evidence=self.evidence.tensors(),
            arrays=self._arrays(answers.holds),
            issued=dict(self.issued if issued is None else issued),
            excluded=tuple(excluded),
            class_names=self.class_names,
        )
        write_contents(path, contents)

    def to_contest(
        self,
        path: str | Path,
        budgets: Iterable[Budget] | None = None,
        targets: Iterable[int | str] | None = None,
    ) -> None:
        """Writes the certificate as a contest, an open format that a small program checks (``agnncert check``).

        A contest states numbers only: scores, what an attacker may do to them, and prices that prove each statement.
        It does not need this library to be read, and cannot be loaded as a certificate again.

        Args:
            path: Where to write.
            budgets: Budgets for which the file states which targets keep their label, which classes others cannot get,
                and how many break together. Defaults to a few common ones.
            targets: Ids of the targets that it is about. Defaults to all.

        Raises:
            CertificateError: The certificate holds random samples, or is too large for one file.
            IdError: There is no such target.
        """
        from agnncert.proving.as_contest import write_as_contest

        stated = self._usual_budgets() if budgets is None else tuple(budgets)
        for budget in stated:
            self._require_budget(budget)
        rows = range(self.num_targets) if targets is None else [self[target]._position for target in targets]
        write_as_contest(self, path, stated, rows)

    def _usual_budgets(self) -> tuple[Budget, ...]:
        of_evidence = self.evidence.usual_budgets()
        return usual_budgets(self.claim) if of_evidence is None else of_evidence

    def description(self) -> Contents:
        """Returns what a file of this certificate says about the defence: claim and evidence, without statements."""
        return Contents(
            kind=self.evidence.kind,
            settings=self.evidence.settings(),
            claim=self.claim,
            budgets=(),
            broken_at_most=(),
            evidence=self.evidence.tensors(),
            arrays={},
            class_names=self.class_names,
        )

    def _arrays(self, holds: BoolArray) -> dict[str, npt.NDArray[Any]]:
        """Returns the arrays that a file holds in addition to those of the evidence."""
        arrays = {name: getattr(self, name) for name in ("target", *PER_TARGET, *KNOWN)}
        arrays["holds"] = holds
        arrays["structure_radius"] = self.evidence.structure_radius()
        return {name: array for name, array in arrays.items() if array is not None}

    def plot(self, ax: "Axes | None" = None, **style: Any) -> "Axes":
        """Draws certified accuracy over the perturbation size, or the share of certified labels if no class is known.

        Args:
            ax: Axes of matplotlib to draw into. Defaults to those of a new figure.
            style: Passed on to ``ax.step``, such as ``label`` and ``color``.

        Returns:
            The axes.

        Raises:
            MissingPackage: matplotlib is not installed.
        """
        return plot_certificate(self, ax, **style)

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a pandas table, one row per target, with its id as index and :meth:`columns` as columns.

        Raises:
            MissingPackage: pandas is not installed.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise missing(error.name, "to_pandas") from None
        columns: dict[str, Any] = self.columns()
        if self.truth is not None:
            truth = pd.array(np.where(self.labelled, self.truth, 0), dtype="Int64")
            truth[~self.labelled] = pd.NA
            columns["truth"] = truth
        return pd.DataFrame(columns, index=pd.Index(self.target, name="target"))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns what is known about each target as columns of a table, by name, each of shape ``[n]``.

        ``label`` is the number of the class and ``class_name`` its name, if classes have names. ``score`` is what the
        label has, and ``margin`` by how much it leads: with a threshold, how far the target is from it. Both are in
        votes. Then come ``radius`` and ``structure_radius``, ``truth`` (negative where it is unknown), ``degree`` and
        ``new_neighbours`` and ``new_neighbours_alone`` as far as there are any, and the votes for each class. Pairs
        have ``new_edges`` instead of ``new_neighbours``. There is no ``structure_radius`` where the radius counts
        changes of the training data.
        """
        votes = self.count_columns()
        table = np.stack([np.asarray(column) for column in votes.values()], axis=1)
        everyone = np.arange(self.num_targets)
        score = table[everyone, self.label]
        others = table.astype(np.float64)
        others[everyone, self.label] = -np.inf
        columns: dict[str, npt.NDArray[Any]] = {"label": self.label}
        if self.class_names:
            columns["class_name"] = np.array(self.class_names, dtype=object)[self.label]
        columns |= {"score": score, "margin": score - others.max(axis=1, initial=-np.inf), "radius": self.radius}
        if not self.evidence.training_fields:
            columns["structure_radius"] = self.structure_radius
        known = {"truth": self.truth, "degree": self.degree}
        columns |= {name: values for name, values in known.items() if values is not None}
        word = "new_edges" if self.claim.task == "pair" else "new_neighbours"
        for name, values in ((word, self.new_neighbours), (f"{word}_alone", self.new_neighbours_alone)):
            if (values >= 0).any():
                columns[name] = values
        return columns | votes

    def count_columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the votes for each class, by name of a column. With stacked votes these are the scores, in votes."""
        return self.evidence.count_columns()

    @cached_property
    def position(self) -> dict[Any, int]:
        """Position of each target by its id."""
        return {target: k for k, target in enumerate(self.target.tolist())}

    def _position_of(self, target: object) -> int | None:
        """Returns the position of a target. It is None if there is no target with this id, or this is no id."""
        try:
            plain: Any = target.item() if hasattr(target, "item") else target
            canonical = id_array([plain]).tolist()[0]
        except (AgnncertError, TypeError, ValueError):
            return None
        return self.position.get(canonical)

    def __len__(self) -> int:
        return self.num_targets

    def __bool__(self) -> bool:
        return True  # also without targets: a certificate is a statement, not a container that may be empty

    def __getitem__(self, target: int | str) -> Decision:
        position = self._position_of(target)
        if position is None:
            near = get_close_matches(str(target), [str(known) for known in self], n=3, cutoff=0.6)
            hint = f" Similar: {', '.join(near)}." if near else ""
            raise IdError(f"the certificate has no target {target!r:.60}: it has {len(self):,}, by their ids.{hint}")
        truth = None
        if self.truth is not None and self.labelled[position]:
            truth = int(self.truth[position])
        return Decision(
            target=self.target[position : position + 1].tolist()[0],
            row=int(self.row[position]),
            label=int(self.label[position]),
            radius=int(self.radius[position]),
            votes=self.counts[position],
            truth=truth,
            degree=None if self.degree is None else int(self.degree[position]),
            _certificate=self,
            _position=position,
        )

    def __contains__(self, target: object) -> bool:
        return self._position_of(target) is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.target.tolist())

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        return in_html(self)

    def __repr__(self) -> str:
        made_by = division_words(self.claim.division) or self.claim.method
        return f"Certificate({self.num_targets} {self.claim.task} targets, {made_by})"

    def __str__(self) -> str:
        return in_words(self)


def _check_once(name: str, values: npt.NDArray[Any]) -> None:
    """Checks that no value occurs twice."""
    if values.dtype == np.int64:
        ordered = np.sort(values)  # np.unique takes many times as long
        if not (ordered[1:] == ordered[:-1]).any():
            return
    for value, number in Counter(values.tolist()).items():
        if number > 1:
            raise CertificateError(f'"{name}" names {value!r:.60} more than once: each target counts once.')


def _true_classes(truth: npt.ArrayLike) -> npt.NDArray[Any]:
    """Returns true classes as a list of numbers.

    Raises:
        SettingsError: They are no list, or something in it is no class: neither a whole number nor NaN.
    """
    given = np.asarray(truth)
    if given.size != max(given.shape, default=1):
        raise SettingsError(f"true classes of shape {given.shape} were given: expected one number for each target.")
    classes = given.reshape(-1)
    if classes.dtype.kind not in "biuf":
        raise SettingsError(f"true classes of type {classes.dtype} were given: expected whole numbers, -1 if unknown.")
    wrong = classes[(classes > LARGEST_CLASS) | (~np.isnan(classes) & (classes != np.floor(classes)))]
    if len(wrong):
        raise SettingsError(
            f"{wrong[0]} was given as a true class: expected whole numbers up to {LARGEST_CLASS:,}, -1 if unknown."
        )
    return classes


def _total(prices: Prices) -> float:
    if prices.total is None:
        raise BudgetError(f"{prices} says nothing about what an attacker can spend: add total=….")
    return prices.total * (1 + 1e-9)  # ten times 0.1 is not more than 1, however it is rounded


def everything_but_additions(ids: str) -> Budget:
    """Returns a budget of unlimited deletions and changes. Nodes are deleted only if nodes keep their ids."""
    deleted = math.inf if ids == "node_id" else 0
    return Budget(delete_edges=math.inf, change_edges=math.inf, delete_nodes=deleted, change_features=math.inf)


def usual_budgets(claim: Claim) -> tuple[Budget, ...]:
    """Returns the budgets that a file makes statements about when none are given."""
    if claim.guarantee != "deterministic":
        return ()
    return (
        everything_but_additions(claim.ids),
        Budget(add_edges=10, delete_edges=10, change_features=1),
        Budget(inject_nodes=1, edges_per_injected=math.inf),
        Budget(inject_nodes=5, edges_per_injected=20),
        Budget(add_edges=100),
    )


@suggests_arguments
def load_certificate(path: str | Path) -> Certificate:
    """Loads a certificate from a file. Labels and radii are derived again and compared with the stored ones.

    Raises:
        CertificateError: The file is not a certificate, was altered or cut short, or is of another version.
    """
    contents = read_contents(path)
    try:
        certificate = certificate_of(contents)
    except AgnncertError as error:
        raise CertificateError(f"{path}: {error}") from error
    for name in ("label", "radius", "structure_radius"):
        stated = contents.arrays.get(name)
        if stated is not None and not certificate.evidence.may_state(name, stated, getattr(certificate, name)):
            raise CertificateError(f"{path}: the stored {name}s are not the ones that follow from the votes.")
    return certificate


def certificate_of(contents: Contents) -> Certificate:
    """Returns the certificate whose claim and evidence are those of a file; what it states is not looked at.

    Raises:
        AgnncertError: The evidence is damaged, or of a kind that is not known here.
    """
    evidence = _evidence_class(contents.kind).load(contents.evidence, contents.settings)
    optional: dict[str, Any] = {name: contents.arrays.get(name) for name in ("row", *KNOWN)}
    return Certificate(
        contents.claim,
        evidence,
        contents.arrays["target"],
        issued=contents.issued,
        class_names=contents.class_names,
        **optional,
    )


def _evidence_class(kind: str) -> type[Evidence]:
    """Returns the class of evidence that files of this kind hold.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
        CertificateError: Nothing here knows the kind.
    """
    point = addons("agnncert.evidence").get(kind)
    if point is not None:
        evidence: type[Evidence] = point.load()
        return evidence
    if kind in ADD_ON_KINDS:
        raise missing(*ADD_ON_KINDS[kind])
    known = ", ".join(sorted({*addons("agnncert.evidence"), *ADD_ON_KINDS}))
    raise CertificateError(f"unknown kind of evidence {reprlib.repr(kind)}: expected {known}.")


def as_ids(target: npt.ArrayLike) -> npt.NDArray[Any]:
    """Returns ids as certificates hold them.

    Raises:
        CertificateError: They are neither integers nor strings.
    """
    # numpy would make floats of large integers, one type of mixed ones, and cut NULs off the end of text.
    ids = target if isinstance(target, Sequence) else np.asarray(target)
    if isinstance(ids, np.ndarray) and (ids.size == 0 or (ids.ndim == 1 and ids.dtype == np.int64)):
        return ids.astype(np.int64).reshape(-1)
    try:
        return id_array(ids)
    except IdError as error:
        raise CertificateError(f"targets have ids that are none, expected integers or strings: {error}") from error
