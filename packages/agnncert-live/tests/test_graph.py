"""After any sequence of events a live graph is what ``certify`` says about the graph from scratch."""

import math
import random

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv

import agnncert as ac
import agnncert_live
from agnncert.errors import DivisionError, GraphError, IdError, ModelContractError, SettingsError
from agnncert_live.events import KINDS
from tests.support.live import assert_current, assert_same, certified, ids_of, random_batch
from tests.support.small_graphs import NodeModel, WeightedModel, graph_model, node_model, plain_model, random_graph

INF = math.inf
NODE = [
    ac.EdgeCentric(5), ac.NodeCentric(4), ac.GatedNodeCentric(4), ac.PerEdge(),
    ac.PerNeighbour(), ac.EdgeCentric(5, self_loops=True), ac.NodeCentric(4, self_loops=True),
]  # fmt: skip
GRAPH = [ac.EdgeCentric(5), ac.NodeCentric(4), ac.PerEdge(), ac.PerNeighbour()]
VOTES = [None, ac.VotingRule("abstain", [0, 2, 1]), ac.VotingRule(1, [1, 0, 0])]


def looped():
    """A graph with self-loops, pairs of one direction, and several copies of an arc."""
    graph = random_graph(12, 14)
    more = torch.tensor([[0, 1, 2, 2, 3, 3], [0, 1, 5, 5, 7, 3]])
    graph.edge_index = torch.cat([graph.edge_index, more], dim=1)
    graph.y = torch.arange(12) % 3
    return graph


def graphs():
    return [random_graph(size, size + 2, seed=size) for size in (4, 7, 9)]


def layered():
    """A model of layers that were read, so that the number of hops is known."""
    model = ac.build_model("gcn", random_graph(6, 6), out_channels=3, hidden_channels=8, num_layers=2, seed=1)
    with torch.no_grad():
        for number, weight in enumerate(model.parameters()):
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(number)))
    return model.double().eval()


def follow(live, seed, steps=5, size=3):
    rng = random.Random(seed)
    applied = sum(live.apply(random_batch(live, rng, size), skip_bad=True).events for _ in range(steps))
    assert applied > steps * size / 3
    return live


@pytest.mark.parametrize(("number", "division"), list(enumerate(NODE)), ids=map(str, NODE))
def test_nodes_are_as_certified_from_scratch(number, division):
    model = [node_model(), layered(), node_model(SAGEConv)][number % 3]
    live = agnncert_live.LiveGraph(
        model, looped(), division, voting_rule=VOTES[number % 3], targets=[3, 1, 7] if number % 4 == 3 else None
    )
    assert_current(follow(live, seed=number))


@pytest.mark.parametrize(("number", "division"), list(enumerate(GRAPH)), ids=map(str, GRAPH))
def test_graphs_are_as_certified_from_scratch(number, division):
    targets = [2, 0] if number % 2 else None
    live = agnncert_live.LiveGraph(
        graph_model(), graphs(), division, voting_rule=VOTES[(number + 1) % 3], targets=targets
    )
    assert_current(follow(live, seed=number))


@pytest.mark.parametrize("division", [ac.EdgeCentric(4), ac.PerNeighbour()], ids=str)
def test_weights_of_edges_are_kept_and_changed(division):
    graph = random_graph(12, 16)
    graph.edge_weight = torch.rand(graph.num_edges, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    assert_current(follow(agnncert_live.LiveGraph(WeightedModel(5, 3).double().eval(), graph, division), seed=1))


class Changing(RuleBasedStateMachine):
    """Events one by one, at the will of hypothesis; the end is compared with ``certify``."""

    @initialize(
        division=st.sampled_from(NODE),
        voting_rule=st.sampled_from([*VOTES, ac.VotingRule("abstain", 3)]),
        known=st.booleans(),
    )
    def begin(self, division, voting_rule, known):
        if division.gates_features and voting_rule is not None and voting_rule.no_edge_prior:
            voting_rule = None
        self.live = agnncert_live.LiveGraph(
            layered() if known else node_model(), looped(), division, voting_rule=voting_rule
        )

    @rule(kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6), size=st.integers(1, 3))
    def change(self, kind, seed, size):
        batch = random_batch(self.live, random.Random(seed), size, [kind])
        before = self.live.number
        done = self.live.apply(batch, skip_bad=True)
        assert done.events + len(done.refused) == size
        assert self.live.number == before + done.events

    def teardown(self):
        if hasattr(self, "live"):
            assert_current(self.live)


