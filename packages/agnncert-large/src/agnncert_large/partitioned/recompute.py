"""Compares a certificate file with a graph in parts, and with a model: what follows from them is formed again."""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.agreement import other_model, wrong_columns
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import VoteRecord, Votes
from agnncert.datasets.table_store import reader_of
from agnncert.defence import Findings, RecomputeOptions
from agnncert.divided.recompute import BOUNDED, weaker_locality, wrong_model, wrong_votes
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.workers import Here
from agnncert.graphs import hashing
from agnncert.models.digest import model_digest
from agnncert_large.partitioned.certify import DEFAULT_MEMORY, TASKS_PER_WORKER, prepare
from agnncert_large.partitioned.counting import Counting, CountWork
from agnncert_large.partitioned.graph import PartitionedGraph
from agnncert_large.partitioned.places import Place, spare_folder
from agnncert_large.partitioned.planning import Sizes, plan
from agnncert_large.partitioned.store import GraphDigest, Store
from agnncert_large.partitioned.voting import VoteTask, VoteWork, Voting, do_task

__all__ = ["recompute_parts"]

_STRUCTURE = ("indptr", "group", "reached")


def recompute_parts(
    contents: Contents,
    graph: PartitionedGraph,
    model: Any,
    division: Division,
    options: RecomputeOptions,
) -> Findings:
    """Compares what a file says with a graph in parts and, if it is given, with a model.

    Args:
        contents: What the file says.
        graph: The graph.
        model: The model; ``None`` if only the graph is compared.
        division: The division that the file names.
        options: How it is computed.
    """
    findings = Findings()
    findings.wrong += _wrong_claim(contents, graph, division)
    if findings.wrong:
        return findings
    findings.wrong += _wrong_parts(contents, graph)
    findings.wrong += _wrong_targets(contents, graph)
    if findings.wrong:
        return findings
    findings.checked.append("every part of the graph, and the digest of the whole")
    if model is not None:
        findings.wrong += other_model(contents, model)
    if not findings.wrong:
        with _folder_of_votes(graph, options) as folder:
            _compare_votes(findings, _Run.of(contents, graph, model, division, options, folder))
    if model is None:
        findings.not_checked.append("that the model cast these votes, and is fit to: give the model")
    return findings


def _wrong_claim(contents: Contents, graph: PartitionedGraph, division: Division) -> Iterator[str]:
    """Yields what the claim says that is not so, as far as the manifest shows it."""
    claim, stated = contents.claim, graph.manifest["values"].get("encoding")
    if division != graph.division or claim.division != str(graph.division):
        yield f"the graph is stored by the groups of {graph.division}, the file is about {claim.division}"
    if claim.ids != graph.id_kind:
        yield f'the claim says that nodes are known by "{claim.ids}", the data says by "{graph.id_kind}"'
    missing = [name for name in ("graph", "model", "division") if name not in claim.digests]
    if missing:
        yield f"the file does not say which {missing[0]} was certified: it has no digest of it"
    elif claim.digests["graph"] != graph.digest:
        yield "the graph is not the one that was certified (its digest differs)"
    if stated is not None:
        digest = hashlib.sha256(stated.encode()).hexdigest()
        if claim.digests.get("encoding", digest) != digest:
            yield "the features were made from the table by another encoding (its digest differs)"
    rows = contents.arrays["row"]
    if rows.max(initial=-1) >= graph.num_nodes or (rows[1:] <= rows[:-1]).any():
        yield "the rows of the targets are not those of this graph, in order"


def _wrong_targets(contents: Contents, graph: PartitionedGraph) -> Iterator[str]:
    """Yields what a file states of its targets that the nodes contradict, range by range."""
    rows = contents.arrays["row"]
    for number, part in enumerate(graph.ranges):
        some = _between(rows, part.first, part.last + 1)
        if some.start == some.stop:
            continue
        nodes = graph.nodes(number)
        chosen = rows[some] - part.first
        named = {name: array[some] for name, array in contents.arrays.items() if name != "holds"}
        truth = None if nodes.y is None else nodes.y[chosen]
        known = {"target": nodes.id[chosen], "truth": truth, "degree": nodes.degree[chosen]}
        wrong = list(wrong_columns(replace(contents, arrays=named), known))
        if wrong:
            yield from wrong
            return


