"""Attacks on stacked votes: nothing within a certified budget changes a label, and much beyond it does."""

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.attacks import attack
from agnncert.stacked.defence import StackedVotes
from agnncert.stacked.model import StackedModel
from tests.support.neighbour_graphs import fits

NUM_NODES = 14
NUM_FEATURES = 3
NUM_CLASSES = 3
DEFENCES = {
    "sum": StackedVotes(),
    "gated": StackedVotes(gated=True),
    "mean": StackedVotes(combine="mean"),
    "two levels": StackedVotes(levels=2),
    "edge values": StackedVotes(edge_values=True),
    "trusted": StackedVotes(trusted=1),
    "trusted mean": StackedVotes(combine="mean", trusted=1),
}
BUDGETS = [
    ac.Budget(add_edges=1),
    ac.Budget(add_edges=2, delete_edges=1),
    ac.Budget(inject_nodes=1, edges_per_injected=2),
    ac.Budget(delete_nodes=1, change_features=1),
    ac.Budget(change_edges=1, delete_edges=1),
    ac.Budget(add_edges=4, inject_nodes=2, edges_per_injected=1, delete_edges=2, change_features=1),
]
TINY_BUDGETS = [
    ac.Budget(delete_edges=1),
    ac.Budget(add_edges=1, delete_edges=1),
    ac.Budget(inject_nodes=1, edges_per_injected=2),
    ac.Budget(delete_nodes=1, change_features=1),
]


