"""Certificate: what is proved about each target, the evidence for it, and the claim in words.

Beside it: :class:`Decision`, about one target; how a certificate is read from a file; what it looks like in print.
"""

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from agnncert.addons import addon
from agnncert.certificates.budget import COUNTS, Budget, Prices
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import KNOWN, PER_TARGET, Contents, read_contents, write_contents
from agnncert.certificates.ids import id_array
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.errors import AgnncertError, BudgetError, CertificateError, IdError, SettingsError, did_you_mean, missing
from agnncert.proving.evidence import Evidence, VoteEvidence
from agnncert.proving.measures import Measures, measured, own_or_any, rare_class
from agnncert.proving.stacked import StackedEvidence
from agnncert.storage import visible

SHOWN_ROWS = 8  # in a notebook
KINDS: dict[str, dict[str, float]] = {  # what `withstands` tells: a field of a budget, and the rest of it
    "add_edges": {},
    "delete_edges": {},
    "inject_nodes": {"edges_per_injected": math.inf},
    "delete_nodes": {},
    "change_features": {},
}


@dataclass(frozen=True)
class Decision:
    """What is proved about one target.

    Attributes:
        target: Its id.
        row: Its row in the data.
        label: The proved label.
        radius: The largest attack, in steps of the claim's unit, that cannot change it; -1 if nothing is proved.
        votes: Votes for each class, shape ``[num_classes]``; with stacked votes scores, in steps of 1/65,536 vote.
        truth: Its true class; None if unknown.
        degree: Its neighbours, or edges if it is a graph; None if unknown.
    """

    target: int | str
    row: int
    label: int
    radius: int
    votes: IntArray
    truth: int | None
    degree: int | None
    _certificate: "Certificate"
    _place: int

    def holds_against(self, budget: Budget) -> bool:
        """Whether it keeps its label whatever an attacker with ``budget`` does."""
        return bool(self._certificate.holds_against(budget)[self._place])

    def max_certified(self, kind: str, **other_fields: Any) -> float:
        """The largest certified amount of one kind of change; see ``Certificate.max_certified``."""
        return float(self._certificate.max_certified(kind, **other_fields)[self._place])

    @property
    def withstands(self) -> dict[str, float]:
        """The largest certified amount of each kind of change alone; injected nodes may have any number of edges.

        ``math.inf`` for any amount, -1 where nothing is proved.
        """
        return {kind: self.max_certified(kind, **rest) for kind, rest in KINDS.items()}

    def __repr__(self) -> str:
        known = "" if self.truth is None else f", truth={self.truth}"
        return (
            f"Decision({self.target!r}, label={self.label}, radius={self.radius}, votes={self.votes.tolist()}{known})"
        )


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proved labels: one row per target, and answers about any budget.

    ``certificate["user-7"]`` is the decision about one target, by its id; ``len`` counts the targets, and going
    through a certificate gives their ids.

    Attributes:
        claim: What is proved, in which unit, under which assumptions.
        evidence: What everything below is derived from.
        target: Ids of the targets, not row numbers, shape ``[n]``: an array of int64 if that holds all of them, else of
            Python's integers and strings. The decimal text of an integer is that integer.
        row: Row of each target in the data it was made from; defaults to the position, shape ``[n]``.
        truth: True class of each target, negative where it is unknown, shape ``[n]``; None if none was given.
        degree: Neighbours of each target node, or edges of each target graph, if known, shape ``[n]``.
        issued: Who issued it (``by``), when (``on``), for which ``system`` and ``until`` when, as far as it is stated.
        label: The proved label, shape ``[n]``.
        radius: The largest attack, in steps of ``claim.unit``, that cannot change it; -1 if nothing is proved.
    """

    claim: Claim
    evidence: Evidence
    target: npt.NDArray[Any]
    row: IntArray = None  # type: ignore[assignment]
    truth: IntArray | None = None
    degree: IntArray | None = None
    issued: Mapping[str, str] = field(default_factory=dict)
    label: IntArray = field(init=False, repr=False)
    radius: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        label, radius = self.evidence.label_and_radius()
        values = {
            "target": as_ids(self.target),
            "row": np.arange(len(label)) if self.row is None else np.asarray(self.row, dtype=np.int64),
            "truth": None if self.truth is None else np.asarray(self.truth, dtype=np.int64),
            "degree": None if self.degree is None else np.asarray(self.degree, dtype=np.int64),
            "label": label,
            "radius": radius,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        for name in ("target", "row", "truth", "degree"):
            value = getattr(self, name)
            if value is not None and value.shape != (self.num_targets,):
                raise CertificateError(
                    f'"{name}" has shape {value.shape}: expected one entry for each target, ({self.num_targets},).'
                )
        self.evidence.check_claim(self.claim)
        for name in ("target", "row"):
            values = getattr(self, name)
            ordered = np.sort(values) if values.dtype == np.int64 else values  # np.unique takes many times as long
            if values.dtype == np.int64 and not (ordered[1:] == ordered[:-1]).any():
                continue
            twice = next((value for value, number in Counter(values.tolist()).items() if number > 1), None)
            if twice is not None:
                raise CertificateError(f'"{name}" names {twice!r:.60} more than once: each target counts once.')

    @cached_property
    def num_targets(self) -> int:
        """Number of targets."""
        return self.evidence.num_targets

    @cached_property
    def counts(self) -> IntArray:
        """Votes per target and class, those of a prior included, shape ``[n, num_classes]``; counted when asked for."""
        return self.evidence.counts

    @property
    def labelled(self) -> BoolArray:
        """Which targets have a true class, shape ``[n]``: accuracies are shares of these."""
        return np.zeros(self.num_targets, dtype=bool) if self.truth is None else self.truth >= 0

    @cached_property
    def structure_radius(self) -> IntArray:
        """As ``radius``, against edges and nodes added and deleted alone: nothing given other features or values.

        The same as ``radius`` unless every neighbour has its own group, where a neighbour that comes or goes
        costs half of what one that is altered may cost. Shape ``[n]``.
        """
        alone = self.evidence.structure_radius()
        return self.radius if alone is None else alone

    @property
    def voting_rule(self) -> VotingRule | None:
        """What empty groups cast, and the prior; None if there are no votes but random samples."""
        return self.evidence.voting_rule

    @overload
    def certified_accuracy(self, truth: Any = None, sizes: float = 0) -> float: ...
    @overload
    def certified_accuracy(self, truth: Any, sizes: Sequence[float] | npt.NDArray[Any]) -> FloatArray: ...
    @overload
    def certified_accuracy(self, *, sizes: Sequence[float] | npt.NDArray[Any]) -> FloatArray: ...
    def certified_accuracy(self, truth: Any = None, sizes: Any = 0) -> Any:
        """Fraction of targets whose label is correct and proved against attacks of each size.

        Targets without a true class do not count, neither as correct nor as wrong.

        Args:
            truth: True classes of all rows of the data (such as ``data.y``), or one for each target; the
                labels stored with the certificate by default. A tensor, an array or a list; negative: unknown.
            sizes: One size or several, in steps of ``claim.unit``.

        Returns:
            A number for one size, an array for several.

        Raises:
            SettingsError: No true class is known, or there are not as many as rows or targets.
        """
        if not self.num_targets:
            raise SettingsError("the certificate has no targets, so no share of them is correct.")
        classes = self._truth_of_targets(truth)
        correct, known = self.label == classes, int((classes >= 0).sum())
        if not known:
            raise SettingsError(f"none of the {self.num_targets} targets has a true class: nothing can be correct.")
        wanted = np.asarray(sizes, dtype=np.float64)
        share = (correct[:, None] & (self.radius[:, None] >= wanted.reshape(-1))).sum(axis=0) / known
        return share.reshape(wanted.shape) if wanted.ndim else float(share[0])

    def measures(self, at: float | Budget = 0, truth: Any = None, together: bool = False) -> Measures:
        """Certified recall, precision and false positive rate of each class, and certified balanced accuracy.

        Recall, precision and accuracy are lower bounds, false positive rates upper bounds: no attack goes beyond them.
        They follow from :meth:`possible`, and are exact if that is and every target is attacked by itself.

        Args:
            at: A size, in steps of ``claim.unit``, or a budget.
            truth: True classes, as for :meth:`certified_accuracy`. Targets without a true class do not count.
            together: All targets are in *one* attacked graph, so that the budget is spent once and not for each target
                (as for :meth:`broken_at_most`). Needs a budget.

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
        clean = measured(own_or_any(self.label, np.ones(self.num_targets, dtype=bool), num_classes), classes)
        right, known = self.label == classes, classes >= 0
        lost = [self.broken_at_most(at, right & (classes == k)) for k in range(num_classes)]
        elsewhere = possible & (self.label[:, None] != np.arange(num_classes)) & known[:, None]
        turned = [self.broken_at_most(at, elsewhere[:, k] & (classes != k)) for k in range(num_classes)]
        kept, false = clean.true_positives - lost, clean.false_positives + turned
        return Measures(clean.support, kept, false, clean.correct - self.broken_at_most(at, right))

    def _truth_of_targets(self, truth: Any) -> IntArray:
        if truth is None:
            if self.truth is None:
                raise SettingsError("this certificate holds no true classes: pass them, for example data.y.")
            return self.truth
        given = np.asarray(truth).reshape(-1)
        if len(given) > self.row.max(initial=-1):
            return np.asarray(given[self.row])
        if len(given) == self.num_targets:
            return given
        raise SettingsError(
            f"{len(given)} true classes were given for {self.num_targets} targets in rows up to "
            f"{self.row.max(initial=-1)}: pass one for each target, or one for each row of the data."
        )

    def holds_against(self, budget: Budget | Prices) -> BoolArray:
        """Whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``.

        A field of the budget that nothing is proved about makes the answer False, never an optimistic guess. Prices
        with a total are a budget, too: every attack that costs no more.

        Example: ``cert.holds_against(Budget(add_edges=3, delete_edges=math.inf))``.
        """
        if isinstance(budget, Prices):
            return self.cheapest(budget) > _total(budget)
        _require_budget(budget)
        return self.evidence.holds(budget)

    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """What flipping each target costs at least, shape ``[n]``: every attack that changes its label costs as much.

        ``math.inf`` where no attack with these prices changes the label, 0 where the label itself is not certain. A
        change that nothing is proved about changes every label at its price. What is free is done in any number.

        The price is exact in the votes of a division, with few exceptions; for random samples and for some stacked
        votes it is a lower bound (``docs/proofs.md``, Theorem 13).

        Args:
            prices: What each kind of change costs.
            label: Asks for attacks that give targets this label ("fraud to genuine"); it costs nothing for targets
                that have it. With more than two classes this is a bound: what it costs to beat the present label.

        Example: ``cert.cheapest(Prices(add_edges=1, inject_nodes=20))``.
        """
        if not isinstance(prices, Prices):
            raise BudgetError(f"expected Prices, got {type(prices).__name__}: write Prices(add_edges=…).")
        return self.evidence.cheapest(prices, None if label is None else self._class(label))

    def possible(self, at: Budget | Prices | float) -> BoolArray:
        """Which labels an attack within a budget could give each target, shape ``[n, num_classes]``.

        No attack makes any other class win. A target's own label is always possible; it is the only one exactly where
        :meth:`holds_against` is True. A field of the budget that nothing is proved about makes all classes possible.
        Row sums are the sizes of certified prediction sets.

        For votes the answer is exact in the votes: some change of votes within the limits of the division makes
        each possible class win. For stacked votes and random samples, it is a bound: a class may be named that no
        attack reaches (``docs/proofs.md``, Theorem 12).

        Args:
            at: What the attacker may do, or a size in steps of ``claim.unit``.

        Example: ``cert.possible(Budget(add_edges=3)).sum(axis=1).mean()`` is the mean size of a prediction set.
        """
        if isinstance(at, Prices):
            classes = range(self.counts.shape[1])
            return np.stack([self.cheapest(at, k) <= _total(at) for k in classes], axis=1)
        if isinstance(at, bool) or not isinstance(at, (int, float, np.integer, np.floating)):
            _require_budget(at)
        return self.evidence.possible(at)

    def excluded(self, label: int, at: Budget | Prices | float) -> BoolArray:
        """Whether no attack within a budget gives a target this label, shape ``[n]``: "fraud cannot become genuine".

        The opposite of a column of :meth:`possible`. False for targets that have this label without an attack.

        Args:
            label: The class.
            at: What the attacker may do, or a size in steps of ``claim.unit``.

        Raises:
            SettingsError: There is no such class.
        """
        return ~self.possible(at)[:, self._class(label)]

    def _class(self, label: Any) -> int:
        num_classes = self.counts.shape[1]
        if isinstance(label, bool) or not isinstance(label, (int, np.integer)) or not 0 <= label < num_classes:
            raise SettingsError(f"label={label!r:.60}: the classes are 0 to {num_classes - 1}.")
        return int(label)

    def max_certified(self, kind: str, **other_fields: Any) -> FloatArray:
        """The most of one kind of change that each target is certified against, shape ``[n]``.

        Args:
            kind: A field of :class:`Budget` that counts something, such as ``"inject_nodes"``.
            **other_fields: The rest of the budget, such as ``edges_per_injected=math.inf``.

        Returns:
            Whole numbers; ``math.inf`` where any amount is withstood, -1 where not even the rest of the budget is.
        """
        if kind not in COUNTS:
            raise BudgetError(f'cannot search the largest "{kind}": {did_you_mean(str(kind), COUNTS)}')
        if kind in other_fields:
            raise BudgetError(f'"{kind}" is what is searched for, so it cannot be given as well.')
        return self.evidence.max_certified(kind, Budget().but(**other_fields))

    def broken_at_most(self, budget: Budget, targets: Any = None) -> int:
        """How many targets *one* attacked graph can break at most; see the evidence's method for the details.

        Args:
            budget: What the attacker may do, all of it in one graph. With ``target_features=False`` no target is
                deleted or given other features.
            targets: Count only these: a mask or positions among the targets; defaults to all. To count the correct
                labels that are lost, pass ``cert.label == truth``.
        """
        _require_budget(budget)
        if targets is None:
            return self.evidence.broken_at_most(budget)
        among = np.zeros(self.num_targets, dtype=bool)
        chosen = np.asarray(targets)
        if chosen.dtype == bool and chosen.shape != among.shape:
            raise SettingsError(f"a mask of shape {chosen.shape} was given for {self.num_targets} targets.")
        among[chosen] = True
        return self.evidence.broken_at_most(budget, among)

    @cached_property
    def new_neighbours(self) -> FloatArray:
        """Certified number of new neighbours, with unlimited deletions and changes beside them, shape ``[n]``.

        Unlimited are: deleted and changed edges, changed features of other nodes, and deleted nodes (if nodes have
        ids). ``math.inf`` where any number is withstood, -1 where nothing of this is proved, as always for whole
        graphs.
        """
        if self.claim.task == "graph":
            return np.full(self.num_targets, -1.0)
        return self.evidence.max_certified("add_edges", everything_but_additions(self.claim.ids))

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
            path: Where to write; an existing file is replaced once the new one is complete.
            budgets: Budgets for which the file also states which targets are certified and how many can break.
                Defaults to a few common ones. A loaded certificate answers about any budget.
            issued: Who issues it (``by``), when (``on``), for which ``system`` and ``until`` when; dates as
                ``"2027-12-31"``. Any of these may be absent. Defaults to ``certificate.issued``.
            exclusions: Whether the file also states, for each budget, how many targets cannot get each label
                (:meth:`excluded`), so that a verifier checks it; for at most 10 budgets and 100 classes.

        Raises:
            CertificateError: The file cannot be written, or ``issued`` makes no sense.
        """
        stated = usual_budgets(self.claim) if budgets is None else tuple(budgets)
        for budget in stated:
            _require_budget(budget)
        holds, broken, largest = self.evidence.answers(stated, everything_but_additions(self.claim.ids))
        if self.claim.task != "graph" and "new_neighbours" not in vars(self):
            object.__setattr__(self, "new_neighbours", largest)  # a cached property: not to be searched for twice
        arrays = {name: getattr(self, name) for name in ("target", *PER_TARGET, *KNOWN)}
        arrays["holds"], arrays["structure_radius"] = holds, self.evidence.structure_radius()
        contents = Contents(
            kind=self.evidence.kind,
            settings=self.evidence.settings(),
            claim=self.claim,
            budgets=stated,
            broken_at_most=broken,
            evidence=self.evidence.tensors(),
            arrays={name: array for name, array in arrays.items() if array is not None},
            issued=dict(self.issued if issued is None else issued),
            excluded=tuple(tuple((~self.possible(one)).sum(axis=0).tolist()) for one in stated if exclusions),
        )
        write_contents(path, contents)

    def to_pandas(self) -> Any:
        """A pandas table, one row per target: label, radius, what is known about it, and its votes."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise missing(error.name, "to_pandas") from None
        columns: dict[str, Any] = {"label": self.label, "radius": self.radius}
        if self.truth is not None:
            columns["truth"] = pd.array(np.where(self.labelled, self.truth, 0), dtype="Int64")
            columns["truth"][~self.labelled] = pd.NA
        if self.degree is not None:
            columns["degree"] = self.degree
        if (self.new_neighbours >= 0).any():
            columns["new_neighbours"] = self.new_neighbours
        columns |= self.count_columns()
        return pd.DataFrame(columns, index=pd.Index(self.target, name="target"))

    def count_columns(self) -> dict[str, Any]:
        """Votes for each class, by name of a column; with stacked votes the scores, in votes."""
        return self.evidence.count_columns()

    @cached_property
    def place(self) -> dict[Any, int]:
        """Position of each target by its id."""
        return {target: k for k, target in enumerate(self.target.tolist())}

    def _place_of(self, target: Any) -> int | None:
        """Position of a target; None if there is none with this id, or this is no id."""
        try:
            wanted = id_array([target.item() if hasattr(target, "item") else target]).tolist()[0]
        except (AgnncertError, TypeError, ValueError):
            return None
        return self.place.get(wanted)

    def __len__(self) -> int:
        return self.num_targets

    def __bool__(self) -> bool:
        return True  # also without targets: a certificate is a statement, not a container that may be empty

    def __getitem__(self, target: Any) -> Decision:
        place = self._place_of(target)
        if place is None:
            near = get_close_matches(str(target), [str(one) for one in self], n=3, cutoff=0.6)
            hint = f" Similar: {', '.join(near)}." if near else ""
            raise IdError(f"the certificate has no target {target!r:.60}: it has {len(self):,}, by their ids.{hint}")
        return Decision(
            target=self.target[place : place + 1].tolist()[0],
            row=int(self.row[place]),
            label=int(self.label[place]),
            radius=int(self.radius[place]),
            votes=self.counts[place],
            truth=int(self.truth[place]) if self.truth is not None and self.labelled[place] else None,
            degree=None if self.degree is None else int(self.degree[place]),
            _certificate=self,
            _place=place,
        )

    def __contains__(self, target: object) -> bool:
        return self._place_of(target) is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.target.tolist())

    def _repr_html_(self) -> str:
        """What a notebook shows: what the certificate is about, and the first targets."""
        names = ["target", "label", *(["truth"] if self.truth is not None else []), "radius", "votes"]
        rows = []
        for one in (self[target] for target in self.target[:SHOWN_ROWS].tolist()):
            truth = "–" if one.truth is None else f"{one.truth}{'' if one.truth == one.label else ' ✗'}"
            radius = "none" if one.radius < 0 else f"{one.radius:,}"
            shown = {"truth": truth, "radius": radius, "votes": " : ".join(map(str, one.votes.tolist()))}
            rows.append([visible(str(shown.get(name, getattr(one, name)))) for name in names])
        rest = self.num_targets - len(rows)
        more = f"<p>… and {rest:,} more: <code>to_pandas()</code>, <code>certificate[id]</code></p>" if rest else ""
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
        lines = html.escape(str(self).split("\nOne step")[0]).replace("\n", "<br>")
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        no_formulas = 'class="tex2jax_ignore mathjax_ignore"'  # a formula can hold a link
        return f"<div {no_formulas}><p>{lines}</p>{table}{more}</div>"

    def __repr__(self) -> str:
        made_by = self.claim.division or self.claim.method
        return f"Certificate({self.num_targets} {self.claim.task} targets, {made_by})"

    def __str__(self) -> str:
        """A certificate in words and a few numbers."""
        claim = self.claim
        made_by = f"{claim.method}, {claim.division}" if claim.division else claim.method
        targets = f"{self.num_targets:,} {claim.task}{'' if self.num_targets == 1 else 's'}"
        guarantee = "deterministic: no attack within the budget can change a certified label"
        if claim.alpha is not None:
            guarantee = f"probabilistic: wrong with probability at most {claim.alpha:g} for {claim.alpha_scope}"
        lines = [f"Certificate of {targets} in {self.counts.shape[1]} classes ({made_by})"]
        numbers = _numbers(self) if self.num_targets else []
        lines += [f"  {title:<15} {text}" for title, text in [("guarantee", guarantee), *numbers]]
        return "\n".join([*lines, str(claim)])


