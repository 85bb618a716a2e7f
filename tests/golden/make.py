"""Makes the example certificates of the current format version: ``python tests/golden/make.py``.

Only for a new format version, or when the words of a claim change before a release. Files of released versions
stay as they are, so that later versions still verify them.
"""

import json
from pathlib import Path

import numpy as np

from agnncert.proof.ballots import Votes
from agnncert.proof.budget import Budget
from agnncert.proof.certificate import Certificate, usual_budgets
from agnncert.proof.claim import make_claim
from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.file import VERSION
from agnncert.proof.samples.deletions import DeletionNoise
from agnncert.proof.samples.evidence import TOGETHER, SampleEvidence, sample_claim
from agnncert.proof.samples.flips import FlipNoise

FOLDER = Path(__file__).parent / f"v{VERSION}"

# (rule, ids, parameters, default ballots) of each example; every one has the same four rows of listed ballots.
EXAMPLES = {
    "edge-centric-node": ("edge-centric/node", "node_id", {}, [0, 1, 2, 0]),
    "node-centric-node": ("node-centric/node", "row", {}, [0, 1, 2, 0]),
    "gated-node": ("gated/node", "node_id", {}, [-1, -1, -1, -1]),
    "edge-centric-graph": ("edge-centric/graph", "node_id", {}, [-1, -1, -1, -1]),
    "node-centric-graph": ("node-centric/graph", "node_id", {}, [-1, -1, -1, -1]),
    "gnncert-en-graph": ("gnncert-en/graph", "row", {"edge_groups": 3, "feature_groups": 4}, [0, 1, 2, 0]),
    "custom-node": ("custom/node", "node_id", {"add_edges": 1, "delete_edges": 2}, [0, 1, 2, 0]),
}
GROUPS = [[0, 3, 7], [], [1, 2, 4, 5, 11], [6]]
BALLOTS = [[0, 1, 0], [], [2, 2, 0, 2, 2], [-1]]


def example(rule: str, ids: str, parameters: dict[str, int], default: list[int]) -> Certificate:
    """Four targets, twelve groups, three classes, one ballot too close to a tie."""
    sizes = [len(groups) for groups in GROUPS]
    reached = np.ones(sum(sizes), dtype=bool)
    if rule in ("gated/node", "node-centric/graph"):
        reached[[0, 4]] = False
    rows = [[1] * (size > 1) + [size] * (size > 0) for size in sizes] if rule.startswith("edge-centric") else [[]] * 4
    votes = Votes(
        num_groups=12,
        num_classes=3,
        default=np.array(default, dtype=np.int16),
        default_stable=np.array([True, True, True, rule != "custom/node"]),
        indptr=np.cumsum([0, *sizes]),
        group=np.array([g for groups in GROUPS for g in groups], dtype=np.int32),
        ballot=np.array([b for ballots in BALLOTS for b in ballots], dtype=np.int16),
        stable=np.array([i != 2 for i in range(sum(sizes))]),
        reached=reached,
    )
    cover = np.array([entry for row in rows for entry in row], dtype=np.int32)
    evidence = BallotEvidence(votes, rule, np.cumsum([0, *map(len, rows)]), cover, ids, parameters)
    claim = make_claim(
        rule=rule,
        division=f"{rule.split('/')[0]} by hand",
        num_groups=12,
        ids=ids,
        tolerance=1e-6,
        digests={"graph": "0a" * 32, "model": "1b" * 32, "division": "2c" * 32},
        parameters=parameters,
    )
    target = ["ann", "bob", "Çelik", "点"] if rule == "gated/node" else [10, 20, 30, 40]
    return Certificate(claim, evidence, np.array(target), truth=np.array([0, 1, 2, 1]), degree=np.array([3, 0, 6, 1]))


def sampled() -> Certificate:
    """Two targets, counted under random deletions."""
    counts = np.array([[95, 5, 0], [40, 30, 30]])
    evidence = SampleEvidence("bi-rs", DeletionNoise(0.8, 0.9), counts, 100 * counts, alpha=0.01)
    return Certificate(sample_claim(evidence), evidence, np.array([1, 2]))


def flipped() -> Certificate:
    """Three targets, counted under random flips of edges and of two feature entries; the last one is undecided."""
    counts = np.array([[98, 1, 1], [10, 90, 0], [34, 33, 33]])
    noise = FlipNoise(0.05, 0.3, 0.1, 0.1, num_features=2)
    evidence = SampleEvidence("sparse-rs", noise, counts, 100 * counts, alpha=0.01, scope=TOGETHER)
    return Certificate(sample_claim(evidence), evidence, np.array([4, 5, 6]))


def summary(certificate: Certificate) -> dict[str, list[str]]:
    """What the example proves, for a reader and for the test."""
    names = ("target", "label", "radius", "new_neighbours")
    return {name: [str(value) for value in getattr(certificate, name).tolist()] for name in names}


def make_all() -> None:
    """Writes every example, and what it proves."""
    FOLDER.mkdir(exist_ok=True)
    made = {name: example(*settings) for name, settings in EXAMPLES.items()}
    made |= {"bi-rs": sampled(), "sparse-rs": flipped()}
    flips = (Budget(delete_edges=1), Budget(add_edges=1), Budget(delete_edges=1, change_features=1))
    for name, certificate in made.items():
        own = Budget(target_features=True, delete_nodes=1, change_features=1)
        budgets = (*usual_budgets(certificate.claim), own) if certificate.claim.alpha is None else ()
        certificate.save(FOLDER / f"{name}.cert", flips if name == "sparse-rs" else budgets)
    proved = {name: summary(certificate) for name, certificate in made.items()}
    (FOLDER / "proved.json").write_text(json.dumps(proved, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    make_all()
