"""Checks certificate files that hold votes: the functions that ``verifier.kinds`` asks for."""

import hashlib
import os
from collections import Counter
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
from agnncert.verifier.check import check_claim, check_targets, does_not_follow
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
    ]
    named = claim.digests.get("division")
    if named is not None and named != hashlib.sha256(claim.division.encode()).hexdigest():
        wrong.append("the digest of the division is not that of the division that is named")
    if ("structure_radius" in contents.arrays) != is_per_neighbour(record):
        wrong.append("a radius against structure alone is stated exactly where every neighbour has a group of its own")
    return wrong or _check_statements(contents, record)


def _check_statements(contents: Contents, record: VoteRecord) -> list[str]:
    """Derives every statement again, some targets at a time. Returns what is wrong."""
    with ThreadPoolExecutor(AT_ONCE) as pool:  # numpy lets other threads run while it works
        parts = list(pool.map(partial(_check_part, contents), parts_of(record)))
    num_wrong: Counter[str] = Counter()
    for part in parts:
        num_wrong.update(part.num_wrong)
    wrong = [does_not_follow(name, number, "votes") for name, number in num_wrong.items() if number]
    for i, budget in enumerate(contents.budgets):
        answers = recount.join_answers([part.answers[i] for part in parts])
        num_wrong_answers = int((contents.arrays["holds"][i] != answers.holds).sum())
        if num_wrong_answers:
            wrong.append(does_not_follow(f"answer for {budget}", num_wrong_answers, "votes"))
        if contents.broken_at_most[i] != recount.broken(record, budget, answers):
            wrong.append(f"the stated number of targets that {budget} can break does not follow from the votes")
    return wrong


@dataclass(frozen=True)
class CheckedPart:
    """What was found about some targets.

    Attributes:
        num_wrong: How many targets have a wrong statement, by the name of the statement.
        answers: What follows for these targets from each stated budget.
    """

    num_wrong: dict[str, int]
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
    return CheckedPart(
        num_wrong={name: int(where.sum()) for name, where in is_wrong.items()},
        answers=[recount.answers(piles, budget) for budget in contents.budgets],
    )


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
