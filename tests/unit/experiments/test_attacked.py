"""What is counted about graphs that others attacked: a certificate that a real change refutes would be seen."""

import numpy as np
import torch
from torch_geometric.data import Data

import agnncert as ac
from experiments.benchmarks.attacked import Case, Proofs, Trained, with_edges
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
