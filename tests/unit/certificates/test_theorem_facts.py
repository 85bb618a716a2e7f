"""Which theorem goes with which division, as far as a file tells."""

import pytest

from agnncert.certificates.theorem_facts import EDGES_ONLY, theorem_mismatch
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert_peers.gnncert import GNNCertE, GNNCertEN, GNNCertN
from tests.support.theorems import THEOREMS

DIVISIONS = [
    EdgeCentric(7),
    EdgeCentric(7, "sha1", self_loops=True),
    NodeCentric(7, "blake2b"),
    NodeCentric(7, self_loops=True),
    GatedNodeCentric(7),
    GatedNodeCentric(7, "sha256", self_loops=True),
    GNNCertE(7),
    GNNCertN(7),
    GNNCertEN(3, 4),
]


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_a_division_has_one_theorem(division, task):
    right, parameters = division.theorem(task), division.parameters
    assert theorem_mismatch(right, str(division), division.num_groups, parameters) == ""
    assert "does not have" in theorem_mismatch(right, str(division), division.num_groups + 1, parameters)
    assert "does not have" in theorem_mismatch(right, str(division), division.num_groups, {**parameters, "more": 1})
    for theorem in THEOREMS:
        if theorem.endswith(task) and theorem != right:
            assert theorem_mismatch(theorem, str(division), division.num_groups, parameters)


def test_edges_alone_can_be_certified_edge_centric():
    plain, text = str(EdgeCentric(7)), str(EdgeCentric(7, edges_only=True))
    assert theorem_mismatch("custom/node", text, 7, EDGES_ONLY) == ""
    assert theorem_mismatch("custom/node", text, 7, {**EDGES_ONLY, "add_edges": 0})
    assert theorem_mismatch("custom/node", str(NodeCentric(7)), 7, EDGES_ONLY)
    assert theorem_mismatch("custom/node", str(NodeCentric(7)).replace(")", ", edges only)"), 7, EDGES_ONLY)
    assert theorem_mismatch("custom/node", plain, 7, EDGES_ONLY)
    assert theorem_mismatch("custom/graph", plain, 7, EDGES_ONLY)
    assert theorem_mismatch("edge-centric/node", text, 7, {})
    assert theorem_mismatch("edge-centric/graph", text, 7, {})


@pytest.mark.parametrize(
    "text", ["", "mine", "edge-centric(T=7, hash=md5, key=u64le) ", "edge-centric(T=07, hash=md5, key=u64le)"]
)
def test_what_is_not_built_in_is_somebodys_own(text):
    assert theorem_mismatch("custom/node", text, 7, {"add_edges": 1}) == ""
    assert "not built in" in theorem_mismatch("edge-centric/node", text, 7, {})


@pytest.mark.parametrize("theorem", THEOREMS)
@pytest.mark.parametrize(
    "text",
    [
        "edge-centric(T=7, hash=md5, key=u64le, gated features)",
        "gnncert-n(T=7, hash=md5, key=u64le, gated features)",
        "node-centric(T=7, hash=md5, key=u64le, edges only)",
    ],
)
def test_a_division_that_cannot_be_built_has_no_theorem(text, theorem):
    assert "no built-in division prints as" in theorem_mismatch(theorem, text, 7, {})
