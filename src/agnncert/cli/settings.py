"""Settings of a run: checked once when a command begins, stored in the run folder, and read back by later commands.

Each command that runs a model has one settings class. Its fields are the keys of the command's table in a settings
file; the most common ones are options of the command too. ``docs/commands/settings.md`` describes all of them. ``None``
in a field means that the setting was not given: its value comes from an earlier step of the run, or is the default.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.drawn_splits import BY_CLASS, DRAWN_BY
from agnncert.datasets.teaching_record import CLASS_SHARES
from agnncert.divisions.named import defence_names
from agnncert.errors import SettingsError, did_you_mean
from agnncert.proving.domain import check_words
from agnncert.proving.measures import MEASURES
from agnncert.training.settings import SETTINGS, checked

if TYPE_CHECKING:
    from agnncert.cli.folder import RunFolder

EVENT_COLUMNS = ("event_time", "event_key", "label_time")  # only of tables of events
COLUMNS = ("id", "label", "split", "graph", "source", "target", "weight", "time", *EVENT_COLUMNS)
PARTS = ("test", "val", "train", "all", "labelled")
COMMANDS = ("train", "certify", "verify", "audit", "attack", "compare")  # those that have a table in a settings file
EMPTY_WORDS = ("no_edge", "abstain")
# Settings of ``fit`` that are not settings of a run in their own right.
FIT = tuple(name for name in SETTINGS if name not in ("size", "against", "seed"))
# Settings of a defence that have an option, or a key, of their own.
DEFENCE_OPTIONS = {
    "groups": "--groups",
    "hash": "--set hash=…",
    "trusted": "--trusted",
    "size": "--size",
    "edges_only": "--set edges_only=true",
}

AnySettings = TypeVar("AnySettings")


@dataclass(frozen=True)
class DataSettings:
    """Which data, and how to read it."""

    data: str = ""  # a dataset, or a folder with tables
    root: str | None = None  # folder that holds the datasets; a settings file cannot set it
    nodes: str | None = None  # files with the tables
    edges: str | None = None
    graphs: str | None = None
    pairs: str | None = None  # a table of pairs of nodes that are to be classified, such as payments
    events: str | None = None  # a table of events, such as payments, instead of edges
    column: Mapping[str, str] = field(default_factory=dict)  # names of columns, by what they hold: one of COLUMNS
    classes: tuple[str, ...] = ()  # names of all classes, in order; those that occur by default
    feature: tuple[str, ...] = ()  # columns of features; all other columns by default
    edge_feature: tuple[str, ...] = ()  # columns of edges that are kept as edge_attr; ("none",) leaves them out
    pair_feature: tuple[str, ...] = ()  # columns of pairs that are their own values; ("none",) leaves them out
    encode: str | None = None  # how columns become features: "auto", "zip=category", or the file of an encoding
    repeated: str | None = None  # values of repeated edges: "sum" or "mean"
    trusted: str | None = None  # edges that no attacker can change: a column that marks them, or "time<2018-03-17"
    directed: bool | None = None  # by default edges have no direction, and events have one
    edge_value: tuple[str, ...] = ()  # events: values of an edge, such as "log(sum(amount))"; the usual ones by default
    as_of: str | None = None  # events: nothing that happened, or became known, then or later is read
    cut_off: str | None = None  # events: training only sees what was before this moment
    name: str | None = None  # of data from tables, in reports and run folders; by default that of the folder
    seed: int = 0  # of the split and of everything random
    split_by: str | None = None  # how a split is drawn, by "id" or "class"; by default as data and defence need it
    keep: float | None = None  # share of the known targets of other classes that is kept for a threshold only
    keep_for: str | None = None  # the class to be found, of which nothing is kept; by default the rarest one
    words: Mapping[str, str] = field(default_factory=dict)  # what reports call a "node", an "edge" and a "neighbour"

    def __post_init__(self) -> None:
        check_words(self.words)
        for kind in self.column:
            require_one_of("kind of column", kind, COLUMNS)
        if self.split_by is not None:
            require_one_of("way to draw a split", self.split_by, DRAWN_BY)
        if self.seed < 0:
            raise SettingsError(f"seed={self.seed}: expected a whole number from 0 on.")
        if self.keep is not None and not 0 < self.keep < 1:
            raise SettingsError(f"keep={self.keep}: expected a share between 0 and 1.")
        if self.keep_for is not None and self.keep is None:
            raise SettingsError(f"keep_for={self.keep_for} says for which class, and keep= how many: set keep too.")

    def table(self) -> dict[str, Any]:
        """Everything that is set as one flat table, in which it is stored."""
        values: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            values |= value if entry.name == "fit" else {entry.name: value}
        return {name: _plain(value) for name, value in values.items() if value not in (None, "", {}, ())}

    def given(self) -> list[str]:
        """Names of the settings that differ from their defaults."""
        defaults = type(self)().table()
        return [name for name, value in self.table().items() if defaults.get(name) != value]


@dataclass(frozen=True)
class ModelSettings(DataSettings):
    """Which model, and how votes are added up."""

    model: str | None = None  # a built-in model, or package.module:factory, which a settings file cannot set
    set: Mapping[str, Any] = field(default_factory=dict)  # settings of the model, or arguments of the user's factory
    empty: str | None = None  # what empty subgraphs vote for: one of EMPTY_WORDS, or a class
    prior: str | None = None  # votes given in advance: "5", "0,12" or "toxic=12"

    @property
    def sets_rule(self) -> bool:
        """Whether the voting rule is set."""
        return self.empty is not None or self.prior is not None

    def voting_rule(self, names: Sequence[str] | None) -> VotingRule | None:
        """The voting rule; None for the default one.

        Args:
            names: Names of the classes in their order; None if classes have numbers only.

        Raises:
            SettingsError: The voting rule makes no sense, or no class has such a name.
        """
        if not self.sets_rule:
            return None
        empty: Any = self.empty
        if empty is not None and empty not in EMPTY_WORDS:
            empty = int(empty) if empty.isdecimal() else _class_number("empty", empty, names, EMPTY_WORDS)
        return VotingRule(empty, 0 if self.prior is None else prior_of(self.prior, names))


@dataclass(frozen=True)
class DefenceSettings(ModelSettings):
    """Which model with which weights, and which defence."""

    weights: str | None = None  # file with the weights, or "pretrained"
    division: str | None = None  # name of the defence: that of a division, or of another kind of defence
    groups: int | None = None
    hash: str | None = None
    defence: Mapping[str, Any] = field(default_factory=dict)  # further settings of the defence

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.division is not None:
            require_one_of("division", self.division, defence_names())
        if self.groups is not None and self.groups < 1:
            raise SettingsError(f"groups={self.groups}: expected a whole number from 1 on.")
        if not isinstance(self.defence, Mapping):
            raise SettingsError(
                f"defence={self.defence!r:.60}: expected a table with settings of the defence. Its name is "
                f'division="{self.defence!s:.60}".'
            )
        for key in self.defence:
            if key in DEFENCE_OPTIONS:
                raise SettingsError(f"defence.{key}: say it with {DEFENCE_OPTIONS[key]}.")

    @property
    def trained_size(self) -> int | None:
        """The perturbation size that is trained for; ``None`` if nothing is trained."""
        return None

    def defence_options(self) -> dict[str, Any]:
        """Returns the options that are settings of the defence, as given, by name."""
        options = {"groups": self.groups, "hash": self.hash, "trusted": self.trusted}
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True)
class TrainSettings(DefenceSettings):
    """How to train."""

    # Arguments of ``agnncert.fit`` by name, one of FIT. A patience of 0 stands for None, which TOML lacks.
    fit: Mapping[str, Any] = field(default_factory=dict)
    size: int | None = None  # size to train for (objective="certified"), or at which the best weights are kept
    against: str | None = None  # what that size counts with objective="certified": "any" change, or "structure"
    references: bool = True  # whether to train the models to compare with: undefended, and without edges
    teach: str | None = None  # model of a teacher that labels the training graph: a built-in one
    teachers: int | None = None  # models that the teacher consists of
    class_shares: str | None = None  # how frequent the teacher takes classes to be: "given" or "predicted"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_size(self.size, self.against)
        self._check_teacher()
        if self.against is not None and self.fit.get("objective") != "certified":
            raise SettingsError(f'against={self.against} belongs to objective="certified".')
        checked(self.fit_arguments(), "node")

    def _check_teacher(self) -> None:
        for name in ("teachers", "class_shares"):
            if self.teach is None and getattr(self, name) is not None:
                raise SettingsError(f"{name}={getattr(self, name)} belongs to --teach: name the model of the teacher.")
        if self.teachers is not None and self.teachers < 1:
            raise SettingsError(f"teachers={self.teachers}: expected a whole number from 1 on.")
        if self.class_shares is not None and self.class_shares not in CLASS_SHARES:
            raise SettingsError(f'class_shares="{self.class_shares}": {did_you_mean(self.class_shares, CLASS_SHARES)}')
        if self.teach is not None and self.fit.get("protocol") == "transductive":
            raise SettingsError(
                '--teach and protocol="transductive": test nodes would be seen in training, and what a student has '
                "memorised about them is no robustness. Leave the protocol out."
            )

    def teaching_arguments(self) -> dict[str, Any]:
        """Returns the arguments of ``agnncert.teach`` that were asked for."""
        asked = {"members": self.teachers, "class_shares": self.class_shares}
        return {name: value for name, value in asked.items() if value is not None}

    @property
    def trained_size(self) -> int | None:
        """The perturbation size that is trained for."""
        return self.size

    def fit_arguments(self) -> dict[str, Any]:
        """Returns the arguments of ``agnncert.fit`` that are set, and the seed."""
        given = {**fit_arguments_of(self.fit), "seed": self.seed}
        if self.fit.get("objective") == "certified":
            given["against"] = self.against or "any"
        return given if self.size is None else given | {"size": self.size}


@dataclass(frozen=True)
class CertifySettings(DefenceSettings):
    """What to certify, and how."""

    targets: str | None = None  # part of the data, one of PARTS: by default the test part, or all without a split
    size: int | None = None  # perturbation size for which the voting rule is chosen
    against: str | None = None  # what that size counts: "any" change, or "structure"
    measure: str | None = None  # what the rule is chosen by: "accuracy" or "balanced"; else as the classes need it
    false_positive_rate: float | None = None  # two classes: choose the threshold for this rate, on validation ...
    confidence: float | None = None  # ... or on targets that were kept, with this confidence for those to come ...
    alerts: int | None = None  # ... or for this many alerts there, ...
    days: int | None = None  # ... for each of this many days that the validation part stands for
    positive: str | None = None  # the class that alerts are about, by name or number; by default the rarer one
    engine: str = "fast"  # or "naive"; both give the same predictions
    edges_only: bool = False  # for models that are compatible with nothing else
    tolerance: float | None = None  # bound on the difference between two computations of a logit; else it is measured
    memory: int | None = None  # megabytes for one chunk of work, beside data, model and libraries

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_size(self.size, self.against)
        if self.confidence is not None and self.false_positive_rate is None:
            raise SettingsError("--confidence goes with a rate: pass --false-positive-rate too.")
        if self.chooses and self.sets_rule:
            raise SettingsError(
                "--size, false_positive_rate and alerts choose the voting rule: leave out --empty and --prior."
            )
        if self.measure is not None:
            require_one_of("measure", self.measure, MEASURES)
        if self.targets is not None:
            require_one_of("part of the data", self.targets, PARTS)
        require_one_of("engine", self.engine, ("fast", "naive"))
        if self.tolerance is not None and not self.tolerance >= 0:
            raise SettingsError(f"tolerance={self.tolerance}: expected a number from 0 on.")
        if self.memory is not None and self.memory < 1:
            raise SettingsError(f"memory={self.memory}: expected at least 1 megabyte.")

    def defence_options(self) -> dict[str, Any]:
        """Returns the options that are settings of the defence, as given, by name."""
        options = super().defence_options()
        if self.edges_only:
            options["edges_only"] = True
        return options

    @property
    def chooses(self) -> bool:
        """Whether the voting rule, or a threshold, is to be chosen on the validation part."""
        return any(value is not None for value in (self.size, self.false_positive_rate, self.alerts))


def fit_arguments_of(fit: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``fit`` that settings stand for; a patience of 0 means none."""
    return {name: value or None if name == "patience" else value for name, value in fit.items()}


