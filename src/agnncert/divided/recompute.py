"""Compares a certificate file with its division, graph and model: what follows from them is formed again.

With the graph alone: the targets with ids, true classes and degrees, the theorem that belongs to the division, and the
subgraphs in which targets have edges. With the model: whether it is fit, and all votes, by the fast engine and as many
as are asked for once more by the plain one. What comes out is what ``certify`` itself would have written.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_matrix
from torch_geometric.data import Data

from agnncert.agreement import Comparison, other_classes, wrong_targets
from agnncert.auditing.model_audit import AuditReport, audited
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import ABSTAIN, VoteRecord, Votes, apply_voting_rule
from agnncert.defence import Engine, Findings, RecomputeOptions
from agnncert.divided.certify import bind_audited
from agnncert.divisions.base import Division
from agnncert.divisions.stability import require_stable
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.spot_check import choose_votes, spot_check_pairs
from agnncert.engine.structure import structure
from agnncert.engine.votes import Execution, compute_votes
from agnncert.errors import DivisionError
from agnncert.graphs.targets import CanonicalData, Targets
from agnncert.progress import ReportProgress, follow

log = logging.getLogger(__name__)

BOUNDED = ("float32", "float64")  # ways of deciding votes that a proved bound supports
_STRENGTH = {"": 0, "test": 1, "construction": 2}  # of the ways in which it is known that a model is local


def compare_subgraphs(comparison: Comparison, division: Division) -> None:
    """Compares what a file says with the graph: its targets, and the subgraphs in which they have edges."""
    contents, findings = comparison.contents, comparison.findings
    record = VoteRecord.load(contents.evidence, contents.settings)
    chosen = comparison.targets(division.self_loops)
    findings.wrong += wrong_targets(contents, chosen, ("graph", "model", "division"))
    if findings.wrong:
        return
    unstable = _unstable_division(division, chosen)
    seed = comparison.options.seed
    findings.wrong += unstable or _wrong_division(contents.claim, record, division, chosen, seed)
    findings.checked.append("the graph, the targets with their ids, and the subgraphs in which they have edges")
    findings.compared.append("data")
    if "encoding" in contents.claim.digests and not chosen.encoding:
        findings.not_checked.append("how the features were made from a table: the data has no encoding")
    if record.facts.prices and not division.edges_only:
        findings.not_checked.append("that a change moves no more votes than the division states")


def compare_votes(
    comparison: Comparison, model: Any, division: Division, *, probed_on: Sequence[Data] | None = None
) -> None:
    """Compares what a file says with the votes of a model on the subgraphs of a division.

    Args:
        comparison: The file beside its graph, which was compared before.
        model: The model.
        division: The division that the file names.
        probed_on: The graphs on which the audit calls the model. Defaults to all graphs of the data.
    """
    contents, data, findings = comparison.contents, comparison.data, comparison.findings
    record = VoteRecord.load(contents.evidence, contents.settings)
    chosen = comparison.targets(division.self_loops)
    report, audited_model = audited(model, data.data, division, data.task, probed_on)
    findings.wrong += wrong_model(contents, report, division.edges_only)
    if not findings.wrong:
        bound_model = bind_audited(model, chosen, report, audited_model)
        run = _Run(contents, record, data, chosen, division, report, bound_model)
        _compare_votes(findings, run, comparison.options)


@dataclass(frozen=True)
class _Run:
    """A certificate file beside the graph, the division and the model that it is compared with."""

    contents: Contents
    record: VoteRecord
    data: CanonicalData
    chosen: Targets
    division: Division
    report: AuditReport
    bound_model: ModelAdapter

    def compute_votes(
        self, bound_model: ModelAdapter, tolerance: float, report_progress: ReportProgress | None = None
    ) -> Votes:
        """Computes all votes again."""
        engine: Engine = "naive" if self.report.needs_naive else "fast"
        execution = Execution(report_progress=report_progress, entries=self.data.entries)
        votes, _ = compute_votes(
            bound_model, self.chosen.graph, self.division, self.chosen.positions, engine, tolerance, execution=execution
        )
        return votes


def _compare_votes(findings: Findings, run: _Run, options: RecomputeOptions) -> None:
    """Compares all votes of a file with those of the model, and some of them once more."""
    claim, division = run.contents.claim, run.division
    findings.not_checked += weaker_locality(claim, run.report)
    if claim.rounding not in BOUNDED:
        # The votes were watched, and are again: a bound would call other votes unstable.
        run = replace(run, bound_model=replace(run.bound_model, rounding="watched"))
    elif run.bound_model.rounding not in BOUNDED:
        findings.not_checked.append(
            "that votes are those of exact arithmetic: here no bound on the rounding of the model is known; flags were "
            "compared with those of votes that are evaluated twice"
        )
    report_progress = None
    if options.progress is not None:
        num_groups = division.num_groups_in(run.chosen.graph)
        report_progress = follow(options.progress, "computing votes again", num_groups)
    here = run.compute_votes(run.bound_model, claim.tolerance, report_progress)
    rounding = run.report.tolerance
    findings.wrong += wrong_votes(
        run.record, here, run.bound_model, run.compute_votes, tolerance=claim.tolerance, rounding=rounding
    )
    number = (
        run.record.num_targets * division.num_groups if not division.is_per_neighbour else len(run.record.votes.group)
    )
    findings.checked.append(f"the model, and all {number:,} votes, computed again")
    findings.compared.append("model")
    if options.recheck and not findings.wrong:
        _recheck(findings, run, here, options)


def weaker_locality(claim: Claim, report: AuditReport) -> Iterator[str]:
    """Yields what could not be checked if less is known here about where the model looks than the claim says."""
    if _STRENGTH[claim.locality] > _STRENGTH[report.locality]:  # elsewhere, another release may have been read
        yield (
            "that the model is local by construction: its layers, or this release of PyTorch Geometric, are not among "
            "what was read; here it withstood the tests"
        )


def _recheck(findings: Findings, run: _Run, here: Votes, options: RecomputeOptions) -> None:
    """Computes some votes once more, one subgraph at a time."""
    random = np.random.default_rng(options.seed)
    pairs = choose_votes(here, options.recheck, random, run.division.is_per_neighbour)
    log.info("computing %d votes once more, one subgraph at a time", len(pairs))
    differ, again = spot_check_pairs(here, pairs, run.bound_model, run.chosen.graph, run.division, run.chosen.positions)
    if differ.size:
        target, group = pairs[differ[0]]
        name = run.contents.arrays["target"][target]
        findings.wrong.append(
            f"{differ.size} of {len(pairs)} votes computed one subgraph at a time differ, first: target {name} in "
            f"subgraph {group} votes {again[differ[0]]}"
        )
    findings.checked.append(f"{len(pairs):,} of them once more, one subgraph at a time")


def _unstable_division(division: Division, chosen: Targets) -> list[str]:
    """Returns what is wrong if a division of the user's own does not keep its groups on this graph."""
    try:
        require_stable(division, chosen.graph)
    except DivisionError as error:
        return [str(error)]
    return []


