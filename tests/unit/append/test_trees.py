"""Trees as tables: their scores, the leaf test, and what is refused."""

import itertools

import numpy as np
import pytest

from agnncert.append.record import AppendRecord
from agnncert.append.tables import TreeTables
from agnncert.append.training import TreeSettings, train_trees
from agnncert.append.trees import NO_TREES, Trees
from agnncert.errors import CertificateError
from agnncert.verifier.recount_append import _wrong_leaves
from tests.support.append_ledgers import program_of

COLUMNS, VALUES = 3, 4


def random_tree(random, depth=3):
    """A tree over three columns with values from 0 to 3, as tables."""
    nodes = []

    def grow(left):
        place = len(nodes)
        nodes.append(None)
        if left == 0 or random.random() < 0.2:
            nodes[place] = (-1, 0, 0, 0, int(random.integers(-5, 6)))
            return place
        column, limit = int(random.integers(COLUMNS)), int(random.integers(0, VALUES - 1))
        below, above = grow(left - 1), grow(left - 1)
        nodes[place] = (column, limit, below, above, 0)
        return place

    grow(depth)
    return Trees(np.array([0, len(nodes)]), *(np.array(part, dtype=np.int64) for part in zip(*nodes, strict=True)))


def falls(tree, rises):
    """Whether some row is worth more than one above it, by trying all pairs of rows."""
    rows = np.array(list(itertools.product(range(-1, VALUES + 1), repeat=COLUMNS)), dtype=np.int64)
    score = tree.score(rows)
    above = (rows[:, None] <= rows[None]).all(axis=2)
    above &= (rows[:, None] == rows[None])[:, :, ~np.array(rises)].all(axis=2)
    return bool((above & (score[:, None] > score[None])).any())


def test_the_leaf_test_finds_exactly_the_trees_that_can_fall():
    random = np.random.default_rng(1)
    seen = set()
    for _ in range(300):
        tree = random_tree(random)
        rises = (random.random(COLUMNS) < 0.7).tolist()
        truth = falls(tree, rises)
        assert (tree.broken_pairs(rises) > 0) == truth
        assert (_wrong_leaves(tree, rises) > 0) == truth
        seen.add(truth)
    assert seen == {True, False}


def test_trained_trees_pass_the_leaf_test_and_unconstrained_ones_do_not():
    random = np.random.default_rng(2)
    table = random.integers(0, 20, (400, 5))
    positive = (table[:, 0] > 8) ^ (random.random(400) < 0.2) ^ ((table[:, 1] > 5) & (table[:, 1] < 9))
    settings = TreeSettings(trees=30)
    monotone = train_trees(table, positive, [True] * 5, settings, seed=0)
    free = train_trees(table, positive, None, settings, seed=0)
    assert monotone.broken_pairs([True] * 5) == 0
    assert free.broken_pairs([True] * 5) > 0
    assert free.broken_pairs([False] * 5) == 0  # all columns are fixed


def test_tables_say_what_scikit_learn_says():
    from sklearn.ensemble import HistGradientBoostingClassifier

    random = np.random.default_rng(3)
    table = random.integers(0, 50, (300, 4))
    positive = table[:, 0] + random.integers(0, 30, 300) > 40
    settings = TreeSettings(trees=20, leaves=6, share=1.0)
    model = HistGradientBoostingClassifier(
        max_iter=20,
        learning_rate=settings.rate,
        max_leaf_nodes=6,
        min_samples_leaf=settings.smallest_leaf,
        l2_regularization=settings.l2,
        max_features=1.0,
        early_stopping=False,
        random_state=0,
        monotonic_cst=[1, 1, 1, 1],
    ).fit(table.astype(float), positive)
    trees = train_trees(table, positive, [True] * 4, settings, seed=0)
    other = random.integers(0, 60, (200, 4))
    expected = model.decision_function(other.astype(float)) * 2**20
    assert np.abs(trees.score(other) - expected).max() <= trees.num_trees


def test_no_row_between_two_bounds_is_below_the_least_score_between_them():
    random = np.random.default_rng(4)
    exact = 0
    for _ in range(100):
        tree = random_tree(random)
        rises = [tree.broken_pairs([j == k for k in range(COLUMNS)]) == 0 for j in range(COLUMNS)]
        rises = rises if tree.broken_pairs(rises) == 0 else [False] * COLUMNS
        low = random.integers(0, VALUES, (1, COLUMNS))
        high = np.minimum(low + random.integers(0, 3, (1, COLUMNS)), VALUES)
        rows = np.array(list(itertools.product(*(range(a, b + 1) for a, b in zip(low[0], high[0], strict=True)))))
        least, truth = tree.least_score(low, high, rises)[0], tree.score(rows).min()
        assert least <= truth
        exact += least == truth
    assert exact > 70  # it is larger only where a tree asks about one column several times


def test_joined_ensembles_add_up():
    random = np.random.default_rng(5)
    ensembles = [random_tree(random) for _ in range(4)]
    rows = random.integers(0, VALUES, (50, COLUMNS))
    joined = Trees.joined(ensembles)
    assert joined.num_trees == 4
    assert np.array_equal(joined.score(rows), sum(tree.score(rows) for tree in ensembles))
    assert joined.above_zero().worth.min() >= 0


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("left", 0, 0, "before its parent"),
        ("right", 0, 9, "before its parent"),
        ("right", 0, 1, "below none or several"),
        ("start", 0, 1, "do not follow"),
        ("column", 1, -2, "at least -1"),
        ("worth", 1, 2**41, "at most"),
    ],
)
def test_tables_that_are_no_trees_are_refused(name, place, value, message):
    parts = {
        "start": [0, 3],
        "column": [0, -1, -1],
        "threshold": [1, 0, 0],
        "left": [1, 0, 0],
        "right": [2, 0, 0],
        "worth": [0, 1, 2],
    }
    TreeTables(**{key: np.array(numbers) for key, numbers in parts.items()})
    parts[name][place] = value
    with pytest.raises(CertificateError, match=message):
        TreeTables(**{key: np.array(numbers) for key, numbers in parts.items()})


def test_a_record_refuses_trees_that_read_columns_which_are_not_there():
    table = np.zeros((2, 1), dtype=np.int64)
    none = np.zeros((0, 2, 1), dtype=np.int64)
    tree = Trees(
        np.array([0, 3]), *(np.array(part) for part in ([1, -1, -1], [1, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 2]))
    )
    with pytest.raises(CertificateError, match="column that is not there"):
        AppendRecord(table, none, tree, NO_TREES, program_of(("sum", "in", ("number", 1))), "fresh", 0)
