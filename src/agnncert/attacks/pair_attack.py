"""Attacks on pairs: the changes that take most from the lead of a label, found vote by vote.

Votes about a pair add up, and each neighbour has votes of its own, so that the best changes are those with the largest
effects. What is found is applied to the graph, and the label is computed there by the defence itself.
"""

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.attacks.problem import RowOf, ids_of, require_test_time
from agnncert.attacks.results import AttackResult
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id
from agnncert.certificates.votes import IntArray
from agnncert.defence import Defence
from agnncert.errors import BudgetError, SettingsError
from agnncert.graphs.perturbation import Perturbation
from agnncert.pairs.model import PairModel
from agnncert.pairs.targets import BETWEEN, PairTargets
from agnncert.stacked.record import STEPS

KIND = "greedy"
UNIT = "of the score's lead lost"
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


def attack_pairs(
    model: PairModel, data: Any, defence: Defence, chosen: PairTargets, budget: Budget | Sequence[Budget]
) -> tuple[list[AttackResult], list[Budget]]:
    """Attacks pairs one by one.

    Args:
        model: The trained model.
        data: The graph.
        defence: The votes about pairs.
        chosen: The pairs, of the same graph.
        budget: What the attacker may do to each pair, or one budget for each.

    Returns:
        One result for each pair, and the budgets.

    Raises:
        BudgetError: A budget allows what is no change of the graph around a pair, or there are too few.
        SettingsError: The edges of all targets are masked, so that one pair alone has no score.
    """
    if model.defence.mask == "targets":
        raise SettingsError(
            f"{defence} cannot have its graph attacked pair by pair, because the edges of all targets are masked: "
            "which edges count depends on all of them. Train with mask='own' (--set defence.mask=own)."
        )
    budgets = list(budget) if isinstance(budget, Sequence) else [budget] * len(chosen.ends)
    if len(budgets) != len(chosen.ends):
        raise BudgetError(f"{len(budgets)} budgets were given for {len(chosen.ends)} pairs: pass one, or one for each.")
    for each in budgets:
        _require_possible(each, chosen)
    bare = _without_pairs(data)
    neighbours = _Neighbours(model, defence, chosen)
    results = [_attack(neighbours, bare, place, allowed) for place, allowed in enumerate(budgets)]
    return results, budgets


def _require_possible(budget: Budget, chosen: PairTargets) -> None:
    require_test_time(budget)
    if budget.target_features:
        raise BudgetError(
            "target_features: the pair's own features and values are covered by no certificate, and not attacked here."
        )
    if budget.delete_nodes and chosen.nodes.id_kind != "node_id":
        raise BudgetError("the budget deletes nodes, but the graph has no node_id: give the graph ids.")


def _without_pairs(data: Any) -> Data:
    """Returns the graph alone: rows of listed pairs would be others where a node is deleted."""
    names = ("x", "edge_index", "edge_weight", "edge_attr", "node_id")
    given = {name: getattr(data, name, None) for name in names}
    return Data(**{name: value for name, value in given.items() if value is not None})


class _Neighbours:
    """Who is joined to whom, and what a vote may become.

    Args:
        model: The model.
        defence: The votes about pairs.
        chosen: The pairs.
    """

    def __init__(self, model: PairModel, defence: Defence, chosen: PairTargets) -> None:
        self.model = model
        self.defence = defence
        self.chosen = chosen
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


def _attack(neighbours: _Neighbours, bare: Data, place: int, budget: Budget) -> AttackResult:
    """Returns the best attack on one pair that was found within its budget."""
    chosen = neighbours.chosen
    u, v = chosen.ends[place].tolist()
    ids = ids_of(bare)
    values = chosen.values[place : place + 1]
    before, scores = _label(neighbours, bare, (u, v), values)
    results = []
    for rival in range(len(scores)):
        if rival == before:
            continue
        needed = int(scores[before] - scores[rival]) + 2
        moves = _best_moves(neighbours.moves(u, v, before, rival), budget, needed)
        change = _perturbation(moves, ids, (u, v), bare)
        attacked = change.apply(bare)
        row_of = RowOf(attacked)
        after, scores_after = _label(neighbours, attacked, (row_of[ids[u]], row_of[ids[v]]), values)
        lead = max(1, int(scores[before] - scores[rival]))
        moved = (lead - int(scores_after[before] - scores_after[rival])) / lead
        name: Id = f"{ids[u]}{BETWEEN}{ids[v]}"
        results.append(
            AttackResult(name, int(chosen.rows[place]), KIND, change, change.cost(), before, after, moved, UNIT)
        )
    return max(results, key=lambda result: (result.succeeded, result.moved))


def _label(neighbours: _Neighbours, graph: Data, ends: tuple[int, int], values: Any) -> tuple[int, IntArray]:
    """Returns label and scores of one pair in a graph."""
    asked = copy.copy(graph)
    asked.edge_label_index = torch.tensor([[ends[0]], [ends[1]]])
    if values.size(1):
        asked.edge_label_attr = values
    labels, scores = neighbours.defence.labels_and_scores(neighbours.model, asked)
    return int(labels[0]), scores[0]


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
