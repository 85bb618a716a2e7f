"""The gradient attack on edges: PyG's PRBCD against the vote, or against an undefended model (``ac.Undefended()``).

PRBCD relaxes edges to weights between 0 and 1 and follows the gradient. The model must therefore have an
``edge_weight`` argument, or consist of PyG's message-passing layers, whose messages are then scaled.
"""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from agnncert.attacks.edge_weights import require_weights, weighted_logits
from agnncert.attacks.problem import Problem
from agnncert.attacks.results import AttackResult
from agnncert.attacks.vote_problem import VoteProblem
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id
from agnncert.defence import TargetChoice
from agnncert.divisions.node import NodeCentric
from agnncert.engine.features import Features
from agnncert.errors import SettingsError
from agnncert.graphs.canonical import canonical
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.perturbation import Perturbation

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # "contrib contains experimental code"
    from torch_geometric.contrib.nn import PRBCDAttack

BLOCK = 512  # pairs in a block of PRBCD
CANDIDATES = 500  # nodes considered as new neighbours
EPOCHS = 30  # steps along the gradient


def gradient(
    problem: Problem, targets: TargetChoice, budget: Budget | Sequence[Budget], *, seed: int = 0
) -> list[AttackResult]:
    """Flips edges along the gradient; of the budget only ``add_edges`` and ``delete_edges`` are used.

    Args:
        problem: Model, data and a built-in division, on a graph without edge values.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        seed: Seed of the sampled pairs.

    Raises:
        SettingsError: The defence has no subgraphs that vote, or edges have weights or attributes already.
        ModelContractError: The model cannot be given edge weights.
    """
    subgraphs = problem.subgraph_problem()
    if problem.graph.edge_values:
        raise SettingsError("the gradient attack sets edge weights, but this graph has weights or attributes already.")
    require_weights(problem.model)
    rows = problem.rows(targets)
    budgets = problem.budgets(budget, rows)
    before = problem.outcomes(rows)
    attacks: list[tuple[int, Perturbation]] = []
    with torch.random.fork_rng(devices=[]):
        for row, votes, allowed in zip(rows.tolist(), before, budgets, strict=True):
            torch.manual_seed(seed * 1_000_003 + row)
            attacks.append((row, _flips(subgraphs, row, problem.winner(votes), allowed)))
    return problem.results(attacks, before, budgets, "gradient")


def _flips(problem: VoteProblem, row: int, label: int, budget: Budget) -> Perturbation:
    """The pairs to flip for one target."""
    graph, target, ids = _search_graph(problem, row)
    edges = torch.unique(graph.edge_index, dim=1)  # PRBCD would treat a second copy of an edge as its removal
    joined = {(u, v) for u, v in edges.t().tolist()}
    pairs = _pairs_to_flip(graph.num_nodes, joined, target, budget)
    division = problem.built_in()
    if target is None and isinstance(division, NodeCentric):
        group = division.node_groups(graph)[pairs]
        pairs = pairs[:, group[0] == group[1]]  # edges between groups are in no subgraph
    most = 2 * problem.num_groups  # enough to move every vote of a node
    count = int(min(budget.add_edges + budget.delete_edges, most, pairs.size(1)))
    if not count:
        return Perturbation()
    attack = _TargetedPRBCD(_Logits(problem, graph, target), pairs, label)
    flipped = attack.attack(graph.x, edges, torch.tensor([label]), count)[1]
    added: list[tuple[Id, Id]] = []
    deleted: list[tuple[Id, Id]] = []
    for u, v in flipped.t().tolist():
        (deleted if {(u, v), (v, u)} & joined else added).append((ids[u], ids[v]))
    return Perturbation(
        add_edges=added[: int(min(budget.add_edges, len(added)))],
        delete_edges=deleted[: int(min(budget.delete_edges, len(deleted)))],
    )


def _search_graph(problem: VoteProblem, row: int) -> tuple[CanonicalGraph, int | None, list[Id]]:
    """The graph to search on, the target in it, and its ids.

    For a node the graph consists of the nodes that can reach it and some others as new neighbours.
    """
    if problem.task == "graph":
        return problem.graph_of(row), None, problem.ids(row)
    others = torch.randperm(problem.num_targets)[:CANDIDATES].tolist()
    nodes = {*problem.neighbours.reaching(row), *others}
    part = problem.part(nodes)
    return canonical(part, problem.keeps_self_loops), sorted(nodes).index(row), part.node_id


