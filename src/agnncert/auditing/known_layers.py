"""Layers that were read, line by line, and are local by construction, with a reason for each.

A model is local *by construction* if every module in it is of exactly one of these classes, with settings under which
the reason holds, with attributes that are numbers, text and functions on a list, and if nothing that these classes call
has been exchanged (``original_code``). Reasons are about code that can change: the files of PyTorch Geometric that were
read are pinned by their digests. With another text in any of them nothing is known by construction, until somebody has
read the new text and pinned it.
"""

import hashlib
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from weakref import ReferenceType

import torch
import torch.nn.functional as F
import torch_geometric
from torch import nn
from torch.nn.modules import module as torch_module
from torch_geometric import nn as pyg
from torch_geometric.inspector import Inspector
from torch_geometric.nn import MessagePassing
from torch_geometric.utils._trim_to_layer import TrimToLayer

from agnncert.auditing.original_code import Place, is_original
from agnncert.models import gnn
from agnncert.models.wrappers import Fallback, Scaling
from agnncert.stacked.model import GraphFree


def _always(layer: Any) -> bool:
    return True


@dataclass(frozen=True)
class KnownLayer:
    """Why the layers of a class are local.

    Attributes:
        reason: What the class computes, in words.
        holds_for: Whether the reason holds for a layer with its settings. Defaults to all layers of the class.
    """

    reason: str
    holds_for: Callable[[Any], bool] = _always


def _sends_along_arcs(layer: Any) -> bool:
    """Returns whether messages follow arcs, nothing is cached, and they are aggregated in a way that was read."""
    if layer.explain or type(layer.aggr_module) not in _AGGREGATIONS:
        return False
    if getattr(layer, "cached", False) is not False:
        return False
    # What was cached earlier is used even if caching is off now.
    if any(value is not None for name, value in vars(layer).items() if name.startswith("_cached")):
        return False
    return layer.flow == "source_to_target" and layer.node_dim in (-2, 0)


def _normalises_rows(layer: Any) -> bool:
    return len(layer.normalized_shape) == 1


def _has_fixed_statistics(layer: Any) -> bool:
    return bool(layer.track_running_stats) and not layer.training


def _works_within_rows(layer: Any) -> bool:
    return layer.dim in (1, -1)


def _is_evaluating(layer: Any) -> bool:
    return not layer.training


_AGGREGATIONS = (pyg.SumAggregation, pyg.MeanAggregation, pyg.MaxAggregation, pyg.MinAggregation)

# Modules and functions that work on each number by itself.
_ENTRYWISE = (
    nn.Identity,
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.PReLU,
    nn.ELU,
    nn.SELU,
    nn.CELU,
    nn.GELU,
    nn.SiLU,
    nn.Mish,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softsign,
    nn.Hardtanh,
    nn.Hardswish,
)
_ENTRYWISE_FUNCTIONS = (
    *[Place(torch, name) for name in ("relu", "tanh", "sigmoid", "selu", "celu")],
    *[Place(F, name) for name in ("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish")],
    *[Place(F, name) for name in ("tanh", "sigmoid", "softplus", "softsign", "hardtanh", "hardswish")],
)

_STACK = KnownLayer("layers, norms and activations one after the other")
_READOUT = KnownLayer("the same, then a readout of each graph")
_ATTENTION = KnownLayer("scores of arcs, softmax over the arcs of one head, sum by head", _sends_along_arcs)

