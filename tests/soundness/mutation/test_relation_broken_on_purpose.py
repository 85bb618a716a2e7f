"""Mistakes in what follows from the relation of a proof, for every kind of evidence at once."""

from agnncert.certificates.budget import Prices
from agnncert.proving import blocks, evidence, prices_by_budgets, theorems
from agnncert.proving.certificate import load_certificate
from agnncert.verifier import blocks as verifier_blocks
from agnncert.verifier import leaders
from tests.support.mutations import each_mistake
from tests.support.paths import PROJECT
from tests.unit.proving import test_evidence as units
from tests.unit.verifier import test_leaders as recount

GOLDEN = PROJECT / "tests/soundness/golden/v1"


def holds() -> None:
    for number in range(6):
        units.test_labels_hold_exactly_where_no_change_of_so_many_votes_makes_another_class_win(number)


def uncovered() -> None:
    units.test_what_nothing_is_proved_about_breaks_every_label_at_its_price()


def excluded() -> None:
    units.test_a_class_that_gets_ahead_of_the_label_is_excluded_where_another_one_stays_ahead_of_it()


def priced() -> None:
    units.test_the_cheapest_attack_buys_the_fewest_changes_that_succeed()


def priced_beyond() -> None:
    cheapest = load_certificate(GOLDEN / "stacked-sum.cert").cheapest(Prices(add_edges=5, target_features=1))
    assert cheapest.max() == 1


def led() -> None:
    units.test_what_follows_from_the_relation_is_what_votes_of_subgraphs_answer_by_themselves("gnncert-e/node")


def recounted() -> None:
    recount.test_a_class_behind_one_that_gets_ahead_of_the_label_is_not_named()


def recounted_for_all() -> None:
    for number in range(6):
        recount.test_every_class_that_some_change_of_votes_lets_win_is_named(number)


def cut() -> None:
    for at_once in (1, 4):
        recount.test_every_target_is_in_one_block_and_only_single_ones_are_too_large(at_once)


MISTAKES = [
    ("one rival is enough", holds, evidence, "ahead.all(axis=1) if rival is None", "ahead.any(axis=1) if rival is None"),
    ("the radius is one larger", holds, evidence, "np.minimum(radius, self.largest_radius), dtype", "np.minimum(radius + 1, self.largest_radius), dtype"),
    ("other amounts are asked about", holds, evidence, "holds(float(amount))[here]", "holds(float(amounts.min()))[here]"),
    ("a class that no attack lets win may win", excluded, evidence, "may_win[led] &= ~behind | is_label[led]", "pass"),
    ("a leader excludes itself", excluded, evidence, "behind[:, k] = False", "behind[:, k] = True"),
    ("the label is excluded", holds, evidence, "may_win[led] &= ~behind | is_label[led]", "may_win[led] &= ~behind & ~is_label[led]"),
    ("a class that stays behind the label may win", holds, evidence, "may_pass = ~self.stays_ahead(rows, at) | is_label", "may_pass = self.stays_ahead(rows, at) | is_label"),
    ("answers about what is not covered", uncovered, evidence, "for k in covered:", "for k in range(len(budgets)):"),
    ("classes are excluded where nothing is covered", uncovered, evidence, "if not self.covers(at):", "if False:"),
    ("amounts of what is not covered", uncovered, evidence, "if not self.covers(budget):\n                return np.zeros(len(amounts)", "if False:\n                return np.zeros(len(amounts)"),
    ("what is not covered costs nothing", priced_beyond, evidence, "np.minimum(self.prices_of_rivals(rows, prices, rivals), uncovered)", "self.prices_of_rivals(rows, prices, rivals)"),
    ("training data are not asked about", uncovered, evidence, "budget.require_trusted_training(self.training_fields)", "pass"),
    ("the label has a price", priced, evidence, "price_of_own_label = np.inf if label is None else 0.0", "price_of_own_label = 0.0"),
    ("the next change is paid for as well", priced, prices_by_budgets, "= price\n", "= price + 3\n"),
    ("an attack costs one change less", priced, prices_by_budgets, "price * (self._number[name] + 1)", "price * self._number[name]"),
    ("a target is in no block", excluded, blocks, "edges = [0, *starts.tolist(), num_targets]", "edges = [1, *starts.tolist(), num_targets]"),
    ("ties of another leader", led, theorems, "- conceded - (classes < leader)", "- conceded"),
    ("votes in doubt are not conceded by another leader", led, theorems, "- conceded - (classes < leader)", "- (classes < leader)"),
    ("an uncovered attack leaves a label ahead", led, theorems, "return ahead & limits.covered[:, None]", "return ahead"),
    ("votes for the label move once", led, theorems, ">= gain_two + limits.limit(", ">= limits.limit("),
    ("the recount: a class that no attack lets win may win", recounted, leaders, "answer &= ~behind", "pass"),
    ("the recount: a class stays behind itself", recounted_for_all, leaders, "behind[:, leader] = False", "pass"),
    ("the recount: the label is left out", recounted_for_all, leaders, "np.asarray(answer | is_label)", "np.asarray(answer & ~is_label)"),
    ("the recount: classes behind the label may win", recounted_for_all, leaders, "~stays_ahead(None) | is_label", "stays_ahead(None) | is_label"),
    ("the recount: a target is in no block", cut, verifier_blocks, "start = stop", "start = stop + 1"),
    ("the recount: a block is too large", cut, verifier_blocks, "ends[start] + at_once, side", "ends[start] + 2 * at_once, side"),
]  # fmt: skip


@each_mistake(MISTAKES)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
