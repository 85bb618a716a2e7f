"""``verify``: its arguments, its verdict, and what it never imports; what it derives again is tested in ``proof``."""

import subprocess
import sys

import numpy as np
import pytest

from agnncert.errors import SettingsError
from agnncert.verdict import Verdict, verify
from tests.support.certificates import certificate_of, random_evidence
from tests.support.paths import GOLDEN

PROVING = ("theorems", "evidence", "certificate", "samples")


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_a_verdict_reads_well():
    bad = Verdict(False, ("the radius of 3 targets does not follow from the votes",), ("the claim, word for word",))
    assert not bad
    assert str(bad).startswith("The certificate is refused.\n  wrong: the radius of 3")
    assert str(Verdict(True, (), ("this",))) == (
        "The arithmetic of this file is consistent. Graph and model were not checked.\n  checked: this"
    )
    assert "The model was not checked." in str(Verdict(True, (), (), compared=("data",)))
    assert str(Verdict(True, (), (), compared=("data", "model"))).startswith("The certificate holds for this graph")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("node-centric-node", "label, radius and new neighbours of"),
        ("stacked-sum", "label, radius and new neighbours of"),
        ("labels-flips", "label and radius of"),
        ("isolated-node-views", "label and radius of"),
    ],
)
def test_a_verdict_speaks_of_new_neighbours_only_where_a_file_does(name, says):
    assert verify(GOLDEN / f"{name}.cert").checked[1].startswith(says)


def test_casting_votes_again_needs_graph_and_model(rng, tmp_path):
    certificate_of(random_evidence(rng, "gated/node")).save(tmp_path / "a.cert")
    with pytest.raises(SettingsError, match="both the graph and the model"):
        verify(tmp_path / "a.cert", recheck=3)
    with pytest.raises(SettingsError, match="both the graph and the model"):
        verify(tmp_path / "a.cert", model=object())


def test_verifying_a_file_never_imports_torch(rng, tmp_path):
    certificate_of(random_evidence(rng, "edge-centric/node")).save(tmp_path / "a.cert")
    program = (
        "import sys, agnncert\n"
        f"assert agnncert.verify({str(tmp_path / 'a.cert')!r}).holds\n"
        f"assert agnncert.verify({str(tmp_path / 'a.cert')!r}).holds\n"
        f"assert agnncert.load_certificate({str(tmp_path / 'a.cert')!r}).num_targets == 30\n"
        "heavy = [name for name in sys.modules if name.split('.')[0] in ('torch', 'torch_geometric', 'scipy', 'pandas')]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["edge-centric-node", "custom-node", "gnncert-en-graph", "bi-rs", "sparse-rs"])
def test_verifying_a_file_imports_nothing_of_the_proving_half(name):
    program = (
        "import sys, agnncert\n"
        f"assert agnncert.verify({str(GOLDEN / f'{name}.cert')!r}).holds\n"
        f"proving = tuple('agnncert.proving.' + name for name in {PROVING!r})\n"
        "heavy = ('torch', 'torch_geometric', 'scipy', 'pandas')\n"
        "bad = [name for name in sys.modules if name.startswith(proving) or name.split('.')[0] in heavy]\n"
        "assert not bad, bad\n"
        "assert 'agnncert.verifier.check' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_neither_a_file_nor_a_certificate_is_refused_by_name():
    for thing in (None, 7):
        with pytest.raises(SettingsError, match=f"takes a certificate or its file first, got a {type(thing).__name__}"):
            verify(thing)


def test_a_file_alone_is_checked_without_code_that_proves_or_predicts(rng, tmp_path):
    certificate_of(random_evidence(rng, "node-centric/node")).save(tmp_path / "a.cert")
    verify(tmp_path / "a.cert")  # imports are not counted
    modules = set()

    def seen(frame, event, _):
        place = frame.f_code.co_filename
        if event == "call" and "/src/agnncert" in place:
            modules.add(place.split("/src/")[1])

    sys.setprofile(seen)
    try:
        verify(tmp_path / "a.cert")
    finally:
        sys.setprofile(None)
    trusted = ("agnncert/certificates/", "agnncert/verifier/", "agnncert/verdict.py", "agnncert/storage.py")
    assert {"agnncert/verdict.py", "agnncert/certificates/file.py", "agnncert/verifier/recount.py"} <= modules
    assert {module for module in modules if not module.startswith(trusted)} <= {
        "agnncert/addons.py",
        "agnncert/errors.py",
    }


COMPARED = {
    "edge-centric-node": (("data",), ("data", "model")),
    "custom-node": ((), None),  # the division is not known, so its subgraphs cannot be compared; with a model: refused
    "rs": (("data",), ("data",)),  # samples are drawn again only if that is asked for
}


@pytest.mark.parametrize("name", COMPARED)
def test_a_verdict_names_what_the_file_was_compared_with(name):
    from tests.soundness.golden.examples import EXAMPLES

    file, example = GOLDEN / f"{name}.cert", EXAMPLES[name]
    with_data, with_model = COMPARED[name]
    assert verify(file).compared == ()
    assert verify(file, data=example.data()).compared == with_data
    verdict = verify(file, data=example.data(), model=example.model())
    assert verdict.holds == (with_model is not None)
    assert verdict.compared == (with_model or ())
    if name == "rs":
        assert verify(file, data=example.data(), model=example.model(), recheck=1).compared == ("data", "model")


def test_a_file_of_invented_votes_is_called_consistent_and_no_more(rng, tmp_path):
    """Once "The certificate holds." of a constant model on data that was made up."""
    evidence = random_evidence(rng, "node-centric/node")
    certificate_of(evidence, truth=evidence.label_and_radius()[0]).save(tmp_path / "a.cert")
    verdict = verify(tmp_path / "a.cert")
    assert verdict
    words = str(verdict)
    assert words.startswith("The arithmetic of this file is consistent. Graph and model were not checked.\n")
    assert "holds" not in words
    assert "correct" not in words
    assert "not checked: whether the targets, ids, true classes and degrees are those of a graph" in words


def test_a_certificate_is_verified_as_its_file_would_be(rng, tmp_path) -> None:
    certificate = certificate_of(random_evidence(rng, "node-centric/node"))
    certificate.save(tmp_path / "made.cert")
    assert verify(certificate) == verify(tmp_path / "made.cert")
    forged = certificate_of(random_evidence(rng, "node-centric/node"))
    object.__setattr__(forged, "radius", forged.radius + 1)
    assert not verify(forged)
