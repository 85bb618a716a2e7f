"""``verify``: its arguments, its verdict, and what it never imports; what it derives again is tested in ``proof``."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from agnncert.errors import SettingsError
from agnncert.verdict import Verdict, verify

from ..support.certificates import certificate_of, random_evidence

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "v1"
PROVING = ("theorems", "evidence", "certificate", "samples")


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_a_verdict_reads_well():
    bad = Verdict(False, ("the radius of 3 targets does not follow from the ballots",), ("the claim, word for word",))
    assert not bad
    assert str(bad).startswith("The certificate is refused.\n  wrong: the radius of 3")
    assert str(Verdict(True, (), ("this",))) == "The certificate holds.\n  checked: this"


def test_casting_ballots_again_needs_graph_and_model(rng, tmp_path):
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


def test_what_is_no_file_is_refused_by_name(rng):
    certificate = certificate_of(random_evidence(rng, "gated/node"))
    for thing in (certificate, None, 7):
        with pytest.raises(SettingsError, match=f"takes the file of a certificate first, got a {type(thing).__name__}"):
            verify(thing)
