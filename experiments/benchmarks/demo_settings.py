"""Chooses the settings of ``agnncert demo`` on validation nodes of generated graphs that the demo does not show.

Graphs are generated with seeds 1 to 5; the demo shows the one of seed 0. For each setting a model is trained, and the
vote is judged on the validation part by its certified balanced accuracy at size 3: the mean of the share of fraud that
stays detected and the share of genuine accounts that stay genuine. Test nodes are not looked at.

    python -m experiments.benchmarks.demo_settings

Rows are appended to ``experiments/results/demo-settings.jsonl``; those that are there already are not made again.
"""

import logging
from itertools import product
from pathlib import Path

import numpy as np

import agnncert as ac
from agnncert.datasets.generated import accounts
from agnncert.datasets.splits import NODE_FRACTIONS, set_masks, stratified_split
from experiments.paper.rows import append_row, read_rows

FILE = Path(__file__).parents[1] / "results" / "demo-settings.jsonl"
SEEDS, SIZE = (1, 2, 3, 4, 5), 3
RATES, EPOCHS, PRIORS = (0.01, 0.02, 0.05), (20, 30), range(9)
log = logging.getLogger(__name__)


def certified(seed: int, rate: float, epochs: int) -> list[float]:
    """Certified balanced accuracy of the validation part for each prior of the genuine class."""
    data = accounts(seed=seed)
    set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed))
    model = ac.build_model("sage", data, num_layers=1, hidden_channels=16, seed=seed)
    how = {"weight_decay": 5e-4, "balance_classes": True, "evaluate_every": 10, "seed": seed}
    ac.fit(model, data, ac.PerNeighbour(), epochs=epochs, lr=rate, **how)
    votes = (ac.VotingRule(prior=[prior, 0]) for prior in PRIORS)
    found = (
        ac.certify(model, data, ac.PerNeighbour(), data.val_mask, voting_rule=voting_rule) for voting_rule in votes
    )
    return [certificate.measures(SIZE).balanced_accuracy for certificate in found]


def main() -> None:
    """Makes the rows that are missing, and prints the means, best first."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("agnncert").setLevel(logging.WARNING)
    rows = list(read_rows(FILE))
    known = {(row["seed"], row["lr"], row["epochs"]) for row in rows}
    for seed, rate, epochs in product(SEEDS, RATES, EPOCHS):
        if (seed, rate, epochs) not in known:
            row = {"seed": seed, "lr": rate, "epochs": epochs, "balanced": certified(seed, rate, epochs)}
            rows.append(row)
            append_row(FILE, row)
    means = {
        (rate, epochs): np.mean([r["balanced"] for r in rows if (r["lr"], r["epochs"]) == (rate, epochs)], axis=0)
        for rate, epochs in product(RATES, EPOCHS)
    }
    listed = sorted(((mean[k], *key, prior) for key, mean in means.items() for k, prior in enumerate(PRIORS)))[::-1]
    for mean, rate, epochs, prior in listed[:10]:
        log.info("%.3f  lr=%g epochs=%d genuine=%d", mean, rate, epochs, prior)


if __name__ == "__main__":
    main()
