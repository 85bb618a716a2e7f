"""From text to a tree of statements: what each statement says, where it stands, which variables it sets and reads.

Every statement owns its tokens except those of statements inside it: ``if (a < b) { f(); }`` owns ``if ( a < b )``,
and ``f ( ) ;`` is a statement of its own. Braces, ``else``, ``try`` and lone semicolons belong to nobody. Parameters
of a function are statements too, and the function's head (return type, name) is one.

Text that cannot be parsed is not lost: whatever tree-sitter leaves over between statements is kept as a statement
of kind ``unparsed``, and the result is marked as partial.
"""

import re
import warnings
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal

from agnncert.errors import AgnncertError, missing
from agnncert_code.tokens import is_name, normalised

Language = Literal["cpp", "c"]
Kind = Literal[
    "simple", "block", "head", "if", "loop", "do", "switch", "case", "label", "jump", "goto", "break", "continue",
    "try", "catch", "throw", "unparsed",
]  # fmt: skip


@dataclass(slots=True)
class Statement:
    """One statement, or a block, which has no text of its own.

    Attributes:
        kind: What control does here.
        text: Normalised own text, empty for blocks.
        line: Line of its first token, counted from 1.
        span: First byte and the one after the last, of all that lies inside too.
        parent: Position of the enclosing statement or block; -1 for the outermost.
        role: Which part of its parent it is: one of ``body``, ``else``, ``catch``.
        children: Positions of what lies inside, in the order of the text.
        name: Of a label or of the label that a goto names; "default" of a default label; of the function, for heads.
        sets: Variables whose value it replaces.
        alters: Variables that it may change in part: elements, fields, what is pointed to.
        reads: Variables that it mentions otherwise.
    """

    kind: Kind
    text: str
    line: int
    span: tuple[int, int]
    parent: int
    role: str
    children: list[int] = field(default_factory=list)
    name: str = ""
    sets: set[str] = field(default_factory=set)
    alters: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Syntax:
    """The statements of a text, in its order, each after the one that encloses it; whether parts did not parse."""

    statements: list[Statement]
    partial: bool


@lru_cache(maxsize=2)
def parser(language: Language) -> Any:
    """tree-sitter's parser for ``"cpp"`` or ``"c"``."""
    if language not in ("cpp", "c"):
        raise AgnncertError(f'no grammar is called "{language}": expected "cpp" (reads most C too) or "c".')
    try:
        import tree_sitter

        grammar = import_module(f"tree_sitter_{language}")
    except ModuleNotFoundError as error:
        raise missing(error.name, "reading C and C++") from None
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def parse(text: str, language: Language = "cpp") -> Syntax:
    """The statements of a whole text.

    Example:
        >>> [s.text for s in parse("int f(int a) { if (a) return 1; return 0; }").statements if s.text]
        ['int f', 'int a', 'if ( a )', 'return 1 ;', 'return 0 ;']
    """
    source = text.encode("utf-8", "replace")
    return statements_of(parser(language).parse(source).root_node, source)


def parsed_within(source: bytes, language: Language, seconds: float) -> Any:
    """The root of tree-sitter's tree; ``None`` if that takes longer, as for text that is made to be slow to parse.

    Versions of tree-sitter that cannot be given a limit take as long as they take.
    """
    found = parser(language)
    try:
        _set_limit(found, seconds)
        tree = found.parse(source)
    except ValueError:  # how it tells that the time was up
        tree = None
    finally:
        _set_limit(found, 0)
    if tree is None:
        found.reset()  # else the next text would be taken for the rest of this one
    return None if tree is None else tree.root_node


