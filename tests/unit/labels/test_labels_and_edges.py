"""LabelVotes(neighbour_votes=…): labels and edges attacked together, on a graph; files, models, and what is refused."""

import copy
import math

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.errors import BudgetError, CertificateError, DatasetError, SettingsError
from agnncert.labels.joint_claim import make_joint_claim
from agnncert.labels.joint_evidence import JointEvidence
from agnncert.labels.joint_record import JointRecord
from agnncert.labels.record import STEPS
from agnncert.models.io import load_model, save_model
from agnncert.verdict import verify
from tests.support.joint_worlds import random_joint


@pytest.fixture(scope="module")
def data():
    return ac.load_dataset("digits-knn", split="by-id")


@pytest.fixture(scope="module")
def made(data):
    model = ac.fit(None, data, ac.LabelVotes(neighbour_votes=2))
    return model, ac.certify(model, data, model.defence, data.test_mask)


@pytest.fixture(scope="module")
def of_all(data):
    model = ac.fit(None, data, ac.LabelVotes(candidates="all", num_labels=500, neighbour_votes=1))
    return model, ac.certify(model, data, model.defence, data.test_mask)


def rewired(data, rng, share=0.3):
    """The same nodes with some edges lost and as many others new."""
    other = copy.copy(data)
    kept = torch.from_numpy(rng.random(data.num_edges) >= share)
    new = torch.from_numpy(rng.integers(0, data.num_nodes, (2, int(share * data.num_edges))))
    other.edge_index = torch.cat([data.edge_index[:, kept], new], dim=1)
    return other


def neighbours(data, row):
    """Who shares an edge with a node, in either direction."""
    first, second = data.edge_index
    return {*second[first == row].tolist(), *first[second == row].tolist()} - {row}


def attacked(data, rng, target, budget):
    """Flips some training labels at random, and gives the target other neighbours."""
    other = copy.copy(data)
    other.y = data.y.clone()
    rows = data.train_mask.nonzero().view(-1)
    flipped = rows[rng.choice(len(rows), int(budget.flip_labels), replace=False)]
    other.y[flipped] = torch.from_numpy(rng.integers(0, 10, len(flipped)))
    near = sorted(neighbours(data, target))
    lost = set(rng.choice(near, min(int(budget.delete_edges), len(near)), replace=False).tolist())
    first, second = data.edge_index.tolist()
    kept = [k for k, ends in enumerate(zip(first, second, strict=True)) if not (target in ends and lost & {*ends})]
    strangers = [row for row in rng.permutation(data.num_nodes).tolist() if row not in {*near, target}]
    new = strangers[: int(budget.add_edges)]
    added = torch.tensor([[target] * len(new), new], dtype=torch.int64)
    other.edge_index = torch.cat([data.edge_index[:, kept], added], dim=1)
    return other


def test_it_certifies_digits_against_labels_and_edges_together(made):
    certificate = made[1]
    assert certificate.certified_accuracy() > 0.88
    both = certificate.holds_against(ac.Budget(flip_labels=3, add_edges=1, delete_edges=1))
    assert 0.5 < both.mean() < 0.95
    assert (both <= certificate.holds_against(ac.Budget(flip_labels=3))).all()
    assert (both <= certificate.holds_against(ac.Budget(add_edges=2))).all()
    assert certificate.claim.unit.endswith("or one edge of the target that is added or deleted")


def test_no_edge_and_no_label_enters_the_weights(data, made):
    rng = np.random.default_rng(1)
    other = rewired(data, rng)
    rows = data.train_mask.nonzero().view(-1)
    other.y = data.y.clone()
    other.y[rows] = other.y[rows[torch.from_numpy(rng.permutation(len(rows)))]]
    model = ac.fit(None, other, made[0].defence)
    everybody = ac.certify(model, other, model.defence).evidence
    here = ac.certify(made[0], data, made[0].defence).evidence
    assert np.array_equal(everybody.voter, here.voter)
    for name in ("left", "right", "cap", "own", "candidate"):
        assert np.array_equal(getattr(everybody.voters, name), getattr(here.voters, name)), name
    assert not np.array_equal(everybody.neighbour, here.neighbour)
    assert not np.array_equal(everybody.counts, here.counts)


