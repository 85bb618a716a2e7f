"""AuditVotes' GNNCert for nodes hashes the two directions of an edge apart, and counts the edge once.

Published rule: an edge is in one of T subgraphs, so that s changed edges alter at most s votes. The released program
hashes u;v and v;u, so that the two halves of an undirected edge are in two subgraphs.
"""

import hashlib
import itertools

from experiments.unsound.common import Broken, amount, radius, winner

GROUPS = 5


def group(source: int, head: int) -> int:
    """Returns the subgraph of an arc."""
    return int(hashlib.md5(f"{source};{head}".encode()).hexdigest(), 16) % GROUPS


def votes(edges: list[tuple[int, int]]) -> list[int]:
    """Returns the votes of node 0: whether it has an arc in a subgraph, whichever way it points."""
    arcs = [*edges, *((head, source) for source, head in edges)]
    touched = {group(source, head) for source, head in arcs if 0 in (source, head)}
    return [int(index in touched) for index in range(GROUPS)]


def demonstrate() -> Broken:
    """Finds a node whose certified label one added edge changes."""
    for old, new in itertools.permutations(range(1, 40), 2):
        before = votes([(0, old)])
        after = votes([(0, old), (0, new)])
        if radius(before, 2) >= 1 and winner(before, 2) != winner(after, 2):
            return Broken(
                method="AuditVotes (GNNCert for nodes)",
                rule="s changed edges alter at most s votes",
                certified=amount(before, "edge"),
                attack="one edge is added",
                before=winner(before, 2),
                after=winner(after, 2),
                why="the two directions of an edge are hashed into two subgraphs, and counted as one",
            )
    raise AssertionError("no such graph")
