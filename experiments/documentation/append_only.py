"""Blocks about append-only scores: what is found at any number of appended rows, and what the dates of Ethereum tell."""

from collections.abc import Callable

import numpy as np

from experiments.documentation import sources
from experiments.documentation.facts import table
from experiments.documentation.sources import Row, mean
from experiments.paper.rows import share

NAMES = {
    "ethereum-phishing": "Ethereum, no dates",
    "bitcoin-otc": "Bitcoin-OTC",
    "tolokers": "Tolokers",
    "generated payments": "generated payments",
    "cresci-15": "Cresci-15",
}
WORDS = {
    "fresh": "append-only, *fresh*",
    "ledger": "append-only, *ledger*",
    "grow": "append-only, *grow*",
    "unconstrained": "the same trees without the constraint; nothing is proved",
}
STACKED, PLAIN = "stacked votes", "undefended GNN"
OWN = {"own features": "own features alone", "no edges": "own features alone", PLAIN: "undefended GNN, not attacked"}
SENT = {"fresh, only what it sent": "*fresh*", "ledger, only what it sent": "*ledger*"}
DELETED = (1, 3, 5)
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


def _splits(found: list[Row]) -> str:
    return f"{len(found)} split{'' if len(found) == 1 else 's'}"


def _number(found: list[Row], key: str) -> str:
    return share(float(mean(found, lambda row: row[key]))) if all(key in row for row in found) else "–"


def _lines(dataset: str) -> list[list[str]]:
    """One line for each method; those of the table of fraud pages are for the same splits."""
    times = dataset != "ethereum-phishing"
    lines = []
    seeds = sorted({row["seed"] for method in WORDS for row in _all_rows(dataset, method, times)})
    keys = ("false@0.1", "recall@0.1", "exact@0.1")
    for method, words in WORDS.items():
        found = _all_rows(dataset, method, times)
        if found:
            cells = [_number(found, key) for key in (*keys, *(f"recall@0.1 deleted {number}" for number in DELETED))]
            lines.append([NAMES[dataset], f"{words} ({len(found)})", *cells])
    for method, words in OWN.items():
        own = _all_rows(dataset, method, times)
        rows = own or [row["clean"] for row in _beside(dataset, method, times, seeds)]
        if rows and (own or rows[0]["recall@0.1"]):
            lines.append([NAMES[dataset], f"{words} ({len(rows)})", *(_number(rows, key) for key in keys), *["–"] * 3])
    return [*lines, *_stacked(dataset, times, seeds)]


def _stacked(dataset: str, times: bool, seeds: list[int]) -> list[list[str]]:
    """The line of stacked votes, with recall that is certified against so many added or deleted edges and no more."""
    name = f"{STACKED}, not attacked"
    own = _all_rows(dataset, STACKED, times)
    if own:
        cells = [_number(own, key) for key in ("false@0.1", "recall@0.1", "exact@0.1")]
        return [[NAMES[dataset], f"{name} ({len(own)})", *cells, *["–"] * 3]]
    found = _beside(dataset, STACKED, times, seeds)
    if not found:
        return []
    cells = [_number([row["clean"] for row in found], key) for key in ("false@0.1", "recall@0.1")]
    place = {one["size"]: k for k, one in enumerate(found[0]["certified"]["come or go"])}
    certified = [[row["certified"]["come or go"][place[size]] for row in found] for size in DELETED]
    cells += ["–", *(_number(rows, "recall@0.1") for rows in certified)]
    return [[NAMES[dataset], f"{name} ({len(found)})", *cells]]


def found_and_kept() -> str:
    """Recall at any number of appended rows, beside what needs no proof and what is proved about few additions."""
    lines = [line for dataset in NAMES for line in _lines(dataset)]
    head = ["data", "method (splits)", "honest accused", "fraud found", "found at 10 % of honest test accounts"]
    return table([*head, "1 deleted", "3", "5"], lines, words=2)


