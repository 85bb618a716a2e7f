"""``app``: the typer application with all commands."""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from agnncert import __version__
from agnncert.addons import addons
from agnncert.cli.commands import COMMANDS
from agnncert.cli.options import with_options


class _Command(TyperCommand):
    """A command whose ``--help`` has no type beside it, like all flags here."""

    def get_help_option(self, ctx: Any) -> Any:
        return _without_type(super().get_help_option(ctx))


class _Group(TyperGroup):
    """The same for ``agnncert`` itself."""

    def get_help_option(self, ctx: Any) -> Any:
        return _without_type(super().get_help_option(ctx))


def _without_type(option: Any) -> Any:
    if option is not None:
        option.metavar = ""
    return option


app = typer.Typer(
    name="agnncert", cls=_Group, add_completion=False,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


class Stopped(Exception):  # noqa: N818 - not an error
    """The user interrupted a command; the message says how to go on."""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"agnncert {__version__}")
        raise typer.Exit


@app.callback()
def agnncert(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", metavar="", help="Show where an error comes from.")] = False,
) -> None:
    """Graph neural networks whose decisions carry a proof.

    Start with: agnncert demo
    """


def _add(command: Callable[..., None]) -> None:
    """Adds a command. Lines within a paragraph of its docstring are joined, so that typer can wrap them."""
    paragraphs = str(inspect.getdoc(command)).split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(cls=_Command, help=text)(_stoppable(with_options(command)))


def _stoppable(command: Callable[..., None]) -> Callable[..., None]:
    """The same command; on Ctrl-C it raises ``Stopped`` with the interruption's message, which typer would drop."""

    @functools.wraps(command)
    def run(**options: Any) -> None:
        try:
            command(**options)
        except KeyboardInterrupt as error:
            raise Stopped(str(error)) from None
        except BrokenPipeError:  # the reader of our output, such as head, has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return run


for _command in COMMANDS:
    _add(_command)
for _point in addons("agnncert.commands").values():
    _add(_point.load())
