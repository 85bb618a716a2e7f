"""The defence of a run: looked up by its name and made from settings, or taken from the model that has it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from agnncert.addons import ADD_ON_DIVISIONS, addons
from agnncert.cli.data import has_events, trusted_column
from agnncert.cli.settings import DEFENCE_OPTIONS, DataSettings, DefenceSettings
from agnncert.datasets.catalog import DATASETS
from agnncert.datasets.drawn_splits import BY_ID
from agnncert.datasets.encoding import encoding_of
from agnncert.datasets.events import made_of_events
from agnncert.defence import Defence, Task
from agnncert.divided.defence import Divided
from agnncert.divisions.named import defence_names, named_divisions
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.task import task_of_targets
from agnncert.stacked.settings import StackedSettings

SomeSettings = TypeVar("SomeSettings", bound=DefenceSettings)
AnyData = TypeVar("AnyData", bound=DataSettings)

USUAL = "node"  # the defence, if neither the settings nor the model name one
NO_MODEL = "none"  # in place of the name of a model, for defences that need none
USUAL_MODEL = "gcn"  # the model, if neither the settings nor the defence name one


USUAL_FOR_PAIRS = "pairs"  # the defence of data whose targets are pairs, if settings name none
USUAL_FOR_EVENTS = "stacked"  # the defence of graphs whose edges stand for events, if settings name none


def with_usual_for_events(settings: SomeSettings, data: Any) -> SomeSettings:
    """Returns the settings with the usual defence of graphs of events, where they leave it open.

    Stacked votes read the values of edges. If nodes have no features of their own, there is no model of these. What
    depends on the number of training nodes is stated, because later steps see more of them if there is a cut-off.

    Args:
        settings: The settings.
        data: What training may see. Nothing is changed if its edges do not stand for events.
    """
    if not made_of_events(data) or settings.division not in (None, USUAL_FOR_EVENTS):
        return settings
    num_rows = int(data.train_mask.sum()) if getattr(data, "train_mask", None) is not None else 0
    fitting = StackedSettings().for_rows(num_rows)
    usual = {"edge_values": True, "refine": fitting.refine, "weight_decay": fitting.weight_decay}
    model = settings.model
    encoding = encoding_of(data)
    if model is None and encoding is not None and not encoding.nodes:
        model = NO_MODEL
    return replace(settings, division=USUAL_FOR_EVENTS, defence={**usual, **settings.defence}, model=model)


def with_usual_for_pairs(settings: SomeSettings, data: Any) -> SomeSettings:
    """Returns the settings with the usual defence of pairs, where they leave it open and the targets are pairs.

    Raises:
        SettingsError: The targets are pairs and the named defence is about nodes or graphs, or the other way round.
    """
    if data is None:
        return settings
    has_pairs = task_of_targets(data) == "pair"
    if has_pairs and settings.division is None:
        settings = replace(settings, division=USUAL_FOR_PAIRS)
    decides_pairs = "pair" in defence_class(settings.division).tasks
    if has_pairs and not decides_pairs:
        raise SettingsError(
            f"the targets are pairs of nodes, because there is a table of pairs, and --division {settings.division} "
            f"classifies nodes or graphs: leave it out (--division {USUAL_FOR_PAIRS} is for pairs), or leave out the "
            "table of pairs."
        )
    if decides_pairs and not has_pairs:
        raise SettingsError(
            f"--division {settings.division} classifies pairs of nodes, and the data lists none: put a table pairs.csv "
            "beside nodes.csv and edges.csv, with the columns source, target and label (another file: --set "
            "pairs=FILE)."
        )
    if decides_pairs and settings.directed and "directed" not in settings.defence:
        settings = replace(settings, defence={"directed": True, **settings.defence})
    return settings


def defence_class(name: str | None) -> type[Defence]:
    """Returns the class of the defence that a command calls by a name. Defaults to that of ``USUAL``.

    Raises:
        SettingsError: No defence has this name.
    """
    if name is None or name in {*named_divisions(), *ADD_ON_DIVISIONS}:
        return Divided
    named = addons("agnncert.defence_names")
    if name not in named:
        raise SettingsError(f'no defence is called "{name}": {did_you_mean(name, defence_names())}')
    kind: type[Defence] = named[name].load()
    return kind


def with_usual_split(settings: AnyData, names: Iterable[str | None]) -> AnyData:
    """Returns settings that say so if a split is drawn by ids.

    A user's own tables are split so. A dataset, and a table of events, in which what is sought is rare, are split so
    if one of the defences is about poisoned training data.

    Args:
        settings: The settings.
        names: Names of the defences that are trained.
    """
    if settings.split_by is not None:
        return settings
    info = DATASETS.get(settings.data)
    trusts = all(name is None or defence_class(name).trusts_training_data for name in names)
    if trusts and (info is not None or has_events(settings)):
        return settings
    if info is not None and info.addon:  # it has parts of its own
        return settings
    return replace(settings, split_by=BY_ID)


def usual_model(kind: type[Defence] | None) -> str:
    """Returns the name of the model that is trained for a kind of defence, or for none, if settings name no model."""
    if kind is None or kind.base_model is None:
        return USUAL_MODEL
    return kind.base_model


def make_defence(
    settings: SomeSettings, task: Task, data: Any = None, model: Any = None
) -> tuple[SomeSettings, Defence]:
    """Makes the defence that settings name, and completes the settings with the usual defence and model.

    Args:
        settings: The settings.
        task: "node" or "graph".
        data: The data, if it is at hand.
        model: The trained model, if there is one. If it was trained for a defence, that defence counts.

    Raises:
        SettingsError: No defence has this name, it has no such setting, or the model was trained for another one.
    """
    settings = with_usual_for_pairs(settings, data)
    trained_for = getattr(model, "defence", None)
    if isinstance(trained_for, Defence):
        name = settings.division or _name_of(trained_for)
        _require_same(trained_for, name, settings)
        defence = trained_for
    else:
        name = settings.division or USUAL
        if model is not None and defence_class(name).own_model is not None:
            raise SettingsError(
                f'"{name}" certifies models that were trained for it: agnncert train DATA --division {name} makes one.'
            )
        defence = defence_from_settings(settings, task, data)
    _require_voting_rule(defence, settings)
    resolved = {key: value for key, value in defence.resolved_settings().items() if key in DEFENCE_OPTIONS}
    return replace(settings, division=name, model=settings.model or usual_model(type(defence)), **resolved), defence


def defence_from_settings(settings: DefenceSettings, task: Task, data: Any) -> Defence:
    """Returns the defence that settings name, as its class makes it of them.

    Raises:
        SettingsError: It has no such setting, or a value makes no sense.
    """
    name = settings.division or USUAL
    kind = defence_class(name)
    arguments = settings.defence_options()
    if settings.trusted is not None and "trusted" in kind.setting_names(name):
        arguments["trusted"] = trusted_column(data)
    if settings.trained_size is not None and "size" in kind.setting_names(name):
        arguments["size"] = settings.trained_size
    for key, value in settings.defence.items():
        arguments[key] = None if value == "none" else value
    try:
        return kind.from_settings(name, task, arguments)
    except SettingsError as error:
        raise SettingsError(f"{error}{_elsewhere(name, arguments)}") from error


def _elsewhere(name: str, arguments: dict[str, Any]) -> str:
    """Returns a sentence that says which defences have the settings that this one lacks."""
    known = defence_class(name).setting_names(name)
    for key in arguments:
        if key in known:
            continue
        others = [other for other in defence_names() if key in defence_class(other).setting_names(other)]
        if others:
            return f' The setting "{key}" belongs to --division {", ".join(others)}.'
    return ""


def _name_of(defence: Defence) -> str | None:
    """Returns the name by which commands know a kind of defence; ``None`` if they know it by none."""
    kind = type(defence)
    for name, point in addons("agnncert.defence_names").items():
        if point.value == f"{kind.__module__}:{kind.__qualname__}":
            return name
    return None


def _require_same(trained_for: Defence, name: str | None, settings: DefenceSettings) -> None:
    """Refuses settings of another defence than the one that a model was trained for."""
    if name is not None and type(trained_for) is not defence_class(name):
        raise SettingsError(f"the model was trained for {trained_for}: leave out --division {name}.")
    options = settings.defence_options()
    options.pop("trusted", None)  # the data says which column marks trusted edges
    for key, value in {**options, **settings.defence}.items():
        wanted = None if value == "none" else value
        if not hasattr(trained_for, key):
            raise SettingsError(f'{trained_for} has no setting "{key}": leave out {key}.')
        if wanted is not None and getattr(trained_for, key) != wanted:
            raise SettingsError(
                f"the model was trained with {key}={getattr(trained_for, key)}, not {wanted}: leave out {key}."
            )


def _require_voting_rule(defence: Defence, settings: DefenceSettings) -> None:
    """Refuses a voting rule for a defence that has none."""
    if not settings.sets_rule or "voting_rule" in defence.certify_options:
        return
    options = [name for name in ("empty", "prior") if getattr(settings, name) is not None]
    raise SettingsError(f"{defence.refusal('voting_rule')} Please leave out {' and '.join(options)}.")
