"""A threshold for two classes: the best one that keeps to the limit, and what is reported is what ``certify`` proves."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.errors import SettingsError
from agnncert.training.rule_search import largest_lead
from tests.support.labelled import labelled_graph, labelled_graphs

DIVISIONS = [ac.NodeCentric(9), ac.EdgeCentric(9), ac.GatedNodeCentric(9), ac.PerNeighbour(), ac.baselines.GNNCertE(5)]
QUICK = {"epochs": 15, "evaluate_every": 5, "lr": 0.03}


@pytest.fixture(scope="module")
def nodes():
    data = labelled_graph(150, classes=2, noise=2.5, dtype=torch.float32)
    data.y = torch.where(torch.arange(150) % 4 == 0, data.y, 0)  # class 1 is the rarer one
    return data


@pytest.fixture(scope="module")
def model(nodes):
    plain = ac.build_model("gcn", nodes, hidden_channels=8, num_layers=2)
    return ac.fit(plain, nodes, ac.NodeCentric(9), balance_classes=True, **QUICK)


def certified_with(model, data, division, part, lead, empty=None):
    prior = (0, lead) if lead > 0 else (-lead, 0)
    return ac.certify(model, data, division, part, voting_rule=ac.VotingRule(empty, prior))


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_no_other_threshold_within_the_limit_finds_more(nodes, model, division):
    empties = ["no_edge", "abstain"] if division.knows_empty_groups and division != ac.PerNeighbour() else [None]
    leads = [(lead, empty) for lead in range(-10, 11) for empty in empties]
    others = [certified_with(model, nodes, division, nodes.val_mask, *one) for one in leads]
    clean = [cert.measures(0, truth=nodes.y).false_positive_rate[1] for cert in others]
    for size in (0, 1):
        found_by_others = [cert.measures(size, truth=nodes.y).true_positives[1] for cert in others]
        for rate in (0.0, 0.1, 0.4):
            point = ac.choose_threshold(model, nodes, division, false_positive_rate=rate, size=size)
            cert = ac.certify(model, nodes, division, nodes.val_mask, voting_rule=point)
            assert cert.voting_rule.prior in (point.voting_rule.prior, 0)
            for found, at in ((point.measures, 0), (point.certified, size)):
                proved = cert.measures(at)
                assert found.recall.tolist() == proved.recall.tolist()
                assert found.false_positive_rate.tolist() == proved.false_positive_rate.tolist()
            assert point.measures.false_positive_rate[1] <= rate
            within = [count for count, alarms in zip(found_by_others, clean, strict=True) if alarms <= rate]
            assert point.certified.true_positives[1] == max(within)


def test_alerts_are_counted_whatever_their_class(nodes, model):
    division = ac.NodeCentric(9)
    for alerts in (0, 3, 10, 1000):
        point = ac.choose_threshold(model, nodes, division, alerts=alerts, positive=0)
        cert = ac.certify(model, nodes, division, nodes.val_mask, voting_rule=point.voting_rule)
        assert point.alerts <= alerts
        assert (cert.label == 0).sum() <= point.alerts
    assert point.alerts == int(nodes.val_mask.sum())  # no limit: all of them
    assert "alerts of class 0" in str(point)


def test_where_no_alert_is_within_the_limit_the_answer_is_constant_also_under_attack(nodes, model):
    point = ac.choose_threshold(model, nodes, ac.NodeCentric(9), alerts=0, size=4)
    assert point.alerts == 0
    assert point.certified.false_positive_rate[1] == 0
    cert = ac.certify(model, nodes, ac.NodeCentric(9), nodes.test_mask, voting_rule=point)
    assert (cert.label == 0).all()
    assert (cert.radius == 9).all()


def test_the_rarer_class_is_to_be_found_and_the_text_says_what_is_certified(nodes, model):
    point = ac.choose_threshold(model, nodes, ac.NodeCentric(9), false_positive_rate=0.1, size=1)
    assert point.positive == 1
    assert "certified at size 1: recall" in str(point)
    with pytest.raises(SettingsError, match="was chosen for"):
        ac.certify(model, nodes, ac.NodeCentric(8), voting_rule=point)


def test_graphs_have_thresholds_too():
    graphs = labelled_graphs(24, dtype=torch.float32)
    model = ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2, readout="sum")
    point = ac.choose_threshold(model, graphs, ac.EdgeCentric(9), false_positive_rate=0.3)
    cert = ac.certify(model, graphs, ac.EdgeCentric(9), graphs.val, voting_rule=point)
    assert cert.measures(0).recall.tolist() == point.measures.recall.tolist()
    assert point.measures.false_positive_rate[point.positive] <= 0.3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "needs one limit"),
        ({"alerts": 3, "false_positive_rate": 0.1}, "needs one limit"),
        ({"false_positive_rate": 1.5}, "expected a share"),
        ({"alerts": 2.5}, "alerts=2.5: expected a whole number"),
        ({"alerts": 2, "size": -1}, "size=-1"),
        ({"alerts": 2, "positive": 2}, "positive=2: the model has the classes 0 to 1"),
        ({"alerts": 2, "positive": 1.0}, "positive=1.0: expected the number of a class"),
        ({"alerts": 2, "positive": True}, "positive=True: expected the number of a class"),
        ({"alerts": 2, "size": 10**30}, "expected at most"),
        ({"alerts": 2, "sizes": 1}, 'no argument "sizes" here: did you mean "size"'),
        ({"false_positive_rate": "0.1"}, "expected a share"),
        ({"false_positive_rate": [0.1]}, "expected a share"),
        ({"alerts": 2, "protocol": "induct"}, "did you mean"),
    ],
)
def test_senseless_limits_are_refused(nodes, model, settings, said):
    with pytest.raises(SettingsError, match=said):
        ac.choose_threshold(model, nodes, ac.NodeCentric(9), **settings)


def test_a_certificate_is_not_verified_for_another_threshold(nodes, model, tmp_path):
    few, many = (ac.choose_threshold(model, nodes, ac.NodeCentric(9), alerts=alerts) for alerts in (3, 60))
    assert few.prior != many.prior
    ac.certify(few.model, nodes, few).save(tmp_path / "few.cert")
    for same in (few, pickle.loads(pickle.dumps(few)), ac.NodeCentric(9), None):
        assert ac.verify(tmp_path / "few.cert", data=nodes, model=model, defence=same).holds
    for given in ({"model": model}, {}):
        verdict = ac.verify(tmp_path / "few.cert", data=nodes, defence=many, **given)
        assert not verdict.holds
        assert "the defence at hand has VotingRule" in str(verdict)


@pytest.mark.parametrize("other", [None, ac.NodeCentric(9)], ids=str)
def test_a_point_whose_defence_was_exchanged_is_refused_in_our_words(nodes, model, other):
    point = ac.choose_threshold(model, nodes, ac.NodeCentric(9), alerts=3)
    with pytest.raises(SettingsError, match="the defence of this OperatingPoint is"):
        ac.certify(model, nodes, replace(point, defence=other))


def test_the_largest_lead_is_one_of_those_that_make_alerts():
    rng = np.random.default_rng(0)
    for _ in range(200):
        leads, counted = rng.integers(-5, 6, 8), rng.random(8) < 0.6
        most = int(rng.integers(0, 9))
        lead = largest_lead(leads, counted, most)
        assert (leads[counted] <= lead).sum() <= most
        higher = leads[leads > lead]
        if len(higher):
            assert (leads[counted] <= higher.min()).sum() > most


def rare(nodes):
    data = nodes.clone()
    data.y = torch.zeros(150, dtype=torch.int64)
    data.y[data.train_mask.nonzero().view(-1)[:3]] = 1
    data.y[data.val_mask.nonzero().view(-1)[:3]] = 1
    return data


def test_rare_classes_are_noticed_unasked_and_balanced_unless_told_otherwise(nodes, caplog):
    data, records = rare(nodes), {}
    for name, how in {"usual": {}, "told": {"balance_classes": False}, "asked": {"balance_classes": True}}.items():
        caplog.clear()
        model = ac.build_model("gcn", data, hidden_channels=8, num_layers=2)
        records[name] = ac.fit(model, data, ac.NodeCentric(9), **how, **QUICK).training_record
        assert ("a class is rare" in caplog.text) == (name == "usual")
    assert (records["usual"]["balance_classes"], records["usual"]["measure"]) == (True, "balanced")
    assert (records["told"]["balance_classes"], records["told"]["measure"]) == (False, "accuracy")
    assert records["usual"]["history"] == records["asked"]["history"] != records["told"]["history"]
    plain = ac.fit(ac.build_model("gcn", nodes, hidden_channels=8), nodes, ac.NodeCentric(9), **QUICK).training_record
    assert (plain["balance_classes"], plain["measure"]) == (False, "accuracy")


@pytest.mark.parametrize("division", [ac.NodeCentric(9), ac.PerNeighbour(), None], ids=str)
@pytest.mark.parametrize("measure", ["accuracy", "balanced", "recall@0.2"])
def test_weights_are_kept_by_the_measure_that_is_stated(nodes, division, measure):
    size = 0 if division is None else 1
    model = ac.build_model("gcn", nodes, hidden_channels=8, num_layers=2)
    ac.fit(model, nodes, division, measure=measure, size=size, **QUICK)
    score = model.training_record["score"]
    truth = nodes.y[nodes.val_mask].numpy()
    if division is None:
        logits = model(nodes.x, nodes.edge_index).detach().numpy()[nodes.val_mask.numpy()]
        right = logits.argmax(1) == truth
        by_class = [right[truth == k].mean() for k in (0, 1)]
        above = [logits[:, 1] - logits[:, 0] >= cut for cut in (logits[:, 1] - logits[:, 0])]
        recalls = [flag[truth == 1].mean() for flag in above if flag[truth == 0].mean() <= 0.2]
        expected = {"accuracy": right.mean(), "balanced": np.mean(by_class), "recall@0.2": max(recalls, default=0.0)}
        assert score == pytest.approx(expected[measure])
    elif measure == "recall@0.2":
        point = ac.choose_threshold(model, nodes, division, false_positive_rate=0.2, size=1)
        cert = ac.certify(model, nodes, division, nodes.val_mask, voting_rule=point)
        assert score == pytest.approx(cert.measures(1).recall[1])
    else:
        found = ac.certify(model, nodes, division, nodes.val_mask).measures(1)
        assert score == pytest.approx(found.accuracy if measure == "accuracy" else found.balanced_accuracy)


def test_a_voting_rule_is_chosen_by_the_measure_that_is_stated(nodes, model):
    data = rare(nodes)
    by_accuracy, balanced = (
        ac.choose_voting_rule(model, data, ac.NodeCentric(9), 1, measure=measure)
        for measure in ("accuracy", "balanced")
    )
    for choice in (by_accuracy, balanced):
        cert = ac.certify(model, data, ac.NodeCentric(9), data.val_mask, voting_rule=choice)
        found = cert.measures(1)
        expected = found.accuracy if choice is by_accuracy else found.balanced_accuracy
        assert choice.best.certified_accuracy == pytest.approx(expected)
    assert by_accuracy.constant == pytest.approx(found.majority_share)
    assert balanced.constant == pytest.approx(0.5)
    assert "balanced" in str(balanced).splitlines()[1]
    below = by_accuracy.best.certified_accuracy < by_accuracy.constant
    assert ("below the most frequent class alone" in str(by_accuracy)) == below
    with pytest.raises(SettingsError, match="Valid: accuracy, balanced"):
        ac.choose_voting_rule(model, data, ac.NodeCentric(9), 1, measure="recall@0.1")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"measure": "f1"}, 'measure="f1": expected'),
        ({"measure": "recall@0.1", "objective": "certified"}, "chooses the prior, and so does"),
        (
            {"measure": "recall@0.1", "voting_rule": ac.VotingRule(prior=[0, 3])},
            "chooses the voting rule; leave it out",
        ),
    ],
)
def test_measures_that_make_no_sense_are_refused(nodes, settings, said):
    with pytest.raises(SettingsError, match=said):
        ac.fit(ac.build_model("gcn", nodes), nodes, ac.NodeCentric(9), **settings)
    three = labelled_graph(30, dtype=torch.float32)
    with pytest.raises(SettingsError, match="is for two classes, and there are 3"):
        ac.fit(ac.build_model("gcn", three), three, measure="recall@0.1")


def test_the_class_may_be_named_and_is_the_rarer_one_by_default(nodes, model):
    """Tables sort names, so that "fraud" is class 0 beside "honest"."""
    nodes = nodes.clone()
    nodes.class_names = ["fraud", "honest"]
    rare = int(2 * (nodes.y[nodes.val_mask] == 1).sum() <= nodes.val_mask.sum())
    division = ac.PerNeighbour()
    assert ac.choose_threshold(model, nodes, division, alerts=3).positive == rare
    point = ac.choose_threshold(model, nodes, division, alerts=3, positive="fraud")
    assert point.positive == 0
    assert point.prior == ac.choose_threshold(model, nodes, division, alerts=3, positive=0).prior
    assert "alerts of class 0 (fraud)" in str(point)
    with pytest.raises(SettingsError, match="the classes are fraud, honest"):
        ac.choose_threshold(model, nodes, division, alerts=3, positive="genuine")


def test_alerts_may_be_given_for_each_day(nodes, model):
    division = ac.PerNeighbour()
    daily = ac.choose_threshold(model, nodes, division, alerts=2, days=3, positive=0)
    assert daily.prior == ac.choose_threshold(model, nodes, division, alerts=6, positive=0).prior
    for settings, words in (
        ({"alerts": 2, "days": 0}, "days=0"),
        ({"false_positive_rate": 0.1, "days": 3}, "pass alerts"),
    ):
        with pytest.raises(SettingsError, match=words):
            ac.choose_threshold(model, nodes, division, **settings)
