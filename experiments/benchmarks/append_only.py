"""Scores that appended rows can only raise, beside the same trees without that: figures on graphs with an adversary.

python -m experiments.benchmarks.append_only [DATASET …] --root .cache/data --seeds 0 1 2 3 4

The splits are those of ``fraud.py``, so that its rows (stacked votes, undefended GNN, own features, boosted trees on
aggregates) stand beside these. Rows go to experiments/results/append-only.jsonl as they come, and a run that is started
again goes on where it stopped. Thresholds are chosen on validation accounts, and in ``guaranteed`` on honest accounts
that were kept for nothing else; labels of test accounts are read last. "Only what it sent" reads of an account what it
wrote itself, so that nobody can frame it. ``price`` counts the rows that frame honest test accounts.
"""

import argparse
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.append.changes import NUMBERS, AroundAccount, templates_of
from agnncert.append.defence import AppendOnly
from agnncert.append.evaluate import Values
from agnncert.append.evidence import as_trees
from agnncert.append.ledger import read_ledger
from agnncert.append.model import edge_table, own_table
from agnncert.append.polarity import only_sent
from agnncert.append.training import JUDGE, Known, TreeSettings, train
from agnncert.datasets.splits import set_masks, stratified_split
from agnncert.graphs.targets import prepared
from agnncert.proving.guaranteed_rate import most_flagged
from experiments.benchmarks.fraud import RATES, auc, logits, threshold, without_times
from experiments.benchmarks.payments import Bank
from experiments.benchmarks.stacked import ETHEREUM_PARTS
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "append-only.jsonl"
DATASETS = ("ethereum-phishing", "bitcoin-otc", "cresci-15", "generated payments", "tolokers")
THREATS = ("fresh", "ledger", "grow")
BANK = 6000  # accounts of a generated bank
FRESH_ONLY = ("tolokers",)  # pairs without direction or values: nothing is paid, and nothing grows
DELETIONS = (1, 3, 5)
KEPT = (0.3, 0.5, 0.7)  # shares of the known honest accounts that are kept for the threshold
RATE, CONFIDENCE = 0.1, 0.95
UNCONSTRAINED = "unconstrained"
BESIDE = ("own features", "undefended GNN", "stacked votes")  # on generated payments, of which fraud.py has no rows
ADDED = (1, 3, 10)
FIRST_DATE = "date of the first payment"
SENT = ", only what it sent"  # of the threats "fresh" and "ledger", on Ethereum
FRAMING = "framing, "  # and the threat


def loaded(name: str, seed: int, root: str, times: bool) -> Any:
    """The data with the split of fraud.py."""
    if name == "generated payments":
        with tempfile.TemporaryDirectory() as folder:
            return relabelled(Bank(Path(folder), BANK, seed).data)
    data = ac.load_dataset(name, root=root, seed=seed)
    if name == "ethereum-phishing":
        set_masks(data, stratified_split(data.y, ETHEREUM_PARTS, seed))
        data = data if times else without_times(data)
    return data


def relabelled(data: Any) -> Any:
    """The same data, in which fraud is class 1 as in the other graphs."""
    fraud = data.class_names.index("fraud")
    data.y = torch.where(data.y < 0, data.y, (data.y == fraud).long())
    data.class_names = ["honest", "fraud"]
    return data


def rows_of(data: Any, part: str) -> np.ndarray:
    """Rows of the accounts of a part whose class is known."""
    inside = np.asarray(data[f"{part}_mask"]) & (np.asarray(data.y) >= 0)
    return np.flatnonzero(inside)


def scores_of(data: Any, threat: str, seed: int, asked: np.ndarray) -> tuple[np.ndarray, int]:
    """Scores of accounts without deletions and after the most that are asked about, and the number of features."""
    if threat != UNCONSTRAINED:
        defence = AppendOnly(threat=threat.removesuffix(SENT), deletions=max(DELETIONS), positive=1)
        if threat.endswith(SENT):
            program = defence.program_for(data)
            sent = tuple(each for each in program.features if only_sent(each))
            defence = replace(defence, program=program.but(features=sent, judged=()))
        model = ac.fit(None, data, defence, seed=seed)
        evidence = model.evidence(prepared(data).targets().graph, asked, "node_id", max(DELETIONS))
        return evidence.scores, len(model.program.features)
    graph = prepared(data).targets().graph
    program = AppendOnly(threat="fresh").program_for(data)
    accounts = rows_of(data, "train")
    positive = data.y.numpy()[accounts] == 1
    given = graph.edge_index.numpy(), edge_table(graph), own_table(graph)
    ledger = read_ledger(program, *given, accounts[positive])
    trained = train(
        ledger,
        program,
        None,
        Known(accounts, positive),
        settings=TreeSettings(),
        judge=JUDGE,
        ensembles=3,
        seed=seed,
    )
    table = Values(ledger, trained.program, as_trees(trained.judge)).table(asked)
    return trained.trees.score(table)[None], len(trained.program.features)


