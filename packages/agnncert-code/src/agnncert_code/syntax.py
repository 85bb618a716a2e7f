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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

from agnncert.errors import AgnncertError, missing
from agnncert_code.tokens import is_name, normalised
from agnncert_code.variables import Node, Variables, declared_name, node_text

Language = Literal["cpp", "c"]
Kind = Literal[
    "simple",
    "block",
    "head",
    "if",
    "loop",
    "do",
    "switch",
    "case",
    "label",
    "jump",
    "goto",
    "break",
    "continue",
    "try",
    "catch",
    "throw",
    "unparsed",
]


@dataclass(slots=True)
class Statement:
    """One statement, or a block, which has no text of its own.

    Attributes:
        kind: What control does here.
        text: Normalised own text, empty for blocks.
        line: Line of its first token, counted from 1.
        span: First byte and the one after the last, of all that lies inside too.
        parent: Position of the enclosing statement or block, or -1 for the outermost.
        role: Which part of its parent it is: one of ``body``, ``else``, ``catch``.
        children: Positions of what lies inside, in the order of the text.
        name: Of a label or of the label that a goto names, "default" of a default label, or of the function, for heads.
        variables: Variables that it sets, alters and reads.
    """

    kind: Kind
    text: str
    line: int
    span: tuple[int, int]
    parent: int
    role: str
    children: list[int] = field(default_factory=list)
    name: str = ""
    variables: Variables = field(default_factory=Variables)

    @property
    def sets(self) -> set[str]:
        """Variables whose value it replaces."""
        return self.variables.sets

    @property
    def alters(self) -> set[str]:
        """Variables that it may change in part: elements, fields, what is pointed to."""
        return self.variables.alters

    @property
    def reads(self) -> set[str]:
        """Variables that it mentions otherwise."""
        return self.variables.reads


@dataclass(frozen=True)
class Syntax:
    """The statements of a text.

    Attributes:
        statements: The statements in the order of the text, each after the one that encloses it.
        partial: Whether parts of the text did not parse.
    """

    statements: list[Statement]
    partial: bool


@lru_cache(maxsize=2)
def parser(language: Language) -> Any:
    """Returns tree-sitter's parser for ``"cpp"`` or ``"c"``."""
    if language not in ("cpp", "c"):
        raise AgnncertError(f'no grammar is called "{language}": expected "cpp" (reads most C too) or "c".')
    try:
        import tree_sitter

        grammar = import_module(f"tree_sitter_{language}")
    except ModuleNotFoundError as error:
        raise missing(error.name, "reading C and C++") from None
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def parse(text: str, language: Language = "cpp") -> Syntax:
    """Returns the statements of a whole text.

    Example:
        >>> [s.text for s in parse("int f(int a) { if (a) return 1; return 0; }").statements if s.text]
        ['int f', 'int a', 'if ( a )', 'return 1 ;', 'return 0 ;']
    """
    source = text.encode("utf-8", "replace")
    return statements_of(parser(language).parse(source).root_node, source)


def parsed_within(source: bytes, language: Language, seconds: float) -> Node | None:
    """Returns the root of tree-sitter's tree, or ``None`` if that takes longer, as for text made to be slow to parse.

    Versions of tree-sitter that cannot be given a limit take as long as they take.
    """
    limited = parser(language)
    try:
        _set_limit(limited, seconds)
        tree = limited.parse(source)
    except ValueError:  # how it tells that the time was up
        tree = None
    finally:
        _set_limit(limited, 0)
    if tree is None:
        limited.reset()  # else the next text would be taken for the rest of this one
        return None
    return tree.root_node


