"""``PairVotes``: votes about pairs of nodes as a defence."""

import copy
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from agnncert.agreement import Comparison, wrong_numbers
from agnncert.auditing.degree_features import inspect_features
from agnncert.auditing.findings import Finding
from agnncert.auditing.label_columns import column_that_is_the_label
from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray
from agnncert.defence import CertifyOptions, Defence, FitOptions, Task
from agnncert.errors import DatasetError, ModelContractError, SettingsError
from agnncert.explanation import VoteExplanation
from agnncert.graphs.targets import prepared
from agnncert.models.digest import settings_of, unchanged_digest
from agnncert.pairs.claim import make_pair_claim
from agnncert.pairs.evidence import PairEvidence
from agnncert.pairs.explain import explain_pair
from agnncert.pairs.model import LOWEST, PairModel, PairPrior
from agnncert.pairs.record import PairRecord
from agnncert.pairs.settings import PairSettings
from agnncert.pairs.targets import PairTargets, choose_pairs, pairs_of_file, require_one_label_both_ways
from agnncert.pairs.training import Examples, examples_of, train, untrained
from agnncert.pairs.voters import neighbours_of_pairs, unmasked
from agnncert.proving.certificate import Certificate
from agnncert.stacked.own_probes import strange_rows
from agnncert.stacked.record import STEPS
from agnncert.training.loop import Step

FEW_PAIRS = 48
MOST_STEPS = 1 / 16  # how far apart two computations of a score may lie before it is rounded
NOT_WRITTEN = "targets are pairs of nodes, and this is not written for them"


@dataclass(frozen=True)
class PairVotes(PairSettings, Defence):
    """A score of a pair's own features, and one vote of each common neighbour; settings as in the base class.

    ``fit(None, data, PairVotes(size=1))`` trains it on ``data.edge_label_index`` and ``data.edge_label``, and
    ``certify(model, data, model.defence, targets=edge_label_index)`` certifies pairs. A model of your own instead of
    ``None`` is called as ``model(x_u, x_v, values)``, and must classify each pair by itself.
    """

    kind: ClassVar[str] = "pairs"
    tasks: ClassVar[tuple[Task, ...]] = ("pair",)
    for_other_tasks: ClassVar[str] = "votes about pairs classify pairs of nodes: for nodes or graphs, pass a division."
    model_is_optional: ClassVar[bool] = True
    base_model: ClassVar[str | None] = "none"
    own_model: ClassVar[type[PairModel]] = PairModel
    open_without_model: ClassVar[str] = "that the model computed these scores and votes: give the model"
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "live": NOT_WRITTEN,
            "threshold": "fit chooses it on the validation pairs",
            "voting_rule": "its votes are bounded numbers that are added to a score, and no subgraph is empty",
            "subgraphs": "it evaluates no subgraph",
        }
    )

    def __str__(self) -> str:
        return PairSettings.__str__(self)

    def fit(self, model: Any, data: Any, options: FitOptions) -> PairModel:
        """Trains a prior on training pairs, then weight and threshold on validation pairs."""
        examples = self._examples(data)
        seed = _seed_of(options)
        begin = time.perf_counter()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = untrained(model, examples, self)
            _require_no_structure(examples.train, self)
            _require_no_labels_in(examples.train)
            trained = train(made, examples, _reporting(options))
        trained.training_record = {
            "defence": str(self),
            "seed": seed,
            "seconds": time.perf_counter() - begin,
            "epochs_run": self.epochs,
            "uses_edges": bool(trained.use_votes),
            "warnings": []
            if trained.use_votes
            else [f"votes are not used: as much is certified at {self.size} without"],
        }
        return trained

    def _examples(self, data: Any) -> Examples:
        canonical_data = prepared(data)
        if not self.directed and self.trusted is None:
            require_one_label_both_ways(canonical_data)
        return examples_of(canonical_data.data, lambda mask: choose_pairs(canonical_data, mask))

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Refuses: what has to be checked about a prior is checked by ``certify``, on the pairs."""
        raise SettingsError(
            "audit is for models of nodes and graphs. certify checks the prior of PairVotes on the pairs themselves."
        )

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Computes scores and votes once and states what they prove."""
        self.require_model(model)
        chosen = choose_pairs(prepared(data), targets)
        settings_before = settings_of(model)
        _require_no_structure(chosen, self)
        probe_prior(model, chosen)
        evidence = evidence_of(model, chosen)
        digests = {**chosen.digests, "model": unchanged_digest(model, settings_before)}
        claim = make_pair_claim(evidence, digests=digests, locality=_locality(model), notes=(str(self),))
        return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth)

    def explain(self, model: Any, data: Any, target: Any) -> VoteExplanation:
        """Explains which common neighbours or contacts voted for which class of a pair, which is named "u – v"."""
        self.require_model(model)
        return explain_pair(self, model, data, target)

    def compare_graph(self, comparison: Comparison) -> None:
        """Compares the graph, and the pairs that the file names."""
        contents, findings = comparison.contents, comparison.findings
        stored = PairRecord.load(contents.evidence, contents.settings)
        if stored.pairs.max(initial=-1) >= comparison.data.total:
            there = comparison.data.total
            findings.wrong.append(f"the certificate names row {stored.pairs.max()}, the data has {there}")
            return
        comparison.compare_targets(_pairs_of(comparison, stored))

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Computes all scores and votes again, for the pairs that the file names."""
        contents, findings = comparison.contents, comparison.findings
        stored = PairRecord.load(contents.evidence, contents.settings)
        chosen = _pairs_of(comparison, stored)
        _require_no_structure(chosen, self)
        probe_prior(model, chosen)
        if contents.claim.locality == "construction" and _locality(model) != "construction":
            findings.wrong.append("the claim says that the prior is known by construction, and it is not")
        comparison.compare_notes(self)
        findings.wrong += _differences(stored, evidence_of(model, chosen))
        findings.checked.append(f"the model, and all {len(stored.which):,} votes, computed again")
        findings.compared += ["data", "model"]

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Returns the defence that the model was trained for; the file alone does not say how it is trained."""
        defence = getattr(model, "defence", None)
        return defence if isinstance(defence, cls) else cls()

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the votes that a command or a settings file describes."""
        cls.require_own_task(task)
        cls.require_known_settings("votes about pairs", name, settings)
        return cls(**settings)

    def untrained(self, model: Any, data: Any, seed: int = 0) -> PairModel:
        """Returns the model that ``fit`` would train."""
        if data is None:
            raise SettingsError("the shape of votes about pairs depends on the data: name the data.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return untrained(model, self._examples(data), self)

    def labels_and_scores(self, model: Any, data: Any, targets: Any = None) -> tuple[IntArray, IntArray]:
        """Returns the label of each pair, and its scores in steps of ``1 / STEPS`` of a vote."""
        self.require_model(model)
        evidence = evidence_of(model, choose_pairs(prepared(data), targets))
        return evidence.labels(), evidence.counts

    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns the score of each class in steps of ``1 / STEPS`` of a vote, shape ``[n, num_classes]``."""
        return self.labels_and_scores(model, data, targets)[1]


