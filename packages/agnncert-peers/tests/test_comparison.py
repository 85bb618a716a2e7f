"""``compare``: kinds of attack, the same data and model for all, honest numbers, tables and figures."""

import copy
import csv
import io
import json
import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN as PyGCN

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.errors import BudgetError, DivisionError, GraphError, SettingsError
from agnncert.report.tables import laid_out
from agnncert_peers.comparison import Comparison
from agnncert_peers.defences import defence_named
from agnncert_peers.deletions import BiRS
from agnncert_peers.entries import usual_defences
from agnncert_peers.gnncert import GNNCertE, GNNCertEN
from agnncert_peers.threat import Threat
from tests.support.certificates import certificate_of, random_evidence
from tests.support.forests import plant_small
from tests.support.labelled import labelled_graph, labelled_graphs

QUICK = {
    "fit": {"epochs": 4, "evaluate_every": 2},
    "model_args": {"hidden_channels": 8},
    "sampling": {"selection": 10, "samples": 150},
}


@pytest.fixture(scope="module")
def data():
    return labelled_graph(num_nodes=60, noise=1.5, dtype=torch.float32)


@pytest.fixture(scope="module")
def compared(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    defences = [ac.EdgeCentric(9), ac.NodeCentric(9), BiRS(0.4, 0.5)]
    settings = {"against": "injection", "sizes": [0, 1, 3], "edges_per_injected": 2, **QUICK}
    return ac.compare(data, defences, folder=folder, **settings), folder, defences, settings


def row_of(comparison, name):
    return next(row for row in comparison.rows if row["defence"].startswith(name))


def test_every_defence_and_all_references_get_a_row(compared):
    names = [row["defence"] for row in compared[0].rows]
    assert names == [
        "undefended",
        "graph-free MLP",
        "graph-free, cross-fitted",
        "majority class",
        "prediction without edges",
        "boosted trees on own features",
        "boosted trees on own features and neighbourhood aggregates",
        "edge-centric(T=9)",
        "node-centric(T=9)",
        "bi-rs(p_edge=0.4, p_node=0.5)",
    ]


@pytest.fixture(scope="module")
def two_classes():
    graph = labelled_graph(num_nodes=90, noise=1.5, dtype=torch.float32)
    graph.y = (graph.y == 0).long()
    graph.node_id = torch.arange(90)
    return graph


def test_two_classes_are_compared_at_one_false_positive_rate(two_classes, tmp_path):
    truth = two_classes.y[two_classes.test_mask].numpy()
    ids = np.flatnonzero(two_classes.test_mask.numpy()).tolist()
    known = dict(zip(ids, truth.tolist(), strict=True))
    defences = [ac.NodeCentric(5)]
    given = {"sizes": [0, 1], "scores": {"rules": known}, "folder": tmp_path, **QUICK}
    comparison = ac.compare(two_classes, defences, **given)
    point = comparison.point
    defence = row_of(comparison, "node-centric")
    assert point.positive == int((truth == 1).sum() <= (truth == 0).sum())
    assert point.false_positive_rate == defence["false_positive_rate"][0][point.positive]
    # Votes have ties: at its own rate of false positives a vote finds what it finds.
    assert defence["recall_at_point"] >= defence["recall"][0][point.positive] - 1e-9
    rules = row_of(comparison, "rules")
    assert (rules["recall_at_point"], rules["roc_auc"], rules["average_precision"]) == (1, 1, 1)
    assert rules["guarantee"] == "none"
    assert rules["certified"][1] is None
    assert row_of(comparison, "majority")["roc_auc"] is None
    own = row_of(comparison, "boosted trees on own features")
    assert own["certified"] == [own["accuracy"]] * 2
    assert row_of(comparison, "boosted trees on own features and")["certified"][1] is None
    assert "false positives of class" in str(comparison)
    assert "rules" in comparison.point_table()
    again = ac.compare(two_classes, defences, false_positive_rate=0.5, **given)
    assert again.point.false_positive_rate == 0.5
    assert row_of(again, "undefended")["roc_auc"] == row_of(comparison, "undefended")["roc_auc"], "kept in the folder"
    written = {file.suffix: file for file in comparison.save(tmp_path / "out")}
    assert "nothing is proved about it" in written[".md"].read_text("utf-8")
    assert json.loads(written[".json"].read_text("utf-8"))["point"]["positive"] == point.positive
    with pytest.raises(SettingsError, match="from 0 to 1"):
        ac.compare(two_classes, defences, false_positive_rate=2, **given)


def test_more_classes_have_no_common_point(compared):
    assert compared[0].point is None
    with pytest.raises(SettingsError, match="needs two classes"):
        compared[0].point_table()


def test_stacked_votes_stand_beside_the_models_that_they_begin_with(data, tmp_path):
    defence = defence_named("stacked", "node", {"epochs": 20})
    settings = {"sizes": [0, 1, 2], "folder": tmp_path, **QUICK}
    comparison = ac.compare(data, [defence], **settings)
    row, control = row_of(comparison, "stacked-votes"), row_of(comparison, "graph-free, cross-fitted")
    certificate = next(
        found for file in tmp_path.glob("*.cert")
        if (found := ac.load_certificate(file)).claim.method == "stacked-votes"
    )  # fmt: skip
    right = certificate.label == certificate.truth
    assert row["certified"] == [(right & (certificate.structure_radius >= size)).mean() for size in (0, 1, 2)]
    assert len(set(control["certified"])) == 1
    assert control["guarantee"] == "deterministic: reads no edges"
    assert control["accuracy"] == row_of(comparison, "prediction without edges")["accuracy"]  # the same five models
    with pytest.raises(SettingsError, match="classify nodes"):
        defence_named("stacked", "graph", {})


def test_numbers_are_those_of_the_certificates(compared, data):
    comparison, folder, _, _ = compared
    for file in folder.glob("*.cert"):
        certificate = ac.load_certificate(file)
        assert ac.verify(file).holds
        row = next(
            row for row in comparison.rows if row["settings"] in (certificate.claim.division, *certificate.claim.notes)
        )
        right = certificate.label == data.y.numpy()[certificate.row]
        for size, share in zip(comparison.sizes, row["certified"], strict=True):
            budget = ac.Budget(inject_nodes=size, edges_per_injected=2)
            assert share == (right & certificate.holds_against(budget)).mean()
        assert row["accuracy"] == right.mean()


def test_references_claim_no_more_than_they_can(compared):
    comparison = compared[0]
    free, plain = row_of(comparison, "graph-free"), row_of(comparison, "undefended")
    assert free["certified"] == [free["accuracy"]] * 3  # whatever is injected, it reads no edge
    assert free["guarantee"].startswith("deterministic")
    assert plain["certified"] == [plain["accuracy"], None, None]  # nothing is proved about it
    assert plain["guarantee"] == "none"


def test_what_the_undefended_model_withstands_is_tried_on_some_targets(data, tmp_path):
    given = {"sizes": [0, 1], "fit": {"epochs": 2}, "folder": tmp_path}
    compared = ac.compare(data, [ac.NodeCentric(5)], exact=4, **given)
    assert compared.remarks()[0].startswith("undefended: correct and exactly robust against 1 edge")
    assert "of 4 targets" in str(compared)
    assert ac.compare(data, [ac.NodeCentric(5)], exact=4, **given).exact == compared.exact
    assert not ac.compare(data, [ac.NodeCentric(5)], **given).exact
    with pytest.raises(SettingsError, match="exact=4 is for target nodes"):
        ac.compare(data, [ac.NodeCentric(5)], exact=4, against="features", **given)


def test_a_constant_stands_beside_every_defence(compared, data):
    row = row_of(compared[0], "majority")
    constant = int(torch.bincount(data.y[data.train_mask]).argmax())
    assert row["certified"] == [float((data.y[data.test_mask] == constant).double().mean())] * 3
    assert row["forward_passes"] == 0


def test_guarantees_and_costs_are_told_apart(compared):
    comparison = compared[0]
    assert row_of(comparison, "node-centric")["guarantee"] == "deterministic"
    assert row_of(comparison, "bi-rs")["guarantee"] == "probabilistic, alpha = 0.01 for each target"
    assert [row["forward_passes"] for row in comparison.rows] == [1, 1, 5, 0, 1, 0, 0, 9, 9, 160]
    for row in (row for row in comparison.rows if row["seconds_forward"]):
        assert row["cost_in_forwards"] == pytest.approx(row["seconds_certification"] / row["seconds_forward"])


def test_made_again_it_takes_certificates_from_the_folder_for_any_attack(compared, data, monkeypatch):
    comparison, folder, defences, settings = compared
    monkeypatch.setattr("agnncert.study.fit", lambda *_, **__: pytest.fail("trained again"))
    again = ac.compare(data, defences, folder=folder, **settings)
    assert again == comparison
    edges = ac.compare(data, defences, folder=folder, **{**settings, "against": "edges"})
    assert row_of(edges, "bi-rs")["certified"][1:] == [None, None]  # it covers injected nodes only
    assert row_of(edges, "edge-centric")["certified"][1] > 0


def test_training_that_had_not_converged_is_said(compared):
    comparison = compared[0]
    early = replace(comparison, rows=[{**row, "converged": k > 1} for k, row in enumerate(comparison.rows)])
    names = ", ".join(row["defence"] for row in comparison.rows[:2])
    assert f"Training had not converged, its last epoch was the best: {names}. Try more epochs." in str(early)
    assert str(early).count("had not converged") == 1
    stored = [json.loads(file.read_text()) for file in compared[1].glob("*.json")]
    assert all(isinstance(one["converged"], bool) for one in stored)


def test_graphs_are_compared_under_edges_and_features(monkeypatch):
    plant_small(monkeypatch)
    graphs = labelled_graphs(16, dtype=torch.float32)
    graphs.test = torch.arange(6, 16)
    comparison = ac.compare(
        graphs,
        {"ours": ac.NodeCentric(5), "GNNCert": GNNCertEN(3, 3)},
        against="edges and features",
        sizes=[0, 1, 2],
        **QUICK,
    )
    assert comparison.task == "graph"
    assert [row["defence"] for row in comparison.rows[-2:]] == ["ours", "GNNCert"]
    assert row_of(comparison, "structure only")["control"]
    assert row_of(comparison, "GNNCert")["forward_passes"] == 9
    assert row_of(comparison, "graph-free")["certified"][1:] == [None, None]  # it reads the features


def test_a_trained_module_is_used_as_it_is(data):
    model = ac.build_model("gcn", data, hidden_channels=8, num_layers=2).eval()
    before = [p.clone() for p in model.parameters()]
    comparison = ac.compare(data, [GNNCertE(7)], sizes=[0, 1], model=model, references=False)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    certificate = ac.certify(model, data, GNNCertE(7), data.test_mask)
    assert comparison.rows[0]["accuracy"] == certificate.certified_accuracy(data.y)
    assert comparison.rows[0]["seconds_training"] == 0


def test_a_model_of_ones_own_is_made_and_trained_for_each_defence(data, tmp_path):
    made = []

    def mine():
        made.append(PyGCN(data.num_features, 8, num_layers=2, out_channels=3))
        return made[0]  # the very same module again, as a careless function might return it

    how = {"sizes": [0, 1], "model": mine, "fit": QUICK["fit"], "folder": tmp_path}
    divisions = [ac.EdgeCentric(7), ac.NodeCentric(7)]
    comparison = ac.compare(data, divisions, references=False, **how)
    assert len(made) >= len(divisions)
    for division, row in zip(divisions, comparison.rows, strict=True):
        torch.manual_seed(0)
        alone = PyGCN(data.num_features, 8, num_layers=2, out_channels=3)
        untrained = ac.certify(copy.deepcopy(alone).eval(), data, division, data.test_mask)
        for ours, theirs in zip(made[0].parameters(), alone.parameters(), strict=True):
            assert torch.equal(ours, theirs)  # each training had a copy, and all began alike
        trained = ac.certify(ac.fit(alone, data, division, **QUICK["fit"]), data, division, data.test_mask)
        assert (trained.counts != untrained.counts).any()
        assert row["certified"] == trained.certified_accuracy(data.y, sizes=[0, 1]).tolist()
        (file,) = [
            file for file in tmp_path.glob("*.cert") if ac.load_certificate(file).claim.division == str(division)
        ]
        assert ac.load_certificate(file).counts.tolist() == trained.counts.tolist()
        assert row["seconds_training"] > 0

    with pytest.raises(ac.errors.ModelContractError, match="returned a str"):
        ac.compare(data, [ac.EdgeCentric(7)], model=lambda: "gcn")


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("kind", ["edges", "injection", "features", "edges and features"])
def test_usual_defences_fit_the_task_and_the_attack(task, kind):
    defences = usual_defences(task, Threat(kind))
    assert len(defences) >= 2
    assert not (task == "graph" and any(isinstance(defence, BiRS) for defence in defences))
    assert usual_defences("node", Threat("features", own_features=True))[0].gates_features


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"against": "edge"}, "edges"),
        ({"sizes": [-1]}, "sizes"),
        ({"defences": ["nonsense"]}, "not a defence"),
        ({"targets": []}, "no targets"),
    ],
)
def test_calls_that_make_no_sense_are_refused(data, arguments, message):
    with pytest.raises(SettingsError, match=message):
        ac.compare(data, **arguments)


