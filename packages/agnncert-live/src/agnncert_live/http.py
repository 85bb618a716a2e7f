"""The service over HTTP: one function per address."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

import agnncert
from agnncert.errors import AgnncertError, IdError, ModelContractError, SettingsError
from agnncert.report.html import fill_page
from agnncert_live.event_stream import apply_stream, lines_of, parse_json
from agnncert_live.events import KINDS
from agnncert_live.fields import FieldCertifier
from agnncert_live.guard import OPEN_PATHS, Guard, Limits, Refusal
from agnncert_live.journal import JournalError
from agnncert_live.metrics import OPEN_METRICS, TEXT, RequestMetrics, as_text, content_type_for, process_metrics
from agnncert_live.service import Service

_HERE = Path(__file__).parent
JSON = "application/json"
LINES_OF_JSON = "application/x-ndjson"
BINARY = "application/octet-stream"
_MOST_CLOSEST = 1_000
_SAFE = {"x-frame-options": "DENY", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}

_EVENT_PROPERTIES = {
    "kind": {"enum": list(KINDS)},
    "node": {"description": "Id of the node, or of one end of the edge: a whole number or a text."},
    "other": {"description": "Id of the other end."},
    "value": {"description": "A weight or attribute row of an edge, or the feature row of a node."},
    "directed": {"type": "boolean", "description": "add_edge, change_edge, record_edge: only from node to other."},
    "columns": {"type": "object", "description": "Entries by the names of the table's columns, instead of value."},
    "graph": {"type": "integer", "description": "Row of the graph, in a set of graphs."},
}
_EVENT = {"type": "object", "required": ["kind", "node"], "properties": _EVENT_PROPERTIES}
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


_EDGE_PROPERTIES = {name: part for name, part in _EVENT_PROPERTIES.items() if name not in ("kind", "graph")}
_FIELD = {
    "required": True,
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "required": ["target", "nodes", "edges"],
                "properties": {
                    "target": {"description": "Id of the node to certify."},
                    "nodes": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["id"],
                            "properties": {
                                "id": {"description": "Id of the node: a whole number or a text."},
                                "columns": {"type": "object", "description": "Its row in the table of nodes."},
                                "value": {"type": "array", "description": "Its features, if there is no table."},
                                "edges": {
                                    "type": "integer",
                                    "description": "How many edges it has in all.",
                                },
                            },
                        },
                    },
                    "edges": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["node", "other"],
                            "properties": {
                                name: part for name, part in _EVENT_PROPERTIES.items() if name not in ("kind", "graph")
                            },
                        },
                    },
                    "budget": {"type": "object", "description": 'An attack that is asked about: {"add_edges": 3}.'},
                },
            }
        }
    },
}
_ERROR = {
    "description": "Why the request was refused.",
    "content": {
        JSON: {"schema": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}}
    },
}
_ERRORS: dict[int | str, dict[str, Any]] = {status: _ERROR for status in (400, 404, 413, 415, 422, 429, 500, 503)}
_NOT_READY: dict[int | str, dict[str, Any]] = {503: _ERROR}


class PlainJSON(JSONResponse):
    """JSON in ASCII: any text can be written so, also one that is no valid Unicode."""

    def render(self, content: Any) -> bytes:
        """Returns the bytes of the answer."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def make_app(service: Service, token: str | None = None, limits: Limits | None = None) -> Guard:
    """Returns the application that answers for a service.

    Args:
        service: What it does.
        token: What clients must know; None if only this machine can reach it.
        limits: What one client may do.
    """
    limits = limits or Limits()
    # Nothing is loaded from elsewhere: FastAPI's own pages of the interface would be, so there is a page of ours.
    app = _bare_app("agnncert live graph")
    app.include_router(_events_router(service, limits))
    if service.fields is not None:
        app.include_router(_fields_router(service.fields))
    app.include_router(_decisions_router(service))
    app.include_router(_operations_router(service))
    app.include_router(_metrics_router(service.metrics))
    app.include_router(_rates_router(service))
    app.include_router(_pages_router(app, asks_token=token is not None))
    service.requests.paths = frozenset(app.openapi()["paths"])
    _describe(app, asks_token=token is not None)
    return Guard(app, token, limits, service.requests)


def make_stateless_app(
    certifier: FieldCertifier, summary: dict[str, Any], token: str | None = None, limits: Limits | None = None
) -> Guard:
    """Returns the application that certifies nodes from their receptive fields, and holds no graph.

    Args:
        certifier: What certifies them.
        summary: What it says about itself.
        token: What clients must know; None if only this machine can reach it.
        limits: What one client may do.
    """
    requests = RequestMetrics()
    app = _bare_app("agnncert without a graph")
    app.include_router(_fields_router(certifier))
    app.include_router(_stateless_router(summary))
    app.include_router(_metrics_router(lambda kind: as_text([*requests.metrics(), *process_metrics()], kind)))
    requests.paths = frozenset(app.openapi()["paths"])
    _describe(app, asks_token=token is not None)
    return Guard(app, token, limits or Limits(), requests)


