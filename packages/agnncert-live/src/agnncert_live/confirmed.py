"""What has become known of targets, and whether the rates of a threshold still hold.

Confirmed cases are kept in a file of lines of JSON beside the journal, so that a service that begins
anew goes on where it stopped. Each target counts once, with the label that it had when it was confirmed.
"""

import json
import logging
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

    def summary(self) -> dict[str, Any]:
        """Returns how each rate stands, and which do not hold any more."""
        return {
            **{name: each.to_json() for name, each in self._monitors().items()},
            "alarms": self.alarms,
        }

    def metrics(self) -> list[Metric]:
        """Returns the cases, the hits, what the bets are worth, and the alarms."""
        monitors = self._monitors()

        def gauge(name: str, text: str, value: Callable[[Monitor], float]) -> Metric:
            return labelled_gauge(name, text, (({"rate": of}, value(each)) for of, each in monitors.items()))

        return [
            gauge("confirmed_cases", "Confirmed cases, by what they are watched for.", lambda each: each.cases),
            gauge("confirmed_hits", "Confirmed cases that were false positives, or misses.", lambda each: each.hits),
            gauge("confirmed_wealth", "What a stake of 1 against the rate is worth.", lambda each: each.wealth),
            gauge("rate_alarm", "1 if the rate does not hold any more.", lambda each: int(each.alarm_at is not None)),
        ]
