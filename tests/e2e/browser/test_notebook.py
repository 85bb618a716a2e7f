"""What a notebook shows of a hostile certificate, in a real browser."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agnncert.proving.printed import SHOWN_ROWS
from tests.support.synthetic import made_up_certificate

pytestmark = pytest.mark.browser

IDS = [
    '</script><script>alert("id")</script>', "<img src=x onerror=alert(1)><svg onload=alert(1)>",
    "</td></tr></table></div><h1>The certificate holds</h1>", "a\nb\x1b[2J\u202etxt", "&lt;b&gt;",
    r"$\href{javascript:alert(1)}{x}$", "\"'><a href=javascript:alert(1)>x</a>", "7",
]  # fmt: skip


def test_ids_that_are_markup_are_shown_as_text(tmp_path: Path, open_page: Any) -> None:
    assert len(IDS) == SHOWN_ROWS
    certificate, _ = made_up_certificate(np.random.default_rng(0), "edge-centric/node", SHOWN_ROWS, 9, 3, target=IDS)
    cells = certificate._repr_html_() + certificate.to_pandas().to_html()
    (tmp_path / "cell.html").write_text(f"<!doctype html><meta charset=utf-8><body>{cells}</body>", encoding="utf-8")
    page = open_page(tmp_path / "cell.html", ready=False)
    shown = [row.locator("td").first.text_content() for row in page.locator("div tbody tr").all()]
    assert shown == [one.replace("a\nb\x1b[2J\u202e", r"a\nb\x1b[2J\u202e") for one in IDS]
    assert page.locator("body script, body img, body svg, body a, body h1").count() == 0
    assert page.locator(".mathjax_ignore.tex2jax_ignore td").count() == 4 * SHOWN_ROWS, "formulas are left as text"
