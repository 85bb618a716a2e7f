"""A teacher labels the training graph: what is taught, what is refused, and where it is recorded."""

import json
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.taught import given_rows
from agnncert.datasets.teaching_record import NOTE_BEGINS
from agnncert.errors import DatasetError, ModelContractError, SettingsError
from agnncert.models.io import load_description
from agnncert.stacked import training as stacked_training
from tests.support.labelled import labelled_graph, labelled_graphs

QUICK = {"epochs": 20, "patience": None, "evaluate_every": 5}


def few_labels(num_nodes: int = 120):
    """A graph with 15 training, 15 validation and 30 test nodes; all others are in no part."""
    data = labelled_graph(num_nodes, noise=1.5, dtype=torch.float32)
    part = torch.arange(num_nodes)
    data.train_mask = part < 15
    data.val_mask = (part >= 15) & (part < 30)
    data.test_mask = (part >= 30) & (part < 60)
    return data


@cache
def taught_once():
    data = few_labels()
    return data, ac.teach(data, "gcn", members=2, **QUICK)


def mlp(data):
    return ac.build_model("mlp", data, hidden_channels=8, num_layers=2)


class WithLogits(nn.Module):
    """A teacher whose logits are given, whatever the graph."""

    def __init__(self, logits) -> None:
        super().__init__()
        self.register_buffer("logits", logits)

    def forward(self, x, edge_index):
        return self.logits[:1].expand(x.size(0), -1).clone()


def test_unlabelled_nodes_that_training_sees_are_taught_and_no_others() -> None:
    data, taught = taught_once()
    in_no_part = ~(data.train_mask | data.val_mask | data.test_mask)
    assert torch.equal(taught.taught_mask, in_no_part)
    assert torch.equal(taught.train_mask, data.train_mask | in_no_part)
    assert torch.equal(taught.y[~in_no_part], data.y[~in_no_part])
    assert torch.equal(taught.test_mask, data.test_mask)
    assert torch.equal(given_rows(taught), data.train_mask.nonzero().view(-1))


def test_the_true_labels_of_taught_nodes_play_no_part() -> None:
    data, taught = taught_once()
    blind = data.clone()
    blind.y = torch.where(data.train_mask | data.val_mask, data.y, -1)
    again = ac.teach(blind, "gcn", members=2, **QUICK)
    assert torch.equal(again.y[again.taught_mask], taught.y[taught.taught_mask])


def test_what_is_said_about_test_and_validation_nodes_changes_no_taught_label() -> None:
    data, taught = taught_once()
    hidden = data.val_mask | data.test_mask
    altered = data.clone()
    altered.x = data.x + 50.0 * data.test_mask[:, None]
    altered.edge_index = torch.cat(
        [data.edge_index, data.edge_index.new_tensor([[40, 70, 40, 80], [70, 40, 80, 40]])], 1
    )
    again = ac.teach(altered, "gcn", members=2, **QUICK)
    assert bool(hidden[40])
    assert torch.equal(again.y[again.taught_mask], taught.y[taught.taught_mask])


def test_the_data_given_stays_as_it_was() -> None:
    data = few_labels()
    before = ac.dataset_digest(data)
    taught = ac.teach(data, "gcn", members=1, **QUICK)
    assert ac.dataset_digest(data) == before == taught.teaching.data != ac.dataset_digest(taught)
    assert "teaching" not in data


def test_members_are_averaged_and_have_different_weights() -> None:
    _, taught = taught_once()
    assert len(set(taught.teaching.weights)) == 2


def test_a_teacher_that_was_trained_before_teaches_the_same() -> None:
    data, taught = taught_once()
    settings = {"lr": 0.01, **QUICK, "protocol": "held-out"}
    recipe = {"num_layers": 2, "dropout": 0.2, "norm": "layer_norm"}
    members = [
        ac.fit(ac.build_model("gcn", data, seed=k, **recipe), data, None, weight_decay=5e-4, seed=k, **settings)
        for k in range(2)
    ]
    again = ac.teach(data, members)
    assert again.teaching.weights == taught.teaching.weights
    assert torch.equal(again.y, taught.y)
    assert again.teaching.settings == {}
    alone = ac.teach(data, members[0])  # it says that it is trained
    assert alone.teaching.weights == taught.teaching.weights[:1]


