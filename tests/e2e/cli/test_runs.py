"""Run folders: what is in them, and how runs are resumed, repeated and compared."""

import csv
import io
import json
import logging
import signal
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import agnncert as ac
import agnncert.study as fitting
from agnncert.cli.folder import RunFolder, open_run
from agnncert.cli.screen import Screen, _Lines
from agnncert.fitting import fit
from agnncert.graphs import canonical
from agnncert.progress import Progress
from tests.support import programs

FAST = ("--groups", "12", "--no-references")


def test_a_run_leaves_all_its_traces_in_one_folder(agnncert, certified) -> None:
    assert sorted(file.name for file in certified.iterdir()) == [
        "MODEL_CARD.md", "certificate.cert", "data", "data.json", "environment.json", "log.txt", "report.html",
        "results.csv", "results.jsonl", "settings.toml", "weights.json", "weights.safetensors",
    ]  # fmt: skip


def test_the_model_card_tells_what_the_folder_knows(agnncert, certified) -> None:
    card, known = (certified / "MODEL_CARD.md").read_text(), json.loads((certified / "data.json").read_text())
    assert "# Model card: gcn on tables" in card
    assert known["digest"] in card
    assert "accuracy of the vote" in card
    assert "seconds of training" in card  # of both steps
    assert "| subgraphs | 12 |" in card
    assert "agnncert train --settings settings.toml" in card
    told = json.loads(agnncert("report", certified, "--json").out)
    for sentence in (told["sentences"][0], *told["sentences"][1].split("\n")):
        assert f"\n{sentence}\n" in card
    assert "    recall of " in card
    assert "- Robustness against changes of the target's own features" in card
    assert f"train {known['split']['train']:,}, val" in card
    assert "| approved by | not stated ('agnncert issue' states it) |" in card
    assert agnncert("issue", certified, "--by", "Ann", "--system", "scoring", "--until", "2999-01-01").status == 0
    handed_over = (certified / "issued" / "MODEL_CARD.md").read_text()
    for words in ("| system that it is for | scoring |", "| approved by | Ann |", "Valid until 2999-01-01."):
        assert words in handed_over


def test_edges_of_both_directions_count_once(certified) -> None:
    about, tables = json.loads((certified / "data.json").read_text()), certified / "data"
    lines = (tables / "edges.csv").read_text().split()[1:]
    assert about["edges"] == len({frozenset(line.split(",")[:2]) for line in lines})


def test_what_is_proved_is_said_without_a_report_too(agnncert, certified) -> None:
    answer = agnncert("certify", certified, "--no-report")
    assert "when an attacker" in answer.out
    assert "recall of " in answer.out
    assert "Report:" not in answer.out


def test_each_certificate_in_a_folder_has_its_own_page(agnncert, certified, tmp_path) -> None:
    for name in ("certificate.cert", "other.cert"):
        (tmp_path / name).write_bytes((certified / "certificate.cert").read_bytes())
        assert agnncert("report", tmp_path / name).status == 0
    assert sorted(file.name for file in tmp_path.glob("*.html")) == ["other.html", "report.html"]


def test_show_tells_what_becomes_of_each_class(agnncert, certified) -> None:
    assert "recall of " in agnncert("show", certified).out
    classes = json.loads(agnncert("show", certified, "--json").out)["classes"]
    assert {"size", "class", "targets", "recall", "precision", "false_positive_rate"} <= set(classes[0])


def test_show_and_diff_refuse_to_answer_about_training_data_that_the_defence_trusts(agnncert, certified) -> None:
    for words in (("show", certified), ("diff", certified, certified)):
        answer = agnncert(*words, "--budget", "flip_labels=1")
        assert answer.status == 2
        assert "nothing is proved about flip_labels" in " ".join(answer.err.split())


