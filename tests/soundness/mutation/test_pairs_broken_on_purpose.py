"""Mistakes in votes about pairs, each of which brute force, a refusal or a second derivation must notice."""

import pytest

from agnncert import agreement
from agnncert.pairs import evidence, model, training, voters
from agnncert.pairs import record as records
from agnncert.pairs import targets as chosen
from agnncert.verifier import recount_pairs
from tests.soundness.laws import test_pair_votes as law
from tests.support.mutations import each_mistake, text_turns_red
from tests.unit.pairs import test_pairs as units
from tests.unit.pairs import test_pairs_beside_their_data as beside
from tests.unit.pairs import test_recount_of_pairs as twice


def brute_force(rule):
    for cases, size in ((80, 1), (3, 2)):
        assert not law.examine(rule, seed=2, cases=cases, size=size)[2]


def recount():
    for rule in ("common", "both", "trusted"):
        twice.test_prover_and_recount_agree_on_random_votes(rule)


PROVER = [
    ("an edge reaches one vote", "both", evidence, "edge = VOTES_OF_EDGE[self.rule]\n        node = VOTES_OF_NODE[self.rule]\n        newcomers", "edge = 1\n        node = VOTES_OF_NODE[self.rule]\n        newcomers"),
    ("a node reaches two votes", "both", evidence, "edge = VOTES_OF_EDGE[self.rule]\n        node = VOTES_OF_NODE[self.rule]\n        newcomers", "edge = VOTES_OF_EDGE[self.rule]\n        node = 2\n        newcomers"),
    ("injected nodes are free", "common", evidence, "inject_nodes=node * newcomers", "inject_nodes=none"),
    ("deleted nodes are free", "common", evidence, "delete_nodes=node * attack.delete_nodes", "delete_nodes=none"),
    ("deleted edges are free", "common", evidence, "delete_edges=edge * attack.delete_edges", "delete_edges=none"),
    ("added edges are free", "trusted", evidence, "replace(attack, inject_nodes=none", "replace(attack, add_edges=none, inject_nodes=none"),
    ("changed edges are free", "trusted", evidence, "replace(attack, inject_nodes=none", "replace(attack, change_edges=none, inject_nodes=none"),
    ("the radius counts one vote less", "both", evidence, "number = each * size", "number = (each - 1) * size"),
    ("a neighbour of one node is a common one", "common", voters, "first.multiply(second)", "first"),
    ("arcs count in one direction", "common", voters, "np.concatenate([src, dst]), np.concatenate([dst, src])", "src, dst"),
    ("any edge of the first node makes a contact", "trusted", model, "[:, self.defence.trusted] > 0)", "[:, self.defence.trusted] > -9)"),
    ("votes are for the other class", "common", model, "gate[:, np.arange(self.num_classes) != int(self.favoured)] = 0", "gate[:, np.arange(self.num_classes) == int(self.favoured)] = 0"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "rule", "module", "old", "new"), PROVER, ids=[one[0] for one in PROVER])
def test_brute_force_notices(monkeypatch, mistake, rule, module, old, new):
    text_turns_red(monkeypatch, module, old, new, lambda: brute_force(rule))


RECOUNT = [
    ("an edge reaches one vote", "per_edge, per_node = (2, 3)", "per_edge, per_node = (1, 3)"),
    ("a node reaches two votes", "per_edge, per_node = (2, 3)", "per_edge, per_node = (2, 2)"),
    ("features count though nothing reads them", "0 if record.blind else per_node * budget.change_features", "per_node * budget.change_features"),
    ("features do not count though votes read them", "0 if record.blind else per_node * budget.change_features", "0"),
    ("one edge makes a common neighbour", "budget.edges_per_injected < 2", "budget.edges_per_injected < 1"),
    ("injected accounts cost something", "budget.but(inject_nodes=0, delete_nodes=0", "budget.but(delete_nodes=0"),
    ("contacts may be deleted", "budget.but(inject_nodes=0, delete_nodes=0", "budget.but(inject_nodes=0"),
    ("the radius counts votes", 'votes = 3 if record.rule == "both" else 1', "votes = 1"),
    ("added edges reach one vote", 'per_edge = 2 if record.rule == "both" else 1', "per_edge = 1"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "old", "new"), RECOUNT, ids=[one[0] for one in RECOUNT])
