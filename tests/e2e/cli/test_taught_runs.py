"""A run with a teacher: from ``train --teach`` to a verified certificate, in all files that it leaves."""

import json
import random
from pathlib import Path

import pytest

import agnncert as ac
from agnncert.cli import main
from agnncert.datasets.teaching_record import Teaching

QUICK = ("--epochs", 10, "--set", "teachers=2")


def write_accounts(folder: Path, nodes: int = 240) -> Path:
    """Accounts that deal with their own kind. Only every third one has a label."""
    rng = random.Random(3)
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [rng.randrange(2) for _ in range(nodes)]
    rows = []
    for k, kind in enumerate(kinds):
        label = ("good", "bad")[kind] if k % 3 == 0 else ""
        rows.append(f"n{k},{kind + rng.gauss(0, 1.5):.3f},{rng.gauss(0, 1):.3f},{label}")
    pairs = [rng.sample(range(nodes), 2) for _ in range(8 * nodes)]
    edges = [f"n{a},n{b}" for a, b in pairs if kinds[a] == kinds[b]]
    (folder / "nodes.csv").write_text("\n".join(["id,a,b,label", *rows]) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n", encoding="utf-8")
    return folder


def run(*arguments) -> int:
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "defence",
    [
        ("--division", "node", "--groups", 5),
        ("--division", "stacked", "--set", "defence.folds=2", "--set", "defence.epochs=20"),
    ],
    ids=["division", "stacked"],
)
def test_a_taught_run_says_so_in_everything_that_it_leaves(defence, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    # So that taught nodes decide about the shape of stacked votes: there are more of them, and fewer given labels.
    monkeypatch.setattr("agnncert.stacked.settings.MANY_ROWS", 100)
    accounts = write_accounts(tmp_path / "accounts")
    assert run("train", accounts, "--teach", "gcn", *defence, *QUICK, "--out", "run") == 0
    said = capsys.readouterr()
    assert "validation accuracy of the teacher" in said.out
    assert "has labelled 160 nodes" in Path("run/log.txt").read_text()
    stored = json.loads(Path("run/weights.json").read_text())["provenance"]["training"]["teaching"]
    teaching = Teaching.from_json(stored)
    assert (teaching.teacher, len(teaching.weights), teaching.num_taught) == ("gcn", 2, 160)
    assert teaching.protocol == "held-out"
    assert "| teacher | gcn, 2 of them, which read" in Path("run/MODEL_CARD.md").read_text()

    assert run("certify", "run") == 0
    certificate = ac.load_certificate("run/certificate.cert")
    assert certificate.claim.notes[-1] == teaching.note
    assert (certificate.truth >= 0).all()  # test nodes alone, none of which was taught
    card = Path("run/MODEL_CARD.md").read_text()
    assert f"- {teaching.note}" in card.split("## Not covered")[1]
    assert teaching.note in Path("run/report.html").read_text()

    capsys.readouterr()
    assert run("verify", "run") == 0
    assert "what the claim says about the teacher" in capsys.readouterr().out


def test_an_interrupted_teacher_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    accounts = write_accounts(tmp_path / "accounts")
    command = ("train", accounts, "--teach", "gcn", "--division", "node", "--groups", 5, *QUICK, "--no-references")
    assert run(*command, "--out", "whole") == 0
    from agnncert.cli import train_step

    teach = train_step.teach

    def stopped_in_the_second(*arguments, **settings):
        def stop(step):
            if step.what == "teacher 2 of 2" and step.done == 5:
                raise KeyboardInterrupt

        return teach(*arguments, **{**settings, "progress": stop})

    monkeypatch.setattr(train_step, "teach", stopped_in_the_second)
    assert run(*command, "--out", "parts") != 0
    assert "the same command continues from there" in capsys.readouterr().err
    monkeypatch.setattr(train_step, "teach", teach)
    assert run(*command, "--out", "parts") == 0
    assert "going on from teacher-teacher-1.checkpoint, after epoch 5" in Path("parts/log.txt").read_text()
    assert Path("whole/weights.safetensors").read_bytes() == Path("parts/weights.safetensors").read_bytes()
    assert not list(Path("parts").glob("*.checkpoint"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--teach", "gcn", "--set", "protocol=transductive"), "is no robustness"),
        (("--set", "teachers=2"), "belongs to --teach"),
        (("--set", "class_shares=predicted"), "belongs to --teach"),
        (("--teach", "gcn", "--set", "class_shares=true"), "class_shares"),
        (("--teach", "gcn", "--set", "teachers=0"), "from 1 on"),
        (("--teach", "gnc"), "gcn"),
    ],
)
def test_what_cannot_be_taught_is_refused(options, words, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    accounts = write_accounts(tmp_path / "accounts")
    assert run("train", accounts, "--epochs", 2, *options, "--out", "run") == 2
    assert words in capsys.readouterr().err
    assert not Path("run").exists()


def test_data_without_unlabelled_nodes_is_refused_and_no_folder_stays(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("train", "digits-knn", "--teach", "gcn", "--epochs", 2, "--out", "run") == 2
    assert "no node is left to teach" in capsys.readouterr().err
    assert not Path("run").exists()


def test_tables_in_which_every_node_has_a_part_are_taught_once_the_other_test_nodes_have_none(
    tmp_path, monkeypatch, capsys
) -> None:
    """What ``teach(targets=…)`` does in Python: only the accounts that are certified are hidden."""
    monkeypatch.chdir(tmp_path)
    accounts = write_accounts(tmp_path / "accounts")
    head, *rows = (accounts / "nodes.csv").read_text().split()
    kinds = [row.removesuffix(",good").removesuffix(",bad").rstrip(",") for row in rows]

    def write(asked: int) -> None:
        lines = [f"{head},split"]
        for k, kind in enumerate(kinds):
            part = ("train", "val", "test", "test")[k % 4]
            named = part != "test" or k < asked
            lines.append(f"{kind},{('good', 'bad')[k % 2]},{part}" if named else f"{kind},,")
        (accounts / "nodes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    command = ("train", accounts, "--teach", "gcn", "--division", "node", "--groups", 5, *QUICK, "--out", "run")
    write(asked=240)
    assert run(*command) == 2
    assert "leave the label and the split of the other test nodes empty" in " ".join(capsys.readouterr().err.split())
    write(asked=40)
    assert run(*command) == 0
    assert "has labelled 100 nodes" in Path("run/log.txt").read_text()
    assert run("certify", "run", "--no-report") == 0
    assert len(ac.load_certificate("run/certificate.cert")) == 20
