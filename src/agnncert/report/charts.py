"""What the page's two charts are drawn from, and the same as numbers for the tables beside them."""

import math
from typing import Any

import numpy as np

from agnncert.report.summary import Shares, Summary, changes_only
from agnncert.report.words import added_words, percent, share_word, step_words

MOST_HOVERED = 1000  # sizes at which the pointer finds a value
TABLE_ROWS = 12
CEILING = "To the right of 1, a certified label is the one the model gives without any edges."


def points(curve: Shares) -> list[dict[str, float]]:
    """A curve as the charting library wants it."""
    return [{"x": round(float(x), 6), "y": round(float(y), 6)} for x, y in zip(curve.size, curve.share, strict=True)]


def accuracy_chart(summary: Summary) -> dict[str, Any]:
    """Certified accuracy over the size of the attack, with what it should be compared with."""
    curve, added = summary.certified, summary.certified_additions
    stride = math.ceil(len(curve.size) / MOST_HOVERED)
    hovered = Shares(curve.size[::stride], curve.share[::stride])
    word = share_word(summary)
    return {
        "certified": points(changes_only(curve)),
        "every_size": points(hovered),
        "neighbours": [] if added is None else points(changes_only(added)),
        "neighbours_word": f"the same, counting {added_words(summary)}",
        "attacked": [{"x": float(x), "y": float(y)} for x, y in sorted(summary.context.attacked)],
        "references": [{"key": _style(key), "name": name, "value": value} for key, name, value in summary.references],
        "max_size": summary.last_size,
        "x_label": f"size of the attack ({step_words(summary)[1]})",
        "size_word": "size",
        "y_word": word,
        "summary": _spoken(word, curve, [0, summary.last_size // 2, summary.last_size], "size"),
    }


def accuracy_table(summary: Summary) -> dict[str, Any]:
    """A dozen sizes of the first chart in numbers."""
    curve, added = summary.certified, summary.certified_additions
    attacked = {float(x): float(y) for x, y in summary.context.attacked}
    sizes = sorted({*_round_sizes(summary.last_size), *(int(x) for x in attacked if x == int(x))})
    columns = [(share_word(summary), curve)] + ([] if added is None else [(f"counting {added_words(summary)}", added)])
    rows = [[f"{size:,}", *(percent(c.at(size)) for _, c in columns)] for size in sizes]
    names = [name for name, _ in columns]
    if attacked:
        names.append("accuracy under attack")
        rows = [
            [*row, percent(attacked[size]) if size in attacked else "–"] for row, size in zip(rows, sizes, strict=True)
        ]
    for _, name, value in summary.references:
        names.append(name)
        rows = [[*row, percent(value)] for row in rows]
    return {"names": names, "rows": rows}


def degree_chart(summary: Summary) -> dict[str, Any] | None:
    """Certified accuracy over size divided by degree, on a logarithmic axis; None if degrees are unknown."""
    curve = summary.certified_over_degree
    if curve is None or len(curve.size) < 2:
        return None
    low = min(0.1, 10.0 ** math.floor(math.log10(curve.size[1])))
    high = _round_up(max(2.0, 1.05 * float(curve.size[-1])))
    inner = (curve.size > low) & (curve.size <= high)
    x = np.concatenate([[low], curve.size[inner], [high]])
    y = np.concatenate([[curve.at(low)], curve.share[inner], [curve.at(high)]])
    ticks = [10.0**e for e in range(round(math.log10(low)), math.floor(math.log10(high)) + 1)]
    edges = "degree" if summary.certificate.claim.task == "node" else "number of edges"
    return {
        "points": points(Shares(x, y)),
        "domain": [low, high],
        "ticks": ticks,
        "x_label": f"size of the attack ÷ {edges} of the target (logarithmic)",
        "ratio_word": f"size ÷ {edges}",
        "y_word": share_word(summary),
        "ceiling": CEILING if summary.certificate.claim.task == "node" else "",
        "summary": _spoken(share_word(summary), curve, [0.5, 1, 2], f"size ÷ {edges}"),
    }


def degree_table(summary: Summary) -> list[list[str]]:
    """The second chart in numbers."""
    curve = summary.certified_over_degree
    return [] if curve is None else [[f"{x:g}", percent(curve.at(x))] for x in (0.1, 0.25, 0.5, 1, 2, 5, 10, 50, 100)]


def _spoken(word: str, curve: Shares, sizes: list[float], unit: str) -> str:
    """The chart for those who cannot see it."""
    return f"{word}: " + ", ".join(f"{percent(curve.at(x))} at {unit} {x:g}" for x in sizes) + "."


def _round_up(value: float) -> float:
    scale = 10.0 ** math.floor(math.log10(value))
    return next(m * scale for m in (1, 2, 5, 10) if m * scale >= value)


def _style(key: str) -> str:
    return {"bag_of_nodes": "bag"}.get(key, key)


def _round_sizes(last: int) -> list[int]:
    """About a dozen round sizes from 0 to ``last``."""
    return list(range(0, last + 1, int(_round_up(max(1, last / TABLE_ROWS)))))
