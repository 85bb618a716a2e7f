"""Small graphs whose pairs are to be classified: links of a graph of groups, and ratings."""

import numpy as np
import torch
from torch_geometric.data import Data


def links(num_nodes=60, groups=4, seed=0, pairs=240):
    """Nodes of one group are mostly joined. Half of the listed pairs are links, which the graph also has."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, num_nodes)
    u, v = np.triu_indices(num_nodes, 1)
    joined = rng.random(len(u)) < np.where(group[u] == group[v], 0.5, 0.04)
    listed = rng.permutation(np.flatnonzero(joined))[: pairs // 2]
    others = rng.permutation(np.flatnonzero(~joined))[: pairs // 2]
    chosen = rng.permutation(np.concatenate([listed, others]))
    edges = torch.from_numpy(np.stack([u[joined], v[joined]]))
    x = torch.from_numpy(np.eye(groups)[group] + 0.8 * rng.normal(size=(num_nodes, groups))).float()
    part = torch.from_numpy(rng.integers(0, 3, len(chosen)))
    return Data(
        x=x,
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
        edge_label_index=torch.from_numpy(np.stack([u[chosen], v[chosen]])),
        edge_label=torch.from_numpy(joined[chosen].astype(np.int64)),
        train_mask=part == 0,
        val_mask=part == 1,
        test_mask=part == 2,
        node_id=torch.arange(num_nodes) + 1000,
    )


def ratings(num_nodes=40, seed=0, pairs=150):
    """Directed ratings of -1 and 1: honest nodes rate bad ones negatively, others rate as they like."""
    rng = np.random.default_rng(seed)
    bad, honest = rng.random(num_nodes) < 0.4, rng.random(num_nodes) < 0.7
    u, v = np.nonzero(rng.random((num_nodes, num_nodes)) < 0.35)
    u, v = u[u != v], v[u != v]
    truth = np.where(honest[u], bad[v], rng.random(len(u)) < 0.5).astype(np.int64)
    chosen = rng.permutation(len(u))[:pairs]
    part = torch.from_numpy(rng.integers(0, 3, pairs))
    return Data(
        x=torch.ones((num_nodes, 1)),
        edge_index=torch.from_numpy(np.stack([u, v])),
        edge_attr=torch.from_numpy(1.0 - 2.0 * truth)[:, None].float(),
        edge_label_index=torch.from_numpy(np.stack([u, v])[:, chosen]),
        edge_label=torch.from_numpy(truth[chosen]),
        train_mask=part == 0,
        val_mask=part == 1,
        test_mask=part == 2,
        node_id=torch.arange(num_nodes),
    )
