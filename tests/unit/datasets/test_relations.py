"""Directed and typed edges as one graph: direction and relation in edge_attr, ids kept."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData

import agnncert as ac
from agnncert.datasets.relations import both_directions
from agnncert.errors import GraphError
from agnncert.graphs.node_ids import exact_ids


def shop() -> HeteroData:
    data = HeteroData()
    data["user"].x, data["user"].node_id = torch.tensor([[1.0], [2.0], [3.0]]), ["ann", "bob", "7"]
    data["user"].y, data["user"].train_mask = torch.tensor([0, 1, 1]), torch.tensor([True, False, True])
    data["shop"].x, data["shop"].node_id = torch.tensor([[4.0, 5.0], [6.0, 7.0]]), torch.tensor([7, 8])
    data["user", "follows", "user"].edge_index = torch.tensor([[0, 1, 2], [1, 0, 2]])  # the last is a self-loop
    data["user", "rates", "shop"].edge_index = torch.tensor([[0, 2], [1, 0]])
    data["user", "rates", "shop"].edge_weight = torch.tensor([-3.0, 5.0])
    return data


def rows_of(data: Data) -> dict[tuple[int, int], list[float]]:
    return dict(zip(map(tuple, data.edge_index.t().tolist()), data.edge_attr.tolist(), strict=True))


def test_direction_and_sign_are_in_the_row() -> None:
    edges, rating = torch.tensor([[3, 0, 3, 2], [1, 3, 0, 2]]), torch.tensor([[-10.0], [4.0], [1.0], [9.0]])
    edge_index, rows = both_directions(edges, rating, 4)
    known = rows_of(Data(edge_index=edge_index, edge_attr=rows))
    assert known == {(3, 1): [-10, 0], (1, 3): [0, -10], (0, 3): [4, 1], (3, 0): [1, 4]}


@pytest.mark.parametrize(("reduce", "joined"), [("sum", 5.0), ("max", 3.0)])
def test_edges_that_are_listed_twice_are_joined(reduce, joined) -> None:
    _, rows = both_directions(torch.tensor([[0, 0], [1, 1]]), torch.tensor([[2.0], [3.0]]), 2, reduce)
    assert rows.tolist() == [[joined, 0], [0, joined]]


def test_kinds_of_nodes_and_edges_become_one_graph() -> None:
    data = ac.from_hetero(shop())
    assert [str(name) for name in exact_ids(data)] == ["user:ann", "user:bob", "user:7", "shop:7", "shop:8"]
    assert data.x.tolist() == [
        [1, 0, 1, 0, 0], [1, 0, 2, 0, 0], [1, 0, 3, 0, 0], [0, 1, 0, 4, 5], [0, 1, 0, 6, 7],
    ]  # fmt: skip
    assert data.y.tolist() == [0, 1, 1, -1, -1]
    assert data.train_mask.tolist() == [True, False, True, False, False]
    forward = ["user follows user", "user rates shop", "user rates shop, value 0"]
    assert data.edge_names == [*forward, *(f"{name}, back" for name in forward)]
    follow, rate = [1, 0, 0], [0, 1, -3]
    assert rows_of(data) == {
        (0, 1): follow + follow, (1, 0): follow + follow, (0, 4): rate + [0] * 3, (4, 0): [0] * 3 + rate,
        (2, 3): [0, 1, 5, 0, 0, 0], (3, 2): [0, 0, 0, 0, 1, 5],
    }  # fmt: skip


def test_one_kind_of_nodes_keeps_features_and_ids() -> None:
    data = shop()
    del data["shop"], data["user", "rates", "shop"]
    data["user", "blocks", "user"].edge_index = torch.tensor([[0], [1]])
    whole = ac.from_hetero(data)
    assert (whole.x.tolist(), whole.node_id) == ([[1], [2], [3]], ["ann", "bob", "7"])
    assert rows_of(whole) == {(0, 1): [1, 1, 1, 0], (1, 0): [1, 0, 1, 1]}  # joined by both relations
    del data["user"].node_id
    assert "node_id" not in ac.from_hetero(data)


def test_such_a_graph_is_trained_certified_and_attacked() -> None:
    data = ac.from_hetero(shop())
    data.val_mask = data.train_mask
    model = ac.build_model("rgcn", data, hidden_channels=4, num_layers=2, out_channels=2)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    ac.fit(model, data, ac.PerEdge(), epochs=5, evaluate_every=1)
    learnt = {name for name, weight in model.state_dict().items() if not torch.equal(weight, before[name])}
    assert {"convs.0.relations.0.weight", "convs.0.relations.1.weight"} <= learnt  # follows, rates
    certificate = ac.certify(model, data, ac.PerEdge(), targets=[0, 1, 2])
    assert list(certificate) == ["user:ann", "user:bob", "user:7"]
    report = ac.attack(model, data, budget=ac.Budget(delete_edges=1), certificate=certificate, kind="exhaustive")
    assert [result.target for result in report.results] == ["user:ann", "user:bob", "user:7"]
    for result in report.results:
        assert result.moved > 0  # each has an edge to lose
        again = ac.certify(model, result.perturbation.apply(data), ac.PerEdge(), targets=[0, 1, 2])
        assert again[result.target].label == result.label_after
    assert report.violations == ()
    attacked = ac.Perturbation(delete_edges=[("user:ann", "shop:8")]).apply(data)
    assert attacked.edge_attr.shape == (4, 6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["shop"].update({"y": torch.tensor([0, 1])}), "target=None: .*user, shop"),
        (lambda data: data["user"].pop("y"), "target=None: say which nodes"),
        (lambda data: data["shop"].pop("x"), "kind shop have no features"),
        (lambda data: data["shop"].pop("node_id"), "kind shop have no node_id"),
        (lambda data: [data.__delitem__(kind) for kind in list(data.edge_types)], "no edges"),
    ],
)
def test_what_is_missing_is_said(change, said) -> None:
    data = shop()
    change(data)
    with pytest.raises(GraphError, match=said):
        ac.from_hetero(data)


def test_another_target_can_be_chosen_and_other_objects_are_refused() -> None:
    data = shop()
    data["shop"].y = torch.tensor([1, 0])
    assert ac.from_hetero(data, target="shop").y.tolist() == [-1, -1, -1, 1, 0]
    with pytest.raises(GraphError, match="target='mall'"):
        ac.from_hetero(data, target="mall")
    with pytest.raises(GraphError, match="got Data"):
        ac.from_hetero(Data())
    with pytest.raises(GraphError, match="from_hetero"):
        ac.certify(torch.nn.Linear(1, 1), data, ac.PerEdge())


MISFITS = {
    "no edges in a relation": (
        lambda data: data["user", "rates", "shop"].pop("edge_index"),
        "edge_index of the relation user rates shop is missing",
    ),
    "edges to nodes of another kind": (
        lambda data: data["user", "rates", "shop"].update({"edge_index": torch.tensor([[0, 2], [1, 2]])}),
        "join rows 1 to 2 of kind shop, which has only 2 nodes",
    ),
    "labels in a list": (lambda data: data["user"].update({"y": [0, 1, 1]}), "y of nodes of kind user is a list"),
    "a mask of another length": (
        lambda data: data["user"].update({"train_mask": torch.tensor([True])}),
        "train_mask of nodes of kind user is a tensor of shape",
    ),
    "features in a list": (
        lambda data: data["shop"].update({"x": [[1.0], [2.0]]}),
        "x of nodes of kind shop is a list",
    ),
    "features of one dimension": (
        lambda data: data["shop"].update({"x": torch.ones(2)}),
        r"x of nodes of kind shop is a tensor of shape \[2\]",
    ),
    "too few ids": (lambda data: data["shop"].update({"node_id": torch.tensor([7])}), "have 1 ids in node_id, but 2"),
    "weights in a list": (
        lambda data: data["user", "rates", "shop"].update({"edge_weight": [1.0, 2.0]}),
        "edge_weight of the relation user rates shop is a list",
    ),
    "too many weights": (
        lambda data: data["user", "rates", "shop"].update({"edge_weight": torch.ones(3)}),
        "a row for each of its 2 edges",
    ),
}


@pytest.mark.parametrize(("change", "said"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_said_by_name(change, said) -> None:
    data = shop()
    change(data)
    with pytest.raises(GraphError, match=said):
        ac.from_hetero(data)
    with pytest.raises(GraphError, match=said):
        ac.HeteroModel(torch.nn.Identity(), data)


def test_a_graph_of_several_kinds_needs_no_ids() -> None:
    data = shop()
    for kind in data.node_types:
        del data[kind].node_id
    joined = ac.from_hetero(data)
    assert "node_id" not in joined
    assert ac.certify(ac.build_model("rgcn", joined).eval(), joined, ac.NodeCentric(3)).claim.ids == "row"


def test_tables_joined_by_their_keys_are_audited_certified_and_verified(tmp_path) -> None:
    """A graph as RelBench makes it: tables are kinds of nodes, keys are edges in both directions, rows have times."""
    torch.manual_seed(0)
    data = HeteroData()
    number = {"customer": 60, "product": 12, "review": 200}
    for table, rows in number.items():
        data[table].x = torch.rand(rows, 3)
        data[table].time = torch.arange(rows)
    for key, table in (("customer_id", "customer"), ("product_id", "product")):
        ends = torch.stack([torch.arange(200), torch.randint(number[table], (200,))])
        data["review", f"f2p_{key}", table].edge_index = ends
        data[table, f"rev_f2p_{key}", "review"].edge_index = ends.flip(0)
    data["customer"].y = (data["customer"].x[:, 0] > 0.5).long()
    time = data["customer"].time
    data["customer"].train_mask, data["customer"].test_mask = time < 30, time >= 40
    data["customer"].val_mask = ~(data["customer"].train_mask | data["customer"].test_mask)

    graph = ac.from_hetero(data, target="customer")
    model = ac.fit("rgcn", graph, ac.NodeCentric(8), epochs=3)
    assert ac.audit(model, graph, ac.NodeCentric(8)).ok
    certificate = ac.certify(model, graph, ac.NodeCentric(8), graph.test_mask)
    assert (len(certificate), certificate.claim.locality) == (20, "construction")
    assert (certificate.radius > 0).any()
    certificate.save(tmp_path / "customers.cert")
    assert ac.verify(tmp_path / "customers.cert", data=graph, model=model).holds
