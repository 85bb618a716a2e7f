"""What is counted on a graph: one pass over the nodes and one sum over the edges, in whole numbers."""

from typing import Any

import numpy as np
import torch

from agnncert.graphs.targets import Targets
from agnncert.stacked.model import StackedModel

SLACK = 1  # steps; networks run in float64, so that only a value at the edge of a step may be rounded differently


def stacked_counts(model: StackedModel, chosen: Targets, frozen: StackedModel | None = None) -> dict[str, Any]:
    """Returns the fields of ``StackedRecord`` for some targets, counted from the graph and the model.

    Args:
        model: The model.
        chosen: The targets and their graph.
        frozen: ``model.frozen()``, if many graphs are counted with a model that stays as it is.

    Raises:
        ModelContractError: A number that the model computes is not finite, or too large to be counted.
    """
    graph, rows = chosen.graph, torch.from_numpy(chosen.positions)
    values = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
    counted, pairs = (frozen or model).counted(graph.x, graph.edge_index, values, rows)
    second = model.steps_of_second + SLACK if model.defence.levels == 2 else 0
    pseudo, pseudo_votes = model.pseudo_counts
    joined = np.bincount(pairs.neighbour.numpy(), minlength=1)
    return {
        **{name: part.numpy() for name, part in counted.items()},
        "indptr": pairs.indptr.numpy(),
        "targets_per_node": np.sort(joined[joined > 0])[::-1].astype(np.int32),
        "gated": model.defence.gated or model.defence.combine == "mean",
        "by_edge": bool(model.edge_channels),
        "pseudo": pseudo,
        "pseudo_votes": pseudo_votes,
        "second": second,
        "slack": SLACK,
        "trusted": -1 if model.defence.trusted is None else model.defence.trusted,
        "ids": chosen.id_kind,
        "edge_blind": model.defence.edge_blind,
    }
