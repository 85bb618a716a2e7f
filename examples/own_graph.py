"""Certify a graph of your own, read from two tables: one row per account, one row per friendship.

Accounts have ids that stay the same when the graph changes. Groups are hashes of ids, so a certificate also holds when
accounts come and go.
"""

import csv
import random
from pathlib import Path

import agnncert as ac


def write_tables(folder: Path, accounts: int = 120) -> None:
    """Two kinds of accounts, which differ in two features and are mostly friends with their own kind."""
    draw = random.Random(0)
    kinds = [draw.choice(["genuine", "spam"]) for _ in range(accounts)]
    folder.mkdir(exist_ok=True)
    with (folder / "nodes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "label", "posts", "links"])
        for number, kind in enumerate(kinds):
            centre = 1.0 if kind == "spam" else -1.0
            table.writerow([f"user-{number:03}", kind, draw.gauss(centre, 1.0), draw.gauss(centre, 1.0)])
    with (folder / "edges.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["source", "target"])
        pairs = [(i, j) for i in range(accounts) for j in range(i)]
        for i, j in pairs:
            if draw.random() < (0.15 if kinds[i] == kinds[j] else 0.01):
                table.writerow([f"user-{i:03}", f"user-{j:03}"])


write_tables(Path("accounts"))
data = ac.load_tables("accounts")  # splits are drawn at random unless the table of nodes has a column "split"
print(data)

division = ac.NodeCentric(15)
model = ac.fit(ac.build_model("sage", data, num_layers=2), data, division, epochs=60)
certificate = ac.certify(model, data, division)

print(certificate["user-002"])
budget = ac.Budget(inject_nodes=2, edges_per_injected=10, delete_edges=3)
print(f"{certificate.holds_against(budget).mean():.0%} of the labels hold against {budget}")