def test_the_second_derivation_notices(monkeypatch, mistake, old, new):
    text_turns_red(monkeypatch, recount_pairs, old, new, recount)


GUARDS = [
    ("a node may be paired with itself", records, "(self.pairs[:, 0] == self.pairs[:, 1]).any()", "False", "to itself"),
    ("a pair may be named twice", records, "len(np.unique(self.pairs, axis=0)) != len(self.pairs)", "False", "twice"),
    ("rows may be negative", records, "self.pairs.min(initial=0) < 0", "False", "negative"),
    ("a mean is accepted", records, "if self.pseudo or self.second:", "if self.second:", "a mean"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "module", "old", "new", "fault"), GUARDS, ids=[one[0] for one in GUARDS])
def test_a_record_without_its_guard_is_noticed(monkeypatch, mistake, module, old, new, fault):
    text_turns_red(monkeypatch, module, old, new, lambda: twice.refuses(fault))


def test_it_is_noticed_if_a_pair_of_one_node_is_accepted(monkeypatch):
    old, new = "same = ends[ends[:, 0] == ends[:, 1]]", "same = ends[:0]"
    text_turns_red(monkeypatch, chosen, old, new, twice.refuses_a_pair_of_one_node)


def test_it_is_noticed_if_training_counts_otherwise_than_the_evidence(monkeypatch):
    check = twice.test_counting_in_training_agrees_with_the_evidence
    text_turns_red(monkeypatch, training, "np.where(place < reached, 0, ranked)", "ranked", check)


def named_in_either_order():
    units.test_a_masked_pair_is_hidden_whichever_of_its_nodes_is_named_first(True)


HIDDEN = "masked.min(axis=1, initial=graph.num_nodes) * graph.num_nodes + masked.max(axis=1, initial=0)"
MASKS = [
    ("a masked pair is seen if its later node is named first", named_in_either_order, voters, HIDDEN, "masked[:, 0] * graph.num_nodes + masked[:, 1]"),
    ("a masked pair is seen in one direction", named_in_either_order, voters, "np.minimum(src, dst) * graph.num_nodes + np.maximum(src, dst)", "src * graph.num_nodes + dst"),
]  # fmt: skip


@each_mistake(MASKS)
def test_a_pair_that_is_not_hidden_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)


def places(tmp_path):
    beside.test_a_pair_at_a_place_where_it_does_not_stand_is_refused(beside.exchanged, tmp_path)


def listed_twice(tmp_path):
    beside.test_of_a_pair_that_is_listed_twice_the_certified_place_is_compared(-1, tmp_path)


BESIDE_DATA = [
    ("places are not compared", places, agreement, '"row": chosen.rows, ', ""),
    ("places are taken as stated", places, chosen, "np.array_equal(listed[rows], ends)", "True"),
    ("the first of two places is meant", listed_twice, chosen, "return choose_pairs(data, rows)", "return choose_pairs(data, ends.T)"),
    ("true classes are not compared", beside.test_true_classes_of_pairs_that_have_none_are_refused, agreement, '"truth": chosen.truth, ', ""),
    ("what the data lacks is not missed", beside.test_true_classes_of_pairs_that_have_none_are_refused, agreement, "if name not in contents.arrays:", "if name not in contents.arrays or values is None:"),
    ("encodings are not compared", beside.test_another_encoding_of_the_table_is_refused, agreement, "if encoding is not None and claim", "if encoding is None and claim"),
]  # fmt: skip


@each_mistake(BESIDE_DATA)
def test_a_comparison_with_the_data_that_is_left_out_is_noticed(monkeypatch, tmp_path, mistake):
    mistake.turns_red(monkeypatch, tmp_path)
