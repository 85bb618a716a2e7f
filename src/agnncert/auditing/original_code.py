"""Whether code that runs is still the code that stands in its file.

Python lets anybody exchange a method, a function, or a name in a module while the program runs
(``GCNConv.propagate``, ``gcn_norm``, ``F.relu``). So everything that some classes call is followed (``is_original``):
methods of the classes and of their bases, functions that these name, methods of tensors. Each must have the very
instructions that its file compiles to, under the name that the file gives it. What cannot be followed is not known.
"""

import builtins
import operator
import sys
import types
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from agnncert.auditing.generated_code import generated_code, generated_modules


class Place(NamedTuple):
    """A class or a module, and a name in it."""

    holder: Any
    name: str


class _Content(NamedTuple):
    """What stands in a place, and the parts of a function that can be exchanged without exchanging the function."""

    value: Any
    code: Any
    defaults: Any
    keyword_defaults: Any


_IN_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType)
_OURS = ("torch", "torch_geometric", "agnncert")  # and Python's own modules
_FOLLOWED = ("torch.nn.", "torch_geometric.", "agnncert.")  # all else is compared with its file, and not followed
# What Python calls without naming it.
_UNNAMED = (
    "__call__",
    "forward",
    "__getattr__",
    "__getattribute__",
    "__setattr__",
    "__iter__",
    "__next__",
    "__len__",
    "__getitem__",
    "__bool__",
    "__contains__",
    "__enter__",
    "__exit__",
)
# Functions that have another name in their file: the name of the place, and that in the file.
_ALIASES = {
    ("__call__", "_wrapped_call_impl"),
    ("forward", "_forward_unimplemented"),
    ("index_select", "_new_index_select"),
    ("_old_index_select", "index_select"),
    ("add_self_loops_fn", "add_self_loops"),
    ("_orig_propagate", "propagate"),
    ("_jinja_propagate", "propagate"),
}
_ABSENT = object()


class _AlteredError(Exception):
    """Something is not as it stands in its file."""


_trails: dict[Any, "_Trail"] = {}  # what was followed before, so that a glance suffices the next time


def is_original(classes: frozenset[type], functions: frozenset[Place] = frozenset()) -> bool:
    """Returns whether the code behind some classes and functions is the code in their files.

    All that their methods call is followed, so that a function that was exchanged anywhere on the way is noticed.

    Args:
        classes: The classes. All their methods are followed, those of their bases included.
        functions: Where further functions stand.
    """
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return False  # somebody sees every operation, and may do another
    key = (classes, functions)
    if key in _trails and _trails[key].is_as_it_was():
        return True
    try:
        _trails[key] = _Trail(classes, functions)
    except _AlteredError:
        return False
    return True


