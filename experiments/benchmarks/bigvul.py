"""Big-Vul: models that vote on functions, what their certificates hold, and what needs no model at all.

    python -m experiments.benchmarks.bigvul --data .cache/data networks controls

Each row of ``experiments/results/bigvul.jsonl`` is one measurement on the test part of one protocol and seed. Rows that are there
already are not computed again, so the script can be stopped and started at any time. ``experiments.benchmarks.bigvul_page`` makes
the page from the rows.

Seconds are of processor time in one thread, because other work on the machine does not change these.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
import agnncert_code
from agnncert.training.rule_search import window
from agnncert_code.bigvul import load_big_vul
from agnncert_code.statement_fit import learn
from experiments.paper.rows import append_row, read_rows

PROTOCOLS = ("big-vul", "big-vul-matched")
SEEDS = 5
SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20)
GROUPS = (10, 30, 50, 70)
TRAINED_WITH = 30  # groups; one model votes with each number of groups
DESIGN, DESIGN_GROUPS = 3, (200,)  # changes that votes of a GCN are chosen for, and the numbers of groups tried
DESIGNS = (0, 1, 2, 3, 5)  # edits that votes of statements are made for
MODEL = {"hidden_channels": 32, "num_layers": 2, "readout": "sum", "dropout": 0.2}
FIT = {
    "balance_classes": False,
    "epochs": 6,
    "evaluate_every": 3,
    "lr": 0.005,
    "weight_decay": 1e-3,
    "clip": 1.0,
    "groups_per_step": 5,
}

Row = dict[str, Any]


def curves(cert: Any, y: np.ndarray[Any, Any]) -> Row:
    """Certified accuracy over the size, and over edited statements of each kind and of any kind."""
    right = cert.label == y
    found: Row = {"accuracy": float(right.mean()), "certified": shares(right & (cert.radius >= n) for n in SIZES)}
    for kind in ("inserted", "deleted", "replaced"):
        found[kind] = shares(right & cert.holds_against(agnncert_code.edits(**{kind: n})) for n in SIZES)
    return found


def shares(marks: Iterator[Any]) -> list[float]:
    """Share of each array that is true."""
    return [round(float(np.mean(mark)), 5) for mark in marks]


def networks(data: Any, seed: int) -> Iterator[Row]:
    """A GCN by itself, and with the paper's two divisions at its numbers of groups and with a designed vote."""
    y = data.y.numpy()[data.test.numpy()]
    model, seconds = trained(data, None, seed)
    with torch.no_grad():
        guess = np.array([int(model(g.x, g.edge_index, g.x.new_zeros(len(g.x), dtype=torch.long)).argmax())
                          for g in (data[int(k)] for k in data.test)])  # fmt: skip
    yield {"method": "undefended", "accuracy": float((guess == y).mean()), **seconds}
    for letter, kind in (("E", ac.EdgeCentric), ("N", ac.NodeCentric)):
        model, seconds = trained(data, kind(TRAINED_WITH), seed)
        for number in GROUPS:
            begin = time.process_time()
            cert = ac.certify(model, data, kind(number), targets=data.test)
            spent = time.process_time() - begin
            yield {"method": f"{letter}{number}", **curves(cert, y), **seconds, "certify_seconds": spent}
        choice = ac.choose_voting_rule(model, data, kind(GROUPS[-1]), DESIGN, candidates=DESIGN_GROUPS)
        cert = ac.certify(choice.model, data, choice.division, targets=data.test, voting_rule=choice.voting_rule)
        yield {"method": f"{letter} designed", "chosen": choice.best.name, "division": str(choice.division),
               "vote": choice.voting_rule.to_json(), **curves(cert, y)}  # fmt: skip


def trained(data: Any, division: Any, seed: int) -> tuple[torch.nn.Module, Row]:
    """A GCN, and what its training took."""
    begin = time.process_time()
    how = {name: value for name, value in FIT.items() if division is not None or name != "groups_per_step"}
    model = ac.fit(ac.build_model("gcn", data, seed=seed, **MODEL), data, division, seed=seed, **how)  # type: ignore[arg-type]
    record: Any = model.training_record
    seconds = time.process_time() - begin
    return model, {"train_seconds": seconds, "epoch_seconds": seconds / record["epochs_run"], "val": record["score"]}


