"""Votes range by range: those of some groups at a time, and how they are put together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.votes import ABSTAIN, BoolArray, IntArray, Votes
from agnncert.divisions.base import DisjointUnion
from agnncert.engine import fast
from agnncert.engine import reach as reach_tables
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.features import Features
from agnncert.engine.reach import ReachTable, SmallComponents
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
        reached: Whether a change can reach it through an edge, shape ``[m]``; ``None`` if that is so of all.
        vote: The class voted for, shape ``[m]``; ``None`` before the model is called.
        stable: Whether it is beyond numerical doubt, shape ``[m]``; likewise ``None``.
        small: Edge-centric, node task: the small components, from which reach tables are made.
        reach: Edge-centric, graph task: in how many subgraphs each node has an edge, shape ``[num_nodes]``.
    """

    groups: range
    size: IntArray
    owner: npt.NDArray[np.int32]
    reached: BoolArray | None = None
    vote: npt.NDArray[np.int16] | None = None
    stable: BoolArray | None = None
    small: SmallComponents | None = None
    reach: npt.NDArray[np.int32] | None = None


def compute_range_votes(
    call: ModelAdapter,
    edges_by_group: EdgesByGroup,
    groups: range,
    features: Features,
    tolerance: float | None = None,
    memory_limit: int | None = None,
    report_progress: ReportProgress | None = None,
) -> RangeVotes:
    """Casts the votes of a range of groups.

    Args:
        call: The model, bound to the graph.
        edges_by_group: The graph's edges by group, and the targets.
        groups: Which groups.
        features: Features of the graph in the model's type; shared by all ranges, so that they are projected once.
        tolerance: As in ``compute_votes``.
        memory_limit: Bytes that one chunk may take, about.
        report_progress: Called with the fraction of the work that is done.
    """
    union = edges_by_group.union(groups)
    listed, copy = _listed_votes(edges_by_group, groups, union)
    layout = SubgraphUnion(edges_by_group.graph, union, features.sparse, report_progress)
    vote, stable = fast.union_votes(call, layout, features, tolerance, memory_limit)
    return replace(listed, vote=vote[copy], stable=stable[copy])


def list_range_votes(edges_by_group: EdgesByGroup, groups: range) -> RangeVotes:
    """The votes of a range of groups before the model is called: which targets have one, and who reaches whom."""
    return _listed_votes(edges_by_group, groups, edges_by_group.union(groups))[0]


def _listed_votes(edges_by_group: EdgesByGroup, groups: range, union: DisjointUnion) -> tuple[RangeVotes, IntArray]:
    """The votes of a range before the model is called, and the copy (graph task: subgraph) that casts each of them."""
    num_nodes, reach, small = len(edges_by_group.graph.x), None, None
    edge_centric, own_groups = (
        edges_by_group.division.family == "edge-centric",
        edges_by_group.division.is_per_neighbour,
    )
    if edges_by_group.on_graphs:
        cell, first = np.unique(union.subgraph_index.numpy(), return_index=True)
        owner, group = np.divmod(cell, edges_by_group.num_groups)
        copy = np.argsort(group, kind="stable")
        owner, group, reached = owner[copy], group[copy], union.reached.numpy()[first][copy]
        reach = np.bincount(union.node.numpy(), minlength=num_nodes).astype(np.int32) if edge_centric else None
    else:
        owner = target_of_node(edges_by_group.rows, num_nodes)[union.node.numpy()]
        copy = np.flatnonzero(union.votes.numpy() & (owner >= 0))
        owner, group, reached = owner[copy], union.subgraph_index.numpy()[copy], union.reached.numpy()[copy]
        small = reach_tables.small_components(union) if edge_centric and not own_groups else None
    size = np.bincount(group - groups.start, minlength=len(groups))
    shown = None if reached.all() else reached
    return RangeVotes(groups, size, owner.astype(np.int32), shown, small=small, reach=reach), copy


