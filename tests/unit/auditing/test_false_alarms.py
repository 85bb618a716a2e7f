"""Models that are fit, or nearly so, are told apart from those that remember: what is in the way is named."""

import inspect
import threading
import types

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import agnncert as ac
from agnncert.auditing.model_audit import audit
from agnncert.divisions.node import NodeCentric
from agnncert.errors import ModelContractError
from tests.zoo.local import CLASSES, WIDTH, zoo_data

DIVISION = NodeCentric(5)


class Keeping(nn.Module):
    def __init__(self, kept: object = None, aggr: str = "mean") -> None:
        super().__init__()
        self.conv, self.kept = pyg.SAGEConv(WIDTH, CLASSES, aggr=aggr), [{"first": kept}]

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


CONSTANTS = {
    "a signature": inspect.signature(zoo_data),
    "a view of a dictionary": types.MappingProxyType({"heads": 2}),
    "parameters of a signature": inspect.signature(zoo_data).parameters,
    "a module of Python": inspect,
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_that_python_does_not_copy_are_no_hindrance(name):
    assert ac.certify(Keeping(CONSTANTS[name]).eval(), zoo_data(), DIVISION, targets=[0])


def test_a_view_of_a_dictionary_that_the_model_alters_is_state():
    calls = {"calls": 0}

    class Counting(Keeping):
        def forward(self, x, edge_index):
            calls["calls"] += 1
            return super().forward(x, edge_index)

    report = audit(Counting(types.MappingProxyType(calls)).eval(), zoo_data(), DIVISION)
    assert any("the model changes" in finding.why for finding in report.findings)


def test_what_cannot_be_copied_is_named():
    with pytest.raises(ModelContractError, match=r"It is model\.kept\[0\]\['first'\], a lock\."):
        audit(Keeping(threading.Lock()).eval(), zoo_data(), DIVISION)


def test_a_median_that_fails_without_edges_is_named():
    with pytest.raises(ModelContractError, match="MedianAggregation fails where no edge arrives: use mean"):
        audit(Keeping(aggr="median").eval(), zoo_data(), DIVISION)


def test_a_precision_in_which_nothing_is_certified_is_named():
    model = Keeping().eval()
    assert "precision" not in str(audit(model, zoo_data(), DIVISION))
    assert "may lie 0.25 of the largest apart" in str(audit(model.bfloat16(), zoo_data(), DIVISION))
    assert (ac.certify(model, zoo_data(), DIVISION).radius == -1).all()


def test_what_a_test_cannot_find_is_said_where_the_verdict_is_printed():
    data = zoo_data()
    assert "tested, not proved" in str(audit(Keeping().eval(), data, DIVISION))
    assert "tested" not in str(audit(ac.build_model("gcn", data, out_channels=3).eval(), data, DIVISION))


def graphs(one_hot: bool = False):
    some = []
    for seed in range(6):
        graph = zoo_data(seed, nodes=8 + seed, pairs=24)
        del graph.edge_weight, graph.edge_attr
        graph.y = torch.tensor([seed % 3])
        if one_hot:
            graph.x = torch.eye(WIDTH)[torch.arange(graph.num_nodes) % WIDTH]
        some.append(graph)
    return some


class OfOneGraph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.out = pyg.GCNConv(WIDTH, 8), nn.Linear(8, CLASSES)

    def forward(self, x, edge_index):
        return self.out(self.conv(x, edge_index).relu().mean(0, keepdim=True))


class OfManyGraphs(OfOneGraph):
    def forward(self, x, edge_index, batch):
        return self.out(pyg.global_mean_pool(self.conv(x, edge_index).relu(), batch))


@pytest.mark.parametrize("engine", ["fast", "naive"])
def test_a_model_of_one_graph_votes_as_the_same_model_of_a_batch(engine):
    one = ac.certify(OfOneGraph().eval(), graphs(), DIVISION, engine=engine)
    many = ac.certify(OfManyGraphs().eval(), graphs(), DIVISION, engine=engine)
    assert (one.counts == many.counts).all()
    assert (one.radius == many.radius).all()


def test_a_model_of_nodes_is_no_model_of_one_graph():
    with pytest.raises(ModelContractError, match="a model of nodes, which takes no batch"):
        audit(Keeping().eval(), graphs(), DIVISION)


class Ranking(OfManyGraphs):
    def __init__(self) -> None:
        super().__init__()
        self.pool, self.last = pyg.TopKPooling(8), pyg.GCNConv(8, 8)

    def forward(self, x, edge_index, batch):
        x, edge_index, _, batch, *_ = self.pool(self.conv(x, edge_index), edge_index, batch=batch)
        return self.out(pyg.global_mean_pool(self.last(x, edge_index), batch))


def test_a_layer_that_ranks_nodes_is_named():
    report = audit(Ranking().eval(), graphs(one_hot=True), DIVISION)
    assert ("pool", True) in [(finding.where, "TopKPooling ranks nodes" in finding.why) for finding in report.findings]
