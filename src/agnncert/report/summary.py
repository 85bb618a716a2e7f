"""The arrays and curves that page, figures and tables share.

``ReportContext`` holds what a report shows beside a certificate. ``Shares`` is a curve: the share of targets that are
certified (and correct) at each size of an attack.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.controls.api import PAIR_TREES, UNDEFENDED_GNN, WITHOUT_EDGES, controls_of_evidence, positive_class
from agnncert.controls.table import ComparedControls, Control, compare_with
from agnncert.divided.theorems.registry import theorem_of
from agnncert.errors import SettingsError
from agnncert.explanation import VoteExplanation
from agnncert.proving.domain import check_words, in_domain
from agnncert.proving.evidence import PageRules
from agnncert.proving.measures import Measures, measured, own_or_any, rare_class
from agnncert.proving.words import Subject, Words
from agnncert.report.checked import votes_for_checker
from agnncert.storage import visible

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate

LONGEST_CURVE = 1_000_000  # sizes on a curve at most; a large prior is certified much further
SHORTEST_AXIS = 10
SMALL_GROUP = 20  # targets; of fewer, none is left out of a chart

# Measures of add-ons in a run folder: the most that is possible, with the kind of change in brackets, comes first.
BY_SIZE, AT_MOST = "certified accuracy, size only", "at most possible from node types"
VOTES_REFERENCE = "votes that know the classes of all neighbours (reference, not a bound)"

# Models whose accuracy the curves are compared with: field of the context, name on the page.
# References that are controls too, by the name that training gives them.
AS_CONTROLS = {"undefended": UNDEFENDED_GNN, "mlp": "MLP, no graph", "no_edge": WITHOUT_EDGES}
REFERENCES = {
    "undefended": UNDEFENDED_GNN,
    "mlp": "MLP, no graph",
    "no_edge": "same model, no edges",
    "majority": "majority class",
    "bag_of_nodes": "bag of nodes",
}
# The same, where the targets are pairs of nodes.
AS_CONTROLS_OF_PAIRS = {"undefended": PAIR_TREES, "no_edge": WITHOUT_EDGES}
REFERENCES_OF_PAIRS = {**REFERENCES, "undefended": "trees on features and graph", "mlp": "own features alone"}


@dataclass(frozen=True)
class AttackUnit:
    """A further unit in which a report states what is certified, such as edited statements of source code.

    Attributes:
        targets: What the targets are, in the plural.
        title: Heading of its table.
        text: The paragraph above the table.
        column: Title of the first column.
        withstood: By kind of edit, the largest number that each target is certified against: -1 for none, ``inf`` for
            any, shape ``[num_targets]``. The headline uses the first kind.
        done: Describes an attacker who makes a number of edits of the first kind, for the headline.
        presets: Budgets that the explorer offers, by name.
        rows: Rows of the table of one target.
        labels: Names of budget fields in this unit.
    """

    targets: str
    title: str
    text: str
    column: str
    withstood: Mapping[str, FloatArray]
    done: Callable[[int], str]
    presets: Sequence[dict[str, Any]] = ()
    rows: Sequence[dict[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


# What may come from somebody else's folder, so that it must not command a terminal or turn the text of a page.
_TEXTS = (
    "class_names",
    "dataset",
    "attack",
    "environment",
    "commands",
    "choice",
    "possible",
    "certificate_path",
    "run_path",
    "run_options",
)


@dataclass(frozen=True)
class ReportContext:
    """What a report shows beside a certificate; what is not given is not shown.

    Attributes:
        truth: True class of each target, in the order of ``certificate.target``. Defaults to ``certificate.truth``;
            if that is unknown too, the report shows shares of unchanged labels instead of accuracy.
        degree: Edges at each target (node task) or in each target (graph task). Defaults to ``certificate.degree``.
        class_names: Name of each class. Defaults to ``certificate.class_names``.
        dataset: Name of the data.
        undefended: Accuracy of the same kind of model, trained and used without a defence.
        mlp: Accuracy of a multi-layer perceptron on the features alone (node task).
        no_edge: Accuracy of the certified model without edges (node task). Defaults to what the votes tell.
        majority: Accuracy of always predicting the most frequent class.
        bag_of_nodes: Accuracy of a model that sees the nodes but no edges (graph task).
        by_class: For any of these models, by its field above: recall and false positive rate of each class.
        controls: Models and scores to compare with at the same operating point: what ``ac.compare_controls`` returns,
            or a list of ``ac.Control``.
        positive: Two classes: the one to be found, by number or name. Defaults to the rarer one.
        same_alerts: Whether controls have the same number of alerts, instead of the same false positive rate.
        size_only: Pairs of attack size and certified accuracy of the best classifier by number of nodes or edges
            alone, chosen for each size: an envelope (graph task).
        possible: By name, pairs of attack size and the certified accuracy that no classifier of the types of nodes
            exceeds (``AT_MOST``), or that votes would have which know more (``VOTES_REFERENCE``).
        attacked: Pairs of attack size and accuracy under a real attack of that size.
        attack: What that attack was.
        environment: Versions, hardware, seeds, times, … by name.
        commands: How the certificate was made.
        choice: How the voting rule was chosen, as the text of its table.
        unit: A further unit in which the report states what is certified, such as edited statements of source code.
        groups: By title, the group of each target, such as ``ac.ranges(ages)``: recall and false positives are shown
            group by group, beside those by degree.
        explanations: Explanations of single targets (``ac.explain``), shown in the part about one target.
        certificate_path: Path of the certificate file, for the verification command.
        run_path: Path of the run folder with data and model, for the verification command.
        words: What nodes, edges and neighbours are called in the main sentences: ``{"edge": "payment"}``.
        run_options: What that command needs beside the folder, such as `` --root datasets``.
    """

    truth: Sequence[int] | IntArray | None = None
    degree: Sequence[int] | IntArray | None = None
    class_names: Sequence[str] | None = None
    dataset: str = ""
    undefended: float | None = None
    mlp: float | None = None
    no_edge: float | None = None
    majority: float | None = None
    bag_of_nodes: float | None = None
    by_class: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    controls: ComparedControls | Sequence[Control] = ()
    positive: int | str | None = None
    same_alerts: bool = False
    size_only: Sequence[tuple[float, float]] = ()
    possible: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    attacked: Sequence[tuple[float, float]] = ()
    attack: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()
    choice: str = ""
    unit: "AttackUnit | None" = None
    groups: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    explanations: Sequence[VoteExplanation] = ()
    certificate_path: str = ""
    run_path: str = ""
    run_options: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _TEXTS:
            object.__setattr__(self, name, visible(getattr(self, name)))
        check_words(self.words)
        for name in REFERENCES:
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise SettingsError(f"ReportContext({name}={share!r}): expected an accuracy between 0 and 1.")
        for name, pairs in {"attacked": self.attacked, "size_only": self.size_only, **self.possible}.items():
            _check_pairs(name, pairs)


def _check_pairs(name: str, pairs: Sequence[tuple[float, float]]) -> None:
    """Refuses pairs that are not a size and an accuracy."""
    for size, accuracy in pairs:
        if size < 0 or not 0 <= accuracy <= 1:
            raise SettingsError(
                f"ReportContext({name}=…({size!r}, {accuracy!r})…): expected pairs of a size from 0 on "
                "and an accuracy between 0 and 1."
            )


def per_target(name: str, values: Sequence[int] | IntArray | None, num_targets: int) -> IntArray | None:
    """Returns ``values`` as an array, None if there are none.

    Raises:
        SettingsError: There is not one whole number for each target.
    """
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (num_targets,) or not np.issubdtype(array.dtype, np.integer):
        raise SettingsError(
            f"ReportContext({name}=…) has shape {list(array.shape)} and type {array.dtype}: expected one "
            f"whole number for each of the {num_targets} targets, in the order of certificate.target."
        )
    return array.astype(np.int64)


@dataclass(frozen=True)
class Shares:
    """A curve: the share of the targets at each size; ``share[i]`` belongs to ``size[i]``, sizes ascend."""

    size: FloatArray
    share: FloatArray

    def at(self, size: float) -> float:
        """Returns the share at a size, taken from the next larger size on the curve: never more than is proved."""
        place = int(np.searchsorted(self.size, size, side="left"))
        return float(self.share[place]) if place < len(self.size) else 0.0


def over_size(withstood: FloatArray | IntArray, counted: BoolArray, last: int) -> Shares:
    """Returns the share of targets that are counted and certified against each whole size from 0 to ``last``.

    Args:
        withstood: Largest size that each target is certified against, -1 for none, ``inf`` for any, shape ``[n]``.
        counted: Which targets count (the correctly classified ones, or all), shape ``[n]``.
        last: The last size of the curve.

    Example:
        >>> over_size(np.array([2, 0, 5]), np.array([True, True, False]), 3).share.round(2).tolist()
        [0.67, 0.33, 0.33, 0.0]
    """
    sizes = np.arange(last + 1, dtype=np.float64)
    return Shares(sizes, _share_withstanding(np.asarray(withstood, dtype=np.float64), counted, sizes))


def over_degree(radius: IntArray, degree: IntArray, counted: BoolArray, most_points: int = 500) -> Shares:
    """Returns the share over size divided by degree.

    A target is certified at x if its radius is at least x times its degree. A target without edges is certified at
    every x if its radius is not negative. The sizes are the ratios at which the share changes, or a grid if there are
    more than ``most_points``. :meth:`Shares.at` never returns too much.
    """
    ratio = np.where(radius < 0, -1.0, np.divide(radius, degree, where=degree > 0, out=np.full(len(radius), np.inf)))
    finite = np.unique(ratio[np.isfinite(ratio) & (ratio > 0)])
    if len(finite) > most_points:
        grid = np.geomspace(finite[0], finite[-1], most_points)
        finite = np.unique(np.append(grid[1:-1], finite[[0, -1]]))
    sizes = np.concatenate([[0.0], finite])
    return Shares(sizes, _share_withstanding(ratio, counted, sizes))


def _share_withstanding(withstood: FloatArray, counted: BoolArray, sizes: FloatArray) -> FloatArray:
    if len(withstood) == 0:
        return np.zeros(len(sizes))
    ordered = np.sort(withstood[counted])
    return (len(ordered) - np.searchsorted(ordered, sizes, side="left")) / len(withstood)


def changes_only(curve: Shares) -> Shares:
    """Returns the same step curve without the sizes at which the share stays the same."""
    if len(curve.size) < 3:
        return curve
    keep = np.concatenate([[True], np.diff(curve.share) != 0])
    keep[-1] = True
    return Shares(curve.size[keep], curve.share[keep])


@dataclass(frozen=True)
class Summary:
    """What is shown about a certificate; arrays have one entry per target."""

    certificate: "Certificate"
    context: ReportContext
    truth: IntArray | None  # negative where it is unknown; None if none is known
    degree: IntArray | None
    counted: BoolArray  # in the curves: the correct ones if the truth is known, else all
    judged: BoolArray  # what the curves are shares of: those whose truth is known, or all if none is
    added: FloatArray | None  # certified additions (new neighbours, or injected nodes), if the division bounds them
    structure: IntArray | None  # radius if edges and nodes are only added and deleted; None if it is the radius
    recorded: tuple[tuple[str, str, float], ...]  # key, name and accuracy of the models to compare with, as they were
    by_class: Mapping[str, Sequence[tuple[float, float]]]  # by key: recall and false positive rate of each class

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.certificate.label)

    @property
    def num_judged(self) -> int:
        """Number of targets that the curves are shares of."""
        return int(self.judged.sum())

    @cached_property
    def votes(self) -> VoteRecord | None:
        """The votes one by one, if the evidence has them: what the explorer of the page counts."""
        return self.certificate.evidence.single_votes()

    @cached_property
    def page_rules(self) -> PageRules | None:
        """What the page needs to answer budgets by itself where votes are not of subgraphs; None if it cannot."""
        return self.certificate.evidence.page_rules()

    @property
    def has_explorer(self) -> bool:
        """Whether the page answers budgets of its reader."""
        is_known = self.votes is not None and votes_for_checker(self.votes) is not None
        return is_known or bool(self.vote_rule) or self.page_rules is not None

    @property
    def vote_rule(self) -> str:
        """The theorem of an own division, in JavaScript; empty if there is none, or the page's checker knows it."""
        if self.votes is None or votes_for_checker(self.votes) is not None:
            return ""
        return theorem_of(self.votes.theorem).page_rule

    @property
    def targets(self) -> str:
        """What the targets are, in the plural."""
        unit = self.context.unit
        return f"{self.certificate.claim.task}s" if unit is None else unit.targets

    @property
    def subject(self) -> Subject:
        """The claim, and how classes and targets are named."""
        return Subject(self.certificate.claim, self.context.class_names, self.targets)

    @cached_property
    def words(self) -> Words:
        """What is said about the defence, in the words of its evidence."""
        return self.certificate.evidence.words(self.subject)

    @cached_property
    def references(self) -> tuple[tuple[str, str, float], ...]:
        """Key, name and accuracy of the models to compare with: at the same operating point where there is one."""
        if self.compared is None or self.compared.positive is None:
            return self.recorded
        rows = {row.name: row for row in self.compared.controls if row.num_targets == self.num_judged}
        references = []
        for key, name, accuracy in self.recorded:
            row = rows.get(self.as_controls.get(key, ""))
            references.append((key, name, accuracy if row is None else row.accuracy))
        return tuple(references)

    @property
    def as_controls(self) -> dict[str, str]:
        """Names of the controls that are references too, by the key of the reference."""
        if self.certificate.claim.task == "pair":
            return AS_CONTROLS_OF_PAIRS
        names = [] if self.compared is None else [row.name for row in self.compared.controls]
        own = next((name for name in names if name.startswith(UNDEFENDED_GNN)), UNDEFENDED_GNN)  # says what it reads
        return {**AS_CONTROLS, "undefended": own}

    @cached_property
    def compared(self) -> ComparedControls | None:
        """The certified model and its controls at the same operating point; None if there are none, or no truth."""
        given = self.context.controls
        controls = list(given.given if isinstance(given, ComparedControls) else given)
        names = {control.name for control in controls}
        if not controls:
            return None
        of_model = [control for control in controls_of_evidence(self.certificate) if control.name not in names]
        positive = positive_class(self.certificate, self.context.positive)
        if isinstance(given, ComparedControls) and positive is None:
            positive = given.positive
        alerts = self.context.same_alerts or (isinstance(given, ComparedControls) and given.same == "alerts")
        return compare_with(
            self.certificate, [*controls, *of_model], truth=self.truth, positive=positive, alerts=alerts
        )

    def in_domain(self, sentence: str) -> str:
        """Returns a sentence in the words of the context."""
        return in_domain(sentence, self.context.words)

    @cached_property
    def largest_radius(self) -> int:
        """The largest finite size that any target is certified against, over all curves; at least 0."""
        known = [values for values in (self.certificate.radius, self.structure, self.added) if values is not None]
        return max(int(values[np.isfinite(values)].max(initial=0)) for values in known)

    @cached_property
    def last_size(self) -> int:
        """The last size of the curves: beyond the largest radius, and not before the largest attack."""
        attacked = (math.ceil(size) for size, _ in self.context.attacked)
        return min(max([self.largest_radius + 1, *attacked]), LONGEST_CURVE)

    @cached_property
    def shown_size(self) -> int:
        """The last size of the axes: that of the curves, unless a few targets alone would stretch them.

        A hub can be certified against hundreds of edges where all other labels fall below ten. If all but one in a
        hundred correct targets, of all and of each class, fall before half of the curve, axes end there.
        """
        radii = [values for values in (self.certificate.radius, self.structure, self.added) if values is not None]
        groups = [self.judged & self.counted]
        if self.truth is not None:
            groups += [groups[0] & (self.truth == k) for k in range(len(self.support))]
        attacked = (math.ceil(size) for size, _ in self.context.attacked)
        end = max([SHORTEST_AXIS, *attacked, *(_last_of_most(values[group]) for values in radii for group in groups)])
        return self.last_size if 2 * end >= self.last_size else end

    @cached_property
    def certified(self) -> Shares:
        """Certified accuracy (or share) over the size of the attack."""
        return over_size(self.certificate.radius[self.judged], self.counted[self.judged], self.last_size)

    def measures(self, size: float) -> Measures:
        """Returns the measures of each class at a size, -1 for no attack. It needs the truth."""
        assert self.truth is not None
        possible = self.certificate.possible(size)
        more = max(0, int(self.truth.max()) + 1 - possible.shape[1])  # classes that the model does not know
        return measured(np.pad(possible, ((0, 0), (0, more))), self.truth)

    @cached_property
    def support(self) -> IntArray:
        """Number of targets of each class, shape ``[C]``; empty if no truth is known."""
        return np.zeros(0, dtype=np.int64) if self.truth is None else np.bincount(self.truth[self.truth >= 0])

    @cached_property
    def rare(self) -> int | None:
        """The class of the headline: the rarest one, if it is rare and the truth is known."""
        return rare_class(self.support)

    @cached_property
    def recalls(self) -> dict[int, Shares]:
        """Certified recall over the size of the attack, by class, the rarest first; empty if no truth is known."""
        rarest_first = np.argsort(self.support, kind="stable")
        curves = {}
        for k in rarest_first.tolist():
            if self.support[k]:
                of_class = self.truth == k
                curves[k] = over_size(self.certificate.radius[of_class], self.counted[of_class], self.last_size)
        return curves

    @cached_property
    def certified_additions(self) -> Shares | None:
        """Certified accuracy (or share) over the number of additions."""
        return self._over_size(self.added)

    @cached_property
    def certified_structure(self) -> Shares | None:
        """Certified accuracy (or share) if edges and nodes are only added and deleted."""
        return self._over_size(self.structure)

    def _over_size(self, values: FloatArray | IntArray | None) -> Shares | None:
        if values is None:
            return None
        return over_size(values[self.judged], self.counted[self.judged], self.last_size)

    @cached_property
    def possible(self) -> list[tuple[str, bool, dict[float, float]]]:
        """Names, whether it is a bound, and shares by size of what is possible, as far as the curves reach."""
        if self.truth is None:
            return []
        curves = []
        for name, pairs in self.context.possible.items():
            shares = {float(size): share for size, share in sorted(pairs) if size <= self.last_size}
            if shares:
                curves.append((name, name.startswith(AT_MOST), shares))
        return curves

    @cached_property
    def unit_curves(self) -> dict[str, Shares]:
        """Certified accuracy (or share) over the number of edits, by kind of edit of the context's ``unit``."""
        if self.context.unit is None:
            return {}
        curves = {}
        for kind, most in self.context.unit.withstood.items():
            last = int(most[np.isfinite(most)].max(initial=0)) + 1
            curves[kind] = over_size(most[self.judged], self.counted[self.judged], last)
        return curves

    @cached_property
    def certified_over_degree(self) -> Shares | None:
        """Certified accuracy (or share) over size divided by degree, if degrees are known."""
        if self.degree is None or not (self.degree[self.judged] > 0).any():
            return None
        return over_degree(self.certificate.radius[self.judged], self.degree[self.judged], self.counted[self.judged])


