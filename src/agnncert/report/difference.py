"""Shows what changed between two certificates: as tables for a terminal, and as one HTML page."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agnncert.proving.difference import CHANGES, ChangedTarget, Difference
from agnncert.proving.domain import in_domain
from agnncert.report.html import HERE, fill_page
from agnncert.storage import visible, write_atomic

MOST_ROWS = 2_000  # targets of each kind of change that a page lists
CLASS_TITLES = ("label", "before", "now", "certified before", "certified now", "came", "went", "lost", "gained")
TITLES = ("target", "label", "radius", "neighbours", "reasons")


def class_rows(difference: Difference) -> list[list[Any]]:
    """Returns one row for each label, under ``CLASS_TITLES``."""
    return [[visible(value) for value in vars(each).values()] for each in difference.classes]


def target_rows(changed: tuple[ChangedTarget, ...]) -> list[list[str]]:
    """Returns one row for each target, under ``TITLES``."""
    return [
        [
            visible(str(each.target)),
            visible(_arrow(each.old_label, each.new_label)),
            _arrow(_radius(each.old_radius), _radius(each.new_radius)),
            _arrow(_number(each.old_degree), _number(each.new_degree)),
            ", ".join(each.reasons),
        ]
        for each in changed
    ]


def titles_in(words: Mapping[str, str]) -> list[str]:
    """Returns ``TITLES`` in the words of the reader's domain."""
    return [in_domain(title, words) for title in TITLES]


def _arrow(old: str | None, new: str | None) -> str:
    if old is None or new is None or old == new:
        return new or old or "–"
    return f"{old} → {new}"


def _radius(radius: int | None) -> str | None:
    if radius is not None and radius < 0:
        return "none"
    return _number(radius)


def _number(number: int | None) -> str | None:
    return None if number is None else f"{number:,}"


def write_difference(
    difference: Difference, path: str | Path, old: str, new: str, words: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Writes a page that needs no other file, and returns its path.

    Args:
        difference: What changed.
        path: The file to write.
        old: Where the earlier certificate is.
        new: Where the later one is.
        words: What nodes, edges and neighbours are called. As they are by default.
    """
    sections = []
    for change, said in CHANGES.items():
        changed = difference.of(change)
        if changed:
            title = f"{len(changed):,} {said}"
            left_out = max(0, len(changed) - MOST_ROWS)
            sections.append({"title": title, "rows": target_rows(changed[:MOST_ROWS]), "left_out": left_out})
    page = fill_page(
        HERE / "diff.html.j2",
        {
            "title": "What changed",
            "difference": difference,
            "old": visible(old),
            "new": visible(new),
            "class_titles": CLASS_TITLES,
            "classes": class_rows(difference),
            "titles": titles_in(words),
            "sections": sections,
        },
        script="",
        style="main > header { padding-top: 3rem; }",
    )
    write_atomic(path, page)
    return Path(path)
