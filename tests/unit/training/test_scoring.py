"""Validation scores of graphs that do not fit into memory at once: the same, or part by part."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.engine.adapter import bind
from agnncert.graphs.canonical import canonical
from agnncert.graphs.targets import CanonicalData
from agnncert.training import validation
from agnncert.training.settings import checked
from agnncert.training.setup import prepare
from tests.support.labelled import labelled_graph


@pytest.mark.parametrize("division", [ac.NodeCentric(7), ac.EdgeCentric(7)], ids=str)
def test_a_large_graph_is_laid_out_anew_and_scored_the_same(division, monkeypatch):
    data = labelled_graph(60)
    graph, rows = canonical(data), data.val_mask.nonzero().view(-1).numpy()
    call = bind(ac.build_model("gcn", data, hidden_channels=8).eval(), graph, "node")
    part = validation.Validation(call, graph, "node", rows, data.y.numpy()[rows])
    laid_out = part.by_vote(division, 1)
    monkeypatch.setattr(validation, "LAID_OUT_EDGES", 0)
    monkeypatch.setattr(validation, "union_of_subgraphs", None)  # nothing is laid out as a whole
    assert part.by_vote(division, 1)() == laid_out()


@pytest.mark.skipif(find_spec("pymetis") is None, reason="needs pymetis")
def test_without_a_division_a_large_graph_is_scored_part_by_part(monkeypatch):
    data = labelled_graph(60)
    model = ac.build_model("gcn", data, hidden_channels=8).eval()
    monkeypatch.setattr(validation, "LAID_OUT_EDGES", 0)
    settings = checked({"clusters": 5, "clusters_per_step": 2}, "node")
    setup = prepare(model, CanonicalData.of(data, compact=True), None, settings)
    right, total = 0, 0
    for chosen in torch.split(torch.arange(len(setup.objective.clusters)), 2):
        nodes = torch.cat([setup.objective.clusters[k] for k in chosen.tolist()]).sort().values
        part = data.subgraph(nodes)
        logits = model(part.x.float(), part.edge_index)[part.val_mask]
        right, total = right + int((logits.argmax(1) == part.y[part.val_mask]).sum()), total + int(part.val_mask.sum())
    assert total == int(data.val_mask.sum())
    assert setup.score()[0] == pytest.approx(right / total)
    assert np.isfinite(setup.score()[1])
