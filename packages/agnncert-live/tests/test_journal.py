"""Whenever a process dies, what it had acknowledged is there, and a journal of something else is refused."""

import dataclasses
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

import agnncert as ac
import agnncert_live
from agnncert_live import JournalError
from tests.support import programs
from tests.support.live import assert_same, random_batch
from tests.support.paths import PROJECT
from tests.support.small_graphs import graph_model, plain_model, random_graph

DIVISION = ac.EdgeCentric(5)
FULL = 2  # how SQLite calls it


def begin(path, **changes):
    settings = {"model": plain_model(), "data": random_graph(12, 16), "defence": DIVISION, "snapshot_every": 7}
    return agnncert_live.LiveGraph(**{**settings, **changes}, journal=path)


def history(batches):
    """Batches of events that can be applied, and labels and radii after each."""
    live = agnncert_live.LiveGraph(plain_model(), random_graph(12, 16), DIVISION)
    rng, events, states = random.Random(0), [], [(0, live.targets.tolist(), live.label.tolist(), live.radius.tolist())]
    while len(events) < batches:
        batch = random_batch(live, rng, 2)
        done = live.apply(batch, skip_bad=True)
        if not done.refused:
            events.append(batch)
            states.append((live.number, live.targets.tolist(), live.label.tolist(), live.radius.tolist()))
        elif done.events:  # undo by beginning anew: only whole batches are wanted
            live = agnncert_live.LiveGraph(plain_model(), random_graph(12, 16), DIVISION)
            live.apply([event for one in events for event in one])
            live.number = states[-1][0]
    return events, states


def dies_after(lines, part):
    """For ``sys.settrace``: the process is killed before it runs this many lines more of a part of the library."""
    left = [lines]

    def watch(frame, event, _):
        if part not in frame.f_code.co_filename:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return watch

    return watch


def apply_until_killed(path, events, known, lines, part, acknowledge):
    """Applies all batches and says which are done; dies among those that the journal does not know yet."""
    live = begin(path, snapshot_every=3)
    for number, batch in enumerate(events):
        if number == known:
            sys.settrace(dies_after(lines, part))
        live.apply(batch, id=f"batch {number}")
        os.write(acknowledge, b".")


def acknowledged_by_a_process_that_dies(*work) -> int:
    """How many batches a process of its own has acknowledged before it was killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            apply_until_killed(*work, write)
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        acknowledged = pipe.read().count(b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    return acknowledged


AT_RANDOM = [(random.Random(k).randrange(1, 2500), "agnncert_live") for k in range(20)]  # a batch: 500 to 1,100 lines
EVERYWHERE_IN_WRITING = [(lines, "agnncert_live/journal") for lines in range(1, 100)]  # two batches and a snapshot


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child uses none of this process's threads
@pytest.mark.parametrize("kills", [AT_RANDOM, EVERYWHERE_IN_WRITING], ids=["at random", "everywhere in writing"])
def test_whenever_a_process_is_killed_nothing_is_lost_that_it_acknowledged(tmp_path, kills):
    events, states = history(160)
    before, unsaid = 0, 0
    begin(tmp_path / "j").close()
    number_of = {state[0]: place for place, state in enumerate(states)}
    for lines, part in kills:
        acknowledged = acknowledged_by_a_process_that_dies(tmp_path / "j", events, before, lines, part)
        with begin(tmp_path / "j") as live:
            kept = number_of[live.number]
            assert acknowledged <= kept <= acknowledged + 1, f"killed after {lines} lines"
            assert (live.number, live.targets.tolist(), live.label.tolist(), live.radius.tolist()) == states[kept]
        before, unsaid = kept, unsaid + (kept - acknowledged)
    assert before > 10
    assert 0 < unsaid < len(kills)  # some died between the disk and the answer, others before the disk
    with begin(tmp_path / "j") as live:
        for number, batch in enumerate(events):
            assert live.apply(batch, id=f"batch {number}").repeated == (number < before)
        assert live.number == states[-1][0]
        assert_same(live.certificate(), ac.certify(plain_model(), live.data(), DIVISION))


def test_the_database_in_use_flushes_whatever_it_commits(tmp_path):
    """Anew and again, before and after a batch and a snapshot: settings are those of a connection, not of the file."""
    for _ in range(2):
        with begin(tmp_path / "j", snapshot_every=1) as live:
            for value in (1.0, 2.0):
                live.apply(agnncert_live.Event("change_features", live.targets.tolist()[0], value=[value] * 5))
                asked = [live._journal._database.execute(f"PRAGMA {name}") for name in ("synchronous", "journal_mode")]
                assert [rows.fetchone()[0] for rows in asked] == [FULL, "persist"]


def can_trace() -> bool:
    """Whether this machine lets a test look at the system calls of a program."""
    return shutil.which("strace") is not None and programs.run("strace", "-e", "trace=none", "true").returncode == 0


APPLIES_A_BATCH = """
import os, sys
from pathlib import Path

