"""A stacked model that was altered after training is not certified."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_module

import agnncert as ac
from agnncert.errors import ModelContractError
from agnncert.models.digest import model_digest
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.model import GraphFree, StackedModel
from tests.unit.stacked.test_numbers import FEATURES, model_of, ring


class Doubled(nn.Linear):
    """A layer of a class of somebody's own."""

    def forward(self, x):
        return 2 * super().forward(x)


class Mixing(GraphFree):
    """Looks at all rows."""

    def forward(self, x, edge_index=None):
        return super().forward(x - x.mean(dim=0))


class Lenient(ac.StackedVotes):
    """Settings of a class of somebody's own."""


def another_vote_net(model):
    model.vote_net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))


def a_network_of_another_width(model):
    model.vote_net = nn.Sequential(nn.Linear(2, 31), nn.ReLU(), nn.Linear(31, 3))


def a_batch_norm_in_the_network(model):
    model.vote_net = nn.Sequential(model.vote_net[0], nn.BatchNorm1d(32), nn.ReLU(), model.vote_net[2])


def a_batch_norm_instead(model):
    model.vote_net[1] = nn.BatchNorm1d(32)


def a_layer_of_a_subclass(model):
    model.vote_net[0] = Doubled(2, 32)


def a_forward_hook(model):
    model.register_forward_hook(lambda module, given, scores: -scores)


def a_hook_in_a_network(model):
    model.vote_net.register_forward_hook(lambda module, given, scores: 100 * scores)


def a_hook_before_a_layer(model):
    model.vote_net[0].register_forward_pre_hook(lambda module, given: (given[0] - given[0].mean(dim=0),))


def a_hook_of_a_model_without_edges(model):
    model.own[0].register_forward_hook(lambda module, given, logits: logits - logits.mean(dim=0))


def a_hidden_method(model):
    model.node_votes = lambda logits, edge_index: 5 * torch.ones((len(logits), 2))


def a_hidden_method_of_a_layer(model):
    model.vote_net[0].forward = lambda x: x


def a_wrapper_of_somebodys_own(model):
    model.own[0] = Mixing(model.own[0].model)


def settings_of_a_subclass(model):
    model.defence = Lenient()


def a_network_more(model):
    model.own_net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))


def a_vote_that_counts_twice(model):
    model.use_votes.fill_(2.0)


def a_weight_that_is_not_finite(model):
    with torch.no_grad():
        model.abstain.fill_(torch.nan)


ALTERED = [
    another_vote_net, a_network_of_another_width, a_batch_norm_in_the_network, a_batch_norm_instead,
    a_layer_of_a_subclass, a_forward_hook, a_hook_in_a_network, a_hook_before_a_layer, a_hook_of_a_model_without_edges,
    a_hidden_method, a_hidden_method_of_a_layer, a_wrapper_of_somebodys_own, settings_of_a_subclass, a_network_more,
    a_vote_that_counts_twice, a_weight_that_is_not_finite,
]  # fmt: skip


@pytest.mark.parametrize("alter", ALTERED)
def test_an_altered_model_is_refused(alter):
    data, model = ring(), model_of()
    ac.certify(model, data, model.defence, [0, 1])
    alter(model)
    model.eval()
    with pytest.raises(ModelContractError, match=r"altered since|exactly StackedVotes"):
        ac.certify(model, data, model.defence, [0, 1])
    with pytest.raises(ModelContractError, match=r"altered since|exactly StackedVotes"):
        model.defence.scores(model, data)


def test_a_hook_of_all_modules_is_refused():
    data, model = ring(), model_of()
    hook = torch_module.register_module_forward_hook(lambda module, given, result: None)
    try:
        with pytest.raises(ModelContractError, match="every module of the program"):
            ac.certify(model, data, model.defence, [0, 1])
    finally:
        hook.remove()


def test_verify_refuses_an_altered_model_too(tmp_path):
    """The digest cannot know: an attribute that hides a method is code, of which only the name is written down."""
    data, model = ring(), model_of()
    a_hook_in_a_network(model)
    vote_net, model.vote_net = model.vote_net, copy.deepcopy(model.vote_net)
    model.vote_net._forward_hooks.clear()
    certificate = ac.certify(model, data, model.defence, [0, 1])
    model.vote_net = vote_net
    digests = {**certificate.claim.digests, "model": model_digest(model)}
    claim = make_stacked_claim(certificate.evidence, digests=digests, locality="test", notes=certificate.claim.notes)
    object.__setattr__(certificate, "claim", claim)
    certificate.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert").holds
    with pytest.raises(ModelContractError, match="vote_net has a hook"):
        ac.verify(tmp_path / "a.cert", data=data, model=model)


@pytest.mark.parametrize(
    "settings", [{}, {"levels": 2}, {"gated": True}, {"combine": "mean"}, {"refine": True}, {"hidden": 7}], ids=str
)
def test_a_model_as_fit_and_load_return_it_is_not_refused(settings, tmp_path):
    data = ring()
    built = ac.build_model("mlp", data, hidden_channels=4, num_layers=2)
    model = ac.fit(built, data, ac.StackedVotes(folds=2, epochs=3, **settings), epochs=2, patience=None)
    assert len(ac.certify(model, data, model.defence, [0, 1])) == 2
    ac.save_model(model, tmp_path / "m")
    again = ac.load_model(tmp_path / "m")
    assert model_digest(again) == model_digest(model)
    assert len(ac.certify(again, data, again.defence, [0, 1])) == 2
    moved = copy.deepcopy(model).double()
    assert len(ac.certify(moved, data, moved.defence, [0, 1])) == 2


def test_looking_at_a_model_draws_no_random_number():
    data, model = ring(), model_of()
    torch.manual_seed(7)
    before = torch.get_rng_state()
    model.defence.scores(model, data)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "other", [{"combine": "mean"}, {"levels": 2}, {"trusted": 0}, {"gated": True}, {"trusted": 1}], ids=str
)
def test_the_digest_says_how_votes_are_combined(other):
    torch.manual_seed(0)
    own = nn.Linear(FEATURES, 2)
    digests = set()
    for settings in ({}, other):
        torch.manual_seed(1)
        model = StackedModel([own], 2, 0, ac.StackedVotes())
        model.defence = ac.StackedVotes(**settings)
        digests.add(model_digest(model))
    assert len(digests) == 2
