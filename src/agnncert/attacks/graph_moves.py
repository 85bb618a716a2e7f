"""Edits worth trying against a whole graph, by the subgraphs they reach."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from agnncert.attacks.adversarial_features import Arsenal
from agnncert.attacks.edits import NEW, Edit, Option
from agnncert.attacks.injected_ids import FreshIds, GraphWiring, Priced, armed_by_node
from agnncert.attacks.problem import Scene, edge_values_to_try
from agnncert.attacks.try_edits import GraphStage
from agnncert.divisions import NodeCentric
from agnncert.graphs import hashing
from agnncert.graphs.graph import node_keys
from agnncert.proof.budget import Budget

Item = TypeVar("Item")
Draft = tuple[Edit, list[int]]  # an edit, and the groups whose ballots it may move

PAIRS_TO_HASH = 2000
PAIRS_PER_GROUP = 4
ALL_OF_A_GROUP = 8
NODES_TO_CHANGE = 40
IDS_TO_TRY = 256


class GraphMoves:
    """What can be done to one graph after another."""

    def __init__(self, scene: Scene, arsenal: Arsenal, seed: int = 0) -> None:
        self.scene, self.arsenal, self.division = scene, arsenal, scene.built_in()
        self.alters = edge_values_to_try(scene)
        self.seed = seed
        self._stages: dict[int, GraphStage] = {}

    def stage_of(self, row: int) -> GraphStage:
        """Where trials of this target are built."""
        if row not in self._stages:
            self._stages[row] = GraphStage(self.scene.graph, row, self.division)
        return self._stages[row]

    def fresh_of(self, row: int) -> FreshIds:
        """Ids that injected nodes can have."""
        return FreshIds(self.stage_of(row).graph.node_key, self.scene.has_ids(row), IDS_TO_TRY)

    def drafts(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Draft]:
        """Edits to try, within what the budget has a field for; injected nodes have no id yet."""
        stage, random = self.stage_of(row), np.random.default_rng([self.seed, row])
        pairs = [sorted({(min(u, v), max(u, v)) for u, v, _ in arcs}) for arcs in stage.arcs]
        if budget.add_edges:
            yield from self._new_edges(stage, random)
        if budget.inject_nodes:
            yield from self._injections(stage, rivals, budget)
        for group, here in enumerate(pairs):
            if budget.delete_edges and 1 < len(here) <= ALL_OF_A_GROUP:
                yield Edit("delete_edges", units=len(here), remove=tuple(here)), [group]
            for pair in _some(here, PAIRS_PER_GROUP, random):
                if budget.delete_edges:
                    yield Edit("delete_edges", remove=(pair,)), [group]
                if budget.change_edges:
                    yield from ((Edit("change_edges", alter=((*pair, value),)), [group]) for value in self.alters)
        nodes = _some(range(stage.graph.num_nodes), NODES_TO_CHANGE, random)
        if budget.delete_nodes and stage.graph.num_nodes > 1:
            yield from ((Edit("delete_nodes", drop=(u,)), where) for u in nodes if (where := _groups_of(stage, u)))
        if budget.change_features:
            for u in nodes:
                where = _groups_of(stage, u)
                rows = [r for k in rivals for r in self.arsenal.best[k][:2]]
                yield from ((Edit("change_features", paint=((u, r),)), where) for r in rows if where)

    def _new_edges(self, stage: GraphStage, random: np.random.Generator) -> Iterator[Draft]:
        joined = set(map(tuple, stage.graph.edge_index.t().tolist()))
        if isinstance(self.division, NodeCentric):
            for group, members in enumerate(stage.members):
                free = [
                    (u, v) for k, u in enumerate(members[:60]) for v in members[:k] if not {(u, v), (v, u)} & joined
                ]
                yield from ((Edit("add_edges", add=(pair,)), [group]) for pair in _some(free, PAIRS_PER_GROUP, random))
            return
        count = stage.graph.num_nodes
        low, high = np.triu_indices(count, 1)
        some = random.permutation(len(low))[:PAIRS_TO_HASH]
        keys = node_keys(stage.graph).numpy().view(np.uint64)
        groups = hashing.edge_groups(keys[low[some]], keys[high[some]], self.division.num_groups, self.division.hash)
        seen: dict[int, int] = {}
        for u, v, group in zip(low[some].tolist(), high[some].tolist(), groups.tolist(), strict=True):
            if (u, v) not in joined and (v, u) not in joined and seen.get(group, 0) < PAIRS_PER_GROUP:
                seen[group] = seen.get(group, 0) + 1
                yield Edit("add_edges", add=((u, v),)), [group]

    def _injections(self, stage: GraphStage, rivals: Sequence[int], budget: Budget) -> Iterator[Draft]:
        most = int(min(budget.edges_per_injected, stage.graph.num_nodes))
        looks = [r for k in rivals for r in self.arsenal.best[k]]
        for group, r in itertools.product(range(self.division.num_groups), looks):
            members = stage.members[group]
            if isinstance(self.division, NodeCentric):
                for linked in {0, min(most, len(members))}:
                    add = tuple((NEW, u) for u in members[:linked])
                    yield Edit("inject_nodes", add=add, new=r, new_group=group), [group]
            elif most:
                # One node stands for all that might be joined; which ones can be is for the id to say.
                yield Edit("inject_nodes", add=((NEW, members[0] if members else 0),), new=r), [group]

    def armed(
        self, row: int, options: Sequence[Option], before: Sequence[int], label: int, rival: int, budget: Budget
    ) -> list[Option]:
        """The options, with injected nodes under ids that lead their edges to the wanted groups."""
        rest = [option for option in options if option.edit.new is None]
        new = [(option.gain(before, label, rival), option) for option in options if option.edit.new is not None]
        if not new:
            return rest
        graph = self.stage_of(row).graph
        count = int(min(budget.inject_nodes, self.division.num_groups))
        fresh = self.fresh_of(row)
        if isinstance(self.division, NodeCentric):
            return [*rest, *armed_by_node(_best_in_each(new), fresh, fresh.node_groups(self.division), count)]
        groups = fresh.pair_groups(self.division, graph.node_key)
        most = int(min(budget.edges_per_injected, graph.num_nodes))
        return [*rest, *GraphWiring(groups, new, self.division.num_groups, most).nodes(fresh, count)]


def _best_in_each(new: Sequence[Priced]) -> dict[int, Priced]:
    best: dict[int, Priced] = {}
    for gain, option in new:
        group = option.edit.new_group
        if gain > best.get(group, (-1, option))[0]:
            best[group] = (gain, option)
    return best


def _groups_of(stage: GraphStage, node: int) -> list[int]:
    if stage.node_centric:
        return [stage.group_of[node]]
    return [group for group, members in enumerate(stage.members) if node in members]


def _some(items: Sequence[Item], count: int, random: np.random.Generator) -> list[Item]:
    if len(items) <= count:
        return list(items)
    return [items[int(k)] for k in random.permutation(len(items))[:count]]
