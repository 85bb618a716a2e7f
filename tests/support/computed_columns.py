"""Graphs with columns of features that were computed from the edges."""

import networkx as nx
import torch
import torch_geometric.transforms as transforms
from torch_geometric.data import Data
from torch_geometric.utils import scatter, to_undirected

NODES, WIDTH = 400, 6


def graph(seed: int = 0) -> Data:
    """An undirected graph with features that are the nodes' own."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(0, NODES, (2, 900), generator=generator)
    closed = torch.stack([ends[0, :300], ends[1, 1:301]])  # some triangles
    edge_index = to_undirected(torch.cat([ends, closed], dim=1)[:, :], num_nodes=NODES)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    return Data(x=torch.randn(NODES, WIDTH, generator=generator), edge_index=edge_index)


DATA = graph()


def appended(column: torch.Tensor) -> Data:
    """The graph with further columns, shifted and scaled as people do."""
    column = column.float().reshape(NODES, -1)
    scaled = 3 * (column - column.mean(dim=0)) / column.std(dim=0).clamp(min=1e-9)
    return Data(x=torch.cat([DATA.x, scaled], dim=1), edge_index=DATA.edge_index)


def of_neighbours(reduce: str) -> Data:
    source, head = DATA.edge_index
    return appended(scatter(DATA.x[source, 2], head, 0, NODES, reduce=reduce))


def of_networkx(measure) -> Data:
    net = nx.Graph()
    net.add_nodes_from(range(NODES))
    net.add_edges_from(DATA.edge_index.t().tolist())
    values = measure(net)
    return appended(torch.tensor([values[node] for node in range(NODES)]))


def encoded(transform) -> Data:
    return transform(DATA.clone())


COMPUTED = {
    "means over neighbours": (lambda: of_neighbours("mean"), "is the mean of another column"),
    "sums over neighbours": (lambda: of_neighbours("sum"), "is the sum of another column"),
    "Laplacian eigenvectors": (
        lambda: encoded(transforms.AddLaplacianEigenvectorPE(4, attr_name=None, is_undirected=True)),
        "is an eigenvector of the normalised Laplacian",
    ),
    "returns of a random walk": (
        lambda: encoded(transforms.AddRandomWalkPE(3, attr_name=None)),
        "is the return of a random walk",
    ),
    "PageRank": (lambda: of_networkx(nx.pagerank), "is PageRank"),
    "PageRank with another damping": (lambda: of_networkx(lambda net: nx.pagerank(net, alpha=0.6)), "is PageRank"),
    "Katz centrality": (lambda: of_networkx(lambda net: nx.katz_centrality(net, alpha=0.02)), "is a centrality"),
    "clustering coefficients": (lambda: of_networkx(nx.clustering), "is the clustering coefficient"),
    "triangles": (lambda: of_networkx(nx.triangles), "is the number of triangles"),
}


def left_by_a_transform() -> Data:
    """Short walks, which no equation finds: the first column is constant, the second has few values."""
    data = encoded(transforms.AddRandomWalkPE(2))
    data.random_walk_pe = (data.random_walk_pe > data.random_walk_pe.mean(dim=0)).float()
    data.x = torch.cat([data.x, data.random_walk_pe], dim=1)
    return data
