"""Labels changed before training: what LabelVotes certifies on fresh splits, beside partitions and undefended models, and attacks on it.

    python -m experiments.benchmarks.label_votes tables [--root FOLDER] [--only NAME ...] [--protocol 30 | 20]
    python -m experiments.benchmarks.label_votes attacks [--root FOLDER]
    python -m experiments.benchmarks.label_votes whole [--root FOLDER]
    python -m experiments.benchmarks.label_votes page

write experiments/benchmarks/results/label_votes.jsonl, label_votes_attacks.jsonl, label_votes_whole.jsonl and label_votes.md. Every row is stored as
soon as it is measured; a run that was cut goes on where it stopped. "whole" certifies all test nodes through the library, with seconds and file sizes.

The partition ensemble (DPA, Levine and Feizi) trains a ridge regression on each of T parts of the labels. Its setting was chosen before any row was
measured: the same node vectors, penalty 1, T = 50 (10 with 20 labels per class). All other settings of it are shown as well.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import agnncert as ac
from agnncert.labels.evidence import LabelEvidence
from agnncert.labels.settings import LabelSettings
from agnncert.labels.vectors import _normalised, _unit_rows, node_spectrum
from agnncert.labels.weights import Weighting, make_weights
from experiments.paper.rows import append_row, read_rows

RESULTS = Path(__file__).parent / "results"
SIZES = (0, 1, 2, 5, 10, 20, 40)
DATASETS = ("cora-ml", "citeseer", "pubmed", "amazon-c")
SEEDS = {"30": (500, 501, 502), "20": (600, 601, 602)}
TARGETS = 1000
BOXED = ("cora-ml", "citeseer")  # the others take too long
PARTS = {"30": (25, 50, 100), "20": (5, 10, 25)}
CHOSEN = {"30": "DPA, same vectors, T=50", "20": "DPA, same vectors, T=10"}
FINE = 2**16  # steps of controls


class Store:
    """Rows in a file, each written when it is measured."""

    def __init__(self, name):
        self.file = RESULTS / name
        self.rows = list(read_rows(self.file))

    def has(self, **key):
        return any(all(row.get(name) == value for name, value in key.items()) for row in self.rows)

    def add(self, row):
        self.rows.append(row)
        append_row(self.file, row)
        print(json.dumps(row), flush=True)


class Graph:
    """A dataset with node vectors, which are computed once."""

    def __init__(self, name, root):
        self.name, self.data = name, ac.load_dataset(name, root=root)
        self.y, self.n, self.classes = self.data.y.numpy(), self.data.num_nodes, int(self.data.num_classes)
        begin = time.perf_counter()
        self.spectrum = node_spectrum(self.data.x, self.data.edge_index)
        self.seconds = time.perf_counter() - begin
        walk = _normalised(self.data.edge_index.numpy(), self.n)
        self.two_hops = _unit_rows(walk @ (walk @ _unit_rows(self.data.x.double().numpy())))

    def split(self, protocol, seed):
        """Rows with labels, and targets; no validation part is used by anything."""
        order = np.random.default_rng(seed).permutation(self.n)
        if protocol == "30":
            return np.sort(order[: int(0.3 * self.n)]), order[int(0.4 * self.n) :][:TARGETS]
        labelled = np.sort(np.concatenate([order[self.y[order] == k][:20] for k in range(self.classes)]))
        rest = order[~np.isin(order, labelled)]
        return labelled, rest[500:][:TARGETS]


def evidence_of(graph, labelled, targets, settings):
    """Label votes without the library's data checks: the same weights and the same evidence."""
    complete = settings.resolved(len(labelled), graph.n, graph.classes)
    is_all = settings.candidates == "all"
    candidate = np.arange(graph.n) if is_all else labelled
    label_of = np.full(graph.n, -1, dtype=np.int16)
    label_of[labelled] = graph.y[labelled]
    arrays = make_weights(
        graph.spectrum, targets, Weighting(candidate, is_all, complete.df, complete.rank, complete.box)
    )
    m = len(candidate)
    return complete, LabelEvidence(
        **arrays, candidate=candidate, label_of=label_of[candidate], audited=np.zeros(m, dtype=bool), price=np.ones(m, dtype=np.int32),
        classes=graph.classes, advance=(0,) * graph.classes, candidates=settings.candidates, df=complete.df, rank=complete.rank, box=complete.box,
    )  # fmt: skip


