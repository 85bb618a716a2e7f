"""LabelVotes: fitted on a graph, certified, stored, verified, computed again; and what it refuses, with the reason."""

import copy
import math

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.certificates.budget import COUNTS
from agnncert.defence import FitOptions
from agnncert.errors import BudgetError, CertificateError, DatasetError, GraphError, ModelContractError, SettingsError
from agnncert.labels.claim import make_label_claim
from agnncert.labels.record import STEPS, LabelRecord
from agnncert.labels.vectors import node_spectrum
from agnncert.labels.weights import Weighting, make_weights
from agnncert.models.digest import model_digest
from agnncert.models.io import load_model, save_model
from agnncert.verdict import verify
from tests.support.label_cases import Case, evidence_of


@pytest.fixture(scope="module")
def data():
    return ac.load_dataset("digits-knn", split="by-id")


@pytest.fixture(scope="module")
def made(data):
    model = ac.fit(None, data, ac.LabelVotes())
    return model, ac.certify(model, data, model.defence, data.test_mask)


@pytest.fixture(scope="module")
def of_all(data):
    model = ac.fit(None, data, ac.LabelVotes(candidates="all", num_labels=500, audited=data.train_mask[:200]))
    return model, ac.certify(model, data, model.defence, data.test_mask)


def with_labels(data, change):
    """The same graph with other training labels: ``change`` alters a copy of y and of train_mask."""
    other = copy.copy(data)
    other.y, other.train_mask = data.y.clone(), data.train_mask.clone()
    change(other.y, other.train_mask)
    return other


def test_it_certifies_most_digits_against_flipped_labels(made):
    certificate = made[1]
    assert certificate.certified_accuracy() > 0.9
    assert certificate.certified_accuracy(sizes=5) > 0.7
    assert (certificate.holds_against(ac.Budget(flip_labels=3)) == (certificate.radius >= 3)).all()
    assert certificate.claim.unit == "one training label that is flipped"


def test_no_label_enters_the_weights(data, made):
    def shuffle(y, mask):
        rows = mask.nonzero().view(-1)
        y[rows] = y[rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))]]

    shuffled = with_labels(data, shuffle)
    model = ac.fit(None, shuffled, made[0].defence)
    other = ac.certify(model, shuffled, model.defence, data.test_mask).evidence
    for name in ("left", "right", "cap", "own", "candidate"):
        assert np.array_equal(getattr(other, name), getattr(made[1].evidence, name)), name
    assert not np.array_equal(other.counts, made[1].evidence.counts)


def test_with_all_candidates_not_even_who_has_a_label_enters_the_weights(data, of_all):
    def fewer(y, mask):
        mask[mask.nonzero().view(-1)[::3]] = False

    thinned = with_labels(data, fewer)
    model = ac.fit(None, thinned, of_all[0].defence)
    other = ac.certify(model, thinned, model.defence, data.test_mask).evidence
    for name in ("left", "right", "cap", "own", "candidate"):
        assert np.array_equal(getattr(other, name), getattr(of_all[1].evidence, name)), name


def test_poisoned_labels_within_the_radius_change_no_label_when_it_is_fitted_again(data, made):
    model, certificate = made
    rows = data.train_mask.nonzero().view(-1)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        number = int(rng.integers(1, 12))

        def flip(y, mask, rng=rng, number=number):
            chosen = rows[rng.choice(len(rows), number, replace=False)]
            y[chosen] = torch.from_numpy(rng.integers(0, 10, number))

        poisoned = with_labels(data, flip)
        again = ac.fit(None, poisoned, model.defence)
        label = ac.certify(again, poisoned, again.defence, data.test_mask).label
        held = certificate.radius >= number
        assert held.sum() > 100
        assert (label == certificate.label)[held].all()


