"""Checks certificate files of models that were trained apart: the functions that ``verifier.kinds`` asks for."""

from collections.abc import Callable

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray
from agnncert.isolated.claim import make_isolated_claim
from agnncert.isolated.record import IsolatedRecord
from agnncert.verifier.check import (
    check_claim,
    check_division_digest,
    check_no_structure_radius,
    check_targets,
    wrong_statements,
)
from agnncert.verifier.recount_isolated import Views

TRAINING_FIELDS = ("poison_graphs",)


def check(contents: Contents) -> list[str]:
    """Returns what is wrong with the statements of a file.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    record = IsolatedRecord.load(contents.evidence, contents.settings)
    claim = contents.claim
    expected = make_isolated_claim(
        record,
        claim.division,
        tolerance=claim.tolerance,
        digests=claim.digests,
        locality=claim.locality,
        rounding=claim.rounding,
    )
    wrong = [
        *check_targets(contents, record.num_targets, record.num_classes),
        *check_claim(claim, expected, {"graph", "model", "division", "encoding"}),
        *check_division_digest(claim),
        *check_no_structure_radius(contents),
    ]
    return wrong or _check_statements(contents, Views(record))


def _check_statements(contents: Contents, views: Views) -> list[str]:
    """Derives every statement again. Returns what is wrong."""
    stated = contents.arrays
    is_wrong = {
        "label": stated["label"] != views.label(),
        "radius": ~views.right_radius(stated["radius"]),
        "number of new neighbours": stated["new_neighbours"] != -1,
    }
    answers = [views.holds(budget) for budget in contents.budgets]
    broken = [views.broken(budget, answer) for budget, answer in zip(contents.budgets, answers, strict=True)]
    return wrong_statements(contents, is_wrong, answers, broken, "votes")


def possible(contents: Contents, budget: Budget) -> BoolArray:
    """Returns which classes each target may get under an attack, shape ``[n, num_classes]``."""
    return Views(IsolatedRecord.load(contents.evidence, contents.settings)).possible(budget)


def breaks(contents: Contents) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the targets whose label may change, shape ``[n]``."""
    views = Views(IsolatedRecord.load(contents.evidence, contents.settings))

    def of_budget(budget: Budget) -> BoolArray:
        return ~views.holds(budget)

    return of_budget


def not_checked(contents: Contents) -> tuple[str, ...]:
    """Returns what the file alone cannot show, and what to pass to have it checked."""
    return (
        "whether the targets, true classes and degrees are those of the test graphs: pass data",
        "whether the models cast these votes, and may be certified: pass data and model",
        "whether each model was trained on its part alone: train again, which gives the same weights to the bit",
    )
