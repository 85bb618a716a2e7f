"""Mistakes in models that are trained apart, each of which a law or a test must notice."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import agnncert as ac
from agnncert import recipes
from agnncert.certificates.budget import Budget
from agnncert.errors import AgnncertError, ModelContractError
from agnncert.graphs import graph_ids, task
from agnncert.isolated import defence, evidence, parts, training, usable
from agnncert.proving import evidence as base
from agnncert.verifier import recount_isolated
from tests.soundness.forger.forging import drafted, seal
from tests.soundness.golden.examples import EXAMPLES
from tests.soundness.laws import test_isolated as laws
from tests.soundness.laws import test_what_isolated_training_reads as reads
from tests.support.mutations import each_mistake
from tests.unit.isolated import test_content_ids as contents
from tests.unit.isolated import test_diverging_parts as diverging
from tests.unit.isolated import test_nothing_is_carried_over as modules
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


def rivals():
    laws.test_of_all_rivals_the_one_that_needs_the_fewest_models_decides(4)


def attacks_on_the_verifier():
    laws.test_the_verifier_keeps_no_label_that_an_attack_changes(4, POISONED)


def radius_of_the_weakest_rival():
    """Five models vote for class 0, two for class 1: class 1 wins with two altered models, class 2 with three."""
    certificate = EXAMPLES["isolated-node-views"].certify()
    record = certificate.evidence.record
    vote = np.tile(np.array([0, 0, 0, 0, 0, 1, 1], dtype=record.vote.dtype), (len(record.vote), 1))
    voted = replace(record, num_classes=3, vote=vote, stable=np.ones_like(record.stable))
    draft = drafted(replace(certificate, evidence=evidence.IsolatedEvidence(voted)), (POISONED,))
    assert set(draft.arrays["radius"].tolist()) == {1}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "forged.cert"
        draft.arrays["radius"] = draft.arrays["radius"] + 1
        assert seal(draft, file)
        assert not ac.verify(file).holds


def test_a_file_with_the_radius_of_the_weakest_rival_is_refused():
    radius_of_the_weakest_rival()


def one_deleted():
    trained.test_one_changed_graph_alters_one_model(trained.a_deleted_graph)


def one_altered():
    trained.test_one_changed_graph_alters_one_model(trained.altered_class)


def drawn(draw):
    """Notices it in either of two ways: other models differ, or a part that is trained again does."""
    try:
        modules.test_random_numbers_do_not_pass_from_part_to_part(draw)
    except ModelContractError as error:
        raise AssertionError from error


def claimed_by_content():
    with tempfile.TemporaryDirectory() as folder:
        contents.test_the_claim_says_that_an_altered_graph_counts_twice(Path(folder))


def one_diverges():
    diverging.test_a_part_that_diverges_abstains_and_all_others_are_as_they_were(diverging.DEFENCES[0])


def certified_beside_an_overflow():
    try:
        diverging.test_radii_are_true_whatever_one_graph_becomes(diverging.DEFENCES[0])
    except ModelContractError as error:
        raise AssertionError from error


def built(bad):
    """Notices it in either of two ways: another graph is left out than the bad one, or training stops."""
    name = "gin"
    try:
        clean = name, reads.by_name(name, reads.make_set())
        reads.test_a_graph_that_cannot_be_used_is_left_out_and_all_models_are_the_same_to_the_bit(clean, bad, 0)
    except AgnncertError as error:
        raise AssertionError from error


def one_stops():
    try:
        reads.test_a_module_that_stops_at_one_graph_abstains_on_its_part(False)
    except (AgnncertError, IndexError) as error:
        raise AssertionError from error


def counted():
    reads.test_classes_that_were_counted_in_training_graphs_are_refused()


def reordered():
    trained.test_the_order_of_graphs_and_what_was_drawn_before_alter_no_model()


PROVER = [
    ("a tie in a view is won by its label", law, evidence, " - unsure - (classes < elected)", " - unsure"),
    ("votes that are not stable are not conceded", law, evidence, "- sure - unsure -", "- sure -"),
    ("a poisoned model moves one vote", law, evidence, "rivals.min(axis=1) // 2", "rivals.min(axis=1)"),
    ("a view bears one graph more", law, evidence, "self.bears >= poison_graphs", "self.bears + 1 >= poison_graphs"),
    ("poisoned graphs are forgotten", law, evidence, "self.under(poisoned).holds(", "self.under(0).holds("),
    ("the test graph is forgotten", law_with_nodes, evidence, ".holds(at_test_time)", ".holds(Budget())"),
    ("unstable votes elect", law, evidence, "((self.record.vote == k) & self.record.stable)", "(self.record.vote == k)"),
    ("possible classes forget poison", law, evidence, "self.under(poisoned).possible(", "self.under(0).possible("),
    ("the radius is one larger", laws.test_the_radius_is_the_largest_number_of_poisoned_graphs, base, "np.minimum(radius, self.largest_radius), dtype", "np.minimum(radius + 1, self.largest_radius), dtype"),
]  # fmt: skip
LEAKS = [
    ("parts follow rows", training_sets, parts, "node_groups(id_keys(named), num_parts, hash)", "node_groups(id_keys(list(range(len(named)))), num_parts, hash)"),
    ("parts follow rows, in training", one_deleted, parts, "node_groups(id_keys(named), num_parts, hash)", "node_groups(id_keys(list(range(len(named)))), num_parts, hash)"),
    ("the order of the list is that of training", reordered, parts, "key=lambda position: order_of(listed[position])", "key=lambda position: position"),
    ("a model goes on where the last one ended", one_altered, training, "own = fresh_copy(model, its_seed)", "own = pickle.loads(pickle.dumps(trained[-1].model)) if trained else fresh_copy(model, its_seed)"),
    ("seeds count all graphs", one_deleted, training, "its_seed = SEEDS_PER_RUN * seed + number", "its_seed = SEEDS_PER_RUN * seed + number + sum(map(len, parts))"),
    ("all graphs decide on class weights", one_altered, training, "**settings, \"seed\": its_seed}", "**settings, \"lr\": 0.01 + 0.001 * sum(int(g.y) for p in parts for g in p), \"seed\": its_seed}"),
    ("validation graphs are seen by all", lambda: trained.test_one_changed_graph_alters_one_model(trained.an_altered_validation_graph), training, "train_one(own, parts[number], division", "train_one(own, [*parts[number], *[g for p in parts for g in p if g.graph_id == 'graph 17' and g not in parts[number]]], division"),
    ("trained models are taken as they are", trained.test_a_model_that_was_trained_before_is_refused, training, "is not None:\n        raise ModelContractError(\n            \"the model was trained before", "is not None and False:\n        raise ModelContractError(\n            \"the model was trained before"),
    ("scaled features are taken as they are", trained.test_features_that_are_scaled_by_all_graphs_are_refused, training, "    if scaled:", "    if scaled and False:"),
    ("numpy goes on where the last part ended", lambda: drawn(modules.by_numpy), training, "with own_random_numbers(its_seed):", "with torch.random.fork_rng(devices=[]):"),
    ("Python goes on where the last part ended", lambda: drawn(modules.by_python), training, "with own_random_numbers(its_seed):", "with torch.random.fork_rng(devices=[]):"),
    ("shared state is not noticed", lambda: modules.test_state_that_copies_share_is_noticed(modules.by_shared_state), training, "if is_built_in or len(filled) < 2:", "if True:"),
    ("content: equal graphs have one id", contents.test_ids_depend_on_content_alone_and_equal_graphs_are_told_apart, graph_ids, "{digest}/{seen[digest]}", "{digest}"),
    ("content: places are ids", contents.test_ids_depend_on_content_alone_and_equal_graphs_are_told_apart, graph_ids, "{digest}/{seen[digest]}", "{digest}/{row}"),
    ("content: the class is no content", lambda: contents.test_an_altered_graph_alters_two_models_at_most(contents.altered_class), graph_ids, "for name in sorted(content):", "for name in sorted({*content} - {'y'}):"),
    ("content: the claim counts an altered graph once", claimed_by_content, defence, "graph_ids=defence.ids,", "graph_ids='graph_id',"),
    ("an empty part votes", trained.test_a_part_without_a_graph_abstains_and_says_so, defence, "size == 0 or number in failed", "number in failed"),
    ("a part that diverged votes as the one before it", one_diverges, training, "TrainedPart(fresh_copy(model, SEEDS_PER_RUN * seed + number).eval(), error)", "trained[-1]"),
    ("after a part that diverged no other votes", one_diverges, defence, "size == 0 or number in failed", "size == 0 or bool(failed)"),
    ("training graphs decide on the recipe", lambda: reads.test_recipes_are_constants("an uneven column"), recipes, "        data = defence.trusted_in_training(data)", "        defence.trusted_in_training(data)"),
    ("the first graph decides on the columns", lambda: built("two columns"), task, "widths.most_common(1)[0][0] if widths", "next(iter(widths)) if widths"),
    ("a graph with another class stops all", lambda: built("class 7"), usable, "    if 0 <= label < num_classes:", "    if True:"),
    ("a graph of another form stops its part", lambda: built("values of edges"), usable, "            if form != usual:", "            if False:"),
    ("an error on one part stops all", one_stops, training, "            if _is_about_all_parts(error):", "            if True:"),
    ("counted classes are taken", counted, defence, "    stated = stated_classes(data)\n", "    stated = data.num_classes\n"),
    ("the audit calls models on poisoned graphs", certified_beside_an_overflow, defence, "None, options, probed_on=certified)", "None, options, probed_on=None)"),
]  # fmt: skip
VERIFIER = [
    ("ties are won by the label", "wins_at = 0 if rival < winner else -1", "wins_at = -1"),
    ("votes that are not stable are not conceded", "- int(counts[rival]) - num_unsure\n    wins_at", "- int(counts[rival])\n    wins_at"),
    ("a poisoned model moves one vote", "            lead -= 2", "            lead -= 1"),
    ("a view breaks one graph later", "self.to_break > poison_graphs", "self.to_break >= poison_graphs"),
    ("poisoned graphs are forgotten", "sort_votes(self.under(budget.poison_graphs))", "sort_votes(self.under(0))"),
    ("one target breaks, whoever is poisoned", "return num_failing if budget.poison_graphs > 0 else", "return num_failing if budget.poison_graphs > 9 else"),
]  # fmt: skip
FEWEST = "min(needed, default=record.num_models + 1)"
STRONGEST_RIVAL = [
    (f"the weakest rival decides: {check.__name__}", check, recount_isolated, FEWEST, FEWEST.replace("min", "max"))
    for check in (derive_twice, rivals, attacks_on_the_verifier, radius_of_the_weakest_rival)
]
FIRST_RIVAL = ("the first rival decides", rivals, recount_isolated, FEWEST, "[*needed, record.num_models + 1][0]")
ALL = [
    *PROVER,
    *LEAKS,
    *STRONGEST_RIVAL,
    FIRST_RIVAL,
    *((what, derive_twice, recount_isolated, old, new) for what, old, new in VERIFIER),
]


@each_mistake(ALL)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
