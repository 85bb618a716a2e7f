"""How a module is called: what its ``forward`` takes, what it must return, and which ballots follow from its logits."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import AgnncertError, DivisionError, GraphError, ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, Task
from agnncert.voting.first_call import reason, require_model, require_signature, tell
from agnncert.voting.lazy_rows import IN_CACHE, LazyRows, Shake
from agnncert.voting.messages import InBlocks

Ballots = tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]  # the classes voted for, and whether each is stable


MANY_EDGES = 2**16  # whose messages are worth summing in blocks
MAIN_MEMORY = torch.device("cpu")


@dataclass(frozen=True)
class Caller:
    """A model bound to one kind of graph: casts inputs to its type and passes the edge values it asks for.

    Graphs stay in main memory: what one call needs travels to the model's ``device``, and its logits come back.

    ``strictness`` is for comparisons with another machine: 1 asks a little more of a stable ballot, -1 a little less.

    A model gets copies of its own. One that writes into its inputs (``x.relu_()``, ``edge_weight.data.clamp_()``) would
    else alter the graph for every later call, and the user's data with it; such writes leave no trace to look for.
    """

    model: Callable[..., Any]
    task: Task
    takes: tuple[str, ...]
    dtype: torch.dtype
    num_classes: int
    strictness: int = 0
    takes_size: bool = False  # graph task: batch_size, the number of graphs
    device: torch.device = MAIN_MEMORY
    copies: bool = True  # False: inputs were made for one call, and nobody looks at them afterwards
    _shaken: "dict[Shake, Caller]" = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(
        self, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None = None
    ) -> Tensor:
        """Logits, one row per node or, in the graph task, per graph of ``batch``."""
        logits = self.run(x, edge_index, values, batch)
        rows = x.size(0) if batch is None else int(batch[-1]) + 1
        if logits.shape != (rows, self.num_classes):
            raise ModelContractError(
                f"the model returned shape {tuple(logits.shape)} for {rows} {self.task}(s), after {self.num_classes} "
                f"classes before: expected [{rows}, {self.num_classes}]."
            )
        return logits

    def run(self, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None) -> Tensor:
        """Calls the model; what it returns is not checked.

        Raises:
            ModelContractError: The model failed.
        """
        copy = self.copies
        extra = {name: _floats_as(self.dtype, values[name]).to(self.device, copy=copy) for name in self.takes}
        sized = {"batch_size": int(batch[-1]) + 1} if self.takes_size and batch is not None else {}
        rows = x.on(self.device) if isinstance(x, LazyRows) else x.to(self.device, copy=copy)
        inputs = [rows, edge_index.to(self.device, torch.int64, copy=copy)]
        inputs += [] if batch is None else [batch.to(self.device, copy=copy)]
        try:
            with InBlocks() if edge_index.size(1) >= MANY_EDGES and not torch.is_grad_enabled() else nullcontext():
                logits = self.model(*inputs, **extra, **sized)
            return logits.to("cpu") if isinstance(logits, Tensor) else logits
        except (AgnncertError, MemoryError):
            raise
        except SystemExit as error:  # else a command would end here, perhaps with the status of success
            raise ModelContractError(f"the model ends the program (sys.exit({error.code!r}) in forward).") from error
        except Exception as error:
            raise ModelContractError(
                f"the model failed on a graph of {x.size(0)} nodes and {edge_index.size(1)} edges: {tell(error)} "
                "It must accept every graph that an attacker may make of the data: any features (not only codes that "
                "it knows), and as few edges as none at all."
            ) from error

    def shaken(self, shake: Shake, shaken_model: Callable[[Any, Shake], Any]) -> "Caller":
        """The same with a shaken model, which is made once."""
        if shake not in self._shaken:
            self._shaken[shake] = replace(self, model=shaken_model(self.model, shake))
        return self._shaken[shake]

    def edge_values(self, graph: Data, edge: Tensor | None = None) -> dict[str, Tensor]:
        """The edge values that the model takes, of all edges or of some."""
        for name in self.takes:
            if name not in graph:
                raise DivisionError(
                    f"subgraph() left out {name}, which the graph has and the model takes: pass on that "
                    "of the edges it keeps."
                )
        return {name: graph[name] if edge is None else graph[name].index_select(0, edge) for name in self.takes}


def no_edges(graph: Data, takes: tuple[str, ...]) -> tuple[Tensor, dict[str, Tensor]]:
    """An empty edge list and the edge values that go with it."""
    return torch.empty(2, 0, dtype=torch.int64), {name: graph[name][:0] for name in takes}


def bind(model: Callable[..., Any], graph: Data, task: Task, tried: Caller | None = None) -> Caller:
    """Tries the model on one node of the (canonical) graph, and explains what does not fit.

    Args:
        model: The module.
        graph: The graph.
        task: "node" or "graph".
        tried: The model as it was bound to other rows of the same data, and called: it is not tried a second time.

    Raises:
        ModelContractError: The module cannot be called as documented, or returns something else than logits.
        GraphError: The graph has numbers that the model's type cannot hold.
    """
    if tried is not None:
        _require_held(graph, tried.takes, tried.dtype)
        return replace(tried)
    require_model(model)
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    names = _parameter_names(forward)
    takes = tuple(name for name in EDGE_VALUES if name in names and name in graph)
    dtype, device = _dtype_and_device(model, graph.x)
    sized = task == "graph" and "batch_size" in names
    require_signature(forward, graph, task, (*takes, *(["batch_size"] if sized else [])))
    _require_held(graph, takes, dtype)
    none, no_values = no_edges(graph, takes)
    batch = torch.zeros(1, dtype=torch.int64) if task == "graph" else None
    x = graph.x[:1].to(dtype)
    caller = Caller(model, task, takes, dtype, num_classes=0, takes_size=sized, device=device)
    signature = "x, edge_index, batch" if task == "graph" else "x, edge_index"
    try:
        with torch.no_grad():
            logits = caller.run(x, none, no_values, batch)
    except ModelContractError as error:
        if isinstance(error.__cause__, SystemExit):
            raise
        told = reason(model, error.__cause__ or error, graph.x.size(1), _runs_on_two(caller, graph))
        raise ModelContractError(
            f"model({signature}) failed on a single node without edges, with {dtype} x of shape "
            f"[1, {graph.x.size(1)}]: {told}"
        ) from error
    expected = f"logits of shape [num_{'graphs' if task == 'graph' else 'nodes'}, num_classes]"
    if not isinstance(logits, Tensor) or logits.dim() != 2 or logits.size(0) != 1 or not logits.is_floating_point():
        result = f"shape {tuple(logits.shape)}, {logits.dtype}" if isinstance(logits, Tensor) else type(logits).__name__
        if isinstance(logits, Tensor):
            whole = not logits.is_floating_point()
            hint = " Return scores instead of classes." if whole else _TWO_CLASSES if logits.shape == (1,) else ""
        else:
            hint = " Return the logits alone." if logits is not None else ""
        raise ModelContractError(f"model({signature}) returned {result} for one {task}, expected {expected}.{hint}")
    if logits.size(1) < 2:
        raise ModelContractError(
            f"the model has {logits.size(1)} output class; a vote needs {expected} with at least two.{_TWO_CLASSES}"
        )
    return Caller(model, task, takes, dtype, int(logits.size(1)), takes_size=sized, device=device)


def _require_held(graph: Data, takes: tuple[str, ...], dtype: torch.dtype) -> None:
    """Refuses numbers that the model's type cannot hold."""
    for name in ("x", *takes):
        if graph[name].dtype == dtype:
            continue  # that it is finite was checked when the graph was
        if not bool(torch.isfinite(_floats_as(dtype, graph[name])).all()):
            raise GraphError(
                f"{name} has numbers that the model's type, {dtype}, cannot hold: scale them, or use model.double()."
            )