class Rows(torch.nn.Module):
    """A linear model of each row."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def random_model(defence: StackedVotes, seed: int) -> StackedModel:
    """A model with random votes, whose own score is small enough for votes to matter."""
    rng = torch.Generator().manual_seed(seed)
    own = Rows(torch.randn(NUM_FEATURES, NUM_CLASSES, generator=rng))
    model = StackedModel([own], NUM_CLASSES, 2 if defence.edge_values else 0, defence.for_rows(10))
    for name, parameter in model.named_parameters():
        if not name.startswith("own.") and parameter.dim():
            parameter.data = torch.randn(parameter.shape, generator=rng)
    model.second.data = torch.tensor(0.0)
    model.own_scale.data = torch.tensor(math.log(0.3))
    model.mean_scale.data = torch.tensor(math.log(4.0))
    return model.eval()


def random_data(seed: int) -> Data:
    """A graph whose edges have two attributes, the second of which is positive for trusted ones."""
    rng = random.Random(seed)
    pairs = [(u, v) for v in range(NUM_NODES) for u in range(v) if rng.random() < 0.25]
    trusted = [float(rng.random() < 0.3) for _ in pairs]
    values = [[rng.choice((-1.0, 0.0, 1.0)), mark] for mark in trusted]
    edge_index = torch.tensor([*pairs, *((v, u) for u, v in pairs)]).t()
    features = torch.randn(NUM_NODES, NUM_FEATURES, generator=torch.Generator().manual_seed(seed))
    ids = [f"node {node}" for node in range(NUM_NODES)]
    return Data(x=features, edge_index=edge_index, edge_attr=torch.tensor([*values, *values]), node_id=ids)


def world(name: str, seed: int) -> tuple[StackedModel, Data]:
    model = random_model(DEFENCES[name], seed)
    data = random_data(seed)
    if not model.defence.edge_values and model.defence.trusted is None:
        data.edge_attr = None
    return model, data


@pytest.mark.parametrize("name", DEFENCES)
def test_nothing_within_a_certified_budget_changes_a_label_and_much_beyond_does(name: str) -> None:
    certified = 0
    broken = {"greedy": 0, "random": 0}
    for seed in range(3):
        model, data = world(name, seed)
        certificate = ac.certify(model, data, model.defence)
        for budget in BUDGETS:
            certified += int(certificate.holds_against(budget).sum())
            for kind in broken:
                report = attack(model, data, budget=budget, kind=kind, certificate=certificate)
                assert not report.violations
                assert not (report.succeeded & report.certified).any()
                assert all(fits(result.cost, budget) for result in report.results)
                broken[kind] += int(report.succeeded.sum())
    assert certified > 20
    assert broken["greedy"] > 30
    assert broken["greedy"] > broken["random"]


@pytest.mark.parametrize("name", DEFENCES)
def test_every_attack_within_a_budget_leaves_certified_labels_as_they_are(name: str) -> None:
    """On five nodes, everything is tried."""
    certified = broken = 0
    for seed in range(3):
        model, data = world(name, seed)
        small = data.subgraph(torch.arange(5))
        small.node_id = data.node_id[:5]
        certificate = ac.certify(model, small, model.defence)
        for budget in TINY_BUDGETS:
            report = attack(model, small, certificate=certificate, budget=budget, kind="exhaustive")
            assert not report.violations
            certified += int(report.certified.sum())
            broken += int(report.succeeded.sum())
    assert certified > 0
    assert broken > 0


@pytest.mark.parametrize("name", DEFENCES)
def test_labels_of_attacked_graphs_are_those_that_anyone_certifies(name: str) -> None:
    model, data = world(name, 1)
    report = attack(model, data, model.defence, budget=BUDGETS[-1])
    for result in report.results:
        attacked = result.perturbed(data)
        again = ac.certify(model, attacked, model.defence)
        assert again[result.target].label == result.label_after


def pairs_of(data: Data, column: int) -> dict[frozenset[str], list[float]]:
    """The attributes of each trusted edge, by the ids of its ends."""
    found: dict[frozenset[str], list[float]] = {}
    for (u, v), values in zip(data.edge_index.t().tolist(), data.edge_attr.tolist(), strict=True):
        if values[column] > 0:
            found[frozenset((data.node_id[u], data.node_id[v]))] = values
    return found


@pytest.mark.parametrize("kind", ["greedy", "random"])
@pytest.mark.parametrize("name", ["trusted", "trusted mean"])
def test_trusted_edges_and_their_ends_stay_as_they_are_and_none_is_added(name: str, kind: str) -> None:
    model, data = world(name, 2)
    everything = ac.Budget(3, 3, 3, 2, 2, 3, 3)
    trusted = pairs_of(data, 1)
    features = dict(zip(data.node_id, data.x.tolist(), strict=True))
    changed = 0
    for result in attack(model, data, model.defence, budget=everything, kind=kind).results:
        attacked = result.perturbed(data)
        assert pairs_of(attacked, 1) == trusted
        after = dict(zip(attacked.node_id, attacked.x.tolist(), strict=True))
        for end in frozenset().union(*trusted):
            assert after[end] == features[end]
        changed += result.cost != ac.Budget()
    assert trusted
    assert changed > NUM_NODES // 2


def test_a_problem_refuses_changes_of_what_is_trusted() -> None:
    model, data = world("trusted", 2)
    problem = ac.attacks.problem_of(model, data, model.defence)
    u, v = sorted(next(iter(pairs_of(data, 1))))
    target = next(row for row, name in enumerate(data.node_id) if name not in (u, v))
    before = problem.outcomes(np.array([target]))
    everything = ac.Budget(3, 3, 3, 2, 2, 3, 3)
    other = next(name for name in data.node_id if name not in (u, v))
    changes: list[Any] = [
        ac.Perturbation(delete_edges=[(u, v)]),
        ac.Perturbation(change_edges=[(u, v, [0.0, 0.0])]),
        ac.Perturbation(delete_nodes=[u]),
        ac.Perturbation(change_features={v: [0.0] * NUM_FEATURES}),
        ac.Perturbation(add_edges=[(u, other)]),
        ac.Perturbation(inject_nodes={"new": [0.0] * NUM_FEATURES}, add_edges=[("new", u)]),
    ]
    for change in changes:
        with pytest.raises(ac.errors.BudgetError, match="trusted"):
            problem.results([(target, change)], before, [everything], "by hand")
