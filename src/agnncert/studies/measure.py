"""What a model does without a defence: the yardsticks beside a certificate."""

from typing import Any

import numpy as np
import torch

from agnncert.graphs.graph import canonical, canonical_set, infer_task
from agnncert.graphs.targets import target_rows
from agnncert.voting.call import bind


@torch.no_grad()
def accuracy_on_whole_graphs(model: Any, data: Any, targets: Any) -> float | None:
    """Share of the targets that the model gets right on the undivided graph; None without labels."""
    task = infer_task(data)
    rows = target_rows(targets, len(data) if task == "graph" else int(data.num_nodes))
    truth = labels_of(data)
    if truth is None or not len(rows) or (truth[rows] < 0).any():
        return None
    graph = canonical_set([data[int(k)] for k in rows]) if task == "graph" else canonical(data)
    call = bind(model.eval(), graph, task)
    logits = call(graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph), graph.get("batch"))
    label = logits.argmax(1).numpy()
    return float(((label if task == "graph" else label[rows]) == truth[rows]).mean())


def accuracy_of_majority(data: Any, targets: Any) -> float | None:
    """Share of the targets in the class that is most frequent in the training part; None without labels."""
    truth, task = labels_of(data), infer_task(data)
    known = getattr(data, "train" if task == "graph" else "train_mask", None)
    if truth is None or known is None:
        return None
    train = truth[np.asarray(known)]
    rows = target_rows(targets, len(truth))
    if not len(rows) or not len(train[train >= 0]) or (truth[rows] < 0).any():
        return None
    return float((truth[rows] == np.bincount(train[train >= 0]).argmax()).mean())


def labels_of(data: Any) -> Any:
    """The class of every row of the data, −1 where it is unknown; None if none is known."""
    y = getattr(data, "y", None)
    if y is None and infer_task(data) == "graph":
        found = [getattr(graph, "y", None) for graph in data]
        y = np.array([-1 if one is None else int(one) for one in found])
    labels = None if y is None else np.asarray(y)
    return None if labels is None or (labels < 0).all() else labels
