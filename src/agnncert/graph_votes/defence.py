"""``GraphVotes``: read only what cannot be changed, and let the rest vote with bounded votes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from agnncert.agreement import Comparison
from agnncert.auditing.computed_edges import LEAST_NODES, inspect_computed_edges
from agnncert.auditing.degree_features import inspect_features
from agnncert.auditing.findings import Finding
from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray
from agnncert.defence import CertifyOptions, Defence, FitOptions, Task
from agnncert.errors import DatasetError, ModelContractError, SettingsError, did_you_mean
from agnncert.explanation import VoteExplanation
from agnncert.graph_votes.choosing import Maker, Wanted
from agnncert.graph_votes.claim import make_graph_claim
from agnncert.graph_votes.evidence import KIND, GraphEvidence
from agnncert.graph_votes.explain import explain_graph
from agnncert.graph_votes.model import GraphModel
from agnncert.graph_votes.priors import Fitted
from agnncert.graph_votes.record import TRUSTED, GraphRecord
from agnncert.graph_votes.seen import Shape
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.labels import stated_classes
from agnncert.graphs.targets import CanonicalData, Targets, prepared
from agnncert.graphs.task import infer_task
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate
from agnncert.training.labels import masked_rows, part_rows

LARGEST_SIZE = 100
AGAINST = ("any", "structure")
STRUCTURE_ONLY = "structure-only"
BAG_OF_NODES = "bag-of-nodes"
_BY_NAME = {STRUCTURE_ONLY: "structure", BAG_OF_NODES: "nodes"}
FEW_GRAPHS = 200  # of a set are looked at for features that follow the edges, and edges that follow features


@dataclass(frozen=True)
class GraphVotes(Defence):
    """A score of what an attacker cannot change, and a bounded vote for each item that he can.

    ``fit(None, graphs, GraphVotes(size=1, trusted="structure"))`` grows trees over the trusted part, and trains votes
    against the worst changes of the size. Counting nodes, the trees on their own, and the trees with votes are compared
    on training and validation graphs, and votes are kept only if they certify clearly more: the label does not get
    worse by them. What is not voted on is certified against any number of changes.

    Attributes:
        size: The number of changes that votes are made for, from 1 to 100. ``None`` for any number: nothing votes.
        trusted: What an attacker cannot change: ``"structure"`` (he changes features), ``"nodes"`` (he changes edges),
            ``"count"``, the number of nodes (he changes features and any edges), or ``"none"`` (nodes come and go, with
            any edges).
        against: With ``trusted="none"``: votes are made against ``"any"`` change of nodes, or against ``"structure"``,
            injected and deleted nodes. A certificate answers questions about both.
    """

    size: int | None = 1
    trusted: str = "structure"
    against: str = "any"

    kind: ClassVar[str] = KIND
    model_is_optional: ClassVar[bool] = True
    base_model: ClassVar[str | None] = "none"
    own_model: ClassVar[type[GraphModel]] = GraphModel
    open_without_model: ClassVar[str] = "that the model computes these scores from what is trusted: give the model"
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "live": "it classifies graphs by counting in the whole graph, and nobody has written it for events",
            "subgraphs": "it divides no graph",
            "threshold": "its scores are made for a size, with the threshold among them",
            "voting_rule": "no subgraph votes, and what a class has in advance is a part of the model",
        }
    )

    def __post_init__(self) -> None:
        is_whole = isinstance(self.size, int) and not isinstance(self.size, bool)
        if self.size is not None and not (is_whole and 1 <= self.size <= LARGEST_SIZE):
            raise SettingsError(
                f"size={self.size!r:.60}: expected a whole number of changes from 1 to {LARGEST_SIZE}, or None for any "
                "number, so that nothing votes."
            )
        if self.trusted not in TRUSTED:
            raise SettingsError(f'trusted="{self.trusted!s:.60}": {did_you_mean(str(self.trusted), TRUSTED)}')
        if self.trusted == "none" and self.size is None:
            raise SettingsError(
                'trusted="none" with size=None: what nothing can change is a constant. Pass a size, such as size=1.'
            )
        if self.against not in AGAINST:
            raise SettingsError(f'against="{self.against!s:.60}": {did_you_mean(str(self.against), AGAINST)}')
        if self.against != "any" and self.trusted != "none":
            raise SettingsError(f'against="{self.against}" belongs to trusted="none": leave it out.')

    def __str__(self) -> str:
        if self.size is None and self.trusted in _BY_NAME.values():
            return next(name for name, trusted in _BY_NAME.items() if trusted == self.trusted)
        against = ", against=structure" if self.against == "structure" else ""
        return f"graph-votes(size={self.size}, trusted={self.trusted}{against})"

    def to_json(self) -> dict[str, Any]:
        """Returns its settings as JSON values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def require_task(self, task: Task, num_classes: int | None = None) -> None:
        """Refuses node classification, unless the structure is all that is read.

        Raises:
            SettingsError: The task is "node".
        """
        if task == "node" and (self.trusted != "structure" or self.size is not None):
            raise SettingsError(
                f"{self} classifies graphs. For nodes there is StructureOnly(), and StackedVotes() for votes."
            )

    # Training.

    def fit(self, model: Any, data: Any, options: FitOptions) -> GraphModel:
        """Grows trees and trains votes. Of the settings of training, only the seed matters."""
        if model is not None:
            raise SettingsError(
                f"{self} trains no {type(model).__name__}: it counts what it may read. Pass None as the model."
            )
        if options.voting_rule is not None:
            raise self.refusal("voting_rule")
        canonical_data = prepared(data)
        self.require_task(canonical_data.task)
        begin = time.perf_counter()
        self._require_apart(canonical_data.data)
        fitted = _fitted(canonical_data, int(options.settings.get("seed", 0)))
        wanted = Wanted(self.trusted, self.size, self.against)  # type: ignore[arg-type]
        made, choice = Maker(fitted, self.to_json()).make(wanted)
        made.training_record = {
            "defence": str(self),
            "kept": choice.kept,
            "certified_on_training_and_validation": choice.certified,
            "seconds": time.perf_counter() - begin,
            "epochs_run": 0,
            "warnings": [*_warnings(self, choice.kept)],
        }
        return made

    def untrained(self, model: Any, data: Any, seed: int = 0) -> GraphModel:
        """Returns a model into which arrays of any size can be loaded."""
        if data is None:
            raise SettingsError("what graph votes classify depends on the data: name the data.")
        return GraphModel(infer_task(data), self.to_json())

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Says that there is nothing to audit: the rule is the library's own."""
        raise SettingsError(
            "there is no model to audit: graph votes count what they may read, by rules of the library. agnncert "
            "verify with data and model computes all scores again."
        )

    def _require_apart(self, data: Any) -> None:
        """Refuses data in which what is trusted follows from what is not.

        Raises:
            ModelContractError: Features follow the edges where edges change, or edges follow features where these do.
        """
        found: list[Finding] = []
        graphs = [data] if hasattr(data, "edge_index") else [data[k] for k in range(min(len(data), FEW_GRAPHS))]
        if self.trusted in ("nodes", "count", "none"):
            joined = _joined(graphs)
            found += inspect_features(joined)
        else:
            found += _computed_edges(graphs)[:3]
        if found:
            named = "; ".join(f"{finding.where} {finding.what}: {finding.why}" for finding in found[:5])
            raise ModelContractError(f"{self} reads what an attacker cannot change, but {named}. {found[0].remedy}")

    # Certificates.

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Computes the scores once and states what they prove."""
        self.require_model(model)
        canonical_data = prepared(data, targets)
        self.require_task(canonical_data.task)
        self._require_apart(canonical_data.data)
        chosen = canonical_data.targets(targets)
        evidence = evidence_of(model, chosen)
        digests = {**chosen.digests, "model": model_digest(model)}
        claim = make_graph_claim(evidence, digests=digests, notes=(str(self),))
        return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth, chosen.degree)

    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns the score of each class in steps, shape ``[n, num_classes]``."""
        self.require_model(model)
        return evidence_of(model, prepared(data, targets).targets(targets)).counts

    def explain(self, model: Any, data: Any, target: Any) -> VoteExplanation:
        """Explains what speaks for the label of a graph, and which items it takes to change it."""
        self.require_model(model)
        return explain_graph(self, model, data, target)

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Computes all scores and items again. They are whole numbers, and have to be the same."""
        findings = comparison.findings
        stored = GraphRecord.load(comparison.contents.evidence, comparison.contents.settings)
        self._require_apart(comparison.data.data)
        here = evidence_of(model, comparison.targets())
        for name, value in {**here.tensors(), **here.settings()}.items():
            stated = getattr(stored, name)
            if not np.array_equal(stated, value):
                findings.wrong.append(f"{name} is not what the model computes on this graph")
        comparison.compare_notes(self)
        findings.checked.append(f"the scores and items of all {stored.num_targets:,} targets, computed again")
        findings.compared += ["data", "model"]

    def without_edges(self, model: Any) -> Any:
        """Returns None: where edges are trusted there is no answer without them, and elsewhere none is read."""
        return None

    # By name.

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Returns the defence of the model, or that which the notes of a file name."""
        defence = getattr(model, "defence", None)
        if isinstance(defence, cls):
            return defence
        record = GraphRecord.load(contents.evidence, contents.settings)
        size = record.made_for
        return cls(size if size or record.trusted != "none" else 1, record.trusted)

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the defence that a command or a settings file names: its own name, or that of a trusted part."""
        cls.require_known_settings("graph votes", name, settings)
        made = cls(None, _BY_NAME[name]) if name in _BY_NAME else cls(**settings)
        made.require_task(task)
        return made

    @classmethod
    def setting_names(cls, name: str) -> tuple[str, ...]:
        """Returns the names of the settings of commands. What reads a trusted part only has none."""
        return () if name in _BY_NAME else tuple(each.name for each in fields(cls))


def StructureOnly() -> GraphVotes:  # noqa: N802
    """Returns a defence that reads which nodes are joined, and no feature, id, order or value of an edge.

    Graphs, or nodes of a graph, are classified by trees over what is counted in the structure. So labels are certified
    against any number of changed features, and nothing is proved about edges and nodes that are added or deleted.

    Example:
        >>> StructureOnly()
        GraphVotes(size=None, trusted='structure', against='any')
    """
    return GraphVotes(size=None, trusted="structure")


def BagOfNodes() -> GraphVotes:  # noqa: N802
    """Returns a defence that reads the features of all nodes of a graph, and no edge.

    Labels are certified against any number of added and deleted edges, and nothing is proved about changes of nodes.

    Example:
        >>> BagOfNodes()
        GraphVotes(size=None, trusted='nodes', against='any')
    """
    return GraphVotes(size=None, trusted="nodes")


def evidence_of(model: GraphModel, chosen: Targets) -> GraphEvidence:
    """Computes the evidence about some targets."""
    with torch.no_grad():
        positions = chosen.positions if chosen.task == "node" else None
        num_graphs = 1 if chosen.task == "node" else len(chosen.rows)
        return model.evidence(chosen.graph, positions, num_graphs, chosen.id_kind)


def _fitted(data: CanonicalData, seed: int) -> Fitted:
    """Returns the training and validation targets with their classes.

    Raises:
        DatasetError: A part is missing, or has no classes.
    """
    if data.task == "graph":
        train, val = (part_rows(data.data, part).numpy() for part in ("train", "val"))
    else:
        train, val = (masked_rows(data.data, f"{part}_mask") for part in ("train", "val"))
    rows = np.union1d(train, val)
    chosen = data.targets(rows)
    if chosen.truth is None or (chosen.truth < 0).any():
        raise DatasetError("a training or validation target has no class: graph votes need all of them.")
    num_classes = max(stated_classes(data.data) or 0, int(chosen.truth.max()) + 1)
    shape = Shape.of(chosen.graph, 1 if data.task == "node" else len(rows))
    rows_of_nodes = rows if data.task == "node" else None
    x = chosen.graph.x.numpy()
    return Fitted(shape, x, chosen.truth, num_classes, np.isin(rows, train), seed, rows_of_nodes)


def _computed_edges(graphs: list[Any]) -> list[Finding]:
    """Returns why the edges look computed from features; nothing if that is so in less than half of the graphs.

    Whoever computes edges does so in all graphs. Of drawn molecules a single one looks computed by chance.
    """
    large = [graph for graph in graphs if graph.num_nodes >= LEAST_NODES]
    found = [findings for findings in (list(inspect_computed_edges(graph)) for graph in large) if findings]
    if 2 * len(found) < len(large):
        return []
    return [finding for findings in found for finding in findings]


def _joined(graphs: list[Any]) -> CanonicalGraph:
    """Returns some graphs side by side, as inspections take them."""
    data = CanonicalData.of(graphs if len(graphs) > 1 or not hasattr(graphs[0], "train_mask") else graphs[0])
    return data.targets().graph


def _warnings(defence: GraphVotes, kept: str) -> list[str]:
    """Returns what the user should know about what was kept."""
    if defence.size is not None and kept != "votes":
        return [f"votes did not certify clearly more, so {kept} decides, and no item votes"]
    if kept in ("the number of nodes", "the most frequent class"):
        return [f"nothing was clearly better than {kept}, which decides"]
    return []


def model_from_config(config: Mapping[str, Any], build_part: Callable[[Mapping[str, Any]], nn.Module]) -> GraphModel:
    """Builds the model that ``config`` describes, without its numbers.

    Raises:
        SettingsError: The description is not one of graph votes.
    """
    try:
        return GraphModel(config["task"], config["defence"])
    except (KeyError, TypeError) as error:
        raise SettingsError(f"the description of graph votes is incomplete: {error}.") from error
