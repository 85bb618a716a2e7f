"""``choose_groups``: which division, and how many groups, certify most against a given attack.

More groups withstand larger attacks, but each group sees less of the graph. Which number is best depends on the size of
the attack, so several are tried on the validation set.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.datasets import inductive_view
from agnncert.divisions.base import EdgeCentric, NodeCentric, rule_of
from agnncert.errors import ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.graph import Task, canonical, canonical_set, infer_task
from agnncert.models import build_model
from agnncert.proof.ballots import IntArray
from agnncert.proof.budget import COUNTS, Budget
from agnncert.proof.evidence import BallotEvidence
from agnncert.training.loop import Step, fit
from agnncert.training.preparation import checked_labels, graph_labels, masked_rows, part_rows
from agnncert.training.settings import Protocol, recipe
from agnncert.voting.auditing import audit
from agnncert.voting.call import Caller, bind
from agnncert.voting.cast import cast

log = logging.getLogger(__name__)

BuiltIn = EdgeCentric | NodeCentric
DIVISIONS = ("edge", "node", "gated")

# Multiples of the fewest groups that can certify a size at all.
_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
# Where some kind of change is unlimited, a vote needs more ballots than a target has neighbours.
_FEWEST_UNLIMITED = 30


@dataclass(frozen=True)
class Candidate:
    """A division that was tried.

    Attributes:
        division: The division.
        accuracy: Share of targets that the vote gets right.
        certified_accuracy: Share of targets that it gets right and that withstand the attack.
    """

    division: BuiltIn
    accuracy: float
    certified_accuracy: float


@dataclass(frozen=True)
class GroupChoice:
    """What ``choose_groups`` found; ``print`` shows it as a table.

    Attributes:
        best: The candidate with the best certified accuracy.
        candidates: All that were tried.
        model: The model that voted: the one that was given, or the one that was trained for this division.
        size: The attack that counted.
        num_targets: Nodes or graphs in the validation set.
    """

    best: Candidate
    candidates: tuple[Candidate, ...]
    model: torch.nn.Module
    size: int | Budget
    num_targets: int

    @property
    def division(self) -> BuiltIn:
        """The division of the best candidate."""
        return self.best.division

    def __str__(self) -> str:
        attack = f"size {self.size}" if isinstance(self.size, int) else str(self.size)
        lines = [
            f"certified accuracy against {attack}, on the {self.num_targets} targets of the validation set",
            f"  {'division':<14}{'groups':>8}{'accuracy':>10}{'certified':>11}",
        ]
        for one in self.candidates:
            mark = "*" if one is self.best else " "
            lines.append(
                f"{mark} {_kind(one.division):<14}{one.division.num_groups:>8}"
                f"{one.accuracy:>10.3f}{one.certified_accuracy:>11.3f}"
            )
        if isinstance(self.size, int) and len({_kind(one.division) for one in self.candidates}) > 1:
            lines.append(
                "The size counts edges for edge-centric, edges and nodes for node-centric: to compare like with "
                "like, give a Budget."
            )
        return "\n".join(lines)


def choose_groups(
    model: str | torch.nn.Module,
    data: Any,
    size: int | Budget,
    *,
    divisions: Sequence[str] = ("edge", "node"),
    candidates: Sequence[int] | None = None,
    hash: str = "md5",
    model_settings: Mapping[str, Any] | None = None,
    fit_settings: Mapping[str, Any] | None = None,
    protocol: Protocol = "transductive",
    seed: int = 0,
    progress: Callable[[Step], None] | None = None,
) -> GroupChoice:
    """Picks division and number of groups for the best certified accuracy on the validation set.

    A model is trained once per division and votes with every number of groups; training does not have to use
    the number that certification uses. Where several candidates do equally well the one with the fewest groups
    is taken, because its subgraphs keep most of the structure; then the one that votes best; then the division
    that was named first.

    Args:
        model: Name of a built-in model, to be trained; or a trained module, to be taken as it is.
        data: A ``Data`` with ``y`` and masks, or a ``GraphSet`` with ``train`` and ``val``.
        size: The attack that counts: a perturbation size, or a ``Budget``.
        divisions: Which to try: ``"edge"``, ``"node"``, ``"gated"`` (node-centric, gated features).
        candidates: Numbers of groups to try; when not given, from 2 ``size`` + 1, the fewest that can certify
            that size, to ten times as many.
        hash: Hash function of the divisions.
        model_settings: Arguments of ``build_model``, on top of the recipe for the data.
        fit_settings: Arguments of ``fit``, on top of the recipe for the data.
        protocol: "inductive" trains and votes without the test nodes and their edges (node task).
        seed: Seed of the model and of its training.
        progress: Called after every epoch of training.

    Raises:
        SettingsError: A setting is senseless, or no candidate can certify the size.
        ModelContractError: A model was given that cannot be certified.
        DatasetError: Labels or splits are missing.

    Example: ``choice = ac.choose_groups("gcn", data, size=20)``, then
    ``ac.certify(choice.model, data, choice.division, targets=data.test_mask)``.
    """
    task = infer_task(data)
    _check(size, divisions, task)
    if task == "node" and protocol == "inductive":
        data = inductive_view(data)
    numbers = candidate_groups(size) if candidates is None else sorted({int(one) for one in candidates})
    if not numbers or (isinstance(size, int) and 2 * size > numbers[-1]):
        raise SettingsError(
            f"candidates={list(numbers)}: certifying size {size} takes at least {2 * _units(size)} groups."
        )
    tried: list[tuple[Candidate, torch.nn.Module]] = []
    targets = _Targets.of(data, task)
    for kind in divisions:
        options = [_division(kind, number, hash) for number in numbers]
        voter = model
        if isinstance(voter, str):
            middle = options[len(options) // 2]
            voter = _trained(voter, data, task, middle, size, model_settings, fit_settings, seed, progress)
        tried += [(candidate, voter) for candidate in targets.vote(voter, data, options, size)]
    best, voter = min(
        tried, key=lambda pair: (-pair[0].certified_accuracy, pair[0].division.num_groups, -pair[0].accuracy)
    )
    return GroupChoice(best, tuple(candidate for candidate, _ in tried), voter, size, len(targets.rows))


def candidate_groups(size: int | Budget) -> list[int]:
    """Numbers of groups worth trying against an attack.

    A vote of T ballots withstands at most T / 2 of them changing.

    Example:
        >>> candidate_groups(10)
        [21, 32, 42, 63, 84, 126, 210]
    """
    fewest = 2 * _units(size) + 1
    if isinstance(size, Budget) and math.inf in (getattr(size, name) for name in COUNTS):
        fewest = max(fewest, _FEWEST_UNLIMITED)
    return sorted({math.ceil(step * fewest) for step in _STEPS})


def _units(size: int | Budget) -> int:
    """About how many ballots an attack moves, leaving out the kinds of change that are unlimited."""
    if not isinstance(size, Budget):
        return size
    counts = [getattr(size, name) for name in COUNTS if name not in ("inject_nodes", "edges_per_injected")]
    edges = size.injected_edges if math.isfinite(size.injected_edges) else size.inject_nodes
    return int(sum(count for count in [*counts, edges] if math.isfinite(count)) + size.target_features)


def _check(size: int | Budget, divisions: Sequence[str], task: Task) -> None:
    whole = isinstance(size, int) and not isinstance(size, bool) and size >= 0
    if not (whole or isinstance(size, Budget)):
        raise SettingsError(f"size={size!r}: expected a whole number from 0 on, or a Budget.")
    if isinstance(divisions, str) or not divisions:
        raise SettingsError(f"divisions={divisions!r}: expected one or several of {', '.join(DIVISIONS)}.")
    for kind in divisions:
        if kind not in DIVISIONS:
            raise SettingsError(f'no division is called "{kind}": {did_you_mean(str(kind), DIVISIONS)}')
        if kind == "gated" and task == "graph":
            raise SettingsError("the gated division is for node classification: try edge and node for graphs.")


def _division(kind: str, num_groups: int, hash: str) -> BuiltIn:
    if kind == "edge":
        return EdgeCentric(num_groups, hash)
    return NodeCentric(num_groups, hash, gate_features=kind == "gated")


def _kind(division: BuiltIn) -> str:
    if isinstance(division, EdgeCentric):
        return "edge-centric"
    return "gated" if division.gate_features else "node-centric"


def _trained(
    name: str,
    data: Any,
    task: Task,
    division: BuiltIn,
    size: int | Budget,
    model_settings: Mapping[str, Any] | None,
    fit_settings: Mapping[str, Any] | None,
    seed: int,
    progress: Callable[[Step], None] | None,
) -> torch.nn.Module:
    log.info("training %s for %s", name, division)
    model_args, fit_args = recipe(getattr(data, "name", None), task)
    if name == "resgcn":  # has its own depth
        model_args = {key: value for key, value in model_args.items() if key != "num_layers"}
    model = build_model(name, data, **{**model_args, "seed": seed, **(model_settings or {})})
    select = min(size, division.num_groups // 2) if isinstance(size, int) else 0
    fit_args = {**fit_args, "seed": seed, "select_size": select, "progress": progress, **(fit_settings or {})}
    return fit(model, data, division, **fit_args)


@dataclass(frozen=True)
class _Targets:
    """The validation set, in the form that engines take."""

    task: Task
    graph: Data
    rows: IntArray
    truth: Any

    @classmethod
    def of(cls, data: Any, task: Task) -> "_Targets":
        if task == "node":
            rows = masked_rows(data, "val_mask")
            return cls(task, canonical(data), rows, getattr(data, "y", None))
        part = part_rows(data, "val")
        return cls(task, canonical_set([data[int(k)] for k in part]), np.arange(len(part)), graph_labels(data)[part])

    def vote(
        self, model: torch.nn.Module, data: Any, divisions: Sequence[BuiltIn], size: int | Budget
    ) -> list[Candidate]:
        """Every division's vote; the model is audited and bound once."""
        call = bind(model, self.graph, self.task)
        report = audit(model, self.task, divisions[0], data)
        if not report.ok:
            raise ModelContractError(str(report))
        total = len(self.rows) if self.task == "graph" else int(self.graph.num_nodes)
        truth = checked_labels(self.truth, total, self.rows, call.num_classes).numpy()[self.rows]
        return [self._candidate(call, one, size, truth, report.tolerance) for one in divisions]

    def _candidate(
        self, call: Caller, division: BuiltIn, size: int | Budget, truth: IntArray, tolerance: float
    ) -> Candidate:
        votes, (cover_ptr, cover) = cast(call, self.graph, division, self.rows, tolerance=tolerance)
        ids = "node_id" if self.graph.stable_ids else "row"
        rule, parameters = rule_of(division, self.task)
        evidence = BallotEvidence(votes, rule, cover_ptr, cover.astype(np.int32), ids, parameters)
        label, radius = evidence.label_and_radius()
        holds = evidence.holds(size) if isinstance(size, Budget) else radius >= size
        right = label == truth
        candidate = Candidate(division, float(right.mean()), float((right & holds).mean()))
        log.info("%s: certified accuracy %.4f", division, candidate.certified_accuracy)
        return candidate
