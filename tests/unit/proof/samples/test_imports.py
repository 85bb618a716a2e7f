import subprocess
import sys


def test_certificates_from_samples_can_be_read_without_torch():
    code = "import sys, agnncert.proof.samples; print('torch' in sys.modules, 'scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
