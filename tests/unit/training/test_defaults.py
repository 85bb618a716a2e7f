"""Data that nobody here has seen: what is usual for it, what is said about it, and what came of it before."""

import logging

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.recipes import usual_arguments
from agnncert.study import advice_if_worse
from agnncert.training.settings import _RECIPES, checked, tuned_arguments
from agnncert_peers.runner import make_study
from tests.support.labelled import labelled_graph

DIVISION = ac.NodeCentric(10)
SIZES = torch.tensor([1, 1, 200.0, 50, 900, 3, 0.01, 30])


def like_enzymes(count: int = 120) -> ac.GraphSet:
    """Chains of nodes in four classes; attributes of very different size, as measured ones are, and no names."""
    random = torch.Generator().manual_seed(0)
    kinds = torch.randn(4, len(SIZES), generator=random)
    graphs = []
    for k in range(count):
        nodes = int(torch.randint(8, 20, (1,), generator=random))
        own = kinds[k % 4] + 0.6 * torch.randn(1, len(SIZES), generator=random)
        x = (own + torch.randn(nodes, len(SIZES), generator=random) + 2) * SIZES
        chain = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
        edges = torch.cat([chain, chain.flip(0)], dim=1)
        graphs.append(Data(x=x, edge_index=edges, y=torch.tensor([k % 4]), node_id=torch.arange(nodes)))
    return ac.GraphSet(graphs, train=range(60), val=range(60, 90), test=range(90, count))


def test_recipes_of_the_catalogue_stay_as_they_are() -> None:
    data = labelled_graph()
    for name in (*_RECIPES, "cora-ml"):
        assert usual_arguments(name, data) == tuned_arguments(name, "node")


def test_training_for_a_size_may_have_a_recipe_of_its_own_and_others_keep_theirs() -> None:
    plain, designed = (
        tuned_arguments("amazon-c", "node", objective=objective) for objective in ("balanced", "certified")
    )
    assert plain == tuned_arguments("amazon-c", "node")
    assert (designed[0]["scale"], designed[0]["num_layers"]) == ("standard", plain[0]["num_layers"])
    assert "scale" not in plain[0]
    assert "norm" in plain[0].keys() - designed[0].keys()  # and no None, which a run folder could not store
    assert designed[1].keys() == plain[1].keys()
    assert tuned_arguments("cora-ml", "node", objective="certified") == tuned_arguments("cora-ml", "node")


def test_stacked_votes_of_one_dataset_begin_with_standardised_features() -> None:
    model_args, fit_args = tuned_arguments("amazon-c", "node", "mlp", "stacked")
    measured = {"num_layers": 2, "hidden_channels": 128, "dropout": 0.5, "scale": "standard"}  # as in the benchmark
    assert model_args == measured
    assert {name: fit_args[name] for name in ("lr", "weight_decay", "epochs")} == {
        "lr": 0.005, "weight_decay": 5e-4, "epochs": 60
    }  # fmt: skip
    assert fit_args["patience"] * fit_args["evaluate_every"] >= fit_args["epochs"]  # never stops early
    assert tuned_arguments("cora-ml", "node", "mlp", "stacked") == tuned_arguments("cora-ml", "node", "mlp")


def test_other_data_gets_what_suits_its_width_and_size() -> None:
    narrow, wide = labelled_graph(), labelled_graph(features=300)
    assert usual_arguments("folder", narrow)[0]["dropout"] < usual_arguments("folder", wide)[0]["dropout"]
    for data in (narrow, wide, like_enzymes()):
        model_args, fit_args = usual_arguments(None, data)
        checked(fit_args, "graph" if isinstance(data, ac.GraphSet) else "node")
        assert ac.build_model("gcn", data, **model_args).config["in_channels"] > 0
    assert "scale" not in usual_arguments(None, narrow)[0]
    assert usual_arguments(None, like_enzymes())[0]["scale"] == "standard"
    assert make_study(like_enzymes()).model_args["scale"] == "standard"


