"""``Core``: what a live graph asks of one kind of defence. It applies events and keeps labels and radii current.

A batch of events takes two steps. ``prepare`` changes the graph and computes what has to be computed again. Then
``commit`` makes it count, or ``roll_back`` undoes it. In between, the batch is written to the journal.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from agnncert.certificates.claim import Claim
from agnncert.certificates.ids import Id, id_array
from agnncert.defence import Defence, Model
from agnncert.errors import AgnncertError
from agnncert.graphs.graph import Task
from agnncert.graphs.targets import CanonicalData, Targets
from agnncert.proving.certificate import Certificate, Decision
from agnncert.proving.evidence import Evidence
from agnncert_live.conversion import GraphData, data_of
from agnncert_live.events import AlreadyCounted, Event, Moved, Refused
from agnncert_live.rows import grown
from agnncert_live.spent import Reference, Spent
from agnncert_live.store import Store
from agnncert_live.subgraphs import Subgraphs

Array = npt.NDArray[Any]
Computed = TypeVar("Computed")  # what a kind of defence computes for a batch

NO_TARGET = -1  # place in line of what is no target


class AddressedEvent(NamedTuple):
    """An event, and the number of the graph that it is about; -1 if it names none that there is."""

    event: Event
    graph: int


class Prepared(NamedTuple, Generic[Computed]):
    """A batch that does not count yet.

    Attributes:
        refused: The events that were refused.
        known: Places of the events that had counted before.
        computed: What was computed for the others.
    """

    refused: list[Refused]
    known: list[int]
    computed: Computed


class Outcome(NamedTuple):
    """Targets whose label or radius a batch changed, new ones included, and ids of targets that are gone."""

    moved: tuple[Moved, ...]
    gone: tuple[Id, ...]


@dataclass
class Answers:
    """The label and the radius of each target, by slot of the node or number of the graph.

    Attributes:
        label: Its label.
        radius: Its radius, before it is cut at :meth:`Core.largest_radius`.
        place: Its place in line; ``NO_TARGET`` for what is no target.
    """

    label: Array
    radius: Array
    place: Array

    @classmethod
    def unknown(cls, size: int, targets: Array) -> "Answers":
        """Returns answers for some targets among ``size`` slots or graphs, all of which are still unknown."""
        answers = cls(
            label=np.zeros(size, dtype=np.int64),
            radius=np.zeros(size, dtype=np.int64),
            place=np.full(size, NO_TARGET, dtype=np.int64),
        )
        answers.place[targets] = np.arange(len(targets))
        return answers

    @property
    def is_target(self) -> Array:
        """Whether each slot or graph is a target."""
        is_target: Array = self.place != NO_TARGET
        return is_target

    def grow(self, size: int) -> None:
        """Makes room for more slots. They hold no targets."""
        before = len(self.place)
        if size <= before:
            return
        self.label = grown(self.label, size)
        self.radius = grown(self.radius, size)
        self.place = grown(self.place, size)
        self.place[before:] = NO_TARGET


@dataclass
class Subject:
    """What a live graph is about.

    Attributes:
        store: The graph.
        answers: The targets.
        rows: Graph task: row of each graph in the data.
        y: Node task: labels by slot, if there are any.
        all_nodes: Whether nodes that are added become targets.
        given: Graph task: the data that it began with.
    """

    store: Store
    answers: Answers
    rows: Array
    y: Array | None
    all_nodes: bool
    given: Any


@dataclass(frozen=True)
class Beginning:
    """What a core is made from, beside the graph.

    Attributes:
        model: The trained module.
        defence: The defence.
        tolerance: As for ``certify``; ``None`` if the caller left it out.
        canonical_data: The data in canonical form.
        chosen: The targets in canonical form.
    """

    model: Model
    defence: Defence
    tolerance: float | None
    canonical_data: CanonicalData
    chosen: Targets


class Core(ABC, Generic[Computed]):
    """A graph with the labels and radii of its targets, for one kind of defence.

    Attributes:
        store: The graph.
        answers: The targets.
        task: ``"node"`` or ``"graph"``.
        rows: Graph task: row of each graph in the data.
        y: Node task: labels by slot, if there are any.
        all_nodes: Whether nodes that are added become targets.
        tolerance: How far two computations of one logit may lie apart, relative to the largest; None if it does not
            matter to this kind of defence.
    """

    tolerance: float | None = None

    def __init__(self, subject: Subject) -> None:
        self.store = subject.store
        self.answers = subject.answers
        self.task: Task = subject.store.subgraphs.task
        self.rows = subject.rows
        self.y = subject.y
        self.all_nodes = subject.all_nodes
        self._given = subject.given
        self._next_place = int(subject.answers.place.max(initial=NO_TARGET)) + 1

    # What a kind of defence does.

    @classmethod
    @abstractmethod
    def subgraphs(cls, defence: Defence, task: Task) -> Subgraphs:
        """Returns how edges are kept: the subgraphs of the defence.

        Raises:
            AgnncertError: The defence cannot be kept up to date while the graph changes.
        """

    @classmethod
    @abstractmethod
    def identity(cls, defence: Defence, tolerance: float | None) -> dict[str, str]:
        """Returns the settings by which a journal knows its defence, by name."""

    @classmethod
    @abstractmethod
    def begin(cls, subject: Subject, beginning: Beginning) -> "Core[Any]":
        """Audits the model and returns the core. Nothing is computed before :meth:`compute_all`."""

    @abstractmethod
    def compute_all(self) -> None:
        """Computes the labels and radii of all targets."""

    @abstractmethod
    def _compute_affected(self) -> Computed:
        """Computes what the present batch may have altered. Nothing counts yet."""

    @abstractmethod
    def _touched(self, computed: Computed) -> Array:
        """Returns the targets whose label or radius may be altered."""

    @abstractmethod
    def _keep(self, computed: Computed) -> None:
        """Makes count what was computed for the present batch."""

    @abstractmethod
    def _answer(self, targets: Array, computed: Computed) -> None:
        """Writes label and radius of some targets, after the batch."""

    @abstractmethod
    def _undone(self) -> None:
        """Is called after the graph was changed back, while the batch still says what was touched."""

    @abstractmethod
    def largest_radius(self) -> int:
        """Returns the number at which radii are cut."""

    def structure_radius(self) -> Array | None:
        """Returns how many edges and nodes may be added or deleted, if the defence has a radius for these alone."""
        return None

    @abstractmethod
    def decision(self, target: int) -> Decision:
        """Returns what is proved about one target."""

    @abstractmethod
    def certificate(self) -> Certificate:
        """Returns the certificate of the graph as it is."""

    @abstractmethod
    def spent(self, reference: Reference, since: Certificate, target: int) -> Spent:
        """Returns what has happened to a target since a reference, beside what that is proof against."""

    @abstractmethod
    def proves(self, certificate: Certificate) -> bool:
        """Whether a certificate is about this model and defence."""

    @property
    @abstractmethod
    def summary(self) -> Mapping[str, Any]:
        """What the live graph is made of, by name, as JSON values."""

    # A batch.

    def prepare(self, events: list[AddressedEvent], skip_bad: bool) -> Prepared[Computed]:
        """Changes the graph and computes what has to be computed again. Nothing counts before :meth:`commit`.

        Args:
            events: The events.
            skip_bad: Leave out events that cannot be applied.

        Raises:
            AgnncertError: An event cannot be applied, or the model fails. Nothing has changed.
        """
        try:
            refused, known = self._change(events, skip_bad)
            self._note_new_targets()
            return Prepared(refused, known, self._compute_affected())
        except BaseException:
            self.roll_back()
            raise

    def _change(self, events: list[AddressedEvent], skip_bad: bool) -> tuple[list[Refused], list[int]]:
        """Changes the graph. Returns the events that were refused, and the places of those that had counted before."""
        refused: list[Refused] = []
        known: list[int] = []
        for index, (event, graph) in enumerate(events):
            mark = len(self.store.batch.undo)
            try:
                self.store.apply(event, graph)
            except AlreadyCounted:
                self.store.rollback(mark)
                known.append(index)
            except AgnncertError as error:
                self.store.rollback(mark)
                if not skip_bad:
                    raise type(error)(f"event {index} ({event.kind}): {error}") from error
                refused.append(Refused(index, event, str(error)))
        return refused, known

    def _note_new_targets(self) -> None:
        """Makes targets of new nodes if all nodes are targets."""
        if self.task == "graph":
            return
        slots = len(self.store.nodes.alive)
        self.answers.grow(slots)
        if self.y is not None:
            self.y = grown(self.y, slots)
        for slot in self.store.batch.added:
            if self.y is not None:
                self.y[slot] = 0 if self.y.dtype.kind in "bu" else -1
            if self.all_nodes and self.store.nodes.alive[slot]:
                self.answers.place[slot] = self._next_place
                self._next_place += 1

    def roll_back(self) -> None:
        """Undoes what was prepared."""
        if self.task == "node":
            added = [slot for slot in self.store.batch.added if slot < len(self.answers.place)]
            self.answers.place[added] = NO_TARGET
        self.store.rollback()
        self._undone()
        self.store.end_batch()

    def commit(self, prepared: Prepared[Computed]) -> Outcome:
        """Makes a prepared batch count."""
        touched = self._touched(prepared.computed)
        added = set(self.store.batch.added)
        gone = self._remove_dead_targets()
        self._keep(prepared.computed)
        self.store.end_batch()
        touched = touched[self.answers.is_target[touched]]
        before = self._labels_and_radii(touched)
        self._answer(touched, prepared.computed)
        after = self._labels_and_radii(touched)
        moved = []
        for target, (old_label, old_radius), (label, radius) in zip(touched.tolist(), before, after, strict=True):
            if self.task == "node" and target in added:
                moved.append(Moved(self.id_of(target), (None, label), (None, radius)))
            elif (old_label, old_radius) != (label, radius):
                moved.append(Moved(self.id_of(target), (old_label, label), (old_radius, radius)))
        return Outcome(tuple(moved), gone)

    def _remove_dead_targets(self) -> tuple[Id, ...]:
        """Makes nodes that are dead no targets, and returns the ids of those that were."""
        if self.task == "graph":
            return ()
        gone = []
        for slot in self.store.batch.maybe_dead:
            if not self.store.nodes.alive[slot] and self.answers.place[slot] != NO_TARGET:
                self.answers.place[slot] = NO_TARGET
                gone.append(self.store.nodes.name(slot))
        return tuple(gone)

    def _labels_and_radii(self, targets: Array) -> list[tuple[int, int]]:
        radius = np.minimum(self.answers.radius[targets], self.largest_radius())
        return list(zip(self.answers.label[targets].tolist(), radius.tolist(), strict=True))

    # Targets.

    def order(self) -> Array:
        """Returns the slots of the targets (graph task: numbers of the graphs) in their order."""
        if self.task == "graph":
            return np.arange(len(self.rows))
        targets = np.flatnonzero(self.answers.is_target)
        return targets[np.argsort(self.answers.place[targets], kind="stable")]

    def id_of(self, target: int) -> Id:
        """Returns the id of a target node, or the row of a target graph."""
        if self.task == "graph":
            return int(self.rows[target])
        return self.store.nodes.name(target)

    def row_of(self, target: int) -> int:
        """Returns the row of a target in the data."""
        if self.task == "graph":
            return int(self.rows[target])
        nodes = self.store.nodes
        is_older = nodes.alive[: nodes.count] & (nodes.born[: nodes.count] < nodes.born[target])
        return int(is_older.sum())

    def target_rows(self) -> Array:
        """Returns the row of each target in the data, in the order of targets."""
        if self.task == "graph":
            return self.rows
        return self.store.nodes.rows()[self.order()]

    def truth_of(self, target: int) -> int | None:
        """Returns the true class of a target node, if it is known."""
        if self.y is None or self.y.ndim != 1:
            return None
        return int(self.y[target])

    def decided(self, target: int, claim: Claim, evidence: Evidence) -> Decision:
        """Returns the decision about one target, given the claim and the evidence of it alone."""
        truth = self.truth_of(target)
        certificate = Certificate(
            claim,
            evidence,
            id_array([self.id_of(target)]),
            np.array([self.row_of(target)]),
            None if truth is None else np.array([truth]),
            np.array([self.degree(target)]),
        )
        return certificate[self.id_of(target)]

    def degree(self, target: int) -> int:
        """Returns the number of distinct neighbours of a node, or of edges of a graph."""
        store = self.store
        if self.task == "node":
            degree = len(store.neighbours(target))
            has_dropped_loop = not store.subgraphs.keeps_loops and bool(store.loops.get(target))
            return degree - int(has_dropped_loop)
        slots = np.fromiter(store.nodes.slot_of[target].values(), dtype=np.int64)
        copies = store.union.of_node.gather(slots)[0]
        arcs = store.union.leaving.gather(copies)[0]
        pairs = np.sort(store.union.ends(arcs), axis=0)
        return len(np.unique(pairs[0] << 32 | pairs[1]))

    def data(self) -> GraphData:
        """Returns the graph (or graphs) as it is."""
        data = data_of(self.store, self.task, self.y, self._given, self.rows)
        if isinstance(data, Data):
            self.store.rules.describe(data)
        return data


def as_array(numbers: Iterable[int]) -> Array:
    """Returns numbers as an array of int64."""
    return np.fromiter(numbers, dtype=np.int64)