TestChanging = Changing.TestCase
TestChanging.settings = settings(
    max_examples=4, stateful_step_count=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def test_a_perturbation_is_applied_as_to_data(tmp_path):
    graph = random_graph(12, 16)
    ids = ids_of(graph)
    u, v = (ids[k] for k in graph.edge_index[:, 0].tolist())
    change = ac.Perturbation(
        add_edges=[("new", ids[3])],
        delete_edges=[(u, v)],
        inject_nodes={"new": [1.0] * 5},
        delete_nodes=[next(i for i in ids if i not in (u, v, ids[3], ids[4]))],
        change_features={ids[4]: [0.5] * 5},
    )
    live = agnncert_live.LiveGraph(plain_model(), graph, ac.NodeCentric(5))
    live.apply(change)
    expected = ac.certify(plain_model(), change.apply(graph), ac.NodeCentric(5))
    assert_same(live.certificate(), expected)
    live.certificate().save(tmp_path / "now")
    assert ac.verify(tmp_path / "now", data=live.data(), model=plain_model(), recheck=50).holds


BAD = [
    (agnncert_live.Event("add_edge", 1, 2), "no node with id 1"),
    (agnncert_live.Event("delete_node", "nobody"), "no node with id 'nobody'"),
    (agnncert_live.Event("change_features", "a", value=[1.0]), "shape"),
    (agnncert_live.Event("change_features", "a", value=[1.0, math.nan]), "not finite"),
    (agnncert_live.Event("change_features", "a", value=[1.0, 1e39]), "not finite"),
    (agnncert_live.Event("change_features", "a", value=["x", "y"]), "expected numbers"),
    (agnncert_live.Event("add_node", "b", value=[1.0, 2.0]), "living node"),
    (agnncert_live.Event("add_edge", "a", "b"), "there already"),
    (agnncert_live.Event("delete_edge", "a", "c"), "no such edge"),
    (agnncert_live.Event("change_edge", "a", "b", 1.5), "whole number"),
    (agnncert_live.Event("change_edge", "a", "b", 0), "whole number"),
    (agnncert_live.Event("change_edge", "a", "b", [2.0]), "whole number"),
    (agnncert_live.Event("change_edge", "a", "b", math.inf), "whole number"),
    (agnncert_live.Event("change_edge", "a", "b", math.nan), "whole number"),
    (agnncert_live.Event("change_edge", "a", "b", 10**9), "copies of an edge are more than 1,000"),
    (agnncert_live.Event("add_edge", "a", "c", 2.0), "takes no value"),
    (agnncert_live.Event("add_edge", "a", "c", graph=0), "names a graph"),
]
GOOD = [
    agnncert_live.Event("add_node", "d", value=[0.0, 1.0]), agnncert_live.Event("add_edge", "d", "a"), agnncert_live.Event("delete_node", "e"),
    agnncert_live.Event("change_edge", "a", "b", 2), agnncert_live.Event("change_features", "b", value=[3.0, 1.0]),
]  # fmt: skip


def test_a_bad_event_is_refused_and_changes_nothing():
    live = agnncert_live.LiveGraph(tiny_model(), lettered(), ac.EdgeCentric(3))
    before = live.certificate()
    for event, why in BAD:
        with pytest.raises(GraphError, match=f"event 5.*{why}"):
            live.apply([*GOOD, event])
        assert live.number == 0
        assert np.array_equal(live.radius, before.radius)
    assert_same(live.certificate(), before)
    mixed = [event for pair in zip(BAD, [*GOOD, *BAD], strict=False) for event in (pair[0][0], pair[1])][
        : 2 * len(GOOD)
    ]
    done = live.apply(mixed, skip_bad=True)
    assert (done.events, [one.index for one in done.refused]) == (5, [0, 2, 4, 6, 8])
    assert_current(live)


def lettered():
    x = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]
    return torch_data([[0, 1, 0, 3], [1, 0, 3, 0]], x, ["a", "b", "c", "e"])


def torch_data(edges, x, ids):
    return Data(x=torch.tensor(x), edge_index=torch.tensor(edges), node_id=ids)


def tiny_model():
    return plain_model(features=2).float()


