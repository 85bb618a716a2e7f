"""Votes range by range: those of some groups at a time, and how ranges are put together.

The votes do not depend on how groups are cut into ranges. ``merge_ranges`` refuses a range that is missing or repeated.
``RangeVotes`` holds numpy arrays only and can be sent or stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.votes import ABSTAIN, BoolArray, IntArray, Votes
from agnncert.divisions.union import DisjointUnion
from agnncert.engine import fast
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.features import Features
from agnncert.engine.kept_arrays import KeptArrays
from agnncert.engine.reach import ReachTable, SmallComponents, reach_of_graphs, reach_of_nodes, small_components
from agnncert.engine.rounding import Predictions
from agnncert.engine.union import SubgraphUnion
from agnncert.progress import ReportProgress


@dataclass(frozen=True)
class RangeVotes:
    """The listed votes of a range of groups, group after group.

    Attributes:
        groups: The groups.
        size: Number of listed votes of each group, shape ``[len(groups)]``.
        owner: Target of each vote, shape ``[m]``.
        reached: Whether a change can reach the vote through an edge, shape ``[m]``; ``None`` if that is so of all.
        vote: The class voted for, shape ``[m]``, int8 if all classes fit; ``None`` before the model is called.
        stable: Whether the vote is beyond numerical doubt, shape ``[m]``; ``None`` before the model is called.
        small: Edge-centric, node task: the small components, from which reach tables are made.
        reach: Edge-centric, graph task: in how many subgraphs each node has an edge, shape ``[num_nodes]``.
    """

    groups: range
    size: IntArray
    owner: npt.NDArray[np.int32]
    reached: BoolArray | None = None
    vote: npt.NDArray[np.int8] | npt.NDArray[np.int16] | None = None
    stable: BoolArray | None = None
    small: SmallComponents | None = None
    reach: npt.NDArray[np.int32] | None = None

    def kept_in(self, of_votes: KeptArrays, of_reach: KeptArrays) -> "RangeVotes":
        """Returns the same votes, copied into blocks of memory that hold nothing else.

        Args:
            of_votes: Blocks for what the votes consist of.
            of_reach: Blocks for what reach tables are made from. It stays longer.
        """
        names = ("size", "owner", "reached", "vote", "stable")
        arrays = {name: getattr(self, name) for name in names}
        copies: dict[str, Any] = {name: of_votes.copy(array) for name, array in arrays.items() if array is not None}
        if self.small is not None:
            copies["small"] = SmallComponents(of_reach.copy(self.small.size), of_reach.copy(self.small.node))
        if self.reach is not None:
            copies["reach"] = of_reach.copy(self.reach)
        return replace(self, **copies)


def compute_range_votes(
    bound_model: ModelAdapter,
    edges_by_group: EdgesByGroup,
    groups: range,
    features: Features,
    tolerance: float | None = None,
    memory_limit: int | None = None,
    *,
    report_progress: ReportProgress | None = None,
) -> RangeVotes:
    """Computes the votes of a range of groups.

    Args:
        bound_model: The model, bound to the graph.
        edges_by_group: The graph's edges by group, and the targets.
        groups: Which groups.
        features: Features of the graph in the model's type. All ranges share them, so that they are projected once.
        tolerance: As in ``compute_votes``.
        memory_limit: Bytes that one chunk may take, about. By default chunks fit the processor's cache.
        report_progress: Called with the fraction of the work that is done.
    """
    union = edges_by_group.union(groups)
    listing = _list_votes(edges_by_group, groups, union)
    subgraphs = SubgraphUnion(edges_by_group.graph, union, features.sparse, report_progress)
    predictions = fast.union_votes(bound_model, subgraphs, features, tolerance, memory_limit)
    vote = _narrow(predictions.vote[listing.voter], bound_model.num_classes)
    return replace(listing.votes, vote=vote, stable=predictions.stable[listing.voter])


def _narrow(vote: npt.NDArray[np.int16], num_classes: int) -> npt.NDArray[np.int8] | npt.NDArray[np.int16]:
    """Returns votes as int8 if that holds every class and ``ABSTAIN``, so that none of them can overflow."""
    fits = num_classes - 1 <= np.iinfo(np.int8).max
    return vote.astype(np.int8) if fits else vote


def list_range_votes(edges_by_group: EdgesByGroup, groups: range) -> RangeVotes:
    """Lists the votes of a range of groups without calling the model.

    For each group it says which targets have a vote there that may differ from that of an empty group, and whether a
    change can reach it through an edge. Classes are left open.
    """
    return _list_votes(edges_by_group, groups, edges_by_group.union(groups)).votes


@dataclass(frozen=True)
class _Listing:
    """The votes of a range of groups before the model is called.

    Attributes:
        votes: The votes, without classes.
        voter: Copy whose class each vote is; in the graph task the number of the subgraph in the union.
    """

    votes: RangeVotes
    voter: IntArray


def _list_votes(edges_by_group: EdgesByGroup, groups: range, union: DisjointUnion) -> _Listing:
    """Lists the votes of a range of groups, given the union of its subgraphs."""
    if edges_by_group.on_graphs:
        return _list_votes_of_graphs(edges_by_group, groups, union)
    return _list_votes_of_nodes(edges_by_group, groups, union)


def _list_votes_of_nodes(edges_by_group: EdgesByGroup, groups: range, union: DisjointUnion) -> _Listing:
    division = edges_by_group.division
    target = target_of_node(edges_by_group.rows, len(edges_by_group.graph.x))[union.node.numpy()]
    voter = np.flatnonzero(union.votes.numpy() & (target >= 0))
    votes = _range_votes(
        groups, owner=target[voter], group=union.subgraph_index.numpy()[voter], reached=union.reached.numpy()[voter]
    )
    if division.divides_edges and not division.is_per_neighbour:
        votes = replace(votes, small=small_components(union))
    return _Listing(votes, voter)


def _list_votes_of_graphs(edges_by_group: EdgesByGroup, groups: range, union: DisjointUnion) -> _Listing:
    subgraph, first_copy = np.unique(union.subgraph_index.numpy(), return_index=True)
    graph, group = np.divmod(subgraph, edges_by_group.num_groups)
    voter = np.argsort(group, kind="stable")
    votes = _range_votes(
        groups, owner=graph[voter], group=group[voter], reached=union.reached.numpy()[first_copy][voter]
    )
    if edges_by_group.division.divides_edges:
        reach = np.bincount(union.node.numpy(), minlength=len(edges_by_group.graph.x))
        votes = replace(votes, reach=reach.astype(np.int32))
    return _Listing(votes, voter)


def _range_votes(groups: range, owner: IntArray, group: IntArray, reached: BoolArray) -> RangeVotes:
    return RangeVotes(
        groups,
        size=np.bincount(group - groups.start, minlength=len(groups)),
        owner=owner.astype(np.int32),
        reached=None if reached.all() else reached,
    )


def target_of_node(rows: IntArray, num_nodes: int) -> npt.NDArray[np.int32]:
    """Returns the number of the target that each node is, -1 if it is none."""
    target = np.full(num_nodes, -1, dtype=np.int32)
    target[rows] = np.arange(len(rows))
    return target


def merge_ranges(
    ranges: Sequence[RangeVotes], edges_by_group: EdgesByGroup, num_classes: int = 0, default: Predictions | None = None
) -> Votes:
    """Returns the votes of all ranges, sorted by target and group; arguments are those of :func:`merged_votes`."""
    return merged_votes(ranges, edges_by_group.num_groups, len(edges_by_group.rows), num_classes, default)


def merged_votes(
    ranges: Sequence[RangeVotes],
    num_groups: int,
    num_targets: int,
    num_classes: int = 0,
    default: Predictions | None = None,
) -> Votes:
    """Returns the votes of all ranges of groups, sorted by target and group.

    Args:
        ranges: The ranges, in any order.
        num_groups: Number of groups.
        num_targets: Number of targets.
        num_classes: Number of classes.
        default: The votes of empty groups, one for each target. By default they abstain.

    Raises:
        ValueError: A group is in no range or in several, so that a vote would be missing or counted twice.
    """
    ranges = _sorted_ranges(ranges, num_groups)
    counts = np.zeros(num_targets, dtype=np.int64)
    for part in ranges:
        counts += np.bincount(part.owner, minlength=num_targets)
    votes = _without_classes(counts, num_groups, num_classes, default)
    next_position = votes.indptr[:-1].copy()
    for part in ranges:
        count = np.bincount(part.owner, minlength=num_targets)
        owner = torch.tensor(part.owner)  # a copy: arrays that come from other processes may be read-only
        order = torch.argsort(owner, stable=True).numpy()  # by target, then by group
        position = np.arange(len(order)) + np.repeat(next_position - (np.cumsum(count) - count), count)
        next_position += count
        group = np.repeat(np.arange(part.groups.start, part.groups.stop, dtype=np.int32), part.size)
        votes.group[position] = group[order]
        for name in ("reached", "vote", "stable"):
            values = getattr(part, name)
            if values is not None:
                getattr(votes, name)[position] = values[order]
    return votes


def _without_classes(counts: IntArray, num_groups: int, num_classes: int, default: Predictions | None) -> Votes:
    """Returns votes whose groups and classes are still to be filled in, given the number of votes of each target."""
    indptr = np.concatenate([[0], np.cumsum(counts)])
    total = int(indptr[-1])
    default = abstaining(len(counts)) if default is None else default
    listed = abstaining(total)
    return Votes(
        num_groups=num_groups,
        num_classes=num_classes,
        default=default.vote,
        default_stable=default.stable,
        indptr=indptr,
        group=np.empty(total, dtype=np.int32),
        vote=listed.vote,
        stable=listed.stable,
        reached=np.ones(total, dtype=bool),
    )


def abstaining(number: int) -> Predictions:
    """Returns votes for nobody, all of them stable."""
    return Predictions(np.full(number, ABSTAIN, dtype=np.int16), np.ones(number, dtype=bool))


def all_listed(num_targets: int, num_groups: int, num_classes: int = 0, votes: Predictions | None = None) -> Votes:
    """Returns votes that are all listed, as for a division without a disjoint union.

    Args:
        num_targets: Number of targets.
        num_groups: Number of groups.
        num_classes: Number of classes.
        votes: The votes, shape ``[num_targets, num_groups]``. By default all abstain.
    """
    total = num_targets * num_groups
    default = abstaining(num_targets)
    listed = abstaining(total) if votes is None else votes
    return Votes(
        num_groups=num_groups,
        num_classes=num_classes,
        default=default.vote,
        default_stable=default.stable,
        indptr=np.arange(num_targets + 1) * num_groups,
        group=np.tile(np.arange(num_groups, dtype=np.int32), num_targets),
        vote=listed.vote.reshape(-1),
        stable=listed.stable.reshape(-1),
        reached=np.ones(total, dtype=bool),
    )


def _sorted_ranges(ranges: Sequence[RangeVotes], num_groups: int) -> list[RangeVotes]:
    """Returns ranges in the order of their groups.

    Raises:
        ValueError: A group is in no range or in several.
    """
    ranges = sorted(ranges, key=lambda part: part.groups.start)
    ends = [0, *(part.groups.stop for part in ranges)]
    starts = [*(part.groups.start for part in ranges), num_groups]
    if starts != ends:
        raise ValueError(
            f"{num_groups} groups are to be merged, and there are votes of {[str(part.groups) for part in ranges]}: "
            "each group must be in one of them."
        )
    return ranges


def reach_of_ranges(ranges: Sequence[RangeVotes], edges_by_group: EdgesByGroup, votes: Votes) -> ReachTable:
    """Returns the reach tables of the targets; they are empty where the division needs none.

    Args:
        ranges: The ranges, in any order.
        edges_by_group: The graph's edges by group, and the targets.
        votes: The merged votes.
    """
    division = edges_by_group.division
    num_targets = len(edges_by_group.rows)
    if not division.divides_edges:
        return no_reach(num_targets)
    if division.is_per_neighbour and not edges_by_group.on_graphs:
        return no_reach(num_targets)  # a node reaches one vote of a target, its own
    ranges = _sorted_ranges(ranges, edges_by_group.num_groups)
    cap = np.diff(votes.indptr)
    if edges_by_group.on_graphs:
        reach = np.sum([part.reach for part in ranges if part.reach is not None], axis=0)
        return reach_of_graphs(reach, edges_by_group.graph.graph_of_node.numpy(), cap)
    small = [part.small for part in ranges if part.small is not None]
    return reach_of_nodes(small, target_of_node(edges_by_group.rows, len(edges_by_group.graph.x)), cap)


def no_reach(num_targets: int) -> ReachTable:
    """Returns empty reach tables."""
    return ReachTable(np.zeros(num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))
