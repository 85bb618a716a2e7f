"""Tomorrow's labels come from the run: its model, threshold, voting rule, encoding and names of classes."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import agnncert as ac


@pytest.fixture
def alerting(agnncert, trained) -> Path:
    """A run with a threshold on its votes, which changes labels."""
    done = agnncert("certify", trained, "--set", "alerts=1", "--set", "positive=cat", "--no-report")
    assert done.status == 0, done.err
    assert "1 alerts of class 0 (cat)" in done.out + done.err
    return Path(str(trained))


def rows_of(file: str) -> dict[str, dict[str, str]]:
    with Path(file).open(encoding="utf-8") as lines:
        return {row["id"]: row for row in csv.DictReader(lines)}


def test_the_same_data_gets_the_labels_that_were_certified(agnncert, alerting) -> None:
    certificate = ac.load_certificate(alerting / "certificate.cert")
    answer = agnncert("score", alerting, "tables")
    assert answer.status == 0, answer.err
    rows = rows_of("scores.csv")
    assert len(rows) == 40
    for target in certificate:
        decision = certificate[target]
        assert rows[target]["class_name"] == decision.class_name
        assert int(rows[target]["radius"]) == decision.radius
        assert float(rows[target]["votes_0"]) == decision.votes[0]


def test_the_threshold_of_the_run_is_kept_and_not_that_of_the_model_alone(agnncert, alerting) -> None:
    """Without the threshold more than one validation node would be a cat."""
    assert agnncert("score", alerting, "tables").status == 0
    with_threshold = np.array([row["class_name"] == "cat" for row in rows_of("scores.csv").values()])
    plain = agnncert("certify", alerting, "--prior", "0,0", "--set", "targets=all", "--no-report")
    assert plain.status == 0, plain.err
    without = ac.load_certificate(alerting / "certificate.cert").label == 0
    assert with_threshold.sum() < without.sum()


def test_weights_are_not_certified_without_the_threshold_that_was_chosen_for_them(agnncert, alerting) -> None:
    weights = alerting / "weights.safetensors"
    refused = agnncert("certify", "tables", "--model", "gcn", "--weights", weights, "--groups", 5)
    assert refused.status == 2
    assert f"agnncert score {alerting} DATA" in refused.err
    again = ("certify", "tables", "--model", "gcn", "--weights", weights, "--groups", 5, "--no-report")
    assert agnncert(*again, "--prior", "0,3").status == 0


def test_chosen_ids_and_new_nodes_are_labelled_alone(agnncert, alerting, place) -> None:
    Path("some.txt").write_text("user3\n\nuser17\nuser3\n", encoding="utf-8")
    answer = agnncert("score", alerting, "tables", "--ids", "some.txt", "--to", "json", "--out", "some.json", "--json")
    assert answer.status == 0, answer.err
    assert [row["id"] for row in json.loads(Path("some.json").read_text("utf-8"))] == ["user3", "user17"]
    assert json.loads(answer.out)["targets"] == 2
    shutil.copytree("tables", "today")
    with Path("today/nodes.csv").open("a", encoding="utf-8") as file:
        file.write("newcomer,,1.9,-0.9\n")
    with Path("today/edges.csv").open("a", encoding="utf-8") as file:
        file.write("newcomer,user1\n")
    answer = agnncert("score", alerting, "today", "--new", "--certificate", "today.cert")
    assert answer.status == 0, answer.err
    assert list(rows_of("scores.csv")) == ["newcomer"]
    assert ac.verify("today.cert").holds
    assert ac.load_certificate("today.cert").class_names == ("cat", "dog")


def test_the_column_of_true_classes_may_be_missing(agnncert, alerting, place) -> None:
    assert agnncert("score", alerting, "tables").status == 0
    expected = rows_of("scores.csv")
    shutil.copytree("tables", "today")
    lines = [line.split(",") for line in Path("tables/nodes.csv").read_text("utf-8").splitlines()]
    Path("today/nodes.csv").write_text("".join(f"{','.join([*cells[:1], *cells[2:]])}\n" for cells in lines), "utf-8")
    answer = agnncert("score", alerting, "today")
    assert answer.status == 0, answer.err
    assert rows_of("scores.csv") == expected


def test_a_model_that_was_not_certified_labels_nothing(agnncert, alerting) -> None:
    """Whoever changes a weight of a certified run gets no labels that look as if they were certified."""
    weights = alerting / "weights.safetensors"
    model = ac.load_model(weights)
    with torch.no_grad():
        next(model.parameters()).add_(1.0)
    ac.save_model(model, weights)
    answer = agnncert("score", alerting, "tables")
    assert answer.status == 2, answer.out
    assert "is not the certified one" in answer.err
    assert not Path("scores.csv").exists()


def test_what_cannot_be_scored_is_said(agnncert, alerting, place) -> None:
    Path("ids.txt").write_text("nobody\n", encoding="utf-8")
    for words, expected in (
        ((alerting, "tables", "--ids", "ids.txt"), "no node 'nobody'"),
        ((alerting, "tables", "--new"), "no node is left"),
        ((alerting,), "needs the data"),
        (("tables", "tables"), "not the folder of a certified run"),
        ((alerting, "tables", "--to", "excel"), "csv"),
    ):
        answer = agnncert("score", *words)
        assert answer.status == 2, answer.out
        assert expected in answer.err


def test_all_labelled_nodes_can_be_certified_with_weights_from_elsewhere(agnncert, alerting) -> None:
    """Ten accounts have no label: nobody could say whether a label of theirs is right."""
    nodes = Path("tables", "nodes.csv")
    head, *rows = nodes.read_text(encoding="utf-8").splitlines()
    hidden = {row.split(",")[0]: row for row in rows[10:20]}
    unlabelled = [",".join([name, "", *row.split(",")[2:]]) for name, row in hidden.items()]
    nodes.write_text("\n".join([head, *rows[:10], *unlabelled, *rows[20:]]) + "\n", encoding="utf-8")
    command = ("certify", "tables", "--model", "gcn", "--weights", alerting / "weights.safetensors", "--groups", 5)
    found = {}
    for targets in ("labelled", "all"):
        done = agnncert(*command, "--prior", "0,3", "--set", f"targets={targets}", "--no-report", "--out", targets)
        assert done.status == 0, done.err
        found[targets] = set(ac.load_certificate(Path(targets, "certificate.cert")).target.tolist())
    assert found["all"] - found["labelled"] == set(hidden)
    assert len(found["labelled"]) == 30
