"""How a graph is split: by the lesser id of the two ends of each edge."""

from dataclasses import dataclass

import numpy as np
import torch

from agnncert.divisions.base import Division, check_settings
from agnncert.divisions.changes import touched_nodes, touched_pairs
from agnncert.divisions.named import NamedDivision
from agnncert.errors import NotCovered
from agnncert.graphs import hashing
from agnncert.graphs.node_ids import node_keys


@dataclass(frozen=True)
class LesserEnd(Division):
    num_groups: int
    hash: str = "md5"

    def __post_init__(self):
        check_settings(self, "num_groups")

    def __str__(self):
        return f"lesser-end(T={self.num_groups}, hash={self.hash}, key=u64le)"

    def theorem(self, task):
        return f"lesser-end/{task}"

    def groups(self, graph):
        source, head = node_keys(graph)[graph.edge_index].numpy().view(np.uint64)
        return torch.from_numpy(hashing.node_groups(np.minimum(source, head), self.num_groups, self.hash))

    def subgraph(self, graph, groups, index):
        return graph.with_edges(groups == index)

    def votes_moved(self, change, graph, target):
        if touched_nodes(change):
            raise NotCovered("the change touches nodes, and every subgraph has all of them.")
        lesser = np.array(touched_pairs(change), dtype=np.int64).reshape(-1, 2).view(np.uint64).min(axis=1)
        return len(set(hashing.node_groups(lesser, self.num_groups, self.hash).tolist()))


LESSER_END = NamedDivision(
    "lesser-end", "lesser end", "tests.support.lesser_end.division:LesserEnd", tasks=("node",), usual={"node": 10}
)
