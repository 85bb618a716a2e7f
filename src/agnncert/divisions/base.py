"""What a division is, and what the built-in ones share.

A division splits a graph into ``num_groups`` subgraphs so that a small change reaches few of them. Groups depend on ids
alone: whatever an attacker does elsewhere in the graph, an edge stays in its group.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from agnncert.errors import DivisionError, NotCovered
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, Task, node_keys
from agnncert.graphs.perturbation import Perturbation, keys_of, pair_keys


@runtime_checkable
class Division(Protocol):
    """What ``certify`` asks of a division; a user's own needs nothing more.

    Two more members are optional. ``unit_costs`` maps fields of ``Budget`` to the number of ballots that one unit moves
    at most; budgets with other fields are then refused. ``same_as(graph, groups)``, of shape ``[num_groups]``, names
    for each subgraph the first one that is the very same graph; the fast engine then evaluates only these.
    """

    @property
    def num_groups(self) -> int:
        """Number of subgraphs T."""

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of every directed edge, shape ``[num_edges]``; −1 for an edge in no subgraph. Depends on ids only."""

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """What the model sees when casting ballot ``index``.

        In the node task all nodes stay, in their order, and ``abstain`` may mark nodes that cast no ballot here. In the
        graph task (``graph.task == "graph"``) nodes may be dropped; a subgraph without nodes casts no ballot.
        """

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Upper bound on the ballots of ``target`` that ``change`` can alter.

        Args:
            change: What the attacker does.
            graph: The graph before the change.
            target: Row of the target node, or ``None`` in the graph task.

        Raises:
            NotCovered: ``change`` touches something this division proves nothing about.
        """


@dataclass(frozen=True)
class DisjointUnion:
    """All subgraphs at once, as one disjoint union of ``p`` copies of nodes and ``m`` edges, ordered by cell.

    A *cell* is one subgraph: its group in the node task, ``graph * num_groups + group`` in the graph task. Copies that
    would neither cast a ballot of their own nor send a message are left out.

    Attributes:
        cell: Subgraph of each copy, ascending, shape ``[p]``.
        node: Which node it is a copy of, shape ``[p]``.
        edge_index: Edges between copies, shape ``[2, m]``.
        edge: Which edge of the graph each one is, shape ``[m]``.
        votes: Whether the copy casts a ballot that may differ from the node's default, shape ``[p]``.
        reached: Whether the copy has an edge through which a change can reach it (graph task: whether its subgraph can
            have an edge at all), shape ``[p]``.
        blank: Whether the copy's features are hidden, shape ``[p]``, or ``None`` if none are.
    """

    cell: Tensor
    node: Tensor
    edge_index: Tensor
    edge: Tensor
    votes: Tensor
    reached: Tensor
    blank: Tensor | None = None


def rule_of(division: Division, task: Task) -> tuple[str, dict[str, int]]:
    """Which theorem speaks about a division, and the numbers it needs."""
    # Asked of the class, so that a wrapper which forwards attributes to a built-in division inherits no theorem.
    rule = getattr(type(division), "rule", None)
    if rule is None:
        return f"custom/{task}", dict(getattr(division, "unit_costs", {}))
    if is_per_neighbour(division):
        return {"edge-centric": f"per-pair/{task}", "node-centric": f"per-neighbour/{task}"}[rule], {}
    if rule == "node-centric" and task == "node" and getattr(division, "gate_features", False):
        rule = "gated"
    return f"{rule}/{task}", dict(getattr(division, "parameters", {}))


def is_per_neighbour(division: Any) -> bool:
    """Whether every neighbour has a group of its own: ``num_groups=math.inf``."""
    return bool(division.num_groups == math.inf)


def num_groups_in(division: Any, graph: CanonicalGraph) -> int:
    """How many subgraphs a graph is divided into; in a joined set, the most that one of its graphs is."""
    return division.groups_in(graph) if is_per_neighbour(division) else division.num_groups  # type: ignore[no-any-return]


def number_within(graph: CanonicalGraph, owner: Tensor) -> Tensor:
    """Numbers things from 0 on, in each graph of a joined set anew.

    Args:
        graph: The graph, or a joined set.
        owner: A node of the graph that each thing belongs to, ascending by graph.
    """
    number = torch.arange(len(owner))
    if graph.batch is None:
        return number
    of_graph = graph.batch[owner]
    counts = torch.bincount(of_graph, minlength=int(graph.batch[-1]) + 1 if len(graph.batch) else 0)
    return number - (torch.cumsum(counts, 0) - counts)[of_graph]


def require_division(division: Any) -> None:
    """Refuses what is no division.

    Raises:
        DivisionError: It is a name, a class, or lacks a method of ``Division``.
    """
    example = "a division such as ac.NodeCentric(num_groups=60)"
    if isinstance(division, type):
        raise DivisionError(f"{division.__name__} is a class, expected {example}: pass an instance of it.")
    if division is None or isinstance(division, str | int):
        raise DivisionError(f"division={division!r}: expected {example}.")
    lacking = [name for name in ("num_groups", "groups", "subgraph", "votes_moved") if not hasattr(division, name)]
    if lacking:
        kind = type(division).__name__
        raise DivisionError(f"a {kind} is no division, it has no {', '.join(lacking)}: expected {example}.")


def check_settings(division: Any, *counts: str) -> None:
    """Refuses numbers of groups and hashes that make no sense; numpy's integers become ordinary ones.

    Args:
        division: A frozen dataclass with a field ``hash``.
        counts: Names of its fields that are numbers of groups.
    """
    for name in counts:
        hashing.check_settings(getattr(division, name), division.hash)
        object.__setattr__(division, name, int(getattr(division, name)))


def is_graph_task(graph: CanonicalGraph) -> bool:
    """Whether ``graph`` (checked) belongs to a graph classification task."""
    return getattr(graph, "task", "node") == "graph"  # groups of a plain Data can be asked for, too


def disjoint_union(
    graph: CanonicalGraph, cells: Tensor, copies: Tensor | None = None, edges: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Puts every edge, with copies of its endpoints, into the edge's cell.

    Args:
        graph: The graph.
        cells: Cell of every edge, shape ``[num_edges]``.
        copies: Further copies of nodes to put in, each as ``cell * num_nodes + node``.
        edges: Positions of the edges to put in, if these are not all; ``cells`` is then about these.

    Returns:
        ``cell``, ``node``, ``edge_index`` and ``edge``, as in :class:`Pieces`.
    """
    ascending = bool((cells[1:] >= cells[:-1]).all())
    order = torch.arange(len(cells)) if ascending else stable_order(cells)
    edge = order if edges is None else edges[order].long()
    ends = cells[order] * graph.num_nodes + graph.edge_index[:, edge]
    wanted = ends.view(-1) if copies is None else torch.cat([ends.view(-1), copies])
    copy, where = _numbered(wanted)
    cell = torch.div(copy, graph.num_nodes, rounding_mode="floor")
    return cell, copy - cell * graph.num_nodes, where[: ends.numel()].view(2, -1), edge


