"""``IsolatedModels`` from training to a verified file, and what it refuses."""

import math

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.certificates.file import read_contents
from agnncert.certificates.votes import ABSTAIN
from agnncert.errors import BudgetError, CertificateError, ModelContractError, SettingsError
from agnncert.isolated.evidence import IsolatedEvidence
from agnncert.isolated.record import IsolatedRecord
from tests.support.trained_apart import random_record
from tests.unit.isolated.test_training import make_graph, make_set, train

VIEWS = ac.IsolatedModels(ac.NodeCentric(3), num_models=5)
BUDGETS = (ac.Budget(poison_graphs=1), ac.Budget(poison_graphs=1, delete_nodes=1), ac.Budget(poison_graphs=math.inf))


@pytest.fixture(scope="module")
def data():
    graphs = [make_graph(number, size=4 + number % 5) for number in range(30)]
    return ac.GraphSet(graphs, train=range(20), val=range(20, 24), test=range(24, 30), num_classes=2)


@pytest.fixture(scope="module")
def model(data):
    return train(data, VIEWS, epochs=30)


@pytest.fixture(scope="module")
def certificate(model, data):
    return ac.certify(model, data, VIEWS, data.test)


@pytest.fixture
def file(certificate, tmp_path):
    certificate.save(tmp_path / "apart.cert", BUDGETS, exclusions=True)
    return tmp_path / "apart.cert"


def test_it_is_certified_saved_loaded_and_verified(certificate, file, data, model):
    assert certificate.radius.max() >= 1
    again = ac.load_certificate(file)
    assert np.array_equal(again.radius, certificate.radius)
    assert np.array_equal(again.holds_against(BUDGETS[1]), certificate.holds_against(BUDGETS[1]))
    alone = ac.verify(file)
    assert alone.holds, alone
    assert any("train again" in text for text in alone.not_checked)
    both = ac.verify(file, data=data, model=model)
    assert both.holds, both
    assert both.compared == ("data", "model")


def test_a_file_speaks_of_poisoned_graphs_if_no_budgets_are_given(certificate, tmp_path):
    certificate.save(tmp_path / "a.cert")
    budgets = read_contents(tmp_path / "a.cert").budgets
    assert [budget.poison_graphs for budget in budgets][:5] == [1, 2, 5, 10, 20]
    assert any(budget.poison_graphs and budget.add_edges for budget in budgets)
    assert ac.verify(tmp_path / "a.cert").holds


def test_labels_are_the_votes_of_models_and_views_counted_by_hand(certificate, model, data):
    division = VIEWS.division
    counts = np.zeros((len(data.test), 2), dtype=int)
    for number, row in enumerate(data.test.tolist()):
        for view in ac.subgraphs([data[row]], division):
            if view.num_nodes == 0:
                continue
            batch = torch.zeros(view.num_nodes, dtype=torch.int64)
            with torch.no_grad():
                votes = [int(one(view.x, view.edge_index, batch).argmax()) for one in model.models]
            counts[number, np.bincount(votes, minlength=2).argmax()] += 1
    assert np.array_equal(certificate.counts, counts)
    assert np.array_equal(VIEWS.scores(model, data, data.test), counts)


def test_a_file_with_other_models_is_refuted(file, data, model):
    other = train(data, VIEWS, epochs=29)
    verdict = ac.verify(file, data=data, model=other)
    assert not verdict.holds
    assert "the model is not the one that was certified" in str(verdict)


@pytest.mark.parametrize("name", ["vote", "stable"])
def test_altered_votes_are_refuted_by_the_models(file, data, model, name, tmp_path):
    contents = read_contents(file)
    record = IsolatedRecord.load(contents.evidence, contents.settings)
    arrays = record.tensors()
    arrays[name] = arrays[name].copy()
    arrays[name][0] = 1 - arrays[name][0]
    certificate = ac.load_certificate(file)
    forged = ac.Certificate(
        certificate.claim,
        IsolatedEvidence(IsolatedRecord.load(arrays, record.settings())),
        certificate.target,
        certificate.row,
        certificate.truth,
        certificate.degree,
    )
    forged.save(tmp_path / "forged.cert", BUDGETS)
    assert ac.verify(tmp_path / "forged.cert").holds
    assert not ac.verify(tmp_path / "forged.cert", data=data, model=model).holds


def test_models_are_saved_and_loaded(model, data, certificate, tmp_path):
    ac.save_model(model, tmp_path / "apart")
    again = ac.load_model(tmp_path / "apart")
    assert again.defence == VIEWS
    assert np.array_equal(ac.certify(again, data, VIEWS, data.test).radius, certificate.radius)


def test_the_claim_says_what_may_be_poisoned_and_what_training_rests_on(certificate):
    text = str(certificate.claim)
    assert text.startswith("One step of the radius: one training graph that is inserted, deleted or altered")
    assert "by the md5 of its id alone" in text
    assert "training data are trusted" not in text
    assert "At the same time, in the test graph: edges added or deleted" in text


def test_with_one_view_the_claim_says_that_test_graphs_are_trusted(data):
    defence = ac.IsolatedModels(num_models=3)
    certificate = ac.certify(train(data, defence, epochs=2), data, defence, data.test)
    assert "Robustness against any change of the test graph: it is not divided" in str(certificate.claim)
    assert not certificate.holds_against(ac.Budget(add_edges=1)).any()
    assert not certificate.holds_against(ac.Budget(poison_graphs=1, change_features=1)).any()


