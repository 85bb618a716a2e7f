"""Our verifier over the corpus: what is true holds, what is false is refused, with what it takes and for the reason."""

import json
import math
from pathlib import Path

import pytest

from agnncert.verdict import verify
from tests.soundness.corpus.faults import FAULTS
from tests.soundness.golden.examples import EXAMPLES
from tests.support.theorems import THEOREMS

HERE = Path(__file__).parent
INDEX = json.loads((HERE / "index.json").read_text(encoding="utf-8"))
FALSE = [entry for entry in INDEX if not entry["true"]]
ALONE = [entry for entry in FALSE if entry["found_with"] == "file"]
BESIDE = [entry for entry in FALSE if entry["found_with"] != "file"]


def by_file(entry) -> str:
    return Path(entry["file"]).stem


def given(entry) -> dict:
    """What a checker is handed beside the file."""
    example = EXAMPLES[entry["example"]]
    own = {"division": example.division} if entry["example"].startswith("custom") else {}
    return {"data": example.data(), **own}


@pytest.mark.parametrize("entry", [entry for entry in INDEX if entry["true"]], ids=by_file)
def test_a_true_certificate_holds(entry):
    verdict = verify(HERE / entry["file"])
    assert verdict, verdict


@pytest.mark.parametrize("entry", ALONE, ids=by_file)
def test_what_is_false_in_itself_is_refused_from_the_file_alone(entry):
    verdict = verify(HERE / entry["file"])
    assert not verdict
    assert any(entry["says"] in reason for reason in verdict.reasons), verdict


@pytest.mark.parametrize("entry", BESIDE, ids=by_file)
def test_what_is_false_about_a_graph_or_a_model_is_refused_by_whoever_has_it(entry):
    path, more = HERE / entry["file"], given(entry)
    assert verify(path)  # its arithmetic is right
    if entry["found_with"] == "model":
        assert verify(path, **more)
        more |= {"model": EXAMPLES[entry["example"]].model(), "recheck": math.inf}
    verdict = verify(path, **more)
    assert not verdict
    assert any(entry["says"] in reason for reason in verdict.reasons), verdict


def test_the_index_is_complete():
    files = {path.relative_to(HERE).as_posix() for path in HERE.glob("*/*.cert")}
    assert files == {entry["file"] for entry in INDEX if not entry["file"].startswith("..")}
    assert set(FAULTS) <= {entry["fault"] for entry in FALSE}
    assert set(THEOREMS) <= {entry["theorem"] for entry in INDEX if entry["true"]}
    assert {entry["found_with"] for entry in FALSE} == {"file", "graph", "model"}
    assert all(entry["why"].endswith(".") for entry in INDEX)
