"""``LiveGraph``: labels, radii and the certificate of a graph that changes, current after every event."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certifier import assemble
from agnncert.divisions import rule_of
from agnncert.errors import AgnncertError, GraphError, ModelContractError, SettingsError
from agnncert.graphs.targets import prepared
from agnncert.live.casting import Ballots, Caster
from agnncert.live.cells import Cells
from agnncert.live.counting import Counter
from agnncert.live.events import Event, events_of
from agnncert.live.nodes import grown
from agnncert.live.reach import hops_of
from agnncert.live.start import data_of, store_of
from agnncert.live.writing import write_out
from agnncert.proof.certificate import Certificate
from agnncert.proof.ids import Id, id_array
from agnncert.proof.vote import Vote
from agnncert.voting.auditing import audit
from agnncert.voting.call import bind
from agnncert.voting.digest import model_digest
from agnncert.voting.first_call import require_model

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Refused:
    """An event that was refused: its place in the batch, and why."""

    index: int
    event: Event
    reason: str


@dataclass(frozen=True)
class Moved:
    """A target whose label or radius is another than before a batch.

    Attributes:
        target: Its id (graph task: its row).
        label: Label before and after; None before if the target is new.
        radius: Radius before and after; None before if the target is new.
    """

    target: Id
    label: tuple[int | None, int]
    radius: tuple[int | None, int]

    @property
    def flipped(self) -> bool:
        """Whether the label is another."""
        return self.label[0] is not None and self.label[0] != self.label[1]

    def fell_below(self, threshold: float) -> bool:
        """Whether the radius was at or above a threshold (or the target was not there) and is now below it."""
        return self.radius[1] < threshold and (self.radius[0] is None or self.radius[0] >= threshold)


@dataclass(frozen=True)
class Applied:
    """What became of a batch.

    Attributes:
        number: How many events have been applied since the live graph began, this batch included.
        events: How many events of this batch were applied.
        repeated: Whether a batch of this id had been acknowledged before: nothing was done now.
        moved: Targets whose label or radius changed, new ones included.
        gone: Ids of targets that were deleted.
        refused: Events that were left out, and why.
    """

    number: int
    events: int
    repeated: bool = False
    moved: tuple[Moved, ...] = ()
    gone: tuple[Id, ...] = ()
    refused: tuple[Refused, ...] = ()

    @property
    def flipped(self) -> tuple[Moved, ...]:
        """Targets whose label is another than before."""
        return tuple(one for one in self.moved if one.flipped)

    def fell_below(self, threshold: float) -> tuple[Moved, ...]:
        """Targets whose radius is below a threshold now and was not before."""
        return tuple(one for one in self.moved if one.fell_below(threshold))


@dataclass
class _Answers:
    """Label and radius of each target, by slot of the node or number of the graph."""

    label: Array
    radius: Array
    since: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # place in line; -1: no target


def _array(numbers: Iterable[int]) -> Array:
    return np.fromiter(numbers, dtype=np.int64)


class LiveGraph:
    """A graph whose decisions and proofs are current after every event.

    After any sequence of events, labels, radii and :meth:`certificate` are those of ``ac.certify`` on :meth:`data`, at
    the cost of the few subgraphs that an event touches. The model stays as it is; with other weights, begin anew.

    Args:
        model: A trained module, in eval mode, as for ``certify``.
        data: The graph as it is now (a ``Data``), or a list of graphs; ideally with ``node_id``, without which no node
            can be deleted.
        division: ``EdgeCentric`` or ``NodeCentric``, with any settings.
        vote: As for ``certify``.
        targets: Mask or row numbers of the nodes (graphs) that are kept certified. When not given, all of them are, and
            nodes that are added as well.
        tolerance: As for ``certify``.

    Example:
        ``live = ac.LiveGraph(model, data, ac.NodeCentric(300))``, then
        ``live.apply(ac.Event("add_edge", "alice", "bob")).flipped``.

    Raises:
        ModelContractError: The model breaks an assumption of the proof.
        GraphError: The graph cannot be certified as it is.
        DivisionError: The division is another than these two.
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        division: Any,
        vote: Vote | None = None,
        *,
        targets: Any = None,
        tolerance: float | None = None,
    ) -> None:
        require_model(model)
        if vote is not None and not isinstance(vote, Vote):
            raise SettingsError(f'vote={vote!r:.60}: expected a Vote, such as Vote(empty="abstain", prior=5).')
        ready = prepared(data, targets)
        self.task = ready.task
        cells = Cells(division, self.task)
        chosen = ready.targets(targets, cells.keeps_loops)
        report = audit(model, self.task, division, ready.data)
        if not report.ok:
            raise ModelContractError(str(report))
        self.model, self.division, self.locality = model, division, report.locality
        self.tolerance = report.tolerance if tolerance is None else max(tolerance, report.tolerance)
        call = bind(model, chosen.graph, self.task)
        rule, _ = rule_of(division, self.task)
        self.vote = (vote or Vote()).under(rule, call.num_classes)
        self._digest = model_digest(model)
        self._lock = threading.RLock()
        self._store = store_of(ready, chosen, targets, cells)
        self._caster = Caster(self._store, call, self.tolerance, hops_of(model, report.locality))
        self._counter = Counter(self._store, rule, self.vote, call.num_classes, chosen.id_kind)
        self._given: Any = None if self.task == "node" else ready.data
        self._rows = chosen.rows
        self._graph_of_row = {int(row): number for number, row in enumerate(chosen.rows)}
        y = getattr(data, "y", None) if self.task == "node" else None
        self._y = None if y is None else torch.as_tensor(y).detach().cpu().numpy().copy()
        self._all = targets is None
        self._number = 0
        self._listeners: list[Callable[[Applied], None]] = []
        self._begin(chosen.places)

    def _begin(self, places: Array) -> None:
        size = len(self._store.nodes.alive) if self.task == "node" else len(places)
        self._answers = _Answers(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.full(size, -1))
        self._answers.since[places] = np.arange(len(places))
        self._next_since = len(places)
        store = self._store
        copies = store.union.live_copies()
        if self.task == "node":
            copies = copies[self._answers.since[store.union.node[copies]] >= 0]
        copies = copies[store.cells.votes(store.nodes, store.union, copies)]
        plain = self.task == "node" and not store.cells.gated
        self._keep(*self._caster.cast(copies, places if plain else places[:0]))
        self._count(places)

    # What is asked.

    @property
    def targets(self) -> npt.NDArray[Any]:
        """Ids of the targets (graph task: rows of the graphs), in the order of all that is said about them."""
        with self._lock:
            if self.task == "graph":
                return self._rows.copy()
            return id_array([self._store.nodes.name[slot] for slot in self._order().tolist()])

    @property
    def label(self) -> npt.NDArray[np.int64]:
        """The label of each target, shape ``[n]``."""
        with self._lock:
            return self._answers.label[self._order()]

    @property
    def radius(self) -> npt.NDArray[np.int64]:
        """The certified radius of each target, shape ``[n]``."""
        with self._lock:
            return np.minimum(self._answers.radius[self._order()], self._num_groups())

    @property
    def number(self) -> int:
        """How many events have been applied."""
        return self._number

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return sum(len(slots) for slots in self._store.nodes.slot_of)

    def __len__(self) -> int:
        return int((self._answers.since >= 0).sum())

    def data(self) -> Any:
        """The graph (or graphs) as it is, with ``x``, ``edge_index``, edge values, ``node_id`` and ``y``."""
        with self._lock:
            return data_of(self._store, self.task, self._y, self._given, self._rows)

    def subscribe(self, listener: Callable[[Applied], None]) -> Callable[[], None]:
        """Has ``listener`` called after every batch that was applied; returns how to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # What happens.

    def apply(self, changes: Any, *, graph: int | None = None, skip_bad: bool = False) -> Applied:
        """Applies events, all of them or, if one cannot be applied, none.

        Args:
            changes: A ``Perturbation``, an ``Event``, or several of them, applied in order.
            graph: Graph task: row of the graph that a ``Perturbation`` is about.
            skip_bad: Leave out events that cannot be applied, and say so, in place of refusing all.

        Returns:
            What became of them: labels that flipped, radii that fell.

        Raises:
            GraphError: An event cannot be applied; says which and why. Nothing has changed.
            ModelContractError: The model fails on the new graph. Nothing has changed.
        """
        with self._lock:
            events = list(events_of(changes, graph))
            refused = self._change(events, skip_bad)
            applied = len(events) - len(refused)
            try:
                affected, edgeless = self._affected()
                ballots = self._caster.cast(affected, edgeless)
            except BaseException:
                self._roll_back()
                raise
            moved, gone = self._commit(*ballots)
            self._number += applied
            result = Applied(self._number, applied, False, moved, gone, tuple(refused))
        for listener in list(self._listeners):
            listener(result)
        return result

    def _change(self, events: list[Event], skip_bad: bool) -> list[Refused]:
        refused: list[Refused] = []
        for index, event in enumerate(events):
            mark = len(self._store.now.undo)
            try:
                self._store.apply(event, self._graph_number(event))
            except AgnncertError as error:
                if skip_bad:
                    self._store.rollback(mark)
                    refused.append(Refused(index, event, str(error)))
                    continue
                self._roll_back()
                raise type(error)(f"event {index} ({event.kind}): {error}") from error
        return refused

    def _graph_number(self, event: Event) -> int:
        if self.task == "node":
            if event.graph is not None:
                raise GraphError("the event names a graph, but nodes of one graph are classified here: leave it out.")
            return 0
        number = self._graph_of_row.get(-1 if event.graph is None else event.graph)
        if number is None:
            named = "names no graph" if event.graph is None else f"names graph {event.graph}, which is none of them"
            raise GraphError(f"the event {named}: give the row of one of the {len(self._rows)} graphs.")
        return number

    def _affected(self) -> tuple[Array, Array]:
        """Copies whose ballots have to be cast again, and nodes whose prediction without edges has to be."""
        store = self._store
        self._note_new_targets()
        edgeless = np.fromiter(store.now.features, dtype=np.int64)
        edgeless = edgeless[store.nodes.alive[edgeless]]
        if self.task == "graph" or store.cells.gated:
            edgeless = edgeless[:0]
        else:
            edgeless = edgeless[self._answers.since[edgeless] >= 0]
        return self._caster.affected(self._answers.since >= 0 if self.task == "node" else np.zeros(0)), edgeless

    def _note_new_targets(self) -> None:
        """Nodes that are new become targets if all nodes are."""
        if self.task == "graph":
            return
        store, answers = self._store, self._answers
        size, old = len(store.nodes.alive), len(answers.since)
        if size > old:
            for name in ("label", "radius", "since"):
                setattr(answers, name, grown(getattr(answers, name), size))
            answers.since[old:] = -1
        if self._y is not None:
            self._y = grown(self._y, size)
        for slot in store.now.born:
            if self._y is not None:
                self._y[slot] = False if self._y.dtype == bool else -1
            if self._all and store.nodes.alive[slot]:
                answers.since[slot] = self._next_since
                self._next_since += 1

    def _roll_back(self) -> None:
        if self.task == "node":
            born = [slot for slot in self._store.now.born if slot < len(self._answers.since)]
            self._answers.since[born] = -1
        self._store.rollback()
        self._store.settle()

    def _commit(self, listed: Ballots, edgeless: Ballots) -> tuple[tuple[Moved, ...], tuple[Id, ...]]:
        """Makes the new ballots count; says which targets have another label or radius, and which are gone."""
        store, answers = self._store, self._answers
        self._keep(listed, edgeless)
        if self.task == "graph":
            graphs = store.nodes.graph[store.union.node[_array(store.now.ends)]]
            touched = np.unique(np.concatenate([graphs, store.nodes.graph[_array(store.now.features)]]))
            store.settle()
            return self._recount(touched.astype(np.int64), {}), ()
        union = store.union
        nodes = [union.node[_array(store.now.ends)], union.node[listed.of], edgeless.of]
        touched = np.unique(np.concatenate(nodes)).astype(np.int64)
        born = dict(store.now.born)
        gone = []
        for slot in store.now.died:
            if not store.nodes.alive[slot] and answers.since[slot] >= 0:
                answers.since[slot] = -1
                gone.append(store.nodes.name[slot])
        store.settle()
        return self._recount(touched[answers.since[touched] >= 0], born), tuple(gone)  # type: ignore[arg-type]

    def _recount(self, targets: Array, new: Any) -> tuple[Moved, ...]:
        answers, most = self._answers, self._num_groups()
        before = answers.label[targets].tolist(), np.minimum(answers.radius[targets], most).tolist()
        self._count(targets)
        after = answers.label[targets].tolist(), np.minimum(answers.radius[targets], most).tolist()
        moved = []
        for k, target in enumerate(targets.tolist()):
            if target in new:
                moved.append(Moved(self._id(target), (None, after[0][k]), (None, after[1][k])))
            elif before[0][k] != after[0][k] or before[1][k] != after[1][k]:
                moved.append(Moved(self._id(target), (before[0][k], after[0][k]), (before[1][k], after[1][k])))
        return tuple(moved)

    def _id(self, target: int) -> Id:
        return int(self._rows[target]) if self.task == "graph" else self._store.nodes.name[target]  # type: ignore[return-value]

    def _keep(self, listed: Ballots, edgeless: Ballots) -> None:
        store = self._store
        store.cast[listed.of] = True
        store.ballot[listed.of], store.stable[listed.of] = listed.ballot, listed.stable
        store.close[listed.of] = listed.close
        store.edgeless[edgeless.of], store.edgeless_stable[edgeless.of] = edgeless.ballot, edgeless.stable
        store.edgeless_close[edgeless.of] = edgeless.close

    def _count(self, targets: Array) -> None:
        if len(targets):
            label, radius = self._counter.evidence(targets).label_and_radius()
            self._answers.label[targets], self._answers.radius[targets] = label, radius

    def _num_groups(self) -> int:
        """How many groups there are: with one per neighbour, as many as there are nodes or pairs now."""
        store = self._store
        if not store.cells.own_groups:
            return int(self.division.num_groups)
        if not store.cells.by_pair:
            return max(1, *(len(slots) for slots in store.nodes.slot_of))
        cells = np.unique(store.union.cell[store.union.live_copies()])
        graph = store.nodes.graph[cells >> 32]
        return max(1, int(np.bincount(graph).max(initial=0)))

    def _order(self) -> Array:
        """Slots of the targets in their order."""
        if self.task == "graph":
            return np.arange(len(self._rows))
        targets = np.flatnonzero(self._answers.since >= 0)
        return targets[np.argsort(self._answers.since[targets], kind="stable")]

    def certificate(self) -> Certificate:
        """The certificate of the graph as it is: that of ``certify``, which ``verify`` accepts with data and model.

        Its cost is that of bringing the graph into canonical form, not that of casting ballots.

        Raises:
            ModelContractError: The model has been altered since.
        """
        with self._lock:
            if model_digest(self.model) != self._digest:
                raise ModelContractError("the model is not the one that this live graph began with: begin a new one.")
            chosen, votes, cover, settled = write_out(
                self._store, self._caster, self._counter, self.data(), self._order(), self._rows, self._num_groups()
            )
            self._count(settled)
            return assemble(chosen, self.division, votes, cover, self.tolerance, self.locality, self._digest, self.vote)
