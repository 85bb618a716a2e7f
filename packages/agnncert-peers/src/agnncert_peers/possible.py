"""What a report shows beside what a run certifies: how much is possible at most, or would be with more knowledge.

**Graphs: a ceiling, which is proved.** What any classifier of the numbers of nodes of each type can certify on the
targets (``agnncert_peers.ceilings``), against the kind of change that each curve of the report counts:

    division                            radius           only added or deleted    injected nodes
    edge-centric, per edge, GNNCert-E   edges            edges
    node-centric                        any              (the same)               injected
    node-centric, nodes without ids     kept             (the same)               injected
    per node                            any              structure                injected
    GNNCert-N                           features

Nodes without ids cannot be deleted, as later rows would move. Where a node may also be changed and pays by its edges
(edge-centric), the attacker of the ceiling is weaker than that of the radius, so the ceiling remains one.

**Nodes: a reference, which is none.** What one vote per neighbour for its true class would certify against neighbours
that come or go, beside the prediction of the certified model without edges.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch

from agnncert.certificates.votes import FloatArray
from agnncert.proving.certificate import Certificate
from agnncert.report.summary import AT_MOST, VOTES_REFERENCE
from agnncert.stacked.model import pairs_of
from agnncert.study import Study, predict
from agnncert_peers.ceilings import Changes, ceiling, few_type_counts, votes_reference

MOST_GRAPHS = 4_000  # of more, all pairs take too long
MOST_CELLS = 2**25  # targets times classes
# What an attacker does to the numbers of nodes of each type, in the words of reports.
WORDS: dict[Changes, str] = {
    "edges": "edges changed, nodes as they are",
    "features": "nodes given other features",
    "injected": "nodes injected",
    "structure": "nodes injected or deleted",
    "kept": "nodes injected or given other features",
    "any": "nodes injected, deleted or given other features",
}


def possible(study: Study, certificate: Certificate, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Computes what is possible at each size, by the name that the report shows, that of the first curve first.

    The answer is empty where nothing is known: true classes are missing, features are no types of nodes, sizes count
    votes, or there is no prediction without edges.
    """
    if study.chosen.truth is None or not (study.chosen.truth >= 0).any():
        return {}
    if study.task == "graph":
        return _of_graphs(study, certificate, sizes)
    return _of_nodes(study, certificate, sizes)


def counted_changes(certificate: Certificate) -> tuple[Changes, ...]:
    """Returns the kinds of change that the curves of graphs count, each once; none if they count something else."""
    return cast(tuple[Changes, ...], certificate.evidence.counted_changes())


def _of_graphs(study: Study, certificate: Certificate, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    kinds = counted_changes(certificate)
    known = study.truth >= 0
    graphs = [study.data[int(row)] for row in study.targets[known]]
    if not kinds or len(graphs) > MOST_GRAPHS:
        return {}
    counts = few_type_counts(graphs)
    if counts is None:
        return {}
    ceilings = {}
    for kind in kinds:
        shares = ceiling(counts, study.truth[known], sizes, kind)
        ceilings[f"{AT_MOST} ({WORDS[kind]})"] = dict(zip(sizes, shares, strict=True))
    return ceilings


def _of_nodes(study: Study, certificate: Certificate, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    own = _own_logits(study, certificate)
    if own is None or own.size > MOST_CELLS:
        return {}
    votes = _true_votes(study, own.shape[1])
    known = study.truth >= 0
    if votes is None or study.truth.max() >= own.shape[1]:  # a class that the model does not know
        return {}
    shares = votes_reference(own[known], votes[known], study.truth[known], sizes)
    return {VOTES_REFERENCE: dict(zip(sizes, shares, strict=True))}


def _own_logits(study: Study, certificate: Certificate) -> FloatArray | None:
    """Returns log-probabilities of the targets without edges, where sizes count edges or neighbours."""
    if not certificate.evidence.counts_neighbours:
        return None
    alone = study.seeded_defence.without_edges(study.new_model())
    if alone is None:
        return None
    logits = predict(study, alone).logits
    return np.asarray(torch.log_softmax(logits.double(), dim=1).numpy())


def _true_votes(study: Study, num_classes: int) -> FloatArray | None:
    """Counts the neighbours of each target by class, shape ``[n, C]``; None if one of them has no label."""
    graph = study.chosen.graph
    y = study.data.y.reshape(-1).long()
    pairs = pairs_of(graph.edge_index, torch.from_numpy(study.chosen.positions), graph.num_nodes)
    said = y[pairs.neighbour]
    if len(said) and not 0 <= int(said.min()) <= int(said.max()) < num_classes:
        return None
    number = torch.bincount(pairs.owner * num_classes + said, minlength=len(study.targets) * num_classes)
    return np.asarray(number.view(-1, num_classes).double().numpy())
