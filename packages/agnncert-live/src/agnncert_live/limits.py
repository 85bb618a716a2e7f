"""Who may ask, how much and how fast: tokens, sizes, rates and patience, before anything else looks at a request."""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOCAL = ("127.0.0.1", "::1", "localhost")
OPEN_PATHS = ("/", "/health")  # the page holds no data: its script asks for a token and sends it
CLIENTS = 10_000  # whose rate is remembered


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
        self.status, self.reason = status, reason


class Guard:
    """Lets through what may pass, and refuses the rest with a reason.

    Args:
        app: The application.
        token: What clients must send as ``Authorization: Bearer …``. Without one, only names of this very machine are
            accepted as ``Host``, so that no web page can reach the service under a name of its own.
        limits: What one client may do.
    """

    def __init__(self, app: Any, token: str | None, limits: Limits) -> None:
        self.app, self.token, self.limits = app, token, limits
        self._allowance: dict[str, tuple[float, float]] = {}  # by client: requests that it may make, and when

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """As ASGI asks."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            self._check_rate((scope.get("client") or ("unknown",))[0])
            self._check_who(scope["path"], headers)
            stream = "ndjson" in headers.get("content-type", "")
            most = self.limits.stream if stream else self.limits.body
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > most:
                raise Refusal(413, f"a request has at most {most:,} bytes.")
            await self.app(scope, self._counted(receive, most), send)
        except Refusal as refusal:
            await _refuse(send, refusal)

    def _check_rate(self, client: str) -> None:
        now, most = time.monotonic(), 3 * self.limits.rate
        left, then = self._allowance.pop(client, (most, now))
        left = min(most, left + (now - then) * self.limits.rate)
        if len(self._allowance) >= CLIENTS:
            self._allowance.pop(next(iter(self._allowance)))  # whoever has been quiet for longest
        self._allowance[client] = max(0.0, left - 1), now
        if left < 1:
            raise Refusal(429, f"more than {self.limits.rate:g} requests per second: wait, or send events in batches.")

    def _check_who(self, path: str, headers: dict[str, str]) -> None:
        if self.token is None:
            host = headers.get("host", "").rsplit(":", 1)[0].strip("[]") if "host" in headers else ""
            if host not in LOCAL:
                raise Refusal(403, "this service answers to its own machine alone.")
            return
        if path in OPEN_PATHS:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            raise Refusal(401, "send the token of this service: Authorization: Bearer TOKEN.")

    def _counted(self, receive: Receive, most: int) -> Receive:
        seen, whole = 0, False

        async def counted() -> Message:
            nonlocal seen, whole
            if whole:
                return await receive()  # waits for the end of the connection
            try:
                message = await asyncio.wait_for(receive(), self.limits.patience)
            except TimeoutError:
                raise Refusal(408, f"nothing came for {self.limits.patience:g} seconds.") from None
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > most:
                raise Refusal(413, f"a request has at most {most:,} bytes.")
            return message

        return counted


async def _refuse(send: Send, refusal: Refusal) -> None:
    body = json.dumps({"error": refusal.reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Impatient(H11Protocol):
    """HTTP that hangs up on clients that never finish the head of a request, which uvicorn waits for without end."""

    patience = 15.0

    def connection_made(self, transport: Any) -> None:
        """Begins to look at the clock."""
        super().connection_made(transport)
        self._look_again = self.loop.call_later(self.patience, self._look)
        self._idle_since = self.loop.time()

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        idle = self.cycle is None or self.cycle.response_complete
        if not idle:
            self._idle_since = self.loop.time()
        elif self.loop.time() - self._idle_since >= self.patience:
            self.transport.close()
            return
        self._look_again = self.loop.call_later(self.patience / 3, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops looking."""
        self._look_again.cancel()
        super().connection_lost(exc)
