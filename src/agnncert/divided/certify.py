"""Certificates of divisions: audit the model, divide the graph, compute all votes, and state what they prove."""

import hashlib
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from agnncert.auditing.model_audit import AuditReport, audited
from agnncert.certificates.claim import make_claim
from agnncert.certificates.votes import Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import CertifyOptions
from agnncert.divided.evidence import VoteEvidence
from agnncert.divisions.base import Division
from agnncert.divisions.stability import require_stable
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.engine.checkpoint import StoredRanges
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.exact_votes import rounding_of
from agnncert.engine.reach import ReachTable
from agnncert.engine.spot_check import Sample, draw_sample, spot_check
from agnncert.engine.structure import pair_facts
from agnncert.engine.votes import EngineName, Execution, compute_votes
from agnncert.engine.workers import versions
from agnncert.errors import SettingsError
from agnncert.graphs.targets import CanonicalData, Targets, prepared
from agnncert.models.digest import model_digest, settings_of, unchanged_digest
from agnncert.progress import AUDITING, ReportProgress, follow, tell
from agnncert.proving.certificate import Certificate

log = logging.getLogger(__name__)


def certify_division(
    model: Any,
    data: Any,
    division: Division,
    targets: Any = None,
    voting_rule: VotingRule | None = None,
    options: CertifyOptions | None = None,
    *,
    probed_on: Sequence[Data] | None = None,
) -> Certificate:
    """Certifies targets with the votes of a model on the subgraphs of a division.

    Args:
        model: The trained module, in eval mode.
        data: A graph, or a list of graphs.
        division: How the graph is divided.
        targets: Mask or row numbers. Defaults to all nodes, or graphs.
        voting_rule: How votes are added up. Defaults to ``VotingRule()``.
        options: The other options of ``certify``. Its voting rule is not looked at.
        probed_on: The graphs on which the audit calls the model. Defaults to ``data``.
    """
    options = options or CertifyOptions()
    engine = options.engine or "fast"
    require_tolerance(options.tolerance)
    memory_limit = parse_bytes(options.memory_limit)
    canonical_data = prepared(data, targets, compact=True)
    chosen = _divisible(canonical_data, targets, division)
    settings_before = settings_of(model)
    tell(options.progress, AUDITING, 0)
    report, audited_model = audited(model, canonical_data.data, division, canonical_data.task, probed_on)
    tell(options.progress, AUDITING, 1)
    report.require_fit(division.edges_only, one_at_a_time=engine == "naive")
    tolerance = report.tolerance_from(options.tolerance)
    # The model is bound after the audit, which names a layer that makes this fail.
    bound_model = bind_audited(model, chosen, report, audited_model)
    theorem = division.theorem(chosen.task)
    complete_rule = (voting_rule or VotingRule()).under(theorem, bound_model.num_classes)
    stored = None
    if options.checkpoint is not None:
        stored = StoredRanges(Path(options.checkpoint), _identity(chosen, division, bound_model, tolerance))
    report_progress = _progress(options, chosen, division)
    execution = Execution(memory_limit, report_progress, options.workers, stored, canonical_data.entries)
    log.info("computing the votes of %d targets with %s", len(chosen.positions), division)
    votes, reach, sample = _votes_and_sample(bound_model, chosen, division, engine, tolerance, execution=execution)
    if sample is not None:
        spot_check(
            votes,
            sample,
            bound_model,
            chosen.graph,
            division,
            rows=chosen.positions,
            ids=chosen.ids,
            progress=options.progress,
        )
    computed = ComputedVotes(
        votes,
        reach,
        tolerance,
        report.locality,
        model_digest=unchanged_digest(model, settings_before),
        rounding=bound_model.rounding,
    )
    certificate = assemble(chosen, division, computed, complete_rule)
    if execution.stored is not None:
        execution.stored.clear()
    log.info("%r: median radius %g", certificate, np.median(certificate.radius) if len(certificate) else math.nan)
    return certificate


def bind_audited(
    model: Any, chosen: Targets, report: AuditReport, audited_model: ModelAdapter | None = None
) -> ModelAdapter:
    """Binds an audited model to the graph of some targets, with rounding bounded if all its layers are known.

    Args:
        model: The module.
        chosen: The targets and their graph.
        report: What the audit says.
        audited_model: The model as the audit called it, if it did.
    """
    bound_model = bind(model, chosen.graph, chosen.task, audited_model)
    is_known = report.locality == "construction"
    return replace(bound_model, rounding=rounding_of(bound_model, chosen.graph, is_known))


