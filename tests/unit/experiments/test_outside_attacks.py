"""Attackers from outside: each keeps to its budget, and rows count what fell, what is certified and what refutes it."""

import json

import pytest
import torch

import agnncert as ac
from experiments.benchmarks import outside_attacks
from experiments.benchmarks.outside_attacks import ATTACKERS, fga, flipped
from tests.support.neighbour_graphs import NodeListener, town


def village():
    """A small graph with masks and the model that attackers know."""
    data = town(16, seed=3)
    data.node_id = torch.arange(16)
    data.test_mask = torch.ones(16, dtype=torch.bool)
    return data, NodeListener(seed=1)


@pytest.mark.parametrize("name", ATTACKERS)
def test_an_attacker_adds_no_more_edges_than_it_may(name, monkeypatch):
    monkeypatch.setattr(outside_attacks, "BLOCK", 60)
    data, model = village()
    for row in (0, 5):
        change = ATTACKERS[name](model, data.clone(), row, 2)
        cost = change.cost()
        assert cost.add_edges + cost.delete_edges <= 2
        change.apply(data)  # refuses edges that are there already, or are not


def test_fga_adds_the_edge_with_the_largest_gradient_at_the_target():
    data, model = village()
    model = model.float()
    data.x = data.x.float()
    near = set(data.edge_index[:, data.edge_index[0] == 4][1].tolist())
    change = fga(model, data, 4, 3)
    ends = [v for u, v in change.add_edges]
    assert {u for u, _ in change.add_edges} == {4}
    assert len(set(ends)) == 3
    assert not near & set(ends)
    label = model(data.x, data.edge_index).argmax(dim=1)[4]

    def gain(end: int) -> float:
        weight = torch.zeros(1, requires_grad=True)
        edges = torch.cat([data.edge_index, torch.tensor([[4, end], [end, 4]])], dim=1)
        weights = torch.cat([torch.ones(data.num_edges), weight, weight])
        loss = torch.nn.functional.cross_entropy(model(data.x, edges, edge_weight=weights)[4:5], label[None])
        return float(torch.autograd.grad(loss, weight)[0])

    free = set(range(16)) - near - {4}
    assert gain(ends[0]) == pytest.approx(max(gain(end) for end in free), rel=1e-4)


def test_what_fell_is_seen_in_the_attacked_graph_of_each_target():
    data, model = village()
    rows = torch.arange(16)
    attacks = ac.attack(model, data, ac.Undefended(), budget=ac.Budget(add_edges=2), targets=rows)
    changes = [result.perturbation for result in attacks.results]
    assert flipped(model, data, ac.Undefended(), rows, changes).tolist() == attacks.succeeded.tolist()
    assert 0 < attacks.succeeded.sum() < 16


def test_rows_count_and_a_second_run_measures_nothing_again(tmp_path, monkeypatch):
    data, model = village()
    rows = tmp_path / "rows.jsonl"
    monkeypatch.setattr(outside_attacks, "ROWS", rows)
    monkeypatch.setattr(outside_attacks, "undefended", lambda *_: model)
    monkeypatch.setattr(ac, "load_dataset", lambda *_, **__: data.clone())
    voter = NodeListener()
    victims = {"per neighbour": lambda data, name, seed: (voter, ac.PerNeighbour())}
    for _ in range(2):
        outside_attacks.run("village", 0, "", 8, victims, ["ac.attack greedy"], [1, 2])
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [(row["attacker"], row["size"]) for row in found] == [
        ("ac.attack greedy", 1), ("ac.attack greedy", 2),
        ("adaptive on per neighbour", 1), ("adaptive on per neighbour", 2),
    ]  # fmt: skip
    assert all(row["per neighbour, violations"] == 0 for row in found)
    assert all(row["targets"] == 8 for row in found)
    certificate = ac.certify(voter, data, ac.PerNeighbour())
    assert found[2]["per neighbour, certified"] <= int(certificate.holds_against(ac.Budget(add_edges=1)).sum())
    assert 0 < found[2]["flipped"]["per neighbour"] <= found[3]["flipped"]["per neighbour"]
    assert found[0]["flipped"]["undefended gcn"] > 0
