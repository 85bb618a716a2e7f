"""What an audit can find, and the words in which it says so.

Probing a model: change a graph where nothing may happen, and watch the outputs that must not move.

Two kinds of change. *Poison* sets features and edge values on one side of a scene to NaN, infinity and numbers of all
sizes; shapes stay, so that outputs on the other side must stay to the last bit. *Rewire* changes the structure: other
edges, other numbers, other places in the list, hubs, loops, arcs that leave a node. Where shapes change, rounding may
differ, and outputs are compared in double precision. Probes can refute a model, but prove nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.auditing.probe_graphs import (
    MOST_ROWS,
    Scene,
    Table,
    brief_rows,
    has_loops,
    made_up,
    made_up_graphs,
    own_graphs,
    own_nodes,
    poisoned_values,
)
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine.call import Caller, bind
from agnncert.engine.features import Features
from agnncert.engine.rounding import fresh_copy
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, Task

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
_REASONS = {
    "features": (
        "other features elsewhere",
        _ELSEWHERE,
        "Remove whatever looks at all nodes at once (norms over nodes, virtual nodes, global pooling or attention).",
    ),
    "overflow": (
        "infinite features elsewhere",
        "0 times infinity is NaN: features that overflow spoil nodes they are not connected to",
        "Multiply by a sparse adjacency matrix, or choose with torch.where instead of multiplying by zeros.",
    ),
    "values": (
        "other edge values elsewhere",
        _ELSEWHERE,
        "Treat edge values edge by edge or node by node: no maximum, norm, softmax or ranking over all edges.",
    ),
    "edges": (
        "other edges elsewhere",
        _ELSEWHERE,
        "Remove whatever counts, ranks or sums up all edges or nodes at once.",
    ),
    "places": (
        "edges at other places of the list",
        "moved the output of nodes whose own edges kept their order",
        "Let nothing depend on the place of an edge in the list (edge dropout, neighbour sampling, weights by number).",
    ),
    "numbers": (
        "more nodes and edges elsewhere",
        _ELSEWHERE,
        "Remove whatever depends on the number or the rows of all nodes or edges (sizes, padding, positions).",
    ),
    "rows": (
        "nodes and edges in another order",
        "the output depends on the order",
        "Use aggregations that do not depend on order, and nothing that depends on the row of a node.",
    ),
    "memory": ("another graph in between", "the model remembers earlier graphs", "Switch off caching between calls."),
    "chance": (
        "the same graph twice",
        "gives two different outputs",
        "Call model.eval(), and switch off sampling and dropout.",
    ),
    "alone": (
        "nodes without edges one by one",
        _ELSEWHERE,
        "Remove whatever looks at all nodes at once (norms over nodes, virtual nodes, global pooling or attention).",
    ),
    "outgoing": (
        "arcs that leave a node",
        "moved the output of the node that they leave",
        "Use EdgeCentric, or layers that read incoming edges only.",
    ),
    "batch": (
        "other graphs in one batch",
        "graphs of a batch influence each other",
        'Evaluate one graph at a time: certify(..., engine="naive").',
    ),
    "not finite": (
        "the graph as it is",
        "gives scores that are not finite (NaN or infinite), so there is no best class",
        "Look for overflow, logarithms of 0 and divisions by 0 in forward, or scale the features.",
    ),
}


def finding(reason: str, leaves: tuple[str, ...] = (), alone: bool = False) -> Finding:
    """What to say about one thing that a probe has found."""
    return Finding("behaviour", *_REASONS[reason], leaves, alone)


# Above this many numbers, features are handed over as the fast engine does: unevaluated until a layer projects them.
MOST_PLAIN_NUMBERS = 2**20
BRIEF_PLAIN_NUMBERS = 2**18  # likewise, where layers were read: these see both from ``certify``, later


class Failed(ModelContractError):  # noqa: N818 - it is caught and becomes a finding
    """The model cannot be run on a graph that an attack could produce."""

    def __init__(self, scene: Scene, error: Exception) -> None:
        self.what = f"a graph of {len(scene.rows)} nodes and {scene.edge_index.size(1)} edges"
        self.why = f"makes the model fail: {type(error).__name__}: {error}"
        super().__init__(f"{self.what} {self.why}")

    def finding(self) -> Finding:
        """What to say about it."""
        remedy = "Subgraphs and attacked graphs can have any number of nodes and edges: the model must accept them."
        return Finding("behaviour", self.what, self.why, remedy)


class Stage:
    """A model and a table of features: shows scenes to the model, in its own precision."""

    def __init__(self, call: Caller, table: Tensor, most_plain: int = MOST_PLAIN_NUMBERS) -> None:
        self.call, self.most_plain = call, most_plain
        self.features = Features(table.to(call.dtype))

    def show(self, scene: Scene, model: Any = None) -> Tensor:
        """Logits of all nodes or graphs of a scene.

        Raises:
            Failed: The model fails on a graph that an attack could produce.
        """
        call = self.call if model is None else replace(self.call, model=model)
        plain = scene.rows.numel() * self.features.x.size(1) <= self.most_plain
        x = self.features.x[scene.rows] if plain else self.features.rows(scene.rows)
        batch = scene.place if call.task == "graph" else None
        try:
            return call(x, scene.edge_index, scene.values, batch)  # the model gets copies of its own
        except ModelContractError as error:
            if not isinstance(error.__cause__, Exception):  # of the kind that the model itself raised
                raise
            raise Failed(scene, error.__cause__) from error

    def shaken(self) -> "Stage":
        """The same with features altered by about one unit of rounding."""
        sign = torch.randint(-1, 2, self.features.x.shape, generator=torch.Generator().manual_seed(3))
        return Stage(self.call, self.features.x * (1 + sign * torch.finfo(self.call.dtype).eps))


class Ground:
    """A scene on which changes are tried, and how far apart outputs may lie there."""

    def __init__(
        self, stage: Stage, double: Callable[[], Caller | None], table: Table, scene: Scene, brief: bool = False
    ) -> None:
        self.table, self.scene, self.stage, self.brief = table, scene, stage, brief
        self._double_call = double
        self.deviation = 0.0

    @cached_property
    def base(self) -> Tensor:
        """Logits of the scene as it is."""
        return self.stage.show(self.scene)

    @property
    def finite(self) -> bool:
        """Whether all logits of the scene are numbers."""
        return bool(torch.isfinite(self.base).all())

    @cached_property
    def double(self) -> tuple[Stage, Tensor, float] | None:
        """A stage in double precision, its logits, and the difference that rounding explains there."""
        call = self._double_call()
        if call is None:
            return None
        stage, eps = Stage(call, self.table.x), torch.finfo(self.stage.call.dtype).eps
        try:
            base = stage.show(self.scene)
            noise = apart(base, stage.shaken().show(self.scene))
        except ModelContractError:
            return None
        exact = self.stage.call.dtype == torch.float64
        least = 1000 * eps if exact else 1e-9
        return (stage, base, min(max(least, 1000 * noise), max(1e-9, 1000 * eps))) if noise < torch.inf else None

    def moved(self, change: Scene, here: Tensor | None = None, there: Tensor | None = None, bits: bool = False) -> bool:
        """Whether the outputs that must not move do.

        Args:
            change: The scene after a change.
            here: Rows of the outputs to watch; all when not given.
            there: Where they are after the change; where they were when not given.
            bits: Whether shapes are the same, so that outputs should be the same to the last bit.
        """
        here = torch.arange(len(self.base)) if here is None else here
        there = here if there is None else there
        if bits or self.brief or self.double is None:
            before, after = self.base[here], self.stage.show(change)[there]
            if torch.equal(before, after) or (self.brief and not self.noted(apart(before, after))):
                return False
            if self.double is None:
                return self.noted(apart(before, after))
        assert self.double is not None
        # A model that drops some edges by itself does not keep shapes: whether this is rounding, more digits tell.
        stage, base, bound = self.double
        return apart(base[here], stage.show(change)[there]) > bound

    def forgets(self) -> bool:
        """Whether the model says the same about the scene as it did before."""
        if torch.equal(self.base, again := self.stage.show(self.scene)):
            return True
        if self.noted(apart(self.base, again)):
            return False
        if self.double is None:
            return True
        stage = self.double[0]  # sums in another order, or chance that is small: more digits tell
        return apart(stage.show(self.scene), stage.show(self.scene)) <= 1e-9

    def strays(self, change: Scene, here: Tensor, there: Tensor) -> bool:
        """As ``moved``, in the model's own precision; whether more than rounding can tell, more digits decide."""
        before, after = self.base[here], self.stage.show(change)[there]
        return self.noted(apart(before, after)) and (self.double is None or self.moved(change, here, there))

    def noted(self, distance: float) -> bool:
        """Whether outputs lie further apart than rounding explains; if not, how far is kept."""
        if distance > 1000 * torch.finfo(self.stage.call.dtype).eps:
            return True
        self.deviation = max(self.deviation, distance)
        return False


