"""The inductive protocol: a model is trained without having seen the test nodes or their edges."""

from torch_geometric.data import Data

from agnncert.errors import DatasetError


def inductive_view(data: Data) -> Data:
    """The graph without its test nodes: what may be seen while training inductively.

    Certified accuracy measured transductively (the test nodes are in the training graph, without their
    labels) can be memorised; measured inductively it cannot. Train on this view, certify on ``data``.

    Args:
        data: A graph for node classification with ``train_mask`` and ``val_mask``.

    Returns:
        The subgraph of training and validation nodes. Nodes keep their ``node_id``, hence their groups.
    """
    if not isinstance(data, Data):
        raise DatasetError(
            "an inductive view is for node classification: graphs of a graph task are apart already."
        )
    missing = [name for name in ("train_mask", "val_mask") if name not in data]
    if missing:
        raise DatasetError(
            f"the data has no {' and no '.join(missing)}: without a split there is no training part."
        )
    seen = data.train_mask | data.val_mask
    view = data.subgraph(seen)
    if isinstance(getattr(data, "node_id", None), list):  # PyG selects from tensors only
        view.node_id = [name for name, keep in zip(data.node_id, seen.tolist(), strict=True) if keep]
    return view
