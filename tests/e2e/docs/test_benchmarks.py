"""``make bench`` is run by hand; here its measurements are taken on tiny data, so that they keep working."""

from importlib.util import find_spec

import pytest

import agnncert as ac
from experiments.benchmarks import event_tables, large, run
from experiments.benchmarks.amazon2m_like import generate_amazon2m_like
from tests.support.labelled import labelled_graph, labelled_graphs


@pytest.mark.parametrize("division", [ac.EdgeCentric(5), ac.NodeCentric(5)], ids=str)
@pytest.mark.parametrize("task", ["node", "graph"])
def test_a_row_of_the_benchmark_can_be_measured(division, task: str) -> None:
    data = labelled_graph(num_nodes=30) if task == "node" else labelled_graphs(6)
    for graph in [data] if task == "node" else data:
        graph.x = graph.x.float()
        del graph.node_id  # PyG's loader cannot put lists of names together
    model = ac.build_model("gcn", data, hidden_channels=4, num_layers=2).eval()
    row = (run.node_votes if task == "node" else run.graph_votes)(model, data, division, 1)
    assert row["division"] == str(division)
    assert row["fast_in_plain_forwards"] > 0
    assert row["naive_over_fast"] > 0


def test_cells_of_the_large_benchmark_can_be_measured(tmp_path, monkeypatch) -> None:
    generate_amazon2m_like(large.folder_of(tmp_path, 64), 1 / 2048)
    monkeypatch.setattr(large, "EPOCHS", 1)
    if find_spec("pymetis") is not None:
        assert large.epoch(tmp_path, 64)["node_in_plain_epochs"] > 0
        assert 0 <= large.train(tmp_path, 64, "node")["score"] <= 1
    for owner, name, _ in large.watched():
        monkeypatch.setattr(owner, name, getattr(owner, name))  # so that it is undone
    row = large.certify_and_save(tmp_path, 64, "node", 20, tmp_path / "c.cert")
    assert {"hashing", "layout", "casting", "tally", "digest", "audit"} <= set(row["phases_cpu"])
    assert row["trained"] == (find_spec("pymetis") is not None)
    assert large.verify(str(tmp_path / "c.cert"))["verified"]


@pytest.mark.slow
def test_reading_a_table_of_events_can_be_measured(tmp_path) -> None:
    source = event_tables.PROJECT / "src"
    rows = [
        event_tables.measured(source, event_tables.tables(tmp_path, 150, kind), kind) for kind in event_tables.FORMATS
    ]
    assert rows[0]["digest"] == rows[1]["digest"]
    assert rows[0]["events"] == rows[1]["events"] > 500
    assert all(row["peak_gib"] >= row["imports_gib"] > 0 for row in rows)
    with pytest.raises(RuntimeError, match="another agnncert"):
        event_tables.measured(tmp_path, tmp_path / "payments-150", "csv")
