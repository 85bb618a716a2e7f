"""What the checks of all kinds of files share: one false statement of each sort is refused, in every kind of file.

With the check broken on purpose that is named beside it, the same file is accepted: nothing else stands in its way.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from agnncert import agreement
from agnncert.certificates import record
from agnncert.certificates.file import read_contents
from agnncert.errors import CertificateError
from agnncert.isolated.record import IsolatedRecord
from agnncert.labels.joint_record import JointRecord
from agnncert.labels.record import LabelRecord
from agnncert.pairs.record import PairRecord
from agnncert.stacked.record import StackedRecord
from agnncert.verdict import verify
from agnncert.verifier import check, file_checker
from tests.soundness.forger.forging import Draft, lay_open, seal
from tests.soundness.forger.judging import verdict_on
from tests.soundness.forger.world import world_of
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
    "append": "append-ledger",
    "graph-votes": "graph-votes-structure",
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
    (structure_radius, WITHOUT_STRUCTURE, "structure alone", "if is_stated and not self.has_structure_radius:", "if False:"),
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
    plant_text(monkeypatch, file_checker if alter is structure_radius else check, old, new)
    assert verify(forged).holds


def test_every_kind_of_file_is_tried():
    assert set(KINDS) == {lay_open(file).header["kind"] for file in GOLDEN.glob("*.cert")}


# An array of each record that is said to have another type, with the same numbers.
OTHER_TYPES = {
    StackedRecord: ("stacked-sum", "prior", np.int32),
    LabelRecord: ("labels-flips", "cap", np.int32),
    JointRecord: ("joint-flips", "voter", np.int32),
    IsolatedRecord: ("isolated-node-views", "vote", np.int32),
    PairRecord: ("pairs-common", "pairs", np.int32),
}


@pytest.mark.parametrize("mistake", ["if wrong:", "if found.dtype != expected.dtype:"])
@pytest.mark.parametrize("kind", OTHER_TYPES)
def test_a_record_of_other_types_is_refused_by_the_one_check_that_is_there_for_it(monkeypatch, kind, mistake):
    file, name, dtype = OTHER_TYPES[kind]
    contents = read_contents(GOLDEN / f"{file}.cert")
    tensors = {**contents.evidence, name: contents.evidence[name].astype(dtype)}
    with pytest.raises(CertificateError, match="make no sense"):
        kind.load(tensors, contents.settings)
    plant_text(monkeypatch, record, mistake, "if False:")
    kind.load(tensors, contents.settings)


def other_prior(draft: Draft) -> None:
    draft["prior"][0, 0] += 2


def other_notes(draft: Draft) -> None:
    draft.claim["notes"] = ["trained with care"]


# Who has graph and model compares these. The check is broken that is named beside them.
BESIDE_THE_MODEL = [
    *((other_prior, kind, "prior is not what the model computes", "> slack.get(name, 0):", "> 2:") for kind in ("stacked", "pairs")),
    *((other_notes, kind, "does not name the defence", "if contents.claim.notes != (str(defence),):", "if False:")
      for kind in ("stacked", "labels", "labels-and-edges", "isolated", "pairs", "samples")),
]  # fmt: skip


@pytest.mark.parametrize(("alter", "kind", "says", "old", "new"), BESIDE_THE_MODEL)
def test_what_the_model_contradicts_is_refused_by_the_one_comparison_that_is_there_for_it(
    monkeypatch, tmp_path, alter, kind, says, old, new
):
    world = world_of(f"golden {KINDS[kind]}")
    forged = sealed(kind, alter, tmp_path / "forged.cert")
    assert verify(forged).holds
    (reason,) = verdict_on(forged, world).reasons
    assert says in reason
    plant_text(monkeypatch, agreement, old, new)
    assert verdict_on(forged, world).holds
