"""Commands train, certify and verify models that are trained apart, on graphs of tables, which have ids."""

import csv

import numpy as np


def write_tables(folder, num_graphs=40):
    """Paths of five nodes, whose class is seen in a column."""
    rng = np.random.default_rng(0)
    tables = {"nodes": [["id", "graph", "a"]], "edges": [["source", "target", "graph"]], "graphs": [["graph", "label"]]}
    for number in range(num_graphs):
        name = f"g{number}"
        tables["graphs"].append([name, ("no", "yes")[number % 2]])
        for node in range(5):
            tables["nodes"].append([f"{name}-{node}", name, rng.random() + number % 2])
            if node:
                tables["edges"].append([f"{name}-{node - 1}", f"{name}-{node}", name])
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)


def test_a_run_is_trained_certified_and_verified(agnncert, tmp_path) -> None:
    (tmp_path / "paths").mkdir()
    write_tables(tmp_path / "paths")
    run = tmp_path / "run"
    few = ("--set", "defence.num_models=3", "--set", "epochs=2", "--set", "hidden_channels=4", "--no-references")
    apart = ("train", tmp_path / "paths", "--division", "isolated", "--groups", "2", *few, "--out", run)
    answer = agnncert(*apart)
    assert answer.status == 2
    assert "--set classes=NAME,NAME" in answer.err
    answer = agnncert(*apart, "--set", "classes=no,yes")
    assert answer.status == 0, answer.err
    answer = agnncert("certify", run)
    assert answer.status == 0, answer.err
    answer = agnncert("verify", run)
    assert answer.status == 0, answer.err
    assert "the votes of all 3 models in all views, computed again" in answer.out


def test_graphs_without_ids_are_refused(agnncert, tmp_path) -> None:
    answer = agnncert("train", "digits-grid", "--division", "isolated", "--out", tmp_path / "run")
    assert answer.status == 2
    assert "has no graph_id" in answer.err


def test_graphs_of_public_datasets_are_identified_by_their_content(agnncert, tmp_path) -> None:
    run = tmp_path / "run"
    few = ("--set", "defence.num_models=3", "--set", "epochs=2", "--set", "hidden_channels=4", "--no-references")
    few = (*few, "--set", "defence.own_processes=true")
    answer = agnncert(
        "train", "digits-grid", "--division", "isolated", "--set", "defence.ids=content", *few, "--out", run
    )
    assert answer.status == 0, answer.err
    for command in (("certify", run), ("verify", run), ("report", run)):
        answer = agnncert(*command)
        assert answer.status == 0, answer.err
    answer = agnncert("show", run, "--budget", "poison_graphs=1")
    assert answer.status == 0, answer.err
    assert "poison_graphs=1" in answer.out


def test_a_model_for_ids_is_not_certified_by_content(agnncert, tmp_path) -> None:
    run = tmp_path / "run"
    few = ("--set", "defence.num_models=2", "--set", "epochs=1", "--set", "hidden_channels=4", "--no-references")
    by_content = ("--set", "defence.ids=content")
    answer = agnncert("train", "digits-grid", "--division", "isolated", *by_content, *few, "--out", run)
    assert answer.status == 0, answer.err
    answer = agnncert("certify", run, "--set", "defence.ids=graph_id")
    assert answer.status == 2
