"""The worst changes of one graph: which items to change, and to what, so that a rival gains most on the label.

By Theorems 22 and 23 nothing within the budget gains more: what is found here is no search.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import IntArray
from agnncert.graph_votes.model import GraphModel, kind_of_pair
from agnncert.graph_votes.seen import Shape

MOST_INJECTED = 200  # where the budget allows any number
MOST_PAIRS = 5_000_000  # of nodes of one graph


class Loss(NamedTuple):
    """What an item loses at most, and the state with the least vote.

    Attributes:
        loss: In steps.
        item: A node, or a pair of nodes: rows in the graph.
        state: The state that it is changed to.
    """

    loss: int
    item: tuple[int, ...]
    state: int


@dataclass(frozen=True)
class Change:
    """Changes of one graph.

    Attributes:
        joined: Pairs of rows to join.
        separated: Pairs of rows to separate.
        altered: New types of nodes, by row.
        deleted: Rows of nodes to delete.
        injected: Types of new nodes.
        gain: What a rival gains on the label, in steps.
    """

    joined: tuple[tuple[int, int], ...] = ()
    separated: tuple[tuple[int, int], ...] = ()
    altered: tuple[tuple[int, int], ...] = ()
    deleted: tuple[int, ...] = ()
    injected: tuple[int, ...] = ()
    gain: int = 0


class OneGraph:
    """The items of one graph, with their votes.

    Args:
        model: The model.
        shape: The structure of this one graph.
        x: Features of its nodes.
    """

    def __init__(self, model: GraphModel, shape: Shape, x: npt.NDArray[Any]) -> None:
        self.trusted = model.trusted
        self.table: IntArray = model.array("table")
        self.by_size: IntArray = model.array("by_size")
        self.num_nodes = shape.num_nodes
        self.pairs = {(int(u), int(v)) for u, v in shape.pairs.T}
        self.kinds = model.types.of(x)
        self.num_types = model.types.num_types
        self.roles = model.roles(shape) if self.trusted == "structure" else np.zeros(self.num_nodes, dtype=np.int64)

    def losses(self, leader: int, rival: int) -> list[Loss]:
        """Returns what each item can lose, the largest first; those that lose nothing are left out."""
        if not self.table.size:
            return []
        vote = self.table[:, :, leader] - self.table[:, :, rival]
        least, state = vote.min(axis=1), vote.argmin(axis=1)
        found = []
        for item, context, now in self._items():
            loss = int(vote[context, now] - least[context])
            if loss > 0:
                found.append(Loss(loss, item, int(state[context])))
        return sorted(found, key=lambda each: (-each.loss, each.item))

    def votes(self) -> Iterator[tuple[tuple[int, ...], IntArray]]:
        """Yields each item that votes, with its vote for each class."""
        for item, context, state in self._items() if self.table.size else ():
            vote = self.table[context, state]
            if vote.any():
                yield item, vote

    def _items(self) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Yields rows, context and state of each item."""
        if self.trusted != "nodes":
            for row in range(self.num_nodes):
                yield (row,), int(self.roles[row]), int(self.kinds[row])
            return
        pairs = list(combinations(range(self.num_nodes), 2))
        ends = np.sort(self.kinds[np.array(pairs, dtype=np.int64).reshape(-1, 2).T], axis=0)
        for pair, kind in zip(pairs, kind_of_pair(ends, self.num_types).tolist(), strict=True):
            yield pair, kind, int(pair in self.pairs)

    def worst(self, leader: int, rival: int, budget: Budget) -> Change:
        """Returns the change within a budget that gains the rival most."""
        if self.trusted == "none":
            return self._worst_of_nodes(leader, rival, budget)
        left = {"joined": budget.add_edges, "separated": budget.delete_edges, "altered": budget.change_features}
        chosen: dict[str, list[tuple[int, int]]] = {name: [] for name in left}
        gain = 0
        for loss in self.losses(leader, rival):
            what = "altered"
            if self.trusted == "nodes":
                what = "joined" if loss.state else "separated"
            if left[what] > 0:
                left[what] -= 1
                gain += loss.loss
                ends = loss.item if self.trusted == "nodes" else (loss.item[0], loss.state)
                chosen[what].append((ends[0], ends[1]))
        return Change(**{name: tuple(each) for name, each in chosen.items()}, gain=gain)  # type: ignore[arg-type]

    def _worst_of_nodes(self, leader: int, rival: int, budget: Budget) -> Change:
        vote = self.table[0, :, leader] - self.table[0, :, rival]
        least, state = int(vote.min()), int(vote.argmin())
        order = sorted(range(self.num_nodes), key=lambda row: (-int(vote[self.kinds[row]]), row))
        taken = [int(vote[self.kinds[row]]) for row in order]
        most_injected = int(min(budget.inject_nodes, MOST_INJECTED))
        best = (0, 0, 0, 0)
        for deleted in range(int(min(budget.delete_nodes, self.num_nodes - 1)) + 1):  # a graph keeps a node
            worth = [value for value in taken[deleted:] if value > least][: int(min(budget.change_features, 10**6))]
            of_taking = sum(taken[:deleted]) + sum(worth) - least * len(worth)
            for injected in range(most_injected + 1):
                moved = self._of_size(self.num_nodes, leader, rival)
                moved -= self._of_size(self.num_nodes + injected - deleted, leader, rival)
                best = max(best, (of_taking + moved - injected * least, -deleted, -injected, len(worth)))
        gain, deleted, injected, altered = best[0], -best[1], -best[2], best[3]
        return Change(
            deleted=tuple(order[:deleted]),
            altered=tuple((row, state) for row in order[deleted : deleted + altered]),
            injected=(state,) * injected,
            gain=gain,
        )

    def _of_size(self, size: int, leader: int, rival: int) -> int:
        row = self.by_size[min(size, len(self.by_size) - 1)]
        return int(row[leader] - row[rival])
