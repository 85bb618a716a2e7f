"""Sets of graphs in the format of the TU collection."""

from pathlib import Path

import pytest
import torch

import agnncert as ac
from agnncert.errors import DatasetError

# Two triangles and a path, numbered across graphs; one edge is listed one way only, one twice, one is a self-loop.
FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 1\n4, 5\n5, 4\n5, 4\n5, 5\n6, 7\n7, 8\n8, 6\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n3\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "0\n7\n7\n0\n0\n7\n0\n7\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n5.5, 6\n6.5, 7\n7.5, 8\n",
}


def write(folder: Path, **changes: str | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in {**FILES, **changes}.items():
        if text is not None:
            (folder / f"TOY_{kind}.txt").write_text(text)
    return folder


@pytest.mark.parametrize("below", ["", "raw"])
def test_a_folder_is_read(tmp_path, below) -> None:
    write(tmp_path / "downloads" / below)
    graphs = ac.load_tables(tmp_path / "downloads")
    assert (graphs.name, graphs.class_names, graphs.y.tolist()) == ("TOY", ["-1", "1"], [1, 0, 1])
    assert [graph.num_nodes for graph in graphs] == [3, 2, 3]
    assert graphs[0].edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert graphs[1].edge_index.tolist() == [[0, 1], [1, 0]]
    assert graphs[1].x.tolist() == [[3.5, 4.0, 1.0, *[0.0] * 7], [4.5, 5.0, 1.0, *[0.0] * 7]]
    assert graphs[2].node_id.tolist() == [0, 1, 2]
    assert graphs[2].x[:, 9].tolist() == [1.0, 0.0, 1.0]


def test_it_reads_what_pyg_reads(tmp_path) -> None:
    from torch_geometric.datasets import TUDataset
    from torch_geometric.utils import remove_self_loops

    raw = write(
        tmp_path / "TOY" / "raw",
        A=FILES["A"].replace("2, 3\n", "2, 3\n3, 2\n1, 3\n").replace("6, 7\n7, 8\n8, 6\n", "6, 7\n7, 6\n"),
    )
    theirs, ours = TUDataset(str(tmp_path), "TOY", use_node_attr=True), ac.load_tables(raw)
    for one, other in zip(theirs, ours, strict=True):
        assert torch.equal(one.x, other.x)
        assert remove_self_loops(one.edge_index)[0].tolist() == other.edge_index.tolist()
        assert torch.equal(one.y, other.y)


def test_the_last_graph_may_have_no_edge_and_the_last_line_no_break(tmp_path) -> None:
    graphs = ac.load_tables(write(tmp_path, A="1, 2\n2, 3", graph_labels="1\n-1\n1"))
    assert [graph.num_edges for graph in graphs] == [4, 0, 0]
    assert graphs.y.tolist() == [1, 0, 1]


def test_nodes_without_features_get_a_one(tmp_path, caplog) -> None:
    caplog.set_level("INFO")
    graphs = ac.load_tables(
        write(tmp_path, node_labels=None, node_attributes=None, edge_labels="1\n" * 11), name="bare"
    )
    assert graphs[0].x.tolist() == [[1.0]] * 3
    assert graphs.name == "bare"
    assert "single 1" in caplog.text
    assert "TOY_edge_labels.txt: left out" in caplog.text


WRONG = {
    "no labels": ({"graph_labels": None}, "no TOY_graph_labels.txt"),
    "too few labels": ({"graph_labels": "1\n"}, "has 1 lines"),
    "a graph without nodes": ({"graph_labels": "1\n1\n1\n1\n"}, "graphs 1 to 4, .* at least once; it names 1 to 3"),
    "nodes out of order": ({"graph_indicator": "1\n1\n2\n1\n2\n3\n3\n3\n"}, "one after the other"),
    "an empty file": ({"A": ""}, "TOY_A.txt is empty"),
    "an unknown node": ({"A": "1, 99\n"}, "nodes 1 to 99, but there are 8"),
    "node zero": ({"A": "0, 1\n"}, "nodes 0 to 1"),
    "an edge across": ({"A": "1, 2\n3, 4\n"}, "line 2 joins nodes of two graphs"),
    "too few features": ({"node_attributes": "1\n"}, "has 1 lines, but there are 8 nodes"),
    "not a number": ({"node_attributes": "1\n" * 7 + "x\n"}, "TOY_node_attributes.txt cannot be read"),
    "infinite": ({"node_attributes": "1\n" * 7 + "inf\n"}, "infinite in line 8"),
    "half a label": ({"graph_labels": "1\n0.5\n1\n"}, "expected whole numbers"),
    "amounts as labels": ({"node_labels": "0\n" * 7 + "99999\n"}, "Are they attributes"),
    "three ends": ({"A": "1,2,3\n"}, "3 columns"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_explained(tmp_path, mistake) -> None:
    changes, told = WRONG[mistake]
    with pytest.raises(DatasetError, match=told):
        ac.load_tables(write(tmp_path, **changes))


def test_two_sets_in_one_folder_are_told_apart(tmp_path) -> None:
    write(tmp_path)
    (tmp_path / "OTHER_A.txt").write_text("1, 2\n")
    with pytest.raises(DatasetError, match="several sets of graphs, OTHER, TOY"):
        ac.load_tables(tmp_path)
    with pytest.raises(DatasetError, match="features= and directed= do not apply"):
        ac.load_tables(write(tmp_path / "alone"), directed=True)
