"""The nearest word is the one that a slip of the hand makes of it."""

import pytest

import agnncert as ac
from agnncert.errors import SettingsError, did_you_mean

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


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: ac.NodeCentric(num_group=10), "num_groups"),
        (lambda: ac.EdgeCentric(10, hsh="md5"), "hash"),
        (lambda: ac.StackedVotes(sise=3), "size"),
        (lambda: ac.LabelVotes(prest="few"), "preset"),
    ],
)
def test_a_setting_that_a_defence_does_not_have_is_answered_with_the_nearest(make, meant):
    with pytest.raises(SettingsError, match=f'did you mean "{meant}"'):
        make()
