"""``choose_voting_rule``: the vote, and the number of groups, that certify most at the size that a user cares about.

Votes are cast once for each number of groups; which prior they get, and what empty groups cast, is then a matter of
counting (``rule_search``). Answers that look at no graph stand beside the model's, and win where it is no better.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import torch

from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.splits import inductive_view
from agnncert.defence import AlertLimit, GraphData, as_defence, require_size_of_prior
from agnncert.divided.certify import certify_division
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric, EdgeDivision, PerEdge
from agnncert.divisions.named import title_of
from agnncert.divisions.node import NodeCentric, NodeDivision, PerNeighbour
from agnncert.engine.arguments import require_order
from agnncert.errors import SettingsError, did_you_mean, suggests_arguments
from agnncert.evaluation_mode import evaluating
from agnncert.graphs.graph import Task
from agnncert.graphs.labels import graph_classes
from agnncert.graphs.targets import CanonicalData
from agnncert.graphs.task import infer_task
from agnncert.models.build import build_constant
from agnncert.proving.measures import MEASURES, Measures, measured
from agnncert.training.labels import checked_labels, masked_rows, part_rows
from agnncert.training.rule_search import (
    VoteTable,
    alert_leads,
    best_class_prior,
    best_no_edge_prior,
    best_threshold,
    certified,
    constant_rule,
    joined,
    majority,
    possible_labels,
    size_only,
    thresholds_of,
    window,
)
from agnncert.training.settings import SETTINGS, Against, Protocol

BuiltIn = EdgeDivision | NodeDivision
_TablesOf = Callable[[torch.nn.Module, BuiltIn], list[VoteTable]]  # one table for each part of the data

CONSTANT, NO_EDGES, SIZE_ONLY, PLAIN, MODEL = "constant", "no edges", "size only", "plain vote", "with a prior"
_SIMPLER = (CONSTANT, NO_EDGES, SIZE_ONLY, PLAIN, MODEL)  # the simpler answer first
_AGAINST = {"any": "", "structure": " (edges and nodes added and deleted)"}
_MULTIPLES = (1, 3, 10)  # of the number of groups: more of them see less each, and are counted more finely


@dataclass(frozen=True)
class RuleCandidate:
    """A vote that was tried.

    Attributes:
        name: What decides: "constant", "no edges", "size only", "plain vote" or "with a prior".
        division: The division.
        voting_rule: The voting rule.
        label: Which class every filled group votes for, if the size alone decides.
        accuracy: Share of targets that the vote gets right.
        certified_accuracy: Share of targets that it gets right and certifies at the design size.
        score: Mean share at the design size and the two beside it, by which votes are compared.
        outcomes: For each target the mean over these sizes, on which the score rests.
    """

    name: str
    division: BuiltIn
    voting_rule: VotingRule
    label: int | None
    accuracy: float
    certified_accuracy: float
    score: float
    outcomes: FloatArray

    @property
    def num_groups(self) -> float:
        """Number of groups; ``math.inf`` if every neighbour has its own."""
        return math.inf if self.division.is_per_neighbour else self.division.num_groups


@dataclass(frozen=True)
class WhereManyVote:
    """What neighbours prove where they are many, although over all targets the prediction without edges proves more.

    Attributes:
        least: From how many neighbours on they are many.
        num_targets: Number of these targets.
        voting_rule: The voting rule that certifies most of them.
        certified_accuracy: Share of them that it gets right and certifies at the design size.
        without_edges: The same for the prediction without edges.
    """

    least: int
    num_targets: int
    voting_rule: VotingRule
    certified_accuracy: float
    without_edges: float

    def __str__(self) -> str:
        prior = prior_text(self.voting_rule)
        return (
            f"Of the {self.num_targets} targets with {self.least} neighbours or more, prior {prior} certifies "
            f"{self.certified_accuracy:.3f}, and no edges {self.without_edges:.3f}. If you certify such nodes, take "
            f"VotingRule(prior={prior})."
        )


@dataclass(frozen=True)
class RuleChoice:
    """What ``choose_voting_rule`` found; ``print`` shows it as a table.

    Attributes:
        best: The candidate that was chosen.
        candidates: All votes that were tried.
        model: The model that casts the votes: the one that was given, or, where the size alone does as well, one that
            votes the same class in every group.
        size: The design size.
        num_targets: Nodes or graphs on which it was chosen.
        against: "any" change, or "structure": edges and nodes added and deleted alone.
        measure: "accuracy" or "balanced", which all numbers of the candidates are.
        constant: The measure of the best constant answer, which no attack changes.
        many: What votes of neighbours certify where these are many, if that is more than what was chosen certifies
            there; ``None`` otherwise.
    """

    best: RuleCandidate
    candidates: tuple[RuleCandidate, ...]
    model: torch.nn.Module
    size: int
    num_targets: int
    against: Against = "any"
    measure: str = "accuracy"
    constant: float = 0.0
    many: WhereManyVote | None = None

    @property
    def voting_rule(self) -> VotingRule:
        """The voting rule that was chosen."""
        return self.best.voting_rule

    @property
    def division(self) -> BuiltIn:
        """The division that was chosen."""
        return self.best.division

    def as_defence(self) -> Any:
        """Returns the division with the voting rule that was chosen for it, as a defence."""
        defence = self.division.as_defence().with_voting_rule(self.voting_rule)
        return defence if self.best.label is None else replace(defence, only_model=self.model)

    @property
    def given_up(self) -> float:
        """Accuracy without any attack that another candidate would have had beyond that of the chosen one."""
        return max(one.accuracy for one in self.candidates) - self.best.accuracy

    def to_json(self) -> dict[str, Any]:
        """Returns what was chosen and what else was tried, as JSON values, as run folders store it."""
        candidates = [
            {
                "decides": candidate.name,
                "division": str(candidate.division),
                **candidate.voting_rule.to_json(),
                "chosen": candidate is self.best,
                "accuracy": candidate.accuracy,
                "certified_accuracy": candidate.certified_accuracy,
            }
            for candidate in self.candidates
        ]
        return {
            "size": self.size,
            "against": self.against,
            "targets": self.num_targets,
            "text": str(self),
            "given_up": self.given_up,
            "candidates": candidates,
        }

    def __str__(self) -> str:
        lines = [
            f"chosen for size {self.size}{_AGAINST[self.against]}, on {self.num_targets} targets",
            f"  {'what decides':<14}{'division':<14}{'groups':>8}{'empty':>10}{'prior':>16}"
            f"{self.measure:>10}{'certified':>11}",
        ]
        for one in self.candidates:
            mark, groups = "*" if one is self.best else " ", "" if one.num_groups == math.inf else str(one.num_groups)
            lines.append(
                f"{mark} {one.name:<14}{title_of(one.division):<14}{groups:>8}{one.voting_rule.empty!s:>10}"
                f"{'  ' + prior_text(one.voting_rule):>16}{one.accuracy:>10.3f}{one.certified_accuracy:>11.3f}"
            )
        if self.given_up > 0:
            lines.append(f"Without an attack another candidate is right more often, by {self.given_up:.3f}.")
        if self.best.certified_accuracy < self.constant - 1e-12:
            lines.append(f"What is certified is below the most frequent class alone ({self.constant:.3f}).")
        if self.best.name == NO_EDGES:
            lines.append("No edge decides anything now: no attack on edges matters, and edges are worth nothing.")
        if self.many is not None:
            lines.append(str(self.many))
        return "\n".join(lines)


@suggests_arguments
def choose_voting_rule(
    model: torch.nn.Module,
    data: GraphData,
    division: BuiltIn,
    size: int,
    *,
    candidates: Sequence[int] | None = None,
    against: Against = "any",
    measure: str = "accuracy",
    protocol: Protocol = "transductive",
) -> RuleChoice:
    """Picks the number of groups, what empty groups cast, and the prior, for the best certified accuracy at a size.

    Graphs: constants are chosen on training and validation graphs, each part counting the same, because a validation
    set of a few hundred is too small alone. Nodes: on validation nodes. If these were in the graph on which the model
    was trained, it knows their features, its prediction without edges looks better than it is, and the prior comes out
    too large. So train with ``fit(..., protocol="held-out")``, and choose with the same word here.

    Votes are compared by their mean certified accuracy at ``size`` and the two sizes beside it. The model's vote is
    taken only if it beats the constant answer, the answer without edges (nodes) and the answer by size alone (graphs)
    by more than chance explains: one standard error of the difference.

    Args:
        model: A trained module.
        data: A ``Data`` with ``y`` and ``val_mask``, or a ``GraphSet`` with ``train`` and ``val``.
        division: ``EdgeCentric`` or ``NodeCentric``.
        size: The perturbation size that matters.
        candidates: Numbers of groups to try; when not given, for graphs that of the division, 3 and 10 times as many,
            and, for the answer by size alone, one for each edge or node; for nodes that of the division.
        against: What the size counts: "any" change, as ``radius`` does; or "structure", as ``structure_radius``: edges
            and nodes added and deleted alone. There is a difference only for ``PerEdge`` and ``PerNeighbour``.
        measure: "accuracy", or "balanced": every class counts the same, so that rare ones matter. For the recall of one
            of two classes see :func:`choose_threshold`.
        protocol: "inductive" and "held-out" vote without the test nodes and their edges (node task).

    Raises:
        SettingsError: A setting is not valid.
        ModelContractError: The model cannot be certified.
        DatasetError: Labels or splits are missing.

    Example: ``choice = ac.choose_voting_rule(model, data, division, size=3)``, then
    ``ac.certify(choice.model, data, choice)``.
    """
    require_order(model, data, division)
    task = infer_task(data)
    divisions = _divisions(division, size, candidates, task)
    if against not in get_args(Against):
        raise SettingsError(f'against="{against}": {did_you_mean(str(against), get_args(Against))}')
    if measure not in MEASURES:
        raise SettingsError(f'measure="{measure}": {did_you_mean(str(measure), MEASURES)}')
    with evaluating(model):
        as_defence(division).require_model(model)
    data = _seen(data, task, protocol)
    parts = _parts(data, task)
    canonical_data = CanonicalData.of(data)
    tried: list[RuleCandidate] = []

    def tables_of(voting_model: torch.nn.Module, option: BuiltIn) -> list[VoteTable]:
        return [_table(voting_model, canonical_data, option, rows, against, measure) for rows in parts]

    for option in divisions:
        tables = tables_of(model, option)
        tried += _for_graphs(joined(tables), option, size) if task == "graph" else _for_nodes(tables[0], option, size)
        num_classes = tables[0].num_classes
    if task == "graph" and candidates is None and not division.is_per_neighbour:
        exact = PerEdge(division.self_loops) if isinstance(division, EdgeDivision) else PerNeighbour()
        tried.append(_counted_exactly(tables_of, canonical_data.data, exact, num_classes, size))
    best = _simplest(tried)
    if best.label is not None:
        model = build_constant(data, best.label, len(best.voting_rule.class_prior))
    constant = joined(tables)
    share = float(np.bincount(constant.truth, constant.weight).max())
    many = _where_many_vote(tables[0], division, size, measure) if best.name == NO_EDGES else None
    return RuleChoice(best, tuple(tried), model, size, len(constant.truth), against, measure, share, many)


def require_choice(division: Any, size: Any) -> None:
    """Raises SettingsError if no vote can be chosen for this division, or the size is no whole number."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise SettingsError(f"size={size!r}: expected a whole number from 0 on.")
    if not isinstance(division, Division) or not division.knows_empty_groups:
        raise SettingsError(
            f"{division}: a vote is chosen for EdgeCentric or NodeCentric without gated features, where it is known "
            "which groups are empty, and what the prediction without edges is."
        )


