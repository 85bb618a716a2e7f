"""Finds the object of a theorem by the name that stands in a file."""

from collections.abc import Mapping

from agnncert.addons import addons
from agnncert.certificates.theorem_facts import facts_of
from agnncert.divided.theorems.theorem import Theorem
from agnncert.errors import DivisionError


def theorem_of(name: str) -> Theorem:
    """Returns what proves statements about votes that are counted by a theorem.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
        CertificateError: Nothing here knows the theorem.
        DivisionError: There are facts about it, but nothing that proves with it.
    """
    facts = facts_of(name)
    point = addons("agnncert.theorems").get(name.partition("/")[0])
    theorems: Mapping[str, Theorem] = point.load() if point is not None else {}
    if facts.task not in theorems:
        raise DivisionError(
            f"nothing proves statements with the theorem {name!r}: name its object under "
            "[agnncert.theorems] in the entry points of the package that has its facts."
        )
    return theorems[facts.task]
