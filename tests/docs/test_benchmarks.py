"""``make bench`` is run by hand; here its measurements are taken on tiny data, so that they keep working."""

import pytest
from benchmarks import run

import agnncert as ac

from ..support.labelled import labelled_graph, labelled_graphs


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