def test_a_weight_does_not_depend_on_which_nodes_are_targets(data, made):
    few = ac.certify(made[0], data, made[0].defence, [1500, 20, 700]).evidence
    everybody = ac.certify(made[0], data, made[0].defence).evidence
    for name in ("left", "cap", "own"):
        assert np.array_equal(getattr(few.voters, name), getattr(everybody.voters, name)[few.voter]), name
    assert np.array_equal(few.counts, everybody.counts[[1500, 20, 700]])


def test_attacks_within_a_budget_change_no_label_when_it_is_fitted_again(data, made):
    model, certificate = made
    rows = certificate.row
    budgets = [ac.Budget(flip_labels=f, add_edges=s, delete_edges=d) for f, s, d in ((2, 1, 1), (5, 0, 2), (0, 3, 9))]
    num_held = 0
    for seed, budget in enumerate(budgets):
        rng = np.random.default_rng(seed)
        held = np.flatnonzero(certificate.holds_against(budget))
        for place in rng.choice(held, 2, replace=False):
            poisoned = attacked(data, rng, int(rows[place]), budget)
            again = ac.fit(None, poisoned, model.defence)
            label = ac.certify(again, poisoned, again.defence, [int(rows[place])]).label[0]
            assert label == certificate.label[place]
            num_held += 1
    assert num_held == 6


def test_the_score_is_that_of_labels_and_of_neighbours(data, made):
    certificate = made[1]
    alone = ac.fit(None, data, ac.LabelVotes(neighbour_votes=0))
    scores = alone.defence.scores(alone, data)
    label = scores.argmax(axis=1)
    for place in (0, 7, 300):
        row = int(certificate.row[place])
        expected = scores[row].copy()
        for neighbour in neighbours(data, row):
            expected[label[neighbour]] += 2 * STEPS
        assert (certificate.counts[place] == expected).all()
    assert (certificate.evidence.no_edge_labels() == label[certificate.row]).all()


def test_without_weight_of_neighbours_any_number_of_edges_is_covered(data):
    model = ac.fit(None, data, ac.LabelVotes(neighbour_votes=0))
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    every_edge = ac.Budget(add_edges=math.inf, delete_edges=math.inf, change_edges=math.inf)
    assert certificate.holds_against(every_edge).all()
    assert (certificate.holds_against(every_edge.but(flip_labels=4)) == (certificate.radius >= 4)).all()


def test_changed_values_of_edges_and_second_directions_cost_nothing(data, made):
    certificate = made[1]
    assert certificate.holds_against(ac.Budget(change_edges=math.inf)).all()
    one_way = copy.copy(data)
    forward = data.edge_index[0] < data.edge_index[1]
    backward = {(b, a) for a, b in data.edge_index[:, ~forward].T.tolist()}
    single = torch.tensor([pair not in backward for pair in map(tuple, data.edge_index.T.tolist())]) & forward
    one_way.edge_index = data.edge_index[:, ~forward | single]
    again = ac.certify(made[0], one_way, made[0].defence, data.test_mask)
    assert np.array_equal(again.counts, certificate.counts)


@pytest.mark.parametrize("which", ["made", "of_all"])
def test_a_file_verifies_alone_with_the_graph_and_with_the_model(which, data, request, tmp_path):
    model, certificate = request.getfixturevalue(which)
    file = tmp_path / "a.cert"
    certificate.save(file, exclusions=True)
    assert verify(file).holds
    assert verify(file, data=data).compared == ("data",)
    assert verify(file, data=data, model=model).compared == ("data", "model")
    again = ac.load_certificate(file)
    assert isinstance(again.evidence, JointEvidence)
    assert (again.radius == certificate.radius).all()
    assert again.evidence.settings() == certificate.evidence.settings()


def test_a_file_with_other_weights_labels_or_neighbours_than_those_of_graph_and_model_is_refused(data, made, tmp_path):
    model, certificate = made
    evidence = certificate.evidence

    def verdict(voters=None, **other):
        tensors, settings = evidence.tensors() | (voters or {}), evidence.settings()
        forged = JointEvidence.load({**tensors, **other}, settings)
        claim = make_joint_claim(forged, digests=certificate.claim.digests, notes=certificate.claim.notes)
        known = (certificate.target, certificate.row, certificate.truth, certificate.degree)
        ac.Certificate(claim, forged, *known).save(tmp_path / "forged.cert")
        assert verify(tmp_path / "forged.cert").holds  # its arithmetic is consistent
        return verify(tmp_path / "forged.cert", data=data, model=model)

    left = evidence.voters.left.copy()
    left[0] = -left[0]
    assert "weight differs by" in verdict({"left": left}).reasons[0]
    labels = evidence.voters.label_of.copy()
    labels[:5] = (labels[:5] + 1) % 10
    assert '"label_of" is not that of the model' in verdict({"label_of": labels}).reasons
    last = evidence.indptr.copy()
    last[-1] -= 1
    reasons = verdict(indptr=last, neighbour=evidence.neighbour[:-1]).reasons
    assert "the numbers of neighbours of the targets are not those of the graph" in reasons


