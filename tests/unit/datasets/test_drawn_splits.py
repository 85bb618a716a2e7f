"""Splits that follow ids, so that a change elsewhere moves nobody, and the record of how a split was drawn."""

import copy
import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.splits import split_by_id
from agnncert.errors import DatasetError
from agnncert.graphs.hashing import id_keys, places

MASKS = ("train_mask", "val_mask", "test_mask")


def some_nodes(number: int = 200) -> Data:
    rows = torch.arange(number)
    edges = torch.stack([rows, rows.roll(1)])
    return Data(x=torch.randn(number, 3), edge_index=edges, y=rows % 4, node_id=rows * 7 + 3)


def some_graphs(number: int = 60) -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    edges = torch.tensor([[0, 1], [1, 0]])
    return [
        Data(x=torch.randn(2, 3, generator=generator), edge_index=edges, y=torch.tensor([k % 2])) for k in range(number)
    ]


def part_of(data: Data) -> list[int]:
    return torch.stack([data[name] for name in MASKS]).int().argmax(dim=0).tolist()


def parts_of_graphs(split: ac.GraphSet) -> dict[bytes, int]:
    """Part of each graph by its first number, which no other graph has."""
    return {split[int(row)].x.numpy().tobytes(): number for number, part in enumerate(split.split) for row in part}


def test_no_label_moves_another_node() -> None:
    data = some_nodes()
    before = part_of(ac.split(data, seed=5))
    for row in range(0, 200, 9):
        flipped = data.clone()
        flipped.y[row] = (flipped.y[row] + 1) % 4
        assert part_of(ac.split(flipped, seed=5)) == before


def test_a_label_that_comes_or_goes_moves_its_own_node_alone() -> None:
    data = some_nodes()
    before = ac.split(data)
    data.y[17] = -1
    after = ac.split(data)
    others = torch.arange(200) != 17
    for name in MASKS:
        assert torch.equal(before[name][others], after[name][others])
        assert not after[name][17]


def test_neither_order_nor_number_of_nodes_moves_a_node() -> None:
    data = some_nodes()
    part = dict(zip(data.node_id.tolist(), part_of(ac.split(data, seed=2)), strict=True))
    order = torch.randperm(200)[:150]
    fewer = Data(x=data.x[order], edge_index=data.edge_index[:, :0], y=data.y[order])
    fewer.node_id = data.node_id[order]
    assert all(
        part[name] == number
        for name, number in zip(fewer.node_id.tolist(), part_of(ac.split(fewer, seed=2)), strict=True)
    )


def test_a_number_and_its_text_are_one_id() -> None:
    data = some_nodes()
    as_text = copy.copy(data)
    as_text.node_id = [*map(str, data.node_id.tolist()[:-1]), "last"]
    assert part_of(ac.split(data))[:-1] == part_of(ac.split(as_text))[:-1]


def test_shares_and_seeds_are_those_that_are_asked_for() -> None:
    keys = [id_keys(range(20_000))]
    parts = split_by_id(keys, torch.zeros(20_000), (0.3, 0.1, 0.6), seed=3)
    assert [len(part) / 20_000 for part in parts] == pytest.approx([0.3, 0.1, 0.6], abs=0.01)
    in_both = np.intersect1d(parts[0], split_by_id(keys, torch.zeros(20_000), (0.3, 0.1, 0.6), 4)[0])
    assert len(in_both) / 20_000 == pytest.approx(0.09, abs=0.01)


def test_places_are_those_that_were_once_published() -> None:
    found = places([id_keys([0, 7, -1, "alice"])], seed=1)
    assert found.round(6).tolist() == PLACES
    assert places([id_keys(range(2000))], seed=1)[7] == found[1]  # whatever stands beside it


PLACES = [0.639435, 0.809267, 0.239244, 0.328897]


@pytest.mark.parametrize("named", [True, False])
def test_a_graph_that_is_altered_inserted_or_deleted_moves_no_other(named: bool) -> None:
    graphs = some_graphs()
    if named:
        for number, graph in enumerate(graphs):
            graph.graph_id = f"scan-{number}"
    before = parts_of_graphs(ac.split(graphs))
    poisoned = copy.deepcopy(graphs)
    poisoned[11].y = 1 - poisoned[11].y
    del poisoned[30]
    inserted = copy.deepcopy(graphs[0])
    inserted.x = inserted.x + 1
    if named:
        inserted.graph_id = "inserted"
    poisoned.insert(4, inserted)
    after = parts_of_graphs(ac.split(poisoned))
    changed = {graphs[row].x.numpy().tobytes() for row in (11, 30)}
    assert all(after[key] == part for key, part in before.items() if key not in changed)


def test_graphs_of_which_some_have_an_id_are_refused() -> None:
    graphs = some_graphs()
    graphs[0].graph_id = "first"
    with pytest.raises(DatasetError, match="59 of 60 graphs have no graph_id"):
        ac.split(graphs)