def test_tables_say_the_same_in_every_format(compared):
    comparison = compared[0]
    share = f"{100 * row_of(comparison, 'node-centric')['certified'][1]:.1f}"
    for kind in ("text", "markdown", "latex"):
        line = next(line for line in comparison.table(kind).splitlines() if "node-centric" in line)
        assert share in line
    rows = list(csv.DictReader(io.StringIO(comparison.table("csv"))))
    assert float(rows[8]["certified_1"]) == pytest.approx(row_of(comparison, "node")["certified"][1], abs=1e-6)
    assert "injected nodes with up to 2 edges each" in str(comparison)
    with pytest.raises(SettingsError, match="text"):
        comparison.table("txt")


def test_a_latex_table_fits_a_column(compared):
    """At 8 points a digit is 4.25 points wide, and a column of two has 240 points."""
    comparison = compared[0]
    long = replace(
        comparison,
        sizes=tuple(range(14)),
        rows=[{**row, "certified": [row["certified"][0]] * 14} for row in comparison.rows],
    )
    for shown in (comparison, long):
        text = shown.table("latex")
        assert r"\begin{tabularx}{\columnwidth}" in text
        lines = [line for line in text.splitlines() if line.endswith(r"\\")]
        cells = [[cell.strip(" \\") for cell in line.split("&")[1:]] for line in lines]
        widths = [max(map(len, column)) * 4.25 + 6 for column in zip(*cells, strict=True)]
        assert 240 - sum(widths) >= 75  # for names, which are broken
        assert len(lines) == 1 + len(comparison.rows)
    assert cells[0] == ["0", "3", "5", "8", "10", "13"]
    assert "% Left out for want of room: sizes 1, 2, 4, 6, 7, 9, 11, 12." in text
    bi_rs = next(line for line in text.splitlines() if "bi-rs" in line)
    assert r"$^\ddagger$" in bi_rs
    assert r"$^\ddagger$ probabilistic, alpha = 0.01 for each target." in text
    braces = re.sub(r"\\[{}%]", "", text)
    assert braces.count("{") == braces.count("}")


