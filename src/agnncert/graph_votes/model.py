"""``GraphModel``: whole-number scores of graphs, of which one part reads only what is trusted.

What each part is given is decided here, and only here: :meth:`GraphModel.record` takes a graph apart into its
structure and its features, and passes on what is trusted.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.addons import addons
from agnncert.as_built import OwnModel
from agnncert.certificates.task import Task
from agnncert.certificates.votes import IntArray
from agnncert.graph_votes.evidence import KIND, GraphEvidence
from agnncert.graph_votes.seen import Shape, Types, of_nodes, of_size, of_structure, of_surroundings
from agnncert.graph_votes.trees import Trees
from agnncert.graphs.graph import CanonicalGraph

NAME = "graph-votes"
ROLE_DEGREES = 5
_TREES = ("root", "column", "threshold", "left", "right", "share")
_TYPES = ("columns", "rows", "measured", "scale")
# Name of each array, its type and number of dimensions. "how" says what votes were made for (-1 without votes), up to
# how many edges closed walks are counted, and whether trees look at more than a number of nodes.
_ARRAYS: dict[str, tuple[torch.dtype, int]] = {
    "how": (torch.int64, 1),
    "root": (torch.int32, 1),
    "column": (torch.int32, 1),
    "threshold": (torch.int32, 1),
    "left": (torch.int32, 1),
    "right": (torch.int32, 1),
    "share": (torch.int16, 2),
    "type_columns": (torch.int64, 1),
    "type_rows": (torch.float64, 2),
    "type_measured": (torch.int64, 1),
    "type_scale": (torch.int64, 1),
    "colour": (torch.int64, 1),
    "colour_ptr": (torch.int64, 1),
    "role": (torch.int64, 1),
    "of_share": (torch.int64, 1),
    "bias": (torch.int64, 1),
    "table": (torch.int64, 3),
    "by_size": (torch.int64, 2),
}


class GraphModel(OwnModel):
    """Trees over what is trusted, and tables of votes, all in whole numbers. Nothing is rounded in ``forward``.

    How large its arrays are follows from training: weights of any size are loaded.

    Args:
        task: "graph" or "node".
        defence: Settings of the defence.
    """

    training_record: dict[str, Any]

    def __init__(self, task: Task, defence: Mapping[str, Any]) -> None:
        super().__init__()
        self.task = task
        self.defence = addons("agnncert.defences")[KIND].load()(**defence)
        self.config: dict[str, Any] = {"name": NAME, "task": task, "defence": dict(defence)}
        for name, (dtype, dimensions) in _ARRAYS.items():
            self.register_buffer(name, torch.zeros((0,) * dimensions, dtype=dtype))

    @classmethod
    def of(cls, task: Task, defence: Mapping[str, Any], arrays: Mapping[str, Any]) -> "GraphModel":
        """Returns a model with these arrays of numpy, by name; those that are missing are empty."""
        model = cls(task, defence)
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        model.load_state_dict({**model.state_dict(), **tensors})
        return model.eval()

    def anew(self) -> Self:
        """Returns a model of the same settings and the same size, without numbers."""
        new = type(self)(self.task, self.config["defence"])
        new._make_room_for(self.state_dict())
        return new

    def _make_room_for(self, tensors: Mapping[str, Tensor]) -> None:
        """Makes each array as large as the one of this name, if it has as many dimensions."""
        for name, (dtype, dimensions) in _ARRAYS.items():
            found = tensors.get(name)
            if found is not None and found.dim() == dimensions and found.dtype == dtype:
                setattr(self, name, torch.zeros(found.shape, dtype=dtype))

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Loads arrays of any size."""
        self._make_room_for(state_dict)
        return super().load_state_dict(state_dict, strict, assign)

    @property
    def trusted(self) -> str:
        """What an attacker cannot change."""
        trusted: str = self.defence.trusted
        return trusted

    @property
    def made_for(self) -> int | None:
        """The number of changes that votes were made for; None without votes."""
        number = int(self.array("how")[0])
        return None if number < 0 else number

    @property
    def longest_cycle(self) -> int:
        """Up to how many edges closed walks are counted."""
        return int(self.array("how")[1])

    @property
    def looks(self) -> bool:
        """Whether trees look at more than the number of nodes, or of neighbours."""
        return bool(self.array("how")[2])

    def array(self, name: str) -> Any:
        """Returns an array of the model by name."""
        return getattr(self, name).numpy()

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.array("share").shape[1])

    @property
    def trees(self) -> Trees:
        """The trees."""
        return Trees(**{name: self.array(name) for name in _TREES})

    @property
    def types(self) -> Types:
        """The types of nodes."""
        return Types(**{name: self.array(f"type_{name}") for name in _TYPES})

    # What is trusted.

    def seen(self, shape: Shape, x: Tensor | None) -> IntArray:
        """Returns what the trees look at, for each graph, or for each node; features only if nodes are trusted."""
        if self.task == "node":
            return of_surroundings(shape) if self.looks else shape.degree[:, None]
        if self.trusted == "structure":
            if not self.looks:
                return of_size(shape)
            return np.concatenate([of_structure(shape, self.longest_cycle), self.colours(shape)], axis=1)
        if self.trusted == "nodes" and self.looks:
            assert x is not None  # only here is it passed on
            return of_nodes(self.types, x.numpy(), without_edges(shape))
        return of_size(shape)

    def colours(self, shape: Shape) -> IntArray:
        """Counts nodes by their surroundings, as far as these are known, shape ``[num_graphs, colours]``."""
        known, begin = self.array("colour"), self.array("colour_ptr")
        return count_colours(shape, known, begin)

    def advance(self, shape: Shape, x: Tensor | None) -> IntArray:
        """Returns what each class has in advance, shape ``[n, C]``."""
        if self.trusted == "none":
            return np.zeros((shape.num_graphs, self.num_classes), dtype=np.int64)
        shares = self.trees.shares(self.seen(shape, x))
        score: IntArray = self.array("of_share")
        bias: IntArray = self.array("bias")
        return score[shares] + bias

    # What can be changed item by item.

    def items(self, shape: Shape, x: npt.NDArray[Any]) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Returns graph, context, state and number of the items of each graph, in ascending order."""
        if not self.array("table").size or self.task == "node":
            none = np.zeros(0, dtype=np.int64)
            return none, none, none, none
        kinds = self.types.of(x)
        if self.trusted == "nodes":
            return _pairs_by_kind(shape, kinds, self.types.num_types)
        context = self.roles(shape) if self.trusted == "structure" else np.zeros(len(kinds), dtype=np.int64)
        return _counted(shape.batch, context, kinds, self.types.num_types, int(self.array("table").shape[0]))

    def roles(self, shape: Shape) -> IntArray:
        """Returns the role of each node by the structure; unknown roles are the last one, shape ``[N]``."""
        known = self.array("role")
        code = role_codes(shape)
        place = np.searchsorted(known, code)
        place = np.minimum(place, max(len(known) - 1, 0))
        is_known = known[place] == code if len(known) else np.zeros(len(code), dtype=bool)
        return np.where(is_known, place, len(known)).astype(np.int64)

    # Together.

    def evidence(self, graph: CanonicalGraph, positions: IntArray | None, num_graphs: int, ids: str) -> GraphEvidence:
        """Computes what a certificate is derived from.

        Args:
            graph: Joined graphs, or one graph whose nodes are the targets.
            positions: Node task: rows of the targets.
            num_graphs: Number of joined graphs.
            ids: ``"node_id"`` or ``"row"``.
        """
        shape = Shape.of(graph, num_graphs)
        prior = self.advance(shape, graph.x if self.trusted == "nodes" else None)
        if positions is not None:
            prior = prior[positions]
        return self.with_items(prior, shape, graph.x.numpy(), ids)

    def items_of(self, shape: Shape, x: npt.NDArray[Any]) -> GraphEvidence:
        """Returns the items of each graph, with nothing in advance."""
        return self.with_items(np.zeros((shape.num_graphs, self.num_classes), dtype=np.int64), shape, x, "row")

    def with_items(self, prior: IntArray, shape: Shape, x: npt.NDArray[Any], ids: str) -> GraphEvidence:
        """Returns the evidence with these scores in advance, shape ``[n, C]``."""
        owner, context, state, number = self.items(shape, x)
        return GraphEvidence(
            prior=prior,
            indptr=np.searchsorted(owner, np.arange(len(prior) + 1)).astype(np.int64),
            context=context,
            state=state,
            number=number,
            table=self.array("table").copy(),
            size=shape.size if self.trusted == "none" else np.zeros(0, dtype=np.int64),
            by_size=self.array("by_size").copy(),
            task=self.task,
            trusted=self.trusted,
            made_for=self.made_for,
            ids=ids,
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Returns the score of each class for each graph, or node, in steps, shape ``[n, C]``."""
        num_graphs = 1 if batch is None or self.task == "node" else int(batch.max()) + 1
        graph = CanonicalGraph(x=x, edge_index=edge_index, node_key=torch.arange(len(x)), batch=batch)
        graph = graph.without_self_loops()
        counts = self.evidence(graph, None, num_graphs, "row").counts
        return torch.from_numpy(counts).to(torch.float64)


