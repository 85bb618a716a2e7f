"""Tables of events in many files and pieces: the same graph to the last bit, and what is wrong with a row is said."""

import numpy as np
import pandas as pd
import pytest
import torch

import agnncert as ac
from agnncert.datasets import table_store
from agnncert.datasets.encoding_columns import Column
from agnncert.datasets.event_summary import Events, EventSummary, Quantity
from agnncert.errors import DatasetError, MissingPackage

ROLES = {"event_time": "at", "event_key": "key"}
VALUES = ["count", "log(sum(amount))", "mean(log(amount))", "last(amount)", "max(amount)", "mean(hour)", "mean(cur)"]


def table(number: int, accounts: int = 40) -> pd.DataFrame:
    """Events among few accounts, so that those of a pair are spread over all pieces."""
    rng = np.random.default_rng(0)
    ends = rng.integers(accounts, size=(number, 2))
    ends[:, 1] = np.where(ends[:, 0] == ends[:, 1], (ends[:, 1] + 1) % accounts, ends[:, 1])
    return pd.DataFrame(
        {
            "key": [f"k{row}" for row in range(number)],
            "source": [f"a{end}" for end in ends[:, 0]],
            "target": [f"a{end}" for end in ends[:, 1]],
            "amount": rng.lognormal(3, 2, number).round(2),
            "cur": rng.choice(["EUR", "USD", "GBP"], number),
            "at": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(10**7, size=number), unit="s"),
        }
    )


@pytest.fixture(scope="module")
def events():
    return table(7000)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(table_store, "BATCH", 1000)


def written(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False, date_format="%Y-%m-%dT%H:%M:%S")
    else:
        frame.to_parquet(path, index=False)
    return path


def assert_equal(one, other) -> None:
    for name in ("edge_index", "edge_totals", "edge_attr", "event_keys", "x"):
        assert torch.equal(one[name], other[name]), name
    assert one.node_id == other.node_id
    assert one.encoding.digest == other.encoding.digest


def test_pieces_have_the_totals_that_the_events_have_one_by_one(events, tmp_path, small_pieces) -> None:
    data = ac.load_events(events=written(events, tmp_path / "e.csv"), **ROLES, values=VALUES)
    summary = data.encoding.events
    totals = {}
    for row in events.itertuples():
        entries = {"key": row.key, "amount": row.amount, "cur": row.cur, "at": row.at.isoformat()}
        pair = row.source, row.target
        before = totals.get(pair, np.zeros(summary.num_totals, dtype=np.int64))
        totals[pair] = summary.with_event(before, summary.read_entries(entries))
    ends = [(data.node_id[u], data.node_id[v]) for u, v in data.edge_index.T.tolist()]
    expected = np.stack([totals.get(pair, np.zeros(summary.num_totals, dtype=np.int64)) for pair in ends])
    assert set(totals) <= set(ends)
    assert np.array_equal(data.edge_totals.numpy(), expected)
    assert data.edge_attr[:, : summary.width].tolist() == summary.edge_values(expected).tolist()
    assert data.repeated_edges == len(events) - len(totals)


def test_any_format_and_any_number_of_files_is_one_graph(events, tmp_path, small_pieces) -> None:
    whole = ac.load_events(events=written(events, tmp_path / "e.csv"), **ROLES, values=VALUES)
    assert_equal(ac.load_events(events=written(events, tmp_path / "e.parquet"), **ROLES, values=VALUES), whole)
    for number, part in enumerate(np.array_split(np.arange(len(events)), 3)):
        suffix = ".parquet" if number == 1 else ".csv"
        written(events.iloc[part], tmp_path / "bank" / "events" / f"{number}{suffix}")
    assert_equal(ac.load_events(tmp_path / "bank", **ROLES, values=VALUES), whole)
    shuffled = events.sample(frac=1, random_state=1)[events.columns[::-1]]
    assert_equal(ac.load_events(events=written(shuffled, tmp_path / "s.csv"), **ROLES, values=VALUES), whole)


@pytest.mark.parametrize(
    ("entries", "kind", "categories"),
    [
        (["7", "8.5"], "number", ()),
        (["7", "x"], "category", ("7", "x")),
        (["", "True"], "number", ()),
        (["True", "x"], "category", ("True", "x")),
        (["NA", "x "], "category", ("x",)),
        (["1.50", "2"], "number", ()),
    ],
)
def test_the_kind_of_a_column_is_that_of_all_its_entries(tmp_path, small_pieces, entries, kind, categories) -> None:
    texts = [entries[0]] * 3000 + [entries[1]] * 3000
    lines = [f"a{row % 50},b{row % 60},{text}" for row, text in enumerate(texts)]
    (tmp_path / "e.csv").write_text("\n".join(["source,target,what", *lines]) + "\n", encoding="utf-8")
    column = ac.load_events(events=tmp_path / "e.csv").encoding.edges[0]
    assert (column.kind, column.categories) == (kind, categories)
    assert column.gaps == ("" in entries or "NA" in entries)


def test_numbers_that_are_categories_are_written_as_in_a_table_of_nodes(tmp_path) -> None:
    (tmp_path / "e.csv").write_text("source,target,code\na,b,1.0\nb,c,007\nc,a,2.50\n", encoding="utf-8")
    data = ac.load_events(events=tmp_path / "e.csv", encode={"code": "category"})
    assert data.encoding.edges[0].categories == ("1", "2.5", "7")


