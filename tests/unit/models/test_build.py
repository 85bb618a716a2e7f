"""Built-in models: shapes, locality, agreement with PyTorch Geometric, and refused settings."""

import inspect
import json
import re
from typing import get_args

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from agnncert.cli import options
from agnncert.errors import GraphError, SettingsError
from agnncert.models.build import MODELS, build_from_config, build_model
from agnncert.models.gnn import Dropout, ProjectedGINConv, ProjectedSAGEConv, normalised
from tests.unit.models.conftest import CHAIN

PLAIN = [name for name in MODELS if name != "rgcn"]  # which needs edge_attr: see test_relational
NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def small(name: str, data: Data | list[Data], **settings: object) -> torch.nn.Module:
    return build_model(name, data, **({"hidden_channels": 8, "num_layers": 2} | settings)).eval()


def close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-6)


def test_every_model_is_named_where_users_look_for_names() -> None:
    help_of_option = get_args(options.Model)[1].help
    for name in MODELS:
        assert f'``"{name}"``' in build_model.__doc__
        assert name in re.findall(r"[a-z]+", help_of_option)


# What they compute


@pytest.mark.parametrize("name", PLAIN)
def test_a_node_model_gives_every_node_a_row_of_logits(name, data) -> None:
    model = small(name, data)
    assert model(data.x, data.edge_index).shape == (7, 3)
    assert model(data.x, NO_EDGES).shape == (7, 3)
    assert model(data.x[:1], NO_EDGES).shape == (1, 3)


@pytest.mark.parametrize("readout", ["mean", "sum", "max"])
@pytest.mark.parametrize("name", PLAIN)
def test_a_graph_model_gives_every_graph_its_own_logits(name, readout, graphs) -> None:
    model = small(name, graphs, readout=readout)
    batch = Batch.from_data_list(list(graphs))
    together = model(batch.x, batch.edge_index, batch.batch)
    alone = [model(g.x, g.edge_index, torch.zeros(g.num_nodes, dtype=torch.int64)) for g in graphs]
    assert together.shape == (3, 2)
    assert close(together, torch.cat(alone))


@pytest.mark.parametrize(("readout", "pooled"), [("mean", [2.0]), ("sum", [6.0]), ("max", [5.0])])
def test_a_readout_is_what_it_is_called(readout, pooled, graphs) -> None:
    model = small("mlp", graphs, readout=readout, num_layers=1)
    with torch.no_grad():  # each layer hands on the sum of the features
        for layer in (model.convs[0], model.lin):
            layer.weight.fill_(0.0)[0] = 1.0
            layer.bias.zero_()
    x = torch.zeros(3, model.convs[0].in_features)
    x[:, 0] = torch.tensor([0.0, 1.0, 5.0])
    logits = model(x, torch.empty(2, 0, dtype=torch.int64), torch.zeros(3, dtype=torch.int64))
    assert logits[0, :1].tolist() == pooled


@pytest.mark.parametrize(
    "settings", [{}, {"jk": "cat"}, {"jk": "max"}, {"jk": "last"}, {"norm": "layer_norm"}], ids=str
)
@pytest.mark.parametrize("name", PLAIN)
def test_renaming_nodes_renames_the_logits(name, settings, data) -> None:
    model = small(name, data, **settings)
    order = torch.tensor([6, 2, 0, 5, 1, 4, 3])
    place = torch.argsort(order)
    shuffled = place[data.edge_index][:, torch.randperm(10, generator=torch.Generator().manual_seed(0))]
    assert close(model(data.x[order], shuffled), model(data.x, data.edge_index)[order])


@pytest.mark.parametrize("norm", [None, "batch_norm", "layer_norm"])
@pytest.mark.parametrize("name", PLAIN)
def test_a_node_beyond_the_layers_has_no_say(name, norm, data) -> None:
    model = small(name, data, norm=norm)
    before = model(data.x, data.edge_index)
    x = data.x.clone()
    x[3] += 100  # three hops from node 0, four layers' reach from node 6
    after = model(x, data.edge_index)
    assert torch.equal(before[[0, 6]], after[[0, 6]])
    assert not close(before[3], after[3])
    assert close(before[1], after[1]) == (name == "mlp")  # two hops away: within reach


@pytest.mark.parametrize("name", PLAIN)
def test_an_isolated_node_is_predicted_as_without_any_graph(name, data) -> None:
    model = small(name, data)
    assert close(model(data.x, data.edge_index)[6], model(data.x[6:], NO_EDGES)[0])


def test_the_mlp_reads_no_edge(data) -> None:
    model = small("mlp", data)
    assert torch.equal(model(data.x, data.edge_index), model(data.x, NO_EDGES))


