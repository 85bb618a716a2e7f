"""Labels and edges poisoned together: what LabelVotes(neighbour_votes=…) certifies on fresh splits, and attacks on it.

    python -m experiments.benchmarks.labels_and_edges tables [--root FOLDER] [--only NAME ...]
    python -m experiments.benchmarks.labels_and_edges attacks [--root FOLDER]
    python -m experiments.benchmarks.labels_and_edges whole [--root FOLDER]
    python -m experiments.benchmarks.labels_and_edges page

write experiments/benchmarks/results/labels_and_edges.jsonl, labels_and_edges_attacks.jsonl, labels_and_edges_whole.jsonl and labels_and_edges.md. Every
row is stored as soon as it is measured; a run that was cut goes on where it stopped. Settings were chosen on split 400, which no table shows.
"""

import argparse
import copy
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import agnncert as ac
from agnncert.labels.joint_evidence import JointEvidence
from agnncert.labels.model import label_model, neighbours_of
from agnncert.labels.record import STEPS
from agnncert.labels.settings import LabelSettings
from agnncert.labels.vectors import own_spectrum
from experiments.benchmarks.label_votes import RESULTS, TARGETS, Store

SEEDS = (700, 701, 702)
DATASETS = ("cora-ml", "amazon-c")
LABELS = (0, 1, 2, 5, 10, 20)
EDGES = (0, 1, 2, 3, 5)
SETTINGS = {
    "few, no edges": {"preset": "few", "neighbour_votes": 0},
    "few, 2 votes": {"preset": "few", "neighbour_votes": 2},
    "few, 6 votes": {"preset": "few", "neighbour_votes": 6},
    "few, 15 votes": {"preset": "few", "neighbour_votes": 15},
    "many, 6 votes": {"preset": "many", "neighbour_votes": 6},
}


def split(data, seed):
    """The graph with 30 % of the labels for training; the rows of some targets among the last 60 %."""
    order = np.random.default_rng(seed).permutation(data.num_nodes)
    chosen = copy.copy(data)
    chosen.split_by = None  # drawn without looking at labels
    train = torch.from_numpy(order[: int(0.3 * data.num_nodes)])
    chosen.train_mask = torch.zeros(data.num_nodes, dtype=torch.bool).index_fill(0, train, True)
    return chosen, np.sort(order[int(0.4 * data.num_nodes) :][:TARGETS])


def evidence_of(data, spectrum, targets, settings):
    """What the library counts, without its checks of the data: the same weights, from node vectors that are computed once."""
    model = label_model(data, LabelSettings(**settings))
    near = neighbours_of(data.edge_index, targets, data.num_nodes)
    evidence = JointEvidence(
        voters=model._label_evidence(spectrum, near.voter, "row", least_lead=0), voter=near.voter, target=np.searchsorted(near.voter, targets),
        indptr=near.indptr, neighbour=near.neighbour, neighbour_steps=round(settings["neighbour_votes"] * STEPS),
    )  # fmt: skip
    return str(model.defence), evidence


def certified(evidence, truth):
    """Share that is correct and certified, for each number of changed labels (rows) and of changed edges (columns)."""
    budgets = [ac.Budget(flip_labels=f, add_edges=e) for f in LABELS for e in EDGES]
    holds = evidence.answers(budgets, ac.Budget(change_features=1)).holds
    correct = evidence.counts.argmax(axis=1) == truth
    shares = (holds & correct).mean(axis=1).reshape(len(LABELS), len(EDGES))
    return [[round(float(share), 4) for share in row] for row in shares]


def tables(root, only):
    store = Store("labels_and_edges.jsonl")
    for dataset in only:
        data = spectrum = None
        for seed in SEEDS:
            for method, settings in SETTINGS.items():
                if store.has(dataset=dataset, seed=seed, method=method):
                    continue
                if data is None:
                    data = ac.load_dataset(dataset, root=root)
                    spectrum = own_spectrum(data.x)
                chosen, targets = split(data, seed)
                begin = time.process_time()
                defence, evidence = evidence_of(chosen, spectrum, targets, settings)
                row = {"dataset": dataset, "seed": seed, "method": method, "defence": defence}
                row |= {"labels": int(chosen.train_mask.sum()), "targets": len(targets), "voters": len(evidence.voter)}
                row["certified"] = certified(evidence, data.y.numpy()[targets])
                store.add({**row, "cpu seconds": round(time.process_time() - begin, 1)})


