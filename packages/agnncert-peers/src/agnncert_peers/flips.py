"""Randomized smoothing by flips: RS of structure, and sparsity-aware RS, whose additions are rarer than its deletions.

RS is of Wang et al. (KDD 2021) and Jia et al. (WWW 2020), sparsity-aware RS of Bojchevski et al. (ICML 2020).

Unlike the released code of RS: an entry is flipped with the certified probability ``1 - beta``, not with half of
it, tests are strict, and noise on the target's row is not passed off as a guarantee for the whole graph.

Unlike the released code of sparsity-aware RS: regions of edges and features together are sorted before use, the rival
is the worst of all classes, tests are strict, and added edges are distributed exactly as the certificate assumes.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.votes import IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.votes import EngineName
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.flip_sampler import FlipSampler
from agnncert_peers.flippable import Flippable, check_flippable
from agnncert_peers.smoothing import Smoothing


class FlipDefence(Smoothing):
    """A defence that votes over graphs with flipped edges and features."""

    def _noisy_parts(self, graph: CanonicalGraph, rng: np.random.Generator) -> dict[str, Tensor | None]:
        flippable = Flippable(graph, self.noise(int(graph.x.size(1))))
        check_flippable(flippable)
        flips = flippable.draw(rng, 1)
        ends, arc = flippable.edges(flips, 1)
        parts: dict[str, Tensor | None] = {"edge_index": torch.from_numpy(ends)}
        for name, value in graph.edge_values.items():
            # Added edges have no weights and attributes, so then no edge keeps its own.
            parts[name] = None if flippable.noise.p_add > 0 else value[torch.from_numpy(arc)]
        if flippable.noise.on_features:
            parts["x"] = flippable.features(flips, 1, graph.x.dtype)
        return parts

    @abstractmethod
    def noise(self, num_features: int) -> FlipNoise:
        """Returns the noise, for nodes with ``num_features`` features."""

    def _sampler(self, bound_model: ModelAdapter, graph: CanonicalGraph, rows: IntArray, naive: bool) -> FlipSampler:
        noise = self.noise(int(graph.x.size(1)))
        return FlipSampler(bound_model, graph, rows, noise, naive)

    def _check_model(self, report: AuditReport, engine: EngineName) -> None:
        # The proof needs only that the output is a function of the graph. The fast engine, which evaluates many graphs
        # at once, needs a model that looks at a node only through the edges that lead to it.
        if "edges" not in report.fit_for:
            raise ModelContractError(str(report))
        if engine == "fast" and not report.ok:
            raise ModelContractError(
                f'{report}\nThis defence can certify the model all the same, one noisy graph at a time: engine="naive".'
            )


@dataclass(frozen=True)
class RS(FlipDefence):
    """Votes over graphs in which every pair of nodes is flipped with probability ``1 - beta``.

    Covers edges added or deleted, counted together. With ``beta=0.8`` a fifth of all pairs without an edge
    get one: use small graphs, or ``SparseRS``.

    Attributes:
        beta: Probability that a pair keeps its state, above 1/2 and below 1.
        where: ``"graph"``: all pairs are noisy, and edges anywhere are covered. ``"target row"`` (node
            task): only pairs with the target are, as in the released code; then only edges *at the target*
            are covered, samples are drawn for each target apart, and budgets of edges, which may lie
            anywhere, do not hold. Read the radius, or ask ``certificate.evidence.holds_flips``.

    Example:
        >>> RS(beta=0.8).noise(1).unit
        'edge added or deleted'
    """

    method: ClassVar[str] = "rs"

    beta: float = 0.8
    where: str = "graph"

    def __post_init__(self) -> None:
        number = isinstance(self.beta, (int, float)) and not isinstance(self.beta, bool)
        if not number or not 0.5 < self.beta < 1:
            raise SettingsError(
                f"beta={self.beta!r}: the probability to keep a pair must lie between 1/2 (noise that says "
                "nothing about the graph) and 1 (no noise, nothing certified), such as 0.8."
            )
        super().__post_init__()

    def noise(self, num_features: int) -> FlipNoise:
        """Returns the noise. Features stay as they are."""
        return FlipNoise(p_add=1 - self.beta, p_delete=1 - self.beta, where=self.where)


@dataclass(frozen=True)
class SparseRS(FlipDefence):
    """Votes over graphs with a few edges added and many deleted, and likewise entries of binary features.

    Covers edges added and deleted, each with its own number, and flipped feature entries
    (``certificate.evidence.holds_flips``), alone and together. Node and graph classification.

    Attributes:
        p_add: Probability that a pair without an edge gets one.
        p_delete: Probability that an edge is deleted.
        p_add_feature: Probability that a feature entry 0 becomes 1.
        p_delete_feature: Probability that a feature entry 1 becomes 0.

    Example:
        >>> SparseRS(p_add=0, p_delete=0, p_add_feature=0.01, p_delete_feature=0.6).noise(1433).on_edges
        False
    """

    method: ClassVar[str] = "sparse-rs"

    p_add: float = 0.001
    p_delete: float = 0.4
    p_add_feature: float = 0.0
    p_delete_feature: float = 0.0

    def noise(self, num_features: int) -> FlipNoise:
        """Returns the noise, for nodes with ``num_features`` features."""
        return FlipNoise(self.p_add, self.p_delete, self.p_add_feature, self.p_delete_feature, num_features)
