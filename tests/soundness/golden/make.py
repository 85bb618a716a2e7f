"""Makes the example certificates of the format: ``python -m tests.soundness.golden.make``.

Only when the format or the words of a claim change before a release. Files of released versions stay as they are.
"""

import json
from pathlib import Path

from agnncert.certificates.file import VERSION
from agnncert.proving.certificate import Certificate, usual_budgets
from tests.soundness.golden.examples import EXAMPLES, OWN

FOLDER = Path(__file__).parent / f"v{VERSION}"


def summary(certificate: Certificate) -> dict[str, list[str]]:
    """What the example proves, for a reader and for the test."""
    names = ("target", "label", "radius", "new_neighbours")
    return {name: [str(value) for value in getattr(certificate, name).tolist()] for name in names}


def make_all(folder: Path = FOLDER) -> None:
    """Writes every example, and what it proves."""
    folder.mkdir(exist_ok=True)
    proved = {}
    for name, example in EXAMPLES.items():
        certificate = example.certify()
        usual = usual_budgets(certificate.claim)
        certificate.save(folder / f"{name}.cert", example.budgets or ((*usual, OWN) if usual else ()))
        proved[name] = summary(certificate)
    (folder / "proved.json").write_text(json.dumps(proved, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    make_all()
