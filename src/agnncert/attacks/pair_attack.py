"""Attacks on pairs: the changes that take most from the lead of a label, found vote by vote.

Votes about a pair add up, and each neighbour has votes of its own, so that the best changes are those with the largest
effects. What is found is applied to the graph, and the label is computed there by the defence itself.
"""

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.attacks.problem import OTHER_TARGETS, Outcome, OutcomeTable, OwnAttack, RowChange, RowOf
from agnncert.attacks.results import AttackResult, best_of
from agnncert.attacks.score_problem import ScoreProblem
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id
from agnncert.certificates.votes import IntArray
from agnncert.defence import Defence, TargetChoice
from agnncert.errors import BudgetError, SettingsError
from agnncert.graphs.perturbation import Perturbation
from agnncert.graphs.targets import prepared
from agnncert.pairs.evidence import PairEvidence
from agnncert.pairs.model import PairModel
from agnncert.pairs.targets import PairTargets, choose_pairs, pairs_of_file
from agnncert.proving.certificate import Certificate
from agnncert.stacked.record import STEPS

KIND = "greedy"
MOST_INJECTED = 10_000  # where the budget allows any number


@dataclass(frozen=True)
class _Move:
    """One change.

    Attributes:
        field: The field of the budget that it costs.
        cost: How much of it.
        gain: What the rival gains on the label, in steps of a vote.
        node: Row of the node whose votes it changes; -1 for a new node.
        edges: Pairs of rows to join, to separate or to alter.
        value: New values of the edge, if it is altered or comes with values.
    """

    field: str
    cost: int
    gain: int
    node: int
    edges: tuple[tuple[int, int], ...] = ()
    value: tuple[float, ...] = ()


class PairProblem(ScoreProblem):
    """Attacks on pairs of nodes; a row is the place of a pair.

    Args:
        model: A model of pairs, as ``certify`` takes it.
        data: The graph.
        defence: The votes about pairs.

    Raises:
        SettingsError: The edges of all targets are masked, so that one pair by itself has no score.
    """

    model: PairModel
    chosen: PairTargets

    def __init__(self, model: PairModel, data: Any, defence: Defence) -> None:
        super().__init__(model, data, defence)
        if model.defence.mask == "targets":
            raise SettingsError(
                f"{defence} cannot have its graph attacked pair by pair, because the edges of all targets are masked: "
                "which edges count depends on all of them. Train with mask='own' (--set defence.mask=own)."
            )
        self._bare = _without_pairs(data)

    def own_attacks(self) -> Mapping[str, OwnAttack]:
        """Returns the one attack on pairs, which draws no random numbers."""
        return {KIND: self._attack_each}

    def choose(self, targets: TargetChoice, certificate: Certificate | None) -> IntArray:
        """Returns the places of the pairs to attack: those that are named, or those of the certificate.

        Raises:
            SettingsError: They are not those of the certificate.
        """
        data = prepared(self.data)
        evidence = None if certificate is None else certificate.evidence
        if certificate is not None and targets is None and isinstance(evidence, PairEvidence):
            self.chosen = pairs_of_file(data, evidence.pairs, certificate.row)  # the data need not list them
        else:
            self.chosen = choose_pairs(data, targets)
        if certificate is not None and not np.array_equal(self.chosen.ids, certificate.target):
            raise SettingsError(OTHER_TARGETS)
        self._place = {row: place for place, row in enumerate(self.chosen.rows.tolist())}
        return self.chosen.rows

    def name_of(self, row: int) -> Id:
        """Returns the ids of both nodes of a pair, as one name."""
        name: Id = self.chosen.ids[self._place[int(row)]]
        return name

    def _target_id(self, row: int) -> None:
        """Returns None: no change of a node counts as one of the target, whose own features are not attacked."""

    def _require_budget(self, row: int, budget: Budget) -> None:
        super()._require_budget(0, budget)
        if budget.target_features:
            raise BudgetError(
                "target_features: the pair's own features and values are covered by no certificate, and not attacked "
                "here."
            )

    def _ends(self, row: int) -> tuple[int, int]:
        u, v = self.chosen.ends[self._place[int(row)]].tolist()
        return u, v

    def outcomes(self, rows: IntArray) -> OutcomeTable:
        """Returns the scores and the label of some pairs in the graph as given."""
        asked = [self._ask_pair(self._bare, int(row), self._ends(row)) for row in rows]
        return np.concatenate([self._no_outcomes(), *asked])

    def outcomes_after(self, attacks: Sequence[RowChange]) -> OutcomeTable:
        """Returns the scores and the label of one pair in each of many attacked graphs."""
        asked = []
        for row, change in attacks:
            attacked = change.apply(self._bare)
            row_of = RowOf(attacked)
            u, v = self._ends(row)
            asked.append(self._ask_pair(attacked, row, (row_of[self._ids[u]], row_of[self._ids[v]])))
        return np.concatenate([self._no_outcomes(), *asked])

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.model.num_classes

    def _ask_pair(self, graph: Data, row: int, ends: tuple[int, int]) -> OutcomeTable:
        """Returns scores and label of one pair in a graph."""
        asked = copy.copy(graph)
        asked.edge_label_index = torch.tensor([[ends[0]], [ends[1]]])
        values = self.chosen.values[self._place[int(row)]]
        if len(values):
            asked.edge_label_attr = values[None]
        labels, scores = self.defence.labels_and_scores(self.model, asked)
        return np.column_stack([scores, labels])

    def _attack_each(self, rows: IntArray, budgets: Sequence[Budget]) -> list[AttackResult]:
        """Returns the best attack that was found on each pair."""
        neighbours = _Neighbours(self.model, self.chosen)
        return [
            self._attack(neighbours, row, budget, before)
            for row, budget, before in zip(rows.tolist(), budgets, self.outcomes(rows), strict=True)
        ]

    def _attack(self, neighbours: "_Neighbours", row: int, budget: Budget, before: Outcome) -> AttackResult:
        """Returns the best attack on one pair within its budget, of those that help one class each."""
        label, scores = self.winner(before), self.scores(before)
        u, v = self._ends(row)
        changes = []
        for rival in range(len(scores)):
            if rival != label:
                needed = int(scores[label] - scores[rival]) + 2
                moves = _best_moves(neighbours.moves(u, v, label, rival), budget, needed)
                changes.append(_perturbation(moves, self._ids, (u, v), self._bare))
        attacks = [(row, change) for change in changes]
        count = len(attacks)
        return best_of(self.results(attacks, np.repeat(before[None], count, axis=0), [budget] * count, KIND))