def test_show_answers_about_a_budget_and_about_prices(agnncert, certified) -> None:
    certificate = ac.load_certificate(certified / "certificate.cert")
    possible = certificate.possible(ac.Budget(add_edges=1, delete_edges=float("inf")))
    asked = (
        "--budget",
        "add_edges=1",
        "--budget",
        "delete_edges=inf",
        "--price",
        "add_edges=2",
        "--price",
        "delete_edges=1",
    )
    answer = json.loads(agnncert("show", certified, *asked, "--json").out)
    assert answer["labels_that_hold"] == (possible.sum(axis=1) == 1).sum()
    assert answer["excluded"] == {str(k): int(number) for k, number in enumerate((~possible).sum(axis=0))}
    cost = certificate.cheapest(ac.Prices(add_edges=2, delete_edges=1))
    assert answer["prices"]["any label"][0] == cost.min()
    words = agnncert("show", certified, *asked).out
    assert "labels cannot change" in words
    assert "that changes a label" in words
    assert "did you mean" in agnncert("show", certified, "--price", "add_edge=2").err


def test_a_budget_that_a_certificate_is_not_about_is_named(agnncert) -> None:
    about_labels = Path(__file__).parents[2] / "soundness" / "golden" / "v1" / "labels-flips.cert"
    words = agnncert("show", about_labels, "--budget", "add_edges=1").out
    assert "proves nothing about such attacks. It is about one training label" in words
    assert "labels cannot change" in agnncert("show", about_labels, "--budget", "flip_labels=1").out


def test_work_that_has_a_line_has_one_when_it_is_done(capsys) -> None:
    show = _Lines()
    for done in (0, 30, 60):
        show(Progress("training", done, 60, seconds_left=60.0 - done))
    show(Progress("short work", 1, 1, seconds_left=0.0))
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "training: 0 of 60",
        "training: 60 of 60",
    ]


def test_work_that_ends_early_says_so(capsys) -> None:
    show = _Lines()
    show(Progress("training", 1, 60, seconds_left=60.0))
    show(Progress("training", 23, 60, seconds_left=1.0))
    show(Progress("short work", 1, 2, seconds_left=0.0))
    show.close()
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "training: 1 of 60",
        "training: ended after 23 of 60",
    ]


def test_log_lines_go_through_the_stream_of_the_moment_so_that_no_bar_is_torn(monkeypatch) -> None:
    with Screen().following():
        monkeypatch.setattr(sys, "stdout", now := io.StringIO())  # as a bar does while it is drawn
        logging.getLogger("agnncert.cli").info("trained")
    assert now.getvalue() == "trained\n"


def test_the_environment_names_versions_but_no_machine(certified, place) -> None:
    told = json.loads((certified / "environment.json").read_text())
    assert {"agnncert", "python", "torch", "torch_geometric", "system", "cpus"} <= set(told)
    assert str(place) not in json.dumps(told)


def test_results_are_the_same_in_both_formats(certified) -> None:
    lines = [json.loads(line) for line in (certified / "results.jsonl").read_text().splitlines()]
    with (certified / "results.csv").open() as file:
        table = list(csv.DictReader(file))
    assert len(lines) == len(table) > 10
    for line, row in zip(lines, table, strict=True):
        assert float(row["value"]) == pytest.approx(line["value"])
        assert row["measure"] == line["measure"]
    sizes = [line["size"] for line in lines if line["measure"] == "certified accuracy"]
    assert sizes[0] == 0
    assert sizes == sorted(sizes)


def test_what_is_printed_is_in_the_file(agnncert, trained) -> None:
    told = json.loads(agnncert("certify", trained, "--json").out)
    rows = [json.loads(line) for line in (trained / "results.jsonl").read_text().splitlines()]
    assert told["results"] == [row for row in rows if row["step"] == "certify"]


def test_certifying_a_run_brings_its_graph_into_canonical_form_once(agnncert, trained, monkeypatch) -> None:
    sizes, ordered = [], canonical._ordered
    monkeypatch.setattr(canonical, "_ordered", lambda data, *how: sizes.append(data.num_nodes) or ordered(data, *how))
    assert agnncert("certify", trained).status == 0
    whole = json.loads((trained / "data.json").read_text())["nodes"]
    assert sizes.count(whole) == 1  # the audit has small graphs of its own


