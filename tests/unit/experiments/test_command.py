"""``python -m experiments``: lists, runs and refuses experiments."""

import json

import pytest

from agnncert.cli import run_app
from agnncert.training.settings import _RECIPES
from experiments.__main__ import app
from experiments.paper import spec


@pytest.fixture
def experiments(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        status = run_app(app, list(words), "python -m experiments")
        return status, *capsys.readouterr()

    return call


def test_an_experiment_is_reproduced_and_not_run_twice(experiments, monkeypatch, tmp_path) -> None:
    tiny = (spec.Setting("digits-knn", division="edge", num_groups=5), spec.Setting("digits-knn", model="mlp"))
    monkeypatch.setitem(spec.SMALL, "larger", tiny)
    monkeypatch.setitem(_RECIPES, "digits-knn", {"fit": {"epochs": 1, "evaluate_every": 1}})
    status, out, err = experiments("larger", "--small", "--json", "--out", "rows")
    assert status == 0, err
    assert len(json.loads(out)["rows"]) == 2
    assert (tmp_path / "rows" / "results.md").is_file()
    assert "0 of them new" in experiments("larger", "--small", "--out", "rows")[1]
    listed = json.loads(experiments("--list", "--small", "--json", "--out", "rows")[1])["experiments"]
    assert {one["name"]: one["done"] for one in listed}["larger"] == 2


@pytest.mark.parametrize(("words", "told"), [((), ("--all", "accuracy")), (("acuracy",), ('did you mean "accuracy"',))])
def test_a_call_without_a_known_experiment_is_refused(experiments, words, told) -> None:
    status, _, err = experiments(*words)
    assert status == 2
    assert all(word in err for word in told)
