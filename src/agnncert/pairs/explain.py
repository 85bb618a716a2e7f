"""Explains a label of a pair: the score of its own features, and the vote of each common neighbour or contact."""

from typing import Any

import numpy as np
import torch

from agnncert.certificates.class_names import names_in_data
from agnncert.certificates.votes import IntArray
from agnncert.defence import Defence
from agnncert.errors import IdError, SettingsError
from agnncert.explanation import (
    Arrival,
    Given,
    Pairs,
    Removal,
    VoteExplanation,
    Voter,
    VotingEdge,
    fewest_taken_away,
    fewest_to_come,
    winner,
)
from agnncert.graphs.perturbation import Perturbation
from agnncert.graphs.targets import prepared
from agnncert.graphs.voting_edges import edges_at, ids_of_nodes
from agnncert.pairs.evidence import PairEvidence
from agnncert.pairs.model import PairModel
from agnncert.pairs.record import BETWEEN
from agnncert.pairs.targets import choose_pairs
from agnncert.stacked.record import STEPS

_NEWCOMERS = {
    "common": "new common neighbours",
    "both": "new common neighbours",
    "trusted": "contacts of the first node that give it their whole vote, by a new edge to the second one,",
}
_NAMES = {"common": "common neighbour", "both": "neighbour", "trusted": "contact"}


@torch.no_grad()
def explain_pair(defence: Defence, model: PairModel, data: Any, target: Any) -> VoteExplanation:
    """Explains the label of one pair.

    Args:
        defence: The votes about pairs.
        model: The trained model.
        data: The graph.
        target: The ids of both nodes, as certificates name a pair: "u – v".

    Raises:
        IdError: There is no such pair of nodes.
        SettingsError: The edges of all targets are masked, so that one pair alone has no score.
    """
    if model.defence.mask == "targets":
        raise SettingsError(
            f"{defence} cannot explain a decision about one pair, because its score depends on which other pairs are "
            "targets: their edges are masked. Train with mask='own' (--set defence.mask=own)."
        )
    ids = ids_of_nodes(data)
    ends = _rows_of(target, ids)
    chosen = choose_pairs(prepared(data), torch.tensor([[ends[0]], [ends[1]]]))
    masked = model.masked_pairs(chosen.ends)
    evidence = PairEvidence(**model.counted(chosen.graph, chosen.ends, chosen.values, masked), ids=chosen.nodes.id_kind)
    nodes = model.voters(chosen.graph, chosen.ends, masked).node
    votes = evidence.gate[0] * evidence.table[evidence.which].astype(np.int64)  # [m, C]
    voters = _voters(data, ids, ends, nodes, votes, evidence.rule)
    own = "own features of the pair" + (" and edges of its first node" if evidence.rule == "trusted" else "")
    given = (Given(own, tuple((evidence.prior[0] * STEPS).tolist())),)
    total = evidence.prior[0] * STEPS + votes.sum(axis=0)

    def label_without(gone: Pairs) -> int:
        attacked = Perturbation(delete_edges=gone).apply(data)
        return int(defence.labels(model, attacked, torch.tensor([[ends[0]], [ends[1]]]))[0])

    removal, reason = _removal(total, voters, label_without)
    explained = VoteExplanation(
        target=f"{ids[ends[0]]}{BETWEEN}{ids[ends[1]]}",
        defence=str(defence),
        label=winner(total),
        counts=tuple(evidence.counts[0].tolist()),
        scale=STEPS * STEPS,
        total=tuple(total.tolist()),
        given=given,
        voters=voters,
        removal=removal,
        no_removal=reason,
        arrivals=_arrivals(evidence, total),
        class_names=names_in_data(data, evidence.num_classes),
    )
    return explained.with_strongest_first()


def _rows_of(target: Any, ids: list[Any]) -> tuple[int, int]:
    """Returns the rows of both nodes of a pair that is named "u – v"."""
    row_of = {str(name): row for row, name in enumerate(ids)}
    first, between, second = str(target).partition(BETWEEN)
    unknown = [name for name in (first, second) if name not in row_of]
    if not between or unknown:
        what = f'there is no node "{unknown[0]:.60}"' if between else f'"{target!s:.60}" is no pair'
        raise IdError(f'{what}: a pair is named by the ids of its two nodes, as "u{BETWEEN}v".')
    return row_of[first], row_of[second]


def _voters(
    data: Any, ids: list[Any], ends: tuple[int, int], nodes: IntArray, votes: IntArray, rule: str
) -> tuple[Voter, ...]:
    """Returns everybody who votes, each once, with all that its edges to the two nodes give."""
    source, head = data.edge_index.long().numpy()
    voters = []
    for node in np.unique(nodes).tolist():
        touching = [_joining(source, head, node, end) for end in ends]
        if rule == "trusted":
            touching[0] = touching[0][source[touching[0]] == ends[0]]
            touching[1] = touching[1][head[touching[1]] == ends[1]]
        edges: tuple[VotingEdge, ...] = tuple(edges_at(data, ids, np.concatenate(touching).tolist()))
        joined = [end for end, places in zip(ends, touching, strict=True) if len(places)]
        taken = joined if rule == "both" else joined[-1:]  # without its edge to the second node it has no vote
        pairs = tuple((ids[node], ids[end]) for end in taken)
        vote = votes[nodes == node].sum(axis=0)
        voters.append(Voter(f"{_NAMES[rule]} {ids[node]}", edges, pairs, tuple(vote.tolist())))
    return tuple(voters)


def _joining(source: IntArray, head: IntArray, node: int, end: int) -> IntArray:
    """Returns the places of all edges between two nodes."""
    return np.flatnonzero(((source == node) & (head == end)) | ((source == end) & (head == node)))


def _removal(total: IntArray, voters: tuple[Voter, ...], label_without: Any) -> tuple[Removal | None, str]:
    """Returns the fewest voters without which the label changes, computed again without their edges."""
    effects = -np.array([voter.votes for voter in voters], dtype=np.int64).reshape(len(voters), len(total))
    costs = np.array([len(voter.pairs) for voter in voters], dtype=np.int64)
    found = fewest_taken_away(total, effects, costs)
    if found is None:
        return None, "No deletion of edges changes the label."
    pairs = tuple(pair for number in found for pair in voters[number].pairs)
    label = label_without(pairs)
    if label == winner(total):
        return None, "No deletion of edges was found that changes the label."
    return Removal(pairs, tuple(voters[number].name for number in found), label), ""


def _arrivals(evidence: PairEvidence, total: IntArray) -> tuple[Arrival, ...]:
    """Returns how many new voters suffice for each other class; nearest first."""
    label = winner(total)
    arrivals = []
    for k in range(len(total)):
        if k == label:
            continue
        gain = int(evidence.gate[0, k]) * STEPS
        number = fewest_to_come(int(total[label] - total[k]), gain, wins_ties=k < label)
        arrivals.append(Arrival(k, number, _NEWCOMERS[evidence.rule]))
    return tuple(sorted(arrivals, key=lambda arrival: (arrival.number is None, arrival.number or 0, arrival.label)))