KNOWN: dict[type, KnownLayer] = {
    # torch
    **dict.fromkeys(_ENTRYWISE, KnownLayer("works on each number by itself")),
    nn.Linear: KnownLayer("a product and a sum for each row"),
    nn.Dropout: KnownLayer("hands its input on in evaluation mode", _is_evaluating),
    nn.LayerNorm: KnownLayer("statistics of each row", _normalises_rows),
    nn.RMSNorm: KnownLayer("statistics of each row", _normalises_rows),
    nn.BatchNorm1d: KnownLayer(
        "a fixed affine map in evaluation mode, with statistics that were kept", _has_fixed_statistics
    ),
    nn.Softmax: KnownLayer("within each row", _works_within_rows),
    nn.LogSoftmax: KnownLayer("within each row", _works_within_rows),
    nn.Sequential: KnownLayer("one after the other"),
    nn.ModuleList: KnownLayer("is called by its owner"),
    nn.ModuleDict: KnownLayer("is called by its owner"),
    nn.LSTM: KnownLayer(
        "is called by JumpingKnowledge only: over the layers of each node", lambda layer: layer.batch_first
    ),
    # PyTorch Geometric
    pyg.SumAggregation: KnownLayer("one scatter by the head of each arc"),
    pyg.MeanAggregation: KnownLayer("one scatter by the head of each arc, divided by its in-degree"),
    pyg.MaxAggregation: KnownLayer("one scatter by the head of each arc"),
    pyg.MinAggregation: KnownLayer("one scatter by the head of each arc"),
    pyg.Linear: KnownLayer("a product and a sum for each row"),
    pyg.BatchNorm: KnownLayer("BatchNorm1d of torch"),
    pyg.LayerNorm: KnownLayer("statistics of each row", lambda layer: layer.mode == "node"),
    pyg.JumpingKnowledge: KnownLayer("joins the layers of each node"),
    pyg.GCNConv: KnownLayer("weights are divided by in-degrees at both ends, then summed by head", _sends_along_arcs),
    pyg.SGConv: KnownLayer("as GCNConv, several times", _sends_along_arcs),
    pyg.TAGConv: KnownLayer("as GCNConv without loops, several times", _sends_along_arcs),
    pyg.APPNP: KnownLayer("as GCNConv, several times; drops nothing in evaluation mode", _sends_along_arcs),
    pyg.SAGEConv: KnownLayer("what neighbours send, aggregated by head, and the node itself", _sends_along_arcs),
    pyg.GraphConv: KnownLayer(
        "what neighbours send times the weight of the edge, aggregated by head", _sends_along_arcs
    ),
    pyg.GINConv: KnownLayer(
        "the sum of neighbours and the node itself, then a network for each row", _sends_along_arcs
    ),
    pyg.GINEConv: KnownLayer("as GINConv; a network for each edge", _sends_along_arcs),
    pyg.GATConv: _ATTENTION,
    pyg.GATv2Conv: _ATTENTION,
    pyg.GCN: _STACK,
    pyg.GraphSAGE: _STACK,
    pyg.GIN: _STACK,
    pyg.GAT: _STACK,
    pyg.MLP: KnownLayer("linear layers, norms and activations one after the other"),
    TrimToLayer: KnownLayer("does nothing unless told the sizes of a sample, which nobody does"),
    # this library
    gnn.ProjectedSAGEConv: KnownLayer("SAGEConv with the projection first", _sends_along_arcs),
    gnn.ProjectedGINConv: KnownLayer("GINConv with the first projection first", _sends_along_arcs),
    gnn.RelationalConv: KnownLayer(
        "what neighbours send times shares of each head's arcs, summed by head", _sends_along_arcs
    ),
    Scaling: KnownLayer("an affine map of each row by numbers that were kept"),
    gnn.Dropout: KnownLayer("hands its input on in evaluation mode", _is_evaluating),
    gnn.NodeGNN: _STACK,
    gnn.WeightedNodeGNN: _STACK,
    gnn.RelationalNodeGNN: _STACK,
    gnn.GraphGNN: _READOUT,
    gnn.WeightedGraphGNN: _READOUT,
    gnn.RelationalGraphGNN: _READOUT,
    Fallback: KnownLayer("rows of one of two models, chosen by whether the node has an incoming arc"),
    GraphFree: KnownLayer("its model without an edge"),
}

