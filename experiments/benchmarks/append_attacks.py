"""Attacks on flagged accounts of Ethereum without dates: does anything that is appended lower a flag?

python -m experiments.benchmarks.append_attacks [THREAT …] --root .cache/data --seed 5 --attacks 100000

Each attack is a world of its own: one flagged account, up to 200 appended rows, and what they change at other accounts,
counted exactly (a few worlds of each run are counted a second time on the whole ledger, and must agree). Rows are
drawn at random, by what fooled unconstrained trees on the same features so far, or added to the attack that fooled them
most. They come from and go to new accounts, new accounts with many rows, strangers, hubs and old partners, and may be
further payments over old pairs. The last rows break the threat on purpose: they show that what it assumes is needed.
Rows go to experiments/results/append-attacks.jsonl.
"""

import argparse
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import agnncert as ac
from agnncert.append.defence import AppendOnly
from agnncert.append.evaluate import Bounds, Values
from agnncert.append.evidence import as_trees
from agnncert.append.ledger import Ledger
from agnncert.append.program import LIMIT
from agnncert.append.training import TreeSettings, train_trees
from agnncert.graphs.targets import prepared
from experiments.benchmarks.append_only import loaded, rows_of
from experiments.benchmarks.fraud import threshold
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "append-attacks.jsonl"
THREATS = ("fresh", "ledger", "grow")
WRONG = {"fresh": "more is paid between old pairs", "ledger": "present payers of the target send more"}
KINDS = ("new account", "new hub", "stranger", "hub", "old pair", "at a partner", "payer sends")
NUMBERS = (1, 2, 5, 10, 30, 200)
OFTEN = (0.3, 0.25, 0.2, 0.15, 0.08, 0.02)
MOST_ROWS = 80  # of an attacked account
TARGETS = 300
AT_ONCE = 1500  # worlds
CHECKED = 8  # worlds of each run that are counted on the whole ledger too
NEW = -1


class Appended(NamedTuple):
    """A row that is appended: its ends (negative numbers are new accounts), and the row whose values it has.

    A payment over an old pair adds these values to the old row, if ``old`` is one.
    """

    source: int
    target: int
    like: int
    old: int = -1


class Border:
    """Accounts that a world changes, or not: what they count in the whole ledger, less old rows, with the new ones."""

    def __init__(self, whole: Values, places: np.ndarray, accounts: np.ndarray, gone: Values, come: Values) -> None:
        self.whole, self.places, self.accounts, self.gone, self.come = whole, places, accounts, gone, come

    def value(self, expression: Any) -> np.ndarray:
        before = self.whole.of_all(expression)[self.accounts]
        come = self.come.of_all(expression)[self.places]
        if expression[0] == "max":  # what grows is larger than it was
            return np.maximum(before, come)
        if expression[0] != "sum" or before.max(initial=0) >= LIMIT:
            raise RuntimeError(f"what a world changes of {expression} is not known")
        return np.minimum(before - self.gone.of_all(expression)[self.places] + come, LIMIT)

    def bounds(self, expression: Any, frozen: bool, deletions: int) -> Bounds:
        raise RuntimeError("nothing is deleted here")