def _check_size(size: int | None, against: str | None) -> None:
    require_one_of("kind of change", against or "any", ("any", "structure"))
    if size is not None and size < 0:
        raise SettingsError(f"size={size}: expected a whole number from 0 on.")


def read_settings(
    kind: type[AnySettings], command: str, file: Path | None, words: Sequence[str] = (), /, **typed: Any
) -> AnySettings:
    """The settings of a command: its options, then ``--set``, then the settings file.

    Args:
        kind: The class of the settings.
        command: Name of the command, hence of the table in the file.
        file: The settings file, if there is one.
        words: What stands behind ``--set``. A key that is no setting of the command is one of the model.
        **typed: Values of options; None and empty lists count as not given.

    Raises:
        SettingsError: A key is unknown, a value makes no sense, or the file names code or a folder of datasets.
    """
    table = {} if file is None else _table_in(file, command)
    given = {name: value for name, value in typed.items() if value not in (None, [])}
    for name in ("model", "root"):
        if name in table and name not in given and (name == "root" or ":" in str(table[name])):
            raise SettingsError(
                f"{file} names {name} = {table[name]!r}, which can run code, so a file cannot set it. If you trust it, "
                f"type --{name} {table[name]}."
            )
    names, own = keys_of(kind), dict(table.get("set", {}))
    for key, value in pairs("set", words).items():
        group, dot, name = key.partition(".")
        if dot and group in ("column", "defence", "words"):
            if getattr(kind, group, None) == ():  # a list of them
                raise SettingsError(
                    f"--set {key}: there are several defences here, and settings stand after the name of each: "
                    f"--defence NAME:{name}={value}."
                )
            given[group] = {**given.get(group, table.get(group, {})), name: value}
        elif key in names:
            given.setdefault(key, value)
        else:
            own[key] = value
    return settings_from(kind, {**table, **({"set": own} if own else {}), **given})


