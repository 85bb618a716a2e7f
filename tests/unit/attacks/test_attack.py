"""The one call: reports, odd graphs and wrong input."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.attacks import attack, greedy, random
from agnncert.attacks.api import KINDS
from agnncert.attacks.results import cost_of
from agnncert.attacks.vote_problem import VoteProblem
from tests.support.neighbour_graphs import CLASSES, NodeListener, setting, town, towns


def test_a_report_sets_attacked_beside_certified_accuracy() -> None:
    model, data, division = setting("node", "N")
    certificate = ac.certify(model, data, division)
    report = attack(model, data, budget=ac.Budget(add_edges=2), certificate=certificate)
    assert report.certified_accuracy <= report.attacked_accuracy <= certificate.certified_accuracy()
    assert "certificates refuted: 0" in str(report)
    assert f"at most {report.attacked_accuracy:.3f} (attacked)" in str(report)


def test_a_report_says_of_how_many_targets_neither_is_known() -> None:
    model, data, division = setting("node", "N")
    certificate = ac.certify(model, data, division)
    report = attack(model, data, budget=ac.Budget(add_edges=3), certificate=certificate, kind="random")
    left = int((~report.succeeded & ~report.certified).sum())
    assert int(report.undecided.sum()) == left > 0
    assert f"changed or certified: {len(data.y) - left} of {len(data.y)}; of {left} neither is known" in str(report)


def test_against_a_vote_of_each_neighbour_the_greedy_attack_leaves_nothing_open() -> None:
    model, data = NodeListener(), town()
    certificate = ac.certify(model, data, ac.PerNeighbour())
    report = attack(model, data, budget=ac.Budget(delete_edges=1), certificate=certificate)
    assert report.succeeded.any()
    assert "changed or certified: 20 of 20, so attack and certificate are exact here" in str(report)


def test_several_kinds_count_as_the_best_of_them() -> None:
    model, data, division = setting("node", "E")
    budget = ac.Budget(add_edges=2, inject_nodes=1, edges_per_injected=1)
    each = [attack(model, data, division, budget=budget, kind=kind).succeeded for kind in ("greedy", "random")]
    both = attack(model, data, division, budget=budget, kind=["greedy", "random"])
    assert np.array_equal(both.succeeded, each[0] | each[1])


def test_results_can_be_applied_by_anyone() -> None:
    model, data, division = setting("graph", "E")
    report = attack(model, data, division, budget=ac.Budget(inject_nodes=2, edges_per_injected=3))
    for result in report.results:
        again = ac.certify(model, [result.perturbed(data)], division)
        assert again.label[0] == result.label_after


@pytest.mark.parametrize("division", [ac.EdgeCentric(5), ac.NodeCentric(5)])
@pytest.mark.parametrize("task", ["node", "graph"])
def test_graphs_without_ids_are_attacked_under_the_next_row_numbers(task: str, division: Any) -> None:
    data: Any = town(15, ids=False) if task == "node" else towns(4, ids=False)
    model = setting(task, "E")[0]
    budget = ac.Budget(inject_nodes=4, edges_per_injected=2, add_edges=1)
    problem = VoteProblem(model, data, division)
    for results in (greedy(problem, None, budget), random(problem, None, budget)):
        assert sum(result.cost.inject_nodes > 0 for result in results) > 0
        for result in results:
            rows = (data if task == "node" else data[result.row]).num_nodes
            attacked = result.perturbed(data)
            assert attacked.num_nodes == rows + result.cost.inject_nodes


def test_ids_of_any_kind_are_attacked() -> None:
    data = town(12)
    data.node_id = [f"user {k}" if k % 2 else str(k) for k in range(12)]
    report = attack(NodeListener(), data, ac.EdgeCentric(4), budget=ac.Budget(inject_nodes=3, edges_per_injected=1))
    assert report.results[1].target == "user 1"
    assert report.succeeded.any()


def test_edge_weights_are_turned_where_the_model_reads_them() -> None:
    data = town(20, degree=6.0, weights=True)
    budget = ac.Budget(change_edges=3)
    report = attack(NodeListener(), data, ac.EdgeCentric(3), budget=budget)
    assert report.succeeded.any()
    assert any(value not in (0, 1) for r in report.results for _, _, value in r.perturbation.change_edges)
    copies = attack(NodeListener(), town(20, degree=6.0), ac.EdgeCentric(3), budget=budget)
    assert sum(result.moved for result in copies.results) > 0


def test_own_features_are_changed_if_the_budget_says_so_and_cost_nothing_else() -> None:
    model, data, division = setting("node", "E")
    report = attack(model, data, division, budget=ac.Budget(target_features=True))
    assert report.succeeded.all()
    assert {result.cost for result in report.results} == {ac.Budget(target_features=True)}
    other = report.results[0].perturbation
    assert cost_of(other, "someone else") == ac.Budget(change_features=1)


def test_self_loops_and_isolated_nodes_are_no_obstacle() -> None:
    data = Data(
        x=torch.eye(CLASSES, dtype=torch.float64).repeat(2, 1),
        edge_index=torch.tensor([[0, 1, 2, 2], [1, 0, 2, 3]]),
        y=torch.arange(6) % CLASSES,
        node_id=torch.arange(6),
    )
    for division in (ac.EdgeCentric(3, self_loops=True), ac.NodeCentric(3, self_loops=True), ac.NodeCentric(3)):
        certificate = ac.certify(NodeListener(), data, division)
        budget = ac.Budget(add_edges=1, delete_edges=1, change_features=1, inject_nodes=1, edges_per_injected=2)
        for kind in ("greedy", "random"):
            assert not attack(NodeListener(), data, budget=budget, kind=kind, certificate=certificate).violations


@pytest.mark.parametrize("task", ["node", "graph"])
def test_no_targets_and_single_nodes_are_no_obstacle(task: str) -> None:
    model, data, division = setting(task, "N")
    assert attack(model, data, division, budget=ac.Budget(add_edges=1), targets=[]).results == ()
    nothing = torch.empty(2, 0, dtype=torch.long)
    alone: Any = Data(x=torch.eye(CLASSES, dtype=torch.float64)[:1], edge_index=nothing, node_id=[5])
    alone = alone if task == "node" else [alone, alone]
    everything = ac.Budget(2, 1, 1, 1, 2, 1, 1)
    for kind in ("greedy", "random", "gradient", "exhaustive"):
        assert attack(model, alone, division, budget=everything, kind=kind).results


class OneByOne(ac.Division):
    """A user's own division: the first character of the smaller id decides."""

    num_groups = 3

    def groups(self, graph: Any) -> torch.Tensor:
        return graph.node_key[graph.edge_index].amin(0) % 3

    def subgraph(self, graph: Any, groups: torch.Tensor, index: int) -> Any:
        return graph.with_edges(groups == index)

    def votes_moved(self, change: Any, graph: Any, target: Any) -> int:
        return 3