def _divisible(canonical_data: CanonicalData, targets: Any, division: Division) -> Targets:
    """Returns the targets and their graph, or raises DivisionError if the division does not keep its groups there."""
    chosen = canonical_data.targets(targets, division.self_loops)
    require_stable(division, chosen.graph)
    return chosen


def _progress(options: CertifyOptions, chosen: Targets, division: Division) -> ReportProgress | None:
    """Returns what the engine calls with the fraction of the votes that is computed, if anybody wants to know."""
    if options.progress is None:
        return None
    return follow(options.progress, "computing votes", division.num_groups_in(chosen.graph))


def _votes_and_sample(
    bound_model: ModelAdapter,
    chosen: Targets,
    division: Division,
    engine: EngineName,
    tolerance: float,
    *,
    execution: Execution,
) -> tuple[Votes, ReachTable, Sample | None]:
    """Computes all votes, and chooses some that are to be computed again, one subgraph at a time.

    The sample is ``None`` if that is how all votes were computed. Its seed is nobody's choice. The edges by group, as
    large as a quarter of the edges, are gone when this function returns.
    """
    edges_by_group = EdgesByGroup(chosen.graph, division, chosen.positions) if division.has_disjoint_union else None
    votes, reach = compute_votes(
        bound_model,
        chosen.graph,
        division,
        chosen.positions,
        engine,
        tolerance,
        edges_by_group=edges_by_group,
        execution=execution,
    )
    if engine != "fast":
        return votes, reach, None
    random = np.random.default_rng(int(chosen.digest[:16], 16))
    return votes, reach, draw_sample(votes, chosen.graph, division, edges_by_group, random)


@dataclass(frozen=True)
class ComputedVotes:
    """Votes of a model, and what a certificate says about how they were computed.

    Attributes:
        votes: The votes.
        reach: How many votes of each target the worst k nodes reach.
        tolerance: How far two computations of a logit may lie apart.
        locality: How it is known that the model looks along edges only.
        model_digest: sha256 of the model.
        rounding: How votes were decided (``exact_votes``).
    """

    votes: Votes
    reach: ReachTable
    tolerance: float
    locality: str
    model_digest: str
    rounding: str = "watched"


def assemble(chosen: Targets, division: Division, computed: ComputedVotes, voting_rule: VotingRule) -> Certificate:
    """Makes the certificate that follows from votes.

    Args:
        chosen: The targets and their graph.
        division: The division whose subgraphs were voted on.
        computed: The votes.
        voting_rule: How they are added up, with its defaults filled in.
    """
    votes = computed.votes
    evidence = VoteEvidence.from_votes(
        votes,
        division.theorem(chosen.task),
        voting_rule,
        computed.reach,
        ids=chosen.id_kind,
        parameters=division.parameters,
        **pair_facts(chosen.graph, division, chosen.positions, votes.indptr, votes.group),
    )
    name = str(division)
    digests = {**chosen.digests, "model": computed.model_digest, "division": hashlib.sha256(name.encode()).hexdigest()}
    claim = make_claim(
        evidence,
        name,
        tolerance=computed.tolerance,
        digests=digests,
        locality=computed.locality,
        rounding=computed.rounding,
    )
    return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth, chosen.degree)


def _identity(chosen: Targets, division: Division, bound_model: ModelAdapter, tolerance: float) -> dict[str, Any]:
    """Returns everything that votes depend on: votes of another identity must not be mixed with them."""
    rows = np.ascontiguousarray(chosen.rows, dtype=np.int64)
    return {
        "graph": chosen.digest,
        "targets": hashlib.sha256(rows.tobytes()).hexdigest(),
        "model": model_digest(bound_model.model),
        "rounding": bound_model.rounding,
        "division": str(division),
        "tolerance": tolerance,
        "library": versions(),
    }


def require_tolerance(tolerance: Any) -> None:
    """Refuses a tolerance that would switch the guard against rounding off, or makes no sense.

    Raises:
        SettingsError: It is neither ``None`` nor a finite number from 0 on.
    """
    if tolerance is None:
        return
    is_number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not is_number or not 0 <= float(tolerance) < math.inf:
        raise SettingsError(
            f"tolerance={tolerance!r}: expected a finite number from 0 on; leave it out to have it measured."
        )


_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_bytes(limit: int | str | None) -> int | None:
    """Returns a number of bytes from a number, or from text such as ``"4GB"``; ``None`` stays ``None``.

    Raises:
        SettingsError: The text is no number with a unit.
    """
    if not isinstance(limit, str):
        return limit
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]B)", limit.strip(), re.IGNORECASE)
    if found is None:
        raise SettingsError(f'memory_limit="{limit}": expected a number of bytes, or text such as "4GB" or "500MB".')
    return int(float(found[1]) * _UNITS[found[2].upper()])
