"""Small forests, for tests that do not ask how good a forest is."""

from functools import partial

import pytest
from sklearn.ensemble import GradientBoostingClassifier


def plant_small(patch: pytest.MonkeyPatch) -> None:
    """Controls of a comparison of graphs choose among forests of five trees."""
    few = partial(GradientBoostingClassifier, n_estimators=5)
    patch.setattr("agnncert_peers.control_rows.TREES", 5)
    patch.setattr("agnncert_peers.control_rows.GradientBoostingClassifier", few)
