"""``Fallback``: one model for nodes that have a neighbour, another one for nodes that have none.

Most subgraphs of a division show a node without edges, and prior votes are for its prediction there. A network that has
to answer with and without edges gives up something of either. Here each model does what it was made for: the vote
starts from the answer of the graph-free one, and neighbours add to it.
"""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

NAME = "fallback"


class Fallback(nn.Module):
    """Logits of one model for nodes that a message reaches, and of another for all others.

    Whether a message reaches a node is decided by its incoming edges alone (self-loops do not count), so the module is
    local if the first model is. The second is never shown an edge.

    Args:
        model: A node classifier, called as ``model(x, edge_index)``, with the edge values that its ``forward`` names.
        without_edges: Another one with the same classes, an MLP say.

    Example:
        >>> import agnncert as ac
        >>> data = ac.load_dataset("digits-knn")
        >>> model = Fallback(ac.build_model("gcn", data), ac.build_model("mlp", data))
        >>> model(data.x, data.edge_index).shape
        torch.Size([1797, 10])
    """

    def __init__(self, model: nn.Module, without_edges: nn.Module) -> None:
        super().__init__()
        self.model, self.without_edges = model, without_edges
        named = inspect.signature(model.forward).parameters
        self.takes = tuple(name for name in ("edge_weight", "edge_attr") if name in named)
        configs = [getattr(part, "config", None) for part in (model, without_edges)]
        if all(configs):
            self.config: dict[str, Any] = {"name": NAME, "model": configs[0], "without_edges": configs[1]}

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, edge_attr: Tensor | None = None
    ) -> Tensor:
        """Logits of every node, shape ``[num_nodes, num_classes]``."""
        given = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        values = {name: given[name] for name in self.takes if given[name] is not None}
        source, head = edge_index
        reached = torch.zeros(x.size(0), dtype=torch.bool, device=edge_index.device)
        reached[head[source != head]] = True
        alone: Tensor = self.without_edges(x, edge_index[:, :0])
        return torch.where(reached[:, None], self.model(x, edge_index, **values), alone)
