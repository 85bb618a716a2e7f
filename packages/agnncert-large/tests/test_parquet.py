"""Parquet tables in pieces: the graph of ``load_tables``, whatever the types of ids, and errors that name what is wrong."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import agnncert as ac
from agnncert_large import parquet

NAMES = ["a", "b", "07", "7", "e", "f"]
PAIRS = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (1, 0)]


def nodes(ids, **columns) -> pa.Table:
    usual = {
        "id": ids, "one": np.arange(6.0), "two": np.arange(6), "label": ["x", "y", "x", None, "y", "x"],
        "split": ["train", "train", "val", "test", " Test", ""],
    }  # fmt: skip
    return pa.table({**usual, **columns})


def edges(ids, **columns) -> pa.Table:
    return pa.table({"source": [ids[u] for u, _ in PAIRS], "target": [ids[v] for _, v in PAIRS], **columns})


def converted(folder, some_nodes, some_edges, **options):
    pq.write_table(some_nodes, folder / "nodes.parquet")
    pq.write_table(some_edges, folder / "edges.parquet")
    return ac.convert_parquet(folder / "nodes.parquet", folder / "edges.parquet", folder / "g", **options)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(parquet, "NODE_ROWS", 4)
    monkeypatch.setattr(parquet, "EDGE_ROWS", 2)


@pytest.mark.parametrize(
    "ids", [NAMES, [5, -3, 2**40, 7, 0, 1], [2**64 - 1, 1, 2, 3, 4, 5], ["1", "2", "3", "4", "5", "6"]], ids=str
)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_graph_that_load_tables_reads(tmp_path, ids, weighted):
    kind = pa.uint64() if ids[0] == 2**64 - 1 else None
    weight = {"weight": [1.5, 2.0, 3.0, 4.0, 5.0, 1.5]} if weighted else {}
    data = converted(tmp_path, nodes(pa.array(ids, kind)), edges(pa.array(ids, kind), **weight))
    expected = ac.load_tables(tmp_path)
    assert ac.dataset_digest(data) == ac.dataset_digest(expected)
    assert data.class_names == expected.class_names == ["x", "y"]
    assert data.name == "g"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [(pa.int8(), pa.string()), (pa.string(), pa.int64()), (pa.int32(), pa.uint64()), (pa.large_string(), pa.int16())],
    ids=str,
)
def test_both_tables_may_store_the_same_ids_in_different_types(tmp_path, mine, theirs):
    ids = pa.array([4, 9, 1, 0, 3, 8])
    table = nodes(ids.cast(mine))
    data = converted(tmp_path, table, edges(ids.cast(theirs)))
    assert data.node_id.tolist() == ids.to_pylist()
    assert data.num_edges == 10


def test_text_may_be_stored_as_a_dictionary(tmp_path):
    ids = pa.array(NAMES).dictionary_encode()
    assert converted(tmp_path, nodes(ids), edges(ids)).node_id == NAMES


def test_features_may_be_lists(tmp_path):
    wide = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(18.0)), 3)
    listed = pa.array([[float(k), 1.0] for k in range(6)])
    data = converted(tmp_path, nodes(NAMES, wide=wide, listed=listed), edges(NAMES), features=["wide", "one", "listed"])
    assert data.x[2].tolist() == [6, 7, 8, 2, 2, 1]


def test_a_folder_of_files_is_one_table(tmp_path):
    (tmp_path / "nodes").mkdir()
    table = nodes(NAMES)
    pq.write_table(table[:3], tmp_path / "nodes" / "1.parquet")
    pq.write_table(table[3:], tmp_path / "nodes" / "2.parquet")
    pq.write_table(edges(NAMES), tmp_path / "edges.parquet")
    data = ac.convert_parquet(tmp_path / "nodes", tmp_path / "edges.parquet", tmp_path / "g", name="mine")
    assert data.node_id == NAMES
    assert (data.name, data.x.shape) == ("mine", (6, 2))


def test_directed_edges_go_one_way(tmp_path):
    data = converted(tmp_path, nodes(NAMES), edges(NAMES), directed=True)
    assert sorted(map(tuple, data.edge_index.t().tolist())) == sorted(PAIRS)


def test_without_labels_or_with_a_split_that_is_drawn(tmp_path):
    table = nodes(NAMES, label=["x", "y"] * 3).drop_columns(["split"])
    data = converted(tmp_path, table, edges(NAMES), seed=3)
    assert ac.dataset_digest(data) == ac.dataset_digest(ac.load_tables(tmp_path, seed=3))
    (tmp_path / "other").mkdir()
    plain = converted(tmp_path / "other", table.drop_columns(["label"]), edges(NAMES), label=None)
    assert "y" not in plain
    assert "train_mask" not in plain


MIXED = {
    "opened": pa.array(pd.to_datetime(["2024-01-01", "2024-07-01", None, "2025-01-01", "2024-03-01", "2023-01-01"])),
    "branch": ["north", "south", "north", None, "east", "south"],
    "told": ["2024-01-01", "2024-07-01", "2025-02-03", "2025-01-01", None, "2023-01-01"],
    "age": pa.array([30, None, 41, 2**60, 17, 25]),
    "code": pa.array([2**60 + 1, 2**60 + 1, 4, 2**60 + 1, None, 4]),
    "kept": pa.array([True, False, None, True, True, False]),
    "kind": pa.array(["p", "q", "p", "p", None, "r"]).dictionary_encode(),
}


@pytest.mark.parametrize("encode", ["auto", {"branch": "category", "two": "category"}], ids=["auto", "stated"])
def test_categories_dates_and_gaps_become_the_features_of_load_tables(tmp_path, encode):
    """All columns but one: whole numbers beyond 2 to the power of 53 are rounded by load_tables where one is missing."""
    mixed = {name: column for name, column in MIXED.items() if name != "code"}
    data = converted(tmp_path, nodes(NAMES, **mixed), edges(NAMES), encode=encode)
    expected = ac.load_tables(tmp_path, encode=encode)
    assert ac.dataset_digest(data) == ac.dataset_digest(expected)
    assert data.encoding == expected.encoding.to_json()
    assert data.x.shape[1] == len(expected.encoding.features) > len(mixed) + 2
    pq.write_table(nodes(NAMES, **mixed).slice(3), tmp_path / "later.parquet")
    pq.write_table(edges(NAMES).slice(4, 1), tmp_path / "few.parquet")
    given = {"nodes": tmp_path / "later.parquet", "edges": tmp_path / "few.parquet", "encode": expected.encoding}
    later = ac.convert_parquet(folder=tmp_path / "later", **given)
    assert later.x.tolist() == ac.load_tables(**given).x.tolist() == expected.x[3:].tolist()
    assert later.encoding == data.encoding


def test_a_row_is_encoded_by_itself_whatever_else_is_missing_in_its_piece(tmp_path):
    table = nodes(NAMES, code=MIXED["code"])
    data = converted(tmp_path, table, edges(NAMES), encode={"code": "category"}, features=["code"])
    assert data.x[[0, 1, 3], 0].tolist() == [1, 1, 1]
    assert data.x[:, 0].sum() == 3


def test_every_column_that_cannot_be_encoded_is_named(tmp_path):
    ids = [f"n{k}" for k in range(400)]
    texts = {name: [f"{name} {k}" for k in range(400)] for name in ("note", "street")}
    table = pa.table({"id": ids, "one": np.arange(400.0), "label": ["x", "y"] * 200, **texts})
    pairs = pa.table({"source": ids[:1], "target": ids[1:2]})
    with pytest.raises(ac.errors.DatasetError, match=r'(?s)2 problems.*"note" has .*"street" has .*no category'):
        converted(tmp_path, table, pairs, encode="auto")
    assert not (tmp_path / "g").exists()
    with pytest.raises(ac.errors.DatasetError, match=r"2 feature column.*note, street.*encode=\"auto\""):
        converted(tmp_path, table, pairs)


def test_an_encoding_with_columns_of_edges_is_refused(tmp_path):
    pq.write_table(nodes(NAMES), tmp_path / "nodes.parquet")
    pq.write_table(edges(NAMES, paid=["card", "cash", "card", "cash", "card", "card"]), tmp_path / "edges.parquet")
    both = ac.load_tables(tmp_path, encode="auto", edge_features=["paid"], repeated="mean").encoding
    with pytest.raises(ac.errors.DatasetError, match="the encoding has columns of edges, paid"):
        converted(tmp_path, nodes(NAMES), edges(NAMES), encode=both)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": ["a", "b", "c", "7", "7", "f"]}, '1 id.s. in column "id" occur twice: "7" .rows 4 and 5.'),
        ({"id": ["a", None, "07", "7", "e", "f"]}, 'column "id" is empty in row 2'),
        ({"id": np.arange(6) + 0.5}, 'column "id" says 0.5 in row 1: expected whole numbers'),
        ({"one": ["p"] * 6}, '1 feature column.s. are not numbers: one .for example "p"'),
        ({"one": [1.0, 2, 3, 4, float("nan"), 6]}, 'missing or infinite in row 5 .first: column "one"'),
        ({"one": [[1.0], [2.0, 3.0], [4.0], [1.0], [1.0], [1.0]]}, 'column "one" holds lists of several lengths'),
        ({"split": ["train", "trian", "", "", "", ""]}, 'says "trian": did you mean "train"'),
        ({"split": ["train", "", "", "val", "", ""]}, "row 4: for training or validation but without a label"),
        ({"label": pa.nulls(6, pa.string())}, 'column "label" is empty'),
    ],
)
def test_what_is_wrong_with_nodes_is_said(tmp_path, change, said):
    with pytest.raises(ac.AgnncertError, match=said):
        converted(tmp_path, nodes(**{"ids": NAMES, **change}), edges(NAMES))
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        (
            edges(["a", "b", "07", "zz", "e", "f"]),
            {},
            r'2 end.s. of edges are ids that are not in the table of nodes: "zz" \(row 3\)',
        ),
        (edges(NAMES, weight=[1.0, 2, 3, 4, 5, 6]), {}, "different weights"),
        (edges(NAMES), {"weight": "w"}, 'no column "w"'),
        (edges(NAMES), {"source": "from"}, 'no column "from"'),
        (edges(NAMES), {"label": "lable"}, 'no column "lable".*Did you mean "label"'),
    ],
)
def test_what_is_wrong_with_edges_or_options_is_said(tmp_path, table, options, said):
    with pytest.raises(ac.errors.DatasetError, match=said):
        converted(tmp_path, nodes(NAMES), table, **options)


def test_numbers_that_no_node_has_are_named(tmp_path):
    with pytest.raises(ac.errors.DatasetError, match=r'not in the table of nodes: "99" \(row 3'):
        converted(tmp_path, nodes([1, 2, 3, 4, 5, 6]), edges([1, 2, 3, 99, 5, 6]))


def test_what_is_no_parquet_is_named(tmp_path):
    pd.DataFrame({"id": [1]}).to_csv(tmp_path / "nodes.parquet")
    with pytest.raises(ac.errors.DatasetError, match=r"nodes\.parquet cannot be read as Parquet"):
        ac.convert_parquet(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", tmp_path / "g")
