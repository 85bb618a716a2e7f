"""Whether a guaranteed rate holds over splits, and how soon the monitor sees that it holds no more.

    python -m experiments.benchmarks.thresholds                  # rows to results/thresholds.jsonl

Scores are computed once for all honest accounts that training has not seen. Then 2,000 times others of
them are kept for the threshold, and the rate is the share of all of them that the threshold flags.
"one too many" is a planted mistake: the threshold allows one flag more than the binomial does.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import agnncert as ac
from agnncert.datasets.threshold_part import keep_for_threshold
from agnncert.divided.choose_rule import _table
from agnncert.graphs.targets import CanonicalData
from agnncert.monitoring import Monitor
from agnncert.proving.guaranteed_rate import most_flagged
from agnncert.training.rule_search import alert_leads

RESULTS = Path(__file__).parent / "results" / "thresholds.jsonl"
SPLITS = 2000
SEED = 97
CONFIDENCE = 0.95
KEPT = {0.1: (29, 46, 300), 0.05: (59, 93, 600), 0.01: (299, 473)}
TRUE_RATES = (0.05, 0.1, 0.125, 0.15, 0.2, 0.3)
CASES = 2000


def scores_of(name: str, root: str) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Scores of the honest accounts of a dataset that were in no part of training, by defence."""
    data = keep_for_threshold(ac.load_dataset(name, root=root), 0.5, positive=1)
    rows = np.flatnonzero(((data.threshold_mask | data.test_mask) & (data.y == 0)).numpy())
    model = ac.build_model("sage", data, num_layers=1, dropout=0.0, hidden_channels=16)
    model = ac.fit(model, data, ac.PerNeighbour(), epochs=30, lr=0.05, balance_classes=True, evaluate_every=10)
    table = _table(model, CanonicalData.of(data), ac.PerNeighbour(), rows, "any", "accuracy")
    votes = -alert_leads(table, "abstain", 1).astype(float)  # whole numbers, with many ties
    stacked = ac.fit("mlp", data, ac.StackedVotes(folds=2, epochs=30), epochs=30)
    scores = stacked.defence.scores(stacked, data, rows)
    return {"per neighbour": votes, "stacked votes": (scores[:, 1] - scores[:, 0]).astype(float)}


def guarantees(name: str, root: str) -> Iterator[dict[str, Any]]:
    """Rows about the guarantee: in which share of the splits the rate was exceeded."""
    for defence, scores in scores_of(name, root).items():
        for rate, numbers in KEPT.items():
            for kept in numbers:
                for extra in (0, 1):
                    yield {
                        "what": "guarantee", "data": name, "defence": defence, "accounts": len(scores),
                        "rate": rate, "confidence": CONFIDENCE, "kept": kept, "splits": SPLITS, "seed": SEED,
                        "one too many": bool(extra), **violations(scores, rate, kept, extra),
                    }  # fmt: skip


def violations(scores: Any, rate: float, kept: int, extra: int) -> dict[str, float]:
    """In which share of the splits more than the rate is flagged, and how much is flagged on average."""
    random = np.random.default_rng(SEED)
    allowed = most_flagged(kept, rate, CONFIDENCE) + extra
    flagged = np.empty(SPLITS)
    for split in range(SPLITS):
        mine = np.sort(random.choice(scores, kept, replace=False))
        flagged[split] = (scores > mine[kept - 1 - allowed]).mean()
    return {
        "allowed": allowed,
        "violated": float((flagged > rate).mean()),
        "flagged": round(float(flagged.mean()), 5),
    }


def monitored() -> Iterator[dict[str, Any]]:
    """Rows about the monitor: how often there is an alarm within 2,000 cases, and at which case."""
    for true_rate in TRUE_RATES:
        random = np.random.default_rng(SEED)
        alarms = []
        for _ in range(1000):
            watched = Monitor(0.1)
            for hit in random.random(CASES) < true_rate:
                if watched.note(hit):
                    break
            alarms.append(watched.alarm_at)
        found = sorted(case for case in alarms if case is not None)
        yield {
            "what": "monitor", "rate": 0.1, "true rate": true_rate, "cases": CASES, "runs": len(alarms),
            "seed": SEED, "alarms": len(found) / len(alarms),
            "median delay": found[len(alarms) // 2] if len(found) > len(alarms) // 2 else None,
        }  # fmt: skip


def main() -> None:
    """Writes all rows anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".cache/data")
    wanted = parser.parse_args()
    with RESULTS.open("w", encoding="utf-8") as file:
        for rows in (monitored(), guarantees("accounts-generated", wanted.root), guarantees("tolokers", wanted.root)):
            for row in rows:
                file.write(json.dumps(row) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
