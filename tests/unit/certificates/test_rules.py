"""Which rule goes with which division, as far as a file tells."""

import pytest

from agnncert.certificates.theorem_facts import EDGES_ONLY, THEOREMS, why_not
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert_peers.gnncert import GNNCertE, GNNCertEN, GNNCertN

DIVISIONS = [
    EdgeCentric(7), EdgeCentric(7, "sha1", self_loops=True), NodeCentric(7, "blake2b"), NodeCentric(7, self_loops=True),
    GatedNodeCentric(7), GatedNodeCentric(7, "sha256", self_loops=True),
    GNNCertE(7), GNNCertN(7), GNNCertEN(3, 4),
]  # fmt: skip


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_a_division_has_one_rule(division, task):
    right, parameters = division.theorem(task), division.parameters
    assert why_not(right, str(division), division.num_groups, parameters) == ""
    assert "does not have" in why_not(right, str(division), division.num_groups + 1, parameters)
    assert "does not have" in why_not(right, str(division), division.num_groups, {**parameters, "more": 1})
    for theorem in THEOREMS:
        if theorem.endswith(task) and theorem != right:
            assert why_not(theorem, str(division), division.num_groups, parameters)


def test_edges_alone_can_be_certified_edge_centric():
    plain, text = str(EdgeCentric(7)), str(EdgeCentric(7, edges_only=True))
    assert why_not("custom/node", text, 7, EDGES_ONLY) == ""
    assert why_not("custom/node", text, 7, {**EDGES_ONLY, "add_edges": 0})
    assert why_not("custom/node", str(NodeCentric(7)), 7, EDGES_ONLY)
    assert why_not("custom/node", str(NodeCentric(7)).replace(")", ", edges only)"), 7, EDGES_ONLY)
    assert why_not("custom/node", plain, 7, EDGES_ONLY)
    assert why_not("custom/graph", plain, 7, EDGES_ONLY)
    assert why_not("edge-centric/node", text, 7, {})
    assert why_not("edge-centric/graph", text, 7, {})


@pytest.mark.parametrize(
    "text", ["", "mine", "edge-centric(T=7, hash=md5, key=u64le) ", "edge-centric(T=07, hash=md5, key=u64le)"]
)
def test_what_is_not_built_in_is_somebodys_own(text):
    assert why_not("custom/node", text, 7, {"add_edges": 1}) == ""
    assert "not built in" in why_not("edge-centric/node", text, 7, {})
