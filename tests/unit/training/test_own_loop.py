"""Subgraphs and the loss of a vote, for a training loop of one's own."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import agnncert as ac
from agnncert.engine.adapter import bind
from agnncert.engine.naive import table
from agnncert.errors import SettingsError
from agnncert.graphs.targets import prepared
from tests.support.neighbour_graphs import GraphListener, NodeListener, town, towns

DIVISIONS = [ac.NodeCentric(5), ac.EdgeCentric(5), ac.GatedNodeCentric(5), ac.PerNeighbour(), ac.PerEdge()]


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_a_model_votes_on_the_subgraphs_as_certify_counts(division) -> None:
    data = town(12)
    model = NodeListener()
    chosen = prepared(data).targets(self_loops=division.self_loops)
    expected = table(bind(model, chosen.graph, "node"), chosen.graph, division, chosen.rows, None)
    subgraphs = ac.subgraphs(data, division)
    assert len(subgraphs) == expected.vote.shape[1]
    for group, subgraph in enumerate(subgraphs):
        votes = model(subgraph.x, subgraph.edge_index).argmax(1).numpy()
        counts = expected.vote[:, group] >= 0  # the others abstain
        assert (votes[counts] == expected.vote[counts, group]).all()


@pytest.mark.parametrize("division", [ac.NodeCentric(4), ac.EdgeCentric(4)], ids=str)
def test_graphs_have_a_subgraph_for_every_group_that_votes(division) -> None:
    graphs = towns(3, 6)
    model = GraphListener()
    chosen = prepared(graphs).targets()
    expected = table(bind(model, chosen.graph, "graph"), chosen.graph, division, chosen.rows, None).vote
    subgraphs = ac.subgraphs(graphs, division)
    assert len(subgraphs) == (expected >= 0).sum()
    for subgraph in subgraphs:
        batch = torch.zeros(subgraph.num_nodes, dtype=torch.int64)
        vote = int(model(subgraph.x, subgraph.edge_index, batch).argmax(1))
        assert vote == expected[int(subgraph.target), subgraph.group]
        assert int(subgraph.y) == int(graphs[int(subgraph.target)].y)


def test_a_loader_joins_subgraphs_and_keeps_what_belongs_to_a_node() -> None:
    data = ac.split(town(30), fractions=(0.4, 0.3, 0.3))
    data.edge_weight = torch.rand(data.num_edges)
    batch = next(iter(DataLoader(ac.subgraphs(data, ac.NodeCentric(6)), batch_size=4)))
    assert batch.num_graphs == 4
    assert batch.x.shape == (120, data.num_features)
    assert torch.equal(batch.y, data.y[batch.target])
    assert torch.equal(batch.train_mask, data.train_mask[batch.target])
    assert len(batch.edge_weight) == batch.num_edges


def test_nodes_that_abstain_are_in_no_mask() -> None:
    data = ac.split(town(12), fractions=(0.4, 0.3, 0.3))
    division = ac.GatedNodeCentric(5)
    graph = prepared(data).targets().graph
    groups = division.groups(graph)
    seen = 0
    for group, subgraph in enumerate(ac.subgraphs(data, division)):
        abstains = division.subgraph(graph, groups, group).abstain
        assert not (subgraph.train_mask & abstains).any()
        seen += int(abstains.sum())
    assert seen


def test_a_vote_is_the_mean_of_its_predictions() -> None:
    logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 4.0]], requires_grad=True)
    target = torch.tensor([7, 7, 7, 3])
    loss = ac.vote_loss(logits, target, y=torch.tensor([0, 0, 0, 1]))
    shares = logits.softmax(1)
    first = torch.nn.functional.cross_entropy(10 * shares[:3].mean(0)[None], torch.tensor([0]))
    second = torch.nn.functional.cross_entropy(10 * shares[3:], torch.tensor([1]))
    assert torch.isclose(loss, (first + second) / 2)
    loss.backward()
    assert logits.grad is not None
    assert logits.grad.abs().sum() > 0


def test_shapes_that_do_not_agree_and_defences_without_subgraphs_are_refused() -> None:
    with pytest.raises(SettingsError, match="at least one vote"):
        ac.vote_loss(torch.zeros(0, 2), torch.zeros(0).long(), torch.zeros(0).long())
    with pytest.raises(SettingsError, match=r"shapes \(3, 2\), \(2,\) and \(3,\)"):
        ac.vote_loss(torch.zeros(3, 2), torch.zeros(2).long(), torch.zeros(3).long())
    for defence in (ac.StackedVotes(), ac.baselines.BiRS(samples=10)):
        with pytest.raises(SettingsError, match="cannot be trained subgraph by subgraph, because it"):
            ac.subgraphs(town(8), defence)


def trained(model: torch.nn.Module, data: Data, division: ac.Division) -> torch.nn.Module:
    loader = DataLoader(ac.subgraphs(data, division), batch_size=5, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    model.train()
    for _ in range(15):
        for batch in loader:
            mask = batch.train_mask
            logits = model(batch.x, batch.edge_index)[mask]
            loss = ac.vote_loss(logits, batch.target[mask], batch.y[mask])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def test_a_plain_loop_raises_what_is_certified() -> None:
    data = ac.load_dataset("digits-knn")
    division = ac.NodeCentric(10)
    torch.manual_seed(0)
    model = ac.build_model("gcn", data, num_layers=2)
    before = ac.certify(model.eval(), data, division, data.test_mask).certified_accuracy(sizes=2)
    after = ac.certify(trained(model, data, division), data, division, data.test_mask).certified_accuracy(sizes=2)
    assert after > before + 0.5
