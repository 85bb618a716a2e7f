"""Checks certificate files that hold votes: the functions that ``verifier.kinds`` asks for."""

from collections.abc import Callable

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import expected_claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, VoteRecord
from agnncert.verifier import recount_possible
from agnncert.verifier.check import check_vote_file
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import sort_votes
from agnncert.verifier.recount import holds

NOT_CHECKED = (
    "whether the targets, ids, true classes and degrees are those of a graph: pass data",
    "whether a model cast these votes, and may be certified: pass data and model",
)


def check(contents: Contents) -> list[str]:
    """Returns what is wrong with the statements of a file.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    record = VoteRecord.load(contents.evidence, contents.settings)
    return check_vote_file(contents, record, expected_claim(contents.claim, record))


def possible(contents: Contents, budget: Budget) -> BoolArray:
    """Returns which classes each target may get under an attack, shape ``[n, num_classes]``."""
    return recount_possible.of_votes(VoteRecord.load(contents.evidence, contents.settings), budget)


def breaks(contents: Contents) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the targets whose label may change, shape ``[n]``."""
    parts = list(sort_votes(VoteRecord.load(contents.evidence, contents.settings)))

    def of_budget(budget: Budget) -> BoolArray:
        return np.concatenate([~holds(piles, limits_under(piles, budget)) for piles in parts])

    return of_budget
