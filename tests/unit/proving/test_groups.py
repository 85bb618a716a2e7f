"""Recall and false positives by group: counted by hand, bounds that every attack keeps to, and gaps."""

import numpy as np
import pytest

import agnncert as ac
from agnncert.errors import SettingsError
from agnncert.proving import groups as module
from agnncert.proving.groups import Range, degree_groups
from tests.support.mutations import text_turns_red
from tests.support.synthetic import made_up_certificate


def a_certificate(n=60, seed=0):
    certificate, _ = made_up_certificate(np.random.default_rng(seed), "node-centric/node", n, 9, 2)
    return certificate


def counted_by_hand() -> None:
    certificate = a_certificate()
    truth = np.random.default_rng(1).integers(-1, 2, 60)
    names = np.array(["a", "b", "c"])[np.arange(60) % 3]
    for at in (0, 1, 2):
        found = certificate.by_group(names.tolist(), at, positive=1, truth=truth)
        possible = certificate.possible(at)
        for group in found.groups:
            mine = names == group.name
            for rate, whom in ((group.recall, mine & (truth == 1)), (group.false_positives, mine & (truth == 0))):
                assert rate.targets == whom.sum()
                assert rate.now == (certificate.label == 1)[whom].mean()
                must = (possible[:, 1] & (possible.sum(axis=1) == 1))[whom]
                assert rate.least == pytest.approx(must.mean())
                assert rate.most == pytest.approx((possible[:, 1] | (certificate.label == 1))[whom].mean())


def test_shares_are_those_counted_by_hand_and_a_wrong_bound_is_noticed(monkeypatch):
    counted_by_hand()
    text_turns_red(monkeypatch, module, "(now + won) / number", "now / number", counted_by_hand)


def test_a_budget_is_spent_once_on_a_group():
    certificate = a_certificate()
    truth = np.ones(60, dtype=int)
    budget = ac.Budget(add_edges=1)
    (group,) = certificate.by_group(["all"] * 60, budget, positive=1, truth=truth).groups
    is_flagged = certificate.label == 1
    broken = certificate.broken_at_most(budget, is_flagged)
    assert group.recall.least == (is_flagged.sum() - broken) / 60
    each = certificate.by_group(["all"] * 60, 1, positive=1, truth=truth).groups[0]
    assert each.recall.least <= group.recall.least


def test_the_gap_is_what_an_attack_can_open_at_most():
    certificate = a_certificate()
    truth = np.arange(60) % 2
    found = certificate.by_group((np.arange(60) // 20).tolist(), 2, positive=1, truth=truth)
    rates = [group.recall for group in found.groups]
    now, most = found.gap("recall")
    assert now == max(r.now for r in rates) - min(r.now for r in rates)
    assert most == max(a.most - b.least for a in rates for b in rates if a is not b)
    assert most >= now
    with pytest.raises(SettingsError, match="expected"):
        found.gap("precision")
    assert found.to_json()["gaps"]["recall"] == {"now": now, "at_most": most}
    assert "gap of recall" in str(found)
    assert certificate.by_group(["one"] * 60, 0, 1, truth).gap() == (0, 0)


def test_groups_without_targets_of_the_class_are_dashes_and_numbers_are_ordered():
    certificate = a_certificate(6)
    truth = np.array([1, 1, 0, 0, 0, -1])
    sizes = degree_groups(np.array([300, 1, 0, 7, 7, 2]))
    found = certificate.by_group(sizes, 0, 1, truth)
    assert [group.name for group in found.groups] == ["none", "1 to 5", "6 to 20", "more than 200"]
    assert "–" in str(found)
    assert ac.ranges([np.nan, np.nan]) == [None, None]
    assert all(isinstance(each, Range) for each in ac.ranges([1, 2, 3]))
    of_others = ac.ranges([0.5, 2.5, 99, np.nan], number=2, of=[1, 2, 3, np.nan])
    assert [None if each is None else str(each) for each in of_others] == ["up to 2", "above 2", "above 2", None]
    assert ac.ranges([1.0], of=[np.nan]) == [None]


def test_amounts_are_sums_over_what_is_found_and_stays_found():
    certificate = a_certificate()
    truth = np.arange(60) % 2
    values = np.arange(60) * 1.5
    values[1] = np.nan
    for at in (0, ac.Budget(add_edges=1), 4):
        money = certificate.amounts(values.tolist(), at, positive=1, truth=truth)
        found = (truth == 1) & (certificate.label == 1)
        stays = certificate.holds_against(at) if isinstance(at, ac.Budget) else certificate.radius >= at
        assert money.total == np.nansum(values[truth == 1])
        assert money.found == np.nansum(values[found])
        assert money.certified == np.nansum(values[found & stays])
        assert money.unknown == 1
    assert money.certified < money.found < money.total
    assert "certified to stay found" in str(money)
    for wrong in ([1.0], [-1.0] * 60, [np.inf] * 60):
        with pytest.raises(SettingsError, match="expected 60 numbers"):
            certificate.amounts(wrong, positive=1, truth=truth)


@pytest.mark.parametrize(
    ("groups", "said"),
    [(["a"], "1 groups for 60"), ("age", "expected a list"), (list(range(60)), "ac.ranges")],
)
def test_senseless_groups_are_refused(groups, said):
    with pytest.raises(SettingsError, match=said):
        a_certificate().by_group(groups, 0, 1, np.ones(60, dtype=int))
