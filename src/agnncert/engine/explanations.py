"""Why a model cannot be called: each reason that can be told is told before, or in place of, torch's own words."""

import inspect
import os
import re
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from agnncert.errors import ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, Task

_WRAPPED = (
    "Wrap it in a module with forward(self, x, edge_index), which calls self.model(Data(x=x, edge_index=edge_index)) "
    "if it takes a graph, or self.model(x) if it takes features alone."
)
_TWO_CLASSES = " Two classes from one score s are torch.stack([-s, s], dim=-1)."
_NOT_THE_USERS = re.compile(r"[\\/](site-packages|agnncert)[\\/]|^<")  # files of code that is not the user's


def require_signature(
    forward: Callable[..., Any], graph: CanonicalGraph, task: Task, keywords: tuple[str, ...]
) -> None:
    """Refuses a ``forward`` that cannot take the arguments it would be given.

    Args:
        forward: The method or function.
        graph: The graph.
        task: "node" or "graph".
        keywords: Names of the arguments that are passed by name.

    Raises:
        ModelContractError: An argument is missing, or is one too many; the message says which.
    """
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):  # written in another language: what comes of it is seen when it is called
        return
    positional = ["x", "edge_index", "batch"] if task == "graph" else ["x", "edge_index"]
    try:
        signature.bind(*positional, **dict.fromkeys(keywords))
    except TypeError:
        explanation = _explain_signature(signature, positional, keywords, graph)
        raise ModelContractError(f"forward({', '.join(signature.parameters)}): {explanation}") from None


def takes_one_graph(forward: Callable[..., Any], edge_inputs: tuple[str, ...]) -> bool:
    """Returns whether ``forward`` takes the features and edges of one graph, and no batch of several.

    Args:
        forward: The method or function.
        edge_inputs: Names of the edge values that it is given.
    """
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):
        return False
    names = [parameter.name for parameter in _positional_parameters(signature)]
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    is_open = any(parameter.kind in variadic for parameter in signature.parameters.values())
    return not is_open and len(names) >= 2 and {*names[2:]} <= {*edge_inputs} and "batch" not in signature.parameters


def _explain_signature(
    signature: inspect.Signature, positional: list[str], keywords: tuple[str, ...], graph: CanonicalGraph
) -> str:
    """Says why a ``forward`` cannot take the arguments it would be given."""
    by_position = _positional_parameters(signature)
    unmet = _unmet_parameters(signature, len(positional), keywords)
    on_graphs = "batch" in positional
    absent = [name for name in unmet if name in EDGE_VALUES and getattr(graph, name) is None]
    if absent:
        return (
            f"the model needs {' and '.join(absent)}, which the graph does not have. Give it to the data, one row for "
            f"each edge, or a default in forward ({absent[0]}=None)."
        )
    if len(by_position) == 1:
        return f"the model takes one argument, and would be given {', '.join(positional)}. {_WRAPPED}"
    if not on_graphs and "batch" in unmet:
        return (
            "a model of graphs, which needs batch; but one Data means that its nodes are classified. Pass a list of "
            "Data to classify graphs."
        )
    if unmet:
        return f"the model needs {', '.join(unmet)}, which nobody gives it. {_how_to_give(unmet)}"
    return f"the model would be called with {', '.join([*positional, *keywords])}. Give it such a forward, or wrap it."


def _how_to_give(unmet: list[str]) -> str:
    """Says how a model gets what it needs."""
    if "edge_type" not in unmet:
        return "Give it a default, or wrap the model."
    return (
        "Of edges, edge_weight and edge_attr are passed on: give the relation of each edge as edge_attr, "
        "data.edge_attr = data.edge_type, and let forward take edge_attr. ac.from_hetero makes one column for each "
        'relation, which build_model("rgcn", data) reads.'
    )


def _positional_parameters(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Returns the named parameters that can be passed by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter for parameter in signature.parameters.values() if parameter.kind in kinds]


