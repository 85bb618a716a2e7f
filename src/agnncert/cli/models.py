"""The model of a run: a built-in one or a user's own, untrained or with weights from a file."""

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from agnncert.cli.defences import NO_MODEL, defence_class, defence_from_settings, usual_model
from agnncert.cli.folder import CHOICE, find_run
from agnncert.cli.settings import CertifySettings, DefenceSettings, ModelSettings
from agnncert.cli.user_code import is_module_spec, user_model
from agnncert.datasets.taught import with_taught_rows
from agnncert.defence import Defence
from agnncert.errors import ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.task import infer_task, most_columns, task_of_targets
from agnncert.models.build import MODELS, build_model
from agnncert.models.io import load_description, load_model, pretrained, pretrained_settings
from agnncert.recipes import data_of_model

log = logging.getLogger(__name__)

MODEL_SETTINGS = ("hidden_channels", "num_layers", "dropout", "act", "norm", "jk", "heads", "readout", "scale")
PRETRAINED = "pretrained"  # in place of a file with weights: those that come with the package


def fresh_model(settings: ModelSettings, data: Any, defence: Defence | None = None) -> Any:
    """Returns an untrained model, as ``fit`` is given it; ``None`` if the defence needs none and "none" is named.

    Args:
        settings: The settings, which name the model. Defaults to the usual one of the defence.
        data: The data, from which the numbers of features and classes are taken, as far as the defence trusts it.
        defence: The defence that it is for; ``None`` for a plain model.

    Raises:
        SettingsError: There is no such model or setting.
        ModelContractError: A user's own factory fails.
    """
    name = settings.model or usual_model(None if defence is None else type(defence))
    may_be_none = defence is not None and defence.model_is_optional
    data = data_of_model(data, defence)
    arguments: dict[str, Any] = {key: None if value == "none" else value for key, value in settings.set.items()}
    if is_module_spec(name):
        torch.manual_seed(settings.seed)
        return user_model(name, _facts(data), arguments)
    if name == NO_MODEL and may_be_none:
        return None
    if name not in MODELS:
        raise SettingsError(
            f'no model is called "{name}": {did_you_mean(name, MODELS)} Your own model: package.module:factory.'
        )
    for key in arguments:
        if key not in MODEL_SETTINGS:
            raise SettingsError(f'a built-in model has no setting "{key}": {did_you_mean(key, MODEL_SETTINGS)}')
    return build_model(name, data, seed=settings.seed, **arguments)


def _facts(data: Any) -> dict[str, Any]:
    """Returns what a factory may ask for, under the names that PyTorch Geometric uses."""
    if data is None:
        return {}
    width = most_columns([data] if infer_task(data) == "node" else data, "x") or 0
    facts = {"data": data}
    facts |= dict.fromkeys(("in_channels", "num_features", "num_node_features"), width)
    classes = getattr(data, "num_classes", None)
    if classes is not None:
        facts |= dict.fromkeys(("out_channels", "num_classes"), int(classes))
    return facts


def load_weights(model: torch.nn.Module, path: str | os.PathLike[str]) -> torch.nn.Module:
    """Puts the weights of a safetensors file into a module and returns it in evaluation mode.

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


def model_with_weights(settings: DefenceSettings, data: Any, weights: str | os.PathLike[str]) -> Any:
    """Returns the model that settings name, as its defence trains it, with the weights of a file."""
    defence = defence_from_settings(settings, task_of_targets(data), data)
    model = fresh_model(settings, data, defence)
    record = _training_record(weights)
    if "teaching" not in record:
        return load_weights(defence.untrained(model, data, settings.seed), weights)
    taught = load_weights(defence.untrained(model, with_taught_rows(data), settings.seed), weights)
    taught.training_record = record  # type: ignore[assignment]
    return taught


def _training_record(weights: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the record of training beside a file with weights; empty if there is none."""
    if not Path(weights).with_suffix(".json").is_file():
        return {}
    record = load_description(weights)["provenance"].get("training", {})
    return record if isinstance(record, dict) else {}


def trained_model(settings: DefenceSettings, data: Any) -> Any:
    """Returns a model with its weights, ready to be certified.

    Raises:
        SettingsError: It is a built-in model, and no weights are named.
        ModelContractError: The weights cannot be read, or do not fit.
    """
    weights = settings.weights
    if weights == PRETRAINED:
        return pretrained(settings.data)
    kind = defence_class(settings.division)
    name = settings.model or usual_model(kind)
    is_code = is_module_spec(name)
    if weights is None:
        if not is_code and name in MODELS:
            raise SettingsError(
                f"a {name} without weights has learned nothing: pass --weights, or train it first "
                f"(agnncert train {settings.data} --model {name}) and certify the folder which that leaves."
            )
        if name == NO_MODEL:
            raise SettingsError(
                f"nothing has been trained yet: agnncert train {settings.data} --division {settings.division} makes a "
                "folder, which agnncert certify takes."
            )
        log.warning("no --weights were given: %s is taken as it comes", name)
        return fresh_model(settings, data).eval()
    if not is_code and Path(weights).with_suffix(".json").is_file():
        return load_model(weights)  # beside them is a description of the model
    return model_with_weights(settings, data, weights)


def require_threshold(weights: str | os.PathLike[str], says_rule: bool) -> None:
    """Refuses weights of a run without the threshold, or voting rule, that was chosen for them.

    Args:
        weights: The weights.
        says_rule: Whether the caller says how votes are added up, or chooses a threshold again.

    Raises:
        SettingsError: The threshold would be dropped.
    """
    file = Path(weights)
    run = find_run(file)
    if run is None or file.name != run.weights.name or says_rule:
        return
    chosen = str(run.read_json(CHOICE).get("text", ""))
    if not chosen:
        return
    instead = f"name {run.certified_weights}" if run.certified_weights.is_file() else "pass --prior and --empty"
    raise SettingsError(
        f"{file} holds the model as it was trained, without what was chosen for {run} on validation ({chosen}): labels "
        f"would be others. To label new data as {run} does: agnncert score {run} DATA. To certify, {instead}, or "
        "choose again with --size or --set false_positive_rate=…."
    )


def with_pretrained_settings(settings: CertifySettings) -> CertifySettings:
    """Returns the settings with the model that comes with the package, and with its division where they name none.

    Raises:
        SettingsError: The settings contradict how that model was trained.
    """
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
    groups = settings.groups
    if groups is None and settings.division in (None, about["division"]):
        groups = about["groups"]
    return replace(settings, model=about["model"], division=settings.division or about["division"], groups=groups)
