"""README and home show two results, one for a fraud team and one for readers of the paper, as their rows say."""

import pytest

from experiments.benchmarks import first_case
from tests.support.paths import PROJECT


@pytest.mark.parametrize(("page", "folder"), list(first_case.PAGES.items()))
def test_both_results_are_what_the_rows_say(page: str, folder: str) -> None:
    text = (PROJECT / page).read_text("utf-8")
    assert first_case.placed(text, folder) == text
    assert text.index(first_case.BEGIN) < text.index("## ", text.index(first_case.BEGIN))
    assert "| agnncert, stacked votes |" in text
    assert "| the best model without edges, needs no proof |" in text


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_readme_says_how_a_clone_is_tried_and_tested(target: str) -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    block = readme.split("## Try it\n")[1].split("```")[1]
    commands = [line.split("#")[0].strip() for line in block.splitlines()]
    assert f"make {target}" in commands
    assert f"\n{target}:" in (PROJECT / "Makefile").read_text("utf-8")
