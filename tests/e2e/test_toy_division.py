"""A division with a theorem of its own, in the files that docs/extending.md names, goes through every surface."""

import ast
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import agnncert as ac
from agnncert.addons import addons
from agnncert.certificates.budget import Prices
from agnncert.certificates.file import read_contents
from agnncert.certificates.theorem_facts import theorem_mismatch
from agnncert.contest import checker
from agnncert.contest.file import read_contest
from agnncert.contest.form import Stays
from agnncert.contest.kinds.kind import STEPS
from agnncert.errors import CertificateError
from agnncert.report import page as build
from agnncert.report.html import checker_script, own_scripts, theorem_script
from agnncert.report.summary import summarise
from agnncert.verifier import recount_prices
from agnncert_peers.testing import check_division
from tests.e2e.browser.test_explorer import ASK_MANY, as_json, said_by_evidence
from tests.soundness.forger.forging import drafted, seal
from tests.support.lesser_end.division import LesserEnd
from tests.support.paths import PROJECT

ROOM = "tests.support.lesser_end"
ENTRY_POINTS = f"""
[agnncert.divisions]
lesser-end = {ROOM}.division:LESSER_END
[agnncert.theorem_facts]
lesser-end = {ROOM}.facts:LESSER_END
[agnncert.theorems]
lesser-end = {ROOM}.prover:THEOREMS
[agnncert.theorem_recounts]
lesser-end = {ROOM}.recount:THEOREMS
"""
AS_CONTEST = f"""
[agnncert.theorem_contests]
lesser-end = {ROOM}.contest:THEOREMS
"""
EDGES = [
    ac.Budget(add_edges=2),
    ac.Budget(add_edges=1, delete_edges=2),
    ac.Budget(change_edges=3),
    ac.Budget(delete_edges=np.inf),
]
NODES = [ac.Budget(inject_nodes=1), ac.Budget(change_features=1), ac.Budget(target_features=True)]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The toy as an installed package: what pip would leave of it, in a folder on the path."""
    package = tmp_path / "site" / "toy_division-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-division\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS + AS_CONTEST)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    addons.cache_clear()
    yield
    addons.cache_clear()


@pytest.fixture(scope="module")
def data():
    return ac.load_dataset("digits-knn")


@pytest.fixture(scope="module")
def model(data):
    return ac.fit(ac.build_model("gcn", data, hidden_channels=16), data, epochs=10)


def test_its_parts_lie_in_a_file_each_and_keep_the_wall():
    folder = PROJECT / "tests" / "support" / "lesser_end"
    for file, kept_out in (
        ("recount", ("proving", "divided")),
        ("facts", ("proving", "verifier")),
        ("prover", ("verifier",)),
        ("contest", ("proving", "verifier", "divided")),
    ):
        tree = ast.parse((folder / f"{file}.py").read_text())
        imported = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert imported
        assert not [name for name in imported if name.startswith(tuple(f"agnncert.{each}" for each in kept_out))]


def test_its_groups_depend_on_ids_only_and_a_change_moves_no_more_votes_than_it_says(installed, model, data):
    check_division(LesserEnd(5), trials=60)


def test_it_is_certified_saved_verified_and_explained(installed, model, data, tmp_path):
    certificate = ac.certify(model, data, LesserEnd(10), data.test_mask)
    assert certificate.evidence.theorem == "lesser-end/node"
    assert certificate.claim.covers == ("Edges between existing nodes added, deleted or changed.",)
    assert certificate.radius.max() > 1
    assert certificate.holds_against(ac.Budget(add_edges=1)).any()
    assert not any(certificate.holds_against(budget).any() for budget in NODES)
    certificate.save(tmp_path / "toy.cert")
    assert np.array_equal(ac.load_certificate(tmp_path / "toy.cert").radius, certificate.radius)
    assert ac.verify(tmp_path / "toy.cert").holds
    verdict = ac.verify(tmp_path / "toy.cert", data=data, model=model)
    assert verdict.holds
    assert verdict.compared == ("data", "model")
    cheapest = certificate.cheapest(Prices(add_edges=3, delete_edges=2))
    again = recount_prices.cheapest(read_contents(tmp_path / "toy.cert"), Prices(add_edges=3, delete_edges=2))
    assert cheapest.tolist() == again.tolist()
    assert len({*cheapest.tolist()}) > 2


def test_as_a_contest_it_is_checked_without_the_package_and_one_edge_more_is_refused(installed, model, data, tmp_path):
    certificate = ac.certify(model, data, LesserEnd(10), np.flatnonzero(data.test_mask)[:40])
    certificate.to_contest(tmp_path / "toy.json", EDGES + NODES)
    assert ac.check_contest(tmp_path / "toy.json").holds
    contest = read_contest(tmp_path / "toy.json")
    assert contest.attackers["graph"].counts.keys() == {"add_edges", "delete_edges", "change_edges", "machines"}
    about_edges = [said for said in contest.statements if isinstance(said, Stays) and said.attacker == "graph"]
    held = [certificate.holds_against(budget).sum() for budget in EDGES]
    assert len(about_edges) == sum(held) > 0  # and nothing is said of budgets that change nodes
    sizes = [each for each in contest.statements if isinstance(each, Stays) and each.attacker == STEPS]
    more = [replace(each, budget={**each.budget, STEPS: each.budget[STEPS] + 1}) for each in sizes]
    failures = checker.check(replace(contest, statements=tuple(more)))
    assert {failure.statement for failure in failures} == {i for i, each in enumerate(more) if each.budget[STEPS] <= 10}
    assert failures


def test_without_a_form_as_a_contest_the_export_says_what_to_register(installed, model, data, tmp_path):
    (tmp_path / "site" / "toy_division-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    addons.cache_clear()
    certificate = ac.certify(model, data, LesserEnd(10), [3, 8])
    certificate.save(tmp_path / "toy.cert")
    assert ac.verify(tmp_path / "toy.cert").holds
    with pytest.raises(CertificateError, match=r"'lesser-end/node' has no form .* under \[agnncert.theorem_contests\]"):
        certificate.to_contest(tmp_path / "toy.json")
    assert not (tmp_path / "toy.json").exists()


def test_no_attack_within_what_is_certified_succeeds(installed, model, data):
    certificate = ac.certify(model, data, LesserEnd(10), [3, 8, 20, 41])
    within = certificate.max_certified("add_edges").astype(int)
    report = ac.attack(model, data, certificate=certificate, budget=[ac.Budget(add_edges=int(size)) for size in within])
    assert not report.violations
    assert not report.succeeded.any()


def test_a_forged_radius_and_another_theorem_are_refused(installed, model, data, tmp_path):
    certificate = ac.certify(model, data, LesserEnd(10), data.test_mask)
    draft = drafted(certificate)
    draft.arrays["radius"] += 1
    seal(draft, tmp_path / "forged.cert")
    assert not ac.verify(tmp_path / "forged.cert").holds
    text = str(LesserEnd(10))
    assert theorem_mismatch("lesser-end/node", text, 10, {}) == ""
    assert "does not have" in theorem_mismatch("lesser-end/node", text, 11, {})
    assert 'has the theorem "lesser-end/node"' in theorem_mismatch("custom/node", text, 10, {"add_edges": 1})
    assert "has no theorem for the graph task" in theorem_mismatch("custom/graph", text, 10, {"add_edges": 1})
    assert theorem_mismatch("edge-centric/node", text, 10, {})


def test_without_the_package_its_files_are_refused(installed, model, data, tmp_path, monkeypatch):
    ac.certify(model, data, LesserEnd(10), [3, 8]).save(tmp_path / "toy.cert")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(tmp_path / "site")])
    addons.cache_clear()
    with pytest.raises(CertificateError, match="unknown theorem 'lesser-end/node'"):
        ac.load_certificate(tmp_path / "toy.cert")
    verdict = ac.verify(tmp_path / "toy.cert")
    assert not verdict.holds
    assert "unknown theorem 'lesser-end/node'" in str(verdict)


@pytest.mark.browser
def test_the_page_says_what_the_library_says(installed, model, data, blank_page):
    certificate = ac.certify(model, data, LesserEnd(10), data.test_mask)
    summary = summarise(certificate, None)
    meta, packed = build.page_data(summary)
    budgets = [*EDGES, *NODES]
    source = "\n".join(
        [
            checker_script(),
            theorem_script({summary.votes.theorem: summary.vote_rule}),
            *own_scripts("base", "rules", "proof", "detail", "explorer"),
        ]
    )
    case = {
        "meta": json.dumps(meta),
        "data": packed,
        "budgets": [as_json(each) for each in budgets],
        "field": "add_edges",
    }
    (said,) = blank_page.evaluate(ASK_MANY, [source, [case]])
    assert said == [said_by_evidence(certificate, each, "add_edges", turn) for turn, each in enumerate(budgets)]
    assert any(sum(answer["holds"]) > 5 for answer in said)


def test_a_page_without_a_rule_has_no_sliders(installed, model, data, tmp_path, monkeypatch):
    certificate = ac.certify(model, data, LesserEnd(10), data.test_mask)
    assert "What if…?" in ac.build_report(certificate, tmp_path / "with.html").read_text("utf-8")
    monkeypatch.setattr(type(certificate.evidence.proof), "page_rule", "")
    page = ac.build_report(certificate, tmp_path / "without.html").read_text("utf-8")
    assert "What if…?" not in page
    assert '"theorem": null' in page or '"theorem":null' in page


def test_commands_train_certify_verify_attack_and_report_it(installed, agnncert):
    words = ("--division", "lesser-end", "--groups", 8, "--model", "gcn", "--epochs", 5)
    trained = agnncert("train", "tables", *words, "--out", "runs/toy")
    assert trained.status == 0, trained.err
    for command in ("certify", "audit", "report"):
        answer = agnncert(command, "runs/toy")
        assert answer.status == 0, answer.err
    assert agnncert("verify", "runs/toy", "--require", "data,model").status == 0
    assert ac.load_certificate("runs/toy/certificate.cert").claim.division == str(LesserEnd(8))
    attacked = agnncert("attack", "runs/toy", "--sizes", "1,9", "--sample", 6)
    assert attacked.status == 0, attacked.err
    assert "No certified label fell" in attacked.out
