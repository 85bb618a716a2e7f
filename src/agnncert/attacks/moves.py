"""Moves: the edits worth trying against one target, each with the groups whose ballots it may move.

``NodeMoves`` and ``GraphMoves`` list edits for the two tasks: new edges, injected nodes, deletions, edge values,
features. Injected nodes have no id at first. After all edits have been tried, ``with_ids`` gives them ids that lead
their edges to the groups where they gain most.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.attacks.adversarial_features import AdversarialFeatures
from agnncert.attacks.edits import INJECTED, Edit, GraphSubgraphs, NodeSubgraphs, TriedEdit
from agnncert.attacks.injected_ids import Priced, UnusedIds, ids_at_node, ids_by_group, ids_in_graph, pair_groups
from agnncert.attacks.problem import Problem
from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.proof.budget import Budget

Candidate = tuple[Edit, list[int]]  # an edit, and the groups whose ballots it may move
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)

# How many of each to try, in the node task.
NEIGHBOURS_PER_GROUP = 2
INFLUENTIAL_NODES = 16
IDS_FOR_NODES = 512
# The same in the graph task.
PAIRS_TO_HASH = 2000
PAIRS_PER_GROUP = 4
EDGES_DELETED_AT_ONCE = 8
NODES_TO_CHANGE = 40
IDS_FOR_GRAPHS = 256


class NodeMoves:
    """Edits against target nodes."""

    def __init__(self, problem: Problem, features: AdversarialFeatures) -> None:
        self.problem, self.features, self.division = problem, features, problem.built_in()
        self.edge_values = problem.extreme_edge_values()
        self.neighbours = problem.neighbours
        self._subgraphs = NodeSubgraphs(problem)
        self._unused = UnusedIds(problem.graph.node_key, problem.has_ids(), IDS_FOR_NODES)

    def subgraphs(self, row: int) -> NodeSubgraphs:
        """Where edits against this target are tried."""
        return self._subgraphs

    def unused_ids(self, row: int) -> UnusedIds:
        """Ids that injected nodes can have."""
        return self._unused

    def candidates(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        """Edits to try, of the kinds that the budget allows; injected nodes have no id yet."""
        if budget.add_edges:
            yield from self._new_neighbours(row, rivals)
        if budget.injected_edges:
            yield from self._injections(row, rivals, budget)
        if budget.delete_edges:
            yield from self._deletions(row)
        for group in self.neighbours.groups(row) if budget.change_edges else ():
            for u, value in itertools.product(self.neighbours.senders(group, row), self.edge_values):
                yield Edit("change_edges", change_edges=((u, row, value),)), [group]
        for u, groups in self._influential(row) if budget.delete_nodes or budget.change_features else ():
            if budget.delete_nodes:
                yield Edit("delete_nodes", delete_nodes=(u,)), groups
            if budget.change_features:
                for features in self.features.best_for(rivals, 2):
                    yield Edit("change_features", change_features=((u, features),)), groups
        if budget.target_features:
            gated, everywhere = self._subgraphs.gated, list(range(self.division.num_groups))
            groups = [self._subgraphs.group_of[row]] if gated else everywhere
            for features in self.features.best_for(rivals, 2):
                yield Edit("target_features", change_features=((row, features),)), groups

    def _new_neighbours(self, row: int, rivals: Sequence[int]) -> Iterator[Candidate]:
        joined = {row, *(u for group in self.neighbours.groups(row) for u in self.neighbours.senders(group, row))}
        for rival in rivals:
            strong = self.features.strong[rival][: 24 * self.division.num_groups].tolist()
            free = [u for u in strong if u not in joined]
            for u, group in _first_of_each(zip(free, self._groups_with(row, free), strict=True), NEIGHBOURS_PER_GROUP):
                yield Edit("add_edges", add_edges=((u, row),)), [group]

    def _groups_with(self, row: int, others: list[int]) -> list[int]:
        """Group in which the target would get messages from each of these nodes."""
        if isinstance(self.division, NodeCentric):
            return [self._subgraphs.group_of[u] for u in others]
        keys = self.problem.graph.node_key
        return pair_groups(self.division, keys[[row]].numpy(), keys[others])[0].tolist()  # type: ignore[no-any-return]

    def _injections(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        for rival in rivals:
            best = self.features.best[rival]
            for features, group in itertools.product(best, range(self.division.num_groups)):
                edges = ((INJECTED, row),)
                yield Edit("inject_nodes", add_edges=edges, injected=features, injected_group=group), [group]
            if isinstance(self.division, EdgeCentric) and budget.edges_per_injected > 1:
                # A further edge of the injected node can reach the target through a neighbour of the target.
                for group in self.neighbours.groups(row):
                    for u in self.neighbours.senders(group, row)[:4]:
                        yield Edit("inject_nodes", add_edges=((INJECTED, u),), injected=best[0]), [group]

    def _deletions(self, row: int) -> Iterator[Candidate]:
        for group in self.neighbours.groups(row):
            senders = self.neighbours.senders(group, row)
            own = tuple((u, row) for u in senders)
            yield from ((Edit("delete_edges", delete_edges=(pair,)), [group]) for pair in own)
            if len(own) > 1:
                yield Edit("delete_edges", delete_edges=own), [group]
            beyond = ((u, w) for u in senders[:4] for w in self.neighbours.senders(group, u) if w not in (u, row))
            pairs = sorted({(min(pair), max(pair)) for pair in beyond})[:4]
            yield from ((Edit("delete_edges", delete_edges=(pair,)), [group]) for pair in pairs)

    def _influential(self, row: int) -> list[tuple[int, list[int]]]:
        """Nodes that can reach the target, its neighbours first, and the groups in which they can."""
        groups_of: dict[int, list[int]] = {}
        direct: set[int] = set()
        for group in self.neighbours.groups(row):
            direct.update(self.neighbours.senders(group, row))
            for u in self.neighbours.reaching_in(group, row)[1:]:
                groups_of.setdefault(u, []).append(group)
        ordered = sorted(groups_of.items(), key=lambda item: (item[0] not in direct, -len(item[1])))
        return ordered[:INFLUENTIAL_NODES]

    def ids_by_pair(
        self, row: int, new: Sequence[Priced], division: EdgeCentric, most: float, count: int
    ) -> Iterator[TriedEdit]:
        """Injected nodes under ids that lead their edges to the wanted groups (edge-centric)."""
        # By the group whose ballot it moves, and the node it is joined to: the target, or a neighbour.
        best = _best_by(lambda attempt: (next(iter(attempt.ballots)), attempt.edit.add_edges[0][1]), new)
        direct = {group: priced for (group, joined), priced in best.items() if joined == row}
        through = {key: priced for key, priced in best.items() if key[1] != row and priced[0] > 0}
        neighbours = sorted({u for _, u in through})
        groups = self._unused.pair_groups(division, self.problem.graph.node_key[[row, *neighbours]])
        return ids_at_node(self._unused, groups, neighbours, direct, through, division.num_groups, most, count)


class GraphMoves:
    """Edits against target graphs."""

    def __init__(self, problem: Problem, features: AdversarialFeatures, seed: int = 0) -> None:
        self.problem, self.features, self.division = problem, features, problem.built_in()
        self.edge_values = problem.extreme_edge_values()
        self.seed = seed
        self._subgraphs: dict[int, GraphSubgraphs] = {}

    def subgraphs(self, row: int) -> GraphSubgraphs:
        """Where edits against this target are tried."""
        if row not in self._subgraphs:
            self._subgraphs[row] = GraphSubgraphs(self.problem, row)
        return self._subgraphs[row]

    def unused_ids(self, row: int) -> UnusedIds:
        """Ids that injected nodes can have."""
        return UnusedIds(self.subgraphs(row).graph.node_key, self.problem.has_ids(row), IDS_FOR_GRAPHS)

    def candidates(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        """Edits to try, of the kinds that the budget allows; injected nodes have no id yet."""
        subgraphs, random = self.subgraphs(row), np.random.default_rng([self.seed, row])
        if budget.add_edges:
            yield from self._new_edges(subgraphs, random)
        if budget.inject_nodes:
            yield from self._injections(subgraphs, rivals, budget)
        for group, edges in enumerate(subgraphs.edges):
            pairs = sorted({(min(u, v), max(u, v)) for u, v, _ in edges})
            if budget.delete_edges and 1 < len(pairs) <= EDGES_DELETED_AT_ONCE:
                yield Edit("delete_edges", delete_edges=tuple(pairs)), [group]
            for pair in _some(pairs, PAIRS_PER_GROUP, random):
                if budget.delete_edges:
                    yield Edit("delete_edges", delete_edges=(pair,)), [group]
                for value in self.edge_values if budget.change_edges else ():
                    yield Edit("change_edges", change_edges=((*pair, value),)), [group]
        nodes = _some(range(subgraphs.graph.num_nodes), NODES_TO_CHANGE, random)
        groups_of = {u: groups for u in nodes if (groups := _groups_of(subgraphs, u))}
        if budget.delete_nodes and subgraphs.graph.num_nodes > 1:
            for u, groups in groups_of.items():
                yield Edit("delete_nodes", delete_nodes=(u,)), groups
        if budget.change_features:
            for (u, groups), features in itertools.product(groups_of.items(), self.features.best_for(rivals, 2)):
                yield Edit("change_features", change_features=((u, features),)), groups

    def _new_edges(self, subgraphs: GraphSubgraphs, random: np.random.Generator) -> Iterator[Candidate]:
        joined = {(min(arc), max(arc)) for arc in subgraphs.graph.edge_index.t().tolist()}
        if isinstance(self.division, NodeCentric):
            for group, members in enumerate(subgraphs.members):
                pairs = [(u, v) for k, u in enumerate(members[:60]) for v in members[:k] if (v, u) not in joined]
                for pair in _some(pairs, PAIRS_PER_GROUP, random):
                    yield Edit("add_edges", add_edges=(pair,)), [group]
            return
        low, high = np.triu_indices(subgraphs.graph.num_nodes, 1)
        sample = random.permutation(len(low))[:PAIRS_TO_HASH]
        edges = torch.from_numpy(np.stack([low[sample], high[sample]]))
        groups = self.division.groups(Data(edge_index=edges, node_key=subgraphs.graph.node_key)).tolist()
        grouped = zip(zip(*edges.tolist(), strict=True), groups, strict=True)
        free = ((pair, group) for pair, group in grouped if pair not in joined)
        for pair, group in _first_of_each(free, PAIRS_PER_GROUP):
            yield Edit("add_edges", add_edges=(pair,)), [group]

    def _injections(self, subgraphs: GraphSubgraphs, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        most = int(min(budget.edges_per_injected, subgraphs.graph.num_nodes))
        rows = self.features.best_for(rivals)
        for (group, members), features in itertools.product(enumerate(subgraphs.members), rows):
            if isinstance(self.division, NodeCentric):
                for linked in {0, min(most, len(members))}:
                    edges = tuple((INJECTED, u) for u in members[:linked])
                    yield Edit("inject_nodes", add_edges=edges, injected=features, injected_group=group), [group]
            elif most:
                # One node stands for all that might be joined; which of them really are depends on the id chosen later.
                edges = ((INJECTED, members[0] if members else 0),)
                yield Edit("inject_nodes", add_edges=edges, injected=features), [group]

    def ids_by_pair(
        self, row: int, new: Sequence[Priced], division: EdgeCentric, most: float, count: int
    ) -> Iterator[TriedEdit]:
        """Injected nodes under ids that lead their edges to the wanted groups (edge-centric)."""
        graph, unused = self.subgraphs(row).graph, self.unused_ids(row)
        groups = unused.pair_groups(division, graph.node_key)
        return ids_in_graph(unused, groups, new, division.num_groups, int(min(most, graph.num_nodes)), count)


def with_ids(
    moves: NodeMoves | GraphMoves,
    row: int,
    tried: Sequence[TriedEdit],
    before: Sequence[int],
    label: int,
    rival: int,
    budget: Budget,
) -> list[TriedEdit]:
    """The edits, with injected nodes under ids that lead their edges to the wanted groups."""
    others = [attempt for attempt in tried if attempt.edit.injected is None]
    new = [(attempt.gain(before, label, rival), attempt) for attempt in tried if attempt.edit.injected is not None]
    if not new:
        return others
    division, unused = moves.division, moves.unused_ids(row)
    count = int(min(budget.inject_nodes, division.num_groups))
    if isinstance(division, EdgeCentric):
        return [*others, *moves.ids_by_pair(row, new, division, budget.edges_per_injected, count)]
    best = _best_by(lambda attempt: attempt.edit.injected_group, new)
    return [*others, *ids_by_group(unused, unused.node_groups(division), best, count)]


def _best_by(key: Callable[[TriedEdit], Key], priced: Sequence[Priced]) -> dict[Key, Priced]:
    """The edit with the largest gain for each key; edits with a negative gain are left out."""
    best: dict[Key, Priced] = {}
    for gain, attempt in priced:
        if gain > best.get(key(attempt), (-1, attempt))[0]:
            best[key(attempt)] = (gain, attempt)
    return best


def _first_of_each(items: Iterable[tuple[Item, int]], count: int) -> Iterator[tuple[Item, int]]:
    """The first few items of each group; every item comes with its group."""
    seen: dict[int, int] = {}
    for item, group in items:
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= count:
            yield item, group


def _groups_of(subgraphs: GraphSubgraphs, node: int) -> list[int]:
    """Groups whose subgraph a node is in."""
    if subgraphs.node_centric:
        return [subgraphs.group_of[node]]
    return [group for group, members in enumerate(subgraphs.members) if node in members]


def _some(items: Sequence[Item], count: int, random: np.random.Generator) -> list[Item]:
    """At most ``count`` items, drawn at random if there are more."""
    if len(items) <= count:
        return list(items)
    return [items[int(k)] for k in random.permutation(len(items))[:count]]