def without_edges(shape: Shape) -> Shape:
    """Returns the nodes of graphs, with no pair joined."""
    return Shape(shape.num_graphs, shape.batch, np.zeros((2, 0), dtype=np.int64))


def role_codes(shape: Shape) -> IntArray:
    """Returns a number for what each node is in the structure around it, shape ``[N]``."""
    degree = np.minimum(shape.degree, ROLE_DEGREES - 1)
    leaves = np.minimum(shape.adjacency @ (shape.degree == 1).astype(np.int64), 3)
    hubs = np.minimum(shape.adjacency @ (shape.degree >= 3).astype(np.int64), 2)
    core = shape.in_core.astype(np.int64)
    in_core = np.minimum(shape.adjacency @ core, 3)
    return np.asarray((((degree * 4 + leaves) * 3 + hubs) * 2 + core) * 4 + in_core)


def count_colours(shape: Shape, known: IntArray, begin: IntArray) -> IntArray:
    """Counts nodes by colours, round after round, as far as these are known, shape ``[num_graphs, colours]``."""
    counts = np.zeros((shape.num_graphs, len(known)), dtype=np.int64)
    for number in range(1, len(begin)):
        here = known[begin[number - 1] : begin[number]]
        if not len(here):
            continue
        colour = shape.colours[number].view(np.int64)
        place = np.minimum(np.searchsorted(here, colour), len(here) - 1)
        is_known = here[place] == colour
        np.add.at(counts, (shape.batch[is_known], begin[number - 1] + place[is_known]), 1)
    return counts


