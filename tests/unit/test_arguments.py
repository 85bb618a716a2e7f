"""Public functions refuse arguments of a wrong kind or in a wrong order, and say what the right order is."""

import inspect
from itertools import permutations

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from tests.support.labelled import labelled_graph

DATA = labelled_graph(12)
MODEL = ac.build_model("gcn", DATA, hidden_channels=4).eval()
DEFENCES = [ac.NodeCentric(3), ac.baselines.BiRS()]


def test_audit_takes_its_second_argument_for_the_data():
    graphs = [Data(x=DATA.x, edge_index=DATA.edge_index, y=torch.tensor([k])) for k in range(2)]
    pooled = ac.build_model("gcn", graphs, hidden_channels=4).eval()
    assert ac.audit(pooled, graphs).task == "graph"
    assert ac.audit(MODEL, DATA, ac.NodeCentric(3)).division == str(ac.NodeCentric(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MODEL, "graph"), 'data="graph" is a task: pass it by name'),
        ((MODEL, ac.NodeCentric(3)), "The order is model, data, defence"),
        ((MODEL, ac.NodeCentric(3), DATA), "The order is model, data, defence"),
        ((DATA, MODEL), "The order is model, data, defence"),
        ((MODEL, None, DATA), "The order is model, data, defence"),
    ],
)
def test_audit_refuses_another_order(arguments, message):
    with pytest.raises(ac.AgnncertError, match=message):
        ac.audit(*arguments)


def test_audit_refuses_a_task_that_is_unknown_or_not_that_of_the_data():
    with pytest.raises(ac.AgnncertError, match='expected "node" or "graph"'):
        ac.audit(MODEL, task="edge")
    with pytest.raises(ac.AgnncertError, match="the data is that of the node task"):
        ac.audit(MODEL, DATA, task="graph")


CALLS = {
    "certify": ac.certify,
    "fit": lambda *three: ac.fit(*three, epochs=1),
    "attack": lambda *three: ac.attack(*three, budget=ac.Budget(add_edges=1)),
    "choose_voting_rule": lambda *three: ac.choose_voting_rule(*three, size=1),
    "audit": ac.audit,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("defence", DEFENCES, ids=["division", "smoothing"])
def test_every_other_order_is_an_error_that_names_the_right_one(name, defence):
    right = (MODEL, DATA, defence)
    for order in permutations(right):
        if order != right:
            with pytest.raises(ac.AgnncertError, match="The order is model, data, defence"):
                CALLS[name](*order)


def test_verify_takes_the_file_alone_by_position():
    kinds = [parameter.kind for parameter in inspect.signature(ac.verify).parameters.values()]
    assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}
