"""A digest of graph, labels and split, so that a result says on what it was obtained."""

import hashlib

from torch import Tensor
from torch_geometric.data import Data

from agnncert.datasets.graphset import GraphSet
from agnncert.graph import canonical, canonical_set, graph_digest


def dataset_digest(data: Data | GraphSet) -> str:
    """sha256 of ids, features, edges, labels and split: the same exactly when an experiment would be."""
    if isinstance(data, GraphSet):
        graph = canonical_set(data)
        parts = {"y": data.y, "train": data.train, "val": data.val, "test": data.test}
    else:
        graph = canonical(data)
        parts = {name: data[name] for name in ("y", "train_mask", "val_mask", "test_mask") if name in data}
    digest = hashlib.sha256(graph_digest(graph).encode())
    for name, value in parts.items():
        digest.update(f"{name}:{tuple(value.shape)};".encode() + _bytes(value))
    return digest.hexdigest()


def _bytes(value: Tensor) -> bytes:
    return bytes(value.detach().cpu().long().numpy().astype("<i8").tobytes())
