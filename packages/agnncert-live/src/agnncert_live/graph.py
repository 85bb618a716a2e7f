"""``LiveGraph``: labels, radii and the certificate of a graph that changes, current after every event."""

import hashlib
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agnncert.auditing.model_audit import audit
from agnncert.certificates.ids import Id, encode_id, id_array
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.certify import ComputedVotes, assemble
from agnncert.divided.defence import Divided
from agnncert.engine.adapter import bind
from agnncert.engine.arguments import require_order
from agnncert.errors import AgnncertError, GraphError, IdError, ModelContractError, SettingsError
from agnncert.graphs.targets import CanonicalData, Targets, prepared
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate, Decision
from agnncert_live.casting import Caster, CopyVotes, hops_of
from agnncert_live.conversion import data_of, read, store_of, write_out, written
from agnncert_live.core import Answers, Core
from agnncert_live.counting import Counter
from agnncert_live.events import Applied, Event, Moved, events_of
from agnncert_live.journal import NOW, REMEMBERED, UNREADABLE, Journal, JournalError, Kept
from agnncert_live.nodes import Cells
from agnncert_live.spent import Reference, Spent, dense_votes, spent_by
from agnncert_live.store import Store

log = logging.getLogger(__name__)

Array = npt.NDArray[Any]

SNAPSHOT_EVERY = 20_000  # events
_REPLAYED = 2_000  # events that are applied together when a journal is read
_LONGEST_ID = 250


