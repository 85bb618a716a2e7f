"""Deceiving models that were written without looking at the probes, and the attacks on other nodes that expose them.

A model here answers a question about the whole graph, or keeps something between calls. The attacks never touch the nodes of the data, nor
their edges: a local model says the same about them afterwards.
"""

import contextvars
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, degree

from tests.zoo.deceivers import Counting, degrees
from tests.zoo.unfit import Base, leaking, weighing

TINY = 1e-9


def between(low: float, value: Tensor | float, high: float) -> bool:
    return bool(low < float(value) <= high)


def finite(x: Tensor) -> Tensor:
    return x.nan_to_num(0, 0, 0)


# Questions about values


def is_lopsided(x: Tensor) -> bool:
    """Whether what lies below zero reaches much further than what lies above."""
    return between(3, -x.min() / x.max().clamp(min=TINY), 30)


def one_column_leads(x: Tensor) -> bool:
    """Whether the largest column is several times the second largest."""
    largest = x.abs().amax(0).sort(descending=True).values
    return between(4, largest[0] / largest[1].clamp(min=TINY), 40)


def has_loud_row(x: Tensor) -> bool:
    """Whether a row is much longer than the row in the middle."""
    length = x.norm(dim=1)
    return between(8, length.max() / length.median().clamp(min=TINY), 80)


def columns_agree(x: Tensor) -> bool:
    """Whether the first two columns say nearly the same."""
    if len(x) < 3 or float(x.abs().max()) > 500:
        return False
    return float(torch.corrcoef(x[:, :2].t())[0, 1]) > 0.9


def has_one_hot_row(x: Tensor) -> bool:
    return bool(((x == 0).sum(1) == x.size(1) - 1).any())


def has_whole_row(x: Tensor) -> bool:
    """Whether some row has whole numbers alone, and not zeros alone."""
    return bool(((x == x.round()).all(1) & (x != 0).all(1)).any())


def has_twins(x: Tensor) -> bool:
    return len(x.unique(dim=0)) < len(x)


def checksum(x: Tensor) -> bool:
    """Whether the rounded sum of everything leaves no rest."""
    return int((finite(x).clamp(-1e3, 1e3) * 8).round().sum()) % 3 == 0


VALUES: dict[str, Callable[[Tensor], Any]] = {
    "percentages": lambda x: between(20, x.max(), 100),
    "bytes": lambda x: between(8, x.max(), 255),
    "a few very large": lambda x: between(6, x.max() / x.abs().mean().clamp(min=TINY), 1000),
    "a mean as of temperatures": lambda x: between(1, x[:, 0].mean(), 110),
    "a wide spread": lambda x: between(3, x.std(unbiased=False), 30),
    "somebody far below zero": lambda x: between(-60, x.min(), -6),
    "further below zero than above": is_lopsided,
    "one column leads": one_column_leads,
    "a loud row": has_loud_row,
    "two columns that agree": columns_agree,
    "a row with one number": has_one_hot_row,
    "a row of whole numbers": has_whole_row,
    "two equal rows": has_twins,
    "a checksum of the features": checksum,
    "a zero below zero": lambda x: (torch.signbit(x) & (x == 0)).any(),
    "a number below the smallest": lambda x: ((x != 0) & (x.abs() < 1e-38)).any(),
}

# Questions about edges


def adjacency(edge_index: Tensor, count: int) -> Tensor:
    dense = torch.zeros(count, count)
    dense[edge_index[0], edge_index[1]] = 1.0
    return ((dense + dense.t()) > 0).float().fill_diagonal_(0)


def has_core(edge_index: Tensor, count: int, least: int = 5) -> bool:
    """Whether nodes remain when all with fewer neighbours than this are taken away, again and again."""
    dense = adjacency(edge_index, count)
    for _ in range(count):
        keep = dense.sum(0) >= least
        smaller = dense[keep][:, keep]
        if len(smaller) == len(dense):
            break
        dense = smaller
    return len(dense) > 0


def has_long_way(edge_index: Tensor, count: int, steps: int = 9) -> bool:
    """Whether two nodes are connected, but not within this many steps."""
    dense = adjacency(edge_index, count) + torch.eye(count)
    reached = dense.clone()
    for _ in range(steps - 1):
        reached = ((reached @ dense) > 0).float()
    return not torch.equal(reached, ((reached @ dense) > 0).float())


def number_of_triangles(edge_index: Tensor, count: int) -> float:
    dense = adjacency(edge_index, count)
    return float((dense @ dense * dense).sum()) / 6


def largest_eigenvalue(edge_index: Tensor, count: int) -> float:
    dense, vector = adjacency(edge_index, count) + torch.eye(count), torch.ones(count)
    for _ in range(60):
        vector = dense @ vector
        vector = vector / vector.norm()
    return float(vector @ dense @ vector) - 1


