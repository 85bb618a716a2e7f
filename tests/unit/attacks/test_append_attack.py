"""The attack on append-only scores: it frames, it hides nobody who is certified, and it stays within its budget."""

import math

import numpy as np
import pytest

import agnncert as ac
from tests.support.append_graphs import payments

ANYTHING = ac.Budget(add_edges=math.inf, inject_nodes=math.inf)


@pytest.fixture(scope="module")
def certified():
    data = payments(accounts=80)
    defence = ac.AppendOnly(threat="ledger", deletions=2, trees=30, ensembles=1)
    model = ac.fit(None, data, defence, seed=1)
    point = ac.choose_threshold(model, data, defence, false_positive_rate=0.2)
    labels = point.defence.labels(point.model, data)
    some = np.sort(np.concatenate([np.flatnonzero(labels == k)[:6] for k in (0, 1)]))
    certificate = ac.certify(point.model, data, point, some)
    assert certificate.num_targets == 12
    return data, point, certificate


def attacked(certified, budget):
    data, point, certificate = certified
    report = ac.attack(point.model, data, point, budget=budget, certificate=certificate)
    assert not report.violations
    assert all(budget.allows(result.cost) for result in report.results)
    return report, certificate.label == 1


def test_with_any_number_of_rows_all_are_framed_and_nobody_hides(certified):
    report, flagged = attacked(certified, ANYTHING)
    assert np.array_equal(report.succeeded, ~flagged)
    assert not report.undecided.any()
    assert all(result.cost.add_edges + result.cost.inject_nodes > 100 for result in np.array(report.results)[flagged])


def test_rows_from_old_accounts_frame_too(certified):
    report, flagged = attacked(certified, ac.Budget(add_edges=10))
    assert report.succeeded[~flagged].any()
    assert not report.succeeded[flagged].any()


def test_deleted_pairs_hide_who_is_not_certified_against_them(certified):
    report, flagged = attacked(certified, ac.Budget(delete_edges=4, inject_nodes=2))
    assert report.succeeded[flagged].any()
    assert "row" in str(report) or "points" in str(report)


def test_other_attacks_and_budgets_that_make_no_sense_are_refused(certified):
    data, point, _ = certified
    with pytest.raises(ac.errors.SettingsError, match="row by row"):
        ac.attack(point.model, data, point, budget=ANYTHING, kind="random")
    with pytest.raises(ac.errors.BudgetError, match="trained on"):
        ac.attack(point.model, data, point, budget=ac.Budget(flip_labels=1), targets=[0])


def test_an_undirected_graph_without_values_is_attacked_both_ways():
    import torch
    from torch_geometric.data import Data

    random = np.random.default_rng(2)
    ends = np.unique(np.sort(random.integers(0, 60, (2, 150)), axis=0), axis=1)
    ends = ends[:, ends[0] != ends[1]]
    y = (np.bincount(ends.ravel(), minlength=60) > 5).astype(int)
    data = Data(x=torch.rand(60, 2), edge_index=torch.from_numpy(np.hstack([ends, ends[::-1]])), y=torch.from_numpy(y))
    data.train_mask = torch.arange(60) % 2 == 0
    data.val_mask = data.test_mask = ~data.train_mask
    defence = ac.AppendOnly(threat="fresh", positive=1, trees=20, ensembles=1)
    model = ac.fit(None, data, defence, seed=0)
    certificate = ac.certify(model, data, defence, data.test_mask)
    report = ac.attack(model, data, defence, budget=ac.Budget(add_edges=5, inject_nodes=5), certificate=certificate)
    assert not report.violations
    assert not report.succeeded[certificate.label == 1].any()
    assert report.succeeded.any()
    assert not report.results[0].perturbation.directed
