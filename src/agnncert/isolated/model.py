"""``IsolatedEnsemble``: models of which each was trained on its own part of the training graphs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor, nn

from agnncert.addons import config_of
from agnncert.as_built import OwnModel

if TYPE_CHECKING:
    from agnncert.isolated.defence import IsolatedModels


class IsolatedEnsemble(OwnModel):
    """The models of all parts. A part without a training graph, or on which training diverged, has one that abstains.

    Attributes:
        models: One model for each part.
        is_empty: Whether the model of each part abstains, because training had no graph or diverged, shape
            ``[num_models]``.
        defence: The defence that it was trained for.
        config: What :func:`agnncert.load_model` needs to build it again; ``None`` if the models are not built in.
    """

    anybodys: ClassVar[frozenset[str]] = frozenset({"models"})
    is_empty: Tensor
    training_record: dict[str, Any]

    def __init__(self, models: Sequence[nn.Module], is_empty: Tensor, defence: "IsolatedModels") -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.register_buffer("is_empty", is_empty)
        self.defence = defence
        part = config_of(models[0])
        self.config: dict[str, Any] | None = None
        if part:
            self.config = {"name": "isolated-models", "part": dict(part), "defence": defence.to_json()}

    def anew(self) -> Self:
        """Returns an ensemble of the same models, of which none is said to abstain."""
        return type(self)(list(self.models), torch.zeros(len(self.models), dtype=torch.bool), self.defence)

    def forward(self, x: Tensor, edge_index: Tensor, *rest: Any, **values: Any) -> Tensor:
        """Returns how many models vote for each class, shape ``[num_graphs, num_classes]``."""
        counts: Tensor | None = None
        for model, is_empty in zip(self.models, self.is_empty.tolist(), strict=True):
            logits = model(x, edge_index, *rest, **values)
            if counts is None:
                counts = torch.zeros_like(logits)
            if not is_empty:
                counts[torch.arange(len(logits)), logits.argmax(dim=1)] += 1
        assert counts is not None  # there is at least one model
        return counts
