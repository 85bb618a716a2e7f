"""Events count once, by their keys, on every way; refused ones do not spend the id that they came with."""

import pytest

from agnncert.errors import GraphError, IdError, SettingsError
from agnncert_live import Event, LiveGraph
from agnncert_live.nodes import NewNodes
from agnncert_live.service import Service
from tests.support.event_histories import History, as_event, payment, world
from tests.support.live import assert_current


@pytest.fixture(scope="module")
def home():
    with world() as built:
        yield built


@pytest.mark.slow
@pytest.mark.parametrize("share", range(8))
def test_whatever_comes_in_whatever_order_and_however_often_the_graph_is_that_of_the_table(home, share) -> None:
    counted = 0
    for seed in range(5 * share, 5 * share + 5):
        history = History(home, 1_000_000 + seed)
        history.run()
        counted += history.sent["known"]
    assert counted  # events came again


@pytest.fixture
def bank(home, tmp_path):
    """A live graph of some payments with a journal, a payment that is new, and how to open the graph again."""
    history = History(home, 5)
    data = home.load(history.rows, history.encoding)
    new = {**payment(history.rng, 1000), "payer": "acc-1", "payee": "acc-2", "amount": 5.0}

    def opened(**settings):
        given = None if (tmp_path / "j").exists() else data
        return LiveGraph(history.model, given, history.model.defence, journal=tmp_path / "j", **settings)

    return opened, new


def test_a_key_counts_once_also_within_one_batch_and_after_a_restart(bank) -> None:
    opened, new = bank
    event = Event.from_json(as_event(new))
    with opened() as live:
        applied = live.apply([event, event], id="one")
        assert (applied.events, applied.known) == (1, 1)
        assert (live.apply(event, id="two").events, live.apply(event).known) == (0, 1)
        assert live.number == 1
    with opened() as live:
        assert live.apply(event).known == 1
        assert live.number == 1
        assert_current(live)


def test_a_key_that_says_something_else_is_refused(bank) -> None:
    opened, new = bank
    with opened() as live:
        live.apply(Event.from_json(as_event(new)))
        with pytest.raises(GraphError, match="said something else"):
            live.apply(Event.from_json(as_event({**new, "amount": 6.0})))
        assert live.number == 1


def test_an_event_whose_batch_is_undone_has_not_counted(bank) -> None:
    opened, new = bank
    with opened() as live:
        bad = Event.from_json(as_event({**new, "payment": "bad", "at": "soon"}))
        event = Event.from_json(as_event(new))
        with pytest.raises(GraphError):
            live.apply([event, bad])
        assert live.apply(event).events == 1


@pytest.mark.parametrize("restarts", [False, True])
def test_the_corrected_retry_of_a_refused_event_counts(bank, restarts) -> None:
    opened, new = bank
    good, bad, unreadable = as_event(new), as_event({**new, "payment": "b", "at": "soon"}), {"kind": "nonsense"}
    corrected = as_event({**new, "payment": "b"})
    other = as_event({**new, "payment": "c"})
    live = opened()
    answer = Service(live).post([good, bad, unreadable], "one")
    assert (answer["applied"], answer["refused_in_all"]) == (1, 2)
    assert Service(live).post([bad], "two")["refused_in_all"] == 1
    if restarts:
        live.close()
        live = opened()
    with live:
        again = Service(live).post([good, bad, unreadable], "one")
        assert (again["applied"], again["refused_in_all"]) == (0, 2)
        answer = Service(live).post([good, corrected, other], "one")
        assert (answer["applied"], answer["repeated"]) == (2, False)
        assert Service(live).post([good, corrected, other], "one")["repeated"]
        assert Service(live).post([as_event({**new, "payment": "d"})], "two")["applied"] == 1
        assert live.number == 4
        assert_current(live)


def test_others_get_their_turn_during_a_long_batch_that_counts_once(bank) -> None:
    opened, new = bank
    rows = [{**new, "payment": f"long {number}"} for number in range(600)]
    batch = [as_event(row) for row in rows]
    batch[300] = as_event({**rows[300], "at": "soon"})
    with opened() as live:
        numbers = []
        live.subscribe(lambda applied: numbers.append(live.number))
        answer = Service(live).post(batch, "long")
        assert (answer["applied"], [each["event"] for each in answer["refused"]]) == (599, [300])
        assert numbers == [250, 499, 599]  # after each part the graph is free
        again = Service(live).post([as_event(row) for row in rows], "long")
        assert (again["applied"], again["repeated"]) == (1, False)
        assert Service(live).post(batch[:300] + batch[301:], "long")["repeated"]
        assert live.number == 600
        assert_current(live)


@pytest.mark.parametrize("name", ["", " acc-1", "acc-1 ", "a\0b", "x" * 100_000, "line\nbreak"])
def test_ids_that_would_be_mistaken_or_that_no_certificate_can_hold_make_no_node(bank, name) -> None:
    opened, new = bank
    with opened() as live:
        answer = Service(live).post([as_event({**new, "payer": name})], "one")
        assert answer["refused_in_all"] == 1
        assert "an id" in answer["refused"][0]["reason"] or "no id" in answer["refused"][0]["reason"]
        assert Service(live).post([as_event(new)], "one")["applied"] == 1


def test_a_very_large_number_is_an_id_like_any_other(bank) -> None:
    opened, new = bank
    with opened() as live:
        live.apply(Event.from_json(as_event({**new, "payer": 10**30})))
        assert 10**30 in live
        assert_current(live)


def test_new_nodes_can_be_limited_to_a_pattern_or_refused(bank) -> None:
    opened, new = bank
    with opened(new_nodes=NewNodes(pattern="ext-[0-9]+")) as live:
        live.apply(Event.from_json(as_event({**new, "payer": "ext-999"})))
        with pytest.raises(IdError, match="expected ext-"):
            live.apply(Event.from_json(as_event({**new, "payment": "other", "payer": "somebody"})))
    with opened(new_nodes=NewNodes(known_only=True)) as live:  # what was accepted before stays
        assert "ext-999" in live
        with pytest.raises(IdError, match="takes no new ones"):
            live.apply(Event.from_json(as_event({**new, "payment": "third", "payer": "ext-1000"})))
    with pytest.raises(SettingsError, match="no regular expression"):
        NewNodes(pattern="(")
