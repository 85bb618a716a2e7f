"""What a run is asked to do: checked once at the door, stored beside its results, read back to repeat it.

The fields are called like the options of the commands, so a stored table is a valid file for ``--settings``.
What is None was not said: it is taken from an earlier step of the run, or from what usually works.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from agnncert.divisions.named import AGNNCERT
from agnncert.errors import SettingsError, did_you_mean

COLUMNS = ("id", "label", "split", "graph", "source", "target", "weight")
PARTS = ("test", "val", "train", "all")

AnySettings = TypeVar("AnySettings", bound="DataSettings")


@dataclass(frozen=True)
class DataSettings:
    """Which graph, and how to read it.

    Attributes:
        data: Name of a dataset, or a folder with tables of nodes and edges.
        root: Folder that holds the datasets.
        nodes: Table of nodes, if it is not in the folder ``data``.
        edges: Table of edges, likewise.
        graphs: Table of graphs, likewise.
        column: What columns of the tables are called, by what they hold.
        feature: Columns of features; all remaining ones if empty.
        directed: Whether an edge of the tables goes one way only.
        seed: Seed of a split that is drawn, and of everything else that is random.
    """

    data: str = ""
    root: str | None = None
    nodes: str | None = None
    edges: str | None = None
    graphs: str | None = None
    column: Mapping[str, str] = field(default_factory=dict)
    feature: tuple[str, ...] = ()
    directed: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for kind in self.column:
            require_one_of("kind of column", kind, COLUMNS)
        if self.seed < 0:
            raise SettingsError(f"seed={self.seed}: expected a whole number from 0 on.")

    def table(self) -> dict[str, Any]:
        """What is set, as it is stored."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: _plain(value) for name, value in found.items() if value not in (None, "", {}, ())}

    def given(self) -> list[str]:
        """Names of the fields that are not as they are by default."""
        usual = type(self)().table()
        return [name for name, value in self.table().items() if usual.get(name) != value]


@dataclass(frozen=True)
class ModelSettings(DataSettings):
    """Which model votes on which subgraphs.

    Attributes:
        model: Name of a built-in model, or ``package.module:factory``.
        weights: File with its weights.
        set: Settings of the model, by name.
        division: ``"node"``, ``"edge"`` or ``"gated"``.
        groups: Number of subgraphs T.
        hash: Hash function of the division.
    """

    model: str | None = None
    weights: str | None = None
    set: Mapping[str, Any] = field(default_factory=dict)
    division: str | None = None
    groups: int | None = None
    hash: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.division is not None:
            require_one_of("division", self.division, AGNNCERT)


@dataclass(frozen=True)
class TrainSettings(ModelSettings):
    """How to train; see ``agnncert.fit``.

    Attributes:
        target_size: Choose division and number of groups for attacks of this size, where they are not named.
        epochs: Passes over the training set.
        lr: Learning rate.
        weight_decay: Weight decay.
        clip: Largest norm of the gradient.
        batch_size: Graphs per step.
        objective: ``"balanced"``, ``"paper"`` or, for graphs, ``"vote"``; if not said, the usual one.
        balance_classes: Whether every class counts the same.
        groups_per_step: Subgraphs that stand for all in each step.
        clusters: Cut the graph into so many clusters for training.
        clusters_per_step: How many clusters a step sees.
        protocol: ``"transductive"`` or ``"inductive"``.
        select_size: Keep the weights that are best certified at this size.
        evaluate_every: Epochs between two looks at the validation set.
        patience: Looks without improvement before training ends; 0 for never.
        references: Whether to train an undefended model and one without edges, to compare with.
    """

    target_size: int | None = None
    epochs: int | None = None
    lr: float | None = None
    weight_decay: float | None = None
    clip: float | None = None
    batch_size: int | None = None
    objective: str | None = None
    balance_classes: bool | None = None
    groups_per_step: int | None = None
    clusters: int | None = None
    clusters_per_step: int | None = None
    protocol: str = "transductive"
    select_size: int | None = None
    evaluate_every: int | None = None
    patience: int | None = None
    references: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective is not None:
            require_one_of("objective", self.objective, ("balanced", "paper", "vote"))
        require_one_of("protocol", self.protocol, ("transductive", "inductive"))
        if self.target_size is not None and self.target_size < 0:
            raise SettingsError(f"target_size={self.target_size}: expected a whole number from 0 on.")
        if self.target_size is not None and self.groups is not None:
            raise SettingsError("--target-size chooses the number of subgraphs: leave out --groups.")


@dataclass(frozen=True)
class CertifySettings(ModelSettings):
    """What to certify, and how.

    Attributes:
        targets: Part of the data: ``"test"``, ``"val"``, ``"train"`` or ``"all"``; if not said, test,
            or all if there is no test part.
        engine: ``"fast"`` or ``"naive"``.
        attacks: ``"any"``, or ``"edges"`` for models that are fit for nothing else.
        tolerance: How far two computations of one score may lie apart; measured if not said.
        memory: Megabytes that one chunk of work may take, about.
    """

    targets: str | None = None
    engine: str = "fast"
    attacks: str = "any"
    tolerance: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.targets is not None:
            require_one_of("part of the data", self.targets, PARTS)
        require_one_of("engine", self.engine, ("fast", "naive"))
        require_one_of("kind of attacks", self.attacks, ("any", "edges"))
        if self.tolerance is not None and not self.tolerance >= 0:
            raise SettingsError(f"tolerance={self.tolerance}: expected a number from 0 on.")
        if self.memory is not None and self.memory < 1:
            raise SettingsError(f"memory={self.memory}: expected at least 1 megabyte.")


def settings_from(kind: type[AnySettings], table: Mapping[str, Any]) -> AnySettings:
    """Settings of one kind from a stored table; unknown keys are met with the nearest valid one."""
    valid = [f.name for f in fields(kind)]
    for key in table:
        if key not in valid:
            raise SettingsError(f'unknown setting "{key}": {did_you_mean(key, valid)}')
    values: dict[str, Any] = {**table, "feature": tuple(table.get("feature", ()))}
    return kind(**values)


def require_one_of(what: str, value: str, valid: Iterable[str]) -> None:
    """Raises unless ``value`` is one of the valid words; names the nearest."""
    options = list(valid)
    if value not in options:
        raise SettingsError(f'no {what} is called "{value}": {did_you_mean(value, options)}')


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
