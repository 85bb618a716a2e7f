"""One unit of an attack moves at most the votes that the division promises, whatever the graph and the model."""

import contextlib
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.errors import NotCovered
from tests.support.checks import check_change, check_growth, check_outside_unmoved, check_reach, checked
from tests.support.graphs import CHANGES, make_data, random_change, random_data
from tests.support.models import KINDS, build

# Few groups, so that edges share them and a wrong promise shows.
DIVIDED = [
    pytest.param(EdgeCentric(4), "node", id="edge-centric-node"),
    pytest.param(EdgeCentric(4), "graph", id="edge-centric-graph"),
    pytest.param(NodeCentric(4), "node", id="node-centric-node"),
    pytest.param(NodeCentric(4), "graph", id="node-centric-graph"),
    pytest.param(GatedNodeCentric(4), "node", id="gated-node"),
]
MORE = [
    *DIVIDED,
    pytest.param(EdgeCentric(4, hash="sha256", self_loops=True), "node", id="edge-centric-loops-node"),
    pytest.param(NodeCentric(4, hash="blake2b", self_loops=True), "node", id="node-centric-loops-node"),
]

models = cache(build)


@st.composite
def graphs(draw):
    """Two to seven nodes, one-way or two-way edges, isolated nodes, integers or strings as ids."""
    count = draw(st.integers(2, 7))
    pairs = draw(st.lists(st.sampled_from([(u, v) for v in range(count) for u in range(v)]), unique=True, max_size=10))
    both = draw(st.booleans())
    arcs = pairs + [(v, u) for u, v in pairs] if both else pairs
    ids = [f"node {k}" for k in range(count)] if draw(st.booleans()) else None
    return make_data(arcs, count, seed=draw(st.integers(0, 99)), ids=ids)


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("model", KINDS)
@pytest.mark.parametrize(("division", "task"), DIVIDED)
@settings(max_examples=3)  # for each of a hundred combinations
@given(data=graphs(), seed=st.integers(0, 99))
def test_one_unit_of_an_attack_moves_only_the_promised_votes(division, task, model, kind, data, seed):
    change = random_change(kind, data, seed)
    assume(change is not None)
    check_change(models(model, task, seed % 3), data, division, change, task)


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize(("division", "task"), DIVIDED)
def test_the_promise_is_kept_exactly_so_it_could_not_be_smaller(division, task, kind):
    """Were the models blind, or the promise far too large, the law above would say little."""
    for seed in range(60):
        data = random_data(seed, largest=6, density=0.3)
        change = random_change(kind, data, seed, hub_edges=0.4)
        if change is None:
            continue
        moved = check_change(models("sage", task, 0), data, division, change, task)
        if moved and moved == _largest_promise(division, task, data, change):
            return
    pytest.fail("no attack reached what was promised")


def _largest_promise(division, task, data, change):
    graph = checked(data if task == "node" else [data], division)
    promises = []
    for row in range(len(data.x)) if task == "node" else [None]:
        with contextlib.suppress(NotCovered):
            promises.append(division.votes_moved(change, graph, row))
    return max(promises, default=0)


@pytest.mark.parametrize(("division", "task"), MORE)
@settings(max_examples=25)
@given(data=graphs(), kind=st.sampled_from(CHANGES), seed=st.integers(0, 99))
def test_growing_or_shrinking_the_graph_moves_no_other_edge(division, task, data, kind, seed):
    change = random_change(kind, data, seed)
    assume(change is not None)
    check_growth(data, division, change, task)


@pytest.mark.parametrize("division", [case.values[0] for case in MORE if case.values[1] == "node"], ids=str)
@settings(max_examples=12)
@given(data=graphs(), kind=st.sampled_from(CHANGES), seed=st.integers(0, 99), model=st.sampled_from(KINDS))
def test_a_vote_moves_only_where_the_target_has_an_edge_before_or_after(division, data, kind, seed, model):
    change = random_change(kind, data, seed)
    assume(change is not None)
    check_outside_unmoved(models(model, "node", 0), data, division, change)


@pytest.mark.parametrize("model", KINDS)
@settings(max_examples=8)
@given(data=graphs(), kind=st.sampled_from(["delete node", "change features"]), seed=st.integers(0, 99))
def test_a_node_moves_a_vote_only_where_a_path_joins_it_to_the_target(model, data, kind, seed):
    change = random_change(kind, data, seed)
    assume(change is not None)
    check_reach(models(model, "node", 0), data, EdgeCentric(3), change)
