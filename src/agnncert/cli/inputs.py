"""Turns settings into data, division, model and targets, of a new run or of an earlier one.

``study_of_settings`` and ``study_of_run`` return all of it as a ``Study``. ``user_model`` builds a model from
``package.module:factory``.
"""

import importlib
import importlib.util
import inspect
import logging
import os
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from agnncert.addons import addon
from agnncert.certificates.votes import IntArray
from agnncert.certificates.voting_rule import LARGEST_CLASS
from agnncert.cli import place_of
from agnncert.cli.folder import ENCODING, VOTE, RunFolder
from agnncert.cli.settings import CertifySettings, DataSettings, ModelSettings, TrainSettings, settings_from
from agnncert.datasets.catalog import DATASETS
from agnncert.datasets.columns import FORMATS
from agnncert.datasets.encoding import encoding_of
from agnncert.datasets.fraud import trusted_edges
from agnncert.datasets.load import load_dataset
from agnncert.datasets.splits import dataset_digest
from agnncert.datasets.tables import load_tables
from agnncert.datasets.tu import tu_files
from agnncert.divisions.named import STACKED, division_named
from agnncert.errors import AgnncertError, DatasetError, ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.targets import CanonicalData, target_rows
from agnncert.graphs.task import infer_task
from agnncert.models.build import MODELS, build_constant, build_model
from agnncert.models.io import load_model, pretrained, pretrained_settings
from agnncert.stacked.defence import StackedVotes
from agnncert.stacked.model import StackedModel
from agnncert.stacked.training import mark_trusted, untrained
from agnncert.storage import write_atomic
from agnncert.study import Study, part_rows

log = logging.getLogger(__name__)

MODEL_SETTINGS = ("hidden_channels", "num_layers", "dropout", "act", "norm", "jk", "heads", "readout", "scale")
SomeData = TypeVar("SomeData", bound=DataSettings)
SomeSettings = TypeVar("SomeSettings", bound=ModelSettings)

ON_DISK = "manifest.json"  # of a folder that ``write_graph`` wrote
LARGEST_COPY = 50_000_000  # bytes of tables that a run folder keeps a copy of
MOST_COUNTED = 20_000_000  # directed edges; the pairs among more would take long to count
PRETRAINED = "pretrained"  # in place of a file with weights: those that come with the package
# What certifying adds to the settings of a trained run, or may choose again.
OWN = (
    "division", "groups", "hash", "targets", "engine", "edges_only", "tolerance", "memory", "empty", "prior",
    "size", "against", "measure", "false_positive_rate", "alerts",
)  # fmt: skip


def is_module_spec(model: str) -> bool:
    """Whether a model is named as ``package.module:factory`` or ``file.py:factory``."""
    return ":" in model


