"""Attackers from outside against an undefended GCN and, transferred, against defences, at equal budgets.

python -m experiments.benchmarks.outside_attacks cora-ml --root .cache/data --seeds 0 --targets 50
python -m experiments.benchmarks.outside_attacks cora-ml --victim my_package.my_module:make

Each attacker adds 1, 2, 3 or 5 edges (``--sizes``) for each target. It knows the undefended GCN. What it finds is also tried on the
defences (*transferred*), and ``ac.attack`` attacks these by itself (*adaptive*). ``--victim`` names a function that is
given the data and a seed and returns a trained model and its defence: your own stands beside the others.

- ``FGA`` (Chen et al., 2018): adds, one after the other, the edge at the target with the largest gradient.
- ``PRBCD`` (Geisler et al., 2021), as PyG has it: any edges of the graph, many candidates at a time.
- ``ac.attack``, with its kinds "greedy", "gradient" and "random".
- ``single edits on the label``: what ``ac.attack`` once was on a model without a defence, which it took for one hard
  vote. Nearly no single edge changes that.

DeepRobust and GreatX are not among them: both need ``torch_scatter``, a compiled extension that they do not install.

Rows go to experiments/benchmarks/results/outside_attacks.jsonl as they come. A run that is started again goes on.
"""

import argparse
import importlib
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

import agnncert as ac
from agnncert import attacks
from agnncert.attacks.api import holds_each
from agnncert.training.settings import tuned_arguments
from experiments.paper.rows import append_row, read_rows

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # "contrib contains experimental code"
    from torch_geometric.contrib.nn import PRBCDAttack

ROWS = Path(__file__).with_name("results") / "outside_attacks.jsonl"
SIZES = (1, 2, 3, 5)
BLOCK, EPOCHS = 20_000, 40  # of PRBCD: pairs in a block, steps
Attacker = Callable[[torch.nn.Module, Data, int, int], ac.Perturbation]  # model, data, row, number of edges


def fga(model: torch.nn.Module, data: Data, row: int, number: int) -> ac.Perturbation:
    """Adds the edges with the largest gradient of the loss, one after the other."""
    others = torch.tensor([u for u in range(int(data.num_nodes or 0)) if u != row])
    pairs = torch.stack([torch.full_like(others, row), others])
    near = set(data.edge_index[:, data.edge_index[0] == row][1].tolist())
    label = model(data.x, data.edge_index).argmax(dim=1)[row]
    added: list[int] = []
    for _ in range(number):
        new = torch.tensor([[row, u] for u in added], dtype=torch.int64).view(-1, 2).t()
        fixed = torch.cat([data.edge_index, new, new.flip(0)], dim=1)
        weight = torch.zeros(len(others), requires_grad=True)
        edges = torch.cat([fixed, pairs, pairs.flip(0)], dim=1)
        weights = torch.cat([torch.ones(fixed.size(1)), weight, weight])
        loss = torch.nn.functional.cross_entropy(model(data.x, edges, edge_weight=weights)[row : row + 1], label[None])
        (gradient,) = torch.autograd.grad(loss, weight)
        gradient[[k for k, u in enumerate(others.tolist()) if u in near or u in added]] = -torch.inf
        added.append(int(others[gradient.argmax()]))
    return ac.Perturbation(add_edges=[(row, u) for u in added])


