"""Ballots of some copies: what a change may have altered is cut out of the union and cast in one call of the model.

Rounding. A ballot that is cast on a small piece may be computed in another order than in the union of all subgraphs.
The guard flags ballots that this could alter, here as in ``certify``, so *stable* ballots are the same. The flags
follow from a random shaking of the numbers, and near the border another shaking may decide otherwise; such ballots are
``close``. ``certificate()`` has their flags decided by the very shaking that ``certify`` uses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.live.features import KeptFeatures
from agnncert.live.reach import Reach
from agnncert.live.store import Store
from agnncert.live.union import OUTSIDE
from agnncert.voting.call import Caller
from agnncert.voting.fast import CHUNK_ROWS
from agnncert.voting.guard import DOUBT, SAFETY, watched
from agnncert.voting.lazy_rows import Features, SparseRows

Array = npt.NDArray[Any]

CLOSE = 16.0  # a flag counts as decided if the lead is so many times what it had to be


@dataclass
class Ballots:
    """Ballots of copies or nodes: the class voted for, whether it is stable, and whether that is close."""

    of: Array
    ballot: Array
    stable: Array
    close: Array

    @classmethod
    def none(cls) -> "Ballots":
        """No ballots."""
        nothing = np.zeros(0, dtype=bool)
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int16), nothing, nothing)


@dataclass(frozen=True)
class Piece:
    """A part of the union, ready to be evaluated.

    Attributes:
        copies: Its copies, ordered by cell and row.
        arcs: Its arcs, in canonical order within each cell.
        ends: Positions of the copies that each arc joins, shape ``[2, m]``.
    """

    copies: Array
    arcs: Array
    ends: Array


class Caster:
    """Casts ballots of a store's copies.

    Attributes:
        rough: Whether scores were seen that are mostly rounding error: then the guard takes further looks, for all
            copies that are evaluated together.
    """

    def __init__(self, store: Store, call: Caller, tolerance: float, hops: int | None) -> None:
        self.store, self.call, self.tolerance = store, call, tolerance
        self.reach = Reach(store.union, hops)
        self.rough = False
        self._kept: KeptFeatures | None = None
        self._place = np.zeros(0, dtype=np.int64)

    def affected(self, is_target: Array) -> Array:
        """Copies of targets whose ballots the present batch may have altered; graph task: all copies of such cells."""
        union, now, cells = self.store.union, self.store.now, self.store.cells
        renewed = np.fromiter(now.features, dtype=np.int64, count=len(now.features))
        copies = union.of_node.gather(renewed)[0].astype(np.int64)
        if cells.gated:  # elsewhere features are hidden
            copies = copies[cells.is_home(self.store.nodes, union, copies)]
        if cells.on_graphs:
            return self._whole_cells(np.concatenate([_array(now.ends), copies]))
        changed = _array(now.heads if self.reach.hops is not None else now.ends)
        # A copy that is new has no ballot yet, also if nothing arrives there.
        new = _array(now.ends)[~self.store.cast[_array(now.ends)]] if self.reach.hops is not None else changed[:0]
        altered = self.reach.downstream(np.concatenate([changed, copies, new]))
        altered = altered[is_target[union.node[altered]]]
        return altered[cells.votes(self.store.nodes, union, altered)]

    def _whole_cells(self, touched: Array) -> Array:
        union, cells = self.store.union, self.store.cells
        if union.members is None:  # each pair, or node, is a cell of its own
            copies = self.reach.component(touched[union.cell[touched] != OUTSIDE])
        else:
            cell = np.unique(union.cell[touched])
            copies = union.members.gather(cell[cell != OUTSIDE])[0].astype(np.int64)
        return copies[cells.votes(self.store.nodes, union, copies)]

    def cast(self, copies: Array, edgeless: Array) -> tuple[Ballots, Ballots]:
        """Ballots of copies, and of nodes without edges, in as few calls as memory allows."""
        if self.store.cells.on_graphs:
            return self._cast_cells(copies), Ballots.none()
        needed, inner = self.reach.upstream(copies)
        piece = self.piece(needed, needed[:inner])
        if len(piece.copies) + len(edgeless) > 2 * CHUNK_ROWS:
            ballots = self.decide(copies, edgeless, self._everything(), np.arange(len(self.store.nodes.x)))
            self._weigh_products()
            return ballots
        nodes = np.concatenate([self.store.union.node[piece.copies], edgeless])
        if not len(nodes):
            return Ballots.none(), Ballots.none()
        found = self._judged(*self._look(piece, nodes, self._features(nodes)))
        self._weigh_products()
        place = self._place[copies]
        split = len(piece.copies)
        return (Ballots(copies, *(part[place] for part in found)), Ballots(edgeless, *(part[split:] for part in found)))

    def decide(self, copies: Array, edgeless: Array, features: Features, row: Array) -> tuple[Ballots, Ballots]:
        """As ``cast``, with features whose rows are those of the graph; ``row`` is that of each slot."""
        listed = [Ballots.none()]
        for asked in self._runs(copies):
            needed, inner = self.reach.upstream(asked)
            piece = self.piece(needed, needed[:inner])
            nodes = self.store.union.node[piece.copies]
            found = self._judged(*self._look(piece, nodes, (features, row[nodes])))
            listed.append(Ballots(asked, *(part[self._place[asked]] for part in found)))
        alone = [Ballots.none()]
        nothing = np.zeros(0, dtype=np.int64)
        empty = Piece(nothing, nothing, np.zeros((2, 0), dtype=np.int64))
        for start in range(0, len(edgeless), CHUNK_ROWS):
            nodes = edgeless[start : start + CHUNK_ROWS]
            alone.append(Ballots(nodes, *self._judged(*self._look(empty, nodes, (features, row[nodes])))))
        return _joined(listed), _joined(alone)

    def _runs(self, copies: Array) -> Iterator[Array]:
        """Copies in runs of whole cells that are not too many."""
        cell = self.store.union.cell[copies]
        order = np.argsort(cell, kind="stable")
        copies, cell = copies[order], cell[order]
        begin = 0
        for end in np.append(np.flatnonzero(np.diff(cell)) + 1, len(cell)).tolist():
            if end > begin and (end - begin >= CHUNK_ROWS // 2 or end == len(cell)):
                yield copies[begin:end]
                begin = end

    def _cast_cells(self, copies: Array) -> Ballots:
        parts = [Ballots.none()]
        for members in self._runs(copies):
            piece = self.piece(members, members)
            nodes, cell = self.store.union.node[piece.copies], self.store.union.cell[piece.copies]
            _, batch = np.unique(cell, return_inverse=True)
            found = self._judged(*self._look(piece, nodes, self._features(nodes), batch))
            parts.append(Ballots(piece.copies, *(part[batch] for part in found)))
        return _joined(parts)

    def piece(self, copies: Array, inner: Array) -> Piece:
        """The part of the union with these copies, and all arcs that arrive at the inner ones."""
        union, nodes = self.store.union, self.store.nodes
        cell = union.cell[copies]
        copies = copies[np.lexsort([nodes.born[union.node[copies]], cell])]
        if len(self._place) < union.num_copies:
            self._place = np.zeros(len(union.cell), dtype=np.int64)
        self._place[copies] = np.arange(len(copies))
        arcs = union.arriving.gather(inner)[0]
        source, head = union.node[union.source[arcs]], union.node[union.head[arcs]]
        columns = [union.cell[union.head[arcs]], nodes.key[head], nodes.tie[head], nodes.key[source], nodes.tie[source]]
        for value in union.values.values():
            columns += list(value[arcs].reshape(len(arcs), int(np.prod(value.shape[1:]))).T)
        arcs = arcs[np.lexsort(columns[::-1])]
        return Piece(copies, arcs, self._place[np.stack([union.source[arcs], union.head[arcs]])])

    def _everything(self) -> Features:
        """Features of all slots."""
        if self._kept is not None:
            return self._kept
        x = torch.from_numpy(self.store.nodes.x).to(self.call.dtype)
        return Features(x, SparseRows.of(x))

    def keep_products(self) -> None:
        """From now on keeps products with the model's first weights."""
        if not (self.store.cells.gated or self.store.cells.on_graphs):
            x = torch.from_numpy(self.store.nodes.x).to(self.call.dtype)
            self._kept = KeptFeatures(x, SparseRows.of(x))

    def _weigh_products(self) -> None:
        """Products are not worth keeping if they take half as much as the features."""
        if self._kept is not None:
            self._kept.forget_sparse()
            if 2 * self._kept.kept() > self._kept.x.numel():
                self._kept = None

    def renew(self) -> None:
        """Reads the features anew of nodes to which the present batch gave others."""
        if self._kept is None or not self.store.now.features:
            return
        rows = torch.from_numpy(_array(set(self.store.now.features)))
        x = torch.from_numpy(self.store.nodes.x)
        if x.dtype != self.call.dtype:
            new, x = x[rows].to(self.call.dtype), self._kept.x
            more = len(self.store.nodes.x) - len(x)
            x = torch.cat([x, x.new_zeros(more, x.size(1))]) if more else x
            x[rows] = new
        self._kept.renew(x, rows)

    def _features(self, nodes: Array) -> tuple[Features, Array]:
        """Features of the nodes that are asked for, and the row of each."""
        if self._kept is not None:
            return self._kept, nodes
        few, row = np.unique(nodes, return_inverse=True)
        return Features(torch.from_numpy(self.store.nodes.x[few]).to(self.call.dtype)), row

    def inputs(
        self, piece: Piece, nodes: Array, features: tuple[Features, Array], batch: Array | None = None
    ) -> tuple[Any, ...]:
        """What the model is called with: a piece, and after its copies nodes without edges."""
        union, blank = self.store.union, None
        if self.store.cells.gated:
            blank = torch.from_numpy(~self.store.cells.is_home(self.store.nodes, union, piece.copies))
        x = features[0].rows(torch.from_numpy(features[1].astype(np.int64)), blank)
        values = {name: torch.from_numpy(union.values[name][piece.arcs]) for name in self.call.takes}
        of_graph = None if batch is None else torch.from_numpy(batch.astype(np.int64))
        return x, torch.from_numpy(piece.ends), values, of_graph

    @torch.no_grad()
    def _look(
        self, piece: Piece, nodes: Array, features: tuple[Features, Array], batch: Array | None = None
    ) -> tuple[Tensor, Tensor]:
        return watched(self.call, *self.inputs(piece, nodes, features, batch))

    def _judged(self, logits: Tensor, moved: Tensor) -> tuple[Array, Array, Array]:
        """As ``judge``, and besides which flags another shaking of the numbers might set otherwise."""
        best, ballot = logits.max(dim=1)
        lead = best - logits.scatter(1, ballot[:, None], -torch.inf).amax(dim=1)
        scale = logits.abs().amax(dim=1).clamp(min=1.0)
        least = self.tolerance * scale
        apart = torch.maximum(least, SAFETY * moved)
        finite = torch.isfinite(scale)
        stable = (lead > 2 * apart) & finite
        close = (lead > least) & ~(lead > 2 * CLOSE * apart) & finite
        self.rough |= not bool((moved <= DOUBT * scale).all())
        return ballot.numpy().astype(np.int16), stable.numpy(), close.numpy()


def _array(numbers: set[int]) -> Array:
    return np.fromiter(numbers, dtype=np.int64, count=len(numbers))


def _joined(parts: list[Ballots]) -> Ballots:
    fields = ("of", "ballot", "stable", "close")
    return Ballots(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))
