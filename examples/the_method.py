"""AGNNCert (Li and Wang, USENIX Security 2025) for node classification, in plain PyTorch Geometric.

1. Divide the edges into T subgraphs by a hash of node ids, so that a small change of the graph affects few subgraphs.
2. Vote: the model classifies every node in every subgraph. Each node has T votes.
3. Count the votes of each node per class. The class with most votes is the label of the node.
4. Prove a radius: the label cannot change while at most `radius` votes of the node change.

At most one vote of a node changes per added or deleted edge. In the node-centric division this also holds per other
node that is added, deleted or given new features, with any number of edges. Changes of the node's own features are not
covered. `agnncert.certify` gives the same labels and radii, checks the model first, and counts a vote that rounding
could change against the label.
"""

import hashlib

import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.nn import GCN


def divide(edge_index: Tensor, ids: list[int], num_groups: int, division: str) -> list[Tensor]:
    """Edges of each subgraph. The group of an edge depends on the ids of its ends, not on the rest of the graph."""

    def group(tag: bytes, *ids: int) -> int:
        keys = sorted(i % 2**64 for i in ids)  # both directions of a pair of nodes share a group
        digest = hashlib.md5(tag + b"".join(key.to_bytes(8, "little") for key in keys)).digest()
        return int.from_bytes(digest[:8], "little") % num_groups

    edges = [(u, v) for u, v in edge_index.t().tolist() if u != v]  # self-loops are dropped
    if division == "node-centric":  # the group of the node that sends the message
        groups = [group(b"agn-node", ids[u]) for u, v in edges]
    else:  # edge-centric: the group of the pair
        groups = [group(b"agn-edge", ids[u], ids[v]) for u, v in edges]
    members = [[edge for edge, g in zip(edges, groups, strict=True) if g == index] for index in range(num_groups)]
    return [torch.tensor(member, dtype=torch.long).view(-1, 2).t() for member in members]


@torch.no_grad()
def vote(model: torch.nn.Module, x: Tensor, subgraphs: list[Tensor]) -> Tensor:
    """Class of every node in every subgraph, shape [num_nodes, T]. Subgraphs without edges vote too."""
    return torch.stack([model(x, edge_index).argmax(dim=1) for edge_index in subgraphs], dim=1)


def count(votes: Tensor, num_classes: int) -> Tensor:
    """Number of votes of each node per class, shape [num_nodes, num_classes]."""
    return one_hot(votes, num_classes).sum(dim=1)


def prove(counts: list[int]) -> tuple[int, int]:
    """Label of a node with these votes per class, and its certified radius."""
    label = counts.index(max(counts))  # the smaller class index wins a tie, so it needs one vote less to win
    margins = [counts[label] - votes - (k < label) for k, votes in enumerate(counts) if k != label]
    return label, min(margins) // 2  # a changed vote takes one vote from the label and gives one to another class


def train(model: torch.nn.Module, x: Tensor, y: Tensor, known: Tensor, subgraphs: list[Tensor]) -> None:
    """Train on one subgraph after the other."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for edge_index in 10 * subgraphs:
        optimizer.zero_grad()
        cross_entropy(model(x, edge_index)[known], y[known]).backward()
        optimizer.step()
    model.eval()


def main() -> None:
    """Classify noisy images of handwritten digits. Each image receives messages from the 6 most similar images."""
    torch.manual_seed(0)
    x, y = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    edge_index = torch.from_numpy(kneighbors_graph(x, n_neighbors=6).toarray().T).nonzero().t()
    x, known = x.float() / 16 + 0.5 * torch.randn(x.shape), torch.rand(len(y)) < 0.2
    for division in ("node-centric", "edge-centric"):
        subgraphs = divide(edge_index, list(range(len(y))), 15, division)
        model = GCN(in_channels=64, hidden_channels=64, num_layers=2, out_channels=10)
        train(model, x, y, known, subgraphs)
        counts = count(vote(model, x, subgraphs), num_classes=10).tolist()
        print(f"\n{division}, T = {len(subgraphs)}\nnode  digit  label  radius  votes per class")
        for node in (~known).nonzero().flatten().tolist()[:8]:
            label, radius = prove(counts[node])
            print(f"{node:4}  {y[node]:5}  {label:5}  {radius:6}  {counts[node]}")


if __name__ == "__main__":
    main()
