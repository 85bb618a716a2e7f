"""PRBCD against the vote, and against the undefended model as a vote of one subgraph."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import SAGEConv

import agnncert as ac
from agnncert.attacks import gradient
from agnncert.attacks.vote_problem import VoteProblem
from tests.support.neighbour_graphs import GraphListener, NodeListener, PlainListener, fits, setting, town, towns

BUDGET = ac.Budget(add_edges=4, delete_edges=1)


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("division", ["E", "N"])
def test_gradient_attacks_on_the_vote_move_votes_within_the_budget(task: str, division: str) -> None:
    model, data, division = setting(task, division, num_groups=7 if task == "node" else 3)
    certificate = ac.certify(model, data, division)
    problem = VoteProblem(model, data, division)
    rows = range(6)
    results = gradient(problem, rows, BUDGET)
    assert all(fits(result.cost, BUDGET) for result in results)
    assert sum(result.moved for result in results) > 0
    holds = certificate.holds_against(BUDGET)[:6]
    assert not (holds & [result.succeeded for result in results]).any()


def test_the_undefended_model_falls_more_often_than_the_vote() -> None:
    model, data, division = setting("node", "N", num_groups=25)
    undefended = gradient(VoteProblem(model, data, ac.EdgeCentric(1)), range(12), BUDGET)
    with torch.no_grad():
        plain = model(data.x, data.edge_index).argmax(1)
    assert [result.label_before for result in undefended] == plain[:12].tolist()
    fallen = np.mean([result.succeeded for result in undefended])
    voting_rule = VoteProblem(model, data, division)
    after = [
        voting_rule.winner(votes) for votes in voting_rule.outcomes_after([(r.row, r.perturbation) for r in undefended])
    ]
    before = [voting_rule.winner(votes) for votes in voting_rule.outcomes(np.arange(12))]
    assert fallen > 0.7
    assert fallen > np.mean(np.array(before) != after)


def test_layers_without_edge_weights_are_attacked_through_their_messages() -> None:
    model = PlainListener(seed=3, layer=SAGEConv)
    problem = VoteProblem(model, town(20, seed=3), ac.NodeCentric(5))
    results = gradient(problem, range(6), ac.Budget(add_edges=4))
    assert sum(result.moved for result in results) > 0
    assert all(module._edge_mask is None for module in model.modules() if isinstance(module, SAGEConv))


def test_the_same_seed_finds_the_same_attack() -> None:
    problem = VoteProblem(NodeListener(), town(), ac.EdgeCentric(6))
    state = torch.random.get_rng_state()
    first, second = (gradient(problem, [1, 2], BUDGET, seed=4) for _ in range(2))
    assert [result.perturbation for result in first] == [result.perturbation for result in second]
    assert torch.equal(state, torch.random.get_rng_state())


def test_what_cannot_be_attacked_by_gradient_is_refused_with_the_reason() -> None:
    def by_hand(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return x

    with pytest.raises(ac.errors.ModelContractError, match="edge_weight argument"):
        gradient(VoteProblem(by_hand, town(), ac.EdgeCentric(3)), [0], BUDGET)
    with pytest.raises(ac.errors.SettingsError, match="weights or attributes already"):
        gradient(VoteProblem(NodeListener(), town(weights=True), ac.EdgeCentric(3)), [0], BUDGET)


def test_a_budget_without_edges_changes_nothing() -> None:
    problem = VoteProblem(GraphListener(), towns(2), ac.NodeCentric(4))
    results = gradient(problem, None, ac.Budget(change_features=3))
    assert all(result.cost == ac.Budget() and not result.moved for result in results)
