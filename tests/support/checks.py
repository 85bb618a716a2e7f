"""What must hold of any division and engine, as plain functions: the tests call them, and so do the mutation tests.

Each raises ``AssertionError`` (or one of the library's own errors) when the law it states is broken.
"""

import inspect
import itertools
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.certificates.votes import ABSTAIN, Votes
from agnncert.divided.evidence import VoteEvidence
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.engine.adapter import bind
from agnncert.engine.structure import structure
from agnncert.engine.votes import Execution, compute_votes
from agnncert.errors import NotCovered
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.graphs.perturbation import Perturbation
from tests.support import reference
from tests.support.graphs import ids_of, pairs_of


def checked(data: Any, division: Any) -> Data:
    loops = division.self_loops
    return canonical(data, loops) if isinstance(data, Data) else canonical_set(data, loops)


def votes_of(
    model: Any,
    data: Any,
    division: Any,
    engine: Any = "fast",
    rows: Any = None,
    memory_limit: int | None = None,
    call: Any = None,
    tolerance: float | None = 0.0,
    graph: CanonicalGraph | None = None,
) -> Votes:
    """The votes of some targets as an engine casts them.

    ``call`` is the model as it was bound to the data before, ``graph`` is the data in canonical form if it is known.
    """
    graph = checked(data, division) if graph is None else graph
    task = "node" if isinstance(data, Data) else "graph"
    rows = np.arange(len(graph.x) if task == "node" else len(data)) if rows is None else np.asarray(rows)
    call = call or bind(model, graph, task)
    execution = Execution(memory_limit)
    return compute_votes(call, graph, division, rows, engine, tolerance, execution=execution)[0]


# Oracle


