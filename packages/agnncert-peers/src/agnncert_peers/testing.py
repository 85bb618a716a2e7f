"""For authors of divisions: does a division keep its promise?

``check_division`` attacks small random graphs in all ways that a budget speaks of, and compares what a target can
see in each subgraph before and after: the nodes from which it can be reached, with features, ids and edge values
(node task), or the whole subgraph (graph task). A vote whose view has not changed cannot change, whatever the
model is, so the check holds for all models at once.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from agnncert.certificates.budget import COUNTS
from agnncert.certificates.theorem_facts import facts_of
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division, require_division
from agnncert.divisions.stability import require_contract
from agnncert.errors import DivisionError, NotCovered
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import CanonicalGraph, Task, one_graph
from agnncert.graphs.perturbation import Perturbation, keys_of, pair_keys
from agnncert_peers.random_attacks import random_change, random_graph

MOST_OF_USER = 40  # nodes of a part of the user's graph
MOST_TARGETS = 10  # in graphs of more nodes
_NOTHING = "-"  # what a target sees where it sees nothing


def check_division(
    division: Division,
    task: Task = "node",
    trials: int = 200,
    seed: int = 0,
    voting_rule: VotingRule | None = None,
    data: Data | None = None,
) -> None:
    """Tries to catch a division breaking its promise.

    Most graphs have two to eight nodes, every fifth has 12 to 30, and every twentieth has 55 to 90.

    Args:
        division: The division to try; a small ``num_groups`` (below 20) finds faults sooner.
        task: "node" or "graph".
        trials: Number of attacked graphs.
        seed: Seed of the graphs and attacks.
        voting_rule: How votes are added up. If groups that are empty for a target vote for a constant, or abstain, a
            vote also moves when such a group is filled or emptied, and that is looked at too. A prior never moves.
            Defaults to the usual rule.
        data: A graph of your own. Groups must stay the same in it when something else changes, and parts of it are
            attacked instead of every tenth random graph. Defaults to random graphs alone.

    Raises:
        SettingsError: The voting rule makes no sense with this division.
        DivisionError: A change moved more votes than ``votes_moved`` or ``unit_costs`` (if it has them)
            allow, groups depend on more than ids, or a method is missing or returns something of the wrong
            shape. The message holds the attack that shows it.
    """
    require_division(division)
    voting_rule = voting_rule or VotingRule()
    num_classes = max(2, len(voting_rule.class_prior))
    if voting_rule.constant is not None:
        num_classes = max(num_classes, voting_rule.constant + 1)
    voting_rule = voting_rule.under(division.theorem(task), num_classes)
    random = np.random.default_rng(seed)
    if data is not None:
        require_contract(division, _canonical(data, task, division.self_loops))
    for trial in range(trials):
        graph = _graph_of_trial(trial, random, data)
        _check_groups(division, graph, task)
        change = random_change(graph, random)
        if not division.is_per_neighbour:  # else groups are numbered anew, and are known by what is in them
            _check_growth(division, graph, change, task)
        _check_promise(division, graph, change, task, voting_rule)


def _graph_of_trial(trial: int, random: np.random.Generator, data: Data | None) -> Data:
    """Returns a random graph of a size that differs from trial to trial, or a part of the user's graph."""
    if data is not None and trial % 10 == 9:
        return _part_of(data, random)
    if trial % 20 == 12:
        return random_graph(random, num_nodes=int(random.integers(55, 91)))
    if trial % 5 == 4:
        return random_graph(random, num_nodes=int(random.integers(12, 31)))
    return random_graph(random)


def _part_of(data: Data, random: np.random.Generator) -> Data:
    """Returns at most 40 nodes around a random edge of a graph, with all edges among them, under other ids."""
    start = int(data.edge_index[1, int(random.integers(data.num_edges))]) if data.num_edges else 0
    is_near = torch.zeros(data.num_nodes, dtype=torch.bool)
    is_near[start] = True
    for _ in range(3):
        is_near[data.edge_index[0, is_near[data.edge_index[1]]]] = True
    nodes = is_near.nonzero().view(-1).numpy()
    kept = torch.from_numpy(random.permutation(nodes)[:MOST_OF_USER])
    edge_index, edge_weight = subgraph(kept, data.edge_index, data.get("edge_weight"), relabel_nodes=False)
    place = torch.zeros(data.num_nodes, dtype=torch.int64)
    place[kept] = torch.arange(len(kept))
    # Features are names of nodes in a view: they must differ.
    x = torch.from_numpy(random.normal(size=(len(kept), 2))).float()
    part = Data(x=x, edge_index=place[edge_index], node_id=torch.from_numpy(random.permutation(1000)[: len(kept)]))
    if edge_weight is not None:
        part.edge_weight = edge_weight
    return part


