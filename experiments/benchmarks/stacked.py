"""Stacked votes on real graphs: certified accuracy of test nodes by size, beside the same models without edges.

python -m experiments.benchmarks.stacked [DATASET …] --root .cache/data --seeds 0 1 2 3 4

Rows go to experiments/results/stacked.jsonl as they come; a run that is started again goes on where it stopped, and
``--page`` prints the tables. Test labels are read after everything is chosen.

``--few cora-ml --seeds 200 201 202 203 204`` is for 20 labels per class (``load_dataset(…, split="20-per-class")``);
these rows go to experiments/results/stacked_few.jsonl.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.datasets.splits import set_masks, stratified_split
from agnncert.stacked.training import fit_stacked
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "stacked.jsonl"
FEW_ROWS, FEW = ROWS.with_name("stacked_few.jsonl"), "20-per-class"
SIZES = (0, 1, 2, 3, 5, 10)
# Settings of the models without edges; chosen by accuracy on validation nodes in a study before this one.
OWN: dict[str, dict[str, Any]] = {
    "cora-ml": {"hidden": 64, "dropout": 0.8, "weight_decay": 5e-3, "lr": 0.01, "epochs": 150},
    "citeseer": {"hidden": 64, "dropout": 0.8, "weight_decay": 1e-2, "lr": 0.01, "epochs": 150},
    "pubmed": {"hidden": 64, "dropout": 0.5, "weight_decay": 5e-4, "lr": 0.01, "epochs": 80},
    "amazon-c": {"hidden": 128, "dropout": 0.5, "weight_decay": 1e-4, "lr": 0.005, "epochs": 100, "norm": "layer_norm"},
}
# Better ones, by out-of-fold accuracy on the split of seed 100: columns of the features get mean 0 and deviation 1.
SCALED: dict[str, dict[str, Any]] = {
    "amazon-c": {"hidden": 128, "dropout": 0.5, "weight_decay": 5e-4, "lr": 0.005, "epochs": 60, "scale": "standard"}
}
STANDARD = ", standardised features"
DESIGNS = {
    "cora-ml": [ac.StackedVotes(size=1), ac.StackedVotes(size=1, levels=2), ac.StackedVotes(size=2, levels=2)],
    "citeseer": [ac.StackedVotes(size=1), ac.StackedVotes(size=1, levels=2)],
    "pubmed": [ac.StackedVotes(size=1), ac.StackedVotes(size=1, levels=2)],
    "amazon-c": [ac.StackedVotes(size=size) for size in (1, 2, 3, 5)] + [ac.StackedVotes(size=3, gated=True)],
}
# Addresses have no features of their own. Settings by the validation nodes of splits with seeds 100 to 104.
ETHEREUM = ac.StackedVotes(size=3, edge_values=True, combine="mean", weight_decay=1e-4, epochs=400)
ETHEREUM_PARTS = (0.4, 0.15, 0.45)  # training, validation and test nodes
TRUSTED = (0.0, 0.5, 0.8, 1.0)


def curves(certificate: ac.Certificate) -> dict[str, list[float]]:
    """Certified accuracy by size: edges and nodes that come or go, edges alone, added edges alone, any change."""
    correct = certificate.label == certificate.truth
    edges = [certificate.holds_against(ac.Budget(add_edges=size)) for size in SIZES]
    either = [  # of edges that come or go each mix is asked for
        np.all(
            [certificate.holds_against(ac.Budget(add_edges=k, delete_edges=size - k)) for k in range(size + 1)], axis=0
        )
        for size in SIZES
    ]
    return {
        "structure": [float((correct & (certificate.structure_radius >= size)).mean()) for size in SIZES],
        "edges": [float((correct & held).mean()) for held in either],
        "added edges": [float((correct & held).mean()) for held in edges],
        "any": [float((correct & (certificate.radius >= size)).mean()) for size in SIZES],
    }


def run(name: str, seed: int, root: str, done: set[str], standard: bool = False, few: bool = False) -> None:
    """All rows of a dataset and seed that are missing.

    ``standard``: those with standardised features. ``few``: those with 20 labels per class, one level, made for 1.
    """
    data = ac.load_dataset(name, root=root, seed=seed, split=FEW if few else None)
    how = SCALED[name] if standard else OWN[name]
    sizes = {"num_layers": 2, "hidden_channels": how["hidden"], "dropout": how["dropout"]}
    base = ac.build_model("mlp", data, **sizes, norm=how.get("norm"), scale=how.get("scale"))
    trained: dict[int, torch.nn.Module] = {}
    seconds = {"own": 0.0}

    def fit_one(model: torch.nn.Module, part: Any, number: int) -> torch.nn.Module:
        if number not in trained:
            begin = time.perf_counter()
            given = {key: how[key] for key in ("lr", "weight_decay", "epochs")}
            trained[number] = ac.fit(model, part, None, seed=number, patience=None, **given)
            seconds["own"] += time.perf_counter() - begin
        return trained[number]

    designs = [(design, protocol, None) for design in DESIGNS[name] for protocol in ("inductive", "transductive")]
    if few:
        designs = [(ac.StackedVotes(size=1), "inductive", None)]
    elif standard:
        designs = [(ac.StackedVotes(size=size), "inductive", None) for size in (5, 1, 3, 2)]
    elif name in ("cora-ml", "amazon-c"):
        designs += [(ac.StackedVotes(size=1, trusted=0), "inductive", share) for share in TRUSTED]
    for design, protocol, share in designs:
        rule = f"{design}{STANDARD if standard else ''}{f', {FEW}' if few else ''}"
        key = json.dumps([name, seed, rule, design.size, protocol, share])
        if key in done:
            continue
        graph = data if share is None else with_trusted(data, share, seed)
        begin = time.perf_counter()
        model = fit_stacked(base, graph, design, fit_one, seed=seed, inductive=protocol == "inductive")
        fitted = time.perf_counter()
        certificate = ac.certify(model, graph, model.defence, graph.test_mask)
        certified = time.perf_counter()
        with torch.no_grad():
            own = (model.own_logits(graph.x).argmax(dim=1) == graph.y)[graph.test_mask].double().mean()
            forward = time.perf_counter()
            model(graph.x, graph.edge_index, edge_attr=graph.edge_attr)
            forward = time.perf_counter() - forward
        row = {
            "key": key, "dataset": name, "seed": seed, "rule": rule, "size": design.size, "protocol": protocol,
            "trusted": share, "without edges": float(own), "uses edges": bool(model.use_votes),
            "validation": model.training_record["score"], **curves(certificate),
            "seconds": {"models without edges": seconds["own"], "votes": fitted - begin, "certify": certified - fitted,
                        "forward": forward},
        }  # fmt: skip
        append_row(FEW_ROWS if few else ROWS, row)
        print(name, seed, rule, design.size, protocol, share, [round(v, 3) for v in row["structure"]], flush=True)


def run_ethereum(seed: int, root: str, done: set[str]) -> None:
    """Ethereum phishing: votes read amounts, numbers of transactions, directions and, in one of two rows, times.

    With the 30 % of test addresses that the source marks, and with a split of its own for each seed.
    """
    for split, times in (("own", True), ("own", False), ("source", True), ("source", False)):
        key = json.dumps(["ethereum-phishing", seed, str(ETHEREUM), ETHEREUM.size, times, split])
        if key in done:
            continue
        data = ac.load_dataset("ethereum-phishing", root=root, seed=seed)
        if split == "own":
            set_masks(data, stratified_split(data.y, ETHEREUM_PARTS, seed))
        if not times:
            kept = [k for k, name in enumerate(data.edge_names) if not name.startswith("time")]
            data.edge_attr = data.edge_attr[:, kept].contiguous()
        begin = time.perf_counter()
        model = ac.fit(None, data, ETHEREUM, seed=seed)
        fitted = time.perf_counter()
        certificate = ac.certify(model, data, model.defence, data.test_mask)
        ends = f"{'' if times else ' without times'}{'' if split == 'own' else ', test part of the source'}"
        row = {
            "key": key, "dataset": "ethereum-phishing", "seed": seed, "rule": f"{ETHEREUM}{ends}",
            "size": ETHEREUM.size, "protocol": "transductive", "trusted": None,
            "without edges": float(certificate.truth.mean()), "uses edges": bool(model.use_votes),
            "validation": model.training_record["score"], **curves(certificate),
            "seconds": {"votes": fitted - begin, "certify": time.perf_counter() - fitted},
        }  # fmt: skip
        append_row(ROWS, row)
        print(row["rule"], seed, [round(value, 3) for value in row["structure"]], flush=True)


def with_trusted(data: Any, share: float, seed: int) -> Any:
    """The graph with a random share of its pairs marked as trusted."""
    graph = data.clone()
    low, high = data.edge_index.min(dim=0).values, data.edge_index.max(dim=0).values
    number = torch.from_numpy(np.random.default_rng(seed).random(data.num_nodes))
    mark = (number[low] * 997 + number[high] * 991) % 1 < share
    graph.edge_attr = mark.float()[:, None]
    return graph


def page(file: Path = ROWS) -> str:
    """The rows as tables, means over seeds."""
    rows = list(read_rows(file))
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["protocol"], row["trusted"], row["rule"], row["size"]), []).append(row)
    lines = [
        "| dataset | protocol | trusted | rule | made for | seeds | without edges | "
        + " | ".join(map(str, SIZES))
        + " |"
    ]
    lines.append("|---" * (7 + len(SIZES)) + "|")
    for (name, protocol, share, rule, size), found in sorted(groups.items(), key=str):
        against = "edges" if "levels=2" in rule else "structure"
        mean = np.mean([row[against] for row in found], axis=0)
        own = np.mean([row["without edges"] for row in found])
        shown = " | ".join(f"{value:.3f}" for value in mean)
        lines.append(
            f"| {name} | {protocol} | {'' if share is None else share} | {rule} | {size} | {len(found)} | {own:.3f} | {shown} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=[*OWN, "ethereum-phishing"])
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--standard", action="store_true", help="only with standardised features")
    parser.add_argument("--few", action="store_true", help="only with 20 labels per class")
    parser.add_argument("--page", action="store_true", help="print the tables")
    args = parser.parse_args()
    rows = FEW_ROWS if args.few else ROWS
    if args.page:
        print(page(rows))
        return
    done = {row["key"] for row in read_rows(rows)}
    for seed in args.seeds:
        for name in args.datasets:
            if name == "ethereum-phishing":
                run_ethereum(seed, args.root, done)
            else:
                run(name, seed, args.root, done, args.standard, args.few)


if __name__ == "__main__":
    main()