def _last_of_most(radius: FloatArray | IntArray) -> int:
    """Returns one more than the largest finite radius, without those of one target in a hundred, at least one."""
    ordered = np.sort(radius[np.isfinite(radius)])
    if len(ordered) >= SMALL_GROUP:
        ordered = ordered[: len(ordered) - max(1, len(ordered) // 100)]
    return int(ordered.max(initial=0)) + 1


def summarise(certificate: "Certificate", context: ReportContext | None) -> Summary:
    """Computes what is shown about a certificate. The default context is empty.

    Raises:
        SettingsError: The context does not fit the certificate.
    """
    context = context or ReportContext()
    if context.class_names is None and certificate.class_names:
        context = replace(context, class_names=certificate.class_names)
    n, num_classes = certificate.counts.shape
    if context.class_names is not None and len(context.class_names) != num_classes:
        raise SettingsError(
            f"ReportContext(class_names=…) has {len(context.class_names)} class names: the votes are for "
            f"{num_classes} classes."
        )
    truth = per_target("truth", certificate.truth if context.truth is None else context.truth, n)
    counted = np.ones(n, dtype=bool)
    judged = np.ones(n, dtype=bool)
    if truth is not None and not (truth >= 0).any():
        truth = None
    if truth is not None:
        counted = truth == certificate.label
        judged = truth >= 0
    return Summary(
        certificate=certificate,
        context=context,
        truth=truth,
        degree=per_target("degree", certificate.degree if context.degree is None else context.degree, n),
        counted=counted,
        judged=judged,
        added=_additions_withstood(certificate),
        structure=certificate.evidence.structure_radius(),
        recorded=_references(certificate, context, truth),
        by_class=_by_class(certificate, context, truth),
    )


def _additions_withstood(certificate: "Certificate") -> FloatArray | None:
    """Returns how many additions of the kind that the evidence bounds are certified, shape ``[n]``."""
    field = certificate.evidence.bounded_addition()
    if field == "add_edges":
        return certificate.new_neighbours
    if field == "inject_nodes":
        return certificate.max_certified("inject_nodes", edges_per_injected=math.inf)
    return None


def _references(
    certificate: "Certificate", context: ReportContext, truth: IntArray | None
) -> tuple[tuple[str, str, float], ...]:
    values = {key: getattr(context, key) for key in REFERENCES}
    no_edge = certificate.evidence.no_edge_labels()
    if values["no_edge"] is None and truth is not None and no_edge is not None and len(truth):
        values["no_edge"] = float((no_edge == truth).sum() / (truth >= 0).sum())
    if values["majority"] is None and truth is not None:
        values["majority"] = float(np.bincount(truth[truth >= 0]).max() / (truth >= 0).sum())
    names = REFERENCES_OF_PAIRS if certificate.claim.task == "pair" else REFERENCES
    return tuple((key, names[key], float(value)) for key, value in values.items() if value is not None)


def _by_class(
    certificate: "Certificate", context: ReportContext, truth: IntArray | None
) -> dict[str, Sequence[tuple[float, float]]]:
    by_class = dict(context.by_class)
    no_edge = certificate.evidence.no_edge_labels()
    if truth is None or no_edge is None or "no_edge" in by_class:
        return by_class
    num_classes = max(certificate.counts.shape[1], int(truth.max()) + 1)
    holds = np.ones(len(truth), dtype=bool)
    alone = measured(own_or_any(no_edge, holds, num_classes), truth)
    by_class["no_edge"] = list(zip(alone.recall.tolist(), alone.false_positive_rate.tolist(), strict=True))
    return by_class
