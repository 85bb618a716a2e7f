"""A journal that is damaged or forged is refused with an error of ours, or opens with everything that was acknowledged.

Each damage is done to a copy of a journal whose process was killed. Lines that the tests hold: without ``_batches``'s
comparison with ``_state`` lost batches open; with ``journal_mode=WAL`` the flips in the log lose batches; without
``self._database.close()`` in ``Journal.__init__`` the file stays locked.
"""

import hashlib
import json
import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import agnncert as ac
import agnncert_live
from agnncert_live import JournalError
from agnncert_live.journal import Acknowledged, Journal, _linked
from tests.support.live import assert_current
from tests.support.small_graphs import plain_model, random_graph

MODEL, DATA, DIVISION = plain_model(), random_graph(12, 16), ac.EdgeCentric(5)
IDS = DATA.node_id.tolist()
FREE = [(u, v) for u in range(12) for v in range(u) if [u, v] not in DATA.edge_index.T.tolist()]
PAIRS = [(IDS[u], IDS[v]) for u, v in FREE if [v, u] not in DATA.edge_index.T.tolist()]


def opened(path: Path) -> agnncert_live.LiveGraph:
    return agnncert_live.LiveGraph(MODEL, DATA, DIVISION, journal=path)


def state(live: agnncert_live.LiveGraph) -> tuple[object, ...]:
    again = live.apply([], id="batch 3").repeated and live.apply([], id="batch 0").repeated
    return live.number, live.targets.tolist(), live.label.tolist(), live.radius.tolist(), again


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> tuple[Path, tuple[object, ...]]:
    """A folder with the files of a journal whose process was killed, and what had been acknowledged."""
    folder, copy = tmp_path_factory.mktemp("live"), tmp_path_factory.mktemp("killed") / "files"
    with opened(folder / "j") as live:
        for number, pair in enumerate(PAIRS[:8]):
            if number == 1:
                live.reference()  # another graph than that of the snapshot, so that the file holds both
            live.apply(agnncert_live.Event("add_edge", *pair), id=f"batch {number}")
        shutil.copytree(folder, copy)
        return copy, state(live)


@pytest.fixture
def journal(killed, tmp_path) -> Path:
    shutil.copytree(killed[0], tmp_path / "files")
    return tmp_path / "files" / "j"


def must_be_refused_or_whole(journal: Path, killed, refused: bool = True) -> None:
    try:
        with opened(journal) as live:
            assert not refused, "it was opened"
            assert state(live) == killed[1]
    except JournalError:
        pass
    if journal.is_file() and not journal.is_symlink():  # the same file must not be locked any more
        for name in ("j", "j-journal"):
            (journal.parent / name).write_bytes((killed[0] / name).read_bytes())
        with opened(journal) as live:
            assert state(live) == killed[1]


def test_what_was_not_damaged_is_whole(journal, killed) -> None:
    must_be_refused_or_whole(journal, killed, refused=False)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.004, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.9999])
def test_a_file_that_was_cut(journal, killed, share) -> None:
    content = journal.read_bytes()
    journal.write_bytes(content[: int(share * len(content))])
    must_be_refused_or_whole(journal, killed)


@pytest.mark.parametrize("place", range(40))
def test_one_bit_that_flipped(journal, killed, place) -> None:
    content = bytearray(journal.read_bytes())
    content[(place * 2_654_435_761) % len(content)] ^= 1 << place % 8
    journal.write_bytes(content)
    must_be_refused_or_whole(journal, killed, refused=False)


@pytest.mark.parametrize("byte", [0, 16, 18, 19, 20, 21, 24, 28, 31, 32, 36, 40, 44, 47, 48, 56, 59, 92, 96, 100, 103])
def test_one_bit_of_the_header_that_flipped(journal, killed, byte) -> None:
    content = bytearray(journal.read_bytes())
    content[byte] ^= 2
    journal.write_bytes(content)
    must_be_refused_or_whole(journal, killed, refused=False)


