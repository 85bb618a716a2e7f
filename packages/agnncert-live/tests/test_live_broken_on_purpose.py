"""With a guard of live graphs broken on purpose, a check must turn red; with nothing broken, none does."""

import json
import re
import shutil
import sqlite3
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from torch_geometric.nn import GCN

import agnncert as ac
import agnncert_live
from agnncert.errors import AgnncertError
from agnncert_live import Event, JournalError, budgets, events, guard, journal, service, spent, store
from agnncert_live.guard import Guard, Limits, Refusal
from tests.support.models import settled
from tests.support.mutations import turns_red
from tests.support.serving import a_service
from tests.support.small_graphs import random_graph

DATA = random_graph(10, 12)
IDS = DATA.node_id.tolist()


def opened(path: Path) -> agnncert_live.LiveGraph:
    model = settled(GCN, 5, 8, 2, 3)  # known to the audit, which then is short
    return agnncert_live.LiveGraph(model, DATA, ac.EdgeCentric(4), journal=path)


def written(folder: Path) -> Path:
    """The journal of a live graph that was killed after four batches."""
    with opened(folder / "j") as live:
        live.reference()
        for k in range(4):
            live.apply(Event("change_features", IDS[k], value=[1.0] * 5), id=f"batch {k}")
        (folder / "killed").mkdir()
        for file in folder.glob("j*"):
            shutil.copy(file, folder / "killed")
    return folder / "killed" / "j"


def altered_rows_are_refused() -> None:
    statements = (
        "DELETE FROM batch WHERE number = 4",
        "DELETE FROM batch WHERE number = 2",
        "UPDATE batch SET events = replace(events, '1.0', '2.0') WHERE number = 4",
        "DELETE FROM acknowledged WHERE place = 2",
        "CREATE TRIGGER t AFTER INSERT ON batch BEGIN DELETE FROM batch; END",
    )
    with TemporaryDirectory() as folder:
        killed = written(Path(folder)).parent
        for k, statement in enumerate(statements):
            path = shutil.copytree(killed, Path(folder) / str(k)) / "j"
            with sqlite3.connect(path) as database:
                database.execute(statement)
            database.close()
            with pytest.raises(JournalError):
                opened(path)


def the_log_decides_nothing() -> None:
    with TemporaryDirectory() as folder:
        path = written(Path(folder))
        for log in path.parent.glob("j-*"):
            content = bytearray(log.read_bytes())
            content[len(content) // 3] ^= 1
            log.write_bytes(content)
        with opened(path) as live:
            assert live.number == 4


def an_empty_file_is_refused() -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "j").touch()
        with pytest.raises(JournalError):
            opened(Path(folder) / "j")


def a_reference_is_compared_with_its_graph() -> None:
    with TemporaryDirectory() as folder:
        path = written(Path(folder))
        with opened(path) as live:
            live._snapshot()  # nothing is left to follow event by event
        with opened(path) as live:
            (digest,) = live._references
            assert len(live._references[digest].nodes) == 4


def strange_budgets_are_refused() -> None:
    with pytest.raises(AgnncertError):
        budgets.read_budget({"target_features": "on"})


def hosts_of_others_are_refused() -> None:
    guarding = Guard(None, None, Limits())
    for host in ("localhost:80@evil.com", "localhost.evil.com"):
        with pytest.raises(Refusal):
            guarding._check_who("/", {"host": host})


def ids_do_not_collide() -> None:
    running = a_service()
    running.post([{"kind": "add_node", "node": "one", "value": [1, 1, 1, 1]}], "a#0")
    assert not running.post([], "a", part=0)["repeated"]


def with_edges() -> Any:
    running = a_service()
    running.live.apply([Event("add_edge", "user-3", f"user-{k}") for k in range(10, 20)], skip_bad=True)
    return running


def copies_are_bounded() -> None:
    with pytest.raises(AgnncertError):
        with_edges().live.apply(Event("change_edge", "user-3", "user-11", 2_000))