# sha256 of the files of PyTorch Geometric that were read.
READ: dict[str, str] = {
    "_compile.py": "f72a8c4c129ab593ebe3459abc9cfd163362ee9423f1864064ec999a64465e07",
    "experimental.py": "25bb4d3445e314623c859f6b68cebeaab65444fe99e679432bc4227195086f3d",
    "nn/aggr/base.py": "bdc5872654b9d667dd6075a69d610df1bd43e7b98f33963c9eaa9d567166f363",
    "nn/aggr/basic.py": "7f99393eba4ffa8c5de2bc8778bab2413b358f3889ec986fe58c6790ec963bf6",
    "nn/conv/appnp.py": "c8ce83d7183e533505e0a2851cbfafce59dacab87726fcb64c4c2da88a2b1a44",
    "nn/conv/collect.jinja": "7a42629d53c35e2b20e149cfee360e8bdc946ea85feff31c80f8209e4eaacd42",
    "nn/conv/edge_updater.jinja": "b0201032bf3c5a1978a8ba8f2769465670458e595abdb1f1e4dd36227f3599f9",
    "nn/conv/gat_conv.py": "e7e0808977b0aa8f411e7a2e25ee64345fe958d023cc5b706aab70ef8d1d59b6",
    "nn/conv/gatv2_conv.py": "915d0c778d0736768bed309bdbc39f74fd7ead5df1c84f5086a1625efb41272f",
    "nn/conv/gcn_conv.py": "036b464769ad1d98501c9fc18ff3132b507890b2c5cb41b3e6f9e1f22d4f57f6",
    "nn/conv/gin_conv.py": "258cb0bfd7b0ef6c02b88c89cebe301477f3d342112776ba7e7fa5befdf0e115",
    "nn/conv/graph_conv.py": "27993a5c839ad8902ff9cba32a7754e66dbf9c3d6622834020f934011e81833c",
    "nn/conv/message_passing.py": "66e4ef4afa1d1b2d46c805b8987b6ea0c52ec5c95a9beee8a62758358e481e6f",
    "nn/conv/propagate.jinja": "b0c6eb39a67bfe917c4d11217e359fdee279cd839a00d95c64d1c79ec69b87ed",
    "nn/conv/sage_conv.py": "db5a4998387eb0ae2ee1cb3d957699938e6c0fd1b0a1c8b6135c691dfe5af7c7",
    "nn/conv/sg_conv.py": "51d2817dce722f9965f64ff17b0556cf9ada6dfde53a61a07aef762646123dc6",
    "nn/conv/tag_conv.py": "9d8711550ccaa8985ef6a996d104161e54227a59bd007e2033d01cb2217610ba",
    "nn/dense/linear.py": "aff8e9ee5246c173c4434653ea58e3cfd150f973e45fb6f956c6f5a7a7128e9f",
    "nn/models/basic_gnn.py": "b69eea6c72a7fee3b5081684896efdcda043003f9f47cf04f1f7c9a5d0d8afdc",
    "nn/models/jumping_knowledge.py": "f494761285625ca8dc0d22dbf2d8c99be5077efd6640226f640004b186b439cc",
    "nn/models/mlp.py": "2be58e2d03be0c1b5a0dd330ef3a046cf808b43420e830abb1df3d07af87bc21",
    "nn/norm/batch_norm.py": "7f350d9a974252c32735cb28dcf28351d59cd1442fce22bcd3ec34642d156fc5",
    "nn/norm/layer_norm.py": "5e2132a17743b5aeaf9489cb7f06c956c1204e40451ba3c99ba4a92bdf7e70f1",
    "nn/pool/glob.py": "449aead6c8007bca15d795921ad5e007ac975a3da2ad22485807502dbd1bc8de",
    "utils/_scatter.py": "14fb794f8d706e0d2294b32d01c251e12c0faa5c43ae30ea3bb2a003e6276f0a",
    "utils/_softmax.py": "057d3ac17c52abe055b6fba6368c95f064bdaadb16258c0dac50054498efe1c5",
    "utils/_trim_to_layer.py": "71ab8e13330924ae30f410be3e0d5b1d59dc058a86f57c507b1deb9f5d011637",
    "utils/loop.py": "3145944bb6b91b1bb12ca942b51abde54d617373277726c086a283e4801ed916",
    "utils/num_nodes.py": "175e5c89314e7bc0318e4521d70287ed12e626f418629cfe977a4f3ef419ccec",
    "utils/sparse.py": "d436da130772be7cef839a958cf96759c1150cc931ad02d7d6327476be8fe23b",
}


def by_construction(model: object) -> bool:
    """Returns whether every part of a model was read, as it is set, and nothing that it calls has been exchanged.

    Everything else, down to an activation that is an object of somebody's own, is audited in full.
    """
    if not isinstance(model, nn.Module) or not sources_were_read() or _has_global_hooks():
        return False
    layers = list(_layers(model))
    if not all(isinstance(layer, nn.Module) and _is_known(layer) for layer in layers):
        return False
    return is_original(frozenset(map(type, layers)), frozenset(_activations(layers)))


