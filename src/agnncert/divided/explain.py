"""Explains a label of a division: which subgraph voted for which class, and which edges of the target are in it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from agnncert.certificates.class_names import names_in_data
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import Defence
from agnncert.divided.evidence import VoteEvidence
from agnncert.divided.unaudited import evidence_of
from agnncert.divisions.base import Division
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
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.perturbation import Perturbation
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.graphs.task import infer_task
from agnncert.graphs.voting_edges import EdgesOfNode, edges_at, ids_of_nodes, row_of_target


@torch.no_grad()
def explain_division(
    defence: Defence, division: Division, voting_rule: VotingRule | None, model: Any, data: Any, target: Any
) -> VoteExplanation:
    """Explains the label of one node, or of one graph.

    Args:
        defence: The division as a defence.
        division: The division.
        voting_rule: How votes are added up. Defaults to ``VotingRule()``.
        model: The trained module.
        data: The graph or graphs.
        target: Id of the node, or number of the graph.
    """
    plain = data.data if isinstance(data, CanonicalData) else data
    task = infer_task(plain)
    row = row_of_target(plain, task, target)
    chosen = prepared(plain, [row]).targets([row], division.self_loops)
    evidence = evidence_of(division, voting_rule, model, chosen)
    if task == "graph":
        voters = _voters_of_graph(division, chosen.graph, plain[row], evidence)
        shown: Any = row
    else:
        edges = EdgesOfNode(plain, row)
        voters = _voters_of_node(division, chosen.graph, row, edges, evidence)
        shown = edges.ids[row]

    def label_without(gone: Pairs) -> int:
        change = Perturbation(delete_edges=gone)
        if task == "graph":
            return int(defence.labels(model, [change.apply(plain[row])], [0])[0])
        return int(defence.labels(model, change.apply(plain), [row])[0])

    total = np.asarray(evidence.counts[0])
    removal, reason = _removal(evidence, voters, label_without)
    explained = VoteExplanation(
        target=shown,
        defence=defence.short_name(),
        label=winner(total),
        counts=tuple(total.tolist()),
        scale=1,
        total=tuple(total.tolist()),
        given=_given(evidence),
        voters=tuple(voters),
        removal=removal,
        no_removal=reason,
        arrivals=_arrivals(evidence, division.is_per_neighbour),
        class_names=names_in_data(plain, evidence.votes.num_classes),
    )
    return explained.with_strongest_first()


def _one_hot(vote: int, num_classes: int) -> tuple[int, ...]:
    return tuple(int(k == vote) for k in range(num_classes))


def _listed(evidence: VoteEvidence) -> list[tuple[int, int, bool]]:
    """Returns group, vote and stability of every listed vote of the one target."""
    votes = evidence.votes
    return list(zip(votes.group.tolist(), votes.vote.tolist(), votes.stable.tolist(), strict=True))


def _voters_of_node(
    division: Division, graph: CanonicalGraph, row: int, edges: EdgesOfNode, evidence: VoteEvidence
) -> list[Voter]:
    """Returns the subgraphs in which a node has a vote of its own, with its edges there."""
    neighbours = _neighbours_by_group(division, graph, row)
    is_one_way = division.divides_nodes  # only the edges that enter the target bring it something
    voters = []
    for group, vote, stable in _listed(evidence):
        others = neighbours.get(group, [])
        name = f"subgraph {group}"
        if division.is_per_neighbour and others:
            name = f"neighbour {edges.ids[others[0]]}"
        voter = Voter(
            name=name,
            edges=edges.between(others, leaving=not is_one_way),
            pairs=edges.pairs(others),
            votes=_one_hot(vote, evidence.votes.num_classes),
            stable=stable,
        )
        voters.append(voter)
    return voters


def _neighbours_by_group(division: Division, graph: CanonicalGraph, row: int) -> dict[int, list[int]]:
    """Returns the neighbours of a node whose edges with it are in each group, ascending."""
    source, head = graph.edge_index.long()
    touches = head == row
    if not division.divides_nodes:
        touches |= source == row
    positions = touches.nonzero().view(-1)
    groups = division.groups(graph)[positions].tolist()
    others = torch.where(head[positions] == row, source[positions], head[positions]).tolist()
    found: dict[int, set[int]] = {}
    for group, other in zip(groups, others, strict=True):
        if group >= 0 and other != row:
            found.setdefault(int(group), set()).add(int(other))
    return {group: sorted(rows) for group, rows in found.items()}


def _voters_of_graph(division: Division, graph: CanonicalGraph, data: Any, evidence: VoteEvidence) -> list[Voter]:
    """Returns the subgraphs of a graph, with their edges."""
    groups = division.groups(graph).tolist()
    source, head = graph.edge_index.tolist()
    pairs: dict[int, set[tuple[int, int]]] = {}
    for group, u, v in zip(groups, source, head, strict=True):
        pairs.setdefault(int(group), set()).add((min(u, v), max(u, v)))
    ids = ids_of_nodes(data)
    positions: dict[tuple[int, int], list[int]] = {}
    for position, (u, v) in enumerate(zip(*data.edge_index.tolist(), strict=True)):
        positions.setdefault((min(u, v), max(u, v)), []).append(position)
    voters = []
    for group, vote, stable in _listed(evidence):
        inside = sorted(pairs.get(group, ()))
        columns = [position for pair in inside for position in positions.get(pair, ())]
        voter = Voter(
            name=f"subgraph {group}",
            edges=tuple(edges_at(data, ids, columns)),
            pairs=tuple((ids[u], ids[v]) for u, v in inside),
            votes=_one_hot(vote, evidence.votes.num_classes),
            stable=stable,
        )
        voters.append(voter)
    return voters


def _given(evidence: VoteEvidence) -> tuple[Given, ...]:
    """Returns the votes of empty subgraphs, and those of the prior."""
    votes = evidence.votes
    num_classes = votes.num_classes
    unlisted = int(votes.num_unlisted[0])
    default = int(votes.default[0])
    empty = tuple(unlisted * part for part in _one_hot(default, num_classes))
    given = [Given(f"{unlisted:,} empty subgraphs", empty)] if any(empty) else []
    prior = np.asarray(evidence.counts[0] - votes.counts[0])
    if prior.any():
        given.append(Given("votes given in advance", tuple(prior.tolist())))
    return tuple(given)


def _removal(
    evidence: VoteEvidence, voters: Sequence[Voter], label_without: Callable[[Pairs], int]
) -> tuple[Removal | None, str]:
    """Returns edges without which the label changes, computed again on the graph without them.

    Without its edges a subgraph votes as an empty one. So the answer is exact in the votes of subgraphs.
    """
    total = np.asarray(evidence.counts[0])
    default = np.array(_one_hot(int(evidence.votes.default[0]), len(total)), dtype=np.int64)
    removable = [voter for voter in voters if voter.pairs]
    if not removable:
        return None, "No edge of it has a vote, so no deletion of its edges changes the label."
    effects = default - np.array([voter.votes for voter in removable], dtype=np.int64)
    costs = np.array([len(voter.pairs) for voter in removable], dtype=np.int64)
    found = fewest_taken_away(total, effects, costs)
    if found is None:
        return None, "No deletion of its edges changes the label: subgraphs without edges do not vote against it."
    pairs = tuple(dict.fromkeys(pair for number in found for pair in removable[number].pairs))
    label = label_without(pairs)
    if label == winner(total):
        return None, "No deletion of its edges was found that changes the label."
    return Removal(pairs, tuple(removable[number].name for number in found), label), ""


def _arrivals(evidence: VoteEvidence, per_neighbour: bool) -> tuple[Arrival, ...]:
    """Returns how many votes have to turn to each other class, or to come for it, so that it wins; nearest first."""
    total: IntArray = np.asarray(evidence.counts[0])
    label = winner(total)
    arrivals = []
    for k in range(len(total)):
        if k == label:
            continue
        lead = int(total[label] - total[k])
        if per_neighbour:
            empty = evidence.voting_rule.constant  # a new vote takes one from the class of empty groups
            gain = 1 + (empty == label) - (empty == k)
            number = fewest_to_come(lead, gain, wins_ties=k < label)
            arrivals.append(Arrival(k, number, "new votes for it"))
        else:
            arrivals.append(Arrival(k, _turned(evidence, label, k, lead), "votes that turn to it"))
    return tuple(sorted(arrivals, key=lambda arrival: (arrival.number is None, arrival.number or 0, arrival.label)))


def _turned(evidence: VoteEvidence, label: int, k: int, lead: int) -> int | None:
    """Returns the fewest votes of subgraphs that have to turn to class ``k``: those for the label first."""
    cast = evidence.votes.counts[0]
    needed = lead + (k > label)
    from_label = min(-(-needed // 2), int(cast[label]))  # each of them counts twice
    from_others = max(needed - 2 * from_label, 0)
    others = evidence.votes.num_groups - int(cast[label]) - int(cast[k])
    return from_label + from_others if from_others <= others else None
