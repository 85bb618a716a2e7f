"""Why a model cannot be called: each reason that can be told is told before, or in place of, torch's own words."""

import inspect
import os
import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch

from agnncert.errors import ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, Task

_WRAPPED = (
    "Wrap it in a module with forward(self, x, edge_index), which calls self.model(Data(x=x, edge_index=edge_index)) "
    "if it takes a graph, or self.model(x) if it takes features alone."
)
_OTHERS = re.compile(r"[\\/](site-packages|agnncert)[\\/]|^<")  # code that is not the user's


def require_signature(forward: Callable[..., Any], graph: CanonicalGraph, task: Task, takes: tuple[str, ...]) -> None:
    """Refuses a ``forward`` that cannot take the arguments it would be given.

    Raises:
        ModelContractError: Says which argument is missing, or is one too many.
    """
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):  # written in another language: what comes of it is seen when it is called
        return
    given = ["x", "edge_index", *(["batch"] if task == "graph" else [])]
    try:
        signature.bind(*given, **dict.fromkeys(takes))
    except TypeError:
        has = f"forward({', '.join(signature.parameters)})"
        raise ModelContractError(f"{has}: {_misfit(signature, given, graph, task, takes)}") from None


def _misfit(
    signature: inspect.Signature, given: list[str], graph: CanonicalGraph, task: Task, takes: tuple[str, ...]
) -> str:
    open_, kinds = inspect.Parameter.empty, inspect.Parameter
    named = [p for p in signature.parameters.values() if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
    places = [p for p in named if p.kind is not kinds.KEYWORD_ONLY]
    rest = [p.name for p in named if p.default is open_ and p not in places[: len(given)] and p.name not in takes]
    absent = [name for name in rest if name in EDGE_VALUES and getattr(graph, name) is None]
    if absent:
        return (
            f"the model needs {' and '.join(absent)}, which the graph does not have. Give it to the data, one row for "
            f"each edge, or a default in forward ({absent[0]}=None)."
        )
    if len(places) == 1:
        return f"the model takes one argument, and would be given {', '.join(given)}. {_WRAPPED}"
    if task == "node" and "batch" in rest:
        return (
            "a model of graphs, which needs batch; but one Data means that its nodes are classified. Pass a list of "
            "Data to classify graphs."
        )
    if task == "graph" and len(places) == 2:
        return (
            "a model of nodes, which takes no batch; but a list of Data means that graphs are classified. Pass one "
            "Data to classify its nodes, or pool over batch."
        )
    if rest:
        return f"the model needs {', '.join(rest)}, which nobody gives it. Give it a default, or wrap the model."
    return f"the model would be called with {', '.join([*given, *takes])}. Give it such a forward, or wrap it."


def describe_error(error: BaseException) -> str:
    """What went wrong inside a model, and where, in one sentence."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _OTHERS.search(f.filename)]
    place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}".rstrip(". ") + f"{place}."


def explain_failure(model: Any, cause: BaseException, width: int, works_on_more: bool) -> str:
    """Why a model failed on a single node.

    Args:
        model: The model.
        cause: What it raised.
        width: Number of features of the user's data.
        works_on_more: Whether it can be run on two nodes that are joined.
    """
    if works_on_more:
        return f"{describe_error(cause)} Subgraphs can be this small: the model must accept them."
    layer = next(_widths(model), None)
    about_size = any(word in str(cause) for word in ("shape", "size", "dimension"))
    if about_size and layer is not None and layer[1] != width:
        return (
            f"{describe_error(cause)} The graph has {width} features, and the first layer, {layer[0]}, takes "
            f"{layer[1]}: this model was made for other data."
        )
    return (
        f"{describe_error(cause)} It fails on two joined nodes in the same way, so the fault is not the size of the "
        "graph."
    )


def _widths(model: Any) -> Iterator[tuple[str, int]]:
    """Name and number of inputs of every layer that states it."""
    for name, layer in model.named_modules() if isinstance(model, torch.nn.Module) else ():
        for attribute in ("in_channels", "in_features"):
            if isinstance(width := getattr(layer, attribute, None), int) and width > 0:
                yield f"{name or 'model'} ({type(layer).__name__})", width
