"""Reach tables bound, from above, what any k nodes can reach."""

import itertools

import numpy as np
import pytest
import torch

from agnncert.divided.evidence import VoteEvidence
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine import reach as coverage
from agnncert.engine.adapter import bind
from agnncert.engine.structure import structure
from agnncert.engine.votes import compute_votes
from agnncert.graphs.canonical import canonical
from tests.support.checks import check_reach_table
from tests.support.graphs import make_data, random_data
from tests.support.models import build


@pytest.mark.parametrize("seed", range(12))
def test_tables_bound_the_worst_nodes_and_are_exact_for_one(seed):
    data = random_data(seed, directed=seed % 2 == 1)
    check_reach_table(data, EdgeCentric(4))
    check_reach_table(data, EdgeCentric(4), rows=[1, 0])
    check_reach_table([data, make_data([], 2), random_data(seed + 1)], EdgeCentric(4))


@pytest.mark.parametrize("max_pairs", [0, 4, 9, 30])
@pytest.mark.parametrize("seed", range(8))
def test_tables_stay_bounds_when_large_components_are_not_looked_into(monkeypatch, seed, max_pairs):
    monkeypatch.setattr(coverage, "MAX_PAIRS", max_pairs)
    check_reach_table(random_data(seed, density=0.5), EdgeCentric(3), exact=False)


def test_the_smallest_components_are_looked_into_as_long_as_their_pairs_are_few(monkeypatch):
    rng, chosen = np.random.default_rng(0), set()
    for _ in range(300):
        size = rng.integers(1, rng.integers(2, 9), rng.integers(0, 30))
        monkeypatch.setattr(coverage, "MAX_PAIRS", int(rng.integers(0, 200)))
        small, pairs = np.zeros(len(size), dtype=bool), 0
        for place in sorted(range(len(size)), key=lambda place: size[place]):
            pairs += size[place] ** 2
            small[place] = pairs <= coverage.MAX_PAIRS
        assert coverage._small_enough(size).tolist() == small.tolist()
        chosen.add(int(small.sum()))
    assert len(chosen) > 10


def table_of(graph, division, rows):
    facts = structure(graph, division, rows)
    return facts["reach_ptr"], facts["reach"]


def rows_of(reach):
    ptr, values = reach
    return [values[start:stop].tolist() for start, stop in itertools.pairwise(ptr)]


def test_without_looking_one_node_may_reach_everything():
    data, division = make_data([(0, 1), (1, 0), (1, 2), (2, 3), (3, 4)], 6), EdgeCentric(50)
    graph = canonical(data)
    exact = table_of(graph, division, np.arange(6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "MAX_PAIRS", 0)
        blind = table_of(graph, division, np.arange(6))
    assert rows_of(blind) == [[1], [2], [2], [2], [1], []]
    assert rows_of(exact) == [[1], [1, 2], [1, 2], [1, 2], [1], []]


@pytest.mark.parametrize("loops", [False, True])
def test_every_row_ends_with_the_number_of_reached_votes_as_evidence_demands(loops):
    data = make_data([(0, 0), (0, 1), (1, 0), (2, 2), (3, 1), (1, 1)], 5)
    division = EdgeCentric(3, self_loops=loops)
    check_reach_table(data, division, exact=False)
    graph = canonical(data, loops)
    votes, (ptr, reach) = compute_votes(bind(build("sage", "node"), graph, "node"), graph, division, np.arange(5))
    VoteEvidence(votes, "edge-centric/node", ptr, reach.astype(np.int32))
    assert [row[-1] if row else 0 for row in rows_of((ptr, reach))] == np.diff(votes.indptr).tolist()


def test_no_targets_and_no_edges_give_empty_tables():
    for rows, arcs in (([], [(0, 1)]), ([0, 1], [])):
        graph = canonical(make_data(arcs, 3))
        ptr, reach = table_of(graph, EdgeCentric(3), np.array(rows, dtype=np.int64))
        assert ptr.tolist() == [0] * (len(rows) + 1)
        assert len(reach) == 0


def test_a_node_reaches_a_graph_where_it_has_an_edge():
    graph = make_data([(0, 1), (0, 2), (0, 3)], 4)
    check_reach_table([graph], EdgeCentric(60))
    assert torch.unique(EdgeCentric(60).groups(canonical(graph))).numel() == 3, "three edges in three groups"


def test_a_node_without_an_edge_has_no_entry():
    starts, total = coverage.reach_of_graphs(np.array([0, 2, 0, 1]), np.array([0, 1, 1, 1]), np.array([0, 3]))
    assert starts.tolist() == [0, 0, 2]
    assert total.tolist() == [2, 3]


def test_sums_of_reaches_do_not_overflow():
    largest = np.iinfo(np.int32).max
    owner = np.array([1, 0, 0, 1], dtype=np.int32)
    reach = np.array([largest, largest - 1, largest, 5], dtype=np.int32)
    ptr, table = coverage.sums_of_largest(owner, reach, np.full(2, 2**40), np.array([0, 7]))
    assert ptr.tolist() == [0, 3, 6]
    assert table.tolist() == [largest, 2 * largest - 1, 2**40, largest + 7, largest + 12, 2**40]


def test_the_largest_number_of_pairs_fits_into_32_bits():
    assert np.iinfo(np.int32).max >= coverage.MAX_PAIRS
