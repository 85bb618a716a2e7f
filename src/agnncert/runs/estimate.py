"""How long will it take, and how much memory? Told from one plain forward pass and the size of the union."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data

from agnncert.division import Division
from agnncert.engines import fast
from agnncert.engines.call import Caller, bind
from agnncert.graph import canonical, canonical_set, infer_task, target_rows

_LIVE_TENSORS = 12  # of a hidden layer's size that exist at once, about
_BACKWARD = 3  # a training step costs as much as this many forward passes


@dataclass(frozen=True)
class Estimate:
    """What a piece of work is expected to take.

    Attributes:
        seconds: Time.
        megabytes: Memory of the whole process.
    """

    seconds: float
    megabytes: int

    def __str__(self) -> str:
        return f"about {duration(self.seconds)} and {self.megabytes / 1000:.1f} GB of memory"


@torch.no_grad()
def estimate(
    model: Any, data: Any, division: Division | None, targets: Any = None, epochs: int = 0, looks: int = 0
) -> Estimate:
    """What certifying takes or, with ``epochs``, training with so many looks at the validation set."""
    task = infer_task(data)
    if task == "graph":
        rows = target_rows(targets, len(data))
        graph = canonical_set([data[int(k)] for k in rows])
    else:
        graph = canonical(data)
        rows = target_rows(targets, graph.num_nodes)
    call = bind(model.eval(), graph, task)
    copies = arcs = 0
    if division is not None and hasattr(division, "pieces"):
        pieces = fast.plan(graph, division, rows if task == "node" else None, call.dtype).pieces
        copies, arcs = len(pieces.cell), pieces.edge_index.size(1)
    forward = min(_seconds(call, graph) for _ in range(2))  # the first pass also warms up
    # A pass costs about as much for every edge as for every node, in the graph as in the union of its parts.
    vote = forward * (1 + (copies + arcs) / max(1, graph.num_nodes + graph.num_edges))
    seconds = vote if not epochs else epochs * _BACKWARD * (forward + vote) + looks * vote
    return Estimate(seconds, _memory(model, graph, copies, bool(epochs)))


def _seconds(call: Caller, graph: Data) -> float:
    begin = time.perf_counter()
    call(graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph), graph.get("batch"))
    return time.perf_counter() - begin


def duration(seconds: float) -> str:
    """A time in words.

    Example:
        >>> duration(0.4), duration(75), duration(7300)
        ('1 s', '1 min 15 s', '2 h 2 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _memory(model: Any, graph: Any, copies: int, training: bool) -> int:
    width = max([1, *(max(p.shape, default=1) for p in model.parameters() if p.numel() < graph.x.numel())])
    rows = max(graph.num_nodes, copies if training and "batch" in graph else min(copies, fast.CHUNK_ROWS))
    hidden = 4 * min(width, 1024) * rows * _LIVE_TENSORS
    return int((_resident() + 8 * graph.x.numel() + hidden + 64 * copies) // 1_000_000)


def _resident() -> int:
    """Bytes that this process has taken so far."""
    try:
        import resource
        import sys
    except ImportError:  # not on Windows
        return 500_000_000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
