"""Finds figures on a page that look measured: somebody typed them, and they may be wrong tomorrow.

Left out is what something else compares: blocks made from rows, code blocks that run, and names in ``code``.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.doc_blocks import fenced_blocks

# Blocks between comments that a test compares with the committed rows.
_MADE = re.compile(r"<!-- (?:rows: |taught: |estimates|parts|two results).*?-->.*?<!-- end -->", re.DOTALL)
_HIDDEN = (
    _MADE,
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)"),  # code within a line
    re.compile(r"\]\([^)\s]*\)"),  # where a link leads
    re.compile(r"https?://\S+"),
    re.compile(r"</?[a-z][^>]*>"),
)
_SPACE = r"[ \N{NO-BREAK SPACE}\n]"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_UNITS = "%|percent|points|[mµn]?s|seconds?|minutes?|min|hours?|h|days?|[kKMGT]i?B|bytes|million|billion"
_COUNTED = "attacks?|attempts|mutants|mutations|events per second|requests per second|lines|times as|targets|nodes|certificates"
_FIGURE = re.compile(
    rf"(?<![\w.,^-])(?:"
    rf"(?:{_NUMBER}){_SPACE}?(?:{_UNITS})(?!\w)"  # 12 %, 3.5 points, 8 MB
    rf"|\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?"  # 97,739
    rf"|\d*\.\d+(?![\w.]*\d)"  # .931, 0.8
    rf"|(?:{_NUMBER}){_SPACE}(?:of{_SPACE}\d+|(?:{_COUNTED})\b)"  # 12 of 40, 300 attacks
    rf")"
)


@dataclass(frozen=True)
class Found:
    """A figure, and where it begins and ends on its page."""

    text: str
    line: int
    begin: int
    end: int
    context: str


def figures_of(page: Path) -> list[Found]:
    """Returns the figures of a page that nothing compares."""
    return figures_in(page.read_text(encoding="utf-8"), fenced_blocks(page))


def figures_in(text: str, blocks) -> list[Found]:
    lines = text.splitlines(keepends=True)
    for block in blocks:
        for number in range(block.line, block.line + block.text.count("\n") + 1):
            if not block.is_typed or lines[number].lstrip().startswith("$ "):
                lines[number] = _blank(lines[number])
    seen = "".join(lines)
    for hidden in _HIDDEN:
        seen = hidden.sub(lambda found: _blank(found[0]), seen)
    return [
        Found(
            found[0],
            seen.count("\n", 0, found.start()) + 1,
            found.start(),
            found.end(),
            text[max(0, found.start() - 40) : found.end() + 40].replace("\n", " "),
        )
        for found in _FIGURE.finditer(seen)
    ]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
