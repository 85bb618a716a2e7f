"""Edited statements as a budget: how many edits lie between two texts, and what a number of edits can do to the graph.

An edit makes one normalised text occur once more or once less in a function. docs/code.md proves that this adds or
removes one node.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray
from agnncert.proving.certificate import Certificate
from agnncert.proving.theorems import largest_amount
from agnncert_code.syntax import Language, Statement, parse


@dataclass(frozen=True)
class Edits:
    """Statements that one text has more than another, as normalised texts in alphabetical order.

    Attributes:
        inserted: Texts that were added, each as often as it was.
        deleted: Texts that were removed.
    """

    inserted: tuple[str, ...]
    deleted: tuple[str, ...]

    @property
    def count(self) -> int:
        """The fewest edited statements, where a replaced one counts once."""
        return max(len(self.inserted), len(self.deleted))

    def within(self, inserted: int = 0, deleted: int = 0, replaced: int = 0) -> bool:
        """Returns whether the edits are within these numbers of insertions, deletions and replacements."""
        more = len(self.inserted) - inserted
        less = len(self.deleted) - deleted
        return max(more, less, 0) <= replaced


def difference(before: str, after: str, language: Language = "cpp") -> Edits:
    """Returns what has to be edited to make one text from another. Layout, comments, braces and order are free.

    Example:
        >>> difference("int f() { a(); b(); }", "int f() { if (x) { b(); b(); } }")
        Edits(inserted=('b ( ) ;', 'if ( x )'), deleted=('a ( ) ;',))
    """
    return counted_difference(parse(before, language).statements, parse(after, language).statements)


def counted_difference(before: Iterable[Statement], after: Iterable[Statement]) -> Edits:
    """Returns what ``difference`` does, for texts that have been parsed already."""
    old = Counter(statement.text for statement in before if statement.text)
    new = Counter(statement.text for statement in after if statement.text)
    return Edits(tuple(sorted((new - old).elements())), tuple(sorted((old - new).elements())))


def edits(inserted: float = 0, deleted: float = 0, replaced: float = 0, flows: bool = True) -> Budget:
    """Returns the budget of an attacker who edits these numbers of statements of a function.

    An inserted statement is a new node with any edges, a deleted one is gone, a replaced one is both, since its id is
    its text. All other statements keep their features and ids. The flow between them may change in any way, since a
    single ``return`` or ``goto`` redirects it, so edges are unlimited.

    Args:
        inserted: Statements added.
        deleted: Statements removed.
        replaced: Statements rewritten.
        flows: Whether the graphs have edges that follow from the flow. They have none if they were read with
            ``edges="names"`` or ``edges="none"``: then edges between other statements stay as they are.

    Example:
        >>> edits(inserted=2, replaced=1, flows=False)
        Budget(inject_nodes=3, delete_nodes=1)
    """
    free = math.inf if flows else 0
    return Budget(
        add_edges=free,
        delete_edges=free,
        change_edges=free,
        inject_nodes=inserted + replaced,
        edges_per_injected=math.inf,
        delete_nodes=deleted + replaced,
    )


def withstood(certificate: Certificate, kind: str = "edited", flows: bool = True) -> FloatArray:
    """Returns the largest number of edited statements that each function is certified against, shape ``[n]``.

    Args:
        certificate: A certificate of functions, as of ``ac.certify`` on graphs of ``read_functions``.
        kind: ``"inserted"``, ``"deleted"``, ``"replaced"``, or ``"edited"``: any mix of these. A mix of k edits
            adds and removes no more than k statements, as k replaced ones do, so the two are the same.
        flows: As in ``edits``.

    Returns:
        Whole numbers, ``math.inf`` where any number is withstood, and -1 where nothing is proved.
    """
    field = "replaced" if kind == "edited" else kind

    def holds(amounts: FloatArray) -> BoolArray:
        is_held = np.zeros(certificate.num_targets, dtype=bool)
        for amount in np.unique(amounts):
            here = amounts == amount
            budget = edits(**{field: float(amount)}, flows=flows)
            is_held[here] = certificate.holds_against(budget)[here]
        return is_held

    return largest_amount(holds, certificate.num_targets)
