"""``Guard``: checks token, host, size and rate of every request before the application sees it."""

import asyncio
import hmac
import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.requests import ClientDisconnect

from agnncert_live.metrics import RequestMetrics

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL = ("127.0.0.1", "::1", "localhost")
_LOCAL_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
MOST_AT_WORK = 100  # requests that are answered at a time, of clients that have shown the token
AT_WORK = "agnncert.at_work"  # entry of a request's scope: whether it is one of these
OPEN_PATHS = ("/", "/health", "/live", "/ready")  # the page holds no data: its script asks for a token and sends it
CLIENTS = 10_000  # whose rate is remembered
_SECONDS_AT_ONCE = 3  # a client may make the requests of this many seconds at once


@dataclass(frozen=True)
class Limits:
    """What one client may do.

    Attributes:
        body: Bytes of a request.
        stream: Bytes of a newline-delimited stream.
        line: Bytes of one line in it.
        rate: Requests per second, on average; three seconds' worth at once.
        patience: Seconds that a client may take between two pieces of a request.
    """

    body: int = 8_000_000
    stream: int = 1_000_000_000
    line: int = 1_000_000
    rate: float = 100.0
    patience: float = 20.0


class Refusal(Exception):  # noqa: N818 - reads as a statement where it is raised
    """A request that is not answered, with the status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Allowance(NamedTuple):
    """How many requests a client may make at once, and at which time that was."""

    requests: float
    time: float


class Guard:
    """Lets through what may pass, and refuses the rest with a reason.

    Args:
        app: The application.
        token: What clients must send as ``Authorization: Bearer …``. Without one, only names of this very machine are
            accepted as ``Host``, so that no web page can reach the service under a name of its own.
        limits: What one client may do.
        requests: Counts what is answered; nothing is counted when not given.
    """

    def __init__(
        self, app: Application, token: str | None, limits: Limits, requests: RequestMetrics | None = None
    ) -> None:
        self.requests = requests or RequestMetrics()
        self.app = app
        self.token = token
        self.limits = limits
        self._allowance: dict[str, Allowance] = {}  # by client
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as ASGI asks."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin = time.perf_counter()
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        try:
            await self._answer(scope, receive, noting)
        except Refusal as refusal:
            await _refuse(noting, refusal)
        except ClientDisconnect:
            pass  # nobody is there to answer; batches of a stream that were applied stay applied

        finally:
            self.requests.note(scope["path"], status, time.perf_counter() - begin)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client") or ("unknown",)
        self._check_rate(client[0])
        self._check_who(scope["path"], headers)
        largest = self._check_length(headers)
        if self._at_work >= MOST_AT_WORK:
            raise Refusal(503, f"{MOST_AT_WORK} requests are being answered: wait a moment.")
        self._at_work += 1
        scope[AT_WORK] = True
        try:
            await self.app(scope, self._limited(receive, largest), send)
        finally:
            self._at_work -= 1
            scope[AT_WORK] = False

    def _check_rate(self, client: str) -> None:
        now = time.monotonic()
        most = _SECONDS_AT_ONCE * self.limits.rate
        before = self._allowance.pop(client, Allowance(most, now))
        allowed = min(most, before.requests + (now - before.time) * self.limits.rate)
        if len(self._allowance) >= CLIENTS:
            quiet_for_longest = next(iter(self._allowance))
            self._allowance.pop(quiet_for_longest)
        self._allowance[client] = Allowance(max(0.0, allowed - 1), now)
        if allowed < 1:
            raise Refusal(429, f"more than {self.limits.rate:g} requests per second: wait, or send events in batches.")

    def _check_who(self, path: str, headers: dict[str, str]) -> None:
        if self.token is None:
            if _LOCAL_HOST.fullmatch(headers.get("host", "")) is None:
                raise Refusal(403, "this service only answers requests from its own machine.")
            return
        if path in OPEN_PATHS:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        is_token = hmac.compare_digest(given.strip().encode(), self.token.encode())
        if scheme.lower() != "bearer" or not is_token:
            raise Refusal(401, "send the token of this service: Authorization: Bearer TOKEN.")

    def _check_length(self, headers: dict[str, str]) -> int:
        """Refuses a request that says it is too long, and returns how many bytes it may have."""
        is_stream = "ndjson" in headers.get("content-type", "")
        largest = self.limits.stream if is_stream else self.limits.body
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > largest:
            raise Refusal(413, f"a request has at most {largest:,} bytes.")
        return largest

    def _limited(self, receive: Receive, largest: int) -> Receive:
        """Returns a function that receives a request, as far as it is not too long or too slow."""
        num_bytes = 0
        is_whole = False

        async def receive_limited() -> Message:
            nonlocal num_bytes, is_whole
            if is_whole:
                return await receive()  # waits for the end of the connection
            try:
                message = await asyncio.wait_for(receive(), self.limits.patience)
            except TimeoutError:
                raise Refusal(408, f"nothing came for {self.limits.patience:g} seconds.") from None
            num_bytes += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if num_bytes > largest:
                raise Refusal(413, f"a request has at most {largest:,} bytes.")
            return message

        return receive_limited


async def _refuse(send: Send, refusal: Refusal) -> None:
    body = json.dumps({"error": refusal.reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
