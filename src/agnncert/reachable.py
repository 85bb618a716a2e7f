"""``reachable``: the objects that a model holds, and what the code that it runs names.

Code is read, not run: from ``forward`` on, each name that some code loads is looked up where Python would look it up.
Methods are read when code that was read names them, so that what only training or saving needs is passed over.
"""

import dis
import functools
import sys
import types
import weakref
from collections import OrderedDict, UserDict, UserList, deque
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from pathlib import PurePath
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as torch_module
from torch_geometric.data.data import BaseData
from torch_geometric.data.storage import BaseStorage

MOST = 50_000  # objects that are looked at
# Packages whose code is not read: it keeps nothing for a model, and asks nothing that a model's own code does not show.
LIBRARIES = (
    "torch",
    "torch_geometric",
    "numpy",
    "scipy",
    "agnncert",
    "pytorch_lightning",
    "lightning",
    "lightning_fabric",
    "lightning_utilities",
    "torchmetrics",
)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, np.generic, types.CodeType)
# Objects of libraries that are made to hold what others put into them.
_HOLDERS_OF_LIBRARIES = (nn.Module, BaseData, BaseStorage, UserDict, UserList, types.SimpleNamespace)
GENERATORS_OF_NUMPY = (np.random.Generator, np.random.RandomState)
# Objects around others, and the attributes that hold these.
_WRAPPERS: dict[type, tuple[str, ...]] = {
    partial: ("func", "args", "keywords"),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.cached_property: ("func",),
    types.MethodType: ("__self__", "__func__"),
    types.BuiltinMethodType: ("__self__",),
    property: ("fget", "fset"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
# Methods that Python itself calls, but not while a model runs: to make, copy or show an object.
_NOT_RUN = {"__init__", "__new__", "__post_init__", "__init_subclass__", "__del__", "__repr__", "__str__", "__dir__"}
_NOT_RUN |= {"__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__copy__", "__deepcopy__"}
_MAKING = ("__init__", "__new__", "__post_init__")
_STARTS = {"LOAD_GLOBAL": "global", "LOAD_NAME": "global", "LOAD_DEREF": "around", "IMPORT_NAME": "import"}
_FURTHER = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "STORE_ATTR")
_TABLES = (dict, OrderedDict, set, list, tuple)
_ABSENT = object()


@dataclass(frozen=True)
class Reached:
    """An object that a model can reach.

    Attributes:
        path: How it is reached: from the model, as in ``layers[0]``, or by a name in its code, as in ``time.time``.
        value: The object.
        module: The name of the module of a library or of Python that it was taken from, or "".
    """

    path: str
    value: Any
    module: str = ""


def reachable(model: object) -> Iterator[Reached]:
    """Yields what a model can reach, each object once: at most ``MOST`` that have parts, the nearest first."""
    yield from _Walk(model)


def is_of_library(named: Any) -> bool:
    """Returns whether a class or function stands in a package whose code is not read.

    What it says about its module is checked there, since everybody can write another name into ``__module__``.
    """
    module = sys.modules.get(module_of(named))
    if module is None or not _is_foreign(module.__name__, frozenset()):
        return False
    if isinstance(named, types.FunctionType):
        return named.__globals__ is vars(module)
    return _at(module, named.__qualname__) is named


def attribute_of(value: Any, name: str, default: Any) -> Any:
    """Returns an attribute. An object of a library may raise an error of its own when it is asked for one."""
    try:
        return getattr(value, name, default)
    except Exception:
        if not is_of_library(type(value)):
            raise
        return default


def module_of(named: Any) -> str:
    """Returns the name of the module that a class or function says it stands in, or ""."""
    name = getattr(named, "__module__", None)
    return name if isinstance(name, str) else ""


class _Walk:
    """Goes from object to object, the nearest first."""

    def __init__(self, model: object) -> None:
        self._seen: dict[int, Any] = {}  # objects by id(); they are kept, so that no other object gets the id
        self._waiting = deque([Reached("", model), Reached("a method of Tensor", torch.Tensor)])
        for hooks in (torch_module._global_forward_hooks, torch_module._global_forward_pre_hooks):
            self._waiting.append(Reached("a hook of all modules", hooks))
        self._names = {"forward"}  # that code has used so far
        self._methods: dict[str, list[Reached]] = {}  # those whose names no code has used so far
        layers = model.modules() if isinstance(model, nn.Module) else [model]
        roots = {_root(type(layer).__module__) for layer in layers}
        self._home = frozenset(roots - {*LIBRARIES} - sys.stdlib_module_names)  # packages whose code is read

    def __iter__(self) -> Iterator[Reached]:
        while self._waiting and len(self._seen) < MOST:
            reached = self._waiting.popleft()
            if id(reached.value) in self._seen:
                continue
            self._seen[id(reached.value)] = reached.value
            yield reached
            self._waiting += (part for part in self._parts(reached) if not _is_idle(part.value))

    def _parts(self, reached: Reached) -> Iterator[Reached]:
        """Yields what an object holds, or names in its code."""
        path, value = reached.path, reached.value
        if isinstance(value, types.FunctionType):
            yield from self._parts_of_function(path, value)
        elif isinstance(value, type):
            yield from self._parts_of_class(path, value)
        elif isinstance(value, types.ModuleType):
            if not _is_foreign(value.__name__, self._home):
                yield from self._members(path, value)
        elif isinstance(value, tuple(_WRAPPERS)):
            yield from _parts_of_wrapper(path, value)
        elif not reached.module or isinstance(value, nn.Module):
            yield from _items(path, value)
            yield from _attributes(path, value)
            is_of_python = _root(module_of(type(value))) in sys.stdlib_module_names
            if not is_of_python and type(value) not in GENERATORS_OF_NUMPY:
                yield Reached(path, type(value))

    def _parts_of_class(self, path: str, cls: type) -> Iterator[Reached]:
        for base in cls.__mro__:
            yield from self._members(path, base)

    def _members(self, path: str, holder: Any) -> Iterator[Reached]:
        """Yields the members of a class or module: data at once, and code as soon as other code names it."""
        is_plain = isinstance(holder, type) and is_of_library(holder)
        for name, member in list(vars(holder).items()):
            if isinstance(member, _PLAIN) or (is_plain and not isinstance(member, types.FunctionType)):
                continue
            if _is_hash_of_fields(holder, member):
                continue
            one = Reached(f"{path}.{name}".strip("."), member)
            if name in self._names or _is_called_by_python(name) or not _is_code(member):
                yield one
            else:
                self._methods.setdefault(name, []).append(one)

    def _parts_of_function(self, path: str, function: types.FunctionType) -> Iterator[Reached]:
        """Yields the defaults of a function, the variables around it, and what its code names."""
        yield from _attributes(path, function)
        yield Reached("a default", function.__defaults__)
        yield Reached("a default", function.__kwdefaults__)
        around = _variables_around(function)
        yield from (Reached(name, value) for name, value in around.items())
        if self._is_read(function):
            for kind, names in _chains(function.__code__):
                yield from _looked_up(_start(kind, names[0], function, around), names)
            yield from self._called(_names(function.__code__))

    def _is_read(self, function: types.FunctionType) -> bool:
        """Returns whether the code of a function is read: not that of libraries and of Python itself."""
        name = function.__globals__.get("__name__", "")
        is_there = vars(sys.modules.get(name, types)) is function.__globals__
        return not is_there or not _is_foreign(name, self._home)

    def _called(self, names: frozenset[str]) -> Iterator[Reached]:
        """Yields the methods of these names, and those found later too."""
        for name in names - self._names:
            self._names.add(name)
            yield from self._methods.pop(name, ())


def _is_idle(value: object) -> bool:
    """Returns whether there is nothing to look at: a number, a text or an empty table, as every module has a dozen."""
    return isinstance(value, _PLAIN) or (type(value) in _TABLES and not value)


def _items(path: str, value: Any) -> Iterator[Reached]:
    """Yields what a container holds, and what a reference or a function that waits leads to."""
    if isinstance(value, dict):
        yield from (Reached(f"{path}[{key!r:.40}]", part) for key, part in list(dict.items(value)))
    elif isinstance(value, Mapping):
        yield from (Reached(f"{path}[{key!r:.40}]", part) for key, part in list(value.items()))
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from (Reached(f"{path}[{k}]", part) for k, part in enumerate(list(value)))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from (Reached(f"{path}[{k}]", part) for k, part in enumerate(value.flat))
    elif isinstance(value, weakref.ref):
        yield Reached(path, value())
    elif isinstance(value, ContextVar):
        yield Reached(path, value.get(None))
    elif isinstance(value, types.GeneratorType) and value.gi_frame is not None:
        yield Reached(path, dict(value.gi_frame.f_locals))


def _attributes(path: str, value: Any) -> Iterator[Reached]:
    """Yields the attributes of an object, unless a library keeps in it what is its own."""
    cls = type(value)
    is_holder = isinstance(value, (*_HOLDERS_OF_LIBRARIES, torch.Tensor, types.FunctionType))
    if not is_holder and (is_of_library(cls) or cls.__module__ in sys.stdlib_module_names):
        return
    table = getattr(value, "__dict__", {})
    if isinstance(table, dict):
        yield from (Reached(f"{path}.{name}".strip("."), part) for name, part in list(dict.items(table)))
    for base in cls.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            yield Reached(f"{path}.{name}".strip("."), getattr(value, name, None))


def _parts_of_wrapper(path: str, value: Any) -> Iterator[Reached]:
    for kind, names in _WRAPPERS.items():
        if isinstance(value, kind):
            yield from (Reached(path, getattr(value, name)) for name in names)


def _is_hash_of_fields(holder: Any, member: Any) -> bool:
    """Returns whether a member is the hash of a frozen dataclass as Python writes it, by which tables find it."""
    if not isinstance(member, types.FunctionType) or member.__name__ != "__hash__" or not is_dataclass(holder):
        return False
    return member.__code__.co_names == ("hash", *(field.name for field in fields(holder)))


def _is_called_by_python(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _NOT_RUN


def _is_code(member: Any) -> bool:
    wrappers = (property, staticmethod, classmethod, functools.cached_property, functools.partialmethod)
    return isinstance(member, (types.FunctionType, types.ModuleType, type, *wrappers))


def _variables_around(function: types.FunctionType) -> dict[str, Any]:
    """Returns the variables around a function that are filled, by name."""
    around = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            around[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return around


def _start(kind: str, name: str, function: types.FunctionType, around: dict[str, Any]) -> Any:
    """Returns what a name in the code of a function stands for, or ``_ABSENT``."""
    if kind == "around":
        return around.get(name, _ABSENT)
    if kind == "import":
        return sys.modules.get(_root(name), _ABSENT)
    if name in function.__globals__:
        return function.__globals__[name]
    builtins: Any = function.__globals__.get("__builtins__", {})
    table = vars(builtins) if isinstance(builtins, types.ModuleType) else builtins
    return table.get(name, _ABSENT)


def _looked_up(value: Any, names: tuple[str, ...]) -> Iterator[Reached]:
    """Yields what a chain of names such as ``os.path.join`` leads to, through modules, and what makes a class."""
    if value is _ABSENT:
        return
    taken_from = ""
    path = names[0]
    for name in names[1:]:
        if not isinstance(value, types.ModuleType):
            break
        part = vars(value).get(name, _ABSENT)
        if part is _ABSENT:
            break
        taken_from = value.__name__ if _is_foreign(value.__name__, frozenset()) else ""
        path, value = f"{path}.{name}", part
    yield Reached(path, value, taken_from)
    if isinstance(value, type):
        for maker in _MAKING:
            yield Reached(f"{path}.{maker}", getattr(value, maker, None))


@lru_cache(maxsize=4096)
def _chains(code: types.CodeType) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns the chains of names that some code and the code inside load, each with the kind of its first name."""
    found: list[tuple[str, tuple[str, ...]]] = []
    is_open = False
    for step in dis.get_instructions(code):
        if step.opname in _STARTS:
            found.append((_STARTS[step.opname], (str(step.argval),)))
            is_open = True
        elif is_open and step.opname in _FURTHER:
            kind, names = found[-1]
            found[-1] = (kind, (*names, str(step.argval)))
        else:
            is_open = False
    for inner in _inner(code):
        found += _chains(inner)
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> frozenset[str]:
    """Returns all names in some code and the code inside; a text such as that of ``getattr`` may be one."""
    texts = [constant for constant in code.co_consts if isinstance(constant, str) and constant.isidentifier()]
    return frozenset([*code.co_names, *texts]).union(*map(_names, _inner(code)))


def _inner(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _is_foreign(module: str, home: frozenset[str]) -> bool:
    """Returns whether a module is of a library, of Python, or installed, and not of the packages at home."""
    root = _root(module)
    if root in LIBRARIES or root in sys.stdlib_module_names:
        return True
    return root not in home and _is_installed(root)


@lru_cache(maxsize=4096)
def _is_installed(root: str) -> bool:
    module = sys.modules.get(root)
    folders = PurePath(getattr(module, "__file__", None) or "").parts
    return "site-packages" in folders or "dist-packages" in folders


def _at(module: types.ModuleType, qualified_name: str) -> Any:
    """Returns what stands in a module under a name such as ``Outer.Inner``, or ``None``."""
    value: Any = module
    for name in qualified_name.split("."):
        value = vars(value).get(name) if isinstance(value, types.ModuleType | type) else None
    return value


def _root(module: str) -> str:
    return module.partition(".")[0]