def share(label, radius, truth):
    return [round(float(((label == truth) & (radius >= size)).mean()), 4) for size in SIZES]


def ridge(vectors, rows, targets, penalty):
    of_rows, of_targets = vectors[rows], vectors[targets]
    if len(rows) <= vectors.shape[1]:
        return np.linalg.solve(of_rows @ of_rows.T + penalty * np.eye(len(rows)), of_rows @ of_targets.T).T
    return of_targets @ np.linalg.solve(of_rows.T @ of_rows + penalty * np.eye(vectors.shape[1]), of_rows.T)


def exact_radius(weights, labels, classes, most=41):
    """Label and radius, up to ``most``, of whole weights: Theorem 14 by sorting."""
    score = np.stack([weights[:, labels == k].sum(axis=1) for k in range(classes)], axis=1)
    label, radius = score.argmax(axis=1), np.full(len(weights), most)
    rows = np.arange(len(weights))
    own = labels[None, :] == label[:, None]
    for k in range(classes):
        cost = np.abs(weights) + np.where(own, weights, 0) - np.where(labels == k, weights, 0)
        top = -np.sort(-np.partition(cost, max(cost.shape[1] - most, 0), axis=1)[:, -most:], axis=1)
        lead = score[rows, label] - score[:, k] - (k < label)
        number = (np.cumsum(top, axis=1) <= lead[:, None]).sum(axis=1)
        radius = np.where(label == k, radius, np.minimum(radius, number))
    return label, radius


def partitions(graph, vectors, labelled, targets, penalty, parts, seed):
    group = np.random.default_rng(seed).integers(0, parts, len(labelled))
    votes = np.zeros((len(targets), graph.classes), dtype=np.int64)
    for part in range(parts):
        rows = labelled[group == part]
        if not len(rows):
            votes[:, 0] += 1
            continue
        score = ridge(vectors, rows, targets, penalty) @ np.eye(graph.classes)[graph.y[rows]]
        votes[np.arange(len(targets)), score.argmax(axis=1)] += 1
    label, lead = votes.argmax(axis=1), np.full(len(targets), 10**9)
    for k in range(graph.classes):
        behind = votes[np.arange(len(targets)), label] - votes[:, k] - (k < label)
        lead = np.where(label == k, lead, np.minimum(lead, behind))
    return label, lead // 2


def methods(graph, labelled, targets, protocol, seed):
    """Yields a name and a function that returns labels and radii."""
    number = len(labelled)
    kinds = {
        "LabelVotes few": {"preset": "few"},
        "LabelVotes many": {"preset": "many"},
        "LabelVotes few, all candidates": {"preset": "few", "candidates": "all", "num_labels": number},
        "LabelVotes many, all candidates": {"preset": "many", "candidates": "all", "num_labels": number},
        "LabelVotes few, rank=1": {"preset": "few", "rank": 1},
    }
    if graph.name in BOXED or protocol == "20":
        kinds |= {
            "LabelVotes few, box": {"preset": "few", "box": True},
            "LabelVotes many, box": {"preset": "many", "box": True},
        }
    for name, settings in kinds.items():
        yield (
            name,
            lambda settings=settings: evidence_of(graph, labelled, targets, LabelSettings(**settings))[
                1
            ].label_and_radius(),
        )
    vectors = graph.spectrum.vectors

    def uncapped(table, penalty):
        weights = ridge(table, labelled, targets, penalty)
        whole = np.rint(weights / np.abs(weights).max(axis=1, keepdims=True) * FINE).astype(np.int64)
        return exact_radius(whole, graph.y[labelled], graph.classes)

    def one_cap(table, penalty, cap):
        whole = np.rint(np.clip(ridge(table, labelled, targets, penalty) / cap, -1, 1) * FINE).astype(np.int64)
        return exact_radius(whole, graph.y[labelled], graph.classes)

    yield "single ridge, same vectors, no cap", lambda: uncapped(vectors, 1.0)
    yield "single ridge, two hops, one cap for all", lambda: one_cap(graph.two_hops, 10.0, 0.005)
    for table, word in ((vectors, "same vectors"), (graph.two_hops, "two hops")):
        penalty = 1.0 if word == "same vectors" else 0.1
        for parts in PARTS[protocol]:
            yield (
                f"DPA, {word}, T={parts}",
                lambda t=table, p=penalty, k=parts: partitions(graph, t, labelled, targets, p, k, seed),
            )


