"""Many graphs, whole or subgraphs, side by side in one disconnected graph."""

from dataclasses import dataclass
from functools import cached_property

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


def runs(owner: Tensor, wanted: Tensor) -> Tensor:
    """All positions at which one of the ``wanted`` owners stands in the sorted sequence ``owner``."""
    first = torch.searchsorted(owner, wanted)
    length = torch.searchsorted(owner, wanted, right=True) - first
    shift = torch.cumsum(length, 0) - length
    return torch.repeat_interleave(first - shift, length) + torch.arange(int(length.sum()))
