"""``ModelAdapter``: a user's model behind one calling convention, and ``bind``, which makes it."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from agnncert.engine.arguments import require_model
from agnncert.engine.blocks import InBlocks
from agnncert.engine.explanations import (
    describe_error,
    explain_failure,
    explain_result,
    require_signature,
    takes_one_graph,
)
from agnncert.engine.features import LazyRows
from agnncert.engine.rounding_noise import RoundingNoise
from agnncert.errors import AgnncertError, DivisionError, GraphError, ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, Task

MANY_EDGES = 2**16  # edges from which on it is worth summing messages in blocks
MAIN_MEMORY = torch.device("cpu")


@dataclass(frozen=True)
class ModelAdapter:
    """A model bound to one kind of graph: converts inputs to its type and passes the edge values that it takes.

    Graphs stay in main memory: what one call needs travels to the model's ``device``, and its logits come back.

    A model gets copies of its own. One that writes into its inputs (``x.relu_()``, ``edge_weight.data.clamp_()``) would
    otherwise alter the graph for every later call, and the user's data with it; such writes leave no trace to look for.

    Attributes:
        model: The module or function.
        task: "node" or "graph".
        edge_inputs: Names of the edge values that the model takes, out of ``EDGE_VALUES``.
        dtype: Type of the model's weights.
        num_classes: Number of columns of its logits.
        strictness: For comparisons with another machine: 1 asks a little more of a stable vote, -1 a little less.
        graph_by_graph: Graph task: whether the model takes one graph, ``model(x, edge_index)``, and is called for each.
        takes_batch_size: Graph task: whether the model takes ``batch_size``, the number of graphs.
        device: Where the model is.
        copy_inputs: ``False`` if inputs were made for one call, and nobody looks at them afterwards.
        rounding: How votes are decided (``exact_votes``): ``"watched"`` unless rounding is bounded.
        bounded: What ``exact_votes`` has derived from the model, by type.
    """

    model: Callable[..., Any]
    task: Task
    edge_inputs: tuple[str, ...]
    dtype: torch.dtype
    num_classes: int
    strictness: int = 0
    takes_batch_size: bool = False
    graph_by_graph: bool = False
    device: torch.device = MAIN_MEMORY
    copy_inputs: bool = True
    rounding: Literal["float32", "float64", "watched"] = "watched"
    bounded: dict[torch.dtype, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _noisy: "dict[RoundingNoise, ModelAdapter]" = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(
        self, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None = None
    ) -> Tensor:
        """Returns the logits, one row per node or, in the graph task, per graph of ``batch``.

        Args:
            x: Features.
            edge_index: Edges.
            values: What the edges carry, by name; it has at least ``edge_inputs``.
            batch: Graph task: the graph of every node, ascending.

        Raises:
            ModelContractError: The model failed, or its logits have another shape.
        """
        rows = x.size(0) if batch is None else int(batch[-1]) + 1
        logits = self.run(x, edge_index, values, batch)
        if logits.shape != (rows, self.num_classes):
            raise ModelContractError(
                f"the model returned shape {tuple(logits.shape)} for {rows} {self.task}(s), after {self.num_classes} "
                f"classes before: expected [{rows}, {self.num_classes}]."
            )
        return logits

    def run(self, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None) -> Tensor:
        """Calls the model; what it returns is not checked. The arguments are those of a call.

        Raises:
            ModelContractError: The model failed.
        """
        if self.graph_by_graph and batch is not None:
            return self._run_graph_by_graph(x, edge_index, values, batch)
        rows = x.on(self.device) if isinstance(x, LazyRows) else self._sent(x)
        inputs = [rows, edge_index.to(self.device, torch.int64, copy=self.copy_inputs)]
        if batch is not None:
            inputs.append(self._sent(batch))
        named: dict[str, Any] = {name: self._sent(_floats_as(self.dtype, values[name])) for name in self.edge_inputs}
        if self.takes_batch_size and batch is not None:
            named["batch_size"] = int(batch[-1]) + 1
        try:
            with _in_full_precision(self.device), _in_blocks(edge_index.size(1)):
                logits = self.model(*inputs, **named)
            return logits.to("cpu") if isinstance(logits, Tensor) else logits
        except (AgnncertError, MemoryError):
            raise
        except SystemExit as error:  # otherwise a command would end here, perhaps with the status of success
            raise ModelContractError(f"the model ends the program (sys.exit({error.code!r}) in forward).") from error
        except Exception as error:
            raise ModelContractError(
                f"the model failed on a graph of {x.size(0)} nodes and {edge_index.size(1)} edges: "
                f"{describe_error(error)} It must accept every graph that an attacker may make of the data: any "
                "features (not only codes that it knows), and as few edges as none at all."
            ) from error

    def _run_graph_by_graph(self, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor) -> Tensor:
        """Returns the logits of each graph of a batch, which are evaluated one after the other."""
        first_node = torch.searchsorted(batch, torch.arange(int(batch[-1]) + 2))
        graph_of_edge = batch[edge_index[1]]
        logits = []
        for number in range(int(batch[-1]) + 1):
            start, end = int(first_node[number]), int(first_node[number + 1])
            inside = (graph_of_edge == number).nonzero().view(-1)
            own_values = {name: values[name].index_select(0, inside) for name in self.edge_inputs}
            own = self.run(x[start:end], edge_index.index_select(1, inside) - start, own_values, None)
            logits.append(_of_one_graph(own, end - start))
        return torch.cat(logits)

    def _sent(self, value: Tensor) -> Tensor:
        return value.to(self.device, copy=self.copy_inputs)

    def with_noise(self, noise: RoundingNoise, model_with_noise: Callable[[Any, RoundingNoise], Any]) -> "ModelAdapter":
        """Returns the same adapter of a noisy model, which is made once.

        Args:
            noise: The rounding noise.
            model_with_noise: Makes a noisy model from a model.
        """
        if noise not in self._noisy:
            self._noisy[noise] = replace(self, model=model_with_noise(self.model, noise))
        return self._noisy[noise]

    def edge_values(self, graph: CanonicalGraph, edge: Tensor | None = None) -> dict[str, Tensor]:
        """Returns the edge values that the model takes, by name.

        Args:
            graph: The graph, or a subgraph that a division made.
            edge: Positions of the edges whose values are wanted. Defaults to all edges.

        Raises:
            DivisionError: The subgraph is none, or it has lost values that the graph has.
        """
        if not isinstance(graph, CanonicalGraph):
            raise DivisionError(
                f"subgraph() returned a {type(graph).__name__}: expected a CanonicalGraph, such as "
                "graph.with_edges(groups == index)."
            )
        values: dict[str, Tensor] = {}
        for name in self.edge_inputs:
            value = getattr(graph, name)
            if value is None:
                raise DivisionError(
                    f"subgraph() left out {name}, which the graph has and the model takes: graph.with_edges(mask) "
                    "keeps the values of the edges that it keeps."
                )
            values[name] = value if edge is None else value.index_select(0, edge)
        return values


def _of_one_graph(logits: object, num_nodes: int) -> Tensor:
    """Returns the logits of a model that was given one graph, or raises ModelContractError if they are none."""
    if isinstance(logits, Tensor) and logits.dim() == 2 and logits.size(0) == 1:
        return logits
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    raise ModelContractError(
        f"model(x, edge_index) returned {shape} for one graph of {num_nodes} nodes, expected [1, num_classes]: "
        "a model of nodes, which takes no batch; but a list of Data means that graphs are classified. Pass one Data to "
        "classify its nodes, or pool over batch."
    )


def _in_full_precision(device: torch.device) -> AbstractContextManager[Any]:
    """Returns a context without ``torch.autocast``: what is said about rounding is about the types of the weights."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def _in_blocks(num_edges: int) -> AbstractContextManager[Any]:
    """Returns a context in which messages along many edges are summed in blocks, if no gradient is asked for."""
    if num_edges >= MANY_EDGES and not torch.is_grad_enabled():
        return InBlocks()
    return nullcontext()


