"""What a certificate says about a rare class: fraud among generated accounts, 3 % of them.

Certified accuracy hides what becomes of the fraud: a model that is certified to be right for 97 % of all accounts may
find none of it, as the constant answer "genuine" does. The script certifies three votes, by ``certificate.measures``:

- a GNN with 60 subgraphs and unweighted classes, as one would train it without thinking of the fraud;
- the same with classes weighted equally;
- one vote for each neighbour, with four votes for "genuine" in advance: the threshold.

It prints certified accuracy, which alone would choose the first of the two GNNs, and what is certified of the fraud.
The accounts are generated: nothing about real fraud follows.
"""

import agnncert as ac

data = ac.load_dataset("accounts-generated")
FRAUD, SIZES = 1, (-1, 1, 3, 5)  # -1: no attack


def certified(division: ac.Division, balanced: bool, prior: list[int] | None = None) -> ac.Certificate:
    """A certificate of the test accounts."""
    model = ac.build_model("sage", data, num_layers=1, hidden_channels=16)
    ac.fit(model, data, division, epochs=30, lr=0.02, balance_classes=balanced, evaluate_every=10)
    rule = None if prior is None else ac.VotingRule(prior=prior)
    return ac.certify(model, data, division, rule=rule, targets=data.test_mask)


votes = {
    "60 subgraphs": certified(ac.NodeCentric(60), balanced=False),
    "60 subgraphs, classes weighted": certified(ac.NodeCentric(60), balanced=True),
    "one vote per neighbour, threshold": certified(ac.PerNeighbour(), balanced=True, prior=[4, 0]),
}
print(f"{'certified at size':<36}{'no attack':>10}" + "".join(f"{size:>8}" for size in SIZES[1:]))
for name, certificate in votes.items():
    found = [certificate.measures(size) for size in SIZES]
    rows = {
        "accuracy": [each.accuracy for each in found],
        "fraud detected, at least": [each.recall[FRAUD] for each in found],
        "genuine taken for fraud, at most": [each.false_positive_rate[FRAUD] for each in found],
    }
    print(name)
    for measure, values in rows.items():
        print(f"  {measure:<34}{values[0]:>10.1%}" + "".join(f"{value:>8.1%}" for value in values[1:]))
print(f"The constant answer “genuine” has an accuracy of {found[0].majority_share:.1%} and detects no fraud.")
