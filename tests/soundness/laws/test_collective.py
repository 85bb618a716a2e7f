"""How many targets one attacked graph breaks: the library's bound against every attack on tiny graphs."""

import dataclasses
import itertools
import random
from functools import cache

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from tests.support import tiny
from tests.support.certificates import random_evidence
from tests.support.harness import KINDS, budget_of, evidence, flips, random_cell, random_table
from tests.support.tiny import Cell

NODE_RULES = ["edge-centric/node", "node-centric/node", "gated/node"]


def most_broken(kind, graph, cell, targets, tables) -> int:
    """The worst attacked graph, with the worst votes for all targets at once. Deleted targets are broken."""
    clean = {v: kind.views(graph, v) for v in targets}
    everywhere, seen = frozenset(range(graph.num_groups)), set()
    every_attack = tiny.attacks(graph, cell, kind.edge_groups, kind.node_groups)
    for attacked, deleted, _ in itertools.islice(every_attack, 2_000):
        views = {v: kind.views(attacked, v) for v in targets if v not in deleted}
        seen.add(
            tuple(
                None if v in deleted else frozenset(i for i in everywhere if views[v][i] != clean[v][i])
                for v in targets
            )
        )

    @cache
    def broken(which: int, moved: frozenset[int] | None) -> bool:
        return moved is None or flips(tables[which], moved)

    return max(sum(itertools.starmap(broken, enumerate(moved))) for moved in seen)


def compare(theorem: str, seed: int, graphs: int, own: bool) -> tuple[int, int, int]:
    """Cells tried, cells where the bound is attained, cells where it says less than "all"."""
    rng, kind = random.Random(seed), KINDS[theorem]
    tried = attained = telling = 0
    for _ in range(graphs):
        graph = tiny.random_tiny(
            rng, rng.choice([3, 4]), rng.choice([3, 4, 5]), directed=rng.random() < 0.3, loops=False
        )
        targets = sorted(rng.sample(list(graph.features), rng.choice([2, 3])))
        tables = [random_table(rng, kind, graph, v, 3) for v in targets]
        for _ in range(4):
            cell = random_cell(rng, rng.choice([1, 2, 2]))
            cell = dataclasses.replace(cell, own=own, spare=frozenset() if own else frozenset(targets))
            bound = evidence(kind, graph, targets, tables).broken_at_most(budget_of(cell))
            worst = most_broken(kind, graph, cell, targets, tables)
            assert worst <= bound, (theorem, graph, cell, targets, tables)
            tried, attained, telling = (tried + 1, attained + (worst == bound), telling + (bound < len(targets)))
    return tried, attained, telling


@pytest.mark.parametrize("theorem", NODE_RULES)
def test_no_attack_that_spares_the_targets_breaks_more_than_the_bound(theorem):
    tried, attained, telling = compare(theorem, seed=11, graphs=25, own=False)
    assert attained > 0.5 * tried
    assert telling > 0.15 * tried


@pytest.mark.parametrize("theorem", NODE_RULES)
def test_targets_that_may_be_deleted_or_altered_are_counted(theorem):
    tried, attained, _ = compare(theorem, seed=12, graphs=12, own=True)
    assert attained > 0.5 * tried


def test_without_counting_the_altered_targets_the_bound_would_be_wrong():
    """The same attacks, judged by the bound for attackers who spare the targets."""
    rng, kind, wrong = random.Random(13), KINDS["edge-centric/node"], 0
    for _ in range(30):
        graph = tiny.random_tiny(rng, 3, 4, directed=False, loops=False)
        tables = [random_table(rng, kind, graph, v, 3) for v in graph.features]
        proof = evidence(kind, graph, list(graph.features), tables)
        worst = most_broken(kind, graph, Cell(features=1, own=True), list(graph.features), tables)
        wrong += worst > proof.broken_at_most(Budget(change_features=2))
        assert worst <= proof.broken_at_most(Budget(change_features=1, target_features=True))
    assert wrong > 5


def lonely_targets(num_targets: int, num_groups: int):
    """Targets without edges: every vote is the default, so only new neighbours matter."""
    graph = tiny.Tiny(
        dict.fromkeys(range(num_targets), 0), {}, dict.fromkeys(range(num_targets), 0), {}, num_groups=num_groups
    )
    tables = [[0] * num_groups for _ in range(num_targets)]
    return evidence(KINDS["edge-centric/node"], graph, list(range(num_targets)), tables)


def test_added_edges_are_shared_out_two_targets_each():
    proof = lonely_targets(10, 8)  # margin 8: a target needs 5 new neighbours before class 1 leads
    assert proof.max_certified("add_edges", Budget()).tolist() == [4.0] * 10
    assert [proof.broken_at_most(Budget(add_edges=e)) for e in (4, 5, 7, 8, 25, 100)] == [0, 2, 2, 3, 10, 10]


def test_injected_nodes_serve_as_many_targets_as_they_have_edges():
    proof = lonely_targets(10, 8)
    assert [proof.broken_at_most(Budget(inject_nodes=a, edges_per_injected=3)) for a in (4, 5, 7)] == [0, 3, 4]
    assert proof.broken_at_most(Budget(inject_nodes=5, edges_per_injected=np.inf)) == 10
    assert proof.broken_at_most(Budget(inject_nodes=4, edges_per_injected=np.inf)) == 0


def test_only_the_chosen_targets_are_counted():
    proof = lonely_targets(10, 8)
    chosen = np.arange(10) < 3
    assert proof.broken_at_most(Budget(add_edges=100), among=chosen) == 3


def test_no_nodes_with_unlimited_edges_break_nothing():
    proof = lonely_targets(3, 8)
    assert proof.broken_at_most(Budget(inject_nodes=0, edges_per_injected=np.inf)) == 0
    assert proof.holds(Budget(inject_nodes=0, edges_per_injected=np.inf)).all()


def test_one_attacked_graph_is_one_broken_target_in_the_graph_task():
    rng, kind = random.Random(14), KINDS["node-centric/graph"]
    graph = tiny.random_tiny(rng, 4, 5, directed=False, loops=False)
    proof = evidence(kind, graph, [0, 0], [random_table(rng, kind, graph, 0, 3) for _ in range(2)])
    assert proof.broken_at_most(Budget(inject_nodes=np.inf)) == 1
    assert proof.broken_at_most(Budget()) == 0


def test_only_the_chosen_graphs_are_counted():
    proof = random_evidence(np.random.default_rng(0), "edge-centric/graph")
    holds = proof.holds(Budget(delete_edges=1))
    assert 0 < holds.sum() < len(holds)
    assert proof.broken_at_most(Budget(delete_edges=1), among=holds) == 0
    assert proof.broken_at_most(Budget(delete_edges=1), among=~holds) == 1
