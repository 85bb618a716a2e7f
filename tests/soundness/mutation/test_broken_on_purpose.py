"""With a rule of the proof broken on purpose, the check that guards it must turn red; with nothing broken, none does.

Each mutation replaces one function of the library by a plausible mistake. The checks are those that the laws and the oracle
call, on a fixed handful of graphs and attacks.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from agnncert.certificates.votes import ABSTAIN
from agnncert.divisions import changes, edge, node
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.divisions.union import DisjointUnion
from agnncert.engine import edges_by_group, naive, range_votes, union, votes
from agnncert.engine import features as lazy_rows
from agnncert.engine import reach as coverage
from agnncert.engine import rounding as guard
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.rounding import Predictions
from agnncert.errors import AgnncertError
from agnncert.graphs import hashing
from agnncert.graphs.perturbation import Perturbation
from agnncert.models.build import build_model
from agnncert.proving import theorems
from tests.support import reference
from tests.support.checks import (
    check_change,
    check_engines_agree,
    check_growth,
    check_listing,
    check_radius,
    check_reach_table,
    votes_of,
)
from tests.support.graphs import make_data, random_change, random_data
from tests.support.models import Once, build
from tests.support.mutations import turns_red
from tests.support.rounding_noise import Cancelling, check_stable_votes_hold, wild_data

# The checks, on fixed examples


def laws(division, task="node", kinds=("inject node", "delete node", "change features", "add edge", "delete edge")):
    """One unit of each attack moves the promised votes only."""
    model = build("sage", task)
    for seed in range(5):
        data = random_data(seed, smallest=4, density=0.3)
        for kind in kinds:
            change = random_change(kind, data, seed, hub_edges=0.5)
            if change is not None:
                check_change(model, data, division, change, task, engine="naive")


def growth(division, task="node"):
    for seed in range(5):
        data = random_data(seed, smallest=4, density=0.5)
        for kind in ("inject node", "delete node"):
            check_growth(data, division, random_change(kind, data, seed), task)


def oracle(division, task="node", rows=None, memory_limit=None, kind="gcn"):
    """Both engines and the reference cast the same votes."""
    model = build(kind, task)
    for seed in range(5):
        data = random_data(seed, smallest=6, density=0.4, directed=seed % 2 == 1)
        if task == "node":
            asked = Once(model) if division.num_groups > 20 else model
            check_engines_agree(asked, data, division, rows, memory_limit)
        else:
            check_engines_agree(model, [data, make_data([], 2), random_data(seed)], division, memory_limit=memory_limit)


def many_classes():
    """Both engines and the reference cast the same votes, among more classes than a byte holds."""
    for seed in range(3):
        data = random_data(seed, smallest=8, density=0.4)
        model = build_model("gcn", data, hidden_channels=8, out_channels=300, seed=seed).double().eval()
        check_engines_agree(model, data, NodeCentric(4))
        assert reference.votes(model, data, NodeCentric(4), "node").max() > np.iinfo(np.int8).max


def listing(division, task="node"):
    """The listed votes are exactly those that an edge reaches."""
    for seed in range(5):
        data = random_data(seed, smallest=6, density=0.3)
        data = data if task == "node" else [data, make_data([], 2), random_data(seed)]
        check_listing(votes_of(build("gcn", task), data, division), data, division)


def no_edge_hub():
    """One node joined to nodes that had no edge moves one vote at most in the node-centric division."""
    data = make_data([(0, 1), (1, 0)], 8)
    change = Perturbation(
        inject_nodes={20_000: [1.0, 1.0, 1.0]}, add_edges=[(20_000, int(u)) for u in data.node_id[2:]]
    )
    check_change_of_votes(data, change, NodeCentric(12))


def check_change_of_votes(data, change, division):
    """As ``check_change``, but of the votes as the oracle casts them."""
    before, after = (
        votes_of(build("gcn", "node"), d, division, "naive").dense()[:2] for d in (data, change.apply(data))
    )
    assert ((before != after).sum(axis=1) <= 1).all()


def covers():
    for seed in range(8):
        check_reach_table(random_data(seed, density=0.4, directed=seed % 2 == 1), EdgeCentric(3))
        check_reach_table([random_data(seed, density=0.6)], EdgeCentric(3))


# The mistakes


def keep_isolated_nodes(patch):
    patch.setattr(EdgeCentric, "subgraph", lambda self, graph, groups, index: graph.with_edges(groups == index))


def keep_other_groups_nodes(patch):
    plain = NodeCentric.subgraph
    patch.setattr(
        NodeCentric, "subgraph", lambda self, graph, groups, index: plain(self, _as_node_task(graph), groups, index)
    )


def _as_node_task(graph):
    return replace(graph, task="node")


def hash_row_numbers(patch):
    for division in (edge, node):
        patch.setattr(division, "node_keys", lambda graph: torch.arange(graph.num_nodes))


def hash_with_the_size_of_the_graph(patch):
    plain = edge.node_keys
    for division in (edge, node):
        patch.setattr(division, "node_keys", lambda graph: plain(graph) * graph.num_nodes)


def hash_directions_apart(patch):
    def edge_groups(u, v, num_groups, hash="md5"):
        return hashing.node_groups(u * np.uint64(2**32) + v, num_groups, hash)

    patch.setattr(hashing, "edge_groups", edge_groups)


def skip_empty_subgraphs_only(patch):
    plain = naive.node_votes

    def node_votes(call, graph, division, groups, index, tolerance):
        votes, stable = plain(call, graph, division, groups, index, tolerance)
        return Predictions(votes if (groups == index).any() else np.full_like(votes, ABSTAIN), stable)

    patch.setattr(naive, "node_votes", node_votes)


def skip_empty_subgraphs(patch):
    """… and without the oracle's own complaint about votes that differ where there is no edge."""
    skip_empty_subgraphs_only(patch)
    patch.setattr(
        votes, "merge_ranges", lambda _, edges, *more: range_votes.all_listed(len(edges.rows), edges.num_groups, *more)
    )