def _wrong_parts(contents: Contents, graph: PartitionedGraph) -> Iterator[str]:
    """Yields what is wrong in the parts: other arcs, groups or degrees than those of the graph with this digest."""
    with spare_folder(None) as spare:
        store = Store.in_folder(spare)
        rows: dict[str, str] = {"row": "i64", "key": "i64", "grp": "i32", "degree": "i64"}
        store.run("CREATE TABLE nodes AS SELECT * FROM reader", reader=reader_of(rows, _nodes(graph)))
        digest = GraphDigest.of(store, graph.num_nodes)
        yield from _wrong_features(graph, digest)
        values = graph.manifest["edge_values"]
        kinds: dict[str, str] = {
            **dict.fromkeys(("number", "source", "target"), "i64"),
            "grp": "i32",
            **dict.fromkeys(values, "bytes"),
        }
        store.run("CREATE TABLE raw AS SELECT * FROM reader", reader=reader_of(kinds, _arcs(graph)))
        store.run(
            "CREATE TABLE arcs AS SELECT raw.*, a.key AS source_key, b.key AS target_key, a.grp AS source_group, "
            "b.grp AS target_group FROM raw JOIN nodes a ON source = a.row JOIN nodes b ON target = b.row"
        )
        store.run("DROP TABLE raw")
        number = store.one("SELECT count(*) FROM arcs")
        yield from _wrong_groups(graph, store)
        yield from _wrong_listing(contents, graph, store)
        store.count_degrees(directed=True)
        different = store.one(
            "SELECT count(*) FROM nodes n LEFT JOIN degree d USING (row) WHERE n.degree <> coalesce(d.n, 0)"
        )
        if different:
            yield f"{different:,} nodes have another degree than the graph says: write the graph again"
        of_values = []
        for name, stated in values.items():
            kind = np.dtype(stated["type"]).newbyteorder("<").str
            of_values.append((name, name, kind, (number, *stated["shape"])))
        digest.add_arcs(store, False, number, of_values)
        if digest.finish(graph.manifest["id_digest"]) != contents.claim.digests["graph"]:
            yield "the graph is not the one that was certified (the digest of its parts differs)"


def _nodes(graph: PartitionedGraph) -> Iterator[dict[str, Any]]:
    settings: Any = graph.division
    for number in range(len(graph.ranges)):
        nodes = graph.nodes(number)
        groups = np.full(len(nodes), -1)
        if graph.by_sender:
            keys = nodes.key.view(np.uint64)
            groups = hashing.node_groups(keys, settings.num_groups, settings.hash)
        yield {"row": nodes.row, "key": nodes.key, "grp": groups.astype(np.int32), "degree": nodes.degree}


def _arcs(graph: PartitionedGraph) -> Iterator[dict[str, Any]]:
    number = 0
    for group in range(graph.division.num_groups):
        arcs = graph.arcs(group)
        rows: dict[str, Any] = {
            "number": np.arange(number, number + len(arcs)),
            "source": arcs.source,
            "target": arcs.target,
            "grp": np.full(len(arcs), group, dtype=np.int32),
        }
        for name, value in arcs.values.items():
            rows[name] = [row.tobytes() for row in value.numpy()]
        number += len(arcs)
        yield rows