def test_latex_is_escaped():
    assert r"50\% \& a\_b" in laid_out("latex", ["x"], [["50% & a_b"]])


def test_everything_is_written_to_a_folder_and_twice_the_same(compared, tmp_path):
    first = {path.name: path.read_bytes() for path in compared[0].save(tmp_path)}
    assert sorted(first) == [f"comparison.{e}" for e in ("csv", "json", "md", "pdf", "svg", "tex")]
    second = {path.name: path.read_bytes() for path in compared[0].save(tmp_path)}
    assert first == second
    stored = json.loads(first["comparison.json"])
    assert stored["rows"] == list(compared[0].rows)
    svg = first["comparison.svg"].decode()
    assert all(text in svg for text in ("node-centric(T=9)", "(random)", "(no proof)"))


def test_a_figure_of_another_kind_is_refused(compared, tmp_path):
    assert compared[0].figure(tmp_path / "it.png").stat().st_size > 1000
    with pytest.raises(SettingsError, match="svg"):
        compared[0].figure(tmp_path / "it.bmp")


def test_unlimited_edges_can_be_written_as_json():
    comparison = Comparison("x", "node", Threat("injection", math.inf), (0,), 1, ())
    assert json.loads(json.dumps(comparison.to_json(), allow_nan=False))["threat"]["edges_per_injected"] == "inf"
    assert np.isinf(comparison.threat.edges_per_injected)


