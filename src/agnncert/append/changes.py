"""``AroundAccount``: scores of one account after rows come or go, for explanations and attacks.

Nothing is proved here. Many changes are tried at once, each on a copy of the account with the rows that it leaves and
brings; what other accounts count is taken from the whole ledger.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agnncert.append.evaluate import Bounds, Values
from agnncert.append.ledger import Ledger, Rows, Whole
from agnncert.append.program import LIMIT, Expression, Way
from agnncert.append.trees import Trees

NEW = -1  # the other end of a row that comes from, or goes to, a new account
ROWS_AT_ONCE = 200_000
TEMPLATES = 24  # rows that are tried as models of new ones, for each way
FEW_TEMPLATES = 6  # of which several are appended
NUMBERS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)  # of rows that may frame an account


class Template(NamedTuple):
    """A row of the ledger that new rows are copies of, and which way these are seen by the account."""

    way: Way
    row: int


class NewRow(NamedTuple):
    """A row that is appended: a copy of another one, between the account and ``other``, ``NEW`` for a new account."""

    template: Template
    other: int = NEW


class Change(NamedTuple):
    """What becomes of the rows of an account.

    Attributes:
        gone: Accounts whose rows to and from it are deleted.
        new: Rows that are appended.
    """

    gone: tuple[int, ...] = ()
    new: tuple[NewRow, ...] = ()


class Framing(NamedTuple):
    """So many new rows like a template, each from or to a new account, flag an account; fewer may do it too."""

    number: int
    template: Template


class _Known:
    """What accounts count in the whole ledger, for those of a part whose other rows are not in it."""

    def __init__(self, whole: Values, places: Rows, accounts: Rows) -> None:
        self.whole = whole
        self.places = places
        self.accounts = accounts

    def value(self, expression: Expression) -> Whole:
        """Returns an expression of these accounts."""
        return self.whole.of_all(expression)[self.accounts]

    def bounds(self, expression: Expression, frozen: bool, deletions: int) -> Bounds:
        """Returns what deletions leave at most: nothing, since no change here is bounded."""
        none = np.zeros(len(self.accounts), dtype=np.int64)
        return Bounds(none, none + LIMIT)


class AroundAccount:
    """An account with its rows, and its score after changes of them.

    Args:
        whole: What is counted in the whole ledger.
        trees: The trees that read the features.
        account: The account.
    """

    def __init__(self, whole: Values, trees: Trees, account: int) -> None:
        self.whole = whole
        self.trees = trees
        self.account = account
        ledger = whole.ledger
        one = np.array([account])
        self.rows = np.concatenate([ledger.rows_of(one, way)[0] for way in ("in", "out")])
        self.source, self.target = ledger.source[self.rows], ledger.target[self.rows]
        self.other = np.where(self.source == account, self.target, self.source)

    @property
    def partners(self) -> Rows:
        """The accounts that share rows with it, in ascending order."""
        return np.unique(self.other)

    def scores(self, changes: Sequence[Change]) -> Whole:
        """Returns the score after each change, shape ``[n]``."""
        return self.trees.score(self.tables(changes))

    def tables(self, changes: Sequence[Change]) -> Whole:
        """Returns the features after each change, shape ``[n, features]``."""
        found = [np.zeros((0, len(self.whole.program.features)), dtype=np.int64)]
        size = max(1, ROWS_AT_ONCE // (len(self.rows) + 1 + max((len(each.new) for each in changes), default=0)))
        for first in range(0, len(changes), size):
            part = changes[first : first + size]
            ledger, known = self._ledger_after(part)
            values = Values(ledger, self.whole.program, self.whole.judge, known)
            found.append(values.table(np.arange(len(part))))
        return np.concatenate(found)

    def _ledger_after(self, changes: Sequence[Change]) -> tuple[Ledger, _Known]:
        """Returns copies of the account with their rows, then other accounts of the ledger, then new ones."""
        whole = self.whole.ledger
        olds = [row.other for change in changes for row in change.new if row.other != NEW]
        others = np.union1d(self.partners, np.array(olds, dtype=np.int64))
        count = len(changes)
        place = {int(account): count + k for k, account in enumerate(others)}
        of_other = np.array([place[int(account)] for account in self.other], dtype=np.int64)
        is_sent = self.source == self.account
        rows, source, target = [], [], []
        for number, change in enumerate(changes):
            kept = np.flatnonzero(~np.isin(self.other, np.array(change.gone, dtype=np.int64)))
            rows.append(self.rows[kept])
            source.append(np.where(is_sent[kept], number, of_other[kept]))
            target.append(np.where(is_sent[kept], of_other[kept], number))
        new_ends = []  # accounts whose attributes new accounts have
        for number, change in enumerate(changes):
            for (way, row), other in change.new:
                if other == NEW:
                    new_ends.append(int(whole.far(way)[row]))
                end = place[other] if other != NEW else count + len(others) + len(new_ends) - 1
                rows.append(np.array([row]))
                source.append(np.array([end if way == "in" else number]))
                target.append(np.array([number if way == "in" else end]))
        copied = np.concatenate([np.full(count, self.account), others, np.array(new_ends, dtype=np.int64)])
        known = whole.known[copied]
        known[count + len(others) :] = 0
        picked = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        ledger = Ledger(
            len(copied),
            np.concatenate(source).astype(np.int64),
            np.concatenate(target).astype(np.int64),
            {name: values[picked] for name, values in whole.columns.items()},
            {name: values[copied] for name, values in whole.attributes.items()},
            known,
        )
        return ledger, _Known(self.whole, np.arange(count, count + len(others)), others)

    def framing(self, templates: Sequence[Template], threshold: int) -> Framing | None:
        """Returns how many rows between it and new accounts flag it, of the numbers and templates that are tried."""
        single = self.scores([Change(new=(NewRow(each),)) for each in templates])
        best = [templates[k] for k in np.argsort(-single, kind="stable")[:FEW_TEMPLATES].tolist()]
        tried = [Framing(number, each) for number in NUMBERS for each in best]
        for first in range(0, len(tried), len(best)):
            some = tried[first : first + len(best)]
            scores = self.scores([Change(new=(NewRow(each.template),) * each.number) for each in some])
            if (scores > threshold).any():
                return some[int(scores.argmax())]
        return None


def templates_of(values: Values, most: int = TEMPLATES) -> list[Template]:
    """Returns rows of accounts that were known to be positive at training time, those of all kinds; else of anybody.

    Rows are taken at equal distances in the order of what the judge says of them, or of their first column.
    """
    ledger = values.ledger
    accounts = np.flatnonzero(ledger.known)
    if not len(accounts):
        accounts = np.arange(ledger.num_accounts)
    found: list[Template] = []
    ways: tuple[Way, ...] = ("in", "out")
    for way in ways:
        rows = ledger.rows_of(accounts, way)[0]
        seen = values.seen_by(accounts, way)
        if values.judge is not None and values.program.judged:
            worth = values.judge.score(values.judged(seen))
        else:
            worth = next(iter(ledger.columns.values()))[rows] if ledger.columns else np.zeros(len(rows), dtype=np.int64)
        order = rows[np.argsort(worth, kind="stable")]
        places = np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).astype(np.int64)) if len(order) else ()
        found += [Template(way, int(order[place])) for place in places]
    return found


def in_words(template: Template, values: Values) -> str:
    """Returns what the columns of a row hold, in the units of the graph, in brackets; empty without columns."""
    row = template.row
    shown = []
    for column in values.program.columns:
        number = (int(values.ledger.columns[column.name][row]) - column.shift) * column.sign / column.unit
        shown.append(f"{column.name} {number:g}")
    return f" ({', '.join(shown)})" if shown else ""
