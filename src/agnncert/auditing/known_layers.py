"""Layers that were read, line by line, and are local by construction: one line of reason for each.

A model is local *by construction* if every module in it is of exactly one of these classes, with settings under which
the reason holds, and nothing in it has been replaced. Reasons are about code that can change: the files of PyTorch
Geometric that were read are pinned by their digests. With another text in any of them nothing is known by construction,
until somebody has read the new text and pinned it.
"""

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
import torch_geometric
from torch import nn
from torch.nn.modules import module as torch_module
from torch_geometric import nn as pyg
from torch_geometric.utils._trim_to_layer import TrimToLayer

from agnncert.models import gnn
from agnncert.models.wrappers import Fallback, Scaling

Settings = Callable[[Any], bool]


def _always(layer: Any) -> bool:
    return True


def _forward_arcs(layer: Any) -> bool:
    """Messages follow arcs, nothing is cached, and they are added up in a way that was read."""
    kept = any(value is not None for name, value in vars(layer).items() if name.startswith("_cached"))
    cached = kept or getattr(layer, "cached", False) is not False  # what was kept is used even if caching is off now
    plain = type(layer.aggr_module) in _AGGREGATIONS and not layer.explain
    return plain and not cached and layer.flow == "source_to_target" and layer.node_dim in (-2, 0)


def _rows_only(layer: Any) -> bool:
    return len(layer.normalized_shape) == 1


def _frozen(layer: Any) -> bool:
    return bool(layer.track_running_stats) and not layer.training


def _last_dimension(layer: Any) -> bool:
    return layer.dim in (1, -1)


_AGGREGATIONS = (pyg.SumAggregation, pyg.MeanAggregation, pyg.MaxAggregation, pyg.MinAggregation)
_ENTRYWISE = (
    nn.Identity, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish,
    nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish,
)  # fmt: skip

KNOWN: dict[type, tuple[str, Settings]] = {
    # torch
    **dict.fromkeys(_ENTRYWISE, ("works on each number by itself", _always)),
    nn.Linear: ("a product and a sum for each row", _always),
    nn.Dropout: ("hands its input on in evaluation mode", lambda layer: not layer.training),
    nn.LayerNorm: ("statistics of each row", _rows_only),
    nn.RMSNorm: ("statistics of each row", _rows_only),
    nn.BatchNorm1d: ("a fixed affine map in evaluation mode, with statistics that were kept", _frozen),
    nn.Softmax: ("within each row", _last_dimension),
    nn.LogSoftmax: ("within each row", _last_dimension),
    nn.Sequential: ("one after the other", _always),
    nn.ModuleList: ("is called by its owner", _always),
    nn.ModuleDict: ("is called by its owner", _always),
    nn.LSTM: ("is called by JumpingKnowledge only: over the layers of each node", lambda layer: layer.batch_first),
    # PyTorch Geometric
    pyg.SumAggregation: ("one scatter by the head of each arc", _always),
    pyg.MeanAggregation: ("one scatter by the head of each arc, divided by its in-degree", _always),
    pyg.MaxAggregation: ("one scatter by the head of each arc", _always),
    pyg.MinAggregation: ("one scatter by the head of each arc", _always),
    pyg.Linear: ("a product and a sum for each row", _always),
    pyg.BatchNorm: ("BatchNorm1d of torch", _always),
    pyg.LayerNorm: ("statistics of each row", lambda layer: layer.mode == "node"),
    pyg.JumpingKnowledge: ("joins the layers of each node", _always),
    pyg.GCNConv: ("weights are divided by in-degrees at both ends, then summed by head", _forward_arcs),
    pyg.SGConv: ("as GCNConv, several times", _forward_arcs),
    pyg.TAGConv: ("as GCNConv without loops, several times", _forward_arcs),
    pyg.APPNP: ("as GCNConv, several times; drops nothing in evaluation mode", _forward_arcs),
    pyg.SAGEConv: ("what neighbours send, aggregated by head, and the node itself", _forward_arcs),
    pyg.GraphConv: ("what neighbours send times the weight of the edge, aggregated by head", _forward_arcs),
    pyg.GINConv: ("the sum of neighbours and the node itself, then a network for each row", _forward_arcs),
    pyg.GINEConv: ("as GINConv; a network for each edge", _forward_arcs),
    pyg.GATConv: ("scores of arcs, softmax over the arcs of one head, sum by head", _forward_arcs),
    pyg.GATv2Conv: ("scores of arcs, softmax over the arcs of one head, sum by head", _forward_arcs),
    pyg.GCN: ("layers, norms and activations one after the other", _always),
    pyg.GraphSAGE: ("layers, norms and activations one after the other", _always),
    pyg.GIN: ("layers, norms and activations one after the other", _always),
    pyg.GAT: ("layers, norms and activations one after the other", _always),
    pyg.MLP: ("linear layers, norms and activations one after the other", _always),
    TrimToLayer: ("does nothing unless told the sizes of a sample, which nobody does", _always),
    # this library
    gnn.ProjectedSAGEConv: ("SAGEConv with the projection first", _forward_arcs),
    gnn.ProjectedGINConv: ("GINConv with the first projection first", _forward_arcs),
    Scaling: ("an affine map of each row by numbers that were kept", _always),
    gnn.Dropout: ("hands its input on in evaluation mode", lambda layer: not layer.training),
    gnn.NodeGNN: ("layers, norms and activations one after the other", _always),
    gnn.WeightedNodeGNN: ("layers, norms and activations one after the other", _always),
    gnn.GraphGNN: ("the same, then a readout of each graph", _always),
    gnn.WeightedGraphGNN: ("the same, then a readout of each graph", _always),
    Fallback: ("rows of one of two models, chosen by whether the node has an incoming arc", _always),
}

