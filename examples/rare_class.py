"""What a certificate says about a rare class: fraud among generated accounts, 3 % of them.

Certified accuracy hides what becomes of the fraud: a model that is certified to be right for 97 % of all accounts may
find none of it, as the constant answer "genuine" does. The script certifies three votes, by ``certificate.measures``:

- a GNN with 60 subgraphs and unweighted classes, as one would train it without thinking of the fraud;
- the same with classes weighted equally;
- one vote for each neighbour, with four votes for "genuine" in advance: the threshold.

It prints certified accuracy, which alone would choose the first of the two GNNs, and what is certified of the fraud.
For each vote it then prints a headline about the accuracy, as reports had it once, and what reports say now.
The accounts are generated: nothing about real fraud follows.

``python examples/rare_class.py 50000`` does the same for 50,000 accounts with about 400,000 payments.
"""

import sys

import numpy as np

import agnncert as ac
from agnncert.datasets.generated import accounts
from agnncert.datasets.splits import NODE_FRACTIONS, set_masks, stratified_split
from agnncert.report.summary import ReportContext, summarise
from agnncert.report.text import beside, deed, headline, percent

data = ac.load_dataset("accounts-generated")
if len(sys.argv) > 1:
    data = accounts(int(sys.argv[1]))
    set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed=0))
FRAUD, SIZES = 1, (-1, 1, 3, 5)  # -1: no attack


def certified(division: ac.Division, balanced: bool, prior: list[int] | None = None) -> ac.Certificate:
    """A certificate of the test accounts."""
    model = ac.build_model("sage", data, num_layers=1, hidden_channels=16)
    ac.fit(model, data, division, epochs=30, lr=0.02, balance_classes=balanced, evaluate_every=10)
    voting_rule = None if prior is None else ac.VotingRule(prior=prior)
    return ac.certify(model, data, division, voting_rule=voting_rule, targets=data.test_mask)


def about_accuracy(certificate: ac.Certificate) -> str:
    """The headline of old: the largest size at which nine tenths of the accuracy are certified."""
    shares = [certificate.measures(size).accuracy for size in range(int(certificate.radius.max()) + 1)]
    size = int(np.flatnonzero(np.array(shares) >= 0.9 * shares[0])[-1])
    attack = deed(summarise(certificate, None)).times(max(1, size))
    return f"At least {percent(shares[size])} of {len(certificate):,} decisions stay correct when an attacker {attack}."


votes = {
    "60 subgraphs": certified(ac.NodeCentric(60), balanced=False),
    "60 subgraphs, classes weighted": certified(ac.NodeCentric(60), balanced=True),
    "one vote per neighbour, threshold": certified(ac.PerNeighbour(), balanced=True, prior=[4, 0]),
}
print(
    f"{data.num_nodes:,} accounts, {data.num_edges // 2:,} pairs that pay each other, {data.y.float().mean():.1%} fraud"
)
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

context = ReportContext(class_names=["genuine", "fraud"])
for name, certificate in votes.items():
    summary = summarise(certificate, context)
    print(f"\n{name}, a headline about the accuracy:\n  {about_accuracy(certificate)}")
    print(f"{name}, what reports say now:\n  {headline(summary)}.")
    print("\n".join(f"  {line}" for line in beside(summary)))
