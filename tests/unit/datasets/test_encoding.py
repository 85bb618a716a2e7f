"""Tables as they come: categories, gaps and dates, columns of edges, repeated edges, a split by time, all problems."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import agnncert as ac
from agnncert.datasets.encoding import Encoding, encoding_named, encoding_of
from agnncert.errors import DatasetError

NODES = """id,label,split,kind,opened,amount
a,x,train,shop,2024-01-01,1.5
b,y,train,bank,2024-12-31,
c,x,train,shop,2025-01-01,2.5
d,y,val,,2026-01-01,9
e,x,test,club,,7
"""
EDGES = "source,target,paid,way\na,b,10,card\nb,a,20,cash\nb,c,5,card\nc,d,1,cash\nd,e,2,\n"


def write(folder, nodes=NODES, edges="source,target\na,b\nc,d\n"):
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder


def test_categories_gaps_and_dates_are_fitted_on_the_training_part_alone(tmp_path) -> None:
    data = ac.load_tables(write(tmp_path), encode="auto")
    assert data.encoding.features == ["kind=bank", "kind=shop", "kind=other", "opened", "amount", "amount=missing"]
    assert data.x[:, :3].tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    years = [0, 365 / 365.25, 366 / 365.25, 731 / 365.25, 365 / 365.25]  # the last is the median of the training part
    assert data.x[:, 3].tolist() == pytest.approx(years)
    assert data.x[:, 4:].tolist() == [[1.5, 0], [2, 1], [2.5, 0], [9, 0], [7, 0]]


@pytest.mark.parametrize("row", ["d,y,val,opera,1999-01-01,1e6", "d,y,val,shop,2024-06-01,"])
def test_another_row_outside_of_training_changes_no_other_row(row, tmp_path) -> None:
    one = ac.load_tables(write(tmp_path), encode="auto")
    other = ac.load_tables(write(tmp_path, NODES.replace("d,y,val,,2026-01-01,9", row)), encode="auto")
    assert one.encoding == other.encoding
    same = torch.tensor([True, True, True, False, True])
    assert torch.equal(one.x[same], other.x[same])
    assert not torch.equal(one.x[3], other.x[3])


def test_an_encoding_is_stored_and_read_another_table_with(tmp_path) -> None:
    encoding = ac.load_tables(write(tmp_path), encode="auto").encoding
    (tmp_path / "encoding.json").write_text(encoding.to_json())
    assert Encoding.from_json(encoding.to_json()) == encoding
    later = NODES.replace("train", "test").replace("shop", "club").replace("b,y,test", "b,y,train")
    data = ac.load_tables(write(tmp_path, later), encode=tmp_path / "encoding.json")
    assert data.encoding.digest == encoding.digest
    assert data.x[0, :3].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"format": "agnncert-encoding-1", "nodes": [{"name": 3}], "edges": []}', "[]"]
)
def test_what_is_no_encoding_is_refused(text, tmp_path) -> None:
    with pytest.raises(DatasetError, match="no encoding"):
        Encoding.from_json(text)
    (tmp_path / "e.json").write_text(text)
    with pytest.raises(DatasetError, match="no encoding"):
        encoding_named(str(tmp_path / "e.json"))


def test_kinds_may_be_stated(tmp_path) -> None:
    data = ac.load_tables(write(tmp_path), encode="amount=category,opened=category")
    assert "amount=2.5" in data.encoding.features
    assert "opened=2024-01-01" in data.encoding.features
    with pytest.raises(DatasetError, match='did you mean "category"'):
        ac.load_tables(tmp_path, encode={"amount": "categories"})
    with pytest.raises(DatasetError, match='expected "auto"'):
        ac.load_tables(tmp_path, encode="automatic")


def test_an_id_or_free_text_is_no_category(tmp_path) -> None:
    rows = "".join(f"{k},{'xy'[k % 2]},train,name {k}\n" for k in range(40))
    with pytest.raises(DatasetError, match='"note" has 40 different texts in 40 training rows'):
        ac.load_tables(write(tmp_path, f"id,label,split,note\n{rows}", "source,target\n1,2\n"), encode="auto")


def test_an_entry_that_is_no_date_later_is_an_error_and_no_gap(tmp_path) -> None:
    nodes = NODES.replace("2026-01-01", "soon").replace("9\n", "inf\n")
    with pytest.raises(DatasetError, match=r'2 problems(?s:.)*"soon" in row 4(?s:.)*"inf" in row 4'):
        ac.load_tables(write(tmp_path, nodes), encode="auto")


def test_columns_of_edges_are_kept_or_left_out_and_never_in_silence(tmp_path) -> None:
    nodes = "id,label,split,a\n" + "".join(f"{n},{k},train,1\n" for n, k in zip("abcde", "xyxyx", strict=True))
    folder = write(tmp_path, nodes, EDGES)
    with pytest.raises(DatasetError, match=r"2 column.*paid, way.*edge_features=.*edge_feature=none"):
        ac.load_tables(folder)
    assert "edge_attr" not in ac.load_tables(folder, edge_features=[])
    with pytest.raises(DatasetError, match=r'joined twice(?s:.)*repeated="sum"'):
        ac.load_tables(folder, edge_features=["paid"])
    data = ac.load_tables(folder, edge_features=["paid"], repeated="sum")
    assert data.edge_attr.view(-1).tolist() == [30, 30, 5, 5, 1, 1, 2, 2]
    assert ac.load_tables(folder, edge_features=["paid"], repeated="mean").edge_attr[0].tolist() == [15]
    assert ac.load_tables(folder, edge_features=["paid"], directed=True).edge_attr.view(-1).tolist() == [
        10,
        20,
        5,
        1,
        2,
    ]
    both = ac.load_tables(folder, edge_features=["paid", "way"], repeated="sum", encode="auto")
    assert both.edge_attr[0].tolist() == [30, 1, 1, 0, 0]  # paid; by card, in cash, otherwise, unknown
    assert [column.name for column in both.encoding.edges] == ["paid", "way"]


def test_repeated_edges_are_counted_and_said(tmp_path, caplog) -> None:
    edges = "source,target\na,b\nb,a\na,b\nc,d\ne,e\n"
    data = ac.load_tables(write(tmp_path, edges=edges), features=["amount"], encode="auto")
    assert data.repeated_edges == 2
    assert "2 of 4 edges repeat an earlier pair and count once" in caplog.text
    assert ac.load_tables(tmp_path, features=["amount"], encode="auto", directed=True).repeated_edges == 1


def test_a_split_by_time_never_trains_on_what_comes_later(tmp_path) -> None:
    rng = np.random.default_rng(0)
    day = rng.integers(0, 40, 200)  # many rows share a day
    frame = pd.DataFrame({"id": range(200), "label": rng.integers(0, 2, 200), "a": 1.0})
    frame["opened"] = [f"2025-{1 + d // 28:02}-{1 + d % 28:02}" for d in day]
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    data = ac.load_tables(tmp_path, time="opened")
    assert data.x.shape == (200, 1)
    parts = [day[mask.numpy()] for mask in (data.train_mask, data.val_mask, data.test_mask)]
    assert parts[0].max() < parts[1].min() <= parts[1].max() < parts[2].min()
    assert sum(map(len, parts)) == 200
    assert abs(len(parts[0]) - 60) < 10
    with pytest.raises(DatasetError, match="leave out time="):
        ac.load_tables(write(tmp_path), time="opened", encode="auto")
    with pytest.raises(DatasetError, match=r'column "opened" is no date and no number in row 5'):
        ac.load_tables(tmp_path, time="opened", encode="auto", split="part")


def test_all_problems_stand_in_one_message_each_with_what_repairs_it(tmp_path) -> None:
    nodes = "id,label,split,kind,amount\na,x,train,shop,1\na,y,trian,bank,\nb,x,test,shop,3\n"
    edges = "source,target,paid\na,b,1\na,z,2\n"
    with pytest.raises(DatasetError) as caught:
        ac.load_tables(write(tmp_path, nodes, edges))
    text = str(caught.value)
    for words in (
        "5 problems", 'column "id" occur twice', 'says "trian"', "not numbers: kind", "--set encode=auto",
        "missing or infinite in row 2", "--set edge_feature=none",
    ):  # fmt: skip
        assert words in text
    assert len(text.splitlines()) == 6


def test_graphs_of_a_set_are_encoded_by_the_training_graphs(tmp_path) -> None:
    (tmp_path / "graphs.csv").write_text("graph,label,split\ng,x,train\nh,y,train\ni,x,test\n")
    nodes = "graph,id,kind\ng,1,C\ng,2,N\nh,1,C\ni,1,O\n"
    data = ac.load_tables(write(tmp_path, nodes, "graph,source,target\ng,1,2\n"), encode="auto")
    assert data.encoding.features == ["kind=C", "kind=N", "kind=other"]
    assert data[2].x.tolist() == [[0, 0, 1]]


def test_the_claim_names_the_encoding_and_verify_compares_it(tmp_path) -> None:
    data = ac.load_tables(write(tmp_path), encode="auto")
    model = ac.build_model("gcn", data, num_layers=1, hidden_channels=4).eval()
    certificate = ac.certify(model, data, ac.NodeCentric(4))
    assert certificate.claim.digests["encoding"] == data.encoding.digest
    assert any(data.encoding.digest in sentence for sentence in certificate.claim.assumes)
    certificate.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert", data=data, model=model)
    claim = replace(certificate.claim, digests={**certificate.claim.digests, "encoding": "0" * 64})
    replace(certificate, claim=claim).save(tmp_path / "forged.cert")
    assert '"assumes" is not what its evidence allows' in str(ac.verify(tmp_path / "forged.cert"))
    other = data.clone()
    other.encoding = replace(data.encoding, nodes=data.encoding.nodes[::-1])
    assert "another encoding" in str(ac.verify(tmp_path / "a.cert", data=other))
    del other.encoding
    assert "the data has no encoding" in str(ac.verify(tmp_path / "a.cert", data=other).not_checked)


def test_an_encoded_graph_is_written_to_disk_with_its_encoding(tmp_path) -> None:
    data = ac.load_tables(write(tmp_path), encode="auto")
    ac.write_graph(data, tmp_path / "folder")
    again = ac.open_graph(tmp_path / "folder")
    assert encoding_of(again) == data.encoding
    model = ac.build_model("gcn", data, num_layers=1, hidden_channels=4).eval()
    claim = ac.certify(model, again, ac.NodeCentric(4)).claim
    assert claim.digests["encoding"] == data.encoding.digest


def test_a_digest_depends_on_every_number(tmp_path) -> None:
    encoding = ac.load_tables(write(tmp_path), encode="auto").encoding
    stored = json.loads(encoding.to_json())
    stored["nodes"][2]["fill"] += 1e-9
    assert Encoding.from_json(json.dumps(stored)).digest != encoding.digest
