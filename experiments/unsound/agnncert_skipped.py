"""AGNNCert-N leaves out subgraphs without edges, so that one injected node wakes many of them up.

Published rule: all edges that leave a node are in one subgraph, so that one injected node alters at most one vote. The
released program counts only the votes of subgraphs that have an edge.
"""

from experiments.unsound.common import Broken, amount, winner

NUM_NODES = 20  # each in a group of its own
Arc = tuple[int, int]


def both_ways(pairs: list[tuple[int, int]]) -> list[Arc]:
    """Returns undirected edges as arcs."""
    return [*pairs, *((head, source) for source, head in pairs)]


def votes(arcs: list[Arc]) -> list[int]:
    """Returns the votes of node 0, whether it hears a message, in the subgraphs that have an edge."""
    by_source: dict[int, list[Arc]] = {}
    for source, head in arcs:
        by_source.setdefault(source, []).append((source, head))
    return [int(any(head == 0 for _, head in part)) for part in by_source.values()]


def demonstrate() -> Broken:
    """Joins one injected node to thirteen lone nodes far from the target."""
    graph = both_ways([(0, other) for other in range(1, 7)])
    injected = NUM_NODES
    attacked = graph + both_ways([(injected, other) for other in range(7, NUM_NODES)])
    before = votes(graph)
    after = votes(attacked)
    return Broken(
        method="AGNNCert-N",
        rule="an injected node alters at most one vote",
        certified=amount(before, "node"),
        attack="one node is injected and joined to 13 nodes far from the target",
        before=winner(before, 2),
        after=winner(after, 2),
        why="subgraphs without edges are left out of the vote: each new edge lets another subgraph vote",
    )
