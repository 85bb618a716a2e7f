"""README and home show two results, one for a fraud team and one for readers of the paper, as their rows say."""

import pytest

from experiments.benchmarks import first_case
from tests.support.paths import PROJECT


@pytest.mark.parametrize(("page", "folder"), list(first_case.PAGES.items()))
def test_both_results_are_what_the_rows_say(page: str, folder: str) -> None:
    text = (PROJECT / page).read_text("utf-8")
    assert first_case.placed(text, folder) == text
    assert text.index(first_case.BEGIN) < text.index("## ", text.index(first_case.BEGIN))
    assert "| agnncert, with time stamps |" in text
    assert "| agnncert |" in text
