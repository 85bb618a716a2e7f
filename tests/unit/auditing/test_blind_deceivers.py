"""Deceiving models that were written without looking at the probes: each deceives on some attack, and each is refused."""

import pytest
import torch
from torch_geometric.utils import remove_self_loops

import agnncert as ac
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from tests.zoo.audited import built, report_on
from tests.zoo.blind_deceivers import CACHES, MEMORY, STRUCTURE, VALUES, WEIGHTS, attacks, of_structure, of_values
from tests.zoo.local import zoo_data

DIVISIONS = (NodeCentric(5), EdgeCentric(5))
ASKING = {**{name: of_values(name) for name in VALUES}, **{name: of_structure(name) for name in STRUCTURE}, **WEIGHTS}


def without_loops():
    data = zoo_data()
    data.edge_index, data.edge_weight = remove_self_loops(data.edge_index, data.edge_weight)
    data.edge_attr = None
    return data


DATA = without_loops()


def scores(model, data):
    weight = (data.edge_weight,) if hasattr(model, "spoilt") else ()
    with torch.no_grad():
        return model(data.x, data.edge_index, *weight)[: DATA.num_nodes]


@pytest.mark.parametrize("name", ASKING)
def test_each_of_them_is_a_deceiver(name):
    model = built(ASKING[name])
    before = scores(model, DATA)
    moved = [not torch.allclose(before, scores(model, attacked), atol=1e-3) for attacked in attacks(DATA)]
    assert any(moved), "no attack on other nodes exposes it"
    assert not all(moved), "it is a crude one"


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
@pytest.mark.parametrize("name", [*ASKING, *CACHES])
def test_a_model_written_without_looking_at_the_probes_is_refused(name, division):
    assert not report_on({**ASKING, **CACHES}[name], data=DATA, division=division).ok


def refusal_of(make):
    """What the audit says about a model, or why it does not begin."""
    try:
        return str(report_on(make, data=DATA, division=NodeCentric(5)))
    except ac.errors.ModelContractError as error:
        return str(error)


@pytest.mark.parametrize("name", MEMORY)
def test_what_it_counts_is_found_or_cannot_be_copied(name):
    refusal = refusal_of(MEMORY[name])
    assert "the model changes: " in refusal or "the model cannot be copied" in refusal


def test_there_are_more_than_thirty():
    assert len(ASKING) + len(MEMORY) + len(CACHES) >= 30