def _without_pairs(data: Any) -> Data:
    """Returns the graph alone: rows of listed pairs would be others where a node is deleted."""
    names = ("x", "edge_index", "edge_weight", "edge_attr", "node_id")
    given = {name: getattr(data, name, None) for name in names}
    return Data(**{name: value for name, value in given.items() if value is not None})


class _Neighbours:
    """Who is joined to whom, and what a vote may become.

    Args:
        model: The model.
        chosen: The pairs.
    """

    def __init__(self, model: PairModel, chosen: PairTargets) -> None:
        self.model = model
        self.graph = chosen.graph
        self.num_nodes = chosen.graph.num_nodes
        self.leaving: list[set[int]] = [set() for _ in range(self.num_nodes)]
        self.joined: list[set[int]] = [set() for _ in range(self.num_nodes)]
        source, head = chosen.graph.edge_index.long().tolist()
        for u, v in zip(source, head, strict=True):
            self.leaving[u].add(v)
            self.joined[u].add(v)
            self.joined[v].add(u)

    def moves(self, u: int, v: int, label: int, rival: int) -> Iterator[_Move]:
        """Yields every change that may help the rival, injected nodes apart from their number."""
        if self.model.defence.trusted is not None:
            yield from self._moves_of_contacts(u, v, label, rival)
        else:
            yield from self._moves_of_neighbours(u, v, label, rival)

    def _moves_of_neighbours(self, u: int, v: int, label: int, rival: int) -> Iterator[_Move]:
        sign = int(self.model.favoured == rival) - int(self.model.favoured == label)
        sign *= int(self.model.use_votes)
        side = math.floor(float(self.model.side_weight) * STEPS) if self.model.defence.over == "both" else 0
        at_u, at_v = self.joined[u] - {v}, self.joined[v] - {u}
        if sign < 0:
            for node in at_u & at_v:
                yield _Move("delete_edges", 1, STEPS + side, node, ((node, v),))
                yield _Move("delete_nodes", 1, STEPS + 2 * side, node)
            for node in at_u ^ at_v if side else ():
                yield _Move("delete_edges", 1, side, node, ((node, u if node in at_u else v),))
                yield _Move("delete_nodes", 1, side, node)
        if sign > 0:
            for node in at_u ^ at_v:
                yield _Move("add_edges", 1, STEPS + side, node, ((node, v if node in at_u else u),))
            others = (node for node in range(self.num_nodes) if node not in at_u | at_v | {u, v})
            for node in itertools.islice(others, 2 * len(at_u | at_v) + 50):
                yield _Move("add_edges", 2, STEPS + 2 * side, node, ((node, u), (node, v)))
            yield _Move("inject_nodes", 1, STEPS + 2 * side, -1)

    def _moves_of_contacts(self, u: int, v: int, label: int, rival: int) -> Iterator[_Move]:
        column = self.model.defence.trusted
        source, head = self.graph.edge_index.long().numpy()
        values = self._values
        contacts = {int(head[k]) for k in np.flatnonzero(source == u) if values[k, column] > 0} - {u, v}
        best, most = self._best_value(label, rival)
        for node in contacts:
            now = 0
            if v in self.leaving[node]:
                places = np.flatnonzero((source == node) & (head == v))
                votes = self._votes(values[places]).mean(axis=0)
                now = int(votes[label] - votes[rival])
                yield _Move("delete_edges", 1, now, node, ((node, v),))
                yield _Move("change_edges", 1, now + most, node, ((node, v),), best)
            elif v not in self.joined[node]:
                yield _Move("add_edges", 1, most, node, ((node, v),), best)

    @property
    def _values(self) -> Any:
        attr = self.graph.edge_attr
        assert attr is not None
        return attr.reshape(len(attr), -1).double().numpy()

    @torch.no_grad()
    def _votes(self, values: Any) -> Any:
        """Returns the votes that edges with some values carry, in steps."""
        exact = copy.deepcopy(self.model).double()
        rows = (torch.from_numpy(values) - exact.edge_center) / exact.edge_spread
        return (torch.softmax(exact.vote_net(rows), dim=1)[:, :-1] * STEPS).floor().numpy()

    def _best_value(self, label: int, rival: int) -> tuple[tuple[float, ...], int]:
        """Returns values of an edge that help the rival most, among those of the graph and extreme ones."""
        known = np.unique(self._values, axis=0)
        extreme = np.array(list(itertools.product((-1e3, 0.0, 1e3), repeat=min(known.shape[1], 4))))
        if extreme.shape[1] == known.shape[1]:
            known = np.concatenate([known, extreme])
        votes = self._votes(known)
        gains = votes[:, rival] - votes[:, label]
        place = int(gains.argmax())
        return tuple(known[place].tolist()), int(gains[place])