def no_edges(graph: CanonicalGraph, edge_inputs: tuple[str, ...]) -> tuple[Tensor, dict[str, Tensor]]:
    """Returns an empty edge list, and the empty edge values that go with it."""
    return torch.empty(2, 0, dtype=torch.int64), {name: getattr(graph, name)[:0] for name in edge_inputs}


def bind(
    model: Callable[..., Any], graph: CanonicalGraph, task: Task, bound_before: ModelAdapter | None = None
) -> ModelAdapter:
    """Binds a model to a canonical graph: tries it on one node, and explains what does not fit.

    Args:
        model: The module or function.
        graph: The graph.
        task: "node" or "graph".
        bound_before: The model as it was bound to other rows of the same data, and called. It is not tried again then.

    Raises:
        ModelContractError: The model cannot be called as documented, or returns something else than logits.
        GraphError: The graph has numbers that the model's type cannot hold.
    """
    if bound_before is not None:
        _require_held(graph, bound_before.edge_inputs, bound_before.dtype)
        return replace(bound_before)
    untried = _untried_adapter(model, graph, task)
    logits: object = _logits_of_one_node(untried, graph)
    if untried.graph_by_graph:  # of a model of nodes, only two nodes tell
        _run_on_two(untried, graph)
    explanation = explain_result(logits, task, model)
    if explanation is not None:
        raise ModelContractError(explanation)
    assert isinstance(logits, Tensor)
    return replace(untried, num_classes=int(logits.size(1)))


