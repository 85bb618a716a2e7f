"""Small random graphs and random attacks on them, to try divisions with."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.graphs.perturbation import Perturbation

_KINDS = ("add", "delete", "alter", "inject", "remove", "replace", "feature")
_FIRST_NEW_ID = 1000  # ids of the graph lie below


def random_graph(random: np.random.Generator, num_features: int = 2, num_nodes: int | None = None) -> Data:
    """Draws a small graph with stable ids, isolated nodes and, sometimes, edge weights or one-way edges.

    Args:
        random: Source of randomness.
        num_features: Number of features.
        num_nodes: Number of nodes. Defaults to two to eight.
    """
    count = num_nodes or int(random.integers(2, 9))
    pairs = np.array([(u, v) for u in range(count) for v in range(u)]).reshape(-1, 2)
    joined = pairs[random.random(len(pairs)) < random.choice([0.15, 0.4, 0.8])]
    back = joined[random.random(len(joined)) < random.choice([0.3, 1.0], p=[0.3, 0.7])]
    edge_index = torch.from_numpy(np.concatenate([joined, back[:, ::-1]]).T.copy()).long()
    graph = Data(
        x=torch.from_numpy(random.normal(size=(count, num_features))).float(),
        edge_index=edge_index.view(2, -1),
        node_id=torch.from_numpy(random.permutation(_FIRST_NEW_ID)[:count]),
    )
    if random.random() < 0.3:
        graph.edge_weight = torch.from_numpy(random.random(graph.num_edges) + 0.5).float()
    return graph


def random_change(graph: Data, random: np.random.Generator, units: int | None = None) -> Perturbation:
    """Draws an attack; injected nodes may join everything.

    Args:
        graph: A graph with ``node_id``.
        random: Source of randomness.
        units: How many changes are tried. Defaults to one, two or three.
    """
    attack = _Attack.on(graph, random)
    for _ in range(units or int(random.integers(1, 4))):
        attack.try_one(str(random.choice(_KINDS)))
    return attack.perturbation()


@dataclass
class _Attack:
    """An attack that grows change by change. Nodes are named by their ids."""

    random: np.random.Generator
    ids: list[int]
    num_features: int
    free: list[tuple[int, int]]
    edges: list[tuple[int, int]]
    added: list[tuple[int, int]] = field(default_factory=list)
    deleted: list[tuple[int, int]] = field(default_factory=list)
    altered: list[tuple[int, int, float]] = field(default_factory=list)
    injected: dict[int | str, list[float]] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)
    features: dict[int, list[float]] = field(default_factory=dict)

    @classmethod
    def on(cls, graph: Data, random: np.random.Generator) -> "_Attack":
        ids = graph.node_id.tolist()
        joined = {frozenset(pair) for pair in graph.node_id[graph.edge_index].t().tolist()}
        free = [(u, v) for k, u in enumerate(ids) for v in ids[:k] if frozenset((u, v)) not in joined]
        edges = [(min(pair), max(pair)) for pair in joined if len(pair) == 2]
        return cls(random, ids, int(graph.x.size(1)), free, edges)

    @property
    def living(self) -> list[int]:
        """Nodes of the graph that are not deleted."""
        return [i for i in self.ids if i not in self.gone]

    def try_one(self, kind: str) -> None:
        """Makes a change of a kind, if one is possible."""
        may_delete_node = len(self.living) > 1 and not self.added and not self.injected
        if kind == "add" and self.free:
            self.added.append(self._take(self.free))
        elif kind == "delete" and self.edges:
            self.deleted.append(self._take(self.edges))
        elif kind == "alter" and self.edges:
            self.altered.append((*self._take(self.edges), 2))
        elif kind == "inject":
            self._inject()
        elif kind == "remove" and may_delete_node:
            self.gone.append(int(self.random.choice(self.living)))
        elif kind == "replace" and may_delete_node:
            self._replace()
        elif kind == "feature" and self.living:
            node = int(self.random.choice(self.living))
            self.features[node] = (10 * self.random.normal(size=self.num_features)).tolist()

    def _take(self, pairs: list[tuple[int, int]]) -> tuple[int, int]:
        return pairs.pop(int(self.random.integers(len(pairs))))

    def _inject(self) -> None:
        new = int(self.random.integers(_FIRST_NEW_ID, 2 * _FIRST_NEW_ID))
        if new in self.injected:
            return
        self.injected[new] = self.random.normal(size=self.num_features).tolist()
        self.added += [(new, i) for i in self.living if self.random.random() < 0.7]

    def _replace(self) -> None:
        """Puts another node in the place of one, under the id that it leaves."""
        living = self.living
        node = int(self.random.choice(living))
        self.gone.append(node)
        self.injected[node] = self.random.normal(size=self.num_features).tolist()
        self.free = [pair for pair in self.free if node not in pair]
        self.added += [(node, i) for i in living if i != node and self.random.random() < 0.7]

    def perturbation(self) -> Perturbation:
        """Returns the attack, without changes at nodes that it deletes."""
        gone = set(self.gone)
        gone_for_good = gone - set(self.injected)
        return Perturbation(
            add_edges=[pair for pair in self.added if not gone_for_good & set(pair)],
            delete_edges=[pair for pair in self.deleted if not gone & set(pair)],
            change_edges=[change for change in self.altered if not gone & set(change[:2])],
            inject_nodes=self.injected,
            delete_nodes=self.gone,
            change_features={node: x for node, x in self.features.items() if node not in gone},
        )
