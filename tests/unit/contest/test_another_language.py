"""A checker in JavaScript that was written from the page about the format says what ours says, file by file."""

import copy
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agnncert.contest.checker import check, wrong_form
from agnncert.contest.file import read_contest, to_json
from agnncert.contest.form import EXTENSIONS
from agnncert.errors import CertificateError
from tests.soundness.formal.test_contests import any_statements
from tests.support.contests import random_contest, seven_models, with_everything
from tests.support.paths import PROJECT
from tests.unit.contest.test_forged_forms import altered
from tests.unit.contest.test_hostile_files import CASES, EXTENDED, TEXTS

pytestmark = pytest.mark.browser
ASK = """([source, texts]) => {
  const { checkContest, Refused } = new Function(`${source}; return { checkContest, Refused };`)();
  return texts.map((text) => {
    try { return checkContest(text); } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return null;
    }
  });
}"""


def by_ours(text: str, file: Path) -> list[bool] | None:
    """Which statements follow; None if the file is refused."""
    file.write_text(text, encoding="utf-8")
    try:
        contest = read_contest(file)
    except CertificateError:
        return None
    if wrong_form(contest):
        return None
    failed = {failure.statement for failure in check(contest)}
    return [place not in failed for place in range(len(contest.statements))]


def by_script(blank_page: Any, texts: list[str]) -> list[list[bool] | None]:
    source = (PROJECT / "examples" / "check_contest.js").read_text("utf-8")
    found: list[list[bool] | None] = blank_page.evaluate(ASK, [source, texts])
    return found


def hostile() -> list[str]:
    texts = [text for text in TEXTS.values() if text.isascii()]
    for change in CASES.values():
        value = seven_models()
        change(value)
        texts.append(json.dumps(value))
    for change in EXTENDED.values():
        value = copy.deepcopy(to_json(with_everything()))
        change(value)
        texts.append(json.dumps(value))
    return texts


def test_it_refuses_the_hostile_files(blank_page: Any, tmp_path: Path) -> None:
    for said in by_script(blank_page, hostile()):
        assert said is None or not all(said)


def test_both_say_the_same_of_true_forged_and_hostile_files(blank_page: Any, tmp_path: Path) -> None:
    rng, texts, seen = np.random.default_rng(5), hostile(), Counter[str]()
    for _ in range(40):
        contest = random_contest(rng, tuple(name for name in EXTENSIONS if rng.random() < 0.4))
        value = to_json(replace(contest, statements=tuple(any_statements(rng, contest))))
        texts += [json.dumps(value), *(json.dumps(altered(rng, value)) for _ in range(8))]
    for text, theirs in zip(texts, by_script(blank_page, texts), strict=True):
        ours = by_ours(text, tmp_path / "contest.json")
        assert theirs == ours, text
        seen.update(["refused"] if ours is None else ["follows" if each else "fails" for each in ours])
    assert min(seen[what] for what in ("refused", "follows", "fails")) > 100, seen
