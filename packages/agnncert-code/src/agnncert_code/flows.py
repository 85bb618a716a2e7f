"""Edges between statements: control flow, data flow and nesting, or shared names.

*Flow.* Control flow follows from two places of every statement: its *entry*, where control arrives, and its *follow*,
where control continues. Data flow is the problem of reaching definitions, solved with one bit per definition. All loops
are iterative, so deep nesting in hostile input is no limit.

*Names.* A statement is joined to every statement that mentions a name which it writes. This edge depends on the texts
of the two statements alone, so no edit of a third statement can change it, unlike control flow, which one ``goto`` can
redirect everywhere.
"""

from functools import lru_cache

from agnncert_code.syntax import Statement
from agnncert_code.tokens import KEYWORDS, is_name, tokens

_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}
_AFTER_DECLARED = {"=", ",", ";", "[", ")", ":"}
_MEMBER = {".", "->", "::"}


@lru_cache(maxsize=1 << 16)
def written(text: str) -> frozenset[str]:
    """Names that a statement gives a value, judged by its tokens: assigned, counted, declared, or address taken.

    Example:
        >>> sorted(written("int n = 0 , * p ;")), sorted(written("a [ i ] = f ( & b , c ) ;"))
        (['n', 'p'], ['a', 'b'])
    """
    words = tokens(text)
    found = set()
    for k, word in enumerate(words):
        if not is_name(word):
            continue
        before = words[k - 1] if k else ""
        after = words[k + 1] if k + 1 < len(words) else ";"
        if before in _MEMBER:
            continue
        if before in ("++", "--") or after in _ASSIGNMENTS or _takes_address(words, k) or _is_declared(words, k, after):
            found.add(word)
    if _ASSIGNMENTS & set(words):
        if words[0] == "*" and len(words) > 1 and is_name(words[1]):  # * p = …
            found.add(words[1])
        elif is_name(words[0]) and words[1] in ("[", ".", "->"):  # a [ i ] = …, p -> q = …
            found.add(words[0])
    return frozenset(found)


@lru_cache(maxsize=1 << 16)
def mentioned(text: str) -> frozenset[str]:
    """Names that a statement mentions; members of structures are not names of their own.

    Example:
        >>> sorted(mentioned("if ( p -> size < n )"))
        ['n', 'p']
    """
    words = tokens(text)
    return frozenset(w for k, w in enumerate(words) if is_name(w) and (k == 0 or words[k - 1] not in _MEMBER))


def name_edges(texts: list[str]) -> list[tuple[int, int]]:
    """From each text that writes a name to the others that mention it, as positions, sorted."""
    readers: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        for name in mentioned(text):
            readers.setdefault(name, []).append(row)
    pairs = {(row, other) for row, text in enumerate(texts) for name in written(text) for other in readers[name]}
    return sorted((a, b) for a, b in pairs if a != b)


def _takes_address(words: list[str], k: int) -> bool:
    """Whether an ``&`` before the word is no operator between two values."""
    if k == 0 or words[k - 1] != "&":
        return False
    left = words[k - 2] if k > 1 else ""
    return left in KEYWORDS or not (left and (left[-1].isalnum() or left[-1] in "_)]\"'"))


def _is_declared(words: list[str], k: int, after: str) -> bool:
    """Whether a word stands where a declaration has a name: ``type * word`` or, further on, ``, * word``."""
    if after not in _AFTER_DECLARED:
        return False
    first = k - 1
    while first >= 0 and words[first] in ("*", "&", "const"):
        first -= 1
    if first < 0:
        return False
    left = words[first]
    if left == ",":  # a further name of a declaration, if the first one is one
        return first > 0 and "(" not in words and _is_declared(words, 1, words[2] if len(words) > 2 else ";")
    return (left in KEYWORDS and left not in _NO_TYPES) or (is_name(left) and first <= 2) or left == ">"


_NO_TYPES = {
    "return",
    "goto",
    "case",
    "sizeof",
    "new",
    "delete",
    "throw",
    "else",
    "do",
    "NULL",
    "true",
    "false",
    "this",
}


CONTROL, DATA, NESTING = range(3)
KINDS = ("control", "data", "nesting")

Edge = tuple[int, int, int]


def edges(statements: list[Statement]) -> list[Edge]:
    """All edges (from, to, kind) between positions of statements that have a text, each once, sorted."""
    control = control_flow(statements)
    found = {(a, b, CONTROL) for a, b in control}
    found |= {(a, b, DATA) for a, b in data_flow(statements, control)}
    found |= {(a, b, NESTING) for a, b in nesting(statements)}
    return sorted(edge for edge in found if edge[0] != edge[1])


def nesting(statements: list[Statement]) -> list[tuple[int, int]]:
    """From each statement to those directly inside it, blocks looked through."""
    owner = [-1] * len(statements)  # the nearest enclosing statement that has a text
    pairs = []
    for place, statement in enumerate(statements):
        parent = statement.parent
        if parent >= 0:
            owner[place] = parent if statements[parent].text else owner[parent]
        if statement.text and owner[place] >= 0:
            pairs.append((owner[place], place))
    return pairs


