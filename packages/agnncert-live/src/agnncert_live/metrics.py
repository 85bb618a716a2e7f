"""Metrics of the service, in Prometheus's text format or in OpenMetrics. ``prometheus_client`` writes both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

NAMESPACE = "agnncert"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = openmetrics.CONTENT_TYPE_LATEST
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
OTHER_PATH = "other"
_PROCESS = ProcessCollector(registry=None)


def gauge(name: str, help: str, value: float, unit: str = "") -> Metric:
    """Returns a metric with one number that goes up and down."""
    return GaugeMetricFamily(f"{NAMESPACE}_{name}", help, value, unit=unit)


def labelled_gauge(name: str, help: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Metric:
    """Returns a metric with one number for each set of labels."""
    family = GaugeMetricFamily(f"{NAMESPACE}_{name}", help)
    for labels, value in samples:
        family.add_sample(family.name, dict(labels), value)
    return family


def counter(name: str, help: str, value: float, unit: str = "") -> Metric:
    """Returns a metric with one number that only grows. Its name ends with ``_total``."""
    return CounterMetricFamily(f"{NAMESPACE}_{name}", help, value, unit=unit)


@dataclass(frozen=True)
class _Families(Collector):
    families: Sequence[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.families


def as_text(metrics: Iterable[Metric], content_type: str = TEXT) -> str:
    """Returns metrics in one of the two formats."""
    write = openmetrics.generate_latest if content_type == OPEN_METRICS else generate_latest
    written: bytes = write(_Families([*metrics]))
    return written.decode()


def content_type_for(accept: str) -> str:
    """Returns the format that a client asks for with the header ``Accept``."""
    return OPEN_METRICS if "application/openmetrics-text" in accept else TEXT


def process_metrics() -> Iterable[Metric]:
    """Returns processor time, memory and open files, by the names that every service has for them."""
    return _PROCESS.collect()


class RequestMetrics:
    """Counts requests by address and status, and how long they took.

    Attributes:
        paths: The addresses that are counted by name. All others are counted together, so that no client can make up
            labels.
    """

    def __init__(self, paths: frozenset[str] = frozenset()) -> None:
        self.paths = paths
        self._registry = CollectorRegistry()
        self._number = Counter(
            "http_requests",
            "Requests by address and status.",
            ["path", "status"],
            namespace=NAMESPACE,
            registry=self._registry,
        )
        self._seconds = Histogram(
            "http_request_duration",
            "Time from the head of a request to the end of its answer.",
            namespace=NAMESPACE,
            unit="seconds",
            buckets=BUCKETS,
            registry=self._registry,
        )

    def note(self, path: str, status: int, seconds: float) -> None:
        """Counts one request."""
        self._number.labels(path if path in self.paths else OTHER_PATH, str(status)).inc()
        self._seconds.observe(seconds)

    def metrics(self) -> Iterable[Metric]:
        """Returns the number of requests, and the histogram of their latencies."""
        for family in self._registry.collect():
            # Times of creation would be series of their own in the text format, one for each set of labels.
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family
