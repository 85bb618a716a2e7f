"""``ComparedControls``: a certified model and its controls, on the same targets and at the same operating point."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tabulate import tabulate

from agnncert.certificates.class_names import class_word
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.controls.operating_point import (
    alerts_like,
    average_precision,
    interval_of_mean,
    roc_auc,
    variance_of_difference,
)
from agnncert.errors import SettingsError
from agnncert.proving.words import LOWER, UPPER, percent, whole
from agnncert.storage import visible

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate

CERTIFIED = "certified model"
LONGEST_NAME = 80
LEAD_TITLE = "certified model better by (95 % interval)"
_READS = {True: "yes", False: "no", None: "not said"}
_VERDICTS = {
    True: "The graph pays off here",
    False: "The graph does not pay off here",
    None: "It is unclear whether the graph pays off here",
}


@dataclass(frozen=True, eq=False)
class Control:
    """A model, or a rule, that a certified model is compared with. Nothing is proved about it.

    Attributes:
        name: What it is called.
        score: Two classes: a score of each target, larger for the class ``of_class``, NaN where there is none.
        label: More than two classes: the class of each target, negative where there is none. Give this or the scores.
        of_class: The class that scores are of. Defaults to 1.
        reads_graph: Whether it reads edges or other nodes, so that an attack on the graph may change it. The default
            None says that nobody knows: then it is no control without a graph.
    """

    name: str
    score: FloatArray | None = None
    label: IntArray | None = None
    of_class: int = 1
    reads_graph: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", visible(self.name)[:LONGEST_NAME])
        if (self.score is None) == (self.label is None):
            raise SettingsError(f"the control {self.name!r} has scores, or labels: give one of the two.")
        if self.score is not None:
            object.__setattr__(self, "score", np.asarray(self.score, dtype=np.float64).reshape(-1))
        else:
            object.__setattr__(self, "label", np.asarray(self.label, dtype=np.int64).reshape(-1))
        if self.of_class not in (0, 1):
            raise SettingsError(f"the scores of {self.name!r} are of class {self.of_class}: expected 0 or 1.")

    @property
    def num_targets(self) -> int:
        """Number of targets, those without a score or label among them."""
        values = self.label if self.score is None else self.score
        assert values is not None
        return len(values)

    def towards(self, positive: int) -> FloatArray:
        """Returns scores that are larger for one of two classes, NaN where there is none, shape ``[n]``."""
        if self.score is not None:
            return self.score if positive == self.of_class else -self.score
        assert self.label is not None
        return np.where(self.label < 0, np.nan, self.label == positive)


class Interval(NamedTuple):
    """A difference to the certified model, in its favour where it is positive, and its 95 % interval."""

    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class ControlRow:
    """One model in the comparison.

    Attributes:
        name: What it is called.
        reads_graph: Whether it reads edges or other nodes; None if nobody said so.
        proved: Whether something is proved about it under attack.
        num_targets: Targets with a true class that it has a score or label for.
        value: Recall at the operating point; accuracy if there are more than two classes.
        false_positive_rate: Share of the other class that get the positive label; NaN for more than two classes.
        alerts: Targets that get the positive label; NaN for more than two classes.
        accuracy: Share of right labels at the operating point.
        auc: Area under the ROC curve; NaN if there are no scores.
        average_precision: Average precision; NaN if there are no scores.
        lead: How much better the certified model is on these targets. None for the certified model itself.
    """

    name: str
    reads_graph: bool | None
    proved: bool
    num_targets: int
    value: float
    false_positive_rate: float = math.nan
    alerts: float = math.nan
    accuracy: float = math.nan
    auc: float = math.nan
    average_precision: float = math.nan
    lead: Interval | None = None


@dataclass(frozen=True)
class ComparedControls:
    """A certified model and its controls at the same operating point; ``print`` shows the sentence and the table.

    Attributes:
        positive: The class that is to be found. None for more than two classes, where accuracies are compared.
        positive_name: What it is called.
        same: What is the same for all: "false positives" or "alerts". Empty where accuracies are compared.
        certified: The certified model.
        controls: The controls, the best first.
        given: The controls with their scores, as reports take them.
    """

    positive: int | None
    positive_name: str
    same: str
    certified: ControlRow
    controls: tuple[ControlRow, ...]
    given: tuple[Control, ...] = ()

    @property
    def best_without_graph(self) -> ControlRow | None:
        """The best control that reads no graph, None if there is none."""
        return next((row for row in self.controls if row.reads_graph is False), None)

    @property
    def best_with_graph(self) -> ControlRow | None:
        """The best control that reads the graph, or may; None if there is none."""
        return next((row for row in self.controls if row.reads_graph is not False), None)

    @property
    def pays(self) -> bool | None:
        """Whether the graph pays off: None if the interval of the difference leaves it open, or nothing is compared."""
        best = self.best_without_graph
        if best is None or best.lead is None or best.lead.low <= 0 <= best.lead.high:
            return None
        return best.lead.low > 0

    @property
    def sentence(self) -> str:
        """Says whether the graph pays off, against the best control without one. Empty if there is none."""
        best = self.best_without_graph
        if best is None or best.lead is None:
            return ""
        own = best.value + best.lead.difference  # on the targets that both have
        return (
            f"{_VERDICTS[self.pays]}: {self._point}the certified model {self._done(own)}, and the best control without "
            f"a graph ({best.name}) {percent(best.value, LOWER)}{self._on(best)}, whatever happens to the edges. "
            f"{_points(best.lead)}."
        )

    @property
    def further(self) -> str:
        """Says what the best model does that reads the graph and has no proof. Empty if there is none."""
        best = self.best_with_graph
        if best is None:
            return ""
        graph = "With the graph and without" if best.reads_graph else "Without"
        return f"{graph} any proof: {best.name} {percent(best.value, LOWER)}{self._on(best)}."

    @property
    def _point(self) -> str:
        if not self.same:
            return ""
        if self.same == "alerts":
            return f"with {whole(self.certified.alerts)} alerts "
        return f"at {percent(self.certified.false_positive_rate, UPPER)} false positives "

    def _done(self, value: float) -> str:
        if self.positive is None:
            return f"is right for {percent(value, LOWER)}"
        return f"detects {percent(value, LOWER)} of {self.positive_name}"

    def _on(self, row: ControlRow) -> str:
        if row.num_targets == self.certified.num_targets:
            return ""
        return f" on the {whole(row.num_targets)} of {whole(self.certified.num_targets)} targets that it has scores for"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Returns titles and rows for people, the certified model first."""
        if self.positive is None:
            titles = ["model", "reads the graph", "accuracy", LEAD_TITLE]
        else:
            found = f"{self.positive_name} found"
            titles = ["model", "reads the graph", found, "false positives", "alerts", "ROC AUC", "average precision"]
            titles.append(LEAD_TITLE)
        rows = []
        for row in (self.certified, *self.controls):
            cells = [f"{row.name}{self._on(row)}", _READS[row.reads_graph], percent(row.value, LOWER)]
            if self.positive is not None:
                cells += [percent(row.false_positive_rate, UPPER), f"{row.alerts:,.0f}"]
                cells += [_three_digits(row.auc), _three_digits(row.average_precision)]
            cells.append("–" if row.lead is None else _in_short(row.lead))
            rows.append(cells)
        return titles, rows

    def to_json(self) -> dict[str, Any]:
        """Returns the comparison as JSON values: numbers that make no sense are None."""
        models = []
        for row in (self.certified, *self.controls):
            numbers = {name: None if value != value else value for name, value in asdict(row).items()}
            models.append(numbers)
        return {
            "sentence": self.sentence.replace("\u00a0", " "),
            "graph_pays": self.pays,
            "positive": self.positive,
            "same": self.same,
            "models": models,
        }

    def __str__(self) -> str:
        titles, rows = self.table()
        sides = ("left", "left", *("right",) * (len(titles) - 2))
        table = tabulate(rows, titles, tablefmt="plain", colalign=sides, disable_numparse=True)
        lines = [self.sentence, self.further, "", table]
        return "\n".join(lines).strip().replace("\u00a0", " ")