def first_dates(data: Any, asked: np.ndarray) -> np.ndarray:
    """Minus the date of the first payment of each account, which needs the dates of the edges."""
    at = data.edge_names.index("time")
    first = np.full(data.num_nodes, np.inf)
    is_row = data.edge_attr[:, 0].numpy() > 0
    for ends in data.edge_index.numpy():
        np.minimum.at(first, ends[is_row], data.edge_attr[:, at].numpy()[is_row])
    return first[asked]


def beside(data: Any, method: str, seed: int, asked: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """Scores of a method that is not append-only, and the recall that it certifies against added edges."""
    if method == "own features":
        from sklearn.ensemble import HistGradientBoostingClassifier

        train = rows_of(data, "train")
        trees = HistGradientBoostingClassifier(learning_rate=0.05, max_leaf_nodes=15, random_state=seed)
        trees.fit(data.x[train].numpy(), data.y[train].numpy())
        return trees.decision_function(data.x[asked].numpy()), {}
    if method == "undefended GNN":
        built = ac.build_model("rgcn", data, seed=seed, num_layers=2)
        trained = ac.fit(built, data, None, seed=seed, epochs=80, balance_classes=True)
        return logits(trained, data, asked), {}
    votes = ac.StackedVotes(edge_values=True)
    model = ac.fit("mlp", data, votes, seed=seed, balance_classes=True)
    counts = ac.certify(model, data, model.defence, targets=asked).counts
    point = ac.choose_threshold(model, data, model.defence, false_positive_rate=RATE, positive=1)
    test = ac.certify(point.model, data, point, targets=rows_of(data, "test"))
    found = (test.label == 1) & (test.truth == 1)
    held = {f"recall@{RATE} added {size}": found & test.holds_against(ac.Budget(add_edges=size)) for size in ADDED}
    lead = (counts[:, 1] - counts[:, 0]).astype(np.float64)
    return lead, {name: float(some.sum() / (test.truth == 1).sum()) for name, some in held.items()}


def measured(scores: np.ndarray, positive: np.ndarray, is_test: np.ndarray) -> dict[str, Any]:
    """AUC, and recall and honest accused at thresholds of the validation part, without and with deletions."""
    score = scores[0]
    bad, good = is_test & positive, is_test & ~positive
    honest = np.sort(score[good])[::-1]
    row: dict[str, Any] = {"auc": auc(score[bad], score[good]), "accounts": [int(bad.sum()), int(good.sum())]}
    for rate in RATES:
        cut = threshold(score[~is_test], positive[~is_test], rate)
        row[f"recall@{rate}"] = float((score[bad] > cut).mean())
        row[f"false@{rate}"] = float((score[good] > cut).mean())
        row[f"exact@{rate}"] = float((score[bad] > honest[int(rate * len(honest))]).mean())
        for number in DELETIONS if len(scores) > 1 else ():
            row[f"recall@{rate} deleted {number}"] = float((scores[number][bad] > cut).mean())
    return row


def run(name: str, seed: int, method: str, times: bool, root: str) -> dict[str, Any]:
    """One row."""
    begin = time.process_time()
    data = loaded(name, seed, root, times)
    asked = np.concatenate([rows_of(data, "val"), rows_of(data, "test")])
    is_test = np.asarray(data.test_mask)[asked]
    positive = np.asarray(data.y)[asked] == 1
    features = 1
    held: dict[str, float] = {}
    if method == FIRST_DATE:
        scores = first_dates(data, asked)[None]
    elif method in BESIDE:
        lead, held = beside(data, method, seed, asked)
        scores = lead[None]
    else:
        scores, features = scores_of(data, method, seed, asked)
    row = {"dataset": name, "seed": seed, "times": times, "method": method, "features": features}
    return (
        row | measured(scores, positive, is_test) | held | {"processor seconds": round(time.process_time() - begin, 1)}
    )


def guaranteed(name: str, seed: int, share: float, root: str) -> dict[str, Any]:
    """A row whose threshold is guaranteed: all other known accounts train, a share of the honest is kept."""
    data = loaded(name, seed, root, times=False)
    test = rows_of(data, "test")
    y = np.asarray(data.y)
    known = np.concatenate([rows_of(data, "train"), rows_of(data, "val")])
    honest = np.random.default_rng(seed).permutation(known[y[known] == 0])
    number = round(share * len(honest))
    kept, rest = honest[:number], np.concatenate([honest[number:], known[y[known] == 1]])
    data.train_mask[:] = False
    data.train_mask[rest] = True
    model = ac.fit(None, data, AppendOnly(threat="ledger", positive=1), seed=seed)
    graph = prepared(data).targets().graph
    allowed = most_flagged(number, RATE, CONFIDENCE)
    cut = np.sort(model.scores(graph, kept))[::-1][allowed]
    score = model.scores(graph, test)
    return {
        "dataset": name,
        "seed": seed,
        "times": False,
        "method": f"ledger, {share:g} kept",
        "kept": number,
        "may be flagged": allowed,
        "recall": float((score[y[test] == 1] > cut).mean()),
        "false": float((score[y[test] == 0] > cut).mean()),
    }


def price(name: str, seed: int, threat: str, root: str) -> dict[str, Any]:
    """A row with how many appended rows flag honest test accounts that are not flagged."""
    data = loaded(name, seed, root, times=False)
    defence = AppendOnly(threat=threat, positive=1)
    model = ac.fit(None, data, defence, seed=seed)
    point = ac.choose_threshold(model, data, defence, false_positive_rate=RATE)
    graph = prepared(data).targets().graph
    values, trees, cut = point.model.values(graph), as_trees(point.model.tables("tree_")), int(point.model.threshold)
    test = rows_of(data, "test")
    honest = test[np.asarray(data.y)[test] == 0]
    honest = honest[point.model.scores(graph, honest) <= cut]
    templates = templates_of(values)
    found = [AroundAccount(values, trees, int(account)).framing(templates, cut) for account in honest]
    numbers = [NUMBERS[-1] + 1 if each is None else each.number for each in found]
    return {
        "dataset": name,
        "seed": seed,
        "times": False,
        "method": FRAMING + threat,
        "accounts": len(numbers),
        "rows": numbers,
        "most tried": NUMBERS[-1],
    }


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What names a row."""
    return row["dataset"], row["seed"], row["method"], row["times"]


def jobs(datasets: Iterable[str], seeds: Iterable[int]) -> Iterable[tuple[str, int, str, bool]]:
    """Every row that is wanted, seed by seed; on Ethereum only the date of the first payment reads dates."""
    for seed in seeds:
        for name in datasets:
            threats = THREATS[:1] if name in FRESH_ONLY else THREATS
            others = BESIDE if name == "generated payments" else ()
            for method in (*threats, UNCONSTRAINED, *others):
                yield name, seed, method, name != "ethereum-phishing"
        for threat in THREATS[:2] if "ethereum-phishing" in datasets else ():
            yield "ethereum-phishing", seed, threat + SENT, False
            yield "ethereum-phishing", seed, FRAMING + threat, False
        for share in KEPT if "ethereum-phishing" in datasets else ():
            yield "ethereum-phishing", seed, f"ledger, {share:g} kept", False
        if "ethereum-phishing" in datasets:
            yield "ethereum-phishing", seed, FIRST_DATE, True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--methods", nargs="*", default=None)
    parser.add_argument("--out", type=Path, default=ROWS)
    args = parser.parse_args()
    done = {key_of(row) for row in read_rows(args.out)}
    for name, seed, method, times in jobs(args.datasets, args.seeds):
        if (name, seed, method, times) in done or (args.methods and method not in args.methods):
            continue
        if method.endswith("kept"):
            row = guaranteed(name, seed, float(method.split()[1]), args.root)
        elif method.startswith(FRAMING):
            row = price(name, seed, method.removeprefix(FRAMING), args.root)
        else:
            row = run(name, seed, method, times, args.root)
        append_row(args.out, row)
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)


if __name__ == "__main__":
    main()