def controls(data: Any, seed: int) -> Iterator[Row]:
    """Answers that prove nothing (tokens, length), and the two that are certified without a model."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from agnncert_code.features import split

    texts = [[token for name in graph.node_id for token in split(name.split(" ", 1)[1])] for graph in data]
    y = data.y.numpy()
    fit, test = np.concatenate([data.train.numpy(), data.val.numpy()]), data.test.numpy()
    sizes = np.log1p([[graph.num_nodes, len(text)] for graph, text in zip(data, texts, strict=True)])
    bags = {
        "tokens": make_pipeline(CountVectorizer(analyzer=list, binary=True),
                                LogisticRegression(C=0.03, solver="liblinear")),
        "tf-idf": make_pipeline(TfidfVectorizer(analyzer=list, sublinear_tf=True), LogisticRegression(C=3, solver="liblinear")),
    }  # fmt: skip
    for name, bag in bags.items():
        bag.fit([texts[k] for k in fit], y[fit])
        yield {"method": name, "accuracy": float((bag.predict([texts[k] for k in test]) == y[test]).mean())}
    for name, columns in (("length", [1]), ("statements", [0])):
        line = make_pipeline(StandardScaler(), LogisticRegression()).fit(sizes[fit][:, columns], y[fit])
        yield {"method": name, "accuracy": float((line.predict(sizes[test][:, columns]) == y[test]).mean())}
    # The commonest class among as many of each is the first one, whatever an attacker does.
    majority = float((y[test] == 0).mean())
    yield {"method": "majority", "accuracy": majority, "certified": [majority] * len(SIZES)}
    yield {"method": "size only", **by_size([len(data[int(k)].x) for k in fit], y[fit], sizes_of(data, test), y[test])}


def sizes_of(data: Any, rows: Any) -> list[int]:
    """Number of statements."""
    return [len(data[int(k)].x) for k in rows]


def by_size(before: list[int], truth: Any, after: list[int], y: Any) -> Row:
    """More statements than a number: vulnerable. One edit adds or removes one; the number is chosen for a size."""

    def marks(counts: Any, labels: Any, limit: int, size: int) -> Any:
        return np.where(labels == 1, counts - size >= limit, counts + size < limit)

    known, seen = np.array(before), np.array(after)
    found: Row = {}
    for size in (0, DESIGN):
        limit = max(np.unique(known), key=lambda n: np.mean([marks(known, truth, n, s).mean() for s in window(size)]))
        name = "certified" if size == 0 else "designed"
        found[name] = shares(marks(seen, y, limit, n) for n in SIZES)
        found[f"limit_{name}"] = int(limit)
    return {"accuracy": found["certified"][0], **found}


def statements(data: Any, seed: int) -> Iterator[Row]:
    """One vote per statement, by weights of words, with limits and a prior for several numbers of edits."""
    y = data.y.numpy()[data.test.numpy()]
    begin = time.process_time()
    learnt = learn(data, seed)
    took = time.process_time() - begin
    for size in DESIGNS:
        begin = time.process_time()
        found = learnt.for_size(size)
        trained = time.process_time()
        cert = ac.certify(found.model, data, found.division, targets=data.test, voting_rule=found.voting_rule)
        ended = time.process_time()
        yield {"method": f"statements {size}", "held_out": [found.accuracy, found.certified_accuracy],
               "shares": found.shares, "vote": found.voting_rule.to_json(), **curves(cert, y),
               "train_seconds": took + trained - begin, "certify_seconds": ended - trained}  # fmt: skip


STAGES: dict[str, tuple[Callable[[Any, int], Iterator[Row]], Any]] = {
    "networks": (networks, agnncert_code.features),
    "controls": (controls, agnncert_code.pieces),
    "statements": (statements, agnncert_code.pieces),
}


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("stages", nargs="*", default=list(STAGES))
    parser.add_argument("--data", default=".cache/data", type=Path)
    parser.add_argument("--out", default="experiments/results/bigvul.jsonl", type=Path)
    parser.add_argument("--protocols", nargs="*", default=PROTOCOLS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = {(row["stage"], row["protocol"], row["seed"]) for row in read_rows(options.out)}
    for seed in range(SEEDS):
        for protocol in options.protocols:
            for stage in options.stages:
                if (stage, protocol, seed) in done:
                    continue
                compute, embed = STAGES[stage]
                data = load_big_vul(options.data, seed, protocol == "big-vul-matched", embed=embed)
                about = {"stage": stage, "protocol": protocol, "seed": seed}
                rows = [{**about, **row} for row in compute(data, seed)]
                for row in rows:
                    append_row(options.out, row)
                    print(
                        stage, protocol, seed, row["method"], f"{row['accuracy']:.3f}", row.get("certified"), flush=True
                    )


if __name__ == "__main__":
    main()