def _divisions(division: BuiltIn, size: int, candidates: Sequence[int] | None, task: Task) -> list[BuiltIn]:
    require_choice(division, size)
    if not isinstance(division, EdgeCentric | NodeCentric):
        if candidates is not None:
            raise SettingsError(f"candidates={candidates}: {division} has one subgraph per neighbour; leave it out.")
        return [division]
    if candidates is None:
        multiples = _MULTIPLES if task == "graph" else (1,)
        candidates = [multiple * division.num_groups for multiple in multiples]
    if not candidates:
        raise SettingsError("candidates=[]: give at least one number of groups.")
    return [replace(division, num_groups=number) for number in sorted(set(candidates))]


def _seen(data: Any, task: Task, protocol: Protocol) -> Any:
    """The data that votes while a rule is chosen."""
    SETTINGS["protocol"].check("protocol", protocol)
    return inductive_view(data) if task == "node" and protocol != "transductive" else data


def _parts(data: Any, task: Task) -> list[IntArray]:
    if task == "node":
        return [masked_rows(data, "val_mask")]
    return [part_rows(data, name).numpy() for name in ("train", "val")]


def _table(
    model: torch.nn.Module, ready: CanonicalData, division: Division, rows: IntArray, against: Against, measure: str
) -> VoteTable:
    least_prior = division.least_prior(ready.task)
    voting_rule = VotingRule(prior=least_prior) if least_prior else None
    with evaluating(model):
        evidence: Any = certify_division(model, ready, division, rows, voting_rule).evidence
    labels = graph_classes(ready.data) if ready.task == "graph" else getattr(ready.data, "y", None)
    truth = checked_labels(labels, ready.total, rows, evidence.votes.num_classes).numpy()[rows]
    return VoteTable.of(evidence, truth, against, measure)


