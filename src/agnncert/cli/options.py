"""Options of the commands: made from the settings classes, read from a TOML file, or declared at the end here."""

import functools
import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from agnncert.cli.settings import CERTIFICATION, DATA, MODEL, TRAINING, DataSettings, Option, options_of, settings_from
from agnncert.errors import SettingsError, did_you_mean

RUN = "Run"
_PANELS = (None, MODEL, TRAINING, CERTIFICATION, DATA)  # the order of ``--help``


class From:
    """Which settings of a class become options of a command, as in ``Annotated[TrainSettings, From(weights=None)]``.

    Args:
        *names: Their names, in the order of ``--help``; when not given, all of them, panel by panel.
        **changes: What the command shows differently, by name: fields of ``Option``, or ``None`` to leave it out.
    """

    def __init__(self, *names: str, **changes: Mapping[str, Any] | None) -> None:
        self.names, self.changes = names, changes

    def options(self, kind: type[DataSettings]) -> dict[str, Option]:
        """The options by name, in the order of ``--help``."""
        known = options_of(kind)
        names = self.names or sorted(known, key=lambda name: _PANELS.index(known[name].panel))
        changes = {name: self.changes.get(name, {}) for name in names}
        return {name: replace(known[name], **change) for name, change in changes.items() if change is not None}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, with one option per setting in place of a parameter like ``Annotated[TrainSettings, From(…)]``.

    The values of these options reach the command as one object of that class.
    """
    parameters: list[inspect.Parameter] = []
    settings: dict[str, tuple[type[DataSettings], dict[str, Option]]] = {}  # by the name of the parameter
    signature = inspect.signature(command)
    for parameter in signature.parameters.values():
        kind, chosen = [*get_args(parameter.annotation), None, None][:2]
        if isinstance(chosen, From):
            options = chosen.options(kind)
            settings[parameter.name] = kind, options
            parameters += [_parameter(name, option) for name, option in options.items()]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        _refuse_code(context)
        for parameter, (kind, options) in settings.items():
            table = {name: _value(name, option, values.pop(name)) for name, option in options.items()}
            values[parameter] = settings_from(kind, table)
        command(**values)

    parameters.append(inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _parameter(name: str, option: Option) -> inspect.Parameter:
    """A parameter from which typer makes the option."""
    kind, default = option.type, option.default
    flags: list[str] = []
    shown: dict[str, Any] = {"help": option.help, "metavar": option.metavar, "rich_help_panel": option.panel}
    if get_origin(kind) in (tuple, Mapping):  # may be repeated
        kind, default = list[str], ...
        shown |= {"default_factory": list, "show_default": False}
    elif kind is bool:  # --name alone if it is off by default, else --no-name as well; no type beside either
        flags, shown["metavar"] = [] if default else [f"--{name.replace('_', '-')}"], ""
    elif default is None and type(None) not in get_args(kind):
        kind = kind | None
    if option.shown_default is not None:
        shown["show_default"] = option.shown_default
    make: Any = typer.Argument if option.is_argument else typer.Option
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[kind, make(*flags, **shown)],
    )


def _value(name: str, option: Option, typed: Any) -> Any:
    """What was typed, converted to the type of the setting."""
    if get_origin(option.type) is not Mapping:
        return typed
    values = pairs(name, typed)
    return {key: str(value) for key, value in values.items()} if get_args(option.type)[1] is str else values


def use_settings(context: typer.Context, file: Path | None) -> Path | None:
    """Reads options that were not typed from the command's table in a TOML file."""
    if file is None or context.resilient_parsing:
        return file
    from agnncert.cli.folder import read_toml

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
    # What runs code must be typed; whether it is, is known only once all options are read. See _refuse_code.
    context.meta[_WAITING] = file, {name: given.pop(name) for name in _runs_code(given)}
    context.default_map = given
    return file


_WAITING = "agnncert.settings that run code"


def _runs_code(given: Mapping[str, Any]) -> list[str]:
    """The settings that have code run: a model of the user's own, and files of datasets, which can contain code."""
    named = [name for name in ("model", "model_of_run", "root") if name in given]
    return [name for name in named if name == "root" or ":" in str(given[name])]


def _refuse_code(context: typer.Context) -> None:
    """Raises SettingsError if a file sets what has code run, unless the same option is typed."""
    file, waiting = context.meta.get(_WAITING, (None, {}))
    for name, value in waiting.items():
        source: Any = context.get_parameter_source(name)
        if source.name != "COMMANDLINE":
            raise SettingsError(
                f"{file} names {name} = {value!r}, which can run code, so a file cannot set it. If you trust it, type "
                f"--{name.removesuffix('_of_run')} {value}."
            )


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
            raise SettingsError(f"--{option} {word}: expected NAME=VALUE, such as {key or 'name'}=….")
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
On = Annotated[
    str | None,
    typer.Option(
        "--on", help="ray: spread the work over the machines of a Ray cluster; the result is the same.", metavar="ray",
        show_default="this machine",
    ),
]  # fmt: skip
Address = Annotated[
    str | None, typer.Option(help="Address of the Ray cluster.", metavar="HOST:PORT", show_default="one started here")
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print the outcome as JSON.", rich_help_panel=RUN)]
Out = Annotated[
    Path | None, typer.Option(help="Run folder; one below runs/ if not given.", rich_help_panel=RUN, metavar="FOLDER")
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", metavar="", help="Start anew even if the run folder holds a run.", rich_help_panel=RUN),
]


def workers_named(on: str | None, address: str | None) -> Any:
    """Who does the work, by the words of the command line; ``None`` is this process.

    Raises:
        SettingsError: The word is unknown, or an address stands alone.
    """
    if on is None:
        if address is not None:
            raise SettingsError("--address names a Ray cluster: add --on ray.")
        return None
    if on != "ray":
        raise SettingsError(f'--on "{on}": work can be spread with --on ray; without it, this machine does it.')
    from agnncert.engine.workers import Ray

    return Ray(address)