class LiveGraph:
    """A graph whose decisions and proofs are current after every event.

    After any sequence of events, labels, radii and :meth:`certificate` are those of ``ac.certify`` on :meth:`data`, at
    the cost of the few subgraphs that an event touches. The model stays as it is; with other weights, begin anew. All
    methods may be called from several threads.

    Args:
        model: A trained module, in eval mode, as for ``certify``.
        data: The graph to begin with (a ``Data``), or a list of graphs; ideally with ``node_id``, without which no node
            can be deleted. Node task: may be None if the journal exists.
        division: ``EdgeCentric`` or ``NodeCentric``, with any settings.
        rule: As for ``certify``.
        targets: Mask or row numbers of the nodes (graphs) that are kept certified. When not given, all of them are, and
            nodes that are added as well.
        tolerance: As for ``certify``.
        journal: A file in which every batch is written before it counts. If it exists, the live graph goes on where it
            stopped: with all batches that were acknowledged, however the process ended.
        snapshot_every: After how many events the journal is replaced by a snapshot of the graph.

    Example:
        ``live = agnncert_live.LiveGraph(model, data, ac.NodeCentric(300), journal="live.journal")``, then
        ``live.apply(agnncert_live.Event("add_edge", "alice", "bob"), id="topic-0:17").flipped``.

    Raises:
        ModelContractError: The model breaks an assumption of the proof.
        GraphError: The graph cannot be certified as it is.
        DivisionError: The division is another than these two.
        JournalError: The journal is damaged, in use, or belongs to another graph, model, division or vote.
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        division: Any,
        *,
        voting_rule: VotingRule | None = None,
        targets: Any = None,
        tolerance: float | None = None,
        journal: str | Path | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        require_order(model, data, division)
        if voting_rule is not None and not isinstance(voting_rule, VotingRule):
            raise SettingsError(
                f'voting_rule={voting_rule!r:.60}: expected a VotingRule, such as VotingRule(empty="abstain", prior=5).'
            )
        self.model, self.division = model, division
        self._digest = model_digest(model)
        self._lock = threading.RLock()
        self._listeners: list[Callable[[Applied], None]] = []
        self._references: dict[str, Reference] = {}  # by digest of the graph
        self._acknowledged: dict[str, int] = {}  # events of each batch, by its id
        self._snapshot_every = snapshot_every
        self._journal: Journal | None = None
        self.number = 0  # events that have been applied
        ready, chosen = None, None
        if data is not None:
            ready = prepared(data, targets)
            chosen = ready.targets(targets, Cells(division, ready.task).keeps_loops)
        elif journal is None or not Path(journal).exists():
            raise GraphError("there is no graph to begin with: pass data, or a journal that exists.")
        self._given: Any = None if ready is None or ready.task == "node" else ready.data
        try:
            kept = None
            if journal is not None:
                about = self._about(voting_rule, tolerance, ready, chosen, targets)
                self._journal = Journal(journal, about)
                kept = self._journal.load()
            if kept is not None:
                self._resume(kept, voting_rule, tolerance)
            elif ready is None or chosen is None:
                raise GraphError("the journal holds no graph yet: pass data.")
            else:
                self._start(ready, chosen, targets, voting_rule, tolerance)
                self._snapshot()
        except BaseException:
            self.close()
            raise

    # How it begins.

    def _about(
        self,
        voting_rule: VotingRule | None,
        tolerance: float | None,
        ready: CanonicalData | None,
        chosen: Targets | None,
        targets: Any,
    ) -> dict[str, str]:
        """What a journal belongs to, by name."""
        about = {
            "model": self._digest,
            "division": str(self.division),
            "voting_rule": json.dumps((voting_rule or VotingRule()).to_json()),
            "tolerance": repr(tolerance),
        }
        if ready is not None and chosen is not None:
            about["task"], about["graph"] = ready.task, chosen.digest
            rows = b"all" if targets is None else chosen.rows.tobytes()
            about["choice of targets"] = hashlib.sha256(rows).hexdigest()
        return about

    def _start(
        self,
        ready: CanonicalData,
        chosen: Targets,
        targets: Any,
        voting_rule: VotingRule | None,
        tolerance: float | None,
        stated: dict[str, Any] | None = None,
    ) -> None:
        """Begins with a graph; ``stated`` is what a journal says about it beside what the data holds."""
        store = store_of(ready, chosen, targets, Cells(self.division, ready.task))
        y = getattr(ready.data, "y", None) if ready.task == "node" else None
        y = None if y is None else torch.as_tensor(y).detach().cpu().numpy().copy()
        size = len(store.nodes.alive) if ready.task == "node" else len(chosen.positions)
        answers = Answers.of(size, chosen.positions)
        all_nodes = targets is None
        if stated is not None:
            store.kinds, all_nodes = stated["kinds"], stated["all"]
        self._core = self._wired(store, ready, chosen, voting_rule, tolerance, answers, chosen.rows, y, all_nodes)
        self._core.cast_all()

    def _wired(
        self,
        store: Store,
        ready: CanonicalData,
        chosen: Targets,
        voting_rule: VotingRule | None,
        tolerance: float | None,
        answers: Answers,
        rows: Array,
        y: Any,
        all_nodes: bool,
    ) -> Core:
        """Audits the model, and puts the parts together."""
        report = audit(self.model, ready.data, self.division)
        if not report.ok:
            raise ModelContractError(str(report))
        if tolerance is not None and tolerance < report.tolerance:
            raise SettingsError(
                f"tolerance={tolerance:g} is less than that of the audit, {report.tolerance:.3g}: leave it out, or "
                "give more."
            )
        self.task, self.locality = ready.task, report.locality
        self.tolerance = report.tolerance if tolerance is None else tolerance
        call = bind(self.model, chosen.graph, ready.task)
        theorem = self.division.theorem(ready.task)
        self.voting_rule = (voting_rule or VotingRule()).under(theorem, call.num_classes)
        caster = Caster(store, call, self.tolerance, hops_of(self.model, report.locality))
        counter = Counter(store, theorem, self.voting_rule, call.num_classes, chosen.id_kind)
        self._graph_of_row = {int(row): number for number, row in enumerate(rows)}
        return Core(store, caster, counter, answers, rows, y, all_nodes)

    def _written(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The graph as a journal keeps it."""
        core = self._core
        header, arrays = written(core.store, core.y if self.task == "node" else None)
        row = np.zeros(core.store.nodes.count, dtype=np.int64)
        living = core.store.nodes.in_order()
        row[living] = np.arange(len(living))
        arrays["rows"] = core.rows if self.task == "graph" else row[core.order()]
        return header | {"task": self.task, "number": self.number, "all": core.all_nodes}, arrays

    def _snapshot(self) -> None:
        if self._journal is not None:
            self._journal.save(*self._written())

    def _resume(self, kept: Kept, voting_rule: VotingRule | None, tolerance: float | None) -> None:
        """Goes on where a journal stopped: its graph is taken, and what is proved about it is computed again."""
        header, arrays = kept.graphs[NOW]
        if header.get("task") == "graph" and self._given is None:
            raise GraphError("the journal is about a set of graphs: pass the data that it was begun with.")
        ready, chosen, stated = self._read(header, arrays)
        self._start(ready, chosen, chosen.rows, voting_rule, tolerance, stated)
        self.number = stated["number"]
        for digest in kept.graphs.keys() - {NOW}:
            old_ready, old, old_stated = self._read(*kept.graphs[digest])
            others = ready.task == "graph" and not np.array_equal(old.rows, chosen.rows)
            if old.digest != digest or others:
                raise JournalError("a reference in the journal is another graph than its digest says.")
            then = store_of(old_ready, old, old.rows, self._core.store.cells)
            self._references[digest] = Reference.between(digest, old_stated["number"], then, self._core.store)
        self._acknowledged = dict(kept.acknowledged)
        waiting: list[Event] = []
        for _, events in kept.batches:
            waiting += events
            if len(waiting) >= _REPLAYED:
                self._replay(waiting)
                waiting = []
        if waiting:
            self._replay(waiting)
        if self._journal is not None and self._journal.since_snapshot >= self._snapshot_every:
            self._snapshot()

    def _read(self, header: Any, arrays: Any) -> tuple[CanonicalData, Targets, dict[str, Any]]:
        """A graph of a journal, which is not trusted, checked like a user's data.

        Returns:
            The graph in canonical form, its targets, and the other statements about it.
        """
        try:
            task, rows, number = header["task"], arrays["rows"], header["number"]
            kinds = {name: getattr(torch, kind) for name, kind in header["kinds"].items()}
            expected = {"x"} | {name.removeprefix("value/") for name in arrays if name.startswith("value/")}
            sound = task in ("node", "graph") and type(number) is int and number >= 0 and kinds.keys() == expected
            if not sound or not all(isinstance(kind, torch.dtype) for kind in kinds.values()):
                raise ValueError("its statements about the graph make no sense")
            ready = prepared(read(header, arrays, task, self._given, rows), rows if task == "graph" else None)
            chosen = ready.targets(rows, Cells(self.division, task).keeps_loops)  # refuses odd rows
            return ready, chosen, {"kinds": kinds, "all": header["all"] is True, "number": number}
        except UNREADABLE as error:
            raise JournalError(f"the journal holds a graph that cannot be used: {error!s:.200}") from error

    def _replay(self, events: list[Event]) -> None:
        try:
            _, votes = self._core.prepare([(event, self._graph_number(event)) for event in events], False)
        except AgnncertError as error:
            raise JournalError(f"the journal holds an event that cannot be applied: {error}") from error
        self._commit(votes)
        self.number += len(events)

    # What is asked.

    @property
    def targets(self) -> npt.NDArray[Any]:
        """Ids of the targets (graph task: rows of the graphs), in the order of all that is said about them."""
        with self._lock:
            if self.task == "graph":
                return self._core.rows.copy()
            return id_array([self._core.store.nodes.name[slot] for slot in self._core.order().tolist()])

    @property
    def label(self) -> npt.NDArray[np.int64]:
        """The label of each target, shape ``[n]``."""
        with self._lock:
            return self._core.answers.label[self._core.order()]

    @property
    def radius(self) -> npt.NDArray[np.int64]:
        """The certified radius of each target, shape ``[n]``."""
        with self._lock:
            return np.minimum(self._core.answers.radius[self._core.order()], self._core.num_groups())

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

    def __len__(self) -> int:
        with self._lock:
            return len(self._core.rows) if self.task == "graph" else int((self._core.answers.since >= 0).sum())

    def __contains__(self, target: object) -> bool:
        try:
            self._slot(target)
        except IdError:
            return False
        return True

    def __getitem__(self, target: Any) -> Decision:
        """What is proved about one target, by its id (graph task: its row); as ``certificate()[target]``."""
        with self._lock:
            return self._core.decision(self._slot(target), self.locality, self.tolerance)

    def _slot(self, target: Any) -> int:
        """Slot of a target node, or number of a target graph."""
        name = encode_id(target.item() if hasattr(target, "item") else target)
        if self.task == "graph":
            found = self._graph_of_row.get(name) if isinstance(name, int) else None
        else:
            found = self._core.store.nodes.find(0, name)
        if found is None or (self.task == "node" and self._core.answers.since[found] < 0):
            raise IdError(f"there is no target {target!r:.60}: there are {len(self):,}, by their ids.")
        return int(found)

    def data(self) -> Any:
        """The graph (or graphs) as it is, with ``x``, ``edge_index``, edge values, ``node_id`` and ``y``."""
        with self._lock:
            core = self._core
            return data_of(core.store, self.task, core.y, self._given, core.rows)

    def certificate(self) -> Certificate:
        """The certificate of the graph as it is: that of ``certify``, which ``verify`` accepts with data and model.

        Its cost is that of bringing the graph into canonical form, not that of casting votes.

        Raises:
            ModelContractError: The model has been altered since.
        """
        with self._lock:
            if model_digest(self.model) != self._digest:
                raise ModelContractError("the model is not the one that this live graph began with: begin a new one.")
            core = self._core
            chosen, votes, reach = write_out(core, self.data())
            computed = ComputedVotes(votes, reach, self.tolerance, self.locality, self._digest)
            return assemble(chosen, self.division, computed, self.voting_rule)

    def subscribe(
        self, listener: Callable[[Applied], None], below: float | None = None, flips: bool = False
    ) -> Callable[[], None]:
        """Has ``listener`` called with what became of a batch, in the thread that applied it.

        Args:
            listener: Called with an ``Applied``.
            below: Call only if a radius fell below this threshold (or, with ``flips``, a label flipped).
            flips: Call only if a label flipped (or, with ``below``, a radius fell below it).

        Returns:
            How to end it: a function without arguments.
        """

        def told(applied: Applied) -> None:
            fell = below is not None and applied.fell_below(below)
            if (below is None and not flips) or fell or (flips and applied.flipped):
                listener(applied)

        self._listeners.append(told)
        return lambda: self._listeners.remove(told)

    # What is left of what was proved.

    def reference(self) -> Certificate:
        """The certificate of the graph as it is, as a reference: from now on :meth:`spent` can compare with it.

        What is remembered is the difference between that graph and the present one, until :meth:`forget`.
        """
        with self._lock:
            certificate = self.certificate()
            digest = certificate.claim.digests["graph"]
            if digest not in self._references:
                if self._journal is not None:
                    self._journal.save(*self._written(), digest)
                self._references[digest] = Reference(digest, self.number, self._core.store)
            return certificate

    def forget(self, since: Certificate) -> None:
        """No longer compares with a reference."""
        with self._lock:
            reference = self._reference(since)
            if self._journal is not None:
                self._journal.drop(reference.digest)
            reference.stop()
            del self._references[reference.digest]

    def spent(self, target: Any, since: Certificate) -> Spent:
        """What has happened to a target since a reference, beside what that is proof against.

        Args:
            target: Id of the target (graph task: its row).
            since: What :meth:`reference` returned, or the same certificate read from a file.

        Raises:
            IdError: There is no such target, or there was none then.
            SettingsError: The certificate is no reference of this live graph.
        """
        with self._lock:
            reference, slot = self._reference(since), self._slot(target)
            core = self._core
            name = core.id_of(slot)
            if name not in since.position:
                raise IdError(f"the reference has no target {name!r:.60}: it came later.")
            node = (slot, 0) if self.task == "graph" else (0, name)
            votes = None
            if not core.store.cells.own_groups:
                votes = dense_votes(since, since.position[name]), core.votes(slot)
            return spent_by(reference, since, node, name, int(core.answers.label[slot]), votes)

    def follows(self, since: Certificate) -> bool:
        """Whether a certificate is one of the references of this live graph."""
        stated = since.claim.digests
        theirs = stated.get("model"), since.claim.division, since.voting_rule
        return (
            theirs == (self._digest, str(self.division), self.voting_rule) and stated.get("graph") in self._references
        )

    def _reference(self, since: Certificate) -> Reference:
        if not self.follows(since):
            raise SettingsError(
                "this certificate is no reference of this live graph: pass one that live.reference() returned."
            )
        return self._references[since.claim.digests["graph"]]

    # What happens.

    def apply(
        self, changes: Any, *, id: str | None = None, graph: int | None = None, skip_bad: bool = False
    ) -> Applied:
        """Applies events, all of them or, if one cannot be applied, none.

        With a journal, they are on disk when this returns.

        Args:
            changes: A ``Perturbation``, an ``Event``, or several of them, applied in order.
            id: Names this batch, so that it can be sent again: if it was acknowledged before, nothing is done. The last
                200,000 are remembered, by the journal if there is one.
            graph: Graph task: row of the graph that a ``Perturbation`` is about.
            skip_bad: Leave out events that cannot be applied, and say so, in place of refusing all.

        Returns:
            What became of them: labels that flipped, radii that fell.

        Raises:
            GraphError: An event cannot be applied; says which and why. Nothing has changed.
            ModelContractError: The model fails on the new graph. Nothing has changed.
            JournalError: The batch cannot be written. Nothing has changed.
        """
        with self._lock:
            if id is not None and (not isinstance(id, str) or not 0 < len(id) <= _LONGEST_ID or not id.isprintable()):
                raise SettingsError(f"id={id!r:.60}: expected a printable text of at most {_LONGEST_ID} characters.")
            before = None if id is None else self._acknowledged.get(id)
            if before is not None:
                return Applied(self.number, before, repeated=True)
            events = list(events_of(changes, graph))
            try:
                refused, votes = self._core.prepare(self._addressed(events), skip_bad)
                bad = {one.index for one in refused}
                good = [event for index, event in enumerate(events) if index not in bad]
                if self._journal is not None and (good or id is not None):
                    self._journal.write(self.number + len(good), good, id)
            except BaseException:
                self._core.roll_back()
                self._settle_references()
                raise
            moved, gone = self._commit(votes)
            self.number += len(good)
            result = Applied(self.number, len(good), False, moved, gone, tuple(refused))
            self._remember(id, len(good))
            if self._journal is not None and self._journal.since_snapshot >= self._snapshot_every:
                try:
                    self._snapshot()
                except JournalError as error:  # the batch itself is written, so it counts; the next one tries again
                    log.warning("no snapshot was written: %s", error)
        for listener in list(self._listeners):
            listener(result)
        return result

    def _commit(self, votes: tuple[CopyVotes, CopyVotes]) -> tuple[tuple[Moved, ...], tuple[Id, ...]]:
        moved, gone = self._core.commit(*votes)
        self._settle_references()
        return moved, gone

    def _settle_references(self) -> None:
        for reference in self._references.values():
            reference.settle()

    def _remember(self, batch_id: str | None, events: int) -> None:
        if batch_id is not None:
            self._acknowledged[batch_id] = events
            if len(self._acknowledged) > REMEMBERED:
                del self._acknowledged[next(iter(self._acknowledged))]

    def _addressed(self, events: list[Event]) -> list[tuple[Event, int]]:
        return [(event, self._graph_number(event)) for event in events]

    def _graph_number(self, event: Event) -> int:
        """Number of the graph that an event is about; -1 if it names none that there is."""
        if self.task == "node":
            return 0 if event.graph is None else -1
        return self._graph_of_row.get(-1 if event.graph is None else event.graph, -1)

    def close(self) -> None:
        """Lets go of the journal; everything acknowledged is in it."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def __enter__(self) -> "LiveGraph":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def live_division(defence: Divided, model: Any, data: Any, **settings: Any) -> LiveGraph:
    """Returns the live graph of a division and its voting rule; ``settings`` are arguments of ``LiveGraph``."""
    return LiveGraph(model, data, defence.division, voting_rule=defence.voting_rule, **settings)
