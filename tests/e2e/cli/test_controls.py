"""Controls of a run from the command line: trained with it, stored, compared at the same point, reported, exported."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import agnncert as ac
from agnncert.cli import main
from agnncert.controls.trees import NEIGHBOURHOOD_TREES, OWN_TREES
from tests.support.commands import write_tables


@pytest.fixture(scope="session")
def compared_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with controls, certified."""
    folder = tmp_path_factory.mktemp("compared")
    write_tables(folder / "tables", nodes=160)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "tables", "--seed", "2", "--groups", "12", "--epochs", "4", "--out", "runs/first"]) == 0
        assert main(["certify", "runs/first"]) == 0
    return folder / "runs/first"


@pytest.fixture
def compared(place: Path, compared_once: Path) -> Path:
    shutil.copytree(compared_once, "runs/first")
    return Path("runs/first")


def write_scores(run: Path, name: str, every: int = 1) -> Path:
    """Scores that know the truth of some targets."""
    certificate = ac.load_certificate(run / "certificate.cert")
    assert certificate.truth is not None
    rows = [f"{k},{t}" for k, t in zip(certificate.target, certificate.truth, strict=True)][::every]
    file = Path(name)
    file.write_text("\n".join(["id,score", *rows]) + "\n", encoding="utf-8")
    return file


def test_the_first_screen_says_whether_the_graph_pays(agnncert, compared) -> None:
    done = agnncert("certify", compared)
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    pays = next(line for line in lines if "(95 % interval " in line and line.endswith("."))
    assert "graph" in pays
    assert OWN_TREES in done.out
    assert NEIGHBOURHOOD_TREES in done.out
    page = (compared / "report.html").read_text("utf-8")
    assert pays.split(":")[0] in page[: page.index('id="proved"')]


def test_json_and_rows_have_every_control_at_the_same_rate(agnncert, compared) -> None:
    told = json.loads(agnncert("certify", compared, "--json").out)
    models = told["controls"]["models"]
    assert {model["name"] for model in models} > {"certified model", "MLP, no graph", "undefended GNN", OWN_TREES}
    rates = {round(model["false_positive_rate"], 9) for model in models}
    assert len(rates) == 1
    measures = {row["measure"]: row["value"] for row in told["results"]}
    for model in models:
        assert measures[f"control: ROC AUC, {model['name']}"] == model["auc"]
        assert measures[f"control: recall at the same false positives, {model['name']}"] == model["value"]
    shown = agnncert("compare", compared)
    assert shown.status == 0, shown.err
    assert "best without a graph" in shown.out


def test_scores_of_ones_own_are_one_more_control_and_stay_with_the_run(agnncert, compared) -> None:
    file = write_scores(compared, "rules.csv")
    done = agnncert("certify", compared, "--scores", file)
    assert done.status == 0, done.err
    assert "rules" in done.out
    file.unlink()
    again = json.loads(agnncert("report", compared, "--json").out)
    rules = next(model for model in again["controls"]["models"] if model["name"] == "rules")
    assert rules["auc"] == 1.0
    assert rules["reads_graph"] is None
    few = write_scores(compared, "rules.csv", every=2)
    told = json.loads(agnncert("report", compared, "--scores", few, "--json").out)
    rules = [model for model in told["controls"]["models"] if model["name"] == "rules"]
    assert len(rules) == 1, "the later ones replace the earlier"
    assert rules[0]["num_targets"] == (told["controls"]["models"][0]["num_targets"] + 1) // 2


def test_an_export_has_what_each_control_says(agnncert, compared) -> None:
    agnncert("report", compared, "--scores", write_scores(compared, "rules.csv", every=2))
    assert agnncert("export", compared, "--to", "csv", "--out", "t.csv").status == 0
    rows = list(csv.DictReader(Path("t.csv").read_text("utf-8").splitlines()))
    certificate = ac.load_certificate(compared / "certificate.cert")
    assert certificate.truth is not None
    said = [row["control_score_rules"] for row in rows]
    assert said[1] == ""
    assert [float(cell) for cell in said[::2]] == certificate.truth[::2].tolist()
    assert all(row["control_score_boosted_trees_on_own_features"] for row in rows)


def test_the_same_number_of_alerts_where_the_threshold_was_chosen_for_one(agnncert, compared) -> None:
    done = agnncert("certify", compared, "--set", "alerts=3", "--set", "positive=dog", "--json")
    assert done.status == 0, done.err
    controls = json.loads(done.out)["controls"]
    assert controls["same"] == "alerts"
    certificate = ac.load_certificate(compared / "certificate.cert")
    assert controls["positive"] == certificate.class_names.index("dog")
    alerts = int((certificate.label == controls["positive"]).sum())
    assert {round(model["alerts"], 6) for model in controls["models"]} == {alerts}


def test_wrong_scores_and_damaged_controls_end_with_a_reason(agnncert, compared) -> None:
    Path("rules.csv").write_text("id,score\nnobody,1\n", encoding="utf-8")
    answer = agnncert("report", compared, "--scores", "rules.csv")
    assert answer.status == 2
    assert "are these the ids" in answer.err
    assert agnncert("report", compared, "--scores", "missing.csv").status == 2
    (compared / "controls.json").write_text('{"targets": 3}', encoding="utf-8")
    answer = agnncert("report", compared)
    assert answer.status == 2
    assert "controls.json is damaged" in answer.err


def test_a_certificate_alone_is_compared_with_scores_too(agnncert, compared) -> None:
    file = write_scores(compared, "rules.csv")
    shutil.copy(compared / "certificate.cert", "alone.cert")
    told = json.loads(agnncert("report", "alone.cert", "--scores", file, "--json").out)
    assert told["controls"]["models"][0]["name"] == "certified model"
    assert "rules" in {model["name"] for model in told["controls"]["models"]}


def test_without_references_there_are_no_controls(agnncert, certified) -> None:
    assert not (certified / "controls.json").exists()
    told = json.loads(agnncert("report", certified, "--json").out)
    assert told["controls"] is None
    assert not np.any(["control" in sentence for sentence in told["sentences"]])
