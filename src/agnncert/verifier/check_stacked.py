"""Checks certificate files that hold stacked votes: the functions that ``verifier.kinds`` asks for."""

from collections.abc import Callable

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray
from agnncert.stacked.record import StackedRecord
from agnncert.verifier import recount_stacked

NOT_CHECKED = (
    "whether the targets, ids, true classes and degrees are those of a graph: pass data",
    "whether a model computed these scores and votes, and may be certified: pass data and model",
)


def check(contents: Contents) -> list[str]:
    """Returns what is wrong with the statements of a file.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    return recount_stacked.check_stacked_file(contents)


def possible(contents: Contents, budget: Budget) -> BoolArray:
    """Returns which classes each target may get under an attack, shape ``[n, num_classes]``."""
    return recount_stacked.possible(StackedRecord.load(contents.evidence, contents.settings), budget)


def breaks(contents: Contents) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the targets whose label may change, shape ``[n]``."""
    record = StackedRecord.load(contents.evidence, contents.settings)
    tables = recount_stacked.tables_of(record)

    def of_budget(budget: Budget) -> BoolArray:
        return ~recount_stacked.holds(record, tables, budget)

    return of_budget
