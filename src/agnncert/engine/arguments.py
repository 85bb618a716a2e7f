"""Checks that the model, the data and the defence were passed in this order, before anything else is done."""

from typing import Any

import torch
from torch_geometric.data import Data

from agnncert.divisions.base import RandomDefence
from agnncert.errors import DivisionError, GraphError, ModelContractError
from agnncert.models.stacked import StackedVotes

_EXPECTED = {
    "model": (ModelContractError, "a torch.nn.Module"),
    "data": (GraphError, "a torch_geometric Data or a list of Data"),
    "defence": (DivisionError, "a defence such as ac.NodeCentric(num_groups=60)"),
}


def require_order(model: Any, data: Any, defence: Any = None) -> None:
    """Checks that the model, the data and the defence were passed in this order, and that the model is one.

    Raises:
        ModelContractError: ``model`` is data, a defence, a class, or cannot be called.
        GraphError: ``data`` is a model or a defence.
        DivisionError: ``defence`` is a model or data.
    """
    require_kinds(model=model, data=data, defence=defence)
    require_model(model)


def require_kinds(**given: Any) -> None:
    """Checks the order of arguments called ``model``, ``data`` and ``defence``, or some of them; raises as above."""
    for place, value in given.items():
        kind = _kind_of(value)
        if kind not in (None, place):
            error, expected = _EXPECTED[place]
            raise error(
                f"expected {expected} as the {place}, got {type(value).__name__}, which is the {kind}. "
                f"The order is {', '.join(given)}."
            )


def _kind_of(value: Any) -> str | None:
    """Which argument a value is meant as, where that can be told."""
    if isinstance(value, torch.nn.Module):
        return "model"
    if isinstance(value, Data) or (isinstance(value, list | tuple) and any(isinstance(part, Data) for part in value)):
        return "data"
    is_defence = hasattr(value, "votes_moved") or isinstance(value, RandomDefence | StackedVotes)
    return "defence" if is_defence and not isinstance(value, type) else None


def require_model(model: Any) -> None:
    """Raises ModelContractError if ``model`` is a class, or cannot be called."""
    if isinstance(model, type):
        raise ModelContractError(f"{model.__name__} is a class: pass an instance of it, {model.__name__}(…).")
    if not callable(model):
        hint = f' build_model("{model}", data) makes one.' if isinstance(model, str) else ""
        hint = " Build the module, and load these weights into it." if isinstance(model, dict) else hint
        raise ModelContractError(f"expected a torch.nn.Module, got {type(model).__name__}.{hint}")
