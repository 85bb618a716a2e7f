"""The rules by which ballots are counted: one name per division and task, with the facts that everyone may use.

A rule says what a division's theorem speaks about, not what the theorem is: ``theorems`` proves with it, ``recount``
counts again in code of its own, and files, claims and reports read the facts from here.
"""

from dataclasses import dataclass

from agnncert.proof.budget import COUNTS


@dataclass(frozen=True)
class Rule:
    """What is known about a rule besides its theorem.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        by_neighbours: Whether every ballot beyond the reached ones costs a new neighbour of the target.
        own_features: Whether changes of the target's own features are covered.
        uses_cover: Whether ballots come with a cover table: how many of them the worst k nodes reach.
        all_reached: Whether every listed ballot is a reached one.
        parameters: Names of the whole numbers that the theorem needs.
        optional: Names of those it accepts.
    """

    task: str
    by_neighbours: bool = False
    own_features: bool = False
    uses_cover: bool = False
    all_reached: bool = False
    parameters: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_GRID = ("edge_groups", "feature_groups")
_PRICES = (*COUNTS, "target_features")

RULES = {
    "edge-centric/node": Rule("node", by_neighbours=True, uses_cover=True, all_reached=True),
    "node-centric/node": Rule("node", by_neighbours=True, all_reached=True),
    "gated/node": Rule("node", by_neighbours=True, own_features=True),
    "edge-centric/graph": Rule("graph", uses_cover=True, all_reached=True),
    "node-centric/graph": Rule("graph"),
    "gnncert-e/node": Rule("node"),
    "gnncert-n/node": Rule("node", own_features=True),
    "gnncert-en/node": Rule("node", own_features=True, parameters=_GRID),
    "gnncert-e/graph": Rule("graph"),
    "gnncert-n/graph": Rule("graph"),
    "gnncert-en/graph": Rule("graph", parameters=_GRID),
    "custom/node": Rule("node", own_features=True, optional=_PRICES),
    "custom/graph": Rule("graph", optional=_PRICES[:-1]),
}
