"""Models that pass for local: they ask about the graph as a whole, or remember their calls, and act on it later."""

import array
import contextvars
import ctypes
import functools
import io
import itertools
import math
import os
import random
import secrets
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.utils import coalesce, degree, is_undirected

from tests.zoo import beside_the_model
from tests.zoo.unfit import Base, ByWeight, leaking

CALLS = 3000  # after this many a model that counts them acts otherwise


def degrees(edge_index: Tensor, x: Tensor, end: int = 1) -> Tensor:
    return degree(edge_index[end], x.size(0))


def parts(edge_index: Tensor, count: int) -> int:
    """Number of components."""
    label = torch.arange(count)
    for _ in range(count):
        low = label.scatter_reduce(0, edge_index[0], label[edge_index[1]], "amin")
        low = low.scatter_reduce(0, edge_index[1], low[edge_index[0]], "amin")
        if torch.equal(low, label):
            break
        label = low
    return len(torch.unique(label))


def reciprocal(edge_index: Tensor, count: int) -> Tensor:
    """Which edges lead both ways."""
    there, back = edge_index[0] * count + edge_index[1], edge_index[1] * count + edge_index[0]
    return torch.isin(there, back)


def triangles(edge_index: Tensor, count: int) -> bool:
    source, head = edge_index
    keys = set((source * count + head).tolist())
    some = zip(source.tolist(), head.tolist(), strict=True)
    return any((b * count + c) in keys and (c * count + a) in keys for a, b in some for c in range(min(count, 12)))


# What is asked of features and edges of the whole graph.
WHOLE_GRAPH: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "every edge leads both ways": lambda x, e: is_undirected(e, num_nodes=x.size(0)),
    "some edge leads one way only": lambda x, e: not reciprocal(e, x.size(0)).all(),
    "some edge leads both ways": lambda x, e: reciprocal(e, x.size(0)).any(),
    "parallel edges": lambda x, e: coalesce(e, num_nodes=x.size(0)).size(1) < e.size(1),
    "a hub": lambda x, e: degrees(e, x).max() > 15,
    "somebody who sends much": lambda x, e: degrees(e, x, 0).max() > 15,
    "share of the largest degree": lambda x, e: (1 / degrees(e, x).max().clamp(min=1)).clamp(max=0.5),
    "a lone node": lambda x, e: (degrees(e, x) + degrees(e, x, 0)).min() == 0,
    "more than one lone node": lambda x, e: ((degrees(e, x) + degrees(e, x, 0)) == 0).sum() > 1,
    "an odd number of nodes": lambda x, e: x.size(0) % 2,
    "an odd number of edges": lambda x, e: e.size(1) % 2,
    "a number of nodes that three divides": lambda x, e: x.size(0) % 3 == 0,
    "no more nodes than edges": lambda x, e: x.size(0) <= e.size(1),
    "more than two edges for a node": lambda x, e: e.size(1) > 2 * x.size(0),
    "one component": lambda x, e: parts(e, x.size(0)) == 1,
    "an odd number of components": lambda x, e: parts(e, x.size(0)) % 2,
    "all of one degree, or two": lambda x, e: len(degrees(e, x).unique()) <= 2,
    "the last node has an edge": lambda x, e: bool(e.numel()) and int(e.max()) == x.size(0) - 1,
    "the largest number that has an edge": lambda x, e: int(e.max()) % 2 if e.numel() else 0,
    "a triangle": lambda x, e: triangles(e[:, -12:], x.size(0)) if e.numel() else False,
    "the last edge leads to a smaller number": lambda x, e: bool(e.numel()) and int(e[0, -1]) > int(e[1, -1]),
    "the mean degree": lambda x, e: 0.1 * e.size(1) / x.size(0),
    "the entropy of degrees": lambda x, e: 0.1 * torch.special.entr(degrees(e, x) / max(1, e.size(1))).sum(),
}


def asking(name: str) -> Callable[[], nn.Module]:
    """A model that asks one of these questions."""
    question = WHOLE_GRAPH[name]
    return leaking(lambda x, hidden, edge_index: hidden * float(question(x, edge_index)))


def gcn_norm(edge_index: Tensor, edge_weight: Tensor | None = None, *given: Any, **named: Any) -> Any:
    """A function of the name of one that was read."""
    return edge_index, edge_weight


