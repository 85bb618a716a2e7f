"""Generated payments: the command line, the tutorial's Python, features alone and boosted trees, at one rate of alerts.

Each seed draws another bank, another split and another model. Recall is that of fraud among test accounts. Every score is
cut twice: where 2 % of the honest validation accounts are above it (what a team can do), and where 2 % of the honest test
accounts are (the same rate for all, which compares scores). Certified recall is what no attack changes that adds so many
partners to an account; nothing is proved about the others.

    OMP_NUM_THREADS=1 python -m experiments.benchmarks.payments [--accounts 6000] [--seeds 0 1 2]
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

import agnncert as ac
from agnncert.cli import main as agnncert
from agnncert.datasets.generated_payments import write_payments
from agnncert.proving.certificate import Certificate
from agnncert.stacked.evidence import StackedEvidence

RESULTS = Path(__file__).parent / "results"
RATE = 0.02
ADDED = (1, 2, 3)
COLUMNS = {
    "id": "account",
    "label": "class",
    "label_time": "known_since",
    "source": "payer",
    "target": "payee",
    "event_time": "paid_at",
    "event_key": "payment",
}
Scores = npt.NDArray[np.float64]
Row = dict[str, Any]
METHODS = {
    "command line": "`agnncert train bank --settings bank.toml`",
    "tutorial's Python": "`load_events`, then `StackedVotes(edge_values=True)`",
    "table of edges": "the same votes on `load_tables`: amounts summed, without direction, number, time and logarithm",
    "votes without values": "`StackedVotes()` on `load_events`: each partner votes by its own columns alone",
    "features alone": "boosted trees on the account's own columns",
    "boosted trees on payments": "boosted trees on own columns and aggregates of payments; nothing is proved",
}


class Bank:
    """A generated bank, and what is asked of every method."""

    def __init__(self, folder: Path, accounts: int, seed: int) -> None:
        self.folder = write_payments(folder / "bank", accounts=accounts, seed=seed)
        self.seed = seed
        self.data: Data = ac.load_events(self.folder, seed=seed, **COLUMNS)
        self.fraud = self.data.class_names.index("fraud")
        self.is_fraud = (self.data.y == self.fraud).numpy()
        self.is_known = (self.data.y >= 0).numpy()

    def measured(self, method: str, score: Scores, certified: dict[int, float] | None = None) -> Row:
        """Returns the row of a method."""
        test = self.data.test_mask.numpy() & self.is_known
        honest_test = score[test & ~self.is_fraud]
        fraud_test = score[test & self.is_fraud]
        threshold = cut_at(score[self.data.val_mask.numpy() & ~self.is_fraud], RATE)
        return {
            "seed": self.seed,
            "accounts": int(self.data.num_nodes),
            "events": int(self.data.num_events),
            "method": method,
            "recall": float((fraud_test > threshold).mean()),
            "honest_accused": float((honest_test > threshold).mean()),
            "recall_at_rate": float((fraud_test > cut_at(honest_test, RATE)).mean()),
            "auc": float(roc_auc_score(self.is_fraud[test], score[test])),
            "certified_recall": certified,
        }

    def of_model(self, method: str, model: Any) -> Row:
        """Returns the row of a model with a threshold, which is certified."""
        whole = ac.certify(model, self.data, model.defence)
        test = ac.certify(model, self.data, model.defence, targets=self.data.test_mask)
        is_fraud = test.truth == self.fraud
        found = test.label == self.fraud
        certified = {}
        for added in ADDED:
            holds = test.holds_against(ac.Budget(add_edges=added))
            certified[added] = float((found & holds)[is_fraud].mean())
        return self.measured(method, margins(whole, self.fraud), certified)

    def with_threshold(self, model: Any) -> Any:
        """Returns a model with the threshold for 2 % of the honest validation accounts."""
        chosen = ac.choose_threshold(model, self.data, model.defence, false_positive_rate=RATE, positive="fraud")
        return chosen.model


def cut_at(honest: Scores, rate: float) -> float:
    """Returns the score above which at most this share of honest accounts are."""
    return float(np.sort(honest)[::-1][int(rate * len(honest))])


def margins(certificate: Certificate, fraud: int) -> Scores:
    """Returns by how much the score of fraud is above the other one."""
    evidence = certificate.evidence
    assert isinstance(evidence, StackedEvidence)
    counts = evidence.counts.astype(np.float64)
    return np.asarray(counts[:, fraud] - counts[:, 1 - fraud])


def by_command(bank: Bank) -> Row:
    """Trains and certifies with commands, as the tutorial does."""
    columns = "".join(f'{name} = "{title}"\n' for name, title in COLUMNS.items())
    settings = bank.folder.parent / "bank.toml"
    settings.write_text(f"[train]\nseed = {bank.seed}\n\n[train.column]\n{columns}", encoding="utf-8")
    run = bank.folder.parent / "run"
    trained = agnncert(["train", str(bank.folder), "--settings", str(settings), "--no-references", "--out", str(run)])
    words = ["--set", f"false_positive_rate={RATE}", "--set", "positive=fraud", "--no-report"]
    if trained or agnncert(["certify", str(run), *words]):
        raise SystemExit("the commands failed")
    return bank.of_model("command line", ac.load_model(run / "certified.safetensors"))


def by_python(method: str, votes: ac.StackedVotes) -> Callable[[Bank], Row]:
    def measure(bank: Bank) -> Row:
        model = ac.fit("mlp", bank.data, votes, seed=bank.seed, balance_classes=True)
        return bank.of_model(method, bank.with_threshold(model))

    return measure


def table_of_edges(bank: Bank) -> Row:
    """Trains on a table of edges, which was the only way before there were tables of events."""
    import pandas as pd

    payments = pd.read_csv(bank.folder / "events.csv")
    known = pd.read_csv(bank.folder / "nodes.csv")
    is_listed = payments["payer"].isin(known["account"]) & payments["payee"].isin(known["account"])
    edges = bank.folder.parent / "edges.csv"
    payments.loc[is_listed, ["payer", "payee", "amount"]].to_csv(edges, index=False)
    data = ac.load_tables(
        nodes=bank.folder / "nodes.csv",
        edges=edges,
        id="account",
        label="class",
        source="payer",
        target="payee",
        features=["age", "channel", "country"],
        encode="auto",
        edge_features=["amount"],
        repeated="sum",
        seed=bank.seed,
    )
    assert isinstance(data, Data)
    assert torch.equal(data.test_mask, bank.data.test_mask[: data.num_nodes])
    model = ac.fit("mlp", data, ac.StackedVotes(edge_values=True), seed=bank.seed)
    score = np.zeros(bank.data.num_nodes)
    score[: data.num_nodes] = margins(ac.certify(model, data, model.defence), bank.fraud)
    return bank.measured("table of edges", score)


def features_alone(bank: Bank) -> Row:
    return bank.measured("features alone", boosted(bank, bank.data.x.numpy()))


def boosted_trees(bank: Bank) -> Row:
    table = np.hstack([bank.data.x.numpy(), aggregates(bank.data)])
    return bank.measured("boosted trees on payments", boosted(bank, table))


def boosted(bank: Bank, table: npt.NDArray[Any]) -> Scores:
    rows = bank.data.train_mask.numpy()
    trees = HistGradientBoostingClassifier(random_state=bank.seed).fit(table[rows], bank.is_fraud[rows])
    return np.asarray(trees.predict_proba(table)[:, 1], dtype=np.float64)


def aggregates(data: Data) -> npt.NDArray[np.float64]:
    """Returns number, means, maxima and minima of what an account's payments to and from each partner say."""
    values = data.edge_attr.numpy().astype(np.float64)
    account = data.edge_index[1].numpy()
    number = np.bincount(account, minlength=data.num_nodes)[:, None]
    sums = np.stack([np.bincount(account, weights=column, minlength=data.num_nodes) for column in values.T], axis=1)
    largest = np.full(sums.shape, -np.inf)
    smallest = np.full(sums.shape, np.inf)
    np.maximum.at(largest, account, values)
    np.minimum.at(smallest, account, values)
    table = np.hstack([number, sums, sums / np.maximum(number, 1), largest, smallest])
    return np.where(np.isfinite(table), table, np.nan)