def test_a_finished_run_is_not_trained_again(agnncert, trained) -> None:
    before = (trained / "weights.safetensors").stat().st_mtime_ns
    answer = agnncert("train", "tables", "--epochs", 4, *FAST, "--out", trained)
    assert answer.status == 0
    assert "has been trained already" in answer.out
    assert (trained / "weights.safetensors").stat().st_mtime_ns == before
    assert agnncert("train", "tables", "--epochs", 4, *FAST, "--out", trained, "--fresh").status == 0
    assert (trained / "weights.safetensors").stat().st_mtime_ns > before


def test_other_settings_get_another_folder(agnncert) -> None:
    first = json.loads(agnncert("train", "tables", "--epochs", 2, *FAST, "--json").out)["run"]
    second = json.loads(agnncert("train", "tables", "--epochs", 3, *FAST, "--json").out)["run"]
    again = json.loads(agnncert("train", "tables", "--epochs", 2, *FAST, "--json").out)["run"]
    assert first == again == "runs/tables-gcn-node-12"
    assert second == "runs/tables-gcn-node-12-2"


def test_an_interrupted_run_goes_on_and_ends_like_an_uninterrupted_one(agnncert, monkeypatch) -> None:
    words = ("train", "tables", "--epochs", 12, "--set", "evaluate_every=2", *FAST)
    assert agnncert(*words, "--out", "whole").status == 0

    def cut(*args, **kwargs):
        def stop(step):
            if step.done == 7:
                raise KeyboardInterrupt

        return fit(*args, **{**kwargs, "progress": stop})

    monkeypatch.setattr(fitting, "fit", cut)
    answer = agnncert(*words, "--out", "cut")
    assert answer.status == 130
    assert "stopped: what was finished is in cut; the same command continues from there." in answer.err
    assert not list(Path("cut").glob("*.part"))
    assert Path("cut/model.checkpoint").is_file()
    assert agnncert("certify", "cut").status == 2

    monkeypatch.setattr(fitting, "fit", fit)
    again = agnncert(*words, "--out", "cut")
    assert again.status == 0
    assert "going on where an earlier call stopped (cut/model.checkpoint)" in again.out
    assert not list(Path("cut").glob("*.checkpoint"))
    assert Path("cut/weights.safetensors").read_bytes() == Path("whole/weights.safetensors").read_bytes()
    log = Path("cut/log.txt").read_text()
    assert "interrupted" in log
    assert "after epoch 6" in log


def test_ctrl_c_before_anything_was_kept_does_not_claim_otherwise(agnncert, monkeypatch) -> None:
    def cut(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "fit", cut)
    answer = agnncert("train", "tables", "--epochs", 12, *FAST, "--out", "cut")
    assert answer.status == 130
    assert "stopped: nothing was finished yet; the same command starts from the beginning." in answer.err


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on_and_leaves_nothing_half_written(place) -> None:
    words = ["train", "tables", "--groups", "12", "--epochs", "100000", "--set", "patience=0", "--out", "long"]

    def heed_ctrl_c() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # where tests run in the background, it is ignored

    with programs.start(programs.AGNNCERT, *words, preexec_fn=heed_ctrl_c) as process:
        try:
            give_up = time.monotonic() + 120
            while not Path("long/model.checkpoint").exists() and time.monotonic() < give_up:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "stopped: what was finished is in long; the same command continues from there." in err
    assert "Traceback" not in err
    assert not list(Path("long").glob("*.part"))


def test_the_settings_of_a_run_are_a_settings_file(agnncert, certified) -> None:
    stored = tomllib.loads((certified / "settings.toml").read_text())
    answer = agnncert("train", "--settings", certified / "settings.toml", "--out", "again", "--json")
    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["settings"] == stored["train"]
    assert agnncert("certify", "again", "--settings", certified / "settings.toml").status == 0
    assert tomllib.loads(Path("again/settings.toml").read_text()) == stored
    assert Path("again/weights.safetensors").read_bytes() == (certified / "weights.safetensors").read_bytes()
    first, again = (ac.load_certificate(folder / "certificate.cert") for folder in (certified, Path("again")))
    assert (first.label.tolist(), first.radius.tolist()) == (again.label.tolist(), again.radius.tolist())


