"""Mistakes in models that are trained apart, each of which a law or a test must notice."""

import pytest

from agnncert.certificates.budget import Budget
from agnncert.isolated import defence, evidence, parts, training
from agnncert.verifier import recount_isolated
from tests.soundness.laws import test_isolated as laws
from tests.support.mutations import plant_text
from tests.unit.isolated import test_training as trained
from tests.unit.verifier import test_recount_isolated as recounts

POISONED = Budget(poison_graphs=1)


def law():
    laws.test_no_altered_models_and_no_changed_test_graph_change_a_certified_label(POISONED)


def law_with_nodes():
    laws.test_no_altered_models_and_no_changed_test_graph_change_a_certified_label(laws.BUDGETS[3])


def training_sets():
    laws.test_no_poisoned_training_set_changes_a_certified_label(7)


def derive_twice():
    recounts.test_both_derive_the_same({})


def one_deleted():
    trained.test_one_changed_graph_alters_one_model(trained.a_deleted_graph)


def one_altered():
    trained.test_one_changed_graph_alters_one_model(trained.altered_class)


def reordered():
    trained.test_the_order_of_graphs_and_what_was_drawn_before_alter_no_model()


PROVER = [
    ("a tie in a view is won by its label", law, evidence, " - unsure - (classes < elected)", " - unsure"),
    ("votes that are not stable are not conceded", law, evidence, "- sure - unsure -", "- sure -"),
    ("a poisoned model moves one vote", law, evidence, "rivals.min(axis=1) // 2", "rivals.min(axis=1)"),
    ("a view bears one graph more", law, evidence, "self.bears >= poison_graphs", "self.bears + 1 >= poison_graphs"),
    ("poisoned graphs are forgotten", law, evidence, "self.under(budget.poison_graphs).holds(", "self.under(0).holds("),
    ("the test graph is forgotten", law_with_nodes, evidence, ".holds(_at_test_time(budget))", ".holds(Budget())"),
    ("unstable votes elect", law, evidence, "((self.record.vote == k) & self.record.stable)", "(self.record.vote == k)"),
    ("possible classes forget poison", law, evidence, "self.under(at.poison_graphs).possible(", "self.under(0).possible("),
    ("the radius is one larger", laws.test_the_radius_is_the_largest_number_of_poisoned_graphs, evidence, "radius[holds] = number", "radius[holds] = number + 1"),
]  # fmt: skip
LEAKS = [
    ("parts follow rows", training_sets, parts, "node_groups(id_keys(ids), num_parts, hash)", "node_groups(id_keys(list(range(len(ids)))), num_parts, hash)"),
    ("parts follow rows, in training", one_deleted, parts, "node_groups(id_keys(ids), num_parts, hash)", "node_groups(id_keys(list(range(len(ids)))), num_parts, hash)"),
    ("the order of the list is that of training", reordered, parts, "key=lambda position: order_of(listed[position])", "key=lambda position: position"),
    ("a model goes on where the last one ended", one_altered, training, "own = _fresh_model(model, its_seed)", "own = copy.deepcopy(trained[-1]) if trained else _fresh_model(model, its_seed)"),
    ("seeds count all graphs", one_deleted, training, "its_seed = SEEDS_PER_RUN * seed + number", "its_seed = SEEDS_PER_RUN * seed + number + sum(map(len, parts))"),
    ("all graphs decide on class weights", one_altered, training, "**settings, \"seed\": its_seed}", "**settings, \"lr\": 0.01 + 0.001 * sum(int(g.y) for p in parts for g in p), \"seed\": its_seed}"),
    ("validation graphs are seen by all", lambda: trained.test_one_changed_graph_alters_one_model(trained.an_altered_validation_graph), training, "if graphs:", "graphs = [*graphs, *[g for p in parts for g in p if g.graph_id == 'graph 17' and g not in graphs]]\n        if graphs:"),
    ("trained models are taken as they are", trained.test_a_model_that_was_trained_before_is_refused, training, "is not None:\n        raise ModelContractError(\n            \"the model was trained before", "is not None and False:\n        raise ModelContractError(\n            \"the model was trained before"),
    ("scaled features are taken as they are", trained.test_features_that_are_scaled_by_all_graphs_are_refused, training, "    if scaled:", "    if scaled and False:"),
    ("an empty part votes", trained.test_a_part_without_a_graph_abstains_and_says_so, defence, "torch.tensor([not graphs for graphs in parts])", "torch.tensor([False for graphs in parts])"),
]  # fmt: skip
VERIFIER = [
    ("ties are won by the label", "wins_at = 0 if rival < winner else -1", "wins_at = -1"),
    ("votes that are not stable are not conceded", "- int(counts[rival]) - num_unsure\n    wins_at", "- int(counts[rival])\n    wins_at"),
    ("a poisoned model moves one vote", "            lead -= 2", "            lead -= 1"),
    ("a view breaks one graph later", "self.to_break > poison_graphs", "self.to_break >= poison_graphs"),
    ("poisoned graphs are forgotten", "sort_votes(self.under(budget.poison_graphs))", "sort_votes(self.under(0))"),
    ("one target breaks, whoever is poisoned", "return num_failing if budget.poison_graphs > 0 else", "return num_failing if budget.poison_graphs > 9 else"),
]  # fmt: skip
ALL = [*PROVER, *LEAKS, *((what, derive_twice, recount_isolated, old, new) for what, old, new in VERIFIER)]


@pytest.mark.parametrize(("what", "check", "module", "old", "new"), ALL, ids=[one[0] for one in ALL])
def test_a_mistake_is_noticed(monkeypatch, what, check, module, old, new):
    plant_text(monkeypatch, module, old, new)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check()
