"""Sparsity-aware randomized smoothing (Bojchevski et al., ICML 2020): additions are rarer than deletions.

Unlike the released code: regions of edges and features together are sorted before use, the rival is the
worst of all classes, tests are strict, and positions of added edges follow exactly the law that is
certified.
"""

from dataclasses import dataclass
from typing import ClassVar

from agnncert.baselines.flip_defence import FlipDefence
from agnncert.smoothing import FlipNoise


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

    def __post_init__(self) -> None:
        self.noise(1)

    def noise(self, num_features: int) -> FlipNoise:
        """The noise, for nodes with so many features."""
        return FlipNoise(self.p_add, self.p_delete, self.p_add_feature, self.p_delete_feature, num_features)
