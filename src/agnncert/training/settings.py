"""The settings of ``fit``: name, type, default, limits and help, and the recipes of the datasets. Imports no torch."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypedDict, TypeVar, get_args, get_type_hints

from agnncert.errors import SettingsError, did_you_mean

ObjectiveName = Literal["balanced", "paper", "vote", "certified"]
Protocol = Literal["transductive", "inductive", "held-out"]
Against = Literal["any", "structure"]


@dataclass(frozen=True)
class LossWeights:
    """Weights of the terms of the objective.

    Attributes:
        full: The loss on the whole graph.
        ballots: The loss on ballots that see an edge.
        edgeless: The loss on the prediction without edges, which equals all other votes of a node.
    """

    full: float = 1.0
    ballots: float = 1.0
    edgeless: float = 1.0

    def __post_init__(self) -> None:
        values = (self.full, self.ballots, self.edgeless)
        if not all(0 <= value < float("inf") for value in values) or max(values) == 0:
            raise SettingsError(f"{self}: weights must be finite and not negative, and one of them must be positive.")


@dataclass(frozen=True)
class Setting:
    """The declaration of one setting.

    Attributes:
        default: The default value.
        help: One line for the command line; ``None`` if the setting has no option there.
        at_least: The smallest allowed value, or None.
        above: A number that values must exceed, or None.
        from_recipe: Whether a dataset's recipe may set it; then its command-line option has no default.
        type: Its type, from the declaration in ``FitSettings``.
    """

    default: Any
    help: str | None = None
    at_least: int | None = None
    above: float | None = None
    from_recipe: bool = True
    type: Any = None

    @property
    def types(self) -> tuple[Any, ...]:
        """All types of a value: ``int | None`` gives ``int`` and ``NoneType``."""
        return (self.type,) if isinstance(self.type, type) else get_args(self.type)

    @property
    def plain_type(self) -> Any:
        """The type of values other than ``None``; ``str`` for a choice of words."""
        return str if self.words else next(kind for kind in self.types if kind is not type(None))

    @property
    def words(self) -> tuple[str, ...]:
        """The allowed words, if the type is a ``Literal``."""
        return tuple(word for kind in (self.type, *self.types) for word in get_args(kind) if isinstance(word, str))

    def check(self, name: str, value: Any) -> None:
        """Raises ``SettingsError`` if the value is not allowed."""
        if value is None and type(None) in self.types:
            return
        if LossWeights in self.types and not isinstance(value, LossWeights):
            raise SettingsError(f"{name}={value!r}: expected LossWeights(full=…, ballots=…, edgeless=…).")
        if self.words and value not in self.words:
            raise SettingsError(f'unknown {name} "{value}": {did_you_mean(str(value), self.words)}')
        if not self._is_within_limits(value):
            number = "a whole number" if int in self.types else "a number"
            wanted = "a positive number" if self.above is not None else f"{number} from {self.at_least} on"
            raise SettingsError(f"{name}={value!r}: expected {wanted}.")

    def _is_within_limits(self, value: Any) -> bool:
        if self.at_least is None and self.above is None:
            return True
        if not isinstance(value, Integral if int in self.types else Real) or isinstance(value, bool):
            return False
        number = float(value)  # comparisons with NaN are False, so NaN is refused below
        large_enough = number > self.above if self.above is not None else number >= (self.at_least or 0)
        return large_enough and number < float("inf")


class FitSettings(TypedDict, total=False):
    """The arguments of ``fit`` on which the trained weights depend, described there."""

    epochs: Annotated[int, Setting(200, "Passes over the data.", at_least=1)]
    lr: Annotated[float, Setting(0.01, "Learning rate.", above=0)]
    weight_decay: Annotated[float, Setting(5e-4, "Weight decay.", at_least=0)]
    clip: Annotated[float | None, Setting(None, "Largest norm of the gradient.", above=0)]
    batch_size: Annotated[int, Setting(64, "Graphs per step.", at_least=1)]
    objective: Annotated[ObjectiveName | None, Setting(None, "balanced, paper, certified (nodes) or vote (graphs).")]
    design_size: Annotated[int, Setting(0, "Size that objective=certified trains for.", at_least=0, from_recipe=False)]
    against: Annotated[
        Against,
        Setting(
            "any", "What that size counts (nodes): any change, or structure: edges and nodes added and deleted.",
            from_recipe=False,
        ),
    ]  # fmt: skip
    weights: Annotated[LossWeights | None, Setting(None)]
    balance_classes: Annotated[bool, Setting(False, "Let every class count the same.")]
    groups_per_step: Annotated[
        int | None, Setting(None, "Subgraphs that stand for all in a step (graphs).", at_least=1)
    ]
    clusters: Annotated[int | None, Setting(None, "Train a large graph in so many clusters (nodes).", at_least=1)]
    clusters_per_step: Annotated[int, Setting(1, "How many of them a step sees.", at_least=1)]
    protocol: Annotated[
        Protocol,
        Setting(
            "transductive",
            "transductive, inductive: test nodes are not seen, or held-out: nor are validation nodes.",
            from_recipe=False,
        ),
    ]
    select_size: Annotated[int, Setting(0, "Keep the weights that are best certified at this size.", at_least=0)]
    evaluate_every: Annotated[int, Setting(5, "Epochs between two evaluations.", at_least=1)]
    patience: Annotated[
        int | None, Setting(20, "Evaluations without improvement before it ends; 0: never.", at_least=1)
    ]
    seed: Annotated[int, Setting(0, at_least=0)]


SETTINGS: dict[str, Setting] = {
    name: replace(hint.__metadata__[0], type=hint.__origin__)
    for name, hint in get_type_hints(FitSettings, include_extras=True).items()
}


def checked(given: Mapping[str, Any], task: str) -> FitSettings:
    """All settings of ``fit``: the given ones, and defaults for the others; the default objective depends on ``task``.

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
    settings["weights"] = settings["weights"] or LossWeights()
    if settings["objective"] == "vote" and settings["weights"] != LossWeights():
        raise SettingsError(
            f'{settings["weights"]}: objective="vote" is a single term. Leave out the weights, or choose "balanced".'
        )
    if settings["objective"] == "certified" and task == "graph":
        raise SettingsError(
            'objective="certified" is for node classification: train graph classifiers with "vote" (the default), then '
            "choose_voting_rule(model, data, division, size) finds the prior."
        )
    if settings["objective"] == "certified" and settings["select_size"]:
        raise SettingsError(
            'objective="certified" keeps the weights that are best at design_size: leave out select_size.'
        )
    if settings["objective"] != "certified" and (settings["design_size"] or settings["against"] != "any"):
        name = "design_size" if settings["design_size"] else "against"
        raise SettingsError(
            f'{name}={settings[name]} belongs to objective="certified"; to keep the weights that are best certified at '
            "a size, give select_size."
        )
    complete: FitSettings = settings  # type: ignore[assignment]
    return complete


