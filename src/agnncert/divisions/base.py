"""What a division is, and what the built-in ones share.

A division splits a graph into ``num_groups`` subgraphs so that a small change reaches few of them. Groups depend on ids
alone: whatever an attacker does elsewhere in the graph, an edge stays in its group.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from agnncert.addons import addon
from agnncert.errors import DivisionError, NotCovered
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, Task, node_keys
from agnncert.graphs.perturbation import Perturbation, keys_of, pair_keys


class Division(ABC):
    """Splits a graph into subgraphs so that a small change reaches few of them. Divisions of your own inherit from it.

    A division must have the methods ``groups``, ``subgraph`` and ``votes_moved`` and the attribute ``num_groups``.
    Everything else has a default.

    Attributes:
        num_groups: Number of subgraphs T.
        self_loops: Whether self-loops are kept as ordinary edges; by default they are dropped.
        unit_costs: For each field of ``Budget`` that is covered, the number of votes that one unit changes at most. A
            certificate refuses budgets with other fields. Built-in divisions have theorems instead.
        family: The theorems of the paper that apply: "edge-centric", "node-centric", or ``None``.
        is_per_neighbour: Whether there is one subgraph per neighbour, so that the graph decides how many there are.
        gates_features: Whether a subgraph of the node task shows the features of its own group's nodes alone.
        edges_only: Whether changes of edges alone are covered, for models that mix nodes without an edge between them.
        has_disjoint_union: Whether ``disjoint_union`` is implemented. The fast engine then evaluates all subgraphs in
            one forward pass, in parts or on several machines.
    """

    num_groups: int
    self_loops: bool = False
    unit_costs: Mapping[str, int] = MappingProxyType({})
    edges_only: bool = False
    family: ClassVar[Literal["edge-centric", "node-centric"] | None] = None
    is_per_neighbour: ClassVar[bool] = False
    gates_features: ClassVar[bool] = False
    has_disjoint_union: ClassVar[bool] = False

    @abstractmethod
    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of every directed edge, shape ``[num_edges]``; −1 for an edge in no subgraph. Depends on ids only."""

    @abstractmethod
    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """The subgraph that the model classifies for vote ``index``.

        In the node task all nodes stay, in their order, and ``abstain`` may mark nodes that cast no vote here. In the
        graph task (``graph.task == "graph"``) nodes may be dropped; a subgraph without nodes casts no vote.
        """

    @abstractmethod
    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Upper bound on the votes of ``target`` that ``change`` can alter.

        Args:
            change: What the attacker does.
            graph: The graph before the change.
            target: Row of the target node, or ``None`` in the graph task.

        Raises:
            NotCovered: ``change`` touches something this division proves nothing about.
        """

    def as_defence(self) -> Any:
        """Returns the defence that votes on the subgraphs of this division: whoever takes a defence takes a division."""
        require_division(self)
        return addon("agnncert.defences", "votes", "agnncert", "a division as a defence")(self)

    @property
    def knows_empty_groups(self) -> bool:
        """Whether it is known which groups are empty for a target, and that an empty one votes as without edges.

        Then ``choose_voting_rule`` can choose a prior, and what empty groups cast.
        """
        return self.family is not None and not self.gates_features and not self.edges_only

    def theorem(self, task: Task) -> str:
        """Name of the theorem that applies, a key of ``RULES``. A division of your own is known by its unit costs."""
        return f"custom/{task}"

    @property
    def parameters(self) -> dict[str, int]:
        """The numbers that the theorem needs, as a certificate stores them."""
        return dict(self.unit_costs)

    def num_groups_in(self, graph: CanonicalGraph) -> int:
        """Number of subgraphs of a graph; of a joined set, the largest number that one of its graphs has."""
        return self.num_groups

    def same_as(self, graph: CanonicalGraph, groups: Tensor) -> Tensor:
        """For each subgraph, the first one that is the same graph, shape ``[num_groups]``; only these are evaluated."""
        return torch.arange(self.num_groups)

    def disjoint_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None = None, within: range | None = None
    ) -> "DisjointUnion":
        """The disjoint union of all subgraphs or, if ``edges`` are positions of the edges of some groups, of these.

        ``groups`` is then about these edges, and ``within`` says which groups they are.
        """
        raise NotImplementedError(f"{type(self).__name__} has no disjoint union: evaluate its subgraphs one by one.")


class BuiltInDivision(Division):
    """What edge- and node-centric divisions share: they name the groups that a change can alter."""

    @abstractmethod
    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[Any]:
        """Groups whose vote ``change`` can alter for ``target``."""

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Number of distinct groups that the change touches (paper, Theorems 2 to 5 and 7 to 10)."""
        return len(self.moved_groups(change, graph, target))


