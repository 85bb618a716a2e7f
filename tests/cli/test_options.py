"""Options are made from settings: one that is declared there is an option of the command, and nothing else is needed."""

from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer

from agnncert.cli.app import app
from agnncert.cli.options import From, with_options
from agnncert.cli.settings import CertifySettings, DataSettings, Option, TrainSettings, options_of

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize(
    ("command", "kind", "left_out"), [("train", TrainSettings, {"weights"}), ("certify", CertifySettings, set())]
)
def test_every_setting_is_an_option_of_its_command(command, kind, left_out) -> None:
    names = {parameter.name for parameter in COMMANDS[command].params}
    assert set(options_of(kind)) - names == left_out


@dataclass(frozen=True)
class MoreSettings(DataSettings):
    depth: int | None = field(default=None, metadata={"option": Option("How deep.", "Data")})
    eager: bool = field(default=False, metadata={"option": Option("At once.", "Data", default=False)})


def run(*words: str, chosen: From) -> list[MoreSettings]:
    """What a command of a few options is called with."""
    seen: list[MoreSettings] = []

    def command(wanted: Annotated[MoreSettings, chosen], last: int = 1) -> None:
        seen.append(wanted)

    small = typer.Typer()
    small.command()(with_options(command))
    small(list(words), standalone_mode=False)
    return seen


def test_a_declared_setting_reaches_the_command_in_its_own_type() -> None:
    words = ["tables", "--depth", "3", "--eager", "--column", "id=7", "--feature", "a", "--feature", "b"]
    wanted = MoreSettings(data="tables", depth=3, eager=True, column={"id": "7"}, feature=("a", "b"))
    assert run(*words, chosen=From()) == [wanted]
    assert run(chosen=From()) == [MoreSettings()]


def test_a_command_may_choose_some_settings_and_show_them_differently() -> None:
    chosen = From("depth", "data", data={"is_argument": False}, depth={"default": 5})
    assert run("--data", "x", chosen=chosen) == [MoreSettings(data="x", depth=5)]
    with pytest.raises(Exception, match="No such option: --eager"):
        run("--eager", chosen=chosen)
