"""Checks what built packages hold: ``python .ci/contents.py dist VERSION``."""

import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

NOT_IN_SDIST = ("experiments/cards/", "tests/soundness/corpus/", ".cache/", ".venv/")
PACKAGES = ("agnncert", "agnncert_code", "agnncert_large", "agnncert_live", "agnncert_peers")


def check_wheel(file: Path, package: str, version: str) -> list[str]:
    """Returns what is wrong with a wheel."""
    with zipfile.ZipFile(file) as wheel:
        names = wheel.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        fields = HeaderParser().parsestr(wheel.read(metadata).decode())
    wrong = []
    if fields["Version"] != version:
        wrong.append(f"its version is {fields['Version']}")
    if not any(name.endswith("LICENSE") for name in names):
        wrong.append("it has no LICENSE")
    if not any(
        entry.startswith("Programming Language :: Python :: 3.11") for entry in fields.get_all("Classifier", [])
    ):
        wrong.append("it has no classifiers")
    if not any(entry.startswith("Operating System ::") for entry in fields.get_all("Classifier", [])):
        wrong.append("it does not say for which operating system it is")
    if "](docs/" in fields.get_payload() or "](../" in fields.get_payload():
        wrong.append("its README links into the repository")
    if f"{package}/py.typed" not in names:
        wrong.append("it has no py.typed, so its types are not seen")
    strangers = {name.split("/")[0] for name in names} - {package, f"{package}-{version}.dist-info"}
    if strangers:
        wrong.append(f"it holds {', '.join(sorted(strangers))} besides its package")
    return wrong


def check_sdist(file: Path) -> list[str]:
    """Returns what is wrong with an sdist."""
    with tarfile.open(file) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    held = [place for place in NOT_IN_SDIST if any(name.startswith(place) for name in names)]
    wrong = [f"it holds {place}" for place in held]
    if "LICENSE" not in names:
        wrong.append("it has no LICENSE")
    return wrong


def main(folder: Path, version: str) -> None:
    """Checks all wheels and sdists, and fails if something is wrong with one of them."""
    findings: dict[str, list[str]] = {}
    for package in PACKAGES:
        wheel = folder / f"{package}-{version}-py3-none-any.whl"
        sdist = folder / f"{package}-{version}.tar.gz"
        findings[wheel.name] = check_wheel(wheel, package, version)
        findings[sdist.name] = check_sdist(sdist)
    for name, wrong in findings.items():
        size = (folder / name).stat().st_size
        print(f"{name:<44} {size / 1000:>8,.0f} kB  {'; '.join(wrong) or 'as it should be'}")
    if any(findings.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
