"""Computes the votes that a change can alter: the affected copies are cut out of the union and evaluated in one call.

*Reach.* In a model whose layers are all known, messages follow edges, so ``hops`` layers carry information over at most
``hops`` edges. For any other model that passed the audit, the whole connected component can be affected.

*Features.* The products of the features with the model's first weights are kept, and updated row by row.

*Rounding.* A vote that is computed on a small part may be computed in another order than in the union of all subgraphs.
The rounding guard flags votes that this could alter, as in ``certify``, so *stable* votes are the same. The flags
depend on random noise. ``noise_decides`` marks votes whose flag other noise could change. ``certificate()`` decides
these flags with the noise that ``certify`` uses.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.long_sums import MOST_FEATURES, MOST_MESSAGES
from agnncert.engine.rounding import DOUBT, SAFETY, logits_and_deviation, predict
from agnncert.engine.union import CHUNK_ROWS
from agnncert_live.kept_features import KeptFeatures
from agnncert_live.reach import Reach
from agnncert_live.store import Store
from agnncert_live.union import OUTSIDE

Array = npt.NDArray[Any]

BORDER = 16.0  # no noise decides a flag if the lead is this many times what it had to be


@dataclass
class ComputedVotes:
    """Votes of some copies, or of some nodes without edges.

    Attributes:
        index: The copies (or the slots of the nodes).
        vote: The class that each votes for.
        stable: Whether that is beyond numerical doubt.
        noise_decides: Whether other rounding noise might decide ``stable`` differently.
    """

    index: Array
    vote: Array
    stable: Array
    noise_decides: Array

    @classmethod
    def empty(cls) -> "ComputedVotes":
        """Returns no votes."""
        no_flags = np.zeros(0, dtype=bool)
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int16), no_flags, no_flags)

    @classmethod
    def joined(cls, parts: Sequence["ComputedVotes"]) -> "ComputedVotes":
        """Returns the votes of several parts, one after the other."""
        return cls(
            index=np.concatenate([part.index for part in parts]),
            vote=np.concatenate([part.vote for part in parts]),
            stable=np.concatenate([part.stable for part in parts]),
            noise_decides=np.concatenate([part.noise_decides for part in parts]),
        )

    def at(self, places: Any, index: Array) -> "ComputedVotes":
        """Returns the votes at some places, as votes of other copies or nodes."""
        return ComputedVotes(index, self.vote[places], self.stable[places], self.noise_decides[places])


class NodeVotes(NamedTuple):
    """Votes of copies, and predictions of nodes without edges."""

    of_copies: ComputedVotes
    no_edge: ComputedVotes


class ToCompute(NamedTuple):
    """Copies whose votes, and nodes whose predictions without edges, have to be computed."""

    copies: Array
    no_edge: Array


@dataclass(frozen=True)
class Part:
    """A part of the union, ready to be evaluated.

    Attributes:
        copies: Its copies, ordered by subgraph and row.
        arcs: Its arcs, in canonical order within each subgraph.
        ends: Positions of the copies that each arc joins, shape ``[2, m]``.
    """

    copies: Array
    arcs: Array
    ends: Array

    @classmethod
    def empty(cls) -> "Part":
        """Returns a part without copies."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, np.zeros((2, 0), dtype=np.int64))


class FeatureRows(NamedTuple):
    """Rows of a feature matrix, in the order of the copies and nodes that are evaluated."""

    features: Features
    rows: Array


