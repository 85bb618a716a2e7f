"""``Ledger``: rows between accounts as whole numbers, read from a canonical graph as a program says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.append.program import LIMIT, MOST_ROWS, Program, Source
from agnncert.errors import GraphError

Whole = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ledger:
    """Rows from one account to another. All values are whole numbers from 0 to ``LIMIT``.

    Attributes:
        num_accounts: Number of accounts.
        source: Who sends each row, shape ``[r]``.
        target: Who gets it, shape ``[r]``.
        columns: Values of each row, shape ``[r]`` each, by name.
        attributes: Values of each account, shape ``[num_accounts]`` each, by name.
        known: Whether each account was known to be positive when the model was trained, shape ``[num_accounts]``.
    """

    num_accounts: int
    source: Rows
    target: Rows
    columns: Mapping[str, Whole]
    attributes: Mapping[str, Whole] = field(default_factory=dict)
    known: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if len(self.source) > MOST_ROWS:
            raise GraphError(
                f"the graph has {len(self.source):,} rows between accounts, and sums are exact up to {MOST_ROWS:,}: "
                "leave out old rows, or join the rows of each pair."
            )
        if self.num_accounts > MOST_ROWS:
            raise GraphError(f"the graph has {self.num_accounts:,} accounts: expected at most {MOST_ROWS:,}.")
        if len(self.known) == 0:
            object.__setattr__(self, "known", np.zeros(self.num_accounts, dtype=np.int64))

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.source)

    def near(self, way: str) -> Rows:
        """Returns from which account each row is seen: who gets it ("in"), or who sends it ("out")."""
        return self.target if way == "in" else self.source

    def far(self, way: str) -> Rows:
        """Returns the account at the other end of each row."""
        return self.source if way == "in" else self.target

    def appended(self, new: "Ledger") -> "Ledger":
        """Returns this ledger with the rows of another one behind its own; accounts of both have the same rows."""
        num_new = new.num_accounts - self.num_accounts
        return Ledger(
            new.num_accounts,
            np.concatenate([self.source, new.source]),
            np.concatenate([self.target, new.target]),
            {name: np.concatenate([values, new.columns[name]]) for name, values in self.columns.items()},
            {
                name: np.concatenate([values, new.attributes[name][len(values) :]])
                for name, values in self.attributes.items()
            },
            np.concatenate([self.known, np.zeros(num_new, dtype=np.int64)]),
        )

    def only(self, kept: npt.NDArray[Any]) -> "Ledger":
        """Returns the ledger with some of its rows: a mask, or their numbers."""
        columns = {name: values[kept] for name, values in self.columns.items()}
        return Ledger(self.num_accounts, self.source[kept], self.target[kept], columns, self.attributes, self.known)

    def knowing(self, known: Whole) -> "Ledger":
        """Returns the same ledger with others known to be positive."""
        return Ledger(self.num_accounts, self.source, self.target, self.columns, self.attributes, known)

    @cached_property
    def order(self) -> dict[str, Rows]:
        """Rows sorted by the account that they are seen from, by way."""
        return {way: np.argsort(self.near(way), kind="stable") for way in ("in", "out")}

    def rows_of(self, accounts: Rows, way: str) -> tuple[Rows, Rows]:
        """Returns the rows of some accounts, and to which of them each belongs, by its place among them."""
        order = self.order[way]
        near = self.near(way)[order]
        first = np.searchsorted(near, accounts)
        last = np.searchsorted(near, accounts, side="right")
        counts = last - first
        owner = np.repeat(np.arange(len(accounts)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return order[first[owner] + within], owner


def read_ledger(
    program: Program,
    ends: npt.NDArray[Any],
    edge_attr: npt.NDArray[Any] | None,
    x: npt.NDArray[Any],
    known: Sequence[int] | Rows = (),
) -> Ledger:
    """Returns the ledger that a program reads of a graph.

    Args:
        program: Says which columns are read, and in which unit.
        ends: Source and target of each edge, shape ``[2, m]``.
        edge_attr: Values of edges, shape ``[m, k]``, or ``None``.
        x: Features of accounts, shape ``[n, f]``.
        known: Rows of the accounts that were known to be positive when the model was trained.

    Raises:
        GraphError: The graph lacks a column that the program names, or has too many rows.
    """
    width = 0 if edge_attr is None else edge_attr.shape[1]
    needed = max([program.present, *(column.place for column in program.columns)])
    if needed >= width:
        raise GraphError(
            f"the feature program reads column {needed} of edge_attr, and the graph has {width} columns of edges."
        )
    last_feature = max((attribute.place for attribute in program.attributes), default=-1)
    if last_feature >= x.shape[1]:
        raise GraphError(f"the feature program reads feature {last_feature}, and accounts have {x.shape[1]} features.")
    rows = edges_of_rows(program, ends, edge_attr)
    columns = {}
    for column in program.columns:
        stored = np.ones(len(rows)) if column.place < 0 or edge_attr is None else edge_attr[rows, column.place]
        columns[column.name] = whole_numbers(stored, column)
    attributes = {each.name: whole_numbers(x[:, each.place], each) for each in program.attributes}
    is_known = np.zeros(len(x), dtype=np.int64)
    is_known[np.asarray(known, dtype=np.int64)] = 1
    return Ledger(
        len(x),
        ends[0][rows].astype(np.int64),
        ends[1][rows].astype(np.int64),
        columns,
        attributes,
        is_known,
    )


def edges_of_rows(program: Program, ends: npt.NDArray[Any], edge_attr: npt.NDArray[Any] | None) -> Rows:
    """Returns the edge of a graph that each row of its ledger is."""
    is_row = ends[0] != ends[1]
    if program.present >= 0 and edge_attr is not None:
        is_row &= edge_attr[:, program.present] > 0
    return np.flatnonzero(is_row)


def whole_numbers(stored: npt.NDArray[Any], source: Source) -> Whole:
    """Returns a column of a graph as whole numbers.

    ``sinh`` and ``exp`` are computed in decimal arithmetic with 40 digits, so that every machine gets the same.

    Example:
        >>> whole_numbers(np.arcsinh(np.float32([0.1, 2.0])), Source("amount", 0, 100, "sinh")).tolist()
        [10, 200]
    """
    values, place = np.unique(np.asarray(stored, dtype=np.float64), return_inverse=True)
    if source.decode:
        decoded = np.array([_decoded(value, source) for value in values.tolist()], dtype=np.int64)
    else:
        scaled = np.rint(np.clip(values * source.sign * source.unit, -float(LIMIT), float(LIMIT)))
        decoded = np.clip(scaled.astype(np.int64) + source.shift, 0, LIMIT)
    return np.asarray(decoded[place.reshape(-1)], dtype=np.int64)


def _decoded(value: float, source: Source) -> int:
    if abs(value) > 60:
        return LIMIT if value * source.sign > 0 else 0
    with localcontext() as context:
        context.prec = 40
        exact = Decimal(value)
        power = exact.exp()
        number = power if source.decode == "exp" else (power - 1 / power) / 2
        whole = int((number * source.sign * Decimal(source.unit)).to_integral_value()) + source.shift
    return min(max(whole, 0), LIMIT)
