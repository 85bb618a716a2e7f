"""Turns settings into what they name: data, division, model, targets; of a new run or of an earlier one.

``study_of_settings`` and ``study_of_run`` do all of it and return a ``Study`` for the runner.
"""

import logging
import re
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import torch

from agnncert.datasets import DATASETS, dataset_digest, load_dataset, load_tables
from agnncert.datasets.columns import FORMATS
from agnncert.datasets.tu import tu_files
from agnncert.divisions import EdgeCentric, NodeCentric, division_named
from agnncert.errors import DatasetError, ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.disk import is_graph_folder, open_graph
from agnncert.graphs.graph import infer_task
from agnncert.graphs.targets import Prepared, target_rows
from agnncert.models import MODELS, build_model, load_model, pretrained
from agnncert.models.build import build_constant
from agnncert.models.bundled import pretrained_settings
from agnncert.proof.ballots import IntArray
from agnncert.proof.vote import LARGEST_CLASS, Vote
from agnncert.storage import write_atomic
from agnncert.studies.folder import VOTE, RunFolder
from agnncert.studies.own_model import is_module_spec, load_weights, user_model
from agnncert.studies.run import Study, part_rows
from agnncert.studies.settings import (
    AnySettings,
    CertifySettings,
    DataSettings,
    ModelSettings,
    TrainSettings,
    settings_from,
)

log = logging.getLogger(__name__)

MODEL_SETTINGS = ("hidden_channels", "num_layers", "dropout", "act", "norm", "jk", "heads", "readout", "scale")
SomeSettings = TypeVar("SomeSettings", bound=ModelSettings)

LARGEST_COPY = 50_000_000  # bytes of tables that a run folder keeps a copy of
PRETRAINED = "pretrained"  # in place of a file with weights: those that come with the package
# What certifying adds to the settings of a trained run, or may choose anew.
OWN = (
    "division", "groups", "hash", "targets", "engine", "attacks", "tolerance", "memory", "empty", "prior",
    "design_size", "against",
)  # fmt: skip


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
                "Your own graph: a folder with nodes.csv and edges.csv, of write_graph, or with a TU dataset's files."
            )
        if is_graph_folder(name):
            return open_graph(name)
    columns: dict[str, Any] = {**settings.column}
    if columns.get("label") == "none":
        columns["label"] = None
    return load_tables(
        name or None, nodes=settings.nodes, edges=settings.edges, graphs=settings.graphs,
        directed=settings.directed, features=settings.feature or None, seed=seed, name=settings.name, **columns,
    )  # fmt: skip


def describe(ready: Prepared, settings: DataSettings) -> dict[str, Any]:
    """What a run folder stores about its data."""
    data, task = ready.data, ready.task
    graphs = data if task == "graph" else [data]
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
        "class_names": class_names(data),
    }


def class_names(data: Any) -> list[str] | None:
    """What the classes of the data are called; None if they have numbers alone."""
    names = getattr(data, "class_names", None)
    return None if names is None else [str(name) for name in names]


def copy_tables(settings: DataSettings, folder: RunFolder) -> None:
    """Keeps a user's own tables in the run folder, so that later steps need no others."""
    if settings.data in DATASETS:
        return
    if settings.data and is_graph_folder(settings.data):
        log.warning("the graph stays in %s: later steps need --root with the folder that holds it", settings.data)
        return
    given = {"nodes": settings.nodes, "edges": settings.edges, "graphs": settings.graphs}
    files = {kind: Path(file) for kind, file in given.items() if file is not None}
    for kind, suffix in product(given, FORMATS) if settings.data else ():
        file = Path(settings.data) / f"{kind}{suffix}"
        if kind not in files and file.is_file():
            files[kind] = file
    if settings.data and not files:
        files = {path.stem: path for path in tu_files(settings.data).values()}
    if sum(file.stat().st_size for file in files.values()) > LARGEST_COPY:
        log.warning(
            "the tables are too large for a copy in %s: later steps need --root with the folder of them", folder
        )
        return
    folder.tables.mkdir(parents=True, exist_ok=True)
    for kind, file in files.items():
        copy = folder.tables / f"{kind}{file.suffix}"
        if not copy.exists() or not copy.samefile(file):
            write_atomic(copy, file.read_bytes())


def make_division(settings: SomeSettings, task: str) -> tuple[SomeSettings, EdgeCentric | NodeCentric]:
    """The division that settings name, and the settings with the usual model and division where they name none."""
    groups: Any = settings.groups  # a whole number, or math.inf
    division = division_named(settings.division or "node", groups, settings.hash or "md5", task)
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
    if settings.weights == PRETRAINED:
        return pretrained(settings.data)
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
    rows = None if part == "all" else part_rows(ready, part or "test")
    if rows is not None and len(rows):
        return rows
    if part not in (None, "all"):
        raise SettingsError(f"the data has no {part} part: use --targets all.")
    return target_rows(None, ready.total)


def run_name(data: dict[str, Any], settings: ModelSettings) -> str:
    """A name for the folder: what most runs differ in."""
    model = str(settings.model).replace(".py:", "-").replace(":", "-")
    seed = f"-seed{settings.seed}" if settings.seed else ""
    return file_name(f"{data['name']}-{model}-{settings.division}-{settings.groups}{seed}")


