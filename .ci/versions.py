"""The version of all packages: it stands in ``src/agnncert/__init__.py``, and every other place follows.

python .ci/versions.py            say where another version stands, and fail
python .ci/versions.py --write    write the version everywhere
python .ci/versions.py 0.2.0      set it, and write it everywhere
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "agnncert" / "__init__.py"
NUMBER = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"
# What comes before a version, by the end of the file's name.
BEFORE = {
    "__init__.py": r'^__version__ = "',
    "pyproject.toml": r'^version = "|"agnncert(?:\[[a-z,]+\])?==',
    "CITATION.cff": r"^version: ",
    "citing.md": r"version = \{",
}


def places() -> list[Path]:
    """Returns the files in which the version stands."""
    packages = sorted((ROOT / "packages").glob("agnncert-*"))
    inits = [file for package in packages for file in package.glob("src/*/__init__.py")]
    projects = [package / "pyproject.toml" for package in packages]
    return [SOURCE, ROOT / "pyproject.toml", ROOT / "CITATION.cff", ROOT / "docs" / "citing.md", *inits, *projects]


def pattern(file: Path) -> re.Pattern[str]:
    """Returns what finds a version in a file, with what comes before it."""
    return re.compile(f"({BEFORE[file.name]})({NUMBER})", re.MULTILINE)


def current() -> str:
    """Returns the version of the library."""
    found = pattern(SOURCE).search(SOURCE.read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{SOURCE.relative_to(ROOT)} states no version.")
    return found[2]


def main(words: list[str]) -> None:
    """Compares, or writes."""
    is_new = bool(words) and words[0] != "--write"
    if is_new and not re.fullmatch(NUMBER, words[0]):
        raise SystemExit(f"{words[0]} is no version: expected three numbers, such as 0.2.0.")
    version = words[0] if is_new else current()
    wrong = []
    for file in places():
        text = file.read_text(encoding="utf-8")
        stated = [match[2] for match in pattern(file).finditer(text)]
        if not stated:
            raise SystemExit(f"{file.relative_to(ROOT)} states no version.")
        if any(each != version for each in stated):
            wrong.append(f"{file.relative_to(ROOT)}: {', '.join(stated)}")
            if words:
                file.write_text(pattern(file).sub(rf"\g<1>{version}", text), encoding="utf-8")
    if wrong and not words:
        raise SystemExit("\n".join([f"the version is {version}, but:", *wrong, "python .ci/versions.py --write"]))
    print(f"version {version} in {len(places())} files")


if __name__ == "__main__":
    main(sys.argv[1:])
