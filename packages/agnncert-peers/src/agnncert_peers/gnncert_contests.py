"""GNNCert's theorems as contests: every subgraph has all nodes, so that a change may alter any vote."""

from collections.abc import Mapping
from typing import ClassVar

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import VoteRecord
from agnncert.contest.kinds.tiers import ANY, EDGES, Amounts, VotesInTiers


class _Edges(VotesInTiers):
    covers = EDGES

    def amounts(self, record: VoteRecord) -> Amounts:
        """Each edge alters one vote."""
        return {ANY: EDGES}


class _FeaturesGraph(VotesInTiers):
    covers: ClassVar[tuple[str, ...]] = ("change_features",)

    def amounts(self, record: VoteRecord) -> Amounts:
        """The features of each node alter one vote."""
        return {ANY: self.covers}


class _FeaturesNode(_FeaturesGraph):
    covers = ("change_features", "target_features")


class _BothGraph(VotesInTiers):
    covers: ClassVar[tuple[str, ...]] = (*EDGES, "change_features")
    further_counts: ClassVar[Mapping[str, str]] = {
        "cells": "groups of GNNCert-EN that the changed edges and features lie in"
    }

    def amounts(self, record: VoteRecord) -> Amounts:
        """Each group in which a change lies may vote otherwise."""
        return {ANY: ("cells",)}

    def counts(self, record: VoteRecord, budget: Budget) -> Mapping[str, float]:
        """Returns in how many groups the changes lie: edges in rows of the grid, features in columns."""
        rows, columns = record.parameters["edge_groups"], record.parameters["feature_groups"]
        changed = budget.add_edges + budget.delete_edges + budget.change_edges
        features = budget.change_features + budget.target_features
        return {"cells": rows * columns - max(rows - changed, 0) * max(columns - features, 0)}


class _BothNode(_BothGraph):
    covers = (*_BothGraph.covers, "target_features")


GNNCERT_E = {"node": _Edges(), "graph": _Edges()}
GNNCERT_N = {"node": _FeaturesNode(), "graph": _FeaturesGraph()}
GNNCERT_EN = {"node": _BothNode(), "graph": _BothGraph()}