def file_name(text: str) -> str:
    """The same text with a dash in place of what does not belong into the name of a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")


def _known(data: Any) -> dict[str, Any]:
    """What a factory may ask for, under the names that PyTorch Geometric uses."""
    if data is None:
        return {}
    graph = data if infer_task(data) == "node" else data[0]
    features, classes = int(graph.num_features), getattr(data, "num_classes", None)
    known = {"data": data, **dict.fromkeys(("in_channels", "num_features", "num_node_features"), features)}
    return known | ({} if classes is None else {"out_channels": int(classes), "num_classes": int(classes)})


def study_of_settings(settings: CertifySettings) -> tuple[CertifySettings, Study]:
    """What settings name, as a study; and the settings with nothing left open."""
    if settings.weights == PRETRAINED:
        settings = _as_pretrained(settings)
    ready = Prepared.of(load_data(settings))
    settings = settings.with_class_numbers(class_names(ready.data))
    settings, division = make_division(settings, ready.task)
    return settings, _study(ready, settings, division, trained_model(settings, ready.data))


def _as_pretrained(settings: CertifySettings) -> CertifySettings:
    """The settings with the model that comes with the package, and with its division where they name none."""
    about = pretrained_settings(settings.data)
    if settings.seed != about["seed"]:
        raise SettingsError(
            f"the trained model for {settings.data} has seen the split of seed {about['seed']}: with --seed "
            f"{settings.seed}, part of what it learned from would be tested. Leave out --seed, or train it anew."
        )
    if settings.model not in (None, about["model"]) or settings.set:
        raise SettingsError(
            f"the trained model for {settings.data} is a {about['model']} with settings of its own: leave out --model "
            "and --set."
        )
    groups = about["groups"] if settings.division in (None, about["division"]) else None
    return replace(
        settings,
        model=about["model"],
        division=settings.division or about["division"],
        groups=settings.groups or groups,
    )


def study_of_run(folder: RunFolder, changes: CertifySettings | None = None) -> tuple[CertifySettings, Study]:
    """What an earlier run worked on, as a study; and the settings with nothing left open.

    Args:
        folder: The run.
        changes: What to certify and how, if not as before. Data must not be named; a model of the user's own must be,
            because code that only the folder names is not imported.

    Raises:
        SettingsError: The run has not come far enough, its data has changed, ``changes`` name other data, or the folder
            names code or files that the caller does not name.
    """
    changes = changes or CertifySettings()
    foreign = [name for name in changes.given() if name not in ("data", "root", "model", *OWN)]
    if foreign:
        raise SettingsError(
            f"{folder} has a model and data of its own: leave out {', '.join(f'--{n}' for n in foreign)}."
        )
    earlier = settings_of_folder(folder, stored_settings(folder), changes.root, changes.model)
    shared = [entry.name for entry in fields(CertifySettings) if hasattr(earlier, entry.name)]
    values = {name: getattr(earlier, name) for name in shared}
    if changes.sets_vote or changes.design_size is not None:  # the vote is one thing, and chosen as a whole
        values |= {"empty": None, "prior": None, "design_size": None}
    elif "train" in folder.settings and values["empty"] is values["prior"] is None:
        trained_for = getattr(earlier, "fit", {})
        values["design_size"] = trained_for.get("design_size") or None
        values["against"] = trained_for.get("against") if values["design_size"] else None
    values |= {name: getattr(changes, name) for name in changes.given() if name in ("root", *OWN)}
    settings = CertifySettings(**values)
    ready = _unchanged(folder, earlier)
    settings = settings.with_class_numbers(class_names(ready.data))
    model = _with_weights(folder, earlier, ready.data)
    settings, division = make_division(settings, ready.task)
    return settings, _study(ready, settings, division, model)


def row_origin(
    settings: ModelSettings, division: Any, about: dict[str, Any], vote: Vote | None = None
) -> dict[str, Any]:
    """What every row of results says about where it comes from."""
    known = {"data": about["name"], "digest": about["digest"], "seed": settings.seed}
    voting = f"{division}" if vote is None else f"{division}, {vote}"
    return {**known, "model": settings.model, "division": voting}


def _study(ready: Prepared, settings: CertifySettings, division: Any, model: Any) -> Study:
    return Study(ready, targets_of(ready, settings.targets), division, model, seed=settings.seed)


def settings_of_folder(
    folder: RunFolder, settings: SomeSettings, root: str | None = None, model: str | None = None
) -> SomeSettings:
    """Settings from a run folder, with nothing in them that runs code or reads files which the folder alone names.

    Args:
        folder: The run.
        settings: What it stores.
        root: Folder that holds the datasets. What the run folder says about it is ignored: files of datasets can
            contain code.
        model: The model as the caller names it. Required if the model of the run is code; this one is imported, also
            if the folder names another.

    Returns:
        Settings that read a user's tables from their copy in the run folder.

    Raises:
        SettingsError: The model is code and ``model`` is not given, ``model`` is not the built-in model of the run, or
            data lies neither in the run folder nor in ``root``.
    """
    if is_module_spec(settings.model or ""):
        if model is None:
            arguments = ", ".join(f"{name}={value!r}" for name, value in settings.set.items())
            raise SettingsError(
                f"the model of {folder} is code, which is not imported because a folder names it: {settings.model} "
                f"with ({arguments}). If you trust that code, pass --model {settings.model}."
            )
        settings = replace(settings, model=model)
    elif model not in (None, settings.model):
        raise SettingsError(
            f'{folder} has a model of its own, "{settings.model}", not "{model}": leave out --model, or name that one.'
        )
    return data_of_folder(folder, settings, root)


def data_of_folder(folder: RunFolder, settings: AnySettings, root: str | None = None) -> AnySettings:
    """As :func:`settings_of_folder`, for callers that use the data of a run but not its model."""
    if folder.tables.is_dir():  # the copies lie in a folder called "data", and keep the name that the data had
        name = settings.name or folder.data.get("name")
        settings = replace(settings, data=str(folder.tables), nodes=None, edges=None, graphs=None, name=name)
    _check_places(folder, settings, root)
    return replace(settings, root=root)


def load_run_data(folder: RunFolder, root: str | None = None) -> Any:
    """The data of a run, which must be what it was; nothing that the folder names is run.

    Raises:
        SettingsError: The run has no data, other data by now, or data neither in its folder nor in ``root``.
    """
    return _unchanged(folder, data_of_folder(folder, stored_settings(folder), root)).data


def model_of_run(folder: RunFolder, data: Any, named: ModelSettings, root: str | None = None) -> Any:
    """The model of a run, or the one that ``named`` puts in its place: other weights, or another model with weights.

    Settings of the model are those of the run, unless it is another model or ``named`` gives some.

    Raises:
        SettingsError: The model of the run is code, and ``named`` names no model.
    """
    stored = stored_settings(folder)
    if named.weights is not None and named.model not in (None, stored.model):
        return trained_model(named, data)  # nothing of it comes from the folder
    settings = settings_of_folder(folder, stored, root, named.model)
    model = _with_weights(folder, replace(settings, set=named.set or settings.set), data, named.weights)
    return model if named.weights is not None else who_votes(folder, model, data)


def who_votes(folder: RunFolder, model: Any, data: Any) -> Any:
    """The model that casts the ballots of a run's certificate.

    It is the run's own, unless the vote was chosen for a size and a constant model did as well, whose vote tells sizes
    apart and no more.

    Raises:
        SettingsError: What the folder says about it is damaged.
    """
    chosen = folder.read_json(VOTE).get("constant")
    if chosen is None:
        return model
    label, classes = (chosen.get(name) if isinstance(chosen, dict) else None for name in ("label", "classes"))
    if not (isinstance(label, int) and isinstance(classes, int) and 0 <= label < classes <= LARGEST_CLASS + 1):
        raise SettingsError(f"{folder.path / VOTE} is damaged: certify again.")
    return build_constant(data, label, classes)


def _with_weights(folder: RunFolder, settings: ModelSettings, data: Any, weights: str | None = None) -> Any:
    """The model that settings name, with weights of the user's own or those of the folder."""
    if weights is None and "train" in folder.settings:
        if not folder.weights.is_file():
            raise ModelContractError(f"{folder} has no weights yet: finish its training first (agnncert train).")
        return load_weights(fresh_model(settings, data), folder.weights)
    stored = str(folder.weights) if folder.weights.is_file() else None
    return trained_model(replace(settings, weights=weights or stored), data)


