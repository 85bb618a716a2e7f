"""Plays: which moves on which units. A play within the budget refutes a statement, and anybody can count it again."""

from dataclasses import dataclass

from agnncert.contest.form import Contest, Effect, Target, Vector
from agnncert.contest.leads import Allowance


@dataclass(frozen=True)
class Hit:
    """Some units that are hit.

    Attributes:
        pool: Place of the pool.
        unit: Place of the units in it.
        times: How many of them.
        move: The move; None if their phase is over, and they became what the pool says for nothing.
    """

    pool: int
    unit: int
    times: int
    move: str | None


@dataclass(frozen=True)
class Play:
    """What an attacker does to one target. All that caps leave open goes to one class.

    Attributes:
        hits: The units that are hit.
        new: How often moves bring something new, by move.
        favoured: The class to which all caps go.
    """

    hits: tuple[Hit, ...]
    new: tuple[tuple[str, int], ...]
    favoured: int


def objections(contest: Contest, target: Target, allowed: Allowance, play: Play) -> list[str]:
    """Returns why a play is not allowed."""
    found = []
    left = {(p, u): unit.count for p, pool in enumerate(target.pools) for u, unit in enumerate(pool.units)}
    spent = dict.fromkeys(contest.moves, 0)
    for hit in play.hits:
        left[hit.pool, hit.unit] -= hit.times
        if hit.times < 1 or left[hit.pool, hit.unit] < 0:
            found.append("a unit is hit twice")
        if hit.move is None and not _is_over(target, hit, allowed):
            found.append("the phase of a unit is not over")
        elif hit.move is not None and hit.move not in target.pools[hit.pool].hit_by:
            found.append(f"{hit.move} does not hit this unit")
        if hit.move is not None:
            spent[hit.move] += hit.times
    for move, times in play.new:
        if times < 1 or move not in target.new:
            found.append(f"{move} brings nothing new")
        spent[move] += times
    for moves, most in allowed.limits:
        if most is not None and sum(spent[move] for move in moves) > most:
            found.append(f"{', '.join(moves)}: more than {most}")
    return found


def _is_over(target: Target, hit: Hit, allowed: Allowance) -> bool:
    pool = target.pools[hit.pool]
    until = pool.units[hit.unit].until
    return pool.free is not None and until is not None and (allowed.phase is None or until < allowed.phase)


def scores_after(target: Target, play: Play) -> tuple[Vector, Vector]:
    """Returns the scores that a play leaves, and by how much rounding may move each of them."""
    scores, doubt = list(target.scores), list(target.doubt or [0] * len(target.scores))
    for pool in target.pools:
        for unit in pool.units:
            doubt = [each + unit.count * unit.doubt for each in doubt]

    def add(effect: Effect, times: int) -> None:
        for k, number in enumerate(effect.adds):
            scores[k] += times * number
            doubt[k] += times * effect.doubt
        scores[play.favoured] += times * effect.cap[play.favoured]

    for hit in play.hits:
        pool = target.pools[hit.pool]
        unit = pool.units[hit.unit]
        effect = pool.free if hit.move is None else pool.hit_by[hit.move]
        assert effect is not None  # seen to in objections
        add(Effect(tuple(-number for number in unit.adds), (0,) * len(scores), -unit.doubt), hit.times)
        add(effect, hit.times)
    for move, times in play.new:
        add(target.new[move], times)
    return tuple(scores), tuple(doubt)


def takes_label(contest: Contest, target: Target, play: Play) -> bool:
    """Returns whether the label may be lost after a play, to the favoured class or by abstention."""
    scores, doubt = scores_after(target, play)
    rival, label = play.favoured, target.label
    lead = scores[label] - doubt[label] - scores[rival] - doubt[rival]
    return lead - (rival < label) < contest.least_lead


def gives_label(contest: Contest, play: Play, target: Target) -> bool:
    """Returns whether the favoured class may be the label after a play."""
    scores, doubt = scores_after(target, play)
    best = scores[play.favoured] + doubt[play.favoured]
    others = [(scores[k] - doubt[k] + contest.least_lead, k) for k in range(len(scores)) if k != play.favoured]
    return all(best > worst or (best == worst and play.favoured < k) for worst, k in others)


def in_words(contest: Contest, target: Target, play: Play) -> str:
    """Returns a play as a sentence."""
    parts: dict[str, int] = {}
    for hit in play.hits:
        unit = target.pools[hit.pool].units[hit.unit]
        how = "for nothing" if hit.move is None else hit.move
        what = f"{how} on units that add {list(unit.adds)}"
        parts[what] = parts.get(what, 0) + hit.times
    for move, times in play.new:
        parts[f"{move} bringing something new"] = times
    spent = ", ".join(f"{times} x {what}" for what, times in parts.items()) or "nothing"
    before, after = list(target.scores), list(scores_after(target, play)[0])
    return f'{spent}, all for "{contest.classes[play.favoured]}": scores {before} become {after}'
