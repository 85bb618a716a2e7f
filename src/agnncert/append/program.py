"""Feature programs: what is counted about an account of a ledger, as data.

An expression is a tuple whose first entry names an operation. All values are whole numbers from 0 to
``LIMIT``; what would be larger is ``LIMIT``, which keeps every operation monotone.

========================================  ==========================================================
of an account                             value
========================================  ==========================================================
``("attribute", NAME)``                   an attribute of the account
``("known",)``                            1 if it was known to be positive when the model was trained
``("sum", WAY, E)``                       sum of E over its rows
``("max", WAY, E)``                       largest E of its rows
``("partners", WAY, E)``                  sum over distinct partners of the largest E of their rows
``("burst", WAY, E, WINDOW)``             most rows with E ≥ 1 in any time as long as WINDOW
========================================  ==========================================================

========================================  ==========================================================
of a row, seen from an account            value
========================================  ==========================================================
``("column", NAME)``                      a column of the row
``("far", V)``                            V of the account at the other end
``("when", WAY, E)``                      E if the row is seen this way, else 0
``("judge",)``                            what the judge of rows says, by trees on ``Program.judged``
========================================  ==========================================================

========================================  ==========================================================
of both                                   value
========================================  ==========================================================
``("number", K)``                         K
``("at_least", A, K)``, ``("below", A, K)``  1 if A ≥ K, 1 if A < K, else 0
``("between", A, LOW, HIGH)``             1 if LOW ≤ A < HIGH, else 0
``("multiple", A, K, SLACK)``             1 if A is within SLACK of a multiple of K, and A > SLACK
``("above", A, K)``, ``("cap", A, K)``    max(A − K, 0), min(A, K)
``("quotient", A, B)``                    A divided by max(B, 1), rounded down
``("add", A, …)``, ``("times", A, …)``    sum, product
``("least", A, …)``, ``("most", A, …)``   the least, the largest
========================================  ==========================================================

WAY is "in" for rows that an account gets and "out" for rows that it sends.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

from agnncert.errors import CertificateError

Expression: TypeAlias = tuple[Any, ...]
Way: TypeAlias = Literal["in", "out"]
Threat: TypeAlias = Literal["fresh", "ledger", "grow"]

LIMIT = 2**36  # the largest value; with fewer rows than MOST_ROWS, sums of values fit into 64 bits
MOST_ROWS = 2**25
WAYS = ("in", "out")
THREATS = ("fresh", "ledger", "grow")
GROWTH = ("fixed", "rises", "moves")
DECODINGS = ("", "sinh", "exp")
LONGEST_TEXT = 10_000  # characters of an expression
DEEPEST = 12  # expressions inside expressions

# Operation -> what stands behind its name: expressions of accounts (V) or rows (E), a way (w), a name (s), whole
# numbers (k). A star means one or more. "A" is an expression of the same kind.
OF_ACCOUNTS = {
    "attribute": "s",
    "known": "",
    "sum": "wE",
    "max": "wE",
    "partners": "wE",
    "burst": "wEk",
}
OF_ROWS = {"column": "s", "far": "V", "when": "wE", "judge": ""}
OF_BOTH = {
    "number": "k",
    "at_least": "Ak",
    "below": "Ak",
    "between": "Akk",
    "multiple": "Akk",
    "above": "Ak",
    "cap": "Ak",
    "quotient": "AA",
    "add": "A*",
    "times": "A*",
    "least": "A*",
    "most": "A*",
}


@dataclass(frozen=True)
class Source:
    """How a column of the graph becomes whole numbers.

    Attributes:
        name: What expressions call it.
        place: Column of ``edge_attr`` or ``x``; -1 stands for a 1 on each row.
        unit: How many whole numbers are a 1 of the graph.
        decode: "sinh" or "exp" if the graph holds the inverse of it, as ``arcsinh(amount)``, else "".
        sign: -1 if negative numbers are meant: the value is that of the opposite number.
        shift: Is added, so that nothing is negative. What is negative all the same is 0.
        growth: What may become of the value in an old row when more is paid between the same accounts: "fixed" if it
            stays, "rises" if it cannot fall, "moves" if it can do both. Attributes of accounts are fixed.
    """

    name: str
    place: int
    unit: float = 1.0
    decode: str = ""
    sign: int = 1
    shift: int = 0
    growth: str = "fixed"

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Program:
    """What is read of a graph and counted about an account.

    Attributes:
        columns: Columns of rows.
        attributes: Attributes of accounts.
        features: Expressions of accounts: the table that trees read.
        judged: Expressions of rows: the table that the judge of rows reads. Empty if there is no judge.
        present: Column of ``edge_attr`` that is positive where there is a row; -1 if every edge is one.
        time: Name of the column that bursts read; empty if there is none.
    """

    columns: tuple[Source, ...]
    features: tuple[Expression, ...]
    attributes: tuple[Source, ...] = ()
    judged: tuple[Expression, ...] = ()
    present: int = -1
    time: str = ""
    _growth: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        growth = {column.name: column.growth for column in self.columns}
        object.__setattr__(self, "_growth", growth)
        require_form(self)

    def growth(self, column: str) -> str:
        """Returns what may become of a column of an old row."""
        return self._growth[column]

    def but(self, **changes: Any) -> "Program":
        """Returns the program with other features, or other columns."""
        values = {name: getattr(self, name) for name in _FIELDS}
        return Program(**{**values, **changes})

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {
            "columns": [column.to_json() for column in self.columns],
            "attributes": [attribute.to_json() for attribute in self.attributes],
            "features": [json.dumps(expression) for expression in self.features],
            "judged": [json.dumps(expression) for expression in self.judged],
            "present": self.present,
            "time": self.time,
        }

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """Returns the program that :meth:`to_json` wrote; what is stored is not trusted.

        Raises:
            CertificateError: It is no program.
        """
        if not isinstance(stored, Mapping) or sorted(stored) != sorted(_FIELDS):
            raise CertificateError(f"a feature program has the parts {', '.join(_FIELDS)}.")
        return cls(
            columns=_sources(stored["columns"]),
            attributes=_sources(stored["attributes"]),
            features=_expressions(stored["features"]),
            judged=_expressions(stored["judged"]),
            present=stored["present"],
            time=stored["time"],
        )


_FIELDS = ("columns", "features", "attributes", "judged", "present", "time")


def parts(expression: Expression) -> Iterator[Expression]:
    """Yields the expressions directly inside an expression."""
    return (part for part in expression[1:] if isinstance(part, tuple))


def inside(expression: Expression) -> Iterator[Expression]:
    """Yields an expression and all expressions inside it."""
    yield expression
    for part in parts(expression):
        yield from inside(part)


def written(expression: Expression) -> str:
    """Returns an expression as people write it.

    Example:
        >>> written(("sum", "in", ("at_least", ("column", "amount"), 500)))
        'sum(in, at_least(column(amount), 500))'
    """
    inner = (written(part) if isinstance(part, tuple) else str(part) for part in expression[1:])
    return f"{expression[0]}({', '.join(inner)})" if len(expression) > 1 else str(expression[0])


def require_form(program: Program) -> None:
    """Refuses a program that cannot be read.

    Raises:
        CertificateError: Names the first expression that is wrong, and why.
    """
    for source in (*program.columns, *program.attributes):
        _require_source(source)
    for sources, what in ((program.columns, "columns"), (program.attributes, "attributes")):
        if len({source.name for source in sources}) != len(sources):
            raise CertificateError(f"two {what} of the feature program have the same name.")
    if type(program.present) is not int or program.present < -1 or not isinstance(program.time, str):
        raise CertificateError("the feature program does not say which edges are rows, or which column is the time.")
    if not program.features:
        raise CertificateError("the feature program has no features.")
    for expression in program.features:
        _require(expression, "V", program, DEEPEST)
    for expression in program.judged:
        _require(expression, "E", program, DEEPEST)
        if any(part[0] == "judge" for part in inside(expression)):
            raise CertificateError("the judge of rows reads its own judgement.")


def _require_source(source: Source) -> None:
    has_numbers = type(source.place) is int and source.place >= -1 and type(source.shift) is int
    is_unit = isinstance(source.unit, (int, float)) and not isinstance(source.unit, bool)
    is_known = source.decode in DECODINGS and source.sign in (-1, 1) and source.growth in GROWTH
    if not (isinstance(source.name, str) and has_numbers and is_unit and 0 < source.unit < 1e18 and is_known):
        raise CertificateError(f"the feature program has a column that cannot be read: {source!r:.120}.")


def _require(expression: Any, kind: str, program: Program, depth: int, nested: bool = False) -> None:
    """Refuses an expression that is none of a kind ("V" of accounts, "E" of rows)."""
    if not isinstance(expression, tuple) or not expression or depth == 0:
        raise CertificateError(f"{expression!r:.80} is no expression, or one that is nested too deeply.")
    operation, *rest = expression
    forms = (OF_ACCOUNTS if kind == "V" else OF_ROWS) | OF_BOTH
    form = forms.get(operation) if isinstance(operation, str) else None
    if form is None:
        what = "an account" if kind == "V" else "a row"
        raise CertificateError(f"{operation!r:.40} is no operation of {what}: there are {', '.join(forms)}.")
    if form.endswith("*"):
        form = "A" * len(rest) or "A"
    if len(form) != len(rest):
        raise CertificateError(f'"{operation}" needs {len(form)} parts, {written(expression):.80} has {len(rest)}.')
    for letter, part in zip(form, rest, strict=True):
        if letter in "AVE":
            inner = kind if letter == "A" else letter
            _require(part, inner, program, depth - 1, nested or operation == "far")
        elif letter == "w" and part not in WAYS:
            raise CertificateError(f'{part!r:.40}: a way is "in" or "out".')
        elif letter == "k" and (type(part) is not int or not 0 <= part <= LIMIT):
            raise CertificateError(f"{part!r:.40}: expected a whole number from 0 to {LIMIT:,}.")
    _require_names(operation, rest, program, nested)


def _require_names(operation: str, rest: list[Any], program: Program, nested: bool) -> None:
    """Refuses names that the program does not know, and the judge where it may not stand."""
    if operation == "column" and rest[0] not in program._growth:
        raise CertificateError(f"there is no column {rest[0]!r:.40} in the feature program.")
    if operation == "attribute" and rest[0] not in {source.name for source in program.attributes}:
        raise CertificateError(f"there is no attribute {rest[0]!r:.40} in the feature program.")
    if operation == "burst" and program.time not in program._growth:
        raise CertificateError("the feature program counts bursts, and names no column of times.")
    if operation == "multiple" and rest[1] < 1:
        raise CertificateError("a multiple of 0 is asked for.")
    if operation == "judge" and (nested or not program.judged):
        raise CertificateError("the judge of rows stands where it cannot: at the far end, or without a table.")


def _sources(stored: Any) -> tuple[Source, ...]:
    names = sorted(Source("", 0).__dict__)
    if not isinstance(stored, list) or any(not isinstance(each, dict) or sorted(each) != names for each in stored):
        raise CertificateError("the columns of a feature program cannot be read.")
    return tuple(Source(**each) for each in stored)


def _expressions(stored: Any) -> tuple[Expression, ...]:
    if not isinstance(stored, list):
        raise CertificateError("a feature program lists its expressions.")
    return tuple(_expression(text) for text in stored)


def _expression(text: Any) -> Any:
    """Returns the expression that a text says, as JSON: files do not hold lists within many lists."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise CertificateError("an expression of the feature program is no text, or too long.")
    try:
        return _tupled(json.loads(text), DEEPEST)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"an expression of the feature program cannot be read: {error}") from error


def _tupled(stored: Any, depth: int) -> Any:
    if not isinstance(stored, list):
        return stored
    if depth == 0:
        raise CertificateError("an expression of the feature program is nested too deeply.")
    return tuple(_tupled(part, depth - 1) for part in stored)
