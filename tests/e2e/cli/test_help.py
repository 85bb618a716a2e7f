"""Help and verification answer at once: they never import torch."""

import subprocess
import sys

import pytest

from agnncert.cli.commands import app
from tests.support.paths import GOLDEN

COMMANDS = [
    "demo", "datasets", "train", "certify", "verify", "check", "show", "backtest", "groups", "issue", "audit", "attack", "explain", "report", "score", "diff", "export", "log", "card", "cards", "compare",
    "journal", "partition", "scan", "serve",
]  # fmt: skip

SCRIPT = """
import sys
from agnncert.cli import main
status = main(sys.argv[1:])
heavy = {"torch", "torch_geometric", "scipy.stats", "pandas", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
sys.exit(status)
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["datasets"]])
def test_help_and_listings_load_no_torch(words) -> None:
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) > 200


def test_verify_of_a_file_loads_no_torch() -> None:
    file = sorted(GOLDEN.rglob("*.cert"))[0]
    done = run("verify", str(file))
    assert done.returncode == 0, done.stderr
    assert "The arithmetic of this file is consistent." in done.stdout


def test_every_command_of_the_public_surface_is_there(agnncert) -> None:
    assert [command.callback.__name__ for command in app.registered_commands] == COMMANDS
    helped = agnncert("--help").out
    assert all(name in helped for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, agnncert) -> None:
    answer = agnncert(command, "--help")
    assert answer.status == 0
    assert f"agnncert {command}" in answer.out
    assert "--help" in answer.out


def test_without_a_command_the_help_is_shown(agnncert) -> None:
    answer = agnncert()
    assert "Commands" in answer.out
    assert (answer.status, answer.err) == (0, "")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_no_type_stands_beside_a_flag(command, agnncert) -> None:
    assert "bool" not in agnncert(*command, "--help").out.lower()


def test_the_version_is_told(agnncert) -> None:
    assert agnncert("--version").out.startswith("agnncert ")


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "agnncert", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("agnncert ")
    wrong = subprocess.run([sys.executable, "-m", "agnncert", "trian"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "train" in wrong.stderr) == (2, True)
