"""``fresh_copy``: a copy of a module, without what it keeps from training."""

import copy
import inspect
import types
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.inspector import Inspector

from agnncert.errors import ModelContractError

MOST_NESTED = 50  # parts of parts
_CONSTANTS = (inspect.Signature, inspect.Parameter, types.ModuleType, types.MappingProxyType)
Model = TypeVar("Model")  # a module or a function


def fresh_copy(model: Model) -> Model:
    """Returns a copy of a module, without gradients that it may have kept from training.

    A function is returned as it is.

    Raises:
        ModelContractError: The module cannot be copied.
    """
    if not isinstance(model, torch.nn.Module):
        return model
    try:
        return copy.deepcopy(model, _copied_beforehand(model))
    except Exception as error:
        raise ModelContractError(
            "the model cannot be copied, to see whether it remembers earlier graphs and how far rounding moves it "
            f"({type(error).__name__}: {error}). {_culprit(model)}Build it anew and load its weights, or delete what "
            "it keeps of earlier calls."
        ) from error


def _culprit(model: torch.nn.Module) -> str:
    """Says which object of a model cannot be copied, or "" if that cannot be told."""
    copies = _copied_beforehand(model)
    names: list[str] = []
    value: Any = model
    while True:
        failing = next((part for part in _parts(value) if not _can_be_copied(part[1], copies)), None)
        if failing is None or len(names) > MOST_NESTED:
            break
        names.append(failing[0])
        value = failing[1]
    return f"It is model{''.join(names)}, a {type(value).__name__}. " if names else ""


def _can_be_copied(value: object, copies: dict[int, Any]) -> bool:
    try:
        copy.deepcopy(value, dict(copies))
    except Exception:
        return False
    return True


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the parts of an object that are copied with it, each with what is appended to its name."""
    if isinstance(value, torch.nn.Module):
        yield from ((f".{name}", layer) for name, layer in value.named_children())
    if isinstance(value, Mapping):
        yield from ((f"[{key!r:.40}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from ((f"[{k}]", part) for k, part in enumerate(value))
    table = getattr(value, "__dict__", None)
    if isinstance(table, dict) and not isinstance(value, types.ModuleType | type):
        yield from ((f".{name}", part) for name, part in table.items() if name != "_modules")


def _copied_beforehand(model: torch.nn.Module) -> dict[int, Any]:
    """Returns copies of what ``deepcopy`` cannot copy, or only slowly, by the ``id()`` of what they are copies of."""
    copies: dict[int, Any] = {}
    for constant in _constants(model):
        is_view = isinstance(constant, types.MappingProxyType)
        copies[id(constant)] = types.MappingProxyType(dict(constant)) if is_view else constant
    for layer in model.modules():
        for name, value in vars(layer).items():
            if isinstance(value, Tensor) and value.grad_fn is not None:
                # deepcopy refuses tensors with a gradient's graph, such as a module may have kept from training.
                copies[id(value)] = value.detach().clone()
            elif type(value) in (dict, OrderedDict, set) and not value:
                # Every module has a dozen empty tables, of hooks mostly, which would take most of the time.
                copies[id(value)] = type(value)()
            elif name == "inspector" and isinstance(value, Inspector):
                # What PyG notes down about the signatures of a layer's methods never changes, and is most of the rest.
                copies[id(value)] = value
    return copies


def _constants(model: torch.nn.Module) -> Iterator[Any]:
    """Yields what a model holds that is never altered: signatures, modules of Python, and views of dictionaries."""
    seen: dict[int, Any] = {}
    waiting = [part for layer in model.modules() for part in vars(layer).values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _CONSTANTS):
            yield value
        if isinstance(value, Tensor) or id(value) in seen:
            continue
        if isinstance(value, dict | list | tuple | deque | types.MappingProxyType) and value:
            seen[id(value)] = value
            waiting += value.values() if isinstance(value, dict | types.MappingProxyType) else value
