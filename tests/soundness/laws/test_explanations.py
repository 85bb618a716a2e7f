"""Explanations: the votes add up to the stated counts, and what is named as enough changes the label.

Every kind of defence that can explain is tried on many small graphs. Labels are computed again by ``certify``, on graphs
that are edited here.
"""

import functools
import itertools
import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.explanation import fewest_taken_away, fewest_to_come, winner
from agnncert.stacked.model import StackedModel

NODES, CLASSES = 14, 3
NAMES = [f"n{k}" for k in range(NODES)]
DIVIDED = {
    "node-centric": (ac.NodeCentric(5), None),
    "edge-centric": (ac.EdgeCentric(5), None),
    "edge-centric abstain": (ac.EdgeCentric(7), ac.VotingRule("abstain", 1)),
    "node-centric class": (ac.NodeCentric(7), ac.VotingRule(2, [1, 0, 0])),
    "gated": (ac.GatedNodeCentric(6), None),
    "gated prior": (ac.GatedNodeCentric(6), ac.VotingRule(1, [0, 0, 2])),
    "per neighbour": (ac.PerNeighbour(), ac.VotingRule(prior=1)),
    "per edge": (ac.PerEdge(), ac.VotingRule(1, [0, 3, 0])),
    "edges only": (ac.EdgeCentric(5, edges_only=True), None),
}
STACKED = {
    "sum": {},
    "two levels": {"levels": 2},
    "stacked gated": {"gated": True},
    "mean": {"combine": "mean"},
    "edge values": {"edge_values": True},
    "mean of edge values": {"edge_values": True, "combine": "mean"},
    "trusted": {"trusted": 1},
}
KINDS = [*DIVIDED, *STACKED]
SEEDS = range(3)


def graph(seed):
    """A small random graph with directed edges, some of them twice, values on edges and names."""
    rng = torch.Generator().manual_seed(seed)
    source, head = torch.randint(0, NODES, (2, 40), generator=rng)
    keep = source != head
    index = torch.stack([source[keep], head[keep]])
    index = torch.cat([index, index[:, ::2].flip(0), index[:, :2]], dim=1)
    values = torch.rand((index.size(1), 2), generator=rng)
    # Both directions and all copies of a pair are trusted, or none.
    values[:, 1] = ((index.min(dim=0).values + index.max(dim=0).values) % 3 == 0).float()
    x = torch.randn((NODES, 4), generator=rng)
    return Data(x=x, edge_index=index, edge_attr=values, node_id=list(NAMES), class_names=["low", "middle", "high"])


