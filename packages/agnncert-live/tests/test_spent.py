"""What is within a reference's budget leaves the label as it was, and what is undone is not spent."""

import random

import pytest

import agnncert as ac
import agnncert_live
from agnncert.errors import IdError, SettingsError
from agnncert_live.spent import Reference
from tests.support.live import ids_of, random_batch
from tests.support.small_graphs import graph_model, plain_model, random_graph

DIVISIONS = [ac.EdgeCentric(15), ac.GatedNodeCentric(10), ac.PerNeighbour()]


@pytest.mark.parametrize(("number", "division"), list(enumerate(DIVISIONS)), ids=map(str, DIVISIONS))
def test_within_means_that_the_label_is_what_it_was(number, division):
    voting_rule = [None, ac.VotingRule("abstain", [0, 2, 1]), ac.VotingRule("abstain", 3)][number]
    live = agnncert_live.LiveGraph(plain_model(), random_graph(14, 22), division, voting_rule=voting_rule)
    reference, rng, seen = live.reference(), random.Random(number), set()
    for _ in range(8):
        live.apply(random_batch(live, rng, 1), skip_bad=True)
        for target in live.targets.tolist():
            if target in reference:
                spent = live.spent(target, reference)
                assert spent.label[0] == spent.label[1] or not spent.within
                seen |= {spent.within, *spent.proved_by}
    assert seen >= {True, False, "new neighbours"}


def test_a_graph_is_within_its_budget_or_not():
    live = agnncert_live.LiveGraph(graph_model(), [random_graph(9, 12, seed=k) for k in range(3)], ac.EdgeCentric(12))
    reference, rng = live.reference(), random.Random(0)
    for _ in range(6):
        live.apply(random_batch(live, rng, 1), skip_bad=True)
        spents = [live.spent(row, reference) for row in (0, 1, 2)]
        assert all(spent.label[0] == spent.label[1] for spent in spents if spent.within)
    assert any(spent.votes_moved for spent in spents)


def test_what_came_is_counted_and_what_went_again_is_not(tmp_path):
    graph = random_graph(14, 10)
    ids = ids_of(graph)
    near = {ids[k] for k in graph.edge_index[1, graph.edge_index[0] == 0].tolist()}
    others = [i for i in ids[1:] if i not in near]
    with agnncert_live.LiveGraph(plain_model(), graph, ac.NodeCentric(40), journal=tmp_path / "j") as live:
        reference = live.reference()
        live.apply([agnncert_live.Event("add_edge", ids[0], other) for other in others[:3]])
        live.apply(
            [agnncert_live.Event("add_node", "new", value=[0.0] * 5), agnncert_live.Event("add_edge", "new", ids[0])]
        )
        spent = live.spent(ids[0], reference)
        assert (spent.new_neighbours, spent.lost_neighbours, spent.changed_neighbours) == (4, 0, 0)
        assert spent.cost == ac.Budget(add_edges=3, inject_nodes=1, edges_per_injected=1)
        assert spent.withstands_new_neighbours == reference.new_neighbours[0]
        assert "4 have come" in str(spent)
        with pytest.raises(IdError, match="came later"):
            live.spent("new", reference)
    reference.save(tmp_path / "reference")
    with agnncert_live.LiveGraph(plain_model(), graph, ac.NodeCentric(40), journal=tmp_path / "j") as live:
        reference = ac.load_certificate(tmp_path / "reference")
        live.apply(
            [
                agnncert_live.Event("change_features", others[0], value=[9.0] * 5),
                agnncert_live.Event("change_edge", ids[0], others[0], 2),
            ]
        )
        assert live.spent(ids[0], reference).cost == ac.Budget(
            add_edges=3, inject_nodes=1, edges_per_injected=1, change_features=1
        )
        live.apply([agnncert_live.Event("delete_edge", ids[0], other) for other in others[:3]])
        live.apply([agnncert_live.Event("delete_node", "new")])
        old = graph.x[ids.index(others[0])].tolist()
        with pytest.raises(ac.errors.GraphError):
            live.apply(
                [
                    agnncert_live.Event("change_features", others[0], value=old),
                    agnncert_live.Event("delete_node", "nobody"),
                ]
            )
        assert live.spent(ids[0], reference).cost == ac.Budget(change_features=1)
        live.apply(agnncert_live.Event("change_features", others[0], value=old))
        spent = live.spent(ids[0], reference)
        assert spent.cost == ac.Budget()
        assert spent.new_neighbours == 0
        assert spent.votes_moved == 0
        tracked = next(iter(live._references.values()))
        assert not tracked.pairs
        assert not tracked.nodes
        assert not tracked._pairs_at
        live.forget(reference)
        with pytest.raises(SettingsError, match="no reference"):
            live.spent(ids[0], reference)


def test_the_difference_between_two_graphs_counts_what_came_and_what_went():
    """As after a journal was opened anew: there are two graphs, and nobody saw the events between them."""
    graph = random_graph(14, 22)
    ids = ids_of(graph)
    joined = {tuple(sorted(pair)) for pair in graph.edge_index.t().tolist()}
    gone = next(iter(sorted(joined)))
    came = next((0, v) for v in range(1, 14) if (0, v) not in joined)
    change = ac.Perturbation(
        add_edges=[(ids[came[0]], ids[came[1]])], delete_edges=[(ids[gone[0]], ids[gone[1]])], change_features={ids[9]: [7.0] * 5}
    )  # fmt: skip
    then, now = (
        agnncert_live.LiveGraph(plain_model(), data, ac.EdgeCentric(15))._core.store
        for data in (graph, change.apply(graph))
    )
    cost = Reference.between("digest", 0, then, now).cost(0, ids[12])
    assert cost == ac.Budget(add_edges=1, delete_edges=1, change_features=1)
    assert Reference.between("digest", 0, then, then).cost(0, ids[12]) == ac.Budget()


def test_the_radius_proves_nothing_once_the_prior_may_follow_other_features_of_the_target():
    """The prior of a target follows its prediction without edges, which its own features decide."""
    graph = random_graph(14, 22)
    ids = ids_of(graph)
    rule = ac.VotingRule("abstain", 3)
    elsewhere = own = 0
    for target in ids[:6]:
        live = agnncert_live.LiveGraph(plain_model(), graph, ac.NodeCentric(40), voting_rule=rule)
        reference = live.reference()
        other = next(name for name in ids if name != target)
        live.apply(agnncert_live.Event("change_features", other, value=[0.5] * 5))
        elsewhere += "radius" in live.spent(target, reference).proved_by
        live.apply(agnncert_live.Event("change_features", target, value=[0.25] * 5))
        own += "radius" in live.spent(target, reference).proved_by
    assert elsewhere > 2
    assert own == 0
