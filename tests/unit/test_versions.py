"""The version stands in one place, and every other place follows."""

import subprocess
import sys
import tomllib

import agnncert
from tests.support.paths import PROJECT


def test_every_file_states_the_version_of_the_library() -> None:
    script = PROJECT / ".ci" / "versions.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"version {agnncert.__version__} in ")
    number_of_files = int(done.stdout.split()[-2])
    assert number_of_files == 4 + 2 * len([*(PROJECT / "packages").glob("agnncert-*")])


def test_the_address_of_the_project_stands_in_one_place_and_every_other_follows(tmp_path) -> None:
    def address(*words: str) -> str:
        script = [sys.executable, str(tmp_path / ".ci" / "address.py"), *words]
        return subprocess.run(script, capture_output=True, text=True, check=True).stdout

    files = ["CITATION.cff", "mkdocs.yml", "pyproject.toml", ".ci/address.py"]
    files += [str(file.relative_to(PROJECT)) for file in (PROJECT / "packages").glob("*/pyproject.toml")]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes((PROJECT / file).read_bytes())
    before = address()
    assert address("https://example.org/one") == "address https://example.org/one in 7 files\n"
    assert address("https://example.org/two") == "address https://example.org/two in 7 files\n"
    for file in files:
        text = (tmp_path / file).read_text("utf-8")
        assert text.count("https://example.org/two") == (file != ".ci/address.py")
        assert "https://example.org/one" not in text
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["urls"] == {"Source": "https://example.org/two"}
    assert before.endswith("in 7 files\n")  # the project itself agrees