def test_a_model_that_fails_on_the_new_graph_changes_nothing():
    class Codes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(4, 3)

        def forward(self, x, edge_index):
            return self.table(x[:, 0].long().clamp(min=0))

    data = torch_data([[0, 1], [1, 0]], [[0.0], [1.0], [2.0]], [5, 6, 7])
    torch.manual_seed(0)
    model = Codes().eval()
    live = agnncert_live.LiveGraph(model, data, ac.EdgeCentric(3))
    told = []
    live.subscribe(told.append)
    before, graph = live.certificate(), live.data()
    fatal = agnncert_live.Event("change_features", 6, value=[9.0])  # no row of the table
    newcomer = agnncert_live.Event("add_node", 8, value=[3.0])
    for _ in range(2):  # the second time finds what the first one left behind, if anything
        with pytest.raises(ModelContractError):
            live.apply(
                [newcomer, agnncert_live.Event("add_edge", 5, 7), agnncert_live.Event("delete_edge", 5, 6), fatal]
            )
        assert (live.number, live.targets.tolist(), told) == (0, [5, 6, 7], [])
        for name in ("x", "edge_index", "node_id"):
            assert torch.equal(live.data()[name], graph[name])
        assert_same(live.certificate(), before)
        assert_current(live)
    live.apply([newcomer, agnncert_live.Event("add_edge", 5, 8)])
    assert live.number == 2
    assert_current(live)


class Fragile(NodeModel):
    """Fails where its logits are large."""

    def forward(self, x, edge_index):
        logits = super().forward(x, edge_index)
        if logits.abs().max() > 1e20:
            raise ValueError("too large")
        return logits


def test_after_a_batch_that_failed_votes_are_those_of_the_features_as_they_are():
    """Products of features and weights are kept: those of the batch that failed must not be used."""
    data = random_graph(12, 16, features=200)
    torch.manual_seed(0)
    model = Fragile(GCNConv, 200, 3).double().eval()
    live = agnncert_live.LiveGraph(model, data, ac.EdgeCentric(4))
    one, another, *others = ids_of(data)
    assert live._core.engine.keeps_products
    moderate = agnncert_live.Event("change_features", one, value=[5.0] * 200)
    too_large = agnncert_live.Event("change_features", another, value=[1e30] * 200)
    with pytest.raises(ModelContractError, match="too large"):
        live.apply([moderate, too_large])
    assert_current(live)
    for other in others:  # votes in the neighbourhood of the one are computed anew
        live.apply([agnncert_live.Event("add_edge", one, other)], skip_bad=True)
        assert_current(live)


def test_without_ids_nodes_come_in_order_and_none_goes():
    data = random_graph(6, 6)
    del data.node_id
    live = agnncert_live.LiveGraph(plain_model(), data, ac.NodeCentric(3))
    with pytest.raises(IdError, match="next one is 6"):
        live.apply(agnncert_live.Event("add_node", 9, value=[0.0] * 5))
    with pytest.raises(IdError, match="Give it node_id"):
        live.apply(agnncert_live.Event("delete_node", 2))
    live.apply([agnncert_live.Event("add_node", 6, value=[0.0] * 5), agnncert_live.Event("add_edge", 6, 0)])
    assert_current(live)


def test_what_moved_is_told_to_whoever_listens():
    live = agnncert_live.LiveGraph(plain_model(), random_graph(14, 20), ac.NodeCentric(6))
    heard, flips = [], []
    end = live.subscribe(heard.append)
    live.subscribe(flips.append, flips=True)
    before = dict(zip(live.targets.tolist(), zip(live.label.tolist(), live.radius.tolist(), strict=True), strict=True))
    rng = random.Random(0)
    for _ in range(12):
        done = live.apply(random_batch(live, rng, 2), skip_bad=True)
        now = dict(zip(live.targets.tolist(), zip(live.label.tolist(), live.radius.tolist(), strict=True), strict=True))
        expected = {target for target in now if before.get(target) != now[target]}
        assert {one.target for one in done.moved} == expected
        assert set(done.gone) >= set(before) - set(now)
        flipped = {t for t in now if t in before and before[t][0] != now[t][0]}
        assert {one.target for one in done.flipped if one.target in before} == flipped
        below = {t for t in expected if now[t][1] < 2 and before.get(t, (0, 2))[1] >= 2}
        assert {one.target for one in done.fell_below(2)} == below
        before = now
    assert len(heard) == 12
    assert 0 < len(flips) < 12
    assert all(one.flipped for one in flips)
    end()
    live.apply([])
    assert len(heard) == 12