def test_labels_that_come_and_go_within_the_radius_change_no_label(data, of_all):
    model, certificate = of_all
    rng = np.random.default_rng(3)
    outside = (~data.train_mask).nonzero().view(-1)
    inside = data.train_mask.nonzero().view(-1)[200:]

    def poison(y, mask):
        added = outside[rng.choice(len(outside), 4, replace=False)]
        mask[added] = True
        y[added] = torch.from_numpy(rng.integers(0, 10, 4))
        mask[inside[rng.choice(len(inside), 3, replace=False)]] = False

    poisoned = with_labels(data, poison)
    again = ac.fit(None, poisoned, model.defence)
    label = ac.certify(again, poisoned, again.defence, data.test_mask).label
    held = certificate.holds_against(ac.Budget(add_labels=4, remove_labels=3))
    assert held.sum() > 100
    assert (label == certificate.label)[held].all()


@pytest.mark.parametrize("which", ["made", "of_all"])
def test_a_file_verifies_alone_with_the_graph_and_with_the_model(which, data, request, tmp_path):
    model, certificate = request.getfixturevalue(which)
    file = tmp_path / "a.cert"
    certificate.save(file, exclusions=False)
    assert verify(file).holds
    assert verify(file, data=data).compared == ("data",)
    assert verify(file, data=data, model=model).compared == ("data", "model")
    again = ac.load_certificate(file)
    assert (again.radius == certificate.radius).all()
    assert again.evidence.settings() == certificate.evidence.settings()


def test_a_file_with_other_weights_or_labels_than_those_of_graph_and_model_is_refused(data, made, tmp_path):
    model, certificate = made
    evidence = certificate.evidence
    tables = {**evidence.tensors(), **evidence.settings(), "advance": evidence.advance}

    def verdict(**other):
        forged = type(evidence)(**{**tables, **other})
        claim = make_label_claim(forged, digests=certificate.claim.digests, notes=certificate.claim.notes)
        made_up = ac.Certificate(
            claim, forged, certificate.target, certificate.row, certificate.truth, certificate.degree
        )
        made_up.save(tmp_path / "forged.cert")
        assert verify(tmp_path / "forged.cert").holds  # its arithmetic is consistent
        return verify(tmp_path / "forged.cert", data=data, model=model)

    left = evidence.left.copy()
    left[0] = -left[0]
    assert "weight differs by" in verdict(left=left).reasons[0]
    labels = evidence.label_of.copy()
    labels[:5] = (labels[:5] + 1) % 10
    assert '"label_of" is not that of the model' in verdict(label_of=labels).reasons
    audited = evidence.audited.copy()
    audited[:] = True
    assert '"audited" is not that of the model' in verdict(audited=audited).reasons


@pytest.mark.parametrize("other", [{"df": 12.0}, {"rank": 200}])
def test_a_file_whose_weights_follow_from_other_settings_than_those_of_the_model_is_refused(
    other, data, made, tmp_path
):
    model, certificate = made
    evidence = certificate.evidence
    weighting = Weighting(evidence.candidate, False, other.get("df", evidence.df), other.get("rank", evidence.rank))
    arrays = make_weights(node_spectrum(data.x, data.edge_index), certificate.row, weighting)
    forged = type(evidence).load({**evidence.tensors(), **arrays}, {**evidence.settings(), **other})
    claim = make_label_claim(forged, digests=certificate.claim.digests, notes=certificate.claim.notes)
    known = (certificate.target, certificate.row, certificate.truth, certificate.degree)
    ac.Certificate(claim, forged, *known).save(tmp_path / "forged.cert")
    assert verify(tmp_path / "forged.cert", data=data).holds  # the graph alone does not know the settings
    verdict = verify(tmp_path / "forged.cert", data=data, model=model)
    assert [reason.split('"')[1] for reason in verdict.reasons] == list(other)


