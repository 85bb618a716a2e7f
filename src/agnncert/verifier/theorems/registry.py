"""Finds what derives the statements of a theorem again, by the name that stands in a file."""

from collections.abc import Mapping

from agnncert.addons import addons
from agnncert.certificates.theorem_facts import facts_of
from agnncert.errors import CertificateError
from agnncert.verifier.theorems.theorem import Recount


def recount_of(theorem: str) -> Recount:
    """Returns what derives statements under a theorem again.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
        CertificateError: Nothing here knows the theorem, or nothing derives its statements again.
    """
    facts = facts_of(theorem)
    point = addons("agnncert.theorem_recounts").get(theorem.partition("/")[0])
    theorems: Mapping[str, Recount] = point.load() if point is not None else {}
    if facts.task not in theorems:
        raise CertificateError(
            f"nothing here derives statements under the theorem {theorem!r} again: name what does under "
            "[agnncert.theorem_recounts] in the entry points of the package that has its facts."
        )
    return theorems[facts.task]
