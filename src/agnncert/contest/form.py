"""A contest between classes, and what an attacker may do to it.

A *target* has a score for each class: a fixed part, and *units* (votes, models, neighbours, labels), each of which adds
a vector. The class with the largest score is the label, the smaller class on a tie. An attacker spends *moves*. A move
that hits a unit leaves something else in its place; a move may also bring a new unit. What stands there afterwards is
an *effect*: it adds a vector, and up to ``cap[c]`` more for one class c of the attacker's choice. *Limits* say how
often moves are spent. Nothing else changes the scores.

All numbers are whole and smaller than 2**53 in absolute value, so that every language reads them as they are. Sums are
taken with Python's integers, which have no largest one.

Beyond this core there are *extensions*, which a file lists: ``doubt``, ``abstention``, ``tables``, ``phase`` and
``together``. A field of an extension has its default here if a file does not list that extension.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

EXTENSIONS = ("abstention", "doubt", "phase", "tables", "together")
LARGEST = 2**53 - 1  # the largest whole number that JavaScript and float64 read exactly

Vector = tuple[int, ...]  # one number for each class
Amount = int | None  # None: any number
Budget = Mapping[str, Amount]  # name of a count -> how many, as a statement says
Factors = Mapping[str, int]  # name of a count -> factor


@dataclass(frozen=True)
class Effect:
    """What a move leaves or brings.

    Attributes:
        adds: What it adds to the score of each class, for certain.
        cap: What it may add on top to one class, which the attacker chooses: any whole number from 0 to ``cap[c]``,
            with the extension "doubt" any number.
        doubt: By how much rounding may move each of these scores. Extension ``doubt``.
    """

    adds: Vector
    cap: Vector
    doubt: int = 0


@dataclass(frozen=True)
class Unit:
    """Units that are alike.

    Attributes:
        count: How many of them there are.
        adds: What each of them adds to the score of each class.
        doubt: By how much rounding may move each of these scores. Extension ``doubt``.
        until: The last phase in which they stand. In a later one each of them may have become ``Pool.free``, and no
            move was spent. None: they stand in every phase. Extension ``phase``.
    """

    count: int
    adds: Vector
    doubt: int = 0
    until: int | None = None


@dataclass(frozen=True)
class Pool:
    """Units that are hit by the same moves, with the same effects.

    Attributes:
        hit_by: What stands in place of such a unit after each move that can hit it, by the name of the move.
        units: The units.
        free: What units may become once their phase is over. Extension ``phase``.
    """

    hit_by: Mapping[str, Effect]
    units: tuple[Unit, ...]
    free: Effect | None = None


@dataclass(frozen=True)
class Target:
    """One decision.

    Attributes:
        name: What the author calls it.
        label: The class with the largest score.
        scores: The score of each class: ``fixed`` and all units.
        fixed: The part of the scores that no move changes.
        pools: The units.
        new: What a move brings that is spent without a unit, by the name of the move.
        doubt: By how much rounding may move the score of each class, beside that of units. Extension ``doubt``.
        tables: For each table of the attackers, the largest amount for 1, 2, 3, ... of its counts; the last entry
            stands for all larger numbers. Extension ``tables``.
    """

    name: str
    label: int
    scores: Vector
    fixed: Vector
    pools: tuple[Pool, ...]
    new: Mapping[str, Effect]
    doubt: Vector = ()
    tables: Mapping[str, Vector] = field(default_factory=dict)


@dataclass(frozen=True)
class Limit:
    """How many of some moves may be spent in all.

    Attributes:
        moves: Names of the moves.
        at_most: Factor of each count of the budget in that number.
        tables: For each table, the factors of the counts at whose sum it is read. What it says is added to the
            number. Extension ``tables``.
    """

    moves: tuple[str, ...]
    at_most: Factors
    tables: Mapping[str, Factors] = field(default_factory=dict)


@dataclass(frozen=True)
class Attacker:
    """A kind of attacker: what is counted, and what the counts limit.

    Attributes:
        counts: What each count means, by its name.
        limits: The limits. Every move stands in one or more of them, and has to respect all of these.
        phase: Factor of each count in the phase. Extension ``phase``.
        shared: How many of some moves one attack may spend on all targets together. Extension ``together``.
    """

    counts: Mapping[str, str]
    limits: tuple[Limit, ...]
    phase: Factors = field(default_factory=dict)
    shared: Limit | None = None


@dataclass(frozen=True)
class Claim:
    """What the author says, and no program can check.

    Attributes:
        defence: What decided.
        author: Who says so.
        reference: Where it is shown that the form describes the defence.
        assumes: What has to be so for the statements to mean something.
    """

    defence: str
    author: str
    reference: str
    assumes: tuple[str, ...]


@dataclass(frozen=True)
class Stays:
    """A target keeps its label against every attack within a budget.

    Attributes:
        target: Place of the target in the list.
        attacker: Name of the attacker.
        budget: How many of each count there are.
        prices: For each class, one price for each limit of the attacker. The row of the label is empty.
    """

    target: int
    attacker: str
    budget: Budget
    prices: tuple[Vector, ...]


@dataclass(frozen=True)
class Excludes:
    """No attack within a budget gives a target this class.

    Attributes:
        target: Place of the target in the list.
        attacker: Name of the attacker.
        budget: How many of each count there are.
        rival: The class.
        weights: How much the lead of each other class over it counts; 0 for the class itself.
        prices: One price for each limit of the attacker.
    """

    target: int
    attacker: str
    budget: Budget
    rival: int
    weights: Vector
    prices: Vector


@dataclass(frozen=True)
class Need:
    """A target keeps its label unless so many shared moves are spent on it.

    Attributes:
        target: Place of the target in the list.
        moves: How many, 1 or more; None if it keeps its label however many are spent.
        prices: As in :class:`Stays`; if ``moves`` is a number, with one more price in each row, of the shared moves.
    """

    target: int
    moves: int | None
    prices: tuple[Vector, ...]


@dataclass(frozen=True)
class BrokenAtMost:
    """One attack within a budget takes the labels of so many targets at most. Extension ``together``.

    Attributes:
        attacker: Name of the attacker.
        budget: How many of each count there are.
        number: How many targets. All that are not among ``needs`` may lose their label for nothing.
        needs: What other targets need.
    """

    attacker: str
    budget: Budget
    number: int
    needs: tuple[Need, ...]


Statement = Stays | Excludes | BrokenAtMost


@dataclass(frozen=True)
class Contest:
    """All that one file says.

    Attributes:
        claim: What the author says about it.
        extensions: Names of the extensions that it uses, in order.
        classes: Names of the classes.
        moves: What spending each move stands for, by its name.
        attackers: The attackers by name.
        targets: The targets.
        statements: What is to be checked.
        least_lead: A label is given only if its lead over every other class is as large; 0 without abstention.
            Extension ``abstention``.
    """

    claim: Claim
    extensions: tuple[str, ...]
    classes: tuple[str, ...]
    moves: Mapping[str, str]
    attackers: Mapping[str, Attacker]
    targets: tuple[Target, ...]
    statements: tuple[Statement, ...]
    least_lead: int = 0


def contradictions(contest: Contest) -> Iterator[str]:
    """Yields where a contest contradicts itself, so that nothing should be concluded from it.

    ``file`` has already seen to types, to names that are unknown or missing, and to numbers that are negative or too
    large.
    """
    if not contest.moves:
        yield "it has no moves: state what the attacker does"
    if not contest.targets:
        yield "it has no targets"
    for name, attacker in contest.attackers.items():
        yield from (f'attacker "{name}": {what}' for what in _of_attacker(contest, attacker))
    for place, target in enumerate(contest.targets):
        yield from (f'target {place} ("{target.name}"): {what}' for what in _of_target(contest, target))
    yield from _unused(contest)


def _of_attacker(contest: Contest, attacker: Attacker) -> Iterator[str]:
    limits = [*attacker.limits, *([attacker.shared] if attacker.shared else [])]
    for limit in limits:
        yield from (f'a limit names "{move}", which is no move' for move in limit.moves if move not in contest.moves)
        if len(set(limit.moves)) < len(limit.moves):
            yield "a limit names a move twice"
    for move in contest.moves:
        if not any(move in limit.moves for limit in attacker.limits):
            yield f'no limit names the move "{move}": an attacker without it has a limit of 0'
    if attacker.shared is not None and attacker.shared.tables:
        yield "what all targets share cannot be read from the tables of one"
    readings = [attacker.phase, *(limit.at_most for limit in limits)]
    readings += [factors for limit in limits for factors in limit.tables.values()]
    read = {count for factors in readings for count, factor in factors.items() if factor}
    for count in (count for factors in readings for count in factors):
        if count not in attacker.counts:
            yield f'"{count}" is read, but it is none of the counts'
    for count in attacker.counts:
        if count not in read:
            yield f'nothing reads the count "{count}": the budget would not limit what it stands for'


def _of_target(contest: Contest, target: Target) -> Iterator[str]:
    classes = len(contest.classes)
    for vector in _vectors(target):
        if len(vector) != classes:
            yield f"a vector has {len(vector)} numbers for {classes} classes"
            return
    sums = list(target.fixed)
    for unit in (unit for pool in target.pools for unit in pool.units):
        sums = [total + unit.count * number for total, number in zip(sums, unit.adds, strict=True)]
    if sums != list(target.scores):
        yield f"fixed and units add up to {sums}, its scores are {list(target.scores)}"
    if target.label != leader(target.scores):
        yield f"its label is {target.label}, but class {leader(target.scores)} has the largest score"
    for pool in target.pools:
        yield from _of_pool(contest, pool)
    yield from (f'"{move}" brings something new, but is no move' for move in target.new if move not in contest.moves)
    yield from _of_tables(contest, target)


def _of_pool(contest: Contest, pool: Pool) -> Iterator[str]:
    if not pool.units:
        yield "a pool has no units"
    if not pool.hit_by and pool.free is None:
        yield "nothing ever hits the units of a pool: they belong to the fixed part"
    if pool.free is None and any(unit.until is not None for unit in pool.units):
        yield "the phase of a unit ends, but its pool does not say what becomes of it"
    yield from (f'"{move}" hits a pool, but is no move' for move in pool.hit_by if move not in contest.moves)


def _of_tables(contest: Contest, target: Target) -> Iterator[str]:
    named = {name for each in contest.attackers.values() for limit in limits_of(each) for name in limit.tables}
    if named != set(target.tables):
        yield f"it has the tables {sorted(target.tables)}, the attackers read {sorted(named)}"
    for name, values in target.tables.items():
        if any(after < before for before, after in zip((0, *values), values, strict=False)):
            yield f'its table "{name}" decreases: more changes cannot reach less'


def _vectors(target: Target) -> Iterator[Vector]:
    yield from (target.scores, target.fixed, *([target.doubt] if target.doubt else []))
    effects = [*target.new.values()]
    for pool in target.pools:
        yield from (unit.adds for unit in pool.units)
        effects += [*pool.hit_by.values(), *([pool.free] if pool.free else [])]
    for effect in effects:
        yield from (effect.adds, effect.cap)


def _unused(contest: Contest) -> Iterator[str]:
    """Yields which moves do nothing, which is most likely a misspelt name."""
    used = {move for target in contest.targets for pool in target.pools for move in pool.hit_by}
    used |= {move for target in contest.targets for move in target.new}
    for move in contest.moves:
        if move not in used:
            yield f'the move "{move}" hits no unit of any target and brings nothing new'
    yield from (f'two classes are called "{name}"' for name in _repeated(contest.classes))
    names = [target.name for target in contest.targets]
    yield from (f'two targets are called "{name}": which is meant?' for name in _repeated(names))


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def limits_of(attacker: Attacker) -> tuple[Limit, ...]:
    """Returns all limits of an attacker, the shared one last."""
    return attacker.limits if attacker.shared is None else (*attacker.limits, attacker.shared)


def leader(scores: Vector) -> int:
    """Returns the class with the largest score, the smaller one on a tie."""
    return max(range(len(scores)), key=lambda k: (scores[k], -k))
