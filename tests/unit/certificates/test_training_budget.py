"""Attacks on training data: every kind of certificate that trusts them refuses such a budget, and says why."""

from pathlib import Path

import numpy as np
import pytest

import agnncert as ac
from agnncert.certificates.budget import COUNTS, TRAINING, Budget
from agnncert.certificates.file import read_contents
from agnncert.errors import BudgetError
from agnncert.proving.certificate import load_certificate
from agnncert.proving.evidence import Evidence
from agnncert.verdict import verify
from agnncert.verifier.kinds import checked
from tests.soundness.forger.forging import lay_open, seal
from tests.support.neighbour_count import CountEvidence
from tests.support.paths import PROJECT

GOLDEN = sorted((PROJECT / "tests/soundness/golden/v1").glob("*.cert"))
TRUSTS = [file for file in GOLDEN if not load_certificate(file).evidence.training_fields]
ids = {"ids": lambda value: value.stem if isinstance(value, Path) else str(value)}


@pytest.mark.parametrize("field", TRAINING)
@pytest.mark.parametrize("file", TRUSTS, **ids)
def test_a_certificate_that_trusts_training_data_answers_no_question_about_them(file, field):
    certificate = load_certificate(file)
    refused = rf"{field}=1.*nothing is proved about {field}.*LabelVotes for labels, IsolatedModels"
    budget = Budget(**{field: 1})
    for ask in (certificate.holds_against, certificate.possible, certificate.broken_at_most):
        with pytest.raises(BudgetError, match=refused):
            ask(budget)
    with pytest.raises(BudgetError, match=refused):
        certificate.max_certified(field)
    with pytest.raises(BudgetError, match=refused):
        certificate.max_certified("add_edges", **{field: 1})
    with pytest.raises(BudgetError, match=refused):
        certificate.measures(budget)


@pytest.mark.parametrize("file", TRUSTS, **ids)
def test_no_file_of_it_can_be_written_with_such_a_statement(file, tmp_path):
    with pytest.raises(BudgetError, match="nothing is proved about flip_labels"):
        load_certificate(file).save(tmp_path / "a.cert", [Budget(flip_labels=1)])
    assert not (tmp_path / "a.cert").exists()


@pytest.mark.parametrize("field", TRAINING)
@pytest.mark.parametrize("file", TRUSTS, **ids)
def test_a_file_of_it_with_such_a_statement_is_refused(file, field, tmp_path):
    draft = lay_open(file)
    draft.header["statements"] = [{"budget": {field: 1}, "broken_at_most": 0}]
    draft.arrays["holds"] = np.ones((1, draft.num_targets), dtype=bool)
    assert seal(draft, tmp_path / "forged.cert")
    verdict = verify(tmp_path / "forged.cert")
    assert not verdict.holds
    assert f"trusts training data ({field})" in verdict.reasons[0]


@pytest.mark.parametrize("file", TRUSTS, **ids)
def test_the_recount_answers_no_question_about_training_data(file):
    checker = checked(read_contents(file))
    with pytest.raises(BudgetError, match="trusts training data"):
        checker.possible(Budget(flip_labels=1))
    with pytest.raises(BudgetError, match="trusts training data"):
        checker.holds(Budget(poison_graphs=1))


@pytest.mark.parametrize("file", TRUSTS, **ids)
def test_the_evidence_itself_proves_nothing_about_training_data(file):
    evidence = load_certificate(file).evidence
    for at in (Budget(flip_labels=1), Budget(flip_labels=1, target_features=True)):
        try:
            answer = evidence.holds(at)
        except BudgetError:
            continue
        assert not answer.any()


@pytest.mark.parametrize("name", ["rs", "sparse-rs", "bi-rs"])
def test_nothing_in_a_table_is_proved_about_training_data(name):
    evidence = load_certificate(PROJECT / f"tests/soundness/golden/v1/{name}.cert").evidence
    assert evidence.covers(Budget())
    assert not evidence.covers(Budget(flip_labels=1))


def test_a_defence_whose_author_never_heard_of_training_data_refuses_too():
    votes = np.array([[9, 0], [0, 9]])
    evidence = CountEvidence(votes)
    assert Evidence.training_fields == ()
    assert evidence.stays_ahead(slice(None), Budget(flip_labels=1)).all()  # its author did not look at the field
    with pytest.raises(BudgetError, match="nothing is proved about flip_labels"):
        evidence.holds(Budget(flip_labels=1))
    golden = load_certificate(TRUSTS[0])
    certificate = ac.Certificate(golden.claim, evidence, np.arange(2))
    with pytest.raises(BudgetError, match="nothing is proved about flip_labels, add_labels"):
        certificate.holds_against(Budget(flip_labels=1, add_labels=2))


def test_amounts_of_poisoned_training_data_are_no_changes_of_a_graph():
    assert not set(COUNTS) & set(TRAINING)
    assert Budget(flip_labels=2, add_edges=1).training_fields == ("flip_labels",)
    assert Budget(add_edges=1).training_fields == ()


def test_attacks_change_graphs_and_no_training_data():
    data = ac.load_dataset("digits-knn")
    model = ac.build_model("gcn", data).eval()
    with pytest.raises(BudgetError, match="not what it was trained on"):
        ac.attack(model, data, ac.NodeCentric(4), targets=data.test_mask, budget=Budget(flip_labels=1))


def test_covered_fields_are_named_one_by_one():
    Budget(flip_labels=1).require_trusted_training(("flip_labels",))
    with pytest.raises(BudgetError, match="nothing is proved about remove_labels"):
        Budget(flip_labels=1, remove_labels=1).require_trusted_training(("flip_labels",))
