"""``ModelAdapter``: a user's model behind one calling convention, and ``bind``, which makes it."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from agnncert.engine.arguments import require_model
from agnncert.engine.blocks import InBlocks
from agnncert.engine.explanations import describe_error, explain_failure, require_signature
from agnncert.engine.features import LazyRows
from agnncert.engine.rounding_noise import RoundingNoise
from agnncert.errors import AgnncertError, DivisionError, GraphError, ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, Task

MANY_EDGES = 2**16  # whose messages are worth summing in blocks
MAIN_MEMORY = torch.device("cpu")


@dataclass(frozen=True)
class ModelAdapter:
    """A model bound to one kind of graph: casts inputs to its type and passes the edge values it asks for.

    Graphs stay in main memory: what one call needs travels to the model's ``device``, and its logits come back.

    ``strictness`` is for comparisons with another machine: 1 asks a little more of a stable vote, -1 a little less.

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
    _noisy: "dict[RoundingNoise, ModelAdapter]" = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(
        self, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None = None
    ) -> Tensor:
        """Logits, one row per node or, in the graph task, per graph of ``batch``."""
        rows = x.size(0) if batch is None else int(batch[-1]) + 1
        logits = self.run(x, edge_index, values, batch)
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
                f"the model failed on a graph of {x.size(0)} nodes and {edge_index.size(1)} edges: "
                f"{describe_error(error)} It must accept every graph that an attacker may make of the data: any "
                "features (not only codes that it knows), and as few edges as none at all."
            ) from error

    def with_noise(self, noise: RoundingNoise, model_with_noise: Callable[[Any, RoundingNoise], Any]) -> "ModelAdapter":
        """The same with a shaken model, which is made once."""
        if noise not in self._noisy:
            self._noisy[noise] = replace(self, model=model_with_noise(self.model, noise))
        return self._noisy[noise]

    def edge_values(self, graph: CanonicalGraph, edge: Tensor | None = None) -> dict[str, Tensor]:
        """The edge values that the model takes, of all edges or of some."""
        if not isinstance(graph, CanonicalGraph):
            raise DivisionError(
                f"subgraph() returned a {type(graph).__name__}: expected a CanonicalGraph, such as "
                "graph.with_edges(groups == index)."
            )
        values: dict[str, Any] = {name: getattr(graph, name) for name in self.takes}
        for name, value in values.items():
            if value is None:
                raise DivisionError(
                    f"subgraph() left out {name}, which the graph has and the model takes: graph.with_edges(mask) "
                    "keeps the values of the edges that it keeps."
                )
        return values if edge is None else {name: value.index_select(0, edge) for name, value in values.items()}


def no_edges(graph: CanonicalGraph, takes: tuple[str, ...]) -> tuple[Tensor, dict[str, Tensor]]:
    """An empty edge list and the edge values that go with it."""
    return torch.empty(2, 0, dtype=torch.int64), {name: getattr(graph, name)[:0] for name in takes}


def bind(
    model: Callable[..., Any], graph: CanonicalGraph, task: Task, tried: ModelAdapter | None = None
) -> ModelAdapter:
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
    takes = tuple(name for name in EDGE_VALUES if name in names and getattr(graph, name) is not None)
    dtype, device = _dtype_and_device(model, graph.x)
    sized = task == "graph" and "batch_size" in names
    require_signature(forward, graph, task, (*takes, *(["batch_size"] if sized else [])))
    _require_held(graph, takes, dtype)
    none, no_values = no_edges(graph, takes)
    batch = torch.zeros(1, dtype=torch.int64) if task == "graph" else None
    x = graph.x[:1].to(dtype)
    caller = ModelAdapter(model, task, takes, dtype, num_classes=0, takes_size=sized, device=device)
    signature = "x, edge_index, batch" if task == "graph" else "x, edge_index"
    try:
        with torch.no_grad():
            logits = caller.run(x, none, no_values, batch)
    except ModelContractError as error:
        if isinstance(error.__cause__, SystemExit):
            raise
        told = explain_failure(model, error.__cause__ or error, graph.x.size(1), _runs_on_two(caller, graph))
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
    return ModelAdapter(model, task, takes, dtype, int(logits.size(1)), takes_size=sized, device=device)


def _require_held(graph: CanonicalGraph, takes: tuple[str, ...], dtype: torch.dtype) -> None:
    """Refuses numbers that the model's type cannot hold."""
    for name in ("x", *takes):
        value: Tensor = getattr(graph, name)
        if value.dtype == dtype:
            continue  # that it is finite was checked when the graph was
        if not bool(torch.isfinite(_floats_as(dtype, value)).all()):
            raise GraphError(
                f"{name} has numbers that the model's type, {dtype}, cannot hold: scale them, or use model.double()."
            )


_TWO_CLASSES = " Two classes from one score s are torch.stack([-s, s], dim=-1)."


@torch.no_grad()
def _runs_on_two(caller: ModelAdapter, graph: CanonicalGraph) -> bool:
    """Whether a model that failed on one node can be run on two that are joined."""
    x = graph.x[:1].to(caller.dtype).repeat(2, 1)
    values = {name: value[:1].repeat(2, *[1] * (value.dim() - 1)) for name, value in caller.edge_values(graph).items()}
    batch = torch.zeros(2, dtype=torch.int64) if caller.task == "graph" else None
    try:
        caller.run(x, torch.tensor([[0, 1], [1, 0]]), values, batch)
    except Exception:
        return False
    return True


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
