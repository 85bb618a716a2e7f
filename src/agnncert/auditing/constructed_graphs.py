"""Constructed probe graphs: graphs with what an attack can add, and one such thing at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.auditing.probe_graphs import EdgeValues, FeatureTable, ProbeGraph
from agnncert.graphs.graph import Task

Arcs = npt.NDArray[np.int64]  # one arc per row: source and head


class Part(NamedTuple):
    """A connected graph: its number of nodes, and its arcs."""

    size: int
    arcs: Arcs


class Component(NamedTuple):
    """A small graph: number of nodes, arcs sorted by dst and src, and the order that sorted them."""

    size: int
    edge_index: Tensor
    order: Tensor


@cache
def _fixed_parts(scale: int) -> dict[str, Part]:
    """Returns connected graphs without random arcs, by name."""
    hub = 150 * scale
    parts = {
        "hub": (hub, [(leaf, 0) for leaf in range(1, hub)] + [(0, leaf) for leaf in range(1, hub, 2)]),
        "one way": (40, [(leaf, 0) for leaf in range(1, 40)]),
        "fan": (30, [(0, leaf) for leaf in range(1, 30)]),
        "chain": (10, [(k, k + 1) for k in range(9)]),
        "parallel": (3, [(0, 1), (0, 1), (0, 1), (1, 0), (1, 2), (2, 1), (2, 1)]),
        "pair": (2, [(0, 1), (1, 0)]),
    }
    return {name: Part(size, np.array(arcs, dtype=np.int64)) for name, (size, arcs) in parts.items()}


def _parts(generator: torch.Generator, scale: int) -> list[Part]:
    """Returns connected graphs of all kinds, and four lone nodes."""
    fixed = _fixed_parts(scale)
    crowd = _random_arcs(60, 240 * scale, generator)
    both_ways = np.concatenate([crowd, crowd[:, ::-1]])
    mixed = _random_arcs(24, 160, generator)
    lone = Part(1, np.empty((0, 2), dtype=np.int64))
    parts = [fixed[name] for name in ("hub", "one way", "fan", "chain", "parallel")]
    return [*parts, Part(60, both_ways), Part(24, mixed), fixed["pair"], *[lone] * 4]


def _random_arcs(size: int, count: int, generator: torch.Generator) -> Arcs:
    """Draws arcs and leaves out self-loops."""
    ends = torch.randint(0, size, (count, 2), generator=generator).numpy()
    return np.asarray(ends[ends[:, 0] != ends[:, 1]])


def _both_ways(*arcs: tuple[int, int]) -> list[tuple[int, int]]:
    doubled = []
    for source, head in arcs:
        doubled += [(source, head), (head, source)]
    return doubled


def _component(size: int, arcs: Sequence[tuple[int, int]] = ()) -> Component:
    ends = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    order = torch.from_numpy(np.lexsort(ends))
    return Component(size, torch.from_numpy(ends).index_select(1, order), order)


# What is added to a graph that has nothing of the kind, one at a time.
EXTRAS: dict[str, Component] = {
    "lone node": _component(1),
    "handful of lone nodes": _component(5),
    "edge": _component(2, _both_ways((0, 1))),
    "one-way edge": _component(2, [(0, 1)]),
    "parallel edge": _component(2, 2 * _both_ways((0, 1))),
    "triangle": _component(3, _both_ways((0, 1), (1, 2), (0, 2))),
    "clique": _component(16, _both_ways(*combinations(range(16), 2))),
    "chain": _component(16, _both_ways(*((k, k + 1) for k in range(15)))),
    "hub": _component(0),  # stands for one that is larger than the largest of the graph
    "self-loop": _component(1, [(0, 0)]),
}
NUMBERS_OF_LEAVES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)


def _hub(leaves: int, count: int = 1) -> Component:
    """Returns some hubs with as many neighbours each."""
    spokes = []
    for start in range(0, count * (leaves + 1), leaves + 1):
        spokes += [(start, start + leaf) for leaf in range(1, leaves + 1)]
    return _component(count * (leaves + 1), _both_ways(*spokes))


def _chain(length: int) -> Component:
    return _component(length, _both_ways(*((k, k + 1) for k in range(length - 1))))


def _clique(size: int) -> Component:
    return _component(size, _both_ways(*combinations(range(size), 2)))


@cache
def _further_extras() -> dict[str, tuple[Component, ...]]:
    """Returns what is added, besides ``EXTRAS``, to graphs of a few nodes, by name: the same things in many sizes."""
    return {
        "hub": (*(_hub(leaves) for leaves in NUMBERS_OF_LEAVES), *(_hub(leaves, count=4) for leaves in (6, 13, 30))),
        "clique": tuple(_clique(size) for size in (4, 5, 6, 7, 8, 9, 10, 12, 24)),
        "chain": tuple(_chain(length) for length in (4, 6, 8, 12, 32, 64)),
        "edge": tuple(_hub(leaves=1, count=count) for count in (4, 8, 16, 32, 64)),
    }


def _largest_degree(graph: ProbeGraph) -> int:
    return int(torch.bincount(graph.edge_index[1], minlength=1).max())


def _hub_for(graph: ProbeGraph) -> Component:
    """Returns a hub with more than twice as many neighbours as any node of the graph."""
    largest_degree = int(torch.bincount(graph.edge_index.flatten(), minlength=1).max())
    return _hub(20 + 2 * largest_degree)


@dataclass(frozen=True)
class GraphBuilder:
    """Builds probe graphs.

    Attributes:
        generator: Source of randomness.
        values: Edge values to choose from, by name.
        loops: Whether some nodes have self-loops.
    """

    generator: torch.Generator
    values: EdgeValues
    loops: bool = False

    def graph(self, num_rows: int, scale: int = 1, sides: int = 2) -> ProbeGraph:
        """Returns a graph with all that makes models fail, the same on each side.

        There are hubs with more neighbours than samplers take, chains, dense parts, one-way and parallel edges, and
        isolated nodes.

        Args:
            num_rows: Number of rows of the feature table to choose from.
            scale: A larger number gives larger hubs and more edges.
            sides: Two, each with one copy of every part, or one.
        """
        arcs = []
        starts = []
        count = 0
        for _ in range(sides):
            starts.append(count)
            for part in _parts(self.generator, scale):
                if len(part.arcs):
                    arcs.append(part.arcs + count)
                if self.loops:
                    arcs.append(np.full((1, 2), count))
                count += part.size
        edge_index = torch.from_numpy(np.concatenate(arcs).T.copy())
        return ProbeGraph(
            torch.randint(0, num_rows, (count,), generator=self.generator),
            edge_index,
            self._draw_values(edge_index.size(1)),
            torch.from_numpy(np.repeat(np.arange(sides), np.diff([*starts, count]))),
            torch.rand(count, generator=self.generator),
        ).sorted()

    def graphs(self, num_rows: int) -> ProbeGraph:
        """Returns the connected parts of ``graph`` as separate graphs, every second one on the other side."""
        graph = self.graph(num_rows)
        component = graph.components()
        ordered = replace(graph, position=component).selected(torch.argsort(component, stable=True))
        return replace(ordered, side=ordered.position % 2).sorted_by_graph()

    def path(self, table: FeatureTable, both_ways: bool) -> ProbeGraph:
        """Returns a path of nine nodes."""
        arcs = [(k, k + 1) for k in range(8)]
        return self._small(table, _component(9, _both_ways(*arcs) if both_ways else arcs))

    def one_more(
        self, graph: ProbeGraph, table: FeatureTable, task: Task, many_sizes: bool
    ) -> Iterator[tuple[str, ProbeGraph]]:
        """Yields, for each of ``EXTRAS``, its name and the graph with one such component (a node, a hub, …) appended.

        Args:
            graph: The graph.
            table: Its features.
            task: In the graph task the component is a graph of its own.
            many_sizes: Whether hubs, cliques, chains and pairs of many sizes are added as well, each by itself. Else
                only a hub that is a little larger than the largest of the graph is.
        """
        for name, component in EXTRAS.items():
            if name == "self-loop" and not self.loops:
                continue
            yield name, self._appended(graph, table, task, _hub_for(graph) if name == "hub" else component)
        further = _further_extras() if many_sizes else {"hub": (_hub(_largest_degree(graph) + 1),)}
        for name, components in further.items():
            if name not in EXTRAS:
                continue
            for component in components:
                yield name, self._appended(graph, table, task, component)

    def lone_nodes(self, graph: ProbeGraph, rows: Tensor) -> ProbeGraph:
        """Returns the graph with lone nodes appended, each a graph of its own in the graph task.

        Args:
            graph: The graph.
            rows: Their rows in the feature table, shape ``[num_new]``.
        """
        position = torch.arange(len(rows)).to(graph.position.dtype) + (graph.position.max() + 1)
        no_values = {name: value[:0] for name, value in graph.values.items()}
        no_edge = torch.empty(2, 0, dtype=torch.int64)
        return graph.joined(ProbeGraph(rows, no_edge, no_values, torch.zeros_like(rows), position))

    def pair_of_values(
        self, graph: ProbeGraph, table: FeatureTable, task: Task, name: str, value: Tensor
    ) -> ProbeGraph:
        """Returns the graph with two nodes appended that an edge of the given values joins, in both directions.

        Args:
            graph: The graph.
            table: Its features.
            task: "node" or "graph".
            name: Name of the edge values.
            value: The values of the edge.
        """
        change = self._appended(graph, table, task, EXTRAS["edge"])
        values = {**change.values, name: change.values[name].clone()}
        values[name][-2:] = value
        return replace(change, values=values)

    def with_hub(self, graph: ProbeGraph, table: FeatureTable, task: Task, leaves: int) -> ProbeGraph:
        """Returns the graph with one more hub of as many neighbours.

        Args:
            graph: The graph.
            table: Its features.
            task: In the graph task the hub and its neighbours are a graph of their own.
            leaves: The number of neighbours.
        """
        numbers = torch.arange(1, leaves + 1)
        zeros = torch.zeros_like(numbers)
        arcs = torch.cat([torch.stack([numbers, zeros]), torch.stack([zeros, numbers])], dim=1)  # sorted by head
        return self._appended(graph, table, task, Component(leaves + 1, arcs, torch.arange(2 * leaves)))

    def with_dense_pair(self, graph: ProbeGraph, table: FeatureTable, task: Task, copies: int) -> ProbeGraph:
        """Returns the graph with two nodes appended that many parallel edges join, in both directions.

        Where self-loops are kept, the first of them has as many self-loops.

        Args:
            graph: The graph.
            table: Its features.
            task: In the graph task the two nodes are a graph of their own.
            copies: The number of edges.
        """
        one_way = torch.tensor([[1], [0]]).expand(2, copies)
        loops = torch.zeros(2, copies if self.loops else 0, dtype=torch.int64)
        arcs = torch.cat([loops, one_way, one_way.flip(0)], dim=1)  # sorted by head and source
        return self._appended(graph, table, task, Component(2, arcs, torch.arange(arcs.size(1))))

    def _appended(self, graph: ProbeGraph, table: FeatureTable, task: Task, component: Component) -> ProbeGraph:
        """Returns the graph with a component appended, behind all positions."""
        last = graph.position.max() + 1
        extra = self._small(table, component)
        position = extra.position + last if task == "node" else torch.zeros_like(extra.position) + last
        return graph.joined(replace(extra, position=position.to(graph.position.dtype)))

    def _small(self, table: FeatureTable, component: Component) -> ProbeGraph:
        """Returns a graph of its own, with features that are rows of the table."""
        drawn = self._draw_values(len(component.order))
        values = {name: value.index_select(0, component.order) for name, value in drawn.items()}
        rows = table.draw_ordinary(component.size, self.generator)
        position = torch.arange(component.size)
        return ProbeGraph(rows, component.edge_index, values, torch.zeros_like(position), position)

    def _draw_values(self, count: int) -> EdgeValues:
        """Draws values for constructed edges."""
        drawn = {}
        for name, value in self.values.items():
            drawn[name] = value[torch.randint(0, value.size(0), (count,), generator=self.generator)]
        return drawn
