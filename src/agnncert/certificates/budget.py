"""Budget: what an attacker may do, stated field by field. Zero unless said otherwise."""

import math
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

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


@dataclass(frozen=True)
class Budget:
    """The most an attacker may change; ``math.inf`` means any number.

    An *edge* is an unordered pair of nodes: one or both directions, and any number of copies, count once.

    Attributes:
        add_edges: Pairs that gain a direction which they lacked: joined now, or joined one way before.
        delete_edges: Pairs separated: all their arcs are gone.
        change_edges: Joined pairs given another weight, attribute or number of copies, or deprived of one of two
            directions. A changed edge gains no direction: that is an added one.
        inject_nodes: New nodes, with any features and under any unused id or the id of a deleted node.
        edges_per_injected: Edges that each of them may bring, to old or new nodes.
        delete_nodes: Nodes removed with all their edges; never the target itself.
        change_features: Nodes whose features change arbitrarily, the target not counted.
        target_features: Whether the target's own features may change too.

    Example:
        >>> Budget(add_edges=3, delete_edges=math.inf)
        Budget(add_edges=3, delete_edges=inf)
    """

    add_edges: float = 0
    delete_edges: float = 0
    change_edges: float = 0
    inject_nodes: float = 0
    edges_per_injected: float = 0
    delete_nodes: float = 0
    change_features: float = 0
    target_features: bool = False

    def __post_init__(self) -> None:
        for name in COUNTS:
            value = getattr(self, name)
            if isinstance(value, Integral) and not isinstance(value, int):  # numpy's integers
                value = int(value)
                object.__setattr__(self, name, value)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not value >= 0 or (value != math.inf and value != int(value)):  # NaN is not >= 0
                raise BudgetError(
                    f"Budget({name}={value!r}): expected a whole number from 0 on, or math.inf for any number."
                )
        if not isinstance(self.target_features, bool):
            raise BudgetError(f"Budget(target_features={self.target_features!r}): expected True or False.")

    def __repr__(self) -> str:
        shown = (f"{f.name}={getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name) != f.default)
        return f"Budget({', '.join(shown)})"

    def but(self, **changes: Any) -> "Budget":
        """This budget with some fields replaced; the error for an unknown field suggests the nearest one."""
        for name in changes:
            if name not in self.__dataclass_fields__:
                raise BudgetError(f'unknown budget field "{name}": {did_you_mean(name, self.__dataclass_fields__)}')
        return replace(self, **changes)

    @property
    def injected_edges(self) -> float:
        """All edges of injected nodes together; 0 without injected nodes, also if each may bring infinitely many."""
        return self.inject_nodes * self.edges_per_injected if self.inject_nodes and self.edges_per_injected else 0
