"""With a guard of taught data broken on purpose, the test that names it turns red."""

import inspect

import pytest

from agnncert import addons, recompute, teaching
from agnncert.datasets import splits, taught
from agnncert.stacked import training as stacked_training
from tests.support.mutations import edited
from tests.unit import test_teaching as tests
from tests.unit.models import test_own_config
from tests.unit.stacked import test_stacked


def refuses_transductive_students(folder):
    tests.test_students_do_not_see_test_nodes_unless_somebody_insists_in_vain()


def judges(folder):
    tests.test_labels_of_a_teacher_do_not_decide_between_votes_and_none()


def teaches_nobody_else(folder):
    tests.taught_once.cache_clear()
    tests.test_unlabelled_nodes_that_training_sees_are_taught_and_no_others()


def sees_no_test_node(folder):
    tests.taught_once.cache_clear()
    tests.test_what_is_said_about_test_and_validation_nodes_changes_no_taught_label()


def certifies_truth(folder):
    tests.test_labels_of_a_teacher_are_no_truth_to_certify_against()


def hidden_teachers(folder):
    tests.test_a_claim_that_hides_or_alters_the_teacher_is_refused(folder)


def teachers_that_know_too_much(folder):
    tests.test_a_teacher_that_has_seen_test_nodes_or_another_split_is_refused()


def shares_of_classes(folder):
    tests.test_predicted_shares_make_more_taught_labels_right_where_classes_are_unequal(0.2)


def shares_of_the_loss(folder):
    tests.test_shares_count_relative_to_those_of_the_teachers_loss()


def constants(folder):
    test_stacked.test_a_constant_is_certified_also_where_all_classes_are_equally_frequent()


def names_of_teachers(folder):
    test_own_config.test_a_teacher_that_calls_itself_an_mlp_may_have_read_edges()


MUTATIONS = {
    "test nodes are taught": (
        splits.seen_nodes,
        "return ~test_mask.bool() if",
        "return torch.ones_like(test_mask) if",
        teaches_nobody_else,
    ),
    "validation nodes are taught": (taught.unlabelled_nodes, " | data.val_mask.bool()", "", teaches_nobody_else),
    "students see test nodes": (
        taught.settings_for_taught,
        'protocol == "transductive"',
        "False",
        refuses_transductive_students,
    ),
    "taught labels count as truth": (taught.require_true_labels, "if num_taught:", "if False:", certifies_truth),
    "taught labels decide about votes": (
        stacked_training._validation_parts,
        "return val, torch.cat([given_rows(data), val])",
        "return val, torch.cat([train, val])",
        judges,
    ),
    "a claim may be silent about its teacher": (
        recompute._compare_teaching,
        "if stated != [teaching.note]:",
        "if stated and stated != [teaching.note]:",
        hidden_teachers,
    ),
    "a note may say anything": (
        recompute._compare_teaching,
        "if stated != [teaching.note]:",
        "if not stated:",
        hidden_teachers,
    ),
    "a teacher has seen the test nodes": (
        teaching._given_teacher,
        'record.get("protocol") == "transductive"',
        "False",
        teachers_that_know_too_much,
    ),
    "a teacher has seen another split": (
        teaching._given_teacher,
        'record.get("data", digest) != digest',
        "False",
        teachers_that_know_too_much,
    ),
    "a teacher reads no edges if it says so": (
        addons.config_of,
        'is_own or config.get("name") in addons("agnncert.models")',
        "True",
        names_of_teachers,
    ),
    "class shares are those of the loss": (
        teaching._with_predicted_shares,
        "calm * (share / share.sum() / in_loss)",
        "calm",
        shares_of_classes,
    ),
    "probabilities are taken as they are": (
        teaching._temperature,
        "min(temperatures, key=loss)",
        "1.0",
        shares_of_classes,
    ),
    "every loss is taken for a balanced one": (
        teaching._shares_in_loss,
        'if any(record.get("balance_classes") for record in records):',
        "if True:",
        shares_of_the_loss,
    ),
    "the teacher reads the whole graph": (
        teaching.teach,
        'visible = inductive_view(data, validation=protocol == "inductive")\n',
        "visible = data\n",
        sees_no_test_node,
    ),
    "a constant is a matter of rounding": (
        stacked_training._without_votes,
        "frequency[count.argmax()] += 1",
        "frequency *= 1e-6",
        constants,
    ),
}


@pytest.fixture(autouse=True)
def fresh_lessons():
    """No test uses what a broken teacher taught."""
    yield
    tests.taught_once.cache_clear()


@pytest.mark.parametrize(
    "test", list(dict.fromkeys(mutation[3] for mutation in MUTATIONS.values())), ids=lambda test: test.__name__
)
def test_as_it_is_every_check_passes(test, tmp_path):
    test(tmp_path)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_guard_turns_its_test_red(name, tmp_path, monkeypatch):
    function, old, new, test = MUTATIONS[name]
    plain = inspect.unwrap(function)
    mutant = inspect.unwrap(edited(plain, old, new))
    monkeypatch.setattr(plain, "__code__", mutant.__code__)
    with pytest.raises((AssertionError, Exception, pytest.fail.Exception)) as red:
        test(tmp_path)
    assert not isinstance(red.value, (NameError, AttributeError, ImportError)), red.value
