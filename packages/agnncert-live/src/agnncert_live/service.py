"""``Service``: applies events and answers questions in JSON terms, without HTTP."""

import math
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.errors import AgnncertError, GraphError, IdError, SettingsError
from agnncert.proving.certificate import Certificate
from agnncert_live.events import Applied, Event
from agnncert_live.graph import LiveGraph

MOST_EVENTS = 10_000  # of one batch
LONGEST_ID = 200  # characters
MOST_LISTED = 1_000  # refused events, or moved targets, that one answer lists
REMEMBERED_CHANGES = 500
WATCHED = 3  # a radius that falls below this is worth telling


class Unreadable:
    """A line of a stream that is no event; it is refused in its turn, with its number."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


@dataclass
class Counts:
    """What has happened since the service began, for its metrics."""

    batches: int = 0
    repeated: int = 0
    applied: int = 0
    refused: int = 0
    flipped: int = 0
    questions: int = 0
    seconds: float = 0.0


@dataclass
class Service:
    """A live graph that several clients read and change.

    Attributes:
        live: The live graph.
        reference: The certificate with which decisions are compared, one of the live graph's references; or None.
        name: What the data is called.
        class_names: Names of the classes, if they have any.
    """

    live: LiveGraph
    reference: Certificate | None = None
    name: str = "graph"
    class_names: Sequence[str] | None = None
    counts: Counts = field(default_factory=Counts)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._changes: deque[dict[str, Any]] = deque(maxlen=REMEMBERED_CHANGES)
        self._lock = threading.Lock()
        self._targets: tuple[int, list[Any]] = (-1, [])

    def post(
        self, stated: Sequence[Any], id: str | None = None, first: int = 0, part: int | None = None
    ) -> dict[str, Any]:
        """Applies events; those that make no sense are refused, one by one, and change nothing.

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
        events, places = [], []
        refused: list[dict[str, Any]] = []
        for place, one in enumerate(stated):
            try:
                if isinstance(one, Unreadable):
                    raise GraphError(one.reason)
                events.append(Event.from_json(one))
                places.append(place)
            except RecursionError:
                refused.append({"event": first + place, "reason": "the event is nested too deeply."})
            except (AgnncertError, TypeError, ValueError, OverflowError) as error:
                refused.append({"event": first + place, "reason": str(error)})
        applied = self.live.apply(events, id=_batch_name(id, part), skip_bad=True)
        refused += [{"event": first + places[one.index], "reason": one.reason} for one in applied.refused]
        self._note(applied, len(refused), time.perf_counter() - begin)
        return {
            "number": applied.number,
            "applied": applied.events,
            "repeated": applied.repeated,
            "refused": sorted(refused, key=lambda one: one["event"])[:MOST_LISTED],
            "refused_in_all": len(refused),
            "flipped": [self._moved(one) for one in applied.flipped][:MOST_LISTED],
            "fell": [self._moved(one) for one in applied.fell_below(WATCHED)][:MOST_LISTED],
        }

    def _note(self, applied: Applied, refused: int, seconds: float) -> None:
        with self._lock:
            self.counts.batches += 1
            self.counts.repeated += applied.repeated
            self.counts.applied += 0 if applied.repeated else applied.events
            self.counts.refused += refused
            self.counts.flipped += len(applied.flipped)
            self.counts.seconds += seconds
            told = {one.target: one for one in (*applied.fell_below(WATCHED), *applied.flipped)}
            for one in told.values():
                self._changes.append({"number": applied.number, "time": round(time.time(), 3), **self._moved(one)})

    def _moved(self, one: Any) -> dict[str, Any]:
        labels = [None if label is None else self._label(label) for label in one.label]
        return {"target": one.target, "label": labels, "radius": list(one.radius), "flipped": one.flipped}

    def _label(self, label: int) -> Any:
        return self.class_names[label] if self.class_names and label < len(self.class_names) else label

    def decision(self, target: str, budget: dict[str, str]) -> dict[str, Any]:
        """What is proved about a target now, and what it has been through since the reference.

        Args:
            target: Its id.
            budget: Fields of a budget that it should withstand, as text; empty if nobody asks.

        Raises:
            IdError: There is no such target.
            SettingsError: The budget makes no sense.
        """
        self.counts.questions += 1
        asked = _budget(budget) if budget else None
        found = self.live[target]
        answer = {
            "target": found.target,
            "label": self._label(found.label),
            "truth": None if found.truth is None else self._label(found.truth),
            "radius": found.radius,
            "votes": found.votes.tolist(),
            "withstands": {kind: _number(most) for kind, most in found.withstands.items()},
            "number": self.live.number,
        }
        if asked is not None:
            answer["holds"] = found.holds_against(asked)
        if self.reference is not None:
            answer["since_reference"] = self._spent(target)
        return answer

    def _spent(self, target: str) -> dict[str, Any] | None:
        assert self.reference is not None
        try:
            spent = self.live.spent(target, self.reference)
        except IdError:
            return None  # it came later
        return {
            "text": str(spent),
            "label": [self._label(label) for label in spent.label],
            "radius": spent.radius,
            "votes_moved": spent.votes_moved,
            "new_neighbours": spent.new_neighbours,
            "withstands_new_neighbours": _number(spent.withstands_new_neighbours),
            "within": spent.within,
        }

    def closest(self, limit: int) -> list[dict[str, Any]]:
        """The decisions closest to falling: smallest radius first."""
        self.counts.questions += 1
        with self.live._lock:  # labels, radii and names of one moment
            radius, label, names = self.live.radius, self.live.label, self._names()
        first = np.argsort(radius, kind="stable")[: max(0, limit)]
        return [
            {"target": names[k], "label": self._label(int(label[k])), "radius": int(radius[k])} for k in first.tolist()
        ]

    def _names(self) -> list[Any]:
        number, names = self._targets
        if number != self.live.number:
            names = self.live.targets.tolist()
            self._targets = self.live.number, names
        return names

    def changes(self, since: int) -> list[dict[str, Any]]:
        """Labels that flipped and radii that fell below 3, after so many events; the last 500 of them."""
        with self._lock:
            return [one for one in self._changes if one["number"] > since]

    def certificate(self) -> bytes:
        """The certificate file of the graph as it is now."""
        certificate = self.live.certificate()
        with tempfile.TemporaryDirectory() as folder:
            certificate.save(Path(folder) / "now.cert")
            return (Path(folder) / "now.cert").read_bytes()

    def summary(self) -> dict[str, Any]:
        """What it is about, and how large it is now."""
        live = self.live
        return {
            "data": self.name, "task": live.task, "division": str(live.division), "events": live.number,
            "nodes": live.num_nodes, "directed_edges": live.num_edges, "targets": len(live),
        }  # fmt: skip

    def metrics(self) -> str:
        """The same for Prometheus."""
        radius, counts = self.live.radius, self.counts
        gauges = {
            "nodes": self.live.num_nodes,
            "directed_edges": self.live.num_edges,
            "targets": len(radius),
            "targets_uncertified": int((radius < 0).sum()),
            "targets_radius_below_3": int((radius < WATCHED).sum()),
            "radius_median": float(np.median(radius)) if len(radius) else math.nan,
            "memory_bytes": _memory(),
            "uptime_seconds": round(time.monotonic() - self.began, 3),
        }
        totals = {f"{entry.name}_total": getattr(counts, entry.name) for entry in fields(counts)}
        totals["events_total"] = self.live.number
        lines = []
        for kind, values in (("gauge", gauges), ("counter", totals)):
            for name, value in values.items():
                lines += [f"# TYPE agnncert_{name} {kind}", f"agnncert_{name} {value}"]
        return "\n".join(lines) + "\n"


