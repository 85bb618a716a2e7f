"""What one client may do, to the request and to the byte, and what a refusal says."""

from typing import Any

import pytest

from agnncert_live import event_stream, guard
from agnncert_live.guard import Guard, Limits, Refusal
from tests.support.serving import a_service, run_elsewhere


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        patch.setattr(guard.time, "monotonic", lambda: self.now)


def answered(guarding: Guard, client: str, requests: int) -> int:
    """How many of some requests are not refused."""
    refused = []
    for _ in range(requests):
        try:
            guarding._check_rate(client)
        except Refusal as refusal:
            refused.append(refusal.status)
    assert set(refused) <= {429}
    return requests - len(refused)


def test_three_seconds_worth_of_requests_are_answered_at_once_and_then_the_rate(monkeypatch) -> None:
    clock, guarding = Clock(monkeypatch), Guard(None, None, Limits(rate=5))
    assert answered(guarding, "one", 100) == 15
    clock.now += 1
    assert answered(guarding, "one", 100) == 5  # also after many that were refused
    clock.now += 1e6
    assert answered(guarding, "one", 100) == 15  # nobody saves requests for later
    assert answered(guarding, "another", 100) == 15


def test_the_client_that_was_quiet_for_longest_is_forgotten_first(monkeypatch) -> None:
    Clock(monkeypatch)
    monkeypatch.setattr(guard, "CLIENTS", 2)
    guarding = Guard(None, None, Limits(rate=5))
    assert answered(guarding, "busy", 15) == 15
    assert answered(guarding, "quiet", 1) == 1
    assert answered(guarding, "busy", 9) == 0
    assert answered(guarding, "newcomer", 1) == 1
    assert answered(guarding, "busy", 9) == 0  # else clients that come and go would reset the others
    assert len(guarding._allowance) == 2


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_request_may_be_as_long_as_the_limit_and_no_byte_longer(kind) -> None:
    guarding = Guard(None, None, Limits(body=50, stream=80))
    largest = 80 if "ndjson" in kind else 50
    assert guarding._check_length({"content-type": kind, "content-length": str(largest)}) == largest
    for length in (str(largest + 1), "-1", "1e1", ""):
        with pytest.raises(Refusal) as refused:
            guarding._check_length({"content-type": kind, "content-length": length})
        assert refused.value.status == 413


def headers_of(refusal: Refusal) -> dict[str, str]:
    """The headers with which a refusal is answered."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    run_elsewhere(lambda: guard._refuse(send, refusal))
    assert sent[0]["status"] == refusal.status
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


@pytest.mark.parametrize("status", [401, 403, 408, 413, 429, 503])
def test_a_refusal_says_what_the_client_can_do_about_it(status) -> None:
    headers = headers_of(Refusal(status, "no"))
    assert headers["connection"] == "close"
    assert ("retry-after" in headers) == (status in (429, 503))
    assert (headers.get("www-authenticate") == "Bearer") == (status == 401)


async def lines(*given: bytes):
    for line in given:
        yield line


def test_the_answer_to_a_stream_lists_so_many_refused_events_and_counts_all(monkeypatch) -> None:
    monkeypatch.setattr(event_stream, "LINES", 4)
    monkeypatch.setattr(event_stream, "MOST_LISTED", 6)
    service = a_service()
    answer = run_elsewhere(lambda: event_stream.apply_stream(service, lines(*[b"{}"] * 10), None))
    assert [refused["event"] for refused in answer["refused"]] == [0, 1, 2, 3, 4, 5]
    assert (answer["refused_in_all"], answer["applied"], answer["batches"]) == (10, 0, 3)
