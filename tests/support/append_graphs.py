"""A small graph of payments for tests of append-only scores, and what an attacker appends to it."""

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.datasets.relations import both_directions

NAMES = ["payment", "amount"]


def payments(seed=0, accounts=160, fraud=0.25, extra=()):
    """Accounts of which some are paid small amounts by many; ``extra`` are further rows (payer, payee, amount)."""
    random = np.random.default_rng(seed)
    y = (random.random(accounts) < fraud).astype(int)
    rows = {}
    for _ in range(5 * accounts):
        payer, payee = (int(number) for number in random.integers(0, accounts, 2))
        if payer != payee:
            rows[payer, payee] = float(random.integers(1, 50))
    for account in np.flatnonzero(y):
        for payer in random.integers(0, accounts, int(random.integers(3, 9))):
            if payer != account:
                rows[int(payer), int(account)] = float(random.integers(200, 220))
    data = graph_of([(*pair, amount) for pair, amount in rows.items()], accounts)
    data.y = torch.tensor(y)
    part = random.permutation(accounts) * 10 // accounts
    for name, inside in (("train", part < 5), ("val", (part >= 5) & (part < 7)), ("test", part >= 7)):
        data[f"{name}_mask"] = torch.from_numpy(inside)
    return data


def graph_of(rows, accounts):
    """A graph with these rows (payer, payee, amount)."""
    ends = torch.tensor([row[:2] for row in rows], dtype=torch.long).T
    values = torch.tensor([[1.0, row[2]] for row in rows])
    edge_index, edge_attr = both_directions(ends, values, accounts)
    data = Data(x=torch.ones(accounts, 1), edge_index=edge_index, edge_attr=edge_attr)
    data.node_id = torch.arange(accounts)
    data.edge_names = [*NAMES, *(f"{name}, back" for name in NAMES)]
    return data


def rows_of(data):
    """The rows (payer, payee, amount) of such a graph."""
    there = data.edge_attr[:, 0] > 0
    ends = data.edge_index[:, there].T.tolist()
    return [
        (payer, payee, amount) for (payer, payee), amount in zip(ends, data.edge_attr[there, 1].tolist(), strict=True)
    ]


def appended(data, new, accounts=0):
    """The graph with further rows, and so many further accounts; rows of old pairs are added to them."""
    total = data.num_nodes + accounts
    after = graph_of([*rows_of(data), *new], total)
    unknown = torch.full((accounts,), -1)
    after.y = torch.cat([data.y, unknown])
    for part in ("train_mask", "val_mask", "test_mask"):
        after[part] = torch.cat([data[part], torch.zeros(accounts, dtype=torch.bool)])
    return after
