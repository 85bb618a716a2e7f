"""The code of a division or defence of somebody's own, so that a result is not taken for that of an earlier version."""

import hashlib
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

KNOWN_PACKAGES = ("agnncert", "agnncert_peers", "agnncert_large", "agnncert_live", "agnncert_code", "abc", "builtins")


def digest_of_own_code(value: Any) -> str:
    """Digests the methods and constants of classes that are not this library's; "" if there are none.

    The class of ``value`` counts, its base classes, and those of its fields if it is a dataclass. Functions that
    methods call do not.
    """
    texts = sorted(set(_described(value)))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16] if texts else ""


def _described(value: Any) -> Iterator[str]:
    """Yields a text for each member of each class of somebody's own."""
    for each in type(value).__mro__:
        if each.__module__.partition(".")[0] in KNOWN_PACKAGES:
            continue
        for name, member in vars(each).items():
            if code := _code_of(member):
                yield f"{each.__qualname__}.{name} {_instructions(code)}"
            elif not name.startswith("__") and isinstance(member, int | float | str | tuple | types.MappingProxyType):
                yield f"{each.__qualname__}.{name} {member!r}"
    if is_dataclass(value):
        for one in fields(value):
            yield from _described(getattr(value, one.name))


def _code_of(member: Any) -> types.CodeType | None:
    """Returns the code behind a method or property."""
    if isinstance(member, property):
        member = member.fget
    if isinstance(member, cached_property):
        member = member.func
    if isinstance(member, classmethod | staticmethod):
        member = member.__func__
    return getattr(member, "__code__", None)


def _instructions(code: types.CodeType) -> str:
    """Describes instructions, names and constants, the same in every process."""
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {[_constant(one) for one in code.co_consts]}"


def _constant(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return _instructions(value)
    if isinstance(value, frozenset):  # its order differs between processes
        return str(sorted(map(repr, value)))
    return repr(value)
