"""A model in two parts, one for nodes that hear nothing: changes within the radius leave every label as it was.

The change from one part to the other when a node loses its last edge, or gets its first, is the place to attack.
"""

import random
from functools import cache

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.attacks import VoteProblem
from tests.support.small_graphs import random_graph


def two_minds(data) -> ac.Fallback:
    """Two parts that disagree as often as they can."""
    parts = [
        ac.build_model(name, data, out_channels=3, hidden_channels=8, seed=k) for k, name in enumerate(("gcn", "mlp"))
    ]
    with torch.no_grad():
        for part in parts:
            for number, weight in enumerate(part.parameters()):
                weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(number + 7)))
    return ac.Fallback(*parts).double().eval()


def changes(data, rng: random.Random, radius: int):
    """Up to ``radius`` edges at one node: all it has are deleted, or its first ones are added."""
    ids = data.node_id.tolist()
    node = rng.randrange(len(ids))
    near = sorted({int(k) for k in data.edge_index[0][data.edge_index[1] == node].tolist()} - {node})
    far = [k for k in range(len(ids)) if k != node and k not in near]
    rng.shuffle(near)
    rng.shuffle(far)
    deleted = near[: rng.randint(0, radius)]
    added = far[: radius - len(deleted)]
    return ids[node], ac.Perturbation(
        delete_edges=[(ids[node], ids[k]) for k in deleted], add_edges=[(ids[node], ids[k]) for k in added]
    )


@pytest.mark.parametrize("voting_rule", [None, ac.VotingRule("abstain", [0, 2, 1])], ids=["plain", "abstain"])
@pytest.mark.parametrize("division", [ac.EdgeCentric(15), ac.NodeCentric(15), ac.PerNeighbour()], ids=str)
def test_edges_within_the_radius_flip_no_label(division, voting_rule) -> None:
    data = random_graph(16, 18)
    model = two_minds(data)
    alone = model(data.x, torch.zeros(2, 0, dtype=torch.int64)).argmax(1)
    certificate = ac.certify(model, data, division, voting_rule=voting_rule)
    problem = VoteProblem(model, data, division, voting_rule)
    rng, tried, at_the_border = random.Random(0), 0, 0
    place, holds = {name: k for k, name in enumerate(certificate.target.tolist())}, cache(certificate.holds_against)
    for _ in range(160):
        size = rng.randint(1, 3)
        name, change = changes(data, rng, size)
        cost = ac.Budget(add_edges=len(change.add_edges), delete_edges=len(change.delete_edges))
        held = holds(cost)
        if held[place[name]]:
            tried += 1
            attacked = np.array(
                [problem.winner(votes) for votes in problem.outcomes_in_whole_graph(range(len(held)), change)]
            )
            assert np.array_equal(attacked[held], certificate.label[held]), (name, change)
            at_the_border += int(alone[place[name]]) != certificate.label[place[name]]
    assert tried > 20, "nothing was certified, so nothing was tried"
    assert at_the_border or voting_rule is None
