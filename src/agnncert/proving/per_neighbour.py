"""The theorems where every neighbour, pair or node has its own group: ``num_groups=math.inf``. Pure functions.

A target has one vote for each neighbour that sends it messages (node-centric), or for each of its pairs
(edge-centric); a graph one for each node, or each pair. The vote is a function of that neighbour or pair and the
target alone. So an attack *adds* votes, *removes* them, or *alters* them, and these weigh differently: what is added
gains a rival 1, what is removed gains it 1 if it was for the winner, and only what is altered can gain it 2.

All other groups are empty. They abstain, or vote for one class, which then has infinitely many votes, so that a vote
that comes to be is one of that class less. ``recount`` does all of this a second time.
"""

from dataclasses import dataclass, replace

import numpy as np

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.proving.theorems import REACHED, Amounts, Counts, Facts, largest_amount, times


@dataclass(frozen=True)
class Touches:
    """What an attack does to the votes of each target where every neighbour has its own, each ``[n]``.

    Attributes:
        new: Votes that come to be.
        touched: Votes that cease to be, or that may become anything.
        altered: Those of them that may become anything.
        turned: Of the new ones, how many may instead be a second direction of a pair that has one, which alters its
            vote.
        covered: False where nothing is proved about the attack.
    """

    new: FloatArray
    touched: FloatArray
    altered: FloatArray
    turned: FloatArray
    covered: BoolArray

    @classmethod
    def of(
        cls,
        facts: Facts,
        attack: Amounts,
        *,
        new: FloatArray,
        touched: FloatArray,
        altered: FloatArray,
    ) -> "Touches":
        """Returns what an attack does that turns no pair. Numbers that hold for all targets are spread to ``[n]``."""
        none = np.zeros(facts.num_reached.shape)
        covered = np.full(none.shape, not attack.target_features)
        return cls(new=none + new, touched=none + touched, altered=none + altered, turned=none, covered=covered)


def withstands_touches(counts: Counts, touches: Touches, facts: Facts) -> BoolArray:
    """Returns whether each target keeps its label whatever an attack within ``touches`` does, shape ``[n]``.

    For every rival k: margin >= (winner's votes that are touched) + (others that become k's) + (what is new).
    """
    return np.asarray(ahead_after_touches(counts, touches, facts).all(axis=1))


def ahead_after_touches(counts: Counts, touches: Touches, facts: Facts) -> BoolArray:
    """Returns of which classes each label stays ahead, shape ``[n, C]``; of none where nothing is covered."""
    safe = counts.margin >= _most_gain(counts, touches, facts)
    return touches.covered[:, None] & (safe | counts.is_label)


def _most_gain(counts: Counts, touches: Touches, facts: Facts) -> FloatArray:
    """Returns the most by which an attack can close each margin, shape ``[n, C]``."""
    own, others = _listed(counts)
    absent_is_label, absent_is_rival = _absent(counts, facts.absent)
    touched = touches.touched[:, None]
    altered = touches.altered[:, None]
    new = touches.new[:, None]
    turned = touches.turned[:, None]
    # A removed vote is one of the class that empty groups vote for: no loss to the winner if that is the winner, and a
    # gain to the rival if that is the rival.
    lost_by_label = np.minimum(np.where(absent_is_label, altered, touched), own)
    won_by_rival = np.minimum(np.where(absent_is_rival, touched, altered), others)
    added = times(new, np.asarray(1.0 + absent_is_label - absent_is_rival, dtype=np.float64))
    # A turned pair gains one more than a new one if it takes a vote from the winner that nothing else touches; where
    # new ones gain nothing because they are the rival's already, so does any vote that becomes the rival's.
    one_way_own, one_way_others = _one_way(counts, facts)
    untouched_own = own - np.minimum(touched, own)
    untouched_others = others - np.minimum(touched, others)
    turned_own = np.minimum(np.minimum(turned, one_way_own), untouched_own)
    turned_others = np.minimum(np.minimum(turned, one_way_others), untouched_others)
    turning = np.where(absent_is_label, 0, turned_own) + np.where(absent_is_rival, turned_others, 0)
    return np.asarray(lost_by_label + won_by_rival + added + turning, dtype=np.float64)


def per_neighbour_radius(counts: Counts, facts: Facts) -> IntArray:
    """Returns how many changes, of any kinds, each target is certified against, shape ``[n]``; -1 if not even none.

    Of x changes all gain a rival 1, by new votes if not otherwise, and those that alter votes of the winner 2.
    """
    return _largest(counts, facts, _listed(counts)[0])


def structure_radius(counts: Counts, facts: Facts) -> IntArray:
    """Returns the certified number of added and deleted edges and nodes, if nothing else changes, shape ``[n]``.

    Of x such changes all gain a rival 1, and those that give a pair of the winner's a second direction 2.
    """
    return _largest(counts, facts, _one_way(counts, facts)[0])


