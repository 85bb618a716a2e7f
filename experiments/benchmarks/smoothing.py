"""What the samples of Bi-RS cost, against one full forward pass per sample; called by ``make bench``.

Both sides draw the same noise from the same seed, so they must count the same predictions. The slow side is
measured on a few samples and scaled up; the table says on how many.
"""

import json
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
SAMPLES = 50_000
SLOW_SAMPLES = {"cora-ml": 200, "pubmed": 60}
PAPER_SECONDS = {"cora-ml": 1658, "pubmed": 60589}  # on an RTX 4090, as the AGNNCert paper reports


def measure(name: str, root: str, p_edge: float = 0.8, p_node: float = 0.9) -> dict[str, object]:
    import torch

    import agnncert as ac
    from agnncert.engine.adapter import bind
    from agnncert.graphs.canonical import canonical
    from agnncert.graphs.targets import target_rows
    from agnncert_peers.deletion_sampler import DeletionSampler
    from agnncert_peers.draws import ESTIMATION, stream

    data = ac.load_dataset(name, root=root)
    model = ac.build_model("gcn", data, hidden_channels=64, num_layers=2).eval()
    graph, defence = canonical(data), ac.baselines.BiRS(p_edge, p_node, samples=SAMPLES)
    rows, call = target_rows(data.test_mask, data.num_nodes), bind(model, graph, "node")
    with torch.no_grad():
        start = time.perf_counter()
        certificate = ac.certify(model, data, defence, data.test_mask)
        fast = time.perf_counter() - start

        few = SLOW_SAMPLES[name]
        samplers = [DeletionSampler(call, graph, rows, defence.noise(1), naive) for naive in (False, True)]
        some = samplers[0].counts(stream(0, ESTIMATION, 0), 0, few)
        start = time.perf_counter()
        same = samplers[1].counts(stream(0, ESTIMATION, 0), 0, few)
        slow = (time.perf_counter() - start) / few * (SAMPLES + 100)
    return {
        "dataset": name, "samples": SAMPLES + 100, "targets": certificate.num_targets, "p_edge": p_edge,
        "p_node": p_node, "seconds_fast": fast, "seconds_naive": slow, "naive_over_fast": slow / fast,
        "naive_measured_on": few, "predictions_compared": int(same.sum()),
        "predictions_that_differ": int(abs(some - same).sum() // 2), "paper_seconds_on_gpu": PAPER_SECONDS[name],
    }  # fmt: skip


def table(rows: list[dict[str, object]]) -> str:
    columns = [
        ("dataset", "dataset", ""), ("samples", "samples", ",d"), ("targets", "targets", ",d"),
        ("fast s", "seconds_fast", ".1f"), ("one forward per sample s", "seconds_naive", ".0f"),
        ("measured on", "naive_measured_on", ",d"), ("slow / fast", "naive_over_fast", ".0f"),
        ("predictions compared", "predictions_compared", ",d"), ("that differ", "predictions_that_differ", ",d"),
        ("paper, GPU s", "paper_seconds_on_gpu", ",d"),
    ]  # fmt: skip
    lines = ["| " + " | ".join(title for title, _, _ in columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(
        lines + ["| " + " | ".join(format(row[key], form) for _, key, form in columns) + " |" for row in rows]
    )


def main(root: str = ".cache/data") -> None:
    rows = []
    for name in SLOW_SAMPLES:
        rows.append(measure(name, root))
        print(table(rows[-1:]), flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "smoothing.json").write_text(json.dumps(rows, indent=1) + "\n")
    text = (
        "# What the samples of Bi-RS cost\n\nMade by `make bench`. Bi-RS deletes edges with probability 0.8 and nodes "
        "with probability 0.9; audit, sampling and certificate are counted. The slow side is our own sampler with one "
        "whole forward pass per sample, sparse features and all; it is measured on some samples and scaled up. Both "
        "draw the same noise, and their predictions are compared.\n\n"
    )
    (RESULTS / "smoothing.md").write_text(f"{text}{table(rows)}\n")
    print(f"\nwritten to {RESULTS / 'smoothing.md'}")


if __name__ == "__main__":
    main()