class RandomDefence(ABC):
    """A defence that votes over random changes of the graph (noise) instead of subgraphs; no division.

    Its certificates hold with a stated probability. The package ``agnncert_peers`` has such defences: dataclasses whose
    fields ``samples``, ``selection``, ``alpha``, ``scope`` and ``seed`` say how many samples they draw, and how.
    """

    method: ClassVar[str]  # name of the defence

    @property
    def adds_own_logits(self) -> bool:
        """Whether logits without edges and noise are added to those of each noisy graph, in training too."""
        return False

    @abstractmethod
    def noisy(self, data: Any, generator: torch.Generator | None = None) -> Any:
        """One noisy version of a graph or a list of graphs, to train on."""

    @abstractmethod
    def count(self, call: Any, graph: CanonicalGraph, rows: Any, samples: int, seed: int) -> Any:
        """How often a model predicts each class of some targets under noise, shape ``[num_targets, num_classes]``."""


@dataclass(frozen=True)
class DisjointUnion:
    """All subgraphs at once, as one disjoint union of ``p`` copies of nodes and ``m`` edges, ordered by cell.

    A *cell* is one subgraph: its group in the node task, ``graph * num_groups + group`` in the graph task. Copies that
    would neither cast a vote of their own nor send a message are left out.

    Attributes:
        subgraph_index: Subgraph of each copy, ascending, shape ``[p]``.
        node: Which node it is a copy of, shape ``[p]``.
        edge_index: Edges between copies, shape ``[2, m]``.
        edge: Which edge of the graph each one is, shape ``[m]``.
        votes: Whether the copy casts a vote that may differ from the node's default, shape ``[p]``.
        reached: Whether the copy has an edge through which a change can reach it (graph task: whether its subgraph can
            have an edge at all), shape ``[p]``.
        blank: Whether the copy's features are hidden, shape ``[p]``, or ``None`` if none are.
    """

    subgraph_index: Tensor
    node: Tensor
    edge_index: Tensor
    edge: Tensor
    votes: Tensor
    reached: Tensor
    blank: Tensor | None = None


def number_within(graph: CanonicalGraph, owner: Tensor) -> Tensor:
    """Numbers things from 0 on in each joined graph; ``owner`` is a node of the graph of each thing, ascending."""
    number = torch.arange(len(owner))
    if graph.batch is None:
        return number
    of_graph = graph.batch[owner]
    counts = torch.bincount(of_graph, minlength=int(graph.batch[-1]) + 1 if len(graph.batch) else 0)
    return number - (torch.cumsum(counts, 0) - counts)[of_graph]


def require_division(division: Any) -> None:
    """Raises DivisionError if ``division`` is not an instance of ``Division``, or has no ``num_groups``."""
    example = "a division such as ac.NodeCentric(num_groups=60)"
    if isinstance(division, type):
        raise DivisionError(f"{division.__name__} is a class, expected {example}: pass an instance of it.")
    if division is None or isinstance(division, str | int):
        raise DivisionError(f"division={division!r}: expected {example}.")
    kind = type(division).__name__
    if not isinstance(division, Division):
        raise DivisionError(f"a {kind} is no division: expected {example}. One of your own inherits from ac.Division.")
    if not division.is_per_neighbour and not hasattr(division, "num_groups"):
        raise DivisionError(f"{kind} has no num_groups: a division says how many subgraphs there are.")


def check_settings(division: Any, *counts: str) -> None:
    """Checks the hash and the fields ``counts``, numbers of groups; numpy's integers become ordinary ones."""
    for name in counts:
        hashing.check_settings(getattr(division, name), division.hash)
        object.__setattr__(division, name, int(getattr(division, name)))


def is_graph_task(graph: CanonicalGraph) -> bool:
    """Whether ``graph`` (checked) belongs to a graph classification task."""
    return getattr(graph, "task", "node") == "graph"  # groups of a plain Data can be asked for, too