def control_flow(statements: list[Statement]) -> set[tuple[int, int]]:
    """From each statement to those that may be next, where -1 (the function is left) is not told."""
    entry = _entries(statements)
    follow, switch_of, loop_end, loop_next, try_of = _surroundings(statements, entry)
    labels = {s.name: k for k, s in enumerate(statements) if s.kind == "label"}
    pairs: set[tuple[int, int]] = set()
    defaults = {switch_of[k] for k, s in enumerate(statements) if s.kind == "case" and s.name == "default"}
    for place, statement in enumerate(statements):
        kind = statement.kind
        inner = [c for c in statement.children if entry[c] >= 0]
        bodies = [entry[c] for c in inner if statements[c].role == "body"]
        others = [entry[c] for c in inner if statements[c].role == "else"]
        after = follow[place]
        to: list[int] = []
        if kind == "try":
            first = entry[place] if entry[place] >= 0 else after
            pairs.update((first, c) for c in statement.children if statements[c].role == "catch" and first >= 0)
            continue
        if not statement.text:
            continue
        if kind == "if":
            to = [bodies[0] if bodies else after, others[0] if others else after]
        elif kind == "loop":
            to = [*bodies[:1], after]
        elif kind == "do":
            to = [entry[place], after]
        elif kind == "switch":
            to = [] if place in defaults else [after]
        elif kind == "break":
            to = [loop_end[place]]
        elif kind == "continue":
            to = [loop_next[place]]
        elif kind == "goto":
            to = [labels.get(statement.name, -1)]
        elif kind == "throw":
            handlers = statements[try_of[place]].children if try_of[place] >= 0 else []
            to = [c for c in handlers if statements[c].role == "catch"]
        elif kind != "jump":
            to = bodies[:1] or [after]
        if kind == "case" and switch_of[place] >= 0:
            pairs.add((switch_of[place], place))
        pairs.update((place, target) for target in to if target >= 0)
    return pairs


def _entries(statements: list[Statement]) -> list[int]:
    """Where control arrives: the statement itself, the first one inside a block or ``do``, or -1 for an empty block."""
    entry = [-1] * len(statements)
    for place in range(len(statements) - 1, -1, -1):
        statement = statements[place]
        through = not statement.text or statement.kind == "do"
        inside = (entry[c] for c in statement.children if statements[c].role != "catch") if through else ()
        entry[place] = next((first for first in inside if first >= 0), place if statement.text else -1)
    return entry


def _surroundings(statements: list[Statement], entry: list[int]) -> tuple[list[int], ...]:
    """For each statement: where control goes next, the switch it is in, where break and continue lead, the try."""
    size = len(statements)
    follow, switch_of, loop_end, loop_next, try_of = ([-1] * size for _ in range(5))
    for place, statement in enumerate(statements):
        kind, after = statement.kind, follow[place]
        inside = place if kind in ("loop", "do") else after
        heads = kind == "head"
        following = -1 if heads else inside
        for child in reversed(statement.children):
            aside = statements[child].role in ("else", "catch")
            follow[child] = after if aside else following
            if not aside and entry[child] >= 0:
                following = entry[child]
            leaves = kind in ("loop", "do", "switch")
            loop_end[child] = after if leaves else -1 if heads else loop_end[place]
            loop_next[child] = place if kind in ("loop", "do") else -1 if heads else loop_next[place]
            switch_of[child] = place if kind == "switch" else switch_of[place]
            try_of[child] = place if kind == "try" and statements[child].role == "body" else try_of[place]
    return follow, switch_of, loop_end, loop_next, try_of


def data_flow(statements: list[Statement], control: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """From each statement that gives a variable a value to those that may read that value."""
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
        bits = 0
        for name in statement.reads:
            bits |= of_variable.get(name, 0)
        bits &= arriving[place]
        while bits:
            lowest = bits & -bits
            pairs.add((definitions[lowest.bit_length() - 1], place))
            bits ^= lowest
    return pairs


def _reaching(
    statements: list[Statement], control: set[tuple[int, int]], made: list[int], of_variable: dict[str, int]
) -> list[int]:
    """Which definitions may arrive at each statement, as bits."""
    size = len(statements)
    to: list[list[int]] = [[] for _ in range(size)]
    for a, b in control:
        to[a].append(b)
    lost = [0] * size
    for place, statement in enumerate(statements):
        for name in statement.sets:
            lost[place] |= of_variable[name]
    arriving = [0] * size
    waiting = list(range(size - 1, -1, -1))
    queued = [True] * size
    while waiting:
        place = waiting.pop()
        queued[place] = False
        leaving = (arriving[place] & ~lost[place]) | made[place]
        for target in to[place]:
            if leaving & ~arriving[target]:
                arriving[target] |= leaving
                if not queued[target]:
                    queued[target] = True
                    waiting.append(target)
    return arriving
