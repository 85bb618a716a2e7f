"""Studies: what settings name, or what an earlier run worked on, as data, targets, model and defence.

Nothing that a run folder names is imported or read outside of the folder, unless the caller names it too.
"""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from agnncert.cli.data import class_names, file_name, load_data, targets_of
from agnncert.cli.defences import defence_class, make_defence, with_usual_for_pairs, with_usual_split
from agnncert.cli.folder import ENCODING, RunFolder
from agnncert.cli.models import (
    PRETRAINED,
    model_with_weights,
    require_threshold,
    trained_model,
    with_pretrained_settings,
)
from agnncert.cli.settings import (
    CertifySettings,
    DataSettings,
    DefenceSettings,
    TrainSettings,
    stored_settings,
)
from agnncert.cli.user_code import is_module_spec
from agnncert.datasets.catalog import DATASETS
from agnncert.datasets.splits import dataset_digest
from agnncert.defence import Defence
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.graphs.task import task_of_targets
from agnncert.models.io import load_description, load_model
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate
from agnncert.study import Study


class DataChangedError(SettingsError):
    """The data in a run folder, or the data that it names, is not what the run was made from."""


SomeData = TypeVar("SomeData", bound=DataSettings)
SomeSettings = TypeVar("SomeSettings", bound=DefenceSettings)

# What certifying adds to the settings of a trained run, or may choose again.
CERTIFY_ONLY = (
    "division",
    "groups",
    "hash",
    "defence",
    "targets",
    "engine",
    "edges_only",
    "tolerance",
    "memory",
    "empty",
    "prior",
    "size",
    "against",
    "measure",
    "false_positive_rate",
    "confidence",
    "alerts",
    "days",
    "positive",
    "words",
)
_CHOICE = (
    "empty",
    "prior",
    "size",
    "against",
    "false_positive_rate",
    "confidence",
    "alerts",
    "days",
    "positive",
)  # what says how votes are added up


def study_of_settings(settings: CertifySettings, progress: OnProgress | None = None) -> tuple[CertifySettings, Study]:
    """Returns the settings with nothing left open, and what they name as a study.

    Args:
        settings: The settings.
        progress: Called while a table of events is read.
    """
    if settings.weights == PRETRAINED:
        settings = with_pretrained_settings(settings)
    elif settings.weights is not None:
        require_threshold(settings.weights, settings.sets_rule or settings.chooses)
    settings = with_usual_split(settings, [settings.division])
    canonical_data = CanonicalData.of(load_data(settings, progress))
    settings = with_usual_for_pairs(settings, canonical_data.data)
    model = trained_model(settings, canonical_data.data)
    settings, defence = make_defence(settings, task_of_targets(canonical_data.data), canonical_data.data, model)
    return settings, _study(canonical_data, settings, defence, model)


def study_of_run(
    folder: RunFolder, changes: CertifySettings | None = None, progress: OnProgress | None = None
) -> tuple[CertifySettings, Study]:
    """Returns the settings with nothing left open, and what an earlier run worked on as a study.

    Args:
        folder: The run.
        changes: What to certify and how, if not as before. Data must not be named; a model of the user's own must be.
        progress: Called while a table of events is read.

    Raises:
        SettingsError: The run has not come far enough, its data has changed, ``changes`` name other data, or the folder
            names code or files that the caller does not name.
    """
    changes = changes or CertifySettings()
    foreign = [name for name in changes.given() if name not in ("data", "root", "model", *CERTIFY_ONLY)]
    if foreign:
        options = ", ".join(f"--{name}" for name in foreign)
        raise SettingsError(f"{folder} has a model and data of its own: leave out {options}.")
    earlier = settings_of_folder(folder, stored_settings(folder), changes.root, changes.model)
    canonical_data = _unchanged_data(folder, earlier, progress)
    model = _model_with_weights(folder, earlier, canonical_data.data)
    settings, defence = make_defence(
        _changed(earlier, changes), task_of_targets(canonical_data.data), canonical_data.data, model
    )
    return settings, _study(canonical_data, settings, defence, model)


