"""What works: training settings per dataset, found on validation sets."""

from typing import Any

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


def recipe(dataset: str | None, task: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for ``build_model`` and for ``fit`` that do well on a dataset, or on its task when it is not
    known.
    """
    base = _GRAPH if task == "graph" else _NODE
    special = _RECIPES.get(dataset or "", {})
    return {**base["model"], **special.get("model", {})}, {**base["fit"], **special.get("fit", {})}
