"""A walk goes as far as messages go."""

import numpy as np

from agnncert_live.reach import Reach
from agnncert_live.union import Union


def test_a_path_is_walked_as_far_as_messages_go():
    count = 8
    ends = np.stack([np.arange(count - 1), np.arange(1, count)])  # 0 -> 1 -> … -> 7
    union = Union(np.zeros(count), np.arange(count), ends, {}, num_nodes=count)
    reach = Reach(union, 2)
    assert sorted(reach.downstream(np.array([2])).tolist()) == [2, 3, 4]
    needed = reach.upstream(np.array([5]))
    assert sorted(needed.inner.tolist()) == [3, 4, 5]
    assert needed.border.tolist() == [2]  # for its arc, because 3 may be divided by its degree
    everything = Reach(union, None)
    assert sorted(everything.downstream(np.array([2])).tolist()) == list(range(count))
    assert len(everything.upstream(np.array([5, 5])).inner) == count
