"""The committed rows about what decides votes, and which of them stay when some are measured anew."""

import json
from collections import Counter

from experiments.benchmarks import rounding


def test_there_are_rows_for_every_dataset_and_model():
    rows = json.loads((rounding.RESULTS / "rounding.json").read_text())["rows"]
    measured = Counter((row["dataset"], row["model"]) for row in rows)
    assert measured == {(dataset, name): 4 for dataset in (*rounding.NODE, *rounding.GRAPH) for name in rounding.MODELS}
    assert (rounding.RESULTS / "rounding.md").read_text(encoding="utf-8") == rounding.page(rows)


def test_rows_of_other_models_and_datasets_stay_when_some_are_measured_anew(tmp_path):
    file = tmp_path / "rounding.json"
    assert rounding.stored_rows(file, []) == []
    rows = [{"dataset": dataset, "model": name} for dataset in ("mutag", "cora-ml") for name in ("gcn", "gat")]
    file.write_text(json.dumps({"rows": rows}))
    assert rounding.stored_rows(file, []) == rows
    assert rounding.stored_rows(file, [("mutag", "gat"), ("pubmed", "gat")]) == [rows[0], *rows[2:]]