def evidence_of(model: PairModel, chosen: PairTargets) -> PairEvidence:
    """Returns what is counted for some pairs.

    Raises:
        ModelContractError: A number that the model computes is not finite, or too large to be counted.
    """
    masked = model.masked_pairs(chosen.ends)
    counted = model.counted(chosen.graph, chosen.ends, chosen.values, masked)
    return PairEvidence(**counted, ids=chosen.id_kind)


def _seed_of(options: FitOptions) -> int:
    """Returns the seed; other settings of ``fit`` are refused, because nothing here reads them."""
    known = {"seed", "protocol"}
    foreign = [name for name in options.settings if name not in known]
    if foreign or options.voting_rule is not None:
        named = ", ".join(foreign) or "voting_rule"
        raise SettingsError(f"{named}: PairVotes trains networks of its own. Set epochs and hidden in PairVotes(…).")
    return int(options.settings.get("seed", 0))


def _reporting(options: FitOptions) -> Any:
    def report(what: str, done: float) -> None:
        if options.progress is not None:
            options.progress(Step(what, round(100 * done), 100, math.nan, loss=math.nan, score=None))

    return report


def _locality(model: PairModel) -> str:
    """Returns how it is known that the prior classifies each pair by itself."""
    return "construction" if type(model.prior) is PairPrior else "test"


@torch.no_grad()
def probe_prior(model: PairModel, chosen: PairTargets) -> None:
    """Computes scores again: in another order, one by one, and beside rows that an attacker might inject.

    Raises:
        ModelContractError: What the prior says about a pair depends on other pairs, or is not exact enough.
    """
    if not len(chosen.ends):
        return
    exact = copy.deepcopy(model).double().eval()
    values = exact.with_own_edges(chosen.graph, chosen.ends, chosen.values, model.masked_pairs(chosen.ends))
    exact.require_values(values)
    place = torch.linspace(0, len(chosen.ends) - 1, min(FEW_PAIRS, len(chosen.ends))).round().long()
    u, v = chosen.graph.x.double()[torch.from_numpy(chosen.ends[place.numpy()])].unbind(dim=1)
    given = values[place].double()
    together = _logits(exact, u, v, given)
    alone = torch.cat([_logits(exact, u[k : k + 1], v[k : k + 1], given[k : k + 1]) for k in range(len(place))])
    turned = _logits(exact, u.flip(0), v.flip(0), given.flip(0)).flip(0)
    odd = torch.cat([*strange_rows(u).values()])
    count = len(odd)
    crowded = _logits(exact, torch.cat([u, odd]), torch.cat([v, odd]), torch.cat([given, given[:1].expand(count, -1)]))
    for other in (alone, turned, crowded[: len(place)]):
        apart = float((together - other).abs().max() * model.scale.abs()) * STEPS
        if not apart <= MOST_STEPS:
            raise ModelContractError(
                f"the prior's score of a pair changes by {apart:.3g} / {STEPS:,} of a vote when other pairs are "
                "computed with it. Each pair must be classified by its own features alone, in float64."
            )


