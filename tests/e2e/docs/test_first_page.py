"""README and home show two results, one for a fraud team and one for readers of the paper, as their rows say."""

import pytest

from experiments.benchmarks import first_case
from experiments.documentation import facts
from tests.support.paths import PROJECT


@pytest.mark.parametrize(("page", "folder"), list(first_case.PAGES.items()))
def test_both_results_are_what_the_rows_say(page: str, folder: str) -> None:
    text = (PROJECT / page).read_text("utf-8")
    assert first_case.placed(text, folder) == text
    assert text.index(first_case.BEGIN) < text.index("## ", text.index(first_case.BEGIN))
    assert "| agnncert, with time stamps |" in text
    assert "| agnncert |" in text


def test_the_attacks_that_the_readme_counts_are_those_of_the_rows() -> None:
    tried = facts.attacked("attacks")
    number = f"{tried['within']:,}"
    assert tried["refuted"] == 0
    assert f"{number} targets within their certified budgets, no label changed" in (PROJECT / "README.md").read_text()
