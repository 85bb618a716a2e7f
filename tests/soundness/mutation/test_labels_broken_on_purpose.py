"""Mistakes in votes of training labels, each of which a law or a test must notice."""

import numpy as np
import pytest

import agnncert as ac
from agnncert.errors import AgnncertError
from agnncert.labels import defence, evidence, model, settings, statements, vectors, weights
from agnncert.verifier import check_labels, recount_labels
from tests.soundness.golden.examples import EXAMPLES
from tests.soundness.laws import test_label_votes as laws
from tests.soundness.mutation.golden_forgeries import is_refused, is_refused_with_the_graph, with_evidence
from tests.support.mutations import each_mistake
from tests.unit.labels import test_label_votes as units
from tests.unit.labels import test_other_weights as others


def any_change():
    laws.test_a_label_withstands_a_number_of_changes_exactly_where_it_is_certified(False, False)


def abstains():
    laws.test_a_label_withstands_a_number_of_changes_exactly_where_it_is_certified(True, True)


def possible():
    laws.test_no_class_wins_that_is_not_called_possible()


def overtaken():
    laws.test_a_class_stays_ahead_of_another_one_exactly_where_no_change_brings_it_past()


def priced():
    laws.test_no_attack_is_cheaper_than_stated_and_with_one_price_some_attack_costs_as_much()


def derive_twice():
    laws.test_prover_and_recount_agree_on_factors()


def whole_weights():
    laws.test_weights_are_the_floor_of_a_quotient_within_one_vote_and_none_for_oneself()


def digits():
    return ac.load_dataset("digits-knn", split="by-id")


def no_label_in_weights():
    data = digits()
    made = ac.fit(None, data, ac.LabelVotes())
    units.test_no_label_enters_the_weights(data, (made, ac.certify(made, data, made.defence, data.test_mask)))


def no_candidate_in_weights():
    data = digits()
    made = ac.fit(None, data, ac.LabelVotes(candidates="all", num_labels=500))
    certified = ac.certify(made, data, made.defence, data.test_mask)
    units.test_with_all_candidates_not_even_who_has_a_label_enters_the_weights(data, (made, certified))


def refuses_flips_alone():
    certificate = EXAMPLES["labels-flips"].certify()
    with pytest.raises(AgnncertError):
        certificate.holds_against(ac.Budget(add_labels=1))


def refuses_both_together():
    certificate = EXAMPLES["labels-any"].certify()
    with pytest.raises(AgnncertError):
        certificate.holds_against(ac.Budget(flip_labels=1, add_edges=1))


def graph_is_not_covered():
    assert not EXAMPLES["labels-any"].certify().holds_against(ac.Budget(add_edges=1)).any()


def removed_labels_count():
    certificate = EXAMPLES["labels-any"].certify()
    assert (certificate.holds_against(ac.Budget(remove_labels=2)) == (certificate.radius >= 2)).all()
    assert (certificate.radius < 2).any()


def added_labels_count():
    certificate = EXAMPLES["labels-any"].certify()
    assert (certificate.holds_against(ac.Budget(add_labels=2)) == (certificate.radius >= 2)).all()


def counts_classes():
    units.test_the_number_of_classes_is_never_counted_from_labels(digits())


def counts_labels():
    units.test_the_number_of_labels_is_never_read_from_labels_that_may_be_added(digits())


def leaks():
    units.test_features_that_were_computed_from_labels_are_refused(digits())


def abstains_by_a_part_of_a_step():
    units.test_whoever_leads_by_less_than_was_asked_for_abstains_also_by_a_part_of_a_step(digits())


def chosen_by_labels():
    units.test_settings_that_make_no_sense_are_refused("df chosen by labels")


def foreign_budget(draft):
    assert draft.header["statements"][1]["budget"] == {"flip_labels": 1}
    draft.header["statements"][1]["budget"] = {"add_labels": 1}


def both_budgets(draft):
    draft.header["statements"][0] = {"budget": {"flip_labels": 1, "add_edges": 1}, "broken_at_most": draft.num_targets}
    draft.arrays["holds"][0] = False


def many_weights(folder):
    units.test_many_weights_that_each_differ_by_a_little_are_refused(
        ac.load_dataset("digits-knn", split="by-id"), folder
    )


def forged_weights(folder):
    data = ac.load_dataset("digits-knn", split="by-id")
    model = ac.fit(None, data, ac.LabelVotes(box=True))
    certificate = ac.certify(model, data, model.defence, data.test_mask.nonzero().view(-1)[: others.TARGETS])
    others.test_a_forger_who_uses_all_that_machines_may_differ_by_is_refused(False, data, (model, certificate), folder)