class _Trail:
    """Follows what some classes and functions call, and notes every place on the way.

    Raises:
        _AlteredError: Something is not as it stands in its file, or cannot be followed.
    """

    def __init__(self, classes: frozenset[type], functions: frozenset[Place]) -> None:
        bases = dict.fromkeys(cls for kind in classes for cls in kind.__mro__[:-1])
        self._bases = [*bases, Tensor, torch._C.TensorBase]
        self._orders = {kind: kind.__mro__ for kind in classes}
        self._names = {cls: frozenset(vars(cls)) for cls in self._bases}
        self._contents: dict[Place, _Content] = {}
        self._functions: dict[int, types.FunctionType] = {}  # by id(); kept, so that no other gets the id
        self._generated = generated_modules(bases)
        self._generated_prints: dict[types.ModuleType, set[Any]] = {}
        for cls in bases:
            if not _is_ours(cls.__module__) or vars(sys.modules[cls.__module__]).get(cls.__name__) is not cls:
                raise _AlteredError(cls)
        for name in _UNNAMED:
            self._visit_methods(name)
        for place in functions:
            self._visit(place)

    def is_as_it_was(self) -> bool:
        """Returns whether nothing has been exchanged, added or taken away since."""
        if any(kind.__mro__ != order for kind, order in self._orders.items()):
            return False
        if any(vars(cls).keys() != names for cls, names in self._names.items()):
            return False
        return all(all(map(operator.is_, _look(place), content)) for place, content in self._contents.items())

    def _visit_methods(self, name: str) -> None:
        """Visits the methods of a name in all classes: which of them is called is not known."""
        for cls in self._bases:
            if name in self._names[cls]:
                self._visit(Place(cls, name))

    def _visit(self, place: Place) -> None:
        if place in self._contents:
            return
        content = _look(place)
        self._contents[place] = content
        if content.value is not _ABSENT:
            self._check(place, content.value)
        elif isinstance(place.holder, types.ModuleType):  # then the name means one of Python's own
            self._visit(Place(builtins, place.name))

    def _check(self, place: Place, value: Any) -> None:
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            for function in filter(None, (value.fget, value.fset, value.fdel)):
                self._check(place, function)
        elif isinstance(value, types.FunctionType):
            self._check_function(value, place.name)
        elif not _is_expected(place.name, value):
            raise _AlteredError(place)

    def _check_function(self, function: types.FunctionType, name: str) -> None:
        if id(function) in self._functions:
            return
        self._functions[id(function)] = function
        module = _module_of(function)
        if _fingerprint(function.__code__) not in self._fingerprints(module):
            raise _AlteredError(function)
        wrapped = list(_wrapped_functions(function))
        for inner in wrapped:
            self._check_function(inner, name)
        if not wrapped and not _is_called(name, function.__code__.co_name):
            raise _AlteredError(function)
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        if any(callable(value) and not isinstance(value, type) for value in defaults):
            raise _AlteredError(function)
        if module.__name__.startswith(_FOLLOWED):
            self._follow(function.__code__, module)

    def _fingerprints(self, module: types.ModuleType) -> set[Any]:
        """Returns the fingerprints of all code that the file of a module, or PyG's template, compiles to."""
        generated = self._generated.get(module.__name__)
        if generated is None:
            return _fingerprints_of_file(module)
        if module not in self._generated_prints:
            try:
                code = generated_code(*generated)
            except Exception as error:  # whatever an altered class may lead to
                raise _AlteredError(module) from error
            self._generated_prints[module] = {_fingerprint(part) for part in _nested(code)}
        return self._generated_prints[module]

    def _follow(self, code: types.CodeType, module: types.ModuleType) -> None:
        """Visits everything that a name in some code of a module could mean."""
        names = {name for part in _nested(code) for name in part.co_names}
        home = vars(module)
        named_modules = [home[name] for name in names if isinstance(home.get(name), types.ModuleType)]
        for name in names:
            if name in home or hasattr(builtins, name):
                self._visit(Place(module, name))
            for named_module in named_modules:
                if name in vars(named_module):
                    self._visit(Place(named_module, name))
            self._visit_methods(name)


def _look(place: Place) -> _Content:
    value = vars(place.holder).get(place.name, _ABSENT)
    return _Content(
        value,
        getattr(value, "__code__", None),
        getattr(value, "__defaults__", None),
        getattr(value, "__kwdefaults__", None),
    )


def _is_expected(name: str, value: Any) -> bool:
    """Returns whether something that is no function of Python code may stand under this name."""
    if isinstance(value, _IN_C):
        return _is_called(name, value.__name__)
    if isinstance(value, type):
        return vars(sys.modules[value.__module__]).get(value.__name__, value) is value
    if isinstance(value, types.ModuleType):
        return sys.modules.get(value.__name__) is value
    return not callable(value) or type(value).__module__ in ("typing", "types")


def _is_called(name: str, own_name: str) -> bool:
    return name.strip("_") == own_name.strip("_") or (name, own_name) in _ALIASES


def _is_ours(module: str) -> bool:
    root = module.partition(".")[0]
    return root in _OURS or root in sys.stdlib_module_names


def _module_of(function: types.FunctionType) -> types.ModuleType:
    """Returns the module in which a function looks up names, or raises _AlteredError if it is none that is followed."""
    module = sys.modules.get(function.__globals__.get("__name__", ""))
    if module is None or vars(module) is not function.__globals__ or not _is_ours(module.__name__):
        raise _AlteredError(function)
    return module


def _wrapped_functions(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """Yields the functions that a decorated function keeps in its closure."""
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, types.FunctionType):
            yield cell.cell_contents


@cache
def _fingerprints_of_file(module: types.ModuleType) -> set[Any]:
    """Returns the fingerprints of all code that the file of a module compiles to, or none if it has no file."""
    loader: Any = module.__spec__.loader if module.__spec__ else None
    if not hasattr(loader, "get_code"):
        return set()
    code = loader.get_code(module.__name__)
    if code is None:
        return set()
    return {_fingerprint(part) for part in _nested(code)}


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yields some code and all code inside: of functions, classes and comprehensions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _fingerprint(code: types.CodeType) -> tuple[Any, ...]:
    """Returns what makes out a function: its names, instructions and constants."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            constants.append(_fingerprint(constant))
        else:
            constants.append((type(constant), constant))
    return (
        code.co_qualname,
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        *constants,
    )