def test_many_weights_that_each_differ_by_a_little_are_refused(data, tmp_path):
    model = ac.fit(None, data, ac.LabelVotes(df=30, rank=50, box=True))
    certificate = ac.certify(model, data, model.defence, data.test_mask.nonzero().view(-1)[:40])
    evidence = certificate.evidence
    agrees = evidence.label_of == certificate.label[:, None]
    nudged = np.clip(evidence.weights + np.where(agrees, 2, -2), -127, 127).astype(np.int8)
    forged = type(evidence).load({**evidence.tensors(), "weights": nudged}, evidence.settings())
    known = (certificate.target, certificate.row, certificate.truth, certificate.degree)
    made_up = ac.Certificate(certificate.claim, forged, *known)
    assert (made_up.radius > certificate.radius).any()
    made_up.save(tmp_path / "forged.cert")
    reasons = verify(tmp_path / "forged.cert", data=data, model=model).reasons
    assert any("steps in all" in reason for reason in reasons)


def test_a_model_is_stored_and_loaded_and_predicts_as_it_certifies(data, made, tmp_path):
    model, certificate = made
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert str(again.defence) == str(model.defence)
    assert (again.defence.scores(again, data, data.test_mask) == certificate.counts).all()
    votes = again(data.x, data.edge_index)[data.test_mask]
    assert (votes.argmax(dim=1).numpy() == certificate.label).all()
    assert again(data.x[:2], data.edge_index[:, :0]).shape == (2, 10)  # a graph without the labels


def test_a_loaded_model_is_the_same_also_with_audited_labels_and_prices(data, tmp_path):
    prices = torch.arange(data.num_nodes) % 3 + 1
    defence = ac.LabelVotes(df=30, rank=50, audited=[3, 5, 8], prices=prices, advance=(0.5,) * 10)
    model = ac.fit(None, data, defence)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert model_digest(again) == model_digest(model)
    ac.certify(model, data, model.defence, [1700, 1701]).save(tmp_path / "a.cert")
    assert verify(tmp_path / "a.cert", data=data, model=again).compared == ("data", "model")


def test_audited_labels_and_a_larger_budget_of_them_help(data):
    plain = ac.LabelVotes(df=30, rank=50)
    audited = ac.LabelVotes(df=30, rank=50, audited=data.train_mask.nonzero().view(-1)[:300])
    radii = []
    for defence in (plain, audited):
        model = ac.fit(None, data, defence)
        radii.append(ac.certify(model, data, model.defence, data.test_mask).radius)
    assert (radii[1] >= radii[0]).all()
    assert (radii[1] > radii[0]).mean() > 0.1
    data.seen = torch.zeros(data.num_nodes, dtype=torch.bool)
    data.seen[data.train_mask.nonzero().view(-1)[:300]] = True
    model = ac.fit(None, data, ac.LabelVotes(df=30, rank=50, audited="seen"))
    assert (ac.certify(model, data, model.defence, data.test_mask).radius == radii[1]).all()


def test_who_abstains_is_not_certified_and_others_do_not_abstain_under_attack(data, made):
    model = ac.fit(None, data, ac.LabelVotes(abstain=3))
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    assert (certificate.radius <= made[1].radius).all()
    assert 0 < (certificate.radius == -1).sum() < len(certificate)
    assert "neither gets another class nor abstains" in str(certificate.claim)
    assert (certificate.holds_against(ac.Budget()) == (certificate.radius >= 0)).all()


def test_whoever_leads_by_less_than_was_asked_for_abstains_also_by_a_part_of_a_step(data):
    """A lead is counted in steps of a vote. A limit between two steps is rounded up, never down."""
    plain = ac.fit(None, data, ac.LabelVotes(df=30, rank=50))
    counts = np.sort(ac.certify(plain, data, plain.defence, data.test_mask).counts, axis=1)
    lead = counts[:, -1] - counts[:, -2]
    step = int(np.median(lead))
    model = ac.fit(None, data, ac.LabelVotes(df=30, rank=50, abstain=(step + 0.25) / STEPS))
    assert model.counted_settings()["least_lead"] == step + 1
    abstains = ac.certify(model, data, model.defence, data.test_mask).radius == -1
    assert abstains[lead <= step].all()
    assert not abstains[lead > step + 1].any()


