"""The service over HTTP: token, size and rate limits for every request, and one function per address."""

import asyncio
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

import agnncert
from agnncert.errors import AgnncertError, IdError, ModelContractError, SettingsError
from agnncert.report.html import fill_page
from agnncert_live.journal import JournalError
from agnncert_live.service import Service, Unreadable

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOCAL = ("127.0.0.1", "::1", "localhost")
_LOCAL_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
MOST_CONNECTIONS = 200  # beyond that, whoever has been idle for longest is hung up on
MOST_AT_WORK = 100  # requests that are answered at a time, of clients that have shown the token
AT_WORK = "agnncert.at_work"  # entry of a request's scope: whether it is one of these
OPEN_PATHS = ("/", "/health")  # the page holds no data: its script asks for a token and sends it
CLIENTS = 10_000  # whose rate is remembered

_HERE = Path(__file__).parent
LINES = 500  # of a stream that are applied together
JSON, LINES_OF_JSON = "application/json", "application/x-ndjson"

_EVENT = {
    "type": "object",
    "required": ["kind", "node"],
    "properties": {
        "kind": {"enum": ["add_edge", "delete_edge", "change_edge", "add_node", "delete_node", "change_features"]},
        "node": {"description": "Id of the node, or of one end of the edge: a whole number or a text."},
        "other": {"description": "Id of the other end."},
        "value": {"description": "A weight or attribute row of an edge, or the feature row of a node."},
        "directed": {"type": "boolean", "description": "add_edge: only from node to other."},
        "graph": {"type": "integer", "description": "Row of the graph, in a set of graphs."},
    },
}
_BODY = {
    "required": True,
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "required": ["events"],
                "properties": {"events": {"type": "array", "items": _EVENT}, "id": {"type": "string"}},
            }
        },
        LINES_OF_JSON: {"schema": {"type": "string", "description": "One event per line."}},
    },
}


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
        self._at_work = 0

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
            if self._at_work >= MOST_AT_WORK:
                raise Refusal(503, f"{MOST_AT_WORK} requests are being answered: wait a moment.")
            self._at_work += 1
            scope[AT_WORK] = True
            try:
                await self.app(scope, self._counted(receive, most), send)
            finally:
                self._at_work -= 1
                scope[AT_WORK] = False
        except Refusal as refusal:
            await _refuse(send, refusal)
        except ClientDisconnect:
            pass  # nobody is there to answer; batches of a stream that were applied stay applied

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
            if _LOCAL_HOST.fullmatch(headers.get("host", "")) is None:
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
    if refusal.status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Impatient(H11Protocol):
    """HTTP that hangs up on idle clients: after a while, and when there are too many connections.

    uvicorn waits without end for the head of a request, and its limit of connections turns everybody away. When there
    are too many, any connection may go whose request has not passed the guard, also if it is about to be refused. At
    most ``MOST_AT_WORK`` requests have passed it at a time, so there is always one to hang up on, and newcomers get in.
    """

    patience = 15.0

    def connection_made(self, transport: Any) -> None:
        """Begins to look at the clock."""
        super().connection_made(transport)
        self._look_again = self.loop.call_later(self.patience, self._look)
        self._idle_since = self.loop.time()
        there: Any = [one for one in self.connections if not one.transport.is_closing()]
        if len(there) > MOST_CONNECTIONS:
            waiting = [one for one in there if one is not self and not (one.scope or {}).get(AT_WORK)]
            min(waiting, key=lambda one: one._idle_since).transport.abort()

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        if not (self.cycle is None or self.cycle.response_complete):
            self._idle_since = self.loop.time()
        elif self.loop.time() - self._idle_since >= self.patience:
            self.transport.close()
            return
        self._look_again = self.loop.call_later(self.patience / 3, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops looking."""
        self._look_again.cancel()
        super().connection_lost(exc)


class PlainJSON(JSONResponse):
    """JSON in ASCII: any text can be written so, also one that is no valid Unicode."""

    def render(self, content: Any) -> bytes:
        """The bytes of the answer."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def make_app(service: Service, token: str | None = None, limits: Limits | None = None) -> Any:
    """The application that answers for a service.

    Args:
        service: What it does.
        token: What clients must know; None if only this machine can reach it.
        limits: What one client may do.
    """
    limits = limits or Limits()
    # Nothing is loaded from elsewhere: FastAPI's own pages of the interface would be, so there is a page of ours.
    app = FastAPI(
        title="agnncert live graph", version=agnncert.__version__, docs_url=None, redoc_url=None,
        default_response_class=PlainJSON,
    )  # fmt: skip

    @app.exception_handler(AgnncertError)
    async def explain(_: Request, error: AgnncertError) -> JSONResponse:
        kinds = ((IdError, 404), (SettingsError, 422), (JournalError, 503), (ModelContractError, 500))
        status = next((status for kind, status in kinds if isinstance(error, kind)), 400)
        return PlainJSON({"error": str(error)}, status)

    @app.exception_handler(RequestValidationError)
    async def explain_field(_: Request, error: RequestValidationError) -> JSONResponse:
        words = [f"{one['loc'][-1]}: {one['msg']}" for one in error.errors()]
        return PlainJSON({"error": "; ".join(words)[:500]}, 422)

    @app.exception_handler(Refusal)
    async def refuse(_: Request, refusal: Refusal) -> JSONResponse:
        return PlainJSON({"error": refusal.reason}, refusal.status, {"connection": "close"})

    @app.post("/events", openapi_extra={"requestBody": _BODY})
    async def events(request: Request, id: str | None = None) -> dict[str, Any]:
        """Applies events. JSON: ``{"events": [...], "id": "..."}``; or one event per line, as application/x-ndjson.

        Events that make no sense are refused one by one; a body that is no JSON is refused as a whole. When the answer
        comes, everything applied is on disk. With an id (in the JSON, or ``?id=`` for a stream), a request that is sent
        again is not applied again.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == LINES_OF_JSON:
            return await _take_stream(service, _lines(request, limits.line), id)
        if kind != JSON:
            raise Refusal(415, f"send {JSON} or {LINES_OF_JSON}, not {kind!r:.60}.")
        stated = _parsed(await request.body())
        if (
            not isinstance(stated, dict)
            or not isinstance(stated.get("events"), list)
            or stated.keys() - {"events", "id"}
        ):
            raise Refusal(400, 'expected {"events": [...]}, with an "id" if you like.')
        return await run_in_threadpool(service.post, stated["events"], stated.get("id", id))

    @app.get("/decision")
    def decision(request: Request, target: str) -> dict[str, Any]:
        """What is proved about a target now. Fields of a budget (``&add_edges=3``) ask whether it withstands that."""
        asked = _fields(request)
        asked.pop("target")
        return service.decision(target, asked)

    @app.get("/closest")
    def closest(request: Request, limit: Annotated[int, Query(ge=0)] = 50) -> list[dict[str, Any]]:
        """The decisions closest to falling."""
        _fields(request, "limit")
        return service.closest(min(limit, 1_000))

    @app.get("/changes")
    def changes(request: Request, since: Annotated[int, Query(ge=0)] = 0) -> list[dict[str, Any]]:
        """Labels that flipped, and radii that fell below 3, after so many events."""
        _fields(request, "since")
        return service.changes(since)

    @app.get("/certificate")
    def certificate() -> Response:
        """The certificate file as of now, which ``agnncert verify`` accepts."""
        named = {"content-disposition": 'attachment; filename="now.cert"'}
        return Response(service.certificate(), media_type="application/octet-stream", headers=named)

    @app.get("/health")
    def health() -> dict[str, Any]:
        """Whether it works; needs no token."""
        return {"ok": True, "events": service.live.number}

    @app.get("/summary")
    def summary() -> dict[str, Any]:
        """What the service is about, and how large it is now."""
        return service.summary()

    @app.get("/metrics")
    def metrics() -> PlainTextResponse:
        """For Prometheus."""
        return PlainTextResponse(service.metrics(), media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse(_page("page.html.j2", asks_token=token is not None), headers=_SAFE)

    @app.get("/api", include_in_schema=False)
    def interface() -> HTMLResponse:
        return HTMLResponse(_page("api.html.j2", schema=app.openapi()), headers=_SAFE)

    return Guard(app, token, limits)


_SAFE = {"x-frame-options": "DENY", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}


def _fields(request: Request, *known: str) -> dict[str, str]:
    """The fields of a question by name, each given once; with ``known``, no others."""
    fields: dict[str, str] = {}
    for name, text in request.query_params.multi_items():
        if name in fields or (known and name not in known):
            raise SettingsError(f"{name!r:.60} is {'given twice' if name in fields else 'no field of this question'}.")
        fields[name] = text
    return fields


def _parsed(text: bytes) -> Any:
    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no number of JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"this is not JSON: {str(error)[:200]}.") from None


async def _lines(request: Request, longest: int) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in request.stream():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > longest or any(len(line) > longest for line in lines):
            raise Refusal(413, f"a line has at most {longest:,} bytes.")
        for line in lines:
            yield line
    yield rest


async def _take_stream(service: Service, lines: AsyncIterator[bytes], id: str | None) -> dict[str, Any]:
    """Applies a stream in batches; each is on disk before the next is read."""
    answer: dict[str, Any] = {
        "applied": 0,
        "repeated": 0,
        "refused": [],
        "refused_in_all": 0,
        "flipped": [],
        "batches": 0,
    }
    waiting: list[Any] = []
    first, number = 0, 0

    async def send() -> None:
        nonlocal waiting, first
        part = await run_in_threadpool(service.post, waiting, id, first, answer["batches"])
        for count in ("applied", "repeated", "refused_in_all"):
            answer[count] += part[count]
        for listed in ("refused", "flipped"):
            answer[listed] = [*answer[listed], *part[listed]][:1_000]
        answer["number"], answer["batches"] = part["number"], answer["batches"] + 1
        waiting, first = [], number

    async for line in lines:
        number += 1
        if line.strip():
            try:
                waiting.append(_parsed(line))
            except Refusal as refusal:
                waiting.append(Unreadable(refusal.reason))
        else:
            waiting.append(Unreadable("the line is empty."))
        if len(waiting) >= LINES:
            await send()
    if waiting and isinstance(waiting[-1], Unreadable) and waiting[-1].reason == "the line is empty.":
        waiting.pop()  # what follows the last line end
    if waiting or not answer["batches"]:
        await send()
    return answer


def _page(name: str, **values: Any) -> str:
    script = (_HERE / "page.js").read_text("utf-8")
    return fill_page(_HERE / name, values, script=script, policy="; connect-src 'self'")
