"""Reads what a certificate file says (:class:`Contents`), and writes it.

A file holds evidence, the claim, and statements: labels, radii, new neighbours, and for some budgets what holds target
by target, how many targets can break and, if that was asked for, how many cannot get each label. Nothing is derived
here: ``proving.certificate`` makes the statements from the evidence, ``verifier`` derives them again.
"""

import json
import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import COUNTS, TRAINING, Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.class_names import checked_class_names
from agnncert.certificates.ids import id_array
from agnncert.errors import BudgetError, CertificateError, IdError
from agnncert.storage import Arrays, is_command, read_sealed, write_sealed

FORMAT = "agnncert-certificate"
VERSION = 1


_FIELDS = ("format", "version", "file_sha256", "kind", "settings", "claim", "statements")
ISSUED = ("by", "on", "system", "until")  # what may be stated about the hand-over, as "issued" in the header
PER_TARGET = {"row": np.int64, "label": np.int64, "radius": np.int64, "new_neighbours": np.float64}
KNOWN = {"truth": np.int64, "degree": np.int64}
OPTIONAL = {**KNOWN, "structure_radius": np.int64}
_PREFIX = "evidence."
_SHA256 = re.compile(r"[0-9a-f]{64}")

# What a verifier accepts, so that its work is bounded by the size of the file.
LONGEST_HEADER = 2**20  # bytes
MOST_STATEMENTS = 250
MOST_EXCLUSIONS = 10  # budgets for which a file says who cannot get a label
MOST_EXCLUDED_CLASSES = 100  # classes of which it says so
LONGEST_TEXT = 20_000  # characters
LONGEST_STATEMENT = 200  # characters of each entry of "issued"
LARGEST_NUMBER = 2**128
DEEPEST = 8  # lists and objects within each other
_EXACT = 2**53  # whole numbers up to here are exact in floating point
_DEFAULT = Budget()


@dataclass(frozen=True)
class Contents:
    """What a file says. Types and lengths have been checked, but nothing has been derived.

    Attributes:
        kind: Kind of evidence, such as ``"votes"``, ``"samples"`` or ``"stacked"``.
        settings: Settings of the evidence.
        claim: What is proved, in words.
        budgets: The budgets that the file makes statements about.
        broken_at_most: Stated collective bound for each budget.
        evidence: Arrays of the evidence.
        arrays: ``target``, ``row``, ``label``, ``radius``, ``new_neighbours``, ``holds`` (one row for each
            budget), ``truth`` and ``degree`` if known, and ``structure_radius`` if the theorem has its own.
        issued: Who issued it (``by``), when (``on``), for which ``system`` and ``until`` when. What is not stated is
            absent.
        excluded: For each budget and class, the stated number of targets that cannot get this label. The numbers of a
            budget are empty if the file does not state them, and all of this is empty if it does so for no budget.
        class_names: What each class is called. It is empty if classes have numbers only.
    """

    kind: str
    settings: dict[str, Any]
    claim: Claim
    budgets: tuple[Budget, ...]
    broken_at_most: tuple[int, ...]
    evidence: Arrays
    arrays: Arrays
    issued: dict[str, str] = field(default_factory=dict)
    excluded: tuple[tuple[int, ...], ...] = ()
    class_names: tuple[str, ...] = ()


def checked_issue(issued: Any) -> dict[str, str]:
    """Returns what is stated about the hand-over, with dates as YYYY-MM-DD.

    Raises:
        CertificateError: A key is unknown, a text is empty, too long or has several lines, or a date is none.
    """
    if not isinstance(issued, Mapping) or not issued or not set(issued) <= set(ISSUED):
        raise CertificateError(f"issued={reprlib.repr(issued)}: expected some of {', '.join(ISSUED)}.")
    for name, value in issued.items():
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_STATEMENT or not value.isprintable():
            raise CertificateError(
                f'issued: "{name}" is {reprlib.repr(value)}: expected a line of 1 to {LONGEST_STATEMENT} characters.'
            )
    dates = {name: issued[name] for name in ("on", "until") if name in issued}
    for name, value in dates.items():
        if not _is_date(value):
            raise CertificateError(f'issued: "{name}" is {value!r}: expected a date such as 2027-12-31.')
    if "on" in dates and "until" in dates and dates["until"] < dates["on"]:
        raise CertificateError(f"issued: it ends on {dates['until']}, before it begins on {dates['on']}.")
    return dict(issued)


