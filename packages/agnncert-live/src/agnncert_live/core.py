"""``Core``: applies events, recomputes the votes that they affect, and keeps labels and radii current."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.claim import make_claim
from agnncert.certificates.ids import Id, id_array
from agnncert.certificates.votes import apply_voting_rule
from agnncert.errors import AgnncertError
from agnncert.graphs.graph import Task
from agnncert.proving.certificate import Certificate, Decision
from agnncert_live.casting import Caster, CopyVotes
from agnncert_live.counting import Counter, Tallies
from agnncert_live.events import Event, Moved, Refused
from agnncert_live.nodes import grown
from agnncert_live.store import Store

Array = npt.NDArray[Any]


@dataclass
class Answers:
    """What is known of each target, by slot of the node or number of the graph.

    Attributes:
        label: Its label.
        radius: Its radius; where every neighbour has a group of its own, before it is cut at the number of groups.
        since: Its place in line; -1 for what is no target.
    """

    label: Array
    radius: Array
    since: Array

    @classmethod
    def of(cls, size: int, places: Array) -> "Answers":
        """Nothing known yet about the targets in some places."""
        nothing = np.zeros(size, dtype=np.int64)
        answers = cls(nothing, nothing.copy(), np.full(size, -1, dtype=np.int64))
        answers.since[places] = np.arange(len(places))
        return answers


class Core:
    """A store with the votes, labels and radii of its targets.

    Args:
        store: The graph.
        caster: Casts its votes.
        counter: Counts them.
        answers: The targets.
        rows: Graph task: row of each graph in the data.
        y: Node task: labels by slot, if there are any.
        all_nodes: Whether nodes that are added become targets.
    """

    def __init__(
        self, store: Store, caster: Caster, counter: Counter, answers: Answers, rows: Array, y: Any, all_nodes: bool
    ) -> None:
        self.store, self.caster, self.counter, self.answers = store, caster, counter, answers
        self.task: Task = store.cells.task
        self.rows, self.y, self.all_nodes = rows, y, all_nodes
        self.next_since = int(answers.since.max(initial=-1)) + 1
        self.tallies = None if self.task == "graph" else Tallies(counter)
        self._tally(store.union.live_copies()[store.cast[store.union.live_copies()]])
        caster.keep_products()

    def cast_all(self) -> None:
        """Casts the votes of all targets, and counts them."""
        store, places = self.store, self.order()
        copies = store.union.live_copies()
        if self.task == "node":
            copies = copies[self.answers.since[store.union.node[copies]] >= 0]
        copies = copies[store.cells.votes(store.nodes, store.union, copies)]
        self._keep(*self.caster.cast(copies, places if self._plain else places[:0]))
        self._tally(copies)
        self.count(places)

    def _tally(self, copies: Array) -> None:
        if self.tallies is not None:
            self.tallies.add(copies, self.answers.since >= 0)

    @property
    def _plain(self) -> bool:
        """Whether targets have a prediction without edges."""
        return self.task == "node" and not self.store.cells.gated

    def prepare(
        self, events: list[tuple[Event, int]], skip_bad: bool
    ) -> tuple[list[Refused], tuple[CopyVotes, CopyVotes]]:
        """Changes the graph and casts what has to be cast again. Nothing counts before :meth:`commit`.

        Args:
            events: Events, each with the number of its graph.
            skip_bad: Leave out events that cannot be applied.

        Raises:
            AgnncertError: An event cannot be applied, or the model fails. Nothing has changed.
        """
        try:
            refused = self._change(events, skip_bad)
            self._note_new_targets()
            self.caster.renew()
            return refused, self.caster.cast(*self._affected())
        except BaseException:
            self.roll_back()
            raise

    def _change(self, events: list[tuple[Event, int]], skip_bad: bool) -> list[Refused]:
        refused: list[Refused] = []
        for index, (event, graph) in enumerate(events):
            mark = len(self.store.now.undo)
            try:
                self.store.apply(event, graph)
            except AgnncertError as error:
                self.store.rollback(mark)
                if not skip_bad:
                    raise type(error)(f"event {index} ({event.kind}): {error}") from error
                refused.append(Refused(index, event, str(error)))
        return refused

    def _affected(self) -> tuple[Array, Array]:
        """Copies whose votes have to be cast again, and nodes whose prediction without edges has to be."""
        store = self.store
        if self.task == "graph":
            return self.caster.affected(np.zeros(0, dtype=bool)), np.zeros(0, dtype=np.int64)
        is_target = self.answers.since >= 0
        no_edge = _array(store.now.features)
        no_edge = no_edge[store.nodes.alive[no_edge] & is_target[no_edge]]
        return self.caster.affected(is_target), no_edge if self._plain else no_edge[:0]

    def _note_new_targets(self) -> None:
        """Nodes that are new become targets if all nodes are."""
        if self.task == "graph":
            return
        store, answers = self.store, self.answers
        size, old = len(store.nodes.alive), len(answers.since)
        if size > old:
            for name in ("label", "radius", "since"):
                setattr(answers, name, grown(getattr(answers, name), size))
            answers.since[old:] = -1
        if self.y is not None:
            self.y = grown(self.y, size)
        for slot in store.now.born:
            if self.y is not None:
                self.y[slot] = False if self.y.dtype == bool else -1
            if self.all_nodes and store.nodes.alive[slot]:
                answers.since[slot] = self.next_since
                self.next_since += 1

    def roll_back(self) -> None:
        """Undoes what was prepared."""
        if self.task == "node":
            born = [slot for slot in self.store.now.born if slot < len(self.answers.since)]
            self.answers.since[born] = -1
        self.store.rollback()
        self.caster.renew()
        self.store.settle()

    def commit(self, listed: CopyVotes, no_edge: CopyVotes) -> tuple[tuple[Moved, ...], tuple[Id, ...]]:
        """Makes the new votes count; says which targets have another label or radius, and which are gone."""
        store, answers = self.store, self.answers
        if self.tallies is None:
            self._keep(listed, no_edge)
            graphs = store.nodes.graph[store.union.node[_array(store.now.ends)]]
            touched = np.unique(np.concatenate([graphs, store.nodes.graph[_array(store.now.features)]]))
            store.settle()
            return self._recount(touched.astype(np.int64), {}), ()
        union = store.union
        nodes = [union.node[_array(store.now.ends)], union.node[listed.of], no_edge.of]
        touched = np.unique(np.concatenate(nodes)).astype(np.int64)
        born = dict(store.now.born)
        changed = np.unique(np.concatenate([_array(store.now.ends), listed.of]))
        self.tallies.remove(changed)
        self._keep(listed, no_edge)
        gone = []
        for slot in store.now.died:
            if not store.nodes.alive[slot] and answers.since[slot] >= 0:
                answers.since[slot] = -1
                gone.append(store.nodes.name[slot])
        self._tally(changed)
        store.settle()
        return self._recount(touched[answers.since[touched] >= 0], born), tuple(gone)  # type: ignore[arg-type]

    def _recount(self, targets: Array, new: Any) -> tuple[Moved, ...]:
        answers, most = self.answers, self.num_groups()
        before = answers.label[targets].tolist(), np.minimum(answers.radius[targets], most).tolist()
        self.count(targets)
        after = answers.label[targets].tolist(), np.minimum(answers.radius[targets], most).tolist()
        moved = []
        for k, target in enumerate(targets.tolist()):
            if target in new:
                moved.append(Moved(self.id_of(target), (None, after[0][k]), (None, after[1][k])))
            elif before[0][k] != after[0][k] or before[1][k] != after[1][k]:
                moved.append(Moved(self.id_of(target), (before[0][k], after[0][k]), (before[1][k], after[1][k])))
        return tuple(moved)

    def id_of(self, target: int) -> Id:
        """Id of a target node, or row of a target graph."""
        return int(self.rows[target]) if self.task == "graph" else self.store.nodes.name[target]  # type: ignore[return-value]

    def _keep(self, listed: CopyVotes, no_edge: CopyVotes) -> None:
        store = self.store
        store.cast[listed.of] = True
        store.vote[listed.of], store.stable[listed.of] = listed.vote, listed.stable
        store.close[listed.of] = listed.close
        store.no_edge[no_edge.of], store.no_edge_stable[no_edge.of] = no_edge.vote, no_edge.stable
        store.no_edge_close[no_edge.of] = no_edge.close

    def count(self, targets: Array) -> None:
        """Finds label and radius of some targets."""
        if len(targets):
            counted = self.tallies.labels_and_radii(targets) if self.tallies is not None else None
            label, radius = counted or self.counter.evidence(targets).label_and_radius()
            self.answers.label[targets], self.answers.radius[targets] = label, radius

    def num_groups(self) -> int:
        """How many groups there are: with one per neighbour, as many as there are nodes or pairs now."""
        store = self.store
        if not store.cells.own_groups:
            return int(store.cells.division.num_groups)
        if not store.cells.by_pair:
            return max(1, *(len(slots) for slots in store.nodes.slot_of))
        assert store.pairs is not None
        return max(1, int(store.pairs.max()))

    def decision(self, target: int, locality: str, tolerance: float) -> Decision:
        """What is proved about one target."""
        evidence = self.counter.evidence(np.array([target]), with_reach=True)
        claim = make_claim(evidence, str(self.store.cells.division), tolerance=tolerance, locality=locality)
        row, truth = self._row_and_truth(target)
        known = np.array([row]), None if truth is None else np.array([truth]), np.array([self.degree(target)])
        ids = id_array([self.id_of(target)])
        return Certificate(claim, evidence, ids, *known)[self.id_of(target)]

    def revise(self, listed: CopyVotes, no_edge: CopyVotes) -> None:
        """Puts other votes in the place of some, the graph being as it was."""
        if self.tallies is not None:
            self.tallies.remove(listed.of)
        self._keep(listed, no_edge)
        self._tally(listed.of)

    def votes(self, target: int) -> Array:
        """The vote of a target in every group; not defined with one group per neighbour."""
        store = self.store
        most = int(store.cells.division.num_groups)
        votes, _ = self.counter.votes(
            np.array([target]), store.union.cell % most if self.task == "graph" else store.union.cell
        )
        dense: Array = apply_voting_rule(votes, self.counter.voting_rule)[0].dense()[0]
        return dense

    def _row_and_truth(self, target: int) -> tuple[int, int | None]:
        nodes = self.store.nodes
        if self.task == "graph":
            return int(self.rows[target]), None
        row = int((nodes.alive[: nodes.count] & (nodes.born[: nodes.count] < nodes.born[target])).sum())
        whole = self.y is not None and self.y.ndim == 1 and self.y.dtype.kind in "iu"
        return row, int(self.y[target]) if whole else None

    def degree(self, target: int) -> int:
        """Distinct neighbours of a node, or edges of a graph."""
        if self.task == "node":
            near = self.store.neighbours(target)
            return len(near) - int(not self.store.cells.keeps_loops and bool(self.store.loops.get(target)))
        slots = np.fromiter(self.store.nodes.slot_of[target].values(), dtype=np.int64)
        union = self.store.union
        arcs = union.leaving.gather(union.of_node.gather(slots)[0])[0]
        ends = np.sort(union.node[np.stack([union.source[arcs], union.head[arcs]])].astype(np.int64), axis=0)
        return len(np.unique(ends[0] << 32 | ends[1]))

    def order(self) -> Array:
        """Slots of the targets in their order."""
        if self.task == "graph":
            return np.arange(len(self.rows))
        targets = np.flatnonzero(self.answers.since >= 0)
        return targets[np.argsort(self.answers.since[targets], kind="stable")]


def _array(numbers: Iterable[int]) -> Array:
    return np.fromiter(numbers, dtype=np.int64)
