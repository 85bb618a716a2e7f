"""GNNCert's theorems, stated a second time. This module imports nothing that proves."""

import numpy as np

from agnncert.certificates.votes import BoolArray
from agnncert.verifier.effects import Attack, Limits
from agnncert.verifier.piles import Piles
from agnncert.verifier.theorems.theorem import Recount, of_any_tier


class _Edges(Recount):
    def effect(self, piles: Piles, attack: Attack) -> Limits:
        """Each edge moves one vote, and nothing else may change."""
        return of_any_tier(attack.edges, _no_node_comes_or_goes(attack) & (attack.change_features == 0))


class _FeaturesGraph(Recount):
    def effect(self, piles: Piles, attack: Attack) -> Limits:
        """The features of each node move one vote, and nothing else may change."""
        return of_any_tier(attack.changed_nodes, _no_node_comes_or_goes(attack) & (attack.edges == 0))


class _FeaturesNode(_FeaturesGraph):
    covers_target = True


class _BothGraph(Recount):
    def effect(self, piles: Piles, attack: Attack) -> Limits:
        """Votes form a grid. Each edge moves one row of it, the features of each node one column."""
        num_rows = piles.record.parameters["edge_groups"]
        num_columns = piles.record.parameters["feature_groups"]
        untouched_rows = np.maximum(num_rows - attack.edges, 0)
        untouched_columns = np.maximum(num_columns - attack.changed_nodes, 0)
        moved = num_rows * num_columns - untouched_rows * untouched_columns
        return of_any_tier(moved, _no_node_comes_or_goes(attack))


class _BothNode(_BothGraph):
    covers_target = True


GNNCERT_E = {"node": _Edges(), "graph": _Edges()}
GNNCERT_N = {"node": _FeaturesNode(), "graph": _FeaturesGraph()}
GNNCERT_EN = {"node": _BothNode(), "graph": _BothGraph()}


def _no_node_comes_or_goes(attack: Attack) -> BoolArray:
    return np.asarray(attack.inject_nodes + attack.delete_nodes == 0)
