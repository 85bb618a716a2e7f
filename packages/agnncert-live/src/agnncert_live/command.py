"""The command ``agnncert serve``."""

from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli.options import ModelOfRun, Root
from agnncert.errors import SettingsError, missing


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
    root: Root = None,
    model: ModelOfRun = None,
) -> None:  # fmt: skip
    """Keep decisions and their proofs current while the graph changes, as a service.

    Takes events over HTTP, answers what is proved now, and shows the decisions that are closest to falling. Everything
    acknowledged is in the journal: started again, it goes on.
    """
    if rate <= 0 or body < 1:
        raise SettingsError(f"--rate {rate:g} --body {body}: expected numbers above 0.")
    try:
        from agnncert_live.guard import Limits
        from agnncert_live.run import ServedRun, serve_run, token_from
    except ModuleNotFoundError as error:
        raise missing(error.name, "agnncert serve") from error

    def on_ready(address: str, service: object) -> None:
        typer.echo(f"{address} answers: a page for people, {address}/api for programs. Ctrl-C ends it.")

    serve_run(
        ServedRun(run, journal, root, model),
        host,
        port,
        token=token_from(token_file),
        limits=Limits(rate=rate, body=body * 1_000_000),
        webhook=webhook,
        on_ready=on_ready,
    )
