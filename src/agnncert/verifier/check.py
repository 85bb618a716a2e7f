"""Parts of the check of a certificate file, for ``file_checker``: its claim, its list of targets, its statements.

The claim is written again from its facts, and compared word for word. What the evidence implies is derived by
``check_votes`` and its like for other kinds; it is compared here with what is stated.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import TRAINING, Budget
from agnncert.certificates.claim import EDGES_GIVEN, FEATURES_FIXED, Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray
from agnncert.errors import BudgetError

# What a claim says that its evidence does not imply: anyone with the graph and the model can check it.
_TAKEN_AS_STATED = ("digests", "notes", "library_version")


def check_claim(claim: Claim, expected: Claim, digests: Collection[str]) -> Iterator[str]:
    """Yields what a claim says that does not follow from its evidence.

    Args:
        claim: The claim of a file.
        expected: The claim that the evidence allows.
        digests: Names of the digests that somebody can check.
    """
    for name in set(claim.digests) - set(digests):
        yield f"the claim has a digest of {name!r}, which nobody could check"
    for text in (*claim.notes, claim.library_version):
        if text.splitlines() not in ([], [text]):
            yield f"a remark has several lines, and might pass for another part of the claim: {text!r:.99}"
    for name, value in vars(expected).items():
        if name not in _TAKEN_AS_STATED and getattr(claim, name) != value:
            yield f'the claim\'s "{name}" is not what its evidence allows it to say'


def check_premise(claim: Claim) -> Iterator[str]:
    """Yields what is wrong with a claim of any kind that leaves out what every proof about a graph rests on."""
    if FEATURES_FIXED not in claim.assumes:
        yield "the claim does not say that no node's features are computed from the edges"
    if EDGES_GIVEN not in claim.assumes:
        yield "the claim does not say that no edges are computed from other edges or from features"


def check_budgets(contents: Contents, training_fields: Collection[str]) -> Iterator[str]:
    """Yields which stated budgets are attacks on training data that this kind of file proves nothing about.

    Args:
        contents: What a file says.
        training_fields: Names of the fields about training data that its evidence proves something about.
    """
    for budget in contents.budgets:
        poisoned = [name for name in TRAINING if getattr(budget, name) != 0]
        for name in poisoned:
            if name not in training_fields:
                yield f"it makes a statement about {budget}: such a certificate trusts training data ({name})"


def require_trusted_training(budget: Budget) -> None:
    """Refuses a question about poisoned training data, for a kind of file that trusts them.

    Raises:
        BudgetError: A field about training data is not zero.
    """
    if any(getattr(budget, name) != 0 for name in TRAINING):
        raise BudgetError(f"{budget}: such a certificate trusts training data, so that nothing follows about them.")


def check_targets(contents: Contents, num_targets: int, num_classes: int) -> Iterator[str]:
    """Yields what is wrong with the list of targets, and with the names of classes.

    Args:
        contents: What a file says.
        num_targets: Number of targets that it has evidence about.
        num_classes: Number of classes in that evidence.
    """
    if len(contents.arrays["target"]) != num_targets:
        yield f"there are {len(contents.arrays['target'])} targets, but evidence about {num_targets}"
    for name in ("target", "row"):
        if _repeats(contents.arrays[name]):
            yield f'"{name}" names a target twice'
    if (contents.arrays["row"] < 0).any():
        yield "a target is in a negative row"
    if contents.class_names and len(contents.class_names) != num_classes:
        yield f"the file names {len(contents.class_names)} classes, but has evidence about {num_classes}"


def _repeats(values: npt.NDArray[Any]) -> bool:
    """Tells whether a value occurs twice. Ids that are not integers of 64 bits are in an array of objects."""
    if values.dtype != np.int64:
        return len(set(values.tolist())) < len(values)
    ordered = np.sort(values)
    return bool((ordered[1:] == ordered[:-1]).any())


def check_division_digest(claim: Claim) -> Iterator[str]:
    """Yields that the digest of the division, if the claim has one, is that of another division than it names."""
    stated = claim.digests.get("division")
    if stated is not None and stated != hashlib.sha256(claim.division.encode()).hexdigest():
        yield "the digest of the division is not that of the division that is named"


def refused_budgets(budgets: Sequence[Budget], read: Callable[[Budget], object]) -> Iterator[str]:
    """Yields why nothing can be derived about some stated budgets.

    Args:
        budgets: The budget of each statement.
        read: Derives from a budget what an attacker can do. It raises BudgetError if nothing is proved about one.
    """
    for budget in budgets:
        try:
            read(budget)
        except BudgetError as error:
            yield str(error)


def does_not_follow(name: str, number: int, evidence: str) -> str:
    """Returns a sentence about this many wrong statements."""
    return f"the {name} of {number:,} targets does not follow from the {evidence}"


def wrong_values(is_wrong: Mapping[str, BoolArray], evidence: str) -> list[str]:
    """Returns a sentence about each statement that is wrong for some targets.

    Args:
        is_wrong: For which targets each statement is wrong, shape ``[n]`` each, by the name of the statement.
        evidence: What the statements have to follow from, in words.
    """
    return [does_not_follow(name, int(where.sum()), evidence) for name, where in is_wrong.items() if where.any()]


def wrong_answers(contents: Contents, derived: Sequence[BoolArray], evidence: str) -> list[str]:
    """Returns a sentence about each stated answer that is wrong.

    Several statements may be about the same budget: each has an answer of its own, and all are compared.

    Args:
        contents: What a file says.
        derived: Whether each target keeps its label, derived again, shape ``[n]`` for each statement.
        evidence: What the answers have to follow from, in words.
    """
    wrong = []
    for budget, stated, answer in zip(contents.budgets, contents.arrays["holds"], derived, strict=True):
        num_wrong = int((stated != answer).sum())
        if num_wrong:
            wrong.append(does_not_follow(f"answer for {budget}", num_wrong, evidence))
    return wrong


def wrong_numbers_broken(contents: Contents, derived: Sequence[int], evidence: str) -> list[str]:
    """Returns a sentence about each stated number of targets that one attacked graph can break, if it is wrong.

    Args:
        contents: What a file says.
        derived: The same numbers, derived again, one for each statement.
        evidence: What the numbers have to follow from, in words.
    """
    return [
        f"the stated number of targets that {budget} can break does not follow from the {evidence}"
        for budget, stated, number in zip(contents.budgets, contents.broken_at_most, derived, strict=True)
        if stated != number
    ]