def _largest(counts: Counts, facts: Facts, twos: IntArray) -> IntArray:
    """Returns the largest x for which x + min(x, twos) closes no margin, shape ``[n]``.

    Where empty groups vote for the label, every new vote gains 2. Where they vote for the rival, new ones gain nothing,
    and removed and altered ones gain alike.
    """
    own, others = _listed(counts)
    absent_is_label, absent_is_rival = _absent(counts, facts.absent)
    margin = counts.margin
    usual = np.maximum(margin // 2, margin - twos)
    by_touching = np.maximum(margin // 2, margin - np.minimum(own, others))
    by_touching = np.where(margin >= own + others, counts.num_groups, by_touching)  # nobody can gain as much
    radius = np.where(absent_is_rival, by_touching, usual)
    radius = np.where(absent_is_label, margin // 2, radius)
    radius = np.where(counts.is_label, counts.num_groups, radius)
    return np.asarray(np.maximum(radius.min(axis=1), -1))


def per_neighbour_gain(counts: Counts, absent: int, turned: IntArray, number: int) -> IntArray:
    """Returns the most by which ``number`` changes close the margin of each rival, shape ``[n, C]``.

    Why is explained in :func:`_largest`.

    Args:
        counts: The votes.
        absent: The class that empty groups vote for, -1 if they abstain.
        turned: Votes that one change can turn from one class to another, per class, shape ``[n, C]``.
        number: How many changes.
    """
    own, others = _listed(counts)
    absent_is_label, absent_is_rival = _absent(counts, absent)
    twos = np.take_along_axis(turned, counts.label[:, None], axis=1)
    touching = np.minimum(number, own) + np.minimum(number, others)
    usual = np.where(absent_is_rival, touching, number + np.minimum(number, twos))
    return np.asarray(np.where(absent_is_label, 2 * number, usual))


def touches_needed(counts: Counts, touches: Touches, facts: Facts) -> FloatArray:
    """Returns the fewest changes at each target that can break it, ``inf`` if none do, shape ``[n]``.

    A change is a new, lost or altered vote. Each gains a rival 1, and 2 if it alters or turns a vote of the winner. A
    change may also gain 2 because of what empty groups vote for.
    """
    own, _ = _listed(counts)
    absent_is_label, absent_is_rival = _absent(counts, facts.absent)
    one_way_own, _ = _one_way(counts, facts)
    turned = np.minimum(touches.turned[:, None], one_way_own)
    altered = np.where(absent_is_rival, touches.touched[:, None], touches.altered[:, None])
    twos = np.minimum(altered + turned, own)
    twos = np.where(absent_is_label, twos + touches.new[:, None], twos)
    missing = np.maximum(counts.margin + 1, 0)
    half = np.ceil(missing / 2)
    needed = np.where(half <= twos, half, missing - np.where(np.isfinite(twos), twos, 0))
    breaks = ~counts.is_label & (counts.margin < _most_gain(counts, touches, facts))
    needed = np.where(breaks, needed, np.inf).min(axis=1)
    return np.asarray(np.where(touches.covered, needed, 0.0))


def new_needed(counts: Counts, touches: Touches, facts: Facts) -> FloatArray:
    """Returns the fewest new neighbours with which each target breaks if all else is spent on it.

    The number is ``inf`` where no number of new neighbours breaks it. Shape ``[n]``.
    """

    def holds(added: FloatArray) -> BoolArray:
        fewer = replace(touches, new=np.minimum(touches.new, added), turned=np.minimum(touches.turned, added))
        return withstands_touches(counts, fewer, facts)

    return largest_amount(holds, len(counts.label)) + 1


def _listed(counts: Counts) -> tuple[IntArray, IntArray]:
    """Returns stable votes for the label, and for others than each class, shapes ``[n, 1]`` and ``[n, C]``."""
    votes = counts.votes[REACHED]
    own = np.take_along_axis(votes, counts.label[:, None], axis=1)
    return own, counts.size[REACHED][:, None] - votes


def _one_way(counts: Counts, facts: Facts) -> tuple[IntArray, IntArray]:
    """Returns the same as :func:`_listed`, of pairs that have one direction only."""
    if facts.one_way is None or facts.one_way_size is None:
        none = np.zeros((len(counts.label), 1), dtype=np.int64)
        return none, none
    own = np.take_along_axis(facts.one_way, counts.label[:, None], axis=1)
    return own, facts.one_way_size[:, None] - facts.one_way


def _absent(counts: Counts, absent: int) -> tuple[BoolArray, BoolArray]:
    """Returns whether empty groups vote for each target's label, ``[n, 1]``, and for which class, ``[1, C]``."""
    classes = np.arange(counts.margin.shape[1])
    return (counts.label == absent)[:, None], (classes == absent)[None, :]
