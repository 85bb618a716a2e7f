"""The settings of ``fit``: declared in one place, shown and checked everywhere."""

import inspect
import re

import pytest

import agnncert as ac
from agnncert.training.settings import _RECIPES, checked, tuned_arguments
from tests.support.training_cases import node_case

DEFAULTS = {
    "epochs": 200, "lr": 0.01, "weight_decay": 5e-4, "clip": None, "batch_size": 64, "objective": None,
    "size": 0, "against": "any", "no_edge_weight": 1.0, "balance_classes": None, "measure": None, "groups_per_step": None, "clusters": None, "clusters_per_step": 1,
    "protocol": "transductive", "evaluate_every": 5, "patience": 20, "seed": 0,
}  # fmt: skip


def test_the_signature_of_fit_shows_every_setting_with_its_default() -> None:
    parameters = inspect.signature(ac.fit).parameters
    assert list(parameters) == ["model", "data", "defence", *DEFAULTS, "voting_rule", "checkpoint", "progress"]
    assert {name: parameters[name].default for name in DEFAULTS} == DEFAULTS
    assert parameters["patience"].annotation == int | None
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in DEFAULTS)


def test_the_docstring_of_fit_describes_every_parameter_in_order() -> None:
    arguments = re.search(r"Args:\n(.*?)\n\nRaises", inspect.getdoc(ac.fit), re.DOTALL)[1]
    assert re.findall(r"^    (\w+):", arguments, re.MULTILINE) == list(inspect.signature(ac.fit).parameters)


def test_defaults_are_filled_in_and_depend_on_the_task() -> None:
    assert checked({"lr": 0.5}, "node") == {**DEFAULTS, "lr": 0.5, "objective": "balanced"}
    assert checked({}, "graph")["objective"] == "vote"


def test_an_unknown_setting_is_met_with_the_nearest() -> None:
    model, data = node_case()
    with pytest.raises(ac.errors.SettingsError, match='no setting "epohcs": did you mean "epochs"'):
        ac.fit(model, data, epohcs=3)


def test_recipes_choose_only_what_they_may_and_what_makes_sense() -> None:
    for name in (None, *_RECIPES):
        for task in ("node", "graph"):
            chosen = tuned_arguments(name, task)[1]
            checked(chosen, task)