def guaranteed() -> str:
    """The threshold that is guaranteed, by the share of the known honest accounts that are kept for it."""
    lines = []
    for kept in ("0.3", "0.5", "0.7"):
        found = _all_rows("ethereum-phishing", f"ledger, {kept} kept", False)
        if found:
            numbers = [f"{min(row[key] for row in found):,}" for key in ("kept", "may be flagged")]
            each = ", ".join(share(row["recall"]) for row in found)
            percent = f"{100 * float(kept):.0f} % ({len(found)})"
            lines.append([percent, *numbers, _number(found, "false"), _number(found, "recall"), each])
    head = ["kept (splits)", "kept accounts", "may be flagged", "honest accused", "fraud found", "split by split"]
    return table(head, lines, words=1)


def attacks() -> str:
    """What attacks within a threat did, and what they do where the threat is broken on purpose."""
    lines = []
    for row in sorted(sources.rows("append-attacks"), key=lambda row: (not row["keeps"], row["threat"])):
        within = "within" if row["keeps"] else f"broken: {row['broken']}"
        keys = ("attacks", "targets", "flags fallen", "scores fallen", "unconstrained fallen")
        lines.append([f"*{row['threat']}*", within, *(f"{row[key]:,}" for key in keys)])
    head = ["threat", "attack", "attacks", "accounts", "flags that fell", "scores that fell"]
    return table([*head, "flags of unconstrained trees that fell"], lines, words=2)


def framing() -> str:
    """How many appended rows accuse an honest account, and what scores find that cannot be framed."""
    sentences = []
    for threat in ("ledger", "fresh"):
        found = _all_rows("ethereum-phishing", f"framing, {threat}", False)
        if found:
            rows = np.array([number for row in found for number in row["rows"]])
            low, middle, high = np.quantile(rows, (0.25, 0.5, 0.75), method="higher").tolist()
            most = found[0]["most tried"]
            sentences.append(
                f"On Ethereum under *{threat}*, half of the {len(rows):,} honest test accounts that are not flagged "
                f"({_splits(found)}) are flagged after {middle:,} payments from or to new accounts, copies of those of known fraud (quartiles {low:,} and "
                f"{high:,}), and {share(float((rows <= most).mean()))} of them within {most:,}."
            )
    for method, words in SENT.items():
        found = _all_rows("ethereum-phishing", method, False)
        if found:
            sentences.append(
                f"Scores that only read what an account sent itself, under {words}: {_number(found, 'recall@0.1')} of "
                f"fraud found at {_number(found, 'false@0.1')} honest accused, {_number(found, 'exact@0.1')} at 10 % "
                f"of the honest test accounts ({_splits(found)})."
            )
    return " ".join(sentences)


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


def scale() -> str:
    """Time and memory on Ethereum and on drawn payments."""
    lines = []
    for row in sources.rows("append-scale"):
        seconds = row["seconds"]
        name = NAMES.get(row["dataset"], row["dataset"])
        steps = [f"{seconds[step]:,.1f} s" for step in ("fit", "threshold", "certify", "file", "graph")]
        numbers = [f"{row[key]:,}" for key in ("accounts", "rows", "targets")]
        lines.append([name, *numbers, *steps, f"{row['gigabytes']:.1f} GB", f"{row['file in megabytes']:.1f} MB"])
    head = ["data", "accounts", "rows", "certified", "fit", "threshold", "certify", "verify, file alone"]
    return table([*head, "verify, with data and model", "memory", "file"], lines, words=1)


def dates() -> str:
    """What the date of an account's first payment tells by itself."""
    found = _all_rows("ethereum-phishing", DATES, True)
    auc = share(float(mean(found, lambda row: row["auc"])))
    return (
        f"On Ethereum the date of an account's first payment tells phishing apart by itself, with an AUC of {auc} "
        f"({_splits(found)}) and recall {_number(found, 'exact@0.1')} at 10 % of the honest accounts: most honest "
        "accounts of this dataset are old, most phishing accounts are new. Rows with dates say little about fraud."
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "append-only": found_and_kept,
    "append-only, stacked": stacked_at_ten,
    "append-only, guaranteed": guaranteed,
    "append-only, attacks": attacks,
    "append-only, framing": framing,
    "append-only, dates": dates,
    "append-only, scale": scale,
}
