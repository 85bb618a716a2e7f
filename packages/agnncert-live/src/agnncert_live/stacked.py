"""``StackedCore``: keeps the labels and radii of stacked votes current while the graph changes.

An edge changes the sums of its two ends, and with two levels also those of their neighbours. Nothing else is counted
again.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.auditing.model_audit import Locality
from agnncert.certificates.budget import Budget
from agnncert.defence import CertifyOptions, Defence, GraphData, Model
from agnncert.divisions.edge import PerEdge
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import Task
from agnncert.graphs.targets import prepared
from agnncert.proving.certificate import Certificate, Decision, everything_but_additions
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.counting import stacked_counts
from agnncert.stacked.defence import StackedVotes, audit_own
from agnncert.stacked.evidence import StackedEvidence
from agnncert.stacked.model import StackedModel
from agnncert_live.core import Beginning, Core, Subject, as_array
from agnncert_live.near import edges_at, with_neighbours
from agnncert_live.rows import grown
from agnncert_live.spent import Around, Node, Reference, Spent
from agnncert_live.subgraphs import Subgraphs

Array = npt.NDArray[Any]

NODES_AT_ONCE = 2**14  # whose votes are counted together


class StackedAnswers(NamedTuple):
    """Label, radius and structure radius of some nodes, by slot."""

    slots: Array
    label: Array
    radius: Array
    structure_radius: Array


class StackedCore(Core[StackedAnswers]):
    """A graph with the labels and radii of its targets, under stacked votes.

    Args:
        subject: The graph and its targets.
        beginning: The model and the defence.
        locality: How it is known that the models without edges classify each row by itself.
    """

    def __init__(self, subject: Subject, beginning: Beginning, locality: Locality) -> None:
        super().__init__(subject)
        self.model = _stacked_model(beginning.model)
        self._frozen = self.model.frozen()
        self.defence = beginning.defence
        self.locality = locality
        self._id_kind = beginning.chosen.id_kind
        self._structure_radius = np.zeros(len(self.store.nodes.alive), dtype=np.int64)

    @classmethod
    def subgraphs(cls, defence: Defence, task: Task) -> Subgraphs:
        """Returns a subgraph for each pair of nodes: one vote reads one pair.

        Raises:
            SettingsError: Graphs are to be classified.
        """
        if task != "node":
            raise SettingsError("stacked votes classify nodes: for graphs, pass a division.")
        return Subgraphs(PerEdge(), task)

    @classmethod
    def identity(cls, defence: Defence, tolerance: float | None) -> dict[str, str]:
        """Returns the defence, by which a journal knows it. Thresholds are a part of the model.

        Raises:
            SettingsError: A tolerance is given, which stacked votes do not have.
        """
        if tolerance is not None:
            raise SettingsError(f"tolerance={tolerance:g}: {defence} has no such setting; leave it out.")
        return {"defence": str(defence)}

    @classmethod
    def begin(cls, subject: Subject, beginning: Beginning) -> "StackedCore":
        """Audits the models without edges and returns the core.

        Raises:
            ModelContractError: The model is of another kind, or breaks an assumption of the proof.
        """
        model = _stacked_model(beginning.model)
        beginning.defence.require_own_model(model)
        return cls(subject, beginning, audit_own(model, beginning.canonical_data.data))

    # A batch.

    def compute_all(self) -> None:
        """Computes the labels and radii of all targets."""
        targets = self.order()
        self._keep_answers(self._count(targets))

    def _compute_affected(self) -> StackedAnswers:
        touched = self._touched_nodes()
        return self._count(touched[self.answers.is_target[touched]])

    def _touched(self, computed: StackedAnswers) -> Array:
        return computed.slots

    def _keep(self, computed: StackedAnswers) -> None:
        self._structure_radius = grown(self._structure_radius, len(self.store.nodes.alive))

    def _answer(self, targets: Array, computed: StackedAnswers) -> None:
        self._keep_answers(computed)

    def _keep_answers(self, answers: StackedAnswers) -> None:
        self.answers.label[answers.slots] = answers.label
        self.answers.radius[answers.slots] = answers.radius
        self._structure_radius[answers.slots] = answers.structure_radius

    def _undone(self) -> None:
        """Nothing was kept beside the graph."""

    def _touched_nodes(self) -> Array:
        """Returns living nodes whose scores may differ: ends of changed edges, and neighbours of changed features."""
        batch = self.store.batch
        ends = np.unique(self.store.union.node[as_array(batch.ends)]).astype(np.int64)
        touched = np.union1d(ends, with_neighbours(self.store, as_array(batch.features)))
        if self.model.defence.levels == 2:
            touched = with_neighbours(self.store, touched)
        return np.asarray(touched[self.store.nodes.alive[touched]], dtype=np.int64)

    def _count(self, slots: Array) -> StackedAnswers:
        """Counts the votes of some nodes."""
        label = np.zeros(len(slots), dtype=np.int64)
        radius = np.zeros(len(slots), dtype=np.int64)
        structure_radius = np.zeros(len(slots), dtype=np.int64)
        for first in range(0, len(slots), NODES_AT_ONCE):
            part = slice(first, first + NODES_AT_ONCE)
            evidence = self._evidence(slots[part])
            label[part], radius[part] = evidence.label_and_radius()
            structure_radius[part] = evidence.structure_radius()
        return StackedAnswers(slots, label, radius, structure_radius)

    def _evidence(self, slots: Array) -> StackedEvidence:
        """Returns the evidence about some nodes, from the part of the graph that they depend on."""
        center = slots
        if self.model.defence.levels == 2:
            center = with_neighbours(self.store, slots)
        edges = edges_at(self.store, center)
        around = np.union1d(center, edges.ends.ravel())
        graph = Data(
            x=torch.from_numpy(self.store.nodes.x[around]),
            edge_index=torch.from_numpy(np.searchsorted(around, edges.ends)),
            **{name: torch.from_numpy(value) for name, value in edges.values.items()},
        )
        chosen = prepared(graph).targets(np.searchsorted(around, slots))
        evidence = StackedEvidence(**stacked_counts(self.model, chosen, self._frozen))
        return replace(evidence, ids=self._id_kind)

    # What is asked.

    def largest_radius(self) -> int:
        """Returns a number that no radius reaches: radii are not cut."""
        return int(np.iinfo(np.int64).max)

    def structure_radius(self) -> Array:
        """Returns how many edges and nodes may be added or deleted, for each target."""
        return np.asarray(self._structure_radius[self.order()])

    def decision(self, target: int) -> Decision:
        """Returns what is proved about one target."""
        evidence = self._evidence(np.array([target]))
        claim = make_stacked_claim(evidence, locality=self.locality, notes=(str(self.model.defence),))
        return self.decided(target, claim, evidence)

    def certificate(self) -> Certificate:
        """Returns the certificate of the graph as it is: one pass over the nodes and one sum over the edges."""
        certificate = self.defence.certify(self.model, self.data(), self.target_rows(), CertifyOptions())
        evidence = certificate.evidence
        assert isinstance(evidence, StackedEvidence)
        self._keep_answers(
            StackedAnswers(self.order(), certificate.label, certificate.radius, evidence.structure_radius())
        )
        return certificate

    def proves(self, certificate: Certificate) -> bool:
        """Whether a certificate is one of stacked votes with these settings."""
        return certificate.claim.notes == (str(self.model.defence),)

    @property
    def summary(self) -> Mapping[str, Any]:
        """The defence, by name."""
        return {"defence": str(self.defence)}

    def spent(self, reference: Reference, since: Certificate, target: int) -> Spent:
        """Returns what has happened to a target since a reference, beside what that is proof against."""
        name = self.id_of(target)
        node = Node(0, name)
        place = since.position[name]
        evidence = _evidence_of_one(since, place)
        around = reference.around(node, by_pair=True)
        features_changed = reference.features_changed(node)
        cost = reference.cost(0, name)
        radius = int(since.radius[place])
        proved_by: list[str] = []
        votes_moved = None
        if self.model.defence.levels == 1:
            votes_moved = len(around.new) + len(around.lost) + len(around.changed)
        if not self._trusted_edges_changed(reference, node, around):
            if votes_moved is not None and votes_moved <= radius and not features_changed:
                proved_by.append("radius")
            near = _budget_near_target(around, features_changed)
            if votes_moved is not None and bool(evidence.holds(near)[0]):
                proved_by.append("new neighbours")
            if bool(evidence.holds(cost)[0]):
                proved_by.append("budget")
        most_new = evidence.max_certified("add_edges", everything_but_additions(since.claim.ids))
        return Spent(
            target=name,
            label=(int(since.label[place]), int(self.answers.label[target])),
            radius=radius,
            votes_moved=votes_moved,
            new_neighbours=len(around.new),
            lost_neighbours=len(around.lost),
            changed_neighbours=len(around.changed),
            withstands_new_neighbours=float(most_new[0]),
            cost=cost,
            proved_by=tuple(proved_by),
        )

    def _trusted_edges_changed(self, reference: Reference, node: Node, around: Around) -> bool:
        """Whether a trusted edge of a target changed, or a neighbour at one: no statement allows for that."""
        column = self.model.defence.trusted
        if column is None:
            return False
        values = list(self.store.union.values).index("edge_attr")
        for neighbour in around.new | around.lost | around.changed:
            for arc in reference.arcs_then_and_now(node, neighbour):
                attributes = np.atleast_1d(arc.values[values])
                if attributes[column] > 0:
                    return True
        return False


def _budget_near_target(around: Around, features_changed: bool) -> Budget:
    """Returns a budget that allows what happened at a target's neighbours. With one level nothing else matters."""
    return Budget(
        add_edges=len(around.new),
        delete_edges=len(around.lost),
        change_features=len(around.changed),
        target_features=features_changed,
    )


def _evidence_of_one(certificate: Certificate, place: int) -> StackedEvidence:
    evidence = certificate.evidence
    if not isinstance(evidence, StackedEvidence):
        raise SettingsError(
            f"the reference holds evidence of the kind {evidence.kind!r}, and this live graph that of stacked votes."
        )
    one = evidence.part(np.array([place]))
    assert isinstance(one, StackedEvidence)
    return one


def _stacked_model(model: Model) -> StackedModel:
    if not isinstance(model, StackedModel):
        raise ModelContractError(
            f"StackedVotes certifies models that fit(model, data, StackedVotes(…)) returns, got {type(model).__name__}."
        )
    return model


def live_stacked(defence: StackedVotes, model: StackedModel, data: GraphData | None, **settings: Any) -> Any:
    """Returns the ``LiveGraph`` of stacked votes; ``settings`` are arguments of ``LiveGraph``."""
    from agnncert_live.graph import LiveGraph

    return LiveGraph(model, data, defence, **settings)
