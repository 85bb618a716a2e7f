"""Confirmed cases: each counts once, restarts keep them, and an alarm shows in metrics, at an address and in the log."""

import logging

import pytest
from starlette.testclient import TestClient

import agnncert as ac
from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.cli.certify_step import certify_run
from agnncert.cli.settings import CertifySettings, TrainSettings
from agnncert.cli.train_step import train_run
from agnncert.errors import IdError, SettingsError
from agnncert_live.confirmed import Alerts, Case, Confirmed
from agnncert_live.http import make_app
from agnncert_live.run import ServedRun, service_of_run

THRESHOLD = ThresholdRecord(1, 100, 4, 2, 0.1, 0.95)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("run") / "run"
    training = TrainSettings(
        data="accounts-generated", model="sage", division="per-neighbour", keep=0.5, keep_for="fraud", references=False,
        set={"num_layers": 1, "dropout": 0.0, "hidden_channels": 16},
        fit={"epochs": 20, "lr": 0.05, "balance_classes": True, "evaluate_every": 10},
    )  # fmt: skip
    train_run(training, place)
    certify_run(CertifySettings(data=str(place), false_positive_rate=0.05, confidence=0.95), report=False)
    return place


def test_each_target_counts_once_and_restarts_keep_it(tmp_path):
    file = tmp_path / "confirmed"
    first = Confirmed(THRESHOLD, 0.8, file)
    first.note([Case("a", 0, 1), Case("b", 0, 0), Case("c", 1, 0), Case("a", 0, 1)])
    first.note([Case("a", 0, 1)])
    assert (first.false_positives.cases, first.false_positives.hits) == (2, 1)
    assert (first.misses.cases, first.misses.hits) == (1, 1)
    again = Confirmed(THRESHOLD, 0.8, file)
    assert again.summary() == first.summary()
    again.note([Case("c", 1, 1), Case("d", 1, 1)])
    assert (again.misses.cases, again.misses.hits) == (2, 1)


def test_an_alarm_is_logged_once_and_is_a_metric(caplog):
    watched = Confirmed(THRESHOLD)
    with caplog.at_level(logging.WARNING):
        watched.note([Case(str(k), 0, 1) for k in range(30)])
        watched.note([Case(f"more {k}", 0, 1) for k in range(30)])
    assert [record.message.count("ALARM") for record in caplog.records] == [1]
    values = {metric.name: {each.labels["rate"]: each.value for each in metric.samples} for metric in watched.metrics()}
    assert values["agnncert_rate_alarm"] == {"false_positives": 1}
    assert values["agnncert_confirmed_cases"] == {"false_positives": 60}
    assert watched.misses is None


@pytest.mark.parametrize(
    ("before", "now", "targets", "is_alarm"),
    [
        (0.05, 0.05, 10_000, False),
        (0.05, 0.061, 10_000, True),  # 110 more, where chance makes 22 of 500
        (0.05, 0.039, 10_000, True),
        (0.05, 0.059, 10_000, False),  # less than a fifth more
        (0.05, 0.07, 300, False),  # 6 more, where chance makes 4 of 15
        (0.0, 0.01, 300, True),
    ],
)
def test_an_alarm_without_labels_is_beyond_chance_and_a_fifth(before, now, targets, is_alarm):
    assert Alerts(before, now, targets).is_alarm is is_alarm
    watched = Confirmed(THRESHOLD)
    assert watched.summary(Alerts(before, now, targets))["alarms"] == ["alerts"] * is_alarm


def test_a_service_watches_the_rates_of_its_run(folder):
    service = service_of_run(ServedRun(folder))
    certificate = ac.load_certificate(folder / "certificate.cert")
    client = TestClient(make_app(service), base_url="http://localhost")
    assert client.get("/rates").json()["false_positives"]["rate"] == 0.05
    names, label = service.live.targets.tolist(), service.live.label.tolist()
    flagged = [name for name, k in zip(names, label, strict=True) if k == 1]
    body = {"confirmed": [{"target": name, "class": "genuine"} for name in flagged[:40]]}
    answer = client.post("/confirmed", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["noted"] == 40
    assert answer.json()["alarms"] == ["false_positives"]
    assert client.post("/confirmed", json=body).json()["noted"] == 0
    assert client.get("/rates").status_code == 503
    text = client.get("/metrics").text
    assert 'agnncert_rate_alarm{rate="false_positives"} 1' in text
    assert 'agnncert_rate_alarm{rate="misses"} 0' in text
    for wrong, status in (
        ({"confirmed": [{"target": "nobody", "class": "genuine"}]}, 404),
        ({"confirmed": [{"target": names[0], "class": "honest"}]}, 422),
        ({"confirmed": [{"target": names[0]}]}, 422),
        ({"confirmed": 3}, 422),
        ({"sure": []}, 400),
    ):
        assert client.post("/confirmed", json=wrong).status_code == status
    service.live.close()

    again = service_of_run(ServedRun(folder))  # it goes on where it stopped
    assert again.watched()["alarms"] == ["false_positives"]
    assert again.live.certificate().claim.threshold == certificate.claim.threshold
    # Recall is that of the certified targets, not of accounts that the model was trained on.
    measures = certificate.measures(1)
    _, _, value = again.metrics().partition('agnncert_certified_recall{class="fraud",size="1"} ')
    assert float(value.split()[0]) == pytest.approx(measures.recall[1], abs=1e-6)
    everybody = ((again.live.label == 1) & (again.live.radius >= 1))[again.live.truth == 1].mean()
    assert everybody != pytest.approx(measures.recall[1], abs=1e-6)
    again.live.close()


def test_without_a_threshold_nothing_is_watched(folder):
    service = service_of_run(ServedRun(folder))
    service.confirmed = None
    assert service.watched() == {}
    with pytest.raises(SettingsError, match="nothing is watched"):
        service.confirm([])
    with pytest.raises((IdError, SettingsError)):
        service.confirm([{"target": "x", "class": "y"}])
    service.live.close()
