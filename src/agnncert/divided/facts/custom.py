"""Facts about divisions of a user's own, which state how many votes each change moves."""

from agnncert.certificates.budget import COUNTS
from agnncert.certificates.theorem_facts import NOTHING, DivisionFacts, TheoremFacts

_UNIT = "one vote; the division states how many each change moves"

_NODE = TheoremFacts(
    "custom/node",
    unit=_UNIT,
    method="custom",
    target_features=True,
    prices=(*COUNTS, "target_features"),
    empty=NOTHING,
)
_GRAPH = TheoremFacts("custom/graph", unit=_UNIT, method="custom", prices=COUNTS, empty=NOTHING)

CUSTOM = DivisionFacts(theorems=(_NODE, _GRAPH))
