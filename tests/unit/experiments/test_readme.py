"""experiments/README.md names every script and every result file, and nothing that does not exist."""

import re

from tests.support.paths import PROJECT

FOLDER = PROJECT / "experiments"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_script_is_named_or_says_itself_what_it_writes():
    scripts = [file for file in (FOLDER / "benchmarks").glob("*.py") if file.stem != "__init__"]
    others = [file for file in scripts if f"`benchmarks/{file.name}`" not in TEXT]
    assert len(others) < len(scripts) / 4
    assert [file.name for file in others if "results/" not in file.read_text(encoding="utf-8").split('"""')[1]] == []


def test_what_is_named_exists():
    named = re.findall(r"`((?:benchmarks|results)/[\w./*-]+)`", TEXT)
    assert len(named) > 50
    assert [name for name in named if not list(FOLDER.glob(name))] == []


def test_every_result_file_belongs_to_a_script():
    files = [file for place in ("results", "benchmarks/results") for file in (FOLDER / place).iterdir()]
    named = {file for name in re.findall(r"`((?:benchmarks|results)/[\w./*-]+)`", TEXT) for file in FOLDER.glob(name)}
    known = {file.with_suffix("") for file in named}  # some scripts write a table beside their rows
    scripts = tuple(file.stem for file in (FOLDER / "benchmarks").glob("*.py") if file.stem != "__init__")
    others = [file.name for file in files if file.with_suffix("") not in known and not file.stem.startswith(scripts)]
    assert others == []
