"""Which variables a piece of code sets, alters in part, and reads, by the tree of tree-sitter."""

from dataclasses import dataclass, field
from typing import Any

Node = Any  # of tree-sitter, which states no types

_DECLARING = {"declaration", "init_declarator", "parameter_declaration", "optional_parameter_declaration"}


@dataclass(slots=True)
class Variables:
    """Names of variables.

    Attributes:
        sets: Variables whose value is replaced.
        alters: Variables that may be changed in part: elements, fields, what is pointed to.
        reads: Variables that are mentioned otherwise.
    """

    sets: set[str] = field(default_factory=set)
    alters: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)

    def note(self, root: Node) -> None:
        """Adds what the code below a node does with variables."""
        stack = [root]
        while stack:
            node = stack.pop()
            if node.type == "identifier":
                self.reads.add(node_text(node))
            elif node.type in _DECLARING:
                stack += self._note_declaration(node)
            elif node.type == "assignment_expression":
                stack += self._note_assignment(node)
            elif node.type in ("update_expression", "pointer_expression"):
                self._note_argument(node)
                stack += node.named_children
            elif node.child_count:
                stack += node.named_children

    def _note_declaration(self, node: Node) -> list[Node]:
        """Adds declared variables, and returns the nodes in which to look for others."""
        declarators = node.children_by_field_name("declarator")
        for declarator in declarators:
            name = declared_name(declarator)
            if name is not None:
                self.sets.add(name)
        names = {declarator.id for declarator in declarators if declarator.type != "init_declarator"}
        sizes = [declarator.child_by_field_name("size") for declarator in declarators]
        others = [child for child in node.named_children if child.id not in names]
        return [*others, *(size for size in sizes if size is not None)]

    def _note_assignment(self, node: Node) -> list[Node]:
        """Adds the variable that an assignment changes, and returns the nodes in which to look for others."""
        left = node.child_by_field_name("left")
        operator = node.child_by_field_name("operator")
        children: list[Node] = node.named_children
        if left is None:
            return children
        if left.type != "identifier":
            self._note_altered(left)
            return children
        self.sets.add(node_text(left))
        if operator is not None and operator.type == "=":  # which does not read what it sets
            return [node.child_by_field_name("right")]
        return children

    def _note_argument(self, node: Node) -> None:
        """Adds the variable that ``++`` or ``--`` counts, or whose address ``&`` takes."""
        argument = node.child_by_field_name("argument")
        if argument is None:
            return
        if node.type == "update_expression" and argument.type == "identifier":
            self.sets.add(node_text(argument))
        elif node.type == "update_expression" or node.children[0].type == "&":
            self._note_altered(argument)

    def _note_altered(self, node: Node) -> None:
        name = _base_name(node)
        if name is not None:
            self.alters.add(name)


def node_text(node: Node | None) -> str:
    """Returns the text of a node, or empty if there is none."""
    return "" if node is None else node.text.decode("utf-8", "replace")


def declared_name(declarator: Node | None) -> str | None:
    """Returns the name that a declarator declares, or none for functions."""
    while declarator is not None and declarator.type != "identifier":
        if declarator.type == "function_declarator" or not declarator.child_count:
            return None
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.named_children:
            inner = declarator.named_children[-1]
        declarator = inner
    return None if declarator is None else node_text(declarator)


def _base_name(node: Node | None) -> str | None:
    """Returns the variable that an expression such as ``a[i].b`` or ``*p`` goes through."""
    while node is not None and node.type != "identifier":
        inner = node.child_by_field_name("argument")
        if inner is None and node.type == "parenthesized_expression" and node.named_children:
            inner = node.named_children[0]
        node = inner
    return None if node is None else node_text(node)
