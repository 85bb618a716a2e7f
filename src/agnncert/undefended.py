"""``Undefended``: a model without a defence, so that labels and attacks can be compared with those of defences."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import torch
from torch import Tensor

from agnncert.agreement import Comparison
from agnncert.auditing.model_audit import AuditReport, audit
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray
from agnncert.defence import CertifyOptions, Defence, FitOptions, GraphData, Model, TargetChoice
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine.adapter import bind
from agnncert.errors import SettingsError
from agnncert.graphs.graph import Task
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.models.message_hops import hops_of
from agnncert.proving.certificate import Certificate
from agnncert.training.loop import train

STEPS = 2**20  # of one logit, in which scores are counted
_SPAN = 2.0**20  # logits that are further behind the largest one count as this far, so that scores are whole numbers
_NOTHING = "nothing is proved about a model without a defence: name one, such as ac.NodeCentric(60)."


@dataclass(frozen=True)
class Undefended(Defence):
    """No defence: the label is the model's own, from one look at the whole graph.

    ``ac.labels_of(model, graph, ac.Undefended())`` and
    ``ac.attack(model, data, ac.Undefended(), budget=…)`` show what a defence is for. Attacks follow
    the margin of the logits. Nothing can be certified.
    """

    kind: ClassVar[str] = "undefended"
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType(
        {name: "it has no votes" for name in ("explain", "subgraphs", "voting_rule", "live", "threshold")}
    )

    def __str__(self) -> str:
        return "undefended"

    def fit(self, model: Any, data: Any, options: FitOptions) -> Any:
        """Trains a model in place, on the whole graph."""
        return train(model, data, None, options)

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Says whether a division could certify the model."""
        return audit(model, data, EdgeCentric(1), task=task)

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Refuses, as nothing is proved."""
        _refuse()

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Refuses, as there are no files."""
        _refuse()

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Refuses, as there are no files."""
        _refuse()

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the only one there is."""
        cls.require_known_settings("models without a defence", name, settings)
        return cls()

    def labels_and_scores(
        self, model: Model, data: GraphData, targets: TargetChoice = None
    ) -> tuple[IntArray, IntArray]:
        """Returns the class with the largest logit, and how far logits are behind it: whole steps, from 0 on."""
        self.require_model(model)
        logits = whole_graph_logits(model, prepared(data, targets), targets).double().numpy()
        if not np.isfinite(logits).all():
            logits = np.nan_to_num(logits, nan=-_SPAN, posinf=_SPAN, neginf=-_SPAN)
        behind = logits.max(axis=1, keepdims=True) - logits
        scores = np.rint((_SPAN - np.clip(behind, 0, _SPAN)) * STEPS)
        return np.asarray(logits.argmax(axis=1)), np.asarray(scores, dtype=np.int64)

    def scores(self, model: Model, data: GraphData, targets: TargetChoice = None) -> IntArray:
        """Returns how far logits are behind the largest one, in whole steps from 0 on, shape ``[n, num_classes]``."""
        return self.labels_and_scores(model, data, targets)[1]


@dataclass(frozen=True)
class Reference(Undefended):
    """What defences are compared with: it stands in a study where a defence would, and no certificate is about it.

    Attributes:
        name: What tables call it.
        base: Name of the model that is trained for it; ``None`` for that of the study.
        reads_edges: Whether its labels depend on edges.
        is_constant: Whether it is one answer for all, without a model.
    """

    name: str
    base: str | None = None
    reads_edges: bool = True
    is_constant: bool = False

    def __str__(self) -> str:
        return self.name


# References that need no add-on package, by name.
GRAPH_FREE, UNDEFENDED, MAJORITY = "graph-free MLP", "undefended", "majority class"
REFERENCES: Mapping[str, Reference] = MappingProxyType(
    {
        UNDEFENDED: Reference(UNDEFENDED),
        GRAPH_FREE: Reference(GRAPH_FREE, base="mlp", reads_edges=False),
        MAJORITY: Reference(MAJORITY, reads_edges=False, is_constant=True),
    }
)


@torch.no_grad()
def whole_graph_logits(model: Model, data: CanonicalData, targets: TargetChoice) -> Tensor:
    """Returns the logits of the targets from one look at the whole graph, shape ``[n, num_classes]``."""
    chosen = data.targets(targets, True)
    graph = chosen.graph
    adapter = bind(model, graph, data.task)
    logits = adapter(graph.x.to(adapter.dtype), graph.edge_index, adapter.edge_values(graph), graph.batch)
    return logits[torch.from_numpy(chosen.positions)]


def reach_of(model: Model) -> int | None:
    """Returns within how many hops everything lies that decides about a label; ``None`` if that is not known.

    A layer may weigh a message by the number of edges at the node that it comes from, which are one hop further away.
    """
    hops = hops_of(model)
    return None if hops is None else hops + 1


def _refuse() -> NoReturn:
    raise SettingsError(_NOTHING)
