"""A share is what the groups of one range cast. Shares are merged into votes, in whatever order they come in.

Casting is independent per group, so a vote can be made of ranges of groups, one after the other in little memory or on
many machines::

    shuffle, features = Shuffle(graph, division, rows), fast.features_of(call, graph)
    shares = [cast_share(call, shuffle, groups, features, tolerance) for groups in shuffle.ranges(memory_limit)]
    listing = merged(shares, shuffle)
    tables = covers(shares, shuffle, listing)

Every range of groups, however the groups are cut into ranges, gives the same ballots; a share that is missing, or there
twice, is refused when they are merged. Shares hold numpy arrays only and can be sent or stored as they are.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.divisions import EdgeCentric, Pieces, has_own_groups, is_graph_task
from agnncert.proof.ballots import BoolArray, IntArray
from agnncert.voting import cover, fast
from agnncert.voting.call import Caller
from agnncert.voting.cover import Cover, SmallComponents
from agnncert.voting.lazy_rows import Features
from agnncert.voting.shuffle import Shuffle

Int32Array = npt.NDArray[np.int32]

LARGE_GROUP = 2**12  # ballots of a group that are worth a step of their own
TARGETS_AT_ONCE = 2**15


@dataclass(frozen=True)
class Share:
    """The listed ballots of some groups, by group.

    Attributes:
        groups: The groups.
        size: Number of listed ballots of each group, shape ``[len(groups)]``.
        owner: Target of each ballot, shape ``[m]``.
        reached: Whether a change can reach it through an edge, shape ``[m]``; ``None`` if that is so of all.
        ballot: The class voted for, shape ``[m]``; ``None`` as long as nobody was asked.
        stable: Whether it is beyond numerical doubt, shape ``[m]``; likewise.
        small: Edge-centric, node task: the small components, from which cover tables are made.
        reach: Edge-centric, graph task: in how many subgraphs each node has an edge, shape ``[num_nodes]``.
    """

    groups: range
    size: IntArray
    owner: Int32Array
    reached: BoolArray | None = None
    ballot: npt.NDArray[np.int16] | None = None
    stable: BoolArray | None = None
    small: SmallComponents | None = None
    reach: Int32Array | None = None


@dataclass(frozen=True)
class Listing:
    """Which ballots of which target are stored one by one, sorted by target and group, and those that were cast."""

    indptr: IntArray
    group: Int32Array
    reached: BoolArray
    ballot: npt.NDArray[np.int16] | None = None
    stable: BoolArray | None = None

    @property
    def owner(self) -> IntArray:
        """The target of each."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


def cast_share(
    call: Caller,
    shuffle: Shuffle,
    groups: range,
    features: Features,
    tolerance: float | None = None,
    memory_limit: int | None = None,
    tell: fast.Tell | None = None,
) -> Share:
    """Casts the ballots of a range of groups.

    Args:
        call: The model, bound to the graph.
        shuffle: The graph's edges by group, and the targets.
        groups: Which groups.
        features: From ``fast.features_of``; to be shared by all ranges, so that they are projected once.
        tolerance: As in ``cast``.
        memory_limit: Bytes that one chunk may take, about.
        tell: Told which share of the work is done.
    """
    pieces = shuffle.pieces(groups)
    share, copy = _found(shuffle, groups, pieces)
    layout = fast.Plan(shuffle.graph, pieces, features.sparse, tell)
    ballots, stable = fast.ballots(call, layout, features, tolerance, memory_limit)
    return replace(share, ballot=ballots[copy], stable=stable[copy])


def empty_share(shuffle: Shuffle, groups: range) -> Share:
    """The share of some groups before anybody votes: who has a ballot of his own, and who reaches whom."""
    return _found(shuffle, groups, shuffle.pieces(groups))[0]


def _found(shuffle: Shuffle, groups: range, pieces: Pieces) -> tuple[Share, IntArray]:
    """A share without ballots, and the copy (or cell) that casts each of them."""
    graph, division, num_groups = shuffle.graph, shuffle.division, shuffle.num_groups
    on_graphs = is_graph_task(graph)
    if on_graphs:
        cell, first = np.unique(pieces.cell.numpy(), return_index=True)
        owner, group = cell // num_groups, cell % num_groups
        copy = np.argsort(group, kind="stable")
        owner, group, reached = owner[copy], group[copy], pieces.reached.numpy()[first][copy]
    else:
        owner = targets_of(shuffle.rows, graph.num_nodes)[pieces.node.numpy()]
        copy = np.flatnonzero(pieces.votes.numpy() & (owner >= 0))
        owner, group, reached = owner[copy], pieces.cell.numpy()[copy], pieces.reached.numpy()[copy]
    small, reach = None, None
    if isinstance(division, EdgeCentric):
        if on_graphs:
            reach = np.bincount(pieces.node.numpy(), minlength=graph.num_nodes).astype(np.int32)
        elif not has_own_groups(division):
            small = cover.small_components(pieces)
    share = Share(
        groups,
        np.bincount(group - groups.start, minlength=len(groups)),
        owner.astype(np.int32),
        None if reached.all() else reached,
        small=small,
        reach=reach,
    )
    return share, copy


def targets_of(rows: IntArray, num_nodes: int) -> Int32Array:
    """Which target each node is, -1 if it is none."""
    target_of = np.full(num_nodes, -1, dtype=np.int32)
    target_of[rows] = np.arange(len(rows))
    return target_of


