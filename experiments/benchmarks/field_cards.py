"""Cards of the table of the field: python -m experiments.benchmarks.field_cards

Makes experiments/cards from the rows and from the certificates that ``experiments.benchmarks.field`` left in
.cache/field: evidence of up to 60 kB (packed) is kept beside the cards. Larger certificates are not published, so that
cards do not name their digests either.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from agnncert_peers.card_making import About, make_cards
from agnncert_peers.cards import read_card
from experiments.benchmarks.field import ALL_PROTOCOLS, FILE, KEPT, SELF_TAUGHT, SIZES, THREATS

ROOT = Path(__file__).parents[2]
CARDS = ROOT / "experiments" / "cards"
LARGEST = 60_000  # bytes of packed evidence
CITATIONS = {
    "AGNNCert-E": "Li et al., AGNNCert, USENIX Security 2025", "AGNNCert-N": "Li et al., AGNNCert, USENIX Security 2025",
    "gated": "agnncert", "per neighbour": "agnncert", "stacked votes": "agnncert",
    "similarity edges": "after Lai et al., AuditVotes, 2025, in sound form",
    "Bi-RS": "Lai et al., Node-aware bi-smoothing, IEEE S&P 2024",
    "GNNCert-E": "Xia et al., GNNCert, ICLR 2024", "GNNCert-N": "Xia et al., GNNCert, ICLR 2024",
    "GNNCert-EN": "Xia et al., GNNCert, ICLR 2024",
    "GNNCert-N, class weights": "Xia et al., GNNCert, ICLR 2024",
    "sparse RS": "Bojchevski et al., Sparsity-aware smoothing, ICML 2020",
    "RS": "Wang et al., Certified robustness of graph neural networks, KDD 2021",
    "interception": "Scholten et al., Message-interception smoothing, NeurIPS 2022",
    "interception, skip connection": "Scholten et al., Message-interception smoothing, NeurIPS 2022",
}  # fmt: skip
# What these rows say about their settings is not what their certificates call them.
NAMED_BY_CERTIFICATES = ("graph-free MLP ensemble", SELF_TAUGHT, "stacked votes", "per neighbour")
UNITS = {
    "features": "other features for this many nodes, the target not among them",
    "added edges": "this many added edges",
    "injected nodes": "this many injected nodes with any features and up to five edges each",
}


def read_rows() -> list[dict[str, Any]]:
    """All rows."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def write_cards() -> None:
    """One card for each defence, threat, dataset and protocol; rows whose cards are there already are left out."""
    there = {
        (card.dataset, card.protocol, card.defence, run.seed, card.threat): list(run.certified)
        for card in map(read_card, CARDS.glob("*.json"))
        for run in card.runs
    }
    for row in read_rows():
        if not any(any(row[threat][1:]) for threat in THREATS) and not row["control"]:
            continue  # proves nothing against any of the threats
        where = row["dataset"], row["protocol"], row["defence"], row["seed"]
        stated = [threat for threat in THREATS if row["control"] or any(row[threat][1:])]
        if all(there.get((*where, threat)) == row[threat] for threat in stated):
            continue
        kind = "certificate" if row["guarantee"] != "none" else "labels"
        stem = KEPT / row["certificate"]
        content = stem.with_name(f"{stem.name}.{'cert' if kind == 'certificate' else 'json'}").read_bytes()
        split = ALL_PROTOCOLS[row["protocol"]]["split"] or ""
        settings = "" if row["defence"] in NAMED_BY_CERTIFICATES else row["about"]
        about = About(
            row["defence"], row["dataset"], row["seed"], row["data"], row["protocol"], split,
            CITATIONS.get(row["defence"], ""), settings, row["control"], row["seconds"],
        )  # fmt: skip
        make_cards(content, about, CARDS, tuple(THREATS), SIZES, kind=kind, largest=LARGEST)
    forget_unpublished_files()


def forget_unpublished_files() -> None:
    """Takes from the cards the digests of certificates that nobody else has."""
    for file in sorted(CARDS.glob("*.json")):
        card = read_card(file)
        runs = tuple(run if run.file else replace(run, sha256=None) for run in card.runs)
        if runs != card.runs:
            replace(card, runs=runs).save(CARDS)


def main() -> None:
    """Writes the cards."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    write_cards()


if __name__ == "__main__":
    main()
