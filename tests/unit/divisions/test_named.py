"""The table of names: every name builds its division, and every printed division is read back."""

import subprocess
import sys

import pytest

from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.named import division_named, named_divisions, parse_division, title_of
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.errors import DivisionError, SettingsError
from agnncert_peers.gnncert import GNNCertEN
from tests.support.labelled import ThreeMethods


def test_a_name_stands_for_a_class_and_its_fixed_settings():
    assert division_named("edge", 7, "sha1") == EdgeCentric(7, "sha1")
    assert division_named("node", 7) == NodeCentric(7)
    assert division_named("gated", 7) == GatedNodeCentric(7)
    assert division_named("gnncert-en", 7) == GNNCertEN(7, 7)


def test_the_usual_number_of_groups_depends_on_the_task():
    assert division_named("node").num_groups == 300
    assert division_named("node", task="graph").num_groups == 30
    assert division_named("gnncert-en").num_groups == 900


def test_unknown_names_and_wrong_tasks_are_refused():
    with pytest.raises(SettingsError, match='no division is called "edges": did you mean "edge"'):
        division_named("edges")
    with pytest.raises(SettingsError, match="gated division is for node classification"):
        division_named("gated", task="graph")
    with pytest.raises(SettingsError, match="per-neighbour division takes no number of groups"):
        division_named("per-neighbour", 5)


@pytest.mark.parametrize("name", named_divisions())
def test_every_division_knows_its_title_and_is_read_back_as_printed(name):
    division = division_named(name, 5 if named_divisions()[name].counts else None, "sha256")
    assert title_of(division) == named_divisions()[name].title
    assert parse_division(str(division)) == division


@pytest.mark.parametrize(
    "division",
    [
        EdgeCentric(3, self_loops=True),
        EdgeCentric(3, self_loops=True, edges_only=True),
        GatedNodeCentric(3, self_loops=True),
    ],
    ids=str,
)
def test_divisions_that_keep_self_loops_are_read_back_too(division):
    assert parse_division(str(division)) == division


@pytest.mark.parametrize(
    "text",
    [
        "my division",
        "edge-centric(T=3, hash=md5, key=u64le, gated features)",
        "edge-centric(T=3, hash=md5, key=u32le)",
        "gnncert-e(T=3, hash=md5, key=u64le, self-loops kept)",
        "node-centric(T=3x3, hash=md5, key=u64le)",
    ],
)
def test_what_no_division_prints_is_refused(text):
    with pytest.raises(DivisionError, match="cannot rebuild"):
        parse_division(text)


def test_a_division_of_the_users_own_goes_by_its_class():
    assert title_of(ThreeMethods(EdgeCentric(3))) == "ThreeMethods"


def test_the_table_is_read_without_torch():
    code = (
        "import sys, agnncert.divisions.named as named; sys.exit('torch' in sys.modules or not named.named_divisions())"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
