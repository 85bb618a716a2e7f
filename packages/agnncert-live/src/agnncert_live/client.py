"""``LiveClient``: a client of the HTTP service that needs only the standard library."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agnncert.errors import AgnncertError, WorkersError
from agnncert_live.events import Event


class ServiceError(AgnncertError):
    """What a service refused, with its reason; ``status`` is that of HTTP."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


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
        self.url, self.token, self.timeout, self.tries = url.rstrip("/"), token, timeout, max(1, tries)

    def apply(self, events: Iterable[Event | dict[str, Any]], id: str | None = None) -> dict[str, Any]:
        """Applies events; the answer says how many, which were refused and why, and which labels flipped."""
        stated = [event.to_json() if isinstance(event, Event) else event for event in events]
        body = {"events": stated} | ({} if id is None else {"id": id})
        sent = self._ask("/events", json.dumps(body).encode(), "application/json", again=id is not None)
        return json.loads(sent)  # type: ignore[no-any-return]

    def stream(self, events: Iterable[Event | dict[str, Any]], id: str | None = None) -> dict[str, Any]:
        """The same for very many, one per line; the service applies them in batches of 500."""
        lines = (json.dumps(event.to_json() if isinstance(event, Event) else event) for event in events)
        query = "" if id is None else "?" + urllib.parse.urlencode({"id": id})
        body = "\n".join(lines).encode()
        return json.loads(self._ask(f"/events{query}", body, "application/x-ndjson", again=id is not None))  # type: ignore[no-any-return]

    def decision(self, target: int | str, **budget: float) -> dict[str, Any]:
        """What is proved about a target now; with fields of a budget, also whether the label holds against it."""
        query = {"target": target, **budget}
        return json.loads(self._ask(f"/decision?{urllib.parse.urlencode(query)}"))  # type: ignore[no-any-return]

    def closest(self, limit: int = 50) -> list[dict[str, Any]]:
        """The decisions closest to falling."""
        return json.loads(self._ask(f"/closest?limit={int(limit)}"))  # type: ignore[no-any-return]

    def changes(self, since: int = 0) -> list[dict[str, Any]]:
        """Labels that flipped and radii that fell below 3 after event number ``since``."""
        return json.loads(self._ask(f"/changes?since={int(since)}"))  # type: ignore[no-any-return]

    def summary(self) -> dict[str, Any]:
        """What the service is about, and how large the graph is now."""
        return json.loads(self._ask("/summary"))  # type: ignore[no-any-return]

    def metrics(self) -> str:
        """The metrics in Prometheus format."""
        return self._ask("/metrics").decode()

    def certificate(self, path: str | Path) -> Path:
        """Saves the certificate as of now."""
        path = Path(path)
        path.write_bytes(self._ask("/certificate"))
        return path

    def _ask(self, place: str, body: bytes | None = None, kind: str | None = None, again: bool = True) -> bytes:
        headers = {} if kind is None else {"Content-Type": kind}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        waits: Sequence[float] = [0.2 * 2**k for k in range(self.tries - 1)] if again else []
        for wait in (*waits, None):
            request = urllib.request.Request(self.url + place, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    return answer.read()  # type: ignore[no-any-return]
            except urllib.error.HTTPError as error:
                refused = ServiceError(error.code, _reason(error))
                if wait is None or error.code not in (429, 503):
                    raise refused from None
            except (urllib.error.URLError, OSError) as error:
                if wait is None:
                    raise WorkersError(f"nothing answers at {self.url}: {getattr(error, 'reason', error)}.") from error
            time.sleep(wait)
        raise AssertionError("the last try returns or raises")


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"{error.code} {error.reason}"
