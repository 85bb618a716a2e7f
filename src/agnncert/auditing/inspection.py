"""Faults that can be seen without running a model: layers that are known to break the guarantee, by name."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn
from torch_geometric.nn import MessagePassing

from agnncert.auditing.findings import Finding
from agnncert.auditing.user_graphs import is_edge_centric
from agnncert.divisions.base import Division
from agnncert.graphs.graph import Task

_MIXING_NORMS = {"PairNorm", "GraphNorm", "InstanceNorm", "InstanceNorm1d", "GraphSizeNorm", "MeanSubtractionNorm"}
_MIXING_LAYERS = {"GPSConv", "PerformerAttention", "PolynormerAttention", "SGFormerAttention"}
_BOTH_WAYS = {"DirGNNConv", "ChebConv", "HypergraphConv"}
_MIXES = "mixes all nodes, so one change can alter every vote"


_RANKING = {"TopKPooling", "SAGPooling", "ASAPooling", "PANPooling", "SortAggregation"}
_BY_ORDER = ("nodes and edges in another order", "other graphs in one batch")


def explained_by_ties(model: object, finding: Finding) -> Finding:
    """Returns a finding about the order of nodes with the name of the layer that ranks nodes, if there is one.

    Any other finding is returned as it is.
    """
    if not isinstance(model, nn.Module) or finding.what not in _BY_ORDER:
        return finding
    for name, layer in model.named_modules():
        kind = type(layer).__name__
        if kind in _RANKING:
            why = f"{kind} ranks nodes, and the order of nodes decides between equal scores"
            remedy = f"Replace {kind} by pooling over all nodes (sum, mean or max)."
            return replace(finding, where=name, why=f"{why}; {finding.why}", remedy=f"{remedy} {finding.remedy}")
    return finding


def inspect_layers(model: object, task: Task, division: Division | None) -> Iterator[Finding]:
    """Yields a finding for every layer that is known to be at fault.

    Args:
        model: The module. A function has no layers to look at.
        task: "node" or "graph".
        division: The division that will be used. ``None`` means the requirements of every division.
    """
    if not isinstance(model, nn.Module):
        return
    for name, layer in model.named_modules():
        where = name or "model"
        yield from _varying(layer, where)
        yield from _sparse(layer, where)
        if task == "graph":
            continue  # a subgraph that no change touches is the very same graph, so the model may mix its nodes
        yield from _mixing(layer, where, ("edges",) if is_edge_centric(division) else ())
        if not is_edge_centric(division):
            yield from _reading_outgoing(layer, where)


def _varying(layer: nn.Module, where: str) -> Iterator[Finding]:
    """Yields findings about a layer that gives other outputs for the same graph."""
    kind = type(layer).__name__
    if getattr(layer, "cached", False) is True:
        why = "every subgraph would reuse the first subgraph's edges"
        yield Finding(where, f"{kind}(cached=True)", why, f"Build {kind} with cached=False.")
    if layer.training and _drops_inputs(layer):
        yield Finding(where, f"{kind} in training mode", "drops inputs at random", "Call model.eval() first.")
    if layer.training and _is_batch_norm(layer):
        yield Finding(where, f"{kind} in training mode", "normalises over all nodes", "Call model.eval() first.")


def _sparse(layer: nn.Module, where: str) -> Iterator[Finding]:
    """Yields findings about weights and buffers that are sparse tensors."""
    for name, tensor in [*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False)]:
        if tensor.layout != torch.strided:
            what = f"the sparse tensor {name}"
            why = "its numbers are not moved by the rounding noise that tells how far a vote can be trusted"
            yield Finding(where, what, why, f'Keep it dense: register_buffer("{name}", {name}.to_dense()).')


def _mixing(layer: nn.Module, where: str, leaves: tuple[str, ...]) -> Iterator[Finding]:
    """Yields findings about a layer that lets unconnected nodes influence each other."""
    kind = type(layer).__name__
    if _is_batch_norm(layer) and not layer.track_running_stats:
        what = f"{kind}(track_running_stats=False)"
        remedy = f"Build {kind} with track_running_stats=True."
        yield Finding(where, what, "normalises over all nodes", remedy, leaves)
    if kind in _MIXING_NORMS:
        yield Finding(where, kind, _MIXES, f"Replace {kind} (BatchNorm in eval mode is fine).", leaves)
    if kind == "LayerNorm" and getattr(layer, "mode", None) == "graph":
        yield Finding(where, 'LayerNorm(mode="graph")', _MIXES, 'Use LayerNorm(mode="node").', leaves)
    if kind in _MIXING_LAYERS or "quantized.dynamic" in type(layer).__module__:
        remedy = f"Replace {kind} by layers that pass messages along edges."
        yield Finding(where, kind, "lets every node influence every other", remedy, leaves)


def _reading_outgoing(layer: nn.Module, where: str) -> Iterator[Finding]:
    """Yields a finding about a layer that reads edges which leave a node."""
    kind = type(layer).__name__
    is_backward = isinstance(layer, MessagePassing) and layer.flow == "target_to_source"
    if kind in _BOTH_WAYS or is_backward:
        why = "also reads edges that leave a node, so one node can alter many votes"
        yield Finding(where, kind, why, f"Use EdgeCentric, or replace {kind}.")


def _is_batch_norm(layer: nn.Module) -> bool:
    return isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)


def _drops_inputs(layer: nn.Module) -> bool:
    if isinstance(layer, torch.nn.modules.dropout._DropoutNd):
        return layer.p > 0
    rate = getattr(layer, "dropout", 0.0)
    return isinstance(rate, float) and rate > 0
