"""``serve_run``: serves the live graph of a run folder over HTTP."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import uvicorn

from agnncert.certificates.file import read_contents
from agnncert.cli.folder import ENCODING, RunFolder, find_run
from agnncert.cli.score_step import certified_alone
from agnncert.cli.settings import CertifySettings, DefenceSettings, stored_settings
from agnncert.cli.studies import certified_model, study_of_run
from agnncert.datasets.encoding import Encoding
from agnncert.errors import SettingsError
from agnncert.models.digest import model_digest
from agnncert.progress import OnProgress, Progress, tell
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.guaranteed_rate import largest_rate
from agnncert.recompute import defence_of_file
from agnncert_live.backup import journal_of
from agnncert_live.confirmed import Confirmed
from agnncert_live.connections import IdleLimit
from agnncert_live.fields import FieldCertifier
from agnncert_live.graph import LiveGraph, OldJournal
from agnncert_live.guard import LOCAL, Application, Limits, Receive, Scope, Send
from agnncert_live.http import make_app, make_starting_app, make_stateless_app
from agnncert_live.journal import JournalError
from agnncert_live.nodes import NewNodes
from agnncert_live.service import ALERT_BELOW, Service
from agnncert_live.streams import EventReader, TableRows, plain_events
from agnncert_live.topic import Topic, consuming
from agnncert_live.webhook import Webhook

log = logging.getLogger(__name__)

JOURNAL = "live.journal"
SHORTEST_TOKEN = 16
_PATIENCE = 30.0  # seconds that loading may take to notice that it need not go on


@dataclass(frozen=True)
class ServedRun:
    """The run that is served, and where its files are.

    Attributes:
        folder: The folder of a certified run.
        journal: The journal; ``live.journal`` in the folder when not given.
        root: Folder that holds the datasets.
        model: The run's model; required if it is code.
        new_nodes: Which nodes events may add; any when not given.
        from_journal: The journal of an earlier model, or its run folder, from which a new journal is begun; the tables
            of the run when not given.
    """

    folder: str | Path
    journal: str | Path | None = None
    root: str | None = None
    model: str | None = None
    new_nodes: NewNodes | None = None
    from_journal: str | Path | None = None


def service_of_run(run: ServedRun, progress: OnProgress | None = None) -> Service:
    """Returns the live graph of a certified run, resumed from its journal if there is one.

    All nodes (or graphs) are kept certified, and new ones too. The reference is the graph with which the journal began.
    Tables are read only if there is no journal to begin with.

    Args:
        run: The run.
        progress: Called while tables or the journal are read.

    Raises:
        SettingsError: The folder holds no certified run, or another model than the certified one.
        JournalError: The journal belongs to another run, or does not fit.
    """
    folder = _certified_run(run)
    tell(progress, "reading the run", 0)
    contents = read_contents(folder.certificate)
    certificate = load_certificate(folder.certificate)
    place = folder.path / JOURNAL if run.journal is None else Path(run.journal)
    trained, data = _loaded(run, folder, certificate, place, progress)
    if model_digest(trained) != certificate.claim.digests.get("model"):
        raise SettingsError(f"the model in {folder} is not the certified one: certify it again first.")
    defence = defence_of_file(contents, trained)
    if run.from_journal is not None and place.exists():
        log.warning("%s exists and goes on: %s is not read again", place, run.from_journal)
    tell(progress, "reading the journal" if data is None else "computing labels and radii", 0)
    live = defence.live(
        trained,
        data,
        journal=place,
        new_nodes=run.new_nodes,
        old_journal=None if place.exists() else _old_journal(run, folder, certificate),
        progress=progress,
    )
    try:
        _require_graph_of_run(live, place, certificate)
        live.threshold = certificate.claim.threshold
        tell(progress, "certifying the reference", 0)
        reference = _reference(live, certificate)
    except BaseException:
        live.close()
        raise
    about = folder.data
    return Service(
        live,
        reference,
        str(about.get("name") or "graph"),
        about.get("class_names"),
        confirmed=_confirmed(certificate, place),
        measured=None if live.task == "graph" else frozenset(certificate.target.tolist()),
        fields=FieldCertifier.of_run(folder, contents, trained) if is_local(defence, trained) else None,
    )


def _loaded(
    run: ServedRun, folder: RunFolder, certificate: Certificate, place: Path, progress: OnProgress | None
) -> tuple[Any, Any]:
    """Returns the certified model, and the data that the live graph begins with; None if a journal has the graph."""
    if certificate.claim.task == "node" and (place.exists() or run.from_journal is not None):
        return certified_alone(folder, DefenceSettings(root=run.root, model=run.model)).eval(), None
    tell(progress, "reading the data", 0)
    _, study = study_of_run(folder, CertifySettings(root=run.root, model=run.model), progress)
    _note_repeated(folder, study.data)
    return certified_model(folder, study.new_model()).eval(), study.data


def _old_journal(run: ServedRun, folder: RunFolder, certificate: Certificate) -> OldJournal | None:
    if run.from_journal is None:
        return None
    file = folder.path / ENCODING
    known = {}
    if certificate.truth is not None:
        ids = certificate.target.tolist()
        known = {name: label for name, label in zip(ids, certificate.truth.tolist(), strict=True) if label >= 0}
    return OldJournal(
        journal_of(run.from_journal),
        encoding=Encoding.from_json(file.read_text("utf-8")) if file.is_file() else None,
        class_names=tuple(str(name) for name in folder.data.get("class_names") or ()),
        known=known,
    )


def _require_graph_of_run(live: LiveGraph, place: Path, certificate: Certificate) -> None:
    """Refuses a journal that was begun with the graph of another run, whose tables are not read to find out.

    One that took over another journal names no graph. One of a set of graphs was compared with the data.
    """
    expected = certificate.claim.digests.get("graph")
    if live.task == "node" and live.began_with not in (None, expected):
        raise JournalError(
            f"the journal {place} belongs to another graph: it says {live.began_with}, here it is {expected}. Use "
            "another file, or what it was begun with."
        )


def stateless_of_run(run: ServedRun) -> FieldCertifier:
    """Returns what certifies nodes from receptive fields with the model of a run; no graph is loaded for it.

    Raises:
        SettingsError: The folder holds no certified run, another model than the certified one, or a defence whose
            certificates do not follow from a part of the graph.
    """
    folder = _certified_run(run)
    contents = read_contents(folder.certificate)
    model = certified_alone(folder, DefenceSettings(root=run.root, model=run.model)).eval()
    if model_digest(model) != contents.claim.digests.get("model"):
        raise SettingsError(f"the model in {folder} is not the certified one: certify it again first.")
    certifier = FieldCertifier.of_run(folder, contents, model)
    certifier.defence.hops_of_field(model)
    return certifier


def is_local(defence: Any, model: Any) -> bool:
    """Returns whether nodes can be certified from their receptive fields."""
    try:
        defence.hops_of_field(model)
    except SettingsError:
        return False
    return True


def _certified_run(run: ServedRun) -> RunFolder:
    folder = find_run(run.folder)
    if folder is None or not folder.certificate.is_file():
        raise SettingsError(f"{run.folder} is not the folder of a certified run: agnncert certify makes one.")
    return folder


def _require_live(folder: RunFolder) -> None:
    """Refuses a run before anything is loaded or answered if its kind of defence cannot be kept up to date."""
    defence = defence_of_file(read_contents(folder.certificate), None)
    if "live" in defence.cannot:
        raise defence.refusal("live")


def _confirmed(certificate: Certificate, journal: Path) -> Confirmed | None:
    """Returns what watches the rates of the run's threshold; None if it has none.

    The recall that is to hold is the one that the certified targets prove with 95 % confidence: no more is known.
    """
    threshold = certificate.claim.threshold
    if threshold is None:
        return None
    recall = None
    if certificate.truth is not None:
        is_positive = certificate.truth == threshold.positive
        missed = int((certificate.label[is_positive] != threshold.positive).sum())
        recall = 1 - largest_rate(missed, int(is_positive.sum()), 0.95)
    return Confirmed(threshold, recall, journal.with_name(journal.name + ".confirmed"))


def _note_repeated(folder: RunFolder, data: Any) -> None:
    """Has the data say how repeated edges were combined, if the settings of the run do."""
    steps = [step for step in folder.settings.values() if isinstance(step, dict)]
    repeated = next((step["repeated"] for step in steps if step.get("repeated")), None)
    if repeated is not None and getattr(data, "repeated", None) is None:
        data.repeated = repeated


def _reference(live: LiveGraph, certificate: Certificate) -> Certificate:
    """Returns the certificate that decisions are compared with: that of the run's graph, certified again.

    It is not read from the folder, which may be somebody else's: no file can prove what a model votes.
    """
    if live.number == 0:
        return live.reference()
    reference = live.reference_again(certificate.claim.digests.get("graph"))
    return live.reference() if reference is None else reference


def serve_run(  # noqa: PLR0913 - every setting is a keyword
    run: ServedRun,
    host: str = "127.0.0.1",
    port: int = 8470,
    *,
    token: str | None = None,
    limits: Limits | None = None,
    webhook: str | None = None,
    webhook_secret: str | None = None,
    topic: Topic | None = None,
    on_ready: Callable[[str, Service], None] | None = None,
    progress: OnProgress | None = None,
) -> None:
    """Serves a run until it is stopped. While it is loaded, ``/live`` answers, and all else says how far it is.

    Args:
        run: The run.
        host: Address to listen at. Beyond this machine, a token is required.
        port: Port to listen at; 0 for any that is free.
        token: What clients must send.
        limits: What one client may do.
        webhook: Address to which alerts are posted, see ``Webhook``; None for nowhere.
        webhook_secret: What alerts are signed with; None for no signature.
        topic: A Kafka topic whose messages are applied too; None for none.
        on_ready: Called with the address once the service has been loaded.
        progress: Called while it is loaded.

    Raises:
        SettingsError: There is no token though there should be, the port cannot be had, or the defence cannot be kept
            up to date.
    """
    _require_token(token, host)
    _require_live(_certified_run(run))
    torch.set_num_threads(1)  # many small computations: several threads wait for each other
    listening = listen(host, port)
    named_host = f"[{host}]" if ":" in host else host
    address = f"http://{named_host}:{listening.getsockname()[1]}"

    def open_service(loading: _Loading) -> None:
        service = service_of_run(run, loading.note)
        loading.opened.enter_context(service.live)
        loading.opened.enter_context(_alerts(service, webhook, webhook_secret))
        loading.opened.enter_context(consuming(service, topic, rows_reader(run.folder, service), loading.stop))
        loading.app = make_app(service, token, limits)
        if on_ready is not None:
            on_ready(address, service)

    loading = _Loading(open_service, progress)
    loading.app = make_starting_app(lambda: loading.stage, token, limits)
    try:
        run_until(loading, listening, loading.thread.start, loading.stop)
    finally:
        listening.close()
        loading.end()


class _Stopped(Exception):  # noqa: N818 - reads as a statement where it is raised
    """The service is to end while it is still being loaded."""


class _Loading:
    """Loads a service in a thread while an application says how far it is, which the service then replaces.

    Args:
        open_service: Loads the service, and sets ``app``.
        progress: Called when something is noted.

    Attributes:
        app: What answers.
        stage: How far it is.
        stop: Ends the server; set when the service cannot be loaded.
        opened: What is closed at the end.
        thread: The thread that loads it.
    """

    app: Application

    def __init__(self, open_service: "Callable[[_Loading], None]", progress: OnProgress | None) -> None:
        self.stage = "nothing is loaded yet"
        self.stop = threading.Event()
        self.opened = ExitStack()
        self.thread = threading.Thread(target=self._load, name="loading", daemon=True)
        self._open_service = open_service
        self._progress = progress
        self._is_ended = False
        self._error: BaseException | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as ASGI asks."""
        await self.app(scope, receive, send)

    def note(self, progress: Progress) -> None:
        """Notes how far it is.

        Raises:
            _Stopped: It need not go on.
        """
        if self._is_ended:
            raise _Stopped
        share = f" ({progress.done:,} of {progress.total:,})" if progress.total > 1 else ""
        self.stage = progress.what + share
        if self._progress is not None:
            self._progress(progress)

    def _load(self) -> None:
        try:
            self._open_service(self)
        except BaseException as error:  # whatever it is, nothing is served
            self._error = error
            self.stop.set()

    def end(self) -> None:
        """Closes what was opened, or raises what went wrong while it was loaded."""
        self._is_ended = True
        if self.thread.ident is not None:
            self.thread.join(_PATIENCE)
        if not self.thread.is_alive():
            self.opened.close()
        if self._error is not None and not isinstance(self._error, _Stopped):
            raise self._error