def _set_limit(found: Any, seconds: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its successor works on callbacks only, whose nodes have no text
        if hasattr(found, "timeout_micros"):
            found.timeout_micros = int(1e6 * seconds)


def function_nodes(root: Any) -> list[Any]:
    """The outermost function definitions below a node of tree-sitter, in the order of the text."""
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        if node.type == "function_definition" and node.child_by_field_name("body") is not None:
            found.append(node)
        elif node.type in _HOLDS_FUNCTIONS:
            stack += reversed(node.children)
    return found


_HOLDS_FUNCTIONS = {
    "translation_unit", "namespace_definition", "linkage_specification", "declaration_list", "template_declaration",
    "class_specifier", "struct_specifier", "union_specifier", "field_declaration_list", "declaration", "ERROR",
    "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
}  # fmt: skip


def ends_of_lines(source: bytes) -> list[int]:
    """Where each line of a file ends, in bytes."""
    return [match.start() for match in re.finditer(b"\n", source)]


def statements_of(root: Any, source: bytes, line_ends: list[int] | None = None) -> Syntax:
    """The statements below one node of tree-sitter, by one walk without recursion, so that no nesting is too deep.

    Args:
        root: The node.
        source: The text of the whole file.
        line_ends: Where its lines end; pass it when a file is asked for many nodes, else it is searched each time.
    """
    walk = _Walk(source, ends_of_lines(source) if line_ends is None else line_ends)
    stack = [(root, -1, "body")]
    while stack:
        node, parent, role = stack.pop()
        stack += reversed(walk.enter(node, parent, role))
    return Syntax(walk.statements, root.has_error)


Pending = list[tuple[Any, int, str]]

_PUNCTUATION = {"{", "}", "(", ")", ",", ";"}  # left over on their own, they say nothing

_BLOCKS = {"compound_statement", "translation_unit", "declaration_list", "else_clause", "preproc_else"}
_BODIED: dict[str, Kind] = {
    "while_statement": "loop", "for_statement": "loop", "for_range_loop": "loop", "do_statement": "do",
    "switch_statement": "switch", "catch_clause": "catch", "namespace_definition": "simple",
    "linkage_specification": "simple",
}  # fmt: skip
_CONDITIONAL = {"preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef"}
_JUMPS: dict[str, Kind] = {
    "return_statement": "jump", "co_return_statement": "jump", "break_statement": "break",
    "continue_statement": "continue", "throw_statement": "throw",
}  # fmt: skip
_STATEMENTS = _BLOCKS | _CONDITIONAL | set(_BODIED) | set(_JUMPS) | {
    "expression_statement", "declaration", "function_definition", "if_statement", "case_statement", "goto_statement",
    "labeled_statement", "try_statement", "template_declaration", "type_definition", "preproc_def", "preproc_include",
    "preproc_function_def", "preproc_call", "using_declaration", "alias_declaration", "static_assert_declaration",
    "parameter_declaration",
}  # fmt: skip


class _Walk:
    """Collects statements; ``enter`` takes one node of tree-sitter and returns what is to be entered inside it."""

    def __init__(self, source: bytes, line_ends: list[int]) -> None:
        self.source = source
        self.statements: list[Statement] = []
        self.line_ends = line_ends

    def enter(self, node: Any, parent: int, role: str) -> Pending:
        kind = node.type
        if kind in _BLOCKS:
            return self.inside(node.children, self.add("block", [], node, parent, role))
        if kind == "ERROR":
            return self.error(node, parent, role)
        if kind == "function_definition":
            if self.is_inside(parent) and node.child_by_field_name("type") is None:
                return self.macro(node, parent, role)
            return self.function(node, node.child_by_field_name("body"), parent, role)
        if kind == "declaration" and (body := _empty_body(node)) is not None:
            return self.function(node, body, parent, role)
        if kind == "if_statement":
            return self.bodied(node, parent, role, "if", {"consequence": "body", "alternative": "else"})
        if kind in _BODIED:
            return self.bodied(node, parent, role, _BODIED[kind], {"body": "body"})
        if kind in _CONDITIONAL:
            return self.conditional(node, parent, role)
        if kind == "case_statement" or kind == "labeled_statement":
            return self.labelled(node, parent, role)
        if kind == "try_statement":
            place = self.add("try", [], node, parent, role)
            return [(n, place, "catch" if n.type == "catch_clause" else "body") for n in _meaningful(node.children)]
        if kind == "template_declaration" and node.children[-1].type == "function_definition":
            place = self.add("simple", node.children[:-1], node, parent, role)
            return [(node.children[-1], place, "body")]
        self.simple(node, parent, role)
        return []

    def simple(self, node: Any, parent: int, role: str) -> None:
        place = self.add(_JUMPS.get(node.type, "simple"), [node], node, parent, role)
        if node.type == "goto_statement" and place >= 0:
            self.statements[place].kind = "goto"
            self.statements[place].name = _text(node.child_by_field_name("label"))

    def bodied(self, node: Any, parent: int, role: str, kind: Kind, parts: dict[str, str]) -> Pending:
        inner = {n.id: part for name, part in parts.items() if (n := node.child_by_field_name(name)) is not None}
        own = [n for n in node.children if n.id not in inner]
        place = self.add(kind, own, node, parent, role)
        if node.type == "for_range_loop" and (name := _declared(node.child_by_field_name("declarator"))):
            self.statements[place].sets.add(name)
            self.statements[place].reads.discard(name)
        return [(n, place, inner[n.id]) for n in node.children if n.id in inner]

    def conditional(self, node: Any, parent: int, role: str) -> Pending:
        """``#if`` and its kin, as an ``if``: whether the compiler sees the body is decided elsewhere."""
        head = [node.children[0]] + [n for f in ("condition", "name") if (n := node.child_by_field_name(f))]
        known = {n.id for n in head}
        other = node.child_by_field_name("alternative")
        place = self.add("if", head, node, parent, role)
        rest = [n for n in _meaningful(node.children) if n.id not in known]
        return [(n, place, "else" if other is not None and n.id == other.id else "body") for n in rest]

    def labelled(self, node: Any, parent: int, role: str) -> Pending:
        colon = next((k for k, n in enumerate(node.children) if n.type == ":"), len(node.children) - 1)
        head, rest = node.children[: colon + 1], node.children[colon + 1 :]
        kind: Kind = "case" if node.type == "case_statement" else "label"
        place = self.add(kind, head, node, parent, role)
        first = head[0]
        self.statements[place].name = "default" if first.type == "default" else _text(first) if kind == "label" else ""
        return self.inside(rest, place)

    def macro(self, node: Any, parent: int, role: str) -> Pending:
        """``for_each(a, b) { … }``, which looks like a function inside a function."""
        inside = self.bodied(node, parent, role, "loop", {"body": "body"})
        head = self.statements[-1]
        head.reads.update(word for word in head.text.split(" ") if is_name(word))
        return inside

    def function(self, node: Any, body: Any, parent: int, role: str) -> Pending:
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        parameters = None if declarator is None else declarator.child_by_field_name("parameters")
        inner = [n for n in (parameters, body) if n is not None]
        old_style = [n for n in node.children if n.type == "declaration"]  # int f(a) int a; { … }
        cuts = sorted([*inner, *old_style], key=lambda n: int(n.start_byte))
        place = self.add("head", [], node, parent, role, text=self.without(node, cuts, body))
        if declarator is not None:
            self.statements[place].name = _text(declarator.child_by_field_name("declarator"))
        taken = [] if parameters is None else [n for n in parameters.children if n.is_named or n.type == "..."]
        rest = [n for n in (*old_style, body) if n is not None and n.type != "initializer_list"]
        return [(n, place, "body") for n in [*taken, *rest] if n.type != "comment"]

    def is_inside(self, parent: int) -> bool:
        """Whether what has this parent lies in a function."""
        while parent >= 0 and self.statements[parent].kind != "head":
            parent = self.statements[parent].parent
        return parent >= 0

    def error(self, node: Any, parent: int, role: str) -> Pending:
        inner = [n for n in node.children if n.type in _STATEMENTS]
        loose = [n for n in _meaningful(node.children, named=False) if n.type not in _STATEMENTS]
        loose = [n for n in loose if n.type not in _PUNCTUATION]
        place = self.add("unparsed" if loose else "block", loose, node, parent, role)
        return [(n, place, "body") for n in inner]

    def inside(self, children: list[Any], place: int) -> Pending:
        return [(n, place, "body") for n in _meaningful(children)]

    def without(self, node: Any, cuts: list[Any], last: Any) -> str:
        """The text of a node without some of the nodes inside it, up to the last of them."""
        pieces, start = [], node.start_byte
        for cut in cuts:
            pieces.append(self.source[start : cut.start_byte])
            start = cut.end_byte
        pieces.append(self.source[start : node.end_byte if last is None else last.end_byte])
        return normalised(b" ".join(pieces).decode("utf-8", "replace"))

    def add(self, kind: Kind, own: list[Any], node: Any, parent: int, role: str, text: str = "") -> int:
        """Notes a statement that owns these nodes, and returns its place; a lone semicolon is none and has -1."""
        if own:
            pieces = [self.source[n.start_byte : n.end_byte] for n in own]
            text = normalised(b" ".join(pieces).decode("utf-8", "replace"))
            if text == ";" or (not text and kind == "simple"):
                return -1
        line = bisect_left(self.line_ends, node.start_byte) + 1  # start_point crashes in tree-sitter 0.26.0
        statement = Statement(kind, text, line, (node.start_byte, node.end_byte), parent, role)
        place = len(self.statements)
        self.statements.append(statement)
        if parent >= 0:
            self.statements[parent].children.append(place)
        for piece in own:
            note_variables(piece, statement)
        return place


def _meaningful(children: list[Any], named: bool = True) -> list[Any]:
    return [n for n in children if (n.is_named or not named) and n.type != "comment"]


def _empty_body(node: Any) -> Any:
    """``int f(int a) {};`` parses as a variable with an initial value, but only as long as the braces are empty."""
    declarator = node.child_by_field_name("declarator")
    if declarator is None or declarator.type != "init_declarator":
        return None
    value, inner = (declarator.child_by_field_name(name) for name in ("value", "declarator"))
    while inner is not None and inner.type != "function_declarator":
        inner = inner.child_by_field_name("declarator")
    braces = value is not None and value.type == "initializer_list" and value.named_child_count == 0
    return value if inner is not None and braces else None


def _text(node: Any) -> str:
    return "" if node is None else node.text.decode("utf-8", "replace")


def note_variables(root: Any, statement: Statement) -> None:
    """Notes which variables the code below ``root`` sets, alters in part, and reads."""
    sets, alters, reads = statement.sets, statement.alters, statement.reads
    stack = [root]
    while stack:
        node = stack.pop()
        kind = node.type
        if kind == "identifier":
            reads.add(node.text.decode("utf-8", "replace"))
            continue
        if kind in _DECLARING:
            declarators = node.children_by_field_name("declarator")
            sets.update(name for n in declarators if (name := _declared(n)) is not None)
            names = {n.id for n in declarators if n.type != "init_declarator"}
            stack += [n for n in node.named_children if n.id not in names]
            stack += [size for n in declarators if (size := n.child_by_field_name("size")) is not None]
            continue
        if kind == "assignment_expression":
            left = node.child_by_field_name("left")
            operator = node.child_by_field_name("operator")
            if left is not None and left.type == "identifier":
                sets.add(_text(left))
                if operator is not None and operator.type == "=":
                    stack.append(node.child_by_field_name("right"))
                    continue
            elif left is not None and (name := _base(left)) is not None:
                alters.add(name)
        elif kind == "update_expression" or (kind == "pointer_expression" and node.children[0].type == "&"):
            argument = node.child_by_field_name("argument")
            if argument is not None and argument.type == "identifier" and kind == "update_expression":
                sets.add(_text(argument))
            elif argument is not None and (name := _base(argument)) is not None:
                alters.add(name)
        if node.child_count:
            stack += node.named_children


_DECLARING = {
    "declaration", "init_declarator", "parameter_declaration", "optional_parameter_declaration",
}  # fmt: skip


def _declared(declarator: Any) -> str | None:
    """The name that a declarator declares; none for functions."""
    while declarator is not None and declarator.type != "identifier":
        if declarator.type == "function_declarator" or not declarator.child_count:
            return None
        inner = declarator.child_by_field_name("declarator")
        declarator = (
            inner if inner is not None else declarator.named_children[-1] if declarator.named_children else None
        )
    return None if declarator is None else _text(declarator)


def _base(node: Any) -> str | None:
    """The variable that an expression such as ``a[i].b`` or ``*p`` goes through."""
    while node is not None and node.type != "identifier":
        inner = node.child_by_field_name("argument")
        if inner is None and node.type == "parenthesized_expression" and node.named_children:
            inner = node.named_children[0]
        node = inner
    return None if node is None else _text(node)
