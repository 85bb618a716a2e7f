"""A poisoned graph on which training diverges stops neither training nor certificates: the model of its part abstains."""

import numpy as np
import pytest
import torch
from torch import nn

import agnncert as ac
from agnncert.certificates.file import read_contents
from agnncert.certificates.votes import ABSTAIN
from agnncert.errors import SettingsError
from agnncert.training.loop import DivergedError
from tests.unit.isolated.test_training import differing, make_graph, part_of, train

DEFENCES = (ac.IsolatedModels(num_models=4), ac.IsolatedModels(ac.NodeCentric(3), num_models=4))
NUM_TRAINING = 24
POISONED = 5  # it is not in the first part
PART = part_of(f"graph {POISONED}")


def make_set(poison=None):
    graphs = [make_graph(number, size=4 + number % 3) for number in range(NUM_TRAINING + 8)]
    if poison is not None:
        poison(graphs[POISONED])
    return ac.GraphSet(graphs, train=range(NUM_TRAINING), test=range(NUM_TRAINING, NUM_TRAINING + 8), num_classes=2)


def huge_features(graph):
    graph.x = torch.full_like(graph.x, 1e30)


def very_large_features(graph):
    graph.x = torch.full_like(graph.x, 1e19)


def another_class(graph):
    graph.y = 1 - graph.y


def strong_lies(graph):
    graph.x = 50 * graph.x
    graph.y = 1 - graph.y


CHANGES = (None, huge_features, very_large_features, another_class, strong_lies)


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
def test_a_part_that_diverges_abstains_and_all_others_are_as_they_were(defence) -> None:
    clean = train(make_set(), defence)
    poisoned = train(make_set(huge_features), defence)
    assert clean.is_empty.tolist() == [False] * 4
    assert poisoned.is_empty.tolist() == [number == PART for number in range(4)]
    assert differing(clean, poisoned) == [PART]
    assert all(torch.isfinite(value).all() for value in poisoned.state_dict().values())
    assert poisoned.training_record["failed_parts"] == [PART]
    assert f"diverged or stopped on 1 of 4 parts ({PART})" in poisoned.training_record["warnings"][0]


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
def test_radii_are_true_whatever_one_graph_becomes(defence) -> None:
    """Models are trained with each change of one graph, and each certificate is held against the labels of all."""
    certificates = []
    for change in CHANGES:
        data = make_set(change)
        model = train(data, defence, epochs=30)
        if change is not very_large_features:  # it depends on the initial weights whether training diverges on these
            assert bool(model.is_empty[PART]) == (change is huge_features)
        certificates.append(ac.certify(model, data, defence, data.test))
    num_certified = 0
    for first in certificates:
        holds = first.radius >= 1
        assert np.array_equal(holds, first.holds_against(ac.Budget(poison_graphs=1)))
        for second in certificates:
            assert np.array_equal(first.label[holds], second.label[holds])
        num_certified += int(holds.sum())
    assert num_certified > 10  # else nothing was tried


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
def test_a_file_of_models_of_which_one_abstains_is_verified_with_data_and_models(defence, tmp_path) -> None:
    data = make_set(huge_features)
    model = train(data, defence)
    ac.certify(model, data, defence, data.test).save(tmp_path / "a.cert")
    verdict = ac.verify(tmp_path / "a.cert", data=data, model=model)
    assert verdict.holds, verdict
    votes = read_contents(tmp_path / "a.cert").evidence["vote"]
    assert (votes[:, PART] == ABSTAIN).all()
    assert (np.delete(votes, PART, axis=1) != ABSTAIN).all()


class Plain(nn.Module):
    """A module of somebody else, whose first part would be trained again."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x, edge_index, batch):
        totals = torch.zeros(int(batch.max()) + 1, 2).index_add(0, batch, x)
        return self.lin(totals)


@pytest.mark.parametrize("own_processes", [False, True])
def test_modules_of_somebody_else_abstain_too(own_processes) -> None:
    defence = ac.IsolatedModels(num_models=4, own_processes=own_processes)
    model = ac.fit(Plain(), make_set(lambda graph: graph.x.fill_(1e38)), defence, epochs=2, batch_size=2)
    assert model.is_empty.nonzero().view(-1).tolist() == [PART]


def test_settings_with_which_every_part_diverges_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"diverges on all 4 parts.*Lower lr=1e\+30"):
        train(make_set(), DEFENCES[0], lr=1e30)


class WithoutSlope(Plain):
    """Its scores are finite, and the slope of its last step is not."""

    def forward(self, x, edge_index, batch):
        return super().forward(x, edge_index, batch) + torch.sqrt(0 * self.lin.bias)


def test_a_weight_that_is_not_finite_is_divergence_although_the_loss_was_finite() -> None:
    data = make_set()
    data.val = data.train
    with pytest.raises(DivergedError, match=r"lin\.bias is not finite in epoch 1: training has diverged"):
        ac.fit(WithoutSlope(), data, None, epochs=1, batch_size=NUM_TRAINING)
