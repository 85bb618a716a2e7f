"""The theorems where every neighbour, pair or node has its own group: ``num_groups=math.inf``. Pure functions.

A target has one vote for each neighbour that sends it messages (node-centric), or for each of its pairs
(edge-centric); a graph one for each node, or each pair. The vote is a function of that neighbour or pair and the
target alone. So an attack *adds* votes, *removes* them, or *alters* them, and these weigh differently: what is added
gains a rival 1, what is removed gains it 1 if it was for the winner, and only what is altered can gain it 2.

All other groups are empty. They abstain, or cast one class, of which there are infinitely many votes: then a vote
that comes to be is one of that class less. ``recount`` does all of this a second time.
"""

from collections.abc import Callable
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


def per_neighbour_node(attack: Amounts, facts: Facts) -> Touches:
    """In the group of u only u speaks, so v's vote there is a function of v, u and the arcs from u to v.

    A new neighbour adds a vote, a lost one (its pair separated, or the node deleted) removes one. Other features of
    u, and another value or number of copies of the pair, alter one. Nothing else touches v: edges among other nodes,
    and injected nodes that are not joined to v, are not in it. Self-loops are dropped.
    """
    new = attack.joined_nodes + attack.add_edges
    altered = attack.change_edges + attack.change_features
    return _touches(facts, attack, new, altered + attack.delete_edges + attack.delete_nodes, altered)


def per_pair_node(attack: Amounts, facts: Facts) -> Touches:
    """As :func:`per_neighbour_node`, but both directions of a pair are in its group.

    So a second direction, which counts as an added edge, alters the vote of a pair that had one.
    """
    plain = per_neighbour_node(attack, facts)
    return _touches(facts, attack, plain.new, plain.touched, plain.altered, attack.add_edges)


def per_neighbour_graph(attack: Amounts, facts: Facts) -> Touches:
    """The group of a node holds that node and no edge: edges touch nothing."""
    altered = attack.change_features
    return _touches(facts, attack, attack.inject_nodes, altered + attack.delete_nodes, altered)


def per_pair_graph(attack: Amounts, facts: Facts) -> Touches:
    """The group of a pair holds its two ends; a node is in as many as it has neighbours."""
    altered = attack.change_edges + facts.reached_by(attack.change_features)
    touched = attack.change_edges + attack.delete_edges + facts.reached_by(attack.nodes)
    return _touches(facts, attack, attack.injected_edges + attack.add_edges, touched, altered, attack.add_edges)


def _touches(
    facts: Facts,
    attack: Amounts,
    new: FloatArray,
    touched: FloatArray,
    altered: FloatArray,
    turned: FloatArray | None = None,
) -> Touches:
    none = np.zeros(facts.num_reached.shape)
    turned = none if turned is None else none + turned
    return Touches(none + new, none + touched, none + altered, turned, np.full(none.shape, not attack.target_features))


PER_NEIGHBOUR: dict[str, Callable[[Amounts, Facts], Touches]] = {
    "per-neighbour/node": per_neighbour_node,
    "per-pair/node": per_pair_node,
    "per-neighbour/graph": per_neighbour_graph,
    "per-pair/graph": per_pair_graph,
}


def withstands_touches(tally: Counts, touches: Touches, facts: Facts) -> BoolArray:
    """Whether each target keeps its label whatever an attack within ``touches`` does, shape ``[n]``.

    For every rival k: margin >= (winner's votes that are touched) + (others that become k's) + (what is new).
    """
    safe = tally.margin >= _most_gain(tally, touches, facts)
    return touches.covered & (safe | tally.is_label).all(axis=1)


def _most_gain(tally: Counts, touches: Touches, facts: Facts) -> FloatArray:
    """The most by which an attack can close each margin, shape ``[n, C]``."""
    own, others = _listed(tally)
    absent_is_label, absent_is_rival = _absent(tally, facts.absent)
    touched, altered, new, turned = (
        part[:, None] for part in (touches.touched, touches.altered, touches.new, touches.turned)
    )
    # A removed vote is one of the class that empty groups cast: no loss to the winner if that is the winner, and a
    # gain to the rival if that is the rival.
    lost_by_label = np.minimum(np.where(absent_is_label, altered, touched), own)
    won_by_rival = np.minimum(np.where(absent_is_rival, touched, altered), others)
    added = times(new, np.asarray(1.0 + absent_is_label - absent_is_rival, dtype=np.float64))
    # A turned pair gains one more than a new one if it takes a vote from the winner that nothing else touches; where
    # new ones gain nothing because they are the rival's already, so does any vote that becomes the rival's.
    one_way_own, one_way_others = (np.minimum(turned, votes) for votes in _one_way(tally, facts))
    turning = np.where(absent_is_label, 0, np.minimum(one_way_own, own - np.minimum(touched, own)))
    untouched = others - np.minimum(touched, others)
    turning = turning + np.where(absent_is_rival, np.minimum(one_way_others, untouched), 0)
    return np.asarray(lost_by_label + won_by_rival + added + turning, dtype=np.float64)


