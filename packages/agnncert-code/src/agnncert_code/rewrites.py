"""Attacks on source: rewritten functions that still parse, and a greedy search that combines them.

Every rewrite takes a text and a random generator and returns another text, or None where it finds nothing to do.
They leave alone what a function computes, as far as that can be told without types: dead code is never reached, a
repeated assignment repeats a value, a swapped pair shares no variable. ``worst_edits`` does not care about that.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from agnncert_code.budgets import Edits, counted_difference, difference
from agnncert_code.syntax import Language, Statement, parse, parser
from agnncert_code.tokens import is_name, tokens

Rewrite = Callable[[str, random.Random, Language], str | None]

_DEAD = (
    "int {a} = 0;",
    "if (0) {b} = 1;",
    "while (0) {b}++;",
    "if (0) return {r};",
    "if (0) {{ {b} = {b} + 1; }}",
    "for (;0;) ;",
    "(void)0;",
)


def insert_dead_code(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Puts a statement that is never reached, or does nothing, before one of a block."""
    source, statements = text.encode("utf-8", "replace"), parse(text, language).statements
    places = [s.span[0] for s in _in_blocks(statements, source)]
    if not places:
        return None
    names = sorted(set().union(*(s.sets for s in statements))) or ["x"]
    words = {"a": f"unused{rng.randrange(1000)}", "b": rng.choice(names), "r": rng.choice(("", "0"))}
    place = rng.choice(places)
    return _spliced(source, [(place, place, rng.choice(_DEAD).format(**words) + " ")])


