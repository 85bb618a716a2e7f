"""Graphs for the probes of a model: a part of the user's graph, and constructed graphs with what an attack can add.

A probe graph has two *sides* that no edge joins. A change on one side must not change outputs on the other. Each node
names a row of a feature table that ends with corrupt rows: corrupting a node means naming another row.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions.base import Division
from agnncert.graphs.graph import BLOCK, EDGE_VALUES, WIDE, canonical, canonical_set

# Limits of a part of the user's graph, in rows and in numbers: an audit should cost a few plain forward passes.
MOST_ROWS, MOST_NUMBERS = 12288, 3 * 2**22
LEAST_ROWS = 1024
BRIEF_ROWS, BRIEF_NUMBERS = 256, 2**19  # for models whose layers are all known
HUGE = 1e30
Values = dict[str, Tensor]  # of edges, by name
Piece = tuple[int, Tensor, Tensor]  # number of nodes, edges sorted by dst and src, and the order that sorted them


@dataclass(frozen=True)
class ProbeGraph:
    """A graph on which a model is probed.

    Attributes:
        rows: Row of each node in the feature table, shape ``[n]``.
        edge_index: Edges, shape ``[2, m]``; sorted by the ids of their ends, as canonical graphs are.
        values: Edge weights and attributes, by name.
        side: Which of two unconnected sides each node is on, shape ``[n]``.
        place: Node task: an id of each node, by which edges are sorted. Graph task: its graph, ascending.
    """

    rows: Tensor
    edge_index: Tensor
    values: Values
    side: Tensor
    place: Tensor

    def edges_of(self, side: int) -> Tensor:
        """Which edges lie on a side, as a mask."""
        return self.side[self.edge_index[0]] == side

    def selected(self, nodes: Tensor) -> "ProbeGraph":
        """The given nodes in the given order, and the edges between them in their present order."""
        position = torch.full_like(self.rows, -1)
        position[nodes] = torch.arange(len(nodes))
        moved = position[self.edge_index]
        kept = (moved >= 0).all(0)
        values = {name: value[kept] for name, value in self.values.items()}
        return ProbeGraph(self.rows[nodes], moved[:, kept], values, self.side[nodes], self.place[nodes])

    def sorted(self) -> "ProbeGraph":
        """The same graph with its edges sorted by the ids of dst and src."""
        size, (source, head) = len(self.rows), self.edge_index.numpy()
        rank = np.empty(size, dtype=np.int64)  # numpy sorts the few edges of a probe in half the time
        rank[torch.argsort(self.place).numpy()] = np.arange(size)
        order = torch.from_numpy(np.argsort(rank[head] * size + rank[source], kind="stable"))
        values = {name: value.index_select(0, order) for name, value in self.values.items()}
        return replace(self, edge_index=self.edge_index.index_select(1, order), values=values)

    def joined(self, other: "ProbeGraph") -> "ProbeGraph":
        """The disjoint union of this graph and another one."""
        return ProbeGraph(
            torch.cat([self.rows, other.rows]),
            torch.cat([self.edge_index, other.edge_index + len(self.rows)], dim=1),
            {name: torch.cat([value, other.values[name]]) for name, value in self.values.items()},
            torch.cat([self.side, other.side]),
            torch.cat([self.place, other.place]),
        )


@dataclass(frozen=True)
class Table:
    """Rows of features: ordinary rows, then rows that are not finite, then finite rows of all magnitudes."""

    x: Tensor
    ordinary: int
    not_finite: int = 3

    @classmethod
    def of(cls, x: Tensor, generator: torch.Generator) -> "Table":
        """A table of the rows ``x``, with corrupt rows added at its end."""
        lines = [torch.full_like(x[:1], value) for value in (math.nan, math.inf, -math.inf, HUGE, -HUGE, 0.0)]
        low, high = x.aminmax()  # the size of the largest number, without a second matrix of sizes
        size = torch.maximum(-low, high).clamp(max=HUGE)
        large = 1000 * (1 + size) * torch.randn(4, x.size(1), generator=generator).to(x.dtype)
        return cls(torch.cat([x, *lines, large]), x.size(0))

    def corrupt(self, count: int, finite: bool, generator: torch.Generator) -> Tensor:
        """Indices of corrupt rows."""
        first = self.ordinary + (self.not_finite if finite else 0)
        last = self.x.size(0) if finite else self.ordinary + self.not_finite
        return torch.randint(first, last, (count,), generator=generator)

    def borrowed(self, count: int, generator: torch.Generator) -> Tensor:
        """Indices of ordinary rows."""
        return torch.randint(0, self.ordinary, (count,), generator=generator)

    def large(self, count: int, generator: torch.Generator) -> Tensor:
        """Indices of rows with large random numbers."""
        return torch.randint(self.x.size(0) - 4, self.x.size(0), (count,), generator=generator)


def corrupt_values(value: Tensor, finite: bool, generator: torch.Generator) -> Tensor:
    """Corrupt values for the same edges; integers, which may be category numbers, are only permuted."""
    if not value.is_floating_point():
        return value[torch.randperm(value.size(0), generator=generator)]
    numbers = [HUGE, -HUGE, 0.0, 1e3, 1e-3] if finite else [math.nan, math.inf, -math.inf]
    picked = torch.randint(0, len(numbers), value.shape, generator=generator)
    return torch.tensor(numbers, dtype=value.dtype)[picked]


def has_loops(division: Division | None) -> bool:
    """Whether a division keeps self-loops."""
    return division is not None and division.self_loops


# Constructed graphs with what an attack can add

Arcs = npt.NDArray[np.int64]  # one arc per row: source and head


@cache
def _fixed_parts(scale: int) -> dict[str, tuple[int, Arcs]]:
    """Connected graphs without random edges: size and edges of each."""
    hub = 150 * scale
    arcs = {
        "hub": (hub, [(leaf, 0) for leaf in range(1, hub)] + [(0, leaf) for leaf in range(1, hub, 2)]),
        "one way": (40, [(leaf, 0) for leaf in range(1, 40)]),
        "fan": (30, [(0, leaf) for leaf in range(1, 30)]),
        "chain": (10, [(k, k + 1) for k in range(9)]),
        "parallel": (3, [(0, 1), (0, 1), (0, 1), (1, 0), (1, 2), (2, 1), (2, 1)]),
        "pair": (2, [(0, 1), (1, 0)]),
    }
    return {name: (size, np.array(part, dtype=np.int64)) for name, (size, part) in arcs.items()}


def _parts(generator: torch.Generator, scale: int) -> list[tuple[int, Arcs]]:
    """Connected graphs: size and edges of each."""
    fixed, lone = _fixed_parts(scale), np.empty((0, 2), dtype=np.int64)
    crowd = _drawn(60, 240 * scale, generator)
    crowd = np.concatenate([crowd, crowd[:, ::-1]])
    mixed = _drawn(24, 160, generator)
    first = [fixed[name] for name in ("hub", "one way", "fan", "chain", "parallel")]
    return [*first, (60, crowd), (24, mixed), fixed["pair"], *[(1, lone)] * 4]


def _drawn(size: int, count: int, generator: torch.Generator) -> Arcs:
    """Random edges without self-loops."""
    ends = torch.randint(0, size, (count, 2), generator=generator).numpy()
    return np.asarray(ends[ends[:, 0] != ends[:, 1]])


def made_up(
    generator: torch.Generator, ordinary: int, values: Values, loops: bool = False, scale: int = 1, sides: int = 2
) -> ProbeGraph:
    """Hubs with more neighbours than samplers take, chains, dense parts, one-way and parallel edges, isolated nodes.

    Args:
        generator: Source of randomness.
        ordinary: Rows of the feature table to choose from.
        values: Edge values to choose from.
        loops: Whether some nodes have self-loops.
        scale: A larger number gives larger hubs and more edges.
        sides: Two, each with one copy of every part, or one.
    """
    arcs, start, count = [], [], 0
    for _ in range(sides):
        start.append(count)
        for size, part in _parts(generator, scale):
            arcs += [part + count] if len(part) else []
            arcs += [np.full((1, 2), count)] if loops else []
            count += size
    edge_index = torch.from_numpy(np.concatenate(arcs).T.copy())
    return ProbeGraph(
        torch.randint(0, ordinary, (count,), generator=generator),
        edge_index,
        picked_values(values, edge_index.size(1), generator),
        torch.from_numpy(np.repeat(np.arange(sides), np.diff([*start, count]))),
        torch.rand(count, generator=generator),
    ).sorted()


def made_up_graphs(generator: torch.Generator, ordinary: int, values: Values, loops: bool = False) -> ProbeGraph:
    """The connected parts of ``made_up`` as separate graphs; every second graph is on the other side."""
    graph = made_up(generator, ordinary, values, loops)
    component = connected(graph)
    graph = replace(graph, place=component).selected(torch.argsort(component, stable=True))
    return _by_graph(replace(graph, side=graph.place % 2))


def connected(graph: ProbeGraph) -> Tensor:
    """Connected component of every node, edges taken in both directions."""
    size = len(graph.rows)
    ones = torch.ones(graph.edge_index.size(1), dtype=torch.int8).numpy()
    matrix = coo_matrix((ones, tuple(graph.edge_index.numpy())), (size, size))
    return torch.from_numpy(connected_components(matrix, directed=False)[1]).long()


def _by_graph(graph: ProbeGraph) -> ProbeGraph:
    """The same graphs with edges sorted by graph."""
    order = torch.argsort(graph.place[graph.edge_index[1]], stable=True)
    values = {name: value[order] for name, value in graph.values.items()}
    return replace(graph, edge_index=graph.edge_index[:, order], values=values)


def picked_values(values: Values, count: int, generator: torch.Generator) -> Values:
    """Values for constructed edges, sampled from given values."""
    return {n: v[torch.randint(0, v.size(0), (count,), generator=generator)] for n, v in values.items()}


def _two_ways(*arcs: tuple[int, int]) -> list[tuple[int, int]]:
    return [arc for u, v in arcs for arc in ((u, v), (v, u))]


def _piece(size: int, arcs: Sequence[tuple[int, int]] = ()) -> Piece:
    ends = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    order = torch.from_numpy(np.lexsort(ends))
    return size, torch.from_numpy(ends).index_select(1, order), order


# What is added to a graph that has nothing of the kind, one at a time.
EXTRAS: dict[str, Piece] = {
    "lone node": _piece(1),
    "handful of lone nodes": _piece(5),
    "edge": _piece(2, _two_ways((0, 1))),
    "one-way edge": _piece(2, [(0, 1)]),
    "parallel edge": _piece(2, 2 * _two_ways((0, 1))),
    "triangle": _piece(3, _two_ways((0, 1), (1, 2), (0, 2))),
    "clique": _piece(16, _two_ways(*combinations(range(16), 2))),
    "hub": _piece(0),  # larger than the largest that is there
    "self-loop": _piece(1, [(0, 0)]),
}


def path(table: Table, values: Values, both_ways: bool, generator: torch.Generator) -> ProbeGraph:
    """A path of nine nodes."""
    arcs = [(k, k + 1) for k in range(8)]
    return _small(table, _piece(9, _two_ways(*arcs) if both_ways else arcs), values, generator)


def _small(table: Table, piece: Piece, values: Values, generator: torch.Generator) -> ProbeGraph:
    """A graph of its own, with features that are rows of the table."""
    size, edge_index, order = piece
    picked = {n: v.index_select(0, order) for n, v in picked_values(values, len(order), generator).items()}
    rows, place = table.borrowed(size, generator), torch.arange(size)
    return ProbeGraph(rows, edge_index, picked, place * 0, place)


def one_more(
    graph: ProbeGraph, table: Table, values: Values, loops: bool, task: str, generator: torch.Generator
) -> Iterator[tuple[str, ProbeGraph]]:
    """For each of ``EXTRAS``: its name, and the graph with one such component (a node, a hub, …) appended."""
    hub = 20 + 2 * int(torch.bincount(graph.edge_index.flatten(), minlength=1).max())
    last = graph.place.max() + 1
    for name, piece in EXTRAS.items():
        if name == "self-loop" and not loops:
            continue
        spokes = _two_ways(*((0, leaf) for leaf in range(1, hub + 1))) if name == "hub" else []
        more = _small(table, _piece(hub + 1, spokes) if spokes else piece, values, generator)
        place = more.place * (task == "node") + last
        yield name, graph.joined(replace(more, place=place.to(graph.place.dtype)))


# The user's graph


def own_nodes(
    data: Data, division: Division | None, generator: torch.Generator, most: int = MOST_ROWS
) -> tuple[Tensor, ProbeGraph]:
    """A part of the disjoint union that the fast engine evaluates, and its features.

    Groups are random instead of hashed, and there may be more of them: a model must be local in every subgraph.

    Args:
        data: The user's graph.
        division: The division that will be used.
        generator: Source of randomness.
        most: Approximate number of nodes.
    """
    x, arcs, values = _checked(data, has_loops(division))
    count, total = x.size(0), arcs.size(1)
    limit = _limit(x.size(1), most)
    asked = 1 if division is None else total + count if division.is_per_neighbour else division.num_groups
    groups = max(asked, 2 * total // count + 2, 2 * total // limit + 2)
    draw = torch.randint(0, 2**31, (count,), generator=generator)
    edge_centric = division is not None and division.family == "edge-centric"

    def cells(arcs: Tensor) -> Tensor:
        return (draw[arcs[0]] + draw[arcs[1]] if edge_centric else draw[arcs[0]]) % groups

    if total > limit:
        blocks = torch.split(arcs, BLOCK, dim=1)
        sizes = sum(torch.bincount(cells(block), minlength=groups) for block in blocks)
        fits = torch.cumsum(torch.as_tensor(sizes), 0) <= limit
        inside = [fits[cells(block)].nonzero().view(-1) + k * BLOCK for k, block in enumerate(blocks)]
        kept = torch.cat(inside)
        arcs, values = arcs[:, kept], {n: v[kept] for n, v in values.items()}
    arcs = arcs.long()
    cell = cells(arcs)
    order = torch.argsort((cell * count + arcs[1]) * count + arcs[0])
    arcs, cell, values = arcs[:, order], cell[order], {n: v[order] for n, v in values.items()}
    copy, where = torch.unique(cell * count + arcs, return_inverse=True)
    shown, rows = torch.unique(copy % count, return_inverse=True)
    if not len(copy):  # a graph without an edge
        shown = torch.arange(min(count, limit))
        rows, where = shown, arcs
    place = torch.arange(len(rows), dtype=torch.float64)
    graph = ProbeGraph(rows, where, values, torch.zeros_like(rows), place)
    drawn = torch.randint(0, 2, (len(rows),), generator=generator)
    return x[shown], replace(graph, side=drawn[connected(graph)])


def own_subgraph(data: Data, division: Division | None, generator: torch.Generator) -> tuple[Tensor, ProbeGraph] | None:
    """All nodes of the user's graph with the edges of one group, as a division shows them; ``None`` if it is large."""
    x, arcs, values = _checked(data, has_loops(division))
    if x.size(0) > _limit(x.size(1), MOST_ROWS):
        return None
    groups = max(2, 2 if division is None or division.is_per_neighbour else division.num_groups)
    draw = torch.randint(0, 2**31, (x.size(0),), generator=generator)
    edge_centric = division is not None and division.family == "edge-centric"
    cell = (draw[arcs[0]] + draw[arcs[1]] if edge_centric else draw[arcs[0]]) % groups
    inside = (cell == 0).nonzero().view(-1)
    rows = torch.arange(x.size(0))
    part = ProbeGraph(rows, arcs[:, inside].long(), {n: v[inside] for n, v in values.items()}, rows * 0, rows)
    return x, part.sorted()


