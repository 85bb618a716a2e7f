"""A weight on every edge of a model's graph, by which its logits can be differentiated."""

import inspect
from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import MessagePassing

from agnncert.errors import ModelContractError


def takes_weights(model: Any) -> bool:
    """Returns whether a model has an ``edge_weight`` argument."""
    return "edge_weight" in inspect.signature(getattr(model, "forward", model)).parameters


def can_be_weighted(model: Any) -> bool:
    """Returns whether a model takes edge weights, or has message-passing layers of PyG, whose messages are scaled."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    return takes_weights(model) or any(isinstance(module, MessagePassing) for module in modules)


def require_weights(model: Any) -> None:
    """Raises ModelContractError if the model has neither an ``edge_weight`` argument nor message-passing layers."""
    if not can_be_weighted(model):
        raise ModelContractError(
            "the gradient attack needs edge weights: give the model's forward an edge_weight argument, or "
            'build it of PyG\'s message-passing layers. The attack "greedy" needs neither.'
        )


def weighted_logits(model: Any, x: Tensor, edge_index: Tensor, weight: Tensor, *batch: Tensor) -> Tensor:
    """Returns the logits of a model with a weight on every edge: passed to it, or multiplied with its messages."""
    if takes_weights(model):
        return model(x, edge_index, *batch, edge_weight=weight)  # type: ignore[no-any-return]
    set_masks(model, weight, edge_index, apply_sigmoid=False)
    try:
        return model(x, edge_index, *batch)  # type: ignore[no-any-return]
    finally:
        clear_masks(model)