sys.path.insert(0, {tests!r})
from test_journal import agnncert_live, begin

with begin(Path({journal!r})) as live:
    os.write(1, b"begun")
    live.apply(agnncert_live.Event("change_features", live.targets.tolist()[0], value=[1.0] * 5))
    os.write(1, b"acknowledged")
"""
CALL = re.compile(r'(?P<name>\w+)\((?P<handle>\d+)<(?P<path>[^>]*)>(, "(?P<text>\w+))?')


@pytest.mark.slow
def test_a_batch_is_on_the_disk_when_it_is_acknowledged(tmp_path):
    """Seen from outside: for each file, the last call between the batch and its acknowledgement flushes it."""
    if not can_trace():
        pytest.skip("strace is missing, or may not be used here (Debian: apt-get install strace)")
    script = APPLIES_A_BATCH.format(tests=str(Path(__file__).parent), journal=str(tmp_path / "j"))
    traced = ["strace", "-f", "-y", "-o", tmp_path / "calls", "-e", "trace=write,pwrite64,ftruncate,fsync,fdatasync"]
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    done = programs.run(*traced, programs.PYTHON, "-c", script, environment={"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    calls = [found for line in (tmp_path / "calls").read_text().splitlines() if (found := CALL.search(line))]
    said = {call["text"]: place for place, call in enumerate(calls) if call["name"] == "write"}
    last = {call["path"]: call["name"] for call in calls[said["begun"] : said["acknowledged"]]}
    for name in ("j", "j-journal"):
        assert last[str(tmp_path / name)] in ("fsync", "fdatasync"), name


def test_snapshots_keep_the_journal_small_and_a_restart_needs_no_data(tmp_path):
    data = random_graph(12, 16)
    ids = data.node_id.tolist()
    pair = next(
        (u, v) for u in ids for v in ids if u < v and [ids.index(u), ids.index(v)] not in data.edge_index.T.tolist()
    )
    sizes = []
    with begin(tmp_path / "j") as live:
        for _ in range(4):
            for _ in range(10):
                live.apply([agnncert_live.Event("add_edge", *pair), agnncert_live.Event("delete_edge", *pair)])
            live.apply(agnncert_live.Event("change_features", pair[0], value=[1.0] * 5))
            sizes.append(sum(file.stat().st_size for file in tmp_path.iterdir()))
        expected = live.certificate()
    assert max(sizes[1:]) <= 2 * sizes[0] + 2**17
    with begin(tmp_path / "j", data=None) as live:
        assert live.number == 84
        assert_same(live.certificate(), expected)
        live.apply(agnncert_live.Event("add_edge", *pair))
        assert np.array_equal(live.label, ac.certify(plain_model(), live.data(), DIVISION).label)


def test_a_journal_of_something_else_is_refused_by_name(tmp_path):
    begin(tmp_path / "j").close()
    others = {
        "model": {"model": plain_model(seed=5)},
        "graph": {"data": random_graph(12, 16, seed=3)},
        "division": {"defence": ac.EdgeCentric(6)},
        "voting_rule": {"voting_rule": ac.VotingRule("abstain", [1, 0, 0])},
        "choice of targets": {"targets": [1, 2]},
        "tolerance": {"tolerance": 1e-3},
    }
    for name, change in others.items():
        with pytest.raises(JournalError, match=f"belongs to another {name}"):
            begin(tmp_path / "j", **change)
    with sqlite3.connect(tmp_path / "j") as database:
        database.execute("UPDATE about SET value = '99' WHERE name = 'format'")
    database.close()
    with pytest.raises(JournalError, match="another version"):
        begin(tmp_path / "j")
    (tmp_path / "text").write_text("no database, but long enough to be looked at " * 50)
    with pytest.raises(JournalError, match="no journal"):
        begin(tmp_path / "text")


def test_a_reference_that_is_the_snapshot_is_written_once_and_outlives_it(tmp_path):
    def names():
        with sqlite3.connect(tmp_path / "j") as database:
            found = [name for (name,) in database.execute("SELECT name FROM graph ORDER BY name")]
        database.close()
        return found

    with begin(tmp_path / "j") as live:
        reference = live.reference()
    digest = reference.claim.digests["graph"]
    assert names() == ["now"]
    with begin(tmp_path / "j") as live:
        assert live.follows(reference)
        for k in range(9):  # a snapshot comes after 7
            live.apply(agnncert_live.Event("add_node", 12 + k, value=[1.0] * 5))
    assert names() == sorted([digest, "now"])
    with begin(tmp_path / "j") as live:
        assert live.number == 9
        assert live.follows(reference)
        live.forget(reference)
    assert names() == ["now"]


def test_a_damaged_snapshot_and_a_second_writer_are_refused(tmp_path, monkeypatch):
    live, connect = begin(tmp_path / "j"), sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **how: connect(*given, **{**how, "timeout": 0.05}))
    with pytest.raises(JournalError, match="in use"):
        begin(tmp_path / "j")
    live.close()
    with sqlite3.connect(tmp_path / "j") as database:
        (blob,) = database.execute("SELECT content FROM graph").fetchone()
        database.execute("UPDATE graph SET content = ?", [blob[:-1] + bytes([blob[-1] ^ 1])])
    database.close()
    with pytest.raises(JournalError, match="damaged"):
        begin(tmp_path / "j")


def test_a_batch_that_cannot_be_written_changes_nothing(tmp_path):
    live = begin(tmp_path / "j")
    before = live.certificate()
    live._journal._database.close()  # as if the disk were gone
    event = agnncert_live.Event("change_features", live.targets.tolist()[0], value=[1.0] * 5)
    with pytest.raises(Exception, match="closed"):
        live.apply(event)
    assert_same(live.certificate(), before)


def test_a_snapshot_that_cannot_be_written_costs_no_batch(tmp_path, monkeypatch, caplog):
    """The journal only grows: a later batch tries again."""
    with begin(tmp_path / "j", snapshot_every=2) as live:
        first, second, third, fourth = live.targets.tolist()[:4]
        live.apply([agnncert_live.Event("delete_node", first), agnncert_live.Event("delete_node", second)], id="one")

        def full(*_):
            raise agnncert_live.JournalError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(live._journal, "save", full)
            assert live.apply(agnncert_live.Event("delete_node", third), id="two").events == 1
        assert "no snapshot was written: the disk is full" in caplog.text
        assert live._journal.since_snapshot == 3
        live.apply(agnncert_live.Event("delete_node", fourth), id="three")
        assert live._journal.since_snapshot == 1
        targets = live.targets.tolist()
    with begin(tmp_path / "j") as live:
        assert (live.number, live.targets.tolist()) == (4, targets)


def test_a_set_of_graphs_goes_on_where_it_stopped(tmp_path):
    graphs = [random_graph(size, size + 1, seed=size) for size in (4, 7)]
    changes = {"model": graph_model(), "data": graphs, "defence": ac.NodeCentric(3)}
    rng = random.Random(0)
    with begin(tmp_path / "j", **changes) as live:
        for _ in range(5):
            live.apply(random_batch(live, rng, 2), skip_bad=True)
        expected = live.certificate()
    with begin(tmp_path / "j", **changes) as live:
        assert_same(live.certificate(), expected)
    with pytest.raises(ac.errors.GraphError, match="pass the data"):
        begin(tmp_path / "j", **{**changes, "data": None})


def test_a_forked_process_does_not_write_to_the_journal_of_its_parent(tmp_path):
    """Locks of files are not inherited, so both would write."""
    with begin(tmp_path / "j") as live:
        target = live.targets.tolist()[0]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                live.apply(agnncert_live.Event("change_features", target, value=[1.0] * 5))
                os.write(write, b"written")
            except JournalError as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        with os.fdopen(read) as answers:
            assert "opened by another process" in answers.read()
        live.apply(agnncert_live.Event("change_features", target, value=[2.0] * 5))
    with begin(tmp_path / "j", data=None) as live:
        assert live.number == 1


@pytest.mark.parametrize("what", ["moved", "deleted", "replaced"])
def test_a_journal_that_is_moved_while_it_is_in_use_takes_no_more_events(tmp_path, what):
    """They would be acknowledged, and nobody would find them after a restart."""
    path = tmp_path / "j"
    with begin(path) as live:
        target = live.targets.tolist()[0]
        live.apply(agnncert_live.Event("change_features", target, value=[1.0] * 5), id="one")
        if what == "moved":
            path.rename(tmp_path / "elsewhere")
        elif what == "deleted":
            path.unlink()
        else:
            (tmp_path / "copy").write_bytes(path.read_bytes())
            (tmp_path / "copy").replace(path)
        with pytest.raises(JournalError, match="moved, deleted or replaced"):
            live.apply(agnncert_live.Event("change_features", target, value=[2.0] * 5), id="two")
        assert live.number == 1
        assert live.data().x[0].tolist() == [1.0] * 5
        if what == "moved":
            (tmp_path / "elsewhere").rename(path)
            live.apply(agnncert_live.Event("change_features", target, value=[2.0] * 5), id="two")
            assert live.number == 2


@pytest.mark.parametrize("way", ["the same path", "a link", "a hard link"])
def test_a_second_live_graph_cannot_write_the_same_journal(tmp_path, way):
    path = tmp_path / "j"
    other = path if way == "the same path" else tmp_path / "other"
    with begin(path) as live:
        if way == "a link":
            other.symlink_to(path)
        elif way == "a hard link":
            other.hardlink_to(path)
        with pytest.raises(JournalError):
            begin(other)
        live.apply(agnncert_live.Event("change_features", live.targets.tolist()[0], value=[1.0] * 5))
    with begin(path) as live:
        assert live.number == 1


def test_what_the_last_batches_did_is_known_after_a_restart_and_a_snapshot(tmp_path):
    with begin(tmp_path / "j") as live:  # a snapshot every 7 events
        ids = live.targets.tolist()
        did = {}
        for k in range(30):
            event = agnncert_live.Event("change_features", ids[k % 5], value=[float(k % 3 - 1) * 9] * 5)
            did[f"b{k}"] = live.apply(event, id=f"b{k}")
        assert live.apply([], id="b29") == dataclasses.replace(did["b29"], repeated=True)
    with begin(tmp_path / "j") as live:
        assert live.apply([], id="b29") == dataclasses.replace(did["b29"], repeated=True)
        assert live.apply([], id="b0").repeated  # older than the snapshot: it counts, what it did is not known
        assert live.apply([], id="b0").moved == ()
    assert any(applied.moved for applied in did.values())
