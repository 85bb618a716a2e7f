"""Attackers who know what was certified: they change a source around one target, about as much as it withstands."""

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from tests.soundness.retraining.source import Accounts, Payments, Row, Scan, Scans
from tests.soundness.retraining.ways import Outcome, Source

MOST_MOVES = 6


def attacked(source: Source, outcome: Outcome, moves: tuple[str, ...], random: Random) -> Source:
    """Returns the source after an attack. It may cost more than any target withstands."""
    position = _target(outcome, random)
    size = random.randint(1, max(1, min(MOST_MOVES, int(outcome.certificate.radius[position]) + 1)))
    target: Any = outcome.targets[position]
    if isinstance(source, Scans):
        return _poisoned(source, outcome, size, random)
    if isinstance(source, Payments):
        changed = source.accounts
        for _ in range(size):
            one, other = random.sample(target, 2)
            if random.random() < 0.7 and {one, other} <= set(changed.features):
                changed = _meeting(changed, one, other, _label(outcome, target), random)
            else:
                changed = _moved(changed, outcome, one, random.choice(moves), random)
        return replace(source, accounts=changed)
    for _ in range(size):
        source = _moved(source, outcome, target, random.choice(moves), random)
    return source


def _target(outcome: Outcome, random: Random) -> int:
    """Returns the position of a target; those that withstand little are chosen most often."""
    withstood = np.maximum(np.asarray(outcome.certificate.radius), 0)
    return random.choices(range(len(withstood)), weights=(0.5 ** np.minimum(withstood, 12)).tolist())[0]


def _label(outcome: Outcome, target: Any) -> int:
    return int(outcome.certificate.label[outcome.targets.index(target)]) if target in outcome.targets else 0


def _moved(accounts: Accounts, outcome: Outcome, target: int, move: str, random: Random) -> Accounts:
    """Returns the accounts after one move against a target, which is still among them."""
    if target not in accounts.features:
        return accounts
    return _MOVES[move](accounts, outcome, target, random)


def _others(accounts: Accounts, outcome: Outcome, target: int) -> list[int]:
    """Returns accounts that are labelled otherwise than the target, or all but the target if there is none."""
    apart = [each for each in accounts.ids if each != target]
    against = [each for each in apart if _label(outcome, each) != _label(outcome, target)]
    return against or apart


def _misleading(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Row:
    """Returns features of an account of another class, sometimes stretched or shrunk."""
    row = accounts.features[random.choice(_others(accounts, outcome, target))]
    factor = random.choice((1.0, 1.0, 3.0, 100.0, 1e4, -1.0, 0.0))
    return tuple(round(factor * number, 2) for number in row)


def _join(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    return accounts.joined(target, random.choice(_others(accounts, outcome, target)))


def _separate(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    friends = accounts.neighbours(target)
    alike = [each for each in friends if _label(outcome, each) == _label(outcome, target)]
    return accounts.separated(target, random.choice(alike or friends)) if friends else accounts


def _meeting(accounts: Accounts, one: int, other: int, label: int, random: Random) -> Accounts:
    """Takes a common neighbour from a pair that is held for joined, and gives one to another pair."""
    friends, foreign = set(accounts.neighbours(one)), set(accounts.neighbours(other))
    common, half = sorted(friends & foreign), sorted(foreign - friends - {one})
    if common and (label == 1 or not half):
        return accounts.separated(one, random.choice(common))
    return accounts.joined(one, random.choice(half)) if half else accounts


def _free(accounts: Accounts, outcome: Outcome, target: int) -> list[int]:
    """Returns neighbours, or else any accounts, on which nothing was trained."""
    around = [each for each in accounts.neighbours(target) if each not in outcome.trained]
    return around or [each for each in accounts.ids if each != target and each not in outcome.trained]


def _describe(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    free = _free(accounts, outcome, target)
    if not free:
        return accounts
    return accounts.described(random.choice(free), _misleading(accounts, outcome, target, random))


def _own(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    return accounts.described(target, _misleading(accounts, outcome, target, random))


def _delete(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    free = _free(accounts, outcome, target)
    return accounts.without(random.choice(free)) if free else accounts


def _inject(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    new = random.choice([each for each in random.sample(range(-5_000, 15_000), 9) if each not in accounts.features])
    known = random.choice(([], [target], [target], [target, *random.sample(accounts.ids, 3)]))
    return accounts.with_account(
        new, _misleading(accounts, outcome, target, random), [each for each in known if each != new]
    )


def _nearest(accounts: Accounts, target: int, among: list[int], random: Random) -> int | None:
    """Returns one of the accounts whose features are most like those of the target."""
    here = accounts.features[target]
    ordered = sorted(among, key=lambda each: math.dist(here, accounts.features[each]))
    return random.choice(ordered[:6]) if ordered else None


def _flip(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    """Flips a label near the target. One time in eight it is none of the training part, which costs nothing."""
    trained = random.random() < 7 / 8
    alike = [
        each
        for each, label in accounts.labels.items()
        if (each in outcome.trained) == trained and label == _label(outcome, target)
    ]
    chosen = _nearest(accounts, target, alike, random)
    return accounts if chosen is None else accounts.labelled(chosen, 1 - accounts.labels[chosen])


def _add_label(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    chosen = _nearest(accounts, target, [each for each in accounts.ids if each not in accounts.labels], random)
    return accounts if chosen is None else accounts.labelled(chosen, 1 - _label(outcome, target))


def _remove_label(accounts: Accounts, outcome: Outcome, target: int, random: Random) -> Accounts:
    alike = [each for each, label in accounts.labels.items() if label == _label(outcome, target)]
    chosen = _nearest(accounts, target, [each for each in alike if each in outcome.trained], random)
    return accounts if chosen is None else accounts.labelled(chosen, None)


_MOVES: dict[str, Callable[[Accounts, Outcome, int, Random], Accounts]] = {
    "join": _join,
    "separate": _separate,
    "describe": _describe,
    "own": _own,
    "delete": _delete,
    "inject": _inject,
    "flip": _flip,
    "add label": _add_label,
    "remove label": _remove_label,
}


def _poisoned(scans: Scans, outcome: Outcome, size: int, random: Random) -> Scans:
    """Returns scans of which some were altered, inserted or deleted before training."""
    for _ in range(size):
        poisonable = sorted(outcome.trained & set(scans.scans))
        what = random.choice(("alter", "alter", "insert", "delete"))
        if what == "insert":
            new = random.choice([each for each in random.sample(range(20_000), 9) if each not in scans.scans])
            scans = scans.with_scan(new, _strange(Scan.random(random, random.randrange(2)), random))
        elif len(poisonable) > 8:
            chosen = random.choice(poisonable)
            scans = (
                scans.without(chosen)
                if what == "delete"
                else scans.with_scan(chosen, _strange(scans.scans[chosen], random))
            )
    return scans


def _strange(scan: Scan, random: Random) -> Scan:
    """Returns a scan with the other class, with large features, or with what no training can use."""
    factor = random.choice((-3.0, 1.0, 1e3, 1e30, math.nan))
    rows = tuple(tuple(factor * number for number in row) for row in scan.rows)
    label = random.choice((1 - scan.label, 1 - scan.label, 0, 7))
    edges = random.choice((scan.edges, frozenset({(0, 1)})))
    many = tuple(rows[k % len(rows)] for k in range(40)) if random.random() < 0.2 else rows
    return Scan(many, edges, label)
