"""Facts about the division in which every neighbour, or every node of a graph, has its own group."""

from agnncert.certificates.theorem_facts import WHATEVER_DEGREE, DivisionFacts, TheoremFacts

_NODE = TheoremFacts(
    "per-neighbour/node",
    unit=WHATEVER_DEGREE,
    whole_graph=True,
    by_neighbours=True,
    most_unreached=0,
    no_edge_prior=True,
    per_neighbour=True,
)
_GRAPH = TheoremFacts(
    "per-neighbour/graph",
    unit=("one node injected, deleted or given other features, whatever its degree; edges do not count"),
    whole_graph=True,
    most_unreached=0,
    per_neighbour=True,
)

PER_NEIGHBOUR = DivisionFacts(theorems=(_NODE, _GRAPH))  # it prints as a node-centric division