def _wrong_groups(graph: PartitionedGraph, store: Store) -> Iterator[str]:
    """Yields what is wrong if an arc lies in another group than its ends say, or an inner arc is missing."""
    settings: Any = graph.division
    if graph.by_sender:
        wrong = store.one("SELECT count(*) FROM arcs WHERE grp <> source_group")
    else:
        wrong = 0
        for batch in store.batches("SELECT source_key, target_key, grp FROM arcs"):
            keys = [batch[name].to_numpy().view(np.uint64) for name in ("source_key", "target_key")]
            groups = hashing.edge_groups(keys[0], keys[1], settings.num_groups, settings.hash)
            wrong += int((groups != batch["grp"].to_numpy()).sum())
    if wrong:
        yield f"{wrong:,} arcs lie in groups that are not theirs: write the graph again"
    if graph.by_sender and list(_inner_differs(graph)):
        yield "arcs within a group are not those of the graph: write the graph again"


def _wrong_listing(contents: Contents, graph: PartitionedGraph, store: Store) -> Iterator[str]:
    """Yields what is wrong if targets are said to have edges in other groups than their arcs lie in.

    The engine that lists votes is not asked: it listed those of the file, too.
    """
    votes = VoteRecord.load(contents.evidence, contents.settings).votes
    reached = "SELECT target AS row, grp FROM arcs"
    if not graph.by_sender:
        reached += " UNION SELECT source, grp FROM arcs"
    listed = reached
    if graph.division.gates_features:
        listed += " UNION SELECT row, grp FROM nodes"
    for groups, chosen in ((listed, np.ones(len(votes.group), dtype=bool)), (reached, votes.reached)):
        stated = _sums_of_groups(contents.arrays["row"], votes, chosen, graph.num_nodes)
        found = store.batches(
            "SELECT row, count(*)::BIGINT AS n, sum(grp)::BIGINT AS s, sum(grp::BIGINT * grp)::BIGINT AS q "
            f"FROM (SELECT DISTINCT * FROM ({groups})) GROUP BY row"
        )
        is_target = np.zeros(graph.num_nodes, dtype=bool)
        is_target[contents.arrays["row"]] = True
        for batch in found:
            row = batch["row"].to_numpy()
            sums = np.stack([batch[name].to_numpy() for name in ("n", "s", "q")])
            if (stated[:, row] != sums)[:, is_target[row]].any():
                yield "an edge of a target is in a subgraph that the file does not list for it, or lists in vain"
                return
            stated[:, row] = 0
        if stated.any():
            yield "targets are said to have edges in subgraphs in which they have none"
            return


def _sums_of_groups(
    rows: npt.NDArray[np.int64], votes: Votes, chosen: npt.NDArray[np.bool_], num_nodes: int
) -> npt.NDArray[np.int64]:
    """Returns the number of listed groups of every node, their sum and the sum of their squares."""
    owner, group = rows[votes.owner[chosen]], votes.group[chosen].astype(np.int64)
    sums = np.zeros((3, num_nodes), dtype=np.int64)
    for number, values in enumerate((np.ones_like(group), group, group * group)):
        np.add.at(sums[number], owner, values)
    return sums


def _inner_differs(graph: PartitionedGraph) -> Iterator[int]:
    """Yields groups whose inner arcs are not those of its arcs that lead to its own nodes."""
    for group in range(graph.division.num_groups):
        senders, arcs, inner = graph.senders(group), graph.arcs(group), graph.arcs(group, kind="inner")
        expected = arcs.select(np.isin(arcs.target, senders.row))
        same = np.array_equal(expected.source, inner.source)
        same = same and np.array_equal(expected.target, inner.target)
        if not same or any(not value.equal(inner.values[name]) for name, value in expected.values.items()):
            yield group