def own_graphs(
    data: Any, division: Any, generator: torch.Generator, most: int = MOST_ROWS
) -> tuple[Tensor, ProbeGraph]:
    """Features of some of the user's graphs, and these graphs in one batch, on the two sides in turn."""
    chosen: list[Data] = []
    rows = 0
    width = int(data[0].x.size(1)) if len(data) and data[0].x is not None and data[0].x.dim() == 2 else 1
    limit = _limit(width, most)
    for k in torch.randperm(len(data), generator=generator).tolist():
        if chosen and rows + data[k].num_nodes > limit:
            break
        chosen.append(data[k])
        rows += data[k].num_nodes
    joined = canonical_set(chosen, has_loops(division))
    batch = joined.graph_of_node
    return joined.x, ProbeGraph(torch.arange(joined.num_nodes), joined.edge_index, joined.edge_values, batch % 2, batch)


def brief_rows(width: int) -> int:
    """Approximate number of nodes for models whose layers are all known."""
    return min(LEAST_ROWS, max(BRIEF_ROWS, BRIEF_NUMBERS // max(1, width)))


def _limit(width: int, most: int) -> int:
    return max(min(LEAST_ROWS, most), min(most, MOST_NUMBERS // max(1, width)))


def _checked(data: Data, loops: bool) -> tuple[Tensor, Tensor, Values]:
    """Features, edges and edge values that a model may see."""
    x, arcs = data.x, data.edge_index
    ready = isinstance(x, Tensor) and x.dim() == 2 and x.dtype in WIDE and isinstance(arcs, Tensor)
    inside = ready and arcs.dtype in (torch.int32, torch.int64) and arcs.dim() == 2 and x.size(0) > 0
    inside = inside and x.device == arcs.device and not x.is_meta
    values = {name: data[name] for name in EDGE_VALUES if getattr(data, name, None) is not None}
    fits = all(isinstance(v, Tensor) and v.dim() > 0 and inside and v.size(0) == arcs.size(1) for v in values.values())
    fits = fits and all(v.dtype in WIDE or not v.is_floating_point() for v in values.values())
    if not inside or not fits or (arcs.numel() and (int(arcs.min()) < 0 or int(arcs.max()) >= x.size(0))):
        graph = canonical(data, loops)  # raises an error, or casts types
        x, arcs, values = graph.x, graph.edge_index, graph.edge_values
    if not loops and arcs.numel() and bool((arcs[0] == arcs[1]).any()):
        kept = arcs[0] != arcs[1]
        arcs, values = arcs[:, kept], {n: v[kept] for n, v in values.items()}
    return x.cpu(), arcs.cpu(), {n: v.cpu() for n, v in values.items()}
