"""Types of features: what appended rows can do to them under a threat, read off the program.

The types are "=" (nothing that the attacker appends changes it), "+" (it can only rise) and "-" (it can only fall).
An expression that may do both has no type: :class:`NotMonotone` says why. The proof is Theorem 21 in docs/proofs.md.

========  ============================================================================================
threat    what an attacker appends
========  ============================================================================================
fresh     any rows between ordered pairs that had none, with any values; any accounts
grow      any rows; what may grow in an old row grows
ledger    the same, but the present payers of the target send nothing more than they have sent
========  ============================================================================================
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from agnncert.append.program import Expression, Program, Threat, inside, parts, written

Polarity: TypeAlias = Literal["=", "+", "-"]
_FLIPPED: dict[Polarity, Polarity] = {"=": "=", "+": "-", "-": "+"}
_AGGREGATES = ("sum", "max", "partners", "burst")


class NotMonotone(Exception):  # noqa: N818 - reads as a statement where it is raised
    """A value that appended rows may move either way, or down where it is counted."""


class Refused(NamedTuple):
    """A feature that a threat throws out.

    Attributes:
        feature: The expression.
        reason: Why, in words.
    """

    feature: Expression
    reason: str

    def __str__(self) -> str:
        return f"{written(self.feature)}: {self.reason}"


class Sorted(NamedTuple):
    """The features of a program that a threat leaves, and those that it throws out."""

    kept: tuple[Expression, ...]
    refused: tuple[Refused, ...]


def sorted_by_types(program: Program, threat: Threat) -> Sorted:
    """Returns which features of a program can only rise or stay under a threat, and why others cannot be used."""
    kept, refused = [], []
    for feature in program.features:
        try:
            usable_type(feature, program, threat)
            kept.append(feature)
        except NotMonotone as error:
            refused.append(Refused(feature, str(error)))
    return Sorted(tuple(kept), tuple(refused))


def usable_type(feature: Expression, program: Program, threat: Threat) -> Polarity:
    """Returns the type of a feature, "=" or "+".

    Raises:
        NotMonotone: It can fall; says why.
    """
    polarity = account_type(feature, program, threat)
    if polarity == "-":
        raise NotMonotone("it can fall when rows are appended")
    return polarity


def judged_types(program: Program, threat: Threat) -> tuple[Polarity, ...]:
    """Returns the types of what the judge reads, seen either way.

    Raises:
        NotMonotone: One of them can fall.
    """
    types: list[Polarity] = []
    for expression in program.judged:
        polarity = _joined(row_type(expression, program, threat, way) for way in ("in", "out"))
        if polarity == "-":
            raise NotMonotone(f"the judge reads what can fall: {written(expression)}")
        types.append(polarity)
    return tuple(types)


def account_type(expression: Expression, program: Program, threat: Threat, near: bool = True) -> Polarity:
    """Returns the type of an expression of an account.

    Args:
        expression: The expression.
        program: Where its columns are described.
        threat: What an attacker may append.
        near: Whether it is about the target itself, whose payers the threat "ledger" restrains.
    """
    operation = expression[0]
    if operation in ("attribute", "known", "number"):
        return "="
    if operation in _AGGREGATES:
        return _aggregate_type(expression, program, threat, near)
    return _combined(expression, [account_type(part, program, threat, near) for part in parts(expression)])


def row_type(expression: Expression, program: Program, threat: Threat, way: str, near: bool = True) -> Polarity:
    """Returns the type of an expression of an old row, seen by the receiver ("in") or by the sender ("out")."""
    operation = expression[0]
    restrained = threat == "ledger" and near and way == "in"  # a row of a present payer
    if operation == "number" or (operation == "column" and restrained):
        return "="
    if operation == "column":
        return column_type(str(expression[1]), program, threat)
    if operation == "far":
        if restrained and only_sent(expression[1]):
            return "="
        return account_type(expression[1], program, threat, near=False)
    if operation == "when":
        return row_type(expression[2], program, threat, way, near) if expression[1] == way else "="
    read = program.judged if operation == "judge" else tuple(parts(expression))
    types = [row_type(part, program, threat, way, near) for part in read]
    if operation == "judge" and "-" in types:
        raise NotMonotone("the judge reads what can fall")
    return _combined(expression, types)


def column_type(name: str, program: Program, threat: Threat) -> Polarity:
    """Returns the type of a column of an old row whose sender is not restrained."""
    growth = program.growth(name)
    if threat == "fresh" or growth == "fixed":
        return "="
    if growth == "moves":
        raise NotMonotone(f'"{name}" of an old row moves either way when more is paid between the same accounts')
    return "+"


def only_sent(expression: Expression) -> bool:
    """Whether a value follows from attributes of an account and from rows that it has sent itself."""
    if expression[0] in _AGGREGATES:
        return expression[1] == "out" and not any(part[0] == "far" for part in inside(expression))
    return all(only_sent(part) for part in parts(expression))


def _aggregate_type(expression: Expression, program: Program, threat: Threat, near: bool) -> Polarity:
    operation, way, counted = expression[:3]
    if row_type(counted, program, threat, way, near) == "-":
        raise NotMonotone(f"{operation} of what can fall: {written(counted)}")
    if operation == "burst":
        restrained = threat == "ledger" and near and way == "in"
        if not restrained and column_type(program.time, program, threat) != "=":
            raise NotMonotone("bursts of times that move")
    return "+"


def _combined(expression: Expression, types: list[Polarity]) -> Polarity:
    """Returns the type of an operation that is the same for accounts and rows."""
    operation = expression[0]
    if operation == "below":
        return _FLIPPED[types[0]]
    if operation in ("between", "multiple"):
        if types[0] != "=":
            what = "an interval" if operation == "between" else "a multiple"
            raise NotMonotone(f"{what} of what moves: {written(expression)}")
        return "="
    if operation == "quotient":
        return _joined((types[0], _FLIPPED[types[1]]))
    return _joined(types)


def _joined(types: Iterable[Polarity]) -> Polarity:
    """Returns the type of an operation that is monotone in all its parts."""
    moving = set(types) - {"="}
    if len(moving) > 1:
        raise NotMonotone("it joins what can rise with what can fall")
    return moving.pop() if moving else "="
