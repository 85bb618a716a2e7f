"""Models without edges that a teacher taught stand in every comparison with nodes that nobody has labelled."""

import pytest
import torch

import agnncert as ac
from agnncert.datasets.taught import can_be_taught
from agnncert_peers.threat import TAUGHT_BY
from tests.support.labelled import labelled_graph

BY_GCN, BY_MLP = TAUGHT_BY
QUICK = {"fit": {"epochs": 30, "evaluate_every": 5}, "model_args": {"hidden_channels": 8}, "sizes": [0, 1, 5]}


@pytest.fixture(scope="module")
def few_labels():
    """Nodes whose features say little and whose neighbours say much; a sixth of them has a label to train with."""
    data = labelled_graph(360, noise=3.0, degree=6, dtype=torch.float32)
    part = torch.arange(360) % 6
    data.train_mask = part == 0
    data.val_mask = part == 1
    data.test_mask = part == 2
    return data


@pytest.fixture(scope="module")
def compared(few_labels, tmp_path_factory):
    return ac.compare(few_labels, [ac.NodeCentric(5)], folder=tmp_path_factory.mktemp("compared"), **QUICK)


def test_both_controls_are_rows_that_no_edge_changes(compared) -> None:
    for name in TAUGHT_BY:
        row = compared.row(name)
        assert row["control"]
        assert row["guarantee"] == "deterministic: reads no edges"
        assert row["certified"] == [row["accuracy"]] * 3
        assert row["seconds_training"] > 0


def test_what_edges_teach_lifts_a_model_without_edges(compared) -> None:
    taught = compared.row(BY_GCN)["accuracy"]
    assert taught > compared.row("graph-free, cross-fitted")["accuracy"]
    assert taught > compared.row(BY_MLP)["accuracy"]


def test_an_attack_on_the_own_features_is_not_withstood(few_labels) -> None:
    comparison = ac.compare(few_labels, [ac.GatedNodeCentric(5)], against="features", own_features=True, **QUICK)
    assert not any(comparison.row(BY_GCN)["certified"][1:])


def test_a_repeated_comparison_reads_what_is_there(few_labels, tmp_path) -> None:
    first = ac.compare(few_labels, [ac.NodeCentric(5)], folder=tmp_path, **QUICK)
    assert not list(tmp_path.glob("*.training"))
    done = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    again = ac.compare(few_labels, [ac.NodeCentric(5)], folder=tmp_path, **QUICK)
    assert again.row(BY_GCN)["certified"] == first.row(BY_GCN)["certified"]
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == done


def test_where_nobody_can_be_taught_there_are_no_such_rows(few_labels) -> None:
    assert can_be_taught(few_labels)
    full = few_labels.clone()
    full.train_mask = ~(full.val_mask | full.test_mask)
    assert not can_be_taught(full)
    unlabelled = ~(few_labels.train_mask | few_labels.val_mask | few_labels.test_mask)
    assert not can_be_taught(few_labels, unlabelled)  # a target would be taught
    assert not can_be_taught(ac.teach(few_labels, "gcn", members=1, epochs=2))
    names = [row["defence"] for row in ac.compare(full, [ac.NodeCentric(5)], **QUICK).rows]
    assert not set(names) & set(TAUGHT_BY)
