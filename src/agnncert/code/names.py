"""Edges that no edit elsewhere can move: they follow from the texts of the two statements that they join.

A ``goto`` redirects the flow between all statements around it, so an attacker who edits one statement may change
edges between any others. Here a statement is joined to another if it writes a name that the other mentions, wherever
both stand. That is data flow without control flow: coarser, but two statements keep their edge, or keep having none,
as long as both are there.
"""

from functools import lru_cache

from agnncert.code.tokens import KEYWORDS, is_name, tokens

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
