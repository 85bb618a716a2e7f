"""Rows of a comparison: controls certify what they can prove, votes are named, and envelopes are called envelopes."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.errors import SettingsError
from agnncert.report.summary import BY_SIZE
from agnncert_peers.control_rows import bag_row, size_row
from agnncert_peers.runner import make_study
from agnncert_peers.size_control import GraphSizes, SizedGraphs, one_unit, size_alone, size_rule
from agnncert_peers.threat import Threat
from tests.support.forests import plant_small
from tests.support.labelled import labelled_graph, labelled_graphs
from tests.support.synthetic import made_up_certificate

QUICK = {"fit": {"epochs": 4, "evaluate_every": 2}, "model_args": {"hidden_channels": 8}}
SIZES = (0, 1, 2, 4)


@pytest.fixture(scope="module", autouse=True)
def small_forests():
    with pytest.MonkeyPatch.context() as patch:
        plant_small(patch)
        yield


@pytest.fixture(scope="module")
def graphs():
    made = labelled_graphs(40, dtype=torch.float32)
    made.train, made.val, made.test = torch.arange(16), torch.arange(16, 26), torch.arange(26, 40)
    return made


@pytest.fixture(scope="module")
def nodes():
    return labelled_graph(num_nodes=60, noise=1.5, dtype=torch.float32)


@pytest.fixture(scope="module")
def designed(graphs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("designed")
    settings = {"sizes": SIZES, "size": [1, 4], "folder": folder, **QUICK}
    return ac.compare(graphs, [ac.EdgeCentric(12)], **settings), folder, settings


def row_of(comparison, name):
    return next(row for row in comparison.rows if row["defence"].startswith(name))


def test_controls_of_graphs_stand_before_the_defences(designed):
    names = [row["defence"] for row in designed[0].rows]
    assert names == [
        "undefended",
        "graph-free MLP",
        "majority class",
        "size only, nodes",
        "size only, edges",
        "bag of nodes, voting",
        "sums of node features",
        "structure only",
        "edge-centric(T=12), for size 1",
        "edge-centric(T=12), for size 4",
    ]
    assert [row["control"] for row in designed[0].rows] == [True] * 8 + [False] * 2


def test_what_is_possible_for_classifiers_of_node_types_stands_below_the_table(graphs, tmp_path):
    typed = copy.deepcopy(graphs)
    for graph in typed:
        graph.x = torch.eye(3)[torch.arange(graph.num_nodes) % 3]  # the number of nodes decides
    settings = {"sizes": [0, 2], "against": "injection", "folder": tmp_path, **QUICK}
    found = ac.compare(typed, [ac.NodeCentric(3)], **settings)
    histogram = row_of(found, "sums of node features")
    assert found.ceiling[0] >= histogram["certified"][0]
    assert found.ceiling[1] < found.ceiling[0]
    assert histogram["certified"][1] is None
    told = "At most this % is possible for any classifier that reads how many nodes of each type"
    assert told in str(found)
    assert f"{100 * found.ceiling[1]:.1f} at 2" in str(found)
    structure = row_of(found, "structure only")
    assert structure["certified"][1] is None
    features = ac.compare(typed, [ac.NodeCentric(3)], **{**settings, "against": "features"})
    assert set(row_of(features, "structure only")["certified"]) == {structure["accuracy"]}
    edges = ac.compare(typed, [ac.NodeCentric(3)], **{**settings, "against": "edges"})
    assert set(row_of(edges, "sums of node features")["certified"]) == {histogram["accuracy"]}
    assert edges.ceiling == (found.ceiling[0],) * 2


def test_each_design_size_has_a_row_with_the_vote_that_its_certificate_states(designed, graphs):
    comparison, folder, _ = designed
    votes = {}
    for file in folder.glob("*.cert"):
        assert ac.verify(file).holds
        certificate = ac.load_certificate(file)
        if certificate.claim.division.startswith("edge-centric"):
            right = certificate.label == graphs.y.numpy()[certificate.row]
            votes[certificate.voting_rule] = [(right & (certificate.radius >= size)).mean() for size in SIZES]
    for size in (1, 4):
        row = row_of(comparison, f"edge-centric(T=12), for size {size}")
        assert row["design_size"] == size
        assert row["vote"].startswith("empty ")
        assert row["decides"]
        assert any(np.allclose(row["certified"], certified) for certified in votes.values())


def test_figures_draw_envelopes_as_points_and_call_them_so(designed, tmp_path):
    svg = designed[0].figure(tmp_path / "it.svg").read_text()
    assert "size only, edges (envelope)" in svg or not row_of(designed[0], "size only, edges")["envelope"]


def test_made_again_nothing_is_trained_or_chosen_again(designed, graphs, monkeypatch):
    comparison, _, settings = designed
    for name in (
        "agnncert.study.fit", "agnncert_peers.control_rows.fit", "agnncert.divided.defence.choose_voting_rule",
    ):  # fmt: skip
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("done again"))
    assert ac.compare(graphs, [ac.EdgeCentric(12)], **settings) == comparison


@pytest.mark.parametrize("threat", [Threat("edges"), Threat("injection", 2), Threat("edges and features")], ids=str)
def test_the_size_alone_is_chosen_for_the_attack_and_certified_against_it(graphs, threat):
    study, fitted = make_study(graphs), SizedGraphs.of(graphs)
    sizes, truth = GraphSizes.of([graphs[int(row)] for row in graphs.test]), graphs.y.numpy()[graphs.test.numpy()]
    for counts in ("nodes", "edges"):
        rule = size_rule(graphs, 1, counts, threat.budgets)
        row = size_row(study, fitted, counts, threat, SIZES, [1])
        assert (row["vote"], row["design_size"], row["envelope"]) == (str(rule), 1, False)
        assert row["certified"][0] == row["accuracy"]
        for size, share in zip(SIZES, row["certified"], strict=True):
            held = np.all([rule.withstands(sizes, budget) for budget in threat.budgets(size)], axis=0)
            assert share == ((rule.label(sizes) == truth) & held).mean()


def test_without_a_design_size_the_size_alone_is_chosen_for_each_size(graphs):
    study, fitted, threat = make_study(graphs), SizedGraphs.of(graphs), Threat("injection", 1)
    envelope = size_row(study, fitted, "nodes", threat, SIZES, SIZES)
    alone = [size_row(study, fitted, "nodes", threat, SIZES, [size]) for size in SIZES]
    assert envelope["certified"] == [row["certified"][place] for place, row in enumerate(alone)]
    assert envelope["envelope"] == (len({row["vote"] for row in alone}) > 1)
    constant = np.bincount(fitted.truth, fitted.weight).max()
    rules = [size_rule(fitted, size, "nodes", threat.budgets) for size in SIZES]
    assert all(rule.score >= constant - 1e-12 for rule in rules)


def test_a_bag_of_nodes_holds_against_edges_and_is_certified_against_nodes(graphs):
    study = make_study(graphs, None, "gcn", QUICK["model_args"], QUICK["fit"])
    edges = bag_row(study, Threat("edges"), SIZES, [1])
    assert edges["certified"] == [edges["accuracy"]] * 4
    injected = bag_row(study, Threat("injection", 3), SIZES, [2])
    assert injected["vote"].startswith("empty ")
    assert injected["certified"] == sorted(injected["certified"], reverse=True)
    from agnncert_peers.runner import vote_in_words

    model = study.new_model("mlp")
    ac.fit(model, graphs, ac.PerNeighbour(), seed=0, **study.fit_args)
    choice = ac.choose_voting_rule(model, graphs, ac.PerNeighbour(), 2, against="structure")
    best = next(one for one in choice.candidates if one.name == "with a prior")
    assert vote_in_words(best.voting_rule) == injected["vote"]
    cert = ac.certify(model, graphs, ac.PerNeighbour(), targets=graphs.test, voting_rule=best.voting_rule)
    held = [cert.holds_against(ac.Budget(inject_nodes=size, edges_per_injected=3)) for size in SIZES]
    right = cert.label == cert.truth
    assert injected["certified"] == pytest.approx([(right & one).mean() for one in held])


@pytest.mark.parametrize(("division", "counts"), [(ac.EdgeCentric(5), "edges"), (ac.NodeCentric(5), "nodes")], ids=str)
def test_a_run_measures_the_size_alone_in_the_unit_of_its_division(graphs, division, counts):
    study = replace(make_study(graphs), defence=division)
    targets, truth = GraphSizes.of([graphs[int(row)] for row in graphs.test]), graphs.y.numpy()[graphs.test.numpy()]
    certificate, _ = made_up_certificate(np.random.default_rng(0), division.theorem("graph"), 5, 10, 2)
    measured = size_alone(study, certificate, SIZES)[BY_SIZE]
    assert tuple(measured) == SIZES
    for size, share in measured.items():
        rule = size_rule(graphs, size, counts)
        holds = [rule.withstands(targets, budget) for budget in one_unit(counts)(size)]
        assert share == ((rule.label(targets) == truth) & holds[0] & holds[1]).mean()
    other, _ = made_up_certificate(np.random.default_rng(0), "gnncert-e/graph", 5, 10, 2)
    assert size_alone(replace(study, defence=ac.baselines.GNNCertE(5)), other, SIZES) == {}


def test_nodes_are_compared_with_the_best_model_without_edges(nodes):
    comparison = ac.compare(nodes, [ac.EdgeCentric(5), ac.NodeCentric(5)], sizes=SIZES, **QUICK)
    row = row_of(comparison, "prediction without edges")
    assert row["certified"] == [row["accuracy"]] * 4
    assert row["control"]
    scores = {}
    study = make_study(nodes, None, "gcn", QUICK["model_args"], QUICK["fit"])
    for division in (ac.EdgeCentric(5), ac.NodeCentric(5)):
        model = ac.fit(study.new_model(), nodes, division, seed=0, **study.fit_args)
        label = model(nodes.x, nodes.edge_index[:, :0]).argmax(1)
        scores[str(division)[:12]] = [
            float((label == nodes.y)[mask].double().mean()) for mask in (nodes.val_mask, nodes.test_mask)
        ]
    name, (_, test) = max(scores.items(), key=lambda pair: pair[1][0])
    assert name in row["settings"]
    assert row["accuracy"] == pytest.approx(test)
    features = ac.compare(nodes, [ac.NodeCentric(5)], against="features", sizes=SIZES, own_features=True, **QUICK)
    assert row_of(features, "prediction without edges")["certified"][1:] == [None] * 3  # it reads the target's own
    structure = row_of(features, "structure only")  # reads nobody's
    assert len(structure["certified"]) == len(SIZES)
    assert set(structure["certified"]) == {structure["accuracy"]}
    assert "structure only" not in {row["defence"] for row in comparison.rows}  # about edges nothing is proved


def test_the_structure_around_nodes_is_a_control_where_features_change(nodes, tmp_path):
    settings = {"against": "features", "own_features": True, "sizes": (0, 3), "folder": tmp_path, **QUICK}
    row = row_of(ac.compare(nodes, [ac.NodeCentric(5)], **settings), "structure only")
    defence = ac.StructureOnly()
    model = ac.fit(None, nodes, defence, seed=0)
    label = ac.certify(model, nodes, defence, nodes.test_mask).label
    assert row["certified"] == [(label == nodes.y[nodes.test_mask].numpy()).mean()] * 2
    assert row["control"]
    computed = nodes.clone()  # nearest nodes are joined, so that changed features would change the structure
    computed.x = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 2))).float()
    nearest = (torch.cdist(computed.x, computed.x) + 9 * torch.eye(60)).argmin(dim=1)
    ends = torch.stack([torch.arange(60), nearest])
    computed.edge_index = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    found = ac.compare(computed, [ac.NodeCentric(5)], **{**settings, "folder": None})
    assert "structure only" not in {each["defence"] for each in found.rows}


def test_a_defence_may_bring_its_vote_and_its_row_says_which(nodes):
    voting_rule = ac.VotingRule(empty="abstain", prior=4)
    defences = [ac.NodeCentric(5), (ac.NodeCentric(5), voting_rule), (ac.PerEdge(), ac.VotingRule(prior=3))]
    comparison = ac.compare(nodes, defences, sizes=SIZES, **QUICK)
    plain, voted, own = comparison.rows[-3:]
    assert [row["vote"] for row in (plain, voted, own)] == ["", "empty abstain, prior 4", "empty abstain, prior 3"]
    assert voted["defence"] == "node-centric(T=5), empty abstain, prior 4"
    assert own["defence"] == "per-edge, prior 3"
    assert " vote " in comparison.table().splitlines()[0]
    everywhere = ac.compare(nodes, [ac.NodeCentric(5)], sizes=SIZES, voting_rule=voting_rule, references=False, **QUICK)
    assert everywhere.rows[0]["certified"] == voted["certified"]
    assert everywhere.remarks()[0] == "node-centric(T=5): no controls were run."


def test_what_is_below_the_majority_class_is_starred_and_said(designed):
    by_edges = "size only, edges"
    controls = [
        {**row, "certified": [0.75, 0.6, 0.5, 0.5] if row["defence"] == by_edges else [0.5] * 4}
        for row in designed[0].rows
        if row["control"]
    ]
    mine = {**next(row for row in designed[0].rows if not row["control"]), "defence": "mine"}

    def shown(*certified):
        return replace(designed[0], rows=(*controls, {**mine, "certified": list(certified)}))

    falling = shown(0.8, 0.7, 0.4, 0.0)
    assert falling.remarks()[0] == (
        "mine: below the majority class from size 2 on; above all controls at size 0, 1, most at 1, by 10.0 points over "
        "size only, edges."
    )
    assert falling.remarks()[0] in str(falling)
    assert "The bar under attack, the strongest control: size only, edges, 60.0 at 1; " in str(falling)
    assert "75.0" not in falling.remarks()[1]  # without an attack anything may be stronger
    (line,) = [line for line in falling.table().splitlines() if line.startswith("mine")]
    assert line.count("*") == 2
    assert falling.table().count("*") == 2  # controls are not judged
    first = shown(0.5, 0.5, 0.5, 0.5).remarks()[0]
    assert first == "mine: nowhere below the majority class; above all controls at no size."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"defences": [(ac.NodeCentric(5), 3)]}, "tuple of a defence with its VotingRule, its model, or both"),
        ({"defences": [ac.baselines.BiRS()], "voting_rule": ac.VotingRule(prior=2)}, "adds up no votes"),
        ({"defences": [(ac.NodeCentric(5), ac.VotingRule(prior=[1, 2]))]}, "2 numbers: expected one for each of 3"),
        ({"defences": [(ac.GatedNodeCentric(5), ac.VotingRule(prior=2))]}, "own features"),
        ({"defences": [ac.baselines.GNNCertE(5)], "size": 2}, "none of these is among the defences"),
        ({"defences": [ac.NodeCentric(5)], "size": 2, "voting_rule": ac.VotingRule(prior=2)}, "none of these"),
        ({"size": -1}, "size=-1"),
        ({"size": []}, "expected one or several"),
        ({"size": [1, 0.5]}, "expected one or several"),
    ],
    ids=str,
)
def test_votes_that_make_no_sense_are_refused_before_any_work(nodes, arguments, said, monkeypatch):
    monkeypatch.setattr("agnncert.study.fit", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(SettingsError, match=said):
        ac.compare(nodes, **arguments)


def test_validation_nodes_in_the_training_graph_are_warned_about(nodes, caplog):
    for protocol, warned in (("transductive", True), ("held-out", False)):
        caplog.clear()
        fit_args = {**QUICK["fit"], "protocol": protocol}
        how = {"sizes": SIZES, "size": 1, "references": False, "model_args": QUICK["model_args"]}
        comparison = ac.compare(nodes, [ac.PerNeighbour()], fit=fit_args, **how)
        assert any("held-out" in record.getMessage() for record in caplog.records) is warned
        assert comparison.rows[0]["vote"].startswith("empty abstain, prior")
