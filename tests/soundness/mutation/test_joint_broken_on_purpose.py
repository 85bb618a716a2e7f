"""Mistakes in votes of labels and neighbours, each of which a law or a test must notice."""

import numpy as np
import pytest

import agnncert as ac
from agnncert.errors import AgnncertError
from agnncert.labels import defence, joint_evidence, joint_record, model, settings, vectors
from agnncert.verifier import check_joint, recount_joint
from tests.soundness.golden.examples import EXAMPLES
from tests.soundness.laws import test_labels_and_edges as laws
from tests.soundness.mutation.golden_forgeries import is_refused, is_refused_with_the_graph, with_evidence
from tests.support.mutations import each_mistake
from tests.unit.labels import test_labels_and_edges as units


def both():
    laws.look_for_a_broken_label(1, 1, 1, rounds=400)


def one_label():
    laws.look_for_a_broken_label(1, 0, 0, rounds=400)


def one_more():
    laws.look_for_a_broken_label(0, 1, 0, rounds=400)


def one_less():
    laws.look_for_a_broken_label(0, 0, 1, rounds=400)


def mixes():
    laws.test_no_mix_of_as_many_changes_as_the_radius_changes_a_label()


def priced():
    laws.test_no_attack_is_cheaper_than_stated()


def priced_by_labels():
    laws.test_if_neighbours_have_no_weight_the_price_is_the_number_of_labels()


def priced_exactly():
    laws.test_if_each_change_costs_one_the_price_is_the_number_of_changes()


def overtaken():
    laws.look_for_an_overtaken_leader(1, 1, 1, rounds=150)


def led_twice():
    laws.test_prover_and_recount_agree_of_which_classes_any_class_stays_ahead()


def derive_twice():
    laws.test_prover_and_recount_agree()


def digits():
    return ac.load_dataset("digits-knn", split="by-id")


def made(data):
    fitted = ac.fit(None, data, ac.LabelVotes(neighbour_votes=2))
    return fitted, ac.certify(fitted, data, fitted.defence, data.test_mask)


def no_edge_in_weights():
    data = digits()
    units.test_no_edge_and_no_label_enters_the_weights(data, made(data))


def same_for_all_targets():
    data = digits()
    units.test_a_weight_does_not_depend_on_which_nodes_are_targets(data, made(data))


def refuses_nodes_with_labels():
    with pytest.raises(AgnncertError):
        EXAMPLES["joint-any"].certify().holds_against(ac.Budget(flip_labels=1, inject_nodes=1))


def refuses_added_labels():
    with pytest.raises(AgnncertError):
        EXAMPLES["joint-flips"].certify().holds_against(ac.Budget(add_labels=1, add_edges=1))


def nodes_are_not_covered():
    assert not EXAMPLES["joint-any"].certify().holds_against(ac.Budget(inject_nodes=1)).any()


def own_features_are_not_covered():
    assert not EXAMPLES["joint-any"].certify().holds_against(ac.Budget(target_features=True)).any()


def leaks():
    units.test_features_that_were_computed_from_edges_are_refused(digits())


def boxed():
    units.test_settings_that_make_no_sense_are_refused("a box")


def own_neighbour():
    units.test_records_that_make_no_sense_are_refused("its own neighbour")


def named_twice():
    units.test_records_that_make_no_sense_are_refused("a neighbour that is named twice")


def abstaining():
    units.test_neighbours_that_abstain_are_refused()


def other_settings(folder):
    data = digits()
    units.test_a_file_with_other_settings_than_those_of_the_model_is_refused(
        "neighbour_steps", 0, data, made(data), folder
    )


def foreign_budget(draft):
    assert draft.header["statements"][0]["budget"] == {"flip_labels": 1}
    draft.header["statements"][0]["budget"] = {"add_labels": 1}


def nodes_and_labels(draft):
    draft.header["statements"][0] = {
        "budget": {"flip_labels": 1, "delete_nodes": 1},
        "broken_at_most": draft.num_targets,
    }
    draft.arrays["holds"][0] = False


NOBODYS_OWN = with_evidence("joint-any", own=lambda evidence: np.full_like(evidence.voters.own, -1))
OTHER_TARGETS = with_evidence(
    "joint-flips",
    target=lambda evidence: evidence.target[::-1].copy(),
    indptr=lambda evidence: np.concatenate([[0], np.diff(evidence.indptr)[::-1].cumsum()]),
    neighbour=lambda evidence: np.concatenate(np.split(evidence.neighbour, evidence.indptr[1:-1])[::-1]),
)
NO_NEIGHBOUR = with_evidence(
    "joint-flips", indptr=lambda evidence: 0 * evidence.indptr, neighbour=lambda evidence: evidence.neighbour[:0]
)
OTHER_CAPS = with_evidence("joint-flips", cap=lambda evidence: evidence.voters.cap * 2)