def prbcd(model: torch.nn.Module, data: Data, row: int, number: int) -> ac.Perturbation:
    """PyG's PRBCD on one node; of what it flips, edges that are there already count as deleted."""
    torch.manual_seed(row)
    attack = PRBCDAttack(model, block_size=BLOCK, epochs=EPOCHS, epochs_resampling=EPOCHS * 3 // 4, log=False)
    labels = model(data.x, data.edge_index).argmax(dim=1)
    _, flipped = attack.attack(data.x, data.edge_index, labels, budget=number, idx_attack=[row])
    joined = set(map(tuple, data.edge_index.t().tolist()))
    pairs = [tuple(pair) for pair in flipped.t().tolist()]
    return ac.Perturbation(
        add_edges=[pair for pair in pairs if pair not in joined],
        delete_edges=[pair for pair in pairs if pair in joined],
    )


def ours(kind: str, defence: Any = None) -> Attacker:
    """``ac.attack`` of one kind."""

    def attacker(model: torch.nn.Module, data: Data, row: int, number: int) -> ac.Perturbation:
        budget = ac.Budget(add_edges=number)
        report = ac.attack(model, data, defence or ac.Undefended(), budget=budget, kind=kind, targets=[row])
        return report.results[0].perturbation

    return attacker


def on_the_label(model: torch.nn.Module, data: Data, row: int, number: int) -> ac.Perturbation:
    """Single edits on the one hard vote of a division into one group."""
    problem = attacks.VoteProblem(model, data, ac.EdgeCentric(1))
    return attacks.greedy(problem, [row], ac.Budget(add_edges=number))[0].perturbation


BEFORE = "single edits on the label"
ATTACKERS: dict[str, Attacker] = {
    "ac.attack greedy": ours("greedy"), "FGA": fga, "ac.attack gradient": ours("gradient"),
    BEFORE: on_the_label, "ac.attack random": ours("random"), "PRBCD of PyG": prbcd,
}  # fmt: skip


def undefended(data: Data, name: str, seed: int) -> torch.nn.Module:
    """Trains the GCN that attackers know."""
    model_args, fit_args = tuned_arguments(name, "node")
    settings = {**fit_args, "epochs": 100, "lr": 0.01, "evaluate_every": 5, "patience": None}
    return ac.fit(ac.build_model("gcn", data, seed=seed, **model_args), data, None, seed=seed, **settings)


def stacked(data: Data, name: str, seed: int) -> tuple[Any, Any]:
    """Stacked votes."""
    build, fit = tuned_arguments(name, "node", "mlp", defence="stacked")
    model = ac.fit(ac.build_model("mlp", data, **build), data, ac.StackedVotes(size=1), **fit, seed=seed)
    return model, model.defence


def per_neighbour(data: Data, name: str, seed: int) -> tuple[Any, Any]:
    """One vote for each neighbour."""
    model_args, fit_args = tuned_arguments(name, "node")
    model = ac.build_model("gcn", data, seed=seed, **model_args)
    return ac.fit(model, data, ac.PerNeighbour(), **fit_args, seed=seed), ac.PerNeighbour()


VICTIMS: dict[str, Any] = {"stacked votes": stacked, "per neighbour": per_neighbour}


def victim(named: str) -> Any:
    """Returns the function that is named as ``package.module:function``, called as the ones above."""
    module, function = named.split(":")
    make = getattr(importlib.import_module(module), function)
    return lambda data, name, seed: make(data, seed)


def run(
    name: str, seed: int, root: str, number: int, victims: dict[str, Any], attackers: list[str], sizes: Sequence[int]
) -> None:
    """Makes the rows of a dataset and seed that are missing."""
    done = {row["key"] for row in read_rows(ROWS)}
    data = ac.load_dataset(name, root=root, seed=seed)
    data.node_id = torch.arange(data.num_nodes)
    rows = data.test_mask.nonzero().view(-1)
    rows = rows[torch.from_numpy(np.random.default_rng(seed).permutation(len(rows))[:number])]
    gcn = undefended(data, name, seed)
    defended = {word: make(data, name, seed) for word, make in victims.items()}
    certificates = {word: ac.certify(model, data, defence, rows) for word, (model, defence) in defended.items()}
    for attacker in attackers:
        for size in sizes:
            key = json.dumps([name, seed, attacker, size, sorted(victims)])
            if key in done:
                continue
            begin = time.process_time()
            changes = [ATTACKERS[attacker](gcn, data, row, size) for row in rows.tolist()]
            seconds = (time.process_time() - begin) / len(rows)
            found = {"undefended gcn": flipped(gcn, data, ac.Undefended(), rows, changes)}
            row: dict[str, Any] = {"key": key, "dataset": name, "seed": seed, "attacker": attacker, "size": size}
            for word, (model, defence) in defended.items():
                changed = flipped(model, data, defence, rows, changes)
                costs = [change.cost_at(target) for change, target in zip(changes, rows.tolist(), strict=True)]
                holds = holds_each(certificates[word], [cost for cost in costs if cost is not None])
                row[f"{word}, certified"] = int(holds.sum())
                row[f"{word}, violations"] = int((holds & changed).sum())
                found[word] = changed
            row |= {"targets": len(rows), "seconds per target": round(seconds, 3)}
            row["flipped"] = {word: int(changed.sum()) for word, changed in found.items()}
            append_row(ROWS, row)
            print(row, flush=True)
    for word, (model, defence) in defended.items():
        for size in sizes:
            adaptive(name, seed, word, size, (model, defence), data, rows, certificates[word], done)


def adaptive(
    name: str,
    seed: int,
    word: str,
    size: int,
    trained: Any,
    data: Data,
    rows: Tensor,
    certificate: ac.Certificate,
    done: set[str],
) -> None:
    """Attacks a defence by itself, beside what is certified."""
    key = json.dumps([name, seed, f"adaptive on {word}", size])
    if key in done:
        return
    model, defence = trained
    begin = time.process_time()
    report = ac.attack(model, data, defence, budget=ac.Budget(add_edges=size), targets=rows, certificate=certificate)
    row = {
        "key": key, "dataset": name, "seed": seed, "attacker": f"adaptive on {word}", "size": size,
        "targets": len(rows), "seconds per target": round((time.process_time() - begin) / len(rows), 3),
        "flipped": {word: int(report.succeeded.sum())}, f"{word}, certified": int(report.certified.sum()),
        f"{word}, violations": len(report.violations),
    }  # fmt: skip
    append_row(ROWS, row)
    print(row, flush=True)


def flipped(model: Any, data: Data, defence: Any, rows: Tensor, changes: list[ac.Perturbation]) -> Any:
    """Returns which targets change their label, each in its own attacked graph."""
    before = ac.labels_of(model, data, defence, rows)
    after = [
        ac.labels_of(model, change.apply(data), defence, [row])[0]
        for row, change in zip(rows.tolist(), changes, strict=True)
    ]
    return np.array(after) != before


def main() -> None:
    """Makes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--targets", type=int, default=50)
    parser.add_argument("--attackers", nargs="+", default=list(ATTACKERS), choices=list(ATTACKERS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of edges")
    parser.add_argument("--victim", help="package.module:function(data, seed) that returns a model and its defence")
    given = parser.parse_args()
    torch.set_num_threads(1)
    victims = VICTIMS | ({given.victim: victim(given.victim)} if given.victim else {})
    for name in given.datasets:
        for seed in given.seeds:
            run(name, seed, given.root, given.targets, victims, given.attackers, given.sizes)


if __name__ == "__main__":
    main()
