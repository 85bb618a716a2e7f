"""Whether code is still the code that stands in its file.

``known_layers`` says of classes of torch and PyTorch Geometric what their text does. Python lets anybody exchange a
method, a function, or a name in a module while the program runs (``GCNConv.propagate``, ``gcn_norm``, ``F.relu``). So
before the text counts, everything that it calls is followed: methods of the classes and of their bases, functions that
these name, methods of tensors. Each must have the very instructions that its file compiles to, under the name that the
file gives it. What cannot be followed is not known.
"""

import builtins
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.conv import message_passing

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
            and all(a is b for place, seen in self.places.items() for a, b in zip(_look(*place), seen, strict=True))
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
