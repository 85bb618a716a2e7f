"""Edges that were computed are recognised by what computing them leaves, and others are not."""

import logging

import pytest
import torch
import torch_geometric.transforms as transforms
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import agnncert as ac
from agnncert.auditing.computed_edges import inspect_computed_edges

TOP = {"method": "topk", "k": 8, "dim": 0}
PAGERANK = {"method": "ppr", "alpha": 0.1}


def collected(num_nodes: int = 300) -> Data:
    """Random edges and random features, which know nothing of each other."""
    random = torch.Generator().manual_seed(0)
    edge_index = to_undirected(torch.randint(0, num_nodes, (2, 4 * num_nodes), generator=random), num_nodes=num_nodes)
    x = torch.randn(num_nodes, 6, generator=random)
    return Data(x=x, edge_index=edge_index, y=torch.arange(num_nodes) % 3, node_id=torch.arange(num_nodes))


def found(data: Data) -> list[str]:
    return [finding.what for finding in inspect_computed_edges(data)]


def nearest(points: torch.Tensor, number: int) -> torch.Tensor:
    distance = torch.cdist(points, points).fill_diagonal_(torch.inf)
    neighbours = distance.topk(number, largest=False).indices
    return torch.stack([neighbours.flatten(), torch.arange(len(points)).repeat_interleave(number)])


def within(points: torch.Tensor, radius: float) -> torch.Tensor:
    return (torch.cdist(points, points).fill_diagonal_(torch.inf) < radius).nonzero().T


def test_a_graph_as_it_was_collected_does_not_look_computed():
    assert found(collected()) == []
    assert found(ac.load_dataset("accounts-generated")) == []


@pytest.mark.parametrize(
    "edges",
    [
        lambda x: nearest(x, 1),
        lambda x: nearest(x, 5),
        lambda x: nearest(x, 5).flip(0),
        lambda x: to_undirected(nearest(x, 5)),
        lambda x: nearest(torch.nn.functional.normalize(x), 4),
        lambda x: within(x, 1.5),
    ],
    ids=["one", "five", "five, outgoing", "five, undirected", "by angle", "within a radius"],
)
def test_nearest_neighbours_are_recognised(edges):
    data = collected()
    data.edge_index = edges(data.x)
    assert "nearest neighbours" in found(data)
    data.x = data.x[torch.randperm(len(data.x), generator=torch.Generator().manual_seed(1))]
    assert "nearest neighbours" not in found(data)


@pytest.mark.parametrize("points", [lambda x: x, torch.nn.functional.normalize], ids=["by length", "by angle"])
def test_nearest_neighbours_by_standardised_columns_are_recognised(points):
    data = collected()
    standardised = data.x
    data.x = torch.cat([5 + data.x * torch.tensor([1, 1, 1, 1, 2, 40]), torch.ones(len(data.x), 1)], dim=1)
    assert found(data) == []
    data.edge_index = to_undirected(nearest(points((standardised - standardised.mean(0)) / standardised.std(0)), 5))
    assert found(data) == ["nearest neighbours"]


def test_nearest_neighbours_are_recognised_by_positions_and_in_a_part_of_the_graph():
    data = collected()
    data.pos = torch.randn(300, 2, generator=torch.Generator().manual_seed(2))
    data.edge_index = nearest(data.pos, 5)
    assert "nearest neighbours" in found(data)
    digits = ac.load_dataset("digits-knn")
    assert found(digits) == ["nearest neighbours"]
    assert found(digits.subgraph(digits.test_mask)) == ["nearest neighbours"]


def test_equal_features_are_nobodys_nearest_neighbours():
    data = collected()
    data.x = torch.eye(3)[data.y]
    assert found(data) == []
    data.x = torch.zeros(300, 3)
    data.x[-1] = 1
    assert found(data) == []


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (transforms.GDC(sparsification_kwargs=TOP, diffusion_kwargs=PAGERANK), ["equal degrees", "normalised weights"]),
        (transforms.GDC(diffusion_kwargs=PAGERANK), ["normalised weights"]),
        (transforms.GCNNorm(), ["normalised weights"]),
        (transforms.VirtualNode(), ["virtual node"]),
        (transforms.ToUndirected(), []),
        (transforms.AddSelfLoops(), []),
    ],
    ids=str,
)
def test_transforms_that_compute_edges_are_recognised_by_what_they_leave(transform, expected):
    assert found(transform(collected())) == expected


def test_diffusion_is_recognised_without_its_weights():
    data = transforms.GDC(sparsification_kwargs=TOP, diffusion_kwargs=PAGERANK)(collected())
    data.edge_attr = None
    assert found(data) == ["equal degrees"]


def test_a_ring_is_no_graph_of_nearest_neighbours_or_equal_degrees():
    data = collected()
    ring = torch.arange(300)
    data.edge_index = torch.cat([torch.stack([ring, (ring + k) % 300]) for k in (1, 2, 3, 4)], dim=1)
    assert found(data) == []


@pytest.mark.parametrize("defence", [ac.NodeCentric(5), ac.PerNeighbour()], ids=str)
def test_certify_warns_of_edges_that_look_computed_unless_the_graph_says_so(defence, caplog):
    data = collected()
    data.edge_index = nearest(data.x, 5)
    model = ac.build_model("gcn", data).eval()
    with caplog.at_level(logging.WARNING):
        certificate = ac.certify(model, data, defence, targets=[0, 1])
    assert "the edges look computed: nodes are joined to the nearest ones by data.x" in caplog.text
    assert "data.computed_edges" in caplog.text
    assert any("Which nodes and edges exist is not computed" in sentence for sentence in certificate.claim.assumes)
    caplog.clear()
    data.computed_edges = "nearest neighbours of the features"
    with caplog.at_level(logging.WARNING):
        ac.certify(model, data, defence, targets=[0, 1])
    assert "computed" not in caplog.text


def test_the_digits_say_themselves_that_their_edges_are_computed(caplog):
    data = ac.load_dataset("digits-knn")
    assert data.computed_edges == "each image is joined to the nearest ones by its pixels"
    with caplog.at_level(logging.WARNING):
        ac.certify(ac.build_model("gcn", data).eval(), data, ac.NodeCentric(5), targets=[0])
    assert "computed" not in caplog.text