@pytest.mark.parametrize(
    ("name", "value"), [("neighbour_steps", 0), ("least_lead", 7), ("advance", [500] + [0] * 9), ("classes", 11)]
)
def test_a_file_with_other_settings_than_those_of_the_model_is_refused(name, value, data, made, tmp_path):
    model, certificate = made
    evidence = certificate.evidence
    settings = {**evidence.settings(), name: value}
    if name == "classes":
        settings["advance"] = [0] * value
    forged = JointEvidence.load(evidence.tensors(), settings)
    claim = make_joint_claim(forged, digests=certificate.claim.digests, notes=certificate.claim.notes)
    known = (certificate.target, certificate.row, certificate.truth, certificate.degree)
    ac.Certificate(claim, forged, *known).save(tmp_path / "forged.cert")
    assert verify(tmp_path / "forged.cert", data=data).holds  # the graph alone does not know the settings
    verdict = verify(tmp_path / "forged.cert", data=data, model=model)
    assert any(reason.startswith(f'"{name}" is {value!r:.60} in the file') for reason in verdict.reasons)


def test_a_model_is_stored_and_loaded_and_predicts_as_it_certifies(data, made, tmp_path):
    model, certificate = made
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert str(again.defence) == str(model.defence) == "label-votes(labelled, df=30, rank=54, neighbour_votes=2)"
    assert (again.defence.scores(again, data, data.test_mask) == certificate.counts).all()
    votes = again(data.x, data.edge_index)[data.test_mask]
    assert (votes.argmax(dim=1).numpy() == certificate.label).all()


def test_labels_and_edges_together_cost_no_more_than_edges_alone(made):
    certificate = made[1]
    one = certificate.cheapest(ac.Prices(flip_labels=1, add_edges=1, delete_edges=1))
    assert (one == certificate.radius + 1).all()
    edges = certificate.cheapest(ac.Prices(add_edges=2))
    assert (edges > 0).all()
    assert (certificate.cheapest(ac.Prices(add_edges=2, flip_labels=1)) <= edges).all()
    assert (certificate.cheapest(ac.Prices(add_edges=2, inject_nodes=1)) <= 1).all()
    assert (certificate.cheapest(ac.Prices(flip_labels=0)) <= 0).any()


