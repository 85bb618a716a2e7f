"""Checks whether every statement of a certificate file follows from the evidence in the file.

Statements are derived again by ``recount``, and the claim is written again from its facts. Neither imports what made
the statements. ``recount_stacked`` checks files of stacked votes, ``agnncert_peers.recount_samples`` random samples.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import VoteRecord
from agnncert.verifier import recount
from agnncert.verifier.piles import Part, parts_of, sort_part

# What a claim says that its evidence does not imply: anyone with the graph and the model can check it.
_TAKEN_AS_STATED = ("digests", "notes", "library_version")
AT_ONCE = min(4, os.cpu_count() or 1)  # threads that count votes again


def check_vote_file(contents: Contents, record: VoteRecord, expected: Claim) -> list[str]:
    """Returns what is wrong with the statements of a file that holds votes.

    Args:
        contents: What the file says.
        record: The votes in it.
        expected: The claim that these votes allow.
    """
    wrong = [
        *check_targets(contents, len(record.votes.default)),
        *check_claim(contents.claim, expected, {"graph", "model", "division", "encoding"}),
    ]
    named = contents.claim.digests.get("division")
    if named is not None and named != hashlib.sha256(contents.claim.division.encode()).hexdigest():
        wrong.append("the digest of the division is not that of the division that is named")
    if ("structure_radius" in contents.arrays) != record.theorem.startswith("per-"):
        wrong.append("a radius against structure alone is stated exactly where every neighbour has a group of its own")
    return wrong or _check_votes(contents, record)


def check_claim(claim: Claim, expected: Claim, digests: set[str]) -> Iterator[str]:
    """Yields what a claim says that does not follow from its evidence.

    Args:
        claim: The claim of a file.
        expected: The claim that the evidence allows.
        digests: Names of the digests that somebody can check.
    """
    for name in set(claim.digests) - digests:
        yield f"the claim has a digest of {name!r}, which nobody could check"
    for text in (*claim.notes, claim.library_version):
        if text.splitlines() not in ([], [text]):
            yield f"a remark has several lines, and might pass for another part of the claim: {text!r:.99}"
    for name, value in vars(expected).items():
        if name not in _TAKEN_AS_STATED and getattr(claim, name) != value:
            yield f'the claim\'s "{name}" is not what its evidence allows it to say'


def check_targets(contents: Contents, num_targets: int) -> Iterator[str]:
    """Yields what is wrong with the list of targets."""
    if len(contents.arrays["target"]) != num_targets:
        yield f"there are {len(contents.arrays['target'])} targets, but evidence about {num_targets}"
    for name in ("target", "row"):
        if _repeats(contents.arrays[name]):
            yield f'"{name}" names a target twice'
    if (contents.arrays["row"] < 0).any():
        yield "a target is in a negative row"


def _repeats(values: npt.NDArray[Any]) -> bool:
    """Tells whether a value occurs twice. Ids that are not integers of 64 bits are in an array of objects."""
    if values.dtype != np.int64:
        return len(set(values.tolist())) < len(values)
    ordered = np.sort(values)
    return bool((ordered[1:] == ordered[:-1]).any())


def _check_votes(contents: Contents, record: VoteRecord) -> list[str]:
    """Derives every statement again, some targets at a time. Returns what is wrong."""
    with ThreadPoolExecutor(AT_ONCE) as pool:  # numpy lets other threads run while it works
        parts = list(pool.map(partial(_check_part, contents), parts_of(record)))
    num_wrong: Counter[str] = Counter()
    for part in parts:
        num_wrong.update(part.num_wrong)
    wrong = [of_targets(name, number, "votes") for name, number in num_wrong.items() if number]
    for i, budget in enumerate(contents.budgets):
        answers = recount.join_answers([part.answers[i] for part in parts])
        num_wrong_answers = int((contents.arrays["holds"][i] != answers.holds).sum())
        if num_wrong_answers:
            wrong.append(of_targets(f"answer for {budget}", num_wrong_answers, "votes"))
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


def of_targets(name: str, number: int, evidence: str) -> str:
    """Returns a sentence about so many wrong statements."""
    return f"the {name} of {number:,} targets does not follow from the {evidence}"
