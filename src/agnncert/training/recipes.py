"""Default arguments for any data, by task, size and features. Many datasets by name use ``settings.recipe``."""

import logging
from contextlib import suppress
from typing import Any

from torch import nn

from agnncert.datasets.catalog import DATASETS, FRAUD
from agnncert.errors import AgnncertError
from agnncert.graphs.graph import infer_task
from agnncert.models.build import count_classes
from agnncert.models.wrappers import Scaling, training_rows, uneven_column
from agnncert.training.settings import recipe

log = logging.getLogger(__name__)

MANY_FEATURES = 200  # as in bags of words: there, much dropout helps
MANY_CLASSES = 20  # more need wider layers
# Number of nodes (of all training graphs), and the epochs that suffice above it, as in the recipes of PubMed,
# Coauthor-Physics (beyond 15,000 nodes) and DD (beyond 150,000).
NODE_EPOCHS = ((15_000, 120), (30_000, 60), (1_000_000, 30))
GRAPH_EPOCHS = ((150_000, 45), (2_000_000, 30))
# As the recipes of the catalogue for datasets of such size.
_OF_LARGE: dict[str, dict[str, Any]] = {
    "node": {"lr": 0.01, "weight_decay": 5e-4, "evaluate_every": 4, "patience": 8},
    "graph": {"clip": 1.0, "groups_per_step": 5, "evaluate_every": 3, "patience": 10},
}


def usual_arguments(
    dataset: str | None, data: Any, model: str = "", objective: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Default arguments of ``build_model`` and ``fit`` for a dataset with or without a name."""
    task = infer_task(data)
    model_args, fit_args = recipe(dataset, task, model, objective)
    if dataset in DATASETS and dataset not in FRAUD:
        return model_args, fit_args
    x = training_rows(data)
    if task == "node" and x.size(1) < MANY_FEATURES:  # the recipe is for citation graphs with thousands of words
        model_args |= {"dropout": 0.2, "norm": "layer_norm"}
        fit_args |= {"lr": 0.01, "weight_decay": 5e-4, "evaluate_every": 5}
    if uneven_column(x) is not None:
        model_args["scale"] = "standard"
    with suppress(AgnncertError):  # training itself says what is wrong with the labels
        if count_classes(data) > MANY_CLASSES:
            model_args["hidden_channels"] = 128
    num_nodes = int(data.num_nodes) if task == "node" else x.size(0)
    for least, epochs in NODE_EPOCHS if task == "node" else GRAPH_EPOCHS:
        if num_nodes > least:  # a step sees more nodes, so fewer steps suffice
            fit_args |= _OF_LARGE[task] | {"epochs": epochs}
            if task == "node":
                model_args["dropout"] = min(model_args["dropout"], 0.5)
    return model_args, fit_args


def warn_if_uneven(model: nn.Module, data: Any) -> None:
    """Logs a warning if a column varies far more than others and the model does not scale its inputs."""
    if any(isinstance(layer, Scaling) for layer in model.modules()):
        return
    found = uneven_column(training_rows(data))
    if found is not None:
        column, most, median = found
        log.warning(
            "features have very different scales: column %d varies by %.3g, the median column by %.3g. Scale them "
            'within the model: build_model(..., scale="standard"), --set scale=standard, or in a module of your own '
            "agnncert.models.Scaling.of(x).",
            column, most, median,
        )  # fmt: skip


def advice_if_worse(vote: float, no_edges: float, config: dict[str, Any] | None) -> str | None:
    """Advice if a model without edges has a better validation accuracy than the vote, else ``None``."""
    if vote >= no_edges:
        return None
    config = config or {}
    ideas = [] if config.get("norm") or not config else ["--set norm=batch_norm"]
    ideas += [] if config.get("scale") or not config else ["--set scale=standard"]
    ideas += ["more --epochs", "fewer --groups", "another --model, such as sage"]
    return (
        f"On the validation part the vote is right for {100 * vote:.1f} %, a model without edges for "
        f"{100 * no_edges:.1f} %: the edges do not help. Try {', '.join(ideas)}."
    )
