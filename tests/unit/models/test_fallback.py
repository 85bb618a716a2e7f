"""One model for nodes that a message reaches, another one for those that have no edge."""

import numpy as np
import pytest
import torch
from torch import nn

import agnncert as ac
from agnncert.errors import SettingsError
from agnncert.models.build import build_from_config
from tests.support.checks import votes_of
from tests.support.labelled import labelled_graph

DATA = labelled_graph(seed=3)
ALONE = torch.zeros(2, 0, dtype=torch.int64)


def parts(kind="gcn"):
    return [
        ac.build_model(name, DATA, hidden_channels=8, seed=k).double().eval() for k, name in enumerate((kind, "mlp"))
    ]


@pytest.fixture
def model():
    return ac.Fallback(*parts()).eval()


def test_messages_decide_who_answers(model):
    gcn, mlp = parts()
    arcs = torch.tensor([[0, 1, 3, 4], [1, 2, 3, 0]])  # 1 and 2 and 0 hear of others, 3 of itself, 4 only speaks
    logits, reached = model(DATA.x, arcs), [0, 1, 2]
    others = [k for k in range(len(DATA.x)) if k not in reached]
    assert torch.equal(logits[reached], gcn(DATA.x, arcs)[reached])
    assert torch.equal(logits[others], mlp(DATA.x, ALONE)[others])


@pytest.mark.parametrize("division", [ac.EdgeCentric(5), ac.NodeCentric(5)], ids=str)
def test_it_may_vote_by_construction(model, division):
    report = ac.audit(model, defence=division, data=DATA)
    assert report.ok
    assert report.locality == "construction"
    fast, naive = (votes_of(model, DATA, division, engine) for engine in ("fast", "naive"))
    assert (fast.dense() == naive.dense()).all()
    assert (fast.default == parts()[1](DATA.x, ALONE).argmax(1).numpy()).all()


def test_prior_votes_are_those_of_the_graph_free_model(model):
    mlp = parts()[1](DATA.x, ALONE).argmax(1).numpy()
    certificate = ac.certify(model, DATA, ac.PerNeighbour(), voting_rule=ac.VotingRule(prior=1000))
    assert np.array_equal(certificate.label, mlp)


def test_both_learn(model):
    model.train()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    ac.fit(model, DATA, ac.NodeCentric(4), epochs=2, evaluate_every=1)
    assert not any(torch.equal(weight, before[name]) for name, weight in model.named_parameters())


def test_it_is_loaded_as_it_was_saved(model, tmp_path):
    loaded = ac.load_model(ac.save_model(model, tmp_path / "two")).double()
    assert type(loaded) is ac.Fallback
    assert torch.equal(loaded(DATA.x, DATA.edge_index), model(DATA.x, DATA.edge_index))


def test_other_descriptions_are_refused(model):
    for config in ({"name": "fallback"}, {**model.config, "depth": 3}, {**model.config, "model": "gcn"}):
        with pytest.raises(SettingsError, match="a fallback is described"):
            build_from_config(config)


class Weighted(nn.Module):
    def forward(self, x, edge_index, edge_weight):
        return x[:, :3] * edge_weight.sum()


def test_a_model_of_ones_own_gets_the_edge_values_that_it_names():
    model = ac.Fallback(Weighted(), parts()[1])
    arcs, weight = torch.tensor([[0], [1]]), torch.tensor([2.0], dtype=torch.float64)
    assert torch.equal(model(DATA.x, arcs, weight, edge_attr=weight)[1], 2 * DATA.x[1, :3])
    assert not hasattr(model, "config")
