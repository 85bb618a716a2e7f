"""``IsolatedModels``: models that are trained apart, as a defence against poisoned training graphs."""

import copy
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.agreement import Comparison
from agnncert.auditing.model_audit import AuditReport, audit
from agnncert.certificates.claim import make_claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import ABSTAIN, IntArray, Votes
from agnncert.datasets.drawn_splits import require_fixed_split
from agnncert.datasets.encoding import require_no_fitted_encoding
from agnncert.defence import CertifyOptions, Defence, Findings, FitOptions, Task
from agnncert.divided.certify import certify_division
from agnncert.divided.evidence import VoteEvidence
from agnncert.divided.recompute import compare_subgraphs, compare_votes
from agnncert.divided.unaudited import evidence_of
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.named import parse_division
from agnncert.divisions.node import NodeCentric
from agnncert.errors import DivisionError, ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.hashing import HASHES
from agnncert.graphs.labels import stated_classes
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.graphs.task import infer_task
from agnncert.isolated.claim import make_isolated_claim
from agnncert.isolated.evidence import KIND, IsolatedEvidence
from agnncert.isolated.model import IsolatedEnsemble
from agnncert.isolated.parts import sort_into_parts, training_rows_of
from agnncert.isolated.record import GRAPH_IDS, MOST_MODELS, IsolatedRecord
from agnncert.isolated.training import train_apart
from agnncert.isolated.usable import unusable_graphs
from agnncert.models.digest import LATER, settings_of, unchanged_digest
from agnncert.proving.certificate import Certificate

_STRENGTH = ("", "test", "construction")  # of the ways in which it is known that a model is local