def _for_graphs(table: VoteTable, division: BuiltIn, size: int) -> list[RuleCandidate]:
    sizes = window(size)
    plain = VotingRule("abstain", (0,) * table.num_classes)
    return [
        _candidate(CONSTANT, table, constant_rule(table, majority(table)), division, size),
        _by_size(table, division, size),
        _candidate(PLAIN, table, plain, division, size),
        _candidate(MODEL, table, best_class_prior(table, sizes), division, size),
    ]


def _by_size(table: VoteTable, division: BuiltIn, size: int) -> RuleCandidate:
    label, voting_rule = size_only(table, window(size))
    return _candidate(SIZE_ONLY, table.voting(label), voting_rule, division, size, label)


def _counted_exactly(tables_of: _TablesOf, data: Any, division: BuiltIn, num_classes: int, size: int) -> RuleCandidate:
    """The answer by size alone if every edge, or node, has a group of its own: hashed ones fall together and hide some.

    One class votes for each, the other casts what is empty, and the prior is twice the size from which on the first
    wins. So each change costs two votes and each edge or node is worth two: no rule by size alone certifies more.
    """
    constant = build_constant(data, 0, num_classes)
    return _by_size(joined(tables_of(constant, division)), division, size)


def _for_nodes(table: VoteTable, division: BuiltIn, size: int) -> list[RuleCandidate]:
    empties = division.empty_votes_of_nodes
    no_edges, plain = VotingRule(empties[0], table.num_groups + 1), VotingRule(empties[0], 0)
    found = [(MODEL, best_no_edge_prior(table, window(size), empty)) for empty in empties]
    return [
        _candidate(name, table, voting_rule, division, size)
        for name, voting_rule in [(NO_EDGES, no_edges), (PLAIN, plain), *found]
    ]


