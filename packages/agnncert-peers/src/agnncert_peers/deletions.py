"""Bi-RS, node-aware bi-smoothing (Lai et al., IEEE S&P 2024), with a sampler and tests that are sound.

In the released code an edge is deleted with the node at one of its ends, but not with the node at the other, and the
test treats dependent events as independent. Both make radii too large. Here a deleted node loses all its edges, and the
test is sound unless the unsound one is asked for.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.votes import IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.votes import EngineName
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.deletion_sampler import DeletionSampler, draw_survivors
from agnncert_peers.pairs import Pairs
from agnncert_peers.smoothing import Smoothing


@dataclass(frozen=True)
class BiRS(Smoothing):
    """Votes over graphs in which most edges and nodes are deleted; withstands injected nodes.

    Node classification only. Covers nodes injected with any features and a limited number of edges each,
    and nothing else.

    Attributes:
        p_edge: Probability that an edge is deleted on its own.
        p_node: Probability that all edges of a node are deleted; its features stay.
        test: ``"B2"``, ``"B1"`` or ``"sharp"`` (never weaker than either), all sound; or ``"legacy-unsound"``, the
            released test, to compare with published numbers. It certifies labels that can be flipped.
        edges_per_injected: How many edges a node may bring in the unit of the radius. Budgets state their own number.

    Example:
        >>> BiRS(p_edge=0.8, p_node=0.9)
        BiRS(p_edge=0.8, p_node=0.9, test='B2', edges_per_injected=5)
    """

    method: ClassVar[str] = "bi-rs"

    p_edge: float = 0.8
    p_node: float = 0.9
    test: str = "B2"
    edges_per_injected: float = 5

    def noise(self, num_features: int) -> DeletionNoise:
        """Returns the noise. The number of features does not matter to it."""
        return DeletionNoise(self.p_edge, self.p_node, self.test, self.edges_per_injected)

    def drawn(self) -> dict[str, float]:
        """Returns the settings that samples depend on. The test is not one of them: one sample serves all tests."""
        return {"p_edge": self.p_edge, "p_node": self.p_node}

    def _noisy_parts(self, graph: CanonicalGraph, rng: np.random.Generator) -> dict[str, torch.Tensor | None]:
        pairs = Pairs.of(graph)
        survivors = draw_survivors(rng, pairs, self.noise(1), 1)
        _, arc = pairs.arcs(survivors.pair)
        part = graph.with_edges(torch.from_numpy(np.sort(arc)))
        return {"edge_index": part.edge_index, **part.edge_values}

    def _sampler(
        self, bound_model: ModelAdapter, graph: CanonicalGraph, rows: IntArray, naive: bool
    ) -> DeletionSampler:
        if bound_model.task == "graph":
            raise SettingsError(
                "BiRS is for node classification: an injected node takes part in the readout of a graph even "
                "when noise has deleted its edges. Pass one graph and target nodes."
            )
        return DeletionSampler(bound_model, graph, rows, self.noise(1), naive)

    def _check_model(self, report: AuditReport, engine: EngineName) -> None:
        if "nodes" not in report.fit_for:  # an injected node whose edges are all deleted must change no prediction
            raise ModelContractError(str(report))
