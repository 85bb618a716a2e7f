"""A defence of somebody's own, in one file and four entry points, goes through every surface unchanged."""

from pathlib import Path

import numpy as np
import pytest

import agnncert as ac
from agnncert.addons import addons
from agnncert.errors import SettingsError
from tests.support.neighbour_count import NeighbourCount

MODULE = "tests.support.neighbour_count"
ENTRY_POINTS = f"""
[agnncert.defences]
neighbour-count = {MODULE}:NeighbourCount
[agnncert.defence_names]
neighbour-count = {MODULE}:NeighbourCount
[agnncert.evidence]
neighbour-count = {MODULE}:CountEvidence
[agnncert.verifier]
neighbour-count = {MODULE}:CountFile
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The toy as an installed package: what pip would leave of it, in a folder on the path."""
    package = tmp_path / "site" / "toy_defence-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-defence\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    addons.cache_clear()
    yield tmp_path / "site"
    addons.cache_clear()


@pytest.fixture(scope="module")
def data():
    return ac.load_dataset("digits-knn")


@pytest.fixture(scope="module")
def model(data):
    trained = ac.fit(ac.build_model("mlp", data, hidden_channels=16), data, NeighbourCount(), epochs=10)
    assert trained.training_record["epochs_run"] == 10
    return trained


def test_it_is_trained_certified_saved_and_verified(installed, data, model, tmp_path):
    certificate = ac.certify(model, data, NeighbourCount(), data.test_mask)
    assert certificate.radius.max() > 1
    held = certificate.holds_against(ac.Budget(add_edges=2, delete_edges=1))
    assert 0 < held.sum() < len(held)
    certificate.save(tmp_path / "toy.cert")
    assert np.array_equal(ac.load_certificate(tmp_path / "toy.cert").radius, certificate.radius)
    alone = ac.verify(tmp_path / "toy.cert")
    assert alone.holds
    assert "whether a model counted these votes: pass data and model" in alone.not_checked
    verdict = ac.verify(tmp_path / "toy.cert", data=data, model=model)
    assert verdict.holds
    assert verdict.compared == ("data", "model")
    other = ac.fit(ac.build_model("mlp", data, hidden_channels=16, seed=1), data, NeighbourCount(), epochs=2)
    assert not ac.verify(tmp_path / "toy.cert", data=data, model=other).holds


def test_it_is_audited(data, model):
    assert ac.audit(model, data, NeighbourCount()).ok


def test_it_is_attacked(installed, data, model):
    certificate = ac.certify(model, data, NeighbourCount(), [3, 8, 20, 41])
    assert certificate.radius.min() >= 0
    for more, succeed in ((0, False), (1, True)):
        within = certificate.max_certified("add_edges").astype(int)
        budgets = [ac.Budget(add_edges=int(size) + more) for size in within]
        report = ac.attack(model, data, certificate=certificate, budget=budgets)
        assert not report.violations
        assert report.succeeded.any() == succeed
    with pytest.raises(SettingsError, match=r"and NeighbourCount.* has none"):
        ac.attack(model, data, certificate=certificate, budget=budgets, kind="gradient")


def test_what_it_cannot_do_it_says_in_the_same_words_everywhere(data, model):
    with pytest.raises(SettingsError, match="because nobody has written it for a toy"):
        NeighbourCount().live(model, data)
    with pytest.raises(SettingsError, match="cannot explain a decision, because"):
        NeighbourCount().explain(model, data, 0)
    with pytest.raises(SettingsError, match="cannot be given a voting rule"):
        ac.fit(ac.build_model("mlp", data), data, NeighbourCount().with_voting_rule(ac.VotingRule()), epochs=1)
    with pytest.raises(SettingsError, match="has no such setting; leave it out"):
        ac.certify(model, data, NeighbourCount(), voting_rule=ac.VotingRule())


def test_it_stands_in_a_comparison(installed, data):
    comparison = ac.compare(
        data,
        [NeighbourCount(), ac.NodeCentric(20)],
        against="edges",
        sizes=[0, 1, 2],
        model="mlp",
        fit={"epochs": 5},
        references=False,
    )
    toy, division = comparison.rows
    assert toy["accuracy"] > 0.5
    for row in (toy, division):
        assert row["certified"][0] == pytest.approx(row["accuracy"], abs=0.02)  # a tie may be certified against nothing
        assert row["certified"][0] >= row["certified"][1] >= row["certified"][2] > 0


def test_it_has_a_report(installed, data, model, tmp_path):
    certificate = ac.certify(model, data, NeighbourCount(), data.test_mask)
    ac.build_report(certificate, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "one neighbour that comes, goes or has other features" in page


def test_commands_train_certify_verify_audit_and_report_it(installed, agnncert):
    words = ("--defence", "neighbour-count", "--set", "defence.weight=2", "--model", "mlp", "--epochs", 5)
    trained = agnncert("train", "tables", *words, "--out", "runs/toy")
    assert trained.status == 0, trained.err
    for command in ("certify", "audit", "report"):
        answer = agnncert(command, "runs/toy")
        assert answer.status == 0, answer.err
    assert agnncert("verify", "runs/toy", "--require", "data,model").status == 0
    certificate = ac.load_certificate("runs/toy/certificate.cert")
    assert certificate.claim.notes == ("NeighbourCount(weight=2)",)
    attacked = agnncert("attack", "runs/toy", "--sizes", "1,9", "--sample", 6)
    assert attacked.status == 0, attacked.err
    assert "No certified label fell" in attacked.out
    assert "| division | neighbour-count |" in Path("runs/toy/MODEL_CARD.md").read_text()
    division = agnncert("certify", "runs/toy", "--division", "node", "--groups", 5, "--no-report")
    assert division.status == 0, division.err
    again = agnncert("certify", "runs/toy", "--no-report", "--set", "defence.weight=4")
    assert again.status == 0, again.err
    assert ac.load_certificate("runs/toy/certificate.cert").claim.notes == ("NeighbourCount(weight=4)",)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--prior 3", "cannot be given a voting rule, because"),
        ("--groups 5", '"groups" belongs to --division edge, node'),
        ("--set defence.folds=2", '"folds" belongs to --division stacked'),
        ("--trusted known", '"trusted" belongs to --division stacked'),
    ],
)
def test_commands_say_what_it_has_not(installed, agnncert, words, said):
    with Path("tables/edges.csv").open() as file:
        source, *rows = file.read().split()
    Path("tables/edges.csv").write_text("\n".join([f"{source},known", *(f"{row},1" for row in rows)]) + "\n")
    answer = agnncert("train", "tables", "--set", "edge_feature=none", "--division", "neighbour-count", *words.split())
    assert answer.status == 2
    assert said in " ".join(answer.err.split())