class Worlds:
    """Attacks on accounts of one ledger, each in a world of its own."""

    def __init__(self, whole: Values) -> None:
        self.whole = whole
        ledger = whole.ledger
        self.row_of = {
            pair: row for row, pair in enumerate(zip(ledger.source.tolist(), ledger.target.tolist(), strict=True))
        }
        self.rises = [column.name for column in whole.program.columns if column.growth == "rises"]
        self.at: dict[int, list[int]] = defaultdict(list)
        for row, (source, target) in enumerate(self.row_of):
            self.at[source].append(row)
            self.at[target].append(row)

    def tables(self, worlds: list[tuple[int, list[Appended]]]) -> np.ndarray:
        """Features of the attacked account in each world."""
        ledger, count = self.whole.ledger, len(worlds)
        copied = [target for target, _ in worlds]  # the accounts that local ones are copies of, NEW for new ones
        place: dict[tuple[int, int], int] = {}  # of accounts that a world changes, and with world -1 of all others
        for number, (target, _) in enumerate(worlds):
            place[number, target] = number
        touched = [{end for row in rows for end in row[:2]} for _, rows in worlds]

        def end(world: int, account: int) -> int:
            key = (world if account in touched[world] or (world, account) in place else NEW, account)
            if key not in place:
                place[key] = len(copied)
                copied.append(account)
            return place[key]

        rows, gone, come = _Rows(ledger), _Rows(ledger), _Rows(ledger)
        for number, (target, appended) in enumerate(worlds):
            grown = {each.old: each for each in appended if each.old >= 0}
            for row in self.at[target]:
                ends = end(number, int(ledger.source[row])), end(number, int(ledger.target[row]))
                if row in grown:
                    gone.add(*ends, row)
                    come.add(*ends, row, grown[row].like)
                    rows.add(*ends, row, grown[row].like)
                else:
                    rows.add(*ends, row)
            for each in appended:
                if each.old < 0:
                    ends = end(number, each.source), end(number, each.target)
                    rows.add(*ends, each.like)
                    come.add(*ends, each.like)
                elif target not in each[:2]:
                    raise RuntimeError("rows of others do not grow here")
        accounts = np.array(copied)
        is_old = accounts >= 0
        is_old[:count] = False
        places = np.flatnonzero(is_old)
        program = self.whole.program
        others = [Values(part.ledger(accounts, self.rises), program) for part in (gone, come)]
        border = Border(self.whole, places, accounts[places], *others)
        values = Values(rows.ledger(accounts, self.rises), program, self.whole.judge, border)
        return values.table(np.arange(count))

    def on_the_whole(self, target: int, appended: list[Appended]) -> np.ndarray:
        """Features of an account after an attack, counted on the whole ledger."""
        ledger = self.whole.ledger
        new = sorted({end for each in appended for end in each[:2] if end < 0})
        at = {end: ledger.num_accounts + k for k, end in enumerate(new)}
        columns = {name: values.copy() for name, values in ledger.columns.items()}
        fresh = [each for each in appended if each.old < 0]
        for each in appended:
            for name in self.rises if each.old >= 0 else ():
                columns[name][each.old] = min(columns[name][each.old] + ledger.columns[name][each.like], LIMIT)
        like = np.array([each.like for each in fresh], dtype=np.int64)
        total = ledger.num_accounts + len(new)
        zeros = np.zeros(len(new), dtype=np.int64)
        attacked = Ledger(
            total,
            np.concatenate(
                [ledger.source, np.array([at.get(each.source, each.source) for each in fresh], dtype=np.int64)]
            ),
            np.concatenate(
                [ledger.target, np.array([at.get(each.target, each.target) for each in fresh], dtype=np.int64)]
            ),
            {name: np.concatenate([values, ledger.columns[name][like]]) for name, values in columns.items()},
            {name: np.concatenate([values, zeros]) for name, values in ledger.attributes.items()},
            np.concatenate([ledger.known, zeros]),
        )
        return Values(attacked, self.whole.program, self.whole.judge).table(np.array([target]))[0]


class _Rows:
    """Rows of a part of a ledger; their values are those of old rows, and more where they grow."""

    def __init__(self, whole: Ledger) -> None:
        self.whole = whole
        self.ends: list[tuple[int, int]] = []
        self.like: list[int] = []
        self.more: list[int] = []

    def add(self, source: int, target: int, like: int, more: int = -1) -> None:
        self.ends.append((source, target))
        self.like.append(like)
        self.more.append(more)

    def ledger(self, accounts: np.ndarray, rises: list[str]) -> Ledger:
        """The rows as a ledger of these accounts; new ones have attributes 0."""
        like, more = np.array(self.like, dtype=np.int64), np.array(self.more, dtype=np.int64)
        ends = np.array(self.ends, dtype=np.int64).reshape(-1, 2)
        columns = {}
        for name, values in self.whole.columns.items():
            grown = np.where(more >= 0, values[more], 0) if name in rises else 0
            columns[name] = np.minimum(values[like] + grown, LIMIT)
        is_old = accounts >= 0
        copied = np.where(is_old, accounts, 0)
        attributes = {name: np.where(is_old, values[copied], 0) for name, values in self.whole.attributes.items()}
        known = np.where(is_old, self.whole.known[copied], 0)
        return Ledger(len(accounts), ends[:, 0], ends[:, 1], columns, attributes, known)


