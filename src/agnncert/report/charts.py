"""The charts of a page and their tables, as numbers and words."""

import math
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.proving.words import LOWER, UPPER, percent, whole
from agnncert.report import text
from agnncert.report.explorer import FEATURES
from agnncert.report.summary import Shares, Summary, changes_only

MOST_HOVERED = 1000  # sizes at which the pointer finds a value
TABLE_ROWS = 12
MOST_CURVES = 8  # classes with a curve of their own: as many as there are colours
SIZE_ONLY_WORD = "size alone (envelope)"
CEILING = "To the right of 1, a certified label is the one that is given without any edges."
UNIT_SIZES = (0, 1, 2, 3, 5, 10, 20, 50)
RATIOS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 50)  # of size and degree
# Rows of the table of budgets: a name, the field that grows, and the rest of the budget.
_SINGLE_CHANGES: tuple[tuple[str, str, Budget], ...] = (
    ("Edges added", "add_edges", Budget()),
    ("Edges deleted", "delete_edges", Budget()),
    ("Edges given another weight, attribute or number of copies", "change_edges", Budget()),
    ("Nodes injected, with up to 5 edges each", "inject_nodes", Budget(edges_per_injected=5)),
    ("Nodes injected, with any number of edges", "inject_nodes", Budget(edges_per_injected=math.inf)),
    ("Nodes deleted", "delete_nodes", Budget()),
)
_AMOUNTS = (1, 3, 10)  # columns there


def points(curve: Shares) -> list[dict[str, float]]:
    """Returns the points of a curve, as the charting library reads them."""
    return [{"x": round(float(x), 6), "y": round(float(y), 6)} for x, y in zip(curve.size, curve.share, strict=True)]


