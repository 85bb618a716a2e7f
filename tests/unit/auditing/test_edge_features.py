"""Features that were computed from the edges make certificates void: what can be recognised is refused, by column."""

import pytest
import torch
import torch_geometric.transforms as transforms
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import agnncert as ac
from agnncert.auditing import edge_features
from agnncert.auditing.degree_features import inspect_features
from agnncert.auditing.edge_features import inspect_edge_features
from tests.support.computed_columns import COMPUTED, DATA, NODES, WIDTH, encoded, graph, of_neighbours
from tests.zoo.local import zoo_data


@pytest.mark.parametrize("name", COMPUTED)
def test_a_column_that_was_computed_from_the_edges_is_refused_by_number(name):
    make, why = COMPUTED[name]
    data = make()
    findings = list(inspect_edge_features(data))
    assert [finding.why.startswith(why) for finding in findings] == [True]
    named = findings[0].what.partition(" and ")[0].replace("columns", "").replace("column", "").split(",")
    assert all(int(column) >= WIDTH for column in named)
    model = ac.build_model("gcn", data, out_channels=3).eval()
    with pytest.raises(ac.errors.ModelContractError, match=why):
        ac.certify(model, data, ac.NodeCentric(5), targets=[0])


def test_what_a_transform_left_is_refused_once_it_is_among_the_features():
    data = encoded(transforms.AddRandomWalkPE(4))
    assert list(inspect_edge_features(data)) == []
    data.x = torch.cat([data.x, data.random_walk_pe], dim=1)
    assert "data.random_walk_pe" in next(inspect_edge_features(data)).why


def test_a_one_hot_degree_is_refused():
    largest = int(torch.bincount(DATA.edge_index[0]).max())
    data = encoded(transforms.OneHotDegree(largest))
    assert "one-hot degree" in next(inspect_features(data)).why


def constant_within_components() -> Data:
    """Many small components with a number of their own at all nodes, and a copy of it."""
    edges = torch.cat([torch.tensor([[k, k + 1], [k + 1, k + 2], [k, k + 2]]) for k in range(0, 300, 3)]).t()
    country = torch.arange(100).repeat_interleave(3).float()
    x = torch.stack([country, 2 * country + 1, torch.randn(300, generator=torch.Generator().manual_seed(0))], dim=1)
    return Data(x=x, edge_index=to_undirected(edges))


def two_kinds() -> Data:
    """A bipartite graph with the kind of each node as a feature."""
    generator = torch.Generator().manual_seed(0)
    ends = torch.stack(
        [torch.randint(0, 100, (600,), generator=generator), torch.randint(100, 300, (600,), generator=generator)]
    )
    kind = (torch.arange(300) < 100).float()
    x = torch.stack([kind, 1 - kind, torch.randn(300, generator=generator)], dim=1)
    return Data(x=x, edge_index=to_undirected(ends))


def words() -> Data:
    """Features of zeros and ones, as of words."""
    generator = torch.Generator().manual_seed(0)
    return Data(x=(torch.rand(NODES, 50, generator=generator) < 0.1).float(), edge_index=DATA.edge_index)


HONEST = {
    "plain": graph,
    "zoo": zoo_data,
    "constant within components": constant_within_components,
    "kinds": two_kinds,
    "words": words,
    "nearest neighbours": lambda: ac.load_dataset("digits-knn"),
    "generated accounts": lambda: ac.load_dataset("accounts-generated"),
}


def star(leaves: int = 1_500) -> Data:
    """A hub with leaves, all of which hear the same neighbour."""
    ends = torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)])
    x = torch.randn(leaves + 1, 3, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=to_undirected(ends))


def test_random_features_of_the_leaves_of_a_hub_are_no_eigenvector():
    assert list(inspect_edge_features(star())) == []


@pytest.mark.parametrize("name", HONEST)
def test_features_of_the_nodes_themselves_are_accepted(name):
    data = HONEST[name]()
    assert list(inspect_edge_features(data)) == []
    assert list(inspect_features(data)) == []


def test_a_graph_that_is_too_large_is_passed_over_aloud(monkeypatch, caplog):
    data = of_neighbours("mean")
    monkeypatch.setattr(edge_features, "MOST_EDGES", data.num_edges - 1)
    assert list(inspect_edge_features(data)) == []
    ac.audit(ac.build_model("gcn", data, out_channels=3).eval(), data, ac.NodeCentric(5))
    assert "whether features were computed from edges was not looked at" in caplog.text
