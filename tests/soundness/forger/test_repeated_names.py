"""JSON in which a name stands twice is refused wherever somebody else may have written it: readers differ in which value they take."""

import json
import sqlite3

import pytest

import agnncert as ac
from agnncert.cli.folder import RunFolder
from agnncert.datasets.encoding import Encoding
from agnncert.errors import CertificateError, DatasetError, GraphError, ModelContractError, SettingsError
from agnncert.models.io import load_description
from agnncert.storage import RepeatedNameError, parse_json
from agnncert_large import open_graph, write_graph
from agnncert_live import Event, JournalError, LiveGraph
from agnncert_peers.cards import read_card
from tests.support.graphs import random_data
from tests.support.models import build
from tests.support.paths import PROJECT


def doubled(text: str, name: str, value: str) -> str:
    """The JSON of an object with one of its names once more, at the end, and with another value."""
    body = text.rstrip()
    assert json.loads(body)[name] != json.loads(value)
    assert body.endswith("}")
    return f'{body[:-1]}, "{name}": {value}}}'


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '[{"b": {"a": 1, "a": 1}}]', '{"a": 1, "\\u0061": 2}'])
def test_a_name_that_stands_twice_is_refused_at_any_depth(text):
    with pytest.raises(RepeatedNameError, match='"a" stands twice in one object'):
        parse_json(text)
    assert json.loads(text) is not None


def test_json_that_can_be_read_in_one_way_is_read():
    assert parse_json('[{"a": 1, "b": {"a": 2}}, {"a": 3}]') == [{"a": 1, "b": {"a": 2}}, {"a": 3}]


def test_json_of_a_run_folder_says_nothing_twice(tmp_path):
    (tmp_path / "data.json").write_text('{"digest": "true", "digest": "false"}')
    (tmp_path / "results.jsonl").write_text('{"step": "train", "value": 0.1, "value": 0.9}\n')
    with pytest.raises(SettingsError, match='"digest" stands twice'):
        RunFolder(tmp_path).read_json("data.json")
    with pytest.raises(SettingsError, match='"value" stands twice'):
        RunFolder(tmp_path).rows()


def test_a_card_says_nothing_twice(tmp_path):
    text = next((PROJECT / "experiments/cards").glob("*.json")).read_text("utf-8")
    (tmp_path / "card.json").write_text(doubled(text, "defence", '"another one"'))
    with pytest.raises(CertificateError, match='"defence" stands twice'):
        read_card(tmp_path / "card.json")


def test_the_description_of_a_model_says_nothing_twice(tmp_path):
    ac.save_model(build("gcn", "node"), tmp_path / "weights.safetensors")
    file = tmp_path / "weights.json"
    file.write_text(doubled(file.read_text(), "format", '"another one"'))
    with pytest.raises(ModelContractError, match='"format" stands twice'):
        load_description(tmp_path / "weights.safetensors")


def test_an_encoding_says_nothing_twice():
    with pytest.raises(DatasetError, match='"nodes" stands twice'):
        Encoding.from_json(doubled(Encoding((), ()).to_json(), "nodes", "[1]"))


def test_a_graph_on_disk_says_nothing_twice(tmp_path):
    write_graph(random_data(0), tmp_path / "graph")
    file = next((tmp_path / "graph").glob("*.json"))
    file.write_text(doubled(file.read_text(), "version", "99"))
    with pytest.raises(GraphError, match='"version" stands twice'):
        open_graph(tmp_path / "graph")


def live(folder) -> LiveGraph:
    data = random_data(1, smallest=6, density=0.4)
    return LiveGraph(build("gcn", "node"), data, ac.NodeCentric(5), journal=folder / "journal.db")


def test_a_journal_says_nothing_twice(tmp_path):
    graph = live(tmp_path)
    first, second = graph.data().node_id[:2].tolist()
    graph.apply([Event("add_edge", first, second)])
    graph.close()
    with sqlite3.connect(tmp_path / "journal.db") as database:
        state = database.execute("SELECT value FROM about WHERE name = 'state'").fetchone()[0]
        database.execute("UPDATE about SET value = ? WHERE name = 'state'", [doubled(state, "number", "7")])
    database.close()
    with pytest.raises(JournalError, match="state cannot be read"):
        live(tmp_path)