def show_all_features(patch):
    plain = GatedNodeCentric.subgraph

    def subgraph(self, graph, groups, index):
        part = plain(self, graph, groups, index)
        return replace(part, x=graph.x) if len(part.x) == len(graph.x) else part

    patch.setattr(GatedNodeCentric, "subgraph", subgraph)


def forget_to_hide_copies(patch):
    plain = lazy_rows.Features.rows
    patch.setattr(lazy_rows.Features, "rows", lambda self, index, blank=None: plain(self, index))


def change_subgraphs(patch, division, alter):
    plain = division.disjoint_union
    patch.setattr(
        division, "disjoint_union", lambda self, graph, groups, *part: alter(plain(self, graph, groups, *part))
    )


def lose_a_copy(patch, division=EdgeCentric):
    def alter(subgraphs: DisjointUnion) -> DisjointUnion:
        votes = subgraphs.votes.clone()
        votes[votes.nonzero().view(-1)[-1:]] = False
        return replace(subgraphs, votes=votes)

    change_subgraphs(patch, division, alter)


def list_sources_too(patch):
    everyone = lambda p: replace(p, votes=torch.ones_like(p.votes), reached=torch.ones_like(p.reached))  # noqa: E731
    change_subgraphs(patch, NodeCentric, everyone)


def call_lone_nodes_unreachable(patch):
    change_subgraphs(patch, NodeCentric, lambda p: replace(p, reached=torch.zeros_like(p.reached)))


def tie_copies_of_a_node_together(patch):
    """One copy per node instead of one per node and subgraph."""
    change_subgraphs(
        patch,
        EdgeCentric,
        lambda p: replace(p, edge_index=torch.searchsorted(p.subgraph_index, p.subgraph_index[p.edge_index])),
    )


def prune_too_much(patch):
    def near(subgraphs, rows):
        keep = torch.isin(subgraphs.node, torch.from_numpy(rows))
        inside = keep[subgraphs.edge_index].all(0)
        position = torch.cumsum(keep, 0) - 1
        blank = None if subgraphs.blank is None else subgraphs.blank[keep]
        return DisjointUnion(
            subgraphs.subgraph_index[keep], subgraphs.node[keep], position[subgraphs.edge_index[:, inside]], subgraphs.edge[inside],
            subgraphs.votes[keep], subgraphs.reached[keep], blank,
        )  # fmt: skip

    patch.setattr(edges_by_group, "near", near)


def lose_the_last_edge_of_a_chunk(patch):
    plain = union.SubgraphUnion.chunks

    def chunks(self, rows):
        for chunk in plain(self, rows):
            yield union.Chunk(chunk.copies, slice(chunk.edges.start, max(chunk.edges.start, chunk.edges.stop - 1)))

    patch.setattr(union.SubgraphUnion, "chunks", chunks)


