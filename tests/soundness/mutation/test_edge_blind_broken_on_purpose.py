"""Leaks of edges into training that is said to read none, and guards that are left out: each must be noticed."""

import agnncert as ac
from agnncert import recipes
from agnncert.auditing import edge_features
from agnncert.errors import SettingsError
from agnncert.stacked import claim, counting, defence, record, training
from tests.soundness.laws import test_edge_blind as laws
from tests.soundness.laws import test_what_blind_training_reads as reads
from tests.support.mutations import each_mistake
from tests.unit.stacked import test_edge_blind as blind


def same_training():
    blind.test_training_is_the_same_to_the_bit(blind.other_edges, "transductive")


def same_training_with_more_nodes():
    blind.test_training_is_the_same_to_the_bit(blind.injected_nodes, "inductive")


def by_name():
    reads.test_models_by_name_are_the_same_to_the_bit_whatever_the_rest_of_the_graph_is("mlp")


def sized():
    """Notices it in either of two ways: other models differ, or are refused."""
    try:
        by_name()
    except SettingsError as error:
        raise AssertionError from error


def recipes_read():
    reads.test_recipes_read_labelled_nodes_only(reads.WORLDS["so many nodes that other graphs get another recipe"])


def counted_classes():
    reads.test_a_model_whose_classes_an_unlabelled_node_may_have_decided_is_refused()


def claim_says_it():
    data = blind.sample()
    certificate = ac.certify(blind.train(data), data, blind.BLIND, data.test_mask)
    blind.test_the_claim_says_it_in_its_first_lines_and_others_say_that_training_is_trusted(certificate, data)


def a_trained_weight_is_refused():
    data = blind.sample()
    blind.test_a_model_with_a_weight_that_is_not_set_by_rule_is_refused(blind.train(data), data, "vote_scale")


DEGREE = "torch.bincount(data.edge_index[1], minlength=data.num_nodes)"
BROKEN = [
    ("degrees scale the features", same_training, training, "        x=data.x[rows],", f"        x=data.x[rows] / (1 + {DEGREE}[rows, None]),"),
    ("edges decide on the temperature", same_training, training, "    set_blind_votes(blind, temperature)", "    set_blind_votes(blind, temperature * (1 + data.num_edges / 1000))"),
    ("training nodes with few edges are left out", same_training, training, "labelled = data.train_mask.bool() | data.val_mask.bool()", f"labelled = (data.train_mask & ({DEGREE} > 3)) | data.val_mask"),
    ("all nodes decide on classes", same_training_with_more_nodes, training, "StackedModel(own, out_of_fold.size(1), 0, defence.for_rows(0))", "StackedModel(own, count_classes(data), 0, defence.for_rows(0))"),
    ("votes are trained on edges", same_training, training, "    if defence.edge_blind:\n        return fit_edge_blind(", "    if defence.edge_blind and data.num_edges < 950:\n        return fit_edge_blind("),
    ("all nodes decide on the recipe", recipes_read, recipes, "        data = defence.trusted_in_training(data)", "        defence.trusted_in_training(data)"),
    ("all nodes decide on the size of the model", sized, recipes, "return data if trusted is None else trusted", "return data"),
    ("rows decide on the folds", by_name, training, "sorted(rows.tolist(), key=lambda row: order_of(listed[row]))", "rows.tolist()"),
    ("classes are counted in all labels", counted_classes, defence, "    if of_model in (None, num_classes):", "    if True:"),
    ("features of edges are taken", blind.test_degrees_among_the_features_are_refused, edge_features, "    if found:\n        listed", "    if found and False:\n        listed"),
    ("trained weights are taken", a_trained_weight_is_refused, defence, "    _require_blind_votes(model)\n", ""),
    ("the file does not say it", claim_says_it, counting, "model.defence.edge_blind,", "False,"),
    ("every file says it", claim_says_it, counting, "model.defence.edge_blind,", "model.defence.combine == 'sum',"),
    ("the claim does not say it", claim_says_it, claim, "EDGE_BLIND_PREMISES if record.edge_blind else PREMISES", "PREMISES"),
    ("a gated file may be blind", lambda: blind.test_a_file_that_is_blind_and_gated_makes_no_sense(_certificate()), record, "trained_on_edges = self.gated or", "trained_on_edges = False and self.gated or"),
    ("a label follows edges before training", laws.test_no_edge_that_is_changed_before_training_changes_a_certified_label, training, "    set_blind_votes(blind, temperature)", "    set_blind_votes(blind, temperature * (0.2 + (data.num_edges % 7)))"),
]  # fmt: skip


def _certificate():
    data = blind.sample()
    return ac.certify(blind.train(data), data, blind.BLIND, data.test_mask)


@each_mistake(BROKEN)
def test_a_leak_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
