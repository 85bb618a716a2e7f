"""``Threat``: a kind of attack, and every way to spend an attack of some size."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import FloatArray
from agnncert.controls.trees import OWN_TREES
from agnncert.errors import SettingsError, did_you_mean
from agnncert.proving.certificate import Certificate
from agnncert.training.settings import Against
from agnncert.undefended import GRAPH_FREE, MAJORITY

# Controls, beside those of ``agnncert.study``.
NO_EDGES = "prediction without edges"
BAG_OF_NODES = "bag of nodes, voting"
CROSS_FITTED = "graph-free, cross-fitted"
TAUGHT_BY = {"graph-free, taught by gcn": "gcn", "graph-free, taught by mlp": "mlp"}  # by the model of the teacher
HISTOGRAM = "sums of node features"
STRUCTURE = "structure only"

KINDS = ("edges", "injection", "features", "edges and features")


@dataclass(frozen=True)
class Threat:
    """A kind of attack. Its size is a number of changes; the worst combination counts.

    Attributes:
        kind: ``"edges"``: edges added or deleted. ``"injection"``: nodes injected, with any features.
            ``"features"``: nodes given other features. ``"edges and features"``: any mix of the two.
        edges_per_injected: Edges that each injected node may bring; ``math.inf`` for any number.
        own_features: Node task: whether the target may be among the nodes with other features.
    """

    kind: str = "edges"
    edges_per_injected: float = math.inf
    own_features: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingsError(f'no kind of attack is called "{self.kind}": {did_you_mean(self.kind, KINDS)}')
        Budget(edges_per_injected=self.edges_per_injected)  # says what is wrong with the number

    @property
    def unit(self) -> str:
        """What a size counts.

        Example:
            >>> Threat("injection", 5).unit
            'injected nodes with up to 5 edges each'
        """
        if self.kind == "injection":
            edges = "any number of" if math.isinf(self.edges_per_injected) else f"up to {self.edges_per_injected:g}"
            return f"injected nodes with {edges} edges each"
        if self.kind == "edges":
            return "edges added or deleted"
        nodes = "nodes with other features"
        if self.own_features:
            nodes += ", the target's own included"
        return nodes if self.kind == "features" else f"edges or {nodes}"

    def budgets(self, size: int) -> Iterator[Budget]:
        """Yields every combination of ``size`` changes. A target is certified if it is certified against all of them.

        Example:
            >>> list(Threat("edges").budgets(1))
            [Budget(add_edges=1), Budget(delete_edges=1)]
        """
        if self.kind == "injection":
            yield Budget(inject_nodes=size, edges_per_injected=self.edges_per_injected)
            return
        fewest_nodes = size if self.kind == "features" else 0
        most_nodes = 0 if self.kind == "edges" else size
        for nodes in range(fewest_nodes, most_nodes + 1):
            for deleted in range(size - nodes + 1):
                spent = Budget(add_edges=size - nodes - deleted, delete_edges=deleted, change_features=nodes)
                yield spent
                if self.own_features and nodes:
                    yield spent.but(change_features=nodes - 1, target_features=True)

    def withstood(self, certificate: Certificate, sizes: tuple[int, ...]) -> FloatArray:
        """Returns the largest of the sizes that each target is certified against, -1 for none, shape ``[n]``."""
        largest = np.full(certificate.num_targets, -1.0)
        alive = np.ones(certificate.num_targets, dtype=bool)
        for size in sorted(sizes):
            for budget in self.budgets(size):
                if not alive.any():
                    return largest
                alive &= certificate.holds_against(budget)
            largest[alive] = size
        return largest

    def is_covered(self, certificate: Certificate, size: int) -> bool:
        """Tells whether a certificate proves anything about attacks of a size.

        A target must hold against every combination, so nothing is proved if one of them is not covered. Which kinds of
        changes a combination has decides that, so one of each is asked about.
        """
        kinds = {_changed_fields(budget): budget for budget in self.budgets(size)}
        return all(certificate.evidence.covers(budget) for budget in kinds.values())

    @property
    def against(self) -> Against:
        """The argument ``against`` of ``choose_voting_rule``: "structure" if features do not change."""
        return "any" if "features" in self.kind else "structure"

    def leaves_graph_free(self, task: str) -> bool:
        """Tells whether such an attack cannot change the label of a model that reads no edges."""
        if task == "graph":  # its readout sees all nodes and their features
            return self.kind == "edges"
        return not (self.own_features and self.kind in ("features", "edges and features"))

    def withstood_without_certificate(self, model: str, task: str, num_targets: int) -> FloatArray:
        """Returns what a control is certified against: any size (``inf``) or none (0), shape ``[n]``.

        A model without edges does not depend on edges and other nodes.
        """
        reads_no_edges = model in (GRAPH_FREE, NO_EDGES, CROSS_FITTED, HISTOGRAM, OWN_TREES, *TAUGHT_BY)
        free = reads_no_edges and self.leaves_graph_free(task)
        free = free or (model == STRUCTURE and self.kind == "features")
        return np.full(num_targets, math.inf if model == MAJORITY or free else 0.0)


def _changed_fields(budget: Budget) -> tuple[str, ...]:
    """Returns the names of the changes that a budget allows."""
    return tuple(name for name in (*COUNTS, "target_features") if getattr(budget, name))
