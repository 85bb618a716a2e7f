"""Similarity edges, and two faults in the published curves of AuditVotes, after which they are modelled."""

import hashlib
import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.divisions.edge import EdgeCentric
from agnncert.errors import DivisionError, NotCovered
from agnncert.graphs.canonical import canonical
from agnncert.graphs.perturbation import Perturbation
from agnncert_peers.similarity import SimilarityEdges, similar_pairs
from tests.support.small_graphs import graph_model, node_model, random_graph


def test_each_node_gets_edges_from_the_most_similar_nodes():
    x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.0, 0.0]])
    pairs = similar_pairs(x, 1)
    assert pairs.tolist() == [[1, 0, 3, 2, 0], [0, 1, 2, 3, 4]]  # ties, as of the last node, go to the smaller row
    assert similar_pairs(x, 9).size(1) == 5 * 4


def test_every_subgraph_has_the_similarity_edges_and_one_group():
    data = random_graph(20, 40)
    graph, division = canonical(data), SimilarityEdges(4, neighbours=2)
    groups = division.groups(graph)
    similar = {tuple(pair) for pair in similar_pairs(graph.x, 2).t().tolist()}
    for index in range(4):
        own = {tuple(pair) for pair in graph.edge_index[:, groups == index].t().tolist()}
        part = division.subgraph(graph, groups, index)
        assert {tuple(pair) for pair in part.edge_index.t().tolist()} == own | similar
        assert part.num_edges == len(own | similar)


@torch.no_grad()
def labels_by_hand(model, data, division) -> list[int]:
    """Labels of all nodes: every subgraph votes, ties go to the smaller class."""
    graph = canonical(data)
    groups = division.groups(graph)
    parts = [division.subgraph(graph, groups, index) for index in range(division.num_groups)]
    votes = torch.stack([model(part.x, part.edge_index).argmax(1) for part in parts])
    return [int(torch.bincount(column).argmax()) for column in votes.t()]


def test_no_certified_label_changes_by_any_one_edge_and_nothing_else_is_covered():
    data, model, division = random_graph(9, 8), node_model(), SimilarityEdges(5, neighbours=2)
    certificate, ids = ac.certify(model, data, division), data.node_id.tolist()
    assert certificate.label.tolist() == labels_by_hand(model, data, division)
    there = {tuple(sorted(pair)) for pair in data.edge_index.t().tolist()}
    safe = np.all([certificate.holds_against(ac.Budget(**{kind: 1})) for kind in ("add_edges", "delete_edges")], axis=0)
    assert safe.any()
    for u, v in itertools.combinations(range(9), 2):
        pair = ids[u], ids[v]
        change = Perturbation(delete_edges=[pair]) if (u, v) in there else Perturbation(add_edges=[pair])
        assert division.votes_moved(change, canonical(data), 0) == 1
        assert (certificate.label == labels_by_hand(model, change.apply(data), division))[safe].all()
    for budget in (ac.Budget(inject_nodes=1, edges_per_injected=1), ac.Budget(change_features=1)):
        assert not certificate.holds_against(budget).any()
    with pytest.raises(NotCovered):
        division.votes_moved(Perturbation(change_features={ids[0]: [0.0] * data.num_features}), canonical(data), 0)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DivisionError, match="neighbours=0"):
        SimilarityEdges(5, neighbours=0)
    with pytest.raises(DivisionError, match="node classification"):
        ac.certify(graph_model(), [random_graph(6, 5)], SimilarityEdges(5))


# AuditVotes. Its released code (Yuni-Lai/AuditVotes-Certified-Robustness, commit 864300c) was read, not copied.


def groups_by_direction(pair: tuple[int, int], num_groups: int) -> set[int]:
    """Groups of the two directions of a pair, each hashed by itself from the text "u;v"."""
    one, two = pair
    names = f"{one};{two}", f"{two};{one}"
    return {int(hashlib.md5(name.encode()).hexdigest(), 16) % num_groups for name in names}


def test_published_curves_count_a_pair_twice():
    """Each direction of a pair is hashed by itself, but an added pair is charged with one vote: one edge moves two."""
    num_groups = 30
    apart = [pair for pair in itertools.combinations(range(40), 2) if len(groups_by_direction(pair, num_groups)) == 2]
    assert len(apart) > 0.9 * 40 * 39 / 2
    # 17 votes against 13: 4 ahead, and one moved vote costs 2, so that charging one vote per edge certifies 2 edges
    # (a tie goes to the smaller class). With two votes per pair the second edge elects the other class.
    votes = [0] * 17 + [1] * 13
    charged = 2 * 2
    assert votes.count(0) - votes.count(1) - charged >= 0  # "certified against 2 edges"
    first = [pair for pair in apart if groups_by_direction(pair, num_groups) <= set(range(17))]
    chosen, moved = [], set()
    for pair in first:
        if not groups_by_direction(pair, num_groups) & moved:
            chosen.append(pair)
            moved |= groups_by_direction(pair, num_groups)
        if len(chosen) == 2:
            break
    after = [1 if group in moved else vote for group, vote in enumerate(votes)]
    assert len(chosen) == 2
    assert Counter(after).most_common(1)[0][0] == 1  # two edges, and the label has changed
    both = torch.tensor([[u for u, v in apart] + [v for u, v in apart], [v for u, v in apart] + [u for u, v in apart]])
    groups = EdgeCentric(num_groups).groups(canonical(ac_data(both)))
    found = canonical(ac_data(both)).edge_index
    by_pair: dict[tuple[int, ...], set[int]] = {}
    for (u, v), group in zip(found.t().tolist(), groups.tolist(), strict=True):
        by_pair.setdefault(tuple(sorted((u, v))), set()).add(group)
    assert all(len(own) == 1 for own in by_pair.values())  # here both directions have one group


def ac_data(edge_index):
    return Data(x=torch.ones(40, 1), edge_index=edge_index)


def test_published_curves_leave_abstentions_uncharged():
    """Votes that a filter takes out are left out of the trials, as if an attacker could not alter how many there are.

    One pair, without an edge; noise keeps the state of the pair with probability 0.6. Without the edge the model says A
    in 10 % of all cases and is filtered out else; with the edge it says B in 7 % and is filtered out else.
    """
    keep, says_a, says_b = 0.6, 0.10, 0.07
    clean_a, clean_b = keep * says_a, (1 - keep) * says_b
    conditional = clean_a / (clean_a + clean_b)  # the published estimate: votes for A among those that were kept
    # Neyman and Pearson for one added edge: the worst classifier says A first where the clean graph is more probable.
    worst = min(conditional, keep) * (1 - keep) / keep + max(0.0, conditional - keep) * keep / (1 - keep)
    assert worst > 0.5  # "certified against 1 added edge"
    attacked_a, attacked_b = (1 - keep) * says_a, keep * says_b
    assert attacked_a < attacked_b  # the edge is added, and the vote elects B
    # Charged for abstentions, nothing is certified: of all samples, A has 6 %, and any of the others may turn to B.
    assert clean_a - (1 - clean_a) < 0


def test_the_worst_case_bound_is_right_if_nothing_is_filtered_out():
    """The same bound without a filter: no classifier with this probability of A loses it by the added edge."""
    keep = 0.6
    for without, present in itertools.product([k / 20 for k in range(21)], repeat=2):  # P(A) without, and with the edge
        clean = keep * without + (1 - keep) * present
        attacked = (1 - keep) * without + keep * present
        worst = min(clean, keep) * (1 - keep) / keep + max(0.0, clean - keep) * keep / (1 - keep)
        assert attacked >= worst - 1e-12
