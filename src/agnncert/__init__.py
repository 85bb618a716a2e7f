"""agnncert: graph neural network decisions that carry a proof.

Names are loaded on first use, so that ``agnncert --help`` and ``agnncert verify`` never import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_OWNER = {
    "AgnncertError": "errors",
    "Budget": "budget",
    "GraphSet": "datasets.graphset",
    "build_model": "models",
    "dataset_digest": "datasets.digest",
    "inductive_view": "datasets.protocol",
    "load_dataset": "datasets.load",
    "load_model": "models",
    "load_tables": "datasets.tables",
    "save_model": "models",
}

__all__ = ["__version__", *sorted(_OWNER)]  # noqa: PLE0604

if TYPE_CHECKING:
    from agnncert.budget import Budget as Budget
    from agnncert.datasets.digest import dataset_digest as dataset_digest
    from agnncert.datasets.graphset import GraphSet as GraphSet
    from agnncert.datasets.load import load_dataset as load_dataset
    from agnncert.datasets.protocol import inductive_view as inductive_view
    from agnncert.datasets.tables import load_tables as load_tables
    from agnncert.errors import AgnncertError as AgnncertError
    from agnncert.models import build_model as build_model
    from agnncert.models import load_model as load_model
    from agnncert.models import save_model as save_model


def __getattr__(name: str) -> Any:
    if name not in _OWNER:
        raise AttributeError(f"module 'agnncert' has no attribute '{name}'")
    return getattr(importlib.import_module(f"agnncert.{_OWNER[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
