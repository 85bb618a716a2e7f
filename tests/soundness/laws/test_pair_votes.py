"""Theorems 18 and 19 by brute force: every attack of a few changes on tiny graphs, against scores written in plain loops.

The rule is written again here, on sets of arcs, and shares nothing with ``agnncert.pairs`` but the numbers of a model.
"""

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.graphs.targets import prepared
from agnncert.pairs.defence import PairVotes, evidence_of
from agnncert.pairs.model import PairModel
from agnncert.pairs.targets import choose_pairs

NUM_NODES = 5
FRESH = 5  # the id of an injected node
STEPS = 65536


class Table(torch.nn.Module):
    """A prior that is the same for every pair."""

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor(logits, dtype=torch.float64))

    def forward(self, x_u, x_v, values):
        return self.logits.to(x_u.dtype).expand(len(x_u), -1)


def made_model(rng, defence, channels=0):
    """A model with numbers drawn at random; leads of a few votes."""
    model = PairModel(Table([0.0, 0.0]), 2, channels, defence).eval()
    with torch.no_grad():
        model.constant.copy_(torch.tensor([rng.uniform(-3, 3), 0.0], dtype=torch.float64))
        model.favoured.fill_(int(rng.integers(2)))
        model.side_weight.fill_(float(rng.choice([0.5, 1.0, 1.0])) if defence.over == "both" else 0.0)
        for weight in model.vote_net.parameters():
            weight.copy_(torch.from_numpy(rng.normal(0, 2, weight.shape)))
    return model


@torch.no_grad()
def narrow(rng, model, arcs, pair):
    """Moves the prior so that the first class leads, or lags, by few votes on this graph."""
    most = 1.2 if model.edge_channels else 3.0
    counts = evidence_of(model, choose_pairs(prepared(as_data(arcs, pair)), None)).counts[0]
    model.constant[0] += float(rng.uniform(-most, most)) - (counts[0] - counts[1]) / STEPS


def drawn_arcs(rng, share):
    """Arcs with values, some pairs in one direction only."""
    pairs = itertools.permutations(range(NUM_NODES), 2)
    return {pair: float(rng.choice([-1.0, 1.0])) for pair in pairs if rng.random() < share}


def as_data(arcs, pair, number=NUM_NODES):
    ends = sorted(arcs)
    return Data(
        x=torch.ones((number, 2)),
        edge_index=torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T.contiguous(),
        edge_attr=torch.tensor([[arcs[each]] for each in ends]).reshape(-1, 1),
        edge_label_index=torch.tensor([[pair[0]], [pair[1]]]),
        node_id=torch.arange(number),
    )


@torch.no_grad()
def numbers_of(model):
    """What the model says, in whole steps: the prior of both classes, and the vote along an edge of each value."""
    prior = [
        round(constant * STEPS + float(model.scale) * math.log(0.5) * STEPS) for constant in model.constant.tolist()
    ]
    votes = {}
    for value in (-1.0, 1.0) if model.edge_channels else ():
        row = (torch.tensor([[value]], dtype=torch.float64) - model.edge_center) / model.edge_spread
        shares = torch.softmax(copy.deepcopy(model).double().vote_net(row), dim=1)[0]
        votes[value] = [math.floor(share * STEPS) for share in shares.tolist()]
    return prior, votes


def label_by_loops(model, arcs, pair, numbers=None):
    """The label of the pair, counted in whole steps."""
    u, v = pair
    defence = model.defence
    prior, votes = numbers or numbers_of(model)
    score = list(prior)
    others = {node for arc in arcs for node in arc} - {u, v}
    if defence.trusted is not None:
        for j in others:
            if arcs.get((u, j), -1.0) > 0 and (j, v) in arcs:
                score = [score[k] + votes[arcs[j, v]][k] for k in range(2)]
        return int(score[1] > score[0])
    for j in others:
        at_u = (u, j) in arcs or (j, u) in arcs
        at_v = (v, j) in arcs or (j, v) in arcs
        weights = [1.0] * (at_u and at_v)
        if defence.over == "both":
            weights += [float(model.side_weight)] * (at_u + at_v)
        score[int(model.favoured)] += sum(math.floor(weight * STEPS) for weight in weights)
    return int(score[1] > score[0])


def single_changes(arcs, kinds, pair, trusted):
    """Every graph that one change makes of a graph, with its kind."""
    u, v = pair
    nodes = range(NUM_NODES)
    for x, y in itertools.combinations(nodes, 2):
        if trusted and u in (x, y):
            continue  # the edges of u are out of reach; arcs to u have no vote, so leaving them out loses nothing
        there = [arc for arc in ((x, y), (y, x)) if arc in arcs]
        rest = {arc: value for arc, value in arcs.items() if arc not in ((x, y), (y, x))}
        if "add_edges" in kinds:
            for arc in ((x, y), (y, x)):
                if arc not in arcs:
                    for value in (-1.0, 1.0):
                        yield {**arcs, arc: value}, "add_edges"
        if "delete_edges" in kinds and there:
            yield rest, "delete_edges"
        if "change_edges" in kinds and there:
            for values in itertools.product((-1.0, 1.0, None), repeat=len(there)):
                changed = {arc: value for arc, value in zip(there, values, strict=True) if value is not None}
                if changed:
                    yield {**rest, **changed}, "change_edges"
    if "inject_nodes" in kinds:
        old = [node for node in nodes if not (trusted and node == u)]
        for number in range(len(old) + 1):
            for joined in itertools.combinations(old, number):
                for value in (-1.0, 1.0):
                    yield {**arcs, **{(FRESH, node): value for node in joined}}, "inject_nodes"
    if "delete_nodes" in kinds:
        for node in set(nodes) - {u, v}:
            if not (trusted and arcs.get((u, node), -1.0) > 0):
                yield {arc: value for arc, value in arcs.items() if node not in arc}, "delete_nodes"


