"""What a page hands to ``vendor/checker.js``, which is extracted from the Coq proofs: settings, as numbers."""

from typing import Any

from agnncert.certificates.budget import COUNTS
from agnncert.certificates.votes import VoteRecord
from agnncert.pairs.record import PairRecord
from agnncert.stacked.record import StackedRecord

# Divisions and rules that the checker knows, in the order of formal/browser/page.ml. A theorem that is not in Coq
# must not be counted as another one: pages count with its ``page_rule``.
DIVISIONS = (
    "edge-centric",
    "node-centric",
    "gated",
    "gnncert-e",
    "gnncert-n",
    "gnncert-en",
    "per-neighbour",
    "per-pair",
    "custom",
)
RULES = ("common", "both", "trusted")
UNLIMITED = -1


def votes_for_checker(record: VoteRecord) -> dict[str, Any] | None:
    """Returns the settings of votes of subgraphs; None if the checker does not know the theorem."""
    division, _, task = record.theorem.partition("/")
    if division not in DIVISIONS:
        return None
    rule, parameters = record.voting_rule, record.parameters
    constant = -1 if rule.constant is None else rule.constant
    numbers = [record.votes.num_groups, record.votes.num_classes, rule.no_edge_prior, constant]
    numbers += [parameters.get(name, 0) for name in ("edge_groups", "feature_groups")]
    return {
        "kind": "votes",
        "division": DIVISIONS.index(division),
        "flags": [int(task == "graph"), int(record.ids == "node_id")],
        "numbers": numbers,
        "prior": list(rule.class_prior),
        "price": [parameters.get(name, UNLIMITED) for name in (*COUNTS, "target_features")],
    }


def stacked_for_checker(record: StackedRecord) -> dict[str, Any]:
    """Returns the settings of stacked votes, or of votes about pairs of nodes."""
    flags = [record.gated, record.by_edge, record.ids == "node_id", bool(record.gate.any())]
    settings: dict[str, Any] = {
        "kind": "stacked",
        "flags": [int(each) for each in flags],
        "numbers": [record.num_classes, record.pseudo, record.slack, record.second],
        "pseudo_votes": list(record.pseudo_votes),
    }
    if isinstance(record, PairRecord):
        settings |= {"kind": "pairs", "rule": RULES.index(record.rule), "blind": int(record.blind)}
    return settings