def _set_limit(limited: Any, seconds: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its successor works on callbacks only, whose nodes have no text
        if hasattr(limited, "timeout_micros"):
            limited.timeout_micros = int(1e6 * seconds)


_HOLDS_FUNCTIONS = {
    "translation_unit",
    "namespace_definition",
    "linkage_specification",
    "declaration_list",
    "template_declaration",
    "class_specifier",
    "struct_specifier",
    "union_specifier",
    "field_declaration_list",
    "declaration",
    "ERROR",
    "preproc_if",
    "preproc_ifdef",
    "preproc_else",
    "preproc_elif",
    "preproc_elifdef",
}


def function_nodes(root: Node) -> list[Node]:
    """Returns the outermost function definitions below a node of tree-sitter, in the order of the text."""
    nodes = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "function_definition" and node.child_by_field_name("body") is not None:
            nodes.append(node)
        elif node.type in _HOLDS_FUNCTIONS:
            stack += reversed(node.children)
    return nodes


def ends_of_lines(source: bytes) -> list[int]:
    """Returns where each line of a file ends, in bytes."""
    return [match.start() for match in re.finditer(b"\n", source)]


def statements_of(root: Node, source: bytes, line_ends: list[int] | None = None) -> Syntax:
    """Returns the statements below one node of tree-sitter, by one walk without recursion: no nesting is too deep.

    Args:
        root: The node.
        source: The text of the whole file.
        line_ends: Where its lines end. Pass it when a file is asked for many nodes, else it is searched each time.
    """
    walk = _Walk(source, ends_of_lines(source) if line_ends is None else line_ends)
    stack = [_Pending(root, -1, "body")]
    while stack:
        stack += reversed(walk.enter(stack.pop()))
    return Syntax(walk.statements, root.has_error)


class _Pending(NamedTuple):
    """A node that is to be entered: the position of its parent, and which part of the parent it is."""

    node: Node
    parent: int
    role: str


_PUNCTUATION = {"{", "}", "(", ")", ",", ";"}  # left over on their own, they say nothing

_BLOCKS = {"compound_statement", "translation_unit", "declaration_list", "else_clause", "preproc_else"}
_WITH_BODY: dict[str, Kind] = {
    "while_statement": "loop",
    "for_statement": "loop",
    "for_range_loop": "loop",
    "do_statement": "do",
    "switch_statement": "switch",
    "catch_clause": "catch",
    "namespace_definition": "simple",
    "linkage_specification": "simple",
}
_CONDITIONAL = {"preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef"}
_JUMPS: dict[str, Kind] = {
    "return_statement": "jump",
    "co_return_statement": "jump",
    "break_statement": "break",
    "continue_statement": "continue",
    "throw_statement": "throw",
}
_OTHER_STATEMENTS = {
    "expression_statement",
    "declaration",
    "function_definition",
    "if_statement",
    "case_statement",
    "goto_statement",
    "labeled_statement",
    "try_statement",
    "template_declaration",
    "type_definition",
    "preproc_def",
    "preproc_include",
    "preproc_function_def",
    "preproc_call",
    "using_declaration",
    "alias_declaration",
    "static_assert_declaration",
    "parameter_declaration",
}
_STATEMENTS = _BLOCKS | _CONDITIONAL | set(_WITH_BODY) | set(_JUMPS) | _OTHER_STATEMENTS


class _Walk:
    """Collects statements. ``enter`` takes one node of tree-sitter and returns what is to be entered inside it."""

    def __init__(self, source: bytes, line_ends: list[int]) -> None:
        self.source = source
        self.statements: list[Statement] = []
        self.line_ends = line_ends

    def enter(self, pending: _Pending) -> list[_Pending]:
        enter = _ENTER.get(pending.node.type, _Walk.enter_simple)
        return enter(self, pending)

    def enter_block(self, pending: _Pending) -> list[_Pending]:
        place = self.add_block("block", pending)
        return _inside(pending.node.children, place)

    def enter_simple(self, pending: _Pending) -> list[_Pending]:
        node = pending.node
        place = self.add(_JUMPS.get(node.type, "simple"), [node], pending)
        if node.type == "goto_statement" and place >= 0:
            self.statements[place].kind = "goto"
            self.statements[place].name = node_text(node.child_by_field_name("label"))
        return []

    def enter_if(self, pending: _Pending) -> list[_Pending]:
        return self.add_with_parts("if", pending, {"consequence": "body", "alternative": "else"})

    def enter_with_body(self, pending: _Pending) -> list[_Pending]:
        return self.add_with_parts(_WITH_BODY[pending.node.type], pending, {"body": "body"})

    def enter_conditional(self, pending: _Pending) -> list[_Pending]:
        """Enters ``#if`` and its kin as an ``if``: whether the compiler sees the body is decided elsewhere."""
        node = pending.node
        head = [node.children[0]]
        for name in ("condition", "name"):
            part = node.child_by_field_name(name)
            if part:
                head.append(part)
        in_head = {part.id for part in head}
        alternative = node.child_by_field_name("alternative")
        place = self.add("if", head, pending)
        inside = []
        for part in _meaningful(node.children):
            if part.id not in in_head:
                is_alternative = alternative is not None and part.id == alternative.id
                inside.append(_Pending(part, place, "else" if is_alternative else "body"))
        return inside

    def enter_labelled(self, pending: _Pending) -> list[_Pending]:
        """Enters a label, or a case, and what follows it."""
        node = pending.node
        colon = next((k for k, part in enumerate(node.children) if part.type == ":"), len(node.children) - 1)
        head = node.children[: colon + 1]
        is_case = node.type == "case_statement"
        place = self.add("case" if is_case else "label", head, pending)
        if head[0].type == "default":
            self.statements[place].name = "default"
        elif not is_case:
            self.statements[place].name = node_text(head[0])
        return _inside(node.children[colon + 1 :], place)

    def enter_try(self, pending: _Pending) -> list[_Pending]:
        place = self.add_block("try", pending)
        parts = _meaningful(pending.node.children)
        return [_Pending(part, place, "catch" if part.type == "catch_clause" else "body") for part in parts]

    def enter_template(self, pending: _Pending) -> list[_Pending]:
        *head, last = pending.node.children
        if last.type != "function_definition":
            return self.enter_simple(pending)
        place = self.add("simple", head, pending)
        return [_Pending(last, place, "body")]

    def enter_declaration(self, pending: _Pending) -> list[_Pending]:
        body = _empty_body(pending.node)
        if body is None:
            return self.enter_simple(pending)
        return self.add_function(pending, body)

    def enter_definition(self, pending: _Pending) -> list[_Pending]:
        node = pending.node
        if self.is_in_function(pending.parent) and node.child_by_field_name("type") is None:
            return self.add_macro(pending)
        return self.add_function(pending, node.child_by_field_name("body"))

    def enter_error(self, pending: _Pending) -> list[_Pending]:
        """Enters what could not be parsed: statements in it, and what is left over as one statement."""
        children = pending.node.children
        loose = [
            node
            for node in children
            if node.type != "comment" and node.type not in _STATEMENTS and node.type not in _PUNCTUATION
        ]
        place = self.add("unparsed", loose, pending) if loose else self.add_block("block", pending)
        return [_Pending(node, place, "body") for node in children if node.type in _STATEMENTS]

    def add_with_parts(self, kind: Kind, pending: _Pending, roles: dict[str, str]) -> list[_Pending]:
        """Notes a statement, and returns its parts, whose roles are stated by the names of their fields."""
        node = pending.node
        role_of = {}
        for name, role in roles.items():
            part = node.child_by_field_name(name)
            if part is not None:
                role_of[part.id] = role
        place = self.add(kind, [part for part in node.children if part.id not in role_of], pending)
        if node.type == "for_range_loop":
            self._note_loop_variable(node, place)
        return [_Pending(part, place, role_of[part.id]) for part in node.children if part.id in role_of]

    def _note_loop_variable(self, node: Node, place: int) -> None:
        name = declared_name(node.child_by_field_name("declarator"))
        if name:
            self.statements[place].sets.add(name)
            self.statements[place].reads.discard(name)

    def add_macro(self, pending: _Pending) -> list[_Pending]:
        """Notes ``for_each(a, b) { … }``, which looks like a function inside a function."""
        inside = self.add_with_parts("loop", pending, {"body": "body"})
        head = self.statements[-1]
        head.reads.update(word for word in head.text.split(" ") if is_name(word))
        return inside

    def add_function(self, pending: _Pending, body: Node | None) -> list[_Pending]:
        """Notes the head of a function, and returns its parameters and its body."""
        node = pending.node
        declarator = _function_declarator(node)
        parameters = None if declarator is None else declarator.child_by_field_name("parameters")
        old_style = [part for part in node.children if part.type == "declaration"]  # int f(a) int a; { … }
        cuts = [part for part in (parameters, *old_style, body) if part is not None]
        place = self._append("head", self.text_without(node, cuts, body), pending)
        if declarator is not None:
            self.statements[place].name = node_text(declarator.child_by_field_name("declarator"))
        inside = []
        if parameters is not None:
            inside += [part for part in parameters.children if part.is_named or part.type == "..."]
        inside += old_style
        if body is not None and body.type != "initializer_list":
            inside.append(body)
        return [_Pending(part, place, "body") for part in inside if part.type != "comment"]

    def is_in_function(self, parent: int) -> bool:
        """Returns whether what has this parent lies in a function."""
        while parent >= 0 and self.statements[parent].kind != "head":
            parent = self.statements[parent].parent
        return parent >= 0

    def text_without(self, node: Node, cuts: Iterable[Node], last: Node | None) -> str:
        """Returns the text of a node without some of the nodes inside it, up to the end of the last one."""
        parts = []
        start = node.start_byte
        for cut in sorted(cuts, key=lambda inner: int(inner.start_byte)):
            parts.append(self.source[start : cut.start_byte])
            start = cut.end_byte
        parts.append(self.source[start : node.end_byte if last is None else last.end_byte])
        return _joined(parts)

    def add(self, kind: Kind, own: list[Node], pending: _Pending) -> int:
        """Notes a statement that owns some nodes, and returns its position. A lone semicolon is none and has -1."""
        text = _joined(self.source[node.start_byte : node.end_byte] for node in own)
        if own and (text == ";" or (not text and kind == "simple")):
            return -1
        place = self._append(kind, text, pending)
        for node in own:
            self.statements[place].variables.note(node)
        return place

    def add_block(self, kind: Kind, pending: _Pending) -> int:
        """Notes something that has no text of its own, and returns its position."""
        return self._append(kind, "", pending)

    def _append(self, kind: Kind, text: str, pending: _Pending) -> int:
        node, parent, role = pending
        line = bisect_left(self.line_ends, node.start_byte) + 1  # start_point crashes in tree-sitter 0.26.0
        place = len(self.statements)
        self.statements.append(Statement(kind, text, line, (node.start_byte, node.end_byte), parent, role))
        if parent >= 0:
            self.statements[parent].children.append(place)
        return place


_ENTER: dict[str, Callable[[_Walk, _Pending], list[_Pending]]] = {
    **dict.fromkeys(_BLOCKS, _Walk.enter_block),
    **dict.fromkeys(_WITH_BODY, _Walk.enter_with_body),
    **dict.fromkeys(_CONDITIONAL, _Walk.enter_conditional),
    "ERROR": _Walk.enter_error,
    "function_definition": _Walk.enter_definition,
    "declaration": _Walk.enter_declaration,
    "if_statement": _Walk.enter_if,
    "case_statement": _Walk.enter_labelled,
    "labeled_statement": _Walk.enter_labelled,
    "try_statement": _Walk.enter_try,
    "template_declaration": _Walk.enter_template,
}


def _joined(parts: Iterable[bytes]) -> str:
    return normalised(b" ".join(parts).decode("utf-8", "replace"))


def _meaningful(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in nodes if node.is_named and node.type != "comment"]


def _inside(nodes: Iterable[Node], place: int) -> list[_Pending]:
    return [_Pending(node, place, "body") for node in _meaningful(nodes)]


def _function_declarator(node: Node | None) -> Node | None:
    """Returns the part of a declaration that has the name and the parameters of a function."""
    while node is not None:
        node = node.child_by_field_name("declarator")
        if node is not None and node.type == "function_declarator":
            return node
    return None


def _empty_body(node: Node) -> Node | None:
    """Returns the braces of ``int f(int a) {};``.

    It parses as a variable with an initial value, but only as long as the braces are empty.
    """
    declarator = node.child_by_field_name("declarator")
    if declarator is None or declarator.type != "init_declarator":
        return None
    value = declarator.child_by_field_name("value")
    if value is None or value.type != "initializer_list" or value.named_child_count:
        return None
    return value if _function_declarator(declarator) is not None else None
