"""``ac.backtest``: a defence as it would have done, month after month, with labels that come late.

For times t0 < t1 < t2 … a model is trained with what was known at each of them, its threshold is
chosen, and the graph of the next time is certified. Beside it stand the first model as it is, and the
first model with a threshold that is chosen anew, on the same targets. Monitors bet, case by case, that
the first threshold keeps its rates. Nothing that became known later is used before it was known, but
to measure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from agnncert.certificates.class_names import class_word, stated_names
from agnncert.certificates.votes import IntArray
from agnncert.certifier import certify, choose_threshold
from agnncert.datasets.encoding import encoding_of
from agnncert.datasets.threshold_part import RULE, keep_for_threshold, kept_of
from agnncert.defence import OperatingPoint
from agnncert.errors import SettingsError, suggests_arguments
from agnncert.graphs.targets import CanonicalData
from agnncert.monitoring import Monitor
from agnncert.proving.certificate import Certificate
from agnncert.proving.guaranteed_rate import largest_rate
from agnncert.proving.words import LOWER, UPPER, plain_percent

NEW, FIRST, ANEW = "trained anew", "first model", "first model, threshold anew"
FALSE_POSITIVES, MISSES, ALERTS = "false positives", "misses", "alerts"
SURE = 0.95

Load = Callable[..., Any]  # load(as_of=…, encode=…) -> Data, such as a partial ac.load_events
Train = Callable[[Any], tuple[Any, Any]]  # data -> model, defence


class _Trained(NamedTuple):
    """A model with its threshold, and the ids of all accounts that it knows."""

    model: Any
    defence: Any
    point: OperatingPoint
    encode: Any
    known: frozenset[str]


@dataclass(frozen=True)
class Period:
    """What one model did in one period.

    Attributes:
        until: The time until which it knew anything.
        to: The end of the period: the graph of this time was certified.
        model: "trained anew", "first model" or "first model, threshold anew".
        targets: Accounts that were judged, none of which any of the models of this period was trained on.
        positives: How many of them turned out to be of the class to be found.
        alerts: How many got its label.
        recall: Share of the positives that were found.
        false_positive_rate: Share of the others that were flagged.
        certified_recall: Share of the positives that are found whatever attack of the size happens.
        by_type: Recall per typology, with the number of positives of each.
    """

    until: str
    to: str
    model: str
    targets: int
    positives: int
    alerts: int
    recall: float
    false_positive_rate: float
    certified_recall: float
    by_type: Mapping[str, tuple[float, int]]


@dataclass(frozen=True)
class Backtest:
    """What ``ac.backtest`` found; ``print`` shows it as a table.

    Attributes:
        positive: What the class to be found is called.
        requested: What was requested of the threshold, in words.
        size: The size for which recall is certified.
        periods: One entry for each period and model.
        monitors: For the end of each period the bets that the first threshold keeps its rates: of false positives,
            misses and alerts. In each period every account counts once, and the confidence is that of all periods.
    """

    positive: str
    requested: str
    size: float
    periods: tuple[Period, ...]
    monitors: Mapping[str, Mapping[str, Monitor]]

    @property
    def alarms(self) -> list[tuple[str, str]]:
        """In which period, named by its end, the first threshold did not keep which rate."""
        return [
            (to, name)
            for to, of_period in self.monitors.items()
            for name, each in of_period.items()
            if each.alarm_at is not None
        ]

    def to_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "positive": self.positive,
            "requested": self.requested,
            "size": self.size,
            "periods": [asdict(each) for each in self.periods],
            "monitors": {
                to: {name: each.to_json() for name, each in of_period.items()}
                for to, of_period in self.monitors.items()
            },
            "alarms": [{"to": to, "rate": name} for to, name in self.alarms],
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Returns titles and rows as text."""
        titles = ["from", "to", "model", "targets", self.positive, "alerts", "false positives", "recall",
                  f"certified at {self.size:g}"]  # fmt: skip
        types = sorted({name for each in self.periods for name in each.by_type})
        rows = [
            [
                each.until, each.to, each.model, f"{each.targets:,}", f"{each.positives:,}", f"{each.alerts:,}",
                plain_percent(each.false_positive_rate, UPPER), plain_percent(each.recall, LOWER),
                plain_percent(each.certified_recall, LOWER),
                *(_of_type(each.by_type.get(name)) for name in types),
            ]
            for each in self.periods
        ]  # fmt: skip
        return [*titles, *types], rows

    def __str__(self) -> str:
        titles, rows = self.table()
        widths = [max(len(row[k]) for row in (titles, *rows)) for k in range(len(titles))]
        lines = [f"Requested for {self.positive}: {self.requested}."]
        for row in (titles, *rows):
            cells = [cell.ljust(width) if k < 3 else cell.rjust(width)
                     for k, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
            lines.append("  ".join(cells).rstrip())
        lines += [f"ALARM of the first model at {to}, {name}: {self.monitors[to][name]}" for to, name in self.alarms]
        return "\n".join(lines if self.alarms else [*lines, "The first model keeps its rates: no alarm in any period."])


def _of_type(found: tuple[float, int] | None) -> str:
    return "–" if found is None else f"{plain_percent(found[0], LOWER)} of {found[1]:,}"


@suggests_arguments
def backtest(  # noqa: PLR0913 - every setting is a keyword
    load: Load,
    times: Sequence[str],
    train: Train,
    *,
    false_positive_rate: float,
    confidence: float | None = None,
    keep: float | None = None,
    positive: int | str | None = None,
    size: float = 1,
    delay: float = 0,
    typology: Mapping[str, str] | None = None,
) -> Backtest:
    """Replays the past: train until t, choose the threshold, certify the graph of the next time, and so on.

    Args:
        load: Returns the graph as of a time: ``load(as_of=…, encode=…)``. A ``functools.partial`` of ``load_events``
            with the folder and the columns is one; ``label_time=`` says when labels became known, and ``split_by="id"``
            keeps accounts in their parts. ``load(as_of=None, encode=…)`` has the labels of all, to measure with.
        times: At least two times, in order, as ``load`` understands them.
        train: Trains on a graph and returns model and defence.
        false_positive_rate: What the threshold is chosen for.
        confidence: With which probability that is to be guaranteed; ``None`` for an estimate.
        keep: Share of the known honest accounts that is kept for the threshold. Needed for ``confidence``.
        positive: The class to be found. Defaults to the rarest.
        size: The size of attacks for which recall is certified. Defaults to 1.
        delay: Days, or units of time, by which labels are used later than ``load`` knows them. Defaults to 0.
        typology: What kind of case each positive account is, by its id as text. Recall is counted for each kind.

    Raises:
        SettingsError: There are fewer than two times, or settings make no sense.
        DatasetError: Labels or parts are missing, or nobody is left to measure with.
    """
    listed = [str(time) for time in times]
    if len(listed) < 2:
        raise SettingsError(f"times={listed}: a backtest needs at least two, to train until one and look at the next.")
    if confidence is not None and keep is None:
        raise SettingsError("confidence= needs accounts that are kept for the threshold: pass keep=0.5.")
    request: dict[str, Any] = {"false_positive_rate": false_positive_rate, "confidence": confidence}
    desk = _Desk(load, train, request, keep, positive, delay)
    periods: list[Period] = []
    monitors: dict[str, dict[str, Monitor]] = {}
    sure = 1 - (1 - (confidence or SURE)) / (len(listed) - 1)  # so that all periods together have the confidence
    first: _Trained | None = None
    for until, to in pairwise(times):
        new = desk.trained(until)
        models = {NEW: new}
        if first is not None:
            models |= {FIRST: first, ANEW: desk.with_new_threshold(first, until)}
        first = first or new
        unknown_to = frozenset().union(*(each.known for each in models.values()))
        for name, each in models.items():
            judged = desk.judged(each, to, unknown_to)
            period = _period(judged, each.point.positive, size, typology or {})
            periods.append(replace(period, until=str(until), to=str(to), model=name))
            if each is first:
                monitors[str(to)] = _monitors(each.point, false_positive_rate, sure)
                _feed(monitors[str(to)], judged, each.point.positive)
    assert first is not None
    record = first.point.threshold
    return Backtest(
        class_word(first.point.class_names, first.point.positive),
        "" if record is None else record.request(),
        size,
        tuple(periods),
        monitors,
    )


@dataclass(frozen=True)
class _Desk:
    """How models are made and judged; the fields are arguments of :func:`backtest`."""

    load: Load
    train: Train
    request: Mapping[str, Any]
    keep: float | None
    positive: int | str | None
    delay: float

    def seen(self, until: str, encode: Any = None) -> Any:
        """Returns the graph at a time, with the labels that were known ``delay`` earlier."""
        data = self.load(as_of=until, **_given(encode))
        if self.delay:
            early = self.load(as_of=earlier(until, self.delay), **_given(encoding_of(data)))
            known = {name for name, k in zip(_ids(early), early.y.tolist(), strict=True) if k >= 0}
            late = torch.tensor([name not in known for name in _ids(data)])
            data.y = torch.where(late, -1, data.y)
            for part in ("train_mask", "val_mask", "test_mask"):
                data[part] = data[part] & ~late
        if self.keep is None:
            return data
        return keep_for_threshold(data, self.keep, positive=self.positive)

    def trained(self, until: str) -> _Trained:
        """Trains a model with what was known at a time, and chooses its threshold."""
        data = self.seen(until)
        model, defence = self.train(data)
        return self._with_threshold(model, defence, data, until)

    def with_new_threshold(self, trained: _Trained, until: str) -> _Trained:
        """Chooses the threshold of earlier weights anew, with what was known at a time."""
        data = self.seen(until, trained.encode)
        rule = getattr(data, RULE, None)
        if rule is None:  # known accounts may have moved into its validation part that it was trained on
            moved = torch.tensor([name in trained.known for name in _ids(data)])
            data.val_mask = data.val_mask & ~moved if bool((data.val_mask & ~moved).any()) else data.val_mask
        anew = self._with_threshold(trained.model, trained.defence, data, until)
        return anew._replace(known=trained.known | anew.known)

    def _with_threshold(self, model: Any, defence: Any, data: Any, until: str) -> _Trained:
        point = choose_threshold(
            model, data, defence, positive=self.positive, as_of=str(until), **self.request
        )  # fmt: skip
        is_known = data.train_mask | data.val_mask
        kept = kept_of(data)
        if kept is not None:
            is_known = is_known | kept
        known = frozenset(name for name, yes in zip(_ids(data), is_known.tolist(), strict=True) if yes)
        return _Trained(model, defence, point, encoding_of(data), known)

    def judged(self, trained: _Trained, to: str, unknown_to: frozenset[str]) -> Certificate:
        """Certifies, on the graph of a time, all accounts whose class is known in the end and was not used."""
        data = self.load(as_of=to, **_given(trained.encode))
        final = self.load(as_of=None, **_given(trained.encode))
        truth = {
            name: stated_names(final)[k] if stated_names(final) else k
            for name, k in zip(_ids(final), final.y.tolist(), strict=True)
            if k >= 0
        }
        names = trained.point.class_names
        number_of = {name: k for k, name in enumerate(names)} if names else {k: k for k in truth.values()}
        ids = _ids(data)
        rows = [row for row, name in enumerate(ids) if name not in unknown_to and truth.get(name) in number_of]
        if not rows:
            raise SettingsError(f"no account is left to measure with at {to}: all of them were used in training.")
        data.y = None
        certificate = certify(trained.point.model, CanonicalData.of(data), trained.point, np.array(rows))
        known = np.array([number_of[truth[ids[row]]] for row in rows], dtype=np.int64)
        return replace(certificate, truth=known)


def _given(encode: Any) -> dict[str, Any]:
    return {} if encode is None else {"encode": encode}


def _ids(data: Any) -> list[str]:
    """Returns the ids of the nodes as text; row numbers if there are none."""
    ids = getattr(data, "node_id", None)
    if ids is None:
        return [str(row) for row in range(int(data.num_nodes))]
    return [str(name) for name in (ids.tolist() if hasattr(ids, "tolist") else ids)]


def earlier(time: str, delay: float) -> str:
    """Returns a time that lies some days, or units of time, earlier.

    Example:
        >>> earlier("2026-03-10", 14), earlier("30", 2.5)
        ('2026-02-24', '27.5')
    """
    try:
        return f"{float(time) - delay:g}"
    except ValueError:
        moment = np.datetime64(time) - np.timedelta64(round(delay * 86_400), "s")
    text = str(moment)
    return text.removesuffix("T00:00:00") if "T" not in time else text


def _period(judged: Certificate, positive: int, size: float, typology: Mapping[str, str]) -> Period:
    """Returns what one model did in one period, whose times are left open."""
    truth = np.asarray(judged.truth)
    clean = judged.measures(-1)
    is_positive = truth == positive
    found = judged.label == positive
    kinds = np.array([typology.get(str(target), "") for target in judged.target.tolist()])
    by_type = {
        str(kind): (float(found[is_positive & (kinds == kind)].mean()), int((is_positive & (kinds == kind)).sum()))
        for kind in np.unique(kinds[is_positive]).tolist()
        if kind
    }
    return Period(
        until="",
        to="",
        model="",
        targets=len(truth),
        positives=int(is_positive.sum()),
        alerts=int(found.sum()),
        recall=float(clean.recall[positive]),
        false_positive_rate=float(clean.false_positive_rate[positive]),
        certified_recall=float(judged.measures(size).recall[positive]),
        by_type=by_type,
    )


def _monitors(point: OperatingPoint, rate: float, sure: float) -> dict[str, Monitor]:
    """Returns bets against the requested rate, and against misses and alerts as validation had them, at most."""
    monitors = {FALSE_POSITIVES: Monitor(rate, sure)} if rate else {}
    measured = point.measures
    positives = int(measured.support[point.positive])
    missed = positives - int(measured.true_positives[point.positive])
    for name, hits, cases in ((MISSES, missed, positives), (ALERTS, point.alerts, measured.num_targets)):
        expected = largest_rate(hits, cases, SURE) if cases else 1.0
        if expected < 1:
            monitors[name] = Monitor(expected, sure)
    return monitors


def _feed(monitors: Mapping[str, Monitor], judged: Certificate, positive: int) -> None:
    """Notes the cases of a period, in an order that says nothing about them."""
    truth: IntArray = np.asarray(judged.truth)
    for row in np.random.default_rng(0).permutation(len(truth)).tolist():
        is_found = bool(judged.label[row] == positive)
        is_positive = bool(truth[row] == positive)
        if ALERTS in monitors:
            monitors[ALERTS].note(is_found)
        if is_positive and MISSES in monitors:
            monitors[MISSES].note(not is_found)
        if not is_positive and FALSE_POSITIVES in monitors:
            monitors[FALSE_POSITIVES].note(is_found)
