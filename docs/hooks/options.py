"""Fills in the options of a command: ``<!-- options: certify -->`` becomes a table made from the command itself."""

import re
from typing import Any

import typer

from agnncert.cli.app import app

_PLACE = re.compile(r"<!-- options: (\w+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return _PLACE.sub(lambda found: options_table(found[1]), markdown)


def options_table(command: str) -> str:
    """The arguments and options of a command as a table, its settings in the order of ``--help``."""
    found: Any = typer.main.get_command(app)
    parameters = found.commands[command].params
    rows = [_row(parameter) for parameter in parameters if parameter.name != "help"]
    return "\n".join(["| option | meaning | if not given |", "|---|---|---|", *rows])


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    given = (
        [*parameter.opts, *parameter.secondary_opts]
        if is_option
        else [parameter.metavar or parameter.name.upper()]
    )
    names = ", ".join(given).replace("|", "or")
    text = str(getattr(parameter, "help", None) or "").replace("|", "\\|")
    return f"| `{names}` | {text} | {_default(parameter)} |"


def _default(parameter: Any) -> str:
    shown, default = getattr(parameter, "show_default", None), parameter.default
    if isinstance(shown, str):
        return shown
    if default is None or callable(default) or default == "" or isinstance(default, bool):
        return "yes" if default is True else ""
    return f"`{default}`"
