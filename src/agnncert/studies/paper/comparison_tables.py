"""Tables of the remade comparisons, from their rows, written into the page between its markers."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agnncert.errors import SettingsError
from agnncert.report.tables import laid_out
from agnncert.studies.paper.comparisons import threats
from agnncert.studies.paper.rows import Row, read_rows
from agnncert.studies.paper.spec import GRAPH_SETS, NODE_SETS
from agnncert.studies.run import GRAPH_FREE, MAJORITY, UNDEFENDED

PAGE = Path("docs/comparisons.md")
NODE_COLUMNS = (0, 1, 5, 10, 20, 30, 50, 70, 100, 140, 150)
GRAPH_COLUMNS = (0, 1, 2, 3, 4, 5, 7, 10, 12, 15, 17)
_MARKER = re.compile(r"(<!-- table: ([\w ,.=-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """One line of a table: a defence under one rule, or the best of several.

    Attributes:
        name: What it is called.
        defence: Which rows it is made from.
        rule: Which of their curves.
    """

    name: str
    defence: str
    rule: str = "certified"


NODE_LINES = (
    Line("undefended GCN (no proof)", UNDEFENDED),
    Line("graph-free MLP", GRAPH_FREE),
    Line("majority class", MAJORITY),
    Line("AGNNCert-E, published rule", "edge-centric", "published rule"),
    Line("AGNNCert-E, sharper rule", "edge-centric"),
    Line("AGNNCert-N", "node-centric"),
    Line("Bi-RS, released test (unsound)", "bi-rs", "legacy-unsound"),
    Line("Bi-RS, sound test", "bi-rs"),
)
GRAPH_LINES = (
    Line("undefended GCN (no proof)", UNDEFENDED),
    Line("graph-free MLP", GRAPH_FREE),
    Line("majority class", MAJORITY),
    Line("AGNNCert-E", "edge-centric"),
    Line("AGNNCert-N", "node-centric"),
)


def curve(rows: Sequence[Row], line: Line, attack: str) -> dict[int, float]:
    """Certified accuracy by size; of several rows, such as noise levels, the best at each size."""
    if line.defence == MAJORITY:
        return {size: rows[0]["accuracy_majority"] for size in rows[0]["sizes"]}
    found: dict[int, float] = {}
    for row in rows:
        shares = row["certified"].get(line.rule, {}).get(attack)
        if row["setting"]["defence"] == line.defence and shares is not None:
            for size, share in zip(row["sizes"], shares, strict=True):
                found[size] = max(found.get(size, 0.0), share)
    return found


def curves_table(rows: Sequence[Row], lines: Iterable[Line], attack: str, columns: Sequence[int]) -> str:
    """Certified accuracy in percent, one line per defence and one column per size."""
    body = []
    for line in lines:
        found = curve(rows, line, attack)
        if found:
            body.append([line.name, *(f"{100 * found[size]:.1f}" for size in columns), *_cost(rows, line)])
    return laid_out("markdown", ["", *map(str, columns), "certified in"], body)


def _cost(rows: Sequence[Row], line: Line) -> list[str]:
    mine = [row for row in rows if row["setting"]["defence"] == line.defence]
    seconds = sum(row["seconds_certification"] for row in mine)
    told = f"{seconds:.1f} s" if mine else "–"
    return [told + (f" ({len(mine)} noise levels)" if len(mine) > 1 else "")]


def half_table(rows: Sequence[Row], lines: Iterable[Line], attacks: Iterable[str]) -> str:
    """The largest size at which at least half of all targets are correct and certified, by attack."""
    attacks = list(attacks)
    body = []
    for line in lines:
        found = [curve(rows, line, attack) for attack in attacks]
        if all(found):
            body.append([line.name, *(_largest(one, line.defence in (GRAPH_FREE, MAJORITY)) for one in found)])
    return laid_out("markdown", ["", *(attack.removeprefix("injection, ") for attack in attacks)], body)


def _largest(found: dict[int, float], no_limit: bool) -> str:
    held = max((size for size, share in found.items() if share >= 0.5), default=None)
    if held is None:
        return "–"
    if held < max(found):
        return str(held)
    return "any" if no_limit else f"{held} or more"


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Every table of the page, by the name in its marker; datasets without rows are left out."""
    found = {}
    latest = {row["key"]: row for row in rows}.values()  # one that was made again stands behind the old one
    for dataset in (*NODE_SETS, *GRAPH_SETS):
        mine = [row for row in latest if row["setting"]["dataset"] == dataset]
        if not mine:
            continue
        if dataset in NODE_SETS:
            found[f"{dataset} injection"] = curves_table(mine, NODE_LINES, "injection, tau=5", NODE_COLUMNS)
            found[f"{dataset} tau"] = half_table(mine, NODE_LINES, threats("node"))
            continue
        both = "edges and features"
        edges = (*GRAPH_LINES, Line("GNNCert-E", "gnncert-e"))
        found[f"{dataset} edges"] = curves_table(mine, edges, "edges", GRAPH_COLUMNS)
        for name, attack in ((both, both), (f"{both}, even", f"{both}, even")):
            lines = (*GRAPH_LINES, Line("GNNCert-EN, union count", "gnncert-en"))
            found[f"{dataset} {name}"] = curves_table(mine, lines, attack, GRAPH_COLUMNS)
    return found


def filled(page: str, rows: Sequence[Row]) -> str:
    """The page with every table between its markers made anew.

    Raises:
        SettingsError: A marker names a table that the rows do not give.
    """
    made = tables(rows)

    def fill(match: re.Match[str]) -> str:
        if match[2] not in made:
            raise SettingsError(f'the page asks for the table "{match[2]}", for which there are no rows.')
        return f"{match[1]}{made[match[2]]}\n{match[3]}"

    return _MARKER.sub(fill, page)


def update(rows_file: Path, page: Path = PAGE) -> None:
    """Writes the tables of the rows into the page."""
    page.write_text(filled(page.read_text(encoding="utf-8"), list(read_rows(rows_file))), encoding="utf-8")