def _table_in(file: Path, command: str) -> dict[str, Any]:
    tables = read_toml(file)
    for name, value in tables.items():
        if not isinstance(value, dict):
            raise SettingsError(f'{file}: "{name}" stands outside of a table: put it below [{command}].')
        if name not in COMMANDS:
            raise SettingsError(f"{file}: no command is called [{name}]: {did_you_mean(name, COMMANDS)}")
    if command not in tables:
        raise SettingsError(f"{file} has no table [{command}]: it has {', '.join(f'[{t}]' for t in tables) or 'none'}.")
    return dict(tables[command])


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; raises SettingsError if it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}.") from error


def keys_of(kind: type[Any]) -> list[str]:
    """The keys of a table with settings of one class."""
    names = [entry.name for entry in fields(kind)]
    return [name for name in names if name != "fit"] + (list(FIT) if "fit" in names else [])


def settings_from(kind: type[AnySettings], table: Mapping[str, Any]) -> AnySettings:
    """Settings of one class from a flat table, such as a stored one.

    Raises:
        SettingsError: A key is unknown (the message names the nearest valid one), or a value makes no sense.
    """
    valid, types = keys_of(kind), get_type_hints(kind)
    own: dict[str, Any] = {}
    fit: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in valid:
            raise SettingsError(f'unknown setting "{key}": {did_you_mean(key, valid)}')
        if name in types:
            own[name] = _converted(name, value, types[name])
        else:
            fit[name] = value
    return kind(**own, **({"fit": fit} if fit else {}))