def whole(root):
    """Targets of the large graph through the library: seconds, file size, and the verdict from the file alone."""
    store = Store("labels_and_edges_whole.jsonl")
    for dataset, method in (("amazon-c", "few, 6 votes"),):
        if store.has(dataset=dataset, method=method):
            continue
        data, targets = split(ac.load_dataset(dataset, root=root), SEEDS[0])
        begin = time.process_time()
        model = ac.fit(None, data, ac.LabelVotes(**SETTINGS[method]))
        certificate = ac.certify(model, data, model.defence, targets)
        seconds = time.process_time() - begin
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.cert"
            certificate.save(file)
            begin = time.process_time()
            verdict = ac.verify(file)
            row = {"dataset": dataset, "method": method, "defence": str(model.defence), "targets": len(targets)}
            row |= {"voters": len(certificate.evidence.voter), "bytes": file.stat().st_size, "holds": verdict.holds}
            store.add({**row, "cpu seconds to certify": round(seconds, 1), "cpu seconds to verify": round(time.process_time() - begin, 1)})  # fmt: skip


class Attacked:
    """What labels and neighbours make of every node, counted from the weights; shares no code with prover or verifier."""

    def __init__(self, evidence, seed):
        voters = evidence.voters
        self.evidence, self.classes, self.rng = evidence, voters.num_classes, np.random.default_rng(seed)
        products = voters.left.astype(np.int64) @ voters.right.astype(np.int64).T
        self.weights = np.clip(products * STEPS // voters.cap[:, None], -STEPS, STEPS)
        for row, own in enumerate(voters.own):
            if own >= 0:
                self.weights[row, own] = 0
        self.labels = voters.label_of.astype(np.int64)
        self.scores = self.weights @ np.eye(self.classes, dtype=np.int64)[self.labels]

    def near(self, node):
        return self.evidence.neighbour[self.evidence.indptr[node] : self.evidence.indptr[node + 1]]

    def scores_after(self, rows, values):
        """Scores of all nodes by labels alone, after some labels were replaced."""
        one_hot = np.eye(self.classes, dtype=np.int64)
        return self.scores + self.weights[:, rows] @ (one_hot[values] - one_hot[self.labels[rows]])

    def label(self, node, scores, near):
        total = scores[node].copy()
        np.add.at(total, scores[near].argmax(axis=1), self.evidence.neighbour_steps)
        return int(total.argmax())

    def flips(self, node, label, rival, number):
        """Which labels become which: those that hurt the node most, or its neighbours, or some that hurt."""
        side = (self.labels == label).astype(np.int64) - (self.labels == rival)
        cost = (np.abs(self.weights[node]) + self.weights[node] * side).astype(np.float64)
        friends = self.near(node)[self.scores[self.near(node)].argmax(axis=1) == label]
        if len(friends) and self.rng.random() < 0.6:
            theirs = np.abs(self.weights[friends]) + self.weights[friends] * side
            cost = self.rng.random() * cost + theirs.sum(axis=0) * self.rng.choice([0.2, 1, 5])
        order = np.argsort(-cost, kind="stable")
        rows = (
            order[:number]
            if self.rng.random() < 0.5
            else self.rng.choice(order[: 3 * number + 5], number, replace=False)
        )
        return rows, np.where(self.weights[node, rows] >= 0, rival, label)

    def is_changed_by(self, node, label, rival, flips, edges):
        """Whether an attack that flips so many labels and moves so many edges changes the label."""
        rows, values = self.flips(node, label, rival, flips)
        scores = self.scores_after(rows, values)
        near, cast = self.near(node), scores.argmax(axis=1)
        lost = near[cast[near] == label]
        others = np.setdiff1d(np.flatnonzero(cast == rival), [*near, node])
        new = self.rng.permutation(others)[: int(self.rng.integers(0, edges + 1)) if len(lost) else edges]
        kept = np.setdiff1d(near, self.rng.permutation(lost)[: edges - len(new)])
        assert len(rows) <= flips
        assert len(near) - len(kept) + len(new) <= edges
        return self.label(node, scores, np.concatenate([kept, new]).astype(np.int64)) != label


def attacks(root, number=50_000):
    """Attacks within what is certified change nothing. One label or one edge beyond it: how many labels change."""
    store = Store("labels_and_edges_attacks.jsonl")
    for dataset, method in (("cora-ml", "few, 6 votes"),):
        if store.has(dataset=dataset, method=method):
            continue
        data, targets = split(ac.load_dataset(dataset, root=root), SEEDS[0])
        targets = targets[::2]
        spectrum = own_spectrum(data.x)
        _, evidence = evidence_of(data, spectrum, targets, SETTINGS[method])
        _, everybody = evidence_of(
            data, spectrum, np.arange(data.num_nodes), SETTINGS[method]
        )  # anybody may become a neighbour
        counts = evidence.counts
        world = Attacked(everybody, seed=7)
        most = np.stack([evidence.max_certified("add_edges", ac.Budget(flip_labels=f)) for f in range(31)], axis=1)
        found = dict.fromkeys(("attacks within", "labels changed within", "one edge beyond", "labels changed by it", "one label beyond", "labels changed by that"), 0)  # fmt: skip
        for i, node in enumerate(targets):  # everybody is in the order of rows
            label, *rivals = np.argsort(-counts[i], kind="stable").tolist()
            assert world.label(node, world.scores, world.near(node)) == label
            certified_flips = np.flatnonzero(most[i] >= 0)
            for _ in range(number // len(targets)):
                flips = int(world.rng.choice(certified_flips))
                found["attacks within"] += 1
                rival = rivals[int(world.rng.integers(0, 2))]
                found["labels changed within"] += world.is_changed_by(node, label, rival, flips, int(most[i, flips]))
            flips = int(world.rng.choice(certified_flips))
            beyond = [(rival, flips, int(most[i, flips]) + 1) for rival in rivals[:3] for _ in range(10)]
            found["one edge beyond"] += 1
            found["labels changed by it"] += any(world.is_changed_by(node, label, *attack) for attack in beyond)
            if len(certified_flips) < most.shape[1]:
                beyond = [(rival, len(certified_flips), 0) for rival in rivals[:3] for _ in range(10)]
                found["one label beyond"] += 1
                found["labels changed by that"] += any(world.is_changed_by(node, label, *attack) for attack in beyond)
        store.add({"dataset": dataset, "method": method, "targets": len(targets), **found})


def page():
    """Writes the page from the rows."""
    rows = Store("labels_and_edges.jsonl").rows
    lines = ["# Labels and edges poisoned together", "", "`python -m experiments.benchmarks.labels_and_edges page` writes this page from the rows beside it.", "",
             f"Share of {TARGETS:,} targets that are correct and certified if so many training labels are flipped and so many neighbours of the target come or go; mean over "
             f"splits {', '.join(map(str, SEEDS))} with 30 % of the labels. With \"no edges\" any number of edges is covered.", ""]  # fmt: skip
    for dataset in DATASETS:
        here = [row for row in rows if row["dataset"] == dataset]
        if not here:
            continue
        lines += [
            f"## {dataset}",
            "",
            "| | labels | " + " | ".join(f"{e} edges" for e in EDGES) + " | largest sd |",
            "|---" * (len(EDGES) + 3) + "|",
        ]
        for method in SETTINGS:
            found = np.array([row["certified"] for row in here if row["method"] == method])
            if not len(found):
                continue
            for i, f in enumerate(LABELS):
                mean, sd = found[:, i].mean(axis=0), found[:, i].std(axis=0).max()
                cells = " | ".join(f"{value:.3f}" for value in mean)
                lines.append(f"| {method} | {f} | {cells} | {sd:.3f} |")
        lines.append("")
    for title, name in (
        ("Attacks", "labels_and_edges_attacks.jsonl"),
        ("Through the library", "labels_and_edges_whole.jsonl"),
    ):
        found = Store(name).rows
        if not found:
            continue
        names = list(found[0])
        lines += [f"## {title}", "", "| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
        lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in found]
        lines.append("")
    (RESULTS / "labels_and_edges.md").write_text("\n".join(lines), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "attacks", "whole", "page"))
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--only", nargs="+", default=DATASETS, choices=DATASETS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.what == "tables":
        tables(arguments.root, arguments.only)
    elif arguments.what == "attacks":
        attacks(arguments.root)
    elif arguments.what == "whole":
        whole(arguments.root)
    else:
        page()


if __name__ == "__main__":
    main()
