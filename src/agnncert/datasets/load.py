"""``load_dataset``: a name in, a graph with labels, ids and splits out."""

import os
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.datasets.catalog import DatasetInfo, dataset_info, default_root
from agnncert.datasets.graphset import GraphSet
from agnncert.datasets.splits import GRAPH_FRACTIONS, NODE_FRACTIONS, set_masks, stratified_split
from agnncert.errors import DatasetError

# Features that run over orders of magnitude (from -538 to 798 here) are compressed entry by entry. Anything fitted
# on the whole dataset would let one graph, or one attacker, change the features of all others.
_COMPRESSED = ("proteins",)


def load_dataset(name: str, root: str | os.PathLike[str] | None = None, seed: int = 0) -> Data | GraphSet:
    """Loads a dataset by name; ``agnncert.datasets.DATASETS`` lists them.

    Edges are undirected: each pair once in both directions, sorted, without self-loops. Features are as
    published (Cora-ML, Amazon-C and Coauthor-Physics: zeros and ones, as PyG reads them). They are not
    scaled: anything computed over all nodes, such as a column's mean, would let one attacked node change the
    input of every other.

    Args:
        name: For example ``"cora-ml"`` (node classification) or ``"proteins"`` (graph classification).
        root: Folder with the datasets, laid out as PyTorch Geometric does. Without it, a folder in the user's
            cache. Missing files are downloaded if the network allows.
        seed: Which split: stratified, 30/10/60 % of the nodes or 50/20/30 % of the graphs.

    Returns:
        A ``Data`` with ``train_mask``, ``val_mask``, ``test_mask``, ``node_id``, ``num_classes`` and
        ``name``, or a ``GraphSet``, whose graphs have a ``node_id`` each.

    Raises:
        DatasetError: The name is unknown, or files are missing and cannot be downloaded; says which and where
            to put them.

    Example:
        >>> data = load_dataset("digits-knn")
        >>> data.num_nodes, data.num_classes, int(data.train_mask.sum())
        (1797, 10, 539)
    """
    info = dataset_info(name)
    graphs = _graphs(info, default_root() if root is None else Path(root))
    if info.task == "node":
        data = graphs[0]
        data.name, data.num_classes = info.name, info.classes
        return set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed))
    y = torch.tensor([int(graph.y) for graph in graphs])
    train, val, test = stratified_split(y, GRAPH_FRACTIONS, seed)
    return GraphSet(graphs, train, val, test, num_classes=info.classes, name=info.name)


def _graphs(info: DatasetInfo, root: Path) -> list[Data]:
    if info.download:
        from agnncert.datasets.public import load_public

        graphs = [_prepared(graph) for graph in load_public(info, root)]
        for graph in graphs if info.name in _COMPRESSED else ():
            graph.x = torch.asinh(graph.x)
        return graphs
    from agnncert.datasets import digits

    return [digits.digits_knn()] if info.name == "digits-knn" else digits.digits_grid()


def _prepared(graph: Data) -> Data:
    """Keeps features, edges and labels: edges undirected and simple, nodes with an id."""
    if graph.x is None:
        raise DatasetError("a graph of this dataset has no node features.")
    edge_index = to_undirected(remove_self_loops(graph.edge_index)[0], num_nodes=graph.num_nodes)
    return Data(
        x=graph.x.float(), edge_index=edge_index, y=graph.y.long(), node_id=torch.arange(graph.num_nodes)
    )