def _wrong_features(graph: PartitionedGraph, digest: GraphDigest) -> Iterator[str]:
    """Adds all features to the digest; yields what is wrong if senders have others, or are others."""
    random = np.random.default_rng(secrets.randbits(64))
    width = graph.num_features * graph.x_type.itemsize
    weights = random.integers(0, 2**63, -(-width // 4), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    sums = np.zeros(graph.num_nodes, dtype=np.uint64)
    keys = np.zeros(graph.num_nodes, dtype=np.int64)
    for number, part in enumerate(graph.feature_ranges):
        x = graph.features(number).numpy()
        digest.add_features(x, graph.num_nodes)
        rows = slice(part.first, part.last + 1)
        sums[rows], keys[rows] = _sums(x, weights), graph.nodes(number).key
    if not graph.by_sender:
        return
    settings: Any = graph.division
    group_of = hashing.node_groups(keys.view(np.uint64), settings.num_groups, settings.hash)
    for group in range(settings.num_groups):
        senders = graph.senders(group)
        same = np.array_equal(senders.row, np.flatnonzero(group_of == group))
        same = same and np.array_equal(senders.key, keys[senders.row])
        if not same or not np.array_equal(_sums(senders.x.numpy(), weights), sums[senders.row]):
            yield f"the nodes that send in group {group} are not those of the graph: write the graph again"
            return


def _sums(x: npt.NDArray[Any], weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Returns a random checksum of every row."""
    words = np.ascontiguousarray(x).view(np.uint8).reshape(len(x), -1)
    words = np.pad(words, [(0, 0), (0, -words.shape[1] % 4)]).view("<u4")
    total = np.zeros(len(x), dtype=np.uint64)
    for column, weight in enumerate(weights):
        total += words[:, column] * weight
    return total


class _folder_of_votes:  # noqa: N801 - a context
    """A folder for votes that are computed again: on this machine if this process computes, else beside the graph."""

    def __init__(self, graph: PartitionedGraph, options: RecomputeOptions) -> None:
        self._here = None if options.workers is not None else TemporaryDirectory(prefix="agnncert-")
        self._beside = graph.place.inside(f"checks/{secrets.token_hex(8)}")

    def __enter__(self) -> Place:
        return self._beside if self._here is None else Place(str(Path(self._here.name).resolve()))

    def __exit__(self, *_: object) -> None:
        if self._here is None:
            self._beside.remove_folder("")
        else:
            self._here.cleanup()


@dataclass(frozen=True)
class _Run:
    """A certificate file beside the graph, the model and the settings with which votes are computed again."""

    contents: Contents
    record: VoteRecord
    graph: PartitionedGraph
    bound_model: ModelAdapter | None
    report: Any
    division: Division
    options: RecomputeOptions
    folder: Place

    @classmethod
    def of(
        cls,
        contents: Contents,
        graph: PartitionedGraph,
        model: Any,
        division: Division,
        options: RecomputeOptions,
        folder: Place,
    ) -> "_Run":
        record = VoteRecord.load(contents.evidence, contents.settings)
        if model is None:
            return cls(contents, record, graph, None, None, division, options, folder)
        ready = prepare(model, graph, division, None, None)
        bound_model = ready.bound_model
        if contents.claim.rounding not in BOUNDED:
            bound_model = replace(bound_model, rounding="watched")
        return cls(contents, record, graph, bound_model, ready.report, division, options, folder)

    def votes(self, bound_model: ModelAdapter | None, tolerance: float) -> "Callable[[int], tuple[Votes, Any]]":
        """Computes all votes again; returns what gives those of a range, with the reach table."""
        folder = self.folder.inside(secrets.token_hex(4))
        rows = self.contents.arrays["row"]
        targets = None
        if len(rows) < self.graph.num_nodes:
            targets = np.zeros(self.graph.num_nodes, dtype=bool)
            targets[rows] = True
        work = VoteWork(
            graph=self.graph.place,
            votes=folder,
            division=self.division,
            bound_model=bound_model,
            digest="" if bound_model is None else model_digest(bound_model.model),
            tolerance=tolerance,
            memory_limit=DEFAULT_MEMORY,
            targets=targets,
            key=secrets.token_hex(32),
        )
        workers = self.options.workers or Here()
        at_least = 1 if self.options.workers is None else TASKS_PER_WORKER * workers.parts_at_once()
        tasks: Sequence[VoteTask] = plan(
            self.graph, Sizes.of(self.graph, bound_model), self.division, work.memory_limit, at_least
        )
        for _ in workers.run(work, VoteWork.prepare, do_task, tasks):
            pass
        rule, theorem = self.record.voting_rule, self.division.theorem("node")
        counting = Counting(CountWork(work, tasks, rule, theorem), Voting(work, self.graph))
        return counting.votes


def _compare_votes(findings: Findings, run: _Run) -> None:
    """Compares subgraphs and votes of a file with those of the graph and the model, range by range."""
    claim = run.contents.claim
    if run.bound_model is not None:
        findings.wrong += wrong_model(run.contents, run.report, edges_only=False)
        findings.not_checked += weaker_locality(claim, run.report)
        if findings.wrong:
            return
    votes_on = run.votes(run.bound_model, claim.tolerance)
    for number, part in enumerate(run.graph.ranges):
        some = _between(run.contents.arrays["row"], part.first, part.last + 1)
        if some.start == some.stop:
            continue
        stored = _part_of(run.record, some)
        here, reach = votes_on(number)
        same = all(np.array_equal(getattr(stored.votes, name), getattr(here, name)) for name in _STRUCTURE)
        if not same or not np.array_equal(stored.reach_ptr, reach[0]) or not np.array_equal(stored.reach, reach[1]):
            findings.wrong.append("the subgraphs in which targets have edges are not those of this graph and division")
            return
        if run.bound_model is not None:
            findings.wrong += _wrong_on(run, stored, here, number)
        if findings.wrong:
            return
    findings.checked.append("the targets with their ids, and the subgraphs in which they have edges")
    findings.compared.append("data")
    if run.bound_model is not None:
        total = run.record.num_targets * run.division.num_groups
        findings.checked.append(f"the model, and all {total:,} votes, computed again")
        findings.compared.append("model")
        if run.options.recheck:
            findings.not_checked.append("votes one subgraph at a time (recheck=): in parts, every vote is computed so")


def _wrong_on(run: _Run, stored: VoteRecord, here: Votes, number: int) -> list[str]:
    def again(bound_model: ModelAdapter, tolerance: float) -> Votes:
        return run.votes(bound_model, tolerance)(number)[0]

    assert run.bound_model is not None
    return list(
        wrong_votes(
            stored,
            here,
            run.bound_model,
            again,
            tolerance=run.contents.claim.tolerance,
            rounding=run.report.tolerance,
        )
    )


def _part_of(record: VoteRecord, some: slice) -> VoteRecord:
    """Returns the record of consecutive targets."""
    votes = record.votes
    listed = slice(int(votes.indptr[some.start]), int(votes.indptr[some.stop]))
    reach = slice(int(record.reach_ptr[some.start]), int(record.reach_ptr[some.stop]))
    part = replace(
        votes,
        default=votes.default[some],
        default_stable=votes.default_stable[some],
        indptr=votes.indptr[some.start : some.stop + 1] - votes.indptr[some.start],
        group=votes.group[listed],
        vote=votes.vote[listed],
        stable=votes.stable[listed],
        reached=votes.reached[listed],
    )
    no_edge: dict[str, Any] = {}
    if record.no_edge is not None and record.no_edge_stable is not None:
        no_edge = {"no_edge": record.no_edge[some], "no_edge_stable": record.no_edge_stable[some]}
    reach_ptr = record.reach_ptr[some.start : some.stop + 1] - record.reach_ptr[some.start]
    return replace(record, votes=part, reach_ptr=reach_ptr, reach=record.reach[reach], **no_edge)


def _between(rows: npt.NDArray[np.int64], first: int, end: int) -> slice:
    """Returns which of ascending rows lie in a range."""
    begin, stop = np.searchsorted(rows, [first, end])
    return slice(int(begin), int(stop))
