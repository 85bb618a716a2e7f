"""Everything agnncert raises on purpose.

AgnncertError
├── GraphError           the graph cannot be used (no nodes, NaN features, edge out of range, …)
│   └── IdError          node ids are missing, of a wrong type, or not unique once encoded
├── DivisionError        a division's settings make no sense (T < 1, unknown hash, …)
│   └── NotCovered       a change touches something this division proves nothing about
├── ModelContractError   the module breaks what the proof needs, or cannot be called as documented
├── BudgetError          a budget that no attacker can have (negative, fractional, unknown field)
├── DatasetError         a dataset or table is missing, unreachable or malformed
├── CertificateError     a certificate file is damaged, altered, or of another version
├── SettingsError        a setting, option or key is unknown or has a senseless value
├── WorkersError         machines that share the work are missing, are others than expected, or keep failing
└── MissingPackage       a package is not installed; says which extra brings it

``EXTRAS`` says which extra of this package installs which other package.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from functools import cache, wraps
from typing import Any, Self, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


class AgnncertError(Exception):
    """Base of all errors of this library. The message names what was found and what to do."""


class GraphError(AgnncertError):
    """The graph cannot be divided or certified."""


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
    """A certificate file is damaged, altered or of another version."""


class SettingsError(AgnncertError):
    """A setting is unknown or senseless."""


class WorkersError(AgnncertError):
    """The machines that were to share the work are not there, are others than expected, or keep failing."""


class MissingPackage(AgnncertError, ModuleNotFoundError):  # noqa: N818 - reads as a statement where it is raised
    """A package that an extra of this library brings is not installed."""


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """Returns the tail of an error message: the nearest valid word, and all of them.

    Args:
        word: What was typed.
        valid: What could have been typed.

    Example:
        >>> did_you_mean("md6", ["md5", "sha1"])
        'did you mean "md5"? Valid: md5, sha1.'
    """
    options = list(valid)
    all_of_them = f"Valid: {', '.join(options)}."
    typed = word.lower()

    def similarity(option: str) -> float:
        return SequenceMatcher(None, typed, option.lower()).ratio()

    def nearness(option: str) -> tuple[bool, float]:
        return sorted(option.lower()) == sorted(typed), similarity(option)

    nearest = max(options, key=nearness, default="")
    if not nearest or similarity(nearest) < 0.5:
        return all_of_them
    return f'did you mean "{nearest}"? {all_of_them}'


def suggests_arguments(function: Function) -> Function:
    """Makes a function answer arguments that it does not have: with the nearest name that it has, or with its order.

    Example:
        >>> @suggests_arguments
        ... def build(num_layers=3): ...
        >>> build(layers=2)
        Traceback (most recent call last):
        agnncert.errors.SettingsError: build has no argument "layers": did you mean "num_layers"? Valid: num_layers.
    """
    parameters = inspect.signature(function).parameters
    valid = list(parameters)
    in_order = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters.values())

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        for name in named:
            if name not in valid:
                raise SettingsError(f'{function.__name__} has no argument "{name}": {did_you_mean(name, valid)}')
        if len(args) > len(in_order) and not takes_any:
            raise SettingsError(
                f"{function.__name__} takes {len(in_order)} arguments by their order ({', '.join(in_order)}), got "
                f"{len(args)}: pass the others by name."
            )
        return function(*args, **named)

    return cast(Function, checked)


class SuggestsSettings:
    """A class that answers a setting that it does not have with the nearest one that it has."""

    def __new__(cls, *_args: object, **named: object) -> Self:
        """Refuses names that ``__init__`` would refuse with a TypeError."""
        parameters = _parameters_of(cls.__init__)
        takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        valid = list(parameters)[1:]
        for name in named:
            if name not in valid and not takes_any:
                raise SettingsError(f'{cls.__name__} has no setting "{name}": {did_you_mean(name, valid)}')
        return super().__new__(cls)


@cache
def _parameters_of(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


# Which extra of this package installs which other package.
EXTRAS = {
    "torch": "torch",
    "torch_geometric": "torch",
    "scipy": "torch",
    "sklearn": "data",
    "pandas": "data",
    "pyarrow": "data",
    "duckdb": "data",
    "matplotlib": "figures",
    "mlflow": "mlflow",
}
# Which add-on package of the repository, on no package index, brings which other package.
ADDONS = {
    "agnncert_live": "agnncert-live",
    "fastapi": "agnncert-live",
    "prometheus_client": "agnncert-live",
    "uvicorn": "agnncert-live",
    "agnncert_peers": "agnncert-peers",
    "agnncert_large": "agnncert-large",
    "pymetis": "agnncert-large[clusters]",
    "ray": "agnncert-large[ray]",
    "agnncert_code": "agnncert-code",
    "tree_sitter": "agnncert-code",
    "tree_sitter_c": "agnncert-code",
    "tree_sitter_cpp": "agnncert-code",
}


def missing(package: str | None, purpose: str = "this") -> MissingPackage:
    """Returns the error for a package that cannot be imported, to be raised.

    Args:
        package: Name of the module, as ``ModuleNotFoundError`` has it.
        purpose: What needs it.

    Example:
        >>> print(missing("pandas", "reading tables"))
        reading tables needs pandas, which is not installed: pip install ".[data]" in a clone of agnncert.
    """
    name = (package or "a package").partition(".")[0]
    return MissingPackage(f"{purpose} needs {name}, which is not installed: {_command_for(name)}.", name=name)


def _command_for(package: str) -> str:
    """Returns the command that installs a package."""
    if package in ADDONS:
        return f"pip install ./packages/{ADDONS[package]} in a clone of agnncert"
    if package not in EXTRAS:
        return f"pip install {package}"
    command = f'pip install ".[{EXTRAS[package]}]" in a clone of agnncert'
    if EXTRAS[package] == "torch":
        command += ', or ".[all]" for everything'
    return command