def _wrong_division(
    claim: Claim, evidence: VoteRecord, division: Division, chosen: Targets, seed: int
) -> Iterator[str]:
    theorem, parameters = division.theorem(chosen.task), division.parameters
    if str(division) != claim.division or division.num_groups_in(chosen.graph) != evidence.votes.num_groups:
        yield f"the division {division} is not the one that is named, {claim.division}"
    elif (evidence.theorem, dict(evidence.parameters)) != (theorem, parameters):
        yield f'the division {division} has the theorem "{theorem}" and {parameters or "no parameters"}'
    elif not division.has_disjoint_union and len(evidence.votes.group) < evidence.num_targets * division.num_groups:
        yield "not every target has a vote in every subgraph"  # said before as many are laid out to be compared
    else:
        stored = evidence.tensors()
        for name, derived in structure(chosen.graph, division, chosen.positions).items():
            if not np.array_equal(stored[name], derived):
                yield "the subgraphs in which targets have edges are not those of this graph and division"
                return
        if division.has_disjoint_union:
            yield from _walked(evidence, division, chosen, seed)


MOST_LOOKED_AT = 200  # targets from which the graph is walked, fewer if it is large
ARCS_LOOKED_AT = 2 * 10**8
MOST_VISITS = 300_000


def _walked(evidence: VoteRecord, division: Division, chosen: Targets, seed: int) -> Iterator[str]:
    """Yields what walking along the graph contradicts. Shares no code with the engine, which formed the same facts.

    The rest of the structure is compared as a whole; here an error of the code that forms it would show.
    """
    walk = _Walk.of(evidence, division, chosen)
    if not walk.edges_are_reached():
        yield "an edge of a target is in a subgraph whose vote is said to be out of reach"
    if evidence.one_way is not None and not walk.directions_are_right():
        yield "pairs are said to have one direction, or both, that do not"
    if evidence.targets_per_node is not None and not walk.neighbours_are_counted():
        yield "the nodes with most targets among their neighbours are not those of this graph"
    if evidence.facts.uses_reach and not walk.reach_is_a_bound(seed):
        yield "some nodes reach more votes of a target than the file says"


