"""Checks a certificate against the graph and the model it speaks about: casts ballots again, with the naive engine."""

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.baselines.defences import redraw
from agnncert.divisions import Division, is_graph_task, parse_division
from agnncert.errors import DivisionError, ModelContractError
from agnncert.graphs.graph import canonical, canonical_set, graph_digest, infer_task, one_graph
from agnncert.proof.ballots import IntArray, Votes
from agnncert.proof.certificate import Certificate
from agnncert.proof.evidence import BallotEvidence
from agnncert.voting import naive
from agnncert.voting.call import Ballots, Caller, bind, model_digest
from agnncert.voting.cast import cast


@torch.no_grad()
def check_against_graph(certificate: Certificate, data: Any, model: Any, ballots: float, seed: int = 0) -> list[str]:
    """What is wrong with a certificate, given graph and model; empty when nothing is.

    Args:
        certificate: The certificate, loaded.
        data: The graph, or the whole list of graphs it was made from.
        model: The module; ``None`` checks the graph only.
        ballots: How many ballots to cast again, chosen at random; ``math.inf`` for all. A certificate from
            random samples is drawn again as a whole, whatever the number above 0.
        seed: Seed of that choice.
    """
    claim, evidence = certificate.claim, certificate.evidence
    if infer_task(data) != claim.task:
        return [f"the certificate is about {claim.task} classification, the data is for the other task"]
    rows, total = certificate.row, len(data) if claim.task == "graph" else data.num_nodes
    if len(rows) and int(rows.max()) >= total:
        return [f"the certificate names row {int(rows.max())}, the data has {total}: it belongs to another graph"]
    try:
        division = parse_division(claim.division) if isinstance(evidence, BallotEvidence) else None
    except DivisionError as error:
        return [f"ballots cannot be cast again: {error}"]
    loops = getattr(division, "self_loops", False)
    if claim.task == "graph":
        graph = canonical_set([data[int(k)] for k in rows], loops)
        rows = np.arange(len(rows))
    else:
        graph = canonical(data, loops)
    wrong = []
    if claim.digests["graph"] not in (graph_digest(graph), graph_digest(graph, version=1)):
        wrong.append("the graph is not the one that was certified (its digest differs)")
    if model is not None and model_digest(model) != claim.digests["model"]:
        wrong.append("the model is not the one that was certified (its digest differs)")
    if wrong or model is None:
        return wrong
    if not isinstance(evidence, BallotEvidence) or division is None:
        # Samples have no ballots of their own: all of them are drawn again, or none.
        return _redrawn(certificate, data, model) if ballots else []
    call = bind(model, graph, claim.task)
    wrong += _structure(evidence, cast(call, graph, division, rows, tolerance=claim.tolerance))
    pairs = _chosen(evidence.votes, ballots, np.random.default_rng(seed))
    again, sure = _cast_again(call, graph, division, rows, pairs, claim.tolerance)
    stored, stable = _stored(evidence.votes, pairs)
    differ = np.flatnonzero((stored != again) & stable & sure)
    if differ.size:
        target, group = pairs[differ[0]]
        wrong.append(
            f"{differ.size} of {len(pairs)} ballots cast again differ, first: target "
            f"{certificate.target[target]} in subgraph {group} "
            f"votes {again[differ[0]]}, the certificate says {stored[differ[0]]}"
        )
    return wrong


def _redrawn(certificate: Certificate, data: Any, model: Any) -> list[str]:
    try:
        return redraw(certificate, data, model)
    except ModelContractError:  # the model mixes what is evaluated together: it was certified one graph at a time
        return redraw(certificate, data, model, engine="naive")


def _structure(evidence: BallotEvidence, again: tuple[Votes, tuple[IntArray, IntArray]]) -> list[str]:
    """What is wrong with the certificate's account of where targets have edges and how far nodes reach."""
    votes, (cover_ptr, cover) = again
    stored = (evidence.votes.indptr, evidence.votes.group, evidence.votes.reached, evidence.cover_ptr, evidence.cover)
    derived = (votes.indptr, votes.group, votes.reached, cover_ptr, cover)
    if all(np.array_equal(a, b) for a, b in zip(stored, derived, strict=True)):
        return []
    return ["the subgraphs in which targets have edges are not those of this graph and division"]


def _chosen(votes: Votes, ballots: float, random: np.random.Generator) -> IntArray:
    """Pairs (target, group): half among the listed ballots, which are few and matter most, half among all."""
    total = votes.num_targets * votes.num_groups
    if ballots >= total:
        chosen = np.arange(total)
    else:
        listed = votes.owner * votes.num_groups + votes.group
        first = random.choice(listed, min(len(listed), int(ballots) // 2), replace=False) if len(listed) else listed
        chosen = np.unique(np.concatenate([first, random.integers(0, total, int(ballots) - len(first))]))
    return np.stack([chosen // votes.num_groups, chosen % votes.num_groups], axis=1)


def _stored(votes: Votes, pairs: IntArray) -> Ballots:
    """The certificate's ballots of some pairs (target, group), and whether they are stable."""
    listed = votes.owner * votes.num_groups + votes.group
    wanted = pairs[:, 0] * votes.num_groups + pairs[:, 1]
    place = np.searchsorted(listed, wanted)
    is_listed = np.append(listed, -1)[place] == wanted
    ballot, stable = votes.default[pairs[:, 0]], votes.default_stable[pairs[:, 0]]  # copies: indexed by an array
    ballot[is_listed], stable[is_listed] = votes.ballot[place[is_listed]], votes.stable[place[is_listed]]
    return ballot, stable


def _cast_again(
    call: Caller, graph: Data, division: Division, rows: IntArray, pairs: IntArray, tolerance: float
) -> Ballots:
    """Ballots of pairs (target, group): subgraph by subgraph in the node task, graph by graph in the graph task."""
    on_graphs = is_graph_task(graph)
    groups = division.groups(graph)
    again, sure = np.empty(len(pairs), dtype=np.int16), np.empty(len(pairs), dtype=bool)
    by = pairs[:, 0] if on_graphs else pairs[:, 1]
    for index in np.unique(by).tolist():
        here = by == index
        if on_graphs:
            ballots, stable = naive.graph_ballots(call, one_graph(graph, index), division, tolerance)
            place = pairs[here, 1]
        else:
            ballots, stable = naive.node_ballots(call, graph, division, groups, index, tolerance)
            place = rows[pairs[here, 0]]
        again[here], sure[here] = ballots[place], stable[place]
    return again, sure
