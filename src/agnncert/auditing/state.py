"""Everything that a model could remember between calls: numbers that can be reached from it, and from its code.

A model that counts its calls, in an integer, a buffer, a list or a global variable, may behave otherwise after the
thousandth. No test of its outputs would see that, so what it can remember is compared instead (``state_of``).
"""

import hashlib
import logging
import os
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import _lru_cache_wrapper, partial
from pathlib import PurePath
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from agnncert.reachable import attribute_of, module_of

MOST = 100_000  # objects that are looked at
# Packages whose functions and classes keep nothing for a model.
_LIBRARIES = (
    "torch",
    "torch_geometric",
    "numpy",
    "scipy",
    "agnncert",
    "builtins",
    "typing",
    "collections",
    "functools",
    "logging",
    "pytorch_lightning",
    "lightning",
    "lightning_fabric",
    "lightning_utilities",
    "torchmetrics",
)
# What a logger keeps for all loggers of the process, and which of its levels were asked about.
_OF_ALL_LOGGERS = {"manager", "parent", "root", "handlers", "_cache"}
_HOLDERS = (dict, list, tuple, set)  # most of what has parts
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, torch.dtype)
# Objects around a function, and the attributes that hold it, its arguments and its owner.
_WRAPPERS: dict[type, tuple[str, ...]] = {
    partial: ("func", "args", "keywords"),
    types.MethodType: ("__self__", "__func__"),
    property: ("fget", "fset"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    types.GenericAlias: ("__origin__", "__args__"),
    types.UnionType: ("__args__",),
}
# What a sparse tensor keeps, by its layout, as dense tensors.
_SPARSE: dict[torch.layout, Callable[[Tensor], tuple[Tensor, ...]]] = {
    torch.sparse_coo: lambda value: (value._indices(), value._values()),
    torch.sparse_csr: lambda value: (value.crow_indices(), value.col_indices(), value.values()),
    torch.sparse_bsr: lambda value: (value.crow_indices(), value.col_indices(), value.values()),
    torch.sparse_csc: lambda value: (value.ccol_indices(), value.row_indices(), value.values()),
    torch.sparse_bsc: lambda value: (value.ccol_indices(), value.row_indices(), value.values()),
}
NamedPart = tuple[str, Any]  # what a part is called, to be appended to the name of its owner, and the part


def state_of(model: object) -> dict[str, str]:
    """Returns what a model could remember, by name.

    These are its attributes, those of its parts, variables that its code names, and the states of random numbers. At
    most ``MOST`` objects are looked at.
    """
    state = {
        "torch's random numbers": _digest(torch.get_rng_state()),
        "Python's random numbers": str(hash(random.getstate())),
        "numpy's random numbers": _all_of(np.random.get_state(legacy=False)),
        "torch's number of hooks": str(RemovableHandle.next_id),
        "the environment": hashlib.sha256(repr(sorted(os.environ.items())).encode()).hexdigest()[:16],
    }
    seen: dict[int, Any] = {}  # objects by id(); they are kept, so that no other object gets the id
    waiting: list[NamedPart] = [("model", model)]
    while waiting and len(seen) < MOST:
        name, value = waiting.pop()
        if id(value) in seen:
            continue
        text = None if isinstance(value, _HOLDERS) else _text(value)
        if text is not None:
            state[f"{name} ({len(state)})" if name in state else name] = text
            continue
        seen[id(value)] = value
        for part_name, part in _parts(value):
            if id(part) not in seen:
                waiting.append((name + part_name, part))
    return state


def _text(value: Any) -> str | None:
    """Returns a value without parts as text, or ``None`` if it has parts."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, Tensor):
        return f"{_digest(value)} {_tensor_facts(value)}"
    if isinstance(value, np.ndarray):
        return f"{_digest(value)} {value.shape} {value.strides}"
    return _generator_state(value)


def _generator_state(value: object) -> str | None:
    """Returns the state of a generator of random numbers as text, or ``None`` if it is something else."""
    if isinstance(value, torch.Generator):
        return _digest(value.get_state())
    if isinstance(value, random.SystemRandom):
        return "chance of the system, which has no state"
    if isinstance(value, random.Random):
        return str(hash(value.getstate()))
    if isinstance(value, np.random.Generator):
        return _all_of(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return _all_of(value.get_state(legacy=False))
    return None


def _all_of(state: Mapping[str, Any]) -> str:
    """Returns a digest of a state of numpy: its numbers, and how many of them were used."""
    with np.printoptions(threshold=sys.maxsize):
        return hashlib.sha256(repr(state).encode()).hexdigest()[:16]


def _tensor_facts(value: Tensor) -> str:
    """Returns what a tensor is beside its numbers: memory layout, count of writes, gradient and attributes."""
    if value.layout != torch.strided:
        return ""
    layout = (*value.shape, *value.stride(), value.storage_offset())
    num_writes = "" if value.is_inference() else value._version
    attributes = {name: _text(part) for name, part in vars(value).items()}
    gradient = value.grad if value.is_leaf else None
    gradient_text = "" if gradient is None else _text(gradient)
    return f"{layout} {num_writes} {attributes or ''} {gradient_text}"


def _digest(value: Any) -> str:
    """Returns a short digest of the numbers of a tensor or array, or the type and shape of a tensor without numbers."""
    if isinstance(value, Tensor):
        if value.layout in _SPARSE:
            return " ".join(_digest(part) for part in _SPARSE[value.layout](value))
        if value.is_meta or value.layout != torch.strided or type(value) not in (Tensor, torch.nn.Parameter):
            return f"{type(value).__name__} {tuple(value.shape)}"
        value = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]


def _parts(value: Any) -> Iterator[NamedPart]:
    """Yields what an object holds, with the names of the parts."""
    if isinstance(value, (dict, Mapping)):  # a dictionary is quickly told
        for key, part in value.items():
            yield f"[{key!r:.40}]", part
    elif isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
        yield "'s length", len(value)
        for k, part in enumerate(value):
            yield f"[{k}]", part
    elif isinstance(value, type):
        yield from _parts_of_class(value)
    elif isinstance(value, types.FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, tuple(_WRAPPERS)):
        yield from _parts_of_wrapper(value)
    elif isinstance(value, types.ModuleType):
        yield from _parts_of_module(value)
    elif isinstance(value, (ContextVar, types.GeneratorType, weakref.ref)):
        yield from _parts_behind(value)
    else:
        yield from _parts_of_object(value)


def _unnamed(parts: Iterable[Any]) -> Iterator[NamedPart]:
    """Yields parts that go by the name of their owner."""
    for part in parts:
        yield "", part


def _parts_of_wrapper(value: Any) -> Iterator[NamedPart]:
    for kind, names in _WRAPPERS.items():
        if isinstance(value, kind):
            yield from _unnamed(getattr(value, name) for name in names)


def _parts_behind(value: Any) -> Iterator[NamedPart]:
    """Yields what a context variable, a reference or a function that waits leads to, which are no attributes."""
    if isinstance(value, ContextVar):
        yield "'s value", value.get(None)
    elif isinstance(value, weakref.ref):
        yield "", value()
    elif value.gi_frame is not None:
        yield "'s place", value.gi_frame.f_lasti
        yield "'s variables", dict(value.gi_frame.f_locals)


def _parts_of_module(module: types.ModuleType) -> Iterator[NamedPart]:
    """Yields the variables of a module of somebody's own. Installed modules and Python's are passed over."""
    if _is_installed(module):
        return
    for name, part in vars(module).items():
        if not name.startswith("__"):
            yield f".{name}", part


def _is_installed(module: types.ModuleType) -> bool:
    package = module.__name__.partition(".")[0]
    if package in _LIBRARIES or package in sys.stdlib_module_names:
        return True
    folders = PurePath(getattr(module, "__file__", None) or "").parts
    return "site-packages" in folders or "dist-packages" in folders


def _parts_of_class(cls: type) -> Iterator[NamedPart]:
    yield "'s bases", len(cls.__mro__)
    yield "'s class", type(cls)
    is_library = _is_of_library(cls)
    for name, part in vars(cls).items():
        if name.startswith("__w" if not is_library else "__"):  # such as __weakref__
            continue
        if not is_library or isinstance(part, (*_PLAIN, *_HOLDERS, Tensor)):
            yield f".{name}", part


def _parts_of_object(value: Any) -> Iterator[NamedPart]:
    yield from _parts_of_copy(value)  # first, since what comes last is looked at, and named, first
    for name, part in _attributes(value):
        yield f".{name}", part
    for cls in type(value).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if isinstance(name, str):
                yield f".{name}", attribute_of(value, name, None)
    yield from _unnamed(type(value).__mro__)


def _attributes(value: Any) -> Iterator[NamedPart]:
    """Yields the attributes of an object by name, whatever its table of attributes shows those who ask."""
    table = attribute_of(value, "__dict__", {})
    items = dict.items(table) if isinstance(table, dict) else table.items()
    for name, part in items:
        if not (isinstance(value, logging.Logger) and name in _OF_ALL_LOGGERS):
            yield name, part


def _parts_of_copy(value: Any) -> Iterator[NamedPart]:
    """Yields what Python itself takes along when it copies an object: the place of an iterator, bytes of a stream."""
    if isinstance(value, logging.Logger):  # it is copied as its name
        return
    if isinstance(value, _lru_cache_wrapper):
        yield "'s size", value.cache_info().currsize
    try:
        parts = value.__reduce_ex__(4)
    except Exception:  # cannot be copied, which ``bind`` says of a model
        return
    if isinstance(parts, tuple):
        for k, part in enumerate(parts):
            yield f"'s copy {k}", part


def _parts_of_function(function: types.FunctionType) -> Iterator[NamedPart]:
    """Yields what a function of somebody's own keeps: attributes, defaults, variables around it and global ones."""
    for name, part in vars(function).items():
        yield f".{name}", part
    if _is_of_library(function):
        return
    yield "", function.__defaults__
    yield "'s named defaults", function.__kwdefaults__
    yield "'s text", function.__doc__
    yield "'s annotations", function.__annotations__
    yield "'s instructions", _instructions(function.__code__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield f" {name}", _contents(cell)
    names = dict.fromkeys(_names(function.__code__))
    home = sys.modules.get(module_of(function))
    is_own = home is None or not _is_installed(home)
    named = {name: function.__globals__.get(name, sys.modules.get(name)) for name in names}  # as globals or imported
    modules: set[types.ModuleType] = set()
    for name, value in named.items():
        if name in function.__globals__:
            yield f" {name}", value
        if is_own and isinstance(value, types.ModuleType):
            yield from _named_members(f" {name}", value, names, modules)


def _named_members(
    name: str, module: types.ModuleType, names: Iterable[str], seen: set[types.ModuleType]
) -> Iterator[NamedPart]:
    """Yields what an installed module, which is passed over otherwise, holds under names of one's own code.

    Args:
        name: What the module is called.
        module: The module.
        names: All names in that code.
        seen: Modules that were looked at, to which this one and those inside of it are added.
    """
    if module in seen or not _is_installed(module):
        return
    seen.add(module)
    for part_name in filter(vars(module).__contains__, names):
        part = vars(module)[part_name]
        if isinstance(part, types.ModuleType):
            yield from _named_members(f"{name}.{part_name}", part, names, seen)
        elif isinstance(part, (*_PLAIN, *_HOLDERS, Tensor, types.FunctionType, type)):
            yield f"{name}.{part_name}", part


def _is_of_library(named: type | types.FunctionType) -> bool:
    """Returns whether a class or function says that it stands in a library; of a function it is checked."""
    module = module_of(named)
    if module.partition(".")[0] not in _LIBRARIES:
        return False
    return isinstance(named, type) or vars(sys.modules.get(module, types)) is named.__globals__


def _names(code: types.CodeType) -> Iterator[str]:
    """Yields all names in some code and in the code inside; a text such as that of ``setattr`` may be one."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, str) and constant.isidentifier():
            yield constant
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _instructions(code: types.CodeType) -> str:
    """Returns a digest of some code: its instructions, names and constants, and those of the code inside."""
    constants = [
        _instructions(constant) if isinstance(constant, types.CodeType) else repr(constant)
        for constant in code.co_consts
    ]
    text = f"{code.co_code!r} {code.co_names} {code.co_varnames} {constants}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
