import math

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.training import choose as search
from agnncert.training.choose import candidate_groups
from agnncert.training.defaults import usual_arguments

from ...support.labelled import labelled_graph, labelled_graphs

QUICK = {"epochs": 10, "evaluate_every": 5, "lr": 0.03}
SMALL = {"hidden_channels": 8}


@pytest.fixture
def data():
    made = labelled_graph(60)
    made.x = made.x.float()
    return made


@pytest.fixture
def trained(data):
    return ac.fit(ac.build_model("gcn", data, hidden_channels=8, num_layers=2), data, ac.NodeCentric(15), **QUICK)


@pytest.fixture
def graphs():
    made = labelled_graphs(20)
    for graph in made:
        graph.x = graph.x.float()
    return made


def no_training(*args, **kwargs):
    raise AssertionError("a trained model must not be trained again")


def test_a_trained_model_votes_as_certify_says(data, trained, monkeypatch) -> None:
    monkeypatch.setattr(search, "fit", no_training)
    choice = ac.choose_groups(trained, data, 3, divisions=["node", "edge", "gated"], candidates=[21, 7, 11])
    assert choice.model is trained
    kinds = [ac.NodeCentric, ac.EdgeCentric, lambda t: ac.NodeCentric(t, gate_features=True)]
    assert [one.division for one in choice.candidates] == [kind(t) for kind in kinds for t in (7, 11, 21)]
    for one in choice.candidates:
        cert = ac.certify(trained, data, one.division, targets=data.val_mask)
        assert [one.accuracy, one.certified_accuracy] == cert.certified_accuracy(sizes=[-1, 3]).tolist()
    best = max(one.certified_accuracy for one in choice.candidates)
    assert choice.best.certified_accuracy == best > 0
    assert choice.division is choice.best.division
    assert len({one.certified_accuracy for one in choice.candidates}) > 2  # there was something to choose


def test_a_budget_counts_what_withstands_it(data, trained) -> None:
    budget = ac.Budget(add_edges=1, delete_edges=math.inf)
    choice = ac.choose_groups(trained, data, budget, candidates=[15, 31])
    for one in choice.candidates:
        cert = ac.certify(trained, data, one.division, targets=data.val_mask)
        right = cert.label == cert.truth
        assert one.certified_accuracy == (right & cert.holds_against(budget)).mean()
    assert choice.best.certified_accuracy > 0


def test_a_model_is_trained_once_for_each_division(data, monkeypatch) -> None:
    calls, train = [], search.fit

    def counted(model, data, division, **settings):
        calls.append((division, settings["select_size"], settings["epochs"]))
        return train(model, data, division, **settings)

    monkeypatch.setattr(search, "fit", counted)
    choice = ac.choose_groups("gcn", data, 2, candidates=[5, 9, 15], model_settings=SMALL, fit_settings=QUICK)
    assert calls == [(ac.EdgeCentric(9), 2, 10), (ac.NodeCentric(9), 2, 10)]
    assert len(choice.candidates) == 6
    record = choice.model.training_record
    assert record["division"] == str(type(choice.division)(9))
    cert = ac.certify(choice.model, data, choice.division, targets=data.val_mask)
    assert cert.certified_accuracy(sizes=2) == choice.best.certified_accuracy > 0.5


def test_of_equals_the_fewest_groups_are_taken_and_then_the_first_division(data) -> None:
    model = ac.build_model("mlp", data, hidden_channels=8, num_layers=2)
    ac.fit(model, data, epochs=10)  # looks at no edge, so every vote is unanimous
    for order in (["node", "edge"], ["edge", "node"]):
        choice = ac.choose_groups(model, data, 2, divisions=order, candidates=[25, 3, 5, 9])
        by_groups = {one.division.num_groups: one.certified_accuracy for one in choice.candidates}
        assert by_groups[3] < by_groups[5] == by_groups[9] == by_groups[25]
        assert choice.division == {"node": ac.NodeCentric, "edge": ac.EdgeCentric}[order[0]](5)


@pytest.mark.parametrize("size", [0, 1, 10, 100])
def test_the_fewest_groups_that_are_tried_can_just_certify_the_size(size, data) -> None:
    numbers = candidate_groups(size)
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 2 * size + 1
    model = ac.build_model("mlp", data, hidden_channels=8, num_layers=1)
    choice = ac.choose_groups(model.eval(), data, size, divisions=["edge"])
    assert [one.division.num_groups for one in choice.candidates] == numbers
    assert choice.candidates[0].certified_accuracy == choice.candidates[0].accuracy
    cert = ac.certify(model, data, choice.division, targets=data.val_mask)
    assert (cert.radius == size).all()


def test_budgets_are_met_with_enough_groups() -> None:
    assert candidate_groups(ac.Budget(add_edges=2, inject_nodes=3, edges_per_injected=4))[0] == 2 * 14 + 1
    assert candidate_groups(ac.Budget(change_features=2, target_features=True))[0] == 2 * 3 + 1
    assert candidate_groups(ac.Budget(inject_nodes=2, edges_per_injected=math.inf))[0] == 30


def test_graphs_are_voted_on_too(graphs) -> None:
    choice = ac.choose_groups("gcn", graphs, 1, candidates=[3, 6], model_settings=SMALL, fit_settings=QUICK)
    for one in choice.candidates:
        assert one.certified_accuracy <= one.accuracy
    cert = ac.certify(choice.model, graphs, choice.division, targets=graphs.val)
    assert choice.best.certified_accuracy == cert.certified_accuracy(sizes=1)
    assert choice.num_targets == len(graphs.val)


