"""Certifies a graph in parts: cuts the work into tasks, has them done, and puts records together.

Only names, sizes and counts pass through the driver. What was stored is not computed again: a run
that was interrupted goes on with the tasks whose files are not all there.
"""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agnncert.auditing.model_audit import AuditReport, audited
from agnncert.certificates.claim import make_claim
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import CertifyOptions
from agnncert.divided.certify import parse_bytes, require_tolerance
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.engine.exact_votes import rounding_of
from agnncert.engine.workers import Here, Workers, versions
from agnncert.errors import DivisionError, GraphError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.targets import target_rows
from agnncert.models.digest import model_digest, settings_of, unchanged_digest
from agnncert.progress import follow
from agnncert_large.partitioned.auditing import probe_data, require_no_edges_in_features
from agnncert_large.partitioned.certificate import StoredCertificate
from agnncert_large.partitioned.counting import CountWork, do_count, record_of
from agnncert_large.partitioned.graph import PartitionedGraph
from agnncert_large.partitioned.places import Place
from agnncert_large.partitioned.planning import Sizes, plan
from agnncert_large.partitioned.voting import (
    TaskReport,
    VoteTask,
    VoteWork,
    digest_of,
    do_task,
)

log = logging.getLogger(__name__)

DEFAULT_MEMORY = 1_500_000_000  # bytes of a task, if no limit is given
TASKS_PER_WORKER = 4  # so that one that is slow, or dies, does not keep the others waiting for long


@dataclass(frozen=True)
class Prepared:
    """A graph, a model and settings that fit each other."""

    graph: PartitionedGraph
    division: Division
    report: AuditReport
    bound_model: ModelAdapter
    tolerance: float
    voting_rule: VotingRule


def prepare(
    model: Any,
    graph: PartitionedGraph,
    division: Division,
    voting_rule: VotingRule | None,
    tolerance: float | None,
) -> Prepared:
    """Audits a model, and binds it to the features of a graph in parts."""
    if division != graph.division:
        raise DivisionError(
            f"{graph.place} is stored by the groups of {graph.division}, not of {division}: certify with "
            "graph.division, or write the graph again."
        )
    require_tolerance(tolerance)
    sample = probe_data(graph)
    require_no_edges_in_features(graph)
    report, audited_model = audited(model, sample, division, "node")
    report.require_fit()
    head = head_of(graph)
    bound_model = bind(model, head, "node", audited_model)
    is_known = report.locality == "construction"
    bound_model = replace(bound_model, rounding=rounding_of(bound_model, head, is_known))
    rule = (voting_rule or VotingRule()).under(division.theorem("node"), bound_model.num_classes)
    chosen = report.tolerance_from(tolerance)
    return Prepared(graph, division, report, bound_model, chosen, rule)


def certify_parts(
    model: Any,
    graph: PartitionedGraph,
    division: Division,
    targets: Any = None,
    voting_rule: VotingRule | None = None,
    options: CertifyOptions | None = None,
) -> StoredCertificate:
    """Certifies a graph in parts; arguments are those of ``certify_division``."""
    options = options or CertifyOptions()
    if options.engine == "naive":
        raise SettingsError("a graph in parts is certified by the fast engine: leave engine= out.")
    settings_before = settings_of(model)
    prepared = prepare(model, graph, division, voting_rule, options.tolerance)
    chosen = chosen_targets(graph, targets)
    work = _work(prepared, chosen, options)
    workers = options.workers or Here()
    at_least = TASKS_PER_WORKER * workers.parts_at_once() if options.workers is not None else 1
    sizes = Sizes.of(graph, prepared.bound_model)
    tasks = _same_tasks(work, plan(graph, sizes, division, work.memory_limit, at_least))
    log.info("computing the votes of %s: %d tasks", graph, len(tasks))
    _vote(work, tasks, workers, options)
    count = CountWork(work, tasks, prepared.voting_rule, division.theorem("node"))
    num_targets = _count(count, graph, workers)
    ranges = tuple(number for number, number_of in num_targets.items() if number_of)
    if not ranges:
        raise GraphError("targets is empty: nothing would be certified.")
    digests = {"graph": graph.digest}
    if "encoding" in graph.manifest["values"]:
        import hashlib

        text = graph.manifest["values"]["encoding"]
        digests["encoding"] = hashlib.sha256(text.encode()).hexdigest()
    digests["model"] = unchanged_digest(model, settings_before)
    digests["division"] = digest_of_text(str(division))
    claim = make_claim(
        record_of(count, ranges[0]),
        str(division),
        tolerance=prepared.tolerance,
        digests=digests,
        locality=prepared.report.locality,
        rounding=prepared.bound_model.rounding,
    )
    return StoredCertificate(claim, count, ranges, sum(num_targets.values()), workers)


def chosen_targets(graph: PartitionedGraph, targets: Any) -> Any:
    """Returns which nodes are targets as a mask; ``None`` for all. Their order is that of rows."""
    if targets is None:
        return None
    rows = target_rows(targets, graph.num_nodes)
    if (rows[1:] < rows[:-1]).any():
        raise GraphError("targets of a graph in parts come in the order of rows: sort them, or give a mask.")
    mask = np.zeros(graph.num_nodes, dtype=bool)
    mask[rows] = True
    return mask


