"""Many graphs, whole or subgraphs, side by side in one disconnected graph; and which of them are equal."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class SideBySide:
    """Whole graphs or subgraphs side by side, ordered by the training graph that they belong to.

    Attributes:
        owner: Training graph of each copy of a node, ascending.
        cell: Which of the graphs side by side the copy belongs to, ascending.
        node: Which node it is a copy of.
        edge_index: Edges between copies, in the order of their owners.
        edge: Which edge of the joined graphs each of these edges is.
    """

    owner: Tensor
    cell: Tensor
    node: Tensor
    edge_index: Tensor
    edge: Tensor

    @cached_property
    def _edge_owner(self) -> Tensor:
        return self.owner[self.edge_index[0]]

    def part(self, graphs: Tensor, wanted: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The part that belongs to some training graphs (ascending); only the ``wanted`` copies, if given.

        Returns:
            Positions of its copies of nodes, positions of its edges, and ``edge_index`` between these copies.
        """
        copies = runs(self.owner, graphs)
        arcs = runs(self._edge_owner, graphs)
        if wanted is not None:
            copies, arcs = copies[wanted[copies]], arcs[wanted[self.edge_index[0, arcs]]]
        place = torch.empty(len(self.owner), dtype=torch.int64)
        place[copies] = torch.arange(len(copies))
        return copies, arcs, place[self.edge_index[:, arcs]]

    def kinds(self, x: Tensor, values: Mapping[str, Tensor]) -> tuple[Tensor, "SideBySide"]:
        """Finds equal cells: the same features in the same order, joined in the same way with the same values.

        With many groups most subgraphs of molecules are one edge between two atoms, so a few hundred cells stand for a
        hundred thousand. Cells are compared by 128 bits of hash: two that differ are mixed up with a probability far
        below that of a hardware fault, and then training, not a certificate, would suffer.

        Args:
            x: Features of all nodes.
            values: Values of all edges, by name.

        Returns:
            The kind of each cell, in order; and one cell of each kind, whose owner is the number of the kind.
        """
        cell, where = torch.unique_consecutive(self.cell, return_inverse=True)
        begin = torch.searchsorted(where, torch.arange(len(cell)))
        local = torch.arange(len(where)) - begin[where]
        node_word = torch.stack([_row_numbers(x)[self.node], local])
        edge_words = [local[self.edge_index[0]], local[self.edge_index[1]]]
        edge_words += [_row_numbers(value)[self.edge] for value in values.values()]
        kind, first = _numbered(
            *(
                torch.zeros(len(cell), dtype=torch.int64)
                .index_add(0, where, _mixed(node_word, seed))
                .index_add(0, where[self.edge_index[0]], _mixed(torch.stack(edge_words), seed + 1))
                for seed in (2, 4)
            )
        )
        is_first = torch.zeros(len(cell), dtype=torch.bool)
        is_first[first] = True
        copies = is_first[where].nonzero().view(-1)
        arcs = is_first[where[self.edge_index[0]]].nonzero().view(-1)
        place = torch.empty(len(where), dtype=torch.int64)
        place[copies] = torch.arange(len(copies))
        owner = kind[where[copies]]
        return kind, SideBySide(owner, owner, self.node[copies], place[self.edge_index[:, arcs]], self.edge[arcs])


def runs(owner: Tensor, wanted: Tensor) -> Tensor:
    """All positions at which one of the ``wanted`` owners stands in the sorted sequence ``owner``."""
    first = torch.searchsorted(owner, wanted)
    length = torch.searchsorted(owner, wanted, right=True) - first
    shift = torch.cumsum(length, 0) - length
    return torch.repeat_interleave(first - shift, length) + torch.arange(int(length.sum()))


def _row_numbers(table: Tensor) -> Tensor:
    """A number for each row, the same for equal rows."""
    numbers: Tensor = torch.unique(table.reshape(len(table), -1), dim=0, return_inverse=True)[1]
    return numbers


def _mixed(words: Tensor, seed: int) -> Tensor:
    """64 bits that depend on all words of a column (splitmix64; integers wrap around)."""
    mixed = torch.full((words.size(1),), seed, dtype=torch.int64)
    for word in words:
        mixed = (mixed ^ word) + -7046029254386353131
        mixed = (mixed ^ (mixed >> 30)) * -4658895280553007687
        mixed = (mixed ^ (mixed >> 27)) * -7723592293110705685
        mixed = mixed ^ (mixed >> 31)
    return mixed


def _numbered(*keys: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers for equal columns of keys in the order in which they first appear, and where each first appears."""
    columns = [key.numpy() for key in keys]
    order = np.lexsort(columns)
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(is_new) - 1
    first = order[is_new]  # lexsort is stable: the first of its kind
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return torch.from_numpy(rank[group]), torch.from_numpy(np.sort(first))
