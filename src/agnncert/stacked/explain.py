"""Explains a label of stacked votes: the score of own features, and the vote vector of each neighbour."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from agnncert.certificates.class_names import names_in_data
from agnncert.defence import Defence
from agnncert.explanation import (
    Arrival,
    Given,
    IntArray,
    Pairs,
    Removal,
    VoteExplanation,
    Voter,
    fewest_taken_away,
    fewest_to_come,
    winner,
)
from agnncert.graphs.perturbation import Perturbation
from agnncert.graphs.targets import prepared
from agnncert.graphs.voting_edges import EdgesOfNode, row_of_target
from agnncert.stacked.counting import stacked_counts
from agnncert.stacked.evidence import Leads, StackedEvidence
from agnncert.stacked.model import StackedModel
from agnncert.stacked.record import STEPS


@torch.no_grad()
def explain_stacked(defence: Defence, model: StackedModel, data: Any, target: Any) -> VoteExplanation:
    """Explains the label of one node.

    Args:
        defence: The stacked votes.
        model: The trained model.
        data: The graph.
        target: Id of the node.
    """
    row = row_of_target(data, "node", target)
    chosen = prepared(data, [row]).targets([row])
    evidence = StackedEvidence(**stacked_counts(model, chosen))
    graph = chosen.graph
    values = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
    _, neighbourhood = model.counted(graph.x, graph.edge_index, values, torch.tensor([row]))
    neighbours = neighbourhood.neighbour.tolist()
    edges = EdgesOfNode(data, row)
    divisor = int(Leads(evidence).divisor(evidence.degree)[0])
    gate = evidence.gate[0]
    votes = gate * evidence.table[evidence.which].astype(np.int64)  # [m, C]
    voters = []
    for other, vote in zip(neighbours, votes, strict=True):
        name = f"neighbour {edges.ids[other]}"
        voters.append(Voter(name, edges.between([other]), edges.pairs([other]), tuple(vote.tolist())))
    given = _given(evidence, divisor)
    total = np.sum([each.votes for each in given], axis=0) + votes.sum(axis=0)
    label = winner(total)
    # One neighbour less makes the divisor of a mean smaller, by which the prior is multiplied here.
    prior_per_neighbour = evidence.prior[0] * STEPS if evidence.pseudo else 0 * evidence.prior[0]

    def label_without(gone: Pairs) -> int:
        return int(defence.labels(model, Perturbation(delete_edges=gone).apply(data), [row])[0])

    removal, reason = _removal(total, -(votes + prior_per_neighbour), voters, label_without)
    explained = VoteExplanation(
        target=edges.ids[row],
        defence=str(defence),
        label=label,
        counts=tuple(evidence.counts[0].tolist()),
        scale=STEPS * divisor,
        total=tuple(total.tolist()),
        given=given,
        voters=tuple(voters),
        removal=removal,
        no_removal=reason,
        arrivals=_arrivals(evidence, total, prior_per_neighbour),
        class_names=names_in_data(data, evidence.num_classes),
    )
    return explained.with_strongest_first()


def _given(evidence: StackedEvidence, divisor: int) -> tuple[Given, ...]:
    """Returns the score of own features, and the votes of a pseudo-count."""
    name = "own features" if evidence.trusted < 0 else "own features and trusted edges"
    given = [Given(name, tuple((evidence.prior[0] * divisor).tolist()))]
    if evidence.pseudo:
        pseudo = evidence.gate[0] * np.array(evidence.pseudo_votes)
        given.append(Given("votes given in advance", tuple(pseudo.tolist())))
    return tuple(given)


def _removal(
    total: IntArray, effects: IntArray, voters: list[Voter], label_without: Callable[[Pairs], int]
) -> tuple[Removal | None, str]:
    """Returns the fewest neighbours without which the label changes, computed again without them."""
    found = fewest_taken_away(total, effects, np.ones(len(voters), dtype=np.int64))
    if found is None:
        return None, "No deletion of its edges changes the label."
    pairs = tuple(pair for number in found for pair in voters[number].pairs)
    label = label_without(pairs)
    if label == winner(total):
        return None, "No deletion of its edges was found that changes the label."
    return Removal(pairs, tuple(voters[number].name for number in found), label), ""


def _arrivals(evidence: StackedEvidence, total: IntArray, prior_per_neighbour: IntArray) -> tuple[Arrival, ...]:
    """Returns how many new neighbours suffice for each other class if their whole vote is for it; nearest first."""
    label = winner(total)
    arrivals = []
    for k in range(len(total)):
        if k == label:
            continue
        gain = int(evidence.gate[0, k]) * STEPS + int(prior_per_neighbour[k] - prior_per_neighbour[label])
        number = fewest_to_come(int(total[label] - total[k]), gain, wins_ties=k < label)
        arrivals.append(Arrival(k, number, "new neighbours that give it their whole vote"))
    return tuple(sorted(arrivals, key=lambda arrival: (arrival.number is None, arrival.number or 0, arrival.label)))
