"""What ``make bench`` says about the graphs and models that it measures."""

import torch
from torch_geometric.data import Data

from agnncert.graphs.canonical import canonical
from agnncert.models.build import build_model
from experiments.benchmarks.run import bound, pairs_of, table


def test_pairs_are_counted_once_and_without_loops():
    edges = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 0, 2, 1, 1]])
    assert pairs_of(canonical(Data(x=torch.ones(3, 1), edge_index=edges))) == 2


def test_votes_are_measured_as_certify_decides_them():
    data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1, 0]))
    assert bound(build_model("gcn", data).eval(), canonical(data), "node").rounding == "float32"


def test_the_table_says_pairs_and_load():
    row = {"dataset": "a", "pairs": 12_345, "division": "d", "load": 0.5, "naive_sampled": "all"}
    assert "| a | 12,345 | d | 0.5 |" in table([row])