def _unchanged(folder: RunFolder, settings: DataSettings) -> Prepared:
    ready = Prepared.of(load_data(settings))
    if dataset_digest(ready) != folder.data.get("digest"):
        raise SettingsError(
            f"the data of {folder} has changed since (its digest differs): begin a new run for the new data."
        )
    return ready


def stored_settings(folder: RunFolder) -> ModelSettings:
    """The settings of the step with which a run began."""
    steps = folder.settings
    for step, kind in (("train", TrainSettings), ("certify", CertifySettings)):
        if step in steps:
            return settings_from(kind, steps[step])
    raise SettingsError(f"{folder} holds neither a trained model nor a certificate.")


def _check_places(folder: RunFolder, settings: DataSettings, root: str | None) -> None:
    """Refuses a folder that names files outside of it and of ``root``, or that holds links, for reading or writing."""
    named = [settings.nodes, settings.edges, settings.graphs, None if settings.data in DATASETS else settings.data]
    allowed = [Path(place).resolve() for place in (folder.path, root) if place is not None]
    outside = [place for place in named if place and not any(map(Path(place).resolve().is_relative_to, allowed))]
    if outside:
        raise SettingsError(
            f"{folder} names files outside of it: {', '.join(outside)}. If they are to be read, name the folder that "
            "holds them with --root."
        )
    links = [str(place) for place in folder.path.rglob("*") if place.is_symlink()]
    if links:
        raise SettingsError(f"{folder} names files outside of it, by links: {', '.join(links)}. Replace them by files.")
