"""From settings to what they name: the data, the division, the model, the targets; for a new run or an earlier one."""

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
from agnncert.errors import DatasetError, ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.graph import infer_task
from agnncert.graphs.targets import Prepared, target_rows
from agnncert.models import MODELS, build_model, load_model
from agnncert.proof.ballots import IntArray
from agnncert.storage import write_atomic
from agnncert.studies.folder import CHOICE, RunFolder
from agnncert.studies.own_model import is_module_spec, load_weights, user_model
from agnncert.studies.run import Study
from agnncert.studies.settings import CertifySettings, DataSettings, ModelSettings, TrainSettings, settings_from

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


def describe(ready: Prepared, settings: DataSettings) -> dict[str, Any]:
    """What a run folder tells about its data."""
    data, task = ready.data, ready.task
    graphs = data if task == "graph" else [data]
    names = getattr(data, "class_names", None)
    classes = getattr(data, "num_classes", None)
    return {
        "name": getattr(data, "name", None) or settings.data,
        "task": task,
        "digest": dataset_digest(ready),
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


def targets_of(ready: Prepared, part: str | None) -> IntArray:
    """Row numbers of a part of the data; if not said, of the test part, or of all if there is none."""
    everything = target_rows(None, ready.total)
    if part == "all":
        return everything
    wanted = part or "test"
    mask = getattr(ready.data, wanted if ready.task == "graph" else f"{wanted}_mask", None)
    rows = None if mask is None else np.asarray(mask)
    if rows is not None and rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows is not None and len(rows):
        return rows
    if part is None:
        return everything
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


# What certifying adds to the settings of a trained run, or may choose anew.
OWN = ("division", "groups", "hash", "targets", "engine", "attacks", "tolerance", "memory")


def of_settings(settings: CertifySettings) -> tuple[CertifySettings, Study]:
    """What settings name, and the settings with nothing left open."""
    ready = Prepared.of(load_data(settings))
    settings, division = make_division(settings, ready.task)
    return settings, _study(ready, settings, division, trained_model(settings, ready.data))


def of_run(folder: RunFolder, changes: CertifySettings | None = None) -> tuple[CertifySettings, Study]:
    """What an earlier run worked on, and the settings with nothing left open.

    Args:
        folder: The run.
        changes: What to certify and how, if not as before; model and data must not be named.

    Raises:
        SettingsError: The run has not come far enough, its data has changed, or ``changes`` go too far.
    """
    steps, changes = folder.settings, changes or CertifySettings()
    foreign = [name for name in changes.given() if name not in ("data", "root", *OWN)]
    if foreign:
        raise SettingsError(
            f"{folder} has a model and data of its own: leave out {', '.join(f'--{n}' for n in foreign)}."
        )
    chosen = {name: getattr(changes, name) for name in changes.given() if name in ("root", *OWN)}
    if "train" in steps:
        training = _at_home(folder, settings_from(TrainSettings, steps["train"]), changes.root)
        shared = {
            name: getattr(training, name) for name in CertifySettings.__dataclass_fields__ if hasattr(training, name)
        }
        best = folder.read_json(CHOICE)  # of the division, if training was to choose one
        shared |= {name: best[name] for name in ("division", "groups") if name in best}
        settings = replace(CertifySettings(**shared), **chosen)
        ready = _same_data(folder, training)
        if not folder.weights.is_file():
            raise ModelContractError(f"{folder} has no weights yet: finish its training first (agnncert train).")
        model = load_weights(fresh_model(training, ready.data), folder.weights)
    elif "certify" in steps:
        settings = _at_home(folder, settings_from(CertifySettings, steps["certify"]), changes.root)
        settings = replace(settings, **chosen)
        ready = _same_data(folder, settings)
        weights = str(folder.weights) if folder.weights.is_file() else None
        model = trained_model(replace(settings, weights=weights), ready.data)
    else:
        raise SettingsError(f"{folder} holds neither a trained model nor a certificate.")
    settings, division = make_division(settings, ready.task)
    return settings, _study(ready, settings, division, model)


def facts(settings: ModelSettings, division: Any, about: dict[str, Any]) -> dict[str, Any]:
    """What every row of results says about its origin."""
    known = {"data": about["name"], "digest": about["digest"], "seed": settings.seed}
    return {**known, "model": settings.model, "division": str(division)}


def _study(ready: Prepared, settings: CertifySettings, division: Any, model: Any) -> Study:
    return Study(ready, targets_of(ready, settings.targets), division, model, seed=settings.seed)


def _at_home(folder: RunFolder, settings: SomeSettings, root: str | None) -> SomeSettings:
    """Settings that read the tables kept in the run folder, and datasets from ``root``."""
    if folder.tables.is_dir():
        settings = replace(settings, data=str(folder.tables), nodes=None, edges=None, graphs=None)
    return settings if root is None else replace(settings, root=root)


def _same_data(folder: RunFolder, settings: DataSettings) -> Prepared:
    ready = Prepared.of(load_data(settings))
    if dataset_digest(ready) != folder.data.get("digest"):
        raise SettingsError(
            f"the data of {folder} has changed since (its digest differs): begin a new run for the new data."
        )
    return ready
