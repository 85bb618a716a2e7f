import sys

import pytest
import torch
from torch_geometric.data import Data

from agnncert.errors import SettingsError
from agnncert.training.clusters import partition


@pytest.fixture
def two_cliques() -> Data:
    clique = torch.combinations(torch.arange(6)).T
    bridge = torch.tensor([[0], [6]])
    return Data(x=torch.ones(12, 1), edge_index=torch.cat([clique, clique + 6, bridge], dim=1))


def test_a_partition_cuts_where_it_costs_least(two_cliques) -> None:
    pytest.importorskip("pymetis")
    parts = partition(two_cliques, 2)
    assert sorted(part.tolist() for part in parts) == [list(range(6)), list(range(6, 12))]


def test_every_node_is_in_exactly_one_part() -> None:
    pytest.importorskip("pymetis")
    edge_index = torch.randint(0, 50, (2, 120), generator=torch.Generator().manual_seed(0))
    graph = Data(x=torch.ones(53, 1), edge_index=edge_index)  # 3 nodes without an edge, and self-loops
    parts, again = partition(graph, 7), partition(graph, 7)
    assert torch.cat(parts).sort().values.tolist() == list(range(53))
    assert all(map(torch.equal, parts, again))
    assert len(parts) > 1


def test_a_graph_without_edges_can_be_partitioned() -> None:
    pytest.importorskip("pymetis")
    parts = partition(Data(x=torch.ones(4, 1), edge_index=torch.empty(2, 0, dtype=torch.int64)), 2)
    assert torch.cat(parts).sort().values.tolist() == [0, 1, 2, 3]


def test_one_part_is_everything_and_needs_no_pymetis(two_cliques, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert [part.tolist() for part in partition(two_cliques, 1)] == [list(range(12))]
    with pytest.raises(SettingsError, match=r"agnncert\[clusters\]"):
        partition(two_cliques, 2)


@pytest.mark.parametrize("num_parts", [0, 13])
def test_a_senseless_number_of_parts_is_refused(num_parts, two_cliques) -> None:
    with pytest.raises(SettingsError, match="expected a number from 1 to 12"):
        partition(two_cliques, num_parts)