class Mean(torch.nn.Module):
    """Own features, and the mean of what neighbours send."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.own = torch.nn.Linear(4, CLASSES)
        self.sent = torch.nn.Linear(4, CLASSES)

    def forward(self, x, edge_index):
        source, head = edge_index
        total = torch.zeros((len(x), CLASSES), dtype=x.dtype).index_add(0, head, 3 * self.sent(x)[source])
        number = torch.bincount(head, minlength=len(x)).clamp(min=1)
        return self.own(x) + total / number[:, None]


def stacked_model(seed, settings):
    torch.manual_seed(seed)
    channels = 2 if settings.get("edge_values") else 0
    model = StackedModel([torch.nn.Linear(4, CLASSES)], CLASSES, channels, ac.StackedVotes(**settings)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not name.startswith("own.") and weight.dim():
                weight.normal_()
        model.own_scale.fill_(-1.0)
        model.constant.mul_(0.3)
        model.mean_scale.fill_(1.5)
    return model


def case(kind, seed):
    """A graph, a model and a defence of a kind."""
    if kind in STACKED:
        model = stacked_model(seed, STACKED[kind])
        return graph(seed), model, model.defence
    division, rule = DIVIDED[kind]
    return graph(seed), Mean(seed).eval(), division.as_defence().with_voting_rule(rule)


@functools.cache  # nobody alters them
def explained_all(kind, seed):
    """A graph, model and defence, the certificate of all nodes, and the explanation of each."""
    data, model, defence = case(kind, seed)
    certificate = ac.certify(model, data, defence)
    return data, model, defence, certificate, [ac.explain(model, data, defence, name) for name in NAMES]


def label_by_certify(model, data, defence, row):
    return int(ac.certify(model, data, defence, [row]).label[0])


def without(data, pairs):
    """The graph without all edges between pairs of names, in both directions."""
    gone = {frozenset(pair) for pair in pairs}
    ends = [frozenset((NAMES[u], NAMES[v])) for u, v in zip(*data.edge_index.tolist(), strict=True)]
    keep = torch.tensor([pair not in gone for pair in ends])
    edited = data.clone()
    edited.edge_index = data.edge_index[:, keep]
    edited.edge_attr = data.edge_attr[keep]
    assert edited.num_edges < data.num_edges
    return edited


@pytest.mark.parametrize("kind", KINDS)
def test_votes_add_up_to_the_counts_of_the_certificate(kind):
    for seed in SEEDS:
        _, _, _, certificate, explanations = explained_all(kind, seed)
        for row, explained in enumerate(explanations):
            parts = [each.votes for each in (*explained.given, *explained.voters)]
            assert np.sum(parts, axis=0).tolist() == list(explained.total)
            assert list(explained.counts) == certificate.counts[row].tolist()
            per_count = explained.scale // (2**16 if kind in STACKED else 1)
            assert [part // per_count for part in explained.total] == list(explained.counts)
            assert explained.label == certificate.label[row]
            assert explained.target == NAMES[row]


@pytest.mark.parametrize("kind", KINDS)
def test_deleting_what_is_named_as_enough_changes_the_label(kind):
    flipped = 0
    for seed in SEEDS:
        data, model, defence, _, explanations = explained_all(kind, seed)
        for row, explained in enumerate(explanations):
            if explained.removal is None:
                assert explained.no_removal
                continue
            after = label_by_certify(model, without(data, explained.removal.pairs), defence, row)
            assert after == explained.removal.label != explained.label
            flipped += 1
    assert flipped > 1


EXACT = [
    *("sum", "two levels", "stacked gated", "mean", "edge values", "mean of edge values"),
    *("node-centric", "edge-centric", "edge-centric abstain", "node-centric class", "per neighbour", "per edge"),
]  # elsewhere a subgraph without edges at the target may vote in another way than an empty one


@pytest.mark.parametrize("kind", EXACT)
def test_no_smaller_number_of_voters_is_enough_and_none_is_where_none_is_named(kind):
    smaller = none = 0
    for seed in SEEDS:
        data, model, defence, _, explanations = explained_all(kind, seed)
        for row, explained in enumerate(explanations):
            voters = [voter.pairs for voter in explained.voters if voter.pairs]
            if len(voters) > 5:
                continue
            most = len(voters) if explained.removal is None else len(explained.removal.voters) - 1
            for number in range(1, most + 1):
                for gone in itertools.combinations(voters, number):
                    edited = without(data, itertools.chain.from_iterable(gone))
                    assert int(defence.labels(model, edited, [row])[0]) == explained.label
            smaller += explained.removal is not None
            none += explained.removal is None
    assert smaller
    assert none


@pytest.mark.parametrize("kind", KINDS)
def test_a_certified_label_needs_more_than_its_radius(kind):
    """What is named as enough is an attack: it must cost more than what is certified."""
    named = 0
    for seed in SEEDS:
        _, _, _, certificate, explanations = explained_all(kind, seed)
        for row, explained in enumerate(explanations):
            removal = explained.removal
            if removal is not None:
                change = ac.Perturbation(delete_edges=list(removal.pairs))
                assert not certificate.holds_against(change.cost())[row]
                named += 1
    assert named


@pytest.mark.parametrize("kind", ["node-centric", "edge-centric", "node-centric class"])
def test_votes_that_have_to_turn_are_one_more_than_the_radius(kind):
    for seed in SEEDS:
        _, _, _, certificate, explanations = explained_all(kind, seed)
        for row, explained in enumerate(explanations):
            if all(voter.stable for voter in explained.voters):
                numbers = [arrival.number for arrival in explained.arrivals if arrival.number is not None]
                assert min(numbers) == certificate.radius[row] + 1


def test_so_many_whole_votes_and_no_fewer_make_another_class_win():
    """In whole numbers: each new neighbour brings one vote and, in a mean, one more to divide by."""
    tried = never = 0
    for kind, seed in itertools.product(["sum", "stacked gated", "mean"], SEEDS):
        _, _, _, certificate, explanations = explained_all(kind, seed)
        record = certificate.evidence
        for row, explained in enumerate(explanations):
            for arrival in explained.arrivals:
                for number in (50,) if arrival.number is None else (arrival.number - 1, arrival.number):
                    divisor = record.pseudo + 2**16 * (record.degree[row] + number) if record.pseudo else 2**16
                    votes = record.table[record.which[record.indptr[row] : record.indptr[row + 1]]].astype(np.int64)
                    total = votes.sum(axis=0) + (np.array(record.pseudo_votes) if record.pseudo else 0)
                    total[arrival.label] += number * 2**16
                    score = record.prior[row] * divisor + record.gate[row] * total
                    ahead = score[arrival.label] + (arrival.label < explained.label) > score[explained.label]
                    assert ahead == (arrival.number is not None and number == arrival.number)
                never += arrival.number is None
                tried += 1
    assert tried > 50
    assert never


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_on_every_run_and_whatever_the_order_of_edges(kind):
    data, model, defence = case(kind, 1)
    first = ac.explain(model, data, defence, "n4")
    assert ac.explain(model, data, defence, "n4").json_text() == first.json_text()
    assert json.loads(first.json_text())["total"] == list(first.total)
    shuffled = data.clone()
    order = torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(0))
    shuffled.edge_index, shuffled.edge_attr = data.edge_index[:, order], data.edge_attr[order]
    again = ac.explain(model, shuffled, defence, "n4")
    assert again.total == first.total
    assert [voter.votes for voter in again.voters] == [voter.votes for voter in first.voters]
    assert again.removal == first.removal


@pytest.mark.parametrize("kind", KINDS)
def test_edges_have_their_own_values_and_are_edges_of_the_target(kind):
    data, model, defence = case(kind, 2)
    explained = ac.explain(model, data, defence, "n4")
    seen = 0
    for voter in explained.voters:
        for edge in voter.edges:
            source, head = data.edge_index[:, edge.position].tolist()
            assert (edge.source, edge.head) == (NAMES[source], NAMES[head])
            assert "n4" in (edge.source, edge.head)
            assert edge.values["edge_attr"] == tuple(data.edge_attr[edge.position].double().tolist())
            assert tuple(sorted((edge.source, edge.head))) in {tuple(sorted(pair)) for pair in voter.pairs}
            seen += 1
    assert seen
    text = str(explained)
    assert text.splitlines()[0].startswith(f"n4: {explained.word(explained.label)}, by ")
    assert "edge_attr" in text


@pytest.mark.parametrize("division", [ac.NodeCentric(3), ac.EdgeCentric(3), ac.PerEdge()], ids=str)
def test_graphs_are_explained_by_their_subgraphs(division):
    class Readout(Mean):
        def forward(self, x, edge_index, batch):
            nodes = super().forward(x, edge_index)
            return torch.zeros((int(batch.max()) + 1, CLASSES)).index_add(0, batch, nodes)

    graphs = [graph(seed) for seed in range(4)]
    for one in graphs:
        del one.class_names
    model = Readout(0).eval()
    certificate = ac.certify(model, graphs, division)
    for row in range(4):
        explained = ac.explain(model, graphs, division, row)
        parts = [each.votes for each in (*explained.given, *explained.voters)]
        assert np.sum(parts, axis=0).tolist() == list(explained.total) == certificate.counts[row].tolist()
        if explained.removal is not None:
            edited = without(graphs[row], explained.removal.pairs)
            assert int(ac.certify(model, [edited], division).label[0]) == explained.removal.label


def test_the_smallest_choice_is_found_among_all():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(300):
        number, classes = rng.integers(1, 6), rng.integers(2, 4)
        total = rng.integers(-6, 7, classes)
        effects = rng.integers(-3, 4, (number, classes))
        costs = rng.integers(1, 4, number)
        taken = fewest_taken_away(total, effects, costs)
        label = winner(total)

        def changes(chosen, total=total, effects=effects, label=label):
            return winner(total + effects[list(chosen)].sum(axis=0)) != label

        sizes = [k for k in range(1, number + 1) if any(map(changes, itertools.combinations(range(number), k)))]
        if taken is None:
            assert not sizes
        else:
            assert changes(taken)
            assert len(taken) == sizes[0]
            found += 1
    assert found > 100


@pytest.mark.parametrize(
    ("lead", "gain", "ties", "number"),
    [(5, 2, False, 3), (4, 2, True, 2), (4, 2, False, 3), (3, 0, True, None), (-1, 2, False, 0)],
)
def test_the_fewest_that_have_to_come(lead, gain, ties, number):
    assert fewest_to_come(lead, gain, ties) == number


@pytest.mark.parametrize("kind", ["sum", "mean", "per neighbour", "edge-centric abstain"])
def test_an_attack_that_tries_everything_breaks_the_label_with_as_many_deletions(kind):
    agreed = 0
    for seed in SEEDS:
        data, model, defence, certificate, explanations = explained_all(kind, seed)
        for row, explained in enumerate(explanations):
            number = 0 if explained.removal is None else len(explained.removal.pairs)
            if number not in (1, 2) or agreed == 2:
                continue
            budget = ac.Budget(delete_edges=number)
            (result,) = ac.attack(model, data, defence, targets=[row], budget=budget, kind="exhaustive").results
            assert result.label_after != result.label_before == explained.label
            assert not certificate.holds_against(budget)[row]
            agreed += 1
    assert agreed