PROVER = [
    ("a tie is won by the label", both, joint_evidence, "best - scores - wins_tie - (", "best - scores - ("),
    ("changed labels cost nothing", one_label, joint_evidence, "self.lead - self.costs.largest(labels)", "self.lead - self.costs.largest(0)"),
    ("one label less is changed", one_label, joint_evidence, "self.costs.largest(labels)", "self.costs.largest(max(labels - 1, 0))"),
    ("neighbours keep their votes", one_label, joint_evidence, "steady = self.fewest > labels", "steady = self.fewest > -1"),
    ("a neighbour withstands one label more", one_label, joint_evidence, "steady = self.fewest > labels", "steady = self.fewest >= labels"),
    ("neighbours that may change are lost, and not against the label", one_label, joint_evidence, "(for_label - votes - unsteady[:, None])", "(for_label - votes)"),
    ("votes for the rival are forgotten", one_more, joint_evidence, "(for_label - votes - unsteady[:, None])", "(for_label - unsteady[:, None])"),
    ("new neighbours are free", one_more, joint_evidence, "each * (added + lost)[:, None]", "each * lost[:, None]"),
    ("lost neighbours are free", one_less, joint_evidence, "lost = np.minimum(deleted, self.for_label)", "lost = 0 * self.for_label"),
    ("an edge takes half a vote", one_more, joint_evidence, "each * (added + lost)[:, None]", "each * (added + lost)[:, None] // 2"),
    ("edges take one vote less", one_more, joint_evidence, "each * (added + lost)[:, None]", "each * np.maximum(added + lost - 1, 0)[:, None]"),
    ("an abstention asks for nothing", both, joint_evidence, "(self.least_lead if leader is None else 0)", "0"),
    ("every class is as far ahead as the label", overtaken, joint_evidence, "label = self.leaders(numbers, leader)", "label = self._labels[numbers]"),
    ("another class than the label has to be ahead by as much as it", led_twice, joint_evidence, "(self.least_lead if leader is None else 0)", "self.least_lead"),
    ("what is kept of the label is another class's", overtaken, joint_evidence, "if leader is None else self._new_block(rows, leader)", "if True else 0"),
    ("the radius forgets edges", derive_twice, joint_evidence, "edges = np.where(lead < 0, 0, lead // self.each + 1)", "edges = np.where(lead < 0, 0, lead // self.each + 9)"),
    ("the radius forgets labels", mixes, joint_evidence, "lead = self.slack(labels).lead", "lead = self.slack(0).lead"),
    ("one change more is withstood", mixes, joint_evidence, "np.minimum(fewest - 1, self.voters", "np.minimum(fewest, self.voters"),
    ("edges have no price", priced, joint_evidence, "pay(prices.delete_edges, lost) + pay(prices.add_edges, needed - lost)", "9 * pay(prices.add_edges, needed)"),
    ("a neighbour too many is bought", priced, joint_evidence, "needed = np.where(slack.lead < 0, 0, slack.lead // each + 1)", "needed = np.where(slack.lead < 0, 0, slack.lead // each + 3)"),
    ("a lead of nothing is no lead, without edges", priced_by_labels, joint_evidence, "return np.where(slack.lead < 0, 0.0, np.inf)", "return np.where(slack.lead < 1, 0.0, np.inf)"),
    ("a lead of nothing is no lead", priced_exactly, joint_evidence, "needed = np.where(slack.lead < 0, 0,", "needed = np.where(slack.lead < 1, 0,"),
    ("an edge is bought where labels are enough", priced, joint_evidence, "needed = np.where(slack.lead < 0, 0,", "needed = np.where(slack.lead < 0, 1,"),
    ("one edge is lost where new ones are cheaper", priced_exactly, joint_evidence, "prices.delete_edges < prices.add_edges else 0", "prices.delete_edges < prices.add_edges else 1"),
    ("labels that are added are covered by flips", refuses_added_labels, joint_evidence, "self.voters.require_labels(budget)", "pass"),
    ("labels and nodes together", refuses_nodes_with_labels, joint_evidence, "if budget.training_fields and not self.covers(budget):", "if False:"),
    ("nodes are covered", nodes_are_not_covered, joint_evidence, "for name in _NOT_COVERED) and", "for name in _NOT_COVERED[1:]) and"),
    ("own features are covered", own_features_are_not_covered, joint_evidence, " and not budget.target_features", ""),
]  # fmt: skip
EDGES_LEAK = [
    ("weights read edges", no_edge_in_weights, model, "own_spectrum(x), near.voter", "node_spectrum(x, edge_index), near.voter"),
    ("vectors know the degree", no_edge_in_weights, model, "own_spectrum(x), near.voter", "own_spectrum(x * (1 + 0.1 * torch.bincount(edge_index[0], minlength=len(x)).view(-1, 1))), near.voter"),
    ("the rank follows the number of voters", same_for_all_targets, model, "settings.rank, settings.box)", "settings.rank + len(targets) % 7, settings.box)"),
    ("features made of edges pass", leaks, defence, "        if self.neighbour_votes is not None:\n            require", "        if False:\n            require"),
    ("weights in a box pass", boxed, settings, "        if self.box:\n            raise", "        if False:\n            raise"),
    ("a node may be its own neighbour", own_neighbour, joint_record, "if (self.neighbour == self.target[owner]).any():", "if False:"),
    ("a neighbour may vote twice", named_twice, joint_record, "if ((np.diff(self.neighbour) <= 0) & (np.diff(owner) == 0)).any():", "if False:"),
    ("neighbours may abstain", abstaining, joint_record, "if self.voters.least_lead:", "if False:"),
]  # fmt: skip
VERIFIER = [
    ("the recount: a tie is won by the label", "- (k < label) - elected.asked", "- elected.asked"),
    ("the recount: an abstention asks for nothing", "- (k < label) - elected.asked", "- (k < label)"),
    ("the recount: another class has to be ahead by as much as the label", "label=np.full_like(self.label, leader), asked=0", "label=np.full_like(self.label, leader)"),
    ("the recount: every class is as far ahead as the label", "replace(self, label=np.full_like(self.label, leader), asked=0)", "replace(self, asked=0)"),
    ("the recount: audited labels can change", "loss[:, of_labels.audited] = 0", "pass"),
    ("the recount: the smallest losses", "-np.sort(-loss, axis=1", "np.sort(loss, axis=1"),
    ("the recount: what labels lean to is forgotten", "loss = np.abs(weight) + toward", "loss = np.abs(weight)"),
    ("the recount: advance is forgotten", "distance = advance[label] - advance[k] + toward", "distance = toward"),
    ("the recount: neighbours never turn", "(lean[:, None] - turned)", "lean[:, None]"),
    ("the recount: neighbours that turn are lost", "leaning + 1, fewest, taken.shape", "leaning, fewest, taken.shape"),
    ("the recount: votes for the rival are forgotten", "for_label.astype(np.int64) - (cast == k)", "for_label.astype(np.int64)"),
    ("the recount: lost neighbours are free", "np.minimum(attack.deleted, sure)", "0 * sure"),
    ("the recount: all neighbours can be missed", "np.minimum(attack.deleted, sure)", "attack.deleted + 0 * sure"),
    ("the recount: new neighbours are free", "gone = attack.added + np.minimum", "gone = np.minimum"),
    ("the recount: one edge more", "record.neighbour_steps).astype(np.float64) + 1", "record.neighbour_steps).astype(np.float64) + 2"),
    ("the recount: neighbours have no vote", "_own_scores(record) + record.neighbour_steps * cast", "_own_scores(record)"),
]  # fmt: skip
FILES = [
    ("files: flips alone cover all changes", is_refused(foreign_budget, "joint-flips"), recount_joint, 'or (others and record.voters.candidates == "labelled")', ""),
    ("files: labels and nodes together", is_refused(nodes_and_labels, "joint-any"), recount_joint, "if changes_nodes and labels:", "if False:"),
    ("files: voters may count themselves", is_refused(NOBODYS_OWN, "joint-any"), check_joint, "!= record.voters.own.tolist()", "is None"),
    ("files: targets are others", is_refused(OTHER_TARGETS, "joint-flips"), check_joint, '!= record.voter[record.target].tolist()', "is None"),
    ("the graph: other weights pass", is_refused_with_the_graph(OTHER_CAPS, "joint-flips"), defence, "apart, apart_in_all = there.weights_apart(here)", "apart = apart_in_all = 0"),
    ("the graph: other neighbours pass", is_refused_with_the_graph(NO_NEIGHBOUR, "joint-flips"), defence, "findings.wrong += _wrong_neighbours(joint, chosen)", "pass"),
    ("the model: other settings pass", other_settings, defence, "if stated != setting:", "if False:"),
]  # fmt: skip
RED = [*PROVER, *EDGES_LEAK, *((what, derive_twice, recount_joint, old, new) for what, old, new in VERIFIER)]


@each_mistake(RED)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)


@each_mistake(FILES)
def test_a_mistake_about_files_is_noticed(monkeypatch, tmp_path, mistake):
    mistake.turns_red(monkeypatch, tmp_path)


def test_own_vectors_take_no_edges():
    assert "edge" not in vectors.own_spectrum.__code__.co_varnames
    assert vectors.own_spectrum.__code__.co_argcount == 1
