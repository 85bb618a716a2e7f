"""``choose_voting_rule``: the vote, and the number of groups, that certify most at the size that a user cares about.

Ballots are cast once for each number of groups; which prior they get, and what empty groups cast, is then a matter of
counting (``vote_search``). Answers that look at no graph stand beside the model's, and win where it is no better.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import torch

from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.certifier import certify
from agnncert.datasets.splits import inductive_view
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric, EdgeDivision, PerEdge
from agnncert.divisions.named import title_of
from agnncert.divisions.node import NodeCentric, NodeDivision, PerNeighbour
from agnncert.engine.call import require_order
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.graph import Task, infer_task
from agnncert.graphs.targets import CanonicalData, graph_classes
from agnncert.models.build import build_constant
from agnncert.training.rule_search import (
    BallotTable,
    Constants,
    Empty,
    best_constants,
    best_edgeless_prior,
    certified,
    constant_answer,
    joined,
    majority,
    size_only,
    window,
)
from agnncert.training.settings import SETTINGS, Against, Protocol
from agnncert.training.setup import checked_labels, masked_rows, part_rows

BuiltIn = EdgeDivision | NodeDivision

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
        rule: The voting rule.
        label: Which class every filled group votes for, if the size alone decides.
        accuracy: Share of targets that the vote gets right.
        certified_accuracy: Share of targets that it gets right and certifies at the design size.
        score: Mean share at the design size and the two beside it, by which votes are compared.
        outcomes: For each target the mean over these sizes, on which the score rests.
    """

    name: str
    division: BuiltIn
    rule: VotingRule
    label: int | None
    accuracy: float
    certified_accuracy: float
    score: float
    outcomes: FloatArray


@dataclass(frozen=True)
class RuleChoice:
    """What ``choose_voting_rule`` found; ``print`` shows it as a table.

    Attributes:
        best: The candidate that was chosen.
        candidates: All votes that were tried.
        model: The model that casts the ballots: the one that was given, or, where the size alone does as well, one that
            votes the same class in every group.
        size: The design size.
        num_targets: Nodes or graphs on which it was chosen.
        against: "any" change, or "structure": edges and nodes added and deleted alone.
    """

    best: RuleCandidate
    candidates: tuple[RuleCandidate, ...]
    model: torch.nn.Module
    size: int
    num_targets: int
    against: Against = "any"

    @property
    def rule(self) -> VotingRule:
        """The voting rule that was chosen."""
        return self.best.rule

    @property
    def division(self) -> BuiltIn:
        """The division that was chosen."""
        return self.best.division

    @property
    def given_up(self) -> float:
        """Accuracy without any attack that another candidate would have had beyond that of the chosen one."""
        return max(one.accuracy for one in self.candidates) - self.best.accuracy

    def __str__(self) -> str:
        lines = [
            f"chosen for size {self.size}{_AGAINST[self.against]}, on {self.num_targets} targets",
            f"  {'what decides':<14}{'division':<14}{'groups':>8}{'empty':>10}{'prior':>16}"
            f"{'accuracy':>10}{'certified':>11}",
        ]
        for one in self.candidates:
            mark = "*" if one is self.best else " "
            lines.append(
                f"{mark} {one.name:<14}{title_of(one.division):<14}{_groups_text(one.division):>8}"
                f"{one.rule.empty!s:>10}"
                f"{'  ' + _prior_text(one.rule):>16}{one.accuracy:>10.3f}{one.certified_accuracy:>11.3f}"
            )
        if self.given_up > 0:
            lines.append(f"Without an attack another candidate is right more often, by {self.given_up:.3f}.")
        return "\n".join(lines)