def _pairs_by_kind(shape: Shape, kinds: IntArray, num_types: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Counts the pairs of nodes of each graph by the types of their ends, joined and apart."""
    num_kinds = num_types * (num_types + 1) // 2
    number = np.zeros((shape.num_graphs, num_kinds, 2), dtype=np.int64)
    counts = np.zeros((shape.num_graphs, num_types), dtype=np.int64)
    np.add.at(counts, (shape.batch, kinds), 1)
    ends = np.sort(kinds[shape.pairs], axis=0)
    np.add.at(number[:, :, 1], (shape.batch[shape.pairs[0]], kind_of_pair(ends, num_types)), 1)
    for low in range(num_types):
        for high in range(low, num_types):
            room = counts[:, low] * counts[:, high] if low < high else counts[:, low] * (counts[:, low] - 1) // 2
            kind = kind_of_pair(np.array([[low], [high]]), num_types)[0]
            number[:, kind, 0] = room - number[:, kind, 1]
    owner, context, state = np.nonzero(number)
    return owner, context, state, number[owner, context, state]


def kind_of_pair(ends: IntArray, num_types: int) -> IntArray:
    """Numbers the pairs of types, the smaller first, shape ``[m]``."""
    low, high = ends
    return np.asarray(low * num_types - low * (low - 1) // 2 + high - low)


def _counted(
    batch: IntArray, context: IntArray, state: IntArray, num_states: int, num_contexts: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Counts equal items of each graph."""
    code = (batch * num_contexts + context) * num_states + state
    distinct, number = np.unique(code, return_counts=True)
    place, state = np.divmod(distinct, num_states)
    owner, context = np.divmod(place, num_contexts)
    return owner, context, state, number.astype(np.int64)