def _changed(earlier: DefenceSettings, changes: CertifySettings) -> CertifySettings:
    """Returns the settings of an earlier step, as far as certifying has them, with changes."""
    shared = [entry.name for entry in fields(CertifySettings) if hasattr(earlier, entry.name)]
    values = {name: getattr(earlier, name) for name in shared}
    if isinstance(earlier, TrainSettings) and not _chooses_as_trained(earlier):
        values |= {"size": None, "against": None}
    if changes.sets_rule or changes.chooses:  # the voting rule is chosen as a whole
        values |= dict.fromkeys(_CHOICE)
    if changes.division not in (None, earlier.division):
        values |= {"defence": {}, **_kept_options(earlier, changes.division)}
    values |= {name: getattr(changes, name) for name in changes.given() if name in ("root", *CERTIFY_ONLY)}
    values["defence"] = {**values["defence"], **changes.defence}
    return CertifySettings(**values)


def _chooses_as_trained(earlier: TrainSettings) -> bool:
    """Whether the run was trained for a size at which the voting rule is chosen too."""
    return earlier.fit.get("objective") == "certified" and bool(earlier.size) and not earlier.sets_rule


def _kept_options(earlier: DefenceSettings, division: str | None) -> dict[str, Any]:
    """Returns the options of the earlier defence that another defence understands too, and ``None`` for the others."""
    known = defence_class(division).setting_names(division or "")
    return {name: getattr(earlier, name) if name in known else None for name in ("groups", "hash")}


def _study(canonical_data: CanonicalData, settings: CertifySettings, defence: Defence, model: Any) -> Study:
    return Study(
        canonical_data,
        targets_of(canonical_data, settings.targets),
        defence,
        model,
        seed=settings.seed,
        voting_rule=settings.voting_rule(class_names(canonical_data.data)),
    )


def row_origin(
    settings: DefenceSettings, study: Study, about: dict[str, Any], certificate: Certificate | None = None
) -> dict[str, Any]:
    """Returns data, model, defence and seed, as every row of results names them.

    Args:
        settings: The settings.
        study: The study. A voting rule is named if it is not left to the defence.
        about: What is known about the data.
        certificate: The certificate, if there is one, which has the voting rule with nothing left open.
    """
    defence = str(study.defence)
    voting_rule = study.voting_rule or study.defence.voting_rule
    if voting_rule is not None and certificate is not None:
        voting_rule = certificate.voting_rule
    if voting_rule is not None:
        defence = f"{defence}, {voting_rule}"
    return {
        "data": about["name"],
        "digest": about["digest"],
        "seed": settings.seed,
        "model": settings.model,
        "division": defence,
    }


def run_name(about: dict[str, Any], settings: DefenceSettings) -> str:
    """Returns a name for the folder of a run, made of what most runs differ in."""
    model = str(settings.model).replace(".py:", "-").replace(":", "-")
    parts = [about["name"], model]
    if settings.division is not None:
        parts.append(settings.division)
    if settings.groups is not None:
        parts.append(settings.groups)
    if settings.seed:
        parts.append(f"seed{settings.seed}")
    return file_name("-".join(map(str, parts)))


