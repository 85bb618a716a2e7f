"""Events for live graphs, and what it means that a live graph is the graph that it should be."""

import random
from typing import Any

import numpy as np
import torch

import agnncert as ac
import agnncert_live
from agnncert.certifier import with_threshold
from agnncert_live.events import KINDS


def ids_of(data: Any) -> list[Any]:
    ids = getattr(data, "node_id", None)
    if ids is None:
        return list(range(data.num_nodes))
    return ids.tolist() if torch.is_tensor(ids) else list(ids)


def random_event(data: Any, rng: random.Random, graph: int | None = None, kinds: Any = KINDS) -> agnncert_live.Event:
    """An event that most often fits the graph, and sometimes does not."""
    ids = ids_of(data)
    kind, u, v = rng.choice(list(kinds)), rng.choice(ids), rng.choice(ids)
    if kind in ("delete_edge", "change_edge") and data.edge_index.size(1) and rng.random() < 0.9:
        u, v = (ids[k] for k in data.edge_index[:, rng.randrange(data.edge_index.size(1))].tolist())
    value: Any = None
    if kind in ("add_node", "change_features"):
        value = [rng.gauss(0, 1) for _ in range(data.x.size(1))]
    if kind == "add_node":
        u = rng.choice([rng.randrange(10**6), f"n{rng.randrange(100)}", str(rng.randrange(5)), rng.choice(ids)])
    if kind == "change_edge" or (kind in ("add_edge", "record_edge") and "edge_weight" in data):
        value = rng.random() if "edge_weight" in data else rng.choice([1, 2, 3])
    directed = kind in ("add_edge", "change_edge", "record_edge") and rng.random() < 0.3
    return agnncert_live.Event(kind, u, v if kind.endswith("edge") else None, value, directed, graph)


def random_batch(
    live: agnncert_live.LiveGraph, rng: random.Random, size: int, kinds: Any = KINDS
) -> list[agnncert_live.Event]:
    data = live.data()
    if live.task == "node":
        return [random_event(data, rng, kinds=kinds) for _ in range(size)]
    rows = [rng.choice(live.targets.tolist()) for _ in range(size)]
    return [random_event(data[row], rng, row, kinds) for row in rows]


def certified(live: agnncert_live.LiveGraph) -> ac.Certificate:
    """What ``certify`` says about the graph as it is."""
    data = live.data()
    rows = live.targets if live.task == "graph" else [ids_of(data).index(target) for target in live.targets.tolist()]
    settings = {} if live.tolerance is None else {"tolerance": live.tolerance}
    return with_threshold(ac.certify(live.model, data, live.defence, rows, **settings), live.threshold)


def assert_same(first: ac.Certificate, second: ac.Certificate) -> None:
    """Two certificates that would be the same file."""
    assert first.claim == second.claim
    ours, theirs = first.evidence.tensors(), second.evidence.tensors()
    assert sorted(ours) == sorted(theirs)
    for name in ours:
        assert np.array_equal(ours[name], theirs[name]), name
    for name in ("target", "row", "truth", "degree", "label", "radius"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None) == (other is None), name
        assert one is None or np.array_equal(one, other), name


def assert_current(live: agnncert_live.LiveGraph) -> None:
    """Labels, radii and the certificate are those of ``certify`` from scratch."""
    expected = certified(live)
    assert np.array_equal(live.label, expected.label)
    assert np.array_equal(live.radius, expected.radius)
    assert_same(live.certificate(), expected)
    assert live.targets.tolist() == expected.target.tolist()
