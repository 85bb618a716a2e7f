"""Graphs with labels and splits: the paper's datasets, two that ship with scikit-learn, and a user's own
tables.

``load_dataset`` returns a ``Data`` (node classification) or a ``GraphSet`` (graph classification). Names are
loaded
on first use: ``catalog`` alone, which a listing of the datasets needs, imports no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

_OWNER = {
    "DATASETS": "catalog",
    "DatasetInfo": "catalog",
    "GraphSet": "graphset",
    "dataset_digest": "digest",
    "inductive_view": "protocol",
    "load_dataset": "load",
    "load_tables": "tables",
    "stratified_split": "splits",
}

__all__ = [*sorted(_OWNER)]

if TYPE_CHECKING:
    from agnncert.datasets.catalog import DATASETS as DATASETS
    from agnncert.datasets.catalog import DatasetInfo as DatasetInfo
    from agnncert.datasets.digest import dataset_digest as dataset_digest
    from agnncert.datasets.graphset import GraphSet as GraphSet
    from agnncert.datasets.load import load_dataset as load_dataset
    from agnncert.datasets.protocol import inductive_view as inductive_view
    from agnncert.datasets.splits import stratified_split as stratified_split
    from agnncert.datasets.tables import load_tables as load_tables


def __getattr__(name: str) -> Any:
    if name not in _OWNER:
        raise AttributeError(f"module 'agnncert.datasets' has no attribute '{name}'")
    return getattr(importlib.import_module(f"agnncert.datasets.{_OWNER[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