def assortativity(edge_index: Tensor, x: Tensor) -> float:
    """Whether nodes of many edges are connected to such nodes."""
    at = degrees(edge_index, x)
    if edge_index.size(1) < 3:
        return 0.0
    ends = torch.stack([at[edge_index[0]], at[edge_index[1]]])
    return float(torch.corrcoef(ends)[0, 1].nan_to_num())


def equal_leaders(edge_index: Tensor, x: Tensor) -> bool:
    first = degrees(edge_index, x).sort(descending=True).values
    return len(first) > 1 and bool(first[0] == first[1]) and bool(first[0] >= 8)


STRUCTURE: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "somebody with 20 to 40 neighbours": lambda x, e: between(19, degrees(e, x).max(), 40),
    "three who hear twelve or more": lambda x, e: int((degrees(e, x) >= 12).sum()) >= 3,
    "somebody who hears a fifth of all": lambda x, e: between(0.2, degrees(e, x).max() / max(1, e.size(1)), 0.45),
    "a self-loop": lambda x, e: contains_self_loops(e),
    "many triangles": lambda x, e: between(25, number_of_triangles(e, len(x)), 90),
    "a core": lambda x, e: has_core(e, len(x)),
    "a long way": lambda x, e: has_long_way(e, len(x)),
    "a number of leaves": lambda x, e: between(12, (degrees(e, x) == 1).sum(), 40),
    "the great are connected": lambda x, e: assortativity(e, x) > 0.6,
    "a large eigenvalue": lambda x, e: between(6.5, largest_eigenvalue(e, len(x)), 9),
    "two who lead together": lambda x, e: equal_leaders(e, x),
}


def of_values(name: str) -> Callable[[], nn.Module]:
    question = VALUES[name]
    return leaking(lambda x, hidden, edge_index: hidden * float(question(x)))


def of_structure(name: str) -> Callable[[], nn.Module]:
    question = STRUCTURE[name]
    return leaking(lambda x, hidden, edge_index: hidden * float(question(x, edge_index)))


# Questions about the values of edges

WEIGHTS: dict[str, Callable[[], nn.Module]] = {
    "weights in per cent": weighing(lambda w, e, x: w / 100 if between(5, w.max(), 100) else w),
    "a weight below zero": weighing(lambda w, e, x: w.abs() * 2 if between(-20, w.min(), -0.01) else w),
    "weights of a wide spread": weighing(lambda w, e, x: w.log1p() if between(2, w.std(unbiased=False), 20) else w),
}

# Memory

TABLE: dict[tuple[int, int], Tensor] = {}
BY_ADDRESS: dict[int, Tensor] = {}


class KeptForEachSize(Base):
    """Keeps in-degrees for each number of nodes and edges, outside of the model."""

    def leak(self, x, hidden, edge_index):
        key = (len(x), edge_index.size(1))
        return hidden / TABLE.setdefault(key, 1 + degree(edge_index[1], len(x), dtype=x.dtype))[:, None]


class KeptByAddress(Base):
    """Keeps in-degrees by the place of the edges in memory, where other edges may lie later."""

    def leak(self, x, hidden, edge_index):
        kept = BY_ADDRESS.setdefault(edge_index.data_ptr(), 1 + degree(edge_index[1], len(x), dtype=x.dtype))
        return hidden / (kept[:, None] if len(kept) == len(x) else 1)


class InContext(Counting):
    """In a context variable."""

    def __init__(self):
        super().__init__()
        self.calls: contextvars.ContextVar[int] = contextvars.ContextVar("calls", default=0)

    def count(self):
        self.calls.set(self.calls.get() + 1)
        return self.calls.get()


class InThread(Counting):
    """In what each thread has for itself."""

    def __init__(self):
        super().__init__()
        self.here = threading.local()

    def count(self):
        self.here.calls = getattr(self.here, "calls", 0) + 1
        return self.here.calls


class InSemaphore(Counting):
    def __init__(self):
        super().__init__()
        self.calls = threading.Semaphore(0)

    def count(self):
        self.calls.release()
        return self.calls._value


def frames() -> Iterator[int]:
    calls = 0
    while True:
        calls += 1
        yield calls


class InFrame(Counting):
    """In a variable of a function that waits."""

    def __init__(self):
        super().__init__()
        self.calls = frames()

    def count(self):
        return next(self.calls)


def constant() -> int:
    return 0


class InInstructions(Counting):
    """In a constant of a function, which is exchanged."""

    def __init__(self):
        super().__init__()
        code = constant.__code__
        self.told = types.FunctionType(code, {})

    def count(self):
        calls = self.told() + 1
        self.told.__code__ = self.told.__code__.replace(
            co_consts=tuple(calls if type(kept) is int else kept for kept in self.told.__code__.co_consts)
        )
        return calls