def _where_many_vote(table: VoteTable, division: BuiltIn, size: int, measure: str) -> WhereManyVote | None:
    """Returns what votes certify for targets with many neighbours, if it is more than without edges.

    Fewer than ``2 * size + 1`` neighbours cannot withstand ``size`` changes. Many are twice as many. Over all targets,
    those with few decide the choice, and nobody would ask whether the others lose by it.
    """
    least = 2 * (2 * size + 1)
    has_many = table.counts.sum(axis=1) + table.conceded >= least
    if not division.is_per_neighbour or not has_many.any():
        return None
    without, *others = _for_nodes(table.rows(has_many, measure), division, size)
    best = max(others, key=lambda one: one.certified_accuracy)
    if best.certified_accuracy <= without.certified_accuracy:
        return None
    return WhereManyVote(
        least, int(has_many.sum()), best.voting_rule, best.certified_accuracy, without.certified_accuracy
    )


def _candidate(
    name: str, table: VoteTable, voting_rule: VotingRule, division: BuiltIn, size: int, label: int | None = None
) -> RuleCandidate:
    counts = table.counts_of_truth(voting_rule)
    marks = {at: certified(table, voting_rule, at, counts) * table.weight for at in {0, *window(size)}}
    outcomes = np.mean([marks[at] for at in window(size)], axis=0)
    return RuleCandidate(
        name,
        division,
        voting_rule,
        label,
        float(marks[0].sum()),
        float(marks[size].sum()),
        float(outcomes.sum()),
        outcomes,
    )


