"""What the checks of all kinds of files share: one false statement of each sort is refused, in every kind of file.

With the check broken on purpose that is named beside it, the same file is accepted: nothing else stands in its way.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from agnncert.verdict import verify
from agnncert.verifier import check
from tests.support.forging import Draft, lay_open, seal
from tests.support.mutations import plant_text

GOLDEN = Path(__file__).parents[1] / "golden" / "v1"
KINDS = {
    "votes": "node-centric-node",
    "stacked": "stacked-sum",
    "labels": "labels-flips",
    "labels-and-edges": "joint-flips",
    "isolated": "isolated-node-views",
    "pairs": "pairs-common",
    "samples": "rs",
}
WITHOUT_STRUCTURE = ("labels", "labels-and-edges", "isolated", "samples")
OF_A_DIVISION = ("votes", "isolated")


def other_value(draft: Draft) -> None:
    stated = draft.arrays["new_neighbours"]
    stated[0] = 0 if stated[0] == -1 else -1


def false_answer(draft: Draft) -> None:
    statement, target = np.argwhere(~draft.arrays["holds"])[0]
    draft.arrays["holds"][statement, target] = True


def fewer_broken(draft: Draft) -> None:
    statement = next(each for each in draft.header["statements"] if each["broken_at_most"])
    statement["broken_at_most"] -= 1


def more_broken(draft: Draft) -> None:
    draft.header["statements"][-1]["broken_at_most"] += 1


def structure_radius(draft: Draft) -> None:
    draft.arrays["structure_radius"] = draft.arrays["radius"].copy()


def other_division(draft: Draft) -> None:
    draft.claim["digests"]["division"] = "00" * 32


# What is altered, in which kinds, what is said to it, and the check that is broken.
FORGERIES = [
    (other_value, KINDS, "new neighbours of 1 targets does not follow", "if where.any()]", "if False]"),
    (false_answer, KINDS, "the answer for .* of 1 targets does not follow", "if num_wrong:", "if False:"),
    (fewer_broken, KINDS, "stated number of targets", "if stated != number", "if stated > number"),
    (more_broken, KINDS, "stated number of targets", "if stated != number", "if stated < number"),
    (structure_radius, WITHOUT_STRUCTURE, "structure alone", 'if "structure_radius" in contents.arrays:', "if False:"),
    (other_division, OF_A_DIVISION, "digest of the division", "if stated is not None and stated !=", "if stated is None and stated !="),
]  # fmt: skip
ROWS = [(alter, kind, says, old, new) for alter, kinds, says, old, new in FORGERIES for kind in kinds]


def sealed(kind: str, alter, path: Path) -> Path:
    """A golden file of this kind with one false statement."""
    honest = GOLDEN / f"{KINDS[kind]}.cert"
    assert verify(honest).holds
    draft = lay_open(honest)
    assert draft.header["kind"] == kind
    alter(draft)
    assert seal(draft, path)
    return path


@pytest.mark.parametrize(("alter", "kind", "says", "old", "new"), ROWS)
def test_a_false_statement_is_refused_by_the_one_check_that_is_there_for_it(
    monkeypatch, tmp_path, alter, kind, says, old, new
):
    forged = sealed(kind, alter, tmp_path / "forged.cert")
    (reason,) = verify(forged).reasons
    assert re.search(says, reason)
    plant_text(monkeypatch, check, old, new)
    assert verify(forged).holds


def test_every_kind_of_file_is_tried():
    assert set(KINDS) == {lay_open(file).header["kind"] for file in GOLDEN.glob("*.cert")}