def _untried_adapter(model: Callable[..., Any], graph: CanonicalGraph, task: Task) -> ModelAdapter:
    """Returns the adapter of a model that has not been called, so that its number of classes is not known."""
    require_model(model)
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    names = _parameter_names(forward)
    edge_inputs = tuple(name for name in EDGE_VALUES if name in names and getattr(graph, name) is not None)
    dtype, device = _dtype_and_device(model, graph.x)
    takes_batch_size = task == "graph" and "batch_size" in names
    keywords = (*edge_inputs, "batch_size") if takes_batch_size else edge_inputs
    graph_by_graph = task == "graph" and takes_one_graph(forward, edge_inputs)
    require_signature(forward, graph, "node" if graph_by_graph else task, keywords)
    _require_held(graph, edge_inputs, dtype)
    return ModelAdapter(
        model,
        task,
        edge_inputs,
        dtype,
        num_classes=0,
        takes_batch_size=takes_batch_size,
        graph_by_graph=graph_by_graph,
        device=device,
    )


@torch.no_grad()
def _logits_of_one_node(adapter: ModelAdapter, graph: CanonicalGraph) -> Any:
    """Returns what the model returns for the first node of the graph alone."""
    x = graph.x[:1].to(adapter.dtype)
    edge_index, values = no_edges(graph, adapter.edge_inputs)
    batch = torch.zeros(1, dtype=torch.int64) if adapter.task == "graph" else None
    try:
        return adapter.run(x, edge_index, values, batch)
    except ModelContractError as error:
        if isinstance(error.__cause__, SystemExit):
            raise
        cause = error.__cause__ or error
        explanation = explain_failure(adapter.model, cause, graph.x.size(1), _runs_on_two(adapter, graph))
        arguments = "x, edge_index, batch" if adapter.task == "graph" else "x, edge_index"
        raise ModelContractError(
            f"model({arguments}) failed on a single node without edges, with {adapter.dtype} x of shape "
            f"[1, {graph.x.size(1)}]: {explanation}"
        ) from error


def _require_held(graph: CanonicalGraph, edge_inputs: tuple[str, ...], dtype: torch.dtype) -> None:
    """Refuses numbers that the model's type cannot hold."""
    for name in ("x", *edge_inputs):
        value: Tensor = getattr(graph, name)
        if value.dtype == dtype:
            continue  # that it is finite was checked when the graph was
        if not bool(torch.isfinite(_floats_as(dtype, value)).all()):
            raise GraphError(
                f"{name} has numbers that the model's type, {dtype}, cannot hold: scale them, or use model.double()."
            )


def _runs_on_two(adapter: ModelAdapter, graph: CanonicalGraph) -> bool:
    """Tells whether a model that failed on one node can be run on two that are joined."""
    try:
        _run_on_two(adapter, graph)
    except Exception:
        return False
    return True


@torch.no_grad()
def _run_on_two(adapter: ModelAdapter, graph: CanonicalGraph) -> None:
    """Runs a model on two nodes that are joined."""
    x = graph.x[:1].to(adapter.dtype).repeat(2, 1)
    values = {}
    for name, value in adapter.edge_values(graph).items():
        one = value[:1] if value.size(0) else value.new_zeros(1, *value.shape[1:])
        values[name] = one.repeat(2, *[1] * (value.dim() - 1))
    batch = torch.zeros(2, dtype=torch.int64) if adapter.task == "graph" else None
    adapter.run(x, torch.tensor([[0, 1], [1, 0]]), values, batch)


def _parameter_names(forward: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(forward).parameters)
    except (TypeError, ValueError):
        return set()


def _floats_as(dtype: torch.dtype, value: Tensor) -> Tensor:
    return value.to(dtype) if value.is_floating_point() else value


def _dtype_and_device(model: Callable[..., Any], x: Tensor) -> tuple[torch.dtype, torch.device]:
    """Returns type and device of a module's weights; those of the features if it has none, or is a function.

    Raises:
        ModelContractError: A weight is not there yet, or weights are on different devices.
    """
    if not isinstance(model, torch.nn.Module):
        return x.dtype, x.device
    tensors = [*model.named_parameters(), *model.named_buffers()]
    for name, tensor in tensors:
        _require_weight(name, tensor)
        first_name, first = tensors[0]
        if tensor.device != first.device:
            raise ModelContractError(
                f"the model has {first_name} on {first.device} and {name} on {tensor.device}: bring it to one device, "
                f"e.g. model.to('{first.device}'). (The graph may be anywhere: what is needed travels.)"
            )
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), x.dtype)
    device = tensors[0][1].device if tensors else x.device
    return dtype, device


def _require_weight(name: str, tensor: Tensor) -> None:
    """Refuses a parameter or buffer without numbers."""
    if torch.nn.parameter.is_lazy(tensor):
        raise ModelContractError(
            f"parameter {name} is not initialised yet: run the model once on the training graph first."
        )
    if tensor.is_meta:
        raise ModelContractError(
            f"the model has {name} on the meta device, so it has no weights: build it anew, or give it memory "
            "(model.to_empty(device='cpu')), and load its weights."
        )
