"""Checks certificate files that hold votes: the functions that ``verifier.kinds`` asks for."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import expected_claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, VoteRecord
from agnncert.verifier import recount, recount_possible
from agnncert.verifier.check import check_claim, check_division_digest, check_targets, wrong_statements
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import Part, is_per_neighbour, parts_of, sort_part, sort_votes

AT_ONCE = min(4, os.cpu_count() or 1)  # threads that count votes again


def check(contents: Contents) -> list[str]:
    """Returns what is wrong with the statements of a file.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    record = VoteRecord.load(contents.evidence, contents.settings)
    claim = contents.claim
    wrong = [
        *check_targets(contents, record.num_targets, record.votes.num_classes),
        *check_claim(claim, expected_claim(claim, record), {"graph", "model", "division", "encoding"}),
        *check_division_digest(claim),
    ]
    if ("structure_radius" in contents.arrays) != is_per_neighbour(record):
        wrong.append("a radius against structure alone is stated exactly where every neighbour has a group of its own")
    return wrong or _check_statements(contents, record)


def _check_statements(contents: Contents, record: VoteRecord) -> list[str]:
    """Derives every statement again, some targets at a time. Returns what is wrong."""
    with ThreadPoolExecutor(AT_ONCE) as pool:  # numpy lets other threads run while it works
        parts = list(pool.map(partial(_check_part, contents), parts_of(record)))
    names = parts[0].is_wrong if parts else ()
    is_wrong = {name: np.concatenate([part.is_wrong[name] for part in parts]) for name in names}
    holds: list[BoolArray] = []
    broken: list[int] = []
    for i, budget in enumerate(contents.budgets):
        answers = recount.join_answers([part.answers[i] for part in parts])
        holds.append(answers.holds)
        broken.append(recount.broken(record, budget, answers))
    return wrong_statements(contents, is_wrong, holds, broken, "votes")


@dataclass(frozen=True)
class CheckedPart:
    """What was found about some targets.

    Attributes:
        is_wrong: For which of them each statement is wrong, by the name of the statement.
        answers: What follows for these targets from each stated budget.
    """

    is_wrong: dict[str, BoolArray]
    answers: list[recount.Answers]


def _check_part(contents: Contents, part: Part) -> CheckedPart:
    """Derives every statement about some targets again."""
    stated = {name: array[..., part.targets] for name, array in contents.arrays.items()}
    piles = sort_part(part)
    is_wrong = {
        "label": stated["label"] != piles.label,
        "radius": stated["radius"] != recount.radius(piles),
        "number of new neighbours": ~recount.right_neighbours(piles, stated["new_neighbours"]),
    }
    structure_radius = recount.structure_radius(piles)
    if structure_radius is not None:
        is_wrong["structure radius"] = stated["structure_radius"] != structure_radius
    return CheckedPart(is_wrong=is_wrong, answers=[recount.answers(piles, budget) for budget in contents.budgets])


def possible(contents: Contents, budget: Budget) -> BoolArray:
    """Returns which classes each target may get under an attack, shape ``[n, num_classes]``."""
    return recount_possible.of_votes(VoteRecord.load(contents.evidence, contents.settings), budget)


def breaks(contents: Contents) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the targets whose label may change, shape ``[n]``."""
    parts = list(sort_votes(VoteRecord.load(contents.evidence, contents.settings)))

    def of_budget(budget: Budget) -> BoolArray:
        return np.concatenate([~recount.holds(piles, limits_under(piles, budget)) for piles in parts])

    return of_budget


def not_checked(contents: Contents) -> tuple[str, ...]:
    """Returns what the file alone cannot show, and what to pass to have it checked."""
    return (
        "whether the targets, ids, true classes and degrees are those of a graph: pass data",
        "whether a model cast these votes, and may be certified: pass data and model",
    )
