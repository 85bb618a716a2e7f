"""The command line: ``main`` runs a command, and turns every error into a message and an exit status.

``commands`` holds one function per command, ``options`` what they share, ``settings`` the keys of a settings file,
``folder`` the run folder, ``inputs`` data and model; the ``*_step`` modules do what the commands ask for.

Exit status: 0 done, and nothing was refuted; 1 refuted; 2 the call or the input was wrong; 130 interrupted.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agnncert.addons import addons
from agnncert.errors import AgnncertError, missing

if TYPE_CHECKING:
    import typer

_PACKAGE = str(Path(__file__).parents[1])
# Commands of add-on packages.
ADDED = {
    "compare": "agnncert_peers",
    "scan": "agnncert_code",
    "serve": "agnncert_live",
    "journal": "agnncert_live",
    "partition": "agnncert_large",
}
DONE, REFUTED, WRONG, INTERRUPTED = 0, 1, 2, 130


class Stopped(Exception):  # noqa: N818 - not an error
    """The user interrupted a command; the message says how to continue."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the ``agnncert`` command; returns the exit status."""
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        from agnncert.cli.commands import app
    except ModuleNotFoundError as error:
        return _fail(str(missing(error.name, "the command line")))
    if words[0] in ADDED and words[0] not in addons("agnncert.commands"):
        return _fail(str(missing(ADDED[words[0]], f"agnncert {words[0]}")))
    return run_app(app, words, "agnncert")


def run_app(app: "typer.Typer", words: list[str], name: str) -> int:
    """Runs a typer application; returns the exit status."""
    try:
        status = app(args=words, prog_name=name, standalone_mode=False)
        if status == INTERRUPTED:  # Ctrl-C outside of a run folder
            raise Stopped("the same command continues with what was finished.")
        return status if isinstance(status, int) else DONE
    except AgnncertError as error:
        return _fail(str(error))
    except Stopped as stopped:
        print(f"stopped: {stopped}", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if "--debug" in words:
            raise
        return _fail(_explained(error))


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return WRONG


def _explained(error: Exception) -> str:
    """The message for an error that is not an ``AgnncertError``."""
    if hasattr(error, "format_message"):  # typer's own: an unknown option, a value of the wrong type, …
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "agnncert"
        message = error.format_message().replace("(Possible options:", "(did you mean:").rstrip(".")
        return f"{message}. See {command} --help."
    if isinstance(error, ModuleNotFoundError):
        return str(missing(error.name))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return "there is not enough memory: set a limit with --set memory=MB, or certify fewer targets."
    return f"{type(error).__name__}: {error}{place_of(error)}. (--debug shows where it comes from.)"


def place_of(error: BaseException) -> str:
    """File and line of an error, outside of this and of installed packages: most likely in a user's own model."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(("<", _PACKAGE)) and "site-packages" not in file and "importlib" not in file:
            place = f" ({Path(file).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place
