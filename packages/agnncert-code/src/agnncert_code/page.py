"""``write_scan_page``: a scan as one HTML file, with the text of suspicious functions beside their statements' votes.

The text is untrusted. The template escapes it, the page's policy allows only its own script, and characters that
reorder or hide text are spelled out.
"""

import shlex
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agnncert.report.html import fill_page
from agnncert.storage import write_atomic
from agnncert_code.findings import Scan, ScannedFunction, StatementVote, accuracy_text, amount
from agnncert_code.sarif import edits_words

_HERE = Path(__file__).parent
MOST_ROWS = 2_000  # of the table; the file beside the page has all
MOST_LINES = 600  # of one function
OPEN = 3  # functions whose text is unfolded at first


@dataclass(frozen=True)
class Line:
    """One line of a function's text, and what was voted where its statements begin.

    Attributes:
        number: Its number in the file.
        text: Its text, with nothing in it that acts on the reader's screen.
        look: ``"for"`` if a statement here spoke for the suspicious class, ``"against"``, ``"open"`` if a vote was
            too close to call, or empty if no statement begins here.
        mark: The same as a character, for readers who see no colours.
        title: What each statement of the line voted.
    """

    number: int
    text: str
    look: str
    mark: str
    title: str


def write_scan_page(scan: Scan, path: str | Path, certificates: Sequence[str] = (), detector: str = "") -> Path:
    """Writes a scan as one page that opens anywhere, without a network.

    Args:
        scan: What to show; functions with their text are shown in full.
        path: The file to write; its folder is made if it is missing.
        certificates: Where the certificates lie, for the command that verifies them.
        detector: What scored the functions.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, render_scan(scan, certificates, detector))
    return path


def render_scan(scan: Scan, certificates: Sequence[str] = (), detector: str = "") -> str:
    """The page as text."""
    numbered = list(enumerate(scan.functions))
    values = dict(
        scan=scan,
        name=scan.name_of(scan.suspicious),
        claim=scan.certificates[0].claim if scan.certificates else None,
        prior=_prior(scan),
        detector=detector,
        accuracy=accuracy_text(scan.accuracy),
        rows=numbered[:MOST_ROWS],
        shown=[(k, function, lines_of(function, scan.suspicious)) for k, function in numbered if function.source],
        withstanding=len(scan.withstanding(1)),
        partial=sum(function.partial for function in scan.functions),
        open_at_first=OPEN,
        most_lines=MOST_LINES,
        amount=amount,
        edits_words=edits_words,
        visible=visible,
        verify=[f"agnncert verify {shlex.quote(place)}" for place in certificates],
    )
    script, style = ((_HERE / name).read_text("utf-8") for name in ("scan.js", "scan.css"))
    return fill_page(_HERE / "scan.html.j2", values, script=script, style=style)


def lines_of(function: ScannedFunction, suspicious: int) -> list[Line]:
    """The text of a function line by line, with the votes of the statements that begin there."""
    by_line: dict[int, list[StatementVote]] = {}
    for one in function.spoke:
        by_line.setdefault(one.line, []).append(one)
    texts = function.source.split("\n")[:MOST_LINES]
    return [_line(k, text, by_line.get(k, []), suspicious) for k, text in enumerate(texts, start=function.line)]


def _line(number: int, text: str, votes: list[StatementVote], suspicious: int) -> Line:
    sure = [one for one in votes if one.stable and one.vote >= 0]
    count = sum(one.vote == suspicious for one in sure)
    look = "for" if count else "against" if sure else "open" if votes else ""
    mark = {"for": "●", "against": "○", "open": "?", "": ""}[look] + (f"{count}" if count > 1 else "")
    return Line(number, visible(text), look, mark, "\n".join(_told(one, suspicious) for one in votes))


def _told(one: StatementVote, suspicious: int) -> str:
    said = "too close to call" if not one.stable else "for" if one.vote == suspicious else "against"
    said = "no vote" if one.vote < 0 else said
    shared = f", one vote with {one.together - 1} other statements" if one.together > 1 else ""
    return f"{said}{shared}: {visible(one.text)}"


def visible(text: str) -> str:
    r"""Text in which characters that reorder, hide or erase other text are spelled out.

    Example:
        >>> visible("a\u202eb\x00\tc")
        'a⟨U+202E⟩b⟨U+0000⟩    c'
    """
    text = text.expandtabs(4)
    return "".join(c if unicodedata.category(c) not in ("Cc", "Cf", "Cs") else f"⟨U+{ord(c):04X}⟩" for c in text)


def _prior(scan: Scan) -> str:
    """Votes that classes start with, in words; empty if there are none."""
    voting_rule: Any = scan.certificates[0].voting_rule if scan.certificates else None
    given = (
        []
        if voting_rule is None
        else [(scan.name_of(k), votes) for k, votes in enumerate(voting_rule.class_prior) if votes]
    )
    return ", ".join(f"“{name}” starts with {votes:,} votes" for name, votes in given)
