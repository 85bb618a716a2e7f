"""Which ballots are cast again, and that a ballot of another class is noticed."""

from dataclasses import replace

import numpy as np
import pytest

from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.graphs.graph import canonical, canonical_set
from agnncert.voting.call import bind
from agnncert.voting.cast import cast
from agnncert.voting.recast import choose_ballots, choose_few, differing

from ...support.graphs import random_data
from ...support.models import build


@pytest.fixture(params=["node", "graph"])
def voted(request):
    data = [random_data(seed, smallest=8, density=0.4) for seed in range(3)]
    graph = canonical(data[0]) if request.param == "node" else canonical_set(data)
    rows = np.arange(graph.num_nodes if request.param == "node" else 3)
    call, division = bind(build("sage", request.param), graph, request.param), NodeCentric(4)
    return cast(call, graph, division, rows)[0], call, graph, division, rows


def test_ballots_that_are_right_do_not_differ_and_wrong_ones_do(voted):
    votes, call, graph, division, rows = voted
    everything = choose_ballots(votes, np.inf, np.random.default_rng(0))
    assert len(everything) == len(rows) * 4
    assert not differing(votes, everything, call, graph, division, rows)[0].size
    wrong = replace(votes, ballot=(votes.ballot + 1) % votes.num_classes)
    found, again = differing(wrong, everything, call, graph, division, rows)
    assert found.size == votes.stable.sum()
    assert (again == votes.dense().reshape(-1)).all()


def test_a_few_ballots_are_some_dozens_at_the_price_of_few_passes(voted):
    votes, _, graph, _, rows = voted
    pairs = choose_few(votes, "batch" in graph, np.random.default_rng(0))
    assert len(np.unique(pairs[:, 1])) <= 3 or "batch" in graph
    assert len(pairs) >= min(24, len(rows))
    assert len(np.unique(pairs, axis=0)) == len(pairs)


def test_ballots_without_any_edge_can_be_cast_again():
    data = random_data(0, smallest=6, density=0.0)
    graph, division, rows = canonical(data), EdgeCentric(3), np.arange(2)
    call = bind(build("gcn", "node"), graph, "node")
    votes = cast(call, graph, division, rows)[0]
    assert not differing(votes, choose_few(votes, False, np.random.default_rng(0)), call, graph, division, rows)[0].size


@pytest.mark.parametrize("number", [1, 2, 5, 11, 12, 13, 100])
def test_as_many_ballots_are_chosen_as_were_asked_for(voted, number):
    votes, *_, rows = voted
    for seed in range(5):
        pairs = choose_ballots(votes, number, np.random.default_rng(seed))
        assert len(np.unique(pairs, axis=0)) == len(pairs) == min(number, 4 * len(rows))