@pytest.mark.parametrize("place", range(20))
def test_one_bit_in_the_log_beside_it_that_flipped(journal, killed, place) -> None:
    """No log decides what was acknowledged, so nothing may be missing."""
    logs = [file for file in journal.parent.iterdir() if file != journal and file.stat().st_size]
    assert logs
    for log in logs:
        content = bytearray(log.read_bytes())
        content[place * len(content) // 20] ^= 1 << place % 8
        log.write_bytes(content)
    with opened(journal) as live:
        assert state(live) == killed[1]


@pytest.mark.parametrize("damage", ["gone", "empty", "noise", "cut"])
def test_a_log_beside_it_that_was_damaged(journal, killed, damage) -> None:
    for log in journal.parent.iterdir():
        if log != journal:
            content = log.read_bytes()
            log.unlink()
            if damage != "gone":
                log.write_bytes({"empty": b"", "noise": os.urandom(5_000), "cut": content[: len(content) // 2]}[damage])
    with opened(journal) as live:
        assert state(live) == killed[1]


def test_the_file_itself_is_missing(journal) -> None:
    journal.unlink()
    with pytest.raises(JournalError, match=r"is missing, but j-journal shows that there was one"):
        opened(journal)
    assert not journal.exists()


def test_an_empty_file_is_not_begun_anew(tmp_path) -> None:
    (tmp_path / "j").touch()
    with pytest.raises(JournalError, match="empty, which a journal never is"):
        opened(tmp_path / "j")
    assert (tmp_path / "j").stat().st_size == 0


@pytest.mark.parametrize("what", ["folder", "pipe", "link to itself", "noise", "database", "text", "socket"])
def test_something_else_in_its_place(tmp_path, what) -> None:
    path = tmp_path / "j"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "link to itself":
        path.symlink_to(path)
    elif what == "database":
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        database.close()
    elif what == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    else:
        path.write_bytes(os.urandom(20_000) if what == "noise" else b"text " * 2_000)
    with pytest.raises(JournalError):
        opened(path)


ALTERED = {
    "first batch": "DELETE FROM batch WHERE number = 1",
    "batch in between": "DELETE FROM batch WHERE number = 4",
    "last batch": "DELETE FROM batch WHERE number = 8",
    "all batches": "DELETE FROM batch",
    "other event": "UPDATE batch SET events = replace(events, 'add', 'delete') WHERE number = 3",
    "other number": "UPDATE batch SET number = 9 WHERE number = 8",
    "batch twice": "INSERT INTO batch SELECT 9, id, events FROM batch WHERE number = 8",
    "batch is no JSON": "UPDATE batch SET events = '[' WHERE number = 8",
    "batch is bytes": "UPDATE batch SET events = x'ff' WHERE number = 8",
    "id gone": "DELETE FROM acknowledged WHERE place = 4",
    "other id": "UPDATE acknowledged SET id = 'batch 9' WHERE place = 4",
    "id that is a number": "UPDATE acknowledged SET id = x'ff' WHERE place = 4",
    "other count": "UPDATE acknowledged SET events = 2 WHERE place = 4",
    "graph gone": "DELETE FROM graph WHERE name = 'now'",
    "graphs gone": "DELETE FROM graph",
    "reference gone": "DELETE FROM graph WHERE name != 'now'",
    "graph cut": "UPDATE graph SET content = substr(content, 1, 100) WHERE name = 'now'",
    "graph is text": "UPDATE graph SET content = 'text' WHERE name = 'now'",
    "graph of another name": "UPDATE graph SET name = 'then' WHERE name = 'now'",
    "state gone": "DELETE FROM about WHERE name = 'state'",
    "state is a list": "UPDATE about SET value = '[]' WHERE name = 'state'",
    "state is no JSON": "UPDATE about SET value = '{' WHERE name = 'state'",
    "state is empty": "UPDATE about SET value = '{}' WHERE name = 'state'",
    "state lacks types": 'UPDATE about SET value = replace(value, \'"number": 8\', \'"number": "8"\')',
    "about gone": "DELETE FROM about",
    "other version": "UPDATE about SET value = '1' WHERE name = 'format'",
    "later version": "UPDATE about SET value = '6' WHERE name = 'format'",
    "no version": "DELETE FROM about WHERE name = 'format'",
    "other model": "UPDATE about SET value = 'x' WHERE name = 'model'",
    "table gone": "DROP TABLE acknowledged",
    "table more": "CREATE TABLE more (x)",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON batch BEGIN DELETE FROM batch; END",
    "view": "CREATE VIEW v AS SELECT * FROM batch",
    "other column": "ALTER TABLE batch ADD COLUMN more TEXT",
}


@pytest.mark.parametrize("statement", ALTERED.values(), ids=ALTERED)
def test_rows_that_were_altered(journal, killed, statement) -> None:
    with sqlite3.connect(journal) as database:
        database.execute(statement)
    database.close()
    must_be_refused_or_whole(journal, killed)


def reseal(journal: Path, change) -> None:
    """Writes another graph into a journal, with digests that match, as somebody who knows the format can."""
    with sqlite3.connect(journal) as database:
        (blob,) = database.execute("SELECT content FROM graph WHERE name = 'now'").fetchone()
        length = int.from_bytes(blob[:8], "little")
        header = json.loads(json.loads(blob[8 : 8 + length])["__metadata__"]["header"])
        arrays = {name: array.copy() for name, array in safetensors.numpy.load(blob).items()}
        changed = change(header, arrays)
        if not isinstance(changed, bytes):
            header, arrays = changed or (header, arrays)
            changed = safetensors.numpy.save(arrays, {"header": json.dumps(header)})
        database.execute("UPDATE graph SET content = ? WHERE name = 'now'", [changed])
        (text,) = database.execute("SELECT value FROM about WHERE name = 'state'").fetchone()
        stated = json.loads(text)
        stated["chain"] = stated["graphs"]["now"] = hashlib.sha256(changed).hexdigest()
        for number, batch_id, events in database.execute("SELECT number, id, events FROM batch ORDER BY number"):
            stated["chain"] = _linked(stated["chain"], number, batch_id, events)
        database.execute("UPDATE about SET value = ? WHERE name = 'state'", [json.dumps(stated)])
    database.close()


def put(**values):
    return lambda header, arrays: ({**header, **values}, arrays)


def array(name, value):
    return lambda header, arrays: (header, {**arrays, name: value})


NONSENSE = {
    "header is a list": lambda header, arrays: ([], arrays),
    "header is deep": lambda header, arrays: (json.loads("[" * 500 + "]" * 500), arrays),
    "no graph": lambda header, arrays: b"nothing",
    "no arrays": lambda header, arrays: (header, {}),
    "unknown task": put(task="edge"),
    "task of sets": put(task="graph"),
    "number is text": put(number="0"),
    "number is negative": put(number=-1),
    "number is larger": put(number=3),
    "too few names": put(names=IDS[:3]),
    "names twice": put(names=[IDS[0]] * 12),
    "names are lists": put(names=[[1]] * 12),
    "sizes": put(sizes=[3]),
    "sizes are negative": put(sizes=[-5]),
    "kinds are code": put(kinds={"x": "load"}),
    "kinds are missing": put(kinds={}),
    "with_ids": put(with_ids=[]),
    "ends outside": array("ends", np.array([[0], [99]])),
    "ends negative": array("ends", np.array([[0], [-1]])),
    "ends are numbers": array("ends", np.array([0.5, 1.0])),
    "features are not finite": array("x", np.full((12, 5), np.nan)),
    "features are narrow": array("x", np.ones((12, 2))),
    "features are text": array("x", np.zeros((12, 5), dtype=np.uint8)),
    "targets twice": array("rows", np.zeros(12, dtype=np.int64)),
    "targets outside": array("rows", np.array([99])),
    "a value of edges that was not there": array("value/edge_weight", np.ones(3)),
}


@pytest.mark.parametrize("change", NONSENSE.values(), ids=NONSENSE)
def test_a_resealed_graph_that_makes_no_sense(journal, killed, change) -> None:
    reseal(journal, change)
    try:
        with opened(journal) as live:
            assert_current(live)  # it is a graph after all: then what is stated about it must be true
    except ac.errors.AgnncertError:
        pass
    (journal.parent / "j").write_bytes((killed[0] / "j").read_bytes())
    with opened(journal) as live:
        assert state(live) == killed[1]


def test_no_votes_labels_or_radii_are_read_from_a_journal(journal, killed) -> None:
    """A resealed snapshot with other votes, labels and radii states nothing that graph and model do not say."""

    def forged(header, arrays):
        names = ("vote", "label", "radius", "stable", "cast", "no_edge", "close", "home", "key", "cell")
        lies = {name: np.full(12, 4, dtype=np.int64) for name in names}
        return {**header, **{name: 4 for name in names}}, {**lies, **arrays}

    reseal(journal, forged)
    with opened(journal) as live:
        assert state(live) == killed[1]
        assert_current(live)


def test_a_resealed_reference_with_another_graph_is_refused(journal) -> None:
    with sqlite3.connect(journal) as database:
        (name,) = database.execute("SELECT name FROM graph WHERE name != 'now'").fetchone()
        (blob,) = database.execute("SELECT content FROM graph WHERE name = 'now'").fetchone()
        arrays = safetensors.numpy.load(blob)
        length = int.from_bytes(blob[:8], "little")
        header = json.loads(blob[8 : 8 + length])["__metadata__"]
        arrays["x"] = arrays["x"] + 1
        forged = safetensors.numpy.save(arrays, header)
        database.execute("UPDATE graph SET content = ? WHERE name = ?", [forged, name])
        (text,) = database.execute("SELECT value FROM about WHERE name = 'state'").fetchone()
        stated = json.loads(text)
        stated["graphs"][name] = hashlib.sha256(forged).hexdigest()
        database.execute("UPDATE about SET value = ? WHERE name = 'state'", [json.dumps(stated)])
    database.close()
    with pytest.raises(JournalError, match="another graph than its digest says"):
        opened(journal)


def test_a_reference_is_the_same_difference_after_a_restart(tmp_path) -> None:
    """What is computed from two graphs is what was followed event by event."""
    path, events = tmp_path / "j", agnncert_live.Event
    with opened(path) as live:
        reference = live.reference()
        live.apply([events("add_edge", *PAIRS[0]), events("add_edge", *PAIRS[1], directed=True)])
        live.apply([events("add_node", "new", value=[1.0] * 5), events("add_edge", "new", IDS[0])])
        live.apply([events("change_features", IDS[3], value=[2.0] * 5), events("delete_node", IDS[5])])
        u, v = (IDS[k] for k in DATA.edge_index[:, 0].tolist())
        live.apply([events("change_edge", u, v, 3), events("add_edge", IDS[2], IDS[2])], skip_bad=True)
        live._snapshot()
        followed = live._references[reference.claim.digests["graph"]]
        pairs, nodes = dict(followed.pairs), dict(followed.nodes)
        spent = [live.spent(target, reference) for target in IDS if target in live]
    with opened(path) as live:
        found = live._references[reference.claim.digests["graph"]]
        assert found.pairs == pairs
        assert found.nodes == nodes
        assert [live.spent(target, reference) for target in IDS if target in live] == spent


def test_a_journal_that_is_in_use_stays_in_use(journal, monkeypatch) -> None:
    connect = sqlite3.connect
    with opened(journal) as live:
        monkeypatch.setattr(sqlite3, "connect", lambda *given, **how: connect(*given, **{**how, "timeout": 0.05}))
        for _ in range(2):
            with pytest.raises(JournalError, match="in use by another process"):
                opened(journal)
        assert live.apply(agnncert_live.Event("add_edge", *PAIRS[9])).number == 9


def test_old_ids_are_forgotten_and_their_digest_follows(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("agnncert_live.journal.REMEMBERED", 500)
    journal = Journal(tmp_path / "j", {})
    journal._database.execute("PRAGMA synchronous=OFF")
    journal.save({"number": 0}, {"x": np.zeros(1)})
    for number in range(1_001):
        journal.write(0, [], f"batch {number}", Acknowledged(0))
    journal.close()
    kept = Journal(tmp_path / "j", {}).load()
    assert kept is not None
    assert list(kept.acknowledged) == [f"batch {number}" for number in range(500, 1_001)]
