"""``PerNeighbour`` and ``PerEdge``: certificates with a vote for each neighbour, from the call to the verdict."""

import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.cli import main
from agnncert.divisions.named import parse_division
from agnncert.errors import DivisionError, ModelContractError, SettingsError
from tests.support.small_graphs import graph_model, known_model, random_graph

NODE, EDGE = ac.PerNeighbour(), ac.PerEdge()
INF = math.inf


@pytest.fixture(scope="module")
def graph():
    return random_graph(12, 16)


@pytest.fixture(scope="module")
def graphs():
    return [random_graph(size, size, seed=size) for size in (4, 7, 9)]


def test_such_divisions_print_and_are_read_again():
    for division, text in ((NODE, "node-centric(T=inf)"), (EDGE, "edge-centric(T=inf)")):
        assert str(division) == text
        assert parse_division(text) == division
    kept = ac.PerEdge(self_loops=True)
    assert parse_division(str(kept)) == kept
    assert [d.theorem(t) for d in (NODE, EDGE) for t in ("node", "graph")] == [
        "per-neighbour/node", "per-neighbour/graph", "per-pair/node", "per-pair/graph",
    ]  # fmt: skip
    for text in ("node-centric(T=inf, self-loops kept)", "node-centric(T=inf, gated features)", "gnncert-e(T=inf)"):
        with pytest.raises(DivisionError, match="cannot rebuild"):
            parse_division(text)


@pytest.mark.parametrize("number", [math.inf, 0, 2.5], ids=str)
def test_a_number_of_groups_is_a_whole_number(number):
    for kind in (ac.EdgeCentric, ac.NodeCentric, ac.GatedNodeCentric):
        with pytest.raises(DivisionError, match="num_groups"):
            kind(number)


def test_self_loops_are_dropped_where_there_is_a_vote_per_neighbour():
    assert not NODE.self_loops
    with pytest.raises(SettingsError, match='no setting "self_loops"'):
        ac.PerNeighbour(self_loops=True)


@pytest.mark.parametrize("division", [NODE, EDGE], ids=str)
def test_a_certificate_of_nodes(graph, division, tmp_path):
    cert = ac.certify(known_model(), graph, division, voting_rule=ac.VotingRule(prior=4))
    votes = cert.evidence.votes
    assert np.array_equal(np.diff(votes.indptr), cert.degree)
    assert (cert.structure_radius >= cert.radius).all()
    assert (cert.structure_radius > cert.radius).any()
    for size in range(6):
        held = cert.holds_against(ac.Budget(inject_nodes=size, edges_per_injected=INF))
        assert (held | (cert.structure_radius < size)).all()
    cert.save(tmp_path / "a.cert")
    again = ac.load_certificate(tmp_path / "a.cert")
    assert np.array_equal(again.structure_radius, cert.structure_radius)
    verdict = ac.verify(tmp_path / "a.cert", data=graph, model=known_model(), recheck=60)
    assert verdict.holds, verdict