def settings_of_folder(
    folder: RunFolder, settings: SomeSettings, root: str | None = None, model: str | None = None
) -> SomeSettings:
    """Returns settings from a run folder, without anything that runs code or reads files which the folder alone names.

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
    return _data_of_folder(folder, settings, root)


def _data_of_folder(folder: RunFolder, settings: SomeData, root: str | None = None) -> SomeData:
    """Does the same for callers that use the data of a run but not its model."""
    if folder.tables.is_dir():  # the copies lie in a folder called "data", and keep the name that the data had
        name = settings.name or folder.data.get("name")
        settings = replace(settings, nodes=None, edges=None, graphs=None, pairs=None, events=None)
        settings = replace(settings, data=str(folder.tables), name=name)
    if (folder.path / ENCODING).is_file():  # it stays as it was fitted
        settings = replace(settings, encode=str(folder.path / ENCODING))
    _require_inside(folder, settings, root)
    return replace(settings, root=root)


def _require_inside(folder: RunFolder, settings: DataSettings, root: str | None) -> None:
    """Refuses a folder that names files outside of it and of ``root``, or that holds links, for reading or writing."""
    places = [settings.nodes, settings.edges, settings.graphs, settings.pairs, settings.events]
    if settings.data not in DATASETS:
        places.append(settings.data)
    if settings.encode is not None and settings.encode != "auto" and "=" not in settings.encode:
        places.append(settings.encode)
    allowed = [folder.path.resolve()]
    if root is not None:
        allowed.append(Path(root).resolve())
    outside = [place for place in places if place and not any(map(Path(place).resolve().is_relative_to, allowed))]
    if outside:
        raise SettingsError(
            f"{folder} names files outside of it: {', '.join(outside)}. If they are to be read, name the folder that "
            "holds them with --root."
        )
    links = [str(place) for place in folder.path.rglob("*") if place.is_symlink()]
    if links:
        raise SettingsError(f"{folder} names files outside of it, by links: {', '.join(links)}. Replace them by files.")


def load_run_data(folder: RunFolder, root: str | None = None, progress: OnProgress | None = None) -> Any:
    """Loads the data of a run, which must be what it was. Nothing that the folder names is run."""
    settings = _data_of_folder(folder, stored_settings(folder), root)
    return _unchanged_data(folder, settings, progress).data


def _unchanged_data(folder: RunFolder, settings: DataSettings, progress: OnProgress | None) -> CanonicalData:
    canonical_data = CanonicalData.of(load_data(settings, progress))
    if dataset_digest(canonical_data) != folder.data.get("digest"):
        raise DataChangedError(
            f"the data of {folder} has changed since (its digest differs): begin a new run for the new data."
        )
    return canonical_data


def model_of_run(folder: RunFolder, data: Any, named: DefenceSettings, root: str | None = None) -> Any:
    """Returns the certified model of a run, or the one that ``named`` puts in its place: other weights, another model.

    Settings of the model are those of the run, unless it is another model or ``named`` gives some.

    Raises:
        SettingsError: The model of the run is code, and ``named`` names no model.
    """
    stored = stored_settings(folder)
    if named.weights is not None and named.model not in (None, stored.model):
        return trained_model(named, data)  # nothing of it comes from the folder
    settings = settings_of_folder(folder, stored, root, named.model)
    model = _model_with_weights(folder, replace(settings, set=named.set or settings.set), data, named.weights)
    return model if named.weights is not None else certified_model(folder, model)


def certified_model(folder: RunFolder, model: Any) -> Any:
    """Returns the model that a run has certified.

    Args:
        folder: The run.
        model: Its trained model. That is the certified one, unless a choice on the validation part has changed it.

    Raises:
        ModelContractError: The file with the certified model is damaged.
    """
    if not folder.certified_weights.is_file():
        return model
    try:
        is_built_in = load_description(folder.certified_weights)["model"] is not None
        return load_model(folder.certified_weights, None if is_built_in else model)
    except (SettingsError, ModelContractError, KeyError) as error:
        raise ModelContractError(f"{folder.certified_weights} is damaged: certify again. ({error})") from error


def _model_with_weights(folder: RunFolder, settings: DefenceSettings, data: Any, weights: str | None = None) -> Any:
    """Returns the model that settings name, with weights of the user's own or those of the folder."""
    if weights is None and "train" in folder.settings:
        if not folder.weights.is_file():
            raise ModelContractError(f"{folder} has no weights yet: finish its training first (agnncert train).")
        return model_with_weights(settings, data, folder.weights)
    if weights is None and folder.weights.is_file():
        weights = str(folder.weights)
    return trained_model(replace(settings, weights=weights), data)
