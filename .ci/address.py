"""The address of the project: it stands in CITATION.cff (``repository-code``), and every other place follows.

python .ci/address.py                    say where another address stands, and fail
python .ci/address.py https://…/agnncert set it, and write it everywhere

Nothing is written as long as the address is not known: packages then have no link, and the documentation has none.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "CITATION.cff"
# What comes before the address, what comes after it, and before which line it is put where there is none.
FORMS = {
    "CITATION.cff": ('repository-code: "', '"\n', "references:"),
    "mkdocs.yml": ("repo_url: ", "\n", "docs_dir:"),
    "pyproject.toml": ('[project.urls]\nSource = "', '"\n\n', "[tool.hatch.build.targets.wheel]"),
}


def places() -> list[Path]:
    """Returns the files in which the address stands once it is known."""
    return [SOURCE, ROOT / "mkdocs.yml", ROOT / "pyproject.toml", *sorted(ROOT.glob("packages/*/pyproject.toml"))]


def stated(file: Path) -> str:
    """Returns the address in a file; "" if there is none."""
    before, after, _ = FORMS[file.name]
    text = file.read_text(encoding="utf-8")
    return text.split(before, 1)[1].split(after.rstrip("\n") or "\n", 1)[0] if before in text else ""


def write(file: Path, address: str) -> None:
    """Puts the address into a file, in place of the one that is there."""
    before, after, line = FORMS[file.name]
    text = file.read_text(encoding="utf-8")
    if old := stated(file):
        text = text.replace(f"{before}{old}{after}", "", 1)
    if f"\n{line}" not in text:
        raise SystemExit(f"{file.relative_to(ROOT)} has no line {line}, before which the address would stand.")
    file.write_text(text.replace(f"\n{line}", f"\n{before}{address}{after}{line}", 1), encoding="utf-8")


def main(words: list[str]) -> None:
    """Compares, or writes."""
    if words:
        if not re.fullmatch(r"https://\S+[^/\s]", words[0]):
            raise SystemExit(f"{words[0]} is no address: expected https://… without a slash at its end.")
        for file in places():
            write(file, words[0])
    address = stated(SOURCE)
    wrong = [f"{file.relative_to(ROOT)}: {stated(file) or 'none'}" for file in places() if stated(file) != address]
    if wrong:
        raise SystemExit("\n".join([f"the address is {address or 'not known'}, but:", *wrong]))
    print(f"address {address or 'not known'} in {len(places())} files")


if __name__ == "__main__":
    main(sys.argv[1:])
