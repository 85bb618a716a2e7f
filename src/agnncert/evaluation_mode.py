"""Evaluation mode: what a claim says about the mode of a model is true while the model is called.

``evaluating`` switches a module and its layers to evaluation mode and back, as PyTorch Geometric's ``Explainer`` does.
It refuses what ``model.eval()`` would not do in the same way: modules with a ``train`` or a ``training`` of their own,
and modules in training mode that stand outside the tree of layers, in a list or behind a function.
"""

import types
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from agnncert.errors import ModelContractError
from agnncert.reachable import is_of_library, reachable


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """Evaluates a model in evaluation mode; each layer gets back the mode that it had.

    Args:
        model: The module, or any callable.

    Raises:
        ModelContractError: A part of it cannot be switched as ``model.eval()`` would do it, or is in
            training mode afterwards.
    """
    _require_no_hidden_training(model)
    layers = _layers(model)
    _require_plain_mode(layers)
    modes = [(layer, layer.training) for layer in layers if layer.training]
    if modes:
        _require_plain_switch(layers)
    for layer, _ in modes:
        layer.training = False
    try:
        yield
        if any(layer.training for layer in {*layers, *_layers(model)}):
            raise ModelContractError(
                "a layer of the model was switched to training mode, or made, while it was called: a certificate "
                "speaks about evaluation mode. Leave model.train() out of forward and out of other threads, and make "
                "layers in __init__."
            )
        _require_no_hidden_training(model)
    finally:
        for layer, mode in modes:
            layer.training = mode


def _layers(model: object) -> list[nn.Module]:
    return list(model.modules()) if isinstance(model, nn.Module) else []


def require_evaluation_mode(model: object) -> None:
    """Refuses a model that is in training mode, or has a layer that is.

    Raises:
        ModelContractError: Names the layer.
    """
    _require_no_hidden_training(model)
    _require_plain_mode(_layers(model))
    require_evaluating_layers(model)


def require_evaluating_layers(model: object) -> None:
    """Refuses a module if one of its layers is in training mode; what lies outside its tree is not searched again.

    Raises:
        ModelContractError: Names the layer.
    """
    if not isinstance(model, nn.Module):
        return
    for name, layer in model.named_modules():
        if layer.training:
            where = f"the layer {name} of the model" if name else "the model"
            raise ModelContractError(
                f"{where} is in training mode, where labels may be random: call model.eval() first."
            )


def _require_plain_mode(layers: list[nn.Module]) -> None:
    """Refuses layers whose class computes ``training``, so that the mode it shows need not be the one it has."""
    for layer in layers:
        for cls in type(layer).__mro__:
            if "training" in vars(cls) and not isinstance(vars(cls)["training"], bool) and not is_of_library(cls):
                raise ModelContractError(
                    f"{cls.__name__} has a training of its own, so that its mode cannot be told: rename it, since "
                    "nn.Module keeps the mode under this name."
                )


def _require_plain_switch(layers: list[nn.Module]) -> None:
    """Refuses layers whose class does something else than usual when the mode changes."""
    for layer in layers:
        cls = type(layer)
        if (cls.train, cls.eval) != (nn.Module.train, nn.Module.eval) or {"train", "eval"} & {*vars(layer)}:
            raise ModelContractError(
                f"the model is in training mode, and {cls.__name__} has a train() or eval() of its own, which could "
                "alter it: call model.eval() first."
            )


def _require_no_hidden_training(model: object) -> None:
    """Refuses modules in training mode that ``model.eval()`` does not reach.

    An activation or a loss of torch, which is the same in both modes, does not count.
    """
    own = {id(layer) for layer in _layers(model)}
    for reached in reachable(model):
        layer = reached.value
        if isinstance(layer, nn.Module) and id(layer) not in own and layer.training and _may_read_mode(type(layer)):
            raise ModelContractError(
                f"the model calls a {type(layer).__name__} in training mode, {reached.path}, which is none of its "
                "layers, so that model.eval() does not reach it: call eval() on it, and keep layers in an "
                "nn.ModuleList or as attributes of a module."
            )


def _may_read_mode(cls: type) -> bool:
    """Returns whether a class of modules may ask for its mode: the code of a library names ``training`` if it does."""
    for each in cls.__mro__[: cls.__mro__.index(nn.Module)]:
        if not is_of_library(each):
            return True
        functions = [value for value in vars(each).values() if isinstance(value, types.FunctionType)]
        if any("training" in _names(function.__code__) for function in functions):
            return True
    return False


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
