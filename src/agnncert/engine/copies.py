"""``fresh_copy``: a copy of a module, without what it keeps from training."""

import copy
from collections import OrderedDict
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.inspector import Inspector

from agnncert.errors import ModelContractError

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
            f"({type(error).__name__}: {error}). Build it anew and load its weights, or delete what it keeps of "
            "earlier calls."
        ) from error


def _copied_beforehand(model: torch.nn.Module) -> dict[int, Any]:
    """Returns copies of what ``deepcopy`` cannot copy, or only slowly, by the ``id()`` of what they are copies of."""
    copies: dict[int, Any] = {}
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
