"""Tiny graphs for the theorems of graph votes: every attack, and scores by the definition alone.

A world is a graph with types of nodes and edges, a trusted part and tables of votes. It shares no code with
evidence or recount: its items are found anew in each attacked graph, and their votes added up one by one.
"""

from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from agnncert.graph_votes.evidence import GraphEvidence

NO_ENTRIES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class World:
    """A graph: the type of each node and the pairs that are joined; and whole numbers for it."""

    trusted: str
    types: tuple[int, ...]
    edges: frozenset
    prior: tuple  # by class
    table: np.ndarray  # [contexts, states, classes]
    by_size: np.ndarray  # [N, classes]

    @property
    def pairs(self):
        return list(combinations(range(len(self.types)), 2))

    def role(self, node):
        """The role of a node by the structure: whether it has at least two edges."""
        return int(sum(node in pair for pair in self.edges) >= 2)

    def kind(self, pair):
        """The kind of a pair, by the types of its ends."""
        low, high = sorted(self.types[node] for node in pair)
        return low + high  # with types 0 and 1 there are three kinds

    def items(self):
        """Context and state of each item."""
        if self.trusted == "structure":
            return [(self.role(node), kind) for node, kind in enumerate(self.types)]
        if self.trusted == "nodes":
            return [(self.kind(pair), int(pair in self.edges)) for pair in self.pairs]
        return [(0, kind) for kind in self.types]

    def score(self):
        score = list(self.prior)
        for context, state in self.items():
            for k in range(len(score)):
                score[k] += int(self.table[context, state, k])
        if self.trusted == "none":
            row = self.by_size[min(len(self.types), len(self.by_size) - 1)]
            score = [a + int(b) for a, b in zip(score, row, strict=True)]
        return score

    def label(self):
        score = self.score()
        return score.index(max(score))


def random_world(rng, trusted, num_nodes=4, num_classes=2, largest=4):
    """A world with small whole numbers, so that ties occur."""
    num_states, num_contexts = {"structure": (3, 2), "nodes": (2, 3)}.get(trusted, (3, 1))
    num_types = 2 if trusted == "nodes" else 3
    types = tuple(rng.integers(num_types, size=rng.integers(1, num_nodes + 1)).tolist())
    edges = frozenset(pair for pair in combinations(range(len(types)), 2) if rng.random() < 0.5)
    table = rng.integers(-largest, largest + 1, (num_contexts, num_states, num_classes))
    if trusted == "nodes":
        table[:, 0] = 0
    by_size = np.zeros((0, num_classes), dtype=np.int64)
    prior = tuple(rng.integers(-2 * largest, 2 * largest + 1, num_classes).tolist())
    if trusted == "none":
        by_size = rng.integers(-largest, largest + 1, (int(rng.integers(1, 7)), num_classes))
        prior = (0,) * num_classes
    return World(trusted, types, edges, prior, table.astype(np.int64), by_size.astype(np.int64))


def evidence_of(worlds, kind=GraphEvidence):
    """The evidence about several worlds with the same tables."""
    first = worlds[0]
    num_states = first.table.shape[1]
    indptr, context, state, number = [0], [], [], []
    for world in worlds:
        codes, counted = np.unique([c * num_states + s for c, s in world.items()], return_counts=True)
        context += (codes // num_states).astype(int).tolist()
        state += (codes % num_states).astype(int).tolist()
        number += counted.tolist()
        indptr.append(len(context))
    sizes = [len(world.types) for world in worlds] if first.trusted == "none" else []
    arrays = {
        "prior": np.array([world.prior for world in worlds], dtype=np.int64),
        "indptr": np.array(indptr, dtype=np.int64),
        "context": np.array(context, dtype=np.int64),
        "state": np.array(state, dtype=np.int64),
        "number": np.array(number, dtype=np.int64),
        "table": first.table,
        "size": np.array(sizes, dtype=np.int64),
        "by_size": first.by_size,
    }
    return kind(**arrays, trusted=first.trusted, made_for=1)


def attacked(world, budget):
    """Every graph that fits into a budget; edges in any number where they are not read."""
    if world.trusted == "nodes":
        yield from _rewired(world, budget)
        return
    num_types = world.table.shape[1]
    nodes = range(len(world.types))
    for deleted in _subsets(nodes, budget.delete_nodes):
        left = [node for node in nodes if node not in deleted]
        for altered in _subsets(left, budget.change_features):
            for kinds in product(range(num_types), repeat=len(altered)):
                types = dict(zip(altered, kinds, strict=True))
                kept = tuple(types.get(node, world.types[node]) for node in left)
                for number in range(int(min(budget.inject_nodes, 3)) + 1):
                    for injected in product(range(num_types), repeat=number):
                        edges = world.edges if world.trusted == "structure" else frozenset()
                        yield replace(world, types=kept + injected, edges=edges)


def attacked_by(world, changes):
    """Every graph that so many changes of the unit of the radius give."""
    from agnncert.certificates.budget import Budget

    if world.trusted == "nodes":
        mixes = [{"add_edges": k, "delete_edges": changes - k} for k in range(changes + 1)]
    elif world.trusted == "none":
        mixes = [
            {"inject_nodes": a, "delete_nodes": d, "change_features": changes - a - d}
            for a in range(changes + 1)
            for d in range(changes + 1 - a)
        ]
    else:
        mixes = [{"change_features": changes}]
    for mix in mixes:
        yield from attacked(world, Budget(**mix))


def _rewired(world, budget):
    apart = [pair for pair in world.pairs if pair not in world.edges]
    for deleted in _subsets(sorted(world.edges), budget.delete_edges):
        for added in _subsets(apart, budget.add_edges):
            yield replace(world, edges=world.edges - set(deleted) | set(added))


def _subsets(things, most):
    things = list(things)
    for number in range(int(min(most, len(things))) + 1):
        yield from combinations(things, number)
