"""Checks a certificate against the graph and the model that it speaks about: what follows from them is formed again.

With the graph alone: the targets with ids, true classes and degrees, the rule that belongs to the division, and the
subgraphs in which targets have edges. With the model: whether it is fit, and all votes, by the fast engine and as
many as are asked for once more by the plain one. What comes out is what ``certify`` itself would have written.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_matrix

from agnncert.addons import addon
from agnncert.auditing.model_audit import AuditReport, audited
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.stacked import StackedCounts
from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.certificates.votes import ABSTAIN, VoteRecord, Votes, apply_voting_rule
from agnncert.certifier import audit_own
from agnncert.divisions.base import Division, require_division
from agnncert.divisions.named import parse_division
from agnncert.engine.call import ModelAdapter, bind
from agnncert.engine.casting import EngineName, cast, structure
from agnncert.engine.naive import choose_votes, differing
from agnncert.errors import DivisionError
from agnncert.graphs.graph import graph_digest, infer_task
from agnncert.graphs.targets import Targets, prepared
from agnncert.models.digest import model_digest
from agnncert.models.stacked import StackedModel, StackedVotes, require_stacked, stacked_counts
from agnncert.progress import OnProgress, follow
from agnncert.proving.certificate import as_ids

log = logging.getLogger(__name__)


@dataclass
class Found:
    """What is wrong, what was checked, what was not, and whether all of the data and of the model was compared."""

    wrong: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)


@torch.no_grad()
def check_against_graph(
    contents: Contents,
    data: Any,
    model: Any,
    votes: float,
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
    if contents.kind == "samples":
        check = addon("agnncert.recompute", contents.kind, "agnncert_peers", "drawing samples again")
    else:
        check = {"votes": _check_votes, "stacked": _check_stacked}[contents.kind]
    check(found, contents, ready, model, votes, seed, division, progress)
    return found


def _check_votes(
    found: Found, contents: Contents, ready: Any, model: Any, votes: float, seed: int, division: Any, progress: Any
) -> None:
    claim, evidence = contents.claim, VoteRecord.load(contents.evidence, contents.settings)
    own = evidence.theorem.startswith("custom/")
    if division is not None:
        require_division(division)
    try:
        division = parse_division(claim.division) if division is None else division
    except DivisionError as error:
        how = f"{error} Pass the division itself: division=."
        if model is not None:  # asked about the votes: silence would pass for a yes
            found.wrong.append(f"votes cannot be cast again: {how}")
        found.not_checked.append(f"the subgraphs: {how}")
    loops = division is not None and division.self_loops
    chosen = ready.targets(contents.arrays["row"], loops)
    found.wrong += wrong_targets(contents, chosen)
    if division is None or found.wrong:
        return
    found.wrong += _wrong_division(claim, evidence, division, chosen, seed)
    found.checked.append("the graph, the targets with their ids, and the subgraphs in which they have edges")
    if "encoding" in claim.digests and not chosen.encoding:
        found.not_checked.append("how the features were made from a table: the data has no encoding")
    found.compared.append("data")
    if own and not division.edges_only:
        found.not_checked.append("that a change moves no more votes than the division states")
    if model is None:
        found.not_checked.append("that the model cast these votes, and is fit to: give the model")
        return
    if not found.wrong:
        found.wrong += other_model(contents, model)
    if found.wrong:
        return
    report, tried = audited(model, ready.data, division, ready.task)
    found.wrong += _wrong_model(contents, report, division.edges_only)
    if found.wrong:
        return
    if _STRENGTH[claim.locality] > _STRENGTH[report.locality]:  # elsewhere, another release may have been read
        found.not_checked.append(
            "that the model is local by construction: its layers, or this release of PyTorch Geometric, are not among "
            "what was read; here it withstood the tests"
        )
    call = bind(model, chosen.graph, chosen.task, tried)
    engine: EngineName = "naive" if report.needs_naive else "fast"
    report_progress = progress and follow(progress, "casting votes again", division.num_groups_in(chosen.graph))

    def recast(call: ModelAdapter, tolerance: float) -> Votes:
        given = {"report_progress": report_progress, "entries": ready.entries}
        return cast(call, chosen.graph, division, chosen.places, engine, tolerance, **given)[0]

    here = recast(call, claim.tolerance)
    found.wrong += _wrong_votes(evidence, here, call, recast, claim.tolerance, report.tolerance)
    number = len(evidence.votes.group) if division.is_per_neighbour else evidence.num_targets * division.num_groups
    found.checked.append(f"the model, and all {number:,} votes, cast again")
    found.compared.append("model")
    if votes and not found.wrong:
        pairs = choose_votes(here, votes, np.random.default_rng(seed), division.is_per_neighbour)
        log.info("casting %d votes once more, one subgraph at a time", len(pairs))
        differ, again = differing(here, pairs, call, chosen.graph, division, chosen.places)
        if differ.size:
            target, group = pairs[differ[0]]
            found.wrong.append(
                f"{differ.size} of {len(pairs)} votes cast one subgraph at a time differ, first: target "
                f"{contents.arrays['target'][target]} in subgraph {group} votes {again[differ[0]]}"
            )
        found.checked.append(f"{len(pairs):,} of them once more, one subgraph at a time")


def wrong_targets(contents: Contents, chosen: Targets) -> Iterator[str]:
    """What is not as in the graph, target by target; true classes and degrees only as far as they are stated."""
    stated, claim = contents.arrays, contents.claim
    if claim.ids != chosen.id_kind:
        yield f'the claim says that nodes are known by "{claim.ids}", the data says by "{chosen.id_kind}"'
    expected = ("graph", "model", "division") if contents.kind == "votes" else ("graph", "model")
    missing = [name for name in expected if name not in claim.digests]
    if missing:
        yield f"the file does not say which {missing[0]} was certified: it has no digest of it"
    elif claim.digests["graph"] != graph_digest(chosen.graph):
        yield "the graph is not the one that was certified (its digest differs)"
    if chosen.encoding and claim.digests.get("encoding", chosen.encoding) != chosen.encoding:
        yield "the features were made from the table by another encoding (its digest differs)"
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
_STRENGTH = {"": 0, "test": 1, "construction": 2}  # of the ways in which it is known that a model is local
_CALLED = {"target": "id", "truth": "true class", "degree": "degree"}


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
        for name, derived in structure(chosen.graph, division, chosen.places).items():
            if not np.array_equal(stored[name], derived):
                yield "the subgraphs in which targets have edges are not those of this graph and division"
                return
        if division.has_disjoint_union:
            yield from _walked(evidence, division, chosen, seed)


MOST_LOOKED_AT = 200  # targets from which the graph is walked, fewer if it is large
ARCS_LOOKED_AT = 2 * 10**8
MOST_VISITS = 300_000


def _walked(evidence: VoteRecord, division: Division, chosen: Targets, seed: int) -> Iterator[str]:
    """What walking along the graph contradicts. Shares no code with the engine, which formed the same facts.

    The rest of the structure is compared as a whole; here an error of the code that forms it would show.
    """
    graph, on_graphs, groups = chosen.graph, chosen.task == "graph", evidence.votes.num_groups
    (source, head), group = graph.edge_index.numpy(), division.groups(graph).numpy()
    place = np.full(graph.num_nodes, -1)
    place[chosen.places] = np.arange(len(chosen.places))
    owner = graph.graph_of_node.numpy() if on_graphs else place
    vote = evidence.votes.owner * groups + evidence.votes.group
    divided = group >= 0
    into = divided & (owner[head] >= 0)
    if not np.isin(owner[head[into]] * groups + group[into], vote[evidence.votes.reached]).all():
        yield "an edge of a target is in a subgraph whose vote is said to be out of reach"
    links = coo_matrix((np.ones(len(source), dtype=bool), (source, head)), shape=(len(place), len(place))).tocsr()
    if evidence.one_way is not None:
        edge = np.zeros(int(vote.max(initial=0)) + 1, dtype=np.int64)  # one edge of each pair, by its vote
        for end in (head, source):
            seen = owner[end] >= 0
            edge[(owner[end] * groups + group)[seen]] = np.flatnonzero(seen)
        u, v = source[edge[vote]], head[edge[vote]]
        both = np.asarray(links[u, v]).ravel() & np.asarray(links[v, u]).ravel()
        if len(vote) and not np.array_equal(evidence.one_way, ~both):
            yield "pairs are said to have one direction, or both, that do not"
    if evidence.targets_per_node is not None:
        near = links + links.T if THEOREMS[evidence.theorem].division.by_pair else links
        counts = np.asarray((near[place < 0][:, place >= 0] > 0).sum(axis=1)).ravel()
        if sorted(counts[counts > 0].tolist(), reverse=True) != evidence.targets_per_node.tolist():
            yield "the nodes with most targets among their neighbours are not those of this graph"
    if THEOREMS[evidence.theorem].uses_reach:
        some = np.random.default_rng(seed).permutation(evidence.num_targets)
        some = some[: max(1, min(MOST_LOOKED_AT, ARCS_LOOKED_AT // max(1, len(source))))]
        reaches = (
            _on_graphs(source, head, group, owner, some) if on_graphs else _by_walks(evidence, chosen, group, some)
        )
        for target, reach in reaches:
            row = evidence.reach[evidence.reach_ptr[target] : evidence.reach_ptr[target + 1]]
            cap = evidence.votes.reached[evidence.votes.indptr[target] : evidence.votes.indptr[target + 1]].sum()
            bound = np.minimum(np.cumsum(np.sort(reach)[::-1]), cap)
            if (bound > row[np.minimum(np.arange(len(bound)), len(row) - 1)]).any():
                yield "some nodes reach more votes of a target than the file says"
                return


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
        start = int(chosen.places[target])
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


def other_model(contents: Contents, model: Any) -> Iterator[str]:
    """What is wrong if the model is not the one that was certified."""
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


def _wrong_votes(
    evidence: VoteRecord,
    cast_here: Votes,
    call: ModelAdapter,
    again: Callable[[ModelAdapter, float], Votes],
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
            against = counted(again(replace(call, model=_Against(call.model, label), num_classes=2), rounding))
            beaten = (votes == label) & (against[name] == 0) & against[flag]
            if beaten.any():
                yield f"{beaten.sum():,} votes close to a tie are for class {label}, which does not come close"


_VOTES = {
    "default votes": ("default", "default_stable"),
    "listed votes": ("vote", "stable"),
    "predictions without edges, which the prior follows,": ("no_edge", "no_edge_stable"),
}


def other_classes(stated: int, call: ModelAdapter) -> Iterator[str]:
    """What is wrong if the evidence has another number of classes than the model."""
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


def _check_stacked(found: Found, contents: Contents, ready: Any, model: Any, *_: Any) -> None:
    stored, chosen = StackedCounts.load(contents.evidence, contents.settings), ready.targets(contents.arrays["row"])
    found.wrong += wrong_targets(contents, chosen)
    found.checked.append("the graph, and the targets with their ids")
    if model is None:
        found.not_checked.append("that the model computed these scores and votes, and may be certified: give the model")
        return
    if not found.wrong:
        found.wrong += other_model(contents, model)
    if found.wrong:
        return
    require_stacked(model, model.defence if isinstance(model, StackedModel) else StackedVotes())
    known = audit_own(model, ready.data)
    if contents.claim.locality == "construction" and known != "construction":
        found.not_checked.append("that locality is known by construction: here it is known by test")
    if contents.claim.notes != (str(model.defence),):
        found.wrong.append(f"the claim does not name the defence as it is, {model.defence}")
    here = stacked_counts(model, chosen)
    for name, value in here.items():
        mine = getattr(stored, name)
        if not isinstance(value, np.ndarray):
            if mine != value:
                found.wrong.append(f"{name} is {mine!r:.60}, the model says {value!r:.60}")
        elif mine.shape != value.shape:
            found.wrong.append(f"{name} does not have the shape that follows from the graph")
        elif np.abs(mine.astype(np.int64) - value).max(initial=0) > (stored.slack if name in _COMPUTED else 0):
            found.wrong.append(f"{name} is not what the model computes on this graph")
    found.checked.append(f"the model, and all {len(stored.which):,} votes, computed again")
    found.compared += ["data", "model"]  # without the model, nothing about neighbours is compared


_COMPUTED = ("prior", "gate", "table")  # another machine may round these differently
