"""``HeteroModel``: a model of several kinds of nodes and edges, called on the one graph that ``from_hetero`` makes."""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from agnncert.datasets.hetero_checks import require_usable
from agnncert.datasets.relations import relations_with_edges, target_kind, values_of_relation
from agnncert.errors import ModelContractError

Relation = tuple[str, str, str]


@dataclass(frozen=True)
class _Columns:
    """Where the columns of ``from_hetero`` come from.

    Attributes:
        kinds: Kinds of nodes. With several of them, the first columns of ``x`` say which one a node is.
        features: Columns of ``x`` that hold the features of each kind.
        relations: Relations, in the order of the first columns of ``edge_attr``.
        values: Columns of ``edge_attr`` that hold the values of each relation.
    """

    kinds: list[str]
    features: dict[str, slice]
    relations: list[Relation]
    values: dict[Relation, slice]

    @classmethod
    def of(cls, data: HeteroData) -> "_Columns":
        kinds = list(data.node_types)
        first = len(kinds) if len(kinds) > 1 else 0
        features: dict[str, slice] = {}
        for kind in kinds:
            features[kind] = slice(first, first + data[kind].x.size(1))
            first = features[kind].stop
        relations = relations_with_edges(data)
        first = len(relations)
        values: dict[Relation, slice] = {}
        for relation in relations:
            values[relation] = slice(first, first + values_of_relation(data[relation]).size(1))
            first = values[relation].stop
        return cls(kinds, features, relations, values)


class HeteroModel(nn.Module):
    """Calls a module of several kinds of nodes, such as one of ``to_hetero`` or ``HeteroConv``, on one graph.

    ``from_hetero(data)`` makes one graph of a ``HeteroData``, which can be divided and certified. This wrapper divides
    it into kinds and relations again and calls ``module(x_dict, edge_index_dict)``, with ``edge_attr_dict`` as well if
    ``forward`` takes it. Certify the wrapper: ``ac.certify(ac.HeteroModel(module, data), ac.from_hetero(data), …)``.

    A node is of the kind whose column of ``x`` is the largest, so a node that an attacker makes up is of exactly one
    kind. An edge of a relation counts only between nodes of the kinds that the relation joins.

    Args:
        module: Returns the logits of the target kind, or a dictionary with them.
        data: The graph from whose kinds and relations the layout is taken.
        target: The kind of nodes to classify. Defaults to the only one with labels ``y``.

    Raises:
        GraphError: It cannot be told which nodes to classify.
    """

    def __init__(self, module: nn.Module, data: HeteroData, target: str | None = None) -> None:
        super().__init__()
        require_usable(data)
        self.module = module
        self.target = target_kind(data, target)
        self.columns = _Columns.of(data)
        self.takes_values = "edge_attr_dict" in inspect.signature(module.forward).parameters

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Returns the logits of every node; zeros for nodes of other kinds than the target."""
        kind = self._kind_of_node(x)
        rows = {name: (kind == number).nonzero().view(-1) for number, name in enumerate(self.columns.kinds)}
        position = torch.zeros_like(kind)  # of each node among those of its kind
        for members in rows.values():
            position[members] = torch.arange(len(members), device=x.device)
        x_dict = {name: x[members, self.columns.features[name]] for name, members in rows.items()}
        ends: dict[Relation, Tensor] = {}
        values: dict[Relation, Tensor] = {}
        for number, relation in enumerate(self.columns.relations):
            mask = self._is_edge(edge_attr[:, number], relation, kind, edge_index)
            ends[relation] = position[edge_index[:, mask]]
            values[relation] = edge_attr[mask, self.columns.values[relation]]
        arguments: dict[str, Any] = {"edge_attr_dict": values} if self.takes_values else {}
        logits = self._logits(self.module(x_dict, ends, **arguments), len(rows[self.target]))
        return logits.new_zeros(len(x), logits.size(1)).index_copy(0, rows[self.target], logits)

    def _kind_of_node(self, x: Tensor) -> Tensor:
        num_kinds = len(self.columns.kinds)
        if num_kinds == 1:
            return torch.zeros(len(x), dtype=torch.int64, device=x.device)
        return x[:, :num_kinds].argmax(dim=1)

    def _is_edge(self, flag: Tensor, relation: Relation, kind: Tensor, edge_index: Tensor) -> Tensor:
        """Tells which edges are of a relation, and join the kinds of nodes that it joins."""
        source, _, head = relation
        joins = (kind[edge_index[0]] == self.columns.kinds.index(source)) & (
            kind[edge_index[1]] == self.columns.kinds.index(head)
        )
        return joins & (flag > 0)

    def _logits(self, returned: Any, num_targets: int) -> Tensor:
        logits = returned.get(self.target) if isinstance(returned, dict) else returned
        if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != num_targets:
            found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ModelContractError(
                f"the module returned {found} for {num_targets} nodes of kind {self.target}: expected their logits, "
                "shape [num_nodes, num_classes], or a dictionary with them."
            )
        return logits
