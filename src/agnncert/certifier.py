"""``certify``: audit the model, divide the graph, cast the votes, and state what they prove."""

import hashlib
import logging
import math
import os
import re
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.auditing.model_audit import Locality, audited
from agnncert.certificates.claim import make_claim
from agnncert.certificates.stacked import make_stacked_claim
from agnncert.certificates.votes import Votes, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division, RandomDefence, require_division
from agnncert.divisions.node import PerNeighbour
from agnncert.engine.call import bind, require_order
from agnncert.engine.casting import EngineName, StoredRanges, cast, pair_facts
from agnncert.engine.fast import EdgesByGroup
from agnncert.engine.naive import look_again
from agnncert.engine.reach import ReachTable
from agnncert.engine.workers import Workers, versions
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.targets import Targets, prepared
from agnncert.models.digest import model_digest, settings_of, unchanged_digest
from agnncert.models.stacked import StackedModel, StackedVotes, require_stacked, stacked_counts
from agnncert.progress import OnProgress, follow
from agnncert.proving.certificate import Certificate
from agnncert.proving.evidence import VoteEvidence
from agnncert.proving.stacked import StackedEvidence

log = logging.getLogger(__name__)


def certify(
    model: Any,
    data: Any,
    defence: Any,
    targets: Any = None,
    *,
    voting_rule: Any = None,
    engine: EngineName = "fast",
    tolerance: float | None = None,
    memory_limit: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    workers: Workers | None = None,
    progress: OnProgress | None = None,
) -> Certificate:
    """Proves how much of a graph an attacker may change without changing the model's voted labels.

    Args:
        model: A trained module, in eval mode. Node task: ``model(x, edge_index) -> [num_nodes, classes]``;
            graph task: ``model(x, edge_index, batch) -> [num_graphs, classes]``. ``edge_weight`` and
            ``edge_attr`` are passed on when the data has them and ``forward`` takes them.
        data: A ``Data`` (node classification) or a list of ``Data`` (graph classification), ideally with ``node_id``.
        defence: A division (``EdgeCentric``, ``NodeCentric``, a division of ``ac.baselines`` or your own), a smoothing
            defence such as ``ac.baselines.BiRS(samples=10_000)``, or the result of ``choose_voting_rule``.
        targets: Mask or row numbers of the nodes (graphs) to certify; all when not given.
        rule: What empty groups of a division vote for, and votes that are there from the start: a ``VotingRule``, or
            the result of ``choose_voting_rule`` for the same division. Defaults to ``VotingRule()``.
        engine: "fast" or "naive"; the votes are the same.
        tolerance: How far two computations of a logit may lie apart at least, relative to the largest; that of the
            audit when not given, and no less. What a vote shows under shaking counts where it is more.
        memory_limit: About how many bytes one chunk of work may take: a number, or text such as "4GB".
        checkpoint: What an interrupted run goes on from. Divisions: a folder that keeps votes as they are cast, and
            is emptied when all of them are. Random defences: a file that keeps the counts.
        workers: Who does the work, such as ``ac.Ray(address="auto")``; this process when not given. The certificate is
            the same.
        progress: Called after each batch of samples; with a division, before, while and after votes are cast.

    Returns:
        The certificate, with labels, radii and everything needed to answer other budgets.

    Raises:
        ModelContractError: The model breaks an assumption of the proof.
        GraphError: The graph cannot be certified as it is.
        SettingsError: A setting makes no sense, or belongs to another kind of defence.
    """
    division, voting_rule = _chosen(model, defence, voting_rule)
    _require_tolerance(tolerance)
    limit = _bytes(memory_limit)
    require_order(model, data, division)
    if isinstance(division, RandomDefence):
        casting = {"voting_rule": voting_rule, "tolerance": tolerance, "memory_limit": memory_limit}
        _refuse_given(casting, f"{division.method} draws samples: these are settings of divisions")
        return division.certify(  # type: ignore[no-any-return]
            model, data, targets, engine=engine, checkpoint=checkpoint, workers=workers, progress=progress
        )
    if isinstance(division, StackedVotes):
        casting = {
            "voting_rule": voting_rule,
            "tolerance": tolerance,
            "memory_limit": memory_limit,
            "checkpoint": checkpoint,
            "workers": workers,
        }
        _refuse_given(casting, "stacked votes cast no votes in subgraphs: these are settings of divisions")
        return _certify_stacked(model, data, division, targets)
    require_division(division)
    ready = prepared(data, targets, compact=True)
    chosen = ready.targets(targets, division.self_loops)
    seed = int(chosen.digest[:16], 16)  # the same for the same graph, and nobody's choice
    settings = settings_of(model)
    report, tried = audited(model, ready.data, division, ready.task)
    report.require_fit(division.edges_only, one_at_a_time=engine == "naive")
    tolerance = report.tolerance_from(tolerance)
    call = bind(model, chosen.graph, chosen.task, tried)  # after the audit, which names a layer that makes it fail
    shuffle = EdgesByGroup(chosen.graph, division, chosen.places) if division.has_disjoint_union else None
    theorem = division.theorem(chosen.task)
    voting_rule = (voting_rule or VotingRule()).under(theorem, call.num_classes)
    log.info("casting the votes of %d targets with %s", len(chosen.places), division)
    stored = (
        None if checkpoint is None else StoredRanges(Path(checkpoint), _vote_key(chosen, division, model, tolerance))
    )
    votes, reach = cast(
        call, chosen.graph, division, chosen.places, engine, tolerance, limit, shuffle=shuffle, workers=workers,
        stored=stored, entries=ready.entries,
        report_progress=progress and follow(progress, "casting votes", division.num_groups_in(chosen.graph)),
    )  # fmt: skip
    if engine == "fast":
        random = np.random.default_rng(seed)
        look_again(votes, call, chosen.graph, division, chosen.places, chosen.ids, shuffle, random)
    del shuffle  # as large as a quarter of the edges
    digest = unchanged_digest(model, settings)
    certificate = assemble(chosen, division, votes, reach, tolerance, report.locality, digest, voting_rule)
    if stored is not None:
        stored.clear()
    log.info("%r: median radius %g", certificate, np.median(certificate.radius) if len(certificate) else math.nan)
    return certificate


