"""Recomputes the votes that a change can alter: the affected copies are cut out of the union and evaluated in one call.

*Reach.* In a model whose layers are all known, messages follow edges, so ``hops`` layers carry information over at most
``hops`` edges. For any other model that passed the audit, the whole connected component can be affected.

*Features.* The products of the features with the model's first weights are kept, and updated row by row.

*Rounding.* A vote that is computed on a small part may be computed in another order than in the union of all subgraphs.
The rounding guard flags votes that this could alter, as in ``certify``, so *stable* votes are the same. The flags
depend on random perturbations; votes whose flag another perturbation could change are ``close``. ``certificate()``
decides their flags with the perturbation that ``certify`` uses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing

from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.rounding import DOUBT, SAFETY, logits_and_deviation
from agnncert.engine.rounding_noise import RoundingNoise
from agnncert.engine.union import CHUNK_ROWS
from agnncert.models import gnn
from agnncert_live.nodes import OUTSIDE, Rows, Union
from agnncert_live.store import Store

Array = npt.NDArray[Any]

_STACKS = (gnn.NodeGNN, gnn.WeightedNodeGNN, pyg.GCN, pyg.GraphSAGE, pyg.GIN, pyg.GAT)
_SEVERAL = (pyg.SGConv, pyg.TAGConv, pyg.APPNP)  # pass messages K times


def hops_of(model: Any, locality: str) -> int | None:
    """The number of edges over which a message can travel before the vote; None if unknown.

    Args:
        model: The module.
        locality: What the audit says: ``"construction"`` if every layer of it was read.
    """
    if locality != "construction":
        return None
    if isinstance(model, MessagePassing):
        return _hops_of_layer(model)
    if type(model) not in _STACKS:
        return None
    return sum(_hops_of_layer(layer) for layer in model.convs if isinstance(layer, MessagePassing))


def _hops_of_layer(layer: Any) -> int:
    return int(layer.K) if isinstance(layer, _SEVERAL) else 1


class Reach:
    """Walks through a union, many copies at a time. What one walk has seen is marked with its number."""

    def __init__(self, union: Union, hops: int | None) -> None:
        self.union, self.hops = union, hops
        self._seen, self._place = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._walk = 0

    def downstream(self, changed: Array) -> Array:
        """Copies whose votes may alter, the changed ones first, given those whose features or arcs have changed.

        One hop more than messages travel after it: layers may divide by the degree of the node that sends.
        """
        if self.hops is None:
            return self.component(changed)
        return self._spread(changed, [(self.union.leaving, self.union.head)], self.hops)

    def upstream(self, asked: Array) -> tuple[Array, int]:
        """Copies that some copies' votes depend on, and how many of them, the first ones, need all their arcs.

        Those that are as far away as messages come from need their arcs too, because layers may divide by the degree of
        the node that sends; so the copies at the other end of these arcs have to be there, without arcs of their own.
        """
        if self.hops is None:
            everything = self.component(asked)
            return everything, len(everything)
        inner = self._spread(asked, [(self.union.arriving, self.union.source)], self.hops)
        border = self._fresh(self.union.source[self.union.arriving.gather(inner)[0]])
        return np.concatenate([inner, border]), len(inner)

    def component(self, start: Array) -> Array:
        """All copies connected with some, whichever way arcs point."""
        both = [(self.union.leaving, self.union.head), (self.union.arriving, self.union.source)]
        return self._spread(start, both, None)

    def _spread(self, start: Array, along: list[tuple[Rows, Array]], hops: int | None) -> Array:
        self._walk += 1
        if len(self._seen) < self.union.num_copies:
            self._seen, self._place = (np.zeros(len(self.union.cell), dtype=np.int64) for _ in range(2))
        levels = [self._fresh(start)]
        while len(levels[-1]) and (hops is None or len(levels) <= hops):
            ends = [end[arcs.gather(levels[-1])[0]] for arcs, end in along]
            levels.append(self._fresh(ends[0] if len(ends) == 1 else np.concatenate(ends)))
        return np.concatenate(levels)

    def _fresh(self, copies: Array) -> Array:
        """Those that this walk has not seen, each once; from now on it has."""
        new = copies[self._seen[copies] != self._walk].astype(np.int64)
        if len(new) > 1:  # of a copy that is named twice, the last place wins
            place = np.arange(len(new))
            self._place[new] = place
            new = new[self._place[new] == place]
        self._seen[new] = self._walk
        return np.asarray(new)


class KeptFeatures(Features):
    """As ``Features``, of a matrix whose rows change: what was projected before is renewed for these rows alone.

    The noise of rows differs from that of ``certify``, and may: any within some units of rounding serves the guard.
    """

    def __init__(self, x: Tensor, sparse: SparseRows | None = None, noise: RoundingNoise | None = None) -> None:
        super().__init__(x, sparse, noise=noise)

    def copy(self, index: Tensor) -> Tensor:
        """``x[index]`` as an ordinary tensor."""
        rows = self.x.index_select(0, index)
        return rows if self.noise is None else self.noise.perturb_table(rows)

    def with_noise(self, noise: RoundingNoise) -> Features:
        """The same matrix, and its products with any weight, moved by a few units of rounding."""
        if noise not in self._noisy:
            self._noisy[noise] = KeptFeatures(self.x, self.sparse, noise)
        return self._noisy[noise]

    def forget_sparse(self) -> None:
        """Lets go of the compressed form, which would not know of rows that change."""
        for one in self._family():
            one.sparse = None

    def renew(self, x: Tensor, rows: Tensor) -> None:
        """Some rows have changed, or were added at the end.

        Args:
            x: The matrix as it is now.
            rows: Which rows are others than before.
        """
        for one in self._family():
            one.x = x
            fresh = Features(x.index_select(0, rows), noise=one.noise)
            for key, projection in list(one._projections.items()):
                weight = projection.weight.t() if projection.transposed else projection.weight
                product = projection.product
                if len(product) < len(x):
                    product = torch.cat([product, product.new_zeros(len(x) - len(product), product.size(1))])
                product[rows] = fresh._linear(weight, projection.bias)
                one._projections[key] = projection._replace(product=product, leaf=product)

    def kept(self) -> int:
        """How many numbers are kept in addition to the matrix."""
        projections = [projection for one in self._family() for projection in one._projections.values()]
        return sum(projection.product.numel() for projection in projections)

    def _family(self) -> "list[Features]":
        return [self, *self._noisy.values()]


CLOSE = 16.0  # a flag counts as decided if the lead is so many times what it had to be


@dataclass
class CopyVotes:
    """Votes of copies or nodes: the class voted for, whether it is stable, and whether that is close."""

    of: Array
    vote: Array
    stable: Array
    close: Array

    @classmethod
    def none(cls) -> "CopyVotes":
        """No votes."""
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
    """Casts votes of a store's copies.

    Attributes:
        rough: Whether scores were seen that are mostly rounding error: then the guard takes further looks, for all
            copies that are evaluated together.
    """

    def __init__(self, store: Store, call: ModelAdapter, tolerance: float, hops: int | None) -> None:
        self.store, self.call, self.tolerance = store, call, tolerance
        self.reach = Reach(store.union, hops)
        self.rough = False
        self._kept: KeptFeatures | None = None
        self._place = np.zeros(0, dtype=np.int64)

    def affected(self, is_target: Array) -> Array:
        """Copies of targets whose votes the present batch may have altered; graph task: all copies of such cells."""
        union, now, cells = self.store.union, self.store.now, self.store.cells
        renewed = np.fromiter(now.features, dtype=np.int64, count=len(now.features))
        copies = union.of_node.gather(renewed)[0].astype(np.int64)
        if cells.gated:  # elsewhere features are hidden
            copies = copies[cells.is_home(self.store.nodes, union, copies)]
        if cells.on_graphs:
            return self._whole_cells(np.concatenate([_array(now.ends), copies]))
        changed = _array(now.heads if self.reach.hops is not None else now.ends)
        # A copy that is new has no vote yet, also if nothing arrives there.
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

    def cast(self, copies: Array, no_edge: Array) -> tuple[CopyVotes, CopyVotes]:
        """Votes of copies, and of nodes without edges, in as few calls as memory allows."""
        if self.store.cells.on_graphs:
            return self._cast_cells(copies), CopyVotes.none()
        needed, inner = self.reach.upstream(copies)
        piece = self.piece(needed, needed[:inner])
        if len(piece.copies) + len(no_edge) > 2 * CHUNK_ROWS:
            votes = self.decide(copies, no_edge, self._everything(), np.arange(len(self.store.nodes.x)))
            self._weigh_products()
            return votes
        nodes = np.concatenate([self.store.union.node[piece.copies], no_edge])
        if not len(nodes):
            return CopyVotes.none(), CopyVotes.none()
        found = self._judged(*self._look(piece, nodes, self._features(nodes)))
        self._weigh_products()
        place = self._place[copies]
        split = len(piece.copies)
        return (
            CopyVotes(copies, *(part[place] for part in found)),
            CopyVotes(no_edge, *(part[split:] for part in found)),
        )

    def decide(self, copies: Array, no_edge: Array, features: Features, row: Array) -> tuple[CopyVotes, CopyVotes]:
        """As ``cast``, with features whose rows are those of the graph; ``row`` is that of each slot."""
        listed = [CopyVotes.none()]
        for asked in self._runs(copies):
            needed, inner = self.reach.upstream(asked)
            piece = self.piece(needed, needed[:inner])
            nodes = self.store.union.node[piece.copies]
            found = self._judged(*self._look(piece, nodes, (features, row[nodes])))
            listed.append(CopyVotes(asked, *(part[self._place[asked]] for part in found)))
        alone = [CopyVotes.none()]
        nothing = np.zeros(0, dtype=np.int64)
        empty = Piece(nothing, nothing, np.zeros((2, 0), dtype=np.int64))
        for start in range(0, len(no_edge), CHUNK_ROWS):
            nodes = no_edge[start : start + CHUNK_ROWS]
            alone.append(CopyVotes(nodes, *self._judged(*self._look(empty, nodes, (features, row[nodes])))))
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

    def _cast_cells(self, copies: Array) -> CopyVotes:
        parts = [CopyVotes.none()]
        for members in self._runs(copies):
            piece = self.piece(members, members)
            nodes, cell = self.store.union.node[piece.copies], self.store.union.cell[piece.copies]
            _, batch = np.unique(cell, return_inverse=True)
            found = self._judged(*self._look(piece, nodes, self._features(nodes), batch))
            parts.append(CopyVotes(piece.copies, *(part[batch] for part in found)))
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
        """Updates the features of nodes that the present batch changed."""
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
        values = {name: torch.from_numpy(union.values[name][piece.arcs]) for name in self.call.edge_inputs}
        of_graph = None if batch is None else torch.from_numpy(batch.astype(np.int64))
        return x, torch.from_numpy(piece.ends), values, of_graph

    @torch.no_grad()
    def _look(
        self, piece: Piece, nodes: Array, features: tuple[Features, Array], batch: Array | None = None
    ) -> tuple[Tensor, Tensor]:
        return logits_and_deviation(self.call, *self.inputs(piece, nodes, features, batch))

    def _judged(self, logits: Tensor, moved: Tensor) -> tuple[Array, Array, Array]:
        """As ``stable_predictions``, and also which flags another random perturbation could change."""
        best, vote = logits.max(dim=1)
        lead = best - logits.scatter(1, vote[:, None], -torch.inf).amax(dim=1)
        scale = logits.abs().amax(dim=1).clamp(min=1.0)
        least = self.tolerance * scale
        apart = torch.maximum(least, SAFETY * moved)
        finite = torch.isfinite(scale)
        stable = (lead > 2 * apart) & finite
        close = (lead > least) & ~(lead > 2 * CLOSE * apart) & finite
        self.rough |= not bool((moved <= DOUBT * scale).all())
        return vote.numpy().astype(np.int16), stable.numpy(), close.numpy()


def _array(numbers: set[int]) -> Array:
    return np.fromiter(numbers, dtype=np.int64, count=len(numbers))


def _joined(parts: list[CopyVotes]) -> CopyVotes:
    fields = ("of", "vote", "stable", "close")
    return CopyVotes(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))