STEPS: Sequence[Callable[[Bank], Row]] = (
    by_command,
    by_python("tutorial's Python", ac.StackedVotes(edge_values=True)),
    table_of_edges,
    by_python("votes without values", ac.StackedVotes()),
    features_alone,
    boosted_trees,
)


def page(rows: list[Row]) -> str:
    """Returns the table, means over seeds with half of the range."""
    seeds = sorted({row["seed"] for row in rows})
    accounts = sorted({row["accounts"] for row in rows})
    lines = [
        "# Generated payments",
        "",
        f"`python -m experiments.benchmarks.payments`: {min(accounts):,} to {max(accounts):,} accounts, seeds "
        f"{', '.join(map(str, seeds))}; means, ± half of the distance between the largest and the smallest. The",
        "accounts are generated: this compares methods, and says nothing about real fraud.",
        "",
        "| | recall at 2 % of the honest | recall, threshold from validation | honest accused | AUC | certified at 1 | 2 | 3 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        of_method = [row for row in rows if row["method"] == method]
        if not of_method:
            continue
        names = ("recall_at_rate", "recall", "honest_accused", "auc")
        cells = [spread([row[name] for row in of_method]) for name in names]
        for added in map(str, ADDED):
            known = [row["certified_recall"][added] for row in of_method if row["certified_recall"] is not None]
            cells.append(spread(known) if known else "–")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    lines += ["", *(f"* **{method}**: {words}." for method, words in METHODS.items()), ""]
    return "\n".join(lines)


def spread(values: Sequence[float]) -> str:
    """Returns a mean and half of the range, as text."""
    half = (max(values) - min(values)) / 2
    return f"{np.mean(values):.3f} ± {half:.3f}".replace("0.", ".")


def main() -> None:
    """Measures all methods and writes the result files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=6000)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS / "payments.json")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    rows: list[Row] = []
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as folder:
            bank = Bank(Path(folder), options.accounts, seed)
            for step in STEPS:
                row = json.loads(json.dumps(step(bank)))
                rows.append(row)
                print(row, flush=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        options.out.with_suffix(".md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