def per_neighbour_radius(tally: Counts, facts: Facts) -> IntArray:
    """How many changes, of any kinds, each target is certified against, shape ``[n]``; -1 if not even none.

    Of x changes all gain a rival 1, by new votes if not otherwise, and those that alter votes of the winner 2.
    """
    return _largest(tally, facts, _listed(tally)[0])


def structure_radius(tally: Counts, facts: Facts) -> IntArray:
    """Certified number of added and deleted edges and nodes, if nothing else changes, shape ``[n]``.

    Of x such changes all gain a rival 1, and those that give a pair of the winner's a second direction 2.
    """
    return _largest(tally, facts, _one_way(tally, facts)[0])


def _largest(tally: Counts, facts: Facts, twos: IntArray) -> IntArray:
    """The largest x for which x + min(x, twos) closes no margin, shape ``[n]``.

    Where empty groups cast the label, every new vote gains 2; where they cast the rival, new ones gain nothing, and
    removed and altered ones gain alike.
    """
    own, others = _listed(tally)
    absent_is_label, absent_is_rival = _absent(tally, facts.absent)
    margin = tally.margin
    usual = np.maximum(margin // 2, margin - twos)
    touching = np.where(
        margin >= own + others, tally.num_groups, np.maximum(margin // 2, margin - np.minimum(own, others))
    )
    radius = np.where(absent_is_label, margin // 2, np.where(absent_is_rival, touching, usual))
    return np.asarray(np.maximum(np.where(tally.is_label, tally.num_groups, radius).min(axis=1), -1))


def per_neighbour_gain(tally: Counts, absent: int, turned: IntArray, number: int) -> IntArray:
    """The most by which ``number`` changes close the margin of each rival, shape ``[n, C]``; see :func:`_largest`.

    Args:
        tally: The votes.
        absent: The class that empty groups cast, -1 if they abstain.
        turned: Votes that one change can turn from one class to another, per class, shape ``[n, C]``.
        number: How many changes.
    """
    own, others = _listed(tally)
    absent_is_label, absent_is_rival = _absent(tally, absent)
    twos = np.take_along_axis(turned, tally.label[:, None], axis=1)
    touching = np.minimum(number, own) + np.minimum(number, others)
    usual = np.where(absent_is_rival, touching, number + np.minimum(number, twos))
    return np.asarray(np.where(absent_is_label, 2 * number, usual))


def touches_needed(tally: Counts, touches: Touches, facts: Facts) -> FloatArray:
    """The fewest changes at each target (new, lost and altered votes) that can break it, ``inf`` if none do, ``[n]``.

    Each gains a rival 1, and 2 if it alters a vote of the winner (or turns one, or whatever empty groups make of it).
    """
    own, _ = _listed(tally)
    absent_is_label, absent_is_rival = _absent(tally, facts.absent)
    altered, touched, new, turned = (
        part[:, None] for part in (touches.altered, touches.touched, touches.new, touches.turned)
    )
    one_way_own, _ = _one_way(tally, facts)
    twos = np.minimum(np.where(absent_is_rival, touched, altered) + np.minimum(turned, one_way_own), own)
    twos = np.where(absent_is_label, twos + new, twos)
    missing = np.maximum(tally.margin + 1, 0)
    half = np.ceil(missing / 2)
    needed = np.where(half <= twos, half, missing - np.where(np.isfinite(twos), twos, 0))
    breaks = ~tally.is_label & (tally.margin < _most_gain(tally, touches, facts))
    needed = np.where(breaks, needed, np.inf).min(axis=1)
    return np.asarray(np.where(touches.covered, needed, 0.0))


def new_needed(tally: Counts, touches: Touches, facts: Facts) -> FloatArray:
    """The fewest new neighbours with which each target breaks if all else is spent on it; ``inf`` if none do."""

    def holds(added: FloatArray) -> BoolArray:
        fewer = replace(touches, new=np.minimum(touches.new, added), turned=np.minimum(touches.turned, added))
        return withstands_touches(tally, fewer, facts)

    return largest_amount(holds, len(tally.label)) + 1


def _listed(tally: Counts) -> tuple[IntArray, IntArray]:
    """Stable votes for the label, and for others than each class, shapes ``[n, 1]`` and ``[n, C]``."""
    counts = tally.votes[REACHED]
    return np.take_along_axis(counts, tally.label[:, None], axis=1), tally.size[REACHED][:, None] - counts


def _one_way(tally: Counts, facts: Facts) -> tuple[IntArray, IntArray]:
    """As :func:`_listed`, of pairs that have one direction only."""
    if facts.one_way is None or facts.one_way_size is None:
        return np.zeros((len(tally.label), 1), dtype=np.int64), np.zeros((len(tally.label), 1), dtype=np.int64)
    own = np.take_along_axis(facts.one_way, tally.label[:, None], axis=1)
    return own, facts.one_way_size[:, None] - facts.one_way


def _absent(tally: Counts, absent: int) -> tuple[BoolArray, BoolArray]:
    """Whether empty groups cast each target's label, ``[n, 1]``, and which class they cast, ``[1, C]``."""
    classes = np.arange(tally.margin.shape[1])
    return (tally.label == absent)[:, None], (classes == absent)[None, :]
