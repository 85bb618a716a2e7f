"""Which classes an attack can make win, counted a second time.

Shares no code with ``proving.possible``. Where that has closed sums, this plays the vote: it takes votes from one
class after the other, the least limited ones first, and looks at what is left of each limit.
"""

from dataclasses import dataclass

import numpy as np

from agnncert.addons import addon
from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.stacked import StackedCounts
from agnncert.certificates.votes import VoteRecord
from agnncert.verifier import recount, recount_stacked
from agnncert.verifier.recount import Limits, Numbers
from agnncert.verifier.recount_per_neighbour import Changes

ENTRIES_AT_ONCE = 2**17


def possible(contents: Contents, budget: Budget) -> Numbers:
    """Which classes each target of a file may get under an attack, shape ``[n, num_classes]``."""
    if contents.kind == "votes":
        return of_votes(VoteRecord.load(contents.evidence, contents.settings), budget)
    if contents.kind == "stacked":
        return recount_stacked.possible(StackedCounts.load(contents.evidence, contents.settings), budget)
    recount_samples = addon("agnncert.verifier", contents.kind, "agnncert_peers", "a certificate from random samples")
    return np.asarray(recount_samples.possible(contents, budget))


def wrong_exclusions(contents: Contents) -> list[str]:
    """What is wrong with the stated numbers of targets that cannot get a label."""
    classes, wrong = contents.settings.get("num_classes"), []
    for budget, numbers in zip(contents.budgets, contents.excluded, strict=True):
        if numbers and classes not in (None, len(numbers)):  # before work that grows with all classes
            wrong.append(f"{len(numbers)} numbers of targets that cannot get a label are stated for {classes} classes")
        elif numbers and list(numbers) != (~possible(contents, budget)).sum(axis=0).tolist():
            wrong.append(f"the stated numbers of targets that {budget} gives no label do not follow from the evidence")
    return wrong


@dataclass(frozen=True)
class Scores:
    """Votes of ``n`` targets for each of ``C`` classes.

    Attributes:
        score: Votes that are sure, of the prior and of stable votes, shape ``[n, C]``.
        firm: Stable votes by tier and class, shape ``[3, n, C]``.
        size: Stable votes by tier, abstaining ones included, shape ``[3, n]``.
        unsure: Votes that every class may claim, shape ``[n]``.
        one_way: Stable votes of pairs that have one direction, by class, shape ``[n, C]``.
        all_one_way: The same, abstaining ones included, shape ``[n]``.
    """

    score: Numbers
    firm: Numbers
    size: Numbers
    unsure: Numbers
    one_way: Numbers
    all_one_way: Numbers

    def short_of(self, k: int, won: Numbers) -> Numbers:
        """Votes that each class must lose for k to win, once k has won some and all that is unsure, ``[n, C]``."""
        mine = self.score[:, k] + self.unsure + won
        short = self.score + (np.arange(self.score.shape[1]) < k) - mine[:, None]
        short[:, k] = 0
        return np.asarray(short)


