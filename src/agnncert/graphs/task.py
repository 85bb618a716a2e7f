"""``infer_task``: whether nodes or graphs are classified, which follows from the data."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from agnncert.errors import GraphError
from agnncert.graphs.graph import Task


def infer_task(data: object) -> Task:
    """Returns ``"node"`` for a ``Data``, and ``"graph"`` for a list or dataset of ``Data``.

    Raises:
        GraphError: The data is something else; the message says what to do.
    """
    if isinstance(data, Data) and not isinstance(data, Batch):
        return "node"
    hint = _hint(data)
    is_listed = isinstance(data, Sequence) or (hasattr(data, "__len__") and hasattr(data, "__getitem__"))
    if hint is None and is_listed:
        _refuse_nodes(data)
        return "graph"
    advice = "" if hint is None else f" {hint}"
    raise GraphError(
        f"cannot tell the task from a {type(data).__name__}: pass a torch_geometric Data (node classification) or a "
        f"list of Data (graph classification).{advice}"
    )


def task_of_targets(data: Any) -> Task:
    """Returns what the targets of some data are: pairs of nodes if it lists some (``edge_label_index``) and has no
    classes of nodes, else what its form says, as in :func:`infer_task`.

    Raises:
        GraphError: The data is no graph or list of graphs.
    """
    lists_pairs = getattr(data, "edge_label_index", None) is not None and getattr(data, "y", None) is None
    return "pair" if lists_pairs else infer_task(data)


def _is_model_or_division(data: object) -> bool:
    return isinstance(data, torch.nn.Module) or hasattr(data, "num_groups")


def _is_networkx(data: object) -> bool:
    return type(data).__module__.partition(".")[0] == "networkx"


def _is_loader(data: object) -> bool:
    return hasattr(data, "dataset") and hasattr(data, "batch_size")


_HINTS: tuple[tuple[Callable[[object], bool], str], ...] = (
    (
        lambda data: isinstance(data, Batch),
        "A batch is several graphs at once: batch.to_data_list() is such a list. To classify nodes of all of them "
        "as one graph, make a Data of its tensors, without batch and ptr.",
    ),
    (
        lambda data: isinstance(data, HeteroData),
        "ac.from_hetero(data) makes one graph of it, with the relation of each edge in edge_attr.",
    ),
    (lambda data: isinstance(data, Tensor), "Data(x=…, edge_index=…) makes one of tensors."),
    (_is_model_or_division, "The order is model, data, defence."),
    (_is_networkx, "torch_geometric.utils.from_networkx makes one of it."),
    (_is_loader, "Of a loader, pass the dataset: loader.dataset."),
)


def _hint(data: object) -> str | None:
    """Returns a hint for objects that resemble data but are not supported; ``None`` for all others."""
    if isinstance(data, str):
        return f'Load it first: load_dataset("{data}").'
    for is_kind, hint in _HINTS:
        if is_kind(data):
            return hint
    return None


def _refuse_nodes(graphs: Any) -> None:
    """Raises GraphError for a dataset such as Cora: a list of one graph whose nodes are to be classified."""
    if len(graphs) != 1 or not isinstance(graphs[0], Data):
        return
    graph: Any = graphs[0]
    masks = [name for name in ("train_mask", "val_mask", "test_mask") if getattr(graph, name, None) is not None]
    y = getattr(graph, "y", None)
    has_node_labels = isinstance(y, Tensor) and y.dim() > 0 and y.size(0) == graph.num_nodes > 1
    if masks or has_node_labels:
        what = masks[0] if masks else "a label for each node"
        raise GraphError(
            f"this {type(graphs).__name__} holds one graph, which has {what}: to classify its nodes, pass the graph "
            "itself, dataset[0]. (A list means that graphs are classified, each with one label.)"
        )


def most_columns(graphs: Sequence[Any], name: str) -> int | None:
    """Returns how many columns a matrix, such as ``x``, has in most graphs; ``None`` if no graph has it.

    So no single graph, the first one included, decides how large a model is.
    """
    matrices = [getattr(graph, name, None) for graph in graphs]
    widths = Counter(int(each.size(1)) for each in matrices if isinstance(each, Tensor) and each.dim() == 2)
    return widths.most_common(1)[0][0] if widths else None