def test_an_untrained_module_is_trained_members_times() -> None:
    data = few_labels()
    model = ac.build_model("sage", data, hidden_channels=8, num_layers=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    taught = ac.teach(data, model, members=2, **QUICK)
    assert taught.teaching.teacher == "sage"
    assert len(set(taught.teaching.weights)) == 2
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_edges_that_the_teacher_read_are_counted_as_pairs() -> None:
    data, taught = taught_once()
    seen = ~(data.test_mask | data.val_mask)
    pairs = {tuple(sorted(pair)) for pair in data.edge_index.t().tolist() if seen[pair[0]] and seen[pair[1]]}
    assert taught.teaching.num_edges == len(pairs)
    looped = data.clone()
    loops = seen.nonzero().view(1, -1).expand(2, -1)
    looped.edge_index = torch.cat([data.edge_index, loops], dim=1)  # an edge of a node with itself joins no pair
    assert ac.teach(looped, "gcn", members=1, epochs=1).teaching.num_edges == len(pairs)
    without = ac.teach(data, "mlp", members=1, **QUICK)
    assert without.teaching.num_edges == 0
    assert without.teaching.accuracy_without_edges is None


@pytest.mark.parametrize(
    "defence", [None, ac.NodeCentric(5), ac.PerNeighbour(), ac.StackedVotes(size=1, folds=2, epochs=20)], ids=str
)
def test_every_defence_can_be_taught_and_says_so(defence, tmp_path) -> None:
    data, taught = taught_once()
    base = "mlp" if isinstance(defence, ac.StackedVotes) else "gcn"
    model = ac.build_model(base, taught, hidden_channels=8, num_layers=2)
    model = ac.fit(model, taught, defence, **QUICK)
    assert model.training_record["teaching"] == taught.teaching.to_json()
    if defence is None:
        return
    certificate = ac.certify(model, data, defence, data.test_mask)
    assert certificate.claim.notes[-1] == taught.teaching.note
    assert "Training data are trusted" in str(certificate.claim)
    file = tmp_path / "a.cert"
    certificate.save(file)
    verdict = ac.verify(file, data=data, model=model)
    assert verdict
    assert "what the claim says about the teacher" in verdict.checked
    assert not any("the notes that the author added" in what for what in verdict.not_checked)


def test_a_smoothing_defence_can_be_taught_and_says_so(tmp_path) -> None:
    data, taught = taught_once()
    defence = ac.baselines.BiRS(samples=200)
    model = ac.build_model("gcn", taught, hidden_channels=8, num_layers=2)
    model = ac.fit(model, taught, defence, **QUICK)
    certificate = ac.certify(model, data, defence, data.test_mask)
    assert certificate.claim.notes[-1] == taught.teaching.note
    certificate.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert", data=data, model=model, recheck=1)


def test_a_claim_that_hides_or_alters_the_teacher_is_refused(tmp_path) -> None:
    data, taught = taught_once()
    model = ac.fit(ac.build_model("gcn", taught, hidden_channels=8), taught, ac.NodeCentric(5), **QUICK)
    certificate = ac.certify(model, data, ac.NodeCentric(5), data.test_mask)
    for notes in ((), (taught.teaching.note.replace("gcn", "mlp"),)):
        replace(certificate, claim=replace(certificate.claim, notes=notes)).save(tmp_path / "b.cert")
        verdict = ac.verify(tmp_path / "b.cert", data=data, model=model)
        assert not verdict
        assert "learnt from a teacher" in verdict.reasons[0]
        assert ac.verify(tmp_path / "b.cert")  # the file alone cannot tell


def test_what_nobody_can_compare_is_said(tmp_path) -> None:
    data, taught = taught_once()
    model = ac.fit(ac.build_model("gcn", taught, hidden_channels=8), taught, ac.NodeCentric(5), **QUICK)
    ac.certify(model, data, ac.NodeCentric(5), data.test_mask).save(tmp_path / "a.cert")
    del model.training_record
    verdict = ac.verify(tmp_path / "a.cert", data=data, model=model)
    assert verdict
    assert any("says about a teacher" in text for text in verdict.not_checked)


def test_a_saved_model_remembers_its_teacher(tmp_path) -> None:
    data, taught = taught_once()
    model = ac.fit(mlp(taught), taught, ac.StackedVotes(size=1, folds=2, epochs=10), **QUICK)
    file = ac.save_model(model, tmp_path / "model")
    stored = load_description(file)["provenance"]["training"]["teaching"]
    assert stored == json.loads(json.dumps(taught.teaching.to_json()))
    loaded = ac.load_model(file)
    certificate = ac.certify(loaded, data, loaded.defence, data.test_mask)
    assert certificate.claim.notes[-1] == taught.teaching.note


def test_labels_of_a_teacher_are_no_truth_to_certify_against() -> None:
    data, taught = taught_once()
    division = ac.NodeCentric(5)
    model = ac.fit(ac.build_model("gcn", taught, hidden_channels=8), taught, division, **QUICK)
    for targets in (None, taught.taught_mask, taught.train_mask, [59, 60]):
        with pytest.raises(DatasetError, match="a label that the teacher gave them"):
            ac.certify(model, taught, division, targets)
    certificate = ac.certify(model, taught, division, taught.test_mask)
    assert (certificate.truth == data.y[data.test_mask].numpy()).all()


def test_students_do_not_see_test_nodes_unless_somebody_insists_in_vain() -> None:
    _, taught = taught_once()
    model = ac.fit(mlp(taught), taught, **QUICK)
    assert model.training_record["protocol"] == "held-out"
    assert ac.fit(mlp(taught), taught, protocol="inductive", **QUICK).training_record["protocol"] == "inductive"
    with pytest.raises(SettingsError, match="would see the test nodes"):
        ac.fit(mlp(taught), taught, protocol="transductive", **QUICK)


def test_transductive_teaching_is_refused_before_anything_else() -> None:
    with pytest.raises(SettingsError, match="the student would memorise"):
        ac.teach(labelled_graphs(), "gcn", protocol="transductive")


def all_but_one_in_a_part():
    """As in published splits of Cora: 60 training nodes, and one node in no part."""
    data = few_labels()
    part = torch.arange(data.num_nodes)
    data.train_mask = part < 60
    data.val_mask = (part >= 60) & (part < 70)
    data.test_mask = (part >= 70) & (part < 119)
    return data


def test_where_nearly_every_node_is_in_a_part_the_targets_can_be_named() -> None:
    data = all_but_one_in_a_part()
    with pytest.raises(DatasetError, match=r"1 of 120 nodes are left to teach.*49 test nodes, name them"):
        ac.teach(data, "gcn", **QUICK)
    targets = torch.arange(70, 80)
    unread = data.clone()
    unread.y = torch.where(data.test_mask, 2 - data.y, data.y)
    taught, again = (ac.teach(each, "gcn", targets=targets, members=1, **QUICK) for each in (data, unread))
    assert torch.equal(taught.test_mask.nonzero().view(-1), targets)
    assert int(taught.taught_mask.sum()) == 40  # 39 other test nodes, and the one in no part
    assert torch.equal(taught.y[taught.taught_mask], again.y[taught.taught_mask]), "true labels of others were read"
    assert (taught.teaching.num_targets, taught.teaching.num_others) == (10, 39)
    assert "39 of the nodes that it labelled are test nodes whose own labels were not read" in taught.teaching.note


def test_a_certificate_of_taught_test_nodes_warns(caplog) -> None:
    data = all_but_one_in_a_part()
    taught = ac.teach(data, "gcn", targets=torch.arange(70, 80), members=1, **QUICK)
    model = ac.fit(mlp(taught), taught, None, **QUICK)
    ac.certify(model, data, ac.PerNeighbour(), torch.arange(70, 80))
    assert "repeat the teacher" not in caplog.text
    ac.certify(model, data, ac.PerNeighbour(), data.test_mask)
    assert "only 10 were hidden from it" in caplog.text


def without_test_nodes():
    data = few_labels()
    del data.test_mask
    return data


def without_unlabelled():
    return labelled_graph()


@pytest.mark.parametrize(
    ("make", "options", "error", "words"),
    [
        (without_unlabelled, {}, DatasetError, "no node is left to teach"),
        (without_test_nodes, {}, SettingsError, "no test_mask"),
        (lambda: taught_once()[1], {}, SettingsError, "taught already"),
        (labelled_graphs, {}, SettingsError, "nodes of one graph"),
        (few_labels, {"protocol": "heldout"}, SettingsError, "held-out"),
        (few_labels, {"targets": [0, 40]}, SettingsError, "1 of them are no test nodes"),
        (few_labels, {"targets": []}, SettingsError, "there are none"),
        (few_labels, {"members": 0}, SettingsError, "members=0"),
        (few_labels, {"teacher": []}, SettingsError, "at least one trained model"),
        (few_labels, {"teacher": [3]}, ModelContractError, "a int cannot teach"),
        (few_labels, {"teacher": "gnc"}, SettingsError, "gcn"),
        (few_labels, {"epoch": 3}, SettingsError, "epochs"),
        (few_labels, {"teacher": [WithLogits(torch.zeros(1, 2))]}, ModelContractError, "2 classes, the data 3"),
        (few_labels, {"teacher": [WithLogits(torch.full((1, 3), torch.nan))]}, ModelContractError, "NaN"),
        (few_labels, {"teacher": [WithLogits(torch.zeros(1, 3))], "lr": 1.0}, SettingsError, "trained already"),
    ],
)
def test_what_cannot_be_taught_is_refused_in_words(make, options, error, words) -> None:
    with pytest.raises(error, match=words):
        ac.teach(make(), **options)


def test_a_teacher_that_has_seen_test_nodes_or_another_split_is_refused() -> None:
    data = few_labels()
    gcn = ac.build_model("gcn", data, hidden_channels=8)
    with pytest.raises(SettingsError, match="it has seen the test nodes"):
        ac.teach(data, ac.fit(gcn, data, None, **QUICK))
    other = data.clone()
    other.train_mask, other.test_mask = data.test_mask, data.train_mask
    gcn = ac.build_model("gcn", data, hidden_channels=8)
    with pytest.raises(SettingsError, match="other data, or on another split"):
        ac.teach(data, ac.fit(gcn, other, None, protocol="held-out", **QUICK))


def test_warnings_name_an_absent_class_and_a_teacher_that_edges_did_not_help(caplog) -> None:
    data = few_labels()
    with caplog.at_level("WARNING", logger="agnncert"):
        ac.teach(data, [WithLogits(torch.tensor([[2.0, 1.0, 0.0]]))])
    assert "gave no node the class 1, 2" in caplog.text
    assert "edges have nothing to teach here" in caplog.text
    assert "nothing says how this WithLogits was trained" in caplog.text
    caplog.clear()
    with caplog.at_level("WARNING", logger="agnncert"):
        ac.teach(data, "gcn", members=1, epochs=60)
    assert "teach" not in caplog.text


def test_an_interrupted_call_goes_on_where_it_stopped(tmp_path) -> None:
    data, taught = taught_once()
    file = tmp_path / "teacher.checkpoint"
    trained = []

    def stop(step) -> None:
        trained.append(step.what)
        if step.what == "teacher 2 of 2" and step.done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ac.teach(data, "gcn", members=2, checkpoint=file, progress=stop, **QUICK)
    assert trained.count("teacher 1 of 2") == 20
    trained.clear()
    again = ac.teach(data, "gcn", members=2, checkpoint=file, progress=lambda step: trained.append(step.what), **QUICK)
    assert trained.count("teacher 1 of 2") == 0
    assert trained.count("teacher 2 of 2") == 10
    assert trained.count("model without edges 2 of 2") == 20
    assert again.teaching.weights == taught.teaching.weights
    assert torch.equal(again.y, taught.y)


def test_labels_of_a_teacher_do_not_decide_between_votes_and_none() -> None:
    data, taught = taught_once()
    train, val = (mask.nonzero().view(-1) for mask in (taught.train_mask, taught.val_mask))
    keepers, judges = stacked_training._validation_parts(taught, train, val)
    assert keepers.tolist() == val.tolist()
    assert judges.tolist() == [*range(15), *range(15, 30)]
    assert not taught.taught_mask[judges].any()
    plain = stacked_training._validation_parts(data, train[:15], val)
    assert plain[1].tolist() == judges.tolist()


def test_with_many_validation_nodes_weights_and_choices_rest_on_different_ones() -> None:
    _, taught = taught_once()
    train = taught.train_mask.nonzero().view(-1)
    val = torch.arange(stacked_training.ENOUGH_TO_SPLIT)
    keepers, judges = stacked_training._validation_parts(taught, train, val)
    given = len(given_rows(taught))
    assert not set(keepers.tolist()) & set(judges[given:].tolist())
    assert len(keepers) + len(judges) - given == len(val)


def test_the_note_begins_as_verifiers_look_for_it() -> None:
    assert taught_once()[1].teaching.note.startswith(NOTE_BEGINS)


class SaysFeatures(nn.Module):
    """A teacher whose logits are the first columns of the features, times a factor."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x, edge_index):
        return self.factor * x[:, :3]


def unequal_classes(sure: float = 1.0, num_nodes: int = 4000):
    """Given labels are equally many in three classes; of the others 90 % have class 0. Features are log odds.

    The features of a node of class c are ``sure`` times its log probability of each class, with equal shares of classes.
    """
    generator = torch.Generator().manual_seed(0)
    part = torch.arange(num_nodes)
    labelled = part < 600
    skewed = torch.multinomial(torch.tensor([0.9, 0.05, 0.05]), num_nodes, replacement=True, generator=generator)
    y = torch.where(labelled, part % 3, skewed)
    seen = 1.5 * torch.eye(3)[y] + torch.randn((num_nodes, 3), generator=generator)
    data = Data(x=sure * 1.5 * seen, edge_index=torch.tensor([[0, 1], [1, 0]]), y=y)
    data.train_mask = part < 300
    data.val_mask = labelled & ~data.train_mask
    data.test_mask = (part >= 600) & (part < 610)
    return data


def share_right(data, taught) -> float:
    return float((taught.y == data.y)[taught.taught_mask].double().mean())


@pytest.mark.parametrize("sure", [1.0, 0.2, 5.0])
def test_predicted_shares_make_more_taught_labels_right_where_classes_are_unequal(sure) -> None:
    data = unequal_classes(sure)
    as_given = ac.teach(data, [SaysFeatures()])
    as_predicted = ac.teach(data, [SaysFeatures()], class_shares="predicted")
    assert as_given.teaching.class_shares == "given"
    assert as_predicted.teaching.class_shares == "predicted"
    assert share_right(data, as_predicted) > share_right(data, as_given) + 0.1
    assert as_predicted.teaching.accuracy == as_given.teaching.accuracy
    assert min(as_predicted.teaching.taught_by_class) > 0


def test_predicted_shares_are_those_of_bayes_rule() -> None:
    data = unequal_classes()
    taught = ac.teach(data, [SaysFeatures()], class_shares="predicted")
    log_probability = data.x[taught.taught_mask].double().log_softmax(dim=1)
    share = torch.bincount(log_probability.argmax(dim=1), minlength=3) + 1
    expected = (log_probability + share.log()).argmax(dim=1)
    # The teacher is as sure as it is right, so its temperature is about 1.
    assert (taught.y[taught.taught_mask] == expected).double().mean() > 0.98


def test_shares_count_relative_to_those_of_the_teachers_loss() -> None:
    data = unequal_classes()
    data.train_mask &= (data.y == 0) | (torch.arange(len(data.y)) < 60)  # 100 of class 0, 20 of the others
    teacher = SaysFeatures()
    given = ac.teach(data, [teacher], class_shares="predicted").teaching.taught_by_class
    teacher.training_record = {"balance_classes": True}
    balanced = ac.teach(data, [teacher], class_shares="predicted").teaching.taught_by_class
    assert given[0] < balanced[0]


def test_no_true_label_of_a_taught_node_decides_about_shares() -> None:
    data = unequal_classes()
    blind = data.clone()
    blind.y = torch.where(data.train_mask | data.val_mask, data.y, -1)
    taught, again = (ac.teach(one, [SaysFeatures()], class_shares="predicted") for one in (data, blind))
    assert torch.equal(taught.y[taught.taught_mask], again.y[again.taught_mask])


def test_other_class_shares_are_refused() -> None:
    with pytest.raises(SettingsError, match=r'class_shares="predictd".*predicted'):
        ac.teach(few_labels(), "gcn", class_shares="predictd")