def _pairs_to_flip(count: int, joined: set[tuple[int, int]], target: int | None, budget: Budget) -> Tensor:
    """The pairs that may be flipped: those at the target, or all pairs of a graph, shape ``[2, num_pairs]``."""
    if target is None:
        low, high = np.triu_indices(count, 1)
        pairs = list(zip(low.tolist(), high.tolist(), strict=True))
    else:
        pairs = [(min(u, target), max(u, target)) for u in range(count) if u != target]
    allowed = [pair for pair in pairs if (budget.delete_edges if {pair, pair[::-1]} & joined else budget.add_edges)]
    return torch.tensor(allowed, dtype=torch.int64).view(-1, 2).t()


class _TargetedPRBCD(PRBCDAttack):  # type: ignore[misc]
    """PRBCD on given pairs only; every row of the prediction is attacked."""

    # A copy, as the base class writes into its own.
    coeffs: ClassVar[dict[str, Any]] = {**PRBCDAttack.coeffs, "max_final_samples": 10}

    def __init__(self, model: torch.nn.Module, pairs: Tensor, label: int) -> None:
        super().__init__(
            model,
            block_size=min(BLOCK, pairs.size(1)) + 1,
            epochs=EPOCHS,
            epochs_resampling=EPOCHS * 3 // 4,
            loss=lambda prediction, _labels, _idx=None: _margin(prediction, label),
            log=False,
        )
        self.pairs = pairs

    # The methods below replace private ones of PRBCDAttack: pairs are numbered by their column in ``self.pairs``.

    def _prepare(self, budget: int) -> range:
        self.block_size = max(min(BLOCK, self.pairs.size(1)), budget) + 1
        return super()._prepare(budget)  # type: ignore[no-any-return]

    def _num_possible_edges(self, n: int, is_undirected: bool) -> int:
        return self.pairs.size(1)

    def _linear_to_triu_idx(self, n: int, lin_idx: Tensor) -> Tensor:
        return self.pairs[:, lin_idx]

    def _sample_random_block(self, budget: int = 0) -> None:
        if self.pairs.size(1) >= self.block_size:
            super()._sample_random_block(budget)
            return
        self.current_block = torch.arange(self.pairs.size(1))  # few enough to consider all
        self.block_edge_index = self.pairs
        self.block_edge_weight = torch.full(self.current_block.shape, self.coeffs["eps"])

    def _resample_random_block(self, budget: int) -> None:
        if self.pairs.size(1) >= self.block_size:
            super()._resample_random_block(budget)

    def _update_edge_weights(self, budget: int, block_edge_weight: Tensor, epoch: int, gradient: Tensor) -> Tensor:
        # PRBCD's step size grows with the graph, which does not suit a single target.
        largest = float(gradient.abs().max())
        step = 0.3 / np.sqrt(max(0, epoch - self.epochs_resampling) + 1)
        return block_edge_weight + (step / largest if largest > 0 else 0.0) * gradient


def _margin(scores: Tensor, label: int) -> Tensor:
    """Margin of the best other class over ``label``, squashed so that votes far from a tie count less."""
    log_share = scores.log_softmax(dim=-1)
    others = log_share.index_fill(1, torch.tensor([label]), -torch.inf).amax(dim=-1)
    return torch.tanh(others - log_share[:, label]).mean()


class _Logits(torch.nn.Module):
    """Logits of the victim with a weight on every edge, which PRBCD differentiates."""

    def __init__(self, problem: VoteProblem, graph: CanonicalGraph, target: int | None) -> None:
        super().__init__()
        self.problem = problem
        self.graph = graph
        self.target = target
        self.features = Features(graph.x.to(problem.bound_model.dtype))
        self.edges = torch.tensor([[-1], [-1]])  # none yet

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """One row of logits for each subgraph in which the target has an edge."""
        if not torch.equal(edge_index, self.edges):  # most steps change weights only
            division, graph = self.problem.built_in(), self.graph.with_other_edges(edge_index)
            self.edges, self.union = edge_index, division.disjoint_union(graph, division.groups(graph))
            self.rows = self.features.rows(self.union.node, self.union.blank)
        union = self.union
        inputs = self.rows, union.edge_index, edge_weight[union.edge]
        if self.target is None:
            return self._weighted(*inputs, torch.unique_consecutive(union.subgraph_index, return_inverse=True)[1])
        return self._weighted(*inputs)[(union.node == self.target) & union.votes]

    def _weighted(self, x: Tensor, edge_index: Tensor, weight: Tensor, *batch: Tensor) -> Tensor:
        """Logits of the model with a weight on every edge."""
        return weighted_logits(self.problem.model, x, edge_index, weight.to(self.problem.bound_model.dtype), *batch)
