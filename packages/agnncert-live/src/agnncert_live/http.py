"""The service over HTTP: one function per address."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jinja2
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

import agnncert
from agnncert.errors import AgnncertError, IdError, JournalError, ModelContractError
from agnncert.report.page import content_policy, font_faces, style_sheet
from agnncert_live.limits import Guard, Limits, Refusal
from agnncert_live.service import Service, Unreadable

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


def make_app(service: Service, token: str | None = None, limits: Limits | None = None) -> Any:
    """The application that answers for a service.

    Args:
        service: What it does.
        token: What clients must know; None if only this machine can reach it.
        limits: What one client may do.
    """
    limits = limits or Limits()
    # Nothing is loaded from elsewhere: FastAPI's own pages of the interface would be, so there is a page of ours.
    app = FastAPI(title="agnncert live graph", version=agnncert.__version__, docs_url=None, redoc_url=None)

    @app.exception_handler(AgnncertError)
    async def explain(_: Request, error: AgnncertError) -> JSONResponse:
        kinds = ((IdError, 404), (JournalError, 503), (ModelContractError, 500))
        status = next((status for kind, status in kinds if isinstance(error, kind)), 400)
        return JSONResponse({"error": str(error)}, status)

    @app.exception_handler(Refusal)
    async def refuse(_: Request, refusal: Refusal) -> JSONResponse:
        return JSONResponse({"error": refusal.reason}, refusal.status, {"connection": "close"})

    @app.post("/events", openapi_extra={"requestBody": _BODY})
    async def events(request: Request, id: str | None = None) -> dict[str, Any]:
        """Applies events. JSON: ``{"events": [...], "id": "..."}``; or one event per line, as application/x-ndjson.

        Events that make no sense are refused one by one. When the answer comes, everything applied is on disk. With an
        id (in the JSON, or ``?id=`` for a stream), a request that is sent again is not applied again.
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
        budget = {name: value for name, value in request.query_params.items() if name != "target"}
        return service.decision(target, budget)

    @app.get("/closest")
    def closest(limit: int = 50) -> list[dict[str, Any]]:
        """The decisions closest to falling."""
        return service.closest(min(limit, 1_000))

    @app.get("/changes")
    def changes(since: int = 0) -> list[dict[str, Any]]:
        """Labels that flipped, and radii that fell below 3, after so many events."""
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
        name = None if id is None else f"{id}#{answer['batches']}"
        part = await run_in_threadpool(service.post, waiting, name, first)
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


def _page(template: str, **values: Any) -> str:
    script = Markup((_HERE / "page.js").read_text("utf-8"))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    policy = content_policy(script) + "; connect-src 'self'"
    text: str = environment.get_template(template).render(
        version=agnncert.__version__,
        policy=policy,
        fonts=Markup(font_faces()),
        style=Markup(style_sheet()),
        script=script,
        **values,
    )
    return text
