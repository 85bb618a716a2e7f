"""Everything that a model could remember between calls: numbers that can be reached from it, and from its code.

A model that counts its calls, in an integer, a buffer, a list or a global variable, may behave otherwise after the
thousandth. No test of its outputs would see that, so what it can remember is compared instead (``state_of``).
"""

import hashlib
import random
import types
from collections.abc import Iterator, Mapping
from functools import _lru_cache_wrapper, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST = 100_000  # things that are looked at
_OTHERS = ("torch", "torch_geometric", "numpy", "scipy", "agnncert", "builtins", "typing", "collections", "functools")
_HOLDERS = (dict, list, tuple, set)  # most of what has parts
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, torch.dtype)


def state_of(model: Any) -> dict[str, str]:
    """What a model could remember, by name: its attributes, those of its parts, and variables that its code names."""
    found = {"torch's random numbers": _digest(torch.get_rng_state())}
    found["Python's random numbers"] = str(hash(random.getstate()))
    found["numpy's random numbers"] = _digest(np.random.get_state()[1])  # type: ignore[index]
    seen: dict[int, Any] = {}
    waiting: list[tuple[str, Any]] = [("model", model)]
    while waiting and len(seen) < MOST:
        name, value = waiting.pop()
        text = None if id(value) in seen or isinstance(value, _HOLDERS) else _text(value)
        if text is not None:
            found[name if name not in found else f"{name} ({len(found)})"] = text
        elif id(value) not in seen:
            seen[id(value)] = value  # kept, so that no other object gets its number
            waiting += [(f"{name}{key}", part) for key, part in _parts(value) if id(part) not in seen]
    return found


def _text(value: Any) -> str | None:
    """A value without parts, written out; ``None`` if it has parts."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, Tensor):
        return f"{_digest(value)} {_around(value)}"
    if isinstance(value, np.ndarray):
        return f"{_digest(value)} {value.shape} {value.strides}"
    if isinstance(value, torch.Generator):
        return _digest(value.get_state())
    if isinstance(value, random.Random):
        return str(hash(value.getstate()))
    return repr(value.bit_generator.state) if isinstance(value, np.random.Generator) else None


def _around(value: Tensor) -> str:
    """What a tensor is beside its numbers: where they lie, how often they were written, gradient and attributes."""
    if value.layout != torch.strided:
        return ""
    written = "" if value.is_inference() else value._version
    gradient = value.grad if value.is_leaf else None
    kept = {name: _text(part) for name, part in vars(value).items()}
    place = (*value.shape, *value.stride(), value.storage_offset())
    return f"{place} {written} {kept or ''} {'' if gradient is None else _text(gradient)}"


def _digest(value: Any) -> str:
    if isinstance(value, Tensor):
        if value.is_meta or value.layout != torch.strided or type(value) not in (Tensor, torch.nn.Parameter):
            return f"{type(value).__name__} {tuple(value.shape)}"
        value = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, with the names of the parts."""
    if isinstance(value, (dict, Mapping)):  # a dictionary is quickly told
        yield from ((f"[{key!r:.40}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
        yield ("'s length", len(value))
        yield from ((f"[{k}]", part) for k, part in enumerate(value))
    elif isinstance(value, partial):
        yield from (("", value.func), ("", value.args), ("", value.keywords))
    elif isinstance(value, types.MethodType):
        yield from (("", value.__self__), ("", value.__func__))
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type):
        yield ("'s bases", len(value.__mro__))
        if value.__module__.partition(".")[0] not in _OTHERS:
            yield from ((f".{name}", part) for name, part in vars(value).items() if not name.startswith("__w"))
    elif isinstance(value, (property, staticmethod, classmethod)):
        yield from (("", getattr(value, name, None)) for name in ("fget", "fset", "__func__"))
    elif not isinstance(value, types.ModuleType):
        yield from _as_copied(value)  # first, since what comes last is looked at, and named, first
        slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
        yield from ((f".{name}", part) for name, part in dict.items(getattr(value, "__dict__", {})))
        yield from ((f".{name}", getattr(value, name, None)) for name in slots if isinstance(name, str))
        yield from (("", cls) for cls in type(value).__mro__)


def _as_copied(value: Any) -> Iterator[tuple[str, Any]]:
    """What Python itself takes along when it copies an object: the place of an iterator, the bytes of a stream."""
    if isinstance(value, _lru_cache_wrapper):
        yield ("'s size", value.cache_info().currsize)
    try:
        parts = value.__reduce_ex__(4)
    except Exception:  # cannot be copied, which ``Caller`` says of a model
        return
    yield from ((f"'s copy {k}", part) for k, part in enumerate(parts if isinstance(parts, tuple) else ()))


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function of somebody's own keeps: attributes, defaults, variables around it and global ones."""
    if function.__module__ is None or function.__module__.partition(".")[0] in _OTHERS:
        return
    yield from ((f".{name}", part) for name, part in vars(function).items())
    yield ("", function.__defaults__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield (f" {name}", _contents(cell))
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield (f" {name}", function.__globals__[name])


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
