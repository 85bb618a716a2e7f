"""Certify an account whose graph lies in a database: two queries return its receptive field, and nothing else is read.

SQLite stands for Neo4j, Neptune or a warehouse. At the end the certificate is compared with that of the whole graph,
which a service never has to load.
"""

import random
import sqlite3

import torch
from torch_geometric.data import Data

import agnncert as ac

ACCOUNTS = 400

# All transfers of every account within HOPS of the target. GraphSAGE with two layers needs one hop.
TRANSFERS = """
    WITH RECURSIVE near(id, distance) AS (
        VALUES (:target, 0)
        UNION
        SELECT CASE WHEN payer = near.id THEN payee ELSE payer END, distance + 1
        FROM transfers JOIN near ON near.id IN (payer, payee) WHERE distance < :hops
    )
    SELECT DISTINCT payer, payee FROM transfers WHERE payer IN (SELECT id FROM near) OR payee IN (SELECT id FROM near)
"""
# How many transfers an account has: a query with a LIMIT, or a lost page of results, shows here.
COUNT = "SELECT count(*) FROM transfers WHERE :account IN (payer, payee)"


def make_database() -> sqlite3.Connection:
    """Accounts of two kinds, which mostly send money to their own kind."""
    draw = random.Random(0)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE accounts (id TEXT PRIMARY KEY, age REAL, balance REAL, fraud INTEGER)")
    database.execute("CREATE TABLE transfers (payer TEXT, payee TEXT, PRIMARY KEY (payer, payee))")
    kinds = [int(draw.random() < 0.3) for _ in range(ACCOUNTS)]
    for number, kind in enumerate(kinds):
        row = (f"acc-{number:03}", draw.gauss(0.7 * kind, 1), draw.gauss(-0.7 * kind, 1), kind)
        database.execute("INSERT INTO accounts VALUES (?, ?, ?, ?)", row)
    for _ in range(1200):
        payer = draw.randrange(ACCOUNTS)
        payee = draw.choice([k for k in range(ACCOUNTS) if kinds[k] == kinds[payer] or draw.random() < 0.1])
        if payer != payee:
            database.execute("INSERT OR IGNORE INTO transfers VALUES (?, ?)", (f"acc-{payer:03}", f"acc-{payee:03}"))
    return database


def graph_of(accounts: list[tuple], transfers: list[tuple[str, str]]) -> Data:
    """A graph of rows of both tables. Each transfer carries messages in both directions."""
    place = {row[0]: number for number, row in enumerate(accounts)}
    ends = torch.tensor([[place[payer], place[payee]] for payer, payee in transfers]).view(-1, 2).t()
    return Data(
        x=torch.tensor([[age, balance] for _, age, balance, _ in accounts]),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        y=torch.tensor([fraud for *_, fraud in accounts]),
        node_id=[row[0] for row in accounts],
    )


def field_of(database: sqlite3.Connection, target: str, hops: int) -> ac.ReceptiveField:
    """What decides about one account: its part of the graph, and how many edges the accounts in it have."""
    transfers = database.execute(TRANSFERS, {"target": target, "hops": hops}).fetchall()
    names = sorted({target, *(name for pair in transfers for name in pair)})
    marks = ",".join("?" * len(names))
    accounts = database.execute(f"SELECT * FROM accounts WHERE id IN ({marks}) ORDER BY id", names).fetchall()
    counts = {name: database.execute(COUNT, {"account": name}).fetchone()[0] for name in names}
    return ac.ReceptiveField(target, graph_of(accounts, transfers), {name: 2 * n for name, n in counts.items()})


database = make_database()
accounts = database.execute("SELECT * FROM accounts ORDER BY id").fetchall()
whole = graph_of(accounts, database.execute("SELECT payer, payee FROM transfers").fetchall())
data = ac.split(whole, seed=0)
defence = ac.NodeCentric(20)
model = ac.fit(ac.build_model("sage", data, num_layers=2), data, defence, epochs=40)

target = "acc-007"
field = field_of(database, target, defence.as_defence().hops_of_field(model))
certificate = ac.certify_field(model, field, defence)
print(f"{field.data.num_nodes} of {ACCOUNTS} accounts, {field.data.num_edges} of {whole.num_edges} edges were read")
print(certificate[target])

of_whole_graph = ac.certify(model, data, defence)[target]
assert (of_whole_graph.label, of_whole_graph.radius) == (certificate[target].label, certificate[target].radius)
assert of_whole_graph.withstands == certificate[target].withstands
print("certify says the same of the whole graph")

try:
    field = field_of(database, target, hops=0)
    ac.certify_field(model, field, defence)
except ac.AgnncertError as error:
    print(f"\nwith one hop less: {error}")
