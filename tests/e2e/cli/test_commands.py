"""The remaining commands, and what holds for all of them."""

import json
from pathlib import Path

import pytest

from agnncert.cli.folder import toml_text
from agnncert.cli.settings import TrainSettings, keys_of, pairs, read_toml
from agnncert.training.settings import _RECIPES, tuned_arguments
from tests.support.doc_blocks import fenced_blocks, require_output
from tests.support.paths import PROJECT

DEMO_PAGE = PROJECT / "docs" / "commands" / "demo.md"


def test_datasets_tells_which_are_there(agnncert, tmp_path) -> None:
    (tmp_path / "cora_ml" / "raw").mkdir(parents=True)
    (tmp_path / "cora_ml" / "raw" / "cora_ml.npz").touch()
    told = json.loads(agnncert("datasets", "--root", tmp_path, "--json").out)
    here = {one["name"]: one["here"] for one in told["datasets"]}
    assert here["cora-ml"] == "yes"
    assert here["pubmed"] == "no"
    assert here["digits-knn"] == "built in"


def test_graphs_in_tables_are_trained_and_certified(agnncert, place) -> None:
    folder = Path("many")
    folder.mkdir()
    nodes, edges, graphs = ["graph,id,a"], ["graph,source,target"], ["graph,label"]
    for g in range(20):
        graphs.append(f"g{g},{'odd' if g % 2 else 'even'}")
        nodes += [f"g{g},n{k},{g % 2 + k / 10}" for k in range(4)]
        edges += [f"g{g},n{k},n{k + 1}" for k in range(3)]
    for name, lines in (("nodes", nodes), ("edges", edges), ("graphs", graphs)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    answer = agnncert("train", "many", "--groups", 3, "--epochs", 2, "--set", "hidden_channels=4")
    assert answer.status == 0, answer.err
    assert agnncert("certify", "runs/many-gcn-node-3").status == 0
    assert agnncert("verify", "runs/many-gcn-node-3", "--recheck", "all").status == 0
    assert agnncert("certify", "runs/many-gcn-node-3", "--division", "gated").status == 2


def test_a_folder_in_the_tu_format_is_trained_and_certified_and_kept(agnncert, place) -> None:
    rings = [(7 * g, size) for g, size in enumerate([3, 7] * 20)]
    pairs = [(first + k, first + (k + 1) % size) for first, size in rings for k in range(size)]
    numbers = {node: row for row, node in enumerate(sorted({node for pair in pairs for node in pair}), start=1)}
    (place / "download").mkdir()
    texts = {
        "A": [f"{numbers[u]}, {numbers[v]}" for u, v in pairs],
        "graph_indicator": [str(g) for g, (_, size) in enumerate(rings, start=1) for _ in range(size)],
        "graph_labels": [str(size) for _, size in rings],
    }
    for kind, lines in texts.items():
        (place / "download" / f"RINGS_{kind}.txt").write_text("\n".join(lines) + "\n")
    answer = agnncert("train", "download", "--groups", 5, "--epochs", 2, "--no-references")
    assert answer.status == 0, answer.err
    run = place / "runs" / "RINGS-gcn-node-5"
    assert sorted(file.name for file in (run / "data").iterdir()) == [f"RINGS_{kind}.txt" for kind in texts]
    assert agnncert("certify", run).status == 0
    assert agnncert("verify", run, "--recheck", 5).status == 0


def test_defences_are_compared_on_own_data(agnncert) -> None:
    words = [
        "--defence",
        "node:num_groups=5",
        "--defence",
        "bi-rs:p_edge=0.5",
        "--set",
        "samples=50",
        "--set",
        "selection=10",
        "--epochs",
        2,
    ]
    told = json.loads(agnncert("compare", "tables", "--against", "injection", *words, "--json").out)
    assert [row["guarantee"].split(",")[0] for row in told["rows"]][-2] == "deterministic"
    assert {Path(file).suffix for file in told["files"]} >= {".svg", ".csv", ".json"}
    assert all(Path(file).is_file() for file in told["files"])


def test_defences_are_compared_on_a_model_of_ones_own(agnncert, place, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(place))
    words = ["--defence", "node:num_groups=5", "--model", "mine:build", "--epochs", 2]
    answer = agnncert("compare", "tables", *words, "--json")
    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["folder"].endswith("mine-build-comparison")
    wrong = agnncert("compare", "tables", *words, "--set", "width=3")
    assert wrong.status == 2
    assert 'has no setting "width"' in wrong.err


@pytest.mark.slow
def test_the_demonstration_proves_more_about_fraud_than_a_model_without_edges_knows(agnncert) -> None:
    answer = agnncert("demo", "--json")
    assert answer.status == 0, answer.err
    told = json.loads(answer.out)
    assert told["holds"]
    assert told["violations"] == 0
    assert "of 92 nodes of class “fraud” stay detected" in told["sentences"][0]
    (shown,) = (block.text for block in fenced_blocks(DEMO_PAGE) if block.language == "text")
    require_output("\n".join(told["sentences"]), f"{shown}\n...", "docs/commands/demo.md", numbers_vary=True)
    assert told["sentences"][2].endswith("agnncert verify runs/demo")
    assert Path(told["report"]).stat().st_size > 100_000
    at_three = next(one for one in told["classes"] if one["name"] == "fraud" and one["size"] == 3)
    assert at_three["recall"] > 0.8
    assert at_three["false_positive_rate"] < 0.1
    without_edges = {row["measure"]: row["value"] for row in told["results"] if row["measure"].endswith(", no edges")}
    assert without_edges["false positive rate of class 1, no edges"] > 0.2
    assert without_edges["recall of class 1, no edges"] < at_three["recall"]


def test_settings_survive_the_way_to_toml_and_back(tmp_path) -> None:
    tables = {"train": {"data": 'a "b"\\c', "lr": 1e-05, "yes": True, "set": {"x y": [1, 2.5, "ü"]}, "none": []}}
    (tmp_path / "s.toml").write_text(toml_text(tables), encoding="utf-8")
    assert read_toml(tmp_path / "s.toml") == tables


def test_every_setting_of_a_recipe_can_be_set(agnncert) -> None:
    known = set(keys_of(TrainSettings))
    for name in (None, *_RECIPES):
        for task in ("node", "graph"):
            assert set(tuned_arguments(name, task)[1]) <= known


def test_values_are_read_as_what_they_look_like() -> None:
    words = ["a=1", "b=0.5", "c=true", "d=batch_norm", "e=none", "f=inf"]
    assert pairs("set", words) == {"a": 1, "b": 0.5, "c": True, "d": "batch_norm", "e": "none", "f": float("inf")}


def test_progress_is_told_in_lines_where_nobody_watches(agnncert, monkeypatch) -> None:
    from agnncert.cli import screen

    monkeypatch.setattr(screen, "_SECONDS_BETWEEN_LINES", 0.0)
    answer = agnncert("train", "tables", "--groups", 5, "--epochs", 3, "--no-references")
    assert "training: 1 of 3" in answer.err
    assert "s left" in answer.err


def test_time_that_nobody_knows_is_not_told(monkeypatch, capsys) -> None:
    from agnncert.cli import screen
    from agnncert.progress import Progress

    monkeypatch.setattr(screen, "_SECONDS_BETWEEN_LINES", 0.0)
    with screen.Screen().following() as on_progress:
        on_progress(Progress("sampling", 3, 10, float("nan")))
    assert capsys.readouterr().err == "sampling: 3 of 10\nsampling: ended after 3 of 10\n"


def test_progress_is_a_bar_on_a_terminal(agnncert, monkeypatch) -> None:
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    answer = agnncert("train", "tables", "--groups", 5, "--epochs", 3, "--no-references")
    assert answer.status == 0
    assert "trained in" in answer.err  # a line that is said while a bar stands goes above it, on the same stream


def test_training_without_a_label_says_which_column_is_missing(agnncert, place) -> None:
    nodes = Path("tables/nodes.csv")
    rows = [line.split(",") for line in nodes.read_text("utf-8").splitlines()]
    nodes.write_text("\n".join(f"{name},{a},{b}" for name, _, a, b in rows), encoding="utf-8")
    answer = agnncert("train", "tables", "--epochs", 1)
    assert answer.status == 2
    assert 'training needs a column "label"' in answer.err
    assert "column.label=NAME" in answer.err
