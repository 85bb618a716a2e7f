"""Small random ledgers, feature programs and attacks on them, for tests of append-only scores."""

from dataclasses import dataclass, replace

import numpy as np

from agnncert.append.evaluate import Values
from agnncert.append.ledger import Ledger
from agnncert.append.polarity import NotMonotone, judged_types
from agnncert.append.program import WAYS, Program, Source
from agnncert.append.trees import Trees
from agnncert.errors import CertificateError

ACCOUNTS = 6
NEW = 2  # accounts that an attacker may bring
COLUMNS = (
    Source("amount", 0, growth="rises"),
    Source("round", 1, growth="moves"),
    Source("mark", 2),
    Source("time", 3),
)
ATTRIBUTES = (Source("age", 0),)


class Draw:
    """Random expressions over :data:`COLUMNS` and :data:`ATTRIBUTES`."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def limit(self):
        return int(self.random.integers(0, 4))

    def of_row(self, depth):
        way = self.pick(*WAYS)
        simple = [
            lambda: ("number", 1),
            lambda: ("column", self.pick("amount", "round", "mark")),
            lambda: ("far", ("attribute", "age")),
            lambda: ("far", ("known",)),
        ]
        deep = [
            lambda: ("far", self.of_account(depth - 1)),
            lambda: ("far", self.of_account(depth - 1)),
            lambda: ("below", ("far", self.of_account(0)), 1 + self.limit()),
            lambda: (self.pick("at_least", "below", "cap", "above"), self.of_row(depth - 1), self.limit()),
            lambda: ("between", self.of_row(depth - 1), 1, 3),
            lambda: ("multiple", self.of_row(depth - 1), 2, 0),
            lambda: ("quotient", self.of_row(depth - 1), self.of_row(depth - 1)),
            lambda: ("when", way, self.of_row(depth - 1)),
            lambda: (self.pick("least", "most", "times", "add"), self.of_row(depth - 1), self.of_row(depth - 1)),
        ]
        return self.pick(*(simple if depth <= 0 else simple[:2] + deep))()

    def of_account(self, depth):
        way = self.pick(*WAYS)
        gather = lambda: (self.pick("sum", "max", "partners"), way, self.of_row(depth - 1))  # noqa: E731
        deep = [
            gather,
            gather,
            gather,
            lambda: ("burst", way, ("at_least", self.of_row(depth - 1), 1), 2),
            lambda: (self.pick("at_least", "below", "cap", "above"), self.of_account(depth - 1), self.limit()),
            lambda: (self.pick("add", "least", "most"), self.of_account(depth - 1), self.of_account(depth - 1)),
        ]
        if depth <= 0:
            return self.pick(gather, gather, lambda: ("attribute", "age"))()
        return self.pick(*deep)()

    def program(self, depth=3):
        return program_of(self.of_account(depth))

    def judged_program(self):
        """A program whose feature reads a judge, which reads two expressions of rows."""
        judge = ("judge",)
        counted = self.pick(
            judge,
            ("at_least", judge, 3),
            ("times", judge, self.of_row(1)),
            ("when", self.pick(*WAYS), judge),
        )
        gathered = (self.pick("sum", "max", "partners"), self.pick(*WAYS), counted)
        return program_of(gathered, judged=(self.of_row(2), self.of_row(2)))

    def judge(self, rises):
        """Two random trees of seven nodes over two columns that pass the leaf test; some of their leaves are empty."""
        trees = []
        while len(trees) < 2:
            first, second = self.random.integers(0, 2, 2)
            limits, worth = self.random.integers(0, 3, 2), self.random.integers(0, 4, 4)
            tree = Trees(
                start=np.array([0, 7]),
                column=np.array([first, second, second, -1, -1, -1, -1]),
                threshold=np.array([limits[0], limits[1], limits[1], 0, 0, 0, 0]),
                left=np.array([1, 3, 5, 0, 0, 0, 0]),
                right=np.array([2, 4, 6, 0, 0, 0, 0]),
                worth=np.array([0, 0, 0, *worth]),
            )
            if tree.broken_pairs(rises) == 0:
                trees.append(tree)
        return Trees.joined(trees)

    def rows(self, number, accounts):
        ends = self.random.integers(0, accounts, (2, number))
        ends = ends[:, ends[0] != ends[1]]
        return self.ledger_of(ends, accounts, np.zeros(accounts, dtype=np.int64))

    def ledger_of(self, ends, accounts, age):
        number = ends.shape[1]
        columns = {
            "amount": self.random.integers(0, 4, number),
            "round": self.random.integers(0, 3, number),
            "mark": self.random.integers(0, 2, number),
            "time": self.random.integers(0, 6, number),
        }
        return Ledger(accounts, ends[0], ends[1], columns, {"age": age})

    def ledger(self):
        """A ledger with at least one row; account 0 is the target."""
        rows = self.rows(int(self.random.integers(2, 13)), ACCOUNTS)
        while not rows.num_rows:
            rows = self.rows(4, ACCOUNTS)
        known = self.random.integers(0, 2, ACCOUNTS)
        return replace(rows, attributes={"age": self.random.integers(0, 3, ACCOUNTS)}, known=known)


def program_of(*features, judged=()):
    """A program over the columns of these ledgers."""
    return Program(COLUMNS, features, ATTRIBUTES, judged=judged, time="time")


@dataclass
class Attack:
    """What an attacker may do to account 0 of a ledger under a threat, and what he did.

    Attributes:
        threat: What may be appended.
        deletions: How many pairs may be deleted, or under the threat "ledger" payers bought, first.
        keeps_promise: Whether present payers of the target send nothing more, as the threat "ledger" assumes.
    """

    threat: str
    deletions: int = 0
    keeps_promise: bool = True

    def on(self, ledger, draw):
        """Returns a ledger after a random attack."""
        random = draw.random
        payers = set(ledger.source[ledger.target == 0].tolist())
        gone, bought = set(), set()
        for _ in range(int(random.integers(0, self.deletions + 1))):
            if self.threat == "ledger" and payers and random.random() < 0.4:
                bought.add(int(random.choice(sorted(payers))))
            else:
                row = random.integers(ledger.num_rows)
                gone.add(frozenset((int(ledger.source[row]), int(ledger.target[row]))))
        restrained = payers - bought if self.threat == "ledger" and self.keeps_promise else set()
        pairs = list(zip(ledger.source.tolist(), ledger.target.tolist(), strict=True))
        left = ledger.only(np.array([frozenset(pair) not in gone for pair in pairs]))
        if self.threat != "fresh":
            left = self._grown(left, restrained, random)
        new = draw.rows(int(random.integers(0, 10)), ACCOUNTS + NEW)
        allowed = [
            sender not in restrained and not (self.threat == "fresh" and (sender, receiver) in pairs)
            for sender, receiver in zip(new.source.tolist(), new.target.tolist(), strict=True)
        ]
        age = np.concatenate([ledger.attributes["age"], random.integers(0, 3, NEW)])
        new = replace(new.only(np.array(allowed, dtype=bool)), attributes={"age": age})
        return left.appended(new)

    def _grown(self, ledger, restrained, random):
        may = np.array([sender not in restrained for sender in ledger.source.tolist()], dtype=bool)
        columns = {name: values.copy() for name, values in ledger.columns.items()}
        columns["amount"][may] += random.integers(0, 3, int(may.sum()))
        columns["round"][may] = random.integers(0, 3, int(may.sum()))
        return replace(ledger, columns=columns)


def value_of_target(ledger, program, judge=None):
    """The first feature of account 0."""
    return int(Values(ledger, program, judge).table(np.array([0]))[0, 0])


def judged_of(draw, threat):
    """A random program with a judge that the threat allows, and the judge."""
    while True:
        try:
            program = draw.judged_program()
            types = judged_types(program, threat)
        except (CertificateError, NotMonotone):
            continue
        return program, draw.judge([each == "+" for each in types])