def _unmet_parameters(signature: inspect.Signature, num_positional: int, keywords: tuple[str, ...]) -> list[str]:
    """Returns the names of parameters without a default that are passed neither by position nor by name."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    met = {*(parameter.name for parameter in _positional_parameters(signature)[:num_positional]), *keywords}
    return [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind not in variadic and parameter.default is parameter.empty and parameter.name not in met
    ]


def explain_result(logits: object, task: Task, model: Callable[..., Any] | None = None) -> str | None:
    """Says why what a model returned for one node or graph is no logits; ``None`` if nothing is wrong with it.

    Args:
        logits: What the model returned.
        task: "node" or "graph".
        model: The model, in whose parts a cause is looked for. Defaults to none.
    """
    expected = f"logits of shape [num_{'graphs' if task == 'graph' else 'nodes'}, num_classes]"
    arguments = "x, edge_index, batch" if task == "graph" else "x, edge_index"
    if not isinstance(logits, Tensor):
        hint = "" if logits is None else " Return the logits alone."
        returned = type(logits).__name__
        return f"model({arguments}) returned {returned} for one {task}, expected {expected}.{hint}"
    if logits.dim() != 2 or logits.size(0) != 1 or not logits.is_floating_point():
        hint = ""
        if not logits.is_floating_point():
            hint = " Return scores instead of classes."
        elif logits.shape == (1,):
            hint = _TWO_CLASSES
        elif logits.dim() == 2:
            hint = _explain_rows(model, logits.size(0))
        returned = f"shape {tuple(logits.shape)}, {logits.dtype}"
        return f"model({arguments}) returned {returned} for one {task}, expected {expected}.{hint}"
    if logits.size(1) < 2:
        return f"the model has {logits.size(1)} output class; a vote needs {expected} with at least two.{_TWO_CLASSES}"
    return None


def _explain_rows(model: Callable[..., Any] | None, rows: int) -> str:
    """Names the weights that have as many rows as a model returned, whatever it was given."""
    if not isinstance(model, torch.nn.Module):
        return ""
    tables = [name for name, weight in model.named_parameters() if weight.dim() == 2 and weight.size(0) == rows]
    if not tables:
        return ""
    return (
        f" {tables[0]} has {rows} rows, one for each node of the training graph: an embedding of nodes has no row for "
        "a node that an attacker injects, and follows row numbers instead of features. Compute the first layer from x."
    )


def explain_failure(model: Callable[..., Any], cause: BaseException, num_features: int, runs_on_two: bool) -> str:
    """Says why a model failed on a single node.

    Args:
        model: The model.
        cause: What it raised.
        num_features: Number of features of the user's data.
        runs_on_two: Whether it can be run on two nodes that are joined.
    """
    error = describe_error(cause)
    if runs_on_two:
        failing = _aggregation_that_needs_edges(model)
        if failing is not None:
            return f"{error} PyG's {failing} fails where no edge arrives: use mean, sum or max."
        return f"{error} Subgraphs can be this small: the model must accept them."
    layer, width = _first_width(model)
    about_size = any(word in str(cause) for word in ("shape", "size", "dimension"))
    if about_size and width is not None and width != num_features:
        return (
            f"{error} The graph has {num_features} features, and the first layer, {layer}, takes {width}: this model "
            "was made for other data."
        )
    return f"{error} It fails on two joined nodes in the same way, so the fault is not the size of the graph."


def _aggregation_that_needs_edges(model: Callable[..., Any]) -> str | None:
    """Returns the name of a layer of PyG that fails without edges, if the model has one."""
    layers = model.modules() if isinstance(model, torch.nn.Module) else ()
    names = (type(layer).__name__ for layer in layers)
    return next((name for name in names if name in ("MedianAggregation", "QuantileAggregation")), None)


def describe_error(error: BaseException) -> str:
    """Says in one sentence what went wrong inside a model, and where."""
    text = f"{type(error).__name__}: {error}".rstrip(". ")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_foreign(frame)]
    if not frames:
        return f"{text}."
    return f"{text} ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})."


def _is_foreign(frame: traceback.FrameSummary) -> bool:
    """Tells whether a frame runs code of a library, not of the user."""
    return _NOT_THE_USERS.search(frame.filename) is not None


def _first_width(model: Callable[..., Any]) -> tuple[str, int | None]:
    """Returns name and number of inputs of the first layer that states it; the number is ``None`` if none does."""
    if not isinstance(model, torch.nn.Module):
        return "", None
    for name, layer in model.named_modules():
        for attribute in ("in_channels", "in_features"):
            width = getattr(layer, attribute, None)
            if isinstance(width, int) and width > 0:
                return f"{name or 'model'} ({type(layer).__name__})", width
    return "", None
