import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import agnncert as ac
import agnncert_code
from agnncert.errors import DatasetError, SettingsError
from agnncert_code import scanner as scanning
from agnncert_code.detector import Detector
from agnncert_code.scanner import function_graphs, printed, shown_path
from tests.support.scanned import WordCount, function, write_tree

DIVISION = ac.NodeCentric(60)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("sources") / "tree")


@pytest.fixture(scope="module")
def found(tree):
    return agnncert_code.scan(tree, WordCount(), DIVISION)


def test_every_function_has_a_verdict_and_a_place_and_trouble_is_named(found, tree):
    assert {one.place for one in found.functions} == {
        *(f"lib/one.c:{line}" for line in range(1, 57, 11)), "lib/inner/two.HPP:3", "lib/cut.cc:1",
    }  # fmt: skip
    assert set(found.skipped) == {"lib/elsewhere.c", "lib/latin.c", "lib/pipe.c"}
    assert found.partial_files == ("lib/cut.cc",)
    assert [one.file for one in found.functions if one.partial] == ["lib/cut.cc"]
    two = next(one for one in found.functions if one.name == "work_200")
    assert two.source == "static " + function(200, risky=True).rstrip("\n")
    assert (two.line, two.last_line) == (3, 12)


def test_the_most_suspicious_come_first_and_only_their_texts_are_kept(found, tree):
    ranks = [(one.label != 1, -one.score) for one in found.functions]
    assert ranks == sorted(ranks)
    few = agnncert_code.scan(tree, WordCount(), DIVISION, shown=2)
    assert [bool(one.source) for one in few.functions] == [True, True] + [False] * (len(few.functions) - 2)
    assert [one.place for one in few.functions] == [one.place for one in found.functions]


def test_votes_of_statements_are_those_of_their_groups(found):
    """Each statement's vote is what the model says about the statements of its group alone."""
    model = WordCount()
    detector = Detector(model, DIVISION)
    for one in found.functions[:4]:
        graph = function_graphs(detector, agnncert_code.functions(one.source))[0]
        groups = DIVISION.node_groups(graph).numpy()
        wanted = {}
        for row, text in enumerate(graph.node_id):
            inside = groups == groups[row]
            logits = model(graph.x[inside], None, graph.edge_index.new_zeros(int(inside.sum())))
            wanted[text.split(" ", 1)[1]] = (int(logits.argmax()), int(inside.sum()))
        assert {vote.text: (vote.vote, vote.together) for vote in one.spoke} == wanted
        assert len(one.spoke) == one.statements


def test_texts_that_were_edited_within_what_is_withstood_have_the_same_verdict(found, tmp_path):
    strong = [one for one in found.functions if 1 <= one.edited < math.inf and not one.partial]
    assert strong
    tried = 0
    for one in strong[:4]:
        lines = one.source.split("\n")
        body = [k for k, line in enumerate(lines) if line.startswith("    ") and line.endswith(";")]
        texts = []
        for k in body:
            texts.append([*lines[:k], "    goto out;", *lines[k:]])
            texts.append([*lines[:k], *lines[k + 1 :]])
            texts.append([*lines[:k], "    system(from);", *lines[k + 1 :]])
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.c").write_text("\n".join(text))
        labels = {again.label for again in agnncert_code.scan(tmp_path, WordCount(), DIVISION).functions}
        assert labels == {one.label}
        tried += len(texts)
        for file in tmp_path.glob("*.c"):
            file.unlink()
    assert tried > 50


def test_the_certificate_is_verified_with_the_functions_themselves(found, tree, tmp_path):
    found.certificates[0].save(tmp_path / "scan.cert")
    detector = Detector(WordCount(), DIVISION)
    # in the order of reading, which the target numbers tell
    ordered = sorted(found.functions, key=lambda one: one.target)
    graphs = function_graphs(detector, [agnncert_code.functions(one.source)[0] for one in ordered])
    assert ac.verify(tmp_path / "scan.cert", data=graphs, model=detector.model, recheck=math.inf).holds
    graphs[0].x = graphs[0].x.clone() + 1
    assert not ac.verify(tmp_path / "scan.cert", data=graphs).holds


