"""Layers that are local by construction: each withstands the probes, and only the text that was read counts."""

import inspect

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import agnncert as ac
from agnncert.auditing.known_layers import KNOWN, READ, by_construction
from agnncert.auditing.model_audit import audit
from agnncert.auditing.probes import Probes
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.models.build import MODELS as BUILT_IN
from agnncert.models.gnn import ProjectedGINConv, ProjectedSAGEConv
from agnncert.stacked.model import GraphFree
from tests.zoo.local import CLASSES, HIDDEN, WIDTH, Plain, mlp, zoo_data

D, H, C = WIDTH, HIDDEN, CLASSES
DATA = zoo_data()
MODELS = [
    *[lambda kind=kind: pyg_stack(kind) for kind in ("GCN", "GraphSAGE", "GIN", "GAT")],
    lambda: pyg.GAT(D, H, 2, C, v2=True, edge_dim=2, jk="lstm", norm="layer_norm", norm_kwargs={"mode": "node"}),
    lambda: pyg.SGConv(D, C, K=2),
    lambda: pyg.TAGConv(D, C),
    lambda: pyg.GraphConv(D, C, aggr="max"),
    lambda: pyg.SAGEConv(D, C, aggr="min"),
    lambda: pyg.GINEConv(mlp(D, H, C), edge_dim=2),
    lambda: nn.Sequential(nn.Linear(D, H), nn.RMSNorm(H), nn.Linear(H, C), nn.LogSoftmax(-1)),
    lambda: pyg.APPNP(2, 0.1),
    lambda: GraphFree(nn.Sequential(nn.Linear(D, H), nn.ReLU(), nn.Linear(H, C))),
    lambda: GraphFree(pyg.GCN(D, H, 2, C)),
    lambda: ProjectedSAGEConv(D, C),
    lambda: ProjectedGINConv(mlp(D, H, C)),
]


def pyg_stack(kind):
    return getattr(pyg, kind)(D, H, 2, C, norm="batch_norm", jk="cat", act="elu")


@pytest.mark.parametrize("make", MODELS)
@torch.no_grad()
def test_what_was_read_withstands_the_probes(make):
    torch.manual_seed(0)
    model = make().eval()
    takes_edges = not isinstance(model, nn.Sequential)
    assert by_construction(model)
    for division in (NodeCentric(4), EdgeCentric(4)):
        probe = Probes(model if takes_edges else WithoutEdges(model), "node", DATA, division)
        assert not list(probe.findings())


class WithoutEdges(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, edge_index):
        return self.net(x)


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("task", ["node", "graph"])
def test_built_in_models_are_known(name, task):
    for norm in (None, "batch_norm", "layer_norm"):
        for scale in (None, "standard"):
            model = ac.build_model(name, DATA, norm=norm, scale=scale, task=task, out_channels=C)
            assert by_construction(model.eval())


def test_every_class_has_a_reason_and_the_text_of_every_one_is_pinned():
    folder = pyg.__file__.rpartition("nn")[0]
    for kind, known in KNOWN.items():
        assert known.reason
        for base in kind.__mro__:
            if base.__module__.startswith("torch_geometric"):
                file = inspect.getsourcefile(base).removeprefix(folder)
                assert file in READ, f"{base.__name__} was not read"


def test_another_text_is_not_what_was_read(monkeypatch):
    assert by_construction(pyg.GCNConv(D, C).eval()), "read the new text of PyTorch Geometric, then pin it"
    monkeypatch.setitem(READ, "nn/conv/gcn_conv.py", "0" * 64)
    assert not by_construction(pyg.GCNConv(D, C).eval())
    assert audit(pyg.GCNConv(D, C).eval(), data=DATA).locality == "test"


class Derived(pyg.GCNConv):
    pass


def with_hook(register):
    model = pyg.GCN(D, H, 2, C).eval()
    getattr(model.convs[0], register)(lambda *args: None)
    return model


def with_method(name):
    model = pyg.GCN(D, H, 2, C).eval()
    setattr(model.convs[1], name, lambda *args, **kwargs: None)
    return model


def with_kept_edges():
    layer = pyg.GCNConv(D, C, cached=True).eval()
    layer(DATA.x, DATA.edge_index)
    layer.cached = False
    return layer


def with_strange_weight():
    model = pyg.GCN(D, H, 2, C).eval()
    model.convs[0].bias = type("Loud", (nn.Parameter,), {})(torch.zeros(H))
    return model


TAMPERED = {
    "a class of one's own": lambda: Plain(pyg.GCNConv(D, H)),
    "a derived class": lambda: Derived(D, C),
    "a hook": lambda: with_hook("register_forward_hook"),
    "a hook before": lambda: with_hook("register_forward_pre_hook"),
    "a hook in the middle": lambda: with_hook("register_message_forward_hook"),
    "another forward": lambda: with_method("forward"),
    "another message": lambda: with_method("message"),
    "edges kept from before": with_kept_edges,
    "a weight of a strange kind": with_strange_weight,
    "an activation that is a function": lambda: pyg.GCN(D, H, 2, C, act=lambda x: x - x.mean(0)),
    "an aggregation that was not read": lambda: pyg.SAGEConv(D, C, aggr="lstm"),
    "backwards": lambda: pyg.SAGEConv(D, C, flow="target_to_source"),
    "softmax over nodes": lambda: nn.Sequential(nn.Linear(D, C), nn.Softmax(0)),
    "no statistics": lambda: nn.Sequential(nn.Linear(D, C), nn.BatchNorm1d(C, track_running_stats=False)),
    "norm over the graph": lambda: pyg.GCN(D, H, 2, C, norm="layer_norm"),
    "norm over a graph": lambda: pyg.GCN(D, H, 2, C, norm="graph_norm"),
    "training mode": lambda: pyg.GCN(D, H, 2, C, dropout=0.5).train(),
    "no module": lambda: torch.nn.functional.relu,
}


@pytest.mark.parametrize("name", TAMPERED)
def test_nothing_else_is_known(name):
    model = TAMPERED[name]()
    assert not by_construction(model.eval() if isinstance(model, nn.Module) and name != "training mode" else model)


def test_a_class_with_another_method_is_not_what_was_read(monkeypatch):
    layer = pyg.GCNConv(D, C).eval()
    monkeypatch.setattr(pyg.GCNConv, "message", lambda self, x_j, edge_weight: x_j)
    assert not by_construction(layer)
