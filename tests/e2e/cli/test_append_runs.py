"""Append-only scores from the command line: from a table of payments to a guaranteed threshold, and all that follows."""

import json
import random
import shutil
from pathlib import Path

import pytest

import agnncert as ac
from agnncert.cli import main

AMOUNTS = ("--set", "edge_feature=amount", "--set", "repeated=sum")
KEPT = (*AMOUNTS, "--set", "keep=0.5", "--set", "keep_for=fraud")
QUICK = ("--set", "defence.trees=30", "--set", "defence.ensembles=1", "--no-references")
GUARANTEE = ("--false-positive-rate", 0.2, "--confidence", 0.9)


def write_payments(folder: Path, accounts: int = 300) -> Path:
    """Accounts of which one in ten is paid round amounts, mostly."""
    rng = random.Random(0)
    folder.mkdir(parents=True)
    nodes = [f"n{k},{rng.gauss(0, 1):.2f},{'fraud' if k % 10 == 0 else 'honest'}" for k in range(accounts)]
    edges = []
    for _ in range(6 * accounts):
        payer, payee = rng.sample(range(accounts), 2)
        is_round = payee % 10 == 0 and rng.random() < 0.8
        edges.append(f"n{payer},n{payee},{100 * rng.randint(1, 9) if is_round else rng.randint(1, 999)}")
    (folder / "nodes.csv").write_text("\n".join(["id,age,label", *nodes]) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(["source,target,amount", *edges]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a guaranteed threshold under the threat "ledger", of which tests get copies."""
    folder = tmp_path_factory.mktemp("append")
    write_payments(folder / "payments")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        settings = ("--division", "append-only", "--set", "directed=true", "--set", "defence.threat=ledger", *KEPT)
        assert main(["train", "payments", *map(str, (*settings, *QUICK)), "--out", "run"]) == 0
        assert main(["certify", "run", *map(str, GUARANTEE)]) == 0
    return folder


@pytest.fixture
def run(place: Path, run_once: Path) -> Path:
    shutil.copytree(run_once / "payments", place / "payments")
    return Path(shutil.copytree(run_once / "run", "run"))


def told(answer) -> dict:
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def test_a_run_says_what_it_promises_and_verifies(agnncert, run) -> None:
    certificate = ac.load_certificate(run / "certificate.cert")
    assert certificate.claim.threshold.confidence == 0.9
    flagged = certificate.label == certificate.claim.threshold.positive
    assert flagged.any()
    assert not flagged.all()
    assert (certificate.radius == flagged.astype(int) - 1).all()
    promised = "of fraud stays caught when an attacker appends any number of rows and accounts"
    shown = agnncert("show", run / "certificate.cert")
    assert promised in shown.out
    assert promised in (run / "report.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert promised in str(certificate)
    verdict = told(agnncert("verify", run, "--require", "data,model", "--json"))
    assert any("row by row by a second program" in one for one in verdict["checked"])
    assert told(agnncert("verify", run / "certificate.cert", "--json"))["checked"]


def test_tables_of_a_run_have_the_column_that_says_something(agnncert, run) -> None:
    answer = told(agnncert("report", run, "--json"))
    assert "when an attacker appends any number of rows and accounts" in answer["sentences"][0]
    said = agnncert("report", run).out
    assert "certified at number of deleted pairs of accounts" in said
    row = next(line for line in said.splitlines() if line.startswith("recall of fraud"))
    plain, certified = row.replace("recall of fraud", "").replace("%", "").split()
    assert plain == certified != "0.0"
    nothing = agnncert("diff", run, run)
    assert nothing.status == 0
    assert "Nothing changed at size 0" in nothing.out
    line = next(line for line in nothing.out.splitlines() if line.startswith("fraud")).split()
    assert line[3] == line[4] != "0"  # certified before and now


def test_new_payments_are_scored_exported_and_explained(agnncert, run) -> None:
    certificate = ac.load_certificate(run / "certificate.cert")
    flagged = certificate.target[certificate.label == certificate.claim.threshold.positive]
    victim = flagged[0]
    with Path("payments/edges.csv").open("a", encoding="utf-8") as file:  # camouflage: odd amounts to strangers
        file.writelines(f"{victim},n{k},{7 * k + 1}\n" for k in range(1, 60) if f"n{k}" != victim)
    assert agnncert("score", run, "payments").status == 0
    lines = Path("scores.csv").read_text(encoding="utf-8").splitlines()
    names = lines[0].split(",")
    labels = {one.split(",")[0]: one.split(",")[names.index("class_name")] for one in lines[1:]}
    assert labels[str(victim)] == "fraud"
    exported = agnncert("export", run, "--to", "csv", "--out", "flags.csv")
    assert exported.status == 0, exported.err
    assert len(Path("flags.csv").read_text(encoding="utf-8").splitlines()) == certificate.num_targets + 1
    explained = agnncert("explain", run, victim)
    assert explained.status == 0, explained.err


def test_the_usual_threat_fits_edges_without_direction_and_ledger_is_refused_before_training(agnncert, place) -> None:
    write_payments(place / "payments")
    plain = agnncert("train", "payments", "--division", "append-only", *KEPT, *QUICK, "--out", "plain")
    assert plain.status == 0, plain.err
    assert "training append-only(threat=fresh, deletions=0)" in plain.err + plain.out
    assert agnncert("certify", "plain", *GUARANTEE).status == 0
    assert agnncert("verify", "plain").status == 0
    for refused in (
        agnncert(
            "train", "payments", "--division", "append-only", "--set", "defence.threat=ledger", "--out", "no", *AMOUNTS
        ),
        agnncert(
            "compare", "payments", "--defence", "append-only:threat=ledger", "--defence", "node:num_groups=5", *AMOUNTS
        ),
    ):
        assert refused.status == 2
        assert 'pass threat="fresh"' in refused.err
        assert "directed=True" in refused.err
        assert "training" not in refused.err + refused.out
        assert "1 of" not in refused.err
    assert not Path("no").exists()


def test_settings_of_one_of_several_defences_stand_after_its_name(agnncert, place) -> None:
    write_payments(place / "payments")
    refused = agnncert("compare", "payments", "--set", "defence.threat=grow", "--defence", "append-only")
    assert refused.status == 2
    assert "--defence NAME:threat=grow" in refused.err
    small = "append-only:threat=grow,trees=10,ensembles=1"
    shown = agnncert("compare", "payments", "--defence", small, "--no-references", "--out", "compared", *AMOUNTS)
    assert shown.status == 0, shown.err
    assert "append-only(threat=grow" in shown.out
