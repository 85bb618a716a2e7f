"""For authors of divisions: does a division keep its promise?

``check_division`` attacks small random graphs in all ways that a budget speaks of, and compares what a target can
see in each subgraph before and after: the nodes from which it can be reached, with features, ids and edge values
(node task), or the whole subgraph (graph task). A vote whose view has not changed cannot change, whatever the
model is, so the check holds for all models at once.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.certificates.budget import COUNTS
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division, require_division
from agnncert.errors import DivisionError, NotCovered
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import CanonicalGraph, Task, one_graph
from agnncert.graphs.perturbation import Perturbation, keys_of, pair_keys


def check_division(
    division: Division, task: Task = "node", trials: int = 200, seed: int = 0, voting_rule: VotingRule | None = None
) -> None:
    """Tries to catch a division breaking its promise.

    Args:
        division: The division to try; a small ``num_groups`` (below 20) finds faults sooner.
        task: "node" or "graph".
        trials: Number of attacked graphs.
        seed: Seed of the graphs and attacks.
        rule: How votes are added up. If groups that are empty for a target cast a constant, or nothing, a vote also
            moves when such a group is filled or emptied: that is looked at too. A prior moves never.

    Raises:
        SettingsError: The vote makes no sense with this division.
        DivisionError: A change moved more votes than ``votes_moved`` or ``unit_costs`` (if it has them)
            allow, groups depend on more than ids, or a method is missing or returns something of the wrong
            shape. The message holds the attack that shows it.
    """
    require_division(division)
    voting_rule = voting_rule or VotingRule()
    least = max(2, len(voting_rule.class_prior), 0 if voting_rule.constant is None else voting_rule.constant + 1)
    voting_rule = voting_rule.under(division.theorem(task), least)
    random = np.random.default_rng(seed)
    for _ in range(trials):
        graph = random_graph(random)
        _check_groups(division, graph, task)
        change = random_change(graph, random)
        if not division.is_per_neighbour:  # else groups are numbered anew, and are known by what is in them
            _check_growth(division, graph, change, task)
        _check_promise(division, graph, change, task, voting_rule)


def random_graph(random: np.random.Generator, num_features: int = 2) -> Data:
    """A small graph with stable ids, isolated nodes and, sometimes, edge weights or one-way edges."""
    count = int(random.integers(2, 9))
    pairs = np.array([(u, v) for u in range(count) for v in range(u)]).reshape(-1, 2)
    chosen = pairs[random.random(len(pairs)) < random.choice([0.15, 0.4, 0.8])]
    back = chosen[random.random(len(chosen)) < random.choice([0.3, 1.0], p=[0.3, 0.7])]
    edge_index = torch.from_numpy(np.concatenate([chosen, back[:, ::-1]]).T.copy()).long()
    graph = Data(
        x=torch.from_numpy(random.normal(size=(count, num_features))).float(),
        edge_index=edge_index.view(2, -1),
        node_id=torch.from_numpy(random.permutation(1000)[:count]),
    )
    if random.random() < 0.3:
        graph.edge_weight = torch.from_numpy(random.random(graph.num_edges) + 0.5).float()
    return graph


def random_change(graph: Data, random: np.random.Generator, units: int | None = None) -> Perturbation:
    """A random attack of one to three units; injected nodes may join everything."""
    ids = graph.node_id.tolist()
    joined = {frozenset(pair) for pair in graph.node_id[graph.edge_index].t().tolist()}
    free = [(u, v) for k, u in enumerate(ids) for v in ids[:k] if frozenset((u, v)) not in joined]
    edges = [tuple(sorted(pair)) for pair in joined if len(pair) == 2]
    added: list[tuple[int, int]] = []
    deleted: list[tuple[int, int]] = []
    altered: list[tuple[int, int, float]] = []
    injected: dict[int | str, list[float]] = {}
    gone: list[int] = []
    features: dict[int, list[float]] = {}
    width = graph.x.size(1)
    for _ in range(units or int(random.integers(1, 4))):
        kind = random.choice(["add", "delete", "alter", "inject", "remove", "replace", "feature"])
        living = [i for i in ids if i not in gone]
        if kind == "add" and free:
            added.append(free.pop(int(random.integers(len(free)))))
        elif kind in ("delete", "alter") and edges:
            u, v = edges.pop(int(random.integers(len(edges))))
            if kind == "delete":
                deleted.append((u, v))
            else:
                altered.append((u, v, 2))
        elif kind == "inject":
            new = int(random.integers(1000, 2000))
            if new not in injected:
                injected[new] = random.normal(size=width).tolist()
                added += [(new, i) for i in living if random.random() < 0.7]
        elif kind == "remove" and len(living) > 1 and not added and not injected:
            gone.append(int(random.choice(living)))
        elif kind == "replace" and len(living) > 1 and not added and not injected:  # another node under a vacated id
            gone.append(int(random.choice(living)))
            injected[gone[-1]] = random.normal(size=width).tolist()
            free = [pair for pair in free if gone[-1] not in pair]
            added += [(gone[-1], i) for i in living if i != gone[-1] and random.random() < 0.7]
        elif kind == "feature" and living:
            features[int(random.choice(living))] = (10 * random.normal(size=width)).tolist()
    touched = set(gone)
    return Perturbation(
        add_edges=[p for p in added if not (touched - set(injected)) & set(p)],
        delete_edges=[p for p in deleted if not touched & set(p)],
        change_edges=[c for c in altered if not touched & set(c[:2])],
        inject_nodes=injected,
        delete_nodes=gone,
        change_features={i: f for i, f in features.items() if i not in touched},
    )


def views(
    division: Division, data: Data, task: Task, voting_rule: VotingRule | None = None
) -> Iterator[tuple[int | None, dict[Any, str]]]:
    """What every target can see in each subgraph, as text; a target is named by its key, a graph by ``None``.

    A subgraph is named by its number or, if every neighbour has its own group, by the keys of what is in it. Where
    nothing is seen the text is ``"-"``.

    Args:
        division: The division.
        data: The graph.
        task: "node" or "graph".
        vote: How votes are added up, spelled out; as usual by default.
    """
    graph = _canonical(data, task, division.self_loops)
    groups = division.groups(graph)
    names = _names(division, graph, groups)
    parts = {name: division.subgraph(graph, groups, i) for i, name in enumerate(names)}
    if task == "graph":
        whole = {name: torch.arange(part.x.size(0)) for name, part in parts.items()}
        yield None, {name: _describe(part, whole[name]) if len(whole[name]) else "-" for name, part in parts.items()}
        return
    empty = _Emptiness(division, voting_rule)
    for row, key in enumerate(graph.node_key.tolist()):
        yield key, {name: "-" if empty(part, row) else _node_view(part, row) for name, part in parts.items()}


def _names(division: Division, graph: CanonicalGraph, groups: torch.Tensor) -> list[Any]:
    """What each subgraph is known by, whatever happens elsewhere."""
    number = division.num_groups_in(graph)
    if not division.is_per_neighbour:
        return list(range(number))
    if not division.theorem("node").startswith("per-pair"):  # one for each node, in their order
        return list(graph.node_key.tolist()[:number])
    keys = graph.node_key[graph.edge_index].sort(dim=0).values
    return [frozenset(map(tuple, keys[:, groups == index].t().tolist())) for index in range(number)]


class _Emptiness:
    """Says whether a subgraph is empty for a target, so that it casts what the vote says instead of a prediction."""

    def __init__(self, division: Division, voting_rule: VotingRule | None) -> None:
        theorem = division.theorem("node")
        self.counts = (
            voting_rule is not None
            and voting_rule.constant is not None
            and not theorem.startswith(("custom", "gnncert"))
        )
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
        return "-"
    seen, frontier = {row}, {row}
    source, head = part.edge_index.tolist()
    while frontier:
        frontier = {u for u, v in zip(source, head, strict=True) if v in frontier} - seen
        seen |= frontier
    return _describe(part, torch.tensor(sorted(seen)), root=row)


def _describe(part: CanonicalGraph, nodes: torch.Tensor, root: int | None = None) -> str:
    """Everything a model could learn about some nodes. Features stand for nodes, so their order does not matter."""
    name = {n: tuple(round(f, 5) for f in x) for n, x in zip(nodes.tolist(), part.x[nodes].tolist(), strict=True)}
    ends, values = part.edge_index.t().tolist(), [value.tolist() for value in part.edge_values.values()]
    inside = [(k, name[u], name[v]) for k, (u, v) in enumerate(ends) if u in name and v in name]
    arcs = sorted((u, v, *(value[k] for value in values)) for k, u, v in inside)
    return f"{None if root is None else name[root]}|{sorted(name.values())}|{arcs}"


def _check_groups(division: Division, data: Data, task: Task) -> None:
    graph = _canonical(data, task)
    groups = division.groups(graph)
    number = division.num_groups_in(graph)
    one_each = not groups.is_floating_point() and groups.shape == (graph.num_edges,)
    if not one_each or (groups.numel() and not -1 <= int(groups.min()) <= int(groups.max()) < number):
        raise DivisionError(
            f"groups() returned shape {tuple(groups.shape)} for {graph.num_edges} edges: expected one "
            f"group from 0 to {number - 1} for each."
        )
    if task == "node" and division.subgraph(graph, groups, 0).x.size(0) != graph.num_nodes:
        raise DivisionError(
            "subgraph() dropped nodes: in the node task all nodes stay, so that each can cast its vote."
        )


def _check_growth(division: Division, data: Data, change: Perturbation, task: Task) -> None:
    before, after = _group_of_arcs(division, data, task), _group_of_arcs(division, change.apply(data), task)
    for arc, group in before.items():
        if after.get(arc, group) != group:
            raise DivisionError(
                f"the edge {arc} moved from group {group} to {after[arc]} when something else changed "
                f"({change}): groups must depend on ids only."
            )


def _group_of_arcs(division: Division, data: Data, task: Task) -> dict[tuple[int, int], int]:
    graph = _canonical(data, task)
    keys = graph.node_key[graph.edge_index].t().tolist()
    return {(u, v): g for (u, v), g in zip(keys, division.groups(graph).tolist(), strict=True)}


def _check_promise(division: Division, data: Data, change: Perturbation, task: Task, voting_rule: VotingRule) -> None:
    after = dict(views(division, change.apply(data), task, voting_rule))
    graph = _canonical(data, task)
    for row, (target, seen) in enumerate(views(division, data, task, voting_rule)):
        if target not in after or target in keys_of(change.delete_nodes):
            continue  # nothing is promised to a target that is deleted
        now = after[target]
        moved = [name for name in seen | now if seen.get(name, "-") != now.get(name, "-")]
        for name, promised in _promises(division, change, graph, row if task == "node" else None):
            if len(moved) > promised:
                whom = "the graph" if target is None else f"target {target}"
                raise DivisionError(
                    f"{change} moved {len(moved)} votes of {whom} (groups {moved}), but {name} promised "
                    f"at most {promised}."
                )


def _promises(
    division: Division, change: Perturbation, graph: CanonicalGraph, row: int | None
) -> Iterator[tuple[str, int]]:
    with contextlib.suppress(NotCovered):
        yield "votes_moved", division.votes_moved(change, graph, row)
    price = _price(division.unit_costs, change, graph, row)
    if price is not None:
        yield "unit_costs", price


def _price(costs: Mapping[str, int], change: Perturbation, graph: CanonicalGraph, row: int | None) -> int | None:
    """Votes that the stated costs allow, or ``None`` if the change has a part without a price."""
    cost = change.cost()
    units = {name: getattr(cost, name) for name in COUNTS}
    injected = set(keys_of(change.inject_nodes))
    units["edges_per_injected"] = sum(bool(injected & set(pair)) for pair in pair_keys(change.add_edges))
    if row is not None:
        own = int(graph.node_key[row]) in keys_of(change.change_features)
        units |= {"change_features": units["change_features"] - own, "target_features": int(own)}
    if any(amount and name not in costs for name, amount in units.items()):
        return None
    return int(sum(amount * costs[name] for name, amount in units.items() if amount))
