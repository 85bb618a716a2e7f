"""Trials: what would a ballot become? Many small edits at once, each on the one subgraph that it touches.

A trial rebuilds only what the ballot's subgraph shows: in the node task the nodes that can reach the target there,
in the graph task the subgraph itself. All trials run side by side in one pass. They serve the search; what is
reported is voted anew on the attacked graph.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from agnncert.attacks.edits import NEW, Edit
from agnncert.attacks.problem import Arc, Scene
from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.graphs.graph import EDGE_VALUES, one_graph
from agnncert.proof.ballots import ABSTAIN
from agnncert.voting.call import Caller, judge
from agnncert.voting.fast import CHUNK_ROWS
from agnncert.voting.lazy_rows import Features

NEW_EDGE = -1


@dataclass
class View:
    """What one ballot depends on: nodes, and arcs between their positions with the edge each one is."""

    group: int
    nodes: list[int]
    arcs: list[tuple[int, int, int]] = field(default_factory=list)


class NodeStage:
    """Views of node targets.

    Args:
        scene: Model, data and a built-in division; node task.
    """

    def __init__(self, scene: Scene) -> None:
        division = scene.built_in()
        self.neighbours = scene.neighbours
        self.node_centric = isinstance(division, NodeCentric)
        self.gated = bool(getattr(division, "gate_features", False))
        self.group_of = division.node_groups(scene.graph).tolist() if isinstance(division, NodeCentric) else []
        self.hops = _hops(scene.model)

    def view(self, group: int, target: int, edit: Edit) -> View | None:
        """What the target sees in one subgraph after an edit; ``None`` if it casts no ballot there.

        In the edge-centric division all pairs that the edit adds are taken to be in this group.
        """
        removed = {pair for u, v in edit.remove for pair in ((u, v), (v, u))}
        added = self._added(group, edit)
        place, depth = {target: 0}, [0]
        found = View(group, [target])
        for here, head in enumerate(found.nodes):
            if depth[here] >= self.hops:
                break
            for tail, edge in (*self.neighbours.into(group, head), *added.get(head, ())):
                if (tail, head) in removed or tail in edit.drop:
                    continue
                if tail not in place:
                    place[tail] = len(found.nodes)
                    found.nodes.append(tail)
                    depth.append(depth[here] + 1)
                found.arcs.append((place[tail], here, edge))
        if self.gated and len(found.nodes) == 1 and self.group_of[target] != group:
            return None
        return found

    def _added(self, group: int, edit: Edit) -> dict[int, list[Arc]]:
        added: dict[int, list[Arc]] = {}
        for u, v in edit.add:
            for tail, head in ((u, v), (v, u)):
                if not self.node_centric or self._group(tail, edit) == group:
                    added.setdefault(head, []).append((tail, NEW_EDGE))
        return added

    def hidden(self, node: int, group: int, edit: Edit) -> bool:
        """Whether the node's features are hidden in this subgraph."""
        return self.gated and self._group(node, edit) != group

    def _group(self, node: int, edit: Edit) -> int:
        return edit.new_group if node == NEW else self.group_of[node]