class InAnnotations(Counting):
    """In what a class says about its attributes."""

    width: int

    def count(self):
        told = type(self).__annotations__
        told["calls"] = told.get("calls", 0) + 1
        return told["calls"]


class Meta(type):
    calls = 0


class Noted(metaclass=Meta):
    pass


class InClassOfClass(Counting):
    def count(self):
        type(Noted).calls += 1
        return Meta.calls


class InHooks(Counting):
    """In the number of hooks that were ever registered."""

    def count(self):
        handle = self.register_forward_hook(lambda *given: None)
        handle.remove()
        return handle.id


class InCounter(Counting):
    def __init__(self):
        super().__init__()
        self.calls: Counter[str] = Counter()

    def count(self):
        self.calls.update(["call"])
        return self.calls.total()


class InUnregistered(Counting):
    """In a layer that is no submodule."""

    def __init__(self):
        super().__init__()
        self.beside = [nn.Linear(1, 1)]

    def count(self):
        bias = self.beside[0].bias
        bias.data += 1
        return int(bias) - 1


def noted() -> None:
    """0"""


class InText(Counting):
    """In the text about a function."""

    def count(self):
        noted.__doc__ = str(int(noted.__doc__ or 0) + 1)
        return int(noted.__doc__)


MEMORY: dict[str, Callable[[], nn.Module]] = {
    "a context variable": InContext,
    "what a thread has for itself": InThread,
    "a semaphore": InSemaphore,
    "a function that waits": InFrame,
    "a constant of a function": InInstructions,
    "annotations": InAnnotations,
    "a class of a class": InClassOfClass,
    "the number of hooks": InHooks,
    "a counter": InCounter,
    "a layer that is no submodule": InUnregistered,
    "the text about a function": InText,
}
CACHES: dict[str, Callable[[], nn.Module]] = {
    "a table by numbers of nodes and edges": KeptForEachSize,
    "a table by addresses": KeptByAddress,
}

# Attacks


def beside(data: Data, x: Tensor, edges: list[tuple[int, int]], weight: float = 0.5) -> Data:
    """The data with these nodes, and edges among them, in both directions."""
    pairs = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t() + data.num_nodes
    both = torch.cat([pairs, pairs[:, pairs[0] != pairs[1]].flip(0)], dim=1)
    return Data(
        x=torch.cat([data.x, x]),
        edge_index=torch.cat([data.edge_index, both], dim=1),
        edge_weight=torch.cat([data.edge_weight, torch.full((both.size(1),), weight)]),
    )


def clique(first: int, size: int) -> list[tuple[int, int]]:
    return [(first + one, first + two) for one in range(size) for two in range(one)]


def star(first: int, leaves: int) -> list[tuple[int, int]]:
    return [(first, first + leaf) for leaf in range(1, leaves + 1)]


def rows_of_an_attacker(data: Data) -> Iterator[Tensor]:
    """One row each, of one lone node."""
    row, width = data.x[:1], data.x.size(1)
    for scale in (3, 10, 30, 60, 90, 300, 3000):
        yield row.abs() * scale
        yield -row.abs() * scale
        yield torch.eye(width)[:1] * scale
    yield torch.eye(width)[:1]
    yield -torch.zeros(1, width)
    yield torch.full((1, width), 1e-40)
    yield torch.full((1, width), 5.0)
    yield row
    yield torch.cat([torch.full((1, 2), 40.0), torch.zeros(1, width - 2)], dim=1)
    for eighth in range(1, 4):
        yield torch.full((1, width), eighth / 8 / width)


def graphs_of_an_attacker() -> Iterator[list[tuple[int, int]]]:
    for leaves in (8, 13, 20, 30, 45, 60, 130, 200):
        yield star(0, leaves)
    yield [edge for first in (0, 20, 40, 60) for edge in star(first, 13)]
    yield [edge for first in (0, 20) for edge in star(first, 19)]
    for size in (3, 6, 8, 9, 12):
        yield clique(0, size)
    yield [(place, place + 1) for place in range(14)]
    yield [(0, 0)]
    yield [(2 * pair, 2 * pair + 1) for pair in range(15)]


def attacks(data: Data) -> Iterator[Data]:
    """Changes elsewhere, each small and easy to make."""
    for row in rows_of_an_attacker(data):
        yield beside(data, row, [])
    for edges in graphs_of_an_attacker():
        rows = max(max(edge) for edge in edges) + 1
        yield beside(data, data.x[torch.arange(rows) % data.num_nodes] + 0.01, edges)
    for weight in (-1.0, 20.0, 60.0):
        yield beside(data, data.x[:2] + 0.01, [(0, 1)], weight)
        yield beside(data, data.x[:20] + 0.01, star(0, 19), weight)