def test_a_large_tree_is_certified_in_parts_with_the_same_verdicts(found, tree, monkeypatch):
    monkeypatch.setattr(scanning, "MOST_STATEMENTS", 12)
    parts = agnncert_code.scan(tree, WordCount(), DIVISION)
    assert len(parts.certificates) > 2
    assert sum(len(certificate) for certificate in parts.certificates) == len(parts.functions)
    alone = [replace(one, certificate=0, target=0) for one in found.functions]
    assert [replace(one, certificate=0, target=0) for one in parts.functions] == alone
    for one in parts.functions:
        assert parts.certificates[one.certificate].label[one.target] == one.label


def test_a_prior_lets_fewer_functions_be_named(found, tree):
    wary = agnncert_code.scan(tree, WordCount(), DIVISION, voting_rule=ac.VotingRule(prior=[4, 0]))
    assert len(wary.flagged) < len(found.flagged)
    assert all(one.votes[0] >= 4 for one in wary.functions)


def test_more_workers_read_the_same(found, tree):
    again = agnncert_code.scan(tree, WordCount(), DIVISION, workers=2)
    assert again.functions == found.functions


def test_progress_is_told(tree):
    steps = []
    agnncert_code.scan(tree, WordCount(), DIVISION, progress=steps.append)
    assert (steps[0].what, steps[-1].done) == ("scanning, in kB", steps[-1].total)
    assert steps[-1].seconds_left == 0


def test_functions_of_thousands_of_statements_are_named_and_left_out(tmp_path, monkeypatch):
    (tmp_path / "big.c").write_text("int f(int a)\n{\n" + "    a++;\n" * 3001 + "}\n" + function(1, risky=True))
    names = [f"v{k}" for k in range(100)]
    slow = f"if (a) {' = '.join(names)} = {' + '.join(names)};\n" * 400
    (tmp_path / "slow.c").write_text("int f(int a)\n{\n" + slow + "}\n")
    found = agnncert_code.scan(tmp_path, WordCount(), DIVISION)
    assert [one.name for one in found.functions] == ["work_1"]
    assert found.skipped["big.c:1"] == "is a function of 3,003 statements, more than 3,000"
    assert "that set variables" in found.skipped["slow.c:1"]


def test_what_makes_no_sense_is_refused(tree, tmp_path):
    (tmp_path / "a.c").write_text("int a;")
    for call, error, message in (
        (lambda: agnncert_code.scan(tree), SettingsError, "either run="),
        (lambda: agnncert_code.scan(tree, WordCount()), SettingsError, "either run="),
        (lambda: agnncert_code.scan(tree, WordCount(), ac.EdgeCentric(5)), SettingsError, "node-centric"),
        (lambda: agnncert_code.scan(tree, WordCount(), DIVISION, workers=0), SettingsError, "workers=0"),
        (lambda: agnncert_code.scan(tree, WordCount(), DIVISION, suspicious=2), SettingsError, "suspicious=2"),
        (
            lambda: agnncert_code.scan(tree, WordCount(), DIVISION, class_names="abc"),
            SettingsError,
            "votes for 2 classes",
        ),
        (lambda: agnncert_code.scan(tmp_path, WordCount(), DIVISION), DatasetError, "no function is defined"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_paths_are_shown_from_the_current_folder_and_act_on_no_terminal(tree, monkeypatch, tmp_path):
    monkeypatch.chdir(tree.parent)
    assert shown_path(tree / "lib" / "one.c", tree) == "tree/lib/one.c"
    monkeypatch.chdir(tmp_path)
    assert shown_path(tree / "lib" / "one.c", tree) == "lib/one.c"
    assert printed("a\x1b[2J\udcff\n.c") == "a\\x1b[2J\\xff\\n.c"


def test_statements_withstood_are_those_against_which_the_certificate_holds(found):
    certificate = found.certificates[0]
    for kind in ("edited", "inserted", "deleted", "replaced"):
        most = agnncert_code.withstood(certificate, kind)
        field = "replaced" if kind == "edited" else kind
        for count in range(8):
            holds = certificate.holds_against(agnncert_code.edits(**{field: count}))
            assert np.array_equal(holds, most >= count)


def test_with_a_group_for_each_statement_its_vote_is_its_own(tree):
    model = WordCount()
    found = agnncert_code.scan(tree / "lib" / "one.c", model, ac.PerNeighbour())
    for vote in found.functions[0].spoke:
        logits = model(torch.from_numpy(agnncert_code.features([vote.text])), None, torch.zeros(1, dtype=torch.long))
        assert (vote.vote, vote.together) == (int(logits.argmax()), 1)
    counts = [sum(vote.vote == k for vote in found.functions[0].spoke) for k in (0, 1)]
    assert tuple(counts) == found.functions[0].votes
