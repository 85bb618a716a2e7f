"""Casting ballots with either engine, and storing them as ``Votes``: a default ballot and listed exceptions."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.votes import ABSTAIN, IntArray, Votes
from agnncert.divisions.base import Division, is_graph_task
from agnncert.engine import fast, naive
from agnncert.engine.call import Ballots, Caller
from agnncert.engine.cover import Cover, pair_facts
from agnncert.engine.features import SparseRows
from agnncert.engine.ranges import (
    KeptShares,
    Listing,
    Shuffle,
    covers,
    empty_share,
    gathered,
    merged,
    no_cover,
    without_ballots,
)
from agnncert.engine.workers import Workers
from agnncert.errors import ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.targets import Entries

EngineName = Literal["fast", "naive"]
ENGINES: tuple[EngineName, ...] = ("fast", "naive")


@torch.no_grad()
def cast(
    call: Caller,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    engine: EngineName = "fast",
    tolerance: float | None = None,
    memory_limit: int | None = None,
    layout: fast.Plan | None = None,
    tell: naive.Tell | None = None,
    shuffle: Shuffle | None = None,
    workers: Workers | None = None,
    keep: KeptShares | None = None,
    entries: Entries | None = None,
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
        shuffle: The graph's edges by group, if these have been found before.
        workers: Who casts, with the fast engine and a division that offers ``pieces``; this process when not given.
        keep: Where shares of the vote are kept as they come in; likewise.
        entries: The features that are not zero, if these have been sought before.
    """
    if engine not in ENGINES:
        raise SettingsError(f'unknown engine "{engine}": {did_you_mean(str(engine), ENGINES)}')
    if (workers is not None or keep is not None) and (engine == "naive" or not hasattr(division, "pieces")):
        raise SettingsError(
            "workers= and checkpoint= are for the fast engine and the library's own divisions, whose groups vote "
            f"apart from each other: leave them out with {division} and engine={engine!r}."
        )
    call = replace(call)  # nothing that was derived from the model before: it may have been trained since
    if not hasattr(division, "pieces"):
        return _all_listed(call, graph, division, rows, engine, tolerance, memory_limit, tell), no_cover(len(rows))
    shuffle = shuffle or Shuffle(graph, division, rows, None if layout is None else layout.pieces)
    if engine == "naive":
        shares = [empty_share(shuffle, groups) for groups in shuffle.ranges(memory_limit)]
        listing = merged(shares, shuffle)
        default, listed = _naive_ballots(call, graph, division, rows, listing, tolerance, tell)
        listing = replace(listing, ballot=listed[0], stable=listed[1])
    else:
        x = graph.x.to(call.dtype)
        sparse = SparseRows.of(x, entries if x is graph.x else None) if layout is None else layout.sparse
        features, default = fast.features_of(call, graph, sparse, memory_limit), _abstaining(len(rows))
        if not is_graph_task(graph) and not getattr(division, "gate_features", False):
            default = fast.edgeless_ballots(call, graph, features, rows, tolerance, memory_limit)
        shares = gathered(call, shuffle, features, tolerance, memory_limit, tell, workers, keep)
        del features  # and with them the projections, before ballots are sorted
        listing = merged(shares, shuffle)
        shares = [without_ballots(share) for share in shares]
    return votes_of(call, shuffle.num_groups, listing, default), covers(shares, shuffle, listing)


def structure(
    graph: CanonicalGraph, division: Division, rows: IntArray, memory_limit: int | None = None
) -> dict[str, npt.NDArray[Any]]:
    """What ``cast`` finds out about the graph alone, by the names that evidence uses; arguments as there."""
    if hasattr(division, "pieces"):
        shuffle = Shuffle(graph, division, rows)
        shares = [empty_share(shuffle, groups) for groups in shuffle.ranges(memory_limit)]
        listing = merged(shares, shuffle)
        cover_ptr, cover = covers(shares, shuffle, listing)
    else:
        listing, (cover_ptr, cover) = _everything(len(rows), division.num_groups), no_cover(len(rows))
    return {
        "indptr": listing.indptr,
        "group": listing.group,
        "reached": listing.reached,
        "cover_ptr": cover_ptr,
        "cover": cover,
        **pair_facts(graph, division, rows, listing.indptr, listing.group),
    }


def _naive_ballots(
    call: Caller,
    graph: CanonicalGraph,
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
    owner = listing.owner
    unlisted = np.ones(ballots.shape, dtype=bool)
    unlisted[owner, listing.group] = False
    differs = unlisted & (ballots != default[0][:, None]) & stable & default[1][:, None]
    if differs.any():
        target, group = np.argwhere(differs)[0]
        raise ModelContractError(
            f"target {rows[target]} votes {ballots[target, group]} in subgraph {group}, where it has no edge, but "
            f"{default[0][target]} without any edges: the model looks beyond the edges of a node, and nothing can be "
            "proved about it."
        )
    return default, (ballots[owner, listing.group], stable[owner, listing.group])


def _naive_table(
    call: Caller,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    tell: naive.Tell | None,
) -> Ballots:
    table = naive.graph_table if is_graph_task(graph) else naive.node_table
    return table(call, graph, division, rows, tolerance, tell)


def votes_of(call: Caller, num_groups: int, listing: Listing, default: Ballots) -> Votes:
    """Listed ballots that were cast, and those of empty groups, as votes."""
    assert listing.ballot is not None
    assert listing.stable is not None
    return Votes(
        num_groups=num_groups,
        num_classes=call.num_classes,
        default=default[0],
        default_stable=default[1],
        indptr=listing.indptr,
        group=listing.group,
        ballot=listing.ballot,
        stable=listing.stable,
        reached=listing.reached,
    )


def _all_listed(
    call: Caller,
    graph: CanonicalGraph,
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
    listing = replace(_everything(*ballots.shape), ballot=ballots.reshape(-1), stable=stable.reshape(-1))
    return votes_of(call, division.num_groups, listing, _abstaining(len(rows)))


def _everything(num_targets: int, num_groups: int) -> Listing:
    group = np.tile(np.arange(num_groups, dtype=np.int32), num_targets)
    return Listing(np.arange(num_targets + 1) * num_groups, group, np.ones(len(group), dtype=bool))


def _abstaining(num_targets: int) -> Ballots:
    return np.full(num_targets, ABSTAIN, dtype=np.int16), np.ones(num_targets, dtype=bool)