def make_starting_app(stage: Callable[[], str], token: str | None = None, limits: Limits | None = None) -> Guard:
    """Returns the application that answers while a service is being loaded: alive, and not ready.

    Args:
        stage: Says how far it is.
        token: What clients must know; None if only this machine can reach it.
        limits: What one client may do.
    """
    app = _bare_app("agnncert live graph, starting")

    @app.get("/live")
    async def live() -> dict[str, Any]:
        return {"ok": True}

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def starting(path: str) -> JSONResponse:
        return PlainJSON({"error": f"the service is starting: {stage()}."}, 503, {"retry-after": "1"})

    return Guard(app, token, limits or Limits())


def _bare_app(title: str) -> FastAPI:
    app = FastAPI(
        title=title, version=agnncert.__version__, docs_url=None, redoc_url=None, default_response_class=PlainJSON
    )
    _explain_errors(app)
    return app


def _describe(app: FastAPI, asks_token: bool) -> None:
    """Writes into the description of the interface who may ask: who has the token, or anybody on this machine."""
    schema = app.openapi()
    if not asks_token:
        return
    schemes = schema.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["token"] = {"type": "http", "scheme": "bearer", "description": "The token of this service."}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            operation["security"] = [] if path in OPEN_PATHS else [{"token": []}]
            if path not in OPEN_PATHS:
                operation["responses"]["401"] = _ERROR


def _explain_errors(app: FastAPI) -> None:
    """Has every error answered with its reason."""

    @app.exception_handler(AgnncertError)
    async def explain(_: Request, error: AgnncertError) -> JSONResponse:
        return PlainJSON({"error": str(error)}, _status_of(error))

    @app.exception_handler(RequestValidationError)
    async def explain_field(_: Request, error: RequestValidationError) -> JSONResponse:
        reasons = [f"{each['loc'][-1]}: {each['msg']}" for each in error.errors()]
        return PlainJSON({"error": "; ".join(reasons)[:500]}, 422)

    @app.exception_handler(Refusal)
    async def refuse(_: Request, refusal: Refusal) -> JSONResponse:
        return PlainJSON({"error": refusal.reason}, refusal.status, {"connection": "close"})


def _status_of(error: AgnncertError) -> int:
    if isinstance(error, IdError):
        return 404
    if isinstance(error, SettingsError):
        return 422
    if isinstance(error, JournalError):
        return 503
    if isinstance(error, ModelContractError):
        return 500
    return 400


