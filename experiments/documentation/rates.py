"""Blocks about guaranteed rates and their monitor, from ``benchmarks/results/thresholds.jsonl``."""

from experiments.documentation import sources
from experiments.documentation.facts import table
from experiments.documentation.sources import some


def rate_splits() -> str:
    """In which share of the splits more than the requested rate was flagged, beside the planted mistake."""
    found = some(sources.rows("thresholds"), what="guarantee")
    cases = sorted({(row["data"], row["defence"]) for row in found})
    titles = ["requested", "kept", "may be flagged", "flagged on average", "rate exceeded, at most", "with one flag too many, at least"]  # fmt: skip
    rows = []
    for rate, kept in dict.fromkeys((row["rate"], row["kept"]) for row in found):
        same = some(found, rate=rate, kept=kept)
        right, mistaken = (some(same, **{"one too many": planted}) for planted in (False, True))
        flagged = [100 * row["flagged"] for row in right]
        rows.append(
            [
                f"{100 * rate:g} %", str(kept), str(right[0]["allowed"]), f"{min(flagged):.1f} to {max(flagged):.1f} %",
                f"{100 * max(row['violated'] for row in right):.1f} %",
                f"{100 * min(row['violated'] for row in mistaken):.1f} %",
            ]
        )  # fmt: skip
    splits = found[0]["splits"]
    chance = 200 * (0.05 * 0.95 / splits) ** 0.5
    listed = ", ".join(f"{defence} on {data}" for data, defence in cases)
    return (
        f"Tried on {splits:,} random choices of the accounts that are kept, at 95 % confidence, for {listed}. The rate may be "
        f"exceeded in 5 % of them; of {splits:,}, chance makes that up to {5 + chance:.1f} %:\n\n{table(titles, rows)}"
    )


def rate_monitor() -> str:
    """How often there is an alarm, and after how many cases."""
    found = some(sources.rows("thresholds"), what="monitor")
    titles = ["true rate", "alarm within 2,000 cases", "at which case (median)"]
    rows = [
        [f"{100 * row['true rate']:g} %", f"{100 * row['alarms']:.1f} %", str(row["median delay"] or "–")]
        for row in found
    ]
    return f"Requested 10 %, {found[0]['runs']:,} runs each:\n\n{table(titles, rows)}"
