"""Facts about GNNCert's theorems, which files, claims and reports read."""

from agnncert.certificates.theorem_facts import (
    NOTHING,
    DivisionFacts,
    PrintedForm,
    TheoremFacts,
    numbered,
)

_EDGES = "Edges between existing nodes added, deleted or changed."
_FEATURES = "Features of existing nodes changed to anything."
_BOTH = "Edges between existing nodes, and features of existing nodes, changed in one attack."
_EACH_EDGE = "one edge between existing nodes added, deleted or changed"
_EACH_NODE = "one existing node given other features"
_EACH_VOTE = (
    "one vote; an edge moves as many as there are feature groups, the features of a node as many "
    "as there are edge groups"
)
GRID = ("edge_groups", "feature_groups")


def _facts(
    name: str,
    unit: str,
    covers: str,
    *,
    target_features: bool = False,
    parameters: tuple[str, ...] = (),
) -> TheoremFacts:
    return TheoremFacts(
        name,
        unit=unit,
        method="gnncert",
        covers=covers,
        target_features=target_features,
        parameters=parameters,
        empty=NOTHING,
    )


GNNCERT_E = DivisionFacts(
    theorems=(
        _facts("gnncert-e/node", _EACH_EDGE, _EDGES),
        _facts("gnncert-e/graph", _EACH_EDGE, _EDGES),
    ),
    forms=(PrintedForm(numbered("gnncert-e"), {"node": "gnncert-e/node", "graph": "gnncert-e/graph"}),),
)
GNNCERT_N = DivisionFacts(
    theorems=(
        _facts("gnncert-n/node", _EACH_NODE, _FEATURES, target_features=True),
        _facts("gnncert-n/graph", _EACH_NODE, _FEATURES),
    ),
    forms=(PrintedForm(numbered("gnncert-n"), {"node": "gnncert-n/node", "graph": "gnncert-n/graph"}),),
)
GNNCERT_EN = DivisionFacts(
    theorems=(
        _facts("gnncert-en/node", _EACH_VOTE, _BOTH, target_features=True, parameters=GRID),
        _facts("gnncert-en/graph", _EACH_VOTE, _BOTH, parameters=GRID),
    ),
    forms=(
        PrintedForm(
            numbered("gnncert-en", sides=2),
            {"node": "gnncert-en/node", "graph": "gnncert-en/graph"},
            sides=GRID,
        ),
    ),
)
