"""Rows of a comparison: what ``compare`` runs, and one row for each defence, control and envelope.

An *envelope* takes, at every size, the voting rule that was chosen for the nearest target size. Each of its points is
another classifier, so no single classifier has this curve. Rules are chosen without the test part.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from agnncert.baselines.named import defence_named
from agnncert.baselines.smoothing import Smoothing
from agnncert.certificates.votes import BoolArray, under_vote
from agnncert.certificates.voting_rule import VotingRule
from agnncert.comparison.controls import ABOUT, SIZE_ONLY, Counted, GraphSizes, SizedGraphs, by_budgets, size_rule
from agnncert.comparison.runner import Defence, Outcome, Study, part_rows, run
from agnncert.comparison.threat import BAG_OF_NODES, BY_SIZE, GRAPH_FREE, MAJORITY, NO_EDGES, UNDEFENDED, Threat
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeDivision
from agnncert.divisions.node import NodeDivision, PerNeighbour
from agnncert.errors import SettingsError
from agnncert.models.build import count_classes
from agnncert.progress import OnProgress
from agnncert.proving.evidence import BallotEvidence
from agnncert.training.rule_search import BallotTable, best_constants, joined, window
from agnncert.training.setup import require_vote

log = logging.getLogger(__name__)

Row = dict[str, Any]
Voted: TypeAlias = Defence | tuple[Division, VotingRule]
ENVELOPE = "chosen for each size"


def vote_in_words(vote: VotingRule | None) -> str:
    """A voting rule as a table shows it; empty for the default rule.

    Example:
        >>> vote_in_words(VotingRule(empty="abstain", prior=5)), vote_in_words(VotingRule(empty=1, prior=[0, 12]))
        ('empty abstain, prior 5', 'empty 1, prior 0/12')
    """
    if vote is None or vote == VotingRule():
        return ""
    prior = str(vote.prior) if isinstance(vote.prior, int) else "/".join(map(str, vote.prior))
    return f"prior {prior}" if vote.empty is None else f"empty {vote.empty}, prior {prior}"


def nearest(designs: Sequence[int], size: int) -> int:
    """The target size nearest to a size; ties go to the smaller one.

    Example:
        >>> [nearest((1, 5), size) for size in (0, 2, 3, 4, 20)]
        [1, 1, 1, 5, 5]
    """
    return min(designs, key=lambda design: (abs(design - size), design))


def make_row(
    study: Study,
    outcome: Outcome,
    threat: Threat,
    sizes: tuple[int, ...],
    name: str,
    design_size: int | None = None,
    control: bool = False,
) -> Row:
    """The row of an outcome; ``design_size`` is the size for which its voting rule was chosen, if it was."""
    right, known = _right(study, outcome.label)
    if outcome.certificate is not None:
        withstood = threat.withstood(outcome.certificate, sizes)
    else:
        withstood = threat.withstood_without_certificate(outcome.defence, study.task, len(right))
    chosen = outcome.certificate is not None and (study.vote is not None or design_size is not None)
    return {
        "defence": name,
        "settings": outcome.defence,
        "guarantee": outcome.guarantee,
        "control": control,
        "about": ABOUT[name][study.task] if control else "",
        "vote": vote_in_words(outcome.certificate.vote) if chosen and outcome.certificate is not None else "",
        "design_size": design_size,
        "decides": outcome.decides,
        "envelope": False,
        "accuracy": float(right.sum() / known),
        "certified": [float((right & (withstood >= size)).sum() / known) for size in sizes],
        "forward_passes": outcome.passes,
        "seconds_training": outcome.seconds_training,
        "seconds_certification": outcome.seconds_certification,
        "seconds_forward": outcome.seconds_forward,
        "cost_in_forwards": outcome.seconds_certification / (outcome.seconds_forward or 1.0),
    }


def _right(study: Study, label: Any) -> tuple[BoolArray, int]:
    """Which targets are classified correctly, and how many have a true class."""
    known = int((study.truth >= 0).sum())
    if not known:
        raise SettingsError("none of the targets has a true class: a comparison counts correct labels.")
    return np.asarray(label == study.truth), known


def no_edges_row(study: Study, outcomes: Mapping[str, Outcome], threat: Threat, sizes: tuple[int, ...]) -> Row | None:
    """Node task: the best defended model on validation, used without edges; None if there is none."""
    scored = {name: outcome for name, outcome in outcomes.items() if outcome.edgeless_score is not None}
    if not scored:
        return None
    name, best = max(scored.items(), key=lambda pair: pair[1].edgeless_score or 0.0)
    guarantee, label = "deterministic: reads no edges", np.asarray(best.edgeless)
    outcome = Outcome(NO_EDGES, guarantee, label, None, 1, best.seconds_training, 0.0, 0.0)
    row = make_row(study, outcome, threat, sizes, NO_EDGES, control=True)
    return row | {"settings": f"{NO_EDGES}, trained for {name}"}


def size_row(
    study: Study, graphs: SizedGraphs, counts: Counted, threat: Threat, sizes: tuple[int, ...], designs: Sequence[int]
) -> Row:
    """Graph task: the classifier by size only, chosen on ``graphs``; an envelope if target sizes need several rules."""
    rules = {design: size_rule(graphs, design, counts, by_budgets(threat.budgets)) for design in designs}
    targets = GraphSizes.of([study.data[int(row)] for row in study.targets])

    def certified(size: int) -> float:
        rule = rules[nearest(designs, size)]
        right, known = _right(study, rule.label(targets))
        holds = [rule.withstands(targets, budget) for budget in threat.budgets(size)]
        return float((right & np.all(holds, axis=0)).sum() / known)

    first, one = rules[nearest(designs, 0)], len({str(rule) for rule in rules.values()}) == 1
    name, guarantee = SIZE_ONLY[counts], f"deterministic: counts {counts}"
    outcome = Outcome(name, guarantee, first.label(targets), None, 0, 0.0, 0.0, 0.0)
    row = make_row(study, outcome, threat, sizes, name, control=True)
    return row | _chosen(str(first) if one else ENVELOPE, designs) | {"certified": [certified(size) for size in sizes]}


def _chosen(rule: str, designs: Sequence[int]) -> Row:
    """The columns of a control that was chosen for each target size."""
    return {"vote": rule, "design_size": designs[0] if len(designs) == 1 else None, "envelope": rule == ENVELOPE}


def size_alone(study: Study, sizes: Sequence[int]) -> list[Row]:
    """Graph task: what the size alone certifies, in the unit of the division, chosen for each size.

    Edges are counted for an edge-centric vote and nodes for a node-centric one, so that one unit of the radius changes
    the count by one. Empty for other divisions, or without a training and a validation part.
    """
    parts = [part_rows(study.ready, name) for name in ("train", "val")]
    if study.task == "node" or not isinstance(study.defence, EdgeDivision | NodeDivision):
        return []
    if any(rows is None or not len(rows) for rows in parts) or study.chosen.truth is None:
        return []
    counts: Counted = "edges" if study.defence.family == "edge-centric" else "nodes"
    graphs, targets = SizedGraphs.of(study.data), GraphSizes.of([study.data[int(row)] for row in study.targets])
    rows = []
    for size in sizes:
        rule = size_rule(graphs, size, counts)
        right, known = _right(study, rule.label(targets))
        held = float((right & (rule.radius(targets) >= size)).sum() / known)
        rows.append({"measure": BY_SIZE, "size": size, "value": held})
    return rows


def bag_row(
    study: Study,
    threat: Threat,
    sizes: tuple[int, ...],
    designs: Sequence[int],
    folder: Path | None = None,
    progress: OnProgress | None = None,
) -> Row:
    """Graph task: every node votes by its own features, with a prior; an envelope if target sizes need different ones.

    Constants are chosen for each size in ``designs`` on training and validation graphs. ``folder`` keeps the votes.
    """
    parts = [part_rows(study.ready, name) for name in ("train", "val")]
    everything = np.unique(np.concatenate([study.targets, *(rows for rows in parts if rows is not None)]))
    bag = replace(study, defence=PerNeighbour(), model="mlp", targets=everything, vote=None, design_size=None)
    outcome = run(bag, folder, progress)
    evidence: Any = outcome.certificate.evidence  # type: ignore[union-attr]
    table = BallotTable.of_own_groups(evidence, bag.truth, threat.against)
    fitted = joined([table.rows(np.isin(everything, rows)) for rows in parts if rows is not None])
    place = np.searchsorted(everything, study.targets)
    # Edges do not change such a vote: against edges, what is best without an attack is best.
    wanted = {design: (0,) if threat.kind == "edges" else window(design) for design in designs}
    under = {design: _under(evidence, best_constants(fitted, near)) for design, near in wanted.items()}

    def certified(size: int) -> float:
        voted = under[nearest(designs, size)]
        right, known = _right(study, voted.label_and_radius()[0][place])
        holds = [voted.holds(budget)[place] for budget in threat.budgets(size)]
        return float((right & np.all(holds, axis=0)).sum() / known)

    first = under[nearest(designs, 0)]
    one = len({voted.vote for voted in under.values()}) == 1
    plain = replace(outcome, label=first.label_and_radius()[0][place], certificate=None)
    row = make_row(study, plain, threat, sizes, BAG_OF_NODES, control=True)
    row |= _chosen(vote_in_words(first.vote) if one else ENVELOPE, designs)
    return row | {"guarantee": "deterministic: reads no edges", "certified": [certified(size) for size in sizes]}


def _under(evidence: BallotEvidence, constants: Any) -> BallotEvidence:
    """The same ballots, counted with other constants."""
    vote = VotingRule(constants.empty, constants.prior).under(evidence.rule, evidence.votes.num_classes)
    return replace(evidence, votes=under_vote(evidence.votes, vote)[0], vote=vote)


def envelope_row(rows: Mapping[int, Row], sizes: tuple[int, ...], name: str) -> Row:
    """At every size what the voting rule for the nearest target size certifies; ``rows`` are by target size."""
    designs = sorted(rows)
    first = rows[nearest(designs, 0)]
    certified = [rows[nearest(designs, size)]["certified"][place] for place, size in enumerate(sizes)]
    times = {key: sum(row[key] for row in rows.values()) for key in ("seconds_training", "seconds_certification")}
    return first | {
        "defence": name,
        "vote": ENVELOPE,
        "design_size": None,
        "decides": "",
        "envelope": True,
        "certified": certified,
        "cost_in_forwards": times["seconds_certification"] / (first["seconds_forward"] or 1.0),
        **times,
    }


@dataclass(frozen=True)
class Entry:
    """One row to run. Rows of one ``family``, the name without the target size, have an envelope."""

    name: str
    study: Study
    control: bool = False
    family: str = ""


def entries_of(
    study: Study, chosen: Mapping[str, tuple[Defence, VotingRule | None]], threat: Threat, designs: Sequence[int]
) -> list[Entry]:
    """What to run for each defence: once, or once for each design size.

    Raises:
        SettingsError: A voting rule does not fit its division, or design sizes are given and no defence can use them.
    """
    entries = []
    num_classes = count_classes(study.data) if isinstance(study.model, str) else None
    for name, (defence, vote) in chosen.items():
        if vote is not None and not isinstance(defence, str | Smoothing):
            require_vote(vote, defence, study.task, num_classes)
        if vote is not None or not _can_choose(defence):
            entries.append(Entry(name, replace(study, defence=defence, vote=vote)))
            continue
        plain = replace(study, defence=defence)
        for size in designs:
            designed = replace(plain, design_size=size, against=threat.against)
            entries.append(Entry(f"{name}, for size {size}", designed, family=name))
        if not designs:
            entries.append(Entry(name, plain))
    if designs and not any(entry.family for entry in entries):
        raise SettingsError(
            f"design_size={list(designs)}: votes are chosen for EdgeCentric and NodeCentric without gated features, "
            "and none of these is among the defences that come without a vote."
        )
    if designs and study.task == "node" and study.fit_args.get("protocol", "transductive") == "transductive":
        log.warning(
            "models are trained with the validation nodes in the graph, so that priors become too large: use "
            'fit_args={"protocol": "held-out"}.'
        )
    return entries


def _can_choose(defence: Any) -> bool:
    return isinstance(defence, Division) and defence.knows_empty_groups


def with_vote(
    chosen: Mapping[str, tuple[Defence, VotingRule | None]], vote: VotingRule, everywhere: bool
) -> dict[str, tuple[Defence, VotingRule | None]]:
    """The defences with a voting rule where they have none; by default only EdgeCentric and NodeCentric."""
    wanted = {
        name: own
        if own is not None
        else vote
        if everywhere or isinstance(defence, EdgeDivision | NodeDivision)
        else None
        for name, (defence, own) in chosen.items()
    }
    return {name: (defence, wanted[name]) for name, (defence, _) in chosen.items()}


def usual_defences(task: str, threat: Threat) -> list[Defence]:
    """The defences that cover an attack, with their default settings."""
    ours = ("gated",) if threat.own_features and task == "node" else ("edge", "node")
    others = {
        "edges": ("gnncert-e", "sparse-rs"), "injection": ("bi-rs",) if task == "node" else (),
        "features": ("gnncert-n",), "edges and features": ("gnncert-en",),
    }  # fmt: skip
    return [defence_named(name, task, {}) for name in (*ours, *others[threat.kind])]


def checked_designs(sizes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Target sizes, ascending; raises SettingsError if they are not whole numbers from 0 on."""
    given = [] if sizes is None else [sizes] if isinstance(sizes, int) else list(sizes)
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 0 for size in given) or sizes == []:
        raise SettingsError(f"design_size={sizes!r}: expected one or several whole numbers from 0 on.")
    return tuple(sorted(set(given)))


