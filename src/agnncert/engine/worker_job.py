"""What a worker needs to compute the votes of any range of groups."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy.typing as npt
import torch

from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.range_votes import RangeVotes, compute_range_votes
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import CanonicalGraph
from agnncert.models.digest import model_digest


@dataclass(frozen=True)
class VoteJob:
    """What a worker needs to cast any range of groups: numpy arrays, so that they are sent without a copy."""

    arrays: dict[str, npt.NDArray[Any]]
    plain: dict[str, Any]
    edges: npt.NDArray[Any]
    start: IntArray
    division: Division
    rows: IntArray
    call: ModelAdapter
    digest: str
    tolerance: float | None
    memory_limit: int | None

    @classmethod
    def of(
        cls, call: ModelAdapter, edges_by_group: EdgesByGroup, tolerance: float | None, memory_limit: int | None
    ) -> "VoteJob":
        """The job of casting the votes of a graph."""
        fields = vars(edges_by_group.graph)
        arrays = {name: value.detach().cpu().numpy() for name, value in fields.items() if torch.is_tensor(value)}
        plain = {name: value for name, value in fields.items() if name not in arrays}
        edges, start = edges_by_group.sorted_edges()
        return cls(
            arrays, plain, edges.numpy(), start, edges_by_group.division, edges_by_group.rows, replace(call),
            model_digest(call.model), tolerance, memory_limit,
        )  # fmt: skip

    def caster(self) -> Callable[[range], RangeVotes]:
        """What casts the votes of a range; made once in every worker.

        Raises:
            ModelContractError: The model that arrived is another one than was sent.
        """
        if model_digest(self.call.model) != self.digest:
            raise ModelContractError(
                "the model is another one on the worker than on the driver: its code differs. Install the same there."
            )
        fields: dict[str, Any] = {name: _tensor(array) for name, array in self.arrays.items()}
        graph = CanonicalGraph(**fields, **self.plain)
        edges_by_group = EdgesByGroup(graph, self.division, self.rows, by_group=(_tensor(self.edges), self.start))
        x = graph.x.to(self.call.dtype)
        features = Features(x, SparseRows.of(x), most_kept=self.memory_limit)
        given = {"features": features, "tolerance": self.tolerance, "memory_limit": self.memory_limit}
        return partial(compute_range_votes, self.call, edges_by_group, **given)  # type: ignore[arg-type]


@torch.no_grad()
def compute_part(caster: Callable[[range], RangeVotes], groups: range) -> RangeVotes:
    """Casts the votes of a range of groups in a worker."""
    return caster(groups)


def _tensor(array: npt.NDArray[Any]) -> torch.Tensor:
    """An array as a tensor on the same memory; of a store that nobody may write to, and nobody does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)
