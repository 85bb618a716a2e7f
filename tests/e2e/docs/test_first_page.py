"""README, home, measurements and results begin with the case that only edges decide, as its rows say."""

import pytest

from experiments.benchmarks import first_case
from tests.support.paths import PROJECT


@pytest.mark.parametrize(("page", "folder"), list(first_case.PAGES.items()))
def test_the_first_case_is_what_the_rows_say(page: str, folder: str) -> None:
    text = (PROJECT / page).read_text("utf-8")
    assert first_case.placed(text, folder) == text
    assert text.index(first_case.BEGIN) < text.index("## ", text.index(first_case.BEGIN))
    assert "| one vote per edge |" in text