def _simplest(tried: Sequence[RuleCandidate]) -> RuleCandidate:
    """The best candidate of each name; of these the simplest that none beats by more than chance explains."""
    best = max(tried, key=lambda one: (one.score, -_SIMPLER.index(one.name), -one.num_groups))
    for name in _SIMPLER:
        same = [one for one in tried if one.name == name]
        if not same:
            continue
        rival = max(same, key=lambda one: (one.score, -one.num_groups))
        difference = best.outcomes - rival.outcomes
        error = math.sqrt(float(((difference - difference.mean()) ** 2).sum()))
        if best.score - rival.score <= error:
            return rival
    return best


def prior_text(voting_rule: VotingRule) -> str:
    """The prior as a table shows it: one number, or ``0/12``."""
    return "/".join(map(str, voting_rule.class_prior or (voting_rule.prior,)))


@dataclass(frozen=True)
class DivisionThreshold:
    """A threshold on votes; attributes as in ``agnncert.defence.OperatingPoint``."""

    voting_rule: VotingRule
    positive: int
    size: int
    alerts: int
    flagged: int
    measures: Measures
    certified: Measures


def choose_prior(
    model: torch.nn.Module,
    data: Any,
    division: Division,
    limit: AlertLimit,
    *,
    size: int = 0,
    protocol: Protocol = "transductive",
) -> DivisionThreshold:
    """Picks the threshold of a vote for a number of targets that may get the label of one class.

    The threshold is a prior, so that a certificate with this voting rule is about this threshold. Of all
    thresholds, and of what empty groups may vote for, it has the best certified recall on the validation part among
    those that keep to the limit there without an attack. If targets were kept for the threshold, the validation part
    chooses what empty groups vote for, and the kept ones the prior.

    A vote can only be cut where votes differ: if nearly all groups are empty for a target and vote for the prediction
    without edges, hardly any threshold lies between two targets. ``PerNeighbour`` and ``PerEdge`` divide most finely.

    Args:
        model: A trained module.
        data: A ``Data`` with ``y`` and ``val_mask``, or a ``GraphSet`` with ``val``.
        division: Any division.
        limit: How many targets may get the label of which class.
        size: The perturbation size at which as much recall as possible should be certified, in steps of the radius.
        protocol: As for ``choose_voting_rule``, for the validation part.

    Raises:
        SettingsError: A setting is senseless.
        ModelContractError: The model cannot be certified.
        DatasetError: Labels or splits are missing.
    """
    require_order(model, data, division)
    require_size_of_prior(size)
    task = infer_task(data)
    seen = _seen(data, task, protocol)
    ready, rows = CanonicalData.of(seen), _parts(seen, task)[-1]
    table = _table(model, ready, division, rows, "any", "accuracy")
    positive = limit.positive
    if positive >= table.num_classes:
        raise SettingsError(f"positive={positive}: the model has the classes 0 to {table.num_classes - 1}.")
    counted = table.truth != positive if limit.of_others else np.ones(len(rows), dtype=bool)
    threshold = best_threshold(table, thresholds_of(division, task), positive, counted, limit.most, size)
    empty = threshold.empty
    lead = threshold.lead
    flagged = int((alert_leads(table, empty, positive)[counted] <= lead).sum())
    if limit.kept is not None:
        of_kept = _table(model, CanonicalData.of(data), division, limit.kept, "any", "accuracy")
        leads = alert_leads(of_kept, empty, positive)
        lead = int(np.sort(leads)[limit.most_kept]) - 1  # below that of the first that may not be flagged
        flagged = int((leads <= lead).sum())
    prior = [max(-lead, 0)] * table.num_classes
    prior[positive] = max(lead, 0)

    def measures(at: int) -> Measures:
        return measured(possible_labels(table, empty, prior, at), table.truth)

    alerted = int((alert_leads(table, empty, positive) <= lead).sum())
    voting_rule = VotingRule(empty, tuple(prior))
    return DivisionThreshold(voting_rule, positive, size, alerted, flagged, measures(0), measures(size))
