"""Names of classes: what a certificate may call them, and how they are read from data and from files."""

import logging
import reprlib
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from agnncert.errors import CertificateError, SettingsError
from agnncert.storage import is_command, visible

log = logging.getLogger(__name__)

LONGEST_NAME = 200  # characters
LONGEST_NAMES = 2**17  # characters of all names together


def checked_class_names(names: Any) -> tuple[str, ...]:
    """Returns the names of classes in the order of their numbers, as a certificate holds them.

    Raises:
        CertificateError: They are no list of texts, two classes have the same name, or a name is empty, too long, or
            has characters that control a terminal.
    """
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise CertificateError(f"the names of the classes are {reprlib.repr(names)}: expected a list of texts.")
    for name in names:
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or any(map(is_command, name)):
            raise CertificateError(
                f"a class is called {reprlib.repr(name)}: expected a line of 1 to {LONGEST_NAME} characters."
            )
    if len(set(names)) < len(names):
        raise CertificateError(
            f"two classes have the same name, so that nobody can tell them apart: {list(names)!r:.200}."
        )
    if sum(map(len, names)) > LONGEST_NAMES:
        raise CertificateError(f"the names of {len(names):,} classes are longer than {LONGEST_NAMES:,} characters.")
    return tuple(names)


def names_in_data(data: Any, num_classes: int) -> tuple[str, ...]:
    """Returns the names that data gives its classes (``data.class_names``), or nothing if they cannot be used.

    A warning in the log says why names are left out.

    Args:
        data: A graph, a list of graphs, either of them in canonical form, or anything else.
        num_classes: How many classes there are.
    """
    as_given = getattr(data, "data", data)  # of data in canonical form
    names = getattr(as_given, "class_names", None)
    if names is None or isinstance(names, str) or not isinstance(names, Iterable):
        return ()
    printable = [visible(str(name)) for name in names]
    if len(printable) != num_classes:
        log.warning("data.class_names has %d names, the model has %d classes: left out.", len(printable), num_classes)
        return ()
    try:
        return checked_class_names(printable)
    except CertificateError as error:
        log.warning("data.class_names is left out: %s", error)
        return ()


def stated_names(data: Any) -> tuple[str, ...]:
    """Returns the names that data gives its classes, whatever their number, or nothing if they cannot be used."""
    names = getattr(getattr(data, "data", data), "class_names", None)
    return names_in_data(data, len(names)) if isinstance(names, Sequence) and not isinstance(names, str) else ()


def class_number(given: int | str | None, names: Sequence[str]) -> int | None:
    """Returns a class by its number, which may be given by its name; ``None`` if none is given.

    Raises:
        SettingsError: There is no such class.
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given in names:
            return list(names).index(given)
        known = ", ".join(names) or "numbers: data.class_names gives them names"
        raise SettingsError(f"positive={given!r:.60}: the classes are {known}.")
    if isinstance(given, bool) or not isinstance(given, Integral) or not 0 <= given < (len(names) or given + 1):
        raise SettingsError(f"positive={given!r:.60}: expected the number of a class, or its name.")
    return int(given)


def class_word(names: Sequence[str] | None, k: int) -> str:
    """Returns the name of a class, or "class" and its number.

    Example:
        >>> class_word(["honest", "fraud"], 1), class_word([], 1)
        ('fraud', 'class 1')
    """
    if names is None or not 0 <= k < len(names):
        return f"class {k}"
    return str(names[k])
