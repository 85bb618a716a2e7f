import gzip
import json
import math
import random
from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.nn import global_mean_pool

import agnncert as ac
from agnncert.errors import BudgetError
from agnncert_code.budgets import Edits, difference, edits
from agnncert_code.reading import graph
from agnncert_code.syntax import parse
from tests.support.functions import FUNCTIONS, edited


def nodes(text):
    found = graph(text)
    rows = found.to_data().x.numpy()
    return {(id, rows[k].tobytes()) for k, id in enumerate(found.ids)}


def check(before, rng):
    after, inserted, deleted = edited(before, rng)
    assert difference(before, after) == Edits(tuple(sorted(inserted.elements())), tuple(sorted(deleted.elements())))
    old, new = nodes(before), nodes(after)
    assert len(new - old) == inserted.total()
    assert len(old - new) == deleted.total()
    assert Counter(id.split(" ", 1)[1] for id, _ in new - old) == inserted
    return after


@pytest.mark.parametrize("seed", range(20))
def test_the_difference_of_two_graphs_is_exactly_the_edits(seed):
    rng = random.Random(seed)
    for text in FUNCTIONS:
        assert not parse(text).partial
        for _ in range(3):  # edits of edited functions too
            text = check(text, rng)


@pytest.mark.data
def test_the_difference_of_real_functions_is_exactly_the_edits(data_root):
    with gzip.open(data_root / "BigVul" / "raw" / "bigvul_original_rows_200.jsonl.gz") as file:
        texts = [json.loads(line)["func"] for line in file]
    rng = random.Random(0)
    whole = [text for text in texts if not parse(text).partial]
    assert len(whole) > 100
    for text in rng.sample(whole, 60):
        check(text, rng)


def test_another_statement_of_the_same_text_is_the_last_of_its_number():
    old, new = graph("void f() { a(); b(); a(); }"), graph("void f() { a(); a(); b(); a(); }")
    assert set(new.ids) - set(old.ids) == {"#3 a ( ) ;"}


def test_what_an_edit_breaks_is_counted():
    before = "void f() { a(); b(); c(); }"
    commented = difference(before, "void f() { a(); /* b(); c(); */ }")
    assert commented == Edits((), ("b ( ) ;", "c ( ) ;"))
    assert difference(before, "void f() { a(); if (x) { b(); c(); }").inserted  # a brace is missing
    assert difference(before, "void f() { c(); /* x */ { b(); } a(); }") == Edits((), ())


def test_edits_add_up():
    assert Edits(("a", "b"), ("c",)).count == 2
    assert Edits(("a", "b"), ("c",)).within(inserted=1, replaced=1)
    assert Edits(("a", "b"), ("c",)).within(inserted=2, deleted=1)
    assert not Edits(("a", "b"), ("c",)).within(inserted=2)
    assert not Edits(("a", "b"), ("c",)).within(replaced=1)


def test_a_budget_in_edits_leaves_edges_free():
    budget = edits(inserted=2, deleted=1, replaced=3)
    assert (budget.inject_nodes, budget.delete_nodes, budget.change_features) == (5, 4, 0)
    assert budget.add_edges == budget.delete_edges == budget.change_edges == budget.edges_per_injected == math.inf
    assert edits(inserted=1, flows=False).add_edges == 0
    with pytest.raises(BudgetError):
        edits(inserted=-1)


@pytest.mark.parametrize("edges", ["names", "none"])
def test_edges_between_statements_that_stay_are_not_moved_by_edits_elsewhere(edges):
    rng = random.Random(1)
    for text in FUNCTIONS * 20:
        after, *_ = edited(text, rng)
        old, new = graph(text, edges=edges), graph(after, edges=edges)
        staying = set(old.ids) & set(new.ids)

        def joined(found, staying=staying):
            pairs = [(found.ids[a], found.ids[b]) for a, b in found.edges.T]
            return {pair for pair in pairs if set(pair) <= staying}

        assert joined(old) == joined(new)


def test_flow_between_statements_that_stay_is_moved_by_one_edit():
    old, new = graph("void f() { a(); b(); }"), graph("void f() { a(); return; b(); }")
    pairs = [{(g.ids[a], g.ids[b]) for a, b in g.edges.T} for g in (old, new)]
    assert ("#1 a ( ) ;", "#1 b ( ) ;") in pairs[0] - pairs[1]


class Even(torch.nn.Module):
    """Votes about as often for one class as for the other, and listens to edges."""

    def __init__(self, graphs, seed):
        super().__init__()
        x = torch.cat([graph.x for graph in graphs])
        self.register_buffer("centre", x.mean(dim=0))
        self.register_buffer("direction", torch.randn(x.size(1), generator=torch.Generator().manual_seed(seed)))

    def forward(self, x, edge_index, batch):
        own = (x - self.centre) @ self.direction
        heard = torch.zeros_like(own).index_add(0, edge_index[1], 2 * own[edge_index[0]])
        score = global_mean_pool((own - heard)[:, None], batch)
        return torch.cat([-score, score], dim=1)


@pytest.mark.parametrize(("groups", "edges", "flows"), [(997, "flow", True), (12, "names", False)])
def test_no_edit_within_a_certificate_changes_the_label_and_some_beyond_do(groups, edges, flows):
    graphs, division = [graph(text, edges=edges).to_data() for text in FUNCTIONS], ac.NodeCentric(groups)
    held, broken = 0, 0
    for seed in range(4):
        model, rng = Even(graphs, seed).eval(), random.Random(seed)
        cert = ac.certify(model, graphs, division)
        tried = [(row, *edited(FUNCTIONS[row], rng)) for row in range(len(FUNCTIONS)) for _ in range(25)]
        again = ac.certify(model, [graph(text, edges=edges).to_data() for _, text, _, _ in tried], division)
        for (row, _, inserted, deleted), label in zip(tried, again.label, strict=True):
            budget = edits(inserted=inserted.total(), deleted=deleted.total(), flows=flows)
            if cert.holds_against(budget)[row]:
                assert label == cert.label[row]
                held += 1
            else:
                broken += int(label != cert.label[row])
    assert held > 50
    assert broken  # so the certificate is not just about labels that nothing changes


def test_reordered_statements_cost_no_edit_but_move_the_flow_everywhere():
    pairs = [(f"a{k} = {k};", f"g(a{k});") for k in range(8)]
    before = "void f() { " + " ".join(set_ + get for set_, get in pairs) + " }"
    after = "void f() { " + " ".join([get for _, get in pairs] + [set_ for set_, _ in pairs]) + " }"
    assert difference(before, after).count == 0
    graphs, division = [graph(text).to_data() for text in (before, after)], ac.NodeCentric(3)
    flipped = 0
    for seed in range(20):
        cert = ac.certify(Even(graphs, seed).eval(), graphs, division)
        assert not cert.holds_against(edits()).any()  # every group has two statements or more
        flipped += int(cert.label[0] != cert.label[1])
    assert flipped  # so it would be wrong to hold edges fixed
    joined = [graph(text, edges="names").to_data() for text in (before, after)]
    cert = ac.certify(Even(joined, 0).eval(), joined, division)
    assert np.array_equal(cert.counts[0], cert.counts[1])
    assert cert.holds_against(edits(flows=False)).all()
