"""GNNCert can use degrees as features, which it computes on the whole graph before it divides it.

Published rule: an edge is in one of T subgraphs, so that s changed edges alter at most s votes. With ``degree_as_tag``
the features of a node are its degree in the whole graph, which every subgraph sees.
"""

from experiments.unsound.common import Broken, amount, winner

GROUPS = 7


def votes(edges: list[tuple[int, int]]) -> list[int]:
    """Returns the vote of every subgraph: whether some node has degree 3, which is a feature of all subgraphs."""
    ends = [end for edge in edges for end in edge]
    degrees = [ends.count(node) for node in set(ends)]
    return [int(3 in degrees)] * GROUPS


def demonstrate() -> Broken:
    """Deletes one edge of a star with three."""
    star = [(0, 1), (0, 2), (0, 3)]
    before = votes(star)
    after = votes(star[1:])
    return Broken(
        method="GNNCert-E, degree_as_tag",
        rule="s changed edges alter at most s votes",
        certified=amount(before, "edge"),
        attack="one edge is deleted",
        before=winner(before, 2),
        after=winner(after, 2),
        why="degrees are computed before the graph is divided, so that one edge changes features in all subgraphs",
    )
