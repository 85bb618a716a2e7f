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
        """Whether the edits are within these numbers of insertions, deletions and replacements."""
        more, less = max(len(self.inserted) - inserted, 0), max(len(self.deleted) - deleted, 0)
        return max(more, less) <= replaced


def difference(before: str, after: str, language: Language = "cpp") -> Edits:
    """What has to be edited to make one text from another. Layout, comments, braces and order are free.

    Example:
        >>> difference("int f() { a(); b(); }", "int f() { if (x) { b(); b(); } }")
        Edits(inserted=('b ( ) ;', 'if ( x )'), deleted=('a ( ) ;',))
    """
    return counted_difference(*(parse(text, language).statements for text in (before, after)))


def counted_difference(before: Iterable[Statement], after: Iterable[Statement]) -> Edits:
    """As :func:`difference`, for texts that have been parsed already."""
    old, new = (Counter(s.text for s in statements if s.text) for statements in (before, after))
    return Edits(tuple(sorted((new - old).elements())), tuple(sorted((old - new).elements())))


def edits(inserted: float = 0, deleted: float = 0, replaced: float = 0, flows: bool = True) -> Budget:
    """The budget of an attacker who edits these numbers of statements of a function.

    An inserted statement is a new node with any edges, a deleted one is gone, a replaced one is both, since its id is
    its text. All other statements keep their features and ids. The flow between them may change in any way, since a
    single ``return`` or ``goto`` redirects it, so edges are unlimited.

    Args:
        inserted: Statements added.
        deleted: Statements removed.
        replaced: Statements rewritten.
        flows: Whether the graphs have edges that follow from the flow; False for graphs that were read with
            ``edges="names"`` or ``edges="none"``, in which edges between other statements stay as they are.

    Example:
        >>> edits(inserted=2, replaced=1, flows=False)
        Budget(inject_nodes=3, edges_per_injected=inf, delete_nodes=1)
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
    """The largest number of edited statements that each function is certified against, shape ``[n]``.

    Args:
        certificate: A certificate of functions, as of ``ac.certify`` on graphs of ``read_functions``.
        kind: ``"inserted"``, ``"deleted"``, ``"replaced"``, or ``"edited"``: any mix of these. A mix of k edits
            adds and removes no more than k statements, as k replaced ones do, so the two are the same.
        flows: As in ``edits``.

    Returns:
        Whole numbers; ``math.inf`` where any number is withstood, -1 where nothing is proved.
    """
    field = "replaced" if kind == "edited" else kind

    def holds(amounts: FloatArray) -> BoolArray:
        answer = np.zeros(certificate.num_targets, dtype=bool)
        for amount in np.unique(amounts):
            here = amounts == amount
            answer[here] = certificate.holds_against(edits(**{field: float(amount)}, flows=flows))[here]
        return answer

    return largest_amount(holds, certificate.num_targets)
