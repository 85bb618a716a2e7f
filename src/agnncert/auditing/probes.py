"""Probes of a model: they change one part of a graph and compare outputs that must not depend on that part.

There are two kinds of change. A *corruption* sets features and edge values on one side of a graph to NaN, infinity and
numbers of all magnitudes. Shapes stay the same, so outputs on the other side must be equal bit for bit. A *rewiring*
changes the structure: other edges, other numbers of nodes, other positions in the edge list, hubs, self-loops, outgoing
edges. Where shapes change, rounding may differ, and outputs are compared in double precision. Probes can refute a
model; they cannot prove that it is compatible.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.auditing.probe_graphs import (
    EXTRAS,
    MOST_ROWS,
    ProbeGraph,
    Table,
    brief_rows,
    corrupt_values,
    has_loops,
    made_up,
    made_up_graphs,
    one_more,
    own_graphs,
    own_nodes,
    own_subgraph,
    path,
)
from agnncert.auditing.state import state_of
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.engine.features import Features
from agnncert.engine.rounding import fresh_copy
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, Task

_STATE = "A certificate speaks about a model that stays as it is: keep counters and other state out of it."
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


_ELSEWHERE = "moved the output of nodes it is not connected to"
_MIXING = "Remove whatever looks at all nodes at once (norms over nodes, virtual nodes, global pooling or attention)."
_REASONS = {
    "features": ("other features elsewhere", _ELSEWHERE, _MIXING),
    "overflow": (
        "infinite features elsewhere",
        "0 times infinity is NaN: features that overflow spoil nodes they are not connected to",
        "Multiply by a sparse adjacency matrix, or choose with torch.where instead of multiplying by zeros.",
    ),
    "values": (
        "other edge values elsewhere", _ELSEWHERE,
        "Treat edge values edge by edge or node by node: no maximum, norm, softmax or ranking over all edges.",
    ),
    "edges": (
        "other edges elsewhere", _ELSEWHERE, "Remove whatever counts, ranks or sums up all edges or nodes at once.",
    ),
    "places": (
        "edges at other places of the list", "moved the output of nodes whose own edges kept their order",
        "Let nothing depend on the place of an edge in the list (edge dropout, neighbour sampling, weights by number).",
    ),
    "numbers": (
        "more nodes and edges elsewhere", _ELSEWHERE,
        "Remove whatever depends on the number or the rows of all nodes or edges (sizes, padding, positions).",
    ),
    "rows": (
        "nodes and edges in another order", "the output depends on the order",
        "Use aggregations that do not depend on order, and nothing that depends on the row of a node.",
    ),
    "memory": ("another graph in between", "the model remembers earlier graphs", "Switch off caching between calls."),
    "chance": (
        "the same graph twice", "gives two different outputs",
        "Call model.eval(), and switch off sampling and dropout.",
    ),
    "alone": ("nodes without edges one by one", _ELSEWHERE, _MIXING),
    "outgoing": (
        "arcs that leave a node", "moved the output of the node that they leave",
        "Use EdgeCentric, or layers that read incoming edges only.",
    ),
    **{
        f"one {name}": (
            f"one {name} more elsewhere", _ELSEWHERE,
            "Remove whatever asks about the graph as a whole (its size, largest degree, direction, doubled edges).",
        )
        for name in EXTRAS
    },
    "batch": (
        "other graphs in one batch", "graphs of a batch influence each other",
        'Evaluate one graph at a time: certify(..., engine="naive").',
    ),
    "not finite": (
        "the graph as it is", "gives scores that are not finite (NaN or infinite), so there is no best class",
        "Look for overflow, logarithms of 0 and divisions by 0 in forward, or scale the features.",
    ),
}  # fmt: skip


def finding(reason: str, leaves: tuple[str, ...] = (), alone: bool = False) -> Finding:
    """The finding for a reason, with its description and remedy."""
    return Finding("behaviour", *_REASONS[reason], leaves, alone)


# Above this many numbers, features are passed as LazyRows, as in the fast engine.
MOST_PLAIN_NUMBERS = 2**20
BRIEF_PLAIN_NUMBERS = 2**18  # the same limit for models whose layers are all known: certify calls them both ways later
SINKS = 120  # nodes that only receive


class Failed(ModelContractError):  # noqa: N818 - it is caught and becomes a finding
    """The model cannot be run on a graph that an attack could produce."""

    def __init__(self, graph: ProbeGraph, error: Exception) -> None:
        self.what = f"a graph of {len(graph.rows)} nodes and {graph.edge_index.size(1)} edges"
        self.why = f"makes the model fail: {type(error).__name__}: {error}"
        super().__init__(f"{self.what} {self.why}")

    def finding(self) -> Finding:
        """The finding that describes the failure."""
        remedy = "Subgraphs and attacked graphs can have any number of nodes and edges: the model must accept them."
        return Finding("behaviour", self.what, self.why, remedy)


class Evaluator:
    """Evaluates a model on probe graphs whose features are rows of one table, in the precision of the model."""

    def __init__(self, call: ModelAdapter, table: Tensor, most_plain: int = MOST_PLAIN_NUMBERS) -> None:
        self.call, self.most_plain, self.table = call, most_plain, table.to(call.dtype)

    @cached_property
    def features(self) -> Features:
        """The table as ``Features``, which keep their products with weights of first layers."""
        return Features(self.table)

    def logits(self, graph: ProbeGraph, model: Any = None) -> Tensor:
        """Logits of all nodes, or of all graphs in the graph task.

        Raises:
            Failed: The model fails on a graph that an attack could produce.
        """
        return self.logits_of_each([graph], model)[0]

    def logits_of_each(self, graphs: Sequence[ProbeGraph], model: Any = None) -> list[Tensor]:
        """The same of several graphs, which are evaluated one after the other."""
        call, found = self.call if model is None else replace(self.call, model=model), []
        for graph in graphs:
            plain = graph.rows.numel() * self.table.size(1) <= self.most_plain
            x = self.table.index_select(0, graph.rows) if plain else self.features.rows(graph.rows)
            batch = graph.place if call.task == "graph" else None
            try:
                found.append(call(x, graph.edge_index, graph.values, batch))  # the model gets copies
            except ModelContractError as error:
                if not isinstance(error.__cause__, Exception):  # not an exception that the model raised
                    raise
                raise Failed(graph, error.__cause__) from error
        return found

    def perturbed(self) -> "Evaluator":
        """The same evaluator with features perturbed by about one unit of rounding."""
        sign = torch.randint(-1, 2, self.table.shape, generator=torch.Generator().manual_seed(3))
        return Evaluator(self.call, self.table * (1 + sign * torch.finfo(self.call.dtype).eps))


class Probe:
    """One probe graph, its logits, and the largest difference that rounding explains."""

    def __init__(
        self, evaluator: Evaluator, double: Callable[[], ModelAdapter | None], table: Table, graph: ProbeGraph
    ) -> None:
        self.table, self.graph, self.evaluator = table, graph, evaluator
        self._double_call = double
        self.deviation = 0.0

    @cached_property
    def base(self) -> Tensor:
        """Logits of the unchanged graph."""
        return self.evaluator.logits(self.graph)

    @cached_property
    def finite(self) -> bool:
        """Whether all logits of the unchanged graph are finite."""
        return bool(torch.isfinite(self.base).all())

    @cached_property
    def double(self) -> tuple[Evaluator, Tensor, float] | None:
        """An evaluator in double precision, its logits, and the largest difference that rounding explains."""
        call = self._double_call()
        if call is None:
            return None
        evaluator, eps = Evaluator(call, self.table.x), torch.finfo(self.evaluator.call.dtype).eps
        try:
            base = evaluator.logits(self.graph)
            noise = apart(base, evaluator.perturbed().logits(self.graph))
        except ModelContractError:
            return None
        exact = self.evaluator.call.dtype == torch.float64
        least = 1000 * eps if exact else 1e-9
        return (evaluator, base, min(max(least, 1000 * noise), max(1e-9, 1000 * eps))) if noise < torch.inf else None

    def moved(
        self, change: ProbeGraph, here: Tensor | None = None, there: Tensor | None = None, bits: bool = False
    ) -> bool:
        """Whether outputs that must stay the same differ after a change.

        Args:
            change: The changed graph.
            here: Rows of the outputs to compare. Defaults to all.
            there: Their rows after the change. Defaults to ``here``.
            bits: Whether shapes are unchanged, so that outputs must be equal bit for bit.
        """
        here = torch.arange(len(self.base)) if here is None else here
        there = here if there is None else there
        if bits or self.double is None:
            before, after = self.base[here], self.evaluator.logits(change)[there]
            if torch.equal(before, after):
                return False
            if self.double is None:
                return self.exceeds_rounding(apart(before, after))
        assert self.double is not None
        # A model that drops edges does not keep shapes. Double precision tells whether the difference is rounding.
        evaluator, base, bound = self.double
        return apart(base[here], evaluator.logits(change)[there]) > bound

    def is_stateless(self, again: Tensor | None = None) -> bool:
        """Whether a second call gives the same logits for the unchanged graph; ``again`` if they are known."""
        again = self.evaluator.logits(self.graph) if again is None else again
        if torch.equal(self.base, again):
            return True
        if self.exceeds_rounding(apart(self.base, again)):
            return False
        if self.double is None:
            return True
        evaluator = self.double[0]  # another order of sums, or small random changes: double precision tells
        return apart(evaluator.logits(self.graph), evaluator.logits(self.graph)) <= 1e-9

    def differs(self, change: ProbeGraph, here: Tensor, there: Tensor) -> bool:
        """As ``moved``, but compared in the precision of the model first, and in double precision only if needed."""
        before, after = self.base[here], self.evaluator.logits(change)[there]
        return self.exceeds_rounding(apart(before, after)) and (self.double is None or self.moved(change, here, there))

    def exceeds_rounding(self, distance: float) -> bool:
        """Whether a difference is larger than rounding explains; a smaller one is recorded in ``deviation``."""
        if distance > 1000 * torch.finfo(self.evaluator.call.dtype).eps:
            return True
        self.deviation = max(self.deviation, distance)
        return False


def apart(a: Tensor, b: Tensor) -> float:
    """Largest difference, relative to the size of the logits; infinite if not comparable."""
    if not a.numel():
        return 0.0
    distance = float(((a - b).abs() / a.abs().amax(dim=1, keepdim=True).clamp(min=1.0)).max())
    return distance if distance < torch.inf else torch.inf  # NaN, too: of logits that are NaN or infinite


class Probes:
    """All probes of a model, on the user's graph and on constructed graphs.

    Args:
        model: The module.
        task: "node" or "graph".
        data: The user's graph or graphs, if there are any.
        division: The division that will be used. ``None`` means the strictest requirements.
        brief: Whether only ``is_as_expected`` will be asked: a small part of the user's graph suffices.
    """

    def __init__(self, model: Any, task: Task, data: Any, division: Division | None, brief: bool = False) -> None:
        self.task, self.division, self.loops = task, division, has_loops(division)
        self.most_plain = BRIEF_PLAIN_NUMBERS if brief else MOST_PLAIN_NUMBERS
        self.generator = torch.Generator().manual_seed(1)
        own = self.own = None
        if data is None:
            x = torch.randn(64, _num_features(model), generator=self.generator)
            self.values = {"edge_weight": torch.rand(64, generator=self.generator) + 0.5}
        else:
            piece = own_nodes if task == "node" else own_graphs
            x, own = piece(data, division, self.generator, brief_rows(_width(data)) if brief else MOST_ROWS)
            self.own = None if brief else own_subgraph(data, division, self.generator) if task == "node" else (x, own)
            self.values = {n: _some(v, self.generator) for n, v in own.values.items()}
        self.untouched = model if brief else fresh_copy(model)  # a copy that no probe calls
        few = x[:64]  # few distinct rows: wide features are projected once for all constructed graphs
        self.width = x.size(1)
        whole = x if x.dtype == torch.float64 else few  # bind checks all numbers that the model's type may not hold
        none = torch.empty(2, 0, dtype=torch.int64)
        weight, attr = (self.values.get(name) for name in EDGE_VALUES)
        self.call = bind(model, CanonicalGraph(whole, none, torch.arange(len(whole)), weight, attr), task)
        # The constructed graph comes first: it is small and finds most faults.
        made = self._made_up(len(few))
        self.probes = [] if own is not None and brief else [self._probe(few, made)]
        self.probes += [] if own is None else [self._probe(x, self._with_made_up(own, len(few)))]
        self.small = self.probes[0]

    @property
    def deviation(self) -> float:
        """Largest relative difference seen between two ways of computing the same logits."""
        return max(probe.deviation for probe in self.probes)

    def is_as_expected(self) -> bool:
        """Whether a model that is known to be local shows it: all changes at once move nothing.

        If not, ``findings`` says why. Nothing but a model whose every part was read may be asked this alone.
        """
        probe = self.small
        change, here, there = self._all_changes(probe)
        try:
            probe.base, after, again = probe.evaluator.logits_of_each([probe.graph, change, probe.graph])
            unmoved = probe.finite and not probe.exceeds_rounding(apart(probe.base[here], after[there]))
            return unmoved and probe.is_stateless(again)
        except Failed:
            return False

    def _all_changes(self, probe: Probe) -> tuple[ProbeGraph, Tensor, Tensor]:
        """A graph in which all that may differ does, and the outputs that must be the same, before and after."""
        change = self._corrupted(probe, 1, finite=False)
        if self.task == "graph":
            kept = change.selected(((change.side == 0) | (change.place % 4 == 1)).nonzero().view(-1))
            _, place = torch.unique_consecutive(kept.place, return_inverse=True)
            here = torch.arange(0, int(probe.graph.place[-1]) + 1, 2)
            there = torch.unique_consecutive(place[kept.side == 0])
            return replace(kept, place=place), here, there
        here = (change.side == 0).nonzero().view(-1)
        change = self._rewired(change, 1)
        if not self._edge_centric:
            change = self._with_sinks(change, probe.table.large(SINKS, self.generator))
        change = self._behind(change, 1)
        return change, here, here + len(change.rows) - len(probe.graph.rows) - (0 if self._edge_centric else SINKS)

    @property
    def _edge_centric(self) -> bool:
        return self.division is not None and self.division.family == "edge-centric"

    def findings(self) -> Iterator[Finding]:
        """All findings of the probes."""
        try:
            yield from self._findings()
        except Failed as failed:
            yield failed.finding()

    def _findings(self) -> Iterator[Finding]:
        if self.small.finite and not self.small.is_stateless():
            yield finding("chance")  # the outputs of a random model show nothing else
            return
        yield from self._changes_of_state()
        if not all(probe.finite for probe in self.probes):
            yield finding("not finite")
            return
        reasons = [*self._common()]
        yield from (finding(reason) for reason in reasons)
        if self.task == "graph":
            if any(self._batch_moves()):
                yield finding("batch", ALL_ATTACKS, alone=True)
        else:
            reason = next(self._elsewhere(), None)
            if reason is not None:
                yield finding(reason, ("edges",) if self._edge_centric else ())
            elif not self._edge_centric and any(self._outgoing_moves()):
                yield finding("outgoing")
        if "memory" not in reasons and not all(probe.is_stateless() for probe in self.probes):
            yield finding("memory")  # of the graphs evaluated in between

    # Faults that break every guarantee

    def _changes_of_state(self) -> Iterator[Finding]:
        """What the same graph, seen once more, changes in all that the model could remember."""
        before = state_of(self.call.model)
        self.small.evaluator.logits(self.small.graph)
        after = state_of(self.call.model)
        for name in before | after:
            if before.get(name) != after.get(name):
                then, now = before.get(name, "not there"), after.get(name, "gone")
                why = f"the model changes: {name} was {then}, now it is {now}"
                yield Finding("behaviour", "the same graph twice", why, _STATE)
                return

    def _common(self) -> Iterator[str]:
        graph = self.small.graph
        values = {n: v[::3] for n, v in graph.values.items()}
        other = replace(graph, edge_index=graph.edge_index[:, ::3], values=values)
        fresh = self.small.evaluator.logits(other, self.untouched)
        if self.small.exceeds_rounding(apart(fresh, self.small.evaluator.logits(other))):
            yield "memory"
        if self.task == "node":
            order = torch.randperm(len(graph.rows), generator=self.generator)
            here, there = order, torch.arange(len(order))
        else:  # another order of nodes within each graph
            order = torch.argsort(graph.place + torch.rand(len(graph.rows), generator=self.generator))
            here = there = torch.arange(len(self.small.base))
        shuffled = graph.selected(order)
        if self.small.differs(shuffled, here, there) or self.small.moved(shuffled, here, there):
            yield "rows"

    # Node task

    def _elsewhere(self) -> Iterator[str]:
        """Reasons why the output of a node depends on nodes or edges that are not connected to it."""
        for probe in self.probes:
            for side in (0, 1):  # each node is corrupted once and compared once
                watched = (probe.graph.side != side).nonzero().view(-1)
                if self._corruption_moves(probe, side, watched, finite=side == 0, rewired=side == 1):
                    yield from self._corruption_reasons(probe, side, watched)
                    yield "edges"
        yield from self._resized()
        yield from self._one_by_one()
        yield from self._one_more()

    def _corruption_reasons(self, probe: Probe, side: int, watched: Tensor) -> Iterator[str]:
        """Which part of a corruption changes outputs."""
        for finite in (True, False):
            for part in ("features", "values"):
                if self._corruption_moves(probe, side, watched, finite, only=part):
                    yield part if finite or part == "values" else "overflow"

    def _corruption_moves(
        self, probe: Probe, side: int, watched: Tensor, finite: bool, only: str = "", rewired: bool = False
    ) -> bool:
        change = self._corrupted(probe, side, finite, only)
        change = self._rewired(change, side) if rewired else change
        mild = torch.where(change.side == side, probe.table.borrowed(len(change.rows), self.generator), change.rows)
        return _first_to_run(probe, (change, replace(change, rows=mild, values=probe.graph.values)), watched, bits=True)

    def _corrupted(self, probe: Probe, side: int, finite: bool, only: str = "") -> ProbeGraph:
        """The graph with corrupt features and edge values on one side."""
        graph = probe.graph
        rows, values = graph.rows, graph.values
        if only != "values":
            rows = torch.where(graph.side == side, probe.table.corrupt(len(rows), finite, self.generator), rows)
        if only != "features":
            there = graph.edges_of(side)
            values = {n: v.clone() for n, v in values.items()}
            for value in values.values():
                value[there] = corrupt_values(value[there], finite, self.generator)
        return replace(graph, rows=rows, values=values)

    def _rewired(self, graph: ProbeGraph, side: int) -> ProbeGraph:
        """The graph with other edges on one side: half of them at one hub, the others at random."""
        there = graph.edges_of(side).nonzero().view(-1)
        nodes = (graph.side == side).nonzero().view(-1)
        if not len(there) or len(nodes) < 2:
            return graph
        ends = nodes[torch.randint(1, len(nodes), (2, len(there)), generator=self.generator)]
        ends[1, ::2] = nodes[0]
        ends[0, ::2] = nodes[1 + torch.arange(len(there))[::2] % (len(nodes) - 1)]
        edge_index = graph.edge_index.clone()
        edge_index[:, there] = ends
        return replace(graph, edge_index=edge_index)

    def _resized(self) -> Iterator[str]:
        """Other numbers of unconnected nodes and edges, before and between those that are compared."""
        for probe in self.probes:
            graph = probe.graph
            kept = (graph.side == 0).nonzero().view(-1)
            near = graph.selected(kept)
            scale = 2 if probe is self.small else 1 + len(graph.rows) // 1000
            change = self._behind(near, scale)
            there = torch.arange(len(change.rows) - len(kept), len(change.rows))
            compare = probe.moved if probe is self.small else probe.differs
            if compare(change, kept, there):
                yield "places" if self._places_matter() else "numbers"

    def _places_matter(self) -> bool:
        """Whether outputs depend on the positions of other nodes' edges in the edge list."""
        graph = self.small.graph
        order = torch.argsort((~graph.edges_of(1)).long(), stable=True)
        values = {n: v[order] for n, v in graph.values.items()}
        return self.small.moved(replace(graph, edge_index=graph.edge_index[:, order], values=values))

    def _behind(self, near: ProbeGraph, scale: int) -> ProbeGraph:
        """A graph of many unconnected nodes, followed by the given nodes."""
        far = made_up(self.generator, 1, self.values, self.loops, scale, sides=1)
        return far.joined(near).sorted()

    def _one_by_one(self) -> Iterator[str]:
        """Compares nodes without edges, evaluated together and one by one."""
        graph = self.small.graph
        nodes = torch.arange(0, len(graph.rows), 200)
        bare = replace(graph, edge_index=graph.edge_index[:, :0], values={n: v[:0] for n, v in graph.values.items()})
        bare = bare.selected(nodes)
        together = self.small.evaluator.logits(bare)
        each = torch.cat([self.small.evaluator.logits(bare.selected(torch.tensor([k]))) for k in range(len(nodes))])
        if self.small.exceeds_rounding(apart(together, each)):
            yield "alone"

    def _one_more(self) -> Iterator[str]:
        """Reasons why one thing more, in a graph that has nothing of the kind, moves an output.

        Graphs made up of everything hide what a model asks about the graph as a whole: is there a hub, are there
        parallel edges, does every edge lead both ways, how many nodes are there?
        """
        for probe in filter(lambda probe: probe.finite, self._plain_probes()):
            graph, compare = probe.graph, probe.moved if probe.table is self.small.table else probe.differs
            everyone = torch.arange(len(probe.base))
            for name, change in one_more(graph, probe.table, self.values, self.loops, self.task, self.generator):
                if compare(change, everyone, everyone):
                    yield f"one {name}"
            lone = torch.ones(len(graph.rows), dtype=torch.bool)
            lone[graph.edge_index.flatten()] = False
            kept = (~lone | (torch.cumsum(lone, 0) > 1)).nonzero().view(-1)
            fewer = self.task == "node" and len(kept) < len(graph.rows)
            if fewer and compare(graph.selected(kept), kept, torch.arange(len(kept))):
                yield "numbers"

    def _plain_probes(self) -> Iterator[Probe]:
        """Graphs without hubs, parallel edges, lone nodes: a path both ways, a path one way, and the user's own."""
        table, evaluator = self.small.table, self.small.evaluator
        for both_ways in (True, False):
            graph = path(table, self.values, both_ways, self.generator)
            graph = graph if self.task == "node" else replace(graph, place=graph.place * 0)
            yield Probe(evaluator, lambda: self._double_call, table, graph)
        if self.own is not None:
            x, graph = self.own
            plain = Table(x, len(x))
            yield Probe(Evaluator(self.call, x, self.most_plain), lambda: self._double_call, plain, graph)

    def _outgoing_moves(self) -> Iterator[bool]:
        """Whether the output of a node depends on its outgoing edges."""
        for probe in self.probes:
            speaks = torch.zeros(len(probe.graph.rows), dtype=torch.bool)
            speaks[probe.graph.edge_index[0]] = True
            watched = speaks.nonzero().view(-1)
            if len(watched):
                yield _first_to_run(probe, self._other_sinks(probe, speaks), watched, bits=True)
        table, graph = self.small.table, self.small.graph
        sinks = (table.large(SINKS, self.generator), table.borrowed(SINKS, self.generator))
        changes = (self._with_sinks(graph, rows) for rows in sinks)
        yield _first_to_run(self.small, changes, torch.arange(len(self.small.base)))

    def _other_sinks(self, probe: Probe, speaks: Tensor) -> Iterator[ProbeGraph]:
        """The graph with other features for nodes without outgoing edges, and other sources of their edges."""
        graph, senders = probe.graph, speaks.nonzero().view(-1)
        unheard = ~speaks[graph.edge_index[1]]
        edge_index, values = graph.edge_index.clone(), {n: v.clone() for n, v in graph.values.items()}
        edge_index[0, unheard] = senders[(torch.arange(int(unheard.sum())) ** 2) % len(senders)]
        for value in values.values():
            value[unheard] = corrupt_values(value[unheard], True, self.generator)
        count = len(graph.rows)
        for rows in (probe.table.corrupt(count, True, self.generator), probe.table.borrowed(count, self.generator)):
            yield replace(graph, rows=torch.where(speaks, graph.rows, rows), edge_index=edge_index, values=values)

    def _with_sinks(self, graph: ProbeGraph, rows: Tensor) -> ProbeGraph:
        """The graph with new nodes that only receive: one, three or a hundred edges from some nodes."""
        count, new = len(graph.rows), len(rows)
        leaving = torch.tensor([1, 0, 3, 0])[torch.arange(count) % 4]
        leaving[::70] = 100
        source = torch.repeat_interleave(torch.arange(count), leaving)
        arcs = torch.stack([source, count + torch.arange(len(source)) % new])
        picked = torch.arange(len(source)) % graph.edge_index.size(1)
        return ProbeGraph(
            torch.cat([graph.rows, rows]),
            torch.cat([graph.edge_index, arcs], dim=1),
            {n: torch.cat([v, v[picked]]) for n, v in graph.values.items()},
            torch.cat([graph.side, torch.full((new,), 2)]),
            torch.cat([graph.place, torch.rand(new, generator=self.generator)]),
        ).sorted()

    # Graph task

    def _batch_moves(self) -> Iterator[bool]:
        """Whether graphs of one batch influence each other."""
        for probe in self.probes:
            graphs = torch.arange(len(probe.base))
            for side in (0, 1):
                watched = graphs[graphs % 2 != side]
                yield self._corruption_moves(probe, side, watched, finite=side == 0)
            kept = probe.graph.selected((probe.graph.side == 0).nonzero().view(-1))
            alone = replace(kept, place=kept.place // 2)
            compare = probe.moved if probe is self.small else probe.differs
            yield compare(alone, graphs[::2], torch.arange(len(graphs[::2])))
        yield next(self._one_more(), None) is not None
        graph = self.small.graph
        each = (graph.selected((graph.place == g).nonzero().view(-1)) for g in range(8))
        separate = torch.cat([self.small.evaluator.logits(replace(one, place=one.place * 0)) for one in each])
        yield self.small.exceeds_rounding(apart(self.small.base[:8], separate))

    # Setting up

    def _made_up(self, few: int) -> ProbeGraph:
        make = made_up if self.task == "node" else made_up_graphs
        return make(self.generator, few, self.values, self.loops)

    def _with_made_up(self, own: ProbeGraph, few: int) -> ProbeGraph:
        """The user's graph together with a constructed graph."""
        extra = self._made_up(few)
        both = own.joined(replace(extra, place=extra.place + (own.place.max() + 1)))
        return both if self.task == "node" else replace(both, side=both.place % 2)

    def _probe(self, x: Tensor, graph: ProbeGraph) -> Probe:
        table = Table.of(x, self.generator)
        return Probe(Evaluator(self.call, table.x, self.most_plain), lambda: self._double_call, table, graph)

    @cached_property
    def _double_call(self) -> ModelAdapter | None:
        """The model in double precision, or ``None`` if it cannot be converted."""
        if not isinstance(self.untouched, torch.nn.Module):
            return None
        call = self.call
        try:
            call = replace(call, model=fresh_copy(self.untouched).double(), dtype=torch.float64)
            logits = Evaluator(call, torch.zeros(1, self.width)).logits(self._made_up(1))
        except Exception:
            return None
        return call if logits.dtype == torch.float64 else None


def _first_to_run(probe: Probe, changes: Iterable[ProbeGraph], watched: Tensor, bits: bool = False) -> bool:
    """Whether outputs differ after the first change, or after the second if the model fails on the first.

    A model may read features as category numbers and fail on others; the second change uses features of other nodes.
    """
    first, second = changes
    try:
        return probe.moved(first, watched, bits=bits)
    except Failed:
        return probe.moved(second, watched, bits=bits)


def _num_features(model: Any) -> int:
    for layer in model.modules() if isinstance(model, torch.nn.Module) else ():
        for attribute in ("in_channels", "in_features"):
            if isinstance(width := getattr(layer, attribute, None), int) and width > 0:
                return width
    raise ModelContractError("cannot tell how many features the model takes: pass data= to audit.")


def _width(data: Any) -> int:
    """Number of features of a graph, or of the first of several graphs; 1 if there are no features."""
    x = getattr(data if isinstance(data, Data) else data[0] if len(data) else None, "x", None)
    return int(x.size(1)) if isinstance(x, Tensor) and x.dim() == 2 else 1


def _some(value: Tensor, generator: torch.Generator) -> Tensor:
    """Up to 4,096 of the edge values, or random values of that shape if there is no edge."""
    return value[:4096] if value.size(0) else torch.rand(64, *value.shape[1:], generator=generator).to(value.dtype)