def _certify_stacked(model: Any, data: Any, defence: StackedVotes, targets: Any) -> Certificate:
    """The certificate of stacked votes: no subgraph is evaluated."""
    require_stacked(model, defence)
    ready = prepared(data, targets)
    if ready.task != "node":
        raise SettingsError("stacked votes classify nodes: for graphs, pass a division.")
    chosen = ready.targets(targets)
    settings, locality = settings_of(model), audit_own(model, ready.data)
    evidence = StackedEvidence(**stacked_counts(model, chosen))
    digests = {**chosen.digests, "model": unchanged_digest(model, settings)}
    claim = make_stacked_claim(evidence, digests=digests, locality=locality, notes=(str(defence),))
    return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth, chosen.degree)


def audit_own(model: StackedModel, data: Any) -> Locality:
    """How it is known that the models without edges classify each row by itself.

    Raises:
        ModelContractError: One of them does not.
    """
    known: Locality = "construction"
    for own in model.own:
        report, _ = audited(own, data, PerNeighbour(), "node")
        if not {"edges", "nodes", "features"} <= set(report.fit_for):
            raise ModelContractError(str(report))
        known = known if report.locality == "construction" else "test"
    return known


def _vote_key(chosen: Targets, division: Division, model: Any, tolerance: float) -> dict[str, Any]:
    """Everything that votes depend on: those of another vote must not be mixed with them."""
    rows = hashlib.sha256(np.ascontiguousarray(chosen.rows, dtype=np.int64).tobytes()).hexdigest()
    known = {"graph": chosen.digest, "targets": rows, "model": model_digest(model), "division": str(division)}
    return {**known, "tolerance": tolerance, "library": versions()}


def assemble(
    chosen: Targets,
    division: Division,
    votes: Votes,
    reach: ReachTable,
    tolerance: float,
    locality: str,
    digest: str,
    voting_rule: VotingRule,
) -> Certificate:
    """The certificate that follows from votes.

    Args:
        chosen: The targets and their graph.
        division: The division that was voted on.
        votes: The votes as cast.
        reach: How far nodes reach.
        tolerance: How far two computations of a logit may lie apart.
        locality: How it is known that the model looks along edges only.
        digest: sha256 of the model.
        vote: What empty groups cast, and the prior, with its defaults filled in.
    """
    ids, degree, digests = chosen.id_kind, chosen.degree, chosen.digests
    name, theorem, parameters = str(division), division.theorem(chosen.task), division.parameters
    facts = pair_facts(chosen.graph, division, chosen.places, votes.indptr, votes.group)
    counted, no_edge = apply_voting_rule(votes, voting_rule)
    evidence = VoteEvidence(
        counted, theorem, reach[0], reach[1].astype(np.int32), ids, parameters, voting_rule, **no_edge, **facts
    )
    digests |= {"model": digest, "division": hashlib.sha256(name.encode()).hexdigest()}
    claim = make_claim(evidence, name, tolerance=tolerance, digests=digests, locality=locality)
    return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth, degree)


def _require_tolerance(tolerance: Any) -> None:
    """Refuses what would switch the guard against rounding off, or makes no sense.

    Raises:
        SettingsError: It is neither ``None`` nor a finite number from 0 on.
    """
    if tolerance is None:
        return
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not 0 <= float(tolerance) < math.inf:
        raise SettingsError(
            f"tolerance={tolerance!r}: expected a finite number from 0 on; leave it out to have it measured."
        )


def _refuse_given(settings: dict[str, Any], why: str) -> None:
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items() if value is not None)
    if given:
        raise SettingsError(f"{given}: {why}; leave them out.")


def _chosen(model: Any, defence: Any, voting_rule: Any) -> tuple[Any, Any]:
    """Division and voting rule; either argument may be the result of ``choose_voting_rule``, which has both."""
    choice = next(
        (one for one in (defence, voting_rule) if isinstance(getattr(one, "voting_rule", None), VotingRule)), None
    )
    if choice is None:
        if voting_rule is not None and not isinstance(voting_rule, VotingRule):
            example = 'VotingRule(empty="abstain", prior=5)'
            raise SettingsError(f"rule={voting_rule!r:.60}: expected a VotingRule, such as {example}.")
        return defence, voting_rule
    if choice is defence and voting_rule is not None:
        raise SettingsError("the defence brings a voting rule that was chosen: leave rule= out.")
    if choice is voting_rule and str(defence) != str(choice.division):
        raise SettingsError(f"rule= was chosen for {choice.division}, got {defence}: pass choice.division.")
    best = getattr(choice, "best", None)  # a threshold has none
    if best is not None and best.label is not None and model is not choice.model:
        raise SettingsError("the choice is a vote by size alone, with a model of its own: pass choice.model.")
    return choice.division, choice.voting_rule


_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _bytes(limit: int | str | None) -> int | None:
    """Bytes from a number or from text such as ``"4GB"``."""
    if not isinstance(limit, str):
        return limit
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]B)", limit.strip(), re.IGNORECASE)
    if found is None:
        raise SettingsError(f'memory_limit="{limit}": expected a number of bytes, or text such as "4GB" or "500MB".')
    return int(float(found[1]) * _UNITS[found[2].upper()])
