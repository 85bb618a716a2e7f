"""Checks certificate files about pairs of nodes: the functions that ``verifier.kinds`` asks for.

The votes are counted again by ``verifier.recount_stacked``. What is said here, in words of its own, is how many votes
about a pair each change of the graph reaches (Theorems 18 and 19).
"""

from collections.abc import Callable

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.pairs.claim import make_pair_claim
from agnncert.pairs.record import PairRecord
from agnncert.verifier import recount_stacked
from agnncert.verifier.check import check_claim, check_targets, count_broken, wrong_statements
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


def check(contents: Contents) -> list[str]:
    """Returns what is wrong with the statements of a file.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    record = PairRecord.load(contents.evidence, contents.settings)
    claim = contents.claim
    if claim.locality not in ("construction", "test"):
        return ["the claim does not say how it is known that the prior reads a pair's own features alone"]
    expected = make_pair_claim(record, digests=claim.digests, locality=claim.locality)
    wrong = [
        *check_targets(contents, record.num_targets, record.num_classes),
        *check_claim(claim, expected, {"graph", "model", "encoding"}),
    ]
    if "structure_radius" not in contents.arrays:
        wrong.append("the radius against structure alone is missing")
    if "degree" in contents.arrays:
        wrong.append("degrees are stated, which pairs do not have")
    return wrong or _check_statements(contents, record)


def _check_statements(contents: Contents, record: PairRecord) -> list[str]:
    """Derives every statement again. Returns what is wrong."""
    stated = contents.arrays
    tables = recount_stacked.tables_of(record)
    is_wrong = {
        "label": stated["label"] != recount_stacked.label_is(record, tables),
        "radius": ~right_radius(record, tables, stated["radius"], altering=not record.blind),
        "structure radius": ~right_radius(record, tables, stated["structure_radius"], altering=False),
        "number of new neighbours": ~right_additions(record, tables, stated["new_neighbours"]),
    }
    answers = [recount_stacked.holds(record, tables, in_votes(record, budget)) for budget in contents.budgets]
    broken = count_broken(answers)  # an edge may be a part of many pairs, so nothing better is known
    return wrong_statements(contents, is_wrong, answers, broken, "votes")


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


def possible(contents: Contents, budget: Budget) -> BoolArray:
    """Returns which classes each pair may get under an attack, shape ``[n, num_classes]``."""
    record = PairRecord.load(contents.evidence, contents.settings)
    return recount_stacked.possible(record, in_votes(record, budget))


def breaks(contents: Contents) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the pairs whose label may change, shape ``[n]``."""
    record = PairRecord.load(contents.evidence, contents.settings)
    tables = recount_stacked.tables_of(record)

    def of_budget(budget: Budget) -> BoolArray:
        return ~recount_stacked.holds(record, tables, in_votes(record, budget))

    return of_budget


def not_checked(contents: Contents) -> tuple[str, ...]:
    """Returns what the file alone cannot show, and what to pass to have it checked."""
    return (
        "whether the pairs, their ids, places and true classes are those of a graph: pass data",
        "whether a model computed these scores and votes, and may be certified: pass data and model",
    )
