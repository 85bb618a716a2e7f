"""``choose_groups``: which division, and how many groups, certify most against a given attack.

More groups withstand larger attacks, but each group sees less of the graph. Which number is best depends on the size of
the attack, so several are tried on the validation set.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from agnncert.certifier import certify
from agnncert.datasets import inductive_view
from agnncert.divisions import AGNNCERT, EdgeCentric, NodeCentric, division_named, title_of
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.graph import Task, infer_task
from agnncert.graphs.targets import Prepared
from agnncert.models import build_model
from agnncert.models.build import count_classes
from agnncert.proof.ballots import IntArray
from agnncert.proof.budget import COUNTS, Budget
from agnncert.proof.vote import Vote
from agnncert.training.defaults import usual_arguments
from agnncert.training.loop import Step, fit
from agnncert.training.preparation import checked_labels, graph_labels, masked_rows, part_rows, require_vote
from agnncert.training.settings import SETTINGS, Protocol

log = logging.getLogger(__name__)

BuiltIn = EdgeCentric | NodeCentric

_MULTIPLES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)  # of the fewest groups that can certify a size at all
_FEWEST_UNLIMITED = 30  # where a change is unlimited, a vote needs more ballots than a target has neighbours


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
        candidates: All divisions that were tried.
        model: The model that voted: the one that was given, or the one that was trained for this division.
        size: The attack that they were to withstand.
        num_targets: Nodes or graphs in the validation set.
        vote: How ballots were added up; as usual if ``None``.
    """

    best: Candidate
    candidates: tuple[Candidate, ...]
    model: torch.nn.Module
    size: int | Budget
    num_targets: int
    vote: Vote | None = None

    @property
    def division(self) -> BuiltIn:
        """The division of the best candidate."""
        return self.best.division

    def __str__(self) -> str:
        attack = f"size {self.size}" if isinstance(self.size, int) else str(self.size)
        under = "" if self.vote is None else f", with {self.vote}"
        lines = [
            f"certified accuracy against {attack}, on the {self.num_targets} targets of the validation set{under}",
            f"  {'division':<14}{'groups':>8}{'accuracy':>10}{'certified':>11}",
        ]
        for tried in self.candidates:
            mark = "*" if tried is self.best else " "
            lines.append(
                f"{mark} {title_of(tried.division):<14}{tried.division.num_groups:>8}"
                f"{tried.accuracy:>10.3f}{tried.certified_accuracy:>11.3f}"
            )
        if isinstance(self.size, int) and len({title_of(tried.division) for tried in self.candidates}) > 1:
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
    candidates: Sequence[float] | None = None,
    vote: Vote | None = None,
    hash: str = "md5",
    model_settings: Mapping[str, Any] | None = None,
    fit_settings: Mapping[str, Any] | None = None,
    protocol: Protocol = "transductive",
    seed: int = 0,
    progress: Callable[[Step], None] | None = None,
) -> GroupChoice:
    """Picks division and number of groups for the best certified accuracy on the validation set.

    A model is trained once per division and votes with every number of groups; training need not use the number that
    certification uses. Where several candidates do equally well the one with the fewest groups is taken, because its
    subgraphs keep most of the structure; then the one that votes best; then the division that was named first.

    Args:
        model: Name of a built-in model, to be trained; or a trained module, to be taken as it is.
        data: A ``Data`` with ``y`` and masks, or a ``GraphSet`` with ``train`` and ``val``.
        size: The attack to withstand: a perturbation size, or a ``Budget``.
        divisions: Which to try: ``"edge"``, ``"node"``, ``"gated"`` (node-centric, gated features).
        candidates: Numbers of groups to try, ``math.inf`` for one per neighbour; when not given, from 2 ``size`` + 1,
            the fewest that can certify that size without a prior, to ten times as many.
        vote: What empty groups cast, and votes that are there from the start, the same for all candidates;
            ``choose_vote`` chooses these too.
        hash: Hash function of the divisions.
        model_settings: Arguments of ``build_model``, on top of what is usual for the data.
        fit_settings: Arguments of ``fit``, on top of what is usual for the data.
        protocol: "inductive" trains and votes without the test nodes and their edges, "held-out" trains without the
            validation nodes as well (node task).
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
    SETTINGS["protocol"].check("protocol", protocol)
    if task == "node" and protocol != "transductive":
        data = inductive_view(data)
    given = () if candidates is None else {number if number == math.inf else int(number) for number in candidates}
    numbers: list[float] = [*candidate_groups(size)] if candidates is None else sorted(given)
    has_prior = isinstance(vote, Vote) and bool(vote.prior)
    if not numbers or (isinstance(size, int) and 2 * size > numbers[-1] and not has_prior):
        raise SettingsError(
            f"candidates={list(numbers)}: certifying size {size} takes at least {2 * _units(size)} groups."
        )

    def trained(name: str, division: BuiltIn) -> torch.nn.Module:
        log.info("training %s for %s", name, division)
        model_args, fit_args = usual_arguments(getattr(data, "name", None), data, name)
        untrained = build_model(name, data, **{**model_args, "seed": seed, **(model_settings or {})})
        select = size if isinstance(size, int) else 0
        if not has_prior:
            select = int(min(select, division.num_groups // 2))
        fit_args = {**fit_args, "seed": seed, "select_size": select, "progress": progress, "vote": vote}
        if protocol == "held-out":  # the test nodes are gone already; the validation nodes are hidden by fit itself
            fit_args["protocol"] = protocol
        return fit(untrained, data, division, **{**fit_args, **(fit_settings or {})})

    all_options = {kind: [_division(kind, number, hash, task) for number in numbers] for kind in divisions}
    num_classes = count_classes(data) if isinstance(model, str) else None
    for option in (division for options in all_options.values() for division in options):
        require_vote(vote, option, task, num_classes)
    tried: list[tuple[Candidate, torch.nn.Module]] = []
    rows = masked_rows(data, "val_mask") if task == "node" else part_rows(data, "val").numpy()
    ready = Prepared.of(data)
    for options in all_options.values():
        voter = trained(model, options[len(options) // 2]) if isinstance(model, str) else model
        tried += [(_tried(voter, ready, division, size, rows, vote), voter) for division in options]
    best, voter = min(
        tried, key=lambda pair: (-pair[0].certified_accuracy, pair[0].division.num_groups, -pair[0].accuracy)
    )
    return GroupChoice(best, tuple(candidate for candidate, _ in tried), voter, size, len(rows), vote)


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
    return sorted({math.ceil(multiple * fewest) for multiple in _MULTIPLES})


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
        raise SettingsError(f"divisions={divisions!r}: expected one or several of {', '.join(AGNNCERT)}.")
    for kind in divisions:
        if kind not in AGNNCERT:
            raise SettingsError(f'no division is called "{kind}": {did_you_mean(str(kind), AGNNCERT)}')
        division_named(kind, task=task)  # refuses one that is not for this task


def _division(kind: str, number: float, hash: str, task: Task) -> BuiltIn:
    division: BuiltIn = division_named(kind, None if number == math.inf else int(number), hash, task)
    return replace(division, num_groups=math.inf) if number == math.inf else division


def _tried(
    model: torch.nn.Module, ready: Prepared, division: BuiltIn, size: int | Budget, rows: IntArray, vote: Vote | None
) -> Candidate:
    """How a division does on the validation set."""
    certificate = certify(model, ready, division, rows, vote=vote)
    labels = graph_labels(ready.data) if ready.task == "graph" else getattr(ready.data, "y", None)
    truth = checked_labels(labels, ready.total, rows, certificate.counts.shape[1]).numpy()[rows]
    right = certificate.label == truth
    holds = certificate.holds_against(size) if isinstance(size, Budget) else certificate.radius >= size
    candidate = Candidate(division, float(right.mean()), float((right & holds).mean()))
    log.info("%s: certified accuracy %.4f", division, candidate.certified_accuracy)
    return candidate
