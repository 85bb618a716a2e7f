"""What every kind of certificate says when it is written as a contest."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import ABSTAIN
from agnncert.contest.form import (
    LARGEST,
    Amount,
    Attacker,
    Effect,
    Factors,
    Limit,
    Pool,
    Target,
    Unit,
    Vector,
    leader,
)

GRAPH, STEPS, STRUCTURE, EVERYWHERE = "graph", "steps", "structure", "everywhere"  # names of attackers
MISREAD, MACHINES = "misread", "machines"
Attack = tuple[str, Mapping[str, Amount]]  # the name of an attacker, and a budget of the contest

COUNTED = {
    "add_edges": "pairs of nodes that gain a direction",
    "delete_edges": "pairs of nodes that are separated",
    "change_edges": "pairs of nodes whose edge gets other values",
    "inject_nodes": "new nodes",
    "joined": "new nodes that have an edge",
    "joined_twice": "new nodes that have two edges or more",
    "injected_edges": "edges of new nodes",
    "surplus": "edges of new nodes, but for the first edge of each",
    "delete_nodes": "nodes that are deleted",
    "change_features": "nodes other than the target that get other features",
    "target_features": "1 if the target may get other features",
    "flip_labels": "training labels that become another class",
    "add_labels": "training labels that are added",
    "remove_labels": "training labels that are taken away",
    "poison_graphs": "training graphs that are inserted, deleted or altered",
    "edges": "edges of the target that are added or deleted",
    "new_places": "at how many targets edges may arrive: two for each added one, one for each of a new node",
    "places": "at how many targets the changes arrive: two for each edge, and all targets near to a changed node",
    "machines": "votes near a tie that another machine may read otherwise: always any number",
    "steps": "changes of any kind",
}
GRAPH_FIELDS = ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features")
TRAINING_FIELDS = ("flip_labels", "add_labels", "remove_labels", "poison_graphs")


@dataclass(frozen=True)
class Form:
    """What is the same for all targets of a certificate.

    Attributes:
        moves: What spending each move stands for, by its name.
        attackers: The attackers by name.
        extensions: Names of the extensions, in order.
        least_lead: As in :class:`~agnncert.contest.form.Contest`.
    """

    moves: Mapping[str, str]
    attackers: Mapping[str, Attacker]
    extensions: tuple[str, ...] = ()
    least_lead: int = 0


class Kind(ABC):
    """A kind of certificate as a contest.

    Attributes:
        form: What is the same for all targets.
        covers: Fields of a budget about which something is shown.
        largest_size: The largest radius that is stated.
    """

    form: Form
    covers: frozenset[str]
    largest_size: float = math.inf

    @abstractmethod
    def target(self, place: int) -> Target:
        """Returns one target of the contest."""

    def counts(self, budget: Budget) -> Mapping[str, float]:
        """Returns what is counted of a budget, by the names in ``COUNTED``. A kind may count more."""
        return counts_of(budget)

    def attack(self, budget: Budget, attacker: str = GRAPH) -> Attack | None:
        """Returns a budget of the contest; None if nothing is shown about this one."""
        if not self.is_covered(budget):
            return None
        counts = {**self.counts(budget), MACHINES: math.inf}
        read = self.form.attackers[attacker].counts
        return attacker, {name: amount_of(counts[name]) for name in read}

    def is_covered(self, budget: Budget) -> bool:
        """Returns whether something is shown about a budget."""
        changed = {name for name in (*GRAPH_FIELDS, *TRAINING_FIELDS, "target_features") if getattr(budget, name)}
        return changed <= self.covers

    def of_size(self, size: int) -> tuple[Attack, ...]:
        """Returns all attacks of a size: a radius is the largest one that all of them leave the label."""
        return (_sized(self.form.attackers[STEPS], STEPS, size),)

    def of_structure(self, size: int) -> tuple[Attack, ...]:
        """As :meth:`of_size`, for changes that alter no feature and no value; empty if that is the same."""
        if STRUCTURE not in self.form.attackers:
            return ()
        return (_sized(self.form.attackers[STRUCTURE], STRUCTURE, size),)

    def voters(self, places: Iterable[int]) -> Iterator[tuple[Target, Attack]]:
        """Yields what votes for some targets, and what its vote bears, where that has to be shown itself.

        Args:
            places: Places of the targets.
        """
        yield from ()

    def together(self, budget: Budget) -> tuple[Attack, ...]:
        """Returns attacks on all targets at once. The number of broken targets is the smallest that they show."""
        if budget.target_features:
            return ()
        names = [name for name, each in self.form.attackers.items() if each.shared is not None]
        attacks = (self.attack(budget, name) for name in names)
        return tuple(attack for attack in attacks if attack is not None)


def _sized(attacker: Attacker, name: str, size: int) -> Attack:
    counts = {STEPS: size, MACHINES: math.inf}
    return name, {count: amount_of(counts[count]) for count in attacker.counts}


def amount_of(number: float) -> Amount:
    """Returns a number as a contest states it. One that is too large to be stated is any number."""
    return int(number) if number <= LARGEST else None


def counts_of(budget: Budget) -> dict[str, float]:
    """Returns what attackers count, by the names in ``COUNTED``."""
    fields = (*GRAPH_FIELDS, *TRAINING_FIELDS)
    counts = {name: getattr(budget, name) for name in fields}
    edges = budget.injected_edges
    joined = min(budget.inject_nodes, edges)
    counts["injected_edges"] = edges
    counts["joined"] = joined
    counts["joined_twice"] = budget.inject_nodes if budget.edges_per_injected >= 2 else 0
    counts["surplus"] = edges if edges == math.inf else edges - joined
    counts["target_features"] = int(budget.target_features)
    counts["new_places"] = 2 * budget.add_edges + edges
    return counts


@dataclass
class Limits:
    """Collects the limits of an attacker, and the counts that they read.

    Attributes:
        limits: What was collected.
        words: What each count is, in words. An attacker lists its counts in this order.
    """

    limits: list[Limit] = field(default_factory=list)
    words: Mapping[str, str] = field(default_factory=lambda: COUNTED)

    def allow(self, moves: Iterable[str], counts: Iterable[str] | Factors = (), **tables: Iterable[str]) -> "Limits":
        """Adds a limit: each of these counts allows one of the moves, or as many as its factor says."""
        factors = dict(counts) if isinstance(counts, Mapping) else dict.fromkeys(counts, 1)
        read = {name: dict.fromkeys(fields, 1) for name, fields in tables.items()}
        self.limits.append(Limit(tuple(moves), factors, read))
        return self

    def attacker(self, *, phase: Factors | None = None, shared: Limit | None = None) -> Attacker:
        """Returns the attacker with these limits."""
        readings = [phase or {}, *(limit.at_most for limit in self.limits), shared.at_most if shared else {}]
        readings += [factors for limit in self.limits for factors in limit.tables.values()]
        read = {count for factors in readings for count in factors}
        counts = {name: words for name, words in self.words.items() if name in read}
        return Attacker(counts, tuple(self.limits), phase or {}, shared)


def one_of(classes: int, k: int, number: int = 1) -> Vector:
    """Returns a vector that adds a number to one class; nothing if the class is an abstention."""
    return tuple(number if c == k else 0 for c in range(classes))


def all_of(classes: int, number: int) -> Vector:
    """Returns a vector with the same number for every class."""
    return (number,) * classes


def becomes_any(classes: int, number: int = 1) -> Effect:
    """Returns the effect of a vote that may become one for any class."""
    return Effect(all_of(classes, 0), all_of(classes, number))


def vote(classes: int, k: int, count: int, until: int | None = None) -> Unit:
    """Returns votes for a class, or abstentions."""
    return Unit(count, all_of(classes, 0) if k == ABSTAIN else one_of(classes, k), until=until)


def target_of(
    name: str,
    fixed: Vector,
    pools: Iterable[Pool],
    new: Mapping[str, Effect] | None = None,
    doubt: Vector | None = None,
    tables: Mapping[str, Vector] | None = None,
) -> Target:
    """Returns a target whose scores are added up here. Pools without units are left out."""
    kept = tuple(pool for pool in pools if pool.units)
    scores = list(fixed)
    for unit in (unit for pool in kept for unit in pool.units):
        for k, number in enumerate(unit.adds):
            scores[k] += unit.count * number
    total = tuple(scores)
    return Target(name, leader(total), total, fixed, kept, new or {}, doubt or all_of(len(fixed), 0), tables or {})
