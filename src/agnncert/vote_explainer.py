"""``VoteExplainer``: explanations of a defence for ``torch_geometric.explain.Explainer``."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.config import MaskType, ModelMode, ModelTaskLevel

from agnncert.certifier import explain
from agnncert.defence import as_defence
from agnncert.errors import SettingsError


class VoteExplainer(ExplainerAlgorithm):  # type: ignore[misc]
    """Explains by the votes of a defence which edges decided the label of a node. Exact, and without any training.

    ``Explainer(model, algorithm=VoteExplainer(defence), explanation_type="model", edge_mask_type="object",
    model_config=dict(mode="multiclass_classification", task_level="node", return_type="raw"))`` is called with the
    index of one node. The ``edge_mask`` has, for each edge of that node, by how many votes the vote of this edge helps
    the label against the strongest rival. It is negative for votes against the label, and 0 for all other edges. The
    label is the one that the defence certifies, which need not be that of the model on the whole graph. With
    ``explanation_type="phenomenon"`` the class is ``target[index]``.

    Args:
        defence: A division, stacked votes, or any other defence that can explain.
        node_id: Ids of the nodes, on which groups of divisions depend. Defaults to their rows.
    """

    def __init__(self, defence: Any, node_id: Any = None) -> None:
        super().__init__()
        self.defence = as_defence(defence)
        self.node_id = node_id

    def forward(
        self,
        model: torch.nn.Module,
        x: Tensor,
        edge_index: Tensor,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """Returns the explanation of one node; ``Explainer`` calls this.

        Raises:
            SettingsError: ``index`` is not one node.
        """
        rows = [] if index is None else torch.as_tensor(index).view(-1).tolist()
        if len(rows) != 1:
            raise SettingsError(f"index={index!r:.60}: votes explain one decision at a time; pass the row of one node.")
        row = int(rows[0])
        data = Data(x=x, edge_index=edge_index, **kwargs)
        named: Any = row
        if self.node_id is not None:
            data.node_id = self.node_id
            named = self.node_id[row]
        explained = explain(model, data, self.defence, named)
        label = None
        if self.explainer_config.explanation_type.value == "phenomenon":
            label = int(target[row])
        explanation: Explanation = explained.to_pyg(data, label)
        return explanation

    def supports(self) -> bool:
        """Whether the settings of the ``Explainer`` are for classes of nodes, with a mask of edges alone."""
        config, model_config = self.explainer_config, self.model_config
        return (
            model_config.task_level == ModelTaskLevel.node
            and model_config.mode in (ModelMode.multiclass_classification, ModelMode.binary_classification)
            and config.node_mask_type is None
            and config.edge_mask_type == MaskType.object
        )