@dataclass(frozen=True)
class IsolatedModels(Defence):
    """Models of which each is trained on its own part of the training graphs; they vote in every view of a test graph.

    ``fit(model, graphs, IsolatedModels(num_models=50))`` trains 50 copies of the model. A training graph is in one
    part, by the hash of its ``graph_id``, so that n poisoned training graphs alter n models at most.

    Attributes:
        division: How test graphs are divided into views, ``NodeCentric`` or ``EdgeCentric``. With one view, which is
            the default, changes of test graphs are not covered.
        num_models: Number of models, from 1 to 32,768. Defaults to 50.
        hash: Hash function of the ids of training graphs. Defaults to "md5".
        ids: What identifies a training graph: its ``"graph_id"``, which is the default, or its ``"content"``, for
            graphs without an id of their own. By content, an altered graph counts as two poisoned ones.
        own_processes: Whether each model is trained in a process of its own, so that no state in memory passes from one
            part to another whatever the module does. It is not part of a certificate. Defaults to False: then one part
            of a module that is not built in is trained twice, and must come out the same.
    """

    division: Division = field(default_factory=lambda: NodeCentric(1))
    num_models: int = 50
    hash: str = "md5"
    ids: str = field(default="graph_id", metadata={LATER: True})
    own_processes: bool = field(default=False, compare=False)

    kind: ClassVar[str] = KIND
    tasks: ClassVar[tuple[Task, ...]] = ("graph",)
    for_other_tasks: ClassVar[str] = (
        "models that are trained apart classify graphs, because each of them has training graphs of its own; for "
        "poisoned labels of nodes there is LabelVotes."
    )
    certify_options: ClassVar[frozenset[str]] = frozenset(
        {"engine", "tolerance", "memory_limit", "workers", "progress"}
    )
    own_model: ClassVar[type[IsolatedEnsemble]] = IsolatedEnsemble
    open_without_model: ClassVar[str] = "that the models cast these votes, and are fit to: give the models"
    trusts_training_data: ClassVar[bool] = False
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "explain": "a label is the vote of many models in many views, and no edge belongs to one of them",
            "live": "it classifies graphs, and a live graph is one graph with many nodes",
            "subgraphs": "each of its models has training graphs of its own: call fit",
            "threshold": "views cast whole votes of models that were trained apart, and a prior would need validation "
            "graphs, which are training graphs here",
            "voting_rule": "views in which a graph has nothing abstain, and a prior would need validation graphs, "
            "which are training graphs here",
        }
    )

    def __post_init__(self) -> None:
        if type(self.division) not in (NodeCentric, EdgeCentric):
            raise SettingsError(
                f"division={self.division!r:.60}: test graphs are divided by NodeCentric or EdgeCentric; nothing is "
                "proved here about other divisions."
            )
        is_whole = isinstance(self.num_models, int) and not isinstance(self.num_models, bool)
        if not is_whole or not 1 <= self.num_models <= MOST_MODELS:
            raise SettingsError(
                f"num_models={self.num_models!r:.60}: expected a whole number from 1 to {MOST_MODELS:,}."
            )
        if self.hash not in HASHES:
            raise SettingsError(f"unknown hash {self.hash!r:.60}: {did_you_mean(str(self.hash), HASHES)}")
        if self.ids not in GRAPH_IDS:
            raise SettingsError(f"ids={self.ids!r:.60}: expected one of {', '.join(GRAPH_IDS)}.")
        if not isinstance(self.own_processes, bool):
            raise SettingsError(f"own_processes={self.own_processes!r:.60}: expected True or False.")

    def __str__(self) -> str:
        by_content = ", ids=content" if self.ids == "content" else ""
        return f"isolated-models(T={self.num_models}, hash={self.hash}{by_content}, views={self.division})"

    @property
    def groups(self) -> int:
        """Number of views, as commands call it."""
        return self.division.num_groups

    def to_json(self) -> dict[str, Any]:
        """Returns its settings as JSON values."""
        by_content = {"ids": self.ids} if self.ids == "content" else {}
        return {"division": str(self.division), "num_models": self.num_models, "hash": self.hash, **by_content}

    def fit(self, model: Any, data: Any, options: FitOptions) -> IsolatedEnsemble:
        """Trains one model for each part, and returns all of them as one module."""
        self.require_own_task(infer_task(data))
        if options.voting_rule is not None:
            raise self.refusal("voting_rule")
        require_fixed_split(data, "IsolatedModels")
        require_no_fitted_encoding(data, "IsolatedModels", "one poisoned graph changes what that part shows")
        begin = time.perf_counter()
        left_out = unusable_graphs(data, training_rows_of(data), _classes_of(data))
        parts = sort_into_parts(data, self.num_models, self.hash, self.ids, left_out)
        divides = self.division.num_groups > 1
        trained = train_apart(model, parts, self.division if divides else None, options, self.own_processes)
        sizes = [len(graphs) for graphs in parts]
        failed = [number for number, part in enumerate(trained) if part.failure is not None]
        abstains = torch.tensor([size == 0 or number in failed for number, size in enumerate(sizes)])
        ensemble = IsolatedEnsemble([part.model for part in trained], abstains, self).eval()
        ensemble.training_record = {
            "division": str(self),
            "seconds": time.perf_counter() - begin,
            "graphs_per_part": sizes,
            "failed_parts": failed,
            "graphs_left_out": list(left_out),
            "warnings": [*_warnings(sizes, failed), *_about_graphs(left_out)],
            **{name: value for name, value in options.settings.items() if isinstance(value, int | float | str)},
        }
        return ensemble

    def trusted_in_training(self, data: Any) -> Any:
        """Returns nothing: every training graph may be poisoned, so that all choices are constants."""
        return None

    def untrained(self, model: Any, data: Any, seed: int = 0) -> IsolatedEnsemble:
        """Returns an ensemble into which the weights of a trained one can be loaded."""
        copies = [copy.deepcopy(model) for _ in range(self.num_models)]
        return IsolatedEnsemble(copies, torch.zeros(self.num_models, dtype=torch.bool), self)

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Checks one model; those of a trained ensemble are all of the same kind."""
        one = model.models[0] if isinstance(model, IsolatedEnsemble) else model
        return audit(one, data, self.division, task=task)

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Computes the votes of every model in every view, and states what they prove."""
        self.require_model(model)
        canonical_data = prepared(data, targets, compact=True)
        self.require_own_task(canonical_data.task)
        chosen = canonical_data.targets(targets, self.division.self_loops)
        settings_before = settings_of(model)
        certified = _graphs_at(canonical_data, chosen.rows)
        certificates = [
            certify_division(one, canonical_data, self.division, targets, None, options, probed_on=certified)
            for one, is_empty in zip(model.models, model.is_empty.tolist(), strict=True)
            if not is_empty
        ]
        record = joined_record([_votes_of(each) for each in certificates], model.is_empty, self)
        claims = [each.claim for each in certificates]
        roundings = {claim.rounding for claim in claims}
        digests = {
            **chosen.digests,
            "model": unchanged_digest(model, settings_before),
            "division": hashlib.sha256(str(self.division).encode()).hexdigest(),
        }
        claim = make_isolated_claim(
            record,
            str(self.division),
            tolerance=min(claim.tolerance for claim in claims),
            digests=digests,
            locality=min((claim.locality for claim in claims), key=_STRENGTH.index),
            rounding=roundings.pop() if len(roundings) == 1 else "watched",
            notes=(str(self),),
        )
        return Certificate(claim, IsolatedEvidence(record), chosen.ids, chosen.rows, chosen.truth, chosen.degree)

    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns how many views vote for each class, shape ``[n, num_classes]``."""
        self.require_model(model)
        chosen = prepared(data, targets, compact=True).targets(targets, self.division.self_loops)
        with torch.no_grad():
            votes = [
                evidence_of(self.division, None, one, chosen)
                for one, is_empty in zip(model.models, model.is_empty.tolist(), strict=True)
                if not is_empty
            ]
        return IsolatedEvidence(joined_record(votes, model.is_empty, self)).counts

    def compare_graph(self, comparison: Comparison) -> None:
        """Forms the views again."""
        record = _record_of(comparison)
        if (record.num_models, record.hash, record.graph_ids) != (self.num_models, self.hash, self.ids):
            stated = f"{record.num_models} models, {record.hash} and ids by {record.graph_ids}"
            comparison.findings.wrong.append(f"the certificate is about {stated}, the defence at hand is {self}")
            return
        compare_subgraphs(_of_one(comparison, record, 0), self.division)

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Computes the votes of all models in all views again."""
        findings = comparison.findings
        comparison.compare_notes(self)
        for number, (one, is_empty) in enumerate(zip(model.models, model.is_empty.tolist(), strict=True)):
            findings.wrong += self._wrong_votes(comparison, number, None if is_empty else one)
        findings.checked.append(f"the votes of all {self.num_models} models in all views, computed again")
        findings.not_checked.append(
            "that each model was trained on its part alone: train again, which gives the same weights to the bit"
        )
        findings.compared.append("model")

    def _wrong_votes(self, comparison: Comparison, number: int, model: Any) -> list[str]:
        """Returns what is wrong with the votes of one model.

        Args:
            comparison: The file of all models beside the graphs.
            number: Number of the model.
            model: The model; ``None`` if its part is empty, so that it has to abstain.
        """
        record = _record_of(comparison)
        if model is None:
            silent = (record.vote[:, number] == ABSTAIN) & record.stable[:, number]
            return [] if silent.all() else [f"model {number} abstains according to the weights, and votes"]
        of_one = replace(_of_one(comparison, record, number), findings=Findings())
        compare_subgraphs(of_one, self.division)
        if not of_one.findings.wrong:
            certified = _graphs_at(comparison.data, comparison.contents.arrays["row"])
            compare_votes(of_one, model, self.division, probed_on=certified)
        return [f"model {number}: {text}" for text in of_one.findings.wrong]

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Returns the defence that a file names: its models, its hash, and how test graphs are divided."""
        record = IsolatedRecord.load(contents.evidence, contents.settings)
        try:
            return cls(parse_division(contents.claim.division), record.num_models, record.hash, record.graph_ids)
        except DivisionError as error:
            raise SettingsError(str(error)) from error

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the defence of a command: ``num_models``, ``hash``, ``ids``, and ``groups`` views by node."""
        valid = cls.setting_names(name)
        for key in settings:
            if key not in valid:
                raise SettingsError(
                    f'models that are trained apart have no setting "{key}": {did_you_mean(key, valid)}'
                )
        given = {key: value for key, value in settings.items() if value is not None}
        views = NodeCentric(given.pop("groups", 1))
        cls.require_own_task(task)
        return cls(views, **given)

    @classmethod
    def setting_names(cls, name: str) -> tuple[str, ...]:
        """Returns the names of the settings of commands."""
        return ("groups", "num_models", "hash", "ids", "own_processes")

    def resolved_settings(self) -> dict[str, Any]:
        """Returns the settings of commands, so that a run records them."""
        return {"groups": self.groups, "num_models": self.num_models, "hash": self.hash, "ids": self.ids}

    def require_own_model(self, model: Any) -> None:
        """Refuses what ``fit`` of this defence did not return, and an ensemble of which all models abstain.

        Raises:
            ModelContractError: It is another kind of model, or was made for other settings, or altered.
        """
        super().require_own_model(model)
        if bool(model.is_empty.all()):
            raise ModelContractError("no part has a training graph: there is nothing to certify.")


