"""What decides the votes of known models, and whether any error of rounding exceeds its bound.

    python -m experiments.benchmarks.rounding [--only NAME ...] [--root FOLDER]

For each dataset, model and division, the model is trained for some epochs, and the logits of all copies in all
subgraphs are computed twice: in float32 with bounds, as ``certify`` does, and in float64 with its own. A share of votes
is decided by float32, by float64, or by neither. The error of a row is what its float32 logits differ from those in
float64 by, less the bound of the latter; no error may exceed its bound. Rows are written to results/rounding.json as
they come: a run that was stopped goes on with those that are missing. It ends with an error if a bound is exceeded;
``--too-small 1000`` divides all bounds by 1,000 to see that, and writes nothing.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
NODE = ("cora-ml", "citeseer", "pubmed", "amazon-c")
GRAPH = ("mutag", "proteins")
MODELS = ("gcn", "sage", "gin", "resgcn", "gat")
EPOCHS = 30
TOLERANCE = 1e-6
GROUPS = {"node": (30, 300), "graph": (10, 30)}


def trained(name: str, data: Any, task: str) -> Any:
    """Returns a model of 3 layers of 64, trained on whole graphs."""
    import torch
    import torch.nn.functional as F
    from torch_geometric.loader import DataLoader

    import agnncert as ac

    torch.manual_seed(0)
    model = ac.build_model(name, data, hidden_channels=64, num_layers=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = [data] if task == "node" else list(DataLoader(list(data), batch_size=256))
    for _ in range(EPOCHS):
        for batch in batches:
            optimizer.zero_grad()
            if task == "node":
                loss = F.cross_entropy(model(batch.x, batch.edge_index)[batch.train_mask], batch.y[batch.train_mask])
            else:
                loss = F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y)
            loss.backward()
            optimizer.step()
    return model.eval()


def measure(dataset: str, name: str, data: Any, model: Any, division: Any, too_small: float = 1.0) -> dict[str, Any]:
    """Decides all votes of a division, and compares errors with their bounds, divided by ``too_small``."""
    import torch

    from agnncert.engine import exact_votes, fast
    from agnncert.engine.error_bounds import DOUBLE, SINGLE
    from agnncert.engine.features import Features
    from agnncert.engine.union import union_of_subgraphs
    from agnncert.graphs.canonical import canonical, canonical_set
    from experiments.benchmarks.run import bound

    task = "node" if dataset in NODE else "graph"
    graph = canonical(data) if task == "node" else canonical_set(data)
    call = bound(model, graph, task)
    subgraphs = union_of_subgraphs(graph, division)
    features = Features(graph.x, subgraphs.sparse)
    decided: Counter[int] = Counter()
    largest = 0.0
    ratios = []
    wrong = 0
    with torch.no_grad():
        for chunk in subgraphs.chunks(2**13):
            inputs = fast.model_inputs(call, subgraphs, features, chunk)
            decisions = exact_votes.decide(call, TOLERANCE, *inputs)
            decided.update(decisions.by.tolist())
            double = exact_votes.bounded(call, DOUBLE)(*inputs)
            wrong += int(
                ((double.values.argmax(dim=1) != decisions.vote) & (decisions.by != exact_votes.UNSTABLE)).sum()
            )
            if call.rounding != "float32":
                continue
            single = exact_votes.bounded(call, SINGLE)(*inputs)
            error = (single.values.double() - double.values).abs().amax(dim=1)
            is_bounded = torch.isfinite(single.bounds.error) & torch.isfinite(double.bounds.error)
            ratio = ((error - double.bounds.error).clamp(min=0) * too_small / single.bounds.error)[is_bounded]
            ratios.append((error / single.bounds.error)[is_bounded])
            largest = max(largest, float(ratio.max()))
    votes = sum(decided.values())
    return {
        "dataset": dataset, "model": name, "division": "edge-centric" if division.divides_edges else "node-centric", "groups": division.num_groups, "votes": votes,
        "float32": decided[exact_votes.BY_FLOAT32], "float64": decided[exact_votes.BY_FLOAT64], "unstable": decided[exact_votes.UNSTABLE],
        "bounded": sum(len(part) for part in ratios), "largest_error_in_bounds": largest if ratios else None,
        "median_error_in_bounds": float(torch.cat(ratios).median()) if ratios else None,
        "stable_votes_unlike_float64": wrong,
    }  # fmt: skip


def page(rows: list[dict[str, Any]]) -> str:
    """Returns the results as a table."""
    bounded = [row for row in rows if row["largest_error_in_bounds"] is not None]
    lines = [
        "# What decides votes",
        "",
        f"Made by `python -m experiments.benchmarks.rounding`: models of 3 layers of 64, {EPOCHS} epochs, tolerance {TOLERANCE:g}.",
        "Votes are those of nodes with an edge in a subgraph, and of subgraphs with an edge.",
        "",
        f"{sum(row['votes'] for row in rows):,} votes; {sum(row['bounded'] for row in bounded):,} errors of float32 were compared with their bounds. "
        f"The largest was {max((row['largest_error_in_bounds'] for row in bounded), default=0.0):.3f} of its bound. "
        f"Stable votes unlike those of float64: {sum(row['stable_votes_unlike_float64'] for row in rows)}.",
        "",
        "| dataset | model | division | T | votes | float32 | float64 | unstable | largest error / bound | median error / bound |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shares = " | ".join(f"{100 * row[key] / row['votes']:.3f} %" for key in ("float32", "float64", "unstable"))
        errors = " | ".join(
            "–" if row[key] is None else f"{row[key]:.2g}"
            for key in ("largest_error_in_bounds", "median_error_in_bounds")
        )
        lines.append(
            f"| {row['dataset']} | {row['model']} | {row['division']} | {row['groups']} | {row['votes']:,} | {shares} | {errors} |"
        )
    return "\n".join(lines) + "\n"


def stored_rows(file: Path, anew: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Returns the rows of a file, without those that are to be measured anew.

    Args:
        file: The file. If it does not exist, there are no rows.
        anew: Names of datasets and models.
    """
    rows = json.loads(file.read_text())["rows"] if file.is_file() else []
    return [row for row in rows if (row["dataset"], row["model"]) not in anew]


