"""Edge-centric divisions: every edge goes to the group of its pair of ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from agnncert.certificates.theorem_facts import EDGES_ONLY
from agnncert.divisions.base import BuiltInDivision, check_settings, is_graph_task, number_within
from agnncert.divisions.changes import require_covered, touched_edge_groups, touched_nodes, touched_pairs
from agnncert.divisions.union import DisjointUnion, union_of_edges
from agnncert.errors import NotCovered
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.node_ids import node_keys
from agnncert.graphs.perturbation import Perturbation

BLOCK = 2**20  # edges whose keys are looked up together


class EdgeDivision(BuiltInDivision):
    """What :class:`EdgeCentric` and :class:`PerEdge` share: an edge and its reverse are in one subgraph."""

    divides_edges = True

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """Returns the edges of one group; in the graph task only their endpoints stay.

        So no isolated node is read out in the graph task.
        """
        is_inside = groups == index
        if not is_graph_task(graph):
            return graph.with_edges(is_inside)
        return graph.with_nodes(torch.unique(graph.edge_index[:, is_inside]), is_inside)

    def disjoint_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None = None, within: range | None = None
    ) -> DisjointUnion:
        """Returns the disjoint union of all subgraphs, or of some; the arguments are those of ``Division``."""
        subgraph_of_edge = groups
        if is_graph_task(graph):
            source = graph.edge_index[0] if edges is None else graph.edge_index[0, edges]
            subgraph_of_edge = graph.graph_of_node[source] * self.num_groups_in(graph) + groups
        union = union_of_edges(graph, subgraph_of_edge, edges=edges)
        # An endpoint counts whichever way the edge points: a model that also reads outgoing edges is then covered.
        everyone = torch.ones_like(union.subgraph_index, dtype=torch.bool)
        return DisjointUnion(*union, votes=everyone, reached=everyone)


@dataclass(frozen=True)
class EdgeCentric(EdgeDivision):
    """Every edge goes to the group of its unordered pair of ids (paper, section 3.2).

    One edge touched moves at most one vote; an injected node moves one per edge it brings.

    Attributes:
        num_groups: Number of subgraphs T.
        hash: "md5", "sha1", "sha256" or "blake2b".
        self_loops: Whether self-loops are kept as ordinary edges; dropped otherwise.
        edges_only: Whether to certify against changes of edges alone. A model that mixes all nodes can then be
            certified too; every subgraph is evaluated by itself, and every vote is stored.
    """

    num_groups: int
    hash: str = "md5"
    self_loops: bool = False
    edges_only: bool = False

    def __post_init__(self) -> None:
        check_settings(self, "num_groups")

    def __str__(self) -> str:
        loops = ", self-loops kept" if self.self_loops else ""
        only = ", edges only" if self.edges_only else ""
        return f"edge-centric(T={self.num_groups}, hash={self.hash}, key=u64le{loops}{only})"

    @property
    def has_disjoint_union(self) -> bool:  # type: ignore[override]
        """Whether the fast engine may evaluate all subgraphs together: not if the model mixes nodes."""
        return not self.edges_only

    @property
    def unit_costs(self) -> Mapping[str, int]:  # type: ignore[override]
        """With ``edges_only``, one vote per changed edge."""
        return MappingProxyType(EDGES_ONLY if self.edges_only else {})

    def theorem(self, task: Task) -> str:
        """Returns the edge-centric theorem of the task.

        With ``edges_only`` it is the theorem that uses nothing but ``unit_costs``.
        """
        return super().theorem(task) if self.edges_only else f"edge-centric/{task}"

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Returns the group of every directed edge; both directions of a pair share it."""
        keys = node_keys(graph)
        groups = torch.empty(graph.edge_index.size(1), dtype=torch.int64)
        for start in range(0, len(groups), BLOCK):
            part = slice(start, start + BLOCK)
            u, v = keys[graph.edge_index[:, part]].numpy().view(np.uint64)
            groups[part] = torch.from_numpy(hashing.edge_groups(u, v, self.num_groups, self.hash))
        return groups

    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[int]:
        """Returns the groups whose vote ``change`` can alter: those of touched edges and of edges of touched nodes."""
        require_covered(change, graph, target, target_features=False)
        moved = touched_edge_groups(change, self.num_groups, self.hash)
        nodes = touched_nodes(change)
        if not nodes:
            return moved
        if self.edges_only:
            raise NotCovered("the change touches nodes, and edges_only=True covers changes of edges alone.")
        is_touched = torch.isin(node_keys(graph), torch.tensor(sorted(nodes), dtype=torch.int64))
        has_touched_end = is_touched[graph.edge_index].any(0)
        return moved | set(self.groups(graph)[has_touched_end].tolist())


@dataclass(frozen=True)
class PerEdge(EdgeDivision):
    """One subgraph, hence one vote, per edge; nothing is hashed.

    A target casts one vote for each of its edges, and a graph one for each edge.

    Attributes:
        self_loops: Whether self-loops are kept as ordinary edges; dropped otherwise.
    """

    self_loops: bool = False

    is_per_neighbour = True
    has_disjoint_union = True

    def __str__(self) -> str:
        loops = ", self-loops kept" if self.self_loops else ""
        return f"edge-centric(T=inf{loops})"

    def theorem(self, task: Task) -> str:
        """Returns the theorem for one vote per pair of nodes."""
        return f"per-pair/{task}"

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Returns the number of the pair of each edge within its graph; both directions of a pair share it."""
        _, number_of_edge = self._pairs(graph)
        return number_of_edge

    def num_groups_in(self, graph: CanonicalGraph) -> int:
        """Returns the number of pairs of nodes with an edge; of a joined set, the largest that a graph of it has."""
        number, _ = self._pairs(graph)
        return int(number.max()) + 1 if len(number) else 1

    def _pairs(self, graph: CanonicalGraph) -> tuple[Tensor, Tensor]:
        """Returns the number of each pair within its graph, by ascending ends, and the number of each edge's pair."""
        low = graph.edge_index.min(0).values
        high = graph.edge_index.max(0).values
        pair, of_edge = torch.unique(low.long() * graph.num_nodes + high, return_inverse=True)
        number = number_within(graph, torch.div(pair, graph.num_nodes, rounding_mode="floor"))
        return number, number[of_edge]

    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[tuple[int, int]]:
        """Returns the pairs whose vote can change, named by the keys of their nodes.

        The number of a pair depends on the other pairs, so it is no name.
        """
        require_covered(change, graph, target, target_features=False)
        nodes = touched_nodes(change)
        keys = node_keys(graph)
        pairs = set(touched_pairs(change))
        for u, v in keys[graph.edge_index].t().tolist():
            if u in nodes or v in nodes:
                pairs.add((min(u, v), max(u, v)))
        if target is None:
            return pairs
        target_key = int(keys[target])
        return {pair for pair in pairs if target_key in pair}