def test_splitting_a_set_of_graphs_again_keeps_all_else_that_it_says() -> None:
    data = ac.GraphSet(some_graphs(), class_names=["no", "yes"], num_classes=3, name="mine")
    again = ac.split(data)
    assert (again.class_names, again.num_classes, again.name) == (["no", "yes"], 3, "mine")
    assert again.split_by == "id"
    assert len(data.train) == 0


def test_a_class_without_a_training_node_is_named_and_nothing_is_drawn_again(caplog) -> None:
    data = some_nodes()
    before = part_of(ac.split(data))
    tested = before.index(2)
    data.y[tested] = 4
    assert part_of(ac.split(data)) == before
    assert "nothing of 1 class(es) (4) is in the training part" in caplog.text


def table(folder: Path, split: bool = False, time: bool = False) -> Path:
    folder.mkdir()
    with (folder / "nodes.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "age", *(["split"] if split else []), *(["day"] if time else []), "label"])
        for k in range(60):
            parts = [("train", "val", "test")[k % 3]] if split else []
            rows.writerow([f"u{k}", k % 7, *parts, *([k] if time else []), "spam" if k % 4 == 0 else "genuine"])
    (folder / "edges.csv").write_text("source,target\nu0,u1\nu2,u3\n")
    return folder


def test_a_table_is_split_as_the_graph_that_was_read_from_it(tmp_path) -> None:
    data = ac.load_tables(table(tmp_path / "own"), seed=4)
    assert data.split_by == "id"
    assert part_of(data) == part_of(ac.split(data, seed=4))


def test_every_loader_says_how_its_split_was_drawn(tmp_path) -> None:
    folder = table(tmp_path / "own")
    assert ac.load_tables(folder, split_by="class").split_by == "class"
    assert getattr(ac.load_tables(table(tmp_path / "stated", split=True)), "split_by", None) is None
    assert ac.load_tables(table(tmp_path / "time", time=True), time="day").split_by == "time"
    assert ac.load_dataset("digits-knn").split_by == "class"
    assert ac.load_dataset("digits-knn", split="by-class").split_by == "class"
    assert ac.load_dataset("digits-knn", split="by-id").split_by == "id"
    assert ac.load_dataset("digits-knn", split="20-per-class").split_by == "class"
    assert ac.load_dataset("digits-grid").split_by == "class"
    assert ac.load_dataset("digits-grid", split="by-id").split_by == "id"
    assert ac.split(some_nodes(), per_class=4).split_by == "class"
    with pytest.raises(DatasetError, match='no split is called "by-label"'):
        ac.load_dataset("digits-knn", split="by-label")
    with pytest.raises(DatasetError, match="drawn by 'label'"):
        ac.load_tables(folder, split_by="label")


def test_the_record_outlives_copies_subgraphs_and_files(tmp_path) -> None:
    data = ac.split(some_nodes())
    torch.save(data, tmp_path / "data.pt")
    stored = torch.load(tmp_path / "data.pt", weights_only=False)
    for kept in (data.clone(), copy.deepcopy(data), data.subgraph(torch.arange(20)), stored):
        assert kept.split_by == "id"
    graphs = ac.split(some_graphs())
    assert copy.copy(graphs).split_by == copy.deepcopy(graphs).split_by == "id"


ABOUT_ALL = {"candidates": "all", "num_labels": 60}


@pytest.mark.parametrize("settings", [{}, {"preset": "few"}, {"neighbour_votes": 1}, ABOUT_ALL])
def test_label_votes_refuse_a_split_that_follows_labels_and_name_the_remedy(settings) -> None:
    data = some_nodes()
    data.num_classes = 4
    refused = r"drawn by class.*data = ac\.split\(data\).*split=\"by-id\".*--set split_by=id"
    with pytest.raises(DatasetError, match=refused):
        ac.fit(None, ac.split(data, by="class"), ac.LabelVotes(**settings))
    assert ac.fit(None, ac.split(data), ac.LabelVotes(**settings)) is not None
    own = ac.split(data, by="class")
    own.split_by = None  # the user says that it stays
    assert ac.fit(None, own, ac.LabelVotes(**settings)) is not None


def test_a_cut_in_time_is_refused_where_labels_may_come_and_go() -> None:
    data = ac.split(some_nodes())
    data.num_classes = 4
    data.split_by = "time"
    assert ac.fit(None, data, ac.LabelVotes()) is not None
    with pytest.raises(DatasetError, match="cut by time"):
        ac.fit(None, data, ac.LabelVotes(**ABOUT_ALL))


def test_isolated_models_refuse_a_split_that_follows_other_graphs() -> None:
    graphs = ac.GraphSet(some_graphs(), num_classes=2)
    defence = ac.IsolatedModels(num_models=3, ids="content")
    for by in ("class", "time"):
        data = ac.split(graphs, by="class")
        data.split_by = by
        with pytest.raises(DatasetError, match=r"IsolatedModels certifies against poisoned training data"):
            ac.fit(ac.build_model("gin", data, hidden_channels=4), data, defence, epochs=1)
    data = ac.split(graphs)
    assert ac.fit(ac.build_model("gin", data, hidden_channels=4), data, defence, epochs=1) is not None
