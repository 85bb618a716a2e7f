"""``VoteQueue``: runs the model on edited subgraphs in batches.

These votes only guide a search: the votes of a result are computed on the attacked graph.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from agnncert.attacks.edited_subgraphs import ADDED, GraphSubgraphs, NodeSubgraphs, NumberedEdge, Subgraph
from agnncert.attacks.edits import INJECTED, Edit
from agnncert.attacks.vote_problem import VoteProblem
from agnncert.certificates.votes import ABSTAIN
from agnncert.engine.features import Features
from agnncert.engine.rounding import stable_predictions
from agnncert.engine.union import CHUNK_ROWS


class Waiting(NamedTuple):
    """A subgraph whose vote is not computed yet.

    Attributes:
        place: Position of the vote.
        first_row: Row of the first node of its graph among those of all graphs.
        subgraph: The subgraph after the edit.
        edit: The edit.
    """

    place: int
    first_row: int
    subgraph: Subgraph
    edit: Edit


@dataclass
class Batch:
    """Subgraphs side by side.

    Attributes:
        rows: Row of the features of each node.
        hidden: Whether these features are hidden.
        starts: Position of the first node of each subgraph.
        edges: Positions of the two ends, and the number of the edge in the graph.
        changed_values: Positions in ``edges``, and the values that edits give them.
    """

    rows: list[int] = field(default_factory=list)
    hidden: list[bool] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    edges: list[NumberedEdge] = field(default_factory=list)
    changed_values: list[tuple[int, Any]] = field(default_factory=list)


class VoteQueue:
    """Collects edited subgraphs and runs the model on them in batches.

    Args:
        problem: Model, data and a built-in division.
        features: What edits give to nodes, one row each.
    """

    def __init__(self, problem: VoteProblem, features: Tensor) -> None:
        self.bound_model = problem.bound_model
        self.graph = problem.graph
        self.num_nodes = int(problem.graph.num_nodes)
        self.features = Features(torch.cat([problem.graph.x, features]).to(self.bound_model.dtype))
        self.changed_value = next(iter(self.graph.edge_values), None)
        self._votes: list[int] = []
        self._waiting: list[Waiting] = []
        self._num_rows = 0

    def add(self, subgraphs: NodeSubgraphs | GraphSubgraphs, group: int, target: int, edit: Edit) -> int:
        """Queues one subgraph and returns the position of its vote in ``votes``."""
        place = len(self._votes)
        self._votes.append(ABSTAIN)
        subgraph = subgraphs.edited(group, target, edit)
        if subgraph is None:
            return place
        if self._num_rows > CHUNK_ROWS:
            self._run()
        self._waiting.append(Waiting(place, subgraphs.first_row, subgraph, edit))
        self._num_rows += len(subgraph.nodes)
        return place

    def votes(self) -> list[int]:
        """Returns all votes, in the order in which subgraphs were added, and begins anew."""
        self._run()
        votes = self._votes
        self._votes = []
        return votes

    @torch.no_grad()
    def _run(self) -> None:
        if not self._waiting:
            return
        batch = Batch()
        for waiting in self._waiting:
            self._append(batch, waiting)
        for waiting, vote in zip(self._waiting, self._predict(batch), strict=True):
            self._votes[waiting.place] = vote
        self._waiting = []
        self._num_rows = 0

    def _append(self, batch: Batch, waiting: Waiting) -> None:
        """Puts one subgraph, as its edit leaves it, beside those of a batch."""
        subgraph = waiting.subgraph
        edit = waiting.edit
        start = len(batch.rows)
        batch.starts.append(start)
        batch.hidden += subgraph.hidden
        new_features = {INJECTED: edit.injected, **dict(edit.change_features)}
        for node in subgraph.nodes:
            features = new_features.get(node)
            batch.rows.append(waiting.first_row + node if features is None else self.num_nodes + features)
        new_values: dict[tuple[int, int], Any] = {}
        for u, v, value in edit.change_edges:
            new_values[u, v] = value
            new_values[v, u] = value
        for u, v, number in subgraph.edges:
            value = new_values.get((subgraph.nodes[u], subgraph.nodes[v]))
            copies = 1
            if value is not None and self.changed_value is None:
                copies = int(value)  # edges have no values here, so they are copied instead
            elif value is not None:
                batch.changed_values.append((len(batch.edges), value))
            batch.edges += [(start + u, start + v, number)] * copies

    def _predict(self, batch: Batch) -> list[int]:
        """Returns the vote of each subgraph of a batch."""
        hidden = torch.tensor(batch.hidden) if any(batch.hidden) else None
        x = self.features.rows(torch.tensor(batch.rows), hidden)
        edges = torch.tensor(batch.edges, dtype=torch.int64).view(-1, 3).t()
        values = self._values(edges[2], batch)
        first = torch.tensor(batch.starts)
        if self.bound_model.task == "node":
            logits = self.bound_model(x, edges[:2], values)[first]
        else:
            sizes = torch.diff(first, append=torch.tensor([len(batch.rows)]))
            graph_of_node = torch.repeat_interleave(torch.arange(len(first)), sizes)
            logits = self.bound_model(x, edges[:2], values, graph_of_node)
        predictions: list[int] = stable_predictions(logits, 0.0)[0].tolist()
        return predictions

    def _values(self, numbers: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Returns weights and attributes of all edges of a batch; those of added edges are 1."""
        values = {}
        for name in self.bound_model.edge_inputs:
            stored = self.graph.edge_values[name]
            ones = torch.ones(1, *stored.shape[1:], dtype=stored.dtype)
            places = torch.where(numbers == ADDED, len(stored), numbers)
            values[name] = torch.cat([stored, ones])[places]
            if name == self.changed_value:
                for place, value in batch.changed_values:
                    values[name][place] = torch.as_tensor(value, dtype=stored.dtype)
        return values
