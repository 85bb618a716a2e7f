"""``VoteJob``: what a worker needs to compute the votes of any range of groups."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
import torch

from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup, SortedEdges
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.range_votes import RangeVotes, compute_range_votes
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import CanonicalGraph
from agnncert.models.digest import model_digest

ComputeRange = Callable[[range], RangeVotes]


@dataclass(frozen=True)
class VoteJob:
    """What a worker needs to compute the votes of any range of groups. Numpy arrays are sent without a copy.

    Attributes:
        graph_arrays: Fields of the graph that are tensors.
        graph_values: All other fields of the graph.
        sorted_edges: Positions of the edges, sorted by group.
        group_start: Where each group begins in ``sorted_edges``.
        division: How the graph is divided.
        rows: Rows of the targets.
        bound_model: The model, bound to the graph.
        digest: Digest of the model.
        tolerance: As in ``compute_votes``.
        memory_limit: As in ``compute_votes``.
    """

    graph_arrays: dict[str, npt.NDArray[Any]]
    graph_values: dict[str, Any]
    sorted_edges: npt.NDArray[Any]
    group_start: IntArray
    division: Division
    rows: IntArray
    bound_model: ModelAdapter
    digest: str
    tolerance: float | None
    memory_limit: int | None

    @classmethod
    def of(
        cls, bound_model: ModelAdapter, edges_by_group: EdgesByGroup, tolerance: float | None, memory_limit: int | None
    ) -> "VoteJob":
        """Returns the job of computing the votes of a graph; the arguments are those of ``compute_votes``."""
        arrays = {}
        values = {}
        for name, value in vars(edges_by_group.graph).items():
            if torch.is_tensor(value):
                arrays[name] = value.detach().cpu().numpy()
            else:
                values[name] = value
        edges, start = edges_by_group.sorted_edges()
        return cls(
            graph_arrays=arrays,
            graph_values=values,
            sorted_edges=edges.numpy(),
            group_start=start,
            division=edges_by_group.division,
            rows=edges_by_group.rows,
            bound_model=replace(bound_model),
            digest=model_digest(bound_model.model),
            tolerance=tolerance,
            memory_limit=memory_limit,
        )

    def prepare(self) -> ComputeRange:
        """Returns a function that computes the votes of a range; it is made once in every worker.

        Raises:
            ModelContractError: The model that arrived is another one than was sent.
        """
        if model_digest(self.bound_model.model) != self.digest:
            raise ModelContractError(
                "the model is another one on the worker than on the driver: its code differs. Install the same there."
            )
        tensors: dict[str, Any] = {name: _tensor(array) for name, array in self.graph_arrays.items()}
        graph = CanonicalGraph(**tensors, **self.graph_values)
        sorted_edges = SortedEdges(_tensor(self.sorted_edges), self.group_start)
        edges_by_group = EdgesByGroup(graph, self.division, self.rows, sorted_edges=sorted_edges)
        x = graph.x.to(self.bound_model.dtype)
        features = Features(x, SparseRows.of(x), most_kept=self.memory_limit)

        def compute(groups: range) -> RangeVotes:
            return compute_range_votes(
                self.bound_model, edges_by_group, groups, features, self.tolerance, self.memory_limit
            )

        return compute


@torch.no_grad()
def compute_part(compute: ComputeRange, groups: range) -> RangeVotes:
    """Computes the votes of a range of groups in a worker."""
    return compute(groups)


def _tensor(array: npt.NDArray[Any]) -> torch.Tensor:
    """Returns an array as a tensor on the same memory, which may be read-only: nobody writes to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)
