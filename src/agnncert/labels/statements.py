"""Whether the weights that are computed here prove what the weights of a file prove.

Machines may compute weights a little differently. A forger could use all of this for one label. So what is derived
from the weights of a file may be less than what is derived from the weights that are computed here, and never more.
"""

from collections.abc import Iterator

import numpy as np

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.labels.joint_record import JointRecord
from agnncert.labels.record import LabelRecord
from agnncert.verifier.recount_joint import Left, elect, leads_left
from agnncert.verifier.recount_labels import recount


def not_proved_here(stored: LabelRecord, here: LabelRecord) -> list[str]:
    """Returns what label votes of a file prove that those computed here do not.

    Compared are the label, and how many changed labels each class needs. Radius, answers to budgets, possible classes
    and numbers of broken targets all follow from these.

    Args:
        stored: The label votes of the file.
        here: The same with weights that were computed here.
    """
    theirs, ours = recount(stored), recount(here)
    is_other = theirs.label != ours.label
    is_more = ~is_other & (theirs.needed > ours.needed).any(axis=1)
    return [*_reasons(is_other, is_more)]


def not_proved_together_here(stored: JointRecord, here: JointRecord) -> list[str]:
    """Returns what label votes and votes of neighbours of a file prove that those computed here do not.

    Compared are the label, and for each number of changed labels every pair of numbers of edges that are added and
    deleted. Arguments are as in :func:`not_proved_here`.
    """
    theirs, ours = elect(stored), elect(here)
    is_other = theirs.label != ours.label
    is_more = np.zeros(stored.num_targets, dtype=bool)
    if not is_other.any():
        for (_, stated), (_, known) in zip(leads_left(stored, theirs), leads_left(here, ours), strict=True):
            is_more[stated.rows] |= _withstands_more(stated, known, stored.neighbour_steps)
    return [*_reasons(is_other, is_more)]


def _withstands_more(stated: Left, known: Left, neighbour_steps: int) -> BoolArray:
    """Tells which targets withstand an attack by what is stated, and not by what is known here, shape ``[b]``.

    After some changed labels, a added and d deleted neighbours are withstood if a + min(d, sure) <= votes.
    """
    if not neighbour_steps:
        return np.asarray(((stated.lead >= 0) & (known.lead < 0)).any(axis=1))
    votes, votes_here = stated.lead // neighbour_steps, known.lead // neighbour_steps
    # With d >= both numbers of sure neighbours, up to a = votes - sure are withstood by what is stated.
    with_all_deleted = (votes >= stated.sure) & (votes - stated.sure + known.sure > votes_here)
    is_more = (votes >= 0) & ((votes > votes_here) | with_all_deleted)
    return np.asarray(is_more.any(axis=1))


def _reasons(is_other: BoolArray, is_more: BoolArray) -> Iterator[str]:
    advice = "if nobody altered the file, machines differ: certify again on this one"
    if is_other.any():
        yield f"{_targets(is_other)} another label with the weights that are computed here; {advice}"
    if is_more.any():
        yield f"{_targets(is_more)} fewer changes withstood with the weights that are computed here; {advice}"


def _targets(marked: BoolArray) -> str:
    rows: IntArray = np.flatnonzero(marked)
    return f"{len(rows):,} targets (first: number {rows[0]}) have"
