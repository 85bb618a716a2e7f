"""Small worlds of models that are trained apart: votes drawn at random, and training sets whose every change is tried."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import ABSTAIN
from agnncert.datasets.splits import GraphSet
from agnncert.isolated.record import IsolatedRecord

VIEWS, MODELS = 4, 4


def random_record(rng: np.random.Generator, num_targets: int = 12, **shape: int) -> IsolatedRecord:
    """Votes of models that mostly agree, of targets that have nothing in some views."""
    num_groups, num_models = shape.get("num_groups", VIEWS), shape.get("num_models", MODELS)
    num_classes = shape.get("num_classes", int(rng.integers(2, 4)))
    listed = rng.random((num_targets, num_groups)) < 0.8
    owner, group = np.nonzero(listed)
    favourite = rng.integers(0, num_classes, num_targets)
    vote = np.repeat(favourite[owner][:, None], num_models, axis=1)
    strays = rng.random(vote.shape) < rng.choice([0.05, 0.2, 0.4])
    vote[strays] = rng.integers(ABSTAIN, num_classes, int(strays.sum()))
    return IsolatedRecord(
        theorem="node-centric/graph",
        num_groups=num_groups,
        num_classes=num_classes,
        num_models=num_models,
        hash="md5",
        indptr=np.concatenate([[0], np.cumsum(listed.sum(axis=1))]).astype(np.int64),
        group=group.astype(np.int32),
        reached=rng.random(len(group)) < 0.7,
        reach_ptr=np.zeros(num_targets + 1, dtype=np.int64),
        reach=np.zeros(0, dtype=np.int32),
        vote=vote.astype(np.int16),
        stable=rng.random(vote.shape) < rng.choice([0.85, 1.0]),
    )


def winner(votes: Any, num_classes: int) -> int:
    """The class with most votes, the smaller one on a tie, counted one by one."""
    counts = [0] * num_classes
    for vote in votes:
        if vote != ABSTAIN:
            counts[vote] += 1
    return counts.index(max(counts))


def reachable_labels(record: IsolatedRecord, target: int, budget: Budget) -> set[int]:
    """Every label of a target after some models are altered, and some views of the test graph are touched."""
    first, last = record.indptr[target], record.indptr[target + 1]
    listed = {int(record.group[place]): place for place in range(first, last)}
    labels = set()
    num_altered = int(min(budget.poison_graphs, record.num_models))
    for altered in itertools.combinations(range(record.num_models), num_altered):
        untouched = {view: _outcomes(record, place, altered) for view, place in listed.items()}
        for touched in touched_views(record, listed, budget):
            choices = [
                {*range(record.num_classes), ABSTAIN} if view in touched else untouched.get(view, {ABSTAIN})
                for view in range(record.num_groups)
            ]
            labels |= {winner(votes, record.num_classes) for votes in itertools.product(*choices)}
    return labels


def _outcomes(record: IsolatedRecord, place: int, altered: tuple[int, ...]) -> set[int]:
    """What a view may elect if some models vote for anything, and so do votes that are not stable."""
    free = {*altered, *np.flatnonzero(~record.stable[place]).tolist()}
    votes = record.vote[place].tolist()
    choices = [
        range(ABSTAIN, record.num_classes) if model in free else [votes[model]] for model in range(record.num_models)
    ]
    return {winner(cast, record.num_classes) for cast in itertools.product(*choices)}


def touched_views(record: IsolatedRecord, listed: dict[int, Any], budget: Budget) -> Iterator[set[int]]:
    """Every set of views that changes of the test graph may touch: a node any, an edge one with two nodes."""
    with_nodes = [view for view in listed]
    with_pairs = [view for view, place in listed.items() if record.reached[place]]
    num_edges = int(budget.add_edges + budget.delete_edges + budget.change_edges)
    num_nodes = int(budget.delete_nodes + budget.change_features)
    injected = itertools.product(range(record.num_groups), repeat=int(budget.inject_nodes))
    for new in injected:
        for old in itertools.product(with_nodes or [-1], repeat=num_nodes):
            for pairs in itertools.product([*with_pairs, *new] or [-1], repeat=num_edges):
                yield {*new, *old, *pairs}


def small_set(ids: list[Any], features: list[float], classes: list[int]) -> GraphSet:
    """Training graphs of one node each."""
    graphs = [
        Data(x=torch.tensor([[value]]), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.tensor([label]))
        for value, label in zip(features, classes, strict=True)
    ]
    for graph, own_id in zip(graphs, ids, strict=True):
        graph.graph_id = own_id
    return GraphSet(graphs, train=range(len(graphs)), num_classes=2)


def nearest_class(part: list[Data], value: float) -> int:
    """What a model that was trained on a part says: the class of the nearest training graph; none if it is empty."""
    if not part:
        return ABSTAIN
    nearest = min(part, key=lambda graph: (abs(float(graph.x[0, 0]) - value), int(graph.y)))
    return int(nearest.y)