def _points(lead: Interval) -> str:
    """Returns a difference in points in words, with its interval."""
    interval = f"{_signed(lead.low)} to {_signed(lead.high)}"
    points = round(100 * abs(lead.difference), 1)
    place = "ahead" if lead.difference > 0 else "behind"
    said = f"The certified model is {points} points {place}" if points else "There is no difference"
    return f"{said} (95\u00a0% interval {interval})"


def _in_short(lead: Interval) -> str:
    return f"{_signed(lead.difference)} ({_signed(lead.low)} to {_signed(lead.high)})"


def _signed(share: float) -> str:
    """Returns a difference in points with its sign, as ``+1.2`` or ``−0.5``."""
    points = round(100 * share, 1)
    if points == 0:
        return "0.0"
    return f"{'+' if points > 0 else '−'}{abs(points):.1f}"


def _three_digits(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.3f}"


def compare_with(
    certificate: "Certificate",
    controls: Sequence[Control],
    *,
    truth: IntArray | None = None,
    positive: int | None = None,
    alerts: bool = False,
) -> ComparedControls | None:
    """Compares a certified model with controls on the targets whose true class is known.

    Args:
        certificate: The certified model's labels and scores.
        controls: The controls, with a score or label for each target of the certificate.
        truth: True classes. Defaults to those of the certificate.
        positive: Two classes: the one to be found. Defaults to the rarer one, and class 1 if they are as frequent.
        alerts: Whether to compare with the same number of alerts among all targets, instead of the same false positive
            rate. Defaults to False.

    Returns:
        The comparison, or None if no true class is known, or only one occurs among two.

    Raises:
        SettingsError: A control does not fit the certificate.
    """
    truth = certificate.truth if truth is None else truth
    for control in controls:
        if control.num_targets != certificate.num_targets:
            raise SettingsError(
                f"the control {control.name!r} has {control.num_targets:,} values: expected one for each of the "
                f"{certificate.num_targets:,} targets, in the order of certificate.target."
            )
    if truth is None or not (truth >= 0).any():
        return None
    num_classes = certificate.counts.shape[1]
    if num_classes != 2 or truth.max() > 1:
        return _by_accuracy(certificate, controls, truth)
    support = np.bincount(truth[truth >= 0], minlength=2)
    if not support.all():
        return None
    positive = int(support[1] <= support[0]) if positive is None else positive
    return _at_one_point(certificate, controls, _Targets(truth, positive, alerts))


