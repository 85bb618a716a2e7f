"""Columns of features that were computed from the edges: sums and means over neighbours, encodings of positions.

Whoever adds an edge changes such a column in every subgraph, which no certificate covers. What can be recognised is
looked for at some hundred nodes: a column that is a function of what another column is at the neighbours, or of what
it is itself there (Laplacian eigenvectors, PageRank, Katz and eigenvector centrality), returns of a random walk,
clustering coefficients, and what PyG's transforms leave in ``Data`` and somebody has put into ``x``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from agnncert.auditing.degree_features import inspect_features
from agnncert.auditing.findings import Finding
from agnncert.errors import DatasetError

MOST_EDGES = 50_000_000  # a larger graph is not looked at
MOST_COLUMNS = 16384
SAMPLED = 200  # nodes at which columns are compared
LEAST_SAMPLED = 24
MOST_NEAR = 2000  # edges at the sampled nodes
LEAST_DISTINCT = 5  # distinct values that a column has at them
CORRELATED = 1 - 1e-6
SOLVED = 1 - 1e-4  # for columns that solve an equation, which were computed by iteration
SCREENED = 48  # nodes at which pairs of columns are compared first
SUSPICIOUS = 0.999
COLUMNS_AT_ONCE = 1024
SHOWN = 3  # columns that a finding names
# Names that PyG's transforms, and those of common benchmarks, give to what they compute from edges.
LEFT_BY_TRANSFORMS = ("laplacian_eigenvector_pe", "random_walk_pe", "lap_pe", "rwse", "pe", "EigVecs", "x1", "x2", "x3")
_INSIDE = "Leave it out. A layer that passes messages computes it in each subgraph, where the certificate covers it."
_OUT = "Leave it out: no layer can compute it from a subgraph in a way that a certificate covers."


def reason_not_inspected(data: object) -> str | None:
    """Returns why the features of a graph are not compared with its edges, or ``None`` if they are."""
    x = getattr(data, "x", None)
    edge_index = getattr(data, "edge_index", None)
    if not isinstance(x, Tensor) or not isinstance(edge_index, Tensor) or x.dim() != 2:
        return None
    if edge_index.size(1) > MOST_EDGES:
        return f"the graph has more than {MOST_EDGES:,} edges"
    if x.size(1) > MOST_COLUMNS:
        return f"there are more than {MOST_COLUMNS:,} features"
    return None


def inspect_edge_features(data: object) -> Iterator[Finding]:
    """Yields a finding for each way in which some columns follow from the edges.

    Graphs of the graph task are not looked at, nor are very large ones (``reason_not_inspected``).
    """
    x = getattr(data, "x", None)
    edge_index = getattr(data, "edge_index", None)
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.dim() != 2 or x.is_meta:
        return
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or not edge_index.numel():
        return
    if reason_not_inspected(data) is not None or int(edge_index.max()) >= len(x) or int(edge_index.min()) < 0:
        return
    yield from _left_by_transforms(data, x)
    nearby = Neighbourhoods.sampled(x.detach().cpu(), edge_index.cpu())
    if nearby is None:
        return
    if not len(nearby.varied):
        return
    for name, columns in nearby.functions_of_neighbours():
        yield _finding(columns, name, _INSIDE)
    for name, columns in nearby.positions():
        yield _finding(columns, name, _OUT)


def require_no_edges_in(data: object, asked: str) -> None:
    """Refuses features that were computed from the edges, as far as that can be seen.

    Args:
        data: The graph.
        asked: The setting for which no edge may be read, as in ``"edge_blind=True"``.

    Raises:
        DatasetError: Names the columns.
    """
    found = [*inspect_features(data), *inspect_edge_features(data)]
    if found:
        listed = "; ".join(f"{each.what}: {each.why}" for each in found[:SHOWN])
        raise DatasetError(f"{asked}, but features were computed from the edges. {listed}. Leave them out.")


def _finding(columns: list[int], what: str, remedy: str) -> Finding:
    """Returns a finding about some columns."""
    names = ", ".join(str(column) for column in columns[:SHOWN])
    more = f" and {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
    label = "column" if len(columns) == 1 else "columns"
    why = f"{what}, so whoever adds an edge changes it"
    return Finding("data.x", f"{label} {names}{more}", why, remedy)


def _left_by_transforms(data: object, x: Tensor) -> Iterator[Finding]:
    """Yields a finding for each attribute of a transform whose columns are among the features."""
    for name in LEFT_BY_TRANSFORMS:
        left = getattr(data, name, None)
        if not isinstance(left, Tensor) or left.dim() != 2 or len(left) != len(x) or left.layout != torch.strided:
            continue
        columns = [column for column in range(x.size(1)) if _is_among(x[:, column], left)]
        if columns:
            yield _finding(columns, f"is a column of data.{name}, which was computed from the edges", _OUT)


def _is_among(column: Tensor, others: Tensor) -> bool:
    """Returns whether a column is one of the others. A constant column is not looked for."""
    if bool((column == column[0]).all()):
        return False
    return bool((others.to(column) == column[:, None]).all(dim=0).any())


@dataclass(frozen=True)
class Neighbourhoods:
    """Some nodes with their neighbours, and the columns of features there.

    Attributes:
        x: All features, in main memory.
        nodes: The sampled nodes, ascending.
        source: Source of each edge that leads to one of them.
        head: Its place among ``nodes``.
        incoming: Number of edges that lead to each node of the graph.
        outgoing: Number of edges that leave each node of the graph.
        local: Edges among the sampled nodes and their neighbours, shape ``[2, num_edges]``.
    """

    x: Tensor
    nodes: Tensor
    source: Tensor
    head: Tensor
    incoming: Tensor
    outgoing: Tensor
    local: Tensor

    @classmethod
    def sampled(cls, x: Tensor, edge_index: Tensor) -> "Neighbourhoods | None":
        """Returns the neighbourhoods of some nodes, or ``None`` if too few have neighbours."""
        count = len(x)
        is_loop = edge_index[0] == edge_index[1]
        if bool(is_loop.any()):
            edge_index = edge_index[:, ~is_loop]
        incoming = torch.bincount(edge_index[1], minlength=count)
        outgoing = torch.bincount(edge_index[0], minlength=count)
        candidates = (incoming > 0).nonzero().view(-1)
        order = torch.randperm(len(candidates), generator=torch.Generator().manual_seed(0))
        drawn = candidates[order]
        near = torch.cumsum(incoming[drawn], 0)
        drawn = drawn[: min(SAMPLED, int((near <= MOST_NEAR).sum()))]
        if len(drawn) < LEAST_SAMPLED:
            return None
        nodes = drawn.sort().values
        place = torch.full((count,), -1)
        place[nodes] = torch.arange(len(nodes))
        leads_to = edge_index[:, place[edge_index[1]] >= 0].long()
        is_near = place >= 0
        is_near[leads_to[0]] = True
        local = edge_index[:, is_near[edge_index[0]] & is_near[edge_index[1]]].long()
        return cls(x, nodes, leads_to[0], place[leads_to[1]], incoming, outgoing, local)

    @cached_property
    def at_nodes(self) -> Tensor:
        """The features of the sampled nodes."""
        return self.x[self.nodes].double()

    @cached_property
    def at_sources(self) -> Tensor:
        """The features of the source of each edge that leads to a sampled node."""
        return self.x[self.source]

    @cached_property
    def varied(self) -> Tensor:
        """The columns with several values at the sampled nodes, and with others at their neighbours."""
        ordered = self.at_nodes.sort(dim=0).values
        slack = 1e-9 * ordered.abs().amax(dim=0)
        is_varied = (ordered.diff(dim=0) > slack).sum(dim=0) >= LEAST_DISTINCT - 1
        columns = is_varied.nonzero().view(-1)
        step = self.at_sources[:, columns].double() - self.at_nodes[self.head][:, columns]
        return columns[(step.abs() > slack[columns]).any(dim=0)]

    def aggregated(self, weight: Tensor, own: Tensor, columns: Tensor) -> Tensor:
        """Returns sums over the neighbours of each sampled node, and of the node itself.

        Args:
            weight: Weight of each edge that leads to a sampled node.
            own: Weight of each sampled node itself.
            columns: Columns to sum.
        """
        messages = self.at_sources[:, columns].double() * weight[:, None]
        sums = torch.zeros(len(self.nodes), len(columns), dtype=torch.float64).index_add(0, self.head, messages)
        return sums + own[:, None] * self.at_nodes[:, columns]

    def _degrees(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns in-degrees of heads and sources, and out-degrees of sources, for each edge that leads to a node."""
        heads = self.nodes[self.head]
        return (self.incoming[heads].double(), self.incoming[self.source].double(), self.outgoing[self.source].double())

    def functions_of_neighbours(self) -> Iterator[tuple[str, list[int]]]:
        """Yields columns that follow from another column at the neighbours, and what they are."""
        of_head, of_source, _ = self._degrees()
        none = torch.zeros(len(self.nodes), dtype=torch.float64)
        share = 1 / (self.incoming[self.nodes].double() + 1)
        both = 1 / torch.sqrt((of_head + 1) * (of_source + 1))
        ways = {
            "mean": (1 / of_head, none),
            "sum": (torch.ones_like(of_head), none),
            "mean, with the node itself,": (1 / (of_head + 1), share),
            "normalised sum, as in a GCN,": (both, share),
        }
        reported: set[int] = set()
        for name, (weight, own) in ways.items():
            columns = [column for column in self._following(weight, own) if column not in reported]
            if columns:
                reported.update(columns)
                yield f"is the {name} of another column over the neighbours of each node", columns

    def _following(self, weight: Tensor, own: Tensor) -> list[int]:
        """Returns columns that are an affine function of another column, summed in this way."""
        targets = self.at_nodes[:, self.varied]
        few = _standardised(targets[:SCREENED]).float()
        best = torch.zeros(len(self.varied))
        source = torch.zeros(len(self.varied), dtype=torch.int64)
        for start in range(0, self.x.size(1), COLUMNS_AT_ONCE):
            columns = torch.arange(start, min(self.x.size(1), start + COLUMNS_AT_ONCE))
            sums = self.aggregated(weight, own, columns)
            # A column that is the same at all neighbours, such as a country, says nothing about edges.
            is_spread = ~_is_close(_standardised(sums), _standardised(self.at_nodes[:, columns]))
            correlation = (_standardised(sums[:SCREENED]).float().T @ few).abs()
            correlation[~is_spread] = 0
            correlation[columns[:, None] == self.varied[None]] = 0
            closest, place = correlation.max(dim=0)
            source = torch.where(closest > best, columns[place], source)
            best = torch.maximum(best, closest)
        suspected = (best > SUSPICIOUS).nonzero().view(-1)
        if not len(suspected):
            return []
        sums = self.aggregated(weight, own, source[suspected])
        correlation = (_standardised(sums) * _standardised(targets[:, suspected])).sum(dim=0).abs()
        return [int(column) for column in self.varied[suspected[correlation > CORRELATED]]]

    def positions(self) -> Iterator[tuple[str, list[int]]]:
        """Yields columns that tell where a node is in the whole graph, and what they are."""
        of_head, of_source, leaving = self._degrees()
        none = torch.zeros(len(self.nodes), dtype=torch.float64)
        ones = torch.ones_like(of_head)
        ways = {
            "is an eigenvector of the normalised Laplacian": (1 / torch.sqrt(of_head * of_source.clamp(min=1)), none),
            "is an eigenvector of the random-walk Laplacian": (1 / of_head, none),
            "is an eigenvector of the Laplacian": (-ones, self.incoming[self.nodes].double()),
            "is PageRank, or another walk over all nodes": (1 / leaving, none),
            "is a centrality that adds up over neighbours (Katz, eigenvector)": (ones, none),
        }
        reported: set[int] = set()
        for name, (weight, own) in ways.items():
            columns = [column for column in self._solving(weight, own) if column not in reported]
            if columns:
                reported.update(columns)
                yield name, columns
        triangles = self._triangles()
        degree = self.incoming[self.nodes].double()
        for name, value in (
            ("is the return of a random walk to each node", self._returns()),
            ("is the clustering coefficient", triangles / (degree * (degree - 1)).clamp(min=1)),
            ("is the number of triangles of each node", triangles),
        ):
            columns = [column for column in self._correlated(value) if column not in reported]
            if columns:
                reported.update(columns)
                yield name, columns

    def _solving(self, weight: Tensor, own: Tensor) -> list[int]:
        """Returns columns that are an affine function of their own sums.

        A column that was shifted and scaled afterwards is found too: sums of a constant are a further term.
        """
        column = self.at_nodes[:, self.varied]
        sums = self.aggregated(weight, own, self.varied)
        constant = torch.ones(len(self.nodes), 1, dtype=torch.float64)
        of_constant = torch.zeros_like(constant).index_add(0, self.head, weight[:, None]) + own[:, None]
        plain = torch.cat([constant, of_constant], dim=1)
        left = _standardised(_without(column, plain))
        left_of_sums = _standardised(_without(sums, plain))
        is_solution = (left * left_of_sums).sum(dim=0).abs() > SOLVED
        # What is a function of the number of neighbours alone is found by ``degree_features``.
        is_left = _without(column, plain).norm(dim=0) > 1e-3 * (column - column.mean(dim=0)).norm(dim=0)
        vanishes = _without(sums, plain).norm(dim=0) <= 1e-6 * sums.norm(dim=0)
        return [int(found) for found in self.varied[is_solution & is_left & ~vanishes & self._hears_several(weight)]]

    def _hears_several(self, weight: Tensor) -> Tensor:
        """Tells which varied columns have many different sums over neighbours.

        The leaves of one hub all hear the same number. Own features less a constant then solve any equation.
        """
        none = torch.zeros(len(self.nodes), dtype=torch.float64)
        ordered = self.aggregated(weight, none, self.varied).sort(dim=0).values
        slack = 1e-9 * ordered.abs().amax(dim=0)
        num_distinct = (ordered.diff(dim=0) > slack).sum(dim=0) + 1
        return num_distinct >= max(LEAST_DISTINCT, len(self.nodes) // 4)

    def _correlated(self, value: Tensor) -> list[int]:
        """Returns columns that are an affine function of a number for each sampled node."""
        if len(torch.unique(value)) < LEAST_DISTINCT:
            return []
        columns = _standardised(self.at_nodes[:, self.varied])
        correlation = (columns * _standardised(value[:, None])).sum(dim=0).abs()
        return [int(column) for column in self.varied[correlation > CORRELATED]]

    def _returns(self) -> Tensor:
        """Returns how likely a random walk is back after two steps, as PyG's AddRandomWalkPE computes it."""
        count = len(self.incoming)
        key = self.local[0] * count + self.local[1]
        heads = self.nodes[self.head]
        is_mutual = torch.isin(heads * count + self.source, key)
        there = 1 / self.outgoing[heads].clamp(min=1).double()
        back = 1 / self.outgoing[self.source].double()
        steps = torch.where(is_mutual, there * back, 0.0)
        return torch.zeros(len(self.nodes), dtype=torch.float64).index_add(0, self.head, steps)

    def _triangles(self) -> Tensor:
        """Returns twice the number of triangles at each sampled node, edges taken as undirected."""
        count = len(self.incoming)
        ones = np.ones(self.local.size(1))
        directed = csr_matrix((ones, tuple(self.local.numpy())), (count, count))
        adjacency = ((directed + directed.T) > 0).astype(np.float64)
        near = adjacency[self.nodes.numpy()]
        return torch.from_numpy(np.asarray((near @ adjacency).multiply(near).sum(axis=1)).reshape(-1))


def _standardised(columns: Tensor) -> Tensor:
    """Returns columns of mean 0 and length 1. Constant columns become zero."""
    return _of_length_one(columns - columns.mean(dim=0))


def _of_length_one(columns: Tensor) -> Tensor:
    length = columns.norm(dim=0)
    least = 1e-9 * columns.abs().amax().clamp(min=1e-300)
    unit = columns / length.clamp(min=1e-300)
    return torch.where(length > least, unit, torch.zeros_like(unit))


def _without(columns: Tensor, terms: Tensor) -> Tensor:
    """Returns what is left of columns when multiples of some terms are taken away (least squares)."""
    basis, sizes, _ = torch.linalg.svd(terms, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes.max()]
    explained: Tensor = basis @ (basis.T @ columns)
    return columns - explained


def _is_close(first: Tensor, second: Tensor) -> Tensor:
    """Returns which columns are nearly the same."""
    distance: Tensor = (first - second).norm(dim=0)
    size: Tensor = second.norm(dim=0)
    return distance <= 1e-6 * size