def views(
    division: Division,
    data: Data,
    task: Task,
    voting_rule: VotingRule | None = None,
    targets: Collection[int] | None = None,
) -> Iterator[tuple[int | None, dict[Any, str]]]:
    """Yields what every target can see in each subgraph, as text. A node is named by its key, a graph by ``None``.

    A subgraph is named by its number or, if every neighbour has its own group, by the keys of what is in it. Where
    nothing is seen the text is ``"-"``.

    Args:
        division: The division.
        data: The graph.
        task: "node" or "graph".
        voting_rule: How votes are added up, spelled out. Defaults to the usual rule.
        targets: Keys of the targets. Defaults to all nodes.
    """
    graph = _canonical(data, task, division.self_loops)
    groups = division.groups(graph)
    names = _names(division, graph, groups)
    parts = {name: division.subgraph(graph, groups, i) for i, name in enumerate(names)}
    if task == "graph":
        yield None, {name: _graph_view(part) for name, part in parts.items()}
        return
    is_empty = _Emptiness(division, voting_rule)
    for row, key in enumerate(graph.node_key.tolist()):
        if targets is not None and key not in targets:
            continue
        seen = {}
        for name, part in parts.items():
            seen[name] = _NOTHING if is_empty(part, row) else _node_view(part, row)
        yield key, seen


def _graph_view(part: CanonicalGraph) -> str:
    """Returns what a graph classifier can see."""
    num_nodes = part.x.size(0)
    if not num_nodes:
        return _NOTHING
    return _describe(part, torch.arange(num_nodes))


def _names(division: Division, graph: CanonicalGraph, groups: torch.Tensor) -> list[Any]:
    """Returns what each subgraph is known by, whatever happens elsewhere."""
    number = division.num_groups_in(graph)
    if not division.is_per_neighbour:
        return list(range(number))
    if not division.theorem("node").startswith("per-pair"):  # one for each node, in their order
        return list(graph.node_key.tolist()[:number])
    keys = graph.node_key[graph.edge_index].sort(dim=0).values
    return [frozenset(map(tuple, keys[:, groups == index].t().tolist())) for index in range(number)]


class _Emptiness:
    """Tells whether a subgraph is empty for a target, so that the voting rule says what it votes."""

    def __init__(self, division: Division, voting_rule: VotingRule | None) -> None:
        theorem = division.theorem("node")
        constant = None if voting_rule is None else voting_rule.constant
        self.counts = constant is not None and facts_of(theorem).knows_empty_groups
        self.both_ways = theorem.startswith(("edge-centric", "per-pair"))

    def __call__(self, part: CanonicalGraph, row: int) -> bool:
        ends = part.edge_index if self.both_ways else part.edge_index[1]
        return self.counts and part.abstain is None and not bool((ends == row).any())


def _canonical(data: Data, task: Task, keep_self_loops: bool = False) -> CanonicalGraph:
    if task == "node":
        return canonical(data, keep_self_loops)
    return one_graph(canonical_set([data], keep_self_loops), 0)


def _node_view(part: CanonicalGraph, row: int) -> str:
    if part.abstain is not None and bool(part.abstain[row]):
        return _NOTHING
    seen = {row}
    frontier = {row}
    edges = part.edge_index.t().tolist()
    while frontier:
        reached = {u for u, v in edges if v in frontier}
        frontier = reached - seen
        seen |= frontier
    return _describe(part, torch.tensor(sorted(seen)), root=row)


def _describe(part: CanonicalGraph, nodes: torch.Tensor, root: int | None = None) -> str:
    """Describes everything a model could learn about some nodes.

    Features stand for nodes, so their order does not matter.
    """
    name = {}
    for node, features in zip(nodes.tolist(), part.x[nodes].tolist(), strict=True):
        name[node] = tuple(round(entry, 5) for entry in features)
    columns = [value.tolist() for value in part.edge_values.values()]
    arcs = []
    for position, (u, v) in enumerate(part.edge_index.t().tolist()):
        if u in name and v in name:
            values = [column[position] for column in columns]
            arcs.append((name[u], name[v], *values))
    name_of_root = None if root is None else name[root]
    return f"{name_of_root}|{sorted(name.values())}|{sorted(arcs)}"