def test_large_data_gets_fewer_epochs_and_many_classes_wider_layers() -> None:
    def epochs(num_nodes):
        data = labelled_graph(30)
        data.x, data.y = torch.ones(num_nodes, 3), torch.zeros(num_nodes, dtype=torch.int64)
        for name in ("train_mask", "val_mask", "test_mask"):
            del data[name]
        model_args, fit_args = usual_arguments(None, data)
        checked(fit_args, "node")
        assert model_args["dropout"] <= 0.8
        return fit_args["epochs"]

    assert [epochs(number) for number in (30, 15_001, 30_001, 1_000_001)] == [200, 120, 60, 30]
    graphs = like_enzymes()
    assert usual_arguments(None, graphs)[1]["epochs"] == tuned_arguments(None, "graph")[1]["epochs"] == 60
    for graph in graphs:
        graph.x = torch.ones(3000, 2)
    fit_args = usual_arguments(None, graphs)[1]
    assert (fit_args["epochs"], fit_args["clip"]) == (45, 1.0)
    few, many = labelled_graph(90, classes=3), labelled_graph(90, classes=30)
    assert "hidden_channels" not in usual_arguments(None, few)[0]
    assert usual_arguments(None, many)[0]["hidden_channels"] == 128


def test_small_data_costs_no_more_than_the_recipe_for_all_data() -> None:
    for data, task in ((labelled_graph(), "node"), (like_enzymes(), "graph")):
        (model_args, fit_args), (_, plain) = usual_arguments(None, data), tuned_arguments(None, task)
        assert fit_args["epochs"] <= plain["epochs"]
        assert fit_args["evaluate_every"] >= plain["evaluate_every"]
        assert model_args.get("hidden_channels", 64) <= 64


@pytest.mark.slow
def test_uneven_columns_no_longer_spoil_what_a_new_user_gets() -> None:
    graphs = like_enzymes()
    before, after = (tuned_arguments(None, "graph"), usual_arguments(None, graphs))
    scores = []
    for model_args, fit_args in (before, after):
        model = ac.build_model("gcn", graphs, **model_args)
        scores.append(ac.fit(model, graphs, DIVISION, **{**fit_args, "epochs": 25}).training_record["score"])
    assert scores[0] < 0.5
    assert scores[1] > 0.75


def test_uneven_columns_are_said_once_and_not_of_a_model_that_scales(caplog, tmp_path) -> None:
    graphs = like_enzymes(60 + 40)
    with caplog.at_level(logging.WARNING):
        ac.fit(ac.build_model("gcn", graphs, hidden_channels=4), graphs, DIVISION, epochs=1)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "column 4 varies by" in said
    assert 'scale="standard"' in said
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        ac.fit(ac.build_model("gcn", graphs, hidden_channels=4, scale="standard"), graphs, DIVISION, epochs=1)
        plain = ac.build_model("gcn", graphs, hidden_channels=4)
        ac.fit(plain, graphs, None, epochs=1, checkpoint=tmp_path / "reference")
    assert not caplog.records


def test_a_model_that_is_worse_than_one_without_edges_is_told_what_to_try() -> None:
    config = ac.build_model("gcn", labelled_graph()).config
    told = advice_if_worse(0.24, 0.57, config)
    assert "24.0 %" in told
    assert "57.0 %" in told
    assert "--set norm=batch_norm, --set scale=standard" in told
    assert advice_if_worse(0.57, 0.57, config) is None
    assert "--set" not in advice_if_worse(0.1, 0.2, None)
    assert "norm" not in advice_if_worse(0.1, 0.2, {**config, "norm": "layer_norm"})


def test_modules_without_settings_are_trained_as_before() -> None:
    class Net(nn.Linear):
        def forward(self, x, edge_index):
            return super().forward(x)

    data = labelled_graph()
    assert ac.fit(Net(5, 3).double(), data, DIVISION, epochs=1).training_record["score"] >= 0