def _is_date(text: str) -> bool:
    """Tells whether a text is a date as YYYY-MM-DD. Python reads other spellings as well."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def checked_exclusions(excluded: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Returns who cannot get which label, as stated, and nothing if no number is stated.

    Raises:
        CertificateError: It is about more than ``MOST_EXCLUSIONS`` budgets or ``MOST_EXCLUDED_CLASSES`` classes.
    """
    num_classes = [len(numbers) for numbers in excluded if numbers]
    if len(num_classes) > MOST_EXCLUSIONS or max(num_classes, default=0) > MOST_EXCLUDED_CLASSES:
        most = f"{MOST_EXCLUSIONS} budgets and {MOST_EXCLUDED_CLASSES} classes"
        raise CertificateError(f"it is stated who cannot get a label: at most of {most}, or checking takes long.")
    return excluded if num_classes else ()


def write_contents(path: str | Path, contents: Contents) -> None:
    """Writes the file, all of it or nothing.

    Raises:
        CertificateError: It cannot be written.
    """
    arrays = {name: array for name, array in contents.arrays.items() if name != "target"}
    arrays |= _ids_to_arrays(contents.arrays["target"])
    arrays |= {_PREFIX + name: array for name, array in contents.evidence.items()}
    write_sealed(Path(path), contents_header(contents), arrays)