@pytest.mark.parametrize("jk", [None, "cat", "max", "last"])
@pytest.mark.parametrize(("name", "reference"), [("gcn", pyg.GCN), ("sage", pyg.GraphSAGE), ("gat", pyg.GAT)])
def test_weights_of_pyg_give_the_logits_of_pyg(name, reference, jk, data) -> None:
    heads = {"heads": 4} if name == "gat" else {}
    theirs = reference(5, 8, 3, 3, jk=jk, **heads).eval()
    ours = small(name, data, num_layers=3, jk=jk)
    ours.load_state_dict(theirs.state_dict())
    assert close(ours(data.x, data.edge_index), theirs(data.x, data.edge_index))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_edges_are_normalised_as_by_pyg_to_the_last_bit(dtype) -> None:
    hub = torch.stack([torch.arange(1, 3000), torch.zeros(2999, dtype=torch.int64)])
    for arcs in (CHAIN, NO_EDGES, hub, hub.flip(0), torch.cat([hub, CHAIN], dim=1), torch.cat([CHAIN, CHAIN], dim=1)):
        for edges in (arcs, torch.cat([arcs, torch.tensor([[2], [2]])], dim=1)):  # the second has a loop
            for weight in (None, torch.linspace(0, 2, edges.size(1)).to(dtype)):
                theirs = gcn_norm(edges, weight, 3001, dtype=dtype)
                assert all(map(torch.equal, normalised(edges, weight, torch.empty(3001, 1, dtype=dtype)), theirs))


@pytest.mark.parametrize("edge_index", [CHAIN, NO_EDGES], ids=["chain", "no edges"])
def test_projecting_before_the_sum_changes_nothing(edge_index, data) -> None:
    sage, gin = (pyg.SAGEConv(5, 4), pyg.GINConv(torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU()), eps=0.5))
    ours = (
        ProjectedSAGEConv(5, 4),
        ProjectedGINConv(torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU()), eps=0.5),
    )
    for mine, theirs in zip(ours, (sage, gin), strict=True):
        mine.load_state_dict(theirs.state_dict())
        assert close(mine(data.x, edge_index), theirs(data.x, edge_index))


