"""Ids in a user's tables are taken as they stand, whatever the format, or refused by column and row: never rounded."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agnncert.datasets.columns import read_table
from agnncert.datasets.splits import inductive_view
from agnncert.datasets.tables import load_tables
from agnncert.errors import DatasetError
from agnncert.graphs.node_ids import exact_ids

LARGE = [2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]


def csv_ids(folder: Path, ids: list[str]) -> Any:
    quoted = ['"' + name.replace('"', '""') + '"' for name in ids]
    (folder / "nodes.csv").write_text("id,a\n" + "".join(f"{name},1\n" for name in quoted), newline="")
    (folder / "edges.csv").write_text(f"source,target\n{quoted[0]},{quoted[-1]}\n", newline="")
    return load_tables(folder)


def parquet_ids(folder: Path, ids: pa.Array, ends: pa.Array | None = None) -> Any:
    ends = ids.slice(0, 1) if ends is None else ends
    pq.write_table(pa.table({"id": ids, "a": pa.array([1.0] * len(ids))}), folder / "nodes.parquet")
    pq.write_table(pa.table({"source": ends, "target": ids.slice(len(ids) - len(ends))}), folder / "edges.parquet")
    return load_tables(folder)


def names(data: Any) -> list[str]:
    return [str(name) for name in exact_ids(data)]


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\ufeff"), min_size=1, max_size=8)
NUMBERS = st.integers(-(2**100), 2**100).map(str)


@settings(deadline=None, max_examples=60)
@given(ids=st.lists(CELLS | NUMBERS, min_size=2, max_size=6, unique=True))
def test_ids_in_a_csv_file_are_what_stands_there(ids: list[str], tmp_path_factory: Any) -> None:
    data = csv_ids(tmp_path_factory.mktemp("csv"), ids)
    assert names(data) == ids
    assert data.edge_index.tolist() == [[0, len(ids) - 1], [len(ids) - 1, 0]]


@pytest.mark.parametrize(
    "ids",
    [
        [str(n) for n in LARGE],
        ["1e18", "1000000000000000000", "1E18", "1.0", "1"],
        ["007", "7", "+7", "7 ", "-0", "0"],
        ["inf", "nan", "NA", "None", "True", "1_0"],
        ["\u00e9", "e\u0301"],
        [str(10**40), str(10**40 + 1), str(-(10**40))],
    ],
)
def test_texts_that_look_like_one_number_stay_apart(ids: list[str], tmp_path: Path) -> None:
    assert names(csv_ids(tmp_path, ids)) == ids


@pytest.mark.parametrize("header", ['"a\nb",id\n1,007\n2,7\n', "a, id \n1,007\n2,7\n", '"a,b",id\n1,007\n2,7\n'])
def test_an_id_column_is_text_however_the_header_is_written(header: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(header)
    assert read_table(tmp_path / "nodes.csv", ["id"]).filled("id") == ["007", "7"]


def test_a_csv_file_with_a_nul_is_refused_because_text_would_end_there(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_bytes(b"id,a\nx,1\na\0b,1\n")
    (tmp_path / "edges.csv").write_bytes(b"source,target\n")
    with pytest.raises(DatasetError, match=r"nodes\.csv: there is a NUL character in line 3"):
        load_tables(tmp_path)


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([2**53 + 1, -(2**63), 2**63 - 1], pa.int64()),
        pa.array([2**53 + 1, 2**63, 2**64 - 1], pa.uint64()),
        pa.array([Decimal(10**30), Decimal(10**30 + 1), Decimal(7)], pa.decimal128(38, 0)),
        pa.array(["a", "a\0", "007"]),
        pa.array(["a", "a\0", "007"]).dictionary_encode(),
        pa.array([2**62 + 1, 2**62 + 2, 5], pa.int64()).dictionary_encode(),
        pa.array([b"a", b"a\0", "\u00e9".encode()], pa.binary()),
        pa.array(["a", "a\0", "007"], pa.large_string()),
    ],
    ids=lambda array: str(array.type),
)
def test_ids_in_a_parquet_file_are_what_stands_there(ids: pa.Array, tmp_path: Path) -> None:
    expected = [name.decode() if isinstance(name, bytes) else str(name) for name in ids.to_pylist()]
    assert names(parquet_ids(tmp_path, ids)) == expected


def test_a_gap_does_not_round_the_ids_beside_it(tmp_path: Path) -> None:
    graphs = pa.array([2**53 + 1, None, 2**53 + 3], pa.int64())
    pq.write_table(pa.table({"graph": graphs}), tmp_path / "nodes.parquet")
    table = read_table(tmp_path / "nodes.parquet", ["graph"])
    assert table.text("graph") == [str(2**53 + 1), "", str(2**53 + 3)]
    with pytest.raises(DatasetError, match='column "graph" is empty in row 2'):
        table.filled("graph")


@pytest.mark.parametrize(
    "ids",
    [
        np.array([2**53 + 1, 2**63, 2**64 - 1], dtype=np.uint64),
        np.array([2**53 + 1, -(2**63), 0]),
        np.array(["a", "007", "7"]),
        np.array([1.0, 2.0, -(2.0**53) + 1]),
    ],
    ids=lambda array: str(array.dtype),
)
def test_ids_of_any_type_are_what_stands_there(ids: Any, tmp_path: Path) -> None:
    assert names(parquet_ids(tmp_path, pa.array(ids))) == [
        str(int(n)) if ids.dtype.kind == "f" else str(n) for n in ids.tolist()
    ]


@pytest.mark.parametrize(
    ("ids", "row"),
    [
        (np.array([1.0, 2.0**53]), 2),
        (np.array([12345678901234567890.0, 1.0]), 1),
        (np.array([5.0, 7.0, -1e18]), 3),
        (np.array([1, 2**24], dtype=np.float32), 2),
        (np.array([1, 2.5]), 2),
        (np.array([1, np.inf]), 2),
        (np.array([True, False]), 1),
    ],
    ids=repr,
)
def test_numbers_that_may_have_been_rounded_are_refused_by_column_and_row(ids: Any, row: int, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=rf'nodes\.parquet: column "id" says .* in row {row}: .*text'):
        parquet_ids(tmp_path, pa.array(ids))


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([b"a", b"\xff"], pa.binary()),
        pa.array([[1], [2]]),
        pa.array([1.5, 1e18]).dictionary_encode(),
        pa.array([Decimal("1.5"), Decimal("2.0")], pa.decimal128(5, 1)),
        pa.array([1, 2], pa.timestamp("s")),
    ],
    ids=lambda array: str(array.type),
)
def test_ids_of_another_kind_are_refused_by_column_and_row(ids: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r'nodes\.parquet: column "id" says .* in row \d: .*text'):
        parquet_ids(tmp_path, ids)


def test_an_inductive_view_keeps_ids_of_every_kind(tmp_path: Path) -> None:
    data = csv_ids(tmp_path, [str(n) for n in LARGE])
    seen = np.array([True, False, True, True])
    data.train_mask, data.val_mask = data.x.new_tensor(seen) > 0, data.x.new_tensor([0, 0, 0, 0]) > 0
    for ids in (LARGE, tuple(LARGE), np.array(LARGE, dtype=np.uint64), np.array(LARGE, dtype=object)):
        data.node_id = ids
        assert list(exact_ids(inductive_view(data))) == [LARGE[0], LARGE[2], LARGE[3]]
