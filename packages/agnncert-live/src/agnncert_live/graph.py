"""``LiveGraph``: labels, radii and the certificate of a graph that changes, current after every event."""

import hashlib
import json
import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.ids import Id, encode_id, id_array
from agnncert.certificates.voting_rule import VotingRule
from agnncert.certifier import certify, threshold_of, with_teaching_note, with_threshold
from agnncert.datasets.encoding import Encoding
from agnncert.defence import Defence, Model, TargetChoice, as_defence
from agnncert.defence import GraphData as GivenData
from agnncert.divided.defence import Divided
from agnncert.divisions.base import Division
from agnncert.engine.arguments import require_order
from agnncert.errors import AgnncertError, GraphError, IdError, ModelContractError, SettingsError
from agnncert.evaluation_mode import require_evaluating_layers
from agnncert.graphs.graph import Task
from agnncert.graphs.labels import class_numbers
from agnncert.graphs.perturbation import Perturbation
from agnncert.graphs.targets import CanonicalData, Targets, prepared
from agnncert.models.digest import model_digest
from agnncert.progress import OnProgress, tell
from agnncert.proving.certificate import Certificate, Decision
from agnncert_live.append import AppendCore
from agnncert_live.conversion import (
    Arrays,
    GraphData,
    WrittenGraph,
    read_graphs,
    read_node_data,
    store_of,
    value_names,
    with_derived,
    without_derived,
    write_graph,
)
from agnncert_live.core import NO_TARGET, AddressedEvent, Answers, Beginning, Core, Outcome, Prepared, Subject
from agnncert_live.divided import DividedCore
from agnncert_live.edge_rules import EdgeRules
from agnncert_live.events import Applied, Event, events_of, joined
from agnncert_live.journal import (
    NOW,
    REMEMBERED,
    UNREADABLE,
    Acknowledged,
    Journal,
    JournalContents,
    JournalError,
)
from agnncert_live.nodes import NewNodes
from agnncert_live.spent import Reference, Spent
from agnncert_live.stacked import StackedCore

log = logging.getLogger(__name__)

Changes: TypeAlias = Perturbation | Event | Iterable[Perturbation | Event]

SNAPSHOT_EVERY = 20_000  # events
AT_ONCE = 250  # events of a batch, after which others get their turn
_PAUSE = 0.001  # seconds
_EVENTS_AT_ONCE = 2_000  # that are applied together when a journal is read
OUTCOMES = 100  # batches of which it is remembered what they did
_LONGEST_ID = 250

CORES: dict[str, type[Core[Any]]] = {  # by the kind of the defence
    "votes": DividedCore,
    "stacked": StackedCore,
    "append": AppendCore,
}


class StoredGraph(NamedTuple):
    """A graph of a journal: in canonical form, with its targets and the other statements about it."""

    canonical_data: CanonicalData
    chosen: Targets
    dtypes: dict[str, torch.dtype]
    rules: EdgeRules
    all_nodes: bool
    number: int


@dataclass(frozen=True)
class OldJournal:
    """The journal of an earlier model, whose graph a new model goes on with.

    Attributes:
        path: The file. No other process may have it open.
        encoding: The encoding that the new model was trained with; None if its data had none.
        class_names: Names of the classes that the new model was trained with; empty if they have none.
        known: The class of nodes that are known by now, by id.
    """

    path: str | Path
    encoding: Encoding | None = None
    class_names: tuple[str, ...] = ()
    known: Mapping[Id, int] = field(default_factory=dict)