def _converted(name: str, value: Any, hint: Any) -> Any:
    """A value from a TOML file as the field of a settings class takes it; numbers and dates may stand for text."""
    value = value.isoformat() if isinstance(value, date | datetime) else value
    kinds = [get_origin(kind) or kind for kind in (hint, *get_args(hint))]
    if tuple in kinds and isinstance(value, list | str):
        return tuple(value.split(",")) if isinstance(value, str) else tuple(map(str, value))
    if Mapping in kinds and isinstance(value, dict):
        return {key: str(entry) for key, entry in value.items()} if name in ("column", "words") else value
    if bool in kinds or isinstance(value, bool):
        if bool in kinds and isinstance(value, bool):
            return value
    elif any(isinstance(value, one) for one in kinds if isinstance(one, type) and one not in (tuple, Mapping)):
        return value
    elif float in kinds and isinstance(value, int):
        return float(value)
    elif str in kinds and isinstance(value, int | float | list):
        return str(value).strip("[]").replace(" ", "")
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", tuple: "a list of texts"}
    wanted = next((word for one, word in words.items() if one in kinds), "a table")
    raise SettingsError(f"{name}={value!r}: expected {wanted}.")


def pairs(option: str, words: Iterable[str]) -> dict[str, Any]:
    """KEY=VALUE words as a dictionary; values are read as TOML where that is possible, else as text.

    Example:
        >>> pairs("set", ["num_layers=2", "act=relu"])
        {'num_layers': 2, 'act': 'relu'}
    """
    values = {}
    for word in words:
        key, _, value = word.partition("=")
        if not key or not value:
            raise SettingsError(f"--{option} {word}: expected NAME=VALUE, such as {key or 'name'}=….")
        text = value.strip()
        try:
            text = text.lower() if text.lower() in ("true", "false") else text
            values[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[key.strip()] = text
    return values


def numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() for word in words) or (text and not words):
        raise SettingsError(f"--{option} {text}: expected whole numbers from 0 on, such as 1,5,20.")
    return tuple(int(word) for word in words)


