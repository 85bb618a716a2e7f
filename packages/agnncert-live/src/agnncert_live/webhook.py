"""``Webhook``: sends alerts of a live graph to one address, so that nobody has to ask for them."""

import hashlib
import hmac
import http.client
import json
import logging
import queue
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from agnncert.errors import SettingsError
from agnncert_live.events import Applied
from agnncert_live.graph import LiveGraph

log = logging.getLogger(__name__)

MOST_WAITING = 1_000  # batches; the oldest is given up when one more comes
MOST_TARGETS = 1_000  # that one alert lists
LONGEST_WAIT = 120.0  # seconds that a receiver may ask for
SIGNATURE = "x-agnncert-signature"


class Failure(NamedTuple):
    """Why an alert was not delivered, whether another try may help, and how many seconds it should wait."""

    reason: str
    may_pass: bool
    wait: float = 0.0


@dataclass(frozen=True)
class Receiver:
    """An address of HTTP.

    Attributes:
        secure: Whether it is reached by TLS.
        host: Name of the machine.
        port: Port, or None for the usual one.
        path: Path with the query.
    """

    secure: bool
    host: str
    port: int | None
    path: str

    @classmethod
    def at(cls, url: str) -> "Receiver":
        """Returns the receiver at an address.

        Raises:
            SettingsError: The address is not one of HTTP.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise SettingsError(f"{url!r:.200} is no address: {error}.") from None
        is_plain = url.isascii() and url.isprintable() and " " not in url and parts.username is None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment or not is_plain:
            raise SettingsError(
                f"{url!r:.200}: expected an address such as https://host/path, without a user name; a token is sent "
                "by token=."
            )
        query = f"?{parts.query}" if parts.query else ""
        return cls(parts.scheme == "https", parts.hostname, port, (parts.path or "/") + query)

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """Returns a new connection."""
        if self.secure:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)


class Webhook:
    """Posts an alert as JSON when a label flips or a radius falls below a threshold.

    Alerts are sent one after another by a thread of their own, so a slow receiver never delays an event. An alert is
    tried again when the receiver cannot be reached or answers with a status from 500 on, 408 or 429, and given up after
    some tries; ``failed`` counts these. A receiver may get an alert twice, and knows it by its ``number``.

    Only the given address is ever contacted: redirections are not followed, and neither proxies nor anything in a graph
    or an event can change it.

    Args:
        live: The live graph.
        url: Where to post, ``http://…`` or ``https://…``.
        below: A radius that falls below this is an alert.
        token: Sent as ``Authorization: Bearer …``; None for none.
        tries: How often an alert is tried.
        timeout: Seconds that the receiver has to answer.
        pause: Seconds before the second try, doubled before each further one, and drawn from half to one and a half of
            that. A receiver that answers with ``Retry-After`` gets the time that it asks for, up to two minutes.
        class_names: Names of the classes, which alerts then say instead of numbers.
        secret: A text that the receiver shares. Alerts are then signed: the header ``x-agnncert-signature`` is
            ``t=SECONDS,v1=HEX``, where ``HEX`` is the HMAC-SHA256 of ``SECONDS.BODY``.

    Example:
        ``with Webhook(live, "https://soc.example/alerts", below=3): …``, and the receiver gets
        ``{"number": 812, "targets": [{"target": "alice", "label": [0, 1], "radius": [2, 1], "flipped": true}], …}``.

    Raises:
        SettingsError: The address is not one of HTTP.
    """

    def __init__(  # noqa: PLR0913 - every setting is a keyword
        self,
        live: LiveGraph,
        url: str,
        *,
        below: float = 3,
        token: str | None = None,
        tries: int = 4,
        timeout: float = 5.0,
        pause: float = 0.5,
        class_names: Sequence[str] | None = None,
        secret: str | None = None,
    ) -> None:
        self._receiver = Receiver.at(url)
        self._timeout = timeout
        self._headers = {"content-type": "application/json", "user-agent": "agnncert-live"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._below = below
        self._class_names = class_names
        self._secret = None if secret is None else secret.encode()
        self._tries = tries
        self._pause = pause
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING)
        self._closing = threading.Event()
        self.sent = 0
        self.failed = 0
        self._thread = threading.Thread(target=self._work, name="webhook", daemon=True)
        self._thread.start()
        self._end = live.subscribe(self._enqueue, below=below, flips=True)

    def _enqueue(self, applied: Applied) -> None:
        alerts = applied.alerts(self._below)
        targets = [moved.to_json(self._class_names) for moved in alerts[:MOST_TARGETS]]
        alert = {"number": applied.number, "time": round(time.time(), 3), "in_all": len(alerts), "targets": targets}
        body = json.dumps(alert).encode()
        while True:
            try:
                self._waiting.put_nowait(body)
                return
            except queue.Full:
                self._give_up_oldest()

    def _give_up_oldest(self) -> None:
        try:
            self._waiting.get_nowait()
        except queue.Empty:  # it was sent in the meantime
            return
        self._gave_up("more alerts came than the receiver took")

    def _gave_up(self, why: str) -> None:
        self.failed += 1
        log.warning("an alert was given up: %s", why)

    def _work(self) -> None:
        while (body := self._waiting.get()) is not None:
            failure = self._deliver(body)
            if failure is None:
                self.sent += 1
            else:
                self._gave_up(failure.reason)

    def _deliver(self, body: bytes) -> "Failure | None":
        """Posts an alert, several times if need be. Returns why it was not delivered, or None if it was."""
        failure = self._post(body)
        for attempt in range(1, self._tries):
            if failure is None or not failure.may_pass:
                break
            pause = self._pause * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
            if self._closing.wait(max(pause, failure.wait)):
                break
            failure = self._post(body)
        return failure

    def _post(self, body: bytes) -> "Failure | None":
        """Posts an alert once. Returns why it was not delivered, or None if it was."""
        connection = self._receiver.connect(self._timeout)
        try:
            connection.request("POST", self._receiver.path, body, {**self._headers, **self._signature(body)})
            answer = connection.getresponse()
            status = answer.status
            wait = _seconds_of(answer.getheader("retry-after"))
        except (OSError, http.client.HTTPException) as error:
            return Failure(f"the receiver cannot be reached ({type(error).__name__})", may_pass=True)
        finally:
            connection.close()
        if 200 <= status < 300:
            return None
        may_pass = status >= 500 or status in (408, 429)
        return Failure(f"the receiver answered {status}", may_pass, wait)

    def _signature(self, body: bytes) -> dict[str, str]:
        if self._secret is None:
            return {}
        now = str(int(time.time()))
        code = hmac.new(self._secret, now.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {SIGNATURE: f"t={now},v1={code}"}

    def close(self, patience: float = 10.0) -> None:
        """Ends it. Alerts that wait are still sent, each with one try at most, for this many seconds."""
        self._end()
        self._closing.set()
        try:
            self._waiting.put(None, timeout=patience)
        except queue.Full:
            return
        self._thread.join(patience)

    def __enter__(self) -> "Webhook":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _seconds_of(retry_after: str | None) -> float:
    """Returns how many seconds a ``Retry-After`` asks for, at most ``LONGEST_WAIT``; 0 if it says nothing."""
    if not retry_after:
        return 0.0
    if retry_after.strip().isdigit():
        seconds = float(retry_after)
    else:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(0.0, seconds), LONGEST_WAIT)
