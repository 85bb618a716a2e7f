"""For a training loop of one's own: the subgraphs of a division as a dataset, and the loss of a vote."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions.base import Division
from agnncert.errors import SettingsError, suggests_arguments
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.graphs.labels import class_numbers, graph_classes
from agnncert.graphs.targets import prepared
from agnncert.training.losses import vote_losses

_MASKS = ("train_mask", "val_mask", "test_mask")


class Subgraphs(Sequence[Data]):
    """The subgraphs of a graph, or of several graphs, that vote: a dataset for PyG's ``DataLoader``.

    In the node task there is one ``Data`` for each group, with all nodes: ``x``, ``edge_index`` and what edges carry,
    ``y`` and the masks of the graph, and ``target``, the row of each node. Nodes that abstain in this subgraph are in
    no mask. In the graph task there is one ``Data`` for each graph and each of its groups that has nodes, with ``y``
    and ``target``, the position of the graph. ``group`` is the group in both. A subgraph is made when it is asked for.

    Attributes:
        data: The data as given.
        division: The division.
    """

    def __init__(self, data: Any, division: Division) -> None:
        canonical_data = prepared(data)
        self.data = canonical_data.data
        self.division = division
        self._graph = canonical_data.targets(self_loops=division.self_loops).graph
        if canonical_data.task == "node":
            self._groups = division.groups(self._graph)
            self._places = [(0, group) for group in range(division.num_groups_in(self._graph))]
            return
        self._labels = graph_classes(self.data)
        self._graphs = [one_graph(self._graph, row) for row in range(len(self.data))]
        self._groups_of = [division.groups(graph) for graph in self._graphs]
        self._places = [place for row in range(len(self._graphs)) for place in self._places_of(row)]

    def _places_of(self, row: int) -> Iterator[tuple[int, int]]:
        graph = self._graphs[row]
        for group in range(self.division.num_groups_in(graph)):
            if self.division.subgraph(graph, self._groups_of[row], group).num_nodes:
                yield row, group

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: slice) -> list[Data]: ...
    def __getitem__(self, index: int | slice) -> Data | list[Data]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        row, group = self._places[index]
        if self._graph.task == "node":
            return self._of_nodes(group)
        subgraph = self.division.subgraph(self._graphs[row], self._groups_of[row], group)
        made = _as_data(subgraph, group)
        made.y = self._labels[row].view(1)
        made.target = torch.tensor([row])
        return made

    def _of_nodes(self, group: int) -> Data:
        subgraph = self.division.subgraph(self._graph, self._groups, group)
        made = _as_data(subgraph, group)
        made.target = torch.arange(subgraph.num_nodes)
        if self.data.y is not None:
            made.y = class_numbers(self.data.y, subgraph.num_nodes)
        for name in _MASKS:
            mask = getattr(self.data, name, None)
            if mask is not None:
                flags = torch.as_tensor(mask).bool()
                made[name] = flags if subgraph.abstain is None else flags & ~subgraph.abstain
        return made

    def __repr__(self) -> str:
        return f"Subgraphs({len(self)} subgraphs, {self.division})"


def _as_data(subgraph: CanonicalGraph, group: int) -> Data:
    return Data(x=subgraph.x, edge_index=subgraph.edge_index.long(), group=group, **subgraph.edge_values)


@suggests_arguments
def vote_loss(logits: Tensor, target: Tensor, y: Tensor, class_weight: Tensor | None = None) -> Tensor:
    """Returns the mean loss of the votes of targets, each of which is the mean of its predictions on subgraphs.

    A subgraph of two or three edges says little. A loss on each of them would teach a model to predict the most
    frequent class. This loss asks only that the subgraphs of a target are right together.

    Args:
        logits: Predictions on subgraphs, shape ``[num_votes, num_classes]``.
        target: The target that each of them is about, shape ``[num_votes]``; any whole numbers.
        y: Class of that target, shape ``[num_votes]``.
        class_weight: Weight of each class, shape ``[num_classes]``. Defaults to 1 for all.

    Returns:
        A scalar.

    Raises:
        SettingsError: The shapes do not agree, or there is no prediction.

    Example:
        >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
        >>> right = vote_loss(logits, target=torch.tensor([5, 5, 5]), y=torch.tensor([0, 0, 0]))
        >>> wrong = vote_loss(logits, target=torch.tensor([5, 5, 5]), y=torch.tensor([1, 1, 1]))
        >>> bool(right < wrong)
        True
    """
    if logits.dim() != 2 or target.shape != logits.shape[:1] or y.shape != target.shape or not len(target):
        raise SettingsError(
            f"logits, target and y have shapes {tuple(logits.shape)}, {tuple(target.shape)} and {tuple(y.shape)}: "
            "expected [num_votes, num_classes], [num_votes] and [num_votes], and at least one vote."
        )
    targets, owner = torch.unique(target, return_inverse=True)
    class_of_target = y.new_zeros(len(targets)).index_copy(0, owner, y)
    return vote_losses(logits, owner, class_of_target, class_weight).mean()
