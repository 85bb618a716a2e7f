"""Which module checks which kind of certificate file.

Such a module derives the statements of a file again, in code that shares nothing with what made them. It has

* ``check(contents) -> list[str]``: what is wrong with the statements of a file;
* ``possible(contents, budget)``: which classes each target may get under an attack, shape ``[n, num_classes]``;
* ``breaks(contents)``: a function from a budget to the targets whose label may change, shape ``[n]``;
* ``not_checked(contents)``: what the file alone cannot show, and what to pass to have it checked;
* ``TRAINING_FIELDS``, if it proves something about training data: the names of these fields of a budget.
"""

import reprlib
from collections.abc import Callable
from typing import Protocol

from agnncert.addons import ADD_ON_KINDS, addons
from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray
from agnncert.errors import CertificateError, missing


class FileChecker(Protocol):
    """The functions of a module that checks one kind of file."""

    def check(self, contents: Contents) -> list[str]:
        """Returns what is wrong with the statements of a file."""

    def possible(self, contents: Contents, budget: Budget) -> BoolArray:
        """Returns which classes each target may get under an attack, shape ``[n, num_classes]``."""

    def breaks(self, contents: Contents) -> Callable[[Budget], BoolArray]:
        """Returns a function from a budget to the targets whose label may change, shape ``[n]``."""

    def not_checked(self, contents: Contents) -> tuple[str, ...]:
        """Returns what the file alone cannot show, and what to pass to have it checked."""


def training_fields(checker: FileChecker) -> tuple[str, ...]:
    """Returns about which fields of a budget that poison training data something is proved in the files it checks."""
    return tuple(getattr(checker, "TRAINING_FIELDS", ()))


def checker_of(kind: str) -> FileChecker:
    """Returns the module that checks files with this kind of evidence.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
        CertificateError: Nothing here knows the kind.
    """
    point = addons("agnncert.verifier").get(kind)
    if point is not None:
        checker: FileChecker = point.load()
        return checker
    if kind in ADD_ON_KINDS:
        raise missing(*ADD_ON_KINDS[kind])
    known = ", ".join(sorted({*addons("agnncert.verifier"), *ADD_ON_KINDS}))
    raise CertificateError(f"unknown kind of evidence {reprlib.repr(kind)}: expected {known}.")
