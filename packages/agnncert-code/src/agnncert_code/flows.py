"""Edges between statements that follow from the flow: control flow, data flow and nesting.

Control flow follows from two places of every statement: its *entry*, where control arrives, and its *follow*, where
control continues. Data flow is the problem of reaching definitions, solved with one bit per definition. All loops are
iterative, so deep nesting in hostile input is no limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from agnncert_code.syntax import Statement

CONTROL, DATA, NESTING = range(3)
KINDS = ("control", "data", "nesting")
NOWHERE = -1  # position of no statement: the function is left, or there is no such statement

Pair = tuple[int, int]  # positions of two statements


class Edge(NamedTuple):
    """An edge from one statement to another, by their positions."""

    source: int
    head: int
    kind: int


def edges(statements: list[Statement]) -> list[Edge]:
    """Returns all edges between statements that have a text, each once, sorted."""
    control = control_flow(statements)
    pairs_of_kind = {CONTROL: control, DATA: data_flow(statements, control), NESTING: nesting(statements)}
    found: set[Edge] = set()
    for kind, pairs in pairs_of_kind.items():
        found.update(Edge(source, head, kind) for source, head in pairs if source != head)
    return sorted(found)


def nesting(statements: list[Statement]) -> set[Pair]:
    """Returns pairs from each statement to those directly inside it, blocks looked through."""
    owner = [NOWHERE] * len(statements)  # the nearest enclosing statement that has a text
    pairs = set()
    for place, statement in enumerate(statements):
        parent = statement.parent
        if parent >= 0:
            owner[place] = parent if statements[parent].text else owner[parent]
        if statement.text and owner[place] >= 0:
            pairs.add((owner[place], place))
    return pairs


def control_flow(statements: list[Statement]) -> set[Pair]:
    """Returns pairs from each statement to those that may be next. That the function is left is not told."""
    flow = _ControlFlow(statements)
    pairs: set[Pair] = set()
    for place in range(len(statements)):
        pairs.update(flow.pairs_of(place))
    return pairs


@dataclass(slots=True)
class _Surroundings:
    """What lies around a statement, by positions.

    Attributes:
        follow: Where control continues after it.
        switch: The switch it is in.
        loop_end: Where a ``break`` leads.
        loop_next: Where a ``continue`` leads.
        handled_by: The ``try`` whose handlers get what it throws.
    """

    follow: int = NOWHERE
    switch: int = NOWHERE
    loop_end: int = NOWHERE
    loop_next: int = NOWHERE
    handled_by: int = NOWHERE


class _ControlFlow:
    """Where control goes from each of some statements."""

    def __init__(self, statements: list[Statement]) -> None:
        self.statements = statements
        self.entry = _entries(statements)
        self.around = _surroundings(statements, self.entry)
        self.labels = {}
        self.with_default = set()  # switches that have a default
        for place, statement in enumerate(statements):
            if statement.kind == "label":
                self.labels[statement.name] = place
            if statement.kind == "case" and statement.name == "default":
                self.with_default.add(self.around[place].switch)

    def pairs_of(self, place: int) -> Iterator[Pair]:
        """Yields the pairs that a statement brings about."""
        statement = self.statements[place]
        if statement.kind == "try":
            first = self.entry[place] if self.entry[place] >= 0 else self.around[place].follow
            if first >= 0:
                for handler in self._handlers(place):
                    yield first, handler
            return
        if not statement.text:
            return
        switch = self.around[place].switch
        if statement.kind == "case" and switch >= 0:
            yield switch, place
        for target in self._targets(place):
            if target >= 0:
                yield place, target

    def _targets(self, place: int) -> list[int]:
        """Returns the statements to which control may go from one that has a text."""
        kind = self.statements[place].kind
        follow = self.around[place].follow
        if kind == "if":
            return [self._first_inside(place, "body", follow), self._first_inside(place, "else", follow)]
        if kind == "loop":
            return [self._first_inside(place, "body", NOWHERE), follow]
        if kind == "do":
            return [self.entry[place], follow]
        if kind == "switch":
            return [] if place in self.with_default else [follow]
        if kind in ("break", "continue", "goto", "throw", "jump"):
            return self._jump_targets(place)
        return [self._first_inside(place, "body", follow)]

    def _jump_targets(self, place: int) -> list[int]:
        statement = self.statements[place]
        around = self.around[place]
        if statement.kind == "break":
            return [around.loop_end]
        if statement.kind == "continue":
            return [around.loop_next]
        if statement.kind == "goto":
            return [self.labels.get(statement.name, NOWHERE)]
        if statement.kind == "throw" and around.handled_by >= 0:
            return self._handlers(around.handled_by)
        return []

    def _first_inside(self, place: int, role: str, otherwise: int) -> int:
        """Returns where control enters the first part of this role, or ``otherwise`` if there is none."""
        for child in self.statements[place].children:
            if self.entry[child] >= 0 and self.statements[child].role == role:
                return self.entry[child]
        return otherwise

    def _handlers(self, place: int) -> list[int]:
        return [child for child in self.statements[place].children if self.statements[child].role == "catch"]


def _entries(statements: list[Statement]) -> list[int]:
    """Returns where control arrives: at the statement itself, or at the first one inside a block or ``do``.

    An empty block has none.
    """
    entry = [NOWHERE] * len(statements)
    for place in range(len(statements) - 1, -1, -1):
        statement = statements[place]
        entry[place] = place if statement.text else NOWHERE
        if statement.text and statement.kind != "do":
            continue
        for child in statement.children:
            if entry[child] >= 0 and statements[child].role != "catch":
                entry[place] = entry[child]
                break
    return entry


def _surroundings(statements: list[Statement], entry: list[int]) -> list[_Surroundings]:
    """Returns what lies around each statement. Nothing leads out of a function."""
    around = [_Surroundings() for _ in statements]
    for place, statement in enumerate(statements):
        follow = around[place].follow
        following = _end_of_body(place, statement, follow)
        for child in reversed(statement.children):
            is_aside = statements[child].role in ("else", "catch")
            _set_surroundings(around[child], place, statement, around[place])
            around[child].follow = follow if is_aside else following
            if statement.kind == "try" and statements[child].role == "body":
                around[child].handled_by = place
            if not is_aside and entry[child] >= 0:
                following = entry[child]
    return around


def _end_of_body(place: int, statement: Statement, follow: int) -> int:
    """Returns where control continues after the last statement inside."""
    if statement.kind in ("loop", "do"):
        return place
    return NOWHERE if statement.kind == "head" else follow


def _set_surroundings(inner: _Surroundings, place: int, statement: Statement, outer: _Surroundings) -> None:
    """Notes what lies around a part of a statement, but for where control continues."""
    is_loop = statement.kind in ("loop", "do")
    inner.switch = place if statement.kind == "switch" else outer.switch
    inner.handled_by = outer.handled_by
    if statement.kind == "head":
        return
    inner.loop_end = outer.follow if is_loop or statement.kind == "switch" else outer.loop_end
    inner.loop_next = place if is_loop else outer.loop_next


def data_flow(statements: list[Statement], control: set[Pair]) -> set[Pair]:
    """Returns pairs from each statement that gives a variable a value to those that may read that value."""
    definitions: list[int] = []  # place of each definition; its number is its bit
    of_variable: dict[str, int] = {}
    made = [0] * len(statements)
    for place, statement in enumerate(statements):
        for name in sorted(statement.sets | statement.alters):
            bit = 1 << len(definitions)
            definitions.append(place)
            of_variable[name] = of_variable.get(name, 0) | bit
            made[place] |= bit
    arriving = _reaching(statements, control, made, of_variable)
    pairs = set()
    for place, statement in enumerate(statements):
        read = 0
        for name in statement.reads:
            read |= of_variable.get(name, 0)
        for number in _ones(read & arriving[place]):
            pairs.add((definitions[number], place))
    return pairs


def _ones(bits: int) -> Iterator[int]:
    """Yields the positions of the bits that are set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _reaching(
    statements: list[Statement], control: set[Pair], made: list[int], of_variable: dict[str, int]
) -> list[int]:
    """Returns which definitions may arrive at each statement, as bits.

    Args:
        statements: The statements.
        control: Pairs of statements that may follow each other.
        made: Definitions that each statement makes.
        of_variable: Definitions of each variable.
    """
    size = len(statements)
    next_places: list[list[int]] = [[] for _ in range(size)]
    for source, head in control:
        next_places[source].append(head)
    lost = [0] * size
    for place, statement in enumerate(statements):
        for name in statement.sets:
            lost[place] |= of_variable[name]
    arriving = [0] * size
    waiting = list(range(size - 1, -1, -1))
    is_waiting = [True] * size
    while waiting:
        place = waiting.pop()
        is_waiting[place] = False
        leaving = (arriving[place] & ~lost[place]) | made[place]
        for target in next_places[place]:
            if leaving & ~arriving[target]:
                arriving[target] |= leaving
                if not is_waiting[target]:
                    is_waiting[target] = True
                    waiting.append(target)
    return arriving
