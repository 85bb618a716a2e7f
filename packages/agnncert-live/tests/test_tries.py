"""Several threads, ids without end, and clocks that are set: what was tried beside the theorems."""

import random
import threading
import time

import pytest

import agnncert as ac
import agnncert_live
from agnncert_live import Event, guard
from agnncert_live.guard import Guard, Limits, Refusal
from tests.support.live import assert_current
from tests.support.serving import NODES, a_graph, a_model, a_service
from tests.support.small_graphs import plain_model, random_graph


@pytest.mark.parametrize("with_journal", [False, True])
def test_threads_that_write_and_ask_see_one_graph_at_a_time(tmp_path, with_journal) -> None:
    data = a_graph()
    journal = tmp_path / "j" if with_journal else None
    live = agnncert_live.LiveGraph(a_model(data), data, ac.NodeCentric(8), journal=journal, snapshot_every=25)
    reference = live.reference()
    failed: list[BaseException] = []
    done = threading.Event()

    def write(number: int) -> None:
        rng = random.Random(number)
        for k in range(12):
            name = f"t{number}-{k}"
            live.apply(
                [
                    Event("add_node", name, value=[1, 0, number, k]),
                    Event("add_edge", name, f"user-{rng.randrange(NODES)}"),
                ],
                id=name,
            )
            assert live[name].radius >= -1
            if k % 3 == 0:
                live.apply(Event("delete_node", name))

    def ask(number: int) -> None:
        rng = random.Random(100 + number)
        while not done.is_set():
            target = f"user-{rng.randrange(NODES)}"
            certificate = live.certificate()
            assert certificate.label.shape == certificate.radius.shape == certificate.target.shape
            assert live.spent(target, reference).label[0] == reference[target].label
            assert target in live
            assert live.data().num_nodes >= NODES
            end = live.subscribe(lambda applied: None)
            end()

    def guarded(work, number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=guarded, args=(write, k)) for k in range(3)]
    readers = [threading.Thread(target=guarded, args=(ask, k)) for k in range(2)]
    for thread in [*writers, *readers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert failed == []
    assert live.number == 3 * (12 * 2 + 4)
    assert_current(live)
    live.close()


def test_ids_without_end_fill_no_memory(monkeypatch) -> None:
    """Each id is new: of batches, of nodes that come and go, and of clients."""
    monkeypatch.setattr("agnncert_live.graph.REMEMBERED", 50)
    live = agnncert_live.LiveGraph(plain_model(), random_graph(8, 8), ac.EdgeCentric(4))
    for k in range(300):
        live.apply(
            [Event("add_node", f"{k}" * 40 + "x", value=[0.0] * 5), Event("delete_node", f"{k}" * 40 + "x")], id=f"b{k}"
        )
    nodes = live._core.store.nodes
    assert len(live._acknowledged) == 50
    assert len(nodes._name) <= 10
    assert len(nodes.alive) <= 20
    assert len(nodes._hashed_slots) == 0
    assert len(nodes.slot_of[0]) == 8
    assert_current(live)


def test_clients_without_end_fill_no_memory(monkeypatch) -> None:
    monkeypatch.setattr(guard, "CLIENTS", 100)
    guarding = Guard(None, None, Limits(rate=5))
    for k in range(1_000):
        guarding._check_rate(f"10.0.{k // 256}.{k % 256}")
    assert len(guarding._allowance) <= 100


@pytest.mark.parametrize("jump", [-1e9, 1e9])
def test_a_clock_that_is_set_changes_nothing_but_times(monkeypatch, jump) -> None:
    service, now = a_service(), time.time
    guarding = Guard(None, None, Limits(rate=2))
    for _ in range(6):
        guarding._check_rate("one")
    monkeypatch.setattr(time, "time", lambda: now() + jump)
    with pytest.raises(Refusal):  # setting the clock gives nobody more requests, and takes none away
        guarding._check_rate("one")
    guarding._check_rate("another")
    service.post([{"kind": "change_features", "node": "user-1", "value": [9, 5, -9, 3]}])
    lines = dict(line.rsplit(" ", 1) for line in service.metrics().splitlines() if not line.startswith("#"))
    assert 0 <= float(lines["agnncert_uptime_seconds"]) < 1e6
    assert float(lines["agnncert_seconds_total"]) >= 0
    assert_current(service.live)