def check_engines_agree(
    model: Any, data: Any, division: Any, rows: Any = None, memory_limit: int | None = None
) -> None:
    """Both engines cast the same votes, and those of the plain reference if the division is built in."""
    graph = checked(data, division)
    call = bind(model, graph, "node" if isinstance(data, Data) else "graph")
    fast = votes_of(model, data, division, "fast", rows, memory_limit, call, graph=graph)
    slow = votes_of(model, data, division, "naive", rows, call=call, graph=graph)
    np.testing.assert_array_equal(fast.dense(), slow.dense())
    for name in ("default", "default_stable", "indptr", "group", "vote", "stable", "reached"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
    if isinstance(division, EdgeCentric | NodeCentric):
        np.testing.assert_array_equal(fast.dense(), expected_votes(model, data, division, rows))
        check_listing(fast, data, division, rows)


def expected_votes(model: Any, data: Any, division: Any, rows: Any = None) -> np.ndarray:
    if isinstance(data, Data):
        table = reference.votes(model, data, division, "node")
        return table if rows is None else table[rows]
    return np.concatenate([reference.votes(model, graph, division, "graph") for graph in data])


def check_listing(votes: Votes, data: Any, division: Any, rows: Any = None) -> None:
    """Exactly the votes that an edge of the graph reaches are listed: every theorem counts on it."""
    if isinstance(data, Data):
        expected = reference.listed(data, division, "node")
        expected = expected if rows is None else [expected[row] for row in rows]
    else:
        expected = [reference.listed(graph, division, "graph")[0] for graph in data]
    for target, groups in enumerate(expected):
        mine = slice(votes.indptr[target], votes.indptr[target + 1])
        listed = dict(zip(votes.group[mine].tolist(), votes.reached[mine].tolist(), strict=True))
        assert listed == groups, f"target {target} lists {listed}, expected {groups}"


# Laws


def check_change(model: Any, data: Data, division: Any, change: Perturbation, task: str, engine: str = "fast") -> int:
    """A change moves no more votes than promised, and only those it may; returns the most it moved."""
    attacked = change.apply(data)
    graphs = [checked(d if task == "node" else [d], division) for d in (data, attacked)]
    call = bind(model, graphs[0], task)
    votes, then = (
        votes_by_target(model, d, division, task, call, graph, engine)
        for d, graph in zip((data, attacked), graphs, strict=True)
    )
    most = 0
    for target, moved in check_outputs(model, data, division, change, task, attacked, graphs).items():
        flipped = set(np.flatnonzero(votes[target] != then[target]).tolist())
        assert flipped <= moved, f"{target} changed votes {flipped - moved} although its logits there did not move"
        most = max(most, len(moved))
    return most


def promises_of(division: Any, change: Perturbation, graph: CanonicalGraph, row: int | None) -> tuple[set[int], int]:
    """Groups whose votes a change can move for a target, and how many of them at most."""
    return division.moved_groups(change, graph, row), division.votes_moved(change, graph, row)


def check_outputs(
    model: Any,
    data: Data,
    division: Any,
    change: Perturbation,
    task: str,
    attacked: Data | None = None,
    graphs: list[CanonicalGraph] | None = None,
    found: Any = None,
    promises: Any = promises_of,
) -> dict[Any, set[int]]:
    """As ``check_change``, of logits, which is stricter: a vote cannot move where logits do not. Returns what moved.

    ``attacked`` is what the change makes of the data, ``graphs`` are both in canonical form, and ``found`` is what
    ``outputs`` gives before and after the change, if they are known. ``promises`` may remember what the division says.
    """
    attacked = change.apply(data) if attacked is None else attacked
    graphs = graphs or [checked(d if task == "node" else [d], division) for d in (data, attacked)]
    known: dict[Any, np.ndarray] = {}  # a change leaves most subgraphs as they were
    before, after = found or (
        outputs(model, d, division, task, graph, known) for d, graph in zip((data, attacked), graphs, strict=True)
    )
    graph = graphs[0]
    moved_by_target = {}
    for row, target in enumerate(before):
        if target not in after:
            continue
        where = row if task == "node" else None
        try:
            allowed, promised = promises(division, change, graph, where)
        except NotCovered:
            assert target in change.delete_nodes or target in change.change_features
            continue
        moved = {i for i, (a, b) in enumerate(zip(before[target], after[target], strict=True)) if differ(a, b)}
        assert moved <= allowed, f"{change} moved the votes {moved} of {target}, allowed: {allowed}"
        assert len(moved) <= promised <= paper_bound(data, division, change)
        moved_by_target[target] = moved
    return moved_by_target


def outputs(
    model: Any,
    data: Data,
    division: Any,
    task: str,
    graph: CanonicalGraph | None = None,
    known: dict[Any, np.ndarray] | None = None,
) -> dict[Any, list[np.ndarray | None]]:
    """Logits of every target in every subgraph, ``None`` where it abstains; subgraphs as the division makes them.

    ``known`` is what the model said of subgraphs before, by their features, edges and edge values; it is filled here.
    """
    graph = checked(data if task == "node" else [data], division) if graph is None else graph
    graph = graph if task == "node" else one_graph(graph, 0)
    groups = division.groups(graph)
    parts = [division.subgraph(graph, groups, i) for i in range(division.num_groups)]
    if task == "graph":
        return {None: [_output(model, part, task, known) if len(part.x) else None for part in parts]}
    tables = [_output(model, part, task, known) for part in parts]
    silent = [[False] * len(graph.x) if part.abstain is None else part.abstain.tolist() for part in parts]
    return {
        target: [None if silent[i][row] else tables[i][row] for i in range(division.num_groups)]
        for row, target in enumerate(ids_of(data))
    }


def _output(model: Any, part: CanonicalGraph, task: str, known: dict[Any, np.ndarray] | None) -> np.ndarray:
    key = tuple((v.dtype, v.shape, v.numpy().tobytes()) for v in (part.x, part.edge_index, *part.edge_values.values()))
    if known is not None and key in known:
        return known[key]
    takes = inspect.signature(model.forward).parameters if part.edge_values else ()
    values = {name: value for name, value in part.edge_values.items() if name in takes}
    batch = [torch.zeros(len(part.x), dtype=torch.int64)] if task == "graph" else []
    with torch.no_grad():
        found = model(part.x.clone(), part.edge_index.clone(), *batch, **values).numpy()
    if known is not None:
        known[key] = found
    return found


def differ(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is None or b is None:
        return a is not b
    return not ((a == b).all() or np.allclose(a, b, rtol=1e-9, atol=1e-9))  # equal, as a rule: that is cheaper to see


def votes_by_target(
    model: Any,
    data: Data,
    division: Any,
    task: str,
    call: Any = None,
    graph: CanonicalGraph | None = None,
    engine: str = "fast",
) -> dict[Any, np.ndarray]:
    """Which votes are stable is not asked: then the model need not be called a second time."""
    asked = data if task == "node" else [data]
    votes = votes_of(model, asked, division, engine, call=call, tolerance=None, graph=graph)
    table = votes.dense()
    return dict(zip(ids_of(data) if task == "node" else [None], table, strict=True))


def paper_bound(data: Data, division: Any, change: Perturbation) -> float:
    """What the paper's theorems promise, counted by hand: edges touched, or edges and nodes touched."""
    edges = len(change.delete_edges) + len(change.change_edges)
    if isinstance(division, NodeCentric):
        between_old = [pair for pair in change.add_edges if not set(pair) & set(change.inject_nodes)]
        return edges + len(between_old) + len({*change.inject_nodes, *change.delete_nodes, *change.change_features})
    touched = {*change.delete_nodes, *change.change_features}
    return edges + len(change.add_edges) + sum(bool(touched & set(pair)) for pair in pairs_of(data))


def check_growth(data: Data, division: Division, change: Perturbation, task: str) -> None:
    """An edge that is in the graph before and after a change is in the same group."""
    before, after = (_groups_by_pair(d, division, task) for d in (data, change.apply(data)))
    reborn = set(change.delete_nodes) & set(change.inject_nodes)
    for pair, group in before.items():
        assert after.get(pair, group) == group, f"{pair} went from group {group} to {after[pair]}"
    if not reborn and not change.delete_nodes and not change.delete_edges:
        assert set(before) <= set(after)


def _groups_by_pair(data: Data, division: Any, task: str) -> dict[Any, int]:
    ids = ids_of(data)
    graph = checked(data if task == "node" else [data], division)
    named = [(ids[u], ids[v]) for u, v in graph.edge_index.t().tolist()]
    return dict(zip(named, division.groups(graph).tolist(), strict=True))


def listed_by_target(data: Data, division: Any) -> dict[Any, dict[int, bool]]:
    """The groups whose vote is listed, of every node."""
    return dict(zip(ids_of(data), reference.listed(data, division, "node"), strict=True))


def check_outside_unmoved(
    model: Any, data: Data, division: Any, change: Perturbation, found: Any = None, reach: Any = None
) -> None:
    """Node task: a vote moves only where the target has an edge before or after (Theorem A of the project).

    ``reach`` is what ``listed_by_target`` gives before and after the change, if it is known.
    """
    both = (data, change.apply(data)) if found is None or reach is None else ()
    known: dict[Any, np.ndarray] = {}
    before, after = found or (outputs(model, d, division, "node", None, known) for d in both)
    reach = reach or [listed_by_target(d, division) for d in both]
    for target in set(before) & set(after) - set(change.change_features) - set(change.delete_nodes):
        moved = {i for i, (a, b) in enumerate(zip(before[target], after[target], strict=True)) if differ(a, b)}
        assert moved <= set(reach[0][target]) | set(reach[1][target])


def reaches_by_target(data: Data, division: EdgeCentric) -> dict[Any, dict[Any, set[int]]]:
    """What ``node_reaches`` finds for every node, by the ids of the others."""
    ids, parts = ids_of(data), reference.subgraphs(data, division, "node")
    found = {}
    for row, target in enumerate(ids):
        others = [u for k, u in enumerate(ids) if k != row]
        found[target] = dict(zip(others, node_reaches(data, division, row, parts), strict=True))
    return found


def check_reach(
    model: Any, data: Data, division: EdgeCentric, change: Perturbation, found: Any = None, reaches: Any = None
) -> None:
    """Edge-centric, node task: a deleted or altered node moves a vote only where a path joins it to the target.

    ``reaches`` is what ``reaches_by_target`` gives, if it is known.
    """
    known: dict[Any, np.ndarray] = {}
    before, after = found or (outputs(model, d, division, "node", None, known) for d in (data, change.apply(data)))
    reaches = reaches or reaches_by_target(data, division)
    touched = {*change.delete_nodes, *change.change_features}
    for target in ids_of(data):
        if target in touched:
            continue
        moved = {i for i, (a, b) in enumerate(zip(before[target], after[target], strict=True)) if differ(a, b)}
        assert moved <= set().union(*(reaches[target][u] for u in touched))


# Coverage


def check_reach_table(data: Any, division: EdgeCentric, exact: bool = True, rows: Any = None) -> None:
    """Every entry of the reach table is at least the true worst case; with one node it is that worst case."""
    graph = checked(data, division)
    if isinstance(data, Data):
        rows = np.arange(len(graph.x)) if rows is None else np.asarray(rows)
        parts = reference.subgraphs(data, division, "node")
        reaches = [node_reaches(data, division, row, parts) for row in rows]
    else:
        rows = np.arange(len(data))
        reaches = [graph_reaches(graph, division) for graph in data]
    facts = structure(graph, division, rows)
    ptr, tables = facts["reach_ptr"], facts["reach"]
    assert len(ptr) == len(reaches) + 1
    for target, reach in enumerate(reaches):
        table = tables[ptr[target] : ptr[target + 1]].tolist()
        for k in (1, 2, 3):
            worst = max(
                (len(set().union(*chosen)) for chosen in itertools.combinations(reach, min(k, len(reach)))), default=0
            )
            bound = table[min(k, len(table)) - 1] if table else 0
            assert bound >= worst, f"target {target}: {k} nodes reach {worst} votes, the table says {bound}"
            assert not exact or k > 1 or bound == worst
        assert table == sorted(table)


def node_reaches(data: Data, division: EdgeCentric, target: int, parts: Any = None) -> list[set[int]]:
    """For every other node: the groups in which a path, of edges in any direction, joins it to the target.

    ``parts`` are the subgraphs, if they are known.
    """
    parts = parts or reference.subgraphs(data, division, "node")
    near = [_component(data, part.arcs, target) for part in parts]
    return [{i for i, seen in enumerate(near) if u in seen} for u in range(len(data.x)) if u != target]


def graph_reaches(data: Data, division: EdgeCentric) -> list[set[int]]:
    parts = reference.subgraphs(data, division, "graph")
    return [{i for i, part in enumerate(parts) if u in part.nodes} for u in range(len(data.x))]


def _component(data: Data, arcs: list[int], target: int) -> set[int]:
    ends = data.edge_index[:, arcs].t().tolist()
    seen, grown = {target}, True
    while grown:
        new = {w for pair in ends if set(pair) & seen for w in pair} - seen
        seen, grown = seen | new, bool(new)
    return seen


# Votes


def check_radius(num_groups: int = 4, num_classes: int = 3, abstain: bool = True) -> None:
    """The radius is exact: no change of that many votes elects another class, some change of one more does."""
    cast_values = range(ABSTAIN if abstain else 0, num_classes)
    for votes in itertools.product(cast_values, repeat=num_groups):
        no_reach = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32)
        proof = VoteEvidence(all_listed(votes, num_classes), "node-centric/node", *no_reach)
        label, radius = (int(part[0]) for part in proof.label_and_radius())
        assert label == winner(votes, num_classes)
        assert not _can_flip(votes, label, radius, cast_values, num_classes), f"{votes} breaks within {radius}"
        assert radius == num_groups or _can_flip(votes, label, radius + 1, cast_values, num_classes)


def all_listed(votes: tuple[int, ...], num_classes: int) -> Votes:
    """One target whose votes are all listed and reached."""
    count = len(votes)
    return Votes(
        num_groups=count,
        num_classes=num_classes,
        default=np.array([ABSTAIN], dtype=np.int16),
        default_stable=np.array([True]),
        indptr=np.array([0, count]),
        group=np.arange(count, dtype=np.int32),
        vote=np.array(votes, dtype=np.int16),
        stable=np.ones(count, dtype=bool),
        reached=np.ones(count, dtype=bool),
    )


def winner(votes: tuple[int, ...], num_classes: int) -> int:
    counts = [sum(b == k for b in votes) for k in range(num_classes)]
    return counts.index(max(counts))


def _can_flip(votes: tuple[int, ...], label: int, size: int, values: range, num_classes: int) -> bool:
    for places in itertools.combinations(range(len(votes)), min(size, len(votes))):
        for new in itertools.product(values, repeat=len(places)):
            changed = list(votes)
            for place, vote in zip(places, new, strict=True):
                changed[place] = vote
            if winner(tuple(changed), num_classes) != label:
                return True
    return False