def joined_record(votes: list[VoteEvidence], is_empty: torch.Tensor, defence: IsolatedModels) -> IsolatedRecord:
    """Returns the votes of all models side by side.

    Args:
        votes: The votes of each model whose part is not empty. All are about the same views.
        is_empty: Whether each part is empty. Its model abstains.
        defence: The defence.
    """
    first = votes[0]
    numbers = np.flatnonzero(~is_empty.numpy())
    shape = (len(first.votes.group), len(is_empty))
    vote = np.full(shape, ABSTAIN, dtype=np.int16)
    stable = np.ones(shape, dtype=bool)
    for number, each in zip(numbers.tolist(), votes, strict=True):
        _require_same_views(first.votes, each.votes)
        vote[:, number] = each.votes.vote
        stable[:, number] = each.votes.stable
    return IsolatedRecord(
        theorem=first.theorem,
        num_groups=first.votes.num_groups,
        num_classes=first.votes.num_classes,
        num_models=defence.num_models,
        hash=defence.hash,
        indptr=first.votes.indptr,
        group=first.votes.group,
        reached=first.votes.reached,
        reach_ptr=first.reach_ptr,
        reach=first.reach,
        ids=first.ids,
        graph_ids=defence.ids,
        vote=vote,
        stable=stable,
    )


