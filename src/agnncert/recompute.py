"""Checks a certificate against the graph and the model that it speaks about: what follows from them is formed again.

With the graph alone: the targets with ids, true classes and degrees, the rule that belongs to the division, and the
subgraphs in which targets have edges. With the model: whether it is fit, and all ballots, by the fast engine and as
many as are asked for once more by the plain one. What comes out is what ``certify`` itself would have written.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from agnncert.auditing.model_audit import AuditReport, audited
from agnncert.baselines.named import defence_of, redraw
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.rules import RULES
from agnncert.certificates.votes import ABSTAIN, Ballots, Votes, under_vote
from agnncert.divisions.base import Division, require_division
from agnncert.divisions.named import parse_division
from agnncert.engine.call import Caller, bind
from agnncert.engine.digest import model_digest
from agnncert.engine.ranges import EngineName, cast, structure
from agnncert.engine.recheck import choose_ballots, differing
from agnncert.errors import DivisionError, ModelContractError, SettingsError
from agnncert.graphs.graph import graph_digest, infer_task
from agnncert.graphs.targets import Targets, prepared
from agnncert.progress import OnProgress, follow
from agnncert.proving.certificate import Certificate, as_ids
from agnncert.proving.samples import SampleEvidence

log = logging.getLogger(__name__)


@dataclass
class Found:
    """What is wrong, what was checked, and what was not."""

    wrong: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)


@torch.no_grad()
def check_against_graph(
    contents: Contents,
    data: Any,
    model: Any,
    ballots: float,
    seed: int = 0,
    division: Any = None,
    progress: OnProgress | None = None,
) -> Found:
    """Checks what a file says, given the graph, or graph and model; arguments as in ``verify``."""
    found = Found()
    task, rows = contents.claim.task, contents.arrays["row"]
    if infer_task(data) != task:
        found.wrong.append(f"the certificate is about {task} classification, the data is for the other task")
        return found
    if task == "graph" and not len(rows):
        found.wrong.append("the certificate is about no graph at all")
        return found
    total = len(data) if task == "graph" else data.num_nodes
    if rows.max(initial=-1) >= total:
        found.wrong.append(f"the certificate names row {rows.max()}, the data has {total}: it belongs to another graph")
        return found
    ready = prepared(data, rows, compact=True)
    check = _check_ballots if contents.kind == "ballots" else _check_samples
    check(found, contents, ready, model, ballots, seed, division, progress)
    return found


def _check_ballots(
    found: Found,
    contents: Contents,
    ready: Any,
    model: Any,
    ballots: float,
    seed: int,
    division: Any,
    progress: OnProgress | None,
) -> None:
    claim, evidence = contents.claim, Ballots.load(contents.evidence, contents.settings)
    own = evidence.rule.startswith("custom/")
    if division is not None:
        require_division(division)
    try:
        division = parse_division(claim.division) if division is None else division
    except DivisionError as error:
        how = f"{error} Pass the division itself: division=."
        if model is not None:  # asked about the ballots: silence would pass for a yes
            found.wrong.append(f"ballots cannot be cast again: {how}")
        found.not_checked.append(f"the subgraphs: {how}")
    loops = division is not None and division.self_loops
    chosen = ready.targets(contents.arrays["row"], loops)
    found.wrong += _wrong_targets(contents, chosen)
    if division is None or found.wrong:
        return
    found.wrong += _wrong_division(claim, evidence, division, chosen)
    found.checked.append("the graph, the targets with their ids, and the subgraphs in which they have edges")
    if own and not division.edges_only:
        found.not_checked.append("that a change moves no more ballots than the division states")
    if model is None:
        found.not_checked.append("that the model cast these ballots, and is fit to: give the model")
        return
    if not found.wrong:
        found.wrong += _other_model(contents, model)
    if found.wrong:
        return
    report, tried = audited(model, ready.data, division)
    found.wrong += _wrong_model(contents, report, division.edges_only)
    if found.wrong:
        return
    call = bind(model, chosen.graph, chosen.task, tried)
    engine: EngineName = "naive" if report.needs_naive else "fast"
    report_progress = follow(progress, "casting ballots again", division.num_groups_in(chosen.graph))
    report_progress(0.0)

    def recast(call: Caller, tolerance: float) -> Votes:
        given = {"report_progress": report_progress, "entries": ready.entries}
        return cast(call, chosen.graph, division, chosen.places, engine, tolerance, **given)[0]

    here = recast(call, claim.tolerance)
    found.wrong += _wrong_ballots(evidence, here, call, recast, claim.tolerance, report.tolerance)
    number = len(evidence.votes.group) if division.is_per_neighbour else evidence.num_targets * division.num_groups
    found.checked.append(f"the model, and all {number:,} ballots, cast again")
    report_progress(1.0)
    if ballots and not found.wrong:
        pairs = choose_ballots(here, ballots, np.random.default_rng(seed), division.is_per_neighbour)
        log.info("casting %d ballots once more, one subgraph at a time", len(pairs))
        differ, again = differing(here, pairs, call, chosen.graph, division, chosen.places)
        if differ.size:
            target, group = pairs[differ[0]]
            found.wrong.append(
                f"{differ.size} of {len(pairs)} ballots cast one subgraph at a time differ, first: target "
                f"{contents.arrays['target'][target]} in subgraph {group} votes {again[differ[0]]}"
            )
        found.checked.append(f"{len(pairs):,} of them once more, one subgraph at a time")


def _wrong_targets(contents: Contents, chosen: Targets) -> Iterator[str]:
    """What is not as in the graph, target by target; true classes and degrees only as far as they are stated."""
    stated, claim = contents.arrays, contents.claim
    if claim.ids != chosen.id_kind:
        yield f'the claim says that nodes are known by "{claim.ids}", the data says by "{chosen.id_kind}"'
    expected = ("graph", "model", "division") if contents.kind == "ballots" else ("graph", "model")
    missing = [name for name in expected if name not in claim.digests]
    if missing:
        yield f"the file does not say which {missing[0]} was certified: it has no digest of it"
    elif claim.digests["graph"] != graph_digest(chosen.graph):
        yield "the graph is not the one that was certified (its digest differs)"
    known = {"target": as_ids(chosen.ids), "truth": chosen.truth, "degree": chosen.degree}
    for name, values in known.items():
        if name not in stated:
            continue
        if values is None:
            yield f"the file states the {_CALLED[name]} of each target, which the data does not have"
            continue
        wrong = sum(a != b for a, b in zip(stated[name].tolist(), values.tolist(), strict=True))
        if wrong:
            yield f"the {_CALLED[name]} of {wrong:,} targets is not that of the graph"


_OTHER_MODEL = (
    "the model is not the one that was certified (its digest differs: other weights or settings, or classes under "
    "other names of their modules)"
)
_CALLED = {"target": "id", "truth": "true class", "degree": "degree"}


def _wrong_division(claim: Claim, evidence: Ballots, division: Division, chosen: Targets) -> Iterator[str]:
    rule, parameters = division.rule(chosen.task), division.parameters
    if str(division) != claim.division or division.num_groups_in(chosen.graph) != evidence.votes.num_groups:
        yield f"the division {division} is not the one that is named, {claim.division}"
    elif (evidence.rule, dict(evidence.parameters)) != (rule, parameters):
        yield f'the division {division} goes with the rule "{rule}" and {parameters or "no parameters"}'
    elif not division.has_disjoint_union and len(evidence.votes.group) < evidence.num_targets * division.num_groups:
        yield "not every target has a ballot in every subgraph"  # said before as many are laid out to be compared
    else:
        stored = evidence.tensors()
        for name, derived in structure(chosen.graph, division, chosen.places).items():
            if not np.array_equal(stored[name], derived):
                yield "the subgraphs in which targets have edges are not those of this graph and division"
                return


def _other_model(contents: Contents, model: Any) -> Iterator[str]:
    if contents.claim.digests["model"] != model_digest(model):
        yield _OTHER_MODEL


def _wrong_model(contents: Contents, report: AuditReport, edges_only: bool) -> Iterator[str]:
    claim = contents.claim
    needed = ("edges",) if edges_only else ("edges", "nodes", "features")
    if not set(needed) <= set(report.fit_for):
        yield f"the model is not fit for what is claimed: {report}"
    if claim.tolerance < report.tolerance:
        yield (
            f"the claim assumes that no score moves by more than {claim.tolerance:g} of the largest, which is less "
            f"than {report.tolerance:g}"
        )
    known = report.locality if RULES[contents.settings["rule"]].division.whole_graph else ""
    if claim.locality != known:
        yield f'the claim says that locality is known by "{claim.locality}"; here, with this PyG, it is by "{known}"'


def _wrong_ballots(
    evidence: Ballots,
    cast_here: Votes,
    call: Caller,
    again: Callable[[Caller, float], Votes],
    tolerance: float,
    rounding: float,
) -> Iterator[str]:
    """Compares all ballots and flags; a lead that just suffices here may just not have sufficed on another machine.

    A flag is about the stated tolerance. But what a ballot was that is close to a tie, machines can disagree about only
    as far as rounding goes, whatever tolerance somebody asked for.
    """
    if cast_here.num_classes != evidence.votes.num_classes:
        yield from _other_classes(evidence.votes.num_classes, call)
        return

    def counted(votes: Votes) -> dict[str, Any]:
        """Default and listed ballots under the vote, and the predictions that its prior follows."""
        under, edgeless = under_vote(votes, evidence.vote)
        return {name: getattr(under, name) for pair in list(_BALLOTS.values())[:2] for name in pair} | edgeless

    stored, here = evidence.tensors(), counted(cast_here)
    for kind, (name, flag) in _BALLOTS.items():
        if name not in here:
            continue
        stable, sure, ballots, ours = stored[flag], here[flag], stored[name], here[name]
        differ = (ballots != ours) & (stable | sure | (ballots == ABSTAIN) | (ours == ABSTAIN))
        if differ.any():
            yield f"{differ.sum():,} of {len(differ):,} {kind} are not those that the model casts"
            continue
        if (stable != sure).any():
            strict, lenient = (counted(again(replace(call, strictness=by), tolerance))[flag] for by in (1, -1))
            invented = (stable & ~lenient) | (strict & ~stable)
            if invented.any():
                yield f"{invented.sum():,} ballots are not as close to a tie, or as far from one, as their flags say"
        for label in np.unique(ballots[ballots != ours]).tolist():
            against = counted(again(replace(call, model=_Against(call.model, label), num_classes=2), rounding))
            beaten = (ballots == label) & (against[name] == 0) & against[flag]
            if beaten.any():
                yield f"{beaten.sum():,} ballots close to a tie are for class {label}, which does not come close"


_BALLOTS = {
    "default ballots": ("default", "default_stable"),
    "listed ballots": ("ballot", "stable"),
    "predictions without edges, which the prior follows,": ("edgeless", "edgeless_stable"),
}


def _other_classes(stated: int, call: Caller) -> Iterator[str]:
    if stated != call.num_classes:
        yield f"the model has {call.num_classes} classes, the evidence {stated}"


class _Against(torch.nn.Module):
    """Whether one class may be the best of a model: scores of the best of all others, and of this one."""

    def __init__(self, model: Any, label: int) -> None:
        super().__init__()
        self.model, self.label = model, label

    def forward(self, *inputs: Any, **values: Any) -> torch.Tensor:
        logits = self.model(*inputs, **values)
        others = torch.cat([logits[:, : self.label], logits[:, self.label + 1 :]], dim=1)
        return torch.stack([others.amax(dim=1), logits[:, self.label]], dim=1)


def _check_samples(
    found: Found,
    contents: Contents,
    ready: Any,
    model: Any,
    ballots: float,
    seed: int,
    division: Any,
    progress: OnProgress | None,
) -> None:
    evidence = SampleEvidence.load(contents.evidence, contents.settings)
    chosen = ready.targets(contents.arrays["row"])
    found.wrong += _wrong_targets(contents, chosen)
    try:
        defence = defence_of(evidence)
    except SettingsError as error:
        found.wrong.append(f"no defence of this library has such noise: {error}")
        return
    if defence.noise(int(chosen.graph.x.size(1))) != evidence.noise:
        found.wrong.append(f"the noise is not that of {defence} on this graph")
    if contents.claim.notes != (str(defence),):
        found.wrong.append(f"the claim does not name the defence as it is, {defence}")
    found.checked.append("the graph, the targets with their ids, and the noise")
    found.not_checked.append("that the seed was fixed before any count was seen")
    if model is not None and not found.wrong:
        found.wrong += _other_model(contents, model)
        found.wrong += _other_classes(evidence.estimation.shape[1], bind(model, chosen.graph, chosen.task))
    if model is None or not ballots or not evidence.num_targets:
        found.not_checked.append("that the samples were drawn from this model and noise: have them drawn again")
        return
    if found.wrong:
        return
    drawn = _drawn_again(evidence, model, ready, contents.arrays["row"])
    for name, counts in drawn.evidence.tensors().items():
        if not np.array_equal(evidence.tensors()[name], counts):
            found.wrong.append(f"the {name} counts are not those of seed {evidence.seed}")
    if drawn.evidence.settings() != contents.settings:
        found.wrong.append("the settings of the samples are not those that were drawn")
    found.checked.append("all samples, drawn again")


def _drawn_again(evidence: SampleEvidence, model: Any, ready: Any, rows: Any) -> Certificate:
    try:
        return redraw(evidence, model, ready, rows)
    except ModelContractError:  # the model mixes what is evaluated together: it was certified one graph at a time
        return redraw(evidence, model, ready, rows, engine="naive")
