"""The commands, gathered."""

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from agnncert import __version__
from agnncert.cli import attack, audit, certify, datasets, demo, repeat, report, train, verify

app = typer.Typer(
    name="agnncert", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        print(f"agnncert {__version__}")
        raise typer.Exit


@app.callback()
def agnncert(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """Graph neural networks whose decisions carry a proof.

    Start with: agnncert demo
    """


def _add(command: Callable[..., None]) -> None:
    """Adds a command; the lines of each paragraph of its help are joined, to be wrapped anew."""
    paragraphs = str(inspect.getdoc(command)).split("\n\n")
    app.command(help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))(command)


for _module in (demo, datasets, train, certify, verify, audit, attack, report, repeat):
    _add(getattr(_module, _module.__name__.rpartition(".")[2]))
