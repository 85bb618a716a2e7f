"""``Record``: the evidence of a file as arrays and settings, which say how they look; reading, writing, checks of form.

What stands in a file comes from somebody who is not trusted. A kind of evidence declares its arrays, and adds what its
own checks are; a record of it is checked on construction.
"""

import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.errors import CertificateError


@dataclass(frozen=True)
class Array:
    """How an array looks.

    Attributes:
        dtype: Type of its entries.
        shape: Its dimensions, such as ``"n C"``. Arrays that name the same one have the same size there; ``"n+1"`` is
            one more, and a number is that size.
        low: The smallest entry that it may have, if there is one.
        high: The largest.
    """

    dtype: Any
    shape: str
    low: int | None = None
    high: int | None = None


def wrong_form(arrays: Mapping[str, Any], declared: Mapping[str, Array], sizes: Mapping[str, int]) -> str:
    """Returns what is wrong with types, shapes or ranges of arrays, or nothing.

    Args:
        arrays: The arrays by name.
        declared: How each of them has to look.
        sizes: Sizes of dimensions that are known. The first array that names another one says its size.
    """
    for name, expected in declared.items():
        found = arrays[name]
        if not isinstance(found, np.ndarray):
            return f"{name} is a {type(found).__name__}, expected an array"
        if found.dtype != expected.dtype:
            return f"{name} is of type {found.dtype}, expected {np.dtype(expected.dtype)}"
    return wrong_shapes(arrays, declared, sizes) or wrong_ranges(arrays, declared)


def wrong_shapes(arrays: Mapping[str, Any], declared: Mapping[str, Array], sizes: Mapping[str, int]) -> str:
    """Returns which array has a shape that does not fit the others; arguments as in :func:`wrong_form`."""
    known = dict(sizes)
    for name, expected in declared.items():
        dimensions = expected.shape.split()
        shape = arrays[name].shape
        if len(shape) != len(dimensions):
            return f"{name} has {len(shape)} dimensions, expected {len(dimensions)}"
        for dimension, size in zip(dimensions, shape, strict=True):
            word, _, more = dimension.partition("+")
            there = int(word) if word.isdecimal() else known.setdefault(word, size - int(more or 0))
            if there < 0 or size != there + int(more or 0):
                return f"{name} has the shape {list(shape)}, which does not fit the rest: expected [{expected.shape}]"
    return ""


def wrong_ranges(arrays: Mapping[str, Any], declared: Mapping[str, Array]) -> str:
    """Returns which array has an entry that is too small or too large; arguments as in :func:`wrong_form`."""
    for name, expected in declared.items():
        found = arrays[name]
        if not found.size:
            continue
        # Not by absolute value: that of the smallest whole number is negative.
        if expected.low is not None and found.min() < expected.low:
            return f"{name} has an entry of {found.min()}, expected at least {expected.low}"
        if expected.high is not None and found.max() > expected.high:
            return f"{name} has an entry of {found.max()}, expected at most {expected.high}"
    return ""


def require_sense(what: str, checks: Iterable[Callable[[], str]]) -> None:
    """Runs checks in their order: a check relies on those before it.

    Args:
        what: What is checked, in words, such as "the stacked votes".
        checks: Functions that return what is wrong, or nothing.

    Raises:
        CertificateError: Something is wrong.
    """
    for check in checks:
        wrong = check()
        if wrong:
            raise CertificateError(f"{what} make no sense: {wrong}.")


class Record:
    """Arrays and settings of a file. A subclass is a frozen dataclass whose other fields are its settings.

    Attributes:
        called: What it is called in messages, in the plural, such as "the stacked votes".
        arrays: How its arrays look, by name.
        stated_later: Settings that files did not state at first, with the value that they then have. They are left out
            of a file where they have it, so that such files are written as they were.
        lists: Settings that are lists in a file, and tuples here.
    """

    called: ClassVar[str]
    arrays: ClassVar[Mapping[str, Array]]
    stated_later: ClassVar[Mapping[str, Any]] = {}
    lists: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self.lists:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        require_sense(self.called, (self._wrong_form, *self.checks()))

    def sizes(self) -> dict[str, int]:
        """Returns sizes of dimensions that follow from settings. By default, arrays say all of them."""
        return {}

    def checks(self) -> tuple[Callable[[], str], ...]:
        """Returns checks beyond types, shapes and ranges, in their order: functions that return what is wrong."""
        return ()

    def _wrong_form(self) -> str:
        return wrong_form(self.tensors(), self.arrays, self.sizes())

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns every array that :meth:`load` needs, by name."""
        return {name: getattr(self, name) for name in self.arrays}

    def settings(self) -> dict[str, Any]:
        """Returns everything else that :meth:`load` needs, as JSON values."""
        stored = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in self.arrays}  # type: ignore[arg-type]
        stored |= {name: list(stored[name]) for name in self.lists}
        usual = self.stated_later
        return {name: value for name, value in stored.items() if name not in usual or value != usual[name]}

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Returns the record of :meth:`tensors` and :meth:`settings`, which come from a file and are not trusted.

        Raises:
            CertificateError: They are not what such a record consists of.
        """
        stated = {**cls.stated_later, **settings}
        names = {each.name for each in fields(cls)} - {*cls.arrays}  # type: ignore[arg-type]
        if {*tensors} != {*cls.arrays} or {*stated} != names:
            odd = reprlib.repr(sorted({*tensors, *stated} ^ {*cls.arrays, *names}))
            parts = f"they consist of {', '.join(sorted(cls.arrays))} and {', '.join(sorted(names))}"
            raise CertificateError(f"{cls.called}: {odd} is missing or was not expected: {parts}.")
        for name in cls.lists:
            if not isinstance(stated[name], list):
                raise CertificateError(f"{cls.called}: {name} is {reprlib.repr(stated[name])}, expected a list.")
        return cls(**tensors, **stated)
