"""Facts about the division in which every edge has its own group."""

from agnncert.certificates.theorem_facts import (
    EACH_EDGE,
    WHATEVER_DEGREE,
    DivisionFacts,
    TheoremFacts,
)

_NODE = TheoremFacts(
    "per-pair/node",
    unit=WHATEVER_DEGREE,
    whole_graph=True,
    by_pair=True,
    by_neighbours=True,
    most_unreached=0,
    no_edge_prior=True,
    per_neighbour=True,
)
_GRAPH = TheoremFacts(
    "per-pair/graph",
    unit=EACH_EDGE,
    whole_graph=True,
    by_pair=True,
    uses_reach=True,
    most_unreached=0,
    per_neighbour=True,
)

PER_PAIR = DivisionFacts(theorems=(_NODE, _GRAPH))  # it prints as an edge-centric division
