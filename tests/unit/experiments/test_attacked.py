"""What is counted about graphs that others attacked: a certificate that a real change refutes would be seen."""

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import agnncert as ac
from experiments.benchmarks import attacked
from experiments.benchmarks.attacked import Case, KnownClasses, OfNeighbours, Proofs, Trained, with_edges
from tests.support.neighbour_graphs import NodeListener, town


def attacked_town():
    """A town in which three nodes got an edge each, and the case of its attack."""
    clean = town(20, seed=1)
    clean.node_id = torch.arange(20)
    joined = {frozenset(pair) for pair in clean.edge_index.t().tolist()}
    pairs = [(u, next(v for v in range(19, 0, -1) if v != u and frozenset((u, v)) not in joined)) for u in (0, 1, 2)]
    graph = ac.Perturbation(add_edges=pairs).apply(clean)
    return Case("town", "nettack", clean, torch.arange(20) < 8, {1: graph}), pairs


def test_the_real_change_is_what_the_certificate_is_asked_about():
    case, pairs = attacked_town()
    assert case.changes[1].cost().add_edges == len(pairs)
    certificate = ac.certify(NodeListener(), case.clean, ac.PerNeighbour(), case.targets)
    proofs = Proofs(case, Trained(None, certificate), certificate.label)
    proofs.add(1, certificate.label)
    held = int(certificate.holds_against(case.changes[1]).sum())
    assert held >= 5, "nothing was changed at five of the nodes"
    assert proofs.counts == {"certified": held, "violations": 0, "not certified": 8 - held, "changed": 0}


def test_a_label_that_changes_although_it_is_certified_is_a_violation():
    case, _ = attacked_town()
    certificate = ac.certify(NodeListener(), case.clean, ac.PerNeighbour(), case.targets)
    for by_itself in (None, lambda strength: None):
        proofs = Proofs(case, Trained(None, certificate, by_itself), certificate.label)
        proofs.add(1, certificate.label + 1)
        held = int(certificate.holds_against(case.changes[1]).sum())
        assert (proofs.counts["violations"], proofs.counts["changed"]) == (held, 8 - held)
        assert held > 0


def test_an_adjacency_matrix_becomes_the_edges_of_a_graph():
    graph = with_edges(Data(x=torch.eye(3), edge_index=torch.empty(2, 0, dtype=torch.int64)), np.eye(3, k=1))
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]


def test_neighbours_vote_for_the_classes_that_were_known_before_the_attack():
    edges = to_undirected(torch.tensor([[0, 0, 0, 0, 4], [1, 2, 3, 4, 5]]))
    lesson = Data(x=torch.eye(6), y=torch.tensor([0, 1, 1, 0, 0, 0]), edge_index=edges, num_classes=2)
    lesson.train_mask = torch.tensor([False, True, True, True, False, False])  # 0, 4 and 5 are hidden
    known = KnownClasses.of(lesson)
    read = known.read(lesson)
    assert read.x.tolist() == [[0, 0], [0, 1], [0, 1], [1, 0], [0, 0], [0, 0]]
    assert {frozenset(pair) for pair in read.edge_index.t().tolist()} == {frozenset((0, k)) for k in (1, 2, 3)}
    assert ac.labels_of(OfNeighbours(), read, ac.PerNeighbour(), [0]).tolist() == [1]
    lesson.y[2] = 0  # was given
    assert ac.labels_of(OfNeighbours(), KnownClasses.of(lesson).read(lesson), ac.PerNeighbour(), [0]).tolist() == [0]


def test_a_change_costs_what_is_read_no_more_than_the_graph():
    case, _ = attacked_town()
    case.clean.train_mask = torch.arange(20) % 3 == 0
    case.clean.num_classes = 3
    known = KnownClasses.of(case.clean)
    read = ac.Perturbation.between(known.read(case.clean), known.read(case.attacked[1]))
    for row in range(8):
        assert case.changes[1].cost_at(row).add_edges >= read.cost_at(row).add_edges
    assert 0 < read.cost().add_edges < case.changes[1].cost().add_edges


def test_five_seeds_ask_about_each_attacked_node_once():
    case, _ = attacked_town()
    parts = torch.stack([case.fifth(seed).targets for seed in range(400, 405)])
    assert parts.sum(dim=0).tolist() == case.targets.int().tolist()
    assert case.fifth(400).changes is case.changes


def test_one_budget_for_the_graph_is_counted_over_all_targets(monkeypatch):
    case, pairs = attacked_town()
    certificate = ac.certify(NodeListener(), case.clean, ac.PerNeighbour(), case.targets)

    def labels(graph, rows):
        return certificate.label + (np.arange(8) < (2 if graph is case.attacked[1] else 0))

    monkeypatch.setattr(attacked, "train", lambda *_: Trained(labels, certificate))
    (counted,) = attacked.together_row(case, 400, "any", None)["together"]
    budget = ac.Budget(add_edges=len(pairs))
    assert counted == {
        "edges": 3,
        "hold, each by itself": int(certificate.holds_against(budget).sum()),
        "broken at most": certificate.broken_at_most(budget),
        "changed": 2,
    }
    assert counted["broken at most"] >= 2
