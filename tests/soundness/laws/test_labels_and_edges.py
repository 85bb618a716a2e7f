"""Theorem 17 against brute force: every change of some labels together with every change of some neighbours.

There is no code for it yet: ``holds`` here is the test of the page, written out, and the laws are what code will have to
keep.
"""

import itertools

import numpy as np
import pytest

NO_LABEL = -1


def scores(weights, y, num_classes):
    """The score of each class: what labels add to it."""
    return np.array([weights[y == k].sum() for k in range(num_classes)])


def best(values):
    return int(np.flatnonzero(values == values.max())[0])


def costs(weights, y, a, k):
    return np.abs(weights) + weights * ((y == a).astype(int) - (y == k))


def radius_of(weights, y, num_classes, most):
    """Theorem 14: how many labels may change without changing the class that they elect."""
    value = scores(weights, y, num_classes)
    a = best(value)
    for number in range(most + 1):
        for k in range(num_classes):
            if k != a and np.sort(costs(weights, y, a, k))[::-1][:number].sum() > value[a] - value[k] - (k < a):
                return number - 1
    return most


class World:
    """One target with its own weights, and other nodes with theirs, some of which are neighbours."""

    def __init__(self, rng):
        self.num_classes = int(rng.integers(2, 4))
        num_labels, num_others = int(rng.integers(4, 9)), 4
        self.weights = rng.choice([-1, 1, 1, 1, 2], num_labels)
        self.theirs = rng.choice([-1, 1, 1, 1, 2], (num_others, num_labels))
        favourite = int(rng.integers(0, self.num_classes))  # most labels agree, else nothing is certified
        strays = rng.random(num_labels) < 0.2
        self.y = np.where(strays, rng.integers(NO_LABEL, self.num_classes, num_labels), favourite)
        self.each = int(rng.integers(0, 4))
        self.near = np.flatnonzero(rng.random(num_others) < 0.6)

    def label(self, y, near):
        total = scores(self.weights, y, self.num_classes)
        for other in near:
            total[best(scores(self.theirs[other], y, self.num_classes))] += self.each
        return best(total)

    def changed_labels(self, number):
        """Every list of labels that differs in at most so many places."""
        places = range(len(self.y))
        for chosen in itertools.combinations(places, min(number, len(self.y))):
            for values in itertools.product(range(NO_LABEL, self.num_classes), repeat=len(chosen)):
                y = self.y.copy()
                y[list(chosen)] = values
                yield y

    def changed_neighbours(self, number):
        """Every set of neighbours after at most so many came or went."""
        for size in range(number + 1):
            for moved in itertools.combinations(range(len(self.theirs)), size):
                yield sorted({*self.near.tolist()} ^ {*moved})

    def attacks(self, flips, edges):
        return itertools.product(self.changed_labels(flips), list(self.changed_neighbours(edges)))


def holds(world, flips, edges, mistake=""):
    """Theorem 17. A mistake leaves one term out."""
    y, q = world.y, world.each
    a = world.label(y, world.near)
    own = scores(world.weights, y, world.num_classes)
    cast = [best(scores(world.theirs[other], y, world.num_classes)) for other in world.near]
    steady = [radius_of(world.theirs[other], y, world.num_classes, flips) >= flips for other in world.near]
    for k in range(world.num_classes):
        if k == a:
            continue
        lead = own[a] - own[k] - (0 if mistake == "ties" else k < a)
        if mistake != "labels":
            lead -= np.sort(costs(world.weights, y, a, k))[::-1][:flips].sum()
        for class_of_neighbour, stays in zip(cast, steady, strict=True):
            if stays or mistake == "neighbours":
                lead += q * ((class_of_neighbour == a) - int(class_of_neighbour == k))
            else:
                lead -= q
        if lead < (edges - (mistake == "edges")) * q:
            return False
    return True


BUDGETS = [(0, 1), (1, 0), (1, 1), (2, 1), (1, 2)]


def look_for_a_broken_label(flips, edges, mistake="", rounds=500):
    rng = np.random.default_rng(flips * 10 + edges)
    num_certified = 0
    for _ in range(rounds):
        world = World(rng)
        if not holds(world, flips, edges, mistake):
            continue
        num_certified += 1
        label = world.label(world.y, world.near)
        assert all(world.label(y, near) == label for y, near in world.attacks(flips, edges))
    assert num_certified > 20


@pytest.mark.parametrize(("flips", "edges"), BUDGETS)
def test_no_changed_labels_and_neighbours_change_a_certified_label(flips, edges):
    look_for_a_broken_label(flips, edges)


@pytest.mark.parametrize("mistake", ["ties", "labels", "neighbours", "edges"])
def test_a_term_that_is_left_out_is_noticed(mistake):
    with pytest.raises(AssertionError):
        look_for_a_broken_label(1, 1, mistake)