def _batch_name(id: Any, part: int | None) -> str | None:
    """Under which a batch is remembered: no batch has the name of a part of a stream, whatever clients call them."""
    if id is None:
        return None
    if not isinstance(id, str) or not 0 < len(id) <= LONGEST_ID:
        raise SettingsError(f"id={id!r:.60}: expected a text of at most {LONGEST_ID} characters.")
    return f"batch {id}" if part is None else f"part {part} of {id}"


_YES_OR_NO = {"true": True, "1": True, "false": False, "0": False}


def _budget(stated: dict[str, str]) -> Budget:
    known = {entry.name for entry in fields(Budget)}
    values: dict[str, Any] = {}
    for name, text in stated.items():
        if name not in known:
            raise SettingsError(f"a budget has no {name!r:.60}: it has {', '.join(sorted(known))}.")
        if name == "target_features":
            if text.lower() not in _YES_OR_NO:
                raise SettingsError(f"{name}={text!r:.60}: expected true or false.")
            values[name] = _YES_OR_NO[text.lower()]
        elif text == "inf" or (text.isascii() and text.isdigit() and len(text) <= 15):
            values[name] = math.inf if text == "inf" else int(text)
        else:
            raise SettingsError(f"{name}={text!r:.60}: expected a whole number from 0 on, or inf.")
    return Budget(**values)


def _number(value: float) -> int | str:
    """JSON has no infinity."""
    return "any" if value == math.inf else int(value)


def _memory() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
