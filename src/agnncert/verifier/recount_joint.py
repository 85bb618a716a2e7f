"""Counts votes of labels and neighbours again (Theorem 17 of ``docs/proofs.md``).

This module shares no code with ``labels.joint_evidence``: for each target and rival it sorts the costs of all labels,
and writes down what is left of the lead after each number of changed labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import BudgetError
from agnncert.labels.joint_record import JointRecord
from agnncert.verifier.blocks import cut
from agnncert.verifier.recount_labels import Recounted, recount, weights_of

PAIRS_AT_ONCE = 2**21  # targets times labels whose costs are sorted at the same time


@dataclass(frozen=True)
class Attack:
    """What an attacker does.

    Attributes:
        labels: Labels that he changes.
        added: Neighbours that a target gains.
        deleted: Neighbours that it loses.
    """

    labels: int
    added: float
    deleted: float


@dataclass(frozen=True)
class Elected:
    """What the label votes of all voters decide, and with them the targets.

    Attributes:
        voters: Label votes of every voter, counted again.
        cast: Number of neighbours that vote for each class, shape ``[n, C]``.
        label: The label of each target, or the class whose lead is asked for instead, shape ``[n]``.
        asked: By how much it has to be ahead.
    """

    voters: Recounted
    cast: IntArray
    label: IntArray
    asked: int

    def fewest(self) -> FloatArray:
        """Returns the fewest changed labels that may change what each voter votes for, shape ``[v]``."""
        return np.asarray(self.voters.needed.min(axis=1, initial=np.inf))

    def led_by(self, leader: int) -> "Elected":
        """Returns the same with a class in the place of every label, which only has to be ahead of others."""
        return replace(self, label=np.full_like(self.label, leader), asked=0)


def elect(record: JointRecord) -> Elected:
    """Counts the labels of all voters and targets."""
    voters = recount(record.voters)
    cast = np.zeros((record.num_targets, record.num_classes), dtype=np.int64)
    np.add.at(cast, (_owners(record), voters.label[record.neighbour]), 1)
    score = _own_scores(record) + record.neighbour_steps * cast
    return Elected(voters, cast, np.argmax(score, axis=1), record.least_lead)  # the first of several that are equal


def _owners(record: JointRecord) -> IntArray:
    """Returns whose neighbour each entry of the lists is, shape ``[e]``."""
    return np.searchsorted(record.indptr, np.arange(len(record.neighbour)), side="right") - 1


def _blocks(record: JointRecord) -> Iterator[IntArray]:
    """Yields the numbers of some targets at a time."""
    targets = np.arange(record.num_targets)
    for block in cut(np.full(len(targets), max(1, record.voters.num_candidates)), PAIRS_AT_ONCE):
        yield targets[block]


def _own_scores(record: JointRecord) -> IntArray:
    """Returns the scores of label votes alone, shape ``[n, C]``."""
    score = np.zeros((record.num_targets, record.num_classes), dtype=np.int64)
    for rows in _blocks(record):
        weight = weights_of(record.voters, record.target[rows])
        for k, advance in enumerate(record.voters.advance):
            score[rows, k] = advance + weight[:, record.voters.label_of == k].sum(axis=1)
    return score


@dataclass(frozen=True)
class Left:
    """What is left of the lead of some targets over one class, after 0, 1, … changed labels.

    Attributes:
        rows: Numbers of the targets that are not of this class, shape ``[b]``.
        lead: The lead, shape ``[b, m + 1]``; it never grows.
        sure: Neighbours that vote for the label whatever so many labels say, shape ``[b, m + 1]``.
    """

    rows: IntArray
    lead: IntArray
    sure: IntArray


def leads_left(record: JointRecord, elected: Elected) -> Iterator[tuple[int, Left]]:
    """Yields each class, with what is left of the lead over it for some of the targets."""
    owner = _owners(record)
    fewest = elected.fewest()[record.neighbour]
    cast = elected.voters.label[record.neighbour]
    for block in _blocks(record):
        for k in range(record.num_classes):
            rows = block[elected.label[block] != k]
            if len(rows):
                near = np.flatnonzero(np.isin(owner, rows))
                place = np.searchsorted(rows, owner[near])
                yield k, _left(record, elected, k, rows, (place, cast[near], fewest[near]))


def _left(
    record: JointRecord, elected: Elected, k: int, rows: IntArray, near: tuple[IntArray, IntArray, FloatArray]
) -> Left:
    of_labels = record.voters
    label = elected.label[rows]
    weight = weights_of(of_labels, record.target[rows])
    says_label = of_labels.label_of[None, :] == label[:, None]
    toward = np.where(says_label, weight, 0) - np.where(of_labels.label_of == k, weight, 0)
    advance = np.array(of_labels.advance)
    distance = advance[label] - advance[k] + toward.sum(axis=1) - (k < label) - elected.asked
    loss = np.abs(weight) + toward
    loss[:, of_labels.audited] = 0
    taken = np.zeros((len(rows), of_labels.num_candidates + 1), dtype=np.int64)
    taken[:, 1:] = np.cumsum(-np.sort(-loss, axis=1, kind="stable"), axis=1)
    place, cast, fewest = near
    for_label = cast == label[place]
    leaning = for_label.astype(np.int64) - (cast == k)
    lean = np.bincount(place, weights=leaning, minlength=len(rows)).astype(np.int64)
    turned = _by_number(place, leaning + 1, fewest, taken.shape)  # from what it says now to a vote for the rival
    lead = distance[:, None] - taken + record.neighbour_steps * (lean[:, None] - turned)
    steadfast = np.bincount(place, weights=for_label, minlength=len(rows)).astype(np.int64)
    sure = steadfast[:, None] - _by_number(place, for_label.astype(np.int64), fewest, taken.shape)
    return Left(rows, lead, sure)


def _by_number(place: IntArray, amount: IntArray, fewest: FloatArray, shape: tuple[int, int]) -> IntArray:
    """Adds up the amounts of all neighbours that may have turned after 0, 1, … changed labels, shape ``[b, m + 1]``."""
    table = np.zeros(shape, dtype=np.int64)
    turns = fewest < shape[1]
    np.add.at(table, (place[turns], fewest[turns].astype(np.int64)), amount[turns])
    return np.cumsum(table, axis=1)


def needed_changes(record: JointRecord, elected: Elected) -> FloatArray:
    """Returns the fewest changed labels and edges, in any mix, after which each class is no longer behind, ``[n, C]``.

    It is infinite if there is no such number, and for the label itself.
    """
    needed = np.full((record.num_targets, record.num_classes), np.inf)
    for k, left in leads_left(record, elected):
        labels = np.arange(left.lead.shape[1])
        if record.neighbour_steps:
            edges = np.floor_divide(left.lead, record.neighbour_steps).astype(np.float64) + 1
        else:
            edges = np.full(left.lead.shape, np.inf)
        needed[left.rows, k] = (labels + np.where(left.lead < 0, 0.0, edges)).min(axis=1)
    return needed


def stays_ahead(record: JointRecord, elected: Elected, attacks: Sequence[Attack | None]) -> BoolArray:
    """Tells whether the label stays ahead of each class under each attack, shape ``[a, n, C]``; true of itself.

    ``None`` is an attack of which nothing is proved.
    """
    ahead = np.zeros((len(attacks), record.num_targets, record.num_classes), dtype=bool)
    ahead[:, np.arange(record.num_targets), elected.label] = True
    for k, left in leads_left(record, elected):
        for i, attack in enumerate(attacks):
            if attack is None:
                continue
            lead, sure = left.lead[:, attack.labels], left.sure[:, attack.labels]
            gone = attack.added + np.minimum(attack.deleted, sure)
            lost = gone * record.neighbour_steps if record.neighbour_steps else 0.0
            ahead[i, left.rows, k] = lead >= lost
    return ahead


def attack_of(record: JointRecord, budget: Budget) -> Attack | None:
    """Returns what an attacker with a budget does; ``None`` if such a file proves nothing about it.

    Raises:
        BudgetError: It changes training data in a way that is refused.
    """
    changes_nodes = bool(budget.inject_nodes or budget.delete_nodes or budget.change_features or budget.target_features)
    others = budget.add_labels + budget.remove_labels
    if budget.poison_graphs or (others and record.voters.candidates == "labelled"):
        raise BudgetError(f"{budget}: such a certificate proves nothing about this kind of poisoned training data.")
    labels = budget.flip_labels + others
    if changes_nodes and labels:
        raise BudgetError(f"{budget}: such a certificate proves nothing about labels and nodes together.")
    if changes_nodes:
        return None
    most = record.voters.num_candidates
    return Attack(most if labels > most else int(labels), budget.add_edges, budget.delete_edges)
