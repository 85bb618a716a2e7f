"""Who is joined to whom inside each subgraph of the node task, and what an attack adds to that.

Scene: a model, its data and a division, and the vote on any attacked version of the data.

Weights, attributes or numbers of copies that an attacker would give to an edge.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.attacks.results import AttackResult, cost_of
from agnncert.divisions import Division, EdgeCentric, NodeCentric
from agnncert.errors import BudgetError, GraphError, ModelContractError, SettingsError
from agnncert.graphs import hashing
from agnncert.graphs.graph import EDGE_VALUES, Task, canonical, canonical_set, infer_task, node_keys
from agnncert.graphs.perturbation import Id, Perturbation, keys_of, pair_keys
from agnncert.graphs.targets import target_rows
from agnncert.proof.ballots import IntArray
from agnncert.proof.budget import Budget
from agnncert.voting.call import bind
from agnncert.voting.cast import EngineName, cast

Arc = tuple[int, int]  # where it comes from, and which edge of the graph it is
Place = tuple[int, int]  # a group, and a node in it
KeyPair = tuple[int, int]


class Neighbours:
    """Arcs by subgraph and node.

    Attributes:
        row_of: Row of every node, by key.
    """

    def __init__(self, graph: Data, division: EdgeCentric | NodeCentric) -> None:
        self.division = division
        self.row_of = {key: row for row, key in enumerate(graph.node_key.tolist())}
        self._into: dict[Place, list[Arc]] = defaultdict(list)
        self._around: dict[Place, list[int]] = defaultdict(list)
        self._groups: dict[int, set[int]] = defaultdict(set)
        self._group_of: dict[KeyPair, int] = {}
        source, head = graph.edge_index.tolist()
        for edge, (u, v, group) in enumerate(zip(source, head, division.groups(graph).tolist(), strict=True)):
            self._into[group, v].append((u, edge))
            for tail, end in self._hears(u, v):
                self._around[group, end].append(tail)
                self._groups[end].add(group)

    def _hears(self, u: int, v: int) -> Sequence[tuple[int, int]]:
        """Who hears whom along an arc; the edge-centric theorem also covers models that listen both ways."""
        return [(u, v), (v, u)] if isinstance(self.division, EdgeCentric) else [(u, v)]

    def into(self, group: int, node: int) -> list[Arc]:
        """Arcs that end at ``node`` in one subgraph."""
        return self._into.get((group, node), [])

    def heard(self, group: int, node: int) -> list[int]:
        """Where those arcs come from, each node once."""
        return list(dict.fromkeys(u for u, _ in self.into(group, node)))

    def groups(self, node: int) -> list[int]:
        """Subgraphs in which something reaches ``node``, ascending."""
        return sorted(self._groups.get(node, ()))

    def within(self, group: int, node: int, added: Mapping[Place, Sequence[int]] | None = None) -> list[int]:
        """All nodes that can reach ``node`` in one subgraph, nearest first, itself included."""
        seen = {node: None}
        for here in (queue := [node]):
            for other in (*self._around.get((group, here), ()), *(added or {}).get((group, here), ())):
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
        return list(seen)

    def reach(self, node: int, pairs: Sequence[KeyPair] = ()) -> set[int]:
        """Rows of all nodes that can reach ``node`` in some subgraph once pairs of keys have been joined."""
        added = self._places(pairs)
        groups = {*self.groups(node), *(group for group, end in added if end == node)}
        seen = {node}.union(*(self.within(group, node, added) for group in groups))
        return {row for row in seen if row >= 0}  # nodes without a row have negative stand-ins

    def learn(self, pairs: Sequence[KeyPair]) -> None:
        """Looks up the groups of many pairs at once, which is much cheaper than one by one."""
        arcs = [arc for u, v in pairs for arc in ((u, v), (v, u)) if arc not in self._group_of]
        if not arcs:
            return
        keys = np.array(arcs, dtype=np.int64).view(np.uint64)
        settings = self.division.num_groups, self.division.hash
        if isinstance(self.division, NodeCentric):
            groups = hashing.node_groups(keys[:, 0].copy(), *settings)
        else:
            groups = hashing.edge_groups(keys[:, 0].copy(), keys[:, 1].copy(), *settings)
        self._group_of.update(zip(arcs, groups.tolist(), strict=True))

    def _places(self, pairs: Sequence[KeyPair]) -> dict[Place, list[int]]:
        """Where new pairs, joined in both directions, let whom be heard."""
        self.learn(pairs)
        new = dict.fromkeys(key for pair in pairs for key in pair if key not in self.row_of)
        stand_in = {key: -1 - k for k, key in enumerate(new)}
        found: dict[Place, list[int]] = defaultdict(list)
        for pair in pairs:
            for tail, head in (pair, pair[::-1]):
                ends = [self.row_of.get(key, stand_in.get(key, -1)) for key in (tail, head)]
                found[self._group_of[tail, head], ends[1]].append(ends[0])
        return found


Ballots = npt.NDArray[np.int16]

# Numbers that the features of the attacked graphs voted on together may take.
FEATURES_AT_ONCE = 20_000_000
# Graphs up to this many nodes are voted on whole.
SMALL = 64


class Scene:
    """What every attack looks at. Made once, it serves any number of attacks.

    Args:
        model: A trained module in eval mode, as ``certify`` takes it.
        data: A ``Data`` (its nodes are the targets) or a list of ``Data`` (the graphs are).
        division: How the defence divides it.

    Attributes:
        task: "node" or "graph".
        graph: The canonical graph; in the graph task all graphs joined.
        call: The model, bound to it.
    """

    def __init__(self, model: Any, data: Any, division: Division) -> None:
        if getattr(model, "training", False):
            raise ModelContractError(
                "the model is in training mode, where labels change by themselves: call model.eval()."
            )
        if not isinstance(division, Division):
            raise SettingsError(
                f"expected a division such as EdgeCentric(num_groups=30), got {type(division).__name__}."
            )
        self.model, self.data, self.division = model, data, division
        self.task: Task = infer_task(data)
        self.loops = bool(getattr(division, "self_loops", False))
        self.graph = canonical(data, self.loops) if self.task == "node" else canonical_set(data, self.loops)
        self.call = bind(model, self.graph, self.task)
        self._neighbours: Neighbours | None = None
        self._ids = self._ids_of(data) if self.task == "node" else []

    @property
    def num_targets(self) -> int:
        """Nodes, or graphs, that can be attacked."""
        return int(self.graph.num_nodes) if self.task == "node" else len(self.data)

    @property
    def num_groups(self) -> int:
        """Ballots of each target."""
        return self.division.num_groups

    @property
    def neighbours(self) -> Neighbours:
        """Who is joined to whom in each subgraph (node task, built-in divisions)."""
        if self._neighbours is None:
            self._neighbours = Neighbours(self.graph, self.built_in())
        return self._neighbours

    def built_in(self) -> EdgeCentric | NodeCentric:
        """The division, if its inner workings are known.

        Raises:
            SettingsError: It is a user's own.
        """
        if isinstance(self.division, (EdgeCentric, NodeCentric)):
            return self.division
        raise SettingsError(
            "this attack needs to know how edges are divided, and knows that only of EdgeCentric and NodeCentric, "
            f'not of {type(self.division).__name__}: use "random" or "exhaustive".'
        )

    def rows(self, targets: Any) -> IntArray:
        """Rows of the targets, from a mask, row numbers, or ``None`` for all."""
        return target_rows(targets, self.num_targets)

    def budgets(self, budget: Budget | Sequence[Budget], rows: IntArray) -> list[Budget]:
        """One budget for each target.

        Raises:
            BudgetError: There are not as many as targets, or one allows what makes no sense here.
        """
        if not isinstance(budget, (Budget, Sequence)):
            raise BudgetError(f"expected a Budget, got {type(budget).__name__}: write Budget(add_edges=…).")
        budgets = [budget] * len(rows) if isinstance(budget, Budget) else list(budget)
        if len(budgets) != len(rows):
            raise BudgetError(f"{len(budgets)} budgets were given for {len(rows)} targets: pass one, or one for each.")
        for row, one in zip(rows.tolist(), budgets, strict=True):
            if not isinstance(one, Budget):
                raise BudgetError(f"expected a Budget, got {type(one).__name__}: write Budget(add_edges=…).")
            if one.delete_nodes and not self.has_ids(row):
                raise BudgetError(
                    "the budget deletes nodes, but the graph has no node_id: every later node would change its "
                    "identity with its row. Give the graph ids."
                )
            if one.target_features and self.task == "graph":
                raise BudgetError("target_features speaks of a target node; for graphs use change_features.")
        return budgets

    def has_ids(self, row: int = 0) -> bool:
        """Whether nodes (of the graph ``row``, in the graph task) have ids of their own."""
        return getattr(self._data(row), "node_id", None) is not None

    def ids(self, row: int = 0) -> list[Id]:
        """Ids of all nodes of the graph; in the graph task of the graph ``row``."""
        return self._ids if self.task == "node" else self._ids_of(self.data[row])

    def _ids_of(self, data: Data) -> list[Id]:
        given = getattr(data, "node_id", None)
        return list(range(data.num_nodes)) if given is None else list(np.asarray(given).tolist())

    def _data(self, row: int) -> Data:
        return self.data if self.task == "node" else self.data[row]

    def votes(self, rows: IntArray) -> Ballots:
        """Ballots of some targets in the graph as given, shape ``[len(rows), num_groups]``."""
        if not len(rows):
            return np.empty((0, self.num_groups), dtype=np.int16)
        if self.task == "node":
            return self._cast(self.graph, rows)
        return self._cast(canonical_set([self.data[int(k)] for k in rows], self.loops), np.arange(len(rows)))

    def recast(self, attacks: Sequence[tuple[int, Perturbation]]) -> Ballots:
        """Ballots of one target in each of many attacked graphs, shape ``[len(attacks), num_groups]``.

        In the node task the attacked graph is cut down to what can reach the target in any subgraph;
        ``recast_whole`` votes on all of it.
        """
        if self.task == "node" and not isinstance(self.division, (EdgeCentric, NodeCentric)):
            return np.stack([self.recast_whole([row], change)[0] for row, change in attacks])
        if self.task == "node":
            self.neighbours.learn([pair for _, change in attacks for pair in pair_keys(change.add_edges)])
        ballots = np.empty((len(attacks), self.num_groups), dtype=np.int16)
        done = 0
        for batch in self._batches(attacks):
            ballots[done : done + len(batch)] = self._cast_many(batch)
            done += len(batch)
        return ballots

    def recast_whole(self, rows: Sequence[int], change: Perturbation, engine: EngineName = "fast") -> Ballots:
        """Ballots of some targets in one attacked graph, all of it, shape ``[len(rows), num_groups]``."""
        if self.task == "graph":
            attacked = canonical_set([change.apply(self.data[int(k)]) for k in rows], self.loops)
            return self._cast(attacked, np.arange(len(rows)), engine)
        attacked = canonical(change.apply(self.data), self.loops)
        return self._cast(attacked, _rows_of(self.graph.node_key[list(rows)], attacked), engine)

    def results(
        self, attacks: Sequence[tuple[int, Perturbation]], before: Ballots, kind: str, after: Ballots | None = None
    ) -> list[AttackResult]:
        """One result for each attack, voted on the attacked graph.

        Args:
            attacks: Target rows and what to change.
            before: Ballots of the same targets before the attack.
            kind: Name of the attack.
            after: Ballots after it, if they have been cast.
        """
        after = self.recast(attacks) if after is None else after
        ids = self._ids if self.task == "node" else list(range(self.num_targets))
        # Targets may share a perturbation, and a large one.
        known = {key: change.cost() for key, change in {id(change): change for _, change in attacks}.items()}
        found = []
        for (row, change), old, new in zip(attacks, before, after, strict=True):
            found.append(
                AttackResult(
                    target=ids[row],
                    row=int(row),
                    kind=kind,
                    perturbation=change,
                    cost=cost_of(change, ids[row] if self.task == "node" else None, known[id(change)]),
                    label_before=self.winner(old),
                    label_after=self.winner(new),
                    ballots_moved=int((old != new).sum()),
                )
            )
        return found

    def winner(self, ballots: Ballots) -> int:
        """The voted label of one target; ties go to the smaller class."""
        return int(self.counts(ballots).argmax())

    def counts(self, ballots: Ballots) -> IntArray:
        """Votes of one target for each class, abstentions left out."""
        return np.bincount(ballots[ballots >= 0], minlength=self.call.num_classes)

    def _cast(self, graph: Data, rows: IntArray, engine: EngineName = "fast") -> Ballots:
        return cast(self.call, graph, self.division, np.asarray(rows, dtype=np.int64), engine)[0].dense()

    def _batches(self, attacks: Sequence[tuple[int, Perturbation]]) -> Iterator[list[tuple[Data, Tensor | None]]]:
        batch: list[tuple[Data, Tensor | None]] = []
        size = 0
        for row, change in attacks:
            key = self.graph.node_key[row : row + 1] if self.task == "node" else None
            attacked = change.apply(self._data(row) if key is None else self._within_reach(row, change))
            if batch and size + attacked.x.numel() > FEATURES_AT_ONCE:
                yield batch
                batch, size = [], 0
            batch.append((attacked, key))
            size += attacked.x.numel()
        if batch:
            yield batch

    def _cast_many(self, batch: list[tuple[Data, Tensor | None]]) -> Ballots:
        """Votes on many attacked graphs side by side. Groups depend on ids alone, so side by side changes nothing."""
        joined = canonical_set([attacked for attacked, _ in batch], self.loops)
        if self.task == "graph":
            return self._cast(joined, np.arange(len(batch)))
        rows = [
            int(start + _rows_of(key, graph)[0])
            for start, (graph, key) in zip(joined.starts, batch, strict=True)
            if key is not None
        ]
        joined.task = "node"
        del joined.batch, joined.starts
        return self._cast(joined, np.array(rows, dtype=np.int64))

    def part(self, nodes: Iterable[int]) -> Data:
        """Some nodes with the edges between them, in the order of their rows and under their ids (node task)."""
        rows = torch.tensor(sorted(nodes))
        position = torch.full((self.graph.num_nodes,), -1, dtype=torch.int64)
        position[rows] = torch.arange(len(rows))
        inside = (position[self.graph.edge_index] >= 0).all(0)
        part = Data(x=self.graph.x[rows], edge_index=position[self.graph.edge_index[:, inside]])
        for name in EDGE_VALUES:
            if name in self.graph:
                part[name] = self.graph[name][inside]
        part.node_id = [self._ids[u] for u in rows.tolist()]
        return part

    def _within_reach(self, row: int, change: Perturbation) -> Data:
        """What can reach the target in some subgraph after the change, and what the change names."""
        if self.graph.num_nodes <= SMALL:
            return self.data
        return self.part({*self.neighbours.reach(row, pair_keys(change.add_edges)), *self._named(change)})

    def _named(self, change: Perturbation) -> Iterator[int]:
        """Rows of all nodes that a change names."""
        altered = [(u, v) for u, v, _ in change.change_edges]
        pairs = [*change.add_edges, *change.delete_edges, *altered]
        for node in {*change.delete_nodes, *change.change_features, *(end for pair in pairs for end in pair)}:
            row = self.neighbours.row_of.get(keys_of([node])[0])
            if row is not None:  # an injected node has none
                yield row


def _rows_of(keys: Tensor, graph: Data) -> IntArray:
    """Rows of the nodes with these keys."""
    found = {key: row for row, key in enumerate(node_keys(graph).tolist())}
    missing = [key for key in keys.tolist() if key not in found]
    if missing:
        raise GraphError("the attack deletes its own target: nothing can be said about a node that is gone.")
    return np.array([found[key] for key in keys.tolist()], dtype=np.int64)


COPIES = 20


def edge_values_to_try(scene: Scene) -> list[Any]:
    """A few extreme values in the graph's own terms; none if the model reads no such thing."""
    name = next((name for name in EDGE_VALUES if name in scene.graph), None)
    if name is None:
        return [COPIES]
    if name not in scene.call.takes or not scene.graph[name].numel():
        return []
    values = scene.graph[name].float()
    largest = 10 * max(1.0, float(values.abs().max()))
    width = values[0].numel()
    return [largest, -largest, 0.0] if values.dim() == 1 else [[sign * largest] * width for sign in (1.0, -1.0)]
