"""Votes of training labels (Theorem 14), and of labels and neighbours together (Theorem 17), as contests."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agnncert.certificates.budget import Budget
from agnncert.contest.form import Effect, Pool, Target, Unit, Vector, leader
from agnncert.contest.kinds.kind import GRAPH, Attack, Form, Kind, Limits, all_of, one_of, target_of
from agnncert.labels.joint_record import JointRecord
from agnncert.labels.record import STEPS as WHOLE
from agnncert.labels.record import LabelRecord

VOTERS = "voters"  # the attacker on the voters of a target
FLIP, ADD, DELETE = "flip", "add", "delete"
MOVES = {
    FLIP: "a training label becomes another one, or none, or one where there was none",
    ADD: "the target gets a neighbour",
    DELETE: "the target loses a neighbour",
}


def changed_labels(record: LabelRecord) -> tuple[str, ...]:
    """Returns which fields of a budget change a training label."""
    more = ("add_labels", "remove_labels") if record.candidates == "all" else ()
    return ("flip_labels", *more)


class LabelVotes(Kind):
    """Each training label votes with a weight."""

    def __init__(self, record: LabelRecord) -> None:
        self.record = record
        self.covers = frozenset(changed_labels(record))
        self.largest_size = record.num_candidates
        attacker = Limits().allow([FLIP], changed_labels(record)).attacker()
        self.form = Form({FLIP: MOVES[FLIP]}, {GRAPH: attacker}, ("abstention",), record.least_lead)

    def of_size(self, size: int) -> tuple[Attack, ...]:
        """Returns the attack on so many labels."""
        attack = self.attack(Budget(flip_labels=size))
        assert attack is not None  # labels are what this is about
        return (attack,)

    def target(self, place: int) -> Target:
        """Returns one target: the labels by class and weight."""
        labels = labels_of(self.record, place)
        return target_of(str(place), labels.fixed, labels.pools)


@dataclass(frozen=True)
class Labels:
    """The votes of labels for one target.

    Attributes:
        fixed: What classes have in advance, and the votes of labels that nobody can change.
        pools: The votes of all others, a pool for each weight.
    """

    fixed: Vector
    pools: tuple[Pool, ...]


def labels_of(record: LabelRecord, place: int) -> Labels:
    """Returns the votes of labels for one target, or one voter."""
    classes = record.num_classes
    found = Counter(zip(record.label_of.tolist(), weights_of(record, place), record.audited.tolist(), strict=True))
    by_weight: dict[int, list[Unit]] = {}
    fixed = list(record.advance)
    for (label, number, audited), count in sorted(found.items()):
        if audited and label >= 0:
            fixed[label] += count * number
        elif number and not audited:
            by_weight.setdefault(abs(number), []).append(Unit(count, one_of(classes, label, number)))
    pools = (Pool({FLIP: _any_vote(classes, size)}, tuple(units)) for size, units in sorted(by_weight.items()))
    return Labels(tuple(fixed), tuple(pools))


def _any_vote(classes: int, size: int) -> Effect:
    """Returns the worst of what a label of this weight may become: a negative vote for a leader is one for a rival."""
    return Effect(all_of(classes, 0), all_of(classes, size))


def weights_of(record: LabelRecord, place: int) -> list[int]:
    """Returns the weight of each candidate for a target, in steps."""
    if record.weights.shape[1]:
        weights = [int(x) for x in record.weights[place]]
    else:
        products = record.right.astype(object) @ record.left[place].astype(object)  # integers of any size
        cap = int(record.cap[place])
        weights = [max(-WHOLE, min(WHOLE, int(product) * WHOLE // cap)) for product in products]
    own = int(record.own[place])
    if own >= 0:
        weights[own] = 0
    return weights


class JointVotes(Kind):
    """Labels vote, and neighbours, whose votes are those of labels.

    A neighbour that n changed labels leave its vote stands until phase n. The voters are further targets of the
    contest, and statements about them show that.
    """

    def __init__(self, record: JointRecord) -> None:
        self.record = record
        labels = changed_labels(record.voters)
        self.covers = frozenset((*labels, "add_edges", "delete_edges", "change_edges"))
        limits = Limits().allow([FLIP], labels).allow([ADD], ["add_edges"]).allow([DELETE], ["delete_edges"])
        mixed = Limits().allow([FLIP], ["flip_labels"]).allow([ADD, DELETE], ["edges"])
        alone = Limits().allow([FLIP], ["flip_labels"]).allow([ADD, DELETE])
        attackers = {
            GRAPH: limits.attacker(phase=dict.fromkeys(labels, 1)),
            "steps": mixed.attacker(phase={"flip_labels": 1}),
            VOTERS: alone.attacker(),
        }
        self.form = Form(MOVES, attackers, ("abstention", "phase"), record.least_lead)
        self.largest_size = record.voters.num_candidates if not record.neighbour_steps else math.inf
        self._elected: dict[int, tuple[int, int | None]] = {}

    def of_size(self, size: int) -> tuple[Attack, ...]:
        """Returns every mix of so many labels and edges."""
        most = min(size, self.record.voters.num_candidates)
        return tuple(("steps", {"flip_labels": n, "edges": size - n}) for n in range(most + 1))

    def target(self, place: int) -> Target:
        """Returns one target: labels, and neighbours that stand until a number of labels has changed."""
        record = self.record
        classes, worth = record.num_classes, record.neighbour_steps
        near = record.neighbour[record.indptr[place] : record.indptr[place + 1]].tolist()
        found = Counter(self.elected(voter) for voter in near)
        units = tuple(
            Unit(count, one_of(classes, label, worth), until=until)
            for (label, until), count in sorted(found.items(), key=str)
        )
        votes_again = Effect(all_of(classes, 0), all_of(classes, worth))
        gone = Effect(all_of(classes, 0), all_of(classes, 0))
        labels = labels_of(record.voters, int(record.target[place]))
        pools = [*labels.pools, Pool({DELETE: gone}, units, votes_again)]
        return target_of(str(place), labels.fixed, pools, {ADD: votes_again})

    def voters(self, places: Iterable[int]) -> Iterator[tuple[Target, Attack]]:
        """Yields the neighbours of some targets, and how many changed labels each of them bears."""
        record = self.record
        near = {voter for i in places for voter in record.neighbour[record.indptr[i] : record.indptr[i + 1]].tolist()}
        for voter in sorted(near):
            _, until = self.elected(voter)
            yield self.voter(voter), (VOTERS, {"flip_labels": until})

    def voter(self, place: int) -> Target:
        """Returns a voter as a target of its own. Voters do not abstain: the least lead is given to its label."""
        labels = labels_of(self.record.voters, place)
        voter = target_of(f"voter {place}", labels.fixed, labels.pools)
        given = one_of(len(labels.fixed), voter.label, self.record.least_lead)
        fixed = tuple(a + b for a, b in zip(labels.fixed, given, strict=True))
        return target_of(voter.name, fixed, labels.pools)

    def elected(self, voter: int) -> tuple[int, int | None]:
        """Returns the class of a voter, and how many changed labels it bears; None if any number."""
        if voter not in self._elected:
            labels = labels_of(self.record.voters, voter)
            target = target_of("", labels.fixed, labels.pools)
            self._elected[voter] = _borne(target, self.record.voters.num_candidates)
        return self._elected[voter]


def _borne(target: Target, most: int) -> tuple[int, int | None]:
    """Returns the label, and how many changed labels it bears: those that cost it most are changed first."""
    label = leader(target.scores)
    fewest: int | None = None
    for rival in range(len(target.scores)):
        if rival == label:
            continue
        lead = target.scores[label] - target.scores[rival] - (rival < label)
        costs = _costs(target, label, rival)
        number = 0
        while number < len(costs) and costs[number] <= lead:
            lead -= costs[number]
            number += 1
        if number < len(costs) and (fewest is None or number < fewest):
            fewest = number
    return label, None if fewest is None or fewest >= most else fewest


def _costs(target: Target, label: int, rival: int) -> list[int]:
    """Returns what the label loses to a rival by each unit that is hit, the largest first."""
    costs: list[int] = []
    for pool in target.pools:
        for effect in pool.hit_by.values():
            for unit in pool.units:
                harm = unit.adds[label] - unit.adds[rival] + effect.cap[rival]
                costs += [harm] * unit.count
    return sorted(costs, reverse=True)