def of_votes(record: VoteRecord, budget: Budget) -> Numbers:
    """As :func:`possible`, for votes."""
    n, classes = len(record.votes.default), record.votes.num_classes
    answer = np.zeros((n, classes), dtype=bool)
    step = max(1, ENTRIES_AT_ONCE // classes)
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        piles, scores = recount.sort_part(record, part), _scores(record, part)
        bound = recount.limits(piles, budget)
        empty = record.voting_rule.empty if isinstance(record.voting_rule.empty, int) else -1
        for k in range(classes):
            wins = _with_own(scores, bound, k, empty) if isinstance(bound, Changes) else _in_tiers(scores, bound, k)
            answer[part, k] = wins | ~bound.covered | (piles.label == k)
    return answer


def _scores(record: VoteRecord, part: slice) -> Scores:
    votes, n, classes = record.votes, part.stop - part.start, record.votes.num_classes
    ends = votes.indptr[part.start : part.stop + 1]
    listed, of_target = slice(ends[0], ends[-1]), np.repeat(np.arange(n), np.diff(ends))
    owner, vote, stable, tier, number = recount._heaps(votes, part, listed, of_target)
    table = np.zeros((3, n, classes + 1), dtype=np.int64)  # the last column: those that abstain
    np.add.at(table, (tier[stable], owner[stable], vote[stable]), number[stable])
    prior, _, in_doubt = recount._priors(record, part, np.repeat(np.arange(n), classes), np.tile(np.arange(classes), n))
    one_way = np.zeros((n, classes + 1), dtype=np.int64)
    if record.one_way is not None:
        flagged = record.one_way[listed] & votes.stable[listed]
        np.add.at(one_way, (of_target[flagged], votes.vote[listed][flagged]), 1)
    firm, size = table[:, :, :-1], table.sum(axis=2)
    return Scores(
        score=firm.sum(axis=0) + prior.reshape(n, classes),
        firm=firm,
        size=size,
        unsure=votes.num_groups - size.sum(axis=0) + in_doubt,
        one_way=one_way[:, :-1],
        all_one_way=one_way.sum(axis=1),
    )


def _in_tiers(scores: Scores, bound: Limits, k: int) -> Numbers:
    """Whether k can win where votes move within three nested limits, shape ``[n]``."""
    won, _ = _take(scores.size - scores.firm[:, :, k], [bound.all, bound.beyond, bound.unlisted])
    short, left = scores.short_of(k, won), [bound.all, bound.beyond, bound.unlisted]
    wins = np.ones(len(won), dtype=bool)
    for j in range(short.shape[1]):
        wanted = np.maximum(short[:, j], 0)
        taken, left = _take(scores.firm[:, :, j], left, wanted)
        wins &= taken == wanted
    return wins


def _take(there: Numbers, left: list[Numbers], wanted: Numbers | None = None) -> tuple[Numbers, list[Numbers]]:
    """Takes votes, the reached ones first: how many could be taken, and what is left of the three limits."""
    in_all, beyond, unlisted = left
    wanted = there.sum(axis=0) if wanted is None else wanted
    first = np.minimum(np.minimum(there[0], wanted), in_all)
    in_all, wanted = in_all - first, wanted - first
    second = np.minimum(np.minimum(there[1], wanted), np.minimum(in_all, beyond))
    in_all, beyond, wanted = in_all - second, beyond - second, wanted - second
    third = np.minimum(np.minimum(there[2], wanted), np.minimum(np.minimum(in_all, beyond), unlisted))
    return first + second + third, [in_all - third, beyond - third, unlisted - third]


def _with_own(scores: Scores, changes: Changes, k: int, empty: int) -> Numbers:
    """Whether k can win where every neighbour has a vote of its own, shape ``[n]``."""
    there, others = scores.firm[0], scores.size[0] - scores.firm[0][:, k]
    altered = np.minimum(changes.altered, others)
    if k == empty:
        turnable = np.minimum(changes.turned, scores.all_one_way - scores.one_way[:, k])
        short = scores.short_of(k, np.minimum(others, changes.both + turnable))
    else:
        short = scores.short_of(k, altered + changes.new)
    rest, turned, wins = np.zeros(len(others)), np.zeros(len(others)), np.ones(len(others), dtype=bool)
    for j in range(short.shape[1]):
        if j == empty:
            continue
        wanted = np.maximum(short[:, j], 0)
        wins &= wanted <= there[:, j]
        rest, turned = rest + wanted, turned + np.minimum(scores.one_way[:, j], wanted)
    turned = np.minimum(turned, changes.turned)
    if k == empty:
        return np.asarray(wins & (rest <= changes.both + turned))
    otherwise = np.maximum(rest - altered, 0)  # lowered by votes that go, or by turning instead of adding
    wins &= otherwise <= changes.both - altered + turned
    if empty >= 0:
        # What goes is one vote more for the class of empty groups, what is new one less; what is turned is not new.
        surplus = short[:, empty] - changes.new + otherwise
        wins &= surplus <= np.minimum(altered - np.minimum(altered, rest), there[:, empty])
    return np.asarray(wins)