class Attacker:
    """Draws rows that a threat allows, or with ``keeps`` False some that it does not."""

    def __init__(self, worlds: Worlds, threat: str, keeps: bool, random: np.random.Generator) -> None:
        self.worlds, self.threat, self.keeps, self.random = worlds, threat, keeps, random
        ledger = worlds.whole.ledger
        self.ledger = ledger
        self.hubs = np.argsort(-np.bincount(np.concatenate([ledger.source, ledger.target])))[:100].tolist()
        self.kinds = [kind for kind in KINDS if kind != "payer sends" or not keeps]
        if threat == "fresh" and keeps:
            self.kinds.remove("old pair")
        self.weight: dict[int, np.ndarray] = defaultdict(lambda: np.ones(len(self.kinds)))
        self.next = NEW

    def new(self) -> int:
        self.next -= 1
        return self.next

    def like(self) -> int:
        return int(self.random.integers(self.ledger.num_rows))

    def rows(self, target: int, kind: str, number: int) -> list[Appended]:
        """New rows of one kind; those that the threat forbids are left out."""
        like = self.like()
        found = []
        for _ in range(number):
            found += self._row(target, kind, like if self.random.random() < 0.7 else self.like())
        return [row for row in found if self.allowed(target, row)]

    def _row(self, target: int, kind: str, like: int) -> list[Appended]:
        random, ledger = self.random, self.ledger
        turned = random.random() < 0.5
        pair = lambda other: Appended(*((other, target) if turned else (target, other)), like)  # noqa: E731
        if kind == "new account":
            return [pair(self.new())]
        if kind == "new hub":
            hub = self.new()
            return [pair(hub), *(Appended(hub, self.new(), self.like()) for _ in range(int(random.integers(1, 6))))]
        if kind in ("stranger", "hub"):
            other = int(random.choice(self.hubs)) if kind == "hub" else int(random.integers(ledger.num_accounts))
            return [pair(other)]
        row = int(random.choice(self.worlds.at[target]))
        source, end = int(ledger.source[row]), int(ledger.target[row])
        if kind == "old pair":
            return [Appended(source, end, like, row)]
        partner = end if source == target else source
        if kind == "payer sends":
            return [Appended(source, self.new(), like)] if end == target else []
        return [Appended(*((partner, self.new()) if turned else (self.new(), partner)), like)]

    def allowed(self, target: int, row: Appended) -> bool:
        """Whether a row can be counted here, and the threat allows it."""
        is_new_pair = (row.source, row.target) not in self.worlds.row_of
        if row.source == row.target or (row.old < 0 and not is_new_pair):
            return False
        if self.threat == "ledger" and self.keeps:
            return row.source == target or (row.source, target) not in self.worlds.row_of
        return True


def once_each(rows: list[Appended]) -> list[Appended]:
    """The rows without a second one between the same accounts: rows of a pair are one."""
    return list({row[:2]: row for row in rows}.values())[:200]


