"""Rows that grow and shrink hold what lists would hold, in memory that does not grow."""

import random

import numpy as np

from agnncert_live.rows import Rows


def test_rows_hold_what_lists_hold():
    rng = random.Random(0)
    lists = [[rng.randrange(100) for _ in range(rng.randrange(4))] for _ in range(6)]
    rows = Rows(np.array([len(one) for one in lists]), np.array([value for one in lists for value in one]))
    for step in range(3000):
        row = rng.randrange(len(lists))
        if step % 500 == 499:
            lists.append([])
            rows.grow(len(lists))
        elif lists[row] and rng.random() < 0.5:
            value = rng.choice(lists[row])
            lists[row].remove(value)
            rows.remove(row, value)
        else:
            lists[row].append(rng.randrange(100))
            rows.append(row, lists[row][-1])
        if step % 50 == 0:
            asked = np.array(rng.sample(range(len(lists)), 3))
            values, lengths = rows.gather(asked)
            assert lengths.tolist() == [len(lists[k]) for k in asked]
            assert sorted(values.tolist()) == sorted(v for k in asked for v in lists[k])
    assert [sorted(rows[k].tolist()) for k in range(len(lists))] == [sorted(one) for one in lists]


def test_room_is_used_again():
    rows = Rows(np.zeros(50, dtype=np.int64), np.zeros(0, dtype=np.int64))
    largest = []
    for _ in range(4):
        for row in range(50):
            for value in range(20):
                rows.append(row, value)
        for row in range(50):
            for value in range(20):
                rows.remove(row, value)
        largest.append(len(rows._pool))
    assert largest[0] == largest[-1] <= 4 * 50 * 20
