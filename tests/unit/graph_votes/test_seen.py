"""What a model of graph votes sees: the trusted part, and nothing else."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier
from torch_geometric.data import Data

import agnncert as ac
from agnncert.graph_votes.model import GraphModel
from agnncert.graph_votes.seen import LARGEST, Shape, Types, of_nodes, of_structure, of_surroundings
from agnncert.graph_votes.trees import SHARES, Trees


def random_shape(rng, num_graphs=3, num_nodes=8, share=0.4):
    pairs = []
    for number in range(num_graphs):
        for pair in itertools.combinations(range(number * num_nodes, (number + 1) * num_nodes), 2):
            if rng.random() < share:
                pairs.append(pair)
    return Shape(num_graphs, np.repeat(np.arange(num_graphs), num_nodes), np.array(pairs).reshape(-1, 2).T)


def renumbered(shape, rng):
    order = np.arange(shape.num_nodes)
    for number in range(shape.num_graphs):
        here = np.flatnonzero(shape.batch == number)
        order[here] = rng.permutation(here)
    return order, Shape(shape.num_graphs, shape.batch, np.sort(order[shape.pairs], axis=0))


def test_numbering_of_nodes_does_not_matter():
    rng = np.random.default_rng(1)
    for _ in range(10):
        shape = random_shape(rng)
        order, other = renumbered(shape, rng)
        assert np.array_equal(of_structure(shape), of_structure(other))
        assert np.array_equal(of_surroundings(shape), of_surroundings(other)[order])
        for mine, theirs in zip(shape.colours, other.colours, strict=True):
            assert np.array_equal(mine, theirs[order])


def test_colours_tell_apart_what_counts_do():
    """Two triangles and one ring of six have nodes of the same degrees, and the same colours; a path has others."""
    triangles = np.array([[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]]).T
    ring = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [0, 5]]).T
    path = ring[:, :5]
    shapes = [Shape(1, np.zeros(6, dtype=np.int64), pairs) for pairs in (triangles, ring, path)]
    sets = [set(shape.colours[3].tolist()) for shape in shapes]
    assert sets[0] == sets[1] != sets[2]
    assert not np.array_equal(of_structure(shapes[0]), of_structure(shapes[1]))  # cycles are counted apart


def test_closed_walks_that_never_turn_back_are_counted():
    rng = np.random.default_rng(2)
    for _ in range(5):
        shape = random_shape(rng, 1, 7, 0.5)
        joined = {tuple(pair) for pair in shape.pairs.T.tolist()}
        arcs = [(u, v) for u, v in joined] + [(v, u) for u, v in joined]
        step = np.array([[int(a[1] == b[0] and a[0] != b[1]) for b in arcs] for a in arcs]).reshape(len(arcs), -1)
        expected = [int(np.trace(np.linalg.matrix_power(step, length))) for length in (3, 4, 5, 6)]
        assert of_structure(shape)[0, -4:].tolist() == np.minimum(expected, LARGEST).tolist()


def marked(rows):
    return Types.found_in(np.array(rows, dtype=np.float64))


def test_every_row_of_features_has_a_type():
    types = marked([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 2]])
    assert types.of(np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 2]])).tolist() == [0, 1, 2]
    odd = np.array([[0.0, 0, 0], [1, 1, 0], [0.5, 0, 0], [-1, 0, 0], [0, 0, 1e30], [-0.0, 0, 2]])
    assert types.of(odd).tolist() == [3, 3, 3, 3, 3, 2]


def test_types_are_those_of_training_graphs_and_the_rest_is_measured():
    types = marked([[1, 0, 0.25], [0, 1, -3.0]])
    assert types.columns.tolist() == [0, 1]
    assert types.measured.tolist() == [2]
    assert types.num_types == 3
    assert (np.abs(types.amounts(np.array([[0, 0, 1e9], [0, 0, -1e9]]))) == 2**16).all()


def test_a_bag_of_nodes_reads_no_edge():
    model, graphs = _fitted(ac.BagOfNodes())
    other = [Data(x=g.x, edge_index=g.edge_index[:, :0]) for g in graphs]
    assert torch.equal(_scores(model, graphs), _scores(model, other))


def test_structure_is_read_without_features():
    model, graphs = _fitted(ac.StructureOnly())
    rng = torch.Generator().manual_seed(4)
    other = [Data(x=1e6 * torch.randn(g.x.shape, generator=rng), edge_index=g.edge_index) for g in graphs]
    assert torch.equal(_scores(model, graphs), _scores(model, other))
    with_values = [Data(x=g.x, edge_index=g.edge_index, edge_attr=torch.rand(g.num_edges, 2)) for g in graphs]
    for one in with_values:
        one.node_id = torch.randperm(one.num_nodes)
    defence = ac.StructureOnly()
    assert np.array_equal(defence.scores(model, graphs), defence.scores(model, with_values))


def test_the_order_of_nodes_and_edges_alters_no_score():
    rng = np.random.default_rng(3)
    for defence in (ac.StructureOnly(), ac.BagOfNodes(), ac.GraphVotes(1, "none")):
        model, graphs = _fitted(defence)
        other = []
        for graph in graphs:
            order = torch.from_numpy(rng.permutation(graph.num_nodes))
            place = torch.argsort(order)
            edges = place[graph.edge_index][:, torch.from_numpy(rng.permutation(graph.num_edges))]
            other.append(Data(x=graph.x[order], edge_index=edges))
        assert torch.equal(_scores(model, graphs), _scores(model, other))


def test_trees_say_what_scikit_learn_says():
    rng = np.random.default_rng(5)
    x = rng.integers(-50, 1000, (200, 6))
    y = (x[:, 0] + x[:, 1] > 700).astype(int) + (x[:, 2] > 500)
    forest = ExtraTreesClassifier(20, random_state=0).fit(x.astype(np.float32), y)
    trees = Trees.of(forest, forest.classes_, 3)
    new = rng.integers(-60, 1010, (300, 6))
    shares = forest.predict_proba(new.astype(np.float32))
    assert np.abs(trees.shares(new) / SHARES - shares).max() <= 2 / SHARES


@pytest.mark.parametrize("size", [1, 5, 9])
def test_nodes_are_counted_by_type(size):
    types = marked(np.eye(4))
    x = np.eye(4)[np.arange(size) % 4]
    counted = of_nodes(types, x, Shape(1, np.zeros(size, dtype=np.int64), np.zeros((2, 0), dtype=np.int64)))[0]
    assert counted[0] == size
    assert sorted(counted[1:6].tolist()) == sorted([*np.bincount(np.arange(size) % 4, minlength=4), 0])


def _scores(model: GraphModel, graphs):
    xs = torch.cat([g.x for g in graphs])
    starts = np.cumsum([0, *(g.num_nodes for g in graphs[:-1])])
    edges = torch.cat([g.edge_index + int(start) for g, start in zip(graphs, starts, strict=True)], dim=1)
    batch = torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor([g.num_nodes for g in graphs]))
    return model(xs, edges, batch)


def _fitted(defence):
    from tests.unit.graph_votes.test_defence import two_kinds

    graphs = two_kinds()
    return ac.fit(None, graphs, defence), [graphs[k] for k in range(12)]