class LongSums:
    """The copies at which a sum has so many terms that rounding noise says nothing about it (``engine.long_sums``).

    ``certify`` finds them in the whole union. What is cut out of the union for a few votes may not show them, so they
    are kept here.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._copies: set[int] = set()  # with too many arcs
        self._nodes: set[int] = set()  # with too many features that are not zero
        self._note_copies(store.union.live_copies())
        self._note_nodes(np.flatnonzero(store.nodes.alive))

    def update(self) -> bool:
        """Looks at what the present batch touched. Returns whether there are long sums now, or were before."""
        there_were = bool(self._copies or self._nodes)
        self._note_copies(_array(self._store.batch.ends))
        self._note_nodes(_array([*self._store.batch.features, *self._store.batch.maybe_dead]))
        return there_were or bool(self._copies or self._nodes)

    def copies(self) -> Array:
        """Returns the copies with a long sum."""
        copies = _array(self._copies)
        if not self._nodes:
            return copies
        store = self._store
        of_nodes = store.union.of_node.gather(_array(self._nodes))[0].astype(np.int64)
        if store.subgraphs.gated:
            of_nodes = of_nodes[store.subgraphs.is_home(store.nodes, store.union, of_nodes)]
        return np.concatenate([copies, of_nodes])

    def _note_copies(self, copies: Array) -> None:
        union = self._store.union
        num_messages = np.maximum(union.arriving.length[copies], union.leaving.length[copies])
        is_long = num_messages > MOST_MESSAGES
        self._copies.difference_update(copies[~is_long].tolist())
        self._copies.update(copies[is_long].tolist())

    def _note_nodes(self, nodes: Array) -> None:
        x = self._store.nodes.x
        if x.shape[1] <= MOST_FEATURES:
            return
        is_long = self._store.nodes.alive[nodes] & ((x[nodes] != 0).sum(axis=1) > MOST_FEATURES)
        self._nodes.difference_update(nodes[~is_long].tolist())
        self._nodes.update(nodes[is_long].tolist())


class VoteEngine:
    """Computes votes of a store's copies.

    Args:
        store: The graph.
        bound_model: The model behind one calling convention.
        tolerance: How far two computations of one logit may lie apart, relative to the largest.
        hops: How many edges messages travel over; None if that is unknown.

    Attributes:
        rough: Whether scores were seen that are mostly rounding error. Then the guard tries further noises, for all
            copies that are evaluated together.
    """

    def __init__(self, store: Store, bound_model: ModelAdapter, tolerance: float, hops: int | None) -> None:
        self.store = store
        self.bound_model = bound_model
        self.tolerance = tolerance
        self.reach = Reach(store.union, hops)
        self.rough = False
        self._long = LongSums(store)
        self._kept: KeptFeatures | None = None
        self._position = np.zeros(0, dtype=np.int64)  # of each copy in the part that was cut out last

    @property
    def _is_watched(self) -> bool:
        """Whether rounding is watched. Where it is bounded, the length of sums is part of the bound."""
        return self.bound_model.rounding == "watched"

    def affected(self, is_target: Array) -> Array:
        """Returns the copies of targets whose votes the present batch may alter; graph task: whole subgraphs."""
        store = self.store
        renewed = self._copies_with_new_features()
        ends = _array(store.batch.ends)
        if store.subgraphs.of_graphs:
            return self._copies_of_subgraphs(np.concatenate([ends, renewed]))
        if self.reach.hops is None:
            changed = np.concatenate([ends, renewed])
        elif self._is_watched and self._long.update():
            return self._target_copies(self.reach.component(np.concatenate([ends, renewed])), is_target)
        else:
            # A copy that is new has no vote yet, also if nothing arrives there.
            without_vote = ends[~store.has_vote[ends]]
            changed = np.concatenate([_array(store.batch.heads), renewed, without_vote])
        return self._target_copies(self.reach.downstream(changed), is_target)

    def _target_copies(self, copies: Array, is_target: Array) -> Array:
        """Returns the copies that belong to targets and have a vote."""
        store = self.store
        copies = copies[is_target[store.union.node[copies]]]
        return copies[store.subgraphs.has_vote(store.nodes, store.union, copies)]

    def _copies_with_new_features(self) -> Array:
        store = self.store
        copies = store.union.of_node.gather(_array(store.batch.features))[0].astype(np.int64)
        if not store.subgraphs.gated:
            return copies
        return copies[store.subgraphs.is_home(store.nodes, store.union, copies)]  # elsewhere features are hidden

    def _copies_of_subgraphs(self, touched: Array) -> Array:
        """Returns all copies of the subgraphs in which some copies lie, as far as these vote."""
        union = self.store.union
        if union.members is None:  # each pair, or node, is a subgraph of its own
            copies = self.reach.component(touched[union.subgraph_index[touched] != OUTSIDE])
        else:
            subgraphs = np.unique(union.subgraph_index[touched])
            copies = union.members.gather(subgraphs[subgraphs != OUTSIDE])[0].astype(np.int64)
        return copies[self.store.subgraphs.has_vote(self.store.nodes, union, copies)]

    def compute(self, wanted: ToCompute) -> NodeVotes:
        """Computes votes in as few calls as memory allows."""
        if self.store.subgraphs.of_graphs:
            return NodeVotes(self._votes_of_subgraphs(wanted.copies), ComputedVotes.empty())
        part = self._part_upstream(wanted.copies)
        if len(part.copies) + len(wanted.no_edge) > 2 * CHUNK_ROWS:
            every_slot = np.arange(len(self.store.nodes.x))
            votes = self.compute_in_chunks(wanted, FeatureRows(self._features_of_all(), every_slot))
            self._drop_products_if_large()
            return votes
        nodes = np.concatenate([self.store.union.node[part.copies], wanted.no_edge])
        if not len(nodes):
            return NodeVotes(ComputedVotes.empty(), ComputedVotes.empty())
        votes_of_all = self._evaluate(part, self._features_of(nodes))
        self._drop_products_if_large()
        return NodeVotes(
            of_copies=self._without_long_sums(votes_of_all.at(self._position[wanted.copies], wanted.copies)),
            no_edge=votes_of_all.at(slice(len(part.copies), None), wanted.no_edge),
        )

    def compute_in_chunks(self, wanted: ToCompute, table: FeatureRows) -> NodeVotes:
        """Computes votes chunk by chunk.

        Args:
            wanted: What to compute.
            table: A feature matrix, and for each slot its row in that matrix.
        """
        of_copies = [ComputedVotes.empty()]
        for copies in self._runs_of_subgraphs(wanted.copies):
            part = self._part_upstream(copies)
            rows = table.rows[self.store.union.node[part.copies]]
            votes = self._evaluate(part, FeatureRows(table.features, rows))
            of_copies.append(votes.at(self._position[copies], copies))
        no_edge = [ComputedVotes.empty()]
        for first in range(0, len(wanted.no_edge), CHUNK_ROWS):
            nodes = wanted.no_edge[first : first + CHUNK_ROWS]
            votes = self._evaluate(Part.empty(), FeatureRows(table.features, table.rows[nodes]))
            no_edge.append(votes.at(slice(None), nodes))
        return NodeVotes(self._without_long_sums(ComputedVotes.joined(of_copies)), ComputedVotes.joined(no_edge))

    def _without_long_sums(self, votes: ComputedVotes) -> ComputedVotes:
        """Marks votes as not stable that may depend on a sum of too many terms, wherever in their component it is."""
        long_copies = self._long.copies()
        if self.reach.hops is None or not self._is_watched or not len(long_copies):
            return votes
        is_reached = np.zeros(self.store.union.num_copies, dtype=bool)
        is_reached[self.reach.component(long_copies)] = True
        votes.stable &= ~is_reached[votes.index]
        return votes

    def _runs_of_subgraphs(self, copies: Array) -> Iterator[Array]:
        """Yields copies in runs of whole subgraphs that are not too long."""
        order = np.argsort(self.store.union.subgraph_index[copies], kind="stable")
        copies = copies[order]
        subgraph_index = self.store.union.subgraph_index[copies]
        ends_of_subgraphs = np.append(np.flatnonzero(np.diff(subgraph_index)) + 1, len(copies))
        begin = 0
        for end in ends_of_subgraphs.tolist():
            is_long_enough = end - begin >= CHUNK_ROWS // 2 or end == len(copies)
            if end > begin and is_long_enough:
                yield copies[begin:end]
                begin = end

    def _votes_of_subgraphs(self, copies: Array) -> ComputedVotes:
        """Computes one vote for each subgraph, and gives it to all copies in it."""
        parts = [ComputedVotes.empty()]
        for members in self._runs_of_subgraphs(copies):
            part = self.cut_out(members, members)
            nodes = self.store.union.node[part.copies]
            _, subgraph = np.unique(self.store.union.subgraph_index[part.copies], return_inverse=True)
            votes = self._evaluate(part, self._features_of(nodes), subgraph)
            parts.append(votes.at(subgraph, part.copies))
        return ComputedVotes.joined(parts)

    def _part_upstream(self, copies: Array) -> Part:
        upstream = self.reach.upstream(copies)
        return self.cut_out(np.concatenate([upstream.inner, upstream.border]), upstream.inner)

    def cut_out(self, copies: Array, inner: Array) -> Part:
        """Returns the part of the union with some copies, and all arcs that arrive at the inner ones."""
        union = self.store.union
        nodes = self.store.nodes
        by_subgraph_and_row = np.lexsort([nodes.born[union.node[copies]], union.subgraph_index[copies]])
        copies = copies[by_subgraph_and_row]
        if len(self._position) < union.num_copies:
            self._position = np.zeros(len(union.subgraph_index), dtype=np.int64)
        self._position[copies] = np.arange(len(copies))
        arcs = self._in_canonical_order(union.arriving.gather(inner)[0])
        ends = self._position[np.stack([union.source[arcs], union.head[arcs]])]
        return Part(copies, arcs, ends)

    def _in_canonical_order(self, arcs: Array) -> Array:
        """Returns arcs ordered by subgraph, then by head, source and values, as in the canonical graph."""
        union = self.store.union
        nodes = self.store.nodes
        source = union.node[union.source[arcs]]
        head = union.node[union.head[arcs]]
        subgraph_index = union.subgraph_index[union.head[arcs]]
        columns = [subgraph_index, nodes.key[head], nodes.tie[head], nodes.key[source], nodes.tie[source]]
        for value in union.values.values():
            width = int(np.prod(value.shape[1:]))
            columns += list(value[arcs].reshape(len(arcs), width).T)
        return np.asarray(arcs[np.lexsort(columns[::-1])])

    # Features.

    def _features_of_all(self) -> Features:
        """Returns the features of all slots."""
        if self._kept is not None:
            return self._kept
        x = self._x()
        return Features(x, SparseRows.of(x))

    def _x(self) -> Tensor:
        return torch.from_numpy(self.store.nodes.x).to(self.bound_model.dtype)

    def keep_products(self) -> None:
        """Keeps products with the model's first weights from now on, where features are the same in all subgraphs."""
        if self.store.subgraphs.gated or self.store.subgraphs.of_graphs:
            return
        x = self._x()
        self._kept = KeptFeatures(x, SparseRows.of(x))

    @property
    def keeps_products(self) -> bool:
        """Whether products with the model's first weights are kept."""
        return self._kept is not None

    def _drop_products_if_large(self) -> None:
        """Drops products that take more than half as much memory as the features: they are not worth it."""
        if self._kept is None:
            return
        self._kept.forget_sparse()
        if 2 * self._kept.num_kept() > self._kept.x.numel():
            self._kept = None

    def undone(self) -> None:
        """Is called after the graph was changed back, while the batch still says what was touched."""
        self._long.update()
        self.renew_features()

    def renew_features(self) -> None:
        """Updates the kept products of nodes whose features the present batch changed."""
        if self._kept is None or not self.store.batch.features:
            return
        rows = torch.from_numpy(_array(self.store.batch.features))
        stored = torch.from_numpy(self.store.nodes.x)
        if stored.dtype == self.bound_model.dtype:
            self._kept.renew(stored, rows)
            return
        x = self._kept.x
        missing = len(stored) - len(x)
        if missing:
            x = torch.cat([x, x.new_zeros(missing, x.size(1))])
        x[rows] = stored[rows].to(self.bound_model.dtype)
        self._kept.renew(x, rows)

    def _features_of(self, nodes: Array) -> FeatureRows:
        """Returns the features of some nodes."""
        if self._kept is not None:
            return FeatureRows(self._kept, nodes)
        distinct, rows = np.unique(nodes, return_inverse=True)
        x = torch.from_numpy(self.store.nodes.x[distinct]).to(self.bound_model.dtype)
        return FeatureRows(Features(x), rows)

    # The model.

    @torch.no_grad()
    def _evaluate(self, part: Part, table: FeatureRows, subgraph: Array | None = None) -> ComputedVotes:
        """Computes the votes of a part's copies and then of nodes without edges; with ``subgraph``, of each subgraph.

        Args:
            part: The part of the union.
            table: Features of its copies, and then of the nodes without edges.
            subgraph: Graph task: number of the subgraph of each copy.
        """
        blank = None
        if self.store.subgraphs.gated:
            is_home = self.store.subgraphs.is_home(self.store.nodes, self.store.union, part.copies)
            blank = torch.from_numpy(~is_home)
        x = table.features.rows(torch.from_numpy(table.rows.astype(np.int64)), blank)
        columns = self.store.union.values
        values = {name: torch.from_numpy(columns[name][part.arcs]) for name in self.bound_model.edge_inputs}
        batch = None if subgraph is None else torch.from_numpy(subgraph.astype(np.int64))
        edge_index = torch.from_numpy(part.ends)
        if not self._is_watched:
            # A bound decides, whatever the order of sums: no noise takes part.
            vote, stable = predict(self.bound_model, self.tolerance, x, edge_index, values, batch)
            return ComputedVotes(np.arange(len(vote)), vote, stable, np.zeros(len(vote), dtype=bool))
        logits, deviation = logits_and_deviation(self.bound_model, x, edge_index, values, batch)
        return self._predictions(logits, deviation)

    def _predictions(self, logits: Tensor, deviation: Tensor) -> ComputedVotes:
        """Returns the same as ``stable_predictions``, and which flags other rounding noise could change."""
        best, vote = logits.max(dim=1)
        lead = best - logits.scatter(1, vote[:, None], -torch.inf).amax(dim=1)
        scale = logits.abs().amax(dim=1).clamp(min=1.0)
        smallest_lead = self.tolerance * scale
        needed_lead = torch.maximum(smallest_lead, SAFETY * deviation)
        is_finite = torch.isfinite(scale)
        stable = (lead > 2 * needed_lead) & is_finite
        noise_decides = (lead > smallest_lead) & ~(lead > 2 * BORDER * needed_lead) & is_finite
        if not bool((deviation <= DOUBT * scale).all()):
            self.rough = True
        return ComputedVotes(
            index=np.arange(len(vote)),
            vote=vote.numpy().astype(np.int16),
            stable=stable.numpy(),
            noise_decides=noise_decides.numpy(),
        )


def _array(numbers: Iterable[int]) -> Array:
    return np.fromiter(numbers, dtype=np.int64)