def test_a_price_is_never_more_than_the_cheapest_attack_costs():
    """Two labels of different prices, one of which is exactly enough: the bound is attained."""
    case = Case((2, 2), (1, 1), 2, (0, 0), (False, False), flips_only=True)
    evidence = evidence_of([case], price=np.array([1, 2], dtype=np.int32))
    assert case.plain_winner((0, 1)) == 0 != case.plain_winner(case.labels)
    for each in (0.1, 1 / 3, 1.0, 7e9):
        stated = float(evidence.cheapest(ac.Prices(flip_labels=each))[0])
        assert stated <= each
        assert stated == pytest.approx(each)


def test_prices_of_single_labels_and_of_kinds(data):
    dear = torch.ones(data.num_nodes, dtype=torch.int64)
    plain = ac.fit(None, data, ac.LabelVotes(df=30, rank=50))
    certificate = ac.certify(plain, data, plain.defence, data.test_mask)
    one = certificate.cheapest(ac.Prices(flip_labels=2))
    assert (one == np.where(certificate.radius >= 0, 2.0 * (certificate.radius + 1), 0)).all()
    assert (certificate.cheapest(ac.Prices(flip_labels=2, delete_edges=5)) == np.minimum(one, 5)).all()
    dear[data.train_mask.nonzero().view(-1)[10:]] = 10
    priced = ac.fit(None, data, ac.LabelVotes(df=30, rank=50, prices=dear))
    certified = ac.certify(priced, data, priced.defence, data.test_mask)
    assert (certified.radius == certificate.radius).all()
    cost = certified.cheapest(ac.Prices(flip_labels=2))
    assert (cost >= one - 2).all()  # a bound counts a part of the last label
    assert cost.mean() > one.mean()
    with pytest.raises(BudgetError, match="flip_labels alone"):
        certificate.cheapest(ac.Prices(add_labels=1))


def test_a_box_in_the_fit_keeps_weights_within_the_cap_and_stores_them_whole(data, tmp_path):
    model = ac.fit(None, data, ac.LabelVotes(df=30, rank=50, box=True))
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    weights = certificate.evidence.weights
    assert weights.shape == (len(certificate), int(data.train_mask.sum()))
    assert np.abs(weights.astype(int)).max() == 127
    certificate.save(tmp_path / "a.cert")
    assert verify(tmp_path / "a.cert", data=data, model=model).compared == ("data", "model")


def test_rank_1_cuts_off_no_weight(data):
    model = ac.fit(None, data, ac.LabelVotes(df=30, rank=1))
    evidence = ac.certify(model, data, model.defence, [1700]).evidence
    weights = np.abs(evidence._weights(slice(0, 1)).astype(int))
    assert (weights == 127).sum() == 1
    capped = ac.fit(None, data, ac.LabelVotes(df=30, rank=50))
    evidence = ac.certify(capped, data, capped.defence, [1700]).evidence
    assert (np.abs(evidence._weights(slice(0, 1)).astype(int)) >= 126).sum() >= 40


def test_presets_follow_from_the_number_of_labels_and_of_classes():
    assert ac.LabelVotes("few").resolved(898, 2995, 7).df == 44
    assert ac.LabelVotes("few").resolved(898, 2995, 7).rank == 30
    assert ac.LabelVotes("many").resolved(898, 2995, 7).df == 21
    assert ac.LabelVotes("many").resolved(898, 2995, 7).rank == 89
    assert ac.LabelVotes("many", "all", num_labels=898).resolved(5, 2995, 7).rank == round(89 * 2995 / 898)
    assert ac.LabelVotes(df=5, rank=7).resolved(898, 2995, 7).rank == 7


