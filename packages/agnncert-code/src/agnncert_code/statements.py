"""``StatementVotes``: a model that scores single statements.

The score of a statement is a weighted sum of its pieces (``agnncert_code.pieces``: tokens and parts of names). A
statement votes for class 1 if its score is above one limit, for class 0 if it is below another, and for a third class
otherwise, which cannot win because its prior is far below the others. With a thousand labelled functions, larger models
overfit (docs/code.md). ``fit_statements`` fits it.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from agnncert.errors import SettingsError
from agnncert.models.io import load_description, load_model
from agnncert_code.features import PIECES

NEVER = -(2**30)  # prior of the class that stands for silence
NAME = "statements"


class StatementVotes(nn.Module):
    """Scores of statements from the pieces of their texts, and two limits.

    The score of a statement is ``sum(scale * weight) / sqrt(sum(scale ** 2)) + bias`` over its pieces. Of several
    statements it is the mean.

    Attributes:
        config: What is needed to build it anew.
        weight: Weight of each piece.
        scale: How much a piece counts: the more, the fewer functions have it. It is 0 for pieces that were seen too
            rarely.
        bias: Score of a statement without a known piece.
        limits: Below the first a statement votes for class 0, above the second for class 1.
    """

    scale: Tensor
    limits: Tensor

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "name": NAME,
            "task": "graph",
            "in_channels": in_channels,
            "out_channels": 3,
            "pieces": PIECES,
        }
        self.weight = nn.Parameter(torch.zeros(PIECES + 1))
        self.bias = nn.Parameter(torch.zeros(()))
        self.register_buffer("scale", torch.zeros(PIECES + 1))
        self.register_buffer("limits", torch.zeros(2))

    def scores(self, x: Tensor) -> Tensor:
        """Returns the score of every statement, shape ``[num_statements]``."""
        # Whatever an attacker, or an audit, puts into a row is some piece or none.
        piece = x.nan_to_num(0.0, 0.0, 0.0).round().clamp(0, PIECES).long()
        scale = self.scale[piece]
        length = scale.square().sum(dim=1).sqrt()
        return (scale * self.weight[piece]).sum(dim=1) / torch.where(length > 0, length, 1.0) + self.bias

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Returns the logits of every graph for class 0, class 1 and silence, shape ``[num_graphs, 3]``."""
        scores = self.scores(x)
        total = global_add_pool(torch.stack([scores, torch.ones_like(scores)], dim=1), batch)
        mean = total[:, 0] / total[:, 1].clamp(min=1.0)
        low, high = self.limits
        return torch.stack([low - mean, mean - high, torch.zeros_like(mean)], dim=1)


def load_function_model(path: str | Path) -> nn.Module:
    """Loads a saved model of functions: a ``StatementVotes``, or one of agnncert's own models.

    Raises:
        SettingsError: The description beside the weights fits no such model.
    """
    config = load_description(path)["model"] or {}
    if config.get("name") != NAME:
        return load_model(path)
    model = StatementVotes(config.get("in_channels", 0))
    if dict(config) != model.config:
        raise SettingsError(f"no model of statements is described by {dict(config)}: expected {model.config}.")
    return load_model(path, model)
