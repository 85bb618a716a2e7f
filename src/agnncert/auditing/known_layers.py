"""Layers that were read, line by line, and are local by construction: one line of reason for each.

A model is local *by construction* if every module in it is of exactly one of these classes, with settings under which
the reason holds, with attributes that are numbers, text and functions on a list, and if nothing that these classes call
has been exchanged. Reasons are about code that can change: the files of PyTorch Geometric that were read are pinned by
their digests. With another text in any of them nothing is known by construction, until somebody has read the new text
and pinned it.

Python lets anybody exchange a method, a function, or a name in a module while the program runs
(``GCNConv.propagate``, ``gcn_norm``, ``F.relu``). So everything that the classes call is followed (``unaltered``):
methods of the classes and of their bases, functions that these name, methods of tensors. Each must have the very
instructions that its file compiles to, under the name that the file gives it. What cannot be followed is not known.
"""

import builtins
import hashlib
import operator
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from weakref import ReferenceType

import jinja2
import torch
import torch.nn.functional as F
import torch_geometric
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch_geometric import nn as pyg
from torch_geometric.inspector import Inspector
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.conv import message_passing
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

# Functions that work on each number by itself.
_FUNCTIONS = [
    *[(torch, name) for name in ("relu", "tanh", "sigmoid", "selu", "celu")],
    *[(F, name) for name in ("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "tanh")],
    *[(F, name) for name in ("sigmoid", "softplus", "softsign", "hardtanh", "hardswish")],
]

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
    gnn.RelationalConv: ("what neighbours send times shares of each head's arcs, summed by head", _forward_arcs),
    Scaling: ("an affine map of each row by numbers that were kept", _always),
    gnn.Dropout: ("hands its input on in evaluation mode", lambda layer: not layer.training),
    gnn.NodeGNN: ("layers, norms and activations one after the other", _always),
    gnn.WeightedNodeGNN: ("layers, norms and activations one after the other", _always),
    gnn.RelationalNodeGNN: ("layers, norms and activations one after the other", _always),
    gnn.GraphGNN: ("the same, then a readout of each graph", _always),
    gnn.WeightedGraphGNN: ("the same, then a readout of each graph", _always),
    gnn.RelationalGraphGNN: ("the same, then a readout of each graph", _always),
    Fallback: ("rows of one of two models, chosen by whether the node has an incoming arc", _always),
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


def by_construction(model: Any) -> bool:
    """Whether every part of a model is on the list of what was read, as it is set, and nothing has been exchanged.

    Everything else, down to an activation that is an object of somebody's own, is audited in full.
    """
    if not isinstance(model, nn.Module) or not sources_were_read():
        return False
    if any(value for name, value in vars(torch_module).items() if name.startswith("_global_") and "hook" in name):
        return False
    layers = list(_layers(model))
    if not all(isinstance(layer, nn.Module) and _is_known(layer) for layer in layers):
        return False
    activations = {place for layer in layers for value in vars(layer).values() if (place := _activation(value))}
    return unaltered(frozenset(map(type, layers)), frozenset(activations))


def _layers(layer: Any) -> Iterator[Any]:
    """A module and all modules within, by their tables alone: methods of a module may be anybody's."""
    yield layer
    for part in vars(layer).get("_modules", {}).values() if isinstance(layer, nn.Module) else ():
        if part is not None:
            yield from _layers(part)


def _is_known(layer: nn.Module) -> bool:
    known = KNOWN.get(type(layer))
    return known is not None and _is_as_built(layer) and known[1](layer)


_TABLES = {"_parameters", "_buffers", "_modules"}
_OF_EVERY_MODULE = {*vars(nn.Module())}


def _is_as_built(layer: nn.Module) -> bool:
    """Whether an instance has no hooks, no strange weights, and no attribute but numbers, text and known functions."""
    own = vars(layer)
    if type(own) is not dict:  # a class of somebody's own could hide a name from those who look, and not from Python
        return False
    if any(value and "ward" in name and name.endswith("hooks") for name, value in own.items()):
        return False
    if any(type(own[table]) not in (dict, OrderedDict) for table in _TABLES):
        return False
    weights = [*own["_parameters"].values(), *own["_buffers"].values()]
    if any(type(weight) not in (nn.Parameter, torch.Tensor, type(None)) for weight in weights):
        return False
    shadows = any(hasattr(type(layer), name) for name in own)
    return not shadows and all(_is_harmless(layer, name) for name in own.keys() - _OF_EVERY_MODULE)


def _is_harmless(layer: nn.Module, name: str) -> bool:
    value = vars(layer)[name]
    if isinstance(layer, nn.RNNBase) and name in ("_flat_weights", "_flat_weight_refs"):
        return all(type(weight) in (nn.Parameter, ReferenceType) for weight in value)
    if type(value) is Inspector and isinstance(layer, MessagePassing):  # not asked by code that PyG has generated
        return str(vars(type(layer))["propagate"].__globals__["__name__"]).endswith("_propagate")
    return _is_plain(value) or (name == "act" and _activation(value) is not None)


def _is_plain(value: Any) -> bool:
    if type(value) in (dict, OrderedDict):
        return all(map(_is_plain, (*value.keys(), *value.values())))
    if type(value) in (list, tuple, set):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str, torch.dtype, torch.device)


def _activation(value: Any) -> tuple[Any, str] | None:
    """Where an activation stands, if it is a function that was read, or one with its numbers filled in."""
    if type(value) is partial:
        filled = not value.args and all(
            type(v) in (int, float, bool) and n != "inplace" for n, v in value.keywords.items()
        )
        return _activation(value.func) if filled and type(value.func) is not partial else None
    if not isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return None
    return next((place for place in _FUNCTIONS if vars(place[0]).get(place[1]) is value), None)


def sources_were_read() -> bool:
    """Whether PyTorch Geometric is installed with the text that the reasons are about."""
    return bool(READ) and all(_digest(name) == digest for name, digest in READ.items())


@cache
def _digest(name: str) -> str:
    path = Path(torch_geometric.__file__).parent / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


# Whether code is still the code that stands in its file

Place = tuple[Any, str]  # a class or a module, and a name in it
Seen = tuple[Any, ...]  # what stood there

_IN_C = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
)  # fmt: skip
_FOLLOWED = ("torch.nn.", "torch_geometric.", "agnncert.")  # all else is compared with its file, and not followed
# What Python calls without naming it.
_UNNAMED = (
    "__call__", "forward", "__getattr__", "__getattribute__", "__setattr__", "__iter__", "__next__", "__len__",
    "__getitem__", "__bool__", "__contains__", "__enter__", "__exit__",
)  # fmt: skip
# Functions that have another name in their file.
_ALIASES = {
    ("__call__", "_wrapped_call_impl"), ("forward", "_forward_unimplemented"), ("index_select", "_new_index_select"),
    ("_old_index_select", "index_select"), ("add_self_loops_fn", "add_self_loops"), ("_orig_propagate", "propagate"),
    ("_jinja_propagate", "propagate"),
}  # fmt: skip
_ABSENT = object()


