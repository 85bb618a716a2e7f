"""Ids and keys of nodes, from ``node_id`` or, if the data has none, from row numbers."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.ids import EncodedIds, encode_ids, order_of
from agnncert.errors import IdError
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.hashing import keys_of_encoded, refuse_duplicates


def has_ids(data: Data) -> bool:
    """Tells whether the data has a ``node_id``."""
    return getattr(data, "node_id", None) is not None


def exact_ids(data: Data, where: str = "") -> EncodedIds:
    """Returns the id of every node in canonical form: ``node_id`` if the data has it, else the row number.

    Args:
        data: The graph.
        where: What errors begin with.

    Raises:
        IdError: The number of ids is wrong, an id is neither an integer nor text, or an id occurs twice.
    """
    if not has_ids(data):
        return np.arange(data.num_nodes)
    ids = listed_ids(data.node_id)
    if not hasattr(ids, "__len__"):
        raise IdError(f"{where}node_id is a {type(ids).__name__}: give a list or tensor with one id per node.")
    try:
        encoded = encode_ids(ids)
        if len(encoded) != data.num_nodes:
            raise IdError(f"node_id has {len(encoded)} entries for {data.num_nodes} nodes: one id per node is needed.")
        refuse_duplicates(encoded)
    except IdError as error:
        raise IdError(f"{where}{error}") from None
    return encoded


def listed_ids(node_id: Any) -> Any:
    """Returns ``node_id`` as it was given, but a tensor as an array."""
    if not isinstance(node_id, Tensor):
        return node_id
    if node_id.is_floating_point() or node_id.dim() == 0:  # not valid as ids; numpy does not have all of these types
        return node_id.tolist()
    return node_id.detach().cpu().numpy()


def node_keys(graph: Data | CanonicalGraph) -> Tensor:
    """Returns the 64-bit key of every node (the bits of an int64).

    Keys of a ``Data`` are computed from ``node_id`` or the row number.
    """
    if isinstance(graph, CanonicalGraph):
        return graph.node_key
    return keys_and_ties(exact_ids(graph)).keys


class KeysAndTies(NamedTuple):
    """Keys of nodes, and what decides the order of nodes that share a key.

    Attributes:
        keys: Key of each node.
        ties: Number of each node in id order among the nodes with the same key; ``None`` if no key is shared.
    """

    keys: Tensor
    ties: Tensor | None


def keys_and_ties(ids: EncodedIds) -> KeysAndTies:
    """Returns the keys of ids in canonical form, and the order of ids that share a key."""
    keys = torch.from_numpy(keys_of_encoded(ids).view(np.int64))
    if isinstance(ids, np.ndarray) or len(torch.unique(keys)) == len(keys):
        return KeysAndTies(keys, None)
    ties = torch.zeros_like(keys)
    num_before = Counter[int]()
    for row in sorted(range(len(ids)), key=lambda row: order_of(ids[row])):
        key = int(keys[row])
        ties[row] = num_before[key]
        num_before[key] += 1
    return KeysAndTies(keys, ties)
