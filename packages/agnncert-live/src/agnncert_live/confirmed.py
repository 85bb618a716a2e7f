"""Whether a threshold still works: by what has become known of targets, and by the number of alerts, without labels.

Confirmed cases are kept in a file of lines of JSON beside the journal, so that a service that begins
anew goes on where it stopped. Each target counts once, with the label that it had when it was confirmed.
"""

import json
import logging
import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client.core import Metric

from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.monitoring import Monitor
from agnncert_live.metrics import labelled_gauge

log = logging.getLogger(__name__)

MORE = 0.2  # of the alerts, more or fewer, from which on there is an alarm


class Case(NamedTuple):
    """A target whose class has become known.

    Attributes:
        target: Its id, as text.
        truth: Its class.
        label: The label that it had.
    """

    target: str
    truth: int
    label: int


@dataclass(frozen=True)
class Alerts:
    """Which share of the targets is flagged. It needs no labels, so it is the first to tell that something changed.

    Attributes:
        before: Share in the reference.
        now: Share now.
        targets: Number of targets now.
    """

    before: float
    now: float
    targets: int

    @property
    def is_alarm(self) -> bool:
        """Whether a fifth more or fewer are flagged, and that by more than three times what chance makes of it."""
        difference = abs(self.now - self.before)
        return difference > MORE * self.before and difference * self.targets > 3 * math.sqrt(self.before * self.targets)

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {"before": self.before, "now": self.now, "targets": self.targets, "alarm": self.is_alarm}


@dataclass
class Confirmed:
    """Confirmed cases, and the monitors that bet against the rates of a threshold.

    Attributes:
        threshold: What was requested of the threshold.
        recall: The recall of the positive class that is to hold; None if none is watched.
        file: Where cases are kept; None to keep none.
    """

    threshold: ThresholdRecord
    recall: float | None = None
    file: Path | None = None
    false_positives: Monitor | None = field(init=False, default=None)
    misses: Monitor | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        confidence = self.threshold.confidence or 0.95
        if self.threshold.false_positive_rate:
            self.false_positives = Monitor(self.threshold.false_positive_rate, confidence)
        if self.recall is not None and 0 < self.recall < 1:
            self.misses = Monitor(1 - self.recall, confidence)
        self._known: set[str] = set()
        self._lock = threading.Lock()
        if self.file is not None and self.file.is_file():
            lines = self.file.read_text("utf-8").splitlines()
            self._feed(Case(*json.loads(line)) for line in lines)

    def note(self, cases: list[Case]) -> dict[str, Any]:
        """Notes cases that were not noted before, on disk first. Returns how it stands."""
        with self._lock:
            new = list({case.target: case for case in cases if case.target not in self._known}.values())
            if self.file is not None and new:
                with self.file.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(case) + "\n" for case in new)
            before = self.alarms
            self._feed(new)
            for name in set(self.alarms) - set(before):
                log.warning("%s: %s", name, self._monitors()[name])
        return {"noted": len(new), **self.summary()}

    def _feed(self, cases: Iterable[Case]) -> None:
        positive = self.threshold.positive
        for case in cases:
            self._known.add(case.target)
            if case.truth == positive and self.misses is not None:
                self.misses.note(case.label != positive)
            elif case.truth != positive and self.false_positives is not None:
                self.false_positives.note(case.label == positive)

    def _monitors(self) -> dict[str, Monitor]:
        named = {"false_positives": self.false_positives, "misses": self.misses}
        return {name: each for name, each in named.items() if each is not None}

    @property
    def alarms(self) -> list[str]:
        """Names of the rates that do not hold any more."""
        return [name for name, each in self._monitors().items() if each.alarm_at is not None]

    def summary(self, alerts: Alerts | None = None) -> dict[str, Any]:
        """Returns how each rate stands, and which do not hold any more."""
        return {
            **{name: each.to_json() for name, each in self._monitors().items()},
            **({} if alerts is None else {"alerts": alerts.to_json()}),
            "alarms": [*self.alarms, *(["alerts"] if alerts is not None and alerts.is_alarm else [])],
        }

    def metrics(self, alerts: Alerts | None = None) -> list[Metric]:
        """Returns the cases, the hits, what the bets are worth, the share of alerts, and the alarms."""
        monitors = self._monitors()
        alarms: list[tuple[dict[str, str], float]] = [
            ({"rate": of}, int(each.alarm_at is not None)) for of, each in monitors.items()
        ]
        shares: list[tuple[dict[str, str], float]] = []
        if alerts is not None:
            alarms.append(({"rate": "alerts"}, int(alerts.is_alarm)))
            shares = [({"when": "reference"}, alerts.before), ({"when": "now"}, alerts.now)]

        def gauge(name: str, text: str, value: Callable[[Monitor], float]) -> Metric:
            return labelled_gauge(name, text, (({"rate": of}, value(each)) for of, each in monitors.items()))

        return [
            gauge("confirmed_cases", "Confirmed cases, by what they are watched for.", lambda each: each.cases),
            gauge("confirmed_hits", "Confirmed cases that were false positives, or misses.", lambda each: each.hits),
            gauge("confirmed_wealth", "What a stake of 1 against the rate is worth.", lambda each: each.wealth),
            labelled_gauge("alerts_share", "Share of the targets that is flagged.", shares),
            labelled_gauge("rate_alarm", "1 if the rate does not hold any more.", alarms),
        ]
