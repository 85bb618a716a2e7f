"""Facts about edge-centric divisions, where an edge belongs to the group of its pair of ids."""

from agnncert.certificates.theorem_facts import (
    ANYTHING,
    EACH_EDGE,
    EDGES_ONLY,
    DivisionFacts,
    PrintedForm,
    TheoremFacts,
    numbered,
)

_NODE = TheoremFacts(
    "edge-centric/node",
    unit=EACH_EDGE,
    whole_graph=True,
    by_neighbours=True,
    uses_reach=True,
    most_unreached=0,
    empty=ANYTHING,
    no_edge_prior=True,
)
_GRAPH = TheoremFacts(
    "edge-centric/graph",
    unit=EACH_EDGE,
    whole_graph=True,
    uses_reach=True,
    most_unreached=0,
    views=True,
)

EDGE_CENTRIC = DivisionFacts(
    theorems=(_NODE, _GRAPH),
    forms=(
        PrintedForm(
            numbered("edge-centric", "", ", self-loops kept"),
            {"node": "edge-centric/node", "graph": "edge-centric/graph"},
        ),
        PrintedForm(
            numbered("edge-centric", ", edges only", ", self-loops kept, edges only"),
            {"node": "custom/node", "graph": "custom/graph"},
            parameters=EDGES_ONLY,
        ),
        PrintedForm(
            r"edge-centric\(T=inf(?:, self-loops kept)?\)",
            {"node": "per-pair/node", "graph": "per-pair/graph"},
        ),
    ),
)
