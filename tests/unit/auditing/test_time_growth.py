"""A model whose time grows with a high power of the nodes is audited on a small part of a graph, and the log says so."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from agnncert.auditing import time_growth
from agnncert.auditing.model_audit import audit
from agnncert.auditing.time_growth import growth_of_time
from agnncert.divisions.node import NodeCentric
from tests.support.local_zoo import CLASSES, WIDTH, zoo_data

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


def test_a_cubic_model_is_refused_on_a_small_part_of_the_graph_and_the_log_says_so(caplog):
    sizes: list[int] = []
    report = audit(Spectral(sizes).eval(), LARGE, NodeCentric(5))
    assert not report.ok
    assert max(sizes) < LARGE.num_nodes
    assert "the model's time grows with about the power" in caplog.text


def test_a_linear_model_sees_the_whole_graph(caplog):
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.SAGEConv(WIDTH, CLASSES)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    assert audit(Own().eval(), LARGE, NodeCentric(5)).ok
    assert "grows" not in caplog.text


def test_the_power_of_the_growth_is_measured(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time_growth, "process_time", lambda: clock[0])

    def run(size: int) -> None:
        clock[0] += 1e-9 * size**3

    growth = growth_of_time(run, 1024)
    assert growth.exponent == pytest.approx(3)
    assert growth.predicted(2048) == pytest.approx(1e-9 * 2048**3)