_TWO_CLASSES = " Two classes from one score s are torch.stack([-s, s], dim=-1)."


@torch.no_grad()
def _runs_on_two(caller: Caller, graph: Data) -> bool:
    """Whether a model that failed on one node can be run on two that are joined."""
    x = graph.x[:1].to(caller.dtype).repeat(2, 1)
    values = {name: graph[name][:1].repeat(2, *[1] * (graph[name].dim() - 1)) for name in caller.takes}
    batch = torch.zeros(2, dtype=torch.int64) if caller.task == "graph" else None
    try:
        caller.run(x, torch.tensor([[0, 1], [1, 0]]), values, batch)
    except Exception:
        return False
    return True


def judge(logits: Tensor, tolerance: float, deviation: Tensor | None = None, strictness: int = 0) -> Ballots:
    """The class each row votes for, and whether the vote is beyond numerical doubt.

    A vote is stable when the best class leads the next by more than twice the distance that two ways of computing the
    same logits can lie apart: the tolerance (relative to the largest logit of the row, absolute below 1), or the
    deviation of that row if it is larger. Machines may disagree by 4 units of rounding about the former and by an
    eighth about the latter: ``strictness`` moves both by as much.
    """
    votes = [np.empty(0, dtype=np.int16)]
    sure = [np.empty(0, dtype=bool)]
    for part in row_blocks(logits):
        block = logits[part]
        best, ballot = block.max(dim=1)
        runner_up = block.scatter(1, ballot[:, None], -torch.inf).amax(dim=1)
        scale = row_scale(block)
        # Comparisons with NaN are false: a logit that is not finite is never stable.
        apart = (tolerance + strictness * 4 * torch.finfo(logits.dtype).eps) * scale
        if deviation is not None:
            apart = torch.maximum(apart, (1 + strictness / 8) * deviation[part])
        votes.append(ballot.numpy().astype(np.int16))
        sure.append(((best - runner_up > 2 * apart) & torch.isfinite(scale)).numpy())
    return np.concatenate(votes), np.concatenate(sure)


