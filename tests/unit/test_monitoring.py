"""The monitor: seldom an alarm while a rate holds, whenever one looks, and soon one when it does not."""

import math

import numpy as np
import pytest

import agnncert as ac
from agnncert import monitoring
from agnncert.errors import SettingsError
from tests.support.mutations import text_turns_red


def alarms(true_rate, runs=300, cases=1000, rate=0.1, seed=97):
    """The cases at which alarms were raised, and how many runs had none."""
    random = np.random.default_rng(seed)
    found = [ac.monitor(random.random(cases) < true_rate, rate).alarm_at for _ in range(runs)]
    return [case for case in found if case is not None], found.count(None)


def alarms_are_rare_while_the_rate_holds() -> None:
    for rate in (0.02, 0.1, 0.6):
        raised, _ = alarms(rate, rate=rate)
        assert len(raised) / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


@pytest.mark.slow
def test_alarms_are_rare_while_the_rate_holds_and_a_wrong_bet_raises_more(monkeypatch):
    alarms_are_rare_while_the_rate_holds()
    text_turns_red(
        monkeypatch, monitoring, "(bool(hit) - self.rate))", "(bool(hit) - 0.8 * self.rate))",
        alarms_are_rare_while_the_rate_holds,
    )  # fmt: skip


@pytest.mark.slow
def test_a_rate_that_is_exceeded_is_seen_sooner_the_more_it_is():
    delays = []
    for true_rate in (0.2, 0.3, 0.6):
        raised, none = alarms(true_rate, runs=60)
        assert none == 0
        delays.append(float(np.median(raised)))
    assert delays == sorted(delays, reverse=True)
    assert delays[0] < 150
    assert delays[2] < 15


def test_the_wealth_is_fair_over_all_sequences():
    rate = 0.3
    expected = 0.0
    for number in range(2**8):
        hits = [bool(number >> k & 1) for k in range(8)]
        chance = math.prod(rate if hit else 1 - rate for hit in hits)
        expected += chance * ac.monitor(hits, rate).wealth
    assert expected == pytest.approx(1)


def test_an_alarm_stays_and_says_where_it_was_raised():
    watched = ac.monitor([True] * 20, rate=0.1)
    first = watched.alarm_at
    assert watched.note(False)
    for _ in range(500):
        watched.note(False)
    assert watched.alarm_at == first
    assert "ALARM at case" in str(watched)
    assert watched.wealth < 20  # the bets were lost again, the alarm stands
    assert "no confirmed case yet" in str(ac.Monitor(0.1))
    assert watched.to_json()["alarm_at"] == first


def test_it_does_not_overflow():
    watched = ac.monitor([True] * 20_000, rate=0.01)
    assert math.isfinite(watched.wealth)
    assert ac.monitor([False] * 20_000, rate=0.9).wealth >= 0


@pytest.mark.parametrize(("hits", "settings"), [([], {"rate": 0}), ([], {"rate": 1.0}), ([], {"rate": True}),
                                                ([2], {"rate": 0.1}), ([], {"rate": 0.1, "confidence": 95})])  # fmt: skip
def test_senseless_settings_are_refused(hits, settings):
    with pytest.raises(SettingsError, match="expected"):
        ac.monitor(hits, **settings)