@pytest.mark.parametrize("field", ["flip_labels", "add_labels", "remove_labels"])
def test_labels_of_nodes_are_refused(certificate, field):
    with pytest.raises(BudgetError, match=f"nothing is proved about {field}"):
        certificate.holds_against(ac.Budget(**{field: 1}))


def test_any_number_of_poisoned_graphs_is_not_withstood(certificate):
    assert not certificate.holds_against(ac.Budget(poison_graphs=math.inf)).any()
    assert (certificate.max_certified("poison_graphs") == certificate.radius).all()


def test_poisoned_models_may_break_all_targets_and_one_changed_graph_only_one(certificate):
    much = ac.Budget(poison_graphs=5)
    assert certificate.broken_at_most(much) == (~certificate.holds_against(much)).sum() == len(certificate)
    assert certificate.broken_at_most(ac.Budget(delete_nodes=9)) <= 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"num_models": 0}, "expected a whole number from 1"),
        ({"num_models": True}, "expected a whole number from 1"),
        ({"hash": "md6"}, "unknown hash"),
        ({"division": ac.PerNeighbour()}, "nothing is proved here about other divisions"),
        ({"division": ac.StackedVotes()}, "nothing is proved here about other divisions"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, said):
    with pytest.raises(SettingsError, match=said):
        ac.IsolatedModels(**settings)


def test_nodes_a_voting_rule_and_other_models_are_refused(data, model):
    nodes = ac.load_dataset("digits-knn")
    with pytest.raises(SettingsError, match="classify graphs"):
        ac.fit(ac.build_model("gcn", nodes), nodes, ac.IsolatedModels())
    with pytest.raises(SettingsError, match="cannot be given a voting rule"):
        train(make_set(), VIEWS, voting_rule=ac.VotingRule(prior=[1, 0]))
    with pytest.raises(ModelContractError, match=r"fit.*returns, got"):
        ac.certify(model.models[0], data, VIEWS, data.test)
    with pytest.raises(ModelContractError, match=r"pass model\.defence"):
        ac.certify(model, data, ac.IsolatedModels(ac.NodeCentric(4), num_models=5), data.test)
    with pytest.raises(SettingsError, match="cannot explain a decision, because"):
        ac.explain(model, data, VIEWS, 0)


def test_a_command_names_it():
    defence = ac.IsolatedModels.from_settings("isolated", "graph", {"num_models": 9, "groups": 4, "hash": None})
    assert defence == ac.IsolatedModels(ac.NodeCentric(4), num_models=9)
    with pytest.raises(SettingsError, match='no setting "models"'):
        ac.IsolatedModels.from_settings("isolated", "graph", {"models": 9})
    with pytest.raises(SettingsError, match="classify graphs"):
        ac.IsolatedModels.from_settings("isolated", "node", {})


def test_it_has_a_report_and_is_attacked(certificate, data, model, tmp_path):
    ac.build_report(certificate, tmp_path / "page.html")
    assert "altered in any way before training" in (tmp_path / "page.html").read_text()
    within = [ac.Budget(delete_nodes=int(size)) for size in np.maximum(certificate.max_certified("delete_nodes"), 0)]
    report = ac.attack(model, data, certificate=certificate, budget=within, kind="random", seed=0)
    assert not report.violations


DAMAGES = [
    ("vote", lambda a: a.astype(np.int32), "vote is of type int32, expected int16"),
    ("vote", lambda a: a[:, :-1].copy(), "stable has the shape"),
    ("vote", lambda a: a + np.int16(9), "a class that is not there"),
    ("vote", lambda a: np.where(a == a.max(), a.max() + 1, a).astype(np.int16), "a class that is not there"),
    ("vote", lambda a: np.where(a == a.min(), ABSTAIN - 1, a).astype(np.int16), "vote has an entry of -2"),
    ("stable", lambda a: a[:-1].copy(), "stable has the shape"),
    ("group", lambda a: a[::-1].copy(), "."),
    ("indptr", lambda a: a[:-1].copy(), "."),
    ("num_models", lambda n: n + 1, "votes of 4 models, expected 5"),
    ("num_models", lambda n: True, "number of models"),
    ("num_classes", lambda n: "2", "number of classes"),
    ("num_groups", lambda n: 0, "."),
    ("theorem", lambda t: "per-neighbour/graph", "the theorem is"),
    ("hash", lambda h: ["md5"], "the hash is"),
    ("ids", lambda i: "name", "."),
]


@pytest.mark.parametrize(("name", "damage", "said"), DAMAGES)
def test_votes_that_make_no_sense_are_refused(name, damage, said):
    record = random_record(np.random.default_rng(0))
    tensors, settings = record.tensors(), record.settings()
    assert tensors["vote"].max() == settings["num_classes"] - 1
    here = tensors if name in tensors else settings
    here[name] = damage(here[name])
    with pytest.raises(CertificateError, match=said):
        IsolatedRecord.load(tensors, settings)


def test_missing_and_unknown_parts_of_a_file_are_refused():
    record = random_record(np.random.default_rng(0))
    with pytest.raises(CertificateError, match="expected"):
        IsolatedRecord.load({**record.tensors(), "more": np.zeros(1)}, record.settings())
    with pytest.raises(CertificateError, match="expected"):
        IsolatedRecord.load(record.tensors(), {})
