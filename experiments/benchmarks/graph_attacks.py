"""Random attacks on graph votes, on real graphs: none within the radius may change a label; the worst one beyond does.

    python -m experiments.benchmarks.graph_attacks --root .cache/data

Each attacked graph is built, and scored by the model itself. Votes are kept here whether they pay or not, so that
there is something to attack. A row is one model; rows that are there already are not computed again.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data

import agnncert as ac
from agnncert.attacks.graph_attack import GraphProblem
from agnncert.certificates.budget import Budget
from agnncert.graph_votes.choosing import Maker, Wanted
from agnncert.graph_votes.priors import Fitted
from agnncert.graph_votes.seen import Shape
from agnncert.graphs.targets import CanonicalData
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "graph_attacks.jsonl"
SEED = 70
MODELS = (("mutag", "structure", 2), ("proteins", "none", 2), ("proteins", "nodes", 1))
ATTACKS = 40_000  # of each model
AT_ONCE = 500


def with_votes(name: str, trusted: Any, size: int, root: str) -> tuple[Any, Any, Any]:
    """A model whose items vote, and the graphs."""
    graphs: Any = ac.load_dataset(name, root=root, seed=SEED)
    data = CanonicalData.of(graphs)
    rows = np.sort(np.concatenate([graphs.train.numpy(), graphs.val.numpy()]))
    chosen = data.targets(rows)
    truth: Any = chosen.truth
    fitted = Fitted(
        Shape.of(chosen.graph, len(rows)),
        chosen.graph.x.numpy(),
        truth,
        int(truth.max()) + 1,
        np.isin(rows, graphs.train.numpy()),
        SEED,
    )
    defence = ac.GraphVotes(size, trusted)
    maker = Maker(fitted, defence.to_json())
    maker.wanted = Wanted(trusted, size)
    prior = maker.priors[-1]
    trainer = maker._trainer(prior)
    tables = maker._trained(trainer, prior, np.arange(len(rows)))
    return maker.model_of(prior, tables, size), graphs, defence


def random_attack(rng: Any, graph: Data, trusted: str, changes: int, x: torch.Tensor) -> Data:
    """So many random changes of what is not trusted; features are those of other nodes, or odd ones."""
    made = Data(x=graph.x.clone(), edge_index=graph.edge_index)
    for _ in range(changes):
        kind = {"structure": "alter", "nodes": "edge"}.get(trusted) or rng.choice(["alter", "inject", "delete"])
        row = x[rng.integers(len(x))] if rng.random() < 0.8 else torch.randn(x.size(1)) * 3
        size = made.num_nodes
        if kind == "alter":
            made.x[rng.integers(size)] = row
        elif kind == "inject":
            near = torch.from_numpy(rng.integers(size, size=rng.integers(4)))
            new = torch.stack([near, torch.full_like(near, size)])
            made = Data(
                x=torch.cat([made.x, row[None]]), edge_index=torch.cat([made.edge_index, new, new.flip(0)], dim=1)
            )
        elif kind == "delete" and size > 1:
            kept = torch.ones(size, dtype=torch.bool)
            kept[rng.integers(size)] = False
            made = made.subgraph(kept)
        elif kind == "edge" and size > 1:
            u, v = rng.choice(size, 2, replace=False).tolist()
            src, dst = made.edge_index
            there = ((src == u) & (dst == v)) | ((src == v) & (dst == u))
            ends = torch.tensor([[u, v], [v, u]])
            changed = made.edge_index[:, ~there] if there.any() else torch.cat([made.edge_index, ends], dim=1)
            made = Data(x=made.x, edge_index=changed)
    return made


def labels_of(model: Any, graphs: list[Data]) -> Any:
    """The labels of graphs, by the model itself."""
    found = []
    for first in range(0, len(graphs), AT_ONCE):
        batch = Batch.from_data_list(graphs[first : first + AT_ONCE])
        found.append(model(batch.x, batch.edge_index, batch.batch).argmax(dim=1).numpy())
    return np.concatenate(found)


def row_of(name: str, trusted: str, size: int, root: str, attacks: int) -> dict[str, Any]:
    """Attacks one model."""
    begin = time.process_time()
    model, graphs, defence = with_votes(name, trusted, size, root)
    certificate = ac.certify(model, graphs, defence, graphs.test)
    radius, rng = certificate.radius, np.random.default_rng(SEED)
    places = np.flatnonzero((radius >= 1) & (radius < 1000))
    x = torch.cat([graphs[int(row)].x for row in graphs.train[:200]])
    attacked, expected = [], []
    for place in rng.choice(places, attacks):
        graph = graphs[int(certificate.row[place])]
        changes = int(rng.integers(1, min(int(radius[place]), 12) + 1))
        attacked.append(random_attack(rng, graph, trusted, changes, x))
        expected.append(certificate.label[place])
    flipped = int((labels_of(model, attacked) != np.array(expected)).sum())
    beyond = worst_beyond(GraphProblem(model, graphs, defence), certificate, places[radius[places] < 4], trusted)
    return {
        "dataset": name,
        "trusted": trusted,
        "size": size,
        "targets": len(places),
        "attacks": attacks,
        "flipped": flipped,
        **beyond,
        "processor_seconds": round(time.process_time() - begin, 1),
    }


def worst_beyond(problem: Any, certificate: Any, places: Any, trusted: str) -> dict[str, int]:
    """The worst attack within the radius, and with one change more, on each graph."""
    counts = {"worst_within": 0, "worst_within_flipped": 0, "worst_beyond": 0, "worst_beyond_flipped": 0}
    for place in places[:80].tolist():
        row, label = int(certificate.row[place]), int(certificate.label[place])
        for name, changes in (
            ("within", int(certificate.radius[place])),
            ("beyond", int(certificate.radius[place]) + 1),
        ):
            flipped = False
            for budget in budgets_of(trusted, changes):
                found = problem.worst_changes(row, budget, label)
                graphs = [change.apply(problem.data[row]) for change in found]
                flipped |= bool((labels_of(problem.model, graphs) != label).any())
            counts[f"worst_{name}"] += 1
            counts[f"worst_{name}_flipped"] += flipped
    return counts


def budgets_of(trusted: str, changes: int) -> list[Budget]:
    """Every way to spend so many changes."""
    if trusted == "structure":
        return [Budget(change_features=changes)]
    if trusted == "nodes":
        return [Budget(add_edges=k, delete_edges=changes - k) for k in range(changes + 1)]
    return [
        Budget(inject_nodes=a, delete_nodes=d, change_features=changes - a - d)
        for a in range(changes + 1)
        for d in range(changes + 1 - a)
    ]


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--out", type=Path, default=ROWS)
    parser.add_argument("--attacks", type=int, default=ATTACKS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = {(row["dataset"], row["trusted"]) for row in read_rows(options.out)}
    for name, trusted, size in MODELS:
        if (name, trusted) not in done:
            row = row_of(name, trusted, size, options.root, options.attacks)
            append_row(options.out, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
