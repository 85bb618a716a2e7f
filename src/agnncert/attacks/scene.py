"""Scene: a model, its data and a division, and the vote on any attacked version of the data."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.attacks.neighbours import Neighbours
from agnncert.attacks.results import AttackResult, cost_of
from agnncert.budget import Budget
from agnncert.division import Division, EdgeCentric, NodeCentric
from agnncert.engines import EngineName, cast
from agnncert.engines.call import bind
from agnncert.errors import BudgetError, GraphError, ModelContractError, SettingsError
from agnncert.graph import EDGE_VALUES, Task, canonical, canonical_set, infer_task, node_keys, target_rows
from agnncert.perturbation import Id, Perturbation, keys_of, pair_keys
from agnncert.votes import IntArray

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
            raise BudgetError(
                f"{len(budgets)} budgets were given for {len(rows)} targets: pass one, or one for each."
            )
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
        self,
        attacks: Sequence[tuple[int, Perturbation]],
        before: Ballots,
        kind: str,
        after: Ballots | None = None,
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

    def _batches(
        self, attacks: Sequence[tuple[int, Perturbation]]
    ) -> Iterator[list[tuple[Data, Tensor | None]]]:
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