class LiveGraph:
    """A graph whose decisions and proofs are current after every event.

    After any sequence of events, labels, radii and :meth:`certificate` are those of ``ac.certify`` on :meth:`data`, at
    the cost of what an event touches. The model stays as it is. With other weights, begin anew. All methods may be
    called from several threads.

    Args:
        model: A trained module, in eval mode, as for ``certify``.
        data: The graph to begin with (a ``Data``), or a list of graphs; ideally with ``node_id``, without which no node
            can be deleted. Node task: may be None if the journal exists.
        defence: As for ``certify``: ``EdgeCentric`` or ``NodeCentric``, with any settings, ``StackedVotes``,
            ``AppendOnly``, or a result of ``choose_voting_rule`` or ``choose_threshold``.
        voting_rule: As for ``certify``.
        targets: Mask or row numbers of the nodes (graphs) that are kept certified. When not given, all of them are, and
            nodes that are added as well.
        tolerance: As for ``certify``.
        journal: A file in which every batch is written before it counts. If it exists, the live graph goes on where it
            stopped: with all batches that were acknowledged, however the process ended.
        snapshot_every: After how many events the journal is replaced by a snapshot of the graph.
        new_nodes: Which nodes events may add; any when not given.
        old_journal: A journal of another model. If ``journal`` does not exist, the live graph begins with its graph,
            event keys and the acknowledged batches in it instead of data.
        progress: Called while a journal is read.

    Attributes:
        model: The model.
        defence: The defence.
        threshold: How its threshold was chosen; ``None`` if nothing says so.
        task: ``"node"`` or ``"graph"``.
        number: How many events have been applied.

    Example:
        ``live = agnncert_live.LiveGraph(model, data, ac.NodeCentric(300), journal="live.journal")``, then
        ``live.apply(agnncert_live.Event("add_edge", "alice", "bob"), id="topic-0:17").flipped``.

    Raises:
        ModelContractError: The model breaks an assumption of the proof.
        GraphError: The graph cannot be certified as it is.
        DivisionError: The division cannot be kept up to date event by event.
        JournalError: The journal is damaged, in use, or belongs to another graph, model, division or voting rule.
    """

    def __init__(  # noqa: PLR0913 - every setting is a keyword
        self,
        model: Model,
        data: GivenData | None,
        defence: Defence | Division,
        *,
        voting_rule: VotingRule | None = None,
        targets: TargetChoice = None,
        tolerance: float | None = None,
        journal: str | Path | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
        new_nodes: NewNodes | None = None,
        old_journal: OldJournal | None = None,
        progress: OnProgress | None = None,
    ) -> None:
        require_order(model, data, defence)
        self.model = model
        self.defence = as_defence(defence).with_voting_rule(voting_rule)
        self.threshold = threshold_of(model, defence, voting_rule)
        self.defence.require_model(model)
        self._core_class = _core_class(self.defence)
        self._tolerance = tolerance
        self._model_digest = model_digest(model)
        self._lock = threading.RLock()
        self._listeners: list[Callable[[Applied], None]] = []
        self._references: dict[str, Reference] = {}  # by digest of the graph
        self._acknowledged: dict[str, Acknowledged] = {}  # by the id of the batch
        self._outcomes: OrderedDict[str, Applied] = OrderedDict()  # of the last batches, by their ids
        self._snapshot_every = snapshot_every
        self._journal: Journal | None = None
        self._given: Any = None  # graph task: the data that it began with
        self._progress = progress
        self.number = 0
        if data is None and old_journal is None and (journal is None or not Path(journal).exists()):
            raise GraphError("there is no graph to begin with: pass data, or a journal that exists.")
        try:
            self._begin(data, targets, journal, old_journal)
            self._core.store.new_nodes = new_nodes or NewNodes()
        except BaseException:
            self.close()
            raise

    # How it begins.

    def _begin(
        self,
        data: GivenData | None,
        targets: TargetChoice,
        journal: str | Path | None,
        old_journal: OldJournal | None,
    ) -> None:
        canonical_data = None
        chosen = None
        if data is not None:
            canonical_data = prepared(data, targets)
            keeps_loops = self._core_class.subgraphs(self.defence, canonical_data.task).keeps_loops
            chosen = canonical_data.targets(targets, keeps_loops)
            if canonical_data.task == "graph":
                self._given = canonical_data.data
        contents = None
        if journal is not None:
            self._journal = Journal(journal, self._identity(canonical_data, chosen, targets))
            contents = self._journal.load()
        if contents is not None:
            self._resume(contents)
        elif old_journal is not None:
            self._take_over(old_journal)
        elif canonical_data is None or chosen is None:
            raise GraphError("the journal holds no graph yet: pass data.")
        else:
            self._core = self._new_core(canonical_data, chosen, targets, all_nodes=targets is None)
            self._snapshot()

    def _identity(
        self, canonical_data: CanonicalData | None, chosen: Targets | None, targets: TargetChoice
    ) -> dict[str, str]:
        """Returns what a journal belongs to, by name."""
        identity = {"model": self._model_digest, **self._core_class.identity(self.defence, self._tolerance)}
        if canonical_data is not None and chosen is not None:
            identity["task"] = canonical_data.task
            identity["graph"] = chosen.digest
            rows = b"all" if targets is None else chosen.rows.tobytes()
            identity["choice of targets"] = hashlib.sha256(rows).hexdigest()
        return identity

    def _new_core(
        self,
        canonical_data: CanonicalData,
        chosen: Targets,
        targets: TargetChoice,
        *,
        all_nodes: bool,
        stored: StoredGraph | None = None,
    ) -> Core[Any]:
        """Returns the core of a graph, with labels and radii.

        Args:
            canonical_data: The data in canonical form.
            chosen: The targets in canonical form.
            targets: The targets as they were given.
            all_nodes: Whether nodes that are added become targets.
            stored: What a journal states about the graph; what the data says when not given.
        """
        task = canonical_data.task
        store = store_of(canonical_data, chosen, targets, self._core_class.subgraphs(self.defence, task))
        if stored is not None:
            store.dtypes = stored.dtypes
            store.rules = stored.rules
        elif task == "node":
            store.rules = EdgeRules.of(canonical_data.data, chosen.graph, self.defence)
        y = None
        size = len(chosen.positions)
        if task == "node":
            size = len(store.nodes.alive)
            y = _labels(canonical_data.data)
        subject = Subject(
            store=store,
            answers=Answers.unknown(size, chosen.positions),
            rows=chosen.rows,
            y=y,
            all_nodes=all_nodes,
            given=self._given,
        )
        self.task: Task = task
        self._graph_of_row = {int(row): number for number, row in enumerate(chosen.rows)}
        beginning = Beginning(self.model, self.defence, self._tolerance, canonical_data, chosen)
        core = self._core_class.begin(subject, beginning)
        core.compute_all()
        return core

    def _written(self) -> WrittenGraph:
        """Returns the graph as a journal keeps it."""
        core = self._core
        written = write_graph(core.store, core.y if self.task == "node" else None)
        header = {
            **written.header,
            "task": self.task,
            "number": self.number,
            "all": core.all_nodes,
            "rules": core.store.rules.to_json(),
        }
        complete = WrittenGraph(header, {**written.arrays, "rows": core.target_rows()})
        return without_derived(complete, core.store.rules)

    def _snapshot(self) -> None:
        if self._journal is not None:
            written = self._written()
            self._journal.save(written.header, written.arrays)

    def _take_over(self, old: OldJournal) -> None:
        """Begins with the graph, the event keys and the acknowledged batches of another model's journal.

        Raises:
            JournalError: It does not fit. The message says how.
        """
        if not Path(old.path).exists():
            raise JournalError(f"there is no journal {old.path} to take over.")
        before = Journal(old.path, {})
        try:
            contents = before.load()
        finally:
            before.close()
        if contents is None:
            raise JournalError(f"the journal {old.path} holds no graph yet: begin with data.")
        if contents.graphs[NOW][0].get("task") != "node":
            raise JournalError(f"the journal {old.path} is about a set of graphs: only one of nodes can be taken over.")
        stored = self._read(*contents.graphs[NOW])
        self._require_fit(old, stored)
        self._resume(replace(contents, graphs={NOW: contents.graphs[NOW]}))
        self._learn(old.known)
        if self._journal is not None:
            self._journal.remember(self._acknowledged)  # first: a journal with a graph is never taken over again
            self._snapshot()

    def _require_fit(self, old: OldJournal, stored: StoredGraph) -> None:
        """Refuses a journal whose numbers mean something else to the model."""
        found = stored.rules.encoding
        if (None if found is None else found.digest) != (None if old.encoding is None else old.encoding.digest):
            raise JournalError(
                f"the journal {old.path} was written with another encoding of columns than the new model was trained "
                "with, so its numbers mean something else: train the new model with --set encode=RUN/encoding.json of "
                "the old run, or begin a new journal from the tables."
            )
        if stored.rules.class_names != old.class_names:
            raise JournalError(
                f"the journal {old.path} has the classes {list(stored.rules.class_names)}, and the new model "
                f"{list(old.class_names)}: train it on the same ones, or begin a new journal from the tables."
            )
        data = stored.canonical_data.data
        stored.rules.describe(data)
        if EdgeRules.of(data, stored.chosen.graph, self.defence) != stored.rules:
            raise JournalError(
                f"the defence of the new model reads the edges of {old.path} otherwise (trusted edges, or both "
                "directions): begin a new journal from the tables."
            )

    def _learn(self, known: Mapping[Id, int]) -> None:
        """Notes classes of nodes that have become known."""
        core = self._core
        if known and core.y is None:
            core.y = np.full(len(core.store.nodes.alive), -1, dtype=np.int64)
        for name, label in known.items():
            slot = core.store.nodes.find(0, name)
            if slot is not None and core.y is not None and core.y.ndim == 1:
                core.y[slot] = label

    def _resume(self, contents: JournalContents) -> None:
        """Goes on where a journal stopped: its graph is taken, and what is proved about it is computed again."""
        header, arrays = contents.graphs[NOW]
        if header.get("task") == "graph" and self._given is None:
            raise GraphError("the journal is about a set of graphs: pass the data that it was begun with.")
        stored = self._read(header, arrays)
        self._core = self._new_core(
            stored.canonical_data, stored.chosen, stored.chosen.rows, all_nodes=stored.all_nodes, stored=stored
        )
        self.number = stored.number
        for digest in contents.graphs.keys() - {NOW}:
            self._resume_reference(digest, self._read(*contents.graphs[digest]), stored)
        self._acknowledged = dict(contents.acknowledged)
        self._replay(contents)

    def _resume_reference(self, digest: str, then: StoredGraph, now: StoredGraph) -> None:
        other_rows = self.task == "graph" and not np.array_equal(then.chosen.rows, now.chosen.rows)
        if then.chosen.digest != digest or other_rows:
            raise JournalError("a reference in the journal is another graph than its digest says.")
        store = self._core.store
        store_then = store_of(then.canonical_data, then.chosen, then.chosen.rows, store.subgraphs)
        self._references[digest] = Reference.between(digest, then.number, store_then, store)

    def _read(self, header: Mapping[str, Any], arrays: Arrays) -> StoredGraph:
        """Returns a graph of a journal, which is not trusted, after the checks that a user's data undergoes.

        Raises:
            JournalError: The graph makes no sense.
        """
        try:
            task = header["task"]
            rows = arrays["rows"]
            number = header["number"]
            if task not in ("node", "graph") or type(number) is not int or number < 0:
                raise ValueError("its statements about the graph make no sense")
            rules = EdgeRules.from_json(header["rules"])
            written = with_derived(WrittenGraph(dict(header), arrays), rules)
            dtypes = _read_dtypes(header, written.arrays)
            if task == "graph":
                canonical_data = prepared(read_graphs(written, self._given, rows), rows)
            else:
                canonical_data = prepared(read_node_data(written))
            keeps_loops = self._core_class.subgraphs(self.defence, task).keeps_loops
            chosen = canonical_data.targets(rows, keeps_loops)  # refuses odd rows
            return StoredGraph(canonical_data, chosen, dtypes, rules, header["all"] is True, number)
        except UNREADABLE as error:
            raise JournalError(f"the journal holds a graph that cannot be used: {error!s:.200}") from error

    def _replay(self, contents: JournalContents) -> None:
        """Applies the batches of a journal: older ones together, the last ones one by one, to know what they did."""
        older = contents.batches[:-OUTCOMES]
        waiting: list[Event] = []
        for place, batch in enumerate(older):
            waiting += batch.events
            if len(waiting) >= _EVENTS_AT_ONCE:
                self._replay_events(waiting)
                waiting = []
                tell(self._progress, "applying the events of the journal", place + 1, len(contents.batches))
        if waiting:
            self._replay_events(waiting)
        for batch in contents.batches[-OUTCOMES:]:
            outcome = self._replay_events(batch.events)
            applied = Applied(self.number, len(batch.events), moved=outcome.moved, gone=outcome.gone)
            self._remember_outcome(batch.batch_id, applied)

    def _replay_events(self, events: list[Event]) -> Outcome:
        try:
            prepared_batch = self._core.prepare(self._addressed(events), skip_bad=False)
        except AgnncertError as error:
            raise JournalError(f"the journal holds an event that cannot be applied: {error}") from error
        if prepared_batch.known:
            raise JournalError("the journal holds an event twice, by its key.")
        self.number += len(events)
        return self._commit(prepared_batch)

    # What is asked.

    @property
    def targets(self) -> npt.NDArray[Any]:
        """Ids of the targets (graph task: rows of the graphs), in the order of all that is said about them."""
        with self._lock:
            if self.task == "graph":
                return self._core.rows.copy()
            return id_array([self._core.id_of(target) for target in self._core.order().tolist()])

    @property
    def label(self) -> npt.NDArray[np.int64]:
        """The label of each target, shape ``[n]``."""
        with self._lock:
            return self._core.answers.label[self._core.order()]

    @property
    def radius(self) -> npt.NDArray[np.int64]:
        """The certified radius of each target, shape ``[n]``."""
        with self._lock:
            return np.minimum(self._core.answers.radius[self._core.order()], self._core.largest_radius())

    @property
    def truth(self) -> npt.NDArray[np.int64]:
        """The true class of each target, shape ``[n]``; -1 where it is not known."""
        with self._lock:
            known = [self._core.truth_of(target) for target in self._core.order().tolist()]
        return np.array([-1 if truth is None else truth for truth in known], dtype=np.int64)

    @property
    def structure_radius(self) -> npt.NDArray[np.int64]:
        """How many edges and nodes may be added or deleted for each target, shape ``[n]``; stacked votes alone.

        Raises:
            SettingsError: This kind of defence has one radius for all changes.
        """
        with self._lock:
            radius = self._core.structure_radius()
        if radius is None:
            raise SettingsError(f"{self.defence} has one radius for all kinds of changes: ask for live.radius.")
        return radius

    @property
    def tolerance(self) -> float | None:
        """How far two computations of one logit may lie apart, relative to the largest; None if it has none."""
        return self._core.tolerance

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        with self._lock:
            return sum(len(slots) for slots in self._core.store.nodes.slot_of)

    @property
    def num_edges(self) -> int:
        """How many directed edges there are, self-loops that the division drops left out."""
        with self._lock:
            union = self._core.store.union
            return int(union.num_arcs - len(union.free_arcs))

    @property
    def summary(self) -> dict[str, Any]:
        """The defence by name, as JSON values."""
        return dict(self._core.summary)

    @property
    def encoding(self) -> Encoding | None:
        """How columns of tables became features and values of edges; None if the data does not say."""
        return self._core.store.rules.encoding

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Holds events back, so that several questions are answered at one moment."""
        with self._lock:
            yield

    def __len__(self) -> int:
        with self._lock:
            if self.task == "graph":
                return len(self._core.rows)
            return int(self._core.answers.is_target.sum())

    def __contains__(self, target: object) -> bool:
        try:
            self._slot(target)
        except IdError:
            return False
        return True

    def __getitem__(self, target: Any) -> Decision:
        """Returns what is proved about one target, by its id (graph task: its row), as ``certificate()[target]``."""
        with self._lock:
            return self._core.decision(self._slot(target))

    def _slot(self, target: Any) -> int:
        """Returns the slot of a target node, or the number of a target graph."""
        name = encode_id(target.item() if hasattr(target, "item") else target)
        slot = None
        if self.task == "node":
            slot = self._core.store.nodes.find(0, name)
        elif isinstance(name, int):
            slot = self._graph_of_row.get(name)
        if slot is None or self._core.answers.place[slot] == NO_TARGET:
            raise IdError(f"there is no target {target!r:.60}: there are {len(self):,}, by their ids.")
        return int(slot)

    def data(self) -> GraphData:
        """Returns the graph (or graphs) as it is, with ``x``, ``edge_index``, edge values, ``node_id`` and ``y``."""
        with self._lock:
            return self._core.data()

    def certificate(self) -> Certificate:
        """Returns the certificate of the graph as it is: that of ``certify``, which ``verify`` accepts.

        Its cost is that of bringing the graph into canonical form, not that of computing votes.

        Raises:
            ModelContractError: The model has been altered since.
        """
        with self._lock:
            if model_digest(self.model) != self._model_digest:
                raise ModelContractError("the model is not the one that this live graph began with: begin a new one.")
            certificate = with_teaching_note(self._core.certificate(), self.model)
            certificate = with_threshold(certificate, self.threshold)
            names = self._core.store.rules.class_names
            if len(names) == certificate.num_classes:
                return certificate.with_class_names(names)
            return certificate

    def subscribe(
        self, listener: Callable[[Applied], None], below: float | None = None, flips: bool = False
    ) -> Callable[[], None]:
        """Has ``listener`` called with what became of a batch, in the thread that applied it.

        Args:
            listener: Called with an ``Applied``. If it raises, that is logged, because the batch counts already.
            below: Call only if a radius fell below this threshold (or, with ``flips``, a label flipped).
            flips: Call only if a label flipped (or, with ``below``, a radius fell below it).

        Returns:
            A function without arguments that ends it.
        """

        def tell(applied: Applied) -> None:
            wants_all = below is None and not flips
            has_fallen = below is not None and bool(applied.fell_below(below))
            has_flipped = flips and bool(applied.flipped)
            if wants_all or has_fallen or has_flipped:
                listener(applied)

        self._listeners.append(tell)
        return lambda: self._listeners.remove(tell)

    # What is left of what was proved.

    def reference(self) -> Certificate:
        """Returns the certificate of the graph as it is, as a reference with which :meth:`spent` can compare.

        What is remembered is the difference between that graph and the present one, until :meth:`forget`.
        """
        with self._lock:
            certificate = self.certificate()
            digest = certificate.claim.digests["graph"]
            if digest not in self._references:
                if self._journal is not None:
                    written = self._written()
                    self._journal.save(written.header, written.arrays, digest)
                self._references[digest] = Reference(digest, self.number, self._core.store)
            return certificate

    def reference_again(self, digest: str | None) -> Certificate | None:
        """Returns the certificate of a reference, certified again from the journal.

        Args:
            digest: Digest of its graph. If there is no such reference, the oldest one is taken.

        Returns:
            The certificate; None if there is no reference, or no journal.
        """
        with self._lock:
            if self._journal is None or not self._references:
                return None
            if digest not in self._references:
                digest = min(self._references, key=lambda each: self._references[each].number)
            contents = self._journal.load()
            assert contents is not None
            stored = self._read(*contents.graphs[str(digest)])
            data = stored.canonical_data.data
            if self.task == "node":
                stored.rules.describe(data)
            return certify(self.model, data, self.defence)

    @property
    def began_with(self) -> str | None:
        """Digest of the graph that the journal was begun with; None if it took over another, or there is no journal."""
        return None if self._journal is None else self._journal.began_with()

    def forget(self, since: Certificate) -> None:
        """Stops comparing with a reference."""
        with self._lock:
            reference = self._reference(since)
            if self._journal is not None:
                self._journal.drop(reference.digest)
            reference.stop()
            del self._references[reference.digest]

    def spent(self, target: Any, since: Certificate) -> Spent:
        """Returns what has happened to a target since a reference, beside what that is proof against.

        Args:
            target: Id of the target (graph task: its row).
            since: What :meth:`reference` returned, or the same certificate read from a file.

        Raises:
            IdError: There is no such target, or there was none then.
            SettingsError: The certificate is no reference of this live graph.
        """
        with self._lock:
            reference = self._reference(since)
            slot = self._slot(target)
            name = self._core.id_of(slot)
            if name not in since.position:
                raise IdError(f"the reference has no target {name!r:.60}: it came later.")
            return self._core.spent(reference, since, slot)

    def follows(self, since: Certificate) -> bool:
        """Whether a certificate is one of the references of this live graph."""
        digests = since.claim.digests
        if digests.get("model") != self._model_digest or digests.get("graph") not in self._references:
            return False
        return self._core.proves(since)

    def _reference(self, since: Certificate) -> Reference:
        if not self.follows(since):
            raise SettingsError(
                "this certificate is no reference of this live graph: pass one that live.reference() returned."
            )
        return self._references[since.claim.digests["graph"]]

    # What happens.

    def apply(
        self,
        changes: Changes,
        *,
        id: str | None = None,
        graph: int | None = None,
        skip_bad: bool = False,
        is_whole: bool = True,
    ) -> Applied:
        """Applies events, all of them or, if one cannot be applied, none.

        With a journal, they are on disk when this returns.

        Args:
            changes: A ``Perturbation``, an ``Event``, or several of them, applied in order.
            id: Names this batch, so that it can be sent again: events of it that were applied before are not applied
                again. Refused ones are tried again, so a batch may come again with a correction. The last 200,000 ids
                are remembered, by the journal if there is one; not those of batches in which nothing was applied.
            graph: Graph task: row of the graph that a ``Perturbation`` is about.
            skip_bad: Leave out events that cannot be applied, and say so, in place of refusing all. A long batch is
                then applied in parts of 250 events, each of which counts by itself, so that others need not wait.
            is_whole: Whether these are all events of the batch. If not, others may still come under the same id.

        Returns:
            What became of them, such as labels that flipped and radii that fell.

        Raises:
            GraphError: An event cannot be applied. The message says which and why. Nothing has changed.
            ModelContractError: The model fails on the new graph. Nothing has changed.
            JournalError: The batch cannot be written. Nothing has changed.
        """
        _require_batch_id(id)
        batch = _Batch(list(events_of(changes, graph)), id, is_whole)
        parts: list[Applied] = []
        while not parts or batch.has_more:
            if parts:
                time.sleep(_PAUSE)  # others get their turn
            try:
                parts.append(self._apply_part(batch, skip_bad))
            except JournalError as error:
                if not parts:
                    raise
                number = sum(part.events for part in parts)
                raise JournalError(f"{number:,} events of the batch were applied before this: {error}") from error
        return joined(parts)

    def _apply_part(self, batch: "_Batch", skip_bad: bool) -> Applied:
        """Applies the next events of a batch: all of them or, if bad ones are left out, at most ``AT_ONCE``."""
        with self._lock:
            before = None if batch.id is None else self._acknowledged.get(batch.id)
            waiting = batch.waiting(before)
            batch.has_more = skip_bad and len(waiting) > AT_ONCE
            if batch.id is not None and before is not None and not waiting:
                return self._repeated(batch.id)
            require_evaluating_layers(self.model)
            applied = self._apply_new(batch, waiting[:AT_ONCE] if skip_bad else waiting, skip_bad)
        self._tell(applied)
        return applied

    def _repeated(self, batch_id: str) -> Applied:
        """Returns what became of a batch that was acknowledged before."""
        outcome = self._outcomes.get(batch_id)
        if outcome is not None:
            return replace(outcome, repeated=True)
        return Applied(self.number, self._acknowledged[batch_id].events, repeated=True)

    def _tell(self, applied: Applied) -> None:
        """Tells all listeners. The batch counts already, so what they raise is logged and does not come back."""
        for listener in list(self._listeners):
            try:
                listener(applied)
            except Exception:
                log.exception("a listener failed after event %d; the events count all the same", applied.number)

    def _apply_new(self, batch: "_Batch", places: list[int], skip_bad: bool) -> Applied:
        """Applies the events of a batch at some places."""
        self._snapshot_if_due()  # before the batch, so that a journal always says what the last batches did
        events = [batch.events[place] for place in places]
        try:
            self._core.store.batch.arcs_made = batch.arcs_made
            prepared_batch = self._core.prepare(self._addressed(events), skip_bad)
            batch.arcs_made = self._core.store.batch.arcs_made
            refused = tuple(replace(each, index=places[each.index]) for each in prepared_batch.refused)
            left_out = {each.index for each in prepared_batch.refused}.union(prepared_batch.known)
            accepted = [event for place, event in enumerate(events) if place not in left_out]
            batch.refused.update(each.index for each in refused)
            acknowledged = self._acknowledgement(batch, places, len(accepted))
            if self._journal is not None and (accepted or acknowledged is not None):
                self._journal.write(self.number + len(accepted), accepted, batch.id, acknowledged)
        except BaseException:
            self._core.roll_back()
            self._end_batch_of_references()
            raise
        outcome = self._commit(prepared_batch)
        self.number += len(accepted)
        batch.tried.update(places)
        known = len(prepared_batch.known)
        applied = Applied(self.number, len(accepted), False, outcome.moved, outcome.gone, refused, known)
        if acknowledged is not None:
            self._remember(str(batch.id), acknowledged)
            self._remember_outcome(batch.id, applied)
        return applied

    def _acknowledgement(self, batch: "_Batch", places: list[int], accepted: int) -> Acknowledged | None:
        """Returns what has been applied of a batch, these places included; None if that is not remembered."""
        if batch.id is None:
            return None
        before = self._acknowledged.get(batch.id, Acknowledged(0, ()))
        number = before.events + accepted
        if batch.is_whole and not batch.refused and len(batch.tried) + len(places) == len(batch.events):
            return Acknowledged(number)
        applied = tuple(batch.digests[place] for place in places if place not in batch.refused)
        everything = (before.applied or ()) + applied
        return Acknowledged(number, everything) if everything else None

    def _commit(self, prepared_batch: Prepared[Any]) -> Outcome:
        outcome = self._core.commit(prepared_batch)
        self._end_batch_of_references()
        return outcome

    def _end_batch_of_references(self) -> None:
        for reference in self._references.values():
            reference.end_batch()

    def _snapshot_if_due(self) -> None:
        if self._journal is None or self._journal.since_snapshot < self._snapshot_every:
            return
        try:
            self._snapshot()
        except JournalError as error:  # batches are written all the same; the next one tries again
            log.warning("no snapshot was written: %s", error)

    def _remember(self, batch_id: str, acknowledged: Acknowledged) -> None:
        self._acknowledged.pop(batch_id, None)
        self._acknowledged[batch_id] = acknowledged
        if len(self._acknowledged) > REMEMBERED:
            del self._acknowledged[next(iter(self._acknowledged))]

    def _remember_outcome(self, batch_id: str | None, applied: Applied) -> None:
        if batch_id is None:
            return
        self._outcomes[batch_id] = applied
        if len(self._outcomes) > OUTCOMES:
            self._outcomes.popitem(last=False)

    @property
    def journal_path(self) -> Path | None:
        """The file of the journal, or None if there is none."""
        return None if self._journal is None else self._journal.path

    @property
    def journal_bytes(self) -> int:
        """Size of the journal's file; 0 without a journal."""
        path = self.journal_path
        if path is None or not path.exists():
            return 0
        return path.stat().st_size

    def backup(self, path: str | Path) -> Path:
        """Writes a copy of the journal, as it is between two batches, while events go on.

        Raises:
            JournalError: There is no journal, or the copy cannot be written.
        """
        with self._lock:
            if self._journal is None:
                raise JournalError("there is no journal to copy: begin the live graph with journal=.")
            self._journal.copy_to(Path(path))
        return Path(path)

    def check_writable(self) -> None:
        """Tries to write to the journal again if the last write failed, so that a service knows whether it works.

        Raises:
            JournalError: Events cannot be written.
        """
        with self._lock:
            if self._journal is not None and self._journal.write_error is not None:
                self._journal.check_writable()

    def _addressed(self, events: list[Event]) -> list[AddressedEvent]:
        return [AddressedEvent(event, self._graph_number(event)) for event in events]

    def _graph_number(self, event: Event) -> int:
        """Returns the number of the graph that an event is about; -1 if it names none that there is."""
        if self.task == "node":
            return 0 if event.graph is None else -1
        if event.graph is None:
            return -1
        return self._graph_of_row.get(event.graph, -1)

    def close(self) -> None:
        """Lets go of the journal. Everything acknowledged is in it."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def __enter__(self) -> "LiveGraph":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class _Batch:
    """A batch that is being applied.

    Attributes:
        events: Its events.
        id: Its id, if it has one.
        is_whole: Whether these are all of its events.
        tried: Places of the events that were tried.
        refused: Places of those that were refused.
        has_more: Whether others wait after the present part.
        arcs_made: How many arcs its parts have made, which is limited for all of them together.
    """

    events: list[Event]
    id: str | None
    is_whole: bool
    tried: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    has_more: bool = False
    arcs_made: int = 0

    @cached_property
    def digests(self) -> list[str]:
        """A digest of each event."""
        return [_digest(event) for event in self.events]

    def waiting(self, before: Acknowledged | None) -> list[int]:
        """Returns the places of the events that were neither tried nor applied under this id before."""
        places = [place for place in range(len(self.events)) if place not in self.tried]
        if before is None:
            return places
        if before.applied is None:
            return []
        applied = Counter(before.applied)
        applied.subtract(self.digests[place] for place in self.tried - self.refused)
        waiting = []
        for place in places:
            if applied[self.digests[place]] > 0:
                applied[self.digests[place]] -= 1
            else:
                waiting.append(place)
        return waiting


def _digest(event: Event) -> str:
    text = json.dumps(event.to_json(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _core_class(defence: Defence) -> type[Core[Any]]:
    if defence.kind not in CORES:
        raise defence.refusal("live")
    return CORES[defence.kind]


def _labels(data: Any) -> npt.NDArray[Any] | None:
    """Returns the class of each node as ``certify`` reads it, -1 if unknown; labels in several columns as they are."""
    y = getattr(data, "y", None)
    if y is None:
        return None
    classes = class_numbers(y, int(data.num_nodes))
    labels: npt.NDArray[Any] = torch.as_tensor(y if classes is None else classes).detach().cpu().numpy().copy()
    return labels


def _read_dtypes(header: Mapping[str, Any], arrays: Arrays) -> dict[str, torch.dtype]:
    """Returns the types of numbers that a journal states, which is not trusted."""
    dtypes = {name: getattr(torch, dtype) for name, dtype in header["kinds"].items()}
    all_types = all(isinstance(dtype, torch.dtype) for dtype in dtypes.values())
    if dtypes.keys() != {"x", *value_names(arrays)} or not all_types:
        raise ValueError("its statements about the graph make no sense")
    return dtypes


def _require_batch_id(batch_id: Id | None) -> None:
    if batch_id is None:
        return
    is_name = isinstance(batch_id, str) and 0 < len(batch_id) <= _LONGEST_ID and batch_id.isprintable()
    if not is_name:
        raise SettingsError(f"id={batch_id!r:.60}: expected a printable text of at most {_LONGEST_ID} characters.")


def live_division(defence: Divided, model: Model, data: GivenData | None, **settings: Any) -> LiveGraph:
    """Returns the live graph of a division and its voting rule; ``settings`` are arguments of ``LiveGraph``."""
    return LiveGraph(model, data, defence, **settings)