def _logits(model: PairModel, u: Tensor, v: Tensor, values: Tensor) -> Tensor:
    logits = model.prior(u, v, values)
    if logits.dtype != torch.float64:
        raise ModelContractError(
            f"the prior answers in {logits.dtype} where it is given float64: do not convert numbers."
        )
    return torch.log_softmax(logits, dim=1).clamp(min=LOWEST)


def _require_no_structure(chosen: PairTargets, defence: PairSettings) -> None:
    """Refuses features, and values of pairs, that follow degrees: whoever adds an edge changes them.

    Raises:
        ModelContractError: Names the columns.
    """
    graph = chosen.graph
    findings = [*inspect_features(graph), *_structure_in_values(chosen)]
    if findings:
        named = "; ".join(f"{finding.where} {finding.what} {finding.why}" for finding in findings[:9])
        raise ModelContractError(
            f"the prior of a pair must not read the graph: {named}. Leave these columns out; edges vote instead."
        )


def _require_no_labels_in(training: PairTargets) -> None:
    """Refuses values that are another name of the label, as in a table that has it twice.

    Raises:
        DatasetError: A column is different for two classes, and the same within each of them.
    """
    truth, values = training.truth, training.values.numpy()
    if truth is None or len(truth) < FEW_PAIRS:
        return
    column = column_that_is_the_label(values, truth)
    if column is not None:
        raise DatasetError(
            f"column {column} of edge_label_attr is the same for all training pairs of a class, and not "
            "for all classes: it is the label, which nobody knows when a decision is made. Leave it out."
        )


def _structure_in_values(chosen: PairTargets) -> Iterator[Finding]:
    """Yields the columns of ``edge_label_attr`` that follow degrees, or the number of common neighbours."""
    if not chosen.values.size(1) or len(chosen.ends) < FEW_PAIRS // 2:
        return
    graph, ends = chosen.graph, chosen.ends
    src, dst = graph.edge_index.long().numpy()
    out, into = np.bincount(src, minlength=graph.num_nodes), np.bincount(dst, minlength=graph.num_nodes)
    voters = neighbours_of_pairs(graph, ends, unmasked(graph, ends[:0]), both=False)
    totals = {"number of common neighbours": np.bincount(voters.owner, minlength=len(ends))}
    for name, degree in (("edges", out + into), ("outgoing edges", out), ("incoming edges", into)):
        first, second = degree[ends[:, 0]], degree[ends[:, 1]]
        totals |= {f"number of {name} of the first node": first, f"number of {name} of the second node": second}
        totals |= {
            f"number of {name} of both nodes": first + second,
            f"product of both numbers of {name}": first * second,
        }
    for column, values in enumerate(chosen.values.double().T.numpy()):
        for what, total in totals.items():
            if _follows(values, total):
                yield Finding("edge_label_attr", f"column {column}", f"follows the {what}", "")
                break


def _follows(values: Any, total: IntArray) -> bool:
    """Tells whether values only rise, or only fall, with a total, and are the same where it is the same."""
    order = np.lexsort((values, total))
    steps, growth = np.diff(values[order]), np.diff(total[order])
    slack = 1e-6 * max(float(np.abs(values).max(initial=0)), 1e-30)
    distinct = int((np.abs(steps) > slack).sum())
    same = (np.abs(steps[growth == 0]) <= slack).all()
    return bool(distinct >= 4 and same and ((steps >= -slack).all() or (steps <= slack).all()))


def _pairs_of(comparison: Comparison, stored: PairRecord) -> PairTargets:
    """Returns the pairs that a file names, in the data at hand."""
    return pairs_of_file(comparison.data, stored.pairs, comparison.contents.arrays["row"])


def _differences(stored: PairRecord, here: PairEvidence) -> Iterator[str]:
    """Yields what a file states that the model does not compute."""
    # Tables of votes are compared vote by vote: rounding may make two different votes one.
    names = [each.name for each in fields(here) if each.name not in ("table", "which")]
    computed = {name: getattr(here, name) for name in names}
    yield from wrong_numbers(stored, computed, {"prior": stored.slack})
    mine, theirs = here.table[here.which], stored.table[stored.which]
    if mine.shape != theirs.shape or np.abs(mine.astype(np.int64) - theirs).max(initial=0) > stored.slack:
        yield "the votes are not what the model computes on this graph"


def model_from_config(config: dict[str, Any], build_part: Any) -> PairModel:
    """Builds the untrained model that ``config`` describes; ``build_part`` is not needed.

    Raises:
        SettingsError: The description is not one of votes about pairs.
    """
    try:
        prior = PairPrior(**config["prior"])
        return PairModel(
            prior, int(config["num_classes"]), int(config["edge_channels"]), PairVotes(**config["defence"])
        )
    except (KeyError, TypeError) as error:
        raise SettingsError(f"the description of votes about pairs is incomplete: {error}.") from error