def _events_router(service: Service, limits: Limits) -> APIRouter:
    router = APIRouter()

    @router.post("/events", openapi_extra={"requestBody": _BODY}, responses=_ERRORS)
    async def events(request: Request, id: str | None = None) -> dict[str, Any]:
        """Applies events. JSON: ``{"events": [...], "id": "..."}``; or one event per line, as application/x-ndjson.

        Events that make no sense are refused one by one; a body that is no JSON is refused as a whole. When the answer
        comes, everything applied is on disk. With an id (in the JSON, or ``?id=`` for a stream), a request that is sent
        again is not applied again.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == LINES_OF_JSON:
            return await apply_stream(service, lines_of(request, limits.line), id)
        if kind != JSON:
            raise Refusal(415, f"send {JSON} or {LINES_OF_JSON}, not {kind!r:.60}.")
        stated = parse_json(await request.body())
        is_batch = isinstance(stated, dict) and isinstance(stated.get("events"), list)
        if not is_batch or stated.keys() - {"events", "id"}:
            raise Refusal(400, 'expected {"events": [...]}, with an "id" if you like.')
        return await run_in_threadpool(service.post, stated["events"], stated.get("id", id))

    return router


def _fields_router(certifier: FieldCertifier) -> APIRouter:
    router = APIRouter()

    @router.post("/certify", openapi_extra={"requestBody": _FIELD}, responses=_ERRORS)
    async def certify(request: Request) -> dict[str, Any]:
        """What is proved about one node, from its receptive field alone, as certifying the whole graph would say it.

        Send all edges of every node that decides about the target, and how many they are. Nothing is kept.
        """
        return await run_in_threadpool(certifier.certify, parse_json(await request.body()))

    return router


def _stateless_router(about: dict[str, Any]) -> APIRouter:
    router = APIRouter()

    @router.get("/health")
    @router.get("/ready")
    @router.get("/live")
    async def live() -> dict[str, Any]:
        """Whether the process answers; needs no token."""
        return {"ok": True}

    @router.get("/summary")
    async def summary() -> dict[str, Any]:
        """What is certified, and how much of a graph has to be sent."""
        return about

    return router


def _decisions_router(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/decision", responses=_ERRORS)
    def decision(request: Request, target: str) -> dict[str, Any]:
        """What is proved about a target now. Fields of a budget (``&add_edges=3``) ask whether it withstands that."""
        budget = _fields(request)
        budget.pop("target")
        return service.decision(target, budget)

    @router.get("/closest", responses=_ERRORS)
    def closest(request: Request, limit: Annotated[int, Query(ge=0)] = 50) -> list[dict[str, Any]]:
        """The decisions closest to falling."""
        _fields(request, "limit")
        return service.closest(min(limit, _MOST_CLOSEST))

    @router.get("/changes", responses=_ERRORS)
    def changes(request: Request, since: Annotated[int, Query(ge=0)] = 0) -> list[dict[str, Any]]:
        """Labels that flipped, and radii that fell below 3, after this many events."""
        _fields(request, "since")
        return service.changes(since)

    @router.get("/certificate", response_class=Response, responses={200: {"content": {BINARY: {}}}})
    def certificate() -> Response:
        """The certificate file as of now, which ``agnncert verify`` accepts."""
        headers = {"content-disposition": 'attachment; filename="now.cert"'}
        return Response(service.certificate(), media_type=BINARY, headers=headers)

    return router


def _operations_router(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/health", responses=_NOT_READY)
    def health() -> dict[str, Any]:
        """Whether it works; needs no token. Status 503 if events cannot be written to the journal."""
        return service.health()

    @router.get("/ready", responses=_NOT_READY)
    def ready() -> dict[str, Any]:
        """Whether events are accepted, as /health says. It needs no token."""
        return service.health()

    @router.get("/dead-letters", responses=_NOT_READY)
    def dead_letters() -> JSONResponse:
        """How many messages of the topic could not be applied. Status 503 until somebody takes their file away."""
        waiting = service.waiting_letters()
        return PlainJSON({"waiting": waiting, "file": str(service.dead_letters or "")}, 503 if waiting else 200)

    @router.get("/live")
    async def live() -> dict[str, Any]:
        """Whether the process answers at all, also while it cannot take events; needs no token."""
        return {"ok": True}

    @router.get("/journal", response_class=Response, responses={200: {"content": {BINARY: {}}}, **_ERRORS})
    def journal() -> Response:
        """A copy of the journal, as it is between two batches, which ``agnncert journal restore`` puts back."""
        headers = {"content-disposition": 'attachment; filename="live.journal"'}
        return Response(service.journal(), media_type=BINARY, headers=headers)

    @router.get("/summary")
    def summary() -> dict[str, Any]:
        """What the service is about, and how large it is now."""
        return service.summary()

    return router


def _metrics_router(write: Callable[[str], str]) -> APIRouter:
    router = APIRouter()

    kinds = {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in (TEXT, OPEN_METRICS)}

    @router.get("/metrics", response_class=PlainTextResponse, responses={200: {"content": kinds}})
    def metrics(request: Request) -> PlainTextResponse:
        """For Prometheus: its text format, or OpenMetrics if the header ``Accept`` names it."""
        kind = content_type_for(request.headers.get("accept", ""))
        return PlainTextResponse(write(kind), media_type=kind)

    return router


def _rates_router(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/confirmed", responses=_ERRORS)
    async def confirmed(request: Request) -> dict[str, Any]:
        """What has become known of targets: ``{"confirmed": [{"target": "alice", "class": "genuine"}]}``.

        Each target counts once, with the label that it has now. The answer says whether the rates of the threshold
        still hold.
        """
        stated = parse_json(await request.body())
        if not isinstance(stated, dict) or stated.keys() != {"confirmed"}:
            raise Refusal(400, 'expected {"confirmed": [...]}.')
        return await run_in_threadpool(service.confirm, stated["confirmed"])

    @router.get("/rates", responses=_NOT_READY)
    def rates() -> JSONResponse:
        """Whether the rates of the threshold still hold, by confirmed cases. Status 503 once one does not."""
        watched = service.watched()
        return PlainJSON(watched, 503 if watched.get("alarms") else 200)

    return router


def _pages_router(app: FastAPI, asks_token: bool) -> APIRouter:
    router = APIRouter()

    @router.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse(_page("page.html.j2", asks_token=asks_token), headers=_SAFE)

    @router.get("/api", include_in_schema=False)
    def interface() -> HTMLResponse:
        return HTMLResponse(_page("api.html.j2", schema=app.openapi()), headers=_SAFE)

    return router


def _fields(request: Request, *known: str) -> dict[str, str]:
    """Returns the fields of a question by name, each given once; with ``known``, no others.

    Raises:
        SettingsError: A field is given twice, or is unknown.
    """
    fields: dict[str, str] = {}
    for name, text in request.query_params.multi_items():
        if name in fields:
            raise SettingsError(f"{name!r:.60} is given twice.")
        if known and name not in known:
            raise SettingsError(f"{name!r:.60} is no field of this question.")
        fields[name] = text
    return fields


def _page(name: str, **values: Any) -> str:
    script = (_HERE / "page.js").read_text("utf-8")
    return fill_page(_HERE / name, values, script=script, policy="; connect-src 'self'")
