"""Votes of a live graph written out as ``certify`` writes them: groups under their numbers, flags by its shaking."""

from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.graphs.targets import Targets, prepared
from agnncert.live.casting import Ballots
from agnncert.live.core import Core
from agnncert.live.store import Store
from agnncert.proof.ballots import Votes
from agnncert.voting.cast import cast, structure
from agnncert.voting.cover import Cover
from agnncert.voting.lazy_rows import Features, SparseRows

Array = npt.NDArray[Any]


def write_out(core: Core, data: Any) -> tuple[Targets, Votes, Cover]:
    """The targets in canonical form, their votes and their cover tables.

    Args:
        core: The live graph.
        data: It as data.
    """
    store, order, rows, most = core.store, core.order(), core.rows, core.num_groups()
    on_graphs, division = store.cells.on_graphs, store.cells.division
    row = np.zeros(store.nodes.count, dtype=np.int64)
    living = store.nodes.in_order()
    row[living] = np.arange(len(living))
    ready = prepared(data, rows if on_graphs else None)
    chosen = ready.targets(rows if on_graphs else row[order], store.cells.keeps_loops)
    group = _numbers(store, row, most)
    _settle_close(core, chosen, order, row, group, most)
    votes, _ = core.counter.votes(order, group, most)
    known = structure(chosen.graph, division, chosen.places)
    for name in ("indptr", "group", "reached"):
        if not np.array_equal(known[name], getattr(votes, name)):
            raise RuntimeError(f"the ballots kept are not those of the graph: {name} differs. This is a mistake here.")
    return chosen, votes, (known["cover_ptr"], known["cover"])


def _numbers(store: Store, row: Array, most: int) -> Array:
    """Number of the group of every copy, as the graph is numbered now."""
    cell = store.union.cell
    if not store.cells.own_groups:
        return cell % most if store.cells.on_graphs else cell
    sizes = [len(slots) for slots in store.nodes.slot_of]
    first = np.cumsum([0, *sizes[:-1]])  # row at which each graph begins
    number = np.zeros(len(cell), dtype=np.int64)
    live = store.union.live_copies()
    live = live[cell[live] >= 0]
    if not store.cells.by_pair:
        number[live] = row[cell[live]] - first[store.nodes.graph[cell[live]]]
        return number
    low, high = np.sort(np.stack([row[cell[live] >> 32], row[cell[live] & 0xFFFFFFFF]]), axis=0)
    pairs, where = np.unique(low * len(row) + high, return_inverse=True)
    graph = np.searchsorted(first, pairs // len(row), side="right") - 1
    counts = np.bincount(graph, minlength=len(first))
    number[live] = (np.arange(len(pairs)) - (np.cumsum(counts) - counts)[graph])[where]
    return number


def _settle_close(core: Core, chosen: Targets, order: Array, row: Array, group: Array, most: int) -> None:
    """Decides close flags by the shaking that ``certify`` uses, which follows the numbers of rows."""
    store, caster = core.store, core.caster
    votes, copies = core.counter.votes(order, group, most)
    close = store.close[copies]
    plain = not (store.cells.on_graphs or store.cells.gated)
    alone = store.edgeless_close[order] if plain else np.zeros(len(order), dtype=bool)
    if not close.any() and not alone.any():
        return
    if caster.call.takes or caster.rough or store.cells.on_graphs:
        # Values of edges are shaken by their place among all; further looks are taken for whole chunks.
        fresh, _ = cast(caster.call, chosen.graph, store.cells.division, chosen.places, "fast", caster.tolerance)
        listed = Ballots(copies[close], fresh.ballot[close], fresh.stable[close], close[close])
        default = Ballots(order[alone], fresh.default[alone], fresh.default_stable[alone], alone[alone])
    else:
        x = chosen.graph.x.to(caster.call.dtype)
        listed, default = caster.decide(copies[close], order[alone], Features(x, SparseRows.of(x)), row)
    listed.close[:] = default.close[:] = True  # close they stay: another numbering may decide otherwise
    core.revise(_of_whole_cells(store, listed) if store.cells.on_graphs else listed, default)
    touched = alone.copy()
    touched[votes.owner[close]] = True
    core.count(order[touched])


def _of_whole_cells(store: Store, listed: Ballots) -> Ballots:
    """All copies of a cell hold its ballot; this gives the others that of the one that was listed."""
    live = store.union.live_copies()
    cells = store.union.cell[listed.of]
    by_cell = np.argsort(cells)
    place = np.searchsorted(cells[by_cell], store.union.cell[live])
    same = np.append(cells[by_cell], -2)[place] == store.union.cell[live]
    source = by_cell[place[same]]
    return Ballots(live[same], listed.ballot[source], listed.stable[source], listed.close[source])
