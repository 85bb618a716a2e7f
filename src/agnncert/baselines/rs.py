"""Randomized smoothing of structure (Wang et al., KDD 2021; Jia et al., WWW 2020).

Unlike the released code: an entry is flipped with the certified probability ``1 - beta``, not with half of
it, tests are strict, and noise on the target's row is not passed off as a guarantee for the whole graph.
"""

from dataclasses import dataclass
from typing import ClassVar

from agnncert.baselines.flip_defence import FlipDefence
from agnncert.errors import SettingsError
from agnncert.smoothing import FlipNoise


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
        self.noise(1)

    def noise(self, num_features: int) -> FlipNoise:
        """The noise; features stay as they are."""
        return FlipNoise(p_add=1 - self.beta, p_delete=1 - self.beta, where=self.where)
