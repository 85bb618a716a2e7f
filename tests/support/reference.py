"""The method once more, in plain Python and hashlib; nothing of the library's divisions or engines is used."""

import hashlib
import inspect
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric

BuiltIn = EdgeCentric | NodeCentric
ABSTAIN = -1


def key(node_id: int | str) -> int:
    """64 bits that stand for an id."""
    if isinstance(node_id, str) and re.fullmatch(r"0|-?[1-9][0-9]*", node_id):
        node_id = int(node_id)
    if isinstance(node_id, str):
        return int.from_bytes(hashlib.md5(b"agn-text" + node_id.encode()).digest()[:8], "little")
    return node_id % 2**64


def node_group(u: int | str, division: BuiltIn) -> int:
    return _group(b"agn-node" + key(u).to_bytes(8, "little"), division)


def edge_group(u: int | str, v: int | str, division: BuiltIn) -> int:
    low, high = sorted((key(u), key(v)))
    return _group(b"agn-edge" + low.to_bytes(8, "little") + high.to_bytes(8, "little"), division)


def _group(text: bytes, division: BuiltIn) -> int:
    return int.from_bytes(hashlib.new(division.hash, text).digest()[:8], "little") % division.num_groups


@dataclass
class Subgraph:
    """Rows of the nodes that are read, numbers of the arcs, and rows whose features are hidden or that do not vote."""

    nodes: list[int]
    arcs: list[int]
    hidden: set[int] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)


def subgraphs(data: Data, division: BuiltIn, task: str) -> list[Subgraph]:
    """All subgraphs as the paper defines them, with silent nodes kept away from readouts."""
    ids = _ids(data)
    arcs = [(u, v) for u, v in data.edge_index.t().tolist()]
    usable = [k for k, (u, v) in enumerate(arcs) if u != v or division.self_loops]
    rows = list(range(len(ids)))
    of_edge = {k: edge_group(ids[arcs[k][0]], ids[arcs[k][1]], division) for k in usable}
    of_node = {u: node_group(ids[u], division) for u in rows}
    parts = []
    for index in range(division.num_groups):
        if isinstance(division, EdgeCentric):
            inside = [k for k in usable if of_edge[k] == index]
            ends = sorted({w for k in inside for w in arcs[k]})
            parts.append(Subgraph(ends if task == "graph" else rows, inside))
            continue
        own = {u for u in rows if of_node[u] == index}
        inside = [k for k in usable if arcs[k][0] in own and (task == "node" or arcs[k][1] in own)]
        if task == "graph":
            parts.append(Subgraph(sorted(own), inside))
        elif division.gates_features:
            hears = {arcs[k][1] for k in inside}
            parts.append(Subgraph(rows, inside, set(rows) - own, set(rows) - own - hears))
        else:
            parts.append(Subgraph(rows, inside))
    return parts


def logits(model: Any, data: Data, part: Subgraph, task: str) -> torch.Tensor:
    """What the model says of one subgraph: a row per node, or one row."""
    place = {row: k for k, row in enumerate(part.nodes)}
    x = data.x[part.nodes].clone()
    if part.hidden:
        x[[place[row] for row in part.hidden]] = 0
    ends = [[place[row] for row in side] for side in data.edge_index[:, part.arcs].tolist()]
    edge_index = torch.tensor(ends, dtype=torch.int64).view(2, -1)
    takes = inspect.signature(model.forward if hasattr(model, "forward") else model).parameters
    names = [n for n in ("edge_weight", "edge_attr") if n in takes and getattr(data, n, None) is not None]
    values = {n: data[n][torch.tensor(part.arcs, dtype=torch.int64)] for n in names}
    batch = [torch.zeros(len(part.nodes), dtype=torch.int64)] if task == "graph" else []
    with torch.no_grad():
        return model(x, edge_index, *batch, **values)


def votes(model: Any, data: Data, division: BuiltIn, task: str) -> np.ndarray:
    """Votes of all nodes, or of the one graph: shape ``[num_targets, num_groups]``."""
    columns, known = [], {}  # many groups without edges are one subgraph, of which the model says the same
    for part in subgraphs(data, division, task):
        if task == "graph" and not part.nodes:
            columns.append([ABSTAIN])
            continue
        key = tuple(part.nodes), tuple(part.arcs), frozenset(part.hidden)
        if key not in known:
            known[key] = logits(model, data, part, task).argmax(dim=1).tolist()
        columns.append([ABSTAIN if row in part.silent else voting_rule for row, voting_rule in enumerate(known[key])])
    return np.array(columns).T


def listed(data: Data, division: BuiltIn, task: str) -> list[dict[int, bool]]:
    """For each target: the groups whose vote is listed, and whether the graph as it is reaches it."""
    targets: list[dict[int, bool]] = [{} for _ in range(data.x.size(0) if task == "node" else 1)]
    for index, part in enumerate(subgraphs(data, division, task)):
        ends = data.edge_index[:, part.arcs]
        if task == "graph":
            if part.nodes:
                lone = isinstance(division, NodeCentric) and len(part.nodes) < 2 and not division.self_loops
                targets[0][index] = not lone
            continue
        reached = set(ends.view(-1).tolist() if isinstance(division, EdgeCentric) else ends[1].tolist())
        gated = bool(part.hidden) or division.gates_features
        at_home = set(part.nodes) - part.hidden if gated else set()
        for row in reached | at_home:
            targets[row][index] = row in reached
    return targets


def _ids(data: Data) -> list[Any]:
    if getattr(data, "node_id", None) is None:
        return list(range(data.x.size(0)))
    return np.asarray(data.node_id).tolist() if isinstance(data.node_id, torch.Tensor) else list(data.node_id)