def tables(root, only, protocols):
    store = Store("label_votes.jsonl")
    for name in only:
        graph = None
        for protocol in protocols:
            for seed in SEEDS[protocol]:
                if store.has(
                    dataset=name, protocol=protocol, seed=seed, method=f"DPA, two hops, T={PARTS[protocol][-1]}"
                ):
                    continue
                graph = graph or Graph(name, root)
                labelled, targets = graph.split(protocol, seed)
                for method, run in methods(graph, labelled, targets, protocol, seed):
                    if store.has(dataset=name, protocol=protocol, seed=seed, method=method):
                        continue
                    begin = time.perf_counter()
                    label, radius = run()
                    row = {
                        "dataset": name,
                        "protocol": protocol,
                        "seed": seed,
                        "method": method,
                        "labels": len(labelled),
                        "targets": len(targets),
                    }
                    store.add(
                        {
                            **row,
                            "certified": share(label, radius, graph.y[targets]),
                            "seconds": round(time.perf_counter() - begin, 1),
                        }
                    )


def attack_one(rng, weights, labels, label, classes, changes, first):
    """Training labels after an attack that changes so many: the worst one for a random rival, or one at random among heavy entries."""
    rival = first if rng.random() < 0.5 else int(rng.choice([k for k in range(classes) if k != label]))
    cost = np.abs(weights) + weights * ((labels == label).astype(int) - (labels == rival))
    order = np.argsort(-cost, kind="stable")
    poisoned = labels.copy()
    kind = rng.random()
    rows = order[:changes] if kind < 0.4 else rng.choice(order[: 4 * changes + 10], changes, replace=False)
    worst = np.where(weights[rows] >= 0, rival, label)
    poisoned[rows] = worst if kind < 0.8 else rng.integers(-1, classes, changes)
    return poisoned


