"""Probes of a model: they change one part of a graph and compare outputs that must not depend on that part.

There are two kinds of change. A *corruption* sets features and edge values on one side of a graph to NaN, infinity and
numbers of all magnitudes. Shapes stay the same, so outputs on the other side must be equal bit for bit. A *rewiring*
changes the structure: other edges, other numbers of nodes, other positions in the edge list, hubs, self-loops, outgoing
edges. Where shapes change, rounding may differ, and outputs are compared in double precision. Probes can refute a
model; they cannot prove that it is compatible.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.auditing.altered_values import (
    FEW_SCALES,
    SCALES,
    altered_rows,
    altered_values,
    bands,
    bands_of_values,
)
from agnncert.auditing.constructed_graphs import GraphBuilder
from agnncert.auditing.evaluation import MOST_PLAIN_NUMBERS, Evaluator, Failed, Probe, relative_difference
from agnncert.auditing.findings import ALL_ATTACKS, Finding, finding_of
from agnncert.auditing.operations import STEEP, growth_of_operations
from agnncert.auditing.probe_changes import SINKS, Corruption, corrupted, with_new_sinks, with_other_sinks
from agnncert.auditing.probe_graphs import EdgeValues, FeatureTable, ProbeGraph
from agnncert.auditing.state import state_of
from agnncert.auditing.user_graphs import (
    LEAST_ROWS,
    MOST_ROWS,
    UserGraph,
    batch_of_graphs,
    brief_rows,
    is_edge_centric,
    keeps_loops,
    num_features,
    one_subgraph,
    union_of_subgraphs,
)
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.engine.copies import fresh_copy
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, Task

log = logging.getLogger(__name__)
_STATE = "A certificate speaks about a model that stays as it is: keep counters and other state out of it."
# The limit of plain features for models whose layers are all known: certify calls them both ways later.
BRIEF_PLAIN_NUMBERS = 2**18
FEW_ROWS = 64  # distinct rows: wide features are projected once for all constructed graphs
CROWD = 20  # lone nodes with the same altered features
SMALL = 64  # nodes of a graph to which things of many sizes are added
MOST_VALUES = 4096  # of edges, from which constructed edges draw theirs
MOST_OPERATIONS = 2**31  # of one evaluation of the user's graph, about two seconds
# Of one evaluation of a graph that is many times as large, about a fifth of a second.
MANY_OPERATIONS = 2**29
MANY_TIMES = 100  # as many nodes, or edges, as there are
LEAST_MANY = 20_000  # of nodes that are added, however small the graph is


@dataclass(frozen=True)
class Comparison:
    """A changed graph, and which outputs must be the same.

    Attributes:
        change: The changed graph.
        here: Rows of these outputs before the change.
        there: Their rows after the change.
    """

    change: ProbeGraph
    here: Tensor
    there: Tensor


class Probes:
    """All probes of a model, on the user's graph and on constructed graphs.

    Args:
        model: The module, or a function.
        task: "node" or "graph".
        data: The user's graph or graphs. ``None`` for generated features.
        division: The division that will be used. ``None`` means the strictest requirements.
        brief: Whether only ``is_as_expected`` will be asked: a small part of the user's graph suffices.
    """

    def __init__(
        self,
        model: nn.Module | Callable[..., Tensor],
        task: Task,
        data: Data | Sequence[Data] | None,
        division: Division | None,
        brief: bool = False,
    ) -> None:
        self.task = task
        self.division = division
        self.generator = torch.Generator().manual_seed(1)
        self.most_plain = BRIEF_PLAIN_NUMBERS if brief else MOST_PLAIN_NUMBERS
        self.plain_graph: UserGraph | None = None  # of the user's nodes as they are
        user = None
        if data is None:
            x = torch.randn(FEW_ROWS, _first_width(model), generator=self.generator)
            values = {"edge_weight": torch.rand(FEW_ROWS, generator=self.generator) + 0.5}
        else:
            user = self._of_user(data, brief)
            x = user.x
            values = {name: _some(value, self.generator) for name, value in user.graph.values.items()}
        self.builder = GraphBuilder(self.generator, values, keeps_loops(division))
        self.untouched = model if brief else fresh_copy(model)  # a copy that no probe calls
        self.width = x.size(1)
        self.num_rows = min(FEW_ROWS, len(x))
        self.adapter = self._bind(model, x, values)
        if user is not None and not brief and isinstance(data, Data):
            user = self._affordable(data, user)
            x = user.x
        # The constructed graph comes first: it is small and finds most faults.
        constructed = self._constructed(self.num_rows)
        self.probes = []
        if user is None or not brief:
            self.probes.append(self._probe(x[:FEW_ROWS], constructed))
        if user is not None:
            self.probes.append(self._probe(x, self._with_constructed(user.graph)))
        self.small = self.probes[0]

    # Setting up

    def _affordable(self, data: Data, user: UserGraph) -> UserGraph:
        """Returns the user's graph, or a small part of it if the model would take long on all of it.

        A model that compares all pairs of nodes, or computes eigenvectors, takes a hundred or a thousand times as long
        on ten times as many nodes. The probes then look at about 1,024 nodes, and the log says so.
        """
        num_nodes = max(user.graph.num_nodes, 0 if self.plain_graph is None else self.plain_graph.graph.num_nodes)
        if num_nodes <= LEAST_ROWS:
            return user
        growth = growth_of_operations(lambda rows: self._evaluate_lone_nodes(user.x, rows), LEAST_ROWS)
        operations = growth.predicted(num_nodes)
        if growth.exponent < STEEP or operations < MOST_OPERATIONS:
            return user
        log.warning(
            "the model's operations grow with about the power %.1f of the number of nodes: one evaluation of %d nodes "
            "would take about %.0e, and an audit takes many. It looks at about %d nodes of the graph instead.",
            growth.exponent,
            num_nodes,
            operations,
            LEAST_ROWS,
        )
        if self.plain_graph is not None and self.plain_graph.graph.num_nodes > LEAST_ROWS:
            self.plain_graph = None
        return union_of_subgraphs(data, self.division, self.generator, LEAST_ROWS)

    def _evaluate_lone_nodes(self, x: Tensor, count: int) -> None:
        """Evaluates the model on this many nodes without edges, whose features are products of a few rows."""
        few = x[:FEW_ROWS]
        rows = torch.arange(count) % len(few)
        values = {name: value[:0] for name, value in self.builder.values.items()}
        no_edge = torch.empty(2, 0, dtype=torch.int64)
        graph = ProbeGraph(rows, no_edge, values, torch.zeros_like(rows), torch.arange(count))
        with contextlib.suppress(Failed):
            Evaluator(self.adapter, few, most_plain=0).logits(graph)

    def _of_user(self, data: Data | Sequence[Data], brief: bool) -> UserGraph:
        """Returns a part of the user's data; sets ``plain_graph`` unless a brief look is enough."""
        most = brief_rows(num_features(data)) if brief else MOST_ROWS
        if isinstance(data, Data):  # node task
            user = union_of_subgraphs(data, self.division, self.generator, most)
            if not brief:
                self.plain_graph = one_subgraph(data, self.division, self.generator)
            return user
        user = batch_of_graphs(data, self.division, self.generator, most)
        if not brief:
            self.plain_graph = user
        return user

    def _bind(self, model: nn.Module | Callable[..., Tensor], x: Tensor, values: EdgeValues) -> ModelAdapter:
        # bind checks all numbers that the model's type may not hold, which are those of float64.
        checked = x if x.dtype == torch.float64 else x[:FEW_ROWS]
        no_edge = torch.empty(2, 0, dtype=torch.int64)
        weight, attr = (values.get(name) for name in EDGE_VALUES)
        graph = CanonicalGraph(checked, no_edge, torch.arange(len(checked)), weight, attr)
        return bind(model, graph, self.task)

    def _constructed(self, num_rows: int) -> ProbeGraph:
        return self.builder.graph(num_rows) if self.task == "node" else self.builder.graphs(num_rows)

    def _with_constructed(self, graph: ProbeGraph) -> ProbeGraph:
        """Returns the user's graph together with a constructed graph."""
        constructed = self._constructed(self.num_rows)
        behind = replace(constructed, position=constructed.position + (graph.position.max() + 1))
        both = graph.joined(behind)
        if self.task == "node":
            return both
        return replace(both, side=both.position % 2)

    def _probe(self, x: Tensor, graph: ProbeGraph) -> Probe:
        return self._probe_of_table(FeatureTable.of(x, self.generator), graph)

    def _probe_of_table(self, table: FeatureTable, graph: ProbeGraph) -> Probe:
        evaluator = Evaluator(self.adapter, table.x, self.most_plain)
        return Probe(evaluator, lambda: self._double_adapter, table, graph)

    @cached_property
    def _double_adapter(self) -> ModelAdapter | None:
        """The model in double precision, or ``None`` if it cannot be converted."""
        if not isinstance(self.untouched, nn.Module):
            return None
        try:
            model = fresh_copy(self.untouched).double()
            adapter = replace(self.adapter, model=model, dtype=torch.float64)
            logits = Evaluator(adapter, torch.zeros(1, self.width)).logits(self._constructed(num_rows=1))
        except Exception:
            return None
        return adapter if logits.dtype == torch.float64 else None

    @property
    def _edge_centric(self) -> bool:
        return is_edge_centric(self.division)

    # What is asked of the probes

    @property
    def deviation(self) -> float:
        """Largest relative difference seen between two ways of computing the same logits."""
        return max(probe.deviation for probe in self.probes)

    def is_as_expected(self) -> bool:
        """Returns whether a model that is known to be local shows it: all changes at once move nothing.

        If not, ``findings`` says why. Nothing but a model whose every part was read may be asked this alone.
        """
        probe = self.small
        comparison = self._all_changes(probe)
        try:
            probe.base, after, again = probe.evaluator.logits_of_each([probe.graph, comparison.change, probe.graph])
            difference = relative_difference(probe.base[comparison.here], after[comparison.there])
            return probe.finite and not probe.exceeds_rounding(difference) and probe.is_stateless(again)
        except Failed:
            return False

    def findings(self) -> Iterator[Finding]:
        """Yields all findings of the probes."""
        try:
            yield from self._findings()
        except Failed as failed:
            yield failed.finding()

    def _findings(self) -> Iterator[Finding]:
        if self.small.finite and not self.small.is_stateless():
            yield finding_of("chance")  # the outputs of a random model show nothing else
            return
        yield from self._changes_of_state()
        if not all(probe.finite for probe in self.probes):
            yield finding_of("not finite")
            return
        reasons = [*self._common_reasons()]
        yield from (finding_of(reason) for reason in reasons)
        yield from self._findings_of_graphs() if self.task == "graph" else self._findings_of_nodes()
        if "memory" not in reasons and not all(probe.is_stateless() for probe in self.probes):
            yield finding_of("memory")  # of the graphs evaluated in between

    def _findings_of_nodes(self) -> Iterator[Finding]:
        reason = next(self._reasons_elsewhere(), None)
        if reason is not None:
            yield finding_of(reason, ("edges",) if self._edge_centric else ())
        elif not self._edge_centric and any(self._outgoing_moves()):
            yield finding_of("outgoing")

    def _findings_of_graphs(self) -> Iterator[Finding]:
        if any(self._batch_moves()):
            yield finding_of("batch", ALL_ATTACKS, alone=True)

    # All changes at once

    def _all_changes(self, probe: Probe) -> Comparison:
        """Returns a graph in which all that may differ does."""
        corruption = Corruption(side=1, finite=False, rewire=self.task == "node")
        change = corrupted(probe.graph, probe.table, corruption, self.generator)
        if self.task == "graph":
            return _without_some_graphs(change)
        here = change.nodes_of(0)
        num_behind = 0
        if not self._edge_centric:
            change = with_new_sinks(change, probe.table.draw_large(SINKS, self.generator), self.generator)
            num_behind = SINKS
        change = self._after_others(change, scale=1)
        num_before = change.num_nodes - probe.graph.num_nodes - num_behind
        return Comparison(change, here, here + num_before)

    def _after_others(self, graph: ProbeGraph, scale: int) -> ProbeGraph:
        """Returns a graph of many unconnected nodes, followed by the given graph."""
        others = self.builder.graph(1, scale, sides=1)
        return others.joined(graph).sorted()

    # Faults that break every guarantee

    def _changes_of_state(self) -> Iterator[Finding]:
        """Yields the first thing that the same graph, seen once more, changes in all that the model could remember."""
        before = state_of(self.adapter.model)
        self.small.evaluator.logits(self.small.graph)
        after = state_of(self.adapter.model)
        for name in before | after:
            if before.get(name) == after.get(name):
                continue
            then = before.get(name, "not there")
            now = after.get(name, "gone")
            why = f"the model changes: {name} was {then}, now it is {now}"
            yield Finding("behaviour", "the same graph twice", why, _STATE)
            return

    def _common_reasons(self) -> Iterator[str]:
        """Yields reasons why a model is unfit in both tasks."""
        if self._remembers_graphs():
            yield "memory"
        if self._depends_on_order():
            yield "rows"

    def _remembers_graphs(self) -> bool:
        """Returns whether another graph gives other outputs than in a model that has seen none."""
        other = self.small.graph.with_edges(slice(None, None, 3))
        fresh = self.small.evaluator.logits(other, self.untouched)
        return self.small.exceeds_rounding(relative_difference(fresh, self.small.evaluator.logits(other)))

    def _depends_on_order(self) -> bool:
        """Returns whether outputs depend on the order of nodes or, in the graph task, on that within each graph."""
        graph = self.small.graph
        if self.task == "node":
            order = torch.randperm(graph.num_nodes, generator=self.generator)
            here = order
            there = torch.arange(len(order))
        else:
            order = torch.argsort(graph.position + torch.rand(graph.num_nodes, generator=self.generator))
            here = there = torch.arange(len(self.small.base))
        shuffled = graph.selected(order)
        return self.small.differs(shuffled, here, there) or self.small.moved(shuffled, here, there)

    # Node task

    def _reasons_elsewhere(self) -> Iterator[str]:
        """Yields reasons why the output of a node depends on nodes or edges that are not connected to it."""
        for probe in self.probes:
            # Each node is corrupted once and compared once.
            for corruption in (Corruption(side=0, finite=True), Corruption(side=1, finite=False, rewire=True)):
                here = probe.graph.nodes_of(1 - corruption.side)
                if self._corruption_moves(probe, corruption, here):
                    yield from self._reasons_of_corruption(probe, corruption.side, here)
                    yield "edges"
        yield from self._reasons_of_size()
        if self._differ_one_by_one():
            yield "alone"
        yield from self._reasons_of_one_more()
        yield from self._reasons_of_one_row()
        yield from self._reasons_of_one_value()
        yield from self._reasons_of_many()

    def _reasons_of_corruption(self, probe: Probe, side: int, here: Tensor) -> Iterator[str]:
        """Yields which part of a corruption changes outputs."""
        if self._corruption_moves(probe, Corruption(side, finite=True, values=False), here):
            yield "features"
        if self._corruption_moves(probe, Corruption(side, finite=True, features=False), here):
            yield "values"
        if self._corruption_moves(probe, Corruption(side, finite=False, values=False), here):
            yield "overflow"
        if self._corruption_moves(probe, Corruption(side, finite=False, features=False), here):
            yield "values"

    def _corruption_moves(self, probe: Probe, corruption: Corruption, here: Tensor) -> bool:
        """Returns whether a corruption of one side changes outputs of the other, whose rows are ``here``."""
        change = corrupted(probe.graph, probe.table, corruption, self.generator)
        ordinary = probe.table.draw_ordinary(change.num_nodes, self.generator)
        mild_rows = torch.where(change.side == corruption.side, ordinary, change.rows)
        mild = replace(change, rows=mild_rows, values=probe.graph.values)
        return probe.first_that_runs_moves((change, mild), here, bits=True)

    def _reasons_of_size(self) -> Iterator[str]:
        """Yields reasons why other numbers of unconnected nodes and edges, before and between others, matter."""
        for probe in self.probes:
            graph = probe.graph
            kept = graph.nodes_of(0)
            scale = 2 if probe is self.small else 1 + graph.num_nodes // 1000
            change = self._after_others(graph.selected(kept), scale)
            there = torch.arange(change.num_nodes - len(kept), change.num_nodes)
            if self._moves(probe, change, kept, there):
                yield "places" if self._positions_matter() else "numbers"

    def _moves(self, probe: Probe, change: ProbeGraph, here: Tensor, there: Tensor) -> bool:
        """Returns whether outputs differ, in double precision at once if the graph is small."""
        if probe.table is self.small.table or _is_small(probe):
            return probe.moved(change, here, there)
        return probe.differs(change, here, there)

    def _positions_matter(self) -> bool:
        """Returns whether outputs depend on the positions of other nodes' edges in the edge list."""
        graph = self.small.graph
        others_first = torch.argsort((~graph.edges_of(1)).long(), stable=True)
        return self.small.moved(graph.with_edges(others_first))

    def _differ_one_by_one(self) -> bool:
        """Returns whether nodes without edges, evaluated together and one by one, have different outputs."""
        graph = self.small.graph
        nodes = torch.arange(0, graph.num_nodes, 200)
        bare = graph.with_edges(slice(0)).selected(nodes)
        together = self.small.evaluator.logits(bare)
        each = [self.small.evaluator.logits(bare.selected(torch.tensor([k]))) for k in range(len(nodes))]
        return self.small.exceeds_rounding(relative_difference(together, torch.cat(each)))

    def _reasons_of_one_more(self) -> Iterator[str]:
        """Yields reasons why one thing more, in a graph that has nothing of the kind, moves an output.

        Constructed graphs have everything, which hides what a model asks about the graph as a whole: is there a hub,
        are there parallel edges, does every edge lead both ways, how many nodes are there?
        """
        for probe in self._plain_probes():
            if not probe.finite:
                continue
            everyone = torch.arange(len(probe.base))
            for name, change in self.builder.one_more(probe.graph, probe.table, self.task, _is_small(probe)):
                if self._moves(probe, change, everyone, everyone):
                    yield f"one {name}"
            if self.task == "node" and self._one_less_moves(probe):
                yield "numbers"

    def _reasons_of_one_row(self) -> Iterator[str]:
        """Yields a reason for each way of altering features that, at lone nodes, moves the output of another node.

        Most rows are tried on a path of the user's nodes, one at a time. A few are tried in crowds, and a few beside
        the user's graph. What the model cannot read at all, such as an unknown category, is passed over.
        """
        path = self.builder.path(self.small.table, both_ways=True)
        x = self.small.table.x[: self.small.table.num_ordinary]
        yield from self._reasons_of_rows(x, self._in_task(path), SCALES, crowd=1)
        yield from self._reasons_of_rows(x, self._in_task(path), FEW_SCALES, crowd=CROWD)
        if self.plain_graph is not None:
            yield from self._reasons_of_rows(self.plain_graph.x, self.plain_graph.graph, FEW_SCALES, crowd=1)
        yield from self._reasons_of_bands(x, self._in_task(path))

    def _reasons_of_bands(self, x: Tensor, graph: ProbeGraph) -> Iterator[str]:
        """Yields a reason if two lone nodes of some size move an output, whichever of many sizes it is."""
        pairs = list(bands(x))
        probe = self._probe_of_table(FeatureTable(torch.cat([x, *pairs]), len(x)), graph)
        if not probe.finite:
            return
        everyone = torch.arange(len(probe.base))
        for start in range(len(x), len(x) + 2 * len(pairs), 2):
            change = self.builder.lone_nodes(graph, torch.tensor([start, start + 1]))
            if self._differs_if_it_runs(probe, change, everyone):
                yield f"row: up to {float(probe.table.x[start].max()):.4g}"
                return

    def _reasons_of_rows(self, x: Tensor, graph: ProbeGraph, scales: tuple[int, ...], crowd: int) -> Iterator[str]:
        """Yields a reason for each altered row that moves an output when this many lone nodes have it."""
        rows = list(altered_rows(x, self.generator, scales))
        table = FeatureTable(torch.cat([x, torch.stack([altered.row for altered in rows])]), len(x))
        probe = self._probe_of_table(table, graph)
        if not probe.finite:
            return
        everyone = torch.arange(len(probe.base))
        for k, altered in enumerate(rows):
            change = self.builder.lone_nodes(graph, torch.full((crowd,), len(x) + k))
            if self._moves_if_it_runs(probe, change, everyone):
                yield f"row: {altered.name}"

    def _reasons_of_one_value(self) -> Iterator[str]:
        """Yields a reason for each way of altering the values of one edge that moves the output of another node."""
        for probe in self._plain_probes():
            if not probe.finite:
                continue
            scales = SCALES if _is_small(probe) else FEW_SCALES
            everyone = torch.arange(len(probe.base))
            for name in self.adapter.edge_inputs:
                values = self.builder.values[name]
                if not values.is_floating_point():
                    continue
                for value in altered_values(values, scales):
                    change = self.builder.pair_of_values(probe.graph, probe.table, self.task, name, value)
                    if self._moves_if_it_runs(probe, change, everyone):
                        yield "edge value"
                if _is_small(probe) and self._band_of_values_moves(probe, name, everyone):
                    yield "edge value"

    def _band_of_values_moves(self, probe: Probe, name: str, everyone: Tensor) -> bool:
        """Returns whether one edge of some size moves an output, whichever of many sizes it is."""
        for value in bands_of_values(self.builder.values[name]):
            change = self.builder.pair_of_values(probe.graph, probe.table, self.task, name, value)
            if self._differs_if_it_runs(probe, change, everyone):
                return True
        return False

    def _reasons_of_many(self) -> Iterator[str]:
        """Yields a reason if a hundred times as many nodes, neighbours of one node or copies of an edge move an output.

        There are fewer where the model is not cheap enough, so that an audit stays short.
        """
        *_, plain = self._plain_probes()
        if not plain.finite:
            return
        probe = Probe(Evaluator(self.adapter, plain.table.x, 0), lambda: self._double_adapter, plain.table, plain.graph)
        if self._many_move(probe, probe.graph.num_nodes, self._with_lone_nodes):
            yield "many: nodes"
        size = max(probe.graph.num_nodes, probe.graph.num_edges)
        if self._many_move(probe, size, self._with_hub) or self._many_move(probe, size, self._with_dense_pair):
            yield "many: edges"

    def _many_move(self, probe: Probe, size: int, grown: Callable[[Probe, int], ProbeGraph]) -> bool:
        """Returns whether outputs differ in a graph that is many times as large as this size, if the model runs."""

        def run(count: int) -> None:
            with contextlib.suppress(Failed):
                probe.evaluator.logits(grown(probe, count))

        everyone = torch.arange(len(probe.base))  # evaluated first, so that what is computed once is not counted
        growth = growth_of_operations(run, LEAST_ROWS)
        count = min(max(LEAST_MANY, MANY_TIMES * size), growth.affordable(MANY_OPERATIONS))
        return count > LEAST_ROWS and self._differs_if_it_runs(probe, grown(probe, count), everyone)

    def _with_lone_nodes(self, probe: Probe, count: int) -> ProbeGraph:
        return self.builder.lone_nodes(probe.graph, torch.zeros(count, dtype=torch.int64))

    def _with_hub(self, probe: Probe, count: int) -> ProbeGraph:
        return self.builder.with_hub(probe.graph, probe.table, self.task, count)

    def _with_dense_pair(self, probe: Probe, count: int) -> ProbeGraph:
        return self.builder.with_dense_pair(probe.graph, probe.table, self.task, count)

    def _differs_if_it_runs(self, probe: Probe, change: ProbeGraph, everyone: Tensor) -> bool:
        """Returns whether outputs differ by more than rounding after such a change, if the model accepts it."""
        try:
            return probe.differs(change, everyone, everyone)
        except Failed:
            return False

    def _moves_if_it_runs(self, probe: Probe, change: ProbeGraph, everyone: Tensor) -> bool:
        """Returns whether outputs differ after a change that adds nodes behind all others, if the model accepts it."""
        try:
            return self._moves(probe, change, everyone, everyone)
        except Failed:
            return False

    def _in_task(self, path: ProbeGraph) -> ProbeGraph:
        """Returns a path as it is in the node task, and as one graph in the graph task."""
        if self.task == "node":
            return path
        return replace(path, position=torch.zeros_like(path.position))

    def _one_less_moves(self, probe: Probe) -> bool:
        """Returns whether the output of a node depends on one lone node elsewhere."""
        graph = probe.graph
        is_lone = torch.ones(graph.num_nodes, dtype=torch.bool)
        is_lone[graph.edge_index.flatten()] = False
        is_first_lone = is_lone & (torch.cumsum(is_lone, 0) == 1)
        kept = (~is_first_lone).nonzero().view(-1)
        if len(kept) == graph.num_nodes:
            return False
        return self._moves(probe, graph.selected(kept), kept, torch.arange(len(kept)))

    def _plain_probes(self) -> Iterator[Probe]:
        """Yields graphs without hubs, parallel edges or lone nodes: paths both ways and one way, and the user's own."""
        table = self.small.table
        for both_ways in (True, False):
            graph = self._in_task(self.builder.path(table, both_ways))
            yield Probe(self.small.evaluator, lambda: self._double_adapter, table, graph)
        if self.plain_graph is not None:
            x = self.plain_graph.x
            yield self._probe_of_table(FeatureTable(x, len(x)), self.plain_graph.graph)

    def _outgoing_moves(self) -> Iterator[bool]:
        """Yields, for several changes, whether the output of a node depends on its outgoing edges."""
        for probe in self.probes:
            is_sender = torch.zeros(probe.graph.num_nodes, dtype=torch.bool)
            is_sender[probe.graph.edge_index[0]] = True
            senders = is_sender.nonzero().view(-1)
            if len(senders):
                changes = with_other_sinks(probe.graph, probe.table, is_sender, self.generator)
                yield probe.first_that_runs_moves(changes, senders, bits=True)
        table = self.small.table
        sinks = (table.draw_large(SINKS, self.generator), table.draw_ordinary(SINKS, self.generator))
        changes = (with_new_sinks(self.small.graph, rows, self.generator) for rows in sinks)
        yield self.small.first_that_runs_moves(changes, torch.arange(len(self.small.base)))

    # Graph task

    def _batch_moves(self) -> Iterator[bool]:
        """Yields, for several changes, whether graphs of one batch influence each other."""
        for probe in self.probes:
            graphs = torch.arange(len(probe.base))
            for corruption in (Corruption(side=0, finite=True), Corruption(side=1, finite=False)):
                yield self._corruption_moves(probe, corruption, graphs[graphs % 2 != corruption.side])
            kept = probe.graph.selected(probe.graph.nodes_of(0))
            alone = replace(kept, position=kept.position // 2)
            yield self._moves(probe, alone, graphs[::2], torch.arange(len(graphs[::2])))
        yield next(self._reasons_of_one_more(), None) is not None
        yield next(self._reasons_of_one_row(), None) is not None
        yield next(self._reasons_of_one_value(), None) is not None
        yield next(self._reasons_of_many(), None) is not None
        yield self._differ_graph_by_graph()

    def _differ_graph_by_graph(self) -> bool:
        """Returns whether the first eight graphs, evaluated in a batch and one by one, have different outputs."""
        graph = self.small.graph
        logits = []
        for number in range(8):
            single = graph.selected((graph.position == number).nonzero().view(-1))
            first = replace(single, position=torch.zeros_like(single.position))
            logits.append(self.small.evaluator.logits(first))
        return self.small.exceeds_rounding(relative_difference(self.small.base[:8], torch.cat(logits)))


def _is_small(probe: Probe) -> bool:
    return probe.graph.num_nodes <= SMALL


def _without_some_graphs(graph: ProbeGraph) -> Comparison:
    """Returns a batch without half of the graphs of side 1, compared at the graphs of side 0."""
    kept = graph.selected(((graph.side == 0) | (graph.position % 4 == 1)).nonzero().view(-1))
    _, position = torch.unique_consecutive(kept.position, return_inverse=True)
    here = torch.arange(0, int(graph.position[-1]) + 1, 2)
    there = torch.unique_consecutive(position[kept.side == 0])
    return Comparison(replace(kept, position=position), here, there)


def _first_width(model: object) -> int:
    """Returns the number of features that the first layer of a module takes.

    Raises:
        ModelContractError: No layer says how many it takes.
    """
    layers = model.modules() if isinstance(model, nn.Module) else ()
    for layer in layers:
        for attribute in ("in_channels", "in_features"):
            width = getattr(layer, attribute, None)
            if isinstance(width, int) and width > 0:
                return width
    raise ModelContractError("cannot tell how many features the model takes: pass data= to audit.")


def _some(value: Tensor, generator: torch.Generator) -> Tensor:
    """Returns some of the edge values, or random values of that shape if there is no edge."""
    if value.size(0):
        return value[:MOST_VALUES]
    return torch.rand(FEW_ROWS, *value.shape[1:], generator=generator).to(value.dtype)
