"""Every option explains itself, a command has few of them, and a settings file holds the rest."""

import re

import pytest
import typer

from agnncert.cli.commands import app
from agnncert.cli.settings import CertifySettings, TrainSettings, keys_of, read_settings
from agnncert.errors import SettingsError
from agnncert_peers.steps import CompareSettings
from tests.support.paths import PROJECT

COMMANDS = typer.main.get_command(app).commands
PAGE = PROJECT / "docs" / "commands" / "settings.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_help_text_and_no_command_has_more_than_nineteen(command) -> None:
    parameters = COMMANDS[command].params
    assert all(parameter.help for parameter in parameters)
    assert len([one for one in parameters if one.param_type_name == "option"]) <= 19


@pytest.mark.parametrize("kind", [TrainSettings, CertifySettings, CompareSettings])
def test_the_documentation_describes_every_setting(kind) -> None:
    described = set(re.findall(r"^\| `(\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(keys_of(kind)) - described == set()


def test_options_come_before_set_and_set_before_the_file(tmp_path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[train]\ngroups = 8\nlr = 0.5\nseed = 2\nset = { act = "elu", dropout = 0.1 }\nfeature = ["a"]\n')
    words = ["lr=0.25", "dropout=0.3", "column.id=name", "groups=7"]
    read = read_settings(TrainSettings, "train", file, words, groups=5, model=None)
    assert (read.groups, read.fit, read.seed, read.feature) == (5, {"lr": 0.25}, 2, ("a",))
    assert (read.set, read.column) == ({"act": "elu", "dropout": 0.3}, {"id": "name"})


@pytest.mark.parametrize("text", ['model = "os:system"', 'root = "elsewhere"'])
def test_what_runs_code_is_typed_and_not_read_from_a_file(text, tmp_path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f"[certify]\n{text}\n")
    with pytest.raises(SettingsError, match="can run code"):
        read_settings(CertifySettings, "certify", file)
    typed = {text.split(" ")[0]: "mine:Net"}
    assert read_settings(CertifySettings, "certify", file, (), **typed).table() | typed == {
        "seed": 0, "engine": "fast", "edges_only": False, **typed,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "said"), [("memory=lots", "whole number"), ("directed=1", "true or false"), ("tolerance=[1]", "a number")]
)
def test_a_value_of_the_wrong_type_is_refused(word, said) -> None:
    with pytest.raises(SettingsError, match=said):
        read_settings(CertifySettings, "certify", None, [word])