def require_one_of(what: str, value: str, valid: Iterable[str]) -> None:
    """Raises unless ``value`` is one of the valid words; names the nearest."""
    options = list(valid)
    if value not in options:
        raise SettingsError(f'no {what} is called "{value}": {did_you_mean(value, options)}')


def prior_of(text: str, names: Sequence[str] | None = None) -> int | tuple[int, ...]:
    """A prior from text: one whole number, one for each class, or one for some classes by name.

    Example:
        >>> prior_of("5"), prior_of("0,12"), prior_of("toxic=12", ["safe", "toxic"])
        (5, (0, 12), (0, 12))
    """
    if "=" not in text:
        try:
            numbers = tuple(int(word) for word in text.strip("[]() ").split(","))
        except ValueError:
            raise SettingsError(
                f"prior={text}: expected a whole number, or one for each class with commas between them, such as 0,12."
            ) from None
        return numbers if "," in text else numbers[0]
    votes: dict[int, int] = {}
    for word in text.split(","):
        name, is_pair, number = (part.strip() for part in word.rpartition("="))
        if not is_pair or not number.removeprefix("-").isdecimal():
            raise SettingsError(f'prior={text}: "{word}" is not of the form CLASS=N, with a whole number of votes.')
        label = _class_number("prior", name, names)
        if label in votes:
            raise SettingsError(f'prior={text}: the class "{name}" is called twice.')
        votes[label] = int(number)
    return tuple(votes.get(label, 0) for label in range(len(names or ())))


def _class_number(what: str, name: str, names: Sequence[str] | None, words: Sequence[str] = ()) -> int:
    """Number of the class with a name. The error message lists ``words`` as valid too."""
    if not names:
        raise SettingsError(
            f'{what}: no class is called "{name}", since the classes of this data only have numbers: use these'
            f"{', or ' if words else ''}{' or '.join(words)}."
        )
    if name not in names:
        raise SettingsError(f'{what}: no class is called "{name}": {did_you_mean(name, [*names, *words])}')
    return list(names).index(name)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


# Settings that runs did not record at first, as they were then.
_BEFORE = {"split_by": BY_CLASS}


def stored_settings(folder: "RunFolder") -> DefenceSettings:
    """Returns the settings of the step with which a run began.

    Raises:
        SettingsError: No step has been recorded.
    """
    steps = folder.settings
    if "train" in steps:
        return settings_from(TrainSettings, {**_BEFORE, **steps["train"]})
    if "certify" in steps:
        return settings_from(CertifySettings, {**_BEFORE, **steps["certify"]})
    raise SettingsError(f"{folder} holds neither a trained model nor a certificate.")
