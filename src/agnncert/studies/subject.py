"""What a step works on: a model, its data and its division, named by settings or by an earlier run."""

from dataclasses import dataclass, replace
from typing import Any

from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import infer_task
from agnncert.studies.folder import CHOICE, RunFolder
from agnncert.studies.inputs import describe, fresh_model, load_data, make_division, trained_model
from agnncert.studies.own_model import load_weights
from agnncert.studies.settings import CertifySettings, TrainSettings, settings_from

# What certifying adds to the settings of a trained run, or may choose anew.
OWN = ("division", "groups", "hash", "targets", "engine", "attacks", "tolerance", "memory")


@dataclass(frozen=True)
class Subject:
    """A model, its data and its division.

    Attributes:
        settings: The settings that name them, with nothing left open.
        data: The graph, or graphs.
        model: The model, in evaluation mode.
        division: The division.
    """

    settings: CertifySettings
    data: Any
    model: Any
    division: EdgeCentric | NodeCentric

    def facts(self, about: dict[str, Any]) -> dict[str, Any]:
        """What every row of results says about its origin."""
        known = {"data": about["name"], "digest": about["digest"], "seed": self.settings.seed}
        return {**known, "model": self.settings.model, "division": str(self.division)}


def of_settings(settings: CertifySettings) -> Subject:
    """What settings name."""
    data = load_data(settings)
    settings, division = make_division(settings, infer_task(data))
    return Subject(settings, data, trained_model(settings, data), division)


def of_run(folder: RunFolder, changes: CertifySettings | None = None) -> Subject:
    """What an earlier run worked on.

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
        data = _same_data(folder, training)
        if not folder.weights.is_file():
            raise ModelContractError(f"{folder} has no weights yet: finish its training first (agnncert train).")
        model = load_weights(fresh_model(training, data), folder.weights)
    elif "certify" in steps:
        settings = _at_home(folder, settings_from(CertifySettings, steps["certify"]), changes.root)
        settings = replace(settings, **chosen)
        data = _same_data(folder, settings)
        weights = str(folder.weights) if folder.weights.is_file() else None
        model = trained_model(replace(settings, weights=weights), data)
    else:
        raise SettingsError(f"{folder} holds neither a trained model nor a certificate.")
    settings, division = make_division(settings, infer_task(data))
    return Subject(settings, data, model, division)


def _at_home(folder: RunFolder, settings: Any, root: str | None) -> Any:
    """Settings that read the tables kept in the run folder, and datasets from ``root``."""
    if folder.tables.is_dir():
        settings = replace(settings, data=str(folder.tables), nodes=None, edges=None, graphs=None)
    return settings if root is None else replace(settings, root=root)


def _same_data(folder: RunFolder, settings: Any) -> Any:
    data = load_data(settings)
    if describe(data, settings)["digest"] != folder.data.get("digest"):
        raise SettingsError(
            f"the data of {folder} has changed since (its digest differs): begin a new run for the new data."
        )
    return data
