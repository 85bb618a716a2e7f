"""What a certificate file says (:class:`Contents`), read from the file and written to it.

A file holds evidence, the claim, and statements: labels, radii, new neighbours, and for some budgets what holds target
by target, how many targets can break and, if that was asked for, how many cannot get each label. Nothing is derived
here: ``certificate`` makes the statements from the evidence, ``check`` derives them again.
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

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.ids import id_array
from agnncert.errors import BudgetError, CertificateError
from agnncert.storage import Arrays, is_command, read_sealed, write_sealed

FORMAT = "agnncert-certificate"
VERSION = 1

KINDS = ("votes", "samples", "stacked")

_FIELDS = ("format", "version", "file_sha256", "kind", "settings", "claim", "statements")
ISSUED = ("by", "on", "system", "until")  # what may be stated about the hand-over, as "issued" in the header
PER_TARGET = {"row": np.int64, "label": np.int64, "radius": np.int64, "new_neighbours": np.float64}
KNOWN = {"truth": np.int64, "degree": np.int64}
OPTIONAL = KNOWN | {"structure_radius": np.int64}
_PREFIX = "evidence."
_SHA256 = re.compile(r"[0-9a-f]{64}")

# What a verifier accepts, so that its work is bounded by the size of the file.
LONGEST_HEADER = 2**20  # bytes
MOST_STATEMENTS = 250
MOST_EXCLUSIONS, MOST_EXCLUDED_CLASSES = 10, 100  # budgets, and classes, of which a file says who cannot get a label
LONGEST_TEXT = 20_000  # characters
LONGEST_STATEMENT = 200  # characters of each entry of "issued"
LARGEST_NUMBER = 2**128
DEEPEST = 8  # lists and objects within each other
ROOM_FOR_IDS = 2**25  # characters
_EXACT = 2**53  # whole numbers up to here are exact in floating point


@dataclass(frozen=True)
class Contents:
    """What a file says. Types and lengths have been checked, but nothing has been derived.

    Attributes:
        kind: Kind of evidence: ``"votes"``, ``"samples"`` or ``"stacked"``.
        settings: Settings of the evidence.
        claim: What is proved, in words.
        budgets: The budgets that the file makes statements about.
        broken_at_most: Stated collective bound for each budget.
        excluded: For each budget and class, the stated number of targets that cannot get this label; nothing for a
            budget about which the file does not say it.
        evidence: Arrays of the evidence.
        arrays: ``target``, ``row``, ``label``, ``radius``, ``new_neighbours``, ``holds`` (one row for each
            budget), ``truth`` and ``degree`` if known, and ``structure_radius`` if the rule has its own.
        issued: Who issued it (``by``), when (``on``), for which ``system`` and ``until`` when; what is not stated is
            absent.
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


def checked_issue(issued: Any) -> dict[str, str]:
    """What is stated about the hand-over, with dates as YYYY-MM-DD.

    Raises:
        CertificateError: A key is unknown, a text is empty, too long or has several lines, or a date is none.
    """
    if not isinstance(issued, Mapping) or not set() < set(issued) <= set(ISSUED):
        raise CertificateError(f"issued={reprlib.repr(issued)}: expected some of {', '.join(ISSUED)}.")
    for name, value in issued.items():
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_STATEMENT or not value.isprintable():
            raise CertificateError(
                f'issued: "{name}" is {reprlib.repr(value)}: expected a line of 1 to {LONGEST_STATEMENT} characters.'
            )
    dates = {name: issued[name] for name in ("on", "until") if name in issued}
    for name, value in dates.items():
        try:
            good = date.fromisoformat(value).isoformat() == value
        except ValueError:
            good = False
        if not good:
            raise CertificateError(f'issued: "{name}" is {value!r}: expected a date such as 2027-12-31.')
    if dates.get("until", "9999") < dates.get("on", "0"):
        raise CertificateError(f"issued: it ends on {dates['until']}, before it begins on {dates['on']}.")
    return dict(issued)


