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
from agnncert_large.partitioned.voting import (
    TaskReport,
    VoteTask,
    VoteWork,
    cut,
    digest_of,
    do_task,
)

log = logging.getLogger(__name__)

DEFAULT_MEMORY = 1_500_000_000  # bytes of a task, if no limit is given
BYTES_PER_ARC = 400  # of a group's arcs at work, about: ends, copies and their numbers
LAYERS_AT_ONCE = 6  # rows of the widest layer that are held for each copy
TASKS_PER_WORKER = 4  # so that one that is slow, or dies, does not keep the others waiting for long


@dataclass(frozen=True)
class Sizes:
    """What decides how much memory a task takes.

    Attributes:
        graph: The graph.
        width: Entries of the widest layer.
        itemsize: Bytes of an entry.
    """

    graph: PartitionedGraph
    width: int
    itemsize: int

    @classmethod
    def of(cls, graph: PartitionedGraph, bound_model: ModelAdapter | None) -> "Sizes":
        """Returns the sizes of a graph and a model."""
        if bound_model is None:
            return cls(graph, 1, 4)
        parameters: Iterable[torch.Tensor] = getattr(bound_model.model, "parameters", list)()
        widest = max([1, *(max(each.shape, default=1) for each in parameters if each.dim() > 1)])
        return cls(graph, widest, bound_model.dtype.itemsize)

    @property
    def per_node(self) -> int:
        """Bytes of a node of a span: its features, their projection, key and bounds."""
        return (self.graph.num_features + self.width) * self.itemsize + 48

    @property
    def per_copy(self) -> int:
        """Bytes of a node that is evaluated."""
        return LAYERS_AT_ONCE * self.width * self.itemsize

    def senders(self) -> int:
        """Bytes of the senders of the largest group, with the arcs among them."""
        parts = [self.graph.parts_of("senders", g) for g in range(len(self.graph.manifest["senders"]))]
        rows = max(sum(part.rows for part in group) for group in parts)
        inner = [self.graph.parts_of("inner", g) for g in range(len(self.graph.manifest["inner"]))]
        arcs = max(sum(part.rows for part in group) for group in inner)
        return rows * (2 * self.per_node + self.per_copy) + arcs * BYTES_PER_ARC

    def largest_group(self) -> int:
        """Number of arcs of the largest group."""
        groups = range(len(self.graph.manifest["arcs"]))
        return max(sum(part.rows for part in self.graph.parts_of("arcs", g)) for g in groups)


def plan(sizes: Sizes, division: Division, memory: int, at_least: int) -> list[VoteTask]:
    """Cuts the votes of a graph into tasks that fit into memory.

    Args:
        sizes: The sizes.
        division: The division.
        memory: Bytes that a task may take.
        at_least: How many tasks there should be, if there are that many groups.

    Raises:
        GraphError: The part of a single group does not fit.
    """
    if sizes.graph.by_sender:
        return _plan_by_spans(sizes, division, memory, at_least)
    return _plan_by_groups(sizes, division, memory, at_least)


def _plan_by_spans(sizes: Sizes, division: Division, memory: int, at_least: int) -> list[VoteTask]:
    graph = sizes.graph
    senders = sizes.senders()
    longest = max(part.rows for part in graph.ranges)
    arcs_per_node = sizes.largest_group() / graph.num_nodes
    per_node = sizes.per_node + arcs_per_node * (BYTES_PER_ARC + sizes.per_copy)
    per_node += 32 + 8 * graph.num_edges / graph.num_nodes  # votes that are kept for all groups
    room = memory - senders
    if room < longest * per_node:
        needed = int(senders + longest * per_node)
        raise GraphError(
            f"a task needs {needed:,} bytes for the senders of one group and one range of nodes, and may "
            f"take {memory:,}: give memory_limit={needed}, or divide the graph into more groups."
        )
    in_span = max(1, int(room // (longest * per_node)))
    spans = cut(len(graph.ranges), in_span)
    blocks = max(1, -(-at_least // len(spans)))
    step = max(1, division.num_groups // blocks)
    tasks = []
    for ranges in spans:
        size = int(senders + len(ranges) * longest * per_node)
        tasks += [VoteTask(groups, ranges, size) for groups in cut(division.num_groups, step)]
    return tasks


def _plan_by_groups(sizes: Sizes, division: Division, memory: int, at_least: int) -> list[VoteTask]:
    graph = sizes.graph
    arcs = sizes.largest_group()
    ends = min(2 * arcs, graph.num_nodes)
    held = ends * (graph.num_features * sizes.itemsize + 24) + arcs * 24
    at_work = ends * (sizes.per_node + sizes.per_copy) + arcs * BYTES_PER_ARC
    largest_part = max(part.bytes for part in graph.feature_ranges) * 3
    room = memory - at_work - largest_part
    if room < held:
        needed = held + at_work + largest_part
        raise GraphError(
            f"in the edge-centric division all nodes of a subgraph may send, so a task holds a whole "
            f"subgraph: {needed:,} bytes, and it may take {memory:,}. Give memory_limit={needed}, or "
            "divide the graph into more groups."
        )
    step = max(1, min(int(room // max(1, held)), division.num_groups // max(1, at_least)))
    everything = range(len(graph.ranges))
    size = int(at_work + largest_part + step * held)
    return [VoteTask(groups, everything, size) for groups in cut(division.num_groups, step)]


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
    tasks = _same_tasks(work, plan(sizes, division, work.memory_limit, at_least))
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
    """Returns the tasks of an interrupted run, if there was one: its files are named by them."""
    import json

    name = "tasks.json"
    stated = [[task.groups.start, task.groups.stop, task.ranges.start, task.ranges.stop, task.bytes] for task in tasks]
    try:
        before = json.loads(work.votes.read(name))
    except FileNotFoundError:
        work.votes.write(name, json.dumps({"key": work.key, "tasks": stated}).encode())
        return tasks
    except ValueError:
        raise GraphError(f"{work.votes}/{name} is damaged: delete the folder, and certify again.") from None
    if before["key"] != work.key:
        raise SettingsError(
            f"{work.votes} holds votes of another run (another graph, model, division, targets or "
            "tolerance): delete the folder, or name another."
        )
    return [VoteTask(range(a, b), range(c, d), size) for a, b, c, d, size in before["tasks"]]


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
