"""``serve_run``: serves the live graph of a run folder over HTTP."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from agnncert.certificates.file import read_contents
from agnncert.certifier import certify
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.score_step import certified_alone
from agnncert.cli.settings import CertifySettings, DefenceSettings, stored_settings
from agnncert.cli.studies import certified_model, study_of_run
from agnncert.errors import SettingsError
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.guaranteed_rate import largest_rate
from agnncert.recompute import defence_of_file
from agnncert_live.confirmed import Confirmed
from agnncert_live.connections import IdleLimit
from agnncert_live.fields import FieldCertifier
from agnncert_live.graph import LiveGraph
from agnncert_live.guard import LOCAL, Guard, Limits
from agnncert_live.http import make_app, make_stateless_app
from agnncert_live.nodes import NewNodes
from agnncert_live.service import ALERT_BELOW, Service
from agnncert_live.streams import EventReader, TableRows, plain_events
from agnncert_live.topic import Topic, consuming
from agnncert_live.webhook import Webhook

log = logging.getLogger(__name__)

JOURNAL = "live.journal"
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class ServedRun:
    """The run that is served, and where its files are.

    Attributes:
        folder: The folder of a certified run.
        journal: The journal; ``live.journal`` in the folder when not given.
        root: Folder that holds the datasets.
        model: The run's model; required if it is code.
        new_nodes: Which nodes events may add; any when not given.
    """

    folder: str | Path
    journal: str | Path | None = None
    root: str | None = None
    model: str | None = None
    new_nodes: NewNodes | None = None


def service_of_run(run: ServedRun) -> Service:
    """Returns the live graph of a certified run, resumed from its journal if there is one.

    All nodes (or graphs) are kept certified, and new ones too. The reference is the graph with which the journal began.

    Raises:
        SettingsError: The folder holds no certified run, or another model than the certified one.
    """
    folder = _certified_run(run)
    _, study = study_of_run(folder, CertifySettings(root=run.root, model=run.model))
    certificate = load_certificate(folder.certificate)
    trained = certified_model(folder, study.new_model()).eval()
    if model_digest(trained) != certificate.claim.digests.get("model"):
        raise SettingsError(f"the model in {folder} is not the certified one: certify it again first.")
    contents = read_contents(folder.certificate)
    defence = defence_of_file(contents, trained)
    _note_repeated(folder, study.data)
    place = folder.path / JOURNAL if run.journal is None else Path(run.journal)
    live = defence.live(trained, study.data, journal=place, new_nodes=run.new_nodes)
    live.threshold = certificate.claim.threshold
    reference = _reference(live, study.data)
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


def _reference(live: LiveGraph, data: Any) -> Certificate:
    """Returns the certificate that decisions are compared with: that of the run's graph, certified again.

    It is not read from the folder, which may be somebody else's: no file can prove what a model votes.
    """
    if live.number == 0:
        return live.reference()
    reference = certify(live.model, data, live.defence)
    if live.follows(reference):
        return reference
    log.warning("the journal does not begin with the run's graph: the graph as it is becomes the reference")
    return live.reference()


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
) -> None:
    """Serves a run until it is stopped.

    Args:
        run: The run.
        host: Address to listen at. Beyond this machine, a token is required.
        port: Port to listen at; 0 for any that is free.
        token: What clients must send.
        limits: What one client may do.
        webhook: Address to which alerts are posted, see ``Webhook``; None for nowhere.
        webhook_secret: What alerts are signed with; None for no signature.
        topic: A Kafka topic whose messages are applied too; None for none.
        on_ready: Called with the address once requests are answered.

    Raises:
        SettingsError: There is no token though there should be, or the port cannot be had.
    """
    _require_token(token, host)
    listening = listen(host, port)
    try:
        service = service_of_run(run)
        named_host = f"[{host}]" if ":" in host else host
        address = f"http://{named_host}:{listening.getsockname()[1]}"

        def ready() -> None:
            if on_ready is not None:
                on_ready(address, service)

        stop = threading.Event()
        alerts = _alerts(service, webhook, webhook_secret)
        with service.live, alerts, consuming(service, topic, rows_reader(run.folder, service), stop):
            run_until(make_app(service, token, limits), listening, ready, stop)
    finally:
        listening.close()


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
    app: Guard,
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