REFUSED = {
    "votes of neighbours chosen by labels": ({"neighbour_votes": "validation"}, "chosen by labels"),
    "negative votes of neighbours": ({"neighbour_votes": -1}, "at least 0"),
    "votes of neighbours without end": ({"neighbour_votes": math.inf}, "expected a number"),
    "too many votes of neighbours": ({"neighbour_votes": 9000}, "at most 8,192"),
    "a box": ({"neighbour_votes": 2, "box": True}, "Leave box out"),
    "prices of single labels": ({"neighbour_votes": 2, "prices": [1, 2]}, "different prices"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_make_no_sense_are_refused(name):
    settings, reason = REFUSED[name]
    with pytest.raises(SettingsError, match=reason):
        ac.LabelVotes(**settings)


@pytest.mark.parametrize("field", ["inject_nodes", "delete_nodes", "change_features", "target_features"])
def test_nodes_and_features_are_not_covered_and_never_together_with_labels(field, made):
    budget = ac.Budget(**{field: True if field == "target_features" else 1})
    certificate = made[1]
    assert not certificate.holds_against(budget).any()
    assert not certificate.holds_against(budget.but(add_edges=1)).any()
    assert certificate.possible(budget).all()
    assert not certificate.evidence.covers(budget)
    with pytest.raises(BudgetError, match="labels together with nodes or features"):
        certificate.holds_against(budget.but(flip_labels=1))


def test_labels_that_are_added_or_removed_need_all_candidates(made, of_all):
    with pytest.raises(BudgetError, match=r'LabelVotes\(candidates="all"\)'):
        made[1].holds_against(ac.Budget(add_labels=1, add_edges=1))
    mixed = ac.Budget(flip_labels=1, add_labels=1, remove_labels=1, add_edges=1)
    assert (of_all[1].holds_against(mixed) == of_all[1].holds_against(ac.Budget(flip_labels=3, add_edges=1))).all()
    with pytest.raises(BudgetError, match="nothing is proved about poison_graphs"):
        of_all[1].holds_against(ac.Budget(poison_graphs=1))


def test_features_that_were_computed_from_edges_are_refused(data):
    leaking = copy.copy(data)
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes).float()
    leaking.x = torch.cat([data.x, degree.view(-1, 1)], dim=1)
    with pytest.raises(DatasetError, match=r"neighbour_votes=2\), but features were computed from the edges"):
        ac.fit(None, leaking, ac.LabelVotes(neighbour_votes=2))
    ac.fit(None, leaking, ac.LabelVotes())  # which trusts the edges


def test_label_votes_that_read_edges_say_what_to_use_instead(data):
    model = ac.fit(None, data, ac.LabelVotes())
    certificate = ac.certify(model, data, model.defence, [0])
    with pytest.raises(BudgetError, match=r"LabelVotes\(neighbour_votes=…\)"):
        certificate.holds_against(ac.Budget(flip_labels=1, add_edges=1))


BROKEN = {
    "voters out of order": {"voter": lambda record: record.voter[::-1].copy()},
    "a target that is no voter": {"target": lambda record: record.target + len(record.voter)},
    "one target too many": {"target": lambda record: np.append(record.target, 0)},
    "lists that do not end": {"indptr": lambda record: record.indptr + 1},
    "lists of a negative length": {"indptr": lambda record: record.indptr[::-1].copy()},
    "a neighbour that is no voter": {"neighbour": lambda record: record.neighbour + len(record.voter)},
    "a neighbour that is named twice": {
        "neighbour": lambda record: np.full_like(record.neighbour, record.neighbour[0])
    },
    "its own neighbour": {
        "indptr": lambda record: np.arange(record.num_targets + 1),
        "neighbour": lambda record: record.target,
    },
    "half a vote of a neighbour": {"neighbour_steps": lambda record: 0.5},
    "a negative vote of a neighbour": {"neighbour_steps": lambda record: -1},
    "a vote of a neighbour that is too large": {"neighbour_steps": lambda record: 2**21},
    "a negative lead": {"least_lead": lambda record: -1},
    "wrong types": {"neighbour": lambda record: record.neighbour.astype(np.int32)},
}


def small_record():
    """A record with several neighbours for some target."""
    rng = np.random.default_rng(0)
    while True:
        record = random_joint(rng)
        if record.num_targets > 1 and (np.diff(record.indptr) > 1).all():
            return record


@pytest.mark.parametrize("name", BROKEN)
def test_records_that_make_no_sense_are_refused(name):
    record = small_record()
    altered = {field: alter(record) for field, alter in BROKEN[name].items()}
    stored = {**record.tensors(), **record.settings(), **altered}
    tensors = {field: stored[field] for field in record.tensors()}
    with pytest.raises(CertificateError, match="labels and neighbours make no sense"):
        JointRecord.load(tensors, {field: stored[field] for field in record.settings()})


def test_neighbours_that_abstain_are_refused():
    record = small_record()
    voters = type(record.voters).load(record.voters.tensors(), {**record.voters.settings(), "least_lead": 3})
    fields = {name: getattr(record, name) for name in ("voter", "target", "indptr", "neighbour", "neighbour_steps")}
    with pytest.raises(CertificateError, match="neighbours abstain"):
        JointRecord(voters, **fields)


def test_a_record_with_a_field_too_many_too_few_or_of_another_form_is_refused():
    record = small_record()
    tensors, settings = record.tensors(), record.settings()
    with pytest.raises(CertificateError, match="missing or was not expected"):
        JointRecord.load({**tensors, "more": record.voter}, settings)
    with pytest.raises(CertificateError, match="lack"):
        JointRecord.load({name: array for name, array in tensors.items() if name != "voter"}, settings)
    with pytest.raises(CertificateError, match="lack"):
        JointRecord.load(tensors, record.voters.settings())