def default_from_the_whole_graph(patch):
    def no_edges(graph, takes):
        return graph.edge_index, {name: graph.edge_values[name] for name in takes}

    patch.setattr(naive, "no_edges", no_edges)


def follow_edges_one_way(patch):
    def components(subgraphs):
        label = np.arange(len(subgraphs.subgraph_index))
        for u, v in subgraphs.edge_index.t().tolist():
            label[v] = label[u]
        return label

    patch.setattr(coverage, "components", components)


def forget_large_components(patch):
    patch.setattr(coverage, "MAX_PAIRS", 12)
    plain = coverage.sums_of_largest
    patch.setattr(
        coverage,
        "sums_of_largest",
        lambda owner, reach, cap, base: plain(owner, reach, np.maximum(cap - base, 0), 0 * base),
    )


def take_the_smallest_reaches(patch):
    plain = coverage.sums_of_largest
    patch.setattr(
        coverage, "sums_of_largest", lambda owner, reach, cap, base: plain(owner, np.minimum(reach, 1), cap, base)
    )


def drop_the_tie_term(patch):
    patch.text(theorems, "margin -= wins_ties", "margin -= 0 * wins_ties")


def charge_one_per_changed_vote(patch):
    patch.text(
        theorems, "np.maximum(counts.margin // 2, counts.margin - np.minimum(own, others))", "counts.margin.copy()"
    )


def ties_to_the_larger_class(patch):
    patch.text(
        theorems,
        "label = (all_votes + prior.votes).argmax(axis=1)",
        "label = all_votes.shape[1] - 1 - (all_votes + prior.votes)[:, ::-1].argmax(axis=1)",
    )


def free_own_features(patch):
    for division in (edge, node):
        patch.setattr(division, "require_covered", lambda *args, **kwargs: None)


def free_edges_of_touched_nodes(patch):
    def moved_groups(self, change, graph, target):
        changes.require_covered(change, graph, target, target_features=False)
        return changes.touched_edge_groups(change, self.num_groups, self.hash)

    patch.setattr(EdgeCentric, "moved_groups", moved_groups)


def free_injected_nodes(patch):
    for division in (edge, node):
        patch.setattr(division, "touched_nodes", lambda change: set(changes.keys_of(change.change_features)))


def compute_once(patch):
    patch.setattr(guard, "_deviation", lambda call, logits, inputs, seed: torch.zeros(len(logits)))


def add_no_noise(patch):
    patch.setattr(guard, "NOISE_UNITS", 0.0)


def hand_over_the_data_itself(patch):
    patch.setattr(ModelAdapter, "run", lambda self, x, edge_index, values, batch: self.model(x, edge_index))


def rounding():
    """A stable vote is the same on every path."""
    for seed in range(2):
        check_stable_votes_hold(Cancelling("gcn", seed), wild_data(seed), EdgeCentric(5))


def left_alone():
    """A model that writes into its input alters nobody's data."""
    data = random_data(2)
    before = data.x.clone()
    votes_of(lambda x, edge_index: x.data.clamp_(0.0) + 1, data, EdgeCentric(3), "naive")
    assert torch.equal(data.x, before)


GATED = GatedNodeCentric(4)


def keep_classes_in_a_byte(patch):
    patch.setattr(range_votes, "_narrow", lambda vote, num_classes: vote.astype(np.int8))