def named(defences: Mapping[str, Voted] | Sequence[Voted]) -> dict[str, tuple[Defence, VotingRule | None]]:
    """Each defence by name, with its voting rule if it has one; raises SettingsError for anything else."""
    given = defences if isinstance(defences, Mapping) else {_full_name(defence): defence for defence in defences}
    listed = {name: defence if isinstance(defence, tuple) else (defence, None) for name, defence in given.items()}
    for name, (defence, *votes) in listed.items():
        if len(votes) != 1 or not isinstance(votes[0], VotingRule | None):
            raise SettingsError(f'"{name}": expected a defence, or a pair of a division and its VotingRule.')
        known = (GRAPH_FREE, UNDEFENDED, MAJORITY)
        if not isinstance(defence, Division | Smoothing) and defence not in known:
            raise SettingsError(
                f'"{name}" is not a defence: expected a division such as NodeCentric(300), or a smoothing defence '
                "such as ac.baselines.BiRS()."
            )
    return dict(listed)


def _full_name(defence: Voted) -> str:
    if not isinstance(defence, tuple):
        return _name(defence)
    votes = [vote_in_words(vote) for vote in defence[1:] if isinstance(vote, VotingRule)]
    return ", ".join([_name(defence[0]), *votes]) if defence else "()"


def _name(defence: Defence) -> str:
    """The name of a defence in a table: its printed form without default settings.

    Example:
        >>> _name(defence_named("bi-rs", "node", {"p_edge": 0.7})), _name(defence_named("node", "node", {}))
        ('bi-rs(p_edge=0.7, p_node=0.9)', 'node-centric(T=300)')
    """
    if isinstance(defence, Smoothing):
        shown = {key: value for key, value in defence.drawn().items() if value}
        test = getattr(defence, "test", "B2")
        shown |= {"test": test} if test != "B2" else {}
        return f"{defence.method}({', '.join(f'{key}={value}' for key, value in shown.items())})"
    return str(defence).replace(", hash=md5", "").replace(", key=u64le", "")
