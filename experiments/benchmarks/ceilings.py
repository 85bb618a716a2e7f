"""What can be certified at most, and controls that read no edges.

python -m experiments.benchmarks.ceilings [DATASET …] --root .cache/data

Graphs: the ceilings of ``agnncert_peers.ceilings`` on all graphs of a dataset. Types of nodes are read from the columns
with two values, 0 and another one; measured columns are left aside. Another ceiling is about structure without features.
Beside them the accuracy of a classifier of sums of node features, seeds 0 to 4. Nodes: the reference of votes that know
the classes of all neighbours, on the test nodes of seed 0, beside the cross-fitted models. Rows go to
experiments/results/ceilings.jsonl as they come; a run that is started again goes on where it stopped.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.graph_votes.seen import Shape
from agnncert.graphs.targets import CanonicalData
from agnncert.stacked.model import StackedModel
from agnncert.stacked.training import cross_fit
from agnncert_peers.ceilings import ceiling, type_counts, votes_reference
from agnncert_peers.control_rows import histogram_row
from agnncert_peers.runner import make_study
from agnncert_peers.threat import HISTOGRAM, Threat
from experiments.benchmarks.stacked import OWN
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "ceilings.jsonl"
SIZES = (0, 1, 2, 3, 5, 10)
GRAPHS = ("mutag", "aids", "proteins", "dd", "nci1")
BY_STRUCTURE = "structure, any features"
NODES = ("cora-ml", "amazon-c")
SEEDS = 5


def of_graphs(name: str, root: str) -> Iterator[dict[str, Any]]:
    """Ceilings of a dataset of graphs."""
    data = ac.load_dataset(name, root=root)
    y = np.array([int(graph.y) for graph in data])
    most = torch.stack([graph.x.amax(dim=0) for graph in data]).amax(dim=0)
    marks = torch.stack([((graph.x == 0) | (graph.x == most)).all(dim=0) for graph in data]).all(dim=0)
    counts = type_counts([Data(x=graph.x[:, marks]) for graph in data])  # columns with 0 and one other value
    if counts.shape[1] == 1:
        raise SystemExit(f"{name}: no column of the features marks a type of node.")
    number = counts.sum(axis=1, keepdims=True)
    for what, statistic, changes in (
        ("node types, any change of nodes", counts, "any"),
        ("node types, nodes injected or deleted", counts, "structure"),
        ("number of nodes", number, "structure"),
    ):
        yield {"dataset": name, "what": what, "possible": ceiling(statistic, y, SIZES, changes)}


def of_structure(name: str, root: str) -> dict[str, Any]:
    """The share of graphs that can be certified against any change of features, without telling apart structures that
    the refinement of Weisfeiler and Leman does not tell apart within five hops: the most frequent class of each."""
    data: Any = ac.load_dataset(name, root=root)
    chosen = CanonicalData.of(data).targets(np.arange(len(data)))
    shape = Shape.of(chosen.graph, len(data))
    colour = shape.colours[-1]
    begin = np.concatenate([[0], np.cumsum(shape.size)])
    classes: dict[bytes, Counter[int]] = {}
    for k, y in enumerate(np.asarray(chosen.truth).tolist()):
        key = np.sort(colour[begin[k] : begin[k + 1]]).tobytes()
        classes.setdefault(key, Counter())[y] += 1
    most = sum(max(counted.values()) for counted in classes.values())
    return {"dataset": name, "what": BY_STRUCTURE, "possible": [most / len(data)] * len(SIZES)}


def of_control(name: str, root: str, seeds: Iterable[int]) -> Iterator[dict[str, Any]]:
    """The accuracy of a classifier of sums of node features, which no edge can alter."""
    for seed in seeds:
        graphs = ac.load_dataset(name, root=root, seed=seed)
        found = histogram_row(make_study(graphs, seed=seed), Threat("edges"), (0,))
        chosen = found["settings"].removeprefix(f"{HISTOGRAM}, ")
        yield {"dataset": name, "what": HISTOGRAM, "seed": seed, "accuracy": found["accuracy"], "model": chosen}


def of_nodes(name: str, root: str) -> Iterator[dict[str, Any]]:
    """The reference of votes on a graph."""
    data, how = ac.load_dataset(name, root=root, seed=0), OWN[name]
    base = ac.build_model(
        "mlp", data, num_layers=2, hidden_channels=how["hidden"], dropout=how["dropout"], norm=how.get("norm")
    )
    given = {key: how[key] for key in ("lr", "weight_decay", "epochs")}
    own, _ = cross_fit(
        base,
        data,
        ac.StackedVotes(),
        lambda one, part, seed: ac.fit(one, part, None, seed=seed, patience=None, **given),
    )
    with torch.no_grad():
        logits = StackedModel(own, int(data.num_classes), 0, ac.StackedVotes()).own_logits(data.x)
    src, dst = data.edge_index
    votes = torch.zeros_like(logits).index_put((dst, data.y[src]), torch.ones(len(src)), accumulate=True)
    test = data.test_mask.numpy()
    known = [part.double().numpy()[test] for part in (logits, votes)]
    found = votes_reference(known[0], known[1], data.y.numpy()[test], SIZES)
    alone = float((known[0].argmax(axis=1) == data.y.numpy()[test]).mean())
    what = "true classes of all neighbours, reference"
    yield {"dataset": name, "what": what, "reference": found, "without edges": alone}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=[*GRAPHS, *NODES])
    parser.add_argument("--root", default=".cache/data")
    args = parser.parse_args()
    kept = list(read_rows(ROWS))
    for name in args.datasets:
        there = [row for row in kept if row["dataset"] == name]
        seeds = set(range(SEEDS)) - {row["seed"] for row in there if row["what"] == HISTOGRAM}
        rows = of_control(name, args.root, sorted(seeds)) if name in GRAPHS else iter(())
        if name in GRAPHS and not any(row["what"] == BY_STRUCTURE for row in there):
            rows = chain([of_structure(name, args.root)], rows)
        if not any(row["what"] not in (HISTOGRAM, BY_STRUCTURE) for row in there):
            rows = chain((of_nodes if name in NODES else of_graphs)(name, args.root), rows)
        for row in rows:
            append_row(ROWS, row)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
