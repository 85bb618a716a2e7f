"""``edge_blind labelled learn``, the hypothesis of Theorem 16, about ``fit`` as it is called by name.

Two graphs that agree on the labelled nodes, and on nothing else, give the same models to the bit.
"""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.errors import SettingsError

BLIND = ac.StackedVotes(edge_blind=True, folds=2)
FEATURES = 4
NUM_LABELLED, NUM_OTHERS = 40, 60
MANY = 15_001  # beyond the number of nodes from which on recipes have fewer epochs


def nodes_and_ids(rng, number, first):
    """Features of some nodes, and their ids."""
    return rng.standard_normal((number, FEATURES)).astype("float32"), np.arange(first, first + number)


def world(seed, others=NUM_OTHERS, uneven=False, mask_type=torch.bool):
    """A graph whose labelled nodes are always the same; a seed draws everything else, and the order of rows."""
    x, ids = nodes_and_ids(np.random.default_rng(0), NUM_LABELLED, 0)
    rng = np.random.default_rng(seed)
    other_x, other_ids = nodes_and_ids(rng, others, 1000)
    if uneven:
        other_x[:, 0] *= 10_000
    labelled = np.arange(NUM_LABELLED + others) < NUM_LABELLED
    y = np.concatenate([np.arange(NUM_LABELLED) % 2, rng.integers(-1, 9, others)])
    order = rng.permutation(len(y))
    is_validation = np.arange(len(y)) % 4 == 0
    part = {
        "train_mask": labelled & ~is_validation,
        "val_mask": labelled & is_validation,
        "test_mask": ~labelled & (rng.random(len(y)) < 0.5),
    }
    return Data(
        x=torch.from_numpy(np.concatenate([x, other_x])[order]),
        edge_index=torch.from_numpy(rng.integers(0, len(y), (2, 3 * len(y)))),
        y=torch.from_numpy(y[order]),
        node_id=torch.from_numpy(np.concatenate([ids, other_ids])[order]),
        **{name: torch.from_numpy(mask[order]).to(mask_type) for name, mask in part.items()},
    )


def same_weights(first, second):
    weights, others = first.state_dict(), second.state_dict()
    return list(weights) == list(others) and all(torch.equal(weights[name], others[name]) for name in weights)


WORLDS = {
    "an empty rest": {"others": 0},
    "more nodes": {"others": 300},
    "so many nodes that other graphs get another recipe": {"others": MANY},
    "an uneven column": {"uneven": True},
    "masks of numbers": {"mask_type": torch.uint8},
}


@pytest.mark.parametrize("name", ["mlp", "gcn", "sage", "gat"])
def test_models_by_name_are_the_same_to_the_bit_whatever_the_rest_of_the_graph_is(name):
    first = ac.fit(name, world(0), BLIND, epochs=4)
    for seed, drawn in enumerate([*WORLDS.values(), {}, {}], start=1):
        assert same_weights(first, ac.fit(name, world(seed, **drawn), BLIND, epochs=4)), drawn


@pytest.mark.parametrize("drawn", WORLDS.values(), ids=WORLDS)
def test_recipes_read_labelled_nodes_only(drawn):
    assert ac.recipe(world(0), "mlp", defence=BLIND) == ac.recipe(world(1, **drawn), "mlp", defence=BLIND)


def test_other_defences_have_recipes_that_follow_all_nodes():
    """Else the test above would say nothing."""
    few, many = (ac.recipe(world(0, others=others), "mlp", defence=ac.StackedVotes()) for others in (60, MANY))
    assert few != many


@pytest.mark.parametrize("scale", [None, "standard"])
def test_models_that_are_built_from_the_data_are_the_same_to_the_bit(scale):
    trained = []
    for seed, drawn in enumerate(WORLDS.values()):
        data = world(seed, **drawn)
        data.num_classes = 2
        trained.append(ac.fit(ac.build_model("mlp", data, scale=scale), data, BLIND, epochs=4))
    assert all(same_weights(trained[0], other) for other in trained)


def test_a_model_whose_classes_an_unlabelled_node_may_have_decided_is_refused():
    data = world(0)
    model = ac.build_model("mlp", data)
    assert model.config["out_channels"] == 9
    with pytest.raises(SettingsError, match=r"the model has 9 classes, and the labelled nodes have 2"):
        ac.fit(model, data, BLIND, epochs=1)
    data.num_classes = 9
    assert ac.fit(model, data, BLIND, epochs=1).num_classes == 9


def accounts(num_injected):
    """15,000 nodes of two classes that are hard to tell apart, 450 of them with a label, and isolated ones."""
    number, rng = 15_000, np.random.default_rng(0)
    y = rng.integers(0, 2, number)
    x = (0.5 * y[:, None] + 1.6 * rng.standard_normal((number, 16))).astype("float32")
    drawn = rng.random(number)
    parts = {"train_mask": drawn < 0.02, "val_mask": (drawn >= 0.02) & (drawn < 0.03), "test_mask": drawn >= 0.9}
    edges = rng.integers(0, number, (2, 3 * number))
    joined = edges[:, (y[edges[0]] == y[edges[1]]) | (rng.random(3 * number) < 0.3)]
    masks = {name: torch.from_numpy(np.append(mask, np.zeros(num_injected, bool))) for name, mask in parts.items()}
    return Data(
        x=torch.from_numpy(np.concatenate([x, np.zeros((num_injected, 16), "float32")])),
        edge_index=torch.from_numpy(np.concatenate([joined, joined[::-1]], axis=1)),
        y=torch.from_numpy(np.append(y, np.full(num_injected, -1))),
        node_id=torch.arange(number + num_injected),
        num_classes=2,
        **masks,
    )


def test_an_isolated_node_that_is_injected_before_training_changes_no_certified_label():
    """The 15,001st node, after which recipes of other defences have fewer epochs."""
    clean, poisoned = (
        ac.certify(ac.fit("sage", data, BLIND), data, BLIND, data.test_mask) for data in (accounts(0), accounts(1))
    )
    holds = clean.holds_against(ac.Budget(inject_nodes=1, edges_per_injected=0))
    assert holds.sum() > 1000
    assert np.array_equal(clean.label[holds], poisoned.label[holds])