def test_what_is_typed_comes_before_the_settings_file(agnncert) -> None:
    Path("mine.toml").write_text('[train]\ndata = "tables"\nepochs = 2\ngroups = 8\nset = { hidden_channels = 4 }\n')
    told = json.loads(agnncert("train", "--settings", "mine.toml", "--groups", 5, "--no-references", "--json").out)
    assert told["settings"]["groups"] == 5
    assert told["settings"]["epochs"] == 2
    assert told["settings"]["set"]["hidden_channels"] == 4


def test_a_run_is_certified_with_another_division(agnncert, trained) -> None:
    answer = agnncert("certify", trained, "--division", "edge", "--groups", 7)
    assert answer.status == 0, answer.err
    assert tomllib.loads((trained / "settings.toml").read_text())["certify"]["division"] == "edge"
    assert agnncert("verify", trained, "--recheck", 30).status == 0


def test_data_from_tables_keeps_its_name(agnncert, certified) -> None:
    assert json.loads((certified / "data.json").read_text())["name"] == "tables"
    assert {row["data"] for row in map(json.loads, (certified / "results.jsonl").read_text().splitlines())} == {
        "tables"
    }
    assert "<title>tables: what is proved</title>" in (certified / "report.html").read_text()
    assert "tables" in agnncert("compare", certified).out
    assert agnncert("certify", certified).status == 0
    assert json.loads((certified / "data.json").read_text())["name"] == "tables"


def test_data_from_tables_gets_another_name(agnncert) -> None:
    told = json.loads(agnncert("train", "tables", "--set", "name=my friends", "--epochs", 1, *FAST, "--json").out)
    assert told["run"] == "runs/my-friends-gcn-node-12"
    assert agnncert("certify", told["run"]).status == 0
    assert json.loads(Path(told["run"], "data.json").read_text())["name"] == "my friends"


def test_a_certified_run_is_the_same_run_after_it_was_certified_again(agnncert, place, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(place))
    torch.manual_seed(0)
    save_file(__import__("mine").build().state_dict(), "own.safetensors")
    words = ("certify", "tables", "--model", "mine:build", "--weights", "own.safetensors", "--groups", 5, "--no-report")
    assert agnncert(*words).status == 0
    before = tomllib.loads(Path("runs/tables-mine-build-node-5/settings.toml").read_text())
    assert agnncert("certify", "runs/tables-mine-build-node-5", "--model", "mine:build", "--no-report").status == 0
    assert tomllib.loads(Path("runs/tables-mine-build-node-5/settings.toml").read_text()) == before
    assert agnncert(*words).status == 0
    assert [run.name for run in Path("runs").iterdir()] == ["tables-mine-build-node-5"]


def test_runs_are_compared_side_by_side(agnncert, certified) -> None:
    agnncert("train", "tables", "--groups", 5, "--epochs", 2, "--no-references", "--out", "runs/second")
    told = json.loads(agnncert("compare", certified, "runs/second", "--json").out)["runs"]
    assert [run["run"] for run in told] == ["runs/first", "runs/second"]
    assert told[0]["division"] == "node-centric(T=12)"
    assert 0 <= told[0]["at 0"] <= 1
    assert told[1]["at 0"] == ""


def test_references_are_trained_and_told(agnncert) -> None:
    answer = agnncert("train", "tables", "--groups", 5, "--epochs", 2, "--out", "run", "--json")
    told = json.loads(answer.out)
    assert {"accuracy, undefended", "accuracy, no edges", "accuracy, majority class"} <= set(told)
    agnncert("certify", "run")
    page = Path("run/report.html").read_text()
    assert "undefended GNN" in page