def accuracy_chart(summary: Summary) -> dict[str, Any]:
    """Returns certified accuracy over the size of the attack, with what it should be compared with."""
    curve, added, structure = summary.certified, summary.certified_additions, summary.certified_structure
    last = summary.shown_size
    curve = until(curve, last)
    stride = math.ceil(len(curve.size) / MOST_HOVERED)
    hovered = Shares(curve.size[::stride], curve.share[::stride])
    word = text.share_word(summary)
    return {
        "certified": points(changes_only(curve)),
        "every_size": points(hovered),
        "neighbours": [] if added is None else points(changes_only(until(added, last))),
        "neighbours_word": f"the same, counting {text.added_words(summary)}",
        "structure": [] if structure is None else points(changes_only(until(structure, last))),
        "structure_word": f"the same, counting {text.STRUCTURE_WORDS}",
        "attacked": [{"x": float(x), "y": float(y)} for x, y in sorted(summary.context.attacked)],
        "size_only": [{"x": float(x), "y": float(y)} for x, y in _size_only(summary)],
        "size_only_word": SIZE_ONLY_WORD,
        "possible": [
            {
                "key": ("reference", "ceiling")[up],
                "name": name,
                "points": [{"x": x, "y": y} for x, y in shares.items() if x <= last],
            }
            for name, up, shares in summary.possible[:1]
        ],
        "references": [
            {"key": "bag" if key == "bag_of_nodes" else key, "name": name, "value": value}
            for key, name, value in summary.references
        ],
        "max_size": last,
        "x_label": _size_label(summary),
        "size_word": "size",
        "y_word": word,
        "summary": _spoken(word, curve, [0, last // 2, last], "size"),
    }


def until(curve: Shares, last: int) -> Shares:
    """Returns a curve up to a size, at which it ends."""
    here = curve.size <= last
    return Shares(curve.size[here], curve.share[here])


def _size_label(summary: Summary) -> str:
    """Returns the name of the axis of sizes, which says if a few targets are certified beyond it."""
    label = summary.in_domain(f"size of the attack ({summary.words.step.many})")
    if summary.shown_size == summary.last_size:
        return label
    beyond = int((summary.certificate.radius > summary.shown_size).sum())
    return f"{label}; {beyond:,} of {summary.num_targets:,} {summary.targets} reach up to {summary.largest_radius:,}"


def class_chart(summary: Summary) -> dict[str, Any] | None:
    """Returns certified recall over the size of the attack, the rarest classes first. It is None without a truth."""
    curves = dict(list(summary.recalls.items())[:MOST_CURVES])
    if not curves:
        return None
    names = {k: text.class_word(summary, k) for k in curves}
    last = min(summary.shown_size, int(summary.certificate.radius.max(initial=0)) + 1)
    return {
        "curves": [
            {"name": names[k], "points": points(changes_only(Shares(curve.size[: last + 1], curve.share[: last + 1])))}
            for k, curve in curves.items()
        ],
        "max_size": last,
        "x_label": _size_label(summary),
        "summary": " ".join(_spoken(f"recall of {names[k]}", c, [0, last // 2], "size") for k, c in curves.items()),
    }


def degree_chart(summary: Summary) -> dict[str, Any] | None:
    """Returns certified accuracy over size divided by degree, on a logarithmic axis.

    It is None if degrees are unknown.
    """
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
        "y_word": text.share_word(summary),
        "ceiling": CEILING if summary.certificate.claim.task == "node" and summary.words.step.deletes_edge else "",
        "summary": _spoken(text.share_word(summary), curve, [0.5, 1, 2], f"size ÷ {edges}"),
    }


def accuracy_table(summary: Summary) -> dict[str, Any]:
    """Returns the table of :func:`accuracy_chart`, at about a dozen sizes."""
    attacked = {float(size): float(left) for size, left in summary.context.attacked}
    whole_attacks = {int(size) for size in attacked if size == int(size)}
    sizes = sorted({*_round_sizes(summary.shown_size), summary.last_size, *whole_attacks})
    names = []
    columns = []

    def add(name: str, cells: list[str]) -> None:
        names.append(name)
        columns.append(cells)

    def add_curve(name: str, curve: Shares | None) -> None:
        if curve is not None:
            add(name, [percent(curve.at(size), LOWER) for size in sizes])

    def add_points(name: str, shares: dict[float, float], bound: int = 0) -> None:
        if shares:
            add(name, [percent(shares[size], bound) if size in shares else "–" for size in sizes])

    add_curve("certified", summary.certified)
    add_curve("added or deleted only", summary.certified_structure)
    add_curve(text.added_words(summary).partition(",")[0], summary.certified_additions)
    add_points("under attack", attacked, LOWER)
    add_points(SIZE_ONLY_WORD, dict(_size_only(summary)), LOWER)
    for name, is_bound, shares in summary.possible:
        add_points(name, shares, UPPER if is_bound else LOWER)
    for _, name, value in summary.references:
        add(name, [percent(value, LOWER)] * len(sizes))
    rows = [[whole(size), *cells] for size, *cells in zip(sizes, *columns, strict=True)]
    return {"names": names, "rows": rows}


def degree_table(summary: Summary) -> list[list[str]]:
    """Returns the rows of the table of :func:`degree_chart`."""
    curve = summary.certified_over_degree
    if curve is None:
        return []
    return [[f"{ratio:g}", percent(curve.at(ratio), LOWER)] for ratio in RATIOS]


def unit_table(summary: Summary) -> dict[str, Any]:
    """Returns shares at a few numbers of edits in the context's unit. It is empty if there is none."""
    unit = summary.context.unit
    if unit is None:
        return {}
    curves = summary.unit_curves
    last = max(int(curve.size[-1]) for curve in curves.values())
    # Beyond its end a curve goes on with the targets that are certified against any number.
    rows = [
        [str(size), *(percent(curve.at(min(size, curve.size[-1])), LOWER) for curve in curves.values())]
        for size in UNIT_SIZES
        if size <= last
    ]
    return {"title": unit.title, "text": unit.text, "column": unit.column, "names": list(curves), "rows": rows}


def budget_table(summary: Summary) -> dict[str, Any]:
    """Returns shares under some budgets of one kind of change each, for a page without an explorer.

    It is empty if there is an explorer, or no target.
    """
    if summary.has_explorer or not summary.num_judged:
        return {}
    task = summary.certificate.claim.task
    rows = []
    for name, field, rest in (*_SINGLE_CHANGES, (FEATURES[task], "change_features", Budget())):
        shares = [_share_under(summary, rest.but(**{field: amount})) for amount in _AMOUNTS]
        rows.append([name, *shares])
    if task == "node":
        rows.append(["Its own features change", _share_under(summary, Budget(target_features=True)), "–", "–"])
    return {"titles": ["If the attacker does only this", *map(whole, _AMOUNTS)], "rows": rows}


def _share_under(summary: Summary, budget: Budget) -> str:
    """Returns the certified accuracy (or share) under a budget, rounded down."""
    kept = summary.certificate.holds_against(budget) & summary.counted & summary.judged
    return percent(float(kept.sum() / summary.num_judged), LOWER)


def _size_only(summary: Summary) -> list[tuple[float, float]]:
    """Returns what the size alone certifies, as far as the curves reach."""
    return [(float(size), share) for size, share in sorted(summary.context.size_only) if size <= summary.shown_size]


def _spoken(word: str, curve: Shares, sizes: list[float], unit: str) -> str:
    """Returns the chart in words, for screen readers."""
    shares = [f"{percent(curve.at(size), LOWER)} at {unit} {size:g}" for size in sizes]
    return f"{word}: {', '.join(shares)}."


def _round_up(value: float) -> float:
    scale = 10.0 ** math.floor(math.log10(value))
    return next(m * scale for m in (1, 2, 5, 10) if m * scale >= value)


def _round_sizes(last: int) -> list[int]:
    """Returns about a dozen round sizes from 0 to ``last``."""
    return list(range(0, last + 1, int(_round_up(max(1, last / TABLE_ROWS)))))