def apart(a: Tensor, b: Tensor) -> float:
    """Largest difference, relative to the size of the logits; infinite if not comparable."""
    if not a.numel():
        return 0.0
    if not bool(torch.isfinite(a).all() and torch.isfinite(b).all()):
        return float("inf")
    return float(((a - b).abs() / a.abs().amax(dim=1, keepdim=True).clamp(min=1.0)).max())


class Probe:
    """A model whose outputs are watched, on the user's own graph and on others.

    Args:
        model: The module.
        task: "node" or "graph".
        data: The user's graph or graphs, if there are any.
        division: The division that is going to be used; ``None`` means the strictest.
        brief: Whether a look will do, because layers were read: a small piece of the user's graph, fewer changes, and
            more digits only where the model's own leave a doubt.
    """

    def __init__(self, model: Any, task: Task, data: Any, division: Division | None, brief: bool = False) -> None:
        self.task, self.division, self.loops, self.brief = task, division, has_loops(division), brief
        self.generator = torch.Generator().manual_seed(1)
        own = None
        if data is None:
            x = torch.randn(64, _num_features(model), generator=self.generator)
            self.values = {"edge_weight": torch.rand(64, generator=self.generator) + 0.5}
        else:
            piece = own_nodes if task == "node" else own_graphs
            x, own = piece(data, division, self.generator, brief_rows(_width(data)) if brief else MOST_ROWS)
            self.values = {n: _some(v, self.generator) for n, v in own.values.items()}
        self.untouched = model if brief else fresh_copy(model)
        few = x[:64]  # few distinct rows: wide features are then projected once for all scenes that are made up
        self.width = x.size(1)
        whole = x if x.dtype == torch.float64 else few  # numbers that the model's type may not hold are all looked at
        none = torch.empty(2, 0, dtype=torch.int64)
        weight, attr = (self.values.get(name) for name in EDGE_VALUES)
        self.call = bind(model, CanonicalGraph(whole, none, torch.arange(len(whole)), weight, attr), task)
        # The scene that is made up comes first: it is small, and finds most of what there is to be found.
        made = self._made_up(len(few))
        if own is not None and brief:  # rows of one table, which is then projected once for both
            self.grounds = self._grounds(x, made, own)
        else:
            self.grounds = self._grounds(few, made)
            self.grounds += [] if own is None else self._grounds(x, self._with_made_up(own, len(few)))
        self.small = self.grounds[0]

    @property
    def deviation(self) -> float:
        """Largest relative difference seen between two ways of computing the same logits."""
        return max(ground.deviation for ground in self.grounds)

    def findings(self) -> Iterator[Finding]:
        """Everything that the probes find."""
        try:
            yield from self._findings()
        except Failed as failed:
            yield failed.finding()

    def _findings(self) -> Iterator[Finding]:
        if self.small.finite and not self.brief and not self.small.forgets():
            yield finding("chance")  # then nothing can be learned from its outputs
            return
        if not all(ground.finite for ground in self.grounds):
            yield finding("not finite")
            return
        reasons = [] if self.brief else [*self._common()]
        yield from (finding(reason) for reason in reasons)
        if self.task == "graph":
            if any(self._batch_moves()):
                yield finding("batch", ALL_ATTACKS, alone=True)
        else:
            edge_centric = isinstance(self.division, EdgeCentric)
            reason = next(self._elsewhere(), None)
            if reason is not None:
                yield finding(reason, ("edges",) if edge_centric else ())
            elif not edge_centric and any(self._outgoing_moves()):
                yield finding("outgoing")
        shown = self.grounds[:1] if self.brief else self.grounds
        if "memory" not in reasons and not all(ground.forgets() for ground in shown):
            yield finding("memory")  # of all that was shown in between

    # What breaks every guarantee

    def _common(self) -> Iterator[str]:
        scene = self.small.scene
        values = {n: v[::3] for n, v in scene.values.items()}
        other = replace(scene, edge_index=scene.edge_index[:, ::3], values=values)
        fresh = self.small.stage.show(other, self.untouched)
        if self.small.noted(apart(fresh, self.small.stage.show(other))):
            yield "memory"
        if self.task == "node":
            order = torch.randperm(len(scene.rows), generator=self.generator)
            here, there = order, torch.arange(len(order))
        else:  # nodes in another order within their graphs
            order = torch.argsort(scene.place + torch.rand(len(scene.rows), generator=self.generator))
            here = there = torch.arange(len(self.small.base))
        shuffled = scene.selected(order)
        if self.small.strays(shuffled, here, there) or self.small.moved(shuffled, here, there):
            yield "rows"

    # Node task

    def _elsewhere(self) -> Iterator[str]:
        """What makes the output of a node depend on more than what it is connected to."""
        for ground in self.grounds:
            seen = self.brief and ground is not self.small
            for side in (1,) if seen else (0, 1):  # each node is poison once and watched once
                watched = (ground.scene.side != side).nonzero().view(-1)
                if self._poison_moves(ground, side, watched, finite=side == 0, rewired=side == 1):
                    yield from self._poison_reasons(ground, side, watched)
                    yield "edges"
        yield from self._resized()
        if not self.brief:
            yield from self._one_by_one()

    def _poison_reasons(self, ground: Ground, side: int, watched: Tensor) -> Iterator[str]:
        """Which part of a poison it is that moves outputs."""
        for finite in (True, False):
            for part in ("features", "values"):
                if self._poison_moves(ground, side, watched, finite, only=part):
                    yield part if finite or part == "values" else "overflow"

    def _poison_moves(
        self, ground: Ground, side: int, watched: Tensor, finite: bool, only: str = "", rewired: bool = False
    ) -> bool:
        change = self._poisoned(ground, side, finite, only)
        change = self._rewired(change, side) if rewired else change
        mild = torch.where(change.side == side, ground.table.borrowed(len(change.rows), self.generator), change.rows)
        return _first_to_run(
            ground, (change, replace(change, rows=mild, values=ground.scene.values)), watched, bits=True
        )

    def _poisoned(self, ground: Ground, side: int, finite: bool, only: str = "") -> Scene:
        """The scene with poison on one side."""
        scene = ground.scene
        rows, values = scene.rows, scene.values
        if only != "values":
            rows = torch.where(scene.side == side, ground.table.poison(len(rows), finite, self.generator), rows)
        if only != "features":
            there = scene.edges_of(side)
            values = {n: v.clone() for n, v in values.items()}
            for value in values.values():
                value[there] = poisoned_values(value[there], finite, self.generator)
        return replace(scene, rows=rows, values=values)

    def _rewired(self, scene: Scene, side: int) -> Scene:
        """The scene with other edges on one side: many of them at one hub, the others at random."""
        there = scene.edges_of(side).nonzero().view(-1)
        nodes = (scene.side == side).nonzero().view(-1)
        if not len(there) or len(nodes) < 2:
            return scene
        ends = nodes[torch.randint(1, len(nodes), (2, len(there)), generator=self.generator)]
        ends[1, ::2] = nodes[0]
        ends[0, ::2] = nodes[1 + torch.arange(len(there))[::2] % (len(nodes) - 1)]
        edge_index = scene.edge_index.clone()
        edge_index[:, there] = ends
        return replace(scene, edge_index=edge_index)

    def _resized(self) -> Iterator[str]:
        """Other numbers of nodes and edges elsewhere, before and between those that are watched."""
        for ground in self.grounds[:1] if self.brief else self.grounds:
            scene = ground.scene
            kept = (scene.side == 0).nonzero().view(-1)
            near = scene.selected(kept)
            scale = 2 if ground is self.small else 1 + len(scene.rows) // 1000
            change = self._behind(near, scale)
            there = torch.arange(len(change.rows) - len(kept), len(change.rows))
            compare = ground.moved if ground is self.small else ground.strays
            if compare(change, kept, there):
                yield "places" if self._places_matter() else "numbers"

    def _places_matter(self) -> bool:
        """Whether outputs depend on where in the list the edges of other nodes stand."""
        scene = self.small.scene
        order = torch.argsort((~scene.edges_of(1)).long(), stable=True)
        values = {n: v[order] for n, v in scene.values.items()}
        return self.small.moved(replace(scene, edge_index=scene.edge_index[:, order], values=values))

    def _behind(self, near: Scene, scale: int) -> Scene:
        """Some nodes, behind many others that are not connected to them."""
        far = made_up(self.generator, 1, self.values, self.loops, scale, sides=1)
        return far.joined(near).sorted()

    def _one_by_one(self) -> Iterator[str]:
        """Nodes without edges, together and alone."""
        scene = self.small.scene
        nodes = torch.arange(0, len(scene.rows), 200)
        bare = replace(scene, edge_index=scene.edge_index[:, :0], values={n: v[:0] for n, v in scene.values.items()})
        bare = bare.selected(nodes)
        together = self.small.stage.show(bare)
        each = torch.cat([self.small.stage.show(bare.selected(torch.tensor([k]))) for k in range(len(nodes))])
        if self.small.noted(apart(together, each)):
            yield "alone"

    def _outgoing_moves(self) -> Iterator[bool]:
        """Whether arcs that leave a node matter to it."""
        for ground in self.grounds[:1] if self.brief else self.grounds:
            speaks = torch.zeros(len(ground.scene.rows), dtype=torch.bool)
            speaks[ground.scene.edge_index[0]] = True
            watched = speaks.nonzero().view(-1)
            if len(watched):
                yield _first_to_run(ground, self._other_sinks(ground, speaks), watched, bits=True)
        yield _first_to_run(self.small, self._with_sinks(self.small), torch.arange(len(self.small.base)))

    def _other_sinks(self, ground: Ground, speaks: Tensor) -> Iterator[Scene]:
        """The scene with other features for nodes that send nothing, and other nodes that send to them."""
        scene, senders = ground.scene, speaks.nonzero().view(-1)
        unheard = ~speaks[scene.edge_index[1]]
        edge_index, values = scene.edge_index.clone(), {n: v.clone() for n, v in scene.values.items()}
        edge_index[0, unheard] = senders[(torch.arange(int(unheard.sum())) ** 2) % len(senders)]
        for value in values.values():
            value[unheard] = poisoned_values(value[unheard], True, self.generator)
        count = len(scene.rows)
        for rows in (ground.table.poison(count, True, self.generator), ground.table.borrowed(count, self.generator)):
            yield replace(scene, rows=torch.where(speaks, scene.rows, rows), edge_index=edge_index, values=values)

    def _with_sinks(self, ground: Ground) -> Iterator[Scene]:
        """The scene with nodes that only receive: from some nodes one arc, from others three or a hundred."""
        scene, count, new = ground.scene, len(ground.scene.rows), 120
        leaving = torch.tensor([1, 0, 3, 0])[torch.arange(count) % 4]
        leaving[::70] = 100
        source = torch.repeat_interleave(torch.arange(count), leaving)
        arcs = torch.stack([source, count + torch.arange(len(source)) % new])
        picked = torch.arange(len(source)) % scene.edge_index.size(1)
        for rows in (ground.table.large(new, self.generator), ground.table.borrowed(new, self.generator)):
            yield Scene(
                torch.cat([scene.rows, rows]),
                torch.cat([scene.edge_index, arcs], dim=1),
                {n: torch.cat([v, v[picked]]) for n, v in scene.values.items()},
                torch.cat([scene.side, torch.full((new,), 2)]),
                torch.cat([scene.place, torch.rand(new, generator=self.generator)]),
            ).sorted()

    # Graph task

    def _batch_moves(self) -> Iterator[bool]:
        """Whether graphs of one batch influence each other."""
        for ground in self.grounds:
            graphs = torch.arange(len(ground.base))
            for side in (0, 1):
                watched = graphs[graphs % 2 != side]
                yield self._poison_moves(ground, side, watched, finite=side == 0)
            kept = ground.scene.selected((ground.scene.side == 0).nonzero().view(-1))
            alone = replace(kept, place=kept.place // 2)
            compare = ground.moved if ground is self.small else ground.strays
            yield compare(alone, graphs[::2], torch.arange(len(graphs[::2])))
        scene = self.small.scene
        each = [
            replace(one := scene.selected((scene.place == g).nonzero().view(-1)), place=one.place * 0) for g in range(8)
        ]
        separate = torch.cat([self.small.stage.show(one) for one in each])
        yield self.small.noted(apart(self.small.base[:8], separate))

    # Setting up

    def _made_up(self, few: int) -> Scene:
        make = made_up if self.task == "node" else made_up_graphs
        return make(self.generator, few, self.values, self.loops)

    def _with_made_up(self, own: Scene, few: int) -> Scene:
        """The user's own graph, and hubs and chains beside it."""
        extra = self._made_up(few)
        shift = own.place.max() + 1
        both = own.joined(replace(extra, place=extra.place + shift))
        return both if self.task == "node" else replace(both, side=both.place % 2)

    def _grounds(self, x: Tensor, *scenes: Scene) -> list[Ground]:
        table = Table.of(x, self.generator)
        stage = Stage(self.call, table.x, BRIEF_PLAIN_NUMBERS if self.brief else MOST_PLAIN_NUMBERS)
        return [Ground(stage, lambda: self._double_call, table, scene, self.brief) for scene in scenes]

    @cached_property
    def _double_call(self) -> Caller | None:
        """The model in double precision, if it can be had."""
        if not isinstance(self.untouched, torch.nn.Module):
            return None
        call = self.call
        try:
            call = replace(call, model=fresh_copy(self.untouched).double(), dtype=torch.float64)
            logits = Stage(call, torch.zeros(1, self.width)).show(self._made_up(1))
        except Exception:
            return None
        return call if logits.dtype == torch.float64 else None


def _first_to_run(ground: Ground, changes: Iterable[Scene], watched: Tensor, bits: bool = False) -> bool:
    """Whether the first change moves outputs on which the model can be run.

    A model may read features as the numbers of kinds, and fail on others: then those of other nodes are poison enough.
    """
    first, second = changes
    try:
        return ground.moved(first, watched, bits=bits)
    except Failed:
        return ground.moved(second, watched, bits=bits)


def _num_features(model: Any) -> int:
    for layer in model.modules() if isinstance(model, torch.nn.Module) else ():
        for attribute in ("in_channels", "in_features"):
            width = getattr(layer, attribute, None)
            if isinstance(width, int) and width > 0:
                return width
    raise ModelContractError("cannot tell how many features the model takes: pass data= to audit.")


def _width(data: Any) -> int:
    """Number of features of a graph, or of the first of several; 1 if there are none to be counted."""
    x = getattr(data if isinstance(data, Data) else data[0] if len(data) else None, "x", None)
    return int(x.size(1)) if isinstance(x, Tensor) and x.dim() == 2 else 1


def _some(value: Tensor, generator: torch.Generator) -> Tensor:
    """Some of the values that edges have, or made-up ones of that shape if there is no edge."""
    return value[:4096] if value.size(0) else torch.rand(64, *value.shape[1:], generator=generator).to(value.dtype)
