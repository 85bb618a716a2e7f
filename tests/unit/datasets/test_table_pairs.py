"""Tables of pairs: what is read from them, and what is refused with a reason."""

from pathlib import Path

import pytest
import torch

import agnncert as ac
from agnncert.datasets.encoding import Encoding
from agnncert.datasets.splits import dataset_digest
from agnncert.errors import DatasetError

NODES = "id,age\n" + "".join(f"a{k},{20 + k}\n" for k in range(8))
EDGES = "source,target\n" + "".join(f"a{k},a{(k + 1) % 8}\n" for k in range(8))
PAIRS = "source,target,amount,label\n" + "".join(
    f"a{k},a{(k + 3) % 8},{10 * k},{'bad' if k % 2 else 'good'}\n" for k in range(8)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("nodes", NODES), ("edges", EDGES), ("pairs", PAIRS)):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.csv").write_text(text, encoding="utf-8")


def test_pairs_are_read_as_pyg_names_them(folder) -> None:
    data = ac.load_tables(folder)
    assert data.edge_label_index.tolist() == [list(range(8)), [(k + 3) % 8 for k in range(8)]]
    assert data.class_names == ["bad", "good"]
    assert data.edge_label.tolist() == [1, 0] * 4
    assert data.edge_label_attr.tolist() == [[10.0 * k] for k in range(8)]
    assert "y" not in data
    assert sum(int(data[name].sum()) for name in ("train_mask", "val_mask", "test_mask")) == 8
    assert data.num_edges == 16  # a pair is no edge by being asked about


def test_a_split_is_read_from_a_column_or_made_by_time(folder) -> None:
    rows = PAIRS.splitlines()
    parts = ["train"] * 4 + ["val"] * 2 + ["test"] * 2
    write(folder, "pairs", "\n".join([f"{rows[0]},split", *(f"{r},{p}" for r, p in zip(rows[1:], parts, strict=True))]))
    stated = ac.load_tables(folder)
    assert stated.test_mask.nonzero().view(-1).tolist() == [6, 7]
    assert stated.edge_label_attr.shape == (8, 1)
    write(folder, "pairs", "\n".join([f"{rows[0]},day", *(f"{r},{8 - k}" for k, r in enumerate(rows[1:]))]))
    by_time = ac.load_tables(folder, time="day")
    assert by_time.test_mask.nonzero().view(-1).tolist() == [0, 1]
    assert by_time.edge_label_attr.shape == (8, 1)


def test_both_directions_of_a_pair_are_in_the_same_part_of_a_drawn_split(folder) -> None:
    before = ac.load_tables(folder)
    rows = [row.split(",") for row in PAIRS.splitlines()[1:]]
    back = [",".join([b, a, amount, "" if a == "a2" else label]) for a, b, amount, label in rows]
    write(folder, "pairs", PAIRS + "\n".join(back) + "\n")
    data = ac.load_tables(folder)
    for name in ("train_mask", "val_mask", "test_mask"):
        there, again = data[name][:8], data[name][8:]
        assert there.tolist() == before[name].tolist()  # a reverse pair moves no other one
        assert again.tolist() == [inside and row != 2 for row, inside in enumerate(there.tolist())]


def test_a_label_of_nodes_is_no_feature_where_pairs_are_asked_about(folder) -> None:
    rows = NODES.splitlines()
    write(folder, "nodes", "\n".join([f"{rows[0]},label", *(f"{row},1" for row in rows[1:])]))
    assert ac.load_tables(folder).x.shape == (8, 1)


def test_pairs_without_labels_have_neither_classes_nor_masks(folder) -> None:
    write(folder, "pairs", "source,target,amount\na0,a1,3\n")
    data = ac.load_tables(folder)
    assert data.edge_label_index.tolist() == [[0], [1]]
    assert "edge_label" not in data
    assert "train_mask" not in data