def _check_groups(division: Division, data: Data, task: Task) -> None:
    graph = _canonical(data, task)
    groups = division.groups(graph)
    number = division.num_groups_in(graph)
    one_each = not groups.is_floating_point() and groups.shape == (graph.num_edges,)
    in_range = not groups.numel() or -1 <= int(groups.min()) <= int(groups.max()) < number
    if not one_each or not in_range:
        raise DivisionError(
            f"groups() returned shape {tuple(groups.shape)} for {graph.num_edges} edges: expected one "
            f"group from 0 to {number - 1} for each."
        )
    if task == "node" and division.subgraph(graph, groups, 0).x.size(0) != graph.num_nodes:
        raise DivisionError(
            "subgraph() dropped nodes: in the node task all nodes stay, so that each can cast its vote."
        )


def _check_growth(division: Division, data: Data, change: Perturbation, task: Task) -> None:
    before = _group_of_arcs(division, data, task)
    after = _group_of_arcs(division, change.apply(data), task)
    for arc, group in before.items():
        if after.get(arc, group) != group:
            raise DivisionError(
                f"the edge {arc} moved from group {group} to {after[arc]} when something else changed "
                f"({change}): groups must depend on ids only."
            )


def _group_of_arcs(division: Division, data: Data, task: Task) -> dict[tuple[int, int], int]:
    graph = _canonical(data, task)
    arcs = graph.node_key[graph.edge_index].t().tolist()
    groups = division.groups(graph).tolist()
    return {(u, v): group for (u, v), group in zip(arcs, groups, strict=True)}


def _check_promise(division: Division, data: Data, change: Perturbation, task: Task, voting_rule: VotingRule) -> None:
    graph = _canonical(data, task)
    row_of = {key: row for row, key in enumerate(graph.node_key.tolist())}
    chosen = _nearest(graph, change)
    after = dict(views(division, change.apply(data), task, voting_rule, chosen))
    for target, seen in views(division, data, task, voting_rule, chosen):
        if target not in after or target in keys_of(change.delete_nodes):
            continue  # nothing is promised to a target that is deleted
        now = after[target]
        moved = [name for name in seen | now if seen.get(name, _NOTHING) != now.get(name, _NOTHING)]
        for name, promised in _promises(division, change, graph, None if target is None else row_of[target]):
            if len(moved) > promised:
                whom = "the graph" if target is None else f"target {target}"
                raise DivisionError(
                    f"{change} moved {len(moved)} votes of {whom} (groups {moved}), but {name} promised "
                    f"at most {promised}."
                )


def _nearest(graph: CanonicalGraph, change: Perturbation) -> set[int]:
    """Returns the keys of all nodes or, of many, of some that the change touches and some others."""
    keys = graph.node_key.tolist()
    if len(keys) <= MOST_TARGETS:
        return set(keys)
    edges = [*change.add_edges, *change.delete_edges, *((u, v) for u, v, _ in change.change_edges)]
    touched = {key for pair in pair_keys(edges) for key in pair} | set(keys_of(change.change_features))
    first = [key for key in keys if key in touched]
    others = [key for key in keys if key not in touched]
    return {*first[: MOST_TARGETS // 2], *others[: MOST_TARGETS // 2]}


def _promises(
    division: Division, change: Perturbation, graph: CanonicalGraph, row: int | None
) -> Iterator[tuple[str, int]]:
    """Yields how many votes a change may move, by the name of what says so."""
    with contextlib.suppress(NotCovered):
        yield "votes_moved", division.votes_moved(change, graph, row)
    price = _price(division.unit_costs, change, graph, row)
    if price is not None:
        yield "unit_costs", price


def _price(costs: Mapping[str, int], change: Perturbation, graph: CanonicalGraph, row: int | None) -> int | None:
    """Returns the votes that the stated costs allow, or ``None`` if the change has a part without a price."""
    cost = change.cost()
    units = {name: getattr(cost, name) for name in COUNTS}
    injected = set(keys_of(change.inject_nodes))
    units["edges_per_injected"] = sum(bool(injected & set(pair)) for pair in pair_keys(change.add_edges))
    if row is not None:
        own = int(graph.node_key[row]) in keys_of(change.change_features)
        units["change_features"] -= own
        units["target_features"] = int(own)
    spent = {name: amount for name, amount in units.items() if amount}
    if any(name not in costs for name in spent):
        return None
    return int(sum(amount * costs[name] for name, amount in spent.items()))
