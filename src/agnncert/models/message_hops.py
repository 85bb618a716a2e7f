"""Over how many edges messages travel in a model: what a row of logits depends on lies within so many hops."""

from collections.abc import Callable
from typing import Any

import torch
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing

from agnncert.models import gnn
from agnncert.models.wrappers import Fallback

_STACKS_OF_LAYERS = (pyg.GCN, pyg.GraphSAGE, pyg.GIN, pyg.GAT)
_LAYERS_OF_K_HOPS = (pyg.SGConv, pyg.TAGConv, pyg.APPNP)
_LAYERS_OF_ONE_HOP = (
    pyg.GCNConv,
    pyg.SAGEConv,
    pyg.GraphConv,
    pyg.GINConv,
    pyg.GINEConv,
    pyg.GATConv,
    pyg.GATv2Conv,
    gnn.ProjectedSAGEConv,
    gnn.ProjectedGINConv,
    gnn.RelationalConv,
)
# They divide a message by the root of the number of edges at the node that it comes from.
_LAYERS_THAT_COUNT_AT_SENDERS = (pyg.GCNConv, pyg.SGConv, pyg.TAGConv, pyg.APPNP)
_LAYERS_OF_ROWS = (torch.nn.Linear, pyg.Linear, pyg.MLP)


def hops_of(model: object) -> int | None:
    """Returns over how many edges messages travel at most in a known model, or ``None`` if no count is known.

    Layers are counted as they are run: one that stands at several places passes messages at each of
    them. The classes are those whose code was read (``auditing.known_layers``), and no subclasses.

    Args:
        model: A module, with the layers that its class expects.
    """
    kind = type(model)
    known: Any = model
    if kind in _LAYERS_OF_K_HOPS:
        return int(known.K)
    if kind in _LAYERS_OF_ONE_HOP:
        return 1
    if kind in _LAYERS_OF_ROWS:
        return 0
    if kind is Fallback:
        return _most([known.model, known.without_edges])
    if kind in gnn.CLASSES.values():
        return _in_all(known.convs) if known.uses_edges else 0
    return _in_all(known.convs) if kind in _STACKS_OF_LAYERS else None


def hops_of_edges(model: object) -> int | None:
    """Returns within how many hops of a node the edges of all nodes decide about its logits; ``None`` if unknown.

    A message comes from one hop further away than the last node whose edges it passes. Some layers also count the edges
    at the node that a message comes from.
    """
    hops = hops_of(model)
    if hops is None or hops == 0:
        return hops
    layers = model.modules() if isinstance(model, torch.nn.Module) else ()
    counts_at_senders = any(isinstance(layer, _LAYERS_THAT_COUNT_AT_SENDERS) for layer in layers)
    return hops if counts_at_senders else hops - 1


def _in_all(layers: torch.nn.ModuleList) -> int | None:
    """Returns the hops of layers that are run one after the other."""
    total = 0
    for layer in layers:
        hops = hops_of(layer)
        if hops is None:
            return None
        total += hops
    return total


def _most(models: list[torch.nn.Module]) -> int | None:
    """Returns the hops of models that are run side by side."""
    most = 0
    for model in models:
        hops = hops_of(model)
        if hops is None:
            return None
        most = max(most, hops)
    return most


def hops_as_run(model: object, run: Callable[[], object]) -> int | None:
    """Returns the hops of any model: those of a known one, else how often its layers pass messages in one call.

    The second number is no bound for a model that also passes messages without PyTorch Geometric.

    Args:
        model: The module, or any callable.
        run: Calls it, on a graph with edges.

    Returns:
        The number, or ``None`` if no layer of PyTorch Geometric is seen to pass messages.
    """
    known = hops_of(model)
    if known is not None or not isinstance(model, torch.nn.Module):
        return known
    passed = 0

    def count(layer: MessagePassing, inputs: object) -> None:
        nonlocal passed
        passed += 1

    layers = [layer for layer in model.modules() if isinstance(layer, MessagePassing)]
    handles = [layer.register_propagate_forward_pre_hook(count) for layer in layers]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return passed or None