def write(rows: list[dict[str, Any]]) -> None:
    (RESULTS / "rounding.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    (RESULTS / "rounding.md").write_text(page(rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--only", nargs="*", default=[*NODE, *GRAPH])
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--too-small", type=float, default=1.0, help="divide all bounds by this, and write nothing")
    parser.add_argument("--again", action="store_true", help="measure rows of these datasets and models anew")
    options = parser.parse_args()
    import torch

    import agnncert as ac

    torch.set_num_threads(1)
    file = RESULTS / "rounding.json"
    keeps_rows = options.too_small == 1.0
    asked = [(dataset, name) for dataset in options.only for name in options.models]
    rows = stored_rows(file, asked if options.again else []) if keeps_rows else []
    done = {(row["dataset"], row["model"]) for row in rows}
    for dataset in options.only:
        data = ac.load_dataset(dataset, root=options.root)
        task = "node" if dataset in NODE else "graph"
        for name in options.models:
            if (dataset, name) in done:
                continue
            model = trained(name, data, task)
            found = [
                measure(dataset, name, data, model, division(groups), options.too_small)
                for groups in GROUPS[task]
                for division in (ac.EdgeCentric, ac.NodeCentric)
            ]
            rows += found
            if keeps_rows:
                write(rows)
            print(*found, sep="\n", flush=True)
    exceeded = [row for row in rows if (row["largest_error_in_bounds"] or 0.0) > 1.0]
    if exceeded or any(row["stable_votes_unlike_float64"] for row in rows):
        raise SystemExit(f"{len(exceeded)} of {len(rows)} rows have an error beyond its bound, or a wrong stable vote")


if __name__ == "__main__":
    main()
