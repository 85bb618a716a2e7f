"""``ac.explain`` as users call it, and as PyTorch Geometric does."""

import pytest
import torch
from torch_geometric.explain import Explainer, Explanation

import agnncert as ac
from agnncert.errors import IdError, SettingsError
from agnncert.report.page import build_report
from tests.soundness.laws.test_explanations import NAMES, case, graph

CONFIG = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


def pyg(model, algorithm, explanation_type="model"):
    return Explainer(
        model, algorithm=algorithm, explanation_type=explanation_type, edge_mask_type="object", model_config=CONFIG
    )


@pytest.mark.parametrize("kind", ["node-centric", "edge-centric", "per neighbour", "gated"])
def test_the_explainer_of_pyg_takes_the_votes_of_a_division(kind):
    data, model, defence = case(kind, 0)
    explainer = pyg(model, ac.VoteExplainer(defence, node_id=NAMES))
    explanation = explainer(data.x, data.edge_index, index=4)
    assert isinstance(explanation, Explanation)
    own = data.clone()
    del own.edge_attr
    explained = ac.explain(model, own, defence, "n4")
    expected = torch.zeros(data.num_edges)
    for voter in explained.voters:
        for edge in voter.edges:
            expected[edge.position] = explained.lead(voter.votes)
    assert torch.equal(explanation.edge_mask, expected)
    assert (explanation.edge_mask != 0).any()
    assert torch.equal(explained.to_pyg(own).edge_mask, expected)


def test_the_explainer_of_pyg_takes_stacked_votes_with_edge_values():
    data, model, defence = case("edge values", 0)
    explainer = pyg(model, ac.VoteExplainer(defence))
    explanation = explainer(data.x, data.edge_index, index=4, edge_attr=data.edge_attr)
    rowed = data.clone()
    del rowed.node_id
    explained = ac.explain(model, rowed, defence, 4)
    assert torch.equal(explanation.edge_mask, torch.from_numpy(explained.edge_weights(data.num_edges)).float())
    source, head = data.edge_index
    touches = (source == 4) | (head == 4)
    assert (explanation.edge_mask[~touches] == 0).all()


def test_a_given_class_is_explained_against_the_label():
    data, model, defence = case("node-centric", 0)
    explained = ac.explain(model, data, defence, "n4")
    target = torch.full((len(NAMES),), explained.runner_up)
    explanation = pyg(model, ac.VoteExplainer(defence, NAMES), "phenomenon")(
        data.x, data.edge_index, index=4, target=target
    )
    assert torch.equal(explanation.edge_mask, -torch.from_numpy(explained.edge_weights(data.num_edges)).float())


def test_one_decision_is_explained_at_a_time_and_masks_of_nodes_are_refused():
    data, model, defence = case("node-centric", 0)
    explainer = pyg(model, ac.VoteExplainer(defence, NAMES))
    for index in (None, torch.tensor([1, 2])):
        with pytest.raises(SettingsError, match="one decision at a time"):
            explainer(data.x, data.edge_index, index=index)
    with pytest.raises(ValueError, match="does not support"):
        Explainer(model, ac.VoteExplainer(defence), "model", CONFIG, node_mask_type="object", edge_mask_type="object")


def test_unknown_targets_and_defences_that_cannot_say_so():
    data, model, defence = case("node-centric", 0)
    with pytest.raises(IdError, match="no node 'nobody'"):
        ac.explain(model, data, defence, "nobody")
    with pytest.raises(IdError, match="no graph 7"):
        ac.explain(model, [graph(0)], ac.EdgeCentric(3), 7)
    with pytest.raises(SettingsError, match="cannot explain a decision, because its votes are those of random graphs"):
        ac.explain(model, data, ac.baselines.BiRS(samples=100), "n4")


def test_ids_may_be_numbers_of_numpy_and_rows():
    data, model, defence = case("node-centric", 0)
    data.node_id = torch.arange(100, 100 + len(NAMES))
    for target in (104, data.node_id[4], data.node_id[4].numpy()):
        assert ac.explain(model, data, defence, target).target == 104
    del data.node_id
    assert ac.explain(model, data, defence, 4).target == 4


@pytest.mark.parametrize("division", [ac.PerNeighbour(), ac.PerEdge()], ids=str)
def test_scores_are_known_without_a_certificate_where_every_neighbour_votes(division):
    """They were refused: what the theorem needs to know about pairs was missing."""
    data, model, _ = case("per neighbour", 0)
    scores = division.as_defence().scores(model, data)
    assert scores.tolist() == ac.certify(model, data, division).counts.tolist()


def test_a_page_shows_an_explanation_in_the_part_about_one_target(tmp_path):
    data, model, defence = case("sum", 0)
    explained = ac.explain(model, data, defence, "n4")
    certificate = ac.certify(model, data, defence)
    page = build_report(certificate, tmp_path / "a.html", context=ac.ReportContext(explanations=[explained]))
    text = page.read_text(encoding="utf-8")
    part = text[text.index('id="target"') : text.index('id="assumptions"')]
    assert f"Why n4 is {explained.word(explained.label)}" in part
    assert "own features" in part
    assert all(sentence in part for sentence in explained.sentences())
    assert all(voter.name in part for voter in explained.voters)
    plain = build_report(certificate, tmp_path / "b.html").read_text(encoding="utf-8")
    assert "Why n4" not in plain


def test_long_tables_are_cut_in_print_and_not_in_json():
    data, model, defence = case("sum", 0)
    hub = data.clone()
    hub.x = torch.randn((100, 4), generator=torch.Generator().manual_seed(0))
    hub.edge_index = torch.stack([torch.arange(1, 100), torch.zeros(99, dtype=torch.int64)])
    del hub.edge_attr, hub.node_id
    explained = ac.explain(model, hub, defence, 0)
    assert "59 more" in str(explained)
    assert len(explained.to_json()["voters"]) == 99
