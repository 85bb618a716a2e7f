"""Metrics of the service in the text format of Prometheus, with HELP, TYPE and UNIT, and a histogram of latencies."""

import math
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
OTHER_PATH = "other"


class Sample(NamedTuple):
    """One number of a metric, with labels."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        name: Its name without the prefix ``agnncert_``.
        kind: ``"gauge"``, ``"counter"`` or ``"histogram"``.
        help: What it says.
        samples: Its numbers.
        unit: Its unit, which ends its name; empty for counts.
    """

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]
    unit: str = ""

    def lines(self) -> list[str]:
        """Returns the metric as text."""
        name = f"agnncert_{self.name}"
        lines = [f"# HELP {name} {self.help}", f"# TYPE {name} {self.kind}"]
        if self.unit:
            lines.append(f"# UNIT {name} {self.unit}")
        for sample in self.samples:
            lines.append(f"{name}{sample.suffix}{_labels(sample.labels)} {_number(sample.value)}")
        return lines


def gauge(name: str, help: str, value: float, unit: str = "") -> Metric:
    """Returns a metric with one number that goes up and down."""
    return Metric(name, "gauge", help, (Sample(value),), unit)


def counter(name: str, help: str, value: float) -> Metric:
    """Returns a metric with one number that only grows."""
    return Metric(name, "counter", help, (Sample(value),))


def as_text(metrics: Iterable[Metric]) -> str:
    """Returns metrics as Prometheus reads them."""
    return "\n".join(line for metric in metrics for line in metric.lines()) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(value)


@dataclass
class RequestMetrics:
    """Counts requests by address and status, and how long they took.

    Attributes:
        paths: The addresses that are counted by name. Others are counted together, so that nobody can make up labels.
    """

    paths: frozenset[str] = frozenset()
    _statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    _buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    _seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, path: str, status: int, seconds: float) -> None:
        """Counts one request."""
        known = path if path in self.paths else OTHER_PATH
        with self._lock:
            self._statuses[known, status] += 1
            self._buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds += seconds

    def metrics(self) -> list[Metric]:
        """Returns the number of requests, and the histogram of their latencies."""
        with self._lock:
            statuses = dict(self._statuses)
            buckets = list(self._buckets)
            seconds = self._seconds
        counts = tuple(
            Sample(count, {"path": path, "status": str(status)}) for (path, status), count in sorted(statuses.items())
        )
        below = 0
        samples = []
        for limit, number in zip((*BUCKETS, math.inf), buckets, strict=True):
            below += number
            samples.append(Sample(below, {"le": _number(limit)}, "_bucket"))
        samples.append(Sample(round(seconds, 6), suffix="_sum"))
        samples.append(Sample(below, suffix="_count"))
        return [
            Metric("http_requests_total", "counter", "Requests by address and status.", counts),
            Metric(
                "http_request_duration_seconds",
                "histogram",
                "Time from the head of a request to the end of its answer.",
                tuple(samples),
                "seconds",
            ),
        ]
