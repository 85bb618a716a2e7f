"""Cheaper test runs still report every failure."""

from types import SimpleNamespace

import pytest

from tests.support.economy import SHORTEST, tell_less


class WorkerInteractor:
    """What xdist has in a worker; keeps what it would send."""

    def __init__(self) -> None:
        self.sent = []

    def sendevent(self, name, **event) -> None:
        self.sent.append((name, event))


def sent(name, xmlpath=None, **event):
    """Whether a worker sends an event."""
    worker = WorkerInteractor()
    plugins = SimpleNamespace(get_plugins=lambda: {object(), worker})
    tell_less(SimpleNamespace(pluginmanager=plugins, option=SimpleNamespace(xmlpath=xmlpath)))
    worker.sendevent(name, **event)
    assert worker.sent in ([], [(name, event)])
    return bool(worker.sent)


@pytest.mark.parametrize("when", ["setup", "call", "teardown"])
@pytest.mark.parametrize("outcome", ["passed", "failed", "skipped"])
def test_a_worker_leaves_out_only_short_set_ups_and_clean_ups_that_passed(when, outcome) -> None:
    short, long = ({"outcome": outcome, "when": when, "duration": SHORTEST * times} for times in (0.5, 2))
    assert sent("testreport", data=short) is not (outcome == "passed" and when != "call")
    assert sent("testreport", data=long)
    assert sent("testreport", data=short, xmlpath="report.xml")


def test_everything_else_is_sent_except_that_a_test_begins() -> None:
    assert not sent("logstart", nodeid="a", location=("a.py", 1, "a"))
    assert sent("logfinish", nodeid="a", location=("a.py", 1, "a"))
    assert sent("runtest_protocol_complete", item_index=0, duration=0.0)
    assert sent("collectreport", data={"outcome": "failed"})