def _require_budget(budget: object) -> None:
    if not isinstance(budget, Budget):
        raise BudgetError(f"expected a Budget, got {type(budget).__name__}: write Budget(add_edges=…).")


def _total(prices: Prices) -> float:
    if prices.total is None:
        raise BudgetError(f"{prices} says nothing about what an attacker can spend: add total=….")
    return prices.total * (1 + 1e-9)  # ten times 0.1 is not more than 1, however it is rounded


def everything_but_additions(ids: str) -> Budget:
    """Unlimited deletions and changes; deleted nodes only if nodes keep their ids."""
    deleted = math.inf if ids == "node_id" else 0
    return Budget(delete_edges=math.inf, change_edges=math.inf, delete_nodes=deleted, change_features=math.inf)


def usual_budgets(claim: Claim) -> tuple[Budget, ...]:
    """The budgets that a file makes statements about when none are given."""
    if claim.guarantee != "deterministic":
        return ()
    return (
        everything_but_additions(claim.ids),
        Budget(add_edges=10, delete_edges=10, change_features=1),
        Budget(inject_nodes=1, edges_per_injected=math.inf),
        Budget(inject_nodes=5, edges_per_injected=20),
        Budget(add_edges=100),
    )


def load_certificate(path: str | Path) -> Certificate:
    """Reads a certificate. Labels and radii are derived again and compared with the stored ones.

    Raises:
        CertificateError: The file is not a certificate, was altered or cut short, or is of another version.
    """
    contents = read_contents(path)
    try:
        evidence = _evidence_class(contents.kind).load(contents.evidence, contents.settings)
        known: dict[str, Any] = {name: contents.arrays.get(name) for name in ("row", *KNOWN)}
        certificate = Certificate(contents.claim, evidence, contents.arrays["target"], issued=contents.issued, **known)
    except AgnncertError as error:
        raise CertificateError(f"{path}: {error}") from error
    for name in ("label", "radius", "structure_radius"):
        stated = contents.arrays.get(name)
        if stated is not None and not np.array_equal(getattr(certificate, name), stated):
            raise CertificateError(f"{path}: the stored {name}s are not the ones that follow from the votes.")
    return certificate


