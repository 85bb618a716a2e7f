"""The search of ``offline`` goes every way, finds nothing on the code as it is, and finds errors that are planted."""

import itertools

import pytest

from tests.soundness.retraining.offline import PLANTED, case, small_recipes, until_found
from tests.soundness.retraining.source import Accounts, Scan, Scans, cost_of_accounts, cost_of_scans
from tests.soundness.retraining.ways import WAYS

FEW = 4
SOON = 600


@pytest.fixture(autouse=True)
def recipes_for_small_worlds():
    with small_recipes():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_no_certified_label_changes_on_the_way(name: str) -> None:
    tried = list(itertools.islice(case(name, seed=1), FEW))
    assert all(each["false"] == [] for each in tried), tried
    assert sum(each["checks"] for each in tried) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("a split by class", "labels and edges"),
        ("a recipe that counts all nodes", "edge-blind"),
        ("parts by position", "isolated"),
        ("one change less", "label votes"),
        ("one change less", "label votes, tables"),
        ("one change less", "node-centric"),
        ("one change less", "per neighbour"),
    ],
)
def test_a_planted_error_is_found_on_the_way(fault: str, name: str) -> None:
    assert name in PLANTED[fault][1]
    assert until_found(fault, name, SOON) is not None


def test_what_an_attack_costs_is_counted_from_the_sources() -> None:
    before = Accounts({1: (0.0,), 2: (0.0,), 3: (0.0,), 4: (0.0,)}, {1: 0, 2: 1, 3: 0}, frozenset({(1, 2), (2, 3)}))
    after = before.joined(1, 3).separated(2, 3).labelled(1, 1).labelled(3, None).labelled(4, 1)
    after = after.described(2, (9.0,)).with_account(7, (1.0,), [1, 2])
    cost = cost_of_accounts(before, after, frozenset({1, 3, 4}))
    assert (cost.add_edges, cost.delete_edges, cost.change_features) == (1, 1, 1)
    assert (cost.inject_nodes, cost.edges_per_injected, cost.delete_nodes) == (1, 2, 0)
    assert (cost.flip_labels, cost.remove_labels, cost.add_labels) == (1, 1, 1)
    assert cost_of_accounts(before, before.labelled(2, 0), frozenset({1})).flip_labels == 0
    gone = cost_of_accounts(before, before.without(2), frozenset({1}))
    assert (gone.delete_nodes, gone.delete_edges) == (1, 0)


def test_an_altered_scan_counts_twice_if_its_content_is_its_id() -> None:
    scan, other = (Scan(((float(k),),), frozenset(), 0) for k in range(2))
    before = Scans({1: scan, 2: scan, 3: scan})
    after = before.with_scan(1, other).without(2).with_scan(9, other)
    assert cost_of_scans(before, after, by_content=False).poison_graphs == 3
    assert cost_of_scans(before, after, by_content=True).poison_graphs == 4