def _has_global_hooks() -> bool:
    """Returns whether a hook is called by every module of the program."""
    return any(value for name, value in vars(torch_module).items() if name.startswith("_global_") and "hook" in name)


def _layers(layer: Any) -> Iterator[Any]:
    """Yields a module and all modules within, by their tables alone: methods of a module may be anybody's."""
    yield layer
    if not isinstance(layer, nn.Module):
        return
    for part in vars(layer).get("_modules", {}).values():
        if part is not None:
            yield from _layers(part)


def _is_known(layer: nn.Module) -> bool:
    known = KNOWN.get(type(layer))
    return known is not None and _is_as_built(layer) and known.holds_for(layer)


_TABLES = {"_parameters", "_buffers", "_modules"}
_ATTRIBUTES_OF_EVERY_MODULE = {*vars(nn.Module())}


def _is_as_built(layer: nn.Module) -> bool:
    """Returns whether a layer has no hooks, no strange weights, and only numbers, text and known functions else."""
    attributes = vars(layer)
    # A class of somebody's own could hide a name from those who look, and not from Python.
    if type(attributes) is not dict:
        return False
    if any(value and "ward" in name and name.endswith("hooks") for name, value in attributes.items()):
        return False
    if any(type(attributes[table]) not in (dict, OrderedDict) for table in _TABLES):
        return False
    weights = [*attributes["_parameters"].values(), *attributes["_buffers"].values()]
    if any(type(weight) not in (nn.Parameter, torch.Tensor, type(None)) for weight in weights):
        return False
    if any(hasattr(type(layer), name) for name in attributes):  # hides what the class has under that name
        return False
    return all(_is_harmless(layer, name) for name in attributes.keys() - _ATTRIBUTES_OF_EVERY_MODULE)


def _is_harmless(layer: nn.Module, name: str) -> bool:
    """Returns whether an attribute of a layer is of a kind that cannot change what its class computes."""
    value = vars(layer)[name]
    if isinstance(layer, nn.RNNBase) and name in ("_flat_weights", "_flat_weight_refs"):
        return all(type(weight) in (nn.Parameter, ReferenceType) for weight in value)
    if type(value) is Inspector and isinstance(layer, MessagePassing):  # not asked by code that PyG has generated
        return str(vars(type(layer))["propagate"].__globals__["__name__"]).endswith("_propagate")
    if name == "act" and _activation(value) is not None:
        return True
    return _is_plain(value)


def _is_plain(value: object) -> bool:
    """Returns whether a value is a number, a text, or a collection of these, of exactly Python's or torch's types."""
    if isinstance(value, dict) and type(value) in (dict, OrderedDict):
        return all(map(_is_plain, (*value.keys(), *value.values())))
    if isinstance(value, list | tuple | set) and type(value) in (list, tuple, set):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str, torch.dtype, torch.device)


def _activations(layers: Iterable[nn.Module]) -> Iterator[Place]:
    """Yields the places of all functions that layers keep as activations."""
    for layer in layers:
        for value in vars(layer).values():
            place = _activation(value)
            if place is not None:
                yield place


def _activation(value: object) -> Place | None:
    """Returns where an activation stands, if it is a function that was read, or one with its numbers filled in."""
    if type(value) is partial:
        return _filled_activation(value)
    if not isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return None
    for place in _ENTRYWISE_FUNCTIONS:
        if vars(place.holder).get(place.name) is value:
            return place
    return None


def _filled_activation(filled: partial[Any]) -> Place | None:
    """Returns where the function of a ``partial`` stands, if it was read and only numbers were filled in."""
    if filled.args or type(filled.func) is partial:
        return None
    for name, value in filled.keywords.items():
        if name == "inplace" or type(value) not in (int, float, bool):
            return None
    return _activation(filled.func)


def sources_were_read() -> bool:
    """Returns whether PyTorch Geometric is installed with the text that the reasons are about."""
    return bool(READ) and all(_file_digest(name) == digest for name, digest in READ.items())


@cache
def _file_digest(name: str) -> str:
    path = Path(torch_geometric.__file__).parent / name
    if not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()