def union_of_edges(
    graph: CanonicalGraph, cells: Tensor, copies: Tensor | None = None, edges: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Puts every edge, with copies of its endpoints, into the edge's cell.

    Args:
        graph: The graph.
        cells: Cell of every edge, shape ``[num_edges]``.
        copies: Further copies of nodes to put in, each as ``cell * num_nodes + node``.
        edges: Positions of the edges to put in, if these are not all; ``cells`` is then about these.

    Returns:
        ``cell``, ``node``, ``edge_index`` and ``edge``, as in :class:`DisjointUnion`.
    """
    num_nodes = graph.x.size(0)
    ascending = bool((cells[1:] >= cells[:-1]).all())
    order = torch.arange(len(cells)) if ascending else stable_order(cells)
    edge = order if edges is None else edges[order].long()
    ends = cells[order] * num_nodes + graph.edge_index[:, edge]
    wanted = ends.view(-1) if copies is None else torch.cat([ends.view(-1), copies])
    copy, where = _numbered(wanted)
    cell = torch.div(copy, num_nodes, rounding_mode="floor")
    return cell, copy - cell * num_nodes, where[: ends.numel()].view(2, -1), edge


def stable_order(cells: Tensor) -> Tensor:
    """As ``torch.argsort(cells, stable=True)``, by counting if numbers are small."""
    low, high = (int(bound) for bound in cells.aminmax()) if len(cells) else (0, 0)
    if low >= 0 and high < 2**16:
        return torch.from_numpy(np.argsort(cells.numpy().astype(np.uint16), kind="stable"))
    return torch.argsort(cells, stable=True)


def _numbered(values: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct ones among whole numbers, ascending, and the place of each value among them."""
    low, high = (int(bound) for bound in values.aminmax()) if len(values) else (0, 0)
    if high - low > 4 * len(values):  # too few to tick them off a list of all numbers in between
        # As torch.unique, in half the time: numpy sorts with the processor's widest instructions.
        order = np.argsort(values.numpy())
        ascending = values.numpy()[order]
        first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.cumsum(first) - 1
        return torch.from_numpy(ascending[first]), torch.from_numpy(number)
    seen = torch.zeros(high - low + 1, dtype=torch.bool)
    seen[values - low] = True
    distinct = seen.nonzero().view(-1)
    place = torch.empty(len(seen), dtype=torch.int64)
    place[distinct] = torch.arange(len(distinct))
    return distinct + low, place[values - low]


def touched_nodes(change: Perturbation) -> set[int]:
    """Keys of the nodes that a change injects, deletes or gives other features."""
    return {*keys_of(change.inject_nodes), *keys_of(change.delete_nodes), *keys_of(change.change_features)}


def touched_pairs(change: Perturbation) -> list[tuple[int, int]]:
    """Keys of the pairs of nodes between which a change adds, deletes or alters an edge."""
    altered = [(u, v) for u, v, _ in change.change_edges]
    return pair_keys([*change.add_edges, *change.delete_edges, *altered])


def touched_edge_groups(change: Perturbation, num_groups: int, hash: str) -> set[int]:
    """Groups of the pairs of :func:`touched_pairs` where edges are divided by their pair of ids."""
    pairs = touched_pairs(change)
    if not pairs:
        return set()
    keys = np.array(pairs, dtype=np.int64).view(np.uint64)
    return set(hashing.edge_groups(keys[:, 0].copy(), keys[:, 1].copy(), num_groups, hash).tolist())


def require_covered(change: Perturbation, graph: CanonicalGraph, target: int | None, target_features: bool) -> None:
    """Raises NotCovered for changes about which the edge- and node-centric theorems say nothing.

    ``target_features`` says whether the division covers changes of the target's own features.
    """
    if change.delete_nodes and not graph.stable_ids:
        raise NotCovered(
            "the change deletes nodes of a graph whose ids are row numbers: all later nodes are renamed. "
            "Give it node_id."
        )
    if target is None:
        return
    # Another node may share the target's key: then too much is refused, never too little.
    own = int(node_keys(graph)[target])
    if own in keys_of(change.delete_nodes):
        raise NotCovered("the change deletes the target itself: no certificate speaks of a node that is gone.")
    if own in keys_of(change.change_features) and not target_features:
        raise NotCovered(
            "the change alters the target's own features, which take part in every vote of the target. "
            "GatedNodeCentric covers this."
        )
