"""Where things lie in the repository."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
GOLDEN = PROJECT / "tests" / "soundness" / "golden" / "v1"
CORPUS = PROJECT / "tests" / "soundness" / "corpus"
