"""With one mistake in the code that forms hubs, directions, reach tables or listed votes, ``verify`` refuses what
``certify`` wrote: both share that code, so ``verify`` also walks along the graph itself.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.engine import reach, structure, votes
from agnncert.graphs.canonical import canonical
from agnncert.verdict import verify
from tests.support.mutations import Planted

# 0 is a neighbour of 1, 2 and 3 by arcs that leave it and arcs that enter it; 5 and 6 are pairs of one direction, up
# and down; 4 and 7 are in both. The largest number of targets at one node is neither first nor last.
ARCS = [(0, 1), (2, 0), (0, 3), (4, 1), (1, 4), (5, 2), (2, 6), (6, 3), (3, 7), (7, 3), (7, 1), (4, 2), (8, 9), (9, 8)]


def one_graph() -> Data:
    index = torch.tensor(ARCS).t()
    x = torch.eye(10)[:, :6] + 0.1 * torch.arange(10)[:, None]
    return Data(x=x, edge_index=index, y=torch.arange(10) % 2, node_id=torch.arange(10))


def graphs() -> list[Data]:
    made = [one_graph() for _ in range(3)]
    for k, data in enumerate(made):
        data.edge_index, data.y = data.edge_index[:, k:], torch.tensor([k % 2])
    return made


def certified(division, tmp_path, task="node"):
    data = one_graph() if task == "node" else graphs()
    torch.manual_seed(0)
    model = ac.build_model("sage", data, hidden_channels=4).eval()
    file = tmp_path / "a.cert"
    ac.certify(model, data, division, targets=[1, 2, 3] if task == "node" else None).save(file)
    return verify(file, data=data, model=model)


def hubs_one_way(patch):
    plain = structure._targets_per_node
    patch.setattr(structure, "_targets_per_node", lambda graph, both_ways, targets: plain(graph, False, targets))


def hubs_both_ways(patch):
    plain = structure._targets_per_node
    patch.setattr(structure, "_targets_per_node", lambda graph, both_ways, targets: plain(graph, True, targets))


def hubs_without_the_largest(patch):
    plain = structure._targets_per_node
    patch.setattr(structure, "_targets_per_node", lambda *given: plain(*given)[1:])


def hubs_of_arcs(patch):
    """Counts a neighbour once for each of its arcs, not once for each target."""
    plain = torch.unique
    patch.setattr(
        structure.torch,
        "unique",
        lambda *given, **how: given[0] if len(given) == 1 and not how else plain(*given, **how),
    )


def only_up(patch):
    def one_way(graph, division, owner, group):
        source, head = graph.edge_index
        cell, most = division.groups(graph), division.num_groups_in(graph)
        wanted = torch.from_numpy(group)
        if graph.task == "graph":
            cell, wanted = graph.graph_of_node[source] * most + cell, torch.from_numpy(owner) * most + wanted
        up, down = (torch.zeros(int(cell.max()) + 1, dtype=torch.bool) for _ in range(2))
        up[cell[source <= head]], down[cell[source >= head]] = True, True
        return (up & ~down)[wanted].numpy()

    patch.setattr(structure, "_one_way", one_way)


def never_one_way(patch):
    plain = structure._one_way
    patch.setattr(structure, "_one_way", lambda *given: plain(*given) & False)


def a_smaller_cover(patch):
    """Counts in how many subgraphs a node is met, less one, if it is met in several."""
    plain = reach.sums_of_largest
    patch.setattr(
        reach, "sums_of_largest", lambda owner, reach, cap, base: plain(owner, np.maximum(reach - 1, 1), cap, base)
    )


def components_of_arcs(patch):
    """Only nodes that are joined to the target itself are said to be met."""
    plain = reach._reaches

    def reaches(pairs, num_nodes):
        owner, reach = plain(pairs, num_nodes)
        return owner[::2], reach[::2]

    patch.setattr(reach, "_reaches", reaches)


def a_listed_vote_out_of_reach(patch):
    plain = votes.merge_ranges

    def merged(*given):
        votes = plain(*given)
        return votes if not votes.reached.any() else _without_first(votes)

    patch.setattr(votes, "merge_ranges", merged)
    patch.setattr(structure, "merge_ranges", merged)


def _without_first(votes):
    place = int(np.flatnonzero(votes.reached)[0])
    kept = np.arange(len(votes.group)) != place
    indptr = votes.indptr - (votes.indptr > place)
    listed = {name: getattr(votes, name)[kept] for name in ("group", "vote", "stable", "reached")}
    return replace(votes, indptr=indptr, **listed)


WALKED = "the nodes with most targets"
DIRECTIONS = "pairs are said to have one direction"
REACH = "some nodes reach more votes of a target"
MISTAKES = {
    "hubs follow arcs one way": (hubs_one_way, ac.PerEdge(), "node", WALKED),
    "hubs follow arcs both ways": (hubs_both_ways, ac.PerNeighbour(), "node", WALKED),
    "the largest hub is left out": (hubs_without_the_largest, ac.PerNeighbour(), "node", WALKED),
    "hubs count arcs": (hubs_of_arcs, ac.PerEdge(), "node", WALKED),
    "pairs are one-way upwards only": (only_up, ac.PerEdge(), "node", DIRECTIONS),
    "pairs are one-way upwards only, in graphs": (only_up, ac.PerEdge(), "graph", DIRECTIONS),
    "no pair is one-way": (never_one_way, ac.PerEdge(), "node", DIRECTIONS),
    "a node reaches fewer votes": (a_smaller_cover, ac.EdgeCentric(2), "node", REACH),
    "a node reaches fewer votes, in graphs": (a_smaller_cover, ac.EdgeCentric(4), "graph", REACH),
    "a node reaches fewer votes, one group per edge": (a_smaller_cover, ac.PerEdge(), "graph", REACH),
    "some nodes reach nothing": (components_of_arcs, ac.EdgeCentric(2), "node", REACH),
    "a vote is said to be out of reach": (a_listed_vote_out_of_reach, ac.NodeCentric(3), "node", "out of reach"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_shared_code_is_found_by_walking_along_the_graph(mistake, tmp_path, monkeypatch):
    make, division, task, reason = MISTAKES[mistake]
    assert certified(division, tmp_path, task)
    planted = Planted(monkeypatch)
    make(planted)
    verdict = certified(division, tmp_path, task)
    planted.require_reached()
    assert not verdict, f"{mistake}: accepted"
    assert any(reason in words for words in verdict.reasons), verdict


def test_hubs_in_order():
    graph = one_graph()
    both = structure._targets_per_node(canonical(graph), True, torch.tensor([1, 2, 3]))
    into = structure._targets_per_node(canonical(graph), False, torch.tensor([1, 2, 3]))
    assert both.tolist() == [3, 2, 2, 2, 1]
    assert into.tolist() == [2, 2, 2, 1, 1]
