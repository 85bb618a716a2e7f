"""Records of ranges of nodes: their votes from all groups, put together and counted where they lie.

The certificate is the records one after the other, whoever counted which of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.ids import id_array
from agnncert.certificates.votes import IntArray, VoteRecord, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import Breaking, VoteEvidence
from agnncert.engine import fast
from agnncert.engine.features import Features
from agnncert.engine.range_votes import abstaining, merged_votes, no_reach
from agnncert.engine.reach import ReachTable, SmallComponents, joined_small, reach_of_nodes
from agnncert.engine.rounding import Predictions
from agnncert.graphs.graph import CanonicalGraph
from agnncert.proving.certificate import Certificate
from agnncert.storage import Arrays
from agnncert_large.partitioned.graph import NodeRange
from agnncert_large.partitioned.voting import (
    VoteTask,
    VoteWork,
    Voting,
    load_components,
    load_votes,
    read_arrays,
    write_arrays,
)

TEXTS = ("target.text", "target.ptr")


@dataclass(frozen=True)
class CountWork:
    """What the counting of all ranges shares.

    Attributes:
        votes: What the tasks of voting shared.
        tasks: All of these tasks.
        voting_rule: How votes are added up, with its defaults filled in.
        theorem: Name of the theorem.
    """

    votes: VoteWork
    tasks: Sequence[VoteTask]
    voting_rule: VotingRule
    theorem: str

    def prepare(self) -> "Counting":
        """Opens the graph in a worker."""
        return Counting(self, self.votes.prepare())

    def file_of(self, number: int) -> str:
        """Returns the name of the record of a range."""
        return f"records/range={number:05d}.votes"


class Counted(NamedTuple):
    """What is known about the record of a range.

    Attributes:
        targets: Number of its targets.
        bytes_read: Bytes that were read for it.
    """

    targets: int
    bytes_read: int


@dataclass
class Counting:
    """Counts the votes of ranges in a worker."""

    work: CountWork
    voting: Voting
    _small: list[SmallComponents] = field(default_factory=list)

    @torch.no_grad()
    def do(self, number: int) -> Counted:
        """Puts the votes of a range together and stores its record."""
        work, graph = self.work.votes, self.voting.graph
        read = graph.place.seen.bytes_read + work.votes.seen.bytes_read
        nodes = graph.nodes(number)
        chosen = self._chosen(number)
        votes, reach = self.votes(number)
        evidence = VoteEvidence.from_votes(
            votes,
            self.work.theorem,
            self.work.voting_rule,
            reach,
            ids=graph.id_kind,
            parameters=work.division.parameters,
        )
        arrays = {f"evidence.{name}": array for name, array in evidence.tensors().items()}
        arrays |= _ids_as_arrays(nodes.id[chosen])
        arrays |= {"row": nodes.row[chosen], "degree": nodes.degree[chosen]}
        if nodes.y is not None:
            arrays["truth"] = nodes.y[chosen]
        header = {"key": work.key, "settings": evidence.settings()}
        write_arrays(work.votes, self.work.file_of(number), arrays, header)
        now = graph.place.seen.bytes_read + work.votes.seen.bytes_read
        return Counted(len(chosen), now - read)

    @torch.no_grad()
    def votes(self, number: int) -> tuple[Votes, ReachTable]:
        """Puts the votes on a range together, sorted by target and group."""
        work = self.work.votes
        nodes = self.voting.graph.nodes(number)
        chosen = self._chosen(number)
        tasks = [task for task in self.work.tasks if number in task.ranges]
        votes = merged_votes(
            [load_votes(work, task, number) for task in tasks],
            work.division.num_groups,
            len(chosen),
            0 if work.bound_model is None else work.bound_model.num_classes,
            self._default(number, nodes, chosen),
        )
        return votes, self._reach(nodes, chosen, np.diff(votes.indptr))

    def _chosen(self, number: int) -> IntArray:
        """Returns which nodes of a range are targets."""
        part = self.voting.graph.ranges[number]
        return np.flatnonzero(self.work.votes.is_target(range(part.first, part.last + 1)))

    def _default(self, number: int, nodes: NodeRange, chosen: Any) -> Predictions:
        """Returns the votes of the targets without edges."""
        work = self.work.votes
        if work.division.gates_features or work.bound_model is None:
            return abstaining(len(chosen))
        features = Features(self.voting.graph.features(number).to(work.bound_model.dtype))
        no_arcs = self.voting.graph.arcs(0, range(0, 0)).values
        graph = CanonicalGraph(
            x=features.x,
            edge_index=torch.empty(2, 0, dtype=torch.int64),
            node_key=torch.from_numpy(nodes.key),
            edge_weight=no_arcs.get("edge_weight"),
            edge_attr=no_arcs.get("edge_attr"),
        )
        return fast.no_edge_votes(work.bound_model, graph, features, chosen, work.tolerance)

    def _reach(self, nodes: NodeRange, chosen: Any, cap: Any) -> ReachTable:
        """Returns the reach tables of the targets; they are empty where the division needs none."""
        if not self.work.votes.division.divides_edges:
            return no_reach(len(chosen))
        if not self._small:
            parts = [load_components(self.work.votes, task) for task in self.work.tasks]
            self._small = [joined_small(parts)]
        target_of = np.full(self.voting.graph.num_nodes, -1, dtype=np.int32)
        target_of[nodes.row[chosen]] = np.arange(len(chosen))
        return reach_of_nodes(self._small, target_of, cap)


def do_count(counting: Counting, number: int) -> Counted:
    """Counts the votes of a range in a worker."""
    return counting.do(number)


@dataclass(frozen=True)
class StateWork:
    """What the statements about all ranges share.

    Attributes:
        count: What the counting shared.
        claim: The claim.
        budgets: What is stated about.
        rest: The budget on top of which new neighbours are counted.
        folder: Where statements are stored.
    """

    count: CountWork
    claim: Claim
    budgets: tuple[Budget, ...]
    rest: Budget
    folder: str

    def prepare(self) -> "StateWork":
        """Returns itself: nothing has to be opened."""
        return self

    def file_of(self, number: int) -> str:
        """Returns the name of the file with the statements about a range."""
        return f"{self.folder}/range={number:05d}.votes"


class Stated(NamedTuple):
    """What the statements about a range add to those about all.

    Attributes:
        breaking: For each budget, what it takes to break targets.
        has_text: Whether some id is no whole number.
    """

    breaking: tuple[Breaking, ...]
    has_text: bool


def do_state(work: StateWork, number: int) -> Stated:
    """Derives labels, radii and answers to budgets of the targets of a range, and stores them."""
    votes = work.count.votes
    part = read_record(work.count, work.claim, number)
    evidence = part.evidence
    assert isinstance(evidence, VoteEvidence)
    holds, breaking, new_edges = evidence.costs(work.budgets, work.rest)
    arrays: dict[str, Any] = {
        "label": part.label,
        "radius": part.radius,
        "new_neighbours": new_edges,
        "holds": holds,
    }
    own_radius = evidence.structure_radius()
    if own_radius is not None:
        arrays["structure_radius"] = own_radius
    write_arrays(votes.votes, work.file_of(number), arrays, {"key": votes.key})
    return Stated(breaking, part.target.dtype != np.int64)


def read_record(work: CountWork, claim: Claim, number: int) -> Certificate:
    """Reads the record of a range as a certificate about its targets."""
    header, arrays = read_arrays(work.votes.votes, work.file_of(number), work.votes.key)
    return Certificate(
        claim,
        evidence_of(arrays, header["settings"]),
        ids_of(arrays),
        arrays["row"],
        arrays.get("truth"),
        arrays["degree"],
    )


def evidence_of(arrays: Arrays, settings: Mapping[str, Any]) -> VoteEvidence:
    """Returns the evidence of a record."""
    tensors = {name.removeprefix("evidence."): array for name, array in arrays.items() if name.startswith("evidence.")}
    return VoteEvidence.load(tensors, settings)


def record_of(work: CountWork, number: int) -> VoteRecord:
    """Reads the votes of a range."""
    header, arrays = read_arrays(work.votes.votes, work.file_of(number), work.votes.key)
    return evidence_of(arrays, header["settings"])


def _ids_as_arrays(ids: Any) -> Arrays:
    """Returns ids as arrays of numbers, or of text if some are that."""
    if ids.dtype == np.int64:
        return {"target": ids}
    texts = [str(each).encode() for each in ids.tolist()]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return {"target.text": np.frombuffer(b"".join(texts), dtype=np.uint8), "target.ptr": ends}


def ids_of(arrays: Arrays) -> Any:
    """Returns the ids of a record."""
    if "target" in arrays:
        return arrays["target"]
    content, ends = arrays["target.text"].tobytes(), arrays["target.ptr"].tolist()
    return id_array([content[a:b].decode() for a, b in pairwise(ends)])
