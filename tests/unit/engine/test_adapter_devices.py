"""Models on another device: chunks travel there, logits come back, and the certificate is the same."""

from functools import cache

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.engine import adapter
from agnncert.engine import features as lazy_rows
from agnncert.errors import ModelContractError
from tests.support.graphs import random_data
from tests.support.models import build
from tests.support.pretend_device import FAR, Far, far_away, sent_far

NODE = random_data(5, smallest=14, largest=14, density=0.4)
GRAPHS = [random_data(seed, smallest=5, density=0.5) for seed in range(4)]
CASES = [
    ("node", EdgeCentric(5)),
    ("node", NodeCentric(5)),
    ("node", GatedNodeCentric(5)),
    ("graph", EdgeCentric(4)),
    ("graph", NodeCentric(4)),
    ("node", ac.baselines.GNNCertE(4)),
]


@cache
def certified(kind, task, division, **settings):
    """The certificate of a model in main memory, which no test alters."""
    return ac.certify(build(kind, task).eval(), NODE if task == "node" else GRAPHS, division, **settings)


def certified_far(kind, task, division, **settings):
    with far_away():
        model = sent_far(build(kind, task).eval())
        return ac.certify(model, NODE if task == "node" else GRAPHS, division, **settings)


def both(*given, **settings):
    """The certificates of one model in main memory and of the same model far away."""
    return certified(*given, **settings), certified_far(*given, **settings)


@pytest.mark.parametrize(("task", "division"), CASES, ids=str)
def test_a_model_on_another_device_casts_the_same_votes(task, division):
    here, there = both("gcn", task, division)
    for name, array in here.evidence.tensors().items():
        assert np.array_equal(array, there.evidence.tensors()[name]), name
    assert here.claim == there.claim


def test_the_plain_engine_follows_the_model_too():
    here, there = both("sage", "node", NodeCentric(5), engine="naive")
    assert np.array_equal(here.counts, there.counts)


def test_features_travel_in_blocks(monkeypatch):
    monkeypatch.setattr(lazy_rows, "ROWS_THAT_TRAVEL", 3)
    here, there = both("gcn", "node", EdgeCentric(5))
    assert np.array_equal(here.counts, there.counts)


def test_data_may_lie_on_the_device_too():
    model, data = build("gcn", "node").eval(), NODE.clone()
    here = certified("gcn", "node", EdgeCentric(5))
    with far_away():
        data.x, data.edge_index = Far(data.x), Far(data.edge_index)
        there = ac.certify(sent_far(model), data, EdgeCentric(5))
    assert np.array_equal(here.counts, there.counts)
    assert here.claim == there.claim


def test_a_certificate_is_verified_with_a_model_on_another_device(tmp_path):
    model = build("gcn", "node").eval()
    certified("gcn", "node", EdgeCentric(5)).save(tmp_path / "a.cert")
    with far_away():
        assert ac.verify(tmp_path / "a.cert", data=NODE, model=sent_far(model), recheck=20).holds


def test_a_model_on_two_devices_is_refused_by_name():
    model = build("gcn", "node").eval()
    name, weight = list(model.named_parameters())[-1]
    layer = model.get_submodule(name.rpartition(".")[0])
    layer._parameters[name.rpartition(".")[2]] = torch.nn.Parameter(Far(weight.detach()), requires_grad=False)
    with far_away(), pytest.raises(ModelContractError, match=rf"on cpu and {name} on {FAR}: bring it to one device"):
        ac.certify(model, NODE, EdgeCentric(5))


@pytest.mark.parametrize("forgotten", ["logits", "edges", "features"])
def test_whoever_forgets_to_send_something_is_told(monkeypatch, forgotten):
    """The pretend device is strict: with one transfer left out, nothing can be certified."""
    if forgotten == "features":
        monkeypatch.setattr(lazy_rows.LazyRows, "on", lambda self, device: self)
    else:
        monkeypatch.setattr(adapter.ModelAdapter, "run", _careless(forgotten))
    with pytest.raises(Exception, match=r"same device|numpy|device"):
        certified_far("gcn", "node", EdgeCentric(5))


def _careless(forgotten):
    def run(self, x, edge_index, values, batch):
        x = x.on(self.device) if isinstance(x, lazy_rows.LazyRows) else x.to(self.device, copy=True)
        logits = self.model(x, edge_index if forgotten == "edges" else edge_index.to(self.device))
        return logits if forgotten == "logits" else logits.to("cpu")

    return run
