"""Shares of ranges of groups: cast in any pieces and any order, they merge into the same votes."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.engine import range_votes
from agnncert.engine import reach as coverage
from agnncert.engine.adapter import bind
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.features import Features
from agnncert.engine.range_votes import compute_range_votes, list_range_votes, merge_ranges, reach_of_ranges
from agnncert.engine.structure import structure
from agnncert.engine.votes import compute_votes
from agnncert.graphs.canonical import canonical, canonical_set
from tests.support.graphs import random_data
from tests.support.models import build

NODE = canonical(random_data(5, smallest=12, largest=12, density=0.4))
GRAPHS = canonical_set([random_data(seed, smallest=5, density=0.5) for seed in range(4)])
CASES = [
    ("node", EdgeCentric(9)),
    ("node", NodeCentric(9)),
    ("node", GatedNodeCentric(9)),
    ("graph", EdgeCentric(9)),
    ("graph", NodeCentric(9)),
]
CUTS = [[0, 9], [0, 4, 9], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 8, 9]]


def shares_of(task, division, cuts, rows):
    graph = NODE if task == "node" else GRAPHS
    call, edges_by_group = bind(build("gcn", task), graph, task), EdgesByGroup(graph, division, rows)
    with torch.no_grad():
        features = Features(graph.x.to(call.dtype))
        ranges = [range(a, b) for a, b in itertools.pairwise(cuts)]
        return [compute_range_votes(call, edges_by_group, groups, features, 1e-6) for groups in ranges], edges_by_group


@pytest.mark.parametrize("max_pairs", [0, 30, 10**6])
@pytest.mark.parametrize("cuts", CUTS, ids=len)
@pytest.mark.parametrize(("task", "division"), CASES, ids=str)
def test_however_groups_are_cut_and_shares_come_in_the_votes_are_the_same(monkeypatch, task, division, cuts, max_pairs):
    monkeypatch.setattr(coverage, "MAX_PAIRS", max_pairs)
    monkeypatch.setattr(coverage, "PAIRS_AT_ONCE", 5)
    graph = NODE if task == "node" else GRAPHS
    rows = np.array([7, 2, 5]) if task == "node" else np.arange(4)
    votes, (ptr, table) = compute_votes(bind(build("gcn", task), graph, task), graph, division, rows, tolerance=1e-6)
    shares, edges_by_group = shares_of(task, division, cuts, rows)
    shares = pickle.loads(pickle.dumps(shares[::-1]))
    listing = merge_ranges(shares, edges_by_group)
    for name in ("indptr", "group", "vote", "stable", "reached"):
        assert np.array_equal(getattr(listing, name), getattr(votes, name)), name
        assert getattr(listing, name).dtype == getattr(votes, name).dtype
    assert all(
        np.array_equal(a, b)
        for a, b in zip(reach_of_ranges(shares, edges_by_group, listing), (ptr, table), strict=True)
    )


def test_small_components_are_chosen_over_all_groups_together(monkeypatch):
    tables, division, rows = [], EdgeCentric(9), np.arange(12)
    edges_by_group = EdgesByGroup(NODE, division, rows)
    for max_pairs in range(0, 60):
        monkeypatch.setattr(coverage, "MAX_PAIRS", max_pairs)
        facts = structure(NODE, division, rows)
        whole = facts["reach_ptr"], facts["reach"]
        shares = [
            list_range_votes(edges_by_group, range(a, b)) for a, b in itertools.pairwise(CUTS[2])
        ]  # no vote is asked for
        parts = reach_of_ranges(shares, edges_by_group, merge_ranges(shares, edges_by_group))
        assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))
        tables.append(whole[1].tolist())
    assert len({tuple(table) for table in tables}) > 3


@pytest.mark.parametrize("wrong", [slice(1, None), slice(0, 2), slice(0, 0)], ids=str)
def test_a_missing_share_is_refused(wrong):
    shares, edges_by_group = shares_of("node", NodeCentric(9), [0, 3, 6, 9], np.arange(12))
    with pytest.raises(ValueError, match="each group must be in one of them"):
        merge_ranges(shares[wrong], edges_by_group)


def test_a_share_that_is_there_twice_is_refused():
    shares, edges_by_group = shares_of("node", NodeCentric(9), [0, 3, 6, 9], np.arange(12))
    with pytest.raises(ValueError, match="each group must be in one of them"):
        merge_ranges([*shares, shares[1]], edges_by_group)
    with pytest.raises(ValueError, match="each group must be in one of them"):
        merge_ranges([shares[0], replace(shares[1], groups=range(2, 6)), shares[2]], edges_by_group)


@pytest.mark.parametrize(("num_classes", "bytes_each"), [(2, 1), (127, 1), (128, 1), (129, 2), (300, 2)])
def test_votes_take_one_byte_if_every_class_fits(num_classes, bytes_each):
    every = np.arange(-1, num_classes, dtype=np.int16)
    kept = range_votes._narrow(every, num_classes)
    assert kept.tolist() == every.tolist()
    assert kept.itemsize == bytes_each
