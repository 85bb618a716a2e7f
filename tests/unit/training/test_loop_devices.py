"""Training a model on another device: chunks travel there, gradients reach every weight, and the weights are the same."""

import copy

import pytest
import torch

import agnncert as ac
from tests.support.labelled import labelled_graph, labelled_graphs
from tests.support.pretend_device import Far, far_away, sent_far

SHORT = {"epochs": 3, "evaluate_every": 1}


CASES = [
    ("gcn", "node", ac.EdgeCentric(4), {}),
    ("sage", "node", ac.NodeCentric(4), {}),
    ("gin", "node", ac.GatedNodeCentric(4), {}),
    ("gcn", "node", ac.EdgeCentric(4), {"clusters": 3, "clusters_per_step": 1}),
    ("gcn", "graph", ac.EdgeCentric(4), {}),
    ("gat", "graph", ac.NodeCentric(4), {}),
]


@pytest.mark.parametrize(("kind", "task", "division", "settings"), CASES, ids=str)
def test_a_model_on_another_device_learns_the_same(kind, task, division, settings):
    data = labelled_graph() if task == "node" else labelled_graphs()
    here = ac.build_model(kind, data, hidden_channels=8, dropout=0.0, seed=0)
    there, before = copy.deepcopy(here), copy.deepcopy(here.state_dict())
    ac.fit(here, data, division, **SHORT, **settings)
    with far_away():
        ac.fit(sent_far(there, trainable=True), data, division, **SHORT, **settings)
    for name, weight in there.named_parameters():
        assert isinstance(weight, Far)
        assert torch.equal(weight.numbers, here.get_parameter(name)), name
        assert not torch.equal(weight.numbers, before[name]), name
