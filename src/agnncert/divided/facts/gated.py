"""Facts about node-centric divisions that show the features of a group's own nodes only."""

from agnncert.certificates.theorem_facts import WHATEVER_DEGREE, DivisionFacts, TheoremFacts

_NODE = TheoremFacts(
    "gated/node",
    unit=f"{WHATEVER_DEGREE}; the target's own features count like those of any other node",
    whole_graph=True,
    by_neighbours=True,
    target_features=True,
    most_unreached=1,
)

GATED = DivisionFacts(theorems=(_NODE,))  # it prints as a node-centric division
