"""A model that a defence made and somebody altered is refused, whatever the kind; for stacked votes see its folder."""

from dataclasses import fields

import pytest
import torch
from torch import nn

import agnncert as ac
from agnncert.errors import ModelContractError
from tests.soundness.golden.examples import graph, graphs, isolated, of_pairs


class OtherLabels(ac.LabelVotes):
    """Settings of a class of somebody's own."""


class OtherPairs(ac.PairVotes):
    """Settings of a class of somebody's own."""


class OtherParts(ac.IsolatedModels):
    """Settings of a class of somebody's own."""


def labels():
    data = graph(12, ids="numbers")
    data.num_classes = 3
    model = ac.fit(None, ac.split(data), ac.LabelVotes(df=3, rank=4))
    return model, data, OtherLabels


def pairs():
    data = graph(12, ids="numbers")
    data.edge_label_index = torch.tensor([[0, 2, 5], [3, 7, 9]])
    return of_pairs(data, ac.PairVotes()).eval(), data, OtherPairs


def parts():
    data = graphs()
    return isolated(data, ac.IsolatedModels(num_models=4)), data, OtherParts


KINDS = [labels, pairs, parts]


def a_hook(model, other):
    model.register_forward_hook(lambda module, given, result: -result)


def an_attribute(model, other):
    model.evidence = model.masked_pairs = model.anew = lambda *given: None


def another_class_of_settings(model, other):
    model.defence = other(**{each.name: getattr(model.defence, each.name) for each in fields(model.defence)})


def a_part_more(model, other):
    model.more = nn.Linear(2, 2)


ALTERATIONS = {
    a_hook: "has a hook",
    an_attribute: "has an attribute",
    another_class_of_settings: "expected exactly",
    a_part_more: "consists of",
}


@pytest.mark.parametrize("alter", ALTERATIONS, ids=lambda alter: alter.__name__)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_altered_model_is_refused(kind, alter):
    model, data, other = kind()
    ac.certify(model, data, model.defence)
    alter(model, other)
    with pytest.raises(ModelContractError, match=ALTERATIONS[alter]):
        ac.certify(model, data, model.defence)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_model_of_another_kind_is_refused_with_the_name_of_its_defence(kind):
    model, data, _ = kind()
    name = type(model.defence).__name__
    with pytest.raises(ModelContractError, match=rf"{name} certifies models that fit\(…, data, {name}\(…\)\) returns"):
        ac.certify(nn.Linear(3, 2).eval(), data, model.defence)


def test_the_built_in_prior_of_pairs_may_hide_no_method():
    """Of the built-in prior a claim says that it classifies each pair by itself, by construction."""
    model, data, _ = pairs()
    model.prior.forward = lambda x_u, x_v, values: torch.zeros((len(x_u), 2), dtype=x_u.dtype)
    with pytest.raises(ModelContractError, match="prior has an attribute 'forward'"):
        ac.certify(model, data, model.defence)


def test_a_hook_of_anybodys_prior_is_refused():
    model, data, _ = pairs()
    model.prior = nn.Sequential()  # replaced by a module of somebody's own
    model.prior.register_forward_hook(lambda module, given, result: result)
    with pytest.raises(ModelContractError, match="prior has a hook"):
        ac.certify(model, data, model.defence)


def test_weights_that_are_not_finite_are_refused():
    model, data, _ = pairs()
    with torch.no_grad():
        model.scale.fill_(torch.nan)
    with pytest.raises(ModelContractError, match="scale is not finite"):
        ac.certify(model, data, model.defence)