def test_a_decision_is_explained_with_numbers_that_add_up_and_stands_in_the_report(agnncert, certified) -> None:
    certificate = ac.load_certificate(certified / "certificate.cert")
    target = certificate.target.tolist()[0]
    before = {file: file.read_bytes() for file in certified.rglob("*") if file.is_file()}
    answer = agnncert("explain", certified, target)
    assert answer.status == 0, answer.err
    assert answer.out.startswith(f"{target}: ")
    assert {file: file.read_bytes() for file in certified.rglob("*") if file.is_file()} == before, (
        "explain writes nothing"
    )
    told = json.loads(agnncert("explain", certified, target, "--json").out)
    parts = [each["votes"] for each in (*told["given"], *told["voters"])]
    assert np.sum(parts, axis=0).tolist() == told["total"] == certificate.counts[0].tolist()
    assert told["label"] == certificate.label[0]
    assert agnncert("report", certified, "--explain", target, "--out", "one.html").status == 0
    assert f"Why {target} is" in Path("one.html").read_text()
    unknown = agnncert("explain", certified, "nobody")
    assert unknown.status == 2
    assert "has no target 'nobody'" in unknown.err


def test_an_attack_goes_into_run_and_report(agnncert, certified) -> None:
    answer = agnncert("attack", certified, "--sizes", "1,20", "--sample", "all", "--kind", "random", "--json")
    assert answer.status == 0, answer.err
    told = json.loads(answer.out)
    assert told["violations"] == 0
    assert all(one["certified"] <= one["left"] for one in told["rounds"])
    assert "random" in (certified / "report.html").read_text()
    assert tomllib.loads((certified / "settings.toml").read_text())["attack"]["sizes"] == "1,20"
    agnncert("certify", certified)  # a new certificate: what was found about the old one is gone
    assert "attack" not in tomllib.loads((certified / "settings.toml").read_text())
    assert not RunFolder(certified).rows("attack")


def test_a_certified_label_that_falls_ends_the_attack_with_status_1(agnncert, place) -> None:
    """The votes of the certificate are forged: all are for the label, so that it states radii that are too large."""
    run = Path("runs/split")  # with seed 2, the votes of some targets are divided
    words = ("--groups", 12, "--epochs", 2, "--seed", 2, "--no-references", "--out", run)
    assert agnncert("train", "tables", *words).status == 0
    assert agnncert("certify", run, "--no-report").status == 0
    file = run / "certificate.cert"
    honest = ac.load_certificate(file)
    votes = honest.evidence.votes
    unanimous = replace(
        votes,
        vote=honest.label[votes.owner].astype(np.int16),
        stable=np.ones_like(votes.stable),
        default=honest.label.astype(np.int16),
        default_stable=np.ones_like(votes.default_stable),
    )
    replace(honest, evidence=replace(honest.evidence, votes=unanimous)).save(file)
    answer = agnncert("attack", run, "--sizes", "5", "--sample", "all", "--json")
    assert answer.status == 1, answer.err
    told = json.loads(answer.out)
    assert told["violations"] == sum(one["fallen_certified"] for one in told["rounds"]) > 0
    assert told["rounds"][0]["left"] < told["rounds"][0]["certified"]


def test_a_report_also_writes_figures_and_tables(agnncert, certified) -> None:
    told = json.loads(agnncert("report", certified, "--out", "page.html", "--papers", "papers", "--json").out)
    assert told["report"] == "page.html"
    assert {Path(file).suffix for file in told["files"]} == {".svg", ".pdf", ".csv", ".json", ".tex"}
    assert len(told["sentences"]) == 3


def test_clearing_a_folder_removes_only_what_runs_write(tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    folder = RunFolder(tmp_path)
    folder.begin("train", {"data": "x"}, {"digest": "d"})
    open_run(tmp_path, "x", "train", {"data": "y"}, "d", fresh=True)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("settings.toml", "[train]\n")
    with pytest.raises(UnicodeEncodeError):
        folder.write("settings.toml", "half of it \ud800")
    assert (tmp_path / "settings.toml").read_text() == "[train]\n"
    assert [file.name for file in tmp_path.iterdir()] == ["settings.toml"]
