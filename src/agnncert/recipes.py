"""``recipe``: the settings with which a model is built and trained for a dataset, or for data of one's own."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agnncert.datasets.catalog import DATASETS, FRAUD
from agnncert.defence import Defence
from agnncert.errors import AgnncertError, SettingsError, did_you_mean, suggests_arguments
from agnncert.graphs.targets import CanonicalData
from agnncert.graphs.task import infer_task
from agnncert.models.build import MODELS, count_classes
from agnncert.models.wrappers import training_rows, uneven_column
from agnncert.training.settings import tuned_arguments


@dataclass(frozen=True)
class Recipe:
    """Settings of a model and of its training. ``print`` shows the two calls that they belong to.

    Attributes:
        name: Name of the model.
        model: Arguments of ``build_model``.
        fit: Arguments of ``fit``.
    """

    name: str
    model: Mapping[str, Any]
    fit: Mapping[str, Any]

    def __str__(self) -> str:
        model = "".join(f", {key}={value!r}" for key, value in self.model.items())
        fit = "".join(f", {key}={value!r}" for key, value in self.fit.items())
        return f'model = ac.build_model("{self.name}", data{model})\nac.fit(model, data, defence{fit})'


@suggests_arguments
def recipe(data: Any, model: str = "gcn", *, objective: str | None = None, defence: Any = None) -> Recipe:
    """Returns how a built-in model is built and trained for some data, as commands and ``fit("gcn", …)`` do.

    For the datasets of the paper these are the settings that did best on validation nodes, with which our published
    figures were made. For other data they follow from the task, the size and the features. If a certificate of the
    defence covers changes before training, they read only what such a change cannot reach: labelled nodes for
    ``StackedVotes(edge_blind=True)``, nothing for ``IsolatedModels``.

    Args:
        data: The name of a dataset, or data.
        model: Name of the model. Defaults to "gcn".
        objective: The objective of training, which may have a recipe of its own, such as "certified".
        defence: A defence, which may have a recipe of its own, such as ``StackedVotes()``.

    Raises:
        SettingsError: There is no such model or dataset, or its recipe depends on its data.

    Example:
        >>> ours = recipe("cora-ml", "gcn")
        >>> print(ours)
        model = ac.build_model("gcn", data, num_layers=2, dropout=0.8)
        ac.fit(model, data, defence, lr=0.002, weight_decay=0.005, epochs=200, evaluate_every=2, patience=15)
    """
    if model not in MODELS:
        raise SettingsError(f'no model is called "{model}": {did_you_mean(model, MODELS)}')
    if isinstance(data, str):
        model_args, fit_args = _by_name(data, model, objective, getattr(defence, "kind", defence))
    else:
        given = data.data if isinstance(data, CanonicalData) else data
        model_args, fit_args = usual_arguments(getattr(given, "name", None), given, model, objective, defence)
    return Recipe(model, MappingProxyType(model_args), MappingProxyType(fit_args))


def data_of_model(data: Any, defence: Defence | None) -> Any:
    """Returns the data from which the size of a model is taken: for some defences only a part of it is trusted."""
    trusted = data if defence is None or data is None else defence.trusted_in_training(data)
    return data if trusted is None else trusted


def _by_name(
    dataset: str, model: str, objective: str | None, defence: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    if dataset not in DATASETS:
        raise SettingsError(f'no dataset is called "{dataset}": {did_you_mean(dataset, DATASETS)}')
    if dataset in FRAUD:
        raise SettingsError(
            f'the recipe for {dataset} depends on its features: pass the data, recipe(load_dataset("{dataset}"), …).'
        )
    return tuned_arguments(dataset, DATASETS[dataset].task, model, objective, defence)


# Default arguments for any data, by task, size and features; many datasets by name use ``settings.tuned_arguments``

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
    dataset: str | None, data: Any, model: str = "", objective: str | None = None, defence: Defence | str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns default arguments of ``build_model`` and ``fit`` for a dataset with or without a name.

    Args:
        dataset: Name of the dataset; ``None`` or another text for a user's own data.
        data: The data.
        model: Name of the model.
        objective: The objective of training, which may have a recipe of its own.
        defence: The defence, or its name. It may have a recipe of its own that counts before that of the objective, and
            trust only a part of the data.
    """
    task = infer_task(data)
    kind = defence.kind if isinstance(defence, Defence) else defence
    model_args, fit_args = tuned_arguments(dataset, task, model, objective, kind)
    if dataset in DATASETS and dataset not in FRAUD:
        return model_args, fit_args
    if isinstance(defence, Defence):
        data = defence.trusted_in_training(data)
    if data is None:
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
