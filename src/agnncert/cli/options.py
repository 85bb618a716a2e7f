"""Options: those that belong to no settings class, those made from a settings class, and options from a TOML file."""

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from agnncert.errors import SettingsError, did_you_mean
from agnncert.studies.folder import read_toml
from agnncert.studies.settings import (
    CERTIFICATION,
    DATA,
    MODEL,
    TRAINING,
    DataSettings,
    Option,
    options_of,
    settings_from,
)

RUN = "Run"
_PANELS = (None, MODEL, TRAINING, CERTIFICATION, DATA)  # the order of ``--help``
_NEGATABLE = (True, None)  # --name and --no-name, if the default is yes or left open; a flag otherwise


@dataclass(frozen=True, init=False)
class From:
    """Which settings of a class become options of a command: stands beside the class in an ``Annotated``.

    Attributes:
        names: Their names, in this order; all of them, panel by panel, if there are none.
        changes: What this command shows differently, by name: fields of ``Option``, or ``None`` to leave it out.
    """

    names: tuple[str, ...]
    changes: Mapping[str, Mapping[str, Any] | None]

    def __init__(self, *names: str, **changes: Mapping[str, Any] | None) -> None:
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "changes", changes)

    def options(self, kind: type[DataSettings]) -> dict[str, Option]:
        """The options by name, in the order of ``--help``."""
        known = options_of(kind)
        shown = self.names or sorted(known, key=lambda name: _PANELS.index(known[name].panel))
        changed = {name: self.changes.get(name, {}) for name in shown}
        return {name: replace(known[name], **change) for name, change in changed.items() if change is not None}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters of the form ``Annotated[TrainSettings, From(…)]`` are replaced by their options.

    What is typed for these options reaches the command as one object of that class.
    """
    plain = inspect.signature(command)
    made = {one.name: get_args(one.annotation) for one in plain.parameters.values() if _is_made(one.annotation)}
    options = {name: chosen.options(kind) for name, (kind, chosen) in made.items()}

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, (kind, _) in made.items():
            table = {one: _value_of(one, option, values.pop(one)) for one, option in options[name].items()}
            values[name] = settings_from(kind, table)
        command(**values)

    def parameters() -> Iterator[inspect.Parameter]:
        for one in plain.parameters.values():
            if one.name in options:
                yield from (_parameter(name, option) for name, option in options[one.name].items())
            else:
                yield one.replace(kind=inspect.Parameter.KEYWORD_ONLY)

    run.__signature__ = plain.replace(parameters=list(parameters()))  # type: ignore[attr-defined]
    return run


def _is_made(annotation: Any) -> bool:
    return get_origin(annotation) is Annotated and isinstance(get_args(annotation)[1], From)


def _parameter(name: str, option: Option) -> inspect.Parameter:
    """A parameter from which typer makes the option."""
    shown: dict[str, Any] = {"help": option.help, "rich_help_panel": option.panel, "metavar": option.metavar}
    words, default = [], option.default
    if option.is_argument:
        del shown["rich_help_panel"]
    elif option.type is bool and default not in _NEGATABLE:
        words, shown["metavar"] = [f"--{name.replace('_', '-')}"], ""
    kind = option.type
    if _is_repeated(option):
        kind, default = list[str], ...
        shown |= {"default_factory": list, "show_default": False}
    elif option.shown_default is not None:
        shown["show_default"] = option.shown_default
    make: Any = typer.Argument if option.is_argument else typer.Option
    if default is None and type(None) not in get_args(kind):
        kind = kind | None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[kind, make(*words, **shown)],
    )


def _is_repeated(option: Option) -> bool:
    return get_origin(option.type) in (tuple, Mapping)


def _value_of(name: str, option: Option, typed: Any) -> Any:
    """What was typed, in the type of the setting."""
    if get_origin(option.type) is not Mapping:
        return typed
    named = pairs(name, typed)
    return {key: str(value) for key, value in named.items()} if get_args(option.type)[1] is str else named


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
    given: dict[str, Any] = {}
    for key, value in tables[command].items():
        name = key.replace("-", "_")
        if name not in keys:
            raise SettingsError(f'{file}: [{command}] has no setting "{key}": {did_you_mean(key, keys)}')
        given[name] = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
    context.default_map = given
    return file


def pairs(option: str, words: list[str]) -> dict[str, Any]:
    """KEY=VALUE words as a dictionary; values are read as TOML where that is possible, else as text.

    Example:
        >>> pairs("set", ["num_layers=2", "act=relu"])
        {'num_layers': 2, 'act': 'relu'}
    """
    values = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise SettingsError(f'--{option} {word}: expected NAME=VALUE, such as "{option} {key or "name"}=…".')
        values[key.strip()] = _read(value.strip())
    return values


def numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() for word in words) or (text and not words):
        raise SettingsError(f"--{option} {text}: expected whole numbers from 0 on, such as 1,5,20.")
    return tuple(int(word) for word in words)


def _read(text: str) -> Any:
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