def contents_header(contents: Contents) -> dict[str, Any]:
    """Returns what the header of a file says, which is all but the arrays."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kind": contents.kind,
        "settings": contents.settings,
        "claim": contents.claim.to_json(),
        "statements": _statements_to_json(contents),
    }
    if contents.issued:
        header["issued"] = checked_issue(contents.issued)
    if contents.class_names:
        header["class_names"] = list(checked_class_names(contents.class_names))
    return header


def read_contents(path: str | Path) -> Contents:
    """Reads what a file says, without deriving anything.

    Raises:
        CertificateError: The file is not a certificate, was altered or cut short, or is of another version.
    """
    header, arrays = read_sealed(Path(path), FORMAT, VERSION, longest_header=LONGEST_HEADER)
    try:
        return _contents(header, arrays)
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from error


def _contents(header: dict[str, Any], arrays: Arrays) -> Contents:
    """Returns what header and arrays of a file say."""
    _check_plain(header)
    issued = checked_issue(header.pop("issued")) if "issued" in header else {}
    class_names = _class_names(header.pop("class_names")) if "class_names" in header else ()
    _check_fields(header)
    statements = _statements(header["statements"])
    evidence = {name: array for name, array in arrays.items() if name.startswith(_PREFIX)}
    others = {name: array for name, array in arrays.items() if not name.startswith(_PREFIX)}
    return Contents(
        kind=header["kind"],
        settings=header["settings"],
        claim=_claim(header["claim"]),
        budgets=tuple(statement.budget for statement in statements),
        broken_at_most=tuple(statement.broken_at_most for statement in statements),
        evidence={name.removeprefix(_PREFIX): array for name, array in evidence.items()},
        arrays=_checked(_arrays_to_ids(others), len(statements)),
        issued=issued,
        excluded=checked_exclusions(tuple(statement.excluded for statement in statements)),
        class_names=class_names,
    )


def _class_names(stored: Any) -> tuple[str, ...]:
    """Returns the names of classes that a header states. A file without names does not state an empty list of them."""
    names = checked_class_names(stored)
    if not names:
        raise CertificateError("the header has a list of class names without a name.")
    return names


def _check_fields(header: dict[str, Any]) -> None:
    """Refuses a header with missing or unknown fields, of an unknown kind, or without settings."""
    if sorted(header) != sorted(_FIELDS):
        shown = reprlib.repr(sorted(header))
        raise CertificateError(f"the header has the fields {shown}: expected {sorted(_FIELDS)}.")
    if not isinstance(header["kind"], str):
        raise CertificateError(f"the kind of evidence is {reprlib.repr(header['kind'])}: expected a name.")
    if not isinstance(header["settings"], dict):
        raise CertificateError(f"the settings are a {type(header['settings']).__name__}: expected names and values.")


def _claim(stored: Any) -> Claim:
    claim = Claim.from_json(stored)
    odd = [name for name, digest in claim.digests.items() if not _SHA256.fullmatch(digest)]
    if odd:
        raise CertificateError(f"the claim's digests of {reprlib.repr(odd)} are no SHA-256 in lower-case hex digits.")
    return claim


def _check_plain(value: Any, depth: int = 0) -> None:
    """Refuses a header that is too deep, has numbers or texts beyond measure, or texts that take over a terminal."""
    if depth > DEEPEST:
        raise CertificateError(f"the header has lists within lists, more than {DEEPEST} deep.")
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise CertificateError(f"a text has {len(value):,} characters: expected at most {LONGEST_TEXT:,}.")
        if not value.isprintable() and any(map(is_command, value)):
            raise CertificateError(f"a text has control characters: {reprlib.repr(value)}.")
    elif isinstance(value, int | float):
        if abs(value) >= LARGEST_NUMBER:
            raise CertificateError(f"a number is too large: {reprlib.repr(value)}.")
    elif isinstance(value, dict):
        _check_plain(list(value), depth)
        _check_plain(list(value.values()), depth)
    elif isinstance(value, list):
        for item in value:
            _check_plain(item, depth + 1)


def _checked(arrays: Arrays, num_budgets: int) -> Arrays:
    """Returns the arrays of the statements, if they have the names, types and lengths that they must have."""
    required = {"target", "holds", *PER_TARGET}
    if not required <= set(arrays) <= required | set(OPTIONAL):
        raise CertificateError(f"the arrays are {reprlib.repr(sorted(arrays))}: expected {sorted(required)}.")
    num_targets = len(arrays["target"])
    _check_array("holds", arrays["holds"], np.dtype(np.bool_), (num_budgets, num_targets))
    for name, dtype in (PER_TARGET | OPTIONAL).items():
        if name in arrays:
            _check_array(name, arrays[name], np.dtype(dtype), (num_targets,))
    return arrays


def _check_array(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if array.dtype != dtype or array.shape != shape:
        raise CertificateError(f'"{name}" is {array.dtype}{list(array.shape)}: expected {dtype}{list(shape)}.')


@dataclass(frozen=True)
class _Statement:
    """What a file states about a budget, but for what holds target by target.

    Attributes:
        budget: The budget.
        broken_at_most: How many targets one attacked graph can break.
        excluded: How many targets cannot get each label. It is empty if the file does not state it.
    """

    budget: Budget
    broken_at_most: int
    excluded: tuple[int, ...]


def _statements(stored: Any) -> list[_Statement]:
    """Returns what a header states about budgets."""
    if not isinstance(stored, list) or not all(map(_is_statement, stored)):
        raise CertificateError("the statements are not pairs of a budget and a number of broken targets.")
    if len(stored) > MOST_STATEMENTS:
        raise CertificateError(
            f"there are statements about {len(stored):,} budgets: at most {MOST_STATEMENTS} are read."
        )
    try:
        budgets = [_budget_from_json(statement["budget"]) for statement in stored]
    except (BudgetError, TypeError) as error:
        raise CertificateError(f"a statement is about a budget that makes no sense: {str(error)[:300]}") from error
    return [
        _Statement(budget, statement["broken_at_most"], tuple(statement.get("excluded", ())))
        for budget, statement in zip(budgets, stored, strict=True)
    ]


def _is_statement(stored: Any) -> bool:
    """Tells whether names and types are those of a statement. Excluded numbers, if there are any, are not empty."""
    if not isinstance(stored, dict) or set(stored) - {"excluded"} != {"budget", "broken_at_most"}:
        return False
    if type(stored["broken_at_most"]) is not int or not isinstance(stored["budget"], dict):
        return False
    if "excluded" not in stored:
        return True
    numbers = stored["excluded"]
    return isinstance(numbers, list) and bool(numbers) and all(type(number) is int for number in numbers)


def _statements_to_json(contents: Contents) -> list[dict[str, Any]]:
    """Returns the statements about budgets as they are written to the header."""
    excluded = checked_exclusions(contents.excluded) or ((),) * len(contents.budgets)
    statements = []
    for budget, broken, numbers in zip(contents.budgets, contents.broken_at_most, excluded, strict=True):
        statement: dict[str, Any] = {"budget": _budget_to_json(budget), "broken_at_most": broken}
        if numbers:
            statement["excluded"] = list(numbers)
        statements.append(statement)
    return statements


def _budget_to_json(budget: Budget) -> dict[str, Any]:
    """Returns the fields of a budget that differ from their defaults. JSON has no infinity, so it is spelled out.

    How many edges injected nodes may have is written wherever nodes are injected, so that nobody has to know a default.
    """
    counts = {name: getattr(budget, name) for name in (*COUNTS, *TRAINING)}
    if not budget.inject_nodes and budget.edges_per_injected == _DEFAULT.edges_per_injected:
        del counts["edges_per_injected"]
    stored: dict[str, Any] = {}
    for name, value in counts.items():
        if value or name == "edges_per_injected":
            stored[name] = "inf" if math.isinf(value) else int(value)
    if budget.target_features:
        stored["target_features"] = True
    return stored


def _budget_from_json(stored: dict[str, Any]) -> Budget:
    """Returns the budget of a statement; raises BudgetError or TypeError for what is not written as one."""
    fields: dict[str, Any] = {name: math.inf if value == "inf" else value for name, value in stored.items()}
    budget = Budget(**fields)
    if any(_EXACT < getattr(budget, name) < math.inf for name in (*COUNTS, *TRAINING)):
        raise BudgetError(f"a number is larger than {_EXACT:,}, but not infinite.")
    if json.dumps(_budget_to_json(budget), sort_keys=True) != json.dumps(stored, sort_keys=True):
        raise BudgetError(f"{reprlib.repr(stored)} is not how a budget is written.")
    return budget


def _ids_to_arrays(target: npt.NDArray[Any]) -> Arrays:
    """Returns ids as arrays: integers of 64 bits as they are, others as texts that tell their canonical forms."""
    if target.dtype == np.int64:
        return {"target": target}
    encoded = [str(node_id).encode() for node_id in target.tolist()]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {"target.text": np.frombuffer(b"".join(encoded), dtype=np.uint8), "target.ptr": ends}


def _arrays_to_ids(arrays: Arrays) -> Arrays:
    """Returns the same arrays, with ids that are text put together again as ``target``, in canonical form."""
    if "target" in arrays and arrays["target"].dtype == np.int64 and arrays["target"].ndim == 1:
        return arrays
    others = dict(arrays)
    try:
        ids = _ids_from_text(others.pop("target.text"), others.pop("target.ptr"))
    except (KeyError, ValueError, IndexError, IdError) as error:
        raise CertificateError(f"the ids of the targets cannot be read: {error}.") from error
    return others | {"target": ids}


def _ids_from_text(text: npt.NDArray[Any], ptr: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns ids in canonical form: id ``j`` is the UTF-8 text ``ptr[j]:ptr[j + 1]``."""
    if text.dtype != np.uint8 or ptr.dtype != np.int64 or ptr.ndim != 1 or text.ndim != 1:
        raise ValueError("wrong types")
    if ptr[0] != 0 or ptr[-1] != len(text) or (ptr[1:] < ptr[:-1]).any():
        raise ValueError("wrong lengths")
    joined = text.tobytes()
    return id_array([joined[start:end].decode() for start, end in pairwise(ptr.tolist())])
