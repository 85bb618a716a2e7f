"""How records of evidence are checked on construction: those of a file come from somebody who is not trusted."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from agnncert.errors import CertificateError


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


def wrong_types(record: object, dtypes: Mapping[str, Any]) -> str:
    """Returns which array of a record is of another type than it has to be, or nothing."""
    for name, dtype in dtypes.items():
        found = getattr(record, name).dtype
        if found != dtype:
            return f"{name} is of type {found}, expected {np.dtype(dtype)}"
    return ""
