"""Summary: a certificate and its context as the arrays and curves that page, figures and tables share."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from agnncert.ballots import BallotEvidence
from agnncert.errors import SettingsError
from agnncert.report.context import ReportContext, per_target
from agnncert.report.curves import Curve, over_degree, over_size
from agnncert.theorems import RULES
from agnncert.votes import BoolArray, IntArray

if TYPE_CHECKING:
    import numpy.typing as npt

    from agnncert.certificate import Certificate
    from agnncert.evidence import FloatArray

NAMES = {
    "undefended": "undefended GNN",
    "mlp": "MLP, no graph",
    "edgeless": "same model, no edges",
    "majority": "majority class",
    "bag_of_nodes": "bag of nodes",
}


@dataclass(frozen=True)
class Summary:
    """What is shown about a certificate.

    Attributes:
        certificate: The certificate itself.
        context: What was given beside it.
        truth: True class of each target, or None.
        degree: Degree of each target, or None.
        counted: Targets in the curves: the correct ones if the truth is known, else all, shape ``[n]``.
        added: What each target withstands of the one kind of change that the second curve is about, or None.
        references: Key, name and accuracy of the models that the curves are compared with.
    """

    certificate: "Certificate"
    context: ReportContext
    truth: IntArray | None
    degree: IntArray | None
    counted: BoolArray
    added: "FloatArray | None"
    references: tuple[tuple[str, str, float], ...]

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.certificate.label)

    @property
    def ballots(self) -> BallotEvidence | None:
        """The evidence if it consists of ballots."""
        evidence = self.certificate.evidence
        return evidence if isinstance(evidence, BallotEvidence) else None

    @cached_property
    def last_size(self) -> int:
        """Where the curves over the size end: nothing is certified beyond, and every attack is on them."""
        ends = [int(self.certificate.radius.max(initial=0)) + 1, 1]
        if self.added is not None and np.isfinite(self.added).any():
            ends.append(int(self.added[np.isfinite(self.added)].max(initial=0)) + 1)
        return max([*ends, *(math.ceil(size) for size, _ in self.context.attacked)])

    @cached_property
    def certified(self) -> Curve:
        """Certified accuracy (or share) over the size of the attack."""
        return over_size(self.certificate.radius, self.counted, self.last_size)

    @cached_property
    def certified_additions(self) -> Curve | None:
        """The same over what :attr:`added` counts."""
        return None if self.added is None else over_size(self.added, self.counted, self.last_size)

    @cached_property
    def certified_over_degree(self) -> Curve | None:
        """Certified accuracy (or share) over size divided by degree, if degrees are known."""
        if self.degree is None or not (self.degree > 0).any():
            return None
        return over_degree(self.certificate.radius, self.degree, self.counted)


def summarise(certificate: "Certificate", context: ReportContext | None) -> Summary:
    """Brings a certificate and its context together.

    Raises:
        SettingsError: The context does not fit the certificate.
    """
    context = context or ReportContext()
    n, num_classes = certificate.counts.shape
    if context.class_names is not None and len(context.class_names) != num_classes:
        raise SettingsError(
            f"ReportContext(class_names=…) has {len(context.class_names)} class names: the votes are for "
            f"{num_classes} classes."
        )
    truth = per_target("truth", certificate.truth if context.truth is None else context.truth, n)
    counted = np.ones(n, dtype=bool) if truth is None else truth == certificate.label
    return Summary(
        certificate=certificate,
        context=context,
        truth=truth,
        degree=per_target("degree", certificate.degree if context.degree is None else context.degree, n),
        counted=counted,
        added=_additions_withstood(certificate),
        references=_references(certificate, context, truth),
    )


def _additions_withstood(certificate: "Certificate") -> "FloatArray | None":
    """Node task: new neighbours with all else unlimited. Graph task: injected nodes with any edges."""
    evidence = certificate.evidence
    if not isinstance(evidence, BallotEvidence):
        return None
    if RULES[evidence.rule].by_neighbours:
        return certificate.new_neighbours
    if evidence.rule == "node-centric/graph":  # edge-centric, a node with any edges reaches every subgraph
        return certificate.largest("inject_nodes", edges_per_injected=math.inf)
    return None


def _references(
    certificate: "Certificate", context: ReportContext, truth: IntArray | None
) -> tuple[tuple[str, str, float], ...]:
    values = {key: getattr(context, key) for key in NAMES}
    edgeless = edgeless_labels(certificate)
    if values["edgeless"] is None and truth is not None and edgeless is not None and len(truth):
        values["edgeless"] = float((edgeless == truth).mean())
    return tuple((key, NAMES[key], float(value)) for key, value in values.items() if value is not None)


def edgeless_labels(certificate: "Certificate") -> "npt.NDArray[np.int16] | None":
    """What the model predicts for each target without any edges, if default ballots tell, shape ``[n]``."""
    evidence = certificate.evidence
    if isinstance(evidence, BallotEvidence) and evidence.rule in ("edge-centric/node", "node-centric/node"):
        return evidence.votes.default
    return None