def test_values_are_encoded_by_what_training_pairs_show_and_read_back(folder) -> None:
    rows = PAIRS.splitlines()
    write(
        folder,
        "pairs",
        "\n".join([f"{rows[0]},how", *(f"{r},{'app' if k < 5 else 'web'}" for k, r in enumerate(rows[1:]))]),
    )
    data = ac.load_tables(folder, encode="auto")
    assert [column.name for column in data.encoding.pairs] == ["amount", "how"]
    again = ac.load_tables(folder, encode=Encoding.from_json(data.encoding.to_json()))
    assert torch.equal(again.edge_label_attr, data.edge_label_attr)
    chosen = ac.load_tables(folder, pair_features=["amount"])
    assert chosen.edge_label_attr.shape == (8, 1)


def test_every_part_of_a_table_of_pairs_changes_the_digest_of_the_data(folder) -> None:
    first = dataset_digest(ac.load_tables(folder))
    for old, new in (("a0,a3,0,good", "a0,a4,0,good"), ("a0,a3,0,good", "a0,a3,0.25,good"), ("0,good", "0,bad")):
        write(folder, "pairs", PAIRS.replace(old, new, 1))
        assert dataset_digest(ac.load_tables(folder)) != first, new
    write(folder, "pairs", PAIRS)
    assert dataset_digest(ac.load_tables(folder)) == first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PAIRS + "a0,a3,9,bad\n", 'listed twice: "a0" and "a3" (rows 1 and 9)'),
        (PAIRS + "a5,a5,9,bad\n", 'row 9 pairs "a5" with itself'),
        (PAIRS + "a5,zz,9,bad\n", '1 end(s) of pairs are ids that are not in the table of nodes: "zz" (row 9)'),
        (PAIRS.replace("target", "to", 1), 'no column "target"'),
        (PAIRS.replace(",0,good", ",much,good", 1), "not numbers: amount"),
        (PAIRS.replace("label", "y", 1), 'no column "label" but one called "y"'),
        ("source,target,label\n", "a header but no row"),
        (PAIRS + "a0,a5,9\n", "row 9 has 3 fields, the header 4"),
        (PAIRS + "a0,a5\n\n", "row 9 has 2 fields, the header 4"),
    ],
    ids=["twice", "itself", "unknown", "column", "text", "label", "empty", "no label", "no value"],
)
def test_what_is_wrong_is_named(folder, text, said) -> None:
    write(folder, "pairs", text)
    with pytest.raises(DatasetError) as raised:
        ac.load_tables(folder)
    assert said in str(raised.value)


def test_rows_that_are_cut_short_are_refused_in_every_table_and_empty_entries_are_not(folder) -> None:
    write(folder, "pairs", PAIRS + '\n  \n"a0","a5",9,\n')
    assert int(ac.load_tables(folder).edge_label[-1]) == -1
    write(folder, "nodes", NODES + "a8\n")
    with pytest.raises(DatasetError, match=r"nodes.csv: row 9 has 1 field, the header 2"):
        ac.load_tables(folder, encode="auto")


def test_graphs_and_pairs_together_and_trust_without_direction_are_refused(folder) -> None:
    write(folder, "graphs", "graph,label\ng,1\n")
    with pytest.raises(DatasetError, match="a table of graphs and one of pairs"):
        ac.load_tables(folder)
    (folder / "graphs.csv").unlink()
    write(folder, "edges", EDGES.replace("\n", ",1\n").replace("target,1", "target,known") + "a0,a2,0\n")
    with pytest.raises(DatasetError, match="edges must have a direction"):
        ac.load_tables(folder, trusted="known")


def test_trusted_edges_are_marked_and_none_is_left_out(folder) -> None:
    write(folder, "edges", "source,target,known\na0,a1,1\na1,a0,0\na1,a2,1\n")
    data = ac.load_tables(folder, trusted="known", directed=True)
    assert data.edge_index.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert data.edge_attr[:, -1].tolist() == [1.0, 0.0, 1.0]