def duplicate_statement(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Repeats an assignment that neither calls anything nor reads what it sets."""
    source, statements = text.encode("utf-8", "replace"), parse(text, language).statements
    fit = [
        s
        for s in _in_blocks(statements, source)
        if s.kind == "simple" and _is_plain(s) and s.sets and not s.alters and not s.sets & s.reads
    ]
    fit = [s for s in fit if not _declares(s)]
    if not fit:
        return None
    start, end = rng.choice(fit).span
    return _spliced(source, [(end, end, " " + _piece(source, start, end))])


def rename_variable(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Gives a variable that is declared here another name, wherever it is mentioned."""
    source = text.encode("utf-8", "replace")
    root = parser(language).parse(source).root_node
    declared = {s for st in parse(text, language).statements if _declares(st) for s in st.sets}
    places: dict[str, list[Any]] = {}
    taken = set()
    for node in _all(root):
        if node.child_count == 0 and node.type.endswith("identifier"):
            word = _piece(source, node.start_byte, node.end_byte)
            taken.add(word)
            if node.type == "identifier" and word in declared:
                places.setdefault(word, []).append(node)
    if not places:
        return None
    old = rng.choice(sorted(places))
    new = next(name for k in range(len(taken) + 1) if (name := f"{old}_{k}") not in taken)
    return _spliced(source, [(n.start_byte, n.end_byte, new) for n in places[old]])


def swap_statements(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Swaps two neighbours that share no variable; this costs no edit at all."""
    source, statements = text.encode("utf-8", "replace"), parse(text, language).statements
    pairs = [(a, b) for a, b in _neighbours(statements, source) if _independent(a, b)]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    return _spliced(source, [(*a.span, _piece(source, *b.span)), (*b.span, _piece(source, *a.span))])


def split_declaration(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Makes ``int a, b;`` into ``int a; int b;``."""
    source = text.encode("utf-8", "replace")
    found = []
    for node in _all(parser(language).parse(source).root_node):
        if node.type == "declaration" and node.parent.type == "compound_statement" and not node.has_error:
            names = node.children_by_field_name("declarator")
            if len(names) > 1:
                found.append((node, names))
    if not found:
        return None
    node, names = rng.choice(found)
    kind = _piece(source, node.start_byte, names[0].start_byte).strip()
    pieces = [f"{kind} {_piece(source, n.start_byte, n.end_byte)};" for n in names]
    return _spliced(source, [(node.start_byte, node.end_byte, " ".join(pieces))])


def merge_declarations(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Makes ``int a; int b;`` into ``int a, b;``."""
    source = text.encode("utf-8", "replace")
    found = []
    for node in _all(parser(language).parse(source).root_node):
        other = node.next_sibling if node.type == "declaration" else None
        if other is None or other.type != "declaration" or node.parent.type != "compound_statement":
            continue
        kinds = [tokens(_piece(source, n.start_byte, n.child_by_field_name("declarator").start_byte))
                 for n in (node, other) if n.child_by_field_name("declarator") is not None]  # fmt: skip
        if len(kinds) == 2 and kinds[0] == kinds[1] and not (node.has_error or other.has_error):
            found.append((node, other))
    if not found:
        return None
    node, other = rng.choice(found)
    head = _piece(source, node.start_byte, node.end_byte).rstrip().removesuffix(";")
    tail = _piece(source, other.child_by_field_name("declarator").start_byte, other.end_byte)
    return _spliced(source, [(node.start_byte, other.end_byte, f"{head}, {tail}")])


REWRITES: Mapping[str, Rewrite] = {
    "insert dead code": insert_dead_code,
    "duplicate a statement": duplicate_statement,
    "rename a variable": rename_variable,
    "swap statements": swap_statements,
    "split a declaration": split_declaration,
    "merge declarations": merge_declarations,
}


def rewritten(text: str, seed: int = 0, language: Language = "cpp", tries: int = 20) -> Iterator[tuple[str, str]]:
    """Random rewrites of a text: what was done, and the new text. Only texts that parse as well as the old one."""
    rng = random.Random(seed)
    whole = not parse(text, language).partial
    for _ in range(tries):
        name = rng.choice(list(REWRITES))
        new = REWRITES[name](text, rng, language)
        if new is not None and new != text and not (whole and parse(new, language).partial):
            yield name, new


def greedy_rewrite(
    text: str,
    margin: Callable[[str], float],
    inserted: int = 0,
    deleted: int = 0,
    replaced: int = 0,
    seed: int = 0,
    language: Language = "cpp",
    rounds: int = 10,
    tries: int = 20,
) -> tuple[str, Edits]:
    """Rewrites a function step by step, each time as the margin falls most, within so many edited statements.

    Args:
        text: The function.
        margin: How far a text is from another verdict, for example the votes for the label minus those against; the
            search ends when it is negative.
        inserted: Statements that may be inserted in total.
        deleted: Statements that may be deleted.
        replaced: Statements that may be replaced.
        seed: Seed of the random choices.
        language: The grammar.
        rounds: Steps at most.
        tries: Rewrites tried in each step.

    Returns:
        The best text found, and its difference from the original.
    """
    best, score, spent = text, margin(text), Edits((), ())
    for step in range(rounds):
        found = []
        for _, new in rewritten(best, seed + step, language, tries):
            cost = difference(text, new, language)
            if cost.within(inserted, deleted, replaced):
                found.append((margin(new), cost.count, new, cost))
        if score < 0 or not found:
            break
        lowest = min(found, key=lambda item: item[:3])
        if lowest[0] > score:
            continue
        score, _, best, spent = lowest
    return best, spent


def worst_edits(
    text: str,
    vote: Callable[[str], int],
    label: int,
    rival: str,
    inserted: int = 0,
    deleted: int = 0,
    replaced: int = 0,
    language: Language = "cpp",
) -> tuple[str, Edits] | None:
    """The edits that do most to a vote of single statements, whatever they do to what a function computes.

    Where every statement casts one vote, edits add up, so that nothing beats the obvious: delete statements that
    speak for the label, and insert one that speaks against it, again and again. Only simple statements that stand in
    braces are deleted, so that the rest of the text stays as it was.

    Args:
        text: The function.
        vote: The vote of a statement by its normalised text.
        label: The verdict to bring down.
        rival: A statement that votes against it, such as ``"gets(buf);"``.
        inserted: Statements to insert.
        deleted: Statements to delete.
        replaced: Statements to replace.
        language: The grammar.

    Returns:
        The new text and its difference from the old one, in which fewer statements may be deleted than asked for;
        ``None`` if there is no place for a statement.

    Example:
        >>> says = lambda text: 0 if "check" in text else 1
        >>> worst_edits("void f() { check(n); g(n); }", says, 0, "h();", inserted=1, deleted=1)[0]
        'void f() {  h(); g(n); }'
    """
    source, statements = text.encode("utf-8", "replace"), parse(text, language).statements
    places = _in_blocks(statements, source)
    if not places:
        return None
    loyal = [s for s in places if s.kind == "simple" and vote(s.text) == label]
    gone = loyal[: deleted + replaced]
    changes = [(*s.span, "") for s in gone]
    anchor = next((s for s in places if all(s is not other for other in gone)), None)
    place = gone[0].span[1] if anchor is None else anchor.span[0]
    changes.append((place, place, f"{rival} " * (inserted + replaced)))
    new = _spliced(source, changes)
    return new, counted_difference(statements, parse(new, language).statements)


def _in_blocks(statements: list[Statement], source: bytes) -> list[Statement]:
    """Statements that stand in braces, so that another one may stand before or after them."""
    blocks = {k for k, s in enumerate(statements) if s.kind == "block" and source[s.span[0] : s.span[0] + 1] == b"{"}
    return [s for s in statements if s.text and s.parent in blocks and s.kind not in ("case", "unparsed")]


def _neighbours(statements: list[Statement], source: bytes) -> Iterator[tuple[Statement, Statement]]:
    fit = {id(s) for s in _in_blocks(statements, source)}
    for block in statements:
        inside = [statements[k] for k in block.children]
        for a, b in pairwise(inside):
            if id(a) in fit and id(b) in fit:
                yield a, b


def _is_plain(statement: Statement) -> bool:
    """Whether a statement just computes: no call, no macro, no allocation."""
    return "(" not in statement.text and statement.text.endswith(";") and not statement.text.startswith("#")


def _independent(a: Statement, b: Statement) -> bool:
    if a.kind != "simple" or b.kind != "simple" or not (_is_plain(a) and _is_plain(b)):
        return False
    if (_touches_memory(a) and b.alters) or (_touches_memory(b) and a.alters):
        return False
    return not (a.sets | a.alters) & (b.sets | b.alters | b.reads) and not (b.sets | b.alters) & a.reads


def _touches_memory(statement: Statement) -> bool:
    return any(token in statement.text.split(" ") for token in ("*", "->", "["))


def _declares(statement: Statement) -> bool:
    """Whether a statement begins with two words, as declarations and parameters do, and sets something."""
    words = statement.text.replace("* ", "").split(" ")[:2]
    named = len(words) == 2 and words[1].isidentifier() and statement.kind == "simple"
    return bool(statement.sets) and named and (is_name(words[0]) or words[0].isidentifier())


def _all(root: Any) -> Iterator[Any]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


def _piece(source: bytes, start: int, end: int) -> str:
    return source[start:end].decode("utf-8", "replace")


def _spliced(source: bytes, changes: list[tuple[int, int, str]]) -> str:
    """The text with some stretches replaced."""
    for start, end, new in sorted(changes, reverse=True):
        source = source[:start] + new.encode() + source[end:]
    return source.decode("utf-8", "replace")
