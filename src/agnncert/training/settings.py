"""How a model is trained: every setting of ``fit``, checked once.

What works: training settings per dataset, found on validation sets.
"""

from dataclasses import asdict, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from agnncert.errors import SettingsError, did_you_mean
from agnncert.training.node_objective import ObjectiveName, Weights, check_objective

Protocol = Literal["transductive", "inductive"]
PROTOCOLS: tuple[Protocol, ...] = ("transductive", "inductive")

_COUNTS = ("epochs", "batch_size", "evaluate_every", "patience", "groups_per_step", "clusters", "clusters_per_step")
_OPTIONAL = ("patience", "groups_per_step", "clusters", "clip")


@dataclass(frozen=True)
class FitSettings:
    """The arguments of ``fit`` that decide which weights come out; see there."""

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    clip: float | None = None
    batch_size: int = 64
    objective: ObjectiveName = "balanced"
    weights: Weights = field(default_factory=Weights)
    balance_classes: bool = False
    groups_per_step: int | None = None
    clusters: int | None = None
    clusters_per_step: int = 1
    protocol: Protocol = "transductive"
    select_size: int = 0
    evaluate_every: int = 5
    patience: int | None = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for name in (one.name for one in fields(self)):
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if name in _COUNTS and not _is_whole(value, 1):
                raise SettingsError(f"{name}={value!r}: expected a whole number from 1 on.")
            if name in ("select_size", "seed") and not _is_whole(value, 0):
                raise SettingsError(f"{name}={value!r}: expected a whole number from 0 on.")
            if name in ("lr", "clip") and not _is_number(value, above=0):
                raise SettingsError(f"{name}={value!r}: expected a positive number.")
        if not (_is_number(self.weight_decay, above=0) or self.weight_decay == 0):
            raise SettingsError(f"weight_decay={self.weight_decay!r}: expected a number from 0 on.")
        if not isinstance(self.weights, Weights):
            raise SettingsError(f"weights={self.weights!r}: expected Weights(full=…, ballots=…, edgeless=…).")
        check_objective(self.objective)
        if self.objective == "vote" and self.weights != Weights():
            raise SettingsError(
                f'{self.weights}: objective="vote" is a single term. Leave out the weights, or choose "balanced".'
            )
        if self.protocol not in PROTOCOLS:
            raise SettingsError(f'unknown protocol "{self.protocol}": {did_you_mean(str(self.protocol), PROTOCOLS)}')

    def table(self) -> dict[str, Any]:
        """The settings as JSON has them."""
        return {k: v.item() if isinstance(v, np.generic) else v for k, v in asdict(self).items()}

    @property
    def terms(self) -> dict[str, Any]:
        """What every objective takes."""
        return {"objective": self.objective, "weights": self.weights, "balance_classes": self.balance_classes}


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_number(value: object, above: float) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and above < float(value) < float("inf")


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
    # Sums over hundreds of nodes: without a limit to the gradient one step can end in a constant answer.
    "dd": {"fit": {"clip": 1.0, "epochs": 45, "groups_per_step": 5, "evaluate_every": 3, "patience": 10}},
    "digits-knn": {"model": {"dropout": 0.2}, "fit": {"lr": 0.01, "weight_decay": 5e-4, "evaluate_every": 5}},
}


def recipe(dataset: str | None, task: str, model: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for ``build_model`` and for ``fit`` that do well.

    Args:
        dataset: Name of the dataset; what does well for the task when it is not known.
        task: ``"node"`` or ``"graph"``.
        model: Name of the model, if it is known.
    """
    base = _GRAPH if task == "graph" else _NODE
    special = _RECIPES.get(dataset or "", {})
    model_args = {**base["model"], **special.get("model", {})}
    if model == "resgcn":  # has its own depth
        model_args.pop("num_layers", None)
    return model_args, {**base["fit"], **special.get("fit", {})}
