"""Attacks on source: rewritten functions that still parse, and a greedy search that combines them.

Every rewrite takes a text and a random generator and returns another text, or None where it finds nothing to do.
They leave alone what a function computes, as far as that can be told without types: dead code is never reached, a
repeated assignment repeats a value, a swapped pair shares no variable. ``worst_edits`` does not care about that.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from typing import NamedTuple

from agnncert_code.budgets import Edits, counted_difference, difference
from agnncert_code.syntax import Language, Statement, parse, parser
from agnncert_code.tokens import is_name, tokens
from agnncert_code.variables import Node

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


@dataclass(frozen=True)
class _Parsed:
    """A text in UTF-8, and its statements."""

    source: bytes
    statements: list[Statement]

    @classmethod
    def of(cls, text: str, language: Language) -> "_Parsed":
        return cls(text.encode("utf-8", "replace"), parse(text, language).statements)

    def in_blocks(self) -> list[Statement]:
        """Returns statements that stand in braces, so that another one may stand before or after them."""
        blocks = set()
        for place, statement in enumerate(self.statements):
            start = statement.span[0]
            if statement.kind == "block" and self.source[start : start + 1] == b"{":
                blocks.add(place)
        return [
            statement
            for statement in self.statements
            if statement.text and statement.parent in blocks and statement.kind not in ("case", "unparsed")
        ]

    def neighbours(self) -> Iterator[tuple[Statement, Statement]]:
        """Yields pairs of statements that stand in braces, one after the other."""
        in_blocks = {id(statement) for statement in self.in_blocks()}
        for block in self.statements:
            inside = [self.statements[place] for place in block.children]
            for first, second in pairwise(inside):
                if id(first) in in_blocks and id(second) in in_blocks:
                    yield first, second


class _Change(NamedTuple):
    """A stretch of a text, from its first byte to the one after its last, and what replaces it."""

    start: int
    end: int
    new: str


def insert_dead_code(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Puts a statement that is never reached, or does nothing, before one of a block."""
    parsed = _Parsed.of(text, language)
    places = [statement.span[0] for statement in parsed.in_blocks()]
    if not places:
        return None
    names = sorted(set().union(*(statement.sets for statement in parsed.statements))) or ["x"]
    words = {"a": f"unused{rng.randrange(1000)}", "b": rng.choice(names), "r": rng.choice(("", "0"))}
    place = rng.choice(places)
    dead = rng.choice(_DEAD).format(**words)
    return _spliced(parsed.source, [_Change(place, place, f"{dead} ")])


