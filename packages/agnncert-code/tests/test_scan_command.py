"""A source tree is scanned with a run, by command."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from agnncert.cli import main
from agnncert.proving.certificate import load_certificate
from tests.support.sarif import check_log
from tests.support.scanned import function, write_corpus, write_tree

FAST = ("--groups", 60, "--epochs", 30, "--no-references", "--set", "hidden_channels=16")
MODULE = """
from pathlib import Path

import torch
from torch_geometric.nn import global_mean_pool

Path("executed").touch()


class Net(torch.nn.Module):
    def __init__(self, in_channels, out_channels, width=8):
        super().__init__()
        self.one, self.two = torch.nn.Linear(in_channels, width), torch.nn.Linear(width, out_channels)

    def forward(self, x, edge_index, batch):
        return global_mean_pool(self.two(self.one(x).relu()), batch)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What someone has made elsewhere: a vote of statements and two networks; the data is not needed any more."""
    place, before, paths = tmp_path_factory.mktemp("made"), Path.cwd(), list(sys.path)
    os.chdir(place)
    (place / "nets.py").write_text(MODULE)
    write_corpus(place / "data")
    for out, model in (("plain", ()), ("own", ("--model", "nets:Net"))):
        words = FAST if not model else FAST[:-2]
        status = main([str(w) for w in ("train", "big-vul", "--root", "data", *words, *model, "--out", f"runs/{out}")])
        assert status == 0
    assert main(["scan", "--fit", "--root", "data", "--run", "runs/votes"]) == 0
    shutil.copytree("runs/plain", "runs/measured")
    assert main(["scan", "--measure", "--root", "data", "--run", "runs/measured"]) == 0
    shutil.rmtree(place / "data")
    os.chdir(before)
    sys.path[:] = paths
    sys.modules.pop("nets", None)
    return place


@pytest.fixture
def tree(place, made):
    shutil.copytree(made / "runs", place / "runs")
    (place / "nets.py").write_text(MODULE)
    return write_tree(place / "tree")


@pytest.mark.parametrize("run", ["runs/votes", "runs/plain"])
def test_a_tree_is_scanned_and_everything_is_written(agnncert, tree, run):
    done = agnncert("scan", "tree", "--run", run, "--sarif", "out/x.sarif", "--top", 3)
    assert done.status == 0, done.err
    assert " of 8 functions look vulnerable" in done.out
    assert "skipped: tree/lib/latin.c is not UTF-8 (byte 0xe9 in line 3)" in done.out
    assert "1 file could be parsed only in part" in done.out
    out = Path("runs/scan-tree")
    assert sorted(file.name for file in out.iterdir()) == ["certificate.cert", "report.html", "scan.json"]
    verdicts = json.loads((out / "scan.json").read_text())
    found = load_certificate(out / "certificate.cert")
    assert len(found) == len(verdicts["functions"]) == 8
    check_log(json.loads(Path("out/x.sarif").read_text()))
    verified = agnncert("verify", out)
    assert (verified.status, "6 stated budgets" in verified.out) == (0, True)


@pytest.mark.parametrize("run", ["runs/votes", "runs/plain"])
def test_functions_that_copy_without_a_limit_are_named_and_a_build_is_told(agnncert, tree, run):
    scan = ("scan", "tree/lib/one.c", "--run", run, "--json")
    done = agnncert(*scan, "--fail-on", 0)
    rows = json.loads(done.out)["functions"]
    risky = {f"work_{k}" for k in range(100, 106) if k % 3 == 0}
    assert {row["name"] for row in rows if row["label"] == "vulnerable"} == risky
    assert {row["name"] for row in rows[: len(risky)]} == risky
    assert done.status == 1
    most = max(row["edited"] for row in rows if row["label"] == "vulnerable")
    assert most >= 1
    assert agnncert(*scan, "--fail-on", most).status == 1
    assert agnncert(*scan, "--fail-on", most + 1).status == 0


def test_a_build_passes_if_nothing_looks_vulnerable(agnncert, tree):
    Path("fine").mkdir()
    Path("fine/a.c").write_text(function(300, risky=False))
    Path("fine/test").mkdir()
    Path("fine/test/b.c").write_text(function(301, risky=True))
    done = agnncert("scan", "fine", "--run", "runs/plain", "--fail-on", 0, "--exclude", "test")
    assert (done.status, "--fail-on 0: 0 functions look vulnerable." in done.out) == (0, True)


def test_a_second_scan_replaces_the_first_and_nothing_else(agnncert, tree):
    for _ in range(2):
        assert agnncert("scan", "tree", "--run", "runs/plain", "--out", "out").status == 0
    for place in ("runs/plain", "tables", "mine.py"):
        refused = agnncert("scan", "tree", "--run", "runs/plain", "--out", place)
        assert refused.status == 2
        assert "choose another --out" in refused.err


def test_code_that_a_folder_from_elsewhere_names_is_run_only_with_the_users_word(agnncert, tree):
    refused = agnncert("scan", "tree", "--run", "runs/own")
    assert refused.status == 2
    assert "--model nets:Net" in refused.err
    assert not Path("executed").exists()
    assert agnncert("scan", "tree", "--run", "runs/own", "--model", "nets:Net").status == 0
    assert Path("executed").exists()


def test_what_cannot_be_scanned_is_told(agnncert, tree, certified):
    for words, message in (
        (("tree", "--run", "runs/none"), "is not the folder of a detector"),
        (("tree", "--run", certified), "whose graphs are no functions"),
        (("--run", "runs/votes"), "name a FOLDER"),
        (("tree", "--run", "runs/votes", "--prior", "1,2,3"), "--prior 1,2,3"),
        (("--fit", "--run", "runs/plain"), "holds no vote of statements"),
        (("--fit", "--run", "runs/new", "--root", "."), "big-vul is not on this machine"),
        (("nowhere", "--run", "runs/plain"), "does not exist"),
        (("tables", "--run", "runs/plain"), "there is no C or C++ file"),
        (("tree", "--run", "runs/plain", "--fail-on", -1), "--fail-on -1"),
        (("tree", "--run", "runs/plain", "--language", "java"), "--language java"),
    ):
        answer = agnncert("scan", *words)
        assert answer.status == 2
        assert message in answer.err


def test_a_run_of_another_version_is_refused(agnncert, tree):
    about = Path("runs/plain/data.json")
    about.write_text(about.read_text().replace('"features": 327', '"features": 300'))
    assert "300 features" in agnncert("scan", "tree", "--run", "runs/plain").err
    Path("runs/plain/weights.safetensors").unlink()
    about.write_text(about.read_text().replace('"features": 300', '"features": 327'))
    assert "has no weights yet" in agnncert("scan", "tree", "--run", "runs/plain").err


@pytest.mark.parametrize("run", ["runs/votes", "runs/measured"])
def test_the_measured_accuracy_is_stated_everywhere_beside_that_of_function_length(agnncert, tree, run):
    done = agnncert("scan", "tree", "--run", run, "--out", "out", "--sarif", "x.sarif")
    stored = json.loads(Path(run, "accuracy.json").read_text())["accuracy"]
    assert (stored["functions"], stored["data"]) == (4, "big-vul")
    assert json.loads(Path("out/scan.json").read_text())["accuracy"] == stored
    driver = json.loads(Path("x.sarif").read_text())["runs"][0]["tool"]["driver"]
    assert driver["properties"]["detectorAccuracy"] == stored
    for text in (done.out, Path("out/report.html").read_text(), driver["rules"][0]["help"]["text"]):
        assert "Measured on the 4 test functions of big-vul" in text
        assert "the length of a function alone" in text


@pytest.mark.parametrize("words", [("runs/plain",), ("runs/votes", "--prior", "100,0"), ("runs/trained-again",)])
def test_an_accuracy_that_was_not_measured_with_this_vote_is_unknown(agnncert, tree, words):
    shutil.copytree("runs/own", "runs/trained-again")
    shutil.copy("runs/measured/accuracy.json", "runs/trained-again")
    model = ("--model", "nets:Net") if words[0] == "runs/trained-again" else ()
    done = agnncert("scan", "tree", "--run", *words, *model, "--out", "out", "--sarif", "x.sarif")
    assert done.status == 0, done.err
    assert json.loads(Path("out/scan.json").read_text())["accuracy"] is None
    for text in (done.out, Path("out/report.html").read_text(), Path("x.sarif").read_text()):
        assert "The accuracy of this detector is unknown" in text


@pytest.mark.parametrize("run", ["runs/votes", "runs/plain"])
def test_a_prior_can_be_chosen(agnncert, tree, run):
    rows = [
        json.loads(agnncert("scan", "tree", "--run", run, "--json", *words).out) for words in ((), ("--prior", "100,0"))
    ]
    assert rows[0]["flagged"] > rows[1]["flagged"] == 0


def test_a_damaged_accuracy_is_refused(agnncert, tree):
    file = Path("runs/votes/accuracy.json")
    for old, new in (('"tokens": ', '"tokens": -'), ('"big-vul"', '"\\u001b[2J"'), ("{", "[")):
        kept = file.read_text()
        file.write_text(kept.replace(old, new))
        assert "accuracy.json is damaged" in agnncert("scan", "tree", "--run", "runs/votes").err
        file.write_text(kept)