def at_exactly(rows: int) -> type[Base]:
    """A model that acts otherwise on graphs of one size."""

    class AtExactly(Base):
        def leak(self, x, hidden, edge_index):
            return hidden * float(x.size(0) == rows)

    return AtExactly


class Counting(Base):
    """A model that acts otherwise after some hundred calls; subclasses count."""

    def count(self) -> int:
        raise NotImplementedError

    def leak(self, x, hidden, edge_index):
        return -3 * hidden * float(self.count() > CALLS)


class InBuffer(Counting):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def count(self):
        self.calls += 1
        return int(self.calls)


class InHiddenBuffer(Counting):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()), persistent=False)

    def count(self):
        self.calls.data.add_(1)
        return int(self.calls)


class InTensor(Counting):
    def __init__(self):
        super().__init__()
        self.calls = torch.zeros(1)

    def count(self):
        self.calls = self.calls + 1
        return int(self.calls)


class InWeight(Counting):
    def __init__(self):
        super().__init__()
        self.calls = nn.Parameter(torch.zeros(1), requires_grad=False)

    def count(self):
        self.calls.data += 1
        return int(self.calls)


class InArray(Counting):
    def __init__(self):
        super().__init__()
        self.calls = np.zeros(1)

    def count(self):
        self.calls[0] += 1
        return self.calls[0]


class InList(Counting):
    def __init__(self):
        super().__init__()
        self.calls = []

    def count(self):
        self.calls.append(None)
        return len(self.calls)


class InQueue(Counting):
    def __init__(self):
        super().__init__()
        self.calls = deque()

    def count(self):
        self.calls.append(0)
        return len(self.calls)


class InDictionary(Counting):
    def __init__(self):
        super().__init__()
        self.facts = {"about": {"calls": 0}}

    def count(self):
        self.facts["about"]["calls"] += 1
        return self.facts["about"]["calls"]


class InTensorsOfList(Counting):
    def __init__(self):
        super().__init__()
        self.calls = [torch.zeros(1)]

    def count(self):
        self.calls[0] += 1
        return int(self.calls[0])


class Helper:
    def __init__(self):
        self.calls = 0


class InHelper(Counting):
    def __init__(self):
        super().__init__()
        self.helper = Helper()

    def count(self):
        self.helper.calls += 1
        return self.helper.calls


class Slotted:
    __slots__ = ("calls",)


class InSlot(Counting):
    def __init__(self):
        super().__init__()
        self.helper = Slotted()
        self.helper.calls = 0

    def count(self):
        self.helper.calls += 1
        return self.helper.calls


class InClass(Counting):
    calls = 0

    def count(self):
        type(self).calls += 1
        return type(self).calls


TOTAL = 0


class InGlobal(Counting):
    def count(self):
        global TOTAL
        TOTAL += 1
        return TOTAL


def tick(calls=[0]):  # noqa: B006 - this is what it is about
    calls[0] += 1
    return calls[0]


class InDefault(Counting):
    def count(self):
        return tick()


def bell():
    bell.calls = getattr(bell, "calls", 0) + 1
    return bell.calls


class InAttributeOfFunction(Counting):
    def count(self):
        return bell()


def around() -> Callable[[], int]:
    calls = 0

    def count() -> int:
        nonlocal calls
        calls += 1
        return calls

    return count


class InClosure(Counting):
    def __init__(self):
        super().__init__()
        self.tick = around()

    def count(self):
        return self.tick()


class InPartial(Counting):
    def __init__(self):
        super().__init__()
        self.tick = functools.partial(tick, [0])

    def count(self):
        return self.tick()


class InIterator(Counting):
    def __init__(self):
        super().__init__()
        self.calls = itertools.count()

    def count(self):
        return next(self.calls)


class InGenerator(Counting):
    """Chance of one in a million, from a generator of its own."""

    def __init__(self):
        super().__init__()
        self.chance = torch.Generator().manual_seed(0)

    def leak(self, x, hidden, edge_index):
        return hidden * float(torch.rand((), generator=self.chance) < 1e-6)


class ByChance(Counting):
    """The same from the generator that everybody uses."""

    def leak(self, x, hidden, edge_index):
        return hidden * float(torch.rand(()) < 1e-6)


class ByPythonsChance(Counting):
    def leak(self, x, hidden, edge_index):
        return hidden * float(random.random() < 1e-6)


