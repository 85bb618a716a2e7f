"""How objects of this library look in a notebook. Imports nothing that has to be installed."""

import html
from collections.abc import Iterable, Sequence

_NO_FORMULAS = 'class="tex2jax_ignore mathjax_ignore"'  # a formula can hold a link


def framed(content: str) -> str:
    """Returns HTML in a frame in which a notebook looks for no formulas."""
    return f"<div {_NO_FORMULAS}>{content}</div>"


def paragraph(text: str) -> str:
    """Returns lines of text as HTML; the text may hold anything.

    Example:
        >>> paragraph("a < b")
        '<p>a &lt; b</p>'
    """
    lines = html.escape(text).replace("\n", "<br>")
    return f"<p>{lines}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns texts as an HTML table; the texts may hold anything.

    Args:
        head: Names of the columns. They are left out if there are none.
        rows: The texts of each row.
    """
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    top = f"<thead><tr>{names}</tr></thead>" if names else ""
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _cells(texts: Iterable[str]) -> str:
    return "".join(f"<td>{html.escape(text)}</td>" for text in texts)