@pytest.mark.parametrize("division", [ac.EdgeCentric(5), ac.GatedNodeCentric(4)], ids=str)
def test_a_decision_is_that_of_the_certificate(division):
    live = follow(agnncert_live.LiveGraph(plain_model(), looped(), division), seed=2)
    certificate = certified(live)
    for target in certificate:
        ours, theirs = live[target], certificate[target]
        assert (ours.label, ours.radius, ours.row, ours.degree, ours.truth) == (
            theirs.label, theirs.radius, theirs.row, theirs.degree, theirs.truth,
        )  # fmt: skip
        assert ours.withstands == theirs.withstands
    assert "nobody" not in live
    assert certificate.target[0] in live
    with pytest.raises(IdError, match="no target"):
        live["nobody"]


def test_what_cannot_be_kept_current_is_refused():
    graph, model = random_graph(6, 6), plain_model()
    with pytest.raises(DivisionError, match="event by event"):
        agnncert_live.LiveGraph(model, graph, ac.baselines.GNNCertE(4))
    with pytest.raises(SettingsError, match="expected a VotingRule"):
        agnncert_live.LiveGraph(model, graph, ac.EdgeCentric(4), voting_rule=5)
    with pytest.raises(GraphError, match="no graph to begin with"):
        agnncert_live.LiveGraph(model, None, ac.EdgeCentric(4))
    with pytest.raises(ModelContractError):
        agnncert_live.LiveGraph(node_model(cached=True), graph, ac.EdgeCentric(4))
    live = agnncert_live.LiveGraph(model, graph, ac.EdgeCentric(4))
    with torch.no_grad():
        next(model.parameters()).add_(1)
    with pytest.raises(ModelContractError, match="began with"):
        live.certificate()


def test_memory_does_not_grow_with_events():
    live = agnncert_live.LiveGraph(plain_model(), random_graph(12, 16), ac.EdgeCentric(5), targets=[0])
    ids = live.data().node_id.tolist()
    pair = next((u, v) for u in ids for v in ids if u < v and not _joined(live, u, v))
    sizes = []
    for _ in range(3):
        for _ in range(40):
            live.apply([agnncert_live.Event("add_edge", *pair), agnncert_live.Event("add_node", "x", value=[0.0] * 5)])
            live.apply([agnncert_live.Event("delete_edge", *pair), agnncert_live.Event("delete_node", "x")])
        store = live._core.store
        sizes.append((store.union.num_arcs, store.union.num_copies, store.nodes.count, len(store.union.arriving._pool)))
    assert sizes[0] == sizes[1] == sizes[2]
    assert np.array_equal(live.label, certified(live).label)


def _joined(live, u, v):
    store = live._core.store
    return len(store.arcs(store.nodes.find(0, u), store.nodes.find(0, v))) > 0


@pytest.mark.parametrize("changes", [{"kind": "delete_node", "node": "a"}, "delete a", b"delete a", 3], ids=repr)
def test_what_is_no_event_and_no_list_of_events_is_refused_by_its_type(changes):
    live = agnncert_live.LiveGraph(tiny_model(), lettered(), ac.EdgeCentric(3))
    with pytest.raises(GraphError, match=f"found a {type(changes).__name__}"):
        live.apply(changes)


@pytest.mark.parametrize("ends", [("a", "f"), ("f", "a")], ids=repr)
def test_a_pair_of_one_direction_is_deleted_whichever_end_is_named_first(ends):
    live = agnncert_live.LiveGraph(tiny_model(), lettered(), ac.EdgeCentric(3))
    arcs = live.data().num_edges
    live.apply(
        [
            agnncert_live.Event("add_node", "f", value=[0.0, 1.0]),
            agnncert_live.Event("add_edge", "f", "a", directed=True),
        ]
    )
    assert live.data().num_edges == arcs + 1
    live.apply(agnncert_live.Event("delete_edge", *ends))
    assert live.data().num_edges == arcs
    assert_current(live)


def test_an_added_edge_has_the_value_that_it_comes_with_or_else_one():
    data = lettered()
    data.edge_weight = torch.full((data.num_edges,), 3.0)
    live = agnncert_live.LiveGraph(
        ac.build_model("gcn", data, hidden_channels=4, num_layers=1, out_channels=2).eval(), data, ac.EdgeCentric(3)
    )
    live.apply(
        [
            agnncert_live.Event("add_node", "f", value=[0.0, 1.0]),
            agnncert_live.Event("add_edge", "f", "a"),
            agnncert_live.Event("add_edge", "f", "b", 0.25),
        ]
    )
    now = live.data()
    names = list(now.node_id)
    weight = {
        (names[u], names[v]): w for (u, v), w in zip(now.edge_index.t().tolist(), now.edge_weight.tolist(), strict=True)
    }
    assert (weight["f", "a"], weight["a", "f"], weight["f", "b"], weight["b", "f"]) == (1.0, 1.0, 0.25, 0.25)
    assert_current(live)


