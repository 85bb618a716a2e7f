"""A model whose operations grow with a high power of the nodes is audited on a small part of a graph, and the log says so."""

import time

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from agnncert.auditing.model_audit import audit
from agnncert.auditing.operations import growth_of_operations
from agnncert.auditing.probes import Probes
from agnncert.divisions.node import NodeCentric
from tests.zoo.local import CLASSES, WIDTH, zoo_data

LARGE = zoo_data(nodes=6000, pairs=9000)


class Spectral(nn.Module):
    """Appends the first eigenvectors of the Laplacian."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(WIDTH, CLASSES)
        self.__dict__["_sizes"] = sizes

    def forward(self, x, edge_index):
        self._sizes.append(len(x))
        adjacency = torch.zeros(len(x), len(x), dtype=x.dtype)
        adjacency[edge_index[0], edge_index[1]] = 1
        adjacency = adjacency + adjacency.t()
        _, vectors = torch.linalg.eigh(torch.diag(adjacency.sum(0)) - adjacency)
        return self.conv(x, edge_index) + vectors[:, :1].abs()


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


def test_a_cubic_model_is_refused_on_a_small_part_of_the_graph_and_the_log_says_so(caplog):
    sizes: list[int] = []
    report = audit(Spectral(sizes).eval(), LARGE, NodeCentric(5))
    assert not report.ok
    assert max(sizes) < LARGE.num_nodes
    assert "the model's operations grow with about the power" in caplog.text


def test_a_linear_model_sees_the_whole_graph(caplog):
    assert audit(Linear().eval(), LARGE, NodeCentric(5)).ok
    assert "operations grow" not in caplog.text


def test_a_linear_model_sees_the_whole_graph_on_a_machine_that_gets_ever_slower(monkeypatch, caplog):
    now = [1.0]

    def tick() -> float:
        now[0] *= 4.0
        return now[0]

    for clock in ("time", "process_time", "perf_counter", "monotonic", "thread_time"):
        monkeypatch.setattr(time, clock, tick)
    probes = Probes(Linear().eval(), "node", LARGE, NodeCentric(5))
    monkeypatch.undo()
    assert probes.probes[-1].graph.num_nodes > LARGE.num_nodes / 2
    assert "operations grow" not in caplog.text


def product(size: int) -> torch.Tensor:
    return torch.ones(size, size) @ torch.ones(size, size)


GROWING = {
    "a sum": (lambda size: torch.ones(size, 8).sum(0), 1),
    "all pairs": (lambda size: torch.cdist(torch.ones(size, 2), torch.ones(size, 2)) > 1, 2),
    "a product of square matrices": (product, 3),
    "eigenvectors": (lambda size: torch.linalg.eigh(torch.eye(size)), 3),
    "views": (lambda size: [torch.ones(size).view(-1) for _ in range(3)], 1),
}


@pytest.mark.parametrize("name", GROWING)
def test_the_power_of_the_growth_is_counted(name):
    run, power = GROWING[name]
    growth = growth_of_operations(run, 256)
    assert growth.exponent == pytest.approx(power, abs=0.2)
    assert growth == growth_of_operations(run, 256)
    assert growth.predicted(512) == pytest.approx(growth.operations * 2**growth.exponent)
    assert growth.predicted(growth.affordable(1e9)) == pytest.approx(1e9, rel=0.05)


def test_what_is_computed_once_does_not_count():
    fixed = torch.ones(300, 300)
    growth = growth_of_operations(lambda size: (fixed @ fixed, torch.ones(size)), 256)
    assert growth.exponent == pytest.approx(1, abs=0.05)