# sha256 of the files of PyTorch Geometric that were read.
READ: dict[str, str] = {
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
}


def by_construction(model: Any) -> bool:
    """Whether every module of a model is known to be local, as it is set, and none has been tampered with."""
    if not isinstance(model, nn.Module) or not sources_were_read():
        return False
    hooks = (torch_module._global_forward_hooks, torch_module._global_forward_pre_hooks)
    return not any(hooks) and all(_is_known(layer) for layer in model.modules())


def _is_known(layer: nn.Module) -> bool:
    known = KNOWN.get(type(layer))
    return known is not None and _is_original(type(layer)) and not _is_altered(layer) and known[1](layer)


def _is_altered(layer: nn.Module) -> bool:
    """Whether an instance has hooks, or functions of its own in place of those of its class."""
    own = vars(layer)
    hooked = any(own[name] for name in own if name.endswith("forward_hooks") or name.endswith("forward_pre_hooks"))
    functions = (FunctionType, MethodType, BuiltinFunctionType)
    strange = any(isinstance(value, functions) or callable(vars(type(layer)).get(name)) for name, value in own.items())
    weights = [*own["_parameters"].values(), *own["_buffers"].values()]
    return hooked or strange or any(type(w) not in (nn.Parameter, torch.Tensor, type(None)) for w in weights)


def _is_original(kind: type) -> bool:
    """Whether the methods of a class are those that stand in its file."""
    for cls in kind.__mro__:
        if cls in (nn.Module, object) or not issubclass(cls, nn.Module):
            continue
        file = _file_of(cls)  # type: ignore[arg-type]  # a class can be hashed
        for name in ("forward", "message", "aggregate", "update", "edge_update", "embed", "head", "pool", "__call__"):
            method = vars(cls).get(name)
            if isinstance(method, FunctionType) and inspect.unwrap(method).__code__.co_filename != file:
                return False
    return True


@cache
def _file_of(cls: Any) -> str | None:
    return inspect.getsourcefile(cls)


def sources_were_read() -> bool:
    """Whether PyTorch Geometric is installed with the text that the reasons are about."""
    return bool(READ) and all(_digest(name) == digest for name, digest in READ.items())


@cache
def _digest(name: str) -> str:
    path = Path(torch_geometric.__file__).parent / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
