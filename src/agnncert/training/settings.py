"""The settings of ``fit``: name, type, default and limits, and the recipes of the datasets. Imports no torch."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypedDict, TypeVar, get_args, get_type_hints

from agnncert.errors import SettingsError, did_you_mean
from agnncert.proving.measures import rate_of

ObjectiveName = Literal["balanced", "paper", "vote", "certified"]
Protocol = Literal["transductive", "inductive", "held-out"]
Against = Literal["any", "structure"]


@dataclass(frozen=True)
class Setting:
    """Default and limits of one setting.

    Attributes:
        default: The default value.
        at_least: The smallest allowed value, or None.
        above: A number that values must exceed, or None.
        type: Its type, from the declaration in ``FitSettings``.
    """

    default: Any
    at_least: int | None = None
    above: float | None = None
    type: Any = None

    def check(self, name: str, value: Any) -> None:
        """Raises ``SettingsError`` if the value is not allowed."""
        kinds = (self.type,) if isinstance(self.type, type) else get_args(self.type)
        words = [word for kind in (self.type, *kinds) for word in get_args(kind) if isinstance(word, str)]
        if value is None and type(None) in kinds:
            return
        if words and value not in words:
            raise SettingsError(f'unknown {name} "{value}": {did_you_mean(str(value), words)}')
        if not self._is_within_limits(value, int in kinds):
            number = "a whole number" if int in kinds else "a number"
            wanted = "a positive number" if self.above is not None else f"{number} from {self.at_least} on"
            raise SettingsError(f"{name}={value!r}: expected {wanted}.")

    def _is_within_limits(self, value: Any, whole: bool) -> bool:
        if self.at_least is None and self.above is None:
            return True
        if not isinstance(value, Integral if whole else Real) or isinstance(value, bool):
            return False
        number = float(value)  # comparisons with NaN are False, so NaN is refused below
        large_enough = number > self.above if self.above is not None else number >= (self.at_least or 0)
        return large_enough and number < float("inf")


class FitSettings(TypedDict, total=False):
    """The arguments of ``fit`` on which the trained weights depend, described there."""

    epochs: Annotated[int, Setting(200, at_least=1)]
    lr: Annotated[float, Setting(0.01, above=0)]
    weight_decay: Annotated[float, Setting(5e-4, at_least=0)]
    clip: Annotated[float | None, Setting(None, above=0)]
    batch_size: Annotated[int, Setting(64, at_least=1)]
    objective: Annotated[ObjectiveName | None, Setting(None)]
    size: Annotated[int, Setting(0, at_least=0)]
    against: Annotated[Against, Setting("any")]
    no_edge_weight: Annotated[float, Setting(1.0, at_least=0)]
    balance_classes: Annotated[bool | None, Setting(None)]
    measure: Annotated[str | None, Setting(None)]
    groups_per_step: Annotated[int | None, Setting(None, at_least=1)]
    clusters: Annotated[int | None, Setting(None, at_least=1)]
    clusters_per_step: Annotated[int, Setting(1, at_least=1)]
    protocol: Annotated[Protocol, Setting("transductive")]
    evaluate_every: Annotated[int, Setting(5, at_least=1)]
    patience: Annotated[int | None, Setting(20, at_least=1)]
    seed: Annotated[int, Setting(0, at_least=0)]


SETTINGS: dict[str, Setting] = {
    name: replace(hint.__metadata__[0], type=hint.__origin__)
    for name, hint in get_type_hints(FitSettings, include_extras=True).items()
}


def checked(given: Mapping[str, Any], task: str) -> FitSettings:
    """Returns all settings of ``fit``: the given ones, and defaults for the others. The objective depends on ``task``.

    Raises:
        SettingsError: A name is unknown, or a value is not allowed.
    """
    for name in given:
        if name not in SETTINGS:
            raise SettingsError(f'fit has no setting "{name}": {did_you_mean(name, SETTINGS)}')
    settings: dict[str, Any] = {name: given.get(name, setting.default) for name, setting in SETTINGS.items()}
    for name, setting in SETTINGS.items():
        setting.check(name, settings[name])
    settings["objective"] = settings["objective"] or usual_objective(task)
    rate = None if settings["measure"] is None else rate_of(settings["measure"])
    if rate is not None and settings["objective"] == "certified":
        raise SettingsError(
            f'measure="{settings["measure"]}" chooses the prior, and so does objective="certified": leave one out.'
        )
    if settings["objective"] == "certified" and task == "graph":
        raise SettingsError(
            'objective="certified" is for node classification: train graph classifiers with "vote" (the default), then '
            "choose_voting_rule(model, data, division, size) finds the prior."
        )
    if settings["objective"] != "certified" and settings["against"] != "any":
        raise SettingsError(f'against="{settings["against"]}" belongs to objective="certified": leave it out.')
    complete: FitSettings = settings  # type: ignore[assignment]
    return complete


def usual_objective(task: str) -> ObjectiveName:
    """Returns the default objective: "balanced" for nodes, "vote" for graphs."""
    return "vote" if task == "graph" else "balanced"


def as_json(settings: FitSettings) -> dict[str, Any]:
    """Returns the settings as JSON values."""
    return {name: value.item() if hasattr(value, "item") else value for name, value in settings.items()}


Function = TypeVar("Function", bound=Callable[..., Any])


def shows_settings(function: Function) -> Function:
    """Replaces ``**settings`` by the individual settings in the signature that ``help`` shows."""
    plain = inspect.signature(function)
    settings = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=setting.default, annotation=setting.type)
        for name, setting in SETTINGS.items()
    ]
    own = [p for p in plain.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    positional = [p for p in own if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    function.__signature__ = plain.replace(  # type: ignore[attr-defined]
        parameters=[*positional, *settings, *own[len(positional) :]]
    )
    return function


Recipe = dict[str, dict[str, Any]]

_NODE: Recipe = {
    "model": {"num_layers": 2, "dropout": 0.8},
    "fit": {"lr": 0.002, "weight_decay": 5e-3, "epochs": 200, "evaluate_every": 2, "patience": 15},
}
_LARGE: dict[str, Any] = {"lr": 0.01, "weight_decay": 5e-4, "epochs": 120, "evaluate_every": 4, "patience": 8}
_GRAPH: Recipe = {
    "model": {"readout": "sum"},
    "fit": {"lr": 0.01, "epochs": 60, "evaluate_every": 2, "patience": 15, "groups_per_step": 10},
}
_RECIPES: dict[str, Recipe] = {
    "citeseer": {"fit": {"weight_decay": 2e-2}},
    "pubmed": {"model": {"dropout": 0.5}, "fit": _LARGE},
    "amazon-c": {
        "model": {"dropout": 0.3, "norm": "layer_norm"},
        "fit": {**_LARGE, "weight_decay": 1e-4, "epochs": 200},
    },
    "coauthor-physics": {"model": {"dropout": 0.5}, "fit": {**_LARGE, "epochs": 60}},
    # Features are summed over hundreds of nodes: without clipping, one step can lead to a constant prediction.
    "dd": {"fit": {"clip": 1.0, "epochs": 45, "groups_per_step": 5, "evaluate_every": 3, "patience": 10}},
    "digits-knn": {"model": {"dropout": 0.2}, "fit": {"lr": 0.01, "weight_decay": 5e-4, "evaluate_every": 5}},
}
# Standardised features, by objective: "certified" with one subgraph per neighbour, best on validation nodes with
# protocol="held-out"; "stacked" for the models without edges of stacked votes, best out of fold on training nodes.
_DESIGNED: dict[tuple[str, str], Recipe] = {
    ("amazon-c", objective): {
        "model": {"hidden_channels": 128, "dropout": 0.5, "norm": None, "scale": "standard"},
        "fit": {"lr": 0.005, "weight_decay": 5e-4, "epochs": epochs, "evaluate_every": 5, "patience": 12},
    }
    for objective, epochs in (("certified", 200), ("stacked", 60))
}


def tuned_arguments(
    dataset: str | None, task: str, model: str = "", objective: str | None = None, defence: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns arguments of ``build_model`` and ``fit`` that did best on the validation set of a dataset, or of a task.

    Some datasets have other arguments for an objective, such as "certified", or for the defence with a name.
    """
    parts = [_GRAPH if task == "graph" else _NODE, _RECIPES.get(dataset or "", {})]
    parts += [_DESIGNED.get((dataset or "", designed_for or ""), {}) for designed_for in (objective, defence)]
    model_args, fit_args = (
        {name: value for part in parts for name, value in part.get(kind, {}).items()} for kind in ("model", "fit")
    )
    model_args = {name: value for name, value in model_args.items() if value is not None}  # None removes an argument
    if model == "resgcn":  # has a fixed depth
        model_args.pop("num_layers", None)
    return model_args, fit_args
