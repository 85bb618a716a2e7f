"""What a model of graph votes sees: whole numbers that follow from the trusted part of a graph.

Nothing else is passed on. :class:`Shape` has the number of nodes and the pairs that are joined, and no feature, id,
order or value of an edge; what is counted in it does not depend on the numbering of nodes. :class:`Types` is
given features only. Whole numbers are exact, whatever the machine and the order of nodes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.graphs.graph import CanonicalGraph

DEGREES = 9  # degrees are told apart up to the last one, which stands for all larger ones
ENDS = 5  # the same for the two ends of an edge
SHARE = 2**12  # shares are whole numbers of this
LARGEST = 2**24  # larger numbers are equal; all others are exact where trees are grown, in float32
LONGEST_WALK = 6
MOST_TYPES = 100
MOST_STEPS = 2**16  # of a measured feature
ROUNDS = 5  # hops within which the surroundings of a node are told apart
MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Shape:
    """The structure of graphs side by side: which nodes belong to which graph, and which are joined.

    Attributes:
        num_graphs: Number of graphs.
        batch: The graph of each node, ascending, shape ``[N]``.
        pairs: Joined nodes, each pair once, the smaller first, shape ``[2, m]``.
    """

    num_graphs: int
    batch: IntArray
    pairs: IntArray

    @classmethod
    def of(cls, graph: CanonicalGraph, num_graphs: int) -> "Shape":
        """Takes the structure of joined graphs, or of one graph, and nothing else."""
        num_nodes = graph.num_nodes
        batch = np.zeros(num_nodes, dtype=np.int64) if graph.batch is None else graph.batch.numpy().astype(np.int64)
        source, target = graph.edge_index.numpy().astype(np.int64)
        low, high = np.minimum(source, target), np.maximum(source, target)
        code = np.unique((low * num_nodes + high)[low != high])
        return cls(num_graphs, batch, np.stack([code // max(num_nodes, 1), code % max(num_nodes, 1)]))

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return len(self.batch)

    @cached_property
    def size(self) -> IntArray:
        """Number of nodes of each graph."""
        return np.bincount(self.batch, minlength=self.num_graphs).astype(np.int64)

    @cached_property
    def adjacency(self) -> csr_array:
        """Which nodes are joined, with 1 for each, both ways."""
        low, high = self.pairs
        ends = (np.concatenate([low, high]), np.concatenate([high, low]))
        ones = np.ones(len(ends[0]), dtype=np.int64)
        return csr_array((ones, ends), shape=(self.num_nodes, self.num_nodes))

    @cached_property
    def degree(self) -> IntArray:
        """Number of neighbours of each node."""
        return np.bincount(self.pairs.ravel(), minlength=self.num_nodes).astype(np.int64)

    @cached_property
    def in_core(self) -> npt.NDArray[np.bool_]:
        """Whether each node is left if nodes with fewer than two neighbours are taken away as long as there are any."""
        left = np.ones(self.num_nodes, dtype=bool)
        low, high = self.pairs
        while True:
            kept = left[low] & left[high]
            degree = np.bincount(np.concatenate([low[kept], high[kept]]), minlength=self.num_nodes)
            stays = left & (degree >= 2)
            if np.array_equal(stays, left):
                return left
            left = stays

    @cached_property
    def triangles(self) -> IntArray:
        """Number of triangles at each node."""
        around = (self.adjacency @ self.adjacency).multiply(self.adjacency)
        return np.asarray(around.sum(axis=1)).ravel().astype(np.int64) // 2

    @cached_property
    def colours(self) -> list[npt.NDArray[np.uint64]]:
        """A number for what each node sees within 0, 1, … hops: equal for equal surroundings, shape ``[N]`` each.

        It is the refinement of Weisfeiler and Leman, with sums of mixed numbers for multisets.
        """
        colour = _mixed(np.zeros(self.num_nodes, dtype=np.uint64))
        low, high = self.pairs
        found = [colour]
        for _ in range(ROUNDS):
            around = np.zeros(self.num_nodes, dtype=np.uint64)
            np.add.at(around, low, _mixed(colour[high]))  # modulo 2**64, in any order
            np.add.at(around, high, _mixed(colour[low]))
            colour = _mixed(colour * MIX + around)
            found.append(colour)
        return found

    def sums(self, values: IntArray) -> IntArray:
        """Returns the sums over the nodes of each graph, shape ``[num_graphs, …]``."""
        totals = np.zeros((self.num_graphs, *values.shape[1:]), dtype=np.int64)
        np.add.at(totals, self.batch, values)
        return totals


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Returns other numbers for equal ones, equal for equal ones (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = numbers + MIX
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def of_structure(shape: Shape, longest_cycle: int = 6) -> IntArray:
    """Counts what each graph looks like without features, shape ``[num_graphs, F]``.

    Args:
        shape: The structure.
        longest_cycle: Up to how many edges closed walks are counted, 4 or 6. Six take long where nodes have many edges.
    """
    degree = np.minimum(shape.degree, DEGREES - 1)
    by_degree = shape.sums(np.eye(DEGREES, dtype=np.int64)[degree])
    by_core = shape.sums((np.eye(DEGREES, dtype=np.int64)[degree]) * shape.in_core[:, None])
    edges = _edges_by_ends(shape)
    num_edges = edges.sum(axis=1)
    size = shape.size
    parts = [
        size[:, None],
        num_edges[:, None],
        shape.sums(shape.in_core.astype(np.int64))[:, None],
        shape.sums(shape.triangles)[:, None],
        by_degree,
        by_core,
        edges,
        _shares(by_degree, size),
        _shares(edges, num_edges),
        _walks(shape),
        _cycles(shape, longest_cycle),
    ]
    return np.asarray(np.minimum(np.concatenate(parts, axis=1), LARGEST))


def of_size(shape: Shape) -> IntArray:
    """Returns the number of nodes, shape ``[num_graphs, 1]``."""
    return shape.size[:, None]


def of_surroundings(shape: Shape) -> IntArray:
    """Counts what each node looks like without features, shape ``[N, F]``. For node classification."""
    degree = shape.degree
    adjacency = shape.adjacency
    neighbours = adjacency @ degree
    few = np.eye(DEGREES, dtype=np.int64)[np.minimum(degree, DEGREES - 1)]
    second = adjacency @ np.minimum(neighbours, LARGEST)
    most = np.zeros(len(degree), dtype=np.int64)
    low, high = shape.pairs
    np.maximum.at(most, low, degree[high])
    np.maximum.at(most, high, degree[low])
    parts = [
        degree[:, None],
        neighbours[:, None],
        most[:, None],
        second[:, None],
        _shares(neighbours[:, None], degree),
        adjacency @ few,
        shape.in_core.astype(np.int64)[:, None],
        shape.triangles[:, None],
        (adjacency @ shape.triangles)[:, None],
        (adjacency @ shape.in_core.astype(np.int64))[:, None],
    ]
    return np.asarray(np.minimum(np.concatenate(parts, axis=1), LARGEST))


def _edges_by_ends(shape: Shape) -> IntArray:
    """Counts the edges of each graph by the degrees of both ends, shape ``[num_graphs, pairs of degrees]``."""
    ends = np.sort(np.minimum(shape.degree[shape.pairs], ENDS) - 1, axis=0)
    kind = ends[0] * ENDS + ends[1]
    counts = np.zeros((shape.num_graphs, ENDS * ENDS), dtype=np.int64)
    np.add.at(counts, (shape.batch[shape.pairs[0]], kind), 1)
    used = [a * ENDS + b for a in range(ENDS) for b in range(a, ENDS)]
    return counts[:, used]


def _shares(counts: IntArray, total: IntArray) -> IntArray:
    return np.asarray(counts * SHARE // np.maximum(total, 1)[:, None])


def _walks(shape: Shape) -> IntArray:
    """Counts walks of two to some edges, and their mean per node, shape ``[num_graphs, F]``."""
    columns = []
    reached = shape.degree
    for _ in range(LONGEST_WALK - 1):
        reached = np.minimum(shape.adjacency @ reached, LARGEST)
        total = np.minimum(shape.sums(reached), LARGEST)
        columns += [total, total * 16 // np.maximum(shape.size, 1)]
    return np.stack(columns, axis=1)


def _cycles(shape: Shape, longest: int) -> IntArray:
    """Counts closed walks that never turn back, of three to some edges, shape ``[num_graphs, F]``.

    In a graph of rings they are the rings: each is walked from each of its nodes, both ways.
    """
    low, high = shape.pairs
    tail, head = np.concatenate([low, high]), np.concatenate([high, low])
    num_arcs = len(tail)
    arcs = np.arange(num_arcs)
    begins = csr_array((np.ones(num_arcs, dtype=np.int64), (tail, arcs)), shape=(shape.num_nodes, num_arcs))
    ends = csr_array((np.ones(num_arcs, dtype=np.int64), (arcs, head)), shape=(num_arcs, shape.num_nodes))
    back = csr_array(
        (np.ones(num_arcs, dtype=np.int64), (arcs, np.roll(arcs, num_arcs // 2))), shape=(num_arcs, num_arcs)
    )
    step = (ends @ begins) - back
    step.eliminate_zeros()
    powers = [step]
    while 2 * len(powers) < longest:
        powers.append(powers[-1] @ step)
    columns = []
    of_arc = shape.batch[tail] if num_arcs else np.zeros(0, dtype=np.int64)
    for first, second in ((0, 1), (1, 1), (1, 2), (2, 2))[: longest - 2]:  # three to six edges
        closed = np.asarray(powers[first].multiply(powers[second].T).sum(axis=1)).ravel()
        total = np.zeros(shape.num_graphs, dtype=np.int64)
        np.add.at(total, of_arc, np.minimum(closed, LARGEST).astype(np.int64))
        columns.append(total)
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Types:
    """Types of nodes, by the columns of features that mark them. Every row of features has one.

    Attributes:
        columns: The columns that mark types, each with one value besides 0 in training graphs.
        rows: What these columns have for each known type, shape ``[K - 1, columns]``. Other rows have the last type.
        measured: The other columns, which are added up.
        scale: Steps in which each of these is read, as a power of two.
    """

    columns: IntArray
    rows: npt.NDArray[np.float64]
    measured: IntArray
    scale: IntArray

    @property
    def num_types(self) -> int:
        """Number of types, that of unknown rows included."""
        return len(self.rows) + 1

    @classmethod
    def found_in(cls, x: npt.NDArray[np.floating[Any]]) -> "Types":
        """Returns the types of the rows of training graphs, the most frequent ones if there are many."""
        largest = x.max(axis=0, initial=0.0)
        marks = ((x == 0) | (x == largest)).all(axis=0) & (largest > 0)
        columns = np.flatnonzero(marks).astype(np.int64)
        rows, number = _distinct(x[:, columns].astype(np.float64))
        if len(rows) > MOST_TYPES - 1:
            rows = rows[np.sort(np.argsort(-number, kind="stable")[: MOST_TYPES - 1])]
        measured = np.flatnonzero(~marks).astype(np.int64)
        reach = np.abs(x[:, measured]).max(axis=0, initial=0.0).astype(np.float64)
        scale = np.array([_power_of_two(most) for most in reach], dtype=np.int64)
        return cls(columns, rows, measured, scale)

    def of(self, x: npt.NDArray[np.floating[Any]]) -> IntArray:
        """Returns the type of each row of features, shape ``[N]``."""
        marks = x[:, self.columns].astype(np.float64)
        place, is_alone = _only_mark(marks)
        known = {row.tobytes(): number for number, row in enumerate(self.rows + 0.0)}
        kind = np.full(len(marks), len(self.rows), dtype=np.int64)
        for column in np.unique(place[is_alone]).tolist():
            here = np.flatnonzero(is_alone & (place == column))
            row = np.zeros(len(self.columns))
            for value in np.unique(marks[here, column]).tolist():
                row[column] = value
                kind[here[marks[here, column] == value]] = known.get(row.tobytes(), len(self.rows))
        others = np.flatnonzero(~is_alone)
        for number, row in zip(others.tolist(), marks[others] + 0.0, strict=True):  # + 0.0: no negative zero
            kind[number] = known.get(row.tobytes(), len(self.rows))
        return kind

    def amounts(self, x: npt.NDArray[np.floating[Any]]) -> IntArray:
        """Returns the measured columns in whole steps, within limits, shape ``[N, columns]``."""
        steps = np.floor(np.ldexp(x[:, self.measured].astype(np.float64), self.scale.astype(np.int32)))
        return np.clip(steps, -MOST_STEPS, MOST_STEPS).astype(np.int64)


def _only_mark(marks: npt.NDArray[np.float64]) -> tuple[IntArray, BoolArray]:
    """Returns the largest entry of each row, and whether it is the only one that is not zero."""
    if not marks.shape[1]:
        return np.zeros(len(marks), dtype=np.int64), np.zeros(len(marks), dtype=bool)
    place = np.abs(marks).argmax(axis=1)
    return place.astype(np.int64), np.count_nonzero(marks, axis=1) == 1


def _distinct(marks: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], IntArray]:
    """Returns the distinct rows of marks, and how often each occurs; fast where each row has one mark."""
    place, is_alone = _only_mark(marks)
    if not is_alone.all():
        rows, number = np.unique(marks, axis=0, return_counts=True)
        return rows, number.astype(np.int64)
    columns, number = np.unique(place, return_counts=True)
    rows = np.zeros((len(columns), marks.shape[1]))
    rows[np.arange(len(columns)), columns] = marks.max(axis=0, initial=0.0)[columns]
    return rows, number.astype(np.int64)


def _power_of_two(most: float) -> int:
    """Returns the power of two by which numbers up to a size fill the steps."""
    return 0 if most <= 0 else int(np.floor(np.log2(MOST_STEPS / most)))


def of_nodes(types: Types, x: npt.NDArray[np.floating[Any]], shape: Shape) -> IntArray:
    """Counts the types of nodes of each graph, and adds up what is measured, shape ``[num_graphs, F]``.

    Of the structure only the number of nodes enters, which has no edges.
    """
    kinds = types.of(x)
    counts = np.zeros((shape.num_graphs, types.num_types), dtype=np.int64)
    np.add.at(counts, (shape.batch, kinds), 1)
    size = shape.size
    parts = [size[:, None], counts, _shares(counts, size)]
    if len(types.measured):
        amounts = types.amounts(x)
        sums = shape.sums(amounts)
        parts += [sums // 16, sums // np.maximum(size, 1)[:, None]]
        parts += [shape.sums(amounts**2 // MOST_STEPS) // np.maximum(size, 1)[:, None]]
    return np.clip(np.concatenate(parts, axis=1), -LARGEST, LARGEST)
