"""A threshold with a guarantee: chosen on targets that were kept for it, and stated wherever it is used."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.certificates.file import read_contents, write_contents
from agnncert.datasets.splits import dataset_digest, inductive_view
from agnncert.datasets.taught import unlabelled_nodes
from agnncert.divided import choose_rule
from agnncert.errors import DatasetError, SettingsError
from agnncert.stacked import training
from tests.support.labelled import labelled_graph, labelled_graphs
from tests.support.mutations import text_turns_red

QUICK = {"epochs": 15, "evaluate_every": 5, "lr": 0.03}
STACKED = ac.StackedVotes(folds=2, epochs=20)
DIVISIONS = [ac.NodeCentric(9), ac.PerNeighbour(), ac.GatedNodeCentric(9)]


def town(num_nodes=400, classes=2):
    """A graph in which class 1 is rare."""
    data = labelled_graph(num_nodes, classes, noise=2.5, dtype=torch.float32)
    data.node_id = torch.arange(num_nodes) + 1000
    data.y = torch.where((data.y == 1) & (torch.arange(num_nodes) % 3 > 0), 0, data.y)
    data.class_names = ["honest", "fraud", *map(str, range(2, classes))][:classes]
    return data


@pytest.fixture(scope="module")
def kept():
    return ac.keep_for_threshold(town(), 0.5, positive="fraud")


@pytest.fixture(scope="module")
def trained(kept):
    return ac.fit(ac.build_model("gcn", kept, hidden_channels=8, num_layers=2), kept, ac.NodeCentric(9), **QUICK)


@pytest.fixture(scope="module")
def stacked(kept):
    return ac.fit(ac.build_model("mlp", kept, hidden_channels=8, num_layers=2), kept, STACKED, **QUICK)


def test_what_is_kept_is_in_no_other_part_and_follows_from_ids(kept):
    plain = town()
    known = plain.train_mask | plain.val_mask
    assert not (kept.threshold_mask & (kept.train_mask | kept.val_mask | kept.test_mask)).any()
    assert ((kept.train_mask | kept.val_mask | kept.threshold_mask) == known).all()
    assert (kept.y[kept.threshold_mask] == 0).all()
    assert 0.4 < kept.threshold_mask.sum() / (known & (plain.y == 0)).sum() < 0.6
    assert not plain.train_mask[kept.threshold_mask & plain.val_mask].any()

    flipped = town()  # another label moves nobody else
    node = int(kept.train_mask.nonzero()[0])
    flipped.y[node] = 1 - flipped.y[node]
    others = torch.arange(400) != node
    assert (ac.keep_for_threshold(flipped, 0.5, positive=1).threshold_mask == kept.threshold_mask)[others].all()
    turned = town()  # nor does the order of rows
    order = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    for name in ("x", "y", "node_id", "train_mask", "val_mask", "test_mask"):
        turned[name] = turned[name][order]
    assert (ac.keep_for_threshold(turned, 0.5, positive=1).threshold_mask == kept.threshold_mask[order]).all()
    assert dataset_digest(kept) != dataset_digest(plain)


def test_the_draw_is_independent_of_a_split_by_ids_with_the_same_seed():
    data = ac.split(town(3000), fractions=(0.4, 0.2, 0.4), seed=3)
    kept = ac.keep_for_threshold(data, 0.5, positive=1, seed=3)
    shares = [float(kept.threshold_mask[mask & (data.y == 0)].float().mean()) for mask in (data.train_mask, data.val_mask)]  # fmt: skip
    assert all(abs(share - 0.5) < 0.06 for share in shares)


def test_training_never_sees_who_is_kept(kept):
    assert not set(kept.node_id[kept.threshold_mask].tolist()) & set(inductive_view(kept).node_id.tolist())
    assert not (unlabelled_nodes(kept) & kept.threshold_mask).any()
    other = copy.copy(kept)  # what they are does not matter
    other.x, other.y = kept.x.clone(), kept.y.clone()
    other.y[kept.threshold_mask] = 1
    models = [
        ac.fit(ac.build_model("mlp", one, hidden_channels=8, num_layers=2), one, STACKED, **QUICK)
        for one in (kept, other)
    ]
    first, second = (model.state_dict() for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_as_many_as_allowed_are_flagged_at_most_and_the_next_threshold_flags_more(kept, trained, division):
    limit = ac.choose_threshold(trained, kept, division, false_positive_rate=0.2, confidence=0.9).threshold
    point = ac.choose_threshold(trained, kept, division, false_positive_rate=0.2, confidence=0.9)
    cert = ac.certify(point.model, kept, point, kept.threshold_mask)
    assert limit == point.threshold
    assert limit.counted == int(kept.threshold_mask.sum())
    assert int((cert.label == 1).sum()) <= limit.flagged <= limit.allowed < 0.2 * limit.counted
    rule = point.voting_rule
    lead = rule.class_prior[1] - rule.class_prior[0]
    more = ac.VotingRule(rule.empty, (0, lead + 1) if lead + 1 > 0 else (-lead - 1, 0))
    loose = ac.certify(trained, kept, division, kept.threshold_mask, voting_rule=more)
    possible = loose.possible(0)[:, 1] | (loose.label == 1)
    assert int(possible.sum()) > limit.allowed


def test_the_threshold_of_stacked_votes_keeps_to_the_number(kept, stacked):
    for rate in (0.05, 0.2, 0.4):
        point = ac.choose_threshold(stacked, kept, stacked.defence, false_positive_rate=rate, confidence=0.8)
        label = ac.certify(point.model, kept, point, kept.threshold_mask).label
        assert int((label == 1).sum()) == point.threshold.flagged <= point.threshold.allowed
    assert point.threshold.flagged > 0


def keeps_to_the_number_where_scores_tie(kept, stacked, trained) -> None:
    twins = copy.copy(kept)  # all kept accounts look alike: at any threshold all of them are flagged, or none
    twins.x = kept.x.clone()
    rows = kept.threshold_mask.nonzero().view(-1)
    twins.x[rows] = kept.x[rows[0]]
    hidden = kept.threshold_mask[kept.edge_index].any(dim=0)
    twins.edge_index = kept.edge_index[:, ~hidden]
    point = ac.choose_threshold(stacked, twins, stacked.defence, false_positive_rate=0.3, confidence=0.9)
    assert point.threshold.flagged == 0
    divided = ac.choose_threshold(trained, twins, ac.PerNeighbour(), false_positive_rate=0.3, confidence=0.9)
    label = ac.certify(divided.model, twins, divided, twins.threshold_mask).label
    assert not (label == 1).any()


def test_ties_only_help(kept, stacked, trained, monkeypatch):
    keeps_to_the_number_where_scores_tie(kept, stacked, trained)
    law = lambda: keeps_to_the_number_where_scores_tie(kept, stacked, trained)  # noqa: E731
    text_turns_red(monkeypatch, training, "(cut + 4) / STEPS", "(cut - 4) / STEPS", law)


def test_several_classes_have_a_threshold_of_one_against_all_others():
    data = ac.keep_for_threshold(town(600, classes=4), 0.5, positive=1)
    model = ac.fit(ac.build_model("gcn", data, hidden_channels=8, num_layers=2), data, ac.NodeCentric(9), **QUICK)
    stacked = ac.fit(ac.build_model("mlp", data, hidden_channels=8, num_layers=2), data, STACKED, **QUICK)
    for one, defence in ((model, ac.NodeCentric(9)), (model, ac.PerNeighbour()), (stacked, stacked.defence)):
        for limits in ({"false_positive_rate": 0.2, "confidence": 0.9}, {"false_positive_rate": 0.1}, {"alerts": 9}):
            point = ac.choose_threshold(one, data, defence, positive=1, **limits)
            part = data.threshold_mask if "confidence" in limits else data.val_mask
            cert = ac.certify(point.model, data, point, part)
            counted = np.ones(len(cert), dtype=bool) if "alerts" in limits else cert.truth != 1
            assert int((cert.label == 1)[counted].sum()) <= point.threshold.allowed
            if "confidence" not in limits:
                assert point.measures.false_positive_rate[1] >= cert.measures(-1).false_positive_rate[1]
    assert set(cert.label) > {0}


def test_too_few_are_refused_with_the_number_needed():
    data = ac.keep_for_threshold(town(60), 0.3, positive=1)
    number = int(data.threshold_mask.sum())
    model = ac.build_model("gcn", data, hidden_channels=4, num_layers=1).eval()
    with pytest.raises(SettingsError, match=f"^{number} targets .* 29 are needed.*at best"):
        ac.choose_threshold(model, data, ac.NodeCentric(9), false_positive_rate=0.1, confidence=0.95)
    with pytest.raises(SettingsError, match="299 are needed"):
        ac.choose_threshold(model, data, ac.NodeCentric(9), false_positive_rate=0.01, confidence=0.95)


def test_a_model_that_knows_who_is_kept_is_refused(kept, trained, stacked):
    limits = {"false_positive_rate": 0.2, "confidence": 0.9}
    plain = town()
    with pytest.raises(DatasetError, match="none were kept"):
        ac.choose_threshold(trained, plain, ac.NodeCentric(9), **limits)
    knows = ac.fit(ac.build_model("gcn", plain, hidden_channels=4, num_layers=1), plain, ac.NodeCentric(9), **QUICK)
    with pytest.raises(DatasetError, match="trained without keeping"):
        ac.choose_threshold(knows, kept, ac.NodeCentric(9), **limits)
    for other in (
        ac.keep_for_threshold(plain, 0.4, positive=1),
        ac.keep_for_threshold(plain, 0.5, positive=1, seed=1),
    ):
        with pytest.raises(DatasetError, match="trained without keeping"):
            ac.choose_threshold(stacked, other, stacked.defence, **limits)
    both = copy.copy(kept)
    both.val_mask = kept.val_mask | kept.threshold_mask
    with pytest.raises(DatasetError, match="for training or validation too"):
        ac.choose_threshold(trained, both, ac.NodeCentric(9), **limits)
    with pytest.raises(SettingsError, match="those of other classes than 1"):
        ac.choose_threshold(trained, kept, ac.NodeCentric(9), positive="honest", **limits)


def test_a_mask_of_ones_own_is_kept_too(kept):
    own = town()
    own.train_mask, own.val_mask = kept.train_mask, kept.val_mask
    own.threshold_mask = kept.threshold_mask
    model = ac.fit(ac.build_model("gcn", own, hidden_channels=4, num_layers=1), own, ac.NodeCentric(9), **QUICK)
    limits = {"false_positive_rate": 0.2, "confidence": 0.9, "positive": 1}
    assert ac.choose_threshold(model, own, ac.NodeCentric(9), **limits).threshold.confidence == 0.9
    less = copy.copy(own)
    less.threshold_mask = own.threshold_mask.clone()
    less.threshold_mask[own.threshold_mask.nonzero()[0]] = False
    with pytest.raises(DatasetError, match="trained without keeping"):
        ac.choose_threshold(model, less, ac.NodeCentric(9), **limits)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"confidence": 0.95}, "one limit"),
        ({"alerts": 5, "confidence": 0.95}, "about a rate"),
        ({"false_positive_rate": 0.0, "confidence": 0.95}, "no rate of 0"),
        ({"false_positive_rate": 0.1, "confidence": 95}, "confidence=95: expected"),
        ({"false_positive_rate": 0.1, "confidence": 0.2}, "from .5"),
        ({"false_positive_rate": 0.1, "positive": "frod"}, "the classes are honest, fraud"),
        ({"false_positive_rate": 0.1, "as_of": 2026}, "expected a date as text"),
    ],
)
def test_senseless_requests_are_refused(kept, trained, limits, said):
    with pytest.raises(SettingsError, match=said):
        ac.choose_threshold(trained, kept, ac.NodeCentric(9), **limits)


@pytest.mark.parametrize("share", [0, 1, -0.5, True, "0.5"])
def test_a_share_is_between_none_and_all(share):
    with pytest.raises(SettingsError, match="share="):
        ac.keep_for_threshold(town(), share)


def test_nothing_is_kept_twice_or_of_what_has_no_part(kept):
    with pytest.raises(DatasetError, match="already"):
        ac.keep_for_threshold(kept, 0.5)
    bare = town()
    del bare.val_mask
    with pytest.raises(DatasetError, match="no val_mask"):
        ac.keep_for_threshold(bare, 0.5)
    with pytest.raises(DatasetError, match="before keep_for_threshold"):
        ac.fit(None, kept, ac.LabelVotes())


def test_graphs_are_kept_too():
    graphs = labelled_graphs(80, dtype=torch.float32)
    for k, graph in enumerate(graphs):
        graph.graph_id = k
    kept = ac.keep_for_threshold(graphs, 0.6)
    parts = [set(part.tolist()) for part in (kept.train, kept.val, kept.threshold)]
    assert not parts[0] & parts[2]
    assert not parts[1] & parts[2]
    assert set.union(*parts) == set(range(80))
    model = ac.build_model("gin", kept, hidden_channels=4, num_layers=2).eval()
    point = ac.choose_threshold(model, kept, ac.NodeCentric(4), false_positive_rate=0.3, confidence=0.8)
    cert = ac.certify(model, kept, point, kept.threshold)
    assert int((cert.label == point.positive).sum()) <= point.threshold.allowed
    assert ac.verify(cert, data=kept, model=model).holds


def test_certificate_claim_and_verify_say_it(kept, stacked, tmp_path):
    point = ac.choose_threshold(
        stacked, kept, stacked.defence, false_positive_rate=0.3, confidence=0.9, as_of="2026-03-01"
    )
    cert = ac.certify(point.model, kept, point, kept.test_mask)
    record = cert.claim.threshold
    assert record == point.threshold
    for text in (str(cert), str(cert.claim)):
        assert "at most 30 % of the targets of other classes" in text
        assert "with 90 % confidence" in text
        assert "exchangeable" in text
        assert "as of 2026-03-01" in text
    assert "reached" in str(cert)
    assert "for fraud: at most 30 % false positives with 90 % confidence" in str(cert)
    assert json.loads(json.dumps(point.to_json()))["threshold"] == record.to_json()
    file = tmp_path / "a.cert"
    cert.save(file)
    assert ac.load_certificate(file).claim == cert.claim
    alone = ac.verify(file)
    assert alone.holds
    assert any("pass data and model" in each for each in alone.not_checked)
    whole = ac.verify(file, data=kept, model=point.model)
    assert whole.holds
    assert any("kept for the threshold get the positive label" in each for each in whole.checked)
    assert any("used for nothing else" in each for each in whole.not_checked)
    moved = copy.copy(kept)  # a thousand more say that they were kept
    moved.threshold_mask = kept.threshold_mask | kept.val_mask
    assert not ac.verify(file, data=moved, model=point.model).holds


def test_forged_requests_are_refused(kept, stacked, tmp_path):
    point = ac.choose_threshold(stacked, kept, stacked.defence, false_positive_rate=0.3, confidence=0.9)
    ac.certify(point.model, kept, point, kept.test_mask).save(tmp_path / "a.cert")
    stored = read_contents(tmp_path / "a.cert")
    good = stored.claim.threshold
    for lie, is_seen in (
        (replace(good, confidence=0.99), "alone"),
        (replace(good, false_positive_rate=0.2), "alone"),
        (replace(good, counted=good.counted + 300), "with data"),
        (replace(good, allowed=good.allowed + 1), "alone"),
        (replace(good, positive=0), "with data"),
        (replace(good, confidence=None), "alone"),  # the sentences of the claim are about the guarantee
        (replace(good, flagged=max(good.flagged - 1, 0)), "with model"),
        (None, "alone"),
    ):
        if lie == good:
            continue
        forged = replace(stored, claim=replace(stored.claim, threshold=lie))
        write_contents(tmp_path / "b.cert", forged)
        checks = {
            "alone": {},
            "with data": {"data": kept},
            "with model": {"data": kept, "model": point.model},
        }
        verdicts = {name: ac.verify(tmp_path / "b.cert", **given).holds for name, given in checks.items()}
        assert not verdicts[is_seen], (lie, verdicts)


def test_a_guarantee_is_not_stated_for_another_model_or_threshold(kept, trained):
    division = ac.NodeCentric(9)
    point = ac.choose_threshold(trained, kept, division, false_positive_rate=0.3, confidence=0.9)
    other = ac.build_model("gcn", kept, hidden_channels=8, num_layers=2, seed=5).eval()
    with pytest.raises(SettingsError, match="another model or defence"):
        ac.certify(other, kept, point)
    with pytest.raises(SettingsError, match="pass the choice itself"):
        ac.certify(trained, kept, ac.NodeCentric(8), voting_rule=point)
    assert ac.certify(trained, kept, division, voting_rule=point).claim.threshold == point.threshold
    with pytest.raises(SettingsError, match="has a voting rule already"):
        ac.certify(trained, kept, point, voting_rule=ac.VotingRule(prior=(0, 3)))
    estimate = ac.choose_threshold(trained, kept, division, false_positive_rate=0.3)
    assert ac.certify(other, kept, estimate).claim.threshold is None
    cert = ac.certify(trained, kept, estimate)
    assert "an estimate for other targets, and no bound" in str(cert.claim)


def test_a_split_by_time_is_said_to_break_it(kept, trained):
    late = copy.copy(kept)
    late.split_by = "time"
    point = ac.choose_threshold(trained, late, ac.NodeCentric(9), false_positive_rate=0.3, confidence=0.9)
    assert "The split was cut by time" in str(ac.certify(trained, late, point).claim)
    point = ac.choose_threshold(trained, kept, ac.NodeCentric(9), false_positive_rate=0.3, confidence=0.9)
    assert "The split was cut by time" not in str(ac.certify(trained, kept, point).claim)


def rate_holds_over_splits() -> None:
    """300 times others are kept: in few of them more than the requested share of all honest accounts is flagged."""
    data = town(900)
    data.train_mask = torch.arange(900) % 9 == 0
    data.val_mask = torch.arange(900) % 9 == 1
    model = ac.build_model("mlp", data, hidden_channels=8, num_layers=1).eval()
    honest = ~data.train_mask & ~data.val_mask & (data.y == 0)
    pool = honest.nonzero().view(-1)
    random = np.random.default_rng(97)
    violated = 0
    for _ in range(300):
        one = copy.copy(data)
        one.threshold_mask = torch.zeros(900, dtype=torch.bool)
        one.threshold_mask[random.permutation(pool)[:46]] = True
        point = ac.choose_threshold(model, one, ac.PerNeighbour(), false_positive_rate=0.1, confidence=0.95, positive=1)
        label = point.as_defence().labels(model, one, honest)
        violated += (label == 1).mean() > 0.1
    assert violated / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


@pytest.mark.slow
def test_the_rate_holds_over_splits_and_an_off_by_one_breaks_it(monkeypatch):
    rate_holds_over_splits()
    text_turns_red(
        monkeypatch, choose_rule, "np.sort(leads)[limit.most_kept]) - 1", "np.sort(leads)[limit.most_kept + 1])",
        rate_holds_over_splits,
    )  # fmt: skip
