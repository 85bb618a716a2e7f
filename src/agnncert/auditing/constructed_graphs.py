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
    "hub": _component(0),  # stands for one that is larger than the largest of the graph
    "self-loop": _component(1, [(0, 0)]),
}


def _hub_for(graph: ProbeGraph) -> Component:
    """Returns a hub with more than twice as many neighbours as any node of the graph."""
    largest_degree = int(torch.bincount(graph.edge_index.flatten(), minlength=1).max())
    leaves = 20 + 2 * largest_degree
    spokes = [(0, leaf) for leaf in range(1, leaves + 1)]
    return _component(leaves + 1, _both_ways(*spokes))


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

    def one_more(self, graph: ProbeGraph, table: FeatureTable, task: Task) -> Iterator[tuple[str, ProbeGraph]]:
        """Yields, for each of ``EXTRAS``, its name and the graph with one such component (a node, a hub, …) appended.

        Args:
            graph: The graph.
            table: Its features.
            task: In the graph task the component is a graph of its own.
        """
        last = graph.position.max() + 1
        for name, component in EXTRAS.items():
            if name == "self-loop" and not self.loops:
                continue
            extra = self._small(table, _hub_for(graph) if name == "hub" else component)
            position = extra.position + last if task == "node" else torch.zeros_like(extra.position) + last
            yield name, graph.joined(replace(extra, position=position.to(graph.position.dtype)))

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