def serve_stateless(
    run: ServedRun,
    host: str = "127.0.0.1",
    port: int = 8470,
    *,
    token: str | None = None,
    limits: Limits | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Certifies nodes from receptive fields until it is stopped. It holds no graph and keeps nothing.

    The arguments are those of :func:`serve_run`.
    """
    _require_token(token, host)
    listening = listen(host, port)
    try:
        certifier = stateless_of_run(run)
        named_host = f"[{host}]" if ":" in host else host
        address = f"http://{named_host}:{listening.getsockname()[1]}"
        app = make_stateless_app(certifier, certifier.summary(), token, limits)
        run_until(app, listening, None if on_ready is None else partial(on_ready, address))
    finally:
        listening.close()


def rows_reader(source: str | Path, service: Service) -> EventReader:
    """Returns what reads messages of a topic: events, and rows of the table if the graph of the run is made of such.

    Args:
        source: The folder of the run, which knows what the columns are called.
        service: The service of the run.
    """
    folder = find_run(source)
    encoding = service.live.encoding
    if folder is None or encoding is None or not encoding.edges:
        return plain_events
    names = [column.name for column in encoding.edges] if encoding.events is None else encoding.events.column_names
    columns = stored_settings(folder).column
    return TableRows(columns.get("source", "source"), columns.get("target", "target"), names)


def _require_token(token: str | None, host: str) -> None:
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise SettingsError(f"the token has {len(token)} characters: take at least {SHORTEST_TOKEN}, drawn at random.")
    if token is None and host not in LOCAL:
        raise SettingsError(
            f"{host} can be reached from elsewhere: set a token (AGNNCERT_TOKEN, or --token-file), or listen at "
            "127.0.0.1."
        )


def _alerts(service: Service, webhook: str | None, secret: str | None) -> AbstractContextManager[object]:
    if webhook is None:
        return nullcontext()
    return Webhook(service.live, webhook, below=ALERT_BELOW, class_names=service.class_names, secret=secret)


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that is bound to an address.

    Raises:
        SettingsError: The address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"cannot listen at {host}:{port}: {reason}.") from error
    return listening


def run_until(
    app: Application,
    listening: socket.socket,
    on_ready: Callable[[], None] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Answers until the process is told to end, or ``stop`` is set.

    Args:
        app: The application.
        listening: A socket that is bound to an address.
        on_ready: Called once requests are answered.
        stop: Ends it.
    """
    config = uvicorn.Config(
        app,
        http=IdleLimit,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=10,
    )
    server = _Server(config)
    server.on_ready = on_ready
    server.stop = stop
    server.run(sockets=[listening])


class _Server(uvicorn.Server):
    on_ready: Callable[[], None] | None = None
    stop: threading.Event | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.on_ready is not None and self.started:
            self.on_ready()

    async def on_tick(self, counter: int) -> bool:
        is_stopped = self.stop is not None and self.stop.is_set()
        return await super().on_tick(counter) or is_stopped


def token_from(file: str | Path | None, variable: str = "AGNNCERT_TOKEN") -> str | None:
    """Returns the token in a file, or in a variable of the environment, or None.

    It is not an option of the command, because others can read the command line.

    Raises:
        SettingsError: The file cannot be read.
    """
    if file is None:
        return os.environ.get(variable) or None
    try:
        return Path(file).read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"cannot read the token from {file}: {reason}.") from error
