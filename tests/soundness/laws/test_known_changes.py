"""A change that is known and that a certificate holds against leaves the label as it is, whatever the defence."""

from functools import cache

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.defence import as_defence
from agnncert.errors import BudgetError
from tests.soundness.laws.test_stacked_graphs import random_model
from tests.support.graphs import ids_of, pairs_of
from tests.support.neighbour_graphs import NodeListener, town

NODES = 40
CHANGED = 60  # graphs for each defence
DEFENCES = {
    "per neighbour": ac.PerNeighbour(),
    "per edge": ac.PerEdge(),
    "node-centric": ac.NodeCentric(40),
    "edge-centric": ac.EdgeCentric(40),
    "gated": ac.GatedNodeCentric(40),
    "stacked": ac.StackedVotes(),
    "stacked mean": ac.StackedVotes(combine="mean"),
    "stacked, two levels": ac.StackedVotes(levels=2),
    "labels": ac.LabelVotes(neighbour_votes=2, df=4),
}
FEW_GROUPS = {"few groups": ac.NodeCentric(2)}  # certify next to nothing, and change often
NEAR = ("per neighbour", "per edge", "stacked", "stacked mean", "labels")  # only what is done at a node matters


@cache
def setting(name):
    """A trained model, its graph and a certificate of all nodes."""
    data = ac.split(town(NODES, degree=4.0, seed=3), seed=1)
    data.num_classes = 3
    if name.startswith("stacked"):
        data.x = data.x.float()
    defence = (DEFENCES | FEW_GROUPS)[name]
    if name == "labels":
        model = ac.fit(None, data, defence)
    elif name.startswith("stacked"):
        model = random_model(defence, 2)
    else:
        model = NodeListener(seed=2)
    named = getattr(model, "defence", defence)
    return model, data, as_defence(named), ac.certify(model, data, named)


def changed(data, seed, edges_only):
    """Edges that come and go anywhere and, unless only edges may change, a node and some features."""
    random = np.random.default_rng(seed)
    ids = ids_of(data)
    joined = pairs_of(data)
    have = {frozenset(pair) for pair in joined}
    hub = int(random.choice(ids))
    free = [(hub, v) for v in ids if v != hub and frozenset((hub, v)) not in have]
    far = [(u, v) for u, v in random.choice(ids, (6, 2)).tolist() if u != v and frozenset((u, v)) not in have]
    number = int(random.integers(1, 5))  # half of the graphs are changed at one node
    near = [free[k] for k in random.permutation(len(free))[:number]]
    pairs = near if seed % 2 else [*near[:1], *far[:3]]
    added = {frozenset(pair): pair for pair in pairs}
    deleted = [joined[k] for k in random.permutation(len(joined))[: random.integers(2)]]
    arguments = {"add_edges": list(added.values()), "delete_edges": deleted}
    if not edges_only:
        what = random.integers(4)
        features = (5 * random.normal(size=data.x.size(1))).tolist()
        if what == 1:
            arguments["inject_nodes"] = {5_000: features}
            arguments["add_edges"] += [(5_000, v) for v in random.permutation(ids)[:3].tolist()]
        elif what == 2:
            arguments["change_features"] = {int(random.choice(ids)): features}
        elif what == 3:
            gone = int(random.choice(ids))
            arguments = {name: [p for p in pairs if gone not in p] for name, pairs in arguments.items()}
            arguments["delete_nodes"] = [gone]
    return ac.Perturbation(**arguments)


def labels_after(name, change):
    """Labels of the surviving targets on the attacked graph, by id."""
    model, data, defence, _ = setting(name)
    attacked = change.apply(data)
    return dict(zip(ids_of(attacked), defence.labels(model, attacked).tolist(), strict=True))


def hold_what_they_say(name):
    certificate = setting(name)[3]
    counts = {"held": 0, "changed": 0, "nearby": 0}
    for seed in range(CHANGED):
        change = changed(setting(name)[1], seed, edges_only=name == "labels")
        after = labels_after(name, change)
        holds = certificate.holds_against(change)
        beyond = certificate.holds_against(change.cost().but(target_features=False))
        for k, target in enumerate(certificate.target.tolist()):
            if target not in after:
                assert not holds[k], "a label of a node that is gone"
                continue
            same = after[target] == certificate.label[k]
            assert same or not holds[k], (name, seed, target)
            counts["held"] += bool(holds[k])
            counts["changed"] += not same
            counts["nearby"] += bool(holds[k]) and not beyond[k]
    return counts


@pytest.mark.parametrize("name", DEFENCES)
def test_no_label_changes_that_a_certificate_holds_against_a_change(name):
    counts = hold_what_they_say(name)
    assert counts["held"] > 25, counts
    assert counts["changed"] > 4, "a test without teeth"
    assert (counts["nearby"] > 20) == (name in NEAR), counts


def test_a_division_counts_a_known_change_wherever_it_is():
    certificate = setting("node-centric")[3]
    change = ac.Perturbation(add_edges=[(5_001, 5_002), (5_003, 5_004)])
    assert (certificate.holds_against(change) == certificate.holds_against(Budget(add_edges=2))).all()
    assert setting("per neighbour")[3].holds_against(change).all()
    assert certificate[certificate.target[0]].holds_against(change) == certificate.holds_against(change)[0]


def test_a_certificate_that_trusts_edges_refuses_a_change_that_it_cannot_judge():
    data = ac.split(town(NODES, degree=4.0, seed=3), seed=1)
    data.x = data.x.float()
    data.edge_attr = torch.ones(data.edge_index.size(1), 1)
    base = ac.build_model("mlp", data, num_layers=1)
    model = ac.fit(base, data, ac.StackedVotes(size=0, epochs=5, trusted=0), seed=0, epochs=5, protocol="inductive")
    certificate = ac.certify(model, data, model.defence)
    ids = ids_of(data)
    with pytest.raises(BudgetError, match="trusts some edges, and the certificate does not know which"):
        certificate.holds_against(ac.Perturbation(delete_edges=[(ids[0], ids[1])]))
