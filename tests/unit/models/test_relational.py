"""The relational GCN: PyG's RGCNConv on one-hot rows, weighted means on others, local, and certified as any model."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.data import Data

import agnncert as ac
from agnncert.auditing.known_layers import by_construction
from agnncert.errors import GraphError, ModelContractError, SettingsError
from agnncert.models.build import build_from_config
from agnncert.models.gnn import RelationalConv
from tests.support.checks import check_engines_agree
from tests.support.graphs import random_data


def typed(num_columns: int = 3, seed: int = 4) -> Data:
    data = random_data(seed, smallest=10, largest=14, density=0.4)
    data.x, generator = data.x.float(), torch.Generator().manual_seed(seed)
    data.edge_attr = torch.randn(data.num_edges, num_columns, generator=generator)
    data.y = torch.arange(data.num_nodes) % 3
    return data


def test_on_one_hot_rows_it_is_the_layer_of_pyg() -> None:
    torch.manual_seed(0)
    data = typed()
    relation = torch.randint(3, (data.num_edges,))
    theirs = pyg.RGCNConv(data.num_features, 4, num_relations=3, aggr="mean")
    ours = RelationalConv(data.num_features, 4, 3)
    with torch.no_grad():
        ours.lin.weight.copy_(theirs.root.t())
        ours.lin.bias.copy_(theirs.bias)
        for linear, weight in zip(ours.relations, theirs.weight, strict=True):
            linear.weight.copy_(weight.t())
    rows = torch.nn.functional.one_hot(relation, 3).float()
    x = data.x.float()
    assert torch.allclose(ours(x, data.edge_index, rows), theirs(x, data.edge_index, relation), atol=1e-5)


def test_a_column_is_a_weighted_mean_that_keeps_its_sign() -> None:
    layer = RelationalConv(1, 1, 1)
    with torch.no_grad():
        layer.lin.weight.zero_()
        layer.lin.bias.zero_()
        layer.relations[0].weight.fill_(1.0)
    x, edges = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[1, 2], [0, 0]])
    assert layer(x, edges, torch.tensor([[3.0], [-1.0]]))[0].item() == pytest.approx((3 * 1 - 5) / 4)
    assert layer(x, edges, torch.zeros(2, 1)).tolist() == [[0.0]] * 3  # nothing is divided by zero


@pytest.mark.parametrize(
    "division", [ac.EdgeCentric(4), ac.NodeCentric(4), ac.GatedNodeCentric(4), ac.PerNeighbour(), ac.PerEdge()], ids=str
)
def test_it_is_local_by_construction_and_both_engines_agree(division) -> None:
    data = typed()
    model = ac.build_model("rgcn", data, hidden_channels=6, num_layers=2).eval()
    assert by_construction(model)
    check_engines_agree(model, data, division)


def test_other_relations_are_other_votes(tmp_path) -> None:
    data = typed()
    model = ac.build_model("rgcn", data, hidden_channels=6, num_layers=2).eval()
    certificate = ac.certify(model, data, ac.PerEdge())
    certificate.save(tmp_path / "c.cert")
    assert ac.verify(tmp_path / "c.cert", data=data, model=model, recheck=20).holds
    other = data.clone()
    other.edge_attr = -other.edge_attr
    assert not ac.verify(tmp_path / "c.cert", data=other, model=model).holds


def test_graphs_are_classified_too_and_a_model_file_keeps_the_width(tmp_path) -> None:
    graphs = [typed(2, seed) for seed in range(5)]
    for k, graph in enumerate(graphs):
        graph.y = torch.tensor([k % 2])
    model = ac.build_model("rgcn", graphs, hidden_channels=6, num_layers=2, norm="layer_norm").eval()
    assert len(ac.certify(model, graphs, ac.PerEdge())) == 5
    ac.save_model(model, tmp_path / "m.safetensors")
    again = ac.load_model(tmp_path / "m.safetensors")
    assert again.config["edge_channels"] == 2
    assert "edge_channels" not in ac.build_model("gcn", graphs).config


def test_what_does_not_fit_is_said() -> None:
    data = typed()
    plain = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    with pytest.raises(GraphError, match=r"rgcn reads edge_attr.*from_hetero"):
        ac.build_model("rgcn", plain)
    model = ac.build_model("rgcn", data).eval()
    with pytest.raises(ModelContractError, match="needs edge_attr, which the graph does not have"):
        ac.certify(model, plain, ac.NodeCentric(3))
    with pytest.raises(SettingsError, match="edge_channels is None"):
        build_from_config({**model.config, "edge_channels": None})


def test_training_reads_the_relations() -> None:
    """A label that only the relation tells: with one weight for all edges nothing could be learned."""
    generator = torch.Generator().manual_seed(0)
    sign = torch.randint(2, (60,), generator=generator)
    edges = torch.stack([torch.arange(60), torch.arange(60, 120)])
    rows = torch.nn.functional.one_hot(sign, 2).float()
    y = torch.cat([torch.full((60,), -1), sign])
    data = Data(x=torch.ones(120, 1), edge_index=edges, edge_attr=rows, y=y, node_id=torch.arange(120))
    data.train_mask = data.val_mask = data.test_mask = y >= 0
    model = ac.fit(
        ac.build_model("rgcn", data, hidden_channels=8, num_layers=1), data, ac.PerEdge(), epochs=60, lr=0.05
    )
    certificate = ac.certify(model.eval(), data, ac.PerEdge(), data.test_mask)
    assert certificate.certified_accuracy(sizes=0) == 1.0
