"""``LabelVotes``: votes of training labels as a defence."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import torch

from agnncert.agreement import Comparison
from agnncert.auditing.edge_features import require_no_edges_in
from agnncert.auditing.label_columns import column_that_is_the_label
from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray
from agnncert.datasets.drawn_splits import BY_ID, BY_TIME, require_fixed_split
from agnncert.datasets.encoding import require_no_fitted_encoding
from agnncert.datasets.taught import teaching_of
from agnncert.defence import CertifyOptions, Defence, Findings, FitOptions, Task
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.checks import require_edge_index
from agnncert.graphs.targets import Targets, prepared
from agnncert.graphs.task import infer_task
from agnncert.labels.claim import make_label_claim
from agnncert.labels.evidence import LabelEvidence
from agnncert.labels.joint_claim import make_joint_claim
from agnncert.labels.joint_evidence import JointEvidence
from agnncert.labels.joint_record import KIND, JointRecord
from agnncert.labels.model import LabelModel, label_model, neighbours_of
from agnncert.labels.record import STEPS, LabelRecord
from agnncert.labels.settings import LabelSettings
from agnncert.labels.statements import not_proved_here, not_proved_together_here
from agnncert.labels.vectors import Spectrum, node_spectrum, own_spectrum
from agnncert.labels.weights import Rows, Weighting, make_weights
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate

STEPS_APART = 2  # by how much a weight that is computed on another machine may differ, in steps of a vote
LABELS_PER_STEP = 50  # one of so many weights may differ by a step more: if all did, a forger could add them up
# How splits may be drawn. A cut in time stays where it is as long as the same nodes have labels.
SPLITS = {"labelled": (BY_ID, BY_TIME), "all": (BY_ID,)}
FEWEST_LABELS = 50  # from so many on it is no accident that a feature tells every label


@dataclass(frozen=True)
class LabelVotes(LabelSettings, Defence):
    """Each training label votes for its class, with a weight that no label enters; settings as in the base class.

    ``fit(None, data, LabelVotes())`` takes the labels of ``data.train_mask``, and ``certify`` says how many of them an
    attacker could have changed without changing the label of a target. Edges and features are trusted; with
    ``neighbour_votes`` edges are not, and labels and edges may be changed together.
    """

    kind: ClassVar[str] = "labels"
    tasks: ClassVar[tuple[Task, ...]] = ("node",)
    for_other_tasks: ClassVar[str] = "label votes classify nodes: for graphs, pass a division."
    certify_options: ClassVar[frozenset[str]] = frozenset({"progress"})
    model_is_optional: ClassVar[bool] = True
    trusts_training_data: ClassVar[bool] = False
    base_model: ClassVar[str | None] = "none"
    own_model: ClassVar[type[LabelModel]] = LabelModel
    open_without_model: ClassVar[str] = "that these are the labels and settings of the model: give the model"
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "voting_rule": "each training label votes with a weight, and no subgraph is empty",
            "subgraphs": "it divides no graph: the training labels vote",
            "threshold": "it would be chosen by validation labels, which may be poisoned like all others",
            "live": "its weights follow from the whole graph, so that every change of the graph means to fit again",
            "explain": "a label follows from all training labels, and not from a few edges that could be named",
            "attack": "its certificates are about training labels, and the search changes the graph alone",
        }
    )

    def __str__(self) -> str:
        return LabelSettings.__str__(self)

    @property
    def kind_of_evidence(self) -> str:
        """Name of the kind of evidence: about labels, or about labels and edges together."""
        return self.kind if self.neighbour_votes is None else KIND

    def fit(self, model: Any, data: Any, options: FitOptions) -> LabelModel:
        """Takes the training labels. Nothing is trained by gradients, so the settings of training do not matter."""
        if model is not None:
            raise SettingsError(
                f"LabelVotes trains no {type(model).__name__}: its labels vote by node vectors. Pass None as the model."
            )
        self.require_own_task(infer_task(data))
        if options.voting_rule is not None:
            raise self.refusal("voting_rule")
        begin = time.perf_counter()
        require_edge_index(data)
        require_fixed_split(data, "LabelVotes", SPLITS[self.candidates])
        _require_given_labels(data)
        if self.candidates == "all":
            why = "a label that is added or removed changes which rows are in that part"
            require_no_fitted_encoding(data, 'LabelVotes(candidates="all")', why)
        _require_no_labels_in(data)
        if self.neighbour_votes is not None:
            require_no_edges_in(data, f"LabelVotes(neighbour_votes={self.neighbour_votes:g})")
        made = label_model(data, self)
        made.defence = LabelVotes(**{name: getattr(made.defence, name) for name in self.setting_names("labels")})
        made.training_record = {  # type: ignore[assignment]
            "seconds": time.perf_counter() - begin,
            "epochs_run": 0,
            "defence": str(made.defence),
            "warnings": [],
        }
        return made

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Says that there is nothing to audit: the rule by which labels vote is the library's own."""
        raise SettingsError(
            "there is no model to audit: labels vote by a rule of the library, which has no label among its inputs. "
            "agnncert verify with the data computes the weights again."
        )

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Computes the weights from the graph, and states what they prove."""
        self.require_model(model)
        canonical_data = prepared(data, targets)
        self.require_own_task(canonical_data.task)
        chosen = canonical_data.targets(targets)
        evidence = _evidence(model, chosen)
        digests = {**chosen.digests, "model": model_digest(model)}
        claim = _claim_of(evidence, digests, notes=(str(self),))
        return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth, chosen.degree)

    def has_settings_of(self, other: Defence) -> bool:
        """Whether a model that was made for ``other`` is for these settings. ``fit`` completes those that are open."""
        is_open = self.df is None or self.rank is None
        return is_open or super().has_settings_of(other)

    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns the score of each class in steps of a vote, shape ``[n, num_classes]``."""
        self.require_model(model)
        return _evidence(model, prepared(data, targets).targets(targets)).counts

    def compare_graph(self, comparison: Comparison) -> None:
        """Computes all weights again from the graph, without a label."""
        findings = comparison.findings
        stored, joint = _stored(comparison.contents)
        chosen = comparison.targets()
        comparison.compare_targets(chosen)
        if findings.wrong:
            return
        if joint is None:
            _compare_weights(findings, stored, chosen)
            without = "any label"
        else:
            findings.wrong += _wrong_neighbours(joint, chosen)
            if not findings.wrong:
                _compare_weights_of_voters(findings, joint, chosen)
            findings.checked.append(f"the {len(joint.neighbour):,} neighbours of the targets")
            without = "any label or edge"
        findings.checked.append(f"the weights of {stored.num_candidates:,} labels, computed again without {without}")
        findings.compared.append("data")

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Compares the labels and settings of a file with those of a model."""
        findings = comparison.findings
        stored, _ = _stored(comparison.contents)
        findings.wrong += _not_of_model(comparison.contents, stored, model)
        comparison.compare_notes(self)
        findings.checked.append("the training labels and all settings, which are those of the model")
        findings.compared.append("model")

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Returns the defence of the model, or the settings of the file."""
        defence = getattr(model, "defence", None)
        if isinstance(defence, cls):
            return defence
        stored, joint = _stored(contents)
        same = {"candidates": stored.candidates, "df": stored.df, "rank": stored.rank, "box": stored.box}
        neighbour_votes = None if joint is None else joint.neighbour_steps / STEPS
        return cls(**same, num_classes=stored.num_classes, neighbour_votes=neighbour_votes)  # type: ignore[arg-type]

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the label votes that a command or a settings file describes."""
        cls.require_own_task(task)
        cls.require_known_settings("label votes", name, settings)
        return cls(**settings)

    def untrained(self, model: Any, data: Any, seed: int = 0) -> LabelModel:
        """Returns a model of the same shape, into which labels can be loaded."""
        if data is None:
            raise SettingsError("the shape of label votes depends on the data: name the data.")
        return self.fit(None, data, FitOptions())


def _evidence(model: LabelModel, chosen: Targets) -> LabelEvidence | JointEvidence:
    with torch.no_grad():
        return model.evidence(chosen.graph.x, chosen.graph.edge_index, chosen.positions, chosen.id_kind)


def _claim_of(evidence: LabelEvidence | JointEvidence, digests: Mapping[str, str], notes: tuple[str, ...]) -> Claim:
    if isinstance(evidence, JointEvidence):
        return make_joint_claim(evidence, digests=digests, notes=notes)
    return make_label_claim(evidence, digests=digests, notes=notes)


def _stored(contents: Contents) -> tuple[LabelRecord, JointRecord | None]:
    """Returns the label votes of a file, and the votes of neighbours if there are any."""
    if contents.kind != KIND:
        return LabelRecord.load(contents.evidence, contents.settings), None
    joint = JointRecord.load(contents.evidence, contents.settings)
    return joint.voters, joint


def _not_of_model(contents: Contents, stored: LabelRecord, model: LabelModel) -> Iterator[str]:
    """Yields which training labels and settings of a file are not those of the model."""
    for name in ("candidate", "label_of", "audited", "price"):
        if not np.array_equal(getattr(model, name).numpy(), getattr(stored, name)):
            yield f'"{name}" is not that of the model'
    for name, setting in model.counted_settings().items():
        stated = contents.settings.get(name)
        if stated != setting:
            yield f'"{name}" is {stated!r:.60} in the file, and {setting!r:.60} in the model'


def _wrong_neighbours(stored: JointRecord, chosen: Targets) -> list[str]:
    """Returns what is wrong if the neighbours of a file are not those of the graph."""
    here = neighbours_of(chosen.graph.edge_index, chosen.positions, chosen.graph.num_nodes)
    same = {
        "voters": np.array_equal(here.voter, stored.voter),
        "numbers of neighbours": np.array_equal(here.indptr, stored.indptr),
        "neighbours": np.array_equal(here.neighbour, stored.neighbour),
    }
    return [f"the {name} of the targets are not those of the graph" for name, is_same in same.items() if not is_same]


def _compare_weights_of_voters(findings: Findings, stored: JointRecord, chosen: Targets) -> None:
    """Compares the weights of all voters with those that follow from features, and what they prove."""
    here = _weights_here(findings, stored.voters, own_spectrum(chosen.graph.x), stored.voter)
    if here is not None:
        findings.wrong += not_proved_together_here(stored, replace(stored, voters=here))


def _compare_weights(findings: Findings, stored: LabelRecord, chosen: Targets) -> None:
    """Compares the weights of a file with those that follow from the graph, and what they prove."""
    spectrum = node_spectrum(chosen.graph.x, chosen.graph.edge_index)
    here = _weights_here(findings, stored, spectrum, chosen.positions)
    if here is not None:
        findings.wrong += not_proved_here(stored, here)


def _weights_here(findings: Findings, stored: LabelRecord, spectrum: Spectrum, rows: Rows) -> LabelEvidence | None:
    """Returns label votes with the weights that follow from node vectors, if they differ from those of a file.

    Args:
        findings: What is wrong is added to these: weights that differ by more than machines do.
        stored: The label votes of the file.
        spectrum: Node vectors of the graph.
        rows: Rows of those whose label votes they are.
    """
    weighting = Weighting(stored.candidate, stored.candidates == "all", stored.df, stored.rank, stored.box)
    if stored.num_candidates and int(stored.candidate[-1]) >= len(spectrum.vectors):
        findings.wrong.append("a training label belongs to a row that the graph does not have")
        return None
    if stored.candidates == "all" and stored.num_candidates != len(spectrum.vectors):
        findings.wrong.append("not all nodes of the graph are candidates")
        return None
    arrays: Any = make_weights(spectrum, rows, weighting)
    fields = {**stored.tensors(), **stored.settings(), **arrays, "advance": stored.advance}
    here = LabelEvidence(**fields)
    there = LabelEvidence(**{**stored.tensors(), **stored.settings(), "advance": stored.advance})
    if not np.array_equal(here.own, there.own):
        findings.wrong.append("a target is not at its position among the candidates")
        return None
    apart, apart_in_all = there.weights_apart(here)
    if apart > STEPS_APART:
        findings.wrong.append(
            f"a weight differs by {apart} steps from the one that follows from this graph: expected {STEPS_APART}"
        )
    elif apart_in_all > STEPS_APART + stored.num_candidates // LABELS_PER_STEP:
        findings.wrong.append(
            f"the weights of a target differ by {apart_in_all:,} steps in all, more than machines differ by"
        )
    if findings.wrong or not apart:
        return None
    findings.not_checked.append(
        f"prices of attacks: they follow from the weights of the file, which differ by up to {apart_in_all:,} steps of "
        f"1/{STEPS} vote for a target from those computed here"
    )
    return here


def _require_given_labels(data: Any) -> None:
    """Refuses labels of a teacher: each of them follows from all labels that were given.

    Raises:
        SettingsError: A teacher labelled the data.
    """
    if teaching_of(data) is not None:
        raise SettingsError(
            "a teacher labelled nodes of this data. It learnt from the training labels, so that one poisoned label "
            "changes many of its labels, and LabelVotes counts each as one: pass the data as it was before ac.teach."
        )


def _require_no_labels_in(data: Any) -> None:
    """Refuses features that were computed from labels, as far as that can be seen.

    Raises:
        DatasetError: A column of the features is different for two classes, and the same within each of them.
    """
    from agnncert.labels.model import training_labels

    labels = training_labels(data)
    rows = np.flatnonzero(labels >= 0)
    if len(rows) < FEWEST_LABELS or data.x is None:
        return
    column = column_that_is_the_label(np.asarray(data.x)[rows], labels[rows])
    if column is not None:
        raise DatasetError(
            f"column {column} of the features is the same for all training labels of a class, and not for "
            "all classes: it was computed from labels, and would change with them. Leave it out."
        )


def model_from_config(
    config: Mapping[str, Any], build_part: Callable[[Mapping[str, Any]], torch.nn.Module]
) -> LabelModel:
    """Builds the model that ``config`` describes, without labels.

    Raises:
        SettingsError: The description is not one of label votes.
    """
    try:
        return LabelModel(int(config["num_candidates"]), LabelVotes(**config["defence"]))
    except (KeyError, TypeError) as error:
        raise SettingsError(f"the description of label votes is incomplete: {error}.") from error
