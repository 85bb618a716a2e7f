"""Edges between statements by shared names.

A statement is joined to every statement that mentions a name which it writes. This edge depends on the texts of the two
statements alone, so no edit of a third statement can change it, unlike control flow, which one ``goto`` can redirect
everywhere.
"""

from functools import lru_cache

from agnncert_code.tokens import KEYWORDS, is_name, tokens

_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}
_AFTER_DECLARED = {"=", ",", ";", "[", ")", ":"}
_MEMBER = {".", "->", "::"}
# Keywords that stand before a value, not before a declared name.
_BEFORE_VALUES = {"return", "goto", "case", "sizeof", "new", "delete", "throw", "else", "do"}
_VALUES = {"NULL", "true", "false", "this"}


def name_edges(texts: list[str]) -> list[tuple[int, int]]:
    """Returns pairs of positions, sorted: from each text that writes a name to the others that mention it."""
    readers: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        for name in mentioned(text):
            readers.setdefault(name, []).append(row)
    pairs: set[tuple[int, int]] = set()
    for row, text in enumerate(texts):
        for name in written(text):
            pairs.update((row, reader) for reader in readers[name] if reader != row)
    return sorted(pairs)


@lru_cache(maxsize=1 << 16)
def written(text: str) -> frozenset[str]:
    """Returns names that a statement gives a value, judged by its tokens.

    These are names that are assigned, counted or declared, and names whose address is taken.

    Example:
        >>> sorted(written("int n = 0 , * p ;")), sorted(written("a [ i ] = f ( & b , c ) ;"))
        (['n', 'p'], ['a', 'b'])
    """
    words = tokens(text)
    names = {word for k, word in enumerate(words) if is_name(word) and _is_written(words, k)}
    base = _base_of_assignment(words)
    return frozenset(names if base is None else names | {base})


@lru_cache(maxsize=1 << 16)
def mentioned(text: str) -> frozenset[str]:
    """Returns names that a statement mentions. Members of structures are not names of their own.

    Example:
        >>> sorted(mentioned("if ( p -> size < n )"))
        ['n', 'p']
    """
    words = tokens(text)
    names = set()
    for k, word in enumerate(words):
        is_member = k > 0 and words[k - 1] in _MEMBER
        if is_name(word) and not is_member:
            names.add(word)
    return frozenset(names)


def _is_written(words: list[str], k: int) -> bool:
    """Returns whether the name at a position is given a value there."""
    before = words[k - 1] if k else ""
    after = words[k + 1] if k + 1 < len(words) else ";"
    if before in _MEMBER:
        return False
    if before in ("++", "--") or after in _ASSIGNMENTS:
        return True
    return _takes_address(words, k) or _is_declared(words, k, after)


def _base_of_assignment(words: list[str]) -> str | None:
    """Returns the name through which a statement assigns: ``* p = …``, ``a [ i ] = …``, ``p -> q = …``."""
    if not _ASSIGNMENTS & set(words):
        return None
    if words[0] == "*" and len(words) > 1 and is_name(words[1]):
        return words[1]
    if is_name(words[0]) and words[1] in ("[", ".", "->"):
        return words[0]
    return None


def _takes_address(words: list[str], k: int) -> bool:
    """Returns whether an ``&`` before the word is no operator between two values."""
    if k == 0 or words[k - 1] != "&":
        return False
    left = words[k - 2] if k > 1 else ""
    if left in KEYWORDS or not left:
        return True
    ends_a_value = left[-1].isalnum() or left[-1] in "_)]\"'"
    return not ends_a_value


def _is_declared(words: list[str], k: int, after: str) -> bool:
    """Returns whether a word stands where a declaration has a name: ``type * word`` or, further on, ``, * word``."""
    if after not in _AFTER_DECLARED:
        return False
    first = k - 1
    while first >= 0 and words[first] in ("*", "&", "const"):
        first -= 1
    if first < 0:
        return False
    left = words[first]
    if left == ",":  # a further name of a declaration, if the first one is one
        if first == 0 or "(" in words:
            return False
        return _is_declared(words, 1, words[2] if len(words) > 2 else ";")
    if left in KEYWORDS:
        return left not in _BEFORE_VALUES and left not in _VALUES
    return (is_name(left) and first <= 2) or left == ">"