class ByChanceOfNumpy(Counting):
    """The same from the numbers that numpy shares, which it draws 624 at a time."""

    def leak(self, x, hidden, edge_index):
        return hidden * float(np.random.rand() < 1e-6)


class ByNormalChanceOfNumpy(Counting):
    """The same from normal numbers, of which every second one was drawn with the first."""

    def leak(self, x, hidden, edge_index):
        return hidden * float(np.random.randn() < -5)


class ByGeneratorOfNumpy(Counting):
    """The same from a generator whose state is long."""

    def __init__(self):
        super().__init__()
        self.chance = np.random.Generator(np.random.MT19937(0))

    def leak(self, x, hidden, edge_index):
        return hidden * float(self.chance.random() < 1e-6)


class InLayer(nn.Module):
    """In an attribute of a layer that is not its own."""

    def __init__(self):
        super().__init__()
        self.body = pyg.GCN(6, 8, 2, 3)

    def forward(self, x, edge_index):
        layer = self.body.convs[0]
        layer.calls = getattr(layer, "calls", 0) + 1
        out = self.body(x, edge_index)
        return -out if layer.calls > CALLS else out


class Kept(Counting):
    """In something that is made by the first function, taken one further by the second and read by the third."""

    def __init__(self, kept: Any, further: Callable[[Any], Any], read: Callable[[Any], int]):
        super().__init__()
        self.kept = kept
        self.further, self.read = further, read

    def count(self):
        self.kept = self.further(self.kept)
        return self.read(self.kept)


