"""Training without edges: the same to the bit whatever the edges are, stated in the claim, and checked."""

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.certificates.file import read_contents
from agnncert.errors import CertificateError, DatasetError, ModelContractError, SettingsError
from agnncert.stacked.record import StackedRecord
from agnncert.stacked.training import SHARP, set_blind_votes, wrong_blind_votes
from tests.soundness.forger.forging import lay_open, seal
from tests.unit.stacked.test_stacked import sample

BLIND = ac.StackedVotes(edge_blind=True, folds=2)
ANY_TIME = "Edges: at any time, training included."


def train(data, defence=BLIND, **settings):
    model = ac.build_model("mlp", data, hidden_channels=8, num_layers=2, out_channels=2)
    return ac.fit(model, data, defence, **{"epochs": 6, "evaluate_every": 2, **settings})


@pytest.fixture(scope="module")
def data():
    return sample()


@pytest.fixture(scope="module")
def trained(data):
    return train(data)


@pytest.fixture(scope="module")
def certificate(trained, data):
    return ac.certify(trained, data, BLIND, data.test_mask)


def other_edges(data):
    data.edge_index = torch.randint(data.num_nodes, (2, 900), generator=torch.Generator().manual_seed(5))
    data.edge_attr = data.edge_weight = None
    return data


def no_edges(data):
    data.edge_index = data.edge_index[:, :0]
    data.edge_attr = data.edge_weight = None
    return data


def other_nodes_without_a_label(data):
    unlabelled = ~(data.train_mask | data.val_mask)
    data.x = torch.where(unlabelled[:, None], 100 * data.x + 1, data.x)
    data.y = torch.where(unlabelled, 0, data.y)
    return data


def injected_nodes(data):
    more = 30
    data.x = torch.cat([data.x, 50 * torch.ones(more, data.num_features)])
    data.y = torch.cat([data.y, torch.full((more,), 2)])
    for name in ("train_mask", "val_mask", "test_mask"):
        setattr(data, name, torch.cat([getattr(data, name), torch.zeros(more, dtype=torch.bool)]))
    data.edge_index = torch.cat(
        [data.edge_index, torch.stack([torch.arange(more), len(data.y) - 1 - torch.arange(more)])], dim=1
    )
    data.edge_attr = data.edge_weight = None
    data.node_id = [*data.node_id, *(f"new {number}" for number in range(more))]
    return data


CHANGES = [other_edges, no_edges, other_nodes_without_a_label, injected_nodes]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_training_is_the_same_to_the_bit(change, protocol):
    before, after = train(sample(), protocol=protocol), train(change(sample()), protocol=protocol)
    weights, others = before.state_dict(), after.state_dict()
    assert list(weights) == list(others)
    assert all(torch.equal(weights[name], others[name]) for name in weights)


def test_trained_votes_are_not_the_same():
    """What the option is for: the usual training reads edges."""
    usual = ac.StackedVotes(folds=2, epochs=60)
    before, after = (train(data, usual, epochs=15, patience=None) for data in (sample(), other_edges(sample())))
    weights, others = before.state_dict(), after.state_dict()
    assert not all(torch.equal(weights[name], others[name]) for name in weights)


def test_scores_are_log_probabilities_and_votes_of_neighbours(trained, data, certificate):
    logits = trained.own_logits(data.x).detach()
    temperature = trained.training_record["temperature"]
    score = temperature / BLIND.vote_weight * logits
    votes = torch.softmax(SHARP * logits.double(), dim=1)  # nearly one vote for the likeliest class
    pairs = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    pairs = torch.unique(pairs[:, pairs[0] != pairs[1]], dim=1)
    total = torch.zeros_like(votes).index_add(0, pairs[0], votes[pairs[1]])
    by_hand = (score.double() + total)[data.test_mask].numpy()
    assert np.abs(certificate.counts / 2**16 - by_hand).max() < 1e-3
    assert np.array_equal(certificate.label, by_hand.argmax(axis=1))
    assert 0 < certificate.holds_against(ac.Budget(add_edges=2)).mean() < 1


def test_the_claim_says_it_in_its_first_lines_and_others_say_that_training_is_trusted(certificate, data):
    assert str(certificate.claim).splitlines()[2].strip().startswith(f"- {ANY_TIME}")
    assert "training data are trusted" not in str(certificate.claim)
    usual = ac.certify(train(data, ac.StackedVotes(folds=2)), data, ac.StackedVotes(folds=2), data.test_mask)
    assert str(usual.claim).splitlines()[2].strip().startswith("- The training data are trusted")
    assert ANY_TIME not in str(usual.claim)


def test_it_is_saved_verified_and_compared(certificate, trained, data, tmp_path):
    certificate.save(tmp_path / "blind.cert")
    assert ac.verify(tmp_path / "blind.cert").holds
    verdict = ac.verify(tmp_path / "blind.cert", data=data, model=trained)
    assert verdict.holds, verdict
    ac.save_model(trained, tmp_path / "blind")
    again = ac.load_model(tmp_path / "blind")
    assert again.defence == trained.defence
    assert np.array_equal(ac.certify(again, data, BLIND, data.test_mask).radius, certificate.radius)


