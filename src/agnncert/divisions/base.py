"""What a division is, and what the built-in ones share.

A division splits a graph into ``num_groups`` subgraphs so that a small change reaches few of them. Groups depend on ids
alone: whatever an attacker does elsewhere in the graph, an edge stays in its group.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from agnncert.addons import addon
from agnncert.divisions.union import DisjointUnion
from agnncert.errors import DivisionError, SuggestsSettings
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.perturbation import Perturbation


class Division(SuggestsSettings, ABC):
    """Splits a graph into subgraphs so that a small change reaches few of them.

    Divisions of your own inherit from this class. A division must have the methods ``groups``, ``subgraph`` and
    ``votes_moved`` and the attribute ``num_groups``. Everything else has a default.

    Attributes:
        num_groups: Number of subgraphs T.
        self_loops: Whether self-loops are kept as ordinary edges; by default they are dropped.
        unit_costs: For each field of ``Budget`` that is covered, the number of votes that one unit changes at most. A
            certificate refuses budgets with other fields. Built-in divisions have theorems instead.
        divides_edges: Whether each edge has one group, as in the paper's edge-centric division.
        divides_nodes: Whether each node has one group, and its edges are in this one, as in the node-centric division.
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
    divides_edges: ClassVar[bool] = False
    divides_nodes: ClassVar[bool] = False
    is_per_neighbour: ClassVar[bool] = False
    gates_features: ClassVar[bool] = False
    has_disjoint_union: ClassVar[bool] = False

    @abstractmethod
    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Returns the group of every directed edge, shape ``[num_edges]``; −1 for an edge in no subgraph.

        Groups depend on ids only.
        """

    @abstractmethod
    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """Returns the subgraph that the model classifies for vote ``index``.

        In the node task all nodes stay, in their order, and ``abstain`` may mark nodes that abstain here. In the
        graph task (``graph.task == "graph"``) nodes may be dropped; a subgraph without nodes abstains.
        """

    @abstractmethod
    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Returns an upper bound on the votes of ``target`` that ``change`` can alter.

        Args:
            change: What the attacker does.
            graph: The graph before the change.
            target: Row of the target node, or ``None`` in the graph task.

        Raises:
            NotCovered: ``change`` touches something this division proves nothing about.
        """

    def as_defence(self) -> Any:
        """Returns the defence that votes on the subgraphs of this division.

        So whatever takes a defence takes a division, too.
        """
        require_division(self)
        return addon("agnncert.defences", "votes", "agnncert", "a division as a defence")(self)

    @property
    def knows_empty_groups(self) -> bool:
        """Whether it is known which groups are empty for a target, and that an empty one votes as without edges.

        Then ``choose_voting_rule`` can choose a prior, and how empty groups vote.
        """
        is_known = self.divides_edges or self.divides_nodes
        return is_known and not self.gates_features and not self.edges_only

    @property
    def empty_votes_of_nodes(self) -> tuple[Literal["abstain", "no_edge"], ...]:
        """What empty groups of a node may vote for where a voting rule is chosen, the usual one first."""
        return ("abstain",) if self.is_per_neighbour else ("no_edge", "abstain")

    def least_prior(self, task: Task) -> int:
        """Returns the smallest prior with which the prediction without edges counts.

        It is 1 for a node of which every neighbour has a group of its own: no group is empty then, and none votes so.
        """
        return int(task == "node" and self.is_per_neighbour)

    def theorem(self, task: Task) -> str:
        """Returns the name of the theorem that applies.

        By default it is the theorem that uses nothing but the unit costs, as for divisions of your own.
        """
        return f"custom/{task}"

    @property
    def parameters(self) -> dict[str, int]:
        """The numbers that the theorem needs, as a certificate stores them."""
        return dict(self.unit_costs)

    def num_groups_in(self, graph: CanonicalGraph) -> int:
        """Returns the number of subgraphs of a graph; of a joined set, the largest number that a graph of it has."""
        return self.num_groups

    def same_as(self, graph: CanonicalGraph, groups: Tensor) -> Tensor:
        """Returns the first subgraph that is the same graph as each subgraph, shape ``[num_groups]``.

        Only these are evaluated. By default all subgraphs differ.
        """
        return torch.arange(self.num_groups)

    def disjoint_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None = None, within: range | None = None
    ) -> DisjointUnion:
        """Returns the disjoint union of all subgraphs, or of those of some groups.

        Args:
            graph: The graph.
            groups: Group of every edge or, if ``edges`` is given, of these edges.
            edges: Positions of all edges of some groups. Defaults to all edges.
            within: Which groups these are.
        """
        raise NotImplementedError(f"{type(self).__name__} has no disjoint union: evaluate its subgraphs one by one.")


class BuiltInDivision(Division):
    """What edge- and node-centric divisions share: they name the groups that a change can alter."""

    @abstractmethod
    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[Any]:
        """Returns the groups whose vote ``change`` can alter for ``target``."""

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Returns the number of distinct groups that the change touches (paper, Theorems 2 to 5 and 7 to 10)."""
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
        """Returns one noisy version of a graph or a list of graphs, to train on."""

    @abstractmethod
    def count(self, call: Any, graph: CanonicalGraph, rows: Any, samples: int, seed: int) -> Any:
        """Counts how often a model predicts each class of some targets under noise.

        The counts have shape ``[num_targets, num_classes]``.
        """


def number_within(graph: CanonicalGraph, owner: Tensor) -> Tensor:
    """Numbers things from 0 on in each joined graph.

    Args:
        graph: A graph, or joined graphs.
        owner: A node of the graph that each thing belongs to, ascending.
    """
    number = torch.arange(len(owner))
    if graph.batch is None:
        return number
    graph_of_thing = graph.batch[owner]
    num_graphs = int(graph.batch[-1]) + 1 if len(graph.batch) else 0
    counts = torch.bincount(graph_of_thing, minlength=num_graphs)
    starts = torch.cumsum(counts, 0) - counts
    return number - starts[graph_of_thing]


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
    """Checks the hash and the numbers of groups of a division; numpy's integers become ordinary ones.

    Args:
        division: The division, a frozen dataclass.
        counts: Names of the fields that are numbers of groups.

    Raises:
        DivisionError: A number of groups is not a whole number from 1 on, or there is no such hash.
    """
    for name in counts:
        hashing.check_settings(getattr(division, name), division.hash)
        object.__setattr__(division, name, int(getattr(division, name)))


def is_graph_task(graph: CanonicalGraph) -> bool:
    """Tells whether a graph belongs to a graph classification task."""
    return getattr(graph, "task", "node") == "graph"  # groups of a plain Data can be asked for, too