def choose_voting_rule(
    model: torch.nn.Module,
    data: Any,
    division: BuiltIn,
    size: int,
    *,
    candidates: Sequence[int] | None = None,
    against: Against = "any",
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
        protocol: "inductive" and "held-out" vote without the test nodes and their edges (node task).

    Raises:
        SettingsError: A setting is senseless.
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
    SETTINGS["protocol"].check("protocol", protocol)
    if task == "node" and protocol != "transductive":
        data = inductive_view(data)
    parts = _parts(data, task)
    ready, tried = CanonicalData.of(data), list[RuleCandidate]()
    for option in divisions:
        tables = [_table(model, ready, option, rows, against) for rows in parts]
        tried += _for_graphs(joined(tables), option, size) if task == "graph" else _for_nodes(tables[0], option, size)
        num_classes = tables[0].num_classes
    if task == "graph" and candidates is None and not division.is_per_neighbour:
        exact = PerEdge(division.self_loops) if isinstance(division, EdgeDivision) else PerNeighbour()
        tried.append(_counted_exactly(ready, exact, parts, num_classes, size, against))
    best = _simplest(tried)
    if best.label is not None:
        model = build_constant(data, best.label, len(best.rule.class_prior))
    return RuleChoice(best, tuple(tried), model, size, sum(map(len, parts)), against)


def require_choice(division: Any, size: Any) -> None:
    """Refuses a division, or a size, for which no vote can be chosen.

    Raises:
        SettingsError: The size is no whole number, or the division is another than the two.
    """
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


def _parts(data: Any, task: Task) -> list[IntArray]:
    if task == "node":
        return [masked_rows(data, "val_mask")]
    return [part_rows(data, name).numpy() for name in ("train", "val")]


def _table(
    model: torch.nn.Module, ready: CanonicalData, division: BuiltIn, rows: IntArray, against: Against
) -> BallotTable:
    # Where every neighbour has a group of its own, the edgeless prediction is no ballot: a prior brings it in.
    own = division.is_per_neighbour
    vote = VotingRule(prior=1) if own and ready.task == "node" else None
    evidence: Any = certify(model, ready, division, rows, rule=vote).evidence
    labels = graph_classes(ready.data) if ready.task == "graph" else getattr(ready.data, "y", None)
    truth = checked_labels(labels, ready.total, rows, evidence.votes.num_classes).numpy()[rows]
    return BallotTable.of_own_groups(evidence, truth, against) if own else BallotTable.of(evidence.votes, truth)


def _for_graphs(table: BallotTable, division: BuiltIn, size: int) -> list[RuleCandidate]:
    sizes = window(size)
    label, by_size = size_only(table, sizes)
    plain = Constants("abstain", (0,) * table.num_classes, 0.0)
    return [
        _candidate(CONSTANT, table, constant_answer(table, majority(table), sizes), division, size),
        _candidate(SIZE_ONLY, table.voting(label), by_size, division, size, label),
        _candidate(PLAIN, table, plain, division, size),
        _candidate(MODEL, table, best_constants(table, sizes), division, size),
    ]


def _counted_exactly(
    ready: CanonicalData, division: BuiltIn, parts: list[IntArray], num_classes: int, size: int, against: Against
) -> RuleCandidate:
    """The answer by size alone if every edge, or node, has a group of its own: hashed ones fall together and hide some.

    One class votes for each, the other casts what is empty, and the prior is twice the size from which on the first
    wins. So each change costs two votes and each edge or node is worth two: no rule by size alone certifies more.
    """
    voting = build_constant(ready.data, 0, num_classes)
    table = joined([_table(voting, ready, division, rows, against) for rows in parts])
    label, by_size = size_only(table, window(size))
    return _candidate(SIZE_ONLY, table.voting(label), by_size, division, size, label)


def _for_nodes(table: BallotTable, division: BuiltIn, size: int) -> list[RuleCandidate]:
    sizes = window(size)
    empties: list[Empty] = ["abstain"] if division.is_per_neighbour else ["edgeless", "abstain"]
    usual, found = empties[0], [best_edgeless_prior(table, sizes, empty) for empty in empties]
    return [
        _candidate(NO_EDGES, table, Constants(usual, table.num_groups + 1, 0.0), division, size),
        _candidate(PLAIN, table, Constants(usual, 0, 0.0), division, size),
        *(_candidate(MODEL, table, constants, division, size) for constants in found),
    ]


def _candidate(
    name: str, table: BallotTable, constants: Constants, division: BuiltIn, size: int, label: int | None = None
) -> RuleCandidate:
    def marks(at: int) -> FloatArray:
        return np.asarray(certified(table, constants.empty, constants.prior, at), dtype=np.float64) * table.weight

    outcomes = np.mean([marks(at) for at in window(size)], axis=0)
    vote = VotingRule(empty=constants.empty, prior=constants.prior)
    return RuleCandidate(
        name, division, vote, label, float(marks(0).sum()), float(marks(size).sum()), float(outcomes.sum()), outcomes
    )


def _simplest(tried: Sequence[RuleCandidate]) -> RuleCandidate:
    """The best candidate of each name; of these the simplest that none beats by more than chance explains."""
    best = max(tried, key=lambda one: (one.score, -_SIMPLER.index(one.name), -_groups(one.division)))
    for name in _SIMPLER:
        same = [one for one in tried if one.name == name]
        if not same:
            continue
        rival = max(same, key=lambda one: (one.score, -_groups(one.division)))
        difference = best.outcomes - rival.outcomes
        error = math.sqrt(float(((difference - difference.mean()) ** 2).sum()))
        if best.score - rival.score <= error:
            return rival
    return best


def _groups(division: BuiltIn) -> float:
    return math.inf if division.is_per_neighbour else division.num_groups


def _groups_text(division: BuiltIn) -> str:
    return "" if division.is_per_neighbour else str(division.num_groups)


def _prior_text(vote: VotingRule) -> str:
    return str(vote.prior) if isinstance(vote.prior, int) else "/".join(map(str, vote.prior))
