"""Options that several commands share, and settings files."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from agnncert.errors import SettingsError, did_you_mean
from agnncert.studies.folder import read_toml

DATA, MODEL, RUN = "Data", "Model and division", "Run"


def use_settings(context: typer.Context, file: Path | None) -> Path | None:
    """Takes options that were not typed from the command's table in a TOML file."""
    if file is None or context.resilient_parsing:
        return file
    tables, command = read_toml(file), str(context.info_name)
    parent: Any = context.parent
    for name, value in tables.items():
        if not isinstance(value, dict):
            raise SettingsError(f'{file}: "{name}" stands outside of a table: put it below [{command}].')
        if name not in parent.command.commands:
            raise SettingsError(f"{file}: no command is called [{name}]: {did_you_mean(name, parent.command.commands)}")
    if command not in tables:
        raise SettingsError(f"{file} has no table [{command}]: it has {', '.join(f'[{t}]' for t in tables) or 'none'}.")
    keys = {p.name: p for p in context.command.params if p.name not in ("settings", "json", "help", None)}
    found: dict[str, Any] = {}
    for key, value in tables[command].items():
        name = key.replace("-", "_")
        if name not in keys:
            raise SettingsError(f'{file}: [{command}] has no setting "{key}": {did_you_mean(key, keys)}')
        found[name] = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
    context.default_map = found
    return file


def pairs(option: str, words: list[str]) -> dict[str, Any]:
    """KEY=VALUE words as a dictionary; values are read as TOML where that is possible, else as text.

    Example:
        >>> pairs("set", ["num_layers=2", "act=relu"])
        {'num_layers': 2, 'act': 'relu'}
    """
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise SettingsError(f'--{option} {word}: expected NAME=VALUE, such as "{option} {key or "name"}=…".')
        found[key.strip()] = _value(value.strip())
    return found


def texts(option: str, words: list[str]) -> dict[str, str]:
    """KEY=VALUE words as a dictionary of texts."""
    return {key: str(value) for key, value in pairs(option, words).items()}


def numbers(option: str, words: str) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    found = [word.strip() for word in words.split(",") if word.strip()]
    if not all(word.isdecimal() for word in found) or (words and not found):
        raise SettingsError(f"--{option} {words}: expected whole numbers from 0 on, such as 1,5,20.")
    return tuple(int(word) for word in found)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text.lower() if text.lower() in ('true', 'false') else text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", is_eager=True, callback=use_settings, rich_help_panel=RUN, metavar="FILE",
        help="TOML file with a table for this command; what is typed here comes first.",
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print the outcome as JSON.", rich_help_panel=RUN)]
Out = Annotated[
    Path | None, typer.Option(help="Run folder; one below runs/ if not given.", rich_help_panel=RUN, metavar="FOLDER")
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", metavar="", help="Start anew even if the run folder holds a run.", rich_help_panel=RUN),
]
Root = Annotated[
    str | None, typer.Option(help="Folder that holds the datasets.", rich_help_panel=DATA, metavar="FOLDER")
]
Nodes = Annotated[str | None, typer.Option(help="Table of nodes.", rich_help_panel=DATA, metavar="FILE")]
Edges = Annotated[str | None, typer.Option(help="Table of edges.", rich_help_panel=DATA, metavar="FILE")]
Graphs = Annotated[
    str | None, typer.Option(help="Table of graphs, for graph classification.", rich_help_panel=DATA, metavar="FILE")
]
Column = Annotated[
    list[str],
    typer.Option(
        rich_help_panel=DATA, metavar="KIND=NAME", default_factory=list, show_default=False,
        help="Name of a column: id, label, split, graph, source, target or weight. May be repeated.",
    ),
]  # fmt: skip
Feature = Annotated[
    list[str],
    typer.Option(
        rich_help_panel=DATA, metavar="NAME", default_factory=list, show_default=False,
        help="Column of features; all other columns if not given. May be repeated.",
    ),
]  # fmt: skip
Directed = Annotated[
    bool, typer.Option("--directed", metavar="", help="Edges of the tables go one way only.", rich_help_panel=DATA)
]
Seed = Annotated[int, typer.Option(help="Seed of the split and of everything random.", rich_help_panel=DATA)]
Set = Annotated[
    list[str],
    typer.Option(
        "--set", rich_help_panel=MODEL, metavar="NAME=VALUE", default_factory=list, show_default=False,
        help="Setting of the model: hidden_channels, num_layers, dropout, act, norm, jk, heads, readout; or "
        "an argument of your factory. May be repeated.",
    ),
]  # fmt: skip
Division = Annotated[str | None, typer.Option(help="node, edge, or gated.", rich_help_panel=MODEL, show_default="node")]
Groups = Annotated[
    int | None,
    typer.Option(help="Number of subgraphs T.", rich_help_panel=MODEL, show_default="300 for nodes, 30 for graphs"),
]
Hash = Annotated[
    str | None, typer.Option("--hash", help="md5, sha1, sha256 or blake2b.", rich_help_panel=MODEL, show_default="md5")
]