def test_nodes_stand_in_the_order_in_which_they_came_also_where_others_have_gone():
    live = agnncert_live.LiveGraph(tiny_model(), lettered(), ac.EdgeCentric(3))
    old = [name for name in live.targets.tolist() if name not in ("a", "c")]
    live.apply([agnncert_live.Event("delete_node", "a"), agnncert_live.Event("delete_node", "c")])
    new = ["z", "a", "y", "x"]
    live.apply([agnncert_live.Event("add_node", name, value=[1.0, 0.0]) for name in new])
    assert live.targets.tolist() == list(live.data().node_id) == [*old, *new]
    assert_current(live)


def test_evidence_that_is_counted_live_says_which_pairs_have_one_direction():
    data = looped()
    live = agnncert_live.LiveGraph(layered(), data, ac.PerEdge())
    again = ac.certify(layered(), data, ac.PerEdge()).evidence
    counted = live._core.counter.evidence(np.arange(12))
    assert 0 < again.one_way.sum() < len(again.one_way)
    assert counted.one_way.tolist() == again.one_way.tolist()


@pytest.mark.parametrize(("row", "found"), [(None, "names no graph"), (7, "names graph 7, which is not among them")])
def test_an_event_for_one_of_several_graphs_is_refused_with_the_graph_that_it_names(row, found):
    live = agnncert_live.LiveGraph(graph_model(), graphs(), ac.EdgeCentric(5))
    with pytest.raises(GraphError, match=f"the event {found}: give the row of one of the 3 graphs"):
        live.apply(agnncert_live.Event("add_node", "new", value=[0.0] * 5, graph=row))


@pytest.mark.parametrize(
    "y", [[[1], [0], [1], [0]], [1.0, 0.0, math.nan, 1.0], [True, False, True, False], [1, 0, -1, 1]], ids=repr
)
def test_true_classes_are_read_as_certify_reads_them_and_new_nodes_have_none(y):
    data = lettered()
    data.y = torch.tensor(y)
    live = agnncert_live.LiveGraph(tiny_model(), data, ac.EdgeCentric(3))
    known = certified(live).truth.tolist()
    assert live.truth.tolist() == known
    assert [live[name].truth for name in "abce"] == [None if k < 0 else k for k in known]
    live.apply(agnncert_live.Event("add_node", "f", value=[0.0, 1.0]))
    assert live.truth.tolist() == [*known, -1]
    assert_current(live)


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 2)], ids=str)
def test_a_node_comes_also_where_labels_are_numbers_without_a_sign(shape):
    data = lettered()
    data.y = torch.ones(shape, dtype=torch.uint8)
    live = agnncert_live.LiveGraph(tiny_model(), data, ac.EdgeCentric(3))
    live.apply(agnncert_live.Event("add_node", "f", value=[0.0, 1.0]))
    assert live.targets.tolist() == ["a", "b", "c", "e", "f"]
    assert_current(live)


def test_labels_in_several_columns_are_nobodys_true_class():
    data = lettered()
    data.y = torch.ones((4, 2), dtype=torch.long)
    live = agnncert_live.LiveGraph(tiny_model(), data, ac.EdgeCentric(3))
    assert certified(live).truth is None
    assert live["a"].truth is None
    assert live.truth.tolist() == [-1] * 4


def test_noise_may_decide_a_vote_whose_lead_is_small_beside_rounding_and_no_other():
    live = agnncert_live.LiveGraph(tiny_model(), lettered(), ac.EdgeCentric(3), tolerance=1e-5)
    scores = torch.tensor([[1e6, 1e6 - 40, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    deviation = torch.tensor([10.0, 1e-9], dtype=torch.float64)
    votes = live._core.engine._predictions(scores, deviation)
    assert votes.stable.tolist() == [False, True]  # leads of 40 and 1 have to be above 80 and 2e-5
    assert votes.noise_decides.tolist() == [True, False]  # and above 1,280 and 3.2e-4 to be beyond all noise