def test_an_inductive_choice_never_looks_at_test_nodes(data) -> None:
    def choose():
        return ac.choose_groups(
            "gcn", data, 2, candidates=[5, 9], model_settings=SMALL, fit_settings=QUICK, protocol="inductive"
        )

    first = choose()
    test = data.test_mask.nonzero().view(-1)
    data.x[test] += 3
    data.edge_index = torch.cat([data.edge_index, torch.stack([test, test.flip(0)])], dim=1)
    assert choose().candidates == first.candidates


def test_the_choice_prints_as_a_table(data, trained) -> None:
    choice = ac.choose_groups(trained, data, 2, candidates=[5, 9])
    lines = str(choice).splitlines()
    assert "size 2" in lines[0]
    assert "20 targets" in lines[0]
    assert lines[1].split() == ["division", "groups", "accuracy", "certified"]
    marked = [line for line in lines[2:6] if line.startswith("*")]
    kind = "edge-centric" if isinstance(choice.division, ac.EdgeCentric) else "node-centric"
    assert [line.split()[1:3] for line in marked] == [[kind, str(choice.division.num_groups)]]
    assert marked[0].endswith(f"{choice.best.certified_accuracy:.3f}")
    assert "give a Budget" in lines[6]
    assert "give a Budget" not in str(ac.choose_groups(trained, data, 2, candidates=[5], divisions=["edge"]))
    assert "Budget(add_edges=1)" in str(ac.choose_groups(trained, data, ac.Budget(add_edges=1), candidates=[5]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": -1}, "size=-1: expected a whole number from 0 on, or a Budget"),
        ({"size": 1.5}, "size=1.5"),
        ({"divisions": ["edges"]}, 'no division is called "edges": did you mean "edge"'),
        ({"divisions": "edge"}, "divisions='edge': expected one or several"),
        ({"divisions": []}, "expected one or several"),
        ({"size": 9, "candidates": [5, 17]}, "certifying size 9 takes at least 18 groups"),
        ({"candidates": []}, r"candidates=\[\]"),
    ],
)
def test_senseless_questions_are_refused(change, said, data, trained) -> None:
    with pytest.raises(ac.SettingsError, match=said):
        ac.choose_groups(trained, data, **{"size": 2, **change})


def test_a_model_that_cannot_be_certified_is_refused(data) -> None:
    class Mixing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = torch.nn.Linear(5, 3)

        def forward(self, x, edge_index):
            return self.lin(x - x.mean(0))

    with pytest.raises(ac.ModelContractError):
        ac.choose_groups(Mixing().eval(), data, 2)


def test_other_mistakes_are_explained_too(data, graphs, trained) -> None:
    with pytest.raises(ac.SettingsError, match='did you mean "gcn"'):
        ac.choose_groups("gcnn", data, 2)
    with pytest.raises(ac.SettingsError, match="gated division is for node classification"):
        ac.choose_groups("gcn", graphs, 2, divisions=["gated"])
    del data.val_mask
    with pytest.raises(ac.DatasetError, match="no val_mask"):
        ac.choose_groups(trained, data, 2)


def test_a_vote_and_one_group_per_neighbour_are_tried_as_they_are_certified(data, trained) -> None:
    vote = ac.Vote(empty="abstain", prior=5)
    choice = ac.choose_groups(trained, data, 2, candidates=[5, 9, math.inf], vote=vote)
    assert [one.division.num_groups for one in choice.candidates[:3]] == [5, 9, math.inf]
    for one in choice.candidates:
        cert = ac.certify(trained, data, one.division, targets=data.val_mask, vote=vote)
        assert cert.certified_accuracy(sizes=2) == one.certified_accuracy
    assert choice.vote == vote
    assert "prior=5" in str(choice)
    assert " inf " in str(choice)
    assert ac.choose_groups(trained, data, 9, candidates=[5], vote=vote).best.division.num_groups == 5


def test_a_vote_that_fits_no_division_is_refused_before_anything_is_trained(data, monkeypatch) -> None:
    monkeypatch.setattr(search, "fit", lambda *_, **__: pytest.fail("trained"))
    for wrong in (ac.Vote(prior=[1, 2]), ac.Vote(empty=3), 5):
        with pytest.raises(ac.SettingsError):
            ac.choose_groups("gcn", data, 2, vote=wrong)
    with pytest.raises(ac.SettingsError, match="own features"):
        ac.choose_groups("gcn", data, 2, divisions=["node", "gated"], vote=ac.Vote(prior=2))


def test_what_is_recommended_was_trained_with_what_is_usual_for_the_data(data, monkeypatch) -> None:
    seen = {}

    def remembered(model, data, division, **settings):
        seen.update(settings, **model.config)
        return ac.fit(model, data, division, **{**settings, "epochs": 1})

    monkeypatch.setattr(search, "fit", remembered)
    ac.choose_groups("gcn", data, 2, candidates=[5], divisions=["edge"])
    usual = {name: value for part in usual_arguments(None, data, "gcn") for name, value in part.items()}
    assert usual.items() <= seen.items()


def test_numbers_of_groups_may_come_from_numpy(data, trained) -> None:
    choice = ac.choose_groups(trained, data, 1, candidates=np.array([3, 5]))
    assert len(choice.candidates) == 4
