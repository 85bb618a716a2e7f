"""Subgraphs that an attacker wakes far from the target."""

import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.graphs.hashing import edge_groups, id_keys


class Constant(torch.nn.Module):
    """Predicts the same everywhere, whatever the edges."""

    def __init__(self, logits) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(logits))

    def forward(self, x, edge_index):
        return self.weight.expand(len(x), -1)


def check_waking() -> None:
    """A node injected at p in group 0 and at q in group 1 leaves the target v alone, whose groups stay empty."""
    keys = id_keys(range(40))
    group = [int(edge_groups(keys[k : k + 1], keys[39:], 2, "md5")[0]) for k in range(39)]
    p, q = group.index(0), group.index(1)
    v = next(k for k in range(39) if k not in (p, q))
    data = Data(x=torch.ones(3, 1), edge_index=torch.empty(2, 0, dtype=torch.int64), node_id=torch.tensor([v, p, q]))
    attack = ac.Perturbation(inject_nodes={39: [1.0]}, add_edges=[(39, p), (39, q)])
    voting_rule = ac.VotingRule("abstain", [0, 2, 0])
    before, after = (
        ac.certify(Constant([1.0, 0.0, -1.0]), graph, ac.EdgeCentric(2), voting_rule=voting_rule)
        for graph in (data, attack.apply(data))
    )
    assert before.holds_against(attack.cost())[0]
    assert before.label[0] == after.label[0] == 1
