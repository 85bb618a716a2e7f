"""``agnncert log``: a run in a local store of MLflow, and the head of its model card."""

import hashlib
import json
import logging
import warnings
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

from agnncert.cli.model_index import card_head

mlflow = pytest.importorskip("mlflow.tracking", reason="MLflow is not installed")


@pytest.fixture
def store(tmp_path) -> str:
    logging.getLogger("alembic").setLevel(logging.ERROR)
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


def test_a_run_is_logged_once_with_its_figures_and_files(agnncert, place, certified, store) -> None:
    answer = agnncert("log", "runs/first", "--tracking", store, "--experiment", "fraud", "--json")
    assert answer.status == 0, answer.err
    logged = json.loads(answer.out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, about packages that it uses
        client = mlflow.MlflowClient(tracking_uri=store, registry_uri=store)
    run = client.get_run(logged["run_id"])
    rows = [json.loads(line) for line in Path("runs/first/results.jsonl").read_text().splitlines()]
    by_size = {row["size"]: row["value"] for row in rows if row["measure"] == "certified accuracy"}
    assert by_size
    for size, value in by_size.items():
        assert run.data.metrics[f"certified_accuracy_at_{size}"] == value
    history = client.get_metric_history(logged["run_id"], "certified_accuracy")
    assert {metric.step: metric.value for metric in history} == by_size
    assert run.data.params["train.seed"] == "0"
    files = {file.path for file in client.list_artifacts(logged["run_id"])}
    assert {"certificate.cert", "report.html", "MODEL_CARD.md"} <= files
    again = agnncert("log", "runs/first", "--tracking", store, "--experiment", "fraud")
    assert again.out.startswith("Logged before:")
    assert len(client.search_runs([run.info.experiment_id])) == 1


def test_a_run_whose_logging_broke_off_is_logged_again(agnncert, place, certified, store) -> None:
    digest = hashlib.sha256(Path("runs/first/certificate.cert").read_bytes()).hexdigest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, about packages that it uses
        client = mlflow.MlflowClient(tracking_uri=store, registry_uri=store)
        experiment = client.create_experiment("fraud")
        broken_off = client.create_run(experiment, tags={"agnncert.certificate": digest})
    answer = agnncert("log", "runs/first", "--tracking", store, "--experiment", "fraud", "--json")
    assert answer.status == 0, answer.err
    logged = json.loads(answer.out)
    assert logged["run_id"] != broken_off.info.run_id
    assert client.get_run(logged["run_id"]).info.status == "FINISHED"
    assert client.get_run(broken_off.info.run_id).info.status == "RUNNING"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere is not the folder of a run"),
        (["runs/first", "--to", "mlfow"], 'did you mean "mlflow"'),
        (["runs/first", "--tracking", "carrier-pigeon://coop"], "MLflow cannot log to carrier-pigeon://coop"),
    ],
)
def test_what_cannot_be_logged_is_refused(agnncert, place, certified, words, said) -> None:
    answer = agnncert("log", *words)
    assert answer.status == 2
    assert said in answer.err


def test_a_card_begins_with_figures_that_a_model_hub_reads(place, certified) -> None:
    rows = [json.loads(line) for line in Path("runs/first/results.jsonl").read_text().splitlines()]
    by_size = {row["size"]: row["value"] for row in rows if row["measure"] == "certified accuracy"}
    card = ModelCard.load(Path("runs/first/MODEL_CARD.md"))
    results = card.data.eval_results
    shown = {result.metric_name: result.metric_value for result in results}
    for size, value in by_size.items():
        assert shown[f"certified accuracy at size {size}"] == pytest.approx(value, abs=1e-6)


def test_names_of_data_and_models_cannot_break_out_of_the_head() -> None:
    nasty = 'a"\n---\nmodel-index: none # ☃ : ['
    rows = [{"measure": "certified accuracy", "size": 0, "value": 0.5}]
    head = card_head(nasty, {"name": nasty, "task": "node"}, rows)
    result = ModelCard(head + "text").data.eval_results[0]
    assert result.dataset_name == nasty
    assert "model-index" not in card_head("gcn", {}, [])