def digest_of_text(text: str) -> str:
    """Returns the sha256 of a text."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def _work(prepared: Prepared, targets: Any, options: CertifyOptions) -> VoteWork:
    model = prepared.bound_model
    facts = {
        "graph": prepared.graph.digest,
        "place": digest_of(dict(prepared.graph.manifest)),
        "targets": "all" if targets is None else digest_of_text(targets.tobytes().hex()),
        "model": model_digest(model.model),
        "rounding": model.rounding,
        "division": str(prepared.division),
        "tolerance": prepared.tolerance,
        "library": versions(),
    }
    key = digest_of(facts)
    folder = f"runs/{key[:16]}"
    votes = prepared.graph.place.inside(folder)
    if options.checkpoint is not None:
        where = str(options.checkpoint)
        votes = Place(where if "://" in where else str(Path(where).resolve()))
    return VoteWork(
        graph=prepared.graph.place,
        votes=votes,
        division=prepared.division,
        bound_model=replace(model),
        digest=model_digest(model.model),
        tolerance=prepared.tolerance,
        memory_limit=parse_bytes(options.memory_limit) or DEFAULT_MEMORY,
        targets=targets,
        key=key,
    )


def _same_tasks(work: VoteWork, tasks: list[VoteTask]) -> list[VoteTask]:
    """Returns the tasks of an interrupted run, if they fit into memory: its files are named by them."""
    import json

    name = "tasks.json"
    stated = [[task.groups.start, task.groups.stop, task.ranges.start, task.ranges.stop, task.bytes] for task in tasks]
    written = json.dumps({"key": work.key, "tasks": stated}).encode()
    try:
        before = json.loads(work.votes.read(name))
    except FileNotFoundError:
        work.votes.write(name, written)
        return tasks
    except ValueError:
        raise GraphError(f"{work.votes}/{name} is damaged: delete the folder, and certify again.") from None
    if before["key"] != work.key:
        raise SettingsError(
            f"{work.votes} holds votes of another run (another graph, model, division, targets or "
            "tolerance): delete the folder, or name another."
        )
    found = [VoteTask(range(a, b), range(c, d), size) for a, b, c, d, size in before["tasks"]]
    if max(task.bytes for task in found) > work.memory_limit:
        log.info("tasks of the interrupted run are larger than memory_limit: all votes are computed again")
        work.votes.remove_folder("")
        work.votes.write(name, written)
        return tasks
    return found


def _vote(work: VoteWork, tasks: Sequence[VoteTask], workers: Workers, options: CertifyOptions) -> None:
    there = work.votes.sizes()
    left = [task for task in tasks if not all(name in there for name in work.files_of(task))]
    report = None if options.progress is None else follow(options.progress, "computing votes", len(tasks))
    done = len(tasks) - len(left)
    reports: list[TaskReport] = []
    begun = time.monotonic()
    if report is not None:
        report(done / max(1, len(tasks)))
    for task, found in workers.run(work, VoteWork.prepare, do_task, left) if left else ():
        reports.append(found)
        done += 1
        log.info("%s: %d votes, %.1f s, %.1f MB read", task, found.votes, found.seconds, found.bytes_read / 1e6)
        if report is not None:
            report(done / len(tasks))
    log.info("%s in %.1f s", summary(reports), time.monotonic() - begun)


def summary(reports: Iterable[TaskReport]) -> str:
    """Returns what each process has read and done."""
    by_process: dict[str, list[TaskReport]] = {}
    for report in reports:
        by_process.setdefault(report.process, []).append(report)
    lines = []
    for process, its in sorted(by_process.items()):
        read = sum(report.bytes_read for report in its)
        seconds = sum(report.seconds for report in its)
        lines.append(f"{process}: {len(its)} tasks, {read / 1e9:.2f} GB read, {seconds:.1f} s of processor time")
    return "; ".join(lines) or "nothing was left to compute"


def _count(count: CountWork, graph: PartitionedGraph, workers: Workers) -> dict[int, int]:
    """Counts the votes of all ranges; returns the number of targets of each."""
    numbers = range(len(graph.ranges))
    there = count.votes.votes.sizes("records")
    found: dict[int, int] = {}
    left = []
    for number in numbers:
        if count.file_of(number) in there:
            found[number] = _targets_in(count, graph, number)
        else:
            left.append(number)
    for number, counted in workers.run(count, CountWork.prepare, do_count, left) if left else ():
        found[number] = counted.targets
    return {number: found[number] for number in numbers}


def _targets_in(count: CountWork, graph: PartitionedGraph, number: int) -> int:
    part = graph.ranges[number]
    return int(count.votes.is_target(range(part.first, part.last + 1)).sum())


def head_of(graph: PartitionedGraph) -> CanonicalGraph:
    """Returns the first nodes of a graph without arcs, to which a model is bound."""
    x = graph.features(0)[:64]
    arcs = graph.arcs(0, range(0, 0))
    return CanonicalGraph(
        x=x,
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        node_key=torch.zeros(len(x), dtype=torch.int64),
        edge_weight=arcs.values.get("edge_weight"),
        edge_attr=arcs.values.get("edge_attr"),
        id_digests=(graph.manifest["id_digest"],),
        has_ids=(graph.id_kind == "node_id",),
    )
