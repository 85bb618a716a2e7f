"""Checks what a certificate file says: is every statement the one that follows from the evidence in the file?

Statements are derived again by ``recount``, and the claim is written again from its facts. Neither imports what made
the statements. ``recount_stacked`` checks files of stacked votes, ``agnncert_peers.recount_samples`` random samples.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import VoteRecord
from agnncert.verifier import recount

# What a claim says that its evidence does not imply: anyone with the graph and the model can check it.
_TAKEN_AS_STATED = ("digests", "notes", "library_version")
AT_ONCE = min(4, os.cpu_count() or 1)  # threads that count votes again


def check_vote_file(contents: Contents, record: VoteRecord, expected: Claim) -> list[str]:
    """What is wrong with the statements of a file that holds votes.

    Args:
        contents: What the file says.
        votes: The votes in it.
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
    """What a claim says that does not follow from its evidence."""
    for name in set(claim.digests) - digests:
        yield f"the claim has a digest of {name!r}, which nobody could check"
    for text in (*claim.notes, claim.library_version):
        if text.splitlines() not in ([], [text]):
            yield f"a remark has several lines, and might pass for another part of the claim: {text!r:.99}"
    for name, value in vars(expected).items():
        if name not in _TAKEN_AS_STATED and getattr(claim, name) != value:
            yield f'the claim\'s "{name}" is not what its evidence allows it to say'


def check_targets(contents: Contents, num_targets: int) -> Iterator[str]:
    """What is wrong with the list of targets."""
    if len(contents.arrays["target"]) != num_targets:
        yield f"there are {len(contents.arrays['target'])} targets, but evidence about {num_targets}"
    for name in ("target", "row"):
        if _repeats(contents.arrays[name]):
            yield f'"{name}" names a target twice'
    if (contents.arrays["row"] < 0).any():
        yield "a target is in a negative row"


def _repeats(values: npt.NDArray[Any]) -> bool:
    if values.dtype != np.int64:
        return len(set(values.tolist())) < len(values)
    ordered = np.sort(values)
    return bool((ordered[1:] == ordered[:-1]).any())


def _check_votes(contents: Contents, record: VoteRecord) -> list[str]:
    """Derives every statement again, some targets at a time."""
    shape = len(contents.budgets), len(record.votes.default)
    prices, touch_prices = np.zeros(shape), np.zeros(shape)
    fails, wrong_answer = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)

    def wrong_in(part: slice) -> dict[str, int]:
        piles = recount.sort_part(record, part)
        stored = {name: contents.arrays[name][part] for name in ("label", "radius", "new_neighbours")}
        bad = {
            "label": stored["label"] != piles.label,
            "radius": stored["radius"] != piles.radius(),
            "number of new neighbours": ~recount.right_neighbours(piles, stored["new_neighbours"]),
        }
        alone = piles.structure_radius()
        if alone is not None:
            bad["structure radius"] = contents.arrays["structure_radius"][part] != alone
        for i, budget in enumerate(contents.budgets):
            holds, prices[i, part], touches = recount.statements(piles, budget)
            if touches is not None:
                touch_prices[i, part] = touches
            fails[i, part] = ~holds
            wrong_answer[i, part] = contents.arrays["holds"][i, part] != holds
        return {name: int(where.sum()) for name, where in bad.items()}

    wrong: Counter[str] = Counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:  # numpy lets other threads run while it works
        for found in pool.map(wrong_in, recount.parts_of(record)):
            wrong.update(found)
    reasons = [of_targets(name, number, "votes") for name, number in wrong.items() if number]
    for i, budget in enumerate(contents.budgets):
        if wrong_answer[i].any():
            reasons.append(of_targets(f"answer for {budget}", int(wrong_answer[i].sum()), "votes"))
        if contents.broken_at_most[i] != recount.broken(record, budget, prices[i], fails[i], touch_prices[i]):
            reasons.append(f"the stated number of targets that {budget} can break does not follow from the votes")
    return reasons


def of_targets(name: str, number: int, evidence: str) -> str:
    """A sentence about so many wrong statements."""
    return f"the {name} of {number:,} targets does not follow from the {evidence}"
