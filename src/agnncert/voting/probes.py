"""Probing a model: change a small graph where nothing may happen, and watch the outputs that must not move.

This catches models whose layers no inspection knows. The probes add an isolated node, add a node that only receives
edges, change an unconnected part of the graph, and shuffle nodes and edges. They can refute a model, but prove nothing.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions import Division, EdgeCentric
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, Task, canonical, canonical_set, select_edges
from agnncert.voting.call import Caller, bind

ALL_ATTACKS = ("edges", "nodes", "features")


@dataclass(frozen=True)
class Finding:
    """One thing that breaks the guarantee.

    Attributes:
        where: Name of the layer, or of the probe.
        what: The layer with the setting at fault, or what was done to the graph.
        why: Why it breaks the guarantee.
        remedy: What to do.
        leaves: Attacks for which the guarantee still holds.
        alone: Whether the fault lies only in evaluating several graphs at once, which ``engine="naive"`` does not do.
    """

    where: str
    what: str
    why: str
    remedy: str
    leaves: tuple[str, ...] = ()
    alone: bool = False


def sample_features(model: Any, data: Any, count: int = 24) -> Tensor:
    """Feature rows to probe with: those of the data, or random ones if there is no data."""
    generator = torch.Generator().manual_seed(0)
    if isinstance(data, Data):
        x = data.x
    elif data is not None:
        x = torch.cat([g.x for g in data[:8]])
    else:
        return torch.randn(count, _num_features(model), generator=generator)
    picked = x[torch.randint(0, x.size(0), (count,), generator=generator)]
    sample: Tensor = picked if picked.is_floating_point() else picked.float()
    return sample


def sample_edge_values(data: Any) -> dict[str, Tensor]:
    """Edge weights and attributes to probe with: those that the data has, or random weights if there is no data."""
    if data is None:
        return {"edge_weight": torch.rand(64, generator=torch.Generator().manual_seed(2)) + 0.5}
    first = data if isinstance(data, Data) else next((g for g in data if g.num_edges), None)
    values = {n: getattr(first, n, None) for n in EDGE_VALUES}
    return {n: v for n, v in values.items() if v is not None and v.size(0)}


def _num_features(model: Any) -> int:
    for layer in model.modules() if isinstance(model, torch.nn.Module) else ():
        for attribute in ("in_channels", "in_features"):
            width = getattr(layer, attribute, None)
            if isinstance(width, int) and width > 0:
                return width
    raise ModelContractError("cannot tell how many features the model takes: pass data= to audit.")


class Probe:
    """A small graph in two unconnected halves, and a model whose outputs on it are watched."""

    def __init__(self, model: Any, task: Task, x: Tensor, edge_values: dict[str, Tensor]) -> None:
        self.task = task
        self.generator = torch.Generator().manual_seed(1)
        self.deviation = 0.0
        self.graph = self._two_halves(x, edge_values)
        self.untouched = _fresh_copy(model)
        whole = canonical(self.graph) if task == "node" else canonical_set([self.graph])
        self.call = bind(model, whole, task)
        self.threshold = 1000 * torch.finfo(self.call.dtype).eps

    def _two_halves(self, x: Tensor, edge_values: dict[str, Tensor]) -> Data:
        count = x.size(0)
        half = count // 2
        ends = torch.randint(0, half, (2, 2 * half), generator=self.generator)
        edges = torch.cat([ends, ends + half], dim=1)
        graph = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), node_id=torch.arange(count))
        picked = torch.randint(0, 2**31, (edges.size(1),), generator=self.generator).repeat(2)
        for name, value in edge_values.items():  # passed on only to models that take them
            graph[name] = value[picked % value.size(0)]
        return graph

    def run(self, graph: Data, call: Caller | None = None) -> Tensor:
        """Logits of all nodes, or of the one graph, in canonical order of edges."""
        call = call or self.call
        whole = canonical(graph) if self.task == "node" else canonical_set([graph])
        values = {n: whole[n] for n in call.takes}
        return call(whole.x.to(call.dtype), whole.edge_index, values, whole.get("batch"))

    def apart(self, a: Tensor, b: Tensor) -> float:
        """Largest difference, relative to the size of the logits; infinite if not comparable."""
        if not bool(torch.isfinite(a).all() and torch.isfinite(b).all()):
            return float("inf")
        return float(((a - b).abs() / a.abs().amax(dim=1, keepdim=True).clamp(min=1.0)).max())

    def moved(self, a: Tensor, b: Tensor) -> bool:
        """Whether two outputs lie further apart than rounding explains."""
        return self.apart(a, b) > self.threshold

    def findings(self, division: Division | None) -> Iterator[Finding]:
        """Everything that the probes find."""
        base = self.run(self.graph)
        if self.moved(base, self.run(self.graph)):  # then nothing can be learned from its outputs
            remedy = "Call model.eval(), and switch off sampling and dropout."
            yield Finding("behaviour", "the same graph twice", "gives two different outputs", remedy)
            return
        yield from self.common_findings(base)
        yield from self.graph_findings(base) if self.task == "graph" else self.node_findings(base, division)

    def common_findings(self, base: Tensor) -> Iterator[Finding]:
        """What breaks every guarantee: memory of earlier graphs, or dependence on order."""
        other = _with_arcs(self.graph, torch.arange(0, self.graph.num_edges, 3))
        fresh = replace(self.call, model=self.untouched)
        if self.moved(self.run(other), self.run(other, fresh)):
            why = "the model remembers earlier graphs"
            yield Finding("behaviour", "another graph in between", why, "Switch off caching between calls.")
        shuffled, order = self._shuffled()
        again = self.run(shuffled)
        again = again if self.task == "graph" else again[torch.argsort(order)]
        if self.moved(base, again):
            what, remedy = "nodes and edges in another order", "Use aggregations that do not depend on order."
            yield Finding("behaviour", what, "the output depends on the order", remedy)
        else:
            self.deviation = max(self.deviation, self.apart(base, again))

    def _shuffled(self) -> tuple[Data, Tensor]:
        order = torch.randperm(self.graph.num_nodes, generator=self.generator)
        place = torch.argsort(order)
        shuffled = _with_arcs(self.graph, torch.randperm(self.graph.num_edges, generator=self.generator))
        shuffled.x, shuffled.node_id = self.graph.x[order], self.graph.node_id[order]
        shuffled.edge_index = place[shuffled.edge_index]
        return shuffled, order

    def node_findings(self, base: Tensor, division: Division | None) -> Iterator[Finding]:
        """What makes the output of a node depend on more than the edges that lead to it."""
        edge_centric = isinstance(division, EdgeCentric)
        leaves = ("edges",) if edge_centric else ()
        all_at_once = "norms over nodes, virtual nodes, global pooling or attention"
        remedy = f"Remove whatever looks at all nodes at once ({all_at_once})."
        alone = self._edgeless(self.graph)
        each = torch.cat([self._edgeless(_one_node(self.graph, k)) for k in range(self.graph.num_nodes)])

        def changes() -> Iterator[tuple[str, Tensor, Tensor]]:
            half = len(base) // 2
            isolated = self._grown(torch.empty(2, 0, dtype=torch.int64))
            yield "an isolated node was added", base, self.run(isolated)[: len(base)]
            yield "an unconnected part was changed", base[:half], self.run(self._far_change())[:half]
            yield "nodes without edges one by one", alone, each

        for what, before, after in changes():
            if self.moved(before, after):
                yield Finding("behaviour", what, "moved the output of nodes it is not connected to", remedy, leaves)
                return
        self.deviation = max(self.deviation, self.apart(alone, each))
        sink = torch.stack([torch.arange(len(base)), torch.full((len(base),), len(base))])
        if not edge_centric and self.moved(base, self.run(self._grown(sink))[: len(base)]):
            what, why = "a node that only receives edges was added", "moved the output of the nodes it receives from"
            yield Finding("behaviour", what, why, "Use EdgeCentric, or layers that read incoming edges only.")

    def _edgeless(self, graph: Data) -> Tensor:
        return self.run(_with_arcs(graph, torch.arange(0)))

    def _grown(self, arcs: Tensor) -> Data:
        """The graph with one more node, of large features, and these arcs besides its own."""
        large = 100 * (1 + self.graph.x.abs().amax())
        new = large * torch.randn(1, self.graph.x.size(1), generator=self.generator)
        grown = _with_arcs(self.graph, torch.arange(self.graph.num_edges + arcs.size(1)) % self.graph.num_edges)
        grown.x, grown.node_id = torch.cat([self.graph.x, new]), torch.arange(self.graph.num_nodes + 1)
        grown.edge_index = torch.cat([self.graph.edge_index, arcs], dim=1)
        return grown

    def _far_change(self) -> Data:
        """The graph with other features and other edges in its second half."""
        half = self.graph.num_nodes // 2
        other = self.graph.clone()
        other.x = torch.cat([other.x[:half], 100 * torch.randn(other.x[half:].shape, generator=self.generator)])
        # A hub of many edges: what is counted or compared over the whole graph, such as the largest degree, moves too.
        hub = torch.full((other.num_nodes - half - 1,), half).repeat(3)
        spokes = torch.arange(half + 1, other.num_nodes).repeat(3)
        near = (other.edge_index[0] < half).nonzero().view(-1)
        changed = _with_arcs(other, torch.cat([near, torch.arange(2 * len(hub)) % other.num_edges]))
        star = torch.stack([torch.cat([spokes, hub]), torch.cat([hub, spokes])])
        changed.edge_index = torch.cat([other.edge_index[:, near], star], dim=1)
        return changed

    def graph_findings(self, base: Tensor) -> Iterator[Finding]:
        """What makes the output of a graph depend on other graphs of the batch."""
        other = _one_node(self.graph, 0)
        pair = canonical_set([self.graph, other])
        values = {n: pair[n] for n in self.call.takes}
        together = self.call(pair.x.to(self.call.dtype), pair.edge_index, values, pair.batch)
        separate = torch.cat([base, self.run(other)])
        if self.moved(separate, together):
            what, why = "two graphs in one batch", "graphs of a batch influence each other"
            remedy = 'Evaluate one graph at a time: certify(..., engine="naive").'
            yield Finding("behaviour", what, why, remedy, ALL_ATTACKS, alone=True)
        else:
            self.deviation = max(self.deviation, self.apart(separate, together))


def _fresh_copy(model: Any) -> Any:
    """A copy of a module that has seen no probe yet."""
    if not isinstance(model, torch.nn.Module):
        return model
    # A module may have kept results of an earlier training step. deepcopy refuses tensors with a gradient's graph.
    kept = [
        v for layer in model.modules() for v in vars(layer).values() if isinstance(v, Tensor) and v.grad_fn is not None
    ]
    try:
        return copy.deepcopy(model, {id(value): value.detach().clone() for value in kept})
    except Exception as error:
        raise ModelContractError(
            f"the model cannot be copied to see whether it remembers earlier graphs ({type(error).__name__}: {error}). "
            "Build it anew and load its weights, or delete what it keeps of earlier calls."
        ) from error


def _one_node(graph: Data, row: int) -> Data:
    """One node of the graph, alone."""
    alone = _with_arcs(graph, torch.arange(0))
    alone.x, alone.node_id = graph.x[row : row + 1], graph.node_id[row : row + 1]
    return alone


def _with_arcs(graph: Data, arcs: Tensor) -> Data:
    """The same nodes with these arcs and their values."""
    return Data(x=graph.x, node_id=graph.node_id, **select_edges(graph, arcs))
