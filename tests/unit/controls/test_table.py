"""A certified model beside controls: the same targets, the same point, and a sentence that follows the interval."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.controls.api import UNDEFENDED_GNN
from agnncert.controls.edge_values import (
    WITH_VALUES,
    WITHOUT_VALUES,
    undefended_name,
    with_edge_values,
)
from agnncert.controls.stored import control_of_scores, controls_from_json, controls_to_json, read_scores
from agnncert.controls.table import Control, compare_with
from agnncert.controls.trees import DAILY_TREES, NEIGHBOURHOOD_TREES, OWN_TREES, neighbourhood, tree_controls
from agnncert.errors import SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.models.build import build_model
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext, summarise
from agnncert.report.text import beside
from tests.support.synthetic import made_up_certificate


def two_classes(n: int = 400, seed: int = 0) -> tuple[ac.Certificate, np.ndarray]:
    """A made-up certificate with two classes, and a truth that it knows something about, 3 in 10 positive."""
    rng = np.random.default_rng(seed)
    certificate, _ = made_up_certificate(rng, "node-centric/node", n, 30, 2)
    truth = np.where(rng.random(n) < 0.8, certificate.label, 1 - certificate.label)
    return certificate, np.where(rng.random(n) < 0.5, 0, truth)


def test_every_control_has_the_false_positive_rate_of_the_certified_model() -> None:
    certificate, truth = two_classes()
    rng = np.random.default_rng(1)
    controls = [
        Control("fine", score=rng.normal(size=400) + truth),
        Control("coarse", score=rng.integers(0, 3, 400) + truth),
        Control("constant", score=np.zeros(400)),
        Control("labels", label=rng.integers(0, 2, 400)),
    ]
    compared = compare_with(certificate, controls, truth=truth)
    assert compared is not None
    assert compared.positive == 1
    alerts = certificate.label == 1
    assert compared.certified.value == pytest.approx(alerts[truth == 1].mean())
    assert compared.certified.false_positive_rate == pytest.approx(alerts[truth == 0].mean())
    for row in compared.controls:
        assert row.false_positive_rate == pytest.approx(compared.certified.false_positive_rate), row.name
        assert row.lead is not None
        assert row.lead.difference == pytest.approx(compared.certified.value - row.value)
        assert row.lead.low < row.lead.high
    assert [row.value for row in compared.controls] == sorted((row.value for row in compared.controls), reverse=True)


def test_every_control_has_as_many_alerts_if_that_is_asked_for() -> None:
    certificate, truth = two_classes()
    truth = np.where(np.arange(400) < 50, -1, truth)  # alerts are also about targets of no known class
    scores = np.random.default_rng(1).normal(size=400) + truth
    compared = compare_with(certificate, [Control("fine", score=scores)], truth=truth, alerts=True)
    assert compared is not None
    assert compared.controls[0].alerts == pytest.approx((certificate.label == 1).sum())
    assert "alerts the certified model" in compared.sentence or not compared.sentence


def test_targets_without_a_score_are_left_out_of_both_sides() -> None:
    certificate, truth = two_classes()
    scores = np.random.default_rng(1).normal(size=400) + truth
    scores[::4] = np.nan
    compared = compare_with(certificate, [Control("some", score=scores, reads_graph=False)], truth=truth)
    assert compared is not None
    row = compared.controls[0]
    has_score = ~np.isnan(scores)
    alerts = certificate.label == 1
    assert row.num_targets == has_score.sum()
    assert row.false_positive_rate == pytest.approx(alerts[has_score & (truth == 0)].mean())
    own = alerts[has_score & (truth == 1)].mean()
    assert row.lead is not None
    assert row.value + row.lead.difference == pytest.approx(own)
    assert "on the 300 of 400 targets that it has scores for" in compared.sentence


def test_the_sentence_says_what_the_interval_says() -> None:
    certificate, truth = two_classes(4000)
    positive = truth == 1
    alerts = certificate.label == 1
    perfect = Control("knows it all", score=truth.astype(float), reads_graph=False)
    useless = Control("knows nothing", score=np.zeros(4000), reads_graph=False)
    same = Control("the same", score=alerts.astype(float), reads_graph=False)
    for control, pays, word in (
        (perfect, False, "The graph does not pay off here"),
        (useless, True, "The graph pays off here"),
        (same, None, "It is unclear whether the graph pays off here"),
    ):
        compared = compare_with(certificate, [control], truth=truth)
        assert compared is not None
        assert compared.pays is pays
        assert compared.sentence.startswith(word)
        assert control.name in compared.sentence
    assert alerts[positive].any()


def test_a_score_that_may_read_the_graph_is_no_control_without_one() -> None:
    certificate, truth = two_classes()
    compared = compare_with(certificate, [Control("ours", score=truth.astype(float))], truth=truth)
    assert compared is not None
    assert compared.best_without_graph is None
    assert compared.sentence == ""
    assert compared.further.startswith("Without any proof: ours 100.0")


def test_scores_of_the_other_class_are_turned_round() -> None:
    certificate, truth = two_classes()
    scores = np.random.default_rng(1).normal(size=400) + truth
    first = compare_with(certificate, [Control("one", score=scores)], truth=truth)
    second = compare_with(certificate, [Control("one", score=-scores, of_class=0)], truth=truth)
    assert first is not None
    assert second is not None
    assert first.controls == second.controls
    other = compare_with(certificate, [Control("one", score=scores)], truth=truth, positive=0)
    assert other is not None
    assert other.certified.value == pytest.approx((certificate.label == 0)[truth == 0].mean())
    assert other.controls[0].auc == pytest.approx(first.controls[0].auc)


def test_more_than_two_classes_are_compared_by_accuracy() -> None:
    rng = np.random.default_rng(0)
    certificate, _ = made_up_certificate(rng, "node-centric/node", 300, 30, 4)
    truth = np.where(rng.random(300) < 0.7, certificate.label, rng.integers(0, 4, 300))
    labels = np.where(rng.random(300) < 0.2, -1, truth)
    compared = compare_with(certificate, [Control("mlp", label=labels, reads_graph=False)], truth=truth)
    assert compared is not None
    assert compared.positive is None
    assert compared.controls[0].value == 1.0
    assert compared.controls[0].num_targets == (labels >= 0).sum()
    assert compared.pays is False
    assert "is right for" in compared.sentence


def test_nothing_is_compared_without_a_truth_or_with_one_class() -> None:
    certificate, _ = two_classes()
    control = Control("any", score=np.zeros(400))
    assert compare_with(certificate, [control]) is None
    assert compare_with(certificate, [control], truth=np.full(400, -1)) is None
    assert compare_with(certificate, [control], truth=np.zeros(400, dtype=int)) is None
    with pytest.raises(SettingsError, match="expected one for each of the 400"):
        compare_with(certificate, [Control("few", score=np.zeros(3))], truth=np.arange(400) % 2)


def test_a_file_of_controls_gives_back_the_same_for_other_targets() -> None:
    controls = [
        Control("a", score=np.array([0.1, np.nan, 1 / 3]), of_class=0, reads_graph=False),
        Control("b", label=np.array([2, -1, 0])),
    ]
    text = controls_to_json(controls, ["x", "y", "z"])
    first, second = controls_from_json(text, ["z", "new", "x"])
    assert first.score is not None
    assert first.score[[0, 2]].tolist() == [1 / 3, 0.1]
    assert np.isnan(first.score[1])
    assert (first.of_class, first.reads_graph, second.reads_graph) == (0, False, None)
    assert second.label is not None
    assert second.label.tolist() == [0, -1, 2]
    for damaged in ("{", "[]", json.dumps({"targets": ["x"], "controls": [{"name": "a"}]}), text.replace("0.1, ", "")):
        with pytest.raises(SettingsError, match="damaged"):
            controls_from_json(damaged, ["x"])


def test_a_table_of_scores_is_read_by_its_ids(tmp_path: Path) -> None:
    file = tmp_path / "rules.csv"
    file.write_text("score,id\n0.5,7\n,10\n-2,13\n", encoding="utf-8")
    assert read_scores(file) == {"rules": {"7": "0.5", "10": "", "13": "-2"}}
    control = control_of_scores("rules", read_scores(file)["rules"], [7, 10, 13, 16], (), 2, None)
    assert control.score is not None
    assert control.score.tolist()[:1] == [0.5]
    assert np.isnan(control.score).tolist() == [False, True, False, True]
    file.write_text("account,a,b\n7,1,2\n", encoding="utf-8")
    assert list(read_scores(file)) == ["a", "b"]
    for wrong, words in (("id,s\n7,1\n7,2\n", "has a line already"), ("id,s\n7\n", "line 2"), ("id\n7\n", "titles")):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(SettingsError, match=words):
            read_scores(file)
    with pytest.raises(SettingsError, match="cannot read"):
        read_scores(tmp_path / "missing.csv")


def test_wrong_scores_are_refused_with_what_was_found() -> None:
    for scores, words in (
        ({"x": "high"}, "'high' is no score"),
        ({"other": 1.0}, "are these the ids"),
        ([1.0, 2.0], "2 scores for 1 targets"),
        ({"x": float("inf")}, "infinite"),
    ):
        with pytest.raises(SettingsError, match=words):
            control_of_scores("ours", scores, ["x"], (), 2, None)
    with pytest.raises(SettingsError, match="is no class"):
        control_of_scores("ours", {"x": "bird"}, ["x"], ("cat", "dog", "cow"), 3, None)
    by_series = control_of_scores("ours", pd.Series({"x": "dog"}), ["x"], ("cat", "dog", "cow"), 3, None)
    assert by_series.label is not None
    assert by_series.label.tolist() == [1]


def town(n: int = 600, seed: int = 0) -> Data:
    """Nodes whose class shows in the edge values alone: own features say nothing."""
    generator = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=generator) < 0.3).long()
    target = torch.arange(n).repeat_interleave(4)
    source = (target + torch.randint(1, n, (4 * n,), generator=generator)) % n
    value = torch.randn(4 * n, generator=generator) + 2.0 * y[target]
    part = torch.arange(n) % 3
    data = Data(x=torch.ones(n, 1), y=y, edge_index=torch.stack([source, target]), edge_attr=value[:, None])
    data.node_id = torch.arange(n)
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    return data


def test_trees_on_a_neighbourhood_see_the_edges_and_those_on_own_features_do_not() -> None:
    data = town()
    rows = np.flatnonzero(data.test_mask.numpy())
    own, around = tree_controls(CanonicalData.of(data), rows, 2)
    assert (own.name, own.reads_graph) == (OWN_TREES, False)
    assert (around.name, around.reads_graph) == (NEIGHBOURHOOD_TREES, True)
    assert own.score is not None
    assert around.score is not None
    positive = data.y.numpy()[rows] == 1
    assert len(set(own.score.tolist())) == 1, "a column of ones tells nobody apart"
    assert around.score[positive].mean() > 0.3 + around.score[~positive].mean()
    moved = data.clone()
    moved.edge_index = moved.edge_index.flip(0)
    moved.edge_attr = -moved.edge_attr
    assert tree_controls(CanonicalData.of(moved), rows, 2)[0].score.tolist() == own.score.tolist()  # type: ignore[union-attr]


def test_trees_read_what_nodes_did_on_their_busiest_days() -> None:
    data = town()
    rows = np.flatnonzero(data.test_mask.numpy())
    data.edge_attr = torch.zeros_like(data.edge_attr)  # edges tell nobody apart
    busy = np.random.default_rng(0).normal(size=(600, 2)) + 9.0 * data.y.numpy()[:, None]
    own, around = tree_controls(CanonicalData.of(data), rows, 2, daily=(busy, busy))
    assert (own.name, around.name, around.reads_graph) == (OWN_TREES, DAILY_TREES, True)
    positive = data.y.numpy()[rows] == 1
    assert around.score is not None
    assert around.score[positive].min() > around.score[~positive].max()


@pytest.mark.parametrize(
    ("model", "values", "name"),
    [
        ("gcn", "edge_attr", WITHOUT_VALUES),
        ("rgcn", "edge_attr", WITH_VALUES),
        ("gcn", "edge_weight", WITH_VALUES),
        ("sage", "edge_weight", WITHOUT_VALUES),
        ("gcn", None, UNDEFENDED_GNN),
    ],
)
def test_an_undefended_gnn_is_named_by_what_it_reads(model, values, name) -> None:
    data = town(60)
    value = data.edge_attr
    del data.edge_attr
    if values is not None:
        data[values] = value if values == "edge_attr" else value[:, 0]
    assert undefended_name(data, build_model(model, data)) == name
    assert undefended_name(data, torch.nn.Linear(1, 2)) == UNDEFENDED_GNN


def test_a_gnn_may_read_values_of_edges_as_features_of_nodes() -> None:
    data = town(60)
    richer = with_edge_values(data)
    assert richer is not None
    assert (data.x.size(1), richer.x.size(1)) == (1, 9)
    own = data.edge_attr[data.edge_index[1] == 7, 0].double()
    expected = [own.sum(), own.mean(), own.min(), own.max()]
    assert richer.x[7, 5:].tolist() == pytest.approx([float(v.sign() * v.abs().log1p()) for v in expected], rel=1e-5)
    del data.edge_attr
    assert with_edge_values(data) is None


def test_no_label_outside_of_training_and_validation_enters_a_tree() -> None:
    data = town()
    rows = np.flatnonzero(data.test_mask.numpy())
    before = tree_controls(CanonicalData.of(data), rows, 2)
    data.y[data.test_mask] = 1 - data.y[data.test_mask]
    after = tree_controls(CanonicalData.of(data), rows, 2)
    for old, new in zip(before, after, strict=True):
        assert old.score is not None
        assert new.score is not None
        assert old.score.tolist() == new.score.tolist()


def test_trees_learn_from_what_training_may_see_alone() -> None:
    data = town()
    rows = np.flatnonzero(data.test_mask.numpy())
    later = data.clone()
    later.edge_attr = torch.where(data.y[later.edge_index[1]][:, None] == 1, 9.0, -9.0)  # tells all, and comes later
    seen = tree_controls(CanonicalData.of(later), rows, 2, training=CanonicalData.of(data))
    both = tree_controls(CanonicalData.of(later), rows, 2)
    positive = data.y.numpy()[rows] == 1
    assert both[1].score is not None
    assert seen[1].score is not None
    assert both[1].score[positive].min() > both[1].score[~positive].max()
    assert seen[1].score.tolist() != both[1].score.tolist()


def test_aggregates_of_a_small_neighbourhood() -> None:
    data = Data(
        x=torch.tensor([[1.0], [5.0], [3.0]]),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        edge_attr=torch.tensor([[2.0], [7.0]]),
    )
    rows = neighbourhood(data)
    # out, in, mean and largest feature of neighbours, then sum, mean, smallest, largest value going out and coming in
    assert rows[1].tolist() == [1, 1, 2, 3, 7, 7, 7, 7, 2, 2, 2, 2]
    assert rows[0].tolist() == [1, 0, 5, 5, 2, 2, 2, 2, 0, 0, 0, 0]


def test_python_compares_with_trees_and_scores_and_a_report_shows_both(tmp_path: Path) -> None:
    data = town()
    data.class_names = ["honest", "fraud"]
    votes = ac.StackedVotes(size=1, edge_values=True, combine="mean", folds=2, epochs=40)
    model = ac.fit(None, data, votes, epochs=5)
    certificate = ac.certify(model, data, model.defence, targets=data.test_mask)
    ours = {int(k): float(data.y[k]) for k in certificate.target if k % 2}
    compared = ac.compare_controls(certificate, data, scores={"our rules": ours}, positive="fraud")
    names = {row.name for row in compared.controls}
    assert {OWN_TREES, NEIGHBOURHOOD_TREES, "our rules", "the same model without edges"} == names
    assert "fraud" in compared.sentence
    assert compared.sentence.replace("\u00a0", " ") in str(compared)
    context = ReportContext(controls=compared)
    summary = summarise(certificate, context)
    assert summary.compared is not None
    assert summary.compared.sentence == compared.sentence
    assert beside(summary)[0] == compared.sentence, "the first thing that stands with the headline"
    page = build_report(certificate, tmp_path / "page.html", context=context).read_text("utf-8")
    assert "our rules on the " in page
    assert page.index(compared.sentence.split(":")[0]) < page.index('id="proved"'), "on the first screen"
    with pytest.raises(SettingsError, match="expected one of"):
        ac.compare_controls(certificate, same="luck")
    with pytest.raises(SettingsError, match="honest, fraud"):
        ac.compare_controls(certificate, positive="fruad")


def test_the_lines_beside_the_curve_are_at_the_same_point_too() -> None:
    """An undefended model at a point of its own would look worse, or better, than it is."""
    certificate, truth = two_classes()
    scores = np.random.default_rng(1).normal(size=400) + 2.0 * truth
    control = Control("undefended GNN", score=scores)
    context = ReportContext(truth=truth, undefended=0.123, controls=[control])
    summary = summarise(certificate, context)
    shown = {key: accuracy for key, _, accuracy in summary.references}
    assert summary.compared is not None
    row = next(row for row in summary.compared.controls if row.name == "undefended GNN")
    assert shown["undefended"] == row.accuracy != 0.123
    right = row.value * (truth == 1).sum() + (1 - row.false_positive_rate) * (truth == 0).sum()
    assert row.accuracy == pytest.approx(right / 400)
    plain = summarise(certificate, ReportContext(truth=truth, undefended=0.123))
    assert {key: accuracy for key, _, accuracy in plain.references}["undefended"] == 0.123


@pytest.mark.parametrize(("of_one", "expected"), [(49, 1), (50, 1), (51, 0)])
def test_the_rarer_class_is_to_be_found_and_class_1_if_both_are_as_frequent(of_one: int, expected: int) -> None:
    certificate, _ = two_classes(100)
    truth = (np.arange(100) < of_one).astype(np.int64)
    compared = compare_with(certificate, [], truth=truth)
    assert compared is not None
    assert compared.positive == expected
