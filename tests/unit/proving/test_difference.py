"""What changed between two certificates, target by target, and what can be the reason."""

import dataclasses

import numpy as np
import pytest

import agnncert as ac
from agnncert.certificates.voting_rule import VotingRule
from agnncert.errors import SettingsError
from agnncert.proving.certificate import Certificate
from agnncert.proving.difference import CHANGES, diff
from agnncert.report.difference import write_difference
from tests.support.certificates import certificate_of, random_evidence
from tests.support.toys import ToyEvidence, toy_certificate

NAMES = ["honest", "fraud", "vip"]


def toy(points, ids, names=NAMES, graph="a", model="m") -> Certificate:
    """A certificate whose radius is half of the lead."""
    digests = {"graph": graph * 64, "model": model * 64}
    claim = dataclasses.replace(toy_certificate().claim, digests=digests, ids="node_id")
    made = Certificate(claim, ToyEvidence(np.asarray(points)), ids, degree=np.arange(len(ids)))
    return made.with_class_names(names)


@pytest.fixture
def old():
    return toy([[9, 1, 0], [9, 1, 0], [1, 9, 0], [5, 4, 0], [7, 0, 0]], ["same", "flips", "falls", "rises", "leaves"])


@pytest.fixture
def new():
    return toy(
        [[9, 1, 0], [1, 9, 0], [5, 6, 0], [9, 0, 0], [0, 0, 9]], ["same", "flips", "falls", "rises", "comes"], graph="b"
    )


def test_every_kind_of_change_is_found_by_id(old, new):
    found = diff(old, new, 2)
    assert {each.target: each.change for each in found.changed} == {
        "flips": "label", "falls": "lost", "rises": "gained", "comes": "new", "leaves": "gone",
    }  # fmt: skip
    assert found.num_same == 1
    assert found.counts == dict.fromkeys(CHANGES, 1)
    (flips,) = found.of("label")
    assert (flips.old_label, flips.new_label, flips.held, flips.holds) == ("honest", "fraud", True, True)
    (falls,) = found.of("lost")
    assert falls.old_radius == old["falls"].radius
    assert falls.new_radius == new["falls"].radius < 2 <= falls.old_radius


def test_rows_that_moved_are_the_same_targets(old):
    order = [3, 0, 4, 2, 1]
    moved = toy(old.counts[order], old.target[order].tolist())
    assert not diff(old, moved, 2)
    assert "Nothing changed at size 2: all 5 targets are as before." in str(diff(old, moved, 2))


def test_classes_are_compared_by_name_and_not_by_number(old):
    swapped = toy(old.counts[:, [1, 0, 2]], old.target.tolist(), names=["fraud", "honest", "vip"])
    assert not diff(old, swapped, 2).of("label")
    assert len(diff(old, swapped.with_class_names(()), 2).of("label")) == 5
    assert "compared by number" in diff(old, swapped.with_class_names(()), 2).notes[0]


def test_numbers_of_each_class_add_up(old, new):
    found = diff(old, new, 2)
    by_name = {each.name: each for each in found.classes}
    assert list(by_name) == NAMES
    assert sum(each.old for each in found.classes) == len(old)
    assert sum(each.new_certified for each in found.classes) == int((new.radius >= 2).sum())
    honest, fraud = by_name["honest"], by_name["fraud"]
    assert (honest.went, honest.came, fraud.came, fraud.went) == (1, 0, 1, 0)
    assert (fraud.lost, honest.gained) == (1, 1)


def test_a_budget_is_asked_instead_of_a_size(old, new):
    budget = ac.Budget(add_edges=2)
    held = dict(zip(old.target.tolist(), old.holds_against(budget).tolist(), strict=True))
    for each in diff(old, new, budget).changed:
        assert each.held == held.get(each.target)


def test_reasons_are_what_is_not_the_same(old, new):
    assert diff(old, new).reasons == ("graph",)
    other = toy(new.counts, new.target.tolist(), model="n")
    assert diff(old, other).reasons == ("model",)
    assert diff(old, other, same_weights=True).reasons == ("threshold",)
    assert diff(old, toy(new.counts, new.target.tolist(), graph="c", model="n")).of("label")[0].reasons == (
        "graph",
        "model",
    )


def test_a_target_with_the_same_votes_changed_because_of_the_threshold_alone():
    rng = np.random.default_rng(3)
    votes = random_evidence(rng, "edge-centric/node", num_targets=60)
    plain = certificate_of(votes)
    pushed = dataclasses.replace(votes, voting_rule=VotingRule(votes.voting_rule.empty, [6, 0, 0]))
    found = diff(plain, certificate_of(pushed))
    assert found.reasons == ("threshold",)
    assert found.of("label")
    digests = {**plain.claim.digests, "graph": "f" * 64}
    elsewhere = certificate_of(pushed)
    elsewhere = dataclasses.replace(elsewhere, claim=dataclasses.replace(elsewhere.claim, digests=digests))
    both = diff(plain, elsewhere)
    assert both.reasons == ("graph", "threshold")
    assert {each.reasons for each in both.changed} == {("threshold",)}


def test_nodes_are_not_compared_with_graphs():
    rng = np.random.default_rng(1)
    nodes, graphs = (certificate_of(random_evidence(rng, f"edge-centric/{task}")) for task in ("node", "graph"))
    with pytest.raises(SettingsError, match="about nodes and graphs"):
        diff(nodes, graphs)
    with pytest.raises(SettingsError, match="takes two certificates, got a str"):
        diff("a.cert", graphs)
    with pytest.raises(SettingsError, match="expected one of label, lost"):
        diff(nodes, nodes).of("other")


def test_tables_and_json_have_every_changed_target(old, new):
    found = diff(old, new, 2)
    assert found.to_pandas().loc["falls", "new_radius"] == new["falls"].radius
    assert [each["target"] for each in found.to_json()["changed"]] == [each.target for each in found.changed]
    assert diff(old, old).to_pandas().empty


def test_a_page_lists_them_and_runs_nothing_of_the_data(tmp_path):
    evil = "</td><script>alert(1)</script>\u202e"
    before, after = toy([[9, 0, 0]], [evil]), toy([[0, 9, 0]], [evil])
    page = write_difference(diff(before, after), tmp_path / "page.html", "<old>", "new").read_text("utf-8")
    assert "1 changed label" in page
    assert "honest → fraud" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "&lt;old&gt;" in page