def test_a_users_own_division_is_attacked_without_knowing_its_subgraphs() -> None:
    data = town(6, degree=2)
    some = ac.Budget(add_edges=1, delete_edges=1)
    for kind in ("random", "exhaustive", "greedy"):
        report = attack(NodeListener(), data, OneByOne(), budget=some, kind=kind)
        assert sum(result.moved for result in report.results) > 0
    with pytest.raises(ac.errors.SettingsError, match='OneByOne: use "greedy", "random" or "exhaustive"'):
        attack(NodeListener(), data, OneByOne(), budget=some, kind="gradient")


def test_wrong_calls_are_met_with_what_to_do() -> None:
    model, data, division = setting("node", "E")
    some = ac.Budget(add_edges=1)
    with pytest.raises(ac.errors.SettingsError, match='did you mean "greedy"'):
        attack(model, data, division, budget=some, kind="gredy")
    with pytest.raises(ac.errors.SettingsError, match="no kind of attack"):
        attack(model, data, division, budget=some, kind=[])
    with pytest.raises(ac.errors.SettingsError, match="pass it, or the certificate"):
        attack(model, data, budget=some)
    with pytest.raises(ac.errors.BudgetError, match="2 budgets were given for 20 targets"):
        attack(model, data, division, budget=[some, some])
    with pytest.raises(ac.errors.BudgetError, match="expected a Budget, got int"):
        attack(model, data, division, budget=3)  # type: ignore[arg-type]
    with pytest.raises(ac.errors.BudgetError, match="no node_id"):
        attack(model, town(ids=False), division, budget=ac.Budget(delete_nodes=1))
    with pytest.raises(ac.errors.BudgetError, match="for graphs use change_features"):
        attack(*setting("graph", "N"), budget=ac.Budget(target_features=True))
    with pytest.raises(ac.errors.SettingsError, match="expected a division such as"):
        attack(model, data, 30, budget=some)  # type: ignore[arg-type]
    certificate = ac.certify(model, data, division, targets=[1, 2])
    with pytest.raises(ac.errors.SettingsError, match="not those of the certificate"):
        attack(model, data, budget=some, targets=[3], certificate=certificate)
    with pytest.raises(ac.errors.SettingsError, match="no certificate to compare with"):
        attack(model, data, division, budget=some, targets=[1]).violations  # noqa: B018


def test_every_kind_is_documented_and_runs() -> None:
    model, data, division = setting("node", "N", count=6, num_groups=4)
    for kind in KINDS:
        assert f'"{kind}"' in (attack.__doc__ or "")
        budget = ac.Budget(delete_edges=1, inject_nodes=1, edges_per_injected=1)
        assert len(attack(model, data, division, budget=budget, kind=kind, targets=[0, 1]).results) == 2


def test_no_targets_are_no_obstacle_for_an_attack_by_name() -> None:
    model, data, _ = setting("node", "E", count=6, num_groups=4)
    assert random(VoteProblem(model, data, OneByOne()), [], ac.Budget(add_edges=1)) == []