MUTATIONS = [
    ("classes", keep_classes_in_a_byte, many_classes),
    ("isolated-node rule", keep_isolated_nodes, lambda: laws(EdgeCentric(6), "graph")),
    ("isolated-node rule", keep_isolated_nodes, lambda: oracle(EdgeCentric(6), "graph")),
    ("isolated-node rule", keep_other_groups_nodes, lambda: laws(NodeCentric(4), "graph")),
    ("id rule", hash_row_numbers, lambda: growth(EdgeCentric(9))),
    ("id rule", hash_row_numbers, lambda: growth(NodeCentric(9), "graph")),
    ("id rule", hash_row_numbers, lambda: laws(NodeCentric(9))),
    ("id rule", hash_with_the_size_of_the_graph, lambda: growth(EdgeCentric(9), "graph")),
    ("id rule", hash_with_the_size_of_the_graph, lambda: growth(NodeCentric(9))),
    ("id rule", hash_with_the_size_of_the_graph, lambda: laws(EdgeCentric(9))),
    ("unordered pairs", hash_directions_apart, lambda: oracle(EdgeCentric(9))),
    ("empty-group rule", skip_empty_subgraphs, no_edge_hub),
    ("empty-group rule", skip_empty_subgraphs_only, lambda: oracle(NodeCentric(30))),
    ("empty-group rule", skip_empty_subgraphs_only, lambda: oracle(EdgeCentric(30))),
    ("gate", show_all_features, lambda: laws(GATED, kinds=["change features"])),
    ("gate", show_all_features, lambda: oracle(GATED)),
    ("gate", forget_to_hide_copies, lambda: oracle(GATED)),
    ("listing", lose_a_copy, lambda: listing(EdgeCentric(4))),
    ("listing", lambda patch: lose_a_copy(patch, NodeCentric), lambda: listing(NodeCentric(4))),
    ("listing", lambda patch: lose_a_copy(patch, GatedNodeCentric), lambda: listing(GATED)),
    ("listing", lose_a_copy, lambda: oracle(EdgeCentric(4))),
    ("listing", list_sources_too, lambda: listing(NodeCentric(4))),
    ("listing", call_lone_nodes_unreachable, lambda: listing(NodeCentric(4), "graph")),
    ("union", tie_copies_of_a_node_together, lambda: oracle(EdgeCentric(4))),
    ("pruning", prune_too_much, lambda: oracle(EdgeCentric(4), rows=[0, 1])),
    ("pruning", prune_too_much, lambda: oracle(NodeCentric(4), rows=[0, 1])),
    ("chunks", lose_the_last_edge_of_a_chunk, lambda: oracle(EdgeCentric(4), kind="sage")),
    ("chunks", lose_the_last_edge_of_a_chunk, lambda: oracle(NodeCentric(4), "graph", kind="sage", memory_limit=1)),
    ("default", default_from_the_whole_graph, lambda: oracle(EdgeCentric(4))),
    ("reach", follow_edges_one_way, covers),
    ("reach", forget_large_components, covers),
    ("reach", take_the_smallest_reaches, covers),
    ("tie term", drop_the_tie_term, check_radius),
    ("two per vote", charge_one_per_changed_vote, check_radius),
    ("ties", ties_to_the_larger_class, check_radius),
    ("own features", free_own_features, lambda: laws(EdgeCentric(6))),
    ("own features", free_own_features, lambda: laws(NodeCentric(6))),
    ("promise", free_edges_of_touched_nodes, lambda: laws(EdgeCentric(6))),
    ("promise", free_injected_nodes, lambda: laws(NodeCentric(6))),
    ("rounding", compute_once, rounding),
    ("rounding", add_no_noise, rounding),
    ("own copies", hand_over_the_data_itself, left_alone),
]  # fmt: skip


@pytest.mark.parametrize(("theorem", "mistake", "check"), MUTATIONS, ids=lambda part: getattr(part, "__name__", part))
def test_a_broken_rule_turns_its_check_red(monkeypatch, theorem, mistake, check):
    with monkeypatch.context() as patch:
        turns_red(patch, mistake, check, (AssertionError, AgnncertError))


UNBROKEN = {
    "laws": lambda: [laws(d, t) for d, t in ((EdgeCentric(6), "node"), (EdgeCentric(6), "graph"), (NodeCentric(4), "graph"), (NodeCentric(6), "node"), (GATED, "node"))],
    "growth": lambda: [growth(d, t) for d in (EdgeCentric(9), NodeCentric(9)) for t in ("node", "graph")],
    "oracle": lambda: [oracle(d, t, kind=k) for d in (EdgeCentric(4), NodeCentric(30)) for t in ("node", "graph") for k in ("gcn", "sage")],
    "oracle, gated and pruned": lambda: [oracle(GATED), oracle(EdgeCentric(4), rows=[0, 1]), oracle(NodeCentric(4), rows=[0, 1])],
    "listing": lambda: [listing(d) for d in (EdgeCentric(4), NodeCentric(4), GATED)] + [listing(NodeCentric(4), "graph")],
    "many classes": many_classes,
    "empty groups": no_edge_hub,
    "reach": covers,
    "radius": check_radius,
    "rounding": rounding,
    "own copies": left_alone,
}  # fmt: skip


@pytest.mark.parametrize("name", UNBROKEN)
def test_with_nothing_broken_every_check_is_green(name):
    UNBROKEN[name]()
