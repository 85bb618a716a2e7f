"""A defence that this library has never seen is attacked through its labels and scores, and nothing else is asked."""

from typing import Any

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.attacks import ScoreProblem, VoteProblem, attack, problem_of, random
from agnncert.errors import BudgetError, SettingsError
from tests.support.neighbour_graphs import CLASSES, GraphListener, NodeListener, fits, setting, town, towns


class Clipped(ac.Defence):
    """The logits of the model with clipped features, in thousandths."""

    kind = "clipped"

    def __str__(self) -> str:
        return "clipped features"

    def scores(self, model: Any, data: Any, targets: Any = None) -> Any:
        graphs = data if isinstance(data, list) else [data]
        rows = []
        for graph in graphs:
            batch = [torch.zeros(graph.num_nodes, dtype=torch.int64)] if isinstance(data, list) else []
            with torch.no_grad():
                rows.append(model(graph.x.clamp(-2, 2), graph.edge_index, *batch))
        scores = (1000 * torch.cat(rows)).long().numpy()
        return scores if targets is None else scores[targets]

    def fit(self, model: Any, data: Any, options: Any) -> Any:
        raise NotImplementedError

    audit = certify = compare_model = fit

    @classmethod
    def from_file(cls, contents: Any, model: Any) -> "Clipped":
        return cls()

    @classmethod
    def from_settings(cls, name: str, task: Any, settings: Any) -> "Clipped":
        return cls()


BUDGETS = [
    ac.Budget(add_edges=2),
    ac.Budget(delete_edges=2, change_edges=1),
    ac.Budget(inject_nodes=2, edges_per_injected=1),
    ac.Budget(delete_nodes=1, change_features=1),
    ac.Budget(target_features=True),
]


@pytest.mark.parametrize("kind", ["greedy", "random"])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_labels_are_those_of_the_attacked_graph_and_costs_are_within_the_budget(kind: str, budget: ac.Budget) -> None:
    model = NodeListener()
    data = town(20, degree=4.0)
    before = Clipped().labels(model, data)
    report = attack(model, data, Clipped(), budget=budget, kind=kind)
    for row, result in enumerate(report.results):
        attacked = result.perturbed(data)
        place = attacked.node_id.tolist().index(result.target)
        assert fits(result.cost, budget)
        assert result.label_before == before[row]
        assert result.label_after == Clipped().labels(model, attacked)[place]
    assert report.succeeded.any() or kind == "random"
    assert "of the score's lead lost on average" in str(report)


def test_greedy_changes_more_labels_than_random() -> None:
    model = NodeListener()
    data = town(30, degree=4.0)
    for budget in BUDGETS[:3]:
        fallen = [attack(model, data, Clipped(), budget=budget, kind=kind).succeeded for kind in ("greedy", "random")]
        assert fallen[0].sum() > fallen[1].sum(), budget


def test_exhaustive_finds_everything_that_greedy_finds() -> None:
    data = town(5, degree=2.0, seed=1)
    some = ac.Budget(add_edges=1, delete_edges=1)
    everything, quick = (
        attack(NodeListener(), data, Clipped(), budget=some, kind=kind).succeeded for kind in ("exhaustive", "greedy")
    )
    assert everything.any()
    assert not (quick & ~everything).any()


@pytest.mark.parametrize("kind", ["greedy", "random", "exhaustive"])
def test_graphs_are_attacked_too(kind: str) -> None:
    data = towns(3, 4)
    some = ac.Budget(inject_nodes=1, edges_per_injected=1, delete_edges=1)
    report = attack(GraphListener(), data, Clipped(), budget=some, kind=kind)
    for row, result in enumerate(report.results):
        assert result.row == row
        assert result.label_after == Clipped().labels(GraphListener(), [result.perturbed(data)])[0]
    assert any(result.moved > 0 for result in report.results)


def test_the_gradient_attack_says_why_it_cannot() -> None:
    with pytest.raises(SettingsError, match="votes of single subgraphs, and clipped features has none: use"):
        attack(NodeListener(), town(6), Clipped(), budget=BUDGETS[0], kind="gradient")


def test_features_of_zeros_and_ones_stay_zeros_and_ones() -> None:
    data = town(10)
    data.x = (data.x > 0.5).double()
    for kind in ("greedy", "random"):
        report = attack(NodeListener(), data, Clipped(), budget=ac.Budget(change_features=2, inject_nodes=1), kind=kind)
        given = [row for r in report.results for row in r.perturbation.change_features.values()]
        given += [row for r in report.results for row in r.perturbation.inject_nodes.values()]
        assert given
        assert set(np.array(given).ravel()) <= {0.0, 1.0}


def test_no_targets_one_node_and_no_edges_are_no_obstacle() -> None:
    assert attack(NodeListener(), town(6), Clipped(), budget=BUDGETS[0], targets=[]).results == ()
    alone = town(1)
    alone.edge_index = torch.zeros(2, 0, dtype=torch.int64)
    for kind in ("greedy", "random", "exhaustive"):
        assert (
            len(attack(NodeListener(), alone, Clipped(), budget=ac.Budget(2, 1, 1, 1, 1, 1, 1), kind=kind).results) == 1
        )


@pytest.mark.parametrize("division", ["E", "N"])
def test_a_division_attacked_through_its_scores_has_the_labels_of_its_votes(division: str) -> None:
    model, data, divided = setting("node", division)
    by_votes = problem_of(model, data, divided)
    by_scores = ScoreProblem(model, data, divided.as_defence())
    assert isinstance(by_votes, VoteProblem)
    rows = np.arange(5)
    attacks = [(result.row, result.perturbation) for result in random(by_votes, rows, ac.Budget(2, 2, 0, 1, 2, 1))]
    for before, after in (
        (by_votes.outcomes(rows), by_scores.outcomes(rows)),
        (by_votes.outcomes_after(attacks), by_scores.outcomes_after(attacks)),
    ):
        assert [by_votes.winner(votes) for votes in before] == [by_scores.winner(scores) for scores in after]
        assert [by_votes.scores(votes).tolist() for votes in before] == after[:, :CLASSES].tolist()


def test_the_voting_rule_of_a_choice_is_the_one_that_is_attacked() -> None:
    model, data, division = setting("node", "N")
    stubborn = ac.VotingRule(prior=[100, 0, 0])
    chosen = division.as_defence().with_voting_rule(stubborn)
    report = attack(model, data, chosen, budget=ac.Budget(add_edges=1))
    assert {result.label_after for result in report.results} == {0}
    assert not report.succeeded.any()


def test_a_change_beyond_the_budget_is_refused() -> None:
    data = town(6)
    first, second, third = data.node_id[:3].tolist()
    for problem in (problem_of(NodeListener(), data, Clipped()), problem_of(NodeListener(), data, ac.EdgeCentric(3))):
        before = problem.outcomes(np.array([0]))
        change = ac.Perturbation(change_features={second: [0.0] * CLASSES, third: [0.0] * CLASSES})
        with pytest.raises(BudgetError, match='"by hand" costs Budget'):
            problem.results([(0, change)], before, [ac.Budget(change_features=1)], "by hand")
        own = ac.Perturbation(change_features={first: [0.0] * CLASSES})
        with pytest.raises(BudgetError, match="which is more than"):
            problem.results([(0, own)], before, [ac.Budget(change_features=1)], "by hand")
        assert problem.results([(0, own)], before, [ac.Budget(target_features=True)], "by hand")[0].kind == "by hand"
