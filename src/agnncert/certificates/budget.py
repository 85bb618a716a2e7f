"""Holds what an attacker may do (:class:`Budget`) and what it costs him (:class:`Prices`), field by field."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Protocol, Self, runtime_checkable

from agnncert.certificates.ids import Id
from agnncert.errors import BudgetError, did_you_mean

COUNTS = (
    "add_edges",
    "delete_edges",
    "change_edges",
    "inject_nodes",
    "edges_per_injected",
    "delete_nodes",
    "change_features",
)
TRAINING = ("flip_labels", "add_labels", "remove_labels", "poison_graphs")  # done before the model was trained
PRICED = tuple(name for name in COUNTS if name != "edges_per_injected")


@dataclass(frozen=True)
class Budget:
    """The most an attacker may change. ``math.inf`` means any number.

    Every field is zero by default, except that injected nodes may have any number of edges.

    The last four fields are about what the model is trained on. Most defences trust their training data, and refuse a
    budget with such a field.

    An *edge* is an unordered pair of nodes: one or both directions, and any number of copies, count once.

    Attributes:
        add_edges: Pairs that gain a direction which they lacked: joined now, or joined one way before.
        delete_edges: Pairs separated: all their arcs are gone.
        change_edges: Joined pairs given another weight, attribute or number of copies, or deprived of one of two
            directions. A changed edge gains no direction: that is an added one.
        inject_nodes: New nodes, with any features and under any unused id or the id of a deleted node.
        edges_per_injected: Edges that each of them may bring, to old or new nodes. Any number by default.
        delete_nodes: Nodes removed with all their edges; never the target itself.
        change_features: Nodes whose features change arbitrarily, the target not counted.
        target_features: Whether the target's own features may change too.
        flip_labels: Training labels replaced by another class, before training.
        add_labels: Nodes without a training label that are given one, before training.
        remove_labels: Training labels taken away, before training.
        poison_graphs: Training graphs inserted, deleted or altered in any way, before training.

    Example:
        >>> Budget(add_edges=3, delete_edges=math.inf)
        Budget(add_edges=3, delete_edges=inf)
    """

    add_edges: float = 0
    delete_edges: float = 0
    change_edges: float = 0
    inject_nodes: float = 0
    edges_per_injected: float = math.inf
    delete_nodes: float = 0
    change_features: float = 0
    target_features: bool = False
    flip_labels: float = 0
    add_labels: float = 0
    remove_labels: float = 0
    poison_graphs: float = 0

    def __new__(cls, *amounts: Any, **named: Any) -> Self:
        """Refuses a field that a budget does not have, with the nearest one that it has."""
        _require_fields(cls, named)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name in (*COUNTS, *TRAINING):
            value = getattr(self, name)
            if isinstance(value, Integral) and not isinstance(value, int):  # numpy's integers
                value = int(value)
                object.__setattr__(self, name, value)
            is_whole = _is_price(value) and (value == math.inf or value == int(value))
            if not is_whole:
                raise BudgetError(
                    f"Budget({name}={value!r}): expected a whole number from 0 on, or math.inf for any number."
                )
        if not isinstance(self.target_features, bool):
            raise BudgetError(f"Budget(target_features={self.target_features!r}): expected True or False.")

    def __repr__(self) -> str:
        return _shown(self)

    def but(self, **changes: Any) -> "Budget":
        """Returns this budget with some fields replaced.

        Raises:
            BudgetError: A field is unknown, or its value is not a whole number from 0 on. The message about an unknown
                field suggests the nearest one.
        """
        _require_fields(type(self), changes)
        return replace(self, **changes)

    def allows(self, cost: "Budget") -> bool:
        """Returns whether an attack that costs so much stays within this budget, field by field.

        How many edges injected nodes have matters only if nodes are injected.

        Example:
            >>> Budget(add_edges=2).allows(Budget(add_edges=1)), Budget(inject_nodes=1).allows(Budget(add_edges=1))
            (True, False)
        """
        compared = [name for name in COUNTS if name != "edges_per_injected" or cost.inject_nodes]
        return all(getattr(cost, name) <= getattr(self, name) for name in (*compared, "target_features", *TRAINING))

    @property
    def training_fields(self) -> tuple[str, ...]:
        """Names of the fields about training data that are not zero."""
        return tuple(name for name in TRAINING if getattr(self, name))

    def require_trusted_training(self, covered: Iterable[str] = ()) -> None:
        """Refuses an attack on training data that nothing is proved about.

        Args:
            covered: Names of the fields about training data that something is proved about. None by default.

        Raises:
            BudgetError: Another field about training data is not zero.
        """
        refused = [name for name in self.training_fields if name not in set(covered)]
        if refused:
            raise BudgetError(
                f"{self}: nothing is proved about {', '.join(refused)}, because this defence trusts that part of its "
                f"training data. Leave {'it' if len(refused) == 1 else 'them'} out, or use a defence that covers it: "
                "LabelVotes for labels, IsolatedModels for training graphs."
            )

    @property
    def injected_edges(self) -> float:
        """All edges of injected nodes together: 0 without injected nodes, also if each may bring infinitely many."""
        if self.inject_nodes == 0 or self.edges_per_injected == 0:
            return 0
        return self.inject_nodes * self.edges_per_injected


@runtime_checkable
class KnownChange(Protocol):
    """A change of a graph that is known, such as ``ac.Perturbation``, and what it costs."""

    def cost(self) -> Budget:
        """Returns the smallest budget that allows it."""

    def costs_at(self, targets: Iterable[Id], *, anywhere: bool = False) -> list[Budget | None]:
        """Returns the smallest budget for what it does to each target; ``None`` for a target that is deleted.

        Args:
            targets: Ids of nodes.
            anywhere: Whether edges and new nodes count wherever they are, not at the target only.
        """


@dataclass(frozen=True)
class Prices:
    """What each kind of change costs an attacker, in any unit of money or effort.

    ``math.inf`` means that the attacker cannot do it, 0 that it costs nothing, in any number. All prices are infinite
    by default but that of the edges of new nodes, which is 0.

    Attributes:
        add_edges: Price of each pair that gains a direction.
        delete_edges: Price of each pair that is separated.
        change_edges: Price of each joined pair that is given another value, or loses one of two directions.
        inject_nodes: Price of each new node.
        injected_edges: Price of each edge of a new node, in addition to that of the node.
        delete_nodes: Price of each node that is removed.
        change_features: Price of each node whose features change, the target not counted.
        target_features: Price of changing the target's own features.
        flip_labels: Price of each training label that is replaced by another class.
        add_labels: Price of each training label that is added.
        remove_labels: Price of each training label that is taken away.
        total: What the attacker can spend at most. It is None by default. Only ``certificate.holds_against(prices)``
            needs it. ``Prices.in_all(5)`` are five changes of edges in all, in any mix.

    Example:
        >>> Prices(add_edges=1, inject_nodes=20, total=50)
        Prices(add_edges=1, inject_nodes=20, total=50)
    """

    add_edges: float = math.inf
    delete_edges: float = math.inf
    change_edges: float = math.inf
    inject_nodes: float = math.inf
    injected_edges: float = 0
    delete_nodes: float = math.inf
    change_features: float = math.inf
    target_features: float = math.inf
    flip_labels: float = math.inf
    add_labels: float = math.inf
    remove_labels: float = math.inf
    total: float | None = None

    def __new__(cls, *amounts: Any, **named: Any) -> Self:
        """Refuses a field that prices do not have, with the nearest one that they have."""
        _require_fields(cls, named)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "total" and value is None:
                continue
            if not _is_price(value):
                raise BudgetError(
                    f"Prices({field.name}={value!r}): expected a number from 0 on, or math.inf for what an attacker "
                    "cannot do."
                )

    def __repr__(self) -> str:
        return _shown(self)

    @classmethod
    def in_all(cls, number: float, *kinds: str) -> "Prices":
        """Returns a budget of so many changes in all, in any mix of some kinds.

        Args:
            number: How many changes.
            kinds: Which changes count. Defaults to ``"add_edges"``, ``"delete_edges"`` and ``"change_edges"``.

        Raises:
            BudgetError: There is no such kind of change, or the number makes no sense.

        Example:
            >>> Prices.in_all(3, "add_edges", "delete_edges")
            Prices(add_edges=1, delete_edges=1, total=3)
        """
        return cls(**dict.fromkeys(kinds or ("add_edges", "delete_edges", "change_edges"), 1), total=number)

    def cheapest_poisoning(self) -> "Budget":
        """Returns a budget with one change of each kind of training label that has a price."""
        kinds = ("flip_labels", "add_labels", "remove_labels")
        return Budget().but(**{name: 1 for name in kinds if getattr(self, name) < math.inf})


def _require_fields(kind: "type[Budget | Prices]", named: Mapping[str, Any]) -> None:
    valid = [field.name for field in fields(kind)]
    for name in named:
        if name not in valid:
            raise BudgetError(f'unknown {kind.__name__.lower()} field "{name}": {did_you_mean(name, valid)}')


def _is_price(value: Any) -> bool:
    """Tells whether a value is a number from 0 on, infinity included. NaN is not >= 0."""
    is_number = isinstance(value, (int, float, Integral)) and not isinstance(value, bool)
    return is_number and bool(value >= 0)


def _shown(amounts: Budget | Prices) -> str:
    """Returns how a budget or prices print: the fields that differ from their defaults."""
    values = {field.name: getattr(amounts, field.name) for field in fields(amounts)}
    shown = [f"{field.name}={values[field.name]}" for field in fields(amounts) if values[field.name] != field.default]
    return f"{type(amounts).__name__}({', '.join(shown)})"
