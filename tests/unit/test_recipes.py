"""Recipes by name and for data, and models that are named in ``fit``."""

import pytest
import torch

import agnncert as ac
from agnncert.errors import SettingsError
from agnncert.recipes import usual_arguments


def test_a_recipe_by_name_is_that_of_the_loaded_data() -> None:
    data = ac.load_dataset("digits-knn")
    for model in ("gcn", "resgcn", "mlp"):
        assert ac.recipe("digits-knn", model) == ac.recipe(data, model)


def test_a_recipe_prints_calls_that_work() -> None:
    data = ac.load_dataset("digits-knn")
    made = ac.recipe(data, "gcn")
    names = {"ac": ac, "data": data, "defence": ac.NodeCentric(10)}
    exec(str(made).replace("epochs=200", "epochs=1"), names)
    record = names["model"].training_record
    assert {**made.fit, "epochs": 1}.items() <= record.items()


def test_data_of_ones_own_have_a_recipe_by_their_features() -> None:
    data = ac.load_dataset("digits-knn")
    del data.name
    model_args, fit_args = usual_arguments(None, data, "gcn")
    assert ac.recipe(data).model == model_args
    assert ac.recipe(data).fit == fit_args


def test_objectives_and_defences_may_have_recipes_of_their_own() -> None:
    plain = ac.recipe("amazon-c", "mlp")
    assert ac.recipe("amazon-c", "mlp", objective="certified") != plain
    assert ac.recipe("amazon-c", "mlp", defence=ac.StackedVotes()) != plain
    assert ac.recipe("amazon-c", "mlp", defence=ac.NodeCentric(10)) == plain


@pytest.mark.parametrize(
    ("data", "model", "words"),
    [
        ("cora", "gcn", 'did you mean "cora-ml"'),
        ("cora-ml", "gnc", 'did you mean "gcn"'),
        ("bitcoin-otc", "gcn", "depends on its features"),
    ],
)
def test_unknown_names_are_refused(data: str, model: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        ac.recipe(data, model)


def test_a_named_model_is_built_and_trained_by_its_recipe() -> None:
    data = ac.load_dataset("digits-knn")
    division = ac.NodeCentric(10)
    named = ac.fit("gcn", data, division, epochs=3, seed=4)
    made = ac.recipe(data, "gcn")
    by_hand = ac.build_model("gcn", data, seed=4, **made.model)
    ac.fit(by_hand, data, division, **{**made.fit, "epochs": 3, "seed": 4})
    for first, second in zip(named.parameters(), by_hand.parameters(), strict=True):
        assert torch.equal(first, second)
    with pytest.raises(SettingsError, match='no model is called "gnc"'):
        ac.fit("gnc", data, division)


def test_a_recipe_cannot_be_altered() -> None:
    with pytest.raises(TypeError):
        ac.recipe("cora-ml").fit["lr"] = 1.0  # type: ignore[index]
