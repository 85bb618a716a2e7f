"""Public functions refuse arguments of a wrong kind or in a wrong order, and say what the right order is."""

import inspect
from itertools import permutations

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.defence import as_defence
from agnncert.errors import ModelContractError
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


def test_verify_takes_data_and_model_in_this_order_or_by_name(tmp_path):
    certificate = ac.certify(MODEL, DATA, ac.NodeCentric(3), [0, 1])
    certificate.save(tmp_path / "a.cert")
    verdict = ac.verify(tmp_path / "a.cert", DATA, MODEL)
    assert verdict.holds
    assert verdict.compared == ("data", "model")
    assert verdict == ac.verify(tmp_path / "a.cert", data=DATA, model=MODEL)
    for wrong in ((MODEL, DATA), (MODEL,), (ac.NodeCentric(3), MODEL), (DATA, ac.NodeCentric(3))):
        with pytest.raises(ac.AgnncertError, match="The order is file, data, model, defence"):
            ac.verify(tmp_path / "a.cert", *wrong)
    with pytest.raises(ac.AgnncertError, match=r"verify takes 3 arguments by their order \(file, data, model\), got 4"):
        ac.verify(tmp_path / "a.cert", DATA, MODEL, 5)


SHOWN = {
    ac.certify: ["torch.nn.Module", "Sequence['Data']", "AsDefence"],
    ac.explain: ["torch.nn.Module", "Sequence['Data']", "AsDefence"],
    ac.audit: ["torch.nn.Module", "Sequence['Data']", "AsDefence"],
    ac.attack: ["torch.nn.Module", "Sequence['Data']", "AsDefence", "Certificate"],
    ac.choose_threshold: ["torch.nn.Module", "Sequence['Data']", "AsDefence"],
    ac.choose_voting_rule: ["torch.nn", "Sequence['Data']", "NodeDivision"],
    ac.fit: ["torch.nn", "Sequence['Data']", "AsDefence"],
    ac.verify: ["GraphData", "Model", "AsDefence"],
}


@pytest.mark.parametrize("function", SHOWN, ids=lambda function: function.__name__)
def test_help_shows_what_model_data_and_defence_may_be(function):
    parameters = inspect.signature(function).parameters
    shown = " ".join(str(parameters[name]) for name in parameters if name not in ("settings", "voting_rule"))
    assert all(kind in shown for kind in SHOWN[function]), shown
    assert ": Any" not in shown
    assert "typing.Any" not in shown
    assert "Any" not in str(inspect.signature(function).return_annotation)


CHOOSE = {
    "choose_threshold": lambda: ac.choose_threshold(MODEL, DATA, ac.NodeCentric(3), alerts=1),
    "choose_voting_rule": lambda: ac.choose_voting_rule(MODEL, DATA, ac.NodeCentric(3), size=1),
}


@pytest.mark.parametrize("name", [name for name in ac.__all__ if name.startswith("choose_")])
def test_whatever_chooses_asks_first_whether_the_defence_speaks_about_the_model(name, monkeypatch):
    asked = []

    def refuse(defence, model):
        asked.append((str(defence), model))
        raise ModelContractError("not this one")

    monkeypatch.setattr(type(as_defence(ac.NodeCentric(3))), "require_model", refuse)
    with pytest.raises(ModelContractError, match="not this one"):
        CHOOSE[name]()
    assert asked == [(str(as_defence(ac.NodeCentric(3))), MODEL)]


def _named_functions():
    """The public functions whose arguments all have a name; the settings of ``fit`` have a test of their own."""
    functions = {name: getattr(ac, name) for name in sorted(ac.__all__) if inspect.isfunction(getattr(ac, name))}
    for name, function in functions.items():
        parameters = inspect.signature(function).parameters.values()
        if parameters and name != "fit" and all(each.kind is not each.VAR_KEYWORD for each in parameters):
            yield name


@pytest.mark.parametrize("name", list(_named_functions()))
def test_an_argument_that_does_not_exist_is_answered_with_the_nearest_one(name):
    function = getattr(ac, name)
    longest = max(inspect.signature(function).parameters, key=len)
    said = f'{name} has no (argument|setting) "{longest}z": did you mean "{longest}"'
    with pytest.raises(ac.errors.SettingsError, match=said):
        function(**{**dict.fromkeys(_required(function)), f"{longest}z": 1})


def _required(function):
    return [name for name, each in inspect.signature(function).parameters.items() if each.default is each.empty]
