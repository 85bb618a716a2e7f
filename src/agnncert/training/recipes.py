"""What works: training settings per dataset, found on validation sets."""

from typing import Any

_NODE = {"model": {"num_layers": 2, "dropout": 0.8}, "fit": {"lr": 0.002, "weight_decay": 5e-3, "epochs": 200, "evaluate_every": 2}}
_GRAPH = {
    "model": {"norm": "batch_norm", "jk": "cat"},
    "fit": {"lr": 0.005, "epochs": 60, "evaluate_every": 3, "patience": 8},
}
_RECIPES: dict[str, dict[str, dict[str, Any]]] = {}


def recipe(dataset: str | None, task: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for ``build_model`` and for ``fit`` that do well on a dataset, or on its task when it is not known."""
    base = _GRAPH if task == "graph" else _NODE
    special = _RECIPES.get(dataset or "", {})
    return {**base["model"], **special.get("model", {})}, {**base["fit"], **special.get("fit", {})}
