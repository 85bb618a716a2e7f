"""What a run folder keeps of a user's tables."""

from pathlib import Path

import pytest
from torch_geometric.data import Data

from agnncert.cli.data import copy_tables, has_events
from agnncert.cli.folder import RunFolder
from agnncert.cli.settings import DataSettings
from agnncert.cli.tables_of import require_table_of_run, table_file, table_of_run
from agnncert.errors import SettingsError


def copies(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def test_copies_are_the_files_that_the_data_has_now(tmp_path) -> None:
    bank = tmp_path / "bank"
    (bank / "events").mkdir(parents=True)
    for name in ("nodes.csv", "edges.csv", "events/1.csv", "events/2.csv"):
        (bank / name).write_text("a,b\n1,2\n")
    (bank / "events" / "notes.txt").write_text("no table")
    run = RunFolder(tmp_path / "run")
    settings = DataSettings(data=str(bank), events=str(bank / "events"))
    copy_tables(settings, run, Data())
    assert copies(run.tables) == ["events/1.csv", "events/2.csv", "nodes.csv"]
    assert has_events(DataSettings(data=str(run.tables))), "edges that were not read are not copied"
    assert table_of_run(run, "events") == run.tables / "events"
    (bank / "events" / "1.csv").rename(bank / "events.csv")
    copy_tables(DataSettings(data=str(bank), events=str(bank / "events.csv")), run, Data())
    assert copies(run.tables) == ["events.csv", "nodes.csv"], "no event is there twice"


def test_a_table_that_is_not_there_is_named(tmp_path) -> None:
    run = RunFolder(tmp_path / "run")
    assert table_of_run(run, "events") is None
    with pytest.raises(SettingsError, match="holds no table of events"):
        require_table_of_run(run, "events")
    (tmp_path / "nodes.csv").write_text("id\n1\n")
    assert table_file(DataSettings(data=str(tmp_path)), "nodes") == tmp_path / "nodes.csv"
    for settings in (DataSettings(data=str(tmp_path)), DataSettings(events=str(tmp_path / "gone.csv"))):
        with pytest.raises(SettingsError, match="there is no table of events"):
            table_file(settings, "events")