def checked_exclusions(excluded: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Who cannot get which label, as stated; raises CertificateError if it is about too many budgets or classes."""
    stated = [len(each) for each in excluded if each]
    if len(stated) > MOST_EXCLUSIONS or max(stated, default=0) > MOST_EXCLUDED_CLASSES:
        most = f"{MOST_EXCLUSIONS} budgets and {MOST_EXCLUDED_CLASSES} classes"
        raise CertificateError(f"it is stated who cannot get a label: at most of {most}, or checking takes long.")
    return excluded if stated else ()


def write_contents(path: str | Path, contents: Contents) -> None:
    """Writes the file, all of it or nothing.

    Raises:
        CertificateError: It cannot be written.
    """
    excluded = checked_exclusions(contents.excluded) or ((),) * len(contents.budgets)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kind": contents.kind,
        "settings": contents.settings,
        "claim": contents.claim.to_json(),
        "statements": [
            {"budget": _budget_to_json(budget), "broken_at_most": broken} | ({"excluded": list(each)} if each else {})
            for budget, broken, each in zip(contents.budgets, contents.broken_at_most, excluded, strict=True)
        ],
    }
    header |= {"issued": checked_issue(contents.issued)} if contents.issued else {}
    arrays = {name: array for name, array in contents.arrays.items() if name != "target"}
    arrays |= _ids_to_arrays(contents.arrays["target"])
    arrays |= {_PREFIX + name: array for name, array in contents.evidence.items()}
    write_sealed(Path(path), header, arrays)


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
    _check_plain(header)
    issued = checked_issue(header.pop("issued")) if "issued" in header else {}
    if sorted(header) != sorted(_FIELDS):
        given = reprlib.repr(sorted(header))
        raise CertificateError(f"the header has the fields {given}: expected {sorted(_FIELDS)}.")
    if not isinstance(header["kind"], str) or header["kind"] not in KINDS:
        given = reprlib.repr(header["kind"])
        raise CertificateError(f"unknown kind of evidence {given}: expected {', '.join(KINDS)}.")
    if not isinstance(header["settings"], dict):
        raise CertificateError(f"the settings are a {type(header['settings']).__name__}: expected names and values.")
    evidence = {n.removeprefix(_PREFIX): a for n, a in arrays.items() if n.startswith(_PREFIX)}
    rest = {n: a for n, a in arrays.items() if not n.startswith(_PREFIX)}
    budgets, broken, excluded = _statements(header["statements"])
    claim = Claim.from_json(header["claim"])
    odd = [name for name, digest in claim.digests.items() if not _SHA256.fullmatch(digest)]
    if odd:
        raise CertificateError(f"the claim's digests of {reprlib.repr(odd)} are no SHA-256 in lower-case hex digits.")
    return Contents(
        kind=header["kind"],
        settings=header["settings"],
        claim=claim,
        budgets=budgets,
        broken_at_most=broken,
        evidence=evidence,
        arrays=_checked(_arrays_to_ids(rest), len(budgets)),
        issued=issued,
        excluded=excluded,
    )


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
    """The arrays of the statements, with the names, types and lengths that they must have."""
    expected = {"target", "holds", *PER_TARGET}
    if not expected <= set(arrays) <= expected | set(OPTIONAL):
        raise CertificateError(f"the arrays are {reprlib.repr(sorted(arrays))}: expected {sorted(expected)}.")
    for name, dtype in (PER_TARGET | OPTIONAL | {"holds": np.bool_}).items():
        shape = (num_budgets, len(arrays["target"])) if name == "holds" else (len(arrays["target"]),)
        array = arrays.get(name)
        if array is not None and (array.dtype != dtype or array.shape != shape):
            raise CertificateError(
                f'"{name}" is {array.dtype}{list(array.shape)}: expected {np.dtype(dtype)}{list(shape)}.'
            )
    return arrays


def _statements(stored: Any) -> tuple[tuple[Budget, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]:
    good = isinstance(stored, list) and all(
        isinstance(statement, dict)
        and {"budget", "broken_at_most"} <= set(statement) <= {"budget", "broken_at_most", "excluded"}
        and type(statement["broken_at_most"]) is int
        and isinstance(statement["budget"], dict)
        and isinstance(each := statement.get("excluded", [0]), list)
        and {type(number) for number in each} == {int}
        for statement in stored
    )
    if not good:
        raise CertificateError("the statements are not pairs of a budget and a number of broken targets.")
    if len(stored) > MOST_STATEMENTS:
        raise CertificateError(
            f"there are statements about {len(stored):,} budgets: at most {MOST_STATEMENTS} are read."
        )
    try:
        budgets = tuple(_budget_from_json(statement["budget"]) for statement in stored)
    except (BudgetError, TypeError) as error:
        raise CertificateError(f"a statement is about a budget that makes no sense: {str(error)[:300]}") from error
    excluded = tuple(tuple(statement.get("excluded", ())) for statement in stored)
    excluded = checked_exclusions(excluded)
    return budgets, tuple(statement["broken_at_most"] for statement in stored), excluded


def _budget_to_json(budget: Budget) -> dict[str, Any]:
    """JSON has no infinity, so it is spelled out."""
    counts = {name: getattr(budget, name) for name in COUNTS}
    shown = {name: "inf" if math.isinf(value) else int(value) for name, value in counts.items() if value}
    return shown | ({"target_features": True} if budget.target_features else {})


def _budget_from_json(stored: dict[str, Any]) -> Budget:
    fields: dict[str, Any] = {name: math.inf if value == "inf" else value for name, value in stored.items()}
    budget = Budget(**fields)
    if any(getattr(budget, name) > _EXACT and getattr(budget, name) != math.inf for name in COUNTS):
        raise BudgetError(f"a number is larger than {_EXACT:,}, but not infinite.")
    if json.dumps(_budget_to_json(budget), sort_keys=True) != json.dumps(stored, sort_keys=True):
        raise BudgetError(f"{reprlib.repr(stored)} is not how a budget is written.")
    return budget


def _ids_to_arrays(target: npt.NDArray[Any]) -> Arrays:
    """Integers of 64 bits as they are; else every id as its text, from which its canonical form can be told."""
    if target.dtype == np.int64:
        return {"target": target}
    encoded = [str(name).encode() for name in target.tolist()]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {"target.text": np.frombuffer(b"".join(encoded), dtype=np.uint8), "target.ptr": ends}


def _arrays_to_ids(arrays: Arrays) -> Arrays:
    """The same arrays, with ids that are text put together again as ``target``, in canonical form."""
    if "target" in arrays and arrays["target"].dtype == np.int64 and arrays["target"].ndim == 1:
        return arrays
    try:
        rest = dict(arrays)
        text, ends = rest.pop("target.text"), rest.pop("target.ptr")
        if text.dtype != np.uint8 or ends.dtype != np.int64 or ends.ndim != 1 or text.ndim != 1:
            raise ValueError("wrong types")
        if ends[0] != 0 or ends[-1] != len(text) or (ends[1:] < ends[:-1]).any():
            raise ValueError("wrong lengths")
        room = int(np.diff(ends).max(initial=0)) * len(ends)  # each padded to the longest one
        if room > max(ROOM_FOR_IDS, 16 * text.size):
            raise ValueError(f"ids of such different lengths need room for {room:,} characters, which is too many")
        joined = text.tobytes()
        ids = id_array([joined[start:end].decode() for start, end in pairwise(ends.tolist())])
    except (KeyError, ValueError, IndexError) as error:
        raise CertificateError(f"the ids of the targets cannot be read: {error}.") from error
    return rest | {"target": ids}
