"""Bi-RS' released sampler deletes the edges of an injected node less often than its formula says.

Published rule: an edge is gone if it, or either end, is deleted, so that ρ injected nodes with τ edges each are isolated
with probability [p_n + (1 - p_n) q^τ]^ρ, q = p_e + p_n - p_e p_n. The released program masks the upper triangle by column
only: of an edge between a node and one of a larger number, only the latter's deletion counts, and injected nodes have the
largest numbers.
"""

from experiments.unsound.common import Broken

P_EDGE, P_NODE, EDGES_EACH = 0.8, 0.9, 5


def isolated(injected: int, is_released: bool) -> float:
    """Returns how often all injected nodes are isolated: by the formula, or under the released sampler."""
    edge_is_gone = P_EDGE if is_released else P_EDGE + P_NODE - P_EDGE * P_NODE
    one = P_NODE + (1 - P_NODE) * edge_is_gone**EDGES_EACH
    return float(one**injected)


def demonstrate() -> Broken:
    """Takes a classifier that is never wrong without injected nodes, and always wrong when one is attached."""
    injected = 20
    by_formula = isolated(injected, is_released=False)
    test = by_formula * (1 + 1 - 0)
    assert test > 1
    really = isolated(injected, is_released=True)
    return Broken(
        method="Bi-RS, its sampler",
        rule="a label withstands injected nodes if p̃ (1 + p_A - p_B) > 1",
        certified=f"{injected} injected nodes with {EDGES_EACH} edges each ({test:.3f} > 1)",
        attack=f"{injected} nodes are injected, one of which is attached in {1 - really:.0%} of the samples",
        before=0,
        after=int(really < 0.5),
        why="the sampler deletes an edge for one of its ends only, and the formula counts both",
    )
