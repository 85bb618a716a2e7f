"""``ScoreProblem``: attacks on any defence, through its labels and scores on changed graphs."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.attacks.problem import Outcome, OutcomeTable, Problem, RowChange, RowOf
from agnncert.certificates.votes import IntArray
from agnncert.defence import Defence, GraphData, Model
from agnncert.graphs.graph import edge_values_of
from agnncert.graphs.perturbation import Perturbation

FEATURES_AT_ONCE = 20_000_000  # numbers in the features of all attacked graphs that are looked at together


class ScoreProblem(Problem):
    """Asks the defence for labels and scores on attacked graphs.

    An outcome is the score of every class and, in a last column, the label. If the defence says over how many hops
    anything can matter to a label, the attacked graph is cut down to these, and many are looked at together. Otherwise
    the defence is asked about one whole attacked graph at a time.

    Args:
        model: A trained module in eval mode, as ``certify`` takes it.
        data: A ``Data`` (its nodes are the targets) or a list of ``Data`` (the graphs are).
        defence: Any defence.
    """

    unit = "of the score's lead lost"

    def __init__(self, model: Model, data: GraphData, defence: Defence) -> None:
        super().__init__(model, data, defence)
        self._hops = defence.reach_in_hops() if self.task == "node" else None

    @cached_property
    def num_classes(self) -> int:
        """Number of classes."""
        first_row = np.zeros(min(1, self.num_targets), dtype=np.int64)
        _, scores = self.defence.labels_and_scores(self.model, self.data, first_row)
        return int(scores.shape[1])

    @property
    def most_changes(self) -> int:
        """Twice the largest degree: enough to replace all neighbours of any node."""
        degree = torch.bincount(self.graph.edge_index.view(-1), minlength=1)
        return 2 * (int(degree.max()) + 1)

    def outcomes(self, rows: IntArray) -> OutcomeTable:
        """Returns the scores and the label of some targets in the graph as given."""
        if not len(rows):
            return self._no_outcomes()
        return self._ask(self.data, rows)

    def outcomes_after(self, attacks: Sequence[RowChange]) -> OutcomeTable:
        """Returns the scores and the label of one target in each of many attacked graphs."""
        if self._hops is None:
            parts = [self._ask_whole(row, change) for row, change in attacks]
        else:
            parts = [self._ask_together(batch) for batch in self._batches(attacks, self._hops)]
        return np.concatenate([self._no_outcomes(), *parts])

    def scores(self, outcome: Outcome) -> IntArray:
        """Returns the score of every class of one target."""
        return outcome[:-1]

    def winner(self, outcome: Outcome) -> int:
        """Returns the label of one target."""
        return int(outcome[-1])

    def moved(self, before: Outcome, after: Outcome) -> float:
        """Returns which share of its lead over the best other class the label lost; negative if the lead grew."""
        label = self.winner(before)
        lead = self._lead(before, label)
        return (lead - self._lead(after, label)) / max(1, lead)

    def _lead(self, outcome: Outcome, label: int) -> int:
        scores = self.scores(outcome)
        others = np.delete(scores, label)
        return int(scores[label] - others.max(initial=0))

    def feature_scales(self) -> tuple[float, ...]:
        """Returns by what features are multiplied: by 1 alone if all of them are 0 or 1.

        A defence may be made for such features alone.
        """
        x = self.graph.x
        if bool(((x == 0) | (x == 1)).all()):
            return (1.0,)
        return super().feature_scales()

    def _no_outcomes(self) -> OutcomeTable:
        return np.empty((0, self.num_classes + 1), dtype=np.int64)

    def _ask(self, data: Any, rows: IntArray) -> OutcomeTable:
        labels, scores = self.defence.labels_and_scores(self.model, data, np.asarray(rows, dtype=np.int64))
        return np.column_stack([scores, labels])

    def _ask_whole(self, row: int, change: Perturbation) -> OutcomeTable:
        attacked = change.apply(self.data_of(row))
        if self.task == "graph":
            return self._ask([attacked], np.zeros(1, dtype=np.int64))
        place = RowOf(attacked)[self._ids[row]]
        return self._ask(attacked, np.array([place]))

    def _batches(self, attacks: Sequence[RowChange], hops: int) -> Iterator[list[tuple[int, Data]]]:
        """Yields what can matter to each target in its attacked graph, in batches that fit into memory."""
        batch: list[tuple[int, Data]] = []
        size = 0
        for row, change in attacks:
            place, part = self._near(row, change, hops)
            if batch and size + part.x.numel() > FEATURES_AT_ONCE:
                yield batch
                batch = []
                size = 0
            batch.append((place, part))
            size += part.x.numel()
        if batch:
            yield batch

    def _near(self, row: int, change: Perturbation, hops: int) -> tuple[int, Data]:
        """Returns the row of the target in what can matter to it after a change, and that part of the graph."""
        # What comes near over an added edge is near one of its ends, which the change names.
        near = {row, *self.rows_named(change)}
        border = near
        for _ in range(hops):
            border = self.adjacent(border) - near
            near |= border
        attacked = change.apply(self.part(near))
        return RowOf(attacked)[self._ids[row]], attacked

    def _ask_together(self, batch: Sequence[tuple[int, Data]]) -> OutcomeTable:
        """Returns outcomes on many graphs at once, as parts of one graph that no edge joins."""
        parts = [part for _, part in batch]
        sizes = np.array([part.num_nodes for part in parts])
        starts = np.cumsum(sizes) - sizes
        edges = [part.edge_index + int(start) for part, start in zip(parts, starts, strict=True)]
        names = edge_values_of(parts[0])
        values = {name: torch.cat([part[name] for part in parts]) for name in names}
        dtype = parts[0].x.dtype
        for part in parts[1:]:
            dtype = torch.promote_types(dtype, part.x.dtype)
        x = torch.cat([part.x.to(dtype) for part in parts])
        joined = Data(x=x, edge_index=torch.cat(edges, dim=1), **values)
        positions = np.array([place for place, _ in batch])
        return self._ask(joined, starts + positions)