@dataclass(frozen=True)
class _Walk:
    """The edges of a graph beside what a file says about the votes of its targets.

    Attributes:
        evidence: What the file says.
        chosen: The targets and their graph.
        source: First node of each edge, shape ``[num_edges]``.
        head: Second node of each edge, shape ``[num_edges]``.
        group: Group of each edge, shape ``[num_edges]``; -1 for an edge in no subgraph.
        owner: Number of the target that each node is, or belongs to; -1 for none, shape ``[num_nodes]``.
        vote: Number of target and group of each listed vote, shape ``[m]``.
    """

    evidence: VoteRecord
    chosen: Targets
    source: Any
    head: Any
    group: Any
    owner: Any
    vote: Any

    @classmethod
    def of(cls, evidence: VoteRecord, division: Division, chosen: Targets) -> "_Walk":
        """Reads the edges and groups of the graph."""
        graph = chosen.graph
        source, head = graph.edge_index.numpy()
        owner = np.full(graph.num_nodes, -1)
        owner[chosen.positions] = np.arange(len(chosen.positions))
        if chosen.task == "graph":
            owner = graph.graph_of_node.numpy()
        vote = evidence.votes.owner * evidence.votes.num_groups + evidence.votes.group
        return cls(evidence, chosen, source, head, division.groups(graph).numpy(), owner, vote)

    @cached_property
    def links(self) -> Any:
        """Which node has an edge to which, as a sparse matrix."""
        number = self.chosen.graph.num_nodes
        ones = np.ones(len(self.source), dtype=bool)
        return coo_matrix((ones, (self.source, self.head)), shape=(number, number)).tocsr()

    def edges_are_reached(self) -> bool:
        """Tells whether every edge into a target lies in a subgraph whose vote is said to be reached."""
        into = (self.group >= 0) & (self.owner[self.head] >= 0)
        met = self.owner[self.head[into]] * self.evidence.votes.num_groups + self.group[into]
        return bool(np.isin(met, self.vote[self.evidence.votes.reached]).all())

    def directions_are_right(self) -> bool:
        """Tells whether the pairs that are said to have one direction only are those of the graph."""
        if not len(self.vote):
            return True
        edge = np.zeros(int(self.vote.max(initial=0)) + 1, dtype=np.int64)  # one edge of each pair, by its vote
        for end in (self.head, self.source):
            seen = self.owner[end] >= 0
            edge[(self.owner[end] * self.evidence.votes.num_groups + self.group)[seen]] = np.flatnonzero(seen)
        u, v = self.source[edge[self.vote]], self.head[edge[self.vote]]
        both = np.asarray(self.links[u, v]).ravel() & np.asarray(self.links[v, u]).ravel()
        assert self.evidence.one_way is not None
        return np.array_equal(self.evidence.one_way, ~both)

    def neighbours_are_counted(self) -> bool:
        """Tells whether the stated numbers of targets that other nodes are neighbours of are those of the graph."""
        is_target = np.zeros(self.chosen.graph.num_nodes, dtype=bool)
        is_target[self.chosen.positions] = True
        by_pair = self.evidence.facts.by_pair
        near = self.links + self.links.T if by_pair else self.links
        counts = np.asarray((near[~is_target][:, is_target] > 0).sum(axis=1)).ravel()
        assert self.evidence.targets_per_node is not None
        return bool(sorted(counts[counts > 0].tolist(), reverse=True) == self.evidence.targets_per_node.tolist())

    def reach_is_a_bound(self, seed: int) -> bool:
        """Tells whether the reach tables of some targets bound what nodes reach on walks."""
        evidence = self.evidence
        some = np.random.default_rng(seed).permutation(evidence.num_targets)
        some = some[: max(1, min(MOST_LOOKED_AT, ARCS_LOOKED_AT // max(1, len(self.source))))]
        if self.chosen.task == "graph":
            reaches = _on_graphs(self.source, self.head, self.group, self.owner, some)
        else:
            reaches = _by_walks(evidence, self.chosen, self.group, some)
        for target, reach in reaches:
            row = evidence.reach[evidence.reach_ptr[target] : evidence.reach_ptr[target + 1]]
            cap = evidence.votes.reached[evidence.votes.indptr[target] : evidence.votes.indptr[target + 1]].sum()
            bound = np.minimum(np.cumsum(np.sort(reach)[::-1]), cap)
            if (bound > row[np.minimum(np.arange(len(bound)), len(row) - 1)]).any():
                return False
        return True


def _on_graphs(source: Any, head: Any, group: Any, owner: Any, some: Any) -> Iterator[tuple[int, Any]]:
    """For some graphs: in how many subgraphs each of its nodes has an edge."""
    for target in some.tolist():
        inside = np.flatnonzero(owner[source] == target)
        seen: dict[int, set[int]] = {}
        for end in (source, head):
            for node, subgraph in zip(end[inside].tolist(), group[inside].tolist(), strict=True):
                seen.setdefault(node, set()).add(subgraph)
        yield target, np.array([len(subgraphs) for subgraphs in seen.values()], dtype=np.int64)


def _by_walks(evidence: VoteRecord, chosen: Targets, group: Any, some: Any) -> Iterator[tuple[int, Any]]:
    """For some nodes: in how many subgraphs each node is met that can be walked to, whichever way edges point."""
    votes, nodes = evidence.votes, chosen.graph.num_nodes
    wanted = np.concatenate([votes.group[votes.indptr[k] : votes.indptr[k + 1]] for k in some.tolist()] or [group[:0]])
    kept = np.isin(group, wanted)
    source, head = chosen.graph.edge_index.numpy()[:, kept]
    step = np.concatenate([group[kept] * nodes + source, group[kept] * nodes + head])
    order = np.argsort(step, kind="stable")
    step, leads = step[order], np.concatenate([head, source])[order]
    visits = 0
    for target in some.tolist():
        met: Counter[int] = Counter()
        start = int(chosen.positions[target])
        for subgraph in votes.group[votes.indptr[target] : votes.indptr[target + 1]].tolist():
            seen, ahead = {start}, [start]
            while ahead:
                here = subgraph * nodes + ahead.pop()
                first, last = np.searchsorted(step, here), np.searchsorted(step, here, side="right")
                new = set(leads[first:last].tolist()) - seen
                seen |= new
                ahead += new
            met.update(seen - {start})
            visits += len(seen)
        yield target, np.array(list(met.values()), dtype=np.int64)
        if visits > MOST_VISITS:
            return


def wrong_model(contents: Contents, report: AuditReport, edges_only: bool) -> Iterator[str]:
    """Yields why a model is not fit for what a file claims."""
    claim = contents.claim
    needed = ("edges",) if edges_only else ("edges", "nodes", "features")
    if not set(needed) <= set(report.fit_for):
        yield f"the model is not fit for what is claimed: {report}"
    if claim.tolerance < report.tolerance:
        yield (
            f"the claim assumes that no score moves by more than {claim.tolerance:g} of the largest, which is less "
            f"than {report.tolerance:g}"
        )


def wrong_votes(
    evidence: VoteRecord,
    cast_here: Votes,
    call: ModelAdapter,
    again: Callable[[ModelAdapter, float], Votes],
    *,
    tolerance: float,
    rounding: float,
) -> Iterator[str]:
    """Compares all votes and flags; a lead that just suffices here may just not have sufficed on another machine.

    A flag is about the stated tolerance. But what a vote was that is close to a tie, machines can disagree about only
    as far as rounding goes, whatever tolerance somebody asked for.
    """
    if cast_here.num_classes != evidence.votes.num_classes:
        yield from other_classes(evidence.votes.num_classes, call)
        return

    def counted(votes: Votes) -> dict[str, Any]:
        """Default and listed votes under the vote, and the predictions that its prior follows."""
        under, no_edge = apply_voting_rule(votes, evidence.voting_rule)
        return {name: getattr(under, name) for pair in list(_VOTES.values())[:2] for name in pair} | no_edge

    stored, here = evidence.tensors(), counted(cast_here)
    for kind, (name, flag) in _VOTES.items():
        if name not in here:
            continue
        stable, sure, votes, ours = stored[flag], here[flag], stored[name], here[name]
        differ = (votes != ours) & (stable | sure | (votes == ABSTAIN) | (ours == ABSTAIN))
        if differ.any():
            yield f"{differ.sum():,} of {len(differ):,} {kind} are not those that the model casts"
            continue
        if (stable != sure).any():
            strict, lenient = (counted(again(replace(call, strictness=by), tolerance))[flag] for by in (1, -1))
            invented = (stable & ~lenient) | (strict & ~stable)
            if invented.any():
                yield f"{invented.sum():,} votes are not as close to a tie, or as far from one, as their flags say"
        for label in np.unique(votes[votes != ours]).tolist():
            rival = replace(call, model=_Against(call.model, label), num_classes=2, rounding="watched")
            against = counted(again(rival, rounding))
            beaten = (votes == label) & (against[name] == 0) & against[flag]
            if beaten.any():
                yield f"{beaten.sum():,} votes close to a tie are for class {label}, which does not come close"


_VOTES = {
    "default votes": ("default", "default_stable"),
    "listed votes": ("vote", "stable"),
    "predictions without edges, which the prior follows,": ("no_edge", "no_edge_stable"),
}


class _Against(torch.nn.Module):
    """Whether one class may be the best of a model: scores of the best of all others, and of this one."""

    def __init__(self, model: Any, label: int) -> None:
        super().__init__()
        self.model, self.label = model, label

    def forward(self, *inputs: Any, **values: Any) -> torch.Tensor:
        logits = self.model(*inputs, **values)
        others = torch.cat([logits[:, : self.label], logits[:, self.label + 1 :]], dim=1)
        return torch.stack([others.amax(dim=1), logits[:, self.label]], dim=1)