def duplicate_statement(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Repeats an assignment that neither calls anything nor reads what it sets."""
    parsed = _Parsed.of(text, language)
    repeatable = [statement for statement in parsed.in_blocks() if _is_repeatable(statement)]
    if not repeatable:
        return None
    start, end = rng.choice(repeatable).span
    return _spliced(parsed.source, [_Change(end, end, f" {_stretch(parsed.source, start, end)}")])


def rename_variable(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Gives a variable that is declared here another name, wherever it is mentioned."""
    source = text.encode("utf-8", "replace")
    root = parser(language).parse(source).root_node
    declared = set()
    for statement in parse(text, language).statements:
        if _declares(statement):
            declared |= statement.sets
    mentions: dict[str, list[Node]] = {}
    taken = set()
    for node in _all_nodes(root):
        if node.child_count == 0 and node.type.endswith("identifier"):
            word = _stretch(source, node.start_byte, node.end_byte)
            taken.add(word)
            if node.type == "identifier" and word in declared:
                mentions.setdefault(word, []).append(node)
    if not mentions:
        return None
    old = rng.choice(sorted(mentions))
    new = next(name for name in (f"{old}_{k}" for k in count()) if name not in taken)
    return _spliced(source, [_Change(node.start_byte, node.end_byte, new) for node in mentions[old]])


def swap_statements(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Swaps two neighbours that share no variable. This costs no edit at all."""
    parsed = _Parsed.of(text, language)
    pairs = [(first, second) for first, second in parsed.neighbours() if _are_independent(first, second)]
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    changes = [
        _Change(*first.span, _stretch(parsed.source, *second.span)),
        _Change(*second.span, _stretch(parsed.source, *first.span)),
    ]
    return _spliced(parsed.source, changes)


def split_declaration(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Makes ``int a, b;`` into ``int a; int b;``."""
    source = text.encode("utf-8", "replace")
    declarations = []
    for node in _all_nodes(parser(language).parse(source).root_node):
        if node.type == "declaration" and node.parent.type == "compound_statement" and not node.has_error:
            declarators = node.children_by_field_name("declarator")
            if len(declarators) > 1:
                declarations.append((node, declarators))
    if not declarations:
        return None
    node, declarators = rng.choice(declarations)
    kind = _stretch(source, node.start_byte, declarators[0].start_byte).strip()
    separate = [f"{kind} {_stretch(source, part.start_byte, part.end_byte)};" for part in declarators]
    return _spliced(source, [_Change(node.start_byte, node.end_byte, " ".join(separate))])


def merge_declarations(text: str, rng: random.Random, language: Language = "cpp") -> str | None:
    """Makes ``int a; int b;`` into ``int a, b;``."""
    source = text.encode("utf-8", "replace")
    pairs = []
    for node in _all_nodes(parser(language).parse(source).root_node):
        if node.type == "declaration" and node.parent.type == "compound_statement":
            other = node.next_sibling
            if other is not None and _are_mergeable(source, node, other):
                pairs.append((node, other))
    if not pairs:
        return None
    node, other = rng.choice(pairs)
    head = _stretch(source, node.start_byte, node.end_byte).rstrip().removesuffix(";")
    tail = _stretch(source, other.child_by_field_name("declarator").start_byte, other.end_byte)
    return _spliced(source, [_Change(node.start_byte, other.end_byte, f"{head}, {tail}")])


def _are_mergeable(source: bytes, node: Node, other: Node) -> bool:
    """Returns whether a declaration and what follows it declare variables of one type."""
    if other.type != "declaration" or node.has_error or other.has_error:
        return False
    kind = _declared_type(source, node)
    return kind is not None and kind == _declared_type(source, other)


def _declared_type(source: bytes, node: Node) -> list[str] | None:
    """Returns the tokens before the first name of a declaration, or ``None`` if it declares nothing."""
    declarator = node.child_by_field_name("declarator")
    if declarator is None:
        return None
    return tokens(_stretch(source, node.start_byte, declarator.start_byte))


REWRITES: Mapping[str, Rewrite] = {
    "insert dead code": insert_dead_code,
    "duplicate a statement": duplicate_statement,
    "rename a variable": rename_variable,
    "swap statements": swap_statements,
    "split a declaration": split_declaration,
    "merge declarations": merge_declarations,
}


def rewritten(text: str, seed: int = 0, language: Language = "cpp", tries: int = 20) -> Iterator[tuple[str, str]]:
    """Yields random rewrites of a text: what was done, and the new text.

    A text that parses gives only texts that parse.

    Args:
        text: The function.
        seed: Seed of the random choices.
        language: The grammar.
        tries: Rewrites that are tried.
    """
    rng = random.Random(seed)
    is_whole = not parse(text, language).partial
    for _ in range(tries):
        name = rng.choice(list(REWRITES))
        new = REWRITES[name](text, rng, language)
        if new is None or new == text or (is_whole and parse(new, language).partial):
            continue
        yield name, new


def greedy_rewrite(  # noqa: PLR0913 - every setting is a keyword
    text: str,
    margin: Callable[[str], float],
    *,
    inserted: int = 0,
    deleted: int = 0,
    replaced: int = 0,
    seed: int = 0,
    language: Language = "cpp",
    rounds: int = 10,
    tries: int = 20,
) -> tuple[str, Edits]:
    """Rewrites a function step by step, each time as the margin falls most, within this many edited statements.

    Args:
        text: The function.
        margin: How far a text is from another verdict, for example the votes for the label minus those against. The
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
    best = _Attempt(margin(text), 0, text, Edits((), ()))
    for step in range(rounds):
        attempts = []
        for _, new in rewritten(best.text, seed + step, language, tries):
            edits = difference(text, new, language)
            if edits.within(inserted, deleted, replaced):
                attempts.append(_Attempt(margin(new), edits.count, new, edits))
        if best.margin < 0 or not attempts:
            break
        lowest = min(attempts, key=lambda attempt: attempt[:3])
        if lowest.margin <= best.margin:
            best = lowest
    return best.text, best.edits


class _Attempt(NamedTuple):
    """A rewritten text, how far it is from another verdict, and its difference from the original."""

    margin: float
    num_edits: int
    text: str
    edits: Edits


def worst_edits(
    text: str,
    vote: Callable[[str], int],
    label: int,
    rival: str,
    *,
    inserted: int = 0,
    deleted: int = 0,
    replaced: int = 0,
    language: Language = "cpp",
) -> tuple[str, Edits] | None:
    """Finds the edits that do most to a vote of single statements, whatever they do to what a function computes.

    Where every statement has one vote, edits add up, so that nothing beats the obvious: delete statements that
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
        The new text and its difference from the old one, in which fewer statements may be deleted than asked for, or
        ``None`` if there is no place for a statement.

    Example:
        >>> says = lambda text: 0 if "check" in text else 1
        >>> worst_edits("void f() { check(n); g(n); }", says, 0, "h();", inserted=1, deleted=1)[0]
        'void f() {  h(); g(n); }'
    """
    parsed = _Parsed.of(text, language)
    in_blocks = parsed.in_blocks()
    if not in_blocks:
        return None
    loyal = [statement for statement in in_blocks if statement.kind == "simple" and vote(statement.text) == label]
    removed = loyal[: deleted + replaced]
    kept = [statement for statement in in_blocks if all(statement is not other for other in removed)]
    place = kept[0].span[0] if kept else removed[0].span[1]
    changes = [_Change(*statement.span, "") for statement in removed]
    changes.append(_Change(place, place, f"{rival} " * (inserted + replaced)))
    new = _spliced(parsed.source, changes)
    return new, counted_difference(parsed.statements, parse(new, language).statements)


def _is_plain(statement: Statement) -> bool:
    """Returns whether a statement just computes: no call, no macro, no allocation."""
    if statement.kind != "simple" or "(" in statement.text:
        return False
    return statement.text.endswith(";") and not statement.text.startswith("#")


def _is_repeatable(statement: Statement) -> bool:
    """Returns whether a statement assigns a value that does not depend on what it sets."""
    if not _is_plain(statement) or _declares(statement):
        return False
    return bool(statement.sets) and not statement.alters and not statement.sets & statement.reads


def _are_independent(first: Statement, second: Statement) -> bool:
    """Returns whether two statements compute the same in either order."""
    if not (_is_plain(first) and _is_plain(second)):
        return False
    if (_touches_memory(first) and second.alters) or (_touches_memory(second) and first.alters):
        return False
    changed_first = first.sets | first.alters
    changed_second = second.sets | second.alters
    return not changed_first & (changed_second | second.reads) and not changed_second & first.reads


def _touches_memory(statement: Statement) -> bool:
    return any(token in statement.text.split(" ") for token in ("*", "->", "["))


def _declares(statement: Statement) -> bool:
    """Returns whether a statement begins with two words, as declarations and parameters do, and sets something."""
    words = statement.text.replace("* ", "").split(" ")[:2]
    if not statement.sets or statement.kind != "simple" or len(words) < 2:
        return False
    return words[1].isidentifier() and (is_name(words[0]) or words[0].isidentifier())


def _all_nodes(root: Node) -> Iterator[Node]:
    """Yields a node of tree-sitter and all nodes inside, in the order of the text."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


def _stretch(source: bytes, start: int, end: int) -> str:
    return source[start:end].decode("utf-8", "replace")


def _spliced(source: bytes, changes: list[_Change]) -> str:
    """Returns the text with some stretches replaced."""
    for start, end, new in sorted(changes, reverse=True):
        source = source[:start] + new.encode() + source[end:]
    return source.decode("utf-8", "replace")