def run(threat: str, keeps: bool, seed: int, number: int, root: str) -> dict[str, Any]:
    """Attacks the flagged accounts of one model."""
    begin = time.process_time()
    data = loaded("ethereum-phishing", seed, root, times=False)
    model = ac.fit(None, data, AppendOnly(threat=threat, positive=1), seed=seed)
    graph = prepared(data).targets().graph
    whole, trees = model.values(graph), as_trees(model.tables("tree_"))
    y = np.asarray(data.y)
    learnt, val = rows_of(data, "train"), rows_of(data, "val")
    free = train_trees(whole.table(learnt), y[learnt] == 1, None, TreeSettings(), seed)
    val_table = whole.table(val)
    cut = int(threshold(trees.score(val_table), y[val] == 1, 0.1))
    free_cut = int(threshold(free.score(val_table), y[val] == 1, 0.1))
    random = np.random.default_rng(seed)
    worlds = Worlds(whole)
    some = [
        int(account) for account in random.permutation(graph.num_nodes) if 0 < len(worlds.at[int(account)]) <= MOST_ROWS
    ]
    some = np.array([*rows_of(data, "test").tolist(), *some[:6000]])
    some = np.array([account for account in dict.fromkeys(some.tolist()) if 0 < len(worlds.at[account]) <= MOST_ROWS])
    table = whole.table(some)
    before, free_before = trees.score(table), free.score(table)
    chosen = np.flatnonzero((before > cut) & (free_before > free_cut))[:TARGETS]
    start = {int(some[k]): (int(before[k]), int(free_before[k])) for k in chosen}
    attacker = Attacker(worlds, threat, keeps, random)
    best: dict[int, tuple[int, list[Appended]]] = {}
    done = fell = score_fell = free_fell = 0
    hidden: set[int] = set()
    while done < number:
        drawn, kinds = [], []
        for target in random.choice(list(start), AT_ONCE).tolist():
            way = random.random()
            weight = np.ones(len(attacker.kinds)) if way < 0.3 else attacker.weight[target]
            kind = int(random.choice(len(weight), p=weight / weight.sum()))
            rows = attacker.rows(target, attacker.kinds[kind], int(random.choice(NUMBERS, p=OFTEN)))
            if way > 0.7 and target in best and len(best[target][1]) < 100:
                rows = [*best[target][1], *rows]
            rows = once_each(rows)
            if rows:
                drawn.append((target, rows))
                kinds.append(kind)
        tables = worlds.tables(drawn)
        if done == 0:
            for k in range(CHECKED):
                if not np.array_equal(tables[k], worlds.on_the_whole(*drawn[k])):
                    raise RuntimeError("a world is not counted as the whole ledger is")
        scores, free_scores = trees.score(tables), free.score(tables)
        for (target, rows), kind, score, free_score in zip(
            drawn, kinds, scores.tolist(), free_scores.tolist(), strict=True
        ):
            fell += score <= cut
            score_fell += score < start[target][0]
            free_fell += free_score <= free_cut
            hidden |= {target} if free_score <= free_cut else set()
            if free_score < start[target][1]:
                attacker.weight[target][kind] += 1
            if free_score < best.get(target, start[target])[0 if target in best else 1]:
                best[target] = (free_score, rows)
        done += len(drawn)
        print(
            threat,
            keeps,
            done,
            fell,
            score_fell,
            free_fell,
            len(hidden),
            f"{time.process_time() - begin:.0f} s",
            flush=True,
        )
    return {
        "dataset": "ethereum-phishing",
        "seed": seed,
        "threat": threat,
        "keeps": keeps,
        "broken": "" if keeps else WRONG[threat],
        "targets": len(start),
        "attacks": done,
        "flags fallen": fell,
        "scores fallen": score_fell,
        "unconstrained fallen": free_fell,
        "hidden from unconstrained": len(hidden),
        "processor seconds": round(time.process_time() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("threats", nargs="*", default=THREATS)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--attacks", type=int, default=100_000)
    parser.add_argument("--broken", action="store_true", help="break the threat on purpose")
    parser.add_argument("--out", type=Path, default=ROWS)
    args = parser.parse_args()
    for threat in args.threats:
        if args.broken and threat not in WRONG:
            continue
        if (threat, not args.broken) in [(old["threat"], old["keeps"]) for old in read_rows(args.out)]:
            continue
        append_row(args.out, run(threat, not args.broken, args.seed, args.attacks, args.root))


if __name__ == "__main__":
    main()
