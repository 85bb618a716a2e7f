"""Settings of a run: checked once when it begins, stored beside its results, read back to repeat it.

Each field is declared here once, with the help that the command line shows for it; ``cli.options`` makes the options of
the commands from these classes. So fields and options have the same names, and a stored table is a valid file for
``--settings``. ``None`` in a field means that it was not given: its value then comes from an earlier step of the run,
or is the usual one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar, get_type_hints

from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.named import AGNNCERT
from agnncert.errors import SettingsError, did_you_mean
from agnncert.training.settings import SETTINGS, checked

COLUMNS = ("id", "label", "split", "graph", "source", "target", "weight")
PARTS = ("test", "val", "train", "all")

MODEL, TRAINING, CERTIFICATION, DATA = "Model and division", "Training", "Certification", "Data"  # headings of --help

AnySettings = TypeVar("AnySettings", bound="DataSettings")


@dataclass(frozen=True)
class Option:
    """How the command line shows a setting.

    Attributes:
        help: One or two sentences.
        panel: The heading below which ``--help`` lists it; ``None`` for the general one.
        metavar: What stands for the value in ``--help``; its type if not said.
        shown_default: What ``--help`` names as the default where ``default`` is None.
        is_argument: Whether it is given without its name.
        default: The value when it is not given; ``...`` if it must be given.
        typed: What the command line reads, if that is not of the setting's type.
        type: Its type.
    """

    help: str
    panel: str | None = None
    metavar: str | None = None
    shown_default: str | None = None
    is_argument: bool = False
    default: Any = None
    typed: Any = None
    type: Any = None


def _setting(default: Any, help: str, panel: str | None = None, **shown: Any) -> Any:
    """A field of a settings class that is also an option."""
    option = {"option": Option(help, panel, default=default, **shown)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=option)
    return field(default=default, metadata=option)


@dataclass(frozen=True)
class DataSettings:
    """Which graph, and how to read it."""

    data: str = _setting("", "A dataset (see agnncert datasets) or a folder with tables.", is_argument=True)
    root: str | None = _setting(None, "Folder that holds the datasets.", DATA, metavar="FOLDER")
    nodes: str | None = _setting(None, "Table of nodes.", DATA, metavar="FILE")
    edges: str | None = _setting(None, "Table of edges.", DATA, metavar="FILE")
    graphs: str | None = _setting(None, "Table of graphs, for graph classification.", DATA, metavar="FILE")
    column: Mapping[str, str] = _setting(
        {}, f"Name of a column: {', '.join(COLUMNS[:-1])} or {COLUMNS[-1]}. May be repeated.", DATA, metavar="KIND=NAME"
    )
    feature: tuple[str, ...] = _setting(
        (), "Column of features; all other columns if not given. May be repeated.", DATA, metavar="NAME"
    )
    directed: bool = _setting(False, "Edges of the tables go one way only.", DATA)
    name: str | None = _setting(
        None, "What to call data from tables, in reports and run folders.", DATA, shown_default="as its folder"
    )
    seed: int = _setting(0, "Seed of the split and of everything random.", DATA)

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
    """Which model votes on which subgraphs."""

    model: str | None = _setting(None, "Your model as package.module:factory, or a built-in one.", MODEL)
    weights: str | None = _setting(
        None,
        "Its weights, a safetensors file; or the word pretrained, for digits-knn, pubmed and proteins.",
        MODEL,
        metavar="FILE",
    )
    set: Mapping[str, Any] = _setting(
        {},
        "Setting of the model: hidden_channels, num_layers, dropout, act, norm, jk, heads, readout, scale; or an "
        "argument of your factory. May be repeated.",
        MODEL,
        metavar="NAME=VALUE",
    )
    division: str | None = _setting(None, "node, edge, or gated.", MODEL, shown_default="node")
    groups: int | float | None = _setting(
        None, "Number of subgraphs T; inf: one for each neighbour (edge division: edge; graphs: node or edge).", MODEL,
        metavar="T", shown_default="300 for nodes, 30 for graphs", typed=str | None,
    )  # fmt: skip
    hash: str | None = _setting(None, "md5, sha1, sha256 or blake2b.", MODEL, shown_default="md5")
    empty: str | None = _setting(
        None, "What empty subgraphs cast: edgeless (the prediction without edges), abstain, or a class (name, number).",
        MODEL, metavar="VOTE", shown_default="edgeless for nodes, abstain for graphs",
    )  # fmt: skip
    prior: str | None = _setting(
        None,
        "Votes given in advance: a number, for the prediction without edges; one for each class, as in 0,12; or for "
        "some classes by name, as in toxic=12.",
        MODEL, metavar="N | N,N,… | CLASS=N,…", shown_default="none",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.division is not None:
            require_one_of("division", self.division, AGNNCERT)
        if self.groups is not None:
            object.__setattr__(self, "groups", number_of_groups(self.groups))
        for name in ("empty", "prior"):  # a file may hold numbers and lists
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, str(value).strip("[]()").replace(" ", ""))
        if not self.names_classes:
            _ = self.vote

    @property
    def sets_vote(self) -> bool:
        """Whether it is said how ballots are added up."""
        return self.empty is not None or self.prior is not None

    @property
    def names_classes(self) -> bool:
        """Whether classes are called by name in the vote; the data knows which these are."""
        plain = self.empty in (None, *EMPTY_WORDS) or str(self.empty).isdecimal()
        return not plain or "=" in (self.prior or "")

    @property
    def vote(self) -> VotingRule | None:
        """The vote that is set; None if it is the usual one.

        Raises:
            SettingsError: It makes no sense, or calls classes by name: see ``with_class_numbers``.
        """
        if not self.sets_vote:
            return None
        empty: Any = int(self.empty) if self.empty is not None and self.empty.isdecimal() else self.empty
        return VotingRule(empty, 0 if self.prior is None else prior_of(self.prior))

    def with_class_numbers(self, names: Sequence[str] | None) -> Self:
        """The same settings with the numbers of classes in place of their names.

        Args:
            names: What the classes are called, in their order; None if they have numbers alone.

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

    ``fit`` holds arguments of ``agnncert.fit``, by name; a stored table has them among the other settings. There is no
    ``None`` in such a table, so a ``patience`` of 0 stands for ``None``.
    """

    fit: Mapping[str, Any] = field(default_factory=dict)
    references: bool = _setting(True, "Also train the models to compare with: undefended, no edges.", TRAINING)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked(self.fit_arguments(), "node")

    def fit_arguments(self) -> dict[str, Any]:
        """The arguments of ``agnncert.fit`` that are set, and the seed."""
        patience = {"patience": self.fit["patience"] or None} if "patience" in self.fit else {}
        return {**self.fit, **patience, "seed": self.seed}


@dataclass(frozen=True)
class CertifySettings(ModelSettings):
    """What to certify, and how."""

    targets: str | None = _setting(
        None, "test, val, train or all.", CERTIFICATION, shown_default="test, if there is a split"
    )
    engine: str = _setting("fast", "fast, or naive: one subgraph at a time; the same ballots.", CERTIFICATION)
    attacks: str = _setting("any", "any, or edges: for models that are fit for nothing else.", CERTIFICATION)
    tolerance: float | None = _setting(
        None, "How far two computations of one score may lie apart.", CERTIFICATION, shown_default="measured"
    )
    memory: int | None = _setting(None, "Megabytes that one chunk of work may take.", CERTIFICATION)
    design_size: int | None = _setting(
        None, "Choose prior, what empty subgraphs cast and (graphs) the number of subgraphs for attacks of this size.",
        CERTIFICATION, metavar="M", shown_default="that of training with objective=certified",
    )  # fmt: skip
    against: str | None = _setting(
        None, "What that size counts: any change, or structure: edges and nodes added and deleted.", CERTIFICATION,
        shown_default="any",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("kind of change", self.against or "any", ("any", "structure"))
        if self.design_size is not None and self.design_size < 0:
            raise SettingsError(f"design_size={self.design_size}: expected a whole number from 0 on.")
        if self.design_size is not None and self.sets_vote:
            raise SettingsError("--design-size chooses the vote: leave out --empty and --prior.")
        if self.targets is not None:
            require_one_of("part of the data", self.targets, PARTS)
        require_one_of("engine", self.engine, ("fast", "naive"))
        require_one_of("kind of attacks", self.attacks, ("any", "edges"))
        if self.tolerance is not None and not self.tolerance >= 0:
            raise SettingsError(f"tolerance={self.tolerance}: expected a number from 0 on.")
        if self.memory is not None and self.memory < 1:
            raise SettingsError(f"memory={self.memory}: expected at least 1 megabyte.")


def options_of(kind: type[DataSettings]) -> dict[str, Option]:
    """Every setting of a class by its name in a stored table, with how the command line shows it."""
    types = get_type_hints(kind)
    options: dict[str, Option] = {}
    for entry in fields(kind):
        if entry.name == "fit":
            options |= _fit_options()
        else:
            option = entry.metadata["option"]
            options[entry.name] = replace(option, type=option.typed or types[entry.name])
    return options


def _fit_options() -> dict[str, Option]:
    """Options for the settings of ``fit`` that have a help text; no default where a dataset's recipe may choose."""
    return {
        name: Option(
            setting.help, TRAINING, default=None if setting.from_recipe else setting.default, type=setting.plain_type
        )
        for name, setting in SETTINGS.items()
        if setting.help is not None
    }


