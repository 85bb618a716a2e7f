"""``GraphInParts``: a graph that nobody holds, and that is therefore certified where its parts lie.

The package ``agnncert_large`` has one. Entry points ask it instead of reading features and edges.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agnncert.certificates.file import Contents
    from agnncert.certificates.voting_rule import VotingRule
    from agnncert.defence import CertifyOptions, FitOptions, RecomputeOptions
    from agnncert.divisions.base import Division
    from agnncert.findings import Findings


class GraphInParts(ABC):
    """A graph that lies in parts by the groups of a division."""

    @abstractmethod
    def certify(
        self,
        model: Any,
        division: "Division",
        targets: Any,
        voting_rule: "VotingRule | None",
        options: "CertifyOptions",
    ) -> Any:
        """Certifies some of its nodes; arguments are those of ``divided.certify``."""

    @abstractmethod
    def recompute(
        self, contents: "Contents", model: Any, division: "Division", options: "RecomputeOptions"
    ) -> "Findings":
        """Compares what a certificate file says with this graph and, if there is one, with a model."""

    @abstractmethod
    def fit(self, model: Any, division: "Division", options: "FitOptions") -> Any:
        """Trains a model in place."""

    @abstractmethod
    def sample(self) -> Any:
        """Returns a ``Data`` of some of its nodes, from which a model gets its shape."""
