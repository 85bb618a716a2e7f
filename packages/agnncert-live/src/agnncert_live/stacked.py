"""``LiveStackedVotes``: labels and radii of stacked votes on a graph that changes, current after every event."""

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.certificates.ids import encode_id, id_array
from agnncert.divisions.edge import PerEdge
from agnncert.errors import AgnncertError, IdError, ModelContractError, SettingsError
from agnncert.graphs.targets import prepared
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate
from agnncert.stacked.counting import stacked_counts
from agnncert.stacked.defence import StackedVotes, audit_own, require_stacked
from agnncert.stacked.evidence import StackedEvidence
from agnncert.stacked.model import StackedModel
from agnncert_live.conversion import data_of, store_of
from agnncert_live.events import Applied, Moved, events_of
from agnncert_live.rows import grown
from agnncert_live.subgraphs import Subgraphs

Array = npt.NDArray[Any]

PART = 2**14  # nodes whose votes are counted together


class LiveStackedVotes:
    """A graph with stacked votes whose labels and radii are current after every event.

    After any sequence of events they are those of ``ac.certify`` on :meth:`data`. An edge changes the sums of its two
    ends; with two levels also those of their neighbours. Nothing else is counted again. The model stays as it is. All
    methods may be called from several threads.

    Args:
        model: What ``fit(model, data, StackedVotes(…))`` returned, in eval mode.
        data: The graph to begin with (a ``Data``), ideally with ``node_id``, without which no node can be deleted.

    Raises:
        ModelContractError: The model breaks an assumption of the proof.
        GraphError: The graph cannot be certified as it is.
    """

    def __init__(self, model: StackedModel, data: Data) -> None:
        require_stacked(model, model.defence)
        ready = prepared(data)
        audit_own(model, ready.data)
        self.model, self._digest = model, model_digest(model)
        self._lock = threading.RLock()
        self._store = store_of(ready, ready.targets(None), None, Subgraphs(PerEdge(), "node"))
        y = getattr(ready.data, "y", None)
        self._y = None if y is None else torch.as_tensor(y).detach().cpu().numpy().copy()
        self.number = 0  # events that have been applied
        self._answers = np.zeros((0, 3), dtype=np.int64)  # by slot: label, radius, structure radius
        self._keep(self._living(), self._counted(self._living()))

    def _living(self) -> Array:
        """Slots of the nodes, in the order of rows."""
        return np.asarray(self._store.nodes.in_order(), dtype=np.int64)

    @property
    def targets(self) -> npt.NDArray[Any]:
        """Ids of the nodes, in the order of all that is said about them."""
        with self._lock:
            return id_array([self._store.nodes.name(slot) for slot in self._living().tolist()])

    @property
    def label(self) -> npt.NDArray[np.int64]:
        """The label of each node, shape ``[n]``."""
        with self._lock:
            return self._column(0)

    @property
    def radius(self) -> npt.NDArray[np.int64]:
        """How many changes of any kind each node withstands, shape ``[n]``."""
        with self._lock:
            return self._column(1)

    @property
    def structure_radius(self) -> npt.NDArray[np.int64]:
        """How many edges and nodes may be added or deleted, shape ``[n]``."""
        with self._lock:
            return self._column(2)

    def _column(self, number: int) -> npt.NDArray[np.int64]:
        return np.asarray(self._answers[self._living(), number], dtype=np.int64)

    def __len__(self) -> int:
        with self._lock:
            return len(self._living())

    def __getitem__(self, target: Any) -> dict[str, int]:
        """Label, radius and structure radius of one node, by its id."""
        with self._lock:
            slot = self._store.nodes.find(0, encode_id(target.item() if hasattr(target, "item") else target))
            if slot is None:
                raise IdError(f"there is no node {target!r:.60}: there are {len(self):,}, by their ids.")
            return dict(zip(("label", "radius", "structure_radius"), self._answers[slot].tolist(), strict=True))

    def data(self) -> Data:
        """The graph as it is, with ``x``, ``edge_index``, edge values, ``node_id`` and ``y``."""
        with self._lock:
            graph = data_of(self._store, "node", self._y, None, np.zeros(1, dtype=np.int64))
            assert isinstance(graph, Data)
            return graph

    def certificate(self) -> Certificate:
        """The certificate of the graph as it is, by ``certify``: one pass over the nodes and one sum over the edges.

        Raises:
            ModelContractError: The model has been altered since.
        """
        with self._lock:
            if model_digest(self.model) != self._digest:
                raise ModelContractError("the model is not the one that this live graph began with: begin a new one.")
            return ac.certify(self.model, self.data(), self.model.defence)

    def apply(self, changes: Any) -> Applied:
        """Applies events, all of them or, if one cannot be applied, none.

        Args:
            changes: A ``Perturbation``, an ``Event``, or several of them, applied in order.

        Returns:
            What became of them: labels that flipped, radii that fell.

        Raises:
            GraphError: An event cannot be applied; says which and why. Nothing has changed.
        """
        with self._lock:
            events, store = list(events_of(changes)), self._store
            try:
                for index, event in enumerate(events):
                    try:
                        store.apply(event, 0 if event.graph is None else -1)
                    except AgnncertError as error:
                        raise type(error)(f"event {index} ({event.kind}): {error}") from error
                touched = self._touched()
                answers = self._counted(touched)
            except BaseException:
                store.rollback()
                store.end_batch()
                raise
            born, names = store.batch.added, store.nodes.name
            gone = tuple(
                names(slot) for slot in store.batch.maybe_dead if slot not in born and not store.nodes.alive[slot]
            )
            moved = []
            for slot, now in zip(touched.tolist(), answers.tolist(), strict=True):
                old = [None, None] if slot in born else self._answers[slot].tolist()
                if old[:2] != now[:2]:
                    moved.append(Moved(names(slot), (old[0], now[0]), (old[1], now[1])))
            self._keep(touched, answers)
            store.end_batch()
            self.number += len(events)
            return Applied(self.number, len(events), moved=tuple(moved), gone=gone)

    def _keep(self, slots: Array, answers: Array) -> None:
        size = len(self._store.nodes.alive)
        self._answers = grown(self._answers, size)
        self._answers[slots] = answers
        if self._y is not None:
            self._y = grown(self._y, size)
            self._y[list(self._store.batch.added)] = False if self._y.dtype == bool else -1

    def _touched(self) -> Array:
        """Nodes whose scores may be others: both ends of a changed edge, and neighbours of changed features."""
        now, nodes = self._store.batch, self._store.nodes
        ends = np.unique(self._store.union.node[np.fromiter(now.ends, dtype=np.int64)]).astype(np.int64)
        changed = np.fromiter(now.features, dtype=np.int64)
        reached = np.union1d(ends, self._near(changed))
        if self.model.defence.levels == 2:
            reached = self._near(reached)
        return np.asarray(reached[nodes.alive[reached]], dtype=np.int64)

    def _near(self, slots: Array) -> Array:
        """Some living nodes and their neighbours."""
        ends = self._arcs(slots)[0]
        return np.union1d(slots, ends.ravel())

    def _arcs(self, slots: Array) -> tuple[Array, dict[str, Array]]:
        """All edges at some nodes: the nodes that they join, shape ``[2, m]``, and what they carry."""
        union = self._store.union
        copies = union.of_node.gather(slots)[0]
        arcs = np.unique(np.concatenate([union.arriving.gather(copies)[0], union.leaving.gather(copies)[0]]))
        return union.ends(arcs), {name: value[arcs] for name, value in union.values.items()}

    def _counted(self, slots: Array) -> Array:
        """Label and radii of some nodes, from the part of the graph that they depend on, shape ``[n, 3]``."""
        found = np.zeros((len(slots), 3), dtype=np.int64)
        for first in range(0, len(slots), PART):
            part = slots[first : first + PART]
            center = self._near(part) if self.model.defence.levels == 2 else part
            ends, values = self._arcs(center)
            around = np.union1d(center, ends.ravel())
            graph = Data(
                x=torch.from_numpy(self._store.nodes.x[around]),
                edge_index=torch.from_numpy(np.searchsorted(around, ends)),
                **{name: torch.from_numpy(value) for name, value in values.items()},
            )
            chosen = prepared(graph).targets(np.searchsorted(around, part))
            evidence = StackedEvidence(**stacked_counts(self.model, chosen))
            label, radius = evidence.label_and_radius()
            found[first : first + PART] = np.stack([label, radius, evidence.structure_radius()], axis=1)
        return found


def live_stacked(defence: StackedVotes, model: StackedModel, data: Data, **settings: Any) -> LiveStackedVotes:
    """Returns the live graph of stacked votes.

    Raises:
        SettingsError: A setting is given, such as ``journal``, that live stacked votes do not have yet.
    """
    if settings:
        named = ", ".join(f"{name}={value!r:.60}" for name, value in settings.items())
        raise SettingsError(
            f"{named}: live stacked votes are kept in this process alone, without journal, alerts and service. Apply "
            "events to agnncert_live.LiveStackedVotes(model, data)."
        )
    require_stacked(model, defence)
    return LiveStackedVotes(model, data)
