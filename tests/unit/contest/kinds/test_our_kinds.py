"""Our own certificates as contests: what they state follows, and one change more does not."""

import json
from dataclasses import replace

import numpy as np
import pytest

import agnncert as ac
from agnncert.certificates.file import read_contents
from agnncert.cli.export_step import export_certificate
from agnncert.contest import checker
from agnncert.contest.file import read_contest
from agnncert.contest.form import BrokenAtMost, Stays
from agnncert.contest.kinds import _RECORDS, kind_of
from agnncert.contest.kinds.kind import STEPS
from agnncert.contest.kinds.labels import weights_of
from agnncert.errors import CertificateError, IdError
from agnncert.verifier import recount_joint, recount_labels
from agnncert.verifier.recount_isolated import Views
from tests.support.joint_worlds import random_joint
from tests.support.label_cases import factored
from tests.support.paths import GOLDEN
from tests.support.trained_apart import random_record as random_apart

EXACT = sorted(file for file in GOLDEN.glob("*.cert") if read_contents(file).kind in _RECORDS)
OTHERS = sorted(set(GOLDEN.glob("*.cert")) - set(EXACT))


@pytest.mark.parametrize("file", EXACT, ids=lambda file: file.stem)
def test_a_stored_certificate_becomes_a_contest_that_holds(file, tmp_path):
    certificate = ac.load_certificate(file)
    certificate.to_contest(tmp_path / "contest.json")
    verdict = ac.check_contest(tmp_path / "contest.json")
    assert verdict, verdict
    contest = read_contest(tmp_path / "contest.json")
    labels = [target.label for target in contest.targets[: certificate.num_targets]]
    assert labels == certificate.label.tolist()
    kept = {each.target for each in contest.statements if isinstance(each, Stays)}
    assert set(np.flatnonzero(certificate.radius >= 0).tolist()) <= kept


@pytest.mark.parametrize("file", EXACT, ids=lambda file: file.stem)
def test_one_change_more_than_the_radius_is_refused(file, tmp_path):
    certificate = ac.load_certificate(file)
    certificate.to_contest(tmp_path / "contest.json", budgets=())
    contest = read_contest(tmp_path / "contest.json")
    if STEPS not in contest.attackers or certificate.claim.method == "label-votes":
        pytest.skip("the radius counts training data, which the comparison of all derivations covers")
    raised = []
    for said in contest.statements:
        assert isinstance(said, Stays)
        if certificate.radius[said.target] < kind_of(certificate.evidence).largest_size:
            budget = {name: number + 1 if name == STEPS else number for name, number in said.budget.items()}
            raised.append(replace(said, budget=budget))
    assert raised
    failures = checker.check(replace(contest, statements=tuple(raised)))
    assert {failure.statement for failure in failures} == set(range(len(raised)))


def test_a_contest_of_some_targets_counts_how_many_of_them_break(tmp_path):
    certificate = ac.load_certificate(GOLDEN / "edge-centric-node.cert")
    some = certificate.target[:5].tolist()
    budget = ac.Budget(add_edges=2)
    certificate.to_contest(tmp_path / "contest.json", [budget], some)
    contest = read_contest(tmp_path / "contest.json")
    assert [target.name for target in contest.targets] == [str(target) for target in some]
    (broken,) = (each for each in contest.statements if isinstance(each, BrokenAtMost))
    assert broken.number <= min(certificate.broken_at_most(budget), 5)
    with pytest.raises(IdError, match="no target"):
        certificate.to_contest(tmp_path / "contest.json", [budget], ["nobody"])


@pytest.mark.parametrize("file", OTHERS, ids=lambda file: file.stem)
def test_evidence_without_a_form_of_its_own_is_no_contest(file, tmp_path):
    certificate = ac.load_certificate(file)
    with pytest.raises(CertificateError, match="has no form as a contest: expected votes, stacked"):
        certificate.to_contest(tmp_path / "contest.json")
    assert not (tmp_path / "contest.json").exists()


def test_a_certificate_that_is_too_large_for_one_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checker, "MOST_STEPS", 10)
    with pytest.raises(CertificateError, match="fewer targets"):
        ac.load_certificate(GOLDEN / "node-centric-node.cert").to_contest(tmp_path / "contest.json")
    assert not (tmp_path / "contest.json").exists()


def test_the_command_writes_a_contest_beside_the_certificate(tmp_path):
    file = tmp_path / "one.cert"
    file.write_bytes((GOLDEN / "stacked-sum.cert").read_bytes())
    exported = export_certificate(file, "contest")
    assert exported.file == tmp_path / "contest.json"
    assert exported.rows == len(json.loads(exported.file.read_text())["targets"])
    assert ac.check_contest(exported.file)


def test_weights_of_labels_are_those_of_the_recount():
    rng = np.random.default_rng(3)
    for _ in range(20):
        record = factored(rng, 4, 9)
        expected = recount_labels.weights_of(record, np.arange(4)).tolist()
        assert [weights_of(record, place) for place in range(4)] == expected


def test_voters_elect_and_bear_what_the_recount_says():
    rng = np.random.default_rng(4)
    for _ in range(20):
        record = random_joint(rng)
        elected = recount_joint.elect(record)
        most = record.voters.num_candidates
        for voter in range(record.voters.num_targets):
            label, until = kind_of(record).elected(voter)
            assert label == elected.voters.label[voter]
            assert (most if until is None else until) == min(elected.fewest()[voter] - 1, most)


def test_views_elect_and_bear_what_the_recount_says():
    rng = np.random.default_rng(5)
    for _ in range(10):
        record = random_apart(rng, 10, num_models=int(rng.integers(1, 12)))
        views, kind = Views(record), kind_of(record)
        for view in range(len(record.group)):
            label, until = kind.elected(view)
            assert label == views.elected[view]
            assert (record.num_models if until is None else until) == views.to_break[view] - 1


def test_a_joint_contest_shows_what_its_voters_bear(tmp_path):
    certificate = ac.load_certificate(GOLDEN / "joint-flips.cert")
    certificate.to_contest(tmp_path / "contest.json", budgets=())
    value = json.loads((tmp_path / "contest.json").read_text())
    assert any(target["name"].startswith("voter ") for target in value["targets"])
    said = next(each for each in value["statements"] if each["attacker"] == "voters")
    said["budget"]["flip_labels"] = 10_000
    (tmp_path / "contest.json").write_text(json.dumps(value))
    assert not ac.check_contest(tmp_path / "contest.json")
