"""``Service``: applies events and answers questions in JSON terms, without HTTP."""

import logging
import math
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from prometheus_client.core import Metric

from agnncert.certificates.ids import Id
from agnncert.certificates.votes import IntArray
from agnncert.errors import AgnncertError, GraphError, IdError, SettingsError
from agnncert.proving.certificate import Certificate
from agnncert_live.budgets import json_number, read_budget
from agnncert_live.confirmed import Alerts, Case, Confirmed
from agnncert_live.events import Applied, Event, Moved, class_name
from agnncert_live.fields import FieldCertifier
from agnncert_live.graph import LiveGraph
from agnncert_live.metrics import (
    TEXT,
    RequestMetrics,
    as_text,
    counter,
    gauge,
    labelled_gauge,
    process_metrics,
)

log = logging.getLogger(__name__)

MOST_EVENTS = 10_000  # of one batch
LONGEST_ID = 200  # characters
MOST_LISTED = 1_000  # refused events, or moved targets, that one answer lists
REMEMBERED_CHANGES = 500
RECALL_SIZES = (0, 1, 3)  # of attacks, for which the certified recall is stated
ALERT_BELOW = 3  # a radius that falls below this is an alert


class Unreadable:
    """A line of a stream that is no event. It is refused in its turn, with its number."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class ReadEvents(NamedTuple):
    """Events of a request: those that were read, the place of each in the request, and what was refused."""

    events: list[Event]
    places: list[int]
    refused: list[dict[str, Any]]


class TargetNames(NamedTuple):
    """Ids of all targets after this many events."""

    number: int
    names: list[Id]


@dataclass
class Counts:
    """What has happened since the service began, for its metrics."""

    batches: int = 0
    repeated: int = 0
    applied: int = 0
    refused: int = 0
    flipped: int = 0
    questions: int = 0
    dead_letters: int = 0
    seconds: float = 0.0


@dataclass
class Service:
    """A live graph that several clients read and change.

    Attributes:
        live: The live graph.
        reference: The certificate with which decisions are compared, one of the live graph's references; or None.
        name: What the data is called.
        class_names: Names of the classes, if they have any.
        counts: What has happened since the service began.
        began: When it began, by the monotonic clock.
        requests: Requests that were answered, by address and status, and how long they took.
        dead_letters: The file of messages that could not be applied; None if no topic is read.
        confirmed: What has become known of targets, and whether the rates of the threshold still hold; None if the
            decisions are not about a threshold.
        measured: Targets among which recall is measured, such as the test part of a run. None for all with a class,
            which may be those that the model was trained on.
        fields: Certifies nodes from receptive fields that are sent; None if the run cannot.
    """

    live: LiveGraph
    reference: Certificate | None = None
    name: str = "graph"
    class_names: Sequence[str] | None = None
    counts: Counts = field(default_factory=Counts)
    began: float = field(default_factory=time.monotonic)
    requests: RequestMetrics = field(default_factory=RequestMetrics)
    dead_letters: Path | None = None
    confirmed: Confirmed | None = None
    measured: frozenset[Id] | None = None
    fields: FieldCertifier | None = None

    def __post_init__(self) -> None:
        self._changes: deque[dict[str, Any]] = deque(maxlen=REMEMBERED_CHANGES)
        self._lock = threading.Lock()
        self._target_names = TargetNames(-1, [])

    def post(
        self, stated: Sequence[Any], id: str | None = None, first: int = 0, part: int | None = None
    ) -> dict[str, Any]:
        """Applies events. Those that make no sense are refused, one by one, and change nothing.

        A batch may come again under its id, with corrections of what was refused. What was applied is not applied
        again.

        Args:
            stated: Events as JSON objects, which are not trusted.
            id: Names the batch: sent again, it is not applied again.
            first: Number of the first of them, for what is said about refused ones.
            part: Number of the batch in the stream that ``id`` names.

        Raises:
            SettingsError: There are too many, or the id is no text of at most 200 characters.
            JournalError: They cannot be written; nothing has changed.
        """
        if len(stated) > MOST_EVENTS:
            raise SettingsError(f"{len(stated):,} events in one batch: send at most {MOST_EVENTS:,} at a time.")
        begin = time.perf_counter()
        read = _read_events(stated, first)
        name = _batch_name(id, part)
        applied = self.live.apply(read.events, id=name, skip_bad=True, is_whole=not read.refused)
        not_applied = [
            {"event": first + read.places[refused.index], "reason": refused.reason} for refused in applied.refused
        ]
        refused = sorted([*read.refused, *not_applied], key=lambda each: each["event"])
        seconds = time.perf_counter() - begin
        self.note(applied, len(refused), seconds)
        self._log(applied, len(refused), seconds)
        return {
            "number": applied.number,
            "applied": applied.events,
            "known": applied.known,
            "repeated": applied.repeated,
            "refused": refused[:MOST_LISTED],
            "refused_in_all": len(refused),
            "flipped": self._listed(applied.flipped),
            "fell": self._listed(applied.fell_below(ALERT_BELOW)),
        }

    def note(self, applied: Applied, refused: int = 0, seconds: float = 0.0) -> None:
        """Counts a batch that was applied, and remembers the labels that flipped and the radii that fell.

        Args:
            applied: What became of it.
            refused: How many of its events were refused.
            seconds: How long it took; 0 if that is not known.
        """
        with self._lock:
            self.counts.batches += 1
            self.counts.refused += refused
            self.counts.seconds += seconds
            if applied.repeated:
                self.counts.repeated += 1
                return
            self.counts.applied += applied.events
            self.counts.flipped += len(applied.flipped)
            now = round(time.time(), 3)
            for moved in applied.alerts(ALERT_BELOW):
                self._changes.append({"number": applied.number, "time": now, **self._moved(moved)})

    def _log(self, applied: Applied, refused: int, seconds: float) -> None:
        fields_of_log = {
            "number": applied.number,
            "applied": applied.events,
            "repeated": applied.repeated,
            "refused": refused,
            "flipped": len(applied.flipped),
            "seconds": round(seconds, 6),
        }
        log.info("a batch of events", extra=fields_of_log)

    def _listed(self, moved: Iterable[Moved]) -> list[dict[str, Any]]:
        return [self._moved(each) for each in moved][:MOST_LISTED]

    def _moved(self, moved: Moved) -> dict[str, Any]:
        return moved.to_json(self.class_names)

    def _label(self, label: int) -> str | int:
        return class_name(label, self.class_names)

    def decision(self, target: str, budget: dict[str, str]) -> dict[str, Any]:
        """Returns what is proved about a target now, and what it has been through since the reference.

        Args:
            target: Its id.
            budget: Fields of a budget that it should withstand, as text; empty if nobody asks.

        Raises:
            IdError: There is no such target.
            SettingsError: The budget makes no sense.
        """
        self.counts.questions += 1
        asked = read_budget(budget) if budget else None
        decision = self.live[target]
        answer = {
            "target": decision.target,
            "label": self._label(decision.label),
            "truth": None if decision.truth is None else self._label(decision.truth),
            "radius": decision.radius,
            "votes": decision.votes.tolist(),
            "withstands": {kind: json_number(most) for kind, most in decision.withstands.items()},
            "number": self.live.number,
        }
        if asked is not None:
            answer["holds"] = decision.holds_against(asked)
        if self.reference is not None:
            answer["since_reference"] = self._spent(target, self.reference)
        return answer

    def _spent(self, target: str, reference: Certificate) -> dict[str, Any] | None:
        try:
            spent = self.live.spent(target, reference)
        except IdError:
            return None  # it came later
        return {
            "text": str(spent),
            "label": [self._label(label) for label in spent.label],
            "radius": spent.radius,
            "votes_moved": spent.votes_moved,
            "new_neighbours": spent.new_neighbours,
            "withstands_new_neighbours": json_number(spent.withstands_new_neighbours),
            "within": spent.within,
        }

    def closest(self, limit: int) -> list[dict[str, Any]]:
        """Returns the decisions closest to falling, the smallest radius first."""
        self.counts.questions += 1
        with self.live.frozen():  # labels, radii and names of one moment
            radius = self.live.radius
            label = self.live.label
            names = self._names()
        closest = np.argsort(radius, kind="stable")[: max(0, limit)]
        return [
            {"target": names[k], "label": self._label(int(label[k])), "radius": int(radius[k])}
            for k in closest.tolist()
        ]

    def _names(self) -> list[Id]:
        if self._target_names.number != self.live.number:
            self._target_names = TargetNames(self.live.number, self.live.targets.tolist())
        return self._target_names.names

    def changes(self, since: int) -> list[dict[str, Any]]:
        """Returns labels that flipped and radii that fell below 3, after this many events; the last 500 of them."""
        with self._lock:
            return [change for change in self._changes if change["number"] > since]

    def certificate(self) -> bytes:
        """Returns the certificate file of the graph as it is now."""
        certificate = self.live.certificate()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "now.cert"
            certificate.save(path)
            return path.read_bytes()

    def health(self) -> dict[str, Any]:
        """Returns whether events are taken, and how many there have been.

        Raises:
            JournalError: The last events could not be written to the journal, and it cannot be written now either.
        """
        self.live.check_writable()
        return {"ok": True, "events": self.live.number}

    def waiting_letters(self) -> int:
        """Returns how many dead letters wait in their file for somebody to look at them."""
        if self.dead_letters is None or not self.dead_letters.is_file():
            return 0
        with self.dead_letters.open("rb") as file:
            return sum(1 for _ in file)

    def summary(self) -> dict[str, Any]:
        """Returns what it is about, and how large it is now."""
        live = self.live
        return {
            "data": self.name,
            "task": live.task,
            **live.summary,
            "events": live.number,
            "nodes": live.num_nodes,
            "directed_edges": live.num_edges,
            "targets": len(live),
        }

    def metrics(self, content_type: str = TEXT) -> str:
        """Returns the metrics, by default in Prometheus's text format."""
        with self.live.frozen():
            radius = self.live.radius
            label = self.live.label
            truth = np.where(self._is_measured(), self.live.truth, -1)
        live = self.live
        counts = self.counts
        median = float(np.median(radius)) if len(radius) else math.nan
        uptime = round(time.monotonic() - self.began, 3)
        metrics = [
            gauge("nodes", "Nodes of the graph.", live.num_nodes),
            gauge("directed_edges", "Directed edges of the graph.", live.num_edges),
            gauge("targets", "Targets that are kept certified.", len(radius)),
            gauge("targets_uncertified", "Targets about which nothing is proved.", int((radius < 0).sum())),
            gauge("targets_radius_below_3", "Targets with a radius below 3.", int((radius < ALERT_BELOW).sum())),
            gauge("radius_median", "Median of the certified radii.", median),
            self._certified_recall(radius, label, truth),
            gauge("journal_bytes", "Size of the journal.", live.journal_bytes, "bytes"),
            gauge("memory_bytes", "Memory of the process.", _memory(), "bytes"),
            gauge("uptime_seconds", "Time since the service began.", uptime, "seconds"),
            counter("events_total", "Events since the live graph began.", live.number),
            counter("batches_total", "Batches since the service began.", counts.batches),
            counter("repeated_total", "Batches that had been acknowledged before.", counts.repeated),
            counter("applied_total", "Events applied since the service began.", counts.applied),
            counter("refused_total", "Events refused since the service began.", counts.refused),
            counter("dead_letters_total", "Messages that became dead letters since it began.", counts.dead_letters),
            gauge("dead_letters_waiting", "Messages in the file of dead letters.", self.waiting_letters()),
            counter("flipped_total", "Labels that flipped since the service began.", counts.flipped),
            counter("questions_total", "Questions since the service began.", counts.questions),
            counter("seconds_total", "Seconds spent with applying events.", round(counts.seconds, 6), "seconds"),
        ]
        watched = [] if self.confirmed is None else self.confirmed.metrics(self._alerts(label))
        return as_text([*metrics, *watched, *self.requests.metrics(), *process_metrics()], content_type)

    def confirm(self, stated: Any) -> dict[str, Any]:
        """Notes what has become known of some targets. Each target counts once, with the label that it has now.

        Args:
            stated: Objects with a ``target`` and its ``class``, which are not trusted.

        Raises:
            SettingsError: The decisions are not about a threshold, or an object makes no sense; nothing is noted then.
            IdError: There is no such target; nothing is noted then.
        """
        if self.confirmed is None:
            raise SettingsError("these decisions are not about a threshold of choose_threshold: nothing is watched.")
        if not isinstance(stated, list) or len(stated) > MOST_EVENTS:
            raise SettingsError(f'expected {{"confirmed": [...]}}, a list of at most {MOST_EVENTS:,} objects.')
        cases = [self._case(each) for each in stated]
        return self.confirmed.note(cases)

    def _case(self, stated: Any) -> Case:
        """Returns one confirmed case, with the label that its target has now."""
        if not isinstance(stated, dict) or stated.keys() != {"target", "class"}:
            raise SettingsError(f'expected {{"target": ..., "class": ...}}, found {stated!r:.60}.')
        decision = self.live[stated["target"]]
        names = [self._label(k) for k in range(len(decision.votes))]
        if stated["class"] not in names:
            raise SettingsError(f"a target is confirmed as {stated['class']!r:.60}: the classes are {names}.")
        return Case(str(decision.target), names.index(stated["class"]), decision.label)

    def watched(self) -> dict[str, Any]:
        """Returns what has been confirmed, and whether the rates of the threshold still hold."""
        return {} if self.confirmed is None else self.confirmed.summary(self._alerts(self.live.label))

    def _alerts(self, label: IntArray) -> Alerts | None:
        """Returns which share of the targets is flagged, now and in the reference; None without a reference."""
        if self.confirmed is None or self.reference is None or not len(label) or not len(self.reference.label):
            return None
        positive = self.confirmed.threshold.positive
        before = float((self.reference.label == positive).mean())
        return Alerts(before, float((label == positive).mean()), len(label))

    def _is_measured(self) -> Any:
        """Returns which targets recall is measured among, in their order; True for all."""
        if self.measured is None:
            return True
        return np.fromiter((name in self.measured for name in self._names()), dtype=bool)

    def _certified_recall(self, radius: IntArray, label: IntArray, truth: IntArray) -> Metric:
        """Returns which share of each class is found, whatever attack of a size happens."""
        samples = []
        for k in np.unique(truth[truth >= 0]).tolist():
            is_class = truth == k
            for size in RECALL_SIZES:
                is_found = (label == k) & (radius >= size)
                share = float(is_found[is_class].mean())
                samples.append(({"class": str(self._label(k)), "size": str(size)}, round(share, 6)))
        which = "targets" if self.measured is None else "certified targets of the run"
        text = f"Share of the {which} of a class that keep this label under attacks of a size, in units of the radius."
        return labelled_gauge("certified_recall", text, samples)

    def journal(self) -> bytes:
        """Returns a copy of the journal, as it is between two batches.

        Raises:
            JournalError: There is none.
        """
        with tempfile.TemporaryDirectory() as folder:
            return self.live.backup(Path(folder) / "journal").read_bytes()


def _read_events(stated: Sequence[Any], first: int) -> ReadEvents:
    """Reads events from JSON objects, which are not trusted."""
    read = ReadEvents([], [], [])
    for place, stated_event in enumerate(stated):
        try:
            if isinstance(stated_event, Unreadable):
                raise GraphError(stated_event.reason)
            read.events.append(Event.from_json(stated_event))
            read.places.append(place)
        except RecursionError:
            read.refused.append({"event": first + place, "reason": "the event is nested too deeply."})
        except (AgnncertError, TypeError, ValueError, OverflowError) as error:
            read.refused.append({"event": first + place, "reason": str(error)})
    return read


def _batch_name(id: Any, part: int | None) -> str | None:
    """Returns the name under which a batch is remembered: no batch has the name of a part of a stream."""
    if id is None:
        return None
    if not isinstance(id, str) or not 0 < len(id) <= LONGEST_ID:
        raise SettingsError(f"id={id!r:.60}: expected a text of at most {LONGEST_ID} characters.")
    if part is None:
        return f"batch {id}"
    return f"part {part} of {id}"


def _memory() -> int:
    """Returns the bytes of memory that this process uses, or 0 if that cannot be found out."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