class _Targets(NamedTuple):
    """True classes, which of two is to be found, and what the operating points have in common."""

    truth: IntArray
    positive: int
    same_alerts: bool

    @property
    def is_positive(self) -> BoolArray:
        return np.asarray(self.truth == self.positive)

    @property
    def is_other(self) -> BoolArray:
        return np.asarray((self.truth >= 0) & ~self.is_positive)

    @property
    def group(self) -> BoolArray:
        return np.ones(len(self.truth), dtype=bool) if self.same_alerts else self.is_other

    def of(self, rows: BoolArray) -> "_Targets":
        return self._replace(truth=self.truth[rows])


def _at_one_point(certificate: "Certificate", controls: Sequence[Control], targets: _Targets) -> ComparedControls:
    alerts = certificate.label == targets.positive
    counts = certificate.counts
    score = (counts[:, targets.positive] - counts[:, 1 - targets.positive]).astype(np.float64)
    certified = _measured(CERTIFIED, alerts.astype(np.float64), score, targets)
    rows = []
    for control in controls:
        row = _row_of(control, alerts, targets)
        if row is not None:
            rows.append(row)
    return ComparedControls(
        targets.positive,
        class_word(certificate.class_names or None, targets.positive),
        "alerts" if targets.same_alerts else "false positives",
        replace(certified, proved=True, reads_graph=certificate.evidence.reads_graph),
        tuple(sorted(rows, key=lambda row: -row.value)),
        tuple(controls),
    )


def _row_of(control: Control, alerts: BoolArray, targets: _Targets) -> ControlRow | None:
    """Returns the row of a control at the point of the certified model, on the targets that it has scores for.

    It is None if these are not of both classes.
    """
    score = control.towards(targets.positive)
    has_score = ~np.isnan(score)
    if not (has_score & targets.is_positive).any() or not (has_score & targets.is_other).any():
        return None
    score, alerts, targets = score[has_score], alerts[has_score], targets.of(has_score)
    group, is_positive = targets.group, targets.is_positive
    weight = alerts_like(score, group, float(alerts[group].sum()))
    difference = (alerts - weight)[is_positive]
    variance = variance_of_difference(alerts, score, is_positive, group)
    low, high = interval_of_mean(difference, variance)
    row = _measured(control.name, weight, score, targets)
    return replace(row, reads_graph=control.reads_graph, lead=Interval(float(difference.mean()), low, high))


def _measured(name: str, weight: FloatArray, score: FloatArray, targets: _Targets) -> ControlRow:
    known = targets.truth >= 0
    return ControlRow(
        name,
        reads_graph=True,
        proved=False,
        num_targets=int(known.sum()),
        value=float(weight[targets.is_positive].mean()),
        false_positive_rate=float(weight[targets.is_other].mean()),
        alerts=float(weight.sum()),
        accuracy=float((weight[targets.is_positive].sum() + (1 - weight[targets.is_other]).sum()) / known.sum()),
        auc=roc_auc(score[known], targets.is_positive[known]),
        average_precision=average_precision(score[known], targets.is_positive[known]),
    )


def _by_accuracy(certificate: "Certificate", controls: Sequence[Control], truth: IntArray) -> ComparedControls:
    known = truth >= 0
    is_right = certificate.label == truth
    share = float(is_right[known].mean())
    reads_graph = certificate.evidence.reads_graph
    certified = ControlRow(CERTIFIED, reads_graph, True, int(known.sum()), share, accuracy=share)
    rows = []
    for control in controls:
        if control.label is None or not (known & (control.label >= 0)).any():
            continue
        both = known & (control.label >= 0)
        right = control.label[both] == truth[both]
        difference = is_right[both].astype(np.float64) - right
        low, high = interval_of_mean(difference)
        lead = Interval(float(difference.mean()), low, high)
        share = float(right.mean())
        row = ControlRow(control.name, control.reads_graph, False, int(both.sum()), share, accuracy=share, lead=lead)
        rows.append(row)
    return ComparedControls(None, "", "", certified, tuple(sorted(rows, key=lambda row: -row.value)), tuple(controls))
