"""``LiveClient``: a client of the HTTP service that needs only the standard library."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from agnncert.errors import AgnncertError, WorkersError
from agnncert.storage import parse_json
from agnncert_live.events import Event


class ServiceError(AgnncertError):
    """A request that a service refused, with its reason. ``status`` is that of HTTP."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Request(NamedTuple):
    """A request to the service.

    Attributes:
        path: The address with its query.
        body: What is posted; None for a question.
        content_type: Kind of the body.
        can_repeat: Whether it may be sent again if nothing answers, or the service is busy.
    """

    path: str
    body: bytes | None = None
    content_type: str | None = None
    can_repeat: bool = True


class LiveClient:
    """A client of ``agnncert serve``.

    Args:
        url: Where the service is, such as ``"http://127.0.0.1:8470"``.
        token: Its token, if it has one.
        timeout: Seconds to wait for an answer.
        tries: How often a request is sent if nothing answers, or the service is busy. Events are sent again only if
            they have an id, under which the service applies them once.

    Example:
        ``LiveClient("http://127.0.0.1:8470").apply([Event("add_edge", "alice", "bob")], id="topic-0:17")``
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0, tries: int = 3) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.timeout = timeout
        self.tries = max(1, tries)

    def apply(self, events: Iterable[Event | dict[str, Any]], id: str | None = None) -> dict[str, Any]:
        """Applies events. The answer says how many, which were refused and why, and which labels flipped."""
        batch: dict[str, Any] = {"events": [_stated(event) for event in events]}
        if id is not None:
            batch["id"] = id
        request = Request("/events", json.dumps(batch).encode(), "application/json", can_repeat=id is not None)
        answer: dict[str, Any] = parse_json(self._ask(request))
        return answer

    def stream(self, events: Iterable[Event | dict[str, Any]], id: str | None = None) -> dict[str, Any]:
        """Applies very many events, one per line. The service applies them in batches of 500."""
        lines = [json.dumps(_stated(event)) for event in events]
        path = "/events"
        if id is not None:
            path += "?" + urllib.parse.urlencode({"id": id})
        body = "\n".join(lines).encode()
        request = Request(path, body, "application/x-ndjson", can_repeat=id is not None)
        answer: dict[str, Any] = parse_json(self._ask(request))
        return answer

    def decision(self, target: int | str, **budget: float) -> dict[str, Any]:
        """Returns what is proved about a target now; with fields of a budget, also whether it holds against that."""
        query = urllib.parse.urlencode({"target": target, **budget})
        answer: dict[str, Any] = parse_json(self._ask(Request(f"/decision?{query}")))
        return answer

    def certify(self, field: dict[str, Any]) -> dict[str, Any]:
        """Returns what is proved about one node from its receptive field: ``target``, ``nodes`` and ``edges``."""
        request = Request("/certify", json.dumps(field).encode(), "application/json")
        answer: dict[str, Any] = parse_json(self._ask(request))
        return answer

    def closest(self, limit: int = 50) -> list[dict[str, Any]]:
        """Returns the decisions closest to falling."""
        answer: list[dict[str, Any]] = parse_json(self._ask(Request(f"/closest?limit={int(limit)}")))
        return answer

    def changes(self, since: int = 0) -> list[dict[str, Any]]:
        """Returns labels that flipped and radii that fell below 3 after event number ``since``."""
        answer: list[dict[str, Any]] = parse_json(self._ask(Request(f"/changes?since={int(since)}")))
        return answer

    def summary(self) -> dict[str, Any]:
        """Returns what the service is about, and how large the graph is now."""
        answer: dict[str, Any] = parse_json(self._ask(Request("/summary")))
        return answer

    def metrics(self) -> str:
        """Returns the metrics in Prometheus format."""
        return self._ask(Request("/metrics")).decode()

    def certificate(self, path: str | Path) -> Path:
        """Saves the certificate as of now."""
        path = Path(path)
        path.write_bytes(self._ask(Request("/certificate")))
        return path

    def _ask(self, request: Request) -> bytes:
        """Sends a request until it is answered, or until there have been too many tries."""
        tries = self.tries if request.can_repeat else 1
        for attempt in range(1, tries):
            try:
                return self._send(request)
            except (ServiceError, WorkersError) as error:
                is_busy = isinstance(error, ServiceError) and error.status in (429, 503)
                if isinstance(error, ServiceError) and not is_busy:
                    raise
            time.sleep(0.2 * 2 ** (attempt - 1))
        return self._send(request)

    def _send(self, request: Request) -> bytes:
        headers = {}
        if request.content_type is not None:
            headers["Content-Type"] = request.content_type
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        sent = urllib.request.Request(self.url + request.path, request.body, headers)
        try:
            with urllib.request.urlopen(sent, timeout=self.timeout) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            raise ServiceError(error.code, _reason(error)) from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise WorkersError(f"nothing answers at {self.url}: {reason}.") from error


def _stated(event: Event | dict[str, Any]) -> dict[str, Any]:
    return event.to_json() if isinstance(event, Event) else event


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(parse_json(error.read())["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"{error.code} {error.reason}"