def test_a_file_that_says_any_time_without_saying_that_training_read_no_edge_is_refused(certificate, data, tmp_path):
    certificate.save(tmp_path / "blind.cert")
    draft = lay_open(tmp_path / "blind.cert")
    del draft.settings["edge_blind"]
    assert seal(draft, tmp_path / "forged.cert")
    verdict = ac.verify(tmp_path / "forged.cert")
    assert not verdict.holds
    assert '"assumes" is not what its evidence allows it to say' in str(verdict)


def test_a_file_of_trained_votes_that_says_it_is_blind_is_refuted_by_the_model(data, tmp_path):
    defence = ac.StackedVotes(folds=2)
    model = train(data, defence)
    certificate = ac.certify(model, data, defence, data.test_mask)
    certificate.save(tmp_path / "usual.cert")
    contents = read_contents(tmp_path / "usual.cert")
    record = StackedRecord.load(contents.evidence, {**contents.settings, "edge_blind": True})
    from agnncert.stacked.claim import make_stacked_claim
    from agnncert.stacked.evidence import StackedEvidence

    evidence = StackedEvidence(**{**record.tensors(), **record.settings()})
    claim = make_stacked_claim(
        evidence, locality=certificate.claim.locality, digests=certificate.claim.digests, notes=certificate.claim.notes
    )
    forged = ac.Certificate(claim, evidence, certificate.target, certificate.row, certificate.truth, certificate.degree)
    forged.save(tmp_path / "forged.cert")
    assert ac.verify(tmp_path / "forged.cert").holds  # nothing in the numbers shows it
    verdict = ac.verify(tmp_path / "forged.cert", data=data, model=model)
    assert not verdict.holds
    assert "edge_blind is True, the model says False" in str(verdict)


@pytest.mark.parametrize("name", ["vote_scale", "abstain", "constant", "vote_net.0.weight"])
def test_a_model_with_a_weight_that_is_not_set_by_rule_is_refused(trained, data, name):
    import copy

    altered = copy.deepcopy(trained)
    with torch.no_grad():
        dict(altered.named_parameters())[name].add_(0.5)
    assert wrong_blind_votes(altered) == [name]
    with pytest.raises(ModelContractError, match=rf"without reading edges, but {name}"):
        ac.certify(altered, data, BLIND, data.test_mask)


def test_the_rule_sets_everything_on_top():
    trained = train(sample())
    assert wrong_blind_votes(trained) == []
    set_blind_votes(trained, 2.0)
    assert wrong_blind_votes(trained) == []


def test_degrees_among_the_features_are_refused():
    data = sample()
    degree = torch.bincount(data.edge_index[1], minlength=data.num_nodes).float()
    data.x = torch.cat([data.x, degree[:, None]], dim=1)
    with pytest.raises(DatasetError, match="features were computed from the edges"):
        train(data)


def test_means_over_neighbours_among_the_features_are_refused():
    data = sample()
    source, head = data.edge_index
    total = torch.zeros_like(data.x).index_add(0, head, data.x[source])
    data.x = torch.cat([data.x, total], dim=1)
    with pytest.raises(DatasetError, match="features were computed from the edges"):
        train(data)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"levels": 2}, "edge_blind=True goes with"),
        ({"gated": True}, "edge_blind=True goes with"),
        ({"edge_values": True}, "edge_blind=True goes with"),
        ({"trusted": 0}, "edge_blind=True goes with"),
        ({"combine": "mean"}, "edge_blind=True goes with"),
        ({"vote_weight": 0}, "expected a number from"),
        ({"vote_weight": float("nan")}, "expected a number from"),
        ({"vote_weight": True}, "expected a number from"),
    ],
)
def test_settings_that_would_read_edges_are_refused(settings, said):
    with pytest.raises(SettingsError, match=said):
        ac.StackedVotes(edge_blind=True, **settings)
    with pytest.raises(SettingsError, match="expected True or False"):
        ac.StackedVotes(edge_blind=1)


def test_taught_labels_thresholds_and_no_model_are_refused(trained, data):
    with pytest.raises(SettingsError, match="needs a model on features"):
        ac.fit(None, sample(edge_values=True), BLIND, epochs=2)
    with pytest.raises(SettingsError, match="a threshold would be chosen by the scores"):
        ac.choose_threshold(trained, data, BLIND, alerts=3)
    partly = sample()
    partly.test_mask = partly.test_mask & (torch.arange(partly.num_nodes) % 2 == 0)
    taught = ac.teach(partly, "gcn", epochs=2)
    with pytest.raises(SettingsError, match="given by a teacher that read edges"):
        train(taught)


def test_a_file_that_is_blind_and_gated_makes_no_sense(certificate):
    evidence = certificate.evidence
    for wrong in ({"gated": True}, {"second": 5}, {"edge_blind": "yes"}):
        with pytest.raises(CertificateError):
            StackedRecord.load(evidence.tensors(), {**evidence.settings(), **wrong})
