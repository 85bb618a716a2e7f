"""Models in files: weights in safetensors, with a JSON description beside them. Nothing is unpickled.

Some trained models come with the package (``experiments/benchmarks/pretrained.py`` trains them). Their digests are
checked.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from agnncert.addons import config_of
from agnncert.errors import ModelContractError, did_you_mean, suggests_arguments
from agnncert.models.build import build_from_config
from agnncert.storage import parse_json, write_atomic

FORMAT = "agnncert-model-1"
PathLike = str | os.PathLike[str]

FOLDER = Path(__file__).with_name("weights")

# The sha256 of the weights, by the dataset that they were trained on.
DIGESTS = {
    "digits-knn": "a9f29ae49c3337e1a2658409ea80ef5e868fca3a7989973b3dd1a71709822fe1",
    "proteins": "6325c824f6f329dfa60de63292aec754d649d3b40a8578b94a22193f6bf951a8",
    "pubmed": "4a73f4ca2bccaf7082a9ebc9425d8ee573b9851ce1dbca21ba1a6c3bdfba28db",
}


@suggests_arguments
def save_model(model: nn.Module, path: PathLike, provenance: Mapping[str, Any] | None = None) -> Path:
    """Writes the weights to ``path`` and their description to the same name with ``.json``.

    Args:
        model: Any module. A built-in one can be loaded again without being built first.
        path: File for the weights. ``.safetensors`` is appended if it has no suffix.
        provenance: Dataset, division, seed, epochs and other facts about the weights, as JSON values.

    Returns:
        The file with the weights.
    """
    files = _ModelFiles.of(path)
    facts_about_weights = dict(provenance or {})
    record = getattr(model, "training_record", {})
    if "teaching" in record:  # certificates of a taught model say so, also after it was loaded
        facts_about_weights.setdefault("training", record)
    blob = save_tensors(_tensors(model))
    facts = {
        "format": FORMAT,
        "model": config_of(model),
        "weights": files.weights.name,
        "sha256": hashlib.sha256(blob).hexdigest(),
        "torch": torch.__version__,
        "provenance": facts_about_weights,
    }
    files.weights.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(files.weights, blob)
    write_atomic(files.description, json.dumps(facts, indent=2) + "\n")
    return files.weights


@suggests_arguments
def load_model(path: PathLike, model: nn.Module | None = None) -> nn.Module:
    """Loads what ``save_model`` wrote, and returns the model in evaluation mode.

    Args:
        path: The file with the weights or with their description.
        model: A module of your own to put the weights into. A built-in one is built if it is not given.

    Raises:
        ModelContractError: A file is missing or altered, or the weights do not fit the module.
    """
    weights = _ModelFiles.of(path).weights
    facts = load_description(path)
    blob = _read(weights)
    if hashlib.sha256(blob).hexdigest() != facts["sha256"]:
        raise ModelContractError(f"{weights} is not the file that was saved: its sha256 differs from the description.")
    if model is None:
        if not facts["model"]:
            raise ModelContractError(f"{weights} holds weights of a module of yours: pass it as model=...")
        model = build_from_config(facts["model"])
    try:
        model.load_state_dict(load_tensors(blob))
    except (RuntimeError, SafetensorError) as error:
        raise ModelContractError(f"the weights in {weights} do not fit {type(model).__name__}: {error}") from error
    training = facts["provenance"].get("training")
    if isinstance(training, dict) and "teaching" in training:
        model.training_record = training  # type: ignore[assignment]
    return model.eval()


def load_description(path: PathLike) -> dict[str, Any]:
    """Loads the JSON beside the weights: the model's settings and where the weights come from.

    Raises:
        ModelContractError: There is no such file, or it does not describe a model.
    """
    description = _ModelFiles.of(path).description
    try:
        facts = parse_json(_read(description))
    except ValueError as error:
        raise ModelContractError(f"{description} is not JSON: {error}") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ModelContractError(f"{description} does not describe a model in a format known here ({FORMAT}).")
    return facts


@dataclass(frozen=True)
class _ModelFiles:
    """The two files of a model."""

    weights: Path
    description: Path

    @classmethod
    def of(cls, path: PathLike) -> Self:
        """Returns both files, given either of them or their name without a suffix."""
        path = Path(path)
        weights = path.with_suffix(".safetensors") if path.suffix in ("", ".json") else path
        return cls(weights, weights.with_suffix(".json"))


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    """Returns copies of weights and buffers by name, because safetensors refuses tensors that share memory."""
    state = model.state_dict()
    uninitialised = (UninitializedParameter, UninitializedBuffer)
    lazy = [name for name, value in state.items() if isinstance(value, uninitialised)]
    if lazy:
        raise ModelContractError(f"{', '.join(lazy)}: not initialised yet. Run the model once before saving it.")
    return {name: value.detach().cpu().clone().contiguous() for name, value in state.items()}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelContractError(f"cannot read {path}: {error.strerror}.") from error


@suggests_arguments
def pretrained(dataset: str) -> nn.Module:
    """Loads a trained model for one of the library's datasets, in evaluation mode.

    The model was trained on the split of ``load_dataset(dataset, seed=0)``. The test part of another split would
    contain training data. ``model.training_record`` holds the division and the settings of training.

    Args:
        dataset: ``"digits-knn"`` (the demo), ``"pubmed"`` or ``"proteins"``.

    Raises:
        ModelContractError: There is none for that dataset, or its file is not the one that belongs to this version.

    Example:
        >>> model = pretrained("digits-knn")
        >>> model.training_record["division"]
        'node-centric(T=60, hash=md5, key=u64le)'
    """
    _require_known(dataset)
    weights = FOLDER / f"{dataset}.safetensors"
    model = load_model(weights)
    if hashlib.sha256(weights.read_bytes()).hexdigest() != DIGESTS[dataset]:
        raise ModelContractError(f"{weights} is not the file that belongs to this version: install agnncert again.")
    model.training_record = load_description(weights)["provenance"]["training"]
    return model


def pretrained_settings(dataset: str) -> dict[str, Any]:
    """Returns the settings of the run that trained a model of the package."""
    _require_known(dataset)
    settings: dict[str, Any] = load_description(FOLDER / dataset)["provenance"]["settings"]
    return settings


def _require_known(dataset: str) -> None:
    if dataset not in DIGESTS:
        raise ModelContractError(
            f'no trained model comes with the package for "{dataset}": {did_you_mean(dataset, DIGESTS)}'
        )
