"""Checks that the model, the data and the defence were passed in this order, before anything else is done."""

import sys
from typing import Any

import torch
from torch_geometric.data import Data

from agnncert.errors import DivisionError, GraphError, ModelContractError
from agnncert.reachable import attribute_of

_EXPECTED = {
    "model": (ModelContractError, "a torch.nn.Module"),
    "data": (GraphError, "a torch_geometric Data or a list of Data"),
    "defence": (DivisionError, "a defence such as ac.NodeCentric(num_groups=60)"),
}


def require_order(model: object, data: object, defence: object = None) -> None:
    """Checks that the model, the data and the defence were passed in this order, and that the model is one.

    Raises:
        ModelContractError: ``model`` is data, a defence, a class, cannot be called, or was made by ``torch.compile``.
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
    """Raises ModelContractError if ``model`` is a class, cannot be called, or was made by ``torch.compile``."""
    if isinstance(model, type):
        raise ModelContractError(f"{model.__name__} is a class: pass an instance of it, {model.__name__}(…).")
    if callable(model):
        _require_not_compiled(model)
        return
    hint = ""
    if isinstance(model, str):
        hint = f' build_model("{model}", data) makes one.'
    elif isinstance(model, dict):
        hint = " Build the module, and load these weights into it."
    raise ModelContractError(f"expected a torch.nn.Module, got {type(model).__name__}.{hint}")


def _require_not_compiled(model: Any) -> None:
    """Raises ModelContractError if ``torch.compile`` made the model, one of its layers, or a method of a layer.

    A compiled function is compiled anew for other shapes and types. From ``torch._dynamo.config.recompile_limit`` on
    it runs as it was written, so that the same graph gets other numbers in another process. A compiled function that
    a method calls by its name is not seen here.
    """
    layers = dict(model.named_modules()) if isinstance(model, torch.nn.Module) else {}
    parts = {"the model": model} | {f"its layer {name}": layer for name, layer in layers.items() if name}
    found = [name for name, part in parts.items() if _is_compiled(part)]
    if found:
        raise ModelContractError(
            f"torch.compile made {found[0]}: which code then runs depends on the graphs that this process has seen "
            "before, so the certified labels need not be the labels in use. Pass the module as it was before "
            "torch.compile (compiled._orig_mod), and use it without compiling."
        )


def _is_compiled(value: Any) -> bool:
    """Returns whether ``torch.compile`` made a function, a module, or a method of a module."""
    if _is_compiled_function(value):
        return True
    if not isinstance(value, torch.nn.Module):
        return False
    compiler = sys.modules.get("torch._dynamo.eval_frame")  # imported by the first torch.compile
    if compiler is None:
        return False
    if isinstance(value, compiler.OptimizedModule) or value._compiled_call_impl is not None:
        return True
    members = [*vars(value).values(), *(member for cls in type(value).__mro__ for member in vars(cls).values())]
    return any(map(_is_compiled_function, members))


def _is_compiled_function(value: Any) -> bool:
    return "_torchdynamo_orig_callable" in attribute_of(value, "__dict__", {})
