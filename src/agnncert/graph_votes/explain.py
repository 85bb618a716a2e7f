"""Explains a label of graph votes: what is trusted, the vote of each item, and how many items change the label."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from agnncert.certificates.class_names import names_in_data
from agnncert.explanation import Arrival, Given, Removal, VoteExplanation, Voter, winner
from agnncert.graph_votes.evidence import LARGEST_OF_NODES, GraphEvidence
from agnncert.graph_votes.model import GraphModel
from agnncert.graph_votes.record import STEPS
from agnncert.graph_votes.seen import Shape
from agnncert.graph_votes.worst import OneGraph
from agnncert.graphs.targets import prepared
from agnncert.graphs.voting_edges import row_of_target

if TYPE_CHECKING:
    from agnncert.graph_votes.defence import GraphVotes

_READ = {
    "structure": "the structure",
    "nodes": "the features of all nodes",
    "count": "the number of nodes",
}
_ARRIVE = {
    "structure": "nodes with other features",
    "nodes": "edges added or deleted",
    "count": "nodes with other features",
    "none": "nodes injected, deleted or given other features",
}


@torch.no_grad()
def explain_graph(defence: "GraphVotes", model: GraphModel, data: Any, target: Any) -> VoteExplanation:
    """Explains the label of one graph, or node.

    Args:
        defence: The graph votes.
        model: The model.
        data: The graphs, or the graph.
        target: Number of the graph, or id of the node.
    """
    row = row_of_target(data, model.task, target)
    chosen = prepared(data, [row]).targets([row])
    shape = Shape.of(chosen.graph, 1)
    positions = chosen.positions if model.task == "node" else None
    evidence = model.evidence(chosen.graph, positions, 1, chosen.id_kind)
    total = evidence.counts[0]
    label = winner(total)
    voters: list[Voter] = []
    removal = None
    if model.task == "graph":
        graph = OneGraph(model, shape, chosen.graph.x.numpy())
        voters = [_voter(item, vote) for item, vote in graph.votes()]
        removal = _removal(graph, total)
    explained = VoteExplanation(
        target=chosen.ids[0] if model.task == "node" else int(row),
        defence=str(defence),
        label=label,
        counts=tuple(total.tolist()),
        scale=STEPS,
        total=tuple(total.tolist()),
        given=(_given(evidence),),
        voters=tuple(voters),
        removal=removal,
        no_removal="" if removal else _why_none(model),
        arrivals=_arrivals(evidence, label),
        class_names=names_in_data(data, evidence.num_classes),
    )
    return explained.with_strongest_first()


def _given(evidence: GraphEvidence) -> Given:
    """Returns what no attack changes, and with nothing trusted the score of the number of nodes."""
    if evidence.trusted == "none":
        size = min(int(evidence.size[0]), len(evidence.by_size) - 1)
        return Given("the number of nodes", tuple(evidence.by_size[size].tolist()))
    return Given(_READ[evidence.trusted], tuple(evidence.prior[0].tolist()))


def _voter(item: tuple[int, ...], vote: Any) -> Voter:
    """Returns an item by the rows of its nodes in the graph."""
    name = f"node {item[0]}" if len(item) == 1 else f"edge {item[0]} – {item[1]}"
    pairs = (item,) if len(item) == 2 else ()
    return Voter(name, (), pairs, tuple(vote.tolist()))


def _removal(graph: OneGraph, total: Any) -> Removal | None:
    """Returns the fewest edges whose deletion changes the label, where edges vote."""
    if graph.trusted != "nodes":
        return None
    label = winner(total)
    found: list[tuple[int, tuple[tuple[int, int], ...], int]] = []
    for rival in range(len(total)):
        lead = int(total[label] - total[rival]) - int(rival < label)
        taken: list[tuple[int, int]] = []
        for loss in graph.losses(label, rival) if rival != label else ():
            if lead < 0 or loss.state:
                continue
            taken.append((loss.item[0], loss.item[1]))
            lead -= loss.loss
        if rival != label and lead < 0:
            found.append((len(taken), tuple(taken), rival))
    if not found:
        return None
    _, pairs, _ = min(found)
    left = np.array(total)
    votes = dict(graph.votes())
    for pair in pairs:
        left = left - votes.get(pair, np.zeros_like(left))
    return Removal(pairs, tuple(f"edge {u} – {v}" for u, v in pairs), winner(left))


def _why_none(model: GraphModel) -> str:
    if model.trusted == "structure":
        return "The structure is trusted: nothing is said about edges that are deleted."
    return "No deletion of its edges changes the label."


def _arrivals(evidence: GraphEvidence, label: int) -> tuple[Arrival, ...]:
    """Returns how many changes bring each other class ahead of the label, which is exact; the nearest first."""
    arrivals = []
    row = np.zeros(1, dtype=np.int64)
    most = LARGEST_OF_NODES if evidence.trusted == "none" else int(evidence.number.sum())
    for rival in range(evidence.num_classes):
        if rival != label:
            number = _fewest(evidence, row, label, rival, most)
            arrivals.append(Arrival(rival, number, _ARRIVE[evidence.trusted]))
    return tuple(sorted(arrivals, key=lambda each: (each.number is None, each.number or 0, each.label)))


def _fewest(evidence: GraphEvidence, row: Any, label: int, rival: int, most: int) -> int | None:
    """Returns the fewest changes that bring a class ahead of the label; None if no number does."""
    low, high = -1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        stays = bool(evidence.lead_left(row, label, rival, middle)[0] >= 0)
        low, high = (middle, high) if stays else (low, middle)
    return None if high > most else high