REFUSED = {
    "df chosen by labels": ({"df": "validation"}, "chosen by labels"),
    "rank chosen by labels": ({"rank": "auto"}, "chosen by labels"),
    "no df": ({"df": 0}, "expected a number above 0"),
    "half a rank": ({"rank": 1.5}, "expected a whole number"),
    "one class": ({"num_classes": 1}, "at least 2"),
    "an unknown preset": ({"preset": "fwe"}, 'did you mean "few"'),
    "unknown candidates": ({"candidates": "labeled"}, 'did you mean "labelled"'),
    "a box that is none": ({"box": 1}, "expected true or false"),
    "a negative lead": ({"abstain": -1}, "at least 0"),
    "votes without end in advance": ({"advance": (math.inf, 0)}, "finite"),
    "audited weights": ({"audited": [0.5]}, "whole numbers"),
    "prices that are no list": ({"prices": 3}, "whole numbers, or the name"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_make_no_sense_are_refused(name):
    settings, reason = REFUSED[name]
    with pytest.raises(SettingsError, match=reason):
        ac.LabelVotes(**settings)


def test_the_number_of_labels_is_never_read_from_labels_that_may_be_added(data):
    with pytest.raises(SettingsError, match="must not follow from how many there are"):
        ac.fit(None, data, ac.LabelVotes(candidates="all"))


def test_the_number_of_classes_is_never_counted_from_labels(data):
    nameless = copy.copy(data)
    del nameless.num_classes
    with pytest.raises(SettingsError, match="must not be counted from labels"):
        ac.fit(None, nameless, ac.LabelVotes())
    assert ac.fit(None, nameless, ac.LabelVotes(num_classes=12)).num_classes == 12


def test_labels_that_are_added_or_removed_are_refused_where_only_flips_are_covered(made):
    for field in ("add_labels", "remove_labels"):
        with pytest.raises(BudgetError, match=r'LabelVotes\(candidates="all"\)'):
            made[1].holds_against(ac.Budget(**{field: 1}))
        with pytest.raises(BudgetError, match=r'LabelVotes\(candidates="all"\)'):
            made[1].max_certified(field)


@pytest.mark.parametrize("field", [*(name for name in COUNTS if name != "edges_per_injected"), "target_features"])
def test_a_changed_graph_is_not_covered_and_never_together_with_labels(field, of_all):
    budget = ac.Budget(**{field: True if field == "target_features" else 1})
    certificate = of_all[1]
    assert not certificate.holds_against(budget).any()
    assert certificate.possible(budget).all()
    assert not certificate.evidence.covers(budget)
    with pytest.raises(BudgetError, match="labels and graph together"):
        certificate.holds_against(budget.but(flip_labels=1))
    if field == "inject_nodes":
        assert "labelled nodes were not inserted" in str(certificate.claim)


def test_poisoned_graphs_are_refused(of_all):
    with pytest.raises(BudgetError, match="nothing is proved about poison_graphs"):
        of_all[1].holds_against(ac.Budget(poison_graphs=1))


def test_features_that_were_computed_from_labels_are_refused(data):
    leaking = copy.copy(data)
    of_labels = torch.where(data.train_mask, data.y, 0).float().view(-1, 1)
    leaking.x = torch.cat([data.x, of_labels], dim=1)
    with pytest.raises(DatasetError, match="column 64 of the features"):
        ac.fit(None, leaking, ac.LabelVotes())


def test_what_it_cannot_do_it_says(data, made):
    model = made[0]
    with pytest.raises(SettingsError, match="the search changes the graph alone"):
        ac.attack(model, data, model.defence, budget=ac.Budget(add_edges=1), targets=[0])
    for ask in (
        lambda: ac.explain(model, data, model.defence, 3),
        lambda: model.defence.live(model, data),
        lambda: ac.subgraphs(data, model.defence),
        lambda: ac.choose_threshold(model, data, model.defence, alerts=3),
        lambda: model.defence.choose_voting_rule(model, data, 1),
        lambda: model.defence.fit(None, data, FitOptions(voting_rule=ac.VotingRule(prior=1))),
    ):
        with pytest.raises(SettingsError, match=r"label-votes\(.* cannot .*, because"):
            ask()
    with pytest.raises(SettingsError, match="no model to audit"):
        ac.audit(model, data, model.defence)


def test_models_and_data_of_another_kind_are_refused(data, made):
    with pytest.raises(SettingsError, match="trains no WeightedNodeGNN"):
        ac.fit(ac.build_model("gcn", data), data, ac.LabelVotes())
    with pytest.raises(ModelContractError, match="fit\\(…, data, LabelVotes"):
        ac.certify(ac.build_model("gcn", data).eval(), data, ac.LabelVotes())
    with pytest.raises(ModelContractError, match=r"pass model\.defence"):
        ac.certify(made[0], data, ac.LabelVotes(df=3, rank=3))
    without = copy.copy(data)
    without.train_mask = torch.zeros_like(data.train_mask)
    with pytest.raises(DatasetError, match="no node of train_mask"):
        ac.fit(None, without, ac.LabelVotes())
    wide = ac.fit(None, data, ac.LabelVotes(df=1e6, rank=3))
    with pytest.raises(GraphError, match=r"directions only\. Pass a smaller one"):
        ac.certify(wide, data, wide.defence, [0])
    with pytest.raises(DatasetError, match="there are 4 classes"):
        ac.fit(None, data, ac.LabelVotes(num_classes=4))
    with pytest.raises(SettingsError, match="advance has 2 numbers"):
        ac.fit(None, data, ac.LabelVotes(advance=(1, 2)))
    with pytest.raises(DatasetError, match="no such mask"):
        ac.fit(None, data, ac.LabelVotes(audited="nobody"))
    with pytest.raises(DatasetError, match="no such tensor"):
        ac.fit(None, data, ac.LabelVotes(prices="nothing"))


BROKEN = {
    "a weight beyond a vote": {"weights": np.array([[-128, 3]], dtype=np.int8)},
    "factors and weights": {"left": np.ones((1, 1), dtype=np.int16), "right": np.ones((2, 1), dtype=np.int16)},
    "a cap of nothing": {"cap": np.zeros(1, dtype=np.int64)},
    "a label that is no class": {"label_of": np.array([0, 9], dtype=np.int16)},
    "a candidate without a label": {"label_of": np.array([0, -1], dtype=np.int16)},
    "candidates out of order": {"candidate": np.array([4, 3])},
    "a target beyond the candidates": {"own": np.array([2])},
    "a price of nothing": {"price": np.array([1, 0], dtype=np.int32)},
    "a negative lead": {"least_lead": -1},
    "other ids": {"ids": "name"},
    "one class": {"classes": 1, "advance": (0,)},
    "votes in advance for nobody": {"advance": (0, 0)},
    "wrong types": {"audited": np.zeros(2, dtype=np.int8)},
    "one label too many": {"label_of": np.zeros(3, dtype=np.int16)},
    "df of nothing": {"df": 0.0},
    "all, but not all": {"candidates": "all", "candidate": np.array([1, 2])},
    "half a box": {"box": 1},
}


def small_record(**other):
    fields = {
        "left": np.zeros((1, 0), dtype=np.int16),
        "right": np.zeros((2, 0), dtype=np.int16),
        "cap": np.ones(1, dtype=np.int64),
        "weights": np.array([[5, -3]], dtype=np.int8),
        "candidate": np.array([3, 4]),
        "own": np.array([-1]),
        "label_of": np.array([0, 1], dtype=np.int16),
        "audited": np.zeros(2, dtype=bool),
        "price": np.ones(2, dtype=np.int32),
        "classes": 3,
        "advance": (0, 0, 0),
    }
    return LabelRecord(**{**fields, **other})


@pytest.mark.parametrize("name", BROKEN)
def test_records_that_make_no_sense_are_refused(name):
    small_record()
    with pytest.raises(CertificateError, match="the label votes make no sense"):
        small_record(**BROKEN[name])


def test_a_record_with_a_field_too_many_too_few_or_of_another_form_is_refused():
    record = small_record()
    with pytest.raises(CertificateError, match="missing or was not expected"):
        LabelRecord.load({**record.tensors(), "more": record.cap}, record.settings())
    with pytest.raises(CertificateError, match="advance is 3, expected a list"):
        LabelRecord.load(record.tensors(), {**record.settings(), "advance": 3})