def withstood(folder):
    others.test_more_is_withstood_exactly_if_some_attack_is()


NOBODYS_OWN = with_evidence("labels-any", own=lambda evidence: np.full_like(evidence.own, -1))
OTHER_CAPS = with_evidence("labels-flips", cap=lambda evidence: evidence.cap * 2)
COSTS = "costs[:, 2::2] += own_above + below[:, k + 1]"
PROVER = [
    ("a tie is won by the label", any_change, evidence, "return np.asarray(best - scores - wins_tie)", "return np.asarray(best - scores)"),
    ("a flip takes one vote", any_change, evidence, COSTS, "costs[:, 1 : STEPS + 1] += own_above + below[:, k + 1]"),
    ("negative weights of the rival are forgotten", any_change, evidence, COSTS, "costs[:, 2::2] += own_above"),
    ("labels of other classes cannot be bought", any_change, evidence, "costs[:, 1 : STEPS + 1] += others", "pass"),
    ("labels that are missing cannot be added", any_change, evidence, "others = either.sum(axis=1)", "others = either[:, 1:].sum(axis=1)"),
    ("audited labels can change", any_change, evidence, "self._count(rows, ~self.audited)", "self._count(rows, np.ones_like(self.audited))"),
    ("no label can change", any_change, evidence, "self._count(rows, ~self.audited)", "self._count(rows, np.zeros_like(self.audited))"),
    ("an abstention asks for nothing", abstains, evidence, "(self.least_lead if leader is None else 0)", "0"),
    ("who leads by less than a limit between two steps does not abstain", abstains_by_a_part_of_a_step, model, "np.ceil(settings.abstain * STEPS)", "np.floor(settings.abstain * STEPS)"),
    ("one label more is withstood", any_change, evidence, "np.minimum(self.fewest.min(axis=1) - 1,", "np.minimum(self.fewest.min(axis=1),"),
    ("the last cost must exceed the lead alone", any_change, evidence, "is_enough = total > lead[:, None]", "is_enough = total > lead[:, None] + 1"),
    ("what a class has in advance is forgotten", any_change, evidence, " + np.array(self.advance)", ""),
    ("removed labels are free of charge", removed_labels_count, evidence, "budget.flip_labels + budget.add_labels + budget.remove_labels", "budget.flip_labels + budget.add_labels"),
    ("added labels are free of charge", added_labels_count, evidence, "budget.flip_labels + budget.add_labels + budget.remove_labels", "budget.flip_labels + budget.remove_labels"),
    ("possible classes are counted one label too late", possible, evidence, "np.asarray(fewest > min(changed,", "np.asarray(fewest >= min(changed,"),
    ("every class is as far ahead as the label", overtaken, evidence, "if leader is None else self._count(rows, ~self.audited, leader)[1]", "if True else 0"),
    ("another class than the label has to be ahead by as much as it", overtaken, evidence, "(self.least_lead if leader is None else 0)", "self.least_lead"),
    ("no label can change what another class leads by", overtaken, evidence, "self._count(rows, ~self.audited, leader)", "self._count(rows, ~self.audited & False, leader)"),
    ("the dearest labels are bought first", priced, evidence, "np.argsort(-gain / price,", "np.argsort(gain / price,"),
    ("single prices are forgotten", priced, evidence, "np.where(self.audited, np.inf, each * self.price)", "np.where(self.audited, np.inf, each * 9)"),
    ("weights are rounded up", whole_weights, evidence, "np.floor_divide(products.astype(np.int64) * STEPS, self.cap[part, None])", "-np.floor_divide(-products.astype(np.int64) * STEPS, self.cap[part, None])"),
    ("a target votes for itself", whole_weights, evidence, "weights[inside, own[inside]] = 0", "pass"),
    ("flips alone cover all changes", refuses_flips_alone, evidence, 'if self.candidates == "labelled" and (budget', "if False and (budget"),
    ("labels and graph together", refuses_both_together, evidence, "if budget.training_fields and _changes_graph(budget):", "if False:"),
    ("edges are covered", graph_is_not_covered, evidence, "return not _changes_graph(budget)", "return True"),
]  # fmt: skip
LABELS_LEAK = [
    ("scores of labels enter the vectors", no_label_in_weights, model, "node_spectrum(x, edge_index), targets", "node_spectrum(x * (1 + 0.01 * float(self.label_of[:9].sum())) + float(self.label_of[3]), edge_index), targets"),
    ("the cap follows the labels", no_label_in_weights, model, "settings.rank, settings.box)", "settings.rank + int((self.label_of[::7] == 3).sum()), settings.box)"),
    ("votes of all follow who has a label", no_candidate_in_weights, model, "candidate, is_all, settings.df,", "candidate, is_all, settings.df + 0.1 * int((self.label_of >= 0).sum()),"),
    ("classes are counted from labels", counts_classes, model, "number = settings.num_classes or stated_classes(data)", "number = settings.num_classes or int(np.asarray(data.y).max()) + 1"),
    ("presets follow labels that may be added", counts_labels, settings, 'if self.candidates == "all":', "if False:"),
    ("features made of labels pass", leaks, defence, "    if column is not None:", "    if False:"),
    ("validation labels choose", chosen_by_labels, settings, "if getattr(self, name) in CHOSEN_BY_LABELS:", "if False:"),
]  # fmt: skip
VERIFIER = [
    ("the recount: a tie is won by the label", "- (k < label) - asked", "- asked"),
    ("the recount: the label's own votes are lost once", "np.abs(weight) + np.where(says_label, weight, 0)", "np.abs(weight)"),
    ("the recount: the rival's votes against itself", "- np.where(record.label_of == k, weight, 0)", "- 0"),
    ("the recount: audited labels can change", "loss[:, record.audited] = 0", "pass"),
    ("the recount: the smallest losses", "-np.sort(-loss.astype(np.int16)", "np.sort(loss.astype(np.int16)"),
    ("the recount: one label less", "fitting + 1.0", "fitting + 2.0"),
    ("the recount: a rival that is ahead by one needs a label", "np.where(distance < 0, 0.0, number)", "np.where(distance < -1, 0.0, number)"),
    ("the recount: less than no label is needed", "np.where(distance < 0, 0.0, number)", "np.where(distance < 0, -1.0, number)"),
    ("the recount: an abstention asks for nothing", "- (k < label) - asked", "- (k < label)"),
    ("the recount: another class has to be ahead by as much as the label", "np.full(len(rows), leader), 0", "np.full(len(rows), leader), record.least_lead"),
    ("the recount: every class is as far ahead as the label", "if leader is None:", "if True:"),
    ("the recount: advance is forgotten", "advance + weight[:, record.label_of == k]", "weight[:, record.label_of == k]"),
    ("the recount: weights are cut towards nothing", "product.astype(np.int64) * STEPS // record.cap[rows][:, None]", "np.trunc(product * STEPS / record.cap[rows][:, None]).astype(np.int64)"),
    ("the recount: a target votes for itself", "weight[place, own] = 0", "pass"),
]  # fmt: skip
FILES = [
    ("files: flips alone cover all changes", is_refused(foreign_budget, "labels-flips"), recount_labels, 'or (others and record.candidates == "labelled")', ""),
    ("files: labels and graph together", is_refused(both_budgets, "labels-any"), recount_labels, "if flipped or others:", "if False:"),
    ("files: targets may count themselves", is_refused(NOBODYS_OWN, "labels-any"), check_labels, "!= self.record.own.tolist()", "is None"),
    ("the graph: other weights pass", is_refused_with_the_graph(OTHER_CAPS, "labels-flips"), defence, "apart, apart_in_all = there.weights_apart(here)", "apart = apart_in_all = 0"),
    ("the graph: what other weights prove is not compared", forged_weights, defence, "findings.wrong += not_proved_here(stored, here)", "pass"),
    ("the graph: larger radii pass", forged_weights, statements, "(theirs.needed > ours.needed).any(axis=1)", "False"),
    ("the graph: more added edges pass", withstood, statements, "(votes > votes_here) | with_all_deleted", "with_all_deleted"),
    ("the graph: more deleted edges pass", withstood, statements, "(votes > votes_here) | with_all_deleted", "(votes > votes_here)"),
    ("the graph: what no attack reaches is compared", withstood, statements, "is_more = (votes >= 0) & (", "is_more = ("),
    ("the graph: many weights that differ by a little pass", many_weights, defence, "elif apart_in_all > STEPS_APART", "elif apart_in_all > 9**9"),
]  # fmt: skip


RED = [*PROVER, *LABELS_LEAK, *((what, derive_twice, recount_labels, old, new) for what, old, new in VERIFIER)]


@each_mistake(RED)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)


@each_mistake(FILES)
def test_a_mistake_about_files_is_noticed(monkeypatch, tmp_path, mistake):
    mistake.turns_red(monkeypatch, tmp_path)


def test_vectors_and_weights_know_no_label():
    for module in (vectors, weights):
        names = set(vars(module))
        assert not names & {"label_of", "training_labels", "y"}
        assert not any("label" in name for name in names)