def settings_from(kind: type[AnySettings], table: Mapping[str, Any]) -> AnySettings:
    """Settings of one kind from a flat table, such as a stored one; entries that are ``None`` count as not given.

    Raises:
        SettingsError: A key is unknown (the message names the nearest valid one), or a value makes no sense.
    """
    valid = options_of(kind)
    for key in table:
        if key not in valid:
            raise SettingsError(f'unknown setting "{key}": {did_you_mean(key, valid)}')
    given = {name: tuple(value) if name == "feature" else value for name, value in table.items() if value is not None}
    own: dict[str, Any] = {entry.name: given.pop(entry.name) for entry in fields(kind) if entry.name in given}
    if given:  # all others are settings of fit
        own["fit"] = given
    return kind(**own)


def require_one_of(what: str, value: str, valid: Iterable[str]) -> None:
    """Raises unless ``value`` is one of the valid words; names the nearest."""
    options = list(valid)
    if value not in options:
        raise SettingsError(f'no {what} is called "{value}": {did_you_mean(value, options)}')


def number_of_groups(given: Any) -> int | float:
    """A number of groups as it was typed, or stored: a whole number from 1 on, or ``inf``.

    Raises:
        SettingsError: It is neither.
    """
    text = str(given).strip()
    if text in ("inf", "math.inf"):
        return math.inf
    if not (text.isascii() and text.isdecimal()) or not int(text):
        raise SettingsError(f"groups={text}: expected a whole number from 1 on, or inf.")
    return int(text)