@pytest.mark.parametrize("division", [NODE, EDGE], ids=str)
def test_a_certificate_of_graphs(graphs, division, tmp_path):
    cert = ac.certify(graph_model(), graphs, division, voting_rule=ac.VotingRule(1, [4, 0, 0]))
    number = [one.num_nodes if division == NODE else one.num_edges // 2 for one in graphs]
    assert np.diff(cert.evidence.votes.indptr).tolist() == number
    # Each vote takes one vote from the class that empty groups cast.
    cast = cert.evidence.votes
    votes = np.stack([np.bincount(cast.vote[cast.owner == j], minlength=3) for j in range(3)])
    assert np.array_equal(cert.counts, votes + np.array([4, 0, 0]) - np.outer(number, [0, 1, 0]))
    if division == NODE:
        edges = ac.Budget(add_edges=INF, delete_edges=INF, change_edges=INF)
        assert np.array_equal(cert.holds_against(edges), cert.radius >= 0)
    cert.save(tmp_path / "a.cert")
    verdict = ac.verify(tmp_path / "a.cert", data=graphs, model=graph_model(), recheck=INF)
    assert verdict.holds, verdict


def test_a_class_of_empty_groups_does_not_depend_on_how_many_nodes_there_are(graph):
    """Nodes that are joined to nothing change no score."""
    more = ac.Perturbation(inject_nodes={900 + k: [0.0] * 5 for k in range(6)}).apply(graph)
    few, many = (
        ac.certify(known_model(), data, NODE, range(12), voting_rule=ac.VotingRule(2, [0, 1, 0]))
        for data in (graph, more)
    )
    assert np.array_equal(few.counts, many.counts)
    assert np.array_equal(few.radius, many.radius)


def test_the_claim_says_what_a_vote_is_and_that_no_ids_are_needed(graph):
    rows = Data(x=graph.x, edge_index=graph.edge_index)
    cert = ac.certify(known_model(), rows, NODE, voting_rule=ac.VotingRule(prior=4))
    assert any("One vote is cast for each neighbour" in words for words in cert.claim.assumes)
    assert any("the target is still the same node" in words for words in cert.claim.assumes)
    assert not any("deleted nodes" in words for words in cert.claim.not_proved)
    assert cert.holds_against(ac.Budget(delete_nodes=1)).any()


def test_deleting_rows_leaves_all_other_votes_alone():
    """Without ids later rows are renamed; whoever follows a target finds the votes of its remaining neighbours."""
    full = random_graph(9, 14, seed=3)
    data = Data(x=full.x, edge_index=full.edge_index)
    for division in (NODE, EDGE):
        before = ac.certify(known_model(), data, division, voting_rule=ac.VotingRule(prior=2)).counts
        for gone in range(9):
            kept = [u for u in range(9) if u != gone]
            after = ac.certify(
                known_model(),
                ac.Perturbation(delete_nodes=[gone]).apply(data),
                division,
                voting_rule=ac.VotingRule(prior=2),
            ).counts
            neighbours = {int(u) for u in data.edge_index[1, data.edge_index[0] == gone]}
            for row, u in enumerate(kept):
                assert np.abs(after[row] - before[u]).sum() == (u in neighbours)


def test_one_way_pairs_and_copies_are_told(tmp_path):
    arcs = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 3, 3, 2]])  # 0-1 and 2-3 both ways (one of 2-3 twice), 1 -> 2
    data = Data(x=torch.eye(4, 5).double(), edge_index=arcs)
    evidence = ac.certify(known_model(), data, EDGE, voting_rule=ac.VotingRule(prior=1)).evidence
    flags = dict(
        zip(
            zip(evidence.votes.owner.tolist(), evidence.votes.group.tolist(), strict=True),
            evidence.one_way.tolist(),
            strict=True,
        )
    )
    assert flags == {(0, 0): False, (1, 0): False, (1, 1): True, (2, 1): True, (2, 2): False, (3, 2): False}
    some = ac.certify(known_model(), data, EDGE, [0, 2], voting_rule=ac.VotingRule(prior=1)).evidence
    assert some.targets_per_node.tolist() == [2, 1]  # 1 is a neighbour of both targets, 3 of one
    heard = ac.certify(known_model(), data, NODE, [0, 1], voting_rule=ac.VotingRule(prior=1)).evidence
    assert heard.targets_per_node.tolist() == []  # 2 does not speak to 1


def test_what_makes_no_sense_is_refused(graph, graphs):
    with pytest.raises(SettingsError, match="one group per neighbour"):
        ac.certify(known_model(), graph, NODE, voting_rule=ac.VotingRule("no_edge"))
    with pytest.raises(SettingsError, match="no prediction without edges"):
        ac.certify(graph_model(), graphs, NODE, voting_rule=ac.VotingRule(prior=2))

    class Mixing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = known_model()

        def forward(self, x, edge_index):
            logits = self.inner(x, edge_index)
            return logits - logits.mean(0)

    with pytest.raises(ModelContractError):
        ac.certify(Mixing().eval(), graph, EDGE, voting_rule=ac.VotingRule(prior=2))


def test_people_never_read_that_there_are_infinitely_many_groups(graph, tmp_path, capsys):
    model = known_model()
    for division, name in ((NODE, "per-neighbour"), (EDGE, "per-edge")):
        certificate = ac.certify(model, graph, division)
        certificate.save(tmp_path / "one.cert")
        assert main(["show", str(tmp_path / "one.cert")]) == 0
        page = ac.build_report(certificate, tmp_path / "page.html").read_text("utf-8")
        header = page[page.index('class="eyebrow"') :][:200]
        shown = [str(certificate), repr(certificate), str(ac.audit(model, graph, division)), capsys.readouterr().out]
        for text in (*shown, header):
            assert name in text
            assert "T=inf" not in text