def _best_moves(moves: Iterator[_Move], budget: Budget, needed: int) -> list[_Move]:
    """Returns the moves with the largest gains for what they cost, within a budget, until enough is gained."""
    left = {name: getattr(budget, name) for name in ("add_edges", "delete_edges", "change_edges", "inject_nodes")}
    left["delete_nodes"] = budget.delete_nodes
    if budget.edges_per_injected < 2:
        left["inject_nodes"] = 0
    taken: list[_Move] = []
    used: set[int] = set()
    gained = 0
    for move in sorted(moves, key=lambda move: (-move.gain / move.cost, -move.gain, move.field, move.node)):
        number = 1
        if move.node < 0:
            number = int(min(left["inject_nodes"], -(-(needed - gained) // move.gain), MOST_INJECTED))
        for _ in range(number):
            if gained >= needed or move.gain <= 0 or move.node in used or left[move.field] < move.cost:
                break
            taken.append(move)
            left[move.field] -= move.cost
            gained += move.gain
            if move.node >= 0:
                used.add(move.node)
    return taken


def _perturbation(moves: Sequence[_Move], ids: list[Id], ends: tuple[int, int], graph: Data) -> Perturbation:
    """Returns the moves as one attack, in ids."""
    numbers = (number for number in itertools.count(len(ids)) if number not in set(ids))
    new = list(itertools.islice(numbers, sum(move.field == "inject_nodes" for move in moves)))

    def edges(name: str) -> list[tuple[Id, Id]]:
        return [(ids[a], ids[b]) for move in moves if move.field == name for a, b in move.edges]

    added = edges("add_edges") + [(node, ids[end]) for node in new for end in ends]
    carried = next((move.value for move in moves if move.field == "add_edges" and move.value), ())
    return Perturbation(
        add_edges=added,
        delete_edges=edges("delete_edges"),
        change_edges=[
            (ids[move.edges[0][0]], ids[move.edges[0][1]], list(move.value))
            for move in moves
            if move.field == "change_edges"
        ],
        inject_nodes=dict.fromkeys(new, graph.x[ends[0]].tolist()),
        delete_nodes=[ids[move.node] for move in moves if move.field == "delete_nodes"],
        directed=bool(carried),
        added_values={"edge_attr": list(carried)} if carried else {},
    )