class _AlteredError(Exception):
    """Something is not as it stands in its file."""


_last: dict[Any, "_Trail"] = {}  # what was followed, so that a glance suffices the next time


def unaltered(kinds: frozenset[type], functions: frozenset[Place] = frozenset()) -> bool:
    """Whether all that the methods of some classes, and some functions, call is as it stands in its file."""
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return False  # somebody sees every operation, and may do another
    key = kinds, functions
    if key in _last and _last[key].is_as_it_was():
        return True
    try:
        _last[key] = _Trail(kinds, functions)
    except _AlteredError:
        return False
    return True


class _Trail:
    """Follows what some classes call, and notes every place on the way.

    Raises:
        _AlteredError: Something is not as it stands in its file, or cannot be followed.
    """

    def __init__(self, kinds: frozenset[type], functions: frozenset[Place]) -> None:
        self.places: dict[Place, Seen] = {}
        self._functions: dict[int, types.FunctionType] = {}
        self._rendered: dict[types.ModuleType, set[Any]] = {}
        classes = dict.fromkeys(cls for kind in kinds for cls in kind.__mro__[:-1])
        self._classes = [*classes, Tensor, torch._C.TensorBase]
        self._orders = {kind: kind.__mro__ for kind in kinds}
        self._names = {cls: frozenset(vars(cls)) for cls in self._classes}
        self._generated = {f"{c.__module__}_{c.__name__}_{t}": (c, t) for c in classes for t in _TEMPLATES}
        for cls in classes:
            if not _is_ours(cls.__module__) or vars(sys.modules[cls.__module__]).get(cls.__name__) is not cls:
                raise _AlteredError(cls)
        for name in _UNNAMED:
            self._visit_methods(name)
        for place in functions:
            self._visit(*place)

    def is_as_it_was(self) -> bool:
        """Whether nothing has been exchanged, added or taken away since."""
        return (
            all(kind.__mro__ == order for kind, order in self._orders.items())
            and all(vars(cls).keys() == names for cls, names in self._names.items())
            and all(all(map(operator.is_, _look(*place), seen)) for place, seen in self.places.items())
        )

    def _visit_methods(self, name: str) -> None:
        for cls in self._classes:
            if name in self._names[cls]:
                self._visit(cls, name)

    def _visit(self, holder: Any, name: str) -> None:
        if (holder, name) in self.places:
            return
        self.places[holder, name] = seen = _look(holder, name)
        if seen[0] is not _ABSENT:
            self._value(holder, name, seen[0])
        elif isinstance(holder, types.ModuleType):  # then the name means one of Python's own
            self._visit(builtins, name)

    def _value(self, holder: Any, name: str, value: Any) -> None:
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            for function in filter(None, (value.fget, value.fset, value.fdel)):
                self._value(holder, name, function)
        elif isinstance(value, types.FunctionType):
            self._function(value, name)
        elif isinstance(value, _IN_C):
            fine = _is_called(name, value.__name__)
        elif isinstance(value, type):
            fine = vars(sys.modules[value.__module__]).get(value.__name__, value) is value
        elif isinstance(value, types.ModuleType):
            fine = sys.modules.get(value.__name__) is value
        else:
            fine = not callable(value) or type(value).__module__ in ("typing", "types")
        if not isinstance(value, property | types.FunctionType) and not fine:
            raise _AlteredError(holder, name)

    def _function(self, function: types.FunctionType, name: str) -> None:
        if id(function) in self._functions:
            return
        self._functions[id(function)] = function
        home, code = function.__globals__, function.__code__
        module = sys.modules.get(home.get("__name__", ""))
        if module is None or vars(module) is not home or not _is_ours(module.__name__):
            raise _AlteredError(function)
        generated = self._generated.get(module.__name__)
        if generated is not None and module not in self._rendered:
            try:
                self._rendered[module] = {_print(part) for part in _nested(_rendered(*generated))}
            except Exception as error:  # whatever an altered class may lead to
                raise _AlteredError(module) from error
        written = self._rendered[module] if generated is not None else _codes(module)
        if _print(code) not in written:
            raise _AlteredError(function)
        inner = [c.cell_contents for c in function.__closure__ or () if isinstance(c.cell_contents, types.FunctionType)]
        for wrapped in inner:
            self._function(wrapped, name)
        if not inner and not _is_called(name, code.co_name):
            raise _AlteredError(function)
        given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        if any(callable(value) and not isinstance(value, type) for value in given):
            raise _AlteredError(function)
        if not module.__name__.startswith(_FOLLOWED):
            return
        names = {named for part in _nested(code) for named in part.co_names}
        spaces = [value for named in names if isinstance(value := home.get(named), types.ModuleType)]
        for named in names:
            if named in home or hasattr(builtins, named):
                self._visit(module, named)
            for space in spaces:
                if named in vars(space):
                    self._visit(space, named)
            self._visit_methods(named)