def spent(budget):
    return (
        budget.add_edges + budget.delete_edges + budget.change_features + budget.inject_nodes + budget.target_features
    )


@pytest.mark.parametrize(
    "threat",
    [
        Threat("edges"),
        Threat("injection", 3),
        Threat("features"),
        Threat("features", own_features=True),
        Threat("edges and features"),
        Threat("edges and features", own_features=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_every_budget_spends_the_size_and_none_comes_twice(threat, size):
    budgets = list(threat.budgets(size))
    assert all(spent(budget) == size for budget in budgets)
    assert max(Counter(budgets).values()) == 1


@pytest.mark.parametrize(
    ("threat", "number"),
    [
        (Threat("edges"), 4),
        (Threat("injection", 3), 1),
        (Threat("features"), 1),
        (Threat("features", own_features=True), 2),
        (Threat("edges and features"), 4 + 3 + 2 + 1),
        (Threat("edges and features", own_features=True), 4 + 2 * (3 + 2 + 1)),
    ],
    ids=str,
)
def test_no_way_to_spend_three_changes_is_left_out(threat, number):
    assert len(list(threat.budgets(3))) == number


def test_injected_nodes_bring_the_stated_edges():
    assert list(Threat("injection", 5).budgets(2)) == [Budget(inject_nodes=2, edges_per_injected=5)]
    assert next(Threat("injection").budgets(1)).edges_per_injected == math.inf


@pytest.mark.parametrize("theorem", ["edge-centric/node", "gated/node", "gnncert-en/graph", "custom/graph"])
@pytest.mark.parametrize("threat", [Threat("edges"), Threat("injection", 2), Threat("edges and features")], ids=str)
def test_a_target_withstands_a_size_if_it_withstands_every_way_to_spend_it(theorem, threat):
    certificate = certificate_of(random_evidence(np.random.default_rng(3), theorem, unstable=0.02))
    found = threat.withstood(certificate, (0, 1, 2, 3))
    for target in range(certificate.num_targets):
        held = [all(certificate.holds_against(budget)[target] for budget in threat.budgets(size)) for size in range(4)]
        assert found[target] == held.index(False) - 1 if False in held else found[target] == 3


def test_a_graph_free_model_notices_no_attack_but_on_what_it_reads():
    assert Threat("injection").leaves_graph_free("node")
    assert Threat("features").leaves_graph_free("node")
    assert not Threat("features", own_features=True).leaves_graph_free("node")
    assert Threat("edges").leaves_graph_free("graph")
    assert not Threat("injection").leaves_graph_free("graph")
    assert not Threat("edges and features").leaves_graph_free("graph")


def test_attacks_that_make_no_sense_are_refused():
    with pytest.raises(SettingsError, match="edges"):
        Threat("edge")
    with pytest.raises(BudgetError, match="edges_per_injected"):
        Threat("injection", -1)


def test_arguments_in_another_order_are_refused_with_the_right_one(data):
    model = ac.build_model("gcn", data)
    with pytest.raises(GraphError, match=r"got WeightedNodeGNN, which is the model\. The order is data, defence"):
        ac.compare(model, data)
    with pytest.raises(DivisionError, match="got Data, which is the data"):
        ac.compare(data, data)
    with pytest.raises(GraphError, match="which is the defence"):
        ac.compare(ac.NodeCentric(5), data)


def test_every_row_has_the_measures_of_its_certificate_and_can_be_shown_by_each(compared, data):
    comparison, folder, _, _ = compared
    for file in folder.glob("*.cert"):
        certificate = ac.load_certificate(file)
        row = next(
            row for row in comparison.rows if row["settings"] in (certificate.claim.division, *certificate.claim.notes)
        )
        for place, size in enumerate(comparison.sizes):
            found = certificate.measures(ac.Budget(inject_nodes=size, edges_per_injected=2), truth=data.y)
            assert row["balanced"][place] == found.balanced_accuracy
            assert row["recall"][place] == found.recall.tolist()
            assert row["precision"][place] == [None if math.isnan(share) else share for share in found.precision]
            assert row["false_positive_rate"][place] == found.false_positive_rate.tolist()
            possible = certificate.possible(ac.Budget(inject_nodes=size, edges_per_injected=2))
            assert row["set_size"][place] == possible.sum(axis=1).mean()
    assert "Possible labels of a target, on average, at size" in str(comparison)
    constant = int(torch.bincount(data.y[data.train_mask]).argmax())
    balanced, recall = comparison.by("balanced"), comparison.by("recall", constant)
    assert balanced.majority == pytest.approx([1 / 3] * 3)
    assert recall.majority == [1.0] * 3
    assert comparison.by("recall", (constant + 1) % 3).majority == [0.0] * 3
    assert "certified balanced accuracy (mean recall of the classes)" in str(balanced)
    assert f"certified recall of class {constant} in %" in recall.title
    stars = [line.count("*") for line in recall.table().splitlines()]
    below = []
    for row in comparison.rows:
        shares = [share for share in recall.curve(row) if share is not None]
        below.append(0 if row["control"] else sum(share < 1 for share in shares))
    assert stars[-len(below) :] == below
    assert comparison.by("precision", 0).figure
    with pytest.raises(SettingsError, match="is about one class: pass label= from 0 to 2"):
        comparison.by("recall")
    with pytest.raises(SettingsError, match="leave label=1 out"):
        comparison.by("balanced", 1)
    with pytest.raises(SettingsError, match='did you mean "recall"'):
        comparison.by("recal", 1)


def test_a_rare_class_makes_every_class_count_the_same_unless_told_otherwise(data):
    rare = data.clone()
    rare.y = torch.zeros(60, dtype=torch.int64)
    for mask in (rare.train_mask, rare.val_mask, rare.test_mask):
        rare.y[mask.nonzero().view(-1)[:1]] = 1
    how = {"sizes": [0, 1], "fit": {"epochs": 2, "evaluate_every": 1}, "model_args": {"hidden_channels": 4}}
    usual = ac.compare(rare, [ac.NodeCentric(5)], **how)
    told = ac.compare(rare, [ac.NodeCentric(5)], measure="accuracy", **how)
    assert (usual.measure, told.measure) == ("balanced", "accuracy")
    assert usual.majority == pytest.approx([0.5, 0.5])
    assert told.majority == pytest.approx([19 / 20] * 2)
    with pytest.raises(SettingsError, match="Valid: accuracy, balanced"):
        ac.compare(rare, [ac.NodeCentric(5)], measure="recall@0.1", **how)
