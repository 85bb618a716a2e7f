"""What files and claims say about it."""

from agnncert.certificates.theorem_facts import NOTHING, DivisionFacts, PrintedForm, TheoremFacts, numbered

_NODE = TheoremFacts(
    "lesser-end/node",
    unit="one edge between existing nodes added, deleted or changed",
    method="lesser end",
    covers="Edges between existing nodes added, deleted or changed.",
    empty=NOTHING,
)

LESSER_END = DivisionFacts((_NODE,), (PrintedForm(numbered("lesser-end"), {"node": "lesser-end/node"}),))
