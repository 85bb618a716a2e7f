"""What one set of votes proves on Cora-ML, from the paper's radius to unlimited attacks and whole graphs at once.

    python -m experiments.benchmarks.budgets [--root FOLDER]

writes experiments/benchmarks/results/budgets.json and budgets.md.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch

import agnncert as ac
from agnncert.training.settings import tuned_arguments

RESULTS = Path(__file__).parent / "results"
SIZES = (1, 5, 10, 50, 100, 140)
ADDED = (100, 200, 1000, 5000)
INF = math.inf


def trained(data, division=None, model="gcn"):  # type: ignore[no-untyped-def]
    model_args, fit_args = tuned_arguments("cora-ml", "node")
    return ac.fit(ac.build_model(model, data, **model_args), data, division, **fit_args)


def accuracy(model, data) -> float:  # type: ignore[no-untyped-def]
    with torch.no_grad():
        label = model(data.x, data.edge_index).argmax(1)
    return float((label == data.y)[data.test_mask].float().mean())


def statements(cert: ac.Certificate) -> dict[str, object]:
    right = cert.label == cert.truth
    neighbours = cert.new_neighbours
    injected = {tau: cert.max_certified("inject_nodes", edges_per_injected=tau) for tau in (5, 20, INF)}
    unlimited = ac.Budget(delete_edges=INF, change_edges=INF, delete_nodes=INF, change_features=INF)

    def share(holds: np.ndarray) -> float:  # type: ignore[type-arg]
        return round(float((right & holds).mean()), 4)

    return {
        "clean": share(np.ones_like(right)),
        "no_edge": round(float((cert.evidence.votes.default == cert.truth).mean()), 4),
        "vote_differs_from_no_edge": round(float((cert.evidence.votes.default != cert.label).mean()), 4),
        "paper_radius": {m: share(cert.radius >= m) for m in SIZES},
        "new_neighbours": {m: share(neighbours >= m) for m in SIZES},
        "unlimited_deletions_and_features": share(cert.holds_against(unlimited)),
        "injected": {str(tau): {m: share(most >= m) for m in SIZES} for tau, most in injected.items()},
        "broken_by_added_edges": {e: cert.evidence.broken_at_most(ac.Budget(add_edges=e), among=right) for e in ADDED},
        "correct": int(right.sum()),
        "targets": len(right),
    }


def markdown(result: dict) -> str:  # type: ignore[type-arg]
    lines = [
        "# What one set of votes proves (Cora-ML)",
        "",
        "Made by `python -m experiments.benchmarks.budgets`: one GCN per row, trained with the recipe of the library, seed 0.",
        f"{result['targets']} test nodes. Models that need no proof: graph-free MLP {result['mlp']:.3f}; "
        f"undefended GCN {result['gcn']:.3f} (no certificate at all).",
        "",
    ]
    head = ["division", "clean", "no edges", *(f"m={m}" for m in SIZES)]
    sections = [
        ("Certified accuracy, the paper's radius (any mix, in the division's unit)", lambda s: s["paper_radius"]),
        ("New neighbours of the target, everything else about other nodes unlimited", lambda s: s["new_neighbours"]),
        *(
            (
                f"Injected nodes with {'unlimited' if tau == 'inf' else tau} edges each",
                lambda s, tau=tau: s["injected"][tau],
            )
            for tau in ("5", "20", "inf")
        ),
    ]
    for title, pick in sections:
        lines += [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for name, stated in result["divisions"].items():
            values = pick(stated)
            cells = [name, f"{stated['clean']:.3f}", f"{stated['no_edge']:.3f}", *(f"{values[m]:.3f}" for m in SIZES)]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    lines += ["## Unlimited deletions and feature changes of other nodes; one attacked graph for all targets", ""]
    head = ["division", "certified", *(f"broken by {e:,} added edges, at most" for e in ADDED), "of correct"]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, stated in result["divisions"].items():
        broken = [str(stated["broken_by_added_edges"][e]) for e in ADDED]
        unlimited = f"{stated['unlimited_deletions_and_features']:.3f}"
        lines.append("| " + " | ".join([name, unlimited, *broken, str(stated["correct"])]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".cache/data")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = ac.load_dataset("cora-ml", root=options.root)
    result: dict = {"mlp": accuracy(trained(data, model="mlp"), data), "gcn": accuracy(trained(data), data)}  # type: ignore[type-arg]
    result["divisions"] = {}
    for division in (ac.EdgeCentric(300), ac.NodeCentric(300), ac.EdgeCentric(30), ac.NodeCentric(30)):
        cert = ac.certify(trained(data, division), data, division, targets=data.test_mask)
        result["divisions"][str(division)] = statements(cert)
        result["targets"] = cert.num_targets
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "budgets.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / "budgets.md").write_text(markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
