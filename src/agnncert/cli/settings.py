"""Settings of a run: checked once when a command begins, stored in the run folder, and read back by later commands.

Each command that runs a model has one settings class. Its fields are the keys of the command's table in a settings
file; the most common ones are options of the command too. ``docs/commands/settings.md`` describes all of them. ``None``
in a field means that the setting was not given: its value comes from an earlier step of the run, or is the default.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.named import AGNNCERT
from agnncert.errors import SettingsError, did_you_mean
from agnncert.training.settings import SETTINGS, checked

COLUMNS = ("id", "label", "split", "graph", "source", "target", "weight")
PARTS = ("test", "val", "train", "all")
COMMANDS = ("train", "certify", "verify", "audit", "attack", "compare")  # those that have a table in a settings file
# Settings of ``fit`` that a settings file may hold. The size of the perturbation is one setting here: ``size``.
FIT = tuple(
    name for name, known in SETTINGS.items() if known.help and name not in ("design_size", "select_size", "against")
)

AnySettings = TypeVar("AnySettings")


@dataclass(frozen=True)
class DataSettings:
    """Which data, and how to read it.

    Attributes:
        data: Name of a dataset, or a folder with tables.
        root: Folder that holds the datasets. A settings file cannot set it.
        nodes: File with the table of nodes.
        edges: File with the table of edges.
        graphs: File with the table of graphs, for graph classification.
        column: Names of columns, by what they hold: one of ``COLUMNS``.
        feature: Columns of features. Defaults to all other columns.
        directed: Whether the edges of the tables go one way only.
        name: Name of data from tables in reports and run folders. Defaults to the name of its folder.
        seed: Seed of the split and of everything random.
    """

    data: str = ""
    root: str | None = None
    nodes: str | None = None
    edges: str | None = None
    graphs: str | None = None
    column: Mapping[str, str] = field(default_factory=dict)
    feature: tuple[str, ...] = ()
    directed: bool = False
    name: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for kind in self.column:
            require_one_of("kind of column", kind, COLUMNS)
        if self.seed < 0:
            raise SettingsError(f"seed={self.seed}: expected a whole number from 0 on.")

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
    """Which model votes on which subgraphs, and how votes are counted.

    Attributes:
        model: A built-in model, or ``package.module:factory``, which a settings file cannot set.
        weights: File with the weights, or ``"pretrained"``.
        set: Settings of the model, such as ``hidden_channels``, or arguments of the user's factory.
        division: Name of the division.
        groups: Number of subgraphs.
        hash: Hash function that assigns groups.
        empty: What empty subgraphs vote for: ``"edgeless"``, ``"abstain"`` or a class.
        prior: Votes given in advance, as text such as ``"5"``, ``"0,12"`` or ``"toxic=12"``.
    """

    model: str | None = None
    weights: str | None = None
    set: Mapping[str, Any] = field(default_factory=dict)
    division: str | None = None
    groups: int | None = None
    hash: str | None = None
    empty: str | None = None
    prior: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.division is not None:
            require_one_of("division", self.division, AGNNCERT)
        if self.groups is not None:
            object.__setattr__(self, "groups", number_of_groups(self.groups))
        if not self.names_classes:
            _ = self.vote

    @property
    def sets_vote(self) -> bool:
        """Whether the voting rule is set."""
        return self.empty is not None or self.prior is not None

    @property
    def names_classes(self) -> bool:
        """Whether the voting rule names classes instead of numbering them. Only the data knows the names."""
        plain = self.empty in (None, *EMPTY_WORDS) or str(self.empty).isdecimal()
        return not plain or "=" in (self.prior or "")

    @property
    def vote(self) -> VotingRule | None:
        """The voting rule; None for the default one.

        Raises:
            SettingsError: The voting rule makes no sense, or names classes: see ``with_class_numbers``.
        """
        if not self.sets_vote:
            return None
        empty: Any = int(self.empty) if self.empty is not None and self.empty.isdecimal() else self.empty
        return VotingRule(empty, 0 if self.prior is None else prior_of(self.prior))

    def with_class_numbers(self, names: Sequence[str] | None) -> Self:
        """The same settings with the numbers of classes in place of their names.

        Args:
            names: Names of the classes in their order; None if classes have numbers only.

        Raises:
            SettingsError: No class has such a name.
        """
        if not self.names_classes:
            return self
        prior = self.prior
        if prior is not None and "=" in prior:
            prior = ",".join(map(str, named_prior(prior, names)))
        return replace(self, empty=empty_of(self.empty, names), prior=prior)


@dataclass(frozen=True)
class TrainSettings(ModelSettings):
    """How to train.

    Attributes:
        fit: Arguments of ``agnncert.fit`` by name, one of ``FIT``. A stored table has them among the other settings.
            A ``patience`` of 0 stands for ``None``, which TOML lacks.
        size: Perturbation size to train for with ``objective="certified"``; with other objectives, the weights with
            the best certified accuracy at this size are kept.
        kind: What ``size`` counts with ``objective="certified"``: ``"any"`` change, or ``"structure"``.
        references: Whether to train the models to compare with: undefended, and without edges.
    """

    fit: Mapping[str, Any] = field(default_factory=dict)
    size: int | None = None
    kind: str | None = None
    references: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_size(self.size, self.kind)
        if self.kind is not None and self.fit.get("objective") != "certified":
            raise SettingsError(f'kind={self.kind} belongs to objective="certified".')
        checked(self.fit_arguments(), "node")

    def fit_arguments(self) -> dict[str, Any]:
        """The arguments of ``agnncert.fit`` that are set, and the seed."""
        given = {**self.fit, "seed": self.seed}
        if "patience" in given:
            given["patience"] = given["patience"] or None
        if self.fit.get("objective") == "certified":
            return given | {"design_size": self.size or 0, "against": self.kind or "any"}
        return given if self.size is None else given | {"select_size": self.size}


@dataclass(frozen=True)
class CertifySettings(ModelSettings):
    """What to certify, and how.

    Attributes:
        targets: Part of the data to certify: one of ``PARTS``. Defaults to the test part, or to all without a split.
        size: Perturbation size for which the voting rule is chosen.
        kind: What ``size`` counts: ``"any"`` change, or ``"structure"``.
        engine: ``"fast"`` or ``"naive"``; both give the same predictions.
        edges_only: Certify against changes of edges only, for models that are compatible with nothing else.
        tolerance: Bound on the difference between two computations of one logit. Defaults to the measured one.
        memory: Megabytes for one chunk of work.
    """

    targets: str | None = None
    size: int | None = None
    kind: str | None = None
    engine: str = "fast"
    edges_only: bool = False
    tolerance: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_size(self.size, self.kind)
        if self.size is not None and self.sets_vote:
            raise SettingsError("--size chooses the voting rule: leave out --empty and --prior.")
        if self.targets is not None:
            require_one_of("part of the data", self.targets, PARTS)
        require_one_of("engine", self.engine, ("fast", "naive"))
        if self.tolerance is not None and not self.tolerance >= 0:
            raise SettingsError(f"tolerance={self.tolerance}: expected a number from 0 on.")
        if self.memory is not None and self.memory < 1:
            raise SettingsError(f"memory={self.memory}: expected at least 1 megabyte.")


@dataclass(frozen=True)
class CompareSettings(ModelSettings):
    """What to compare.

    Attributes:
        fit: As in :class:`TrainSettings`; for all defences.
        defence: Defences with their settings, as text. Defaults to all that cover the attack.
        kind: Kind of attack: ``"edges"``, ``"injection"``, ``"features"`` or ``"edges and features"``.
        sizes: Attack sizes to show, as text such as ``"0,5,20"``.
        size: Perturbation sizes for which voting rules are chosen, as text; one row for each.
        edges_per_injected: Edges of each injected node, or ``"inf"``.
        own_features: Whether the attack also changes the features of its target.
        references: Whether to show an undefended model and a model without edges.
        samples: Number of samples that bound probabilities (randomised defences).
        selection: Number of samples that choose labels.
        alpha: Probability of error.
    """

    fit: Mapping[str, Any] = field(default_factory=dict)
    defence: tuple[str, ...] = ()
    kind: str = "edges"
    sizes: str = ""
    size: str = ""
    edges_per_injected: float | str = math.inf
    own_features: bool = False
    references: bool = True
    samples: int = 10_000
    selection: int = 100
    alpha: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("division", "groups", "hash", "weights"):
            if getattr(self, name) is not None:
                raise SettingsError(f"compare has no setting {name}: name divisions as --defence node:num_groups=100.")
        if self.size and self.sets_vote:
            raise SettingsError("--size chooses the voting rule: leave out --empty and --prior.")
        checked(self.fit_arguments(), "node")

    def fit_arguments(self) -> dict[str, Any]:
        """The arguments of ``agnncert.fit`` that are set."""
        return {name: value or None if name == "patience" else value for name, value in self.fit.items()}


def _check_size(size: int | None, kind: str | None) -> None:
    require_one_of("kind of change", kind or "any", ("any", "structure"))
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
        column = key.removeprefix("column.")
        if column != key:
            given["column"] = {**given.get("column", table.get("column", {})), column: value}
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
    """The content of a TOML file.

    Raises:
        SettingsError: The file cannot be read or is not TOML.
    """
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
            own[name] = number_of_groups(value) if name == "groups" else _converted(name, value, types[name])
        else:
            fit[name] = value
    return kind(**own, **({"fit": fit} if fit else {}))


def _converted(name: str, value: Any, hint: Any) -> Any:
    """A value from a TOML file as the field of a settings class takes it; numbers may stand for text."""
    kinds = [get_origin(kind) or kind for kind in (hint, *get_args(hint))]
    if tuple in kinds and isinstance(value, list | str):
        return tuple(value.split(",")) if isinstance(value, str) else tuple(map(str, value))
    if Mapping in kinds and isinstance(value, dict):
        return {key: str(entry) for key, entry in value.items()} if name == "column" else value
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


def number_of_groups(given: Any) -> int:
    """A number of groups as it was typed, or stored: a whole number from 1 on.

    Raises:
        SettingsError: It is something else.
    """
    text = str(given).strip()
    if not (text.isascii() and text.isdecimal()) or not int(text):
        raise SettingsError(
            f"groups={text}: expected a whole number from 1 on. One vote per neighbour: --division per-neighbour."
        )
    return int(text)


EMPTY_WORDS = ("edgeless", "abstain")


def empty_of(text: str | None, names: Sequence[str] | None) -> str | None:
    """The vote of empty subgraphs, with the number of a class in place of its name.

    Example:
        >>> empty_of("toxic", ["safe", "toxic"]), empty_of("abstain", ["safe", "toxic"]), empty_of("0", None)
        ('1', 'abstain', '0')
    """
    if text is None or text in EMPTY_WORDS or text.isdecimal():
        return text
    return str(_class_number("empty", text, names, EMPTY_WORDS))


def named_prior(text: str, names: Sequence[str] | None) -> tuple[int, ...]:
    """A prior that names classes, as one number for each class; 0 for classes without a number.

    Example:
        >>> named_prior("toxic=12", ["safe", "toxic"])
        (0, 12)
    """
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
            f'{what}: no class is called "{name}", since the classes of this data have numbers alone: use these'
            f"{', or ' if words else ''}{' or '.join(words)}."
        )
    if name not in names:
        raise SettingsError(f'{what}: no class is called "{name}": {did_you_mean(name, [*names, *words])}')
    return list(names).index(name)


def prior_of(text: str) -> int | tuple[int, ...]:
    """A prior from text: one whole number, or several with commas between them.

    Example:
        >>> prior_of("5"), prior_of("0,12")
        (5, (0, 12))
    """
    try:
        numbers = tuple(int(word) for word in text.strip("[]() ").split(","))
    except ValueError:
        raise SettingsError(
            f"prior={text}: expected a whole number, or one for each class with commas between them, such as 0,12."
        ) from None
    return numbers if "," in text else numbers[0]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
