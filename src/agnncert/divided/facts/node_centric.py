"""Facts about node-centric divisions, where all edges that leave a node belong to its group."""

from agnncert.certificates.theorem_facts import (
    ANYTHING,
    WHATEVER_DEGREE,
    DivisionFacts,
    PrintedForm,
    TheoremFacts,
    numbered,
)

_NODE = TheoremFacts(
    "node-centric/node",
    unit=WHATEVER_DEGREE,
    whole_graph=True,
    by_neighbours=True,
    most_unreached=0,
    empty=ANYTHING,
    no_edge_prior=True,
)
_GRAPH = TheoremFacts("node-centric/graph", unit=WHATEVER_DEGREE, whole_graph=True, views=True)

NODE_CENTRIC = DivisionFacts(
    theorems=(_NODE, _GRAPH),
    forms=(
        PrintedForm(
            numbered("node-centric", "", ", self-loops kept"),
            {"node": "node-centric/node", "graph": "node-centric/graph"},
        ),
        PrintedForm(
            numbered("node-centric", ", gated features", ", gated features, self-loops kept"),
            {"node": "gated/node", "graph": "node-centric/graph"},
        ),
        PrintedForm(
            r"node-centric\(T=inf\)",
            {"node": "per-neighbour/node", "graph": "per-neighbour/graph"},
        ),
    ),
)
