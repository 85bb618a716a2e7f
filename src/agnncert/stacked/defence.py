"""``StackedVotes``: stacked votes as a defence."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import torch

from agnncert.addons import addon, config_of
from agnncert.agreement import Comparison, wrong_numbers
from agnncert.auditing.edge_features import require_no_edges_in
from agnncert.auditing.known_layers import by_construction
from agnncert.auditing.model_audit import AuditReport, Locality, audit, audited, inspect_data
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray
from agnncert.defence import (
    AlertLimit,
    CertifyOptions,
    Defence,
    FitOptions,
    OperatingPoint,
    Task,
)
from agnncert.divisions.node import PerNeighbour
from agnncert.errors import DatasetError, ModelContractError, SettingsError
from agnncert.explanation import VoteExplanation
from agnncert.graphs.checks import require_edge_index
from agnncert.graphs.targets import Targets, prepared
from agnncert.graphs.task import infer_task
from agnncert.models.build import count_classes
from agnncert.models.digest import settings_of, unchanged_digest
from agnncert.progress import AUDITING, tell
from agnncert.proving.certificate import Certificate
from agnncert.proving.measures import measured, own_or_any, rate_of
from agnncert.stacked.bounded_steps import steps_are_proved
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.counting import stacked_counts
from agnncert.stacked.evidence import StackedEvidence
from agnncert.stacked.explain import explain_stacked
from agnncert.stacked.model import GraphFree, StackedModel
from agnncert.stacked.own_probes import probe_own
from agnncert.stacked.record import StackedRecord
from agnncert.stacked.settings import StackedSettings
from agnncert.stacked.training import (
    ClassWeighting,
    fit_stacked,
    labelled_part,
    untrained,
    with_threshold,
    wrong_blind_votes,
)
from agnncert.training.loop import Step, train
from agnncert.training.settings import checked
from agnncert.training.setup import with_measure

_ROUNDED = ("prior", "gate", "table")  # another machine may round these differently
_KINDS_OF_CHANGE = {"edges", "nodes", "features"}


@dataclass(frozen=True)
class StackedVotes(StackedSettings, Defence):
    """A score of each node's own features, and one bounded vote of each neighbour; settings as in the base class.

    ``fit(model, data, StackedVotes(size=3))`` trains copies of the model without edges, and votes of neighbours on
    top. It returns a new module. The model may be ``None``: then only edges vote.
    """

    kind: ClassVar[str] = "stacked"
    tasks: ClassVar[tuple[Task, ...]] = ("node",)
    for_other_tasks: ClassVar[str] = "stacked votes classify nodes: for graphs, pass a division."
    certify_options: ClassVar[frozenset[str]] = frozenset({"engine", "progress"})
    model_is_optional: ClassVar[bool] = True
    base_model: ClassVar[str | None] = "mlp"
    own_model: ClassVar[type[StackedModel]] = StackedModel
    open_without_model: ClassVar[str] = (
        "that the model computed these scores and votes, and may be certified: give the model"
    )
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "voting_rule": "its votes are bounded numbers that are added to a score, and no subgraph is empty",
            "subgraphs": "its models read no edges, and its votes are fitted to their scores by fit",
        }
    )

    def __str__(self) -> str:
        return StackedSettings.__str__(self)

    def fit(self, model: Any, data: Any, options: FitOptions) -> StackedModel:
        """Trains models without edges, with the settings of ``fit``, and then the votes."""
        self.require_own_task(infer_task(data))
        if options.voting_rule is not None:
            raise self.refusal("voting_rule")
        settings = checked(dict(options.settings), "node")
        require_edge_index(data)
        _require_parts(data)
        trusted = self.trusted_in_training(data)
        settings = with_measure(settings, trusted.y[trusted.train_mask], count_classes(trusted))
        measure = settings["measure"] or "accuracy"
        if rate_of(measure) is not None:
            raise SettingsError(
                f'measure="{measure}" needs a threshold, and stacked votes have none: choose "balanced".'
            )
        if self.edge_blind:
            require_no_edges_in(data, "edge_blind=True")
            _require_classes_of(model, trusted)
        begin = time.perf_counter()
        trained = fit_stacked(
            model,
            data,
            self,
            _training_of_one(options),
            seed=settings["seed"],
            inductive=settings["protocol"] != "transductive",
            weighting=ClassWeighting(measure, bool(settings["balance_classes"])),
            report_progress=_reporting(options),
        )
        record: Any = trained.training_record
        word = "balanced accuracy" if measure == "balanced" else measure
        score_name = f"{word} certified at about size {self.size:g}, training and validation part"
        if self.edge_blind:
            score_name = "accuracy of the models without edges on training nodes that they have not seen"
        trained.training_record = {  # type: ignore[assignment]
            **record,
            "seconds": time.perf_counter() - begin,
            "epochs_run": self.epochs,
            "score_name": score_name,
            "warnings": self._warnings(record),
        }
        return trained

    def trusted_in_training(self, data: Any) -> Any:
        """Returns the data, or of votes that are trained without edges the labelled nodes: nothing else is trusted."""
        return labelled_part(data) if self.edge_blind else data

    def _warnings(self, record: Mapping[str, Any]) -> list[str]:
        """Returns what the user should know about the outcome of training."""
        if record["uses_edges"]:
            return []
        others = "" if self.trusted is None else " that are not trusted"
        return [f"neighbours{others} have no vote: as much is certified at size {self.size:g} without"]

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Checks a model without edges: all of those that a trained model consists of are alike."""
        own = next(iter(model.own), None) if isinstance(model, StackedModel) else model and GraphFree(model).eval()
        if own is None:
            raise SettingsError("these votes read edges alone, so there is no model that could mix nodes.")
        return audit(own, data, PerNeighbour(), task=task)

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Computes scores and votes once and states what they prove. No subgraph is evaluated."""
        self.require_model(model)
        canonical_data = prepared(data, targets)
        self.require_own_task(canonical_data.task)
        chosen = canonical_data.targets(targets)
        settings_before = settings_of(model)
        tell(options.progress, AUDITING, 0)
        locality = audit_own(model, canonical_data.data)
        tell(options.progress, AUDITING, 1)
        evidence = StackedEvidence(**stacked_counts(model, chosen))
        digests = {**chosen.digests, "model": unchanged_digest(model, settings_before)}
        rounding = _rounding(model, chosen)
        claim = make_stacked_claim(evidence, digests=digests, locality=locality, notes=(str(self),), rounding=rounding)
        return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth, chosen.degree)

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Computes all scores and votes again."""
        contents, findings = comparison.contents, comparison.findings
        stored = StackedRecord.load(contents.evidence, contents.settings)
        chosen = comparison.targets()
        locality = audit_own(model, comparison.data.data)
        if contents.claim.locality == "construction" and locality != "construction":
            findings.not_checked.append("that locality is known by construction: here it is known by test")
        if contents.claim.rounding == "float64" and _rounding(model, chosen) != "float64":
            findings.wrong.append("the claim says that a bound on rounding proves how machines agree, and none does")
        comparison.compare_notes(self)
        slack = dict.fromkeys(_ROUNDED, stored.slack)
        findings.wrong += wrong_numbers(stored, stacked_counts(model, chosen), slack)
        findings.checked.append(f"the model, and all {len(stored.which):,} votes, computed again")
        findings.compared += ["data", "model"]  # without the model, nothing about neighbours is compared

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Returns the defence that the model was trained for; the file alone does not say how it is trained."""
        defence = getattr(model, "defence", None)
        return defence if isinstance(defence, cls) else cls()

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the stacked votes that a command or a settings file describes."""
        cls.require_own_task(task)
        cls.require_known_settings("stacked votes", name, settings)
        return cls(**settings)

    def explain(self, model: Any, data: Any, target: Any) -> VoteExplanation:
        """Explains the score of own features and the vote of each neighbour."""
        self.require_model(model)
        return explain_stacked(self, model, data, target)

    def live(self, model: Any, data: Any, **settings: Any) -> Any:
        """Returns an ``agnncert_live.LiveGraph``; ``settings`` are its further arguments."""
        make = addon("agnncert.live", self.kind, "agnncert_live", "a live graph")
        return make(self, model, data, **settings)

    def untrained(self, model: Any, data: Any, seed: int = 0) -> StackedModel:
        """Returns the model that ``fit`` would train: copies of the given one, and votes of neighbours."""
        if data is None:
            raise SettingsError("the shape of stacked votes depends on the data: name the data.")
        return untrained(model, data, self, seed)

    def require_own_model(self, model: Any) -> None:
        """Refuses a model that is not made of stacked votes in the way that this defence says.

        Raises:
            ModelContractError: It is another kind of model, or was made for other settings, or altered.
        """
        super().require_own_model(model)
        _require_blind_votes(model)

    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns the score of each class in steps of ``1 / STEPS`` of a vote, shape ``[n, num_classes]``."""
        return self.labels_and_scores(model, data, targets)[1]

    @torch.no_grad()
    def labels_and_scores(self, model: Any, data: Any, targets: Any = None) -> tuple[IntArray, IntArray]:
        """Returns the label of each target, which is decided before scores are rounded, and the scores."""
        self.require_model(model)
        chosen = prepared(data, targets).targets(targets)
        evidence = StackedEvidence(**stacked_counts(model, chosen))
        return evidence.labels(), evidence.counts

    def reach_in_hops(self) -> int:
        """Returns the number of levels: whose votes a label is made of."""
        return self.levels

    def hops_of_field(self, model: Any) -> int:
        """Returns 0, or 1 with two levels: the votes of neighbours then depend on all edges of theirs."""
        return self.levels - 1

    def trusted_column(self) -> int | None:
        """Returns the column that marks trusted edges, if there is one."""
        return self.trusted

    def choose_threshold(self, model: Any, data: Any, limit: AlertLimit, **settings: Any) -> OperatingPoint:
        """Chooses constants of the model on validation or kept nodes: the threshold is a part of the model."""
        self.require_threshold_settings(settings, ("size", "protocol"))
        if settings.get("size"):
            raise SettingsError("stacked votes are trained for a size: pass size= to StackedVotes, not here.")
        if self.edge_blind:
            raise SettingsError(
                "edge_blind=True: a threshold would be chosen by the scores of validation nodes, which edges that were "
                "changed before training move. Leave it out, or train without edge_blind."
            )
        self.require_model(model)
        validation = np.flatnonzero(data.val_mask.numpy())
        truth = data.y.numpy()[validation]
        counted = limit.kept
        if counted is None:
            counted = validation[truth != limit.positive] if limit.of_others else validation
        moved = with_threshold(model, data, limit, counted)
        label = self.labels(moved, data, validation)
        num_flagged = int((self.labels(moved, data, counted) == limit.positive).sum())
        possible = own_or_any(label, np.ones(len(label), dtype=bool), model.num_classes)
        return OperatingPoint(
            model=moved,
            defence=self,
            prior=tuple(round(score, 3) for score in (moved.constant - model.constant).tolist()),
            positive=limit.positive,
            size=0,
            alerts=int((label == limit.positive).sum()),
            flagged=num_flagged,
            measures=measured(possible, truth),
        )

    def without_edges(self, model: Any) -> Any:
        """Returns the models without edges that the votes are added to; ``None`` if only edges vote."""
        if not len(model.own):
            return None
        alone = StackedModel(list(model.own), model.num_classes, 0, StackedVotes())
        alone.use_votes.zero_()
        return alone.eval()


def _require_parts(data: Any) -> None:
    if data.y is None or getattr(data, "train_mask", None) is None or getattr(data, "val_mask", None) is None:
        raise DatasetError("stacked votes are trained on y, train_mask and val_mask: the data lacks one of them.")


def _require_classes_of(model: Any, labelled: Any) -> None:
    """Refuses a built-in model whose number of classes a node without a label may have decided.

    Raises:
        SettingsError: Nobody stated how many classes there are, and the model has others than the labelled nodes.
    """
    of_model = (config_of(model) or {}).get("out_channels")
    num_classes = count_classes(labelled)
    if of_model in (None, num_classes):
        return
    raise SettingsError(
        f"edge_blind=True: the model has {of_model} classes, and the labelled nodes have {num_classes}. If they were "
        "counted in all labels of the data, a node that is in no part decided it. Say how many there are: "
        f"data.num_classes = {of_model}, or build_model(…, out_channels={num_classes})."
    )


def _training_of_one(options: FitOptions) -> Callable[[torch.nn.Module, Any, int], torch.nn.Module]:
    """Returns a function that trains one model without edges, from a checkpoint of its own."""
    settings = {name: value for name, value in options.settings.items() if name not in ("protocol", "seed")}

    def train_one(model: torch.nn.Module, data: Any, seed: int) -> torch.nn.Module:
        checkpoint = None
        if options.checkpoint is not None:
            file = Path(options.checkpoint)
            checkpoint = file.with_name(f"{file.stem}-{seed}{file.suffix}")
        its_options = replace(options, settings={**settings, "seed": seed}, voting_rule=None, checkpoint=checkpoint)
        return train(model, data, None, its_options)

    return train_one


def _reporting(options: FitOptions) -> Callable[[str, float], None]:
    """Returns a function that reports which share of the training of votes is done."""

    def report(what: str, done: float) -> None:
        if options.progress is not None:
            options.progress(Step(what, round(100 * done), 100, math.nan, loss=math.nan, score=None))

    return report


def audit_own(model: StackedModel, data: Any) -> Locality:
    """Returns how it is known that the models without edges classify each row by itself.

    Raises:
        ModelContractError: One of them does not, or its numbers are not exact enough.
    """
    locality: Locality = "construction"
    of_data = inspect_data(data) if len(model.own) else []  # the same for all of them
    for own in model.own:
        report, _ = audited(own, data, PerNeighbour(), "node", faults_of_data=of_data)
        if not set(report.fit_for) >= _KINDS_OF_CHANGE:
            raise ModelContractError(str(report))
        if report.locality != "construction":
            locality = "test"
    probe_own(model, data.x)
    return locality


def _rounding(model: StackedModel, chosen: Targets) -> str:
    """Returns what the claim says about rounding: ``"float64"`` if a bound proves that machines agree up to a step."""
    if not all(type(own) is GraphFree and by_construction(own.model) for own in model.own):
        return ""  # some layer was not read
    graph = chosen.graph
    values = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
    return "float64" if steps_are_proved(model, graph.x, graph.edge_index, values) else ""


def _require_blind_votes(model: StackedModel) -> None:
    """Refuses a model that is said to be trained without edges, and has weights that were not set by rule."""
    trained = wrong_blind_votes(model) if model.defence.edge_blind else []
    if trained:
        raise ModelContractError(
            f"the model is said to be trained without reading edges, but {', '.join(trained[:5])} are not as fit sets "
            "them then. Certify the model that fit returned."
        )


def model_from_config(
    config: Mapping[str, Any], build_part: Callable[[Mapping[str, Any]], torch.nn.Module]
) -> StackedModel:
    """Builds the untrained model that ``config`` describes.

    Raises:
        SettingsError: The description is not one of stacked votes.
    """
    try:
        own = [build_part(part) for part in config["own"]]
        defence = StackedVotes(**config["defence"])
        return StackedModel(own, int(config["num_classes"]), int(config["edge_channels"]), defence)
    except (KeyError, TypeError) as error:
        raise SettingsError(f"the description of stacked votes is incomplete: {error}.") from error
