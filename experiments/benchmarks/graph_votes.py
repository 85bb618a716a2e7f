"""Graph votes: what is certified if one half of a graph is out of the attacker's reach, and if nothing is.

    python -m experiments.benchmarks.graph_votes --root .cache/data

Five datasets, five splits that no design was chosen on. Each row is one model on one split: what it certifies of the
test graphs at each size, and what was compared on training and validation graphs before it was kept. Controls that
need no proof are rows too: the most frequent class, and counting nodes with the threshold that is best for each size.
Rows that are there already are not computed again.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.graph_votes.choosing import Maker, Wanted
from agnncert.graph_votes.model import GraphModel
from agnncert.graph_votes.priors import Fitted, priors
from agnncert.graph_votes.seen import Shape
from agnncert.graph_votes.training import certified
from agnncert.graphs.targets import CanonicalData
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "graph_votes.jsonl"
DATASETS = ("proteins", "aids", "nci1", "mutag", "dd")
SEEDS = (70, 71, 72, 73, 74)
SIZES = (0, 1, 2, 3, 5, 10, 20)
# What is trusted, and the number of changes that votes are made for: none for any number.
MODELS: tuple[tuple[str, int | None, str], ...] = (
    ("structure", None, "any"),
    ("nodes", None, "any"),
    ("none", 1, "structure"),
    ("none", 1, "any"),
    ("none", 3, "structure"),
    ("none", 10, "structure"),
    ("none", 3, "any"),
    ("nodes", 1, "any"),
    ("structure", 1, "any"),
)


def best_threshold(size: Any, y: Any, changes: int) -> tuple[int, int, int]:
    """The number of nodes from which on another class is named, so that most graphs are certified."""
    frequent = np.argsort(-np.bincount(y), kind="stable")[:2].tolist()
    best = (-1.0, 0, 0, 0)
    for below, above in (frequent, frequent[::-1]):
        for first in np.unique(size).tolist():
            right = (y == below) & (size + changes < first) | (y == above) & (size - changes >= first)
            best = max(best, (float(right.mean()), first, below, above))
    return best[1], best[2], best[3]


def controls(size: Any, y: Any, test_size: Any, test_y: Any) -> Iterator[dict[str, Any]]:
    """The most frequent class, and counting for each size: the share of test graphs that are right and stay so."""
    most = int(np.bincount(y).argmax())
    yield {"what": "majority", "certified": [float((test_y == most).mean())] * len(SIZES)}
    shares = []
    for changes in SIZES:
        first, below, above = best_threshold(size, y, changes)
        is_small = test_size + changes < first
        right = (test_y == below) & is_small | (test_y == above) & (test_size - changes >= first)
        shares.append(float(right.mean()))
    yield {"what": "counting nodes, for each size", "certified": shares}


def of_votes(maker: Maker) -> GraphModel:
    """The votes of nodes that a maker compared last, trained on all graphs that it knows, whether it kept them or not."""
    prior = priors(maker.fitted, "none", np.zeros((len(maker.fitted.y), 0), dtype=np.int64))[0]
    tables = maker._trained(maker._trainer(prior), prior, np.arange(len(maker.fitted.y)))
    return maker.model_of(prior, tables, maker.wanted.size)


def rows(name: str, seed: int, root: str, done: set[tuple[Any, ...]], models: Any) -> Iterator[dict[str, Any]]:
    """The rows of one dataset and split that are missing."""
    wanted = [model for model in models if (name, seed, *model) not in done]
    about = {"dataset": name, "seed": seed}
    if not wanted:
        return
    graphs: Any = ac.load_dataset(name, root=root, seed=seed)
    data = CanonicalData.of(graphs)
    known = np.sort(np.concatenate([graphs.train.numpy(), graphs.val.numpy()]))
    chosen, test = data.targets(known), data.targets(graphs.test.numpy())
    truth: Any = chosen.truth
    shape = Shape.of(chosen.graph, len(known))
    is_training = np.isin(known, graphs.train.numpy())
    fitted = Fitted(shape, chosen.graph.x.numpy(), truth, int(truth.max()) + 1, is_training, seed)
    if (name, seed, "majority") not in done:
        test_size = Shape.of(test.graph, len(test.rows)).size
        for row in controls(shape.size, truth, test_size, test.truth):
            yield {**about, **row}
    makers: dict[str, Maker] = {}
    for trusted, size, against in wanted:
        begin = time.process_time()
        if trusted not in makers:
            settings = {"size": size, "trusted": trusted, "against": against}
            makers[trusted] = Maker(fitted, settings)
        model, choice = makers[trusted].make(Wanted(trusted, size, against))
        trained = time.process_time() - begin
        begin = time.process_time()
        evidence = model.evidence(test.graph, None, len(test.rows), "row")
        of_test: Any = test.truth
        made = {
            kind: [float(certified(evidence, of_test, kind, number).mean()) for number in SIZES]
            for kind in (("structure", "any") if trusted == "none" else ("any",))
        }
        if trusted == "none" and choice.kept != "votes":  # would what was not kept have been more?
            evidence = of_votes(makers[trusted]).evidence(test.graph, None, len(test.rows), "row")
            made["votes"] = [float(certified(evidence, of_test, against, number).mean()) for number in SIZES]
        yield {
            **about,
            "what": "graph votes",
            "trusted": trusted,
            "size": size,
            "against": against,
            "kept": choice.kept,
            "on training and validation": choice.certified,
            "certified": made["any"],
            "certified_structure": made.get("structure"),
            "certified_by_votes_not_kept": made.get("votes"),
            "votes": int(np.count_nonzero(evidence.table)),
            "seconds_training": round(trained, 1),
            "seconds_certifying": round(time.process_time() - begin, 1),
        }


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row is about."""
    if row["what"] != "graph votes":
        return (row["dataset"], row["seed"], row["what"])
    return (row["dataset"], row["seed"], row["trusted"], row["size"], row["against"])


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--out", type=Path, default=ROWS)
    parser.add_argument("--models", type=int, default=len(MODELS), help="only the first of them")
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.datasets:
        for seed in options.seeds:
            done = {key_of(row) for row in read_rows(options.out)}
            for row in rows(name, seed, options.root, done, MODELS[: options.models]):
                append_row(options.out, row)
                print(row, flush=True)


if __name__ == "__main__":
    main()