def attacks(arcs, kinds, pair, trusted, size):
    """All graphs after up to ``size`` changes, with the kinds of these changes."""
    found = [(arcs, ())]
    for _ in range(size):
        more = []
        for before, done in found:
            if "inject_nodes" in done:
                continue  # one injected node is enough, and it comes last
            more += [(after, (*done, kind)) for after, kind in single_changes(before, kinds, pair, trusted)]
        found = [*found[:1], *more]
        yield from more


RULES = {
    "common": PairVotes(),
    "both": PairVotes(over="both"),
    "trusted": PairVotes(trusted=0, directed=True),
    "masked": PairVotes(mask="targets"),
}
KINDS = ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes")


def examine(rule, seed, cases, size):
    """How many attacks were tried, how many certificates held, and which were refuted."""
    rng = np.random.default_rng(seed)
    defence = RULES[rule]
    tried, held, false = 0, 0, []
    for _ in range(cases):
        pair = tuple(int(node) for node in rng.permutation(NUM_NODES)[:2])
        arcs = drawn_arcs(rng, float(rng.choice([0.2, 0.45] if defence.trusted is None else [0.45, 0.7])))
        model = made_model(rng, defence, channels=int(defence.trusted is not None))
        narrow(rng, model, arcs, pair)
        evidence = evidence_of(model, choose_pairs(prepared(as_data(arcs, pair)), None))
        label = int(evidence.labels()[0])
        assert label == label_by_loops(model, arcs, pair)
        radius = int(evidence.label_and_radius()[1][0])
        structure = int(evidence.structure_radius()[0])
        numbers = numbers_of(model)
        for after, done in attacks(arcs, KINDS, pair, defence.trusted is not None, size):
            tried += 1
            if label_by_loops(model, after, pair, numbers) == label:
                continue
            budget = Budget(**{kind: done.count(kind) for kind in set(done)})
            if bool(evidence.holds(budget)[0]):
                false.append((arcs, after, str(budget)))
            altered = "change_edges" in done
            counted = len(done) - (done.count("inject_nodes") + done.count("delete_nodes")) * (rule == "trusted")
            if radius >= counted or (structure >= counted and not altered):
                false.append((arcs, after, f"radius {radius}, structure {structure}"))
        held += bool(evidence.holds(Budget(delete_edges=1))[0])
    return tried, held, false


@pytest.mark.parametrize("rule", RULES)
def test_no_attack_within_the_budget_changes_a_certified_label(rule):
    for cases, size in ((30, 1), (4, 2)):
        tried, held, false = examine(rule, seed=1, cases=cases, size=size)
        assert tried > 500
        assert held > 0
        assert not false


@pytest.mark.parametrize("rule", ["common", "both"])
def test_edges_elsewhere_and_the_edge_of_the_pair_itself_change_no_score(rule):
    rng = np.random.default_rng(3)
    for _ in range(20):
        u, v = (int(node) for node in rng.permutation(NUM_NODES)[:2])
        arcs = drawn_arcs(rng, 0.4)
        model = made_model(rng, RULES[rule])
        before = evidence_of(model, choose_pairs(prepared(as_data(arcs, (u, v))), None)).counts
        for x, y in itertools.permutations(range(NUM_NODES), 2):
            if len({x, y} & {u, v}) == 1:
                continue
            other = {arc: value for arc, value in arcs.items() if arc != (x, y)}
            after = other if (x, y) in arcs else {**arcs, (x, y): 1.0}
            counts = evidence_of(model, choose_pairs(prepared(as_data(after, (u, v))), None)).counts
            assert np.array_equal(counts, before)


def test_any_number_of_injected_accounts_costs_nothing_where_contacts_are_trusted():
    rng = np.random.default_rng(4)
    anyone = Budget(inject_nodes=math.inf, edges_per_injected=math.inf)
    for _ in range(10):
        arcs = drawn_arcs(rng, 0.5)
        model = made_model(rng, RULES["trusted"], channels=1)
        evidence = evidence_of(model, choose_pairs(prepared(as_data(arcs, (0, 1))), None))
        assert evidence.holds(Budget())[0] == evidence.holds(anyone)[0]
        label = label_by_loops(model, arcs, (0, 1))
        crowd = {(node, other): float(rng.choice([-1, 1])) for node in range(9, 30) for other in (1, 2, 3)}
        assert label_by_loops(model, {**arcs, **crowd}, (0, 1)) == label


def test_an_injected_node_with_one_edge_has_no_vote_on_a_pair():
    rng = np.random.default_rng(6)
    arcs = drawn_arcs(rng, 0.3)
    model = made_model(rng, RULES["common"])
    evidence = evidence_of(model, choose_pairs(prepared(as_data(arcs, (0, 1))), None))
    assert evidence.holds(Budget(inject_nodes=1000, edges_per_injected=1))[0] == evidence.holds(Budget())[0]
    assert not evidence.holds(Budget(inject_nodes=10**6, edges_per_injected=2)).all() or not model.use_votes