def row_blocks(logits: Tensor) -> Iterator[slice]:
    """The rows in blocks that stay in the processor's cache."""
    step = max(1, IN_CACHE // max(1, logits.size(1)))
    return (slice(first, first + step) for first in range(0, logits.size(0), step))


def row_scale(logits: Tensor) -> Tensor:
    """The size of the numbers in each row, 1 at least: what errors of rounding are in proportion to."""
    return logits.abs().amax(dim=1).clamp(min=1.0)


def _parameter_names(forward: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(forward).parameters)
    except (TypeError, ValueError):
        return set()


def _floats_as(dtype: torch.dtype, value: Tensor) -> Tensor:
    return value.to(dtype) if value.is_floating_point() else value


def _dtype_and_device(model: Callable[..., Any], x: Tensor) -> tuple[torch.dtype, torch.device]:
    if not isinstance(model, torch.nn.Module):
        return x.dtype, x.device
    first: tuple[str, torch.device] | None = None
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if torch.nn.parameter.is_lazy(tensor):
            raise ModelContractError(
                f"parameter {name} is not initialised yet: run the model once on the training graph first."
            )
        if tensor.is_meta:
            raise ModelContractError(
                f"the model has {name} on the meta device, so it has no weights: build it anew, or give it memory "
                "(model.to_empty(device='cpu')), and load its weights."
            )
        first = first or (name, tensor.device)
        if tensor.device != first[1]:
            raise ModelContractError(
                f"the model has {first[0]} on {first[1]} and {name} on {tensor.device}: bring it to one device, e.g. "
                f"model.to('{first[1]}'). (The graph may be anywhere: what is needed travels.)"
            )
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), x.dtype)
    return dtype, x.device if first is None else first[1]