def _look(holder: Any, name: str) -> Seen:
    value = vars(holder).get(name, _ABSENT)
    return (value, *(getattr(value, part, None) for part in ("__code__", "__defaults__", "__kwdefaults__")))


def _is_ours(module: str) -> bool:
    root = module.partition(".")[0]
    return root in ("torch", "torch_geometric", "agnncert") or root in sys.stdlib_module_names


def _is_called(name: str, own: str) -> bool:
    return name.strip("_") == own.strip("_") or (name, own) in _ALIASES


@cache
def _codes(module: types.ModuleType) -> set[Any]:
    """What the file of a module compiles to."""
    loader: Any = module.__spec__.loader if module.__spec__ else None
    code = loader.get_code(module.__name__) if hasattr(loader, "get_code") else None
    return set() if code is None else {_print(part) for part in _nested(code)}


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


_PARTS = (
    "co_qualname", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount",
    "co_posonlyargcount", "co_kwonlyargcount", "co_flags",
)  # fmt: skip


def _print(code: types.CodeType) -> tuple[Any, ...]:
    """What makes out a function: its names, instructions and constants."""
    constants = (_print(c) if isinstance(c, types.CodeType) else (type(c), c) for c in code.co_consts)
    return (*(getattr(code, part) for part in _PARTS), *constants)


_TEMPLATES = ("propagate", "edge_updater")


def _rendered(kind: Any, template: str) -> types.CodeType:
    """The code that PyG generates for a class of layers, generated once more from the class and the template."""
    layer = kind.__new__(kind)
    nn.Module.__init__(layer)
    MessagePassing.__init__(layer)
    inspector = layer.inspector
    if template == "propagate":
        given = {
            "collect_name": "collect",
            "signature": layer._get_propagate_signature(),
            "collect_param_dict": inspector.get_flat_param_dict(["message", "aggregate", "update"]),
            "fuse": layer.fuse,
            **{
                f"{name}_args": inspector.get_param_names(name)
                for name in ("message", "aggregate", "message_and_aggregate", "update")
            },
        }
    else:
        given = {
            "collect_name": "edge_collect",
            "signature": layer._get_edge_updater_signature(),
            "collect_param_dict": inspector.get_param_dict("edge_update"),
        }
    text = _environment().get_template(f"{template}.jinja").render(modules=inspector._modules, **given)
    return compile(text, template, "exec", dont_inherit=True)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(loader=jinja2.FileSystemLoader(Path(message_passing.__file__).parent))
