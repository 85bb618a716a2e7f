"""From settings to what they name: the data, the division, the model, the targets."""

import logging
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from agnncert.datasets import DATASETS, dataset_digest, load_dataset, load_tables
from agnncert.datasets.columns import FORMATS
from agnncert.divisions import EdgeCentric, NodeCentric, division_named
from agnncert.errors import DatasetError, SettingsError, did_you_mean
from agnncert.graphs.graph import infer_task
from agnncert.models import MODELS, build_model, load_model
from agnncert.storage import write_atomic
from agnncert.studies.folder import RunFolder
from agnncert.studies.own_model import is_module_spec, load_weights, user_model
from agnncert.studies.settings import DataSettings, ModelSettings

log = logging.getLogger(__name__)

MODEL_SETTINGS = ("hidden_channels", "num_layers", "dropout", "act", "norm", "jk", "heads", "readout")
SomeSettings = TypeVar("SomeSettings", bound=ModelSettings)

LARGEST_COPY = 50_000_000  # bytes of tables that a run folder keeps a copy of


def load_data(settings: DataSettings) -> Any:
    """The graph, or graphs, that settings name.

    Raises:
        DatasetError: There is no such dataset or folder, or its content cannot be used.
    """
    name, seed = settings.data, settings.seed
    if not (settings.nodes or settings.edges or settings.graphs):
        if name in DATASETS:
            return load_dataset(name, root=settings.root, seed=seed)
        if not name:
            raise DatasetError(
                "no data was named: give the name of a dataset, or a folder with tables of nodes and edges."
            )
        if not Path(name).is_dir():
            raise DatasetError(
                f'no dataset and no folder is called "{name}": {did_you_mean(name, DATASETS)} '
                "Your own graph: a folder with nodes.csv and edges.csv."
            )
    columns: dict[str, Any] = {**settings.column}
    if columns.get("label") == "none":
        columns["label"] = None
    return load_tables(
        name or None, nodes=settings.nodes, edges=settings.edges, graphs=settings.graphs,
        directed=settings.directed, features=settings.feature or None, seed=seed, **columns,
    )  # fmt: skip


def describe(data: Any, settings: DataSettings) -> dict[str, Any]:
    """What a run folder tells about its data."""
    task = infer_task(data)
    graphs = data if task == "graph" else [data]
    names = getattr(data, "class_names", None)
    classes = getattr(data, "num_classes", None)
    return {
        "name": getattr(data, "name", None) or settings.data,
        "task": task,
        "digest": dataset_digest(data),
        "graphs": len(graphs),
        "nodes": sum(int(graph.num_nodes) for graph in graphs),
        "edges": sum(int(graph.num_edges) for graph in graphs),
        "features": int(graphs[0].num_features),
        "classes": None if classes is None else int(classes),
        "class_names": None if names is None else [str(name) for name in names],
    }


def copy_tables(settings: DataSettings, folder: RunFolder) -> None:
    """Keeps a user's own tables in the run folder, so that the run can be repeated from there."""
    if settings.data in DATASETS:
        return
    given = {"nodes": settings.nodes, "edges": settings.edges, "graphs": settings.graphs}
    files = {kind: Path(file) for kind, file in given.items() if file is not None}
    for kind, suffix in product(given, FORMATS) if settings.data else ():
        file = Path(settings.data) / f"{kind}{suffix}"
        if kind not in files and file.is_file():
            files[kind] = file
    if sum(file.stat().st_size for file in files.values()) > LARGEST_COPY:
        log.warning("the tables are too large to be kept in %s: repeating the run needs them where they are", folder)
        return
    folder.tables.mkdir(parents=True, exist_ok=True)
    for kind, file in files.items():
        copy = folder.tables / f"{kind}{file.suffix}"
        if not copy.exists() or not copy.samefile(file):
            write_atomic(copy, file.read_bytes())


def make_division(settings: SomeSettings, task: str) -> tuple[SomeSettings, EdgeCentric | NodeCentric]:
    """The division that settings name, and the settings with what usually works where they name nothing."""
    division = division_named(settings.division or "node", settings.groups, settings.hash or "md5", task)
    chosen = {"division": settings.division or "node", "groups": division.num_groups, "hash": division.hash}
    return replace(settings, **chosen, model=settings.model or "gcn"), division


def fresh_model(settings: ModelSettings, data: Any) -> Any:
    """An untrained model."""
    name = settings.model or "gcn"
    given: dict[str, Any] = {key: None if value == "none" else value for key, value in settings.set.items()}
    if is_module_spec(name):
        torch.manual_seed(settings.seed)
        return user_model(name, _known(data), given)
    if name not in MODELS:
        raise SettingsError(
            f'no model is called "{name}": {did_you_mean(name, MODELS)} Your own model: package.module:factory.'
        )
    for key in given:
        if key not in MODEL_SETTINGS:
            raise SettingsError(f'a built-in model has no setting "{key}": {did_you_mean(key, MODEL_SETTINGS)}')
    return build_model(name, data, seed=settings.seed, **given)


def trained_model(settings: ModelSettings, data: Any) -> Any:
    """A model with its weights, ready to be certified."""
    name, own = settings.model or "gcn", is_module_spec(settings.model or "")
    if settings.weights is None and not own and name in MODELS:
        raise SettingsError(
            f"a {name} without weights has learned nothing: pass --weights, or train it first "
            f"(agnncert train {settings.data} --model {name}) and certify the folder which that leaves."
        )
    if settings.weights is not None and not own and Path(settings.weights).with_suffix(".json").is_file():
        return load_model(settings.weights)  # beside them is a description of the model
    model = fresh_model(settings, data)
    if settings.weights is not None:
        return load_weights(model, settings.weights)
    log.warning("no --weights were given: %s is taken as it comes", name)
    return model.eval()


def targets_of(data: Any, part: str | None) -> Any:
    """Row numbers of a part of the data, or None for all; if not said, the test part, if there is one."""
    if part == "all":
        return None
    wanted = part or "test"
    mask = getattr(data, wanted if infer_task(data) == "graph" else f"{wanted}_mask", None)
    rows = None if mask is None else np.asarray(mask)
    if rows is not None and rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows is not None and len(rows):
        return rows
    if part is None:
        return None
    raise SettingsError(f"the data has no {part} part: use --targets all.")


def run_name(data: dict[str, Any], settings: ModelSettings) -> str:
    """A name for the folder: what most runs differ in."""
    model = str(settings.model).replace(".py:", "-").replace(":", "-")
    seed = f"-seed{settings.seed}" if settings.seed else ""
    size = getattr(settings, "target_size", None)
    division = (
        f"{settings.division or 'any'}-size-{size}" if size is not None else f"{settings.division}-{settings.groups}"
    )
    name = f"{data['name']}-{model}-{division}{seed}"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")


def _known(data: Any) -> dict[str, Any]:
    """What a factory may ask for, under the names that PyTorch Geometric uses."""
    if data is None:
        return {}
    graph = data if infer_task(data) == "node" else data[0]
    features, classes = int(graph.num_features), getattr(data, "num_classes", None)
    known: dict[str, Any] = {
        "data": data,
        "in_channels": features,
        "num_features": features,
        "num_node_features": features,
    }
    return known | ({} if classes is None else {"out_channels": int(classes), "num_classes": int(classes)})
