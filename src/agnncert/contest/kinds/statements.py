"""Writes certificates as contests: forms of their targets, and what they state, with prices."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agnncert.certificates.budget import Budget
from agnncert.contest.form import Claim, Contest, Effect, Statement, Target
from agnncert.contest.kinds.kind import Attack, Kind, all_of
from agnncert.contest.search import broken_at_most, excludes, stays
from agnncert.errors import CertificateError


def form_of(kind: Kind, targets: Iterable[Target], classes: Sequence[str], claim: Claim) -> Contest:
    """Returns a contest without statements."""
    form = kind.form
    known = [_with_every_move(target, form.moves) for target in targets]
    return Contest(
        claim, tuple(sorted(form.extensions)), tuple(classes), form.moves, form.attackers, tuple(known), (),
        form.least_lead,
    )  # fmt: skip


def _with_every_move(target: Target, moves: Iterable[str]) -> Target:
    """Lets moves that find no unit do nothing, so that a budget can speak of them."""
    used = {move for pool in target.pools for move in pool.hit_by} | set(target.new)
    nothing = Effect(all_of(len(target.scores), 0), all_of(len(target.scores), 0))
    idle = {move: nothing for move in moves if move not in used}
    return replace(target, new={**target.new, **idle})


def statements_of(contest: Contest, kind: Kind, budgets: Iterable[Budget], radii: Sequence[int]) -> Iterator[Statement]:
    """Yields what a certificate states, with prices: radii, and answers to budgets.

    Args:
        contest: The form of the targets.
        kind: The kind of certificate.
        budgets: What answers are about.
        radii: The radius of each of the first targets, -1 where nothing is proved.
    """
    for place, radius in enumerate(radii):
        if radius >= 0:
            yield from _stay(contest, place, kind.of_size(radius))
    for budget in budgets:
        yield from _of_budget(contest, kind, budget, len(radii))


def _stay(contest: Contest, place: int, attacks: Iterable[Attack]) -> Iterator[Statement]:
    """Yields that a target keeps its label under attacks for which prices are known to exist."""
    for attacker, budget in attacks:
        statement = stays(contest, place, attacker, budget)
        if statement is None:
            name = contest.targets[place].name
            raise CertificateError(
                f'no prices show that the target "{name}" keeps its label under {dict(budget)} of "{attacker}", which '
                "the certificate states. This is a mistake of this library: please report it."
            )
        yield statement


def stay_until(contest: Contest, first: int, attacks: Sequence[Attack]) -> Iterator[Statement]:
    """Yields that voters, which are targets from the place ``first`` on, bear what is said about them."""
    for place, attack in enumerate(attacks, first):
        yield from _stay(contest, place, (attack,))


def _of_budget(contest: Contest, kind: Kind, budget: Budget, targets: int) -> Iterator[Statement]:
    """Yields which targets keep their label under a budget, which classes others cannot get, and how many break."""
    attack = kind.attack(budget)
    if attack is None:
        return
    for place in range(targets):
        statement = stays(contest, place, *attack)
        yield from [statement] if statement is not None else _exclusions(contest, place, attack)
    for attacker, counts in kind.together(budget):
        broken = broken_at_most(contest, attacker, counts)
        if broken is not None:
            yield broken


def _exclusions(contest: Contest, place: int, attack: Attack) -> Iterator[Statement]:
    label = contest.targets[place].label
    for rival in range(len(contest.classes)):
        if rival != label and (statement := excludes(contest, place, *attack, rival)) is not None:
            yield statement
