"""With injected nodes, what all claims assume, trusted training data, or the names of classes broken on purpose, a law turns red."""

import pytest

from agnncert import verdict
from agnncert.certificates import claim as claims
from agnncert.certificates.budget import Budget
from agnncert.certificates.file import _budget_to_json
from agnncert.proving import theorems
from agnncert.proving.certificate import Certificate
from agnncert.proving.evidence import Evidence
from agnncert.stacked import claim as stacked_claims
from agnncert.verifier import check
from agnncert_peers import sample_claim
from agnncert_peers.noise import goes_beyond
from tests.soundness.golden.examples import EXAMPLES
from tests.soundness.laws import test_premises as laws
from tests.support.mutations import edited, plant_text
from tests.unit.certificates import test_class_names as names
from tests.unit.certificates import test_training_budget as training


def injected(folder, patch):
    laws.test_nobody_withstands_a_million_accounts_that_follow_whom_they_like("edge-centric-node")


def stated(folder, patch):
    laws.test_a_file_says_how_many_edges_injected_nodes_may_have(Budget(inject_nodes=1), folder)


def assumed(folder, patch):
    for name in ("edge-centric-node", "stacked-sum", "rs"):
        certificate = EXAMPLES[name].certify()
        assert certificate.claim.assumes[:3] == laws.PREMISES


def refused(folder, patch):
    laws.test_a_file_of_any_kind_that_leaves_the_premise_out_is_refused(folder, patch)


def refused_when_made(folder, patch):
    laws.test_a_claim_that_leaves_the_premise_out_makes_no_certificate()


def trusted(folder, patch):
    training.test_a_defence_whose_author_never_heard_of_training_data_refuses_too()


def trusted_in_evidence(folder, patch):
    for file in training.TRUSTS:
        training.test_the_evidence_itself_proves_nothing_about_training_data(file)


def trusted_by_noise(folder, patch):
    training.test_nothing_in_a_table_is_proved_about_training_data("rs")


def trusted_in_files(folder, patch):
    training.test_a_file_of_it_with_such_a_statement_is_refused(training.TRUSTS[0], "flip_labels", folder)


def trusted_in_the_recount(folder, patch):
    for file in training.TRUSTS:
        training.test_the_recount_answers_no_question_about_training_data(file)


def counted(folder, patch):
    names.test_a_file_that_names_more_or_fewer_classes_than_it_counts_is_refused(
        names.made_with_names(), ["a", "b"], folder
    )


def compared(folder, patch):
    names.test_certify_takes_the_names_of_the_data_and_verify_compares_them(folder)


def edges_by_default(number):
    def mistake(patch):
        defaults = list(Budget.__init__.__defaults__)
        defaults[list(Budget.__dataclass_fields__).index("edges_per_injected")] = number
        patch.setattr(Budget.__init__, "__defaults__", tuple(defaults))

    return mistake


def replaced(function, old, new):
    return lambda patch: patch.setattr(function, "__code__", edited(function, old, new).__code__)


def no_premises(module):
    return lambda patch: patch.setattr(module, "PREMISES", ())


def nothing(*arguments):
    return iter(())


MUTATIONS = {
    "injected nodes have no edges": (edges_by_default(0), injected),
    "injected nodes have one edge": (edges_by_default(1), stated),
    "their edges are left to a default": (replaced(_budget_to_json, "if not budget.inject_nodes and ", "if "), stated),
    "claims about votes": (no_premises(claims), assumed),
    "claims about stacked votes": (no_premises(stacked_claims), assumed),
    "claims about samples": (no_premises(sample_claim), assumed),
    "no premise is asked for in a file": (lambda patch: patch.setattr(verdict, "check_premise", nothing), refused),
    "no premise is asked for in a certificate": (
        replaced(
            Certificate.__post_init__,
            "FEATURES_FIXED not in self.claim.assumes or EDGES_GIVEN not in self.claim.assumes",
            "False",
        ),
        refused_when_made,
    ),
    "certificates answer about training data": (
        replaced(Evidence.require_budget, "budget.require_trusted_training(self.training_fields)", "pass"),
        trusted,
    ),
    "theorems about votes overlook training data": (
        lambda patch: plant_text(patch, theorems, "budget.require_trusted_training()", "pass"),
        trusted_in_evidence,
    ),
    "noise overlooks training data": (
        replaced(goes_beyond, '(*COUNTS, "target_features", *TRAINING)', '(*COUNTS, "target_features")'),
        trusted_by_noise,
    ),
    "files may state anything about training data": (
        replaced(check.check_budgets, "!= 0", "> 10**9"),
        trusted_in_files,
    ),
    "the recount overlooks training data": (
        replaced(check.require_trusted_training, "!= 0", "> 10**9"),
        trusted_in_the_recount,
    ),
    "any number of names": (replaced(check.check_targets, "contents.class_names and len", "False and len"), counted),
    "other names": (lambda patch: patch.setattr(verdict, "_other_names", nothing), compared),
}


@pytest.mark.parametrize("law", list(dict.fromkeys(law for _, law in MUTATIONS.values())), ids=lambda law: law.__name__)
def test_as_it_is_every_law_holds(law, tmp_path, monkeypatch):
    law(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mistake_turns_its_law_red(name, tmp_path, monkeypatch):
    mistake, law = MUTATIONS[name]
    mistake(monkeypatch)
    with pytest.raises((AssertionError, Exception, pytest.fail.Exception)) as red:
        law(tmp_path, monkeypatch)
    assert not isinstance(red.value, (NameError, AttributeError, ImportError)), red.value