def _require_same_views(first: Votes, other: Votes) -> None:
    """Refuses votes of which views are listed otherwise, and empty views that do not abstain."""
    same = all(np.array_equal(getattr(first, name), getattr(other, name)) for name in ("indptr", "group", "reached"))
    silent = bool((other.default == ABSTAIN).all() and other.default_stable.all())
    if not same or not silent or first.num_classes != other.num_classes:
        raise ModelContractError("the models do not see the same views, or have another number of classes.")


def _graphs_at(data: CanonicalData, rows: IntArray) -> list[Data] | None:
    """Returns the certified graphs. The audit calls models on these alone: others may be poisoned, and overflow."""
    return [data.data[int(row)] for row in rows] or None


def _votes_of(certificate: Certificate) -> VoteEvidence:
    evidence = certificate.evidence
    assert isinstance(evidence, VoteEvidence)  # certify_division makes no other
    return evidence


def _record_of(comparison: Comparison) -> IsolatedRecord:
    contents = comparison.contents
    return IsolatedRecord.load(contents.evidence, contents.settings)


def _of_one(comparison: Comparison, record: IsolatedRecord, number: int) -> Comparison:
    """Returns the comparison of what a file about one model would say."""
    contents = comparison.contents
    claim = contents.claim
    votes = record.views(record.vote[:, number].copy(), record.stable[:, number].copy())
    own_claim = make_claim(
        votes,
        claim.division,
        tolerance=claim.tolerance,
        digests=claim.digests,
        locality=claim.locality,
        rounding=claim.rounding,
    )
    of_one = replace(contents, kind="votes", settings=votes.settings(), evidence=votes.tensors(), claim=own_claim)
    return replace(comparison, contents=of_one)


def _classes_of(data: Any) -> int:
    """Returns the number of classes, which no training graph may decide.

    Raises:
        SettingsError: Nobody stated it.
    """
    stated = stated_classes(data)
    if stated is not None:
        return stated
    raise SettingsError(
        "the number of classes must not be counted in training graphs, which may be poisoned: state it, "
        "GraphSet(graphs, train=…, num_classes=…). A graph with another class is then left out. Of tables, state the "
        "names: load_tables(…, classes=[…]), or --set classes=NAME,NAME."
    )


def _warnings(sizes: list[int], failed: list[int]) -> list[str]:
    """Returns what the user should know about the parts."""
    warnings = []
    num_empty = sizes.count(0)
    if num_empty:
        warnings.append(
            f"{num_empty} of {len(sizes)} parts have no training graph, and their models abstain: choose fewer models"
        )
    if failed:
        shown = ", ".join(str(number) for number in failed[:10]) + (", …" if len(failed) > 10 else "")
        warnings.append(
            f"training diverged or stopped on {len(failed)} of {len(sizes)} parts ({shown}), and their models abstain: "
            "look for extreme features in the graphs of these parts; if they are many, lower lr or set clip=1.0"
        )
    return warnings


def _about_graphs(left_out: Mapping[int, str]) -> list[str]:
    """Returns what the user should know about the training graphs."""
    if not left_out:
        return []
    return [f"{len(left_out)} training graphs cannot be used and were left out: {next(iter(left_out.values()))}"]


def model_from_config(
    config: Mapping[str, Any], build_part: Callable[[Mapping[str, Any]], torch.nn.Module]
) -> IsolatedEnsemble:
    """Builds the untrained ensemble that ``config`` describes.

    Raises:
        SettingsError: The description is not one of models that are trained apart.
    """
    try:
        settings = dict(config["defence"])
        defence = IsolatedModels(parse_division(settings.pop("division")), **settings)
        copies = [build_part(config["part"]) for _ in range(defence.num_models)]
        return IsolatedEnsemble(copies, torch.zeros(defence.num_models, dtype=torch.bool), defence)
    except (KeyError, TypeError, DivisionError) as error:
        raise SettingsError(f"the description of models that are trained apart is incomplete: {error}.") from error
