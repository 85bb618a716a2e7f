"""The ballots to start from: the size alone where only sizes tell classes apart, and kinds where these tell more."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.graphs.graph import canonical_set
from agnncert.training.first_ballots import first_ballots
from agnncert.training.side_by_side import DistinctSubgraphs
from agnncert.training.vote_search import BallotTable, certified_accuracy, size_only
from agnncert.voting.call import bind

DIVISION = ac.NodeCentric(2000)  # hardly two nodes share a group


def graphs_with(numbers, truth) -> list[Data]:
    """One graph for each pair: so many nodes of the first kind, so many of the second, no edges."""
    no_edges = torch.zeros(2, 0, dtype=torch.int64)
    return [
        Data(x=torch.eye(2).repeat_interleave(torch.tensor(pair), dim=0), edge_index=no_edges, y=torch.tensor([label]))
        for pair, label in zip(numbers, truth, strict=True)
    ]


def searched(numbers, truth, sizes):
    graphs = graphs_with(numbers, truth)
    joined = canonical_set(graphs)
    call = bind(ac.build_model("gcn", graphs, hidden_channels=4), joined, "graph")
    subgraphs = DistinctSubgraphs.of(call, joined, len(truth), DIVISION)
    found = first_ballots(subgraphs, np.array(truth), DIVISION.num_groups, 2, sizes)
    counts = np.zeros((len(truth), 2), dtype=np.int64)
    np.add.at(counts, (subgraphs.owner.numpy(), found.of_kind[subgraphs.kind].numpy()), 1)
    table = BallotTable.of_graphs(DIVISION.num_groups, counts, np.array(truth))
    return found, certified_accuracy(table, found.constants, sizes[0]), table


def test_where_sizes_tell_all_the_ballots_are_those_of_the_size_alone() -> None:
    found, accuracy, _ = searched([(2, 2), (3, 1), (1, 4), (20, 20), (25, 18), (19, 22)], [0, 0, 0, 1, 1, 1], (3,))
    assert accuracy == pytest.approx(1)
    assert len(found.of_kind.unique()) == 1


def test_where_one_kind_tells_more_it_is_counted_alone() -> None:
    numbers = [(2, 40), (3, 11), (1, 25), (20, 9), (22, 31), (19, 22)]
    found, accuracy, table = searched(numbers, [0, 0, 0, 1, 1, 1], (3,))
    assert accuracy == pytest.approx(1)
    assert size_only(table, (3,))[1].score < 1
    assert len(found.of_kind.unique()) == 2


def test_a_size_at_which_only_a_constant_answer_is_left_starts_from_a_vote_all_the_same() -> None:
    found, _, _ = searched([(2, 2), (3, 1), (4, 4), (5, 4)], [0, 0, 1, 1], (50,))
    assert max(found.constants.prior) <= DIVISION.num_groups