class OnlyProjected(Tensor):
    """Features that allow nothing but a linear map to be applied to them."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        assert func.__name__ in {"linear", "dim", "size", "__get__"}, f"{func.__name__} touches the features"
        plain = [a.as_subclass(Tensor) if isinstance(a, Tensor) else a for a in args]
        return func(*plain, **(kwargs or {}))


@pytest.mark.parametrize("name", PLAIN)
def test_features_enter_through_a_linear_map_only(name, data) -> None:
    """The fast engine computes that product once per node, so nothing may touch the features before it."""
    model = small(name, data)
    x = data.x.as_subclass(OnlyProjected)
    assert close(model(x, data.edge_index), model(data.x, data.edge_index))
    with pytest.raises(AssertionError, match="touches the features"):
        pyg.SAGEConv(5, 4)(x, data.edge_index)  # averages first


def test_edge_weights_are_taken_by_layers_that_read_them(data, graphs) -> None:
    weights = torch.linspace(0.1, 2, 10)
    for name in PLAIN:
        takes = "edge_weight" in inspect.signature(small(name, data).forward).parameters
        assert takes == (name in ("gcn", "resgcn"))
        assert takes == ("edge_weight" in inspect.signature(small(name, graphs).forward).parameters)
        if takes:
            model = small(name, data)
            assert not close(model(data.x, data.edge_index, weights), model(data.x, data.edge_index))
            ones = torch.ones(10)
            assert close(model(data.x, data.edge_index, ones), model(data.x, data.edge_index))


def test_the_residual_gcn_has_six_layers_and_adds_them_up(data) -> None:
    model = build_model("resgcn", data, hidden_channels=8).eval()
    assert len(model.convs) == 6
    for conv in model.convs:
        torch.nn.init.zeros_(conv.lin.weight)
        torch.nn.init.zeros_(conv.bias)
    expected = model.lin(model.lin_in(data.x))
    assert close(model(data.x, data.edge_index), expected)


@pytest.mark.parametrize("name", PLAIN)
def test_a_step_of_training_reaches_every_weight(name, data) -> None:
    model = small(name, data, act="tanh").train()
    model(data.x, data.edge_index).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


# How they are built


def test_the_seed_decides_the_weights_and_torch_is_left_alone(data) -> None:
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first, again, other = (small("gat", data, seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert any(not torch.equal(first[k], other[k]) for k in first)
    assert torch.equal(state, torch.random.get_rng_state())


def test_dropout_is_off_once_training_is_over(data) -> None:
    model = small("gcn", data, dropout=0.5)
    assert torch.equal(model(data.x, data.edge_index), model(data.x, data.edge_index))
    model.train()
    assert not torch.equal(model(data.x, data.edge_index), model(data.x, data.edge_index))


def test_the_number_of_classes_is_told_from_the_data(data, graphs) -> None:
    assert build_model("gcn", data).config["out_channels"] == 3
    data.num_classes = 5
    assert build_model("gcn", data).config["out_channels"] == 5
    assert build_model("gcn", graphs).config["out_channels"] == 2
    assert build_model("gcn", list(graphs)).config["out_channels"] == 2
    del data.y, data.num_classes
    with pytest.raises(SettingsError, match="pass out_channels"):
        build_model("gcn", data)
    assert build_model("gcn", data, out_channels=4)(data.x, data.edge_index).shape == (7, 4)


WRONG = {
    "name": ({"name": "gatt"}, 'no model is called "gatt": did you mean "gat"'),
    "readout": ({"readout": "average"}, "no readout"),
    "act": ({"act": "rleu"}, 'did you mean "relu"'),
    "norm": ({"norm": "graph_norm"}, "no norm is called"),
    "jk": ({"jk": "lstm"}, "no jk is called"),
    "task": ({"task": "edge"}, "no task"),
    "heads": ({"name": "gat", "heads": 3}, "choose a multiple of the number of heads"),
    "layers": ({"num_layers": 0}, "num_layers is 0"),
    "width": ({"hidden_channels": 2.5}, "hidden_channels is 2.5"),
    "dropout": ({"dropout": 1.0}, "dropout is 1.0"),
    "no number": ({"dropout": float("nan")}, "dropout is nan"),
    "classes": ({"out_channels": 1}, "needs at least two"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_senseless_setting_is_refused(settings, message, data) -> None:
    with pytest.raises(SettingsError, match=message):
        build_model(**({"name": "gcn", "data": data} | settings))


@pytest.mark.parametrize("name", PLAIN)
def test_a_model_can_be_rebuilt_from_its_description(name, data, graphs) -> None:
    for source in (data, graphs):
        model = small(name, source, jk="cat", norm="batch_norm", dropout=0.3, readout="sum", seed=4)
        again = build_from_config(json.loads(json.dumps(model.config)))
        assert type(again) is type(model)
        assert again.config == model.config
        assert all(torch.equal(again.state_dict()[k], v) for k, v in model.state_dict().items())


def test_a_faulty_description_is_refused() -> None:
    with pytest.raises(SettingsError, match='no setting "hiden_channels": did you mean "hidden_channels"'):
        build_from_config({"name": "gcn", "hiden_channels": 3})
    with pytest.raises(SettingsError, match="lacks task, in_channels, out_channels"):
        build_from_config({"name": "gcn"})


def test_dropout_drops_its_share_keeps_the_mean_and_is_off_in_eval_mode():
    torch.manual_seed(0)
    layer, x = Dropout(0.8), torch.ones(1000, 101)
    out = layer(x)
    assert abs((out == 0).float().mean() - 0.8) < 0.01
    assert abs(out.mean() - 1) < 0.03
    assert torch.equal(layer.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_built_in_models_stay_at_the_place_that_certificates_name(data, graphs) -> None:
    # The digest of a model covers the name of its class and module: a move would orphan all certificates made so far.
    kinds = {type(small(name, part)) for name in PLAIN for part in (data, graphs)}
    assert {kind.__module__ for kind in kinds} == {"agnncert.models.gnn"}


def test_class_numbers_with_gaps_are_refused_before_a_model_gets_classes_that_nothing_belongs_to() -> None:
    data = Data(x=torch.ones(4, 2), edge_index=torch.empty(2, 0).long(), y=torch.tensor([5, 9, 5, -1]))
    with pytest.raises(GraphError, match=r"labels y are 5, 9: .*8 of the 10 numbers .*return_inverse=True"):
        build_model("gcn", data)
    assert build_model("gcn", data, out_channels=10).config["out_channels"] == 10
    data.y = torch.tensor([0, 2, 0, 2])  # a class that is missing in these rows
    assert build_model("gcn", data).config["out_channels"] == 3


def test_an_unknown_argument_suggests_the_nearest() -> None:
    data = Data(x=torch.ones(4, 2), edge_index=torch.empty(2, 0).long(), y=torch.tensor([0, 1, 0, 1]))
    with pytest.raises(SettingsError, match='build_model has no argument "layers": did you mean "num_layers"'):
        build_model("gcn", data, layers=2)
    with pytest.raises(GraphError, match="x is a ndarray"):
        build_model("gcn", Data(x=data.x.numpy(), edge_index=data.edge_index, y=data.y))