def _hops(model: Any) -> float:
    """How far a trial looks: one step beyond the layers, for their degrees; everything if layers cannot be counted."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    layers = sum(isinstance(module, MessagePassing) for module in modules)
    return layers + 1 if layers else float("inf")


class GraphStage:
    """Views of one whole graph out of a joined set."""

    def __init__(self, joined: Data, index: int, division: EdgeCentric | NodeCentric) -> None:
        graph = self.graph = one_graph(joined, index)
        self.offset = int(joined.starts[index])
        self.node_centric = isinstance(division, NodeCentric)
        self.group_of = division.node_groups(graph).tolist() if isinstance(division, NodeCentric) else []
        self.arcs: list[list[tuple[int, int, int]]] = [[] for _ in range(division.num_groups)]
        self.members: list[list[int]] = [[] for _ in range(division.num_groups)]
        edges = (joined.batch[joined.edge_index[0]] == index).nonzero().view(-1)
        for edge, (u, v), group in zip(
            edges.tolist(), graph.edge_index.t().tolist(), division.groups(graph).tolist(), strict=True
        ):
            if group >= 0:
                self.arcs[group].append((u, v, edge))
        for node, group in enumerate(self.group_of):
            self.members[group].append(node)
        if not self.node_centric:
            self.members = [sorted({end for u, v, _ in arcs for end in (u, v)}) for arcs in self.arcs]

    def view(self, group: int, target: int, edit: Edit) -> View | None:
        """The subgraph after an edit; ``None`` if nothing is left of it."""
        removed = {pair for u, v in edit.remove for pair in ((u, v), (v, u))}
        extra = [(u, v, NEW_EDGE) for a, b in edit.add for u, v in ((a, b), (b, a))]
        arcs = [arc for arc in [*self.arcs[group], *extra] if arc[:2] not in removed and not {*arc[:2]} & {*edit.drop}]
        if self.node_centric:
            nodes = [node for node in self.members[group] if node not in edit.drop]
            nodes += [NEW] if edit.new is not None and edit.new_group == group else []
            inside = set(nodes)
            arcs = [arc for arc in arcs if arc[0] in inside and arc[1] in inside]
        else:
            nodes = sorted({end for u, v, _ in arcs for end in (u, v)})
        place = {node: k for k, node in enumerate(nodes)}
        return View(group, nodes, [(place[u], place[v], edge) for u, v, edge in arcs]) if nodes else None

    def hidden(self, node: int, group: int, edit: Edit) -> bool:
        """Nothing is hidden in the graph task."""
        return False


class Trials:
    """Collects views and casts their ballots together.

    Args:
        call: The model, bound.
        graph: The canonical graph that views were taken from.
        features: All its features, with the arsenal's below them.
    """

    def __init__(self, call: Caller, graph: Data, features: Tensor) -> None:
        self.call, self.graph = call, graph
        self.features = Features(features.to(call.dtype))
        self.first_own = graph.num_nodes
        self.altered = next((name for name in EDGE_VALUES if name in graph), None)
        self._clear()
        self._ballots: list[npt.NDArray[np.int16]] = []
        self._count = 0
        self._silent: list[int] = []

    def _clear(self) -> None:
        self._rows: list[int] = []
        self._hidden: list[bool] = []
        self._arcs: list[tuple[int, int, int]] = []
        self._starts: list[int] = []
        self._altered: list[tuple[int, Any]] = []

    def add(self, stage: NodeStage | GraphStage, group: int, target: int, edit: Edit) -> int:
        """Queues one trial; its ballot will be at the returned position."""
        view = stage.view(group, target, edit)
        self._count += 1
        if view is None:
            self._silent.append(self._count - 1)
            return self._count - 1
        if len(self._rows) > CHUNK_ROWS:
            self._run()
        start, offset = len(self._rows), getattr(stage, "offset", 0)
        painted = dict(edit.paint)
        for node in view.nodes:
            own = edit.new if node == NEW else painted.get(node)
            self._rows.append(offset + node if own is None else self.first_own + own)
            self._hidden.append(stage.hidden(node, group, edit))
        values = {pair: value for u, v, value in edit.alter for pair in ((u, v), (v, u))}
        for u, v, edge in view.arcs:
            value = values.get((view.nodes[u], view.nodes[v]))
            if value is not None and self.altered is not None:
                self._altered.append((len(self._arcs), value))
            copies = int(value) if value is not None and self.altered is None else 1
            self._arcs += [(start + u, start + v, edge)] * copies
        self._starts.append(start)
        return self._count - 1

    def cast(self) -> npt.NDArray[np.int16]:
        """Ballots of all trials, in the order they were added."""
        self._run()
        ballots = np.full(self._count, ABSTAIN, dtype=np.int16)
        voting = np.ones(self._count, dtype=bool)
        voting[self._silent] = False
        if self._ballots:
            ballots[voting] = np.concatenate(self._ballots)
        self._ballots, self._count, self._silent = [], 0, []
        return ballots

    @torch.no_grad()
    def _run(self) -> None:
        if not self._rows:
            return
        hidden = torch.tensor(self._hidden) if any(self._hidden) else None
        x = self.features.rows(torch.tensor(self._rows), hidden)
        arcs = torch.tensor(self._arcs, dtype=torch.int64).view(-1, 3).t()
        starts = torch.tensor(self._starts)
        sizes = torch.diff(starts, append=torch.tensor([len(self._rows)]))
        batch = torch.repeat_interleave(torch.arange(len(starts)), sizes) if self.call.task == "graph" else None
        logits = self.call(x, arcs[:2], self._values(arcs[2]), batch)
        self._ballots.append(judge(logits if batch is not None else logits[starts], 0.0)[0])
        self._clear()

    def _values(self, edge: Tensor) -> dict[str, Tensor]:
        values = {}
        for name in self.call.takes:
            known = self.graph[name]
            ones = torch.ones(1, *known.shape[1:], dtype=known.dtype)
            values[name] = torch.cat([known, ones])[torch.where(edge == NEW_EDGE, len(known), edge)]
            if name == self.altered:
                for place, value in self._altered:
                    values[name][place] = torch.as_tensor(value, dtype=known.dtype)
        return values