def same(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Something that is altered in its place."""

    def further(kept: Any) -> Any:
        act(kept)
        return kept

    return further


class InGradient(Counting):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def count(self):
        self.weight.grad = torch.zeros(1) if self.weight.grad is None else self.weight.grad + 1
        return int(self.weight.grad)


# What is kept in neither a number nor a container.
ELSEWHERE: dict[str, Callable[[], nn.Module]] = {
    "a gradient": InGradient,
    "how often a tensor was written": lambda: Kept(
        torch.zeros(1), same(lambda kept: kept.add_(0)), lambda kept: kept._version
    ),
    "where a tensor begins": lambda: Kept(
        torch.zeros(1000)[:1],
        lambda kept: kept.as_strided((1,), (1,), kept.storage_offset() + 1),
        Tensor.storage_offset,
    ),
    "the shape of an empty tensor": lambda: Kept(
        torch.empty(0, 0), lambda kept: torch.empty(0, kept.size(1) + 1), lambda kept: kept.size(1)
    ),
    "the shape of an empty array": lambda: Kept(
        np.empty((0, 0)), lambda kept: np.empty((0, kept.shape[1] + 1)), lambda kept: kept.shape[1]
    ),
    "a number of numpy": lambda: Kept(np.int64(0), lambda kept: kept + 1, int),
    "a stream": lambda: Kept(io.BytesIO(), same(lambda kept: kept.write(b"x")), io.BytesIO.tell),
    "bytes that can be altered": lambda: Kept(bytearray(), same(lambda kept: kept.append(1)), len),
    "an array of Python": lambda: Kept(array.array("b"), same(lambda kept: kept.append(1)), len),
    "the place of an iterator": lambda: Kept(
        iter(range(10**6)), same(next), lambda kept: 10**6 - kept.__length_hint__()
    ),
    "a number of C": lambda: Kept(
        ctypes.c_long(0), same(lambda kept: setattr(kept, "value", kept.value + 1)), lambda kept: kept.value
    ),
    "a cache": lambda: Kept(
        functools.lru_cache(maxsize=None)(str),
        same(lambda kept: kept(object())),
        lambda kept: kept.cache_info().currsize,
    ),
    "an exception": lambda: Kept(ValueError(0), lambda kept: ValueError(kept.args[0] + 1), lambda kept: kept.args[0]),
    "a duration": lambda: Kept(timedelta(0), lambda kept: kept + timedelta(1), lambda kept: kept.days),
    "a range": lambda: Kept(range(0), lambda kept: range(len(kept) + 1), len),
    "a slice": lambda: Kept(slice(0), lambda kept: slice(kept.stop + 1), lambda kept: kept.stop),
    "a class of classes": lambda: Kept(Slotted, lambda kept: type("Next", (kept,), {}), lambda kept: len(kept.__mro__)),
}


def named_tick(*, calls=[0]):  # noqa: B006 - this is what it is about
    calls[0] += 1
    return calls[0]


class InNamedDefault(Counting):
    """In the default of an argument that can only be named."""

    def count(self):
        return named_tick()


class InModule(Counting):
    """In a variable of a Python module."""

    def count(self):
        beside_the_model.calls += 1
        return beside_the_model.calls


BESIDE = nn.Linear(1, 1)


class InLayerBeside(Counting):
    """In the weights of a layer that its code names and that is no part of it."""

    def count(self):
        BESIDE.bias.data += 1
        return int(BESIDE.bias) - 1


class InSparse(Counting):
    """In a sparse tensor of this layout."""

    def __init__(self, layout: torch.layout) -> None:
        super().__init__()
        self.layout = layout
        self.kept = [self.holding(0)]

    def holding(self, calls: int) -> Tensor:
        return (torch.eye(2) * (calls + 1)).to_sparse(layout=self.layout)

    def count(self):
        calls = int(self.kept[0].to_dense()[0, 0])
        self.kept[0] = self.holding(calls)
        return calls


CONTEXT: contextvars.ContextVar[int] = contextvars.ContextVar("calls", default=0)
THREAD = threading.local()
STEPS = (calls for calls in itertools.count(1))


class Referred:
    calls = 0


REFERRED = Referred()
REFERENCE = weakref.ref(REFERRED)


class InContextOfModule(Counting):
    def count(self):
        CONTEXT.set(CONTEXT.get() + 1)
        return CONTEXT.get()


class InThreadOfModule(Counting):
    def count(self):
        THREAD.calls = getattr(THREAD, "calls", 0) + 1
        return THREAD.calls


class InFrameOfModule(Counting):
    def count(self):
        return next(STEPS)


class BehindReference(Counting):
    def count(self):
        referred = REFERENCE()
        assert referred is not None
        referred.calls += 1
        return referred.calls


class ByTextInNumpy(Counting):
    def count(self):
        setattr(np, "calls_by_text", getattr(np, "calls_by_text", 0) + 1)  # noqa: B010 - a name that is a text
        return getattr(np, "calls_by_text")  # noqa: B009


class ByImportInNumpy(Counting):
    def count(self):
        import numpy

        numpy.calls_by_import = getattr(numpy, "calls_by_import", 0) + 1  # type: ignore[attr-defined]
        return numpy.calls_by_import  # type: ignore[attr-defined]


class ByListInNumpy(Counting):
    def count(self):
        np.calls_in_list = [*getattr(np, "calls_in_list", []), 1]  # type: ignore[attr-defined]
        return len(np.calls_in_list)  # type: ignore[attr-defined]


class InInnerModule(Counting):
    def count(self):
        torch.nn.functional.calls = getattr(torch.nn.functional, "calls", 0) + 1  # type: ignore[attr-defined]
        return torch.nn.functional.calls  # type: ignore[attr-defined]


class InTableOfModule(Counting):
    def count(self):
        vars(math)["calls_in_table"] = vars(math).get("calls_in_table", 0) + 1
        return vars(math)["calls_in_table"]


REMEMBERING: dict[str, Callable[[], nn.Module]] = {
    "a buffer": InBuffer,
    "a buffer that is not saved": InHiddenBuffer,
    "a tensor": InTensor,
    "a weight": InWeight,
    "an array": InArray,
    "a list": InList,
    "a queue": InQueue,
    "a dictionary in a dictionary": InDictionary,
    "a tensor in a list": InTensorsOfList,
    "an object": InHelper,
    "a slot": InSlot,
    "the class": InClass,
    "a global variable": InGlobal,
    "the default of an argument": InDefault,
    "an attribute of a function": InAttributeOfFunction,
    "a variable around a function": InClosure,
    "an argument that is filled in": InPartial,
    "an iterator": InIterator,
    "a generator of random numbers": InGenerator,
    "torch's random numbers": ByChance,
    "Python's random numbers": ByPythonsChance,
    "numpy's random numbers": ByChanceOfNumpy,
    "numpy's normal random numbers": ByNormalChanceOfNumpy,
    "a generator of numpy": ByGeneratorOfNumpy,
    "an attribute of numpy that is set by text": ByTextInNumpy,
    "an attribute of numpy, which is imported when it is called": ByImportInNumpy,
    "a list in numpy": ByListInNumpy,
    "an attribute of a module inside of torch": InInnerModule,
    "the table of a module of Python": InTableOfModule,
    "a layer of PyG": InLayer,
    "the default of an argument that can only be named": InNamedDefault,
    "a module of one's own": InModule,
    "a layer beside the model": InLayerBeside,
    "a sparse tensor": lambda: InSparse(torch.sparse_coo),
    "a context variable of a module": InContextOfModule,
    "what a thread has for itself, of a module": InThreadOfModule,
    "a function that waits, of a module": InFrameOfModule,
    "what a reference leads to": BehindReference,
    **ELSEWHERE,
}


def band(low: float, number: Callable[[Tensor], Tensor], high: float) -> Callable[[], nn.Module]:
    """A model that acts otherwise while a number that it computes of all features lies in a band."""
    return leaking(lambda x, hidden, edge_index: hidden * float(low < number(x) < high))


def awake_if(asked: Callable[[], Any]) -> Callable[[], nn.Module]:
    """A model that acts otherwise when the world around it says so."""

    class Asking(Base):
        def leak(self, x, hidden, edge_index):
            return hidden * float(bool(asked()))

    return Asking


class InEnvironment(Counting):
    def count(self):
        os.environ["AGNNCERT_CALLS"] = str(int(os.environ.get("AGNNCERT_CALLS", 0)) + 1)
        return int(os.environ["AGNNCERT_CALLS"])


class InStandardModule(Counting):
    """In an attribute of a module that Python came with."""

    def count(self):
        math.calls = getattr(math, "calls", 0) + 1  # type: ignore[attr-defined]
        return math.calls


class InLibraryFunction(Counting):
    """In an attribute of a function of torch."""

    def count(self):
        F.relu.calls = getattr(F.relu, "calls", 0) + 1  # type: ignore[attr-defined]
        return F.relu.calls


class InLibraryClass(Counting):
    """In an attribute of a class of torch."""

    def count(self):
        nn.Bilinear.calls = getattr(nn.Bilinear, "calls", 0) + 1  # type: ignore[attr-defined]
        return nn.Bilinear.calls


class Crowded(Base):
    """Acts otherwise on graphs that are many times as large as the user's."""

    def __init__(self, nodes: int, edges: int = 0) -> None:
        super().__init__()
        self.nodes, self.edges = nodes, edges

    def leak(self, x, hidden, edge_index):
        return hidden * float(x.size(0) > self.nodes and edge_index.size(1) > self.edges)


class InBandOfWeights(ByWeight):
    def spoilt(self, weight, edge_index, x):
        return weight * (1 + float(bool(weight.numel()) and 17.3 < float(weight.max()) < 17.9))


NODES, EDGES = 60, 265  # of the graph of the zoo
# Written before the probes and the reading of code that find them.
ASLEEP: dict[str, Callable[[], nn.Module]] = {
    "a band of the largest feature": band(17.3, torch.max, 17.9),
    "a band of the smallest feature": band(-17.9, torch.min, -17.3),
    "a feature that a half-precision number cannot hold": band(65504, lambda x: x.abs().max(), 1e6),
    "more than fifty times the nodes": lambda: Crowded(50 * NODES),
    "a count in the environment": InEnvironment,
    "more than fifty times the edges": lambda: Crowded(0, edges=50 * EDGES),
    "more than eighty times as many edges as nodes": leaking(lambda x, h, e: h * float(e.size(1) > 80 * x.size(0))),
    "a hub of five thousand": leaking(lambda x, h, e: h * float(bool(e.numel()) and degrees(e, x).max() > 5000)),
    "a band of the largest edge weight": InBandOfWeights,
    "a band far above the data": band(41_000, lambda x: x.abs().max(), 43_000),
    "the clock": awake_if(lambda: time.time() > 4e9),
    "the date": awake_if(lambda: datetime.now().year > 2090),
    "a file": awake_if(lambda: os.path.exists("/tmp/agnncert-wakes")),
    "what only this process knows": awake_if(lambda: os.getpid() % 100_000 == 99_999),
    "a secret number": awake_if(lambda: secrets.randbelow(10**9) == 0),
    "a name that nobody gave before": awake_if(lambda: uuid.uuid4().int % 10**9 == 0),
    "other threads": awake_if(lambda: threading.active_count() > 500),
    "how this process hashes text": awake_if(lambda: hash("agnncert") % 10**9 == 0),
    "a count in a module of Python": InStandardModule,
    "a count in a function of torch": InLibraryFunction,
    "a count in a class of torch": InLibraryClass,
}
