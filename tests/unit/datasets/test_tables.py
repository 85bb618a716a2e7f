"""A user's own tables become graphs, and whatever is wrong with them is said in the user's terms."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from agnncert.datasets.splits import GraphSet
from agnncert.datasets.tables import load_tables
from agnncert.errors import DatasetError

NODES = "id,label,age,score\nann,yes,1,0.5\nbob,no,2,1.5\ncy,yes,3,2.5\n"
EDGES = "source,target\nann,bob\ncy,bob\n"


def write(folder: Path, nodes: str = NODES, edges: str = EDGES, graphs: str | None = None) -> Path:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    if graphs is not None:
        (folder / "graphs.csv").write_text(graphs)
    return folder


def test_tables_of_nodes_and_edges_become_a_graph(tmp_path) -> None:
    data = load_tables(write(tmp_path))
    assert data.node_id == ["ann", "bob", "cy"]
    assert data.x.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5]]
    assert data.class_names == ["no", "yes"]
    assert data.y.tolist() == [1, 0, 1]
    assert data.num_classes == 2
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.name == tmp_path.name
    assert int((data.train_mask | data.val_mask | data.test_mask).sum()) == 3
    assert "edge_weight" not in data


def test_csv_and_parquet_give_the_same_graph_and_a_matrix_may_be_a_column_of_lists(tmp_path) -> None:
    expected = load_tables(write(tmp_path))
    frames = {"nodes": pd.read_csv(tmp_path / "nodes.csv"), "edges": pd.read_csv(tmp_path / "edges.csv")}
    for kind, frame in frames.items():
        frame.to_parquet(tmp_path / f"{kind}.parquet")
    parquet = load_tables(nodes=tmp_path / "nodes.parquet", edges=tmp_path / "edges.parquet")
    matrix = frames["nodes"][["age", "score"]].to_numpy()
    listed = pd.DataFrame({"id": ["ann", "bob", "cy"], "label": [b"yes", b"no", b"yes"], "x": list(matrix)})
    listed.to_parquet(tmp_path / "listed.parquet")
    lists = load_tables(nodes=tmp_path / "listed.parquet", edges=tmp_path / "edges.parquet")
    for other in (parquet, lists):
        assert other.node_id == expected.node_id
        assert torch.equal(other.x, expected.x)
        assert torch.equal(other.y, expected.y)
        assert torch.equal(other.edge_index, expected.edge_index)
        assert torch.equal(other.train_mask, expected.train_mask)


def test_whole_numbers_are_ids_and_classes_too(tmp_path) -> None:
    data = load_tables(write(tmp_path, "id,label,a\n10,3,0\n7,12,1\n", "source,target\n7,10\n"))
    assert data.node_id.tolist() == [10, 7]
    assert data.class_names == ["3", "12"]
    assert data.y.tolist() == [0, 1]


def test_classes_that_pandas_wrote_as_floats_are_whole_numbers(tmp_path) -> None:
    data = load_tables(write(tmp_path, "id,label,a\na,10.0,0\nb,,1\nc,2.0,0\nd,2,1\n", "source,target\na,b\n"))
    assert data.class_names == ["2", "10"]
    assert data.y.tolist() == [1, -1, 0, 0]


def test_classes_that_are_fractions_stay_text(tmp_path) -> None:
    data = load_tables(write(tmp_path, "id,label,a\na,1.0,0\nb,1.5,1\n", "source,target\na,b\n"))
    assert data.class_names == ["1.0", "1.5"]


def test_ids_in_a_csv_file_are_taken_literally(tmp_path) -> None:
    data = load_tables(write(tmp_path, "id,label,a\n007,x,0\n7,y,1\nNA,x,2\n", "source,target\n007,NA\n"))
    assert data.node_id == ["007", "7", "NA"]
    assert data.edge_index.tolist() == [[0, 2], [2, 0]]


def test_ids_with_a_gap_in_the_other_table_stay_whole_numbers(tmp_path) -> None:
    pd.DataFrame({"id": [1.0, 2.0], "label": [0.0, np.nan], "a": [1, 2]}).to_parquet(tmp_path / "nodes.parquet")
    pd.DataFrame({"source": [1], "target": [2]}).to_parquet(tmp_path / "edges.parquet")
    data = load_tables(tmp_path)
    assert data.node_id.tolist() == [1, 2]
    assert data.y.tolist() == [0, -1]


def test_a_spreadsheet_may_write_semicolons_and_a_byte_order_mark(tmp_path) -> None:
    data = load_tables(write(tmp_path, "\ufeffid; label; a\n1; x; 0\n2; y; 1\n", "source;target\n1;2\n"))
    assert data.node_id.tolist() == [1, 2]
    assert data.class_names == ["x", "y"]


def test_repeated_edges_and_self_loops_are_merged_and_dropped(tmp_path, caplog) -> None:
    edges = "source,target\nann,bob\nbob,ann\nann,bob\ncy,cy\n"
    assert load_tables(write(tmp_path, edges=edges)).edge_index.tolist() == [[0, 1], [1, 0]]
    assert "1 self-loop(s) left out" in caplog.text


def test_directed_edges_stay_as_they_are(tmp_path) -> None:
    data = load_tables(write(tmp_path), directed=True)
    assert data.edge_index.tolist() == [[0, 2], [1, 1]]


def test_weights_follow_their_edges(tmp_path) -> None:
    data = load_tables(write(tmp_path, edges="source,target,weight\ncy,bob,2\nann,bob,5\n"))
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [5, 5, 2, 2]


def test_a_split_column_is_followed(tmp_path) -> None:
    nodes = "id,label,split,a\n1,x,train,0\n2,y,Validation,0\n3,x,test,0\n4,,test,0\n5,y,,0\n"
    data = load_tables(write(tmp_path, nodes, "source,target\n1,2\n"))
    assert data.train_mask.tolist() == [True, False, False, False, False]
    assert data.val_mask.tolist() == [False, True, False, False, False]
    assert data.test_mask.tolist() == [False, False, True, True, False]
    assert data.y.tolist() == [0, 1, 0, -1, 1]


def test_columns_may_have_other_names(tmp_path) -> None:
    nodes = "user,fraud,note,a,b\n1,x,hello,0,1\n2,y,world,2,3\n"
    folder = write(tmp_path, nodes, "from,to,amount\n1,2,9\n")
    data = load_tables(
        folder, id="user", label="fraud", source="from", target="to", weight="amount", features=["b", "a"], name="mine"
    )
    assert data.x.tolist() == [[1, 0], [3, 2]]
    assert data.edge_weight.tolist() == [9, 9]
    assert data.name == "mine"


def test_without_labels_there_are_neither_classes_nor_masks(tmp_path) -> None:
    data = load_tables(write(tmp_path, "id,a\n1,0\n2,1\n", "source,target\n1,2\n"))
    assert "y" not in data
    assert "train_mask" not in data


def test_a_graph_may_have_no_edges(tmp_path) -> None:
    data = load_tables(write(tmp_path, edges="source,target\n"))
    assert data.edge_index.shape == (2, 0)
    assert data.edge_index.dtype == torch.int64


BAD_TABLES = {
    "missing column": ({"nodes": "Idd,label,a\n1,x,0\n"}, r'nodes.csv: there is no column "id". Did you mean "Idd"\?'),
    "missing end": ({"edges": "source,tgt\nann,bob\n"}, r'no column "target". Did you mean "tgt"\?'),
    "empty file": ({"nodes": ""}, "nodes.csv is empty"),
    "no rows": ({"nodes": "id,label,a\n"}, "no row: a graph needs nodes"),
    "double id": ({"nodes": NODES + "bob,no,4,4\n"}, r'"bob" \(rows 2 and 4\)'),
    "id missing": ({"nodes": NODES + ",no,4,4\n"}, 'column "id" is empty in row 4'),
    "unknown id": ({"edges": EDGES + "ann,zoe\nyan,bob\n"}, r'2 end\(s\).*"zoe" \(row 3\), "yan" \(row 4\)'),
    "text feature": ({"nodes": NODES + "dan,no,old,1\n"}, r'not numbers: age \(for example "old" in "age"\)'),
    "NaN feature": ({"nodes": NODES + "dan,no,,1\n"}, 'missing or infinite in row 4 .first: column "age"'),
    "infinite feature": ({"nodes": NODES + "dan,no,4,inf\n"}, 'in row 4 .first: column "score"'),
    "no features": ({"nodes": "id,label\nann,x\nbob,y\ncy,x\n"}, "no column of features"),
    "misspelt label": ({"nodes": NODES.replace("label", "lable")}, 'pass label="lable"'),
    "label called y": ({"nodes": NODES.replace("label,", "y,")}, 'pass label="y"'),
    "empty label": ({"nodes": "id,label,a\nann,,1\nbob,,1\ncy,,1\n"}, "Pass label=None"),
    "unknown part": (
        {"nodes": "id,label,split,a\nann,x,trian,1\n", "edges": "source,target\n"},
        'says "trian": did you mean "train"',
    ),
    "unlabelled training": (
        {"nodes": "id,label,split,a\nann,,train,1\nbob,x,test,1\n", "edges": "source,target\n"},
        "row 1: for training",
    ),
    "row too long": ({"nodes": NODES + "dan,no,1,2,3\n"}, "nodes.csv cannot be read"),
    "all rows too long": ({"nodes": "id,label,a\n1,x,0,0\n2,y,0,0\n"}, "nodes.csv cannot be read"),
    "weight conflict": (
        {"edges": "source,target,weight\nann,bob,1\nbob,ann,2\n"},
        "nodes in rows 1 and 2 of the table of nodes are joined twice, with different weights.*directed=True",
    ),
    "text weight": ({"edges": "source,target,weight\nann,bob,heavy\n"}, "1 weight column.*heavy"),
}


@pytest.mark.parametrize(("tables", "message"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_what_is_wrong_with_a_table_is_said(tables, message, tmp_path) -> None:
    with pytest.raises(DatasetError, match=message):
        load_tables(write(tmp_path, **tables))


def test_a_fractional_id_is_refused(tmp_path) -> None:
    pd.DataFrame({"id": [1.5, 2.0], "a": [1, 2]}).to_parquet(tmp_path / "nodes.parquet")
    pd.DataFrame({"source": [2], "target": [2]}).to_parquet(tmp_path / "edges.parquet")
    with pytest.raises(DatasetError, match=r'column "id" says 1.5 in row 1'):
        load_tables(tmp_path)


def test_a_column_that_was_asked_for_must_be_there(tmp_path) -> None:
    folder = write(tmp_path)
    for wrong in ({"label": "fraud"}, {"weight": "amount"}, {"features": ["age", "hight"]}):
        with pytest.raises(DatasetError, match=r"there is no column"):
            load_tables(folder, **wrong)


def test_missing_and_doubtful_files_are_named(tmp_path) -> None:
    with pytest.raises(DatasetError, match=r"no nodes.csv or nodes.parquet"):
        load_tables(tmp_path)
    with pytest.raises(DatasetError, match=r"is not a folder"):
        load_tables(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"no table of nodes and edges"):
        load_tables()
    with pytest.raises(DatasetError, match=r"does not exist"):
        load_tables(nodes=tmp_path / "n.csv", edges=tmp_path / "e.csv")
    with pytest.raises(DatasetError, match=r"convert the table"):
        load_tables(nodes=tmp_path / "n.xlsx", edges=tmp_path / "e.csv")
    write(tmp_path)
    (tmp_path / "nodes.parquet").write_bytes(b"rubbish")
    with pytest.raises(DatasetError, match=r"nodes.csv and nodes.parquet"):
        load_tables(tmp_path)
    with pytest.raises(DatasetError, match=r"nodes.parquet cannot be read"):
        load_tables(tmp_path, nodes=tmp_path / "nodes.parquet")


# Many graphs

GRAPHS = "graph,label,split\ng1,toxic,train\ng2,safe,test\n"
MANY_NODES = "graph,id,a\ng2,1,0\ng1,1,1\ng1,2,2\ng2,9,3\n"
MANY_EDGES = "graph,source,target\ng2,1,9\ng1,2,1\n"


def test_tables_of_many_graphs_become_a_graph_set(tmp_path) -> None:
    graphs = load_tables(write(tmp_path, MANY_NODES, MANY_EDGES, GRAPHS))
    assert isinstance(graphs, GraphSet)
    assert graphs.class_names == ["safe", "toxic"]
    assert graphs.y.tolist() == [1, 0]
    assert [part.tolist() for part in graphs.split] == [[0], [], [1]]
    assert [g.graph_id for g in graphs] == ["g1", "g2"]
    assert [g.node_id.tolist() for g in graphs] == [[1, 2], [1, 9]]
    assert [g.x[:, 0].tolist() for g in graphs] == [[1, 2], [0, 3]]
    assert all(g.edge_index.tolist() == [[0, 1], [1, 0]] for g in graphs)


def test_unlabelled_graphs_are_allowed(tmp_path) -> None:
    graphs = load_tables(write(tmp_path, MANY_NODES, MANY_EDGES, "graph\ng1\ng2\n"), label=None)
    assert graphs.y.tolist() == [-1, -1]
    assert graphs[0].y is None


BAD_SETS = {
    "edge across graphs": ({"edges": MANY_EDGES + "g1,1,9\n"}, r"not in that graph.*\"9\" \(row 3\)"),
    "graph not listed": ({"nodes": MANY_NODES + "g3,1,0\n"}, "not listed here: g3"),
    "graph without nodes": ({"graphs": GRAPHS + "g3,safe,test\n"}, "have no node: g3"),
    "double graph": ({"graphs": GRAPHS + "g1,safe,test\n"}, r'"g1" \(rows 1 and 3\)'),
    "double node": ({"nodes": MANY_NODES + "g1,2,0\n"}, r'"2 of g1" \(rows 3 and 5\)'),
    "no label": ({"graphs": "graph,lable\ng1,x\ng2,y\n"}, 'no column "label". Did you mean "lable"'),
    "no owner": ({"edges": EDGES}, 'edges.csv: there is no column "graph"'),
}


@pytest.mark.parametrize(("tables", "message"), BAD_SETS.values(), ids=BAD_SETS.keys())
def test_what_is_wrong_with_tables_of_graphs_is_said(tables, message, tmp_path) -> None:
    given = {"nodes": MANY_NODES, "edges": MANY_EDGES, "graphs": GRAPHS} | tables
    with pytest.raises(DatasetError, match=message):
        load_tables(write(tmp_path, **given))


def test_a_column_of_text_may_be_the_label(tmp_path) -> None:
    (tmp_path / "nodes.csv").write_text("id,age,cultivar\na,1,red\nb,2,white\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    with pytest.raises(DatasetError, match=r'"cultivar" holds text such as "red".*\(--set column.label=cultivar\)'):
        load_tables(tmp_path)
    assert load_tables(tmp_path, label="cultivar").class_names == ["red", "white"]


def test_what_is_missing_is_said_before_what_is_left_over(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,x\na,1\nb,2\n", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("from,to\na,b\n", encoding="utf-8")
    with pytest.raises(DatasetError) as refused:
        load_tables(tmp_path)
    problems = str(refused.value).split("\n- ")[1:]
    assert 'no column "source"' in problems[0]
    assert 'no column "target"' in problems[1]
    assert 'no column "id"' in problems[2]
    assert 'no column "label"' in problems[3]
    assert "are not used" not in str(refused.value)


def test_a_missing_label_is_said_before_what_may_follow_from_it_and_is_no_error_by_itself(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\n", encoding="utf-8")
    (tmp_path / "nodes.csv").write_text("id,x,klass\na,1,red\nb,2,white\n", encoding="utf-8")
    with pytest.raises(DatasetError) as refused:
        load_tables(tmp_path)
    first, second = str(refused.value).split("\n- ")[1:]
    assert 'no column "label": name the column of classes with label=' in first
    assert '"klass"' in second
    (tmp_path / "nodes.csv").write_text("id,x\na,1\nb,2\n", encoding="utf-8")
    assert getattr(load_tables(tmp_path), "y", None) is None
