"""``AppendCore``: keeps append-only scores current while the graph changes.

What the far ends of rows are asked about is kept for every account: counters, and their bounds after deletions. An
event counts anew at the accounts that it touches and, where a feature reads counters of partners, at theirs; each reads
its own rows and the counters of all others.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.append.claim import make_append_claim
from agnncert.append.defence import AppendOnly
from agnncert.append.evaluate import Bounds, Lowered, Values, reach_of
from agnncert.append.evidence import AppendEvidence, as_trees
from agnncert.append.ledger import Ledger, read_ledger
from agnncert.append.model import AppendModel
from agnncert.append.program import Expression, Threat
from agnncert.append.record import AppendRecord
from agnncert.defence import CertifyOptions, Defence, GraphData, Model
from agnncert.divisions.edge import PerEdge
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import EDGE_VALUES, Task
from agnncert.proving.certificate import Certificate, Decision
from agnncert_live.core import Beginning, Core, Subject, as_array
from agnncert_live.near import edges_at, with_neighbours
from agnncert_live.rows import grown
from agnncert_live.spent import Node, Reference, Spent, kinds_of_change
from agnncert_live.subgraphs import Subgraphs

Array = npt.NDArray[Any]
Key = tuple[int, Expression, bool]  # deletions, what is counted, and whether the account sends nothing more


class Counters:
    """What is counted of every account for those at the other ends of its rows, by slot.

    Attributes:
        values: Values by expression.
        bounds: Bounds after deletions.
    """

    def __init__(self) -> None:
        self.values: dict[Expression, Array] = {}
        self.bounds: dict[Key, Bounds] = {}

    def write(self, other: "Counters", slots: Array, size: int) -> None:
        """Takes over counters of some accounts."""
        for expression, value in other.values.items():
            self.values[expression] = _written(self.values.get(expression), slots, value, size)
        for key, bounds in other.bounds.items():
            old = self.bounds.get(key, (None, None))
            self.bounds[key] = Bounds(*(_written(a, slots, b, size) for a, b in zip(old, bounds, strict=True)))


def _written(column: Array | None, slots: Array, value: Array, size: int) -> Array:
    wide = np.zeros(size, dtype=np.int64) if column is None else grown(column, size)
    wide[slots] = value
    return wide


class _Border:
    """Accounts of a part of the graph whose rows are not all in it: their counters are known."""

    def __init__(self, counters: Counters, places: Array, slots: Array) -> None:
        self.counters = counters
        self.places = places
        self.slots = slots

    def value(self, expression: Expression) -> Array:
        """Returns an expression of these accounts."""
        return self.counters.values[expression][self.slots] if len(self.slots) else np.zeros(0, dtype=np.int64)

    def bounds(self, expression: Expression, frozen: bool, deletions: int) -> Bounds:
        """Returns bounds of it after deletions."""
        if not len(self.slots):
            return Bounds(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        bounds = self.counters.bounds[deletions, expression, frozen]
        return Bounds(bounds.low[self.slots], bounds.high[self.slots])


class AppendAnswers(NamedTuple):
    """What was counted anew: counters of some accounts, and label and radius of the targets among them, by slot."""

    accounts: Array
    counters: Counters
    slots: Array
    label: Array
    radius: Array


class Tables(NamedTuple):
    """Features of some accounts, shape ``[n, F]``, bounds of them after deletions, ``[m, n, F]``, and counters."""

    features: Array
    lowered: Array
    counters: Counters


class AppendCore(Core[AppendAnswers]):
    """A graph with the labels and radii of its accounts, under append-only scores.

    Args:
        subject: The graph and its targets.
        beginning: The model and the defence.
    """

    def __init__(self, subject: Subject, beginning: Beginning) -> None:
        super().__init__(subject)
        self.model = _append_model(beginning.model)
        assert isinstance(beginning.defence, AppendOnly)
        self.defence = beginning.defence
        self.threat: Threat = self.defence.threat
        self.counters = Counters()
        self._id_kind = beginning.chosen.id_kind
        self._known = self.model.known.cpu().numpy()
        self._trees = as_trees(self.model.tables("tree_"))
        self._judge = as_trees(self.model.tables("judge_"))
        self._reach = reach_of(self.model.program)

    @classmethod
    def subgraphs(cls, defence: Defence, task: Task) -> Subgraphs:
        """Returns a subgraph for each pair of accounts.

        Raises:
            SettingsError: Graphs are to be classified.
        """
        if task != "node":
            raise SettingsError("append-only scores are for nodes: for graphs, pass a division.")
        return Subgraphs(PerEdge(), task)

    @classmethod
    def identity(cls, defence: Defence, tolerance: float | None) -> dict[str, str]:
        """Returns the defence, by which a journal knows it. Program, trees and threshold are a part of the model.

        Raises:
            SettingsError: A tolerance is given, which these scores do not have.
        """
        if tolerance is not None:
            raise SettingsError(f"tolerance={tolerance:g}: {defence} has no such setting; leave it out.")
        return {"defence": str(defence)}

    @classmethod
    def begin(cls, subject: Subject, beginning: Beginning) -> "AppendCore":
        """Checks the model and returns the core.

        Raises:
            ModelContractError: The model is of another kind, was altered, or could fall when rows are appended.
        """
        beginning.defence.require_own_model(_append_model(beginning.model))
        core = cls(subject, beginning)
        core.evidence_of(np.zeros(0, dtype=np.int64))  # tests all types and leaves, once
        return core

    # A batch.

    def compute_all(self) -> None:
        """Counts everything."""
        alive = np.flatnonzero(self.store.nodes.alive)
        computed = self._count(alive)
        self._keep(computed)
        self._answer(computed.slots, computed)

    def _compute_affected(self) -> AppendAnswers:
        batch = self.store.batch
        near = np.unique(self.store.union.node[as_array(batch.ends)]).astype(np.int64)
        renewed = as_array(batch.features)
        for _ in range(self._reach):
            near, renewed = with_neighbours(self.store, near), with_neighbours(self.store, renewed)
        touched = np.union1d(near, with_neighbours(self.store, renewed))
        return self._count(touched[self.store.nodes.alive[touched]])

    def _touched(self, computed: AppendAnswers) -> Array:
        return computed.slots

    def _keep(self, computed: AppendAnswers) -> None:
        self.counters.write(computed.counters, computed.accounts, len(self.store.nodes.alive))

    def _answer(self, targets: Array, computed: AppendAnswers) -> None:
        self.answers.label[computed.slots] = computed.label
        self.answers.radius[computed.slots] = computed.radius

    def _undone(self) -> None:
        """Nothing was kept beside the graph."""

    def _count(self, accounts: Array) -> AppendAnswers:
        """Counts some accounts anew, by slot."""
        tables = self._tables(accounts)
        is_target = self.answers.is_target[accounts]
        threshold = int(self.model.threshold)
        stays = [self._trees.score(table[is_target]) > threshold for table in (tables.features, *tables.lowered)]
        number = np.logical_and.accumulate(np.stack(stays), axis=0).sum(axis=0)
        label = np.where(number > 0, self.model.positive, 1 - self.model.positive)
        return AppendAnswers(accounts, tables.counters, accounts[is_target], label, number - 1)

    def _tables(self, accounts: Array) -> Tables:
        """Returns the features of some accounts, from their own rows and the counters of their partners."""
        ledger, around = self._ledger(accounts)
        places = np.searchsorted(around, accounts)
        is_border = np.ones(len(around), dtype=bool)
        is_border[places] = False
        border = _Border(self.counters, np.flatnonzero(is_border), around[is_border])
        values = Values(ledger, self.model.program, self._judge, border)
        features = values.table(places)
        lowered = np.zeros((self.defence.deletions, *features.shape), dtype=np.int64)
        counters = Counters()
        for number in range(1, self.defence.deletions + 1):
            bounds = Lowered(values, self.threat, number)
            lowered[number - 1] = bounds.table(places)
            for (expression, frozen), (low, high) in bounds.bounds_of_all().items():
                counters.bounds[number, expression, frozen] = Bounds(low[places], high[places])
        counters.values = {each: value[places] for each, value in values.counted_of_all().items()}
        return Tables(features, lowered, counters)

    def _ledger(self, accounts: Array) -> tuple[Ledger, Array]:
        """Returns the rows at some accounts, and the slots of the accounts that they join."""
        edges = edges_at(self.store, accounts)
        around = np.union1d(accounts, edges.ends.ravel())
        columns = [edges.values[name] for name in EDGE_VALUES if name in edges.values]
        wide = [value.astype(np.float64).reshape(len(value), math.prod(value.shape[1:])) for value in columns]
        table = np.concatenate(wide, axis=1) if wide else None
        x = self.store.nodes.x[around].astype(np.float64)
        known = np.flatnonzero(np.isin(self.store.nodes.key[around], self._known))
        return read_ledger(self.model.program, np.searchsorted(around, edges.ends), table, x, known), around

    # What is asked.

    def evidence_of(self, slots: Array) -> AppendEvidence:
        """Returns the evidence about some accounts."""
        features = np.zeros((0, len(self.model.program.features)), dtype=np.int64)
        lowered = np.zeros((self.defence.deletions, *features.shape), dtype=np.int64)
        if len(slots):
            features, lowered, _ = self._tables(slots)
        trees, judge = (self.model.tables(prefix) for prefix in ("tree_", "judge_"))
        threshold = int(self.model.threshold)
        record = AppendRecord(
            features, lowered, trees, judge, self.model.program, self.threat, threshold, self.model.positive,
            self._id_kind,
        )  # fmt: skip
        return AppendEvidence(record)

    def largest_radius(self) -> int:
        """Returns the largest number of deletions with a bound."""
        return self.defence.deletions

    def decision(self, target: int) -> Decision:
        """Returns what is proved about one target."""
        evidence = self.evidence_of(np.array([target]))
        return self.decided(target, make_append_claim(evidence.record, notes=(str(self.defence),)), evidence)

    def certificate(self) -> Certificate:
        """Returns the certificate of the graph as it is."""
        data: GraphData = self.data()
        return self.defence.certify(self.model, data, self.target_rows(), CertifyOptions())

    def proves(self, certificate: Certificate) -> bool:
        """Whether a certificate is one of append-only scores with these settings."""
        return certificate.claim.notes == (str(self.defence),)

    @property
    def summary(self) -> Mapping[str, Any]:
        """The defence, and the threat that its flags withstand, by name."""
        return {"defence": str(self.defence), "threat": self.threat}

    def spent(self, reference: Reference, since: Certificate, target: int) -> Spent:
        """Returns what has happened to a target since a reference, beside what that is proof against.

        Under the threat "ledger", partners of then that have sent or got anything since count as bought.
        """
        evidence = since.evidence
        if not isinstance(evidence, AppendEvidence):
            raise SettingsError(
                f"the reference holds evidence of the kind {evidence.kind!r}, and this live graph append-only scores."
            )
        name = self.id_of(target)
        node = Node(0, name)
        place = since.position[name]
        around = reference.around(node, by_pair=True)
        cost = reference.cost(0, name)
        counted = cost
        if self.threat == "ledger":
            now = {self.store.nodes.name(slot) for slot in self.store.neighbours(target).tolist()}
            then = (now - around.new) | around.lost
            counted = cost.but(delete_edges=cost.delete_edges + len(then & _active(reference)))
        return Spent(
            target=name,
            label=(int(since.label[place]), int(self.answers.label[target])),
            radius=int(since.radius[place]),
            votes_moved=None,
            new_neighbours=len(around.new),
            lost_neighbours=len(around.lost),
            changed_neighbours=len(around.changed),
            withstands_new_neighbours=-1.0,
            cost=cost,
            proved_by=("budget",) if bool(evidence.holds(counted)[place]) else (),
        )


def _active(reference: Reference) -> set[Any]:
    """Returns the accounts with new or changed rows since a reference."""
    changed = (pair for pair in reference.pairs if kinds_of_change(reference, pair) - {"delete"})
    return {name for pair in changed for name in pair.names}


def _append_model(model: Model) -> AppendModel:
    if not isinstance(model, AppendModel):
        raise ModelContractError(
            f"AppendOnly certifies models that fit(None, data, AppendOnly(…)) returns, got {type(model).__name__}."
        )
    return model


def live_append(defence: AppendOnly, model: AppendModel, data: GraphData | None, **settings: Any) -> Any:
    """Returns the ``LiveGraph`` of append-only scores; ``settings`` are arguments of ``LiveGraph``."""
    from agnncert_live.graph import LiveGraph

    return LiveGraph(model, data, defence, **settings)
