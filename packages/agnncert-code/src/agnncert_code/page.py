"""``write_scan_page``: a scan as one HTML file, with the text of suspicious functions beside their statements' votes.

The text is untrusted. The template escapes it, the page's policy allows only its own script, and characters that
reorder or hide text are spelled out.
"""

import shlex
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
        scan: What to show. Functions with their text are shown in full.
        path: The file to write. Its folder is made if it is missing.
        certificates: Where the certificates lie, for the command that verifies them.
        detector: What scored the functions.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, render_scan(scan, certificates, detector))
    return path


def render_scan(scan: Scan, certificates: Sequence[str] = (), detector: str = "") -> str:
    """Returns the page as text."""
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
    script = (_HERE / "scan.js").read_text("utf-8")
    style = (_HERE / "scan.css").read_text("utf-8")
    return fill_page(_HERE / "scan.html.j2", values, script=script, style=style)


def lines_of(function: ScannedFunction, suspicious: int) -> list[Line]:
    """Returns the text of a function line by line, with the votes of the statements that begin there."""
    by_line: dict[int, list[StatementVote]] = {}
    for vote in function.spoke:
        by_line.setdefault(vote.line, []).append(vote)
    texts = function.source.split("\n")[:MOST_LINES]
    return [_line(k, text, by_line.get(k, []), suspicious) for k, text in enumerate(texts, start=function.line)]


_MARKS = {"for": "●", "against": "○", "open": "?", "": ""}


def _line(number: int, text: str, votes: list[StatementVote], suspicious: int) -> Line:
    stable = [vote for vote in votes if vote.stable and vote.vote >= 0]
    num_for = sum(vote.vote == suspicious for vote in stable)
    look = ""
    if num_for:
        look = "for"
    elif stable:
        look = "against"
    elif votes:
        look = "open"
    mark = _MARKS[look]
    if num_for > 1:
        mark += str(num_for)
    title = "\n".join(f"{_said(vote, suspicious)}: {visible(vote.text)}" for vote in votes)
    return Line(number, visible(text), look, mark, title)


def _said(vote: StatementVote, suspicious: int) -> str:
    """Returns what was voted where a statement stands, in words."""
    if vote.vote < 0:
        said = "no vote"
    elif not vote.stable:
        said = "too close to call"
    else:
        said = "for" if vote.vote == suspicious else "against"
    if vote.together > 1:
        said += f", one vote with {vote.together - 1} other statements"
    return said


def visible(text: str) -> str:
    r"""Returns text in which characters that reorder, hide or erase other text are spelled out.

    Example:
        >>> visible("a\u202eb\x00\tc")
        'a⟨U+202E⟩b⟨U+0000⟩    c'
    """
    characters = []
    for character in text.expandtabs(4):
        is_plain = unicodedata.category(character) not in ("Cc", "Cf", "Cs")
        characters.append(character if is_plain else f"⟨U+{ord(character):04X}⟩")
    return "".join(characters)


def _prior(scan: Scan) -> str:
    """Returns votes that classes start with, in words, or empty if there are none."""
    voting_rule = scan.certificates[0].voting_rule if scan.certificates else None
    if voting_rule is None:
        return ""
    starts = [(scan.name_of(label), votes) for label, votes in enumerate(voting_rule.class_prior) if votes]
    return ", ".join(f"“{name}” starts with {votes:,} votes" for name, votes in starts)
