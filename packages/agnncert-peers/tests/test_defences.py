"""Defences by name, with settings that are checked."""

import pytest

from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric
from agnncert.errors import SettingsError
from agnncert_peers.defences import defence_named
from agnncert_peers.deletions import BiRS
from agnncert_peers.flips import RS, SparseRS
from agnncert_peers.gnncert import GNNCertEN


def test_defences_go_by_name_with_settings_and_what_is_usual():
    assert defence_named("edge", "graph", {}) == EdgeCentric(30)
    assert defence_named("gated", "node", {"hash": "sha1"}) == GatedNodeCentric(300, "sha1")
    assert defence_named("gnncert-en", "node", {"edge_groups": 4}) == GNNCertEN(4, 30)
    assert defence_named("rs", "node", {"beta": 0.9}) == RS(beta=0.9)
    assert defence_named("sparse-rs", "graph", {}) == SparseRS()
    assert defence_named("bi-rs", "node", {"test": "B1"}) == BiRS(test="B1")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("birs", {}, 'no defence is called "birs": did you mean "bi-rs"'),
        ("gated", {"edges_only": False}, 'gated has no setting "edges_only"'),
        ("node", {"groups": 3}, 'node has no setting "groups": did you mean "num_groups"'),
        ("bi-rs", {"task": "graph"}, 'bi-rs has no setting "task"'),
    ],
)
def test_unknown_names_and_settings_are_met_with_the_nearest(name, settings, message):
    with pytest.raises(SettingsError, match=message):
        defence_named(name, "node", settings)