def arcs_of_a_batch_are_bounded() -> None:
    running = with_edges()
    asked = [Event("change_edge", "user-3", f"user-{k}", 1_000) for k in range(10, 20)]
    more = Event("change_edge", "user-3", "user-11", 2_000)
    # Each makes 2,000 arcs, of 50,000.
    assert running.live.apply([*asked * 2, *asked[:6], more], skip_bad=True).events <= 25
    with pytest.raises(AgnncertError):
        running.live.apply(more)


def deep_values_are_no_numbers() -> None:
    with pytest.raises(AgnncertError):
        Event.from_json({"kind": "add_node", "node": 1, "value": json.loads("[" * 50 + "]" * 50)})


CHECKS = [
    altered_rows_are_refused, the_log_decides_nothing, an_empty_file_is_refused, a_reference_is_compared_with_its_graph,
    strange_budgets_are_refused, hosts_of_others_are_refused, ids_do_not_collide, copies_are_bounded,
    arcs_of_a_batch_are_bounded, deep_values_are_no_numbers,
]  # fmt: skip


def unlinked(patch) -> None:
    patch.setattr(journal, "_linked", lambda chain, number, batch_id, text: "")


def unsummed(patch) -> None:
    patch.setattr(journal, "_summed", lambda total, sign, rows: 0)


def any_schema(patch) -> None:
    patch.setattr(journal, "set", lambda tables: type("Any", (), {"__ne__": lambda *_: False})(), raising=False)


def with_a_log(patch) -> None:
    class Connected:
        """A connection that is told to write ahead."""

        def __init__(self, database) -> None:
            self.database = database

        def __getattr__(self, name: str):
            return getattr(self.database, name)

        def execute(self, text: str, *values):
            return self.database.execute(text.replace("journal_mode=PERSIST", "journal_mode=WAL"), *values)

    connect = sqlite3.connect
    patch.setattr(journal.sqlite3, "connect", lambda *words, **options: Connected(connect(*words, **options)))


def taken_as_new(patch) -> None:
    patch.setattr(journal.Journal, "_exists", lambda self: self.path.exists() and self.path.stat().st_size > 0)


def no_difference(patch) -> None:
    patch.setattr(spent, "_all_features", lambda store: {})


def strange_is_false(patch) -> None:
    patch.setattr(budgets, "_YES_OR_NO", defaultdict(bool, dict.fromkeys(["on"], False)))


def hosts_by_prefix(patch) -> None:
    patch.setattr(guard, "_LOCAL_HOST", re.compile("localhost.*"))


def names_as_given(patch) -> None:
    patch.setattr(service, "_batch_name", lambda id, part: id if part is None else f"{id}#{part}")


def a_million_copies(patch) -> None:
    patch.setattr(store, "MOST_COPIES", 10**6)


def any_number_of_arcs(patch) -> None:
    patch.setattr(store, "MOST_ARCS", 10**9)


def any_depth(patch) -> None:
    patch.setattr(events, "_is_numbers", lambda value: True)


MUTATIONS = {
    unlinked: altered_rows_are_refused, unsummed: altered_rows_are_refused, any_schema: altered_rows_are_refused,
    with_a_log: the_log_decides_nothing, taken_as_new: an_empty_file_is_refused,
    no_difference: a_reference_is_compared_with_its_graph, strange_is_false: strange_budgets_are_refused,
    hosts_by_prefix: hosts_of_others_are_refused, names_as_given: ids_do_not_collide,
    a_million_copies: copies_are_bounded, any_number_of_arcs: arcs_of_a_batch_are_bounded, any_depth: deep_values_are_no_numbers,
}  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_as_it_is_every_check_passes(check) -> None:
    check()


@pytest.mark.parametrize(("mutation", "check"), MUTATIONS.items())
def test_a_broken_guard_turns_its_check_red(mutation, check, monkeypatch) -> None:
    turns_red(monkeypatch, mutation, check, (AssertionError, pytest.fail.Exception, AgnncertError, RecursionError))
