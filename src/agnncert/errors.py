"""Everything agnncert raises on purpose.

AgnncertError
├── GraphError           the graph cannot be used as it is (no nodes, NaN features, edge out of range, …)
│   └── IdError          node ids are missing, of a wrong type, or not unique once encoded
├── DivisionError        a division's settings make no sense (T < 1, unknown hash, …)
│   └── NotCovered       a change touches something this division proves nothing about
├── ModelContractError   the module breaks what the proof needs, or cannot be called as documented
├── BudgetError          a budget that no attacker can have (negative, fractional, unknown field)
├── DatasetError         a dataset or table is missing, unreachable or malformed
├── CertificateError     a certificate file is damaged, altered, or from a future version
├── SettingsError        a setting, option or key is unknown or has a senseless value
└── MissingPackage       a package is not installed; says which extra brings it
"""

from collections.abc import Iterable
from difflib import get_close_matches


class AgnncertError(Exception):
    """Base of all errors of this library; the message names what was found and what to do."""


class GraphError(AgnncertError):
    """The graph cannot be divided or certified as it is."""


class IdError(GraphError):
    """Node ids are missing, of a wrong type, or not unique once encoded."""


class DivisionError(AgnncertError):
    """A division cannot be built or used with these settings."""


class NotCovered(DivisionError):  # noqa: N818 - reads as a statement where it is raised
    """A change touches something the division proves nothing about."""


class ModelContractError(AgnncertError):
    """The model breaks an assumption of the proof, or cannot be called as documented."""


class BudgetError(AgnncertError):
    """The budget is not one an attacker can have."""


class DatasetError(AgnncertError):
    """A dataset or table is missing, unreachable or malformed."""


class CertificateError(AgnncertError):
    """A certificate file is damaged, altered or of an unknown version."""


class SettingsError(AgnncertError):
    """A setting is unknown or senseless."""


class MissingPackage(AgnncertError, ModuleNotFoundError):  # noqa: N818 - reads as a statement where it is raised
    """A package that an extra of this library brings is not installed."""


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The tail of an error message: the nearest valid word, and all of them.

    Example:
        >>> did_you_mean("md6", ["md5", "sha1"])
        'did you mean "md5"? Valid: md5, sha1.'
    """
    options = list(valid)
    near = get_close_matches(word.lower(), [o.lower() for o in options], n=1, cutoff=0.5)
    hint = f'did you mean "{next(o for o in options if o.lower() == near[0])}"? ' if near else ""
    return f"{hint}Valid: {', '.join(options)}."
