"""AGNNCert-E hashes an edge together with the number of nodes, so that one injected node moves nearly all edges.

Published rule: an edge (u, v) goes to subgraph MD5(hex(V u + v)) mod T, and a change that touches m edges alters at most
m of the T votes. V is the number of nodes. A node that is injected without any edge touches no edge.
"""

import hashlib
import random

from experiments.unsound.common import Broken, amount, radius, winner

GROUPS = 15
Edge = tuple[int, int]


def group(edge: Edge, num_nodes: int) -> int:
    """Returns the subgraph of an edge, as the released program computes it."""
    source, head = edge
    return int(hashlib.md5(hex(num_nodes * source + head).encode()).hexdigest(), 16) % GROUPS


def votes(edges: list[Edge], num_nodes: int) -> list[int]:
    """Returns the vote of the node that all edges lead to, in every subgraph: whether it has an edge there."""
    own = [group(edge, num_nodes) for edge in edges]
    return [int(index in own) for index in range(GROUPS)]


def demonstrate() -> Broken:
    """Finds a small graph whose certified label changes when a node without edges is injected."""
    random.seed(0)
    while True:
        num_nodes = random.randint(12, 30)
        target = num_nodes - 1
        edges = [(other, target) for other in random.sample(range(target), random.randint(8, 11))]
        before = votes(edges, num_nodes)
        after = votes(edges, num_nodes + 1)
        if radius(before, 2) >= 1 and winner(before, 2) != winner(after, 2):
            return Broken(
                method="AGNNCert-E",
                rule="a change of m edges alters at most m votes",
                certified=amount(before, "edge"),
                attack="one node without edges is injected, which touches no edge",
                before=winner(before, 2),
                after=winner(after, 2),
                why="the hash depends on the number of nodes, so that almost every edge moves to another subgraph",
            )