def user_model(spec: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> torch.nn.Module:
    """Builds the module that ``spec`` names: ``package.module:factory`` or ``file.py:factory``.

    Args:
        spec: A function or class, or a ready module, in the current folder or among installed packages.
        known: Values for parameters that the factory asks for without a default, such as ``in_channels``.
        given: Values that the user has set.

    Raises:
        SettingsError: Module or factory cannot be found, or a setting is not one of the factory's.
        ModelContractError: The factory fails, or returns no module.
    """
    place, _, name = spec.partition(":")
    if not place or not name:
        raise SettingsError(f'"{spec}" names no model: expected package.module:factory, such as mymodels.gcn:build.')
    module = _from_file(Path(place)) if place.endswith(".py") else _imported(place)
    factory = getattr(module, name, None)
    if factory is None:
        public = [n for n, value in vars(module).items() if not n.startswith("_") and callable(value)]
        raise SettingsError(f'{place} has no "{name}": {did_you_mean(name, public)}')
    if isinstance(factory, torch.nn.Module) and not given:
        return factory
    if isinstance(factory, torch.nn.Module) or not callable(factory):
        takes = f" and takes {', '.join(given)}" if given else ""
        raise SettingsError(
            f"{spec} is a {type(factory).__name__}: expected a function or class that returns a module{takes}."
        )
    arguments = _arguments(spec, factory, known, given)
    with _explained(spec, ModelContractError):
        model = factory(**arguments)
    if not isinstance(model, torch.nn.Module):
        raise ModelContractError(f"{spec} returned a {type(model).__name__}: expected a torch.nn.Module.")
    return model


def load_weights(model: torch.nn.Module, path: str | os.PathLike[str]) -> torch.nn.Module:
    """Puts the weights of a safetensors file into a module; returns it in evaluation mode.

    Raises:
        ModelContractError: The file cannot be read, or its tensors do not fit; names all of them.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelContractError(f"there is no file {path} with weights.")
    try:
        model.load_state_dict(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelContractError(
            f"{path} is not a safetensors file ({error}). Write one with safetensors.torch.save_file("
            f'model.state_dict(), "{path.stem}.safetensors"); pickles are never opened: they can run code.'
        ) from error
    except RuntimeError as error:
        raise ModelContractError(f"the weights in {path} do not fit {type(model).__name__}: {error}") from error
    return model.eval()


def _imported(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:  # a console script does not look into the current folder by itself
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    with _explained(f"importing {name}", SettingsError):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            # Either the module that was named is missing, or another one that it imports.
            if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                raise
            package, _, last = error.name.rpartition(".")
            beside = pkgutil.iter_modules(getattr(sys.modules.get(package), "__path__", [here]))
            raise SettingsError(
                f'there is no module "{error.name}" in this folder or among the installed packages: '
                f"{did_you_mean(last, sorted(module.name for module in beside))}"
            ) from error


@contextmanager
def _explained(what: str, kind: type[AgnncertError]) -> Iterator[None]:
    """Turns every error of a user's code into one of ours; ``sys.exit(0)`` would otherwise pass for success."""
    try:
        yield
    except (KeyboardInterrupt, AgnncertError):
        raise
    except BaseException as error:
        raise kind(f"{what} failed: {type(error).__name__}: {error}{place_of(error)}.") from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        near = [str(p) for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise SettingsError(f"there is no file {path}: {did_you_mean(str(path), near) if near else 'give its path.'}")
    folder = str(path.parent.resolve())
    if folder not in sys.path:  # so that the file finds its neighbours, as a script does
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        with _explained(f"importing {path}", SettingsError):
            spec.loader.exec_module(module)
    except AgnncertError:
        del sys.modules[path.stem]
        raise
    return module


def _arguments(spec: str, factory: Any, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return dict(given)
    by_name = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    unknown = [] if any(p.kind == p.VAR_KEYWORD for p in parameters) else [key for key in given if key not in by_name]
    if unknown:
        hint = did_you_mean(unknown[0], by_name) if by_name else "it takes none."
        raise SettingsError(f'{spec} has no setting "{unknown[0]}": {hint}')
    needed = [name for name, p in by_name.items() if p.default is p.empty and name not in given]
    open_ones = [name for name in needed if name not in known]
    if open_ones:
        raise SettingsError(
            f"{spec} needs {', '.join(open_ones)}: give them, as in --set {open_ones[0]}=…, or write a factory "
            "that needs none."
        )
    return {**{name: known[name] for name in needed}, **given}


def load_data(settings: DataSettings) -> Any:
    """The graph, or graphs, that settings name.

    Raises:
        DatasetError: There is no such dataset or folder, or its content cannot be used.
    """
    name, seed = settings.data, settings.seed
    if not (settings.nodes or settings.edges or settings.graphs):
        if name in DATASETS:
            data = load_dataset(name, root=settings.root, seed=seed)
            return data if settings.trusted is None else mark_trusted(data, trusted_edges(data, settings.trusted))[0]
        if not name:
            raise DatasetError(
                "no data was named: give the name of a dataset, or a folder with tables of nodes and edges."
            )
        if not Path(name).is_dir():
            raise DatasetError(
                f'no dataset and no folder is called "{name}": {did_you_mean(name, DATASETS)} '
                "Your own graph: a folder with nodes.csv and edges.csv, of write_graph, or with a TU dataset's files."
            )
        if Path(name, ON_DISK).is_file():
            if settings.trusted is not None:
                raise SettingsError(f"{name} is a graph on disk: trusted edges are for tables and datasets.")
            return addon("agnncert.names", "open_graph", "agnncert_large", f"{name}, a graph on disk,")(name)
    columns: dict[str, Any] = {**settings.column}
    if columns.get("label") == "none":
        columns["label"] = None
    return load_tables(
        name or None, nodes=settings.nodes, edges=settings.edges, graphs=settings.graphs,
        directed=settings.directed, features=settings.feature or None, seed=seed, name=settings.name,
        edge_features=[] if settings.edge_feature == ("none",) else settings.edge_feature or None,
        encode=settings.encode, repeated=settings.repeated, trusted=settings.trusted, **columns,
    )  # fmt: skip


def describe(ready: CanonicalData, settings: DataSettings) -> dict[str, Any]:
    """What a run folder stores about its data."""
    data, task = ready.data, ready.task
    graphs = data if task == "graph" else [data]
    classes = getattr(data, "num_classes", None)
    parts = {part: part_rows(ready, part) for part in ("train", "val", "test")}
    return {
        "name": getattr(data, "name", None) or settings.data,
        "task": task,
        "digest": dataset_digest(ready),
        "graphs": len(graphs),
        "nodes": sum(int(graph.num_nodes) for graph in graphs),
        "edges": sum(map(_num_pairs, graphs)) if sum(int(g.num_edges) for g in graphs) < MOST_COUNTED else None,
        "features": int(graphs[0].num_features),
        "classes": None if classes is None else int(classes),
        "class_names": class_names(data),
        "split": {part: len(rows) for part, rows in parts.items() if rows is not None} or None,
        "split_by_time": settings.column.get("time"),
        "repeated_edges": getattr(data, "repeated_edges", None),
        "trusted": settings.trusted,
        "encoding": None if (encoding := encoding_of(data)) is None else encoding.digest,
    }


def _num_pairs(graph: Any) -> int:
    """Edges of a graph, those of both directions once."""
    low, high = graph.edge_index.aminmax(dim=0)
    return int(torch.unique(low * int(graph.num_nodes) + high).numel())


def class_names(data: Any) -> list[str] | None:
    """What the classes of the data are called; None if they have numbers alone."""
    names = getattr(data, "class_names", None)
    return None if names is None else [str(name) for name in names]


def copy_tables(settings: DataSettings, folder: RunFolder, data: Any) -> None:
    """Keeps a user's own tables and their encoding in the run folder, so that later steps need no others."""
    if settings.data in DATASETS:
        return
    if (encoding := encoding_of(data)) is not None:
        folder.write(ENCODING, encoding.to_json())
    if settings.data and Path(settings.data, ON_DISK).is_file():
        log.warning("the graph stays in %s: later steps need --root with the folder that holds it", settings.data)
        return
    given = {"nodes": settings.nodes, "edges": settings.edges, "graphs": settings.graphs}
    beside = [Path(settings.data, f"{kind}{suffix}") for kind, suffix in product(given, FORMATS) if settings.data]
    files = {file.stem: file for file in reversed(beside) if file.is_file()}  # the first format counts
    files |= {kind: Path(file) for kind, file in given.items() if file is not None}
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


def stacked_votes(settings: ModelSettings, data: Any) -> StackedVotes:
    """The stacked votes that settings describe.

    Raises:
        SettingsError: There is no such setting, or a value makes no sense.
    """
    valid = [entry.name for entry in fields(StackedVotes) if entry.name not in ("size", "trusted")]
    for key in settings.stacked:
        if key not in valid:
            hint = f"say it with --{key}." if key in ("size", "trusted") else did_you_mean(key, valid)
            raise SettingsError(f'stacked votes have no setting "stacked.{key}": {hint}')
    given: dict[str, Any] = {key: None if value == "none" else value for key, value in settings.stacked.items()}
    size = getattr(settings, "size", None)
    trusted = None if settings.trusted is None else trusted_column(data)
    return StackedVotes(**given, size=StackedVotes.size if size is None else size, trusted=trusted)


def trusted_column(data: Any) -> int:
    """The column of ``edge_attr`` that marks trusted edges: the last one."""
    return int(data.edge_attr.size(1)) - 1


def make_division(settings: SomeSettings, task: str, data: Any = None, model: Any = None) -> tuple[SomeSettings, Any]:
    """The division that settings name, and the settings with the usual model and division where they name none.

    Args:
        settings: The settings.
        task: ``"node"`` or ``"graph"``.
        data: The data, for stacked votes.
        model: The trained model, if there is one: stacked votes are those that it was trained for.
    """
    is_stacked = isinstance(model, StackedModel)
    name, hash = settings.division or (STACKED if is_stacked else "node"), settings.hash or "md5"
    if is_stacked != (name == STACKED) and model is not None:
        raise SettingsError(
            f"the model was trained as stacked votes: leave out --division {name}." if is_stacked
            else "stacked votes are a model of their own: agnncert train DATA --division stacked makes one."
        )  # fmt: skip
    if name == STACKED:
        if task != "node":
            raise SettingsError("stacked votes classify nodes: choose a division for graphs.")
        defence = model.defence if is_stacked else stacked_votes(settings, data)
        return replace(settings, division=name, model=settings.model or "mlp"), defence
    if settings.trusted is not None:
        raise SettingsError(f"--trusted {settings.trusted} goes with --division stacked: divisions trust no edge.")
    division = division_named(name, settings.groups, hash, task)
    if isinstance(settings, CertifySettings) and settings.edges_only:
        if name != "edge":
            raise SettingsError(f"edges_only is for --division edge, not {name}.")
        division = replace(division, edges_only=True)
    groups = None if division.is_per_neighbour else division.num_groups
    chosen: dict[str, Any] = {"division": name, "groups": groups, "hash": hash}
    return replace(settings, **chosen, model=settings.model or "gcn"), division.as_defence()


def fresh_model(settings: ModelSettings, data: Any) -> Any:
    """An untrained model; for stacked votes the one without edges, or None if its name is "none"."""
    name = base_name(settings)
    given: dict[str, Any] = {key: None if value == "none" else value for key, value in settings.set.items()}
    if is_module_spec(name):
        torch.manual_seed(settings.seed)
        return user_model(name, _known(data), given)
    if name == "none" and settings.division == STACKED:
        return None
    if name not in MODELS:
        raise SettingsError(
            f'no model is called "{name}": {did_you_mean(name, MODELS)} Your own model: package.module:factory.'
        )
    wrong = [key for key in given if key not in MODEL_SETTINGS]
    if wrong:
        raise SettingsError(f'a built-in model has no setting "{wrong[0]}": {did_you_mean(wrong[0], MODEL_SETTINGS)}')
    return build_model(name, data, seed=settings.seed, **given)


def base_name(settings: ModelSettings) -> str:
    """Name of the model, or of the usual one."""
    return settings.model or ("mlp" if settings.division == STACKED else "gcn")


def _with(weights: str | Path, settings: ModelSettings, data: Any) -> Any:
    """The model that settings name with the weights of a file."""
    model = fresh_model(settings, data)
    if settings.division == STACKED:
        model = untrained(model, data, stacked_votes(settings, data), settings.seed)
    return load_weights(model, weights)


def trained_model(settings: ModelSettings, data: Any) -> Any:
    """A model with its weights, ready to be certified."""
    name, own = base_name(settings), is_module_spec(settings.model or "")
    if settings.weights == PRETRAINED:
        return pretrained(settings.data)
    if settings.weights is None and not own and name in MODELS:
        raise SettingsError(
            f"a {name} without weights has learned nothing: pass --weights, or train it first "
            f"(agnncert train {settings.data} --model {name}) and certify the folder which that leaves."
        )
    if settings.weights is not None and not own and Path(settings.weights).with_suffix(".json").is_file():
        return load_model(settings.weights)  # beside them is a description of the model
    if settings.weights is not None:
        return _with(settings.weights, settings, data)
    log.warning("no --weights were given: %s is taken as it comes", name)
    return fresh_model(settings, data).eval()


def targets_of(ready: CanonicalData, part: str | None) -> IntArray:
    """Row numbers of a part of the data; if not said, of the test part, or of all if there is none."""
    rows = None if part == "all" else part_rows(ready, part or "test")
    if rows is not None and len(rows):
        return rows
    if part not in (None, "all"):
        raise SettingsError(f"the data has no {part} part: use --set targets=all.")
    return target_rows(None, ready.total)


def run_name(data: dict[str, Any], settings: ModelSettings) -> str:
    """A name for the folder: what most runs differ in."""
    model = str(settings.model).replace(".py:", "-").replace(":", "-")
    seed = f"-seed{settings.seed}" if settings.seed else ""
    groups = "" if settings.groups is None else f"-{settings.groups}"
    return file_name(f"{data['name']}-{model}-{settings.division}{groups}{seed}")


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
    ready = CanonicalData.of(load_data(settings))
    model = trained_model(settings, ready.data)
    settings, division = make_division(settings, ready.task, ready.data, model)
    return settings, _study(ready, settings, division, model)


def _as_pretrained(settings: CertifySettings) -> CertifySettings:
    """The settings with the model that comes with the package, and with its division where they name none."""
    about = pretrained_settings(settings.data)
    if settings.seed != about["seed"]:
        raise SettingsError(
            f"the trained model for {settings.data} has seen the split of seed {about['seed']}: with --seed "
            f"{settings.seed}, part of what it learned from would be tested. Leave out --seed, or train it again."
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
        changes: What to certify and how, if not as before. Data must not be named; a model of the user's own must be.

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
    trained_for_size = isinstance(earlier, TrainSettings) and earlier.fit.get("objective") == "certified"
    if isinstance(earlier, TrainSettings) and not (trained_for_size and earlier.size and not earlier.sets_rule):
        values |= {"size": None, "against": None}
    if changes.sets_rule or changes.chooses:  # the voting rule is chosen as a whole
        values |= dict.fromkeys(("empty", "prior", "size", "against", "false_positive_rate", "alerts"))
    values |= {name: getattr(changes, name) for name in changes.given() if name in ("root", *OWN)}
    if changes.division in ("per-neighbour", "per-edge", STACKED):  # not as many groups as the run was trained with
        values["groups"] = changes.groups
    if changes.division == STACKED:
        values["hash"] = None
    elif changes.division is not None:
        values["stacked"] = {}
    settings = CertifySettings(**values)
    ready = _unchanged(folder, earlier)
    model = _with_weights(folder, earlier, ready.data)
    settings, division = make_division(settings, ready.task, ready.data, model)
    return settings, _study(ready, settings, division, model)


def row_origin(settings: ModelSettings, study: Study, about: dict[str, Any]) -> dict[str, Any]:
    """Data, model, division and seed, as every row of results names them."""
    known = {"data": about["name"], "digest": about["digest"], "seed": settings.seed, "model": settings.model}
    return {
        **known,
        "division": f"{study.defence}" if study.voting_rule is None else f"{study.defence}, {study.voting_rule}",
    }


def _study(ready: CanonicalData, settings: CertifySettings, division: Any, model: Any) -> Study:
    voting_rule = settings.voting_rule(class_names(ready.data))
    return Study(
        ready, targets_of(ready, settings.targets), division, model, seed=settings.seed, voting_rule=voting_rule
    )


def settings_of_folder(
    folder: RunFolder, settings: SomeSettings, root: str | None = None, model: str | None = None
) -> SomeSettings:
    """Settings from a run folder, with nothing in them that runs code or reads files which the folder alone names.

    Args:
        folder: The run.
        settings: What it stores. A user's tables are read from their copy in the run folder.
        root: Folder that holds the datasets; the run folder cannot name it, because files of datasets can contain code.
        model: The model as the caller names it. Required if the model of the run is code; this one is imported.

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


def data_of_folder(folder: RunFolder, settings: SomeData, root: str | None = None) -> SomeData:
    """As :func:`settings_of_folder`, for callers that use the data of a run but not its model."""
    if folder.tables.is_dir():  # the copies lie in a folder called "data", and keep the name that the data had
        name = settings.name or folder.data.get("name")
        settings = replace(settings, data=str(folder.tables), nodes=None, edges=None, graphs=None, name=name)
    if (folder.path / ENCODING).is_file():  # it stays as it was fitted
        settings = replace(settings, encode=str(folder.path / ENCODING))
    _check_places(folder, settings, root)
    return replace(settings, root=root)


def load_run_data(folder: RunFolder, root: str | None = None) -> Any:
    """The data of a run, which must be what it was; nothing that the folder names is run."""
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
    """The model that was certified: stacked votes with their threshold, or a constant if that was chosen for a size."""
    voting_rule = folder.read_json(VOTE)
    chosen, scores = voting_rule.get("constant"), voting_rule.get("scores")
    if isinstance(model, StackedModel) and scores is not None:
        if not (isinstance(scores, list) and [type(one) for one in scores] == [float] * model.num_classes):
            raise SettingsError(f"{folder.path / VOTE} is damaged: certify again.")
        model.constant.data = torch.tensor(scores)
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
        return _with(folder.weights, settings, data)
    stored = str(folder.weights) if folder.weights.is_file() else None
    return trained_model(replace(settings, weights=weights or stored), data)


def _unchanged(folder: RunFolder, settings: DataSettings) -> CanonicalData:
    ready = CanonicalData.of(load_data(settings))
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
    named += [None if settings.encode == "auto" or "=" in (settings.encode or "") else settings.encode]
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
