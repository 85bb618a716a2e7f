"""``PlainProblem``: attacks on a model without a defence, which follow the margin of its logits.

One hard label gives no gradation: of all edits that are tried alone, hardly any changes it. The logits do. In each step
the gradient of the margin says of *every* edge that could be added or deleted what it would do about. The most
promising ones are tried, and the best is kept. This goes on until the budget is spent or the label has changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.attacks.edge_weights import can_be_weighted, weighted_logits
from agnncert.attacks.problem import OutcomeTable, RowPair
from agnncert.attacks.results import AttackResult, best_of
from agnncert.attacks.score_problem import ScoreProblem
from agnncert.attacks.single_edits import SingleEdits, closest_rivals
from agnncert.attacks.vote_problem import VoteProblem
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import IntArray
from agnncert.defence import Defence, GraphData, Model
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.perturbation import Perturbation
from agnncert.undefended import Undefended, reach_of

TRIED_EACH = 6  # additions, and deletions, that are tried for each of two rivals in a step
ALL_PAIRS = 200_000  # pairs that are looked at in a step; of more, so many are drawn
MOST_STEPS = 200
EDGE_KINDS = ("add_edges", "delete_edges")


class PlainProblem(ScoreProblem):
    """A model without a defence: outcomes are its logits, in whole steps, and its label.

    Args:
        model: A trained module.
        data: A ``Data`` (its nodes are the targets) or a list of ``Data`` (the graphs are).
        defence: ``Undefended()``, or a division into one group, which gives the same labels.
    """

    unit = "of the logit's lead lost"

    def __init__(self, model: Model, data: GraphData, defence: Defence) -> None:
        super().__init__(model, data, Undefended())
        self._hops = reach_of(model) if self.task == "node" else None

    def subgraph_problem(self) -> VoteProblem:
        """Returns the same model as the vote of one subgraph, which is the whole graph."""
        return VoteProblem(self.model, self.data, EdgeCentric(1))

    @property
    def follows_gradients(self) -> bool:
        """Whether edges of this graph can be weighted, so that their effect has a gradient."""
        return can_be_weighted(self.model) and not self.graph.edge_values


class GradientEdits:
    """Attacks targets one after the other; edges by gradient, everything else by trying single edits."""

    def __init__(self, problem: PlainProblem, seed: int) -> None:
        self.problem = problem
        self.single = SingleEdits(problem, seed)
        self.random = np.random.default_rng(seed)

    def attack(self, rows: IntArray, before: OutcomeTable, budgets: Sequence[Budget]) -> list[AttackResult]:
        """Returns one result for each target: the better one of both searches, if both have something to do."""
        found: list[list[AttackResult]] = [[] for _ in rows]
        if self.problem.follows_gradients:
            plans = [
                (row, self._flips(row, outcome, budget))
                for row, outcome, budget in zip(rows.tolist(), before, budgets, strict=True)
            ]
            for of_target, result in zip(found, self.problem.results(plans, before, budgets, "greedy"), strict=True):
                of_target.append(result)
        others = [k for k, budget in enumerate(budgets) if not found[k] or _asks_for_more(budget)]
        if others:
            tried = self.single.attack(rows[others], before[others], [budgets[k] for k in others])
            for k, result in zip(others, tried, strict=True):
                found[k].append(result)
        return [best_of(results) for results in found]

    def _flips(self, row: int, outcome: OutcomeTable, budget: Budget) -> Perturbation:
        """Returns the edges to add and delete at a target node, or anywhere in a target graph."""
        state = _Edges.of(self.problem, row)
        label = self.problem.winner(outcome)
        best = (self._lead(outcome, label), state.perturbation())
        left = {kind: float(getattr(budget, kind)) for kind in EDGE_KINDS}
        for _ in range(min(MOST_STEPS, 2 * self.problem.most_changes)):
            moves = self._promising(state, row, label, outcome, left)
            if not moves:
                break
            outcomes = self.problem.outcomes_after([(row, state.after(*move)) for move in moves])
            leads = [self._lead(one, label) for one in outcomes]
            chosen = int(np.argmin(leads))
            kind, pair = moves[chosen]
            state.flip(kind, pair)
            left[kind] -= 1
            outcome = outcomes[chosen]
            best = min(best, (leads[chosen], state.perturbation()), key=lambda each: each[0])
            if self.problem.winner(outcome) != label:
                break
        return best[1]

    def _lead(self, outcome: OutcomeTable, label: int) -> float:
        """Returns by how much a label leads; below every other lead if it is no more the label."""
        scores = self.problem.scores(outcome)
        lead = float(scores[label] - np.delete(scores, label).max(initial=0))
        return lead if self.problem.winner(outcome) == label else min(lead, 0.0) - 0.5

    def _promising(
        self, state: "_Edges", row: int, label: int, outcome: OutcomeTable, left: dict[str, float]
    ) -> list[tuple[str, RowPair]]:
        """Returns the moves that the gradients of the margins over the closest rivals say most about."""
        free = state.free_pairs(self.random) if left["add_edges"] >= 1 else []
        joined = sorted(state.joined_at) if left["delete_edges"] >= 1 else []
        moves: dict[tuple[str, RowPair], None] = {}
        for gradient in self._gradients(state, row, label, closest_rivals(self.problem, outcome), free, joined):
            gain = np.concatenate([gradient[: len(free)], -gradient[len(free) :]])
            for kind, pairs, start in (("add_edges", free, 0), ("delete_edges", joined, len(free))):
                order = np.argsort(-gain[start : start + len(pairs)], kind="stable")[:TRIED_EACH]
                moves.update(dict.fromkeys((kind, pairs[place]) for place in order.tolist()))
        return list(moves)

    def _gradients(
        self, state: "_Edges", row: int, label: int, rivals: Sequence[int], free: list[RowPair], joined: list[RowPair]
    ) -> list[Any]:
        """Returns for each rival the gradient of its margin over the label, by the weight of each pair."""
        if not free and not joined:
            return []
        pairs = torch.tensor([*free, *joined], dtype=torch.int64).t()
        weight = torch.cat([torch.zeros(len(free)), torch.ones(len(joined))]).to(state.adapter.dtype).requires_grad_()
        logits = state.logits(self.problem.model, pairs, weight, joined)
        place = row if self.problem.task == "node" else 0
        found = []
        for rival in rivals:
            margin = logits[place, rival] - logits[place, label]
            (gradient,) = torch.autograd.grad(margin, weight, retain_graph=True)
            found.append(np.nan_to_num(gradient.double().numpy()))
        return found


def _asks_for_more(budget: Budget) -> bool:
    """Returns whether a budget allows more than edges that come and go."""
    return Budget(add_edges=np.inf, delete_edges=np.inf).allows(budget) is False


@dataclass
class _Edges:
    """The edges of a graph while some are flipped, as rows.

    Attributes:
        graph: The graph as given.
        adapter: The model, bound to it.
        ids: Ids of its nodes.
        target: Row of the target node; ``None`` for a target graph.
        joined: Pairs that are joined now.
        joined_at: Those of them that may be deleted and were there at first.
        flipped: What was done, by kind.
    """

    graph: CanonicalGraph
    adapter: ModelAdapter
    ids: list[Any]
    target: int | None
    joined: set[RowPair]
    joined_at: set[RowPair]
    flipped: dict[str, list[RowPair]] = field(default_factory=lambda: {kind: [] for kind in EDGE_KINDS})

    @classmethod
    def of(cls, problem: PlainProblem, row: int) -> "_Edges":
        graph = problem.graph_of(row)
        target = row if problem.task == "node" else None
        low = graph.edge_index.min(dim=0).values
        high = graph.edge_index.max(dim=0).values
        joined = set(zip(low.tolist(), high.tolist(), strict=True))
        near = {pair for pair in joined if target is None or target in pair}
        return cls(graph, bind(problem.model, graph, problem.task), problem.ids(row), target, joined, near)

    def free_pairs(self, random: np.random.Generator) -> list[RowPair]:
        """Returns pairs that could be joined: the target with every other node, or all pairs of a target graph."""
        size = self.graph.num_nodes
        if self.target is not None:
            everyone = np.delete(np.arange(size), self.target)
            pairs = np.stack([np.minimum(everyone, self.target), np.maximum(everyone, self.target)], axis=1)
        else:
            pairs = np.stack(np.triu_indices(size, 1), axis=1)
        if len(pairs) > ALL_PAIRS:
            pairs = pairs[random.choice(len(pairs), ALL_PAIRS, replace=False)]
        touched = {*self.joined, *self.flipped["delete_edges"]}
        return [pair for pair in map(tuple, pairs.tolist()) if pair not in touched]

    def flip(self, kind: str, pair: RowPair) -> None:
        """Adds or deletes the edge between two nodes."""
        self.flipped[kind].append(pair)
        if kind == "add_edges":
            self.joined.add(pair)
            return
        self.joined.discard(pair)
        self.joined_at.discard(pair)

    def after(self, kind: str, pair: RowPair) -> Perturbation:
        """Returns what would have been changed after one more flip."""
        return self._named({**self.flipped, kind: [*self.flipped[kind], pair]})

    def perturbation(self) -> Perturbation:
        """Returns what was changed so far."""
        return self._named(self.flipped)

    def _named(self, flipped: dict[str, list[RowPair]]) -> Perturbation:
        added, deleted = ([(self.ids[u], self.ids[v]) for u, v in flipped[kind]] for kind in EDGE_KINDS)
        return Perturbation(add_edges=added, delete_edges=deleted)

    def logits(self, model: Any, pairs: Tensor, weight: Tensor, joined: list[RowPair]) -> Tensor:
        """Returns the logits of the graph as it is now, with a weight on some pairs, in both directions.

        Args:
            model: The model.
            pairs: The pairs that have a weight, shape ``[2, p]``.
            weight: Their weights.
            joined: Those of the pairs that are joined: their edges are left out, as these stand for them.
        """
        kept = self._edges_without([*joined, *self.flipped["delete_edges"]])
        added = torch.tensor(self.flipped["add_edges"], dtype=torch.int64).view(-1, 2).t()
        fixed = torch.cat([kept, added, added.flip(0)], dim=1)
        edge_index = torch.cat([fixed, pairs, pairs.flip(0)], dim=1)
        weights = torch.cat([torch.ones(fixed.size(1), dtype=weight.dtype), weight, weight])
        x = self.graph.x.to(self.adapter.dtype)
        batch = () if self.target is not None else (torch.zeros(len(x), dtype=torch.int64),)
        return weighted_logits(model, x, edge_index, weights, *batch)

    def _edges_without(self, pairs: list[RowPair]) -> Tensor:
        edge_index = self.graph.edge_index.long()
        if not pairs:
            return edge_index
        size = self.graph.num_nodes
        left_out = torch.tensor([u * size + v for u, v in pairs])
        key = edge_index.min(dim=0).values * size + edge_index.max(dim=0).values
        return edge_index[:, ~torch.isin(key, left_out)]


def is_plain(defence: Defence, data: GraphData) -> bool:
    """Returns whether a division has one group only, and gives the labels that the model gives without it."""
    division: Any = getattr(defence, "division", None)
    if type(division) not in (EdgeCentric, NodeCentric) or division.num_groups != 1:
        return False
    given: Any = data
    graphs = [given] if isinstance(given, Data) else list(given)
    no_loops = not any(bool((graph.edge_index[0] == graph.edge_index[1]).any()) for graph in graphs)
    return defence.voting_rule is None and no_loops
