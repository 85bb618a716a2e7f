"""Checks certificate files that hold stacked votes: the functions that ``verifier.kinds`` asks for."""

from collections.abc import Callable

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.record import StackedRecord
from agnncert.verifier import recount_stacked
from agnncert.verifier.check import check_claim, check_targets, wrong_answers, wrong_numbers_broken, wrong_values


def check(contents: Contents) -> list[str]:
    """Returns what is wrong with the statements of a file.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    record = StackedRecord.load(contents.evidence, contents.settings)
    claim = contents.claim
    if claim.locality not in ("construction", "test"):
        return ["the claim does not say how it is known that the models without edges read a node's own features alone"]
    if claim.rounding not in ("", "float64"):
        return [f"the claim says that rounding is {claim.rounding!r:.20}, which stacked votes do not know"]
    expected = make_stacked_claim(record, digests=claim.digests, locality=claim.locality, rounding=claim.rounding)
    wrong = [
        *check_targets(contents, record.num_targets, record.num_classes),
        *check_claim(claim, expected, {"graph", "model", "encoding"}),
    ]
    if "structure_radius" not in contents.arrays:
        wrong.append("the radius against structure alone is missing")
    return wrong or _check_statements(contents, record)


def _check_statements(contents: Contents, record: StackedRecord) -> list[str]:
    """Derives every statement again. Returns what is wrong."""
    stated = contents.arrays
    tables = recount_stacked.tables_of(record)
    is_wrong = {
        "label": stated["label"] != recount_stacked.label_is(record, tables),
        "radius": ~recount_stacked.right_radius(tables, stated["radius"], structure=False),
        "structure radius": ~recount_stacked.right_radius(tables, stated["structure_radius"], structure=True),
        "number of new neighbours": ~recount_stacked.right_neighbours(
            record, tables, recount_stacked.but_additions(record), stated["new_neighbours"]
        ),
    }
    answers = [recount_stacked.holds(record, tables, budget) for budget in contents.budgets]
    wrong = [*wrong_values(is_wrong, "votes"), *wrong_answers(contents, answers, "votes")]
    if wrong:  # how many targets break follows from the radii, so that nothing can be said about it
        return wrong
    broken = [
        recount_stacked.broken(record, budget, ~answer, stated["radius"], stated["structure_radius"])
        for budget, answer in zip(contents.budgets, answers, strict=True)
    ]
    return wrong_numbers_broken(contents, broken, "votes")


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


def not_checked(contents: Contents) -> tuple[str, ...]:
    """Returns what the file alone cannot show, and what to pass to have it checked."""
    return (
        "whether the targets, ids, true classes and degrees are those of a graph: pass data",
        "whether a model computed these scores and votes, and may be certified: pass data and model",
    )