@pytest.mark.parametrize(
    "at", ["2026-01-01T12:00:00Z", "2026-01-01 13:00:00+01:00", "2026-01-01T12", "2026-01-01 12:00"]
)
def test_a_date_is_the_moment_that_a_live_graph_reads(tmp_path, at) -> None:
    (tmp_path / "e.csv").write_text(f"source,target,at\na,b,2025-12-31\na,b,{at}\n", encoding="utf-8")
    data = ac.load_events(events=tmp_path / "e.csv", event_time="at", values=["last(hour)"])
    assert data.edge_attr[0, :2].tolist() == pytest.approx([0, -1], abs=1e-6)  # noon
    summary = data.encoding.events
    assert summary.read_entries({"at": at}).time.tolist() == [int(data.edge_totals[0, summary._totals[-2].place][0])]


HEADER = "key,source,target,amount\n"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("1,a,b,5\n2,a,b\n", "e.csv: row 2 has 3 fields, the header 4"),
        ("1,a,b,5\n2,a,b,5,6\n", "e.csv cannot be read"),
        ('1,a,b,5\n2,"a,b,5\n', "e.csv cannot be read|row 2 has 2 fields"),
        ("1,a,b,5\n2,a,\0b,5\n", "NUL character in line 3"),
        ("1,a,b,5\n2,a,\xff,5\n", "e.csv cannot be read"),
        ("1,a,b,5\n2,a,,5\n", 'column "target" is empty in row 2'),
        ("1,a,b,5\n,a,b,5\n", 'column "key" is empty in row 2'),
        ("1,a,b,5\n2,a,b ,5\n", "column \"target\" says 'b ' in row 2: an id of events"),
        ("1,a,b,5\n" + "x" * 1001 + ",a,b,5\n", 'column "key" says .* in row 2: an id of events'),
        ("1,a,b,5\n2,a,b,inf\n", 'column "amount" says "inf" in row 2: expected a finite number'),
        ("", "there is a header but no event"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(tmp_path, rows, words) -> None:
    (tmp_path / "e.csv").write_bytes((HEADER + rows).encode("latin-1"))
    with pytest.raises(DatasetError, match=words):
        ac.load_events(events=tmp_path / "e.csv", event_key="key")


def test_an_irregular_table_is_read_as_small_tables_are(tmp_path) -> None:
    (tmp_path / "e.csv").write_text("\ufeffkey, source; target\n", encoding="utf-8")
    text = '\ufeffkey; source; target; amount\n1; "a;b"; c; 5\n\n2; c; "a;b"; 7\n'
    (tmp_path / "e.csv").write_text(text, encoding="utf-8")
    data = ac.load_events(events=tmp_path / "e.csv", event_key="key", values=["sum(amount)"])
    assert data.node_id == ["a;b", "c"]
    assert data.edge_attr.tolist() == [[5, 7], [7, 5]]


def test_files_of_a_folder_have_the_same_columns_and_rows_are_counted_in_each(tmp_path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    with pytest.raises(DatasetError, match="holds no file of"):
        ac.load_events(events=folder)
    (folder / "1.csv").write_text(HEADER + "1,a,b,5\n2,a,b,6\n", encoding="utf-8")
    (folder / "2.csv").write_text("amount,target,source,key\n5,b,,3\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r'2\.csv: column "source" is empty in row 1'):
        ac.load_events(events=folder, event_key="key")
    (folder / "2.csv").write_text("amount,target,source,key\n7,b,a,2\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r'the first is "2" \(row 2 of 1.csv, row 1 of 2.csv\)'):
        ac.load_events(events=folder, event_key="key")
    (folder / "2.csv").write_text("size,target,source,key\n7,b,a,2\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"2\.csv has other columns than 1.csv: they differ in amount, size"):
        ac.load_events(events=folder, event_key="key")


def test_whole_numbers_of_parquet_are_ids_in_their_order(tmp_path) -> None:
    frame = pd.DataFrame({"source": [10, 9], "target": [9, 100], "amount": [1.5, 2.5]})
    data = ac.load_events(events=written(frame, tmp_path / "e.parquet"))
    assert data.node_id.tolist() == [9, 10, 100]
    texts = ac.load_events(events=written(frame.astype({"target": str}), tmp_path / "t.parquet"))
    assert texts.node_id.tolist() == [10, 100, 9]  # sorted as text


def test_a_sum_that_no_number_holds_is_refused_instead_of_wrapping_around() -> None:
    amount = Column("amount", "number")
    summary = EventSummary(("sum(amount)",), None, False, True, (amount,), (0,))
    many = np.full((2049, 1), 2**52, dtype=np.int64)  # 2049 · 2^52 is more than 2^63
    events = Events({Quantity("amount"): many}, np.zeros(len(many), dtype=np.int64))
    with pytest.raises(DatasetError, match="too large to be added up exactly"):
        summary.part_totals(events, np.zeros(len(many), dtype=np.int64))


def test_progress_says_how_far_reading_is(events, tmp_path, small_pieces) -> None:
    seen = []
    ac.load_events(events=written(events, tmp_path / "e.csv"), **ROLES, progress=seen.append)
    by_step = {step.what: step for step in seen}
    assert {"reading e.csv", "joining the events of each pair"} == set(by_step)
    assert all(step.done == step.total for step in by_step.values())
    assert by_step["reading e.csv"].total == len(events)
    assert len(seen) > 6


def test_without_the_engine_its_name_and_extra_are_said(events, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(MissingPackage, match=r"reading tables of events needs duckdb.*\[data\]"):
        ac.load_events(events=written(events, tmp_path / "e.csv"), **ROLES)