def merged(shares: Sequence[Share], shuffle: Shuffle) -> Listing:
    """All ballots, sorted by target and group.

    Raises:
        ValueError: A group is in no share or in several, so that a ballot would be missing or counted twice.
    """
    shares, num_targets = _in_order(shares, shuffle.num_groups), len(shuffle.rows)
    voted = all(share.ballot is not None for share in shares)
    counts = np.zeros(num_targets, dtype=np.int64)
    for share in shares:
        counts += np.bincount(share.owner, minlength=num_targets)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    total, place = int(indptr[-1]), indptr[:-1].copy()
    listing = Listing(
        indptr,
        np.empty(total, dtype=np.int32),
        np.ones(total, dtype=bool),
        np.empty(total, dtype=np.int16) if voted else None,
        np.empty(total, dtype=bool) if voted else None,
    )
    pieces = [piece for share in shares for piece in _pieces(share)]
    blocks = _blocks(pieces, num_targets)

    def fill(parts: tuple[slice, ...]) -> None:
        for piece, part in zip(pieces, parts, strict=True):
            here = _places(piece, part, place)
            groups = np.arange(piece.groups.start, piece.groups.stop, dtype=np.int32)
            listing.group[here] = groups[0] if len(groups) == 1 else np.repeat(groups, piece.size)
            for name in ("reached", "ballot", "stable"):
                values, into = getattr(piece, name), getattr(listing, name)
                if values is not None and into is not None:
                    into[here] = values[part]

    if len(blocks) == 1:
        fill(blocks[0])
    else:  # each writes to places of its own
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            list(pool.map(fill, blocks))
    return listing


def _pieces(share: Share) -> list[Share]:
    """The share group by group, if its groups are large, and else as it is."""
    if len(share.groups) <= 1 or len(share.owner) < LARGE_GROUP * len(share.groups):
        return [share]
    named = {name: getattr(share, name) for name in ("owner", "reached", "ballot", "stable")}
    pieces = []
    for k, ends in enumerate(pairwise([0, *np.cumsum(share.size).tolist()])):
        own: dict[str, Any] = {name: None if array is None else array[slice(*ends)] for name, array in named.items()}
        pieces.append(replace(share, groups=share.groups[k : k + 1], size=share.size[k : k + 1], **own))
    return pieces


def _blocks(pieces: Sequence[Share], num_targets: int) -> list[tuple[slice, ...]]:
    """Runs of targets, as the part of each piece that is theirs: few enough for their ballots to stay in the cache."""
    alone = all(len(piece.groups) == 1 and (piece.owner[1:] > piece.owner[:-1]).all() for piece in pieces)
    if not alone:
        return [(slice(None),) * len(pieces)]
    ends = [*range(0, num_targets, TARGETS_AT_ONCE), num_targets]
    cuts = [[slice(*cut) for cut in pairwise(np.searchsorted(piece.owner, ends).tolist())] for piece in pieces]
    return list(zip(*cuts, strict=True))


def _in_order(shares: Sequence[Share], num_groups: int) -> list[Share]:
    shares = sorted(shares, key=lambda share: share.groups.start)
    ends = [0, *(share.groups.stop for share in shares)]
    starts = [*(share.groups.start for share in shares), num_groups]
    if starts != ends:
        raise ValueError(
            f"{num_groups} groups are to be merged, and there are shares of {[str(share.groups) for share in shares]}: "
            "each group must be in one of them."
        )
    return shares


def _places(share: Share, part: slice, place: IntArray) -> IntArray:
    """Where each ballot of a part of a share goes; ``place``, the next free one of each target, moves on."""
    owner = share.owner[part]
    if len(share.groups) == 1:  # a target votes once in a group
        here = place[owner]
        place[owner] = here + 1
        return here
    order = np.argsort(owner, kind="stable")
    number = np.bincount(owner, minlength=len(place))
    here = np.empty(len(owner), dtype=np.int64)
    here[order] = place[owner[order]] + np.arange(len(owner)) - (np.cumsum(number) - number)[owner[order]]
    place += number
    return here


def without_ballots(share: Share) -> Share:
    """What is left to do with a share once it is merged: all that cover tables need of it."""
    return replace(share, owner=share.owner[:0].copy(), reached=None, ballot=None, stable=None)


def covers(shares: Sequence[Share], shuffle: Shuffle, listing: Listing) -> Cover:
    """The cover tables of the targets; empty where the division needs none."""
    graph, division, rows = shuffle.graph, shuffle.division, shuffle.rows
    if not isinstance(division, EdgeCentric) or (has_own_groups(division) and not is_graph_task(graph)):
        return no_cover(len(rows))  # … or a node reaches one ballot of a target, its own
    shares, cap = _in_order(shares, shuffle.num_groups), np.diff(listing.indptr)
    if is_graph_task(graph):
        reach = np.sum([share.reach for share in shares if share.reach is not None], axis=0)
        return cover.cover_of_graphs(reach, graph.batch.numpy(), cap)
    small = [share.small for share in shares if share.small is not None]
    return cover.cover_of_nodes(small, targets_of(rows, graph.num_nodes), cap)


def no_cover(num_targets: int) -> Cover:
    """Empty tables."""
    return np.zeros(num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
