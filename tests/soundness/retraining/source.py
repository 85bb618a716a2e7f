"""Accounts, scans and payments as they are collected, before anything reads them, and what a change of them costs.

An attacker changes a source. Whoever certifies reads it again and calls the same functions again.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from random import Random
from typing import Self

import torch
from torch_geometric.data import Data

import agnncert as ac

Pair = tuple[int, int]
Row = tuple[float, ...]

WIDTH = 5  # features of an account
CLASSES = ("genuine", "spam")


def pair(u: int, v: int) -> Pair:
    return min(u, v), max(u, v)


@dataclass(frozen=True)
class Accounts:
    """Accounts by their ids, who knows whom, and the classes of those that were labelled."""

    features: Mapping[int, Row]
    labels: Mapping[int, int]
    edges: frozenset[Pair]

    @classmethod
    def random(cls, random: Random, size: int, labelled: float = 1.0) -> Self:
        """Accounts of two kinds that mostly know their own kind; ids say nothing about them."""
        ids = random.sample(range(10_000), size)
        kind = {each: random.randrange(2) for each in ids}
        features = {each: tuple(round(random.gauss(2 * kind[each] - 1, 2), 2) for _ in range(WIDTH)) for each in ids}
        drawn = [pair(*random.sample(ids, 2)) for _ in range(3 * size)]
        edges = frozenset(each for each in drawn if kind[each[0]] == kind[each[1]] or random.random() < 0.2)
        labels = {each: kind[each] for each in ids if random.random() < labelled}
        return cls(features, labels, edges)

    @property
    def ids(self) -> list[int]:
        return sorted(self.features)

    def neighbours(self, of: int) -> list[int]:
        return sorted(v if u == of else u for u, v in self.edges if of in (u, v))

    def data(self) -> Data:
        """The graph as the guides make it from a database."""
        ids = self.ids
        row = {each: k for k, each in enumerate(ids)}
        ends = [(row[u], row[v]) for u, v in sorted(self.edges)]
        edges = torch.tensor([*ends, *((v, u) for u, v in ends)], dtype=torch.int64).view(-1, 2).t().contiguous()
        return Data(
            x=torch.tensor([self.features[each] for each in ids]),
            edge_index=edges,
            y=torch.tensor([self.labels.get(each, -1) for each in ids]),
            node_id=torch.tensor(ids),
            num_classes=2,
        )

    def write(self, folder: Path) -> Path:
        """The tables that somebody exported."""
        folder.mkdir(exist_ok=True)
        with (folder / "nodes.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", *(f"sign {k}" for k in range(WIDTH)), "label"])
            for each in self.ids:
                label = CLASSES[self.labels[each]] if each in self.labels else ""
                rows.writerow([each, *self.features[each], label])
        with (folder / "edges.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("source", "target"), *sorted(self.edges)])
        return folder

    def joined(self, u: int, v: int) -> Self:
        return replace(self, edges=self.edges | {pair(u, v)})

    def separated(self, u: int, v: int) -> Self:
        return replace(self, edges=self.edges - {pair(u, v)})

    def described(self, account: int, row: Row) -> Self:
        return replace(self, features={**self.features, account: row})

    def labelled(self, account: int, label: int | None) -> Self:
        others = {each: its for each, its in self.labels.items() if each != account}
        return replace(self, labels=others if label is None else {**others, account: label})

    def with_account(self, account: int, row: Row, known: list[int]) -> Self:
        edges = self.edges | {pair(account, each) for each in known}
        return replace(self, features={**self.features, account: row}, edges=edges)

    def without(self, account: int) -> Self:
        features = {each: row for each, row in self.features.items() if each != account}
        labels = {each: label for each, label in self.labels.items() if each != account}
        return replace(
            self, features=features, labels=labels, edges=frozenset(e for e in self.edges if account not in e)
        )


def cost_of_accounts(before: Accounts, after: Accounts, trained: frozenset[int]) -> ac.Budget:
    """The budget that an attacker spent, counted from the two sources alone.

    Args:
        before: The source before the attack.
        after: The source after it.
        trained: Ids in the training part before or after it. Labels of others cost nothing.
    """
    old, new = set(before.features), set(after.features)
    injected, deleted, both = new - old, old - new, old & new
    inside = [{each for each in source.edges if both.issuperset(each)} for source in (before, after)]
    brought = [sum(one in each for each in after.edges) for one in injected]
    labels = [(before.labels.get(each), after.labels.get(each)) for each in both & trained]
    return ac.Budget(
        add_edges=len(inside[1] - inside[0]),
        delete_edges=len(inside[0] - inside[1]),
        inject_nodes=len(injected),
        edges_per_injected=max(brought, default=0),
        delete_nodes=len(deleted),
        change_features=sum(before.features[each] != after.features[each] for each in both),
        flip_labels=sum(one != other and None not in (one, other) for one, other in labels),
        add_labels=sum(one is None and other is not None for one, other in labels),
        remove_labels=sum(one is not None and other is None for one, other in labels),
    )


@dataclass(frozen=True)
class Scan:
    """A graph with a class."""

    rows: tuple[Row, ...]
    edges: frozenset[Pair]
    label: int

    @classmethod
    def random(cls, random: Random, label: int) -> Self:
        size = random.randint(3, 6)
        rows = tuple(tuple(round(random.gauss(label, 1), 2) for _ in range(3)) for _ in range(size))
        edges = frozenset(pair(*random.sample(range(size), 2)) for _ in range(size))
        return cls(rows, edges, label)

    @property
    def is_plain(self) -> bool:
        """Whether somebody would ask for its class."""
        return self.label in (0, 1) and all(abs(number) < 1e6 for row in self.rows for number in row)

    def data(self, name: int) -> Data:
        ends = sorted(self.edges)
        edges = torch.tensor([*ends, *((v, u) for u, v in ends)], dtype=torch.int64).view(-1, 2).t().contiguous()
        return Data(x=torch.tensor(self.rows), edge_index=edges, y=torch.tensor([self.label]), graph_id=f"scan-{name}")


@dataclass(frozen=True)
class Scans:
    """Scans by their ids."""

    scans: Mapping[int, Scan]

    @classmethod
    def random(cls, random: Random, size: int) -> Self:
        return cls({each: Scan.random(random, each % 2) for each in random.sample(range(10_000), size)})

    @property
    def ids(self) -> list[int]:
        return sorted(self.scans)

    def data(self) -> ac.GraphSet:
        return ac.GraphSet([self.scans[each].data(each) for each in self.ids], num_classes=2)

    def with_scan(self, name: int, scan: Scan) -> Self:
        return replace(self, scans={**self.scans, name: scan})

    def without(self, name: int) -> Self:
        return replace(self, scans={each: scan for each, scan in self.scans.items() if each != name})


def cost_of_scans(before: Scans, after: Scans, by_content: bool) -> ac.Budget:
    """The number of poisoned scans: with ids by content, an altered one is one that left and one that came."""
    names = set(before.scans) | set(after.scans)
    changed = [name for name in names if before.scans.get(name) != after.scans.get(name)]
    altered = sum(name in before.scans and name in after.scans for name in changed)
    return ac.Budget(poison_graphs=len(changed) + by_content * altered)


@dataclass(frozen=True)
class Payments:
    """Pairs of accounts that are to be classified, beside the accounts."""

    accounts: Accounts
    pairs: Mapping[Pair, int]

    @classmethod
    def random(cls, random: Random, size: int) -> Self:
        """Accounts of three groups, with edges inside of them; asked is which pairs are joined."""
        ids = random.sample(range(10_000), size)
        group = {each: random.randrange(3) for each in ids}
        features = {each: tuple(round(random.gauss(group[each] == k, 0.7), 2) for k in range(WIDTH)) for each in ids}
        every = [pair(u, v) for u, v in combinations(ids, 2)]
        edges = frozenset(
            each for each in every if random.random() < (0.5 if group[each[0]] == group[each[1]] else 0.04)
        )
        others = random.sample(sorted(set(every) - edges), len(edges))
        return cls(Accounts(features, {}, edges), {each: int(each in edges) for each in chain(edges, others)})

    def data(self) -> Data:
        """The graph with its pairs, of which every third is in each part: by its own ids, as a column would say."""
        data = self.accounts.data()
        row = {each: k for k, each in enumerate(self.accounts.ids)}
        asked = sorted(each for each in self.pairs if row.keys() >= set(each))
        data.y = None
        data.edge_label_index = torch.tensor([(row[u], row[v]) for u, v in asked]).t().contiguous()
        data.edge_label = torch.tensor([self.pairs[each] for each in asked])
        part = torch.tensor([(7 * u + 13 * v) % 3 for u, v in asked])
        data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
        return data
