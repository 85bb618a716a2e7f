"""Blocks about append-only scores: what is found at any number of appended rows, and what the dates of Ethereum tell."""

from experiments.documentation import sources
from experiments.documentation.facts import table
from experiments.documentation.sources import Row, mean
from experiments.paper.rows import share

NAMES = {"ethereum-phishing": "Ethereum", "bitcoin-otc": "Bitcoin-OTC", "cresci-15": "Cresci-15"}
WORDS = {
    "fresh": "append-only, *fresh*",
    "ledger": "append-only, *ledger*",
    "grow": "append-only, *grow*",
    "unconstrained": "the same trees without the constraint; nothing is proved",
}
STACKED, PLAIN = "stacked votes", "undefended GNN"
DATES = "date of the first payment"


def _chosen(name: str, dataset: str, method: str, times: bool) -> list[Row]:
    """Rows of a file about one method on one graph; none if it was not tried there."""
    wanted = {"dataset": dataset, "method": method, "times": times}
    return [row for row in sources.rows(name) if all(row[key] == value for key, value in wanted.items())]


def _all_rows(dataset: str, method: str, times: bool) -> list[Row]:
    found = _chosen("append-only", dataset, method, times)
    seeds = {row["seed"]: row for row in found}
    return [seeds[seed] for seed in sorted(seeds)]


def _beside(dataset: str, method: str, times: bool, seeds: list[int]) -> list[Row]:
    found = _chosen("fraud", dataset, method, times)
    return [row for row in found if row["seed"] in seeds]


def _number(found: list[Row], key: str) -> str:
    return share(float(mean(found, lambda row: row[key]))) if all(key in row for row in found) else "–"


def _lines(dataset: str, times: bool) -> list[list[str]]:
    """One line for each method; those of the table of fraud pages are for the same splits."""
    name = f"{NAMES[dataset]}{'' if times or dataset != 'ethereum-phishing' else ', no dates'}"
    lines = []
    seeds = sorted({row["seed"] for method in WORDS for row in _all_rows(dataset, method, times)})
    for method, words in WORDS.items():
        found = _all_rows(dataset, method, times)
        if not found:
            continue
        keys = ("false@0.1", "recall@0.1", "exact@0.1")
        deleted = [f"recall@0.1 deleted {number}" for number in (1, 3, 5)]
        cells = [_number(found, key) for key in (*keys, *deleted)]
        lines.append([name, f"{words} ({len(found)})", *cells])
    for method in (STACKED, PLAIN):
        found = _beside(dataset, method, times, seeds)
        if found:
            plain = [row["clean"] for row in found]
            cells = [_number(plain, key) for key in ("false@0.1", "recall@0.1")]
            lines.append([name, f"{method}, not attacked ({len(found)})", *cells, "–", "–", "–", "–"])
    return lines


def found_and_kept() -> str:
    """Recall at any number of appended rows, beside what needs no proof and what is proved about few additions."""
    lines = [
        line
        for dataset, times in (("ethereum-phishing", False), ("bitcoin-otc", True), ("cresci-15", True))
        for line in _lines(dataset, times)
    ]
    head = ["data", "method (splits)", "honest accused", "fraud found", "found at 10 % of honest test accounts"]
    return table([*head, "1 deleted", "3", "5"], lines, words=2)


def stacked_at_ten() -> str:
    """What stacked votes certify on Ethereum without dates at a few added edges, on the same splits."""
    found = _beside("ethereum-phishing", STACKED, False, list(range(5)))
    sizes = {one["size"]: place for place, one in enumerate(found[0]["certified"]["added"])}
    numbers = [
        share(float(mean(found, lambda row, at=sizes[size]: row["certified"]["added"][at]["recall@0.1"])))
        for size in (1, 3, 10)
    ]
    return (
        f"At such thresholds, on the same splits, stacked votes certify {numbers[0]} against one added edge, {numbers[1]} against three "
        f"and {numbers[2]} against ten; append-only scores say the same of any number."
    )


def dates() -> str:
    """What the date of an account's first payment tells by itself."""
    found = _all_rows("ethereum-phishing", DATES, True)
    auc = share(float(mean(found, lambda row: row["auc"])))
    return (
        f"On Ethereum the date of an account's first payment tells phishing apart by itself, with an AUC of {auc} "
        f"({len(found)} splits) and recall {_number(found, 'exact@0.1')} at 10 % of the honest accounts: most honest "
        "accounts of this dataset are old, most phishing accounts are new. Rows with dates say little about fraud."
    )
