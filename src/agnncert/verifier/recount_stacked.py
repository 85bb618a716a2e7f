"""Stacked votes counted again: every statement of a file about them, derived in code of its own.

Targets with the same number of neighbours are looked at together, as one table with an axis for the neighbours. A
stated radius is not searched for: it is right if the label holds at that size and not at the next one.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.record import MOST_NEW, STEPS, StackedRecord
from agnncert.verifier.check import check_claim, check_targets, of_targets

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LARGEST_STATED = 9_999
MOST_ODDS = 2**29  # factors of odds above this count as infinite


@dataclass(frozen=True)
class Table:
    """Targets with d neighbours each: ``n`` of them, with ``C`` classes.

    Attributes:
        counts: All counts.
        rows: Which targets these are, shape ``[n]``.
        label: Winner of each, shape ``[n]``.
        ahead: Lead of the label's prior over that of each class, shape ``[n, C]``.
        given: What the neighbours give the label over each class, largest first, shape ``[n, C, d]``.
        extra: The same for the pseudo-count, shape ``[n, C]``.
        most: The most that one neighbour can give each class over the label, shape ``[n, C]``.
        doubt: What other machines may take from votes by rounding, shape ``[n, C]``.
    """

    counts: StackedRecord
    rows: Ints
    label: Ints
    ahead: Ints
    given: Ints
    extra: Ints
    most: Ints
    doubt: Ints
    own: Ints
    cast: Ints

    @property
    def size(self) -> int:
        """Number of neighbours of each."""
        return int(self.given.shape[2])

    def divided_by(self, neighbours: Ints | int) -> Any:
        """The divisor of a mean, times ``STEPS``; of a sum, ``STEPS``."""
        return self.counts.pseudo + STEPS * neighbours if self.counts.pseudo else STEPS

    @cached_property
    def needed(self) -> Ints:
        """With which lead the label stays ahead of each class, shape ``[n, C]``: of itself with any."""
        classes = np.arange(self.ahead.shape[1])
        smaller = classes < self.label[:, None]  # smaller classes win ties
        return np.where(classes == self.label[:, None], np.iinfo(np.int64).min, smaller)

    def stays(self, lead: Ints) -> Bools:
        """Of which classes the label stays ahead, given its lead over each, shape ``[n, C]``."""
        return np.asarray(lead >= self.needed)

    def survives(self, new: Any, lost: Any, altered: Any, together: bool = False) -> Bools:
        """Which classes each label survives with so many new, lost and altered neighbours, shape ``[n, C]``.

        Args:
            new: New neighbours; with ``together``, new and lost ones in all.
            lost: Lost neighbours.
            altered: Neighbours with another vote.
            together: Whether each lost neighbour leaves one new one less.
        """
        # A new or altered neighbour takes as much as it can give a rival, and more where gates are rounded.
        n, d, cost = len(self.rows), self.size, self.most + self.counts.slack * STEPS * self.counts.gated
        new, lost, altered = (np.broadcast_to(np.asarray(v, dtype=np.float64), (n,)) for v in (new, lost, altered))
        alive, each = np.ones(self.ahead.shape, dtype=bool), np.arange(n)
        ahead, whole = self.ahead - 2 * self.counts.slack, self.extra + self.given.sum(axis=2) - self.doubt
        first = _sums(self.given)
        for gone in range(int(min(lost.max(initial=0), d)) + 1):
            here = lost >= gone
            turned = np.minimum(altered, d - gone).astype(np.int64)
            come = new - gone if together else new
            endless = come > MOST_NEW
            come = np.where(endless | (come < 0), 0, come).astype(np.int64)[:, None]
            kept = whole - first[each, :, gone + turned] - turned[:, None] * cost
            for grows, pays in _cases(self.counts):
                lead = ahead * self.divided_by(d - gone + come * grows) + kept - come * pays * cost
                alive &= self.stays(lead) | ~here[:, None]
                if endless.any():  # where any number may come, one more must not help the rival
                    step = ahead * STEPS * (grows if self.counts.pseudo else 0) - pays * cost
                    alive &= (step >= 0) | ~(endless & here)[:, None]
        alive[each, self.label] = True
        return alive

    def survives_any(self, size: Ints) -> Bools:
        """Which classes each label survives with ``size`` changes of neighbours of whatever kind, ``[n, C]``."""
        d, wobbly = self.size, self.counts.slack * STEPS * self.counts.gated
        at = np.minimum(size, d)
        best = _sums(np.maximum(self.given, 0))[np.arange(len(at)), :, at]
        rest = self.extra + self.given.sum(axis=2) - best - self.doubt - size[:, None] * (self.most + wobbly)
        ahead = self.ahead - 2 * self.counts.slack
        return self.stays(
            np.minimum(ahead * self.divided_by((d - at)[:, None]), ahead * self.divided_by((d + size)[:, None])) + rest
        )

    def survives_second(self, edges: Any, nodes: int | float) -> Bools:
        """With two levels: which classes each label survives with edges anywhere and nodes, shape ``[n, C]``."""
        edges = np.broadcast_to(np.asarray(edges, dtype=np.float64), (len(self.rows),))
        used = bool(self.counts.gate.any())
        lead = (self.ahead - 2 * self.counts.slack) * STEPS + self.given.sum(axis=2) - self.doubt
        if not used:
            return self.stays(lead)
        endless = (edges > MOST_NEW) | (nodes > MOST_NEW)
        nodes = 0 if nodes > MOST_NEW else int(nodes)
        lead = lead - ((np.where(endless, 0, edges).astype(np.int64) + nodes) * STEPS * STEPS)[:, None]
        if nodes:
            lead = lead - STEPS * self._pulled(nodes).sum(axis=2)
        return np.asarray(self.stays(lead) & (~endless[:, None] | (np.arange(lead.shape[1]) == self.label[:, None])))

    def _pulled(self, nodes: int) -> Ints:
        """Steps that nodes can move in the vote of each neighbour from the label to each class, ``[n, C, d]``."""
        mine = np.clip(self.own[:, None, :] - self.counts.slack, 0, None)
        theirs = np.clip(self.cast + self.counts.slack + 1, None, STEPS)
        grown = _odds(self.counts.second, nodes)
        kept, won = 0 * mine, np.full_like(theirs, STEPS)
        if grown <= MOST_ODDS:
            kept = STEPS * (STEPS * mine) // (STEPS * mine + grown * (STEPS - mine))
            won = STEPS * (grown * theirs) // (grown * theirs + STEPS * (STEPS - theirs))
        return np.asarray(self.own[:, None, :] - kept + won - self.cast)


def _odds(second: int, nodes: int) -> int:
    """At least exp(second * nodes / STEPS), times STEPS: its powers, each rounded up; or more than MOST_ODDS."""
    power = -(-(2**54) // (2**26 - second))
    for _ in range(10):
        power = -(-power * power // 2**28)
    power, total = -(-power // 2**12), STEPS
    for bit in reversed(f"{nodes:b}"):
        if bit == "1":
            total = MOST_ODDS + 1 if power > MOST_ODDS else min(-(-total * power // STEPS), MOST_ODDS + 1)
        power = min(-(-power * power // STEPS), MOST_ODDS + 1)
    return total


def _sums(given: Ints) -> Ints:
    """What the first 0, 1, ... d neighbours give, shape ``[n, C, d + 1]``."""
    return np.concatenate([np.zeros((*given.shape[:2], 1), dtype=np.int64), np.cumsum(given, axis=2)], axis=2)


def _cases(counts: StackedRecord) -> list[tuple[int, int]]:
    """Whether new edges bring neighbours, and whether they cost: what an attacker may choose."""
    if not counts.pseudo:
        return [(0, 1)]
    return [(0, 0), (1, 1), (0, 1)] if counts.by_edge else [(0, 0), (1, 1)]


def tables_of(counts: StackedRecord) -> list[Table]:
    """The targets, by their number of neighbours."""
    degree = np.diff(counts.indptr)
    return [_table(counts, np.flatnonzero(degree == d), int(d)) for d in np.unique(degree)]


def _table(counts: StackedRecord, rows: Ints, d: int, instead: int | None = None) -> Table:
    """Targets with d neighbours each; ``instead`` asks about this class of each instead of the winner."""
    listed = counts.indptr[rows][:, None] + np.arange(d)
    cast = np.moveaxis(counts.table[counts.which[listed]].astype(np.int64), 1, 2)  # [n, C, d]
    prior, gate, slack = counts.prior[rows], counts.gate[rows], counts.slack
    pseudo = np.array(counts.pseudo_votes if counts.pseudo else [0] * prior.shape[1], dtype=np.int64)
    divisor = counts.pseudo + STEPS * d if counts.pseudo else STEPS
    score = prior * divisor + gate * (pseudo + cast.sum(axis=2))
    label = np.asarray(score.argmax(axis=1)) if instead is None else np.full(len(rows), instead)
    each = np.arange(len(rows))
    weighed = gate[:, :, None] * cast
    given = -np.sort(weighed - weighed[each, label][:, None, :], axis=2)  # ascending there, largest first here
    extra = gate * pseudo
    mine = gate[each, label][:, None]
    doubt = d * ((mine + gate) * slack + 2 * (STEPS * slack + slack * slack) * counts.gated)
    doubt = doubt + 2 * slack * int(pseudo.sum()) * counts.gated
    return Table(
        counts, rows, label, prior[each, label][:, None] - prior, given, extra[each, label][:, None] - extra,
        gate * STEPS, doubt, cast[each, label], cast,
    )  # fmt: skip


def _all(survived: Bools) -> Bools:
    return np.asarray(survived.all(axis=1))


def label_is(counts: StackedRecord, tables: list[Table]) -> Ints:
    """The winner of each target, shape ``[n]``."""
    label = np.zeros(counts.num_targets, dtype=np.int64)
    for table in tables:
        label[table.rows] = table.label
    return label


def right_radius(tables: list[Table], stated: Ints, structure: bool) -> Bools:
    """Whether each stated radius, or structure radius, is the largest size that the label survives, shape ``[n]``."""
    right = np.zeros(len(stated), dtype=bool)
    for table in tables:
        radius = stated[table.rows]

        def survives(size: Ints, table: Table = table) -> Bools:
            if table.counts.second:
                each = {
                    int(one): _all(table.survives_second(0, (1 if structure else 2) * int(one)))
                    for one in np.unique(size)
                }
                return np.array([each[int(one)][k] for k, one in enumerate(size)], dtype=bool)
            found = table.survives(size, size, 0, together=True) if structure else table.survives_any(size)
            return _all(found)

        fits = (radius >= -1) & (radius <= LARGEST_STATED)
        at, beyond = survives(np.clip(radius, 0, LARGEST_STATED)), survives(np.clip(radius + 1, 0, LARGEST_STATED + 1))
        right[table.rows] = fits & ((radius < 0) | at) & ((radius >= LARGEST_STATED) | ~beyond)
    return right


def holds(counts: StackedRecord, tables: list[Table], budget: Budget, added: Any = None) -> Bools:
    """Whether each target survives a budget; ``added`` replaces its added edges, one number for each target."""
    answer = np.zeros(counts.num_targets, dtype=bool)
    if budget.target_features:
        return answer
    for table in tables:
        edges = budget.add_edges if added is None else added[table.rows]
        answer[table.rows] = _survives(table, budget, edges).all(axis=1)
    return answer


def _survives(table: Table, budget: Budget, edges: Any) -> Bools:
    """Which classes each label survives under a budget with so many added edges, shape ``[n, C]``."""
    nodes = budget.inject_nodes if budget.edges_per_injected > 0 else 0
    if table.counts.second:
        touched = nodes + budget.delete_nodes + 2 * budget.change_features
        return table.survives_second(edges + budget.delete_edges, touched)
    altered = budget.change_features + (budget.change_edges if table.counts.by_edge else 0)
    return table.survives(edges + nodes, budget.delete_edges + budget.delete_nodes, altered)


def possible(counts: StackedRecord, budget: Budget) -> Bools:
    """Which classes may win under a budget: those that some attack brings ahead of each other one, ``[n, C]``."""
    answer = np.ones((counts.num_targets, counts.num_classes), dtype=bool)
    if budget.target_features:
        return answer
    degree, winner = np.diff(counts.indptr), label_is(counts, tables_of(counts))
    for d in np.unique(degree):
        rows = np.flatnonzero(degree == d)
        for j in range(counts.num_classes):
            behind = _survives(_table(counts, rows, int(d), j), budget, budget.add_edges)
            behind[:, j] = False  # a class is always ahead of itself
            answer[rows] &= ~behind
    answer[np.arange(len(winner)), winner] = True
    return answer


def but_additions(counts: StackedRecord) -> Budget:
    """Any number of deletions and changes, and nothing added; no deleted node where row numbers are ids."""
    return Budget(0, math.inf, math.inf, 0, 0, math.inf if counts.ids == "node_id" else 0, math.inf)


def right_neighbours(counts: StackedRecord, tables: list[Table], rest: Budget, stated: npt.NDArray[Any]) -> Bools:
    """Whether each stated number of added edges is the largest that is survived on top of ``rest``, shape ``[n]``."""
    whole = (stated == np.inf) | ((stated >= -1) & (stated == np.floor(stated)) & (stated <= 2**31))
    sane = np.where(whole, stated, -1)
    at = holds(counts, tables, rest, np.maximum(sane, 0))
    beyond = holds(counts, tables, rest, np.maximum(sane + 1, 0))
    return np.asarray(whole & ((sane < 0) | at) & ((sane == np.inf) | ~beyond))


def broken(counts: StackedRecord, budget: Budget, fails: Bools, radius: Ints, structure: Ints) -> int:
    """How many targets one attacked graph breaks at most, given which fail one by one."""
    if counts.second or budget.target_features:
        return int(fails.sum())
    by_values = budget.change_edges if counts.by_edge else 0
    needed = np.sort((radius if budget.change_features + by_values else structure)[fails]) + 1
    nodes = budget.delete_nodes + budget.change_features
    reach = int(
        counts.targets_per_node[
            : len(counts.targets_per_node) if nodes >= len(counts.targets_per_node) else int(nodes)
        ].sum(dtype=np.int64)
    )
    injected = [budget.inject_nodes, budget.edges_per_injected]
    touched = 2 * (budget.add_edges + budget.delete_edges + by_values) + reach
    touched += 0 if 0 in injected else math.prod(injected)
    spent, number = 0, 0
    for price in needed.tolist():
        spent += price
        if spent > touched:
            break
        number += 1
    return number


def check_stacked_file(contents: Contents) -> list[str]:
    """What is wrong with the statements of a file that holds stacked votes.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    counts, claim, arrays = StackedRecord.load(contents.evidence, contents.settings), contents.claim, contents.arrays
    expected = make_stacked_claim(counts, digests=claim.digests, locality=claim.locality)
    wrong = [
        *check_targets(contents, counts.num_targets),
        *check_claim(claim, expected, {"graph", "model", "encoding"}),
    ]
    if "structure_radius" not in arrays:
        wrong.append("the radius against structure alone is missing")
    if wrong:
        return wrong
    tables = tables_of(counts)
    radius, structure, rest = arrays["radius"], arrays["structure_radius"], but_additions(counts)
    bad = {
        "label": arrays["label"] != label_is(counts, tables),
        "radius": ~right_radius(tables, radius, structure=False),
        "structure radius": ~right_radius(tables, structure, structure=True),
        "number of new neighbours": ~right_neighbours(counts, tables, rest, arrays["new_neighbours"]),
    }
    answers = [holds(counts, tables, budget) for budget in contents.budgets]
    for i, budget in enumerate(contents.budgets):
        bad[f"answer for {budget}"] = arrays["holds"][i] != answers[i]
    reasons = [of_targets(name, int(where.sum()), "votes") for name, where in bad.items() if where.any()]
    for budget, stated, holding in zip(contents.budgets, contents.broken_at_most, answers, strict=True):
        if not reasons and stated != broken(counts, budget, ~holding, radius, structure):
            reasons.append(f"the stated number of targets that {budget} can break does not follow from the votes")
    return reasons
