"""The nearest word is the one that a slip of the hand makes of it."""

import pytest

from agnncert.errors import did_you_mean

MODELS = ["gcn", "sage", "gat", "gin", "resgcn", "mlp"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gnc", "gcn"),
        ("gnn", "gcn"),
        ("cgn", "gcn"),
        ("GCN2", "gcn"),
        ("gni", "gin"),
        ("gatt", "gat"),
        ("res-gcn", "resgcn"),
    ],
)
def test_the_nearest_model_is_offered(typed, meant) -> None:
    assert did_you_mean(typed, MODELS).startswith(f'did you mean "{meant}"?')


def test_what_is_near_to_nothing_gets_the_list_alone() -> None:
    assert did_you_mean("transformer-xl", ["gcn", "mlp"]) == "Valid: gcn, mlp."
    assert did_you_mean("anything", []) == "Valid: ."