def attacks(root, number=50_000):
    """Attacks within the radius change nothing; the worst one beyond it changes the label, unless the radius is unlimited."""
    store = Store("label_votes_attacks.jsonl")
    for name, candidates, preset in (
        ("cora-ml", "all", "many"),
        ("pubmed", "all", "many"),
        ("amazon-c", "labelled", "few"),
    ):
        key = {"dataset": name, "candidates": candidates, "preset": preset}
        if store.has(**key):
            continue
        graph = Graph(name, root)
        labelled, targets = graph.split("30", 500)
        targets = targets[:500]
        settings = LabelSettings(preset=preset, candidates=candidates, num_labels=len(labelled))
        _, evidence = evidence_of(graph, labelled, targets, settings)
        label, radius = evidence.label_and_radius()
        rng = np.random.default_rng(7)
        labels = evidence.label_of.astype(np.int64)
        within = changed = beyond = flipped = 0
        for i in range(len(targets)):
            weights = evidence._weights(slice(i, i + 1))[0].astype(np.int64)
            first = int(evidence.fewest[i].argmin())
            for _ in range(number // len(targets)):
                if candidates == "labelled":
                    poisoned = np.maximum(
                        attack_one(rng, weights, labels, label[i], graph.classes, int(radius[i]), first), 0
                    )
                else:
                    poisoned = attack_one(rng, weights, labels, label[i], graph.classes, int(radius[i]), first)
                assert (poisoned != labels).sum() <= radius[i]
                score = np.array([weights[poisoned == k].sum() for k in range(graph.classes)])
                within, changed = within + 1, changed + int(score.argmax() != label[i])
            cost = np.abs(weights) + weights * ((labels == label[i]).astype(int) - (labels == first))
            rows = np.argsort(-cost, kind="stable")[: int(radius[i]) + 1]
            poisoned = labels.copy()
            poisoned[rows] = np.where(weights[rows] >= 0, first, label[i])
            score = np.array([weights[poisoned == k].sum() for k in range(graph.classes)])
            beyond, flipped = beyond + 1, flipped + int(score.argmax() != label[i])
        store.add({**key, "attacks within the radius": within, "labels changed": changed, "one beyond": beyond, "labels changed beyond": flipped,
                   "median radius": float(np.median(radius)), "largest radius": int(radius.max())})  # fmt: skip


def whole(root):
    """All test nodes of the large graphs, through the library: seconds, file sizes, and the verdict from the file alone."""
    store = Store("label_votes_whole.jsonl")
    for name in ("pubmed", "amazon-c"):
        for candidates in ("all", "labelled"):
            if store.has(dataset=name, candidates=candidates):
                continue
            data = ac.load_dataset(name, root=root)
            n = data.num_nodes
            order = torch.from_numpy(np.random.default_rng(500).permutation(n))
            for mask, part in (
                ("train_mask", order[: int(0.3 * n)]),
                ("val_mask", order[int(0.3 * n) : int(0.4 * n)]),
                ("test_mask", order[int(0.4 * n) :]),
            ):
                data[mask] = torch.zeros(n, dtype=torch.bool).index_fill(0, part, True)
            data.split_by = None  # drawn without looking at labels
            begin = time.process_time()
            model = ac.fit(None, data, ac.LabelVotes(candidates=candidates, num_labels=int(0.3 * n)))
            certificate = ac.certify(model, data, model.defence, data.test_mask)
            certified = time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "a.cert"
                certificate.save(file)
                size, saved = os.path.getsize(file), time.process_time()
                verdict = ac.verify(file)
            shares = [round(float(certificate.certified_accuracy(sizes=size)), 4) for size in SIZES]
            row = {
                "dataset": name,
                "candidates": candidates,
                "defence": str(model.defence),
                "targets": len(certificate),
                "certified": shares,
                "bytes": size,
            }
            store.add(
                {
                    **row,
                    "cpu seconds to certify": round(certified - begin, 1),
                    "cpu seconds to verify": round(time.process_time() - saved, 1),
                    "holds": verdict.holds,
                }
            )


def page():
    """Writes label_votes.md from the stored rows."""
    rows = Store("label_votes.jsonl").rows
    lines = [
        "# Labels changed before training",
        "",
        "`python -m experiments.benchmarks.label_votes page` writes this page from the rows beside it.",
        "",
    ]
    lines += ["Share of 1,000 targets that are correct and certified against so many changed training labels; mean over fresh splits. "
              "With all candidates the changes are flips, additions and removals, else flips.", ""]  # fmt: skip
    for protocol, title in (("30", "30 % of the nodes have labels"), ("20", "20 labels per class")):
        for name in DATASETS:
            chosen = [row for row in rows if row["dataset"] == name and row["protocol"] == protocol]
            if not chosen:
                continue
            seeds = sorted({row["seed"] for row in chosen})
            lines += [
                f"## {name}, {title}",
                "",
                f"| splits {', '.join(map(str, seeds))} | " + " | ".join(map(str, SIZES)) + " | largest sd |",
            ]
            lines += ["|---|" + "---|" * (len(SIZES) + 1)]
            for method in dict.fromkeys(row["method"] for row in chosen):
                values = np.array([row["certified"] for row in chosen if row["method"] == method])
                mark = " (chosen in advance)" if method == CHOSEN[protocol] else ""
                cells = " | ".join(f"{value:.3f}" for value in values.mean(axis=0))
                lines.append(f"| {method}{mark} | {cells} | {values.std(axis=0).max():.3f} |")
            lines.append("")
    for name, title in (
        ("label_votes_attacks.jsonl", "Attacks"),
        ("label_votes_whole.jsonl", "All test nodes, through the library"),
    ):
        rows = Store(name).rows
        if rows:
            lines += [f"## {title}", "", "| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
            lines += [
                "| "
                + " | ".join(
                    " ".join(f"{x:.3f}" for x in value) if isinstance(value, list) else str(value)
                    for value in row.values()
                )
                + " |"
                for row in rows
            ]
            lines.append("")
    (RESULTS / "label_votes.md").write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("tables", "attacks", "whole", "page"))
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--only", nargs="*", default=DATASETS)
    parser.add_argument("--protocol", choices=("30", "20"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "tables":
        tables(options.root, options.only, (options.protocol,) if options.protocol else ("30", "20"))
    elif options.what == "attacks":
        attacks(options.root)
    elif options.what == "whole":
        whole(options.root)
    page()


if __name__ == "__main__":
    main()
