"""How many votes about a pair of nodes each change of the graph reaches (Theorems 18 and 19), for the verifier.

The votes themselves are counted again by ``recount_stacked``. This module shares no code with ``pairs.evidence``.
"""

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.pairs.record import PairRecord
from agnncert.verifier import recount_stacked
from agnncert.verifier.recount_stacked import LARGEST_STATED, DegreeTable


def in_votes(record: PairRecord, budget: Budget) -> Budget:
    """Returns the budget of Theorem 10 that reaches as many votes as a budget reaches votes about a pair."""
    if record.rule == "trusted":
        # Only pairs of a contact and v matter. A newcomer is nobody's contact, and contacts are out of reach.
        return budget.but(inject_nodes=0, delete_nodes=0, change_features=0)
    # A newcomer with one edge is no common neighbour, unless an added edge makes it one, which is counted as such.
    newcomers = 0.0 if record.rule == "common" and budget.edges_per_injected < 2 else budget.inject_nodes
    per_edge, per_node = (2, 3) if record.rule == "both" else (1, 1)
    return budget.but(
        add_edges=per_edge * budget.add_edges,
        delete_edges=per_edge * budget.delete_edges,
        inject_nodes=per_node * newcomers,
        delete_nodes=per_node * budget.delete_nodes,
        change_features=0 if record.blind else per_node * budget.change_features,
    )


def right_radius(record: PairRecord, tables: list[DegreeTable], stated: IntArray, altering: bool) -> BoolArray:
    """Tells whether each stated radius is the largest size that the label survives, shape ``[n]``.

    Args:
        record: Scores and votes of all pairs.
        tables: The same, by the number of votes.
        stated: The stated radii.
        altering: Whether a change may alter a vote, instead of bringing or taking one.
    """
    votes = 3 if record.rule == "both" else 1
    right = np.zeros(len(stated), dtype=bool)
    for table in tables:
        radius = stated[table.rows]
        is_possible = (radius >= -1) & (radius <= LARGEST_STATED)
        size = np.clip(radius, 0, LARGEST_STATED)
        survives = (radius < 0) | _survives(table, votes * size, altering)
        survives_more = (radius < LARGEST_STATED) & _survives(
            table, votes * np.where(radius < 0, 0, size + 1), altering
        )
        right[table.rows] = is_possible & survives & ~survives_more
    return right


def _survives(table: DegreeTable, number: IntArray, altering: bool) -> BoolArray:
    """Tells which labels survive changes of so many votes, shape ``[n]``."""
    if altering:
        return np.asarray(table.survives_any(number).all(axis=1))
    amount = number.astype(np.float64)
    return np.asarray(table.survives(amount, amount, 0, together=True).all(axis=1))


def right_additions(record: PairRecord, tables: list[DegreeTable], stated: IntArray) -> BoolArray:
    """Tells whether each stated number of added edges is the largest that is survived beside anything else."""
    per_edge = 2 if record.rule == "both" else 1
    rest = in_votes(record, recount_stacked.but_additions(record))
    is_infinite = stated == np.inf
    is_whole = (stated >= -1) & (stated == np.floor(stated)) & (stated <= recount_stacked.LARGEST_NEIGHBOURS)
    is_possible = is_whole | is_infinite
    number = np.where(is_possible, stated, -1)
    survives = (number < 0) | recount_stacked.holds(record, tables, rest, per_edge * np.maximum(number, 0))
    more = per_edge * np.maximum(np.where(is_infinite, 0, number) + 1, 0)
    survives_more = ~is_infinite & recount_stacked.holds(record, tables, rest, more)
    return np.asarray(is_possible & survives & ~survives_more)
