"""``generate_amazon2m_like``: a synthetic graph of the size of Amazon2M, written to disk in pieces.

It has as many nodes, edges, classes and features, most edges within communities and classes, and degrees with a heavy
tail. It serves to measure the cost of that size; it says nothing about the accuracy on the real graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from agnncert.datasets.table_store import TableStore
from agnncert.errors import DatasetError
from agnncert_large.disk import GraphWriter, PathLike, new_graph
from agnncert_large.sorted_pairs import Rows, SortedPairs, write_edges

NODES, EDGES, CLASSES, FEATURES = 2_449_029, 61_859_140, 47, 100  # of Amazon2M, each pair of nodes once
TRAIN, VAL = 196_615 / NODES, 39_323 / NODES  # shares of the published split

# Chosen so that a model without edges is correct for about 60 % of the nodes, and one with edges for more.
_IN_COMMUNITY, _IN_CLASS = 0.55, 0.25  # shares of edges; the rest go anywhere
_COMMUNITY = 600  # nodes on average
_TAIL = 2.0  # exponent of the degrees' tail, minus one
_HUB = 346.0  # largest expected degree over the mean one, as in the real graph
_OTHER_LABEL = 0.1  # share of nodes with the label of a random node
_OF_CLASS, _OF_COMMUNITY = 0.26, 0.10  # how far classes and communities lie apart, in units of the noise
_NODE_BLOCK, _EDGE_BLOCK = 1 << 16, 1 << 22

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Plan:
    """Communities, classes and weights of the nodes, which are sorted by class and community here."""

    seed: int
    edges: int
    weight: Floats  # expected degree of each node, up to a factor
    communities: Rows  # where each community begins, and the end
    community: Rows  # of each node
    classes: Rows  # where each class begins, and the end
    label: Rows  # of each node
    row: Rows  # row of each node in the graph, shuffled

    def random(self, what: int, block: int = 0) -> np.random.Generator:
        return np.random.default_rng([self.seed, what, block])


def generate_amazon2m_like(folder: PathLike, scale: float = 1.0, seed: int = 0) -> None:
    """Writes a synthetic graph of the size of Amazon2M, or of a part of it, into a new folder for ``open_graph``.

    Args:
        folder: Where to write it.
        scale: Factor of the numbers of nodes and edges; the mean degree stays the same.
        seed: Seed of graph and split.

    Raises:
        DatasetError: The scale is not valid.
        GraphError: The folder is not empty.
    """
    if not (scale <= 64 and NODES * scale >= 20 * CLASSES):  # false for NaN
        raise DatasetError(f"scale={scale!r}: expected a number up to 64 that leaves at least {20 * CLASSES} nodes.")
    plan = _planned(round(NODES * scale), round(EDGES * scale), seed)
    place = Path(folder)
    with new_graph(place) as writer:
        with TableStore.opened("sorting edges", folder=writer.draft) as store:
            write_edges(writer, _both_ways(plan, store))
        _write_nodes(writer, plan)
        size = "" if scale == 1 else f", {Fraction(scale).limit_denominator(10_000)} of the size"
        writer.value("name", f"amazon2m-like (synthetic{size})")
        writer.value("num_classes", CLASSES)
        writer.value("synthetic", f"generated with seed {seed}: nothing about the real Amazon2M follows from it")


def _planned(nodes: int, edges: int, seed: int) -> _Plan:
    random = np.random.default_rng([seed, 0])
    share = 1 / np.arange(2, CLASSES + 2) ** 1.2
    classes = np.concatenate([[0], np.rint(np.cumsum(share) / share.sum() * nodes)]).astype(np.int64)
    starts = [np.zeros(0, dtype=np.int64)]
    for begin, end in pairwise(classes):
        sizes = random.lognormal(0, 0.6, max(1, round((end - begin) / _COMMUNITY)))
        inside = np.concatenate([[0], np.cumsum(sizes)[:-1]]) / sizes.sum()
        starts.append(np.unique(begin + np.floor(inside * (end - begin)).astype(np.int64)))
    communities = np.concatenate([*starts, [nodes]])
    weight = (1 - random.random(nodes)) ** (-1 / _TAIL) - 0.9
    weight = np.minimum(weight, _HUB * weight.mean())
    return _Plan(
        seed=seed, edges=edges, weight=weight, communities=communities, classes=classes,
        community=np.repeat(np.arange(len(communities) - 1), np.diff(communities)),
        label=np.repeat(np.arange(CLASSES), np.diff(classes)), row=random.permutation(nodes),
    )  # fmt: skip


def _both_ways(plan: _Plan, store: TableStore) -> SortedPairs:
    """The planned number of distinct pairs, each in both directions."""
    nodes = len(plan.weight)
    once = SortedPairs(store, "once", nodes, plan.edges)
    found, rounds = 0, 0
    while found < plan.edges:
        if rounds == 8 or 4 * plan.edges > nodes * nodes:
            raise DatasetError(f"{nodes} nodes have no room for {plan.edges} edges: choose a larger scale.")
        missing = plan.edges - found
        for first, second in _drawn(plan, round(missing * (1.2 + 0.3 * rounds)) + 100, rounds):
            once.add(np.minimum(first, second), np.maximum(first, second))
        found = sum(len(keys) for keys, _ in once.sorted())
        rounds += 1
    both = SortedPairs(store, "pairs", nodes, 2 * plan.edges)
    surplus = found - plan.edges
    for block, (keys, _) in enumerate(once.sorted()):
        random = plan.random(2, block)
        dropped = int(random.hypergeometric(len(keys), found - len(keys), surplus)) if surplus else 0
        found, surplus = found - len(keys), surplus - dropped
        kept = np.delete(keys, random.choice(len(keys), dropped, replace=False))
        for piece in np.array_split(kept, max(1, -(-len(kept) // _EDGE_BLOCK))):
            high, low = np.divmod(piece, nodes)
            both.add(low, high)
            both.add(high, low)
    store.run("DROP TABLE once")
    return both


def _drawn(plan: _Plan, count: int, turn: int) -> Iterator[tuple[Rows, Rows]]:
    """About ``count`` pairs of rows, with repetitions, in blocks.

    Each node draws a number of partners proportional to its weight. A partner is drawn with a probability proportional
    to its weight, from the community of the node, from its class, or from all nodes.
    """
    nodes = len(plan.weight)
    total = np.concatenate([[0.0], np.cumsum(plan.weight)])
    wanted = np.floor(np.cumsum(plan.weight) / total[-1] * count + plan.random(3, turn).random()).astype(np.int64)
    for block, begin in enumerate(range(0, int(wanted[-1]), _EDGE_BLOCK)):
        end = min(begin + _EDGE_BLOCK, int(wanted[-1]))
        node = np.searchsorted(wanted, np.arange(begin, end), side="right")
        random = plan.random(4 + turn, block)
        kind, place = random.random(end - begin), random.random(end - begin)
        low, high = np.zeros(end - begin), np.full(end - begin, total[-1])
        near, alike = np.flatnonzero(kind < _IN_COMMUNITY), np.flatnonzero(kind >= 1 - _IN_CLASS)
        for some, starts, of in ((near, plan.communities, plan.community), (alike, plan.classes, plan.label)):
            mine = of[node[some]]
            low[some], high[some] = total[starts[mine]], total[starts[mine + 1]]
        partner = np.searchsorted(total[1:], low + place * (high - low), side="right")
        yield plan.row[node], plan.row[np.minimum(partner, nodes - 1)]


def _write_nodes(writer: GraphWriter, plan: _Plan) -> None:
    nodes = len(plan.row)
    node_of = np.empty(nodes, dtype=np.int64)
    node_of[plan.row] = np.arange(nodes)
    writer.ids(np.arange(nodes))
    random = plan.random(19)
    labelled = np.where(random.random(nodes) < _OTHER_LABEL, random.integers(0, nodes, nodes), node_of)
    writer.array("y", (nodes,), torch.int64)[:] = plan.label[labelled]
    centre = _OF_CLASS * plan.random(20).standard_normal((CLASSES, FEATURES), dtype=np.float32)
    offset = _OF_COMMUNITY * plan.random(21).standard_normal((len(plan.communities), FEATURES), dtype=np.float32)
    x = writer.array("x", (nodes, FEATURES), torch.float32)
    for block, begin in enumerate(range(0, nodes, _NODE_BLOCK)):
        here = node_of[begin : begin + _NODE_BLOCK]
        noise = plan.random(22, block).standard_normal((len(here), FEATURES), dtype=np.float32)
        x[begin : begin + len(here)] = centre[plan.label[here]] + offset[plan.community[here]] + noise
    part = plan.random(23).random(nodes)
    cuts = (0.0, TRAIN, TRAIN + VAL, 1.0)
    for name, (low, high) in zip(("train_mask", "val_mask", "test_mask"), pairwise(cuts), strict=True):
        writer.array(name, (nodes,), torch.bool)[:] = (part >= low) & (part < high)
