"""Casting ballots with either engine, and storing them as ``Votes``: a default ballot and listed exceptions."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.divisions import Division, EdgeCentric, Pieces, has_own_groups, is_graph_task, num_groups_in
from agnncert.errors import ModelContractError, SettingsError, did_you_mean
from agnncert.proof.ballots import ABSTAIN, BoolArray, IntArray, Votes
from agnncert.voting import fast, naive
from agnncert.voting.call import Ballots, Caller
from agnncert.voting.cover import Cover, graph_cover, node_cover
from agnncert.voting.pair_facts import pair_facts

EngineName = Literal["fast", "naive"]
ENGINES: tuple[EngineName, ...] = ("fast", "naive")


@dataclass(frozen=True)
class Listing:
    """Which ballots of which target are stored one by one, sorted by target and group."""

    owner: IntArray  # the target
    group: IntArray
    reached: BoolArray
    copy: IntArray  # node task: position of the copy in the union; graph task: number of the cell


@torch.no_grad()
def cast(
    call: Caller,
    graph: Data,
    division: Division,
    rows: IntArray,
    engine: EngineName = "fast",
    tolerance: float | None = None,
    memory_limit: int | None = None,
    layout: fast.Plan | None = None,
    tell: naive.Tell | None = None,
) -> tuple[Votes, Cover]:
    """Votes of the targets, and their cover tables (empty where the division needs none).

    Args:
        call: The model, bound to the graph.
        graph: A canonical graph; in the graph task the joined targets.
        division: How to divide it.
        rows: Node task: rows of the targets. Graph task: all graphs of ``graph``, in order.
        engine: "fast" or "naive"; the ballots are the same.
        tolerance: Relative distance that two computations of the same logits may lie apart at least; ``None`` spares
            the work of finding out which ballots are stable, where nobody asks.
        memory_limit: Bytes that one chunk of work may take, about; ``None`` chooses what is fastest.
        layout: ``fast.plan`` of the same graph, division and targets, if it has been made before.
        tell: Told now and then which share of the ballots has been cast.
    """
    if engine not in ENGINES:
        raise SettingsError(f'unknown engine "{engine}": {did_you_mean(str(engine), ENGINES)}')
    call = replace(call)  # nothing that was derived from the model before: it may have been trained since
    if not hasattr(division, "pieces"):
        return _all_listed(call, graph, division, rows, engine, tolerance, memory_limit, tell), _no_cover(len(rows))
    layout = layout or fast.plan(graph, division, None if is_graph_task(graph) else rows, call.dtype)
    listing = _listing(layout.pieces, rows, num_groups_in(division, graph), graph)
    if engine == "naive":
        default, listed = _naive_ballots(call, graph, division, rows, listing, tolerance, tell)
    else:
        layout = replace(layout, tell=tell)
        default, listed = _fast_ballots(call, layout, rows, listing, tolerance, memory_limit)
    number = num_groups_in(division, graph)
    return _votes(call, number, len(rows), listing, default, listed), _cover(layout.pieces, division, rows, graph)


def structure(graph: Data, division: Division, rows: IntArray) -> dict[str, npt.NDArray[Any]]:
    """What ``cast`` finds out about the graph alone, by the names that evidence uses; arguments as there."""
    if hasattr(division, "pieces"):
        pieces = fast.plan(graph, division, None if is_graph_task(graph) else rows).pieces
        listing = _listing(pieces, rows, num_groups_in(division, graph), graph)
        cover_ptr, cover = _cover(pieces, division, rows, graph)
    else:
        listing, (cover_ptr, cover) = _everything(len(rows), division.num_groups), _no_cover(len(rows))
    return {
        "indptr": _pointers(listing, len(rows)),
        "group": listing.group,
        "reached": listing.reached,
        "cover_ptr": cover_ptr,
        "cover": cover,
        **pair_facts(graph, division, rows, listing.owner, listing.group),
    }


def _fast_ballots(
    call: Caller, layout: fast.Plan, rows: IntArray, listing: Listing, tolerance: float | None, memory_limit: int | None
) -> tuple[Ballots, Ballots]:
    """Default ballots of the targets, and the listed ones."""
    default = _abstaining(len(rows))
    if is_graph_task(layout.graph):
        ballots, stable = fast.graph_ballots(call, layout, tolerance, memory_limit)
    else:
        edgeless, (ballots, stable) = fast.node_ballots(call, layout, rows, tolerance, memory_limit)
        if layout.pieces.blank is None:
            default = edgeless
    return default, (ballots[listing.copy], stable[listing.copy])


def _naive_ballots(
    call: Caller,
    graph: Data,
    division: Division,
    rows: IntArray,
    listing: Listing,
    tolerance: float | None,
    tell: naive.Tell | None,
) -> tuple[Ballots, Ballots]:
    """As ``_fast_ballots``; also checks that every ballot that is not listed equals the default."""
    default = _abstaining(len(rows))
    ballots, stable = _naive_table(call, graph, division, rows, tolerance, tell)
    if not is_graph_task(graph) and not getattr(division, "gate_features", False):
        vote, sure = naive.edgeless_ballots(call, graph, tolerance)
        default = vote[rows], sure[rows]
    unlisted = np.ones(ballots.shape, dtype=bool)
    unlisted[listing.owner, listing.group] = False
    differs = unlisted & (ballots != default[0][:, None]) & stable & default[1][:, None]
    if differs.any():
        target, group = np.argwhere(differs)[0]
        raise ModelContractError(
            f"target {rows[target]} votes {ballots[target, group]} in subgraph {group}, where it has no edge, but "
            f"{default[0][target]} without any edges: the model looks beyond the edges of a node, and nothing can be "
            "proved about it."
        )
    return default, (ballots[listing.owner, listing.group], stable[listing.owner, listing.group])


def _naive_table(
    call: Caller, graph: Data, division: Division, rows: IntArray, tolerance: float | None, tell: naive.Tell | None
) -> Ballots:
    table = naive.graph_table if is_graph_task(graph) else naive.node_table
    return table(call, graph, division, rows, tolerance, tell)


def _listing(pieces: Pieces, rows: IntArray, num_groups: int, graph: Data) -> Listing:
    if is_graph_task(graph):
        cell, first = np.unique(pieces.cell.numpy(), return_index=True)
        copies = np.arange(len(cell))
        return Listing(cell // num_groups, cell % num_groups, pieces.reached.numpy()[first], copies)
    target_of = np.full(graph.num_nodes, -1, dtype=np.int64)
    target_of[rows] = np.arange(len(rows))
    owner = target_of[pieces.node.numpy()]
    copy = np.flatnonzero(pieces.votes.numpy() & (owner >= 0))
    copy = copy[np.argsort(owner[copy], kind="stable")]  # copies are ordered by group already
    return Listing(owner[copy], pieces.cell.numpy()[copy], pieces.reached.numpy()[copy], copy)


def _votes(
    call: Caller, num_groups: int, num_targets: int, listing: Listing, default: Ballots, listed: Ballots
) -> Votes:
    return Votes(
        num_groups=num_groups,
        num_classes=call.num_classes,
        default=default[0],
        default_stable=default[1],
        indptr=_pointers(listing, num_targets),
        group=listing.group.astype(np.int32),
        ballot=listed[0],
        stable=listed[1],
        reached=listing.reached,
    )


def _pointers(listing: Listing, num_targets: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(listing.owner, minlength=num_targets))]).astype(np.int64)


def _all_listed(
    call: Caller,
    graph: Data,
    division: Division,
    rows: IntArray,
    engine: EngineName,
    tolerance: float | None,
    memory_limit: int | None,
    tell: naive.Tell | None,
) -> Votes:
    """A user's own division: nothing is known of it but its subgraphs, so every ballot is listed."""
    if engine == "fast":
        ballots, stable = fast.custom_table(call, graph, division, rows, tolerance, memory_limit)
    else:
        ballots, stable = _naive_table(call, graph, division, rows, tolerance, tell)
    listing = _everything(*ballots.shape)
    flat = ballots.reshape(-1), stable.reshape(-1)
    return _votes(call, division.num_groups, len(rows), listing, _abstaining(len(rows)), flat)


def _everything(num_targets: int, num_groups: int) -> Listing:
    owner, group = (index.reshape(-1) for index in np.indices((num_targets, num_groups)))
    return Listing(owner, group, np.ones(len(owner), dtype=bool), np.arange(len(owner)))


def _cover(pieces: Pieces, division: Division, rows: IntArray, graph: Data) -> Cover:
    if not isinstance(division, EdgeCentric):
        return _no_cover(len(rows))
    if is_graph_task(graph):
        return graph_cover(pieces, graph.batch)
    if has_own_groups(division):  # a node reaches one ballot of a target, its own
        return _no_cover(len(rows))
    return node_cover(pieces, rows, graph.num_nodes)


def _no_cover(num_targets: int) -> Cover:
    return np.zeros(num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _abstaining(num_targets: int) -> Ballots:
    return np.full(num_targets, ABSTAIN, dtype=np.int16), np.ones(num_targets, dtype=bool)