def usual_objective(task: str) -> ObjectiveName:
    """The default objective: "balanced" for nodes, "vote" for graphs."""
    return "vote" if task == "graph" else "balanced"


def as_json(settings: FitSettings) -> dict[str, Any]:
    """The settings as JSON values."""
    return {
        name: asdict(value) if isinstance(value, LossWeights) else value.item() if hasattr(value, "item") else value
        for name, value in settings.items()
    }


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
# For objective="certified" with one subgraph per neighbour: best on validation nodes with protocol="held-out".
_DESIGNED: dict[str, Recipe] = {
    "amazon-c": {
        "model": {"hidden_channels": 128, "dropout": 0.5, "norm": None, "scale": "standard"},
        "fit": {"lr": 0.005, "weight_decay": 5e-4, "epochs": 200, "evaluate_every": 5, "patience": 12},
    }
}


def recipe(
    dataset: str | None, task: str, model: str = "", objective: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of ``build_model`` and ``fit`` that did best on the validation set of a dataset, or of a task.

    Some datasets have other arguments for the objective "certified".
    """
    parts = [_GRAPH if task == "graph" else _NODE, _RECIPES.get(dataset or "", {})]
    if objective == "certified":
        parts.append(_DESIGNED.get(dataset or "", {}))
    model_args, fit_args = (
        {name: value for part in parts for name, value in part.get(kind, {}).items()} for kind in ("model", "fit")
    )
    model_args = {name: value for name, value in model_args.items() if value is not None}  # None removes an argument
    if model == "resgcn":  # has a fixed depth
        model_args.pop("num_layers", None)
    return model_args, fit_args