def stable_order(cells: Tensor) -> Tensor:
    """As ``torch.argsort(cells, stable=True)``, by counting if numbers are small."""
    low, high = (int(bound) for bound in cells.aminmax()) if len(cells) else (0, 0)
    if low >= 0 and high < 2**16:
        return torch.from_numpy(np.argsort(cells.numpy().astype(np.uint16), kind="stable"))
    return torch.argsort(cells, stable=True)


def _numbered(values: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct ones among whole numbers, ascending, and the place of each value among them."""
    low, high = (int(bound) for bound in values.aminmax()) if len(values) else (0, 0)
    if high - low > 4 * len(values):  # too few to tick them off a list of all numbers in between
        # As torch.unique, in half the time: numpy sorts with the processor's widest instructions.
        order = np.argsort(values.numpy())
        ascending = values.numpy()[order]
        first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.cumsum(first) - 1
        return torch.from_numpy(ascending[first]), torch.from_numpy(number)
    seen = torch.zeros(high - low + 1, dtype=torch.bool)
    seen[values - low] = True
    distinct = seen.nonzero().view(-1)
    place = torch.empty(len(seen), dtype=torch.int64)
    place[distinct] = torch.arange(len(distinct))
    return distinct + low, place[values - low]


def touched_nodes(change: Perturbation) -> set[int]:
    """Keys of the nodes that a change injects, deletes or gives other features."""
    return {*keys_of(change.inject_nodes), *keys_of(change.delete_nodes), *keys_of(change.change_features)}


def touched_pairs(change: Perturbation) -> list[tuple[int, int]]:
    """Keys of the pairs of nodes between which a change adds, deletes or alters an edge."""
    altered = [(u, v) for u, v, _ in change.change_edges]
    return pair_keys([*change.add_edges, *change.delete_edges, *altered])


def touched_edge_groups(change: Perturbation, num_groups: int, hash: str) -> set[int]:
    """Groups of the pairs of :func:`touched_pairs` where edges are divided by their pair of ids."""
    pairs = touched_pairs(change)
    if not pairs:
        return set()
    keys = np.array(pairs, dtype=np.int64).view(np.uint64)
    return set(hashing.edge_groups(keys[:, 0].copy(), keys[:, 1].copy(), num_groups, hash).tolist())


def require_covered(change: Perturbation, graph: CanonicalGraph, target: int | None, target_features: bool) -> None:
    """Refuses changes about which the edge- and node-centric theorems say nothing.

    Args:
        change: What the attacker did.
        graph: The graph.
        target: Row of the target, or ``None`` in the graph task.
        target_features: Whether the division covers changes of the target's own features.

    Raises:
        NotCovered: Says what is not covered, and why.
    """
    if change.delete_nodes and not graph.stable_ids:
        raise NotCovered(
            "the change deletes nodes of a graph whose ids are row numbers: all later nodes are renamed. "
            "Give it node_id."
        )
    if target is None:
        return
    # Another node may share the target's key: then too much is refused, never too little.
    own = int(node_keys(graph)[target])
    if own in keys_of(change.delete_nodes):
        raise NotCovered("the change deletes the target itself: no certificate speaks of a node that is gone.")
    if own in keys_of(change.change_features) and not target_features:
        raise NotCovered(
            "the change alters the target's own features, which take part in every ballot of the target. "
            "NodeCentric(gate_features=True) covers this."
        )
