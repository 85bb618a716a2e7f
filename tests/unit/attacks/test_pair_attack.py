"""Attacks on pairs: none within the proof, and whatever is not certified falls where votes are counted exactly."""

import math

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.errors import BudgetError, SettingsError
from agnncert.stacked.record import STEPS
from tests.support.pair_data import links, ratings

DEFENCES = {
    "common": ac.PairVotes(epochs=4),
    "both": ac.PairVotes(epochs=4, over="both"),
    "trusted": ac.PairVotes(epochs=4, trusted=0, directed=True, balanced=True),
}
BUDGETS = (
    ac.Budget(add_edges=1),
    ac.Budget(delete_edges=1),
    ac.Budget(delete_nodes=1),
    ac.Budget(inject_nodes=2, edges_per_injected=math.inf),
    ac.Budget(inject_nodes=3, edges_per_injected=1),
    ac.Budget(change_edges=1),
    ac.Budget(add_edges=2, delete_edges=1, change_edges=1, delete_nodes=1, inject_nodes=1, edges_per_injected=2),
)


@pytest.fixture(scope="module")
def made():
    """Data, model and certificate of each kind, with leads of few votes."""
    found = {}
    for name, defence in DEFENCES.items():
        data = ratings() if name == "trusted" else links()
        model = ac.fit(None, data, defence)
        with torch.no_grad():
            model.use_votes.fill_(1)
            model.side_weight.fill_(0.25 if name == "both" else 0)
            scores = defence.scores(model, data, data.test_mask)
            model.constant[1] -= float(np.median(scores[:, 1] - scores[:, 0])) / STEPS - 0.3
        found[name] = data, model, ac.certify(model, data, defence, data.test_mask)
    return found


@pytest.mark.parametrize("name", DEFENCES)
def test_no_certified_label_falls_and_others_do(name, made) -> None:
    data, model, certificate = made[name]
    fell, open_ones = 0, 0
    for budget in BUDGETS:
        report = ac.attack(model, data, certificate=certificate, budget=budget)
        assert not report.violations, budget
        assert not (report.succeeded & report.certified).any(), budget
        for result, allowed in zip(report.results, report.budgets, strict=True):
            assert allowed.allows(result.cost)
        if name == "common":
            assert np.array_equal(report.succeeded, ~certificate.holds_against(budget)), budget
        fell += int(report.succeeded.sum())
        open_ones += int((~report.certified).sum())
    assert fell > 0.6 * open_ones > 0


def test_the_changes_that_an_attack_names_change_the_label_on_the_graph(made) -> None:
    data, model, certificate = made["common"]
    report = ac.attack(model, data, certificate=certificate, budget=ac.Budget(delete_edges=2))
    row_of = {int(node): row for row, node in enumerate(data.node_id)}
    for result in [one for one in report.results if one.succeeded][:5]:
        ends = torch.tensor([[row_of[int(node)]] for node in result.target.split(" – ")])
        attacked = result.perturbation.apply(data)
        assert int(model.defence.labels(model, attacked, ends)[0]) == result.label_after != result.label_before
        assert data.edge_label_index[:, result.row].tolist() == ends.view(-1).tolist()


def test_the_pairs_of_a_certificate_are_attacked_though_the_data_does_not_list_them(made) -> None:
    data, model, _ = made["common"]
    listed = set(map(tuple, data.edge_label_index.T.tolist()))
    others = [(u, v) for u in range(12) for v in range(u + 1, 12) if (u, v) not in listed]
    certificate = ac.certify(model, data, model.defence, torch.tensor(others).T)
    budget = ac.Budget(add_edges=2, delete_edges=2)
    report = ac.attack(model, data, certificate=certificate, budget=budget)
    assert [result.target for result in report.results] == certificate.target.tolist()
    assert np.array_equal(report.succeeded, ~certificate.holds_against(budget))
    with pytest.raises(SettingsError, match="not those of the certificate"):
        ac.attack(model, data, certificate=certificate, budget=budget, targets=np.arange(len(others)))


def test_what_cannot_be_attacked_says_so(made) -> None:
    data, model, certificate = made["common"]
    with pytest.raises(SettingsError, match="vote by vote"):
        ac.attack(model, data, certificate=certificate, budget=ac.Budget(add_edges=1), kind="random")
    with pytest.raises(BudgetError, match="own features and values"):
        ac.attack(model, data, certificate=certificate, budget=ac.Budget(target_features=True))
    with pytest.raises(SettingsError, match="not those of the certificate"):
        ac.attack(model, data, certificate=certificate, budget=ac.Budget(add_edges=1), targets=[0, 1])
    masked = ac.fit(None, data, ac.PairVotes(epochs=1, mask="targets"))
    with pytest.raises(SettingsError, match="edges of all targets are masked"):
        ac.attack(masked, data, masked.defence, budget=ac.Budget(add_edges=1))
