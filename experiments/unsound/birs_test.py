"""Bi-RS multiplies two probabilities that are not independent.

Published rule: nodes are deleted with probability p_n and edges with p_e. If injected nodes are isolated with
probability at least p̃, the label withstands them if p̃ (1 + p_A - p_B) > 1. That takes "injected nodes are isolated" to be
independent of what happens in the clean graph. Both depend on whether the neighbours are deleted.

The example is computed exactly: p_e = 0, p_n = 1/2, so that all 2^9 deletions are equally likely.
"""

import itertools

from experiments.unsound.common import Broken

TARGET, NEIGHBOURS, PATH, INJECTED = 0, (1, 2, 3), (4, 5, 6, 7), 8
P_NODE = 0.5


def label(alive: tuple[bool, ...], is_attacked: bool) -> int:
    """Returns 1 if the target is isolated and an edge of the path is there, or if the injected node is attached."""
    target_is_isolated = not (alive[TARGET] and any(alive[node] for node in NEIGHBOURS))
    path_edge = any(alive[first] and alive[second] for first, second in itertools.pairwise(PATH))
    is_attached = is_attacked and alive[INJECTED] and alive[TARGET]
    return int((target_is_isolated and path_edge) or is_attached)


def probability_of_0(is_attacked: bool) -> float:
    """Returns the exact probability of class 0 under the noise."""
    outcomes = [label(alive, is_attacked) for alive in itertools.product((False, True), repeat=9)]
    return outcomes.count(0) / len(outcomes)


def demonstrate() -> Broken:
    """Injects one node with one edge, to the target."""
    clean = probability_of_0(False)
    isolated = P_NODE + (1 - P_NODE) * P_NODE  # the node, or its one neighbour, is deleted
    test = isolated * (1 + clean - (1 - clean))
    assert test > 1
    attacked = probability_of_0(True)
    return Broken(
        method="Bi-RS, its test",
        rule="a label withstands injected nodes if p̃ (1 + p_A - p_B) > 1",
        certified=f"1 injected node with 1 edge ({test:.3f} > 1, p_A = {clean:.3f})",
        attack="one node is injected, with an edge to the target",
        before=int(clean < 0.5),
        after=int(attacked < 0.5),
        why="the injected node and the clean graph depend on the same deletions",
    )
