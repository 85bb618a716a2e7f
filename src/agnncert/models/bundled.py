"""Trained models that come with the package, so that certifying and attacking need no training.

``benchmarks/pretrained.py`` makes them. Their digests stand here: a file in its place that is another one is refused.
"""

import hashlib
from pathlib import Path
from typing import Any

from torch import nn

from agnncert.errors import ModelContractError, did_you_mean
from agnncert.models.saved import load_description, load_model

FOLDER = Path(__file__).with_name("weights")

# The sha256 of the weights, by the dataset that they were trained on.
DIGESTS = {
    "digits-knn": "a9f29ae49c3337e1a2658409ea80ef5e868fca3a7989973b3dd1a71709822fe1",
    "proteins": "6325c824f6f329dfa60de63292aec754d649d3b40a8578b94a22193f6bf951a8",
    "pubmed": "4a73f4ca2bccaf7082a9ebc9425d8ee573b9851ce1dbca21ba1a6c3bdfba28db",
}


def pretrained(dataset: str) -> nn.Module:
    """A trained model for one of the library's datasets, in evaluation mode.

    It was trained on the split of ``load_dataset(dataset, seed=0)``: on another split, nodes or graphs of its training
    part would stand among those it is tested on. How it was trained, and with which division, is in
    ``model.training_record``.

    Args:
        dataset: digits-knn (the demo), pubmed or proteins.

    Raises:
        ModelContractError: There is none for that dataset, or its file is not the one that belongs to this version.

    Example:
        >>> model = pretrained("digits-knn")
        >>> model.training_record["division"]
        'node-centric(T=60, hash=md5, key=u64le)'
    """
    _known(dataset)
    weights = FOLDER / f"{dataset}.safetensors"
    model = load_model(weights)
    if hashlib.sha256(weights.read_bytes()).hexdigest() != DIGESTS[dataset]:
        raise ModelContractError(f"{weights} is not the file that belongs to this version: install agnncert again.")
    model.training_record = load_description(weights)["provenance"]["training"]
    return model


def pretrained_settings(dataset: str) -> dict[str, Any]:
    """The settings of the run that made a model of the package."""
    _known(dataset)
    settings: dict[str, Any] = load_description(FOLDER / dataset)["provenance"]["settings"]
    return settings


def _known(dataset: str) -> None:
    if dataset not in DIGESTS:
        raise ModelContractError(
            f'no trained model comes with the package for "{dataset}": {did_you_mean(dataset, DIGESTS)}'
        )