def target_of_node(rows: IntArray, num_nodes: int) -> npt.NDArray[np.int32]:
    """Which target each node is, -1 if it is none."""
    target_of = np.full(num_nodes, -1, dtype=np.int32)
    target_of[rows] = np.arange(len(rows))
    return target_of


def merge_ranges(
    parts: Sequence[RangeVotes], edges_by_group: EdgesByGroup, num_classes: int = 0, default: Predictions | None = None
) -> Votes:
    """The votes of all ranges, sorted by target and group.

    Args:
        parts: The ranges, in any order.
        edges_by_group: The graph's edges by group, and the targets.
        num_classes: Number of classes.
        default: What empty groups cast, and whether that is stable. Defaults to abstaining.

    Raises:
        ValueError: A group is in no range or in several, so that a vote would be missing or counted twice.
    """
    parts, num_targets = _sorted_ranges(parts, edges_by_group.num_groups), len(edges_by_group.rows)
    counts = np.zeros(num_targets, dtype=np.int64)
    for part in parts:
        counts += np.bincount(part.owner, minlength=num_targets)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    total, place = int(indptr[-1]), indptr[:-1].copy()  # the next free place of each target
    votes = Votes(
        edges_by_group.num_groups,
        num_classes,
        *(abstaining(num_targets) if default is None else default),
        indptr,
        np.empty(total, dtype=np.int32),
        *abstaining(total),
        np.ones(total, dtype=bool),
    )
    for part in parts:
        count = np.bincount(part.owner, minlength=num_targets)
        owner = torch.tensor(part.owner)  # a copy: arrays that come from other processes may be read-only
        order = torch.argsort(owner, stable=True).numpy()  # by target, then by group
        here = np.arange(len(order)) + np.repeat(place - (np.cumsum(count) - count), count)
        place += count
        votes.group[here] = np.repeat(np.arange(part.groups.start, part.groups.stop, dtype=np.int32), part.size)[order]
        for name in ("reached", "vote", "stable"):
            values = getattr(part, name)
            if values is not None:
                getattr(votes, name)[here] = values[order]
    return votes


def abstaining(number: int) -> Predictions:
    """Votes for nobody, beyond doubt."""
    return np.full(number, ABSTAIN, dtype=np.int16), np.ones(number, dtype=bool)


def _sorted_ranges(parts: Sequence[RangeVotes], num_groups: int) -> list[RangeVotes]:
    parts = sorted(parts, key=lambda part: part.groups.start)
    ends = [0, *(part.groups.stop for part in parts)]
    starts = [*(part.groups.start for part in parts), num_groups]
    if starts != ends:
        raise ValueError(
            f"{num_groups} groups are to be merged, and there are votes of {[str(part.groups) for part in parts]}: "
            "each group must be in one of them."
        )
    return parts


def reach_of_ranges(parts: Sequence[RangeVotes], edges_by_group: EdgesByGroup, votes: Votes) -> ReachTable:
    """The reach tables of the targets; empty where the division needs none."""
    division, rows = edges_by_group.division, edges_by_group.rows
    if division.family != "edge-centric" or (division.is_per_neighbour and not edges_by_group.on_graphs):
        return no_reach(len(rows))  # … or a node reaches one vote of a target, its own
    parts, cap = _sorted_ranges(parts, edges_by_group.num_groups), np.diff(votes.indptr)
    if edges_by_group.on_graphs:
        reach = np.sum([part.reach for part in parts if part.reach is not None], axis=0)
        return reach_tables.reach_of_graphs(reach, edges_by_group.graph.graph_of_node.numpy(), cap)
    small = [part.small for part in parts if part.small is not None]
    return reach_tables.reach_of_nodes(small, target_of_node(rows, len(edges_by_group.graph.x)), cap)


def no_reach(num_targets: int) -> ReachTable:
    """Empty tables."""
    return np.zeros(num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
