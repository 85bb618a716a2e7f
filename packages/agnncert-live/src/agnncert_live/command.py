"""The command ``agnncert serve``."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli.options import ModelOfRun, Root
from agnncert.errors import SettingsError, missing
from agnncert.progress import Progress

log = logging.getLogger(__name__)


def serve(
    run: Annotated[Path, typer.Argument(help="The folder of a certified run.", metavar="RUN")],
    host: Annotated[
        str, typer.Option(help="Address to listen at; beyond this machine a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen at; 0 for any.", metavar="N")
    ] = 8470,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File that holds the token that clients must send.", metavar="FILE",
            show_default="the environment's AGNNCERT_TOKEN",
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps every event.", metavar="FILE", show_default="live.journal in the run folder",
        ),
    ] = None,
    from_journal: Annotated[
        Path | None,
        typer.Option(
            help="Journal of an earlier model, or its run folder: begin with its graph and event keys.", metavar="FILE",
            show_default="the tables of the run",
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option(help="Requests per second that one client may make.", metavar="N")
    ] = 100.0,
    body: Annotated[
        int, typer.Option(help="Megabytes that a request may have.", metavar="MB")
    ] = 8,
    webhook: Annotated[
        str | None,
        typer.Option(
            help="Address to which alerts are posted: labels that flip, radii that fall below 3.", metavar="URL",
        ),
    ] = None,
    webhook_secret: Annotated[
        Path | None,
        typer.Option(
            help="File with a secret that alerts are signed with (HMAC-SHA256).", metavar="FILE",
            show_default="the environment's AGNNCERT_WEBHOOK_SECRET",
        ),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            help="Topic whose messages are applied too: events, or rows of the table of edges.",
            metavar="HOST:PORT/TOPIC",
        ),
    ] = None,
    kafka_settings: Annotated[
        Path | None,
        typer.Option(help="Settings of Kafka's client, NAME=VALUE on each line.", metavar="FILE"),
    ] = None,
    known_only: Annotated[
        bool, typer.Option("--known-only", help="Refuse events that name a node that is not there.")
    ] = False,
    ids: Annotated[
        str | None,
        typer.Option(help="Regular expression that ids of new nodes must match.", metavar="PATTERN"),
    ] = None,
    stateless: Annotated[
        bool,
        typer.Option("--stateless", help="Hold no graph: only certify receptive fields that are sent to /certify."),
    ] = False,
    log_format: Annotated[
        str, typer.Option(help="text, or json: one JSON object per line on standard error.", metavar="FORMAT")
    ] = "text",
    root: Root = None,
    model: ModelOfRun = None,
) -> None:  # fmt: skip
    """Serve certified decisions over HTTP while the graph changes.

    Takes events over HTTP and from a Kafka topic, answers what is certified now, and shows the decisions with the
    smallest radius. Every acknowledged event is in the journal, so the service continues after a restart.
    """
    if rate <= 0 or body < 1:
        raise SettingsError(f"--rate {rate:g} --body {body}: expected numbers above 0.")
    if log_format not in ("text", "json"):
        raise SettingsError(f"--log-format {log_format}: expected text or json.")
    try:
        from agnncert_live.guard import Limits
        from agnncert_live.logs import log_as_json
        from agnncert_live.nodes import NewNodes
        from agnncert_live.run import ServedRun, serve_run, serve_stateless, token_from
        from agnncert_live.topic import Topic
    except ModuleNotFoundError as error:
        raise missing(error.name, "agnncert serve") from error

    if log_format == "json":
        log_as_json()

    def on_ready(address: str, service: object) -> None:
        typer.echo(f"{address} answers: a page for people, {address}/api for programs. Ctrl-C ends it.")

    served = ServedRun(run, journal, root, model, NewNodes(ids, known_only), from_journal)
    limits = Limits(rate=rate, body=body * 1_000_000)
    if stateless:
        given = {"--journal": journal, "--from-journal": from_journal, "--webhook": webhook, "--kafka": kafka}
        useless = [option for option, value in given.items() if value is not None]
        if useless:
            raise SettingsError(f"{useless[0]} is about a graph, and --stateless holds none: leave one out.")
        serve_stateless(
            served,
            host,
            port,
            token=token_from(token_file),
            limits=limits,
            on_ready=lambda place: on_ready(place, None),
        )
        return
    serve_run(
        served,
        host,
        port,
        token=token_from(token_file),
        limits=limits,
        webhook=webhook,
        webhook_secret=token_from(webhook_secret, "AGNNCERT_WEBHOOK_SECRET"),
        topic=None if kafka is None else Topic.parse(kafka, kafka_settings),
        on_ready=on_ready,
        progress=_log_progress if log_format == "json" else _say_progress,
    )


def _say_progress(progress: Progress) -> None:
    typer.echo(f"starting: {_how_far(progress)}", err=True)


def _log_progress(progress: Progress) -> None:
    log.info("starting: %s", _how_far(progress))


def _how_far(progress: Progress) -> str:
    share = f" ({progress.done:,} of {progress.total:,})" if progress.total > 1 else ""
    return progress.what + share


def journal(
    action: Annotated[str, typer.Argument(help="check, backup or restore.", metavar="ACTION")],
    source: Annotated[
        Path, typer.Argument(help="A run folder, or the file of a journal; restore: the copy.", metavar="SOURCE")
    ],
    destination: Annotated[
        Path | None,
        typer.Argument(help="backup: the copy; restore: the run folder or journal to put it into.", metavar="DEST"),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="restore: replace a journal that is there; it is kept as NAME.before.")
    ] = False,
) -> None:
    """Check, copy or restore the journal of a live graph.

    A journal is compared with its digests. While a service has it open, no other process can read it: request a copy
    from the service with GET /journal.
    """
    try:
        from agnncert_live.backup import backup_journal, check_journal, journal_of, restore_journal
        from agnncert_live.journal import JournalError
    except ModuleNotFoundError as error:
        raise missing(error.name, "agnncert journal") from error
    if action not in ("check", "backup", "restore"):
        raise SettingsError(f"{action!r:.60}: expected check, backup or restore.")
    if (destination is None) != (action == "check"):
        wanted = "check has no destination" if action == "check" else f"{action} needs a destination"
        raise SettingsError(f"{wanted}: see agnncert journal --help.")
    try:
        if destination is None:
            summary = check_journal(journal_of(source))
        elif action == "backup":
            summary = backup_journal(journal_of(source), destination)
        else:
            summary = restore_journal(source, journal_of(destination), replace)
    except JournalError as error:
        typer.echo(f"refuted: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(str(summary))