EMPTY_WORDS = ("edgeless", "abstain")


def empty_of(text: str | None, names: Sequence[str] | None) -> str | None:
    """What empty groups cast, as it was typed, with the number of a class in place of its name.

    Example:
        >>> empty_of("toxic", ["safe", "toxic"]), empty_of("abstain", ["safe", "toxic"]), empty_of("0", None)
        ('1', 'abstain', '0')

    Raises:
        SettingsError: It is neither a word for it nor a class.
    """
    if text is None or text in EMPTY_WORDS or text.isdecimal():
        return text
    return str(_class_number("empty", text, names, EMPTY_WORDS))


def named_prior(text: str, names: Sequence[str] | None) -> tuple[int, ...]:
    """A prior in which classes are called by name, one number for each class; 0 for those that are not called.

    Example:
        >>> named_prior("toxic=12", ["safe", "toxic"])
        (0, 12)

    Raises:
        SettingsError: No class has such a name, one is called twice, or its votes are no whole number.
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
    """Number of the class with a name; ``words`` are valid too, as far as the error message knows."""
    if not names:
        raise SettingsError(
            f'{what}: no class is called "{name}", since the classes of this data have numbers alone: use these'
            f"{', or ' if words else ''}{' or '.join(words)}."
        )
    if name not in names:
        raise SettingsError(f'{what}: no class is called "{name}": {did_you_mean(name, [*names, *words])}')
    return list(names).index(name)


def prior_of(text: str) -> int | tuple[int, ...]:
    """A prior as it was typed: one whole number, or several with commas between them.

    Example:
        >>> prior_of("5"), prior_of("0,12")
        (5, (0, 12))

    Raises:
        SettingsError: It is something else.
    """
    try:
        numbers = tuple(int(word) for word in text.strip("[]() ").split(","))
    except ValueError:
        raise SettingsError(
            f"prior={text}: expected a whole number, or one for each class with commas between them, such as 0,12."
        ) from None
    return numbers if "," in text else numbers[0]


def _plain(value: Any) -> Any:
    if value == math.inf:
        return "inf"  # as it is typed; JSON knows no such number
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
