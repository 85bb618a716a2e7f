"""``Problem``: a model, its data and a defence, which every attack is given.

An attack asks a problem what becomes of targets on changed graphs. The answer is a row of numbers for each target, its
*outcome*, which the problem can turn into a label and into scores. How outcomes are computed depends on the problem:
``ScoreProblem`` works for every defence, ``VoteProblem`` looks into the subgraphs of a division.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.attacks.results import AttackResult, cost_of
from agnncert.attacks.unused_ids import UnusedIds
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id, encode_id
from agnncert.certificates.votes import IntArray
from agnncert.defence import Defence, GraphData, Model, TargetChoice
from agnncert.engine.arguments import require_order
from agnncert.errors import BudgetError, GraphError, SettingsError
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import CanonicalGraph, Task, one_graph
from agnncert.graphs.node_ids import exact_ids
from agnncert.graphs.perturbation import Perturbation
from agnncert.graphs.targets import target_rows
from agnncert.graphs.task import infer_task
from agnncert.proving.certificate import Certificate

if TYPE_CHECKING:
    from agnncert.attacks.vote_problem import VoteProblem

Outcome = npt.NDArray[Any]  # what became of one target, in whole numbers
OutcomeTable = npt.NDArray[Any]  # one outcome in each row
RowChange = tuple[int, Perturbation]  # row of a target, and what to change in order to attack it
RowPair = tuple[int, int]
OwnAttack = Callable[[IntArray, Sequence[Budget]], list[AttackResult]]

COPIES: Final = 20  # an extreme number of copies of an edge, where edges have neither weights nor attributes
OTHER_TARGETS: Final = "the targets are not those of the certificate: leave them out, or certify the ones to attack."
IDS_TO_TRY: Final = 5  # ids of injected nodes that the exhaustive attack tries where ids decide about nothing


@dataclass(frozen=True)
class OutOfReach:
    """What no attacker can change in one graph, whatever the budget; nothing unless the defence trusts edges.

    Attributes:
        pairs: Joined rows, the smaller one first, whose edges stay as they are.
        nodes: Rows of nodes that keep their features and are not deleted: the ends of these pairs.
        column: Column of ``edge_attr`` that marks trusted edges, which no attacker can set; ``None`` if there is none.
    """

    pairs: frozenset[RowPair] = frozenset()
    nodes: frozenset[int] = frozenset()
    column: int | None = None

    @classmethod
    def in_graph(cls, graph: CanonicalGraph, column: int | None) -> "OutOfReach":
        """Returns what is out of reach if a positive number in ``column`` of ``edge_attr`` marks trusted edges.

        Raises:
            GraphError: The graph has no such column.
        """
        if column is None:
            return cls()
        values = graph.edge_values.get("edge_attr")
        if values is None or not 0 <= column < num_columns(values):
            raise GraphError(f"the defence trusts edges by column {column} of edge_attr, which the data does not have.")
        trusted = graph.edge_index[:, values.reshape(len(values), num_columns(values))[:, column] > 0]
        pairs = frozenset((min(u, v), max(u, v)) for u, v in trusted.t().tolist())
        return cls(pairs, frozenset(trusted.view(-1).tolist()), column)


class Problem(ABC):
    """Model, data and defence of an attack. One object serves any number of attacks; ``attacks.problem_of`` makes one.

    Attributes:
        model: The model.
        data: The graph or graphs, as given.
        defence: The defence.
        task: "node" or "graph".
        graph: The canonical graph; in the graph task all graphs joined.
        keeps_self_loops: Whether self-loops of the data are edges of the graph.
        unit: What ``moved`` counts, in words.
    """

    unit = "votes moved"

    def __init__(self, model: Model, data: GraphData, defence: Defence, keeps_self_loops: bool = False) -> None:
        require_order(model, data, defence)
        defence.require_model(model)
        self.model = model
        self.data: Any = data
        self.defence = defence
        self.keeps_self_loops = keeps_self_loops
        self.task: Task = infer_task(data)
        self._ids: list[Id] = []
        if self.task == "node":
            self.graph = canonical(self.data, keeps_self_loops)
            self._ids = ids_of(self.data)
        else:
            graphs: Any = data
            self.graph = canonical_set(graphs, keeps_self_loops)

    @property
    @abstractmethod
    def num_classes(self) -> int:
        """Number of classes."""

    @property
    @abstractmethod
    def most_changes(self) -> int:
        """The most changes of one kind that are drawn at random for one target, if the budget allows any number."""

    @property
    def looks_into_subgraphs(self) -> bool:
        """Whether the greedy attack tries edits in single subgraphs instead of whole graphs."""
        return False

    @abstractmethod
    def outcomes(self, rows: IntArray) -> OutcomeTable:
        """Returns the outcomes of some targets in the graph as given, one in each row."""

    @abstractmethod
    def outcomes_after(self, attacks: Sequence[RowChange]) -> OutcomeTable:
        """Returns the outcome of one target in each of many attacked graphs, one in each row."""

    @abstractmethod
    def scores(self, outcome: Outcome) -> IntArray:
        """Returns the score of every class of one target, shape ``[num_classes]``."""

    @abstractmethod
    def moved(self, before: Outcome, after: Outcome) -> float:
        """Returns how far an attack came, in the problem's unit."""

    @abstractmethod
    def winner(self, outcome: Outcome) -> int:
        """Returns the label of one target."""

    def gaps(self, outcome: Outcome) -> IntArray:
        """Returns how far each class is from being elected, shape ``[num_classes]``.

        The winner's own entry is larger than any gap, so that sorting puts the closest rival first and the winner last.
        """
        scores = self.scores(outcome)
        label = self.winner(outcome)
        gaps: IntArray = np.asarray(scores[label] - scores)
        gaps[label] = gaps.max() + 1
        return gaps

    def subgraph_problem(self) -> "VoteProblem":
        """Returns the same problem for an attack that follows the votes of single subgraphs.

        Raises:
            SettingsError: The defence has no such subgraphs, or it is not known which of them an edit touches.
        """
        raise SettingsError(
            f"this attack follows the votes of single subgraphs, and {self.defence} has none: "
            'use "greedy", "random" or "exhaustive".'
        )

    def own_attacks(self) -> Mapping[str, OwnAttack]:
        """Returns the attacks on this kind of problem by name, if it is attacked by no other; empty if by all."""
        return {}

    @property
    def num_targets(self) -> int:
        """Nodes, or graphs, that can be attacked."""
        if self.task == "node":
            return int(self.graph.num_nodes)
        return len(self.data)

    def rows(self, targets: TargetChoice) -> IntArray:
        """Returns the rows of the targets, from a mask, row numbers, or ``None`` for all."""
        return target_rows(targets, self.num_targets)

    def choose(self, targets: TargetChoice, certificate: Certificate | None) -> IntArray:
        """Returns the rows of the targets to attack: those that are named, else those of the certificate, else all.

        Raises:
            SettingsError: They are not those of the certificate.
        """
        rows = self.rows(certificate.row if certificate is not None and targets is None else targets)
        if certificate is not None and not np.array_equal(rows, certificate.row):
            raise SettingsError(OTHER_TARGETS)
        return rows

    def budgets(self, budget: Budget | Sequence[Budget], rows: IntArray) -> list[Budget]:
        """Returns one budget for each target.

        Raises:
            BudgetError: Their number is wrong, or one of them is not valid here.
        """
        budgets = list(budget) if isinstance(budget, Sequence) else [budget] * len(rows)
        if len(budgets) != len(rows):
            raise BudgetError(f"{len(budgets)} budgets were given for {len(rows)} targets: pass one, or one for each.")
        for row, allowed in zip(rows.tolist(), budgets, strict=True):
            self._require_budget(row, allowed)
        return budgets

    def _require_budget(self, row: int, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise BudgetError(f"expected a Budget, got {type(budget).__name__}: write Budget(add_edges=…).")
        require_test_time(budget)
        if budget.delete_nodes and not self.has_ids(row):
            raise BudgetError(
                "the budget deletes nodes, but the graph has no node_id: every later node would change its "
                "identity with its row. Give the graph ids."
            )
        if budget.target_features and self.task == "graph":
            raise BudgetError("target_features needs a target node; for graphs use change_features.")

    def has_ids(self, row: int = 0) -> bool:
        """Returns whether the data (in the graph task, the graph ``row``) has ``node_id``."""
        return getattr(self.data_of(row), "node_id", None) is not None

    def ids(self, row: int = 0) -> list[Id]:
        """Returns the canonical ids of all nodes; in the graph task, of the graph ``row``."""
        if self.task == "node":
            return self._ids
        return ids_of(self.data[row])

    def data_of(self, row: int) -> Data:
        """Returns the graph of a target, as given."""
        data: Data = self.data if self.task == "node" else self.data[row]
        return data

    def graph_of(self, row: int) -> CanonicalGraph:
        """Returns the graph of a target in canonical form."""
        if self.task == "node":
            return self.graph
        return one_graph(self.graph, row)

    def out_of_reach(self, row: int) -> OutOfReach:
        """Returns what no attacker can change in the graph of a target."""
        if self.task == "graph":
            return OutOfReach.in_graph(self.graph_of(row), self.defence.trusted_column())
        return self._out_of_reach

    @cached_property
    def _out_of_reach(self) -> OutOfReach:
        return OutOfReach.in_graph(self.graph, self.defence.trusted_column())

    @property
    def reads_edge_values(self) -> bool:
        """Whether the weights or attributes of edges, which ``change_edges`` changes, can matter."""
        return True

    def extreme_edge_values(self) -> list[Any]:
        """Returns extreme weights, attributes or numbers of copies to give to an edge; none if the model reads none."""
        if not self.graph.edge_values:
            return [COPIES]
        values = next(iter(self.graph.edge_values.values()))
        if not self.reads_edge_values or not values.numel():
            return []
        largest = 10 * max(1.0, float(values.float().abs().max()))
        if values.dim() > 1:
            return [self._unmarked([sign * largest] * num_columns(values)) for sign in (1.0, -1.0)]
        if "edge_weight" not in self.graph.edge_values and self.defence.trusted_column() is not None:
            return []  # the only number of an edge is its mark
        return [largest, -largest, 0.0]

    def added_values(self) -> dict[str, Any]:
        """Returns what added edges carry, by name, where it is not 1: no attacker marks an edge as trusted."""
        if self.defence.trusted_column() is None:
            return {}
        values = self.graph.edge_values["edge_attr"]
        if values.dim() == 1:
            return {"edge_attr": 0.0}
        return {"edge_attr": self._unmarked([1.0] * num_columns(values))}

    def _unmarked(self, row: list[float]) -> list[float]:
        """Returns an attribute row without the mark of a trusted edge."""
        column = self.defence.trusted_column()
        return [0.0 if place == column else value for place, value in enumerate(row)]

    def feature_scales(self) -> tuple[float, ...]:
        """Returns by what the features of injected and changed nodes are multiplied, the largest factor last."""
        return (1.0, 10.0)

    def extreme_features(self, row: int) -> list[Tensor]:
        """Returns feature rows far from those of the data: multiples of the largest and of the smallest values."""
        x = self.graph_of(row).x
        scale = self.feature_scales()[-1]
        return [scale * x.amax(0), scale * x.amin(0)]

    def ids_to_inject(self, row: int) -> tuple[Id, ...]:
        """Returns the unused ids that the exhaustive attack tries for injected nodes."""
        keys = self.graph_of(row).node_key
        return tuple(UnusedIds(keys, self.has_ids(row), IDS_TO_TRY).ids.tolist())

    def results(
        self, attacks: Sequence[RowChange], before: OutcomeTable, budgets: Sequence[Budget], kind: str
    ) -> list[AttackResult]:
        """Returns one result for each attack, with the label on the attacked graph.

        Args:
            attacks: Rows of targets, and what to change in order to attack each.
            before: Outcomes of these targets in the graph as given.
            budgets: What the attacker may do to each.
            kind: Which attack found them.

        Raises:
            BudgetError: A change is beyond its budget, or changes what is out of reach.
        """
        costs = []
        for (row, change), budget in zip(attacks, budgets, strict=True):
            cost = cost_of(change, self._target_id(row))
            _require_within(cost, budget, kind)
            self._require_reachable(row, change, kind)
            costs.append(cost)
        results = []
        after = self.outcomes_after(attacks)
        for (row, change), cost, old, new in zip(attacks, costs, before, after, strict=True):
            result = AttackResult(
                target=self.name_of(row),
                row=int(row),
                kind=kind,
                perturbation=change,
                cost=cost,
                label_before=self.winner(old),
                label_after=self.winner(new),
                moved=self.moved(old, new),
                unit=self.unit,
            )
            results.append(result)
        return results

    def part(self, nodes: Iterable[int]) -> Data:
        """Returns some nodes with the edges between them, in the order of their rows, under their ids (node task)."""
        rows = torch.tensor(sorted(nodes))
        inside = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        inside[rows] = True
        into = self.edges_at(rows.tolist(), 1).sort().values
        between = into[inside[self.graph.edge_index[0, into]]]
        part = self.graph.with_nodes(rows, between)
        ids = [self._ids[row] for row in rows.tolist()]
        return Data(x=part.x, edge_index=part.edge_index, node_id=ids, **part.edge_values)

    def adjacent(self, nodes: Iterable[int]) -> set[int]:
        """Returns all nodes that share an edge with one of these, and these if they have edges (node task)."""
        listed = list(nodes)
        edges = torch.cat([self.edges_at(listed, 0), self.edges_at(listed, 1)])
        return set(self.graph.edge_index[:, edges].view(-1).tolist())

    def edges_at(self, nodes: Iterable[int], end: int) -> Tensor:
        """Returns the edges that start (0) or end (1) at some nodes (node task)."""
        order = self._edge_order[end]
        parts = [order.edges[order.first[node] : order.first[node + 1]] for node in nodes]
        return torch.cat([order.edges[:0], *parts])

    def rows_named(self, change: Perturbation) -> set[int]:
        """Returns the rows of all nodes that a change names (node task). Injected nodes have none."""
        named: set[Id] = {*change.delete_nodes, *change.change_features}
        for pair in (*change.add_edges, *change.delete_edges):
            named.update(pair)
        for u, v, _ in change.change_edges:
            named.update((u, v))
        return self.rows_with_ids(named)

    def rows_with_ids(self, ids: Iterable[Id]) -> set[int]:
        """Returns the rows of the nodes that have these ids (node task)."""
        rows = (self._row_of.get(encode_id(name)) for name in ids)
        return {row for row in rows if row is not None}

    @cached_property
    def _row_of(self) -> dict[Id, int]:
        return {name: row for row, name in enumerate(self._ids)}

    @cached_property
    def _edge_order(self) -> tuple["_EdgeOrder", "_EdgeOrder"]:
        """Edges sorted by the node that they start at, and by the node that they end at."""
        starts, ends = self.graph.edge_index
        return _EdgeOrder.by(starts, self.graph.num_nodes), _EdgeOrder.by(ends, self.graph.num_nodes)

    def name_of(self, row: int) -> Id:
        """Returns what a target is called: the id of a node, or the number of a graph."""
        return self._ids[row] if self.task == "node" else int(row)

    def _target_id(self, row: int) -> Id | None:
        """Returns the id of a target node; ``None`` for a graph."""
        return self._ids[row] if self.task == "node" else None

    def _require_reachable(self, row: int, change: Perturbation, kind: str) -> None:
        """Refuses a change of what is out of reach."""
        protected = self.out_of_reach(row)
        if protected.column is None:
            return
        ids = self.ids(row)
        kept_nodes = {ids[node] for node in protected.nodes} - {self._target_id(row)}
        kept_pairs = {frozenset((ids[u], ids[v])) for u, v in protected.pairs}
        changed_nodes = {encode_id(node) for node in (*change.delete_nodes, *change.change_features)}
        altered = [(u, v) for u, v, _ in change.change_edges]
        changed_pairs = {frozenset(map(encode_id, pair)) for pair in (*change.delete_edges, *altered)}
        rows = [] if "edge_weight" in self.graph.edge_values else [value for _, _, value in change.change_edges]
        if change.add_edges:
            rows.append(change.added_values.get("edge_attr", [1.0] * num_columns(self.graph.edge_values["edge_attr"])))
        marks = any(np.atleast_1d(row)[protected.column] > 0 for row in rows)
        if marks or changed_nodes & kept_nodes or changed_pairs & kept_pairs:
            raise BudgetError(f'the attack "{kind}" changes trusted edges or their ends, or marks an edge as trusted.')


@dataclass(frozen=True)
class _EdgeOrder:
    """Edges in the order of one of their ends.

    Attributes:
        edges: Numbers of the edges, sorted.
        first: Where those of each node begin in ``edges``, and their number.
    """

    edges: Tensor
    first: list[int]

    @classmethod
    def by(cls, node: Tensor, num_nodes: int) -> "_EdgeOrder":
        """Sorts edges by a node of each, shape ``[num_edges]``."""
        counts = torch.bincount(node, minlength=num_nodes)
        return cls(node.argsort(stable=True), [0, *counts.cumsum(0).tolist()])


def require_test_time(budget: Budget) -> None:
    """Refuses to attack training data.

    Raises:
        BudgetError: A field about training data is not zero.
    """
    if budget.training_fields:
        raise BudgetError(
            f"{budget}: an attack changes the graph that a trained model is given, not what it was trained on. "
            f"Leave {', '.join(budget.training_fields)} out."
        )


def _require_within(cost: Budget, budget: Budget, kind: str) -> None:
    """Refuses an attack that costs more than its budget."""
    if not budget.allows(cost):
        raise BudgetError(f'the attack "{kind}" costs {cost}, which is more than {budget} allows.')


def num_columns(values: Tensor) -> int:
    """Returns how many numbers each edge has."""
    return 1 if values.dim() == 1 else int(values.size(1))


def ids_of(data: Data) -> list[Id]:
    """Returns the canonical ids of all nodes."""
    ids = exact_ids(data)
    return ids.tolist() if isinstance(ids, np.ndarray) else ids


class RowOf(dict[Id, int]):
    """Row of each node of an attacked graph by its id, counted from ``start``."""

    def __init__(self, data: Data, start: int = 0) -> None:
        super().__init__((name, row) for row, name in enumerate(ids_of(data), start))

    def __missing__(self, target: Id) -> int:
        raise GraphError("the attack deletes its own target, which then has no label.")