def _evidence_class(kind: str) -> type[Evidence]:
    if kind == VoteEvidence.kind:
        return VoteEvidence
    if kind == StackedEvidence.kind:
        return StackedEvidence
    found: type[Evidence] = addon("agnncert.evidence", kind, "agnncert_peers", "a certificate from random samples")
    return found


def as_ids(target: Any) -> npt.NDArray[Any]:
    """Ids as certificates hold them.

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


def _numbers(certificate: Certificate) -> list[tuple[str, str]]:
    unproved = int((certificate.radius < 0).sum())
    lines = [("radius", _spread(certificate.radius))]
    if certificate.labelled.any():
        known = int(certificate.labelled.sum())
        which = "the targets" if known == certificate.num_targets else f"the {known:,} targets whose class is known"
        clean = certificate.measures(at=-1)
        warning = f"; {clean.warning}" if clean.warning else ""
        lines.insert(
            0, ("accuracy", f"{clean.accuracy:.1%} of {which}, by the true classes in the certificate{warning}")
        )
        if (rare := rare_class(clean.support)) is not None:
            found = [f"{certificate.measures(size).recall[rare]:.1%}" for size in (-1, 1)]
            share = f"class {rare}, {clean.support[rare] / known:.1%} of them"
            lines.insert(1, ("rarest", f"{share}: recall {found[0]}, certified at size 1 {found[1]}"))
    if unproved:
        lines.append(("unproved", f"{unproved:,} of them: too close to a tie to be sure of the label itself"))
    if (certificate.new_neighbours >= 0).any():
        rest = "with any deletions and any features of other nodes"
        lines.append(("new neighbours", f"{_spread(certificate.new_neighbours)}, {rest}"))
    return lines


def _spread(values: IntArray | FloatArray) -> str:
    low, middle, high = np.sort(values)[[0, (len(values) - 1) // 2, -1]]
    return f"median {_amount(middle)}, smallest {_amount(low)}, largest {_amount(high)}"


def _amount(value: float) -> str:
    return "any number" if np.isinf(value) else "none" if value < 0 else f"{value:,.0f}"
