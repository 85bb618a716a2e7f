"""Small random graphs and one-unit attacks on them."""

import hashlib
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.graphs.perturbation import Perturbation
from tests.support.models import FEATURES

CHANGES = ("add edge", "delete edge", "alter edge", "inject node", "delete node", "change features", "reuse id")


def twin_of(text: str) -> int:
    """The integer id whose 64-bit key is that of a text id: two nodes that share their groups, but are not one."""
    return int.from_bytes(hashlib.md5(b"agn-text" + text.encode()).digest()[:8], "little", signed=True)


def make_data(
    arcs: list[tuple[int, int]], num_nodes: int, seed: int = 0, ids: Any = None, width: int = FEATURES
) -> Data:
    """A graph with these arcs and random features."""
    random = np.random.default_rng(seed)
    return Data(
        x=torch.from_numpy(random.normal(size=(num_nodes, width))),
        edge_index=torch.tensor(arcs, dtype=torch.int64).view(-1, 2).t().contiguous(),
        node_id=torch.from_numpy(random.permutation(10_000)[:num_nodes]) if ids is None else ids,
    )


def random_data(
    seed: int, directed: bool = False, largest: int = 8, density: float | None = None, smallest: int = 3
) -> Data:
    """A graph with isolated nodes among its ``smallest`` to ``largest`` ones."""
    random = np.random.default_rng(seed)
    count = int(random.integers(smallest, largest + 1))
    density = float(random.choice([0.2, 0.5])) if density is None else density
    pairs = [(u, v) for u in range(count) for v in range(u) if random.random() < density]
    back = [(v, u) for u, v in pairs if not directed or random.random() < 0.3]
    return make_data(pairs + back, count, seed=seed)


def ids_of(data: Data) -> list[Any]:
    ids = data.node_id
    return list(ids) if isinstance(ids, (list, tuple)) else ids.tolist()


def pairs_of(data: Data) -> list[tuple[Any, Any]]:
    """The unordered pairs that an arc joins, self-loops left out."""
    ids = ids_of(data)
    pairs = {tuple(sorted((u, v))) for u, v in data.edge_index.t().tolist() if u != v}
    return [(ids[u], ids[v]) for u, v in sorted(pairs)]


def random_change(kind: str, data: Data, seed: int, hub_edges: float = 0.7) -> Perturbation | None:
    """One unit of an attack, or ``None`` where the graph does not allow it."""
    random = np.random.default_rng(seed)
    ids, joined = ids_of(data), pairs_of(data)
    features = (3 * random.normal(size=data.x.size(1))).tolist()
    node = ids[int(random.integers(len(ids)))]
    if kind == "add edge":
        have = {frozenset(pair) for pair in joined}
        free = [(u, v) for k, u in enumerate(ids) for v in ids[:k] if frozenset((u, v)) not in have]
        return Perturbation(add_edges=[_pick(free, random)]) if free else None
    if kind in ("delete edge", "alter edge"):
        if not joined:
            return None
        pair = _pick(joined, random)
        value = 2.5 if getattr(data, "edge_weight", None) is not None else 3
        if kind == "delete edge":
            return Perturbation(delete_edges=[pair])
        return Perturbation(change_edges=[(*pair, value)])
    if kind == "inject node":
        new = "new" if isinstance(node, str) else 20_000
        edges = [(new, u) for u in ids if random.random() < hub_edges]
        return Perturbation(inject_nodes={new: features}, add_edges=edges)
    if kind == "delete node":
        return Perturbation(delete_nodes=[node]) if len(ids) > 1 else None
    if kind == "change features":
        return Perturbation(change_features={node: features})
    edges = [(node, u) for u in ids if u != node and random.random() < hub_edges]
    return Perturbation(delete_nodes=[node], inject_nodes={node: features}, add_edges=edges) if len(ids) > 1 else None


def _pick(pairs: list[Any], random: np.random.Generator) -> Any:
    return pairs[int(random.integers(len(pairs)))]
