"""What a claim says about the mode of a model is true: whoever calls it, it is called in evaluation mode."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GCNConv

import agnncert as ac
import agnncert_live
from agnncert.attacks.api import problem_of
from agnncert.certificates.claim import named_model
from agnncert.defence import CertifyOptions
from agnncert.errors import ModelContractError
from agnncert.evaluation_mode import evaluating, require_evaluation_mode
from tests.support.small_graphs import random_graph
from tests.unit.isolated.test_training import make_graph, train
from tests.zoo.hidden_layers import HIDING, LAYER, Turned, TurnedUnnamed

DIVISION = ac.NodeCentric(5)
DROPPING = nn.Dropout(0.5)
PLAIN_ACTIVATION = nn.ReLU()


@pytest.fixture(scope="module")
def data():
    graph = random_graph(40, 90)
    graph.x = graph.x.float()
    graph.y = torch.arange(40) % 2
    for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
        graph[name] = torch.arange(40) % 3 == k
    return graph


class Within(nn.Module):
    """A model whose layer answers the opposite in training mode."""

    def __init__(self):
        super().__init__()
        self.inner = Turned()

    def forward(self, x, edge_index):
        return self.inner(x, edge_index)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = GCNConv(5, 2)

    def forward(self, x, edge_index):
        return self.conv(F.dropout(x, 0.5, self.training), edge_index)


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.norm = GCNConv(5, 2), nn.BatchNorm1d(2, momentum=0.5)

    def forward(self, x, edge_index):
        return self.norm(self.conv(x, edge_index))


def training_inside():
    model = Within().eval()
    model.inner.train()
    return model


MODELS = {
    "the root": lambda: Turned().train(),
    "a layer only": training_inside,
    "dropout as a function": lambda: Functional().train(),
    "running statistics": lambda: Normalised().train(),
}


def modes(model: nn.Module) -> list[bool]:
    return [layer.training for layer in model.modules()]


def same(first: ac.Certificate, second: ac.Certificate) -> bool:
    ours, theirs = first.evidence.tensors(), second.evidence.tensors()
    return first.claim == second.claim and all(np.array_equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_in_training_mode_has_the_certificate_of_evaluation_mode(name, data):
    model = MODELS[name]()
    before, weights = modes(model), copy.deepcopy(model.state_dict())
    assert any(before)
    certificate = ac.certify(model, data, DIVISION)
    assert modes(model) == before
    assert all(torch.equal(weights[key], value) for key, value in model.state_dict().items())
    again = copy.deepcopy(model).eval()
    assert same(certificate, ac.certify(again, data, DIVISION))
    for each in (model, again):
        assert ac.verify(certificate, data=data, model=each)
    assert modes(model) == before


def test_every_surface_calls_the_model_in_evaluation_mode(data):
    surfaces = {
        "rule": lambda model: str(ac.choose_voting_rule(model, data, DIVISION, 1)),
        "threshold": lambda model: str(ac.choose_threshold(model, data, DIVISION, alerts=3)),
        "explain": lambda model: str(ac.explain(model, data, DIVISION, int(data.node_id[3]))),
        "attack": lambda model: str(
            ac.attack(model, data, DIVISION, budget=ac.Budget(add_edges=1), kind="random", targets=[1, 2])
        ),
        "smoothing": lambda model: ac.certify(
            model, data, ac.baselines.SparseRS(0.1, 0.4, selection=5, samples=20)
        ).counts.tolist(),
    }
    for name, surface in surfaces.items():
        model = Turned().train()
        found = surface(model)
        assert model.training, name
        assert found == surface(Turned().eval()), name


@pytest.mark.parametrize("name", ["gcn", "sage", "gin"])
def test_a_built_model_need_not_be_switched(name, data):
    """``build_model`` returns a model in training mode, for training loops."""
    model = ac.build_model(name, data, hidden_channels=4)
    certificate = ac.certify(model, data, DIVISION)
    assert (certificate.claim.locality, certificate.claim.rounding) == ("construction", "float32")
    assert same(certificate, ac.certify(copy.deepcopy(model).eval(), data, DIVISION))
    assert model.training


def kinds(data):
    graphs = [make_graph(number, size=4 + number % 5) for number in range(12)]
    graphs = ac.GraphSet(graphs, train=range(6), val=range(6, 9), test=range(9, 12), num_classes=2)
    isolated = ac.IsolatedModels(ac.NodeCentric(1), num_models=2)
    return {
        "divided": (ac.build_model("gcn", data, hidden_channels=4), data, DIVISION.as_defence()),
        "stacked": _with_defence(ac.fit(ac.build_model("mlp", data), data, ac.StackedVotes(size=1), epochs=2), data),
        "labels": _with_defence(ac.fit(None, data, ac.LabelVotes(num_classes=2)), data),
        "isolated": (train(graphs, isolated, epochs=2), graphs, isolated),
        "smoothing": (Turned(), data, ac.baselines.SparseRS(0.1, 0.4, selection=5, samples=20)),
    }


def _with_defence(model, data):
    return model, data, model.defence


def test_every_kind_of_defence_refuses_training_mode_and_is_asked_in_evaluation_mode(data):
    for name, (model, given, defence) in kinds(data).items():
        certificate = ac.certify(model.eval(), given, defence)
        layers = list(model.modules())
        layers[-1].train()  # one layer deep inside
        for call in (
            lambda m=model, g=given, d=defence: d.certify(m, g, None, CertifyOptions()),
            lambda m=model, g=given, d=defence: d.scores(m, g),
            lambda m=model, d=defence: d.require_model(m),
        ):
            with pytest.raises(ModelContractError, match=r"in training mode.*model\.eval\(\)"):
                call()
        assert same(certificate, ac.certify(model, given, defence)), name
        assert ac.verify(certificate, data=given, model=model), name
        assert layers[-1].training, name


class Switched(Turned):
    """Keeps its first layer training, whatever mode is asked for."""

    def train(self, mode=True):
        super().train(mode)
        self.conv.train()
        return self


class SwitchesItself(Turned):
    def forward(self, x, edge_index):
        self.train()
        return self.conv(x, edge_index)


class InAList(nn.Module):
    """``eval()`` does not reach its layer."""

    def __init__(self, layer):
        super().__init__()
        self.layers = [layer]

    def forward(self, x, edge_index):
        return self.layers[0](x, edge_index)


class Holder:
    def __init__(self, model):
        self.model = model

    def __call__(self, x, edge_index):
        return self.model(x, edge_index)


class OfAGlobal(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(5, 2)

    def forward(self, x, edge_index):
        return self.conv(DROPPING(x), edge_index)


def closure(model):
    return lambda x, edge_index: model(x, edge_index)


def default(model):
    def call(x, edge_index, model=model):
        return model(x, edge_index)

    return call


CALLABLES = {
    "a closure": closure,
    "a default": default,
    "a method": lambda model: model.forward,
    "an object": Holder,
    "a partial": lambda model: partial(Holder(model)),
    "a module with a list": InAList,
    "a module with a dictionary": lambda model: InAList({"first": model}["first"]),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_a_module_that_eval_does_not_reach_must_be_in_evaluation_mode_already(name, data):
    model = Turned()
    called = CALLABLES[name](model)
    with pytest.raises(ModelContractError, match="calls a Turned in training mode"):
        ac.certify(called, data, DIVISION)
    model.eval()
    certificate = ac.certify(called, data, DIVISION)
    assert np.array_equal(certificate.label, ac.certify(model, data, DIVISION).label)


@pytest.mark.parametrize("name", HIDING)
def test_a_layer_in_training_mode_is_found_wherever_it_is_hidden(name, data):
    model = HIDING[name]().eval()
    LAYER.train()
    with pytest.raises(ModelContractError, match="calls a Turned in training mode"):
        call_evaluating(model, data)
    LAYER.eval()
    assert torch.equal(call_evaluating(model, data), LAYER(data.x, data.edge_index))


def test_a_hidden_layer_need_not_name_its_mode(data):
    model = InAList(TurnedUnnamed())
    with pytest.raises(ModelContractError, match="calls a TurnedUnnamed in training mode"):
        ac.certify(model, data, DIVISION)


class SwitchesHidden(InAList):
    def forward(self, x, edge_index):
        self.layers[0].train()
        return super().forward(x, edge_index)


class BuildsLate(nn.Module):
    def forward(self, x, edge_index):
        if not hasattr(self, "layer"):
            self.layer = Turned()
        return self.layer(x, edge_index)


@pytest.mark.parametrize("model", [SwitchesHidden(Turned().eval()), BuildsLate().eval()], ids=["hidden", "built late"])
def test_a_layer_that_is_in_training_mode_after_the_first_call_is_found(model, data):
    with pytest.raises(ModelContractError, match="training mode"):
        call_evaluating(model, data)


class OwnMode(Turned):
    """Shows one mode and has another."""

    @property
    def training(self):
        return False

    @training.setter
    def training(self, mode):
        self.__dict__["mode"] = mode

    def forward(self, x, edge_index):
        logits = self.conv(x, edge_index)
        return -logits if self.mode else logits


def test_a_module_that_computes_its_mode_is_refused(data):
    with pytest.raises(ModelContractError, match="OwnMode has a training of its own"):
        ac.certify(OwnMode(), data, DIVISION)


def test_a_mode_that_is_no_truth_value_comes_back_as_it_was(data):
    model = Turned()
    model.training, model.conv.training = 2, "tuning"
    ac.certify(model, data, DIVISION)
    assert (model.training, model.conv.training) == (2, "tuning")


def test_methods_that_only_training_calls_are_not_looked_at(data):
    class WithFit(Turned):
        def fit(self):
            return DROPPING

    require_evaluation_mode(WithFit().eval())


def test_a_global_module_in_training_mode_is_found(data):
    with pytest.raises(ModelContractError, match="Dropout in training mode, DROPPING"):
        ac.certify(OfAGlobal().eval(), data, DIVISION)


class WithActivation(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.activations = GCNConv(5, 2), [nn.ELU()]
        self.loss = partial(nn.CrossEntropyLoss())

    def forward(self, x, edge_index):
        return PLAIN_ACTIVATION(self.activations[0](self.conv(x, edge_index)))


def test_activations_and_losses_outside_the_tree_are_no_matter():
    require_evaluation_mode(WithActivation().eval())


def test_a_module_that_switches_in_its_own_way_has_to_be_switched_by_its_owner(data):
    with pytest.raises(ModelContractError, match="Switched has a train"):
        ac.certify(Switched(), data, DIVISION)
    with pytest.raises(ModelContractError, match="Switched has a train"):
        ac.certify(Switched().eval(), data, DIVISION)  # a layer of it trains on
    alone = Turned().train()
    alone.eval = lambda: alone
    with pytest.raises(ModelContractError, match="Turned has a train"):
        ac.certify(alone, data, DIVISION)


def call_evaluating(model, data):
    with evaluating(model):
        return model(data.x, data.edge_index)


def fail_evaluating(model):
    with evaluating(model):
        assert not any(modes(model))
        raise ZeroDivisionError


def test_a_model_that_switches_to_training_while_it_is_called_is_refused(data):
    for model in (SwitchesItself(), SwitchesItself().eval()):
        with pytest.raises(ModelContractError, match=r"switched to training mode.*while it was called"):
            call_evaluating(model, data)


def test_the_mode_comes_back_after_an_error():
    model = training_inside()
    before = modes(model)
    with pytest.raises(ZeroDivisionError):
        fail_evaluating(model)
    assert modes(model) == before


def test_what_holds_a_model_for_long_refuses_training_mode(data):
    """An attack's problem and a live graph call the model later, when its mode is somebody else's again."""
    model = Turned()
    with pytest.raises(ModelContractError, match="training mode"):
        problem_of(model, data, DIVISION)
    with pytest.raises(ModelContractError, match="training mode"):
        agnncert_live.LiveGraph(model, data, DIVISION)
    live = agnncert_live.LiveGraph(model.eval(), data, DIVISION)
    change = ac.Perturbation(delete_nodes=[int(data.node_id[3])])
    before = live.certificate()
    model.conv.train()
    with pytest.raises(ModelContractError, match="layer conv of the model is in training mode"):
        live.apply(change)
    assert same(before, live.certificate())
    model.eval()
    assert live.apply(change).number == 1


def test_the_claim_says_so(data):
    claim = ac.certify(Turned().train(), data, DIVISION).claim
    expected = f"{named_model(claim.digests)} and the division are the ones that cast these votes, in evaluation mode."
    assert expected in claim.assumes


class Curved(nn.Module):
    """A model of a user's own, whose votes are close enough to differ in a coarse type."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = GCNConv(5, 2)

    def forward(self, x, edge_index):
        return torch.tanh(self.conv(x, edge_index))


@pytest.mark.parametrize("name", ["known", "own"])
def test_a_model_is_called_in_its_own_type_whatever_autocast_surrounds_it(name):
    """What a claim says about rounding is about the type of the weights. In bfloat16 other labels come out."""
    graph = random_graph(600, 1800)
    graph.x = graph.x.float()
    model = ac.build_model("gcn", graph, out_channels=2, seed=0) if name == "known" else Curved().eval()
    plain = ac.certify(model, graph, DIVISION)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        coarse = model(graph.x, graph.edge_index)
        within = ac.certify(model, graph, DIVISION)
        verdict = ac.verify(plain, data=graph, model=model)
        assert torch.is_autocast_enabled("cpu")
    assert (coarse - model(graph.x, graph.edge_index)).abs().max() > 1e-4
    assert np.array_equal(plain.counts, within.counts)
    assert (plain.claim.rounding, plain.claim.tolerance) == (within.claim.rounding, within.claim.tolerance)
    assert verdict, str(verdict)
