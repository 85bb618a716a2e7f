"""Checks that the model, the data and the defence were passed in this order, before anything else is done."""

from typing import Any

import torch
from torch_geometric.data import Data

from agnncert.errors import DivisionError, GraphError, ModelContractError

_EXPECTED = {
    "model": (ModelContractError, "a torch.nn.Module"),
    "data": (GraphError, "a torch_geometric Data or a list of Data"),
    "defence": (DivisionError, "a defence such as ac.NodeCentric(num_groups=60)"),
}


def require_order(model: object, data: object, defence: object = None) -> None:
    """Checks that the model, the data and the defence were passed in this order, and that the model is one.

    Raises:
        ModelContractError: ``model`` is data, a defence, a class, or cannot be called.
        GraphError: ``data`` is a model or a defence.
        DivisionError: ``defence`` is a model or data.
    """
    require_kinds(model=model, data=data, defence=defence)
    require_model(model)


def require_kinds(**arguments: object) -> None:
    """Checks that arguments called ``model``, ``data`` and ``defence``, or some of them, are what they are called.

    Raises:
        ModelContractError: ``model`` is data or a defence.
        GraphError: ``data`` is a model or a defence.
        DivisionError: ``defence`` is a model or data.
    """
    for name, value in arguments.items():
        kind = _kind_of(value)
        if kind not in (None, name):
            error, expected = _EXPECTED[name]
            raise error(
                f"expected {expected} as the {name}, got {type(value).__name__}, which is the {kind}. "
                f"The order is {', '.join(arguments)}."
            )


def _kind_of(value: object) -> str | None:
    """Returns the name of the argument that a value is meant as; ``None`` if that cannot be told."""
    if isinstance(value, torch.nn.Module):
        return "model"
    if _is_data(value):
        return "data"
    if isinstance(value, type):
        return None
    if hasattr(value, "as_defence"):
        return "defence"
    return None


def _is_data(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(isinstance(part, Data) for part in value)
    return isinstance(value, Data)


def require_model(model: Any) -> None:
    """Raises ModelContractError if ``model`` is a class, or cannot be called."""
    if isinstance(model, type):
        raise ModelContractError(f"{model.__name__} is a class: pass an instance of it, {model.__name__}(…).")
    if callable(model):
        return
    hint = ""
    if isinstance(model, str):
        hint = f' build_model("{model}", data) makes one.'
    elif isinstance(model, dict):
        hint = " Build the module, and load these weights into it."
    raise ModelContractError(f"expected a torch.nn.Module, got {type(model).__name__}.{hint}")
